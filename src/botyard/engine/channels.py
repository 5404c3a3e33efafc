"""Channels that delay or change commands: latency with jitter, rate, and scale.

A channel keeps the order of commands. The arrival time of a command is a function of
the seed, the robot and the step in which it was sent. A command takes effect at the
robot's next cycle after its arrival. A robot with neither latency, rate nor scale
has no channel, and its commands go straight into the engine's queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from botyard.engine.commands import (
    Command,
    Halt,
    SetVelocity,
)
from botyard.engine.kernels.delayrings import (
    COUNT,
    DUE,
    FIRST,
    SINCE,
    delay_steps,
    drop_oldest,
    is_cycle,
    is_next_due,
    is_slower,
    put,
)
from botyard.engine.kernels.latency import (
    COMMAND_STREAM,
    JITTER,
    LATENCY,
    RATE,
    RING,
    ROOM,
    SCALE,
)
from botyard.engine.latecommands import (
    KIND,
    KINDS,
    SOURCE,
    VELOCITY,
    WIDTH,
    decode,
    encode,
    scaled,
)
from botyard.engine.layout import F8, I8, Control, Mode, State
from botyard.engine.rings import RingTable, Waiting, used_slots
from botyard.engine.rng import draws
from botyard.engine.tables import Column, Row
from botyard.engine.velocities import SetVelocities
from botyard.model.robot import PLAIN_COMMANDS, CommandSpec

# A program that sends in a loop without steps must not fill the memory.
MAX_UNDER_WAY: Final = 10_000
"""Highest number of commands under way to a robot.

