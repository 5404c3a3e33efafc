"""Two-paddle gripper with a lift: mechanics, break beams, and the held body (UNS-001).

Each paddle closes until it meets the body between the paddles, or the other paddle. A
body between both is then held and carried along. Only bodies that cannot drive are
gripped. Two light beams cross the open gripper, the outer one near the tips, the inner
one near the robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from botyard.devices.devicetable import DeviceTable
from botyard.engine.layout import F8, I1, I8
from botyard.engine.tables import NOBODY, Column, Row, cell
from botyard.geometry import Outline, Pose
from botyard.model.accessories import GripperSpec
from botyard.model.beams import Bundle
from botyard.model.devices import Command, Device, Field, PioneerFields
from botyard.model.kinematics import Drive
from botyard.model.objects import Described
from botyard.model.obstacles import Visible
from botyard.model.readings import Action, GripperState
from botyard.model.robot import RobotSpec
from botyard.numerics import elementwise

if TYPE_CHECKING:
    from botyard.devices.ranging import RangeDevices
    from botyard.engine.simulation import Engine

STREAM: Final = 64
"""Random stream of the break beams, from which they draw nothing."""
INNER_BEAM: Final = 0.25
OUTER_BEAM: Final = 0.85
"""Positions of the break beams along the paddles, as fractions of their length."""
BEAM_TOLERANCE: Final = 1e-4
"""Difference of range and opening from which a beam counts as broken, m."""
TOUCH_TOLERANCE: Final = 1e-6
"""Distance from its goal within which a paddle has reached it, m."""
MAX_PAIRS_AT_ONCE: Final = 100_000
"""Highest number of pairs of closing grippers and bodies in one array operation.

