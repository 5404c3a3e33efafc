"""Batched building of the reports of many sessions with array operations.

Reports are SIP and laser packets, with checksums. Only pose, speeds, flags and ranges
change in every period. Each session's packets are therefore built once with
`reportbuilder`, and kept as rows of a byte array. In every period only the changing
columns are written, for all rows at once. The bytes equal the output of
`reportbuilder`, which serves single sessions and robots that cannot be batched
(`Session.is_plain`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.model.robotport import Fleet
from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.laserstate import LaserState
from botyard.protocols.pioneer.packet import HEADER
from botyard.protocols.pioneer.reportbuilder import (
    DEVICE_BITS,
    STALL_BITS,
    build_sip,
    is_stalled_by,
)
from botyard.protocols.pioneer.reports import READINGS_PER_PACKET, LaserPart
from botyard.protocols.pioneer.session import Session
from botyard.units import deg, mm

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

Bytes2D = NDArray[np.uint8]

MIN_BATCH: Final = 3
"""Number of sessions from which batching is faster."""
_HEAD: Final = len(HEADER) + 2
"""Offset of the data after header, length and packet type."""
_DEGREES: Final = deg(1.0)
_MM: Final = mm(1.0)

# Offsets of fields in the data of a SIP (pioneer-protocol §5).
_X, _Y, _TH, _LEFT, _RIGHT, _STALL, _FLAGS, _COUNT = 0, 2, 4, 6, 8, 11, 15, 18
_ROT_VEL_BEHIND, _LAT_VEL_BEHIND = 8, 12
"""Offsets of fields after the sonar readings."""


class Made(NamedTuple):
    """Output of one session in one period: its SIP and its laser packets."""

    sip: bytes
    scans: bytes


class Batch:
    """Builds the reports of sessions of one simulation.

    Arrays are reused between periods while only values change.
    """

    def __init__(self) -> None:
        self._key: tuple[Hashable, ...] = ()
        self._sips: list[_Sips] = []
        self._scans: list[_Scans] = []

    def make(self, sessions: Sequence[Session]) -> list[Made | None]:
        """Return the output of each session; None to build its own."""
        out: list[Made | None] = [None] * len(sessions)
        plain = [i for i, s in enumerate(sessions) if s.is_plain]
        # For few sessions the array operations cost more than they save.
        if len(plain) < MIN_BATCH:
            return out
        fleet = sessions[plain[0]].port.fleet
        # Rounded readings differ from robot to robot, so they cannot be taken from the
        # arrays.
        if not fleet.is_exact:
            return out
        if not self._is_ready([sessions[i] for i in plain], fleet):
            # Robots were added or removed since the step: one measurement for all costs
            # less than one for each.
            fleet.refresh()
            if not self._is_ready([sessions[i] for i in plain], fleet):
                return out

        sips, scans = [b""] * len(plain), [b""] * len(plain)
        for group in self._sips:
            for n, sip in group.make(fleet):
                sips[n] = sip

        for sweeps in self._scans:
            for n, packets in sweeps.make(fleet):
                scans[n] += packets

        for i, sip, packets in zip(plain, sips, scans, strict=True):
            out[i] = Made(sip, packets)
        return out

    def _is_ready(self, sessions: Sequence[Session], fleet: Fleet) -> bool:
        """Prepare the arrays; return whether the needed readings were taken."""
        # The arrays keep references to their sessions, so ids are not reused.
        key = (fleet.layout, *((id(s), s.report_version) for s in sessions))
        if key == self._key:
            return all(g.is_current(fleet) for g in self._sips) and all(
                g.is_current(fleet) for g in self._scans
            )

        # Cleared first, so that an error below leaves no half-built arrays in use.
        self._key = ()
        if not self._arrange(sessions, fleet):
            return False
        self._key = key
        return True

    def _arrange(self, sessions: Sequence[Session], fleet: Fleet) -> bool:
        """Rebuild the arrays; return whether the needed readings were taken."""
        sips: dict[int, list[int]] = {}
        lasers: dict[tuple[int, int, int, bool], list[tuple[int, LaserState, int]]] = {}
        places = {key: i for i, key in enumerate(fleet.placed[0])}
        for n, session in enumerate(sessions):
            ring = session.port.spec.sonar
            count = (
                len(ring.transducers) if ring is not None and session.sonar_on else 0
            )
            if count and fleet.span(session.port.name, "sonar", 0) is None:
                return False
            sips.setdefault(count, []).append(n)
            for laser in session.lasers:
                if laser.mode:
                    span = fleet.span(session.port.name, "laser", laser.index)
                    if span is None:
                        return False
                    shape = (span[1] - span[0], laser.mode, laser.index, laser.reverse)
                    lasers.setdefault(shape, []).append((n, laser, span[0]))

        self._sips = [
            _Sips(fleet, places, count, [(n, sessions[n]) for n in members])
            for count, members in sips.items()
        ]
        # Sorted by index, so that a robot's lasers follow each other in their order.
        shapes = sorted(lasers.items(), key=lambda item: item[0][2])
        self._scans = [
            _Scans(fleet, places, *shape, members)
            for shape, members in shapes
            if shape[0]
        ]
        return True


def _put_words(rows: Bytes2D, at: int, values: NDArray[np.int64]) -> None:
    """Write 16-bit integers, low byte first, into two columns."""
    rows[:, at] = values & 0xFF
    rows[:, at + 1] = values >> 8 & 0xFF


def _round(values: F8, low: int, high: int) -> NDArray[np.int64]:
    """Return nearest integers within limits, as `units.to_int_saturated`; NaN gives 0."""
    limited = np.clip(np.rint(np.nan_to_num(values, nan=0.0)), low, high)
    whole: NDArray[np.int64] = limited.astype(np.int64)
    return whole


def _words(values: F8) -> Bytes2D:
    """Return nearest unsigned 16-bit integers as bytes, low byte first.

    The last axis is twice as long. The result equals `_round`: the maximum of NaN and 0
    is 0.
    """
    limited = np.rint(np.fmin(np.fmax(values, 0.0), 65535.0))
    return limited.astype("<u2").view(np.uint8)


def _i16(values: F8) -> NDArray[np.int64]:
    return _round(values, -0x8000, 0x7FFF)


def _wrapped(values: F8) -> NDArray[np.int64]:
    """Truncate towards zero, modulo 2¹⁶, as `units.to_int_wrapped` does."""
    whole: NDArray[np.int64] = np.where(
        np.abs(values) < 9e18, np.trunc(np.nan_to_num(values)), 0.0
    ).astype(np.int64)
    return whole & 0xFFFF


def _checksums(packets: Bytes2D | NDArray[np.uint8]) -> None:
    """Write the checksums of packets; bytes are the last axis.

    Pairs of bytes are added as 16-bit numbers, whose sum wraps around by itself.
    """
    payload = packets[..., 3:-2]
    even = payload.shape[-1] & ~1
    pairs = np.ascontiguousarray(payload[..., :even]).view(np.uint16)
    # The pairs of the protocol are big-endian.
    if sys.byteorder == "little":
        pairs = pairs.byteswap()
    total = np.add.reduce(pairs, axis=-1, dtype=np.uint16)
    if even < payload.shape[-1]:
        total ^= payload[..., -1]
    packets[..., -2] = total >> 8
    packets[..., -1] = total & 0xFF


def _first_sip(session: Session) -> bytes:
    """Return a session's SIP with its constant parts, cached by `report_version`."""
    version = session.report_version
    if session.kept_sip is None or session.kept_sip[0] != version:
        sip = build_sip(
            session.port, session.port.state(), sonar_on=session.sonar_on
        ).encode()
        session.kept_sip = version, sip

    return session.kept_sip[1]


