"""Compiled functions (kernels) for drawing, which loop over the pixels of a picture."""
