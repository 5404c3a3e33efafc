"""Fallback for recordings with unreadable states: the run comes from its ROS messages.

States can be unreadable because another version wrote them. The module makes a
recording of this version, in which a disc with a nose represents each robot. Its poses
are the true poses (the topics ``base_pose_ground_truth`` and ``/tf``); the map is the
recorded one (the scene, or ``/map``). All viewers can show the result. The result lacks
what only states contain: models, sensors, objects of the map. Nothing is simulated
again, so nothing is verified.
"""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from botyard.errors import (
    ArgumentError,
    BotyardError,
    BudgetError,
    MapError,
    RecordingError,
)
from botyard.formats.budget import Budget, Meter
from botyard.formats.occupancy import message_to_scene
from botyard.geometry import Pose, compose, yaw_of_quaternion
from botyard.model.scene import Scene
from botyard.model.world import thing
from botyard.names import shown
from botyard.numerics.elementary import cos, sin
from botyard.protocols.ros_messages.types import types
from botyard.recording.arrays import TRUTH
from botyard.recording.cdrnumbers import odometry_of
from botyard.recording.codec import decode_scene
from botyard.recording.own_channels import EVENTS, unpack_json
from botyard.recording.player import Player
from botyard.recording.reader import Message, Reader
from botyard.recording.track import Progress, Track, read_track
from botyard.sim.simulation import Simulation

STEP_S: Final = 0.1
"""Step of the shown run, s."""
MAX_STEPS: Final = 1_000_000
"""Longest run that this fallback shows, steps."""
MAX_CHAIN: Final = 8
"""Longest chain of transforms from a robot to the map."""
RADIUS_M: Final = 0.25
"""Radius of the body that represents a robot, m."""
ODOMETRY: Final = "nav_msgs/msg/Odometry"
_BASE: Final = "base_link"
_CORNERS: Final = 20
_EXTENT_M: Final = 1e6
_SAME_M: Final = 1e-9


@dataclass(slots=True)
class _Trajectory:
    """Trajectory of a robot: times, s, in ascending order, and a pose at each time."""

    times: list[float] = field(default_factory=list)
    poses: list[Pose] = field(default_factory=list)

    def add(self, time: float, pose: Pose) -> None:
        """Add a pose.

        A pose that is not later than the last one, or far outside of any map, is left
        out.

        Parameters
        ----------
        time : float
            Time, s.
        pose : Pose
            True pose: m, m, rad.
        """
        # A crafted pose can be infinite, or far outside of any map.
        is_sound = all(
            math.isfinite(value) and abs(value) < _EXTENT_M for value in pose
        )
        if is_sound and (not self.times or time > self.times[-1]):
            self.times.append(time)
            self.poses.append(pose)

    def at(self, time: float) -> Pose:
        """Return the pose at a time, interpolated between two.

        Parameters
        ----------
        time : float
            Time, s. Before the first pose, the first one holds; after the last pose,
            the last one.
        """
        k = bisect_right(self.times, time)
        if k == 0 or k == len(self.times):
            return self.poses[max(0, k - 1)]
        (a, b), (p, q) = self.times[k - 1 : k + 1], self.poses[k - 1 : k + 1]
        part = (time - a) / (b - a)
        # The shorter turn between two headings is the likely one.
        turn = math.remainder(q.th - p.th, 2.0 * math.pi)
        return Pose(
            p.x + part * (q.x - p.x), p.y + part * (q.y - p.y), p.th + part * turn
        )


def open_player(
    path: str | PathLike[str],
    budget: Budget = Budget(),
    progress: Progress = lambda part: None,
) -> Player:
    """Play a recording, from its ROS messages if its states cannot be read.

    In this case, the first entry of `Track.problems` says so.

    Parameters
    ----------
    path : path-like
        MCAP file.
    budget : Budget
        Limits for reading it.
    progress : callable
        Called with the share of the file that was read, 0 to 1.

    Raises
    ------
    RecordingError
        The recording cannot be read and has no poses either.
    BudgetError
        The recording is larger than the budget allows.
    """
    try:
        return Player(read_track(path, budget, progress))
    except BudgetError:
        raise
    except BotyardError as error:
        why = error

    track = redrawn(path, budget)
    if track is None:
        if isinstance(why, RecordingError):
            raise why
        raise RecordingError(
            f"its first state cannot be restored: {why}", path
        ) from None

    reason = shown(why.reason if isinstance(why, RecordingError) else str(why), 300)
    track.problems.insert(
        0,
        f"its states cannot be read: {reason}. It is shown from its ROS "
        "messages: robots are discs with a nose, without sensors; moving obstacles, "
        "models and commands are missing; it cannot be simulated again (--resimulate)",
    )
    return Player(track)


