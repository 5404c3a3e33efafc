"""Operations on one robot: manual drive, motors, emergency stop, joystick, inputs.

Manual drive has a dead-man switch. Inputs are digital and analog.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from botyard.api.arguments import unknown
from botyard.control.caller import Caller, Level
from botyard.control.holds import end_holds, release
from botyard.control.operation import (
    NAMES,
    Operation,
    argument,
    boolean,
    count,
    name,
    real,
)
from botyard.control.site import Site, for_each
from botyard.engine import commands as cmd
from botyard.errors import WorldError
from botyard.names import shown
from botyard.sim.port import Port

DEADMAN_TIMEOUT_S: Final = 0.6
"""Timeout of the dead-man switch, s of wall time.

A manually driven robot stops when no command has arrived for this time.
"""


@dataclass(frozen=True, kw_only=True)
class TakeRobot(Operation[Port]):
    """Get a robot's port.

    Programs use it to send velocities, moves, motor switches and limits, and to read
    the robot's sensors. The permission is checked once, here. The engine's queue then
    checks and journals each command of the stream.
    """

    robot: str = argument(name)
    level = Level.DRIVE
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Port:
        """Return the robot's port for commands of this caller's source.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The body is an obstacle.
        """
        return control.robot(self.robot).port(caller.source)


@dataclass(frozen=True, kw_only=True)
class Drive(Operation[None]):
    """Drive a robot manually (m/s, rad/s).

    The robot stops when no further command arrives within `timeout`. With `on` False,
    the driver ends the manual drive.

    Parameters
    ----------
    robot : str
        Name of the robot.
    v, vy : float
        Velocity ahead and to the left, m/s; `vy` only moves robots that can move
        sideways.
    w : float
        Yaw rate, rad/s, positive to the left (REP-103).
    on : bool
        False ends the manual drive, if this driver has it.
    timeout : float
        Timeout of the dead-man switch, s of wall time.
    """

    robot: str = argument(name)
    v: float = argument(real(), 0.0)
    w: float = argument(real(), 0.0)
    vy: float = argument(real(), 0.0)
    on: bool = argument(boolean, True)
    # The limit is an hour: an endless drive would survive a client that has lost its
    # network.
    timeout: float = argument(real(0.0, 3600.0, "s"), DEADMAN_TIMEOUT_S)
    """Timeout of the dead-man switch, s of wall time."""
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Send the velocity to the robot, or end the manual drive.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The body is an obstacle, or its motors are off.
        """
        robot = control.robot(self.robot)
        driver = control.driven[self.robot][0] if self.robot in control.driven else None
        if not self.on:
            # Another client must not end the drive of this driver.
            if driver is not None and driver.key == caller.key:
                stop_manual_drive(control, self.robot)
            return

        # Refuse instead of ignoring velocities, so that the driver learns the reason.
        why = robot.motors_inhibited or (
            "enable the motors first" if robot.is_kept_off else ""
        )
        if why:
            raise WorldError(f"{shown(self.robot)}: the motors are off: {why}")
        port = robot.port(caller.source)
        # Release the claim of the former driver here, because a driver later releases only
        # its own claim.
        if driver is not None and driver.source != caller.source:
            robot.release(driver.source)

        # Claim at each command, because another robot may have taken the name
        # meanwhile.
        robot.claim(caller.source)
        if driver is None or driver.key != caller.key:
            # A new driver also releases its own hold, which would block the drive.
            release(control, self.robot, caller)
        robot.take_over(caller.source)
        # Wall time, because the driver may disconnect while simulated time is paused.
        control.driven[self.robot] = caller, control.wall() + self.timeout
        port.issue_command(cmd.SetVelocity(v=self.v, w=self.w, vy=self.vy))


