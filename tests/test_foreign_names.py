"""Foreign names and texts: every entrance refuses invalid robot names, and map objects
are shown escaped.

No foreign text is used as a format.
"""

from __future__ import annotations

import ast
import html
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import botyard
from botyard.cli.listing import file_stem, print_table
from botyard.cli.logs import INDENT, set_up_logging
from botyard.clients.pioneer import PioneerClient
from botyard.errors import BotyardError, FormatError, ModelError, WorldError
from botyard.formats import adf
from botyard.formats.base import Options, Source
from botyard.formats.registry import read_world
from botyard.geometry import Pose
from botyard.interfaces.metrics import metrics_text
from botyard.model.obstacles import BoxObject
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.model.scene import Area, Place, Scene
from botyard.model.sensors import LaserSpec
from botyard.names import MAX_NAME, body_name, is_name
from botyard.protocols.pioneer.packet import command as packet
from botyard.protocols.webgui import frames
from botyard.servers.pioneer.connection import RobotLog
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate, world_of
from tests.cli.test_cli import FAST, call
from tests.golden import deviation
from tests.ports import free_port
from tests.running import running

SOURCES = Path(botyard.__file__).parent
BAD = ["", "  ", "a\nb", "\x1b[2Jx", "a\u202eb", "a" * 65, "a\x00b", "a\x9bb"]
ODD = [
    "50%d",
    "%s%n",
    "%(name)s",
    "{0}",
    "[red]x[/red]",
    "<b>x</b>",
    'a"b',
    "a'b",
    "a/b",
    "../x",
    "a b",
    "é 日本",
    "$x$",
    "a" * 64,
]
EVIL = "g\n2026-01-01 00:00:00 INFO    forged\x1b[2J\u202e<script>%s"


# -- robots


def scenario(name: str) -> str:
    return (
        "botyard: 1\nrobots:\n- model: p3dx\n  name: "
        + json.dumps(name)
        + "\n  pose: [0, 0, 0]\n"
    )


def inline_model(name: str) -> str:
    return (
        "botyard: 1\nrobots:\n- model: {extends: p3dx, name: "
        + json.dumps(name)
        + "}\n"
    )


def walker(name: str) -> str:
    return (
        "botyard: 1\nobstacles:\n- disc: 0.2\n  name: "
        + json.dumps(name)
        + "\n  controller: walk\n"
    )


@pytest.mark.parametrize("name", [n for n in BAD if n])
@pytest.mark.parametrize("text", [scenario, inline_model, walker])
def test_files_with_robots_of_bad_names_are_refused_with_the_line(
    name: str, text: Callable[[str], str]
) -> None:
    with pytest.raises(
        FormatError, match="expected 1 to 64 printable characters"
    ) as error:
        read_world(Source("s.yaml", text(name).encode()), Options())
    assert error.value.line is not None and error.value.line >= 3


def test_a_count_makes_no_name_that_is_too_long() -> None:
    text = f"botyard: 1\nrobots:\n- {{name: {'a' * 62}, count: 3}}\n"
    with pytest.raises(BotyardError, match="1 to 64 printable"):
        populate(Simulation(), read_world(Source("s.yaml", text.encode()), Options()))


def test_worlds_of_stage_too() -> None:
    text = 'define p position ()\np ( name "ok" pose [0 0 0] )\np ( name "a\x1b[2Jb" pose [1 1 0] )\n'
    with pytest.raises(
        FormatError, match=r"a\.world:3: name of a robot: expected 1 to 64 printable"
    ):
        read_world(Source("a.world", text.encode()), Options())


def test_description_files_too(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        'bodies: [BODY a]\nBODY a:\n  name: "x\\ny"\n  mass: 1\n  geometry: {x: 1, y: 1, z: 1}\n  shape: Box\n'
    )
    with pytest.raises(
        FormatError, match=r"name of an? object: expected 1 to 64 printable"
    ):
        adf.read_adf(str(path), Options())


@pytest.mark.parametrize("name", BAD)
def test_programs_cannot_either(name: str) -> None:
    deviation("names-of-robots")
    sim = Simulation()
    with pytest.raises(
        WorldError, match="name of a robot: expected 1 to 64 printable characters"
    ):
        sim.add_robot("p3dx", name)

    with pytest.raises(WorldError, match="name of a robot: expected"):
        sim.add_robots("p3dx", [(0, 0, 0), (2, 0, 0)], ["fine", name])
    assert not sim.robots, "nothing is added if anything is wrong"
    with pytest.raises(ModelError, match="name of a robot model: expected"):
        RobotSpec(name=name)
    with pytest.raises(ModelError, match="name of a laser model: expected"):
        LaserSpec(type_name=name)
    if name:
        with pytest.raises(ModelError, match="name of a subclass of robots: expected"):
            PioneerSpec(subclass=name)


