"""Forms of declared types: conversions of values to plain data and back.

Plain data are numbers, strings, bytes, lists and mappings, so they name no code:

- a dataclass is a map of all its fields by name, so that a later version can add a
  field with a default;
- a named tuple (a pose) is a list; a member of an enumeration is its number;
- a value of one of several classes is a list with the name of the class and its fields
  (`declare`); a field can select the class instead (`declare_selected`).

There are two styles. The exact style keeps all bits: the message
(`botyard.codec.messages`) stores each array with its type and shape, and the body
refers to the array by its index. An integer in the place of a declared float stays an
integer, so that a model keeps its digest. In the inline style numbers have their
declared types and arrays are lists, for transports without arrays.

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

No declared type limits the objects to which such values (options, values of columns)
decode.
"""
# The limit is well below Python's recursion limit of 1000 frames.
MAX_NESTING: Final = 100
"""Largest nesting depth of values without a declared type."""

Classes = Mapping[str, Any]
"""Allowed classes by the name that stands in a message."""


class Reader:
    """Decoder of one message, which limits the size of all values without a declared type.

    Parameters
    ----------
    arrays : sequence of array
        Arrays of the message, to which the body refers by index.
    free : int
        Largest size of values without a declared type, bytes.
    decode : callable
        Decoder of the format in which the body is written, such as MessagePack.
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

        Parameters
        ----------
        raw : bytes-like
            The value in the body's format.
        hint : type
            Its declared type.

        Raises
        ------
        ValueError
            `raw` has no valid value. Classes that check their values may raise other
            exceptions.
        """
        form = _form(hint, self._inline)
        # msgspec checks all types first, so that conversions only meet valid values.
        found = self._decode(raw, type=form.wire)
        return found if form.read is None else form.read(found, self)

    def selector(self, raw: msgspec.Raw, field: str) -> str:
        """Return one string field of a map without decoding the other fields.

        Parameters
        ----------
        raw : Raw
            A map in the body's format.
        field : str
            Name of the field.

        Raises
        ------
        msgspec.MsgspecError
            `raw` is no map, or the field is absent or no string.
        """
        # To keep the other fields undecoded costs almost nothing, and the class decides
        # later how to decode them.
        found = self._decode(raw, type=dict[str, msgspec.Raw])
        # An empty Raw is not valid data, so an absent field is an error of msgspec.
        name: str = self._decode(found.get(field, b""), type=str)
        return name

    def free(self, raw: msgspec.Raw) -> Any:
        """Decode a value without a declared type.

        Such a value consists of numbers, strings, bytes, lists and mappings.

        Parameters
        ----------
        raw : Raw
            The value in the body's format. Its size counts against the budget of the
            message.

        Raises
        ------
        ValueError
            The budget is used up, the value is nested too deep, or a key is no string.
        """
        # Few bytes can become many objects, so limit them.
        self._free -= len(raw)
        if self._free < 0:
            raise ValueError(
                "the values without a declared type (options, columns) exceed the limit "
                f"of their total size by {-self._free} bytes"
            )

        value = self._decode(raw)
        _check_plain(value, MAX_NESTING)
        return value


