"""Options of a run that a world file may set, and options reserved for the user."""

from __future__ import annotations

import io
import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from botyard.cli.run import command
from botyard.cli.runoptions import RunOption
from botyard.errors import CommandLineError, FormatError, WorldFileError
from botyard.formats.base import Options, Source
from botyard.formats.registry import read_world
from botyard.formats.worldoptions import WORLD_OPTIONS, WorldOptions
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import FAST, call
from tests.ports import free_port

ALL = [p for p in command.params if isinstance(p, click.Option)]
OF_THE_USER = {
    "bind-to-address",
    "port",
    "gui-address",
    "gui-host",
    "gui-port",
    "gui-token",
    "metrics-port",
    "ambf-port",
    "ros-master",
    "zenoh-router",
    "map-dir",
    "cwd",
    "adf",
    "config",
    "log-file",
    "record-packets",
    "snapshot",
    "save-scenario",
    "state-file",
    "daemonize",
    "allow-client-exit",
    "read-only",
    "srisim-compat",
    "no-gui",
    "noninteractive",
    "mdns",
    "ros1",
    "ros2",
    "zenoh",
    "joystick",
    "no-crash-handler",
    "restarting-after-crash",
    "supervisor",
}
"""What a stranger's file must never say, whatever becomes of the table."""


def long_name(option: click.Option) -> str:
    return next(o[2:] for o in option.opts if o.startswith("--"))


def test_every_option_says_whether_a_world_may_set_it() -> None:
    undecided = [
        o.name for o in ALL if not isinstance(o, RunOption) and o.name != "help"
    ]
    assert not undecided, "declare them in botyard.app.options"
    with pytest.raises(TypeError, match="world"):
        RunOption(["--new"])  # type: ignore[call-arg]
    declared = {long_name(o) for o in ALL if isinstance(o, RunOption) and o.world}
    assert declared == WORLD_OPTIONS, (
        "botyard.formats.worldoptions and the options of run differ"
    )
    assert not declared & OF_THE_USER
    assert {long_name(o) for o in ALL} >= OF_THE_USER, (
        "an option that is there no longer"
    )


def test_limits_are_those_of_the_command_line() -> None:
    schema = msgspec.json.schema(WorldOptions)["$defs"]["WorldOptions"]["properties"]
    for option in ALL:
        if not isinstance(option, RunOption) or not option.world:
            continue
        told: dict[str, Any] = schema[long_name(option)]
        if isinstance(option.type, click.Choice):
            assert set(told["enum"]) == set(option.type.choices)
        elif isinstance(option.type, click.IntRange):
            assert (told["minimum"], told["maximum"]) == (
                option.type.min,
                option.type.max,
            )
        else:
            kinds = {
                "boolean": option.is_flag,
                "array": option.multiple,
                "integer": option.type is click.INT,
            }
            types = (
                [told["type"]]
                if "type" in told
                else [one["type"] for one in told["anyOf"]]
            )
            assert any(kinds.get(one, True) for one in types), long_name(option)


def attack(name: str, target: Path) -> str:
    """A harmful value of an option, as YAML."""
    option = next(o for o in ALL if long_name(o) == name)
    value = str(target) if option.metavar in ("FILE", "FOLDER") else "0.0.0.0"
    if option.is_flag:
        value = "true"
    elif isinstance(option.type, click.IntRange):
        value = "9000"

    return f"[{value}]" if option.multiple else value


@pytest.mark.parametrize(
    "name",
    sorted(long_name(o) for o in ALL if isinstance(o, RunOption) and not o.world),
)
def test_everything_else_is_refused_however_the_file_comes(
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    text = f"botyard: 1\nname: kind\noptions:\n  {name}: {attack(name, precious)}\n"
    (tmp_path / "s.yaml").write_text(text)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("s.yaml", text)
    (tmp_path / "s.zip").write_bytes(packed.getvalue())
    for file in ("s.yaml", "s.zip"):
        for args in ((file, *FAST, str(free_port())), ("scenario", "check", file)):
            code, _, err = call(*args, capsys=capsys)
            assert code == 252
            assert f"s.yaml:4: options: {name}: " in err

        with pytest.raises(WorldFileError, match=f"options: {name}: "):
            Simulation.load(tmp_path / file)
        # The page and clients read worlds in this way.
        with pytest.raises(WorldFileError, match=f"options: {name}: "):
            read_world(Source(file, (tmp_path / file).read_bytes()), Options())

    assert precious.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["precious", "s.yaml", "s.zip"]


def test_the_users_own_configuration_says_what_it_likes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, picture = tmp_path / "mine.yaml", tmp_path / "end.png"
    config.write_text(f"snapshot: {picture}\n")
    code, _, _ = call(
        "--nomap", "--config", str(config), *FAST, str(free_port()), capsys=capsys
    )
    assert code == 0
    assert picture.exists()


def test_a_world_made_in_a_program_obeys_the_same_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from botyard.app.config import with_world_options
    from botyard.app.options import RunOptions
    from botyard.cli.runoptions import is_given

    context = command.make_context("run", ["--nomap"])
    o = RunOptions(**context.params)
    assert (
        with_world_options(
            o, {"update-interval": 20}, "here", partial(is_given, context)
        ).update_interval
        == 20
    )
    with pytest.raises(
        CommandLineError,
        match="here: options: log-file: a world file cannot set this option",
    ):
        with_world_options(o, {"log-file": "x"}, "here", partial(is_given, context))


def test_the_schema_lists_them() -> None:
    from botyard.formats.scenariokeys import schema

    assert set(schema()["$defs"]["WorldOptions"]["properties"]) == WORLD_OPTIONS


def test_the_reference_lists_them() -> None:
    page = Path(__file__).parents[2] / "docs" / "formats" / "scenario.md"
    text = page.read_text("utf-8").partition("## Options")[2]
    missing = {name for name in WORLD_OPTIONS if f"`{name}`" not in text}
    assert not missing, (
        "docs/formats/scenario.md, section Options: add a row for each of "
        f"{', '.join(sorted(missing))}"
    )


def test_values_of_options_are_read() -> None:
    world = read_world(
        Source(
            "s.yaml",
            b"botyard: 1\noptions: {seed: 4, robot-factory: [p3dx], start: '0,0,90'}\n",
        ),
        Options(),
    )
    assert world.options == {"seed": 4, "robot-factory": ["p3dx"], "start": "0,0,90"}
    with pytest.raises(FormatError, match="options"):
        read_world(Source("s.yaml", b"botyard: 1\noptions: [seed]\n"), Options())
