"""Names that `Simulation` had before; they work for one release.

Each use gives a DeprecationWarning with the new name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MOVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{
            name: f"core.{name}"
            for name in (
                "belong_to",
                "box_names",
                "colors",
                "describe",
                "engine",
                "feed",
                "holders",
                "is_pending",
                "is_served",
                "placements",
                "range_step",
                "sensor_noise",
                "threads",
                "timing",
                "unique_name",
                "unique_names",
                "unserve",
                "warn_by",
            )
        },
        **{
            name: f"masses.{name}"
            for name in (
                "dynamics",
                "pull_to",
                "push",
                "set_dynamics",
                "throw",
                "wrench",
            )
        },
        "branch": "core.states.branch",
        "crash_program": "core.programs.crash",
        "crowd": "core.overlap_limit",
        "described": "core.descriptions.described",
        "drive": "core.assign_program",
        "end_program": "core.programs.end",
        "free_place": "core.places.one_near",
        "free_places": "core.places.near",
        "home": "core.places.home",
        "is_free_for": "core.places.is_free_for",
        "joints": "core.descriptions.joints",
        "journal": "core.journal.listen",
        "know": "core.states.know",
        "models": "core.states.models",
        "next_places": "core.places.next",
        "not_before_step": "core.programs.take_off",
        "on_close": "core.on_close",
        "populate": "botyard.sim.worldfiles.populate",
        "programs": "core.programs.by_robot",
        "random_free_place": "core.places.random",
        "rays": "core.descriptions.rays",
        "rest_program": "core.programs.rest",
        "save_moment": "core.states.save_moment",
        "submit": "core.accept_command",
        "submit_velocities": "core.accept_velocities",
        "world": "botyard.sim.worldfiles.world_of",
    }
)
"""New name of each old one.

A name is a path of attributes from the simulation, or a function of a module that takes
the simulation first.
"""

__all__ = ["MOVED"]
