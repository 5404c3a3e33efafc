"""The Pioneer protocol as the simulator carries it out."""
