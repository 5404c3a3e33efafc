"""Places of the wheels of a car-like drive."""

from __future__ import annotations

from botyard.model.kinematics import Drive, Kinematics

# These functions are for drawing only. They are not methods of `Kinematics`, because each
# change of its module makes it necessary to compile the kernels again.


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
