"""Every command and function that writes a user's file replaces its own files, and
keeps all others.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import botyard
from botyard.cli.trafficoutput import result_text
from botyard.errors import KeptFileError
from botyard.formats import arparams
from botyard.formats.registry import load_scene
from botyard.pictures.files import save_picture
from botyard.processes.safefile import is_ours
from botyard.sim.simulation import Simulation
from botyard.traffic.engine import Traffic
from botyard.traffic.gantt import FORMATS, draw, load_result
from botyard.traffic.generate import generate
from botyard.traffic.supervisors.registry import find_supervisor
from tests.cli.test_cli import FAST, call
from tests.golden import deviation
from tests.ports import free_port

SOURCES = Path(botyard.__file__).parent
PRECIOUS = b"%precious\n\x00\xff" * 40


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*options: str) -> tuple[str, ...]:
    return ("--nomap", "-r", "p3dx", *options, *FAST, str(free_port()))


def traffic(*options: str) -> tuple[str, ...]:
    return ("traffic", "run", "task.json", *options)


COMMANDS: dict[str, tuple[Callable[[], Sequence[str]], Sequence[str]]] = {
    "snapshot": (lambda: run("--snapshot", "a.png"), ["a.png"]),
    "save-scenario": (lambda: run("--save-scenario", "a.yaml"), ["a.yaml"]),
    "record-packets": (lambda: run("--record-packets", "a.rec"), ["a.rec"]),
    "convert to a map": (lambda: ("convert", "in.png", "a.map"), ["a.map"]),
    "convert a map": (lambda: ("convert", "in.map", "a.map"), ["a.map"]),
    "convert to a ROS map": (
        lambda: ("convert", "in.map", "a.yaml"),
        ["a.yaml", "a.pgm"],
    ),
    "convert to a scenario": (
        lambda: ("convert", "in.map", "a.yaml", "--to", "scenario"),
        ["a.yaml"],
    ),
    "convertBitmapToArMap": (
        lambda: ("convertBitmapToArMap", "-i", "in.png", "-o", "a.map"),
        ["a.map"],
    ),
    "convertSfWorldToMap": (
        lambda: ("convertSfWorldToMap", "in.wld", "a.map"),
        ["a.map"],
    ),
    "addSfWorldLinesToMap": (
        lambda: ("addSfWorldLinesToMap", "in.wld", "in.map", "a.map"),
        ["a.map"],
    ),
    "generate a map": (lambda: ("maps", "generate", "hall", "a.map"), ["a.map"]),
    "generate a ROS map": (
        lambda: ("maps", "generate", "hall", "a.yaml"),
        ["a.yaml", "a.pgm"],
    ),
    "pictures of maps": (lambda: ("maps", "in.map", "--png", "."), ["in.png.made"]),
    "pictures of models": (lambda: ("models", "amigo", "--png", "."), ["amigo.png"]),
    "parameter files": (
        lambda: ("models", "amigo", "--parameter-files", "."),
        ["amigo.p"],
    ),
    "robot descriptions": (lambda: ("models", "amigo", "--urdf", "."), ["amigo.urdf"]),
    "traffic generate": (
        lambda: ("traffic", "generate", "ring", "-n", "4", "-o", "a.json"),
        ["a.json"],
    ),
    "traffic convert": (
        lambda: ("traffic", "convert", "plan.txt", "a.json"),
        ["a.json"],
    ),
    "traffic result": (lambda: traffic("--result", "a.json"), ["a.json"]),
    "traffic events": (lambda: traffic("--events", "a.jsonl"), ["a.jsonl"]),
    "traffic csv": (lambda: traffic("--csv", "a.csv"), ["a.csv"]),
    "traffic sectors": (lambda: traffic("--sectors", "a.csv"), ["a.csv"]),
    "traffic replay": (lambda: traffic("--replay", "a.html"), ["a.html"]),
    "traffic chart": (lambda: traffic("--gantt", "a.svg"), ["a.svg"]),
    "traffic gantt": (
        lambda: ("traffic", "gantt", "result.json", "-o", "a.svg"),
        ["a.svg"],
    ),
    "bench navigation": (
        lambda: ("bench", "navigation", "-p", "straight", "-n", "3", "--csv", "a.csv"),
        ["a.csv"],
    ),
    "traffic compare, csv": (
        lambda: (
            "traffic",
            "compare",
            "task.json",
            "-s",
            "fcfs",
            "--processes",
            "1",
            "--csv",
            "a.csv",
        ),
        ["a.csv"],
    ),
    "traffic compare, json": (
        lambda: (
            "traffic",
            "compare",
            "task.json",
            "-s",
            "fcfs",
            "--processes",
            "1",
            "--json",
            "a.json",
        ),
        ["a.json"],
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    Image.fromarray(np.eye(8, dtype=np.uint8) * 255).save(folder / "in.png")
    (folder / "in.map").write_text("2D-Map\nLINES\n0 0 1000 0\nDATA\n")
    (folder / "in.wld").write_text("0 0 1000 0\n")
    (folder / "plan.txt").write_text(
        "Agent 0: (0,0)->(0,1)->(0,2)->\nAgent 1: (2,2)->(2,1)->(1,1)->\n"
    )
    task = generate("ring", 4, 1)
    task.save(folder / "task.json")
    (folder / "result.json").write_text(
        result_text(Traffic(task, find_supervisor("bankers")).run())
    )
    return folder


@pytest.fixture
def inputs(made: Path) -> None:
    for file in made.iterdir():
        shutil.copy(file, file.name)


@pytest.mark.parametrize("what", COMMANDS)
def test_files_of_the_user_are_kept(
    what: str, inputs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    deviation("files-are-kept")
    make, names = COMMANDS[what]
    # The picture next to the map is the input of other commands.
    if what == "pictures of maps":
        names = ["in.png"]
    for name in names:
        for other in names:
            Path(other).unlink(missing_ok=True)
        Path(name).write_bytes(PRECIOUS)
        code, out, err = call(*make(), capsys=capsys)
        assert code not in (0, 10, 11), out
        assert f"{name}: was not written by botyard" in err
        assert Path(name).read_bytes() == PRECIOUS
        assert [n for n in names if Path(n).exists()] == [name], (
            "none of them is written"
        )

    code, _, err = call(*make(), "--force", capsys=capsys)
    assert code in (0, 11), err
    assert all(Path(n).read_bytes() != PRECIOUS for n in names)
    first = [Path(n).stat().st_mtime_ns for n in names]
    code, _, err = call(*make(), capsys=capsys)
    assert code in (0, 11), f"its own file is replaced without a word: {err}"
    assert [Path(n).stat().st_mtime_ns for n in names] != first


def test_the_map_that_a_tool_changes_in_place_is_changed(
    inputs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("in.wld").write_text("0 0 2000 0\n")
    assert call("addSfWorldLinesToMap", "in.wld", "in.map", capsys=capsys)[0] == 0
    assert load_scene("in.map").segments.tolist() == [[0, 0, 2, 0]]


@pytest.mark.parametrize(
    "suffix", [".png", ".jpg", ".webp", ".tiff", ".gif", ".pdf", ".bmp", ".pgm"]
)
def test_pictures_bear_the_mark(suffix: str) -> None:
    path = Path(f"a{suffix}")
    image = Image.fromarray(
        np.random.default_rng(1).integers(0, 256, (200, 200, 3), np.uint8)
    )
    for _ in range(2):
        save_picture(image, path)
    assert path.stat().st_size > 10_000 and is_ours(path)
    path.write_bytes(PRECIOUS)
    with pytest.raises(KeptFileError):
        save_picture(image, path)
    save_picture(image, path, force=True)


def test_pictures_of_other_formats_are_made_once() -> None:
    image = Image.new("RGB", (9, 9))
    save_picture(image, "a.tga")
    with pytest.raises(KeptFileError):
        save_picture(image, "a.tga")
    save_picture(image, "a.tga", force=True)


@pytest.mark.parametrize("kind", ["bmp", "ppm", "pgm", "pbm"])
@pytest.mark.parametrize("mode", ["RGB", "L", "1"])
def test_a_mark_that_is_put_in_changes_no_pixel(kind: str, mode: str) -> None:
    image = Image.fromarray(
        np.random.default_rng(2).integers(0, 256, (21, 37, 3), np.uint8)
    ).convert(mode)
    save_picture(image, f"a.{kind}")
    assert is_ours(f"a.{kind}")
    with Image.open(f"a.{kind}") as again:
        assert again.convert(mode).tobytes() == image.tobytes()
    if kind == "bmp":
        assert (
            int.from_bytes(Path("a.bmp").read_bytes()[2:6], "little")
            == Path("a.bmp").stat().st_size
        )

    with pytest.raises(ValueError, match=r"\.xyz"):
        save_picture(image, "a.xyz")


@pytest.mark.parametrize("suffix", FORMATS)
def test_charts_bear_the_mark(suffix: str, inputs: None) -> None:
    path, result = Path(f"a{suffix}"), load_result(Path("result.json"))
    draw(result, path)
    assert is_ours(path)
    path.write_bytes(PRECIOUS)
    with pytest.raises(KeptFileError):
        draw(result, path)
    draw(result, path, overwrite=True)


def test_programs_keep_them_too() -> None:
    Path("a.png").write_bytes(PRECIOUS)
    sim = Simulation()
    with pytest.raises(KeptFileError, match="overwrite=True"):
        sim.render("a.png")
    assert Path("a.png").read_bytes() == PRECIOUS
    sim.render("a.png", overwrite=True)
    sim.render("a.png")


def test_marked_files_are_read_as_ever() -> None:
    assert (
        arparams.to_robot(arparams.read(_parameter_file()), "x").pioneer.subclass
        == "amigo"
    )


def _parameter_file() -> Path:
    from botyard.formats.models import find_robot

    path = Path("x.p")
    path.write_text(arparams.from_robot(find_robot("amigo")))
    return path


ALLOWED = {
    "processes/safefile.py": "writes them",
    "processes/launch.py": "the output of a child, in a file that its caller names",
    "ui/window.py": "a folder of its own for a browser",
    "cli/run.py": "os.devnull",
    "cli/runoptions.py": "the text of a help page",
    "formats/archive.py": "a temporary folder for the files of an archive",
    "native/build.py": "what a build links, in a temporary folder",
    "servers/jobs/child_jobs.py": "a temporary folder for what a process says",
    "servers/jobs/supervise.py": "a pipe to the simulator that it supervises",
    "control/undo.py": "names of robots and boxes, not of files",
    "studies/local.py": "logs of workers, in the folder of the results",
    "studies/onray.py": "the log of its process, in the folder of the results",
    "studies/raydriver.py": "logs and recordings of runs, in the folder of the results",
    "studies/raytask.py": "what its worker has written, in a temporary folder",
    "pictures/reportpage.py": "a drawing, in memory",
    "studies/results.py": "parts of tables, in the folder of the results",
    "studies/worker.py": "logs and recordings of runs, in the folder of the results",
    "testing/programs.py": "the log of a program under test, in a folder of the test's own",
    "pictures/movies.py": "what writes MP4 gets a file of safefile",
    "servers/jobs/movies.py": "movies that clients ask for: never over a file "
    "(mode x), and only its own is removed",
    "servers/jobs/pictures.py": "pictures of clients: never over a file (mode x)",
    "servers/jobs/maploading.py": "pictures of clients: never over a file (mode x)",
}


def test_nothing_else_writes_files() -> None:
    """A new writer uses `botyard.processes.safefile`, or is listed here with a reason."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if name not in ALLOWED and isinstance(node, ast.Call) and _writes(node):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)[:100]}")

    assert not found, "\n".join(found)


def _writes(node: ast.Call) -> bool:
    function = node.func
    name = (
        function.attr
        if isinstance(function, ast.Attribute)
        else function.id
        if isinstance(function, ast.Name)
        else ""
    )
    of = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
    if name in ("write_text", "write_bytes"):
        return name == "write_bytes" or isinstance(function, ast.Attribute)
    if name in ("copyfile", "unlink", "rename", "savefig"):
        return not (name == "savefig" and ast.unparse(node.args[0]) in ("file", "text"))
    if name == "open" and of not in ("Image", "images", "webbrowser"):
        modes = [
            a.value
            for a in [*node.args, *(k.value for k in node.keywords)]
            if isinstance(a, ast.Constant)
        ]
        return any(
            isinstance(m, str)
            and len(m) < 4
            and set(m) & set("wax+")
            and set(m) <= set("rwabx+t")
            for m in modes
        )

    return False
