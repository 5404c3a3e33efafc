"""What a study, the process that speaks to Ray for it, and its tasks on Ray tell each
other.

Tasks get and say MessagePack, as bytes: Ray is handed nothing that it would pickle in
ways of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from botyard.studies.messages import Item
from botyard.studies.plan import LimitKeys, Record
from botyard.studies.results import Row


class RayJob(msgspec.Struct, kw_only=True):
    """The first line to the process that speaks to Ray; lists of `Item` follow, a line
    each.

    Attributes
    ----------
    address : str
        Address of the cluster, or ``auto``.
    workers : int or None
        Most runs at a time; None: as many as there are processors.
    files : str
        Folder that nodes get a copy of.
    results, part : str
        Folder of the results; the file in it that rows go to.
    runs : int
        Number of runs that follow.
    plan : str
        Name of the plan's file.
    setup : dict
        What a run is, see `botyard.studies.run_spec`.
    limits : LimitKeys
        Limits of a run.
    record : str
        When recordings are kept.
    """

    address: str
    workers: int | None
    files: str
    results: str
    part: str
    runs: int
    plan: str
    setup: dict[str, Any]
    limits: LimitKeys
    record: Record


class Order(msgspec.Struct, kw_only=True):
    """What all tasks of a study have in common.

    Attributes
    ----------
    version : str
        Version of botyard that the study has.
    plan : str
        Name of the plan's file.
    setup : dict
        What a run is, see `botyard.studies.run_spec`.
    limits : LimitKeys
        Limits of a run.
    record : str
        When recordings are kept.
    """

    version: str
    plan: str
    setup: dict[str, Any]
    limits: LimitKeys
    record: Record


class TaskGroup(msgspec.Struct, kw_only=True):
    """Runs of a task.

    Attributes
    ----------
    items : list of Item
        The runs.
    period : float
        Rows are sent back so often, s, when there are any.
    seconds : float
        After so long, when a run has ended, no more are begun: those that are left are
        given to another task.
    """

    items: list[Item]
    period: float
    seconds: float


class Begun(msgspec.Struct, tag=True):
    """The task has begun, on this node (its address)."""

    node: str


class Ended(msgspec.Struct, tag=True):
    """A run has ended; with its log, if that is kept."""

    row: Row
    log: bytes | None = None


class Recorded(msgspec.Struct, tag=True):
    """A piece of the recording of a run, in order; its row comes behind the last."""

    key: str
    piece: bytes


class Refused(msgspec.Struct, tag=True):
    """No run can be carried out, and why."""

    text: str


Told = Begun | Ended | Recorded | Refused
"""What a task says; it sends lists of these."""
encode_line = msgspec.json.Encoder().encode
decode_job = msgspec.json.Decoder(RayJob).decode
decode_items = msgspec.json.Decoder(list[Item]).decode
encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_group = msgspec.msgpack.Decoder(TaskGroup).decode
decode_told = msgspec.msgpack.Decoder(list[Told]).decode

__all__ = [
    "Begun",
    "Ended",
    "Order",
    "RayJob",
    "Recorded",
    "Refused",
    "TaskGroup",
    "Told",
    "decode_group",
    "decode_items",
    "decode_job",
    "decode_order",
    "decode_told",
    "encode",
    "encode_line",
]
