"""Live arrays of many worlds, as programs read and write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.engine.batchlayout import (
    EPISODE,
    MAP,
    ROBOT_SET,
    TICK,
    Contact,
)
from botyard.engine.layout import F8, I1, I8, U1, U8
from botyard.sim.notebook import MAX_ROWS, page
from botyard.worlds.batch import Batch
from botyard.worlds.copies import PARAMETERS, parameter
from botyard.worlds.robot_sets import RobotSets


class WorldArrays(ReadOnly):
    """Live arrays of many worlds: poses, velocities, ranges, commands; row i belongs to world i."""

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
    names: tuple[str, ...]
    """Names of the robots, the same in each world."""
    box_names: tuple[str, ...]
    """Names of the boxes, the same in each world."""
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
    """Number of the robot or box that stopped each robot, (n, m).

    Box j has the number m + j; −1: none."""
    command: F8
    """Commanded velocities, (n, m, 3), writable.

    They are forward and leftward velocity, m/s, and turn rate, rad/s. Episodes start
    with 0.
    """
    state: U1
    """Values that a step passes to the next one, with readings, (n, S) bytes, writable.

    ``worlds.state[5] = worlds.state[3]`` lets world 5 continue from the state of world
    3, and ``state.copy()`` keeps all. A state fits only
    into `Worlds` made with the same arguments.
    """
    tick: I8
    """Number of steps done in the present episode, (n,)."""
    episode: I8
    """Number of the present episode, (n,); the first one is 0."""
    map_id: I8
    """Number of the map of each world, (n,)."""

    _batch: Batch
    _robot_sets: RobotSets
    _robots: slice
    """Rows of the robots among the bodies of a world; boxes come first."""
    _has_robot_sets: bool
    """Whether the worlds of this object can have different robot sets."""

    def _adopt(self) -> None:
        """Make the public arrays as views of the arrays of the batch."""
        # All of these arrays are views of one block: a step writes them without a copy.
        state = self._batch.state
        counts, seeds = state.all("counts"), state.all("seeds")
        self._counts: I8 = counts
        self._seeds: U8 = seeds[:, 0]
        self._shape = self._seeds.shape
        self._episode_seeds: U8 = seeds[:, 1]
        self._episodes: I8 = counts[:, EPISODE]
        self._map_ids: I8 = counts[:, MAP]
        self._robot_set_ids: I8 = counts[:, ROBOT_SET]
        self._starts: F8 = state.all("start")
        mine, robots, boxes = vars(self), self._robots, slice(len(self.box_names))

        def shown(array: NDArray[Any]) -> NDArray[Any]:
            # Programs only read these arrays; a view stays live.
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

    @property
    def model_id(self) -> I8:
        """Copy of the number of each robot's model among its possible models, (n, m)."""
        if not self._has_robot_sets:
            # No column exists in the common case, hence zeros of the documented shape.
            return np.zeros((len(self), len(self.names)), np.int64)
        return self._robot_sets.models[self._robot_set_ids]

    def __len__(self) -> int:
        return len(self._seeds)

    def __repr__(self) -> str:
        return f"<Worlds: {len(self)} of {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks: the first worlds, each with its first robot."""
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

        # Empty rows represent the omitted worlds, which the table only counts, not
        # shows.
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
        """Copy of the `Simulation` seeds of the present episodes, (n,) uint64.

        The seed of episode 0 is the seed of the world.
        """
        return self._episode_seeds.copy()

    def param(self, name: str) -> NDArray[Any]:
        """Return the live, writable array of a parameter.

        Each world, and each robot or sensor, has its own value. Resets do not change
        them.

        ``max_speed``, ``top_speed``
            (n, m, 3): speed limits, both of which apply, m/s, m/s, rad/s; 0 … 1000
        ``accel``, ``decel``
            (n, m, 3): ramps, m/s², m/s², rad/s²; 0 is immediate
        ``odometry_error_low``, ``odometry_error_high``
            (n, m, 3): least and greatest proportional errors of odometry
        ``range_min``, ``range_max``
            (n, b): limits of ranges of each laser, and each transducer of a ring, m
        ``range_noise``, ``bearing_noise``
            (n, b): half-widths of the errors of ranges, m, and bearings, rad
        ``range_missing``
            (n, b): fraction of readings without a return, 0 … 1
        ``range_latency``, ``range_jitter``
            (n, d): latency and jitter of readings of each laser and ring, s; jitter at
            most latency
        ``range_rate``
            (n, d): measurement rate of each laser and ring, Hz; 0: in each step
        ``command_latency``, ``command_jitter``
            (n, m): latency and jitter of commands, s; jitter at most latency
        ``command_rate``
            (n, m): rate of robots' control cycles, Hz; 0: each step is a cycle
        ``command_scale``
            (n, m, 3): factors of velocity commands
        ``wheel_ratio``
            (n, m): diameter of the right wheel divided by the left one's; 0.5 … 2

        Latencies may be up to `max_latency`, and rates below the rate of steps need it.
        Cycles and measurements are counted from tick 0 of each episode.

        Parameters
        ----------
        name : str
            Name of the parameter, from this list.

        Raises
        ------
        ArgumentError
            There is no parameter of that name.
        """
        arguments.one_of(name, "name", PARAMETERS)
        return parameter(self._batch.state, name, self._robots)
