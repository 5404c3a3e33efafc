"""Gestures, keys and buttons of the page, each checked by its effect on the engine."""

from __future__ import annotations

import io
import math
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from botyard.clients.pioneer import PioneerClient
from botyard.devices.robotjoints import RevoluteJointSpec
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.sim.simulation import Robot, Simulation
from tests.page.pages import PageObject, page
from tests.page.serving import AUDIENCE, Served, served
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

MAP = (
    "2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 7000\nNumLines: 2\nLINES\n0 0 "
    "9000 0\n9000 0 9000 7000\nDATA\n"
)


def world() -> Simulation:
    import numpy as np

    room = [[0, 0, 16, 0], [16, 0, 16, 10], [16, 10, 0, 10], [0, 10, 0, 0]]
    scene = Scene(
        name="room",
        segments=np.array(room, float),
        boxes=(BoxObject(name="Box:1", pose=Pose(12, 8, 0), length=1.0, width=0.6),),
    )
    sim = Simulation(scene, step=0.05, odometry_error="none")
    sim.add_robot("p3dx", "ann", pose=(3, 3, 0))
    sim.add_robot("amigo", "bob", pose=(6, 5, 1))
    return sim


@pytest.fixture
def run(browser: Browser) -> Iterator[tuple[Served, PageObject]]:
    with served(world()) as simulator, page(browser, simulator.url) as one:
        yield simulator, one


def where(simulator: Served, name: str) -> Pose:
    """Return the true pose of a robot or box; call it in the simulator's thread."""
    snapshot = simulator.sim.snapshot
    return Pose(*snapshot.state.pose[snapshot.rows[name]].tolist())


def pose(simulator: Served, name: str) -> Pose:
    return simulator.do(lambda: where(simulator, name))


def near(
    a: Pose, x: float, y: float, th: float | None = None, slack: float = 0.06
) -> bool:
    turned = 0.0 if th is None else abs(math.remainder(a.th - th, 2 * math.pi))
    return math.hypot(a.x - x, a.y - y) < slack and turned < slack


def test_a_drag_moves_the_true_pose_and_not_the_odometry(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    before = simulator.do(lambda: simulator.sim.robots["ann"].odom)
    one.drag((3, 3), (5, 4))
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 5, 4, 0))
    assert simulator.do(lambda: simulator.sim.robots["ann"].odom) == before
    simulator.wait(lambda: simulator.sim.snapshot.state.held.sum() == 0)
    assert one.js("__sim.selection.names.join()") == "ann"


def test_a_robot_that_drives_is_held_while_it_is_dragged(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    ann = simulator.sim.robots["ann"]
    simulator.do(lambda: ann.command(v=0.0, w=0.4))
    one.drag((3, 3), (5, 4), drop=False)
    simulator.wait(lambda: near(ann.truth, 5, 4))
    heading = pose(simulator, "ann").th
    one.tab.wait_for_timeout(400)
    assert near(pose(simulator, "ann"), 5, 4, heading, 0.02)
    one.tab.mouse.up()
    simulator.wait(
        lambda: abs(ann.truth.th - heading) > 0.2
        # After its release the robot follows its command again.
    )


def test_a_drag_goes_on_when_other_robots_come_and_go(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.drag((6, 5), (8, 5), drop=False)
    simulator.wait(lambda: near(simulator.sim.robots["bob"].truth, 8, 5))
    simulator.do(lambda: simulator.robot_servers.remove(["ann"]))
    simulator.do(lambda: simulator.robot_servers.add("amigo", "carol", Pose(2, 8, 0)))
    one.until("__sim.roster.bodies.map(b => b.name).join() === 'bob,carol,Box:1'")
    one.tab.mouse.move(*one.at(9, 6))
    simulator.wait(lambda: near(simulator.sim.robots["bob"].truth, 9, 6))
    assert simulator.do(lambda: int(simulator.sim.snapshot.state.held.sum())) == 1
    one.tab.mouse.up()
    simulator.wait(lambda: simulator.sim.snapshot.state.held.sum() == 0)
    assert near(pose(simulator, "carol"), 2, 8)


def test_escape_puts_it_back(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.drag((3, 3), (5, 4), drop=False)
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 5, 4))
    one.tab.keyboard.press("Escape")
    one.tab.mouse.up()
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 3, 3, 0))


