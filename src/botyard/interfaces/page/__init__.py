"""The page's interface to the simulator."""
