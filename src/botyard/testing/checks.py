"""Conformance checks of robot models and Pioneer sessions (pioneer-protocol §15).

Each check returns a list of problems::

    from botyard.testing import check_robot_model

    assert check_robot_model(load_robot("mine.toml")) == []
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from botyard.model.robot import RobotSpec
from botyard.protocols.pioneer.commands import C, Ctrl, P
from botyard.protocols.pioneer.packet import Packet, Parser, command, frame
from botyard.protocols.pioneer.reports import Config, LaserPart, Sip
from botyard.protocols.pioneer.simreports import SimInfo
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation


class Passed(NamedTuple):
    """Captured packet of a session between a client and a robot.

    Attributes
    ----------
    time : float
        Time of the packet, s, on any clock.
    from_client : bool
        Whether the client sent it.
    packet : Packet
        Decoded frame: id and data of the packet.
    """

    time: float
    from_client: bool
    packet: Packet


MAX_LENGTH = 198
"""Maximum length byte of a packet that clients accept."""
MAX_GAP = 1.0
"""Maximum time without a report, s."""
MAX_UNITS = 0x1000
"""Largest change of a position counter that clients do not take for a wrap-around,
counter units.
"""
ANSWER_TIMEOUT_S = 1.0
"""Maximum time until an answer, s."""
SETTLE_TIME_S = 0.35
"""Time within which a command must take effect in reports, s."""
SIMSTAT_BYTES = 56
"""Length of the data of a SIMSTAT packet (pioneer-protocol §8)."""


def check_session(passed: Iterable[Passed]) -> list[str]:
    """Check a session against the checklist of the protocol.

    Parameters
    ----------
    passed : iterable of Passed
        All packets in order of time, including the handshake.

    Returns
    -------
    list of str
        Problems found.
    """
    events = list(passed)
    opened = next(
        (
            e.time
            for e in events
            if e.from_client and e.packet.id == C.OPEN and e.packet.data
        ),
        None,
    )
    # OPEN with an argument is unambiguous; without one, its number also means SYNC1, so
    # skip the handshake's packets.
    if opened is None:
        opened = next(
            (
                e.time
                # The first three packets are SYNC0 to SYNC2.
                for e in [e for e in events if e.from_client][3:]
                if e.packet.id == C.OPEN
            ),
            float("inf"),
        )

    answers = [e for e in events if not e.from_client]
    problems = [
        f"packet {e.packet.id}: length byte: expected at most {MAX_LENGTH}, found "
        f"{len(e.packet.data) + 3}"
        for e in answers
        if len(e.packet.data) + 3 > MAX_LENGTH
    ]
    problems += [
        f"a report before OPEN at {e.time:.2f} s"
        for e in answers
        if e.packet.id == P.SIP and e.time < opened
    ]

    problems += _names(answers)
    problems += _reports(events, opened)
    problems += _answered(events)
    problems += _scans(answers)
    return problems


def _names(answers: list[Passed]) -> list[str]:
    """Check the three names in the answer to SYNC2."""
    sync2 = next((e.packet for e in answers if e.packet.id == P.SYNC2), None)
    if sync2 is None:
        return ["SYNC2 has no answer"]
    r = sync2.reader()
    names = (r.text(), r.text(), r.text())
    return (
        []
        # The limit of the handshake (HSK-006).
        if all(0 < len(n) <= 19 for n in names)
        else [f"SYNC2: expected three names of 1–19 characters, found {names}"]
    )


def _reports(events: list[Passed], opened: float) -> list[str]:
    """Check the stream of reports: period, position, motors bit, E-stop, battery.

    Parameters
    ----------
    events : list of Passed
        All packets in order of time.
    opened : float
        Time of OPEN, s; infinity without one.
    """
    problems: list[str] = []
    last: Sip | None = None
    last_time = opened
    enabled: tuple[float, bool] | None = None
    for e in events:
        if e.from_client:
            if e.packet.id == C.ENABLE:
                enabled = (e.time, e.packet.integer() != 0)
            # CLOSE has the number of SYNC2, but only CLOSE may have an argument.
            if e.packet.id == C.CLOSE and e.packet.data:
                break
            continue

        if e.packet.id not in (P.SIP, P.SIP_MOVING):
            continue
        sip = Sip.decode(e.packet)
        if e.time - last_time > MAX_GAP:
            problems.append(
                f"no report for {e.time - last_time:.1f} s at {e.time:.2f} s"
            )

        # A jump to the origin is a reset of the odometry (SETO), not an error.
        if last is not None and not sip.x == sip.y == 0:
            step = max(
                # The counters wrap at 16 bits, so the shorter way around is the motion.
                abs((a - b + 0x8000) % 0x10000 - 0x8000)
                for a, b in ((sip.x, last.x), (sip.y, last.y))
            )
            if step >= MAX_UNITS:
                problems.append(f"position jumps by {step} units at {e.time:.2f} s")

        if (
            enabled is not None
            # A report that was already on its way still shows the old state.
            and e.time - enabled[0] > SETTLE_TIME_S
            and bool(sip.flags & 1) != enabled[1]
        ):
            problems.append(
                "the motors bit of the reports does not follow ENABLE at "
                f"{e.time:.2f} s"
            )
            enabled = None

        # No check presses the button, so a set bit is a wrong layout of the flags.
        if sip.flags & 1 << 5:
            problems.append(
                f"a report at {e.time:.2f} s says that the E-stop is pressed"
            )
        # One of the two values must look healthy, because clients stop on a low
        # battery.
        if not (sip.battery10 >= 110 or sip.soc > 20):
            problems.append(
                f"unusable battery values in the report at {e.time:.2f} s: "
                f"{sip.battery10 / 10} V, {sip.soc} %"
            )

        last, last_time = sip, e.time

    return (
        problems if last is not None else [*problems, "the robot sent no report at all"]
    )


def _answered(events: list[Passed]) -> list[str]:
    """Check that each CONFIG and single SIMSTAT request has a prompt answer.

    SIMSTATs requested with every report must come directly before it.
    """
    problems = []
    for ask, answer in ((C.CONFIG, P.CONFIG), (C.SIM_STAT, P.SIMSTAT)):
        times = [
            e.time
            for e in events
            if e.from_client and e.packet.id == ask and _asks_once(e.packet)
        ]
        got = [e.time for e in events if not e.from_client and e.packet.id == answer]
        problems += [
            f"{ask.name} at {t:.2f} s has no answer"
            for t in times
            # Any answer in time counts: packets have no number that pairs them with
            # requests.
            if not any(t <= g <= t + ANSWER_TIMEOUT_S for g in got)
        ]

    problems += [
        f"SIMSTAT with {len(e.packet.data)} bytes of data at {e.time:.2f} s, "
        f"expected {SIMSTAT_BYTES}"
        for e in events
        if not e.from_client
        and e.packet.id == P.SIMSTAT
        and len(e.packet.data) != SIMSTAT_BYTES
    ]
    return problems + _streamed(events)


def _asks_once(packet: Packet) -> bool:
    """Return whether a command requests a single answer.

    Each CONFIG does; SIM_STAT does without an argument or with 1.
    """
    return packet.id != C.SIM_STAT or not packet.has_argument or packet.integer() == 1


def _streamed(events: list[Passed]) -> list[str]:
    """Check that each report follows a SIMSTAT, from SIM_STAT 2 to SIM_STAT 0.

    Parameters
    ----------
    events : list of Passed
        All packets in order of time.
    """
    wanted: float | None = None
    before = None
    for e in events:
        if e.from_client:
            if (
                e.packet.id == C.SIM_STAT
                and e.packet.has_argument
                and e.packet.integer() in (0, 2)
            ):
                wanted = e.time if e.packet.integer() == 2 else None

            if e.packet.id == C.CLOSE and e.packet.data:
                return []
            continue

        is_report = e.packet.id in (P.SIP, P.SIP_MOVING)
        if (
            is_report
            and wanted is not None
            and e.time - wanted > SETTLE_TIME_S
            and before != P.SIMSTAT
        ):
            return [
                f"SIM_STAT 2 at {wanted:.2f} s: the report at {e.time:.2f} s has "
                "no SIMSTAT before it"
            ]

        before = e.packet.id

    return []


def _scans(answers: list[Passed]) -> list[str]:
    """Check that the parts of a scan arrive in order, without packets in between.

    Parameters
    ----------
    answers : list of Passed
        Packets of the robot in order of time.
    """
    problems = []
    expected: tuple[int, int, int] | None = (
        None  # index of the first reading, number of readings, type of the packet
    )
    for e in answers:
        if e.packet.id not in (P.LASER1, P.LASER2):
            if expected is not None:
                problems.append(
                    "expected parts of one scan in sequence, found packet "
                    f"{e.packet.id} in the middle of a scan at {e.time:.2f} s"
                )
                expected = None

            continue

        part = LaserPart.decode(e.packet)
        if expected is not None and (part.first, part.total, e.packet.id) != expected:
            problems.append(f"parts of a scan are out of order at {e.time:.2f} s")
        # Clients assemble a scan by the index of the next reading, and drop it on any
        # gap.
        end = part.first + len(part.ranges_mm)
        expected = None if end >= part.total else (end, part.total, e.packet.id)

    return problems


def check_robot_model(spec: RobotSpec) -> list[str]:
    """Check a robot model for Pioneer clients.

    The check covers handshake, CONFIG packet, size of reports, sonar and laser
    readings, and motion.

    Parameters
    ----------
    spec : RobotSpec
        A model with a drive.

    Returns
    -------
    list of str
        Problems found.
    """
    # Use exact odometry, so that a deviation is a fault of the model or of the
    # protocol.
    sim = Simulation(odometry_error="none")
    sim.add_robot(spec, "robot")
    modem = NullModem(sim)
    line = modem.connect("robot")
    parser = Parser()
    passed: list[Passed] = []

    def say(*packets: bytes, then: float = 0.1) -> list[Packet]:
        for data in packets:
            # A parser of its own for each command, because commands here are complete
            # packets.
            passed.extend(Passed(modem.now, True, p) for p in Parser().feed_bytes(data))
            line.send(data)

        got: list[Packet] = []
        for _ in range(max(1, round(then / sim.dt))):
            modem.run(sim.dt)
            new = parser.feed_bytes(line.take())
            passed.extend(Passed(modem.now, False, p) for p in new)
            got += new

        return got

    for number in range(3):
        say(command(number))

    answers = say(command(C.OPEN, 1), command(C.CONFIG, 1), then=0.2)

    problems = []
    transducers = len(spec.sonar.transducers) if spec.sonar else 0

    sips = [p for p in answers if p.id == P.SIP]
    # A report carries at most 32 readings (`READINGS_PER_PACKET`).
    shown = min(transducers, 32)
    if not sips or any(
        # Six bytes are the header, length, type and checksum, which `data` leaves out.
        len(p.data) + 6 != 41 + 3 * len(Sip.decode(p).sonar)
        for p in sips
    ):
        problems.append("reports: expected 41 + 3·N bytes for N sonar readings")
    elif any(len(Sip.decode(p).sonar) != shown for p in sips[:1]):
        problems.append(f"reports: expected {shown} sonar readings")

    config = next((Config.decode(p) for p in answers if p.id == P.CONFIG), None)
    if config is None:
        problems.append("CONFIG has no answer")
    else:
        if (config.class_name, config.subclass) != (
            spec.pioneer.class_name,
            spec.pioneer.subclass,
        ):
            problems.append(
                "CONFIG: expected class and subclass of the model, found "
                f"{config.class_name} {config.subclass}"
            )

        if not (config.trans_vel_top > 0 and config.rot_vel_top > 0):
            problems.append(
                "CONFIG: expected maximum speeds above 0, found "
                f"{config.trans_vel_top} mm/s and {config.rot_vel_top} °/s"
            )

    info = next((SimInfo.decode(p) for p in say(_siminfo()) if p.id == P.SIMINFO), None)
    if info is None or len(info.devices) != len(spec.lasers) + (1 if spec.sonar else 0):
        problems.append("SIMINFO does not list the sensors")
    say(command(C.SIM_STAT), command(C.SIM_STAT, 1), command(C.SIM_STAT, 2), then=0.6)
    say(command(C.SIM_STAT, 0))

    for laser in spec.lasers[:1]:
        parts = [
            LaserPart.decode(p)
            for p in say(command(C.SIM_LRF_ENABLE, 2), then=0.2)
            if p.id == P.LASER2
        ]
        if not parts or {p.total for p in parts} != {laser.samples}:
            problems.append(
                f"scans: expected {laser.samples} readings, found "
                f"{sorted({p.total for p in parts})}"
            )

    say(command(C.ENABLE, 1), command(C.VEL, 100), then=1.0)
    # Half of the commanded speed, because slow models still accelerate after one
    # second.
    if not sim.robots["robot"].velocity.vx > 0.05:
        problems.append("VEL does not move the robot")
    say(command(C.STOP), command(C.CLOSE, 1), then=0.3)
    if not line.closed:
        problems.append("CLOSE does not end the session")
    return problems + check_session(passed)


def _siminfo() -> bytes:
    """Return a request for the packet SIMINFO of the protocol."""
    return frame(C.SIM_CTRL, b"\x3b" + int(Ctrl.SIMINFO).to_bytes(2, "little"))
