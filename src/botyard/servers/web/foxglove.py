"""The WebSocket server of Foxglove's protocol: the generic pump with its limits and
subprotocols.
"""

from __future__ import annotations

from typing import Any, Final

from botyard.protocols.foxglove import SUBPROTOCOLS
from botyard.protocols.foxglove.session import MAX_MESSAGE
from botyard.servers.web.page import Guard
from botyard.servers.web.programguard import ProgramGuard
from botyard.servers.web.webpump import WebSocketPump

MAX_SENT: Final = 256 << 20
"""Longest message that is sent, bytes: a large map."""


class FoxglovePump(WebSocketPump):
    """The port of Foxglove."""

    longest_received = MAX_MESSAGE
    longest_sent = MAX_SENT
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
