"""Table of range devices: one row for each laser and each sonar ring."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from botyard.engine.layout import F8, I8, U2, U8
from botyard.engine.rings import RingTable
from botyard.engine.tables import Column, Row
from botyard.model.beams import Bundle


class Ranges(RingTable):
    """Range devices of all bodies.

    For a device with a delay, a ring buffer holds the available reading and later ones: ranges, m,
    and laser returns.

    Attributes
    ----------
    stream : (n,) uint64
        Number of the device in the body's random streams.
    senses : (n,) uint16
        `Visible` classes that each device detects.
    kind : (n,) int64
        Index of the device's set of beams among the sets in use.
    size : (n,) int64
        Number of the device's readings.
    readers : (n,) int64
        Number of the device's subscribers.
    delay : (n, 3) float64
        `LATENCY`, `JITTER` and `RATE` of its readings; zeros if they have no effect.
    """

    name = "range"
    columns: ClassVar = {
        **RingTable.columns,
        "stream": Column(np.uint64, saved=False),
        "senses": Column(np.uint16, saved=False),
        "kind": Column(np.int64, saved=False),
        "size": Column(np.int64, saved=False),
        "readers": Column(np.int64, saved=False),
        "delay": Column(np.float64, 3, saved=False),
    }
    marks_type = np.int16
    stream: U8
    senses: U2
    kind: I8
    size: I8
    readers: I8
    delay: F8

    def __init__(self) -> None:
        super().__init__()
        self.gone: list[Hashable] = []
        """Keys of devices of removed bodies, until `RangeDevices.rebuild` drops them."""


class RangeDevice(Row[Ranges]):
    """Row of one range device: its key, its beams, and its subscribers.

    Parameters
    ----------
    table : Ranges
        Table of all range devices.
    body : int
        Row of the body that carries it.
    key : hashable
        Identity of the device.
    """

    def __init__(self, table: Ranges, body: int, key: Hashable) -> None:
        self.reading_count = 0
        """Number of readings of the device."""
        self.bundles: tuple[Bundle, ...] = ()
        self.readers: set[Hashable] = set()
        super().__init__(table, body, key)

    def detach(self) -> None:
        """Put the key of the device into `Ranges.gone`, because its body was removed."""
        self.table.gone.append(self.key)


__all__ = ["RangeDevice", "Ranges"]
