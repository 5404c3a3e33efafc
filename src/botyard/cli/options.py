"""Values of command-line options: what a robot, a start pose and a list of poses look like when typed."""

from __future__ import annotations

import math
from typing import Final

import click

from botyard.app.options import RobotChoice
from botyard.arguments import MAX_SEED, MIN_SEED
from botyard.errors import CommandLineError
from botyard.formats.budget import OPTION, WHAT, Budget
from botyard.geometry import Pose
from botyard.units import from_deg, from_mm


class LimitParam(click.ParamType[str]):
    """``NAME=NUMBER`` of a limit of reading."""

    name = "NAME=NUMBER"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Look whether there is such a limit."""
        try:
            Budget().raised([str(value)])
        except CommandLineError as error:
            self.fail(str(error).removeprefix(f"{OPTION}: "), param, ctx)
        return str(value)


MAX_READ_HELP: Final = (
    f"Another limit of what a file may ask for: {', '.join(WHAT)}. The error of a limit says its name. Repeatable."
)
max_read_option: Final = click.option(
    OPTION, type=LimitParam(), multiple=True, metavar="NAME=NUMBER", help=MAX_READ_HELP
)
"""For commands that read files: an argument `max_read`, for `Budget.raised`."""


SEED: Final = click.IntRange(MIN_SEED, MAX_SEED)
"""The value of ``--seed``."""


class RobotParam(click.ParamType[RobotChoice]):
    """``MODEL`` or ``MODEL:NAME``."""

    name = "MODEL[:NAME]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> RobotChoice:
        """Split at the last colon."""
        if isinstance(value, RobotChoice):
            return value
        model, colon, name = str(value).rpartition(":")
        if not colon or len(model) <= 1 or "/" in name or "\\" in name:  # no colon, or one of a drive letter
            model, name = str(value), ""
        if not model:
            self.fail(f'expected MODEL or MODEL:NAME, found "{value}"', param, ctx)
        return RobotChoice(model, name or None)


class StartParam(click.ParamType[Pose | str]):
    """``X,Y,TH`` in mm and degrees, ``outside``, or ``random``."""

    name = "X,Y,TH|outside|random"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Pose | str:
        """Parse."""
        if isinstance(value, Pose):
            return value
        text = str(value).strip().lower()
        if text in ("outside", "random"):
            return text
        try:
            x, y, th = (float(w) for w in text.split(","))
        except ValueError:
            self.fail(f'expected x,y,th (mm, mm, degrees), "outside" or "random", found "{value}"', param, ctx)
        if not all(map(math.isfinite, (x, y, th))):
            self.fail(f'expected finite numbers, found "{value}"', param, ctx)
        return Pose(from_mm(x), from_mm(y), from_deg(th))
