"""Decorators of the drawing kernels; see `botyard.native.kernels`."""

from __future__ import annotations

from pathlib import Path

from botyard.native.kernels import entry_kernels
from botyard.native.packages import Package

PACKAGE = Package("pictures", Path(__file__).resolve().parent.glob("*.py"))

entry_kernel, kernel = entry_kernels(PACKAGE), PACKAGE.kernel
inline_kernel = PACKAGE.inline_kernel

__all__ = ["PACKAGE", "entry_kernel", "inline_kernel", "kernel"]
