"""Battery that drains while the robot works and charges on a dock (PIO-095, UNS-014)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.devices.devicetable import DeviceTable
from botyard.engine.layout import F8, I1, I8
from botyard.engine.tables import NOBODY, Column, Row, cell
from botyard.model.devices import Device, Field, PioneerFields, RosMessage
from botyard.model.objects import Described
from botyard.model.readings import ChargeState
from botyard.model.robot import BatterySpec, RobotSpec
from botyard.model.rosmessages import OWN
from botyard.numerics import elementwise
from botyard.units import TWO_PI, to_int_saturated

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.simulation import Engine
    from botyard.model.scene import Place, Scene

# The usual charge profile of lead-acid batteries: bulk, overcharge, float.
BULK_UNTIL = 80.0
"""State of charge, %, at which bulk charging ends and overcharging starts."""
FLOAT_FROM = 99.0
"""State of charge, %, from which the charger only holds the charge (float mode)."""
# Tolerances of a mechanical dock, which guides a robot that arrives nearly right.
DOCK_DISTANCE: Final = 0.35
"""Distance from a dock within which a robot touches the dock's charging contacts, m."""
DOCK_ANGLE: Final = math.radians(30)
"""Angle from a dock's heading within which a robot touches the charging contacts, rad."""


class Batteries(DeviceTable):
    """Batteries of all robots.

    Attributes
    ----------
    charge : (n,) float64
        State of charge, %.
    pretended : (n,) float64
        Voltage set by a test command, V; NaN: none.
    on_dock : (n,) int8
        0 or 1: whether the battery is connected to a charger.
    capacity : (n,) float64
        Energy when full, Wh; 0: the battery is not simulated, and its charge is constant.
    idle_power, motor_power, charge_power : (n,) float64
        See `BatterySpec`, W.
    shutdown : (n,) float64
        State of charge, %, below which the motors are switched off.
    """

    name = "battery"
    columns: ClassVar = {
        "charge": Column(np.float64, low=0.0, high=100.0),
        # NaN means that the voltage comes from the model; every number is a valid
        # voltage.
        "pretended": Column(np.float64, start=math.nan, unbounded=True),
        "on_dock": Column(np.int8, high=1, low=0),
        **{
            # Constants of the model: a restored world takes them from its description.
            n: Column(np.float64, saved=False)
            for n in (
                "capacity",
                "idle_power",
                "motor_power",
                "charge_power",
                "shutdown",
            )
        },
    }
    charge: F8
    pretended: F8
    on_dock: I1
    capacity: F8
    idle_power: F8
    motor_power: F8
    charge_power: F8
    shutdown: F8

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return the keys of the table's rows: the name of each robot."""
        return set(robots)

    def __init__(self) -> None:
        super().__init__()
        # −1 is not the number of any layout, so that the first use computes the rows.
        self._found: tuple[int, I8] = -1, np.zeros(0, np.int64)
        self._docks: tuple[Scene | None, list[Place]] = None, []

    inhibits = True

    def inhibited(self) -> I8:
        """Return the rows of the robots whose battery is too low to drive."""
        rows = self.draining
        return self.body[rows[self.is_low(rows)]] if len(rows) else rows

    def is_low(self, rows: I8) -> NDArray[np.bool_]:
        """Return whether simulated batteries are too low to drive.

        A charging battery is not too low.

        Parameters
        ----------
        rows : (k,) int64
            Rows of simulated batteries.

        Returns
        -------
        (k,) bool
            One answer for each row.
        """
        # A charging robot must be able to leave its dock.
        low: NDArray[np.bool_] = (self.on_dock[rows] == 0) & (
            self.charge[rows] < self.shutdown[rows]
        )
        return low

    @property
    def draining(self) -> I8:
        """Rows of the simulated batteries, (k,) int64."""
        # Cached, because few robots have a simulated battery and rows seldom change.
        if self._found[0] != self.layout:
            self._found = self.layout, np.flatnonzero(self.capacity > 0.0)
        return self._found[1]

    @property
    def is_idle(self) -> bool:
        """Whether no battery drains."""
        return not len(self.draining)

    def act(self, engine: Engine, dt: float) -> None:
        """Advance all batteries, and switch off the motors of low ones.

        Parameters
        ----------
        engine : Engine
            Engine that has these batteries.
        dt : float
            Duration of the step, s.
        """
        rows = self.draining
        if not len(rows):
            return
        s, bodies = engine.state, self.body[rows]
        # The bound avoids a division by zero for an axis without a top speed.
        share = np.abs(s.vel[bodies]) / np.maximum(s.top_vel[bodies], 1e-9)
        effort = np.where(
            s.motors[bodies] != 0, np.minimum(share.max(axis=1), 1.0), 0.0
        )
        self.advance(
            rows, dt, effort, docked(self._docks_of(engine.scene), s.pose[bodies])
        )
        engine.inhibit()

    def _docks_of(self, scene: Scene) -> list[Place]:
        # Search the docks once for each map, because a map may have thousands of
        # places.
        if self._docks[0] is not scene:
            self._docks = (
                scene,
                [place for place in scene.places if "dock" in place.kind.lower()],
            )

        return self._docks[1]

    def advance(self, rows: I8, dt: float, effort: F8, on_dock: I1) -> None:
        """Charge or discharge the batteries in `rows` for `dt` s.

        Parameters
        ----------
        rows : (k,) int64
            Rows of simulated batteries.
        dt : float
            Time, s.
        effort : (k,) float64
            Speed as a fraction of full speed, 0 … 1 (0 with motors off).
        on_dock : (k,) int8
            0 or 1: whether the robot touches the contacts of a dock.
        """
        self.on_dock[rows] = on_dock
        charge = self.charge[rows]
        power = -(self.idle_power[rows] + self.motor_power[rows] * effort)
        # The charger holds a full battery: it neither drains nor charges.
        charging = np.where(charge < FLOAT_FROM, power + self.charge_power[rows], 0.0)
        power = np.where(on_dock != 0, charging, power)
        # Wh times 3600 is J, and power is in W.
        self.charge[rows] = np.clip(
            charge + 100.0 * power * dt / (self.capacity[rows] * 3600.0), 0.0, 100.0
        )


