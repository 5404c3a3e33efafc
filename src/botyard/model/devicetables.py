"""Reader and writer of the ``[[devices]]`` tables of robot files.

The fields of a device's description define the keys of its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from botyard.errors import ModelError
from botyard.model.devices import CARRIED, DeviceSpec, find_device, is_default
from botyard.model.filetables import file_table
from botyard.model.tablecheck import TableError, checked
from botyard.names import shown

MAX_DEVICES: Final = 100
"""Largest number of devices on a robot, in addition to its lasers and its sonar ring.
"""
MAX_ITEMS: Final = 10_000
"""Largest number of elements of a list among the parameters of a device."""


def spec_of(name: str, table: Mapping[str, Any]) -> DeviceSpec:
    """Return the device that a table of a robot file describes; angles are in degrees.

    Parameters
    ----------
    name : str
        Kind of the device, as `find_device` knows it.
    table : mapping
        Keys of the table without ``type``.

    Raises
    ------
    ModelError
        A value is invalid. The message names the key, the expected and the found value.
    """
    # Bound the lists first: the check of types visits each element.
    _check_lengths(table)
    file = file_table(find_device(name).spec)
    try:
        return cast(
            DeviceSpec, file.read(checked(dict(table), file.type, strict=False))
        )
    except TableError as error:
        raise error.inside(name) from None


def _check_lengths(value: Any) -> None:
    if isinstance(value, (list, tuple)) and len(value) > MAX_ITEMS:
        raise ModelError(f"expected at most {MAX_ITEMS} values, found {len(value)}")
    if isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            _check_lengths(one)


def table_of(spec: DeviceSpec) -> dict[str, Any]:
    """Return the robot-file table that describes a device.

    `spec_of` turns the table back into the same device, except for rounding of the last
    digits of angles.
    """
    return file_table(type(spec)).write(spec)


def devices_of(tables: Sequence[Mapping[str, Any]]) -> tuple[DeviceSpec, ...]:
    """Return the devices that the ``[[devices]]`` tables of a robot file describe.

    Parameters
    ----------
    tables : sequence of mappings
        One table for each device, in the order of the file. ``type`` is the kind.

    Returns
    -------
    tuple of DeviceSpec
        Devices in the same order. An empty description, which stands for the
        absence of a device, is left out.

    Raises
    ------
    ModelError
        A table has no ``type`` or is invalid, or there are more than `MAX_DEVICES`.
    """
    if len(tables) > MAX_DEVICES:
        raise ModelError(f"expected at most {MAX_DEVICES} devices, found {len(tables)}")
    found: list[DeviceSpec] = []
    count = Counter[str]()
    for table in tables:
        name = table.get("type")
        if not isinstance(name, str):
            keys = ", ".join(map(shown, table)) or "no key"
            raise ModelError(
                f'devices: expected the key "type" in each table, found one with {keys}'
            )

        if name in CARRIED:
            raise ModelError(
                "devices: expected devices that have no table of their own, found "
                f'"{name}", which belongs in the table "{CARRIED[name]}"'
            )

        count[name] += 1
        try:
            spec = spec_of(name, {k: v for k, v in table.items() if k != "type"})
        except ModelError as error:
            if count[name] == 1:
                raise
            # Several devices share the type, so the message says which one is wrong.
            raise ModelError(f"{name} number {count[name]}: {error}") from None

        # The model lists no device that is absent (empty), or that every robot has
        # (default).
        if not spec.is_empty and not is_default(spec):
            found.append(spec)

    return tuple(found)


__all__ = ["MAX_DEVICES", "devices_of", "spec_of", "table_of"]
