"""Recorder of a run: ROS 2 messages of its robots, and all data needed to repeat it.

A `Recorder` listens to steps, to the journal and to the log. In the simulation thread
it copies arrays; a writer thread (`botyard.recording.writer`) makes messages from them
and writes them. Besides the ROS topics, a recording has botyard's own channels:

`/botyard/states`
    States of the world, see `botyard.recording.frames`; the first one precedes all
    other messages.
`/botyard/journal`
    External changes of the world, see `botyard.recording.codec`.
`/botyard/checks`
    Checks of the state after every step, see `botyard.recording.checks`.
`/botyard/digests`
    JSON: number of steps (``tick``), `Simulation.digest` as hexadecimal digits
    (``digest``), number of the last change before it (``order``, see
    `botyard.sim.journal.Entry`; 0: none), wall time (``wall``, s since the epoch).
`/botyard/events`
    JSON: events with their name as ``event``: ``stall``, ``branch`` (a state was
    restored), ``gap`` (changes before it are missing), ``lost`` (records that were left
    out), ``end``.
`/botyard/packets`
    JSON: bytes between a Pioneer client and a robot: ``robot``, ``session`` (counted
    over all robots), ``order`` (number of earlier pieces of the session), ``sim`` (s),
    ``wall`` (s since the start of the recording), ``from`` (``client`` or ``robot``),
    ``data`` (hexadecimal). `botyard.interfaces.pioneer.tracefile` reads them.

Attachments are the scene, the models, and the setup of the simulation. Metadata
identify the run and the program that computed it (`botyard.recording.built`). Times are
simulated.
"""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from botyard.api import arguments
from botyard.engine.commands import SetVelocity
from botyard.engine.snapshot import Snapshot
from botyard.errors import ArgumentError, NotNowError, StateError
from botyard.formats.budget import Budget
from botyard.names import is_name
from botyard.processes.safefile import check_replaceable
from botyard.protocols.ros_messages.types import types
from botyard.recording import checks, codec
from botyard.recording.built import build
from botyard.recording.codec import Driven, encode_driven, encode_drives
from botyard.recording.comparing import Columns, state_digest
from botyard.recording.mcap import Attachment
from botyard.recording.output import Output, Ring, Start
from botyard.recording.own_channels import (
    CHECKS,
    DIGESTS,
    EVENTS,
    JOURNAL,
    PACKETS,
    STATES,
    TYPES,
    pack_bytes,
    pack_json,
)
from botyard.recording.ros_encoder import RosEncoder
from botyard.recording.samples import Selection, Watcher
from botyard.recording.stalls import Stalled, Stalls
from botyard.recording.writer import Work, Writer
from botyard.sim.journal import JUMPS, Entry, ReplaceScene, Submit, SubmitVelocities
from botyard.sim.savedstates import sealed
from botyard.sim.simulation import Simulation
from botyard.version import __version__

BINARY: Final = "application/x-botyard"
"""Media type of attachments; `botyard.recording.codec` has their layout."""
STATE_PERIOD_US: Final = 1_000_000
"""Simulated time between two states, and between two digests, µs."""
SEGMENTS: Final = 10
"""Number of segments of a ring; a full ring drops the oldest one."""
MAX_RING_BYTES: Final = 500 << 20
"""Largest memory of a ring, bytes."""
ENTRY_BYTES: Final = 300
"""Size of a waiting journal entry for the queue limit, bytes.

A command to many bodies also counts its arrays.
"""
COMMANDS_TOGETHER: Final = 1000
"""Largest number of commands in one work item.

A step can bring more commands while the simulated time stands still.
"""
CHECKED_BYTES: Final = 4 << 20
"""Size of the columns of steps at which they are queued for checks, bytes.

They are also queued at each state.
"""
LINE_BYTES: Final = 200
EVENT_BYTES: Final = 500
"""Size of the message of a stall for the queue limit, bytes."""
PACKET_BYTES: Final = 300
TAIL_US: Final = 2_000_000
"""Simulated time from the stall of a robot to the save of the ring, µs."""
MAX_STALL_SAVES: Final = 20
"""Largest number of files that stalls of robots can cause."""
LOSS_WARNING_S: Final = 10.0
"""Minimum wall time between two warnings about lost records, s."""
OWN_EVENTS: Final = ("stall", "branch", "gap", "lost", "end")
"""Events that the recorder writes itself."""
MAX_LINE: Final = 1000
"""Largest number of recorded characters of a log line."""
_COMMANDS: Final = Submit, SubmitVelocities
_ANY_SIZE: Final = Budget(bytes=2**62)
"""Budget for states of the recorder's own world, which can have any size."""
_SECRET: Final = re.compile(r"token|password|secret|key", re.IGNORECASE)
_numbers = itertools.count(1)

