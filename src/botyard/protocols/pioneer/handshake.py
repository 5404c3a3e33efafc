"""Stages of a session, and its handshake, which the client drives.

The order is SYNC0 → SYNC1 → SYNC2 → OPEN (pioneer-protocol §3).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from botyard.protocols.pioneer.commands import C, P


class Stage(Enum):
    """Stage of a session: the handshake's states, open, and closed."""

    SYNC0 = auto()
    SYNC1 = auto()
    SYNC2 = auto()
    # The handshake is complete, but there are no SIPs yet.
    READY = auto()
    OPEN = auto()
    CLOSED = auto()


# Stage after each SYNC packet. It does not depend on the stage before, so a client may
# repeat or skip packets.
STAGE_AFTER_SYNC: Final = {0: Stage.SYNC1, 1: Stage.SYNC2, 2: Stage.READY}


def in_handshake(stage: Stage, number: int) -> bool:
    """Return whether a packet's number belongs to the handshake at this stage.

    At the stage READY, a client that has lost the last answer may send SYNC0 or SYNC2
    again, but not SYNC1: its number also means OPEN.

    Parameters
    ----------
    stage : Stage
        Stage before the packet.
    number : int
        ID of the client's packet: 0 to 2 are SYNC0 to SYNC2.
    """
    return stage in (Stage.SYNC0, Stage.SYNC1, Stage.SYNC2) or (
        stage is Stage.READY and number in (P.SYNC0, P.SYNC2)
    )


def stage_after(stage: Stage, number: int) -> Stage:
    """Return the stage of a session after a client's packet.

    The function is for programs that only observe a session, such as packet recorders.
    See pioneer-protocol §3.

    Parameters
    ----------
    stage : Stage
        Stage before the packet.
    number : int
        ID of the client's packet.
    """
    if in_handshake(stage, number):
        return STAGE_AFTER_SYNC.get(number, stage)
    if number == C.OPEN:
        return Stage.OPEN
    return Stage.CLOSED if number == C.CLOSE else stage


__all__ = ["Stage", "in_handshake", "stage_after"]
