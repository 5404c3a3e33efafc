"""Rings of bumpers: which segments are pressed by contacts with a robot's body."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botyard.model.devices import (
    AriaKey,
    Device,
    DeviceSpec,
    Field,
    PioneerFields,
    RosMessage,
    parameter,
)
from botyard.model.rosmessages import OWN

if TYPE_CHECKING:
    from botyard.devices.view import View

MAX_BUMPERS: Final = 7
"""Highest number of segments at each end.

The standard information packet has bits for seven (pioneer-protocol §5).
"""
SECTORS: Final = 64
"""Number of sectors of a body's outline in which contacts are reported.

The sectors are the bits of `View.contact`.
"""
_ARIA: Final = "Accessories the robot has"


@dataclass(frozen=True, slots=True, kw_only=True)
class BumperSpec(DeviceSpec):
    """Rings of contact switches.

    Segments of a ring share its half circle evenly. Front segment 0 is the leftmost
    one, and numbers grow clockwise seen from above. Rear segment 0 is the rightmost
    one, and numbers also grow clockwise.

    Attributes
    ----------
    front, rear : int
        Number of segments, 0 … 7.
    """

    type: str = field(default="bumpers", init=False)
    front: int = parameter(0, high=MAX_BUMPERS, low=0)
    rear: int = parameter(0, high=MAX_BUMPERS, low=0)

    @property
    def is_empty(self) -> bool:
        """Whether the rings have no segment."""
        return not (self.front or self.rear)

    @property
    def feels(self) -> bool:
        """Whether the rings need the contact sectors (`State.contact`), which the engine then
        computes.
        """
        return not self.is_empty


class Bumpers(NamedTuple):
    """Pressed segments: bit i is segment i of the ring (see `BumperSpec`).

    Attributes
    ----------
    front, rear : int
        Segments of the ring at each end, as bits.
    """

    front: int = 0
    rear: int = 0

    def __bool__(self) -> bool:
        """Return whether any segment is pressed."""
        return bool(self.front or self.rear)


NONE: Final = Bumpers()
"""No pressed segment."""
_TURN: Final = 2.0 * math.pi / SECTORS


def pressed(spec: BumperSpec, contact: int) -> Bumpers:
    """Return the bumper segments that contacts press.

    Parameters
    ----------
    spec : BumperSpec
        Rings of the robot.
    contact : int
        Touched sectors in the body frame, see `State.contact`.

    Returns
    -------
    Bumpers
        Pressed segments of both rings.
    """
    # Fast path, taken by nearly every robot in every report.
    if not contact or spec.is_empty:
        return NONE

    front = rear = 0
    # A contact is rare and sets only a few of the 64 sectors, so that a plain loop is
    # fast enough.
    for k in range(SECTORS):
        if not contact >> k & 1:
            continue
        # The angle starts at the left and grows clockwise: the front ring takes the
        # first half turn, the rear ring the second.
        clockwise = (math.pi / 2 - (k + 0.5) * _TURN) % (2.0 * math.pi)
        share = clockwise / math.pi
        if share < 1.0:
            # A robot may have a ring at one end only.
            front |= 1 << int(share * spec.front) if spec.front else 0
        else:
            rear |= 1 << int((share - 1.0) * spec.rear) if spec.rear else 0

    return Bumpers(front, rear)


def _read(spec: BumperSpec, view: View) -> Bumpers:
    return pressed(spec, view.contact)


def _message(spec: BumperSpec, found: Bumpers) -> dict[str, Any]:
    return {
        "front_bumpers": [bool(found.front >> i & 1) for i in range(spec.front)],
        "rear_bumpers": [bool(found.rear >> i & 1) for i in range(spec.rear)],
    }


def _bits(_: BumperSpec, found: Bumpers) -> dict[str, int]:
    """Return pressed segments as bits of the SIP: rear ones from bit 1, front ones from bit 9.

    See pioneer-protocol §5.
    """
    # Bits 0 and 8 are the stalls of the wheels.
    return {"stall_bumpers": (found.rear & 0x7F) << 1 | (found.front & 0x7F) << 9}


BUMPERS: Final = Device(
    name="bumpers",
    about="pressed bumper segments",
    spec=BumperSpec,
    read=_read,
    fields=(Field("front", "bits", int), Field("rear", "bits", int)),
    rows=lambda found: [tuple(found)],
    ros=RosMessage(
        topic="bumper_state",
        type_name="rosaria/BumperState",
        fields=_message,
        definitions={
            "rosaria/BumperState": "std_msgs/Header header\nbool[] "
            "front_bumpers\nbool[] rear_bumpers",
        },
        profiles=(*OWN, "rosaria"),
    ),
    pioneer=PioneerFields(
        report=_bits,
        config=lambda spec: {"front_bumpers": spec.front, "rear_bumpers": spec.rear},
        is_by_touch=True,
    ),
    aria=(
        AriaKey("front", _ARIA, "NumFrontBumpers", "FrontBumpers", 5.0),
        AriaKey("rear", _ARIA, "NumRearBumpers", "RearBumpers", 5.0),
    ),
)
