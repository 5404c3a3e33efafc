"""Host object of the engine: it runs the step.

It applies queued commands, calls the step, and publishes snapshots. Only `Engine` writes
the state; its base classes have the bodies and the commands. It knows neither files nor
protocols nor kinds of sensors. Devices are tables, which may act, and `SensePhase`
objects, which are notified when rows change and called once per step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from botyard.engine.bodyregistry import NOTES_CONTACTS, BodyRegistry
from botyard.engine.build import (
    build_bins,
    build_bodies,
)
from botyard.engine.channels import Sent
from botyard.engine.commands import Command
from botyard.engine.kernels.packed import WorldPack
from botyard.engine.layout import (
    NO_BODY,
    OdometryErrorMode,
    World,
    allocate_state,
)
from botyard.engine.rng import DEFAULT_SEED, seed_word
from botyard.engine.sharedstep import SharedStep
from botyard.engine.snapshot import Snapshot
from botyard.engine.step import FOLLOW, MOVE, PLACE
from botyard.engine.tables import Table
from botyard.engine.velocities import SetVelocities
from botyard.engine.wallgrid import build_grid, with_floor
from botyard.model.floor import Floor
from botyard.model.scene import Scene
from botyard.native.kinds import Pack
from botyard.processes.parallel import Workers

MAX_ROWS_AT_ONCE: Final = 200_000
"""Highest number of bodies times steps in one call of compiled code.

