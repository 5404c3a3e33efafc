"""Reports made together have the same bytes as reports that each session makes alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from botyard.engine.commands import SetOdometry
from botyard.geometry import Pose
from botyard.model.library import load_robot
from botyard.model.scene import Scene
from botyard.protocols.pioneer.batch import BUFFER, Batch, Made
from botyard.protocols.pioneer.kernels.reports import put_checksum
from botyard.protocols.pioneer.packet import (
    Parser,
    checksum,
    command,
    frame,
    int_argument,
)
from botyard.protocols.pioneer.reportbuilder import laser_packets
from botyard.protocols.pioneer.session import Session
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation

MODELS = [
    "p3dx",
    "amigo",
    "seekur",
    "powerbot",
    "peoplebot-sh",
    "pioneer-lx",
    "p3dx-with-rear-laser",
    "pion1x",
    "p3at_with_gps",
]
WALLS = Scene(
    segments=np.array(
        [
            [-6.0, -6, 6, -6],
            [6, -6, 6, 6],
            [6, 6, -6, 6],
            [-6, 6, -6, -6],
            [2.0, -1, 3, 4],
        ]
    )
)


def world(models: list[str]) -> tuple[NullModem, list[Session]]:
    sim = Simulation(WALLS)
    for i, model in enumerate(models):
        sim.add_robot(model, f"r{i}", pose=sim.core.places.random(load_robot(model), i))
    modem = NullModem(sim)
    sessions = []
    for i in range(len(models)):
        line = modem.connect(f"r{i}")
        for data in (command(0), command(1), command(2), command(1, 1)):
            line.send(data)
        sessions.append(line.connection.session)

    return modem, sessions


class Together:
    """Makes the reports of several sessions with one batch."""

    def __init__(self, modem: NullModem) -> None:
        self.batch = Batch(modem._reporter.roster)

    def make(self, sessions: list[Session]) -> list[Made | None]:
        rows = np.array([session.row for session in sessions])
        made = self.batch.make(rows).tolist()
        return [
            self.batch.made(row) if is_made else None
            for row, is_made in zip(rows.tolist(), made, strict=True)
        ]


def alone(session: Session) -> tuple[bytes, bytes]:
    """Return the bytes that the session would send alone, without a change of its
    state.
    """
    state = session.port.state()
    scans = b""
    for laser in session.lasers:
        if laser.mode:
            moved = laser._moved or session.port.teleports != laser._teleports
            scans += laser_packets(
                session.port.laser(laser.index),
                state,
                0x60 if laser.mode == 1 else 0x61,
                device=laser.index,
                flags=int(moved),
                reverse=laser.reverse,
            )

    return session._sip(state), scans


commands = st.tuples(
    st.integers(0, len(MODELS) - 1),
    st.sampled_from(
        [
            command(11, 400),
            command(11, -300),
            command(21, 40),
            command(21, -60),
            command(110, 200),
            command(28, 0),
            command(28, 1),
            command(4, 0),
            command(4, 1),
            command(35, 1),
            command(35, 2),
            command(35, 0),
            command(36, -30),
            command(37, 77),
            command(38, 50),
            command(38, 0),
            command(36, -1),
            command(37, 1),
            command(250, 117),
            command(251, 1),
            command(252, 33),
            command(30, 0x0F03),
            command(44, 3),
            command(12, 90),
            frame(224, b"\x3b" + (5000).to_bytes(4, "little") * 3),
            frame(230, int_argument(2) + b"\x01"),
            frame(236, b"\x3b\xce\x00\x01"),
            frame(236, b"\x3b\xcd\x00\x10\x20\x30\x01"),
            frame(7, b"\x3b" + (32000).to_bytes(2, "little") * 3),
        ]
    ),
)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(commands, max_size=6), min_size=3, max_size=12))
def test_together_as_alone(script: list[list[tuple[int, bytes]]]) -> None:
    modem, sessions = world(MODELS)
    batch = Together(modem)
    together = 0
    for sent in script:
        for i, data in sent:
            sessions[i].receive_data(data, modem.now)
        modem.now += 0.1
        modem.sim.step()
        expected = [alone(s) for s in sessions]
        for made, (sip, scans) in zip(batch.make(sessions), expected, strict=True):
            if made is not None:
                assert made.sip == sip
                assert made.scans == scans
                together += 1
                assert Parser().feed_bytes(made.sip)[0].id == 0x32

    assert together > 0


def test_a_usual_fleet_is_made_together_in_every_period() -> None:
    """The batch path is used, and its result is right."""
    modem, sessions = world(["p3dx"] * 6)
    for session in sessions:
        session.receive_data(command(35, 1), modem.now)
    batch = Together(modem)
    modem.sim.step()
    batch.make(sessions)
    for _ in range(5):
        modem.sim.step()
        made = batch.make(sessions)
        assert all(m is not None and len(m.scans) > 400 for m in made)


@pytest.mark.parametrize("last", [-1, 0, 1, 30, 31, 32, 62, 63, 90])
def test_scans_of_any_length(last: int) -> None:
    """From one reading in one packet to full and short packets in a row."""
    modem, sessions = world(["p3dx"] * 3)
    for session in sessions:
        for data in (command(36, -1), command(37, last), command(35, 1)):
            session.receive_data(data, modem.now)

    batch = Together(modem)
    modem.sim.step()
    batch.make(sessions)
    modem.sim.step()
    expected = [alone(s) for s in sessions]
    for made, (sip, scans) in zip(batch.make(sessions), expected, strict=True):
        assert made is not None
        assert (made.sip, made.scans) == (sip, scans)


def test_robots_that_are_not_plain_make_their_own() -> None:
    modem, sessions = world(["p3dx", "p3dx-equipped", "p3dx", "p3dx"])
    modem.sim.step()
    made = Together(modem).make(sessions)
    assert [m is None for m in made] == [False, True, False, False]


def test_extreme_poses_saturate_and_wrap_alike() -> None:
    modem, sessions = world(["p3dx", "seekur", "amigo"])
    for value in (1e7, -1e7, 32.7675, -32.768, 1e-9):
        for session in sessions:
            session.port.issue_command(SetOdometry(Pose(value, -value, math.pi)))
        modem.sim.step()
        for session, made in zip(sessions, Together(modem).make(sessions), strict=True):
            assert made is not None
            assert made.sip == alone(session)[0]


def test_sessions_that_come_and_go_get_their_own_robots_reports() -> None:
    modem, sessions = world(["p3dx", "amigo", "p3dx", "seekur"])
    batch = Together(modem)
    for k in range(12):
        modem.sim.step()
        chosen = sessions[k % 2 :] if k % 3 else sessions
        if k == 6:
            modem.sim.add_robot("p3at", "late")
        if k == 8:
            sessions[1].close("gone")
            modem.sim.remove_robot("r1")
            sessions = [sessions[0], *sessions[2:]]
            chosen = sessions

        for session, made in zip(chosen, batch.make(chosen), strict=True):
            if made is not None:
                assert made.sip == alone(session)[0]


@given(st.binary(min_size=1, max_size=60), st.integers(0, 4))
def test_checksums(payload: bytes, before: int) -> None:
    head, last = b"\xfa\xfb" + bytes((len(payload) + 2,)), b"\0\0"
    packet = np.frombuffer(bytes(before) + head + payload + last, np.uint8).copy()
    put_checksum(packet, before, len(packet) - before)
    assert bytes(packet[-2:]) == checksum(payload).to_bytes(2, "big")


def test_a_fault_of_the_batch_costs_nobody_a_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modem, _ = world(["p3dx"] * 4)
    lines = list(modem._lines)

    def broken(self: Batch, numbers: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Batch, "make", broken)
    modem.run(0.3)
    for line in lines:
        assert len([p for p in Parser().feed_bytes(line.take()) if p.id == 0x32]) == 3


def test_what_is_sent_again_while_time_stands_still_is_made_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modem, sessions = world(["p3dx"] * 5)
    for session in sessions:
        session.receive_data(command(35, 1), modem.now)
    modem.run(0.5)
    lines = list(modem._lines)
    for line in lines:
        line.take()
    sizes: list[int] = []
    make = Batch.make

    def counting(self: Batch, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        made = make(self, numbers)
        sizes.append(int(made.sum()))
        return made

    monkeypatch.setattr(Batch, "make", counting)
    expected = [sip for sip, _ in map(alone, sessions)]
    modem.wait(1.0)
    assert sizes == [5] * len(sizes)
    for line, sip in zip(lines, expected, strict=True):
        again = [p for p in Parser().feed_bytes(line.take()) if p.id == 0x32]
        assert len(again) == len(sizes) >= 8
        assert all(sip[3:-2] == bytes((p.id,)) + p.data for p in again)


def test_a_new_session_does_not_claim_the_report_of_the_one_before_it() -> None:
    """The buffer has shrunk since that session left."""
    modem, sessions = world(["p3dx"] * 60)
    batch = Together(modem)
    batch.make(sessions)
    assert len(batch.batch.buffer) > 2 * BUFFER
    for connection in modem._reporter.connections[1:]:
        modem._reporter.detach(connection)
    batch.batch._pack(0)
    assert len(batch.batch.buffer) == BUFFER
    for i in range(1, 60):
        modem.connect(f"r{i}")
    batch.batch._pack(0)
    (made,) = batch.make(sessions[:1])
    assert made is not None and made.sip == alone(sessions[0])[0]


def test_other_robots_come_and_go_between_two_reports() -> None:
    """Readings then have new places and none is taken yet:

    they are taken all at once, and equal single readings.
    """
    modem, sessions = world(["p3dx"] * 5)
    for session in sessions:
        session.receive_data(command(35, 1), modem.now)
    last, sessions = sessions[-1], sessions[:-1]
    batch = Together(modem)
    for _ in range(2):
        modem.sim.step()
        batch.make(sessions)

    last.close("gone")
    modem.sim.remove_robot("r4")
    made = batch.make(sessions)
    assert [m[:2] for m in made if m is not None] == [
        alone(session) for session in sessions
    ]
    modem.sim.step()
    assert None not in batch.make(sessions)
