"""Places of the wheels of a car-like drive."""

from __future__ import annotations

from botyard.model.kinematics import Drive, Kinematics

# Kernels are made of the module of `Kinematics`; these functions are for drawing only.


def fixed_places(kinematics: Kinematics) -> tuple[tuple[float, float], ...]:
    """Return the place (x, y), m, of each wheel of the fixed axle; empty for other drives."""
    if not kinematics.steers:
        return ()
    return tuple((x, y) for _, x, y in kinematics.wheel_places)


def steered_places(kinematics: Kinematics) -> tuple[tuple[float, float], ...]:
    """Return the place (x, y), m, of each steered wheel, in the order of
    `Kinematics.wheel_angles`; empty for other drives.
    """
    axle = kinematics.steering
    if axle is None:
        return ()
    if kinematics.kind is Drive.TRICYCLE:
        return ((axle.wheelbase, 0.0),)
    return tuple(
        (axle.wheelbase, y) for y in (kinematics.half_track, -kinematics.half_track)
    )


__all__ = ["fixed_places", "steered_places"]
