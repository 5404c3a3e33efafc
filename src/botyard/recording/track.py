"""Recording in memory with access to any moment.

The module reads the states, the changes between them, maps, models and events. The file
is read once. States are kept as keyframes and deltas, one per second as the recorder
writes them. Changes are kept as the bytes of their entries, which are decoded on
demand.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Final, NamedTuple

from botyard.errors import BudgetError, RecordingError, StateError
from botyard.formats.budget import Budget, Meter
from botyard.formats.worldlimits import check_world
from botyard.model.floor import Floor
from botyard.model.scene import Scene
from botyard.model.world import PlacedRobot, World
from botyard.names import shown
from botyard.recording import frames
from botyard.recording.codec import Model, decode_entry
from botyard.recording.comparing import state_digest, tick_of
from botyard.recording.own_channels import (
    EVENTS,
    JOURNAL,
    STATES,
    unpack_bytes,
    unpack_json,
)
from botyard.recording.reader import Message, Reader
from botyard.recording.verify import Beginning, first_state, recorded_start
from botyard.sim.journal import (
    AddBox,
    AddRobots,
    Claim,
    Describe,
    Entry,
    RemoveRobots,
    RemoveZone,
    RenameRobots,
    ReplaceFloor,
    ReplaceScene,
    Restore,
    SetZone,
    Submit,
)

FRAMES_PER_KEYFRAME: Final = 32
"""Number of frames between keyframes.

Access to a moment decodes half of them on average.
"""
MAX_MARKS: Final = 2000
"""Largest number of events to keep.

Beyond it, every second event of the most frequent kind is dropped.
"""
MAX_NAMED: Final = 3
"""Number of robots that the text of an event names; further robots are only counted."""
SILENCE_S: Final = 5.0
"""Simulated time without commands after which a command is an event, s.

