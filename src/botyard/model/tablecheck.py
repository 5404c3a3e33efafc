"""Check of plain data against the structure of a table; errors name the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeVar, cast, get_args

import msgspec

from botyard.errors import ModelError, did_you_mean
from botyard.names import shown

MAX_NUMBER: Final = 1e15
"""Largest magnitude of a number in a file.

States have the same limit (`botyard.engine.tables.MAX_STATE_NUMBER`).
"""
S = TypeVar("S")


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """Base class of structures that do not accept unknown keys."""


class TableError(ModelError):
    """Error in a table of a file.

    Attributes
    ----------
    where : str
        Path of the value, by keys: ``sonar.single[0].range``; empty: the whole table.
    reason : str
        Expected and found value.
    key : str
        Unknown key at that path.
    """

    def __init__(
        self, where: str = "", reason: str = "", key: str = "", file: str = ""
    ) -> None:
        super().__init__(": ".join(filter(None, (file, where, reason))))
        self.where = where
        self.reason = reason
        self.key = key

    def inside(self, where: str) -> TableError:
        """Return the same error as seen from an enclosing table.

        Parameters
        ----------
        where : str
            Path of this table in the enclosing table.
        """
        return TableError(
            f"{where}.{self.where}" if self.where else where, self.reason, self.key
        )

    def of(self, file: str) -> TableError:
        """Return the same error with the name of a file or model in front of the text.

        Parameters
        ----------
        file : str
            Name of the file or of the model.
        """
        return TableError(self.where, self.reason, self.key, file)


def checked(
    raw: object,
    kind: type[S],
    known: Callable[[], Iterable[str]] = tuple,
    *,
    strict: bool = True,
) -> S:
    """Return plain data from a file as a structure, after a check.

    Parameters
    ----------
    raw : object
        Plain data, as a TOML or YAML reader returns it.
    kind : type
        Structure to convert to.
    known : callable
        Further words for suggestions, in addition to the keys of the structure.
    strict : bool
        False: a text that holds a number is accepted as a number.

    Raises
    ------
    TableError
        The data is invalid. The message names the key, the expected and the found
        value.
    """
    try:
        found = msgspec.convert(raw, kind, strict=strict)
    except msgspec.ValidationError as error:
        problem = str(error)
    else:
        _check_values(found, raw)
        return found

    # msgspec reports errors only as text, so the path and the reason are parsed from
    # it.
    reason, _, place = problem.partition(" - at `")
    where = (
        _with_keys(place.rstrip("`"), raw, kind, strict)
        .removeprefix("$")
        .removeprefix(".")
    )
    unknown = re.search(r"unknown field `(.*)`", reason, re.DOTALL)
    if unknown:
        key = unknown[1]
        hint = did_you_mean(key[:100], {*_keys(cast(Hashable, kind)), *known()} - {key})
        raise TableError(where, f'there is no key "{shown(key)}" here{hint}', key)

    missing = re.search(r"missing required field `(.*)`", reason)
    raise TableError(
        where,
        f'expected the key "{missing[1]}", found none'
        if missing
        else _plain_message(reason),
    )


def _with_keys(place: str, raw: object, kind: type[Any], strict: bool) -> str:
    """Return the path of a wrong value with the keys of mappings.

    msgspec writes ``[...]`` for a key of a mapping. The wrong entry is found by
    validating halves of the mapping.

    Parameters
    ----------
    place : str
        Path in the message of msgspec, for example ``$.robots[...].pose``.
    raw : object
        Plain data that was refused.
    kind : type
        Structure to which it does not convert.
    strict : bool
        As for `checked`.
    """
    while "[...]" in place:
        before, _, after = place.partition("[...]")
        steps: list[str | int] = [
            m[1] if m[1] is not None else int(m[2]) for m in _PLACE.finditer(before)
        ]
        mapping: Any = raw
        for step in steps:
            mapping = mapping[step]
        keys = list(mapping)
        # Halving finds the entry in few validations, even in a large mapping.
        while len(keys) > 1:
            half = keys[: len(keys) // 2]
            try:
                msgspec.convert(
                    _replaced(raw, steps, {k: mapping[k] for k in half}),
                    kind,
                    strict=strict,
                )
            except msgspec.ValidationError:
                keys = half
            else:
                keys = keys[len(half) :]

        place = f"{before}.{keys[0]}{after}"
        # A key with other characters could not be distinguished from path syntax.
        if (
            not isinstance(keys[0], str)
            or not keys[0].replace("_", "").replace("-", "").isalnum()
        ):
            return place.replace("[...]", "")

    return place


_PLACE: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def _replaced(raw: Any, steps: Sequence[str | int], value: object) -> Any:
    """Return a copy of plain data with another value at a path."""
    if not steps:
        return value
    step, *rest = steps
    if isinstance(raw, dict):
        return {**raw, step: _replaced(raw[step], rest, value)}
    return [
        _replaced(one, rest, value) if i == step else one for i, one in enumerate(raw)
    ]


def _check_values(value: object, raw: Any, where: str = "") -> None:
    """Raise an error for the first value of a structure that msgspec should have refused.

    These are numbers that are NaN, infinite or beyond `MAX_NUMBER`, and truth values that were
    numbers. Values of mappings are not searched, because they are converted, and checked,
    as structures of their own.

    Parameters
    ----------
    value : object
        Converted value.
    raw : object
        Value in the file.
    where : str
        Its key.

    Raises
    ------
    TableError
        Names the key and the value.
    """
    # Without `strict`, msgspec takes 0 and 1 as truth values.
    if isinstance(value, bool):
        if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            raise TableError(where, f"expected true or false, found {raw:g}")
    elif isinstance(value, float):
        if not -MAX_NUMBER <= value <= MAX_NUMBER:
            # NaN is the only value that differs from itself; a limit would not explain
            # the error.
            limit = "" if value != value else f" from {-MAX_NUMBER:g} to {MAX_NUMBER:g}"
            raise TableError(where, f"expected a number{limit}, found {value:g}")
    elif isinstance(value, (list, tuple)):
        listed = raw if isinstance(raw, (list, tuple)) else [None] * len(value)
        for i, (one, of) in enumerate(zip(value, listed, strict=False)):
            _check_values(one, of, f"{where}[{i}]")
    elif isinstance(value, msgspec.Struct):
        for name, key in zip(
            value.__struct_fields__, value.__struct_encode_fields__, strict=True
        ):
            of = raw.get(key) if isinstance(raw, dict) else None
            _check_values(getattr(value, name), of, f"{where}.{key}".lstrip("."))


def _plain_message(reason: str) -> str:
    """Return msgspec's message in words for readers of the file."""
    words = {
        "`array`": "a list",
        "`object`": "keys and values",
        "`str`": "a text",
        "`int`": "a whole number",
        "`float`": "a number",
        "`bool`": "true or false",
        "`null`": "nothing",
    }
    for technical, plain in words.items():
        reason = reason.replace(technical, plain)
    reason = re.sub(
        r"`([^`]*\|[^`]*)`",
        lambda m: " or ".join(
            words.get(f"`{w.strip()}`", w.strip()) for w in m[1].split("|")
        ),
        reason,
    )
    return reason[0].lower() + reason[1:].replace(", got ", ", found ")


@cache
def _keys(kind: Any) -> frozenset[str]:
    """Return the names of the keys of a structure, and of the structures in it."""
    found, seen, left = set(), set(), [kind]
    while left:
        one = left.pop()
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            if one not in seen:
                seen.add(one)
                found |= {f.encode_name for f in msgspec.structs.fields(one)}
                left += [f.type for f in msgspec.structs.fields(one)]
        else:
            left += get_args(one)

    return frozenset(found)


__all__ = ["S", "Strict", "TableError", "checked"]
