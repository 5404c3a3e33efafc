"""Electrics of a robot as its controller board reports them.

They are the battery, digital and analogue lines, temperature, E-stop and joystick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.devices.battery import Batteries, Battery
from botyard.devices.devicetable import DeviceTable
from botyard.engine.layout import F8, I1, I2, I8, U1
from botyard.engine.tables import NOBODY, Column, Row, cell
from botyard.model.devices import Device, DeviceSpec, Field, PioneerFields
from botyard.model.objects import Described
from botyard.model.robot import BatterySpec, RobotSpec
from botyard.units import clamp

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.simulation import Engine

DIGITAL_BYTES = 4
"""Number of digital input bytes in the I/O packet; the SIP also has the first one."""
ANALOG_INPUTS = 8
"""Number of analogue inputs."""
ANALOG_MAX = 1023
"""Highest reading of an analogue input: 10 bits, 5 V (pioneer-protocol §10)."""
SERVOS = 16
"""Number of pan-tilt servos whose positions are kept."""
NO_ROWS: Final[I8] = np.zeros(0, np.int64)
UNSET = -1
"""Position of a servo that no client has set yet."""
T = TypeVar("T")


class Boards(DeviceTable):
    """Controller boards of all robots; `Electrics` and `Joystick` document the columns."""

    name = "electrics"
    columns: ClassVar = {
        "inputs": Column(np.uint8, DIGITAL_BYTES, start=0xFF),
        "digout": Column(np.uint8, start=0xFF),
        "analog": Column(np.int16, ANALOG_INPUTS, low=0, high=ANALOG_MAX),
        "analog_port": Column(np.int8, low=0, high=ANALOG_INPUTS - 1),
        "temperature": Column(np.int16, start=-128, low=-128, high=127),
        "temperature_warning": Column(np.int8, low=0, high=1),
        "estop_pressed": Column(np.int8, low=0, high=1),
        "stick": Column(np.float64, 3, low=-1.0, high=1.0),
        "buttons": Column(np.int8, 2, low=0, high=1),
        "servos": Column(np.int16, SERVOS, start=UNSET, low=UNSET, high=255),
        "version": Column(np.int64, saved=False),
    }
    inputs: U1
    digout: U1
    analog: I2
    analog_port: I1
    temperature: I2
    temperature_warning: I1
    estop_pressed: I1
    stick: F8
    buttons: I1
    servos: I2
    version: I8
    inhibits = brakes = True

    def __init__(self) -> None:
        super().__init__()
        self.may_be_pressed = True
        """Whether an emergency stop button may be pressed.

        False saves each step a look at all buttons.
        """

    def inhibited(self) -> I8:
        """Return the robots whose emergency stop button is pressed."""
        if not self.may_be_pressed:
            return NO_ROWS
        # Rows without a body belong to removed robots.
        rows: I8 = self.body[(self.estop_pressed != 0) & (self.body != NOBODY)]
        # The next step looks only if a button is still pressed; a write sets this
        # again.
        self.may_be_pressed = len(rows) > 0
        return rows

    def restored(self, engine: Engine) -> None:
        """Let the next step check the emergency-stop buttons, which may have changed."""
        self.may_be_pressed = True

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return the keys of the rows: the name of each robot."""
        return set(robots)


class Joystick:
    """Joystick plugged into the robot.

    It is moved at the page, the terminal, or by a program.
    """

    def __init__(self, board: Electrics) -> None:
        self._board = board

    def _stick(self, index: int) -> float:
        return float(self._board.table.stick[self._board.number, index])

    @property
    def x(self) -> float:
        """Position to the right, −1 … 1."""
        return self._stick(0)

    @property
    def y(self) -> float:
        """Position forward, −1 … 1."""
        return self._stick(1)

    @property
    def throttle(self) -> float:
        """Fraction of the top speed, 0 … 1."""
        return self._stick(2)

    @property
    def button1(self) -> bool:
        """Whether the first button is pressed."""
        return bool(self._board.table.buttons[self._board.number, 0])

    @property
    def button2(self) -> bool:
        """Whether the second button is pressed."""
        return bool(self._board.table.buttons[self._board.number, 1])

    def set(
        self,
        x: float,
        y: float,
        throttle: float = 1.0,
        button1: bool = False,
        button2: bool = False,
    ) -> None:
        """Move the joystick; values are clamped to their ranges."""
        # Values come from browsers and terminals, which may send anything.
        stick = clamp(x, -1.0, 1.0), clamp(y, -1.0, 1.0), clamp(throttle, 0.0, 1.0)
        self._board.write(stick=stick, buttons=(bool(button1), bool(button2)))