def stop_manual_drive(control: Site, robot: str) -> None:
    """End the manual drive of a robot, and stop the robot.

    Parameters
    ----------
    control : Site
        Context of the operation.
    robot : str
        Name of the robot. One that is not driven manually, or no longer exists, is
        ignored.
    """
    driver = control.driven.pop(robot, None)
    # The robot may have been removed while it was driven.
    there = control.sim.robots.get(robot)
    if driver is not None and there is not None:
        there.port(driver[0].source).issue_command(cmd.Stop())
        # Release after the stop: a robot without claims may be taken over at once.
        there.release(driver[0].source)


def client_left(control: Site, key: Hashable) -> None:
    """Release all robots, bodies and holds of a client that has disconnected.

    Robots that the client drives manually are stopped. Bodies that it holds, and its hold on
    simulated time, are released.

    Parameters
    ----------
    control : Site
        Context of operations.
    key : hashable
        `Caller.key` of the client, compared by identity.
    """
    # Loop over a list, because `stop_manual_drive` changes the dictionary.
    for name_ in [n for n, (driver, _) in control.driven.items() if driver.key is key]:
        stop_manual_drive(control, name_)
    end_holds(control, lambda caller, _: caller.key is key)
    # Without this, the world would stay paused until the watchdog expires.
    control.release_stepper(key)
    if control.undoing is not None:
        control.undoing.forget(key)


def stop_expired_drivers(control: Site) -> bool:
    """Stop the manually driven robots whose dead-man switch has timed out.

    Parameters
    ----------
    control : Site
        Context of operations. Its wall clock counts, because simulated time may be
        paused.

    Returns
    -------
    bool
        Whether robots are still driven manually.
    """
    now = control.wall()
    for name_ in [n for n, (_, until) in control.driven.items() if now > until]:
        stop_manual_drive(control, name_)
    return bool(control.driven)


@dataclass(frozen=True, kw_only=True)
class EnableMotors(Operation[None]):
    """Switch the motors of robots on or off."""

    robots: tuple[str, ...] = argument(NAMES)
    on: bool = argument(boolean)
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Switch the motors of the robots on or off.

        Raises
        ------
        UnknownNameError
            The only robot is unknown.
        WorldError
            The motors of a robot cannot be enabled, for example while its emergency
            stop is pressed; the motors of the other robots were switched.
        """

        def enable(robot_name: str, _: None) -> None:
            robot = control.robot(robot_name)
            # Only switching on can be refused; switching off is always allowed.
            if self.on and robot.motors_inhibited:
                raise WorldError(
                    f"{shown(robot_name)}: the motors cannot be enabled: {robot.motors_inhibited}"
                )

            robot.port(caller.source).enable_motors(self.on)

        for_each(dict.fromkeys(self.robots), enable, "robots")


@dataclass(frozen=True, kw_only=True)
class PressEmergencyStop(Operation[None]):
    """Press the emergency-stop buttons of robots, or release them."""

    robots: tuple[str, ...] = argument(NAMES)
    on: bool = argument(boolean)

    def perform(self, control: Site, caller: Caller) -> None:
        """Press the emergency-stop buttons of the robots, or release them.

        Raises
        ------
        UnknownNameError
            The only robot is unknown.
        WorldError
            Some of several robots are unknown; the buttons of the other robots were
            switched.
        """
        for_each(
            dict.fromkeys(self.robots),
            lambda n, _: control.robot(n).press_estop(self.on, caller.source),
            "robots",
        )


@dataclass(frozen=True, kw_only=True)
class SetCharge(Operation[None]):
    """Set the state of charge of robots' batteries.

    A simulated battery then drains or charges from there.

    Parameters
    ----------
    robots : tuple of str
        Names of the robots.
    charge : float
        State of charge, %.
    """

    robots: tuple[str, ...] = argument(NAMES)
    charge: float = argument(real(0.0, 100.0, "%"))

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the charge.

        Raises
        ------
        UnknownNameError
            The only robot is unknown.
        WorldError
            Some of several robots are unknown; the batteries of the others were set.
        """
        for_each(
            dict.fromkeys(self.robots),
            lambda n, _: control.robot(n).electrics.battery.write(charge=self.charge),
            "robots",
        )


