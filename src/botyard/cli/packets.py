"""``botyard packets``: what passed between Pioneer clients and robots, in words, from a recording of ``--record-packets``."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import click

from botyard.errors import FormatError
from botyard.names import shown
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.packet import Packet, Parser


@click.command("packets")
@click.argument("file", metavar="FILE")
@click.option("--robot", help="Only sessions of this robot.")
@click.option("--session", type=int, help="Only this session.")
def command(file: str, robot: str | None, session: int | None) -> int:
    """Print a recording of --record-packets: time, session, direction, packet, and its bytes."""
    parsers: defaultdict[tuple[int, bool], Parser] = defaultdict(Parser)
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot be read: {error}", file) from None
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            key = (int(entry["session"]), entry["from"] == "client")
            data, name, at = bytes.fromhex(entry["data"]), str(entry["robot"]), float(entry["sim"])
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"not a line of a recording: {error}", file, number) from None
        if (robot is None or name == robot) and (session is None or key[0] == session):
            for packet in parsers[key].receive(data):
                arrow = "→" if key[1] else "←"
                click.echo(
                    f"{at:9.3f} {shown(name)} #{key[0]} {arrow} {_named(packet, key[1])} {packet.data.hex(' ')}".rstrip()
                )
    return 0


def _named(packet: Packet, from_client: bool) -> str:
    """A packet's number and name."""
    kind = C if from_client else P
    try:
        return f"{kind(packet.id).name} ({packet.id})"
    except ValueError:
        return f"{packet.id}"
