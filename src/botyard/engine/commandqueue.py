"""Queue of commands to bodies, and the devices that inhibit motors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from botyard.engine.carrying import CarryingBodies
from botyard.engine.channels import LATE, Channels
from botyard.engine.commands import Command, SetVelocities
from botyard.engine.layout import (
    I8,
    Control,
    Mode,
)
from botyard.engine.tables import Table
from botyard.model.robot import CommandSpec
from botyard.model.scene import Scene

NO_ROWS: I8 = np.zeros(0, np.int64)


class CommandQueue(CarryingBodies):
    """Bodies with commands that wait for the next step, or are under way."""

    def __init__(self, scene: Scene, seed: int, step_us: int, begin: int) -> None:
        super().__init__(scene, seed, step_us, begin)
        self.channels = Channels()
        """Channels of robots whose commands are delayed or changed."""
        self._interlocks: list[tuple[Table, Callable[[], I8 | None]]] = []
        self._queue: list[tuple[int, str, int, str, Command]] = []
        self._bulk: list[tuple[str, int, SetVelocities]] = []
        self._sequence = 0

    def _switch_off(self, table: Table, rows: I8) -> None:
        """Disable the motors of bodies, and clear their targets, so that they stop.

        They stop with the highest deceleration if the table's attribute `brakes` is set.
        """
        s = self.state
        s.motors[rows] = 0
        s.mode_x[rows] = s.mode_a[rows] = Mode.VELOCITY
        s.target[rows] = 0.0
        s.control[rows[s.control[rows] != Control.NONE]] = Control.MOTORS
        if table.brakes:
            s.estop[rows] |= (s.vel[rows] != 0.0).any(axis=1)
        self._touch()

    def queue_command(self, name: str, command: Command, source: str = "api") -> None:
        """Queue a command for the next step; raise KeyError for an unknown name.

        Commands of one step take effect in the order of bodies, then sources, then
        arrival. The order in which clients are served does not matter.
        """
        row = self.rows[name]
        self._sequence += 1
        if name in self.channels:
            now = self.channels.send(
                name, command, source, self._sequence, body=row, **self._sending()
            )
            if now is None:
                return
            command = now

        self._queue.append((self.specs[row].uid, source, self._sequence, name, command))

    def set_channel(self, name: str, spec: CommandSpec) -> None:
        """Set the channel of a body from now on.

        Commands that wait for the next step still precede commands sent after this
        call.
        """
        was_late = self.channels.is_late(name, self.clock.dt)
        row = self.rows[name]
        self.channels.set(name, row, spec)
        if was_late or not self.channels.is_late(name, self.clock.dt):
            return
        late = [
            one for one in self._queue if one[3] == name and isinstance(one[4], LATE)
        ]
        waiting: list[tuple[str, int, Command]] = [
            (source, number, command) for _, source, number, _, command in late
        ]
        self._queue = [one for one in self._queue if one not in late]
        bulk, self._bulk = self._bulk, []
        for source, number, many in bulk:
            at = np.flatnonzero(many.rows == row)
            waiting += [(source, number, many.for_body(int(index))) for index in at]
            self._bulk.append((source, number, many.without(row) if len(at) else many))

        self.channels.put(name, self.clock.tick, waiting)

    def queue_velocities(self, command: SetVelocities, source: str = "api") -> None:
        """Queue velocities of many bodies for the next step.

        The result is the same as with a `SetVelocity` for each of them.
        """
        self._sequence += 1
        if self.channels:
            names = [spec.name for spec in self.specs]
            left = self.channels.send_many(
                command, names, source, self._sequence, **self._sending()
            )
            if left is None:
                return
            command = left

        self._bulk.append((source, self._sequence, command))

    def _sending(self) -> dict[str, Any]:
        """Return the arguments that channels need to send a command."""
        return {
            "state": self.state,
            "seed": self.seed_word,
            "tick": self.clock.tick,
            "dt": self.clock.dt,
        }

    @property
    def is_pending(self) -> bool:
        """Whether commands, or motors to be switched off, wait for the next step."""
        if (
            self._queue
            or self._bulk
            or self.channels.is_due(self.clock.tick, self.clock.dt)
        ):
            return True

        found = ((table, inhibited()) for table, inhibited in self._interlocks)
        return any(
            rows is not None and len(self._runs(rows, table.brakes))
            for table, rows in found
        )

    def _drain(self) -> None:
        """Apply the commands that are due.

        Motors that a device inhibits stay off against any command.
        """
        self._apply_commands()
        self.inhibit()

    def inhibit(self) -> None:
        """Switch off the motors that a device inhibits (`Table.inhibited`).

        One such device is a pressed emergency stop button.
        """
        for table, inhibited in self._interlocks:
            rows = inhibited()
            if (
                rows is not None
                and len(rows)
                and len(rows := self._runs(rows, table.brakes))
            ):
                self._switch_off(table, rows)

    def _runs(self, rows: I8, brakes: bool) -> I8:
        """Return the bodies in `rows` that `inhibit` has to switch off or to brake."""
        s = self.state
        runs = s.motors[rows] != 0
        if brakes:
            runs |= (s.vel[rows] != 0.0).any(axis=1) & (s.estop[rows] == 0)
        found: I8 = rows[runs]
        return found

    def _apply_commands(self) -> None:
        if self.channels and self.channels.arrive(
            self.state, self.clock.tick, self.clock.dt
        ):
            self._touch()

        if self._bulk:
            self._drain_bulk()
        if not self._queue:
            return
        queue, self._queue = self._queue, []
        # Bodies, then sources, then arrival: independent of the order of service.
        queue.sort(key=lambda item: item[:3])
        self._touch()
        for _, _, _, name, command in queue:
            command.apply(self.state, self.rows[name])

    def _drain_bulk(self) -> None:
        """Apply commands to many bodies.

        If a body also has other commands, its part is queued in order among them.
        """
        bulk, self._bulk = self._bulk, []
        if len(bulk) == 1 and not self._queue:
            bulk[0][2].apply(self.state, NO_ROWS)
            return
        bulk.sort(key=lambda item: item[:2])
        alone = {self.rows[name]: (uid, name) for uid, _, _, name, _ in self._queue}
        rows = np.array(list(alone), np.int64)
        for source, sequence, command in bulk:
            command.apply(self.state, rows)
            for index in np.flatnonzero(np.isin(command.rows, rows)) if alone else ():
                uid, name = alone[int(command.rows[index])]
                self._queue.append(
                    (uid, source, sequence, name, command.for_body(int(index)))
                )

    @property
    def sequence(self) -> int:
        """Number of commands queued so far."""
        return self._sequence

    def queued(self) -> Iterator[tuple[str, str, int, Command | SetVelocities]]:
        """Yield waiting commands as tuples (body, source, number, command).

        An empty body stands for many.
        """
        for _, source, number, name, command in self._queue:
            yield name, source, number, command
        for source, number, many in self._bulk:
            yield "", source, number, many
