"""State of the running traffic task for the pages that show it (`TrafficWatch`).

A traffic task is a fleet of robots on sector paths under a supervisor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from botyard.control import Control
from botyard.names import shown
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer
from botyard.sim.simulation import Simulation
from botyard.traffic.live import LiveTraffic

MAX_WAITS: Final = 300
"""Largest number of waiting robots, and of decisions, in a message."""


class TrafficWatch:
    """Observer of the running traffic task, which works only while a page shows it.

    Parameters
    ----------
    sim : Simulation
        The world.
    control : Control
        Control surface, whose attribute `traffic` is observed.
    """

    def __init__(self, sim: Simulation, control: Control) -> None:
        self._sim, self._control = sim, control

    @property
    def _live(self) -> LiveTraffic | None:
        traffic = self._control.traffic
        return traffic if isinstance(traffic, LiveTraffic) else None

    @property
    def version(self) -> int:
        """Number that changes when a run starts or ends; 0 without a run."""
        live = self._live
        return 0 if live is None or live.present is None else live.version

    def tell(self, viewers: Sequence[Viewer]) -> None:
        """Send the state to the pages that show the traffic."""
        wanted = [v for v in viewers if v.view.traffic and not v.is_behind]
        if wanted:
            text = pushes.encoder.encode(self.state())
            for viewer in wanted:
                viewer.send_encoded(text, again_soon=True)

    def state(self) -> pushes.Traffic:
        """Return the state of the run; without a run, its lists are empty."""
        live = self._live
        run = None if live is None else live.present
        if live is None or run is None:
            return pushes.Traffic(
                version=0 if live is None else live.version,
                time=self._sim.time,
                supervisor="",
                orders=False,
                held=False,
                queued=0,
                ending="",
                ended=True,
                robots=[],
                done=0,
                waits=[],
                circles=[],
                decisions=[],
            )
        waits, circles = live.waits()
        return pushes.Traffic(
            version=live.version,
            time=self._sim.time,
            supervisor=live.supervisor,
            orders=bool(run.refusal),
            held=live.is_held,
            queued=live.waiting_decisions,
            ending=shown(live.ending, 300),
            ended=live.has_ended,
            robots=[
                (tail, head, max(allowed, head))
                for allowed, _, tail, head in run.state.tolist()
            ],
            done=int(run.done.sum()),
            waits=[
                pushes.TrafficWait(
                    robot=one.robot,
                    sector=one.sector,
                    by=list(one.by),
                    since=one.since,
                    reason=shown(one.reason, 300),
                )
                for one in waits[:MAX_WAITS]
            ],
            circles=[list(one) for one in circles],
            decisions=[
                pushes.TrafficDecision(
                    time=one.time,
                    robot=one.robot,
                    sector=one.sector,
                    what=one.what,
                    by=one.by,
                )
                for one in live.decisions()[:MAX_WAITS]
            ],
        )

    def plan(self) -> pushes.TrafficPlan:
        """Return paths and sectors of the run, and the supervisors to choose from."""
        from botyard.traffic.supervisors.registry import supervisor_names

        live = self._live
        run = None if live is None else live.present
        paths = []
        if run is not None:
            starts, _ = run.task.conflicts
            shared = np.diff(starts) > 0
            for i, first in enumerate(run.task.first[: len(run.drivers)].tolist()):
                d = run.drivers[i]
                ends = d.vehicle.ends
                paths.append(
                    pushes.PlannedPath(
                        robot=d.robot.name,
                        points=[
                            (round(x, 3), round(y, 3))
                            for x, y in d.path.corners.tolist()
                        ],
                        ends=np.round(ends, 3).tolist(),
                        shared=np.flatnonzero(
                            shared[first : first + len(ends)]
                        ).tolist(),
                        nodes=[shown(one) for one in d.nodes],
                    )
                )
        return pushes.TrafficPlan(
            version=0 if live is None else live.version,
            paths=paths,
            supervisors=list(supervisor_names()),
        )


__all__ = ["TrafficWatch"]
