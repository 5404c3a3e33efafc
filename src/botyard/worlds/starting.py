"""Starts of episodes of worlds: seeds, maps, models, and poses of boxes and robots."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.engine.batchlayout import (
    EPISODE,
    MAP,
    ROBOT_SET,
    SAMPLES,
)
from botyard.engine.layout import F8, I8
from botyard.errors import ArgumentError
from botyard.sim.episodes import are_poses
from botyard.sim.freespace import checked_clearance
from botyard.worlds.arguments import (
    Starts,
    array_of,
    poses_of,
    seeds_of_worlds,
)
from botyard.worlds.settling import SettledWorlds

FREE_CLEARANCE_M: Final = 0.1
"""Clearance of starts at free places, m."""
# Numbers of maps are stored as int64.
MAX_MAP: Final = 2**63 - 1
"""Upper bound of the number of a map."""
Mask = ArrayLike | None


class StartingWorlds(SettledWorlds):
    """Worlds whose episodes a program starts."""

    _lock: AbstractContextManager[bool]
    """Lock that makes calls of several threads wait for each other.

    Otherwise one thread could drop the maps that another thread's steps read.
    """
    _is_plain: bool
    """Whether all worlds have the same single map and robot set, and no boxes."""

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
            An argument is out of range or of another shape, or there is no room. In
            this case, no episode has started.
        WorldFaultError
            A written parameter or state is wrong. In this case, all episodes have
            started, but in the affected worlds `ranges` are NaN. The error's `faults`
            state the reason for each. The error is an ArgumentError.
        """
        chosen = np.arange(len(self)) if mask is None else self._chosen(mask)
        # A mask without a world is usual in training, and must cost nearly nothing.
        if not len(chosen):
            return
        is_next = (
            seeds is None and map_id is None and box_poses is None and model_id is None
        )

        with self._lock:
            # The short path serves the usual reset of a training loop; any other
            # argument needs all checks.
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
        """Start the next episode of worlds; see `reset`.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        seeds, poses, box_poses, map_id, model_id
            See `reset`.

        Raises
        ------
        ArgumentError
            An argument is out of range or of another shape. In this case, nothing has
            changed.
        """
        k = len(chosen)
        is_free = isinstance(poses, str) and poses == "free"
        # Keep the seeds, to restore the worlds if a map cannot be made.
        seeds_before = self._seeds[chosen]
        numbers = seeds_before if seeds is None else seeds_of_worlds(seeds, k)
        episodes: I8 = (
            # New seeds start a new series, whose first episode has number 0.
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
        # Count in a copy, because `before` restores the counts if no starts are found.
        after = before.copy()
        after[:, EPISODE], after[:, MAP], after[:, SAMPLES], after[:, ROBOT_SET] = (
            episodes,
            maps,
            0,
            robot_sets,
        )

        # Write the counts before the starts are drawn, because draws depend on the
        # episode.
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
        """Reset worlds in the usual case, with fewer calls of Python.

        The usual case is the next episode in the only map, at given poses. In any other
        case, nothing is done.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        poses : array
            Start poses of the robots; only (k, m, 3) float64 is usual.

        Returns
        -------
        bool
            Whether the worlds were reset. Otherwise nothing has changed.
        """
        if (
            self._log is not None
            or not self._is_plain
            or poses.dtype.char != "d"
            # Other shapes may be valid after broadcasting, which the long path does.
            or poses.shape != (len(chosen), len(self.names), 3)
            or self._is_closed
            or not are_poses(poses)
        ):
            return False

        # A plain index costs less in NumPy than an array with one element.
        self._starts[chosen if len(chosen) > 1 else chosen.item()] = poses
        self._batch.begin(chosen, is_next=True)
        if self._batch.has_failed:
            self._check_begun(chosen)
        return True

    def _starts_of_episodes(
        self, chosen: I8, poses: F8 | None, boxes: F8 | None, *, is_free: bool
    ) -> F8:
        """Move worlds to the maps named in their states, and return their start poses.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        poses : (k, m, 3) float64 or None
            Poses of the robots; None: the default ones, or drawn ones with `is_free`.
        boxes : (k, b, 3) float64 or None
            Poses of the boxes; None: their poses in the map.
        is_free : bool
            Whether to draw free places for the robots.

        Returns
        -------
        (k, b + m, 3) float64
            Start poses of boxes and robots: m, m, rad.

        Raises
        ------
        ArgumentError
            There is no room for a robot.
        """
        self._refuse(self._settle(chosen), chosen)
        count = len(self.box_names)
        if (boxes is None and count) or (poses is None and not is_free):
            keys = list(
                zip(
                    self._map_ids[chosen].tolist(),
                    self._robot_set_ids[chosen].tolist(),
                    strict=True,
                )
            )
            of = {
                key: self._maps[key[0]].starts(self._robot_sets[key[1]])
                # Many worlds share a map, whose starts are looked up once; unlike a
                # set, the order is repeatable.
                for key in dict.fromkeys(keys)
            }
            starts: F8 = np.stack([of[key] for key in keys])
            boxes = starts[:, :count] if boxes is None else boxes
            poses = starts[:, count:] if poses is None else poses

        # Draw after the boxes are known, because robots keep a distance from them.
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
        """Start episodes at given poses.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        poses : (k, b + m, 3) float64
            Poses of boxes and robots: m, m, rad.
        is_other : (k,) bool
            Worlds whose models differ from before.

        Raises
        ------
        WorldFaultError
            A written parameter is wrong.
        """
        # A single robot set needs no change of bodies.
        if self._has_robot_sets:
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

    def sample_free(
        self, mask: Mask = None, *, clearance: float = 0.1, reachable: bool = True
    ) -> F8:
        """Draw places at which the robots touch nothing, for starts or for goals.

        No body moves. Each draw depends on the seed and the episode of the world, on
        the robot, and on the number of calls for the world in its episode so far.

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
        """Draw places in the maps of worlds, for `sample_free` and `reset`.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        boxes : (k, b, 3) float64 or None
            Poses of the boxes, from which robots keep the clearance.
        clearance, reachable
            See `sample_free`.

        Returns
        -------
        (k, m, 3) float64
            Poses of the robots: m, m, rad.

        Raises
        ------
        ArgumentError
            There is no room for a robot.
        """
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
            # The kernel leaves NaN where it found no place.
            i = int(chosen[np.isnan(places).any(axis=(1, 2))][0])
            what = f"{len(self.names)} robots" if len(self.names) > 1 else "a robot"
            raise ArgumentError(
                f"world {i}: map {self._map_ids[i]} has no room for {what} with "
                f"{clearance:g} m around each"
            )

        return places
