"""``botyard packets``: a recording of ``--record-packets``, what passed between Pioneer clients and robots, in words; and playing it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import click

from botyard.clients.trace import Passed, play, trace_of
from botyard.errors import CommandLineError, FormatError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.names import shown
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.packet import Packet, Parser
from botyard.protocols.pioneer.reports import Sip
from botyard.protocols.pioneer.session import Stage, in_handshake, stage_after


@click.command("packets")
@click.argument("file", metavar="FILE")
@click.option("--robot", help="Only sessions of this robot.")
@click.option("--session", type=int, help="Only this session.")
@click.option(
    "--play", "address", metavar="HOST:PORT", help="Be the recorded client for another robot, simulated or real."
)  # fmt: skip
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 1000.0),
    default=1.0,
    help="With --play: recorded per wall time. [default: 1]",
)
def command(file: str, robot: str | None, session: int | None, address: str | None, speed: float) -> int:
    """Print a recording of --record-packets: time, session, direction, packet, and its bytes; or play it (--play)."""
    found = [one for one in read_trace(file) if isinstance(one, Lost) or _is_wanted(one, robot, session)]
    if address is not None:
        _play([one for one in found if isinstance(one, Passed)], address, speed)
        return 0
    talks: defaultdict[int, _SessionReader] = defaultdict(_SessionReader)
    for one in found:
        if isinstance(one, Lost):
            click.echo(f"{one.sim:9.3f} {one.count} lines are missing here: they could not be written")
            continue
        for packet, what in talks[one.session].read(one.data, one.from_client):
            _print(one.sim, f"{shown(one.robot)} #{one.session}", one.from_client, what, packet)
    return 0


def _is_wanted(one: Passed, robot: str | None, session: int | None) -> bool:
    return (robot is None or one.robot == robot) and (session is None or one.session == session)


def _print(at: float, who: str, from_client: bool, what: str, packet: Packet) -> None:
    click.echo(f"{at:9.3f} {who} {'→' if from_client else '←'} {what} {packet.data.hex(' ')}".rstrip())


def _play(passed: list[Passed], address: str, speed: float) -> None:
    """Play the one session that is left."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CommandLineError(f"--play: expected HOST:PORT, found {shown(address)}")
    sessions = sorted({one.session for one in passed})
    if len(sessions) != 1:
        listed = ", ".join(f"{n} ({shown(next(p.robot for p in passed if p.session == n))})" for n in sessions[:20])
        raise CommandLineError(f"--play: expected one session, found {listed or 'none'}; --session says which")
    trace = trace_of(passed)
    reader = _SessionReader()

    def told(is_ours: bool, packet: Packet, at: float) -> None:
        _print(at, shown(address), is_ours, reader.name(packet, is_ours), packet)

    player = play(trace, host.strip("[]"), int(port), speed=speed, told=told)
    here = _last_pose(player.answers)
    parser = Parser()
    there = _last_pose([packet for one in passed if not one.from_client for packet in parser.receive(one.data)])
    click.echo(
        f"played: {len(trace.sent)} packets of session {sessions[0]}; last pose (x, y, th as on the wire): {here}, recorded {there}"
    )


def _last_pose(packets: list[Packet]) -> str:
    sips = [packet for packet in packets if packet.id in (P.SIP, P.SIP_MOVING)]
    if not sips:
        return "none"
    sip = Sip.decode(sips[-1])
    return f"{sip.x} {sip.y} {sip.th}"


@dataclass(frozen=True, slots=True)
class Lost:
    """Lines that are missing at this place: how many, and the simulated time after them, s."""

    count: int
    sim: float


def read_trace(file: str) -> Iterator[Passed | Lost]:
    """Read a recording of ``--record-packets``, see `botyard.servers.packetlog`.

    Raises
    ------
    FormatError
        It cannot be read, is too long, or holds something else; with the line.
    """
    try:
        lines = read_bytes(file, Meter(Budget(), file, FormatError), FormatError).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"cannot be read: {error}", file) from None
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if "lost" in entry:
                found: Passed | Lost = Lost(int(entry["lost"]), float(entry["sim"]))
            else:
                found = Passed(
                    str(entry["robot"]),
                    int(entry["session"]),
                    float(entry["sim"]),
                    float(entry["wall"]),
                    entry["from"] == "client",
                    bytes.fromhex(entry["data"]),
                )
        except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise FormatError(f"not a line of a recording: {error}", file, number) from None
        yield found


class _SessionReader:
    """Decoder of one session: packet ids 0, 1 and 2 of a client have another meaning in the handshake than after it."""

    def __init__(self) -> None:
        self._parsers = {True: Parser(), False: Parser()}
        self._stage = Stage.SYNC0

    def read(self, data: bytes, from_client: bool) -> Iterator[tuple[Packet, str]]:
        """The packets that are complete with `data`, and what they are."""
        for packet in self._parsers[from_client].receive(data):
            yield packet, self.name(packet, from_client)

    def name(self, packet: Packet, from_client: bool) -> str:
        """What the next packet is."""
        kind: type[C] | type[P] = P
        if from_client:
            kind = P if in_handshake(self._stage, packet.id) else C
            self._stage = stage_after(self._stage, packet.id)
        try:
            return f"{kind(packet.id).name} ({packet.id})"
        except ValueError:
            return f"{packet.id}"
