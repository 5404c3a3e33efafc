"""Kernels that draw: work on each pixel of a picture."""
