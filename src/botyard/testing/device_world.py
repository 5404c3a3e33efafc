"""World in which device kinds are checked: a room with two moving robots."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from botyard.devices.devicereader import DeviceReader
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.devices import (
    DeviceSpec,
)
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import GeoReference, Place, Scene
from botyard.sim.simulation import Robot, Simulation

STEPS: Final = 8
"""Default number of steps of each run."""


def _room() -> Scene:
    """Return a room of 10 m × 10 m with a wall and marked, coloured objects.

    It has a position on Earth, a beacon that only fiducial sensors detect, and an anchor for
    ranging by radio.
    """
    walls = [
        (-5, -5, 5, -5),
        (5, -5, 5, 5),
        (5, 5, -5, 5),
        (-5, 5, -5, -5),
        # An inner wall that hides one of the objects.
        (2.5, -2.0, 2.5, -1.0),
    ]

    def thing(
        name: str, x: float, y: float, mark: int, color: str, **returns: Any
    ) -> BoxObject:
        made = Returns(fiducial=mark, **returns)
        return BoxObject(
            name=name,
            pose=Pose(x, y, 0.3),
            length=0.4,
            width=0.4,
            color=color,
            returns=made,
        )

    boxes = (
        thing("near", 2.0, 0.6, 7, "red"),
        thing("behind the wall", 3.5, -2.2, 8, "blue"),
        thing("beacon", -2.0, 1.0, 9, "green", obstacle=False, laser=0, sonar=False),
    )
    where = GeoReference(48.1, 11.5, 520.0)
    anchor = Place(kind="UwbAnchor", name="anchor", pose=Pose(-4.0, 4.0))
    return Scene(
        segments=np.array(walls, np.float64),
        boxes=boxes,
        places=(anchor,),
        georeference=where,
    )


def device_world(
    spec: DeviceSpec, scene: Scene, **options: Any
) -> tuple[Simulation, Robot]:
    """Return a world with two moving robots.

    One has the device and drives in a circle; the other has none and drives into a
    wall.

    Parameters
    ----------
    spec : DeviceSpec
        Device of the robot ``a``.
    scene : Scene
        Map of the world.
    **options : object
        Further options of `Simulation`.

    Returns
    -------
    tuple of (Simulation, Robot)
        World before its first step, and the robot with the device. The seed is fixed.
    """
    sim = Simulation(scene, seed=5, **options)
    # A heading that is not a multiple of 90°, so that swapped axes show.
    robot = sim.add_robot(find_robot("p3dx").fitted(spec), "a", pose=(0.0, 0.0, 0.1))
    # A second row in all columns finds devices that read the state of row 0.
    other = sim.add_robot("p3dx", "b", pose=(-3.0, -3.0, math.pi))
    robot.command(v=0.3, w=0.4)
    other.command(v=0.5)
    return sim, robot


def device_of(robot: Robot, spec: DeviceSpec) -> DeviceReader[Any]:
    """Return the device of the robot under test.

    Parameters
    ----------
    robot : Robot
        Robot from `device_world`.
    spec : DeviceSpec
        Device with which the robot was made.
    """
    return robot.devices[spec.type]


__all__ = ["STEPS", "device_of", "device_world"]
