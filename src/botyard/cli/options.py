"""Values of command-line options: what a robot, a start pose and a list of poses look
like when typed.
"""

from __future__ import annotations

from typing import Final

import click

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.app.kinds import OptionText, RobotChoice, parse_robot, parse_start
from botyard.app.options import MAX_READ_HELP
from botyard.errors import CommandLineError
from botyard.formats.budget import OPTION, Budget
from botyard.geometry import Pose


class LimitParam(click.ParamType[str]):
    """``NAME=NUMBER`` of a limit of reading."""

    name = "NAME=NUMBER"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Look whether there is such a limit."""
        try:
            Budget().raised([str(value)])
        except CommandLineError as error:
            self.fail(str(error).removeprefix(f"{OPTION}: "), param, ctx)

        return str(value)


class NamedValueParam(click.ParamType[str]):
    """``NAME=VALUE`` of an option of a controller."""

    name = "NAME=VALUE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Look whether it has a name."""
        try:
            return str(OptionText().read(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


max_read_option: Final = click.option(
    OPTION, type=LimitParam(), multiple=True, metavar="NAME=NUMBER", help=MAX_READ_HELP
)
"""For commands that read files: an argument `max_read`, for `Budget.raised`."""


SEED: Final = click.IntRange(MIN_SEED, MAX_SEED)
"""The value of ``--seed``."""


class RobotParam(click.ParamType[RobotChoice]):
    """``MODEL`` or ``MODEL:NAME``."""

    name = "MODEL[:NAME]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> RobotChoice:
        """Split at the last colon."""
        if isinstance(value, RobotChoice):
            return value
        try:
            return parse_robot(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class StartParam(click.ParamType[Pose | str]):
    """``X,Y,TH`` in mm and degrees, ``outside``, or ``random``."""

    name = "X,Y,TH|outside|random"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Pose | str:
        """Parse."""
        if isinstance(value, Pose):
            return value
        try:
            return parse_start(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
