"""A two-paddle gripper with a lift: its mechanics, what stands between its paddles, and what it holds (UNS-001).

Paddles close until each meets the thing between them, which is then held and carried along, or until they meet each other. Only
bodies that cannot drive are gripped. Two light beams cross the open gripper, the outer near the tips, the inner near the body.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from botyard.devices.ranging import Bundle, RangeDevices
from botyard.engine.layout import F8
from botyard.engine.simulation import Engine
from botyard.geometry import Pose, inverse, transform_point
from botyard.model.accessories import GripperSpec
from botyard.model.obstacles import Outline, Visible
from botyard.model.robot import Drive, RobotSpec

STREAM: Final = 64
"""Number of the beams in the random streams of the body (they use none)."""
INNER: Final = 0.25
OUTER: Final = 0.85
"""Places of the beams along the paddles, as shares of their length."""
CLEAR: Final = 1e-4
"""A beam whose range is this much shorter than the opening is broken, m."""
TOUCH: Final = 1e-6
"""Paddles that are this near to their goal are there, m."""


class Action(IntEnum):
    """What a client can ask for; numbers of command GRIPPER (pioneer-protocol §4.6)."""

    OPEN = 1
    CLOSE = 2
    STOP = 3
    LIFT_UP = 4
    LIFT_DOWN = 5
    LIFT_STOP = 6
    STORE = 7
    DEPLOY = 8
    HALT = 15
    PRESSURE = 16
    LIFT_CARRY = 17


class GripperState(NamedTuple):
    """What the gripper's switches say.

    Attributes
    ----------
    open, closed : bool
        Both paddles at the outer end; both paddles against something, or each other.
    left_touches, right_touches : bool
        The paddle presses on something.
    paddles_move, lift_moves : bool
        In motion.
    lift_up, lift_down : bool
        The lift is at that end.
    inner_beam, outer_beam : bool
        Beam broken.
    """

    open: bool
    closed: bool
    left_touches: bool
    right_touches: bool
    paddles_move: bool
    lift_moves: bool
    lift_up: bool
    lift_down: bool
    inner_beam: bool
    outer_beam: bool


@dataclass(slots=True)
class _Paddle:
    """Distance of the inner face from the middle line, and the goal of its motion, m; `stop` is where something is met."""

    at: float
    goal: float
    stop: float = 0.0

    def advance(self, way: float) -> bool:
        """Move by at most `way`; whether it moved."""
        goal = max(self.goal, self.stop)
        step = min(max(goal - self.at, -way), way)
        self.at += step
        return abs(step) > 0.0

    @property
    def touches(self) -> bool:
        return self.goal <= self.stop and self.at <= self.stop + TOUCH


def _paddles(spec: GripperSpec, front: float, left: float, right: float) -> tuple[Outline, ...]:
    """Outlines of two paddles whose inner faces are `left` and `right` m from the middle line."""
    x0, x1, t = front, front + spec.reach, spec.thickness
    return tuple(((x0, y), (x1, y), (x1, y + t), (x0, y + t)) for y in (left, -right - t))


def open_paddles(robot: RobotSpec) -> tuple[Outline, ...]:
    """The outlines that a robot's open gripper adds to its body, m; nothing without a gripper."""
    if robot.gripper is None:
        return ()
    half = robot.gripper.opening / 2.0
    return _paddles(robot.gripper, robot.front, half, half)


