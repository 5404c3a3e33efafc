"""Examples of the documentation:

the example of every format page loads and runs, and the how-tos' Python code runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import warnings
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import pytest
from PIL import Image

from botyard.clients.pioneer import PioneerClient
from botyard.errors import ExitCode, PeerError
from botyard.formats.base import read_source
from botyard.formats.models import load_robot
from botyard.formats.registry import FORMATS, format_of
from botyard.model import devices
from botyard.model.library import parse_robot
from botyard.sim.simulation import Simulation
from botyard.studies.plan import read_plan
from botyard.studies.study import Study
from botyard.testing import pytestplugin
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import FAMILIES, generate
from botyard.traffic.outcome import Ending
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import load_task
from tests.cli.test_cli import FAST, call
from tests.page.serving import TOKEN, served
from tests.ports import free_port
from tests.running import BOTYARD, running
from tests.waiting import PATIENCE, wait

DOCS = Path(__file__).resolve().parent.parent / "docs"
_EXAMPLE = re.compile(r"^```\w+ (example\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_BESIDE = re.compile(
    r"^```\w+ ((?!example\.\w+\n)[\w.-]+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def example(name: str, folder: Path) -> Path:
    """Write the example of a format's page to a file."""
    page = DOCS / "formats" / f"{name}.md"
    assert page.is_file(), (
        f"write the page docs/formats/{name}.md about the map format {name}, "
        "with a fenced block ```KIND example.SUFFIX"
    )
    found = _EXAMPLE.search(page.read_text("utf-8"))
    assert found, (
        f"docs/formats/{name}.md: add an example as a fenced block that opens "
        "with ```KIND example.SUFFIX"
    )
    path = folder / found[1]
    path.write_text(found[2], "utf-8")
    # Files that the example names.
    for other, text in _BESIDE.findall(page.read_text("utf-8")):
        (folder / other).write_text(text, "utf-8")
    if name == "rosmap":
        Image.fromarray(np.pad(np.full((8, 8), 254, np.uint8), 1)).save(
            folder / "example.pgm"
        )

    return path


