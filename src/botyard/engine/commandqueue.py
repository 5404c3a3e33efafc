"""Queue of commands to bodies, and the devices that inhibit motors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from botyard.engine.carrying import CarryingBodies
from botyard.engine.channels import Channels
from botyard.engine.commands import Command
from botyard.engine.latecommands import LATE
from botyard.engine.layout import (
    I8,
    Control,
    Mode,
)
from botyard.engine.tables import Table
from botyard.engine.velocities import SetVelocities
from botyard.model.robot import CommandSpec
from botyard.model.scene import Scene

NO_ROWS: I8 = np.zeros(0, np.int64)
"""Empty array of rows; made once, because each step needs it."""


class CommandQueue(CarryingBodies):
    """Bodies with commands that wait for the next step or are under way.

    Parameters
    ----------
    scene : Scene
        Static world.
    seed, step_us : int
        Seed of all random draws, and simulated time of a step, µs.
    """

    def __init__(self, scene: Scene, seed: int, step_us: int, begin: int) -> None:
        super().__init__(scene, seed, step_us, begin)
        self.channels = Channels()
        """Channels of robots whose commands are delayed or changed."""
        self._interlocks: list[tuple[Table, Callable[[], I8 | None]]] = []
        self._queue: list[tuple[int, str, int, str, Command]] = []
        """Waiting commands: uid of the body, source, number, name of the body, command.

        The first three give their order.
        """
        self._bulk: list[tuple[str, int, SetVelocities]] = []
        """Waiting commands to many bodies: source, number, command."""
        self._sequence = 0

    def _switch_off(self, table: Table, rows: I8) -> None:
        """Disable the motors of bodies, and clear their targets, so that they stop.

        They stop with the highest deceleration if the table's attribute `brakes` is set.
        """
        s = self.state
        s.motors[rows] = 0
        # A distance or heading target would move the robot when motors are on again.
        s.mode_x[rows] = s.mode_a[rows] = Mode.VELOCITY
        s.target[rows] = 0.0
        # Ends forces from outside: control returns to the motors, which are off and brake.
        s.control[rows[s.control[rows] != Control.NONE]] = Control.MOTORS
        if table.brakes:
            # A robot at rest needs no stop, and a latched stop would block its next
            # command.
            s.estop[rows] |= (s.vel[rows] != 0.0).any(axis=1)
        self._touch()

    def queue_command(self, name: str, command: Command, source: str = "api") -> None:
        """Queue a command for the next step.

        Commands of one step take effect in the order of bodies, then sources, then
        arrival. The order in which clients are served does not matter. A motion
        command to a body with a latency is delayed by its channel instead.

        Parameters
        ----------
        name : str
            Name of the body.
        command : Command
            Command in SI units. Its values were checked when it was made.
        source : str
            Source of the command, such as the name of a client.

        Raises
        ------
        KeyError
            There is no body of that name.
        """
        row = self.rows[name]
        # Counted before the channel, so that the order of commands is the order of
        # calls.
        self._sequence += 1
        if name in self.channels:
            now = self.channels.send(
                name, command, source, self._sequence, body=row, **self._sending()
            )
            if now is None:
                return
            command = now

        # The uid comes first, because it does not depend on the order of creation.
        self._queue.append((self.specs[row].uid, source, self._sequence, name, command))

    def set_channel(self, name: str, spec: CommandSpec) -> None:
        """Set the channel of a body from now on.

        Commands that wait for the next step still precede commands sent after this
        call.

        Parameters
        ----------
        name : str
            Name of the body.
        spec : CommandSpec
            Latency and jitter, s, rate, Hz, and scale of commands.

        Raises
        ------
        KeyError
            There is no body of that name.
        """
        was_late = self.channels.is_late(name, self.clock.dt)
        row = self.rows[name]
        self.channels.set(name, row, spec)
        # Waiting commands enter the channel only if it delays commands from now on.
        if was_late or not self.channels.is_late(name, self.clock.dt):
            return
        late = [
            one for one in self._queue if one[3] == name and isinstance(one[4], LATE)
        ]
        waiting: list[tuple[str, int, Command]] = [
            (source, number, command) for _, source, number, _, command in late
        ]
        # Waiting commands would otherwise overtake commands that are under way.
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

        Parameters
        ----------
        command : SetVelocities
            Velocities by row. Its arrays are not copied: they must not change before
            the step.
        source : str
            Source of the command, such as the name of a client.
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
        """Return the arguments of `Channels.send` that are the same for all commands of a step."""
        return {
            "state": self.state,
            "seed": self.seed_word,
            "tick": self.clock.tick,
            "dt": self.clock.dt,
        }

    @property
    def is_pending(self) -> bool:
        """Whether commands, or motors to be switched off, wait for the next step."""
        # Cheap tests first: interlocks check all robots.
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

        Motors that a device inhibits stay off, whatever commands arrive.
        """
        # Interlocks follow, so that no command of this step can switch motors on.
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
        """Return the bodies in `rows` that `inhibit` has to switch off or to brake.

        Parameters
        ----------
        rows : (n,) int64
            Rows of bodies whose motors a device inhibits.
        brakes : bool
            Whether bodies that still move have to brake, see `Table.brakes`.

        Returns
        -------
        (k,) int64
            Rows with motors on, or in motion without an emergency stop.
        """
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
        # Sort by body, then source, then arrival: the result does not depend on the
        # order in which clients are served.
        queue.sort(key=lambda item: item[:3])
        self._touch()
        for _, _, _, name, command in queue:
            command.apply(self.state, self.rows[name])

    def _drain_bulk(self) -> None:
        """Apply commands to many bodies.

        If a body also has single commands, its part of the velocities joins them in
        order.
        """
        bulk, self._bulk = self._bulk, []
        # The usual case, in which no order has to be kept.
        if len(bulk) == 1 and not self._queue:
            bulk[0][2].apply(self.state, NO_ROWS)
            return
        bulk.sort(key=lambda item: item[:2])
        alone = {self.rows[name]: (uid, name) for uid, _, _, name, _ in self._queue}
        rows = np.array(list(alone), np.int64)

        for source, sequence, command in bulk:
            # Leave out the bodies in `rows`: their velocities join their single commands in
            # the queue below.
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

        The name of the body is empty for a command to many bodies.

        Yields
        ------
        tuple of (str, str, int, Command or SetVelocities)
            Name of the body, name of the source, number among the commands of the
            engine, and command. Commands to single bodies come first; neither part is
            sorted.
        """
        for _, source, number, name, command in self._queue:
            yield name, source, number, command
        for source, number, many in self._bulk:
            yield "", source, number, many
