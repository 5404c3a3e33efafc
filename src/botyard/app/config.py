"""Options from configuration files (``--config``) and from world files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from botyard.app.declaration import Option
from botyard.app.options import OPTIONS, RunOptions
from botyard.errors import CommandLineError, FormatError, did_you_mean
from botyard.formats.base import read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.worldoptions import refusal

NOT_IN_FILES = frozenset({"config", "print_config"})
"""Options that a configuration file cannot set."""


def read_value(option: Option, value: Any) -> Any:
    """Convert a value from a file to the option's value.

    Raises
    ------
    ValueError
        The value is not valid; the message names the expected and the found value.
    """
    # A single value, such as one start pose, counts as a list with this element.
    if option.many and option.kind.is_one(value):
        value = [value]
    if option.many != isinstance(value, list):
        raise ValueError(
            f"expected {'a list' if option.many else 'one value'}, found {value!r}"
        )

    return (
        tuple(map(option.kind.read, value)) if option.many else option.kind.read(value)
    )


def read_config(path: str) -> dict[str, Any]:
    """Read a configuration file; return the raw values by field name.

    Raises
    ------
    CommandLineError
        The file cannot be read, or contains an unknown option or a value that is not
        valid; the error names the line.
    """
    from botyard.formats.yamlfile import YamlFile

    # A supervisor passes hidden options to its simulator: a file that sets one would
    # confuse both.
    known = {
        o.long: o
        for name, o in OPTIONS.items()
        if name not in NOT_IN_FILES and not o.hidden
    }
    try:
        file = YamlFile(
            read_source(path).text, Meter(Budget(), path, FormatError), FormatError
        )
        if not isinstance(file.data, dict):
            raise FormatError(
                "expected options by long name, for example port: 9000", path, 1
            )

        values: dict[str, Any] = {}
        for key, value in file.data.items():
            where, option = f"$.{key}", known.get(str(key))
            if option is None:
                raise file.fail(where, f"unknown option{did_you_mean(str(key), known)}")

            try:
                # The value is only checked here, while the line is known. The command
                # line converts it again with its own precedence.
                read_value(option, value)
            except ValueError as error:
                raise file.fail(where, str(error)) from None

            values[option.name] = (
                [value] if option.many and not isinstance(value, list) else value
            )
    except FormatError as error:
        raise CommandLineError(f"--config: {error}") from None

    return values


def world_words() -> dict[str, Option]:
    """Return the declarations of the options that a world file may set, by long name."""
    return {o.long: o for o in OPTIONS.values() if o.world}


def with_world_options(
    o: RunOptions,
    options: Mapping[str, Any],
    source: str,
    is_given: Callable[[str], bool] = lambda _name: False,
) -> RunOptions:
    """Return the options of a run, completed by the options of a world file.

    Parameters
    ----------
    o : RunOptions
        Options of the run.
    options : mapping
        Options of the world file, by long name.
    source : str
        Name of the world file, for errors.
    is_given : callable
        Return whether the user has given an option, by field name.

    Raises
    ------
    CommandLineError
        The world file sets an option that it must not set, or a value that is not
        valid. Readers of files report the line.
    """
    words = world_words()
    changes: dict[str, Any] = {}
    for key, value in options.items():
        # Not all options are allowed: a downloaded world file must not open ports,
        # write files or set tokens.
        where, option = f"{source}: options: {key}", words.get(key)
        if option is None:
            raise CommandLineError(f"{where}: {refusal(key)}")
        try:
            changes[option.name] = read_value(option, value)
        except ValueError as error:
            raise CommandLineError(f"{where}: {error}") from None

    # The command line takes precedence over the world file, even if it repeats the
    # default value.
    return replace(
        o, **{name: value for name, value in changes.items() if not is_given(name)}
    )


__all__ = [
    "NOT_IN_FILES",
    "read_config",
    "read_value",
    "with_world_options",
    "world_words",
]
