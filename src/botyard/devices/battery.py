"""A battery that drains while the robot works and charges on a dock (PIO-095, UNS-014)."""

from __future__ import annotations

from enum import IntEnum

from botyard.model.robot import BatterySpec

BULK_UNTIL = 80.0
"""State of charge, %, at which bulk charging ends …"""
FLOAT_FROM = 99.0
"""… and from which the charger only holds."""


class ChargeState(IntEnum):
    """What the charger does; numbers of the SIP (pioneer-protocol §5)."""

    NOT_CHARGING = 0
    BULK = 1
    OVERCHARGE = 2
    FLOAT = 3


class Battery:
    """State of one robot's battery; it persists between clients' sessions (HSK-017).

    Parameters
    ----------
    spec : BatterySpec
        The model's battery. Without a capacity it never changes by itself.

    Attributes
    ----------
    charge : float
        State of charge, %.
    on_dock : bool
        Whether charger power is there.
    """

    def __init__(self, spec: BatterySpec) -> None:
        self.spec = spec
        self.charge = spec.charge
        self.on_dock = False
        self._pretended: float | None = None

    @property
    def by_charge(self) -> bool:
        """Reported by its state of charge instead of its voltage."""
        return self.spec.by_charge

    @property
    def drains(self) -> bool:
        """Whether it is simulated."""
        return self.spec.capacity_wh > 0.0

    @property
    def volts(self) -> float:
        """Terminal voltage, V."""
        if self._pretended is not None:
            return self._pretended
        if not self.drains:
            return self.spec.volts
        return self.spec.empty_volts + (self.spec.volts - self.spec.empty_volts) * self.charge / 100.0

    @property
    def is_low(self) -> bool:
        """Too low to drive."""
        return self.drains and not self.on_dock and self.charge < self.spec.shutdown_charge

    @property
    def charge_state(self) -> ChargeState:
        """What the charger does."""
        if not (self.on_dock and self.drains):
            return ChargeState.NOT_CHARGING
        if self.charge < BULK_UNTIL:
            return ChargeState.BULK
        return ChargeState.OVERCHARGE if self.charge < FLOAT_FROM else ChargeState.FLOAT

    def pretend(self, value: int) -> None:
        """Test command 250: per cent for charge batteries, else decivolts; 0 ends the pretence.

        A simulated battery takes the charge that belongs to the value and goes on from there.
        """
        spec = self.spec
        self._pretended = None
        if spec.by_charge:
            self.charge = float(min(max(value, 0), 100)) if value else spec.charge
        elif not self.drains:
            self._pretended = value / 10.0 if value else None
        elif value:
            share = (value / 10.0 - spec.empty_volts) / max(spec.volts - spec.empty_volts, 1e-9)
            self.charge = 100.0 * min(max(share, 0.0), 1.0)
        else:
            self.charge = spec.charge

    def advance(self, dt: float, effort: float, on_dock: bool) -> None:
        """Let `dt` s pass.

        Parameters
        ----------
        effort : float
            Speed as a share of full speed, 0 … 1 (0 with motors off).
        on_dock : bool
            Whether the robot touches a dock's contacts.
        """
        self.on_dock = on_dock
        spec = self.spec
        power = -(spec.idle_power + spec.motor_power * effort)
        if on_dock:
            power += spec.charge_power if self.charge < FLOAT_FROM else -power
        self.charge = min(max(self.charge + 100.0 * power * dt / (spec.capacity_wh * 3600.0), 0.0), 100.0)
