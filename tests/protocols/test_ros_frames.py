"""Transforms and covariances of all robots at once, against objects, the state, and
many robots with odometry errors.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.formats.models import find_robot
from botyard.geometry import Pose, compose
from botyard.model.kinematics import Axes
from botyard.model.obstacles import BoxObject
from botyard.model.rosmessages import ScanArrays
from botyard.model.scene import Scene
from botyard.model.sensors import LaserSpec
from botyard.protocols.ros_messages.covariance import MIN_VARIANCE
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import PROFILES, names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.transforms import Transforms
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Robot, Simulation

TYPES = types()
STAMP = Stamp(12, 340_000_000)
ERRING = replace(
    find_robot("p3dx"), odometry_error=Axes(0.02, 0.02, 0.1), odometry_error_low=None
)


def shown(
    robots: list[Robot], profile: str, is_localized: bool = False
) -> tuple[StepData, list[RobotTopics]]:
    """Return robots in their ROS form."""
    data, messages = StepData(is_localized), Messages(TYPES)
    named = [
        (robot, names_of(robot.name, PROFILES[profile].with_frames("prefixed"), False))
        for robot in robots
    ]
    return data, [
        RobotTopics(robot.port("ros"), names, messages, TYPES, data)
        for robot, names in named
    ]


def topic(topics: RobotTopics, name: str) -> Topic:
    (found,) = (t for t in topics.topics() if t.name == topics.names.topic(name))
    return found


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["p3dx", "p3dx-equipped", "seekur"]),
            st.floats(-0.5, 0.5),
            st.floats(-1, 1),
        ),
        max_size=5,
    ),
    st.sampled_from([*PROFILES]),
    st.booleans(),
)
def test_bytes_of_transforms_are_those_of_the_objects(
    chosen: list[tuple[str, float, float]], profile: str, is_localized: bool
) -> None:
    sim = Simulation()
    robots = [
        sim.add_robot(model, f"r{k}", pose=(3.0 * k, 0.0, 0.4 * k))
        for k, (model, _, _) in enumerate(chosen)
    ]
    data, topics = shown(robots, profile, is_localized)
    for robot, (_, v, w) in zip(robots, chosen, strict=True):
        robot.command(v=v, w=w)
    tf = Transforms(TYPES, Messages(TYPES), "/tf", lambda: topics)
    moving, _ = tf.topics()
    for _ in range(2):
        sim.step(3)
        data.forget()
        assert moving.quick is not None
        message = moving.make(STAMP)
        assert moving.quick("cdr", STAMP) == TYPES.encode_cdr(message, moving.type_name)
        decoded = TYPES.decode_ros1(moving.quick("ros1", STAMP), moving.type_name)
        assert decoded == TYPES.decode_ros1(
            TYPES.encode_ros1(message, moving.type_name), moving.type_name
        )


def planar(values: tuple[float, ...]) -> Pose:
    return Pose(values[0], values[1], 2.0 * math.atan2(values[5], values[6]))


def near(a: Pose, b: Pose) -> bool:
    turned = math.remainder(a.th - b.th, 2.0 * math.pi)
    return math.hypot(a.x - b.x, a.y - b.y) < 1e-9 and abs(turned) < 1e-9


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-3, 3))
def test_localization_is_the_truth_or_what_was_said(
    x: float, y: float, th: float
) -> None:
    """map → odom → base is the true pose.

    After ``initialpose`` it is that pose with its constant error (fake_localization).
    """
    robot, data, topics = LOCALIZED
    robot.command(v=0.3, w=0.4)
    for said in (False, True):
        if said:
            before = robot.truth
            topics.frames.set_pose(Pose(x, y, th))
            assert near(topics.frames.pose, Pose(x, y, th))

        robot.simulation.step(2)
        data.forget()
        found = {t.child: planar(t.values) for t in topics.transforms()}
        believed = compose(found["ann/odom"], found["ann/base_footprint"])
        expected = Pose(*robot.truth)
        if said:
            apart = compose(Pose(x, y, th), inverted(Pose(*before)))
            expected = compose(apart, Pose(*robot.truth))

        assert near(believed, expected)
        assert near(topics.frames.pose, expected)
        robot.port("other").set_odometry(Pose(1.0, -2.0, 0.5))
        robot.simulation.step()
        topics.frames.set_pose(Pose(*robot.truth))


def inverted(p: Pose) -> Pose:
    c, s = math.cos(p.th), math.sin(p.th)
    return Pose(-(c * p.x + s * p.y), s * p.x - c * p.y, -p.th)


def _localized() -> tuple[Robot, StepData, RobotTopics]:
    robot = Simulation(seed=3).add_robot(
        "p3dx-big-rot-error", "ann", pose=(5.0, 6.0, 2.0)
    )
    data, (topics,) = shown([robot], "nav2", True)
    return robot, data, topics


LOCALIZED = _localized()


# -- covariances


@pytest.mark.parametrize(
    "mode", ["random_each_update", "random_init", "constant", "none"]
)
@pytest.mark.parametrize("model", ["p3dx-nolaser", "seekur"])
def test_covariance_fits_the_errors_of_many_robots(mode: str, model: str) -> None:
    """Normalised squared pose errors have the mean 3, their number of dimensions (Y.
    Bar-Shalom, *Estimation*, §5.4).

    It is less where `MIN_VARIANCE` replaces the variance of a dimension without an
    error: a constant wheel error moves a pose in two dimensions.
    """
    spec = replace(
        find_robot(model),
        odometry_error=Axes(0.04, 0.03, 0.05),
        odometry_error_low=None,
        sonar=None,
        lasers=(),
        perfect_odometry=False,
    )
    sim = Simulation(seed=5, step=0.1, odometry_error=mode)
    count = 150
    robots = [
        sim.add_robot(spec, f"r{k}", pose=(20.0 * k, 0.0, 0.0)) for k in range(count)
    ]
    data, _ = shown(robots, "nav2")
    data.forget()
    sideways = {"vy": 0.2} if model == "seekur" else {}
    for v, w in ((0.3, 0.5), (-0.2, 0.4), (0.3, -0.3)):
        for robot in robots:
            robot.command(v=v, w=w, **sideways)
        for _ in range(20):
            sim.step()
            data.forget()

    squares = []
    for robot in robots:
        covariance = np.frombuffer(data.covariance.of(robot.name)[0]).reshape(6, 6)
        assert np.array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance).min() >= 0.9 * MIN_VARIANCE
        start = Pose(20.0 * robots.index(robot), 0.0, 0.0)
        true = compose(inverted(start), Pose(*robot.truth))
        error = np.array(
            [
                robot.odom.x - true.x,
                robot.odom.y - true.y,
                math.remainder(robot.odom.th - true.th, 2 * math.pi),
            ]
        )
        known = covariance[np.ix_((0, 1, 5), (0, 1, 5))]
        squares.append(error @ np.linalg.solve(known, error))

    assert np.isfinite(squares).all()
    if mode == "none":
        assert max(squares) < 1e-6 and known == pytest.approx(np.eye(3) * MIN_VARIANCE)
    elif mode == "constant":
        assert len({round(s, 3) for s in squares}) == 1, (
            "all have the same error, of one deviation along each axis"
        )
        assert squares[0] < 9.0
    else:
        assert known[0, 0] > 5.0 * MIN_VARIANCE
        expected = 3.0 - MIN_VARIANCE * np.trace(np.linalg.inv(known))
        assert np.mean(squares) == pytest.approx(expected, rel=0.25)


def test_covariance_begins_anew_when_odometry_is_set_and_robots_come_and_go() -> None:
    sim = Simulation(step=0.1)
    robots = [
        sim.add_robot(ERRING, f"r{k}", pose=(5.0 * k, 0.0, 0.0)) for k in range(3)
    ]
    data, topics = shown(robots, "nav2")
    for robot in robots:
        robot.command(v=0.3, w=0.5)

    def go(steps: int) -> dict[str, float]:
        for _ in range(steps):
            sim.step()
            data.forget()

        return {
            name: float(np.frombuffer(data.covariance.of(name)[0])[35])
            for name in sim.robots
        }

    first = go(20)
    assert min(first.values()) > 2.0 * MIN_VARIANCE
    robots[1].port("other").set_odometry(Pose(3.0, 2.0, 1.0))
    second = go(1)
    assert (
        second["r1"] < first["r1"]
        and second["r0"] >= first["r0"]
        and second["r2"] >= first["r2"]
    )
    topics[0].close()
    sim.remove_robot("r0")
    third = go(5)
    assert third["r2"] >= second["r2"] > third["r1"], "the others keep theirs"


def test_covariances_in_messages() -> None:
    """The covariances of the model, in bytes and objects, also of velocities."""
    robot = Simulation(step=0.1).add_robot(ERRING, "ann")
    data, (topics,) = shown([robot], "nav2")
    robot.command(v=0.3, w=0.5)
    for _ in range(10):
        robot.simulation.step()
        data.forget()

    odom = topic(topics, "odom")
    assert odom.quick is not None
    for wire in ("ros1", "cdr"):
        decode = TYPES.decode_ros1 if wire == "ros1" else TYPES.decode_cdr
        message = decode(odom.quick(wire, STAMP), odom.type_name)
        for what, which in (("pose", 0), ("twist", 1)):
            expected = np.frombuffer(data.covariance.of("ann")[which])
            for one in (message, odom.make(STAMP)):
                assert np.array_equal(getattr(one, what).covariance, expected)

    w, error = robot.velocity.w, ERRING.odometry_error.a
    assert message.twist.covariance[35] == pytest.approx(
        MIN_VARIANCE + (error * w) ** 2 / 3.0
    )
    assert message.child_frame_id == "ann/base_footprint"


# -- scans (REP-117)


@pytest.mark.parametrize("read", [True, False])
def test_too_near_is_negative_infinity_and_nothing_is_infinity(read: bool) -> None:
    near = BoxObject(name="near", pose=Pose(0.5, 0.0), length=0.2, width=0.4)
    laser = LaserSpec(
        type_name="urg", samples=3, fov=math.pi, range_min=0.45, range_max=4.0
    )
    sim = Simulation(Scene(boxes=(near,)))
    robot = sim.add_robot(
        replace(find_robot("p3dx-nolaser"), lasers=(laser,)),
        "ann",
        pose=(0.0, 0.0, 0.0),
    )
    _, (topics,) = shown([robot], "nav2")
    scan = topic(topics, "scan")
    if read:
        robot.laser.subscribe("x")
    sim.step()
    assert scan.quick is not None
    for message in (
        scan.make(STAMP),
        TYPES.decode_cdr(scan.quick("cdr", STAMP), scan.type_name),
    ):
        assert message.ranges.tolist() == [math.inf, -math.inf, math.inf]
        assert message.range_max == 4.0
        assert message.header.frame_id == "ann/base_scan"


@given(
    st.lists(st.tuples(st.floats(0, 10, width=32), st.booleans())),
    st.floats(0, 2, width=32),
)
def test_every_range_is_finite_within_the_limits_or_infinite(
    read: list[tuple[float, bool]], least: float
) -> None:
    ranges = np.maximum(np.array([r for r, _ in read], np.float64), least)
    returns = np.array([met for _, met in read], np.int16)
    found = ScanArrays(is_open=True).ranges(ranges, returns, least)
    for r, met, f in zip(ranges, returns, found, strict=True):
        expected = math.inf if not met else -math.inf if 0.0 < least >= r else r
        assert f == expected