@lru_cache(maxsize=256)
def _sweep(count: int, mode: int, device: int) -> tuple[bytes, tuple[_Run, ...]]:
    """Return the packets of a scan, and the offsets of the readings."""
    kind, size, before = (P.LASER1, 2, 6) if mode == 1 else (P.LASER2, 5, 0)
    sweep = b""
    runs = []
    for first in range(0, count, READINGS_PER_PACKET):
        n = min(READINGS_PER_PACKET, count - first)
        part = LaserPart(
            total=count,
            first=first,
            ranges_mm=[0] * n,
            reflectance=[0] * n,
            device=device,
        )
        runs.append(_Run(first, n, len(sweep) + _HEAD + before + 5, size))
        sweep += part.encode(kind)

    return sweep, tuple(runs)


class _Run(NamedTuple):
    """Readings of one packet.

    They are `n` readings of a scan from index `first`, at offset `at` with a stride of
    `size` bytes.
    """

    first: int
    n: int
    at: int
    size: int

    def put(self, values: Bytes2D, step: int, offset: int, out: Bytes2D) -> None:
        """Write a byte for each reading to `out`, at `offset` within a reading.

        `values` has one byte every `step` bytes.
        """
        first, last = step * self.first, step * (self.first + self.n)
        out[:, self.at + offset : self.at + self.size * self.n : self.size] = values[
            :, first:last:step
        ]


