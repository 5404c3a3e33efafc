"""Conversion of SVG shapes to lines (SVG 2, chapters 7 to 10).

The module parses path data, and divides curves into chords.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from botyard.formats.budget import Meter
from botyard.formats.drawing import MAX_CHORDS, FloatPair, Line
from botyard.formats.svgtransforms import NUMBER, Matrix, length
from botyard.numerics.elementary import acos, atan2, cosine_sine, hypot

_ARGUMENT: Final = re.compile(rf"[\s,]*({NUMBER})")
_FLAG: Final = re.compile(r"[\s,]*([01])")
_COMMAND: Final = re.compile(r"[\s,]*([MmZzLlHhVvCcSsQqTtAa])")
NUMBER_COST: Final = 8
"""Number of characters of path data that take as long as the reading of one entity."""


@dataclass(slots=True)
class Pen:
    """Pen that draws lines and curves as sequences of points in the plane of the drawing.

    Attributes
    ----------
    matrix : Matrix
        Maps user units to the units of the drawing.
    distance : float
        Largest distance of a curve from its chords, units of the drawing.
    meter : Meter
        Counts ``vertices``, and ``entities`` of work.
    least : int
        Smallest number of chords of a curve.
    """

    matrix: Matrix
    distance: float
    meter: Meter
    least: int = 1

    def curve(self, line: Line, points: list[FloatPair]) -> None:
        """Append a Bézier curve of degree 2 or 3, without its first point.

        A chord over a parameter step h is at most h² max|B″| / 8 from the curve.
        """
        corners = [self.matrix(*p) for p in points]
        bends = [
            hypot(p[0] - 2.0 * q[0] + r[0], p[1] - 2.0 * q[1] + r[1])
            for p, q, r in zip(corners, corners[1:], corners[2:], strict=False)
        ]
        degree = len(points) - 1
        # Upper bound of the second derivative of a Bézier curve, from its control
        # points.
        bend = degree * (degree - 1) * max(bends)
        count = (
            self._count(math.sqrt(bend / (8.0 * self.distance)))
            if math.isfinite(bend)
            else 1
        )
        for k in range(1, count + 1):
            t = k / count
            s = 1.0 - t
            weights = (
                (s * s, 2.0 * s * t, t * t)
                if degree == 2
                else (s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t)
            )
            # The exact end point, so that adjoining pieces meet.
            if k == count:
                line.append(corners[-1])
            else:
                x = math.fsum(w * p[0] for w, p in zip(weights, corners, strict=True))
                y = math.fsum(w * p[1] for w, p in zip(weights, corners, strict=True))
                line.append((x, y))

    def arc(
        self,
        line: Line,
        centre: FloatPair,
        radii: FloatPair,
        tilt: FloatPair,
        start: float,
        sweep: float,
    ) -> None:
        """Append an arc of an ellipse, without its first point.

        `tilt` is the cosine and the sine of the angle of the ellipse's first axis.
        """
        (cx, cy), (rx, ry), (c, s) = centre, radii, tilt
        # Maps the unit circle to the ellipse, so that an arc is a rotation of a unit
        # vector.
        own = self.matrix @ Matrix(c * rx, s * rx, -s * ry, c * ry, cx, cy)
        radius = own.stretch
        count = 1
        if math.isfinite(radius) and radius > 0.0:
            step = 2.0 * acos(
                max(0.0, 1.0 - self.distance / max(radius, self.distance))
            )
            count = self._count(abs(sweep) / max(step, 1e-6))

        for k in range(1, count + 1):
            line.append(own(*cosine_sine(start + sweep * k / count)))

    def _count(self, chords: float) -> int:
        count = max(self.least, min(MAX_CHORDS, math.ceil(chords)))
        self.meter.add("vertices", 2 * count)
        self.meter.add("entities", 1 + count)
        return count


def ellipse(pen: Pen, cx: float, cy: float, rx: float, ry: float) -> Line:
    """Return an ellipse as a closed line."""
    line = [pen.matrix(cx + rx, cy)]
    for quarter in range(4):
        pen.arc(
            line, (cx, cy), (rx, ry), (1.0, 0.0), quarter * math.pi / 2.0, math.pi / 2.0
        )

    # Close the line exactly, because rounding could leave a gap.
    line[-1] = line[0]
    return line


def rectangle(
    pen: Pen, x: float, y: float, w: float, h: float, rx: float, ry: float
) -> Line:
    """Return a rectangle as a closed line; its corners are round if the radii are not 0."""
    if rx <= 0.0 or ry <= 0.0:
        return [
            pen.matrix(*p)
            for p in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
        ]

    # SVG limits the radii to half of the sides.
    rx, ry = min(rx, w / 2.0), min(ry, h / 2.0)
    line = [pen.matrix(x + rx, y)]
    corners = (
        (x + w - rx, y, x + w - rx, y + ry),
        (x + w, y + h - ry, x + w - rx, y + h - ry),
        (x + rx, y + h, x + rx, y + h - ry),
        (x, y + ry, x + rx, y + ry),
    )
    for k, (px, py, cx, cy) in enumerate(corners):
        line.append(pen.matrix(px, py))
        pen.arc(
            line, (cx, cy), (rx, ry), (1.0, 0.0), (k - 1) * math.pi / 2.0, math.pi / 2.0
        )

    return line


def points_of(text: str) -> list[FloatPair]:
    """Return the points of a polyline, up to the first point that is not valid."""
    numbers: list[float] = []
    at = 0
    while match := _ARGUMENT.match(text, at):
        numbers.append(float(match[1]))
        at = match.end()

    return list(zip(numbers[::2], numbers[1::2], strict=False))


class _Data:
    """Reader of the commands and numbers of path data."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def command(self) -> str | None:
        match = _COMMAND.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[1]

    def numbers(self, kinds: str) -> list[float] | None:
        """Return the next arguments of a command; None if they are missing."""
        found = []
        at = self._at
        for kind in kinds:
            # Flags are single characters, which may follow each other without a
            # separator.
            match = (_FLAG if kind == "f" else _ARGUMENT).match(self._text, at)
            if match is None:
                return None
            found.append(float(match[1]))
            at = match.end()

        self._at = at
        return found

    @property
    def rest(self) -> str:
        return self._text[self._at :].strip(" \t\r\n,")


