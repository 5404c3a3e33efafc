"""Colours by their names in the X Window System (rgb.txt), which Stage and AMRISim use,
or as ``#rrggbb``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from PIL import ImageColor

GREY: Final = (128, 128, 128)
_LEVEL = re.compile(r"gr[ae]y(\d{1,3})")
_NUMBERED = re.compile(r"([a-z]+)([1-4])")
_SHADES: Final = (1.0, 0.932, 0.804, 0.545)
"""X11's shades 1 … 4 of a colour, as parts of its brightness."""
_X11_ONLY: Final = {
    "navyblue": "navy",
    "lightgoldenrod": "#eedd82",
    "violetred": "#d02090",
    "lightslateblue": "#8470ff",
}
"""X11 names that CSS lacks; Pillow knows those of CSS."""


@lru_cache(maxsize=1024)
def rgb(name: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 … 255, of a colour in any case and with or without blanks;
    grey if it is unknown.
    """
    key = name.lower().replace(" ", "")
    level = _LEVEL.fullmatch(key)
    if level and int(level[1]) <= 100:
        value = round(int(level[1]) * 2.55)
        return value, value, value

    numbered = _NUMBERED.fullmatch(key)
    shade = _SHADES[int(numbered[2]) - 1] if numbered else 1.0
    key = numbered[1] if numbered else key
    try:
        r, g, b = ImageColor.getrgb(_X11_ONLY.get(key, key))[:3]
    except ValueError:
        return GREY

    return round(r * shade), round(g * shade), round(b * shade)


def hex_of(name: str) -> str:
    """A colour by name as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*rgb(name))