At this number, a new command replaces the newest one that is under way.
"""
MAX_SEQUENCE: Final = 2**63 - 1
"""Highest number that a command can have in `Sent.sequence`."""
# Clients on the network choose their names, and each name takes memory.
MAX_SOURCES: Final = 1000
"""Number of command sources above which sources without commands under way are forgotten."""


class Sent(NamedTuple):
    """Command under way.

    Attributes
    ----------
    due : int
        Step before which it arrives. It takes effect at the robot's next cycle, which is
        that step or a later one.
    sent : int
        Step before which it was sent.
    source : str
        Source of the command.
    sequence : int
        Number among the commands of the engine.
    command : Command
        The command, after scaling.
    """

    due: int
    sent: int
    source: str
    sequence: int
    command: Command


class _Channel(Row["Channels"]):
    """Command channel of one body, whose name is its key."""

    def detach(self) -> None:
        """Forget the channel; its body was removed."""
        del self.table.of[self.key]


class Channels(RingTable):
    """Channels of bodies, by name.

    A ring holds the commands under way to a body. The values of a velocity are its
    components (forward, left, turn), NaN for an axis that keeps its target. The first
    value of another command is its distance, heading or angle. The marks of a command are
    its kind, its source and its number, see `KIND`.

    Attributes
    ----------
    channel : (n, 6) float64
        Properties of each channel: `LATENCY`, `JITTER`, `RATE`, and three `SCALE`.
    of : dict of str to Row
        Rows by name of the body.
    """

    name = "command_channel"
    columns: ClassVar = {
        **RingTable.columns,
        "channel": Column(np.float64, 6, saved=False),
    }
    marks_type = np.int64
    max_room = MAX_UNDER_WAY
    channel: F8

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[Any, _Channel] = {}
        self._sources: dict[str, int] = {}
        """Number of each command source, as in `marks`."""
        self._most_sources = MAX_SOURCES

    def __contains__(self, name: str) -> bool:
        return name in self.of

    @property
    def is_idle(self) -> bool:
        """Whether no command is under way to any body."""
        return not self.of or not self.counts.any()

    def set(self, name: str, body: int, spec: CommandSpec) -> None:
        """Set the properties of the channel of a body; keep commands under way.

        Parameters
        ----------
        name : str
            Name of the body.
        body : int
            Row of the body.
        spec : CommandSpec
            Latency and jitter, s, rate, Hz, and scale of commands. Without any of them,
            a body without a channel gets none.
        """
        # A channel that lost its properties stays: commands may be under way in it.
        if spec != PLAIN_COMMANDS or name in self.of:
            # Look up the row first, because a new row replaces the array `channel`.
            row = self._row(name, body)
            self.channel[row] = (
                spec.latency,
                spec.jitter,
                spec.rate,
                *spec.scale.as_tuple(),
            )

    def _row(self, name: str, body: int) -> int:
        """Return the row of the channel of a body; add a channel if the body has none."""
        channel = self.of.get(name)
        if channel is None:
            channel = self.of[name] = _Channel(self, body, name)
            # A factor of 0 would stop the robot.
            self.channel[channel.number, SCALE:] = 1.0
        return channel.number

    def is_late(self, name: str, dt: float) -> bool:
        """Return whether motion commands to a body go through its channel now.

        The channel is used if it has a latency, a rate below the rate of steps, or
        commands under way.

        Parameters
        ----------
        name : str
            Name of the body.
        dt : float
            Duration of a step, s.
        """
        channel = self.of.get(name)
        return channel is not None and self._is_late(channel.number, dt)

    def _is_late(self, row: int, dt: float) -> bool:
        # Commands follow those still in the ring, even after the latency was set to 0:
        # otherwise they would overtake them.
        return bool(
            self.channel[row, LATENCY] > 0.0
            or self.times[self.place[row, RING], COUNT] > 0
            or is_slower(float(self.channel[row, RATE]), dt)
        )

    def under_way(self) -> Mapping[str, Sequence[Sent]]:
        """Return commands under way by name of the body, in order of arrival."""
        if self.is_idle:
            return {}
        # Names of sources by number; rarely needed, so this mapping is not stored.
        names = {number: source for source, number in self._sources.items()}
        found: dict[Any, Sequence[Sent]] = {}
        for row in np.flatnonzero(self.counts).tolist():
            times, values, marks = self.waiting(row)
            found[self.rows[row].key] = [
                Sent(due, sent, names[source], sequence, decode(kind, numbers))
                for (due, sent), numbers, (kind, source, sequence) in zip(
                    times.tolist(), values.tolist(), marks.tolist(), strict=True
                )
            ]

        return found

    def resume(self, name: str, body: int, under_way: Sequence[Sent]) -> None:
        """Set the commands under way to a body, as a saved state has them.

        Parameters
        ----------
        name : str
            Name of the body. It gets a channel if it has none.
        body : int
            Row of the body.
        under_way : sequence of Sent
            Commands, in the order of arrival.
        """
        row = self._row(name, body)
        self.refill(
            row,
            Waiting(
                np.array([one[:2] for one in under_way], np.int64).reshape(-1, 2),
                np.array([encode(one.command) for one in under_way]).reshape(-1, WIDTH),
                np.array(
                    [
                        (
                            KINDS[type(one.command)],
                            self._source(one.source),
                            one.sequence,
                        )
                        for one in under_way
                    ],
                    np.int64,
                ).reshape(-1, WIDTH),
            ),
        )

    def resume_velocities(
        self, name: str, body: int, source: str, times: I8, velocities: F8
    ) -> None:
        """Set the velocities under way to a body, all from one source.

        Parameters
        ----------
        name : str
            Name of the body. It gets a channel if it has none.
        body : int
            Row of the body.
        source : str
            Source of all these commands.
        times : (k, 2) int64
            Steps of arrival and of sending, oldest first; see `Waiting.times`.
        velocities : (k, 3) float64
            Forward and left, m/s, turn, rad/s; NaN keeps the target of an axis.
        """
        count = len(times)
        # The numbers only order commands of one step: any ascending numbers will do.
        marks = [np.full(count, VELOCITY), np.full(count, self._source(source))]
        self.refill(
            self._row(name, body),
            Waiting(times, velocities, np.column_stack([*marks, np.arange(count)])),
        )

    def _source(self, source: str) -> int:
        """Return the number of a source of commands; a new source gets a new number."""
        number = self._sources.get(source)
        if number is None:
            # Clients connect and disconnect all the time, each under another name.
            if len(self._sources) >= self._most_sources:
                self._forget_sources()
            number = max(self._sources.values(), default=-1) + 1
            self._sources[source] = number
        return number

    def _forget_sources(self) -> None:
        """Forget sources without commands under way."""
        used = {
            number
            for row in np.flatnonzero(self.counts).tolist()
            for number in self.waiting(row).marks[:, SOURCE].tolist()
        }
        # Numbers of the rest stay, since commands under way refer to them.
        self._sources = {
            source: number for source, number in self._sources.items() if number in used
        }
        # The limit grows with the sources in use, so that the search stays rare.
        self._most_sources = MAX_SOURCES + 2 * len(self._sources)

    def is_due(self, tick: int, dt: float) -> bool:
        """Return whether a command takes effect before a step.

        Parameters
        ----------
        tick : int
            Number of the step.
        dt : float
            Duration of a step, s.
        """
        return bool(self._due(tick, dt))

    def _due(self, tick: int, dt: float) -> list[int]:
        """Return the rows of channels whose commands are due; see `is_due`."""
        # Most worlds have no channel at all.
        if not self.of:
            return []
        rings = self.place[:, RING]
        # Skip empty rings: a ring without room has no slot that could be read.
        some = np.flatnonzero(self.times[rings, COUNT])
        oldest = rings[some] + 1 + self.times[rings[some], FIRST]
        due = some[self.times[oldest, DUE] <= tick]
        return [
            row
            for row in due.tolist()
            # Due commands wait for the next control cycle of the robot.
            if is_cycle(tick, float(self.channel[row, RATE]), dt)
        ]

    def send(
        self,
        name: str,
        command: Command,
        source: str,
        sequence: int,
        *,
        state: State,
        body: int,
        seed: np.uint64,
        tick: int,
        dt: float,
    ) -> Command | None:
        """Send a command to a body with a channel.

        Parameters
        ----------
        name : str
            Name of the body; it must have a channel.
        command : Command
            Command, not scaled. `Halt` ends a session, and drops all commands under
            way.
        source : str
            Source of the command, such as the name of a client.
        sequence : int
            Number among the commands of the engine.
        state : State
            State of all bodies; it is only read.
        body : int
            Row of the body.
        seed : uint64
            Seed of the world, for the jitter.
        tick : int
            Number of the next step.
        dt : float
            Duration of a step, s.

        Returns
        -------
        Command or None
            The command, scaled if it is a velocity, if it takes effect immediately.
            None if it is under way, or changes no target.
        """
        row = self.of[name].number
        # `Halt` ends a session: its commands under way must not arrive any more.
        if isinstance(command, Halt):
            self.empty(row)
        # Commands such as poses and limits are no commands of motion, and act at once.
        if type(command) not in KINDS:
            return command
        spec = self.channel[row].tolist()
        # Scaled when sent, so that a later change of the scale does not affect it.
        if isinstance(command, SetVelocity):
            command = scaled(command, *spec[SCALE:])
        if not self._is_late(row, dt):
            return command

        if isinstance(command, SetVelocity) and self._says_nothing_new(
            command, row, state, body
        ):
            return None
        # Draw a number only for a jitter: drawing takes longer than the rest.
        draw = (
            float(draws(seed, int(state.uid[body]), COMMAND_STREAM, tick, 1)[0])
            if spec[JITTER] > 0.0
            else 0.0
        )
        due = tick + delay_steps(spec[LATENCY], spec[JITTER], draw, dt)
        self._append(row, due, tick, source, sequence, command)

        return None

    def put(
        self,
        name: str,
        tick: int,
        waiting: Sequence[tuple[str, int, Command]],
    ) -> None:
        """Queue commands that reach a body in a certain step.

        Parameters
        ----------
        name : str
            Name of the body; it must have a channel.
        tick : int
            Step before which the commands arrive.
        waiting : sequence of (str, int, Command)
            Source, number among the commands of the engine, and command; in any order.
        """
        row = self.of[name].number
        # Sort the commands in the order in which they were sent, which the queue does
        # not keep.
        for source, sequence, command in sorted(waiting, key=lambda one: one[1]):
            self._append(row, tick, tick, source, sequence, command)

    def _append(
        self,
        row: int,
        due: int,
        tick: int,
        source: str,
        sequence: int,
        command: Command,
    ) -> None:
        room = int(self.place[row, ROOM])
        # At the limit the ring does not grow, and `put` replaces its newest command.
        if self.times[self.place[row, RING], COUNT] == room < MAX_UNDER_WAY:
            self.make_room(np.array([row]), WIDTH)
        slot = put(self.ring(row), due, tick)
        values, marks = self.contents(row)
        values[slot] = encode(command)
        marks[slot] = KINDS[type(command)], self._source(source), sequence

    def send_many(
        self,
        command: SetVelocities,
        names: Sequence[str],
        source: str,
        sequence: int,
        *,
        state: State,
        seed: np.uint64,
        tick: int,
        dt: float,
    ) -> SetVelocities | None:
        """Send velocities to bodies with channels, and return the rest.

        Parameters
        ----------
        command : SetVelocities
            Velocities of many bodies, with or without channels. It stays unchanged.
        names : sequence of str
            Names of all bodies by row.
        source, sequence, state, seed, tick, dt
            See `send`.

        Returns
        -------
        SetVelocities or None
            Velocities that take effect immediately, scaled; None if there are none.
        """
        # The usual fleet without channels keeps its arrays without a copy.
        if not any(names[row] in self.of for row in command.rows.tolist()):
            return command
        stays = np.ones(len(command.rows), np.bool_)
        # Copy the arrays, because the caller's arrays must not change.
        v, w, vy = (
            None if a is None else a.copy() for a in (command.v, command.w, command.vy)
        )

        for k, row in enumerate(command.rows.tolist()):
            if names[row] not in self.of:
                continue
            left = self.send(
                names[row],
                command.for_body(k),
                source,
                sequence,
                state=state,
                body=row,
                seed=seed,
                tick=tick,
                dt=dt,
            )

            if isinstance(left, SetVelocity):
                for array, value in ((v, left.v), (w, left.w), (vy, left.vy)):
                    if array is not None and value is not None:
                        array[k] = value
            else:
                stays[k] = False

        if not stays.any():
            return None
        return SetVelocities(
            command.rows[stays], *(None if a is None else a[stays] for a in (v, w, vy))
        )

    def arrive(self, state: State, tick: int, dt: float) -> bool:
        """Apply the commands that are due before a step.

        Parameters
        ----------
        state : State
            State of all bodies. In-place: targets of the bodies that commands reach.
        tick : int
            Number of the step.
        dt : float
            Duration of a step, s.

        Returns
        -------
        bool
            Whether there were any commands.
        """
        rows = self._due(tick, dt)
        if not rows:
            return False
        # Sort by names of sources. Their numbers depend on the order in which clients
        # connected.
        names = {number: source for source, number in self._sources.items()}
        for row in rows:
            ring = self.ring(row)
            values, marks = self.contents(row)
            arrived = []
            while is_next_due(ring, 0, tick):
                slot = int(ring[0, FIRST])
                kind, source, sequence = marks[slot].tolist()
                order = int(ring[1 + slot, SINCE]), names[source], sequence
                arrived.append((order, decode(kind, values[slot].tolist())))
                drop_oldest(ring)

            # Commands of one step in the order of the engine's queue: sources, then
            # arrival.
            arrived.sort(key=lambda one: one[0])
            for _, command in arrived:
                command.apply(state, int(self.body[row]))

        return True

    def _says_nothing_new(
        self, command: SetVelocity, row: int, state: State, body: int
    ) -> bool:
        """Return whether a velocity command changes no target of a robot.

        The command is compared with the targets that the robot will have after all
        commands under way. A command without any effect is not sent: otherwise a program
        that repeats one command in every step would fill the channel.
        """
        # The command ends a force, a goal pose or a velocity from outside: it must be
        # sent.
        if state.control[body] not in (Control.NONE, Control.MOTORS):
            return False
        wanted = {
            axis: value
            for axis, value in enumerate((command.v, command.vy, command.w))
            if value is not None
        }
        values, marks = self.contents(row)

        # The latest command under way counts for each axis, then the present target.
        for slot in used_slots(self.ring(row))[::-1].tolist():
            if marks[slot, KIND] != VELOCITY:
                return False
            for axis, value in enumerate(values[slot].tolist()):
                # NaN: the command keeps the target of this axis.
                if value == value and axis in wanted and wanted.pop(axis) != value:
                    return False

            if not wanted:
                return True

        modes = (state.mode_x[body], Mode.VELOCITY, state.mode_a[body])
        return all(
            modes[axis] == Mode.VELOCITY and state.target[body, axis] == value
            for axis, value in wanted.items()
        )


__all__ = ["MAX_SEQUENCE", "MAX_UNDER_WAY", "Channels", "Sent"]
