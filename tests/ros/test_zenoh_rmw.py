"""ROS 2 over Zenoh, as rmw_zenoh_cpp asks for it: the list of test_rclpy.py, with a peer
on rosidl's messages and zenoh's library.
"""

from __future__ import annotations

import signal

import pytest

from tests.ros.conftest import need_zenoh
from tests.ros.ros1 import output, says
from tests.ros.ros2 import Ros2World
from tests.ros.test_rclpy import DISTRIBUTIONS, ROBOT, SILENT, check_calls, offered
from tests.ros.test_rclpy_networks import cells_of_hall, hall

pytestmark = pytest.mark.xdist_group("zenoh")


@pytest.fixture
def zenoh(wheels: Ros2World) -> Ros2World:
    """A network for peers of rmw_zenoh."""
    need_zenoh()
    return wheels


def test_two_distributions_at_once(zenoh: Ros2World) -> None:
    """Names, types and hashes of all that the page names, messages, parameters, and a
    closed loop by each kind of velocity.
    """
    robot = zenoh.folder / "full.toml"
    robot.write_text(ROBOT)
    robots = ("-r", f"{robot}:ann", "-r", f"{robot}:bob")
    args = ("--zenoh-router", "--localization", "truth")
    sim = zenoh.botyard("-m", "office", *robots, *args)
    peers, hashes = [], 0
    for distro, name, accel in (("jazzy", "ann", 0.45), ("kilted", "bob", 0.35)):
        topics, inputs, services = offered(name)
        hashes = len(topics) + len(inputs)
        silent = [topic.replace("/ann/", f"/{name}/") for topic in SILENT]
        peers.append(
            zenoh.zenoh_later(
                distro, "at_once", name, topics, inputs, services, silent, accel
            )
        )

    for peer in peers:
        seen = zenoh.ended(peer)
        assert seen["hashes"] >= hashes > 30 and max(map(abs, seen["off"])) < 0.05
    assert "internal error" not in output(sim)


def test_worlds_time_and_late_joiners(zenoh: Ros2World) -> None:
    """An action with feedback and cancellation; latched topics for late joiners while
    time runs, is paused and is stopped, after a world was loaded and after robots were
    added and removed.
    """
    args = ("-m", "office", "-r", "p3dx:ann", "--zenoh-router")
    sim = zenoh.botyard(*args, "--localization", "truth")
    seen = zenoh.ended(zenoh.zenoh_later("jazzy", "in_turn", "ann"))
    assert {"/map", "/tf_static", "/ann/amcl_pose"} <= set(seen["latched"])
    assert "internal error" not in output(sim)


def test_each_service_and_input(zenoh: Ros2World) -> None:
    """Every service answers, and every input has its effect."""
    check_calls(zenoh, zenoh.zenoh_later, "kilted", "--zenoh-router")


def test_old_log_lines(zenoh: Ros2World) -> None:
    """Late readers get the lines of the past, as from nodes of rclpy."""
    unserved = {"ROS_DISCOVERY_SERVER": "10.0.0.1:11811"}
    args = ("-m", "office", "-r", "p3dx:ann", "--zenoh-router", "--ros2")
    zenoh.botyard(*args, **unserved)
    (line, *_) = zenoh.ended(zenoh.zenoh_later("jazzy", "old_lines", 1))
    assert line.startswith("ROS 2: ROS_DISCOVERY_SERVER names a discovery server")


def test_large_maps_and_a_reader_that_stands_still(zenoh: Ros2World) -> None:
    """Maps of 9 MB come whole. A reader is stopped while they change: others go on, and
    it gets the last map afterwards.
    """
    hall(zenoh.folder / "hall.map")
    sim = zenoh.botyard("-m", "hall.map", "-r", "p3dx:ann", "--zenoh-router")
    stuck = zenoh.zenoh_later("jazzy", "hold", "ann", 801)
    says(stuck, "READING")
    stuck.send_signal(signal.SIGSTOP)
    office, large = "botyard://office", f"file://{zenoh.folder}/hall.map"
    worlds = [office, large, office, large, office]
    seen = zenoh.ended(zenoh.zenoh_later("kilted", "crowd", "ann", 5, worlds))
    maps = [seen["maps"][k] for k in range(6)]
    assert maps[0] == maps[2] == maps[4] and maps[1] == maps[3] == maps[5]
    assert maps[0][2] == cells_of_hall() and maps[1][0] == 801
    stuck.send_signal(signal.SIGCONT)
    assert zenoh.ended(stuck) >= 2
    assert "internal error" not in output(sim)


def test_hosts_and_domains(zenoh: Ros2World, other_host: Ros2World) -> None:
    """A simulator whose router is open to other hosts, and one in another domain."""
    domain = {"ROS_DOMAIN_ID": "7"}
    is_open = ("--zenoh-router", "--bind-to-address", "0.0.0.0")
    zenoh.botyard("-m", "office", "-r", "p3dx:ann", *is_open)
    zenoh.botyard("-m", "office", "-r", "p3dx:bob", "-p", "8201", "--zenoh", **domain)
    there = {"ZENOH_ROUTER": "tcp/10.77.0.1:7447"}
    peers = [
        (wanted, host.zenoh_later(distro, "seen", 20, wanted, **env))
        for host, distro, env, wanted in (
            (zenoh, "jazzy", {}, ["ann"]),
            (zenoh, "kilted", domain, ["bob"]),
            (other_host, "jazzy", there, ["ann"]),
            (other_host, "kilted", there, ["ann"]),
        )
    ]
    for wanted, peer in peers:
        assert zenoh.ended(peer) == wanted


def test_guests_come_and_go_and_die(zenoh: Ros2World) -> None:
    """Forty sessions of two distributions; half of them end without a word. Others read
    on meanwhile and after a stop, when the simulator has died and has come again, and
    when its router has.
    """
    world = ("-m", "office", "-r", "p3dx:ann", "--zenoh")
    other = ("-m", "office", "-r", "p3dx:bob", "--zenoh-router", "-p", "8201")
    # Two simulators in one domain have the same topics and services without a robot.
    domain = {"ROS_DOMAIN_ID": "7"}
    router = zenoh.botyard(*other, **domain)
    sim = zenoh.botyard(*world)
    guests = [zenoh.zenoh_later(d, "churn", "ann", 20) for d in DISTRIBUTIONS]
    stuck = zenoh.zenoh_later("jazzy", "read_on", "ann", 20)
    says(stuck, "READING")
    stuck.send_signal(signal.SIGSTOP)
    for guest in guests:
        assert zenoh.ended(guest) == [0, -signal.SIGKILL] * 10
    assert "internal error" not in output(sim)
    stuck.send_signal(signal.SIGCONT)
    assert zenoh.ended(stuck) >= 20

    for victim, robot, args, env in (
        (sim, "ann", world, {}),
        (router, "bob", other, domain),
    ):
        faithful = [
            zenoh.zenoh_later(d, "survive", robot, **env) for d in DISTRIBUTIONS
        ]
        for peer in faithful:
            says(peer, "READING")
        victim.kill()
        victim.wait()
        again = zenoh.botyard(*args, **env)
        for peer in faithful:
            assert zenoh.ended(peer)["maps"] == 2
        assert "internal error" not in output(again)
