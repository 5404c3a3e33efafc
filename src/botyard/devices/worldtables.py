"""Tables that every world has, and the rows that a saved state must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from botyard.devices.battery import Batteries
from botyard.devices.devicereader import memory_key
from botyard.devices.devicetable import DeviceTable
from botyard.devices.electrics import Boards
from botyard.devices.grippertable import Grippers
from botyard.devices.joints import Joints
from botyard.model.devices import find_device, names_of
from botyard.model.objects import Described
from botyard.model.robot import RobotSpec

WORLD_TABLES: Final[tuple[type[DeviceTable], ...]] = (
    Grippers,
    Joints,
    Batteries,
    Boards,
)
"""Classes of the tables that each world has, in the order of a step and of a saved state.

Tables of other kinds are added with the first device of the kind.
"""


def expected_rows(
    robots: Mapping[str, RobotSpec], described: Described
) -> dict[str, set[str]]:
    """Return the keys (`Row.key`) of all rows that a world with these robots and joints must have.

    Parameters
    ----------
    robots : mapping of str to RobotSpec
        Models of the robots by name.
    described : Described
        Joints and bodies of description files.
    """
    found = {table.name: table.keys(robots, described) for table in WORLD_TABLES}
    for name, model in robots.items():
        # The equipment of most models is in the tables above; looking up kinds is slow.
        if not model.devices:
            continue
        for device, spec in zip(
            names_of(model.equipment), model.equipment, strict=True
        ):
            kind = find_device(spec.type)
            # Parts of the robot, such as its battery, have their rows in the tables
            # above.
            if kind.table is not None and not kind.part:
                found.setdefault(kind.table.name, set()).add(memory_key(name, device))

    return found


__all__ = ["WORLD_TABLES", "expected_rows"]
