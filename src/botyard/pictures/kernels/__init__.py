"""Kernels for drawing: work on each pixel of a picture."""
