"""Many sessions on many robots:

no memory leaks and no slowdown (HSK-019, HIS-018, TST-011).
"""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from botyard.protocols.pioneer.packet import command
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation


def session(modem: NullModem, name: str, round_: int) -> None:
    """Connect, request everything, send garbage, leave in one of three ways."""
    line = modem.connect(name)
    for data in (
        command(0),
        command(1),
        command(2),
        command(1, 1),
        command(35, 2),
        command(40, 2),
        command(237, 2),
        command(11, 200),
    ):
        line.send(data)

    modem.run(0.2)
    assert len(line.take()) > 300
    if round_ % 3 == 0:
        line.send(command(2, 1))
    else:
        line.send(bytes([0xFA, 0xFB, round_ % 256]) + bytes(range(round_ % 50)))
        line.hang_up()

    assert line.closed


def grown(act: object, rounds: int, *, warm: int = 10) -> int:
    """Return the growth of Python objects, bytes, in `rounds` rounds after `warm` ones."""
    for i in range(warm):
        act(i)  # type: ignore[operator]
    gc.collect()
    tracemalloc.start()
    for i in range(rounds // 2):
        act(i)  # type: ignore[operator]
    gc.collect()
    middle = tracemalloc.get_traced_memory()[0]
    for i in range(rounds):
        act(i)  # type: ignore[operator]
    gc.collect()
    end = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return end - middle


@pytest.mark.unwatched
def test_sessions_leave_nothing_behind() -> None:
    sim = Simulation.load("office")
    for i in range(50):
        sim.add_robot(("p3dx", "amigo", "p3dx-equipped")[i % 3], f"r{i}")
    modem = NullModem(sim)
    assert grown(lambda i: session(modem, f"r{i % 50}", i), 100) < 60_000


@pytest.mark.unwatched
def test_factory_robots_leave_nothing_behind() -> None:
    sim = Simulation.load("office")
    modem = NullModem(sim)

    def visit(i: int) -> None:
        robot = sim.add_robot("p3dx-equipped", sim.core.unique_name("127.0.0.1"))
        session(modem, robot.name, i)
        sim.remove_robot(robot.name)

    assert grown(visit, 60) < 60_000
    assert len(sim.snapshot.rows) == 0 or not any(
        n.startswith("127") for n in sim.snapshot.rows
    )
    assert {
        name: len(table) for name, table in sim.core.engine.tables.items() if len(table)
    } == {}
    assert not [k for k in sim.core.devices._devices if str(k[0]).startswith("127")]
