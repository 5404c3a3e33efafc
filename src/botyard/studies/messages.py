"""What a study and its workers tell each other: lines of JSON over the worker's
standard input and output.
"""

from __future__ import annotations

from typing import Any

import msgspec

from botyard.studies.plan import Record
from botyard.studies.results import Status


class Job(msgspec.Struct, kw_only=True, tag=True):
    """The first line to a worker: what all of its runs have in common.

    Attributes
    ----------
    folder, results : str
        Folder of the plan; folder of the results.
    part, log : str
        The worker's file of rows; the file that its output goes to.
    setup : dict
        What a run is, see `botyard.studies.run_spec`.
    simulated, memory : float or None
        Limits: s, MiB.
    record : str
        When recordings are kept.
    """

    folder: str
    results: str
    part: str
    log: str
    setup: dict[str, Any]
    simulated: float | None
    memory: float | None
    record: Record


class Item(msgspec.Struct, array_like=True):
    """A run to be carried out."""

    key: str
    values: dict[str, Any]
    seed: int


class Group(msgspec.Struct, tag=True):
    """Runs to be carried out one after the other."""

    items: list[Item]


class Ready(msgspec.Struct, tag=True):
    """The worker has loaded what it needs."""


class Broken(msgspec.Struct, tag=True):
    """The worker cannot load what the plan names, or cannot write results, and ends."""

    text: str


class Started(msgspec.Struct, tag=True):
    """The run has started a program, which leads a process group of its own; it is
    ended should the worker die.
    """

    pid: int


class Done(msgspec.Struct, tag=True):
    """A run has ended, and its row is written; wall time in s."""

    key: str
    status: Status
    wall: float
    error: str = ""


Event = Ready | Broken | Started | Done
"""What a worker says."""
encode = msgspec.json.Encoder().encode
decode_order = msgspec.json.Decoder(Job | Group).decode
decode_event = msgspec.json.Decoder(Event).decode

__all__ = [
    "Broken",
    "Done",
    "Event",
    "Group",
    "Item",
    "Job",
    "Ready",
    "Started",
    "decode_event",
    "decode_order",
    "encode",
]
