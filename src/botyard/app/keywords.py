"""Keyword arguments of `botyard.serve`, generated from the table of options."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from botyard.app.declaration import Option
from botyard.app.options import OPTIONS, SECTIONS, RunOptions
from botyard.errors import ArgumentError, CommandLineError, PortError, did_you_mean

KEYWORDS: Final[Mapping[str, Option]] = {
    o.keyword: o for o in OPTIONS.values() if o.keyword is not None
}
"""Options of `serve` by keyword."""


def options_of(keywords: Mapping[str, Any]) -> RunOptions:
    """Convert keyword arguments of `serve` to the options of a run.

    Raises
    ------
    ArgumentError
        A keyword is unknown (with a suggestion), or its value is not valid.
    """
    # The defaults of `serve` may differ from the command line's (`serve_default`).
    given: dict[str, Any] = {o.name: o.serve_default for o in KEYWORDS.values()}
    for word, value in keywords.items():
        option = KEYWORDS.get(word)
        if option is None:
            raise ArgumentError(f"serve: {_no_keyword(word)}")
        given[option.name] = option.of(value)

    o = RunOptions(
        **given,
        noninteractive=True,
        # A program serves the simulation: no questions and no windows.
    )
    if o.interface:
        from botyard.app.builtin import with_interfaces

        with python_words():
            o = with_interfaces(o)

    # Port 0 takes any free port for each robot, so there is no range that could end
    # beyond the last TCP port.
    ports = o.port + len(o.robots) + len(o.factories) - 1
    if o.port and ports > 65535:
        raise ArgumentError(
            f"port: {len(o.robots) + len(o.factories)} robots do not fit on the "
            f"ports from {o.port} to 65535"
        )

    return o


def _no_keyword(word: str) -> str:
    """Return the error text for an unknown keyword.

    Parameters
    ----------
    word : str
        Keyword that `serve` does not have.

    Returns
    -------
    str
        Text that suggests the right keyword, a similar one, or another part of the API.
    """
    other = next(
        # Users who know the command line write its names: `gui_port` and `no_gui`
        # deserve a better answer than a similar word.
        (o for o in OPTIONS.values() if word in (o.name, o.long.replace("-", "_"))),
        None,
    )
    if other is None:
        return f"unknown option {word}{did_you_mean(word, KEYWORDS)}"
    if other.keyword is not None:
        return f'unknown option {word}; did you mean "{other.keyword}"?'
    return f"{word} is not a keyword: {other.instead}"


def in_python(text: str) -> str:
    """Replace option names in an error of the command line by keywords.

    Parameters
    ----------
    text : str
        Error with names such as ``--gui-port``.

    Returns
    -------
    str
        Error with names such as ``page_port``. A flag that switches off, such as
        ``--no-gui``, becomes ``page=False``. Names without a keyword are not changed.
    """
    flags = {flag: o for o in KEYWORDS.values() for flag in o.flags}

    def word(match: re.Match[str]) -> str:
        option = flags.get(match[0])
        if option is None or option.keyword is None:
            return match[0]
        # The flag --no-gui corresponds to page=False: the keyword states the opposite.
        return f"{option.keyword}=False" if option.negated else option.keyword

    # The lookbehind keeps hyphens inside of words and paths, such as "real-time" or
    # "my-map", from being read as options.
    return re.sub(r"(?<![\w-])--?[a-z][a-z0-9-]*", word, text)


@contextlib.contextmanager
def python_words() -> Iterator[None]:
    """Convert errors that name command-line options to errors that name keywords.

    Raises
    ------
    ArgumentError
        The block raised a `CommandLineError`.
    PortError
        The block raised a `PortError`; the text names keywords now.
    """
    try:
        yield
    except CommandLineError as error:
        raise ArgumentError(in_python(str(error))) from None
    except PortError as error:
        raise PortError(in_python(str(error))) from None


UNITS: Final[Mapping[str, str]] = {
    "MS": "s",
    "S": "s",
    "MM": "m",
    "HZ": "Hz",
    "MIB": "MiB",
}
"""Units in Python by the placeholder of a value in the help text."""


def value_words(option: Option) -> str:
    """Return the type of a keyword, for the reference.

    Parameters
    ----------
    option : Option
        Option with a keyword.

    Returns
    -------
    str
        Type and unit in Python, such as ``float (s)`` or ``list of str``.
    """
    unit = UNITS.get((option.metavar or "").strip("[]"), "")
    kind = option.kind.python + (f" ({unit})" if unit else "")
    return f"list of {kind}" if option.many else kind


def described(option: Option) -> str:
    """Return the description of a keyword, for the reference.

    Parameters
    ----------
    option : Option
        Option with a keyword.

    Returns
    -------
    str
        Description of its own (`Option.about`), otherwise the help text with keywords.
    """
    # The default in brackets and "Repeatable" describe the command line. The reference
    # of keywords has columns for both.
    text = re.sub(r"\s*\[[^\]]*\]$", "", option.help).replace(" Repeatable.", "")
    return option.about or in_python(text)


def keyword_default(option: Option) -> Any:
    """Return the default value of a keyword.

    A keyword of a negated flag has the opposite default: ``--no-gui`` is off, so
    ``page`` is True.
    """
    return not option.serve_default if option.negated else option.serve_default


def signature() -> inspect.Signature:
    """Return the signature of `serve` with all keywords, which `help` shows."""
    words = [
        inspect.Parameter(
            "sim", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Simulation"
        )
    ]
    for word, option in KEYWORDS.items():
        words.append(
            inspect.Parameter(
                word, inspect.Parameter.KEYWORD_ONLY, default=keyword_default(option)
            )
        )

    return inspect.Signature(words, return_annotation="Serving")


def parameters() -> str:
    """Return the Parameters section of the docstring of `serve`, made from the options."""
    lines = []
    for section in SECTIONS:
        for word, option in KEYWORDS.items():
            if option.section == section:
                lines.append(
                    f"    {word} : {value_words(option)}\n        {described(option)}\n"
                )

    return "".join(lines)


__all__ = [
    "KEYWORDS",
    "described",
    "in_python",
    "keyword_default",
    "options_of",
    "parameters",
    "python_words",
    "signature",
    "value_words",
]