The call then takes less than a tenth of a second.
"""


class SensePhase(Protocol):
    """Sensors of one kind, as the engine uses them.

    Sensors change nothing in the world, and also measure while time stands still.
    """

    @property
    def table(self) -> Table:
        """Table with one row for each sensor."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether the sensors must measure in every step, with or without readers.

        This is necessary if a measurement affects later ones.
        """
        ...

    def rebuild(self, engine: Engine) -> None:
        """Renew derived data after bodies were added, removed or reordered."""
        ...

    def forget(self) -> None:
        """Drop earlier measurements because the world continues from another state.

        They do not belong to the past of the new state.
        """
        ...

    def begin(self, engine: Engine) -> None:
        """Measure in the state before a step, if this is needed."""
        ...

    def sense(self, engine: Engine) -> None:
        """Take the readings of this step."""
        ...


class Engine(BodyRegistry):
    """World of bodies that can be stepped.

    Parameters
    ----------
    scene : Scene
        Static world and boxes.
    seed : int
        Seed of all random draws.
    step_us : int
        Simulated time of one step, µs.
    begin : int
        Initial number of steps done.
    odometry_error_mode : OdometryErrorMode
        How odometry errors are drawn for robots that are added from now on.
    tables : sequence of Table
        State of devices. A method ``act(engine, dt)`` is called in this order in every
        step, after all bodies have moved and before any sensor measures, and never while
        time stands still. A method ``plan(engine)`` is called before any body moves, for
        errors of odometry.
    senses : sequence of SensePhase
        Sensors, called in this order in every step, and when the world settles.
    workers : Workers, optional
        Threads that step a world of many bodies; by default it has one.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        seed: int = DEFAULT_SEED,
        step_us: int = 100_000,
        begin: int = 0,
        odometry_error_mode: OdometryErrorMode = OdometryErrorMode.RANDOM_EACH_UPDATE,
        tables: Sequence[Table] = (),
        senses: Sequence[SensePhase] = (),
        workers: Workers | None = None,
    ) -> None:
        super().__init__(
            scene,
            seed,
            step_us,
            begin,
            odometry_error_mode,
            (*tables, *(sense.table for sense in senses)),
        )
        self._senses = tuple(senses)
        if workers is not None and workers.count > 1:
            self._shared = SharedStep(workers)
        self._add_boxes(scene)

    def _rebuilt(self) -> None:
        super()._rebuilt()
        for sense in self._senses:
            sense.rebuild(self)
        self._publish()

    def replace_floor(self, floor: Floor | None) -> None:
        """Replace the floor between two steps.

        Walls and bodies stay. Pheromone fields with an unchanged description keep their
        levels.

        Parameters
        ----------
        floor : Floor or None
            New floor.
        """
        self.scene = replace(self.scene, floor=floor)
        self.grid = with_floor(self.grid, floor)
        self._renew_fields(keeps=True)
        self._rebuilt()

    # -- Restoration of a state

    def resume(
        self,
        *,
        tick: int,
        step_us: int,
        seed: int,
        sequence: int,
        queue: Sequence[tuple[str, str, int, Command | SetVelocities]],
        under_way: Mapping[str, Sequence[Sent]] = MappingProxyType({}),
    ) -> None:
        """Set time, seed, waiting commands and commands under way.

        Write the columns of the state before this call, and call `resumed` after it.

        Parameters
        ----------
        tick : int
            Number of steps done.
        step_us : int
            Simulated time of a step, µs.
        seed : int
            Seed of all random draws.
        sequence : int
            Number of commands queued so far; the next command gets the next number.
        queue : sequence of (str, str, int, Command or SetVelocities)
            Commands that wait for the next step, as from `queued`.
        under_way : mapping of str to sequence of Sent
            Commands under way by name of the body, see `Channels.under_way`.

        Raises
        ------
        KeyError
            A command is for a body that does not exist.
        """
        self._queue, self._bulk = [], []
        self.clock.tick, self.clock.step_us = tick, step_us
        self.channels.empty_all()
        for name, sent in under_way.items():
            self.channels.resume(name, self.rows[name], sent)

        for sense in self._senses:
            sense.forget()
        for name, source, number, command in queue:
            if isinstance(command, SetVelocities):
                self._bulk.append((source, number, command))
            else:
                self._queue.append(
                    (self.specs[self.rows[name]].uid, source, number, name, command)
                )

        self._sequence = sequence
        self.seed_word = seed_word(seed)
        self.seed = seed

    def resumed(self) -> None:
        """Compute all derived values after columns were written."""
        self.bodies.placed[:] = np.nan
        self._rebuilt()

    def reseed(self, seed: int) -> None:
        """Use another seed for all random draws from now on.

        Parameters
        ----------
        seed : int
            Seed; its low 64 bits count.
        """
        self.seed, self.seed_word = seed, seed_word(seed)

    # -- Time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps.

        `botyard.engine.step` defines the order of events.

        Steps between the first and the last one run in compiled code if only bodies
        without mass take part in them. Sensors can be skipped there, because their
        readings would have no reader.

        Parameters
        ----------
        n : int
            Number of steps; 0 does nothing.

        Returns
        -------
        Snapshot
            State after the last step. Its arrays are overwritten two steps later.
        """
        # The first step runs in full, because it applies queued commands.
        while n > 0:
            self._step()
            n -= 1
            # The last step runs in full, so that sensors measure the final state.
            if n > 1 and self._is_plain():
                self._advance_alone(n - 1)
                n = 1

        return self.snapshot

    def _step(self) -> None:
        dt = self.clock.dt
        # Delayed sensors that have never measured do so now, also without a reader.
        for sense in self._senses:
            sense.begin(self)
        # Commands first, since plans may depend on targets.
        self._drain()
        for plan in self._plans:
            plan(self)

        if self.dynamics is None:
            self._advance(MOVE | FOLLOW)
        else:
            # Store the poses before the step: velocities of pushes follow from them.
            self.dynamics.begin(self.state, self.bodies, self.bins, self.grid)
            self._advance(MOVE)
            self.dynamics.step(self.clock.dt, self.specs)
            self._advance(FOLLOW)

        self.clock.tick += 1
        # Set this after the tick: the obstacles belong to the step that has just ended.
        self._met_at = self.clock.tick if self._notes_contacts else None
        # Carried bodies follow before sensors measure, but after all carriers have
        # moved.
        self._carry()
        # Devices act on the new poses, and sensors see the result in the same step.
        for act in self._acts:
            act(self, dt)
        for sense in self._senses:
            sense.sense(self)
        # Publish last, so that a snapshot never shows half a step.
        self._publish()

    def _is_plain(self) -> bool:
        """Return whether only bodies without mass take part in the next steps.

        New commands are not considered.
        """
        return (
            self.dynamics is None
            and not (self._carried is None or len(self._carried))
            and not (self._queue or self._bulk)
            and all(table.is_idle for table in self.tables.values())
            and not any(sense.remembers for sense in self._senses)
        )

    def _advance_alone(self, count: int) -> None:
        """Advance by `count` plain steps, without sensors and snapshots.

        The steps run in parts, so that a program can be interrupted.
        """
        # Python handles Ctrl-C only between two calls of compiled code.
        most = max(MAX_ROWS_AT_ONCE // max(len(self.specs), 1), 1)
        try:
            while count > 0:
                part = min(count, most)
                self._advance(MOVE | FOLLOW, part)
                self.clock.tick += part
                count -= part

            self._met_at = None
        except BaseException:
            # The tick may have advanced before the interrupt: the snapshot must agree
            # with it.
            self._publish()
            raise

    def note_contacts(self) -> None:
        """Store the obstacle of each blocked body in every step from now on; `met` returns it.

        It costs time only for stopped bodies.
        """
        # The flag is never cleared: another program may still rely on it.
        if not self._notes_contacts:
            self._notes_contacts = True
            self.bodies = self.bodies._replace(feels=self.bodies.feels | NOTES_CONTACTS)

    def met(self, row: int) -> int | None:
        """Return the obstacle of a body in the last step.

        Parameters
        ----------
        row : int
            Row of the body.

        Returns
        -------
        int or None
            Row of the obstacle, or `WALL`. None if obstacles are not stored
            (`note_contacts`), and for a stalled body with mass on which nothing presses.
            A body that moved freely keeps its last obstacle: `State.stall` says whether
            it is blocked.
        """
        # An obstacle that an earlier step has stored may be gone.
        if self._met_at != self.clock.tick:
            return None
        found = int(self.bins.met[row])
        return None if found == NO_BODY else found

    def settle(self) -> Snapshot:
        """Apply queued commands and take all readings without a step.

        Use it to place bodies before the first step, or while paused. No device acts:
        grippers, batteries and joints stay as they are.

        Returns
        -------
        Snapshot
            State with the same time as before.
        """
        self._drain()
        self._advance(PLACE)
        for sense in self._senses:
            sense.sense(self)
        self._publish()
        return self.snapshot

    def _publish(self) -> None:
        view = self._store.publish()
        self.snapshot = Snapshot(
            self.clock.tick, self.clock.time_us, MappingProxyType(self.rows), view
        )


def empty_world() -> Pack[World]:
    """Return an empty world, with which kernels are called once to compile them."""
    state, _ = allocate_state(0)
    return WorldPack()(state, build_bodies(()), build_bins(0), build_grid(Scene()))
