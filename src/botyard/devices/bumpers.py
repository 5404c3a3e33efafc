"""Bumper rings: from the sectors in which a body was touched to the segments that are pressed (UNS-005, PIO-076)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from botyard.engine.kernels.collide import SECTORS
from botyard.model.accessories import BumperSpec


class Bumpers(NamedTuple):
    """Pressed segments: bit i is segment i of the ring (see `BumperSpec` for their places)."""

    front: int = 0
    rear: int = 0

    def __bool__(self) -> bool:
        """Whether any segment is pressed."""
        return bool(self.front or self.rear)


NONE: Final = Bumpers()
_TURN: Final = 2.0 * math.pi / SECTORS


def pressed(spec: BumperSpec, contact: int) -> Bumpers:
    """The segments that a contact presses.

    Parameters
    ----------
    spec : BumperSpec
        The rings.
    contact : int
        Sectors of the body's frame that are touched, see `State.contact`.
    """
    if not contact or not (spec.front or spec.rear):  # nearly always, for every robot in every report
        return NONE
    front = rear = 0
    for k in range(SECTORS):
        if not contact >> k & 1:
            continue
        # angle from straight left, clockwise: the front ring takes the first half turn, the rear ring the second
        clockwise = (math.pi / 2 - (k + 0.5) * _TURN) % (2.0 * math.pi)
        share = clockwise / math.pi
        if share < 1.0:
            front |= 1 << int(share * spec.front) if spec.front else 0
        else:
            rear |= 1 << int((share - 1.0) * spec.rear) if spec.rear else 0
    return Bumpers(front, rear)
