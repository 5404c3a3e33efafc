"""A client with p2os's habits (HSK-029, TST-008): on the null modem, and over a real
socket in tests/servers.
"""

from __future__ import annotations

import pytest

from botyard.geometry import Pose
from botyard.protocols.pioneer.commands import C
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation
from botyard.testing import P2osClient


def connect(model: str = "p3dx", **options: int) -> tuple[NullModem, P2osClient]:
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot(model, "r", pose=Pose())
    modem = NullModem(sim)
    line = modem.connect("r")

    def receive(seconds: float) -> bytes:
        modem.run(seconds)
        return line.take()

    client = P2osClient(line.send, receive, robot.spec.pioneer.dist_conv)
    client.connect(**options)
    return modem, client


def test_it_connects_and_gets_a_report_for_each_command() -> None:
    modem, client = connect()
    assert (client.restarts, client.names[1:]) == (0, ("Pioneer", "p3dx"))
    for number, value in (
        (C.SONAR, 0),
        (C.SONAR, 1),
        (C.SETV, 1000),
        (C.SETRV, 90),
        (C.VEL, 300),
        (C.RVEL, 0),
    ):
        assert client.command(number, value) is client.sip

    assert modem.sim.robots["r"].velocity.vx > 0


@pytest.mark.parametrize("first", [1, 2])
def test_a_sync_that_begins_in_the_middle(first: int) -> None:
    """A restarted driver sends a wrong number first; the robot adopts it (HSK-007)."""
    _, client = connect(first=first)
    assert client.restarts == 0
    assert client.sip is not None


def test_commands_in_the_handshake_do_not_confuse() -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "r")
    modem = NullModem(sim)
    line = modem.connect("r")
    from botyard.protocols.pioneer.packet import command

    for stray in (command(C.VEL, 100), command(C.PULSE)):
        line.send(stray)

    def receive(seconds: float) -> bytes:
        modem.run(seconds)
        return line.take()

    client = P2osClient(line.send, receive, 0.485)
    client.connect(first=0)
    assert client.sip is not None


def test_positions_modulo_4096_follow_the_robot_far() -> None:
    """At 0.485 mm a unit p2os's counter wraps every 2 m: 12 m are six wraps."""
    modem, client = connect()
    client.command(C.SETV, 900)
    while modem.sim.robots["r"].truth.x < 12.0:
        client.command(C.VEL, 900)
    client.command(C.VEL, 0)
    for _ in range(30):
        client.command(C.PULSE)
    assert client.tainted == 0
    assert client.x_mm == pytest.approx(modem.sim.robots["r"].truth.x * 1000, abs=3)


def test_a_fast_robot_taints_its_odometry_as_a_real_one_does() -> None:
    """p2os ignores motion of more than 100 mm a report:

    a documented limit of the driver (§5).
    """
    modem, client = connect("seekur")
    while modem.sim.robots["r"].truth.x < 15.0:
        client.command(C.VEL, 2000)
    assert client.tainted > 0


def test_setting_odometry_to_zero_is_not_a_jump_for_it() -> None:
    modem, client = connect()
    for _ in range(20):
        client.command(C.VEL, 300)
    client.command(C.VEL, 0)
    for _ in range(15):
        client.command(C.PULSE)
    client.command(C.SETO)
    for _ in range(3):
        sip = client.command(C.PULSE)
    assert (sip.x, sip.y, sip.th) == (0, 0, 0)
    assert modem.sim.robots["r"].truth.x > 0.3
