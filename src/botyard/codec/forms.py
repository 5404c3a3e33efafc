"""Forms of declared types: how values become plain data, and plain data values.

Plain data are numbers, strings, bytes, lists and mappings, so they name no code:

- a dataclass is a map of all its fields by name, so that a later version can add a
  field with a default;
- a named tuple (a pose) is a list, a member of an enumeration its number;
- a value of one of several classes is a list with the name of the class and its fields
  (`declare`); a field can select the class instead (`declare_selected`).

There are two styles. The exact style keeps all bits: an array stands in the message
(`botyard.codec.messages`) with its type and shape, and the body has its index. An
integer in the place of a declared float stays an integer, so that a model keeps its
digest. In the inline style numbers have their declared types and arrays are lists, for
transports without arrays.

Readers get bytes from outside. msgspec rejects wrong types before it makes objects, so
the length of a message limits its cost. `MAX_FREE` limits values without a declared
type.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from botyard.names import shown

MAX_FREE: Final = 4 * 2**20
"""Largest size of values without a declared type in a recorded message, bytes.

Such values (options, values of columns) can become any objects.
"""
# Well below Python's limit of recursion, 1000 frames.
MAX_NESTING: Final = 100
"""Largest depth of values without a declared type."""

Classes = Mapping[str, Any]
"""Allowed classes by name."""


class Reader:
    """Arrays of a message, and the remaining budget for values of no declared type.

    Parameters
    ----------
    arrays : sequence of array
        Arrays that the body refers to.
    free : int
        Largest size of values without a declared type, bytes.
    decode : callable
        Decoder of the body's format.
    inline : bool
        Whether the body has the inline style.
    """

    def __init__(
        self,
        arrays: Sequence[NDArray[Any]] = (),
        free: int = MAX_FREE,
        decode: Callable[..., Any] = msgspec.msgpack.decode,
        *,
        inline: bool = False,
    ) -> None:
        self.arrays = arrays
        self._free = free
        self._decode = decode
        self._inline = inline

    def value(self, raw: Any, hint: Any) -> Any:
        """Decode a value of a declared type.

        Raises
        ------
        ValueError
            Or another exception of a class that checks its values: `raw` has no valid
            value.
        """
        form = _form(hint, self._inline)
        found = self._decode(raw, type=form.wire)
        return found if form.read is None else form.read(found, self)

    def selector(self, raw: msgspec.Raw, field: str) -> str:
        """Return one field of a map, a string; the other fields stay undecoded."""
        found = self._decode(raw, type=dict[str, msgspec.Raw])
        # An empty Raw is not valid data, so an absent field is an error of msgspec.
        name: str = self._decode(found.get(field, b""), type=str)
        return name

    def free(self, raw: msgspec.Raw) -> Any:
        """Decode a value without a declared type.

        It consists of numbers, strings, bytes, lists and mappings.
        """
        # Few bytes can become many objects, so limit them.
        self._free -= len(raw)
        if self._free < 0:
            raise ValueError(
                "expected fewer bytes of values without a declared type, found more"
            )

        value = self._decode(raw)
        _check_plain(value, MAX_NESTING)
        return value


def _check_plain(value: Any, depth: int) -> None:
    if depth < 0:
        raise ValueError(
            f"expected values nested at most {MAX_NESTING} deep, found deeper ones"
        )

    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"expected strings as keys, found {shown(repr(key), 40)}"
                )

            _check_plain(one, depth - 1)
    elif isinstance(value, list):
        for one in value:
            _check_plain(one, depth - 1)
    elif not isinstance(value, (bool, int, float, str, bytes, NoneType)):
        raise ValueError(f"expected a plain value, found {type(value).__name__}")


class _Form(NamedTuple):
    """Encoding of the values of a declared type.

    Attributes
    ----------
    wire : type
        Type in the message, for msgspec.
    write : callable or None
        Converts a value for msgspec; None: msgspec writes it directly.
    read : callable or None
        Converts a value from msgspec; None: no conversion.
    """

    wire: Any
    write: Callable[[Any], Any] | None
    read: Callable[[Any, Reader], Any] | None


_declared: dict[Any, Callable[[], Classes]] = {}
_selected: dict[Any, tuple[str, Callable[[str], Any]]] = {}


def declare(hint: Any, classes: Callable[[], Classes]) -> None:
    """Register the classes allowed for `hint`: a protocol, a base class or object."""
    _declared[hint] = classes


def declare_selected(hint: Any, field: str, find: Callable[[str], Any]) -> None:
    """Register a base class whose field `field` selects the class of a value.

    `find` returns the class for the value of the field; it raises an exception if there
    is none.
    """
    _selected[hint] = field, find


def written(value: Any, hint: Any, *, inline: bool = False) -> Any:
    """Return a value of the type `hint` as plain data, except for its arrays.

    msgspec writes the result; a hook has to write arrays, unless `inline` is true.

    Raises
    ------
    NotImplementedError
        The value has a class that is not declared.
    """
    write = _form(hint, inline).write
    return value if write is None else write(value)


def plain_number(value: object) -> object:
    """Convert a number or text of NumPy to Python, as a hook of msgspec."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__qualname__} is not data")


