"""Readers of logs.

The readers support recordings of botyard, bags of ROS 1 and 2, Pioneer packets
(``--record-packets``) and CSV tables.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

from botyard.calibration.bagreader import read_bag
from botyard.calibration.choice import WHOLE, Choice, one_of
from botyard.calibration.log import Log, ScanSeries, Series
from botyard.calibration.packets import read_packets
from botyard.calibration.tables import read_csv
from botyard.errors import ArgumentError, CalibrationError, FormatError
from botyard.formats.budget import Budget
from botyard.model.robot import RobotSpec
from botyard.names import shown
from botyard.recording.arrays import load
from botyard.recording.mcap import MAGIC
from botyard.recording.reader import Reader

BAGS: Final = (".bag", ".db3", ".mcap")


def read_log(
    path: Path, spec: RobotSpec, choice: Choice = WHOLE, budget: Budget = Budget()
) -> Log:
    """Read a log of any format.

    Parameters
    ----------
    path : Path
        An MCAP file of ``--record``; a ``.bag``, ``.db3`` or ``.mcap`` file of ROS, or
        the folder of a ROS 2 bag; a ``.csv`` file; a file of ``--record-packets``.
    spec : RobotSpec
        The robot: scales of its packets, and its laser.
    choice : Choice
        Robot and topics.
    budget : Budget
        Limits of reading.

    Raises
    ------
    FormatError
        The file cannot be read; the message has the place, and the expected and the
        found text.
    CalibrationError
        The file has several robots or topics and none is chosen, or lacks the chosen
        one.
    """
    if path.suffix.lower() == ".csv":
        return read_csv(path, spec, choice, budget)
    # A recording of botyard and a ROS 2 bag may both be MCAP files: the metadata
    # decides.
    if os.path.isdir(path) or (
        path.suffix.lower() in BAGS and not _is_recording(path, budget)
    ):
        return read_bag(path, choice, budget)

    if path.suffix.lower() == ".mcap":
        return _read_recording(path, choice, budget)
    return read_packets(path, spec, choice.robot)


def _is_recording(path: Path, budget: Budget) -> bool:
    """Return whether a file is a recording of botyard.

    Any other MCAP file is a ROS 2 bag.
    """
    try:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return False
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", path) from None

    with Reader(str(path), budget) as reader:
        return "botyard" in reader.metadata


def _read_recording(path: Path, choice: Choice, budget: Budget) -> Log:
    run = load(path, budget=budget)
    # A damaged file may have lost its robots: the problems explain more than their
    # absence.
    if not run.robots and run.problems:
        raise FormatError(
            f"expected a robot, found none: {'; '.join(map(shown, run.problems[:3]))}",
            path,
        )

    name = one_of(run.robots, choice.robot, "robots", path, "--of")
    row = run.robots.index(name)
    scans = None
    try:
        found = run.scans(choice.topics.get("scans", "base_scan"), intensities=True)
    # The error means that no robot has recorded scans.
    except ArgumentError:
        if "scans" in choice.topics:
            raise
    else:
        # Rows without a range at all are ticks between two scans; columns without one
        # are padding for lasers with more beams.
        ranges = found.ranges[:, row].astype(np.float64)
        there = ~np.isnan(ranges).all(axis=1)
        if there.any():
            beams = ~np.isnan(ranges[there]).all(axis=0)
            assert found.intensities is not None
            returns = found.intensities[:, row][there][:, beams].astype(np.float64)
            scans = ScanSeries(
                run.time[there],
                ranges[there][:, beams],
                float(found.angle_min[row]),
                float(found.increment[row]),
                None if np.isnan(returns).all() else returns,
            )

    return Log(
        source=str(path),
        robot=name,
        odometry=Series.of(run.time, run.odometry[:, row]),
        velocities=Series.of(run.time, run.velocities[:, row]),
        commands=Series.of(*run.command_changes(name)),
        scans=scans,
        truth=Series.of(run.time, run.poses[:, row]),
        has_exact_clock=True,
        has_true_origin=True,
        problems=tuple(run.problems),
    )


def read_truth(
    path: Path, spec: RobotSpec, choice: Choice = WHOLE, budget: Budget = Budget()
) -> Series:
    """Return the true poses of a file.

    Parameters
    ----------
    path : Path
        A CSV table with ``time``, ``x``, ``y``, ``heading``, or a log of any format
        with true poses.
    spec : RobotSpec
        The robot, as for `read_log`.
    choice : Choice
        Robot and topics.
    budget : Budget
        Limits of reading.

    Returns
    -------
    Series
        At least two poses: m, m, rad.

    Raises
    ------
    FormatError
        The file cannot be read.
    CalibrationError
        The file has no true poses.
    """
    truth = read_log(path, spec, choice, budget).truth
    if len(truth) < 2:
        raise CalibrationError(
            f"{path}: expected at least two true poses (columns time, x, y, "
            f"heading), found {len(truth)}"
        )

    truth.check_sizes(f"{path}: true poses")
    return truth


__all__ = ["read_log", "read_truth"]