class Gripper:
    """The gripper of one robot.

    Parameters
    ----------
    name : str
        Of the robot's body.
    robot : RobotSpec
        The robot; it must have a gripper.
    parts : tuple of outlines
        The robot's body without the gripper.
    ranging : RangeDevices
        Where its beams are cast.
    """

    def __init__(self, name: str, robot: RobotSpec, parts: tuple[Outline, ...], ranging: RangeDevices) -> None:
        assert robot.gripper is not None
        self.spec: GripperSpec = robot.gripper
        self.name = name
        self.front = robot.front
        self.holding: str | None = None
        self._parts = parts
        self._ranging = ranging
        half = self.spec.opening / 2.0
        self._left, self._right = _Paddle(half, half), _Paddle(half, half)
        self._paddles_move = self._lift_moves = False
        self._lift, self._lift_goal = 0.0, 0.0
        self._engine: Engine | None = None
        self._key = (name, "gripper", 0)
        ranging.configure(
            self._key, name, STREAM, Visible.OBSTACLE | Visible.PUSHED, [self._beam(INNER), self._beam(OUTER)]
        )

    def _beam(self, share: float) -> Bundle:
        half = self.spec.opening / 2.0
        mount = Pose(self.front + share * self.spec.reach, half, -math.pi / 2)
        return Bundle(mount=mount, r_max=self.spec.opening)

    @property
    def paddles(self) -> tuple[Outline, ...]:
        """The outlines of the paddles as they are, left and right, in the robot's frame, m."""
        return _paddles(self.spec, self.front, self._left.at, self._right.at)

    @property
    def parts(self) -> tuple[Outline, ...]:
        """The robot's outline with paddles as they are, and with what they hold."""
        engine, held = self._engine, self.holding
        outlines = () if engine is None or held is None else engine.held_outlines(held)
        return (*self._parts, *self.paddles, *outlines)

    # -- commands

    def act(self, action: Action) -> None:
        """Begin what a client asks for."""
        half = self.spec.opening / 2.0
        if action in (Action.OPEN, Action.DEPLOY):
            self._left.goal = self._right.goal = half
        if action in (Action.CLOSE, Action.STORE):
            self._left.goal = self._right.goal = 0.0
        if action in (Action.STOP, Action.HALT):
            self._left.goal, self._right.goal = self._left.at, self._right.at
        if action in (Action.LIFT_UP, Action.STORE):
            self._lift_goal = 1.0
        if action in (Action.LIFT_DOWN, Action.DEPLOY):
            self._lift_goal = 0.0
        if action in (Action.LIFT_STOP, Action.HALT):
            self._lift_goal = self._lift

    def carry(self, seconds: float) -> None:
        """Move the lift for a while: up for a positive time, s, down for a negative one."""
        self._lift_goal = min(max(self._lift + seconds / self.spec.lift_time, 0.0), 1.0)

    def move_to(self, left: float | None = None, right: float | None = None, lift: float | None = None) -> None:
        """Move paddles to distances from the middle line, m, and the lift to a height, 0 … 1; what is None goes on as it does."""
        half = self.spec.opening / 2.0
        for paddle, goal in ((self._left, left), (self._right, right)):
            if goal is not None:
                paddle.goal = min(max(goal, 0.0), half)
        if lift is not None:
            self._lift_goal = min(max(lift, 0.0), 1.0)

    @property
    def positions(self) -> tuple[float, float, float]:
        """Where left and right paddle are, m from the middle line, and the lift, 0 … 1."""
        return self._left.at, self._right.at, self._lift

    def check(self, engine: Engine) -> None:
        """Let go of what was taken away or removed."""
        if self.holding is not None and self.holding not in engine.held:
            self.holding = None
            engine.reshape(self.name, self.parts)

    # -- what happens in a step

    def advance(self, engine: Engine, dt: float) -> None:
        """Let `dt` s pass: paddles and lift move, things are gripped and let go."""
        self._engine = engine
        self.check(engine)
        closing = self._left.goal < self._left.at or self._right.goal < self._right.at
        opening = self._left.goal > self._left.at or self._right.goal > self._right.at
        self._left.stop = self._right.stop = 0.0
        found = None
        if self.holding is not None:
            found = (self.holding, *self._extent(engine, self.holding))
            if opening:
                engine.detach(self.holding)
                self.holding = found = None
        elif closing:
            found = self._between(engine)
        if found is not None:
            self._right.stop, self._left.stop = max(-found[1], 0.0), max(found[2], 0.0)
        way = self.spec.opening / 2.0 * dt / self.spec.paddle_time
        moved = [paddle.advance(way) for paddle in (self._left, self._right)]
        self._paddles_move = any(moved)
        if found is not None and self.holding is None and self._left.touches and self._right.touches:
            self.holding = found[0]
            engine.attach(self.name, self.holding)
        if self._paddles_move or opening or closing:
            engine.reshape(self.name, self.parts)
        step = min(max(self._lift_goal - self._lift, -dt / self.spec.lift_time), dt / self.spec.lift_time)
        self._lift += step
        self._lift_moves = abs(step) > 1e-9

    def _corners(self, engine: Engine, name: str) -> F8:
        """Corners of a body in the robot's frame, (n, 2), m."""
        pose = Pose(*engine.state.pose[engine.rows[self.name]].tolist())
        row = engine.rows[name]
        other = Pose(*engine.state.pose[row].tolist())
        back = inverse(pose)
        points = [transform_point(back, *transform_point(other, x, y)) for p in engine.specs[row].parts for x, y in p]
        return np.array(points, np.float64)

    def _extent(self, engine: Engine, name: str) -> tuple[float, float]:
        """Least and greatest y of a body in the robot's frame, m."""
        ys = self._corners(engine, name)[:, 1]
        return float(ys.min()), float(ys.max())

    def _between(self, engine: Engine) -> tuple[str, float, float] | None:
        """A body that can be gripped between the paddles, nearest to the robot, with its least and greatest y."""
        row = engine.rows[self.name]
        x, y, _ = engine.state.pose[row]
        reach = self.front + self.spec.reach
        radius = engine.bodies.radius
        near = np.hypot(engine.state.pose[:, 0] - x, engine.state.pose[:, 1] - y) < reach + radius
        best: tuple[float, str, float, float] | None = None
        for i in np.flatnonzero(
            near
            & (engine.state.drive == int(Drive.NONE))
            & ((engine.state.mask & int(Visible.OBSTACLE | Visible.PUSHED)) != 0)
        ):
            name = engine.specs[i].name
            corners = self._corners(engine, name)
            (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
            inside = x1 > self.front and x0 < reach and y0 >= -self._right.at - TOUCH and y1 <= self._left.at + TOUCH
            if inside and name not in engine.held and (best is None or (x0, name) < best[:2]):
                best = (float(x0), name, float(y0), float(y1))
        return None if best is None else best[1:]

    # -- switches

    def state(self, engine: Engine) -> GripperState:
        """What the switches say now."""
        left, right, half = self._left, self._right, self.spec.opening / 2.0
        clear = self._ranging.read(engine, self._key).ranges
        beams = [bool(r < self.spec.opening - CLEAR) for r in clear]
        if self.holding is not None and self.holding in engine.held:
            xs = self._corners(engine, self.holding)[:, 0]
            for i, share in enumerate((INNER, OUTER)):
                beams[i] |= bool(xs.min() <= self.front + share * self.spec.reach <= xs.max())
        return GripperState(
            open=left.at >= half - TOUCH and right.at >= half - TOUCH,
            closed=left.touches and right.touches,
            left_touches=left.touches,
            right_touches=right.touches,
            paddles_move=self._paddles_move,
            lift_moves=self._lift_moves,
            lift_up=self._lift >= 1.0 - 1e-9,
            lift_down=self._lift <= 1e-9,
            inner_beam=beams[0],
            outer_beam=beams[1],
        )
