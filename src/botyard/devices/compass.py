"""Compass: heading against map north (+y), clockwise, without error (UNS-010)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from botyard.model.devices import Device, DeviceSpec, Field, PioneerFields

if TYPE_CHECKING:
    from botyard.devices.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class CompassSpec(DeviceSpec):
    """Description of a compass, which has no parameters."""

    type: str = field(default="compass", init=False)


def bearing(th: float) -> float:
    """Return the compass heading of a robot.

    Parameters
    ----------
    th : float
        True heading in the frame of the world, rad, counter-clockwise from +x, which is
        east.

    Returns
    -------
    float
        Heading, rad in [0, 2π), clockwise from +y, which is north.
    """
    # A compass starts at north and turns clockwise; REP-103 starts at +x (east).
    return (math.pi / 2 - th) % (2.0 * math.pi)


def _read(_: CompassSpec, view: View) -> float:
    return bearing(view.robot_pose.th)


def _bits(_: CompassSpec, heading: float) -> dict[str, int]:
    """Return the compass field of the SIP: heading in units of 2°, 1 … 180 (pioneer-protocol §5).

    North is 180 instead of 0, because some clients take 0 for "no compass".
    """
    return {"compass": (round(math.degrees(heading) / 2.0) - 1) % 180 + 1}


COMPASS: Final = Device(
    name="compass",
    about="heading relative to north, clockwise",
    spec=CompassSpec,
    read=_read,
    fields=(Field("heading", "rad"),),
    rows=lambda heading: [(heading,)],
    pioneer=PioneerFields(report=_bits),
    on_page=False,
)
