"""Options of ``botyard run`` as click parameters, generated from `botyard.app.options`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import click
from click.core import ParameterSource

from botyard.app.declaration import Option
from botyard.app.kinds import (
    Flag,
    Host,
    Kind,
    LimitText,
    OneOf,
    OptionText,
    Real,
    RobotChoice,
    RobotText,
    StartText,
    Whole,
)
from botyard.app.options import OPTIONS, SECTIONS, RunOptions
from botyard.cli.options import (
    HostParam,
    LimitParam,
    MapParam,
    NamedValueParam,
    RobotParam,
    StartParam,
)
from botyard.geometry import Pose
from botyard.names import shown
from botyard.units import deg, mm


class RunOption(click.Option):
    """Parameter of click for an option of a run.

    Parameters
    ----------
    world : bool
        Whether a world file may set the option (`botyard.formats.worldoptions`). True
        for options that describe the world or its pace. Never true for an option that
        names a file, address, port or token, that opens or closes something, or that
        concerns the log or the page.
    """

    def __init__(self, *args: Any, world: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        self.world = world


def _without_effect(
    _context: click.Context, parameter: click.Parameter, value: bool
) -> None:
    """Warn about an AMRISim option that has no effect here.

    These options concern its menu bar, its message window, and its world file for
    Stage.
    """
    if value:
        click.echo(
            # The longest spelling is the one with two dashes, which the reference
            # lists.
            f"botyard: warning: {max(parameter.opts, key=len)} has no effect here",
            err=True,
        )


def take_config(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    """Use the values of a configuration file as defaults (``--config``).

    Parameters
    ----------
    context : click.Context
        Context of the command, whose defaults are set.
    parameter : click.Parameter
        The option itself; not used.
    path : str or None
        Configuration file; None without the option.

    Raises
    ------
    CommandLineError
        See `botyard.app.config.read_config`.
    """
    if path is not None:
        from botyard.app.config import read_config

        # Set defaults, not values: the command line takes precedence, and click knows
        # the origin of each value.
        context.default_map = {**(context.default_map or {}), **read_config(path)}

    return path


def parameter(option: Option) -> Callable[[Any], Any]:
    """Return the click parameter for an option.

    Parameters
    ----------
    option : Option
        Declaration; without flags it is the argument of the command.

    Returns
    -------
    callable
        Decorator of the function of a command.
    """
    if not option.flags:
        return click.argument(
            option.name, required=False, metavar=option.metavar, type=MapParam()
        )
    more: dict[str, Any] = {"help": option.help or None, "hidden": option.hidden}
    kind = option.kind
    if isinstance(kind, Flag):
        more["is_flag"] = True
    else:
        more |= {
            "type": MapParam() if option.name == "map" else _type(kind),
            "multiple": option.many,
            "metavar": option.metavar,
        }
        if option.default is not None and not option.many:
            more |= {"default": option.default, "show_default": True}

    if option.bare is not None:
        more |= {"is_flag": False, "flag_value": option.bare}
    if option.name == "config":
        # Eager, because the file must be read before any other option looks for its
        # default.
        more |= {"is_eager": True, "callback": take_config}
    return click.option(
        *option.flags, option.name, cls=RunOption, world=option.world, **more
    )


def _type(kind: Kind) -> click.ParamType[Any]:
    """Return the click type that parses values of a kind.

    The type also describes the value in the help text.
    """
    if isinstance(kind, Whole):
        return (
            click.INT
            if kind.low is None and kind.high is None
            else click.IntRange(kind.low, kind.high)
        )

    if isinstance(kind, Real):
        low, high = (None if math.isinf(x) else x for x in (kind.low, kind.high))
        return click.FloatRange(low, high, min_open=kind.above)

    if isinstance(kind, OneOf):
        return click.Choice(kind.words)
    own: dict[type[Kind], click.ParamType[Any]] = {
        RobotText: RobotParam(),
        StartText: StartParam(),
        LimitText: LimitParam(),
        Host: HostParam(),
        OptionText: NamedValueParam(),
    }
    return own.get(type(kind), click.STRING)


NO_EFFECT: Final = ("no-menu", "no-messages", "echo-stage-worldfile")
"""AMRISim options that are accepted without an effect."""

PARAMETERS: Final[tuple[Callable[[Any], Any], ...]] = (
    *map(parameter, OPTIONS.values()),
    *(
        click.option(
            f"--{name}",
            f"-{name}",
            cls=RunOption,
            world=False,
            is_flag=True,
            # Old start scripts contain these options; new users should not learn them.
            hidden=True,
            expose_value=False,
            callback=_without_effect,
        )
        for name in NO_EFFECT
    ),
)
"""All click parameters, in the order of the help text."""


GROUPS: Final = tuple(
    (
        section,
        " ".join(
            [
                o.long
                for o in OPTIONS.values()
                if o.section == section and o.flags and not o.hidden
            ]
            + (["help"] if section == SECTIONS[-1] else [])
        ),
    )
    for section in SECTIONS
)
"""Sections of the help text, with the long names of their options."""


ARGUMENTS: Final = "botyard.api.arguments"
"""Key of the context's metadata for the command line as typed."""


