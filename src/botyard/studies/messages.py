"""Messages between a study and its workers: JSON lines over standard input and output."""

from __future__ import annotations

from typing import Any

import msgspec

from botyard.studies.plan import Record
from botyard.studies.results import Status


class Job(msgspec.Struct, kw_only=True, tag=True):
    """First line sent to a worker: everything that its runs share.

    Attributes
    ----------
    folder, results : str
        Folder of the plan; folder of the results.
    part, log : str
        File for the worker's rows; file for its output.
    setup : dict
        Description of a run, see `botyard.studies.run_spec`.
    simulated, memory : float or None
        Limits of simulated time, s, and of memory, MiB.
    record : str
        When recordings are kept: ``never``, ``on-failure`` or ``always``.
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
    """One run for a worker to carry out.

    Attributes
    ----------
    key : str
        Hash of the run.
    values : dict
        Parameter values of the run.
    seed : int
        Seed of the run.
    """

    key: str
    values: dict[str, Any]
    seed: int


class Group(msgspec.Struct, tag=True):
    """Order to carry out runs one after another.

    Attributes
    ----------
    items : list of Item
        The runs, in order.
    """

    items: list[Item]


class Ready(msgspec.Struct, tag=True):
    """Event: the worker has loaded everything and waits for runs."""


class Broken(msgspec.Struct, tag=True):
    """Event: the worker ends because it cannot load the plan's files or write results.

    Attributes
    ----------
    text : str
        Reason, in one line.
    """

    text: str


class Started(msgspec.Struct, tag=True):
    """Event: the run has started a program in a process group of its own.

    The study ends this group if the worker dies.

    Attributes
    ----------
    pid : int
        Id of the program's process, which is also the id of its group.
    """

    pid: int


class Done(msgspec.Struct, tag=True):
    """Event: a run has ended and its row is written.

    Attributes
    ----------
    key : str
        Hash of the run.
    status : str
        Status of the row, see `botyard.studies.results.Row`.
    wall : float
        Wall time of the run, s.
    error : str
        Reason why the run is not ok, in one line; empty: none.
    """

    key: str
    status: Status
    wall: float
    error: str = ""


Event = Ready | Broken | Started | Done
"""Any message from a worker."""
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
