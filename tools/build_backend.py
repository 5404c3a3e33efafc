"""The build backend: Hatchling, which gives pip the metadata without building the wheel
first (PEP 517, PEP 660).

Hatchling leaves `prepare_metadata_for_build_wheel` out where pip asks, for build hooks
may change metadata. The hooks here do not. Without it, pip builds the whole wheel
behind "Preparing metadata". An editable installation builds nothing, so that it needs
none of the packages of `hatch_build.py` either.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

Settings = dict[str, Any] | None


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Write the metadata into a folder of its own, and return the folder's name."""
    from hatchling.builders.wheel import WheelBuilder

    builder = WheelBuilder(os.getcwd())
    folder = Path(metadata_directory, f"{builder.artifact_project_id}.dist-info")
    folder.mkdir(exist_ok=True)
    text = builder.config.core_metadata_constructor(builder.metadata)
    (folder / "METADATA").write_text(text, "utf-8")
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Return the requirements of Hatchling itself for an editable installation."""
    from hatchling.builders.constants import EDITABLES_REQUIREMENT

    return [EDITABLES_REQUIREMENT]


__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