It bounds the memory of the test.
"""


def _paddles(
    front: float, reach: float, thickness: float, left: float, right: float
) -> tuple[Outline, ...]:
    """Return the outlines of two paddles that start at `front`.

    Their inner faces are `left` and `right` m from the centre line.
    """
    x0, x1, t = front, front + reach, thickness
    return tuple(
        ((x0, y), (x1, y), (x1, y + t), (x0, y + t)) for y in (left, -right - t)
    )


def open_paddles(robot: RobotSpec) -> tuple[Outline, ...]:
    """Return the outlines that a robot's open gripper adds to its body, m.

    Return nothing without a gripper.
    """
    if robot.gripper is None:
        return ()
    half = robot.gripper.opening / 2.0
    return _paddles(
        robot.front, robot.gripper.reach, robot.gripper.thickness, half, half
    )


class Grippers(DeviceTable):
    """Grippers of all robots.

    Attributes
    ----------
    left, right : (n,) float64
        Distance of the inner face of each paddle from the centre line, m.
    left_goal, right_goal : (n,) float64
        Goals of the paddles, m.
    left_stop, right_stop : (n,) float64
        Positions at which paddles meet the body between them, m; 0: each other.
    lift, lift_goal : (n,) float64
        Height of the lift and its goal, 0 … 1.
    paddles_move, lift_moves : (n,) int8
        0 or 1: whether they moved in the last step.
    holding : (n,) int64
        Row of the held body, or `NOBODY`.
    front, reach, half, thickness : (n,) float64
        Start of the paddles, their length, half the opening, and their thickness, m.
    paddle_speed, lift_speed : (n,) float64
        m/s; 1/s.
    own : (n,) int64
        Number of polygons of the body without the gripper; the polygons of the paddles and
        of the held body follow.
    own_radius : (n,) float64
        Distance of the farthest corner of the body's own polygons, m.
    """

    name = "gripper"
    columns: ClassVar = {
        **{
            n: Column(np.float64)
            for n in (
                "left",
                "right",
                "left_goal",
                "right_goal",
                "left_stop",
                "right_stop",
            )
        },
        **{n: Column(np.float64, low=0.0, high=1.0) for n in ("lift", "lift_goal")},
        **{
            n: Column(np.float64, saved=False)
            for n in (
                "front",
                "reach",
                "half",
                "thickness",
                "paddle_speed",
                "lift_speed",
            )
        },
        **{n: Column(np.int8, low=0, high=1) for n in ("paddles_move", "lift_moves")},
        "holding": Column(np.int64, start=NOBODY, refers=True),
        "own": Column(np.int64, saved=False),
        "own_radius": Column(np.float64, saved=False),
    }
    left: F8
    right: F8
    left_goal: F8
    right_goal: F8
    left_stop: F8
    right_stop: F8
    lift: F8
    lift_goal: F8
    front: F8
    reach: F8
    half: F8
    thickness: F8
    paddle_speed: F8
    lift_speed: F8
    own_radius: F8
    paddles_move: I1
    lift_moves: I1
    holding: I8
    own: I8

    # -- Actions in a step

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return the keys of the rows: the name of each robot with a gripper."""
        return {name for name, spec in robots.items() if spec.gripper is not None}

    def act(self, engine: Engine, dt: float) -> None:
        """Move all paddles and lifts by `dt` s, and grip and release bodies."""
        if not len(self):
            return
        # Before any motion: a lost body must not block the paddles.
        self._release_lost(engine)
        moving = (self.left_goal != self.left) | (self.right_goal != self.right)
        moving |= (
            (self.lift_goal != self.lift)
            | (self.paddles_move != 0)
            | (self.lift_moves != 0)
        )
        rows = np.flatnonzero(moving)
        if len(rows):
            self._advance(engine, rows, dt)

    def _release_lost(self, engine: Engine) -> None:
        """Empty the grippers whose held body was detached or removed by other code."""
        held = self.holding
        held[(held != NOBODY) & (engine.state.carrier[held] != self.body)] = NOBODY

    def _advance(self, engine: Engine, rows: I8, dt: float) -> None:
        closing = (self.left_goal[rows] < self.left[rows]) | (
            self.right_goal[rows] < self.right[rows]
        )
        opening = (self.left_goal[rows] > self.left[rows]) | (
            self.right_goal[rows] > self.right[rows]
        )
        for row in rows[opening & (self.holding[rows] != NOBODY)].tolist():
            # Opening paddles release the body before they move.
            engine.detach(engine.specs[self.holding[row]].name)
            self.holding[row] = NOBODY

        empty = rows[self.holding[rows] == NOBODY]
        self.left_stop[empty] = self.right_stop[empty] = 0.0
        found = self._find(engine, rows[closing & (self.holding[rows] == NOBODY)])
        moved = np.zeros(len(rows), np.bool_)
        way = self.paddle_speed[rows] * dt
        for at, goal, stop in (
            (self.left, self.left_goal, self.left_stop),
            (self.right, self.right_goal, self.right_stop),
        ):
            step = np.clip(np.maximum(goal[rows], stop[rows]) - at[rows], -way, way)
            at[rows] += step
            moved |= step != 0.0

        self.paddles_move[rows] = moved
        self._draw(engine, rows[moved])
        self._grip(engine, found)
        way = self.lift_speed[rows] * dt
        step = np.clip(self.lift_goal[rows] - self.lift[rows], -way, way)
        self.lift[rows] += step
        self.lift_moves[rows] = np.abs(step) > 1e-9

    @staticmethod
    def _touches(row: int, at: F8, goal: F8, stop: F8) -> bool:
        """Return whether a paddle presses on a body."""
        return bool(goal[row] <= stop[row] and at[row] <= stop[row] + TOUCH_TOLERANCE)

    def _grip(self, engine: Engine, found: Sequence[tuple[int, int]]) -> None:
        """Grip the bodies that both paddles press on.

        The first of several grippers gets the body.
        """
        gripped: dict[int, int] = {}
        for row, thing in found:
            if (
                thing not in gripped
                and self._touches(row, self.left, self.left_goal, self.left_stop)
                and self._touches(row, self.right, self.right_goal, self.right_stop)
            ):
                gripped[thing] = int(self.body[row])
                self.holding[row] = thing

        if gripped:
            engine.attach_many([(body, thing) for thing, body in gripped.items()])

    def _find(self, engine: Engine, closing: I8) -> list[tuple[int, int]]:
        """Return pairs (gripper row, body row) of bodies between closing paddles.

        Sets the positions at which the paddles meet them.
        """
        found: list[tuple[int, int]] = []
        if not len(closing):
            return found
        state, bodies = engine.state, engine.bodies
        # A carried robot cannot carry.
        closing = closing[state.carrier[self.body[closing]] == NOBODY]
        solid = (state.mask & int(Visible.OBSTACLE | Visible.PUSHED)) != 0
        # Bodies with a drive cannot be gripped, and a carried body has a holder
        # already.
        free = (state.drive == int(Drive.NONE)) & solid & (state.carrier == NOBODY)
        # A body that carries another one cannot be gripped.
        free[state.carrier[state.carrier != NOBODY]] = False
        things = np.flatnonzero(free)
        if not len(closing):
            return found
        # Parts of bounded size: all pairs at once could fill the memory.
        for part in np.array_split(
            closing, -(-len(closing) * max(len(things), 1) // MAX_PAIRS_AT_ONCE)
        ):
            at = state.pose[self.body[part], :2]
            far = elementwise.hypot(
                *(state.pose[things, :2][None] - at[:, None]).transpose(2, 0, 1)
            )
            near = (
                far
                < (self.front[part] + self.reach[part])[:, None]
                + bodies.radius[things][None]
            )
            near &= things[None] != self.body[part][:, None]
            g, k = np.nonzero(near)
            if len(g):
                found += self._filter_pairs(engine, part[g], things[k])

        rank = np.empty(len(bodies.order), np.int64)
        rank[bodies.order] = np.arange(len(rank))
        # In the order of motion, so that ties are decided equally in every run.
        return sorted(found, key=lambda pair: int(rank[self.body[pair[0]]]))

    def _filter_pairs(
        self, engine: Engine, rows: I8, things: I8
    ) -> list[tuple[int, int]]:
        """Filter pairs of grippers and bodies by bodies between the paddles.

        Each gripper gets the body nearest to its robot.
        """
        low, high = extents(engine, self.body[rows], things)
        inside = (high[:, 0] > self.front[rows]) & (
            low[:, 0] < self.front[rows] + self.reach[rows]
        )
        inside &= (low[:, 1] >= -self.right[rows] - TOUCH_TOLERANCE) & (
            high[:, 1] <= self.left[rows] + TOUCH_TOLERANCE
        )
        nearest: dict[int, tuple[float, str, int, int]] = {}
        for k in np.flatnonzero(inside).tolist():
            one = (float(low[k, 0]), engine.specs[things[k]].name, k, int(things[k]))
            # The name decides between equally near bodies, independent of the order of
            # rows.
            nearest[int(rows[k])] = min(nearest.get(int(rows[k]), one), one)

        for row, (_, _, k, _) in nearest.items():
            self.right_stop[row], self.left_stop[row] = (
                max(-float(low[k, 1]), 0.0),
                max(float(high[k, 1]), 0.0),
            )

        return [(row, thing) for row, (_, _, _, thing) in nearest.items()]

    # -- Outlines

    def _draw(self, engine: Engine, rows: I8) -> None:
        """Write the positions of the paddles into the outlines of their robots."""
        if not len(rows):
            return
        bodies, at = engine.bodies, self.body[rows]
        first = bodies.vert_start[bodies.part_start[at] + self.own[rows]]
        thick, left, right = self.thickness[rows], self.left[rows], self.right[rows]
        for k, y in enumerate(
            (
                left,
                left,
                left + thick,
                left + thick,
                -right - thick,
                -right - thick,
                -right,
                -right,
            )
        ):
            bodies.verts[first + k, 1] = y

        tip = self.front[rows] + self.reach[rows]
        radius = np.maximum(
            self.own_radius[rows],
            elementwise.hypot(tip, np.maximum(left, right) + thick),
        )
        starts = bodies.part_start
        # A carried body may extend farther: its robot keeps its radius.
        alone = starts[at + 1] - starts[at] == self.own[rows] + 2
        bodies.radius[at[alone]] = radius[alone]
        engine.redrawn(at)

    def restored(self, engine: Engine) -> None:
        """Rebuild all outlines from the columns."""
        columns = (
            self.body,
            self.own,
            self.front,
            self.reach,
            self.thickness,
            self.left,
            self.right,
        )
        outlines = {}
        for body, own, *paddles in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            outlines[body] = (*engine.own_outline(body)[:own], *_paddles(*paddles))

        if outlines:
            engine.reshape_many(outlines)


def extents(engine: Engine, carriers: I8, things: I8) -> tuple[F8, F8]:
    """Return least and greatest x and y of bodies `things` in the frames of `carriers`.

    Both are rows, (k,) int64; the results are two arrays (k, 2), m.
    """
    bodies, pose = engine.bodies, engine.state.pose
    # All corners of all bodies in one array, as segments for `reduceat`.
    begin = bodies.vert_start[bodies.part_start[things]]
    sizes = bodies.vert_start[bodies.part_start[things + 1]] - begin
    starts = np.cumsum(sizes) - sizes
    pair = np.repeat(np.arange(len(things)), sizes)
    corners = bodies.verts[np.repeat(begin - starts, sizes) + np.arange(len(pair))]
    away = pose[things] - pose[carriers]
    turn, back = away[:, 2][pair], pose[carriers, 2]
    c, s = elementwise.cosine_sine(turn)
    cb, sb = elementwise.cosine_sine(back)
    x = (
        (cb * away[:, 0] + sb * away[:, 1])[pair]
        + c * corners[:, 0]
        - s * corners[:, 1]
    )
    y = (
        (cb * away[:, 1] - sb * away[:, 0])[pair]
        + s * corners[:, 0]
        + c * corners[:, 1]
    )
    both = np.column_stack([x, y])
    return np.minimum.reduceat(both, starts), np.maximum.reduceat(both, starts)


class Gripper(Row[Grippers]):
    """Gripper of one robot.

    Parameters
    ----------
    engine : Engine
        Engine that has the robot.
    name : str
        Name of the robot's body.
    robot : RobotSpec
        Robot model; it must have a gripper.
    ranging : RangeDevices
        Range sensors that cast the break beams.
    """

    def __init__(
        self, engine: Engine, name: str, robot: RobotSpec, ranging: RangeDevices
    ) -> None:
        assert robot.gripper is not None
        self.spec: GripperSpec = robot.gripper
        self.name = name
        self.front: float = robot.front
        self._engine = engine
        self._ranging = ranging
        body, half = engine.rows[name], self.spec.opening / 2.0
        parts = engine.outline(body)
        super().__init__(
            engine.table(Grippers),
            body,
            name,
            left=half,
            right=half,
            left_goal=half,
            right_goal=half,
            half=half,
            front=robot.front,
            reach=self.spec.reach,
            thickness=self.spec.thickness,
            # The model gives times for full strokes.
            paddle_speed=half / self.spec.paddle_time,
            lift_speed=1.0 / self.spec.lift_time,
            own=len(parts),
            own_radius=float(engine.bodies.radius[body]),
        )
        # The paddles are parts of the outline: they collide, and sensors see them.
        engine.reshape(name, (*parts, *self.paddles))
        self._key = (name, "gripper", 0)
        ranging.configure(
            self._key,
            name,
            STREAM,
            Visible.OBSTACLE | Visible.PUSHED,
            [self._beam(INNER_BEAM), self._beam(OUTER_BEAM)],
        )

    def _beam(self, share: float) -> Bundle:
        half = self.spec.opening / 2.0
        # The beam starts at the left paddle's open position and points right.
        mount = Pose(self.front + share * self.spec.reach, half, -math.pi / 2)
        return Bundle(mount=mount, r_max=self.spec.opening)

    left: float = cell(float)
    right: float = cell(float)
    lift: float = cell(float)
    _left_goal = cell(float, "left_goal")
    _right_goal = cell(float, "right_goal")
    _lift_goal = cell(float, "lift_goal")

    @property
    def paddles(self) -> tuple[Outline, ...]:
        """Present outlines of the paddles, left and right, in the robot frame, m."""
        return _paddles(
            self.front, self.spec.reach, self.spec.thickness, self.left, self.right
        )

    @property
    def parts(self) -> tuple[Outline, ...]:
        """Outline of the robot with its paddles and the held body, m."""
        return self._engine.outline(int(self.table.body[self.number]))

    @property
    def holding(self) -> str | None:
        """Name of the held body; None if the gripper is empty."""
        held = int(self.table.holding[self.number])
        return None if held == NOBODY else self._engine.specs[held].name

    # -- Commands

    def act(self, action: Action) -> None:
        """Start an action: set the goals of paddles and lift."""
        half = self.spec.opening / 2.0
        if action in (Action.OPEN, Action.DEPLOY):
            self._left_goal = self._right_goal = half
        if action in (Action.CLOSE, Action.STORE):
            self._left_goal = self._right_goal = 0.0
        if action in (Action.STOP, Action.HALT):
            # Stopping means that the present positions are the goals.
            self._left_goal, self._right_goal = self.left, self.right
        if action in (Action.LIFT_UP, Action.STORE):
            self._lift_goal = 1.0
        if action in (Action.LIFT_DOWN, Action.DEPLOY):
            self._lift_goal = 0.0
        if action in (Action.LIFT_STOP, Action.HALT):
            self._lift_goal = self.lift

    def carry(self, seconds: float) -> None:
        """Move the lift for a time, s: up if it is positive, down if it is negative."""
        self._lift_goal = min(max(self.lift + seconds / self.spec.lift_time, 0.0), 1.0)

    def move_to(
        self,
        left: float | None = None,
        right: float | None = None,
        lift: float | None = None,
    ) -> None:
        """Move the paddles, m from the centre line, and the lift, 0 … 1.

        None leaves a motion unchanged.
        """
        half = self.spec.opening / 2.0
        if left is not None:
            self._left_goal = min(max(left, 0.0), half)
        if right is not None:
            self._right_goal = min(max(right, 0.0), half)
        if lift is not None:
            self._lift_goal = min(max(lift, 0.0), 1.0)

    @property
    def positions(self) -> tuple[float, float, float]:
        """Positions of both paddles, m from the centre line, and of the lift, 0 … 1."""
        return self.left, self.right, self.lift

    # -- Switches

    def state(self) -> GripperState:
        """Return the present state of the switches and break beams."""
        table, row, engine, half = (
            self.table,
            self.number,
            self._engine,
            self.spec.opening / 2.0,
        )
        left, right, lift = self.positions
        clear = self._ranging.read(engine, self._key).ranges
        beams = [bool(r < self.spec.opening - BEAM_TOLERANCE) for r in clear]
        held = int(table.holding[row])
        # The held body is a part of the robot, whose own beams do not see it.
        if held != NOBODY and engine.state.carrier[held] == table.body[row]:
            low, high = extents(engine, table.body[row : row + 1], np.array([held]))
            for i, share in enumerate((INNER_BEAM, OUTER_BEAM)):
                beams[i] |= bool(
                    low[0, 0] <= self.front + share * self.spec.reach <= high[0, 0]
                )

        left_touches = table._touches(row, table.left, table.left_goal, table.left_stop)
        right_touches = table._touches(
            row, table.right, table.right_goal, table.right_stop
        )
        return GripperState(
            open=left >= half - TOUCH_TOLERANCE and right >= half - TOUCH_TOLERANCE,
            # Closed means that both paddles press, on a body or on each other.
            closed=left_touches and right_touches,
            left_touches=left_touches,
            right_touches=right_touches,
            paddles_move=bool(table.paddles_move[row]),
            lift_moves=bool(table.lift_moves[row]),
            lift_up=lift >= 1.0 - 1e-9,
            lift_down=lift <= 1e-9,
            inner_beam=beams[0],
            outer_beam=beams[1],
        )


def _travel(spec: GripperSpec) -> tuple[float, float]:
    """Return the range of a paddle, m."""
    return 0.0, spec.opening / 2.0


GRIPPER: Final = Device(
    name="gripper",
    part="gripper",
    about="switches of the gripper",
    spec=GripperSpec,
    read=lambda _spec, view: view.part_of_robot.state(),
    fields=tuple(Field(name, kind=bool) for name in GripperState._fields),
    rows=lambda state: [tuple(map(bool, state))],
    table=Grippers,
    commands=(
        Command(
            name="left",
            limits=_travel,
            columns=lambda x: {"left_goal": x},
            unit="m",
            about="left paddle, from the centre line",
        ),
        Command(
            name="right",
            limits=_travel,
            columns=lambda x: {"right_goal": x},
            unit="m",
            about="right paddle, from the centre line",
        ),
        Command(
            name="lift",
            limits=lambda _: (0.0, 1.0),
            columns=lambda x: {"lift_goal": x},
            about="lift, 0 … 1",
        ),
    ),
    pioneer=PioneerFields(config=lambda _: {"has_gripper": 1}),
    on_page=False,
)


__all__ = ["GRIPPER", "Gripper", "Grippers", "extents", "open_paddles"]
