"""Pioneer clients while the world goes on from an earlier moment."""

from __future__ import annotations

from botyard.model.scene import Scene
from botyard.protocols.pioneer.packet import Packet
from botyard.protocols.pioneer.reports import LaserPart, Sip
from tests.protocols.lines import Client


def moved(packets: list[Packet]) -> list[bool]:
    """Return for each scan whether it reports a jump of the robot."""
    return [
        bool(part.flags & 1)
        for p in packets
        if p.id == 0x61 and (part := LaserPart.decode(p)).first == 0
    ]


def test_they_are_told_once_and_their_robot_waits() -> None:
    c = Client("p3dx-equipped", Scene(name="plane"))
    c.sim.history.keep()
    # The robot drives before any client has sent a request.
    c.run(2.0)
    c.send(4, 1)
    c.send(36, -30)
    c.send(35, 2)
    c.send(11, 300)
    assert not any(moved(c.run(8.0))[1:])
    before = c.sip()
    assert before.x > 1500 and c.sim.time > 10.0
    # This command still waits for the next step when the run branches.
    c.send(11, 400)
    c.sim.history.go_on_from(2.0)
    packets = c.run(1.0)
    assert moved(packets) == [True] + 9 * [False], (
        "scans come at once, as often as before, and the first one tells of it"
    )
    sips = [Sip.decode(p) for p in packets if p.id in (0x32, 0x33)]
    assert len(sips) == 10 and abs(sips[0].x) < 10, "odometry is that of the moment"
    assert sips[-1].flags & 1 and sips[-1].x == sips[0].x, (
        "motors are on as before, and it stands"
    )
    c.send(11, 200)
    c.run(2.0)
    assert abs(c.robot.velocity.vx - 0.2) < 1e-9
    assert not any("watchdog" in line for line in c.log)


def test_the_watchdog_counts_from_the_moment() -> None:
    """Simulated time that was abandoned does not count as silence of the client."""
    c = Client(sim=None)
    c.sim.history.keep()
    c.send(4, 1)
    c.run(10.0)
    c.send(11, 300)
    c.sim.history.go_on_from(0.0)
    c.send(11, 300)
    c.modem.run(c.robot.spec.pioneer.watchdog + 0.5)
    assert any("watchdog" in line for line in c.log)
    c.modem.run(2.0)
    assert c.robot.velocity.vx == 0.0