class RunCommand(click.Command):
    """Command ``run``, whose help groups the options in sections.

    With ``--compat amrisim``, it ignores unknown options (CLI-055).
    """

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the sections of options."""
        # click would print one long list in the order of declaration.
        rows = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                rows[_long_name(parameter)] = record

        for title, names in GROUPS:
            with formatter.section(title):
                formatter.write_dl([rows.pop(name) for name in names.split()])

        # A new option without a section would be missing from the help.
        assert not rows, f"in no section: {', '.join(rows)}"

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the names of all commands."""
        super().format_epilog(ctx, formatter)
        group = ctx.find_root().command
        if isinstance(group, click.Group):
            names = [name for name in group.list_commands(ctx) if name != self.name]
            with formatter.section("Other commands, each with --help"):
                formatter.write_text(", ".join(names))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments of the command line, and reject misspelt options."""
        ctx.meta[ARGUMENTS] = list(args)
        known = {o for p in self.get_params(ctx) for o in (*p.opts, *p.secondary_opts)}
        if _is_compatible(args):
            # AMRISim ignores options that it does not know, so start scripts may
            # contain some (CLI-055).
            kept = [a for a in args if _may_be_option(a, known)]
            for gone in (a for a in args if a not in kept):
                click.echo(
                    f"botyard: warning: unknown option {gone} is ignored", err=True
                )

            args = kept

        for text in args:
            # click would read "-robt" as "-r obt".
            if _is_misspelt(text, known):
                raise click.NoSuchOption(text, ctx=ctx)

        return super().parse_args(ctx, _spelled_out(args, self.get_params(ctx)))


def _spelled_out(args: Sequence[str], params: Sequence[click.Parameter]) -> list[str]:
    """Return the arguments with each one-letter option replaced by its long spelling.

    click looks for similar long options at each short one, which takes more time than
    adding a robot.
    """
    options = {o: p for p in params if isinstance(p, click.Option) for o in p.opts}
    spelled: list[str] = []
    at = 0
    while at < len(args) and args[at] != "--":
        text = args[at]
        option = options.get(text)
        width = 1
        if option is not None and not (option.is_flag or option.count):
            width += option.nargs
            # Without its value, the error names the option as it was given.
            if len(text) == 2 and at + width <= len(args):
                text = next((o for o in option.opts if o.startswith("--")), text)

        spelled += [text, *args[at + 1 : at + width]]
        at += width

    return spelled + list(args[at:])


def _is_misspelt(text: str, known: set[str]) -> bool:
    """Return whether an argument looks like a misspelt option with a single dash."""
    if (
        not text.startswith("-")
        or text.startswith("--")
        or len(text) < 4
        or text in known
    ):
        return False

    # Misspelt options with two dashes need no help here: click suggests the similar
    # ones itself.
    words = [o[1:] for o in known if len(o) > 2 and o[1] != "-"]
    # A ratio of 0.75 finds a wrong or missing letter, but not a short option with its
    # value, such as -p9000.
    return bool(difflib.get_close_matches(text[1:].lower(), words, n=1, cutoff=0.75))


def _may_be_option(text: str, known: set[str]) -> bool:
    """Return whether an argument may be valid: not an option, or a known option.

    For example, ``-p9000`` is option ``-p`` with a value, and ``-5`` is a number.
    """
    name = text.partition("=")[0]
    return (
        not text.startswith("-")
        or name in known
        # The value may follow a short option directly.
        or name[:2] in known
        # Negative numbers, such as a coordinate, start with a dash as well.
        or not name.strip("-")[:1].isalpha()
    )


def _is_compatible(args: Sequence[str]) -> bool:
    """Return whether the arguments contain ``--compat amrisim``."""
    return "--compat=amrisim" in args or any(
        a == "--compat" and b == "amrisim" for a, b in pairwise(args)
    )


def config_text(
    o: RunOptions, context: click.Context, world: Mapping[str, Any], source: str
) -> str:
    """Return all effective options as a configuration file, for ``--print-config``.

    Parameters
    ----------
    o : RunOptions
        Effective options.
    context : click.Context
        Context that knows the origin of each option.
    world : mapping of str to object
        Options that the world file sets, by long name.
    source : str
        Name of the world file.

    Returns
    -------
    str
        YAML text in the units of the command line. A comment names the origin of each
        value; options without a value are comments.
    """
    import yaml

    from botyard.app.config import NOT_IN_FILES

    origins = {
        ParameterSource.COMMANDLINE: "command line",
        ParameterSource.DEFAULT_MAP: shown(o.config, 500),
        ParameterSource.ENVIRONMENT: "environment",
    }
    lines = []

    for name, option in OPTIONS.items():
        if name in NOT_IN_FILES or option.hidden or not option.flags:
            continue
        long, value = option.long, getattr(o, name)
        origin = origins.get(
            context.get_parameter_source(name) or ParameterSource.DEFAULT, "default"
        )
        if origin == "default" and long in world:
            origin = shown(source, 500)

        # The option is commented out, because YAML's null is not a valid value of these
        # options.
        if value is None:
            lines.append(f"# {long}:  # {origin}")
            continue

        # Files use the units and the forms of the command line, so that the output can
        # be used as --config.
        plain = [_plain(v) for v in value] if option.many else _plain(value)
        text = yaml.safe_dump(
            {long: plain}, default_flow_style=True, allow_unicode=True, width=1000
        ).strip()
        # Without the braces of the flow style, which keeps lists on one line.
        lines.append(f"{text[1:-1]}  # {origin}")

    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    """Return a value in the form in which a user writes it."""
    if isinstance(value, RobotChoice):
        return value.model if value.name is None else f"{value.model}:{value.name}"
    if isinstance(value, Pose):
        # The format option z prints a rounded −0 as 0.
        return ",".join(f"{v:zg}" for v in (mm(value.x), mm(value.y), deg(value.th)))
    return value


def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options to a command's function.

    Parameters
    ----------
    function : callable
        Function of the command; it receives the options as keyword arguments.
    """
    for parameter in reversed(PARAMETERS):
        function = parameter(function)
    return function


