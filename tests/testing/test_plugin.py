"""The pytest plug-in as users have it:

tests in a separate project, programs that connect to Pioneer ports.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
import xml.etree.ElementTree as ET
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from botyard.recording import resimulate

pytest_plugins = ["pytester"]

MODULE = "botyard.testing.pytestplugin"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "robot_ci"
PAGE = EXAMPLE.parents[1] / "docs" / "howto" / "robot-ci.md"
LAB = """
botyard: 1
walls: [[[0, 0], [6, 0], [6, 4], [0, 4], [0, 0]]]
places: [{name: Dock, kind: Dock, pose: [5, 2, 0]}]
robots: [{model: p3dx, name: bob, pose: [1, 2, 0]}]
"""
DRIVER = """
import argparse, sys
from botyard.clients.pioneer import PioneerClient
parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--to", type=int, default=4000)
given = parser.parse_args()
print("driver speaks")
with PioneerClient("127.0.0.1", given.port) as client:
    client.enable()
    client.vel(400)
    while client.update() and client.x_mm < given.to:
        client.vel(400)  # many times real time, the robot's watchdog is soon impatient
    client.stop()
    while client.update():
        pass
"""
HEAD = """
import sys
import tomllib
import pytest
from botyard.testing import Coverage, Failure, inside, near, stands
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run pytest with the plug-in in a separate process.

    In an installed package pytest finds it by itself.
    """
    plugin = (
        [] if list(entry_points(group="pytest11", name="botyard")) else ["-p", MODULE]
    )
    return pytester.runpytest_subprocess(
        *plugin, "-p", "no:cacheprovider", *args, timeout=240
    )


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A user's project with a lab and a program."""
    (pytester.path / "lab.yaml").write_text(LAB)
    (pytester.path / "driver.py").write_text(DRIVER)
    return pytester


def test_a_program_reaches_the_dock(project: pytest.Pytester) -> None:
    """The example of the documentation passes, leaves nothing behind, and prints its
    seeds.
    """
    project.makepyfile(
        HEAD
        + """
@pytest.mark.botyard("lab.yaml", seeds=range(2), record="on-failure", speed=20)
def test_reaches_the_dock(world):
    assert world.sim.tick == 0
    world.start([sys.executable, "driver.py", "--port", str(world.ports["bob"])])
    assert world.sim.tick == 0, "time stands still until it is let go"
    assert world.sim.robots["bob"].clients
    took = world.run_until(near("bob", "Dock", 0.3), no_contact=True, deadline=60, always=inside("bob", (0, 1, 6, 3)), clearance=0.2)
    assert 8 < took < 20
    tick = world.sim.tick
    world.run_until(stands("bob", 0.5), deadline=10)
    truth = world.truth["bob"]
    assert world.sim.tick > tick
    assert truth.distance == pytest.approx(world.shortest("bob", "Dock"), abs=0.4) and not truth.contacts
    assert truth.clearance > 0.2
    world.step(1.0)
    assert world.sim.tick > tick + 9
"""
    )
    result = run(project, "--junitxml=out.xml", "-v")
    result.assert_outcomes(passed=2)
    assert not (project.path / "botyard-recordings").exists()
    cases = ET.parse(project.path / "out.xml").getroot().iter("testcase")
    seeds = [
        p.get("value")
        for case in cases
        for p in case.iter("property")
        if p.get("name") == "botyard_seed"
    ]
    assert seeds == ["0", "1"]


def test_a_failure_tells_all_that_is_needed(project: pytest.Pytester) -> None:
    """It drives into the wall:

    the report has robot, place, time, the program's output, the seed, the command to
    repeat it, and a recording.
    """
    project.makepyfile(
        HEAD
        + """
@pytest.mark.botyard("lab.yaml", seeds=[7], speed=20)
def test_stops_in_time(world):
    world.start([sys.executable, "driver.py", "--to", "9000", "--port", str(world.ports["bob"])])
    world.run_until(near("bob", "Dock", 0.05), no_contact="bob", deadline=60)
    world.run_until(None, no_contact="bob", deadline=20)
"""
    )
    result = run(project, "--junitxml=out.xml")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert re.search(
        r"Failure: \d+\.\d\d s: bob touched a wall at \(5\.\d\d, 2\.\d\d\) m", text
    )
    assert "seed 7" in text and "driver speaks" in text and "travelled 4." in text
    assert "python -m pytest -s --botyard-page" in text and "seed7]" in text
    (path,) = (project.path / "botyard-recordings").glob("*.mcap")
    assert str(path) in text and "botyard replay" in text
    property_ = next(
        p
        for p in ET.parse(project.path / "out.xml").getroot().iter("property")
        if p.get("name") == "botyard_recording"
    )
    assert property_.get("value") == str(path)
    again = project.run(
        sys.executable,
        "-m",
        "botyard",
        "replay",
        str(path),
        "--resimulate",
        timeout=240,
    )
    assert again.ret == 0, again.stdout.str() + again.stderr.str()


