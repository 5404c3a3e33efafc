"""Records of botyard's own channels, with which a run can be repeated.

The records are states, digests, checks, events, the map, and external changes of the
world.
"""

from __future__ import annotations

import json
import logging
import platform
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.engine.commands import SetVelocity
from botyard.errors import StateError
from botyard.formats.budget import Budget
from botyard.recording import checks, codec
from botyard.recording.built import build
from botyard.recording.codec import Driven, encode_driven, encode_drives
from botyard.recording.comparing import Columns, state_digest
from botyard.recording.mcap import Attachment
from botyard.recording.output import Output, Start
from botyard.recording.own_channels import (
    CHECKS,
    DIGESTS,
    EVENTS,
    JOURNAL,
    STATES,
    TYPES,
    pack_bytes,
    pack_json,
)
from botyard.recording.ros_encoder import RosEncoder
from botyard.recording.writer import Work, Writer
from botyard.sim.journal import JUMPS, Entry, ReplaceScene, Submit, SubmitVelocities
from botyard.sim.savedstates import sealed
from botyard.sim.simulation import Simulation
from botyard.version import __version__

BINARY: Final = "application/x-botyard"
"""Media type of attachments; `botyard.recording.codec` has their layout."""
STATE_PERIOD_US: Final = 1_000_000
"""Simulated time between two states, and between two digests, µs."""
ENTRY_BYTES: Final = 300
"""Size of a waiting journal entry as the queue limit counts it, bytes.

A command to many bodies also counts its arrays.
"""
COMMANDS_TOGETHER: Final = 1000
"""Largest number of commands in one work item.

A step can bring more commands while the simulated time stands still.
"""
_COMMANDS: Final = Submit, SubmitVelocities
_ANY_SIZE: Final = Budget(bytes=2**62)
"""Budget for states of the recorder's own world, which can have any size."""
_SECRET: Final = re.compile(r"token|password|secret|key", re.IGNORECASE)
log = logging.getLogger("botyard.recording")


class OwnRecords:
    """Queue of a recording's own records.

    The writer thread makes messages from them and writes them.

    Parameters
    ----------
    sim : Simulation
        The world.
    path : Path
        Path of the recording.
    output : Output
        Files of the recording, to which the start is written at once.
    encoder : RosEncoder
        Encoder of ROS messages.
    files : list of Path
        Files that were written so far.
    patient : bool
        Steps wait while the disk is slower than the simulation.
    """

    def __init__(
        self,
        sim: Simulation,
        path: Path,
        output: Output,
        encoder: RosEncoder,
        files: list[Path],
        *,
        patient: bool,
    ) -> None:
        self._sim, self._path, self._scribe = sim, path, encoder
        self.files = files
        self._channels = {
            topic: self._scribe.channel(output, topic, kind)
            for topic, kind in TYPES.items()
        }
        self._encoded: tuple[object, Attachment] | None = None
        self._next_sample = self._next_state = 0
        self._last_us = sim.snapshot.time_us
        self._part_us = self._last_us
        self._wants_part = ""
        self._order = 0
        self._columns = Columns(sim.core.engine)
        self._checked: list[tuple[int, bytes]] = []
        self._checked_bytes = 0
        self._changed_at = -1
        self._commands: list[Entry | Driven] = []
        self._commanded: tuple[int, Mapping[str, int]] = 0, {}
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

        self._writer = Writer(output, str(path), patient=patient)

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
        """Start the next file, or the next segment of a ring."""
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

    def _put(self, kind: str, size: int, work: Work, *, vital: bool = False) -> bool:
        """Queue work after the commands that were recorded before it.

        Parameters
        ----------
        kind : str
            Kind of the work, for the count of lost data.
        size : int
            Bytes that it holds.
        work : callable
            Called in the writer thread with the output.
        vital : bool
            Whether the run cannot be repeated without it.

        Returns
        -------
        bool
            False if the work was left out.
        """
        if self._commands:
            self._put_commands()
        return self._writer.put(kind, size, work, vital=vital)

    def _digest(self) -> bytes:
        """Return the message with the digest of the present state."""
        sim = self._sim
        return _digest_message(sim.tick, sim.digest(), self._order, time.time())

    def _put_checks(self) -> None:
        """Write the state checksums of the steps since the last call."""
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
            # After a jump, the snapshot already shows the state after the jump.
            time_us = self._last_us
            self._put_checks()

        # The change follows the step of this tick. A check of this tick would include it, so the
        # recorder writes none.
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


def _joined(commands: Sequence[Entry | Driven]) -> Iterator[Entry | list[Driven]]:
    """Group commands to single bodies with one tick and source; keep the order.

    Parameters
    ----------
    commands : sequence of Entry or Driven
        Commands in the order in which they were recorded.

    Yields
    ------
    Entry or list of Driven
        A command to many bodies, or a group that becomes one entry of the journal.
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


def _digest_message(tick: int, digest: int, order: int, wall: float) -> bytes:
    """Return a message of the channel of digests.

    Parameters
    ----------
    tick : int
        Number of steps done.
    digest : int
        `Simulation.digest` after them.
    order : int
        Number of the last journal entry before the state.
    wall : float
        Wall time, s since 1970.
    """
    return pack_json(
        {
            "tick": tick,
            "digest": f"{digest:016x}",
            "order": order,
            "wall": round(wall, 3),
        }
    )


def _without_secrets(command: Sequence[str]) -> list[str]:
    """Return a command line without the values of secret options.

    Recordings are shared, so that tokens must not be in them.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    """
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


__all__ = ["BINARY"]
