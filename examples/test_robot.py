"""Tests of a robot's program against the simulator, as a CI would run them: each test
has a world of its own, on free ports.

python -m pytest examples/test_robot.py
"""

from collections.abc import Iterator

import pytest

import botyard
from botyard.app.running import Running
from botyard.clients.pioneer import PioneerClient


@pytest.fixture
def running() -> Iterator[Running]:
    """A robot 1.5 m in front of a box."""
    sim = botyard.Simulation(seed=1)
    sim.add_robot("p3dx", "bob", pose=(0.0, 0.0, 0.0))
    sim.add_robot("box", "obstacle", pose=(1.5, 0.0, 0.0))
    with botyard.serve(sim, port=0, page=False, interval=0.02) as served:
        yield served


def drive_until_something_is_near(client: PioneerClient, near_mm: float) -> None:
    """The program that is tested: drive ahead, and stop in front of what is there."""
    client.enable()
    client.vel(300)
    while (
        client.update()
        and min((client.sonar_mm.get(i, 5000) for i in (3, 4)), default=5000) > near_mm
    ):
        pass

    client.stop()
    while client.update() and client.vel_mm_s:
        pass


def test_it_stops_in_front_of_a_box(running: Running) -> None:
    """It does not touch the box, and does not stop far from it."""
    with PioneerClient(*running.ports["bob"]) as client:
        drive_until_something_is_near(client, near_mm=600)
        assert not client.stalled

    pose = running.call(lambda: running.sim.robots["bob"].truth)
    assert 0.2 < pose.x < 1.1, pose


def test_what_it_says_is_where_it_is(running: Running) -> None:
    """Its odometry is near the truth after a short way."""
    with PioneerClient(*running.ports["bob"]) as client:
        client.enable()
        client.move(400)
        while client.update() and client.x_mm < 390:
            pass

    assert running.call(lambda: running.sim.robots["bob"].truth.x) == pytest.approx(
        0.4, abs=0.05
    )