@pytest.mark.parametrize("name", [n for n in BAD if n and "\0" not in n])
def test_the_command_line_cannot_either(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(
        "--nomap", "-r", f"p3dx:{name}", *FAST, str(free_port()), capsys=capsys
    )
    assert code == 252
    last = err.splitlines()[-1]
    assert (
        last.startswith("botyard: error: ")
        and "printable characters" in last
        and err.replace("\n", "").isprintable()
    )


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_served_like_any_other(name: str, tmp_path: Path) -> None:
    sim = Simulation()
    sim.add_robot("p3dx", name)
    modem = NullModem(sim)
    line = modem.connect(name)
    for number in (0, 1, 2, 1):
        line.send(packet(number))
    modem.run(0.5)
    assert line.received
    assert any(text.startswith(f"{name}: ") for text in line.log), line.log
    for form in ("plain", "html", "json"):
        file = tmp_path / form
        logs = set_up_logging(file=str(file), form=form)
        RobotLog(logging.getLogger("botyard.pioneer"), {"robot": name}).info(
            "client %s connected, 100 %%", "127.0.0.1:5"
        )
        RobotLog(logging.getLogger("botyard.pioneer"), {"robot": name}).info(
            "all 100 % of it"
        )
        logs.close()
        first, second = file.read_text("utf-8").splitlines()
        if form == "json":
            row = json.loads(first)
            assert (row["robot"], row["text"]) == (
                name,
                f"{name}: client 127.0.0.1:5 connected, 100 %",
            )
            assert json.loads(second)["text"] == f"{name}: all 100 % of it"
        elif form == "html":
            assert f'<span class="stage-log-tag">{html.escape(name)}</span>' in first
            assert "client 127.0.0.1:5 connected, 100 %</span>" in first
        else:
            assert first.endswith(f"{name}: client 127.0.0.1:5 connected, 100 %")
            assert second.endswith(f"{name}: all 100 % of it")


@pytest.mark.peer
def test_a_robot_named_50_percent_d_serves_its_port() -> None:
    port = free_port(2)
    with running(
        "--nomap",
        "-r",
        "p3dx:50%d",
        "-r",
        "amigo:[red]<b>%s",
        "-p",
        str(port),
        "--no-gui",
    ) as (_, ready):
        assert [r["name"] for r in ready["robots"]] == ["50%d", "[red]<b>%s"]
        for n in range(2):
            with PioneerClient(port=port + n) as client:
                assert client.update()


# -- objects of a map


@pytest.fixture
def evil() -> Scene:
    box = BoxObject(name=EVIL, pose=Pose(1, 1, 0), length=0.5, width=0.5)
    return Scene(
        name=EVIL * 3,
        boxes=(
            box,
            replace(box, pose=Pose(3, 3, 0)),
            replace(box, name="", pose=Pose(5, 5, 0)),
        ),
        places=(
            Place(kind="Goal", name=EVIL, pose=Pose(0, 0, 0)),
            Place(kind=EVIL, name="", pose=Pose(1, 0, 0)),
        ),
        areas=(
            Area(
                kind="ForbiddenArea",
                name=EVIL,
                corners=((0, 0), (1, 0), (1, 1), (0, 1)),
            ),
        ),
    )


def test_things_of_a_map_keep_their_names_and_are_shown_escaped(
    evil: Scene, tmp_path: Path
) -> None:
    sim = Simulation(evil)
    assert all(map(is_name, sim.core.box_names)) and len(set(sim.core.box_names)) == 3
    assert "\\n" in sim.core.box_names[0] and sim.core.box_names[2] == "box"
    assert [b.name for b in sim.scene.boxes[:2]] == [EVIL, EVIL], (
        "the model has them as they are"
    )
    assert world_of(sim).scene.boxes[0].name == EVIL
    about = frames.encode_map(evil)
    text = json.loads(about[8 : 8 + int.from_bytes(about[4:8], "little")])
    for shown in (
        text["name"],
        text["places"][0]["name"],
        text["places"][1]["kind"],
        text["areas"][0]["name"],
    ):
        assert is_name(shown) and "forged" in shown

    sim.render(tmp_path / "a.png")
    assert "forged" not in metrics_of(sim), "no label of the metrics is a name"


def metrics_of(sim: Simulation) -> str:
    import asyncio

    from botyard.app.compose import compose

    async def main() -> str:
        return metrics_text(compose(sim).hub, (), 0)

    return asyncio.run(main())


@given(st.lists(st.text(max_size=80), max_size=6))
def test_bodies_of_boxes_have_names_of_their_own_whatever_the_map_calls_them(
    names: list[str],
) -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "box")
    boxes = tuple(
        BoxObject(name=n, pose=Pose(9.0 * i, 9, 0), length=0.5, width=0.5)
        for i, n in enumerate(names)
    )
    sim.replace_scene(Scene(boxes=boxes))
    assert all(map(is_name, sim.core.box_names))
    assert len({"box", *sim.core.box_names}) == len(names) + 1
    assert is_name(body_name(names[0] if names else ""))