def docked(docks: Sequence[Place], poses: F8) -> I1:
    """Return which robots touch the charging contacts of a dock.

    Parameters
    ----------
    docks : sequence of Place
        Docks of the map. One without a heading charges robots with any heading.
    poses : (n, 3) float64
        True poses of the robots: m, m, rad.

    Returns
    -------
    (n,) int8
        1 for each robot that touches the contacts, otherwise 0.
    """
    # A loop over docks, of which a map has few, and arrays over robots.
    found = np.zeros(len(poses), np.int8)
    for dock in docks:
        near = (
            elementwise.hypot(poses[:, 0] - dock.pose.x, poses[:, 1] - dock.pose.y)
            <= DOCK_DISTANCE
        )
        if dock.has_heading:
            # Wrapped, because headings of π and −π are equal.
            turn = np.remainder(dock.pose.th - poses[:, 2] + math.pi, TWO_PI) - math.pi
            # A dock with a heading charges only a robot that faces it.
            near &= np.abs(turn) <= DOCK_ANGLE

        found[near] = 1

    return found


class Battery(Row[Batteries]):
    """Battery state of one robot, which persists between sessions of clients (HSK-017).

    Parameters
    ----------
    spec : BatterySpec
        Battery of the model. Without a capacity its charge stays constant.
    table : Batteries, optional
        Table that holds its columns. Default: a table of its own.
    body : int
        Row of the robot.
    key : str
        Name of the robot.

    Attributes
    ----------
    charge : float
        State of charge, %.
    on_dock : bool
        Whether charger power is available.
    """

    charge = cell(float)
    on_dock: bool = cell(bool)
    pretended = cell(float)

    def __init__(
        self,
        spec: BatterySpec,
        table: Batteries | None = None,
        body: int = NOBODY,
        key: str = "",
    ) -> None:
        self.spec = spec
        super().__init__(
            Batteries() if table is None else table,
            body,
            key,
            charge=spec.charge,
            capacity=spec.capacity_wh,
            idle_power=spec.idle_power,
            motor_power=spec.motor_power,
            charge_power=spec.charge_power,
            shutdown=spec.shutdown_charge,
        )

    @property
    def by_charge(self) -> bool:
        """Whether reports contain the state of charge in place of the voltage."""
        return self.spec.by_charge

    @property
    def drains(self) -> bool:
        """Whether the battery is simulated, so that its charge changes."""
        return self.spec.capacity_wh > 0.0

    @property
    def volts(self) -> float:
        """Terminal voltage, V."""
        spec, pretended = self.spec, self.pretended
        # A test command overrides every model of the voltage.
        if not math.isnan(pretended):
            return pretended
        if not self.drains:
            return spec.volts
        # Linear between empty and full: models have no discharge curve.
        return spec.empty_volts + (spec.volts - spec.empty_volts) * self.charge / 100.0

    @property
    def is_low(self) -> bool:
        """Whether the battery is too low to drive."""
        return self.drains and bool(self.table.is_low(np.array([self.number]))[0])

    @property
    def charge_state(self) -> ChargeState:
        """State of the battery's charger."""
        if not (self.on_dock and self.drains):
            return ChargeState.NOT_CHARGING
        # Read the charge once, because each access looks up the cell of the table.
        charge = self.charge
        if charge < BULK_UNTIL:
            return ChargeState.BULK
        return ChargeState.OVERCHARGE if charge < FLOAT_FROM else ChargeState.FLOAT

    def pretend(self, value: int) -> None:
        """Override the battery state (test command 250).

        A simulated battery gets the charge that corresponds to the value, and then drains
        or charges from this charge.

        Parameters
        ----------
        value : int
            State of charge, %, for batteries that report it, otherwise voltage, 1/10 V;
            0 ends the override.
        """
        spec = self.spec
        # A new test replaces the previous one.
        self.pretended = math.nan
        if spec.by_charge:
            # 0 ends the test, and restores the charge of the model.
            self.charge = float(min(max(value, 0), 100)) if value else spec.charge
        # Without a simulated charge only the reported voltage can change.
        elif not self.drains:
            self.pretended = value / 10.0 if value else math.nan
        elif value:
            # The bound avoids a division by zero if empty and full have one voltage.
            share = (value / 10.0 - spec.empty_volts) / max(
                spec.volts - spec.empty_volts, 1e-9
            )
            self.charge = 100.0 * min(max(share, 0.0), 1.0)
        else:
            self.charge = spec.charge

    def advance(self, dt: float, effort: float, on_dock: bool) -> None:
        """Charge or discharge this battery alone; see `Batteries.advance`.

        Parameters
        ----------
        dt : float
            Time, s.
        effort : float
            Speed as a fraction of full speed, 0 … 1.
        on_dock : bool
            Whether the robot touches the contacts of a dock.
        """
        self.table.advance(
            np.array([self.number]),
            dt,
            np.array([effort]),
            np.array([on_dock], np.int8),
        )


