"""Copy of the world at one moment as plain data (`Still`).

The copy can be drawn later or in another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import ANGLE, State
from botyard.geometry import Outline, Pose, transform_point
from botyard.model.floor import PheromoneField
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.pictures.wheels import wheel_shapes

if TYPE_CHECKING:
    from botyard.sim.simulation import Robot, Simulation

Array = NDArray[np.float64]
MAX_RINGS: Final = 1000
"""Largest number of lasers and sonar rings whose beams are drawn.

The beams of further sensors are not drawn.
"""


@dataclass(frozen=True, slots=True)
class Looks:
    """Appearance of all bodies of one model.

    Attributes
    ----------
    parts : tuple of outlines
        Outlines in the body's frame, m; the last one is the main body.
    color : str
        X11 colour name or ``#rrggbb``.
    drives : bool
        Whether bodies of the model can drive: their heading is marked.
    is_box : bool
        Whether the body is a box of the map, which is drawn below robots.
    """

    parts: tuple[Outline, ...]
    color: str
    drives: bool = True
    is_box: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One robot or box of a moment.

    Attributes
    ----------
    looks : int
        Index in `Still.looks`.
    name : str
        Name of a robot, which is drawn next to it; empty for a box.
    parts : tuple of outlines
        Parts that change during the run, such as the paddles of a gripper.
    marks : tuple of outlines
        Shapes on top of the body, such as steered wheels.
    ghost : bool
        Whether the robot is a ghost: sensors do not see it and it never collides. Only its
        outline is drawn.
    stalled : bool
        Whether the robot is blocked by an obstacle: its outline has another colour, and
        "stalled" is drawn at its name.
    is_driven : bool
        Whether a client commands it.
    """

    looks: int
    name: str
    parts: tuple[Outline, ...] = ()
    marks: tuple[Outline, ...] = ()
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
        Range of a beam that hit no object, m.
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
class FieldLevels:
    """Levels of a pheromone field.

    Attributes
    ----------
    field : PheromoneField
        Description of the field.
    levels : (rows, columns) float64 array
        Levels; row 0 is the lowest.
    """

    field: PheromoneField
    levels: Array


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
        Appearances; `Figure.looks` is an index into them.
    figures : tuple of Figure
        Robots, then boxes of the map.
    poses : (n, 3) float64 array
        Pose of each figure: m, m, rad.
    scans, sonar : tuple of Beams
        Beams of lasers and sonar transducers.
    fields : tuple of FieldLevels
        Pheromone fields of the floor.
    """

    time: float
    scene: Scene
    looks: tuple[Looks, ...]
    figures: tuple[Figure, ...]
    poses: Array
    scans: tuple[Beams, ...]
    sonar: tuple[Beams, ...]
    fields: tuple[FieldLevels, ...] = ()


Scans = bool | tuple[str, ...]
"""Sensors whose beams are drawn.

True: sensors with a subscriber; False: no sensors; names: all sensors of the robots
with these names.
"""


def take(sim: Simulation, scans: Scans = True) -> Still:
    """Return a copy of the current world with readings of sensors. Call it between two steps.

    Parameters
    ----------
    sim : Simulation
        The world. It does not change.
    scans : bool or tuple of str
        Sensors with a subscriber (True), no sensors (False), or names of robots. All
        sensors of named robots are read; those without a subscriber measure now.

    Returns
    -------
    Still
        Copy that later steps do not change.
    """
    state, rows = sim.snapshot.state, sim.snapshot.rows
    kinds: dict[int, int] = {}
    looks: list[Looks] = []

    def kind(of: RobotSpec) -> int:
        # Robots of one model share an appearance. The key is the identity of the model,
        # because comparing models would be slow.
        if id(of) not in kinds:
            kinds[id(of)] = len(looks)
            looks.append(Looks((*of.parts, of.outline), of.color, bool(of.drive)))

        return kinds[id(of)]

    names = [*sim.robots, *sim.core.box_names]
    at = [rows[name] for name in names]
    poses: Array = state.pose[at] if at else np.zeros((0, 3))

    # A mask of 0 hides a body from all sensors.
    unseen = (state.mask[at] == 0).tolist() if at else []
    stalled = state.stall[at].astype(bool).tolist() if at else []

    robots = list(sim.robots.values())
    figures = [
        Figure(
            kind(r.spec),
            r.name,
            r.gripper.paddles if r.gripper else (),
            wheel_shapes(r.spec.kinematics, _steering(state, rows[r.name])),
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
    fields = tuple(
        FieldLevels(one, sim.floor.levels(one.name))
        for one in sim.floor.description.fields
    )
    return Still(
        sim.time, sim.scene, tuple(looks), tuple(figures), poses, fans, sonar, fields
    )


def _steering(state: State, row: int) -> float:
    """Return the angle of a steered axle, rad; 0 for a body without one."""
    return float(state.steer[row, ANGLE]) if len(state.steer) else 0.0


def boxes_of(scene: Scene) -> Still:
    """Return the moment of a scene without robots, with its boxes at their initial poses.

    Parameters
    ----------
    scene : Scene
        The map.
    """
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
    """Return the beams of lasers, and the beams of sonar transducers.

    Parameters
    ----------
    robots : list of Robot
        Robots in the order of the figures.
    scans : bool or tuple of str
        See `take`.
    """
    fans: list[Beams] = []
    sonar: list[Beams] = []
    # Limit the number of sensors: to draw the beams of thousands would take seconds.
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
    """Return the sensor's position and the ends of its beams, (n + 1, 2), m.

    All are in the world frame; the sensor comes first.

    Parameters
    ----------
    still : Still
        Moment with the pose of the robot.
    beams : Beams
        Sensor and its ranges. A range that is not finite ends at the sensor.
    """
    body = Pose(*still.poses[beams.figure].tolist())
    x, y = transform_point(body, beams.mount.x, beams.mount.y)
    bearings = (
        body.th
        + beams.mount.th
        + beams.first
        + beams.step * np.arange(len(beams.ranges))
    )
    # A range of inf or NaN would give a pixel that cannot be drawn.
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
