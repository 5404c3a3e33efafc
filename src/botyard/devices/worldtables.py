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
"""Tables of every world in the order of their actions in a step and in a saved state.

Tables of other kinds are added with the first device of the kind.
"""


def expected_rows(
    robots: Mapping[str, RobotSpec], described: Described
) -> dict[str, set[str]]:
    """Return `Row.key` of all rows in a world with these robots and joints, by table."""
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
