"""Motion commands of ROS peers (cmd_vel, ackermann_cmd), with checks and a watchdog."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from botyard.model.robotport import RobotPort
from botyard.protocols.ros_messages.messages import (
    Stamp,
)


class Driver:
    """Executor of cmd_vel and ackermann_cmd for a robot, with a watchdog that stops the robot.

    Parameters
    ----------
    port : RobotPort
        Robot that the commands move.
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
        """Execute a geometry_msgs/Twist, m/s and rad/s.

        The robot must have its motors on; otherwise the command is ignored, and logged
        once.

        Parameters
        ----------
        message : geometry_msgs/Twist
            Velocity in the frame base_link: linear x forwards and y to the left,
            angular z counter-clockwise. The other components are ignored.
        """
        v, vy, w = (
            float(message.linear.x),
            float(message.linear.y),
            float(message.angular.z),
        )
        if self._accepts("cmd_vel", v, vy, w):
            self._port.set_velocity(v=v, w=w, vy=vy)

    def ackermann(self, message: Any) -> None:
        """Execute an ackermann_msgs/AckermannDrive, like a Twist.

        Parameters
        ----------
        message : ackermann_msgs/AckermannDrive
            Speed, m/s; steering angle, rad, positive to the left; and greatest steering
            rate, rad/s, or 0 for the model's own. Acceleration and jerk are ignored:
            the ramps of the robot apply.
        """
        v, steer, rate = (
            float(message.speed),
            float(message.steering_angle),
            float(message.steering_angle_velocity),
        )
        if self._accepts("ackermann_cmd", v, steer, rate):
            self._port.set_steering(steer, v=v, rate=rate)

    def _accepts(self, topic: str, *values: float) -> bool:
        """Return whether a command may move the robot. If so, claim the robot for ROS."""
        if not all(map(math.isfinite, values)):
            self._log(f"{topic} ignored: expected finite values, found {values}")
            return False

        # Pioneer robots ignore motion commands while the motors are off.
        if not self._port.state().motors:
            # The reason is logged once, because commands arrive many times a second.
            if not self._warned:
                why = self._port.electrics.inhibited or "service enable_motors"
                self._log(f"{topic} ignored: the motors are off ({why})")

            self._warned = True
            return False

        # The motors are on again, so the next time that they are off gets another
        # warning.
        self._warned = False
        # The first command after a pause claims the robot for ROS.
        if self._last_us < 0:
            self._claim()
        self._last_us = self._port.time_us
        return True

    def stamped(self, message: Any) -> None:
        """Execute a geometry_msgs/TwistStamped, unless its stamp is older than the timeout.

        A stamp of 0 stands for the present time.

        Parameters
        ----------
        message : geometry_msgs/TwistStamped
            Velocity as for `twist`. Its frame is not used.
        """
        if self._is_recent("cmd_vel", message.header.stamp):
            self.twist(message.twist)

    def ackermann_stamped(self, message: Any) -> None:
        """Execute an ackermann_msgs/AckermannDriveStamped, unless it is older than the timeout.

        Parameters
        ----------
        message : ackermann_msgs/AckermannDriveStamped
            Command as for `ackermann`, with a stamp as for `stamped`.
        """
        if self._is_recent("ackermann_cmd", message.header.stamp):
            self.ackermann(message.drive)

    def _is_recent(self, topic: str, stamp: Any) -> bool:
        """Return whether a stamp is no older than the timeout; log the first older stamp."""
        sent, now = Stamp.of(stamp), self._clock()
        age_us = (now.sec - sent.sec) * 1_000_000 + (now.nanosec - sent.nanosec) // 1000
        # Refuse a command that has waited in a queue for long: it must not move the
        # robot now.
        if sent != (0, 0) and 0 < self._timeout_us < age_us:
            if not self.refused:
                self._log(
                    f"{topic} refused: its stamp is {age_us / 1e6:.3f} s before "
                    f"the present time, {now.sec}.{now.nanosec:09d};"
                    f" expected at most {self._timeout_us / 1e6:g} s "
                    "(--cmd-vel-timeout); further ones are only counted"
                )

            self.refused += 1
            return False

        return True

    def tick(self) -> None:
        """Check the watchdog; called after each step."""
        if self._last_us < 0 or not self._timeout_us:
            return
        # Simulated time may have jumped back.
        self._last_us = min(self._last_us, self._port.time_us)
        if self._port.time_us - self._last_us > self._timeout_us:
            self.end()

    def end(self) -> None:
        """Stop the robot and release it.

        The call has no effect while ROS does not command the robot.
        """
        if self._last_us >= 0:
            self._last_us = -1
            self._port.stop()
            self._release()

    def enable(self, on: bool) -> None:
        """Turn the motors on or off.

        Parameters
        ----------
        on : bool
            Whether the motors shall be on.
        """
        why = self._port.electrics.inhibited
        # Pass the command on: the motors start when the reason no longer holds.
        if on and why:
            self._log(f"the motors stay off: {why}")
        self._port.enable_motors(on)
