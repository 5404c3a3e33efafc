"""ROS 2 itself, where packets get lost, between two hosts and in several domains."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.ros.ros1 import output, says
from tests.ros.ros2 import Ros2World

pytestmark = pytest.mark.xdist_group("rclpy")
EDGE_MM = 150_000
EVERY_MM = 5_000


def hall(path: Path) -> None:
    """Write a map of 9 million cells: aisles of 5 m in a hall of 150 m."""
    edge, inner = EDGE_MM, EDGE_MM - EVERY_MM
    walls = [(0, 0, edge, 0), (edge, 0, edge, edge)]
    walls += [(edge, edge, 0, edge), (0, edge, 0, 0)]
    walls += [(x, EVERY_MM, x, inner) for x in range(EVERY_MM, edge, EVERY_MM)]
    head = f"2D-Map\nLineMinPos: 0 0\nLineMaxPos: {edge} {edge}\nNumLines: {len(walls)}"
    lines = [" ".join(map(str, wall)) for wall in walls]
    path.write_text("\n".join([head, "LINES", *lines, "DATA", ""]))


def cells_of_hall() -> int:
    """Return the number of cells of the map: 50 mm each, one more for the last wall."""
    return (EDGE_MM // 50 + 1) ** 2


def test_loss_and_large_maps(wheels: Ros2World, loss_shim: Path) -> None:
    """Late readers get a map of 9 MB whole, parameters are set, loops are closed, and
    clients that call as soon as they are there get their answers; also if 5 and 15 % of
    all packets are lost.
    """
    hall(wheels.folder / "hall.map")
    loss = wheels.folder / "loss"
    loss.write_bytes(struct.pack("d", 0.0))
    lossy = {"LD_PRELOAD": str(loss_shim), "LOSS": str(loss)}
    robots = ("-r", "p3dx:ann", "-r", "p3dx:bob")
    sim = wheels.botyard("-m", "hall.map", *robots, "--ros2", **lossy)
    results = []
    for share in (0.0, 0.05, 0.15):
        with loss.open("r+b") as file:
            file.write(struct.pack("d", share))
        peers = [
            wheels.rclpy_later(distro, "networks.bear", robot, 5, **lossy)
            for distro, robot in (("jazzy", "ann"), ("kilted", "bob"))
        ]
        trigger = "/botyard/resume"
        cyclone = wheels.cyclone_later("recreate", trigger, 10, 60.0, **lossy)
        results += [wheels.ended(peer) for peer in peers]
        assert wheels.ended(cyclone)["lost"] == 0

    first = results[0]
    width, height = first["size"]
    assert first["cells"][0] == width * height == cells_of_hall() > 9_000_000
    walls = EDGE_MM * 4 + (EDGE_MM - 2 * EVERY_MM) * (EDGE_MM // EVERY_MM - 1)
    assert first["cells"][1] == pytest.approx(walls / 50, rel=0.01)
    for result in results:
        assert result["crc"] == first["crc"] and result["cells"] == first["cells"]
        assert result["lost"] == 0 and abs(result["off"]) < 0.05
    assert "internal error" not in output(sim)


def test_ranges_and_domains(wheels: Ros2World, other_host: Ros2World) -> None:
    """Six simulators on one host: one for this host only, one so by the old variable,
    one so by an unknown range, one for this host and a static peer, one in another
    domain, and one for the whole network.
    """
    local = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    known = {**local, "ROS_STATIC_PEERS": "10.77.0.2"}
    knowing = {**local, "ROS_STATIC_PEERS": "10.77.0.1"}
    # rcl ignores the newer variable next to the older one, and takes an unknown range
    # for LOCALHOST.
    old = {"ROS_LOCALHOST_ONLY": "1", "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
    unknown = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "subnet"}
    domain = {"ROS_DOMAIN_ID": "7"}
    envs: tuple[dict[str, str], ...] = (local, old, domain, {}, unknown, known)
    robots = ("ann", "bob", "cid", "dan", "eve", "fay")
    sims = []
    for number, (robot, env) in enumerate(zip(robots, envs, strict=True)):
        port = str(8101 + number)
        args = ("-m", "office", "-r", f"p3dx:{robot}", "--ros2", "-p", port)
        sims.append(wheels.botyard_later(*args, **env))
    for sim in sims:
        says(sim, "botyard ready")

    here, everywhere = ["ann", "bob", "dan", "eve", "fay"], ["dan", "fay"]
    peers = [
        (looks, host.rclpy_later(distro, "networks.looks", 20, looks))
        for host, distro, looks in (
            (wheels, "jazzy", [[here, {}], [here, old], [here, unknown]]),
            (wheels, "kilted", [[here, local], [["cid"], domain]]),
            (other_host, "jazzy", [[everywhere, {}]]),
            (other_host, "kilted", [[everywhere, {}], [everywhere, knowing]]),
        )
    ]
    for looks, peer in peers:
        assert wheels.ended(peer) == [wanted for wanted, _ in looks]
