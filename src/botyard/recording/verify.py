"""Verification of a recorded run: it is simulated again and compared.

The run starts from its first state and its journal; every digest and every state must
be the same. The recording cannot run code here: programs that drove robots are not run,
because the journal holds their commands.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Final, NoReturn

import msgspec

from botyard.engine.objectdigest import object_digest
from botyard.errors import BotyardError, RecordingError, StateError
from botyard.formats.budget import Budget, Meter
from botyard.formats.worldlimits import check_world
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import PlacedRobot, World
from botyard.names import shown
from botyard.recording import checks, frames
from botyard.recording.built import computed_elsewhere
from botyard.recording.checks import Kept
from botyard.recording.codec import (
    Model,
    Setup,
    decode_entry,
    decode_model,
    decode_scene,
    decode_setup,
)
from botyard.recording.comparing import (
    Columns,
    Difference,
    differences,
    roster_of,
    state_digest,
    tick_of,
)
from botyard.recording.own_channels import (
    CHECKS,
    DIGESTS,
    EVENTS,
    JOURNAL,
    STATES,
    unpack_bytes,
    unpack_json,
)
from botyard.recording.reader import Message, Reader
from botyard.sim.journal import AddRobots, Entry, ReplaceScene, acting
from botyard.sim.resimulation import apply
from botyard.sim.simulation import Simulation

MAX_GAP_S: Final = 3600.0
"""Longest simulated time between two records of a run, s.

