"""Commands taken together have the effect of those that each session takes itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botyard.engine.commands import SetVelocity
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.protocols.pioneer import session as sessions
from botyard.protocols.pioneer.commandbatch import CommandBatch
from botyard.protocols.pioneer.kernels.schedule import DEADLINE, HEARD, SPOKE
from botyard.protocols.pioneer.packet import command, frame
from botyard.protocols.pioneer.session import Session
from botyard.servers.pioneer.nullmodem import Line, NullModem
from botyard.sim.simulation import Simulation

ROBOTS = 4
SLOT = 64


class World:
    """Robots, each with a session."""

    def __init__(self, *, without_sensors: bool = False) -> None:
        self.sim = Simulation()
        for i in range(ROBOTS):
            model = find_robot("seekur" if i == 1 else "p3dx")
            if without_sensors:
                model = replace(model, sonar=None, lasers=())
            self.sim.add_robot(model, f"r{i}", pose=Pose(0.0, 5.0 * i, 0.0))
        self.modem = NullModem(self.sim)
        self.lines: dict[int, Line] = {}
        for i in range(ROBOTS):
            self.connect(i)
        self.batch = CommandBatch(self.modem._reporter.roster)
        self.step()

    def connect(self, i: int) -> None:
        """Connect a client to a robot, and switch the motors on."""
        line = self.lines[i] = self.modem.connect(f"r{i}")
        for data in (command(0), command(1), command(2), command(1, 1)):
            line.send(data)
        line.send(command(4, 1))

    @property
    def sessions(self) -> list[Session]:
        """Session of each robot."""
        return [self.lines[i].connection.session for i in range(ROBOTS)]

    def step(self) -> None:
        self.modem.run(self.sim.dt)

    def take(self, pieces: list[bytes]) -> list[bool]:
        """Take pieces together; sessions process those that are left."""
        data = np.zeros((ROBOTS, SLOT), np.uint8)
        for i, piece in enumerate(pieces):
            data[i, : len(piece)] = np.frombuffer(piece, np.uint8)
        rows = np.array([s.row for s in self.sessions])
        sizes = np.array([len(piece) for piece in pieces])
        taken = self.batch.take(rows, data, sizes, self.modem.now).tolist()
        for session, piece, is_taken in zip(self.sessions, pieces, taken, strict=True):
            if piece and not is_taken:
                session.receive_data(piece, self.modem.now)
        return taken

    def state(self) -> list[object]:
        rows = [s.row for s in self.sessions]
        roster = self.modem._reporter.roster
        return [
            self.sim.fleet.poses.tolist(),
            self.sim.fleet.velocities.tolist(),
            self.sim.fleet.state.target.tolist(),
            roster.times[rows].tolist(),
            roster.walls[rows].tolist(),
            roster.flags[rows].tolist(),
        ]


packets = st.one_of(
    st.sampled_from([11, 21, 110]).flatmap(
        lambda n: st.integers(-65535, 65535).map(lambda v: command(n, v))
    ),
    st.sampled_from(
        [
            command(0),
            command(0, 5),
            command(11),
            frame(11, b"\x1b\x05"),
            frame(21, b"\x1b\x05\x00\x07"),
            frame(21, b"\x2b\x05\x00"),
            command(8, 500),
            command(12, 90),
            command(29),
            command(4, 0),
            command(4, 1),
            command(33, 3),
            command(36, 2),
            command(2),
            command(11, 100)[:-1] + b"\x00",
            command(21, 30)[:5],
            b"\xfa",
            b"\xfa\xfb\x00",
            b"noise",
        ]
    ),
)
pieces = st.lists(packets, max_size=4).map(lambda some: b"".join(some)[:SLOT])


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.lists(pieces, min_size=ROBOTS, max_size=ROBOTS), max_size=6))
def test_together_as_alone(script: list[list[bytes]]) -> None:
    one, other = World(), World()
    for sent in script:
        one.take(sent)
        for session, piece in zip(other.sessions, sent, strict=True):
            if piece:
                session.receive_data(piece, other.modem.now)
        one.step()
        other.step()
        assert one.state() == other.state()


@pytest.mark.parametrize("value", [*range(-65535, 65536, 4369), -1, 0, 1])
def test_units_are_exact(value: int) -> None:
    world = World()
    both = command(11, value) + command(21, value)
    assert world.take([both] * ROBOTS) == [True] * ROBOTS
    found = [
        many.for_body(i)
        for _, _, _, many in world.sim.core.engine.queued()
        for i in range(ROBOTS)  # type: ignore[union-attr]
    ]
    world.sessions[0].receive_data(both, world.modem.now)
    v, w = [
        one for *_, one in world.sim.core.engine.queued() if type(one) is SetVelocity
    ]
    assert found == [SetVelocity(v=v.v, w=w.w)] * ROBOTS


def test_usual_commands_are_taken() -> None:
    world = World()
    usual = command(0) + command(11, 200) + command(21, -10)
    assert world.take([usual, command(0), b"", usual]) == [True, True, False, True]


@pytest.mark.parametrize(
    "piece",
    [
        command(12, 90),
        command(32, 5),
        command(11, 200)[:-1],
        command(11, 200) + b"\xfa",
        b"\x00" + command(11, 200),
        command(11, 200)[:-1] + b"\xff",
        frame(11, b"\x3b\x05\x00")[:2] + b"\xff" + command(11)[3:],
    ],
)
def test_a_session_gets_all_other_bytes(piece: bytes) -> None:
    world = World()
    both = command(21, 5) + piece
    assert world.take([both] + [command(0)] * 3) == [False, True, True, True]
    assert world.sessions[0].parser.counts.packets > 1


def test_motors_off_cost_the_warning_of_the_session() -> None:
    world = World()
    world.sessions[0].receive_data(command(4, 0), 0.0)
    world.step()
    assert world.take([command(11, 1)] * ROBOTS) == [False, True, True, True]
    assert world.sessions[0].warned_motors


def test_a_command_shows_that_its_client_is_alive() -> None:
    world = World()
    row, roster = world.sessions[2].row, world.modem._reporter.roster
    roster.times[row, HEARD] = -1
    world.modem.now += 7.0
    world.take([b"", b"", command(0), b""])
    assert roster.times[row, HEARD] == world.sessions[2].port.time_us
    assert roster.walls[row, SPOKE] == world.sessions[2].silent_since == world.modem.now
    assert roster.walls[row, DEADLINE] == world.modem.now + sessions.SILENCE_SECONDS


def test_a_session_that_left_is_not_meant_by_its_row() -> None:
    world = World()
    world.sessions[3].close("over")
    assert world.take([command(11, 9)] * ROBOTS) == [True, True, True, False]


def test_robots_that_come_and_go_do_not_mix_the_commands() -> None:
    world = World()
    world.take([command(11, 100)] * ROBOTS)
    world.sessions[1].close("over")
    world.sim.remove_robot("r1")
    world.step()
    pieces = [command(11, 10 * i) for i in range(ROBOTS)]
    assert world.take([pieces[0], b"", *pieces[2:]]) == [True, False, True, True]
    world.step()
    rows = [world.sim.fleet.rows[name] for name in ("r0", "r2", "r3")]
    assert world.sim.fleet.state.target[rows, 0].tolist() == [0.0, 0.02, 0.03]


def test_a_session_in_the_row_of_another_drives_its_own_robot() -> None:
    world = World(without_sensors=True)
    world.take([command(11, 100)] * ROBOTS)
    before = [session.row for session in world.sessions]
    for i in (0, 2):
        world.lines[i].hang_up()
    # The row that was freed last is used first, so these two exchange their rows.
    for i in (0, 2):
        world.connect(i)
    world.step()
    after = [session.row for session in world.sessions]
    assert after == [before[2], before[1], before[0], before[3]]
    pieces = [command(11, 10 * i) for i in range(ROBOTS)]
    assert world.take(pieces) == [True] * ROBOTS
    world.step()
    targets = world.sim.fleet.state.target[:, 0].tolist()
    assert targets == [0.0, 0.01, 0.02, 0.03]
