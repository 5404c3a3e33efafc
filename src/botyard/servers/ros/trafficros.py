"""Traffic tasks over ROS in real time (`botyard.interfaces.ros.traffic`)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from botyard.interfaces.ros.traffic import SteppedRun, TrafficNode
from botyard.traffic.outcome import Ending, Outcome

TICK_S: Final = 0.01
"""Wall time between two updates, s."""

log = logging.getLogger("botyard.traffic")


async def run_live(
    node: TrafficNode,
    traffic: SteppedRun,
    *,
    wait: bool = False,
    speed: float = 1.0,
    idle_limit: float = 10.0,
    stop: asyncio.Event | None = None,
) -> Outcome:
    """Run a traffic task in real time.

    Parameters
    ----------
    node : TrafficNode
        ROS node of the run.
    traffic : SteppedRun
        Run of the task, advanced in real time.
    wait : bool
        Whether to wait for a supervisor before the start.
    speed, idle_limit : float
        See `TrafficNode.begin`.
    stop : Event, optional
        Ends the run when set.
    """
    clock, stop = asyncio.get_running_loop().time, stop or asyncio.Event()
    if wait and not node.has_supervisor:
        log.info("waiting for a supervisor: a subscriber of %s", node.critical_points)
        while not node.has_supervisor and not stop.is_set():
            await asyncio.sleep(TICK_S)

    node.begin(traffic, clock(), speed=speed, idle_limit=idle_limit)
    ending = node.advance(clock())
    while ending is None and not stop.is_set():
        await asyncio.sleep(TICK_S)
        ending = node.advance(clock())

    return traffic.finish(ending or Ending.TIMEOUT)


__all__ = ["run_live"]
