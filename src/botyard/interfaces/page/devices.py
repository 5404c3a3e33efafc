"""Readings of a selected robot's devices, as the page shows them.

The declaration of each kind of device (`botyard.model.devices.Device`) defines what is
shown.
"""

from __future__ import annotations

import logging
import math
from itertools import islice
from typing import Any, Final

from botyard.devices.devicereader import DeviceReader
from botyard.model.devices import Command, Field
from botyard.model.devicetables import MAX_DEVICES
from botyard.names import shown
from botyard.protocols.webgui.pushes import DeviceCommand, DeviceReading
from botyard.sim.simulation import Robot

MAX_ROWS: Final = 20
"""Largest number of rows of a reading that the page shows."""
MAX_MARKS: Final = 50
"""Largest number of markers of a reading."""
MAX_COMMANDS: Final = 20
"""Largest number of commands of an actuator that the page offers."""
MAX_TEXT: Final = 80

log = logging.getLogger("botyard.page")


def _text(column: Field, value: Any) -> str:
    """Return a value as text with its unit; angles are in degrees."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # The option z prints −0.0 as 0.0.
        if column.unit == "rad":
            return f"{math.degrees(value):z.1f}°"
        return f"{value:z.3f} {column.unit}".rstrip()

    return shown(f"{value} {column.unit}".rstrip(), MAX_TEXT)


def _reading(reader: DeviceReader[Any]) -> DeviceReading:
    kind = reader.kind
    reading = reader.read()
    # Read all rows, because the page states how many are not shown.
    found = reader.rows(reading) if kind.on_page else []
    rows = [
        [_text(column, value) for column, value in zip(kind.fields, row, strict=True)]
        for row in found[:MAX_ROWS]
    ]
    marks = (
        []
        if kind.marks is None
        else [*islice(kind.marks(reader.spec, reading), MAX_MARKS)]
    )
    return DeviceReading(
        device=reader.name,
        about=shown(kind.about, MAX_TEXT),
        columns=[column.name for column in kind.fields] if kind.on_page else [],
        rows=rows,
        more=len(found) - len(rows),
        marks=[
            (float(m.x), float(m.y), shown(m.text, MAX_TEXT))
            for m in marks
            # The sum is finite only if both coordinates are finite.
            if math.isfinite(m.x + m.y)
        ],
        commands=[_command(reader, c) for c in kind.commands[:MAX_COMMANDS]],
    )


def _command(reader: DeviceReader[Any], command: Command[Any]) -> DeviceCommand:
    low, high = command.limits(reader.spec)
    about, unit = shown(command.about, MAX_TEXT), shown(command.unit, MAX_TEXT)
    return DeviceCommand(
        name=command.name, about=about, low=float(low), high=float(high), unit=unit
    )


def device_readings(robot: Robot) -> list[DeviceReading]:
    """Return the readings of a robot's devices, and the commands of its actuators.

    A device that raises is shown with its error, and the error is logged.

    Parameters
    ----------
    robot : Robot
        The selected robot.

    Returns
    -------
    list of DeviceReading
        At most `MAX_DEVICES` devices, in the robot's order.
    """
    found = []
    on_page = [
        (name, reader)
        for name, reader in robot.devices.items()
        if reader.kind.on_page or reader.kind.commands
    ]
    for name, reader in on_page[:MAX_DEVICES]:
        try:
            found.append(_reading(reader))
        except Exception as error:
            # An error in the device of another package must not hide the other devices.
            log.debug(
                "robot %s: the device %s cannot be read",
                robot.name,
                name,
                exc_info=True,
            )
            about = shown(f"cannot be read: {(error.__cause__ or error)!r}", MAX_TEXT)
            found.append(
                DeviceReading(
                    device=name,
                    about=about,
                    columns=[],
                    rows=[],
                    more=0,
                    marks=[],
                    commands=[],
                )
            )

    return found


__all__ = ["device_readings"]