class _Sips:
    """SIPs with the same number of sonar readings."""

    def __init__(
        self,
        fleet: Fleet,
        places: Mapping[Hashable, int],
        count: int,
        members: list[tuple[int, Session]],
    ) -> None:
        sessions = [s for _, s in members]
        specs = [s.port.spec for s in sessions]
        self._places = [n for n, _ in members]
        self._sessions = sessions
        self._rows: I8 = np.array([fleet.rows[s.port.name] for s in sessions], np.int64)
        first = [_first_sip(s) for s in sessions]
        self._bytes: Bytes2D = (
            np.frombuffer(b"".join(first), np.uint8).reshape(len(sessions), -1).copy()
        )
        at = _HEAD + _FLAGS
        flags = (
            self._bytes[:, at].astype(np.int64)
            | self._bytes[:, at + 1].astype(np.int64) << 8
        )
        # Bit 0 is the state of the motors, which is written in every period.
        self._flags = flags & ~1

        def column(values: list[float]) -> F8:
            return np.array(values, np.float64)

        self._dist = column([p.pioneer.dist_conv for p in specs])
        self._angle = column([p.pioneer.angle_conv for p in specs])
        self._vel = column([p.pioneer.vel_conv for p in specs])
        self._diff = column([p.pioneer.diff_conv for p in specs])
        self._count = count
        devices = [places[s.port.name, "sonar", 0] for s in sessions] if count else []
        self._devices: I8 = np.array(devices, np.int64)
        spans = fleet.placed[1]
        starts = np.array([spans[d][0] for d in devices], np.int64).reshape(-1, 1)
        self._readings = (
            starts + np.arange(count)
            if count
            else np.zeros((len(sessions), 0), np.int64)
        )
        self._scale = column([1000.0 / p.pioneer.range_conv for p in specs]).reshape(
            -1, 1
        )
        self._tail = _HEAD + _COUNT + 1 + 3 * count

    def is_current(self, fleet: Fleet) -> bool:
        """Return whether the readings were taken in this step."""
        return bool(fleet.taken[self._devices].all())

    def make(self, fleet: Fleet) -> list[tuple[int, bytes]]:
        """Return index of the session, and bytes, of each SIP."""
        state, rows, out = fleet.state, self._rows, self._bytes
        odom, vel = state.odom[rows], state.vel[rows]
        _put_words(out, _HEAD + _X, _wrapped(odom[:, 0] * _MM / self._dist))
        _put_words(out, _HEAD + _Y, _wrapped(odom[:, 1] * _MM / self._dist))
        _put_words(out, _HEAD + _TH, _i16(odom[:, 2] / self._angle))
        forward, turn = vel[:, 0] * _MM, vel[:, 2] / self._diff
        _put_words(out, _HEAD + _LEFT, _i16((forward - turn) / self._vel))
        _put_words(out, _HEAD + _RIGHT, _i16((forward + turn) / self._vel))
        motors = state.motors[rows].astype(np.int64)
        _put_words(out, _HEAD + _FLAGS, self._flags | motors)
        _put_words(out, _HEAD + _STALL, self._stalls(fleet))
        if self._count:
            ranges = _words(fleet.readings[0].take(self._readings) * self._scale)
            first, last = _HEAD + _COUNT + 1, self._tail
            out[:, first + 1 : last : 3] = ranges[:, 0::2]
            out[:, first + 2 : last : 3] = ranges[:, 1::2]

        _put_words(out, self._tail + _ROT_VEL_BEHIND, _i16(vel[:, 2] * _DEGREES * 10.0))
        _put_words(out, self._tail + _LAT_VEL_BEHIND, _i16(vel[:, 1] * _MM))
        _checksums(out)
        # A session needs the state of the motors to warn about ignored commands.
        for session, on in zip(self._sessions, motors.tolist(), strict=True):
            session.motors_on = bool(on)
        return [(n, row.tobytes()) for n, row in zip(self._places, out, strict=True)]

    def _stalls(self, fleet: Fleet) -> NDArray[np.int64]:
        """Return stall and bumper bits.

        Few robots have contacts at a time, so these are handled one by one.
        """
        state = fleet.state
        bits = state.stall[self._rows].astype(np.int64) * STALL_BITS
        for i in np.flatnonzero(state.contact[self._rows]).tolist():
            session = self._sessions[i]
            more = session.port.report_bits().get("stall_bumpers", 0)
            if is_stalled_by(more, session.bumpstall):
                bits[i] |= STALL_BITS
            bits[i] |= more & DEVICE_BITS["stall_bumpers"]

        return bits