def test_programs_that_do_not_do_as_they_should(project: pytest.Pytester) -> None:
    """Programs that end, never connect or fail; conditions that never hold; errors in
    conditions.
    """
    project.makepyfile(
        HEAD
        + """
pytestmark = pytest.mark.botyard("lab.yaml", speed=float("inf"), record="never")

def test_ends(world):
    with pytest.raises(Failure, match="ended with status 3(.|\\\\n)*oh no"):
        world.start([sys.executable, "-c", "print('oh no'); raise SystemExit(3)"], ready="bob")

def test_never_connects(world):
    with pytest.raises(Failure, match="has not connected to bob within 1 s; no output"):
        world.start([sys.executable, "-c", "import time; time.sleep(60)"], ready="bob", timeout=1)

def test_fails_under_way(world):
    world.start([sys.executable, "-c", "import time; time.sleep(1); raise ValueError('under way')"])
    with pytest.raises(Failure, match="status 1(.|\\\\n)*under way"):
        world.run_until(near("bob", "Dock", 0.1), deadline=1e9)

def test_does_not_come_to_hold(world):
    with pytest.raises(Failure, match="not true within 5 s: bob is within 0.1 m of Dock"):
        world.run_until(near("bob", "Dock", 0.1), deadline=5)
    assert world.sim.time == pytest.approx(5.0)
    assert world.run_until(None, deadline=2) == pytest.approx(2.0)
    with pytest.raises(Failure, match="no longer true: bob is inside"):
        world.run_until(None, deadline=5, always=inside("bob", (3, 3, 4, 4)))
    with pytest.raises(Failure, match="clearance of 1.9 m, found 0"):
        world.run_until(None, deadline=1, clearance=1.9)
    with pytest.raises(ZeroDivisionError):
        world.run_until(lambda scenery: 1 / 0, deadline=1)
    with pytest.raises(KeyError):
        world.ports["ann"]

def test_a_robot_of_the_test(world):
    calls = []
    world.call(lambda: world.sim.robots["bob"].set_controller(lambda robot: robot.command(v=0.3)))
    covered = Coverage("bob", (1, 1.5, 4, 2.5), reach=0.6, share=0.9)
    world.run_until(covered, deadline=30, no_contact=True)
    assert covered.share >= 0.9
"""
    )
    run(project).assert_outcomes(passed=5)


def test_worlds_without_a_file_and_in_parallel(project: pytest.Pytester) -> None:
    """Robots by the marker, options of serve, wrong markers; with xdist each world has
    its own ports.
    """
    project.makepyfile(
        HEAD
        + """
@pytest.mark.botyard(robots={"ann": ("amigo", (1, 0, 0)), "bob": "p3dx"}, seeds=(1, 2, 3, 4), speed=50)
def test_two(world):
    assert sorted(world.ports) == ["ann", "bob"] and world.env["BOTYARD_PORT_ANN"] == str(world.ports["ann"])
    assert world.sim.robots["ann"].spec.name == "amigo" and world.sim.robots["ann"].truth.x == 1
    world.run_until(None, deadline=1)
    assert 0.9 < world.sim.time < 1.2

def test_empty(world):
    assert not world.ports and world.sim.seed == 1

@pytest.mark.botyard(record="sometimes")
def test_wrong(world): ...

@pytest.mark.botyard(colour="red")
def test_wrong_too(world): ...

@pytest.mark.botyard("nowhere.map")
def test_nowhere(world): ...
"""
    )
    result = run(project, "-n", "2")
    result.assert_outcomes(passed=5, errors=3)
    text = result.stdout.str()
    assert 'found "sometimes"' in text and "colour" in text and "nowhere.map" in text


