"""Decorators of the kernels of navigation; see `botyard.native.kernels`."""

from __future__ import annotations

from pathlib import Path

from botyard.native.kernels import entry_kernels
from botyard.native.packages import Package
from botyard.native.rows import rows_kernels

_BOTYARD = Path(__file__).resolve().parents[2]

PACKAGE = Package(
    "navigation",
    [
        *Path(__file__).resolve().parent.glob("*.py"),
        _BOTYARD / "numerics/elementary.py",
        _BOTYARD / "numerics/exponentials.py",
        _BOTYARD / "engine/kernels/jit.py",
        _BOTYARD / "engine/kernels/motion.py",
        _BOTYARD / "engine/kernels/trains.py",
        _BOTYARD / "engine/layout.py",
        _BOTYARD / "model/fourwheels.py",
        _BOTYARD / "model/kinematics.py",
        _BOTYARD / "model/steeredaxle.py",
    ],
)

entry_kernel, rows_kernel = entry_kernels(PACKAGE), rows_kernels(PACKAGE)
kernel, inline_kernel = PACKAGE.kernel, PACKAGE.inline_kernel

__all__ = ["PACKAGE", "entry_kernel", "inline_kernel", "kernel", "rows_kernel"]
