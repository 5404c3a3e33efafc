"""Elements of an SVG file, with the values that their styles give them.

The module implements the part of SVG 2 and of CSS that determines lines. The file is
parsed once, in time and memory that grow with its length. Attributes that do not affect
lines are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from xml.parsers import expat

from botyard.errors import MapError
from botyard.formats.budget import Meter
from botyard.formats.svgtransforms import length
from botyard.names import shown

NAMESPACE: Final = "http://www.w3.org/2000/svg"
INKSCAPE: Final = "http://www.inkscape.org/namespaces/inkscape"
ELEMENT_COST: Final = 5
"""Cost of an element in the budget, in entities: about 50 µs."""
MAX_CLASSES: Final = 100
MAX_CHAIN: Final = 20
"""Largest number of compound selectors in a selector, as in ``g > .wall``."""
_GEOMETRY: Final = frozenset(
    {"x", "y", "width", "height", "cx", "cy", "r", "rx", "ry", "d"}
)
_WORDS: Final = frozenset(
    {"display", "visibility", "overflow", "clip-rule", "fill", "stroke", "mask"}
)
"""Properties whose values are keywords and colours, which may be in upper or lower case."""
_VISIBILITIES: Final = frozenset(
    {"visible", "hidden", "collapse", "inherit", "initial", "unset"}
)
_SCREENS: Final = frozenset(
    {"", "all", "screen", "only all", "only screen", "not print"}
)
"""Media queries that match a browser's window of any size."""
_STYLES: Final = frozenset(
    {
        "display",
        "visibility",
        "opacity",
        "fill",
        "fill-opacity",
        "stroke",
        "stroke-opacity",
        "stroke-width",
        "clip-path",
        "clip-rule",
        "overflow",
        "transform",
        "transform-origin",
        "transform-box",
        "mask",
    }
)
PROPERTIES: Final = _GEOMETRY | _STYLES
"""Names of attributes that a style can also set."""
_ATTRIBUTES: Final = PROPERTIES | {
    "id",
    "class",
    "style",
    "points",
    "x1",
    "y1",
    "x2",
    "y2",
    "viewBox",
    "preserveAspectRatio",
    "clipPathUnits",
    "systemLanguage",
    "requiredExtensions",
    "type",
    "media",
}


@dataclass(slots=True, eq=False)
class Element:
    """Element of the SVG namespace.

    Attributes
    ----------
    tag : str
        Name without prefix; empty: the element has another namespace.
    values : dict of str to str
        Attributes, overridden by styles. ``href`` is the target of a ``use``; ``label``
        is the name in Inkscape.
    children : list of Element
        Children, in order.
    """

    tag: str
    values: dict[str, str]
    children: list[Element] = field(default_factory=list)


class Drawing(NamedTuple):
    """Contents of an SVG file: its elements.

    Attributes
    ----------
    root : Element
        Outermost element.
    named : dict of str to Element
        Elements by id; the first one if several share an id.
    """

    root: Element
    named: dict[str, Element]


def read_file(data: bytes, meter: Meter, note: Callable[[str], None]) -> Drawing:
    """Parse a file, and apply its styles.

    Parameters
    ----------
    data : bytes
        XML in any encoding that it declares.
    meter : Meter
        Counts elements, and comparisons with selectors, as ``entities``; their depth as
        ``nesting``.
    note : callable
        Receives remarks about ignored parts.

    Raises
    ------
    MapError
        The file is not XML or not SVG.
    BudgetError
        The file is too large.
    """
    return _Parser(meter, note).run(data)


class _Part(NamedTuple):
    """Compound selector of CSS: conditions that one element must fulfil."""

    tag: str
    ids: tuple[str, ...]
    classes: frozenset[str]
    # Whether the previous part must match the parent, and not any ancestor.
    parent: bool


class _Rule(NamedTuple):
    selector: tuple[_Part, ...]
    values: dict[str, str]
    rank: tuple[bool, int, int, int, int]


