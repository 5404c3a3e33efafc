"""Arrays of a world packed for kernels as one address.

See `botyard.native.kernels.Pack`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import Beams, Fans
from botyard.engine.kernels.jit import entry_kernel
from botyard.engine.kernels.raycast import cast_groups
from botyard.engine.layout import F8, I2, I8, Bins, Bodies, Grid, State, World
from botyard.native.kinds import LastPack, Pack


class Sensors(NamedTuple):
    """Beams of all range sensors, and a workspace for the beams of one sensor.

    Attributes
    ----------
    fans : Fans
        All range sensors.
    beams : Beams
        Workspace of one thread.
    """

    fans: Fans
    beams: Beams


class Output(NamedTuple):
    """Readings of all range sensors.

    Attributes
    ----------
    ranges : (n,) float64
        Ranges, m.
    bright : (n,) int16
        Laser returns.
    """

    ranges: F8
    bright: I2


class Chosen(NamedTuple):
    """Range sensors to read.

    Attributes
    ----------
    devices : (n,) int64
        Numbers of the sensors.
    """

    devices: I8


@entry_kernel
def cast(
    world: World,
    sensors: Sensors,
    chosen: Chosen,
    seed: np.uint64,
    tick: int,
    output: Output,
) -> None:
    """Take the readings of some devices; see `cast_groups`.

    Parameters
    ----------
    world : World
        Arrays of the world.
    sensors : Sensors
        Devices, and a workspace.
    chosen : Chosen
        Devices to read.
    seed : uint64
        Seed of the world.
    tick : int
        Step of the world.
    output : Output
        Output: readings of these devices; other places stay unchanged.
    """
    cast_groups(
        world.grid,
        world.bodies,
        world.bins,
        world.state,
        sensors.fans,
        sensors.beams,
        chosen.devices,
        seed,
        tick,
        output.ranges,
        output.bright,
    )


class WorldPack:
    """Packer of the arrays of a world.

    It packs only arrays that were replaced by other objects since the last call.
    """

    __slots__ = ("_bins", "_bodies", "_grid", "_of", "_packed", "_state")

    def __init__(self) -> None:
        self._of: tuple[State, Bodies, Bins, Grid] | None = None
        self._packed: Pack[World] | None = None
        self._state: LastPack[State] = LastPack()
        self._bodies: LastPack[Bodies] = LastPack()
        self._bins: LastPack[Bins] = LastPack()
        self._grid: LastPack[Grid] = LastPack()

    def __call__(
        self, state: State, bodies: Bodies, bins: Bins, grid: Grid
    ) -> Pack[World]:
        """Return the pack of these arrays.

        Parameters
        ----------
        state, bodies, bins, grid : State, Bodies, Bins, Grid
            Arrays of the world. Kernels write to these arrays, not to copies.
        """
        of = self._of
        if (
            of is None
            or of[0] is not state
            or of[1] is not bodies
            or of[2] is not bins
            or of[3] is not grid
            or self._packed is None
        ):
            parts = (
                self._state(state),
                self._bodies(bodies),
                self._bins(bins),
                self._grid(grid),
            )
            # The fields are `Pack` objects (arrays packed for kernels) in place of the
            # tuples that the type declares.
            self._packed = Pack(World(*parts))  # type: ignore[arg-type]
            self._of = (state, bodies, bins, grid)

        return self._packed


def with_bodies(world: Pack[World], bodies: Bodies, bins: Bins) -> Pack[World]:
    """Return the pack of the same world with other bodies.

    Parameters
    ----------
    world : Pack of World
        Pack whose state and grid are taken.
    bodies, bins : Bodies, Bins
        Outlines and bodies by position, for example at a moment in the past.
    """
    return Pack(world.source._replace(bodies=Pack(bodies), bins=Pack(bins)))  # type: ignore[arg-type]


__all__ = ["Chosen", "Output", "Sensors", "WorldPack", "cast", "with_bodies"]
