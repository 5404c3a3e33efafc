"""A damaged state loses only its own content; states and logs are written to their
named places.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botyard.app.compose import compose
from botyard.app.firstworld import with_map_of
from botyard.cli import run as cli_run
from botyard.cli.crash import crash_handler
from botyard.cli.logs import set_up_logging
from botyard.errors import CommandLineError, KeptFileError, TempFileError
from botyard.formats.crashstate import SavedRobot, SavedState
from botyard.geometry import Pose
from botyard.model.world import Program, World
from botyard.servers.jobs import supervise as supervisor
from botyard.servers.jobs.statefile import read_state, restore, state_of, write_state
from botyard.servers.jobs.supervise import keep_log
from botyard.servers.pioneer.packetlog import PacketLog
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import call
from tests.ports import free_port

posix = pytest.mark.skipif(os.name != "posix", reason="links and rights")
WAY = Program(name="waypoints", options={"points": [[1, 2], [3, 4]]})
REAL = SavedState(
    tick=7,
    map="",
    speed=2.0,
    paused=True,
    visitors={"127.0.0.1": Pose(1, 2, 3)},
    boxes={"Box:1": Pose(0.5, 0, -1)},
    robots=(
        SavedRobot(
            name="a", model="p3dx", pose=Pose(1.25, -2.5, 0.1), port=8101, program=WAY
        ),
        SavedRobot(name="b", model="box", pose=Pose(9, 9, 0)),
    ),
    factories=(8103,),
    page=(8100, "full", "audience"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)


def brought_back(path: Path) -> bool:
    """Start as after a crash with a given file; return whether it could be used."""
    said: list[str] = []
    state = read_state(path, said.append)
    assert (state is None) == bool(said)
    if state is None:
        return False
    sim = Simulation(begin=state.tick)
    sim.add_robot("p3dx", "here", pose=(4, 4, 0))

    async def main() -> None:
        robot_servers = compose(sim).robot_servers
        restore(robot_servers, state)
        sim.step(2)
        robot_servers.close()

    asyncio.run(main())
    return True


def paths_in(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        found += paths_in(inner, (*at, key))
    return found


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("state") / "state"
    write_state(REAL, path)
    assert read_state(path, pytest.fail) == REAL
    found: dict[str, Any] = json.loads(path.read_text())
    return found


SLOW = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)


@SLOW
@given(value=JSON)
def test_any_json_is_a_state_or_none(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text(json.dumps(value))
    assert brought_back(path) is False


NASTY = [
    None,
    True,
    -1,
    65536,
    10**18,
    10**40,
    1e300,
    -1e300,
    "",
    "x",
    "a\nb",
    "\0",
    "x" * 5000,
    "../../x.p",
    {},
    [],
    [[]],
    {"a": [1]},
    [1, 2, "x"],
]


@pytest.mark.parametrize("value", NASTY, ids=lambda v: repr(v)[:12])
def test_a_state_with_anything_in_any_place(
    value: Any, real: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "state"
    used = 0
    for way in filter(None, paths_in(real)):
        changed = copy.deepcopy(real)
        inner = changed
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = value
        path.write_text(json.dumps(changed))
        used += brought_back(path)

    assert used < len(paths_in(real)), "some place takes no such value"


@SLOW
@given(value=JSON, data=st.data())
def test_a_state_with_any_json_in_any_place(
    value: Any, data: st.DataObject, real: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(real)
    *way, last = data.draw(st.sampled_from([p for p in paths_in(changed) if p]))
    inner = changed
    for key in way:
        inner = inner[key]
    inner[last] = value
    path = tmp_path / "state"
    path.write_text(json.dumps(changed))
    brought_back(path)


@SLOW
@given(data=st.data())
def test_a_state_with_any_bytes_in_it(
    data: st.DataObject, real: dict[str, Any], tmp_path: Path
) -> None:
    raw = bytearray(json.dumps(real).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "state"
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    brought_back(path)


@pytest.mark.parametrize("depth", [5_000, 1_000_000])
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"version": 1, "tick": {}}',
        '{"version": 1, "robots": [{"program": {"name": "x", "options": {"a": {}}}}]}',
    ],
)
def test_deep_nesting_is_no_state(text: str, depth: int, tmp_path: Path) -> None:
    path = tmp_path / "state"
    head, _, tail = text.rpartition("{}")
    path.write_text(head + "[" * depth + "]" * depth + tail)
    assert brought_back(path) is False


def test_a_huge_file_and_a_folder_are_no_states(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with path.open("wb") as file:
        # A file that is all hole takes no room on the disk.
        file.truncate(300 * 2**20)
    assert brought_back(path) is False
    assert brought_back(tmp_path) is False


def test_a_map_of_nonsense_is_left_out(tmp_path: Path) -> None:
    context = cli_run.command.make_context("run", ["--nomap"])
    o = cli_run.RunOptions(**context.params)
    world = World(scene=Simulation().scene)
    for name in ("x" * 5000, "nowhere.map", str(tmp_path), "a/" * 2000):
        said: list[str] = []
        state = SavedState(tick=0, map=name, speed=1.0, paused=False)
        assert with_map_of(state, world, o, said.append) is world
        assert "cannot read the map" in said[0]


def test_ports_that_cannot_be_had_are_others() -> None:
    sim = Simulation()
    for n, name in enumerate("abc"):
        sim.add_robot("p3dx", name, pose=(2.0 * n, 0, 0))

    async def main() -> list[int]:
        first = free_port(8)
        robot_servers = compose(sim, port=first).robot_servers
        for robot in sim.robots.values():
            robot_servers._prepare(robot)
        taken = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", first + 4)
        wanted = {
            robot_servers.servers["a"]: first + 4,
            robot_servers.servers["b"]: first + 2,
        }
        await robot_servers.open(wanted)
        ports = [robot_servers.port_of(name) - first for name in "abc"]
        robot_servers.close()
        taken.close()
        return ports

    a, b, c = asyncio.run(main())
    assert b == 2 and len({a, b, c, 4}) == 4, (a, b, c)


# -- files of the program


@posix
def test_states_are_private_and_no_way_to_other_files(tmp_path: Path) -> None:
    path, victim = tmp_path / "state", tmp_path / "victim"
    victim.write_text("precious")
    before = os.umask(0)
    try:
        write_state(REAL, path)
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path).sort() is None and sorted(os.listdir(tmp_path)) == [
        "state",
        "victim",
    ]
    path.unlink()
    path.symlink_to(victim)
    with pytest.raises(OSError, match="found a link"):
        write_state(REAL, path)
    # Older versions wrote to this temporary file.
    (tmp_path / "state-new").symlink_to(victim)
    path.unlink()
    write_state(REAL, path)
    assert victim.read_text() == "precious"


def test_a_file_of_the_user_is_no_place_for_the_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("precious")
    code, _, err = call(
        "--nomap", "--no-gui", "--state-file", str(thesis), capsys=capsys
    )
    assert code == 254 and "the file is not a state file" in err
    assert thesis.read_text() == "precious"
    with contextlib.ExitStack() as stack:
        (tmp_path / "a.log-state").write_text("precious")
        elsewhere = supervisor._state_path(stack, str(tmp_path / "a.log"), None)
        assert elsewhere.parent != tmp_path
        write_state(REAL, tmp_path / "b.log-state")
        assert (
            supervisor._state_path(stack, str(tmp_path / "b.log"), None)
            == tmp_path / "b.log-state"
        ), "an old state is ours"
        assert supervisor._state_path(stack, "/dev/stdout", None).parent != Path("/dev")
        if os.name == "posix":
            (tmp_path / "link").symlink_to(thesis)
            with pytest.raises(TempFileError, match="found a link"):
                supervisor._state_path(stack, None, str(tmp_path / "link"))


@posix
def test_logs_and_recordings_follow_no_links(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("precious")
    link.symlink_to(victim)
    with pytest.raises(
        CommandLineError, match=r"--log-file: cannot write .*: .*found a link"
    ):
        set_up_logging(file=str(link))

    with pytest.raises(
        CommandLineError, match=r"--record-packets: cannot write .*: .*found a link"
    ):
        PacketLog(link, lambda: 0.0, force=True)

    (tmp_path / "a.log").write_text("lines")
    (tmp_path / "a.log-crash").symlink_to(victim)
    assert keep_log(str(tmp_path / "a.log")) == ""
    assert keep_log("/dev/null") == ""
    logs = set_up_logging()
    try:
        with crash_handler(logs, str(link)):
            pass
    finally:
        logs.close()

    assert victim.read_text() == "precious"


@posix
@pytest.mark.parametrize("number", [1, 3, 5])
def test_old_logs_replace_regular_files_only(number: int, tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", tmp_path / "a.log"
    victim.write_text("precious")
    (tmp_path / f"a.log-{number}").symlink_to(victim)
    logs = set_up_logging(file=str(file))
    import logging

    log = logging.getLogger("botyard.test")
    log.info("before")
    logs.rotate()
    log.info("after")
    logs.close()
    assert (
        victim.read_text() == "precious" and (tmp_path / f"a.log-{number}").is_symlink()
    )
    assert [line.split()[-1] for line in file.read_text().splitlines()] == [
        "before",
        "after",
    ], "it goes on in the same file"


def test_recordings_replace_recordings_only(tmp_path: Path) -> None:
    path = tmp_path / "lab.map"
    path.write_text("2D-Map\n")
    with pytest.raises(KeptFileError):
        PacketLog(path, lambda: 0.0)
    assert path.read_text() == "2D-Map\n"
    # In the second round the file is a recording of botyard, so `force` is not needed.
    for force in (True, False):
        log = PacketLog(path, lambda: 0.0, force=force)
        log.take("r", 1, 0, True, b"\x01")
        log.close()
        assert json.loads(path.read_text())["data"] == "01"


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """Odometry, battery, limits and motion go on; robots whose clients have left stop
    when their time is over.
    """

    def begin() -> RobotServers:
        robot_servers = compose(Simulation(seed=3)).robot_servers
        for name, y in (("a", 0.0), ("b", 3.0), ("c", 6.0), ("d", 9.0)):
            robot_servers.add("p3dx", name, Pose(0.0, y, 0.0))
        return robot_servers

    path = tmp_path / "state"

    async def first() -> tuple[Any, ...]:
        robot_servers = begin()
        sim = robot_servers.hub.sim
        a, b = sim.robots["a"], sim.robots["b"]
        a.claim("pioneer")
        a.command(v=0.3, w=0.1)
        b.command(v=0.2)
        a.electrics.test_battery(115)
        for source in ("api", "page"):
            sim.hold("c", source=source)
        sim.hold("d", source="page")
        sim.add_robot("amigo", "127.0.0.1", pose=(5.0, 5.0, 0.0))
        sim.step(20)
        write_state(state_of(robot_servers), path)
        robot_servers.close()
        return a.odom, a.state, a.electrics.volts, b.truth

    async def second(expected: tuple[Any, ...], monkey: pytest.MonkeyPatch) -> None:
        state = read_state(path, pytest.fail)
        assert state is not None
        robot_servers = begin()
        sim = robot_servers.hub.sim
        monkey.setattr("botyard.servers.jobs.statefile.ORPHAN_STOP_DELAY_S", 0.0)
        restore(robot_servers, state)
        a, b = sim.robots["a"], sim.robots["b"]
        assert (a.odom, a.state, a.electrics.volts, b.truth) == expected
        assert (
            sim.tick == 20
            and list(sim.robots) == ["a", "b", "c", "d"]
            and not a.clients
        )
        assert (sim.core.holders("c"), sim.core.holders("d")) == (("api",), ()), (
            "pages are gone, and hold nothing"
        )
        sim.step(3)
        assert a.velocity.vx > 0.1, "it goes on"
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        sim.step(30)
        assert a.velocity.vx == 0.0, "its client has not come back"
        assert b.velocity.vx == pytest.approx(0.2), "nobody's client drove it"
        robot_servers.close()

    with pytest.MonkeyPatch.context() as monkey:
        asyncio.run(second(asyncio.run(first()), monkey))


def test_a_world_that_is_another_one_keeps_places(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[str] = []
    state = replace(REAL, world=b"nonsense")
    write_state(state, tmp_path / "state")
    assert read_state(tmp_path / "state", said.append) == state and not said
    assert brought_back(tmp_path / "state")
    assert (
        "but not the rest of the state: state: expected bytes of save_state"
        in caplog.text
    )
