"""Rows and robots of recorded messages: a row is a time at which samples were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from botyard.engine.commands import SetVelocity
from botyard.errors import BotyardError, RecordingError, StateError
from botyard.formats.budget import Budget, Meter
from botyard.model.trailers import MAX_TRAILERS, trailer_name
from botyard.model.world import THING
from botyard.recording import frames
from botyard.recording.cdrnumbers import ODOMETRY, SCAN
from botyard.recording.codec import decode_entry
from botyard.recording.comparing import roster_of
from botyard.recording.own_channels import (
    JOURNAL,
    STATES,
    unpack_bytes,
)
from botyard.recording.reader import Message, Reader
from botyard.recording.samples import ros_names
from botyard.sim.journal import (
    JUMPS,
    AddRobots,
    RemoveBox,
    RemoveRobots,
    RenameRobots,
    Submit,
    SubmitEach,
    SubmitVelocities,
)


class RecordedRow(NamedTuple):
    """Message of row `number`, with the index of its robot, and the topic without its robot."""

    number: int
    robot: int
    name: str
    message: Message


class RecordedRows:
    """Finder of rows and robots of messages, in the order of the file.

    Rows are the times at which samples were recorded. A message with a new time starts
    the next row. `on_command` is called with each velocity command: the robot's name,
    the time, ns, and the resulting command.
    """

    def __init__(
        self,
        file: Reader,
        budget: Budget,
        on_command: Callable[[str, int, list[float]], object] = lambda *_: None,
    ) -> None:
        self._file, self._budget, self._on_command = file, budget, on_command
        self.robots: dict[str, int] = {}
        self.times: list[int] = []
        self.commands: dict[str, list[float]] = {}
        self._bodies: list[str] = []
        self._things: set[str] = set()
        self._topics: dict[str, tuple[int, str]] | None = None
        self._state: bytes | None = None
        self._is_broken = False
        self.meter = Meter(budget, file.path, RecordingError)

    def __iter__(self) -> Iterator[RecordedRow | Message]:
        """Yield messages of rows as `RecordedRow`, and others unmodified, except changes."""
        types, now = (ODOMETRY, SCAN), -1
        for message in self._file.messages():
            topic, kind = message.channel.topic, message.channel.schema.name
            if topic == STATES:
                self._take_state(message.data)
            elif topic == JOURNAL:
                self._take_entry(message)
                continue
            elif kind in types:
                found = self._find(topic)
                if found is None:
                    continue
                if message.time != now:
                    now = message.time
                    self.meter.add("cells", 1)
                    self.times.append(now)

                yield RecordedRow(len(self.times) - 1, *found, message)
                continue

            yield message

    @property
    def state(self) -> bytes | None:
        """Latest state; None if it cannot be read."""
        return self._state

    def _find(self, topic: str) -> tuple[int, str] | None:
        if self._topics is None:
            self._topics = {}
            robots = [name for name in self._bodies if name not in self._things]
            for name, one in zip(robots, ros_names(robots), strict=True):
                self._topics[one.topic("")] = self.number_of(name), ""

        # The last part names the device; the rest belongs to the robot.
        prefix, slash, name = topic.rpartition("/")
        found = self._topics.get(prefix + slash)
        return None if found is None else (found[0], name)

    def number_of(self, name: str) -> int:
        """Return the index of a robot, a new one for a new name.

        Parameters
        ----------
        name : str
            Name of the robot in the world.

        Raises
        ------
        BudgetError
            There are too many robots.
        """
        number = self.robots.setdefault(name, len(self.robots))
        self.meter.check("robots", len(self.robots))
        return number

    def _set(self, bodies: list[str]) -> None:
        """Set the names of the bodies that are in the world, in the order of their rows."""
        # A ROS name depends on all robots together, so a new set of bodies makes new
        # topics.
        if bodies != self._bodies:
            self._bodies, self._topics = bodies, None

    def _take_state(self, frame: bytes) -> None:
        try:
            self._state = frames.decode(unpack_bytes(frame), self._state)
            roster = roster_of(self._state, self._budget)
        except (StateError, RecordingError) as error:
            self._state = None
            # Report only the first of consecutive broken states: each delta after it
            # fails also.
            if not self._is_broken:
                self._file.note(f"a state cannot be read: {error}")
            self._is_broken = True
            return

        self._is_broken = False
        # Boxes have no start pose. Neither boxes nor moving obstacles have ROS topics.
        self._things = {
            body.name
            for body in roster.bodies
            if body.start is None or body.model == THING
        }
        self._set([body.name for body in roster.bodies])

    def _take_entry(self, message: Message) -> None:
        try:
            change = decode_entry(unpack_bytes(message.data), self._budget).change
        except RecordingError as error:
            self._file.note(error.reason)
            return

        if isinstance(change, Submit):
            if isinstance(change.command, SetVelocity):
                self._command(message.time, change.name, change.command)
        elif isinstance(change, SubmitEach):
            try:
                for name, command in change.each():
                    self._command(message.time, name, command)
            except BotyardError as error:
                self._file.note(f"a command at {message.time} ns: {error}")
        elif isinstance(change, SubmitVelocities):
            try:
                # A crafted command can refer to rows that do not exist.
                many = change.command.checked(len(self._bodies))
            except BotyardError as error:
                self._file.note(f"a command at {message.time} ns: {error}")
                return

            for i, row in enumerate(many.rows.tolist()):
                self._command(message.time, self._bodies[row], many.for_body(i))
        elif isinstance(change, AddRobots):
            if change.spec.name == THING:
                self._things.update(change.names)
            self._set([*self._bodies, *change.names])
        elif isinstance(change, (RemoveRobots, RemoveBox)):
            gone = {change.name} if isinstance(change, RemoveBox) else set(change.names)
            self._set([name for name in self._bodies if name not in gone])
            for name in gone:
                self.commands.pop(name, None)
        elif isinstance(change, RenameRobots):
            self._rename(dict(zip(change.names, change.to, strict=False)))
        elif isinstance(change, JUMPS):
            # The next state is a keyframe, so deltas need no state before it.
            self._state = None
            self.commands.clear()

    def _rename(self, given: dict[str, str]) -> None:
        """Give robots and their trailers new names, by the old names of the robots."""
        trailers = {
            trailer_name(old, k): trailer_name(new, k)
            for old, new in given.items()
            for k in range(1, MAX_TRAILERS + 1)
        }
        names = trailers | given
        self._things = {names.get(name, name) for name in self._things}
        self.commands = {
            names.get(name, name): last for name, last in self.commands.items()
        }
        self._set([names.get(name, name) for name in self._bodies])

    def _command(self, time_ns: int, name: str, command: SetVelocity) -> None:
        last = self.commands.setdefault(name, [0.0, 0.0, 0.0])
        for axis, value in enumerate((command.v, command.vy, command.w)):
            if value is not None:
                # A component that a command leaves out keeps its value, as in the
                # simulation.
                last[axis] = float(value)

        self._on_command(name, time_ns, last)
