"""`Still`: a copy of what a picture shows of the world, as plain data that can be drawn
later or in another process.
"""

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
"""Most lasers and sonar rings whose beams are drawn; further robots are drawn without
beams.
"""


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
    stalled : bool
        Its outline has another colour, and so it says beside its name.
    is_driven : bool
        A client commands it.
    """

    looks: int
    name: str
    parts: tuple[Outline, ...] = ()
    ghost: bool = False
    stalled: bool = False
    is_driven: bool = False


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
    range_max : float
        The range where nothing was found, m.
    ranges : (n,) float64 array
        Ranges, m.
    """

    figure: int
    mount: Pose
    first: float
    step: float
    range_max: float
    ranges: Array


@dataclass(frozen=True, slots=True)
class Still:
    """The world at one moment.

    Attributes
    ----------
    time : float
        Simulated time, s.
    scene : Scene
        The map; its boxes are among the figures.
    looks : tuple of Looks
        Appearances, by model.
    figures : tuple of Figure
        Robots and boxes.
    poses : (n, 3) float64 array
        Poses of the figures: m, m, rad.
    scans, sonar : tuple of Beams
        Beams of lasers and sonar transducers.
    """

    time: float
    scene: Scene
    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]
    poses: Array
    scans: tuple[Beams, ...]
    sonar: tuple[Beams, ...]


Scans = bool | tuple[str, ...]
"""Whose beams are drawn: of sensors that somebody reads, of none, or all sensors of
robots by name.
"""


def take(sim: Simulation, scans: Scans = True) -> Still:
    """Copy the world as it is now, with readings of sensors. Call it between two steps.

    Parameters
    ----------
    sim : Simulation
        The world. Nothing in it changes.
    scans : bool or tuple of str
        The sensors: those that somebody reads (True), or all of these robots, whose
        readings are taken now if nobody reads them.
    """
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
    stalled = state.stall[at].astype(bool).tolist() if at else []
    robots = list(sim.robots.values())
    figures = [
        Figure(
            kind(r.spec),
            r.name,
            r.gripper.paddles if r.gripper else (),
            hidden and r.is_ghost,
            stall,
            bool(r.clients),
        )
        for r, hidden, stall in zip(robots, unseen, stalled, strict=False)
    ]
    for box in sim.scene.boxes:
        figures.append(Figure(len(looks), ""))
        looks.append(Looks(box.outlines, box.color, drives=False, is_box=True))

    fans, sonar = _beams(robots, scans)
    return Still(sim.time, sim.scene, tuple(looks), tuple(figures), poses, fans, sonar)


def boxes_of(scene: Scene) -> Still:
    """A scene without robots, with its boxes where they begin."""
    looks = tuple(
        Looks(box.outlines, box.color, drives=False, is_box=True) for box in scene.boxes
    )
    poses = np.array([box.pose for box in scene.boxes], np.float64).reshape(-1, 3)
    return Still(
        0.0,
        scene,
        looks,
        tuple(Figure(k, "") for k in range(len(looks))),
        poses,
        (),
        (),
    )


def _beams(
    robots: list[Robot], scans: Scans
) -> tuple[tuple[Beams, ...], tuple[Beams, ...]]:
    fans: list[Beams] = []
    sonar: list[Beams] = []
    left = MAX_RINGS if scans else 0
    for i, robot in enumerate(robots):
        wanted = scans is not True and scans is not False and robot.name in scans
        for laser in robot.lasers:
            if left > 0 and (wanted or (scans is True and laser.is_read)):
                left -= 1
                scan = laser.read()
                fans.append(
                    Beams(
                        i,
                        scan.frame_pose,
                        scan.angle_min,
                        scan.angle_increment,
                        scan.range_max,
                        scan.ranges,
                    )
                )

        ring = robot.sonar
        if (
            ring is not None
            and left > 0
            and (wanted or (scans is True and ring.is_read))
        ):
            left -= 1
            echoes = ring.read()
            sonar += [
                Beams(i, t.pose, 0.0, 0.0, echoes.range_max, echoes.ranges[k : k + 1])
                for k, t in enumerate(ring.spec.transducers)
            ]

    return tuple(fans), tuple(sonar)


def ends(still: Still, beams: Beams) -> Array:
    """Places of beams in the world, (n + 1, 2), m: that of the sensor, and then the end
    of each beam.
    """
    body = Pose(*still.poses[beams.figure].tolist())
    x, y = transform_point(body, beams.mount.x, beams.mount.y)
    bearings = (
        body.th
        + beams.mount.th
        + beams.first
        + beams.step * np.arange(len(beams.ranges))
    )
    reach = np.where(np.isfinite(beams.ranges), beams.ranges, 0.0)
    found = np.empty((len(reach) + 1, 2))
    found[0] = x, y
    found[1:, 0] = x + reach * np.cos(bearings)
    found[1:, 1] = y + reach * np.sin(bearings)
    return found


__all__ = [
    "MAX_RINGS",
    "Beams",
    "Figure",
    "Looks",
    "Scans",
    "Still",
    "boxes_of",
    "ends",
    "take",
]
