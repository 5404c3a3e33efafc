"""Runs on sector paths that are saved as a scenario, and run again when it is loaded."""

from __future__ import annotations

import io
import urllib.request
import zipfile

import pytest

from botyard.errors import WorldFileError
from botyard.formats.base import Options, Source
from botyard.formats.registry import read_world
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from botyard.traffic.live import LiveTraffic
from tests.page.serving import TOKEN, Served, served

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
