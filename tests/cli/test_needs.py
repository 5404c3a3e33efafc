"""Missing extras and contradictions are found before any compilation or run.

The hint of the error makes the same command work.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from botyard import extras
from botyard.app import needs
from botyard.errors import CommandLineError
from botyard.traffic.generate import generate
from tests.cli.test_cli import FAST, call
from tests.ports import free_port
from tests.waiting import PATIENCE

CHECKOUT = Path(__file__).parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]

LINES: dict[str, tuple[str, ...]] = {
    "calibrate": ("calibrate log.csv -r p3dx", "compare log.csv log.csv -r p3dx"),
    "discovery": ("--nomap --mdns --no-gui",),
    "drawings": (
        "plan.dxf --no-gui",
        "-m plan.dxf --no-gui",
        "convert plan.dxf plan.map",
        "maps plan.dxf",
    ),
    "plots": (
        "traffic run task.json --gantt x.svg --replay y.html --result r.json",
        "traffic gantt r.json",
        "traffic run task.json --gantt x.html",
    ),
    "studies": ("study sobol.yaml", "study check sobol.yaml", "study report grid.yaml"),
    "zenoh": ("--nomap --zenoh --no-gui", "--nomap --zenoh-router --no-gui"),
    "traffic": (
        "traffic convert paths.svg out.json",
        "traffic convert graph.yaml out.json --route a,b",
    ),
    "vda5050": ("traffic vda5050",),
}
"""Command lines that need an extra; `window` is not here, as a browser takes its place.
"""

BLOCKED = """
import contextlib, io, json, sys

class Blocker:
    names = ()
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

blocker = Blocker()
sys.meta_path.insert(0, blocker)
from botyard.cli.main import main
from numba.core import event

compiled = event.RecordingListener()
event.register("numba:compile", compiled)
done = []
for extra, modules, lines in json.loads(sys.argv[1]):
    blocker.names = modules
    for name in [m for m in sys.modules if m.partition(".")[0] in modules]:
        del sys.modules[name]
    for line in lines:
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            try:
                main([*line.split(), "--no-crash-restart"] if "--no-gui" in line else line.split())
            except SystemExit as end:
                done.append((extra, line, end.code, err.getvalue(), len(compiled.buffer)))
print(json.dumps(done))
"""


def _own_modules(extra: str) -> list[str]:
    """Return the modules that no smaller extra brings, so that the hint must name this
    extra.
    """
    shared = {"vda5050": {"shapely"}}.get(extra, set())
    return [m for m in extras.EXTRAS[extra].modules if m not in shared]


def test_every_missing_extra_is_named_before_anything_runs(tmp_path: Path) -> None:
    """One process, in which the modules of each extra in turn are missing."""
    generate("crossings", 3, 1).save(tmp_path / "task.json")
    study = "study: 1\nrun: lab.py:drive\n"
    (tmp_path / "sobol.yaml").write_text(
        study + "sample: {count: 2, method: sobol, values: {a: {uniform: [0, 1]}}}\n"
    )
    (tmp_path / "grid.yaml").write_text(study + "grid: {a: [1]}\n")
    plan = [(extra, _own_modules(extra), lines) for extra, lines in LINES.items()]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, json.dumps(plan)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == sum(map(len, LINES.values()))
    for extra, line, code, err, compiled in rows:
        (said,) = [
            text for text in err.splitlines() if text.startswith("botyard: error:")
        ]
        assert (code, compiled) == (255, 0), (line, err)
        assert f"[{extra}]" in said.replace(",", "][") and "pip install" in said, (
            line,
            err,
        )
        assert "Traceback" not in err

    assert not {p.name for p in tmp_path.iterdir()} & {
        "out.json",
        "x.svg",
        "x.html",
        "y.html",
        "r.json",
        "plan.map",
    }


def test_everything_that_is_missing_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        extras, "is_installed", lambda extra: extra not in ("zenoh", "discovery")
    )
    code, _, err = call(
        "--nomap",
        "--ros2",
        "--zenoh",
        "--mdns",
        "--ros1",
        *FAST,
        str(free_port()),
        capsys=capsys,
    )
    assert code == 255
    assert "--mdns and --zenoh" in err
    assert '[discovery,zenoh]"' in err


def test_the_hint_names_the_checkout_and_the_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkout `pip install botyard[…]` would find no package.

    The pip must belong to the environment that runs.
    """
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert extras.install_command(["zenoh"]) == 'pip install ".[zenoh]"'
    monkeypatch.chdir(tmp_path)
    assert (
        extras.install_command(["zenoh", "plots"])
        == f'pip install "{CHECKOUT.resolve()}[plots,zenoh]"'
    )
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    assert extras.install_command(["zenoh"]).startswith(
        f"{tmp_path}/venv/bin/python -m pip install "
    )
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/pip").touch()
    assert extras.install_command(["zenoh"]).startswith("venv/bin/pip install ")
    monkeypatch.setattr(extras, "_checkout", lambda: None)
    assert extras.install_command(["zenoh"]).endswith('pip install "botyard[zenoh]"')


