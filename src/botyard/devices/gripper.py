"""A two-paddle gripper with a lift: its mechanics, its break beams, and the body that
it holds (UNS-001).

Paddles close until each meets the thing between them, which is then held and carried
along, or until they meet each other. Only bodies that cannot drive are gripped. Two
light beams cross the open gripper, the outer near the tips, the inner near the body.
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
"""Random stream of the break beams (they draw nothing from it)."""
INNER_BEAM: Final = 0.25
OUTER_BEAM: Final = 0.85
"""Positions of the break beams along the paddles, as shares of their length."""
BEAM_TOLERANCE: Final = 1e-4
"""A beam whose range is this much shorter than the opening is broken, m."""
TOUCH_TOLERANCE: Final = 1e-6
"""Paddles within this distance of their goal have reached it, m."""
MAX_PAIRS_AT_ONCE: Final = 100_000
"""Pairs of closing grippers and bodies that are tested in one array operation: bounds
its memory.
"""


def _paddles(
    front: float, reach: float, thickness: float, left: float, right: float
) -> tuple[Outline, ...]:
    """Outlines of two paddles that begin at `front` and whose inner faces are `left`
    and `right` m from the middle line.
    """
    x0, x1, t = front, front + reach, thickness
    return tuple(
        ((x0, y), (x1, y), (x1, y + t), (x0, y + t)) for y in (left, -right - t)
    )


def open_paddles(robot: RobotSpec) -> tuple[Outline, ...]:
    """The outlines that a robot's open gripper adds to its body, m; nothing without a
    gripper.
    """
    if robot.gripper is None:
        return ()
    half = robot.gripper.opening / 2.0
    return _paddles(
        robot.front, robot.gripper.reach, robot.gripper.thickness, half, half
    )


class Grippers(DeviceTable):
    """The grippers of all robots.

    Attributes
    ----------
    left, right : (n,) float64
        Distance of the inner face of each paddle from the middle line, m.
    left_goal, right_goal : (n,) float64
        Where they are to go, m.
    left_stop, right_stop : (n,) float64
        Where they meet what is between them, m; 0: each other.
    lift, lift_goal : (n,) float64
        Height of the lift and where it is to go, 0 … 1.
    paddles_move, lift_moves : (n,) int8
        0 or 1: in motion in the last step.
    holding : (n,) int64
        Row of the body that it holds, or `NOBODY`.
    front, reach, half, thickness : (n,) float64
        Where the paddles begin, their length, half the opening, and their thickness, m.
    paddle_speed, lift_speed : (n,) float64
        m/s; 1/s.
    own : (n,) int64
        Polygons of the body without the gripper; those of the paddles come next, then
        those of what is held.
    own_radius : (n,) float64
        Distance of the farthest corner of those, m.
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

    # -- what happens in a step

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """One for each robot with a gripper."""
        return {name for name, spec in robots.items() if spec.gripper is not None}

    def act(self, engine: Engine, dt: float) -> None:
        """Advance all grippers by `dt` s: move paddles and lifts, grip and release
        bodies.
        """
        if not len(self):
            return
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
        """Empty the grippers whose held body was detached or removed by somebody else."""
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
        """Whether a paddle presses on a body."""
        return bool(goal[row] <= stop[row] and at[row] <= stop[row] + TOUCH_TOLERANCE)

    def _grip(self, engine: Engine, found: Sequence[tuple[int, int]]) -> None:
        """Grip the bodies that both paddles press on; of several grippers at one body
        the first gets it.
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
        """Pairs (gripper row, body row) of bodies between closing paddles; sets where
        the paddles will meet them.
        """
        found: list[tuple[int, int]] = []
        if not len(closing):
            return found
        state, bodies = engine.state, engine.bodies
        closing = closing[
            state.carrier[self.body[closing]] == NOBODY
        ]  # a carried robot cannot carry
        solid = (state.mask & int(Visible.OBSTACLE | Visible.PUSHED)) != 0
        free = (state.drive == int(Drive.NONE)) & solid & (state.carrier == NOBODY)
        free[state.carrier[state.carrier != NOBODY]] = (
            # a body that carries another one cannot be gripped
            False
        )
        things = np.flatnonzero(free)
        if not len(closing):
            return found
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
                found += self._between(engine, part[g], things[k])

        rank = np.empty(len(bodies.order), np.int64)
        rank[bodies.order] = np.arange(len(rank))
        return sorted(
            found, key=lambda pair: int(rank[self.body[pair[0]]])
        )  # in moving order, so that ties are decided the same way in every run

    def _between(self, engine: Engine, rows: I8, things: I8) -> list[tuple[int, int]]:
        """Filter pairs of grippers and bodies: those with the body between the paddles;
        for each gripper the one nearest to its robot.
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
            nearest[int(rows[k])] = min(nearest.get(int(rows[k]), one), one)

        for row, (_, _, k, _) in nearest.items():
            self.right_stop[row], self.left_stop[row] = (
                max(-float(low[k, 1]), 0.0),
                max(float(high[k, 1]), 0.0),
            )

        return [(row, thing) for row, (_, _, _, thing) in nearest.items()]

    # -- outlines

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
        alone = (
            starts[at + 1] - starts[at] == self.own[rows] + 2
        )  # a carried body may stick out farther: its robot keeps its radius
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
    """Least and greatest x and y of bodies `things` in the frames of `carriers` (rows,
    (k,) int64): two (k, 2), m.
    """
    bodies, pose = engine.bodies, engine.state.pose
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
    """The gripper of one robot.

    Parameters
    ----------
    engine : Engine
        Where the robot is.
    name : str
        Of the robot's body.
    robot : RobotSpec
        The robot; it must have a gripper.
    ranging : RangeDevices
        Where its beams are cast.
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
            paddle_speed=half / self.spec.paddle_time,
            lift_speed=1.0 / self.spec.lift_time,
            own=len(parts),
            own_radius=float(engine.bodies.radius[body]),
        )
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
        """The outlines of the paddles as they are, left and right, in the robot's
        frame, m.
        """
        return _paddles(
            self.front, self.spec.reach, self.spec.thickness, self.left, self.right
        )

    @property
    def parts(self) -> tuple[Outline, ...]:
        """The robot's outline with paddles as they are, and with what they hold, m."""
        return self._engine.outline(int(self.table.body[self.number]))

    @property
    def holding(self) -> str | None:
        """Name of the body that it holds; None: it is empty."""
        held = int(self.table.holding[self.number])
        return None if held == NOBODY else self._engine.specs[held].name

    # -- commands

    def act(self, action: Action) -> None:
        """Start an action: sets the goals of paddles and lift."""
        half = self.spec.opening / 2.0
        if action in (Action.OPEN, Action.DEPLOY):
            self._left_goal = self._right_goal = half
        if action in (Action.CLOSE, Action.STORE):
            self._left_goal = self._right_goal = 0.0
        if action in (Action.STOP, Action.HALT):
            self._left_goal, self._right_goal = self.left, self.right
        if action in (Action.LIFT_UP, Action.STORE):
            self._lift_goal = 1.0
        if action in (Action.LIFT_DOWN, Action.DEPLOY):
            self._lift_goal = 0.0
        if action in (Action.LIFT_STOP, Action.HALT):
            self._lift_goal = self.lift

    def carry(self, seconds: float) -> None:
        """Move the lift for a while: up for a positive time, s, down for a negative
        one.
        """
        self._lift_goal = min(max(self.lift + seconds / self.spec.lift_time, 0.0), 1.0)

    def move_to(
        self,
        left: float | None = None,
        right: float | None = None,
        lift: float | None = None,
    ) -> None:
        """Move paddles to distances from the middle line, m, and the lift to a height,
        0 … 1; what is None goes on as it does.
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
        """Where left and right paddle are, m from the middle line, and the lift, 0 … 1."""
        return self.left, self.right, self.lift

    # -- switches

    def state(self) -> GripperState:
        """The state of the switches and break beams now."""
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
    """Of a paddle, m."""
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
            about="left paddle, from the middle line",
        ),
        Command(
            name="right",
            limits=_travel,
            columns=lambda x: {"right_goal": x},
            unit="m",
            about="right paddle, from the middle line",
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