class BatteryReading(NamedTuple):
    """Reading of a battery.

    Attributes
    ----------
    volts : float
        Terminal voltage, V.
    charge : float
        State of charge, %.
    charge_state : ChargeState
        State of the charger.
    on_dock : bool
        Whether charger power is available.
    is_low : bool
        Whether the battery is too low to drive.
    """

    volts: float
    charge: float
    charge_state: ChargeState
    on_dock: bool
    is_low: bool


def _read(_: BatterySpec, view: View) -> BatteryReading:
    battery: Battery = view.part_of_robot
    return BatteryReading(
        battery.volts,
        battery.charge,
        battery.charge_state,
        battery.on_dock,
        battery.is_low,
    )


def _bits(spec: BatterySpec, found: BatteryReading) -> dict[str, int]:
    """Return the battery's fields of the SIP (status packet, pioneer-protocol §5).

    The fields are the voltage in 1/10 V or the state of charge in %, and the state of the charger.
    """
    # Robots that report the state of charge leave the voltage 0.
    decivolts = 0 if spec.by_charge else to_int_saturated(found.volts * 10.0, 0, 0xFFFF)
    return {
        # The older field has one byte; `battery10` holds the full value.
        "battery": min(decivolts, 0xFF),
        "battery10": decivolts,
        "charge_state": int(found.charge_state),
        "soc": to_int_saturated(found.charge, 0, 100) if spec.by_charge else 0,
        # Bit 10 of the flags: charger power is available.
        "flags": (found.on_dock and spec.capacity_wh > 0.0) << 10,
    }


