"""Velocity commands of ROS peers (cmd_vel): checks, timeout and motors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from botyard.model.robotport import RobotPort
from botyard.protocols.ros_messages.messages import (
    Stamp,
)


class Driver:
    """Executes cmd_vel for a robot, with a watchdog that stops it.

    Parameters
    ----------
    port : RobotPort
        The robot.
    claim, release : callable
        Claim the robot for ROS, and release it.
    timeout : float
        Timeout of the watchdog: simulated time without a command, s; 0 for none.
    clock : callable
        Returns the time on the clock of message stamps.
    log : callable
        Logs a warning.

    Attributes
    ----------
    refused : int
        Number of commands that were refused because their stamps were older than
        `timeout`.
    """

    def __init__(
        self,
        port: RobotPort,
        claim: Callable[[], None],
        release: Callable[[], None],
        timeout: float,
        clock: Callable[[], Stamp],
        log: Callable[[str], None],
    ) -> None:
        self._port = port
        self._claim, self._release = claim, release
        self._timeout_us = round(timeout * 1e6)
        self._clock = clock
        self._log = log
        self._last_us = -1
        self._warned = False
        self.refused = 0

    @property
    def is_active(self) -> bool:
        """Whether ROS commands the robot at present."""
        return self._last_us >= 0

    def twist(self, message: Any) -> None:
        """Execute a geometry_msgs/Twist, m/s and rad/s."""
        v, vy, w = (
            float(message.linear.x),
            float(message.linear.y),
            float(message.angular.z),
        )
        if not (math.isfinite(v) and math.isfinite(vy) and math.isfinite(w)):
            self._log("cmd_vel ignored: expected finite values")
            return

        # Pioneer robots ignore motion commands while the motors are off.
        if not self._port.state().motors:
            # Logged once, because commands come many times a second.
            if not self._warned:
                why = self._port.electrics.inhibited or "service enable_motors"
                self._log(f"cmd_vel ignored: the motors are off ({why})")

            self._warned = True
            return

        # Motors were turned on again: the next time is worth another warning.
        self._warned = False
        # The first command after a pause: ROS takes the robot.
        if self._last_us < 0:
            self._claim()
        self._last_us = self._port.time_us
        self._port.set_velocity(v=v, w=w, vy=vy)

    def stamped(self, message: Any) -> None:
        """Execute a geometry_msgs/TwistStamped; an old one is refused.

        Old means older than the timeout. A stamp of 0 means now.
        """
        sent, now = Stamp.of(message.header.stamp), self._clock()
        age_us = (now.sec - sent.sec) * 1_000_000 + (now.nanosec - sent.nanosec) // 1000
        # An old command in a queue must not move the robot.
        if sent != (0, 0) and 0 < self._timeout_us < age_us:
            if not self.refused:
                self._log(
                    f"cmd_vel refused: its stamp is {age_us / 1e6:.3f} s before "
                    f"the present time, {now.sec}.{now.nanosec:09d};"
                    f" expected at most {self._timeout_us / 1e6:g} s "
                    "(--cmd-vel-timeout); further ones are only counted"
                )

            self.refused += 1
            return

        self.twist(message.twist)

    def tick(self) -> None:
        """Check the watchdog; called after each step."""
        if self._last_us < 0 or not self._timeout_us:
            return
        # Simulated time may have gone back to an earlier moment.
        self._last_us = min(self._last_us, self._port.time_us)
        if self._port.time_us - self._last_us > self._timeout_us:
            self.end()

    def end(self) -> None:
        """Stop the robot and release it."""
        if self._last_us >= 0:
            self._last_us = -1
            self._port.stop()
            self._release()

    def enable(self, on: bool) -> None:
        """Turn the motors on or off."""
        why = self._port.electrics.inhibited
        # The command is still passed on: the motors start when the reason has gone.
        if on and why:
            self._log(f"the motors stay off: {why}")
        self._port.enable_motors(on)
