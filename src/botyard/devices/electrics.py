"""A robot's electrics as its controller board reports them: battery, digital and analogue lines, temperature, E-stop, joystick."""

from __future__ import annotations

from dataclasses import dataclass, field

from botyard.devices.battery import Battery
from botyard.model.robot import BatterySpec
from botyard.units import clamp

DIGITAL_BYTES = 4
"""Bytes of digital inputs in the I/O packet; the first is also in the SIP."""
ANALOG_INPUTS = 8
"""Analogue inputs."""
ANALOG_MAX = 1023
"""Greatest reading of an analogue input: 10 bits, 5 V (pioneer-protocol §10)."""


@dataclass(slots=True)
class Joystick:
    """A joystick plugged into the robot, moved by a person at the page, the terminal, or by a program.

    Attributes
    ----------
    x, y : float
        −1 … 1; x to the right, y forward.
    throttle : float
        0 … 1: share of the top speed.
    button1, button2 : bool
        Pressed.
    """

    x: float = 0.0
    y: float = 0.0
    throttle: float = 1.0
    button1: bool = False
    button2: bool = False

    def set(self, x: float, y: float, throttle: float = 1.0, button1: bool = False, button2: bool = False) -> None:
        """Move it; values are limited to their ranges."""
        self.x, self.y, self.throttle = clamp(x, -1.0, 1.0), clamp(y, -1.0, 1.0), clamp(throttle, 0.0, 1.0)
        self.button1, self.button2 = button1, button2


@dataclass(slots=True)
class Electrics:
    """Values that persist between clients' sessions (HSK-017).

    Attributes
    ----------
    battery : Battery
        The battery.
    inputs : list of int
        `DIGITAL_BYTES` bytes of digital inputs (1: idle, HIS-003).
    digout : int
        Eight digital outputs.
    analog : list of int
        Readings of the analogue inputs, 0 … `ANALOG_MAX`.
    analog_port : int
        The analogue input that the SIP shows.
    temperature : int
        °C; −128: no sensor.
    temperature_warning : bool
        Fault flag of the board.
    estop_pressed : bool
        The red button is in; motors stay off until it is out and they are enabled again.
    joystick : Joystick
        Joystick.
    servos : dict of int to int
        Last position of each pan-tilt servo, as the client gave it.
    version : int
        Grows with every change made through this object, so that a report made from it can be kept until then.
    """

    battery: Battery
    inputs: list[int] = field(default_factory=lambda: [0xFF] * DIGITAL_BYTES)
    digout: int = 0xFF
    analog: list[int] = field(default_factory=lambda: [0] * ANALOG_INPUTS)
    analog_port: int = 0
    temperature: int = -128
    temperature_warning: bool = False
    estop_pressed: bool = False
    joystick: Joystick = field(default_factory=Joystick)
    servos: dict[int, int] = field(default_factory=dict)
    version: int = 0

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        object.__setattr__(self, "version", getattr(self, "version", 0) + 1)

    @classmethod
    def of(cls, battery: BatterySpec) -> Electrics:
        """Electrics of a fresh robot."""
        return cls(battery=Battery(battery))

    @property
    def volts(self) -> float:
        """Battery voltage, V."""
        return self.battery.volts

    @property
    def charge(self) -> float:
        """Battery state of charge, %."""
        return self.battery.charge

    @property
    def may_drive(self) -> bool:
        """Whether the motors can be enabled: button out, battery not empty."""
        return not (self.estop_pressed or self.battery.is_low)

    def test_battery(self, value: int) -> None:
        """Pretend a battery state, see `Battery.pretend`."""
        self.battery.pretend(value)
        self.version += 1

    def write_outputs(self, mask: int, states: int) -> None:
        """Set the outputs selected by `mask` to the bits of `states`."""
        self.digout = (self.digout & ~mask & 0xFF) | (states & mask & 0xFF)

    def write_inputs(self, mask: int, states: int, byte: int = 0) -> None:
        """Let the outside world set digital inputs of one byte; nothing happens for a byte that is not there."""
        if 0 <= byte < DIGITAL_BYTES:
            self.inputs[byte] = (self.inputs[byte] & ~mask & 0xFF) | (states & mask & 0xFF)
            self.version += 1

    def write_analog(self, port: int, value: int) -> None:
        """Let the outside world set an analogue input; nothing happens for a port that is not there."""
        if 0 <= port < ANALOG_INPUTS:
            self.analog[port] = min(max(value, 0), ANALOG_MAX)
            self.version += 1
