"""Calibration of robot models from logs of real robots.

The package also compares logs of simulated robots with logs of real ones.

    from botyard.calibration import calibrate, read_log, read_truth

    spec = botyard.load_robot("p3dx")
    log = read_log(Path("drive.bag"), spec)
    found = calibrate([log], spec, truths=[read_truth(Path("mocap.csv"), spec)])
    found.value("wheel separation"), found.notes, found.robot
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botyard.calibration.calibration import Calibration, calibrate
    from botyard.calibration.comparing import Comparison, compare
    from botyard.calibration.log import Log, ScanSeries, Series
    from botyard.calibration.readers import read_log, read_truth

# Module of each public name, imported on first use: SciPy is slow to import.
_MODULE_OF = {
    "Calibration": "calibration",
    "Comparison": "comparing",
    "Log": "log",
    "ScanSeries": "log",
    "Series": "log",
    "calibrate": "calibration",
    "compare": "comparing",
    "read_log": "readers",
    "read_truth": "readers",
}

__all__ = [
    "Calibration",
    "Comparison",
    "Log",
    "ScanSeries",
    "Series",
    "calibrate",
    "compare",
    "read_log",
    "read_truth",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(
            importlib.import_module(f"botyard.calibration.{_MODULE_OF[name]}"), name
        )

    raise AttributeError(f"module 'botyard.calibration' has no attribute '{name}'")
