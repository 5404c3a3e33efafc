"""Reader of recorded bytes between Pioneer clients and robots.

The files come from ``--record-packets``; recordings have the bytes in their packet channel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botyard.clients.trace import Passed
from botyard.errors import FormatError, RecordingError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter


@dataclass(frozen=True, slots=True)
class Lost:
    """Gap in a packet trace.

    Attributes
    ----------
    count : int
        Number of lost entries.
    sim : float
        Simulated time of the first entry after the gap, s.
    what : str
        Noun for the lost entries in messages: ``lines`` or ``packets``.
    """

    count: int
    sim: float
    what: str = "lines"


def read_trace(
    file: str, on_warning: Callable[[str], object] = lambda _: None
) -> Iterator[Passed | Lost]:
    """Read a packet trace or a recording.

    Parameters
    ----------
    file : str
        File of ``--record-packets`` (see `botyard.servers.pioneer.packetlog`) or
        recording (see `botyard.recording.recorder`).
    on_warning : callable
        Called with each problem of a damaged recording, whose remaining parts are still
        read.

    Yields
    ------
    Passed or Lost
        Packets and gaps, in the order of the file.

    Raises
    ------
    FormatError, RecordingError
        The file cannot be read, is too long, or is no trace or recording; the error
        states the line.
    """
    # Import these modules late, because only recordings need them.
    from botyard.recording.mcap import MAGIC

    try:
        with open(file, "rb") as begin:
            is_recording = begin.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", file) from None

    yield from _of_recording(file, on_warning) if is_recording else _of_lines(file)


def _of_lines(file: str) -> Iterator[Passed | Lost]:
    try:
        lines = (
            read_bytes(file, Meter(Budget(), file, FormatError), FormatError)
            .decode("utf-8")
            .splitlines()
        )
    except UnicodeDecodeError as error:
        raise FormatError(f"cannot be read: {error}", file) from None

    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            found = (
                Lost(int(entry["lost"]), float(entry["sim"]))
                if "lost" in entry
                else _passed(entry)
            )
        # The file may be damaged in any way: deep nesting raises RecursionError, huge
        # numbers ArithmeticError.
        except (
            ValueError,
            KeyError,
            TypeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise FormatError(
                f"not a line of a packet trace (--record-packets): {error}",
                file,
                number,
            ) from None

        yield found


def _of_recording(
    file: str, on_warning: Callable[[str], object]
) -> Iterator[Passed | Lost]:
    from botyard.recording.own_channels import EVENTS, PACKETS, unpack_json
    from botyard.recording.reader import Reader

    with Reader(file) as reader:
        for one in reader.messages((EVENTS, PACKETS)):
            try:
                entry = unpack_json(one.data)
                if one.channel.topic == PACKETS:
                    yield _passed(entry)
                # Ignore gaps in other channels of the recording.
                elif entry.get("event") == "lost" and entry["lost"].get("packets"):
                    yield Lost(int(entry["lost"]["packets"]), one.time / 1e9, "packets")
            except (
                RecordingError,
                ValueError,
                KeyError,
                TypeError,
                AttributeError,
                ArithmeticError,
            ) as error:
                raise FormatError(
                    f"not a packet message of a recording: {error}", file
                ) from None

        for problem in reader.problems:
            on_warning(problem)


def _passed(entry: Mapping[str, Any]) -> Passed:
    return Passed(
        str(entry["robot"]),
        int(entry["session"]),
        float(entry["sim"]),
        float(entry["wall"]),
        entry["from"] == "client",
        bytes.fromhex(entry["data"]),
        int(entry.get("order", 0)),
    )


__all__ = ["Lost", "read_trace"]
