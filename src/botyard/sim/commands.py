"""Commands to one robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.engine import commands as cmd
from botyard.engine.layout import OdometryErrorMode
from botyard.errors import CommandError
from botyard.sim.core import Member


class Commands(ReadOnly):
    """Commands to a robot in SI units; they take effect at the start of the next step."""

    _moved: ClassVar[Mapping[str, str]] = {"submit": "issue_command"}

    def __init__(self, robot: Member, source: str) -> None:
        self._robot = robot
        self._source = source

    def __repr__(self) -> str:
        return f"<Commands to {self._robot.name}>"

    def issue_command(self, command: cmd.Command) -> None:
        """Queue any command of `botyard.engine.commands`."""
        self._robot._core.accept_command(self._robot.name, command, self._source)

    def __call__(
        self, v: float | None = None, w: float | None = None, vy: float | None = None
    ) -> None:
        """Drive with these velocities until the next command.

        Omitted velocities stay unchanged.

        Parameters
        ----------
        v, w, vy : float, optional
            Forward, m/s; turn rate, rad/s; to the left, m/s.

        Raises
        ------
        CommandError
            A value is not a finite number, or `vy` is not 0 and the robot cannot drive sideways.
        """
        # Zero is harmless for every robot: programs pass it to be explicit.
        if vy:
            self._check_sideways(vy)
        self.issue_command(cmd.SetVelocity(v=v, w=w, vy=vy))

    def _check_sideways(self, vy: float) -> None:
        spec = self._robot.spec
        if spec.kinematics.must_turn:
            raise CommandError(
                f"vy: robot {self._robot.name} ({spec.name}) cannot drive "
                f"sideways, only omnidirectional robots can; found {vy} m/s"
            )

    def velocity(self, v: float, w: float = 0.0, vy: float = 0.0) -> None:
        """Drive with these velocities until the next command.

        Units are m/s, rad/s, m/s to the left.

        Raises like `__call__`.
        """
        self(v, w, vy)

    def move(self, distance: float) -> None:
        """Drive straight by a signed distance, m, measured by odometry."""
        self.issue_command(cmd.MoveBy(distance))

    def turn_to(self, heading: float) -> None:
        """Turn to a heading in the odometry frame, rad."""
        self.issue_command(cmd.TurnTo(heading))

    def turn_by(self, angle: float) -> None:
        """Turn by an angle, rad."""
        self.issue_command(cmd.TurnBy(angle))

    def stop(self) -> None:
        """Stop with the normal deceleration."""
        self.issue_command(cmd.Stop())

    def emergency_stop(self) -> None:
        """Stop with the highest deceleration."""
        self.issue_command(cmd.EmergencyStop())

    def enable(self, on: bool = True) -> None:
        """Switch the motors on or off.

        They stay off while `Robot.motors_inhibited` states a reason.
        """
        self.issue_command(cmd.EnableMotors(on))

    def set_pose(self, x: float, y: float, th: float = 0.0) -> None:
        """Place the robot at a true pose (m, m, rad); its odometry stays unchanged."""
        self.issue_command(cmd.SetPose(arguments.pose((x, y, th))))

    def hold(self, on: bool = True) -> None:
        """Hold the robot in place, for example to drag it with `set_pose`.

        After the release it continues with its commands.
        """
        self.issue_command(cmd.Hold(on))

    def reset_odometry(self) -> None:
        """Reset the odometry to zero."""
        self.issue_command(cmd.SetOdometry())

    def odometry_errors(self, on: bool) -> None:
        """Switch odometry errors on (in the mode of the simulation) or off (TODO-033)."""
        engine = self._robot._core.engine
        # "On" restores the mode with which the simulation was made.
        mode = engine.odometry_error_mode if on else OdometryErrorMode.NONE
        self.issue_command(cmd.SetOdometryErrors(mode, int(engine.seed_word)))
