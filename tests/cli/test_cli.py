from __future__ import annotations

import asyncio
import math
import os
import re
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from botyard.app import assembly
from botyard.cli import keyboard, main, models, overview, run
from botyard.cli.drive import Pilot
from botyard.cli.joystick import KeyJoystick
from botyard.cli.options import RobotChoice, RobotParam, StartParam, parse_address
from botyard.clients.pioneer import PioneerClient
from botyard.engine.bodyspec import robot_body
from botyard.errors import CommandLineError
from botyard.geometry import Pose
from botyard.servers.hub import Hub
from botyard.servers.pioneer import robot_servers
from botyard.sim.simulation import Simulation
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE


def call(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main.main(list(args))
    out = capsys.readouterr()
    code = end.value.code
    return (code if isinstance(code, int) else 0), out.out, out.err


FAST = ("--fast", "--duration", "0.3", "--noninteractive", "-p")


@pytest.mark.parametrize(
    "spelling", [("-m",), ("--map",), ("-map",), ("run", "-m"), ("run", "--map")]
)
def test_all_spellings_of_an_option(
    spelling: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    code, out, _ = call(
        *spelling,
        "office",
        "-r",
        "p3dx:bob",
        "-robot",
        "amigo",
        *FAST,
        str(port),
        capsys=capsys,
    )
    assert code == 0
    assert "ready" in out
    assert f"bob (p3dx) on 127.0.0.1:{port}" in out
    assert f"amigo (amigo) on 127.0.0.1:{port + 1}" in out
    assert "seed 1" in out


def test_a_bare_argument_is_the_map(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(*FAST, str(free_port(3)), "warehouse", capsys=capsys)
    assert (code, "ready" in out) == (0, True)
    code, _, err = call(
        "-m", "office", *FAST, str(free_port(3)), "warehouse", capsys=capsys
    )
    assert (code, "found two" in err) == (255, True)


def test_robots_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """-r file.p[:name] and -r file.toml[:name], from the working directory (MOD-018,
    PAR-009).
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.p").write_text("Class Pioneer\nSubclass mine\nSonarNum 0\n")
    (tmp_path / "fast.toml").write_text(
        'extends = "p3dx"\n[limits]\nmax_speed = [2, 0, 100]\n'
    )
    args = ("--nomap", "-r", "mine.p:bob", "-r", "mine.p", "-r", "fast.toml:flash")
    code, out, _ = call(*args, *FAST, str(free_port(4)), capsys=capsys)
    assert code == 0
    for said in ("bob (mine) on", "mine (mine) on", "flash (fast) on"):
        assert said in out


def test_bad_model_files_end_with_250(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.p"
    bad.write_text("Subclass bad\n\nRobotWidth wide\n")
    for option in ("-r", "-R"):
        code, _, err = call(
            "--nomap", option, str(bad), *FAST, str(free_port(3)), capsys=capsys
        )
        assert code == 250
        assert f"{bad}:3: RobotWidth: expected a number, found 'wide'" in err


def test_factories_and_robots_share_no_port(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port(5)
    code, out, _ = call(
        "-m",
        "office",
        "-r",
        "p3dx",
        "-R",
        "amigo",
        "-r",
        "box",
        "-robot-factory",
        "p3at",
        *FAST,
        str(port),
        capsys=capsys,
    )
    assert code == 0
    assert f"p3dx (p3dx) on 127.0.0.1:{port}" in out
    assert f"a amigo for each client of 127.0.0.1:{port + 1}" in out
    assert f"a p3at for each client of 127.0.0.1:{port + 2}" in out
    code, out, _ = call("--nomap", "-R", "amigo", *FAST, str(port), capsys=capsys)
    assert "(p3dx)" not in out, "a factory alone makes no robot of its own"


def test_a_factory_of_boxes_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call("--nomap", "-R", "box", *FAST, str(free_port(3)), capsys=capsys)
    assert (code, "box cannot drive" in err) == (255, True)


def test_a_working_folder_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(
        "--nomap", "--cwd", "/nowhere/at/all", *FAST, str(free_port(3)), capsys=capsys
    )
    assert (code, "cannot change to" in err) == (247, True)


LONG = "x" * 300


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("run", LONG), "no such map file"),
        (("run", f"./{LONG}/a.map"), "no such map file: File name too long"),
        (("maps", LONG), "no such map file"),
        (("run", "office", "--record", f"{LONG}.mcap"), "File name too long"),
        (("run", "office", "--snapshot", f"{LONG}.png"), "File name too long"),
        (("render", "office", f"{LONG}.png"), "File name too long"),
        (("convert", "office", f"{LONG}.yaml"), "File name too long"),
        (("traffic", "run", f"{LONG}.json"), "File name too long"),
        (("bench", "navigation", "--policy", f"{LONG}.py:X"), "there is no file"),
    ],
)
def test_a_name_that_the_system_refuses_is_an_error_not_a_crash(
    args: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(*args, capsys=capsys)
    assert code != 0 and told in err
    assert "Traceback" not in err


def test_a_log_file_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(
        "--nomap",
        "-l",
        str(tmp_path / "no/run.log"),
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert (code, "--log-file: cannot write" in err) == (255, True)


def test_the_users_default_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / ".AMRISim").mkdir()
    (tmp_path / ".AMRISim/init.map").write_text("2D-Map\nLINES\n0 0 5000 0\nDATA\n")
    code, out, err = call("--json", *FAST, str(free_port(3)), capsys=capsys)
    assert code == 0
    assert "init.map" in out
    assert "no map given: using" in err


def test_batteries_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = call(
        "--nomap", "--simulate-batteries", *FAST, str(free_port(3)), capsys=capsys
    )
    assert code == 0
    from botyard.model.library import load_robot

    spec = load_robot("p3dx")
    assert assembly._with_battery(spec, False) is spec
    assert assembly._with_battery(spec, True).battery.capacity_wh == 252.0
    assert assembly._with_battery(load_robot("p3dx-equipped"), True) is load_robot(
        "p3dx-equipped"
    )
    assert assembly._with_battery(load_robot("box"), True) is load_robot("box")


def test_parameter_files_for_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(
        "models",
        "p3at",
        "box",
        "--parameter-files",
        str(tmp_path / "params"),
        capsys=capsys,
    )
    assert code == 0
    assert [p.name for p in (tmp_path / "params").iterdir()] == ["p3at.p"]
    assert "Subclass p3at\n" in (tmp_path / "params/p3at.p").read_text()
    assert "written:" in out


def test_the_users_models_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / ".botyard/include").mkdir(parents=True)
    (tmp_path / ".botyard/include/a.inc").write_text("define zebra p3dx ( )\n")
    (tmp_path / ".botyard/include/b.inc").write_text("define broken p3dx (\n")
    (tmp_path / ".botyard/include/c.toml").write_text("wrong = 1\n")
    code, out, err = call("models", capsys=capsys)
    assert code == 0
    assert "zebra" in out
    assert "b.inc:1:" in err
    assert "c.toml" in err


def test_a_picture_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    picture = tmp_path / "end.png"
    code, _, _ = call(
        "-m",
        "office",
        "--snapshot",
        str(picture),
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert code == 0
    with Image.open(picture) as image:
        assert image.width == 1000
    code, _, err = call(
        "--nomap",
        "--snapshot",
        str(tmp_path / "x.nonsense"),
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert code != 0 and "--snapshot: cannot write" in err


def test_a_taken_port_with_the_originals_habits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three attempts, then the next port, with warnings (FRM-015).

    Without --compat the program ends at once with status 248.
    """
    assert robot_servers.PORT_PAUSE == 2.0
    pause, sleep, pauses = 0.0123, asyncio.sleep, []

    async def counted(delay: float, *args: object) -> None:
        pauses.extend([delay] if delay == pause else [])
        await sleep(delay, *args)

    monkeypatch.setattr(asyncio, "sleep", counted)
    monkeypatch.setattr(robot_servers, "PORT_PAUSE", pause)
    port = free_port(4)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        args = ("--nomap", "-r", "p3dx", "-r", "amigo")
        code, out, err = call(
            *args, "--compat", "amrisim", *FAST, str(port), capsys=capsys
        )
        assert code == 0
        assert f"p3dx (p3dx) on 127.0.0.1:{port + 1}" in out
        assert f"amigo (amigo) on 127.0.0.1:{port + 2}" in out
        assert err.count(f"cannot listen on 127.0.0.1:{port} ") == 3
        assert len(pauses) == 2, "one between two tries"
        code, _, err = call(*args, *FAST, str(port), capsys=capsys)
        assert (code, err.count("cannot listen")) == (248, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "-r p3dx --gui-port {port} -p {port}",
            "(robot p3dx|the page) of this simulator uses this port",
        ),
        (
            "-R p3dx --metrics-port {port} -p {port}",
            "(robot p3dx factory|the metrics) of this simulator uses this port",
        ),
        (
            "--rosbridge {port} --foxglove {port} -p {other}",
            "interface rosbridge of this simulator uses this port",
        ),
        (
            "--ros-master embedded:{port} --rosbridge {port} -p {other}",
            "(the ROS master|interface rosbridge) of this",
        ),
        (
            "--gui-port {port} --ros-master embedded:{port} -p {other}",
            "(the ROS master|the page) of this simulator uses this port",
        ),
    ],
)
def test_a_port_of_its_own_is_said_to_be_its_own(
    options: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names our service that has the port.

    The system does not say which other program has a port.
    """
    port = free_port(3)
    line = (
        "--nomap --noninteractive --fast --duration 0.3 --no-crash-restart " + options
    ).format(port=port, other=port + 1)
    code, _, err = call(*line.split(), capsys=capsys)
    assert code == 248
    assert re.search(said, err), err
    with socket.create_server(("127.0.0.1", port)):
        code, _, err = call(*line.split(), capsys=capsys)
    assert (
        code == 248
        and "of this simulator" not in err
        and "ddress already in use" in err
    )


def test_joystick_by_keys() -> None:
    sim = Simulation()
    robot = sim.add_robot("p3dx", "r")
    keys: list[list[str]] = [["up", "up", "left"], [], ["j"], [" "], ["up"] * 30]
    stick = KeyJoystick(robot, lambda: keys.pop(0))
    j = robot.electrics.joystick
    stick.act()
    assert (j.x, j.y, j.button1, j.button2) == (-0.1, 0.2, True, False)
    stick.act()
    stick.act()
    assert j.button2
    stick.act()
    assert (j.x, j.y, j.button1, j.button2) == (0.0, 0.0, False, False)
    stick.act()
    assert j.y == 1.0


def test_joystick_needs_a_robot_and_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = call(
        "--nomap",
        "-r",
        "p3dx:bob",
        "--joystick",
        "bub",
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert (code, 'no robot "bub"; did you mean "bob"?' in err) == (255, True)
    code, _, err = call(
        "--nomap",
        "-r",
        "p3dx:bob",
        "--joystick",
        "bob",
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert (code, "expected a terminal" in err) == (255, True)


def test_discover_finds_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from botyard.cli import discover

    monkeypatch.setattr(discover, "find_hosts", lambda seconds: [])
    code, _, err = call("discover", capsys=capsys)
    assert (code, "no computer answered" in err) == (1, True)


def test_duplicate_and_missing_names(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(
        "--nomap",
        "-r",
        "p3dx",
        "-r",
        "p3dx",
        "-r",
        "p3dx",
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert code == 0
    assert "p3dx (p3dx)" in out
    assert "p3dx_002 (p3dx)" in out
    assert "p3dx_003 (p3dx)" in out
    code, _, err = call(
        "--nomap",
        "-r",
        "p3dx:a",
        "-r",
        "amigo:a",
        *FAST,
        str(free_port(3)),
        capsys=capsys,
    )
    assert (code, "names must be unique" in err) == (252, True)


@pytest.mark.parametrize(
    ("args", "code", "complaint"),
    [
        (
            ("-m", "none.map", "--noninteractive", "--no-crash-restart"),
            253,
            "none.map: no such map file",
        ),
        (
            ("-m", "offise", "--noninteractive", "--no-crash-restart"),
            253,
            'did you mean "office"',
        ),
        (("--nomap", "-r", "p3dxx"), 249, 'did you mean "p3dx"'),
        (("--noninteractive", "--no-crash-restart"), 255, "expected a map"),
        (("--no-gui", "--no-crash-restart"), 255, "expected a map"),
        (("--unknown",), 255, "No such option"),
        (("-p", "0"), 255, "-p"),
        (("-p", "x"), 255, "-p"),
        (("--odom-error-mode", "often"), 255, "often"),
        (("--start", "1,2"), 255, "x,y,th"),
        (("--nomap", "--start", "1e99,0,0"), 255, "within"),
        (("--nomap", "--controller", "wonder"), 255, 'did you mean "wander"'),
        (("--nomap", "-p", "65535", "-r", "p3dx", "-r", "p3dx"), 255, "do not fit"),
        (("--nomap", "--start", "outside"), 252, "expected a map"),
        (("models", "p3dxx"), 249, "did you mean"),
        (("drive", "host:port"), 255, "terminal"),
        (("drive", "--help", "extra"), 0, ""),
    ],
)
def test_errors_are_one_line_with_the_code_of_the_table(
    args: tuple[str, ...], code: int, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = call(*args, capsys=capsys)
    assert found == code
    assert complaint in err
    lines = [line for line in err.splitlines() if line.startswith("botyard: error:")]
    assert len(lines) == (1 if code else 0)
    assert "Traceback" not in err


def test_a_broken_map_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.map"
    path.write_text("2D-Map\nNumLines: 1\nResolution: fine\n")
    code, _, err = call(
        "-m", str(path), "--noninteractive", "--no-crash-restart", capsys=capsys
    )
    assert (code, f"{path}:3: Resolution" in err) == (253, True)


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (("--help-all",), ("office", "--help-all"), ("run", "--help")):
        code, out, _ = call(*line, capsys=capsys)
        assert code == 0
        for option in run.command.params:
            if option.param_type_name == "option" and not option.hidden:
                assert max(option.opts, key=len) in out
                assert option.help, option.name

    for command in main.COMMANDS:
        assert call(command, "--help", capsys=capsys)[0] == 0


@pytest.mark.parametrize("flag", ["--help", "-h", "-help"])
def test_the_short_help_fits_a_screen(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(flag, capsys=capsys)
    lines = out.splitlines()
    assert code == 0 and len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert "--help-all" in out
    assert call("-m", "office", flag, capsys=capsys)[1] == out


def completed(line: str) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    words = ["botyard", *line.split(" ")]
    asked = {
        "_BOTYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    found = subprocess.run(
        [sys.executable, "-m", "botyard"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    return [text.partition(",")[2] for text in found.stdout.splitlines()]


def test_the_shell_completes_commands_maps_models_and_options() -> None:
    assert "models" in completed("mod")
    assert "office" in completed("off")
    assert "warehouse" in completed("run -m ware")
    assert "p3dx" in completed("-m office -r p3d")
    assert completed("--see") == ["--seed"] == completed("office --see")


@pytest.mark.parametrize("flag", ["--version", "-version", "-v"])
@pytest.mark.parametrize(
    "before", ["", "run", "-m office", "models p3dx", "traffic run", "--no-such-option"]
)
@pytest.mark.parametrize("after", ["", "--nomap"])
def test_the_version_wherever_it_stands(
    flag: str, before: str, after: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(*before.split(), flag, *after.split(), capsys=capsys)
    assert (code, out.startswith("botyard, version")) == (0, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-foo", "No such option: -foo ("),
        ("-robt p3dx", "-robt; did you mean -robot?"),
        ("-mapp office", "did you mean -map?"),
        ("--romot=p3dx", "No such option: --romot; did you mean --robot?"),
        ("maps --pgn x", "--pgn; did you mean --png?"),
        ("model", 'the command "botyard models"?'),
        ("serve", 'the command "botyard run"?'),
        ("traffik", '"botyard traffic"?'),
        ("traffic rn", "Did you mean 'run'?"),
        ("models p3xd", 'did you mean "p3dx"?'),
        ("-m offise", 'did you mean "office"?'),
    ],
)
def test_what_was_meant(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        []
        if line.split()[0] in main.COMMANDS
        else ["--noninteractive", "--no-crash-restart"]
    )
    code, _, err = call(*line.split(), *more, capsys=capsys)
    message, *page = err.splitlines()
    assert (code > 1, said in message) == (True, True), err
    assert all(text.startswith("See: docs/") for text in page) and len(page) <= 1, err


@pytest.mark.parametrize("line", ["-mwarehouse", "-p{port}", "-rp3dx"])
def test_values_that_follow_a_short_option_at_once(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port(3)
    code, out, err = call(
        "--nomap" if "-m" not in line else "-r",
        *(["p3dx"] if "-m" in line else []),
        line.format(port=port),
        "--fast",
        "--duration",
        "0.1",
        "--noninteractive",
        "--port",
        str(port),
        capsys=capsys,
    )
    assert (code, "ready" in out) == (0, True), err


def test_listings_with_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    code, out, _ = call(
        "models", "p3dx", "seekur", "--png", str(tmp_path), capsys=capsys
    )
    assert code == 0
    assert "Pioneer p3dx" in out
    code, out, _ = call("maps", "office", "--png", str(tmp_path), capsys=capsys)
    assert code == 0
    assert "Laboratory" in out
    for name in ("p3dx", "seekur", "office"):
        image = Image.open(tmp_path / f"{name}.png")
        assert len(image.getcolors(1 << 20) or []) > 5, "something is drawn"

    assert "patrolbot-sh" in CliRunner().invoke(models.command).output


def test_start_poses(capsys: pytest.CaptureFixture[str]) -> None:
    from botyard.model.library import load_robot
    from botyard.sim.simulation import Simulation

    sim, spec = Simulation.load("office"), load_robot("p3dx")
    starts = partial(assembly._start_poses, sim, spec)
    assert starts((), 0, 2) == sim.core.places.next(spec, 2)
    assert starts((Pose(1, 2, 3),), 0, 1) == [Pose(1, 2, 3)]
    (outside,) = starts(("outside",), 0, 1)
    assert outside.x == pytest.approx(sim.scene.bounds[0] - 2.0)
    random = starts(("random",), 0, 4)
    assert len(set(random)) == 4
    headings = [pose.th for pose in starts(("random",), 0, 20)]
    assert {math.floor(th / (math.pi / 2)) for th in headings} == {-2, -1, 0, 1}, (
        "all quadrants"
    )
    assert all(sim.core.engine.is_free(robot_body(spec, "trial"), p) for p in random), (
        "never inside an obstacle"
    )
    assert random == starts(("random",), 0, 4), "from the seed"


def test_robot_and_start_values() -> None:
    robot, start = RobotParam(), StartParam()
    assert robot.convert("p3dx", None, None) == RobotChoice("p3dx", None)
    assert robot.convert("p3dx:bob", None, None) == RobotChoice("p3dx", "bob")
    assert robot.convert(r"C:\models\mine.toml:bob", None, None) == RobotChoice(
        r"C:\models\mine.toml", "bob"
    )
    assert robot.convert(r"C:\models\mine.toml", None, None) == RobotChoice(
        r"C:\models\mine.toml", None
    )
    assert start.convert("1000,-500,90", None, None) == pytest.approx(
        (1.0, -0.5, 1.5707963267948966)
    )
    assert start.convert("random", None, None) == "random"


def test_keys() -> None:
    assert keyboard.split_keys("a\x1b[A\x1bOD \x1b") == ["a", "up", "left", " ", "\x1b"]

    class Fake:
        def __init__(self) -> None:
            self.sent: list[tuple[str, object]] = []

        def __getattr__(self, name: str):
            return lambda *a: self.sent.append((name, *a))

    robot = Fake()
    pilot = Pilot(robot, 100, 20)  # type: ignore[arg-type]
    assert all(
        pilot.press(k)
        for k in ("up", "w", "up", "left", "right", "right", " ", "x", "e", "?")
    )
    assert robot.sent == [
        ("vel", 50),
        ("vel", 100),
        ("vel", 100),
        ("rvel", 10),
        ("rvel", 0),
        ("rvel", -10),
        ("stop",),
        ("enable", False),
        ("enable", True),
    ]
    assert not pilot.press("q")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8102", ("127.0.0.1", 8102)),
        ("robot", ("robot", 8101)),
        ("robot:9", ("robot", 9)),
        (":8103", ("127.0.0.1", 8103)),
        ("robot:", ("robot", 8101)),
        ("[::1]:9", ("::1", 9)),
        ("[::1]", ("::1", 8101)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text, port=8101) == address


@pytest.mark.parametrize(
    "text",
    [
        "robot:99999",
        "robot:0",
        "0",
        "a..b:9",
        "x" * 300,
        "::1",
        "::1:9",
        "a:b",
        "a\nb",
        "a:" + "9" * 5000,
    ],
)
def test_addresses_that_cannot_be(text: str) -> None:
    with pytest.raises(CommandLineError, match="65535"):
        parse_address(text, port=8101)
    with pytest.raises(CommandLineError):
        parse_address("robot", port=None)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("run", "office", "--bind-to-address", "a..b"), "a host name or an address"),
        (("traffic", "vda5050", "--broker", "a..b:1883"), "--broker: expected HOST"),
        (("traffic", "vda5050", "--broker", "localhost:0"), "--broker: expected HOST"),
        (("traffic", "vda5050", "--manufacturer", "x/#"), "--manufacturer: expected"),
    ],
)
def test_hosts_and_topics_that_cannot_be_are_errors_not_crashes(
    args: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(*args, capsys=capsys)
    assert code != 0 and told in err
    assert "internal error" not in err and "Traceback" not in err


def test_import_and_help_load_no_compiler() -> None:
    """Neither ``import botyard`` nor ``--help`` may load Numba: that alone takes a
    third of a second.
    """
    check = (
        "import sys, botyard{}; assert 'numba' not in sys.modules, 'numba was loaded'"
    )
    subprocess.run(
        [sys.executable, "-c", check.format("")], check=True, timeout=PATIENCE
    )
    light = ", botyard.cli.main, botyard.model.library, botyard.formats.registry"
    subprocess.run(
        [sys.executable, "-c", check.format(light)], check=True, timeout=PATIENCE
    )


@pytest.mark.peer
def test_step_and_interval() -> None:
    """--update-interval and --update-sim-time:

    20 ms of wall time for 50 ms of simulated time, and the values that clients get.
    """
    port = free_port(2)
    options = (
        "--nomap",
        "-r",
        "p3dx",
        "--no-gui",
        "-p",
        str(port),
        "--update-interval",
        "20",
        "-update-sim-time",
        "50",
    )
    with running(*options), PioneerClient(port=port) as robot:
        robot.send(237, 1)
        while robot.simstat is None:
            assert robot.update()
        assert (robot.simstat.sim_ms, robot.simstat.real_ms) == (50, 20)


@pytest.mark.parametrize(
    ("options", "seconds", "said"),
    [
        ("--ambf 2.0", 0.005, True),
        ("--ambf 2.0 --update-interval 20", 0.02, False),
        ("--ambf 2.0 --update-sim-time 20", 0.02, False),
        ("", 0.1, False),
    ],
)
def test_the_time_of_a_step(
    options: str,
    seconds: float,
    said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """AMBF's clients expect about 1 kHz; with steps of 100 ms the world jumps."""
    steps = []
    monkeypatch.setattr(
        Hub, "run", lambda hub: asyncio.sleep(0, steps.append(hub.sim.dt))
    )
    port = free_port(6)
    more = (
        ("--ambf-port", "-1", "--ros-master", f"embedded:{port + 4}")
        if "ambf" in options
        else ()
    )
    code, out, err = call(
        "--nomap", *options.split(), *more, *FAST, str(port), capsys=capsys
    )
    assert (code, steps, "time step: 5 ms, as the interface ambf expects" in err) == (
        0,
        [seconds],
        said,
    ), err
    assert f"steps of {1000.0 * seconds:g} ms" in out


def test_what_lives_as_long_as_the_run_is_not_looked_through_for_garbage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Collecting modules, kernels and the world would delay a step by 60 to 100 ms now
    and then.
    """
    import gc

    from botyard.servers.hub import Hub

    frozen: list[int] = []
    run = Hub.run

    async def watched(hub: Hub) -> int:
        frozen.append(gc.get_freeze_count())
        return await run(hub)

    monkeypatch.setattr(Hub, "run", watched)
    gc.unfreeze()
    try:
        assert (
            call(
                "-m",
                "office",
                "-r",
                "p3dx",
                "--no-gui",
                *FAST,
                str(free_port()),
                capsys=capsys,
            )[0]
            == 0
        )
        assert frozen[0] > 10_000
    finally:
        gc.unfreeze()


def test_the_help_names_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call("--help", capsys=capsys)
    assert code == 0 and set(re.findall(r"\w+", out)) >= set(main.COMMANDS)
    named = [name for names in overview.GROUPS.values() for name in names]
    assert sorted(named) == sorted(main.COMMANDS)
    code, out, _ = call("--help-all", capsys=capsys)
    _, _, listed = out.partition("Other commands")
    assert code == 0 and set(re.findall(r"\w+", listed.partition(":")[2])) == set(
        main.COMMANDS
    ) - {"run"}


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("recrod x", "run --record"),
        ("stduy plan.yaml", "study"),
        ("modles", "models"),
        ("bnech --n 3", "bench"),
        ("teleop 127.0.0.1:8101 now", "drive"),
        ("Compair a.csv b.csv", "compare"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(
    line: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(*line.split(), capsys=capsys)
    assert code in (253, 255) and len(err.splitlines()) <= 2
    assert (
        f'did you mean "botyard {meant}"?' in err
        or f'did you mean the command "botyard {meant}"?' in err
    )
    code, _, err = call("office", "x", capsys=capsys)
    assert code == 255 and "did you mean" not in err


@pytest.mark.parametrize("name", ["bench", "study", "traffic"])
def test_a_command_without_the_word_that_it_needs_shows_its_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(name, capsys=capsys)
    assert (code, out) == (255, "")
    assert (
        err.startswith(f"Usage: botyard {name} ")
        and "\nCommands:\n" in err
        and "\\n" not in err
    )


def test_a_word_of_a_command_that_takes_files_too_may_be_misspelt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = call("maps", "genrate", "warehouse", "x.map", capsys=capsys)
    assert code == 253 and 'did you mean the command "botyard maps generate"?' in err
    assert "did you mean" not in call("maps", "zzzz.map", capsys=capsys)[2]
