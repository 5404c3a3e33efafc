"""Lengths, transformations and viewports of SVG (SVG 2, chapters 7 and 8)."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from botyard.formats.drawing import FloatPair
from botyard.numerics.elementary import cosine_sine, tan

NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LENGTH: Final = re.compile(rf"\s*({NUMBER})\s*([a-zA-Z]*|%)\s*\Z")
_TERM: Final = re.compile(rf"\s*,?\s*({NUMBER}(?:[a-zA-Z]+|%)?)")
_FUNCTION: Final = re.compile(
    r"[\s,]*(matrix|translate[XY]?|scale[XY]?|rotate|skew[XY]?)\s*\(([^()]*)\)"
)
_ANGLE: Final = re.compile(rf"\s*({NUMBER})(deg|rad|grad|turn)?\s*\Z")
_UNITS: Final = {
    "": 1.0,
    "px": 1.0,
    "in": 96.0,
    "cm": 96.0 / 2.54,
    "mm": 96.0 / 25.4,
    "q": 96.0 / 101.6,
    "pt": 4.0 / 3.0,
    "pc": 16.0,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "ch": 8.0,
}
"""Number of pixels per unit of length (CSS Values and Units, section 6).

Units that depend on the font assume the usual font size, 16 pixels.
"""
_TURNS: Final = {
    "": 1.0,
    "deg": 1.0,
    "rad": 180.0 / math.pi,
    "grad": 0.9,
    "turn": 360.0,
}


def length(text: str | None, whole: float, usual: float | None = 0.0) -> float | None:
    """Return a length in user units.

    Parameters
    ----------
    text : str or None
        Value of an attribute: a number with or without a unit, or a percentage.
    whole : float
        Length of 100 %, in user units.
    usual : float or None
        Result if there is no length or if it is not supported (``auto``, ``calc``).
    """
    # A longer text is not a length, but could cost much time.
    match = _LENGTH.match(text) if text is not None and len(text) < 1000 else None
    if match is None:
        return usual
    unit = match[2].lower()
    if unit == "%":
        return float(match[1]) * whole / 100.0
    return float(match[1]) * _UNITS[unit] if unit in _UNITS else usual


class Matrix(NamedTuple):
    """Affine map of the plane: x' = a x + c y + e, y' = b x + d y + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def __matmul__(self, other: Matrix) -> Matrix:
        """Return the map that applies `other` first, and then this one."""
        a, b, c, d, e, f = other
        return Matrix(
            self.a * a + self.c * b,
            self.b * a + self.d * b,
            self.a * c + self.c * d,
            self.b * c + self.d * d,
            self.a * e + self.c * f + self.e,
            self.b * e + self.d * f + self.f,
        )

    def __call__(self, x: float, y: float) -> FloatPair:
        """Return the image of a point."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    @property
    def determinant(self) -> float:
        """Factor by which an area grows; 0: all points are mapped to one line."""
        return self.a * self.d - self.b * self.c

    @property
    def stretch(self) -> float:
        """Upper bound of the factor by which a length grows.

        The bound is the Frobenius norm, which is at least the largest singular value.
        """
        return math.sqrt(
            self.a * self.a + self.b * self.b + self.c * self.c + self.d * self.d
        )

    def inverse(self) -> Matrix:
        """Return the inverse map; the determinant must not be 0."""
        k = self.determinant
        a, b, c, d = self.d / k, -self.b / k, -self.c / k, self.a / k
        return Matrix(
            a, b, c, d, -(a * self.e + c * self.f), -(b * self.e + d * self.f)
        )


def moved(x: float, y: float) -> Matrix:
    """Return the affine map of a translation."""
    return Matrix(e=x, f=y)


def terms(text: str, most: int) -> list[str]:
    """Return the numbers and lengths in a list, as texts.

    A sign or a point may be the only separator (``-5-5``, ``.5.5``).

    Parameters
    ----------
    text : str
        Value of an attribute.
    most : int
        Largest number of terms.

    Returns
    -------
    list of str
        The terms as written; empty if the list contains other text, or more terms.
    """
    found: list[str] = []
    at = 0
    while len(found) <= most and (match := _TERM.match(text, at)):
        found.append(match[1])
        at = match.end()
    return found if len(found) <= most and not text[at:].strip() else []


def transform(text: str, view: FloatPair) -> Matrix | None:
    """Return the affine map of a list of transform functions; None if it is not understood.

    An attribute that is not understood has no effect.

    Parameters
    ----------
    text : str
        Value of the attribute ``transform``.
    view : (float, float)
        Width and height of the viewport, for percentages.
    """
    found = Matrix()
    at = 0
    while at < len(text):
        match = _FUNCTION.match(text, at)
        if match is None:
            return found if not text[at:].strip(" \t\r\n,;") else None
        one = _function(match[1], match[2], view)
        if one is None:
            return None
        found @= one
        at = match.end()

    return found


def _function(name: str, text: str, view: FloatPair) -> Matrix | None:
    """Return the affine map of one transform function.

    Parameters
    ----------
    name : str
        Name of the function, for example ``rotate``.
    text : str
        Its arguments: lengths in user units, angles in degrees or with a unit.
    view : (float, float)
        Width and height of the viewport, for percentages.

    Returns
    -------
    Matrix or None
        None if the arguments are not understood.
    """
    words = terms(text, 6)
    if not words:
        return None
    if name in ("rotate", "skewX", "skewY", "skew"):
        match = _ANGLE.match(words[0])
        more = [length(w, 0.0, None) for w in words[1:]]
        if match is None or None in more:
            return None
        # Reducing whole turns first keeps the precision of large angles.
        angle = float(match[1]) * _TURNS[match[2] or ""]
        turned = math.radians(angle % 360.0)
        if name == "rotate":
            x, y = (v or 0.0 for v in (more if len(more) == 2 else (0.0, 0.0)))
            c, s = cosine_sine(turned)
            return (
                moved(x, y) @ Matrix(c, s, -s, c) @ moved(-x, -y)
                if len(more) in (0, 2)
                else None
            )

        return Matrix(b=tan(turned)) if name == "skewY" else Matrix(c=tan(turned))
    whole = (
        (1.0, 1.0)
        if name.startswith("scale")
        else view[::-1]
        if name == "translateY"
        else view
    )
    values = [length(w, whole[k % 2], None) for k, w in enumerate(words)]
    numbers = [v for v in values if v is not None]
    if len(numbers) != len(words):
        return None
    first, count = numbers[0], len(numbers)
    if name == "matrix":
        return Matrix(*numbers) if count == 6 else None
    if name in ("translate", "scale"):
        if count > 2:
            return None
        second = numbers[1] if count == 2 else 0.0 if name == "translate" else first
        return (
            moved(first, second) if name == "translate" else Matrix(a=first, d=second)
        )

    if count != 1:
        return None
    return {
        "translateX": moved(first, 0.0),
        "translateY": moved(0.0, first),
        "scaleX": Matrix(a=first),
        "scaleY": Matrix(d=first),
    }[name]


def fitted(
    box: tuple[float, float, float, float], width: float, height: float, aspect: str
) -> Matrix:
    """Return the affine map from a view box to a viewport at (0, 0) (SVG 2, section 8.2).

    Parameters
    ----------
    box : tuple of four floats
        Least x, least y, width and height of the view box.
    width, height : float
        Size of the viewport, in units of the parent.
    aspect : str
        Value of ``preserveAspectRatio``; empty: its default, ``xMidYMid``.
    """
    x, y, w, h = box
    words = aspect.replace("defer", "").split()
    align = words[0] if words else "xMidYMid"
    a, d = width / w, height / h
    # Without "none", both axes get the same scale.
    if align != "none":
        a = d = max(a, d) if "slice" in words else min(a, d)
    share = {"Min": 0.0, "Mid": 0.5, "Max": 1.0}
    across = share.get(align[1:4], 0.5) if align != "none" else 0.0
    down = share.get(align[5:8], 0.5) if align != "none" else 0.0
    return Matrix(
        a,
        0.0,
        0.0,
        d,
        across * (width - a * w) - a * x,
        down * (height - d * h) - d * y,
    )


__all__ = ["Matrix", "fitted", "length", "moved", "terms", "transform"]
