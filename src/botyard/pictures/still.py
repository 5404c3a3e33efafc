"""The world at one moment, as far as a picture shows it: plain data, which can be drawn while the world goes on, and elsewhere."""

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
"""Beams of so many lasers and sonar rings are drawn; of the robots that come after, only the bodies."""


@dataclass(frozen=True, slots=True)
class Looks:
    """What things of one kind look like.

    Attributes
    ----------
    parts : tuple of outlines
        In the thing's frame, m; the last one is its body.
    color : str
        X11 colour name or ``#rrggbb``.
    drives : bool
        It is a robot: its heading is marked.
    is_box : bool
        It is a thing of the map, drawn with the map.
    """

    parts: tuple[Outline, ...]
    color: str
    drives: bool = True
    is_box: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A robot or a thing.

    Attributes
    ----------
    looks : int
        Which of `Still.looks`.
    name : str
        Written beside a robot.
    parts : tuple of outlines
        What else belongs to its outline: paddles of a gripper.
    ghost : bool
        Nobody sees or feels it: only its contour is drawn.
    """

    looks: int
    name: str
    parts: tuple[Outline, ...] = ()
    ghost: bool = False


@dataclass(frozen=True, slots=True)
class Beams:
    """Readings of a laser or of a transducer of a sonar ring.

    Attributes
    ----------
    figure : int
        Whose: which of `Still.figures`.
    mount : Pose
        Where it sits, in the robot's frame.
    first, step : float
        Bearing of the first beam and spacing, rad.
    ranges : (n,) float64 array
        m.
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
        Kinds of figures.
    figures : tuple of Figure
        Robots and boxes.
    poses : (n, 3) float64 array
        Where each is: m, m, rad.
    scans, sonar : tuple of Beams
        Of the lasers and transducers that somebody reads.
    """

    scene: Scene
    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]
    poses: Array
    scans: tuple[Beams, ...]
    sonar: tuple[Beams, ...]


def take(sim: Simulation) -> Still:
    """The world as it is now, with the readings of sensors that somebody reads. Call it between two steps."""
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
    room = MAX_RINGS
    for i, robot in enumerate(robots):
        for laser in robot.lasers:
            if laser.is_read and room > 0:
                room -= 1
                scan = laser.read()
                scans.append(Beams(i, scan.frame_pose, scan.angle_min, scan.angle_increment, scan.ranges.copy()))
        ring = robot.sonar
        if ring is not None and ring.is_read and room > 0:
            room -= 1
            ranges = ring.read().ranges.copy()
            sonar += [Beams(i, t.pose, 0.0, 0.0, ranges[k : k + 1]) for k, t in enumerate(ring.spec.transducers)]
    return tuple(scans), tuple(sonar)


def places(still: Still, beams: Beams) -> list[tuple[float, float]]:
    """Where beams begin, and where each of them ends, in the world, m."""
    body = Pose(*still.poses[beams.figure].tolist())
    x, y = transform_point(body, beams.mount.x, beams.mount.y)
    bearings = body.th + beams.mount.th + beams.first + beams.step * np.arange(len(beams.ranges))
    ends = np.stack([x + beams.ranges * np.cos(bearings), y + beams.ranges * np.sin(bearings)], axis=1)
    return [(x, y), *((px, py) for px, py in ends.tolist())]


__all__ = ["MAX_RINGS", "Beams", "Figure", "Looks", "Still", "places", "take"]
