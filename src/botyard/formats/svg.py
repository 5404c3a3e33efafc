"""Floor plans in SVG (extra "drawings"); for the visibility of layers see `botyard.formats.drawing`.

svgelements reads the file. It writes out every ``use``, hands all attributes of a group down to what is in it, and looks through them
with patterns whose time grows with the square of their length. So the file is measured first, by a parser of its own.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from typing import Any, Final
from xml.parsers import expat

import numpy as np

from botyard.errors import FormatError, MapError
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.drawing import DEFAULT_UNIT, Line, chords, missing, to_world
from botyard.model.world import World
from botyard.names import shown

MAX_ATTRIBUTE: Final = 10_000
"""Characters of an attribute, other than lists of points and links."""
MAX_BLANKS: Final = 1_000
"""Consecutive blanks between numbers."""
_LISTS: Final = frozenset({"d", "points"})
_COPIED: Final = frozenset({"href", "xlink:href"})
_CHARS_PER_ENTITY: Final = 400
"""Characters of attributes that the library searches in the time of one entity."""
ELEMENT_COST: Final = 20
"""Cost of an element, in entities: the library takes about 0.2 ms for one, however small."""
_CURVE_COST: Final = 10
"""Cost of a curve of a path, in entities, besides its points."""
_SCAN_PER_ENTITY: Final = 50
"""To close a subpath the library scans back to its start: this many numbers in about the time of one entity."""
_SAMPLES: Final = [k / 16 for k in range(17)]
"""Parameters at which the extent of a curve is sampled."""
_NUMBER: Final = re.compile(r"[0-9.]+")
_PIECE: Final = re.compile(r"[mM]|[zZ]|[0-9.]+")
_BLANKS: Final = re.compile(r"\s{%d}" % MAX_BLANKS)  # noqa: UP031
_ALL = "*"


def read(source: Source, options: Options) -> World:
    """An SVG drawing as a world of walls; y goes up, the drawing's lower left corner is the origin.

    Raises
    ------
    MapError
        It is not SVG, too large, has no line in it, or the extra is not installed.
    """
    try:
        import svgelements as svg
    except ImportError:
        raise missing(source) from None
    meter = Meter(options.budget, source.name)
    measure(source.data, meter)
    layers: dict[str, list[Line]] = {}
    try:
        drawing = svg.SVG.parse(io.BytesIO(source.data), ppi=96)
        size = options.scale(DEFAULT_UNIT, source.name, "a unit of the drawing")
        box = drawing.viewbox
        width, height = float(drawing.width or 0.0), float(drawing.height or 0.0)
        # the reader has scaled user units to pixels; back to what the drawing says
        unit = float(box.width) / width if box is not None and box.width and width else 1.0
        bottom = height if height else 0.0
        _walk(svg, drawing, "", layers, unit * size, meter)
    except FormatError:
        raise
    except Exception as error:  # the library raises all kinds of exceptions for damaged files
        reason = shown(error, 200) if str(error) else type(error).__name__
        raise MapError(f"not an SVG drawing that can be read: {reason}", source.name) from None
    flipped = {n: [[(x, bottom - y) for x, y in line] for line in lines] for n, lines in layers.items()}
    return to_world(flipped, source, unit * size, options, meter)


def measure(data: bytes, meter: Meter) -> None:
    """Check whether svgelements can safely parse a file: counts what it would make before it makes it.

    Raises
    ------
    MapError
        It is no XML, refers to itself, or has attributes that would take too long; `BudgetError`: too large.
    """
    _Measure(meter).run(data)


def _walk(svg: Any, element: Any, layer: str, layers: dict[str, list[Line]], unit: float, meter: Meter) -> None:
    attributes = element.values.get("attributes", {}) if getattr(element, "values", None) else {}
    if attributes.get("display") == "none" or "display:none" in str(attributes.get("style", "")).replace(" ", ""):
        return
    if isinstance(element, svg.Group | svg.Use):  # SVG itself is a group too
        label = next((v for k, v in attributes.items() if k.endswith("}label")), attributes.get("id", ""))
        name = " ".join(filter(None, (layer, str(label))))
        for child in element:
            _walk(svg, child, name, layers, unit, meter)
    elif isinstance(element, svg.Shape):
        name = " ".join(filter(None, (layer, str(attributes.get("id", "")))))
        path = element if isinstance(element, svg.Path) else svg.Path(element)
        layers.setdefault(name, []).extend(_path_lines(svg, abs(path), unit, meter))


def _path_lines(svg: Any, path: Any, unit: float, meter: Meter) -> Iterator[Line]:
    line: Line = []
    for part in path:
        if isinstance(part, svg.Move):
            if len(line) > 1:
                yield line
            line = [(part.end.x, part.end.y)]
        elif isinstance(part, svg.Line | svg.Close):
            meter.add("vertices", 2)
            if part.end is not None:
                line.append((part.end.x, part.end.y))
        else:
            if part.start is None or part.end is None:
                continue
            corners = np.asarray(part.npoint(_SAMPLES), np.float64)
            reach = float(np.ptp(corners, axis=0).max()) * unit
            meter.check("extent", reach)
            n = max(4, chords(reach * math.pi, 2.0 * math.pi))
            meter.add("vertices", 2 * n)
            meter.add("entities", _CURVE_COST + n)
            line.extend(map(tuple, np.asarray(part.npoint([k / n for k in range(1, n + 1)])).tolist()))
    if len(line) > 1:
        yield line


def _close_cost(path: str) -> int:
    """Cost of scanning back from each ``z`` to the ``m`` before it, in entities: quadratic in the path's length at worst."""
    since = total = 0
    for piece in _PIECE.finditer(path):
        if piece[0] in "mM":
            since = 0
            continue
        if piece[0] in "zZ":
            total += since
        since += 1
    return total // _SCAN_PER_ENTITY


