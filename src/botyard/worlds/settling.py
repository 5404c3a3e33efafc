"""Maps and robots named in the states of worlds, and faults of written states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.engine.batchlayout import (
    Contact,
    Fault,
)
from botyard.engine.layout import I8
from botyard.errors import ArgumentError, NotNowError, WorldFaultError
from botyard.sim.parameters import BEAMS, DELAYS
from botyard.worlds.arguments import (
    are_different,
)
from botyard.worlds.copies import Copies
from botyard.worlds.faults import words
from botyard.worlds.maps import Maps
from botyard.worlds.repeating import EpisodeLog
from botyard.worlds.robot_sets import name_of
from botyard.worlds.worldarrays import WorldArrays

NO_WORLDS: Final[I8] = np.zeros(0, np.int64)
"""Empty array of world numbers."""


class SettledWorlds(WorldArrays):
    """Worlds that get the maps and robots whose numbers are in their states, before each call."""

    _maps: Maps
    _copies: Copies
    _log: EpisodeLog | None
    _is_closed: bool
    _has_maps: bool

    def _settle(self, chosen: I8 | None = None) -> I8:
        """Give worlds the maps and robots whose numbers are in their states.

        Parameters
        ----------
        chosen : (k,) int64, optional
            Worlds that a call is for; if possible, only these are treated.

        Returns
        -------
        (w,) int64
            Worlds whose written state has invalid numbers. Kernels must not be called
            for them.

        Raises
        ------
        NotNowError
            The worlds are closed.
        """
        if self._is_closed:
            raise NotNowError(
                "these worlds are closed: expected open ones; world(i) still returns world i "
                "as an independent simulation"
            )

        if self._is_settled(chosen):
            return NO_WORLDS
        wrong, maps, robot_sets = (
            self._wrong_numbers(),
            self._map_ids,
            self._robot_set_ids,
        )

        # Worlds with invalid numbers get valid arrays, because every row of arguments
        # is read.
        if len(wrong):
            # Work on copies, because the caller must find the wrong numbers in the live
            # state.
            maps, robot_sets = maps.copy(), robot_sets.copy()
            # Any valid number serves; a map in use need not be made.
            maps[wrong] = np.delete(maps, wrong)[0] if len(wrong) < len(maps) else 0
            robot_sets[wrong] = 0

        self._use_maps(maps)
        # Robot sets follow the maps, because the first map creates the table of
        # arguments.
        if self._has_robot_sets and not self._batch.has_robot_sets(robot_sets):
            self._batch.use_robot_sets(robot_sets)
        return wrong

    def _is_settled(self, chosen: I8 | None) -> bool:
        """Return whether worlds already have the maps and robots named in their states.

        With `chosen`, only these worlds are checked.
        """
        if not self._has_maps or (
            self._has_robot_sets and not self._batch.has_robot_sets(self._robot_set_ids)
        ):
            return False

        # With one map the kernels check the number.
        if self._maps.count == 1:
            return True
        # With few maps no grid is ever dropped, so the addresses of grids stay valid in
        # the other worlds: only the chosen worlds need new ones.
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
        if self._has_robot_sets:
            wrong |= (self._robot_set_ids < 0) | (
                self._robot_set_ids >= len(self._robot_sets)
            )

        return np.flatnonzero(wrong)

    def _refuse(self, wrong: I8, chosen: I8 | None = None) -> None:
        """Raise an error if worlds have invalid numbers.

        Parameters
        ----------
        wrong : (w,) int64
            Result of `_settle`.
        chosen : (k,) int64, optional
            Worlds that a call is for. Default: all worlds.

        Raises
        ------
        WorldFaultError
            One of the chosen worlds is in `wrong`.
        """
        if len(wrong) and chosen is not None:
            # A call for some worlds must not fail because of another world.
            wrong = np.intersect1d(wrong, chosen)
        if len(wrong):
            raise WorldFaultError({i: self._describe_number(i) for i in wrong.tolist()})

    def _describe_number(self, i: int) -> str:
        """Describe the invalid number of a map or of models of a world (see `_settle`).

        Parameters
        ----------
        i : int
            Number of the world.
        """
        number, none, count = (
            self._map_ids[i],
            "expected a map with a number",
            self._maps.count,
        )
        if number >= 0 and (count is None or number < count):
            # The map is valid, so that the number of the models is wrong.
            number, none, count = (
                self._robot_set_ids[i],
                "expected models with a number",
                len(self._robot_sets),
            )

        known = "" if count is None else f" from 0 to {count - 1}"
        return f"{none}{known} in its state, found {number}"

    def _use_maps(self, numbers: I8) -> None:
        """Move worlds to the maps with these numbers; missing maps are made.

        Parameters
        ----------
        numbers : (n,) int64
            Number of the map of each world; all are valid.
        """
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
        """Return the numbers of the masked worlds.

        Parameters
        ----------
        mask : (n,) bool or (k,) int array-like
            Flags, or different numbers of worlds, which keep their order.

        Returns
        -------
        (k,) int64
            Numbers of worlds.

        Raises
        ------
        ArgumentError
            `mask` is neither flags nor different numbers.
        """
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
            # A world listed twice would be advanced by two threads at once.
            if are_different(numbers, len(self)):
                return numbers

        raise ArgumentError(
            f"mask: expected {len(self)} flags (True or False), or different numbers "
            f"of worlds, found {arguments.found(mask)}"
        )

    def _faults(self, chosen: I8 | None) -> dict[int, str]:
        """Return the reason for each world for which the last call failed.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Worlds of the last call; None: all worlds.

        Returns
        -------
        dict of int to str
            Reason by number of the world; empty if none has failed.
        """
        if not self._batch.has_failed:
            return {}
        # The index below is the number of the world, hence the faults of all worlds.
        faults = self._batch.faults(None)
        return {
            i: self._describe_fault(Fault(int(faults[i])), i)
            for i in self._failed(chosen).tolist()
        }

    def _check_begun(self, chosen: I8) -> None:
        """Raise an error if a world could not start its episode.

        The readings of such worlds are cleared, so that no caller takes readings of the
        previous episode for new ones.

        Parameters
        ----------
        chosen : (k,) int64
            Worlds whose episodes start.

        Raises
        ------
        WorldFaultError
            One of these worlds has a fault.
        """
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
        """Describe the fault of a world, with the number that is out of range.

        Parameters
        ----------
        fault : Fault
            Fault of the world.
        i : int
            Number of the world.
        """
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
        """Return the numbers of these worlds for which the last call failed.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Worlds of the last call; None: all worlds.
        """
        failed = self._batch.faults(chosen).nonzero()[0]
        return failed if chosen is None else chosen[failed]
