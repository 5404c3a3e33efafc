"""Every model on the wire:

handshake, CONFIG, sizes of reports, sonar and laser counts, motion.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from botyard.geometry import Pose
from botyard.model.library import load_robot, parse_robot, robot_names
from botyard.model.sensors import SonarSpec, Transducer
from botyard.protocols.pioneer.packet import Packet, command, frame
from botyard.protocols.pioneer.reports import Config, Sip, sync2
from botyard.protocols.pioneer.session import Session
from botyard.protocols.pioneer.simreports import SimStat
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation
from botyard.testing import Parser, Passed, check_robot_model, check_session

DRIVING = [n for n in robot_names() if load_robot(n).drive]


@pytest.mark.parametrize("name", DRIVING)
def test_every_model_serves_clients(name: str) -> None:
    assert check_robot_model(load_robot(name)) == []


def test_a_ring_of_more_than_32_goes_round() -> None:
    """40 transducers:

    32 in one report, 8 in the next; the count belongs to the packet (PIO-082, HIS-004).
    """
    from tests.protocols.lines import Client

    ring = SonarSpec(
        type_name="big",
        transducers=tuple(Transducer(pose=Pose(0.1, 0, 0.1 * i)) for i in range(40)),
    )
    spec = replace(load_robot("p3dx"), name="ringed", sonar=ring)
    assert check_robot_model(spec) == []
    sim = Simulation()
    sim.add_robot(spec, "r")
    seen = [
        [i for i, _ in Sip.decode(p).sonar]
        for p in Client(sim=sim).run(0.4)
        if p.id == 0x32
    ]
    assert seen[:2] == [list(range(32)), list(range(32, 40))]


def test_the_check_finds_what_is_wrong() -> None:
    slow = parse_robot(
        'extends = "p3dx"\n[limits]\nmax_speed = [0.01, 0, 100]\n', "slow"
    )
    assert check_robot_model(slow) == ["VEL does not move the robot"]
    nameless = replace(
        load_robot("p3dx"), pioneer=replace(load_robot("p3dx").pioneer, class_name="")
    )
    assert any("three names" in p for p in check_robot_model(nameless))


def test_a_robot_that_is_silent_about_the_simulation_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SIMSTAT is left out, on request and before reports."""
    send = Session.send

    def silent(self: Session, data: bytes) -> None:
        if data[3:4] != b"\x62":
            send(self, data)

    monkeypatch.setattr(Session, "send", silent)
    found = check_robot_model(load_robot("p3dx"))
    assert any("SIM_STAT at" in p and "has no answer" in p for p in found)
    assert any("no SIMSTAT before it" in p for p in found)


def test_what_was_switched_off_need_not_come() -> None:
    sips = [(t / 10, "rx", Sip(battery10=130).encode()) for t in range(4, 12)]
    events = [
        *HELLO,
        (0.35, "tx", command(237, 2)),
        (0.55, "tx", command(237, 0)),
        *sips,
    ]
    assert check_session(passed(*sorted(events, key=lambda e: e[0]))) == []


def passed(*events: tuple[float, str, bytes]) -> list[Passed]:
    return [
        Passed(t, who == "tx", p)
        for t, who, data in events
        for p in Parser().feed_bytes(data)
    ]


