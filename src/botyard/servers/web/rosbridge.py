"""WebSocket server of rosbridge: the generic pump with rosbridge's limits."""

from __future__ import annotations

from typing import Any, Final

from botyard.protocols.rosbridge.session import MAX_FRAME
from botyard.servers.web.page import Guard
from botyard.servers.web.programguard import ProgramGuard
from botyard.servers.web.webpump import WebSocketPump

MAX_SENT: Final = 256 << 20
"""Maximum length of a message to a client, bytes.

A large map in JSON needs this much.
"""


class RosbridgePump(WebSocketPump):
    """WebSocket port of rosbridge."""

    longest_received = MAX_FRAME
    longest_sent = MAX_SENT
    # Rosbridge sessions drop old messages of slow clients themselves.
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
