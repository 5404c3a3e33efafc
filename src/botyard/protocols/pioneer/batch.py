"""Reports of many sessions, made by one kernel in one buffer.

Reports are SIP and laser packets, with checksums. Each session's packets are built once
with `reportbuilder`, and again only after a change of their constant parts
(`Session.report_version`). In every period the kernel `write_reports` writes the fields
that change. The bytes equal the output of `reportbuilder`, which also serves sessions
that the kernel cannot (`Session.is_plain`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.model.robotport import Fleet
from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.kernels import reports as k
from botyard.protocols.pioneer.kernels.schedule import PLAIN, SILENT
from botyard.protocols.pioneer.reportbuilder import (
    DEVICE_BITS,
    STALL_BITS,
    build_sip,
    is_stalled_by,
)
from botyard.protocols.pioneer.reports import READINGS_PER_PACKET, LaserPart
from botyard.protocols.pioneer.roster import Roster
from botyard.protocols.pioneer.session import Session

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
B1 = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

MAX_SCANS: Final = 4
"""Maximum number of active lasers of a session whose reports the kernel makes."""
BUFFER: Final = 4096
"""Size of the buffer at first, bytes."""


class Made(NamedTuple):
    """Output of one session in one period: its SIP and its laser packets."""

    sip: bytes
    scans: bytes


class Batch:
    """Makes the reports of sessions of one simulation.

    Parameters
    ----------
    roster : Roster
        Table of the sessions.
    """

    def __init__(self, roster: Roster[Session]) -> None:
        self._roster = roster
        self._fleet: Fleet | None = None
        self._layout = -1
        self._numbers: dict[object, int] = {}
        """Number of each range sensor among all, by its key, in the present layout."""
        self._spans: Sequence[tuple[int, int]] = ()
        """Slice of each range sensor in the readings, by its number."""
        self._buffer: Bytes = np.zeros(BUFFER, np.uint8)
        self._end = 0
        self._capacity = 0
        self._rows: I8 = np.zeros((0, k.COLUMNS), np.int64)
        self._scans: I8 = np.zeros((0, MAX_SCANS, k.SCAN_COLUMNS), np.int64)
        self._units: F8 = np.zeros((0, k.UNITS))
        # Columns of what a report was made for. A row is made again if one differs.
        self._shaped: I8 = np.zeros((0, 2), np.int64)
        self._placed: I8 = np.zeros((0, 3), np.int64)

    @property
    def buffer(self) -> Bytes:
        """Reports of all sessions; `where` states the place of each."""
        return self._buffer

    def where(self, numbers: I8) -> tuple[I8, I8]:
        """Return offsets and sizes of made reports in `buffer`, (m,)."""
        return self._rows[numbers, k.AT], self._rows[numbers, k.SIZE]

    def made(self, number: int) -> Made:
        """Return the made report of a session."""
        row = self._rows[number]
        at, middle = int(row[k.AT]), int(row[k.AT] + row[k.SIP_SIZE])
        end = at + int(row[k.SIZE])
        return Made(
            self._buffer[at:middle].tobytes(), self._buffer[middle:end].tobytes()
        )

    def make(self, numbers: I8) -> B1:
        """Make the reports of the sessions in these rows, (m,).

        Returns
        -------
        (m,) bool
            False for a session that must build its own report.
        """
        made: B1 = (self._roster.flags[numbers] & (PLAIN | SILENT)) == PLAIN
        plain = numbers[made]
        if not len(plain):
            return made
        first = self._roster.sessions[plain[0]]
        assert first is not None
        fleet = first.port.fleet
        # Rounded readings differ from robot to robot, so they cannot be taken from the
        # arrays.
        if not fleet.is_exact:
            made[:] = False
            return made

        done = self._write(plain, fleet)
        if not done.all():
            # Robots were added or removed since the step: one measurement for all costs
            # less than one for each.
            fleet.refresh()
            done[~done] = self._write(plain[~done], fleet)
        made[made] = done
        return made

    def _write(self, numbers: I8, fleet: Fleet) -> B1:
        self._arrange(numbers, fleet)
        state, (ranges, returns) = fleet.state, fleet.readings
        made: B1 = np.zeros(len(numbers), np.bool_)
        bumped = self._bump(numbers, fleet)
        world = k.World(
            state.odom,
            state.vel,
            state.motors,
            state.stall,
            ranges,
            returns,
            fleet.taken,
        )
        k.write_reports(
            numbers,
            self._rows,
            self._scans,
            self._units,
            world,
            self._roster.motors,
            self._buffer,
            made,
        )
        self._rows[bumped, k.BITS] = 0
        made &= self._rows[numbers, k.SIZE] > 0
        return made

    def _bump(self, numbers: I8, fleet: Fleet) -> I8:
        """Set the bits of robots with contacts; return their rows.

        Few robots have contacts at a time, so these are handled one by one.
        """
        rows = self._rows
        # Obstacles do not touch a robot without sensors that would notice.
        some: I8 = numbers[self._placed[numbers, 2] != 0]
        some = some[fleet.state.contact[rows[some, k.BODY]] != 0]
        for i in some.tolist():
            session = self._roster.sessions[i]
            assert session is not None
            more = session.port.report_bits().get("stall_bumpers", 0)
            stall = STALL_BITS if is_stalled_by(more, session.bumpstall) else 0
            rows[i, k.BITS] = stall | more & DEVICE_BITS["stall_bumpers"]

        return some

    # -- constant parts

    def _arrange(self, numbers: I8, fleet: Fleet) -> None:
        """Build the constant parts of new and changed reports."""
        if self._capacity < self._roster.capacity:
            self._grow(self._roster.capacity)
        if fleet is not self._fleet or fleet.layout != self._layout:
            self._fleet, self._layout = fleet, fleet.layout
            keys, self._spans = fleet.placed
            self._numbers = {key: i for i, key in enumerate(keys)}
            self._placed[:, 0] = -1
        for i in numbers[self._placed[numbers, 0] < 0].tolist():
            self._place(i, fleet)
        boards = fleet.board_versions
        now = np.stack(
            [self._roster.versions[numbers], boards[self._placed[numbers, 0]]], axis=1
        )
        for i in numbers[(now != self._shaped[numbers]).any(axis=1)].tolist():
            if self._shape(i, fleet):
                self._place(i, fleet)
                self._shaped[i] = self._roster.versions[i], boards[self._placed[i, 0]]

        for i in numbers[self._placed[numbers, 1] != fleet.placements].tolist():
            self._mark_moved(i, fleet)

    def _shape(self, i: int, fleet: Fleet) -> bool:
        """Build the report of a session, and describe its fields.

        Return False if the kernel cannot make it now.
        """
        session = self._session(i)
        port = session.port
        p, ring = port.spec.pioneer, port.spec.sonar
        count = len(ring.transducers) if ring is not None and session.sonar_on else 0
        sip = build_sip(port, port.state(), sonar_on=session.sonar_on).encode()
        data, row, scans = sip, self._rows[i], self._scans[i]
        row[:] = 0
        scans[:] = 0
        row[k.RING_COUNT] = count
        at = k.HEAD + k.FLAGS
        # Bit 0 is the state of the motors, which is written in every period.
        row[k.FLAG_BITS] = int.from_bytes(sip[at : at + 2], "little") & ~1
        spans = self._spans
        lasers = [laser for laser in session.lasers if laser.mode]
        sensors = [(port.name, "laser", laser.index) for laser in lasers]
        sensors += [(port.name, "sonar", 0)] * bool(count)
        # A sensor that was switched on after the step has no readings yet.
        if len(lasers) > MAX_SCANS or not all(key in self._numbers for key in sensors):
            return False
        for scan, laser in zip(scans, lasers, strict=False):
            first, end = spans[self._numbers[port.name, "laser", laser.index]]
            scan[k.LENGTH], scan[k.MODE] = end - first, laser.mode
            scan[k.REVERSE], scan[k.PACKETS] = laser.reverse, len(data)
            data += sweep(end - first, laser.mode, laser.index)

        row[k.AT] = self._store(data)
        row[k.SIP_SIZE], row[k.SIZE] = len(sip), len(data)
        scans[:, k.PACKETS] += row[k.AT]

        self._units[i] = (
            p.dist_conv,
            p.angle_conv,
            p.vel_conv,
            p.diff_conv,
            1000.0 / p.range_conv,
        )
        # The flag "moved" of all scans is looked up anew.
        self._placed[i, 1] = -1
        return True

    def _place(self, i: int, fleet: Fleet) -> None:
        """Look up the places of a session's robot and sensors in the arrays."""
        session, row = self._session(i), self._rows[i]
        name, spans = session.port.name, self._spans
        self._placed[i, 0] = fleet.board_of(name)
        self._placed[i, 2] = bool(session.port.spec.devices)
        row[k.BODY] = fleet.rows[name]
        if row[k.RING_COUNT]:
            row[k.RING] = self._numbers[name, "sonar", 0]
            row[k.RING_AT] = spans[row[k.RING]][0]
        lasers = [laser for laser in session.lasers if laser.mode]
        for scan, laser in zip(self._scans[i], lasers, strict=False):
            if scan[k.LENGTH]:
                scan[k.DEVICE] = number = self._numbers[name, "laser", laser.index]
                scan[k.FIRST], end = spans[number]
                # Its beams have changed without a command of the client.
                if end - spans[number][0] != scan[k.LENGTH]:
                    self._shaped[i] = -1

    def _mark_moved(self, i: int, fleet: Fleet) -> None:
        """Set the flag "moved" of scans since a teleport."""
        lasers = [laser for laser in self._session(i).lasers if laser.mode]
        has_moved = False
        for scan, laser in zip(self._scans[i], lasers, strict=False):
            scan[k.MOVED] = moved = laser.take_moved()
            has_moved |= moved
        # The next scan clears a flag that is set now.
        self._placed[i, 1] = -1 if has_moved else fleet.placements

    def _session(self, i: int) -> Session:
        session = self._roster.sessions[i]
        assert session is not None
        return session

    # -- memory

    def _store(self, data: bytes) -> int:
        """Put the bytes of a report into the buffer, and return their offset."""
        if self._end + len(data) > len(self._buffer):
            self._pack(len(data))
        at, self._end = self._end, self._end + len(data)
        self._buffer[at : self._end] = np.frombuffer(data, np.uint8)
        return at

    def _pack(self, more: int) -> None:
        """Copy the reports in use to a buffer with room for more."""
        rows = self._rows
        # A row without a session has no report, also for the session that it gets next.
        free = [i for i, one in enumerate(self._roster.sessions) if one is None]
        rows[free, k.SIZE] = 0
        used = np.flatnonzero(rows[:, k.SIZE]).tolist()
        total = int(rows[:, k.SIZE].sum()) + more
        new: Bytes = np.zeros(max(2 * total, BUFFER), np.uint8)
        end = 0
        for i in used:
            at, size = int(rows[i, k.AT]), int(rows[i, k.SIZE])
            new[end : end + size] = self._buffer[at : at + size]
            rows[i, k.AT] = end
            self._scans[i, :, k.PACKETS] += end - at
            end += size

        self._buffer, self._end = new, end

    def _grow(self, capacity: int) -> None:
        more = capacity - self._capacity
        for name, fill in (
            ("_rows", 0),
            ("_scans", 0),
            ("_units", 1),
            ("_shaped", -1),
            ("_placed", -1),
        ):
            old = getattr(self, name)
            new = np.full((more, *old.shape[1:]), fill, old.dtype)
            setattr(self, name, np.concatenate([old, new]))
        self._capacity = capacity


@lru_cache(maxsize=256)
def sweep(count: int, mode: int, device: int) -> bytes:
    """Return the packets of a scan with all readings at 0."""
    kind = P.LASER1 if mode == 1 else P.LASER2
    out = b""
    for first in range(0, count, READINGS_PER_PACKET):
        n = min(READINGS_PER_PACKET, count - first)
        part = LaserPart(
            total=count,
            first=first,
            ranges_mm=[0] * n,
            reflectance=[0] * n,
            device=device,
        )
        out += part.encode(kind)

    return out


__all__ = ["Batch", "Made", "sweep"]
