"""How the simulator fares, for people who look after it: the Prometheus text format, a line of the log, and a health check.

Names and format: Prometheus' "Exposition formats" (text, version 0.0.4) and its conventions for names.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from botyard.errors import PortError
from botyard.servers.http import HttpServer, listening
from botyard.servers.yard import Yard

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

log = logging.getLogger("botyard.timing")


def figures(yard: Yard) -> Iterator[tuple[str, str, str, float]]:
    """Name, kind, meaning and value of everything that is told."""
    hub, sim = yard.hub, yard.hub.sim
    connections = yard.desk.connections
    yield "simulated_seconds_total", "counter", "Simulated time since the start.", sim.time
    yield "steps_total", "counter", "Steps since the start.", sim.tick
    yield "step_seconds", "gauge", "Wall time of a step, averaged over some.", hub.step_time
    yield "real_time_ratio", "gauge", "Simulated per wall time over the last seconds.", hub.ratio
    yield (
        "overruns_total",
        "counter",
        "Times that the simulation gave up time it could not catch up with.",
        hub.overruns,
    )
    yield "paused", "gauge", "1 while time stands still.", float(hub.is_paused)
    yield "robots", "gauge", "Robots in the world.", len(sim.robots)
    yield "clients", "gauge", "Pioneer clients that are connected.", len(connections)
    about = "Frames that pages did not get, because they had not taken the one before, or want fewer."
    yield "dropped_frames_total", "counter", about, hub.dropped_frames
    yield (
        "dropped_reports_total",
        "counter",
        "Reports that were not sent, because their clients did not read.",
        hub.dropped_reports,
    )
    yield "tasks", "gauge", "Tasks of the event loop.", len(asyncio.all_tasks())
    errors = sum(c.session.parser.counts.errors for c in connections)
    yield "parser_errors", "gauge", "Packets with errors, of the clients that are connected.", errors


def metrics_text(yard: Yard) -> str:
    """All figures in the text format of Prometheus."""
    lines = []
    for name, kind, about, value in figures(yard):
        lines += [f"# HELP botyard_{name} {about}", f"# TYPE botyard_{name} {kind}", f"botyard_{name} {value:.9g}"]
    return "\n".join(lines) + "\n"


def health(yard: Yard) -> dict[str, Any]:
    """Whether all is well, in few words."""
    hub, sim = yard.hub, yard.hub.sim
    return {"status": "ok", "time": sim.time, "tick": sim.tick, "ratio": round(hub.ratio, 3), "robots": len(sim.robots)}


class TimingLog:
    """Logs how the simulation keeps up, every so many seconds (LOG-006).

    Parameters
    ----------
    yard : Yard
        The running simulator.
    period : float
        s of wall time.
    """

    def __init__(self, yard: Yard, period: float) -> None:
        self._yard, self._period = yard, period
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Log no longer."""
        self._task.cancel()

    async def _run(self) -> None:
        last = self._yard.hub.sim.tick
        while True:
            await asyncio.sleep(self._period)
            hub = self._yard.hub
            steps, last = hub.sim.tick - last, hub.sim.tick
            log.info(
                "in %g s: %d steps of %.3f ms each, real-time ratio %.3f, %d overruns in all",
                self._period, steps, 1e3 * hub.step_time, hub.ratio, hub.overruns,
            )  # fmt: skip


def routes(yard: Yard, more: Callable[[], dict[str, Any]] = dict) -> list[Route]:
    """``/metrics`` and ``/healthz``, for an application of Starlette; `more` is told with the health."""

    async def tell_metrics(_request: Request) -> Response:
        return Response(metrics_text(yard), media_type=CONTENT_TYPE)

    async def tell_health(_request: Request) -> Response:
        return Response(json.dumps(health(yard) | more()), media_type="application/json")

    return [Route("/metrics", tell_metrics), Route("/healthz", tell_health)]


def serve_metrics(yard: Yard, host: str, port: int) -> tuple[HttpServer, int]:
    """Answer them on a port of their own, for simulators without the page; with the port, which may have been chosen.

    Raises
    ------
    PortError
        The port is taken.
    """
    try:
        bound = listening(host, [port])
    except OSError as error:
        raise PortError(f"--metrics-port: cannot listen on port {port} of {host}: {error.strerror}") from None
    return HttpServer(Starlette(routes=routes(yard)), bound), int(bound.getsockname()[1])


__all__ = ["TimingLog", "figures", "health", "metrics_text", "routes", "serve_metrics"]
