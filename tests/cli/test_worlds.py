"""The command line with worlds:

-W, scenarios and their options, convert and its old forms, generated maps.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from botyard.app.kinds import named_values
from botyard.cli.scenario import EXAMPLE
from botyard.clients.pioneer import PioneerClient
from botyard.errors import ArgumentError
from botyard.formats import armap
from botyard.formats.registry import load_scene, load_world
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import FAST, call
from tests.ports import free_port
from tests.waiting import PATIENCE

WORLD = """interval_sim 50
define wall model ( gui_move 0 )
wall ( size [0.2 6 1] pose [5 0 0 0] )
position ( name "r0" size [0.4 0.4 0.4] ctrl "wander" sonic_screwdriver 1 )
position ( name "r1" pose [-3 0 0 0] size [0.4 0.4 0.4] )
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- running


@pytest.mark.parametrize(
    "how",
    [("-W", "a.world"), ("--stageworld", "a.world"), ("-m", "a.world"), ("a.world",)],
)
def test_a_world_file_brings_its_robots_and_nothing_else(
    how: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.world").write_text(WORLD)
    port = free_port(3)
    code, out, err = call(*how, *FAST, str(port), capsys=capsys)
    assert code == 0
    assert (
        f"r0 (position) on 127.0.0.1:{port}, r1 (position) on 127.0.0.1:{port + 1}"
        in out
    )
    assert "p3dx" not in out
    assert (
        err.count('a.world:4: the property "sonic_screwdriver" is not simulated') == 1
    )


def test_robots_can_be_added_to_a_world(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.world").write_text(WORLD)
    _, out, _ = call(
        "-W", "a.world", "-r", "amigo", *FAST, str(free_port(4)), capsys=capsys
    )
    assert all(f"{name} (" in out for name in ("r0", "r1", "amigo"))


def test_a_broken_world_names_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.world").write_text("\nhovercraft ( )\n")
    code, _, err = call("-W", "a.world", *FAST, str(free_port()), capsys=capsys)
    assert code == 252
    assert 'a.world:2: "hovercraft" is not a model type' in err
    code, _, err = call(
        "-W", "a.world", "-m", "office", *FAST, str(free_port()), capsys=capsys
    )
    assert (code, "found two" in err) == (255, True)


def test_a_scenarios_settings_and_options_hold_unless_the_command_line_says_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = free_port(3)
    Path("s.yaml").write_text(
        "botyard: 1\nseed: 7\nduration: 0.2\nrobots:\n- {name: a}\noptions: "
        "{fast: true, robot-factory: [amigo]}\n"
    )
    args = ("s.yaml", "--noninteractive", "--no-crash-restart", "--json")
    code, out, _ = call(*args, "-p", str(port), capsys=capsys)
    ready = json.loads(out.splitlines()[0])
    assert (code, ready["seed"], ready["factories"]) == (
        0,
        7,
        [{"model": "amigo", "host": "127.0.0.1", "port": port + 1}],
    )
    code, out, _ = call(
        *args, "--seed", "9", "-R", "p3at", "-p", str(port), capsys=capsys
    )
    ready = json.loads(out.splitlines()[0])
    assert (ready["seed"], ready["factories"][0]["model"]) == (9, "p3at")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (
            "robot-nam: x",
            "options: robot-nam: a world file cannot set this option; use the command line",
        ),
        (
            "robot-nam: x",
            'or your own --config file; did you mean "robot-name"?',
        ),
        ("map: office", 'options: map: expected the key "map" of the file instead'),
        (
            "robot: [p3dx]",
            'options: robot: expected the key "robots" of the file instead',
        ),
        (
            "update-interval: 99999999",
            "options.update-interval: expected a whole number <= 60000",
        ),
        ("seed: [1]", "options.seed: expected a whole number, found a list"),
        (
            "robot-factory: amigo",
            "options.robot-factory: expected a list, found a text",
        ),
        ("robot-factory: [../x.p]", "options.robot-factory[0]: expected"),
        ("fast: 3", "options.fast: expected true or false, found a whole number"),
        (
            'robot-name: "a\\nb"',
            'options.robot-name: expected 1 to 64 printable characters, found "a\\nb"',
        ),
        ("3", "options: expected keys and values, found a whole number"),
    ],
)
def test_wrong_options_of_a_scenario(
    option: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{{{option}}}" if ":" in option else option
    Path("s.yaml").write_text(f"botyard: 1\noptions: {text}\n")
    for command in (
        ("s.yaml", *FAST, str(free_port())),
        ("scenario", "check", "s.yaml"),
    ):
        code, _, err = call(*command, capsys=capsys)
        assert code == 252
        assert "s.yaml:2: " in err
        assert complaint in err


def test_a_run_is_saved_and_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port(4)
    args = (
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "-r",
        "amigo",
        "--controller",
        "wander",
        "--seed",
        "5",
        "--robot-name",
        "MobileSim",
    )
    code, _, err = call(
        *args, *FAST, str(port), "--save-scenario", "saved.yaml", capsys=capsys
    )
    assert code == 0
    assert "scenario written to saved.yaml" in err
    saved = yaml.safe_load(Path("saved.yaml").read_text())
    assert saved["seed"] == 5
    assert saved["options"]["robot-name"] == "MobileSim"
    assert "port" not in saved["options"], "that is whoever runs it to say"
    assert "give them again on the command line: --port" in err
    assert [r["controller"] for r in saved["robots"]] == ["wander", "wander"]
    code, out, _ = call("saved.yaml", *FAST, str(port), capsys=capsys)
    assert code == 0
    assert f"ann (p3dx) on 127.0.0.1:{port}" in out
    code, _, err = call(
        "saved.yaml", *FAST, str(port), "--save-scenario", "none/x.yaml", capsys=capsys
    )
    assert (code, "--save-scenario: cannot write none/x.yaml" in err) == (255, True)


def test_code_drives_robots_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("drivers.py").write_text(
        "def quick(robot):\n    robot.command(v=0.3)\n    print('driven', robot.name)\n"
    )
    options = ("-m", "office", "-r", "p3dx:ann", *FAST, str(free_port()))
    code, out, err = call(*options, "--controller", "drivers.py:quick", capsys=capsys)
    assert (code, "driven ann" in out) == (0, True), err
    code, _, err = call(*options, "--controller", "drivers.py:slow", capsys=capsys)
    assert (code, 'there is no "slow" in drivers.py' in err) == (255, True)


# -- scenario check, schema, example


def test_scenario_check(capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.yaml").write_text(EXAMPLE)
    Path("bad.yaml").write_text(
        EXAMPLE.replace("leader: guide", "leader: guido, sped: 3")
    )
    Path("a.world").write_text(WORLD)
    code, out, err = call("scenario", "check", "good.yaml", "a.world", capsys=capsys)
    assert (code, err) == (0, "")
    assert "good.yaml: good. 40.4 m × 25.0 m" in out
    assert "moving obstacles: 2, robots: 2" in out
    assert "note: a.world:4" in out
    assert "a.world: can be used, with" in out and "a.world: good" not in out, (
        "not everything in it is simulated"
    )
    code, out, err = call("scenario", "check", "bad.yaml", "good.yaml", capsys=capsys)
    assert code == 252
    assert 'no option "sped"; did you mean "speed"' in err
    assert "good.yaml: good" in out, "the others are checked too"


DAMAGED = {
    "rows.map": ("2D-Map\nNumPoints: 0\n", "rows.map: there is no DATA section"),
    "long.map": (
        "type octile\nheight 1\nwidth 3\nmap\n@.@\n@@@\n",
        "long.map:6: expected 1 rows, found more",
    ),
    "cut.wld": (
        "0 0 9 0\n0 0 1\n0 0 5x 1\n; 0 0 1\nwidth\n",
        'cut.wld:2: wall skipped: expected four numbers, found "0 0 1", and 1 more',
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_check_does_not_call_what_was_doubted_good(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, note = DAMAGED[name]
    Path(name).write_text(text)
    code, out, err = call("scenario", "check", name, capsys=capsys)
    assert (code, err) == (0, "")
    assert note in out and "can be used, with" in out and "good" not in out


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("p3dx:%d", 'no robot model "p3dx:%d"'),
        ("a\x1bb", r'no robot model "a\x1bb"'),
        ("noise", "no robot model"),
    ],
)
def test_a_check_looks_for_the_models_of_factories(
    model: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.yaml").write_text(
        yaml.safe_dump({"botyard": 1, "options": {"robot-factory": [model]}})
    )
    code, out, err = call("scenario", "check", "a.yaml", capsys=capsys)
    assert code != 0 and complaint in err and "good" not in out


def test_seeds_of_64_bits_are_kept_and_longer_ones_refused_at_every_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (-(2**63), 2**64 - 1):
        Simulation(seed=seed).save_scenario(tmp_path / "a.yaml", overwrite=True)
        assert Simulation.load(tmp_path / "a.yaml").seed == seed

    for seed in (-(2**63) - 1, 2**64):
        with pytest.raises(
            ArgumentError,
            match="seed: expected a whole number from -9223372036854775808 to",
        ):
            Simulation(seed=seed)

        for key in (f"seed: {seed}", f"options: {{seed: {seed}}}"):
            Path("a.yaml").write_text(f"botyard: 1\n{key}\n")
            code, _, err = call("scenario", "check", "a.yaml", capsys=capsys)
            assert code != 0 and "seed: " in err and "a.yaml" in err

        code, _, err = call("--nomap", "--seed", str(seed), capsys=capsys)
        assert code != 0 and "'--seed'" in err and "18446744073709551615" in err


def test_scenario_schema_and_example(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call("scenario", "schema", capsys=capsys)
    assert "ScenarioFile" in json.loads(out)["$defs"]
    _, out, _ = call("scenario", "example", capsys=capsys)
    assert out == EXAMPLE


# -- convert


def picture(name: str = "plan.png") -> np.ndarray:
    dark = np.zeros((6, 8), bool)
    dark[0, :] = dark[2, 3] = True
    Image.fromarray(np.where(dark, 0, 255).astype(np.uint8)).save(name)
    return dark[::-1]


def test_a_resolution_in_mm_gives_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`botyard run` takes mm, `convert` m."""
    picture()
    for size, warned in (("1", 0), ("50", 1)):
        args = ("convert", "plan.png", f"{size}.map", "--resolution", size)
        code, _, err = call(*args, capsys=capsys)
        assert (code, err.count("warning: --resolution 50: 50 m for each")) == (
            0,
            warned,
        )


def test_convert_a_picture_to_points_or_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    dark = picture()
    code, out, err = call(
        "convert", "plan.png", "a.map", "--resolution", "0.05", capsys=capsys
    )
    assert (code, out, err) == (0, "a.map written\n", "")
    found = armap.read("a.map")
    rows, columns = np.nonzero(dark)
    assert sorted(map(tuple, found.points.tolist())) == sorted(
        zip(columns * 50.0, rows * 50.0, strict=True)
    )
    assert found.sources[0].resolution == 50
    call(
        "convert", "plan.png", "b.map", "--resolution", "0.05", "--trace", capsys=capsys
    )
    traced = armap.read("b.map")
    assert (len(traced.points), len(traced.lines)) == (0, 8)
    call(
        "convert",
        "plan.png",
        "c.map",
        "--resolution",
        "0.05",
        "--invert",
        capsys=capsys,
    )
    assert len(armap.read("c.map").points) == dark.size - dark.sum()
    call("convert", "plan.png", "d.yaml", "--resolution", "0.05", capsys=capsys)
    with Image.open("d.pgm") as image:
        assert ((np.asarray(image)[::-1] == 0) == dark).all()
    Path("d.yaml").rename("e.yaml")
    Path("e.yaml").write_text(
        Path("e.yaml").read_text().replace("[0.0, 0.0, 0.0]", "[-1.3, 0.7, 0.0]")
    )
    call("convert", "e.yaml", "f.yaml", "--cell", "0.05", capsys=capsys)
    assert Path("f.pgm").read_bytes() == Path("d.pgm").read_bytes()
    assert (
        Path("f.yaml").read_text().replace("f.pgm", "d.pgm")
        == Path("e.yaml").read_text()
    )


def test_convert_keeps_all_of_an_armap(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "2D-Map-Ex\nRouteInfo: Route a\nSomething: else\n"
        'Cairn: Goal 1 2 3 "" ICON "g"\nLINES\n0 0 1 1\nDATA\n'
    )
    Path("a.map").write_text(text)
    assert call("convert", "a.map", "b.map", capsys=capsys)[0] == 0
    assert armap.read("b.map") == armap.read("a.map")


def test_convert_tells_what_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.world").write_text(WORLD + "model ( size [1 1 1] pose [2 2 0 0] )")
    _, _, err = call("convert", "a.world", "a.map", capsys=capsys)
    assert "2 robots are not written" in err
    _, _, err = call("convert", "a.world", "a.yaml", capsys=capsys)
    assert "boxes, the home are left out" in err
    assert (
        call("convert", "a.world", "s.yaml", "--to", "scenario", capsys=capsys)[0] == 0
    )
    assert [r.name for r in load_world("s.yaml").robots] == ["r0", "r1"]
    code, _, err = call("convert", "a.world", "a.doc", capsys=capsys)
    assert (code, 'found ".doc"' in err) == (255, True)
    code, _, err = call("convert", "a.world", "none/a.map", capsys=capsys)
    assert (code, "OUTPUT: cannot write none/a.map" in err) == (255, True)
    code, _, err = call("convert", "nothing.png", "a.map", capsys=capsys)
    assert (code, "no such map file" in err) == (253, True)


def test_convert_lists_its_formats(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call("convert", "--help", capsys=capsys)
    assert all(
        word in out
        for word in ("stage", ".world", "dxf", "geojson", "movingai", "--trace")
    )


# -- the old tools


def test_convert_bitmap_to_armap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dark = picture("plan.pgm")
    code, out, _ = call(
        "convertBitmapToArMap",
        "-i",
        "plan.pgm",
        "-o",
        "a.map",
        "-r",
        "20",
        capsys=capsys,
    )
    assert (code, out) == (0, f"{dark.sum()} points written to a.map\n")
    rows, columns = np.nonzero(dark)
    points = armap.read("a.map").points
    assert sorted(map(tuple, points.tolist())) == sorted(
        zip(columns * 20.0, rows * 20.0, strict=True)
    )
    assert call("convertBitmapToArMap", "plan.pgm", capsys=capsys)[0] == 0
    assert armap.read("plan.map").points.max() == 7.0, (
        "1 mm a pixel, and the input's name"
    )
    assert (
        call(
            "convertBitmapToArMap",
            "plan.pgm",
            "-o",
            "c.map",
            "-color",
            "255",
            capsys=capsys,
        )[0]
        == 0
    )
    assert len(armap.read("c.map").points) == dark.size - dark.sum()
    Path("rgb.ppm").write_text("P3\n2 1\n255\n10 20 30  0 0 0\n")
    assert call("convertBitmapToArMap", "rgb.ppm", "-c", "60", capsys=capsys)[0] == 0
    assert armap.read("rgb.map").points.tolist() == [[0.0, 0.0]]
    for args, status in (
        (("none.pgm",), 2),
        (("plan.pgm", "-r", "0"), 1),
        (("plan.pgm", "-o", "none/x.map"), 3),
        (("--help",), 0),
    ):
        assert call("convertBitmapToArMap", *args, capsys=capsys)[0] == status, args

    class Stdin:
        class buffer:
            @staticmethod
            def read(most: int) -> bytes:
                return b"P1\n2 1\n1 0\n"[:most]

    monkeypatch.setattr("sys.stdin", Stdin)
    assert call("convertBitmapToArMap", capsys=capsys)[0] == 0
    assert armap.read("out.map").points.tolist() == [[0.0, 0.0]]


def test_convert_saphira_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.wld").write_text("0 0 1000 0\n0 0 0 500\nposition 100 200 90\n")
    assert call("convertSfWorldToMap", "a.wld", "a.map", capsys=capsys)[0] == 0
    scene = load_scene("a.map")
    assert len(scene.segments) == 2
    assert [(p.kind, p.name) for p in scene.places] == [("RobotHome", "Home")]
    Path("b.map").write_text(
        '2D-Map\nCairn: Goal 1 2 3 "" ICON "g"\nLINES\n9 9 9 99\nDATA\n5 5\n'
    )
    assert (
        call("addSfWorldLinesToMap", "a.wld", "b.map", "c.map", capsys=capsys)[0] == 0
    )
    made, old = armap.read("c.map"), armap.read("b.map")
    assert made.lines.tolist() == [[0, 0, 1000, 0], [0, 0, 0, 500]], (
        "its lines are replaced"
    )
    assert (made.points == old.points).all() and made.cairns == old.cairns
    assert call("addSfWorldLinesToMap", "a.wld", "b.map", capsys=capsys)[0] == 0
    assert armap.read("b.map") == made, "without OUT.map the map itself is changed"
    assert call("convertSfWorldToMap", "none.wld", "x.map", capsys=capsys)[0] == 253


# -- generated maps


def test_maps_generate(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(
        "maps", "generate", "warehouse", "--aisles", "40", "out.map", capsys=capsys
    )
    assert (code, "out.map written: " in out) == (0, True)
    assert sum(p.name.startswith("Aisle") for p in load_scene("out.map").places) == 40
    for seed in ("3", "3", "4"):
        call(
            "maps",
            "generate",
            "maze",
            "--columns",
            "6",
            "--seed",
            seed,
            f"m{seed}.map",
            capsys=capsys,
        )

    assert Path("m3.map").read_bytes() != Path("m4.map").read_bytes()
    code, _, err = call(
        "maps", "generate", "maze", "--rows", "0", "x.map", capsys=capsys
    )
    assert (code, "rows: expected at least 1" in err) == (252, True)
    call("maps", "generate", "hall", "h.yaml", capsys=capsys)
    assert len(load_scene("h.yaml").segments) > 10


def test_maps_are_listed_of_any_format(capsys: pytest.CaptureFixture[str]) -> None:
    picture()
    Path("a.wld").write_text("0 0 1000 0\n")
    code, out, err = call("maps", "plan.png", "a.wld", capsys=capsys)
    assert code == 0
    assert "plan" in out and "0.05 m a pixel" in err
    _, out, _ = call("maps", capsys=capsys)
    assert "office" in out and "warehouse" in out


# -- the user's include folders


def test_models_of_include_files_are_in_every_world_but_with_w(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Instances and settings in files of the include folder apply (WLD-006); -W uses
    only the given file (WLD-007).
    """
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    folder = tmp_path / "home/.AMRISim/include"
    folder.mkdir(parents=True)
    (folder / "mine.inc").write_text(
        "interval_sim 50\ndefine pillar model ( size [0.5 0.5] )\npillar ( pose [9 14 0] )\n"
        'position ( name "guard" pose [5 14.2 0] size [0.4 0.4] )\n'
    )
    (folder / ".hidden").write_text("hovercraft ( )")
    port = free_port(3)
    args = (*FAST, str(port), "--save-scenario", "s.yaml")
    code, out, err = call("-m", "office", *args, capsys=capsys)
    assert code == 0, err
    assert f"guard (position) on 127.0.0.1:{port}" in out
    saved = yaml.safe_load(Path("s.yaml").read_text())
    assert saved["step"] == 0.05
    assert "pillar" in [o["name"] for o in saved["obstacles"]]
    Path("a.world").write_text(WORLD)
    _, out, _ = call("-W", "a.world", *FAST, str(port), capsys=capsys)
    assert "guard" not in out
    (folder / "mine.inc").write_text("hovercraft ( )")
    code, _, err = call("-m", "office", *FAST, str(port), capsys=capsys)
    assert code == 0
    assert (
        '"hovercraft" is not a model type' in err
        and "the user's include files are ignored" in err
    )


# -- recordings of packets


def test_packets_are_recorded_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port(2)
    command = [
        sys.executable,
        "-m",
        "botyard",
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-p",
        str(port),
        "--record-packets",
        "talk.jsonl",
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if "ready" in line:
                    break

            with PioneerClient("127.0.0.1", port) as client:
                client.vel(200)
                for _ in range(5):
                    client.update()
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)

    entries = [json.loads(line) for line in Path("talk.jsonl").read_text().splitlines()]
    assert {e["robot"] for e in entries} == {"ann"}
    assert [e["from"] for e in entries[:2]] == ["client", "robot"]
    code, out, _ = call("packets", "talk.jsonl", capsys=capsys)
    assert code == 0
    told = [line.split(" → ")[1] for line in out.splitlines() if " → " in line]
    assert told[:4] == ["SYNC0 (0)", "SYNC1 (1)", "SYNC2 (2)", "OPEN (1) 3b 01 00"]
    assert "ann #1 → VEL (11) 3b c8 00" in out
    assert out.count("← ") > 5
    assert call("packets", "talk.jsonl", "--robot", "bob", capsys=capsys)[1] == ""
    Path("bad.jsonl").write_text("{}\n")
    code, _, err = call("packets", "bad.jsonl", capsys=capsys)
    assert (code, "bad.jsonl:1: not a line of a packet trace" in err) == (252, True)
    code, _, err = call(
        "-m", "office", *FAST, str(port), "--record-packets", "none/x", capsys=capsys
    )
    assert (code, "--record-packets: cannot write" in err) == (255, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--controller", "purepursuit"], 'expected the option "points", found none'),
        (
            ["--controller", "purepursuit", "--controller-option", "points"],
            "expected NAME=VALUE, such as speed=0.4, found",
        ),
        (
            ["--controller", "wander", "--controller-option", "sped=1"],
            'no option "sped"',
        ),
        (
            ["--controller-option", "speed=1"],
            "--controller-option: expected --controller as well",
        ),
    ],
)
def test_wrong_options_of_a_controller_are_told(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = call(
        "--nomap", "-r", "p3dx", *options, *FAST, str(free_port()), capsys=capsys
    )
    assert status != 0 and words in err


def test_options_of_a_controller_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Numbers, lists and words: the robot drives to the last point and stays there."""
    options = ["points=[[0,0],[1,0]]", "order=once", "speed=0.4"]
    sim = Simulation()
    robot = sim.add_robot("p3dx")
    robot.set_controller("purepursuit", **named_values(options))
    sim.run(20.0)
    assert abs(robot.truth.x - 1.0) < 0.4
    given = [word for option in options for word in ("--controller-option", option)]
    status, _, err = call(
        "--nomap",
        "-r",
        "p3dx",
        "--controller",
        "purepursuit",
        *given,
        *FAST,
        str(free_port()),
        capsys=capsys,
    )
    assert status == 0, err
