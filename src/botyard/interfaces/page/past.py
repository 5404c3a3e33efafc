"""`Past`: shows a page an earlier moment, while the world goes on for everybody else.

A simulation beside the world is restored to the moment (`History.look`), and a
`ViewSource` of its own makes frames of it. Sensors are read that are read in the world
now, and those of the robots that the page has selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from botyard.interfaces.page.viewsource import Shown, ViewSource, drawn_devices
from botyard.sim.history import Moment
from botyard.sim.simulation import Simulation

SOURCE = "past"
"""Source of the subscriptions in the simulation beside the world."""


class Difference(NamedTuple):
    """What there was at a moment, against now: names of robots.

    Attributes
    ----------
    missing : tuple of str
        They are there now and were not then, or were others of the same name.
    gone : tuple of str
        They were there then and are not now.
    """

    missing: tuple[str, ...]
    gone: tuple[str, ...]


class _Beside:
    """The simulation beside the world, in the pace of the world."""

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
    """A moment that one page looks at.

    Parameters
    ----------
    world : Shown
        The running simulation.
    time : float
        Simulated time, s: the last moment then or before it is shown. StateError:
        nothing is kept.
    numbers : iterator of int
        Numbers of schemas, which no other source of the page's frames has.
    port_of : callable
        TCP port of a robot.
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
        self.source = ViewSource(_Beside(self.sim, world), port_of, numbers)

    def go(self, time: float) -> None:
        """Show another moment. StateError: nothing is kept any more."""
        history = self._world.sim.history
        self.moment = history.moment(time)
        history.look(time, self.sim)

    def read(self, selected: Iterable[str]) -> None:
        """Take readings of what is read in the world now, and of these robots; then the
        frame is another one.
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

        if changed:
            self.sim.settle()
        self.source.changed()

    def difference(self) -> Difference:
        """Which robots the world would lose and get if it went on from here."""
        now, then = self._world.sim.robots, self.sim.robots
        missing = tuple(
            n
            for n, robot in now.items()
            if n not in then or then[n].spec is not robot.spec
        )
        return Difference(missing, tuple(n for n in then if n not in now))


__all__ = ["Difference", "Past"]