def test_maps_are_listed_escaped_and_pictures_stay_in_their_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "../../out\x1b[2J[red]x"
    Path("a.yaml").write_text(
        f"botyard: 1\nname: {json.dumps(name)}\nwalls: [[[0, 0], [1, "
        f"1]]]\nplaces: [{{name: {json.dumps(EVIL)}, pose: [0, 0]}}]\n"
    )
    folder = tmp_path / "deep" / "pictures"
    code, out, _ = call("maps", "a.yaml", "--png", str(folder), capsys=capsys)
    assert code == 0
    assert "\x1b" not in out and "\u202e" not in out and "\\x1b[2J[red]x" in out
    assert not [line for line in out.splitlines() if line.startswith("2026")]
    assert len(os.listdir(folder)) == 1
    assert sorted(os.listdir(tmp_path)) == ["a.yaml", "deep"]
    assert os.listdir(tmp_path / "deep") == ["pictures"]


@given(st.text(max_size=200))
def test_names_of_files_stay_in_their_folder(name: str) -> None:
    stem = file_stem(name)
    assert Path("folder", f"{stem}.png").resolve().parent == Path("folder").resolve()
    assert (
        stem
        and not stem.startswith(".")
        and len(stem) <= MAX_NAME
        and stem.isprintable()
    )


def test_names_that_come_to_one_file_lose_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("a/b", "a:b", "A_B")
    for k, name in enumerate(names):
        Path(f"{k}.yaml").write_text(
            f"botyard: 1\nname: {json.dumps(name)}\nwalls: [[[0, 0], [1, 1]]]\n"
        )

    assert (
        call("maps", "0.yaml", "1.yaml", "2.yaml", "--png", "p", capsys=capsys)[0] == 0
    )
    assert sorted(os.listdir("p")) == ["A_B_3.png", "a_b.png", "a_b_2.png"]


def test_two_models_of_one_subclass_do_not_overwrite_each_others_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, speed in (("one", 0.5), ("two", 0.7)):
        Path(f"{name}.toml").write_text(
            f'extends = "p3dx"\n[limits]\nmax_speed = [{speed}, 0.0, 90]\n[pioneer]\nsubclass = "ours"\n'
        )

    code, _, err = call(
        "models", "one.toml", "two.toml", "--parameter-files", "p", capsys=capsys
    )
    assert (code, os.listdir("p")) == (0, ["ours.p"])
    assert (
        "two: clients read ours.p, which already describes one; that file is kept"
        in err
    )
    assert (
        "500" in Path("p/ours.p").read_text()
        and "700" not in Path("p/ours.p").read_text()
    )


def test_the_options_in_force_are_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a\nlog-file: b.yaml").write_text("seed: 5\n")
    code, out, _ = call(
        "--nomap", "--config", "a\nlog-file: b.yaml", "--print-config", capsys=capsys
    )
    assert code == 0 and "seed: 5  # a\\nlog-file: b.yaml" in out.splitlines()


def test_names_of_64_letters_are_announced() -> None:
    pytest.importorskip("zeroconf")
    from botyard.servers.mdns import MAX_LABEL, SERVICE, _service

    for name in ("a" * 64, "日" * 64, "50%d.b"):
        info = _service(name, "p3dx", "127.0.0.1", 8101)
        assert len(info.name.removesuffix(f".{SERVICE}").encode()) <= MAX_LABEL
        assert all(
            len(k) + 1 + len(v or b"") <= 255 for k, v in info.properties.items()
        )
        info.dns_pointer().name.encode()


def test_tables_know_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ("a", "b"), [("[red]x[/red]", "[/nonsense]"), ("[link=http://x]y", ":smile:")]
    )
    out = capsys.readouterr().out
    for text in ("[red]x[/red]", "[/nonsense]", "[link=http://x]y", ":smile:"):
        assert text in out


def test_errors_and_remarks_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text('botyard: 1\n"k\\nforged\\e[2J": 1\n')
    Path("b.map").write_text("2D-Map\x1b[2J\u202e\nforged")
    for file in ("a.yaml", "b.map"):
        for args in (
            ("scenario", "check", file),
            ("-m", file, *FAST, str(free_port())),
        ):
            code, out, err = call(*args, capsys=capsys)
            assert code in (252, 253)
            message, page = (out + err).splitlines()
            assert message.isprintable() and page.startswith("See: docs/formats/")


# -- the log


