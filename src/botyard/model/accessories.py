"""What a robot may carry besides range sensors: bumpers, a gripper, table-sensing infrared; frozen descriptions in SI units."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.errors import ModelError

MAX_BUMPERS = 7
"""Segments that the standard information packet has bits for, on each side (pioneer-protocol §5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BumperSpec:
    """Rings of contact switches.

    Segments of one ring share its half circle evenly. Front segment 0 is the leftmost one, and numbers grow clockwise seen from
    above; rear segment 0 is the rightmost one, and numbers go on clockwise.

    Attributes
    ----------
    front, rear : int
        Number of segments, 0 … 7.
    """

    front: int = 0
    rear: int = 0

    def __post_init__(self) -> None:
        for name, n in (("front", self.front), ("rear", self.rear)):
            if not 0 <= n <= MAX_BUMPERS:
                raise ModelError(f"bumpers: {name} must be 0 … {MAX_BUMPERS}, found {n}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperSpec:
    """A two-paddle gripper with a lift, in front of the body.

    Attributes
    ----------
    reach : float
        Length of the paddles, m.
    opening : float
        Distance between the open paddles, m.
    thickness : float
        Of a paddle, m.
    paddle_time, lift_time : float
        Time of a full travel, s.
    """

    reach: float = 0.11
    opening: float = 0.22
    thickness: float = 0.015
    paddle_time: float = 1.0
    lift_time: float = 2.0

    def __post_init__(self) -> None:
        for name in ("reach", "opening", "thickness", "paddle_time", "lift_time"):
            if not getattr(self, name) > 0.0:
                raise ModelError(f"gripper: {name} must be positive, found {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIrSpec:
    """Infrared sensors that look upwards and see table tops.

    Attributes
    ----------
    positions : tuple of (float, float)
        Of each sensor in the robot's frame, m; the left one first.
    in_io_packet : bool
        Newer robots report them in the I/O packet; older ones among the digital inputs of the SIP.
    """

    positions: tuple[tuple[float, float], ...] = ()
    in_io_packet: bool = False
