"""Many worlds at once: arrays of thousands of simulations for learning and studies.

    import numpy as np, botyard

    worlds = botyard.Worlds("office", "p3dx", 1024, threads=2)
    while True:
        near = worlds.ranges[:, 0].min(axis=1) < 0.6
        worlds.command[:, 0, 0] = 0.3
        worlds.command[:, 0, 2] = np.where(near, 0.5, 0.0)
        worlds.step()
        worlds.reset(worlds.tick > 300)

Each world equals a `Simulation` with its seed, bit for bit. A step runs no Python code
per world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.engine.batchchecks import MAX_COORDINATE
from botyard.engine.batchlayout import (
    EPISODE,
    MAP,
    ROBOT_SET,
    SAMPLES,
    TICK,
    Contact,
    Fault,
)
from botyard.engine.commands import SetVelocities
from botyard.engine.kernels.latency import COUNT, SCALE
from botyard.engine.layout import F8, I1, I8, U1, U8
from botyard.engine.rng import DEFAULT_SEED
from botyard.errors import ArgumentError, BotyardError, NotNowError, WorldFaultError
from botyard.model.obstacles import BoxObject
from botyard.processes.parallel import lock
from botyard.sim.episodes import are_poses
from botyard.sim.freespace import checked_clearance
from botyard.sim.neighbours import Nearby, checked_count, nearby
from botyard.sim.notebook import MAX_ROWS, page
from botyard.sim.parameters import BEAMS, DELAYS
from botyard.sim.probing import MAX_NEAR_WALLS, MAX_WALL_REACH_M
from botyard.sim.simulation import MAX_THREADS, Simulation
from botyard.worlds.arguments import (
    Starts,
    are_different,
    array_of,
    checked_boxes,
    kind_of_readings,
    places_of,
    poses_of,
    seeds_of_worlds,
)
from botyard.worlds.batch import Batch
from botyard.worlds.copies import PARAMETERS, Copies, parameter
from botyard.worlds.faults import words
from botyard.worlds.maps import Maps, Scenes
from botyard.worlds.repeating import Episode, EpisodeLog
from botyard.worlds.robot_sets import Robots, RobotSets, name_of, slots_of
from botyard.worlds.workspaces import Plan

MAX_WORLDS: Final = 1_000_000
MAX_MAP_POOL: Final = 1_000_000_000
"""Upper bound of `map_pool`."""
FREE_CLEARANCE_M: Final = 0.1
"""Clearance of starts at free places, m."""
NO_WORLDS: Final[I8] = np.zeros(0, np.int64)
"""Empty array of world numbers."""
MAX_MAP: Final = 2**63 - 1
"""Upper bound of the number of a map."""
MAX_STEPS: Final = 1_000_000_000
"""Highest number of steps in one call."""
Mask = ArrayLike | None


class Errors(TypedDict, total=False):
    """Error settings of all robots of worlds."""

    sensor_noise: bool
    odometry_error: str


class Worlds(ReadOnly):
    """`n` worlds with the same robots, as arrays with a row for each world.

    All arrays except copies are live: a step writes them. Any thread may call the
    methods; calls wait for each other.

    Parameters
    ----------
    scenes : Scene, str, Path, sequence of them, or callable
        Map of all worlds; several maps, of which each episode uses one, drawn by its seed;
        or a function that makes the map of a number, which another thread calls.
    robots : str, Path, RobotSpec, or sequence of them
        Robots of each world, as for `Simulation.add_robot`: a model, or one for each robot.
        Several models may stand in the place of one; each episode uses one of them, drawn
        by its seed. ``["p3dx", ["amigo", "p3at"]]`` are two robots; ``[["p3dx", "p3at"]]``
        is one.
    n : int
        Number of worlds.
    seeds : int or (n,) array of ints
        Seed of each world; with one number s, world i has the seed s + i.
    step : float
        Simulated time of one step, s.
    threads : int
        Number of threads that step worlds; results are the same for any number.
    map_pool : int
        Number of maps of a function in use at a time: the first `map_pool` maps in the
        first `map_pool` episodes of each world, then the next ones.
    dtype : dtype
        Type of `ranges`: float32, the ranges of a simulation rounded once, or float64.
    sensors : sequence of str, optional
        Sensors of each robot that measure in every step: ``laser`` is its first laser,
        ``laser_2`` its second one, ``sonar`` its ring. Default: lasers, otherwise the ring.
    boxes : sequence of BoxObject
        Boxes that stand in all maps in addition to the map's own, as with
        `Simulation.add_box`. Boxes with mass (``dynamics``) can be pushed. All maps have
        the same boxes, at any poses.
    max_latency : float, optional
        Highest latency with jitter of commands and readings that `param` may set, s.
        Default: the highest one of the models. Values under way take memory: one scan for
        each step of latency, and two. Rates of commands and measurements below the rate of
        steps also need it; 0 is enough for them.
    **errors
        ``sensor_noise`` and ``odometry_error`` as for `Simulation`.

    Raises
    ------
    ArgumentError
        A parameter is out of range or of another type, or maps have different boxes, or
        worlds do not support a part of a robot or a map: grippers, joints, draining
        batteries, error models of devices. A `Simulation` supports all of these.
    """

    _copying: ClassVar[str] = (
        "keep a copy of the state (worlds.state.copy()), or copy one world "
        "(worlds.world(i))"
    )
    _instead: ClassVar[Mapping[str, str]] = (
        {
            name: f"write into it: worlds.{name}[...] = …"
            for name in ("command", "state")
        }
        | {
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
        | {
            "model_id": "call reset(model_id=…)",
            "seeds": "call reset(seeds=…)",
            "dt": "set the step when you make the worlds: Worlds(…, step=…)",
            "names": "they are the names of the robots",
            "box_names": "they are the names of the boxes",
        }
    )

    def __init__(
        self,
        scenes: Scenes,
        robots: Robots,
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
        kind = kind_of_readings(dtype)
        slots = slots_of(robots)
        # `**errors` would otherwise accept any name.
        unknown = sorted(errors.keys() - Errors.__annotations__.keys())
        if unknown:
            raise TypeError(
                f"Worlds() got an unexpected keyword argument '{unknown[0]}'"
            )

        # Checked by `Simulation`, which is made with them for each robot set.
        settings: dict[str, Any] = {"step": step, **errors}
        own_seeds = seeds_of_worlds(seeds, n)
        first = np.zeros(n, np.int64)
        self._maps = Maps(scenes, map_pool, checked_boxes(boxes))
        number = int(self._maps.numbers(own_seeds[:1], first[:1])[0])
        self._robot_sets = RobotSets(
            slots, sensors, max_latency, self._maps[number].scene.boxes, settings
        )
        self._maps.robot_set = self._robot_sets[0]
        vars(self).update(
            names=self._robot_sets.names, box_names=self._robot_sets.box_names
        )
        self._robots = slice(len(self.box_names), None)
        """Rows of robots, which follow the boxes."""
        plan = Plan(
            robot_sets=self._robot_sets,
            boxes=len(self.box_names),
            readings=self._robot_sets.readings,
            dtype=kind,
            late_steps=self._robot_sets.late_steps,
            has_one_map=self._maps.count == 1,
        )
        self._is_closed = self._has_maps = False
        self._has_lineups = len(self._robot_sets) > 1
        self._is_plain = (
            self._maps.count == 1 and not self.box_names and not self._has_lineups
        )
        self._lock = lock()
        """Lock that makes calls of several threads wait for each other.

        Otherwise one thread could drop the maps that another thread's steps read.
        """
        self._batch = Batch(plan, n, self._robot_sets.dt, threads)
        self._copies = Copies(self._batch, self._maps, self._robot_sets, settings)
        self._adopt()
        self._rows = self._batch.rows
        """Function that prepares calls of kernels for all worlds, for tasks."""
        self._log: EpisodeLog | None = None
        self._seeds[:] = own_seeds
        everyone = np.arange(n)
        self._map_ids[:] = self._maps.numbers(own_seeds, first)
        robot_sets = self._robot_sets.drawn(own_seeds, first)
        self._lineup_ids[:] = robot_sets
        self._begin(
            everyone,
            self._starts_of_episodes(everyone, None, None, is_free=False),
            robot_sets != 0,
        )

    def _adopt(self) -> None:
        """Make the public arrays from the arrays of the batch."""
        state = self._batch.state
        counts, seeds = state.all("counts"), state.all("seeds")
        self._counts: I8 = counts
        self._seeds: U8 = seeds[:, 0]
        self._shape = self._seeds.shape
        self._episode_seeds: U8 = seeds[:, 1]
        self._episodes: I8 = counts[:, EPISODE]
        self._map_ids: I8 = counts[:, MAP]
        self._lineup_ids: I8 = counts[:, ROBOT_SET]
        self._starts: F8 = state.all("start")
        mine, robots, boxes = vars(self), self._robots, slice(len(self.box_names))

        def shown(array: NDArray[Any]) -> NDArray[Any]:
            # Only kernels write these arrays; a view stays live.
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

    names: tuple[str, ...]
    """Names of the robots of each world."""
    box_names: tuple[str, ...]
    """Names of the boxes of each world."""
    pose: F8
    """True poses, (n, m, 3) for m robots: m, m, rad."""
    odom: F8
    """Poses by odometry, (n, m, 3): m, m, rad.

    Each is in a frame that starts at the robot's start pose of the episode.
    """
    vel: F8
    """Velocities in robot frames, (n, m, 3): m/s, m/s, rad/s.

    They are forward, leftward and turning velocities.
    """
    box_pose: F8
    """True poses of the boxes, (n, b, 3) for b boxes: m, m, rad."""
    box_vel: F8
    """Velocities of the boxes in their own frames, (n, b, 3): m/s, m/s, rad/s."""
    ranges: NDArray[Any]
    """Readings of all `sensors` of each robot in a row, (n, m, R), m.

    NaN fills the places of a robot with fewer than R readings.
    """
    contact: I1
    """Kind of obstacle that stopped each robot in the last call of `step`, (n, m) int8.

    0: none, 1: a wall, 2: another robot or a box (`Contact`).
    """
    other: I8
    """Number of that robot, (n, m); box j is m + j, −1 none."""
    command: F8
    """Commanded velocities, (n, m, 3), writable.

    They are forward and leftward, m/s; turn rate, rad/s. Episodes start with 0.
    """
    state: U1
    """Values that a step passes to the next one, with readings, (n, S) bytes, writable.

    ``worlds.state[5] = worlds.state[3]`` lets world 5 continue from the state of world
    3, and ``state.copy()`` keeps all. Only for worlds of the same arguments.
    """
    tick: I8
    """Number of steps done in the present episode, (n,)."""
    episode: I8
    """Number of the present episode, (n,); the first one is 0."""
    map_id: I8
    """Number of the map of each world, (n,)."""

    @property
    def model_id(self) -> I8:
        """Number of each robot's model among its possible models, (n, m). A copy."""
        if not self._has_lineups:
            return np.zeros((len(self), len(self.names)), np.int64)
        return self._robot_sets.models[self._lineup_ids]

    def __len__(self) -> int:
        return len(self._seeds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Worlds: {len(self)} of {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        """Return the table for notebooks: first worlds, and first robot of each."""
        rows = [
            (
                i,
                self.seeds[i],
                self.episode[i],
                self.tick[i],
                self.map_id[i],
                *pose,
                Contact(int(kind)).name.lower(),
            )
            for i, (pose, kind) in enumerate(
                zip(
                    self.pose[: MAX_ROWS + 1, 0].tolist(),
                    self.contact[: MAX_ROWS + 1, 0].tolist(),
                    strict=True,
                )
            )
        ]
        # Empty rows stand for the omitted worlds, because the table shows only their
        # number.
        rows += [()] * (len(self) - len(rows))
        title = f"{len(self)} worlds of {', '.join(self.names)}, steps of {self.dt:g} s"
        heads = (
            "world",
            "seed",
            "episode",
            "tick",
            "map",
            "x, m",
            "y, m",
            "heading, rad",
            "contact",
        )
        return page(title, heads, rows)

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return self._robot_sets.dt

    @property
    def seeds(self) -> U8:
        """`Simulation` seeds of the present episodes, (n,) uint64. A copy.

        The seed of episode 0 is the seed of the world.
        """
        return self._episode_seeds.copy()

    # -- Time

    def step(self, k: int = 1, *, mask: Mask = None) -> None:
        """Advance all worlds, or the masked ones, by `k` steps.

        All their sensors measure at the end.

        Parameters
        ----------
        k : int
            Number of steps.
        mask : (n,) bool or int array, optional
            Which worlds, or their numbers.

        Raises
        ------
        ArgumentError
            An argument is wrong.
        WorldFaultError
            A written command, parameter or state is wrong. The affected worlds have not moved
            then; all others have. Its `faults` state the reason for each. It is an
            ArgumentError.
        """
        if type(k) is not int or not 0 <= k <= MAX_STEPS:
            k = arguments.whole(k, "k", low=0, high=MAX_STEPS)
        chosen = None if mask is None else self._chosen(mask)
        with self._lock:
            # The caller may have written numbers of maps or models into `state`.
            wrong = self._settle()
            if len(wrong):
                chosen, everyone = (
                    # The kernel must not run for worlds with invalid numbers.
                    np.setdiff1d(
                        np.arange(len(self)) if chosen is None else chosen, wrong
                    ),
                    chosen,
                )

            if self._log is not None:
                self._log.before(chosen, k)
            try:
                self._batch.step(k, chosen)
            # After an interrupt such as Ctrl-C, the progress of the worlds is unknown.
            except BaseException:
                if self._log is not None:
                    self._log.lose(np.arange(len(self)) if chosen is None else chosen)
                raise

            if self._log is not None:
                self._log.after(chosen)
                if self._batch.has_failed:
                    self._log.take_back(self._failed(chosen))

            faults = self._faults(chosen)
            if len(wrong):
                # Worlds with invalid numbers were not called, so that the kernel knows
                # no fault.
                faults |= {
                    i: self._describe_number(i)
                    for i in wrong.tolist()
                    if everyone is None or i in everyone
                }

            if faults:
                raise WorldFaultError(faults, "; it has not moved")

    def reset(
        self,
        mask: Mask = None,
        *,
        seeds: ArrayLike | None = None,
        poses: ArrayLike | Literal["free"] | Starts | None = None,
        box_poses: ArrayLike | Starts | None = None,
        map_id: ArrayLike | None = None,
        model_id: ArrayLike | None = None,
    ) -> None:
        """Start the next episode of all worlds, or of the masked ones.

        All bodies are at rest at their starts, and the tick is 0.

        Parameters
        ----------
        mask : (n,) bool or int array, optional
            Which worlds, or their numbers; the following arguments have a row for each of these
            k worlds, in the order of the numbers.
        seeds : int or (k,) array of ints, optional
            New seeds of the worlds, which start with episode 0. Without them, the number of
            their episode grows by one.
        poses : (k, m, 3) or (m, 3) array, "free", or callable, optional
            Start poses of the robots: m, m, rad. "free": places that `sample_free` draws in the
            new episode. A function gets the seeds of the new episodes, (k,) uint64, and returns
            such an array. Default: the places that `Simulation.add_robot` would choose.
        box_poses : (k, b, 3) or (b, 3) array, or callable, optional
            Start poses of the boxes, in the same form. Default: their poses in the map.
        map_id : int or (k,) array of ints, optional
            Numbers of maps. Default: drawn by the seed of the episode.
        model_id : (k, m) or (m,) array of ints, optional
            Number of each robot's model among the models that it may have. Default: drawn by
            the seed of the episode. A world in which a robot gets another model has the
            parameters (`param`) of its models again.

        Raises
        ------
        ArgumentError
            An argument is out of range or of another shape, or there is no room. No episode has
            started then.
        WorldFaultError
            A written parameter or state is wrong. All episodes have started then, but in the
            affected worlds `ranges` are NaN. Its `faults` state the reason for each. It is an
            ArgumentError.
        """
        chosen = np.arange(len(self)) if mask is None else self._chosen(mask)
        if not len(chosen):
            return
        is_next = (
            seeds is None and map_id is None and box_poses is None and model_id is None
        )
        with self._lock:
            if not (
                is_next
                and type(poses) is np.ndarray
                and self._reset_plain(chosen, poses)
            ):
                self._reset(chosen, seeds, poses, box_poses, map_id, model_id)

    def _reset(
        self,
        chosen: I8,
        seeds: ArrayLike | None,
        poses: ArrayLike | Literal["free"] | Starts | None,
        box_poses: ArrayLike | Starts | None,
        map_id: ArrayLike | None,
        model_id: ArrayLike | None,
    ) -> None:
        """Start the next episode of these worlds; see `reset`."""
        k = len(chosen)
        is_free = isinstance(poses, str) and poses == "free"
        seeds_before = self._seeds[chosen]
        numbers = seeds_before if seeds is None else seeds_of_worlds(seeds, k)
        episodes: I8 = (
            self._episodes[chosen] + 1 if seeds is None else np.zeros(k, np.int64)
        )
        given = (
            None
            if is_free
            else poses_of(poses, "poses", numbers, episodes, len(self.names))
        )
        boxes = poses_of(box_poses, "box_poses", numbers, episodes, len(self.box_names))
        if map_id is None:
            maps = self._maps.numbers(numbers, episodes)
        else:
            maps = array_of(map_id, "map_id", np.int64, (k,))
            most = MAX_MAP if self._maps.count is None else self._maps.count - 1
            if maps.min() < 0 or maps.max() > most:
                found = maps[(maps < 0) | (maps > most)][0]
                raise ArgumentError(
                    f"map_id: expected 0 … {most}, the numbers of maps, found {found}"
                )

        robot_sets = (
            self._robot_sets.drawn(numbers, episodes)
            if model_id is None
            else self._robot_sets.numbers(model_id, k)
        )
        before = self._counts[chosen]
        after = before.copy()
        after[:, EPISODE], after[:, MAP], after[:, SAMPLES], after[:, ROBOT_SET] = (
            episodes,
            maps,
            0,
            robot_sets,
        )
        # Written before the starts are drawn, because draws depend on the episode.
        self._counts[chosen] = after
        if seeds is not None:
            self._seeds[chosen] = numbers
        try:
            starts = self._starts_of_episodes(chosen, given, boxes, is_free=is_free)
        except BaseException:
            # A function that makes maps may also raise. Restore the numbers as they
            # were.
            self._counts[chosen], self._seeds[chosen] = before, seeds_before
            raise

        self._begin(chosen, starts, robot_sets != before[:, ROBOT_SET])

    def _reset_plain(self, chosen: I8, poses: NDArray[Any]) -> bool:
        """Reset worlds in the usual case with fewer calls; False for other cases.

        The usual case is the next episode in the only map, at given poses.
        """
        if (
            self._log is not None
            or not self._is_plain
            or poses.dtype.char != "d"
            or poses.shape != (len(chosen), len(self.names), 3)
            or self._is_closed
            or not are_poses(poses)
        ):
            return False

        self._starts[chosen if len(chosen) > 1 else chosen.item()] = poses
        self._batch.begin(chosen, is_next=True)
        if self._batch.has_failed:
            self._check_begun(chosen)
        return True

    def _starts_of_episodes(
        self, chosen: I8, poses: F8 | None, boxes: F8 | None, *, is_free: bool
    ) -> F8:
        """Move worlds to the maps of their numbers.

        Returns the start poses of boxes and robots, (k, b + m, 3): m, m, rad.
        """
        self._refuse(self._settle(chosen), chosen)
        count = len(self.box_names)
        if (boxes is None and count) or (poses is None and not is_free):
            keys = list(
                zip(
                    self._map_ids[chosen].tolist(),
                    self._lineup_ids[chosen].tolist(),
                    strict=True,
                )
            )
            of = {
                key: self._maps[key[0]].starts(self._robot_sets[key[1]])
                for key in dict.fromkeys(keys)
            }
            starts: F8 = np.stack([of[key] for key in keys])
            boxes = starts[:, :count] if boxes is None else boxes
            poses = starts[:, count:] if poses is None else poses

        # Drawn after the boxes are known, because robots keep clear of them.
        if is_free:
            poses = self._sampled(
                chosen, boxes if count else None, FREE_CLEARANCE_M, reachable=True
            )

        assert poses is not None
        return (
            poses
            if boxes is None or not count
            else np.concatenate([boxes, poses], axis=1)
        )

    def _begin(self, chosen: I8, poses: F8, is_other: NDArray[np.bool_]) -> None:
        """Start episodes at these poses.

        `is_other` marks the worlds, (k,), whose models differ from before.
        """
        if self._has_lineups:
            # Worlds with other models start from the initial state of their robot set.
            self._batch.equip(chosen[is_other])
        self._starts[chosen if len(chosen) > 1 else chosen.item()] = poses
        self._batch.begin(chosen)
        if self._log is not None:
            self._log.begin(chosen)
        self._check_begun(chosen)
        # The thread makes the maps of the next episodes while this one runs.
        if not self._maps.are_all_there:
            self._maps.prepare(
                self._maps.numbers(self._seeds[chosen], self._episodes[chosen] + 1)
            )

    def _settle(self, chosen: I8 | None = None) -> I8:
        """Give worlds the maps and robots of their numbers.

        If possible, only the worlds in `chosen` are treated.

        Raise NotNowError if the worlds are closed. Returns the worlds whose written
        state has invalid numbers. Kernels must not be called for them.
        """
        if self._is_closed:
            raise NotNowError(
                "these worlds are closed; world(i) returns a simulation that continues"
            )

        if self._is_settled(chosen):
            return NO_WORLDS
        wrong, maps, robot_sets = self._wrong_numbers(), self._map_ids, self._lineup_ids
        # Worlds with invalid numbers get valid arrays, because every row of arguments
        # is read.
        if len(wrong):
            maps, robot_sets = maps.copy(), robot_sets.copy()
            # Any valid number serves; a map in use need not be made.
            maps[wrong] = np.delete(maps, wrong)[0] if len(wrong) < len(maps) else 0
            robot_sets[wrong] = 0

        self._use_maps(maps)
        if self._has_lineups and not self._batch.has_lineups(robot_sets):
            self._batch.use_lineups(robot_sets)
        return wrong

    def _is_settled(self, chosen: I8 | None) -> bool:
        """Return whether worlds have the maps and robots of their numbers.

        With `chosen`, only these worlds are checked.
        """
        if not self._has_maps or (
            self._has_lineups and not self._batch.has_lineups(self._lineup_ids)
        ):
            return False

        # With one map the kernels check the number.
        if self._maps.count == 1:
            return True
        if chosen is not None and not self._maps.are_many:
            numbers = self._map_ids[chosen]
            if not self._batch.missing(numbers):
                self._batch.use_grids(chosen, numbers)
                return True

        return self._batch.is_in(self._map_ids)

    def _wrong_numbers(self) -> I8:
        """Return the worlds whose map or robot set has a number that does not exist."""
        wrong = self._map_ids < 0
        if self._maps.count is not None:
            wrong |= self._map_ids >= self._maps.count
        if self._has_lineups:
            wrong |= (self._lineup_ids < 0) | (
                self._lineup_ids >= len(self._robot_sets)
            )

        return np.flatnonzero(wrong)

    def _refuse(self, wrong: I8, chosen: I8 | None = None) -> None:
        """Raise WorldFaultError if `wrong` (see `_settle`) has one of these worlds."""
        if len(wrong) and chosen is not None:
            wrong = np.intersect1d(wrong, chosen)
        if len(wrong):
            raise WorldFaultError({i: self._describe_number(i) for i in wrong.tolist()})

    def _describe_number(self, i: int) -> str:
        """Describe the invalid number of a map or of models of a world (see `_settle`)."""
        number, none, count = self._map_ids[i], "there is no map", self._maps.count
        if number >= 0 and (count is None or number < count):
            # The map is valid, so that the number of the models is wrong.
            number, none, count = (
                self._lineup_ids[i],
                "there are no models of number",
                len(self._robot_sets),
            )

        known = "" if count is None else f" among 0 … {count - 1}"
        return f"{none} {number}{known}, as its state says"

    def _use_maps(self, numbers: I8) -> None:
        """Move worlds to the existing maps of their numbers."""
        for number in self._batch.missing(numbers):
            self._batch.add_grid(number, self._maps[number].grid)
        # All worlds move here, also worlds with a written state, so that no world uses
        # a dropped grid.
        for number in self._maps.spare(numbers):
            self._batch.drop_grid(number)
        moved = self._batch.moved(numbers)
        self._batch.use_grids(moved, numbers[moved])
        self._has_maps = True

    def _chosen(self, mask: ArrayLike) -> I8:
        """Return the numbers of the masked worlds; numbers in a mask keep their order."""
        try:
            given = np.asarray(mask)
        # NumPy refuses rows of different lengths.
        except ValueError:
            given = np.zeros(())

        # The usual mask of a training loop comes first.
        if given.dtype.char == "?" and given.shape == self._shape:
            return given.nonzero()[0]
        if not given.size and given.ndim == 1:
            return np.zeros(0, np.int64)
        # Bytes are refused, because the caller may mean flags.
        if given.dtype.kind in "iu" and given.dtype.char != "B" and given.ndim == 1:
            numbers = given.astype(np.int64)
            if are_different(numbers, len(self)):
                return numbers

        raise ArgumentError(
            f"mask: expected {len(self)} of True or False, or different numbers "
            f"of worlds, found {arguments.found(mask)}"
        )

    def _faults(self, chosen: I8 | None) -> dict[int, str]:
        """Return the reason for each of these worlds for which the last call failed."""
        if not self._batch.has_failed:
            return {}
        faults = self._batch.faults(None)
        return {
            i: self._describe_fault(Fault(int(faults[i])), i)
            for i in self._failed(chosen).tolist()
        }

    def _check_begun(self, chosen: I8) -> None:
        """Raise WorldFaultError if one of these worlds could not start an episode."""
        if self._batch.has_failed:
            failed = self._failed(chosen)
            for name, nothing in (
                ("ranges", np.nan),
                ("contact_kind", Contact.NONE),
                ("other", -1),
            ):
                # Readings of the previous episode must not pass for the new one's.
                self._batch.state.all(name)[failed] = nothing

            if self._log is not None:
                self._log.lose(failed)
            raise WorldFaultError(
                self._faults(chosen), "; its episode has started, without readings"
            )

    def _describe_fault(self, fault: Fault, i: int) -> str:
        """Describe the fault of a world."""
        drive = self._batch.state.all("drive")[:, self._robots]
        live = {
            "pose": self.pose,
            "vel": self.vel,
            "command": self.command,
            "drive": drive,
        }
        robot_set = self._robot_sets[self._copies.number_in(self._batch.state, i)]
        fans = list(zip(robot_set.sensors, robot_set.fans, strict=True))
        sensors = [
            f"{name_of(sensor)} of {self.names[fan.row - len(self.box_names)]}"
            for sensor, fan in fans
        ]
        beams = [
            name
            for name, fan in zip(sensors, robot_set.fans, strict=True)
            for _ in fan.bundles
        ]

        def owners(name: str) -> Sequence[str]:
            return beams if name in BEAMS else sensors if name in DELAYS else self.names

        def values(name: str) -> NDArray[Any]:
            found: NDArray[Any] = (live[name] if name in live else self.param(name))[i]
            # With other models there may be more sensors.
            return found[
                : len(beams)
                if name in BEAMS
                else len(sensors)
                if name in DELAYS
                else None
            ]

        return words(fault, values, owners, self._robot_sets.late_steps, self.dt)

    def _failed(self, chosen: I8 | None) -> I8:
        """Return the numbers of these worlds for which the last call failed."""
        failed = self._batch.faults(chosen).nonzero()[0]
        return failed if chosen is None else chosen[failed]

    def sample_free(
        self, mask: Mask = None, *, clearance: float = 0.1, reachable: bool = True
    ) -> F8:
        """Draw places at which the robots touch nothing, for starts or for goals.

        Nothing moves. Draws are functions of seed and episode of each world, of the
        robot, and of the number of the call for the world in its episode.

        Parameters
        ----------
        mask : (n,) bool or int array, optional
            Which worlds, or their numbers; places have the order of the numbers.
        clearance : float
            Least distance of each robot, as a circle, from walls, boxes, and other robots, m.
        reachable : bool
            Whether all places of a robot must be in one region of the map. It is the region of
            the map's home, otherwise the largest one within its walls. See
            `Simulation.random_free_poses`, also for places in open worlds.

        Returns
        -------
        (k, m, 3) float64 array
            Pose of each robot of these k worlds: m, m, rad. Places are uniform in free space,
            and headings are uniform.

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
            self._refuse(self._settle(), chosen)
            return self._sampled(chosen, boxes, clearance, reachable=reachable)

    def _sampled(
        self, chosen: I8, boxes: F8 | None, clearance: float, *, reachable: bool
    ) -> F8:
        """Draw places in the maps of these worlds, for `sample_free` and `reset`."""
        if not len(chosen):
            return np.zeros((0, len(self.names), 3))
        places = self._batch.drawings.draw(
            chosen,
            boxes,
            clearance,
            reachable,
            lambda number, robot_set: self._maps[number].space(
                self._robot_sets[robot_set], clearance, reachable=reachable
            ),
        )
        if self._batch.has_failed:
            i = int(chosen[np.isnan(places).any(axis=(1, 2))][0])
            what = f"{len(self.names)} robots" if len(self.names) > 1 else "a robot"
            raise ArgumentError(
                f"world {i}: map {self._map_ids[i]} has no room for {what} with "
                f"{clearance:g} m around each"
            )

        return places

    def cast(
        self,
        xy: ArrayLike,
        bearing: ArrayLike,
        *,
        range_max: float,
        boxes: bool = True,
        out: F8 | None = None,
    ) -> F8:
        """Return ranges from places to walls, for mapping and particle filters.

        Robots are invisible.

        Parameters
        ----------
        xy : (n, k, 2) or (k, 2) array
            k places in each world, or the same in all of them, m.
        bearing : (n, k) array
            Directions in the world frame, rad.
        range_max : float
            Range returned if nothing is nearer, m.
        boxes : bool
            Whether boxes are visible, at their present poses.
        out : (n, k) float64 array, optional
            Array to write ranges into.

        Returns
        -------
        (n, k) float64 array
            Exact ranges, m: `out`, or a new array.

        Raises
        ------
        ArgumentError
            An argument is not finite, out of range or of another shape.
        """
        range_max = arguments.number(
            range_max, "range_max", low=0.0, high=1e6, unit="m"
        )
        boxes = arguments.flag(boxes, "boxes")
        places = places_of(xy, "xy", len(self))
        n, k = places.shape[:2]
        directions = np.ascontiguousarray(
            array_of(bearing, "bearing", np.float64, (n, k))
        )
        if (
            not (np.abs(places) <= MAX_COORDINATE).all()
            or not (np.abs(directions) <= MAX_COORDINATE).all()
        ):
            raise ArgumentError(
                f"xy, bearing: expected numbers within ±{MAX_COORDINATE:g}"
            )

        ranges = np.empty((n, k)) if out is None else out
        if (
            not isinstance(ranges, np.ndarray)
            or ranges.shape != (n, k)
            or ranges.dtype != np.float64
            # The kernel gets the address of each row.
            or not ranges.flags.c_contiguous
            or not ranges.flags.writeable
        ):
            raise ArgumentError(
                f"out: expected a float64 array of shape {(n, k)}, contiguous, "
                f"found {arguments.found(out)}"
            )

        with self._lock:
            self._refuse(self._settle())
            self._batch.cast(places, directions, range_max, ranges, boxes=boxes)

        return ranges

    def near_walls(
        self, xy: ArrayLike | None = None, *, reach: float, count: int = 8
    ) -> F8:
        """Return the walls nearest to places, for methods of collision avoidance.

        Only walls that stop robots count.

        Parameters
        ----------
        xy : (n, k, 2) or (k, 2) array, optional
            k places in each world, or the same in all of them, m. Default: the positions of the
            robots.
        reach : float
            Greatest distance of a wall, m.
        count : int
            Number of walls, 1 … 64.

        Returns
        -------
        (n, k, count, 4) float64
            Ends of walls, x and y, m, nearest first; NaN fills missing walls.

        Raises
        ------
        ArgumentError
            An argument is not finite, out of range or of another shape.
        """
        reach = arguments.number(
            reach, "reach", low=0.0, high=MAX_WALL_REACH_M, unit="m"
        )
        count = arguments.whole(count, "count", low=1, high=MAX_NEAR_WALLS)
        places = places_of(self.pose[:, :, :2] if xy is None else xy, "xy", len(self))
        n, k = places.shape[:2]
        if not (np.abs(places) <= MAX_COORDINATE).all():
            raise ArgumentError(f"xy: expected numbers within ±{MAX_COORDINATE:g}")
        walls = np.empty((n, k, count, 4))
        with self._lock:
            self._refuse(self._settle())
            self._batch.near_walls(places, reach, walls)

        return walls

    def nearest(self, k: int = 1) -> Nearby:
        """Return the `k` nearest other robots of each robot, for observations.

        Robots at equal distances are in the order of `names`.

        Returns
        -------
        Nearby
            Numbers of the robots, (n, m, k) int64; distances, (n, m, k), m; their poses in the
            frame of each robot, (n, m, k, 3): m, m, rad; their velocities along its axes,
            relative to the world, (n, m, k, 3): m/s, m/s, rad/s. Where there are fewer than `k`
            others: −1, inf and 0.

        Raises
        ------
        ArgumentError
            `k` is not a whole number from 1 to 10,000.
        """
        return nearby(self.pose, self.vel, checked_count(k))

    # -- Parameters and single worlds

    def param(self, name: str) -> NDArray[Any]:
        """Return the live, writable array of a parameter.

        Each world, and each robot or sensor, has its own value. Resets do not change
        them.

        ===================================  =================================================
        ``max_speed``, ``top_speed``         (n, m, 3): speed limits, both of which apply,
                                             m/s, m/s, rad/s; 0 … 1000
        ``accel``, ``decel``                 (n, m, 3): ramps, m/s², m/s², rad/s²; 0 is
                                             immediate
        ``odometry_error_low``, ``…_high``   (n, m, 3): least and greatest proportional
                                             errors of odometry
        ``range_min``, ``range_max``         (n, b): limits of ranges of each laser, and each
                                             transducer of a ring, m
        ``range_noise``, ``bearing_noise``   (n, b): half-widths of their errors, m, rad
        ``range_missing``                    (n, b): fraction of readings without a return,
                                             0 … 1
        ``range_latency``, ``range_jitter``  (n, d): latency and jitter of readings of each
                                             laser and ring, s; jitter at most latency
        ``range_rate``                       (n, d): measurement rate of each laser and ring,
                                             Hz; 0: in each step
        ``command_latency``, ``…_jitter``    (n, m): latency and jitter of commands, s;
                                             jitter at most latency
        ``command_rate``                     (n, m): rate of robots' control cycles, Hz; 0:
                                             each step is one
        ``command_scale``                    (n, m, 3): factors of velocity commands
        ``wheel_ratio``                      (n, m): diameter of the right wheel divided by
                                             the left one's; 0.5 … 2
        ===================================  =================================================

        Latencies may be up to `max_latency`, and rates below the rate of steps need it.
        Cycles and measurements are counted from tick 0 of each episode.

        Raises
        ------
        ArgumentError
            There is no parameter of that name.
        """
        arguments.one_of(name, "name", PARAMETERS)
        return parameter(self._batch.state, name, self._robots)

    def world(self, i: int) -> Simulation:
        """Return an independent simulation that continues from the state of world `i`.

        Raises
        ------
        ArgumentError
            There is no world of that number, or its written state does not belong to these
            worlds.
        """
        i = arguments.whole(i, "i", low=0, high=len(self) - 1)
        with self._lock:
            self._refuse(self._wrong_numbers(), np.array([i]))
            try:
                return self._copy_of_world(i)
            except BotyardError as error:
                raise ArgumentError(
                    f"world {i}: its state does not belong to these worlds: {error}"
                ) from error

    def _copy_of_world(self, i: int) -> Simulation:
        """Return the simulation of a world with a valid number."""
        sim = self._copies.simulation(self._batch.state, i)
        # The next step takes commands written since the last one. Robots without a new
        # command keep their targets, or wait for commands under way.
        of = {
            name: self._batch.state.of(i, name)[self._robots]
            for name in ("channel", "target", "sent_times")
        }
        scaled = self.command[i] * of["channel"][:, SCALE : SCALE + 3]
        news = (scaled != of["target"]).any(axis=1) | (
            of["sent_times"][:, 0, COUNT] > 0
        )
        if news.any():
            v, vy, w = self.command[i, news].T.copy()
            sim.core.accept_velocities(
                SetVelocities(sim.fleet.robot_rows[news], v, w, vy)
            )

        return sim

    # -- Repetition of episodes

    def keep_episodes(self) -> None:
        """Keep the data to repeat the last episodes of each world, see `repeat`.

        It starts with the next episode of each world, or at tick 0. It takes 56 bytes
        for each call of `step`, robot and world, and two states of each world.
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
        """Return the present episode of a world, or the previous one, for repetition.

        For example ``worlds.repeat(5).record("run.mcap")``. The repetition is the same
        to the last bit: maps, starts, commands, and written parameters.

        Parameters
        ----------
        i : int
            Number of the world.
        episode : int, optional
            Number of the episode. Default: the present one up to now.

        Raises
        ------
        ArgumentError
            There is no world of that number.
        NotNowError
            The episode is not kept: `keep_episodes` was not called before it started, it is too
            old, or `state` was written.
        """
        i = arguments.whole(i, "i", low=0, high=len(self) - 1)
        if self._log is None:
            raise NotNowError(
                "repeat: call keep_episodes() first; episodes are kept from then on"
            )

        episode = (
            None if episode is None else arguments.whole(episode, "episode", low=0)
        )
        with self._lock:
            kept = self._log.get(i, episode)
            state = self._batch.kept_state(kept.state)
            # Within the lock, because another thread may drop the map of the episode.
            begin, robot_set = (
                self._copies.simulation(state, 0),
                self._robot_sets[self._copies.number_in(state, 0)],
            )

        def write(sim: Simulation, written: Mapping[str, NDArray[Any]]) -> None:
            for name, values in zip(
                self.names, self._copies.values(robot_set, written), strict=True
            ):
                sim.robots[name].set_parameters(**values)

        return Episode(
            begin, kept.number, kept.commands, kept.steps, kept.written, write
        )

    def close(self) -> None:
        """End all threads, as ``with Worlds(…) as worlds`` does at its end.

        Later steps and resets raise `NotNowError`; arrays stay.
        """
        with self._lock:
            self._is_closed = True
            self._batch.close()
            self._maps.close()


__all__ = ["Contact", "Worlds"]
