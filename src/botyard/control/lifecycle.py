"""Operations on a simulation in the terms of simulation_interfaces.

The operations stop the simulation, load a world, or unload the world.
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
    """Pause the simulation, and put all bodies at their start poses.

    The robots that this source added are removed, and requested steps (`StepNow`) are
    cancelled. Simulated time stays as it is; it never decreases.
    """

    audit = logging.INFO
    tells = "as for the operations Pause and Reset"

    def perform(self, control: Site, caller: Caller) -> None:
        """Pause the simulation, and put all bodies at their start poses."""
        _stand_still(control)
        # Reset after the pause, so that no step is made between both.
        Reset(spawned=True).perform(control, caller)
        # `is_stopped` compares the tick: any later step ends the state "stopped".
        control.stopped_at = control.sim.tick


def _stand_still(control: Site) -> None:
    """Pause the simulation, and cancel the requested steps, which would otherwise continue."""
    clock = control.part(control.clock, NO_CLOCK)
    clock.pause()
    clock.cancel_steps()


def _unload(control: Site, caller: Caller) -> None:
    """Remove the robots that this source added, and the robots of the loaded world."""
    Reset(spawned=True, starts=False).perform(control, caller)
    gone = [name for name in control.sim.robots if name in control.of_world]
    control.of_world = set()
    if gone:
        control.part(control.robot_host, "nothing can be removed").remove(gone)


@dataclass(frozen=True, kw_only=True)
class LoadWorld(Operation[Future[bool]]):
    """Load a map or world, and stop the simulation.

    The world is loaded by name from the allowed folders, or from the bytes of its file.
    The previous world is removed, with the robots that its `LoadWorld` added, and the
    robots that this source added. Robots of the command line stay and return to their
    start poses. If the new world cannot be loaded, the previous one continues.

    Parameters
    ----------
    map : str
        Name of the map or world; with `data`, the name of its file.
    data : bytes, optional
        Contents of the file.
    """

    map: str = argument(text(1000))
    data: bytes | None = argument(optional(byte_string), None)
    audit = logging.INFO
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Start to load the world.

        Returns
        -------
        Future
            True when the world is in place. It fails if the file cannot be found or
            read; the previous world then continues.

        Raises
        ------
        WorldError
            This simulator cannot load maps, or its time cannot be paused.
        """
        maps = control.part(control.maps, NO_MAPS)
        control.part(control.clock, NO_CLOCK)
        asker = caller.key if caller.key is not None else caller.source

        def before(world: World) -> None:
            _unload(control, caller)
            # Robots that already exist belong to the command line and stay.
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
            # Raises the error of a failed load, so that the simulation is not stopped.
            loaded = done.result()
            # LoadWorld of simulation_interfaces ends in the stopped state.
            Stop().perform(control, caller)
            control.settle()
            return loaded

        return then(loading, over)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"the world {shown(self.map)} was loaded"


@dataclass(frozen=True, kw_only=True)
class UnloadWorld(Operation[None]):
    """Remove the map, and pause until a world is loaded.

    The robots of a world that `LoadWorld` loaded are removed, and the robots that this
    source added.
    """

    audit = logging.INFO
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> None:
        """Remove the map and the robots of the loaded world, and pause.

        Raises
        ------
        NotNowError
            No world is loaded, or a world is being loaded, so that the result would be
            unpredictable.
        """
        if control.loading:
            raise NotNowError("a world is being loaded")
        if control.is_unloaded:
            raise NotNowError("no world is loaded")
        maps = control.part(control.maps, NO_MAPS)
        _stand_still(control)
        _unload(control, caller)
        maps.clear()
        # Keep the scene: its identity shows later whether another map was loaded.
        control.unloaded = control.sim.scene


__all__ = ["LoadWorld", "Stop", "UnloadWorld"]
