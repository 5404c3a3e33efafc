"""Every map, world, scenario and example of the repository is recorded, re-simulated,
and shown at each moment.
"""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import botyard
from botyard.cli.main import program
from botyard.control import Control
from botyard.interfaces.interface import Door, caller_of
from botyard.recording.player import Player
from botyard.recording.track import read_track
from botyard.sim.simulation import Simulation
from botyard.traffic.recordedchart import recorded_chart
from tests.interfaces.installed import install
from tests.ports import free_port
from tests.recording.proving import prove
from tests.recording.test_codec import WORLDS
from tests.running import running
from tests.test_docs import NAMES, example
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
STEPS = 25


def check(path: Path, folder: Path) -> None:
    """Record a world with its programs, and with a robot if it has none, while its
    robots drive and read sensors.
    """
    sim = Simulation.load(path, seed=7)
    if not any(robot.spec.drive for robot in sim.robots.values()):
        sim.add_robot("p3dx", "added", lasers=["lms200"])
    digests: dict[int, int] = {}
    sim.after_step(lambda _: digests.__setitem__(sim.tick, sim.digest()))
    recording = folder / "run.mcap"
    with sim.record(recording, topics=["*"]):
        for k, robot in enumerate(
            robot for robot in sim.robots.values() if robot.spec.drive
        ):
            if robot.name not in sim.core.programs.by_robot:
                robot.command(v=0.2, w=0.1 * k)

        sim.step(STEPS)

    prove(recording, STEPS)
    player = Player(read_track(recording))
    for tick in (STEPS - 2, 3, STEPS // 2):
        player.go(tick)
        assert player.sim.digest() == digests[tick]

    assert not player.corrections


@pytest.mark.parametrize("path", WORLDS)
def test_every_world(path: str, tmp_path: Path) -> None:
    check(ROOT / path, tmp_path)


@pytest.mark.parametrize("page", NAMES)
def test_every_example_of_a_format(page: str, tmp_path: Path) -> None:
    check(example(page, tmp_path), tmp_path)


def test_the_example_that_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, serve = tmp_path / "run.mcap", botyard.serve

    @contextmanager
    def recorded(sim: Simulation, **options: Any) -> Iterator[Any]:
        with sim.record(path), serve(sim, **options) as running:
            yield running

    monkeypatch.setattr(botyard, "serve", recorded)
    runpy.run_path(str(ROOT / "examples/serve.py"))
    prove(path, 10)


def test_the_example_of_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, serve = tmp_path / "run.mcap", botyard.serve

    @contextmanager
    def recorded(sim: Simulation, **options: Any) -> Iterator[Any]:
        with serve(sim, record=str(path), **options) as running:
            yield running

    monkeypatch.setattr(botyard, "serve", recorded)
    run = runpy.run_path(str(ROOT / "examples/test_robot.py"))
    for running_now in run["running"].__wrapped__():
        run["test_it_stops_in_front_of_a_box"](running_now)
    prove(path, 20)
    assert any("commanded by" in mark.text for mark in read_track(path).marks)


@pytest.mark.parametrize("more", [[], ["--on-robots", "p3dx"]], ids=["discs", "robots"])
def test_the_example_of_a_supervisor(more: list[str], tmp_path: Path) -> None:
    task, path = tmp_path / "task.json", tmp_path / "run.mcap"
    runner, supervisor = (
        CliRunner(),
        f"{ROOT / 'examples/traffic/round_robin.py'}:RoundRobin",
    )
    made = runner.invoke(
        program, ["traffic", "generate", "crossings", "-n", "3", "-o", str(task)]
    )
    assert made.exit_code == 0, made.output
    ran = runner.invoke(
        program,
        [
            "traffic",
            "run",
            str(task),
            "--supervisor",
            supervisor,
            "--record",
            str(path),
            *more,
        ],
    )
    assert ran.exit_code == 0, ran.output
    prove(path, 100)
    found = recorded_chart(read_track(path))
    assert (
        found is not None
        and found.chart.grants
        and found.names == ("traffic0", "traffic1", "traffic2")
    )


@pytest.mark.peer
@pytest.mark.parametrize("client", ["drive_pioneer.py", "plain_sockets.py"])
def test_the_examples_that_drive(client: str, tmp_path: Path) -> None:
    path, port = tmp_path / "run.mcap", free_port()
    with running(
        "-m",
        str(ROOT / "examples/lab.map"),
        "-r",
        "p3dx",
        "-p",
        str(port),
        "--record",
        str(path),
    ) as (
        process,
        _,
    ):
        where = {
            "drive_pioneer.py": [f"127.0.0.1:{port}", "2"],
            "plain_sockets.py": ["127.0.0.1", str(port)],
        }[client]
        subprocess.run(
            [sys.executable, str(ROOT / "examples" / client), *where],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        process.terminate()
        assert process.wait(PATIENCE) == 0

    prove(path, 5)
    assert any(mark.kind == "client" for mark in read_track(path).marks)


def test_the_example_of_an_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of examples/plugins/textproto places a robot and drives it."""
    install("textproto", tmp_path / "site", monkeypatch)
    made = importlib.import_module("botyard_textproto")
    sim, path = Simulation(seed=3), tmp_path / "run.mcap"
    sim.add_robot("p3dx", "ann")
    with sim.record(path):
        session = made.TextSession(
            Door(
                Control(sim),
                caller_of(made.interface, "me", "me"),
                made.interface.chosen({}),
            )
        )
        session.receive_data(b"place ann 1 2 0\n", 0.0)
        sim.step(5)
        session.receive_data(b"drive ann 0.3 0.1\n", 0.5)
        sim.step(STEPS)

    assert sim.robots["ann"].truth.x > 1.1, session.data_to_send()
    prove(path, STEPS + 5)
