"""Beams of range sensors as the arrays that kernels take (`Fans`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.devices.rangetable import Ranges
from botyard.engine.kernels.beams import MIN_COMPONENT, SECTORS, Beams, Fans
from botyard.engine.kernels.strides import LANE_FIELDS, LANES
from botyard.engine.kernels.wallspans import WALLS_AT_ONCE
from botyard.engine.layout import F8, I2, I8, WALL_LANES
from botyard.model.beams import PLAIN_OPTICS, Bundle, Optics
from botyard.model.obstacles import Visible
from botyard.numerics import elementwise
from botyard.numerics.elementary import cos, hypot

MAX_SHARED_BEAMS: Final = 2000
"""Largest number of beams of a device that shares cached arrays with equal devices."""


def shape_arrays(kinds: Sequence[BeamSet]) -> dict[str, NDArray[Any]]:
    """Return the fields of `Fans` that describe sets of beams, without data of single devices.

    Parameters
    ----------
    kinds : sequence of BeamSet
        Sets of beams; their order gives their numbers.

    Returns
    -------
    dict of str to array
        Fields by name, except fields with one number for each device.
    """
    columns = _joined(np.float64, [k.columns for k in kinds], len(_COLUMNS))
    counts = _joined(np.int64, [k.counts for k in kinds])
    beams = _joined(np.float64, [k.beams for k in kinds], 4)
    return {
        "first": bounds([len(k.counts) for k in kinds]),
        "offset": np.array([k.offset for k in kinds], np.float64),
        "mount": _joined(np.float64, [k.mount for k in kinds], 3),
        "beam_first": bounds(counts),
        **{
            name: np.ascontiguousarray(columns[:, k]) for k, name in enumerate(_COLUMNS)
        },
        "bright_as": _joined(np.int16, [k.bright_as for k in kinds]),
        "readings": bounds(_joined(np.int64, [k.readings for k in kinds])),
        "beam_x": np.ascontiguousarray(beams[:, 0]),
        "beam_y": np.ascontiguousarray(beams[:, 1]),
        "beam_cos": np.ascontiguousarray(beams[:, 2]),
        "beam_sin": np.ascontiguousarray(beams[:, 3]),
        "beam_sector": _joined(np.int64, [k.sector for k in kinds]),
    }


def fans_from(table: Ranges, offsets: I8, shapes: Mapping[str, NDArray[Any]]) -> Fans:
    """Return the arrays that kernels take for the devices of a table.

    Parameters
    ----------
    table : Ranges
        All devices. Columns are taken, not copied.
    offsets : (n + 1,) int64
        Offsets of the devices' readings.
    shapes : mapping of str to array
        Result of `shape_arrays`.
    """
    return Fans(
        row=table.body,
        key=table.stream,
        mask=table.senses,
        kind=table.kind,
        out=offsets[:-1],
        **shapes,
    )


class Fan(NamedTuple):
    """Range device as `fans_of` takes it.

    Attributes
    ----------
    row : int
        Row of the body that carries the device.
    stream : int
        Number of the device in the body's random streams.
    senses : Visible
        Classes of walls and bodies that the device detects.
    out : int
        Index of the device's first reading in the output.
    bundles : tuple of Bundle
        Beams in the frame of the body.
    """

    row: int
    stream: int
    senses: Visible
    out: int
    bundles: tuple[Bundle, ...]


def fans_of(devices: Sequence[Fan]) -> Fans:
    """Return the arrays that kernels take, with a separate kind for each device.

    Limits and errors of each device can then be written separately.

    Parameters
    ----------
    devices : sequence of Fan
        Devices; their order gives their numbers.
    """
    return Fans(
        row=np.array([d.row for d in devices], np.int64),
        key=np.array([d.stream for d in devices], np.uint64),
        mask=np.array([int(d.senses) for d in devices], np.uint16),
        kind=np.arange(len(devices)),
        out=np.array([d.out for d in devices], np.int64),
        **shape_arrays([_beams(d.bundles) for d in devices]),
    )


def workspace(*several: Fans) -> Beams:
    """Return a workspace for the device with the most beams.

    Parameters
    ----------
    *several : Fans
        Sets of devices that one thread computes, at least one.
    """
    bundles = max(int(np.diff(fans.first).max(initial=0)) for fans in several)
    beams = WALL_LANES + max(
        int(np.diff(fans.beam_first[fans.first]).max(initial=0)) for fans in several
    )
    return Beams(
        org_x=np.zeros(beams),
        org_y=np.zeros(beams),
        dir_x=np.zeros(beams),
        dir_y=np.zeros(beams),
        raw=np.zeros(beams),
        bright=np.zeros(beams, np.int16),
        cosine=np.zeros(beams),
        ahead=np.zeros(beams),
        spans=np.zeros((3, WALLS_AT_ONCE)),
        lanes=np.zeros(LANE_FIELDS * LANES),
        waiting=np.zeros(LANES, np.int32),
        reach=np.zeros((bundles, SECTORS)),
    )


_COLUMNS: Final = (
    "angle0",
    "step",
    "r_min",
    "r_max",
    "r_noise",
    "a_noise",
    "r_std",
    "r_share",
    "missing",
    "bright_range",
    "bright_cos",
)
"""Names of the fields of `Fans` with one number per bundle of beams."""


@dataclass(frozen=True, slots=True, eq=False)
class BeamSet:
    """Part of the fields of `Fans` for one device, without offsets.

    Devices with the same beams share it.

    Attributes
    ----------
    counts, readings : (b,) int64
        Number of beams, and of readings, of each bundle.
    offset : float
        Distance of the farthest origin of a beam from the origin of the body, m.
    mount : (b, 3) float64
        Origin and direction of each bundle: m, m, rad.
    columns : (b, c) float64
        Limits and errors, in the order of `_COLUMNS`.
    bright_as : (b,) int16
        Reported value of a plain reflector.
    beams : (n, 4) float64
        Origin, m, and cosine and sine of the direction of each beam.
    sector : (n,) int64
        `sector_of` each beam's direction.
    optics : (b, 6) float64
        Timing and optics of each bundle, as in `kernels.lidar.Lidars`.
    is_lidar : bool
        Whether a bundle has other optics than `PLAIN_OPTICS`.
    """

    counts: I8
    readings: I8
    offset: float
    mount: F8
    columns: F8
    bright_as: I2
    beams: F8
    sector: I8
    optics: F8
    is_lidar: bool


def _beams(bundles: tuple[Bundle, ...]) -> BeamSet:
    """Return the set of beams of a device, computed from its bundles.

    Parameters
    ----------
    bundles : tuple of Bundle
        Beams of the device in the frame of its body.
    """
    numbers = [
        (
            b.angle0,
            b.step,
            b.r_min,
            b.r_max,
            b.r_noise,
            b.a_noise,
            b.r_std,
            b.r_share,
            b.missing,
            b.reflector.max_range,
            # Beyond 90° the cosine would admit surfaces seen from behind.
            cos(min(b.reflector.max_incidence, math.pi / 2)),
        )
        for b in bundles
    ]
    beams = [
        np.column_stack(
            [
                np.full(b.count, b.mount.x),
                np.full(b.count, b.mount.y),
                *elementwise.cosine_sine(at),
            ]
        )
        for b in bundles
        for at in [b.mount.th + b.angle0 + b.step * np.arange(b.count)]
    ]
    joined = _joined(np.float64, beams, 4)

    return BeamSet(
        counts=np.array([b.count for b in bundles], np.int64),
        readings=np.array([b.n_readings for b in bundles], np.int64),
        # Bounds the search for bodies around the carrier's origin.
        offset=max((hypot(b.mount.x, b.mount.y) for b in bundles), default=0.0),
        # `reshape` gives devices without bundles a valid shape.
        mount=np.array([b.mount for b in bundles], np.float64).reshape(-1, 3),
        columns=np.array(numbers, np.float64).reshape(-1, len(_COLUMNS)),
        bright_as=np.array([b.reflector.strength for b in bundles], np.int16),
        beams=joined,
        sector=_sectors(joined[:, 2], joined[:, 3]),
        optics=np.array(
            [
                (
                    o.pace,
                    o.white_range,
                    o.intensity,
                    o.echoes,
                    # The cosine of 90° is not exactly 0.
                    cos(o.max_incidence) if o.max_incidence < math.pi / 2 else 0.0,
                    o.errs,
                )
                for o in (b.optics for b in bundles)
            ],
            np.float64,
        ).reshape(-1, len(fields(Optics))),
        is_lidar=any(b.optics != PLAIN_OPTICS for b in bundles),
    )


_known = lru_cache(maxsize=256)(_beams)


def beam_set(bundles: tuple[Bundle, ...]) -> BeamSet:
    """Return the set of beams of a device; devices with equal beams share it.

    Parameters
    ----------
    bundles : tuple of Bundle
        Beams of the device in the frame of its body.
    """
    # Only sets of ordinary size are cached, because clients choose their size.
    is_shared = sum(b.count for b in bundles) <= MAX_SHARED_BEAMS
    return _known(bundles) if is_shared else _beams(bundles)


def _sectors(x: F8, y: F8) -> I8:
    """Return the sectors of many directions at once, as `sector_of` does.

    Parameters
    ----------
    x, y : (n,) float64
        Components of the directions.

    Returns
    -------
    (n,) int64
        Numbers of sectors.
    """
    ax, ay = np.abs(x), np.abs(y)
    # The same arithmetic as `sector_of`: both must agree on borders.
    part = ay / np.maximum(ax + ay, MIN_COMPONENT)
    part = np.where(x < 0.0, 2.0 - part, part)
    part = np.where(y < 0.0, 4.0 - part, part)
    sectors: I8 = np.minimum((part * (0.25 * SECTORS)).astype(np.int64), SECTORS - 1)
    return sectors


def bounds(sizes: Sequence[int] | I8) -> I8:
    """Return offsets of consecutive parts of these sizes, (n + 1,).

    Parameters
    ----------
    sizes : (n,) int64
        Number of elements of each part.
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(
    kind: type[Any], arrays: Sequence[NDArray[Any]], width: int = 0
) -> NDArray[Any]:
    """Concatenate arrays of `width` columns; the result has no rows if there are no arrays.

    `width` is their number of columns, needed if there are no arrays.
    """
    return np.concatenate([np.zeros((0, width) if width else 0, kind), *arrays])


__all__ = [
    "BeamSet",
    "Fan",
    "beam_set",
    "bounds",
    "fans_from",
    "fans_of",
    "shape_arrays",
    "workspace",
]
