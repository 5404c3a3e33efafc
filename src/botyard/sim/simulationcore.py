"""Internal API of a simulation, for ports, servers, recording and the page.

Programs of users have `Simulation`. Everything here may change between two releases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from botyard.api import arguments
from botyard.api.listeners import Listeners
from botyard.api.revisions import Subject
from botyard.engine.layout import F8
from botyard.geometry import Pose
from botyard.sim.core import Core
from botyard.sim.episodes import Episodes
from botyard.sim.floors import Floors
from botyard.sim.floorview import FloorView
from botyard.sim.journal import Reset
from botyard.sim.masses import Masses
from botyard.sim.places import Places
from botyard.sim.programs import employ
from botyard.sim.savedstates import SavedStates

log = logging.getLogger("botyard")


class SimulationCore(Core):
    """Core of a simulation with its episodes, saved states and places for robots.

    `Simulation.core` is this object. Takes the parameters of `Core`.

    ================  ==============================================================
    `engine`          arrays of all bodies, clock, tables of devices; for inspection
    `devices`         range sensors: subscriptions, ranges, latency
    `accept_command`  queues a command to a robot or a box; see also
                      `accept_velocities`, `is_pending`, `holders`, `placements`
    `journal`         ``journal.listen(listener)`` reports each change from outside
    `feed`            revision counters of rare changes
    `robots`          handles by name; `unserve` hides robots from clients
    `programs`        programs that drive robots
    `places`          the map's home and free places for more robots
    `floor`           floor of the world, as `Simulation.floor`
    `floors`          costmaps of the map, on which paths are planned
    `masses`          masses of bodies, as `Simulation.masses`
    `descriptions`    joints and ray sensors of description files
    `states`          saved states, and continuing from one with clients connected
    `episodes`        number and seed of the present episode
    `timing`          lengths of a step in simulated and real time
    `belong_to`       lets one thread alone change the world
    ================  ==============================================================
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.episodes = Episodes(self.engine)
        self.places = Places(self)
        self.floor = FloorView(self)
        self.floors = Floors(self)
        self.masses = Masses(self)
        self.states = SavedStates(self)
        self.closing = Listeners[None](log, "closing the simulation")
        """Functions that `Simulation.close` calls with None."""

    def on_close(self, act: Callable[[None], object]) -> Callable[[], None]:
        """Call `act` with None when the simulation is closed.

        Parameters
        ----------
        act : callable
            Takes None; its result is ignored. An exception is logged as an error at the
            end of a simulation, and the other functions are still called.

        Returns
        -------
        callable
            Removes `act`; takes no arguments.

        Raises
        ------
        ArgumentError
            `act` is not callable.
        """
        return self.closing.add(arguments.function(act, "act"))

    def begin_episode(self, world: int, number: int, given: F8 | None) -> None:
        """Start an episode with checked poses; see `Simulation.reset`.

        Parameters
        ----------
        world : int
            Seed of the world to which the episode belongs.
        number : int
            Number of the episode. The seed and this number give all its random draws.
        given : (m, 3) float64 or None
            Start poses of the m robots in order of creation: x, y in m, heading in rad.
            None: the poses at which they were added.
        """
        tick = self.tick
        self.episodes.begin(world, number, self._starts, self.robots, given, self.holds)
        for robot in self.robots.values():
            # Clients see the start of an episode as a placement.
            robot._teleports += 1
            self.placed_count += 1
        self.feed.record_change(Subject.TIME)
        if self.journal.is_read:
            told = (
                None if given is None else tuple(Pose(*row) for row in given.tolist())
            )
            self.journal.note(tick, None, Reset(world, number, told))

        # Last: commands of restarting controllers belong to the new episode, and the
        # episode is complete even if a controller fails.
        for name, program in self.programs.again():
            employ(self.robots[name], program, anew=True)

    def _starts(self) -> Mapping[str, Pose]:
        """Return the start poses of all bodies by name."""
        robots = {name: robot.start for name, robot in self.robots.items()}
        return robots | self.box_poses()


__all__ = ["SimulationCore"]
