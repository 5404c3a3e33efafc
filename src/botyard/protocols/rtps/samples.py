"""Samples, and the state that all readers of a participant share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from botyard.protocols.rtps.agenda import Agenda
from botyard.protocols.rtps.callbacks import Callbacks
from botyard.protocols.rtps.events import Events
from botyard.protocols.rtps.fragments import Assembly
from botyard.protocols.rtps.limits import (
    MAX_ASSEMBLY_BYTES,
    MAX_TOTAL_HELD_BYTES,
)
from botyard.protocols.rtps.parameters import Identity
from botyard.protocols.shares import Shares

P = TypeVar("P")
"""Type of the state that a reader keeps of a writer.

It stands for `WriterProxy`, whose module imports this one.
"""


class Sample(NamedTuple):
    """Sample with its metadata.

    Attributes
    ----------
    payload : bytes
        Payload with its 4 bytes of encapsulation.
    writer : bytes
        GUID of the writer.
    number : int
        Sequence number of the sample, from 1.
    related : Identity or None
        Related sample identity.
    stamp : float
        Time at which the sample was sent, s since 1970; 0 if unknown.
    status : int
        Bits `parameters.DISPOSED` and `parameters.UNREGISTERED`; always 0 for samples
        of users' writers.
    key : bytes
        Key hash; empty for samples of users' writers.
    """

    payload: bytes
    writer: bytes
    number: int
    related: Identity | None = None
    stamp: float = 0.0
    status: int = 0
    key: bytes = b""


@dataclass(slots=True)
class Inbox(Generic[P]):
    """State that readers share.

    Attributes
    ----------
    asking : Agenda
        Schedule of requests (ACKNACK, NACK_FRAG) to writers.
    assembling : dict of WriterProxy
        Writers with samples that are reassembled from fragments.
    assemblies : dict of Assembly
        Samples that are reassembled, by GUID of the writer and sequence number. The
        readers of a topic share them.
    budget : Shares
        Memory budget of the samples that are reassembled.
    held : Shares
        Memory budget of all samples that wait for missing ones.
    events : Events
        Log of events.
    callbacks : Callbacks
        Queue of callbacks of programs.
    """

    events: Events
    callbacks: Callbacks
    asking: Agenda[P] = field(default_factory=Agenda)
    assembling: dict[P, None] = field(default_factory=dict)
    assemblies: dict[tuple[bytes, int], Assembly[P]] = field(default_factory=dict)
    budget: Shares = field(default_factory=lambda: Shares(MAX_ASSEMBLY_BYTES))
    held: Shares = field(default_factory=lambda: Shares(MAX_TOTAL_HELD_BYTES))


__all__ = ["Inbox", "Sample"]
