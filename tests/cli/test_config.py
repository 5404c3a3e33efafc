"""Configuration files, the options in force, and options that do not exist."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import yaml

from botyard.cli.run import command
from botyard.cli.runoptions import GROUPS
from tests.cli.test_cli import FAST, call
from tests.ports import free_port


def test_a_file_says_what_the_command_line_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port(3)
    file = tmp_path / "run.yaml"
    file.write_text(
        f"map: office\nrobot: [p3dx:ann, amigo]\nport: {port}\nseed: 7\nfast: "
        "true\nduration: 0.3\nnoninteractive: true\n"
    )
    code, out, _ = call("--config", str(file), capsys=capsys)
    assert code == 0
    assert f"ann (p3dx) on 127.0.0.1:{port}" in out
    assert f"amigo (amigo) on 127.0.0.1:{port + 1}; seed 7" in out
    code, out, _ = call(
        "--config", str(file), "--seed", "9", "-r", "seekur", capsys=capsys
    )
    assert f"seekur (seekur) on 127.0.0.1:{port}; seed 9" in out, "what is typed wins"


def test_the_options_in_force_are_a_file_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("robot: ['p3dx:ann']\nport: 9000\n")
    scenario = tmp_path / "w.yaml"
    scenario.write_text("botyard: 1\noptions: {robot-name: MobileSim}\n")
    args = (
        "--config",
        str(file),
        "-m",
        str(scenario),
        "--seed",
        "5",
        "--start",
        "1000,-2000,90",
    )
    code, out, _ = call(*args, "--print-config", capsys=capsys)
    assert code == 0
    for line in (
        f"robot: ['p3dx:ann']  # {file}",
        f"port: 9000  # {file}",
        "seed: 5  # command line",
        f"robot-name: MobileSim  # {scenario}",
        "start: ['1000,-2000,90']  # command line",
        "fast: false  # default",
        "# log-file:  # default",
    ):
        assert line in out.splitlines(), out

    again = tmp_path / "again.yaml"
    again.write_text(out)
    code, second, _ = call("--config", str(again), "--print-config", capsys=capsys)
    assert code == 0
    assert yaml.safe_load(second) == yaml.safe_load(out)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "prot: 9000",
            'run.yaml:1: prot: unknown option; did you mean "port"?',
        ),
        (
            "seed: 1\nport: many",
            "run.yaml:2: port: expected a whole number from 1 to 65535, found 'many' (str)",
        ),
        ("port: 0", "expected a whole number from 1 to 65535, found 0"),
        ("fast: 3", "expected true or false, found 3"),
        ("robot: p3dx", "expected a list, found 'p3dx'"),
        ("port: [1]", "expected one value, found [1]"),
        ("- 1", "expected options by long name"),
        ("a: [", "not YAML"),
        ("config: other.yaml", "unknown option"),
    ],
)
def test_what_is_wrong_is_said(
    text: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(text)
    code, _, err = call("--config", "run.yaml", capsys=capsys)
    assert code == 255
    assert "--config: run.yaml" in err
    assert reason in err
    code, _, err = call("--config", "nowhere.yaml", capsys=capsys)
    assert (code, "cannot be read" in err) == (255, True)


def test_every_option_has_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call("--help-all", capsys=capsys)
    assert code == 0
    for title, _ in GROUPS:
        assert f"{title}:" in out
    named = [name for _, names in GROUPS for name in names.split()]
    assert len(named) == len(set(named))
    options = [
        p for p in command.params if isinstance(p, click.Option) and not p.hidden
    ]
    assert len(named) == len(options) + 1, "and --help"
    assert all(p.help for p in options)


def test_options_that_do_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call("--nomap", "--sed", "5", capsys=capsys)
    assert code == 255
    assert "--seed" in err, "one that may have been meant"
    args = (
        "--compat",
        "amrisim",
        "--nomap",
        "--no-such-thing",
        "-odd",
        *FAST,
        str(free_port()),
    )
    code, out, err = call(*args, capsys=capsys)
    assert (code, "ready" in out) == (0, True)
    assert "unknown option --no-such-thing is ignored" in err
    assert "unknown option -odd is ignored" in err
