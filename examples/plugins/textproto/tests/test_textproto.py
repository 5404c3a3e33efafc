"""The protocol without a socket."""

from __future__ import annotations

from botyard_textproto import TextSession, interface

from botyard import Simulation
from botyard.control import Control
from botyard.interfaces.interface import Door, caller_of
from botyard.testing import check_protocol

EXAMPLES = [
    b"list\npose ann\n",
    b"drive ann 0.3 0.1\n",
    b"place ann 1 2 0\npose ann\nquit\n",
    b"nonsense\n",
]


def session(sim: Simulation) -> TextSession:
    return TextSession(
        Door(Control(sim), caller_of(interface, "me", "me"), interface.chosen({}))
    )


def test_it_keeps_what_clients_rely_on() -> None:
    assert check_protocol(interface, EXAMPLES) == []


def test_answers() -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "ann", pose=(1.0, 2.0, 0.0))
    one = session(sim)
    one.receive_data(b"list\npo", 0.0)
    one.receive_data(b"se ann\npose bob\ndrive ann 0.3\n", 0.0)
    lines = one.data_to_send().decode().splitlines()
    assert lines[:2] == ["ok ann", "ok 1.000 2.000 0.000"]
    assert lines[2].startswith("error")
    assert "bob" in lines[2]
    assert lines[3].startswith("error expected list")
    one.receive_data(b"drive ann 0.3 0\n", 0.0)
    sim.step(10)
    assert one.data_to_send() == b"ok\n"
    assert sim.robots["ann"].state.pose_world.x > 1.1
    one.receive_data(b"x" * 300, 0.0)
    assert one.is_closed
    assert one.data_to_send().startswith(b"error expected a line")
