"""The version of this package; `pyproject.toml` takes it from here."""

from typing import Final

__version__: Final = "0.1.0"
