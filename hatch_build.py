"""Puts the built page into wheels and source archives."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _build_web() -> ModuleType | None:
    """``tools/build_web.py``; None in a source archive, which brings the page along."""
    path = Path(__file__).with_name("tools") / "build_web.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("build_web", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CustomBuildHook(BuildHookInterface):
    """Builds the page first."""

    def dependencies(self) -> list[str]:
        """Node as a Python package, where the system has none and the page must be built."""
        web = _build_web()
        if web is None or web.is_built() or web.system_node() is not None:
            return []
        return [web.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected. For an installation in place, ``make web`` builds the page."""
        web = _build_web()
        if version != "editable" and web is not None:
            web.build()
