"""AGVs of VDA 5050 in a world, for the page (`ShownFleet`).

Each AGV is a disc that the exact engine moves. Nodes and edges of its order are its
path: sectors up to the last released node are granted (the base), the others wait for
the master control (the horizon).
"""

from __future__ import annotations

from typing import Final

from botyard.errors import WorldError
from botyard.interfaces.vda5050.agv import AT_REST, Agv
from botyard.interfaces.vda5050.fleet import Fleet
from botyard.names import shown
from botyard.sim.simulation import Simulation
from botyard.traffic.engine import Traffic
from botyard.traffic.kernels import runarrays
from botyard.traffic.live import LiveTraffic
from botyard.traffic.mirrored import Disc, DiscRun
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.supervisors.base import Supervisor
from botyard.traffic.task import I8, Task

MASTER: Final = "the master control"
"""Name of the supervisor."""
REFUSAL: Final = (
    "an AGV of VDA 5050 drives as far as its base: its master control releases nodes, "
    "and cancels orders"
)


class ShownFleet(DiscRun):
    """Run of a fleet in a world; see `botyard.traffic.liverun.LiveRun`.

    It attaches itself to the traffic of the world when the run starts, and shows new
    paths when orders change. Other code advances the fleet, to the time of the world.

    Parameters
    ----------
    fleet : Fleet
        The fleet.
    sim : Simulation
        World, to which a disc is added for each AGV.
    live : LiveTraffic
        Traffic of the world.
    """

    def __init__(self, fleet: Fleet, sim: Simulation, live: LiveTraffic) -> None:
        super().__init__(sim)
        self._fleet, self._live = fleet, live
        self.refusal = REFUSAL
        """See `botyard.traffic.liverun.LiveRun.refusal`."""
        self.drivers: list[Disc] = []
        self._routes: list[object] = []
        fleet.on_change = self._follow

    def _follow(self) -> None:
        """Show the orders of the fleet, which have changed."""
        if self._fleet.traffic is None:
            return
        agvs = self._fleet.agvs
        routes: list[object] = [agv.route for agv in agvs]
        # A run that has ended is shown again with the next change.
        is_shown = self._live.present is self and not self._live.has_ended
        if is_shown and routes == self._routes:
            return
        self._routes = routes
        for i, agv in enumerate(agvs):
            assert agv.route is not None
            if i == len(self.drivers):
                name = self._sim.core.unique_name(agv.name.serial)
                self.drivers.append(
                    Disc.of(self._sim, agv.route.vehicle, agv.route.path, name, i)
                )
            d = self.drivers[i]
            d.vehicle, d.path = agv.route.vehicle, agv.route.path
            d.nodes = (
                () if agv.course is None else tuple(n.id for n in agv.course.nodes)
            )
        if is_shown:
            self._live.renew()
        else:
            self._live.attach(self, MASTER)

    # -- the run, for its host

    @property
    def traffic(self) -> Traffic:
        """The run of the exact engine."""
        assert self._fleet.traffic is not None
        return self._fleet.traffic

    @property
    def task(self) -> Task:
        """Task of all orders, which changes with them."""
        return self.traffic.task

    @property
    def supervisor(self) -> Supervisor:
        """Supervisor of the exact engine, which grants nothing."""
        return self.traffic.supervisor

    @property
    def state(self) -> I8:
        """State of the permissions, (n, 4); see `botyard.traffic.outcome.waiting_robots`.

        An AGV that has come to rest at the end of its base asks for the next sector.
        """
        found = super().state
        for i in range(len(found)):
            found[i, 1] = found[i, 0] + (i in self._waiting)
        return found

    def act(self) -> None:
        """Do nothing: permissions come with orders."""

    def observe(self) -> Ending | None:
        """Move the discs, and report releases and waits."""
        traffic = self.traffic
        places, speeds = self._fleet.places()
        allowed = traffic.world.i[:, runarrays.ALLOWED].tolist()
        heads = traffic.world.i[:, runarrays.HEAD].tolist()
        done = self.done.tolist()
        released = [
            (i, allowed[i])
            for i, d in enumerate(self.drivers)
            if allowed[i] > d.allowed
        ]
        if released:
            self.pass_on(released)
        for i, d in enumerate(self.drivers):
            d.allowed, d.head, d.done = allowed[i], heads[i], done[i]
            d.move(self._sim, float(places[i]))
            ends = d.vehicle.ends
            waits = (
                not d.done
                and allowed[i] < len(ends) - 1
                and float(speeds[i]) <= AT_REST
                and float(places[i])
                >= float(ends[allowed[i]]) - d.vehicle.radius - 1e-6
            )
            self._set_waiting(i, waits, d.head)
        return self._fleet.ending

    def allow(self, i: int, sector: int) -> None:
        """Refuse; see `REFUSAL`.

        Raises
        ------
        WorldError
            Always.
        """
        raise WorldError(REFUSAL)

    def least_allowed(self, i: int) -> int:
        """Refuse; see `allow`."""
        raise WorldError(REFUSAL)

    def withdraw(self, i: int, last: int) -> None:
        """Refuse; see `allow`."""
        raise WorldError(REFUSAL)

    @property
    def places(self) -> list[float]:
        """Where the AGVs are along their paths, m."""
        found: list[float] = self._fleet.places()[0].tolist()
        return found

    def why(self, i: int, sector: int) -> str:
        """Return why an AGV waits at the end of its base."""
        agv: Agv = self._fleet.agvs[i]
        if agv.is_canceled:
            return "its order is canceled"
        nodes = self.drivers[i].nodes
        node = shown(nodes[sector]) if sector < len(nodes) else ""
        return f"node {node} is in the horizon: {MASTER} has not released it"

    def finish(self, why: Ending) -> Outcome:
        """Return the outcome of the run; call it once, at the end."""
        return self._fleet.finish(why)


__all__ = ["MASTER", "ShownFleet"]
