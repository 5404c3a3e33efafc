"""Parser and encoder of XML-RPC documents, as ROS's master and nodes exchange them.

Documents are parsed incrementally, so that a long document costs little time at once.
Limits of length, values and nesting are checked before memory is allocated. Every
parsed value can be encoded again: integers have 32 bits, and text holds valid XML
characters only. Document types and custom entities are refused (entity expansion
attacks). Source: xmlrpc.com/spec.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from botyard.errors import PeerError
from botyard.names import shown

# Calls of ROS nodes have some kilobytes; only large parameters are almost as long as
# this.
MAX_BODY: Final = 4 << 20
"""Longest document, bytes."""
MAX_VALUES: Final = 20_000
"""Limit of the values in a document, including nested ones."""
MAX_DEPTH: Final = 32
"""Limit of the nesting depth of arrays and structures."""
MAX_MARKUP: Final = 4096
"""Longest tag, comment or instruction, bytes; the longest tag of the format has 20."""
MAX_NAME: Final = 256
"""Longest name of a method or of a member, characters."""
# Pieces are long enough to make the pauses cheap, and short enough not to delay a step.
VALUES_PER_PIECE: Final = 256
"""Number of values that are encoded at a time."""
_INT_LIMIT: Final = 2**31
_SCALARS: Final = frozenset(
    [
        "i4",
        "int",
        "i8",
        "boolean",
        "string",
        "double",
        "dateTime.iso8601",
        "base64",
        "nil",
    ]
)
# The table is the grammar: the children that each element may have.
_INSIDE: Final[dict[str, frozenset[str]]] = {
    "": frozenset(["methodCall", "methodResponse"]),
    "methodCall": frozenset(["methodName", "params"]),
    "methodResponse": frozenset(["params", "fault"]),
    "params": frozenset(["param"]),
    "param": frozenset(["value"]),
    "fault": frozenset(["value"]),
    "value": _SCALARS | {"array", "struct"},
    "array": frozenset(["data"]),
    "data": frozenset(["value"]),
    "struct": frozenset(["member"]),
    "member": frozenset(["name", "value"]),
}
# A value without a type element holds its text itself.
_WITH_TEXT: Final = _SCALARS | {"methodName", "name", "value"}
_MAX_CHILDREN: Final = {
    "params": MAX_BODY,
    "data": MAX_BODY,
    "struct": MAX_BODY,
    "methodCall": 2,
    "member": 2,
}
"""Limit of child elements; 1 for elements that are not listed."""
# Numbers have at most 12 digits, because `int` takes quadratic time for long texts.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,12}\Z")
# Python's `float` also accepts underscores and digits of other scripts, which peers
# must not send.
_REAL: Final = re.compile(
    r"[+-]?(inf(inity)?|nan|[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?)\Z",
    re.IGNORECASE,
)
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot represent (XML 1.0 §2.2)."""


class Document(NamedTuple):
    """Parsed document.

    Attributes
    ----------
    method : str or None
        Name of the called method; None for a response.
    values : tuple
        Arguments of the call, or the one value of a response. Each is None, a bool, an
        int of 32 bits, a float, str, bytes or datetime, a list of values, or a dict of
        values by str.
    """

    method: str | None
    values: tuple[Any, ...]


class _Element:
    """Open element: its tag, its text, and its parsed children."""

    __slots__ = ("inside", "tag", "text")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.text: list[str] = []
        self.inside: list[Any] = []