@pytest.mark.parametrize(
    ("button", "key"), [("right", None), ("left", "Shift"), ("left", "Control")]
)
def test_turning_towards_the_pointer(
    run: tuple[Served, PageObject], button: str, key: str | None
) -> None:
    simulator, one = run
    one.drag((3, 3), (3, 5), button=button, key=key)
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 3, 3, math.pi / 2))


def test_a_box_of_the_map_is_dragged_turned_and_removed(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.drag((12, 8), (10, 6))
    simulator.wait(lambda: near(where(simulator, "Box:1"), 10, 6))
    one.drag((10, 6), (10, 8), button="right")
    simulator.wait(lambda: near(where(simulator, "Box:1"), 10, 6, math.pi / 2))
    one.press("Delete")
    simulator.wait(lambda: simulator.sim.core.box_names == ())


def test_several_are_selected_in_a_box_and_moved_together(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.drag((1.5, 1.5), (8, 7), key="Shift")
    assert sorted(one.js("__sim.selection.names")) == ["ann", "bob"]
    one.drag((3, 3), (4, 3))
    simulator.wait(lambda: near(simulator.sim.robots["bob"].truth, 7, 5, 1))
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 4, 3, 0))


def test_pan_and_zoom_at_the_pointer(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    before = one.at(8, 8)
    one.drag((8, 8), (9, 7))
    after = one.at(8, 8)
    assert math.dist(before, after) == pytest.approx(
        math.sqrt(2) * one.js("__sim.camera.scale"), abs=3
    )
    spot, scale = one.at(8, 8), one.js("__sim.camera.scale")
    one.tab.mouse.move(*spot)
    one.tab.mouse.wheel(0, -240)
    one.until(f"__sim.camera.scale > {scale * 1.2}")
    assert math.dist(spot, one.at(8, 8)) < 1.5
    one.drag((8, 8), (8, 7), button="middle")
    one.drag((8, 8), (8, 7), key="Alt")
    one.drag((8, 8), (9, 8), button="right")
    one.drag((8, 8), (9, 8), key="Control")
    # None of these drags touched a robot.
    assert near(pose(simulator, "ann"), 3, 3, 0)
    one.press("h")
    one.until(f"Math.abs(__sim.camera.scale - {scale}) < 0.01 * {scale}")


def test_keys_nudge_and_the_wheel_turns(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.click(3, 3)
    one.press("w")
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 3.1, 3, 0, 0.02))
    one.press("a")
    simulator.wait(
        lambda: near(simulator.sim.robots["ann"].truth, 3.1, 3, math.radians(5), 0.02)
    )
    one.tab.mouse.move(*one.at(3.1, 3))
    one.tab.mouse.wheel(0, -100)
    simulator.wait(
        lambda: near(simulator.sim.robots["ann"].truth, 3.1, 3, math.radians(10), 0.02)
    )


def leave(robot: Robot) -> None:
    """End a client's session, which switches the motors off."""
    port = robot.port("pioneer")
    port.claim()
    port.release()