The same time applies to stalls of a robot.
"""
ROSOUT: Final = "/rosout"
WARN: Final = 30
"""Level of warnings in messages of `ROSOUT`."""
_LEVEL_AT: Final = 12
_U32: Final = struct.Struct("<I")
_READ: Final = tuple(
    kind.__name__.encode()
    for kind in (
        AddRobots,
        AddBox,
        Describe,
        ReplaceFloor,
        ReplaceScene,
        RemoveZone,
        Restore,
        SetZone,
        Claim,
        RemoveRobots,
        RenameRobots,
    )
)
"""Changes that are decoded when the file is read: they add maps or models, or are events."""
# Names of commands to many bodies also start with this: `SubmitEach`, `SubmitVelocities`.
_COMMAND: Final = Submit.__name__.encode()
Progress = Callable[[float], None]


class Mark(NamedTuple):
    """Event: simulated time, s; its kind; a line of text.

    Kinds: ``stall``, ``client``, ``map``, ``command``, ``robot``, ``branch``, ``warning``,
    ``error``, ``event`` (of a program).
    """

    time: float
    kind: str
    text: str


class Moment(NamedTuple):
    """Recorded state.

    Attributes
    ----------
    tick : int
        Number of steps.
    time : float
        Simulated time, s.
    entries : int
        Number of changes before it.
    scene : int
        Its map: index in `Track.scenes`.
    digest : int
        Its `Simulation.digest`.
    """

    tick: int
    time: float
    entries: int
    scene: int
    digest: int


@dataclass(slots=True)
class Track:
    """Recording in memory.

    Attributes
    ----------
    start : Beginning
        Initial data of the run.
    step : float
        Simulated time of a step, s.
    moments : list of Moment
        All states, oldest first; ticks never go back.
    entries : list of bytes
        All changes in order; see `entry`.
    scenes, models : list
        All maps, and models that are added later.
    marks : list of Mark
        Events of the run, oldest first.
    said : list of bytes
        All events of programs and of traffic, oldest first, as messages of `EVENTS`;
        `botyard.recording.own_channels.unpack_json` decodes them.
    problems : list of str
        Parts that could not be read.
    """

    start: Beginning
    step: float
    moments: list[Moment] = field(default_factory=list)
    entries: list[bytes] = field(default_factory=list)
    scenes: list[Scene] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    said: list[bytes] = field(default_factory=list, repr=False)
    problems: list[str] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    budget: Budget = field(default=Budget(), repr=False)

    @property
    def begin(self) -> int:
        """Tick of the first moment."""
        return self.moments[0].tick

    @property
    def end(self) -> int:
        """Tick of the last moment."""
        return self.moments[-1].tick

    def before(self, tick: int) -> int:
        """Return the index of the last state at or before a tick.

        Parameters
        ----------
        tick : int
            Number of steps.

        Returns
        -------
        int
            Index in `moments`; 0 if all states are later.
        """
        return max(
            0, bisect_right(self.moments, tick, key=lambda moment: moment.tick) - 1
        )

    def state(self, index: int) -> bytes:
        """Return a recorded state.

        Parameters
        ----------
        index : int
            Index in `moments`.

        Returns
        -------
        bytes
            State for `Simulation.restore`.

        Raises
        ------
        StateError
            The state is damaged.
        """
        first = index
        while not frames.is_keyframe(self.frames[first]):
            # A delta can be decoded only from its keyframe on.
            first -= 1
        state: bytes | None = None
        for frame in self.frames[first : index + 1]:
            state = frames.decode(frame, state)
        assert state is not None
        return state

    def entry(self, index: int) -> Entry:
        """Return a recorded change, decoded.

        Parameters
        ----------
        index : int
            Index in `entries`.

        Raises
        ------
        RecordingError
            The change cannot be read.
        """
        return decode_entry(self.entries[index], self.budget)


def read_track(
    path: str | PathLike[str],
    budget: Budget = Budget(),
    progress: Progress = lambda part: None,
) -> Track:
    """Read a recording; of a damaged or unfinished one, all complete chunks.

    Parameters
    ----------
    path : path-like
        Path of the file.
    budget : Budget
        Limits: ``bytes`` limits states and changes together; ``robots``, ``beams`` and
        so on limit all later additions together.
    progress : callable
        Called with the fraction of the file that was read, 0 to 1.

    Raises
    ------
    RecordingError
        The file cannot be read, is larger than the budget allows, or has no states.
    """
    with Reader(path, budget) as file:
        first = first_state(file, file.messages((STATES,)))
        start = recorded_start(file, first, budget)
        return _Maker(file, start, budget).make(progress)


class _Maker:
    """Reader that makes a `Track` from a recording."""

    def __init__(self, file: Reader, start: Beginning, budget: Budget) -> None:
        self._file, self._budget = file, budget
        self._track = Track(
            start, start.setup.step, scenes=[start.scene], budget=budget
        )
        self._meter = Meter(budget, file.path, RecordingError)
        self._worlds = Meter(budget, file.path, RecordingError)
        """Meter of all robots and maps that are added later."""
        self._state: bytes | None = None
        self._decoded: bytes | None = None
        self._since_keyframe = 0
        self._commanded = -SILENCE_S
        self._stalled: dict[str, float] = {}
        self._said_at: list[float] = []
        """Simulated time of each entry of `Track.said`, s."""
        self._handlers: dict[str, Callable[[Message], None]] = {
            STATES: self._take_state,
            JOURNAL: self._take_entry,
            EVENTS: self._take_event,
            ROSOUT: self._take_line,
        }

    def make(self, progress: Progress) -> Track:
        """Read all chunks, and return the track."""
        track, last = self._track, self._file.chunks[-1].at if self._file.chunks else 1
        for chunk, messages in self._file.by_chunk(tuple(self._handlers)):
            progress(chunk.at / last)
            for message in messages:
                try:
                    self._handlers[message.channel.topic](message)
                except BudgetError:
                    raise
                except (RecordingError, StateError) as error:
                    self._file.note(
                        f"{message.channel.topic} at {message.time / 1e9:g} s: {error}"
                    )

        if not track.moments:
            raise self._file.error("expected at least one readable state, found none")
        track.problems = list(self._file.problems)
        return track

    def _take_state(self, message: Message) -> None:
        track = self._track
        try:
            state = frames.decode(unpack_bytes(message.data), self._state)
        # The next delta cannot refer to this state, so reading waits for a keyframe.
        except (RecordingError, StateError):
            self._state = None
            raise

        self._state = state
        tick = tick_of(state, self._budget)
        # A restored state cancels the states after its tick.
        if track.moments and tick < track.moments[-1].tick:
            self._drop_from(tick)
        # States are re-encoded, because keyframes of the file can be far apart.
        last = (
            self._decoded
            if track.moments and self._since_keyframe < FRAMES_PER_KEYFRAME
            else None
        )
        frame = frames.encode(state, last)
        self._since_keyframe = (
            1 if frames.is_keyframe(frame) else self._since_keyframe + 1
        )
        self._decoded = state
        self._meter.add("bytes", len(frame))
        track.frames.append(frame)
        moment = Moment(
            tick,
            tick * track.step,
            len(track.entries),
            len(track.scenes) - 1,
            state_digest(state, self._budget),
        )
        track.moments.append(moment)

    def _drop_from(self, tick: int) -> None:
        track = self._track
        while track.moments and track.moments[-1].tick >= tick:
            track.moments.pop()
            track.frames.pop()

        time = tick * track.step
        track.marks = [mark for mark in track.marks if mark.time <= time]
        while self._said_at and self._said_at[-1] > time:
            self._said_at.pop()
            track.said.pop()

        self._note(time, "branch", "the run continues from a restored state")
        # The previous frame was dropped, so the next one must be a keyframe.
        self._since_keyframe = FRAMES_PER_KEYFRAME

    def _take_entry(self, message: Message) -> None:
        data, time = unpack_bytes(message.data), message.time / 1e9
        self._meter.add("bytes", len(data))
        # A search for names in the bytes is faster than decoding every entry.
        if any(name in data for name in _READ):
            self._take_change(decode_entry(data, self._budget), time)
        elif _COMMAND in data:
            # Robots get commands in nearly every step; only the first after a pause is
            # an event.
            if time - self._commanded >= SILENCE_S:
                entry = decode_entry(data, self._budget)
                name = getattr(entry.change, "name", "")
                self._note(
                    time,
                    "command",
                    f"{shown(name, 40) or 'robots'}: commands of {shown(entry.source, 40)}",
                )

            self._commanded = time

        self._track.entries.append(data)

    def _take_change(self, entry: Entry, time: float) -> None:
        track, change = self._track, entry.change
        if isinstance(change, AddRobots):
            placed = [
                PlacedRobot(spec=change.spec, name=n, pose=p)
                for n, p in zip(change.names, change.poses, strict=False)
            ]
            check_world(World(scene=Scene(), robots=tuple(placed)), self._worlds)
            track.models.append(change.spec)
            self._note(time, "robot", f"{listed(change.names)} added")
        elif isinstance(change, RemoveRobots):
            self._note(time, "robot", f"{listed(change.names)} removed")
        elif isinstance(change, RenameRobots):
            text = f"{listed(change.names)} renamed {listed(change.to)}"
            self._note(time, "robot", text)
        elif isinstance(change, AddBox):
            track.models.append(change.box)
        elif isinstance(change, Restore):
            track.models += [one for one in change.described if isinstance(one, Model)]
        elif isinstance(change, Describe):
            track.models.append(change.described)
        elif isinstance(change, ReplaceScene):
            check_world(World(scene=change.scene), self._worlds)
            track.scenes.append(change.scene)
            track.models += change.scene.boxes
            self._note(
                time,
                "map",
                f"map {shown(change.scene.name, 60)}"
                if change.scene.name
                else "no map",
            )
        elif isinstance(change, (ReplaceFloor, SetZone, RemoveZone)):
            self._take_floor(change)
        elif isinstance(change, Claim):
            self._note(
                time,
                "client",
                f"{shown(change.robot, 40)} is "
                f"{'commanded by' if change.on else 'left by'} {shown(entry.source, 40)}",
            )

    def _take_floor(self, change: ReplaceFloor | SetZone | RemoveZone) -> None:
        """Add the map with its changed floor, to which later states refer."""
        scenes = self._track.scenes
        floor = Floor() if scenes[-1].floor is None else scenes[-1].floor
        changed = (
            change.floor
            if isinstance(change, ReplaceFloor)
            else floor.with_zone(change.zone)
            if isinstance(change, SetZone)
            else floor.without_zone(change.name)
        )
        scenes.append(replace(scenes[-1], floor=changed))
        check_world(World(scene=Scene(floor=changed)), self._worlds)

    def _take_event(self, message: Message) -> None:
        said = unpack_json(message.data)
        what, robots = said.get("event"), said.get("robots")
        if what == "stall" and isinstance(robots, list):
            robots = [
                name
                for name in map(str, robots[:MAX_MARKS])
                if self._stalls(name, message.time / 1e9)
            ]

        if what == "stall" and robots:
            self._note(
                message.time / 1e9,
                "stall",
                f"{listed(robots)} {'stalls' if len(robots) == 1 else 'stall'}",
            )
        elif what in ("lost", "gap"):
            self._note(
                message.time / 1e9, "warning", "the recorder had to leave data out"
            )
        # A program, or traffic, has written any other event.
        elif isinstance(what, str) and isinstance(said.get("text"), str):
            self._meter.add("bytes", len(message.data))
            self._track.said.append(message.data)
            self._said_at.append(message.time / 1e9)
            self._note(message.time / 1e9, "event", shown(said["text"] or what, 200))

    def _stalls(self, name: str, time: float) -> bool:
        """Return whether a stall of a robot is an event: the robot has not stalled recently."""
        before, self._stalled[name] = self._stalled.get(name, -SILENCE_S), time
        return not 0.0 <= time - before < SILENCE_S

    def _take_line(self, message: Message) -> None:
        data = message.data
        # The level is at a fixed offset, so most lines need no decoding.
        if len(data) <= _LEVEL_AT or data[_LEVEL_AT] < WARN:
            return
        texts, at = list[str](), _LEVEL_AT + 1
        # The strings are the name of the node and the text.
        for _ in range(2):
            # CDR aligns lengths to 4 bytes, relative to the end of its header.
            at = 4 + (at - 4 + 3) // 4 * 4
            if at + _U32.size > len(data):
                return
            size = _U32.unpack_from(data, at)[0]
            texts.append(
                data[at + _U32.size : at + _U32.size + max(size - 1, 0)].decode(
                    "utf-8", "replace"
                )
            )
            at += _U32.size + size

        self._note(
            message.time / 1e9,
            "warning" if data[_LEVEL_AT] == WARN else "error",
            shown(texts[1], 200),
        )

    def _note(self, time: float, kind: str, text: str) -> None:
        track = self._track
        track.marks.append(Mark(time, kind, text))
        if len(track.marks) > MAX_MARKS:
            # Dropping every second one of the most frequent kind keeps rare events.
            often, kept, of_kind = (
                Counter(mark.kind for mark in track.marks).most_common(1)[0][0],
                list[Mark](),
                0,
            )
            for mark in track.marks:
                of_kind += mark.kind == often
                if mark.kind != often or of_kind % 2:
                    kept.append(mark)

            track.marks = kept


def listed(names: Iterable[str]) -> str:
    """Return names as part of a sentence.

    Parameters
    ----------
    names : iterable of str
        Names; after `MAX_NAMED` of them the others are counted.
    """
    found: Sequence[str] = tuple(names)
    more = len(found) - MAX_NAMED
    return ", ".join(shown(name, 40) for name in found[:MAX_NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )


__all__ = ["Mark", "Moment", "Track", "listed", "read_track"]
