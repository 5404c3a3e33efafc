"""Channels that delay or change commands: latency with jitter, rate, and scale.

A channel keeps the order of commands. The arrival time of a command is a function of
the seed, the robot and the step in which it was sent. A command takes effect at the
robot's next cycle after its arrival. A robot without such properties has no channel,
and its commands go straight into the engine's queue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from botyard.engine.commands import (
    Command,
    EmergencyStop,
    Halt,
    MoveBy,
    SetVelocities,
    SetVelocity,
    Stop,
    TurnBy,
    TurnTo,
)
from botyard.engine.kernels.latency import (
    COMMAND_STREAM,
    COUNT,
    DUE,
    FIRST,
    JITTER,
    LATENCY,
    RATE,
    RING,
    ROOM,
    SCALE,
    SINCE,
    delay_steps,
    drop_oldest,
    is_cycle,
    is_next_due,
    is_slower,
    put,
)
from botyard.engine.layout import F8, I8, Control, Mode, State
from botyard.engine.rings import RingTable, Waiting, used_slots
from botyard.engine.rng import draws
from botyard.engine.tables import Column, Row
from botyard.model.robot import PLAIN_COMMANDS, CommandSpec

LATE: Final = (SetVelocity, MoveBy, TurnTo, TurnBy, Stop, EmergencyStop)
"""Commands of motion, which a channel delays."""
_KINDS: Final[dict[type, int]] = {kind: number for number, kind in enumerate(LATE)}
VELOCITY: Final = _KINDS[SetVelocity]
"""`KIND` of a velocity."""
MAX_UNDER_WAY: Final = 10_000
"""Highest number of commands under way to a robot.

If there are more, the newest one replaces the last one.
"""
KIND, SOURCE, SEQUENCE = 0, 1, 2
"""Marks of a command under way.

