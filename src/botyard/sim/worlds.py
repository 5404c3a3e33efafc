"""Many worlds as one: arrays of thousands of simulations for learning and for studies.

    import numpy as np, botyard

    worlds = botyard.Worlds("office", "p3dx", 1024, threads=2)
    while True:
        near = worlds.ranges[:, 0].min(axis=1) < 0.6
        worlds.command[:, 0, 0] = 0.3
        worlds.command[:, 0, 2] = np.where(near, 0.5, 0.0)
        worlds.step()
        worlds.reset(worlds.tick > 300)

Each world is what a `Simulation` of its seed is, bit for bit. There is no Python for each world in a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from botyard import arguments
from botyard.devices.battery import Batteries
from botyard.devices.laser import STREAM as LASER_STREAM
from botyard.devices.laser import laser_bundle
from botyard.devices.ranging import Delay, Fan, Late
from botyard.devices.sonar import STREAM as SONAR_STREAM
from botyard.devices.sonar import sonar_bundles
from botyard.engine.batch import EPISODE, MAP, MAX_COORDINATE, SAMPLES, TICK, Contact, Fault
from botyard.engine.blocks import Blocks
from botyard.engine.channels import Sent
from botyard.engine.commands import SetVelocities, SetVelocity, check_pose
from botyard.engine.kernels.lateness import (
    COUNT,
    FIRST,
    JITTER,
    LATENCY,
    RATE,
    SCALE,
    SLOTS,
    Lateness,
    delay_steps,
    is_slower,
)
from botyard.engine.layout import F8, I1, I8, U1, U8, State
from botyard.engine.rng import DEFAULT_SEED, episode_seeds
from botyard.errors import ArgumentError, NotNowError
from botyard.formats.models import find_robot
from botyard.handle import Handle
from botyard.model.beams import Bundle
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import MAX_LATENCY_S
from botyard.sim.batch import Batch, Plan
from botyard.sim.freespace import checked_clearance
from botyard.sim.journal import API
from botyard.sim.notebook import MAX_ROWS, page
from botyard.sim.parameters import BEAMS, COLUMNS, COMMANDS, DELAYS, sensors_of
from botyard.sim.probing import MAX_NEAR_WALLS, MAX_WALL_REACH_M
from botyard.sim.repeating import Episode, EpisodeLog
from botyard.sim.simulation import MAX_THREADS, Simulation
from botyard.sim.worldfaults import words
from botyard.sim.worldmaps import Maps, Scenes
from botyard.workers import lock

MAX_WORLDS: Final = 1_000_000
MAX_MAP_POOL: Final = 1_000_000_000
"""Greatest `map_pool`."""
FREE_CLEARANCE_M: Final = 0.1
"""Clearance of starts at free places, m."""
FEW_NUMBERS: Final = 24
"""So many numbers are compared one by one."""
MAX_STEPS: Final = 1_000_000_000
"""Steps in one call."""
Models = str | Path | RobotSpec | Sequence[str | Path | RobotSpec]
Mask = ArrayLike | None
Starts = Callable[[U8], ArrayLike]
PARAMETERS: Final = {
    "max_speed": "max_vel",
    "top_speed": "top_vel",
    "accel": "accel",
    "decel": "decel",
    "odometry_error_low": "err_lo",
    "odometry_error_high": "err_hi",
    "range_min": "r_min",
    "range_max": "r_max",
    "range_noise": "r_noise",
    "bearing_noise": "a_noise",
    "range_missing": "missing",
    "range_latency": "delay",
    "range_jitter": "delay",
    "range_rate": "delay",
    "command_latency": "channel",
    "command_jitter": "channel",
    "command_rate": "channel",
    "command_scale": "channel",
    "wheel_ratio": "wheels",
}
"""Names of `Worlds.param`, and of the arrays that have them."""
PARTS: Final[Mapping[str, int | slice]] = {
    "range_latency": LATENCY,
    "range_jitter": JITTER,
    "range_rate": RATE,
    "command_latency": LATENCY,
    "command_jitter": JITTER,
    "command_rate": RATE,
    "command_scale": slice(SCALE, SCALE + 3),
    "wheel_ratio": 0,
}
"""Which numbers of the last axis they are, where these are not all of it."""
OF_BODIES: Final = frozenset({*State._fields, "channel", "wheels"})
"""Arrays of these that have a row for each body."""


class Errors(TypedDict, total=False):
    """What all robots of worlds err by."""

    sensor_noise: bool
    odometry_error: str


class Worlds(Handle):
    """`n` worlds with the same robots, as arrays with a row for each world. All arrays but copies are live: a step writes them.

    Any thread may call it; calls wait for each other.

    Parameters
    ----------
    scenes : Scene, str, Path, sequence of them, or callable
        The map of all worlds; several, of which each episode has one, drawn by its seed; or a function that makes the map of a number,
        which is called by another thread.
    robots : str, Path, RobotSpec, or sequence of them
        The robots of each world, as for `Simulation.add_robot`.
    n : int
        Number of worlds.
    seeds : int or (n,) array of ints
        Seed of each world; of one number s world i has the seed s + i.
    step : float
        Simulated time of one step, s.
    threads : int
        Threads that step worlds; results are the same for any number.
    map_pool : int
        So many maps of a function are used at a time: the first `map_pool` in the first `map_pool` episodes of each world, then the next.
    dtype : dtype
        Of `ranges`: float32, which are those of a simulation rounded once, or float64.
    sensors : sequence of str, optional
        Which sensors of each robot measure in every step: ``laser`` is its first, ``laser_2`` its second one, ``sonar`` its ring. Without
        it lasers, or else the ring.
    boxes : sequence of BoxObject
        Boxes that stand in all maps beside those of the map, as by `Simulation.add_box`. With a mass (``dynamics``) they are pushed. All
        maps have the same boxes, at any poses.
    max_latency : float, optional
        Greatest latency with jitter of commands and readings that `param` may set, s; without it that of the models. What is under way
        takes memory: a scan for each step of it, and two. Rates of commands and of measurements below that of steps need it, too; 0 is
        enough for them.
    **errors
        ``sensor_noise`` and ``odometry_error`` as for `Simulation`.

    Raises
    ------
    ArgumentError
        A parameter is out of its range or of another type, or a robot or a map has what worlds do not support: grippers, joints, draining
        batteries, error models of devices. A `Simulation` has all of these. Or maps have different boxes.
    """

    _copying: ClassVar[str] = "keep a copy of its state (worlds.state.copy()), or copy a world (worlds.world(i))"
    _instead: ClassVar[Mapping[str, str]] = {
        name: f"write into it: worlds.{name}[...] = …" for name in ("command", "state")
    } | {
        name: "call step(), or reset(…)"
        for name in (
            "pose",
            "odom",
            "vel",
            "box_pose",
            "box_vel",
            "ranges",
            "contact",
            "other",
            "tick",
            "episode",
            "map_id",
        )
    }

    def __init__(
        self,
        scenes: Scenes,
        robots: Models,
        n: int,
        *,
        seeds: ArrayLike = DEFAULT_SEED,
        step: float = 0.1,
        threads: int = 1,
        map_pool: int = 64,
        dtype: DTypeLike = np.float32,
        sensors: Sequence[str] | None = None,
        boxes: Sequence[BoxObject] = (),
        max_latency: float | None = None,
        **errors: Unpack[Errors],
    ) -> None:
        n = arguments.whole(n, "n", low=1, high=MAX_WORLDS)
        threads = arguments.whole(threads, "threads", low=1, high=MAX_THREADS)
        map_pool = arguments.whole(map_pool, "map_pool", low=1, high=MAX_MAP_POOL)
        kind = _kind_of(dtype)
        models = (
            [robots]
            if isinstance(robots, (str, Path, RobotSpec))
            else arguments.several(robots, "robots", "models of robots")
        )
        specs = [one if isinstance(one, RobotSpec) else find_robot(arguments.path(one, "robots")) for one in models]
        if not specs:
            raise ArgumentError("robots: expected at least one model, found none")
        self._specs = specs
        unknown = sorted(errors.keys() - Errors.__annotations__.keys())
        if unknown:
            raise TypeError(f"Worlds() got an unexpected keyword argument '{unknown[0]}'")
        self._settings: dict[str, Any] = {"step": step, **errors}
        for spec in specs:
            _check_supported(spec)
        own_seeds = _seeds(seeds, n)
        self._maps = Maps(scenes, specs, map_pool, _boxes(boxes))
        number = int(self._maps.numbers(own_seeds[:1], np.zeros(1, np.int64))[0])
        first = Simulation(Scene(boxes=self._maps[number].scene.boxes), warn=_silent, **self._settings)
        for spec in specs:
            first.add_robot(spec)
        _check_devices(first)
        self.names: tuple[str, ...] = tuple(first.robots)
        """Names of the robots of each world."""
        self.box_names: tuple[str, ...] = first.box_names
        """Names of the boxes of each world."""
        self._robots = slice(len(self.box_names), None)
        """Rows of robots, behind those of boxes."""
        self._fans, readings = _fans(
            specs, _sensors(specs, sensors), len(self.box_names), noise=errors.get("sensor_noise", True)
        )
        self._late_steps = _late_steps(specs, max_latency, first.dt)
        bodies = first.engine.bodies
        plan = Plan(
            state=first.engine.state,
            bodies=bodies._replace(feels=bodies.feels | np.int8(2)),
            specs=first.engine.specs,
            boxes=len(self.box_names),
            fans=[fan for _, fan in self._fans],
            readings=readings,
            dtype=kind,
            delays=[_delay_of(specs[fan.row - len(self.box_names)], sensor) for sensor, fan in self._fans],
            late_steps=self._late_steps,
            has_one_map=self._maps.count == 1,
        )
        self._radii = bodies.radius.tolist()
        self._is_closed = self._has_maps = False
        self._is_plain = self._maps.count == 1 and not self.box_names
        self._lock = lock()
        """Calls of several threads take turns: one of them may give up the maps that another one's steps read."""
        self._batch = Batch(plan, n, first.dt, threads)
        self._adopt()
        self._usual = self._erring(self._batch.state, 0)
        """Parameters of the models, of each robot."""
        self._rows = self._batch.rows
        """Prepares calls of kernels for all worlds: for tasks."""
        self._log: EpisodeLog | None = None
        self._seeds[:] = own_seeds
        everyone = np.arange(n)
        self._map_ids[:] = self._maps.numbers(own_seeds, np.zeros(n, np.int64))
        self._begin(everyone, self._starts_of_episodes(everyone, None, None, is_free=False))

    def _adopt(self) -> None:
        """Make the public arrays of those of the batch."""
        state = self._batch.state
        counts, seeds = state.all("counts"), state.all("seeds")
        self._counts: I8 = counts
        self._seeds: U8 = seeds[:, 0]
        self._shape = self._seeds.shape
        self._episode_seeds: U8 = seeds[:, 1]
        self._episodes: I8 = counts[:, EPISODE]
        self._map_ids: I8 = counts[:, MAP]
        self._starts: F8 = state.all("start")
        mine, robots, boxes = vars(self), self._robots, slice(len(self.box_names))

        def shown(array: NDArray[Any]) -> NDArray[Any]:
            array.flags.writeable = False
            return array

        mine["pose"] = shown(state.all("pose")[:, robots])
        mine["odom"] = shown(state.all("odom")[:, robots])
        mine["vel"] = shown(state.all("vel")[:, robots])
        mine["box_pose"] = shown(state.all("pose")[:, boxes])
        mine["box_vel"] = shown(state.all("vel")[:, boxes])
        mine["ranges"] = shown(state.all("ranges"))
        mine["contact"] = shown(state.all("contact_kind")[:, robots])
        mine["other"] = shown(state.all("other")[:, robots])
        mine["command"] = state.all("command")[:, robots]
        mine["state"] = state.bytes
        mine["tick"] = shown(counts[:, TICK])
        mine["episode"] = shown(counts[:, EPISODE])
        mine["map_id"] = shown(counts[:, MAP])

    pose: F8
    """True poses, (n, m, 3) for m robots: m, m, rad."""
    odom: F8
    """Poses by odometry, each in the frame that begins where its robot began the episode, (n, m, 3): m, m, rad."""
    vel: F8
    """Velocities forward, leftward and of rotation in robots' own frames, (n, m, 3): m/s, m/s, rad/s."""
    box_pose: F8
    """True poses of the boxes, (n, b, 3) for b boxes: m, m, rad."""
    box_vel: F8
    """Velocities of the boxes in their own frames, (n, b, 3): m/s, m/s, rad/s."""
    ranges: NDArray[Any]
    """Readings of all `sensors` of each robot one behind the other, (n, m, R), m; NaN where a robot has fewer than R."""
    contact: I1
    """What stopped each robot in the last call of `step`, (n, m) int8: 0 nothing, 1 a wall, 2 another robot or a box (`Contact`)."""
    other: I8
    """Which robot that was, (n, m); box j is m + j, −1 none."""
    command: F8
    """Velocities that robots are to have, (n, m, 3), to be written: forward and leftward, m/s; turn rate, rad/s. Episodes begin with 0."""
    state: U1
    """All that a step hands on to the next one, with the readings, (n, S) bytes, to be written: ``worlds.state[5] = worlds.state[3]`` lets
    world 5 go on from where world 3 is, and ``state.copy()`` keeps all. For worlds of the same arguments only."""
    tick: I8
    """Steps done in the present episode, (n,)."""
    episode: I8
    """Number of the present episode, (n,); the first one is 0."""
    map_id: I8
    """Number of the map of each world, (n,)."""

    def __len__(self) -> int:
        return len(self._seeds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Worlds: {len(self)} of {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the first worlds, and the first robot of each."""
        rows = [
            (i, self.seeds[i], self.episode[i], self.tick[i], self.map_id[i], *pose, Contact(int(kind)).name.lower())
            for i, (pose, kind) in enumerate(
                zip(self.pose[: MAX_ROWS + 1, 0].tolist(), self.contact[: MAX_ROWS + 1, 0].tolist(), strict=True)
            )
        ]
        rows += [()] * (len(self) - len(rows))
        title = f"{len(self)} worlds of {', '.join(self.names)}, steps of {self.dt:g} s"
        heads = ("world", "seed", "episode", "tick", "map", "x, m", "y, m", "heading, rad", "contact")
        return page(title, heads, rows)

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return float(self._settings["step"])

    @property
    def seeds(self) -> U8:
        """Seeds of `Simulation` of the present episodes, (n,) uint64: of episode 0 that of the world. A copy."""
        return self._episode_seeds.copy()

    # -- time

    def step(self, k: int = 1, *, mask: Mask = None) -> None:
        """Advance all worlds, or those that `mask` says, by `k` steps; then all their sensors measure.

        Parameters
        ----------
        k : int
            Number of steps.
        mask : (n,) bool or int array, optional
            Which worlds, or their numbers.

        Raises
        ------
        ArgumentError
            An argument is wrong; or a command, a parameter or a state that was written is. Worlds that it concerns have not moved then, all
            others have.
        """
        if type(k) is not int or not 0 <= k <= MAX_STEPS:
            k = arguments.whole(k, "k", low=0, high=MAX_STEPS)
        chosen = None if mask is None else self._chosen(mask)
        with self._lock:
            self._use_maps()
            if self._log is not None:
                self._log.before(chosen, k)
            self._batch.step(k, chosen)
            if self._log is not None:
                self._log.after(chosen)
                if self._batch.has_failed:
                    self._log.take_back(self._failed(chosen))
            self._check(chosen)

    def reset(
        self,
        mask: Mask = None,
        *,
        seeds: ArrayLike | None = None,
        poses: ArrayLike | Literal["free"] | Starts | None = None,
        box_poses: ArrayLike | Starts | None = None,
        map_id: ArrayLike | None = None,
    ) -> None:
        """Begin the next episode of all worlds, or of those that `mask` says: all at rest at their starts, tick 0. Other worlds go on.

        Parameters
        ----------
        mask : (n,) bool or int array, optional
            Which worlds, or their numbers; what follows has a row for each of these k worlds, in the order of the numbers.
        seeds : int or (k,) array of ints, optional
            New seeds of the worlds that begin anew, with episode 0; without it, the number of their episode grows by one.
        poses : (k, m, 3) or (m, 3) array, "free", or callable, optional
            Where the robots begin: m, m, rad; "free": at places that `sample_free` draws in the new episode; a function gets the seeds
            of the new episodes, (k,) uint64, and gives such an array; else where `Simulation.add_robot` would put them.
        box_poses : (k, b, 3) or (b, 3) array, or callable, optional
            Where the boxes begin, in the same way; else where the map has them.
        map_id : int or (k,) array of ints, optional
            Numbers of maps; else each is drawn by the seed of the episode.

        Raises
        ------
        ArgumentError
            An argument is out of its range or of another shape, or there is no room: nothing has begun then. Or a parameter or a state that
            was written is wrong: all have begun then, but in the worlds that it concerns `ranges` are NaN.
        """
        chosen = np.arange(len(self)) if mask is None else self._chosen(mask)
        if not len(chosen):
            return
        is_next = seeds is None and map_id is None and box_poses is None
        with self._lock:
            if not (is_next and type(poses) is np.ndarray and self._restarted(chosen, poses)):
                self._reset(chosen, seeds, poses, box_poses, map_id)

    def _reset(
        self,
        chosen: I8,
        seeds: ArrayLike | None,
        poses: ArrayLike | Literal["free"] | Starts | None,
        box_poses: ArrayLike | Starts | None,
        map_id: ArrayLike | None,
    ) -> None:
        """`reset` of these worlds, however they are to begin."""
        k = len(chosen)
        is_free = isinstance(poses, str) and poses == "free"
        seeds_before = self._seeds[chosen]
        numbers = seeds_before if seeds is None else _seeds(seeds, k)
        episodes: I8 = self._episodes[chosen] + 1 if seeds is None else np.zeros(k, np.int64)
        given = None if is_free else _given(poses, "poses", numbers, episodes, len(self._specs))
        boxes = _given(box_poses, "box_poses", numbers, episodes, len(self.box_names))
        if map_id is None:
            maps = self._maps.numbers(numbers, episodes)
        else:
            maps = _array(map_id, "map_id", np.int64, (k,))
            if maps.min() < 0 or (self._maps.count is not None and maps.max() >= self._maps.count):
                raise ArgumentError(f"map_id: expected numbers of maps, found {int(maps.min())} … {int(maps.max())}")
        before = self._counts[chosen]
        after = before.copy()
        after[:, EPISODE], after[:, MAP], after[:, SAMPLES] = episodes, maps, 0
        self._counts[chosen] = after
        if seeds is not None:
            self._seeds[chosen] = numbers
        try:
            starts = self._starts_of_episodes(chosen, given, boxes, is_free=is_free)
        except BaseException:  # also of a function that makes maps
            self._counts[chosen], self._seeds[chosen] = before, seeds_before
            raise
        self._begin(chosen, starts)

    def _restarted(self, chosen: I8, poses: NDArray[Any]) -> bool:
        """`reset` for the usual case, by fewer calls: the next episodes of worlds in the only map, at given poses. False: it is another."""
        if (
            self._log is not None
            or not self._is_plain
            or poses.dtype.char != "d"
            or poses.shape != (len(chosen), len(self._specs), 3)
            or self._is_closed
            or not are_poses(poses)
        ):
            return False
        self._starts[chosen if len(chosen) > 1 else chosen.item()] = poses
        self._batch.begin(chosen, is_next=True)
        if self._batch.has_failed:
            self._check_begun(chosen)
        return True

    def _starts_of_episodes(self, chosen: I8, poses: F8 | None, boxes: F8 | None, *, is_free: bool) -> F8:
        """Put worlds into the maps whose numbers are set; where boxes and robots begin, (k, b + m, 3)."""
        self._use_maps(chosen)
        count = len(self.box_names)
        if (boxes is None and count) or (poses is None and not is_free):
            numbers = self._map_ids[chosen].tolist()
            of_map = {number: self._maps[number].starts for number in dict.fromkeys(numbers)}
            starts: F8 = np.stack([of_map[number] for number in numbers])
            boxes = starts[:, :count] if boxes is None else boxes
            poses = starts[:, count:] if poses is None else poses
        if is_free:
            poses = self._sampled(chosen, boxes if count else None, FREE_CLEARANCE_M, reachable=True)
        assert poses is not None
        return poses if boxes is None or not count else np.concatenate([boxes, poses], axis=1)

    def _begin(self, chosen: I8, poses: F8) -> None:
        """Begin episodes at these poses."""
        self._starts[chosen if len(chosen) > 1 else chosen.item()] = poses
        self._batch.begin(chosen)
        if self._log is not None:
            self._log.begin(chosen)
        self._check_begun(chosen)
        if not self._maps.are_all_there:
            self._maps.prepare(self._maps.numbers(self._seeds[chosen], self._episodes[chosen] + 1))

    def _use_maps(self, chosen: I8 | None = None) -> None:
        """Put worlds into the maps whose numbers they have; of `chosen` alone it is less work. NotNowError: all is closed."""
        if self._is_closed:
            raise NotNowError("these worlds are closed; world(i) gives a simulation that goes on")
        if self._has_maps and self._maps.count == 1:
            return
        if self._has_maps and chosen is not None and not self._maps.are_many:
            numbers = self._map_ids[chosen]
            if not self._batch.missing(numbers):
                self._batch.use_grids(chosen, numbers)
                return
        if self._batch.is_in(self._map_ids):
            return
        for number in self._batch.missing(self._map_ids):
            if number < 0 or (self._maps.count is not None and number >= self._maps.count):
                raise ArgumentError(f"state: there is no map {number}")
            self._batch.add_grid(number, self._maps[number].grid)
        # here all worlds move, also those whose state was written: a grid that is dropped is that of none
        for number in self._maps.spare(self._map_ids):
            self._batch.drop_grid(number)
        moved = self._batch.moved(self._map_ids)
        self._batch.use_grids(moved, self._map_ids[moved])
        self._has_maps = True

    def _chosen(self, mask: ArrayLike) -> I8:
        """Numbers of the worlds that a mask says; those that it names, in their order."""
        try:
            given = np.asarray(mask)
        except ValueError:  # rows of different lengths
            given = np.zeros(())
        if given.dtype.char == "?" and given.shape == self._shape:
            return given.nonzero()[0]
        if not given.size and given.ndim == 1:
            return np.zeros(0, np.int64)
        if given.dtype.kind in "iu" and given.ndim == 1:
            numbers = given.astype(np.int64)
            if are_different(numbers, len(self)):
                return numbers
        raise ArgumentError(
            f"mask: expected {len(self)} of True or False, or different numbers of worlds, found {arguments.found(mask)}"
        )

    def _check(self, chosen: I8 | None, *, begins: bool = False) -> None:
        """Raise ArgumentError if one of these worlds could not be advanced by the last call, or could not begin an episode."""
        if self._batch.has_failed:
            number = int(self._failed(chosen)[0])
            fault = Fault(int(self._batch.faults(None)[number]))
            end = "its episode has begun, without readings" if begins else "it has not moved"
            raise ArgumentError(f"world {number}: {self._words(fault, number)}; {end}")

    def _check_begun(self, chosen: I8) -> None:
        """`_check` after episodes have begun."""
        if self._batch.has_failed:
            failed = self._failed(chosen)
            for name, nothing in (("ranges", np.nan), ("contact_kind", Contact.NONE), ("other", -1)):
                self._batch.state.all(name)[failed] = nothing
            if self._log is not None:
                self._log.lose(failed)
            self._check(chosen, begins=True)

    def _words(self, fault: Fault, i: int) -> str:
        """What is wrong in a world."""
        live = {"pose": self.pose, "vel": self.vel, "command": self.command}
        sensors = [
            f"{_sensor_name(kind, index)} of {self.names[fan.row - len(self.box_names)]}"
            for (kind, index), fan in self._fans
        ]
        beams = [name for name, (_, fan) in zip(sensors, self._fans, strict=True) for _ in fan.bundles]

        def owners(name: str) -> Sequence[str]:
            return beams if name in BEAMS else sensors if name in DELAYS else self.names

        return words(
            fault, lambda name: (live[name] if name in live else self.param(name))[i], owners, self._late_steps, self.dt
        )

    def _failed(self, chosen: I8 | None) -> I8:
        """Numbers of those of these worlds that the last call could not advance."""
        failed = self._batch.faults(chosen).nonzero()[0]
        return failed if chosen is None else chosen[failed]

    def sample_free(self, mask: Mask = None, *, clearance: float = 0.1, reachable: bool = True) -> F8:
        """Draw places where the robots touch nothing: for starts, or for goals. Nothing moves.

        Draws are functions of seed and episode of each world, of the robot, and of the number of the call for the world in its episode.

        Parameters
        ----------
        mask : (n,) bool or int array, optional
            Which worlds, or their numbers; the places have the order of the numbers.
        clearance : float
            Each robot, as a circle, is at least so far from walls, from boxes, and from the others, m.
        reachable : bool
            All places are in one region of the map: that of the map's home if there is room for them, else the largest.

        Returns
        -------
        (k, m, 3) float64 array
            A pose for each robot of these k worlds: m, m, rad. Headings are uniform, and so are places in free space.

        Raises
        ------
        ArgumentError
            A parameter is wrong, or there is no room.
        """
        chosen = np.arange(len(self)) if mask is None else self._chosen(mask)
        clearance = checked_clearance(clearance)
        reachable = arguments.flag(reachable, "reachable")
        with self._lock:
            boxes = self.box_pose[chosen] if self.box_names else None
            self._use_maps()
            return self._sampled(chosen, boxes, clearance, reachable=reachable)

    def _sampled(self, chosen: I8, boxes: F8 | None, clearance: float, *, reachable: bool) -> F8:
        """Places in the maps that these worlds are in, by `sample_free` and `reset`."""
        if not len(chosen):
            return np.zeros((0, len(self._specs), 3))
        places = self._batch.draw(
            chosen,
            boxes,
            clearance,
            reachable,
            lambda number: self._maps[number].space(self._radii, clearance, reachable=reachable),
        )
        if self._batch.has_failed:
            raise ArgumentError(f"there is no room for {len(self._specs)} robots that are {clearance:g} m apart")
        return places

    def cast(
        self, xy: ArrayLike, bearing: ArrayLike, *, range_max: float, boxes: bool = True, out: F8 | None = None
    ) -> F8:
        """Ranges to walls from places in the worlds: for maps, and for particle filters. Robots are not seen.

        Parameters
        ----------
        xy : (n, k, 2) array
            k places in each world, m.
        bearing : (n, k) array
            Directions in the world, rad.
        range_max : float
            Where nothing is nearer, this is the range, m.
        boxes : bool
            Boxes are seen, too, where they are now.
        out : (n, k) float64 array, optional
            Where ranges are written.

        Returns
        -------
        (n, k) float64 array
            Exact ranges, m: `out`, or a new array.

        Raises
        ------
        ArgumentError
            An argument is not finite, out of its range or of another shape.
        """
        range_max = arguments.number(range_max, "range_max", low=0.0, high=1e6, unit="m")
        boxes = arguments.flag(boxes, "boxes")
        places = arguments.numbers(xy, "xy")
        n, k = len(self), places.shape[1] if places.ndim == 3 else 0
        places = np.ascontiguousarray(_array(places, "xy", np.float64, (n, k, 2)))
        directions = np.ascontiguousarray(_array(bearing, "bearing", np.float64, (n, k)))
        if not (np.abs(places) <= MAX_COORDINATE).all() or not (np.abs(directions) <= MAX_COORDINATE).all():
            raise ArgumentError(f"xy, bearing: expected numbers within ±{MAX_COORDINATE:g}")
        ranges = np.empty((n, k)) if out is None else out
        if (
            not isinstance(ranges, np.ndarray)
            or ranges.shape != (n, k)
            or ranges.dtype != np.float64
            or not ranges.flags.c_contiguous
            or not ranges.flags.writeable
        ):
            raise ArgumentError(
                f"out: expected a float64 array of shape {(n, k)}, contiguous, found {arguments.found(out)}"
            )
        with self._lock:
            self._use_maps()
            self._batch.cast(places, directions, range_max, ranges, boxes=boxes)
        return ranges

    def near_walls(self, xy: ArrayLike | None = None, *, reach: float, count: int = 8) -> F8:
        """The walls that stop robots and are nearest to places in the worlds: for methods that avoid them.

        Parameters
        ----------
        xy : (n, k, 2) array, optional
            k places in each world, m; without it where the robots are.
        reach : float
            Walls that are farther away are left out, m.
        count : int
            Number of walls, 1 … 64.

        Returns
        -------
        (n, k, count, 4) float64
            Their ends, x and y, m, the nearest first; NaN where there are fewer.

        Raises
        ------
        ArgumentError
            An argument is not finite, out of its range or of another shape.
        """
        reach = arguments.number(reach, "reach", low=0.0, high=MAX_WALL_REACH_M, unit="m")
        count = arguments.whole(count, "count", low=1, high=MAX_NEAR_WALLS)
        places = self.pose[:, :, :2] if xy is None else np.asarray(xy, np.float64)
        n, k = len(self), places.shape[1] if places.ndim == 3 else 0
        places = np.ascontiguousarray(_array(places, "xy", np.float64, (n, k, 2)))
        if not (np.abs(places) <= MAX_COORDINATE).all():
            raise ArgumentError(f"xy: expected numbers within ±{MAX_COORDINATE:g}")
        walls = np.empty((n, k, count, 4))
        with self._lock:
            self._use_maps()
            self._batch.near_walls(places, reach, walls)
        return walls

    # -- more of what a world is

    def param(self, name: str) -> NDArray[Any]:
        """The live array of a parameter, to be written: each world, and each robot or sensor, has its own. Resets leave them as they are.

        ===================================  ==========================================================================
        ``max_speed``, ``top_speed``         (n, m, 3): limits of speeds that count both, m/s, m/s, rad/s; 0 … 1000
        ``accel``, ``decel``                 (n, m, 3): ramps, m/s², m/s², rad/s²; 0 is immediate
        ``odometry_error_low``, ``…_high``   (n, m, 3): least and greatest proportional errors of odometry
        ``range_min``, ``range_max``         (n, b): limits of ranges of each laser, and each transducer of a ring, m
        ``range_noise``, ``bearing_noise``   (n, b): half-widths of their errors, m, rad
        ``range_missing``                    (n, b): shares of readings without a return, 0 … 1
        ``range_latency``, ``range_jitter``  (n, d): of readings of each laser and ring, s; jitter at most latency
        ``range_rate``                       (n, d): of measurements of each laser and ring, Hz; 0: in each step
        ``command_latency``, ``…_jitter``    (n, m): of commands, s; jitter at most latency
        ``command_rate``                     (n, m): of robots' control cycles, Hz; 0: each step is one
        ``command_scale``                    (n, m, 3): what velocity commands are multiplied by
        ``wheel_ratio``                      (n, m): right wheel's diameter by the left one's; 0.5 … 2
        ===================================  ==========================================================================

        Latencies may be up to `max_latency`, and rates below that of steps need it. Cycles and measurements are counted from tick 0 of
        each episode.

        Raises
        ------
        ArgumentError
            There is no parameter of that name.
        """
        arguments.one_of(name, "name", PARAMETERS)
        array = self._batch.state.all(PARAMETERS[name])
        array = array[:, self._robots] if PARAMETERS[name] in OF_BODIES else array
        return array[..., PARTS[name]] if name in PARTS else array

    def world(self, i: int) -> Simulation:
        """A simulation in the state of world `i`: it goes on as the world does, and is independent of it.

        Raises
        ------
        ArgumentError
            There is no world of that number.
        """
        i = arguments.whole(i, "i", low=0, high=len(self) - 1)
        with self._lock:
            return self._going_on(i)

    def _going_on(self, i: int) -> Simulation:
        """`world` of a number that is one."""
        sim = self._simulation(self._batch.state, i)
        # what was commanded since the last step, which the next one takes; others have their targets, or wait for what is under way
        of = {name: self._batch.state.of(i, name)[self._robots] for name in ("channel", "target", "sent_due")}
        scaled = self.command[i] * of["channel"][:, SCALE : SCALE + 3]
        news = (scaled != of["target"]).any(axis=1) | (of["sent_due"][:, COUNT] > 0)
        if news.any():
            v, vy, w = self.command[i, news].T.copy()
            sim.submit_velocities(SetVelocities(sim.fleet.robot_rows[news], v, w, vy))
        return sim

    def _simulation(self, state: Blocks, i: int) -> Simulation:
        """A simulation in the state of row `i`."""
        counts, start = state.of(i, "counts"), state.of(i, "start")
        seed = int(state.of(i, "seeds")[1])
        sim = Simulation(self._maps[int(counts[MAP])].scene, seed=seed, warn=_silent, **self._settings)
        for spec, name, (x, y, th) in zip(self._specs, self.names, start[self._robots].tolist(), strict=True):
            sim.add_robot(spec, name, pose=(x, y, th))
        for name, values, usual in zip(self.names, self._erring(state, i), self._usual, strict=True):
            sim.robots[name].set_parameters(**{key: value for key, value in values.items() if value != usual[key]})
        engine = sim.engine
        for name in State._fields:
            getattr(engine.state, name)[...] = state.of(i, name)
        if engine.dynamics is not None:
            engine.dynamics.load(*self._batch.masses(state, i))
        engine.clock.tick = int(counts[TICK])
        self._set_under_way(sim, Lateness._make(state.of(i, name) for name in Lateness._fields))
        engine.resumed()
        return sim

    def _erring(self, state: Blocks, i: int) -> list[dict[str, list[float]]]:
        """What robots and sensors err by in row `i`, as `_values` has it."""
        own = {}
        for name in PARAMETERS.keys() - COLUMNS.keys():
            array = state.of(i, PARAMETERS[name])
            array = array[self._robots] if PARAMETERS[name] in OF_BODIES else array
            own[name] = array[..., PARTS[name]] if name in PARTS else array
        return self._values(own)

    def _values(self, own: Mapping[str, NDArray[Any]]) -> list[dict[str, list[float]]]:
        """Parameters of each robot, as `Robot.set_parameters` takes them. `own`: those of a world, as `param` has them."""
        found: list[dict[str, list[float]]] = [{} for _ in self.names]
        for name in (*COLUMNS, *COMMANDS, "wheel_ratio"):
            if name in own:
                for values, numbers in zip(found, own[name], strict=True):
                    values[name] = np.atleast_1d(numbers).tolist()
        at = 0
        for g, ((kind, index), fan) in enumerate(self._fans):
            sensor, end = _sensor_name(kind, index), at + len(fan.bundles)
            for name in BEAMS:
                if name in own:
                    found[fan.row - len(self.box_names)][f"{name} {sensor}"] = own[name][at:end].tolist()
            for name in DELAYS:
                if name in own:
                    found[fan.row - len(self.box_names)][f"{name} {sensor}"] = [float(own[name][g])]
            at = end
        return found

    def _set_under_way(self, sim: Simulation, late: Lateness) -> None:
        """Let commands and readings that are under way in a world be so in a simulation."""
        tick = sim.tick
        for k, name in enumerate(self.names, start=len(self.box_names)):
            first, count = late.sent_due[k, FIRST], late.sent_due[k, COUNT]
            slots = [(first + n) % len(late.sent[k]) for n in range(count)]
            if slots:
                sim.engine.channels.resume(
                    name,
                    [
                        # before the commands of the next step, in this order; of which steps they are is not known
                        Sent(int(late.sent_due[k, SLOTS + at]), tick - count + n, API, n, SetVelocity(v, w, vy))
                        for n, at in enumerate(slots)
                        for v, vy, w in [late.sent[k, at].tolist()]
                    ],
                )
        for g, ((kind, index), fan) in enumerate(self._fans):
            first, count = late.late_due[g, 0, FIRST], late.late_due[g, 0, COUNT]
            span = slice(fan.out, fan.out + sum(bundle.n_readings for bundle in fan.bundles))
            slots = [(first + n) % len(late.late) for n in range(count)]
            if slots:
                key = self.names[fan.row - len(self.box_names)], kind, index
                due, measured = late.late_due[g, 1:].T
                sim._devices.resume(
                    key,
                    [
                        Late(
                            int(due[at]),
                            int(measured[at]),
                            late.late[at, span].copy(),
                            late.late_bright[at, span].copy(),
                        )
                        for at in slots
                    ],
                )

    # -- episodes again

    def keep_episodes(self) -> None:
        """Keep what is needed to do the last episodes of each world again, see `repeat`: from the next one of each on, or from tick 0.

        It takes 56 bytes for each call of `step`, robot and world, and two states of each world.
        """
        with self._lock:
            if self._log is None:
                self._log = EpisodeLog(
                    self.state,
                    self.pose,
                    self.command,
                    self._episode_seeds,
                    self.episode,
                    self.tick,
                    {n: self.param(n) for n in PARAMETERS},
                )

    def repeat(self, i: int, episode: int | None = None) -> Episode:
        """The present episode of a world, or the one before it, to be done again alone: ``worlds.repeat(5).record("run.mcap")``.

        All is the same, to the last bit: maps, starts, commands, and parameters that were written.

        Parameters
        ----------
        i : int
            Number of the world.
        episode : int, optional
            Number of the episode; without it, the present one, as far as it has come.

        Raises
        ------
        ArgumentError
            There is no world of that number.
        NotNowError
            The episode is not kept: `keep_episodes` was not called before it began, it is too long ago, or somebody has written `state`.
        """
        i = arguments.whole(i, "i", low=0, high=len(self) - 1)
        if self._log is None:
            raise NotNowError("repeat: call keep_episodes() first; episodes are kept from then on")
        episode = None if episode is None else arguments.whole(episode, "episode", low=0)
        with self._lock:
            kept = self._log.get(i, episode)
            begin = self._simulation(self._batch.kept_state(kept.state), 0)

        def write(sim: Simulation, written: Mapping[str, NDArray[Any]]) -> None:
            for name, values in zip(self.names, self._values(written), strict=True):
                sim.robots[name].set_parameters(**values)

        return Episode(begin, kept.number, kept.commands, kept.steps, kept.written, write)

    def close(self) -> None:
        """End all threads; so does the end of ``with Worlds(…) as worlds``. Steps and resets raise `NotNowError` then; arrays stay."""
        with self._lock:
            self._is_closed = True
            self._batch.close()
            self._maps.close()


def _silent(text: str) -> None:
    """Receives warnings: starts are mostly said later."""


def _check_supported(spec: RobotSpec) -> None:
    """Refuse robots with what worlds do not support."""
    has = {
        "grippers": spec.gripper is not None,
        "batteries that drain": spec.battery.capacity_wh > 0.0,
    }
    for feature, there in has.items():
        if there:
            raise ArgumentError(f"robots: {spec.name}: {feature} are not supported in Worlds; use Simulation")


def _sensor_name(kind: str, index: int) -> str:
    """Name of a sensor, by its kind and its number among those of its kind."""
    return kind if index == 0 else f"{kind}_{index + 1}"


def _delay_of(spec: RobotSpec, sensor: tuple[str, int]) -> Delay:
    """How late readings of a sensor of a robot can be had."""
    kind, index = sensor
    one = spec.lasers[index] if kind == "laser" else spec.sonar
    assert one is not None, "it has a fan"
    return Delay.of(one)


def _late_steps(specs: Sequence[RobotSpec], most: float | None, dt: float) -> int | None:
    """Steps of the greatest latency with jitter; None: there is none, nor a rate. ArgumentError: models have more than they may."""
    late = [one for spec in specs for one in (spec.commands, *spec.lasers, spec.sonar) if one is not None]
    greatest = max(one.latency + one.jitter for one in late)
    rates = [
        *(spec.commands.rate for spec in specs),
        *(one.measurement_rate for spec in specs for one in sensors_of(spec).values()),
    ]
    if most is None:
        if greatest == 0.0 and not any(is_slower(rate, dt) for rate in rates):
            return None
        most = greatest
    else:
        most = arguments.number(most, "max_latency", low=0.0, high=2.0 * MAX_LATENCY_S, unit="s")
        if greatest > most:
            raise ArgumentError(f"max_latency: expected at least that of the robots, {greatest:g} s, found {most:g} s")
    return int(delay_steps(most, 0.0, 0.0, dt))


def _check_devices(sim: Simulation) -> None:
    """Refuse devices that remember something, act by themselves, or change what others measure."""
    for table in sim.engine.tables.values():
        if table.optional or (len(table) and hasattr(table, "act") and not isinstance(table, Batteries)):
            raise ArgumentError(
                f'robots: devices with a state of their own ("{table.name}") are not supported in Worlds; use Simulation'
            )
    if sim._devices.is_distorted:
        raise ArgumentError("robots: error models of range sensors are not supported in Worlds; use Simulation")


def _sensors(specs: Sequence[RobotSpec], asked: Sequence[str] | None) -> list[tuple[str, int]]:
    """Kind and index of the sensors that measure."""
    lasers = max(len(spec.lasers) for spec in specs)
    known = {"laser" if k == 0 else f"laser_{k + 1}": ("laser", k) for k in range(lasers)}
    if any(spec.sonar is not None for spec in specs):
        known["sonar"] = "sonar", 0
    if asked is None:
        return [one for one in known.values() if one[0] == "laser"] or list(known.values())
    if isinstance(asked, str):
        raise ArgumentError(f'sensors: expected a list of names; one is a list, too: ["{asked}"]')
    names = arguments.several(asked, "sensors", "names")
    return [known[arguments.one_of(name, "sensors", known)] for name in names]


def _fans(
    specs: Sequence[RobotSpec], sensors: Sequence[tuple[str, int]], first: int, *, noise: bool
) -> tuple[list[tuple[tuple[str, int], Fan]], int]:
    """The range devices of all robots, whose rows begin at `first`, and the number of readings of each robot."""
    made: list[list[tuple[Bundle, ...]]] = []
    for kind, index in sensors:
        of_robots: list[tuple[Bundle, ...]] = []
        for spec in specs:
            if kind == "laser":
                of_robots.append((laser_bundle(spec.lasers[index], noise),) if index < len(spec.lasers) else ())
            else:
                of_robots.append(tuple(sonar_bundles(spec.sonar, noise)) if spec.sonar is not None else ())
        made.append(of_robots)
    sizes = [max(sum(b.n_readings for b in bundles) for bundles in of_robots) for of_robots in made]
    readings = sum(sizes)
    fans = []
    for row in range(len(specs)):
        for k, (kind, index) in enumerate(sensors):
            if made[k][row]:
                stream, senses = (
                    (LASER_STREAM + index, Visible.LASER) if kind == "laser" else (SONAR_STREAM, Visible.SONAR)
                )
                fans.append(
                    ((kind, index), Fan(first + row, stream, senses, row * readings + sum(sizes[:k]), made[k][row]))
                )
    return fans, readings


def _boxes(given: Sequence[BoxObject]) -> list[BoxObject]:
    """Checked boxes."""
    boxes = arguments.several(given, "boxes", "boxes")
    for box in boxes:
        arguments.instance(box, "boxes", BoxObject)
        check_pose(box.pose)
    return list(boxes)


def _given(poses: ArrayLike | Starts | None, what: str, seeds: U8, episodes: I8, count: int) -> F8 | None:
    """Where `count` bodies of worlds are to begin, (k, count, 3); None where nobody says it."""
    if poses is None:
        return None
    if callable(poses):
        poses = poses(episode_seeds(seeds, episodes))
    given: F8 = _array(poses, what, np.float64, (len(seeds), count, 3))
    if not are_poses(given):
        raise ArgumentError(f"{what}: expected finite numbers, and places within ±{MAX_COORDINATE:g} m")
    return given


def are_poses(poses: F8) -> bool:
    """Whether all poses, (…, 3), are finite, and their places within `MAX_COORDINATE`."""
    if poses.size <= FEW_NUMBERS:  # in less time than a call of NumPy
        for x, y, th in poses.reshape(-1, 3).tolist():
            if not (abs(x) <= MAX_COORDINATE and abs(y) <= MAX_COORDINATE and math.isfinite(th)):
                return False
        return True
    return bool(np.isfinite(poses).all() and (np.abs(poses[..., :2]) <= MAX_COORDINATE).all())


def are_different(numbers: I8, count: int) -> bool:
    """Whether numbers, (k,) with k > 0, are different ones of 0 … `count` − 1."""
    if len(numbers) <= FEW_NUMBERS:  # in less time than a call of NumPy
        listed = numbers.tolist()
        return min(listed) >= 0 and max(listed) < count and len(set(listed)) == len(listed)
    ordered = np.sort(numbers)
    return bool(ordered[0] >= 0 and ordered[-1] < count and (ordered[1:] != ordered[:-1]).all())


def _kind_of(dtype: DTypeLike) -> np.dtype[Any]:
    """The type of readings. ArgumentError: it is neither float32 nor float64."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(np.void)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ArgumentError(f"dtype: expected float32 or float64, found {arguments.found(dtype)}")
    return kind


def _seeds(given: ArrayLike, count: int) -> U8:
    """Seeds of worlds as 64-bit words."""
    try:
        found = np.asarray(given)
    except ValueError:  # rows of different lengths
        found = np.zeros(0)
    if found.ndim == 0:
        first = arguments.seed(given, "seeds")
        return np.uint64(first & 0xFFFF_FFFF_FFFF_FFFF) + np.arange(count, dtype=np.uint64)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise ArgumentError(f"seeds: expected a whole number, or {count} of them, found {arguments.found(given)}")
    return found.astype(np.uint64)


def _array(given: ArrayLike, what: str, kind: type[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers of a type, broadcast to a shape."""
    try:
        found = np.asarray(given)
        if found.dtype == kind and found.shape == shape:
            return found
        if found.dtype.kind not in ("iu" if kind is np.int64 else "iuf"):
            raise ValueError
        return np.broadcast_to(found.astype(kind), shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what}: expected an array of shape {shape}, found {arguments.found(given)}") from None


__all__ = ["Contact", "Worlds"]
