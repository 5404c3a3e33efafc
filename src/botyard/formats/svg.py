"""Reader of floor plans in SVG.

`botyard.formats.drawing` describes the visibility of layers. The reader converts the
lines that a browser shows (SVG 2): shapes at the positions that transformations, view
boxes and ``use`` give them, cut at clip paths and at the borders of inner viewports. It
ignores hidden elements, definitions, texts, pictures, masks, markers and the width of
strokes. The borders of the outermost viewport cut no lines, and its size does not
matter: a unit of the drawing is a unit of the ``viewBox``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from botyard.errors import MapError
from botyard.formats import svgpaths, svgtransforms
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.drawing import (
    DEFAULT_UNIT,
    MAX_SAGITTA,
    Area,
    FloatPair,
    Line,
    clipped,
    to_world,
)
from botyard.formats.svgfile import Drawing, Element, read_file
from botyard.formats.svgpaths import Pen
from botyard.formats.svgtransforms import Matrix, length, moved
from botyard.model.world import World
from botyard.names import shown

_GROUPS: Final = frozenset({"svg", "g", "a", "switch", "use"})
_SHAPES: Final = frozenset(
    {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"}
)
_USABLE: Final = _GROUPS | _SHAPES | {"symbol"}
_DEFAULT_SIZE: Final = (300.0, 150.0)
"""Default width and height of an SVG drawing, pixels.

