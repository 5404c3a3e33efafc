"""Electrics of a robot, whose state the robot's controller board reports.

The electrics are the battery, digital and analogue lines, temperature, emergency stop and joystick.
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

# The SIP has a field for one byte; more inputs go into the I/O packet.
DIGITAL_BYTES = 4
"""Number of digital input bytes in the I/O packet; the SIP also has the first one."""
ANALOG_INPUTS = 8
"""Number of analogue inputs of a controller board."""
ANALOG_MAX = 1023
"""Highest reading of an analogue input: 10 bits, 5 V (pioneer-protocol §10)."""
# A bound for indices that clients send.
SERVOS = 16
"""Number of pan-tilt servos whose positions are kept."""
NO_ROWS: Final[I8] = np.zeros(0, np.int64)
"""Rows that `inhibited` returns for no robot; the array is made once because each step needs it."""
UNSET = -1
"""Position of a servo that no client has set yet."""
T = TypeVar("T")


class Boards(DeviceTable):
    """Controller boards of all robots; `Electrics` and `Joystick` document the columns.

    Attributes
    ----------
    inputs : (n, DIGITAL_BYTES) uint8
        Digital inputs, as bits.
    digout : (n,) uint8
        Digital outputs, as bits.
    analog : (n, ANALOG_INPUTS) int16
        Readings of analogue inputs, 0 … `ANALOG_MAX`.
    analog_port : (n,) int8
        Number of the analogue input that the SIP shows.
    temperature, temperature_warning : (n,) int16, (n,) int8
        Temperature, °C, −128 without a sensor; fault flag of the board, 0 or 1.
    estop_pressed : (n,) int8
        0 or 1: whether the emergency stop button is pressed.
    stick, buttons : (n, 3) float64, (n, 2) int8
        Joystick: right and forward, −1 … 1, and throttle, 0 … 1; buttons, 0 or 1.
    servos : (n, SERVOS) int16
        Positions of pan-tilt servos, 0 … 255, or `UNSET`.
    version : (n,) int64
        Counter of writes to each row.
    """

    name = "electrics"
    columns: ClassVar = {
        # Idle inputs read 1, like lines with pull-up resistors.
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
        # The version is not saved: it only counts changes for interfaces of this
        # process.
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

        If it is False, steps do not check the buttons.
        """

    def inhibited(self) -> I8:
        """Return the rows of the robots whose emergency stop button is pressed.

        Returns
        -------
        (k,) int64
            Rows of bodies.
        """
        if not self.may_be_pressed:
            return NO_ROWS
        # Rows without a body belong to removed robots.
        rows: I8 = self.body[(self.estop_pressed != 0) & (self.body != NOBODY)]
        # The next step checks the buttons only if one is still pressed. A write sets
        # the attribute again.
        self.may_be_pressed = len(rows) > 0
        return rows

    def restored(self, engine: Engine) -> None:
        """Make the next step check the emergency-stop buttons, because they may have changed."""
        self.may_be_pressed = True

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return the keys of the table's rows: the name of each robot."""
        return set(robots)


class Joystick:
    """Joystick plugged into the robot.

    Users move it at the page or the terminal, and programs call `set`.

    Parameters
    ----------
    board : Electrics
        Board that it is plugged into.
    """

    def __init__(self, board: Electrics) -> None:
        self._board = board

    def _stick(self, index: int) -> float:
        return float(self._board.table.stick[self._board.number, index])

    @property
    def x(self) -> float:
        """Deflection of the joystick to the right, −1 … 1."""
        return self._stick(0)

    @property
    def y(self) -> float:
        """Deflection of the joystick forward, −1 … 1."""
        return self._stick(1)

    @property
    def throttle(self) -> float:
        """Position of the joystick's throttle, as a fraction of the top speed, 0 … 1."""
        return self._stick(2)

    @property
    def button1(self) -> bool:
        """Whether the first button of the joystick is pressed."""
        return bool(self._board.table.buttons[self._board.number, 0])

    @property
    def button2(self) -> bool:
        """Whether the second button of the joystick is pressed."""
        return bool(self._board.table.buttons[self._board.number, 1])

    def set(
        self,
        x: float,
        y: float,
        throttle: float = 1.0,
        button1: bool = False,
        button2: bool = False,
    ) -> None:
        """Move the joystick; values are clamped to their ranges.

        Parameters
        ----------
        x, y : float
            Position to the right and forward, −1 … 1.
        throttle : float
            Fraction of the top speed, 0 … 1.
        button1, button2 : bool
            Whether each button is pressed.
        """
        # Values come from browsers and terminals, which may send anything.
        stick = clamp(x, -1.0, 1.0), clamp(y, -1.0, 1.0), clamp(throttle, 0.0, 1.0)
        self._board.write(stick=stick, buttons=(bool(button1), bool(button2)))