NAMES = [f.name for f in FORMATS]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_a_page_whose_example_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From Python and from the command line."""
    path = example(name, tmp_path)
    assert format_of(read_source(path)).name == name
    sim = Simulation.load(path)
    assert len(sim.scene.segments)
    sim.step(10)
    table = (DOCS / "formats/README.md").read_text("utf-8")
    assert f"({name}.md)" in table, (
        f"docs/formats/README.md: add a row of the table that links [{name}]({name}.md)"
    )
    code, out, _ = call(str(path), *FAST, str(free_port(5)), capsys=capsys)
    assert (code, "ready" in out) == (0, True)


def test_every_example_can_be_sent_from_the_page(tmp_path: Path) -> None:
    sim = Simulation()
    with served(sim) as one:
        for name in NAMES:
            folder = tmp_path / name
            folder.mkdir()
            path = example(name, folder)
            data, sent = path.read_bytes(), path.name
            # Several files, such as the two of a ROS map, are packed into one archive.
            if len(list(folder.iterdir())) > 1:
                archive = shutil.make_archive(str(tmp_path / "both"), "zip", folder)
                data, sent = Path(archive).read_bytes(), "both.zip"

            request = urllib.request.Request(
                f"{one.base}/upload?name={sent}",
                data,
                {"Authorization": f"Bearer {TOKEN}"},
                method="POST",
            )
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                assert answer.status == 200, name
            wanted = Simulation.load(path)
            assert one.do(lambda: len(sim.scene.segments)) == len(
                wanted.scene.segments
            ), name
            one.wait(lambda wanted=wanted: set(wanted.robots) <= set(sim.robots))


def test_the_code_of_the_map_page_runs() -> None:
    text = (DOCS / "howto/make-maps.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    sim = names["sim"]
    assert isinstance(sim, Simulation)
    sim.step()
    assert len(sim.scene.boxes) == 1


@pytest.mark.parametrize(
    "page", sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
)
def test_links_within_the_documentation_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:")):
            assert ((DOCS / page).parent / target).exists(), (
                f"docs/{page} links {target}, which is not there"
            )


def test_the_page_about_pictures_makes_its_pictures(tmp_path: Path) -> None:
    from tools.render_pictures import IMAGES, make

    make(tmp_path)
    for name in ("render-office.png", "render-follow.gif", "render-dark.png"):
        with Image.open(tmp_path / name) as made, Image.open(IMAGES / name) as kept:
            assert (made.size, getattr(made, "n_frames", 1)) == (
                kept.size,
                getattr(kept, "n_frames", 1),
            )
            difference = np.abs(
                np.asarray(made.convert("RGB"), np.int16)
                - np.asarray(kept.convert("RGB"), np.int16)
            )
            assert difference.mean() < 3.0, f"{name}: python -m tools.render_pictures"


def test_the_tutorial_on_supervisors_is_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its class never collides or blocks, but is slow; the example deadlocks as
    described; the last code block runs.
    """
    text = (DOCS / "howto" / "traffic.md").read_text("utf-8")
    own, in_tests = re.findall(
        r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    (tmp_path / "polite.py").write_text(own)
    example = DOCS.parent / "examples" / "traffic" / "round_robin.py"
    times = {}
    for name in ("bankers", f"{tmp_path}/polite.py:Polite", f"{example}:RoundRobin"):
        for family in FAMILIES:
            out = Traffic(generate(family, 5, 2), find_supervisor(name)).run()
            short = name.rpartition(":")[2]
            if short == "RoundRobin":
                assert out.ending is Ending.DEADLOCK or family not in (
                    "deadlock",
                    "corridor",
                )
                assert out.collisions == 0
            else:
                assert out.ending is Ending.COMPLETED

            times[short, family] = out.time

    assert all(2.0 < times["Polite", f] / times["bankers", f] < 6.0 for f in FAMILIES)
    exec(in_tests, {})
    assert capsys.readouterr().out.startswith("completed in")
    (task,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "task.json").write_text(task)
    assert len(load_task(tmp_path / "task.json").order) == 2


def _code(page: str, name: str) -> str:
    found = re.search(
        rf"^```\w+ {re.escape(name)}\n(.*?)^```$",
        (DOCS / page).read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert found, name
    return found[1]


def test_the_page_on_studies_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command lines for one computer run as printed, in order; those for a cluster
    are in tests/studies/test_onray.py.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("plan.yaml", "lab.yaml"):
        (tmp_path / name).write_text(_code("howto/study.md", name))
    text = (DOCS / "howto/study.md").read_text("utf-8")
    lines = [
        line.partition("#")[0].split()
        for line in re.findall(r"^    botyard (.*)$", text, re.MULTILINE)
    ]
    assert [line[1:] for line in lines if "--ray" in line] == [
        ["plan.yaml", "--ray"],
        ["plan.yaml", "--ray", "10.0.0.5:6379", "--resume"],
    ]
    said = []
    for line in lines:
        if "--ray" not in line:
            code, out, err = call(*line, capsys=capsys)
            assert code == 0, err
            said.append(out)

    assert "9" in said[0].splitlines()[0]
    assert [out.splitlines()[0] for out in said[1:4]] == ["9 ok"] * 3
    assert "9 ok" in (tmp_path / "plan-results/report.html").read_text("utf-8")
    rows = Study.open(
        read_plan(tmp_path / "plan.yaml"), tmp_path / "plan-results"
    ).rows.values()
    assert len(rows) == 9
    assert all(row.result["reached"] and row.result["contacts"] == 0 for row in rows)
    times = {
        v: [r.result["time"] for r in rows if r.values["speed"] == v]
        for v in (0.2, 0.4, 0.6)
    }
    assert min(times[0.2]) > max(times[0.4]) > max(times[0.6])
    (sample,) = re.findall(
        r"^```yaml\n(sample:.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    (tmp_path / "lab.py").write_text(
        "def drive(sim, params, seed):\n    return {'y': params['gain'] * params['delay']}\n"
    )
    (tmp_path / "sampled.yaml").write_text(f"study: 1\nrun: lab.py:drive\n{sample}")
    code, out, err = call("study", "sampled.yaml", capsys=capsys)
    assert (code, out.splitlines()[0]) == (0, "200 ok"), err


def test_the_page_on_calibration_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its program writes the files, its command lines run, the robot equals the
    program's, and the final code runs.
    """
    text = (DOCS / "howto/calibrate.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hall.yaml").write_text(_code("howto/calibrate.md", "hall.yaml"))
    exec(
        compile(_code("howto/calibrate.md", "drive.py"), "drive.py", "exec"),
        {"__name__": "drive"},
    )
    lines = re.findall(r"^    botyard (.*)$", text, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["calibrate", "compare"]
    for line in lines:
        code, out, err = call(*line.split(), capsys=capsys)
        assert (code, bool(out)) == (0, True), err

    robot = load_robot(tmp_path / "robot.toml")
    assert robot.odometry_error_low is not None
    assert 0.5 * (robot.odometry_error.x + robot.odometry_error_low.x) == pytest.approx(
        0.03, abs=0.005
    )
    assert 0.5 * (robot.odometry_error.a + robot.odometry_error_low.a) == pytest.approx(
        0.02, abs=0.01
    )
    assert robot.limits.accel.x == pytest.approx(0.5, rel=0.05)
    assert robot.lasers[0].range_noise == pytest.approx(0.02, rel=0.1)
    for page in ("calibration.html", "compared.html"):
        assert "<img" in (tmp_path / page).read_text("utf-8")
    names: dict[str, object] = {}
    exec(
        re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[-1], names
    )
    assert isinstance(names["sim"], Simulation)


def test_the_scenario_with_masses_runs(tmp_path: Path) -> None:
    (tmp_path / "pushed.yaml").write_text(_code("howto/ambf.md", "pushed.yaml"))
    sim = Simulation.load(tmp_path / "pushed.yaml")
    sim.step(100)
    state, rows = sim.snapshot.state, sim.snapshot.rows
    assert state.pose[rows["crate"], 0] > 2.1, "it was pushed"
    assert sim.masses.dynamics("bob") is not None
    sim.save_scenario(tmp_path / "again.yaml")
    again = Simulation.load(tmp_path / "again.yaml")
    assert again.masses.dynamics("ball") == sim.masses.dynamics("ball")
    assert again.masses.dynamics("bob") == sim.masses.dynamics("bob")


@pytest.mark.peer
def test_the_loop_that_steps_the_world_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = _code("howto/ambf.md", "loop")
    base = free_port(5)
    args = [
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "-p",
        str(base),
        "--ambf",
        "2.0",
        "--ambf-port",
        str(base + 3),
        "--update-interval",
        "10",
    ]
    with running(*args, "--no-gui", "--ros-master", f"embedded:{base + 4}"):
        exec(code.replace('Client("me")', f'Client("me", port={base + 3})'), {})
    x, *_ = eval(capsys.readouterr().out.partition("] ")[0] + "]")
    assert x == pytest.approx(x)


@pytest.mark.peer
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_service_works_as_written(tmp_path: Path) -> None:
    text = (DOCS / "howto/service.md").read_text("utf-8")
    section = text.partition("\n## ")[0]
    start, ask = (
        line.strip()
        for line in section.splitlines()
        if line.startswith("    ") and "sudo" not in line
    )
    port, metrics = free_port(4), free_port(1)
    assert start.startswith("botyard ") and ask == "curl http://localhost:9101/healthz"
    args = [*BOTYARD, *start.replace("9101", str(metrics)).split()[1:], "-p", str(port)]
    done = subprocess.run(
        args, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, check=True
    )
    pid = int(re.search(r"as process (\d+)", done.stdout)[1])  # type: ignore[index]
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{metrics}/healthz", timeout=PATIENCE
        ) as answer:
            assert json.load(answer)["robots"] == 2

        assert "`botyard ready: …, process N`" in section and "`kill -9 N`" in section
        simulating = int(
            re.search(r"^botyard ready: .*, process (\d+)$", done.stdout, re.MULTILINE)[
                1
            ]
        )  # type: ignore[index]
        assert simulating != pid
        os.kill(simulating, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while "restarted after a crash" not in (tmp_path / "lab.log").read_text():
            assert time.monotonic() < end
            time.sleep(0.1)

        while True:
            try:
                with PioneerClient(port=port + 1) as bob:
                    assert bob.update()
                break
            except PeerError:
                assert time.monotonic() < end
                time.sleep(0.1)

        first, second = re.findall(
            r"botyard [\d.]+ .*, process (\d+), map", (tmp_path / "lab.log").read_text()
        )
        assert int(first) == simulating and int(second) not in (simulating, pid)
    finally:
        os.kill(pid, signal.SIGTERM)

    while Path(f"/proc/{pid}").exists() if Path("/proc").exists() else False:
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.peer
@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_lines_about_services_run_in_an_empty_folder(tmp_path: Path) -> None:
    """As printed except the ports:

    earlier lines create every folder and file that later ones name.
    """
    lines = re.search(
        r"^```sh\n(.*?)^```$",
        (DOCS / "howto/service.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert lines is not None
    port, metrics = free_port(3), free_port(1)
    text = lines[1].replace("8101", str(port)).replace("9101", str(metrics))
    program = tmp_path / "bin/botyard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m botyard "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-e"],
        input=text,
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    started = (
        (tmp_path / "lab/started").read_text()
        if (tmp_path / "lab/started").is_file()
        else ""
    )
    pid = re.search(r"as process (\d+);", started)
    try:
        assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
        assert f"port: {port}  # run.yaml" in done.stdout
        assert f"ann (p3dx) on 127.0.0.1:{port}" in done.stdout
        assert '"robots":2' in done.stdout.replace(" ", "")
        assert '"level"' in done.stdout.splitlines()[-1]
        assert pid is not None
        # The last line of the page's example ends the process.
        wait(lambda: not _is_there(int(pid[1])))
    finally:
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid[1]), signal.SIGTERM)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False

    return True


def test_every_option_that_a_page_for_users_names_is_there() -> None:
    from botyard.cli import main
    from botyard.cli.run import command as run

    known = {
        "--help",
        "--help-all",
        "--clock",
        "--find-links",
        "--no-index",
        "--now",
        "--once",
        "--qos-durability",
        "--qos-reliability",
        "--topics",
        # The last options belong to pip, systemctl and ros2.
    }
    known |= set(
        re.findall(
            r'addoption\(\s*"(--[a-z-]+)"',
            Path(pytestplugin.__file__).read_text("utf-8"),
        )
    )

    def take(command: click.Command) -> None:
        for parameter in command.params:
            known.update(parameter.opts, parameter.secondary_opts)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                take(found)

    take(main.program)
    take(run)
    for page in (DOCS.parent / "README.md", *(DOCS / "howto").glob("*.md")):
        # Options of botyard's lines, and options named in the text; other programs have
        # their own.
        text = "\n".join(
            line
            for line in page.read_text("utf-8").splitlines()
            if not line.startswith(("curl", "rosdep"))
        )
        unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)) - known
        assert not unknown, (
            f"{page} names options that no command has: {', '.join(sorted(unknown))}"
        )


def test_every_file_of_the_checkout_that_a_page_for_users_names_is_there() -> None:
    root = DOCS.parent
    for page in (root / "README.md", *(DOCS / "howto").glob("*.md")):
        text = page.read_text("utf-8")
        named = set(
            re.findall(
                r"(?<![\w./-])((?:deploy|examples|bench|tests|tools|web)/[\w./-]*\w)",
                text,
            )
        )
        linked = {
            page.parent / name
            for name in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", text)
        }
        missing = [
            str(p) for p in (*linked, *(root / n for n in named)) if not p.exists()
        ]
        assert not missing, (
            f"{page} names files that are not there: {', '.join(missing)}"
        )


ELSEWHERE = {
    "bench",
    "models",
    "maps",
    "discover",
    "convert",
    "doctor",
    "study",
    "traffic",
    "--help",
    "--help-all",
}
"""What follows `botyard` where no robots are simulated."""


def command_lines() -> list[str]:
    """Return the command lines at the top of the page about them, as printed."""
    page = (DOCS / "howto/command-line.md").read_text("utf-8")
    return [
        line.partition("#")[0].strip()
        for line in page.partition("\n## ")[0].splitlines()
        if line.startswith("    botyard")
    ]


def test_the_page_has_command_lines() -> None:
    assert len(command_lines()) >= 16


def test_a_scenario_starts_a_hundred_robots(tmp_path: Path) -> None:
    path = tmp_path / "hundred.yaml"
    path.write_text(_code("howto/command-line.md", "hundred.yaml"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Simulation.load(path).robots) == 100


@pytest.mark.parametrize("line", command_lines())
def test_each_command_line_runs_as_printed(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a folder with the examples, as in a checkout; simulators end after a moment."""
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    words = line.split()[1:]
    if words and words[0] in ELSEWHERE:
        code, out, err = call(*words, capsys=capsys)
        nobody_there = code == ExitCode.PEER and words[0] == "discover"
        assert (code == 0 and out) or nobody_there, err
        return

    ambf = (
        ("--ambf-port", "0", "--ros-master", f"embedded:{free_port(1)}")
        if "--ambf" in words
        else ()
    )
    fast = (
        FAST if words else ("--no-browser", "--fast", "--duration", "0.3", "-p")
        # The page shows the port that the user asks for.
    )
    code, out, err = call(*words, *ambf, *fast, str(free_port(5)), capsys=capsys)
    assert (code, "ready" in out) == (0, True), err


@pytest.mark.peer
def test_the_client_with_a_plain_socket_drives_a_robot(tmp_path: Path) -> None:
    port = free_port(4)
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        done = subprocess.run(
            [
                sys.executable,
                str(DOCS.parent / "examples/plain_sockets.py"),
                "127.0.0.1",
                str(port),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )

    lines = done.stdout.splitlines()
    assert "p3dx" in lines[0]
    # The robot has moved by more than 100 mm.
    assert int(lines[-1].split()[1]) > 100


def test_the_page_about_sensors_is_true(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its sensor passes the check and returns readings; its robot file is valid."""
    text = (DOCS / "howto/devices.md").read_text("utf-8")
    monkeypatch.setattr(devices, "_KNOWN", dict(devices._KNOWN))
    module = ModuleType("light_sensor_of_the_page")
    monkeypatch.setitem(
        sys.modules,
        module.__name__,
        module,
        # Pickle looks up classes in the module of this name.
    )
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(code, "devices.md", "exec"), vars(module))
    assert float(capsys.readouterr().out.split()[0]) > 0.0
    file = next(
        t
        for t in re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if "extends" in t
    )
    robot = Simulation().add_robot(parse_robot(file, "mine"))
    assert [*robot.devices] == [
        "battery",
        "sonar",
        "laser",
        "electrics",
        "encoders",
        "gps",
        "fiducial_finder",
        "normal_errors",
        "normal_errors_2",
        "wandering_odometry",
    ]
    robot.simulation.step()


@pytest.mark.parametrize(
    "page", ["simulation", "worlds", "controllers", "learning", "navigation"]
)
def test_programs_of_the_pages_on_python_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From top to bottom, as a reader types them."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType(f"programs_of_{page}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    programs = re.findall(
        r"^```python\n(.*?)^```$",
        (DOCS / f"howto/{page}.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert len(programs) > 1
    for k, code in enumerate(programs):
        exec(compile(code, f"{page}.md, program {k + 1}", "exec"), vars(module))
