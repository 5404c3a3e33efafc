"""Description of a robot's gripper, a frozen dataclass in SI units."""

from __future__ import annotations

from dataclasses import dataclass, field

from botyard.errors import ModelError
from botyard.model.devices import DeviceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperSpec(DeviceSpec):
    """Description of a gripper with two paddles and a lift, mounted in front of the body.

    Attributes
    ----------
    reach : float
        Length of the paddles, m.
    opening : float
        Distance between the open paddles, m.
    thickness : float
        Thickness of a paddle, m.
    paddle_time, lift_time : float
        Time of a full travel of the paddles and of the lift, s.

    Raises
    ------
    ModelError
        A length or a time is not positive.
    """

    type: str = field(default="gripper", init=False)
    reach: float = 0.11
    opening: float = 0.22
    thickness: float = 0.015
    paddle_time: float = 1.0
    lift_time: float = 2.0

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        for name in ("reach", "opening", "thickness", "paddle_time", "lift_time"):
            # The negated comparison also refuses NaN.
            if not getattr(self, name) > 0.0:
                raise ModelError(
                    f"gripper: {name} must be positive, found {getattr(self, name)}"
                )
