"""Decorators of the kernels for frames of the page; see `botyard.native.kernels`."""

from __future__ import annotations

from pathlib import Path

from botyard.native.kernels import entry_kernels
from botyard.native.packages import Package

PACKAGE = Package("webgui", Path(__file__).resolve().parent.glob("*.py"))

entry_kernel = entry_kernels(PACKAGE)

__all__ = ["PACKAGE", "entry_kernel"]
