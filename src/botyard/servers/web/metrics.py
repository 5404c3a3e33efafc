"""Metrics and health over HTTP, and periodic timing in the log.

See `botyard.interfaces.metrics` for the content.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from botyard.errors import PortError
from botyard.interfaces.metrics import CONTENT_TYPE, health, metrics_text
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.servers.sockets import listening, reason_of
from botyard.servers.web.http import HttpServer

log = logging.getLogger("botyard.timing")


class TimingLog:
    """Periodic log of the simulation's timing (LOG-006).

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    period : float
        Interval of wall time between two lines, s.
    """

    def __init__(self, robot_servers: RobotServers, period: float) -> None:
        self._robot_servers, self._period = robot_servers, period
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Stop logging."""
        self._task.cancel()

    async def _run(self) -> None:
        last = self._robot_servers.hub.sim.tick
        while True:
            await asyncio.sleep(self._period)
            hub = self._robot_servers.hub
            steps, last = hub.sim.tick - last, hub.sim.tick
            log.info(
                "in %g s: %d steps of %.3f ms each, real-time ratio %.3f, %d overruns in all",
                self._period,
                steps,
                1e3 * hub.step_time,
                hub.ratio,
                hub.overruns,
            )


def routes(
    robot_servers: RobotServers, more: Callable[[], dict[str, Any]] = dict
) -> list[Route]:
    """Return routes for ``/metrics`` and ``/healthz`` in a Starlette application.

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    more : callable, optional
        Returns additional fields of the health document.
    """

    async def tell_metrics(_request: Request) -> Response:
        return Response(
            metrics_text(
                robot_servers.hub,
                robot_servers.desk.connections,
                len(asyncio.all_tasks()),
            ),
            media_type=CONTENT_TYPE,
        )

    async def tell_health(_request: Request) -> Response:
        return Response(
            json.dumps(health(robot_servers.hub) | more()),
            media_type="application/json",
        )

    return [Route("/metrics", tell_metrics), Route("/healthz", tell_health)]


def serve_metrics(
    robot_servers: RobotServers, host: str, port: int
) -> tuple[HttpServer, int]:
    """Serve metrics on a port of their own, for simulators without the page.

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    host : str
        Address to listen on.
    port : int
        TCP port; 0: a free one.

    Returns
    -------
    HttpServer, int
        The server, and its port (the system may have chosen it).

    Raises
    ------
    PortError
        The port is taken.
    """
    try:
        bound = listening(host, [port], "the metrics")
    except OSError as error:
        raise PortError(
            f"--metrics-port: cannot listen on port {port} of {host}: {reason_of(error, port)}"
        ) from None

    return HttpServer(Starlette(routes=routes(robot_servers)), bound), int(
        bound.getsockname()[1]
    )


__all__ = ["TimingLog", "routes", "serve_metrics"]
