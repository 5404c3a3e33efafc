"""Foxglove's WebSocket protocol, version 1 (the specification in foxglove/ws-protocol
on GitHub): live data for Foxglove and Lichtblick.
"""

from typing import Final

PORT: Final = 8765
"""The port that Foxglove proposes."""
SUBPROTOCOLS: Final = ("foxglove.sdk.v1", "foxglove.websocket.v1")
"""WebSocket subprotocols of clients: the second one is of clients from before 2025.
What is sent is the same.
"""