log = logging.getLogger("botyard.recording")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Contents and target of a recording.

    Attributes
    ----------
    selection : Selection
        Topics, robots and rates.
    split_bytes : int
        Size of a file at which the next one starts, bytes; 0: never.
    split_s : float
        Simulated time after which the next file starts, s; 0: never.
    last_s : float
        Simulated time to keep in memory until it is saved, s; 0: write all data to the
        file at once.
    on_stall : bool
        Save the kept data when a robot stalls.
    overwrite : bool
        Replace files that botyard did not write.
    patient : bool
        Steps wait while the disk is slower than the simulation; otherwise samples are
        left out.
    keep_files : bool
        Save kept data to files with new names; otherwise they replace recordings of
        former runs.
    """

    selection: Selection = field(default_factory=Selection)
    split_bytes: int = 0
    split_s: float = 0.0
    last_s: float = 0.0
    on_stall: bool = False
    overwrite: bool = False
    patient: bool = True
    keep_files: bool = False


class Recorder:
    """Recording in progress; implements `botyard.sim.recordings.Recording`.

    Make it in the thread that steps the world.

    Parameters
    ----------
    sim : Simulation
        The world.
    path : Path
        Path of the file; further parts get a number after its name.
    choices : Choices
        Contents and target of the recording.

    Raises
    ------
    KeptFileError
        The path is a file that botyard did not write, or a file that is being written
        already (BusyFileError).
    OSError
        The file cannot be written.

    Attributes
    ----------
    saved : set of Path
        Absolute paths of files that were saved, or will be soon.
    """

    def __init__(
        self, sim: Simulation, path: Path, choices: Choices = Choices()
    ) -> None:
        self._sim, self._path, self._choices = sim, path, choices
        self.files: list[Path] = []
        self.saved: set[Path] = set()
        selection = choices.selection
        ring = Ring(choices.last_s, MAX_RING_BYTES) if choices.last_s else None
        if ring is not None:
            # A ring writes its file only at a save, so report a file that must stay
            # now.
            check_replaceable(path, force=choices.overwrite)
        self._watcher = Watcher(sim, selection, f"recording {next(_numbers)}")
        self._scribe = RosEncoder(types(), selection, sim.core.range_step)
        output = Output(path, ring, force=choices.overwrite, began=self.files.append)
        self._channels = {
            topic: self._scribe.channel(output, topic, kind)
            for topic, kind in TYPES.items()
        }
        self._encoded: tuple[object, Attachment] | None = None
        self._next_sample = self._next_state = 0
        self._last_us = sim.snapshot.time_us
        self._began = time.monotonic()
        self._part_us = self._last_us
        self._wants_part = ""
        self._order = 0
        self._columns = Columns(sim.core.engine)
        self._checked: list[tuple[int, bytes]] = []
        self._checked_bytes = 0
        self._check_every = checks.every(sim.core.engine.clock.step_us)
        self._changed_at = -1
        self._commands: list[Entry | Driven] = []
        self._commanded: tuple[int, Mapping[str, int]] = 0, {}
        self._stalls = Stalls(sim)
        self._save_at: int | None = None
        self._saves = self._stall_saves = 0
        self._reported: Mapping[str, int] = {}
        self._warned_at = -LOSS_WARNING_S
        self._is_closed = False
        try:
            # The first state and digest are written here, before the writer thread
            # exists.
            output.begin(self._start(), self._channels[STATES])
            output.message(
                self._channels[DIGESTS], self._part_us * 1000, self._digest()
            )
        except BaseException:
            output.close()
            raise

        self._writer = Writer(output, str(path), patient=choices.patient)
        self._lines = _LogLines(self._line)
        logging.getLogger("botyard").addHandler(self._lines)
        self._ends = [
            # Velocity commands come as plain values, because there can be thousands per
            # step.
            sim.core.journal.listen(self._entry, self._on_velocity),
            sim.after_step(self._step),
            sim.core.on_close(lambda _: self.close()),
        ]
        # A program that ends without a call of close must not lose the waiting data.
        atexit.register(self.close)
        self._put_map()
        self._step(sim.snapshot)

    # -- what a program sees

    @property
    def error(self) -> str:
        """Reason why the recording failed; empty while it works."""
        return self._writer.error

    @property
    def lost(self) -> Mapping[str, int]:
        """Number of records left out so far, by kind."""
        return dict(self._writer.lost)

    @property
    def has_ended(self) -> bool:
        """Whether the recording has ended."""
        return self._is_closed

    @property
    def last(self) -> float:
        """Simulated time that it keeps in memory until a save, s.

        The value 0 means that all data are written to the file at once.
        """
        return self._choices.last_s

    def save(
        self, path: str | Path | None = None, *, overwrite: bool = False
    ) -> Future[Path]:
        """See `botyard.sim.recordings.Recording.save`."""
        if not self._choices.last_s:
            raise NotNowError(
                "this recording is written to its file continuously; only a "
                "recording of the last seconds can be saved"
            )

        if self._is_closed:
            raise NotNowError("the recording has ended")
        force = overwrite or self._choices.overwrite
        target = self._next_path() if path is None else Path(path)
        self.saved.add(target.absolute())

        def save(output: Output) -> Path:
            output.save(target, force=force)
            self.files.append(target)
            return target

        self._put_state()
        return self._writer.call(save)

    def _next_path(self) -> Path:
        """Return the default path of a save, new for each save of this recording."""
        while True:
            self._saves += 1
            path = (
                self._path
                if self._saves == 1
                else self._path.with_stem(f"{self._path.stem}_{self._saves}")
            )
            # A recording of a former run can have this name.
            is_kept = self._choices.keep_files and (path.exists() or path.is_symlink())
            if not is_kept and path.absolute() not in self.saved:
                return path

    def event(self, kind: str, text: str = "", **values: Any) -> None:
        """See `botyard.sim.recordings.Recording.event`."""
        if not is_name(kind) or kind in OWN_EVENTS:
            raise ArgumentError(
                "kind: expected 1 to 64 printable characters, not one of "
                f"{', '.join(OWN_EVENTS)}, found {arguments.found(kind)}"
            )

        try:
            self._put_event(kind, text=str(text)[:MAX_LINE], **values)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"values: expected numbers, texts, lists and mappings of them: {error}"
            ) from None

    def packet(
        self, robot: str, session: int, order: int, from_client: bool, data: bytes
    ) -> None:
        """Record bytes between a Pioneer client and a robot, see `/botyard/packets`."""
        if not self._choices.selection.has_robot(robot):
            return
        time_us, wall, channel = (
            self._sim.snapshot.time_us,
            time.monotonic() - self._began,
            self._channels[PACKETS],
        )

        def write(output: Output) -> None:
            piece = {
                "robot": robot,
                "session": session,
                "order": order,
                "sim": time_us / 1e6,
                "wall": round(wall, 6),
                "from": "client" if from_client else "robot",
                "data": data.hex(),
            }
            output.message(channel, time_us * 1000, pack_json(piece))

        self._put("packets", PACKET_BYTES + len(data), write)

    def close(self) -> None:
        """Write the remaining data, and end the recording; no effect after its end."""
        if not self._is_closed:
            self.stop()
            self.wait()

    def stop(self) -> None:
        """End the recording; the remaining data are written in the background (`wait`).

        It has no effect after the end.
        """
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self.close)
        for end in self._ends:
            end()
        logging.getLogger("botyard").removeHandler(self._lines)
        self._watcher.close()
        self._put_state()
        self._put_event("end", lost=self.lost)
        self._writer.stop()

    def wait(self) -> None:
        """Wait after `stop` until all data are written, at most 10 s.

        Any thread may call it.
        """
        if not self._writer.wait():
            log.error(
                "the recording %s is not complete yet: the disk is slow", self._path
            )
        elif not self.error:
            more = (
                f" and {len(self.files) - 1} more files" if len(self.files) > 1 else ""
            )
            what = (
                f"{self.files[0]}{more}"
                if self.files
                else "no file: the data in memory were not saved"
            )
            lacks = f", without {_list_counts(self.lost)}" if self.lost else ""
            log.log(
                logging.WARNING if lacks else logging.INFO,
                "recorded: %s%s",
                what,
                lacks,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- files

    def _start(self) -> Start:
        """Return the initial data of a file, with the present state."""
        sim, metadata = self._sim, dict(self._about())
        try:
            state = sim.save_state()
        # A controller without a saved form must not prevent the recording of the
        # topics.
        except StateError as error:
            state = None
            metadata["state"] = str(error)
            log.warning(
                "the recording %s cannot be simulated again: %s", self._path, error
            )

        # Encoding a large map takes long, so all parts share the result.
        if self._encoded is None or self._encoded[0] is not sim.scene:
            scene = Attachment("scene", BINARY, codec.encode_scene(sim.scene))
            self._encoded = sim.scene, scene

        attachments = [
            Attachment("setup", BINARY, codec.encode_setup(codec.setup_of(sim))),
            self._encoded[1],
        ]
        for k, model in enumerate(codec.models_of(sim)):
            attachments.append(
                Attachment(f"model {k}", BINARY, codec.encode_model(model))
            )

        self._part_us = sim.snapshot.time_us
        return Start(sim.snapshot.time_us * 1000, state, metadata, attachments)

    def _about(self) -> Iterable[tuple[str, str]]:
        sim = self._sim
        yield "version", __version__
        yield "build", build()
        yield "began", datetime.now(UTC).isoformat(timespec="seconds")
        yield "command", json.dumps(_without_secrets(sys.argv))
        yield "machine", f"{platform.system()} {platform.machine()}"
        yield "python", platform.python_version()
        yield "numpy", np.__version__
        yield "map", sim.scene.source or sim.scene.name
        yield "seed", str(sim.seed)
        yield "step_us", str(sim.core.engine.clock.step_us)
        yield "tick", str(sim.tick)
        yield "part", str(len(self.files) + 1)

    def _begin_part(self, why: str) -> None:
        """Start a file or a segment."""
        self._put_checks()
        start, said = self._start(), self._digest()
        size = len(start.state or b"") + sum(len(a.data) for a in start.attachments)

        def begin(output: Output) -> None:
            output.begin(start, self._channels[STATES])
            output.message(self._channels[DIGESTS], start.time, said)

        if self._put("parts", size, begin, vital=True):
            self._wants_part = ""
            self._next_state = start.time // 1000 + STATE_PERIOD_US
            if why:
                self._put_event(why)

    def _is_over(self, time_us: int) -> bool:
        """Whether the current file or segment is complete."""
        choices = self._choices
        span = choices.last_s / SEGMENTS if choices.last_s else choices.split_s
        is_large = (
            not choices.last_s
            and choices.split_bytes
            and self._writer.size >= choices.split_bytes
        )
        return bool(
            is_large
            or self._writer.is_full
            or (span and time_us - self._part_us >= span * 1e6)
        )

    # -- what happens

    def _put(self, kind: str, size: int, work: Work, *, vital: bool = False) -> bool:
        """Queue work after the commands that came before it."""
        if self._commands:
            self._put_commands()
        return self._writer.put(kind, size, work, vital=vital)

    def _step(self, snapshot: Snapshot) -> None:
        """Record a step."""
        time_us = snapshot.time_us
        # Nothing can be written any more, so further samples would only cost time.
        if self._writer.error:
            self.stop()
            return

        if self._commands:
            self._put_commands()
        # A restored state can have an earlier time.
        if time_us < self._last_us:
            self._next_sample = self._next_state = time_us
        self._last_us = time_us
        if self._wants_part or self._is_over(time_us):
            self._begin_part(self._wants_part)
        if time_us >= self._next_sample:
            period = self._choices.selection.shortest_us
            # Sample at multiples of the period, so that rates do not drift.
            self._next_sample = 0 if not period else (time_us // period + 1) * period
            self._put_sample()

        tick = snapshot.tick
        # A change after the step has altered the state, so its columns no longer belong
        # to the step.
        if not tick % self._check_every and tick != self._changed_at:
            columns = self._columns.copy()
            self._checked.append((tick, columns))
            self._checked_bytes += len(columns)
            if self._checked_bytes > CHECKED_BYTES:
                self._put_checks()

        if time_us >= self._next_state:
            self._next_state = time_us + STATE_PERIOD_US
            self._put_state()

        self._look_for_stalls(snapshot)
        self._report_losses()

    def _put_sample(self) -> None:
        watcher, scribe = self._watcher, self._scribe
        sample = watcher.sample()

        def work(output: Output) -> None:
            scribe.write(sample, output)
            watcher.release(sample)

        self._put("samples", sample.size, work)

    def _digest(self) -> bytes:
        """Return the message about the present state."""
        sim = self._sim
        return _digest_message(sim.tick, sim.digest(), self._order, time.time())

    def _put_checks(self) -> None:
        """Write the checks of the steps since the last call."""
        if not self._checked:
            return
        # The writer thread gets these lists, so start new ones.
        found, size = self._checked, self._checked_bytes
        self._checked, self._checked_bytes = [], 0
        ticks, columns = [tick for tick, _ in found], [one for _, one in found]
        time_ns, channel = self._last_us * 1000, self._channels[CHECKS]

        def work(output: Output) -> None:
            for data in checks.encode(ticks, columns):
                output.message(channel, time_ns, pack_bytes(data))

        self._put("checks", size, work, vital=True)

    def _put_state(self) -> None:
        self._put_checks()
        sim = self._sim
        time_ns, tick, order, wall = (
            sim.snapshot.time_us * 1000,
            sim.tick,
            self._order,
            time.time(),
        )
        try:
            moment = sim.core.states.save_moment(0)
        except StateError:
            # The log already has this error, from the start of the recording.
            return

        def work(output: Output) -> None:
            state = sealed(moment)
            output.state(self._channels[STATES], time_ns, state)
            output.message(
                self._channels[DIGESTS],
                time_ns,
                _digest_message(tick, state_digest(state, _ANY_SIZE), order, wall),
            )

        # Deltas after a missing state are unreadable, so start a part with a keyframe.
        if not self._put("states", len(moment), work, vital=True):
            self._wants_part = "gap"

    def _put_event(self, event: str, **values: Any) -> bool:
        data = pack_json({"event": event, "tick": self._sim.tick, **values})
        time_ns, channel = self._sim.snapshot.time_us * 1000, self._channels[EVENTS]
        return self._put(
            "events",
            len(data),
            lambda output: output.message(channel, time_ns, data),
            vital=True,
        )

    def _put_map(self) -> None:
        scene, time_us = self._sim.scene, self._sim.snapshot.time_us
        self._put("maps", 0, lambda output: self._scribe.map(scene, time_us, output))

    def _entry(self, entry: Entry) -> None:
        """Record a change of the world."""
        change = entry.change
        self._order = entry.order
        # A step can bring thousands of commands, so they are queued together.
        if isinstance(change, _COMMANDS):
            commands = self._commands
            if not commands:
                self._commanded = self._sim.snapshot.time_us, self._sim.core.engine.rows
            commands.append(entry)
            if len(commands) >= COMMANDS_TOGETHER:
                self._put_commands()
            return

        time_us = self._sim.snapshot.time_us
        if isinstance(change, JUMPS):
            # After a jump, the snapshot already shows the other state.
            time_us = self._last_us
            self._put_checks()

        # The state may differ from the state at the end of the step.
        self._changed_at = entry.tick
        # Encode at once: the objects of the entry can change later.
        data, channel = pack_bytes(codec.encode_entry(entry)), self._channels[JOURNAL]
        if not self._put(
            "changes",
            len(data),
            lambda output: output.message(channel, time_us * 1000, data),
            vital=True,
        ):
            self._wants_part = "gap"

        if isinstance(change, ReplaceScene):
            self._put_map()
        elif isinstance(change, JUMPS):
            self._next_sample = self._next_state = 0
            self._begin_part("branch")
            self._put_map()

    def _on_velocity(
        self, tick: int, order: int, source: str, name: str, command: SetVelocity
    ) -> None:
        """Record a velocity command to a body."""
        self._order = order
        commands = self._commands
        if not commands:
            self._commanded = self._sim.snapshot.time_us, self._sim.core.engine.rows
        commands.append((tick, order, source, name, command.v, command.w, command.vy))
        if len(commands) >= COMMANDS_TOGETHER:
            self._put_commands()

    def _put_commands(self) -> None:
        """Queue the commands since the last call."""
        commands, self._commands = self._commands, []
        (time_us, rows), scribe, channel = (
            self._commanded,
            self._scribe,
            self._channels[JOURNAL],
        )
        time_ns, size = time_us * 1000, ENTRY_BYTES * len(commands)
        for one in commands:
            if isinstance(one, Entry) and isinstance(one.change, SubmitVelocities):
                # A command has the rows and up to three velocities for each.
                size += 4 * one.change.command.rows.nbytes

        def work(output: Output) -> None:
            for one in _joined(commands):
                if isinstance(one, list):
                    data = (
                        encode_driven(one[0]) if len(one) == 1 else encode_drives(one)
                    )
                    output.message(channel, time_ns, pack_bytes(data))
                    for _, _, _, name, v, w, vy in one:
                        scribe.command(name, v, vy, w, time_ns, output)
                    continue

                output.message(channel, time_ns, pack_bytes(codec.encode_entry(one)))
                if isinstance(one.change, SubmitVelocities):
                    scribe.commands(one.change.command, rows, time_ns, output)

        if not self._writer.put("changes", size, work, vital=True, count=len(commands)):
            self._wants_part = "gap"

    def _line(self, level: int, text: str) -> None:
        """Record a log line, from any thread."""
        time_us = self._last_us
        self._writer.put(
            "lines",
            LINE_BYTES,
            lambda output: self._scribe.line(level, text, time_us, output),
        )

    def _look_for_stalls(self, snapshot: Snapshot) -> None:
        stalled = self._stalls.look()
        if stalled is not None:
            if (
                self._choices.on_stall
                and self._save_at is None
                and self._stall_saves < MAX_STALL_SAVES
                and stalled.names
            ):
                # Wait, so that the file also shows the time after the stall.
                self._save_at = snapshot.time_us + TAIL_US

            self._put_stalls(stalled, snapshot)

        if self._save_at is not None and snapshot.time_us >= self._save_at:
            self._save_at = None
            self._stall_saves += 1
            self.save().add_done_callback(_log_saved)

    def _put_stalls(self, stalled: Stalled, snapshot: Snapshot) -> None:
        """Write the names of robots that started to stall, if any."""
        tick, time_ns, channel = (
            snapshot.tick,
            snapshot.time_us * 1000,
            self._channels[EVENTS],
        )

        def work(output: Output) -> None:
            names = stalled.names
            if names:
                output.message(
                    channel,
                    time_ns,
                    pack_json({"event": "stall", "tick": tick, "robots": names}),
                )

        self._put("events", len(stalled.now) + EVENT_BYTES, work, vital=True)

    def _report_losses(self) -> None:
        """Report lost records in the file and in the log when the queue has room."""
        lost = self._writer.lost
        if not lost or lost.total() == sum(self._reported.values()):
            return
        # A warning for each loss would flood the log while the disk is slow.
        now = time.monotonic()
        if now - self._warned_at < LOSS_WARNING_S:
            return
        new = {
            kind: n - self._reported.get(kind, 0)
            for kind, n in lost.items()
            if n > self._reported.get(kind, 0)
        }
        if self._put_event("lost", **{"lost": new}):
            self._warned_at, self._reported = now, dict(lost)
            log.warning(
                "the recording %s is too slow; left out: %s",
                self._path,
                _list_counts(new),
            )


class _LogLines(logging.Handler):
    """Log handler that forwards lines."""

    def __init__(self, take: Callable[[int, str], None]) -> None:
        super().__init__(logging.INFO)
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a log line, but not lines about recordings.

        A full queue would otherwise cause more and more of them.
        """
        if record.name != log.name:
            self._take(record.levelno, record.getMessage()[:MAX_LINE])