class Reader:
    """Incremental parser of one document.

    Parameters
    ----------
    limit : int
        Longest document, bytes.
    """

    def __init__(self, limit: int = MAX_BODY) -> None:
        self._limit = limit
        self._length = self._values = self._depth = 0
        # The element without a tag represents the document, so that its children need
        # no special case.
        self._stack = [_Element("")]
        self._done: Document | None = None
        # This encoding overrides the declared one: ROS uses UTF-8 only.
        parser = self._parser = expat.ParserCreate("utf-8")
        # Buffer the text: the parser would call the handler for each line of it.
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, data: bytes) -> None:
        """Feed received bytes.

        Parameters
        ----------
        data : bytes
            Next bytes of the document, cut anywhere.

        Raises
        ------
        PeerError
            The bytes are not XML-RPC, or exceed the limits; the parser cannot be used
            afterwards.
        """
        self._length += len(data)
        if self._length > self._limit:
            raise PeerError(
                f"XML-RPC: expected a document of at most {self._limit} bytes"
            )
        self._parse(data, False)
        # expat buffers an incomplete tag, so its length must be bounded here.
        if (
            self._length - max(0, self._parser.CurrentByteIndex) > MAX_MARKUP
            and not self._done
        ):
            raise PeerError(f"XML-RPC: expected tags of at most {MAX_MARKUP} bytes")

    def finish(self) -> Document:
        """Return the parsed document at the end of the input.

        Raises
        ------
        PeerError
            The document is cut short, or reports a fault.
        """
        self._parse(b"", True)
        if self._done is None:
            raise PeerError("not XML-RPC: expected a call or a response")
        return self._done

    def _parse(self, data: bytes, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            raise PeerError(f"not XML-RPC: {error}") from None
        # A handler has found an invalid value.
        except (ValueError, LookupError) as error:
            raise PeerError(f"not XML-RPC: {shown(error, 200)}") from None

    # -- handlers of the XML parser

    def _doctype(self, *_: object) -> None:
        raise PeerError(
            "XML-RPC: document types are refused, because entities could expand to a huge document"
        )

    def _start(self, tag: str, _attributes: object) -> None:
        above = self._stack[-1]
        # Only the grammar of XML-RPC is accepted, which also bounds the work for one
        # tag.
        if tag not in _INSIDE.get(above.tag, ()):
            raise PeerError(
                f"XML-RPC: expected no <{shown(tag)}> in <{above.tag or 'document'}>"
            )
        if len(above.inside) >= _MAX_CHILDREN.get(above.tag, 1):
            raise PeerError(
                f"XML-RPC: too many elements in <{above.tag or 'document'}>, expected at "
                f"most {_MAX_CHILDREN.get(above.tag, 1)}"
            )
        if tag == "value":
            # Values are counted at the start tag, before the value needs memory.
            self._values += 1
            if self._values > MAX_VALUES:
                raise PeerError(f"XML-RPC: expected at most {MAX_VALUES} values")
        elif tag in ("array", "struct"):
            # Deep nesting would overflow the stack when the value is used.
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise PeerError(
                    f"XML-RPC: expected at most {MAX_DEPTH} nested arrays and structures"
                )

        self._stack.append(_Element(tag))

    def _text(self, text: str) -> None:
        element = self._stack[-1]
        # Text elsewhere is white space between elements.
        if element.tag in _WITH_TEXT:
            element.text.append(text)

    def _end(self, tag: str) -> None:
        element = self._stack.pop()
        if tag in ("array", "struct"):
            self._depth -= 1
        self._stack[-1].inside.append(_MADE[tag](element))
        # The outermost element is closed, so the document is complete.
        if len(self._stack) == 1:
            self._done = self._stack[0].inside[0]


# -- conversion of elements


def _only(element: _Element, what: str) -> Any:
    """Return the single child of an element.

    Parameters
    ----------
    element : _Element
        Closed element.
    what : str
        Name of the expected child, for the error.

    Raises
    ------
    PeerError
        The element has no child of this name, or several children.
    """
    if len(element.inside) != 1:
        raise PeerError(f"XML-RPC: expected {what} in <{element.tag}>")
    return element.inside[0]


def _string(element: _Element) -> str:
    return "".join(element.text)


def _name(element: _Element) -> str:
    # Spaces belong to the name of a member, but some libraries indent the name of a
    # method.
    text = _string(element).strip() if element.tag == "methodName" else _string(element)
    if len(text) > MAX_NAME:
        raise PeerError(
            f"XML-RPC: expected a name of at most {MAX_NAME} characters, found {len(text)}"
        )

    return text


def _whole(element: _Element) -> int:
    text = _string(element).strip()
    if not _WHOLE.match(text) or not -_INT_LIMIT <= (number := int(text)) < _INT_LIMIT:
        raise PeerError(
            f"XML-RPC: expected a whole number of 32 bits, found {shown(text, 20)}"
        )

    return number


def _boolean(element: _Element) -> bool:
    text = _string(element).strip()
    if text not in ("0", "1"):
        raise PeerError(f"XML-RPC: expected 0 or 1, found {shown(text, 20)}")
    return text == "1"


def _double(element: _Element) -> float:
    text = _string(element).strip()
    # The length is limited because `float` takes long for huge texts.
    if len(text) > 512 or not _REAL.match(text):
        raise PeerError(f"XML-RPC: expected a number, found {shown(text, 20)}")
    return float(text)


def _time(element: _Element) -> datetime:
    text = _string(element).strip()
    try:
        return datetime.strptime(text, "%Y%m%dT%H:%M:%S")
    except ValueError:
        raise PeerError(
            f"XML-RPC: expected a time as 20260131T12:00:00, found {shown(text, 20)}"
        ) from None


def _bytes(element: _Element) -> bytes:
    try:
        # Line breaks are accepted, because libraries break long base64 into lines.
        return binascii.a2b_base64(_string(element).encode())
    except (binascii.Error, UnicodeError) as error:
        raise PeerError(f"XML-RPC: expected base64: {error}") from None


# A value without a type element is a string (xmlrpc.com/spec).
def _value(element: _Element) -> Any:
    return element.inside[0] if element.inside else _string(element)


def _member(element: _Element) -> tuple[str, Any]:
    if len(element.inside) != 2 or not isinstance(element.inside[0], str):
        raise PeerError("XML-RPC: expected a name and a value in <member>")
    return element.inside[0], element.inside[1]


def _call(element: _Element) -> Document:
    # A call without arguments may leave <params> out.
    method, *params = element.inside or [None]
    if not isinstance(method, str) or not all(isinstance(p, list) for p in params):
        raise PeerError(
            "XML-RPC: expected the name of a method and its parameters in <methodCall>"
        )

    return Document(method, tuple(params[0]) if params else ())


def _response(element: _Element) -> Document:
    found = _only(element, "values")
    if isinstance(found, _Fault):
        raise PeerError(f"the peer reports: {shown(found.text, 300)}")
    if len(found) > 1:
        raise PeerError(
            f"XML-RPC: expected one value in a response, found {len(found)}"
        )

    # Some servers answer a call without a result by empty <params>.
    return Document(None, tuple(found) or (None,))


class _Fault(NamedTuple):
    text: str


def _fault(element: _Element) -> _Fault:
    value = _only(element, "a value")
    return _Fault(
        str(value.get("faultString", "")) if isinstance(value, dict) else str(value)
    )


_MADE: Final[dict[str, Callable[[_Element], Any]]] = {
    "methodCall": _call,
    "methodResponse": _response,
    "methodName": _name,
    "params": lambda e: e.inside,
    "param": lambda e: _only(e, "a value"),
    "fault": _fault,
    "value": _value,
    "array": lambda e: _only(e, "<data>"),
    "data": lambda e: e.inside,
    "struct": lambda e: dict(e.inside),
    "member": _member,
    "name": _name,
    "i4": _whole,
    "int": _whole,
    "i8": _whole,
    "boolean": _boolean,
    "double": _double,
    "string": _string,
    "dateTime.iso8601": _time,
    "base64": _bytes,
    "nil": lambda e: None,
}


# -- encoding


def _escaped(text: str) -> str:
    """Return text escaped for XML, without characters that XML cannot represent."""
    return escape(text if text.isprintable() else _NOT_XML.sub("", text))


def pieces(value: Any) -> Iterator[str]:
    """Yield a value as XML, in pieces of about `VALUES_PER_PIECE` values.

    A server can do other work in between. An iterator becomes an array, with one value
    in each piece.

    Parameters
    ----------
    value : object
        None, bool, int of 32 bits, float, str, bytes, datetime, list, tuple, dict of
        values by str, or an iterator of values. Containers may be nested; they must not
        change before the last piece.

    Yields
    ------
    str
        Parts of the XML text in order.

    Raises
    ------
    PeerError
        XML-RPC cannot represent the value.
    """
    # A stack replaces recursion, which allows a pause at any depth.
    out: list[str] = []
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        kind = type(one)
        # Types are compared exactly, which is faster than isinstance and separates bool
        # from int.
        if kind is _Raw:
            out.append(one.text)
        elif kind is _Rest:
            inner = next(one.values, _END)
            # The stack is last in, first out: the value comes next, then the rest of
            # the array.
            todo += (_ARRAY_END,) if inner is _END else (one, inner)
            yield "".join(out)
            out.clear()
        elif kind is str:
            out.append(f"<value><string>{_escaped(one)}</string></value>")
        elif kind is bool:
            out.append(f"<value><boolean>{one:d}</boolean></value>")
        elif kind is int:
            if not -_INT_LIMIT <= one < _INT_LIMIT:
                raise PeerError(
                    f"XML-RPC: expected whole numbers of 32 bits, found {one}"
                )

            out.append(f"<value><int>{one}</int></value>")
        elif kind is float:
            out.append(f"<value><double>{one!r}</double></value>")
        elif kind is list or kind is tuple:
            out.append("<value><array><data>")
            todo.append(_ARRAY_END)
            # The entries are reversed, because the last entry of the stack is encoded
            # first.
            todo += reversed(one)
        elif kind is dict:
            out.append("<value><struct>")
            todo.append(_STRUCT_END)
            for key, inner in reversed(one.items()):
                if not isinstance(key, str):
                    raise PeerError(
                        f"XML-RPC: expected text as the name of a member, found {key!r}"
                    )

                todo += (
                    _MEMBER_END,
                    inner,
                    _Raw(f"<member><name>{_escaped(key)}</name>"),
                )
        # This test follows the most frequent types, because it is slow and iterators
        # are rare.
        elif isinstance(one, Iterator):
            out.append("<value><array><data>")
            todo.append(_Rest(one))
        elif one is None:
            # ``nil`` is an extension of the format, which Python's xmlrpc also reads.
            out.append("<value><nil/></value>")
        elif kind is bytes:
            out.append(
                f"<value><base64>{base64.b64encode(one).decode()}</base64></value>"
            )
        elif kind is datetime:
            out.append(
                f"<value><dateTime.iso8601>{one:%Y%m%dT%H:%M:%S}</dateTime.iso8601></value>"
            )
        else:
            raise PeerError(f"XML-RPC has no values of the type {kind.__name__}")

        # Containers count with their markup, so a piece has about this many values.
        if len(out) >= VALUES_PER_PIECE:
            yield "".join(out)
            out.clear()

    yield "".join(out)


class _Raw(NamedTuple):
    """XML text that the encoder copies unchanged."""

    text: str


class _Rest(NamedTuple):
    """Remaining values of an array whose values are made on demand."""

    values: Iterator[Any]


_END: Final = object()
_ARRAY_END: Final = _Raw("</data></array></value>")
_STRUCT_END: Final = _Raw("</struct></value>")
_MEMBER_END: Final = _Raw("</member>")
_HEAD: Final = "<?xml version='1.0'?>\n"


def response(value: Any) -> Iterator[str]:
    """Yield a response in pieces; see `pieces`.

    Parameters
    ----------
    value : object
        Value that the called method returned.
    """
    yield f"{_HEAD}<methodResponse>\n<params>\n<param>\n"
    yield from pieces(value)
    yield "\n</param>\n</params>\n</methodResponse>\n"


def encode_call(method: str, args: tuple[Any, ...]) -> bytes:
    """Return the bytes of a call.

    Parameters
    ----------
    method : str
        Name of the method.
    args : tuple
        Its arguments; see `pieces` for their types.

    Raises
    ------
    PeerError
        XML-RPC cannot represent an argument.
    """
    params = "".join(f"<param>\n{''.join(pieces(a))}</param>\n" for a in args)
    return (
        f"{_HEAD}<methodCall>\n<methodName>{_escaped(method)}</methodName>\n"
        f"<params>\n{params}</params>\n</methodCall>\n"
    ).encode()


__all__ = [
    "MAX_BODY",
    "MAX_DEPTH",
    "MAX_VALUES",
    "Document",
    "Reader",
    "encode_call",
    "pieces",
    "response",
]
