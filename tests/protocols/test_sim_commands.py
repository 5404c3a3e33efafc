"""Commands to the simulator behind the robot (pioneer-protocol §4.2, §4.4, §8, §9;
decisions, "Pioneer").
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from botyard.control import USER, ClearMap, LoadMap
from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.protocols.pioneer.packet import Parser, frame
from botyard.protocols.pioneer.simreports import MapChanged, SimDevice, SimInfo
from botyard.servers.jobs.pictures import Pictures
from botyard.sim.simulation import Simulation
from tests.protocols.lines import Client, named

names = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


def write_map(path: Path, x: int = 3000) -> Path:
    path.write_text(f"2D-Map\nMinPos: 0 0\nLINES\n{x} -9000 {x} 9000\nDATA\n")
    return path


def changes(client: Client, seconds: float = 0.1) -> list[MapChanged]:
    return [MapChanged.decode(p) for p in client.get(0x66, seconds)]


# -- layouts


@given(
    st.builds(
        MapChanged, by_user=st.booleans(), loaded=st.integers(-128, 127), name=names
    )
)
def test_map_changed_survives_the_wire(report: MapChanged) -> None:
    (packet,) = Parser().feed_bytes(report.encode())
    assert MapChanged.decode(packet) == report


@given(
    st.builds(
        SimInfo,
        application=names,
        version=names,
        flags=st.integers(0, 2**32 - 1),
        devices=st.lists(
            st.builds(SimDevice, names, names, st.integers(0, 255), st.just(0)),
            max_size=12,
        ),
    )
)
def test_siminfo_survives_the_wire_as_far_as_it_fits(info: SimInfo) -> None:
    (packet,) = Parser().feed_bytes(info.encode())
    back = SimInfo.decode(packet)
    assert (back.application, back.version, back.flags) == (
        info.application,
        info.version,
        info.flags,
    )
    assert back.devices == info.devices[: len(back.devices)]
    assert len(packet.data) <= 195
    assert len(back.devices) == len(info.devices) or len(packet.data) > 80, (
        "left out only for want of room"
    )


def test_layouts_byte_by_byte() -> None:
    assert MapChanged(loaded=1, name="a.map").encode()[3:-2] == b"\x66\x00\x01a.map\0"
    info = SimInfo(
        application="A", version="1", flags=2, devices=[SimDevice("r.x:0", "x", 3)]
    )
    assert (
        info.encode()[3:-2] == b"\x63A\x001\0\x02\0\0\0\x01\0\0\0r.x:0\0x\0\x03\0\0\0\0"
    )


def test_siminfo_lists_the_robots_devices() -> None:
    c = Client("p3dx-with-rear-laser", version="9.9", siminfo_flags=1)
    c.ctrl(6)
    info = SimInfo.decode(c.get(0x63)[0])
    assert (info.application, info.version, info.flags) == ("AMRISim", "9.9", 1)
    assert [(d.name, d.type_name, d.number) for d in info.devices] == [
        ("r.pioneerSonar:0", "pioneerSonar", 0),
        ("r.sicklms200:0", "sicklms200", 0),
        ("r.sicklms200:1", "sicklms200", 1),
    ]


# -- maps


@pytest.mark.parametrize("nul", [False, True])
def test_a_client_loads_a_map(tmp_path: Path, nul: bool) -> None:
    write_map(tmp_path / "Mine.map")
    c = Client(folders=(tmp_path,))
    before = c.robot.truth
    c.ctrl(1, named("mine.MAP", nul))
    assert changes(c) == [MapChanged(loaded=1, name="mine.MAP")]
    assert c.robot.truth == before
    assert c.robot.laser.read().ranges[90] == pytest.approx(3.0)
    assert c.sim.scene.name.lower() == "mine"
    c.ctrl(1, named("mine.MAP", nul))
    assert changes(c) == [MapChanged(loaded=0, name="mine.MAP")], (
        "unchanged: told to who asked"
    )


def test_a_changed_file_is_loaded_again(tmp_path: Path) -> None:
    path = write_map(tmp_path / "a.map")
    c = Client(folders=(tmp_path,))
    c.ctrl(1, named("a.map"))
    c.run()
    write_map(path, 4000)
    os.utime(path, ns=(path.stat().st_mtime_ns + 10**9,) * 2)
    c.ctrl(1, named("a.map"))
    assert [m.loaded for m in changes(c)] == [1]
    assert c.robot.laser.read().ranges[90] == pytest.approx(4.0)


def test_everybody_is_told_of_a_new_map_and_only_who_asked_of_the_rest(
    tmp_path: Path,
) -> None:
    write_map(tmp_path / "a.map")
    c = Client(folders=(tmp_path,))
    c.sim.add_robot("amigo", "other", pose=Pose(0, 3, 0))
    other = c.open("other")
    syncing = c.sim.add_robot("amigo", "third", pose=Pose(0, 5, 0))
    half = c.modem.connect(syncing.name)
    half.send(frame(0))
    half.take()
    for name, mine, theirs in (
        ("a.map", [1], [1]),
        ("a.map", [0], []),
        ("none.map", [2], []),
    ):
        c.ctrl(1, named(name))
        assert [m.loaded for m in changes(c)] == mine
        assert [
            MapChanged.decode(p).loaded
            for p in Parser().feed_bytes(other.take())
            if p.id == 0x66
        ] == theirs

    assert half.take() == b"", "a client in the handshake would not understand"


def test_a_map_that_a_user_loads_is_said_to_be_a_users(tmp_path: Path) -> None:
    """SIM-022:

    the first byte is 1 for a load at the page, 0 for one by a client; all clients get
    both.
    """
    write_map(tmp_path / "a.map")
    write_map(tmp_path / "b.map", 5000)
    c = Client(folders=(tmp_path,))
    c.modem.control.do(USER, LoadMap(map="a.map"))
    assert changes(c) == [MapChanged(by_user=True, loaded=1, name="a.map")]
    c.ctrl(1, named("b.map"))
    assert changes(c) == [MapChanged(by_user=False, loaded=1, name="b.map")]
    assert len(c.sim.scene.segments)
    c.modem.control.do(USER, ClearMap())
    assert [(m.by_user, m.loaded) for m in changes(c)] == [(True, 1)]
    assert not len(c.sim.scene.segments), "and the map is gone"


def test_a_map_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "bad.map").write_text("this is no map\n")
    c = Client(scene=Scene(segments=np.array([[2.0, -9, 2.0, 9]])), folders=(tmp_path,))
    for name in ("bad.map", "nowhere.map", ""):
        c.ctrl(1, named(name))
        assert [m.loaded for m in changes(c)] == [2]

    assert c.robot.laser.read().ranges[90] == pytest.approx(2.0)


def test_names_reach_the_log_without_control_characters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    c = Client(folders=(tmp_path,))
    for operation in (1, 2, 1):
        c.ctrl(operation, named("evil\x1b[31m\n.map"))
    text = caplog.text + "".join(c.log)
    assert r"evil\x1b[31m\n.map" in text
    assert "\x1b" not in text


def test_master_mode(tmp_path: Path) -> None:
    write_map(tmp_path / "a.map")
    write_map(tmp_path / "b.map", 5000)
    c = Client(folders=(tmp_path,))
    c.ctrl(2, named("a.map"))
    assert [m.loaded for m in changes(c)] == [1]
    c.ctrl(1, named("b.map"))
    assert changes(c) == [MapChanged(loaded=0, name="b.map")]
    assert any("master mode" in text for text in c.log)
    c.ctrl(2, named("b.map"))
    assert [m.loaded for m in changes(c)] == [1], "the master may"
    c.ctrl(3)
    c.ctrl(1, named("a.map"))
    assert [m.loaded for m in changes(c)] == [1]


def test_maps_come_from_allowed_folders_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    write_map(outside / "secret.map")
    write_map(inside / "fine.map")
    (inside / "link.map").symlink_to(outside / "secret.map")
    (inside / "folder").symlink_to(outside)
    (inside / "sub").mkdir()
    write_map(inside / "sub/deep.map")
    c = Client(folders=(inside,))
    for name in (
        "../out/secret.map",
        str(outside / "secret.map"),
        "link.map",
        "folder/secret.map",
        "/etc/passwd",
        "..",
        ".",
    ):
        c.ctrl(1, named(name))
        assert [m.loaded for m in changes(c)] == [2], name

    for name in (
        "fine.map",
        "sub/deep.map",
        "sub/../fine.map",
        str(inside / "sub/deep.map"),
        "office",
    ):
        c.ctrl(1, named(name))
        assert [m.loaded for m in changes(c)] == [1], name


@given(st.binary(max_size=60))
def test_no_name_harms(data: bytes) -> None:
    c = _SHARED[0]
    c.line.send(frame(236, b"\x3b\x01\x00" + data))
    assert not c.line.closed


_SHARED = [Client(sim=Simulation())]


# -- log, snapshot, ghost, odometry


def test_log_state() -> None:
    c = Client("p3dx-equipped")
    c.ctrl(5)
    text = "\n".join(c.log)
    for part in (
        "true pose x=0.000",
        "odometry x=",
        "battery 13.00 V",
        "gripper holds nothing",
        "model p3dx-equipped",
    ):
        assert part in text

    c.ctrl(5, named("before the turn"))
    assert "as the client requested (before the turn)" in "\n".join(c.log)


def test_log_rotation_without_a_file_is_refused_politely() -> None:
    c = Client()
    c.ctrl(4)
    assert any("not written to a file" in text for text in c.log)


def test_ghost_and_back() -> None:
    c = Client()
    c.sim.add_robot("p3dx", "other", pose=Pose(2.0, 0, math.pi))
    other = c.open("other")
    assert c.sim.robots["other"].laser.read().ranges[90] < 2.0
    c.ctrl(7)
    c.run(0.1)
    assert c.sim.robots["other"].laser.read().ranges[90] > 30
    c.ctrl(201)
    c.run(0.1)
    assert c.sim.robots["other"].laser.read().ranges[90] < 2.0
    assert not other.closed


def test_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    c = Client()
    c.ctrl(8)
    c.ctrl(8)
    assert sum("less than 1 s ago" in text for text in c.log) == 1, (
        "drawing holds up the steps, so there is a pause"
    )
    c.run(1.1)
    c.ctrl(8)
    c.run(1.1)
    c.ctrl(8, named("../../evil/my view.exe"))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "botyard-2.png",
        "botyard.png",
        "myview.png",
    ]
    with Image.open(tmp_path / "botyard.png") as picture:
        assert picture.width > 100
    assert sum("picture written to" in text for text in c.log) == 3


def test_a_picture_goes_to_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder counts at the request, even if the working directory changes before
    drawing.
    """
    waiting: list[Callable[[], object]] = []

    class Slow:
        """Host that starts its work later."""

        def run_in_background(self, work: Callable[[], object], _then: object) -> None:
            waiting.append(work)

    pictures = Pictures(Simulation(), Slow(), limits=None)  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    pictures.write("")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert waiting.pop()() == tmp_path / "botyard.png"
    assert (tmp_path / "botyard.png").is_file()