The recorder writes one record every second.
"""
MAX_NAMED: Final = 3
"""Number of values that the text about a step names."""
MAX_DIFFERENCES: Final = 20
"""Largest number of differences of a state to keep; all are counted."""
Progress = Callable[[int], None]


class Digest(msgspec.Struct):
    """Message of the channel of digests."""

    tick: int
    digest: str


class _Event(msgspec.Struct):
    event: str
    lost: dict[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Initial data of a recorded run.

    Attributes
    ----------
    setup : Setup
        Setup of the simulation.
    scene : Scene
        The map.
    models : sequence of Model
        Models that the first state refers to.
    """

    setup: Setup
    scene: Scene
    models: tuple[Model, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """First record that was not reproduced.

    Attributes
    ----------
    after, tick : int
        Numbers of steps at the last record that was the same, and at this one.
    first : tuple of Difference
        Differences of this step that a check revealed; at most `MAX_DIFFERENCES`.
    is_all : bool
        Whether these are all differences of the step.
    at : int
        Number of steps at the next state, whose values were all compared.
    found : tuple of Difference
        Differences of this state, at most `MAX_DIFFERENCES`; empty if the recording has
        none.
    count : int
        Number of values that differ in this state.
    lost : mapping of str to int
        Numbers of records that the recorder had left out until then.
    """

    after: int
    tick: int
    first: tuple[Difference, ...] = ()
    is_all: bool = False
    at: int = -1
    found: tuple[Difference, ...] = ()
    count: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        when = (
            f"tick {self.tick}"
            if self.after == self.tick
            else f"between tick {self.after} and tick {self.tick}"
        )
        parts = ["; ".join(map(str, self.first[:MAX_NAMED]))] if self.first else []
        if self.first and (len(self.first) > MAX_NAMED or not self.is_all):
            more = (
                "others"
                if not self.is_all
                else f"{len(self.first) - MAX_NAMED} more values"
            )
            parts[0] += f" ({more} also differ)"

        if self.found:
            more = f" ({self.count - 1} more values differ)" if self.count > 1 else ""
            parts.append(
                f"{f'at tick {self.at}: ' if parts else ''}{self.found[0]}{more}"
            )

        if not parts:
            return (
                f"{when}: the digest differs from the recorded one; the recording "
                "does not show which value differs"
            )

        lost = (
            "; the recorder had to leave out "
            f"{', '.join(f'{n} {what}' for what, n in self.lost.items())}"
            if self.lost
            else ""
        )
        return f"{when}: {'; '.join(parts)}{lost}"


@dataclass(slots=True, kw_only=True)
class Proof:
    """Result of the verification of a recorded run.

    Attributes
    ----------
    begin, end : int
        Numbers of steps at its start and at its end.
    steps, changes, digests, states, checks : int
        Numbers of repeated steps and changes, and of compared digests, states, and
        checks of a step.
    divergence : Divergence or None
        First difference; None if there is none.
    notes : list of str
        Restrictions of the result: another program computed the run, the file was cut
        short.
    """

    begin: int
    end: int
    steps: int = 0
    changes: int = 0
    digests: int = 0
    states: int = 0
    checks: int = 0
    divergence: Divergence | None = None
    notes: list[str] = field(default_factory=list)


def resimulate(
    path: str | PathLike[str],
    budget: Budget = Budget(),
    progress: Progress = lambda tick: None,
) -> Proof:
    """Simulate the run of a recording again, up to the first difference.

    Parameters
    ----------
    path : path-like
        The recording.
    budget : Budget
        Limits of reading, and of the worlds in the recording.
    progress : callable
        Called with the tick of each record.

    Raises
    ------
    RecordingError
        The recording is damaged (each changed byte is noticed), has another version, or
        cannot be repeated; the message says which part cannot be read.
    """
    with Reader(path, budget) as file:
        # Another build can compute other bits, so a difference need not be a defect.
        notes, programs = list[str](), computed_elsewhere(file.metadata)
        if programs:
            notes.append(
                f"{programs[0]} computed this run; this program is {programs[1]}, "
                "and its results may differ"
            )

        if file.is_cut:
            # A file without its end has no checksum of the whole; its chunks have their
            # own.
            notes += file.problems
        else:
            file.verify()

        known = len(file.problems)
        records = file.messages((STATES, JOURNAL, CHECKS, DIGESTS, EVENTS))
        first = first_state(file, records)
        start = recorded_start(file, first, budget)
        try:
            run = _Run(start, first, file.path, budget)
        except BotyardError as error:
            raise file.error(
                f"the world at its start cannot be restored: {_reason(error)}{_version(file)}"
            ) from None

        # The file may end anywhere; problems up to here are already in the notes.
        run.proof.notes += notes
        for message in records:
            progress(run.sim.tick)
            if not run.take(message):
                break

        if len(file.problems) > known:
            raise file.error(file.problems[known])
        return run.finish()


def first_state(file: Reader, records: Iterable[Message]) -> bytes:
    """Return the first state of a run from its records.

    Raises
    ------
    RecordingError
        The recording has no state, or data before it are damaged.
    """
    known = len(file.problems)
    first = next((m for m in records if m.channel.topic == STATES), None)
    if len(file.problems) > known:
        raise file.error(file.problems[known])
    if first is None:
        why = file.metadata.get("botyard", {}).get(
            "state",
            "the file has none of botyard's channels, or was cut short before the first state",
        )
        raise file.error(f"expected a first state, found none: {shown(why, 200)}")

    try:
        return frames.decode(unpack_bytes(first.data), None)
    except (StateError, RecordingError) as error:
        raise file.error(str(error)) from None


def _version(file: Reader) -> str:
    programs = computed_elsewhere(file.metadata)
    return (
        f" ({programs[0]} wrote it, this program is {programs[1]})" if programs else ""
    )


def recorded_start(file: Reader, first: bytes, budget: Budget = Budget()) -> Beginning:
    """Read setup, scene and models of a recording.

    Raises
    ------
    RecordingError
        A part is missing or cannot be read; the message names all such parts.
    """
    decoders: dict[str, Callable[[bytes, Budget], Any]] = {
        "setup": decode_setup,
        "scene": decode_scene,
        "model": decode_model,
    }
    found: dict[str, list[Any]] = {what: [] for what in decoders}
    failed: list[str] = []
    for place in file.attachments:
        what = place.name.partition(" ")[0]
        if what in decoders:
            try:
                found[what].append(decoders[what](file.attachment(place).data, budget))
            except RecordingError as error:
                failed.append(f"{shown(place.name, 40)}: {error.reason}")

    failed += [
        f"{what}: not found"
        for what in ("setup", "scene")
        if not found[what] and not any(f.startswith(what) for f in failed)
    ]
    if failed:
        raise file.error(
            f"parts of this recording cannot be read{_version(file)}: {'; '.join(failed)}"
        )

    try:
        roster = roster_of(first, budget)
    except StateError as error:
        raise file.error(f"{error}{_version(file)}") from None

    # A long recording has models of robots that were removed during the run.
    wanted = {roster.described, *(body.digest for body in roster.bodies)}
    models = tuple(model for model in found["model"] if object_digest(model) in wanted)
    specs = {
        object_digest(model): model for model in models if isinstance(model, RobotSpec)
    }
    robots = tuple(
        PlacedRobot(spec=specs[body.digest], name=body.name, pose=Pose(*body.start))
        for body in roster.bodies
        if body.start is not None and body.digest in specs
    )
    check_world(
        World(scene=found["scene"][0], robots=robots),
        Meter(budget, file.path, RecordingError),
    )
    return Beginning(setup=found["setup"][0], scene=found["scene"][0], models=models)


def make(start: Beginning, state: bytes, budget: Budget = Budget()) -> Simulation:
    """Return a simulation in a recorded state, without its programs.

    Raises
    ------
    BotyardError
        The state is damaged or does not fit.
    """
    setup = start.setup
    sim = Simulation(
        start.scene,
        seed=setup.seed,
        step=setup.step,
        odometry_error=setup.odometry_error,
        sensor_noise=setup.sensor_noise,
        threads=setup.threads,
        range_step=setup.range_step,
        warn=lambda text: None,
    )
    sim.core.states.know(start.models)
    # A recording is untrusted, so its programs must not run.
    sim.restore(
        state, programs=False, budget=replace(budget, robots=max(budget.robots, 0))
    )
    return sim


class _Run:
    """Repetition of a recorded run, record by record in the order of the file."""

    def __init__(
        self, start: Beginning, first: bytes, path: str, budget: Budget
    ) -> None:
        self.sim = make(start, first, budget)
        self.proof = Proof(begin=self.sim.tick, end=self.sim.tick, states=1)
        self._path, self._budget = path, budget
        self._state: bytes | None = first
        self._columns = Columns(self.sim.core.engine)
        self._kept = Kept(self.sim.core.engine.clock.step_us)
        self._same = self.sim.tick
        self._suspect: Divergence | None = None
        self._lost: dict[str, int] = {}
        self._max_steps = max(
            1, round(MAX_GAP_S * 1e6 / self.sim.core.engine.clock.step_us)
        )

    def take(self, message: Message) -> bool:
        """Process a record. Returns False when the result is complete."""
        topic, data = message.channel.topic, message.data
        if topic == JOURNAL:
            try:
                entry = decode_entry(unpack_bytes(data), self._budget)
            except RecordingError as error:
                self._fail("a change cannot be read", error)

            self._apply(entry)
            return True

        if topic == CHECKS:
            self._check(data)
            return True

        if topic == DIGESTS:
            return self._compare_digest(self._decoded(data, Digest))
        if topic == STATES:
            return self._compare_state(data)
        event = self._decoded(data, _Event)
        if event.event == "lost":
            # A crafted file could name any number of kinds.
            self._lost = {
                shown(k, 20): self._lost.get(k, 0) + n
                for k, n in list(event.lost.items())[:20]
            }

        return True

    def _decoded(self, data: bytes, kind: type[Any]) -> Any:
        try:
            return msgspec.convert(unpack_json(data), kind)
        except (msgspec.MsgspecError, RecordingError) as error:
            raise RecordingError(
                f"a {kind.__name__.strip('_').lower()}: {error}", self._path
            ) from None

    def _fail(self, what: str, error: Exception) -> NoReturn:
        raise RecordingError(
            f"tick {self.sim.tick}: {what}: {_reason(error)}", self._path
        ) from None

    def _step_to(self, tick: int) -> bool:
        """Step up to a tick. Returns False if the run is already past it."""
        sim = self.sim
        # A crafted tick could make the loop below run for ever.
        if tick - sim.tick > self._max_steps:
            raise RecordingError(
                f"tick {sim.tick}: expected the next record within "
                f"{self._max_steps} steps, found it at tick {tick}",
                self._path,
            )

        while sim.tick < tick:
            # Step the engine directly: listeners of steps do not belong to the recorded
            # run.
            sim.core.engine.step()
            if self._kept.wants(sim.tick):
                # The check of this step is later in the file.
                self._kept.add(sim.tick, self._columns.copy(), self._columns.layout)
            self.proof.steps += 1

        self.proof.end = sim.tick
        return sim.tick == tick

    def _apply(self, entry: Entry) -> None:
        change, sim = entry.change, self.sim
        what = f"{type(change).__name__} of {shown(entry.source, 60)}"
        if not self._step_to(entry.tick):
            raise RecordingError(
                f"tick {sim.tick}: {what}: expected tick {sim.tick} or later, found {entry.tick}",
                self._path,
            )

        meter = Meter(self._budget, self._path, RecordingError)
        if isinstance(change, AddRobots):
            placed = [
                PlacedRobot(spec=change.spec, name=n, pose=p)
                for n, p in zip(change.names, change.poses, strict=False)
            ]
            # Robots that are in the world already count towards the same limit.
            meter.add("robots", len(sim.robots))
            check_world(World(scene=Scene(), robots=tuple(placed)), meter)
        elif isinstance(change, ReplaceScene):
            check_world(World(scene=change.scene), meter)

        try:
            with acting(entry.source):
                apply(change, sim, entry.source)
        # A crafted entry can refer to missing objects in many forms: tables, rows,
        # robots, lasers.
        except Exception as error:
            self._fail(f"{what} cannot be repeated", error)

        self.proof.changes += 1

    def _check(self, data: bytes) -> None:
        """Compare the columns of the last steps.

        After a difference the run continues to the next state, which shows more.
        """
        try:
            check = checks.decode(unpack_bytes(data))
        except RecordingError as error:
            self._fail("checks", error)

        self._step_to(check.ticks[-1])
        found = self._kept.compare(check)
        self.proof.checks = self._kept.compared
        if found is not None and self._suspect is None:
            after = self._same if found.after is None else max(self._same, found.after)
            is_all = found.is_all and len(found.found) <= MAX_DIFFERENCES
            first = found.found[:MAX_DIFFERENCES]
            self._suspect = Divergence(
                after=after,
                tick=found.tick,
                first=first,
                is_all=is_all,
                lost=self._lost,
            )

    def _compare_digest(self, said: Digest) -> bool:
        if not self._step_to(said.tick):
            return self._differs(said.tick)
        self.proof.digests += 1
        return self._is_same(f"{self.sim.digest():016x}" == said.digest)

    def _compare_state(self, frame: bytes) -> bool:
        try:
            self._state = state = frames.decode(unpack_bytes(frame), self._state)
            tick = tick_of(state, self._budget)
            if not self._step_to(tick):
                return self._differs(tick)
            self.proof.states += 1
            if (
                state_digest(state, self._budget) == self.sim.digest()
                and self._suspect is None
            ):
                return self._is_same(True)

            # A run can differ in every value, so the list has a limit.
            found = list(
                itertools.islice(differences(self.sim, state, self._budget), 100_000)
            )
        except (StateError, RecordingError) as error:
            self._fail("a state", error)

        suspect = self._suspect or Divergence(after=self._same, tick=tick)
        # The state is the same, but the digest before it was not.
        if not found and not suspect.first:
            found = [
                Difference("", "digest", "another one", f"{self.sim.digest():016x}")
            ]

        self.proof.divergence = replace(
            suspect,
            at=tick,
            found=tuple(found[:MAX_DIFFERENCES]),
            count=len(found),
            lost=self._lost,
        )
        return False

    def _is_same(self, same: bool) -> bool:
        """Store whether a digest was the same; return True, so that the run continues.

        After a difference, the next recorded state shows which values differ.
        """
        if same and self._suspect is None:
            self._same = self.sim.tick
        elif self._suspect is None:
            self._suspect = Divergence(
                after=self._same, tick=self.sim.tick, lost=self._lost
            )

        return True

    def _differs(self, tick: int) -> bool:
        found = Difference("", "tick", tick, self.sim.tick)
        self.proof.divergence = Divergence(
            after=self._same, tick=tick, found=(found,), count=1, lost=self._lost
        )
        return False

    def finish(self) -> Proof:
        """Return the result of the verification."""
        if self.proof.divergence is None:
            # A check or a digest differed, but no state followed that shows all values.
            self.proof.divergence = self._suspect
        return self.proof


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


__all__ = [
    "Beginning",
    "Divergence",
    "Proof",
    "first_state",
    "make",
    "recorded_start",
    "resimulate",
]
