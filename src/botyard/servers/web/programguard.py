"""Access control of WebSocket servers for robot programs and other pages.

A page in a browser sends its origin. Pages of this machine's web servers and pages of
the served host have access. Pages of other sites need a token: otherwise any site that
a user visits could drive the robots. If a token is set, all clients must present it,
either in the address (``ws://host:port/?token=…``) or as ``Authorization: Bearer``. The
origin ``null``, which browsers send for files, proves nothing, because any site can
produce it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from botyard.names import shown
from botyard.protocols.webgui.session import Tokens
from botyard.servers.addresses import is_loopback
from botyard.servers.web.pageguard import Guard, bearer_token

MAX_FIELDS: Final = 16
"""Maximum number of fields in the query of an address."""


class ProgramGuard(Guard):
    """Guard that admits programs, local pages, and clients with the token.

    Parameters
    ----------
    app, hosts, any_address
        See `Guard`.
    token : str
        Required token; empty: none is required.
    option : str
        Command-line option that sets the token, for log lines.
    """

    def __init__(
        self, app: Any, hosts: set[str], any_address: bool, token: str, option: str
    ) -> None:
        super().__init__(app, hosts, any_address, Tokens(token))
        self._option = option

    def _refusal(
        self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]
    ) -> str:
        reason = super()._refusal(scope, headers)
        if not reason and not self._shows_token(scope, headers):
            return f"the client did not present the token of {self._option}"
        return reason

    def _refusal_of_page(
        self,
        scope: MutableMapping[str, Any],
        headers: Mapping[bytes, bytes],
        origin: str,
    ) -> str:
        if self._tokens.full or _is_local(origin):
            return ""
        return (
            f'pages of "{shown(origin)}" may not connect to this server without a '
            f"token ({self._option})"
        )

    def _shows_token(
        self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]
    ) -> bool:
        said = bearer_token(headers.get(b"authorization", b"").decode("latin-1"))
        # More fields than MAX_FIELDS raise ValueError.
        with contextlib.suppress(ValueError):
            query = parse_qs(
                scope.get("query_string", b"").decode("latin-1"),
                max_num_fields=MAX_FIELDS,
            )
            said = query.get("token", [said])[0]

        return self._tokens.admits(said) is not None


def _is_local(origin: str) -> bool:
    """Return whether the page at `origin` was served by this machine."""
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return False

    return is_loopback(host)


__all__ = ["ProgramGuard"]
