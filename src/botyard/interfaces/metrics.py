"""Metrics of the simulator in the Prometheus text format, and a health check.

Names and format: Prometheus' "Exposition formats" (text, version 0.0.4) and its
conventions for names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from botyard.control.parts import RunLoop

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Counted(RunLoop, Protocol):
    """A run loop that counts dropped frames and reports."""

    dropped_frames: int
    dropped_reports: int


def figures(
    hub: Counted, connections: Sequence[Any], tasks: int
) -> Iterator[tuple[str, str, str, float]]:
    """Yield name, type, help text and value of every metric.

    Parameters
    ----------
    hub : Counted
        The run loop.
    connections : sequence of botyard.servers.pioneer.connection.Connection
        Connections of Pioneer clients.
    tasks : int
        Number of tasks of the event loop.
    """
    sim = hub.sim
    yield (
        "simulated_seconds_total",
        "counter",
        "Simulated time since the start.",
        sim.time,
    )
    yield "steps_total", "counter", "Steps since the start.", sim.tick
    yield (
        "step_seconds",
        "gauge",
        "Wall time of a step, averaged over some.",
        hub.step_time,
    )
    yield (
        "real_time_ratio",
        "gauge",
        "Simulated per wall time over the last seconds.",
        hub.ratio,
    )
    yield (
        "overruns_total",
        "counter",
        "Times that the simulation gave up time it could not catch up with.",
        hub.overruns,
    )
    yield "paused", "gauge", "1 while time stands still.", float(hub.is_paused)
    yield "robots", "gauge", "Robots in the world.", len(sim.robots)
    yield "clients", "gauge", "Pioneer clients that are connected.", len(connections)
    about = (
        "Frames that pages did not get, because they had not taken the one "
        "before, or want fewer."
    )
    yield "dropped_frames_total", "counter", about, hub.dropped_frames
    yield (
        "dropped_reports_total",
        "counter",
        "Reports that were not sent, because their clients did not read.",
        hub.dropped_reports,
    )
    yield "tasks", "gauge", "Tasks of the event loop.", tasks
    errors = sum(c.session.parser.counts.errors for c in connections)
    yield (
        "parser_errors",
        "gauge",
        "Packets with errors, of the clients that are connected.",
        errors,
    )


def metrics_text(hub: Counted, connections: Sequence[Any], tasks: int) -> str:
    """All metrics in the Prometheus text format; see `figures`."""
    lines = []
    for name, kind, about, value in figures(hub, connections, tasks):
        lines += [
            f"# HELP botyard_{name} {about}",
            f"# TYPE botyard_{name} {kind}",
            f"botyard_{name} {value:.9g}",
        ]

    return "\n".join(lines) + "\n"


def health(hub: RunLoop) -> dict[str, Any]:
    """Result of the health check, as JSON data."""
    sim = hub.sim
    return {
        "status": "ok",
        "time": sim.time,
        "tick": sim.tick,
        "ratio": round(hub.ratio, 3),
        "robots": len(sim.robots),
    }


__all__ = ["CONTENT_TYPE", "Counted", "figures", "health", "metrics_text"]
