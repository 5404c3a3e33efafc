"""Options of commands that draw pictures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import click

from botyard.errors import ArgumentError, CommandLineError
from botyard.pictures.options import PictureOptions, picture_options
from botyard.pictures.palette import COLORS, THEMES

UNITS: Final = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")
_SIZE: Final = re.compile(r"(\d+)(?:[x×](\d+))?")


class DurationParam(click.ParamType[float]):
    """A time: ``5s``, ``250ms``, ``2min``, ``1h``; without a unit seconds."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
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
    """``WIDTH`` or ``WIDTHxHEIGHT``, pixels."""

    name = "WIDTH[xHEIGHT]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[int, int]:
        """Pixels."""
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
    """Numbers between commas, m."""

    name = "X0,Y0,X1,Y1"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(word) for word in str(value).split(","))
        except ValueError:
            self.fail(
                f'expected numbers between commas (m), found "{value}"', param, ctx
            )


DURATION: Final = DurationParam()
_OPTIONS: Final = (
    click.option(
        "--area",
        type=AreaParam(),
        metavar="X0,Y0,X1,Y1",
        help="The part of the world, m; with --follow WIDTH,HEIGHT. [default: "
        "all; 12 m around the robot]",
    ),
    click.option("--follow", metavar="NAME", help="This robot stays in the middle."),
    click.option(
        "--trails",
        type=DURATION,
        default=0.0,
        metavar="TIME",
        help="Draw where robots were so long before.",
    ),
    click.option(
        "--scans",
        multiple=True,
        metavar="on|off|NAME",
        help="Draw scans (on), none (off), or all range sensors of these robots. "
        "May be given several times. [default: on]",
    ),
    click.option(
        "--size", type=SizeParam(), default="1000", show_default=True, help="Pixels."
    ),
    click.option(
        "--theme",
        type=click.Choice(THEMES),
        default="light",
        show_default=True,
        help="Colors.",
    ),
    click.option(
        "--colors",
        type=click.Choice(COLORS),
        default="model",
        show_default=True,
        help="Of robots: those of their models, or one each.",
    ),
)


def with_picture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command function the options of pictures: those of `chosen_picture`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen_picture(*, scans: tuple[str, ...], **options: Any) -> PictureOptions:
    """What the options of `with_picture_options` say. CommandLineError: one is out of
    its range.
    """
    if {"on", "off"} & set(scans) and len(scans) > 1:
        raise CommandLineError(
            "--scans: expected on, off, or names of robots, found several of these"
        )

    which: Any = {(): True, ("on",): True, ("off",): False}.get(scans, scans)
    try:
        return picture_options(scans=which, **options)
    except ArgumentError as error:
        raise CommandLineError(f"--{error}") from None


__all__ = ["DURATION", "chosen_picture", "with_picture_options"]
