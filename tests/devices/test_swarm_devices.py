"""Range-and-bearing messages, LEDs and the omnidirectional camera of swarm robots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.leds import LedsSpec, OmniCameraSpec, ring
from botyard.devices.rangebearing import (
    MAX_BYTES,
    RangeAndBearingSpec,
    payload,
)
from botyard.errors import ArgumentError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.devices import DeviceSpec
from botyard.model.library import parse_robot
from botyard.model.scene import Scene

PLACES = {"a": (0.0, 0.0, 0.5), "b": (2.0, 0.0, 0.0), "c": (0.0, 2.5, 1.0)}


def swarm(
    *specs: DeviceSpec,
    walls: Any = (),
    places: dict[str, tuple[float, float, float]] | None = None,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    scene = Scene(segments=np.array(walls, np.float64).reshape(-1, 4))
    sim = botyard.Simulation(scene, **({"seed": 6} | options))
    model = find_robot("amigo")
    for spec in specs:
        model = model.fitted(spec)
    return sim, {
        name: sim.add_robot(model, name, pose=pose)
        for name, pose in (PLACES if places is None else places).items()
    }


def say(robot: Any, message: bytes) -> None:
    robot.devices["range_and_bearing"].write(**payload(message))


def heard(robot: Any) -> list[Any]:
    return robot.devices["range_and_bearing"].read()


# -- range and bearing


def test_messages_arrive_with_range_and_bearing_in_the_next_step() -> None:
    at = Pose(0.1, 0.0, 0.2)
    sim, robots = swarm(RangeAndBearingSpec(pose=at))
    say(robots["b"], b"hello")
    say(robots["c"], b"")
    assert heard(robots["a"]) == []
    sim.step()
    (one,) = heard(robots["a"])
    ax, ay = 0.1 * math.cos(0.5), 0.1 * math.sin(0.5)
    assert one.data == b"hello"
    assert one.range == pytest.approx(math.hypot(2.1 - ax, ay))
    assert one.bearing == pytest.approx(math.atan2(-ay, 2.1 - ax) - 0.5 - 0.2)
    # A sender does not hear itself.
    assert heard(robots["b"]) == []
    # It sends until it is silenced.
    sim.step(3)
    assert [m.data for m in heard(robots["a"])] == [b"hello"]
    robots["b"].devices["range_and_bearing"].command("silence", 1.0)
    sim.step()
    assert heard(robots["a"]) == []


def test_exact_links_are_those_of_the_fleet() -> None:
    """The same neighbours, ranges and bearings as `Fleet.range_and_bearing`."""
    places = {
        # No two distances are equal.
        f"r{k}": (
            1.3 * (k % 4) + 0.004 * k * k,
            1.1 * (k // 4) + 0.003 * k**3 % 0.4,
            0.7 * k,
        )
        for k in range(12)
    }
    wall = [[1.9, -1.0, 1.9, 1.6]]
    for occlusion, word in ((0, "none"), (1, "walls"), (2, "all")):
        spec = RangeAndBearingSpec(range_max=2.6, occlusion=occlusion)
        sim, robots = swarm(spec, walls=wall, places=places)
        for k, robot in enumerate(robots.values()):
            say(robot, bytes([k]))
        sim.step()
        links = sim.fleet.range_and_bearing(2.6, occlusion=word)
        for k, robot in enumerate(robots.values()):
            part = slice(links.offsets[k], links.offsets[k + 1])
            found = heard(robot)
            assert [m.data[0] for m in found] == links.senders[part].tolist()
            assert [m.range for m in found] == pytest.approx(links.ranges[part])
            assert [m.bearing for m in found] == pytest.approx(links.bearings[part])


def test_messages_are_lost_at_random() -> None:
    sim, robots = swarm(RangeAndBearingSpec(loss=0.3))
    say(robots["b"], b"x")
    count = 0
    for _ in range(400):
        sim.step()
        count += len(heard(robots["a"]))
    assert count / 400 == pytest.approx(0.7, abs=0.07)


@pytest.mark.parametrize("step", [0.1, 0.02])
def test_the_bandwidth_bounds_what_arrives(step: float) -> None:
    """30 bytes/s: with four senders of 10 bytes 3 messages a second arrive, of any of them."""
    places = {"a": (0.0, 0.0, 0.0)} | {
        f"s{k}": (0.8 * math.cos(k), 0.8 * math.sin(k), 0.0) for k in range(4)
    }
    spec = RangeAndBearingSpec(bandwidth=30.0)
    sim, robots = swarm(spec, places=places, step=step)
    for name, robot in robots.items():
        if name != "a":
            say(robot, name.encode() * 5)
    found = []
    for _ in range(round(60 / step)):
        sim.step()
        found += [m.data[:2] for m in heard(robots["a"])]
    assert len(found) / 60 == pytest.approx(3.0, abs=0.5)
    # Each sender gets its turn.
    assert {*found} == {f"s{k}".encode() for k in range(4)}
    shares = [found.count(f"s{k}".encode()) / len(found) for k in range(4)]
    assert max(shares) < 0.4


def test_ranges_and_bearings_have_their_deviations() -> None:
    spec = RangeAndBearingSpec(range_deviation=0.05, bearing_deviation=0.1)
    sim, robots = swarm(spec)
    say(robots["b"], b"x")
    found = []
    for _ in range(400):
        sim.step()
        found.append(heard(robots["a"])[0][:2])
    assert np.std(found, axis=0) == pytest.approx([0.05, 0.1], rel=0.12)
    assert np.mean(found, axis=0) == pytest.approx([2.0, -0.5], abs=0.02)


def test_the_order_of_adding_robots_does_not_matter() -> None:
    spec = RangeAndBearingSpec(
        loss=0.4, bandwidth=200.0, range_deviation=0.1, occlusion=0
    )
    found = []
    for names in (["a", "b", "c"], ["c", "b", "a"]):
        sim, robots = swarm(spec, places={n: PLACES[n] for n in names})
        for name in names:
            say(robots[name], name.encode() * 8)
        runs = []
        for _ in range(20):
            sim.step()
            runs.append([heard(robots[n]) for n in ("a", "b", "c")])
        found.append(runs)
    assert found[0] == found[1]


def test_messages_are_part_of_a_saved_state_and_of_the_journal() -> None:
    sim, robots = swarm(RangeAndBearingSpec(loss=0.3))
    say(robots["b"], b"first")
    sim.step(2)
    say(robots["b"], b"second")
    state = sim.save_state()
    sim.step()
    expected = heard(robots["a"])
    other = sim.clone()
    assert heard(other.robots["a"]) == expected
    sim.restore(state)
    sim.step()
    assert heard(sim.robots["a"]) == expected


def test_wrong_messages_are_refused() -> None:
    _, robots = swarm(RangeAndBearingSpec())
    with pytest.raises(ArgumentError, match="at most 32 bytes"):
        say(robots["a"], bytes(MAX_BYTES + 1))
    with pytest.raises(ArgumentError, match="data"):
        robots["a"].devices["range_and_bearing"].write(data=[1, 2])
    with pytest.raises(ArgumentError, match="length"):
        robots["a"].devices["range_and_bearing"].write(length=40)


# -- LEDs and camera


def test_a_camera_sees_lit_leds_of_others_from_the_next_step_on() -> None:
    sim, robots = swarm(
        LedsSpec(count=4, radius=0.1, pose=Pose(0.05, 0.0, 0.0)),
        OmniCameraSpec(range_max=3.0, pose=Pose(0.0, 0.0, 0.3)),
    )
    robots["b"].devices["leds"].write(**ring("red", 0, "blue"))
    robots["a"].devices["leds"].write(**ring("white"))
    assert robots["a"].devices["omni_camera"].read() == []
    sim.step()
    found = robots["a"].devices["omni_camera"].read()
    # Robot b stands at (2, 0) with heading 0: LEDs at 2.15 (red) and 1.95 (blue).
    assert [f"{one.color:06x}" for one in found] == ["0000ff", "ff0000"]
    assert [one.range for one in found] == pytest.approx([1.95, 2.15])
    assert [one.bearing for one in found] == pytest.approx([-0.8, -0.8])
    assert robots["b"].devices["leds"].read() == (0xFF0000, 0, 0x0000FF, 0)
    robots["b"].devices["leds"].command("color", 0.0)
    sim.step()
    assert robots["a"].devices["omni_camera"].read() == []


def test_a_camera_sees_as_many_leds_as_there_are() -> None:
    sim, robots = swarm(LedsSpec(count=4), OmniCameraSpec(range_max=2.2))
    leds, camera = robots["b"].devices["leds"], robots["a"].devices["omni_camera"]
    leds.command("color", 0xFF0000)
    sim.step()
    assert len(camera.read()) == 4
    leds.write(**ring(*["blue"] * 9))
    sim.step()
    assert leds.read() == (0x0000FF,) * 4
    assert len(camera.read()) == 4


def test_walls_and_robots_hide_leds() -> None:
    wall = [[1.0, -1.0, 1.0, 1.0]]
    between = {"a": (0, 0, 0), "b": (2, 0, 0), "c": (1.0, 0.0, 0.0)}
    for occlusion, walls, places, count in (
        (2, (), None, 1),
        (2, wall, None, 0),
        (1, wall, None, 0),
        (0, wall, None, 1),
        (2, (), between, 0),
        (1, (), between, 1),
    ):
        sim, robots = swarm(
            LedsSpec(),
            OmniCameraSpec(range_max=5.0, occlusion=occlusion),
            walls=walls,
            places=places,
        )
        robots["b"].devices["leds"].write(**ring("green"))
        sim.step()
        assert len(robots["a"].devices["omni_camera"].read()) == count


def test_blobs_have_errors_and_are_overlooked() -> None:
    sim, robots = swarm(
        LedsSpec(radius=0.0),
        OmniCameraSpec(
            range_max=5.0, range_deviation=0.02, bearing_deviation=0.05, missing=0.25
        ),
    )
    robots["b"].devices["leds"].write(**ring("green"))
    found = []
    for _ in range(400):
        sim.step()
        found += [one[1:] for one in robots["a"].devices["omni_camera"].read()]
    assert len(found) / 400 == pytest.approx(0.75, abs=0.07)
    assert np.std(found, axis=0) == pytest.approx([0.02, 0.05], rel=0.15)


def test_rings_are_in_robot_files() -> None:
    spec = parse_robot(
        'extends = "amigo"\n[leds]\ncount = 3\nradius = 0.06\n'
        '[omni_camera]\nrange = 0.9\nocclusion = "walls"\n[range_and_bearing]\nloss = 0.1',
        "r",
    )
    camera = spec.device("omni_camera")
    assert (camera.range_max, camera.occlusion) == (0.9, 1)
    assert spec.device("leds") == LedsSpec(count=3, radius=0.06)
    assert spec.device("range_and_bearing").loss == 0.1
    with pytest.raises(ArgumentError, match="color"):
        ring(-1)
    with pytest.raises(ArgumentError, match='found "nocolor"'):
        ring("red", "nocolor")
    with pytest.raises(ArgumentError, match="number of colors"):
        ring(*[0] * 33)