HELLO = [
    (0.0, "tx", command(0)),
    (0.0, "rx", command(0)),
    (0.1, "tx", command(1)),
    (0.1, "rx", command(1)),
    (0.2, "tx", command(2)),
    (0.2, "rx", sync2("A", "Pioneer", "p3dx")),
    (0.3, "tx", command(1, 1)),
]


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ([(0.25, "rx", Sip(battery10=130).encode())], "a report before OPEN"),
        (
            [
                (0.4, "rx", Sip(battery10=130).encode()),
                (2.0, "rx", Sip(battery10=130).encode()),
            ],
            "no report for 1.6 s",
        ),
        (
            [
                (0.4, "rx", Sip(battery10=130).encode()),
                (0.5, "rx", Sip(x=5000, battery10=130).encode()),
            ],
            "jumps by 5000 units",
        ),
        (
            [(0.4, "tx", command(4, 1)), (0.9, "rx", Sip(battery10=130).encode())],
            "motors bit",
        ),
        ([(0.4, "rx", Sip(battery10=130, flags=1 << 5).encode())], "E-stop"),
        (
            [(0.4, "rx", Sip(battery10=90).encode())],
            "unusable battery values in the report at 0.40 s: 9.0 V",
        ),
        (
            [(0.4, "tx", command(18)), (0.5, "rx", Sip(battery10=130).encode())],
            "CONFIG at 0.40 s has no answer",
        ),
        ([(0.4, "tx", command(237))], "SIM_STAT at 0.40 s has no answer"),
        (
            [(0.4, "tx", command(237, 1)), (1.5, "rx", SimStat().encode())],
            "SIM_STAT at 0.40 s has no answer",
        ),
        (
            [(0.4, "rx", frame(0x62, bytes(53)))],
            "SIMSTAT with 53 bytes of data at 0.40 s, expected 56",
        ),
        (
            [
                (0.4, "tx", command(237, 2)),
                (0.8, "rx", SimStat().encode()),
                *((t, "rx", Sip(battery10=130).encode()) for t in (0.8, 0.9)),
            ],
            "the report at 0.90 s has no SIMSTAT before it",
        ),
        ([], "no report at all"),
    ],
)
def test_each_rule_of_a_session_is_checked(
    events: list[tuple[float, str, bytes]], complaint: str
) -> None:
    found = check_session(passed(*sorted([*HELLO, *events], key=lambda e: e[0])))
    assert any(complaint in p for p in found), found


def test_broken_scans_are_found() -> None:
    from botyard.protocols.pioneer.reports import LaserPart

    def part(first: int, n: int) -> Packet:
        return Parser().feed_bytes(
            LaserPart(
                total=64, first=first, ranges_mm=[1] * n, reflectance=[0] * n
            ).encode(0x61)
        )[0]

    sip = Parser().feed_bytes(Sip(battery10=130).encode())[0]
    good = [
        Passed(0.4, False, sip),
        Passed(0.4, False, part(0, 32)),
        Passed(0.4, False, part(32, 32)),
    ]
    assert check_session([*passed(*HELLO), *good]) == []
    assert any(
        "parts of a scan are out of order" in p
        for p in check_session(
            [*passed(*HELLO), *good[:2], Passed(0.5, False, part(0, 32))]
        )
    )
    assert any(
        "in the middle" in p
        for p in check_session([*passed(*HELLO), *good[:2], Passed(0.5, False, sip)])
    )


def test_settings_are_read_back_by_every_model_as_they_were_set() -> None:
    """After SETV, SETRV, SETA, SETRA, CONFIG has the set number or the model's limit."""
    sim = Simulation()
    for i, name in enumerate(DRIVING):
        sim.add_robot(name, name, pose=Pose(5.0 * i, 0.0, 0.0))
    modem = NullModem(sim)
    lines = {name: modem.connect(name) for name in DRIVING}
    for line in lines.values():
        line.send(frame(0) + frame(1) + frame(2) + command(1, 1))
    for value in (
        1,
        7,
        29,
        43,
        44,
        57,
        58,
        99,
        101,
        113,
        333,
        499,
        501,
        999,
        1001,
        2199,
        8191,
        30_001,
    ):
        for line in lines.values():
            line.send(
                b"".join(command(n, value) for n in (6, 10, 5, 23))
                + command(5, -value)
                + command(23, -value)
            )

        modem.run(0.1)
        for name, line in lines.items():
            line.take()
            line.send(command(18))
            c = Config.decode(Parser().feed_bytes(line.take())[0])
            assert (c.trans_vel_max, c.rot_vel_max) == (
                min(value, c.trans_vel_top),
                min(value, c.rot_vel_top),
            ), name
            assert (c.trans_acc, c.trans_decel, c.rot_acc, c.rot_decel) == (
                value,
            ) * 4, name
