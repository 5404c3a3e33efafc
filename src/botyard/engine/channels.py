"""Channels that delay or change commands: latency with jitter, rate, and scale.

A channel keeps the order of commands. The arrival time of a command is a function of
the seed, the robot and the step in which it was sent. A command takes effect at the
robot's next cycle after its arrival. A robot without such properties has no channel,
and its commands go straight into the engine's queue.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

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
    delay_steps,
    is_cycle,
    is_slower,
)
from botyard.engine.layout import Control, Mode, State
from botyard.engine.rng import draws
from botyard.model.robot import PLAIN_COMMANDS, CommandSpec

LATE: Final = (SetVelocity, MoveBy, TurnTo, TurnBy, Stop, EmergencyStop)
"""Commands of motion, which a channel delays."""
MAX_UNDER_WAY: Final = 10_000
"""Highest number of commands under way to a robot.

If there are more, the newest one replaces the last one.
"""
Velocities = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Sent:
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


class Channel:
    """Command channel of one robot.

    Attributes
    ----------
    spec : CommandSpec
        Latency, jitter, rate and scale in force.
    under_way : list of Sent
        Commands under way in order of arrival.
    """

    def __init__(self, spec: CommandSpec) -> None:
        self.spec = spec
        self.under_way: list[Sent] = []


class Channels:
    """Channels of the robots of an engine, by name."""

    def __init__(self) -> None:
        self._of: dict[str, Channel] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def __contains__(self, name: str) -> bool:
        return name in self._of

    def spec(self, name: str) -> CommandSpec:
        """Return the properties of the channel of a body."""
        return self._of[name].spec if name in self._of else PLAIN_COMMANDS

    def set(self, name: str, spec: CommandSpec) -> None:
        """Set the properties of the channel of a body; commands under way stay so."""
        channel = self._of.get(name)
        if channel is not None:
            channel.spec = spec
        elif spec != PLAIN_COMMANDS:
            self._of[name] = Channel(spec)

        # A channel without properties is kept as long as commands are under way in it.
        if channel is not None and spec == PLAIN_COMMANDS and not channel.under_way:
            del self._of[name]

    def is_late(self, name: str, dt: float) -> bool:
        """Return whether commands of motion to a body go through its channel now.

        `dt` is the length of a step, s.
        """
        channel = self._of.get(name)
        if channel is None:
            return False
        return (
            channel.spec.latency > 0.0
            or bool(channel.under_way)
            or is_slower(channel.spec.rate, dt)
        )

    def keep(self, names: Container[str]) -> None:
        """Drop the channels of all bodies except these, after bodies were removed."""
        self._of = {
            name: channel for name, channel in self._of.items() if name in names
        }

    def clear(self) -> None:
        """Drop all commands under way."""
        for channel in self._of.values():
            channel.under_way.clear()

    def under_way(self) -> Mapping[str, Sequence[Sent]]:
        """Return commands under way by name of the body."""
        return {
            name: channel.under_way
            for name, channel in self._of.items()
            if channel.under_way
        }

    def resume(self, name: str, under_way: Sequence[Sent]) -> None:
        """Set the commands under way to a body."""
        self._of.setdefault(name, Channel(PLAIN_COMMANDS)).under_way = list(under_way)

    def put(
        self, name: str, tick: int, waiting: Sequence[tuple[str, int, Command]]
    ) -> None:
        """Put commands for the step `tick` under way to a body.

        Each is a tuple (source, number, command).
        """
        sent = [
            Sent(tick, tick, source, sequence, command)
            for source, sequence, command in waiting
        ]
        self._of[name].under_way.extend(sorted(sent, key=lambda one: one.sequence))

    def is_due(self, tick: int, dt: float) -> bool:
        """Return whether a command takes effect before the step `tick`, of `dt` s."""
        return any(_is_due(channel, tick, dt) for channel in self._of.values())

    def send(
        self,
        name: str,
        command: Command,
        source: str,
        sequence: int,
        *,
        state: State,
        row: int,
        seed: np.uint64,
        tick: int,
        dt: float,
    ) -> Command | None:
        """Send a command to a body with a channel.

        Returns the command, scaled if it is a velocity, if it takes effect at once;
        otherwise None.
        """
        channel = self._of[name]
        spec = channel.spec
        # The end of a session: no command follows.
        if isinstance(command, Halt):
            channel.under_way.clear()
        if not isinstance(command, LATE):
            return command
        if isinstance(command, SetVelocity):
            command = scaled(command, spec)
        if not self.is_late(name, dt):
            return command
        if isinstance(command, SetVelocity) and says_nothing_new(
            command, channel.under_way, state, row
        ):
            return None

        # Without jitter no number is drawn, which takes longer than the rest.
        draw = (
            float(draws(seed, int(state.uid[row]), COMMAND_STREAM, tick, 1)[0])
            if spec.jitter > 0.0
            else 0.0
        )
        due = tick + delay_steps(spec.latency, spec.jitter, draw, dt)
        if channel.under_way:
            # A command never overtakes an earlier one, as on an ordered connection.
            due = max(due, channel.under_way[-1].due)
            if len(channel.under_way) >= MAX_UNDER_WAY:
                channel.under_way.pop()

        channel.under_way.append(Sent(due, tick, source, sequence, command))
        return None

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
        if not any(names[row] in self._of for row in command.rows.tolist()):
            return command
        stays = np.ones(len(command.rows), np.bool_)
        v, w, vy = (
            None if a is None else a.copy() for a in (command.v, command.w, command.vy)
        )
        for k, row in enumerate(command.rows.tolist()):
            if names[row] not in self._of:
                continue
            left = self.send(
                names[row],
                command.for_body(k),
                source,
                sequence,
                state=state,
                row=row,
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

    def arrive(
        self, state: State, rows: Mapping[str, int], tick: int, dt: float
    ) -> bool:
        """Apply the commands due before the step `tick`, of `dt` s.

        Returns whether there were any.
        """
        any_arrived = False
        for name, channel in self._of.items():
            if not _is_due(channel, tick, dt):
                continue
            queue = channel.under_way
            count = 0
            while count < len(queue) and queue[count].due <= tick:
                count += 1
            if count:
                any_arrived = True
                # Commands of one step in the order of the engine's queue: sources, then
                # arrival.
                for one in sorted(
                    queue[:count],
                    key=lambda sent: (sent.sent, sent.source, sent.sequence),
                ):
                    one.command.apply(state, rows[name])

                del queue[:count]

        return any_arrived


def _is_due(channel: Channel, tick: int, dt: float) -> bool:
    """Return whether a channel's command is due before the step `tick`, of `dt` s."""
    queue = channel.under_way
    return (
        bool(queue) and queue[0].due <= tick and is_cycle(tick, channel.spec.rate, dt)
    )


