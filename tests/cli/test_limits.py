"""Limits of reading on the command line, and `check` for files with models."""

from __future__ import annotations

from pathlib import Path

import pytest

from botyard import Budget, BudgetError, Simulation, load_scene
from botyard.cli.main import main
from tests.cli.test_cli import FAST, call
from tests.ports import free_port

MAP = "2D-Map\nNumPoints: 3\nDATA\n1 1\n2 2\n3 3\n"


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Return the exit status and all output."""
    with pytest.raises(SystemExit) as end:
        main([str(w) for w in words])
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out + out.err


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.map").write_text(MAP)
    (tmp_path / "lab.yaml").write_text(
        "botyard: 1\nmap: lab.map\nrobots:\n- {count: 3}\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["maps", "lab.map"], 253),
        (["convert", "lab.map", "out.yaml"], 253),
        (["convert", "lab.map", "out.map"], 253),
        (["scenario", "check", "lab.map"], 253),
    ],
)
def test_each_command_that_reads_takes_limits(
    lab: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int
) -> None:
    code, text = said(capsys, *words, "--max-read", "vertices=2")
    assert code == status
    assert (
        "lab.map: too large: found 3 points and corners, expected at most 2 "
        "(--max-read vertices=NUMBER" in text
    )
    code, text = said(capsys, *words, "--max-read", "vertixes=2")
    assert code == 255 and 'did you mean "vertices"' in text
    assert (
        said(capsys, *words, "--max-read", "vertices=3", "--max-read", "robots=1e3")[0]
        == 0
    )


def test_a_run_takes_limits_from_the_command_line_and_the_users_config_but_not_from_a_world(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(
        "-m",
        "lab.map",
        "--max-read",
        "vertices=2",
        *FAST,
        str(free_port()),
        capsys=capsys,
    )
    assert code == 253 and "lab.map: too large: found 3 points and corners" in err
    (lab / "mine.yaml").write_text("max-read: [vertices=2]\n")
    code, _, err = call(
        "-m", "lab.map", "--config", "mine.yaml", *FAST, str(free_port()), capsys=capsys
    )
    assert code == 253 and "lab.map: too large: found 3 points and corners" in err
    (lab / "lab.yaml").write_text("botyard: 1\noptions: {max-read: [vertices=1e9]}\n")
    code, text = said(capsys, "scenario", "check", "lab.yaml")
    assert code == 252 and "a world file cannot set this option" in text


def test_scenarios_keep_their_exit_status(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, "scenario", "check", "lab.yaml", "--max-read", "robots=2")
    assert code == 252 and "lab.yaml:4: too large: found 3 robots" in text
    code, text = said(
        capsys, "scenario", "check", "lab.yaml", "--max-read", "vertices=2"
    )
    assert code == 253 and "lab.map: too large" in text


def test_python_takes_them_too(lab: Path) -> None:
    with pytest.raises(BudgetError, match=r"lab\.map: too large"):
        load_scene("lab.map", budget=Budget(vertices=2))
    with pytest.raises(BudgetError, match=r"lab\.yaml:4: too large"):
        Simulation.load("lab.yaml", budget=Budget(robots=2))
    assert len(load_scene("lab.map", budget=Budget(vertices=3)).points) == 3
    with pytest.raises(ValueError, match="budget: expected a Budget"):
        Simulation.load("lab.map", budget=3)  # type: ignore[arg-type]


def test_files_with_models_are_checked_and_listed(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (
        "define mine p3dx ( size [0.5 0.4] ranger ( enable_throwaway 1 scount "
        "1 spose[0] [0 0 0] ) )\ndefine eye laser ( samples 5 )\n"
    )
    (lab / "my.inc").write_text(good + "define mine amigo ( )\n")
    code, text = said(capsys, "scenario", "check", "my.inc")
    assert (
        code == 0
        and "my.inc: can be used, with 2 notes. 1 models: mine, 1 other definitions"
        in text
    )
    assert 'my.inc:1: the property "enable_throwaway" is not simulated' in text
    assert (
        'my.inc:3: the definition "mine" is ignored, because an earlier one exists'
        in text
    )
    code, text = said(capsys, "models", "my.inc")
    assert (
        code == 0
        and "mine" in text
        and "0.50 × 0.40" in text
        and "enable_throwaway" in text
    )
    for broken, complaint in (
        ("define mine p3dx ( size [0.5] )", "my.inc:1: expected a length and a width"),
        ("define mine p3dx (", "my.inc:1: expected"),
        (
            'define eye laser ( samples "many" )',
            "my.inc:1: expected 1 number, found many",
        ),
        ("define eye sensor ( samples -1 )", "my.inc:1: expected a whole number"),
        (
            "p3dx ( pose [1e12 0 0] )\nnobody ( )",
            'my.inc:2: "nobody" is not a model type',
        ),
    ):
        (lab / "my.inc").write_text(broken)
        for command in (["scenario", "check"], ["models"]):
            code, text = said(capsys, *command, "my.inc")
            assert code in (250, 252) and complaint in text, (command, text)

    (lab / "my.p").write_text("Class Pioneer\nRobotWidth 500\n")
    (lab / "my.toml").write_text('extends = "p3dx"\n')
    code, text = said(capsys, "scenario", "check", "my.p", "my.toml")
    assert code == 0 and text.count(": good. 1 models: my") == 2
    (lab / "my.toml").write_text('extends = "p3dy"\n')
    assert said(capsys, "scenario", "check", "my.toml")[0] == 250


# Each of the 8 groups uses the one before it ten times: 10^8 lines if expanded.
LAUGHS = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><defs>'
    '<g id="a0"><path d="M 0 0 L 1 1"/></g>'
    + "".join(
        f'<g id="a{k + 1}">' + f'<use xlink:href="#a{k}"/>' * 10 + "</g>"
        for k in range(8)
    )
    + '</defs><use xlink:href="#a8"/></svg>'
)


@pytest.fixture
def traffic(lab: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a file of each kind that the traffic commands read."""
    assert (
        said(capsys, "traffic", "generate", "deadlock", "-n", 2, "-o", "task.json")[0]
        == 0
    )
    assert said(capsys, "traffic", "run", "task.json", "--result", "result.json")[
        0
    ] in (0, 11)
    (lab / "grants.json").write_text("[[0, 0], [0, 1]]")
    (lab / "plan.txt").write_text("Agent 0: (0,0)->(1,0)->(2,0)\n")
    (lab / "hall.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><line x1="0" y1="0" x2="2000" y2="0"/></svg>'
    )
    (lab / "rooms.map").write_text("type octile\nheight 1\nwidth 3\nmap\n...\n")
    (lab / "a.scen").write_text("version 1\n0 rooms.map 3 1 0 0 2 0 2\n")
    (lab / "nav.yaml").write_text(
        "levels: {L1: {vertices: [[0, 0, {name: a}], [9, 0, {name: b}]], lanes: [[0, 1, {}]]}}\n"
    )
    return lab


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("run task.json", "task.json"),
        ("check task.json", "task.json"),
        ("gantt result.json", "result.json"),
        ("run task.json --grants grants.json", "task.json"),
        ("convert plan.txt out.json", "plan.txt"),
        ("convert hall.svg out.json", "hall.svg"),
        ("convert a.scen out.json -n 1", "a.scen"),
        ("convert nav.yaml out.json --route a,b", "nav.yaml"),
        ("compare task.json -s bankers --processes 1", "task.json"),
    ],
)
def test_the_commands_of_traffic_take_limits(
    traffic: Path, capsys: pytest.CaptureFixture[str], words: str, name: str
) -> None:
    code, text = said(capsys, "traffic", *words.split(), "--max-read", "bytes=5")
    assert f"{name}: too large" in text and "(--max-read bytes=NUMBER" in text, text
    assert code != 0 or words.startswith("compare")
    code, text = said(capsys, "traffic", *words.split(), "--max-read", "bytes=1e6")
    assert code in (0, 11) and "too large" not in text, text


