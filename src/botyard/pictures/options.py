"""Options of pictures, for single pictures, movies and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.geometry import Pose
from botyard.model.scene import Place
from botyard.pictures.canvas import MAX_PIXELS, MAX_WIDTH, Size
from botyard.pictures.palette import COLORS, THEMES
from botyard.pictures.still import Scans

LEAST_SIZE: Final = 16
"""Smallest width of a picture, pixels."""
MAX_TRAIL_S: Final = 86_400.0
"""Longest trail of a robot, simulated s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureOptions:
    """Contents of a picture.

    Attributes
    ----------
    area : tuple or None
        Part of the world: smallest x, smallest y, largest x, largest y, m. With
        `follow`: width and height of the part around the robot, m. None: the whole
        world; with `follow` 12 m × 7.5 m.
    follow : str or None
        Name of the robot that stays in the middle of the picture.
    trails : float
        Length of robots' trails, simulated s; 0: no trails.
    scans : bool or tuple of str
        See `botyard.pictures.still.take`.
    size : int or tuple of two
        Largest width, or width and height, pixels; see `botyard.pictures.canvas.fit`.
    theme : str
        One of `THEMES`.
    colors : str
        One of `COLORS`.
    goals : tuple of Place
        Places to mark in addition to the places of the map.
    """

    area: tuple[float, ...] | None = None
    follow: str | None = None
    trails: float = 0.0
    scans: Scans = True
    size: Size = 1000
    theme: str = "light"
    colors: str = "model"
    goals: tuple[Place, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the robots that the options mention."""
        return (
            *(() if isinstance(self.scans, bool) else self.scans),
            *(() if self.follow is None else (self.follow,)),
        )


def picture_options(
    *,
    area: Sequence[float] | None = None,
    follow: str | None = None,
    trails: float = 0.0,
    scans: bool | str | Iterable[str] = True,
    size: int | Sequence[int] = 1000,
    theme: str = "light",
    colors: str = "model",
    goals: ArrayLike = (),
) -> PictureOptions:
    """Return checked options of a picture.

    Parameters
    ----------
    area : sequence of float, optional
        Smallest x, smallest y, largest x, largest y, m. With `follow`: width and height
        of the part around the robot, m.
    follow : str, optional
        Name of the robot that stays in the middle of the picture.
    trails : float
        Length of trails, simulated s, at most `MAX_TRAIL_S`.
    scans : bool, str or iterable of str
        Whether to draw the readings of sensors with a subscriber; or names of robots, of
        which all readings are drawn.
    size : int or sequence of int
        Largest width, or width and height, pixels.
    theme, colors : str
        One of `palette.THEMES`, one of `palette.COLORS`.
    goals : (n, 2) or (n, 3) array_like
        Further places, x, y, m, with or without th, rad.

    Raises
    ------
    ArgumentError
        An option is out of its range or has another type.
    """
    return PictureOptions(
        area=None if area is None else _area(area, is_around=follow is not None),
        follow=None
        if follow is None
        else str(arguments.instance(follow, "follow", str)),
        trails=arguments.number(trails, "trails", low=0.0, high=MAX_TRAIL_S, unit="s"),
        scans=_scans(scans),
        size=_size(size),
        theme=arguments.one_of(theme, "theme", THEMES),
        colors=arguments.one_of(colors, "colors", COLORS),
        goals=_goals(goals),
    )


def _goals(goals: Any) -> tuple[Place, ...]:
    """Return goals as places, as a map has them.

    Parameters
    ----------
    goals : (n, 2) or (n, 3) array_like
        x, y, m, with or without th, rad; may be empty.
    """
    columns = (arguments.numbers(goals, "goals").shape or (0,))[-1]
    # Goals with three numbers have a heading.
    rows = arguments.array(goals, "goals", 3 if columns == 3 else 2)
    return tuple(
        Place(
            kind="Goal",
            name="",
            pose=Pose(*row, *(0.0,) * (3 - len(row))),
            has_heading=len(row) == 3,
        )
        for row in rows.tolist()
    )


def _area(area: Any, *, is_around: bool) -> tuple[float, ...]:
    """Return the checked part of the world.

    Parameters
    ----------
    area : sequence of float
        Two or four numbers, m.
    is_around : bool
        Whether `area` is a width and a height around a robot.

    Raises
    ------
    ArgumentError
        The area has another number of values, or is empty.
    """
    count = 2 if is_around else 4
    form = (
        "width and height around the robot"
        if is_around
        else "smallest x, smallest y, largest x, largest y"
    )
    # Reject a string here: it has a length too, but contains no numbers.
    if isinstance(area, str) or not hasattr(area, "__len__") or len(area) != count:
        raise ArgumentError(
            f"area: expected {count} numbers, {form} (m), found {arguments.found(area)}"
        )

    numbers = tuple(arguments.number(x, "area", unit="m") for x in area)
    wide, high = (
        numbers if is_around else (numbers[2] - numbers[0], numbers[3] - numbers[1])
    )
    if not (wide > 0.0 and high > 0.0):
        raise ArgumentError(
            f"area: expected {form} (m) of a box that is not empty, found {wide:g} m × {high:g} m"
        )

    return numbers


def _scans(scans: Any) -> Scans:
    if isinstance(scans, bool):
        return scans
    names = (scans,) if isinstance(scans, str) else scans
    if not isinstance(names, Iterable):
        raise ArgumentError(
            f"scans: expected True, False or robot names, found {arguments.found(scans)}"
        )

    return tuple(str(arguments.instance(name, "scans", str)) for name in names)


def _size(size: Any) -> Size:
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ArgumentError(
                "size: expected a width, or width and height (pixels), found "
                f"{arguments.found(size)}"
            )

        width, height = (
            arguments.whole(n, "size", low=LEAST_SIZE, high=MAX_WIDTH) for n in size
        )
        if width * height > MAX_PIXELS:
            raise ArgumentError(
                f"size: expected at most {MAX_PIXELS} pixels, found {width} × {height}"
            )

        return width, height

    return arguments.whole(size, "size", low=LEAST_SIZE, high=MAX_WIDTH)


__all__ = ["LEAST_SIZE", "PictureOptions", "picture_options"]