They are its index in `LATE`, the number of its source in `Channels`, and its number
among the commands of the engine.
"""
WIDTH: Final = 3
"""Number of values, and of marks, of a command under way."""
MAX_SEQUENCE: Final = 2**63 - 1
"""Greatest number of a command."""
MAX_SOURCES: Final = 1000
"""Number of known sources above which unused ones are forgotten."""


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
        """Forget the channel after its body was removed."""
        del self.table.of[self.key]


class Channels(RingTable):
    """Channels of bodies, by name.

    A ring holds the commands under way to a body. The values of a velocity are its
    components (forward, left, turn), NaN for an axis that keeps its target. The first
    value of another command is its distance, heading or angle. See `KIND` for its marks.

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
        """Numbers of sources in `marks`."""
        self._most_sources = MAX_SOURCES

    def __contains__(self, name: str) -> bool:
        return name in self.of

    @property
    def is_idle(self) -> bool:
        """Whether no command is under way."""
        return not self.of or not self.counts.any()

    def set(self, name: str, body: int, spec: CommandSpec) -> None:
        """Set the properties of the channel of a body; commands under way stay so.

        `body` is the row of the body.
        """
        # A channel that lost its properties stays: commands may be under way in it.
        if spec != PLAIN_COMMANDS or name in self.of:
            # A new row replaces the array.
            row = self._row(name, body)
            self.channel[row] = (
                spec.latency,
                spec.jitter,
                spec.rate,
                *spec.scale.as_tuple(),
            )

    def _row(self, name: str, body: int) -> int:
        """Return the row of the channel of a body, which is made if there is none."""
        channel = self.of.get(name)
        if channel is None:
            channel = self.of[name] = _Channel(self, body, name)
            self.channel[channel.number, SCALE:] = 1.0
        return channel.number

    def is_late(self, name: str, dt: float) -> bool:
        """Return whether commands of motion to a body go through its channel now.

        `dt` is the length of a step, s.
        """
        channel = self.of.get(name)
        return channel is not None and self._is_late(channel.number, dt)

    def _is_late(self, row: int, dt: float) -> bool:
        return bool(
            self.channel[row, LATENCY] > 0.0
            or self.times[self.place[row, RING], COUNT] > 0
            or is_slower(float(self.channel[row, RATE]), dt)
        )

    def under_way(self) -> Mapping[str, Sequence[Sent]]:
        """Return commands under way by name of the body, in order of arrival."""
        if self.is_idle:
            return {}
        names = {number: source for source, number in self._sources.items()}
        found: dict[Any, Sequence[Sent]] = {}
        for row in np.flatnonzero(self.counts).tolist():
            times, values, marks = self.waiting(row)
            found[self.rows[row].key] = [
                Sent(due, sent, names[source], sequence, _command(kind, numbers))
                for (due, sent), numbers, (kind, source, sequence) in zip(
                    times.tolist(), values.tolist(), marks.tolist(), strict=True
                )
            ]

        return found

    def resume(self, name: str, body: int, under_way: Sequence[Sent]) -> None:
        """Set the commands under way to a body; `body` is its row."""
        row = self._row(name, body)
        self.refill(
            row,
            Waiting(
                np.array([one[:2] for one in under_way], np.int64).reshape(-1, 2),
                np.array([_values(one.command) for one in under_way]).reshape(
                    -1, WIDTH
                ),
                np.array(
                    [
                        (
                            _KINDS[type(one.command)],
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
        """Set the velocities under way to a body, all from one source, oldest first.

        `times` is (k, 2), as `Waiting.times`; `velocities` is (k, 3): forward, left, turn.
        """
        count = len(times)
        marks = [np.full(count, VELOCITY), np.full(count, self._source(source))]
        self.refill(
            self._row(name, body),
            Waiting(times, velocities, np.column_stack([*marks, np.arange(count)])),
        )

    def _source(self, source: str) -> int:
        """Return the number of a source of commands; a new source gets a new number."""
        number = self._sources.get(source)
        if number is None:
            # Clients come and go all the time, each with a name of its own.
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
        self._sources = {
            source: number for source, number in self._sources.items() if number in used
        }
        self._most_sources = MAX_SOURCES + 2 * len(self._sources)

    def is_due(self, tick: int, dt: float) -> bool:
        """Return whether a command takes effect before the step `tick`, of `dt` s."""
        return bool(self._due(tick, dt))

    def _due(self, tick: int, dt: float) -> list[int]:
        """Return the rows of channels whose commands are due; see `is_due`."""
        if not self.of:
            return []
        rings = self.place[:, RING]
        # The first slot of an empty ring without room does not exist.
        some = np.flatnonzero(self.times[rings, COUNT])
        oldest = rings[some] + 1 + self.times[rings[some], FIRST]
        due = some[self.times[oldest, DUE] <= tick]
        return [
            row
            for row in due.tolist()
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
        """Send a command to a body with a channel; `body` is its row.

        Returns the command, scaled if it is a velocity, if it takes effect at once;
        otherwise None.
        """
        row = self.of[name].number
        # The end of a session: no command follows.
        if isinstance(command, Halt):
            self.empty(row)
        if type(command) not in _KINDS:
            return command
        spec = self.channel[row].tolist()
        if isinstance(command, SetVelocity):
            command = scaled(command, *spec[SCALE:])
        if not self._is_late(row, dt):
            return command
        if isinstance(command, SetVelocity) and self._says_nothing_new(
            command, row, state, body
        ):
            return None
        # Without jitter no number is drawn, which takes longer than the rest.
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
        """Put commands for the step `tick` under way to a body.

        Each is a tuple (source, number, command).
        """
        row = self.of[name].number
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
        if self.times[self.place[row, RING], COUNT] == room < MAX_UNDER_WAY:
            self.make_room(np.array([row]), WIDTH)
        slot = put(self.ring(row), due, tick)
        values, marks = self.contents(row)
        values[slot] = _values(command)
        marks[slot] = _KINDS[type(command)], self._source(source), sequence

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

        `names` holds the names of all bodies by row. Returns None if nothing is left.
        """
        if not any(names[row] in self.of for row in command.rows.tolist()):
            return command
        stays = np.ones(len(command.rows), np.bool_)
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
        """Apply the commands due before the step `tick`, of `dt` s.

        Returns whether there were any.
        """
        rows = self._due(tick, dt)
        if not rows:
            return False
        names = {number: source for source, number in self._sources.items()}
        for row in rows:
            ring = self.ring(row)
            values, marks = self.contents(row)
            arrived = []
            while is_next_due(ring, 0, tick):
                slot = int(ring[0, FIRST])
                kind, source, sequence = marks[slot].tolist()
                order = int(ring[1 + slot, SINCE]), names[source], sequence
                arrived.append((order, _command(kind, values[slot].tolist())))
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
        """Return whether a robot will have the targets of this command anyway.

        Such a command is not sent again, however often a program repeats it. Otherwise
        a program that commands in every step would fill the channel.
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


def _values(command: Command) -> tuple[float, float, float]:
    """Return the values that stand for a command in a ring; see `Channels`."""
    given: tuple[float | None, ...] = ()
    if isinstance(command, SetVelocity):
        given = command.v, command.vy, command.w
    elif isinstance(command, MoveBy):
        given = (command.distance,)
    elif isinstance(command, TurnTo):
        given = (command.heading,)
    elif isinstance(command, TurnBy):
        given = (command.angle,)
    a, b, c = (math.nan if x is None else float(x) for x in (*given, *(None,) * 3)[:3])
    return a, b, c


def _command(kind: int, values: Sequence[float]) -> Command:
    """Return the command that a kind and the values in a ring stand for."""
    a, b, c = (None if math.isnan(value) else value for value in values)
    made = LATE[kind]
    if made is SetVelocity:
        return SetVelocity(v=a, vy=b, w=c)
    # Stops have no value.
    return made() if a is None else made(a)  # type: ignore[call-arg]


def scaled(command: SetVelocity, x: float, y: float, a: float) -> SetVelocity:
    """Return a velocity command multiplied by the scale of a channel."""
    if x == y == a == 1.0:
        return command
    return replace(
        command,
        v=None if command.v is None else command.v * x,
        vy=None if command.vy is None else command.vy * y,
        w=None if command.w is None else command.w * a,
    )


__all__ = ["LATE", "MAX_SEQUENCE", "MAX_UNDER_WAY", "Channels", "Sent"]