def with_some_options(
    *names: str,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add some options of ``run`` to another command's function.

    Parameters
    ----------
    *names : str
        Fields of `RunOptions`, in the order of the help text.

    Returns
    -------
    callable
        Decorator of the function of a command.
    """

    def give(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            function = parameter(OPTIONS[name])(function)
        return function

    return give


_OF_SETTINGS = frozenset(
    {
        "seed",
        "update_sim_time",
        "duration",
        "odom_error_mode",
        "no_error",
        "sensor_noise",
        "threads",
        "fast",
        "start",
    }
)
"""Options that a saved scenario stores in other keys or in the poses of robots."""


_OF_SAVED = frozenset(
    {
        "config",
        "print_config",
        "map",
        "map_argument",
        "stageworld",
        "nomap",
        "robots",
        "resolution",
        "save_scenario",
        "cwd",
    }
)
"""Options that a saved scenario replaces, or that concern a single run only."""


def world_options(context: click.Context) -> dict[str, Any]:
    """Return the options from the command line that a scenario can hold, by long name.

    Parameters
    ----------
    context : click.Context
        Context that knows which options were given.

    Returns
    -------
    dict of str to object
        Given options; defaults are left out, because the version that reads the
        scenario decides them.
    """
    found: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        # Return only given options: defaults may change with the version that reads the
        # scenario.
        if option.world and is_given(context, name) and name not in _OF_SETTINGS:
            value = context.params[name]
            found[option.long] = list(value) if isinstance(value, tuple) else value

    return found


def lost_options(context: click.Context) -> list[str]:
    """Return the options from the command line that no scenario can hold.

    Parameters
    ----------
    context : click.Context
        Context that knows which options were given.
    """
    return [
        f"--{o.long}"
        for name, o in OPTIONS.items()
        if not (o.world or o.hidden or name in _OF_SAVED) and is_given(context, name)
    ]


def is_given(context: click.Context, name: str) -> bool:
    """Return whether an option was given, rather than left at its default.

    Parameters
    ----------
    context : click.Context
        Context of the command.
    name : str
        Field of `RunOptions`. The environment and a configuration file also count; an
        option that the command does not have is not given.
    """
    return context.get_parameter_source(name) not in (
        None,
        ParameterSource.DEFAULT,
        # None: this command does not have the option.
    )


def _long_name(parameter: click.Parameter) -> str:
    """Return the long name of an option, without dashes."""
    return next(
        (o[2:] for o in parameter.opts if o.startswith("--")), parameter.name or ""
    )
