"""Commands to one robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.engine import commands as cmd
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.steering import SetSteering
from botyard.errors import CommandError
from botyard.model.drivechecks import check_drives
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
        """Queue any command of `botyard.engine.commands` for the next step.

        Raises
        ------
        UnknownNameError
            The robot was removed from its simulation.
        NotNowError
            The world belongs to another thread.
        """
        self._robot._core.accept_command(self._robot.name, command, self._source)

    def __call__(
        self,
        v: float | None = None,
        w: float | None = None,
        vy: float | None = None,
        *,
        steer: float | None = None,
    ) -> None:
        """Drive with these velocities until the next command.

        Omitted velocities stay unchanged.

        Parameters
        ----------
        v, w, vy : float, optional
            Forward, m/s; turn rate, rad/s; to the left, m/s. A car-like robot drives the
            curvature `w` / `v`: with `v` = 0 it does not turn.
        steer : float, optional
            Steering angle of a car-like robot instead of `w`, rad, positive to the left.

        Raises
        ------
        CommandError
            A value is not a finite number; `vy` is not 0 and the robot cannot drive
            sideways; or `steer` is given with `w`, or to a robot that does not steer.
        WorldError
            The robot has no drive, for example a trailer.
        """
        if steer is not None:
            self._check_steers(steer, w, vy)
            self.issue_command(SetSteering(steer, v))
            return
        # The command checks its numbers, so that the tests below compare numbers.
        command = cmd.SetVelocity(v=v, w=w, vy=vy)
        # Zero is harmless for every robot: programs pass it to be explicit.
        if v or w or vy:
            self._check_drives()
        if vy:
            self._check_sideways(vy)
        self.issue_command(command)

    def _check_steers(self, steer: float, w: float | None, vy: float | None) -> None:
        spec = self._robot.spec
        if not spec.kinematics.steers:
            raise CommandError(
                f"steer: robot {self._robot.name} ({spec.name}) does not steer, only "
                f"robots with the drives ackermann and tricycle do; found {steer} rad"
            )
        if w is not None or vy:
            raise CommandError(
                f"steer: expected neither w nor vy together with it, found w={w}, vy={vy}"
            )

    def _check_drives(self) -> None:
        check_drives(self._robot.name, self._robot.spec.kinematics)

    def _check_sideways(self, vy: float) -> None:
        spec = self._robot.spec
        if spec.kinematics.must_turn:
            raise CommandError(
                f"vy: robot {self._robot.name} ({spec.name}) cannot drive "
                f"sideways, only omnidirectional robots can; found {vy} m/s"
            )

    def velocity(self, v: float, w: float = 0.0, vy: float = 0.0) -> None:
        """Drive with these velocities until the next command.

        Parameters
        ----------
        v : float
            Forward velocity, m/s.
        w : float
            Turn rate, rad/s, positive counterclockwise.
        vy : float
            Velocity to the left, m/s.

        Raises
        ------
        CommandError
            A value is not a finite number, or `vy` is not 0 and the robot cannot drive
            sideways.
        WorldError
            The robot has no drive, for example a trailer.
        """
        self(v, w, vy)

    def move(self, distance: float) -> None:
        """Drive straight by a distance that odometry measures, then stop.

        Parameters
        ----------
        distance : float
            Distance, m; negative: backward.

        Raises
        ------
        CommandError
            The distance is not finite.
        WorldError
            The robot has no drive, for example a trailer.
        """
        self._check_drives()
        self.issue_command(cmd.MoveBy(distance))

    def turn_to(self, heading: float) -> None:
        """Turn to a heading by odometry, in the direction of the smaller angle.

        Parameters
        ----------
        heading : float
            Heading in the odometry frame, rad, positive counterclockwise.

        Raises
        ------
        CommandError
            The heading is not finite.
        WorldError
            The robot has no drive, for example a trailer.
        """
        self._check_drives()
        self.issue_command(cmd.TurnTo(heading))

    def turn_by(self, angle: float) -> None:
        """Turn by an angle that odometry measures.

        Parameters
        ----------
        angle : float
            Angle, rad, positive counterclockwise. The robot turns to the resulting
            heading in the direction of the smaller angle, at most half a turn.

        Raises
        ------
        CommandError
            The angle is not finite.
        WorldError
            The robot has no drive, for example a trailer.
        """
        self._check_drives()
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

        Parameters
        ----------
        on : bool
            True switches them on. Without motors the robot stops.
        """
        self.issue_command(cmd.EnableMotors(on))

    def set_pose(self, x: float, y: float, th: float = 0.0) -> None:
        """Place the robot at a true pose; its odometry stays unchanged.

        Parameters
        ----------
        x, y : float
            Position in the frame of the world, m.
        th : float
            Heading, rad, counterclockwise from the x axis.

        Raises
        ------
        ArgumentError
            A value is not a finite number.
        CommandError
            The pose is out of bounds.
        """
        self.issue_command(cmd.SetPose(arguments.pose((x, y, th))))

    def hold(self, on: bool = True) -> None:
        """Hold the robot in place, for example to drag it with `set_pose`.

        After the release it continues with its commands.

        Parameters
        ----------
        on : bool
            True holds the robot, False releases the hold of this source of commands.
        """
        self.issue_command(cmd.Hold(on))

    def reset_odometry(self) -> None:
        """Reset the odometry to zero."""
        self.issue_command(cmd.SetOdometry())

    def odometry_errors(self, on: bool) -> None:
        """Switch odometry errors on or off (TODO-033).

        Parameters
        ----------
        on : bool
            True: errors are drawn in the mode of the simulation. False: none are added;
            earlier errors remain.
        """
        engine = self._robot._core.engine
        # "On" restores the mode with which the simulation was made.
        mode = engine.odometry_error_mode if on else OdometryErrorMode.NONE
        self.issue_command(cmd.SetOdometryErrors(mode, int(engine.seed_word)))