class _Parser:
    def __init__(self, meter: Meter, note: Callable[[str], None]) -> None:
        self._meter = meter
        self._note = note
        self._root: Element | None = None
        self._open: list[Element] = []
        self._spaces: list[dict[str, str]] = [{"": ""}]
        self._named: dict[str, Element] = {}
        self._style: list[str] | None = None
        self._sheets: list[str] = []

    def run(self, data: bytes) -> Drawing:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        # Without a buffer, expat splits long texts into many calls.
        parser.buffer_text = True
        try:
            # XML forbids blanks before its declaration, but files have them.
            parser.Parse(data.lstrip(b" \t\r\n"), True)
        except expat.ExpatError as error:
            reason = f"not an SVG drawing: {expat.errors.messages[error.code]}"
            line = error.lineno + data[
                : len(data) - len(data.lstrip(b" \t\r\n"))
            ].count(b"\n")
            raise MapError(reason, self._meter.path, line) from None
        except (LookupError, ValueError) as error:
            # The file declares an encoding that does not exist.
            raise MapError(
                f"not an SVG drawing: {shown(error, 100)}", self._meter.path
            ) from None

        if self._root is None or self._root.tag != "svg":
            tag = "" if self._root is None else self._root.tag
            found = f'"{shown(tag)}"' if tag else "an element of another namespace"
            raise MapError(
                f"not an SVG drawing: expected the element svg, found {found}",
                self._meter.path,
            )

        self._cascade(self._root)
        return Drawing(self._root, self._named)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._meter.add("entities", ELEMENT_COST + len(attributes))
        self._meter.check("nesting", len(self._open) + 1)
        spaces = self._spaces[-1]
        declared = {
            k.partition(":")[2]: v
            for k, v in attributes.items()
            if k == "xmlns" or k.startswith("xmlns:")
        }
        # Most elements declare no namespace and share the mapping of their parent.
        if declared:
            spaces = {**spaces, **declared}
        self._spaces.append(spaces)
        prefix, _, local = name.rpartition(":")
        # Files without a declaration of the namespace are common.
        ours = spaces.get(prefix, prefix) in (NAMESPACE, "", "svg")
        values = {
            k: v.strip().lower() if k in _WORDS else v
            for k, v in attributes.items()
            if k in _ATTRIBUTES
        }
        for key, value in attributes.items():
            of, _, word = key.rpartition(":")
            # SVG 2 prefers a plain href over xlink:href.
            if word == "href" and local == "use" and (not of or "href" not in values):
                values["href"] = value
            elif word == "label" and spaces.get(of, of) in (INKSCAPE, "inkscape"):
                values["label"] = value

        element = Element(local if ours else "", values)
        if "id" in values:
            # As in browsers, the first element of an id counts.
            self._named.setdefault(values["id"], element)
        if self._open:
            self._open[-1].children.append(element)
        elif self._root is None:
            self._root = element

        self._open.append(element)
        if element.tag == "style" and values.get(
            "type", "text/css"
        ).strip().lower() in ("", "text/css"):
            self._style = []
            if not _matches_screen(values.get("media", ""), self._note):
                self._style = None

    def _end(self, _name: str) -> None:
        self._open.pop()
        self._spaces.pop()
        if self._style is not None:
            self._sheets.append("".join(self._style))
            self._style = None

    def _characters(self, text: str) -> None:
        if self._style is not None:
            self._style.append(text)

    def _cascade(self, root: Element) -> None:
        """Let styles override attributes (CSS Cascading and Inheritance, section 6)."""
        rules: list[_Rule] = []
        strange = 0
        for sheet in self._sheets:
            for selectors, body in _rules(sheet, self._note):
                normal, important = declarations(body)
                if not normal and not important:
                    continue
                for text in selectors.split(","):
                    self._meter.add("entities", 1)
                    selector = _selector(text)
                    if selector is None:
                        strange += 1
                        continue

                    weight = (
                        sum(len(p.ids) for p in selector),
                        sum(len(p.classes) for p in selector),
                        sum(p.tag != "" for p in selector),
                    )
                    for values, strong in ((normal, False), (important, True)):
                        if values:
                            rules.append(
                                _Rule(selector, values, (strong, *weight, len(rules)))
                            )

        if strange:
            self._note(
                f"{strange} selectors of style sheets are ignored: they are not supported"
            )

        rules.sort(key=lambda rule: rule.rank)
        # Rules are looked up by the rarest part of their last selector. Comparing every
        # rule with every element would take quadratic time.
        index: dict[str, list[tuple[int, _Rule]]] = {}
        for k, rule in enumerate(rules):
            last = rule.selector[-1]
            key = (
                f"#{last.ids[0]}"
                if last.ids
                else f".{min(last.classes)}"
                if last.classes
                else last.tag
            )
            index.setdefault(key, []).append((k, rule))

        self._apply(root, index)

    def _apply(self, root: Element, index: dict[str, list[tuple[int, _Rule]]]) -> None:
        path: list[Element] = []
        pending: list[tuple[Element, bool]] = [(root, True)]
        while pending:
            element, entering = pending.pop()
            if not entering:
                path.pop()
                continue

            path.append(element)
            pending.append((element, False))
            pending += [(child, True) for child in reversed(element.children)]
            values = element.values
            weak: list[dict[str, str]] = []
            strong: list[dict[str, str]] = []
            # Elements of other namespaces are never drawn.
            if index and element.tag:
                keys = [
                    "",
                    element.tag,
                    f"#{values.get('id', '')}",
                    *(f".{c}" for c in _classes(element)),
                ]
                found = [pair for key in keys for pair in index.get(key, ())]
                self._meter.add("entities", len(found))
                for _, rule in sorted(found, key=lambda pair: pair[0]):
                    if self._matches(rule.selector, path):
                        (strong if rule.rank[0] else weak).append(rule.values)

            own = declarations(values["style"]) if "style" in values else ({}, {})
            # Order of the cascade: rules, the style attribute, important rules,
            # important style.
            for more in (*weak, own[0], *strong, own[1]):
                values.update(more)

    def _matches(self, selector: tuple[_Part, ...], path: Sequence[Element]) -> bool:
        """Return whether a selector matches the last element of a path."""
        if not _fits(selector[-1], path[-1]):
            return False
        # The set of all positions in the path that the parts so far can match makes
        # backtracking unnecessary.
        places = {len(path) - 1}
        for part, after in zip(
            reversed(selector[:-1]), reversed(selector[1:]), strict=True
        ):
            if after.parent:
                candidates = {p - 1 for p in places if p > 0}
            else:
                candidates = set(range(max(places)))

            self._meter.add("entities", len(candidates))
            places = {p for p in candidates if _fits(part, path[p])}
            if not places:
                return False

        return True


