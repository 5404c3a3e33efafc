"""``botyard packets``: what passed between Pioneer clients and robots, in words, from a recording of ``--record-packets``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

import click

from botyard.errors import FormatError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.names import shown
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.packet import Packet, Parser
from botyard.protocols.pioneer.session import Stage, in_handshake, stage_after


@click.command("packets")
@click.argument("file", metavar="FILE")
@click.option("--robot", help="Only sessions of this robot.")
@click.option("--session", type=int, help="Only this session.")
def command(file: str, robot: str | None, session: int | None) -> int:
    """Print a recording of --record-packets: time, session, direction, packet, and its bytes."""
    talks: defaultdict[int, _SessionReader] = defaultdict(_SessionReader)
    try:
        lines = read_bytes(file, Meter(Budget(), file, FormatError), FormatError).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"cannot be read: {error}", file) from None
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if "lost" in entry:
                click.echo(
                    f"{float(entry['sim']):9.3f} {int(entry['lost'])} lines are missing here: they could not be written"
                )
                continue
            count, from_client = int(entry["session"]), entry["from"] == "client"
            data, name, at = bytes.fromhex(entry["data"]), str(entry["robot"]), float(entry["sim"])
        except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise FormatError(f"not a line of a recording: {error}", file, number) from None
        if (robot is None or name == robot) and (session is None or count == session):
            for packet, what in talks[count].read(data, from_client):
                arrow = "→" if from_client else "←"
                click.echo(f"{at:9.3f} {shown(name)} #{count} {arrow} {what} {packet.data.hex(' ')}".rstrip())
    return 0


class _SessionReader:
    """Decoder of one session: packet ids 0, 1 and 2 of a client have another meaning in the handshake than after it."""

    def __init__(self) -> None:
        self._parsers = {True: Parser(), False: Parser()}
        self._stage = Stage.SYNC0

    def read(self, data: bytes, from_client: bool) -> Iterator[tuple[Packet, str]]:
        """The packets that are complete with `data`, and what they are."""
        for packet in self._parsers[from_client].receive(data):
            kind: type[C] | type[P] = P
            if from_client:
                kind = P if in_handshake(self._stage, packet.id) else C
                self._stage = stage_after(self._stage, packet.id)
            try:
                yield packet, f"{kind(packet.id).name} ({packet.id})"
            except ValueError:
                yield packet, f"{packet.id}"