def logged(
    folder: Path, form: str, write: Callable[[logging.Logger], None]
) -> list[str]:
    file = folder / f"log-{form}"
    file.unlink(missing_ok=True)
    logs = set_up_logging(file=str(file), form=form, verbose=True)
    write(logging.getLogger("botyard.test"))
    logs.close()
    return file.read_text("utf-8").split("\n")[:-1]


def fails(log: logging.Logger) -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("it failed: %s", EVIL)


def test_a_message_is_one_plain_line_and_a_trace_is_indented(tmp_path: Path) -> None:
    (line,) = logged(tmp_path, "plain", lambda log: log.info("says %s", EVIL))
    assert line.isprintable() and "\\x1b[2J" in line and "\\u202e" in line
    first, *trace = logged(tmp_path, "plain", fails)
    assert " ERROR   it failed: g\\n2026" in first
    assert trace[0] == f"{INDENT}Traceback (most recent call last):"
    assert len(trace) > 2 and all(
        row.startswith(INDENT) and row.isprintable() for row in trace
    ), "none can be taken for a line"
    assert any("ValueError: g" in row for row in trace)


def test_html_has_the_classes_of_old_style_sheets(tmp_path: Path) -> None:
    (line,) = logged(tmp_path, "html", lambda log: log.warning("says %s", EVIL))
    parts = re.fullmatch(
        r'<span class="stage-log stage-log-Warning warning"><span class="stage-log-time">([^<]*)</span> '
        r'<span class="stage-log-tag">test</span> <span class="stage-log-msg">([^<]*)</span></span><br>',
        line,
    )
    assert parts is not None, line
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", parts[1])
    assert (
        parts[2].startswith("says g\\n2026")
        and "&lt;script&gt;%s" in parts[2]
        and line.isprintable()
    )
    first, *trace = logged(tmp_path, "html", fails)
    assert first.startswith('<span class="stage-log stage-log-Error error">')
    assert all(
        row.startswith("&nbsp;" * len(INDENT)) and row.endswith("<br>") for row in trace
    )
    assert not [row for row in trace if "<script" in row or not row.isprintable()]


@given(st.text(max_size=60))
def test_json_keeps_what_was_said_and_is_printable(text: str) -> None:
    import tempfile

    if not text.isprintable() and any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        return
    with tempfile.TemporaryDirectory() as folder:
        (line,) = logged(Path(folder), "json", lambda log: log.info("%s", text))
    assert line.isprintable()
    assert json.loads(line)["text"] == text


def is_log(called: ast.Attribute) -> bool:
    """Return whether this is a logging method of a logger or a similar object."""
    of = ast.unparse(called.value).rpartition(".")[2].lstrip("_")
    if called.attr == "log":
        # Sessions return log lines as texts, which the logger then gets as arguments.
        return of not in (
            "np",
            "math",
            "session",
            "s",
        )

    return of in ("log", "logger") and called.attr in (
        "debug",
        "info",
        "warning",
        "error",
        "exception",
        "critical",
    )


def calls_of_logs() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and is_log(node.func)
            ):
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", node


def is_fixed(text: ast.expr) -> bool:
    """Return whether a format is constant: no variable is a part of it."""
    return isinstance(text, ast.Constant) or (
        isinstance(text, ast.IfExp) and is_fixed(text.body) and is_fixed(text.orelse)
    )


EXCEPTIONS = {
    # RobotLog is tested above.
    "servers/pioneer/connection.py",
    # The log lines of a session pass through here as arguments too.
    "protocols/pioneer/conversation.py",
    # The session returns its own lines, which `Connection` logs as arguments.
    "protocols/pioneer/session.py",
    "control/error_barrier.py",
    # These are the formats of uvicorn.
    "servers/web/http.py",
    # This module passes on the formats of its callers, which are checked themselves.
    "servers/throttledlog.py",
}


def test_no_text_of_others_is_a_format() -> None:
    found: list[str] = []
    seen = 0
    for where, node in calls_of_logs():
        assert isinstance(node.func, ast.Attribute)
        args = node.args[1:] if node.func.attr == "log" else node.args
        seen += 1
        if args and not is_fixed(args[0]) and where.partition(":")[0] not in EXCEPTIONS:
            found.append(f"{where}: {ast.unparse(args[0])}")

    assert seen > 80, "the search finds calls"
    assert not found, "\n".join(found)


def test_fields_of_a_record_do_not_matter(tmp_path: Path) -> None:
    def write(log: logging.Logger) -> None:
        extra: dict[str, Any] = {"robot": EVIL}
        log.info("hello", extra=extra)

    for form in ("plain", "html", "json"):
        (line,) = logged(tmp_path, form, write)
        assert line.isprintable() and "<script" not in line.replace(
            "<script>%s", "" if form == "json" else "<script>%s"
        )
