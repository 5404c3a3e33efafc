"""The rosbridge protocol v2."""

from typing import Final

PORT: Final = 9090
"""Default port of rosbridge_server."""
