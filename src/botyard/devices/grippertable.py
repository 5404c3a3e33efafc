"""Table of all grippers: how their paddles and lifts move, and which bodies they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from botyard.devices.devicetable import DeviceTable
from botyard.engine.layout import F8, I1, I8
from botyard.engine.tables import NOBODY, Column
from botyard.geometry import Outline
from botyard.model.kinematics import Drive
from botyard.model.objects import Described
from botyard.model.obstacles import Visible
from botyard.model.robot import RobotSpec
from botyard.numerics import elementwise

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine

STREAM: Final = 64
"""Number of the random stream of the break beams, which have no errors and draw nothing."""
INNER_BEAM: Final = 0.25
"""Position of the inner break beam along the paddles, as a fraction of their length."""
OUTER_BEAM: Final = 0.85
"""Position of the outer break beam along the paddles, as a fraction of their length."""
# Rounding of a range must not break a clear beam.
BEAM_TOLERANCE: Final = 1e-4
"""Difference between range and opening above which a beam counts as broken, m."""
# Paddles move by multiples of a float step, and rarely hit their goal exactly.
TOUCH_TOLERANCE: Final = 1e-6
"""Distance from its goal within which a paddle has reached it, m."""
MAX_PAIRS_AT_ONCE: Final = 100_000
"""Largest number of pairs of closing grippers and bodies that one array operation tests.