@pytest.mark.parametrize("scheme", ["file", "https"])
def test_an_installed_package_remembers_its_checkout(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install .` copies the package; its metadata names the source."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(
        extras, "__file__", str(tmp_path / "lib/site-packages/botyard/extras.py")
    )

    class Installed:
        def read_text(self, name: str) -> str:
            return json.dumps({"url": f"{scheme}://{tmp_path}"})

    monkeypatch.setattr(
        extras.importlib.metadata, "distribution", lambda _name: Installed()
    )
    assert extras._checkout() == (tmp_path if scheme == "file" else None)


def test_the_table_is_that_of_the_project() -> None:
    """Every extra of pyproject.toml has code, and each of its modules comes with it."""
    declared = PROJECT["optional-dependencies"]
    # The last two are for developers: no command needs them.
    users = {name for name, rows in declared.items() if rows} - {"all", "dev", "docs"}
    assert users == set(extras.EXTRAS)
    assert re.fullmatch(r"botyard\[(.*)\]", declared["all"][0])[1].split(",") == sorted(
        extras.EXTRAS
    )  # type: ignore[index]
    brings = packages_distributions()
    for name, extra in extras.EXTRAS.items():
        packages = {re.split(r"[<>=;\[ ]", line)[0].lower() for line in declared[name]}
        assert {
            p.lower() for m in extra.modules for p in brings.get(m, [])
        } >= packages, name

    assert set(needs.OF_OPTIONS.values()) <= set(extras.EXTRAS)
    used = {
        word
        for text in (CHECKOUT / "src").rglob("*.py")
        for word in re.findall(r'lacking\([^)]*"(\w+)"\)', text.read_text("utf-8"))
    }
    assert used <= set(extras.EXTRAS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "--nomap --snapshot no/such/folder.png",
            "--snapshot: cannot write no/such/folder.png: there is no folder no/such",
        ),
        ("--nomap --save-scenario .", "it is a folder"),
        ("--nomap --ros-master embedded:x", 'found "embedded:x"'),
        ("-m office warehouse", "expected one map, found two"),
        ("-m ros:/map", "--ros1 or --ros2"),
        ("-m ros:/map --ros-master embedded", "has no map topic at the start"),
        ("--nomap -r p3dx:a\x1bb", "printable"),
        ("--nomap --start outside", "--start outside: expected a map, found none"),
        ("--nomap -r p3dx:a -r amigo:a", "names must be unique"),
        ("--nomap -R box", "box cannot drive"),
        ("--nomap --gui-token ключ", "--gui-token: expected"),
        (f"--nomap --gui-token {'x' * 513}", "--gui-token: expected"),
        ("--nomap --controller wonder", 'did you mean "wander"'),
        (
            "traffic run none.json --on-robots p3dx --compat",
            "--on-robots: cannot be combined with --compat",
        ),
        ("traffic run none.json --on-robots p3dxx", 'did you mean "p3dx"'),
        (
            "traffic run none.json --ros1 --supervisor fcfs",
            "cannot be combined with --ros1",
        ),
        ("traffic run none.json --gantt x.jpeg2", "expected one of the suffixes"),
        ("traffic run none.json --events no/where", "--events: cannot write no/where"),
        ("traffic compare --csv no/where", "--csv: cannot write no/where"),
        ("maps generate maze no/maze.map", "OUTPUT: cannot write no/maze.map"),
        ("maps generate maze maze.doc", "expected one of the suffixes"),
        ("convert office no/office.map", "OUTPUT: cannot write no/office.map"),
    ],
)
def test_contradictions_are_found_before_anything_is_compiled(
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from numba.core import event

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "botyard.cli.warmup.warm_up_with_progress",
        lambda **_: pytest.fail("it went on"),
    )
    with event.install_recorder("numba:compile") as compiled:
        args = line.split(" ")
        more = (
            ["--noninteractive", "--no-crash-restart", "-p", str(free_port(3))]
            if args[0] not in ("traffic", "maps", "convert")
            else []
        )
        code, _, err = call(*args, *more, capsys=capsys)

    assert (code > 1, said in err, compiled.buffer, list(tmp_path.iterdir())) == (
        True,
        True,
        [],
        [],
    ), err


def test_a_single_need_reads_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _extra: False)
    with pytest.raises(
        CommandLineError,
        match=r'^plan\.dxf needs the extra "drawings", which is not installed; to install it: .*pip"? install ".*\[drawings\]"$',
    ):
        needs.require(what="maps", also=["plan.dxf"])

    several = r'^export, a\.dxf and b\.dxf need the extras "tables" and "drawings", which are not installed; to install them: .*pip'
    with pytest.raises(CommandLineError, match=several):
        needs.require("tables", what="export", also=["a.dxf", "b.dxf"])
    assert extras.lacking("--x", "movie", "jit").startswith(
        '--x needs the extras "movie" and "jit", which are not installed; to'
    )


def test_an_example_says_which_extra_it_lacks(tmp_path: Path) -> None:
    for module, extra in (("gymnasium", "learning"), ("matplotlib", "plots")):
        code = BLOCKED.partition("from botyard")[0] + (
            f"import runpy\nblocker.names = ({module!r},)\n"
            f"runpy.run_path({str(CHECKOUT / 'examples/learning/train.py')!r}, run_name='__main__')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 1
        assert re.fullmatch(
            rf'train\.py needs the extra "{extra}", which is not installed; to install it: .*\[{extra}\]"\n',
            done.stderr,
        )
