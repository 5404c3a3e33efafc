"""Kernels that serve all Pioneer sessions of a simulation together."""
