"""``botyard packets``: print or replay the packets between Pioneer clients and robots.

Reads files of ``--record-packets`` and of ``--record``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import click

from botyard.cli.options import parse_address
from botyard.clients.trace import Passed, play, stage_before, trace_of
from botyard.errors import CommandLineError
from botyard.interfaces.pioneer.tracefile import Lost, read_trace
from botyard.names import shown
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.handshake import Stage, in_handshake, stage_after
from botyard.protocols.pioneer.packet import Packet, Parser
from botyard.protocols.pioneer.reports import Sip


@click.command("packets")
@click.argument("file", metavar="FILE")
@click.option("--robot", help="Select the sessions of this robot.")
@click.option("--session", type=int, help="Select this session.")
@click.option(
    "--play",
    "address",
    metavar="HOST:PORT",
    help="Replay the recorded client to another robot, simulated or real.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 1000.0),
    default=1.0,
    help="With --play: speed as a multiple of the recorded one. [default: 1]",
)
def command(
    file: str, robot: str | None, session: int | None, address: str | None, speed: float
) -> int:
    """Print recorded Pioneer packets, or replay them (--play).

    Prints time, session, direction, packet and bytes. FILE comes from --record-packets
    or --record.
    """
    trace = read_trace(
        file, lambda problem: click.echo(f"{shown(file)}: {shown(problem)}", err=True)
    )
    # Report losses regardless of the filter: the reader must know that the list has a
    # gap.
    found = [
        one for one in trace if isinstance(one, Lost) or _is_wanted(one, robot, session)
    ]
    if address is not None:
        _play([one for one in found if isinstance(one, Passed)], address, speed)
        return 0

    talks: defaultdict[int, _SessionReader] = defaultdict(_SessionReader)
    for one in found:
        if isinstance(one, Lost):
            click.echo(
                f"{one.sim:9.3f} {one.count} {one.what} are missing here: the "
                "recorder could not write them"
            )
            continue

        for packet, what in talks[one.session].read(one):
            _print(
                one.sim,
                f"{shown(one.robot)} #{one.session}",
                one.from_client,
                what,
                packet,
            )

    return 0


def _is_wanted(one: Passed, robot: str | None, session: int | None) -> bool:
    """Return whether a packet belongs to the robot and session that the user selected."""
    return (robot is None or one.robot == robot) and (
        session is None or one.session == session
    )


def _print(at: float, who: str, from_client: bool, what: str, packet: Packet) -> None:
    """Print one packet: time, session, direction, name and bytes."""
    click.echo(
        f"{at:9.3f} {who} {'→' if from_client else '←'} {what} {packet.data.hex(' ')}".rstrip()
    )


def _play(passed: list[Passed], address: str, speed: float) -> None:
    """Replay the only session that the user's selection contains."""
    try:
        host, port = parse_address(address, port=None)
    except CommandLineError as error:
        raise CommandLineError(f"--play: {error}") from None

    sessions = sorted({one.session for one in passed})
    # Packets of two clients, mixed on one connection, would not form a session that a
    # robot accepts.
    if len(sessions) != 1:
        listed = ", ".join(
            f"{n} ({shown(next(p.robot for p in passed if p.session == n))})"
            for n in sessions[:20]
        )
        raise CommandLineError(
            f"--play: expected one session, found {listed or 'none'}; select one with --session"
        )

    trace = trace_of(passed)
    reader = _SessionReader()

    def on_packet(is_ours: bool, packet: Packet, at: float) -> None:
        _print(at, shown(address), is_ours, reader.name(packet, is_ours), packet)

    player = play(trace, host, port, speed=speed, on_packet=on_packet)
    # Equal poses show that the other robot behaves alike: this is the quickest
    # comparison of two simulators.
    here = _last_pose(player.answers)
    parser = Parser()
    there = _last_pose(
        [
            packet
            for one in passed
            if not one.from_client
            for packet in parser.feed_bytes(one.data)
        ]
    )
    click.echo(
        f"played: {len(trace.sent)} packets of session {sessions[0]}; last pose "
        f"(x, y, th as on the wire): {here}, recorded {there}"
    )


def _last_pose(packets: list[Packet]) -> str:
    """Return the robot's pose in the last SIP (status packet) as text, in the protocol's units."""
    sips = [packet for packet in packets if packet.id in (P.SIP, P.SIP_MOVING)]
    if not sips:
        return "none"
    sip = Sip.decode(sips[-1])
    # Raw counters, because their units depend on conversion factors that a real robot
    # may report differently.
    return f"{sip.x} {sip.y} {sip.th}"


class _SessionReader:
    """Decoder of the packets of one session.

    The client's packet ids 0, 1 and 2 mean SYNC in the handshake and commands after it.
    """

    def __init__(self) -> None:
        # Use one parser per direction: bytes of both arrive interleaved, and packets
        # may be cut anywhere.
        self._parsers = {True: Parser(), False: Parser()}
        self._stage: Stage | None = None

    def read(self, passed: Passed) -> Iterator[tuple[Packet, str]]:
        """Yield each packet that the given bytes complete, with its name."""
        if self._stage is None:
            # A recording may start in the middle of a session, after the handshake.
            self._stage = stage_before(passed)
        for packet in self._parsers[passed.from_client].feed_bytes(passed.data):
            yield packet, self.name(packet, passed.from_client)

    def name(self, packet: Packet, from_client: bool) -> str:
        """Return the name of a packet in the current phase of the session."""
        # Robots and clients use separate number spaces; only the handshake's packets
        # have the same numbers in both.
        kind: type[C] | type[P] = P
        if from_client:
            stage = self._stage or Stage.SYNC0
            kind = P if in_handshake(stage, packet.id) else C
            self._stage = stage_after(stage, packet.id)

        try:
            return f"{kind(packet.id).name} ({packet.id})"
        except ValueError:
            return f"{packet.id}"
