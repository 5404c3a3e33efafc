"""HTTP servers in the simulator's event loop (uvicorn)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any, Final

import uvicorn

SHUTDOWN: Final = 1.0
"""Requests that are under way at the end have so long, s."""


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to the simulator."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves an ASGI application on a socket until it is closed.

    Parameters
    ----------
    app : ASGI application
        What is served.
    bound : socket.socket
        It listens.
    options : Any
        Further settings of uvicorn.
    """

    def __init__(self, app: Any, bound: socket.socket, **options: Any) -> None:
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1, server_header=False, **options
        )  # fmt: skip
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _Uvicorn(config)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[bound]))

    async def close(self) -> None:
        """Serve no longer."""
        self._server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(self._task, 3 * SHUTDOWN)


def listening(host: str, ports: Iterable[int]) -> socket.socket:
    """A socket that listens on the first of these ports that is free; 0 is any free one.

    Raises
    ------
    OSError
        None is.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = OSError("no port given")
    for number in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":  # elsewhere it would let two servers share a port
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, number))
            bound.listen(64)
            bound.setblocking(False)
        except OSError as error:
            bound.close()
            last = error
        else:
            return bound
    raise last


__all__ = ["HttpServer", "listening"]
