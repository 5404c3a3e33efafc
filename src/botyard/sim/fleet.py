"""All robots of a simulation as arrays.

Controllers of many robots use them, and sessions that are served in batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.engine.commands import Command, SetVelocity
from botyard.engine.layout import F8, I8
from botyard.engine.steering import SetSteering
from botyard.engine.velocities import SetVelocities
from botyard.errors import ArgumentError, CommandError
from botyard.model.kinematics import MUST_TURN, STEERS
from botyard.numerics import elementwise
from botyard.sim import neighbours
from botyard.sim.core import Core
from botyard.sim.fleetport import FleetPort
from botyard.sim.neighbours import Links, Neighbours, Occlusion

MAX_NAMES: Final = 5
"""Highest number of robots that `repr` names."""


class _Block(NamedTuple):
    """Place of the readings of one sensor of each robot in the array of all readings.

    Attributes
    ----------
    readings : slice
        Part of all readings; reshaped, it has a row for each robot.
    columns : slice
        Columns of this part with the readings of the sensor.
    """

    readings: slice
    columns: slice


def _block(first: I8, count: int, total: int) -> _Block | None:
    """Return the block of sensors; None if their readings are not equally far apart.

    Parameters
    ----------
    first : (n,) int64
        Index of the first reading of each sensor, n ≥ 1.
    count : int
        Number of readings of each sensor.
    total : int
        Number of all readings.
    """
    apart = np.diff(first)
    width = int(apart[0]) if len(apart) else count
    # Shift a block that would extend past the last reading.
    start = min(int(first[0]), total - width * len(first))
    column = int(first[0]) - start
    if (apart != width).any() or column + count > width or start < 0 or not count:
        return None
    return _Block(
        slice(start, start + width * len(first)), slice(column, column + count)
    )


class Fleet(FleetPort):
    """Robots of a simulation as arrays in the order of `Simulation.robots`.

    Each array has one element for each robot.
    """

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._robot_rows: I8 = np.zeros(0, np.int64)
        self._known = -1
        self._gathers: dict[
            tuple[str, int],
            tuple[int, I8, I8, NDArray[np.bool_] | None, _Block | None],
        ] = {}
        """Cached gather indices by kind of sensor and index.

        Each entry has the version of the layout, the numbers of sensors, the indices of
        their readings, the mask of missing readings, and the block of the readings.
        """

    _elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("pose", "truth"),
            "poses has the true poses, odometry has the odometry poses",
        ),
        "odom": "odometry has the odometry poses",
        "velocity": "velocities has the velocities",
    }

    def __len__(self) -> int:
        return len(self._core.robots)

    def __repr__(self) -> str:
        names = [*islice(self._core.robots, MAX_NAMES)] + ["…"] * (
            len(self) > MAX_NAMES
        )
        return (
            f"<Fleet of {len(self)} "
            f"robot{'' if len(self) == 1 else 's'}{': ' * bool(names)}{', '.join(names)}>"
        )

    @property
    def robot_rows(self) -> I8:
        """Row of each robot in `state`, (n,) int64, read-only.

        A new array is made when robots are added or removed.
        """
        # The array is rebuilt only after bodies were added, removed or reordered.
        known = self._core.feed.last(Subject.BODIES)
        if known != self._known:
            rows = self._core.engine.rows
            self._robot_rows = np.array(
                [rows[name] for name in self._core.robots], np.int64
            )
            # Queued commands also hold this array.
            self._robot_rows.flags.writeable = False
            self._known = known

        return self._robot_rows

    def command(
        self,
        v: ArrayLike | None = None,
        w: ArrayLike | None = None,
        vy: ArrayLike | None = None,
        *,
        steer: ArrayLike | None = None,
    ) -> None:
        """Drive with these velocities until the next command.

        Omitted velocities stay unchanged.

        `Commands.velocity` does the same for one robot.

        Parameters
        ----------
        v, w, vy : float or (n,) array, optional
            Forward, m/s; turn rate, rad/s; leftward, m/s. A number applies to all robots.
        steer : float or (n,) array, optional
            Steering angle of car-like robots instead of `w`, rad, positive to the left.
            Other robots drive straight on.

        Raises
        ------
        CommandError
            A value is not finite, or `vy` is not 0 and no robot can drive sideways. If some
            robots can, the others ignore it. Or `steer` is given with `w`, or no robot
            steers.
        ArgumentError
            A ValueError: a value is neither a number nor an array of length n.
        """
        values = [
            None if a is None else self._each(a, what)
            for a, what in ((v, "v"), (w, "w"), (vy, "vy"))
        ]
        if values[2] is not None and values[2].any():
            self._check_sideways()
        if steer is not None:
            self._steer(values[0], values[1], self._each(steer, "steer"))
            return
        self._core.accept_checked_velocities(
            SetVelocities(self.robot_rows, *values), "api"
        )

    def _steer(self, v: F8 | None, w: F8 | None, steer: F8) -> None:
        """Command steering angles; robots that do not steer drive straight on."""
        steers = STEERS[self.state.drive[self.robot_rows]]
        if w is not None:
            raise CommandError("steer: expected no w together with it, found both")
        if len(self) and not steers.any():
            raise CommandError(
                "steer: none of these robots steers, only robots with the drives "
                "ackermann and tricycle do"
            )

        for index, name in enumerate(self._core.robots):
            ahead = None if v is None else float(v[index])
            command: Command = (
                SetSteering(float(steer[index]), ahead)
                if steers[index]
                else SetVelocity(v=ahead, w=0.0)
            )
            self._core.accept_command(name, command, "api")

    def _each(self, value: ArrayLike, what: str) -> F8:
        """Return a value of each robot as an array.

        Parameters
        ----------
        value : float or (n,) array
            A number applies to all robots. The result never shares its memory.
        what : str
            Name of the parameter in error messages.

        Returns
        -------
        (n,) float64
            The value of each robot, in the order of `Simulation.robots`.
        """
        if (
            type(value) is np.ndarray
            and value.dtype == np.float64
            and value.shape == (len(self),)
        ):
            # The direct copy takes a fifth of the time of the general path below.
            return value.copy()

        try:
            return np.broadcast_to(np.array(value, np.float64), (len(self),))
        except (TypeError, ValueError):
            shape = (
                np.shape(value)
                if isinstance(value, np.ndarray | list | tuple) and len(np.shape(value))
                else None
            )
            found = arguments.found(value) if shape is None else f"shape {shape}"
            raise ArgumentError(
                f"{what}: expected a number, or an array of {len(self)} numbers, "
                f"one for each robot; found {found}"
            ) from None

    def _check_sideways(self) -> None:
        if len(self) and MUST_TURN[self.state.drive[self.robot_rows]].all():
            raise CommandError(
                "vy: none of these robots can drive sideways, "
                "only omnidirectional robots can"
            )

    @property
    def poses(self) -> F8:
        """Copy of the true poses, (n, 3): m, m, rad."""
        poses: F8 = self.state.pose[self.robot_rows]
        return poses

    @property
    def odometry(self) -> F8:
        """Copy of the poses by odometry, (n, 3): m, m, rad."""
        odom: F8 = self.state.odom[self.robot_rows]
        return odom

    @property
    def odometry_in_world(self) -> F8:
        """Poses by odometry in the world frame, (n, 3): m, m, rad.

        See `Robot.odom_in_world`.
        """
        frame, odom = self.state.odom_frame[self.robot_rows], self.odometry
        c, s = elementwise.cosine_sine(frame[:, 2])
        x = frame[:, 0] + c * odom[:, 0] - s * odom[:, 1]
        y = frame[:, 1] + s * odom[:, 0] + c * odom[:, 1]
        return np.column_stack([x, y, frame[:, 2] + odom[:, 2]])

    @property
    def velocities(self) -> F8:
        """Copy of the forward, leftward and turning velocities, (n, 3): m/s, m/s, rad/s."""
        vel: F8 = self.state.vel[self.robot_rows]
        return vel

    @property
    def stalled(self) -> NDArray[np.bool_]:
        """Whether each robot is blocked, (n,) bool."""
        stalled: NDArray[np.bool_] = self.state.stall[self.robot_rows] != 0
        return stalled

    def nearest(self, k: int = 1) -> tuple[I8, F8]:
        """Return the `k` nearest other robots of each robot, nearest first.

        Distances are between true positions.

        Parameters
        ----------
        k : int
            Number of other robots for each robot, 1 to 10,000.

        Returns
        -------
        (n, k) int64, (n, k) float64
            Indices in the order of `Simulation.robots`, and distances between centres,
            m. -1 and inf fill the places if there are fewer than `k` others.

        Raises
        ------
        ArgumentError
            `k` is not a whole number from 1 to 10,000.
        """
        k = neighbours.checked_count(k)
        near, far = neighbours.nearest(self.poses[None], k)
        return near[0], far[0]

    def within(self, radius: float) -> Neighbours:
        """Return the other robots within `radius` of each robot, nearest first.

        Distances are between true positions.

        Parameters
        ----------
        radius : float
            Greatest distance between centres, m.

        Returns
        -------
        Neighbours
            Offsets, (n + 1,) int64. For the p neighbours of all robots, robot by robot: indices
            in the order of `Simulation.robots`, (p,) int64, and distances, (p,) float64, m. The
            neighbours of robot i are ``indices[offsets[i] : offsets[i + 1]]``.

        Raises
        ------
        ArgumentError
            `radius` is not a number from 0 to 10⁶, or there are more than 50 million pairs.
        """
        return neighbours.within(self.poses, neighbours.checked_radius(radius))

    def range_and_bearing(
        self, radius: float, *, occlusion: Occlusion = "all"
    ) -> Links:
        """Return range and bearing from each robot to the robots in its line of sight.

        Foot-bots, for example, have a device for this. Results are exact, and refer to
        true positions. ``messages[links.senders]`` are the received messages.

        Parameters
        ----------
        radius : float
            Greatest range between centres, m.
        occlusion : str
            Things between two centres that hide both robots from each other: ``walls`` that
            lasers see, ``all`` (also boxes and other robots that lasers see), or ``none``.

        Returns
        -------
        Links
            Offsets, (n + 1,) int64. For the p links of all receivers, receiver by receiver and
            nearest first: senders, (p,) int64, ranges, (p,) float64, m, and bearings in the
            receiver's frame, (p,) float64, rad in (−π, π], positive to the left (REP-103).

        Raises
        ------
        ArgumentError
            `radius` is not a number from 0 to 10⁶, `occlusion` is unknown, or there are more
            than 50 million pairs.
        """
        radius = neighbours.checked_radius(radius)
        arguments.one_of(occlusion, "occlusion", neighbours.OCCLUSIONS)
        return neighbours.links(
            self._core.engine.packed, self.robot_rows, radius, occlusion
        )

    def ranges(self, kind: str = "laser", index: int = 0) -> F8:
        """Return ranges of one sensor of each robot, (n, R) float64, m.

        The rows are in the order of `Simulation.robots`, in a copy. Sensors that the
        step did not measure are measured now, all together.

        Parameters
        ----------
        kind, index : str, int
            ``laser`` and its index, or ``sonar`` and 0.

        Returns
        -------
        array
            R is the largest number of readings of a robot. NaN fills the places of robots with
            fewer readings or without the sensor.

        Raises
        ------
        ArgumentError
            The kind is unknown, or the index is out of range.
        """
        core, devices = self._core, self._core.devices
        layout = self.layout
        # The types are tested first, because True and 1.0 equal 1.
        known = (
            self._gathers.get((kind, index))
            if type(kind) is str and type(index) is int
            else None
        )
        if known is None or known[0] != layout:
            arguments.one_of(kind, "kind", ("laser", "sonar"))
            arguments.whole(index, "index", low=0, high=99)
            known = self._gathers[kind, index] = (layout, *self._gather(kind, index))
        _, numbers, places, missing, block = known
        devices.take(core.engine, numbers)
        ranges: F8
        if block is not None:
            # To copy a slice takes a third of the time of a gather.
            rows = devices.latest()[0][block.readings].reshape(len(places), -1)
            ranges = core.rounded(rows[:, block.columns].copy())
        elif places.size:
            ranges = core.rounded(devices.latest()[0][places])
        else:
            ranges = np.zeros(places.shape)
        if missing is not None:
            # The gather read index 0 in their place.
            ranges[missing] = np.nan
        return ranges

    def _gather(
        self, kind: str, index: int
    ) -> tuple[I8, I8, NDArray[np.bool_] | None, _Block | None]:
        """Return the numbers of a sensor of all robots, and the places of its readings.

        Parameters
        ----------
        kind, index : str, int
            ``laser`` and its index, or ``sonar`` and 0.

        Returns
        -------
        numbers : (k,) int64
            Numbers of the sensors that exist, as `RangeDevices` counts them.
        places : (n, R) int64
            Index in `readings` of each robot's readings; 0 where one is missing.
        missing : (n, R) bool or None
            Which readings are missing; None if each robot has R.
        block : _Block or None
            The same readings as a block; None if they are not equally far apart.
        """
        devices, robots = self._core.devices, self._core.robots
        _, spans = devices.placed(self._core.engine)
        found = np.array(
            [devices.number((name, kind, index)) for name in robots], np.int64
        )
        bounds = np.array(
            [spans[k] if k >= 0 else (0, 0) for k in found.tolist()], np.int64
        ).reshape(-1, 2)
        sizes = bounds[:, 1] - bounds[:, 0]
        # Readings of further echoes follow the first ones.
        sizes //= np.array(
            [
                devices.bundles((name, kind, index))[0].optics.echoes if k >= 0 else 1
                for name, k in zip(robots, found.tolist(), strict=True)
            ],
            np.int64,
        )
        columns = np.arange(int(sizes.max(initial=0)))
        missing = columns[None, :] >= sizes[:, None]
        places = np.where(missing, 0, bounds[:, :1] + columns[None, :])
        block = None
        if len(found) and not missing.any():
            block = _block(bounds[:, 0], len(columns), len(devices.latest()[0]))
        return found[found >= 0], places, missing if missing.any() else None, block