def test_odometry_errors_off_and_on() -> None:
    c = Client(sim=Simulation(odometry_error="constant"))
    assert c.robot.state.odometry_error.x == pytest.approx(0.0075)
    c.ctrl(200, b"\x00")
    c.run(0.1)
    assert c.robot.state.odometry_error.x == 0.0
    c.ctrl(200, b"\x01")
    c.run(0.1)
    assert c.robot.state.odometry_error.x == pytest.approx(0.0075)


def test_unknown_operations_are_named() -> None:
    c = Client()
    for operation in (0, 9, 99, 199, 300):
        c.ctrl(operation)
        assert any(f"operation {operation} is unknown" in text for text in c.log)

    c.line.send(frame(236))
    assert any("operation 0 is unknown" in text for text in c.log)
    assert c.run(0.2)


# -- the end


@pytest.mark.parametrize(
    ("number", "argument", "status"),
    [(239, 3, 3), (239, 0, 0), (253, None, 236), (255, None, 236)],
)
def test_exits(number: int, argument: int | None, status: int) -> None:
    c = Client()
    c.send(number, argument)
    assert c.modem.exit_status == status


def test_exits_from_elsewhere_need_leave() -> None:
    c = Client()
    c.line.connection.is_local = False
    for number in (239, 253, 255):
        c.send(number, 1)
    assert c.modem.exit_status is None
    assert (
        sum(
            "not allowed from another machine (--allow-client-exit)" in text
            for text in c.log
        )
        == 3
    )
    c.modem.control.allow_exit = True
    c.send(239, 1)
    assert c.modem.exit_status == 1


