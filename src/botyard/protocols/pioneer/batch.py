"""Reports of many sessions, made by one kernel in one buffer.

Reports are SIP and laser packets, with checksums. Each session's packets are built once
with `reportbuilder`, and again only after a change of their constant parts
(`Session.report_version`). In every period the kernel `write_reports` writes the fields
that change. The bytes equal the output of `reportbuilder`, which also builds the
reports that the kernel cannot make (`Session.is_plain`).
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

# The kernel's table has a fixed number of scans for each session; robots rarely have
# more lasers.
MAX_SCANS: Final = 4
"""Greatest number of active lasers with which the kernel makes the reports of a session."""
BUFFER: Final = 4096
"""Initial size of the buffer of reports, bytes."""


class Made(NamedTuple):
    """Output of one session in one period: its SIP and its laser packets.

    Attributes
    ----------
    sip : bytes
        Complete SIP with its checksum.
    scans : bytes
        Concatenated laser packets of all active lasers; empty without an active laser.
    """

    sip: bytes
    scans: bytes


class Batch:
    """Maker of the reports of many sessions of one simulation.

    Parameters
    ----------
    roster : Roster
        Table of the sessions.
    """

    def __init__(self, roster: Roster[Session]) -> None:
        self._roster = roster
        self._fleet: Fleet | None = None
        # −1 is lower than any layout number, so that the first call looks up all
        # sensors.
        self._layout = -1
        self._numbers: dict[object, int] = {}
        """Number of each range sensor in the present layout, by the sensor's key."""
        self._spans: Sequence[tuple[int, int]] = ()
        """Slice of each range sensor in the readings, by its number."""
        self._buffer: Bytes = np.zeros(BUFFER, np.uint8)
        self._end = 0
        self._capacity = 0
        self._rows: I8 = np.zeros((0, k.COLUMNS), np.int64)
        self._scans: I8 = np.zeros((0, MAX_SCANS, k.SCAN_COLUMNS), np.int64)
        self._units: F8 = np.zeros((0, k.UNITS))
        # Versions and settings for which each row's report was built. If one of them
        # has changed, the report is built again.
        self._built: I8 = np.zeros((0, k.BUILT_COLUMNS), np.int64)

    @property
    def buffer(self) -> Bytes:
        """Buffer with the reports of all sessions; `where` returns their offsets."""
        return self._buffer

    def where(self, numbers: I8) -> tuple[I8, I8]:
        """Return offsets and sizes, (m,), of encoded reports in `buffer`.

        Parameters
        ----------
        numbers : (m,) int64
            Rows of the sessions in the roster; `make` returned True for each.

        Returns
        -------
        tuple of (m,) int64
            Offsets of the first bytes, and sizes of SIP and scans together, bytes. They
            hold until the next call of `make`, which may move the reports.
        """
        return self._rows[numbers, k.AT], self._rows[numbers, k.SIZE]

    def view(self, number: int) -> memoryview:
        """Return the bytes of a session's encoded report without a copy.

        Parameters
        ----------
        number : int
            Row of the session in the roster.

        Returns
        -------
        memoryview
            Bytes of SIP and scans together, valid until the next call of `make`.
        """
        row = self._rows[number].tolist()
        return self._buffer.data[row[k.AT] : row[k.AT] + row[k.SIZE]]

    def made(self, number: int) -> Made:
        """Return the encoded report of a session.

        Parameters
        ----------
        number : int
            Row of the session in the roster.

        Returns
        -------
        Made
            Copies of the bytes, which the next report does not change.
        """
        report, size = self.view(number), int(self._rows[number, k.SIP_SIZE])
        return Made(report[:size].tobytes(), report[size:].tobytes())

    def make(self, numbers: I8) -> B1:
        """Make the reports of the sessions in these rows, (m,).

        Parameters
        ----------
        numbers : (m,) int64
            Rows of the sessions in the roster, all with robots of one simulation.

        Returns
        -------
        (m,) bool
            False for a session that must build its own report.
        """
        sessions = self._roster.sessions
        # A session may have ended since its row was found.
        first = next(filter(None, (sessions[i] for i in numbers.tolist())), None)
        if first is None:
            return np.zeros(len(numbers), np.bool_)
        fleet = first.port.fleet
        # With rounded readings, the arrays do not hold the values that each robot
        # reports.
        if not fleet.is_exact:
            return np.zeros(len(numbers), np.bool_)

        work = self._find_work(numbers, fleet)
        if not work & k.NOT_PLAIN:
            return self._make_plain(numbers, fleet, work)

        made: B1 = (self._roster.flags[numbers] & (PLAIN | SILENT)) == PLAIN
        if made.any():
            made[made] = self._make_plain(numbers[made], fleet, work)
        return made

    def _find_work(self, numbers: I8, fleet: Fleet) -> int:
        """Return the kinds of work that these sessions need before their reports are written.

        If the fleet's size or layout has changed, the arrays of this object are adapted
        first.

        Returns
        -------
        int
            Union of `NOT_PLAIN`, `CHANGED` and `TOUCHED`; see `find_stale`.
        """
        if self._capacity < self._roster.capacity:
            self._grow(self._roster.capacity)
        if fleet is not self._fleet or fleet.layout != self._layout:
            self._fleet, self._layout = fleet, fleet.layout
            keys, self._spans = fleet.placed
            self._numbers = {key: i for i, key in enumerate(keys)}
            # −1 makes each session look up its robot and sensors when it reports next,
            # instead of all sessions now.
            self._built[:, k.BOARD_INDEX] = -1

        return k.find_stale(
            numbers,
            self._roster.flags,
            self._rows,
            self._built,
            self._roster.versions,
            *fleet.boards,
            fleet.placements,
            fleet.state.contact,
        )

    def _make_plain(self, numbers: I8, fleet: Fleet, work: int) -> B1:
        """Make the reports of plain sessions; return which were made, (m,) bool.

        Parameters
        ----------
        numbers : (m,) int64
            Rows of plain sessions (`PLAIN` and not `SILENT`).
        fleet : Fleet
            State and readings of all robots after the step.
        work : int
            Result of `_find_work` for these sessions or more.
        """
        made = self._write(numbers, fleet, work)
        if not made.all():
            # Robots were added or removed since the step. Measure all sensors in one
            # call, which costs less than a call for each session.
            fleet.refresh()
            left = numbers[~made]
            made[~made] = self._write(left, fleet, self._find_work(left, fleet))
        return made

    def _write(self, numbers: I8, fleet: Fleet, work: int) -> B1:
        """Write reports with the kernel; return which were written, (m,) bool.

        Parameters
        ----------
        numbers, fleet, work
            See `_make_plain`.
        """
        if work & k.CHANGED:
            self._arrange(numbers, fleet)
        has_contacts = work & (k.CHANGED | k.TOUCHED)
        bumped = self._bump(numbers, fleet) if has_contacts else None

        state, (ranges, returns) = fleet.state, fleet.readings
        made: B1 = np.zeros(len(numbers), np.bool_)
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
        # Clear the contact bits now, so that the next period must only set them for
        # robots with contacts.
        if bumped is not None:
            self._rows[bumped, k.BITS] = 0

        return made

    def _bump(self, numbers: I8, fleet: Fleet) -> I8:
        """Write the contact bits into the reports of robots with contacts; return their rows.

        Few robots have contacts at a time, so these are handled one by one.

        Parameters
        ----------
        numbers : (m,) int64
            Rows of the sessions.
        fleet : Fleet
            State with the contacts of all bodies.

        Returns
        -------
        (k,) int64
            Rows whose bits must be cleared after the report, because the contacts may
            have changed at the next one.
        """
        rows = self._rows
        # A robot without devices has no contact sensors, so contacts do not change its
        # report.
        some: I8 = numbers[self._built[numbers, k.HAS_DEVICES] != 0]
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
        """Build the constant parts of new and changed reports.

        Parameters
        ----------
        numbers : (m,) int64
            Rows of the sessions that are reported now; other rows keep older parts.
        fleet : Fleet
            State of all robots. If its `layout` has changed, the readings of sensors
            are at other places.
        """
        built, (versions, buttons) = self._built, fleet.boards
        # Reports contain the joystick's first button, which changes without a new
        # version.
        boards = 2 * versions + buttons[:, 0]
        for i in numbers[built[numbers, k.BOARD_INDEX] < 0].tolist():
            self._place(i, fleet)

        now = np.stack(
            [self._roster.versions[numbers], boards[built[numbers, k.BOARD_INDEX]]],
            axis=1,
        )
        then = built[numbers][:, [k.SESSION_VERSION, k.BOARD_VERSION]]
        for i in numbers[(now != then).any(axis=1)].tolist():
            if self._shape(i, fleet):
                self._place(i, fleet)
                built[i, k.SESSION_VERSION] = self._roster.versions[i]
                built[i, k.BOARD_VERSION] = boards[built[i, k.BOARD_INDEX]]

        for i in numbers[built[numbers, k.PLACEMENTS] != fleet.placements].tolist():
            self._mark_moved(i, fleet)

    def _shape(self, i: int, fleet: Fleet) -> bool:
        """Build the report of a session, and store where the kernel must write its fields.

        Return False if the kernel cannot make the report now.
        """
        session = self._session(i)
        port = session.port
        p, ring = port.spec.pioneer, port.spec.sonar

        count = len(ring.transducers) if ring is not None and session.sonar_on else 0
        sip = build_sip(port, port.state(), sonar_on=session.sonar_on).encode()

        data, row, scans = sip, self._rows[i], self._scans[i]
        # If this function returns early, the size remains 0, which marks a report that
        # the kernel cannot make.
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
        # The offsets of packets were relative to the report; add the report's offset in
        # the buffer.
        scans[:, k.PACKETS] += row[k.AT]

        self._units[i] = (
            p.dist_conv,
            p.angle_conv,
            p.vel_conv,
            p.diff_conv,
            1000.0 / p.range_conv,
        )
        # −1 makes the next call read the flag "moved" of all scans again.
        self._built[i, k.PLACEMENTS] = -1
        return True

    def _place(self, i: int, fleet: Fleet) -> None:
        """Store the rows and offsets of a session's robot and sensors in the engine's arrays."""
        session, row = self._session(i), self._rows[i]
        name, spans = session.port.name, self._spans
        self._built[i, k.BOARD_INDEX] = fleet.board_of(name)
        self._built[i, k.HAS_DEVICES] = bool(session.port.spec.devices)

        row[k.BODY] = fleet.rows[name]
        if row[k.RING_COUNT]:
            row[k.RING] = self._numbers[name, "sonar", 0]
            row[k.RING_AT] = spans[row[k.RING]][0]

        lasers = [laser for laser in session.lasers if laser.mode]
        for scan, laser in zip(self._scans[i], lasers, strict=False):
            if scan[k.LENGTH]:
                scan[k.DEVICE] = number = self._numbers[name, "laser", laser.index]
                scan[k.FIRST], end = spans[number]
                # The beams of the laser have changed without a command of the client.
                if end - spans[number][0] != scan[k.LENGTH]:
                    self._built[i, [k.SESSION_VERSION, k.BOARD_VERSION]] = -1

    def _mark_moved(self, i: int, fleet: Fleet) -> None:
        """Set the flag "robot was moved" in the scans of a session after a teleport."""
        lasers = [laser for laser in self._session(i).lasers if laser.mode]
        has_moved = False
        for scan, laser in zip(self._scans[i], lasers, strict=False):
            scan[k.MOVED] = moved = laser.take_moved()
            has_moved |= moved
        # −1 lets the next scan clear a flag that is set now.
        self._built[i, k.PLACEMENTS] = -1 if has_moved else fleet.placements

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
        """Copy the reports in use to a buffer with room for more.

        Reports change their size with the client's settings, which leaves gaps in the
        old buffer.

        Parameters
        ----------
        more : int
            Bytes of the report that is stored next.
        """
        rows = self._rows
        # Drop reports of rows without a session, so that the next session in the row
        # does not get them.
        free = [i for i, one in enumerate(self._roster.sessions) if one is None]
        rows[free, k.SIZE] = 0
        used = np.flatnonzero(rows[:, k.SIZE]).tolist()
        total = int(rows[:, k.SIZE].sum()) + more
        # The buffer is twice as long as needed, so that packing is rare.
        new: Bytes = np.zeros(max(2 * total, BUFFER), np.uint8)
        end = 0
        for i in used:
            at, size = int(rows[i, k.AT]), int(rows[i, k.SIZE])
            new[end : end + size] = self._buffer[at : at + size]
            rows[i, k.AT] = end
            # Offsets of packets move together with their report.
            self._scans[i, :, k.PACKETS] += end - at
            end += size

        self._buffer, self._end = new, end

    def _grow(self, capacity: int) -> None:
        more = capacity - self._capacity
        for name, fill in (
            ("_rows", 0),
            ("_scans", 0),
            ("_units", 1),
            ("_built", -1),
        ):
            old = getattr(self, name)
            new = np.full((more, *old.shape[1:]), fill, old.dtype)
            setattr(self, name, np.concatenate([old, new]))
        self._capacity = capacity


@lru_cache(maxsize=256)
def sweep(count: int, mode: int, device: int) -> bytes:
    """Return the packets of a scan with all readings at 0.

    Parameters
    ----------
    count : int
        Readings of the scan.
    mode : int
        Kind of packets: 1 for type 0x60, any other for type 0x61 (§7).
    device : int
        Index of the laser, which only type 0x61 contains.

    Returns
    -------
    bytes
        Concatenated packets of at most 32 readings each.
    """
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
