"""The VDA 5050 protocol of driverless vehicles, version 2."""
