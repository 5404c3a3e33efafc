"""`botyard packets`: what a recording says in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from botyard.cli.packets import command as packets
from botyard.protocols.pioneer.packet import command, frame


def told(path: Path, *lines: dict[str, object]) -> list[str]:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = CliRunner().invoke(packets, [str(path)], catch_exceptions=False, standalone_mode=False)
    assert result.exit_code == 0
    return result.output.splitlines()


def line(data: bytes, who: str = "client", session: int = 1, robot: str = "ann") -> dict[str, object]:
    return {"robot": robot, "session": session, "sim": 0.1, "wall": 0.1, "from": who, "data": data.hex()}


def names(lines: list[str]) -> list[str]:
    return [text.split(" → ")[1].split(" (")[0] for text in lines]


def test_numbers_0_to_2_are_named_by_where_the_session_stands(tmp_path: Path) -> None:
    talk = [
        frame(0),
        frame(0),
        frame(1),
        frame(2),
        frame(0),
        frame(1),
        frame(2),
        frame(1),
        frame(0),
        frame(1),
        frame(2),
        frame(0),
    ]
    lines = told(tmp_path / "a", *(line(data) for data in talk))
    assert names(lines) == [
        "SYNC0", "SYNC0", "SYNC1", "SYNC2", "SYNC0", "SYNC1", "SYNC2", "OPEN", "PULSE", "OPEN", "CLOSE", "PULSE",
    ]  # fmt: skip


def test_commands_before_open_and_in_one_piece(tmp_path: Path) -> None:
    lines = told(
        tmp_path / "a",
        line(frame(0) + frame(1) + frame(2) + command(18) + command(4, 1)),
        line(command(1, 1) + command(11, 100) + command(2) + command(99)),
    )
    assert names(lines) == ["SYNC0", "SYNC1", "SYNC2", "CONFIG", "ENABLE", "OPEN", "VEL", "CLOSE", "99"]


def test_sessions_are_told_apart_and_foreign_names_shown(tmp_path: Path) -> None:
    lines = told(tmp_path / "a", line(frame(0)), line(frame(0), session=2), line(frame(1), robot="a\nb\x1b[2J"))
    assert names(lines) == ["SYNC0", "SYNC0", "SYNC1"]
    assert "a\\nb\\x1b[2J #1" in lines[2]


def test_gaps_are_told(tmp_path: Path) -> None:
    lines = told(tmp_path / "a", line(frame(0)), {"lost": 12, "sim": 3.5, "wall": 3.5})
    assert lines[1] == "    3.500 12 lines are missing here: they could not be written"


@pytest.mark.parametrize(
    "text", ["{}", "[]", "7", "[" * 100_000, '{"session": 1e999}', '{"lost": "x", "sim": 1}', '{"lost": 1}', "\udcff"]
)
def test_nonsense_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    from botyard.errors import FormatError

    (tmp_path / "a").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(FormatError):
        CliRunner().invoke(packets, [str(tmp_path / "a")], catch_exceptions=False, standalone_mode=False)
