"""Serialisation of descriptions (dataclasses) to tables of a file, and back.

Keys, types and units come from the declared parameters (`botyard.model.parameters`).

A dataclass with keyword-only fields becomes a table. A dataclass with positional
fields, such as a pose, becomes a list of its values. Lengths are metres. Angles are
degrees in files, because people write them, and radians inside the program.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from botyard.errors import ModelError, did_you_mean
from botyard.geometry import Pose
from botyard.model.parameters import Parameter, parameters_of, range_problem
from botyard.names import shown
from botyard.units import deg, from_deg, wrap_angle

MAX_NUMBER: Final = 1e15
"""Largest magnitude of a number in a file.

States have the same limit (`botyard.engine.tables.MAX_STATE_NUMBER`).
"""

S = TypeVar("S")
Triple = tuple[float, float, float]
Pair = tuple[float, float]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """Base of structures that refuse unknown keys."""


# -- errors and validation


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

        `where` is the path of this table in the enclosing table.
        """
        return TableError(
            f"{where}.{self.where}" if self.where else where, self.reason, self.key
        )

    def of(self, file: str) -> TableError:
        """Return the same error with the name of a file or model."""
        return TableError(self.where, self.reason, self.key, file)


def checked(
    raw: object,
    kind: type[S],
    known: Callable[[], Iterable[str]] = tuple,
    *,
    strict: bool = True,
) -> S:
    """Validate plain data and convert it to a structure.

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
        _check_numbers(found)
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
    """Return plain data with another value at a path."""
    if not steps:
        return value
    step, *rest = steps
    if isinstance(raw, dict):
        return {**raw, step: _replaced(raw[step], rest, value)}
    return [
        _replaced(one, rest, value) if i == step else one for i, one in enumerate(raw)
    ]


def _check_numbers(value: object, where: str = "") -> None:
    """Refuse the first number in a structure that is NaN, infinite or too large.

    The limit is `MAX_NUMBER`. Values of mappings are not searched, because they are
    converted, and checked, as structures of their own.

    Raises
    ------
    TableError
        Names the key and the number.
    """
    if isinstance(value, float):
        if not -MAX_NUMBER <= value <= MAX_NUMBER:
            # NaN is the only value that differs from itself; a limit would not explain
            # the error.
            limit = "" if value != value else f" from {-MAX_NUMBER:g} to {MAX_NUMBER:g}"
            raise TableError(where, f"expected a number{limit}, found {value:g}")
    elif isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            _check_numbers(one, f"{where}[{i}]")
    elif isinstance(value, msgspec.Struct):
        for name, key in zip(
            value.__struct_fields__, value.__struct_encode_fields__, strict=True
        ):
            _check_numbers(getattr(value, name), f"{where}.{key}".lstrip("."))


def _plain_message(reason: str) -> str:
    """Translate msgspec's message into the terms of files."""
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
    """Return the keys of a structure and of the structures in it."""
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


# -- values


class Form(msgspec.Struct, frozen=True):
    """Codec of a value: its type in the file, and the conversions.

    Attributes
    ----------
    type : type
        Type in the file, for msgspec.
    read : callable
        Converts a value of the file; its second argument is the key, for errors.
    write : callable
        Converts a value to plain data for the file.
    words : tuple of str
        Valid texts, if the value is one of a few words.
    """

    type: Any
    read: Callable[[Any, str], Any]
    write: Callable[[Any], Any]
    words: tuple[str, ...] = ()


def _unchanged(value: Any, _where: str = "") -> Any:
    return value


def _listed(value: Any) -> Any:
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


def degrees_of(angle: float) -> float:
    """Convert an angle, rad, to the shortest number of degrees that converts back.

    If no such number exists, the result is the nearest.
    """
    exact = deg(angle)
    if not math.isfinite(exact):
        return exact
    # Most angles were written with at most a few digits, which rounding recovers.
    for digits in (9, 12):
        if from_deg(short := round(exact, digits) + 0.0) == angle:
            return short

    # If a number of degrees converts back exactly, it is within a few ulp.
    near = (exact + k * math.ulp(exact) for k in range(-3, 4))
    return min(near, key=lambda d: (abs(from_deg(d) - angle), abs(d - exact)))


def pose_of(triple: Sequence[float]) -> Pose:
    """Return the pose of x, y (m) and a heading in degrees."""
    return Pose(triple[0], triple[1], wrap_angle(from_deg(triple[2])))


def triple_of(pose: Pose) -> list[float]:
    """Return x, y (m) and the heading in degrees; `pose_of` converts them back."""
    return [float(pose.x), float(pose.y), degrees_of(pose.th)]