class Electrics(Row[Boards]):
    """Electrics of one robot, which persist between sessions of clients (HSK-017).

    Attributes
    ----------
    battery : Battery
        Battery of the robot.
    digout : int
        Eight digital outputs.
    analog_port : int
        Number of the analogue input that the SIP shows.
    temperature : int
        Temperature, °C; −128: no sensor.
    temperature_warning : bool
        Fault flag of the board.
    estop_pressed : bool
        Whether the emergency stop button is pressed. Motors stay off until it is released
        and they are enabled again.
    joystick : Joystick
        Joystick of the robot.
    version : int
        Counter of changes made through this object, for caches of reports.
    """

    battery: Battery
    joystick: Joystick
    digout = cell(int)
    analog_port: int = cell(int)
    temperature: int = cell(int)
    temperature_warning: bool = cell(bool)
    estop_pressed: bool = cell(bool)
    version: int = cell(int)

    def __init__(
        self,
        battery: Battery,
        table: Boards | None = None,
        body: int = NOBODY,
        key: str = "",
    ) -> None:
        self.battery, self.joystick = battery, Joystick(self)
        super().__init__(
            Boards() if table is None else table, body, key, stick=(0.0, 0.0, 1.0)
        )

    @classmethod
    def of(
        cls,
        battery: BatterySpec,
        batteries: Batteries | None = None,
        boards: Boards | None = None,
        body: int = NOBODY,
        key: str = "",
    ) -> Electrics:
        """Make the electrics of a new robot named `key`.

        They use rows of the given tables, or of tables of their own.
        """
        return cls(Battery(battery, batteries, body, key), boards, body, key)

    @property
    def inputs(self) -> list[int]:
        """`DIGITAL_BYTES` bytes of digital inputs (1: idle, HIS-003). A copy.

        Change them with `write_inputs`.
        """
        return self._list(self.table.inputs)

    @property
    def analog(self) -> list[int]:
        """Readings of the analogue inputs, 0 … `ANALOG_MAX`. A copy.

        Change them with `write_analog`.
        """
        return self._list(self.table.analog)

    @property
    def servos(self) -> Mapping[int, int]:
        """Last position of each pan-tilt servo, as a client gave it.

        Servos that no client has moved are left out.
        """
        return {
            i: at for i, at in enumerate(self._list(self.table.servos)) if at != UNSET
        }

    def _list(self, column: NDArray[Any]) -> list[int]:
        values: list[int] = column[self.number].tolist()
        return values

    @property
    def volts(self) -> float:
        """Battery voltage, V."""
        return self.battery.volts

    @property
    def charge(self) -> float:
        """Battery state of charge, %."""
        return self.battery.charge

    @property
    def inhibited(self) -> str:
        """Reason why the motors cannot be enabled; empty if they can.

        The engine applies this rule, see `Engine.inhibit`.
        """
        # The button comes first, because the user can release it.
        if self.estop_pressed:
            return "the emergency stop button is pressed"
        return "the battery is empty" if self.battery.is_low else ""

    def write(self, **values: Any) -> None:
        """Set columns of this row; see `Row.write`."""
        super().write(**values)
        # Any write may have pressed a button; the next step checks.
        self.table.may_be_pressed = True

    def test_battery(self, value: int) -> None:
        """Override the battery state for tests, see `Battery.pretend`."""
        self.battery.pretend(value)
        self.write()

    def write_outputs(self, mask: int, states: int) -> None:
        """Set the outputs selected by `mask` to the bits of `states`."""
        self.digout = (self.digout & ~mask & 0xFF) | (states & mask & 0xFF)

    def write_inputs(self, mask: int, states: int, byte: int = 0) -> None:
        """Set digital inputs of one byte, as the environment would.

        `mask` selects the inputs.

        An unknown byte is ignored.
        """
        if 0 <= byte < DIGITAL_BYTES:
            inputs = self.inputs
            # Python integers are unbounded: keep the result a byte.
            inputs[byte] = (inputs[byte] & ~mask & 0xFF) | (states & mask & 0xFF)
            self.write(inputs=inputs)

    def write_analog(self, port: int, value: int) -> None:
        """Set an analogue input, as the environment would; an unknown port is ignored."""
        if 0 <= port < ANALOG_INPUTS:
            analog = self.analog
            analog[port] = min(max(value, 0), ANALOG_MAX)
            self.write(analog=analog)

    def move_servo(self, servo: int, position: int) -> None:
        """Store the commanded position of a pan-tilt servo, 0 … 255.

        Servos from `SERVOS` on are ignored.
        """
        if 0 <= servo < SERVOS:
            servos = self._list(self.table.servos)
            servos[servo] = position
            self.write(servos=servos)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectricsSpec(DeviceSpec):
    """Controller board of a robot, without parameters."""

    type: str = field(default="electrics", init=False)