They are the size of a replaced element in CSS 2 (section 10.3.2).
"""
_UNSEEN: Final = re.compile(
    r"none|transparent|#[0-9a-f]{3}0|#[0-9a-f]{6}00"
    r"|(?:rgb|hsl)a?\((?:[^,/]*,[^,/]*,[^,/]*,|[^/]*/)\s*(?:0+(?:\.0*)?|\.0+)%?\s*\)"
)
"""Values of paints that are invisible: none, or fully transparent (CSS Color 4)."""
_LINK: Final = re.compile(r"url\(\s*[\"']?#([^\"')]*?)[\"']?\s*\)")
_LANGUAGE: Final = "en"
USE_COST: Final = 5
"""Cost of an element each time it is drawn, in entities of the budget: about 50 µs."""


class Lines(NamedTuple):
    """Lines of an SVG drawing.

    Attributes
    ----------
    layers : dict of str to list of lines
        Lines by the names of their groups; x to the right, y down, from the upper left
        corner of the view box.
    height : float
        Height of the view box.
    """

    layers: dict[str, list[Line]]
    height: float


def read(source: Source, options: Options) -> World:
    """Read an SVG drawing as a world of walls.

    In the world, y goes up, and the drawing's lower left corner is the origin.

    Raises
    ------
    MapError
        The file is not SVG, is too large, or contains no line.
    """
    meter = Meter(options.budget, source.name)
    size = options.scale(DEFAULT_UNIT, source.name, "a unit of the drawing")
    found = lines_of(
        source.data,
        meter,
        MAX_SAGITTA / size,
        lambda text: options.warn(f"{source.name}: {text}"),
    )
    # Drawings have y downwards, worlds have y upwards.
    flipped = {
        n: [[(x, found.height - y) for x, y in line] for line in lines]
        for n, lines in found.layers.items()
    }
    return to_world(flipped, source, size, options, meter)


def lines_of(
    data: bytes,
    meter: Meter,
    distance: float,
    note: Callable[[str], None] = lambda _text: None,
    *,
    least: int = 1,
) -> Lines:
    """Return the lines of an SVG drawing.

    Parameters
    ----------
    data : bytes
        Contents of the file.
    meter : Meter
        Limits.
    distance : float
        Largest distance of a curve from its chords, in units of the drawing.
    note : callable
        Receives a line of text for each kind of ignored part.
    least : int
        Smallest number of chords of a curve.

    Raises
    ------
    MapError
        The file is not SVG, or an element uses itself.
    BudgetError
        The file is too large.
    """
    notes: list[str] = []

    def once(text: str) -> None:
        # One note per kind is enough, however many elements it concerns.
        if text not in notes:
            notes.append(text)

    reader = _Reader(read_file(data, meter, once), meter, distance, once, least)
    lines = reader.run()
    for text in notes:
        note(text)
    return lines


@dataclass(frozen=True, slots=True)
class _Inherited:
    """State that an element inherits from the elements around it.

    Attributes
    ----------
    matrix : Matrix
        Maps user units of the element to units of the drawing.
    view : (float, float)
        Width and height of the viewport, for percentages.
    layer : str
        Names of the enclosing groups.
    styles : dict of str to str
        Values of inherited properties.
    depth : int
        Number of enclosing elements.
    """

    matrix: Matrix
    view: FloatPair
    layer: str = ""
    styles: dict[str, str] = field(default_factory=dict)
    depth: int = 0


_INHERITED: Final[tuple[str, ...]] = (
    "visibility",
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-opacity",
    "stroke-width",
)
Part = tuple[str, Line]
"""Line of a drawing with the name of its layer."""


class _Reader:
    def __init__(
        self,
        drawing: Drawing,
        meter: Meter,
        distance: float,
        note: Callable[[str], None],
        least: int,
    ) -> None:
        self._root = drawing.root
        self._named = drawing.named
        self._meter = meter
        self._distance = distance
        self._note = note
        self._least = least

    def run(self) -> Lines:
        root = self._root
        self._count()
        # The size matters only without a view box, which replaces the size below.
        width, height = self._size(root)
        box = _view_box(root)
        matrix = Matrix()
        if box is not None:
            x, y, width, height = box
            matrix = moved(-x, -y)

        layers: dict[str, list[Line]] = {}
        around = _Inherited(matrix, (width, height))
        # SVG does not draw a view box without width or height.
        if _is_shown(root) and not (box is not None and min(width, height) == 0.0):
            for layer, line in self._content(root, self._inherited_by(root, around)):
                layers.setdefault(layer, []).append(line)

        return Lines(layers, height)

    def _target(self, use: Element) -> Element | None:
        """Return the element that a ``use`` element refers to."""
        link = use.values.get("href", "").strip()
        target = self._named.get(link[1:]) if link.startswith("#") else None
        return target if target is not None and target.tag in _USABLE else None

    def _count(self) -> None:
        """Count all elements with each `use` expanded, before any of them is expanded.

        A few lines can expand to billions of elements.

        Raises
        ------
        MapError
            An element uses itself.
        BudgetError
            There are too many elements, or they are nested too deeply.
        """
        # Number of elements and of ``use`` elements below an element, by `id(element)`.
        counted: dict[int, tuple[int, int]] = {}
        inside: set[int] = set()
        stack = [self._root]
        while stack:
            element = stack[-1]
            key = id(element)
            if key in counted:
                stack.pop()
                continue

            target = self._target(element) if element.tag == "use" else None
            below = [c for c in element.children if c.tag in _GROUPS | _SHAPES] + (
                [] if target is None else [target]
            )
            if key not in inside:
                inside.add(key)
                self._meter.check("nesting", len(inside))
                # An element that contains itself would never end.
                if any(id(c) in inside for c in below):
                    name = shown(element.values.get("href", "").strip()[1:])
                    raise MapError(
                        f'not an SVG drawing that can be read: "{name}" uses itself',
                        self._meter.path,
                    )

                stack += [c for c in below if id(c) not in counted]
                continue

            stack.pop()
            inside.discard(key)
            elements, uses = (sum(counted[id(c)][k] for c in below) for k in range(2))
            counted[key] = 1 + elements, (target is not None) + uses

        elements, uses = counted[id(self._root)]
        self._meter.check("references", uses)
        self._meter.check("entities", USE_COST * elements)

    def _size(self, root: Element) -> FloatPair:
        """Return the width and height of the outermost viewport, pixels."""
        width, height = (
            length(root.values.get(key), usual, usual) or 0.0
            for key, usual in zip(("width", "height"), _DEFAULT_SIZE, strict=True)
        )
        return width, height

    def _inherited_by(self, element: Element, around: _Inherited) -> _Inherited:
        """Return the state that the children of an element inherit."""
        values = element.values
        own: dict[str, str] = {
            k: values[k].strip()
            for k in _INHERITED
            if k in values and values[k].strip() != "inherit"
        }
        name = (
            str(values.get("label") or values.get("id", ""))
            if element.tag in _GROUPS
            else values.get("id", "")
        )
        return replace(
            around,
            layer=" ".join(filter(None, (around.layer, name))),
            styles={**around.styles, **own} if own else around.styles,
            depth=around.depth + 1,
        )

    def _element(self, element: Element, around: _Inherited) -> Iterator[Part]:
        """Yield the lines of an element, cut at its clip path."""
        self._meter.add("entities", USE_COST)
        self._meter.check("nesting", around.depth)
        if element.tag not in _GROUPS | _SHAPES or not _is_shown(element):
            return
        inner = self._inherited_by(element, around)
        own = self._transform(element, around.view)
        if own is not None:
            inner = replace(inner, matrix=inner.matrix @ own)
        # Such a transformation squeezes the element into a line, which browsers do not
        # draw.
        if inner.matrix.determinant == 0.0:
            return
        if element.values.get("mask", "none").strip() != "none":
            self._note("masks are not applied")
        clip = element.values.get("clip-path", "none").strip()
        if clip == "none":
            yield from self._content(element, inner)
        else:
            yield from self._clipped(list(self._content(element, inner)), clip, inner)

    def _content(self, element: Element, inner: _Inherited) -> Iterator[Part]:
        tag = element.tag
        if tag in _SHAPES:
            yield from self._shape(element, inner)
        elif tag == "use":
            yield from self._used(element, inner)
        elif tag == "switch":
            # A switch shows only its first child whose conditions hold.
            first = next(
                (c for c in element.children if c.tag and _is_allowed(c)), None
            )
            if first is not None:
                yield from self._element(first, inner)
        elif tag == "svg" and element is not self._root:
            yield from self._viewport(element, inner, element.values)
        else:
            for child in element.children:
                yield from self._element(child, inner)

    def _shape(self, element: Element, inner: _Inherited) -> Iterator[Part]:
        if inner.styles.get("visibility", "visible") != "visible":
            return
        if _is_unpainted(inner.styles):
            self._note("shapes that are neither filled nor stroked are ignored")
            return

        pen = Pen(inner.matrix, self._distance, self._meter, self._least)
        for line in svgpaths.shape(
            element.tag, element.values, inner.view, pen, self._note
        ):
            yield inner.layer, line

    def _used(self, element: Element, inner: _Inherited) -> Iterator[Part]:
        target = self._target(element)
        if target is None:
            if element.values.get("href"):
                self._note(
                    'some "use" elements refer to elements that are not in the file'
                )
            return

        values = element.values
        x, y = (
            length(values.get(k), whole) or 0.0
            for k, whole in zip("xy", inner.view, strict=True)
        )
        # The position of a use acts like a further translation of its target.
        inner = replace(inner, matrix=inner.matrix @ moved(x, y))
        if target.tag not in ("svg", "symbol"):
            yield from self._element(target, inner)
            return

        if not _is_shown(target):
            return
        # A use can override the size of its target, unless the size is "auto".
        sizes = {
            k: values[k]
            for k in ("width", "height")
            if values.get(k, "auto").strip() != "auto"
        }
        # Since SVG 2, a symbol has a position and a size, as inner svg elements do.
        yield from self._viewport(
            target, self._inherited_by(target, inner), {**target.values, **sizes}
        )

    def _viewport(
        self, element: Element, inner: _Inherited, values: dict[str, str]
    ) -> Iterator[Part]:
        """Yield the lines in an inner viewport, cut at its borders."""
        x, y = (
            length(values.get(k), whole) or 0.0
            for k, whole in zip("xy", inner.view, strict=True)
        )
        width, height = (
            length(values.get(k), whole, whole) or 0.0
            for k, whole in zip(("width", "height"), inner.view, strict=True)
        )
        box = _view_box(element)
        if width <= 0.0 or height <= 0.0 or (box is not None and min(box[2:]) == 0.0):
            return
        outer = inner.matrix @ moved(x, y)
        matrix, view = outer, (width, height)
        if box is not None:
            matrix = outer @ svgtransforms.fitted(
                box, width, height, element.values.get("preserveAspectRatio", "")
            )
            view = box[2], box[3]

        inner = replace(inner, matrix=matrix, view=view)
        parts: list[Part] | Iterator[Part] = (
            p for child in element.children for p in self._element(child, inner)
        )
        if values.get("overflow", "hidden").strip() not in ("visible", "auto"):
            border = [
                outer(*p)
                for p in ((0.0, 0.0), (width, 0.0), (width, height), (0.0, height))
            ]
            parts = self._cut(list(parts), [[border]])

        yield from parts

    def _cut(
        self, parts: list[Part], areas: list[Area], even: Sequence[bool] = ()
    ) -> Iterator[Part]:
        for layer, line in parts:
            for piece in clipped([line], areas, self._meter, even=even):
                yield layer, piece

    def _clipped(
        self, parts: list[Part], clip: str, inner: _Inherited, depth: int = 0
    ) -> Iterator[Part]:
        """Yield lines cut at a clip path (CSS Masking 1, section 5)."""
        self._meter.check("nesting", inner.depth + depth)
        link = _LINK.match(clip)
        target = self._named.get(link[1]) if link else None
        if target is None or target.tag != "clipPath":
            if not clip.startswith("url("):
                self._note("clip paths other than links are not applied")
            yield from parts
            return

        matrix = inner.matrix
        if target.values.get("clipPathUnits", "").strip() == "objectBoundingBox":
            # The bounding box is computed in user units, before the transformation.
            back = matrix.inverse()
            points = [back(*p) for _, line in parts for p in line]
            if not points:
                return
            (x0, x1), (y0, y1) = ((min(v), max(v)) for v in zip(*points, strict=True))
            matrix = matrix @ Matrix(x1 - x0, 0.0, 0.0, y1 - y0, x0, y0)

        own = self._transform(target, inner.view)
        if own is not None:
            matrix = matrix @ own
        around = replace(inner, matrix=matrix, styles={}, layer="")
        areas: list[Area] = []
        even: list[bool] = []
        for child in target.children:
            if child.tag in _SHAPES or child.tag == "use":
                # Fill and stroke of a clip path do not matter, so a fill is set here.
                lines = [
                    line
                    for _, line in self._element(
                        child, replace(around, styles={"fill": "black"})
                    )
                    if len(line) > 1
                ]
                if lines:
                    areas.append(lines)
                    rules = (
                        e.values.get("clip-rule")
                        for e in (self._target(child), child, target)
                        if e
                    )
                    even.append(
                        next((r for r in rules if r and r != "inherit"), "")
                        == "evenodd"
                    )
        cut = list(self._cut(parts, areas, even)) if areas else []
        # A clip path may itself be clipped.
        further = target.values.get("clip-path", "none").strip()
        if further == "none":
            yield from cut
        else:
            yield from self._clipped(cut, further, inner, depth + 1)

    def _transform(self, element: Element, view: FloatPair) -> Matrix | None:
        """Return the transformation that an element's own attribute gives; None without one."""
        text = element.values.get("transform", "none").strip()
        own = None if text in ("", "none") else svgtransforms.transform(text, view)
        if own is None:
            if text not in ("", "none"):
                self._note(
                    "some transformations are ignored: they are not valid or not "
                    "supported"
                )
            return None

        words = element.values.get("transform-origin", "").split()
        if words:
            if element.values.get(
                "transform-box", "view-box"
            ).strip() != "view-box" and any(w[-1] in "%tremop" for w in words):
                self._note("transform-box is not applied")

            named = {
                "left": "0%",
                "top": "0%",
                "center": "50%",
                "right": "100%",
                "bottom": "100%",
            }
            x, y = ([named.get(w, w) for w in words] + ["50%"])[:2]
            # The keywords may have either order.
            if words[0] in ("top", "bottom") or (
                words[-1] in ("left", "right") and len(words) > 1
            ):
                x, y = y, x

            # The transformation is applied around its origin.
            at = moved(length(x, view[0]) or 0.0, length(y, view[1]) or 0.0)
            own = at @ own @ at.inverse()

        return own