class Electrics(Row[Boards]):
    """Electrics of one robot, which persist between sessions of clients (HSK-017).

    Parameters
    ----------
    battery : Battery
        Battery of the robot.
    table : Boards, optional
        Table that holds its columns. Default: a table of its own.
    body : int
        Row of the robot.
    key : str
        Name of the robot.

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
        Whether the emergency stop button is pressed. Motors stay off until it is
        released and they are enabled again.
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
            # Electrics without an engine, as clients' tests make them, have a table of
            # their own.
            Boards() if table is None else table,
            body,
            key,
            stick=(0.0, 0.0, 1.0),
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
        """Make the electrics of a new robot.

        Parameters
        ----------
        battery : BatterySpec
            Battery of the model.
        batteries, boards : Batteries, Boards, optional
            Tables that hold the columns. Default: tables of their own.
        body : int
            Row of the robot.
        key : str
            Name of the robot.
        """
        return cls(Battery(battery, batteries, body, key), boards, body, key)

    @property
    def inputs(self) -> list[int]:
        """Digital inputs, `DIGITAL_BYTES` bytes; 1 is idle (HIS-003). The value is a copy.

        Call `write_inputs` to change the inputs.
        """
        return self._list(self.table.inputs)

    @property
    def analog(self) -> list[int]:
        """Readings of the analogue inputs, 0 … `ANALOG_MAX`. The value is a copy.

        Call `write_analog` to change the inputs.
        """
        return self._list(self.table.analog)

    @property
    def servos(self) -> Mapping[int, int]:
        """Last position of each pan-tilt servo, as a client gave it.

        Servos that no client has moved are left out.
        """
        # `UNSET` marks a servo that no client has moved.
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
        """Set columns of this robot's row; see `Row.write`."""
        super().write(**values)
        # Any write may have pressed a button; the next step checks.
        self.table.may_be_pressed = True

    def test_battery(self, value: int) -> None:
        """Override the battery state for tests, see `Battery.pretend`.

        Parameters
        ----------
        value : int
            State of charge, %, or voltage, 1/10 V; 0 ends the override.
        """
        # The row of the battery changes, but interfaces watch the version of this row.
        self.battery.pretend(value)
        self.write()

    def write_outputs(self, mask: int, states: int) -> None:
        """Set some of the digital outputs.

        Parameters
        ----------
        mask : int
            Bits of the outputs to set; bits above the eighth are ignored.
        states : int
            New states, by bit.
        """
        # Masked to a byte, since `~` of a Python integer is negative.
        self.digout = (self.digout & ~mask & 0xFF) | (states & mask & 0xFF)

    def write_inputs(self, mask: int, states: int, byte: int = 0) -> None:
        """Set some digital inputs of one byte, in place of the robot's environment.

        Parameters
        ----------
        mask : int
            Bits of the inputs to set.
        states : int
            New states, by bit; 1 is idle.
        byte : int
            Number of the byte, from 0 on. An unknown byte is ignored.
        """
        if 0 <= byte < DIGITAL_BYTES:
            inputs = self.inputs
            # Python integers are unbounded: keep the result a byte.
            inputs[byte] = (inputs[byte] & ~mask & 0xFF) | (states & mask & 0xFF)
            self.write(inputs=inputs)

    def write_analog(self, port: int, value: int) -> None:
        """Set the reading of an analogue input, in place of the robot's environment.

        Parameters
        ----------
        port : int
            Number of the input, from 0 on. An unknown port is ignored.
        value : int
            Reading, clamped to 0 … `ANALOG_MAX`, which stands for 5 V.
        """
        # Clients may send any port number; a number without an input is ignored.
        if 0 <= port < ANALOG_INPUTS:
            analog = self.analog
            analog[port] = min(max(value, 0), ANALOG_MAX)
            self.write(analog=analog)

    def move_servo(self, servo: int, position: int) -> None:
        """Store the commanded position of a pan-tilt servo.

        Parameters
        ----------
        servo : int
            Number of the servo. Servos from `SERVOS` on are ignored.
        position : int
            Position, 0 … 255.
        """
        if 0 <= servo < SERVOS:
            servos = self._list(self.table.servos)
            servos[servo] = position
            self.write(servos=servos)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectricsSpec(DeviceSpec):
    """Description of the controller board of a robot, which has no parameters."""

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
    """Return the controller board's fields of the SIP (status packet, pioneer-protocol §5).

    The fields are flags, the number and upper 8 bits of the selected analogue input, digital
    outputs, and the temperature in °C.
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
        # One column for each input, so that tables of readings stay flat.
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
"""Kind of device for controller boards; the battery is a separate kind."""


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