def _check_plain(value: Any, depth: int) -> None:
    """Check a value without a declared type, and all values in it.

    Parameters
    ----------
    value : object
        Decoded value.
    depth : int
        Levels of nesting that the value may have.

    Raises
    ------
    ValueError
        The value is nested too deep, a key is no string, or a part of it is not plain.
    """
    if depth < 0:
        raise ValueError(
            f"expected values nested at most {MAX_NESTING} deep, found deeper nesting"
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
    # MessagePack also has dates and extensions, which have no plain form.
    elif not isinstance(value, (bool, int, float, str, bytes, NoneType)):
        raise ValueError(f"expected a plain value, found {type(value).__name__}")


class _Form(NamedTuple):
    """Conversion between the values of a declared type and their form in a message.

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
    """Register the classes that values of the declared type `hint` may have.

    The type is a protocol, a base class or `object`.

    A value is then written as a list of the name of its class and its fields.

    Parameters
    ----------
    hint : type
        Declared type of fields.

    classes : callable
        Returns the allowed classes by name. It is called when values are read or
        written, so that plug-ins can add classes.
    """
    _declared[hint] = classes


def declare_selected(hint: Any, field: str, find: Callable[[str], Any]) -> None:
    """Register a base class whose field `field` selects the class of a value.

    `find` returns the class for the value of the field; it raises an exception if there
    is none.

    Parameters
    ----------
    hint : type
        Declared type of fields.
    field : str
        Name of a text field that all subclasses have.
    find : callable
        Returns the class for a value of the field.
    """
    _selected[hint] = field, find


def written(value: Any, hint: Any, *, inline: bool = False) -> Any:
    """Return a value of the type `hint` as plain data, in which arrays stay arrays.

    msgspec writes the result; a hook has to write arrays, unless `inline` is true.

    Parameters
    ----------
    value : object
        Value of the type `hint`.
    hint : type
        Declared type.
    inline : bool
        Whether numbers get their declared types and arrays become lists.

    Raises
    ------
    NotImplementedError
        The value has a class that is not declared.
    TypeError
        `hint`, or a type in it, has no form.
    """
    write = _form(hint, inline).write
    return value if write is None else write(value)


def plain_number(value: object) -> object:
    """Convert a number or text of NumPy to Python, as a hook of msgspec.

    Parameters
    ----------
    value : object
        Value that msgspec does not know.

    Raises
    ------
    NotImplementedError
        `value` is not a number, text or mapping.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(
        f"expected a number, text or mapping, found {type(value).__qualname__}"
    )


def _form(hint: Any, inline: bool) -> _Form:
    # The result is cached, because a form is built from the forms of all its fields.
    return _cached_form(cast(Hashable, hint), inline)


@cache
def _cached_form(hint: Any, inline: bool) -> _Form:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Form(msgspec.Raw, _plain, lambda raw, reader: reader.free(raw))

    if origin is Annotated:
        form = _form(args[0], inline)
        # The limits of the annotation must also hold for the type in the message.
        limited = Annotated.__class_getitem__((form.wire, *args[1:]))
        return form._replace(wire=limited)

    # An integer in the place of a float must stay an integer, or the digest changes.
    if hint is float and not inline:
        return _Form(int | float, None, None)

    # Inline values may come from NumPy, so they are converted to the declared type.
    if hint in (int, float, bool):
        return _Form(hint, hint if inline else None, None)
    if hint in (str, bytes, NoneType, None) or origin is Literal:
        return _Form(hint, None, None)

    # Look up declared hints before the tests for classes: such a hint may itself be a
    # dataclass.
    if hint in _declared:
        return _one_of(_declared[hint], inline)
    if hint in _selected:
        return _by_field(*_selected[hint], inline)

    if origin in (Union, UnionType):
        return _optional([_form(a, inline) for a in args])
    if origin is np.ndarray:
        return _array(get_args(args[1])[0], inline)

    # This test comes before the test for ``tuple[T, ...]``, which has the same origin.
    if origin is tuple and args[1:] != (...,):
        return _row(tuple, [_form(a, inline) for a in args])
    if origin in (tuple, cast(Any, Sequence)) or origin is list:
        return _many(_form(args[0], inline), list if origin is list else tuple)
    if origin is cast(Any, Mapping) or origin is dict:
        return _mapping(_form(args[1], inline))

    # A message contains the number of an enumeration's member, not its name, so that
    # the member can be renamed.
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(int, int, lambda v, _: hint(v))
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        hints = get_type_hints(hint, include_extras=True)
        return _row(hint, [_form(hints[name], inline) for name in hint._fields])

    if is_dataclass(hint):
        return _fields(cast(type[Any], hint), inline)
    # The declaration of the type is wrong, not the data: any test that writes a value
    # of the type shows this error.
    raise TypeError(f"values of the type {hint} cannot be written as data")


def _plain(value: Any) -> Any:
    """Convert a value without a declared type to plain data: numbers, texts, lists and maps."""
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
    # Keep the classes by name: collecting them for each value takes longer than reading
    # the value.
    known: dict[str, type[Any]] = {}

    def write(value: Any) -> Any:
        kind = type(value)
        if kind not in checked:
            # The name alone is not enough: another package may have a class of the same
            # name.
            if classes().get(kind.__name__) is not kind:
                raise NotImplementedError(
                    f"expected a value of one of the classes {', '.join(classes())}, "
                    f"found {kind.__qualname__}"
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
    # msgspec checks the numbers, because NumPy would truncate 1.5 to 1 in an array of
    # integers.
    number = int if issubclass(kind, np.integer) else float
    return _Form(
        _generic(list, number), lambda v: v.tolist(), lambda v, _: np.array(v, kind)
    )


def _read_array(index: int, reader: Reader) -> NDArray[Any]:
    """Return an array of the message.

    Parameters
    ----------
    index : int
        Number of the array, from the body.
    reader : Reader
        Reader with the arrays.

    Raises
    ------
    ValueError
        There is no such array.
    """
    # A negative index would be valid in Python.
    if not 0 <= index < len(reader.arrays):
        raise ValueError(f"expected one of {len(reader.arrays)} arrays, found {index}")
    return reader.arrays[index]


def _optional(forms: Sequence[_Form]) -> _Form:
    """Return the form of a union type, of which at most one member needs a conversion."""
    wire = Union.__getitem__(tuple(f.wire for f in forms))
    # The unpacking fails if two members need conversions: a value would not show which
    # conversion applies.
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
    """Return the form of a tuple type whose elements have different types."""
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

    # Poses are the most frequent values. Their numbers need no conversion, so only the
    # tuple is made.
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

    msgspec has no union with Raw, so an empty Raw marks a missing value.
    """
    if is_needed:
        return name, wire
    return (
        (name, wire, msgspec.Raw())
        if wire is msgspec.Raw
        else (name, wire | UnsetType, UNSET)
    )


def _fields(kind: type[Any], inline: bool) -> _Form:
    """Return the form of a dataclass: a map of its fields by name.

    A field that the constructor does not accept must have its constant value.
    """
    hints = get_type_hints(kind, include_extras=True)
    forms = {f.name: _form(hints[f.name], inline) for f in fields(kind)}
    # Fixed fields are also written, so that a reader sees the kind of the value.
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

        # The constructor runs, so that the checks of the class hold for values from
        # outside also.
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
