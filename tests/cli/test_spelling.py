from __future__ import annotations

import pytest

from botyard.cli.run import command
from botyard.cli.runoptions import _spelled_out


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-r", "p3dx", "-r", "amigo"], ["--robot", "p3dx", "--robot", "amigo"]),
        (
            ["--robot-name", "-r", "-r", "p3dx"],
            ["--robot-name", "-r", "--robot", "p3dx"],
        ),
        (["--", "-r", "p3dx"], ["--", "-r", "p3dx"]),
        # Without its value, the error names the option as it was given.
        (["--nomap", "-r"], ["--nomap", "-r"]),
        (["-rp3dx", "-p9000"], ["-rp3dx", "-p9000"]),
    ],
)
def test_short_options_get_their_long_spelling_but_values_do_not(
    given: list[str], expected: list[str]
) -> None:
    assert _spelled_out(given, command.params) == expected
