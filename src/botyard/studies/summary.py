"""Results by points of the grid: what is the same but for seeds and samples is a group,
with a mean or a share for each result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botyard.studies.statistics import Interval, mean_interval, share_interval
from botyard.studies.table import STATUS, Table

MAX_WORDS: Final = 8
"""Texts of more different values than this are not summarised."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A result that has a mean or a share.

    Attributes
    ----------
    name, unit : str
        What it is called; of a text, ``outcome = deadlock``.
    values : list
        A number, True, False or None for each row of the table.
    is_share : bool
        It is true or false.
    """

    name: str
    unit: str
    values: list[Any]
    is_share: bool

    def interval(self, rows: Sequence[int]) -> Interval:
        """Its mean, or the share of what is true, over some rows; rows without a value
        do not count.
        """
        values = [value for row in rows if (value := self.values[row]) is not None]
        if self.is_share:
            return share_interval(sum(values), len(values))
        return mean_interval([float(value) for value in values])


def quantities_of(table: Table) -> list[Quantity]:
    """Results of a table that have a mean or a share."""
    found = []
    for name in table.results:
        values, unit = table.columns[name], table.units.get(name, "")
        there = [value for value in values if value is not None]
        if there and all(isinstance(value, bool) for value in there):
            found.append(Quantity(name, unit, values, True))
        elif there and all(
            isinstance(value, int | float) and not isinstance(value, bool)
            for value in there
        ):
            found.append(Quantity(name, unit, values, False))
        elif there and all(isinstance(value, str) for value in there):
            words = sorted(set(there))
            if len(words) <= MAX_WORDS:
                for word in words:
                    equal = [
                        None if value is None else value == word for value in values
                    ]
                    found.append(
                        Quantity(f"{name} = {word or '(nothing)'}", "", equal, True)
                    )

    return found


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one point of the grid.

    Attributes
    ----------
    values : dict
        The point.
    rows : list of int
        Rows of the table, those that are ``ok``.
    count : int
        Number of all.
    """

    values: Mapping[str, Any]
    rows: list[int]
    count: int


def groups_of(table: Table, names: Sequence[str]) -> list[Group]:
    """Groups of equal values of some parameters, in the order of the table."""
    found: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for row in range(len(table)):
        values = {name: table.columns[name][row] for name in names}
        found.setdefault(json.dumps(values), (values, []))[1].append(row)

    status = table.columns[STATUS]
    return [
        Group(values, [row for row in rows if status[row] == "ok"], len(rows))
        for values, rows in found.values()
    ]


__all__ = ["Group", "Quantity", "groups_of", "quantities_of"]
