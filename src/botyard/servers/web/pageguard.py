"""Access to the page's web server: host names, origins and security headers.

Access control follows reference webgui.md §6.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from botyard.names import shown
from botyard.protocols.tokenbucket import TokenBucket
from botyard.protocols.webgui.session import Tokens

REFUSALS: Final = (1.0, 5.0)
"""Token bucket of log lines about refused requests: sustained rate, 1/s, and burst."""
log = logging.getLogger("botyard.page")

CSP: Final = (
    "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data: "
    "blob:; object-src 'none'; base-uri 'none'; form-action 'none'"
)


def _headers(csp: str, sharing: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return (
        (b"content-security-policy", csp.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", sharing),
    )


HEADERS: Final = _headers(f"{CSP}; frame-ancestors 'none'", b"same-origin")
"""Security headers of answers: no other page can frame or embed them."""
# Omit frame-ancestors: even `*` does not match the scheme of VS Code's notebooks.
FRAMED: Final = _headers(CSP, b"cross-origin")
"""Security headers of answers to requests that present the token for frames."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Guard:
    """ASGI middleware that refuses other sites' requests and sets security headers.

    Parameters
    ----------
    app : ASGI application
        Application behind the guard.
    hosts : set of str
        Host names that requests may use.
    any_address : bool
        Also accept any numeric address, because the server listens to other machines.
        Host names other than `hosts` are still refused, which prevents DNS rebinding.
    tokens : Tokens
        Tokens of the page. A caller that presents none of them is a stranger, with lower limits.

    Attributes
    ----------
    frame : str
        Token that a path starts with (``/TOKEN/…``) so that any page may frame the
        answer, and reach the server by any host name, as through a proxy. Empty: no
        page may.
    """

    def __init__(
        self, app: Any, hosts: set[str], any_address: bool, tokens: Tokens
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._any_address = any_address
        self._tokens = tokens
        self.frame = ""
        self._lines = TokenBucket(*REFUSALS, time.monotonic())

    def _is_good(self, host: str) -> bool:
        # Remove the port; the colons of a bare IPv6 address in brackets are not a
        # separator.
        name = (
            host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        )
        name = name.strip("[]").lower()
        if name in self._hosts:
            return True
        if self._any_address:
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(name)
                return True

        return False

    def _refusal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """Return the reason to refuse a request; empty if it is accepted."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_good(host):
            return f'expected a host name of this server, found "{shown(host)}"'
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin not in (f"http://{host}", f"https://{host}"):
            return self._refusal_of_page(scope, headers, origin)
        return ""

    def _refusal_of_page(
        self, scope: Scope, headers: Mapping[bytes, bytes], origin: str
    ) -> str:
        """Return the reason to refuse a page of another origin; empty if accepted."""
        return f'pages of "{shown(origin)}" may not connect to this server'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        found = dict(scope["headers"])
        framed = self._without_token(scope)
        reason = "" if framed is not None else self._refusal(scope, found)
        if reason:
            await self._refuse(scope, send, reason)
            return

        admitted = self._tokens.admits(
            bearer_token(found.get(b"authorization", b"").decode("latin-1"))
        )
        caller = scope.get("state", {}).get("caller")
        if admitted is not None and caller is not None and scope["type"] == "http":
            caller.shows(admitted, asyncio.get_running_loop().time())

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                more = HEADERS if framed is None else FRAMED
                message["headers"] = [*message.get("headers", []), *more]
            await send(message)

        await self._app(framed or scope, receive, send_with_headers)

    def _without_token(self, scope: Scope) -> Scope | None:
        """Return a request without the token for frames in its path; None: it has none.

        The token proves that the address comes from this server, so the host name and
        the origin prove nothing more; proxies change both.
        """
        first, _, rest = scope["path"][1:].partition("/")
        # A comparison in constant time reveals nothing about the token.
        if self.frame and hmac.compare_digest(first.encode(), self.frame.encode()):
            return {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        return None

    async def _refuse(self, scope: Scope, send: Send, reason: str) -> None:
        if self._lines.take(time.monotonic()):
            log.warning("request refused: %s", reason)
        if scope["type"] == "websocket":
            # Codes from 4000 belong to applications (RFC 6455, section 7.4.2); this one
            # has the last digits of HTTP's 403.
            await send(
                {"type": "websocket.close", "code": 4403, "reason": reason[:100]}
            )
            return

        await send(
            {
                "type": "http.response.start",
                "status": 403,
                "headers": [(b"content-type", b"text/plain")],
            }
        )
        await send({"type": "http.response.body", "body": reason.encode()})


def bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header (RFC 6750, section 2.1), or "".

    Parameters
    ----------
    authorization : str
        Value of the header; "" without one.
    """
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
