"""AMBF's objects over ROS 1:

a rospy program with the real definitions reads states, commands robots, and steps the
world.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from botyard.protocols.ambf.messages import GENERATIONS, definitions
from botyard.protocols.ros_messages.types import Types
from tests.ros.ros1 import Ros1World
from tests.ros.ros2 import Ros2World
from tests.waiting import Stalls, wait

BODY = "/ambf/env/ann"


def texts(generation: str) -> dict[str, str]:
    """Return full definitions in the form that peers exchange."""
    types = Types(more=definitions(generation))
    return {name: types.definition(name)[0] for name in definitions(generation)}


def kinds(generation: str) -> tuple[str, str]:
    names = (
        ("ObjectState", "ObjectCmd")
        if generation == "master"
        else ("RigidBodyState", "RigidBodyCmd")
    )
    return f"ambf_msgs/{names[0]}", f"ambf_msgs/{names[1]}"


def ambf(world: Ros1World, generation: str, *script: list[Any]) -> list[Any]:
    return world.rospy("ambf", texts(generation), script)


@pytest.mark.xdist_group("ros1")
@pytest.mark.parametrize("generation", GENERATIONS)
def test_states_and_pose_commands(world: Ros1World, generation: str) -> None:
    """Without a roscore the simulator is the master.

    Idle states come at 50 Hz; a pose command acts at once.
    """
    world.botyard(
        "--nomap",
        "-r",
        "p3dx:ann",
        "--start",
        "1000,2000,90",
        "--ambf-port",
        "0",
        "--ambf",
        generation,
        "--update-interval",
        "20",
    )
    wait(lambda: {f"{BODY}/State", "/ambf/env/World/State"} <= world.known()[0])
    wait(lambda: {f"{BODY}/Command", "/ambf/env/World/Command"} <= world.known()[1])
    state, command = kinds(generation)
    there = {"pose.position.x": 3.0, "pose.position.y": -1.0, "pose.orientation.w": 1.0}
    there |= (
        {"enable_position_controller": True}
        if generation == "master"
        else {"cartesian_cmd_type": 1}
    )
    idle, body, moved = ambf(
        world,
        generation,
        ["rate", "/ambf/env/World/State", "ambf_msgs/WorldState", 42],
        ["rate", f"{BODY}/State", state, 42],
        ["send", f"{BODY}/Command", command, there],
        ["sleep", 0.5],
        ["state", f"{BODY}/State", state, 0.2],
    )
    for rate, steps, _ in (idle, body):
        assert min(42, 0.84 * steps) <= rate <= 58, (
            "50 Hz, that is each step, as far as the machine makes them in time"
        )

    assert idle[2]["dynamic_loop_freq"] == 50
    first, last = body[2], moved[2]
    assert first["name"]["data"] == "ann"
    assert ("identifier" in first) == (generation == "2.0")
    assert (
        first["pose"]["position"]["x"],
        first["pose"]["position"]["y"],
    ) == pytest.approx((1.0, 2.0))
    assert 2 * math.atan2(
        first["pose"]["orientation"]["z"], first["pose"]["orientation"]["w"]
    ) == pytest.approx(math.pi / 2)
    assert first["mass"] == 0.0
    assert last["sim_step"] > first["sim_step"] > 0
    assert (
        last["pose"]["position"]["x"],
        last["pose"]["position"]["y"],
    ) == pytest.approx((3.0, -1.0))


@pytest.mark.xdist_group("ros1")
def test_velocities_and_the_watchdog(world: Ros1World) -> None:
    """A twist in the world frame drives as far as the wheels allow.

    Without commands it ends after half a second.
    """
    world.botyard(
        "--nomap",
        "-r",
        "p3dx:ann",
        "--start",
        "0,0,90",
        "--ambf-port",
        "0",
        "--ambf",
        "1.0",
        "--update-interval",
        "20",
    )
    wait(lambda: f"{BODY}/Command" in world.known()[1])
    state, command = kinds("1.0")
    north = {"cartesian_cmd_type": 2, "twist.linear.y": 0.4, "twist.linear.x": 0.3}
    kept = ["keep", f"{BODY}/Command", command, north]
    driving, (rate, _, _), _, stopped = ambf(
        world,
        "1.0",
        kept,
        ["until", f"{BODY}/State", state, "twist.linear.y", 0.38],
        ["rate", f"{BODY}/State", state, 300],
        ["until", f"{BODY}/State", state, "pose.position.y", 0.41],
        ["end"],
        ["sleep", 3.0],
        ["state", f"{BODY}/State", state, 0.3],
    )
    assert driving["twist"]["linear"]["y"] == pytest.approx(0.4, abs=0.05)
    assert driving["twist"]["linear"]["x"] == pytest.approx(0.0, abs=0.02), (
        "its wheels do not go sideways"
    )
    assert rate > 300, "often while it is commanded"
    assert stopped[2]["twist"]["linear"]["y"] == pytest.approx(0.0, abs=1e-6)
    assert stopped[2]["pose"]["position"]["y"] > 0.4


@pytest.mark.xdist_group("ros1")
def test_lockstep(world: Ros1World) -> None:
    """Each toggle is exactly n steps; afterwards the world runs freely again."""
    world.botyard(
        "--nomap",
        "-r",
        "p3dx:ann",
        "--ambf-port",
        "0",
        "--ambf",
        "2.0",
        "--ambf-watchdog",
        "3",
        "--update-interval",
        "20",
    )
    wait(lambda: "/ambf/env/World/Command" in world.known()[1])
    stalls = Stalls()
    (steps, took), (_, begin, end) = ambf(
        world,
        "2.0",
        ["lockstep", 300, 5],
        ["sleep", 4.0],
        ["state", "/ambf/env/World/State", "ambf_msgs/WorldState", 1.0],
    )
    assert steps == 1500
    assert took < 15.0 + stalls.end()
    assert end["sim_step"] > begin["sim_step"], "after the watchdog of three seconds"
    assert {
        "/ambf/env/World/Command/Reset",
        "/ambf/env/World/Command/Reset/Bodies",
    } <= world.known()[1]


@pytest.mark.xdist_group("ros1")
def test_forces_and_resets_by_a_master_of_debian(world: Ros1World) -> None:
    """Rospy pushes a box with mass through a real master, and resets it."""
    world.master()
    (world.folder / "box.yaml").write_text(
        "bodies: [BODY b]\nBODY b: {name: b, mass: 2, shape: Box, geometry: {x: 1, y: 1, z: 1}}\n"
    )
    world.botyard(
        "--nomap",
        "-r",
        "p3dx:ann",
        "--start",
        "9000,9000,0",
        "--adf",
        "box.yaml",
        "--ambf-port",
        "0",
        "--ambf",
        "2.0",
        "--update-interval",
        "10",
    )
    wait(lambda: "/ambf/env/b/Command" in world.known()[1])
    state, command = kinds("2.0")
    push = {"cartesian_cmd_type": 0, "wrench.force.x": 4.0}
    pushed, (_, _, back) = ambf(
        world,
        "2.0",
        ["keep", "/ambf/env/b/Command", command, push],
        ["until", "/ambf/env/b/State", state, "twist.linear.x", 0.5],
        ["end"],
        ["send", "/ambf/env/World/Command/Reset", "std_msgs/Empty", {}],
        ["sleep", 1.0],
        ["state", "/ambf/env/b/State", state, 0.3],
    )
    assert pushed["mass"] == 2.0
    assert pushed["twist"]["linear"]["x"] >= 0.5
    assert pushed["wrench"]["force"]["x"] == pytest.approx(4.0, abs=0.1)
    assert back["pose"]["position"]["x"] == pytest.approx(0.0, abs=1e-6)
    assert back["twist"]["linear"]["x"] == 0.0


@pytest.mark.xdist_group("ros2")
def test_lockstep_over_dds(world2: Ros2World) -> None:
    """The same fields over ROS 2, to a peer with its own types."""
    world2.botyard(
        "--nomap",
        "-r",
        "p3dx:ann",
        "--start",
        "3000,0,0",
        "--ambf",
        "2.0",
        "--ambf-port",
        "0",
        "--ambf-watchdog",
        "3",
        "--ros2",
        "--update-interval",
        "10",
    )
    found = world2.cyclone("lockstep", "ann", 100, 4)
    assert found["steps"] == found["step"] == 400
    assert (found["name"], found["x"], found["mass"]) == ("ann", 3.0, 0.0)
    assert found["joints"] == ["left_wheel", "right_wheel"]
