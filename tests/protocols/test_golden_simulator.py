"""Recordings of the original's answers about the simulation:

maps, SIMINFO, two robots, factories, single commands.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from botyard.protocols.discovery import REPLY, is_request
from botyard.protocols.pioneer.packet import Parser
from botyard.protocols.pioneer.reports import Sip
from botyard.protocols.pioneer.simreports import MapChanged, SimInfo
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation
from botyard.testing import Passed, check_session
from tests import golden
from tests.golden import deviation

pytestmark = pytest.mark.shared


def with_maps(
    shared: Path, name: str
) -> tuple[golden.Recording, list[golden.Step], NullModem]:
    """Replay a recording with a simulator whose clients may load the reference maps."""
    recording = golden.read(shared, name)
    maps = shared / "data/maps"
    sim = Simulation.load(
        maps / str(recording.map), odometry_error="none", sensor_noise=False
    )
    args = recording.args
    model = args[args.index("-R") + 1] if "-R" in args else recording.model
    sim.add_robot(model, "robot")
    modem = NullModem(sim, folders=(maps,))
    return recording, golden.replay(modem, modem.connect("robot"), recording), modem


def map_answers(steps: list[golden.Step]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the answer to each load command."""
    out = []
    for step in steps:
        if step.sent[3:4] == b"\xec" and step.sent[5] in (1, 2):
            found = [MapChanged.decode(p) for p in step.received if p.id == 0x66]
            out.append((step.note, [(m.loaded, m.name) for m in found]))

    return out


@pytest.mark.parametrize("name", ["factory.map", "simctrl.map", "simctrl.map_nonul"])
def test_maps(shared: Path, name: str) -> None:
    """Where the original answers, botyard answers the same; where it is silent, botyard
    gives the documented answer.
    """
    deviation("map-changed-always", "map-name-counted", "map-name-case")
    recording, ours, modem = with_maps(shared, name)
    sent = [s for s in recording.steps if s.sent]
    mine = [next(o for o in ours if o.t == s.t and o.note == s.note) for s in sent]
    for m, s in zip(mine, sent, strict=True):
        m.sent = s.sent
    expected = {
        "map": [
            1,
            0,
            0,
            1,
            0,
            1,
            2,
            # The maps are: loaded, unchanged, unchanged with its other spelling, master, refused,
            # loaded, missing.
        ],
        "map_nonul": [1, 0],
    }[name.rpartition(".")[2]]
    answers = map_answers(mine)
    assert [[loaded for loaded, _ in found] for _, found in answers] == [
        [n] for n in expected
    ]
    for (note, got), (_, theirs) in zip(answers, map_answers(sent), strict=True):
        asked = note.split()[-1]
        assert [n for _, n in got] == [asked]
        if theirs:
            assert theirs == got, "the original said the same, where it said anything"

    assert modem.sim.scene.name == "AMROffice"
    before = next(s for s in sent if s.sent[3:4] == b"\xec")
    assert before.note.startswith("SIM_CTRL 6")
    gaps = [len(step.sips()) for step in mine if step.note.startswith("SIM_CTRL 1")]
    assert min(gaps) >= 3, "reports go on while maps are loaded"


def test_the_ghost_of_that_session_is_one(shared: Path) -> None:
    _, _, modem = with_maps(shared, "simctrl.map")
    robot = modem.sim.robots["robot"]
    assert modem.sim.snapshot.state.mask[modem.sim.snapshot.rows[robot.name]] == 0


@pytest.mark.parametrize(
    "name", ["siminfo.p3dx-sh", "siminfo.patrolbot-sh", "siminfo.seekur"]
)
def test_siminfo(shared: Path, name: str) -> None:
    """Names and types of devices; the original's sonar numbers are uninitialised
    memory.
    """
    deviation("siminfo-numbers", "siminfo-version")
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    mine, theirs = (
        next(SimInfo.decode(p) for s in steps for p in s.received if p.id == 0x63)
        for steps in (ours, recording.steps)
    )
    assert (mine.application, mine.flags) == (theirs.application, theirs.flags)

    def devices(info: SimInfo) -> list[tuple[str, str]]:
        return [(re.sub(r":\d+$", "", d.name), d.type_name) for d in info.devices]

    assert devices(mine) == devices(theirs)


