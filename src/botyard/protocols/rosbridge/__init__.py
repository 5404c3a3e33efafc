"""The rosbridge protocol v2."""

from typing import Final

PORT: Final = 9090
"""Port of rosbridge_server."""