def _classes(element: Element) -> list[str]:
    return element.values.get("class", "").split(maxsplit=MAX_CLASSES)[:MAX_CLASSES]


def _fits(part: _Part, element: Element) -> bool:
    return (
        part.tag in ("", element.tag)
        and all(one == element.values.get("id") for one in part.ids)
        and (not part.classes or part.classes <= set(_classes(element)))
    )


_CSS: Final = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?"
    r"|url\(\s*[^)\"']*\)?|[{};]",
    re.DOTALL | re.IGNORECASE,
)
"""Pattern for the marks ``{``, ``}`` and ``;`` of a style sheet.

It also matches comments, texts and links as a whole, because marks in them do not count.
"""
_SIMPLE: Final = re.compile(r"([#.]?)([\w-]+)|(\*)|(:root)")


def _matches_screen(media: str, note: Callable[[str], None]) -> bool:
    """Return whether a list of media, or an @ rule, matches a screen.

    Conditions, such as widths, never match.
    """
    rule = " ".join(media.lower().split())
    queries = rule.removeprefix("@media").split(",")
    if any(q.strip() in _SCREENS for q in queries):
        return True
    if "(" in rule or rule.startswith("@layer"):
        note("conditional rules of style sheets are ignored")
    return False


def _rules(sheet: str, note: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield selectors and declarations of the rules that match a screen.

    Other rules (fonts, print, animations) are skipped.
    """
    text: list[str] = []
    # Selectors of the open blocks, from outer to inner.
    selectors: list[str] = []
    at = 0
    for mark in _CSS.finditer(sheet):
        text.append(sheet[at : mark.start()])
        at = mark.end()
        if mark[0] == "{":
            selectors.append("".join(text).strip())
            text = []
        elif mark[0] == "}":
            if selectors:
                selector = selectors.pop()
                if not selector.startswith("@") and all(
                    s.startswith("@") and _matches_screen(s, note) for s in selectors
                ):
                    yield selector, "".join(text)

            text = []
        elif mark[0] == ";":
            # The mark ends a declaration, or an @import.
            text = [*text, ";"] if selectors else []
        elif not mark[0].startswith("/*"):
            text.append(mark[0])


def _selector(text: str) -> tuple[_Part, ...] | None:
    """Return the selector of a text; it may have tags, ids, classes, descendants and children.

    The result is None if the text has other conditions.
    """
    parts: list[_Part] = []
    parent = False
    for word in text.replace(">", " > ").split():
        if word == ">":
            if parent or not parts:
                return None
            parent = True
            continue

        tag, ids, classes, at = "", [], [], 0
        while at < len(word):
            piece = _SIMPLE.match(word, at)
            if piece is None or (not piece[1] and at):
                return None
            if piece[4]:
                tag = "svg"
            elif piece[1] == "#":
                ids.append(piece[2])
            elif piece[1] == ".":
                classes.append(piece[2])
            elif piece[2]:
                tag = piece[2]

            at = piece.end()

        parts.append(_Part(tag, tuple(ids), frozenset(classes), parent))
        parent = False

    return tuple(parts) if parts and not parent and len(parts) <= MAX_CHAIN else None


def _is_valid(name: str, value: str) -> bool:
    """Return whether a declaration is valid; CSS ignores invalid declarations."""
    if name == "visibility":
        return value in _VISIBILITIES
    if (
        name not in _GEOMETRY
        or name == "d"
        or value.lower() in ("auto", "inherit", "initial", "unset")
    ):
        return True
    return length(value, 0.0, None) is not None


def declarations(body: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values of a style attribute that affect lines: normal and important ones."""
    normal: dict[str, str] = {}
    important: dict[str, str] = {}
    text, at = [], 0
    pieces: list[str] = []
    for mark in _CSS.finditer(body):
        text.append(body[at : mark.start()])
        at = mark.end()
        if mark[0] == ";":
            pieces.append("".join(text))
            text = []
        elif not mark[0].startswith("/*"):
            text.append(mark[0])

    pieces.append("".join([*text, body[at:]]))
    for piece in pieces:
        name, colon, value = piece.partition(":")
        name = name.strip().lower()
        if colon and name in PROPERTIES:
            value = value.strip().lower() if name in _WORDS else value.strip()
            # Only the end is searched, because many blanks would make the pattern slow.
            cut = re.sub(r"\s*!\s*important\Z", "", value[-40:], flags=re.IGNORECASE)
            strong = len(cut) < len(value[-40:])
            value = value[:-40] + cut if strong else value
            if _is_valid(name, value):
                (important if strong else normal)[name] = value
    return normal, important


__all__ = ["PROPERTIES", "Drawing", "Element", "declarations", "read_file"]
