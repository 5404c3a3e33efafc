"""Joints that move by themselves: one degree of freedom each, driven by an effort, to a position or with a velocity (ambf-messages.md §6).

A joint moves its child in its parent's frame; it does not push back on its parent.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Final

from botyard.errors import CommandError
from botyard.geometry import Pose, compose, inverse
from botyard.model.dynamics import SUBSTEP, Gains
from botyard.model.objects import JointSpec
from botyard.units import wrap_angle

MOST: Final = 1e6
"""Greatest speed of a joint, rad/s or m/s, and greatest number that may be commanded."""
FREE_GAINS: Final = Gains()
"""Of position controllers without gains of their own; their output is a velocity."""


class JointCommand(IntEnum):
    """What is commanded; the values are those of ``RigidBodyCmd.joint_cmds_types``."""

    EFFORT = 0
    POSITION = 1
    VELOCITY = 2


class Joint:
    """A joint in motion.

    Attributes
    ----------
    position, velocity, effort : float
        rad or m; rad/s or m/s; N·m or N.
    """

    def __init__(self, spec: JointSpec) -> None:
        self.spec = spec
        self.position = 0.0 if spec.unlimited else min(max(0.0, spec.low), spec.high)
        self.velocity = 0.0
        self.effort = 0.0
        self._start = self.position
        self._kind = JointCommand.EFFORT
        self._value = 0.0

    def command(self, kind: JointCommand, value: float) -> None:
        """What it is to do from the next step on.

        Raises
        ------
        CommandError
            The value is not finite, or absurd.
        """
        if not abs(value) <= MOST:
            raise CommandError(f"joint {self.spec.name}: expected a number within ±{MOST:g}, found {value:g}")
        if kind == JointCommand.POSITION and not self.spec.unlimited:
            value = min(max(value, self.spec.low), self.spec.high)
        self._kind, self._value = kind, value

    def reset(self) -> None:
        """As at the beginning."""
        self.position, self.velocity, self.effort = self._start, 0.0, 0.0
        self._kind, self._value = JointCommand.EFFORT, 0.0

    def advance(self, dt: float) -> None:
        """Let `dt` s pass."""
        if self._kind == JointCommand.EFFORT and not self._value and not self.velocity:
            self.effort = 0.0
            return
        count = max(1, math.ceil(dt / SUBSTEP - 1e-9))
        for _ in range(count):
            self._step(dt / count)

    def _step(self, h: float) -> None:
        spec = self.spec
        self.effort = 0.0
        if self._kind == JointCommand.VELOCITY:
            self.velocity = self._value
        elif self._kind == JointCommand.POSITION and spec.gains is None:
            self.velocity = FREE_GAINS.speed(self._error(), h)
        else:
            if self._kind == JointCommand.EFFORT or spec.gains is None:
                self.effort = self._value
            else:
                self.effort = spec.gains.force(self._error(), self.velocity, spec.inertia, h, spec.damping)
            self.velocity = (self.velocity + h * self.effort / spec.inertia) / (1.0 + h * spec.damping / spec.inertia)
        self.velocity = min(max(self.velocity, -MOST), MOST)
        self.position += h * self.velocity
        if not spec.unlimited and not spec.low <= self.position <= spec.high:
            self.position, self.velocity = min(max(self.position, spec.low), spec.high), 0.0

    def _error(self) -> float:
        error = self._value - self.position
        return wrap_angle(error) if self.spec.unlimited and not self.spec.slides else error

    @property
    def pose(self) -> Pose:
        """The child in its parent's frame."""
        spec = self.spec
        moved = Pose()
        if spec.planar:
            moved = Pose(self.position) if spec.slides else Pose(0.0, 0.0, wrap_angle(self.position))
        return compose(compose(spec.at, moved), inverse(spec.child_at))


__all__ = ["Joint", "JointCommand"]