@dataclass(frozen=True, kw_only=True)
class MoveJoystick(Operation[None]):
    """Set the state of the joystick of a robot, which the robot's client reads.

    x and y are from -1 to 1 (right, forward), throttle from 0 to 1.

    Parameters
    ----------
    robot : str
        Name of the robot.
    x, y : float
        Deflection.
    throttle : float
        Throttle; -1 leaves it unchanged.
    button1, button2 : bool
        Whether each button is pressed.
    """

    robot: str = argument(name)
    x: float = argument(real(), 0.0)
    y: float = argument(real(), 0.0)
    throttle: float = argument(real(-1.0), -1.0)
    """Throttle; -1 leaves it unchanged."""
    button1: bool = argument(boolean, False)
    button2: bool = argument(boolean, False)

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the state of the robot's joystick.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The body is an obstacle.
        """
        stick = control.robot(self.robot).electrics.joystick
        # Simple joysticks have no throttle, so a client without one keeps the setting.
        throttle = stick.throttle if self.throttle < 0.0 else self.throttle
        stick.set(self.x, self.y, throttle, self.button1, self.button2)


@dataclass(frozen=True, kw_only=True)
class CommandDevice(Operation[None]):
    """Command an actuator of a robot, such as a gripper or a joint.

    The kind of the actuator declares the commands; values are in SI units.

    Parameters
    ----------
    robot : str
        Name of the robot.
    device : str
        Name of the actuator, such as ``gripper``.
    command : str
        Name of one of its commands.
    value : float
        Argument of the command, in its SI unit.
    """

    robot: str = argument(name)
    device: str = argument(name)
    command: str = argument(name)
    value: float = argument(real())
    level = Level.DRIVE
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Send the command to the actuator.

        Raises
        ------
        UnknownNameError
            The robot or the device does not exist.
        WorldError
            The body is an obstacle.
        """
        devices = control.robot(self.robot).devices
        # The error suggests only devices that accept commands.
        if self.device not in devices:
            raise unknown(
                self.device,
                [n for n, d in devices.items() if d.kind.commands],
                "device with commands",
            )

        devices[self.device].command(self.command, self.value)


@dataclass(frozen=True, kw_only=True)
class SetDigitalInputs(Operation[None]):
    """Set lines of one byte of a robot's digital inputs.

    The lines in `mask` get the values in `states`.

    Parameters
    ----------
    robot : str
        Name of the robot.
    byte : int
        Number of the byte, from 0; unknown ones are ignored.
    mask, states : int
        Lines to set, and their states, as bits of a byte.
    """

    robot: str = argument(name)
    byte: int = argument(count(0, 255))
    mask: int = argument(count(0, 255))
    states: int = argument(count(0, 255))

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the lines of the robot's digital inputs.

        An unknown byte is ignored, as on a robot without these inputs.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        """
        control.robot(self.robot).electrics.write_inputs(
            byte=self.byte, mask=self.mask, states=self.states
        )


@dataclass(frozen=True, kw_only=True)
class SetAnalogInput(Operation[None]):
    """Set the raw reading of one analog input of a robot.

    Parameters
    ----------
    robot : str
        Name of the robot.
    port : int
        Number of the input, from 0; unknown ones are ignored.
    value : int
        Reading of the converter of 10 bits; higher values count as 1023.
    """

    robot: str = argument(name)
    port: int = argument(count(0, 255))
    value: int = argument(count(0, 65535))

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the reading of the robot's analog input.

        An unknown input is ignored; values are limited to 0 … 1023.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        """
        control.robot(self.robot).electrics.write_analog(self.port, self.value)


__all__ = [
    "DEADMAN_TIMEOUT_S",
    "CommandDevice",
    "Drive",
    "EnableMotors",
    "MoveJoystick",
    "PressEmergencyStop",
    "SetAnalogInput",
    "SetCharge",
    "SetDigitalInputs",
    "TakeRobot",
    "client_left",
    "stop_expired_drivers",
    "stop_manual_drive",
]
