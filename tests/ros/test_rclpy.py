"""ROS 2 itself: rclpy on Fast DDS of two distributions, at default settings."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from botyard.protocols.ros_messages.typenames import full, service_name
from tests.ros.ros1 import output, says
from tests.ros.ros2 import DISTRIBUTIONS, WHEELS, Ros2World, together
from tests.waiting import PATIENCE, wait

pytestmark = pytest.mark.xdist_group("rclpy")
PAGE = Path(__file__).parent.parent.parent / "docs/reference/ros.md"
HOWTO = PAGE.parent.parent / "howto/ros.md"
AVOID = PAGE.parent.parent.parent / "examples/ros2/avoid.py"
ROBOT = """
extends = "p3dx-equipped"
[fiducial_finder]
[blob_finder]
"""
SILENT = [
    "/rosout",
    "/parameter_events",
    "/ann/fix",
    "/ann/goal_pose",
]
"""Topics that are silent as long as nothing happens, or that need another map."""


def offered(robot: str) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Names and types of topics, inputs and services that the page promises."""
    section = PAGE.read_text("utf-8").split("\n## ")[1]
    found = []
    for heading, names in (
        ("Published", full),
        ("Subscribed", full),
        ("Services", service_name),
    ):
        rows = section.partition(f"{heading}:\n\n")[2].partition("\n\n")[0]
        table = re.findall(r"^\| `(/\S+)` \| (\S+) \|", rows, re.MULTILINE)
        assert len(table) > 10, heading
        found.append(
            [
                [name.replace("/ann/", f"/{robot}/"), names(kind)]
                for name, kind in table
                if not kind.startswith(("dynamic_reconfigure/", "rosgraph_msgs/Log"))
                and not name.endswith(("/cmd_vel_stamped", "/move_base_simple/goal"))
            ]
        )
    return found[0], found[1], found[2]


def test_two_distributions_and_cyclone_at_once(wheels: Ros2World) -> None:
    """Each sees and reads everything, and drives a robot in a closed loop."""
    robot = wheels.folder / "full.toml"
    robot.write_text(ROBOT)
    robots = ("-r", f"{robot}:ann", "-r", f"{robot}:bob")
    sim = wheels.botyard("-m", "office", *robots, "--ros2", "--localization", "truth")
    peers, hashes = [], 0
    for distro, name, accel in (("jazzy", "ann", 0.45), ("kilted", "bob", 0.35)):
        topics, inputs, services = offered(name)
        hashes = len(topics) + len(inputs)
        silent = [topic.replace("/ann/", f"/{name}/") for topic in SILENT]
        peers.append(
            wheels.rclpy_later(
                distro, "at_once", name, topics, inputs, services, silent, accel
            )
        )

    assert wheels.cyclone("read_both", "/ann/robot_description", 3) == [1] * 3
    for peer in peers:
        seen = wheels.ended(peer)
        assert seen["hashes"] >= hashes > 30 and max(map(abs, seen["off"])) < 0.05
    assert "internal error" not in output(sim)


def test_worlds_time_and_late_joiners(networks: dict[str, Ros2World]) -> None:
    """An action with feedback and cancellation; latched topics for late joiners while
    time runs, is paused and is stopped, after a world was loaded and after robots were
    added and removed.
    """

    def check(world: Ros2World, distro: str) -> None:
        args = ("-m", "office", "-r", "p3dx:ann", "--ros2", "--localization", "truth")
        sim = world.botyard(*args)
        seen = world.rclpy(distro, "in_turn", "ann")
        assert {"/map", "/tf_static", "/ann/amcl_pose"} <= set(seen["latched"])
        assert "internal error" not in output(sim)

    together(networks, check)


def check_calls(
    world: Ros2World, later: Callable[..., Any], distro: str, flag: str
) -> None:
    """Check that every service and every input of the page is used and works."""
    robot = world.folder / "full.toml"
    robot.write_text(ROBOT)
    args = ("-m", "office", "-r", f"{robot}:ann", flag, "--localization", "truth")
    sim = world.botyard(*args)
    _, inputs, services = offered("ann")
    used = world.ended(later(distro, "use_all", "ann"))
    called, commanded = set(used["called"]), set(used["commanded"])
    # test_two_distributions_and_cyclone_at_once and in_turn call the others.
    others = {n for n, _ in services if n.endswith("_parameters") or "/_action/" in n}
    others |= {n for n, _ in services if "parameter" in n}
    assert {name for name, _ in services} == called | others
    assert {name for name, _ in inputs} | {"/ann/cmd_vel_stamped"} == commanded
    assert "internal error" not in output(sim)


def test_each_service_and_input(networks: dict[str, Ros2World]) -> None:
    """Every service answers, and every input has its effect."""

    def check(world: Ros2World, distro: str) -> None:
        check_calls(world, world.rclpy_later, distro, "--ros2")

    together(networks, check)


def test_the_commands_of_the_page(wheels: Ros2World) -> None:
    """All commands of docs/howto/ros.md for a terminal of ROS 2 work, in its order."""
    text = HOWTO.read_text("utf-8").replace("\\\n", "")
    found = re.finditer(r"^(ros2 .*)|`(ros2 \w+ \w+ .*?)`", text, re.MULTILINE)
    lines = [one[1] or one[2] for one in found]
    args = ("-m", "office", "-r", "p3dx:ann", "--ros2", "--allow-client-exit")
    sim = wheels.botyard(*args)
    assert len(wheels.rclpy("jazzy", "commands", lines)) == len(lines) > 8
    wait(lambda: sim.poll() == 0, what=lambda: output(sim))


def test_the_example_drives_and_ends_quietly(networks: dict[str, Ros2World]) -> None:
    """examples/ros2/avoid.py until Ctrl-C, and until a signal to terminate."""

    def check(world: Ros2World, distro: str) -> None:
        world.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
        for number in (signal.SIGINT, signal.SIGTERM):
            example = world.spawn(
                str(WHEELS / distro / "bin/python"),
                str(AVOID),
                PYTHONHOME="",
                PYTHONPATH="",
            )
            assert world.rclpy(distro, "driven", "ann", 0.5) > 0.5
            example.send_signal(number)
            example.wait(PATIENCE)
            assert (example.returncode, output(example)) == (0, "")

    together(networks, check)


def test_guests_come_and_go_and_die(wheels: Ros2World) -> None:
    """Forty participants of two distributions; half of them end without a word. Others
    read on meanwhile and after a stop, and when the simulator has died and has come
    again.
    """
    world = ("-m", "office", "-r", "p3dx:ann", "--ros2")
    sim = wheels.botyard(*world)
    guests = [wheels.rclpy_later(d, "churn", "ann", 20) for d in DISTRIBUTIONS]
    stuck = wheels.rclpy_later("jazzy", "read_on", "ann", 20)
    says(stuck, "READING")
    stuck.send_signal(signal.SIGSTOP)
    for guest in guests:
        assert wheels.ended(guest) == [0, -signal.SIGKILL] * 10
    assert "internal error" not in output(sim)
    stuck.send_signal(signal.SIGCONT)
    assert wheels.ended(stuck) >= 20

    faithful = [wheels.rclpy_later(d, "survive", "ann") for d in DISTRIBUTIONS]
    for peer in faithful:
        says(peer, "READING")
    sim.kill()
    sim.wait()
    again = wheels.botyard(*world)
    for peer in faithful:
        assert wheels.ended(peer)["maps"] == 2
    assert "internal error" not in output(again)
