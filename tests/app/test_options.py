"""One table of options feeds the command line, files, `botyard.serve` and the
reference.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from tools.docsite import commands

from botyard.app import config
from botyard.app.keywords import KEYWORDS, described, in_python, options_of
from botyard.app.kinds import Flag, Port, Real, Whole
from botyard.app.options import OPTIONS, SECTIONS, RunOptions
from botyard.cli.run import command
from botyard.geometry import Pose

PARAMETERS = {p.name: p for p in command.params}


def test_the_command_line_has_every_option_and_no_other() -> None:
    extra = {"help"} | {p.name for p in command.params if not p.expose_value}
    assert (
        set(PARAMETERS) - extra == set(OPTIONS) == {f.name for f in fields(RunOptions)}
    )
    context = command.make_context("run", [])
    assert RunOptions(**context.params) == RunOptions(), (
        "defaults are those of the table"
    )


def test_every_option_is_declared_in_full() -> None:
    for name, option in OPTIONS.items():
        assert option.section in SECTIONS
        assert option.hidden or not option.flags or option.help, name
        assert (option.keyword is None) == (
            name not in {o.name for o in KEYWORDS.values()}
        )
        assert option.keyword is not None or option.instead, (
            f"{name}: no keyword, and no reason"
        )
        assert not option.negated or isinstance(option.kind, Flag)

    assert len(KEYWORDS) == sum(o.keyword is not None for o in OPTIONS.values()), (
        "each keyword once"
    )


def test_what_is_said_of_keywords_is_said_of_keywords() -> None:
    for word, option in KEYWORDS.items():
        assert not re.search(r"(?<![\w-])--?[a-z]", described(option)), (
            f"{word} speaks of the command line"
        )


VALUES = [
    0,
    1,
    -1,
    7,
    255,
    256,
    1000,
    70000,
    0.1,
    0.5,
    2.5,
    1e9,
    "1",
    "0.5",
    "many",
    "p3dx",
    "a:b",
    "none",
    "sim",
    "",
    "0,0,90",
    "random",
    True,
]


@pytest.mark.parametrize(
    "name", [n for n, o in OPTIONS.items() if o.flags and not o.hidden]
)
def test_files_and_the_command_line_take_the_same_values(name: str) -> None:
    """A value that a file may hold gives the same result on the command line."""
    option, parameter = OPTIONS[name], PARAMETERS[name]
    context = click.Context(command)
    for value in VALUES:
        if isinstance(option.kind, Flag):
            continue
        raw: Any = [value] if option.many else value
        try:
            read = config.read_value(option, raw)
        except ValueError:
            with pytest.raises(click.UsageError):
                parameter.type_cast_value(
                    context, str(value) if not option.many else [str(value)]
                )

            continue

        assert parameter.type_cast_value(context, raw) == read, value


def test_lists_and_flags_in_files() -> None:
    for option, value, reason in (
        (OPTIONS["fast"], 3, "expected true or false, found 3"),
        (OPTIONS["robots"], "p3dx", "expected a list, found 'p3dx'"),
        (OPTIONS["port"], [1], r"expected one value, found \[1\]"),
        (OPTIONS["port"], True, "expected a whole number from 1 to 65535"),
        (OPTIONS["port"], 0, "expected a whole number from 1 to 65535"),
    ):
        with pytest.raises(ValueError, match=reason):
            config.read_value(option, value)

    assert config.read_value(OPTIONS["fast"], True) is True


def test_python_counts_in_si_units() -> None:
    o = options_of(
        {
            "interval": 0.02,
            "resolution": 0.05,
            "start": (1.0, 2.0, 0.5),
            "robots": ["p3dx:ann"],
        }
    )
    assert (o.update_interval, o.resolution) == (
        pytest.approx(20.0),
        pytest.approx(50.0),
    )
    assert o.start == (Pose(1.0, 2.0, 0.5),)
    several = options_of({"start": [(1.0, 2.0, 0.5), "random"]})
    assert several.start == (Pose(1.0, 2.0, 0.5), "random")
    assert [tuple(r) for r in o.robots] == [("p3dx", "ann")]
    assert o.noninteractive, "a library asks nobody and opens nothing"


def test_keywords_that_say_the_opposite() -> None:
    assert (options_of({}).no_gui, options_of({}).no_network_discovery) == (False, True)
    assert (
        options_of({"page": False}).no_gui,
        options_of({"discovery": True}).no_network_discovery,
    ) == (True, False)
    assert options_of({"port": 0, "gui_port": 0, "gui_token": None}).port == 0


def test_bounds_of_kinds() -> None:
    for option in KEYWORDS.values():
        kind = option.kind
        low = 0 if isinstance(kind, Port) else getattr(kind, "low", None)
        if not isinstance(kind, Whole | Real) or low is None:
            continue
        unit = getattr(kind, "unit", 1.0)
        with pytest.raises(ValueError, match="expected"):
            kind.of((low - 1) * unit, "x")
        if not getattr(kind, "above", False):
            assert kind.of(low if unit == 1.0 else low * unit, "x") == low


def test_errors_speak_of_keywords() -> None:
    assert (
        in_python("--gui-token: expected, see --no-gui and -p")
        == "gui_token: expected, see page=False and port"
    )
    assert (
        in_python("--no-such-thing 1-2 well-known --log-file")
        == "--no-such-thing 1-2 well-known --log-file"
    )


def test_the_reference_has_every_option() -> None:
    text = commands.options_page()
    shown = [o for o in OPTIONS.values() if o.flags and not o.hidden]
    assert text.count("\n| `") == len(shown)
    for option in shown:
        assert any(f"`{flag}`" in text for flag in option.flags), option.name


def test_the_library_does_not_know_the_command_line() -> None:
    for file in (Path(config.__file__).parent).glob("*.py"):
        assert not re.search(
            r"import click|from click|botyard\.cli\b", file.read_text("utf-8")
        ), file
