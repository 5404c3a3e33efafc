"""Runs on sector paths that are saved as a scenario, and run again when it is loaded."""

from __future__ import annotations

import io
import urllib.request
import zipfile

import pytest

from botyard.control import Caller, Level, SendMap, Undo
from botyard.errors import BudgetError, WorldFileError
from botyard.formats.base import Options, Source
from botyard.formats.crashstate import SavedRobot, SavedState
from botyard.formats.registry import read_world
from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.servers.jobs.statefile import restore
from botyard.sim.simulation import Simulation
from botyard.traffic.live import LiveTraffic
from tests.page.serving import TOKEN, Served, served
from tests.waiting import PATIENCE

PATHS = {
    "ann": [(0.0, 0.0), (9.0, 0.0), (9.0, 3.0)],
    "bob": [(0.0, 9.0)],
}


def live(simulator: Served) -> LiveTraffic:
    traffic = simulator.robot_servers.control.traffic
    assert isinstance(traffic, LiveTraffic)
    return traffic


def test_what_is_left_of_the_paths_runs_again() -> None:
    sim = Simulation(Scene(name="yard"), seed=1, odometry_error="none")
    sim.add_robot("p3dx", "ann", pose=(-9.0, 0.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(0.0, -9.0, 1.57))
    sim.add_robot("p3dx", "eve", pose=(20.0, 20.0, 0.0))
    with served(sim, interval=0.01) as simulator:
        traffic = live(simulator)
        simulator.do(lambda: traffic.run(PATHS, "fcfs", 0.5))
        simulator.wait(lambda: sim.robots["ann"].truth.x > 1.0)
        simulator.do(simulator.hub.pause)
        request = urllib.request.Request(
            f"{simulator.url.split('#')[0].split('?')[0]}scenario.zip",
            headers={"authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request) as answer:
            data = answer.read()
        # An ended run leaves nothing.
        simulator.do(traffic.end)
        assert simulator.do(traffic.left) is None
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        text = next(
            packed.read(name).decode()
            for name in packed.namelist()
            if name.endswith(".yaml")
        )
    assert "supervisor: fcfs" in text and "speed: 0.5" in text
    # In a simulator that runs, and in a new one.
    with served(Simulation(), interval=0.01) as simulator:
        simulator.do(lambda: simulator.desk.load_file("saved.zip", data, "this test"))
        traffic = live(simulator)
        simulator.wait(lambda: traffic.present is not None)
        paths = simulator.do(lambda: dict(traffic.paths))
        # Ann starts where it stood, behind the first of its points.
        assert 1.0 < paths["ann"][0][0] < 3.0
        assert paths["ann"][1:] == ((9.0, 0.0), (9.0, 3.0))
        assert paths.keys() == {"ann", "bob"} and traffic.supervisor == "fcfs"
        simulator.wait(lambda: traffic.ending == "completed")
        there = simulator.do(lambda: simulator.sim.robots["ann"].truth)
        assert abs(there.x - 9.0) < 0.2 and abs(there.y - 3.0) < 0.2


@pytest.mark.parametrize(
    ("traffic", "reason"),
    [
        ("{paths: {eve: [[1, 0]]}}", 'expected the name of a robot .*found "eve"'),
        ("{paths: {}}", "expected 1 to 200 paths, found 0"),
        ("{paths: {ann: []}}", "expected 1 to 200 points, found 0"),
        ("{paths: {ann: [[1, 0]]}, speed: 0}", "expected 0.01 to 10 m/s, found 0"),
    ],
)
def test_wrong_paths_are_refused_with_their_place(traffic: str, reason: str) -> None:
    text = f"botyard: 1\nrobots:\n- name: ann\ntraffic: {traffic}\n"
    with pytest.raises(WorldFileError, match=rf"a\.yaml:4.*{reason}"):
        read_world(Source("a.yaml", text.encode()), Options())


SAVED = b"""
botyard: 1
robots:
- {name: ann, model: p3dx, pose: [-9, 0, 0]}
traffic: {paths: {ann: [[0, 0], [9, 0]]}}
"""


def yard() -> Simulation:
    sim = Simulation(Scene(name="yard"), seed=1, odometry_error="none")
    sim.add_robot("p3dx", "ann", pose=(4.0, 4.0, 0.0))
    return sim


def test_paths_start_where_the_loaded_file_puts_a_present_robot() -> None:
    with served(yard(), interval=0.01) as simulator:
        simulator.do(lambda: simulator.desk.load_file("saved.yaml", SAVED, "this test"))
        traffic = live(simulator)
        simulator.wait(lambda: traffic.present is not None)
        paths = simulator.do(lambda: dict(traffic.paths))
        assert paths["ann"] == ((-9.0, 0.0), (0.0, 0.0), (9.0, 0.0))


def test_a_restart_after_a_crash_does_not_start_the_traffic_again() -> None:
    world = read_world(Source("a.yaml", SAVED), Options())
    with served(yard(), interval=0.01) as simulator:
        there = SavedRobot(name="ann", model="p3dx", pose=Pose(3, 1, 0))
        state = SavedState(tick=0, map="", speed=1.0, paused=True, robots=(there,))
        traffic = live(simulator)

        def restart() -> bool:
            simulator.robot_servers.populate(world)
            started = traffic.present is not None
            restore(simulator.robot_servers, state)
            return started

        assert simulator.do(restart)
        assert simulator.do(lambda: traffic.present) is None
        assert simulator.do(lambda: simulator.sim.robots["ann"].truth.x) == 3.0


@pytest.mark.parametrize("has_changed", [False, True])
def test_undo_of_a_load_ends_the_run_that_it_started(has_changed: bool) -> None:
    with served(yard(), interval=0.01) as simulator:
        control, traffic = simulator.robot_servers.control, live(simulator)
        caller = Caller("page", Level.OWN, key="me", undo_group=0)
        load = SendMap(map="saved.yaml", data=SAVED)
        loaded = simulator.do(lambda: control.do(caller, load))
        assert loaded.result(PATIENCE)
        assert traffic.present is not None
        if has_changed:
            simulator.do(lambda: traffic.run({"ann": [(5.0, 5.0)]}))
        undone = simulator.do(lambda: control.do(caller, Undo()))
        undone.result(PATIENCE)
        assert simulator.sim.scene.name == "yard"
        assert (traffic.present is not None) is has_changed


@pytest.mark.parametrize("x", ["1.0e+9", "1.0e+308"])
def test_paths_of_a_file_stay_in_the_extent_of_worlds(x: str) -> None:
    text = SAVED.replace(b"[9, 0]", f"[{x}, 0]".encode())
    with pytest.raises(BudgetError, match="extent"):
        read_world(Source("a.yaml", text), Options())