def _form(hint: Any, one: Parameter) -> Form:
    """Return the codec for a type."""
    origin, args = get_origin(hint), get_args(hint)
    if one.words is not None:
        return _word_form(one.words)
    if origin in (Union, UnionType):
        # A union of several types has no conversion; msgspec selects the type by the
        # value.
        (some, *more) = [a for a in args if a is not NoneType]
        return (
            Form(hint, _unchanged, _listed)
            if more
            else _optional_form(_form(some, one))
        )

    if hint is float and one.is_angle:
        return Form(float, lambda v, _: from_deg(v), degrees_of)
    if hint is Pose:
        return Form(Triple, lambda v, _: pose_of(v), triple_of)
    if origin is tuple and args[1:] == (...,):
        return _sequence_form(_form(args[0], one))
    if origin is tuple:
        return _row_form([_form(a, one.element(i)) for i, a in enumerate(args)])
    if not is_dataclass(hint):
        return Form(hint, _unchanged, _listed)
    kind = cast(type[Any], hint)
    # Keyword-only fields mark a table; positional fields are a list of values.
    if all(f.kw_only for f in fields(kind) if f.init):
        table = file_table(kind)
        return Form(
            table.type, lambda v, where: table.read(v, f"{where}."), table.write
        )

    names = [*parameters_of(kind)]
    row = _row_form(
        [
            _form(h, one.element(i))
            for i, (h, _) in enumerate(parameters_of(kind).values())
        ]
    )
    return Form(
        row.type,
        lambda v, where: kind(*row.read(v, where)),
        lambda v: row.write(tuple(getattr(v, n) for n in names)),
    )


def _optional_form(form: Form) -> Form:
    return Form(
        form.type | None,
        lambda v, where: None if v is None else form.read(v, where),
        lambda v: None if v is None else form.write(v),
        form.words,
    )


def _sequence_form(form: Form) -> Form:
    kind = _tuple_of([form.type, ...])
    if form.read is _unchanged:
        return Form(kind, _unchanged, _listed)
    return Form(
        kind,
        lambda v, where: tuple(form.read(x, f"{where}[{i}]") for i, x in enumerate(v)),
        lambda v: [*map(form.write, v)],
    )


def _tuple_of(kinds: Sequence[Any]) -> Any:
    # Type checkers do not accept a subscript of computed types.
    return tuple.__class_getitem__(tuple(kinds))


def _row_form(forms: Sequence[Form]) -> Form:
    kind = _tuple_of([f.type for f in forms])
    if all(f.read is _unchanged for f in forms):
        return Form(kind, _unchanged, _listed)
    return Form(
        kind,
        lambda v, where: tuple(f.read(x, where) for f, x in zip(forms, v, strict=True)),
        lambda v: [f.write(x) for f, x in zip(forms, v, strict=True)],
    )


def _word_form(words: Mapping[str, Any]) -> Form:
    texts = {value: word for word, value in words.items()}
    *some, last = (f'"{w}"' for w in words)
    expected = f"{', '.join(some)} or {last}"

    def read(word: str, where: str) -> Any:
        if word.lower() not in words:
            raise TableError(where, f'expected {expected}, found "{shown(word)}"')
        return words[word.lower()]

    return Form(str, read, texts.__getitem__, tuple(words))


# -- tables


class _Column(msgspec.Struct, frozen=True):
    """Field of a description and its location in the table.

    Attributes
    ----------
    group : str
        Sub-table that holds the key; empty: the table itself.
    """

    name: str
    group: str
    key: str
    form: Form
    one: Parameter
    default: Any


