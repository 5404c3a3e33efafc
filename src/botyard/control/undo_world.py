"""Undo parts for the whole world: a replaced map, or a return to an earlier moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from botyard.control.adding import NO_ROBOT_HOST
from botyard.control.bodies import Remove
from botyard.control.caller import Caller
from botyard.control.history import went_elsewhere
from botyard.control.parts import Replaced
from botyard.control.site import Site
from botyard.control.undo_bodies import Placed, Removed, Spot
from botyard.control.undo_part import (
    Kept,
    Log,
    Part,
    Placements,
    TakingBack,
)
from botyard.control.world import NO_MAPS
from botyard.errors import BotyardError, StateError
from botyard.model.scene import Scene
from botyard.names import shown
from botyard.sim.simulation import Simulation


@dataclass
class MapReplaced(Part):
    """Undo part for a map that another map has replaced.

    Attributes
    ----------
    replaced : Replaced
        The former map.
    by : str
        Name of the map that replaced it; empty: the map was removed.
    """

    replaced: Replaced
    by: str
    kept: Mapping[str, Kept] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, control: Site, replaced: Replaced, own: Placements) -> list[Part]:
        """Return undo parts for a replaced map, and for robots that the new map moved.

        Parameters
        ----------
        control : Site
            Context of operations, with the new map in place.
        replaced : Replaced
            The former map.
        own : Placements
            Placements of the client. In-place: placements by the new map are added.
        """
        sim, spots = control.sim, {}
        for name, robot in replaced.robots.items():
            # Restore only robots that the change of the map has not replaced.
            if sim.robots.get(name) is robot:
                number = sim.core.placements(name) - replaced.placements[name]
                if number:
                    # The load of the map placed the robot for this client, so the
                    # placement is its own.
                    own.count_own((name, robot), number)
                    others = own.by_others(sim, (name, robot))
                    # Loading a map keeps odometry, so it is not restored.
                    spots[name] = Spot(robot, replaced.poses[name], None, others)

        return [cls(replaced, sim.scene.name), Placed(spots)]

    @property
    def size(self) -> int:
        """Size of the map that the part keeps, bytes."""
        scene = self.replaced.scene
        # The size is at least 1, because parts of size 0 without bodies are dropped.
        return 1 + int(scene.segments.nbytes + scene.points.nbytes)

    @property
    def what(self) -> str:
        """Description of the replacement, for messages."""
        return f"loading {shown(self.by, 60)}" if self.by else "removing the map"

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Restore the former map and its boxes; remove the new map's robots, end its traffic."""
        sim = control.sim
        maps, robot_host = (
            control.part(control.maps, NO_MAPS),
            control.part(control.robot_host, NO_ROBOT_HOST),
        )
        # List the robots before the map is restored, after which `arrived` has other
        # robots; the same holds for the run of traffic.
        run = robot_host.traffic_version
        came = [
            robot.name
            for robot in robot_host.arrived
            if sim.robots.get(robot.name) is robot
        ]
        try:
            # The index of the walls is built in a thread, and the world runs meanwhile.
            yield maps.put_back(self.replaced)
        except BotyardError as error:
            notes.append(str(error))
            return []

        # A run that other clients have started or ended since is left as it is.
        if run and control.traffic is not None and control.traffic.version == run:
            control.traffic.end()
        # Clients may have removed robots while the map was loaded.
        came = [name for name in came if name in sim.robots]
        # Copy the bodies before the removal: the copy becomes the step that redoes
        # this.
        removed = Removed.of(control, came)
        if came:
            Remove(names=tuple(came)).perform(control, caller)
        for name in sim.core.box_names:
            if name in self.replaced.poses:
                sim.put(name, self.replaced.poses[name], caller.source)
                # The client's own placement does not count as foreign.
                own.count_own((name, control.identity(name)), 1)

        # Redo needs the map that the restored map has just replaced.
        present = maps.replaced
        return (
            [] if present is None else [removed, *MapReplaced.of(control, present, own)]
        )


@dataclass
class WentBack(Part):
    """Undo part for a return to an earlier moment: the state, map and models before it.

    Attributes
    ----------
    time : float
        Simulated time from which the world has continued, s.
    """

    state: bytes
    scene: Scene
    models: tuple[object, ...]
    time: float
    kept: Mapping[str, Kept] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, sim: Simulation) -> WentBack | None:
        """Return an undo part for the current world; None if the world cannot be saved."""
        try:
            # Scene and models are kept as objects: the state only refers to them.
            return cls(sim.save_state(), sim.scene, sim.core.states.models(), sim.time)
        except StateError:
            return None

    @property
    def size(self) -> int:
        """Size of the state and the map that the part keeps, bytes."""
        return len(self.state) + int(
            self.scene.segments.nbytes + self.scene.points.nbytes
        )

    @property
    def what(self) -> str:
        """Description of the return to the earlier moment, for messages."""
        return f"continuing from {self.time:.1f} s"

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Return the whole world to its former state.

        The steps of all clients are forgotten.

        If the present world or the former state cannot be restored, a note reports this
        and the world stays as it is.
        """
        # The world may change only between two steps.
        yield None
        sim = control.sim
        # Save the world before it changes; otherwise there would be no redo.
        inverse = WentBack.of(sim)
        if inverse is None:
            notes.append("the current world cannot be saved")
            return []

        # The state names models that the current world may not have.
        sim.core.states.know(self.models)
        try:
            sim.core.states.branch(self.state, self.scene)
        except StateError as error:
            notes.append(str(error))
            return []

        # A redo also continues from the same moment.
        inverse.time = self.time
        # Later moments belong to the abandoned run.
        sim.history.forget_after(self.time)
        went_elsewhere(control)
        log.begin_anew(own)
        control.settle()
        return [inverse]


__all__ = ["MapReplaced", "WentBack"]
