"""Parsers for values of command-line options: limits, robots and start poses."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import CompletionItem

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.app.declaration import MAX_READ_HELP
from botyard.app.kinds import Host, OptionText, RobotChoice, parse_robot, parse_start
from botyard.errors import CommandLineError
from botyard.formats.budget import OPTION, Budget
from botyard.geometry import Pose
from botyard.names import is_host, shown


def parse_address(
    text: str, *, host: str = "127.0.0.1", port: int | None
) -> tuple[str, int]:
    """Parse ``HOST:PORT``, ``[IPV6]:PORT``, ``HOST``, ``:PORT`` or a port number.

    Parameters
    ----------
    text : str
        Address as the user typed it.
    host : str
        Host if the text has none.
    port : int or None
        Port if the text has none; None if it must have one.

    Raises
    ------
    CommandLineError
        The host cannot be looked up, or the port is not a number from 1 to 65535.
    """
    # A number alone is a port, the part that users change most often.
    alone = f":{text}" if text.isdecimal() else text
    name, colon, digits = alone.rpartition(":")
    if not colon or digits.endswith("]"):
        name, digits = alone, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    elif ":" in name:
        # An IPv6 address needs brackets.
        digits = "-"

    if digits:
        # The length is limited before the conversion, because int() of many digits is
        # slow. 0 is rejected below.
        number = int(digits) if digits.isdecimal() and len(digits) <= 5 else 0
    else:
        number = port or 0
    name = name or host
    if not is_host(name) or not 1 <= number <= 65535:
        raise CommandLineError(
            "expected HOST:PORT with a port from 1 to 65535, "
            f'found "{shown(text, 100)}"'
        )

    return name, number


class HostParam(click.ParamType[str]):
    """Parameter type of click for a host name or an address."""

    name = "ADDRESS"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check that the host can be looked up."""
        try:
            return Host().read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class LimitParam(click.ParamType[str]):
    """Parameter type of click for a limit of reading, ``NAME=NUMBER``."""

    name = "NAME=NUMBER"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check that the limit exists."""
        try:
            Budget().raised([str(value)])
        except CommandLineError as error:
            # click adds the name of the option itself.
            self.fail(str(error).removeprefix(f"{OPTION}: "), param, ctx)

        return str(value)


class NamedValueParam(click.ParamType[str]):
    """Parameter type of click for an option of a controller, ``NAME=VALUE``."""

    name = "NAME=VALUE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check that the text has the form ``NAME=VALUE``."""
        try:
            return str(OptionText().read(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


max_read_option: Final = click.option(
    OPTION, type=LimitParam(), multiple=True, metavar="NAME=NUMBER", help=MAX_READ_HELP
)
"""Option ``--max-read`` of commands that read files.

Its values go to `Budget.raised`.
"""


SEED: Final = click.IntRange(MIN_SEED, MAX_SEED)
"""Type of the value of ``--seed``."""


class RobotParam(click.ParamType[RobotChoice]):
    """Parameter type of click for a robot to add, ``MODEL`` or ``MODEL:NAME``."""

    name = "MODEL[:NAME]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> RobotChoice:
        """Return the robot of a text, which is split at its last colon."""
        if isinstance(value, RobotChoice):
            return value
        try:
            return parse_robot(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the model names that start with the typed text, for the shell."""
        # Models take long to import, and only this use of the class needs them.
        from botyard.model.library import robot_names

        return [CompletionItem(n) for n in robot_names() if n.startswith(incomplete)]


class MapParam(click.ParamType[str]):
    """Parameter type of click for a shipped map, a file or a ROS topic."""

    name = "FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text; the reader of maps checks it."""
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return matching shipped maps, for the shell, which adds matching files."""
        from botyard.formats.mapsearch import builtin_maps

        names = [CompletionItem(n) for n in builtin_maps() if n.startswith(incomplete)]
        return [*names, CompletionItem(incomplete, type="file")]


class StartParam(click.ParamType[Pose | str]):
    """Parameter type of click for a start pose."""

    name = "X,Y,TH|outside|random"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Pose | str:
        """Return the start pose of a text."""
        if isinstance(value, Pose):
            return value
        try:
            return parse_start(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
