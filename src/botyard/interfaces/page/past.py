"""View of an earlier moment for one page, while the world continues for all others.

A second simulation is restored to the moment (`History.look`), and its own `ViewSource`
makes the frames. The second simulation measures with the sensors that are in use in the
running world now, and with the sensors of robots that the page has selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from botyard.interfaces.page.viewsource import Shown, ViewSource, drawn_devices
from botyard.sim.history import Moment
from botyard.sim.simulation import Simulation

SOURCE = "past"
"""Source name of sensor subscriptions in the second simulation."""


class Difference(NamedTuple):
    """Differences between the robots of a past moment and the robots of the present.

    Attributes
    ----------
    missing : tuple of str
        Present robots that did not exist then, or were different robots of the same
        name.
    gone : tuple of str
        Robots of the past moment that do not exist now.
    """

    missing: tuple[str, ...]
    gone: tuple[str, ...]


class _PastSimulation:
    """Second simulation that shows the past, but speed and pause of the running world."""

    is_past = True

    def __init__(self, sim: Simulation, world: Shown) -> None:
        self.sim = sim
        self._world = world

    @property
    def is_paused(self) -> bool:
        return self._world.is_paused

    @property
    def speed(self) -> float:
        return self._world.speed

    @property
    def ratio(self) -> float:
        return self._world.ratio

    @property
    def step_time(self) -> float:
        return self._world.step_time


class Past:
    """Past moment that a page shows.

    Parameters
    ----------
    world : Shown
        The running simulation.
    time : float
        Simulated time, s; the last kept moment at or before it is shown.
    numbers : iterator of int
        Schema numbers that no other source of the page's frames uses.
    port_of : callable
        Returns the TCP port of a robot.

    Raises
    ------
    StateError
        The history keeps no moment.
    """

    def __init__(
        self,
        world: Shown,
        time: float,
        numbers: Iterator[int],
        port_of: Callable[[str], int],
    ) -> None:
        self._world = world
        self.moment: Moment = world.sim.history.moment(time)
        self.sim = world.sim.history.look(time)
        self.source = ViewSource(_PastSimulation(self.sim, world), port_of, numbers)

    def go(self, time: float) -> None:
        """Change the moment that the page shows.

        Parameters
        ----------
        time : float
            Simulated time, s; the last kept moment at or before it is shown.

        Raises
        ------
        StateError
            The history keeps no moment any more.
        """
        history = self._world.sim.history
        self.moment = history.moment(time)
        history.look(time, self.sim)

    def read(self, selected: Iterable[str]) -> None:
        """Subscribe to the sensors in use in the running world, and to sensors of selected robots.

        Parameters
        ----------
        selected : iterable of str
            Names of robots that the page has selected; unknown names are ignored. If
            the set of sensors changes, the next frame is encoded again.
        """
        chosen, world = set(selected), self._world.sim
        changed = False
        for name, robot in self.sim.robots.items():
            now = world.robots.get(name)
            for reader in drawn_devices(robot):
                there = now.devices.get(reader.name) if now is not None else None
                wanted = name in chosen or (there is not None and there.is_read)
                if wanted != reader.is_read:
                    reader.subscribe(SOURCE, wanted)
                    changed = True

        # Readings of newly subscribed sensors are computed now; otherwise the frame
        # would lack them.
        if changed:
            self.sim.settle()
        self.source.changed()

    def difference(self) -> Difference:
        """Return the robots that would change if the world returned to this moment.

        Returns
        -------
        Difference
            Names, each in the order of the robots in their simulation.
        """
        now, then = self._world.sim.robots, self.sim.robots
        missing = tuple(
            n
            for n, robot in now.items()
            # A robot with the same name but another spec is a different robot.
            if n not in then or then[n].spec is not robot.spec
        )
        return Difference(missing, tuple(n for n in then if n not in now))


__all__ = ["Difference", "Past"]