def _form(hint: Any, inline: bool) -> _Form:
    return _cached_form(cast(Hashable, hint), inline)


@cache
def _cached_form(hint: Any, inline: bool) -> _Form:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Form(msgspec.Raw, _plain, lambda raw, reader: reader.free(raw))
    if origin is Annotated:
        form = _form(args[0], inline)
        limited = Annotated.__class_getitem__((form.wire, *args[1:]))
        return form._replace(wire=limited)
    # An integer in the place of a float must stay one, or the digest changes.
    if hint is float and not inline:
        return _Form(int | float, None, None)
    # Inline values may come from NumPy, so they are converted to the declared type.
    if hint in (int, float, bool):
        return _Form(hint, hint if inline else None, None)
    if hint in (str, bytes, NoneType, None) or origin is Literal:
        return _Form(hint, None, None)
    # Before the checks of classes: a declared hint may itself be a dataclass.
    if hint in _declared:
        return _one_of(_declared[hint], inline)
    if hint in _selected:
        return _by_field(*_selected[hint], inline)
    if origin in (Union, UnionType):
        return _optional([_form(a, inline) for a in args])
    if origin is np.ndarray:
        return _array(get_args(args[1])[0], inline)
    if origin is tuple and args[1:] != (...,):
        return _row(tuple, [_form(a, inline) for a in args])
    if origin in (tuple, cast(Any, Sequence)) or origin is list:
        return _many(_form(args[0], inline), list if origin is list else tuple)
    if origin is cast(Any, Mapping) or origin is dict:
        return _mapping(_form(args[1], inline))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(int, int, lambda v, _: hint(v))
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        hints = get_type_hints(hint, include_extras=True)
        return _row(hint, [_form(hints[name], inline) for name in hint._fields])

    if is_dataclass(hint):
        return _fields(cast(type[Any], hint), inline)
    # A mistake in the declaration, not in the data: it shows in the first test of the
    # type.
    raise TypeError(f"{hint} has no form as bytes")


