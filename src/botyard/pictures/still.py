"""`Still`: a copy of what a picture shows of the world, as plain data that can be drawn later or in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Outline, Pose, transform_point
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene

if TYPE_CHECKING:
    from botyard.sim.simulation import Robot, Simulation

Array = NDArray[np.float64]
MAX_RINGS: Final = 1000
"""Most lasers and sonar rings whose beams are drawn; further robots are drawn without beams."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Appearance of all bodies of one model.

    Attributes
    ----------
    parts : tuple of outlines
        In the body's frame, m; the last one is the main body.
    color : str
        X11 colour name or ``#rrggbb``.
    drives : bool
        It is a robot: its heading is marked.
    is_box : bool
        It is a box of the map, drawn with the map.
    """

    parts: tuple[Outline, ...]
    color: str
    drives: bool = True
    is_box: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One robot or box.

    Attributes
    ----------
    looks : int
        Index in `Still.looks`.
    name : str
        Written beside a robot.
    parts : tuple of outlines
        Further parts, such as the paddles of a gripper.
    ghost : bool
        Not seen by sensors and without collisions: only the outline is drawn.
    """

    looks: int
    name: str
    parts: tuple[Outline, ...] = ()
    ghost: bool = False


@dataclass(frozen=True, slots=True)
class Beams:
    """Ranges of one laser, or of one transducer of a sonar ring.

    Attributes
    ----------
    figure : int
        Index of the robot in `Still.figures`.
    mount : Pose
        Pose of the sensor in the robot's frame, m, m, rad.
    first, step : float
        Bearing of the first beam and angle between beams, rad.
    ranges : (n,) float64 array
        Ranges, m.
    """

    figure: int
    mount: Pose
    first: float
    step: float
    ranges: Array


@dataclass(frozen=True, slots=True)
class Still:
    """The world at one moment.

    Attributes
    ----------
    scene : Scene
        The map; its boxes are among the figures.
    looks : tuple of Looks
        Appearances, by model.
    figures : tuple of Figure
        Robots and boxes.
    poses : (n, 3) float64 array
        Poses of the figures: m, m, rad.
    scans, sonar : tuple of Beams
        Beams of lasers and sonar transducers that have a subscriber.
    """

    scene: Scene
    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]
    poses: Array
    scans: tuple[Beams, ...]
    sonar: tuple[Beams, ...]


def take(sim: Simulation) -> Still:
    """Copy the world as it is now, with the readings of subscribed sensors. Call it between two steps."""
    state, rows = sim.snapshot.state, sim.snapshot.rows
    kinds: dict[int, int] = {}
    looks: list[Looks] = []

    def kind(of: RobotSpec) -> int:
        if id(of) not in kinds:
            kinds[id(of)] = len(looks)
            looks.append(Looks((*of.parts, of.outline), of.color, bool(of.drive)))
        return kinds[id(of)]

    names = [*sim.robots, *sim.box_names]
    at = [rows[name] for name in names]
    poses: Array = state.pose[at] if at else np.zeros((0, 3))
    unseen = (state.mask[at] == 0).tolist() if at else []
    robots = list(sim.robots.values())
    figures = [
        Figure(kind(r.spec), r.name, r.gripper.paddles if r.gripper else (), hidden and r.is_ghost)
        for r, hidden in zip(robots, unseen, strict=False)
    ]
    for box in sim.scene.boxes:
        figures.append(Figure(len(looks), ""))
        looks.append(Looks(box.outlines, box.color, drives=False, is_box=True))
    scans, sonar = _beams(robots)
    return Still(sim.scene, tuple(looks), tuple(figures), poses, scans, sonar)


def _beams(robots: list[Robot]) -> tuple[tuple[Beams, ...], tuple[Beams, ...]]:
    scans: list[Beams] = []
    sonar: list[Beams] = []
    left = MAX_RINGS
    for i, robot in enumerate(robots):
        for laser in robot.lasers:
            if laser.is_read and left > 0:
                left -= 1
                scan = laser.read()
                scans.append(Beams(i, scan.frame_pose, scan.angle_min, scan.angle_increment, scan.ranges.copy()))
        ring = robot.sonar
        if ring is not None and ring.is_read and left > 0:
            left -= 1
            ranges = ring.read().ranges.copy()
            sonar += [Beams(i, t.pose, 0.0, 0.0, ranges[k : k + 1]) for k, t in enumerate(ring.spec.transducers)]
    return tuple(scans), tuple(sonar)


def places(still: Still, beams: Beams) -> list[tuple[float, float]]:
    """Polygon of beams in the world, m: the sensor's place, and then the end of each beam."""
    body = Pose(*still.poses[beams.figure].tolist())
    x, y = transform_point(body, beams.mount.x, beams.mount.y)
    bearings = body.th + beams.mount.th + beams.first + beams.step * np.arange(len(beams.ranges))
    ends = np.stack([x + beams.ranges * np.cos(bearings), y + beams.ranges * np.sin(bearings)], axis=1)
    return [(x, y), *((px, py) for px, py in ends.tolist())]


__all__ = ["MAX_RINGS", "Beams", "Figure", "Looks", "Still", "places", "take"]
