"""Our RTPS participant among real ones:

Fast DDS and Cyclone DDS, in a separate network.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ros.ros1 import output, says
from tests.ros.ros2 import HERE, Ros2World
from tests.waiting import wait

pytestmark = pytest.mark.peer
TEXT = "std_msgs::msg::dds_::String_"
NODE = str(HERE / "rtps_node.py")


def cdr(text: str) -> bytes:
    """Return the CDR of a std_msgs/String."""
    raw = text.encode() + b"\0"
    return b"\0\1\0\0" + len(raw).to_bytes(4, "little") + raw


class Node:
    """A program with our participant."""

    def __init__(self, world: Ros2World, what: str, *args: Any, **env: str) -> None:
        self._process = world.spawn(sys.executable, NODE, what, json.dumps(args), **env)
        says(self._process, "READY")

    def result(self) -> Any:
        """Return the output of a program at its end."""
        wait(lambda: self._process.poll() is not None)
        lines = [
            x for x in output(self._process).splitlines() if x.startswith("RESULT ")
        ]
        assert lines and self._process.returncode == 0, output(self._process)
        return json.loads(lines[-1].removeprefix("RESULT "))


@pytest.fixture
def net(world2: Ros2World) -> Iterator[Ros2World]:
    """Return the network."""
    return world2


def test_fast_dds_reads_us(net: Ros2World) -> None:
    """Reliable, best effort, and a latched map of 400 kB in fragments, byte for byte."""
    topics = {
        "rt/a": [TEXT, "rv", cdr("reliable").hex()],
        "rt/b": [TEXT, "bv", cdr("best effort").hex()],
        "rt/map": [TEXT, "rt", 401408],
    }
    Node(net, "publish", 60, topics)
    text = net.run(
        str(net.fastdds_peer),
        "1",
        "sub",
        "rt/a",
        TEXT,
        "rv10",
        "sub",
        "rt/b",
        TEXT,
        "bv10",
        "sub",
        "rt/map",
        TEXT,
        "rt1",
    )
    got = net._got(text)
    assert bytes.fromhex(got["/a"][1])[: len(cdr("reliable"))] == cdr("reliable")
    assert bytes.fromhex(got["/b"][1])[: len(cdr("best effort"))] == cdr("best effort")
    assert got["/map"] == (1, (b"\0\1\0\0" + bytes(401404)).hex())


def test_we_read_fast_dds(net: Ros2World) -> None:
    """The same in the other direction; Fast DDS cuts at 64 kB."""
    big = cdr("".join(f"{k:07d} " for k in range(50_000)))
    (net.folder / "big.cdr").write_bytes(big)
    net.spawn(
        str(net.fastdds_peer),
        "60",
        "pub",
        "rt/a",
        TEXT,
        cdr("abc").hex(),
        "latch",
        "rt/map",
        TEXT,
        f"@{net.folder}/big.cdr",
    )
    topics = {"rt/a": [TEXT, "rv", 10], "rt/map": [TEXT, "rt", 1]}
    got = Node(net, "subscribe", 60, topics).result()
    assert got["rt/a"][0] >= 10
    assert got["rt/a"][1].startswith(cdr("abc").hex())
    assert bytes.fromhex(got["rt/map"][1])[: len(big)] == big


def test_cyclone_both_ways(net: Ros2World) -> None:
    """Both sides send a stream, and latched texts of 400 kB."""
    big = "0123456789" * 40_000
    topics = {
        "rt/a": [TEXT, "rv", cdr("abc").hex()],
        "rt/ours": [TEXT, "rt", cdr("late").hex()],
    }
    ours = Node(net, "publish", 60, topics)
    assert net.cyclone("read", "/a", False, 10)[:10] == ["abc"] * 10
    assert net.cyclone("read", "/ours", True, 1) == ["late"]
    net.cyclone_later("latch", "/theirs", "0123456789", 40_000, 60)
    got = Node(net, "subscribe", 60, {"rt/theirs": [TEXT, "rt", 1]}).result()
    assert bytes.fromhex(got["rt/theirs"][1])[: len(cdr(big))] == cdr(big)
    assert ours is not None


def test_one_service_for_clients_of_both(net: Ros2World, fastdds_client: Path) -> None:
    """At the same time; each gets only its own answers."""
    Node(net, "serve", 90)
    fast = net.spawn(str(fastdds_client), "call", "60", "20")
    assert (
        net.cyclone("call", "/mini/trigger", "std_srvs/Trigger", [], 3)
        == [{"success": True, "message": "served by botyard"}] * 3
    )
    wait(lambda: fast.poll() is not None)
    assert "ANSWERED 20 OTHERS 0" in output(fast)


@pytest.mark.parametrize("kind", ["fast", "cyclone"])
def test_we_call_servers_of_both(
    net: Ros2World, fastdds_client: Path, kind: str
) -> None:
    """Calls have the form that each peer requires."""
    if kind == "fast":
        net.spawn(str(fastdds_client), "serve", "60", "5")
    else:
        net.cyclone_later("serve", "/mini/trigger", 5)

    answers = Node(net, "call", 60, "/mini/trigger", 5).result()
    text = kind.encode() + b"\0"
    wanted = b"\0\1\0\0\1\0\0\0" + len(text).to_bytes(4, "little") + text
    assert [bytes.fromhex(a)[: len(wanted)] for a in answers] == [wanted] * 5


def test_localhost_without_multicast(net: Ros2World) -> None:
    """Two of our participants meet by their ports only, as with
    ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST.
    """
    net.run("ip", "link", "set", "lo", "multicast", "off")
    net.run("ip", "route", "del", "224.0.0.0/4")
    local = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    Node(net, "publish", 60, {"rt/a": [TEXT, "rv", cdr("abc").hex()]}, **local)
    got = Node(net, "subscribe", 60, {"rt/a": [TEXT, "rv", 5]}, **local).result()
    assert got["rt/a"][0] >= 5
