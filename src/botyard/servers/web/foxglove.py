"""WebSocket server of the Foxglove protocol: the generic pump with its limits."""

from __future__ import annotations

from typing import Any, Final

from botyard.protocols.foxglove import SUBPROTOCOLS
from botyard.protocols.foxglove.session import MAX_MESSAGE
from botyard.servers.web.page import Guard
from botyard.servers.web.programguard import ProgramGuard
from botyard.servers.web.webpump import WebSocketPump

MAX_SENT: Final = 256 << 20
"""Maximum length of a message to a client, bytes; a large map needs this much."""


class FoxglovePump(WebSocketPump):
    """WebSocket port of the Foxglove protocol."""

    longest_received = MAX_MESSAGE
    longest_sent = MAX_SENT
    # Foxglove sessions drop old messages of slow clients themselves.
    bounds_output = True
    subprotocols = SUBPROTOCOLS

    def _guarded(self, app: Any, hosts: set[str], any_address: bool) -> Guard:
        return ProgramGuard(
            app,
            hosts,
            any_address,
            self._options.get("token") or "",
            "--foxglove-token",
        )


__all__ = ["FoxglovePump"]
