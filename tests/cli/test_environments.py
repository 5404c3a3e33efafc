"""The program starts in any environment:

other output encodings, no docstrings, no assertions.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE


@pytest.mark.peer
@pytest.mark.parametrize(
    "more",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C"},
        {"PYTHONOPTIMIZE": "2"},
    ],
    ids=lambda more: "-".join(more.values()),
)
@pytest.mark.parametrize("form", ["--json", "--plain"])
def test_a_robot_of_any_name(more: dict[str, str], form: str) -> None:
    port = free_port()
    args = [
        "run",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "--nomap",
        "-p",
        str(port),
        "-r",
        "p3dx:кузя",
    ]
    process = subprocess.Popen(
        [*BOTYARD, *args, *(["--json"] if form == "--json" else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **more},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode("utf-8")
        if form == "--json":
            assert json.loads(line)["robots"][0]["name"] == "кузя"
        else:
            is_shown = "кузя" in line or r"\u043a\u0443\u0437\u044f" in line
            assert "ready" in line and is_shown

        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert b"internal error" not in errors and b"Traceback" not in errors
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