def test_arrows_drive_while_they_are_held(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    ann = simulator.sim.robots["ann"]
    simulator.do(lambda: leave(ann))
    one.click(3, 3)
    one.tab.keyboard.down("ArrowUp")
    simulator.wait(lambda: ann.velocity.vx > 0.3)
    assert simulator.do(lambda: ann.clients) == ("page",)
    one.until("__sim.session.clients.ann?.includes('page')")
    one.tab.keyboard.up("ArrowUp")
    simulator.wait(lambda: abs(ann.velocity.vx) < 0.01 and ann.clients == ())
    one.tab.keyboard.down("ArrowLeft")
    simulator.wait(lambda: ann.velocity.w > 0.3)
    one.tab.keyboard.up("ArrowLeft")
    simulator.wait(lambda: abs(ann.velocity.w) < 0.01)


def test_the_robot_stops_when_the_window_loses_the_focus_or_the_connection(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    ann = simulator.sim.robots["ann"]
    one.click(3, 3)
    for lost in (
        "window.dispatchEvent(new Event('blur'))",
        "__sim.connection.socket.close()",
    ):
        one.tab.keyboard.down("ArrowUp")
        simulator.wait(lambda: ann.velocity.vx > 0.3)
        one.js(lost)
        simulator.wait(lambda: abs(ann.velocity.vx) < 0.01 and ann.clients == ())
        one.tab.keyboard.up("ArrowUp")

    one.until("__sim.session.status === 'open'")


def test_the_joystick_on_the_screen(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    ann = simulator.sim.robots["ann"]
    one.click(3, 3)
    one.button("Joystick").click()
    box = one.tab.locator(".pad").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    one.tab.mouse.move(x, y)
    one.tab.mouse.down()
    one.tab.mouse.move(x, y - 60)
    simulator.wait(lambda: ann.velocity.vx > 0.3)
    one.tab.mouse.up()
    simulator.wait(lambda: abs(ann.velocity.vx) < 0.01)


def test_time(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.button("Pause").click()
    simulator.wait(lambda: simulator.hub.is_paused)
    tick = simulator.do(lambda: simulator.sim.tick)
    one.tab.wait_for_timeout(300)
    assert simulator.do(lambda: simulator.sim.tick) == tick
    # A drag works in a paused world as well.
    one.drag((3, 3), (5, 4))
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 5, 4))
    assert simulator.do(lambda: simulator.sim.tick) == tick
    one.until("__sim.clock.info.paused")
    one.button("One step").click()
    simulator.wait(lambda: simulator.sim.tick == tick + 1)
    one.press(".")
    simulator.wait(lambda: simulator.sim.tick == tick + 2)
    one.press("Space")
    simulator.wait(
        lambda: simulator.sim.tick > tick + 4 and not simulator.hub.is_paused
    )
    one.tab.get_by_label("Speed").select_option("5")
    simulator.wait(lambda: simulator.hub.speed == 5)
    one.until("__sim.clock.info.ratio > 3 && __sim.clock.info.speed === 5")
    one.press("]")
    simulator.wait(lambda: simulator.hub.speed == 10)
    one.tab.get_by_label("Speed").select_option("0")
    simulator.wait(lambda: simulator.hub.interval is None)
    one.until("__sim.clock.info.fastest")
    one.tab.get_by_label("Speed").select_option("0.1")
    simulator.wait(lambda: simulator.hub.speed == 0.1)


def test_positions_are_reset(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.drag((3, 3), (5, 4))
    one.drag((12, 8), (10, 6))
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 5, 4))
    one.press("Control+p")
    simulator.wait(lambda: near(simulator.sim.robots["ann"].truth, 3, 3, 0))
    simulator.wait(lambda: near(where(simulator, "Box:1"), 12, 8, 0))


def test_robots_are_added_and_clients_find_them(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.button("Add robot").click()
    one.tab.get_by_role("option", name="peoplebot ").first.click()
    one.tab.get_by_role("textbox", name="Name").fill("carol")
    one.button("Add peoplebot").click()
    simulator.wait(lambda: "carol" in simulator.sim.robots)
    one.until(
        "__sim.selection.names.join() === 'carol' && __sim.roster.bodies.find(b "
        "=> b.name === 'carol')?.port > 0"
    )
    port = one.js("__sim.roster.bodies.find(b => b.name === 'carol').port")
    with PioneerClient("127.0.0.1", port) as client:
        assert client.subclass.lower().startswith("peoplebot")
        one.until("__sim.session.clients.carol?.includes('pioneer')")


def test_a_model_is_typed_and_placed_where_one_clicks(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.press("Insert")
    one.tab.get_by_role("searchbox", name="Model").fill("seekurjr")
    one.tab.get_by_role("listbox").get_by_role("option").first.click()
    one.button("Place it …").click()
    one.drag((9, 3), (9, 4))
    simulator.wait(lambda: "seekurjr" in simulator.sim.robots)
    assert near(pose(simulator, "seekurjr"), 9, 3, math.pi / 2)


def test_clone_select_all_and_remove(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.click(3, 3)
    one.press("Control+d")
    simulator.wait(lambda: "p3dx" in simulator.sim.robots)
    one.until("__sim.selection.names.join() === 'p3dx' && __sim.roster.robots === 3")
    port = simulator.do(lambda: simulator.robot_servers.port_of("p3dx"))
    one.press("Control+a")
    one.until("__sim.selection.names.length === 3")
    one.press("Delete")
    simulator.wait(lambda: not simulator.sim.robots)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def test_maps_are_loaded_dropped_and_taken_away(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.press("Control+l")
    one.tab.get_by_role("button", name="warehouse").click()
    simulator.wait(lambda: simulator.sim.scene.name == "warehouse")
    one.until("__sim.maps.name === 'warehouse' && __sim.world.map.walls.length > 0")
    drop = """text => {
      const data = new DataTransfer();
      data.items.add(new File([text], "mine.map"));
      document.querySelector(".page").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    one.tab.evaluate(drop, MAP)
    simulator.wait(lambda: len(simulator.sim.scene.segments) == 2)
    one.until("__sim.world.map.walls.length === 8")
    one.tab.evaluate(drop, "this is no map")
    one.tab.get_by_text("2D-Map").first.wait_for()
    assert simulator.do(lambda: len(simulator.sim.scene.segments)) == 2
    # The browser logs the refused upload as an error, as expected.
    one.errors.clear()
    one.press("Control+l")
    one.tab.get_by_role("button", name="no map an empty plane").click()
    simulator.wait(lambda: simulator.sim.scene.is_empty)


def test_another_map_is_shown_whole_at_once_and_never_with_the_old_walls(
    run: tuple[Served, PageObject], tmp_path: Path
) -> None:
    """Each picture shows one world:

    the map's name, its walls (or none yet), and a view of all of it.
    """
    simulator, one = run
    far = MAP.replace("0 0 9000 0", "60000 30000 69000 30000").replace(
        "9000 0 9000 7000", "69000 30000 69000 37000"
    )
    (tmp_path / "far.map").write_text(far.replace("9000 7000\nNum", "69000 37000\nNum"))
    # From then on the page's first picture has the walls of the first map.
    one.until("__sim.world.map.walls.length === 16")
    fetched: list[Route] = []
    one.tab.route("**/map/*.bin", lambda route: fetched.append(route))
    one.js(
        "(() => { const sim = __sim, stage = sim.painter.stage, draw = "
        "stage.drawNow; window.__seen = [];"
        " stage.drawNow = () => { draw.call(stage); __seen.push([sim.maps.name, "
        "sim.world.map.walls.length / 4,"
        " sim.camera.x + sim.world.schema.origin[0], sim.camera.y + "
        "sim.world.schema.origin[1]]); }; })()"
    )
    one.press("Control+l")
    one.tab.locator("input[type=file]").set_input_files(str(tmp_path / "far.map"))
    simulator.wait(lambda: simulator.sim.scene.name == "far")
    one.until("__sim.maps.name === 'far' && __seen.length > 5")
    one.until("__seen.at(-1)[0] === 'far'")
    one.tab.wait_for_timeout(100)
    for route in fetched:
        route.continue_()
    one.until("__seen.at(-1)[1] === 2")
    x0, y0, x1, y1 = one.js(
        "(([x, y], b) => [b[0] + x, b[1] + y, b[2] + x, b[3] + "
        "y])(__sim.world.schema.origin, __sim.world.bounds())"
    )
    assert x0 < 3 and y0 < 3 and (x1, y1) == (69, 37), (
        "from the robots, which stay where they are, to the walls"
    )
    whole = (round((x0 + x1) / 2, 3), round((y0 + y1) / 2, 3))
    seen = dict.fromkeys(
        (name, walls, round(x, 3), round(y, 3))
        for name, walls, x, y in one.js("__seen")
    )
    assert list(seen) == [("room", 4, 8, 5), ("far", 0, *whole), ("far", 2, *whole)]


def test_worlds_bring_their_robots_and_are_saved(
    run: tuple[Served, PageObject], tmp_path: Path
) -> None:
    simulator, one = run
    text = (
        "define wall model ( gui_move 0 ) wall ( size [0.2 4 1] pose [5 0 0 0] )"
        'position ( name "stagey" pose [1 1 0 0] size [0.4 0.4 0.4] )'
    )
    drop = """text => {
      const data = new DataTransfer();
      data.items.add(new File([text], "mine.world"));
      document.querySelector(".page").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    one.tab.evaluate(drop, text)
    simulator.wait(lambda: "stagey" in simulator.sim.robots)
    one.until("__sim.roster.bodies.some((b) => b.name === 'stagey' && b.port > 0)")
    assert simulator.do(lambda: len(simulator.sim.scene.segments)) == 4
    with one.tab.expect_download() as download:
        one.press("Control+s")
    download.value.save_as(tmp_path / "saved.zip")
    saved = Simulation.load(tmp_path / "saved.zip")
    assert set(saved.robots) == simulator.do(lambda: set(simulator.sim.robots))
    assert len(saved.scene.segments) == 4


def test_a_map_is_read_again(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "lab.map"
    path.write_text(MAP)
    sim = Simulation.load(path)
    sim.add_robot("p3dx", "ann", pose=(3, 3, 0))
    with (
        served(sim, folders=(tmp_path,)) as simulator,
        page(browser, simulator.url) as one,
    ):
        path.write_text(
            MAP.replace("NumLines: 2", "NumLines: 3").replace(
                "DATA", "0 0 0 7000\nDATA"
            )
        )
        one.press("Control+r")
        simulator.wait(lambda: len(sim.scene.segments) == 3)
        one.press("Control+l")
        one.tab.get_by_role("button", name="lab.map").wait_for()


def test_pictures_are_saved(
    run: tuple[Served, PageObject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    _, one = run
    monkeypatch.chdir(tmp_path)
    with one.tab.expect_download() as download:
        one.press("Control+f")
    with Image.open(download.value.path()) as picture:
        assert picture.format == "PNG" and picture.width > 500
        assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 10

    one.press("Control+g")
    one.tab.get_by_role("spinbutton").fill("0.1")
    one.button("Start").click()
    one.until("__sim.capture.sequence?.count >= 3")
    with one.tab.expect_download() as download:
        one.button("Stop and save").click()
    with zipfile.ZipFile(
        io.BytesIO(Path(download.value.path()).read_bytes())
    ) as archive:
        assert len(archive.namelist()) >= 3 and archive.testzip() is None

    one.tab.get_by_label("Format").select_option("jpeg")
    with one.tab.expect_download() as download:
        one.button("Save one now").click()
    with Image.open(download.value.path()) as picture:
        assert picture.format == "JPEG"
    one.button("Let the simulator write one").click()
    one.tab.get_by_text("the simulator has written").wait_for()
    assert (tmp_path / "botyard.png").is_file()


def test_motors_and_the_red_button(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    ann = simulator.sim.robots["ann"]
    one.click(3, 3)
    one.button("Motors off").click()
    simulator.wait(lambda: not ann.motors_on)
    one.button("Motors on").click()
    simulator.wait(lambda: ann.motors_on)
    one.button("Emergency stop").click()
    simulator.wait(lambda: ann.electrics.estop_pressed and not ann.motors_on)
    one.button("Release the stop").click()
    simulator.wait(lambda: not ann.electrics.estop_pressed)


def test_actuators_of_a_selected_robot_are_commanded(
    run: tuple[Served, PageObject],
) -> None:
    """Angles in degrees, as shown; a number beyond the limits is refused with the
    reason.
    """
    simulator, one = run
    pan = RevoluteJointSpec(joint="pan", low=-1.0, high=1.5)
    dora = simulator.do(
        lambda: simulator.sim.add_robot(
            find_robot("p3dx").fitted(pan), "dora", pose=(3, 6, 0)
        )
    )
    one.tab.get_by_role("button", name="dora").click()

    position = one.tab.get_by_label("position")
    position.fill("45")
    position.press("Enter")
    simulator.wait(
        lambda: (
            abs(dora.devices["revolute_joint"].read().position - math.radians(45))
            < 0.01
        )
    )
    position.fill("400")
    position.press("Enter")
    one.tab.get_by_text("position: expected a number from -1 to 1.5 rad").wait_for()
    assert abs(dora.devices["revolute_joint"].read().position - math.radians(45)) < 0.01


def test_a_selected_robots_sensors_are_read_and_no_others(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    ann, bob = simulator.sim.robots["ann"], simulator.sim.robots["bob"]
    assert not ann.laser.is_read
    one.click(3, 3)
    simulator.wait(lambda: ann.laser.is_read)
    one.until(
        "__sim.painter.drawn.fans === 1 && __sim.painter.drawn.sonar === 1 && "
        "__sim.readouts.details[0]?.nearest > 0"
    )
    one.tab.get_by_role("button", name="bob").click()
    simulator.wait(
        lambda: not ann.laser.is_read and bob.sonar is not None and bob.sonar.is_read
    )
    one.press("l")
    one.press("n")
    one.until("__sim.painter.drawn.fans === 0 && __sim.painter.drawn.sonar === 0")
    one.press("Escape")
    simulator.wait(lambda: not (bob.sonar and bob.sonar.is_read))


def test_the_inspector_shows_what_the_engine_knows(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.click(6, 5)
    one.until("__sim.readouts.details[0]?.name === 'bob'")
    one.tab.get_by_text("6.000, 5.000 m, 57.3°").first.wait_for()
    simulator.do(lambda: simulator.sim.robots["bob"].command(v=0.2))
    one.tab.get_by_text("0.20 m/s, 0.0°/s").first.wait_for()
    one.until("__sim.readouts.histories.get('bob').v.some(v => v > 0.15)")
    assert one.tab.locator(".uplot").count() == 4


def test_layers_by_key_and_box(run: tuple[Served, PageObject]) -> None:
    _, one = run
    for key, layer in {
        "g": "grid",
        "d": "bodies",
        "f": "fill",
        "t": "trails",
        "m": "map",
        "o": "odometry",
    }.items():
        before = one.js(f"__sim.settings.layers.{layer}")
        one.press(key)
        assert one.js(f"__sim.settings.layers.{layer}") is not before, layer
        one.press(key)

    one.tab.get_by_text("Layers", exact=True).click()
    one.tab.get_by_label("Walls and points").click()
    assert one.js("__sim.settings.layers.map") is False
    one.tab.get_by_label("amigo", exact=True).click()
    one.until("__sim.painter.drawn.bodies === 2")


def test_the_log_is_filtered_and_shown_as_text(run: tuple[Served, PageObject]) -> None:
    import logging

    simulator, one = run
    log = logging.getLogger("botyard.test")
    simulator.do(lambda: log.info("<b>bold</b> <img src=x onerror=alert(1)>"))
    simulator.do(lambda: log.warning("danger %d", 7))
    one.until("__sim.log.warnings > 0")
    one.press("q")
    lines = one.tab.get_by_role("log")
    lines.get_by_text("danger 7").wait_for()
    assert lines.locator("img").count() == 0
    assert lines.locator(".bold").inner_text() == "bold"
    one.tab.get_by_label("Least level").select_option("warning")
    one.until("!document.querySelector('[role=log]').innerText.includes('bold')")
    one.tab.get_by_label("Filter", exact=True).fill("nothing like it")
    lines.get_by_text("Nothing yet.").wait_for()


def test_interfaces_are_stopped_and_started(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    port = simulator.do(lambda: simulator.robot_servers.port_of("ann"))
    one.tab.get_by_text("Interfaces", exact=True).click()
    box = one.tab.get_by_role("checkbox", name="pioneer")
    box.click()
    simulator.wait(lambda: not simulator.robot_servers.interfaces["pioneer"].on)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    box.click()
    simulator.wait(lambda: simulator.robot_servers.port_of("ann") == port)
    with PioneerClient("127.0.0.1", port) as client:
        assert client.name


def test_looking_into_the_engine(run: tuple[Served, PageObject]) -> None:
    _, one = run
    one.click(3, 3)
    for key, found in {"1": "squares", "2": "squares", "3": "squares"}.items():
        one.press(f"Alt+{key}")
        one.until(f"__sim.world.debug?.{found}.length > 10")
        one.press(f"Alt+{key}")
        one.until("__sim.world.debug === null")

    one.drag((6, 5), (3.3, 3.25))
    one.press("Alt+4")
    one.until("__sim.world.debug?.names.length === 1")
    one.press("Alt+4")
    one.click(12, 8)
    assert one.js("__sim.selection.names.join()") == "Box:1"
    one.press("Alt+3")
    one.press("Alt+4")
    assert one.js("__sim.probe.what") is None
    assert one.tab.locator(".toast.bad").count() == 0, "they are about robots"


def test_ruler_follow_theme_and_help(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.press("r")
    one.until("__sim.hand")
    one.js("__sim.measuring.snaps = false")
    one.drag((4, 8), (7, 8))
    length = float(one.js("__sim.measuring.rows[0].words").split()[0])
    assert length == pytest.approx(3.0, abs=0.03)
    one.press("Escape")
    one.tab.mouse.dblclick(*one.at(3, 3))
    one.until("__sim.viewpoint.follow === 'ann'")
    simulator.do(lambda: simulator.sim.put("ann", (9, 6, 0)))
    one.until(
        "Math.hypot(__sim.camera.x + __sim.world.schema.origin[0] - 9, "
        "__sim.camera.y + __sim.world.schema.origin[1] - 6) < 0.1"
    )
    one.press("Escape")
    one.button("Light or dark").click()
    assert one.js("document.documentElement.dataset.theme") == "dark"
    one.press("?")
    one.tab.get_by_text("drive the selected robot while held").wait_for()
    one.tab.keyboard.press("Escape")
    one.until("__sim.panels.dialog === 'none'")


def test_the_status_bar(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    with PioneerClient(
        "127.0.0.1", simulator.do(lambda: simulator.robot_servers.port_of("ann"))
    ):
        one.tab.get_by_text("1 client", exact=True).wait_for()

    bar = one.tab.locator("footer").inner_text()
    for part in ("Time", "sim/real", "step", "2 robots", "botyard"):
        assert part in bar
    counts = []
    for select in ("Escape", "Control+a"):
        one.press(select)
        chosen = int(one.js("__sim.selection.names.length"))
        simulator.wait(
            lambda chosen=chosen: (
                simulator.sim.robots["ann"].laser.is_read is bool(chosen)
            )
        )  # type: ignore[misc]
        counts.append(simulator.do(lambda: simulator.sim.fleet.subscriptions))
        one.tab.locator("footer").get_by_text(
            f"subs {counts[-1]}", exact=True
        ).wait_for()

    assert counts[0] < counts[1], "more sensors are read"
    behind = """(async ratio => {
      __sim.clock.info = { ...__sim.clock.info, ratio };
      await Promise.resolve();
      return document.querySelector("footer .bad") !== null;
    })"""
    assert one.js(f"{behind}(0.6)") is True and one.js(f"{behind}(0.8)") is False


def test_an_audience_looks_on_and_touches_nothing(browser: Browser) -> None:
    with (
        served(world()) as simulator,
        page(browser, f"{simulator.base}/#token={AUDIENCE}") as one,
    ):
        one.tab.get_by_text("looking on").wait_for()
        one.drag((3, 3), (5, 4))
        one.press("Space")
        one.press("Delete")
        assert (
            one.js("__sim.connection.request({type: 'pause'}).catch(e => e.message)")
            == "this page may only watch"
        )
        assert near(pose(simulator, "ann"), 3, 3, 0) and not simulator.do(
            lambda: simulator.hub.is_paused
        )
        assert one.button("Pause").is_disabled()


def test_hovering_shows_a_pose(run: tuple[Served, PageObject]) -> None:
    _, one = run
    one.tab.mouse.move(*one.at(6, 5))
    one.until("__sim.world.hovered === 1 && __sim.selection.hoverName === 'bob'")
    bar = one.tab.locator("footer")
    bar.get_by_text("bob").wait_for()
    # The bar shows the pointer's position, m.
    bar.get_by_text("6.0").wait_for()


def test_reflectors_are_marked(run: tuple[Served, PageObject]) -> None:
    """GUI-041: bright reflections have their own marks."""
    simulator, one = run
    simulator.do(
        lambda: simulator.sim.add_robot("box-reflector", "mirror", pose=(5, 3, 0))
    )
    one.until("__sim.roster.bodies.some(b => b.name === 'mirror')")
    for renderer in ("canvas2d", "webgl2"):
        one.js(f"__sim.settings.setRenderer('{renderer}')")
        one.until(f"__sim.painter.renderer === '{renderer}'")
        one.click(3, 3)
        one.until("__sim.world.frame.readings.some(r => r.bright.length > 3)")
        one.press("h")
        box = one.tab.locator(".stage").bounding_box()
        assert box is not None
        px, py = one.at(4.76, 3)
        from PIL import Image

        with Image.open(io.BytesIO(one.tab.locator(".stage").screenshot())) as picture:
            x, y = round(px - box["x"]), round(py - box["y"])
            found = [
                picture.convert("RGB").getpixel((x + i, y + j))
                for i in range(-4, 5)
                for j in range(-6, 7)
            ]

        assert any(r > 150 and g < 60 and b > 150 for r, g, b in found), renderer


def test_hundreds_are_moved_and_removed_at_once(browser: Browser) -> None:
    sim = Simulation(step=0.05)
    sim.add_robots("amigo", [(i % 20, i // 20, 0.0) for i in range(340)])
    with served(sim) as simulator, page(browser, simulator.url) as one:
        one.press("Control+a")
        one.drag((10, 8), (11, 8.5))
        simulator.wait(lambda: abs(sim.poses[:, 0].mean() - (9.5 + 1)) < 0.1)
        simulator.wait(lambda: sim.snapshot.state.held.sum() == 0)
        simulator.wait(lambda: abs(sim.poses[339] - (19 + 1, 16.5, 0)).max() < 0.15)
        one.press("Delete")
        one.button("Remove 340").click()
        simulator.wait(lambda: not sim.robots)