def test_permissions_are_read_as_files_of_strangers_are(
    traffic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (traffic / "grants.json").write_text("[" * 100_000)
    code, text = said(capsys, "traffic", "run", "task.json", "--grants", "grants.json")
    assert (
        code == 255
        and "--grants: grants.json: too large: found 100000 nested levels" in text
    )
    assert (
        said(capsys, "traffic", "run", "task.json", "--grants", "none.json")[0] == 255
    )


def test_drawings_of_paths_are_measured_before_they_are_written_out(
    traffic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (traffic / "evil.svg").write_text(LAUGHS)
    code, text = said(capsys, "traffic", "convert", "evil.svg", "out.json")
    assert code != 0 and "evil.svg: too large" in text and "Traceback" not in text
    (traffic / "curves.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="M 0 0'
        + " C 1 1 2 2 3 0" * 10
        + '"/></svg>'
    )
    code, text = said(
        capsys,
        "traffic",
        "convert",
        "curves.svg",
        "out.json",
        "--max-read",
        "vertices=600",
    )
    assert code != 0 and "points and corners" in text


def test_a_generated_map_that_is_larger_than_what_is_read_says_how_to_read_it(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(
        capsys,
        "maps",
        "generate",
        "warehouse",
        "--aisles",
        3,
        "--aisle",
        40_000,
        "big.map",
    )
    assert code == 0
    told = text.partition("read it with ")[2].split()
    assert told[0] == "--max-read" and told[1].startswith("extent=")
    code, text = said(capsys, "maps", "big.map")
    assert code == 253 and "--max-read extent=NUMBER" in text
    assert said(capsys, "maps", "big.map", *told)[0] == 0
    assert (
        "read it with"
        not in said(capsys, "maps", "generate", "warehouse", "small.map")[1]
    )


def test_a_base_that_is_misspelt_is_told_with_what_may_be_meant(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "bad.inc").write_text("define mine p3dxx ( max_speed [0.5 0 1.0] )\n")
    _, text = said(capsys, "scenario", "check", "bad.inc")
    assert (
        'bad.inc:1: "p3dxx" is not a type of sensor or model; did you mean "p3dx"?'
        in text
    )
