"""botyard against recordings of the original program, under the pass rule of
`decisions.md`, "Comparing with the recordings".
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from botyard.engine.kernels.motion import SNAP_ANGULAR, SNAP_LINEAR, ramp
from botyard.model.beams import Bundle
from botyard.model.library import load_robot
from botyard.model.obstacles import Visible
from botyard.protocols.pioneer.packet import Parser, command
from botyard.protocols.pioneer.reports import Config, LaserPart, Sip
from tests import golden
from tests.golden import deviation

pytestmark = pytest.mark.shared
MODELS = [
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
MOVING = ["p3dx", "p3at", "amigo", "patrolbot-sh", "seekur"]


def near(ours: list[int], theirs: list[int], tolerance: int = 40) -> int:
    """Return how many ranges (mm) differ by more than the tolerance."""
    return int((np.abs(np.array(ours) - np.array(theirs)) > tolerance).sum())


# -- handshake and reports at rest


@pytest.mark.parametrize("model", MODELS)
def test_handshake_and_reports_at_rest(shared: Path, model: str) -> None:
    deviation("handshake-at-once", "sip-temperature-none", "sip-timing")
    recording = golden.read(shared, f"handshake_idle.{model}")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    for note in ("SYNC0", "SYNC1", "SYNC2"):
        theirs = recording.after(note).received
        mine = next(s for s in ours if s.note.startswith(note)).received
        assert [(p.id, p.data) for p in mine] == [(p.id, p.data) for p in theirs]

    before_open = [
        p
        for s in ours
        for p in s.received
        if s.note in ("start", "SYNC0", "SYNC1", "SYNC2")
    ]
    assert {p.id for p in before_open} <= {0, 1, 2}, "no SIP before OPEN"
    their_sip, my_sip = (
        next(s for r in reversed(rs) for s in r.sips())
        for rs in (recording.steps, ours)
    )
    assert [i for i, _ in my_sip.sonar] == [i for i, _ in their_sip.sonar]
    misses = near([r for _, r in my_sip.sonar], [r for _, r in their_sip.sonar])
    assert misses <= max(1, len(my_sip.sonar) * 3 // 100)
    for f in fields(Sip):
        if f.name not in ("sonar", "temperature"):
            assert getattr(my_sip, f.name) == getattr(their_sip, f.name), f.name

    assert (their_sip.temperature, my_sip.temperature) == (-127, -128)
    count = sum(len(s.sips()) for s in ours)
    assert abs(count - sum(len(s.sips()) for s in recording.steps)) <= 6, (
        "the first one comes sooner, and none is left out"
    )


@pytest.mark.parametrize("model", MODELS)
def test_config(shared: Path, model: str) -> None:
    deviation("config-true-limits", "config-firmware", "config-accessories")
    accessories = {"ticks_mm", "front_bumpers", "rear_bumpers"}
    recording = golden.read(shared, f"config.{model}")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    theirs = [
        Config.decode(p) for s in recording.steps for p in s.received if p.id == 0x20
    ]
    mine = [Config.decode(p) for s in ours for p in s.received if p.id == 0x20]
    assert len(mine) == len(theirs) == 3
    limits = {
        "rot_vel_top",
        "trans_vel_top",
        "rot_acc_top",
        "trans_acc_top",
        "rot_vel_max",
        "trans_vel_max",
        "rot_acc",
        "rot_decel",
        "trans_acc",
        "trans_decel",
        "lat_vel_top",
        "lat_acc_top",
        "lat_vel_max",
        "lat_acc",
        "lat_decel",
    }
    for a, b in zip(mine, theirs, strict=True):
        for f in fields(Config):
            if f.name not in limits | accessories | {"firmware"}:
                assert getattr(a, f.name) == getattr(b, f.name), f.name

        assert a.firmware.startswith("S.")

    settings = [
        getattr(mine[2], n)
        for n in (
            "trans_vel_max",
            "rot_vel_max",
            "trans_acc",
            "trans_decel",
            "rot_acc",
            "rot_decel",
        )
    ]
    spec = load_robot(model)
    assert settings == [
        min(333, round(spec.limits.max_speed.x * 1000)),
        min(44, round(math.degrees(spec.limits.max_speed.a))),
        150,
        250,
        60,
        70,
    ]


# -- motion

# Recording → (note of the command, target in m/s or rad/s, axis). The ramp model gets the recorded
# step times.
RAMPS = [
    *((f"motion.vel300.{m}", "VEL 300", 0.3, 0) for m in MOVING),
    *((f"motion.vel300.{m}", "STOP", 0.0, 0) for m in MOVING),
    *((f"motion.rvel30.{m}", "RVEL 30", math.radians(30), 2) for m in MOVING),
    *((f"motion.rvel30.{m}", "RVEL 0", 0.0, 2) for m in MOVING),
    ("motion.latvel.seekur", "LATVEL 200", 0.2, 1),
    ("motion.odom_constant", "VEL 300", 0.3, 0),
]


@pytest.mark.parametrize(("name", "note", "target", "axis"), RAMPS)
def test_ramps_follow_the_recorded_steps(
    shared: Path, name: str, note: str, target: float, axis: int
) -> None:
    """Each recorded velocity follows from the one before by the ramp in the recorded
    step time (or a repeated step).
    """
    deviation("ramp-time", "sip-timing", "sip-rot-vel-resolution", "command-delay")
    recording = golden.read(shared, name)
    spec = load_robot(recording.model)
    accel, decel = (
        spec.limits.accel.as_tuple()[axis],
        spec.limits.decel.as_tuple()[axis],
    )
    snap, tolerance = (
        (SNAP_ANGULAR, math.radians(1.5)) if axis == 2 else (SNAP_LINEAR, 0.015)
    )
    index = next(i for i, s in enumerate(recording.steps) if s.note.startswith(note))

    def velocity(sip: Sip) -> float:
        if axis == 2:
            return math.radians(sip.rot_vel10 / 10)
        return (sip.lat_vel if axis == 1 else (sip.left_vel + sip.right_vel) / 2) / 1000

    step = recording.steps[index]
    pairs = list(zip(step.simstats(), step.sips(), strict=False))
    current = (
        velocity(recording.steps[index - 1].sips()[-1])
        if recording.steps[index - 1].sips()
        else 0.0
    )
    begun = misses = 0
    for stat, sip in pairs:
        v = velocity(sip)
        expected = ramp(current, target, accel, decel, stat.last_ms / 1000, snap)
        if begun == 0 and abs(v - current) < tolerance / 10:
            # The original has not read the command yet.
            continue

        begun += 1
        if abs(v - expected) > tolerance and abs(v - current) > 1e-9:
            misses += 1
        current = v

    assert begun >= 5, "the recording shows the ramp"
    assert misses <= 1, "rows may repeat or skip one step now and then"


@pytest.mark.parametrize(
    "name",
    [f"motion.vel300.{m}" for m in MOVING] + [f"motion.rvel30.{m}" for m in MOVING],
)
def test_replayed_velocities(shared: Path, name: str) -> None:
    """The whole session replayed:

    after the first changed report velocities agree step by step.
    """
    deviation(
        "command-delay",
        "ramp-time",
        "wheel-vel-conv",
        "sip-rot-vel-resolution",
        "sip-timing",
    )
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    spec = load_robot(recording.model)

    def profile(steps: list[golden.Step], vel_conv: float) -> list[tuple[float, float]]:
        sips = [s for step in steps for s in step.sips()]
        rows = [
            ((s.left_vel + s.right_vel) / 2 * vel_conv, s.rot_vel10 / 10) for s in sips
        ]
        first = next(i for i, r in enumerate(rows) if abs(r[0]) + abs(r[1]) > 0)
        return rows[first : first + 14]

    mine, theirs = profile(ours, spec.pioneer.vel_conv), profile(recording.steps, 1.0)
    for (v1, w1), (v2, w2) in zip(mine, theirs, strict=True):
        assert abs(v1 - v2) <= 15
        # The recording has whole degrees, and its ramp ran on steps of up to 110 ms.
        assert abs(w1 - w2) <= 1.5 + 1.0


@pytest.mark.parametrize(
    "name", [f"motion.{k}.{m}" for k in ("move1000", "head90") for m in MOVING]
)
def test_ends_of_moves_and_headings(shared: Path, name: str) -> None:
    deviation("move-law", "sip-heading-resolution", "angle-conv")
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    modem.run(2.0)
    stats = [s for step in recording.steps for s in step.simstats()]
    last, robot = stats[-1], modem.sim.robots["robot"]
    if "move" in name:
        # Some recordings end before the original has arrived; the deceleration law of the original
        # gives the remaining distance.
        left = 0.0 if abs(stats[-2].x_mm - last.x_mm) <= 1 else abs(1000 - last.x_mm)
        assert abs(robot.truth.x * 1000 - last.x_mm) <= 15 + left
        assert robot.truth.x == pytest.approx(1.0, abs=1e-3)
    else:
        turn = math.remainder(math.degrees(robot.truth.th) - last.th_deg, 360)
        moving = abs(math.remainder(stats[-4].th_deg - last.th_deg, 360)) > 0
        assert abs(turn) <= 1.5 + 1.0 + (2.0 if moving else 0.0), (
            "the recorded heading is cut to whole degrees"
        )

    assert [s for step in ours for s in step.sips()]


STEADY = [
    "accel",
    "arc",
    "bumpstall",
    "enable0",
    "estop",
    "head_wrap",
    "latvel.p3dx",
    "latvel.seekur",
    "limits",
    "move_then_move",
    "reverse",
    "rotate_cmd",
    "rvel_over_max",
    "seto",
    "vel2",
    "vel300.columbia",
    "vel_over_max",
    "odom_constant",
]
# Steps at whose end botyard deliberately differs from the original: recording → prefixes of their
# notes.
DIFFERENT: dict[str, tuple[str, ...]] = {"limits": ("VEL 300", "RVEL 50")}


@pytest.mark.parametrize("name", STEADY)
def test_steady_states(shared: Path, name: str) -> None:
    """Wherever the recorded velocity is constant, ours is the same, as are the flags."""
    deviation(
        "vel-clamped-by-setv",
        "move-law",
        "reversal-through-zero",
        "heading-limit",
        "wheel-vel-conv",
        "exact-arcs",
    )
    recording = golden.read(shared, f"motion.{name}")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    vel_conv = load_robot(recording.model).pioneer.vel_conv
    compared = 0
    for mine, theirs in zip(ours, recording.steps, strict=True):
        a, b = mine.sips(), theirs.sips()
        if (
            not theirs.sent
            or len(b) < 4
            or not a
            or any(theirs.note.startswith(n) for n in DIFFERENT.get(name, ()))
        ):
            continue

        rows = [
            ((s.left_vel + s.right_vel) / 2, s.rot_vel10 / 10, s.lat_vel)
            for s in b[-4:]
        ]
        if len(set(rows)) > 1:
            continue
        compared += 1
        last, (v, w, lateral) = a[-1], rows[-1]
        assert abs((last.left_vel + last.right_vel) / 2 * vel_conv - v) <= 15, (
            theirs.note
        )
        assert abs(last.rot_vel10 / 10 - w) <= 1.5 + 1.0, theirs.note
        assert abs(last.lat_vel - lateral) <= 15, theirs.note
        assert last.flags == b[-1].flags, theirs.note

    assert compared


def test_odometry_with_constant_error(shared: Path) -> None:
    recording = golden.read(shared, "motion.odom_constant")
    modem, line = golden.simulate(shared, recording, odometry_error="constant")
    ours = golden.replay(modem, line, recording)
    mine, theirs = (
        next(s for r in reversed(rs) for s in r.simstats())
        for rs in (ours, recording.steps)
    )
    assert (
        (mine.error_x, mine.error_y)
        == (theirs.error_x, theirs.error_y)
        == (75_000_000, 75_000_000)
    )
    assert mine.error_th == pytest.approx(theirs.error_th, rel=0.005)
    robot = modem.sim.robots["robot"]
    start = modem.sim.robots["robot"].start
    assert robot.odom.x == pytest.approx((robot.truth.x - start.x) * 1.0075, abs=1e-6)


@pytest.mark.parametrize(
    "name", ["stall.p3dx.0", "stall.p3at.1", "stall.patrolbot-sh.2", "stall.p3dx.3"]
)
def test_stall(shared: Path, name: str) -> None:
    deviation(
        "stall-contact",
        "stall-turn",
        "collision-shape",
        "exact-geometry",
        "bumper-bits",
    )
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)

    def contact(steps: list[golden.Step]) -> tuple[int, int]:
        """Return the pose at the end of the drive into the wall, mm."""
        index = next(i for i, s in enumerate(steps) if s.note.startswith("rotate"))
        stat = [s for step in steps[:index] for s in step.simstats()][-1]
        return stat.x_mm, stat.y_mm

    mine, theirs = contact(ours), contact(recording.steps)
    spec = load_robot(recording.model)
    # The original ignores the body's offset, so allow for it.
    offset = abs(sum(x for x, _ in (min(spec.outline), max(spec.outline))) / 2) * 1000
    assert math.dist(mine, theirs) <= offset + 40
    stalled = [
        s.stall_bumpers for step in ours for s in step.sips() if step.note == "stalled"
    ]
    assert stalled
    assert {bits & 0x101 for bits in stalled} == {0x101}, "both wheels, without flicker"
    assert all(
        bool(bits & 0xFE00) == bool(getattr(spec.device("bumpers"), "front", 0))
        and not bits & 0xFE
        for bits in stalled
    ), "it hits with its front"
    backing = [s for step in ours if step.note.startswith("VEL -") for s in step.sips()]
    assert backing[1].stall_bumpers == 0
    assert backing[-1].left_vel < 0


# -- sensors

SONAR = [
    "p3dx",
    "p3at",
    "p3dx-sh",
    "patrolbot-sh",
    "amigo",
    "peoplebot",
    "powerbot",
    "pioneer-lx",
]


@pytest.mark.parametrize("model", SONAR)
def test_sonar(shared: Path, model: str) -> None:
    deviation("sonar-after-off", "exact-geometry")
    recording = golden.read(shared, f"sonar.{model}")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    misses = total = 0
    for mine, theirs in zip(ours, recording.steps, strict=True):
        if theirs.note.startswith("SIM_SET_POSE"):
            a, b = mine.sips()[-1].sonar, theirs.sips()[-1].sonar
            assert [i for i, _ in a] == [i for i, _ in b]
            misses += near([r for _, r in a], [r for _, r in b])
            total += len(a)

    assert total
    assert misses <= max(1, math.ceil(total * 0.03)), f"{misses} of {total}"
    # The last report of the step: SONAR 0 occurs twice in these recordings, as a mark
    # and as the command.
    off = [s for step in ours for s in step.sips() if step.note == "SONAR 0"][-1]
    on = [s for step in ours for s in step.sips() if step.note == "SONAR 1"][-1]
    assert (len(off.sonar), off.flags & 30) == (0, 0)
    assert (len(on.sonar) > 0, on.flags & 30) == (True, 30)


def scans(steps: list[golden.Step], packet_type: int) -> list[tuple[str, list[int]]]:
    """Return the last complete scan after each pose, with the note of its step."""
    out = []
    for step in steps:
        parts = [LaserPart.decode(p) for p in step.received if p.id == packet_type]
        whole: list[int] = []
        last: list[int] = []
        for part in parts:
            if part.first == 0:
                whole = []
            if part.first == len(whole):
                whole = [*whole, *part.ranges_mm]
                if len(whole) == part.total:
                    last = whole

        if step.note.startswith("SIM_SET_POSE") and last:
            out.append((step.note, last))

    return out


LASERS = [
    "p3dx-sh.0",
    "p3dx-sh.1",
    "p3dx-sh.2",
    "p3dx-sh.3",
    "p3dx-sh.4",
    "p3dx-sh.5",
    "p3dx-sh-lms1xx.0",
    "p3dx-sh-lms1xx.1",
    "p3dx-sh-lms1xx.2",
    "p3dx-sh-lms1xx.3",
    "p3dx-sh-lms500",
    "p3dx",
    "p3at",
    "patrolbot-sh",
    "pioneer-lx",
    "seekur",
    "p3dx-sh.wide",
    "p3dx-sh.fine",
    "p3dx-sh.asym1",
    "p3dx-sh.asym2",
]


@pytest.mark.parametrize("name", LASERS)
def test_laser(shared: Path, name: str) -> None:
    """Framing and counts of the served scan; ranges from our own rays at the recorded
    bearings (fov/n apart).
    """
    deviation("laser-spacing", "exact-geometry", "laser-asymmetric", "laser-count")
    recording = golden.read(shared, f"laser.{name}")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    packet_type = 0x60 if recording.meta["sweep"][0] == 1 else 0x61
    theirs, mine = scans(recording.steps, packet_type), scans(ours, packet_type)
    assert [len(r) for _, r in mine] == [len(r) for _, r in theirs]
    sizes = {
        len(p.data) for s in recording.steps for p in s.received if p.id == packet_type
    }
    assert {
        len(p.data) for s in ours for p in s.received if p.id == packet_type
    } == sizes
    spec = load_robot(recording.model)
    _, start, end, _ = recording.meta["sweep"]
    fov = spec.lasers[0].fov if start is None else math.radians(abs(end - start))
    flipped = spec.lasers[0].flipped and start is None
    sim = modem.sim
    misses = total = 0
    for note, ranges in theirs:
        x, y, th = (float(v) for v in note.split()[1:])
        n = len(ranges)
        sim.robots["robot"].command.set_pose(x / 1000, y / 1000, math.radians(th))
        sim.settle()
        bundle = Bundle(
            mount=spec.lasers[0].pose,
            angle0=-fov / 2,
            step=fov / n,
            count=n,
            r_max=spec.lasers[0].range_max,
        )
        sim.core.devices.configure("recorded", "robot", 99, Visible.LASER, [bundle])
        cast = np.rint(sim.core.devices.read(sim.core.engine, "recorded").ranges * 1000)
        misses += near(list(cast[::-1] if flipped else cast), ranges)
        total += n

    assert total
    assert misses <= math.ceil(total * 0.03), f"{misses} of {total}"


def test_laser_can_be_switched_on_again(shared: Path) -> None:
    deviation("laser-reenable")
    recording = golden.read(shared, "laser.p3dx-sh.reenable")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    last_enable = [
        i
        for i, s in enumerate(ours)
        if s.note.startswith("SIM_LRF_ENABLE") and not s.note.endswith("0")
    ][-1]
    modem.run(0.5)
    assert any(
        p.id in (0x60, 0x61) for s in ours[last_enable:] for p in s.received
    ) or any(p.id in (0x60, 0x61) for p in Parser().feed_bytes(line.take()))


def test_no_laser_no_packets(shared: Path) -> None:
    recording = golden.read(shared, "laser.p3dx-nolaser")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    assert not any(p.id in (0x60, 0x61) for s in ours for p in s.received)
    assert sum(len(s.sips()) for s in ours) > 5


@pytest.mark.parametrize("name", ["laser.p3dx-sh.moving", "laser.p3dx-sh.moving2"])
def test_laser_while_driving(shared: Path, name: str) -> None:
    """0x60 carries the odometry of its SIP in mm and degrees, 0x61 the flag of a jump
    of the robot.
    """
    deviation("laser-moved-flag")
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    x = None
    checked = 0
    for packet in (p for s in ours for p in s.received):
        if packet.id == 0x32:
            x = Sip.decode(packet).x
        elif packet.id == 0x60:
            assert abs(LaserPart.decode(packet).x_mm - x) <= 1
            checked += 1
        elif packet.id == 0x61:
            checked += 1

    assert checked


# -- simulation state


def test_simstat(shared: Path) -> None:
    deviation("simstat-has-map", "simstat-no-argument", "gps-wgs84", "simstat-heading")
    for name in ("simstat", "simstat.nomap"):
        recording = golden.read(shared, name)
        modem, line = golden.simulate(shared, recording)
        ours = golden.replay(modem, line, recording)
        mine, theirs = (
            [len(s.simstats()) for s in rs if s.note == "SIM_STAT 1"]
            for rs in (ours, recording.steps)
        )
        assert sum(mine) == sum(theirs)
        bare = [len(s.simstats()) for s in ours if s.note == "SIM_STAT"]
        assert sum(bare) == (1 if bare else 0)
        a, b = (
            next(s for r in reversed(rs) for s in r.simstats())
            for rs in (ours, recording.steps)
        )
        assert a.flags == b.flags | (0 if "nomap" in name else 1)
        assert (a.sim_ms, a.real_ms, a.x_mm, a.y_mm, a.z_mm, a.th_deg) == (
            b.sim_ms,
            b.real_ms,
            b.x_mm,
            b.y_mm,
            b.z_mm,
            b.th_deg,
        )
        assert a.gps_quality == b.gps_quality
        if b.lat_e7:
            assert a.lat_e7 - b.lat_e7 == pytest.approx(
                132 / 111_090 * 1e7, rel=0.02
            ), "132 m"

        silent = [s for s in ours if s.note.startswith("SIM_STAT 0")]
        assert all(len(s.simstats()) == 0 for s in silent)


# -- sessions and bad input


def test_watchdog_stops_the_robot(shared: Path) -> None:
    deviation("watchdog-stops")
    recording = golden.read(shared, "session.watchdog")
    modem, line = golden.simulate(shared, recording)
    for step in recording.steps:
        if step.sent:
            line.send(step.sent)
            modem.run(0.2)

    line.send(command(11, 200))
    modem.run(1.9)
    assert modem.sim.robots["robot"].velocity.vx > 0
    modem.run(1.0)
    assert modem.sim.robots["robot"].velocity.vx == 0
    assert sum("watchdog" in text for text in line.log) == 1
    line.send(command(11, 200))
    modem.run(0.5)
    assert modem.sim.robots["robot"].velocity.vx > 0, "the next packet revives it"


@pytest.mark.parametrize("name", ["session.close", "session.disconnect"])
def test_end_of_session_and_reconnection(shared: Path, name: str) -> None:
    deviation("same-port-after-disconnect", "motors-flag", "fresh-session-limits")
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    for step in recording.steps:
        if step.note in ("closed", "peer-closed") or "CLOSE" in step.note:
            break
        if step.sent:
            line.send(step.sent)
            modem.run(0.2)

    line.send(command(6, 150))
    line.send(command(11, 200))
    modem.run(1.0)
    robot = modem.sim.robots["robot"]
    assert robot.velocity.vx == pytest.approx(0.15)
    if name == "session.close":
        line.send(command(2))
        assert line.closed, "CLOSE closes the connection"
    else:
        line.hang_up()

    before = robot.truth
    modem.run(0.2)
    assert robot.truth == before, "it stops within a step, where it is"
    again = modem.connect("robot")
    for data in (command(0), command(1), command(2), command(1, 1)):
        again.send(data)
    modem.run(0.1)
    sip = [Sip.decode(p) for p in Parser().feed_bytes(again.take()) if p.id == 0x32][-1]
    assert (sip.x, sip.y, sip.th, sip.flags) == (0, 0, 0, 30), (
        "odometry zero, motors off, sonar on"
    )
    assert robot.state.limits == robot.spec.limits.max_speed


def test_open_twice_is_harmless(shared: Path) -> None:
    recording = golden.read(shared, "session.open_twice")
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording)
    assert line.closed, "by the CLOSE at the end"
    assert not any("not supported" in text for text in line.log)
    assert (
        abs(
            sum(len(s.sips()) for s in ours)
            - sum(len(s.sips()) for s in recording.steps)
        )
        <= 3
    )


BAD = [
    "bad.len0",
    "bad.len1",
    "bad.len2",
    "bad.oversize201",
    "bad.oversize255",
    "bad.packets",
    "bad.sync",
]


@pytest.mark.parametrize("name", BAD)
def test_bad_input_leaves_the_session_alive(shared: Path, name: str) -> None:
    deviation("parser-resync", "length-zero")
    recording = golden.read(shared, name)
    modem, line = golden.simulate(shared, recording)
    ours = golden.replay(modem, line, recording, pulses=False)
    line.take()
    line.send(command(237, 1))
    modem.run(0.3)
    answer = Parser().feed_bytes(line.take())
    assert any(p.id == 0x62 for p in answer)
    assert any(p.id == 0x32 for p in answer)
    if name == "bad.packets":
        asked = sum(
            s.sent.count(bytes.fromhex("fafb06ed3b0100ee3b")) for s in recording.steps
        )
        # The split packets count as well. The truncated one swallows its follower's
        # header,
        # and both followers are then found.
        assert sum(len(s.simstats()) for s in ours) == asked + 2

    if name == "bad.sync":
        for mine, theirs in zip(ours, recording.steps, strict=True):
            if theirs.sent and theirs.note != "OPEN":
                assert [(p.id, p.data) for p in mine.received if p.id != 0x32] == [
                    (p.id, p.data) for p in theirs.received if p.id != 0x32
                ]


@pytest.mark.parametrize(
    "name", ["p3dx-sh.defaults", "p3dx-sh.live", "p3dx-sh.noise", "p3dx-nolaser"]
)
def test_laser_packets_by_count(shared: Path, name: str) -> None:
    """Reconfigured while on, left at the defaults, with noise:

    kinds, totals and sizes of the packets of each step.
    """
    recording = golden.read(shared, f"laser.{name}")
    modem, line = golden.simulate(
        shared, recording, sensor_noise=name.endswith("noise")
    )
    ours = golden.replay(modem, line, recording)

    def last_scan(step: golden.Step) -> tuple[int, int] | None:
        lasers = [p for p in step.received if p.id in (0x60, 0x61)]
        return (lasers[-1].id, LaserPart.decode(lasers[-1]).total) if lasers else None

    compared = 0
    for mine, theirs in zip(ours, recording.steps, strict=True):
        # The original reads the command that switches the laser off a step or two later.
        if len(theirs.sips()) >= 4 and not theirs.note.endswith("ENABLE 0"):
            assert last_scan(mine) == last_scan(theirs), theirs.note
            compared += 1

    assert compared


def test_stock_noise_is_as_wide_as_recorded(shared: Path) -> None:
    """Away from edges a reading spreads over ± 5 mm (LMS-200) in the recording and in
    botyard.
    """
    recording = golden.read(shared, "laser.p3dx-sh.noise")

    def spreads(steps: list[golden.Step]) -> np.ndarray:
        scans, whole = [], []
        # The longest step holds the scans from one pose.
        longest = max(steps, key=lambda step: len(step.received))
        for packet in (p for p in longest.received if p.id in (0x60, 0x61)):
            part = LaserPart.decode(packet)
            whole = [*whole, *part.ranges_mm] if part.first else list(part.ranges_mm)
            if len(whole) == part.total:
                scans.append(whole)

        return np.ptp(np.array(scans[3:]), axis=0)

    modem, line = golden.simulate(shared, recording, sensor_noise=True)
    ours = golden.replay(modem, line, recording)
    mine, theirs = spreads(ours), spreads(recording.steps)
    assert np.median(theirs) == pytest.approx(10, abs=2)
    assert np.median(mine) == pytest.approx(np.median(theirs), abs=2)


def test_stock_sonar_noise_is_as_wide_as_recorded(shared: Path) -> None:
    """± 0.5 mm: at rest every transducer reads one of two adjacent millimetres."""
    recording = golden.read(shared, "sonar.p3dx.noise")
    modem, line = golden.simulate(shared, recording, sensor_noise=True)
    ours = golden.replay(modem, line, recording)

    def spread(steps: list[golden.Step]) -> int:
        sips = max((step.sips() for step in steps), key=len)
        rows = np.array([[r for _, r in s.sonar] for s in sips[2:] if s.sonar])
        return int(np.ptp(rows, axis=0).max())

    assert spread(recording.steps) <= 1
    assert spread(ours) <= 1
