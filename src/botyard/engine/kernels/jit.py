"""The decorators of the engine's kernels; see `botyard.native.kernels`."""

from __future__ import annotations

from pathlib import Path

from botyard.native.kernels import entry_kernels, rows_kernels
from botyard.native.packages import Package

_ENGINE = Path(__file__).resolve().parent.parent

PACKAGE = Package(
    "engine",
    [
        *_ENGINE.glob("*.py"),
        *_ENGINE.glob("kernels/*.py"),
        *(
            _ENGINE.parent / name
            for name in ("numerics/elementary.py", "model/dynamics.py")
        ),
    ],
)

entry_kernel, rows_kernel, kernel = (
    entry_kernels(PACKAGE),
    rows_kernels(PACKAGE),
    PACKAGE.kernel,
)
inline_kernel, merged_kernel = PACKAGE.inline_kernel, PACKAGE.merged_kernel

__all__ = [
    "PACKAGE",
    "entry_kernel",
    "inline_kernel",
    "kernel",
    "merged_kernel",
    "rows_kernel",
]