def test_nothing_is_imported_for_others(project: pytest.Pytester) -> None:
    """A suite without robots does not pay for the plug-in."""
    project.makepyfile(
        """
import sys
import tomllib
def test_without():
    loaded = [name for name in sys.modules if name.startswith("botyard")]
    assert sorted(loaded) == [
        "botyard", "botyard.api", "botyard.api.extensions",
        "botyard.testing", "botyard.testing.pytestplugin", "botyard.version",
    ]
    assert "numpy" not in sys.modules
"""
    )
    run(project).assert_outcomes(passed=1)


def test_one_seed_alone(project: pytest.Pytester) -> None:
    """To repeat a failure of CI."""
    project.makepyfile(
        HEAD
        + """
@pytest.mark.botyard(seeds=range(5))
def test_seed(world):
    assert world.sim.seed == 3
"""
    )
    run(project, "--botyard-seed=3").assert_outcomes(passed=1)


def test_the_page_on_robot_ci_is_true(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its test, map and command line, with a program of the named file; the conditions
    of its table; the content of JUnit files.
    """
    page = PAGE.read_text("utf-8")
    for name, text in re.findall(
        r"^```\w+ (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    ):
        (pytester.path / name).write_text(text, "utf-8")

    program = pytester.mkdir("bin") / "my_robot_program"
    program.write_text(f"#!{sys.executable}\n{DRIVER}", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    (line,) = re.findall(r"^    python -m pytest (.*)$", page, re.MULTILINE)
    run(pytester, line, "--junitxml=results.xml", "--botyard-seed=3").assert_outcomes(
        passed=1
    )
    properties = [
        one.attrib for one in ET.parse(pytester.path / "results.xml").iter("property")
    ]
    assert {"name": "botyard_seed", "value": "3"} in properties
    for name in re.findall(r"`(botyard_\w+)`", page):
        assert name in ("botyard_seed", "botyard_recording")
    rows = re.findall(
        r"^\| `((?:near|stands|inside|Coverage)\(.*?\))` \|", page, re.MULTILINE
    )
    words = re.findall(r"^\| `((?:no_contact|clearance)=[^`]*)`", page, re.MULTILINE)
    assert (len(rows), len(words)) == (4, 2)
    names = "from botyard.testing import *\narea = (1, 1.9, 4, 2.1)\n"
    code = "\n".join(
        f"@pytest.mark.botyard('lab.yaml', speed=float('inf'))\ndef test_row_{number}(world):\n"
        "    world.call(lambda: "
        "world.sim.robots['bob'].set_controller('waypoints', points=[[5.2, 2]]))\n"
        f"    with pytest.raises(Failure, match='not true within'):\n"
        f"        world.run_until(lambda _: False, deadline=1, {', '.join(words)})\n"
        f"    world.run_until({row}, deadline=60)\n"
        for number, row in enumerate(rows)
    )
    pytester.makepyfile(test_rows=HEAD + names + code)
    run(pytester, "test_rows.py").assert_outcomes(passed=4)


def test_the_example_runs(pytester: pytest.Pytester) -> None:
    """As its page says; the recordings of its runs re-simulate."""
    shutil.copytree(EXAMPLE, pytester.path / "robot_ci")
    tests = pytester.path / "robot_ci/test_driver.py"
    text = tests.read_text("utf-8")
    assert 'record="on-failure"' in text
    tests.write_text(text.replace('record="on-failure"', 'record="always"'), "utf-8")
    run(pytester, "robot_ci/test_driver.py").assert_outcomes(passed=3)
    kept = list(pytester.path.rglob("*.mcap"))
    assert len(kept) == 3
    for path in kept:
        proof = resimulate(path)
        assert proof.divergence is None and proof.steps > 100 and proof.states > 2, str(
            proof
        )


def test_the_package_declares_the_plug_in() -> None:
    """Under the name by which others disable it (``-p no:botyard``)."""
    project = tomllib.loads((EXAMPLE.parent.parent / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"botyard": MODULE}