_KINDS: Final = {
    "M": "nn",
    "L": "nn",
    "H": "n",
    "V": "n",
    "C": "nnnnnn",
    "S": "nnnn",
    "Q": "nnnn",
    "T": "nn",
    "A": "nnnffnn",
}


def path(pen: Pen, text: str, note: Callable[[str], None]) -> Iterator[Line]:
    """Yield the subpaths that path data describes, up to the first error (SVG 2, section 9.5.4)."""
    pen.meter.add("entities", 1 + len(text) // NUMBER_COST)
    data = _Data(text)
    x = y = x0 = y0 = 0.0
    line: Line = []
    before, handle = "", (0.0, 0.0)
    while (letter := data.command()) is not None:
        kind, relative = letter.upper(), letter.islower()
        # Path data must start with a move.
        if not before and kind != "M":
            break
        if kind == "Z":
            if line:
                if line[-1] != line[0]:
                    line.append(line[0])
                yield line

            x, y, line, before = x0, y0, [], "Z"
            continue

        first = True
        while (numbers := data.numbers(_KINDS[kind])) is not None:
            dx, dy = (x, y) if relative else (0.0, 0.0)
            # Further pairs of numbers after a move are lines.
            if kind == "M" and first:
                if len(line) > 1:
                    yield line
                x0, y0 = x, y = numbers[0] + dx, numbers[1] + dy
                line = [pen.matrix(x, y)]
                first, before = False, "M"
                continue

            if not line:
                line = [pen.matrix(x0, y0)]
            end, handle = _draw(
                pen,
                line,
                kind,
                numbers,
                (x, y),
                (dx, dy),
                handle if before in _SMOOTH[kind] else (x, y),
            )
            (x, y), first, before = end, False, kind

        if first:
            break

    if data.rest:
        note("some path data has errors; the data after an error is left out")
    if len(line) > 1:
        yield line


_SMOOTH: Final = {"S": "CS", "T": "QT"} | dict.fromkeys("MLHVCQA", "-")
"""Commands after which a smooth command mirrors the handle (control point)."""


def _draw(
    pen: Pen,
    line: Line,
    kind: str,
    n: list[float],
    at: FloatPair,
    shift: FloatPair,
    handle: FloatPair,
) -> tuple[FloatPair, FloatPair]:
    """Draw one command of a path; return its end point and its last control point."""
    (x, y), (dx, dy) = at, shift
    if kind in "MLHV":
        end = (
            (n[0] + dx, n[1] + dy)
            if kind in "ML"
            else (n[0] + dx, y)
            if kind == "H"
            else (x, n[0] + dy)
        )
        pen.meter.add("vertices", 2)
        line.append(pen.matrix(*end))
        return end, end

    if kind == "A":
        end = n[5] + dx, n[6] + dy
        _arc(pen, line, at, end, n)
        return end, end

    points = [(n[k] + dx, n[k + 1] + dy) for k in range(0, len(n), 2)]
    if kind in "ST":
        points.insert(0, (2.0 * x - handle[0], 2.0 * y - handle[1]))
    pen.curve(line, [at, *points])
    return points[-1], points[-2]


def _arc(
    pen: Pen, line: Line, start: FloatPair, end: FloatPair, n: list[float]
) -> None:
    """Draw an elliptical arc between two points (SVG 2, appendix B.2.4 and B.2.5)."""
    (x1, y1), (x2, y2) = start, end
    rx, ry = abs(n[0]), abs(n[1])
    if start == end:
        return
    if rx == 0.0 or ry == 0.0 or not math.isfinite(rx + ry):
        pen.meter.add("vertices", 2)
        line.append(pen.matrix(x2, y2))
        return

    c, s = (
        cosine_sine(math.radians(n[2] % 360.0)) if math.isfinite(n[2]) else (1.0, 0.0)
    )
    hx, hy = (x1 - x2) / 2.0, (y1 - y2) / 2.0
    px, py = (c * hx + s * hy) / rx, (c * hy - s * hx) / ry
    square = px * px + py * py
    # Radii that are too small grow until the ellipse touches both points.
    if square > 1.0:
        grown = math.sqrt(square)
        rx, ry, px, py, square = rx * grown, ry * grown, px / grown, py / grown, 1.0

    root = math.sqrt(max(0.0, 1.0 / square - 1.0)) if square > 0.0 else 0.0
    # The two flags select one of four possible arcs.
    if n[3] == n[4]:
        root = -root
    # On the unit circle: the centre, and the two points relative to it.
    mx, my = root * py, -root * px
    cx = c * mx * rx - s * my * ry + (x1 + x2) / 2.0
    cy = s * mx * rx + c * my * ry + (y1 + y2) / 2.0
    first, last = atan2(py - my, px - mx), atan2(-py - my, -px - mx)
    sweep = (last - first) % (2.0 * math.pi)
    if n[4] == 0.0 and sweep > 0.0:
        sweep -= 2.0 * math.pi
    pen.arc(line, (cx, cy), (rx, ry), (c, s), first, sweep)
    # The exact end point, so that the next segment starts there.
    line[-1] = pen.matrix(x2, y2)


def shape(
    tag: str,
    values: Mapping[str, str],
    view: FloatPair,
    pen: Pen,
    note: Callable[[str], None],
) -> Iterator[Line]:
    """Yield the lines of a basic shape or a path; none if it has no size.

    Parameters
    ----------
    tag : str
        Name of the element.
    values : mapping of str to str
        Attributes of the element.
    view : (float, float)
        Width and height of the viewport, for percentages.
    pen : Pen
        Draws the lines.
    note : callable
        Receives remarks about errors.
    """
    width, height = view
    # Reference length of percentages that have no direction (SVG 2, section 8.9).
    across = hypot(width, height) / math.sqrt(2.0)

    def get(name: str, whole: float) -> float:
        return length(values.get(name), whole) or 0.0

    # A basic shape has at most a few corners; curves count their own chords.
    pen.meter.add("vertices", 8)
    if tag == "path":
        text = values.get("d", "")
        inner = (
            re.match(r"\s*path\(\s*([\"'])(.*)\1\s*\)\s*\Z", text, re.DOTALL)
            if "(" in text[:100]
            else None
        )
        yield from path(
            pen, inner[2] if inner else "" if text.strip() == "none" else text, note
        )
    elif tag == "line":
        yield [
            pen.matrix(get("x1", width), get("y1", height)),
            pen.matrix(get("x2", width), get("y2", height)),
        ]
    elif tag in ("polyline", "polygon"):
        text = values.get("points", "")
        pen.meter.add("entities", 1 + len(text) // NUMBER_COST)
        corners = [pen.matrix(*p) for p in points_of(text)]
        pen.meter.add("vertices", 2 * len(corners))
        if len(corners) > 1:
            yield [*corners, corners[0]] if tag == "polygon" else corners
    elif tag == "circle":
        r = get("r", across)
        if r > 0.0:
            yield ellipse(pen, get("cx", width), get("cy", height), r, r)
    else:
        own = (
            length(values.get("rx"), width, None),
            length(values.get("ry"), height, None),
        )
        # If only one radius is given, the other one is the same.
        rx, ry = (
            own[k] if own[k] is not None and own[k] >= 0.0 else own[1 - k]  # type: ignore[operator]
            for k in range(2)
        )
        rx, ry = rx or 0.0, ry or 0.0
        if tag == "ellipse":
            if rx > 0.0 and ry > 0.0:
                yield ellipse(pen, get("cx", width), get("cy", height), rx, ry)
            return

        w, h = get("width", width), get("height", height)
        if w > 0.0 and h > 0.0:
            yield rectangle(pen, get("x", width), get("y", height), w, h, rx, ry)


__all__ = ["Pen", "shape"]