def test_odds_and_ends(shared: Path) -> None:
    """SIM_MESSAGE, SIM_SET_POSE, SIM_RESET, BATTEST, SONAR, ENABLE, temperatures,
    DIGOUT, unsupported commands: report by report.
    """
    deviation(
        "digout", "sip-temperature-none", "sip-heading-resolution", "sim-reset-start"
    )
    recording = golden.read(shared, "simmisc")
    modem, line = golden.simulate(shared, recording)
    recorded_home = round(modem.sim.robots["robot"].truth.x * 1000)
    ours = golden.replay(modem, line, recording)
    compared = 0
    for mine, theirs in zip(ours, recording.steps, strict=True):
        if len(theirs.sips()) < 2 or not mine.sips():
            continue
        a, b = mine.sips()[-1], theirs.sips()[-1]
        compared += 1
        assert a.flags == b.flags, theirs.note
        assert (a.battery, a.battery10, a.faults, a.charge_state, a.soc) == (
            b.battery,
            b.battery10,
            b.faults,
            b.charge_state,
            b.soc,
        )
        assert len(a.sonar) == len(b.sonar), theirs.note
        assert a.temperature == (
            -128 if b.temperature in (-127, -128) else b.temperature
        ), theirs.note
        assert (a.digin, a.gripper, a.analog) == (b.digin, b.gripper, b.analog)
        if theirs.note.startswith("SIM_SET_POSE"):
            x, y = mine.simstats()[-1].x_mm, theirs.simstats()[-1].x_mm
            assert (x, y) == (2000, 2000)

        if "SIM_RESET" in theirs.note:
            assert theirs.simstats()[-1].x_mm == 0, (
                "the original goes to the map's origin"
            )
            assert abs(mine.simstats()[-1].x_mm - recorded_home) <= 1
            assert (a.x, a.y, a.th) == (b.x, b.y, b.th) == (0, 0, 0)

    assert compared > 12
    # 0x0F0F holds the mask and the states of the low half; outputs that are set already do not
    # change.
    assert ours[-1].sips()[-1].digout == 0xFF
    assert any('"hello from recorder"' in text for text in line.log)
    said = " ".join(line.log)
    for number in (22, 33, 200):
        assert f"command {number}" in said
    # botyard answers ENCODER and IOREQUEST, on which the original is silent.
    last = next(s for s in ours if s.note.startswith("200"))
    assert {p.id for p in last.received} >= {0x90, 0xF0}
    deviation("answers-where-silent")


def test_two_robots(shared: Path) -> None:
    """A robot sees the other one with laser and sonar, is stopped by it, and passes
    through it as a ghost.
    """
    deviation(
        "stall-contact",
        "exact-geometry",
        "collision-shape",
        "laser-spacing",
        "command-delay",
    )
    recording = golden.read(shared, "two.robots")
    sim = Simulation.load(
        shared / "data/maps/columbia.map", odometry_error="none", sensor_noise=False
    )
    sim.add_robot("p3dx-sh", "robot")
    other = sim.add_robot("p3dx-sh", "second")
    modem = NullModem(sim)
    line = modem.connect("robot")
    marks = [i for i, s in enumerate(recording.steps) if s.note.startswith("B ")]
    x, y, th = recording.meta["bpose"]

    def part(
        first: int, last: int | None
    ) -> tuple[list[golden.Step], list[golden.Step]]:
        steps = recording.steps[first:last]
        return golden.replay(
            modem, line, golden.Recording(recording.meta, steps)
        ), steps

    part(0, marks[0])
    other.command.set_pose(x / 1000, y / 1000, math.radians(th))
    ours, theirs = part(*marks)
    seen = 0
    for mine, recorded in zip(ours, theirs, strict=True):
        a, b = mine.sips(), recorded.sips()
        for sip, reference in ((a[-1], b[-1]),) if len(a) > 3 and len(b) > 3 else ():
            ranges = [
                abs(r - q)
                for (_, r), (_, q) in zip(sip.sonar, reference.sonar, strict=True)
            ]
            way = abs(mine.simstats()[-1].x_mm - recorded.simstats()[-1].x_mm)
            assert way <= 60, "it comes as far, or is stopped at the same place"
            assert sum(d > 40 + way for d in ranges) <= 2, "of 16"
            seen += min(r for _, r in sip.sonar[:8]) < 1000

    assert seen, "the sonar sees the other robot"
    other.ghost()
    before = sim.robots["robot"].truth.x
    ours, theirs = part(marks[1], None)
    moved = [
        abs(s[-1].simstats()[-1].x_mm - s[0].simstats()[-1].x_mm)
        for s in ([t for t in steps if t.simstats()] for steps in (ours, theirs))
    ]
    assert abs(moved[0] - moved[1]) <= 60
    assert sim.robots["robot"].truth.x < before - 0.1, "on, into the ghost"


