"""Version of this package; hatchling reads it from this file at build time."""

__version__ = "0.1.0"