def _view_box(element: Element) -> tuple[float, float, float, float] | None:
    """Return the view box of an element; None without a valid one."""
    numbers = [
        length(w, 0.0, None)
        for w in svgtransforms.terms(element.values.get("viewBox", ""), 4)
    ]
    found = [v for v in numbers if v is not None]
    if len(found) != 4 or min(found[2:]) < 0.0:
        return None
    return found[0], found[1], found[2], found[3]


def _is_shown(element: Element) -> bool:
    """Return whether an element is displayed, with its children."""
    values = element.values
    if values.get("display", "").strip() == "none" or not _is_allowed(element):
        return False
    return length(values.get("opacity"), 1.0, 1.0) != 0.0


def _is_allowed(element: Element) -> bool:
    """Return whether the conditions of an element (SVG 2, section 5.8) are fulfilled.

    The reader's language is English, and it has no extensions.
    """
    values = element.values
    # The reader supports no extensions, so the condition is never true.
    if "requiredExtensions" in values:
        return False
    if "systemLanguage" not in values:
        return True
    return any(
        w.strip().lower().partition("-")[0] == _LANGUAGE
        for w in values["systemLanguage"].split(",")
    )


def _is_unpainted(styles: dict[str, str]) -> bool:
    """Return whether a shape has neither a fill nor a stroke.

    Only an explicit fill of none counts, because lines never have a fill.
    """

    def zero(name: str) -> bool:
        return length(styles.get(name), 1.0, 1.0) == 0.0

    stroked = (
        not _UNSEEN.fullmatch(styles.get("stroke", "none"))
        and not zero("stroke-opacity")
        and not zero("stroke-width")
    )
    return not stroked and (
        bool(_UNSEEN.fullmatch(styles.get("fill", "black"))) or zero("fill-opacity")
    )


__all__ = ["Lines", "lines_of", "read"]
