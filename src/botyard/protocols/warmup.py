"""Loads or compiles the kernels of the protocols before the first client connects."""

from __future__ import annotations

import numpy as np

from botyard.protocols.pioneer.warmup import warm_up as warm_up_reports
from botyard.protocols.webgui.kernels.units import write_units


def warm_up() -> None:
    """Call each kernel once, without a client."""
    warm_up_reports()
    write_units(np.zeros(0), np.zeros(0, np.int64), 1.0, np.zeros((0, 0), np.uint16))


__all__ = ["warm_up"]