def _plain(value: Any) -> Any:
    """Convert a value without a declared type to plain data."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _by_field(field: str, find: Callable[[str], Any], inline: bool) -> _Form:
    return _Form(
        msgspec.Raw,
        lambda value: written(value, type(value), inline=inline),
        lambda raw, reader: reader.value(raw, find(reader.selector(raw, field))),
    )


def _one_of(classes: Callable[[], Classes], inline: bool) -> _Form:
    checked: dict[type[Any], Callable[[Any], Any] | None] = {}
    # Collecting all classes for each value takes longer than reading the value.
    known: dict[str, type[Any]] = {}

    def write(value: Any) -> Any:
        kind = type(value)
        if kind not in checked:
            # The name alone is not enough: another package may have a class of the same
            # name.
            if classes().get(kind.__name__) is not kind:
                raise NotImplementedError(
                    f"{kind.__qualname__} is not one of {', '.join(classes())}"
                )

            checked[kind] = _form(kind, inline).write
            known.clear()

        one = checked[kind]
        return [kind.__name__, value if one is None else one(value)]

    def read(found: tuple[str, msgspec.Raw], reader: Reader) -> Any:
        kind = known.get(found[0])
        if kind is None:
            known.update(classes())
            kind = known.get(found[0])

        if kind is None:
            raise ValueError(
                f'expected one of {", ".join(classes())}, found "{shown(found[0], 40)}"'
            )

        return reader.value(found[1], kind)

    return _Form(tuple[str, msgspec.Raw], write, read)


def _array(kind: Any, inline: bool) -> _Form:
    """Return the form of an array of numbers whose type is `kind`."""
    if not inline:
        return _Form(int, None, _read_array)
    # msgspec checks the numbers, because NumPy would cut decimals of an integer.
    number = int if issubclass(kind, np.integer) else float
    return _Form(
        _generic(list, number), lambda v: v.tolist(), lambda v, _: np.array(v, kind)
    )


def _read_array(index: int, reader: Reader) -> NDArray[Any]:
    if not 0 <= index < len(reader.arrays):
        raise ValueError(f"expected one of {len(reader.arrays)} arrays, found {index}")
    return reader.arrays[index]


def _optional(forms: Sequence[_Form]) -> _Form:
    """Return the form of a union, of which at most one type needs a conversion."""
    wire = Union.__getitem__(tuple(f.wire for f in forms))
    (special,) = [f for f in forms if f.read or f.write] or [_Form(None, None, None)]
    write, read = special.write, special.read
    return _Form(
        wire,
        write and (lambda v: None if v is None else write(v)),
        read and (lambda v, reader: None if v is None else read(v, reader)),
    )


def _many(form: _Form, kind: Callable[[Any], Any]) -> _Form:
    write, read = form.write, form.read
    if read is None:
        return _Form(
            _generic(kind, form.wire, ...)
            if kind is tuple
            else _generic(kind, form.wire),
            None,
            None,
        )

    return _Form(
        _generic(list, form.wire),
        write and (lambda v: [*map(write, v)]),
        lambda v, reader: kind([read(x, reader) for x in v]),
    )


def _generic(kind: Any, *parameters: Any) -> Any:
    return kind.__class_getitem__(parameters)


def _row(kind: Any, forms: Sequence[_Form]) -> _Form:
    """Return the form of a tuple with different types, whose class is `kind`."""
    wire = _generic(tuple, *(f.wire for f in forms))
    writes = [f.write for f in forms]
    reads = [f.read for f in forms]
    make = tuple if kind is tuple else kind._make

    def write(values: Any) -> Any:
        return [
            v if one is None else one(v) for v, one in zip(values, writes, strict=True)
        ]

    def read(values: Any, reader: Reader) -> Any:
        return make(
            v if one is None else one(v, reader)
            for v, one in zip(values, reads, strict=True)
        )

    # Poses are the most frequent values of all, and need no conversion of numbers.
    plain = None if kind is tuple else lambda values, _: make(values)
    return _Form(wire, write if any(writes) else None, read if any(reads) else plain)


def _mapping(form: _Form) -> _Form:
    write, read = form.write, form.read
    return _Form(
        _generic(dict, str, form.wire),
        write and (lambda v: {key: write(one) for key, one in v.items()}),
        read and (lambda v, reader: {key: read(one, reader) for key, one in v.items()}),
    )


def _member(name: str, wire: Any, is_needed: bool) -> Any:
    """Return the declaration of a struct field.

    msgspec has no union with Raw, so an empty Raw stands for a missing value.
    """
    if is_needed:
        return name, wire
    return (
        (name, wire, msgspec.Raw())
        if wire is msgspec.Raw
        else (name, wire | UnsetType, UNSET)
    )


def _fields(kind: type[Any], inline: bool) -> _Form:
    """Return the form of a dataclass: a map of its fields.

    Fields that its constructor does not accept must have their fixed value.
    """
    hints = get_type_hints(kind, include_extras=True)
    forms = {f.name: _form(hints[f.name], inline) for f in fields(kind)}
    fixed = {f.name: f.default for f in fields(kind) if not f.init}
    needed = {
        f.name
        for f in fields(kind)
        if f.default is MISSING and f.default_factory is MISSING
    }
    wire = msgspec.defstruct(
        kind.__name__,
        [_member(name, form.wire, name in needed) for name, form in forms.items()],
        kw_only=True,
        # An unknown field is a misspelling or a newer version. Ignoring it would lose a
        # setting silently.
        forbid_unknown_fields=True,
        module=__name__,
    )
    writes = {name: form.write for name, form in forms.items()}

    def write(value: Any) -> Any:
        return {
            name: getattr(value, name) if one is None else one(getattr(value, name))
            for name, one in writes.items()
        }

    plan = [(name, form.read, form.wire is msgspec.Raw) for name, form in forms.items()]

    def read(found: Any, reader: Reader) -> Any:
        values = {}
        for name, one, is_raw in plan:
            value = getattr(found, name)
            # The writer did not know this field yet, so its default applies.
            if value is not UNSET and not (is_raw and not value):
                values[name] = value if one is None else one(value, reader)

        for name, value in fixed.items():
            if (said := values.pop(name, value)) != value:
                raise ValueError(
                    f'{name}: expected "{value}", found "{shown(str(said), 40)}"'
                )

        return kind(**values)

    return _Form(wire, write if any(writes.values()) else None, read)


__all__ = [
    "MAX_FREE",
    "Classes",
    "Reader",
    "declare",
    "declare_selected",
    "plain_number",
    "written",
]
