"""Kernels that encode columns of the page's frames."""