def scaled(command: SetVelocity, spec: CommandSpec) -> SetVelocity:
    """Return a velocity command multiplied by the scale of a channel."""
    if spec.scale == PLAIN_COMMANDS.scale:
        return command
    scale = spec.scale
    return replace(
        command,
        v=None if command.v is None else command.v * scale.x,
        vy=None if command.vy is None else command.vy * scale.y,
        w=None if command.w is None else command.w * scale.a,
    )


def says_nothing_new(
    command: SetVelocity, under_way: Sequence[Sent], state: State, row: int
) -> bool:
    """Return whether a robot will have the targets of this command anyway.

    Such a command is not sent again, however often a program repeats it. Otherwise a
    program that commands in every step would fill the channel.
    """
    # The command ends a force, a goal pose or a velocity from outside: it must be sent.
    if state.control[row] not in (Control.NONE, Control.MOTORS):
        return False
    wanted = {
        axis: value
        for axis, value in enumerate((command.v, command.vy, command.w))
        if value is not None
    }
    # The latest command under way counts for each axis, then the present target.
    for sent in reversed(under_way):
        before = sent.command
        if not isinstance(before, SetVelocity):
            return False
        for axis, value in enumerate((before.v, before.vy, before.w)):
            if value is not None and axis in wanted and wanted.pop(axis) != value:
                return False

        if not wanted:
            return True

    modes = (state.mode_x[row], Mode.VELOCITY, state.mode_a[row])
    return all(
        modes[axis] == Mode.VELOCITY and state.target[row, axis] == value
        for axis, value in wanted.items()
    )


__all__ = ["LATE", "MAX_UNDER_WAY", "Channel", "Channels", "Sent"]