# -- the old SRIsim


def test_srisim_commands_move_the_robot() -> None:
    c = Client(srisim_compat=True)
    c.send(66, 1500)
    c.send(67, -700)
    c.send(68, 90)
    c.run(0.1)
    assert c.robot.truth == Pose(1.5, -0.7, pytest.approx(math.pi / 2))
    assert c.robot.odom == Pose()
    c.send(69)
    c.run(0.1)
    assert c.robot.truth == Pose()
    assert sum("an old command of SRIsim" in text for text in c.log) == 4
    c.send(66, 1)
    assert sum("an old command of SRIsim" in text for text in c.log) == 4, (
        "once a number"
    )


def test_srisims_end() -> None:
    c = Client(srisim_compat=True)
    c.send(62, 1)
    assert c.modem.exit_status == 0


def test_without_srisim_compatibility_the_numbers_mean_other_things() -> None:
    c = Client()
    for number in (62, 66, 67, 68, 69):
        c.send(number, 1000)
    c.run(0.1)
    assert c.modem.exit_status is None
    assert c.robot.truth == Pose()


# -- options of the log


def test_log_packets_and_movement() -> None:
    c = Client(log_packets=True, log_movement=True)
    c.send(11, 200)
    c.run(0.3)
    assert any("received command 11 (VEL), data 3b c8 00" in text for text in c.log)
    assert any(" y=0 th=0, wheels " in text for text in c.log)
    quiet = Client()
    quiet.send(11, 200)
    quiet.run(0.3)
    assert not any(
        "received command" in text or "wheels" in text for text in quiet.log
    ), "only with the options"


def test_ignored_commands_do_nothing() -> None:
    c = Client(ignore_commands=frozenset({11, 236}))
    c.send(11, 200)
    c.ctrl(7)
    c.run(0.5)
    assert c.robot.truth == Pose()
    assert not any("ghost" in text for text in c.log)


def test_a_message_reaches_the_log() -> None:
    c = Client()
    c.line.send(bytes.fromhex("fafb18ee2b1368656c6c6f2066726f6d207265636f72646572810d"))
    assert any('the client says: "hello from recorder"' in text for text in c.log)
