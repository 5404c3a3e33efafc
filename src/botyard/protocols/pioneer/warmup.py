"""Loads or compiles the kernels of reports before the first client connects."""

from __future__ import annotations

import numpy as np

from botyard.protocols.pioneer.kernels import commands
from botyard.protocols.pioneer.kernels import reports as k
from botyard.protocols.pioneer.roster import Roster


def warm_up() -> None:
    """Compile or load the kernels: call each of them once, without a session."""
    roster: Roster[None] = Roster(1)
    roster.due(0, 0.0, 1.0)
    roster.expired(0.0)
    world = k.World(
        odom=np.zeros((1, 3)),
        vel=np.zeros((1, 3)),
        motors=np.zeros(1, np.int8),
        stall=np.zeros(1, np.int8),
        ranges=np.zeros(1),
        returns=np.zeros(1, np.int16),
        taken=np.zeros(1, np.bool_),
    )
    k.find_stale(
        np.zeros(0, np.int64),
        roster.flags,
        np.zeros((1, k.COLUMNS), np.int64),
        np.zeros((1, k.BUILT_COLUMNS), np.int64),
        roster.versions,
        np.zeros(1, np.int64),
        np.zeros((1, 2), np.int8),
        0,
        np.zeros(1, np.uint64),
    )
    k.write_reports(
        np.zeros(0, np.int64),
        np.zeros((1, k.COLUMNS), np.int64),
        np.zeros((1, 1, k.SCAN_COLUMNS), np.int64),
        np.ones((1, k.UNITS)),
        world,
        roster.motors,
        np.zeros(1, np.uint8),
        np.zeros(0, np.bool_),
    )
    commands.take_commands(
        np.zeros(0, np.int64),
        np.zeros((1, 1), np.uint8),
        np.zeros(0, np.int64),
        0.0,
        0,
        0.0,
        roster.times,
        roster.walls,
        roster.flags,
        roster.motors,
        np.zeros((1, commands.AXES), np.int64),
        np.zeros(0, np.bool_),
    )


__all__ = ["warm_up"]
