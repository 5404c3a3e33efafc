"""The WebSocket server of rosbridge: the generic pump with rosbridge's limits."""

from __future__ import annotations

from typing import Any, Final

from botyard.protocols.rosbridge.session import MAX_FRAME
from botyard.servers.web.page import Guard
from botyard.servers.web.programguard import ProgramGuard
from botyard.servers.web.webpump import WebSocketPump

MAX_SENT: Final = 256 << 20
"""Longest message that is sent, bytes: a large map in JSON."""


class RosbridgePump(WebSocketPump):
    """The port of rosbridge."""

    longest_received = MAX_FRAME
    longest_sent = MAX_SENT
    bounds_output = True

    def _guarded(self, app: Any, hosts: set[str], any_address: bool) -> Guard:
        return ProgramGuard(
            app,
            hosts,
            any_address,
            self._options.get("token") or "",
            "--rosbridge-token",
        )


__all__ = ["RosbridgePump"]