class FileTable(Generic[S]):
    """Reads and writes descriptions of a class as tables of a file.

    Parameters
    ----------
    kind : type
        Dataclass.
    name : str, optional
        Name of the structure; default: derived from the name of the class.
    base : type of msgspec.Struct
        Structure with the keys that are not fields of the description, or that other
        code reads.
    apart : tuple of str
        Fields of the description that are not in the table, or that other code reads.

    Attributes
    ----------
    type : type of msgspec.Struct
        Structure of the table. An omitted optional key is UNSET.
    """

    def __init__(
        self,
        kind: type[S],
        *,
        name: str = "",
        base: type[msgspec.Struct] = Strict,
        apart: tuple[str, ...] = (),
    ) -> None:
        self._kind = kind
        self._columns: list[_Column] = []
        keys: dict[str, dict[str, list[_Column]]] = defaultdict(dict)
        defaults = {f.name: _default(f) for f in fields(cast(Any, kind))}
        for field, (hint, one) in parameters_of(kind).items():
            if field in apart:
                continue
            group, _, key = one.path_of(field).rpartition(".")
            column = _Column(field, group, key, _form(hint, one), one, defaults[field])
            self._columns.append(column)
            keys[group].setdefault(key, []).append(column)

        # msgspec names the structure in the JSON schema, so the name is part of a
        # public file.
        name = name or f"{kind.__name__}Table"
        own = keys.pop("", {})
        groups: list[Any] = [
            (g, _struct(f"{name}_{g}", c, Strict, "") | UnsetType, UNSET)
            for g, c in keys.items()
        ]
        self.type: Any = _struct(
            name, own, base, (kind.__doc__ or "").partition("\n")[0], groups
        )
        self._size = {
            (c.group, c.key): len(keys.get(c.group, own)[c.key]) for c in self._columns
        }

    def values(self, file: msgspec.Struct, where: str = "") -> dict[str, Any]:
        """Return the fields that a table sets, by name.

        Parameters
        ----------
        file : msgspec.Struct
            Validated table.
        where : str
            Prefix of keys in error messages.

        Raises
        ------
        ModelError
            A value is invalid.
        """
        found = {}
        for c in self._columns:
            table = getattr(file, c.group) if c.group else file
            value = UNSET if table is UNSET else getattr(table, c.key)
            if value is not UNSET:
                at = f"{where}{c.group}.{c.key}" if c.group else f"{where}{c.key}"
                found[c.name] = read = c.form.read(
                    value if c.one.index is None else value[c.one.index], at
                )
                # Messages use the units of files.
                unit = c.one.unit.replace("rad", "°")
                if problem := range_problem(
                    read, c.one, degrees_of if c.one.is_angle else _unchanged, unit
                ):
                    raise TableError(at, problem)
            elif c.one.left_out is not ...:
                found[c.name] = c.one.left_out

        return found

    def read(self, file: msgspec.Struct, where: str = "", **others: Any) -> S:
        """Return the description that a table holds.

        Parameters
        ----------
        file : msgspec.Struct
            Validated table.
        where : str
            Prefix of keys in error messages.
        **others : value
            Fields that are not in the table.

        Raises
        ------
        ModelError
            A value is invalid.
        """
        return self._kind(**(others | self.values(file, where)))

    def write(self, spec: S) -> dict[str, Any]:
        """Return the table of a description, as plain data.

        `read` converts it back, except for rounding of the last digit of angles.
        """
        table: dict[str, Any] = {}
        for c in self._columns:
            value = getattr(spec, c.name)
            # TOML has no null, so an absent key stands for None.
            if (c.one.is_brief or value is None) and value == c.default:
                continue
            value = c.form.write(value)
            # A nested table that has all defaults says nothing.
            if value == {}:
                continue
            into = table.setdefault(c.group, {}) if c.group else table
            if c.one.index is None:
                into[c.key] = value
            else:
                # Several fields fill the elements of one list, in any order.
                into.setdefault(c.key, [0.0] * self._size[c.group, c.key])[
                    c.one.index
                ] = value

        return table

    def describe(self, schema: Mapping[str, Any]) -> None:
        """Add units, words and defaults to the JSON schema of a file."""
        properties = schema["$defs"][self.type.__name__]["properties"]
        for c in self._columns:
            entry = properties[c.key]
            if c.one.about or c.one.unit:
                entry["description"] = (
                    c.one.about or f"in {c.one.unit.replace('rad', '°')}"
                )

            if c.form.words:
                entry["enum"] = [*c.form.words, *([None] if c.default is None else [])]
            # JSON has no infinity, and None needs no default.
            if c.one.is_brief and c.default not in (None, math.inf):
                entry["default"] = c.form.write(c.default)


def _default(field: Any) -> Any:
    return (
        field.default if field.default_factory is MISSING else field.default_factory()
    )


def _struct(
    name: str,
    keys: Mapping[str, list[_Column]],
    base: type[msgspec.Struct],
    about: str,
    more: Sequence[Any] = (),
) -> type[msgspec.Struct]:
    """Return the structure of a table with these keys."""
    rows: list[Any] = []
    for key, columns in keys.items():
        listed = sorted(
            (c for c in columns if c.one.index is not None),
            key=lambda c: cast(int, c.one.index),
        )
        # Several columns can be elements of one list, such as the two limits of a
        # range.
        kind: Any = (
            _tuple_of([c.form.type for c in listed]) if listed else columns[0].form.type
        )
        # A key that sets several fields is required if one of them is.
        must = any(c.default is MISSING or c.one.is_required for c in columns)
        rows.append((key, kind) if must else (key, kind | UnsetType, UNSET))

    return msgspec.defstruct(
        name,
        [*rows, *more],
        bases=(base,),
        namespace={"__doc__": about},
        module=__name__,
        kw_only=True,
    )


def file_table(kind: type[S]) -> FileTable[S]:
    """Return the (cached) table codec of a class of descriptions, with all fields."""
    return cast("FileTable[S]", _file_table(cast(Hashable, kind)))


@cache
def _file_table(kind: Any) -> FileTable[Any]:
    return FileTable(kind)


__all__ = [
    "FileTable",
    "Pair",
    "Strict",
    "TableError",
    "Triple",
    "checked",
    "degrees_of",
    "file_table",
    "pose_of",
    "triple_of",
]
