"""Lidars with timing or optics among the range sensors, and the materials that they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.devices.fans import BeamSet
from botyard.engine.kernels.lidar import Lidars, cast_lidars
from botyard.engine.kernels.packed import Chosen, Output, Sensors
from botyard.engine.layout import F8, I2, I8, Grid
from botyard.engine.simulation import Engine, empty_world
from botyard.engine.wallgrid import wall_materials
from botyard.model.materials import CODES, MATERIALS, WHITE
from botyard.native.kinds import Pack
from botyard.processes.parallel import Workers

MATERIAL_ROWS: Final = np.array(
    [(m.matt / WHITE, m.glossy / WHITE, m.clear) for m in MATERIALS.values()]
)
"""Materials in the order of their codes, as `kernels.lidar.Lidars` has them."""
MIN_PARALLEL_RAYS: Final = 1000
"""Number of rays per step above which several threads are faster than one."""


class LidarCaster:
    """Measurements of the lidars of a world.

    Parameters
    ----------
    optics : (n_bundles, 6) float64
        Timing and optics of all bundles of all sets of beams.
    rays : (n_devices,) int64
        Number of rays of each device that is a lidar; 0 for others.
    """

    def __init__(self, optics: F8, rays: I8) -> None:
        self._optics = optics
        self._rays = rays
        self._is_lidar = rays > 0
        self._grid: Grid | None = None
        self._walls: I2 = np.zeros(0, np.int16)
        self._bodies: I2 | None = None
        self._packs: list[Pack[Lidars]] = []

    @classmethod
    def of(cls, kinds: I8, sets: Sequence[BeamSet]) -> LidarCaster | None:
        """Return the lidars among devices; None if there are none.

        Parameters
        ----------
        kinds : (n_devices,) int64
            Number of the set of beams of each device.
        sets : sequence of BeamSet
            Sets of beams by number.
        """
        if not any(one.is_lidar for one in sets):
            return None
        rays = np.array(
            [int(one.counts.sum()) if one.is_lidar else 0 for one in sets], np.int64
        )
        return cls(np.concatenate([one.optics for one in sets]), rays[kinds])

    def split(self, chosen: I8) -> tuple[I8, I8]:
        """Return the numbers of plain devices, and of lidars, among some devices."""
        is_lidar = self._is_lidar[chosen]
        return chosen[~is_lidar], chosen[is_lidar]

    def cast(
        self,
        engine: Engine,
        workspaces: Sequence[Pack[Sensors]],
        chosen: I8,
        output: Pack[Output],
        workers: Workers,
    ) -> None:
        """Measure with some lidars, in several threads if that saves time.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        workspaces : sequence of Pack of Sensors
            Beams of all devices, with a workspace for each part of the work.
        chosen : (n,) int64
            Numbers of the lidars.
        output : Pack of Output
            Readings of all devices. Output: readings of these lidars.
        workers : Workers
            Threads.
        """
        self._follow(engine, len(workspaces))
        parts = (
            np.array_split(chosen, min(len(workspaces), len(chosen)))
            if len(workspaces) > 1 and self._rays[chosen].sum() >= MIN_PARALLEL_RAYS
            else [chosen]
        )
        work = [
            (
                engine.packed,
                sensors,
                lidars,
                Pack(Chosen(part)),
                engine.seed_word,
                engine.clock.tick,
                output,
            )
            for part, sensors, lidars in zip(
                parts, workspaces, self._packs, strict=False
            )
        ]
        if len(work) > 1:
            workers.run(cast_lidars, work)
        else:
            cast_lidars(*work[0])

    def _follow(self, engine: Engine, parts: int) -> None:
        """Make the arrays of materials anew if the map or the bodies have changed.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        parts : int
            Number of parts of the work, each with a workspace.
        """
        bodies: NDArray[np.int16] = np.array(
            [CODES[spec.returns.material] for spec in engine.specs], np.int16
        )
        if (
            self._grid is engine.grid
            and self._bodies is not None
            and np.array_equal(bodies, self._bodies)
        ):
            return

        if self._grid is not engine.grid:
            self._walls = wall_materials(engine.scene)
        self._grid, self._bodies = engine.grid, bodies
        self._packs = [
            Pack(
                Lidars(
                    optics=self._optics,
                    materials=MATERIAL_ROWS,
                    walls=self._walls,
                    bodies=bodies,
                    near=np.zeros(len(bodies), np.int64),
                )
            )
            for _ in range(parts)
        ]


def warm_up(sensors: Pack[Sensors], output: Pack[Output]) -> None:
    """Compile the kernel of lidars, or load it; all arguments are empty.

    Parameters
    ----------
    sensors, output : Pack of Sensors, of Output
        Empty arrays: their types decide for which types the kernel is compiled.
    """
    none, nobody = np.zeros(0, np.int16), np.zeros(0, np.int64)
    lidars = Pack(Lidars(np.zeros((0, 6)), MATERIAL_ROWS, none, none, nobody))
    cast_lidars(
        empty_world(), sensors, lidars, Pack(Chosen(nobody)), np.uint64(0), 0, output
    )


__all__ = ["LidarCaster", "warm_up"]
