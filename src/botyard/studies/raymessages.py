"""Messages between a study, its Ray driver process, and its tasks on Ray.

Tasks receive and send MessagePack bytes, so that Ray has no objects to pickle.
"""

from __future__ import annotations

from typing import Any

import msgspec

from botyard.studies.messages import Item
from botyard.studies.plan import LimitKeys, Record
from botyard.studies.results import Row


class RayJob(msgspec.Struct, kw_only=True):
    """First line sent to the Ray driver process; lines with lists of `Item` follow.

    Attributes
    ----------
    address : str
        Address of the cluster, or ``auto``.
    workers : int or None
        Maximum number of concurrent runs; None: one per CPU.
    files : str
        Folder that Ray copies to its nodes.
    results, part : str
        Folder of the results; file in it for the rows.
    runs : int
        Number of runs that follow.
    plan : str
        Name of the plan's file.
    setup : dict
        Description of a run, see `botyard.studies.run_spec`.
    limits : LimitKeys
        Limits of a run.
    record : str
        When recordings are kept: ``never``, ``on-failure`` or ``always``.
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
    """Everything that the tasks of a study share.

    Attributes
    ----------
    version : str
        Version of botyard that runs the study.
    plan : str
        Name of the plan's file.
    setup : dict
        Description of a run, see `botyard.studies.run_spec`.
    limits : LimitKeys
        Limits of a run.
    record : str
        When recordings are kept: ``never``, ``on-failure`` or ``always``.
    """

    version: str
    plan: str
    setup: dict[str, Any]
    limits: LimitKeys
    record: Record


class TaskGroup(msgspec.Struct, kw_only=True):
    """Runs of one task.

    Attributes
    ----------
    items : list of Item
        The runs.
    period : float
        Minimum period at which rows are sent back, s.
    seconds : float
        Time after which the task starts no more runs, s. Another task gets the rest.
    """

    items: list[Item]
    period: float
    seconds: float


class Begun(msgspec.Struct, tag=True):
    """The task has started.

    Attributes
    ----------
    node : str
        Host name of the node on which it runs.
    """

    node: str


class Ended(msgspec.Struct, tag=True):
    """A run has ended.

    Attributes
    ----------
    row : Row
        Row of the run.
    log : bytes or None
        Its log; None: the log is not kept.
    """

    row: Row
    log: bytes | None = None


class Recorded(msgspec.Struct, tag=True):
    """The next piece of a run's recording.

    The row of the run follows the last piece.

    Attributes
    ----------
    key : str
        Hash of the run.
    piece : bytes
        Part of the recording, in order.
    """

    key: str
    piece: bytes


class Refused(msgspec.Struct, tag=True):
    """The task cannot carry out any run.

    Attributes
    ----------
    text : str
        Reason, in one line.
    """

    text: str


Told = Begun | Ended | Recorded | Refused
"""Any message from a task; a task sends lists of these."""
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
