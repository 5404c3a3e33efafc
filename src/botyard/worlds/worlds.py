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
from typing import Any, Final, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from botyard.api import arguments
from botyard.engine.batchchecks import MAX_COORDINATE
from botyard.engine.batchlayout import (
    Contact,
)
from botyard.engine.kernels.delayrings import COUNT
from botyard.engine.kernels.latency import SCALE
from botyard.engine.layout import F8
from botyard.engine.rng import DEFAULT_SEED
from botyard.engine.velocities import SetVelocities
from botyard.errors import ArgumentError, BotyardError, NotNowError, WorldFaultError
from botyard.model.obstacles import BoxObject
from botyard.processes.parallel import lock
from botyard.sim.neighbours import Nearby, checked_count, nearby
from botyard.sim.probing import MAX_NEAR_WALLS, MAX_WALL_REACH_M
from botyard.sim.simulation import MAX_THREADS, Simulation
from botyard.worlds.arguments import (
    array_of,
    checked_boxes,
    kind_of_readings,
    places_of,
    seeds_of_worlds,
)
from botyard.worlds.batch import Batch
from botyard.worlds.copies import PARAMETERS, Copies
from botyard.worlds.maps import Maps, Scenes
from botyard.worlds.repeating import Episode, EpisodeLog
from botyard.worlds.robot_sets import Robots, RobotSets, slots_of
from botyard.worlds.starting import Mask, StartingWorlds
from botyard.worlds.workspaces import Plan

# A mistyped number must not allocate all memory of the computer.
MAX_WORLDS: Final = 1_000_000
"""Highest number of worlds in one object."""
MAX_MAP_POOL: Final = 1_000_000_000
"""Upper bound of `map_pool`."""
MAX_STEPS: Final = 1_000_000_000
"""Highest number of steps in one call."""


# A typed dictionary lets type checkers know the names behind `**errors`.
class Errors(TypedDict, total=False):
    """Error settings of all robots of worlds.

    Attributes
    ----------
    sensor_noise : bool
        Whether sensors have errors.
    odometry_error : str
        When errors of odometry are drawn; see `Simulation`.
    """

    sensor_noise: bool
    odometry_error: str