class ElectricsReading(NamedTuple):
    """Reading of a controller board; see `Electrics` and `Joystick`.

    Attributes
    ----------
    inputs : int
        Digital inputs, 8 bits for each byte, the first byte lowest.
    """

    inputs: int
    digout: int
    analog_port: int
    analog: tuple[int, ...]
    temperature: int
    temperature_warning: bool
    estop_pressed: bool
    button1: bool


def _read(_: ElectricsSpec, view: View) -> ElectricsReading:
    board: Electrics = view.part_of_robot
    return ElectricsReading(
        int.from_bytes(bytes(board.inputs), "little"),
        board.digout,
        board.analog_port,
        tuple(board.analog),
        board.temperature,
        board.temperature_warning,
        board.estop_pressed,
        board.joystick.button1,
    )


def _bits(_: ElectricsSpec, found: ElectricsReading) -> dict[str, int]:
    """Return fields of the SIP (pioneer-protocol §5).

    They are flags, the selected analogue input and 8 bits of it, outputs, and the
    temperature in °C.
    """
    return {
        # Bit positions in the FLAGS field of the SIP
        "flags": found.estop_pressed << 5 | found.button1 << 9,
        "timer_low": found.analog_port,
        # The SIP has 8 of the 10 bits.
        "analog": found.analog[found.analog_port] >> 2,
        "digout": found.digout,
        "temperature": found.temperature,
        "faults": found.temperature_warning << 1,
    }


ELECTRICS: Final = Device(
    name="electrics",
    about="lines, temperature and switches of the controller board",
    spec=ElectricsSpec,
    read=_read,
    fields=(
        Field("inputs", "bits", int),
        Field("outputs", "bits", int),
        Field("temperature", "°C", int),
        Field("temperature_warning", kind=bool),
        Field("estop_pressed", kind=bool),
        *(Field(f"analog_{i}", kind=int) for i in range(ANALOG_INPUTS)),
    ),
    rows=lambda found: [
        (
            found.inputs,
            found.digout,
            found.temperature,
            found.temperature_warning,
            found.estop_pressed,
            *found.analog,
        )
    ],
    part="electrics",
    table=Boards,
    pioneer=PioneerFields(report=_bits, is_steady=lambda _: True),
    on_page=False,
)
"""Kind of device; the battery is a kind of its own."""


__all__ = [
    "ANALOG_INPUTS",
    "ANALOG_MAX",
    "DIGITAL_BYTES",
    "ELECTRICS",
    "SERVOS",
    "Boards",
    "Electrics",
    "Joystick",
]