class _Scans:
    """Laser scans of one length, kind of packet and order, of lasers with one index."""

    def __init__(
        self,
        fleet: Fleet,
        places: Mapping[Hashable, int],
        count: int,
        mode: int,
        device: int,
        reverse: bool,
        members: list[tuple[int, LaserState, int]],
    ) -> None:
        self._places = [n for n, _, _ in members]
        self._lasers = [laser for _, laser, _ in members]
        self._rows: I8 = np.array(
            [fleet.rows[laser.port.name] for laser in self._lasers], np.int64
        )
        self._devices: I8 = np.array(
            [places[laser.port.name, "laser", device] for laser in self._lasers],
            np.int64,
        )
        self._mode = mode
        order = np.arange(count)[::-1] if reverse else np.arange(count)
        self._readings = (
            np.array([first for _, _, first in members], np.int64).reshape(-1, 1)
            + order
        )
        sweep, self._runs = _sweep(count, mode, device)
        self._bytes: Bytes2D = np.tile(
            np.frombuffer(sweep, np.uint8), (len(members), 1)
        )
        # Full packets as (session, packet, byte), and the last one, which may be
        # shorter, as (session, byte): views of the same bytes.
        full = len(self._runs) - 1
        length = self._runs[1].at - self._runs[0].at if full else 0
        self._parts: list[NDArray[np.uint8]] = (
            [self._bytes[:, full * length :]]
            if full == 0
            else [
                self._bytes[:, : full * length].reshape(len(members), full, length),
                self._bytes[:, full * length :],
            ]
        )

    def is_current(self, fleet: Fleet) -> bool:
        """Return whether all these scans were taken in this step."""
        return bool(fleet.taken[self._devices].all())

    def make(self, fleet: Fleet) -> list[tuple[int, bytes]]:
        """Return index of the session, and bytes, of each sweep."""
        ranges, returns = fleet.readings
        out, runs = self._bytes, self._runs
        words = _words(ranges.take(self._readings) * 1000.0)
        for run in runs:
            run.put(words, 2, 0, out)
            run.put(words[:, 1:], 2, 1, out)

        moved = np.array([laser.take_moved() for laser in self._lasers], np.uint8)
        if self._mode == 1:
            odom = fleet.state.odom[self._rows]
            pose = (
                _i16(odom[:, 0] * _MM),
                _i16(odom[:, 1] * _MM),
                _i16(odom[:, 2] * _DEGREES),
            )
            for part in self._parts:
                for k, values in enumerate(pose):
                    column = values if part.ndim == 2 else values[:, None]
                    part[..., _HEAD + 2 * k] = column & 0xFF
                    part[..., _HEAD + 2 * k + 1] = column >> 8 & 0xFF
        else:
            bright = returns.take(self._readings)
            marks = np.where(bright > 1, np.minimum(bright - 1, 255), 0).astype(
                np.uint8
            )
            for run in runs:
                run.put(marks, 1, 2, out)
            for part in self._parts:
                part[..., -3] = moved if part.ndim == 2 else moved[:, None]

        for part in self._parts:
            _checksums(part)
        return [(n, row.tobytes()) for n, row in zip(self._places, out, strict=True)]


assert math.isclose(_DEGREES, 180.0 / math.pi)
