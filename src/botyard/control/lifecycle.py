"""Operations on a simulation as a whole in the terms of simulation_interfaces: stop it,
load a world, unload it.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from botyard.control.bodies import Reset
from botyard.control.caller import Caller
from botyard.control.later import then
from botyard.control.operation import Operation, argument, byte_string, optional, text
from botyard.control.site import Site
from botyard.control.time import NO_CLOCK
from botyard.control.world import NO_MAPS, LoadMap
from botyard.errors import NotNowError
from botyard.model.world import World
from botyard.names import shown


@dataclass(frozen=True, kw_only=True)
class Stop(Operation[None]):
    """Pause the simulation, put everything back where it started, and remove the robots
    that this source has added.

    Steps that somebody has asked for (`StepNow`) are not made any more.

    Simulated time stays: it never goes back.
    """

    audit = logging.INFO
    tells = "as for Pause and Reset"

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out."""
        _stand_still(control)
        Reset(spawned=True).perform(control, caller)
        control.stopped_at = control.sim.tick


def _stand_still(control: Site) -> None:
    """Pause, and end the steps that are under way, or the simulation would not be
    stopped after all.
    """
    clock = control.part(control.clock, NO_CLOCK)
    clock.pause()
    clock.cancel_steps()


def _unload(control: Site, caller: Caller) -> None:
    """Remove the robots that this source has added, and those that came with the world
    that was loaded.
    """
    Reset(spawned=True, starts=False).perform(control, caller)
    gone = [name for name in control.sim.robots if name in control.of_world]
    control.of_world = set()
    if gone:
        control.part(control.grounds, "nothing can be removed").remove(gone)


@dataclass(frozen=True, kw_only=True)
class LoadWorld(Operation[Future[bool]]):
    """Load a map or world, by name from the allowed folders or from the bytes of its
    file, and stop the simulation.

    The world that was there goes, with the robots that came with it by this operation
    and those that this source has added; those of the command line stay, and go back to
    their starts. When the new one cannot be loaded, the old one goes on.
    """

    map: str = argument(text(1000))
    data: bytes | None = argument(optional(byte_string), None)
    audit = logging.INFO
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Carry it out. The future fails with the reason when the file cannot be found
        or read.
        """
        maps = control.part(control.maps, NO_MAPS)
        control.part(control.clock, NO_CLOCK)
        asker = caller.key if caller.key is not None else caller.source

        def before(world: World) -> None:
            _unload(control, caller)
            control.of_world = {
                robot.name for robot in world.robots
            } - control.sim.robots.keys()

        if self.data is None:
            loading = maps.load(self.map, asker, before)
        else:
            loading = maps.load_bytes(self.map, self.data, asker, before)

        control.loading += 1

        def over(done: Future[bool]) -> bool:
            control.loading -= 1
            loaded = done.result()
            Stop().perform(control, caller)
            control.settle()
            return loaded

        return then(loading, over)

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"the world {shown(self.map)} was loaded"


@dataclass(frozen=True, kw_only=True)
class UnloadWorld(Operation[None]):
    """Remove the map, the robots that came with it by `LoadWorld`, and those that this
    source has added, and pause, until a world comes.
    """

    audit = logging.INFO
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out. NotNowError: no world is loaded, or one is being loaded, which
        might be there afterwards or not.
        """
        if control.loading:
            raise NotNowError("a world is being loaded")
        if control.is_unloaded:
            raise NotNowError("no world is loaded")
        maps = control.part(control.maps, NO_MAPS)
        _stand_still(control)
        _unload(control, caller)
        maps.clear()
        control.unloaded = control.sim.scene


__all__ = ["LoadWorld", "Stop", "UnloadWorld"]
