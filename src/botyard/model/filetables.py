"""Serialisation of descriptions (dataclasses) to tables of a file, and back.

Keys, types and units come from the declared parameters (`botyard.model.parameters`).

A dataclass with keyword-only fields becomes a table. A dataclass with positional
fields, such as a pose, becomes a list of its values. Lengths are metres. Angles are
degrees in files, because people write them, and radians inside the program.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from botyard.geometry import Pose
from botyard.model.parameters import Parameter, parameters_of, range_problem
from botyard.model.tablecheck import Strict, TableError
from botyard.names import shown
from botyard.units import deg, from_deg, wrap_angle

Triple = tuple[float, float, float]
Pair = tuple[float, float]

S = TypeVar("S")


class Form(msgspec.Struct, frozen=True):
    """Conversion of a value between its type in the file and its type in the program.

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
    table : FileTable or None
        Table of the value, if it is one.
    """

    type: Any
    read: Callable[[Any, str], Any]
    write: Callable[[Any], Any]
    words: tuple[str, ...] = ()
    table: Any = None


def _unchanged(value: Any, _where: str = "") -> Any:
    return value


def _listed(value: Any) -> Any:
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


def degrees_of(angle: float) -> float:
    """Convert an angle to the shortest number of degrees that converts back.

    Parameters
    ----------
    angle : float
        Angle, rad; infinite angles stay infinite.

    Returns
    -------
    float
        Degrees. If no number converts back exactly, the nearest one.
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
    """Return the pose that a list in a file describes.

    Parameters
    ----------
    triple : sequence of float
        x and y, m, and heading, degrees.

    Returns
    -------
    Pose
        Pose: m, m, rad, with the heading wrapped to (−π, π].
    """
    return Pose(triple[0], triple[1], wrap_angle(from_deg(triple[2])))


def triple_of(pose: Pose) -> list[float]:
    """Return the list that describes a pose in a file; `pose_of` converts it back.

    Parameters
    ----------
    pose : Pose
        Pose: m, m, rad.

    Returns
    -------
    list of float
        x and y, m, and heading, degrees.
    """
    return [float(pose.x), float(pose.y), degrees_of(pose.th)]


def _form(hint: Any, one: Parameter) -> Form:
    """Return the conversion for a declared type.

    Parameters
    ----------
    hint : type
        Declared type of a field, with type arguments.
    one : Parameter
        Declaration of the field: words, and units by which angles are recognised.
    """
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
            table.type,
            lambda v, where: table.read(v, f"{where}."),
            table.write,
            table=table,
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
        form.table,
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
    """Field of a description, with its location in the table.

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
    """Reader and writer of the descriptions of one class, as tables of a file.

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
        """Return the fields that a table of a file sets, by name.

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
        """Return the description that a table of a file holds.

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

    def write(self, spec: S, *, defaults: bool = False) -> dict[str, Any]:
        """Return the table that describes an object, as plain data.

        `read` converts the table back, except for rounding of the last digit of angles.

        Parameters
        ----------
        spec : object
            The object.
        defaults : bool
            Whether keys with default values are also written. None is never written,
            because TOML has no null.
        """
        table: dict[str, Any] = {}
        for c in self._columns:
            value = getattr(spec, c.name)
            # TOML has no null, so an absent key stands for None.
            is_left_out = value is None or (c.one.is_brief and not defaults)
            if is_left_out and value == c.default:
                continue
            value = (
                c.form.table.write(value, defaults=defaults)
                if c.form.table is not None and value is not None
                else c.form.write(value)
            )
            # A nested table that has all defaults is left out.
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
        """Add units, words and defaults to the JSON schema of a file.

        Parameters
        ----------
        schema : mapping
            Schema as msgspec generates it. Its entry for this table in ``$defs`` is
            changed in place.
        """
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
    """Return the structure of a table with these keys.

    Parameters
    ----------
    name : str
        Name of the structure in the JSON schema.
    keys : mapping of str to list of _Column
        Fields by key. Several fields of one key are elements of a list.
    base : type of msgspec.Struct
        Structure with further keys.
    about : str
        Description in the JSON schema.
    more : sequence
        Further keys in the form of `msgspec.defstruct`.
    """
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
    "Triple",
    "degrees_of",
    "file_table",
    "pose_of",
    "triple_of",
]
