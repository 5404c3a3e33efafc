"""Options of the commands that draw pictures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import click

from botyard.errors import ArgumentError, CommandLineError
from botyard.names import shown
from botyard.pictures.options import PictureOptions, picture_options
from botyard.pictures.palette import COLORS, THEMES

UNITS: Final = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")
# The multiplication sign is what documents and copied sizes contain.
_SIZE: Final = re.compile(r"(\d+)(?:[x×](\d+))?")


class DurationParam(click.ParamType[float]):
    """Parameter type of click for a duration, such as ``5s``, ``250ms``, ``2min`` or ``1h``."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the duration of a text in seconds; a number without a unit is in seconds."""
        # click also passes the default through this function.
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value).strip().lower())
        if found is None or found[2] not in UNITS:
            self.fail(
                f'expected a time such as 5s, 250ms or 2min, found "{value}"',
                param,
                ctx,
            )

        return float(found[1]) * UNITS[found[2]]


class SizeParam(click.ParamType["int | tuple[int, int]"]):
    """Parameter type of click for a picture size in pixels, ``WIDTH`` or ``WIDTHxHEIGHT``."""

    name = "WIDTH[xHEIGHT]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[int, int]:
        """Return the picture size of a text in pixels."""
        # click may pass a value that is already converted.
        if isinstance(value, (int, tuple)):
            return value
        found = _SIZE.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail(
                f'expected a width or WIDTHxHEIGHT (pixels), found "{value}"',
                param,
                ctx,
            )

        return int(found[1]) if found[2] is None else (int(found[1]), int(found[2]))


class AreaParam(click.ParamType["tuple[float, ...]"]):
    """Parameter type of click for an area: comma-separated coordinates, m."""

    name = "X0,Y0,X1,Y1"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the coordinates of a text, m."""
        if isinstance(value, tuple):
            return value
        try:
            # The count is checked later, because --follow needs two numbers instead of
            # four.
            return tuple(float(word) for word in str(value).split(","))
        except ValueError:
            self.fail(
                f'expected comma-separated numbers (m), found "{value}"', param, ctx
            )


DURATION: Final = DurationParam()
_OPTIONS: Final = (
    click.option(
        "--area",
        type=AreaParam(),
        metavar="X0,Y0,X1,Y1",
        help="Section of the world to draw, m; with --follow WIDTH,HEIGHT. [default: "
        "all; with --follow 12 m around the robot]",
    ),
    click.option("--follow", metavar="NAME", help="Keep this robot in the centre."),
    click.option(
        "--trails",
        type=DURATION,
        default=0.0,
        metavar="TIME",
        help="Length of trails, as a time.",
    ),
    click.option(
        "--scans",
        multiple=True,
        metavar="on|off|NAME",
        help="Scans to draw: on, off, or all range sensors of one robot. Repeatable. [default: on]",
    ),
    click.option(
        "--size",
        type=SizeParam(),
        # A width alone keeps the proportions of the world.
        default="1000",
        show_default=True,
        help="Size in pixels.",
    ),
    click.option(
        "--theme",
        type=click.Choice(THEMES),
        default="light",
        show_default=True,
        help="Color scheme.",
    ),
    click.option(
        "--colors",
        type=click.Choice(COLORS),
        default="model",
        show_default=True,
        help="Colors of robots: by model, or a different one for each.",
    ),
)


def with_picture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the picture options to a command.

    Parameters
    ----------
    function : callable
        Function of the command; it receives the arguments of `chosen_picture`.

    Returns
    -------
    callable
        The same function, for the decorator of the command.
    """
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen_picture(*, scans: tuple[str, ...], **options: Any) -> PictureOptions:
    """Return the drawing options that the user chose.

    Raises
    ------
    CommandLineError
        A value is out of range.
    """
    if {"on", "off"} & set(scans) and len(scans) > 1:
        raise CommandLineError(
            "--scans: expected on, off, or names of robots, found "
            f"{shown(' '.join(scans))}"
        )

    # Robots named "on" or "off" cannot be selected; the words would be ambiguous.
    which: Any = {(): True, ("on",): True, ("off",): False}.get(scans, scans)
    try:
        return picture_options(scans=which, **options)
    except ArgumentError as error:
        raise CommandLineError(f"--{error}") from None


__all__ = ["DURATION", "chosen_picture", "with_picture_options"]
