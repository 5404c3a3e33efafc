"""A robot's electrics as its controller board reports them: battery, digital lines, temperature."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.model.robot import BatterySpec


@dataclass(slots=True)
class Electrics:
    """Values that persist between clients' sessions (HSK-017).

    Attributes
    ----------
    battery : BatterySpec
        The model's battery.
    volts : float
        Terminal voltage, V; 0 is never reported for voltage batteries.
    charge : float
        State of charge, %.
    digin, digout : int
        Eight digital inputs (1: idle) and outputs.
    temperature : int
        °C; −128: no sensor.
    temperature_warning : bool
        Fault flag of the board.
    """

    battery: BatterySpec
    volts: float = 13.0
    charge: float = 100.0
    digin: int = 0xFF
    digout: int = 0xFF
    temperature: int = -128
    temperature_warning: bool = False

    @classmethod
    def of(cls, battery: BatterySpec) -> Electrics:
        """Electrics of a fresh robot."""
        return cls(battery=battery, volts=battery.volts, charge=battery.charge)

    def test_battery(self, value: int) -> None:
        """Pretend a battery state: per cent for charge batteries, else decivolts; 0 is the model's own (command 250)."""
        if self.battery.by_charge:
            self.charge = float(min(max(value, 0), 100)) if value else self.battery.charge
        else:
            self.volts = value / 10.0 if value else self.battery.volts

    def write_outputs(self, mask: int, states: int) -> None:
        """Set the outputs selected by `mask` to the bits of `states`."""
        self.digout = (self.digout & ~mask & 0xFF) | (states & mask & 0xFF)
