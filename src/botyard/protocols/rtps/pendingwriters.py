"""Writers that must send HEARTBEATs or that wait for acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from botyard.protocols.rtps.callbacks import Callbacks

W = TypeVar("W")
"""Type of the writers. Their class cannot be imported here, because its module imports this one."""


@dataclass(slots=True)
class PendingWriters(Generic[W]):
    """Writers of a participant with unannounced or unacknowledged samples.

    Attributes
    ----------
    written : dict of Writer
        Writers that have written since their last HEARTBEAT.
    unacknowledged : dict of Writer
        Writers whose readers have not acknowledged all samples.
    callbacks : Callbacks
        Queue of callbacks of programs.
    """

    callbacks: Callbacks
    written: dict[W, None] = field(default_factory=dict)
    unacknowledged: dict[W, None] = field(default_factory=dict)


__all__ = ["PendingWriters"]
