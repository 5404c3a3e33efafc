"""Two-paddle gripper with a lift: mechanics, break beams, and the held body (UNS-001).

Each paddle closes until it meets the body between the paddles, or the other paddle. A
body between both is then held and carried along. Only bodies that cannot drive are
gripped. Two light beams cross the open gripper, the outer one near the tips, the inner
one near the robot.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from botyard.devices.grippertable import (
    BEAM_TOLERANCE,
    INNER_BEAM,
    OUTER_BEAM,
    STREAM,
    TOUCH_TOLERANCE,
    Grippers,
    extents,
    paddle_outlines,
)
from botyard.engine.tables import NOBODY, Row, cell
from botyard.geometry import Outline, Pose
from botyard.model.accessories import GripperSpec
from botyard.model.beams import Bundle
from botyard.model.devices import Command, Device, Field, PioneerFields
from botyard.model.obstacles import Visible
from botyard.model.readings import Action, GripperState
from botyard.model.robot import RobotSpec

if TYPE_CHECKING:
    from botyard.devices.ranging import RangeDevices
    from botyard.engine.simulation import Engine


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
        return paddle_outlines(
            self.front, self.spec.reach, self.spec.thickness, self.left, self.right
        )

    @property
    def parts(self) -> tuple[Outline, ...]:
        """Outline of the robot with its paddles and the held body: polygons in the robot frame,
        m.
        """
        return self._engine.outline(int(self.table.body[self.number]))

    @property
    def holding(self) -> str | None:
        """Name of the held body; None if the gripper is empty."""
        held = int(self.table.holding[self.number])
        return None if held == NOBODY else self._engine.specs[held].name

    # -- Commands

    def act(self, action: Action) -> None:
        """Start an action: set the goals of paddles and lift.

        Parameters
        ----------
        action : Action
            Command of a client. Motions take time; `state` shows their progress.
        """
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
        """Move the lift up or down for some time.

        Parameters
        ----------
        seconds : float
            Time, s: up if it is positive, down if it is negative. The ends limit the
            motion.
        """
        self._lift_goal = min(max(self.lift + seconds / self.spec.lift_time, 0.0), 1.0)

    def move_to(
        self,
        left: float | None = None,
        right: float | None = None,
        lift: float | None = None,
    ) -> None:
        """Move the paddles and the lift.

        Values beyond the ends are limited to the ends.

        Parameters
        ----------
        left, right : float, optional
            Distance of each paddle's inner face from the centre line, m. None leaves
            the motion unchanged.
        lift : float, optional
            Height of the lift, 0 … 1.
        """
        # Clamped and not refused, because clients send goals beyond the ends to open or
        # close fully.
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
        """Return the present state of the gripper's switches and break beams."""
        table, row, engine, half = (
            self.table,
            self.number,
            self._engine,
            self.spec.opening / 2.0,
        )
        left, right, lift = self.positions
        clear = self._ranging.read(engine, self._key).ranges
        # A clear beam reaches the other paddle, at the distance of the opening.
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
    """Return the distance that a paddle can travel, m."""
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


__all__ = ["GRIPPER", "Gripper"]
