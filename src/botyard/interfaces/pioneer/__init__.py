"""Interface between the Pioneer protocol and the simulator."""
