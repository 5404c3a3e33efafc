"""Pheromone fields of the floor: rasters of levels that evaporate in each step.

A field is a table with one row, whose column has a number for each cell. So it is a part
of the state like the columns of devices: saved, restored, compared and digested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from botyard.engine.layout import F8, I8
from botyard.engine.rng import body_uid
from botyard.engine.tables import NOBODY, Column, Row, Table
from botyard.model.floor import Floor, PheromoneField
from botyard.numerics.exponentials import exp


class HasTables(Protocol):
    """Engine with tables of state; see `botyard.engine.simulation`."""

    tables: dict[str, Table]


LN_2: Final = 0.6931471805599453
"""Natural logarithm of 2; `math.log` may differ between systems."""
PREFIX: Final = "pheromone."
"""First part of the names of these tables, before the name of the field."""
MAX_LEVEL: Final = 1e9
"""Largest level of a cell."""
FAINT: Final = 1e-9
"""Levels below it become 0: halving for ever would end in slow denormal numbers."""


class FieldTable(Table):
    """Levels of a pheromone field.

    Parameters
    ----------
    field : PheromoneField
        Description of the field.

    Attributes
    ----------
    level : (1, cells) float64
        Level of each cell; row · columns + column, row 0 is the lowest.
    field : PheromoneField
        Description of the field.
    changes : int
        Counter of writes from outside of a step, for caches of pictures.
    """

    level: F8

    def __init__(self, field: PheromoneField) -> None:
        rows, columns = field.shape
        self.field = field
        self.changes = 0
        # Each field has its own name and its own number of cells.
        self.name = PREFIX + field.name  # type: ignore[misc]
        self.columns = {  # type: ignore[misc]
            "level": Column(np.float64, rows * columns, low=0.0, high=MAX_LEVEL)
        }
        super().__init__()
        Row(self, NOBODY, key=field.name)

    def _reserve(self, size: int) -> None:
        # A field never has a second row, which may take megabytes.
        super()._reserve(1)

    @property
    def is_idle(self) -> bool:
        """Whether nothing evaporates in the next steps."""
        return self.field.half_life <= 0.0 or not self.level.any()

    def act(self, engine: HasTables, dt: float) -> None:
        """Let the pheromone evaporate for the duration of a step.

        Parameters
        ----------
        engine : HasTables
            Engine that has this table.
        dt : float
            Duration of the step, s.
        """
        if self.field.half_life > 0.0:
            self.level *= exp(-LN_2 * dt / self.field.half_life)
            self.level[self.level < FAINT] = 0.0

    def deposit(self, cells: I8, amounts: F8) -> None:
        """Add amounts to the levels of cells, one after the other.

        Parameters
        ----------
        cells : (n,) int64
            Cells; −1 (outside of the field) is skipped. A cell may occur several times.
        amounts : (n,) float64
            Amount for each cell; a negative one removes. Levels stay within 0 and
            `MAX_LEVEL`.
        """
        levels = self.level[0]
        within = cells >= 0
        # `add.at` adds in the given order, so that sums have the same bits everywhere.
        np.add.at(levels, cells[within], amounts[within])
        touched = cells[within]
        levels[touched] = np.clip(levels[touched], 0.0, MAX_LEVEL)
        self.changes += 1

    def clear(self) -> None:
        """Set all levels to 0."""
        self.level[:] = 0.0
        self.changes += 1


def tables_of(
    floor: Floor | None, old: Mapping[str, Table], *, keeps: bool
) -> Sequence[FieldTable]:
    """Return the tables of the fields of a floor.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world.
    old : mapping of str to Table
        Present tables by name.
    keeps : bool
        Whether fields with an unchanged description keep their levels.
    """
    found = []
    for field in () if floor is None else floor.fields:
        there = old.get(PREFIX + field.name)
        found.append(
            there
            if keeps and isinstance(there, FieldTable) and there.field == field
            else FieldTable(field)
        )

    return found


def with_fields(
    floor: Floor | None,
    own: Sequence[str],
    tables: Mapping[str, Table],
    *,
    keeps: bool,
) -> tuple[tuple[str, ...], dict[str, Table]]:
    """Return the tables of a world after its floor was replaced.

    Parameters
    ----------
    floor : Floor or None
        New floor.
    own : sequence of str
        Names of the tables that exist as long as the world.
    tables : mapping of str to Table
        Present tables by name.
    keeps : bool
        Whether fields with an unchanged description keep their levels.

    Returns
    -------
    tuple of (tuple of str, dict of str to Table)
        Names of the tables that exist as long as the world, the fields last; and all
        tables, the optional ones last.
    """
    fields = tables_of(floor, tables, keeps=keeps)
    found = [tables[n] for n in own if not isinstance(tables[n], FieldTable)]
    always = (*found, *fields)
    more = [table for name, table in tables.items() if name not in own]
    return (
        tuple(table.name for table in always),
        {table.name: table for table in (*always, *more)},
    )


def field_of(engine: HasTables, name: str | int) -> FieldTable | None:
    """Return the levels of a pheromone field; None if the floor has no such field.

    Parameters
    ----------
    engine : HasTables
        Engine of the world.
    name : str or int
        Name of the field, or `botyard.engine.rng.body_uid` of its name.
    """
    if isinstance(name, str):
        found = engine.tables.get(PREFIX + name)
        return found if isinstance(found, FieldTable) else None
    for table in engine.tables.values():
        if isinstance(table, FieldTable) and body_uid(table.field.name) == name:
            return table
    return None


__all__ = [
    "FAINT",
    "MAX_LEVEL",
    "PREFIX",
    "FieldTable",
    "field_of",
    "tables_of",
    "with_fields",
]