def redrawn(path: str | PathLike[str], budget: Budget = Budget()) -> Track | None:
    """Return the run from its ROS messages.

    Parameters
    ----------
    path : path-like
        MCAP file.
    budget : Budget
        Limits for reading it.

    Returns
    -------
    Track or None
        Recording of this version; None without poses of robots.

    Raises
    ------
    RecordingError
        The file cannot be read, or is too large.
    """
    with Reader(path, budget) as file:
        run = _Run(file, budget)
        run.read()
        problems = list(file.problems)

    if not run.trajectories:
        return None
    # Viewers show a recording of this version without further code.
    with tempfile.TemporaryDirectory(prefix="botyard-") as folder:
        target = Path(folder, "run.mcap")
        run.write(target)
        track = read_track(target, budget)

    # Problems of the intermediate file mean nothing to the user.
    track.problems = problems
    if run.first > 0.0:
        track.problems.append(
            f"its times start at 0 s, which was {run.first:g} s of the run"
        )

    return track


class _Run:
    """Reader of poses, map and events, which it writes as another recording."""

    def __init__(self, file: Reader, budget: Budget) -> None:
        self._file, self._budget = file, budget
        self._meter = Meter(budget, file.path, RecordingError)
        self._frames: dict[str, tuple[str, Pose]] = {}
        self._events: list[tuple[float, bytes]] = []
        self._scene: Scene | None = None
        self.trajectories: dict[str, _Trajectory] = {}
        self.first = 0.0

    def read(self) -> None:
        """Read the trajectories of robots, the map and the events from the file."""
        self._scene = self._attached()
        for message in self._file.messages():
            self._meter.add("entities", 1)
            topic, kind = message.channel.topic, message.channel.schema.name
            take: Callable[[Message], None] | None = None
            if kind == ODOMETRY and topic.rpartition("/")[2] == TRUTH:
                take = self._take_truth
            elif kind == "tf2_msgs/msg/TFMessage":
                take = self._take_transforms
            elif kind == "nav_msgs/msg/OccupancyGrid" and self._scene is None:
                take = self._take_map
            elif topic == EVENTS:
                self._meter.add("bytes", len(message.data))
                self._events.append((message.time / 1e9, message.data))

            if take is not None:
                try:
                    take(message)
                except BudgetError:
                    raise
                # A crafted message can fail in many forms; it is left out.
                except Exception as error:
                    self._file.note(f"{topic} at {message.time / 1e9:g} s: {error!r}")

        self.trajectories = {
            name: trajectory
            for name, trajectory in self.trajectories.items()
            if trajectory.times
        }
        self.first = min(
            (trajectory.times[0] for trajectory in self.trajectories.values()),
            default=0.0,
        )

    def _attached(self) -> Scene | None:
        for place in self._file.attachments:
            if place.name.partition(" ")[0] == "scene":
                try:
                    return decode_scene(self._file.attachment(place).data, self._budget)
                except BudgetError:
                    raise
                except BotyardError as error:
                    self._file.note(f"{shown(place.name, 40)}: {error}")

        return None

    def _trajectory(self, name: str) -> _Trajectory:
        name = name.strip("/") or "robot"
        if name not in self.trajectories:
            # Names come from the file, so a limit applies to their number.
            self._meter.add("robots", 1)
        return self.trajectories.setdefault(name, _Trajectory())

    def _take_truth(self, message: Message) -> None:
        pose, _ = odometry_of(message.data)
        self._trajectory(message.channel.topic.rpartition("/")[0]).add(
            message.time / 1e9, Pose(*pose)
        )

    def _take_transforms(self, message: Message) -> None:
        moved = []
        for one in types().decode_cdr(message.data, "tf2_msgs/TFMessage").transforms:
            self._meter.add("entities", 1)
            at, q = one.transform.translation, one.transform.rotation
            child = str(one.child_frame_id)
            self._frames[child] = (
                str(one.header.frame_id),
                Pose(at.x, at.y, yaw_of_quaternion(q.x, q.y, q.z, q.w)),
            )
            if child.rpartition("/")[2] == _BASE:
                moved.append(child)

        for frame in moved:
            pose = self._in_map(frame)
            if pose is not None:
                self._trajectory(frame.rpartition("/")[0]).add(message.time / 1e9, pose)

    def _in_map(self, frame: str) -> Pose | None:
        """Return the pose of a frame in the map.

        Parameters
        ----------
        frame : str
            Name of the frame, as transforms name it.

        Returns
        -------
        Pose or None
            Pose: m, m, rad. None without a chain of transforms to ``map``.
        """
        pose = Pose(0.0, 0.0, 0.0)
        # The limit on the length of the chain also ends loops of transforms.
        for _ in range(MAX_CHAIN):
            if frame not in self._frames:
                return pose if frame == "map" else None
            frame, step = self._frames[frame]
            pose = compose(step, pose)

        return None

    def _take_map(self, message: Message) -> None:
        grid = types().decode_cdr(message.data, "nav_msgs/OccupancyGrid")
        try:
            self._scene = message_to_scene(grid, message.channel.topic, self._budget)
        except MapError as error:
            self._file.note(str(error))

    def write(self, path: Path) -> None:
        """Write the run as a recording.

        Raises
        ------
        RecordingError
            The run is too long.
        """
        last = max(trajectory.times[-1] for trajectory in self.trajectories.values())
        count = max(1, math.ceil((last - self.first) / STEP_S - 1e-9))
        if count > MAX_STEPS:
            most, found = MAX_STEPS * STEP_S, last - self.first
            raise self._file.error(
                f"expected a run of at most {most:g} s, because it is shown from "
                f"its messages, found {found:g} s"
            )

        sim = Simulation(
            self._scene or Scene(),
            step=STEP_S,
            odometry_error="none",
            warn=lambda text: None,
        )
        outline = tuple(_corners())
        names = {}
        for key, trajectory in self.trajectories.items():
            names[key] = shown(key, 60)
            sim.add_robot(thing(outline), names[key], pose=trajectory.at(self.first))

        # The last element is a sentinel, so the loop below needs no test for the end.
        events = iter([*self._events, (math.inf, b"")])
        time, data = next(events)
        with sim.record(path) as recording:
            for k in range(1, count + 1):
                now = self.first + k * STEP_S
                self._put(sim, names, now)
                sim.step()
                while time <= now:
                    _write_event(recording, data)
                    time, data = next(events)

    def _put(self, sim: Simulation, names: Mapping[str, str], now: float) -> None:
        for key, trajectory in self.trajectories.items():
            pose, before = trajectory.at(now), trajectory.at(now - STEP_S)
            # Placing a robot counts as a jump, so robots that stand still are not
            # placed.
            if any(abs(a - b) > _SAME_M for a, b in zip(pose, before, strict=True)):
                sim.put(names[key], pose)


def _write_event(recording: Any, data: bytes) -> None:
    """Copy an event of a program to the new recording.

    Events of the recorder are left out: they describe states that are missing here.
    """
    try:
        said = unpack_json(data)
        kind, text = said.pop("event", ""), said.pop("text", None)
        said.pop("tick", None)
        if isinstance(text, str):
            recording.event(
                kind,
                text,
                **{k: v for k, v in said.items() if k not in ("kind", "self")},
            )
    except (RecordingError, ArgumentError, TypeError):
        return


def _corners() -> Iterable[tuple[float, float]]:
    """Yield the corners of a disc with a nose that points forward."""
    yield 1.4 * RADIUS_M, 0.0
    for k in range(1, _CORNERS):
        angle = 2.0 * math.pi * k / _CORNERS
        yield RADIUS_M * cos(angle), RADIUS_M * sin(angle)


__all__ = ["open_player", "redrawn"]