# Values of sensor_msgs/BatteryState.power_supply_status
_CHARGING, _DISCHARGING, _FULL = 1, 2, 4
# All other states of the charger count as charging.
_STATUS: Final = {ChargeState.NOT_CHARGING: _DISCHARGING, ChargeState.FLOAT: _FULL}


def _message(spec: BatterySpec, found: BatteryReading) -> dict[str, Any]:
    """Return a sensor_msgs/BatteryState; quantities that are not measured are NaN.

    The current of a charging battery is the charger's less the idle load, A. Nav2's docking
    waits until it is above a threshold.
    """
    nan, capacity = math.nan, spec.capacity_wh
    current = nan
    if found.charge_state is ChargeState.FLOAT:
        current = 0.0
    elif found.charge_state is not ChargeState.NOT_CHARGING and found.volts > 0.0:
        current = (spec.charge_power - spec.idle_power) / found.volts
    return {
        "voltage": found.volts,
        "temperature": nan,
        "current": current,
        "charge": nan,
        "capacity": nan,
        # Wh divided by V gives the Ah of the message.
        "design_capacity": capacity / found.volts if capacity and found.volts else nan,
        "percentage": found.charge / 100.0,
        "power_supply_status": _STATUS.get(found.charge_state, _CHARGING),
        "present": True,
    }


_ARIA: Final = (*OWN, "rosaria")
BATTERY: Final = Device(
    name="battery",
    part="electrics.battery",
    about="the battery",
    spec=BatterySpec,
    read=_read,
    fields=(
        Field("volts", "V"),
        Field("charge", "%"),
        Field("charge_state", kind=int),
        Field("on_dock", kind=bool),
        Field("is_low", kind=bool),
    ),
    rows=lambda found: [
        (
            found.volts,
            found.charge,
            int(found.charge_state),
            found.on_dock,
            found.is_low,
        )
    ],
    table=Batteries,
    ros=(
        RosMessage(
            topic="battery_voltage",
            type_name="std_msgs/Float64",
            fields=lambda _, found: {"data": found.volts},
            about="battery voltage, V",
            period=1.0,
            profiles=_ARIA,
        ),
        RosMessage(
            topic="battery_state_of_charge",
            type_name="std_msgs/Float32",
            fields=lambda _, found: {"data": found.charge / 100.0},
            about="state of charge, 0 … 1",
            period=1.0,
            profiles=_ARIA,
        ),
        RosMessage(
            topic="battery_recharge_state",
            type_name="std_msgs/Int8",
            fields=lambda _, found: {"data": int(found.charge_state)},
            about="charger state",
            version=lambda found: int(found.charge_state),
            period=1.0,
            profiles=_ARIA,
        ),
        RosMessage(
            topic="battery_state",
            type_name="sensor_msgs/BatteryState",
            fields=_message,
            about="battery state with voltage, percentage and charger status",
            period=1.0,
            frame=None,
        ),
    ),
    pioneer=PioneerFields(report=_bits, is_steady=lambda spec: spec.capacity_wh <= 0.0),
    on_page=False,
)


__all__ = ["BATTERY", "Batteries", "Battery", "BatteryReading", "docked"]
