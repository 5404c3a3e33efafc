"""WebSocket servers for robot programs: the generic pump with protocol limits."""

from __future__ import annotations

from typing import Any, Final

from botyard.protocols import foxglove
from botyard.protocols.foxglove.limits import MAX_MESSAGE
from botyard.protocols.rosbridge.limits import MAX_FRAME
from botyard.servers.web.pageguard import Guard
from botyard.servers.web.programguard import ProgramGuard
from botyard.servers.web.webpump import WebSocketPump

MAX_SENT: Final = 256 << 20
"""Maximum length of a message to a client, bytes; a large map needs this much."""


class _ProgramPump(WebSocketPump):
    """WebSocket port of a protocol for robot programs, whose clients may need a token."""

    longest_sent = MAX_SENT
    # The sessions drop old messages of slow clients themselves.
    bounds_output = True
    token_option = ""

    def _guarded(self, app: Any, hosts: set[str], any_address: bool) -> Guard:
        token = self._options.get("token") or ""
        return ProgramGuard(app, hosts, any_address, token, self.token_option)


class RosbridgePump(_ProgramPump):
    """WebSocket port of rosbridge."""

    longest_received = MAX_FRAME
    token_option = "--rosbridge-token"


class FoxglovePump(_ProgramPump):
    """WebSocket port of the Foxglove protocol."""

    longest_received = MAX_MESSAGE
    subprotocols = foxglove.SUBPROTOCOLS
    token_option = "--foxglove-token"


__all__ = ["FoxglovePump", "RosbridgePump"]
