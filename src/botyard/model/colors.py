"""Conversion of colour names to RGB.

Stage and AMRISim name colours as the X Window System does (rgb.txt). The form
``#rrggbb`` is also valid.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from botyard.errors import ArgumentError
from botyard.names import shown

GREY: Final = (128, 128, 128)
_LEVEL = re.compile(r"gr[ae]y(\d{1,3})")
_NUMBERED = re.compile(r"([a-z]+)([1-4])")
_SHADES: Final = (1.0, 0.932, 0.804, 0.545)
"""Brightness of the shades 1 to 4 of an X11 colour, relative to the colour itself."""
_X11_ONLY: Final = {
    "navyblue": "navy",
    "lightgoldenrod": "#eedd82",
    "violetred": "#d02090",
    "lightslateblue": "#8470ff",
}
"""Equal CSS names or RGB components of X11 names that CSS lacks; Pillow knows only CSS names."""


def rgb(name: str) -> tuple[int, int, int]:
    """Return the red, green and blue components of a colour, each from 0 to 255.

    Case and blanks in the name do not matter. An unknown colour is grey, because world
    files with a misspelt colour must still load.
    """
    return _found(name) or GREY


def known_rgb(name: str, what: str = "color") -> tuple[int, int, int]:
    """Return the red, green and blue components of a colour that must be known.

    Parameters
    ----------
    name : str
        X11 name, or ``#rrggbb``.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        The colour is unknown.
    """
    found = _found(name)
    if found is None:
        raise ArgumentError(
            f'{what}: expected the X11 name of a color or "#rrggbb", '
            f'found "{shown(name)}"'
        )
    return found


@lru_cache(maxsize=1024)
def _found(name: str) -> tuple[int, int, int] | None:
    """Return the components of a colour; None if it is unknown."""
    # X11 has two spellings of a name, such as "light green" and "LightGreen".
    key = name.lower().replace(" ", "")
    level = _LEVEL.fullmatch(key)
    # X11 defines gray0 to gray100 in percent of 255.
    if level and int(level[1]) <= 100:
        value = round(int(level[1]) * 2.55)
        return value, value, value

    numbered = _NUMBERED.fullmatch(key)
    shade = _SHADES[int(numbered[2]) - 1] if numbered else 1.0
    key = numbered[1] if numbered else key
    # Most maps name no colour, and Pillow takes long to import.
    from PIL import ImageColor

    try:
        r, g, b = ImageColor.getrgb(_X11_ONLY.get(key, key))[:3]
    except ValueError:
        return None

    return round(r * shade), round(g * shade), round(b * shade)


def hex_of(name: str) -> str:
    """Return a colour name as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*rgb(name))
