"""Operations on one robot as its drivers have them: by hand, with a dead-man switch, its motors, its joystick, its board."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from botyard.control.bodies import hold
from botyard.control.caller import Caller, Level
from botyard.control.operation import NAMES, Operation, argument, count, name, real, yes_or_no
from botyard.control.site import Site, for_each
from botyard.engine import commands as cmd
from botyard.errors import WorldError
from botyard.names import shown
from botyard.sim.port import Port

DEAD_MAN: Final = 0.6
"""A robot that is driven by hand stops when nothing more comes for so long, s of wall time."""


@dataclass(frozen=True, kw_only=True)
class TakeRobot(Operation[Port]):
    """The robot as programs drive it: velocities, moves, motors, limits and sensors pass through what is answered.

    This is how a stream of commands passes: who may is asked once, the engine's queue checks and journals each command.
    """

    robot: str = argument(name)
    level = Level.DRIVE
    settles = False

    def perform(self, control: Site, caller: Caller) -> Port:
        """Do it."""
        return control.robot(self.robot).port(caller.source)


@dataclass(frozen=True, kw_only=True)
class Drive(Operation[None]):
    """Drive a robot by hand (m/s, rad/s): it stops when nothing more comes for `timeout`. `on` False lets go, if it drives it."""

    robot: str = argument(name)
    v: float = argument(real(), 0.0)
    w: float = argument(real(), 0.0)
    vy: float = argument(real(), 0.0)
    on: bool = argument(yes_or_no, True)
    timeout: float = argument(real(0.0, 3600.0, "s"), DEAD_MAN)
    """It stops when nothing more comes for so long, s of wall time."""
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        robot = control.robot(self.robot)
        driver = control.driven[self.robot][0] if self.robot in control.driven else None
        if not self.on:
            if driver is not None and driver.key == caller.key:
                let_go(control, self.robot)
            return
        port = robot.port(caller.source)
        if driver is not None and driver.source != caller.source:
            robot.release(driver.source)  # another one has taken it over, and lets go of its own claim alone
        robot.claim(caller.source)  # each time: it may be another robot that has got the name
        if driver is None or driver.key != caller.key:
            hold(control, self.robot, False, caller)
        if not robot.motors_on and robot.electrics.may_drive:
            port.submit(cmd.EnableMotors(True))  # a client that left has switched them off
        control.driven[self.robot] = caller, control.wall() + self.timeout
        port.submit(cmd.SetVelocity(v=self.v, w=self.w, vy=self.vy))


def let_go(control: Site, robot: str) -> None:
    """Nobody drives a robot by hand any longer: it stops."""
    driver = control.driven.pop(robot, None)
    there = control.sim.robots.get(robot)
    if driver is not None and there is not None:
        there.port(driver[0].source).submit(cmd.Stop())
        there.release(driver[0].source)


def leave(control: Site, key: Hashable) -> None:
    """A client has gone, see `Caller.key`: robots that it drives by hand stop, and it holds neither bodies nor time any longer."""
    for name_ in [n for n, (driver, _) in control.driven.items() if driver.key is key]:
        let_go(control, name_)
    for body, source in [held for held, clients in control.held.items() if key in clients]:
        if body in control.sim.engine.rows:
            hold(control, body, False, Caller(source, key=key))
        else:
            del control.held[body, source]
    control.gone(key)


def look_after_driven(control: Site) -> None:
    """Stop the robots whose drivers have said nothing for too long."""
    now = control.wall()
    for name_ in [n for n, (_, until) in control.driven.items() if now > until]:
        let_go(control, name_)


@dataclass(frozen=True, kw_only=True)
class EnableMotors(Operation[None]):
    """Motors of these robots on or off."""

    robots: tuple[str, ...] = argument(NAMES)
    on: bool = argument(yes_or_no)
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""

        def enable(robot_name: str, _: None) -> None:
            robot = control.robot(robot_name)
            if self.on and not robot.electrics.may_drive:
                raise WorldError(
                    f"{shown(robot_name)}: the motors cannot be enabled: red button pressed, or battery empty"
                )
            robot.port(caller.source).submit(cmd.EnableMotors(self.on))

        for_each(dict.fromkeys(self.robots), enable, "robots")


@dataclass(frozen=True, kw_only=True)
class PressEmergencyStop(Operation[None]):
    """The red buttons of these robots: pressed, or pulled out."""

    robots: tuple[str, ...] = argument(NAMES)
    on: bool = argument(yes_or_no)

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        for_each(
            dict.fromkeys(self.robots), lambda n, _: control.robot(n).press_estop(self.on, caller.source), "robots"
        )


@dataclass(frozen=True, kw_only=True)
class MoveJoystick(Operation[None]):
    """The joystick that is plugged into a robot, for its client to read: -1 … 1 to the right and forward, throttle 0 … 1."""

    robot: str = argument(name)
    x: float = argument(real(), 0.0)
    y: float = argument(real(), 0.0)
    throttle: float = argument(real(-1.0), -1.0)
    """-1: as it was."""
    button1: bool = argument(yes_or_no, False)
    button2: bool = argument(yes_or_no, False)

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        stick = control.robot(self.robot).electrics.joystick
        throttle = stick.throttle if self.throttle < 0.0 else self.throttle
        stick.set(self.x, self.y, throttle, self.button1, self.button2)


@dataclass(frozen=True, kw_only=True)
class SetDigitalInputs(Operation[None]):
    """Lines of a byte of a robot's digital inputs: those of `mask` become those of `states`."""

    robot: str = argument(name)
    byte: int = argument(count(0, 255))
    mask: int = argument(count(0, 255))
    states: int = argument(count(0, 255))

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.robot(self.robot).electrics.write_inputs(byte=self.byte, mask=self.mask, states=self.states)


@dataclass(frozen=True, kw_only=True)
class SetAnalogInput(Operation[None]):
    """The reading of one of a robot's analog inputs."""

    robot: str = argument(name)
    port: int = argument(count(0, 255))
    value: int = argument(count(0, 65535))

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.robot(self.robot).electrics.write_analog(self.port, self.value)


__all__ = [
    "DEAD_MAN", "Drive", "EnableMotors", "MoveJoystick", "PressEmergencyStop", "SetAnalogInput", "SetDigitalInputs", "TakeRobot", "leave",
    "let_go", "look_after_driven",
]  # fmt: skip