class Worlds(StartingWorlds):
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
        An item may also be a sequence of models: each episode uses one of them, drawn
        by its seed. ``["p3dx", ["amigo", "p3at"]]`` are two robots; ``[["p3dx", "p3at"]]``
        is one.
    n : int
        Number of worlds.
    seeds : int or (n,) array of ints
        Seed of each world; with one number s, world i has the seed s + i.
    step : float
        Simulated time of one step, s.
    threads : int
        Number of threads that step worlds; results are the same for any number. With
        fewer worlds than threads, several threads share a large world.
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
        Default: the highest one of the models. Values under way take the memory of as
        many scans as the latency has steps, and of two more. Rates of commands and
        measurements below the rate of steps also need it; 0 is enough for them.
    **errors
        ``sensor_noise`` and ``odometry_error`` as for `Simulation`.

    Raises
    ------
    ArgumentError
        A parameter is out of range or of another type, or maps have different boxes, or
        worlds do not support a part of a robot or a map: grippers, joints, draining
        batteries, error models of devices. A `Simulation` supports all of these.
    """

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

        # `Simulation` checks these settings when it is made for each robot set.
        settings: dict[str, Any] = {"step": step, **errors}
        own_seeds = seeds_of_worlds(seeds, n)
        first = np.zeros(n, np.int64)
        self._maps = Maps(scenes, map_pool, checked_boxes(boxes))
        # The first map gives the boxes, for which the rows of all worlds are laid out.
        number = int(self._maps.numbers(own_seeds[:1], first[:1])[0])
        self._robot_sets = RobotSets(
            slots, sensors, max_latency, self._maps[number].scene.boxes, settings
        )
        # Set after the robot sets exist; from now on the thread also searches start
        # poses.
        self._maps.robot_set = self._robot_sets[0]
        # The class refuses assignment to public attributes, so that a write goes to the
        # dictionary.
        vars(self).update(
            names=self._robot_sets.names, box_names=self._robot_sets.box_names
        )
        self._robots = slice(len(self.box_names), None)
        plan = Plan(
            robot_sets=self._robot_sets,
            boxes=len(self.box_names),
            readings=self._robot_sets.readings,
            dtype=kind,
            late_steps=self._robot_sets.late_steps,
            has_one_map=self._maps.count == 1,
        )
        self._is_closed = self._has_maps = False
        self._has_robot_sets = len(self._robot_sets) > 1
        self._is_plain = (
            self._maps.count == 1 and not self.box_names and not self._has_robot_sets
        )
        self._lock = lock()
        self._batch = Batch(plan, n, self._robot_sets.dt, threads)
        self._copies = Copies(self._batch, self._maps, self._robot_sets, settings)
        self._adopt()
        self._rows = self._batch.rows
        """Function that prepares calls of a kernel for all worlds; learning tasks use it."""
        self._log: EpisodeLog | None = None
        # Seeds and map numbers come first: the draws of the first episode depend on
        # them.
        self._seeds[:] = own_seeds
        everyone = np.arange(n)
        self._map_ids[:] = self._maps.numbers(own_seeds, first)
        robot_sets = self._robot_sets.drawn(own_seeds, first)
        self._robot_set_ids[:] = robot_sets
        self._begin(
            everyone,
            self._starts_of_episodes(everyone, None, None, is_free=False),
            robot_sets != 0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
            A written command, parameter or state is wrong. In this case, the affected
            worlds have not moved; all others have. The error's `faults` state the
            reason for each. The error is an ArgumentError.
        """
        # The usual plain number skips the full check, which takes a part of a short
        # step.
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

            # The log copies commands before the step, because the caller may change
            # them later.
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
                # A world that has not moved must not repeat this call.
                if self._batch.has_failed:
                    self._log.take_back(self._failed(chosen))

            faults = self._faults(chosen)
            if len(wrong):
                # The kernel has not run for worlds with invalid numbers, so it reports
                # no fault for them.
                faults |= {
                    i: self._describe_number(i)
                    for i in wrong.tolist()
                    if everyone is None or i in everyone
                }

            if faults:
                raise WorldFaultError(faults, "; the world has not moved")

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
            k places in each world, or the same k places in all worlds, m.
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

        # `not … <= …` also refuses NaN.
        if (
            not (np.abs(places) <= MAX_COORDINATE).all()
            or not (np.abs(directions) <= MAX_COORDINATE).all()
        ):
            raise ArgumentError(
                f"xy, bearing: expected numbers within ±{MAX_COORDINATE:g}, found "
                f"magnitudes up to {np.abs(places).max(initial=0.0):g} and "
                f"{np.abs(directions).max(initial=0.0):g}"
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
            k places in each world, or the same k places in all worlds, m. Default: the positions
            of the robots.
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
        # The negation of `<=` also refuses NaN.
        if not (np.abs(places) <= MAX_COORDINATE).all():
            raise ArgumentError(
                f"xy: expected numbers within ±{MAX_COORDINATE:g} m, found magnitudes up to "
                f"{np.abs(places).max():g}"
            )
        walls = np.empty((n, k, count, 4))
        with self._lock:
            self._refuse(self._settle())
            self._batch.near_walls(places, reach, walls)

        return walls

    def nearest(self, k: int = 1) -> Nearby:
        """Return the `k` nearest other robots of each robot, for observations.

        Robots at equal distances are in the order of `names`.

        Parameters
        ----------
        k : int
            Number of neighbours, 1 … 10,000.

        Returns
        -------
        Nearby
            Numbers of the robots, (n, m, k) int64; distances, (n, m, k), m; their poses
            in the frame of each robot, (n, m, k, 3): m, m, rad; their velocities along
            its axes, relative to the world, (n, m, k, 3): m/s, m/s, rad/s. Where there
            are fewer than `k` others: −1, inf and 0.

        Raises
        ------
        ArgumentError
            `k` is not a whole number from 1 to 10,000.
        """
        return nearby(self.pose, self.vel, checked_count(k))

    # -- Parameters and single worlds

    def world(self, i: int) -> Simulation:
        """Return an independent simulation that continues from the state of world `i`.

        Parameters
        ----------
        i : int
            Number of the world. A negative one is refused.

        Raises
        ------
        ArgumentError
            There is no world of that number, or its written state does not belong to
            these worlds.
        """
        i = arguments.whole(i, "i", low=0, high=len(self) - 1)
        with self._lock:
            # Only this world must be valid: a fault elsewhere is no reason to refuse
            # the copy.
            self._refuse(self._wrong_numbers(), np.array([i]))
            try:
                return self._copy_of_world(i)
            except BotyardError as error:
                raise ArgumentError(
                    f"world {i}: expected a state of these worlds, found another "
                    f"one: {error}"
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
        # Targets hold scaled commands, so that unscaled ones would always differ.
        scaled = self.command[i] * of["channel"][:, SCALE : SCALE + 3]
        news = (scaled != of["target"]).any(axis=1) | (
            of["sent_times"][:, 0, COUNT] > 0
        )

        if news.any():
            # Copy the rows, because they are live and the simulation may keep them.
            v, vy, w = self.command[i, news].T.copy()
            sim.core.accept_velocities(
                SetVelocities(sim.fleet.robot_rows[news], v, w, vy)
            )

        return sim

    # -- Repetition of episodes

    def keep_episodes(self) -> None:
        """Keep the data to repeat the last episodes of each world, see `repeat`.

        The record starts with the next episode of each world, or with the present one
        if its tick is 0. It takes 56 bytes per robot and call of `step` in each world,
        and two states of each world.
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

        Later steps and resets raise `NotNowError`; arrays stay valid.
        """
        with self._lock:
            self._is_closed = True
            # Within the lock, so that no step of another thread is under way.
            self._batch.close()
            self._maps.close()


__all__ = ["Contact", "Worlds"]
