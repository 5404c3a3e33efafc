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
    """Interface of a run loop that counts dropped frames and reports."""

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
        "Wall time of a step, moving average.",
        hub.step_time,
    )
    yield (
        "real_time_ratio",
        "gauge",
        "Simulated time per wall time over the last seconds.",
        hub.ratio,
    )
    yield (
        "overruns_total",
        "counter",
        "Number of times that the simulation skipped time it could not catch up.",
        hub.overruns,
    )
    yield "paused", "gauge", "1 while the simulation is paused.", float(hub.is_paused)
    yield "robots", "gauge", "Robots in the world.", len(sim.robots)
    yield "clients", "gauge", "Connected Pioneer clients.", len(connections)
    about = (
        "Frames not sent, because the page had not read the previous frame or had "
        "asked for a lower rate."
    )
    yield "dropped_frames_total", "counter", about, hub.dropped_frames
    yield (
        "dropped_reports_total",
        "counter",
        "Reports not sent because their clients did not read.",
        hub.dropped_reports,
    )
    yield "tasks", "gauge", "Tasks of the event loop.", tasks

    # This metric is a gauge, because it falls when a client disconnects.
    errors = sum(c.session.parser.counts.errors for c in connections)
    yield (
        "parser_errors",
        "gauge",
        "Packets with errors from connected clients.",
        errors,
    )


def metrics_text(hub: Counted, connections: Sequence[Any], tasks: int) -> str:
    """Return all metrics in the Prometheus text format; see `figures`.

    Parameters
    ----------
    hub : Counted
        The run loop.
    connections : sequence
        Connections of all clients.
    tasks : int
        Number of tasks of the event loop.

    Returns
    -------
    str
        Text with the lines ``# HELP``, ``# TYPE`` and the value of each metric.
    """
    lines = []
    for name, kind, about, value in figures(hub, connections, tasks):
        lines += [
            f"# HELP botyard_{name} {about}",
            f"# TYPE botyard_{name} {kind}",
            f"botyard_{name} {value:.9g}",
        ]

    return "\n".join(lines) + "\n"


def health(hub: RunLoop) -> dict[str, Any]:
    """Return the result of the health check, as JSON data.

    Parameters
    ----------
    hub : RunLoop
        The run loop.

    Returns
    -------
    dict of str to object
        ``status`` is always ``ok``: a simulator that hangs does not answer. ``time`` is
        simulated time, s; ``tick`` the number of steps; ``ratio`` simulated time
        divided by wall time; ``robots`` their number.
    """
    sim = hub.sim
    return {
        "status": "ok",
        "time": sim.time,
        "tick": sim.tick,
        "ratio": round(hub.ratio, 3),
        "robots": len(sim.robots),
    }


__all__ = ["CONTENT_TYPE", "Counted", "figures", "health", "metrics_text"]
