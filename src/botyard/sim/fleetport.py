"""Readings, layout and boards of all robots, for sessions of protocols that are served in
batches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from botyard.api.readonly import ReadOnly
from botyard.api.revisions import Subject
from botyard.devices.electrics import Boards
from botyard.engine.layout import F8, I2, I8, OdometryErrorMode, State
from botyard.model.beams import Bundle
from botyard.sim.core import Core


class FleetPort(ReadOnly):
    """Implements `botyard.model.robotport.Fleet`, whose rows are the rows of all bodies."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def state(self) -> State:
        """State of all bodies in the last snapshot."""
        return self._core.snapshot.state

    @property
    def rows(self) -> Mapping[str, int]:
        """Row of each body in `state`, by name of the body."""
        return self._core.engine.rows

    @property
    def readings(self) -> tuple[F8, I2]:
        """Ranges and returns of all range sensors in one row.

        Returns
        -------
        ranges : (r,) float64
            Ranges, m. `placed`, `measured` and `span` give the slice of each sensor.
        returns : (r,) int16
            Laser returns: 0 nothing, 1 ordinary, higher: bright.
        """
        return self._core.devices.latest()

    @property
    def layout(self) -> int:
        """Version of the layout.

        It changes whenever rows of bodies or offsets of readings change.
        """
        return self._core.feed.last(Subject.BODIES, Subject.READINGS)

    @property
    def odometry_variances(self) -> tuple[F8, NDArray[np.bool_]]:
        """Mean squares of the proportional odometry errors, and their redraw flags.

        The first array is (n, 3), by axis. The second one, (n,), states whether each
        step draws a new error. Both arrays have a row for each body. An error drawn
        uniformly from [low, high] has the mean square (low² + low·high + high²) / 3. A
        constant error is known exactly.
        """
        state = self.state
        mode, low, high, error = state.err_mode, state.err_lo, state.err_hi, state.err
        is_anew = mode == OdometryErrorMode.RANDOM_EACH_UPDATE
        is_drawn = is_anew | (mode == OdometryErrorMode.RANDOM_INIT)
        squares = np.where(
            is_drawn[:, None],
            (low * low + low * high + high * high) / 3.0,
            error * error,
        )
        squares[mode == OdometryErrorMode.PERFECT] = 0.0
        return squares, is_anew

    @property
    def is_exact(self) -> bool:
        """Whether ranges are exact, not rounded."""
        return self._core.range_step <= 0.0

    @property
    def boards(self) -> tuple[I8, NDArray[np.int8]]:
        """Versions, (n,), and joystick buttons, (n, 2), of all controller boards.

        `board_of` gives a robot's row. A version or a button changes whenever the
        reports of the board do. Sessions compare them to skip boards without changes.
        """
        boards = self._core.engine.table(Boards)
        return boards.version, boards.buttons

    def board_of(self, robot: str) -> int:
        """Return the index of a robot's board."""
        number: int = self._core.robots[robot].electrics.number
        return number

    @property
    def placements(self) -> int:
        """Number of times that any robot was placed."""
        return self._core.placed_count

    @property
    def placed(self) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Keys (robot, kind, index) of all range sensors, and slices of `readings`."""
        return self._core.devices.placed(self._core.engine)

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Whether each range sensor has measured in the last step, in the order of `placed`."""
        return self._core.devices.taken(self._core.engine)

    @property
    def measured(self) -> Mapping[Hashable, tuple[int, int]]:
        """Slices of `readings` of the range sensors that measured in the last step, by key.

        The object stays the same as long as its content does.
        """
        return self._core.devices.measured(self._core.engine)

    @property
    def ages_us(self) -> Mapping[Hashable, int]:
        """`age_us` of all sensors with a latency or a rate of their own."""
        return {key: self.age_us(key) for key in self._core.devices.late_keys}

    def age_us(self, key: Hashable) -> int:
        """Return the age of a sensor's available reading.

        Parameters
        ----------
        key : hashable
            Key (robot, kind, index) of a range sensor, see `placed`.

        Returns
        -------
        int
            Simulated time since the measurement, µs. 0: it was made in the last step.
            Sensors with a latency or a rate of their own have older readings. A lidar
            has measured its first ray earlier than its last one.
        """
        engine, devices = self._core.engine, self._core.devices
        measured = devices.measured_at(engine, key)
        age = (engine.clock.tick - measured) * engine.clock.step_us
        return age + round(1e6 * max(b.lead for b in devices.bundles(key)))

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """Return the beams of a range sensor.

        Parameters
        ----------
        key : hashable
            Key (robot, kind, index) of a range sensor, see `placed`.
        """
        return self._core.devices.bundles(key)

    @property
    def subscriptions(self) -> int:
        """Number of subscriptions to range sensors."""
        return self._core.devices.subscriptions

    def refresh(self) -> None:
        """Measure with all subscribed sensors, after changes between steps."""
        self._core.devices.sense(self._core.engine)

    def measure(self, keys: Iterable[Hashable]) -> None:
        """Measure with these range sensors in the present state, unless the last step has.

        Parameters
        ----------
        keys : iterable of hashable
            Keys (robot, kind, index) of range sensors, see `placed`. Keys without a
            sensor are skipped.
        """
        devices = self._core.devices
        numbers = np.unique(np.array([devices.number(key) for key in keys], np.int64))
        devices.take(self._core.engine, numbers[numbers >= 0])

    def span(self, robot: str, kind: str, index: int) -> tuple[int, int] | None:
        """Return the slice of `readings` that belongs to a sensor.

        Parameters
        ----------
        robot : str
            Name of the robot.
        kind, index : str, int
            ``laser`` and its index, or ``sonar`` and 0.

        Returns
        -------
        (int, int) or None
            First index and the index after the last one; None without the sensor.
        """
        return self._core.devices.span((robot, kind, index))
