"""The decorators of the engine's kernels; see `botyard.native.kernels`."""

from __future__ import annotations

from pathlib import Path

from botyard.native.kernels import entry_kernels
from botyard.native.packages import Package
from botyard.native.rows import rows_kernels

_ROOT = Path(__file__).resolve().parents[2]

PACKAGE = Package(
    "engine",
    [
        *(_ROOT / "engine").glob("kernels/*.py"),
        *(_ROOT / "engine").glob("batch*.py"),
        # Kernels outside of that folder, and modules whose constants are compiled into
        # kernels.
        *(
            _ROOT / name
            for name in (
                "engine/commands.py",
                "engine/episode_starts.py",
                "engine/layout.py",
                "engine/masslayout.py",
                "engine/step.py",
                "model/dynamics.py",
                "model/fourwheels.py",
                "model/kinematics.py",
                "model/materials.py",
                "model/obstacles.py",
                "model/steeredaxle.py",
                "native/hints.py",
                "numerics/elementary.py",
                "numerics/exponentials.py",
            )
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
