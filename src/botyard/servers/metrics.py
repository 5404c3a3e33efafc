"""How the simulator fares, for people who look after it: the Prometheus text format, a line of the log, and a health check.

Names and format: Prometheus' "Exposition formats" (text, version 0.0.4) and its conventions for names.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from botyard.errors import PortError
from botyard.servers.yard import Yard

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LONGEST_REQUEST: Final = 8192
"""Bytes of a request's head, at most."""
PATIENCE: Final = 5.0
"""A client of the metrics port that does not finish its request in so many s is disconnected."""

log = logging.getLogger("botyard.timing")


def figures(yard: Yard) -> Iterator[tuple[str, str, str, float]]:
    """Name, kind, meaning and value of everything that is told."""
    hub, sim = yard.hub, yard.hub.sim
    connections = yard.world.connections
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


class MetricsServer:
    """Answers ``/metrics`` and ``/healthz`` on a port of its own, for simulators without the page.

    HTTP/1.1 as far as GET goes (RFC 9112); one answer for each connection.
    """

    def __init__(self, yard: Yard) -> None:
        self._answers: dict[str, Callable[[], tuple[str, str]]] = {
            "/metrics": lambda: (CONTENT_TYPE, metrics_text(yard)),
            "/healthz": lambda: ("application/json", json.dumps(health(yard))),
        }
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises
        ------
        PortError
            The port is taken.
        """
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=LONGEST_REQUEST)
        except OSError as error:
            raise PortError(f"--metrics-port: cannot listen on port {port} of {host}: {error.strerror}") from None
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listen no longer."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            method, _, rest = head.decode("latin-1").partition(" ")
            path = rest.partition(" ")[0].partition("?")[0]
            answer = self._answers.get(path)
            if method not in ("GET", "HEAD") or answer is None:
                status, kind, text = "404 Not Found", "text/plain", "there are /metrics and /healthz\n"
            else:
                status, (kind, text) = "200 OK", answer()
            data = text.encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
                + (b"" if method == "HEAD" else data)
            )
            await asyncio.wait_for(writer.drain(), PATIENCE)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # who does not ask properly gets nothing
        finally:
            writer.close()


__all__ = ["CONTENT_TYPE", "MetricsServer", "TimingLog", "figures", "health", "metrics_text"]
