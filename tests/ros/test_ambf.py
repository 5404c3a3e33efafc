"""AMBF's objects over ROS 1: a rospy program with the real definitions reads states, commands robots, and steps the world."""

from __future__ import annotations

import math
from typing import Any

import pytest

from botyard.protocols.ambf.messages import GENERATIONS, definitions
from botyard.protocols.ros_messages.types import Types
from tests.ros.ros1 import Ros1World, wait

pytestmark = pytest.mark.xdist_group("ros1")
BODY = "/ambf/env/ann"


def texts(generation: str) -> dict[str, str]:
    """Full definitions, as peers exchange them."""
    types = Types(more=definitions(generation))
    return {name: types.definition(name)[0] for name in definitions(generation)}


def kinds(generation: str) -> tuple[str, str]:
    names = ("ObjectState", "ObjectCmd") if generation == "master" else ("RigidBodyState", "RigidBodyCmd")
    return f"ambf_msgs/{names[0]}", f"ambf_msgs/{names[1]}"


def ambf(world: Ros1World, generation: str, *script: list[Any]) -> list[Any]:
    return world.rospy("ambf", texts(generation), script, seconds=60.0)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_states_and_pose_commands(world: Ros1World, generation: str) -> None:
    """With no roscore there, the simulator is the master. Idle states come at 50 Hz; a pose is taken at once."""
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
    there |= {"enable_position_controller": True} if generation == "master" else {"cartesian_cmd_type": 1}
    idle, body, _, moved = [
        *ambf(
            world, generation, ["state", "/ambf/env/World/State", "ambf_msgs/WorldState", 1.0], ["state", f"{BODY}/State", state, 1.0],
            ["send", f"{BODY}/Command", command, there], ["sleep", 0.3], ["state", "/ambf/env/World/State", "ambf_msgs/WorldState", 0.2],
            ["state", f"{BODY}/State", state, 0.5],
        )
    ]  # fmt: skip
    assert idle[0] == pytest.approx(50, abs=8)
    assert idle[1]["dynamic_loop_freq"] == 50
    assert body[0] == pytest.approx(50, abs=8)
    first, last = body[1], moved[1]
    assert first["name"]["data"] == "ann"
    assert ("identifier" in first) == (generation == "2.0")
    assert (first["pose"]["position"]["x"], first["pose"]["position"]["y"]) == pytest.approx((1.0, 2.0))
    assert 2 * math.atan2(first["pose"]["orientation"]["z"], first["pose"]["orientation"]["w"]) == pytest.approx(
        math.pi / 2
    )
    assert first["mass"] == 0.0
    assert last["sim_step"] > first["sim_step"] > 0
    assert (last["pose"]["position"]["x"], last["pose"]["position"]["y"]) == pytest.approx((3.0, -1.0))


def test_velocities_and_the_watchdog(world: Ros1World) -> None:
    """A twist in the world's frame drives as far as wheels allow; without commands it ends after half a second."""
    world.botyard(
        "--nomap", "-r", "p3dx:ann", "--start", "0,0,90", "--ambf-port", "0", "--ambf", "1.0", "--update-interval", "20"
    )
    wait(lambda: f"{BODY}/Command" in world.known()[1])
    state, command = kinds("1.0")
    north = {"cartesian_cmd_type": 2, "twist.linear.y": 0.4, "twist.linear.x": 0.3}
    driving, _, stopped = [
        row
        for row in ambf(
            world, "1.0", *([["send", f"{BODY}/Command", command, north], ["sleep", 0.2]] * 8), ["state", f"{BODY}/State", state, 0.1],
            ["sleep", 1.5], ["state", "/ambf/env/World/State", "ambf_msgs/WorldState", 0.1], ["state", f"{BODY}/State", state, 0.3],
        )
    ]  # fmt: skip
    assert driving[1]["twist"]["linear"]["y"] == pytest.approx(0.4, abs=0.05)
    assert driving[1]["twist"]["linear"]["x"] == pytest.approx(0.0, abs=0.02), "its wheels do not go sideways"
    assert driving[0] > 30, "often while it is commanded"
    assert stopped[1]["twist"]["linear"]["y"] == pytest.approx(0.0, abs=1e-6)
    assert stopped[1]["pose"]["position"]["y"] > 0.4


def test_lockstep(world: Ros1World) -> None:
    """Each toggle is exactly n steps; then the world runs free again."""
    world.botyard("--nomap", "-r", "p3dx:ann", "--ambf-port", "0", "--ambf", "2.0", "--update-interval", "20")
    wait(lambda: "/ambf/env/World/Command" in world.known()[1])
    (steps, took), (_, free) = ambf(
        world,
        "2.0",
        ["lockstep", 300, 5],
        ["sleep", 1.0],
        ["state", "/ambf/env/World/State", "ambf_msgs/WorldState", 1.0],
    )
    assert steps == 1500
    assert took < 15.0
    assert free["sim_step"] > 1500 + 40, "after the watchdog of half a second"
    assert {"/ambf/env/World/Command/Reset", "/ambf/env/World/Command/Reset/Bodies"} <= world.known()[1]
