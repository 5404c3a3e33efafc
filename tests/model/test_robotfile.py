"""Robot files: a written description reads back as the same description."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.api import plugins
from botyard.devices.blobs import BlobFinderSpec
from botyard.devices.bumpers import BumperSpec
from botyard.devices.compass import CompassSpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.devices.gps import GpsSpec
from botyard.devices.tables import TableIrSpec
from botyard.errors import ModelError
from botyard.formats import scenariokeys
from botyard.geometry import Pose
from botyard.model.accessories import GripperSpec
from botyard.model.beams import ReflectorRule
from botyard.model.devices import DeviceSpec
from botyard.model.dynamics import DynamicsSpec, Gains, PoseController
from botyard.model.filetables import FileTable, degrees_of, file_table
from botyard.model.kinematics import Axes, Drive, MotionLimits, Steering
from botyard.model.library import (
    load_laser,
    load_robot,
    parse_robot,
    robot_names,
    robot_of,
)
from botyard.model.obstacles import Returns
from botyard.model.parameters import parameter
from botyard.model.robot import (
    BatterySpec,
    CommandSpec,
    OdometryDrift,
    PioneerSpec,
    RobotSpec,
)
from botyard.model.robotfile import to_table
from botyard.model.sensors import LaserSpec, SonarSpec, Transducer
from botyard.model.tablecheck import TableError, checked
from botyard.units import from_deg

# -- random descriptions


def numbers(low: float = -1e6, high: float = 1e6) -> st.SearchStrategy[float]:
    return st.floats(low, high)


def axes(high: float = 900.0) -> st.SearchStrategy[Axes]:
    return st.builds(Axes, *[numbers(0.0, high)] * 3)


names = st.text("abXY019_ä", min_size=1, max_size=12)
positive = numbers(1e-3, 1e3)
poses = st.builds(
    Pose, numbers(), numbers(), st.floats(-math.pi, math.pi, exclude_min=True)
)
outlines = st.lists(
    st.tuples(numbers(), numbers()), min_size=3, max_size=5, unique=True
).map(tuple)
noise = numbers(0.0, 1.0)
returns = st.builds(
    Returns,
    obstacle=st.booleans(),
    laser=st.integers(0, 99),
    sonar=st.booleans(),
    fiducial=st.integers(0, 99),
    blob=st.booleans(),
)
rules = st.builds(
    ReflectorRule,
    max_range=positive | st.just(math.inf),
    max_incidence=numbers(0.0, 3.0),
    strength=st.integers(0, 99),
)
late = st.sampled_from([0.0, 0.04, 0.5])
lasers = st.builds(
    lambda latency, **same: LaserSpec(**same, latency=latency, jitter=latency / 2),
    latency=late,
    missing=numbers(0.0, 1.0),
    measurement_rate=noise,
    type_name=names,
    pose=poses,
    size=st.tuples(noise, noise),
    fov=numbers(0.0, 6.0),
    samples=st.integers(1, 2000),
    range_min=noise,
    range_max=numbers(2.0, 99.0),
    flipped=st.booleans(),
    range_noise=noise,
    angle_noise=noise,
    reflector=rules,
)
transducers = st.builds(
    lambda own, **same: Transducer(
        **same, range_min=own and own[0], range_max=own and own[1]
    ),
    own=st.none() | st.tuples(numbers(0.1, 0.5), numbers(1.0, 5.0)),
    pose=poses,
    connected=st.booleans(),
    fov=st.none() | numbers(0.0, 6.0),
    noise=st.none() | noise,
)
rings = st.builds(
    lambda latency, **same: SonarSpec(**same, latency=latency, jitter=latency / 4),
    latency=late,
    missing=numbers(0.0, 1.0),
    measurement_rate=noise,
    type_name=names,
    transducers=st.lists(transducers, min_size=1, max_size=4).map(tuple),
    fov=numbers(0.0, 6.0),
    range_min=st.just(0.1),
    range_max=numbers(5.0, 9.0),
    noise=noise,
    rays=st.integers(1, 9),
)
gains = st.builds(Gains, positive, positive)
masses = st.builds(
    DynamicsSpec,
    mass=positive,
    inertia=st.none() | positive,
    center=st.none() | st.tuples(noise, noise),
    friction=noise,
    floor_friction=noise,
    restitution=noise,
    linear_damping=noise,
    angular_damping=noise,
    traction=noise,
    controller=st.builds(
        PoseController, linear=gains, angular=gains, force=st.booleans()
    ),
)
devices = st.lists(
    st.builds(BumperSpec, front=st.integers(1, 7), rear=st.integers(1, 7))
    | st.builds(
        FiducialFinderSpec,
        pose=poses,
        range_min=noise,
        range_max=positive.map(lambda r: r + 2.0),
        fov=numbers(0.1, 6.0),
    )
    | st.builds(GpsSpec, x=numbers(), y=numbers(), dop=numbers(2.0, 9.0))
    | st.builds(CompassSpec)
    | st.builds(
        TableIrSpec,
        positions=st.lists(st.tuples(noise, noise), min_size=1, max_size=3).map(tuple),
        in_io_packet=st.booleans(),
    )
    | st.builds(
        BlobFinderSpec,
        pose=poses,
        colors=st.lists(st.sampled_from(["red", "blue"]), max_size=3).map(tuple),
    ),
    max_size=3,
).map(tuple)
robots = st.builds(
    RobotSpec,
    name=names,
    description=st.text(max_size=9),
    color=st.sampled_from(["red", "#102030"]),
    drive=st.sampled_from([d for d in Drive if d < Drive.ACKERMANN]),
    outline=outlines,
    parts=st.lists(outlines, max_size=2).map(tuple),
    limits=st.builds(
        MotionLimits,
        max_speed=axes(),
        accel=axes(),
        decel=axes(),
        top_accel=axes(),
        heading_speed=numbers(0.0, 9.0),
    ),
    odometry_error=axes(),
    odometry_error_low=st.none() | axes(),
    perfect_odometry=st.booleans(),
    odometry_origin=st.none() | poses,
    lasers=st.lists(lasers, max_size=2).map(tuple),
    sonar=st.none() | rings,
    devices=devices,
    pioneer=st.builds(
        PioneerSpec,
        class_name=names,
        subclass=names,
        dist_conv=positive,
        watchdog=noise,
        ticks_per_mm=positive,
    ),
    battery=st.builds(
        BatterySpec,
        by_charge=st.booleans(),
        volts=positive,
        capacity_wh=positive,
        shutdown_charge=noise,
    ),
    returns=returns,
    gripper=st.none()
    | st.builds(
        GripperSpec,
        reach=positive,
        opening=positive,
        thickness=positive,
        paddle_time=positive,
    ),
    wheel_radius=positive,
    gyro=st.booleans(),
    dynamics=st.none() | masses,
    commands=st.builds(
        lambda latency, rate, scale: CommandSpec(
            latency=latency, jitter=latency / 8, rate=rate, scale=scale
        ),
        late,
        noise,
        st.builds(Axes, *[numbers(-2.0, 2.0)] * 3),
    ),
)
robots |= st.builds(
    replace, robots, drive=st.just(Drive.DIFF), wheel_ratio=numbers(0.6, 1.9)
) | st.builds(
    replace,
    robots,
    drive=st.sampled_from([Drive.ACKERMANN, Drive.TRICYCLE]),
    track=st.just(0.3),
    steering=st.builds(
        Steering,
        wheelbase=numbers(0.5, 5.0) | numbers(-5.0, -0.5),
        limit=numbers(0.0, 1.2),
        rate=noise,
        offset=numbers(-0.1, 0.1),
        by_angle=st.booleans(),
    ),
)


def through_a_file(spec: RobotSpec) -> RobotSpec:
    """Return the robot read from its written table."""
    return robot_of(json.loads(json.dumps(to_table(spec), allow_nan=False)), spec.name)


def is_near(a: Any, b: Any) -> bool:
    """Return whether values are equal but for the last digits of numbers.

    Radians have more distinct values than the written degrees.
    """
    if isinstance(a, float):
        return isinstance(b, float) and math.isclose(
            a, b, rel_tol=1e-15, abs_tol=1e-300
        )

    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_near, a, b))
    if is_dataclass(a):
        return type(a) is type(b) and all(
            is_near(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
        )

    return bool(a == b)


@given(robots)
@settings(max_examples=30)
def test_any_robot_is_read_from_a_file_as_it_was_written(spec: RobotSpec) -> None:
    again = through_a_file(spec)
    assert is_near(spec, again), f"{spec}\nbecame\n{again}"
    assert through_a_file(again) == again, (
        "what came from a file is written without any loss"
    )


@pytest.mark.parametrize("name", robot_names())
def test_the_library_is_written_without_loss(name: str) -> None:
    spec = load_robot(name)
    assert is_near(through_a_file(spec), spec)
    assert through_a_file(through_a_file(spec)) == through_a_file(spec)


@given(st.floats(-400.0, 400.0))
def test_degrees_of_a_file_come_back(angle: float) -> None:
    radians = from_deg(angle)
    assert from_deg(degrees_of(radians)) == radians


def test_degrees_are_short_where_they_can_be() -> None:
    short = [99.7, -180.0, 0.1, 1e-9, *(round(k * 0.123, 3) for k in range(1000))]
    assert [degrees_of(from_deg(d)) for d in short] == short
    assert [degrees_of(a) for a in (math.inf, -0.0)] == [math.inf, 0.0]
    assert math.copysign(1.0, degrees_of(-0.0)) == 1.0


def test_a_transducer_with_one_limit_of_its_own() -> None:
    ring = SonarSpec(
        type_name="ring",
        transducers=(
            Transducer(pose=Pose(), range_min=0.5),
            Transducer(pose=Pose(), range_max=3.0),
        ),
    )
    again = through_a_file(RobotSpec(name="r", sonar=ring)).sonar
    assert again is not None
    assert [again.limits_of(t) for t in again.transducers] == [(0.5, 5.0), (0.1, 3.0)]


def test_every_field_of_a_robot_stands_in_its_file() -> None:
    """A new field of a description is in files automatically.

    Fields that are not part of a robot file are listed here.
    """
    table = to_table(load_robot("p3dx-equipped")) | {"dynamics": {}}
    for spec, part, elsewhere in (
        (
            RobotSpec,
            table,
            {
                "name",
                "devices",
                "odometry_error",
                "odometry_error_low",
                "perfect_odometry",
                "odometry_origin",
                "wheel_ratio",
                "commands",
                "returns",
                "ramps",
                "odometry_drift",
                "track",
                "steering",
                "wheels",
                "trailers",
                "is_trailer",
            },
        ),
        (BatterySpec, table["battery"], {"by_charge"}),
        (PioneerSpec, table["pioneer"], {"class_name"}),
        (
            LaserSpec,
            table["lasers"][0],
            {
                "type_name",
                "fov",
                "range_min",
                "range_max",
                "latency",
                "jitter",
                "missing",
                "measurement_rate",
                "range_deviation",
                "range_share",
                "time_increment",
                "white_range",
                "intensity",
                "echoes",
            },
        ),
    ):
        assert {f.name for f in fields(spec) if f.init} - set(part) == elsewhere


EVERY_KEY = """
abstract = false
description = "all of it"
color = "blue"
drive = "omni"
ramps = "exact"
outline = [[0, 0], [1, 0], [1, 1]]
parts = [[[0, 0], [2, 0], [2, 2]]]
wheel_radius = 0.2
gyro = true
compass = true
gps = { position = [0.1, 0.2], dop = 3 }
returns = { obstacle = false, laser = 2, sonar = false, fiducial = 4, blob = false }
table_ir = { positions = [[0.1, 0.2]], in_io_packet = true }
gripper = { reach = 1, opening = 2, thickness = 3, paddle_time = 4, lift_time = 5 }
odometry = { error = [0.1, 0.2, 0.3], error_low = [-0.1, -0.2, -0.3], perfect = true, origin = [1, 2, 90], drift = [0.1, 0.2, 0.3, 0.4] }
commands = { latency = 0.3, jitter = 0.1, rate = 12.5, scale = [0.9, 1.1, 1.2] }
bumpers = { front = 1, rear = 2 }
fiducial_finder = { pose = [1, 2, 180], range = [1, 2], range_id = 1.5, fov_deg = 90 }
[limits]
max_speed = [1, 2, 90]
accel = [3, 4, 180]
decel = [5, 6, 360]
top_accel = [7, 8, 90]
heading_speed_deg = 180
[sonar]
type_name = "ring"
transducers = [[1, 2, 90], [3, 4, 180]]
fov_deg = 90
range = [0.2, 4]
noise = 0.1
rays = 3
update_rate = 20
measurement_rate = 25
unconnected = [1]
single = [{ index = 0, fov_deg = 180, range = [0.3, 3], noise = 0.2 }]
[pioneer]
class = "A"
subclass = "b"
dist_conv = 1.5
angle_conv = 0.1
vel_conv = 2.5
range_conv = 3.5
diff_conv = 4.5
vel2_div = 5.5
watchdog = 6.5
ticks_per_mm = 7.5
[battery]
kind = "charge"
volts = 1
charge = 2
capacity_wh = 3
empty_volts = 4
idle_power = 5
motor_power = 6
charge_power = 7
shutdown_charge = 8
[dynamics]
mass = 1
inertia = 2
center = [0.1, 0.2]
friction = 0.1
floor_friction = 0.2
restitution = 0.3
linear_damping = 0.4
angular_damping = 0.5
traction = 0.6
controller = { linear = [1, 2], angular = [3, 4], output = "force" }
[[lasers]]
type = "mine"
pose = [1, 2, 90]
flipped = true
size = [0.1, 0.2]
fov_deg = 180
samples = 19
range = [0.5, 9]
range_noise = 0.1
range_deviation = 0.3
range_share = 0.01
angle_noise = 0.2
update_rate = 12.5
measurement_rate = 37.5
reflector = { max_range = 5, max_incidence_deg = 90, strength = 7 }
"""
RIGHT = math.pi / 2
EVERYTHING = RobotSpec(
    name="every",
    description="all of it",
    color="blue",
    drive=Drive.OMNI,
    outline=((0, 0), (1, 0), (1, 1)),
    wheel_radius=0.2,
    parts=(((0, 0), (2, 0), (2, 2)),),
    gyro=True,
    lasers=(
        LaserSpec(
            type_name="mine",
            pose=Pose(1, 2, RIGHT),
            flipped=True,
            size=(0.1, 0.2),
            fov=math.pi,
            samples=19,
            range_min=0.5,
            range_max=9.0,
            range_noise=0.1,
            range_deviation=0.3,
            range_share=0.01,
            angle_noise=0.2,
            reflector=ReflectorRule(max_range=5.0, max_incidence=RIGHT, strength=7),
            update_rate=12.5,
            measurement_rate=37.5,
        ),
    ),
    returns=Returns(obstacle=False, laser=2, sonar=False, fiducial=4, blob=False),
    gripper=GripperSpec(
        reach=1.0, opening=2.0, thickness=3.0, paddle_time=4.0, lift_time=5.0
    ),
    odometry_error=Axes(0.1, 0.2, 0.3),
    odometry_error_low=Axes(-0.1, -0.2, -0.3),
    perfect_odometry=True,
    ramps="exact",
    odometry_origin=Pose(1, 2, RIGHT),
    odometry_drift=OdometryDrift(0.1, 0.2, 0.3, 0.4),
    commands=CommandSpec(latency=0.3, jitter=0.1, rate=12.5, scale=Axes(0.9, 1.1, 1.2)),
    devices=(
        CompassSpec(),
        GpsSpec(x=0.1, y=0.2, dop=3.0),
        TableIrSpec(positions=((0.1, 0.2),), in_io_packet=True),
        BumperSpec(front=1, rear=2),
        FiducialFinderSpec(
            pose=Pose(1, 2, math.pi),
            range_min=1.0,
            range_max=2.0,
            range_max_id=1.5,
            fov=RIGHT,
        ),
    ),
    limits=MotionLimits(
        max_speed=Axes(1, 2, RIGHT),
        accel=Axes(3, 4, math.pi),
        decel=Axes(5, 6, 2 * math.pi),
        top_accel=Axes(7, 8, RIGHT),
        heading_speed=math.pi,
    ),
    sonar=SonarSpec(
        type_name="ring",
        fov=RIGHT,
        range_min=0.2,
        range_max=4.0,
        noise=0.1,
        rays=3,
        update_rate=20.0,
        measurement_rate=25.0,
        transducers=(
            Transducer(
                pose=Pose(1, 2, RIGHT),
                fov=math.pi,
                range_min=0.3,
                range_max=3.0,
                noise=0.2,
            ),
            Transducer(pose=Pose(3, 4, math.pi), connected=False),
        ),
    ),
    pioneer=PioneerSpec(
        class_name="A",
        subclass="b",
        dist_conv=1.5,
        angle_conv=0.1,
        vel_conv=2.5,
        range_conv=3.5,
        diff_conv=4.5,
        vel2_div=5.5,
        watchdog=6.5,
        ticks_per_mm=7.5,
    ),
    battery=BatterySpec(
        by_charge=True,
        volts=1.0,
        charge=2.0,
        capacity_wh=3.0,
        empty_volts=4.0,
        idle_power=5.0,
        motor_power=6.0,
        charge_power=7.0,
        shutdown_charge=8.0,
    ),
    dynamics=DynamicsSpec(
        mass=1.0,
        inertia=2.0,
        center=(0.1, 0.2),
        friction=0.1,
        floor_friction=0.2,
        restitution=0.3,
        linear_damping=0.4,
        angular_damping=0.5,
        traction=0.6,
        controller=PoseController(
            linear=Gains(1.0, 2.0), angular=Gains(3.0, 4.0), force=True
        ),
    ),
)


def test_every_key_of_a_robot_file() -> None:
    """The format:

    existing files must stay readable, and written files have these keys.
    """
    assert parse_robot(EVERY_KEY, "every") == EVERYTHING
    table = {k: v for k, v in tomllib.loads(EVERY_KEY).items() if k != "abstract"}
    assert to_table(EVERYTHING) == table


@pytest.mark.parametrize(
    "key",
    [
        "wheel_radius",
        "battery.volts",
        "gps.position",
        "sonar.noise",
        "pioneer.dist_conv",
        "gripper.reach",
    ],
)
def test_nan_is_no_number(key: str) -> None:
    table, _, name = key.rpartition(".")
    value = "[0, nan]" if name == "position" else "nan"
    place = rf"{key}\[1\]" if name == "position" else key
    with pytest.raises(
        ModelError, match=rf"model r: {place}: expected a number, found nan"
    ):
        parse_robot(
            f'extends = "p3dx"\n{f"[{table}]" if table else ""}\n{name} = {value}', "r"
        )

    for text, place in (
        (
            'lasers = [{ type = "urg" }, { type = "urg", range_noise = nan }]',
            r"lasers\[1\].range_noise",
        ),
        ("[sonar]\nsingle = [{ index = 1, noise = nan }]", r"sonar.single\[0\].noise"),
    ):
        with pytest.raises(
            ModelError, match=f"model r: {place}: expected a number, found nan"
        ):
            parse_robot('extends = "p3dx"\n' + text, "r")


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e300", "9" * 40, "'inf'"])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("lasers = [{ type = 'urg', pose = [0, 0, X] }]", r"lasers\[0\].pose\[2\]"),
        ("lasers = [{ type = 'urg', pose = [X, 0, 0] }]", r"lasers\[0\].pose\[0\]"),
        ("[sonar]\ntransducers = [[0, 0, X]]", r"sonar.transducers\[0\]\[2\]"),
        ("[fiducial_finder]\npose = [0, 0, X]", r"fiducial_finder.pose\[2\]"),
        ("table_ir = { positions = [[X, 0]] }", r"table_ir.positions\[0\]\[0\]"),
        ("gripper = { opening = X }", "gripper.opening"),
        ("outline = [[0, 0], [X, 1], [1, 0]]", r"outline\[1\]\[0\]"),
        (
            "[[devices]]\ntype = 'normal_errors'\nrange_bias = X",
            "normal_errors.range_bias",
        ),
    ],
)
def test_numbers_beyond_all_measure(text: str, place: str, value: str) -> None:
    """Infinite angles have no sine, and no state may hold such numbers."""
    with pytest.raises(
        ModelError, match=rf"^model r: {place}: expected a number.*, found"
    ):
        parse_robot('extends = "p3dx"\n' + text.replace("X", value), "r")


def test_keys_of_very_many_parts_are_refused_before_they_are_read() -> None:
    for text in (
        "[a" + ".a" * 10**5 + "]\nb = 1",
        "'a'." * 10**5 + "a = 1",
        "a . " * 10**5 + "a = 1",
    ):
        with pytest.raises(
            ModelError,
            match="r: expected keys of at most 100 parts, found a longer one",
        ):
            parse_robot(text, "r")

    # These lines are comments, not keys, and checking them must take no time.
    for text in (
        "# " + "x" * 10**6,
        "# " + "a.b c." * 10**5,
    ):
        assert parse_robot('extends = "p3dx"\n' + text, "r").name == "r"


def test_packages_are_not_looked_through_for_each_unknown_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    real = plugins.entry_points
    monkeypatch.setattr(
        plugins, "entry_points", lambda **which: asked.append(which) or real(**which)
    )
    with pytest.raises(ModelError, match='there is no key "k0" here'):
        parse_robot(
            'extends = "p3dx"\n' + "".join(f"k{i} = 1\n" for i in range(50)), "r"
        )

    assert len(asked) <= 1


def test_a_hint_is_another_word_than_the_one_that_is_wrong() -> None:
    with pytest.raises(
        ModelError,
        match=r'lasers\[0\]: there is no key "transducers" here; did you mean "trailers"',
    ):
        parse_robot(
            'extends = "p3dx"\nlasers = [{ type = "urg", transducers = 3 }]', "r"
        )


def test_errors_tell_devices_of_one_kind_apart() -> None:
    one = '[[devices]]\ntype = "normal_errors"\n'
    with pytest.raises(
        ModelError,
        match=r'normal_errors number 2: normal_errors: there is no key "x" here',
    ):
        parse_robot(f'extends = "p3dx"\n{one}{one}x = 1', "r")

    with pytest.raises(
        ModelError,
        match='devices: expected the key "type" in each table, found one with kind, x',
    ):
        parse_robot(f'extends = "p3dx"\n{one}[[devices]]\nkind = "gps"\nx = 1', "r")


# -- omitted keys


def test_what_a_file_leaves_out() -> None:
    body = "outline = [[0, 0], [1, 0], [1, 1]]\n"
    spec = parse_robot(body, "plain")
    assert spec == RobotSpec(
        name="plain",
        outline=((0, 0), (1, 0), (1, 1)),
        pioneer=PioneerSpec(subclass="plain"),
    )
    spec = parse_robot(
        body + "[limits]\nmax_speed=[1, 2, 90]\naccel=[0, 0, 0]\ndecel=[0, 0, "
        "0]\n[pioneer]\nclass = 'x'",
        "plain",
    )
    assert spec.limits.max_speed == Axes(1.0, 2.0, math.pi / 2)
    assert (spec.limits.top_accel, spec.limits.heading_speed) == (
        Axes(2.0, 2.0, 2 * math.pi),
        from_deg(100.0),
    )
    assert (spec.pioneer.class_name, spec.pioneer.subclass) == ("x", "plain")


def test_a_laser_of_the_library_keeps_what_its_mount_does_not_say() -> None:
    text = (
        "outline = [[0, 0], [1, 0], [1, 1]]\n[[lasers]]\ntype = "
        "'lms200'\npose = [0, 0, 90]\nfov_deg = 90\n"
    )
    (laser,) = parse_robot(text, "plain").lasers
    assert laser == replace(
        load_laser("lms200"), pose=Pose(0.0, 0.0, math.pi / 2), fov=math.pi / 2
    )


def test_rates_of_range_sensors() -> None:
    text = (
        "outline = [[0, 0], [1, 0], [1, 1]]\nlasers = [{{type = 'lms200', "
        "update_rate = {0}}}]\n[sonar]\ntype_name = 's'\n"
    )
    text += "transducers = [[0, 0, 0]]\nupdate_rate = {0}"
    spec = parse_robot(text.format(12.5), "r")
    assert spec.sonar is not None
    assert (spec.lasers[0].update_rate, spec.sonar.update_rate) == (12.5, 12.5)
    again = robot_of(to_table(spec), "r")
    assert (again.lasers, again.sonar) == (spec.lasers, spec.sonar)
    for bad in ("-1", "nan", "inf", "1e7"):
        with pytest.raises(ModelError, match="update_rate"):
            parse_robot(text.format(bad), "r")


def test_words_are_read_in_any_case() -> None:
    assert (
        parse_robot(
            'extends = "p3dx"\ndrive = "Omni"\nbattery = { kind = "CHARGE" }', "r"
        ).drive
        is Drive.OMNI
    )


# -- random tables


@dataclass(frozen=True, slots=True)
class Tilt:
    """A value written as a list, because its fields have an order."""

    up: float = 0.0
    side: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    size: float
    turn: float | None = parameter(None, unit="rad")
    kind: int = parameter(0, words={"near": 0, "far": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    places: tuple[Pose, ...] = ()
    tilt: Tilt = parameter(Tilt(), unit="m rad")
    rate: float = parameter(1.0, unit="rad/s", about="how fast it turns")
    low: float = parameter(0.0, unit="m", key="span.range", index=0)
    high: float = parameter(9.0, unit="m", key="span.range", index=1)
    parts: tuple[Part, ...] = ()
    first: Part | None = None
    limit: float | None = 3.0
    must: int = parameter(1, is_required=True)
    quiet: str = parameter("", is_brief=True)
    old: int = parameter(1, left_out=2)


WHOLE = Whole(
    places=(Pose(1.0, 2.0, math.pi / 2),),
    tilt=Tilt(1.0, math.pi),
    rate=math.pi,
    low=1.0,
    high=2.0,
    limit=None,
    parts=(Part(size=1.0), Part(size=2.0, turn=math.pi / 4, kind=1)),
    first=Part(size=3.0),
    quiet="x",
)
TABLE = {
    "places": [[1.0, 2.0, 90.0]],
    "tilt": [1.0, 180.0],
    "rate_deg": 180.0,
    "span": {"range": [1.0, 2.0]},
    "parts": [
        {"size": 1.0, "kind": "near"},
        {"size": 2.0, "turn_deg": 45.0, "kind": "far"},
    ],
    "first": {"size": 3.0, "kind": "near"},
    "limit": None,
    "must": 1,
    "quiet": "x",
    "old": 1,
}


def read(table: dict[str, Any]) -> Whole:
    whole = file_table(Whole)
    return whole.read(checked(table, whole.type))


def test_a_table_of_any_description() -> None:
    assert file_table(Whole).write(WHOLE) == TABLE
    assert read(TABLE) == WHOLE
    assert read({"must": 5}) == Whole(must=5, old=2), (
        "what is left out is the default, or what the declaration says"
    )
    assert "quiet" not in file_table(Whole).write(Whole())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"must": msgspec.UNSET}, 'expected the key "must", found none'),
        (
            {"parts": [{"size": 1}, {"size": 2, "turn_deg": "x"}]},
            "parts[1].turn_deg: expected a number or nothing, found a text",
        ),
        (
            {"parts": [{"size": 1, "kind": "nearr"}]},
            'parts[0].kind: expected "near" or "far", found "nearr"',
        ),
        (
            {"first": {"size": 1, "kind": "\x1b[31m"}},
            r'first.kind: expected "near" or "far", found "\x1b[31m"',
        ),
        (
            {"first": {"sise": 1}},
            'first: there is no key "sise" here; did you mean "size"?',
        ),
        (
            {"span": {"rnage": [1, 2]}},
            'span: there is no key "rnage" here; did you mean "range"?',
        ),
        ({"span": {"range": [1]}}, "span.range: expected a list of length 2, found 1"),
        ({"places": [[1, 2]]}, "places[0]: expected a list of length 3, found 2"),
        ({"tilt": 3}, "tilt: expected a list, found a whole number"),
        ({"rate": 3}, 'there is no key "rate" here; did you mean "rate_deg"?'),
        ({"rate_deg": 10**400}, "rate_deg: number out of range"),
        ({"k" * 100_000: 1}, "there is no key"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(
    change: dict[str, Any], message: str
) -> None:
    table = {k: v for k, v in {**TABLE, **change}.items() if v is not msgspec.UNSET}
    with pytest.raises(TableError) as error:
        read(table)
    assert message in str(error.value)
    assert len(str(error.value)) < 1000
    assert str(error.value.of("model a").inside("b")).startswith("b")
    assert isinstance(error.value, ModelError)


def test_fields_apart_are_given_by_the_reader() -> None:
    class Keys(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
        label: str

    table = FileTable(Part, name="Labelled", base=Keys, apart=("size",))
    file = checked({"label": "a", "kind": "far"}, table.type)
    assert (file.label, table.read(file, size=4.0)) == ("a", Part(size=4.0, kind=1))
    assert table.write(Part(size=4.0)) == {"kind": "near"}
    with pytest.raises(TableError, match='no key "size"'):
        checked({"label": "a", "size": 1.0}, table.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _EchoSpec(DeviceSpec):
    """A device with parameters of every type that descriptions may have."""

    type: str = field(default="echo", init=False)
    mounts: tuple[Pose, ...] = ()
    spin: float = parameter(0.0, unit="rad/s")
    mode: str = parameter("a", words={"first": "a", "second": "b"})
    gain: Tilt = Tilt()


def test_devices_are_written_by_the_same_rules() -> None:
    echo = _EchoSpec(
        mounts=(Pose(1.0, 2.0, math.pi),), spin=math.pi, mode="b", gain=Tilt(3.0, 4.0)
    )
    table = file_table(_EchoSpec)
    written = table.write(echo)
    assert written == {
        "mounts": [[1.0, 2.0, 180.0]],
        "spin_deg": 180.0,
        "mode": "second",
        "gain": [3.0, 4.0],
    }
    assert table.read(checked(written, table.type)) == echo


# -- the schema of scenarios


def test_the_schema_says_units_words_and_defaults() -> None:
    defs = scenariokeys.schema()["$defs"]
    assert defs["LaserMount"]["properties"]["fov_deg"] == {
        "type": "number",
        "description": "in °",
    }
    assert defs["PoseControllerTable"]["properties"]["output"]["enum"] == [
        "velocity",
        "force",
    ]
    assert defs["ReturnsTable"]["properties"]["laser"] == {
        "type": "integer",
        "default": 1,
    }
    assert defs["DynamicsSpecTable"]["required"] == ["mass"]
