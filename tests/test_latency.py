"""Late commands and readings, rates of robots and sensors, scaled commands, missing
readings, unequal wheels: against plain robots, and as part of the state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

import botyard
from botyard.devices.laser import STREAM
from botyard.engine import commands as cmd
from botyard.engine.kernels.delayrings import is_cycle
from botyard.engine.rng import draws
from botyard.errors import ArgumentError, ModelError, StateError
from botyard.model.library import parse_robot
from botyard.model.robot import CommandSpec
from botyard.model.robotfile import to_table
from botyard.model.scene import Scene
from botyard.sim.journal import Entry, SetParameters
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation

BASE = botyard.load_robot("p3dx")
ROOM = Scene(
    segments=np.array(
        [(0, 0, 9, 0), (9, 0, 9, 6), (9, 6, 0, 6), (0, 6, 0, 0), (4, 1, 5, 2)],
        np.float64,
    )
)


def model(
    commands: CommandSpec | None = None, ratio: float = 1.0, **laser: Any
) -> botyard.RobotSpec:
    sensors = replace(BASE.lasers[0], samples=19, **laser)
    return replace(
        BASE, commands=commands or CommandSpec(), wheel_ratio=ratio, lasers=(sensors,)
    )


def world(
    *specs: botyard.RobotSpec, seed: int = 1, step: float = 0.1, **options: Any
) -> Simulation:
    sim = Simulation(ROOM, seed=seed, step=step, warn=lambda text: None, **options)
    for k, spec in enumerate(specs):
        sim.add_robot(spec, f"r{k}", pose=(2.0 + 2.5 * k, 3.0, 0.3))
    return sim


def steps_of(latency: float, jitter: float, draw: float, dt: float) -> int:
    return max(0, math.floor((latency + jitter * draw) / dt + 0.5))


def is_cycle_exactly(tick: int, rate: Fraction, step: Fraction) -> bool:
    """Return whether a step is the first one at or after a multiple of the period 1 /
    rate, in exact arithmetic.
    """
    if not rate:
        return True
    number = math.floor(tick * step * rate)
    return number / rate > (tick - 1) * step


@settings(max_examples=200, deadline=None)
@given(
    rate=st.fractions(Fraction(1, 10), 200, max_denominator=50),
    step_us=st.integers(1_000, 200_000),
    first=st.integers(0, 9_000),
)
@example(Fraction(0), 20_000, 0)
@example(Fraction(10), 20_000, 3)
@example(Fraction(30), 10_000, 9_000)
@example(Fraction(25), 16_000, 7)
@example(Fraction(10, 3), 100_000, 8_999)
def test_cycles_are_multiples_of_the_period_and_never_drift(
    rate: Fraction, step_us: int, first: int
) -> None:
    step = Fraction(step_us, 10**6)
    # Look at the cycles around the chosen one.
    begin = int(first / (rate * step)) if rate else first
    for tick in range(begin, begin + 100):
        assert is_cycle(tick, float(rate), step_us / 1e6) == is_cycle_exactly(
            tick, rate, step
        ), tick


def test_tiny_and_great_rates_have_cycles() -> None:
    assert [tick for tick in range(1000) if is_cycle(tick, 1e-300, 1e-6)] == [0]
    assert all(is_cycle(tick, 1e6, 60.0) for tick in range(10**15, 10**15 + 100))


COMMANDS = st.one_of(
    st.builds(
        cmd.SetVelocity,
        v=st.none() | st.sampled_from([0.0, 0.2, 0.5]),
        w=st.none() | st.sampled_from([0.0, 0.4, -0.6]),
    ),
    st.builds(cmd.MoveBy, st.sampled_from([0.05, -0.3, 0.4])),
    st.builds(cmd.TurnTo, st.sampled_from([0.5, -2.0])),
    st.builds(cmd.TurnBy, st.sampled_from([0.5, -0.2])),
    st.just(cmd.Stop()),
    st.just(cmd.EmergencyStop()),
)


@settings(max_examples=60, deadline=None)
@given(
    latency=st.sampled_from([0.0, 0.04, 0.1, 0.25, 0.5]),
    jitter=st.sampled_from([0.0, 0.5, 1.0]),
    rate=st.sampled_from([0, 0, 10, 8, 4, Fraction(10, 3), 1]),
    scale=st.sampled_from([1.0, 0.9]),
    step=st.sampled_from([0.1, 0.05]),
    seed=st.integers(0, 2**64 - 1),
    plan=st.lists(st.none() | COMMANDS, min_size=5, max_size=40),
)
def test_a_command_counts_after_its_latency_from_the_next_cycle_on_and_in_its_order(
    latency: float,
    jitter: float,
    rate: Fraction,
    scale: float,
    step: float,
    seed: int,
    plan: list[cmd.Command | None],
) -> None:
    """As if a client had delayed it, scaled it, and sent it to a plain robot of that
    name.
    """
    jitter *= latency
    # Whether another command has ended by now decides whether a velocity is a
    # change.
    if jitter:
        plan = [one if isinstance(one, cmd.SetVelocity) else None for one in plan]
    late = world(
        model(
            CommandSpec(
                latency=latency,
                jitter=jitter,
                rate=float(rate),
                scale=botyard.Axes(scale, 1.0, 1.0),
            )
        ),
        seed=seed,
        step=step,
    )
    plain = world(model(), seed=seed, step=step)
    uid, last = int(late.core.engine.state.uid[0]), 0
    waiting: list[tuple[int, cmd.Command]] = []
    said: tuple[float | None, ...] = (0.0, 0.0)
    for tick, command in enumerate([*plan, *[None] * 12]):
        if command is not None:
            late.core.accept_command("r0", command)
            if isinstance(command, cmd.SetVelocity):
                command = cmd.SetVelocity(
                    v=None if command.v is None else command.v * scale, w=command.w
                )

            draw = float(draws(seed, uid, 2, tick, 1)[0])
            # A command without a change is not sent, so it delays no other command.
            new = [getattr(command, "v", 1), getattr(command, "w", 1)]
            is_new = not isinstance(command, cmd.SetVelocity) or any(
                value is not None and value != before
                for value, before in zip(new, said, strict=True)
            )
            if is_new or jitter == 0.0:
                last = max(last, tick + steps_of(latency, jitter, draw, step))
                waiting.append((last, command))

            said = tuple(
                (before if value is None else value)
                if isinstance(command, cmd.SetVelocity)
                else None
                for value, before in zip(new, said, strict=True)
            )

        counts = is_cycle_exactly(tick, Fraction(rate), Fraction(str(step)))
        while counts and waiting and waiting[0][0] <= tick:
            plain.core.accept_command("r0", waiting.pop(0)[1])
        late.step()
        plain.step()
        for name in ("pose", "vel", "odom", "target", "mode_x", "mode_a", "estop"):
            assert np.array_equal(
                getattr(late.core.engine.state, name),
                getattr(plain.core.engine.state, name),
            ), name


def test_velocities_of_many_reach_each_by_its_own_way() -> None:
    specs = [
        model(CommandSpec(latency=0.2)),
        model(),
        model(CommandSpec(latency=0.1, scale=botyard.Axes(0.5, 1.0, 1.0))),
    ]
    sim = world(*specs)
    first = []
    for _ in range(5):
        sim.fleet.command(v=0.4, w=[0.1, 0.2, 0.3])
        sim.step()
        first.append((sim.core.engine.state.target[:, 0] != 0.0).tolist())

    assert first == [
        [False, True, False],
        [False, True, True],
        [True, True, True],
        [True, True, True],
        [True, True, True],
    ]
    assert sim.core.engine.state.target[:, 0].tolist() == [0.4, 0.4, 0.2]
    assert sim.core.engine.state.target[:, 2].tolist() == [0.1, 0.2, 0.3]


def test_the_end_of_a_session_drops_what_is_under_way() -> None:
    sim = world(model(CommandSpec(latency=0.3)))
    sim.robots["r0"].command(v=0.5)
    sim.step()
    sim.core.accept_command("r0", cmd.Halt())
    for _ in range(8):
        sim.step()
    assert sim.robots["r0"].velocity.vx == 0.0


def scans(sim: Simulation, count: int) -> Iterator[botyard.LaserScan]:
    for _ in range(count):
        sim.step()
        yield sim.robots["r0"].laser.read()


@pytest.mark.parametrize(
    ("latency", "jitter"), [(0.0, 0.0), (0.1, 0.0), (0.3, 0.0), (0.3, 0.3), (0.04, 0.0)]
)
@pytest.mark.parametrize("rate", [0, 20, 5, 4, Fraction(3, 2)])
@pytest.mark.parametrize("read_before", [False, True])
def test_a_reading_can_be_had_after_its_latency_with_its_stamp(
    latency: float, jitter: float, rate: Fraction, read_before: bool
) -> None:
    """It stays available until the next one, if the sensor measures less often than in
    every step.
    """
    late = world(
        model(
            range_noise=0.02,
            missing=0.1,
            latency=latency,
            jitter=jitter,
            measurement_rate=float(rate),
        )
    )
    plain = world(model(range_noise=0.02, missing=0.1))
    for sim in (late, plain):
        sim.robots["r0"].command(v=0.3, w=0.2)
    # The time at which readings are read must not matter.
    if read_before:
        late.robots["r0"].laser.read()
    measured = [plain.robots["r0"].laser.read(), *scans(plain, 30)]
    uid, dues = int(late.core.engine.state.uid[0]), {0: 0}
    for tick in range(31):
        if is_cycle_exactly(tick, Fraction(rate), Fraction(1, 10)):
            draw = float(draws(1, uid, STREAM, tick, 1, 2)[0])
            dues[tick] = max(
                0, *dues.values(), tick + steps_of(latency, jitter, draw, 0.1)
            )

    ages = []
    for tick, scan in enumerate(scans(late, 30), start=1):
        newest = max([0, *(k for k, due in dues.items() if due <= tick)])
        assert scan.stamp == measured[newest].stamp
        assert np.array_equal(scan.ranges, measured[newest].ranges)
        assert np.array_equal(scan.intensities, measured[newest].intensities)
        assert np.array_equal(late.fleet.ranges()[0], scan.ranges)
        ages.append(tick - newest)

    if not jitter:
        period = 1 if rate in (0, 20) else math.ceil(10 / Fraction(rate))
        assert max(ages) == round(latency / 0.1 + 1e-9) + period - 1

    assert len(set(ages[5:])) > 1 or not (jitter or 0 < rate < 10)


def test_missing_readings_are_those_that_the_generator_says() -> None:
    some, all_ = (
        world(model(range_noise=0.02, missing=0.3)),
        world(model(range_noise=0.02)),
    )
    uid, count = int(some.core.engine.state.uid[0]), 0
    for tick, (scan, whole) in enumerate(
        zip(scans(some, 40), scans(all_, 40), strict=True), start=1
    ):
        gone = 0.5 * (draws(1, uid, STREAM, tick, 19, 1) + 1.0) < 0.3
        assert np.array_equal(scan.ranges, np.where(gone, scan.range_max, whole.ranges))
        assert np.array_equal(scan.intensities, np.where(gone, 0, whole.intensities))
        count += int(gone.sum())

    assert 0.25 < count / (40 * 19) < 0.35
    exact = world(model(missing=0.3), sensor_noise=False)
    assert (next(scans(exact, 1)).intensities == 1).all()


def driven(sim: Simulation, ticks: range) -> list[int]:
    found = []
    for tick in ticks:
        if tick % 3 == 0:
            sim.robots["r0"].command(v=0.1 * (tick % 5), w=0.3 - 0.1 * (tick % 7))
        sim.step()
        found.append(sim.digest())

    return found


LATE = model(
    CommandSpec(latency=0.5, jitter=0.3, rate=4.0, scale=botyard.Axes(0.9, 1.0, 1.1)),
    latency=0.4,
    jitter=0.2,
    missing=0.1,
    measurement_rate=3.0,
)
HELD = model(CommandSpec(rate=2.0), measurement_rate=1.5)


@pytest.mark.parametrize("spec", [LATE, HELD])
def test_what_is_under_way_is_a_part_of_the_state(spec: botyard.RobotSpec) -> None:
    """Also in the middle of periods."""
    sim = world(spec, model())
    driven(sim, range(10))
    assert sim.core.engine.channels.under_way()
    state, twin = sim.save_state(), sim.clone()
    expected = driven(sim, range(10, 25))
    assert driven(twin, range(10, 25)) == expected
    other = world(spec, model())
    driven(other, range(17))
    other.restore(state)
    assert driven(other, range(10, 25)) == expected
    # The values also hold before the first step, and after robots were added and removed.
    early = world(spec)
    early.robots["r0"].command(v=0.3)
    copy = early.clone()
    assert driven(copy, range(5)) == driven(early, range(5))
    sim.remove_robot("r1")
    sim.remove_robot("r0")
    sim.add_robot(spec, "r0", pose=(2, 3, 0))
    sim.step()
    assert not sim.core.engine.channels.under_way()


@pytest.mark.parametrize(("step", "other_step"), [(0.02, 0.1), (0.1, 0.02)])
def test_a_state_brings_its_steps_and_rates_count_by_these(
    step: float, other_step: float
) -> None:
    """12.5 Hz is slower than steps of 20 ms and faster than steps of 100 ms."""
    spec = model(CommandSpec(rate=12.5), measurement_rate=12.5)
    sim, other = world(spec, step=step), world(spec, step=other_step)
    driven(sim, range(9))
    driven(other, range(3))
    other.restore(sim.save_state())
    for tick in range(9, 20):
        assert driven(other, range(tick, tick + 1)) == driven(
            sim, range(tick, tick + 1)
        )
        ours, theirs = (one.robots["r0"].laser.read() for one in (sim, other))
        assert (ours.stamp, ours.ranges.tolist()) == (
            theirs.stamp,
            theirs.ranges.tolist(),
        )


@pytest.mark.parametrize("is_read", [False, True])
def test_rays_that_are_set_in_between_are_measured_from_then_on(is_read: bool) -> None:
    """The times of reading do not matter, and a state from before the next step goes on
    equally.
    """
    sim = world(HELD)
    driven(sim, range(9))
    sim.robots["r0"].laser.configure(-1.0, 0.5, 5)
    if is_read:
        assert len(sim.robots["r0"].laser.read().ranges) == 5
    twin = sim.clone()
    assert driven(twin, range(9, 20)) == driven(sim, range(9, 20))
    scan = sim.robots["r0"].laser.read()
    assert np.array_equal(twin.robots["r0"].laser.read().ranges, scan.ranges)
    other = world(HELD)
    driven(other, range(9))
    other.robots["r0"].laser.configure(-1.0, 0.5, 5)
    other.step()
    assert other.robots["r0"].laser.read().stamp == pytest.approx(0.9)


@pytest.mark.parametrize("spec", [LATE, HELD])
def test_a_journal_repeats_it(spec: botyard.RobotSpec) -> None:
    sim, entries = world(spec), list[Entry]()
    begin = sim.save_state()
    sim.core.journal.listen(entries.append)
    expected = driven(sim, range(20))
    again = world(spec)
    again.restore(begin)
    assert list(resimulate(again, entries, 20)) == expected


def test_parameters_that_are_set_in_between_are_in_state_and_journal() -> None:
    sim, entries = (
        world(model(), model(CommandSpec(latency=0.2), missing=0.1)),
        list[Entry](),
    )
    begin = sim.clone()
    sim.core.journal.listen(entries.append)
    random, expected = np.random.default_rng(2), []
    for k in range(30):
        if k % 7 == 3:
            for robot in sim.robots.values():
                latency = random.uniform(0.0, 0.3)
                robot.set_parameters(
                    command_latency=latency,
                    command_jitter=0.5 * latency,
                    command_scale=random.uniform(0.8, 1.2, 3),
                    range_noise=random.uniform(0.0, 0.1),
                    range_latency=random.uniform(0.0, 0.3),
                    max_speed=[0.5, 0.0, 1.0],
                    wheel_ratio=random.uniform(0.98, 1.02),
                    command_rate=random.choice([0.0, 3.0, 20.0]),
                    range_rate=random.choice([0.0, 4.0, 1.0]),
                    **{"range_missing laser": 0.2},
                )

        if k == 20:
            middle = sim.clone()
        sim.fleet.command(v=0.1 * (k % 4), w=0.2)
        sim.step()
        expected.append((sim.digest(), sim.robots["r0"].laser.read().ranges.tolist()))

    assert list(resimulate(begin, entries, 30)) == [digest for digest, _ in expected]
    assert len([one for one in entries if isinstance(one.change, SetParameters)]) == 8
    tail = [entry for entry in entries if entry.tick >= 20]
    assert list(resimulate(middle, tail, 30)) == [digest for digest, _ in expected[20:]]
    assert middle.robots["r0"].laser.read().ranges.tolist() == expected[-1][1]
    # an earlier state restores the models' parameters
    sim.restore(world(sim.robots["r0"].spec, sim.robots["r1"].spec).save_state())
    fresh = world(sim.robots["r0"].spec, sim.robots["r1"].spec)
    for one in (sim, fresh):
        one.fleet.command(v=0.4)
        one.step(5)

    assert np.array_equal(sim.core.engine.state.vel, fresh.core.engine.state.vel)
    assert np.array_equal(
        sim.robots["r0"].laser.read().ranges, fresh.robots["r0"].laser.read().ranges
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"speed": 1.0}, "parameter: expected"),
        ({"range_noise": -1.0}, "range_noise laser: expected 0 … 1e+06, found -1"),
        ({"range_noise laser_2": 1.0}, "sensor of range_noise"),
        (
            {"command_jitter": 0.1},
            "commands: jitter must be 0 … the latency, 0 s, found 0.1",
        ),
        ({"range_jitter": 0.1}, "laser: jitter must be"),
        (
            {"command_scale": [1.0, 2.0]},
            "command_scale: expected a finite number, or 3 of them",
        ),
        ({"range_min": 9e5}, "range_min laser: expected at most range_max"),
        ({"wheel_ratio": 4.0}, "wheel_ratio: expected 0.5 … 2, found 4"),
        ({"accel": "fast"}, "accel: expected an array of numbers"),
        ({"command_rate": -1.0}, "commands: rate: expected 0 … 1e+06 Hz, found -1"),
        ({"command_rate": math.nan}, "command_rate: expected a finite number, found"),
        ({"range_rate": 2e6}, "laser: range_rate must be 0 … 1e+06 Hz, found 2e+06"),
    ],
)
def test_wrong_parameters_are_named_and_nothing_is_set(
    values: dict[str, Any], words: str
) -> None:
    sim = world(model())
    before = sim.digest()
    with pytest.raises(ArgumentError) as error:
        sim.robots["r0"].set_parameters(command_latency=0.0, **values)
    assert words in str(error.value)
    assert sim.digest() == before


def test_an_episode_begins_with_nothing_under_way() -> None:
    sim = world(LATE, seed=4)
    driven(sim, range(9))
    sim.reset(seed=4)
    fresh = world(LATE, seed=4)
    for one in (sim, fresh):
        driven(one, range(12))
    assert np.array_equal(sim.core.engine.state.pose, fresh.core.engine.state.pose)
    ours, theirs = (one.robots["r0"].laser.read() for one in (sim, fresh))
    assert ours.stamp == theirs.stamp
    assert np.array_equal(ours.ranges, theirs.ranges)


def test_a_state_with_wrong_times_is_refused() -> None:
    import msgspec

    from botyard.engine.state import join, split
    from botyard.sim.statehead import Head

    sim = world(LATE)
    driven(sim, range(10))
    head, data = split(sim.save_state(), Head, 10**9)
    bad = msgspec.convert(msgspec.to_builtins(head.late[0]), type(head.late[0]))
    for change in (
        {"ranges": bad.ranges[8:]},
        {"ranges": np.full(19, np.nan).tobytes()},
        {"tick": 99},
        {"due": -1},
        {"robot": "r9"},
        {"index": 3},
    ):
        wrong = msgspec.structs.replace(
            head, late=[msgspec.structs.replace(head.late[0], **change)]
        )
        with pytest.raises(StateError, match="late readings"):
            sim.restore(
                join(msgspec.msgpack.encode(wrong), [np.frombuffer(data, np.uint8)])
            )

    sent = head.under_way[0]
    for change in (
        {"sent": 99},
        {"due": -5},
        {"command": msgspec.structs.replace(sent.command, kind="Halt", values={})},
    ):
        wrong = msgspec.structs.replace(
            head, under_way=[msgspec.structs.replace(sent, **change)]
        )
        with pytest.raises(StateError, match="delayed commands"):
            sim.restore(
                join(msgspec.msgpack.encode(wrong), [np.frombuffer(data, np.uint8)])
            )


def test_recorded_scans_have_the_stamps_of_their_measurement(tmp_path: Path) -> None:
    sim, path = world(model(latency=0.3)), tmp_path / "run.mcap"
    expected = []
    with sim.record(path, topics=["*/base_scan"], rate=0.0):
        for scan in scans(sim, 10):
            expected.append(
                (round(scan.stamp * 1e9), scan.ranges.astype(np.float32).tolist())
            )

    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = [
            value
            for *_, value in reader.iter_decoded_messages(topics=["/r0/base_scan"])
        ]

    recorded = [
        (
            s.header.stamp.sec * 10**9 + s.header.stamp.nanosec,
            np.array(s.ranges, np.float32).tolist(),
        )
        for s in found
    ]
    assert recorded == expected
    assert expected[9][0] == 700_000_000


def test_a_plain_robot_has_no_channel_and_no_late_reading() -> None:
    sim = world(model())
    sim.robots["r0"].command(v=0.2)
    sim.step()
    assert not sim.core.engine.channels
    assert not sim.core.devices.late()
    assert not sim.robots["r0"].laser.is_read


@pytest.mark.parametrize("ratio", [0.97, 1.0, 1.04])
def test_odometry_takes_unequal_wheels_for_equal(ratio: float) -> None:
    """UMBmark's E_d with the right mean diameter:

    each wheel's true distance divided by its diameter is its encoder count.
    """
    sim = world(model(ratio=ratio), odometry_error="none")
    exact = world(
        replace(
            model(ratio=ratio),
            odometry_error=botyard.Axes(0.02, 0.0, -0.03),
            odometry_error_low=botyard.Axes(0.02, 0.0, -0.03),
        )
    )
    track = BASE.kinematics.track
    left, right = 2.0 / (1.0 + ratio), 2.0 * ratio / (1.0 + ratio)
    for one in (sim, exact):
        one.robots["r0"].command(v=0.3, w=0.25)
    x = y = th = 0.0
    for _ in range(40):
        sim.step()
        exact.step()
        forward, _, turned = exact.core.engine.state.disp[0].tolist()
        forward, turned = forward * 1.02, turned * 0.97
        by_left, by_right = (
            (forward - turned * track / 2) / left,
            (forward + turned * track / 2) / right,
        )
        forward, turned = (by_left + by_right) / 2, (by_right - by_left) / track
        x += forward * math.cos(th + turned / 2) * math.sin(turned / 2) / (turned / 2)
        y += forward * math.sin(th + turned / 2) * math.sin(turned / 2) / (turned / 2)
        th += turned

    assert exact.robots["r0"].odom == pytest.approx((x, y, th), abs=1e-12)
    truth = botyard.geometry.relative(sim.robots["r0"].start, sim.robots["r0"].truth)
    assert sim.robots["r0"].odom == pytest.approx(truth, abs=1e-12), (
        "with errors of odometry off, it is exact"
    )


def test_files_of_robots_say_all_of_it() -> None:
    text = """
    extends = "p3dx"
    lasers = [{ type = "lms200", latency = 0.05, jitter = 0.01, missing = 0.02, measurement_rate = 37.5 }]
    [odometry]
    wheel_ratio = 1.01
    [commands]
    latency = 0.12
    jitter = 0.02
    rate = 10
    scale = [0.98, 1.0, 1.03]
    """
    spec = parse_robot(text, "ours")
    assert spec.commands == CommandSpec(
        latency=0.12, jitter=0.02, rate=10.0, scale=botyard.Axes(0.98, 1.0, 1.03)
    )
    assert spec.wheel_ratio == 1.01
    laser = spec.lasers[0]
    assert (laser.latency, laser.jitter, laser.missing, laser.measurement_rate) == (
        0.05,
        0.01,
        0.02,
        37.5,
    )
    table = to_table(spec)
    assert table["commands"] == {
        "latency": 0.12,
        "jitter": 0.02,
        "rate": 10.0,
        "scale": [0.98, 1.0, 1.03],
    }
    assert table["lasers"][0]["measurement_rate"] == 37.5
    assert table["odometry"]["wheel_ratio"] == 1.01
    assert "commands" not in to_table(BASE)
    assert "wheel_ratio" not in to_table(BASE)["odometry"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[commands]\nlatency = -1", "commands.latency: expected 0 … 60 s, found -1"),
        (
            "[commands]\njitter = 0.1",
            "commands: jitter must be 0 … the latency, 0 s, found 0.1",
        ),
        ("[commands]\nrate = -1", "commands.rate: expected 0 … 1e+06 Hz, found -1"),
        (
            'lasers = [{ type = "urg", measurement_rate = 2e6 }]',
            "measurement_rate must be 0 … 1e+06 Hz, found 2e+06",
        ),
        (
            "[commands]\nscale = [1e3, 1, 1]",
            "commands: scale must be within ±100, found 1000",
        ),
        ("[commands]\ndelay = 1", 'commands: there is no key "delay" here'),
        (
            "[odometry]\nwheel_ratio = 3",
            "odometry.wheel_ratio must be from 0.5 to 2, found 3",
        ),
        (
            'drive = "omni"\n[odometry]\nwheel_ratio = 1.1',
            "odometry.wheel_ratio needs two driven wheels",
        ),
        (
            'lasers = [{ type = "urg", missing = 2 }]',
            "missing must be from 0 to 1, found 2",
        ),
        (
            'lasers = [{ type = "urg", jitter = 1 }]',
            "jitter must be 0 … the latency, 0 s, found 1",
        ),
    ],
)
def test_wrong_numbers_are_named(text: str, words: str) -> None:
    with pytest.raises(ModelError) as error:
        parse_robot(f'extends = "p3dx"\n{text}', "ours")
    assert words in str(error.value)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    "changed",
    [
        {"command_rate": 5.0},
        {"command_latency": 0.02},
        {"command_latency": 0.02, "command_jitter": 0.01},
        {"command_latency": 0.3},
    ],
)
def test_the_newest_command_wins_also_when_the_way_of_commands_changes_between(
    many: bool, changed: dict[str, float]
) -> None:
    sim = world(BASE, BASE)
    one, other = sim.robots.values()
    if many:
        sim.fleet.command(v=np.array([0.5, 0.4]))
    else:
        one.command(v=0.5)
        other.command(v=0.4)

    one.set_parameters(**changed)
    state = sim.save_state()
    one.command(v=-0.3)
    sim.run(3)
    assert (one.velocity.vx, other.velocity.vx) == (
        pytest.approx(-0.3),
        pytest.approx(0.4),
    )
    sim.restore(state)
    sim.run(3)
    assert (one.velocity.vx, other.velocity.vx) == (
        pytest.approx(0.5),
        pytest.approx(0.4),
    ), "what was sent is not lost"
