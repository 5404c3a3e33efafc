"""The Pioneer protocol's interface to the simulator."""
