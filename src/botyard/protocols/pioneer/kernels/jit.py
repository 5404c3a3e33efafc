"""Decorators of the kernels for reports; see `botyard.native.kernels`."""

from __future__ import annotations

from pathlib import Path

from botyard.native.kernels import entry_kernels
from botyard.native.packages import Package

PACKAGE = Package("pioneer", Path(__file__).resolve().parent.glob("*.py"))

entry_kernel, inline_kernel = entry_kernels(PACKAGE), PACKAGE.inline_kernel

__all__ = ["PACKAGE", "entry_kernel", "inline_kernel"]
