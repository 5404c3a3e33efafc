"""Summary of a study: a mean or a proportion for each point of the parameter grid.

A point has the runs that differ only in their seed and their drawn values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botyard.studies.statistics import Interval, mean_interval, share_interval
from botyard.studies.table import STATUS, Table

MAX_WORDS: Final = 8
"""Maximum number of different texts for which a text result is summarised."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A result that has a mean or a share.

    Attributes
    ----------
    name, unit : str
        Name and unit; for a text result, ``outcome = deadlock``.
    values : list
        A number, True, False or None for each row of the table.
    is_share : bool
        Whether the values are true or false.
    """

    name: str
    unit: str
    values: list[Any]
    is_share: bool

    def interval(self, rows: Sequence[int]) -> Interval:
        """Return the mean, or the share of true values, over some rows.

        Parameters
        ----------
        rows : sequence of int
            Indices of the rows. Rows without a value do not count.

        Returns
        -------
        Interval
            The estimate with its 95 % confidence interval
            (`botyard.studies.statistics`).
        """
        values = [value for row in rows if (value := self.values[row]) is not None]
        if self.is_share:
            return share_interval(sum(values), len(values))
        return mean_interval([float(value) for value in values])


def quantities_of(table: Table) -> list[Quantity]:
    """Return the results of a table that have a mean or a share.

    Parameters
    ----------
    table : Table
        The table. Results without any value are left out.

    Returns
    -------
    list of Quantity
        In the order of the table: a mean for a column of numbers, a share for a column
        of booleans, and a share for each text of a column with at most `MAX_WORDS`
        different texts. Columns of mixed types have neither.
    """
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
    """Runs at one point of the grid.

    Attributes
    ----------
    values : dict
        Parameter values of the point.
    rows : list of int
        Indices of the rows with status ``ok``.
    count : int
        Number of all runs of the group.
    """

    values: Mapping[str, Any]
    rows: list[int]
    count: int


def groups_of(table: Table, names: Sequence[str]) -> list[Group]:
    """Group the rows of a table by the values of some parameters.

    Parameters
    ----------
    table : Table
        Table of the study's results.
    names : sequence of str
        Columns of the parameters; without names all rows form one group.

    Returns
    -------
    list of Group
        Groups in the order in which their first rows appear in the table. Rows that are
        not ``ok`` count in `Group.count` only.
    """
    found: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for row in range(len(table)):
        values = {name: table.columns[name][row] for name in names}
        # JSON text as the key: values may be lists, and 1, 1.0 and True must stay
        # apart.
        found.setdefault(json.dumps(values), (values, []))[1].append(row)

    status = table.columns[STATUS]
    return [
        Group(values, [row for row in rows if status[row] == "ok"], len(rows))
        for values, rows in found.values()
    ]


__all__ = ["Group", "Quantity", "groups_of", "quantities_of"]
