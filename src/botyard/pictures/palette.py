"""Colours of pictures, by theme; the page has the same colours (``palette.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Final

RGBA = tuple[int, int, int, int]
"""Colour as red, green, blue and opacity, 0 … 255."""
THEMES: Final = ("light", "dark")
COLORS: Final = ("model", "robot")
"""Colours of robots: the colour of the model, or a different colour for each robot."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of the elements of a picture; ``palette.toml`` describes each element."""

    ground: RGBA
    beyond: RGBA
    outside: RGBA
    grid: RGBA
    grid_major: RGBA
    wall: RGBA
    outline: RGBA
    laser_fill: RGBA
    laser_edge: RGBA
    laser_point: RGBA
    sonar: RGBA
    label: RGBA
    label_ground: RGBA
    place: RGBA
    area: RGBA
    bad_area: RGBA
    ghost: RGBA
    stalled: RGBA


@cache
def theme(name: str) -> Theme:
    """Return the colours of a theme.

    Parameters
    ----------
    name : str
        One of `THEMES`.

    Raises
    ------
    KeyError
        There is no theme of this name.
    """
    table = _palette()[name]
    return Theme(**{field.name: _rgba(table[field.name]) for field in fields(Theme)})


@cache
def robot_colors() -> tuple[str, ...]:
    """Return the colours that distinguish robots, ``#rrggbb``."""
    return tuple(_palette()["robots"])


@cache
def _palette() -> Mapping[str, Any]:
    return tomllib.loads(
        files("botyard.pictures").joinpath("palette.toml").read_text("utf-8")
    )


def _rgba(text: str) -> RGBA:
    """Return the colour (red, green, blue, opacity) of a text: ``#rrggbb`` or ``#rrggbbaa``."""
    r, g, b, *a = bytes.fromhex(text.removeprefix("#"))
    return r, g, b, a[0] if a else 255


__all__ = ["COLORS", "RGBA", "THEMES", "Theme", "robot_colors", "theme"]
