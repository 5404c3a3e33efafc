"""The WebSocket server of rosbridge: the generic pump with rosbridge's limits, and who may come.

A page in a browser sends its origin. Pages of this machine's web servers and pages of the served host may come; those of other sites only
with a token, or any site that somebody looks at could drive the robots. With a token, everybody must show it: in the address
(``ws://host:9090/?token=…``) or as ``Authorization: Bearer``. ``null``, the origin of files, is what any site can pretend to be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from botyard.names import shown
from botyard.protocols.rosbridge.session import MAX_FRAME
from botyard.protocols.webgui.session import Tokens
from botyard.servers.addresses import is_loopback
from botyard.servers.web import Guard, bearer_token
from botyard.servers.webpump import WebSocketPump

MAX_FIELDS: Final = 16
"""Most fields of the query in an address."""
MAX_SENT: Final = 256 << 20
"""Longest message that is sent, bytes: a large map in JSON."""


class RosbridgeGuard(Guard):
    """Lets in whoever may use rosbridge."""

    def _refusal(self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]) -> str:
        reason = super()._refusal(scope, headers)
        if not reason and not self._shows_token(scope, headers):
            return "a client without the token (--rosbridge-token)"
        return reason

    def _refusal_of_page(self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes], origin: str) -> str:
        if self._tokens.full or _is_local(origin):
            return ""
        return f'pages of "{shown(origin)}" may not talk to this server without a token (--rosbridge-token)'

    def _shows_token(self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
        said = bearer_token(headers.get(b"authorization", b"").decode("latin-1"))
        with contextlib.suppress(ValueError):  # too many fields
            query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=MAX_FIELDS)
            said = query.get("token", [said])[0]
        return self._tokens.admits(said) is not None


def _is_local(origin: str) -> bool:
    """Whether a page was served by this machine."""
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    return is_loopback(host)


class RosbridgePump(WebSocketPump):
    """The port of rosbridge."""

    longest_received = MAX_FRAME
    longest_sent = MAX_SENT
    bounds_output = True

    def _guarded(self, app: Any, hosts: set[str], any_address: bool) -> Guard:
        return RosbridgeGuard(app, hosts, any_address, Tokens(self._options.get("token") or ""))


__all__ = ["RosbridgePump"]
