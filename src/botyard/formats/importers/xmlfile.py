"""Bounded reading of untrusted XML, with the line of each element.

Declarations of XML entities are refused, because a few of them can expand to billions of
characters, and others name files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from botyard.errors import WorldFileError
from botyard.formats.base import Source
from botyard.formats.budget import Meter
from botyard.formats.importers.values import Value
from botyard.names import shown

ELEMENT_COST: Final = 5
"""Cost of an XML element in the budget, in entities; the cost of an attribute is one."""
MAX_TEXT: Final = 1_000_000
"""Largest number of characters in an element's own text."""


@dataclass(slots=True)
class Element:
    """Element of an XML file.

    Attributes
    ----------
    tag : str
        Name, without the prefix of a namespace.
    attributes : dict of str to str
        Attributes as written.
    path, line : str, int
        Position of its start.
    children : list of Element
        Child elements, in order.
    text : str
        Its own text, without the text of children.
    prefix : str
        Prefix of its name, such as ``block`` of ``block:class``.
    """

    tag: str
    attributes: dict[str, str]
    path: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""
    prefix: str = ""

    def value(self) -> Value:
        """Return the text of the element as a `Value`."""
        return Value(self.text.strip(), self.tag, self.path, lambda: self.line)

    def attribute(self, name: str) -> Value | None:
        """Return the value of an attribute; None if the element does not have it."""
        text = self.attributes.get(name)
        if text is None:
            return None
        return Value(text.strip(), f"{self.tag} {name}", self.path, lambda: self.line)

    def named(self, tag: str) -> Iterator[Element]:
        """Yield the child elements that have a tag."""
        return (child for child in self.children if child.tag == tag)

    def child(self, tag: str) -> Element | None:
        """Return the first child element that has a tag; None if there is none."""
        return next(self.named(tag), None)

    def given(self, name: str) -> Value | None:
        """Return the text of a child element, or an attribute of that name; None if both are
        absent.
        """
        child = self.child(name)
        return self.attribute(name) if child is None else child.value()

    def keys(self) -> dict[str, Value]:
        """Return attributes and child elements by name, for the check of keys."""
        found = {
            name: Value(text, f"{self.tag} {name}", self.path, lambda: self.line)
            for name, text in self.attributes.items()
        }
        # The first child of a name has the line that a note names.
        for child in self.children:
            found.setdefault(child.tag, child.value())
        return found

    def fail(self, expected: str, found: str = "none") -> WorldFileError:
        """Return an error about this element; the caller raises it."""
        return WorldFileError(
            f"{self.tag}: expected {expected}, found {found}", self.path, self.line
        )


class _Parser:
    def __init__(self, source: Source, meter: Meter) -> None:
        self._path = source.name
        self._meter = meter
        self._root: Element | None = None
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self._length = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity

    def run(self, data: bytes) -> Element:
        # XML forbids blanks before its declaration, but files have them.
        body = data.lstrip(b" \t\r\n")
        skipped = data[: len(data) - len(body)].count(b"\n")
        try:
            self._parser.Parse(body, True)
        except expat.ExpatError as error:
            raise WorldFileError(
                f"not XML: {expat.errors.messages[error.code]}",
                self._path,
                error.lineno + skipped,
            ) from None
        except (LookupError, ValueError) as error:
            # The file declares an encoding that does not exist.
            raise WorldFileError(f"not XML: {shown(error, 100)}", self._path) from None

        # expat refuses a file without an element.
        assert self._root is not None
        return self._root

    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self._line()
        self._meter.add("entities", ELEMENT_COST + len(attributes), line)
        self._meter.check("nesting", len(self._open) + 1, line)
        prefix, _, tag = name.rpartition(":")
        element = Element(tag, attributes, self._path, line, prefix=prefix)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, _name: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def _characters(self, text: str) -> None:
        if sum(map(len, self._texts[-1])) + len(text) > MAX_TEXT:
            raise WorldFileError(
                f"expected a text of at most {MAX_TEXT} characters, found more",
                self._path,
                self._line(),
            )
        self._texts[-1].append(text)

    def _entity(self, name: str, *_: object) -> None:
        raise WorldFileError(
            f'expected a file without entities, found the entity "{shown(name)}"',
            self._path,
            self._line(),
        )


def read_xml(source: Source, meter: Meter) -> Element:
    """Return the root element of an XML file.

    Parameters
    ----------
    source : Source
        File.
    meter : Meter
        Counts elements and attributes as ``entities``, their depth as ``nesting``.

    Raises
    ------
    WorldFileError
        The file is not XML, declares entities, or has a very long text.
    BudgetError
        The file has too many elements, or they are nested too deeply.
    """
    return _Parser(source, meter).run(source.data)


def root_tag(source: Source) -> bytes:
    """Return the text from the first element on, at most 4 KiB, for the detection of formats."""
    head = source.data[:65536].lstrip(b"\xef\xbb\xbf \t\r\n")
    while head[:2] in (b"<?", b"<!"):
        # A document type may have declarations in brackets.
        inner = (
            head.partition(b">")[0].startswith(b"<!DOCTYPE")
            and b"[" in (head.partition(b">")[0])
        )
        end = b"-->" if head.startswith(b"<!--") else b"]>" if inner else b">"
        _, found, head = head.partition(end)
        if not found:
            return b""
        head = head.lstrip()
    return head[:4096]


__all__ = ["Element", "read_xml", "root_tag"]
