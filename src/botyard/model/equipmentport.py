"""Interfaces by which protocols access a robot's equipment: battery, board, gripper, devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from botyard.model.devices import Device, DeviceSpec
from botyard.model.readings import (
    Action,
    ChargeState,
)

T = TypeVar("T")


class Joystick(Protocol):
    """Interface of a joystick that is plugged into a robot."""

    @property
    def x(self) -> float:
        """Deflection of the joystick to the right, −1 to 1."""
        ...

    @property
    def y(self) -> float:
        """Deflection of the joystick forward, −1 to 1."""
        ...

    @property
    def throttle(self) -> float:
        """Position of the joystick's throttle, as a fraction of the top speed, 0 to 1."""
        ...

    @property
    def button1(self) -> bool:
        """Whether the first button of the joystick is pressed."""
        ...

    @property
    def button2(self) -> bool:
        """Whether the second button of the joystick is pressed."""
        ...


class Battery(Protocol):
    """Interface of the battery of a robot."""

    @property
    def by_charge(self) -> bool:
        """Whether the battery reports its charge instead of its voltage."""
        ...

    @property
    def drains(self) -> bool:
        """Whether the battery is simulated, so that its charge changes with time."""
        ...

    @property
    def on_dock(self) -> bool:
        """Whether the robot is at a charging station."""
        ...

    @property
    def is_low(self) -> bool:
        """Whether the battery's charge is too low to drive."""
        ...

    @property
    def charge_state(self) -> ChargeState:
        """State of the battery's charger."""
        ...


class Electrics(Protocol):
    """Interface of a robot's controller board: battery, lines and temperature.

    See `botyard.devices.electrics.Electrics`.
    """

    digout: int
    """Eight digital outputs, one per bit."""
    analog_port: int
    """Number of the analogue input that the SIP shows."""
    temperature: int
    """Temperature of the board, °C; −128: no sensor."""
    temperature_warning: bool
    """Flag of the board for a fault by high temperature."""
    estop_pressed: bool
    """Whether the emergency stop button is pressed."""
    version: int
    """Counter that increases with every change of the board's values."""

    @property
    def battery(self) -> Battery:
        """Battery of the robot."""
        ...

    @property
    def joystick(self) -> Joystick:
        """Joystick that is plugged into the robot."""
        ...

    @property
    def volts(self) -> float:
        """Voltage of the battery, V."""
        ...

    @property
    def charge(self) -> float:
        """Charge of the battery, percent."""
        ...

    @property
    def analog(self) -> list[int]:
        """Readings of the analogue inputs, 0 to 1023."""
        ...

    @property
    def servos(self) -> Mapping[int, int]:
        """Commanded positions of pan-tilt servos, 0 to 255, by number of the servo."""
        ...

    @property
    def inhibited(self) -> str:
        """Reason why the motors cannot be enabled; empty: they can be."""
        ...

    def test_battery(self, value: int) -> None:
        """Override the reported battery value for tests.

        Parameters
        ----------
        value : int
            Tenths of a volt, or percent if the battery reports its charge; 0 ends the
            override.
        """
        ...

    def write_outputs(self, mask: int, states: int) -> None:
        """Set some of the digital outputs.

        Parameters
        ----------
        mask : int
            Bits of the outputs to set; the others keep their states.
        states : int
            New states of these bits.
        """
        ...

    def move_servo(self, servo: int, position: int) -> None:
        """Command a pan-tilt servo to a position, 0 to 255."""
        ...


class Gripper(Protocol):
    """Interface for commands of a robot's gripper."""

    def act(self, action: Action) -> None:
        """Start an action of the gripper."""
        ...

    def carry(self, seconds: float) -> None:
        """Move the lift for some time, s: up if it is positive, down if it is negative."""
        ...

    @property
    def positions(self) -> tuple[float, float, float]:
        """Positions of left and right paddle, m from the middle, and lift, 0 to 1."""
        ...


class DeviceReader(Protocol):
    """Interface of a further sensor of a robot; see `botyard.devices.devicereader.DeviceReader`."""

    @property
    def spec(self) -> DeviceSpec:
        """Description of the device."""
        ...

    @property
    def kind(self) -> Device[Any, Any]:
        """Kind of the device, which declares its presentation in interfaces."""
        ...

    @property
    def name(self) -> str:
        """Name of the device among the devices of its robot."""
        ...

    @property
    def key(self) -> tuple[str, str, int]:
        """Key (robot, kind, index), by which `Fleet` finds the ranges of the device's beams."""
        ...

    def read(self) -> Any:
        """Return the reading of the device in the current state."""
        ...

    def shown(self, what: str, make: Callable[[Any, Any], T]) -> T | None:
        """Convert the current reading for an interface.

        Parameters
        ----------
        what : str
            Name of the conversion, for the log.
        make : callable
            Converts a description and a reading.

        Returns
        -------
        value or None
            None if the code of the kind raises.
        """
        ...
