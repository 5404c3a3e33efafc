"""The packages of examples/plugins: pip installs them into an empty folder, and the
program uses each.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leaves.test_plugins import GROUPS
from tests.ports import free_port
from tests.running import BOTYARD, running
from tests.waiting import PATIENCE

PLUGINS = Path(__file__).parents[1] / "examples/plugins"
PACKAGES = {
    path.parent.name: tomllib.loads(path.read_text("utf-8"))["project"]
    for path in PLUGINS.glob("*/pyproject.toml")
}
ROOM = "# a room\n0,0,6,0\n6,0,6,4\n6,4,0,4\n0,4,0,0\n"
HALLWAY = """
import numpy as np

import botyard

sim = botyard.Simulation.load("office", seed=1)
ann = sim.add_robot("p3dx", "ann", pose=(4.5, 9.5, 0.0), controller="hallway")
sim.run(20.0)
copy = sim.clone()
copy.run(40.0)
path, right = [], []
for _ in range(40):
    sim.run(1.0)
    scan = ann.laser.read()
    right.append(scan.ranges[(scan.angles >= -1.6) & (scan.angles <= -0.4)].min())
    path.append(ann.truth[:2])
assert 0.4 < min(right) and np.median(right) < 1.3, right
assert np.hypot(*np.diff(path, axis=0).T).sum() > 10.0, path
assert copy.robots["ann"].truth == ann.truth
"""
REACH = """
import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

import botyard.learning

env = gymnasium.make("botyard/Reach-v0")
check_env(env.unwrapped)
seen, _ = env.reset(seed=4)
is_over = False
while not is_over:
    distance, cosine, sine = seen[:3]
    turn = np.arctan2(sine, cosine)
    speed = 0.0 if distance < 0.2 or abs(turn) > 0.5 else min(1.0, distance)
    action = np.array([speed, np.clip(2 * turn, -1, 1)], np.float32)
    seen, reward, terminated, truncated, _ = env.step(action)
    is_over = terminated or truncated
assert terminated and seen[0] < 0.2
"""
BEACON = """
import botyard

sim = botyard.Simulation()
ann = sim.add_robot(botyard.load_robot("seer.toml"), "ann", pose=(0, 0, 0))
sim.add_robot(botyard.load_robot("marked.toml"), "bob", pose=(3, 0, 0))
sim.step()
(seen,) = ann.devices["beacon_finder"].read()
assert abs(seen.range - 3.0) < 0.5, seen
"""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with all packages, as pip builds and installs them without a network."""
    folder = tmp_path_factory.mktemp("packages")
    # Builds leave files next to the sources.
    shutil.copytree(PLUGINS, folder / "sources")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index"),
            *("--no-deps", "--no-build-isolation", "--disable-pip-version-check"),
            *("--target", str(folder / "site")),
            *(str(folder / "sources" / name) for name in PACKAGES),
        ],
        check=True,
        timeout=5 * PATIENCE,
    )
    return folder / "site"


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Run a command in an empty folder; return its output."""

    def run_it(*command: str, status: int = 0) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(site)},
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run_it


def test_each_group_has_a_package_that_the_readme_names() -> None:
    groups = {group for one in PACKAGES.values() for group in one["entry-points"]}
    assert groups == GROUPS.keys()
    named = re.findall(r"^\| \[(\w+)\]", (PLUGINS / "README.md").read_text(), re.M)
    assert sorted(named) == sorted(PACKAGES)


def test_rover(run: Run) -> None:
    assert "a rover with skid steering" in run(*BOTYARD, "models", "rover")
    code = "from botyard import load_robot as load; from botyard.testing import *; "
    run(sys.executable, "-c", f"{code}assert check_robot_model(load('rover')) == []")


def test_wallscsv(run: Run, tmp_path: Path) -> None:
    (tmp_path / "room.walls").write_text(ROOM)
    assert "6.0 m × 4.0 m" in run(*BOTYARD, "scenario", "check", "room.walls")
    run(*BOTYARD, "convert", "room.walls", "room.map")
    assert (tmp_path / "room.map").read_text().startswith("2D-Map")
    (tmp_path / "bad.walls").write_text("0,0,6\n")
    said = run(*BOTYARD, "bad.walls", "--no-gui", status=253)
    assert 'bad.walls:1: expected x0,y0,x1,y1 in m, found "0,0,6"' in said
    code = "from botyard_wallscsv import FORMAT; from botyard.testing import *; "
    run(
        *(sys.executable, "-c"),
        f"{code}assert check_map_format(FORMAT, [{ROOM.encode()!r}]) == []",
    )


def test_hallway(run: Run) -> None:
    run(sys.executable, "-c", HALLWAY)


def test_turnstile(run: Run) -> None:
    families = ("-f", "ring,corridor,deadlock", "-n", "4", "--seeds", "2")
    said = run(*BOTYARD, "traffic", "compare", "-s", "turnstile", *families)
    rows = re.findall(r"^\w+ +4 +turnstile +(\d+) +(\d+) +(\d+) +(\d+) ", said, re.M)
    assert rows == [("2", "2", "0", "0")] * 3, said
    assert "no collision and no deadlock if" in run(*BOTYARD, "traffic", "supervisors")


def test_reach(run: Run) -> None:
    pytest.importorskip("gymnasium")
    run(sys.executable, "-c", REACH)


def test_beacon(run: Run, tmp_path: Path) -> None:
    (tmp_path / "seer.toml").write_text('extends = "p3dx"\n[beacon_finder]\n')
    (tmp_path / "marked.toml").write_text('extends = "p3dx"\n[returns]\nfiducial = 7\n')
    run(sys.executable, "-c", BEACON)


def test_textproto(run: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "textproto" in run(*BOTYARD, "interfaces")
    monkeypatch.setenv("PYTHONPATH", str(site))
    port, robots = free_port(), free_port()
    with (
        running(
            *("--nomap", "-r", "p3dx:ann", "--no-gui", "-p", str(robots)),
            *("--no-network-discovery", "--interface", f"textproto:port={port}"),
        ),
        socket.create_connection(("127.0.0.1", port), PATIENCE) as client,
    ):
        client.sendall(b"list\n")
        assert client.recv(100) == b"ok ann\n"