It bounds the memory of the test.
"""


def paddle_outlines(
    front: float, reach: float, thickness: float, left: float, right: float
) -> tuple[Outline, ...]:
    """Return the outlines of two paddles in the frame of their robot.

    Parameters
    ----------
    front : float
        Start of the paddles ahead of the robot's origin, m.
    reach, thickness : float
        Length and thickness of a paddle, m.
    left, right : float
        Distance of each inner face from the centre line, m, both positive.

    Returns
    -------
    tuple of outlines
        Left and right paddle, four corners each, m.
    """
    x0, x1, t = front, front + reach, thickness
    # Corners are counter-clockwise, so that `Bodies.turn` of a paddle is 1.
    return tuple(
        ((x0, y), (x1, y), (x1, y + t), (x0, y + t)) for y in (left, -right - t)
    )


def open_paddles(robot: RobotSpec) -> tuple[Outline, ...]:
    """Return the outlines that a robot's open gripper adds to its body, m.

    The result is empty for a robot without a gripper.

    Parameters
    ----------
    robot : RobotSpec
        Model of the robot.
    """
    if robot.gripper is None:
        return ()
    half = robot.gripper.opening / 2.0
    return paddle_outlines(
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
        Positions at which the paddles meet the body between them, m; 0: they meet each
        other.
    lift, lift_goal : (n,) float64
        Height of the lift and its goal, 0 … 1.
    paddles_move, lift_moves : (n,) int8
        0 or 1: whether the paddles, or the lift, moved in the last step.
    holding : (n,) int64
        Row of the held body, or `NOBODY`.
    front, reach, half, thickness : (n,) float64
        Start of the paddles, their length, half the opening, and their thickness, m.
    paddle_speed, lift_speed : (n,) float64
        Speed of a paddle, m/s, and of the lift, full strokes per s.
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
        # The value is the row of a body, and rows change when bodies are removed.
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
        """Return the keys of the table's rows: the name of each robot with a gripper."""
        return {name for name, spec in robots.items() if spec.gripper is not None}

    def act(self, engine: Engine, dt: float) -> None:
        """Move all paddles and lifts, and grip and release bodies.

        Parameters
        ----------
        engine : Engine
            Engine that has these grippers.
        dt : float
            Duration of the step, s.
        """
        if not len(self):
            return
        # Release lost bodies before any motion: a lost body must not block the paddles.
        self._release_lost(engine)
        # Resting grippers are the usual case, and cost one comparison of arrays.
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
        """Mark grippers as empty whose held body was detached or removed by other code."""
        # Other code may have attached the body to another robot meanwhile.
        held = self.holding
        held[(held != NOBODY) & (engine.state.carrier[held] != self.body)] = NOBODY

    def _advance(self, engine: Engine, rows: I8, dt: float) -> None:
        """Move the paddles and lifts that are not at their goals.

        Parameters
        ----------
        engine : Engine
            Engine that has these grippers.
        rows : (k,) int64
            Rows of the grippers.
        dt : float
            Duration of the step, s.
        """
        # Test this before the paddles move, because the move may reach the goals.
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
        # Without a body between them, paddles stop at the centre line.
        self.left_stop[empty] = self.right_stop[empty] = 0.0
        found = self._find(engine, rows[closing & (self.holding[rows] == NOBODY)])
        moved = np.zeros(len(rows), np.bool_)
        way = self.paddle_speed[rows] * dt
        for at, goal, stop in (
            (self.left, self.left_goal, self.left_stop),
            (self.right, self.right_goal, self.right_stop),
        ):
            # A stop holds a paddle at the surface of the body.
            step = np.clip(np.maximum(goal[rows], stop[rows]) - at[rows], -way, way)
            at[rows] += step
            moved |= step != 0.0

        self.paddles_move[rows] = moved
        self._draw(engine, rows[moved])
        self._grip(engine, found)
        way = self.lift_speed[rows] * dt
        step = np.clip(self.lift_goal[rows] - self.lift[rows], -way, way)
        self.lift[rows] += step
        # Below the tolerance, a step is only a rounding error at the goal.
        self.lift_moves[rows] = np.abs(step) > 1e-9

    @staticmethod
    def _touches(row: int, at: F8, goal: F8, stop: F8) -> bool:
        """Return whether a paddle presses on the body between the paddles, or on the other
        paddle.

        Parameters
        ----------
        row : int
            Row of the gripper.
        at, goal, stop : (n,) float64
            Columns of one paddle: its position, its goal, and the position at which it
            meets the body or the other paddle, m.
        """
        return bool(goal[row] <= stop[row] and at[row] <= stop[row] + TOUCH_TOLERANCE)

    def _grip(self, engine: Engine, found: Sequence[tuple[int, int]]) -> None:
        """Grip the bodies that both paddles press on.

        The first of several grippers gets the body.

        Parameters
        ----------
        engine : Engine
            Engine that has these grippers.
        found : sequence of (int, int)
            Row of the gripper, and row of the body between its paddles.
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

        # All at once, because each attachment rebuilds the outlines.
        if gripped:
            engine.attach_many([(body, thing) for thing, body in gripped.items()])

    def _find(self, engine: Engine, closing: I8) -> list[tuple[int, int]]:
        """Return pairs (gripper row, body row) of bodies between closing paddles.

        Sets the positions at which the paddles meet them.

        Parameters
        ----------
        engine : Engine
            Engine that has these grippers.
        closing : (k,) int64
            Rows of empty grippers whose paddles close.
        """
        found: list[tuple[int, int]] = []
        if not len(closing):
            return found
        state, bodies = engine.state, engine.bodies
        # A robot that is carried cannot carry a body itself.
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
            # A circle test on all pairs first: exact extents of corners cost far more.
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
        # Sort in the order of motion, so that ties are decided equally in every run.
        return sorted(found, key=lambda pair: int(rank[self.body[pair[0]]]))

    def _filter_pairs(
        self, engine: Engine, rows: I8, things: I8
    ) -> list[tuple[int, int]]:
        """Reduce pairs of grippers and near bodies to bodies that are between the paddles.

        Each gripper gets the body nearest to its robot.

        Parameters
        ----------
        engine : Engine
            Engine that has these grippers.
        rows, things : (k,) int64
            Rows of grippers, and rows of near bodies, by pairs.

        Returns
        -------
        list of (int, int)
            Row of the gripper, and row of its body. Each gripper occurs at most once.
        """
        low, high = extents(engine, self.body[rows], things)
        inside = (high[:, 0] > self.front[rows]) & (
            low[:, 0] < self.front[rows] + self.reach[rows]
        )
        inside &= (low[:, 1] >= -self.right[rows] - TOUCH_TOLERANCE) & (
            # A body wider than the opening cannot be gripped; the tolerance admits an
            # exact fit.
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
        """Update the outlines of robots after their paddles have moved.

        Parameters
        ----------
        engine : Engine
            Engine that has these grippers. In-place: corners and radii of its bodies.
        rows : (k,) int64
            Rows of the grippers.
        """
        if not len(rows):
            return
        bodies, at = engine.bodies, self.body[rows]
        # In `verts`, the corners of the paddles follow the corners of the robot's `own`
        # polygons.
        first = bodies.vert_start[bodies.part_start[at] + self.own[rows]]
        thick, left, right = self.thickness[rows], self.left[rows], self.right[rows]

        # In the order of the corners of `paddle_outlines`: left paddle, then right one
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
        # The radius bounds the search for contacts, so that it must include open
        # paddles.
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
        """Rebuild the outlines of all robots with grippers from the columns."""
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
            # The robot's own polygons come first, because `_draw` finds the paddles after
            # them.
            outlines[body] = (
                *engine.own_outline(body)[:own],
                *paddle_outlines(*paddles),
            )

        if outlines:
            engine.reshape_many(outlines)


def extents(engine: Engine, carriers: I8, things: I8) -> tuple[F8, F8]:
    """Return the bounding boxes of bodies in the frames of other bodies.

    Parameters
    ----------
    engine : Engine
        Engine of the world.
    carriers, things : (k,) int64
        Rows of the bodies that give the frames, and of the bodies that are measured, by
        pairs; k > 0.

    Returns
    -------
    tuple of two (k, 2) float64 arrays
        Least and greatest coordinates x and y, m.
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

    # Sums of sizes are the starts of segments; no segment is empty, as `reduceat`
    # requires.
    return np.minimum.reduceat(both, starts), np.maximum.reduceat(both, starts)


__all__ = ["Grippers", "extents", "open_paddles"]