def _joined(commands: Sequence[Entry | Driven]) -> Iterator[Entry | list[Driven]]:
    """Group commands to single bodies with one tick and source; keep the order.

    Each group becomes one entry of the journal.
    """
    several: list[Driven] = []
    for one in commands:
        if several and (
            isinstance(one, Entry) or one[0] != several[0][0] or one[2] != several[0][2]
        ):
            yield several
            several = []

        if isinstance(one, Entry):
            yield one
        else:
            several.append(one)

    if several:
        yield several


def _log_saved(saved: Future[Path]) -> None:
    error = saved.exception()
    if error is None:
        log.info("recorded: %s", saved.result())
    else:
        log.error("the recorded data cannot be saved: %s", error)


def _digest_message(tick: int, digest: int, order: int, wall: float) -> bytes:
    """Return a message of the channel of digests."""
    return pack_json(
        {
            "tick": tick,
            "digest": f"{digest:016x}",
            "order": order,
            "wall": round(wall, 3),
        }
    )


def _list_counts(lost: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in lost.items())


def _without_secrets(command: Sequence[str]) -> list[str]:
    """Return a command line without the values of secret options."""
    found, hides = list[str](), False
    for word in command:
        name, equals, _ = word.partition("=")
        if hides:
            found.append("…")
            hides = False
        # Recordings are shared, but tokens on the command line must stay private.
        elif word.startswith("-") and _SECRET.search(name):
            found.append(name + ("=…" if equals else ""))
            hides = not equals
        else:
            found.append(word)

    return found


__all__ = ["BINARY", "Choices", "Recorder"]