class _Measure:
    """Measures what a file expands to, in entities.

    An entity is an attribute or a number of a path; an element costs `ELEMENT_COST` of them. The library searches all attributes that an
    element has or inherits: `_CHARS_PER_ENTITY` characters of those cost one more.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._own: list[int] = []  # entities of an element itself
        self._text: list[int] = []  # characters of its attributes
        self._children: list[list[int]] = []
        self._target: list[str] = []  # target of a `use`
        self._named: dict[str, int] = {}
        self._open: list[int] = []
        self._count = 0
        self._rules: dict[str, int] = {}
        self._classes: list[tuple[int, str]] = []
        self._css: list[str] | None = None

    def run(self, data: bytes) -> None:
        """Measure a file.

        Raises
        ------
        MapError
            It is no XML, refers to itself, or has attributes that would take too long; `BudgetError`: too large.
        """
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.buffer_text = True
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = f"not an SVG drawing: {expat.errors.messages[error.code]}"
            raise MapError(reason, self._meter.path, error.lineno) from None
        except (LookupError, ValueError) as error:  # an encoding that does not exist
            raise MapError(f"not an SVG drawing: {shown(error, 100)}", self._meter.path) from None
        self._count_all()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        index = len(self._own)
        things, text = ELEMENT_COST + len(attributes), 0
        for key, value in attributes.items():
            if key in _LISTS:
                things += sum(1 for _ in _NUMBER.finditer(value)) + _close_cost(value)
                if _BLANKS.search(value):
                    raise self._fail(f"more than {MAX_BLANKS} blanks in a row in {key}")
            elif key not in _COPIED and ":" not in key and len(value) > MAX_ATTRIBUTE:
                raise self._fail(
                    f"an attribute {shown(key, 20)} of {len(value)} characters: expected at most {MAX_ATTRIBUTE}"
                )
            else:
                text += len(value)
        self._count += things
        self._meter.check("entities", self._count)
        self._meter.check("nesting", len(self._open) + 1)
        self._own.append(things)
        self._text.append(text)
        self._children.append([])
        target = attributes.get("href", attributes.get("xlink:href", "")) if tag == "use" else ""
        self._target.append(target[1:])
        if "id" in attributes:
            self._named[attributes["id"]] = index  # as in the library the last one counts
        for word in (tag, f"#{attributes.get('id', '')}", *attributes.get("class", "").split()[:100]):
            self._classes.append((index, word))
        if self._open:
            self._children[self._open[-1]].append(index)
        self._open.append(index)
        self._css = [] if tag == "style" else None

    def _end(self, _name: str) -> None:
        self._open.pop()
        if self._css is not None:
            self._styles("".join(self._css))
            self._css = None

    def _characters(self, text: str) -> None:
        if self._css is not None:
            self._css.append(text)

    def _styles(self, text: str) -> None:
        """Count CSS rules. Nested or unbalanced ones are refused: the library's regular expressions would backtrack without end."""
        plain: list[str] = []
        at = 0
        while (begin := text.find("/*", at)) >= 0:
            end = text.find("*/", begin + 2)
            if end < 0:
                raise self._fail("a comment in its style that does not end")
            plain.append(text[at:begin])
            at = end + 2
        plain.append(text[at:])
        pieces = re.split(r"([{}])", "".join(plain))
        for number, mark in enumerate(pieces[1::2]):
            if mark != "{}"[number % 2]:
                raise self._fail("a style with rules in rules, or braces that do not match")
        if len(pieces) % 4 != 1 or len(pieces[-1]) > MAX_ATTRIBUTE:
            raise self._fail("a style with rules in rules, or braces that do not match")
        for selectors, body in zip(pieces[0::4], pieces[2::4], strict=False):
            if max(len(selectors), len(body)) > MAX_ATTRIBUTE:
                raise self._fail(f"a rule of its style with more than {MAX_ATTRIBUTE} characters")
            for selector in selectors.split(","):
                word = selector.strip().rpartition(".")[2]
                self._rules[word] = self._rules.get(word, 0) + len(body)

    def _fail(self, what: str) -> MapError:
        return MapError(f"not an SVG drawing that can be read: {what}", self._meter.path)

    def _count_all(self) -> None:
        """Count everything with each `use` expanded."""
        text, rules = self._text, self._rules
        if rules:
            for index, word in self._classes:
                text[index] += rules.get(word, 0)
            text[:] = [t + rules.get(_ALL, 0) for t in text]
        size = len(self._own)
        things: list[int | None] = [None] * size
        elements, characters, uses = [0] * size, [0] * size, [0] * size
        inside: set[int] = set()
        stack = [0] if size else []
        while stack:
            index = stack[-1]
            if things[index] is not None:
                stack.pop()
                continue
            used = self._named.get(self._target[index]) if self._target[index] else None
            below = self._children[index] if used is None else [*self._children[index], used]
            if index not in inside:
                inside.add(index)
                self._meter.check("nesting", len(inside))
                for child in below:
                    if child in inside:
                        raise self._fail(f'"{shown(self._target[index])}" uses itself')
                    if things[child] is None:
                        stack.append(child)
                continue
            stack.pop()
            inside.discard(index)
            things[index] = self._own[index] + sum(things[c] or 0 for c in below)
            elements[index] = 1 + sum(elements[c] for c in below)
            characters[index] = text[index] + sum(characters[c] + elements[c] * text[index] for c in below)
            uses[index] = (used is not None) + sum(uses[c] for c in below)
        if size:
            self._meter.check("references", uses[0])
            self._meter.check("entities", (things[0] or 0) + characters[0] // _CHARS_PER_ENTITY)


__all__ = ["measure", "read"]
