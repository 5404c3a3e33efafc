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
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from botyard.api import arguments
from botyard.engine.snapshot import Snapshot
from botyard.errors import ArgumentError, NotNowError
from botyard.names import is_name
from botyard.processes.safefile import check_replaceable
from botyard.protocols.ros_messages.types import types
from botyard.recording import checks
from botyard.recording.output import Output, Ring
from botyard.recording.own_channels import (
    EVENTS,
    PACKETS,
    pack_json,
)
from botyard.recording.ownrecords import STATE_PERIOD_US, OwnRecords
from botyard.recording.ros_encoder import RosEncoder
from botyard.recording.samples import Selection, Watcher
from botyard.recording.stalls import Stalled, Stalls
from botyard.sim.simulation import Simulation

SEGMENTS: Final = 10
"""Number of segments of a ring; a full ring drops the oldest one."""
MAX_RING_BYTES: Final = 500 << 20
"""Largest memory of a ring, bytes."""
CHECKED_BYTES: Final = 4 << 20
"""Size of the collected columns at which they are queued for checks, bytes.

Columns of steps are also queued at each state.
"""
LINE_BYTES: Final = 200
EVENT_BYTES: Final = 500
"""Size of the message about a stall, as the queue limit counts it, bytes."""
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


class Recorder(OwnRecords):
    """Recording in progress; implements `botyard.sim.recordings.Recording`.

    Create it in the thread that steps the world.

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
        Absolute paths of files that were saved, or that wait to be saved.
    """

    def __init__(
        self, sim: Simulation, path: Path, choices: Choices = Choices()
    ) -> None:
        self._choices = choices
        self.saved: set[Path] = set()
        selection = choices.selection
        ring = Ring(choices.last_s, MAX_RING_BYTES) if choices.last_s else None
        if ring is not None:
            # A ring writes its file only at a save. Report now if the file must not be
            # replaced.
            check_replaceable(path, force=choices.overwrite)
        self._watcher = Watcher(sim, selection, f"recording {next(_numbers)}")
        files: list[Path] = []
        super().__init__(
            sim,
            path,
            Output(path, ring, force=choices.overwrite, began=files.append),
            RosEncoder(types(), selection, sim.core.range_step),
            files,
            patient=choices.patient,
        )
        self._began = time.monotonic()
        self._check_every = checks.every(sim.core.engine.clock.step_us)
        self._stalls = Stalls(sim)
        self._save_at: int | None = None
        self._saves = self._stall_saves = 0
        self._reported: Mapping[str, int] = {}
        self._warned_at = -LOSS_WARNING_S
        self._is_closed = False
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
        """Write the data kept in memory to a file, see `botyard.sim.recordings.Recording.save`."""
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
        """Record an event of the user's program, see `botyard.sim.recordings.Recording.event`."""
        if not is_name(kind) or kind in OWN_EVENTS:
            raise ArgumentError(
                "kind: expected 1 to 64 printable characters, other than the "
                f"reserved {', '.join(OWN_EVENTS)}, found {arguments.found(kind)}"
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

        A call after the end has no effect.
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

    def _is_over(self, time_us: int) -> bool:
        """Return whether the current file or segment is long enough for the next one to start."""
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

    def _step(self, snapshot: Snapshot) -> None:
        """Record the results of a step."""
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

    def _line(self, level: int, text: str) -> None:
        """Record a line of the log; any thread may call this."""
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
                "writing the recording %s is too slow; records left out: %s",
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


def _log_saved(saved: Future[Path]) -> None:
    error = saved.exception()
    if error is None:
        log.info("recorded: %s", saved.result())
    else:
        log.error("the recorded data cannot be saved: %s", error)


def _list_counts(lost: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in lost.items())


__all__ = ["Choices", "Recorder"]
