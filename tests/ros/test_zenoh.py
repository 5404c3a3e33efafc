"""ROS 2 over Zenoh, against a package that speaks rmw_zenoh."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.ros.ros1 import output
from tests.ros.ros2 import Ros2World
from tests.waiting import wait

pytestmark = pytest.mark.xdist_group("ros2")


def test_a_peer_reads_drives_and_calls_with_us_as_the_router(world2: Ros2World) -> None:
    """Topics in both directions, the latched map, a service, the graph."""
    sim = world2.botyard("-m", "office", "-r", "p3dx:ann", "--zenoh-router")
    topics = {"/ann/odom", "/ann/cmd_vel", "/clock", "/map", "/tf_static"}
    services = {"/ann/enable_motors", "/botyard/add_robot"}
    seen = world2.zenoh(4.0, 35, *topics, *services)
    assert seen["counts"]["odom"] >= 35
    assert seen["counts"]["scan"] >= 35
    assert seen["ranges"] == 181
    assert seen["frame"] == "ann/odom"
    assert seen["turning"] == pytest.approx(0.3, abs=0.05)
    assert seen["counts"]["map"] == 1
    assert min(seen["map"]) > 100
    assert seen["paused"] is True
    assert seen["while_paused"] == 0
    assert topics <= set(seen["topics"])
    assert services <= set(seen["services"])
    assert "internal error" not in output(sim)


def test_attachments_tokens_and_queryables(world2: Ros2World) -> None:
    """Messages count up and keep their publisher's identifier; answers repeat the
    number and the identifier of the request; tokens name nodes, endpoints, hashes and
    QoS, and go with their robot.
    """
    sim = world2.botyard("-m", "office", "-r", "p3dx:ann", "--zenoh-router")
    seen = world2.zenoh_wire()
    numbers, times, lengths, gids, _ = zip(*seen["attachments"], strict=True)
    assert [b - a for a, b in pairwise(numbers)] == [1] * 29
    assert list(times) == sorted(times) and set(lengths) == {16} and len({*gids}) == 1
    assert seen["kinds"] == ["MP", "MS", "NN", "SS"]
    (odom,) = seen["odom"]
    kind = odom.index("%ann%odom")
    assert odom[5] == "MP" and odom[kind - 1] == "botyard"
    assert odom[kind + 1 : kind + 3] == ["nav_msgs::msg::dds_::Odometry_", seen["hash"]]
    # Reliability, durability 1 (transient local), history and depth.
    assert [t[-1].split(",")[0] for t in seen["map"] if t[5] == "MP"] == [":1:"]
    assert seen["answers"] == [[77, "0123456789abcdef", 1]]
    assert seen["removed"] == [1] and seen["left"] == [] and seen["gone"] > 5
    assert "internal error" not in output(sim)


def test_a_client_of_an_action(world2: Ros2World) -> None:
    """A service stops the simulation, and an action steps it with feedback of the first
    and the last steps.
    """
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--zenoh-router")
    seen = world2.zenoh_action(25)
    done = seen.pop("done")
    assert seen == {"stopped": 1, "accepted": True, "status": 4, "code": 1}
    assert done[:8] == list(range(1, 9)) and done[-1] == 25 and done == sorted(done)


def test_a_router_that_comes_later(world2: Ros2World) -> None:
    """Nodes wait for their router, and find each other through it."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--zenoh", "-p", "8101")
    router = world2.botyard(
        "-m",
        "office",
        "-r",
        "p3dx:bob",
        "--zenoh-router",
        "-p",
        "8201",
        "--ros-names",
        "amrisim",
    )
    wait(lambda: "Zenoh" in output(router))
    topics = {"/ann/odom", "/AMRISim_bob/pose"}
    seen = world2.zenoh(6.0, 20, *topics)
    assert topics <= set(seen["topics"])
    assert seen["counts"]["odom"] >= 20
    assert seen["turning"] == pytest.approx(0.3, abs=0.05)


def test_the_routers_port_is_taken(world2: Ros2World) -> None:
    """The error is clear."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--zenoh-router", "-p", "8101")
    with pytest.raises(AssertionError, match="Zenoh"):
        world2.botyard("-m", "office", "-r", "p3dx:bob", "--zenoh-router", "-p", "8201")
