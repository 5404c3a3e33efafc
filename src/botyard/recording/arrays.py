"""Read recordings as arrays, without ROS.

    run = botyard.recording.load("run.mcap")
    run.time                    # (T,), s
    run.robots                  # N names
    run.poses                   # (T, N, 3): x, y (m), heading (rad)
    run.scans().ranges          # (T, N, R), m

A robot has NaN for the times at which it is not in the world. Poses, velocities and
scans come from the recorded topics. A recording without such topics gives the values of
its states, one per second. Commands come from the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError, RecordingError
from botyard.formats.budget import Budget
from botyard.recording.cdrnumbers import (
    F4,
    ODOMETRY,
    SCAN,
    BadMessageError,
    odometry_of,
    scan_of,
)
from botyard.recording.codec import decode_entry
from botyard.recording.comparing import body_columns
from botyard.recording.own_channels import (
    EVENTS,
    JOURNAL,
    STATES,
    unpack_bytes,
    unpack_json,
)
from botyard.recording.reader import Message, Reader
from botyard.recording.recordedrows import RecordedRow, RecordedRows
from botyard.sim.journal import (
    Entry,
)

F8 = NDArray[np.float64]
TRUTH, ODOM = "base_pose_ground_truth", "odom"


@dataclass(frozen=True, slots=True)
class Event:
    """Event of a run.

    Attributes
    ----------
    time : float
        Simulated time, s.
    tick : int
        Number of steps so far.
    kind : str
        ``stall``, ``branch`` (a state was restored), ``lost`` (data was left out),
        ``end`` …
    values : mapping
        Further data, such as ``robots``.
    """

    time: float
    tick: int
    kind: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Scans:
    """Scans of one laser of each robot.

    Attributes
    ----------
    ranges : (T, N, R) float32 array
        m; NaN without a scan, and after the last beam of a laser with fewer than R
        beams. Infinite: the beam hit nothing.
    angle_min, increment : (N,) arrays
        Bearing of the first beam in the laser's frame, and angle between beams, rad;
        from the last scan. NaN for robots without scans.
    intensities : (T, N, R) float32 array or None
        Laser return of each range: 0 nothing, 1 ordinary, more than 1 a reflector. NaN
        without a value; None if intensities were not requested.
    """

    ranges: F4
    angle_min: F8
    increment: F8
    intensities: F4 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Recorded run as arrays with T rows and N robots.

    Attributes
    ----------
    path : str
        Path of the file.
    metadata : mapping of str to str
        Metadata of the run: version, seed, command line, map.
    time : (T,) array
        Simulated time of each row, s. It goes back where a state was restored (event
        ``branch``).
    robots : tuple of str
        Names of all robots that were in the world at any time, in order of appearance.
    poses : (T, N, 3) array
        True poses: x, y (m), heading (rad). NaN in any array: the robot is not in the
        world, or was not recorded.
    velocities : (T, N, 3) array
        Velocities in the robot's frame: forward, left (m/s), yaw rate (rad/s).
    odometry : (T, N, 3) array
        Poses by odometry.
    commands : (T, N, 3) array
        Latest velocity command: forward, left (m/s), yaw rate (rad/s).
    events : tuple of Event
        Events of the run.
    problems : tuple of str
        Parts that could not be read; empty if all could.
    """

    path: str
    metadata: Mapping[str, str]
    time: F8
    robots: tuple[str, ...]
    poses: F8
    velocities: F8
    odometry: F8
    commands: F8
    events: tuple[Event, ...]
    problems: tuple[str, ...]
    budget: Budget = field(default=Budget(), repr=False)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether each robot is in the world at each time, (T, N)."""
        # A robot that is absent in a step has no pose.
        found: NDArray[np.bool_] = ~np.isnan(self.poses[:, :, 0])
        return found

    def scans(self, laser: str = "base_scan", *, intensities: bool = False) -> Scans:
        """Read the scans of one laser of each robot.

        Parameters
        ----------
        laser : str
            Name of the topic, without the name of the robot.
        intensities : bool
            Whether to read laser returns also.

        Raises
        ------
        ArgumentError
            No robot has recorded scans of this name.
        RecordingError
            The file cannot be read any more, or the arrays would be larger than
            ``budget.cells``.
        """
        arguments.instance(laser, "laser", str)
        with Reader(self.path, self.budget) as file:
            return _Scanner(self, laser, file).read(intensities=intensities)

    def command_changes(self, robot: str) -> tuple[F8, F8]:
        """Read the changes of a robot's commanded velocity.

        Returns
        -------
        (k,) array, (k, 3) array
            Simulated time, s; forward, left (m/s), yaw rate (rad/s).

        Raises
        ------
        ArgumentError
            The recording has no such robot.
        RecordingError
            The file cannot be read any more, or is larger than the budget allows.
        """
        if arguments.instance(robot, "robot", str) not in self.robots:
            raise ArgumentError(
                f"robot: expected one of {', '.join(self.robots) or 'none'}, found {robot}"
            )

        found: list[tuple[float, ...]] = []

        def take(name: str, time_ns: int, values: list[float]) -> None:
            if name == robot:
                found.append((time_ns / 1e9, *values))

        # `take` collects the commands while the rows are read.
        with Reader(self.path, self.budget) as file:
            for _ in RecordedRows(file, self.budget, take):
                pass

        # The shape keeps four columns when there are no commands.
        table = np.array(found, np.float64).reshape(-1, 4)
        return table[:, 0].copy(), table[:, 1:].copy()

    def changes(self) -> Iterator[Entry]:
        """Yield all external changes of the world in order.

        Raises
        ------
        RecordingError
            A change cannot be read.
        """
        with Reader(self.path, self.budget) as file:
            for message in file.messages((JOURNAL,)):
                yield decode_entry(unpack_bytes(message.data), self.budget)


def load(path: str | PathLike[str], *, budget: Budget = Budget()) -> Recording:
    """Read a recording.

    A damaged or unfinished recording gives all its complete chunks;
    `Recording.problems` says what is missing.

    Parameters
    ----------
    path : path-like
        Path of the file.
    budget : Budget
        Limits: ``cells`` limits the numbers in all arrays together, ``unpacked`` the
        bytes of a chunk.

    Raises
    ------
    RecordingError
        The file cannot be opened, is not a recording, or is larger than the budget
        allows.
    """
    # The budget is checked first, because opening the file already spends it.
    arguments.instance(budget, "budget", Budget)
    with Reader(arguments.path(path, "path"), budget) as file:
        return _Loader(file, budget).load()


class _Loader:
    """Reader of all data of a recording except scans."""

    def __init__(self, file: Reader, budget: Budget) -> None:
        self._file, self._budget = file, budget
        self._rows = RecordedRows(file, budget)
        self._found: dict[str, list[tuple[int, int, Any]]] = {
            name: [] for name in ("poses", "velocities", "odometry", "commands")
        }
        self._row = -1
        self._events: list[Event] = []

    def load(self) -> Recording:
        """Read the file, and return its data as arrays."""
        # Without topics of robots, the states are the only source of poses.
        has_rows = any(
            channel.schema.name in (ODOMETRY, SCAN)
            for channel in self._file.channels.values()
        )
        for one in self._rows:
            if isinstance(one, RecordedRow):
                self._take_row(one)
            elif one.channel.topic == EVENTS:
                self._take_event(one)
            elif (
                one.channel.topic == STATES
                and not has_rows
                and self._rows.state is not None
            ):
                self._take_columns(one.time, self._rows.state)

        rows, n = len(self._rows.times), len(self._rows.robots)
        # Twelve numbers per cell: poses, velocities, odometry and commands.
        self._rows.meter.add("cells", 12 * rows * n)
        arrays = {
            name: self._array(values, rows, n) for name, values in self._found.items()
        }
        return Recording(
            path=self._file.path,
            metadata=self._file.metadata.get("botyard", {}),
            time=np.array(self._rows.times, np.float64) / 1e9,
            robots=tuple(self._rows.robots),
            events=tuple(self._events),
            problems=tuple(self._file.problems),
            budget=self._budget,
            **arrays,
        )

    @staticmethod
    def _array(values: list[tuple[int, int, Any]], rows: int, n: int) -> F8:
        """Return the values of all rows and robots.

        Parameters
        ----------
        values : list of (int, int, triple)
            Row, robot and three numbers.
        rows, n : int
            Number of rows and of robots.

        Returns
        -------
        (rows, n, 3) float64
            The numbers; NaN where there are none.
        """
        # NaN marks steps without a value.
        array = np.full((rows, n, 3), np.nan)
        if values:
            # Assign all values at once, because a loop over cells is slow.
            where = np.array([value[:2] for value in values])
            array[where[:, 0], where[:, 1]] = [value[2] for value in values]

        return array

    def _keep(
        self, what: str, row: int, robot: int, values: tuple[float, float, float]
    ) -> None:
        """Store three numbers of a robot.

        Parameters
        ----------
        what : str
            ``poses``, ``velocities``, ``odometry`` or ``commands``.
        row, robot : int
            Indices in the arrays.
        values : (float, float, float)
            Numbers in SI units.

        Raises
        ------
        BudgetError
            There are too many numbers.
        """
        self._rows.meter.add("cells", 3)
        self._found[what].append((row, robot, values))

    def _take_commands(self, row: int) -> None:
        """Store the latest command of each robot when a row starts."""
        self._row = row
        for name, values in self._rows.commands.items():
            robot = self._rows.robots.get(name)
            if robot is not None:
                self._keep("commands", row, robot, (values[0], values[1], values[2]))

    def _take_row(self, one: RecordedRow) -> None:
        # Commands hold for a whole row, so they are stored once, at the first message
        # of the row.
        if one.number != self._row:
            self._take_commands(one.number)
        # Other topics of a robot have no columns in the arrays.
        if one.name not in (TRUTH, ODOM) or one.message.channel.schema.name != ODOMETRY:
            return

        def take(data: bytes) -> None:
            pose, twist = odometry_of(data)
            if one.name == TRUTH:
                self._keep("poses", one.number, one.robot, pose)
                self._keep("velocities", one.number, one.robot, twist)
            else:
                self._keep("odometry", one.number, one.robot, pose)

        try:
            take(one.message.data)
        except BadMessageError as error:
            self._file.note(
                f"a message of {one.message.channel.topic} at {one.message.time} ns: {error}"
            )

    def _take_event(self, message: Message) -> None:
        try:
            said = unpack_json(message.data)
            event = Event(
                message.time / 1e9,
                int(said.pop("tick", -1)),
                str(said.pop("event")),
                said,
            )
        # An event of another program may have any content: it is noted and left out.
        except (
            RecordingError,
            KeyError,
            ValueError,
            TypeError,
            OverflowError,
        ) as error:
            self._file.note(f"an event at {message.time} ns: {error}")
            return

        # Events have no fixed size, so their bytes count towards the same limit.
        self._rows.meter.add("cells", len(message.data))
        self._events.append(event)

    def _take_columns(self, time: int, state: bytes) -> None:
        """Add a row from a recorded state, for a recording without topics of robots."""
        names, columns = body_columns(state, self._budget)
        self._rows.meter.add("cells", 1)
        self._rows.times.append(time)
        row = len(self._rows.times) - 1
        for name, i in names.items():
            robot = self._rows.number_of(name)
            for what, column in (
                ("poses", "pose"),
                ("velocities", "vel"),
                ("odometry", "odom"),
            ):
                self._keep(what, row, robot, tuple(columns[column][i].tolist()))

        self._take_commands(row)


class _Scanner:
    """Reader of the scans of one laser."""

    def __init__(self, run: Recording, laser: str, file: Reader) -> None:
        self._run, self._laser = run, laser
        self._rows = RecordedRows(file, run.budget)

    def read(self, *, intensities: bool) -> Scans:
        """Read the scans of the file into arrays."""
        # Robots may have different fields of view, and a robot has none before its
        # first scan.
        n = len(self._run.robots)
        found: list[tuple[int, int, F4, F4]] = []
        first, increment, beams = np.full(n, np.nan), np.full(n, np.nan), 0
        for one in self._rows:
            if (
                not isinstance(one, RecordedRow)
                or one.name != self._laser
                or one.message.channel.schema.name != SCAN
            ):
                continue

            try:
                first[one.robot], increment[one.robot], ranges, returns = scan_of(
                    one.message.data
                )
            # The damage was noted when the recording was loaded.
            except BadMessageError:
                continue

            returns = returns[: len(ranges) if intensities else 0]
            self._rows.meter.add("cells", len(ranges) + len(returns))
            # Views would keep whole chunks in memory, so copy the numbers.
            found.append((one.number, one.robot, ranges.copy(), returns.copy()))
            beams = max(beams, len(ranges))

        if not found:
            # An empty array would hide a misspelt name.
            raise ArgumentError(
                f'laser: expected the name of a recorded topic with scans, found "{self._laser}"'
            )

        shape = (len(self._run.time), n, beams)
        self._rows.meter.add("cells", (2 if intensities else 1) * shape[0] * n * beams)
        # Lasers can have different numbers of beams; the rest of a row stays NaN.
        ranges = np.full(shape, np.nan, np.float32)
        every = np.full(shape, np.nan, np.float32) if intensities else None
        for row, robot, values, returns in found:
            ranges[row, robot, : len(values)] = values
            if every is not None:
                every[row, robot, : len(returns)] = returns

        return Scans(ranges, first, increment, every)


__all__ = ["Event", "Recording", "Scans", "load"]
