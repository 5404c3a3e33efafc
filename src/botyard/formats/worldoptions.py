"""Command-line options that a world file may set.

These options describe the world, its pace and its names. A world is untrusted data: it cannot set
files, addresses, ports, tokens, interfaces, logging or the page. Only the user who runs the
simulator can set these. Options with their own key in scenarios (`map`, `robots`, `resolution`) are
not included either. ``tests/cli/test_world_options.py`` compares this module with the options of
``botyard run``, each of which declares whether it is included.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.errors import did_you_mean
from botyard.names import MAX_NAME

_Flag = bool | UnsetType
_Milliseconds = Annotated[int, Meta(ge=1, le=60_000)] | UnsetType
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | UnsetType
_ModelName = Annotated[str, Meta(pattern=r"^[^/\\.]+$", max_length=MAX_NAME)]
_Start = Annotated[str, Meta(max_length=MAX_NAME)]
_Seed = Annotated[
    int, Meta(extra_json_schema={"minimum": MIN_SEED, "maximum": MAX_SEED})
]
"""Type of a seed. Its 64-bit bounds, which exceed msgspec's `Meta`, are checked elsewhere."""
MAX_STARTS: Final = 10_000
"""Largest number of start poses in a world file."""
MAX_FACTORIES: Final = 100
"""Largest number of robot factories that a world may request."""


class WorldOptions(
    msgspec.Struct,
    kw_only=True,
    rename="kebab",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Options that a world file sets, by long name, with the limits of the command line."""

    controller: _Name = UNSET
    duration: Annotated[float, Meta(gt=0.0, le=1e9)] | UnsetType = UNSET
    fast: _Flag = UNSET
    gripper_layout: Literal["aria", "p2os"] | UnsetType = UNSET
    no_error: _Flag = UNSET
    no_srisim_laser_compat: _Flag = UNSET
    odom_error_mode: (
        Literal["random_each_update", "random_init", "constant", "none"] | UnsetType
    ) = UNSET
    robot_factory: (
        Annotated[list[_ModelName], Meta(max_length=MAX_FACTORIES)] | UnsetType
    ) = UNSET
    robot_name: _Name = UNSET
    localization: Literal["truth", "none"] | UnsetType = UNSET
    ros_frames: Literal["plain", "prefixed"] | UnsetType = UNSET
    ros_map: Literal["on", "off"] | UnsetType = UNSET
    ros_names: (
        Literal["default", "nav2", "loopback", "amrisim", "stage", "rosaria"]
        | UnsetType
    ) = UNSET
    ros_time: Literal["sim", "wall"] | UnsetType = UNSET
    ambf_namespace: _Name = UNSET
    scan_rate: Annotated[float, Meta(ge=0.0, le=1e6)] | UnsetType = UNSET
    seed: _Seed | UnsetType = UNSET
    sensor_noise: Literal["stock", "none"] | UnsetType = UNSET
    simulate_batteries: _Flag = UNSET
    start: _Start | Annotated[list[_Start], Meta(max_length=MAX_STARTS)] | UnsetType = (
        UNSET
    )
    threads: Annotated[int, Meta(ge=1, le=256)] | UnsetType = UNSET
    update_interval: _Milliseconds = UNSET
    update_sim_time: _Milliseconds = UNSET


WORLD_OPTIONS: Final = frozenset(
    field.encode_name for field in msgspec.structs.fields(WorldOptions)
)
"""Long names of the options that a world file may set."""
_KEYS: Final = {
    "map": "map",
    "stageworld": "map",
    "robot": "robots",
    "resolution": "resolution",
}


def refusal(name: str) -> str | None:
    """Return the reason why a world file may not set an option.

    Parameters
    ----------
    name : str
        Long name of a command-line option, without dashes.

    Returns
    -------
    str or None
        End of an error message; None if a world may set it.
    """
    if name in WORLD_OPTIONS:
        return None
    if name in _KEYS:
        return f'expected the key "{_KEYS[name]}" of the file instead'
    # The user may have misspelt an allowed option.
    hint = did_you_mean(name, WORLD_OPTIONS)
    return (
        "a world file cannot set this option; use the command line or your own "
        f"--config file{hint}"
    )


def as_mapping(options: WorldOptions) -> dict[str, Any]:
    """Return the options that a world file sets, by long name."""
    found: dict[str, Any] = msgspec.to_builtins(options)
    return found


__all__ = ["MAX_FACTORIES", "WORLD_OPTIONS", "WorldOptions", "as_mapping", "refusal"]