@pytest.mark.parametrize(
    "name", ["factory.second", "factory.disconnect", "session.second"]
)
def test_what_a_factory_or_a_second_client_is_told_first(
    shared: Path, name: str
) -> None:
    """First reports of a session:

    a new robot starts with motors on and odometry zero (the sockets: tests/servers).
    """
    recording = golden.read(shared, name)
    recording.meta.setdefault("model", "p3dx")
    modem, line = golden.simulate(shared, recording)
    first = golden.Recording(
        recording.meta,
        recording.steps[
            : next(i for i, s in enumerate(recording.steps) if "ENABLE" in s.note) + 1
        ],
    )
    ours = golden.replay(modem, line, first)
    a = next(s for step in ours for s in step.sips())
    b = next(s for step in first.steps for s in step.sips())
    assert (a.x, a.y, a.th, a.flags, a.battery) == (b.x, b.y, b.th, b.flags, b.battery)
    assert [i for i, _ in a.sonar] == [i for i, _ in b.sonar]


def test_discovery_datagrams(shared: Path) -> None:
    """The datagrams that are answered, and the bytes of the answers."""
    deviation("discovery-at-once")
    answered: dict[bytes, bytes | None] = {}
    last = b""
    for line in (shared / "golden/discovery.udp.jsonl").read_text().splitlines()[1:]:
        event = json.loads(line)
        if str(event.get("note", "")).startswith("udp"):
            data = bytes.fromhex(event["hex"])
            if event["dir"] == "tx":
                last = data
                answered.setdefault(last, None)
            else:
                answered[last] = data

    assert len(answered) >= 4
    for request, reply in answered.items():
        assert is_request(request) == (reply is not None), request.hex()
        assert reply in (None, REPLY)


CLIENTS = [
    "simpleConnect",
    "simpleMotionCommands",
    "gotoActionExample",
    "laserConnect",
    "wander",
    "robotConnectionCallbacks",
    "gpsExample",
    "testMobileSim",
    "seekur",
    "lx",
]


@pytest.mark.parametrize("name", CLIENTS)
def test_sessions_of_unmodified_clients_go_as_a_client_needs(
    shared: Path, name: str
) -> None:
    """Bytes of AriaCoda programs at their times; the answers have the properties that
    client libraries rely on (§15).
    """
    recording = golden.read(shared, f"client.{name}")
    modem, line = golden.simulate(shared, recording)
    parser, passed, now = Parser(), [], modem.now
    for step, following in zip(
        recording.steps, [*recording.steps[1:], None], strict=True
    ):
        if step.sent and not line.closed:
            passed += [
                Passed(modem.now - now, True, p) for p in Parser().feed_bytes(step.sent)
            ]
            line.send(step.sent)

        end = following.t if following else step.t + 0.3
        while modem.sim.time < end - 0.05:
            modem.run(modem.sim.dt)
            passed += [
                Passed(modem.now - now, False, p)
                for p in parser.feed_bytes(line.take())
            ]

    assert check_session(passed) == []
    unknown = {
        int(text.split("command ")[1].split()[0])
        for text in line.log
        if "not supported" in text
    }
    assert unknown <= {116, 229}, (
        "two numbers that nobody documents are logged once and otherwise ignored"
    )
    reports = sum(p.packet.id == 0x32 for p in passed if not p.from_client)
    assert reports >= 0.9 * sum(len(s.sips()) for s in recording.steps)
    assert not any("checksum" in text for text in line.log)
    assert {p.packet.id for p in passed if not p.from_client} >= {
        p.id for s in recording.steps for p in s.received if p.id not in (0x63, 0x66)
    }
    if name == "laserConnect":
        scans = [p.packet for p in passed if p.packet.id == 0x61 and not p.from_client]
        assert len(scans) > 100

    if name == "gpsExample":
        assert sum(p.packet.id == 0x62 for p in passed if not p.from_client) > 50
    assert all(
        Sip.decode(p.packet).battery10 == 130 or name == "lx"
        for p in passed
        if p.packet.id == 0x32
    )


def test_every_recording_is_used(shared: Path) -> None:
    """A test of the Pioneer side names each file of the reference; files of other
    protocols have other tests.
    """
    sources = "".join(
        p.read_text("utf-8") for p in Path(__file__).parent.parent.rglob("test_*.py")
    )
    models = [
        "p3dx",
        "p3at",
        "amigo",
        "powerbot",
        "peoplebot",
        "p3dx-sh",
        "patrolbot-sh",
        "seekur",
        "pioneer-lx",
    ]
    unnamed = []
    for path in sorted((shared / "golden").glob("*.jsonl")):
        name = path.name.removesuffix(".jsonl")
        family, _, rest = name.partition(".")
        variants = {name, rest, *(f"{family}.{m}" for m in models)}
        generic = rest in models or any(rest.endswith(f".{m}") for m in models)
        if not generic and not any(
            f'"{v}"' in sources or f"{v}.jsonl" in sources for v in variants if v
        ):
            unnamed.append(name)

    assert unnamed == []
