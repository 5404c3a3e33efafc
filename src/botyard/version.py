"""The version of this package; hatchling reads it from here, as it stands, when it
builds the package.
"""

__version__ = "0.1.0"
