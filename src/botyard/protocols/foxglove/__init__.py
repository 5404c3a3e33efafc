"""Foxglove's WebSocket protocol, version 1: live data for Foxglove and Lichtblick.

The specification is in foxglove/ws-protocol on GitHub.
"""

from typing import Final

PORT: Final = 8765
"""Default port of Foxglove."""
SUBPROTOCOLS: Final = ("foxglove.sdk.v1", "foxglove.websocket.v1")
"""WebSocket subprotocols that clients request, with the same messages.

Clients from before 2025 request the second one.
"""
