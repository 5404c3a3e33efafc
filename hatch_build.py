"""Puts what is built, and not committed, into wheels and source archives: the page, and
the shared library of kernels.

A wheel with a library is one for a platform. ``BOTYARD_TARGET=linux-aarch64`` (see
`botyard.native.build.TARGETS`) makes one for another than this; ``BOTYARD_TARGET=any``
one without a library, which compiles kernels where it runs.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
TAGS = {
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "darwin-x86_64": "macosx_11_0_x86_64",
    "darwin-aarch64": "macosx_11_0_arm64",
    "win32-x86_64": "win_amd64",
}
"""What wheels for a platform are called; the library needs nothing of the system but
the functions that every process has.
"""


def _build_web() -> ModuleType | None:
    """``tools/build_web.py``; None in a source archive, which brings the page along."""
    if not (ROOT / "tools" / "build_web.py").is_file():
        return None
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("build_web")
    finally:
        sys.path.pop(0)


def _target() -> str:
    """What platform a wheel is made for; "any": for none."""
    sys.path.insert(0, str(ROOT / "src"))
    try:
        from botyard.native.shipped import (
            # needs nothing but the standard library
            this_platform,
        )
    finally:
        sys.path.pop(0)

    target = os.environ.get("BOTYARD_TARGET", this_platform())
    return target if target in TAGS else "any"


class CustomBuildHook(BuildHookInterface):
    """Builds both first, and says so (pip shows it with ``-v``)."""

    def dependencies(self) -> list[str]:
        """What building needs: the package's own libraries and Numba, a linker, and
        Node, where the system has none.
        """
        web = _build_web()
        needed = (
            []
            if web is None or web.is_built() or web.system_node() is not None
            else [web.NODE_PACKAGE]
        )
        if self.target_name == "wheel" and _target() != "any":
            project = self.metadata.core_raw_metadata
            needed += [
                *project["dependencies"],
                *project["optional-dependencies"]["jit"],
            ]
            if shutil.which("cc") is None or "BOTYARD_TARGET" in os.environ:
                needed.append("ziglang>=0.13")

        return needed

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected. For an installation in place, ``make``
        builds both.
        """
        if version == "editable":
            return
        web = _build_web()
        if web is not None:
            self.app.display_info(
                "building the page with Node and npm (npm's registry is asked for its packages)"
            )
            web.build()

        if self.target_name != "wheel":
            return
        target = _target()
        folder = ROOT / "src" / "botyard" / "native" / "lib"
        if target == "any":
            shutil.rmtree(folder, ignore_errors=True)
            return

        self.app.display_info(
            f"compiling all kernels for {target} (minutes; BOTYARD_TARGET=any "
            "leaves them to the first run)"
        )
        # pip names what it has installed for the build in PYTHONPATH, too
        folders = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        subprocess.run(
            [sys.executable, "-m", "tools.kernels", "--target", target],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            check=True,
        )
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[target]}"
