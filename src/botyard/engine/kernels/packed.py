"""The arrays of a world, handed over to kernels as one reference.

Numba takes every array of every tuple apart at each call from Python: State, Bodies, Bins and Grid together cost 8 µs, four times what a
step of one robot takes. So they are put into one structure when they are laid out, and kernels that are called in every step take that
(`numba.experimental.structref`). Entry kernels count references, because the structure is counted; what they call does not.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types
from numba.experimental import structref

from botyard.engine.kernels.jit import entry_kernel
from botyard.engine.kernels.raycast import Beams, Fans, cast_groups
from botyard.engine.layout import F8, I2, I8, Bins, Bodies, Grid, State

_numba: Any = numba
_structref: Any = structref
_types: Any = types

if _numba.config.DISABLE_JIT:

    class World:
        """All arrays of a world."""

        def __init__(self, state: State, bodies: Bodies, bins: Bins, grid: Grid) -> None:
            self.state, self.bodies, self.bins, self.grid = state, bodies, bins, grid

    class Sensors:
        """Beams of all range sensors, and a workspace for those of one."""

        def __init__(self, fans: Fans, beams: Beams) -> None:
            self.fans, self.beams = fans, beams

else:

    class _PackType(_types.StructRef):  # type: ignore[misc]
        """What Numba's types of packed arrays have in common."""

        def preprocess_fields(self, fields: Any) -> Any:
            """Types of the fields, which are no literals."""
            return tuple((name, _types.unliteral(kind)) for name, kind in fields)

    @_structref.register
    class WorldType(_PackType):
        """Numba's type of `World`."""

    class World(_structref.StructRefProxy):  # type: ignore[misc, no-redef]
        """All arrays of a world."""

    _structref.define_constructor(World, WorldType, ["state", "bodies", "bins", "grid"])
    _structref.define_attributes(WorldType)
    _structref.define_boxing(WorldType, World)

    @_structref.register
    class SensorsType(_PackType):
        """Numba's type of `Sensors`."""

    class Sensors(_structref.StructRefProxy):  # type: ignore[misc, no-redef]
        """Beams of all range sensors, and a workspace for those of one."""

    _structref.define_constructor(Sensors, SensorsType, ["fans", "beams"])
    _structref.define_attributes(SensorsType)
    _structref.define_boxing(SensorsType, Sensors)


@entry_kernel
def pack_world(state: State, bodies: Bodies, bins: Bins, grid: Grid) -> World:
    """One reference to all these arrays."""
    return World(state, bodies, bins, grid)


@entry_kernel
def pack_sensors(fans: Fans, beams: Beams) -> Sensors:
    """One reference to all these arrays."""
    return Sensors(fans, beams)


@entry_kernel
def cast(world: World, sensors: Sensors, active: I8, seed: int, tick: int, ranges: F8, bright: I2) -> None:
    """Take the readings of the devices in `active`; see `cast_groups`."""
    cast_groups(
        world.grid, world.bodies, world.bins, world.state, sensors.fans, sensors.beams, active, seed, tick, ranges, bright
    )  # fmt: skip


class WorldPack:
    """The packed arrays of a world, packed anew when one of its tuples is another one."""

    __slots__ = ("_of", "_packed")

    def __init__(self) -> None:
        self._of: tuple[State | None, Bodies | None, Bins | None, Grid | None] = (None, None, None, None)
        self._packed: World | None = None

    def __call__(self, state: State, bodies: Bodies, bins: Bins, grid: Grid) -> World:
        """The packed arrays."""
        of = self._of
        if of[0] is not state or of[1] is not bodies or of[2] is not bins or of[3] is not grid or self._packed is None:
            self._packed = pack_world(state, bodies, bins, grid)
            self._of = (state, bodies, bins, grid)
        return self._packed


__all__ = ["Sensors", "World", "WorldPack", "cast", "pack_sensors", "pack_world"]
