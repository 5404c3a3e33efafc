"""Kinds of devices:

the registry, robot files, the findings of check_device, and a sensor in a package.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import math
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from botyard.devices.apriltags import AprilTagSpec
from botyard.devices.blobs import BlobFinderSpec
from botyard.devices.bumpers import BUMPERS, BumperSpec
from botyard.devices.compass import CompassSpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.devices.gnss import GnssSpec
from botyard.devices.gps import GpsSpec
from botyard.devices.imu import ImuSpec
from botyard.devices.leds import LedsSpec, OmniCameraSpec, ring
from botyard.devices.rangebearing import RangeAndBearingSpec, payload
from botyard.devices.rangefinders import UltrasonicSpec
from botyard.devices.robotjoints import PrismaticJointSpec, RevoluteJointSpec
from botyard.devices.tables import TableIrSpec
from botyard.devices.uwb import UwbSpec
from botyard.devices.view import stream_of
from botyard.engine.kernels.contactsectors import SECTORS
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.rng import draws
from botyard.engine.tables import Column, Table
from botyard.errors import ArgumentError, ModelError, StateError, UnknownNameError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model import devices
from botyard.model.accessories import GripperSpec
from botyard.model.beams import Bundle
from botyard.model.devices import (
    Device,
    DeviceSpec,
    Field,
    find_device,
    parameter,
    register,
)
from botyard.model.devicetables import MAX_DEVICES
from botyard.model.dynamics import Gains
from botyard.model.library import parse_robot, robot_of
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.robot import BatterySpec
from botyard.model.robotfile import to_table
from botyard.model.rosmessages import Place, ScanArrays
from botyard.model.scene import GeoReference, Scene
from botyard.model.sensors import LaserSpec, SonarSpec, Transducer
from botyard.protocols.pioneer.reportbuilder import build_simstat, build_sip
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation
from botyard.testing import check_device
from botyard.testing.device_world import _room
from botyard.testing.device_world import device_world as _world
from tests.recording.proving import prove

BEACON = Path(__file__).resolve().parents[2] / "examples/plugins/beacon"


# -- sensors for these tests


@dataclass(frozen=True, slots=True, kw_only=True)
class FeelerSpec(DeviceSpec):
    type: str = field(default="feeler", init=False)
    reach: float = parameter(2.0, unit="m", low=0.0, high=10.0)
    spread: float = parameter(0.5, unit="rad")
    count: int = parameter(3, low=1, high=100)


def feeler(**changes: Any) -> Device[Any, Any]:
    """A range sensor of beams."""
    given = {
        "name": "feeler",
        "about": "how far the feelers reach",
        "spec": FeelerSpec,
        "read": lambda spec, view: view.ranges,
        "fields": (Field("range", "m"),),
        "rows": lambda ranges: [(float(r),) for r in ranges],
        "beams": lambda spec, errs: [
            Bundle(
                angle0=-spec.spread / 2,
                step=spec.spread / max(spec.count - 1, 1),
                count=spec.count,
                r_max=spec.reach,
                r_noise=0.01 if errs else 0.0,
            )
        ],
    }
    return Device(**(given | changes))


def feeler_scan(beams: ScanArrays | None) -> Any:
    """Return its ranges as a closed ROS scan."""

    def message(spec: FeelerSpec, ranges: np.ndarray) -> dict[str, Any]:
        seen = ranges < spec.reach
        return {
            "range_max": spec.reach,
            "ranges": ranges,
            "intensities": seen.astype(np.float32),
        }

    return devices.RosMessage(
        topic="feel", type_name="sensor_msgs/LaserScan", fields=message, beams=beams
    )


class Way(Table):
    name = "way"
    optional = True
    columns: ClassVar = {"metres": Column(np.float64)}
    metres: np.ndarray

    def act(self, engine: Any, dt: float) -> None:
        """Add up the distance that each body has moved."""
        self.metres += np.hypot(*engine.state.vel[self.body, :2].T) * dt


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterSpec(DeviceSpec):
    type: str = field(default="way_meter", init=False)


METER = Device(
    name="way_meter",
    about="the way that it came",
    spec=MeterSpec,
    read=lambda spec, view: float(view.memory.table.metres[view.memory.number]),
    fields=(Field("way", "m"),),
    rows=lambda way: [(way,)],
    table=Way,
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unregister the kinds of a test after it."""
    monkeypatch.setattr(devices, "_KNOWN", dict(devices._KNOWN))
    return


@pytest.fixture
def beacon(known: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install the example's package as pip does:

    its module and entry point in a folder of the path.
    """
    shutil.copy(BEACON / "src/botyard_beacon.py", tmp_path)
    import tomllib

    groups = tomllib.loads((BEACON / "pyproject.toml").read_text("utf-8"))["project"][
        "entry-points"
    ]
    info = tmp_path / "botyard_beacon-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: botyard-beacon\nVersion: 1.0\n"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in entries.items())
        for group, entries in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("botyard_beacon")
    del sys.modules["botyard_beacon"]


# -- sensors of the package


USUAL = ["battery", "sonar", "laser", "electrics", "encoders", "gps"]
"""Devices of a p3dx."""
NOT_THE_USUAL: dict[str, DeviceSpec] = {
    "blob_finder": BlobFinderSpec(colors=("red", "blue")),
    "bumpers": BumperSpec(front=5, rear=5),
    "fiducial_finder": FiducialFinderSpec(pose=Pose(0.1, 0.0, 0.5), range_min=0.5),
    "battery": BatterySpec(capacity_wh=0.02, charge=60.0),
    "gripper": GripperSpec(reach=0.2),
    "laser": LaserSpec(
        type_name="mine",
        pose=Pose(0.1, 0.0, 0.3),
        samples=20,
        range_noise=0.01,
        angle_noise=0.001,
    ),
    "sonar": SonarSpec(
        type_name="ring",
        transducers=(Transducer(pose=Pose(0.1, 0.1, 0.5)), Transducer(pose=Pose())),
        noise=0.01,
        rays=3,
    ),
    "gps": GpsSpec(x=0.1, y=-0.2, dop=1.5),
    "april_tags": AprilTagSpec(pixel_deviation=0.3, faces=4),
    "gnss": GnssSpec(deviation=0.5, drift=1.0, multipath=1.0),
    "leds": LedsSpec(count=5),
    "range_and_bearing": RangeAndBearingSpec(bandwidth=500.0),
    "uwb": UwbSpec(deviation=0.1, hidden_bias=0.3),
    "omni_camera": OmniCameraSpec(range_max=3.0, bearing_deviation=0.1),
    "imu": ImuSpec(
        pose=Pose(0.1, 0.0, 0.3), gyro_noise=0.01, gyro_bias=0.01, accel_walk=0.01
    ),
    "ultrasonic": UltrasonicSpec(max_incidence=1.0, noise=0.01),
    "prismatic_joint": PrismaticJointSpec(joint="mast", low=0.2, high=1.5, damping=2.0),
    "revolute_joint": RevoluteJointSpec(
        joint="pan", low=-1.0, high=2.0, gains=Gains(5.0, 0.5)
    ),
    "table_ir": TableIrSpec(positions=((0.2, 0.15), (0.2, -0.15)), in_io_packet=True),
}
"""Devices with which a kind can show what it does; of the others, those with the usual
parameters.
"""


@pytest.mark.parametrize("name", [entry.name for entry in devices.BUILT_IN])
def test_the_devices_of_the_package_keep_to_the_rules(name: str) -> None:
    """All devices of the registry, so that a new one is included."""
    assert check_device(find_device(name), NOT_THE_USUAL.get(name)) == []


@pytest.mark.parametrize("name", [entry.name for entry in devices.BUILT_IN])
def test_channels_of_recordings_hold_what_devices_read(name: str) -> None:
    """The schema has every column with its unit.

    A real reading has rows of plain numbers and texts in all columns.
    """
    kind = find_device(name)
    spec = NOT_THE_USUAL.get(name) or kind.spec()
    sim, robot = _world(spec, _room())
    # Swarm devices receive what another robot sends.
    other = sim.add_robot(
        find_robot("p3dx").fitted(RangeAndBearingSpec()).fitted(LedsSpec()),
        "c",
        pose=(0.5, -0.5, 0.0),
    )
    other.devices["leds"].write(**ring("red"))
    other.devices["range_and_bearing"].write(**payload(b"hello"))
    sim.step(3)
    rows = robot.devices[name].record()
    columns = kind.channel.schema["items"]["properties"]
    assert rows and kind.channel.name == name
    assert (
        [*columns]
        == [f.name for f in kind.fields]
        == kind.channel.schema["items"]["required"]
    )
    for row in rows:
        assert [*row] == [*columns]
        assert {type(value) for value in row.values()} <= {
            float,
            int,
            bool,
            str,
            type(None),
        }, row

    for column in kind.fields:
        assert columns[column.name].get("description") == (
            f"in {column.unit}" if column.unit else None
        )


def test_bumpers_count_as_many_sectors_as_the_engine() -> None:
    from botyard.devices import bumpers

    assert bumpers.SECTORS == SECTORS


def test_draws_are_those_of_the_kernels() -> None:
    key = stream_key(
        np.uint64(5), np.uint64(2**63 + 7), np.uint64(stream_of("a")), np.uint64(9)
    )
    expected = [symmetric(key, np.uint64(k)) for k in range(4)]
    assert draws(5, 2**63 + 7, stream_of("a"), 9, 4).tolist() == expected
    assert draws(5, 2**63 + 7, stream_of("a"), 9, 4, part=1).tolist() != expected
    assert stream_of("a") >= 2**63, "apart from those of lasers, sonar and odometry"


def test_gps_and_compass_tell_pioneer_clients_what_they_read() -> None:
    """SIMSTAT and the compass byte follow from the declarations of the kinds.

    A robot without a compass sends none.
    """
    scene = Scene(georeference=GeoReference(48.1, 11.5, 520.0))
    model = find_robot("p3dx").fitted(GpsSpec(x=0.5, dop=2.0))
    robot = Simulation(scene).add_robot(
        model.fitted(CompassSpec()), "r", pose=(0, 0, math.radians(30))
    )
    port = robot.port("t")
    stat = build_simstat(port, port.state())
    fix = robot.gps
    assert (stat.lat_e7, stat.lon_e7) == (
        round(fix.latitude * 1e7),
        round(fix.longitude * 1e7),
    )
    assert (stat.alt_cm, stat.gps_quality, stat.flags & 2) == (52000, 200, 2)
    assert build_sip(port, port.state(), sonar_on=False).compass == 30
    assert robot.devices["compass"].read() == pytest.approx(math.radians(60))
    plain = Simulation().add_robot("p3dx").port("t")
    assert build_sip(plain, plain.state(), sonar_on=False).compass == 0
    assert build_simstat(plain, plain.state()).gps_quality == -1


# -- robot files


def test_devices_without_parameters_are_switched_on_and_off_in_robot_files() -> None:
    with_compass = parse_robot('extends = "p3dx"\ncompass = true', "r")
    assert with_compass.devices[-1] == CompassSpec() == with_compass.compass
    assert to_table(with_compass)["compass"] is True
    assert (
        parse_robot('extends = "p3dx-equipped"\ncompass = false', "r").compass is None
    )
    assert find_robot("p3dx-equipped").compass == CompassSpec()
    with pytest.raises(
        ModelError, match="compass: expected keys and values, found a whole number"
    ):
        parse_robot('extends = "p3dx"\ncompass = 3', "r")


def test_every_robot_has_the_standard_devices_and_models_list_unusual_ones() -> None:
    usual = find_robot("p3dx")
    assert usual.gps == GpsSpec() and not usual.devices
    assert usual.equipment[-1] == GpsSpec() and usual.equipment[0] is usual.battery
    own = parse_robot('extends = "p3dx"\n[gps]\nposition = [0.2, 0.1]\ndop = 3', "r")
    assert own.devices == own.equipment[-1:] == (GpsSpec(x=0.2, y=0.1, dop=3.0),)
    assert own.fitted(GpsSpec()) == replace(own, devices=())
    for spec in (usual, own):
        assert robot_of(to_table(spec), spec.name).devices == spec.devices
        assert [*Simulation().add_robot(spec).devices] == USUAL


def test_robot_files_name_devices_in_tables_of_their_own_or_in_a_list() -> None:
    short = parse_robot(
        'extends = "p3dx"\n[fiducial_finder]\nrange = [0.5, 6]\nfov_deg = 90\npose = [0.1, 0, 45]',
        "r",
    )
    (finder,) = [d for d in short.devices if d.type == "fiducial_finder"]
    assert (finder.range_min, finder.range_max, finder.fov) == (
        0.5,
        6.0,
        pytest.approx(math.pi / 2),
    )
    assert finder.pose == Pose(0.1, 0.0, pytest.approx(math.pi / 4))
    long = parse_robot(
        'extends = "p3dx"\n[[devices]]\ntype = "fiducial_finder"\n[[devices]]\ntype = "fiducial_finder"\nfov_deg = 30',
        "r",
    )
    robot = Simulation().add_robot(long)
    assert [*robot.devices] == [*USUAL, "fiducial_finder", "fiducial_finder_2"]
    for spec in (short, long):
        assert robot_of(to_table(spec), "r").devices == spec.devices


def test_a_model_takes_a_device_away_or_changes_it() -> None:
    parent = find_robot("p3dx-equipped").device("bumpers")
    assert parent.front
    none = parse_robot(
        'extends = "p3dx-equipped"\nbumpers = { front = 0, rear = 0 }', "r"
    )
    assert none.device("bumpers") is None
    fewer = parse_robot('extends = "p3dx-equipped"\nbumpers = { front = 2 }', "r")
    assert (fewer.device("bumpers").front, fewer.device("bumpers").rear) == (
        2,
        parent.rear,
    ), "tables are merged"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[devices]]\ntype = "beecon"', 'no device "beecon"'),
        ("[[devices]]\nrange = 3", 'expected the key "type"'),
        ("[bumpers]\nfront = 9", "bumpers.front: expected 0 … 7, found 9"),
        (
            "[bumpers]\nfrond = 3",
            'bumpers: there is no key "frond" here; did you mean "front"?',
        ),
        ("[fiducial_finder]\nrange = [3, 1]", "range must be"),
        ("bumpers = 3", "bumpers: expected keys and values, found a whole number"),
        (
            "[buhmpers]\nfront = 3",
            'there is no key "buhmpers" here; did you mean "bumpers"?',
        ),
        ("devices = 3", "devices: expected a list, found a whole number"),
        ("[[devices]]\ntype = 3", 'expected the key "type"'),
        (
            "[fiducial_finder]\nfov_deg = nan",
            "fiducial_finder.fov_deg: expected a number, found nan",
        ),
    ],
)
def test_what_is_wrong_with_a_device_is_said(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)) as error:
        parse_robot('extends = "p3dx"\n' + text, "mine")
    assert "mine" in str(error.value)


def test_too_many_devices_are_refused() -> None:
    table = {
        "extends": "p3dx",
        "devices": [{"type": "bumpers", "front": 1}] * (MAX_DEVICES + 1),
    }
    with pytest.raises(ModelError, match=f"at most {MAX_DEVICES} devices"):
        robot_of(table, "r")


# -- declarations


def test_a_sensor_of_beams(known: None) -> None:
    register(feeler())
    assert check_device(find_device("feeler"), FeelerSpec(reach=6.0)) == []
    sim = Simulation(Scene(segments=np.array([[1.0, -5, 1, 5]])), sensor_noise=False)
    robot = sim.add_robot(
        find_robot("p3dx").fitted(FeelerSpec(count=1, spread=0.0)), pose=(0, 0, 0)
    )
    reader = robot.devices["feeler"]
    assert reader.read().tolist() == [pytest.approx(1.0)]
    assert not sim.fleet.taken.any() or not reader.is_read
    reader.subscribe("me")
    sim.step()
    key = robot.name, "device feeler", 0
    assert reader.is_read and sim.fleet.span(*key) is not None
    measured = sim.fleet.measured
    assert dict(measured) == {key: sim.fleet.span(*key)}
    sim.step()
    assert sim.fleet.measured is measured, "the same ones"
    other = sim.add_robot("p3dx", pose=(0, 3, 0))
    other.laser.subscribe("me")
    sim.step()
    assert sim.fleet.measured == {
        key: sim.fleet.span(*key),
        other.laser._key: sim.fleet.span(*other.laser._key),
    }
    reader.subscribe("me", on=False)
    sim.step()
    assert sim.fleet.span(*key) is None
    assert [*sim.fleet.measured] == [other.laser._key]


def test_scans_of_any_sensor_of_beams_are_made_of_the_arrays_of_a_step(
    known: None,
) -> None:
    """As for lasers:

    with few rays that meet nothing, and with the second sensor of the kind.
    """
    register(feeler(ros=feeler_scan(ScanArrays(is_open=False))))
    assert check_device(find_device("feeler"), FeelerSpec(reach=6.0)) == []
    assert check_device(find_device("feeler"), FeelerSpec(reach=0.3)) == []
    sim = Simulation(Scene(segments=np.array([[1.0, -5, 1, 5]])), sensor_noise=False)
    two = (FeelerSpec(count=1, spread=0.0), FeelerSpec(count=2, spread=0.0))
    robot = sim.add_robot(
        replace(find_robot("p3dx"), devices=two), "ann", pose=(0, 0, 0)
    )
    types = Types()
    topics = RobotTopics(
        robot.port("ros"),
        names_of("ann", "default", True),
        Messages(types),
        types,
        StepData(),
    )
    for count, name in ((1, "/ann/feel"), (2, "/ann/feel_2")):
        (topic,) = [t for t in topics.topics() if t.name == name]
        topic.wanted(True)
        sim.step()
        topics.data.forget()
        assert topic.quick is not None
        scan = types.decode_ros1(topic.quick("ros1", Stamp(1, 2)), topic.type_name)
        assert scan.ranges.tolist() == [pytest.approx(1.0)] * count


@pytest.mark.parametrize(
    ("pattern", "place", "name"),
    [
        ("scan", Place(), "scan"),
        ("scan", Place(1, 2, "_2"), "scan_2"),
        ("scan{others}", Place(0, 2), "scan"),
        ("scan{others}", Place(1, 2, "_2"), "scan_1"),
        ("scan{several}", Place(), "scan"),
        ("scan{several}", Place(0, 2), "scan_0"),
        ("{type}_{number}", Place(1, 2, "_2", "lms-2xx"), "lms2xx_2"),
    ],
)
def test_names_of_several_of_a_kind(pattern: str, place: Place, name: str) -> None:
    assert place.named(pattern) == name


@pytest.mark.parametrize("pattern", ["{name}", "{0}", "{", "{type.real}"])
def test_patterns_of_names_are_checked_where_they_are_declared(pattern: str) -> None:
    with pytest.raises(
        ModelError, match=re.escape("expected a name with no fields but {number}")
    ):
        devices.RosMessage(
            topic=pattern, type_name="std_msgs/Bool", fields=lambda s, r: {}
        )


def test_a_sensor_that_remembers(known: None) -> None:
    register(METER)
    assert check_device(METER) == []
    sim = Simulation()
    plain = sim.add_robot("p3dx", "plain")
    assert "way" not in sim.core.engine.tables
    robot = sim.add_robot(find_robot("p3dx").fitted(MeterSpec()), "r", pose=(3, 0, 0))
    robot.command(v=0.5)
    sim.step(40)
    way = robot.devices["way_meter"].read()
    assert way == pytest.approx(robot.truth.x - 3.0, abs=0.02)
    sim.settle()
    assert robot.devices["way_meter"].read() == way, "time stands still"
    state, digest = sim.save_state(), sim.digest()
    sim.remove_robot("r")
    assert "way" not in sim.core.engine.tables, "it goes with the last of its kind"
    assert [*plain.devices] == USUAL
    sim.restore(state)
    assert (sim.digest(), sim.robots["r"].devices["way_meter"].read()) == (digest, way)


def test_a_state_with_a_device_that_is_not_here_is_refused(
    known: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(METER)
    sim = Simulation()
    sim.add_robot(find_robot("p3dx").fitted(MeterSpec()), "r")
    state = sim.save_state()
    monkeypatch.delitem(devices._KNOWN, "way_meter")
    with pytest.raises(
        StateError, match='expected tables of installed devices, found "way"'
    ):
        Simulation().restore(state)


def test_two_of_a_kind_err_differently_and_the_order_of_robots_does_not_matter(
    known: None,
) -> None:
    register(feeler())

    def readings(*names: str) -> dict[str, list[float]]:
        sim = Simulation(Scene(segments=np.array([[1.0, -50, 1, 50]])), seed=4)
        model = replace(find_robot("p3dx"), devices=(FeelerSpec(), FeelerSpec()))
        for name in names:
            sim.add_robot(model, name, pose=(0, 3.0 * int(name), 0))
        sim.step(3)
        return {
            f"{r} {n}": d.read().tolist()
            for r in sim.robots
            for n, d in sim.robots[r].devices.items()
            if n not in USUAL
        }

    one, other = readings("1", "2"), readings("2", "1")
    assert one == other
    assert len({tuple(v) for v in one.values()}) == 4


@pytest.mark.pokes
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": (Field("range", "mm"),)}, "expected an SI unit, found mm"),
        (
            {"fields": (Field("range", "m"), Field("bearing", "rad"))},
            "expected 2 values, found 1",
        ),
        (
            {"fields": (Field("range", "m", str),)},
            "column range: expected str, found float",
        ),
        (
            {"read": lambda spec, view: np.random.default_rng().random(3)},
            "two readings of one state differ",
        ),
        pytest.param(
            {
                "read": lambda spec, view: (
                    view.engine.state.vel.__setitem__(view.row, 0.1) or [1.0]
                )
            },
            "changes the world",
            marks=pytest.mark.pokes,
        ),
        ({"read": lambda spec, view: 1 / 0}, "ZeroDivisionError"),
        ({"marks": lambda spec, reading: [(1.0, 2.0)]}, "expected Mark"),
        ({"rows": lambda ranges: [(math.nan,)]}, "expected a number"),
        ({"name": "lasers"}, "expected an unused name"),
        ({"name": "velocity"}, "expected an unused name"),
        (
            {
                "pioneer": devices.PioneerFields(
                    report=lambda spec, r: {"stall_bumpers": 1}
                )
            },
            "expected bits of",
        ),
        (
            {"pioneer": devices.PioneerFields(config=lambda spec: {"horn": 1})},
            "to its maximum, found horn 1",
        ),
        (
            {
                "ros": devices.RosMessage(
                    topic="r",
                    type_name="std_msgs/Float64",
                    fields=lambda s, r: {"date": 1.0},
                )
            },
            'has no field "date"',
        ),
        (
            {"ros": feeler_scan(ScanArrays(is_open=True))},
            "beams and fields build different messages",
        ),
        (
            {"layer": "laser", "beams": lambda spec, errs: [Bundle(), Bundle()]},
            'layer: expected "sonar"',
        ),
        (
            {"ros": dataclasses.replace(feeler_scan(None), profiles=("rosarium",))},
            'no name profile "rosarium"',
        ),
        (
            {
                "ros": devices.RosMessage(
                    topic="r r",
                    type_name="std_msgs/Float64",
                    fields=lambda s, r: {"data": 1.0},
                )
            },
            "expected a topic",
        ),
        (
            {
                "ros": devices.RosMessage(
                    topic="r",
                    type_name="a/B",
                    fields=lambda s, r: {},
                    definitions={"std_msgs/Bool": "int8 data"},
                )
            },
            "another ROS message type already has the name",
        ),
    ],
)
def test_the_check_finds_what_is_wrong(
    known: None, change: dict[str, Any], message: str
) -> None:
    device = feeler(**change)
    register(device)
    found = check_device(device)
    assert any(message in problem for problem in found), found


def test_the_check_finds_state_that_stands_elsewhere(known: None) -> None:
    count: dict[str, int] = {}

    def read(spec: Any, view: Any) -> list[float]:
        count[view.body] = count.get(view.body, 0) + 1
        return [float(count[view.body])]

    device = feeler(read=read)
    register(device)
    assert any("differ" in p for p in check_device(device))


def test_a_spec_must_say_its_kind(known: None) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong(DeviceSpec):
        reach: float = 1.0

    device = feeler(spec=Wrong)
    register(device)
    assert any("expected the field type" in p for p in check_device(device))


def test_names_of_the_package_cannot_be_taken(known: None) -> None:
    with pytest.raises(ModelError, match="a name that no device of botyard has"):
        register(dataclasses.replace(BUMPERS))
    with pytest.raises(ModelError, match="expected a Device"):
        register("beacon")  # type: ignore[arg-type]


def test_a_package_that_fails_is_named(
    known: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[botyard.devices]\nbroken = no_such_module:X\nwrong = math:pi\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match="no_such_module:X cannot be loaded"):
        find_device("broken")
    with pytest.raises(ModelError, match="expected a Device of that name in math:pi"):
        find_device("wrong")
    assert "broken" in devices.device_names()


# -- a separate package


def test_a_recorded_run_with_a_beacon_finder_comes_out_again(
    beacon: Any, tmp_path: Path
) -> None:
    """A re-simulation is equal although readings draw random numbers."""
    sim, path = Simulation.load("office", seed=3), tmp_path / "run.mcap"
    robot = sim.add_robot(
        find_robot("p3dx").fitted(beacon.BeaconFinderSpec(range_noise=0.2)), "ann"
    )
    with sim.record(path, topics=["*"]):
        robot.command(v=0.2)
        for _ in range(25):
            robot.devices["beacon_finder"].read()
            sim.step()

    prove(path, 25)


def test_the_beacon_finder_is_found_by_its_entry_point(beacon: Any) -> None:
    assert find_device("beacon_finder") is beacon.BEACON_FINDER
    spec = beacon.BeaconFinderSpec(range_noise=0.1)
    assert check_device(beacon.BEACON_FINDER, spec) == []


def test_the_beacon_finder_is_read_in_python_from_a_robot_file_over_ros_and_on_the_page(
    beacon: Any,
) -> None:

    model = parse_robot(
        'extends = "p3dx"\n[beacon_finder]\nrange_max = 15.0\npose = [0.1, 0, 0]\nexponent = 3',
        "mine",
    )
    box = BoxObject(
        name="b",
        pose=Pose(10.1, 0.0, 0.0),
        length=0.2,
        width=0.2,
        returns=Returns(fiducial=7),
    )
    sim = Simulation(Scene(boxes=(box,)))
    robot = sim.add_robot(model, "ann", pose=(0, 0, 0))
    (found,) = robot.devices["beacon_finder"].read()
    assert (found.id, found.range, found.power, found.in_sight) == (
        7,
        pytest.approx(10),
        pytest.approx(-70),
        True,
    )

    types = Types()
    topics = RobotTopics(
        robot.port("ros"),
        names_of("ann", "default", True),
        Messages(types),
        types,
        StepData(),
    )
    (topic,) = [
        t for t in topics.topics() if t.type_name == "botyard_beacon/BeaconArray"
    ]
    assert topic.name.endswith("/beacons") and not topics.problems
    data = types.encode_cdr(topic.make(Stamp(1, 0)), topic.type_name)
    (heard,) = types.decode_cdr(data, topic.type_name).beacons
    assert (heard.id, heard.power, heard.in_sight) == (7, pytest.approx(-70), True)
    assert types.definition(topic.type_name)[0].count("float64 power") == 1
    frames = {t.child: t.pose for t in topics.static_transforms()}
    assert frames[next(f for f in frames if f.endswith("beacon_finder"))] == Pose(
        0.1, 0.0, 0.0
    )


def test_a_ros_type_of_another_package_is_not_overwritten(beacon: Any) -> None:

    types = Types()
    types.learn({"botyard_beacon/Beacon": "int8 something_else"})
    robot = Simulation().add_robot(
        find_robot("p3dx").fitted(beacon.BeaconFinderSpec()), "ann"
    )
    topics = RobotTopics(
        robot.port("ros"),
        names_of("ann", "default", True),
        Messages(types),
        types,
        StepData(),
    )
    assert any(
        "another ROS message type already has the name botyard_beacon/Beacon" in p
        for p in topics.problems.values()
    )
    assert not any("beacon" in t.type_name for t in topics.topics())
    assert topics.topics(), "the others are there"


def test_the_page_shows_what_devices_read(beacon: Any) -> None:
    from botyard.interfaces.page.devices import MAX_ROWS, device_readings

    boxes = [
        BoxObject(
            name=f"b{i}",
            pose=Pose(1.0 + 0.5 * i, 0.0, 0.0),
            length=0.1,
            width=0.1,
            returns=Returns(fiducial=i + 1),
        )
        for i in range(MAX_ROWS + 3)
    ]
    sim = Simulation(Scene(boxes=tuple(boxes)))
    model = find_robot("p3dx").fitted(beacon.BeaconFinderSpec(pose=Pose(0.0, 0.0, 0.5)))
    robot = sim.add_robot(model, pose=(0, 0, 0))
    (one,) = device_readings(robot)
    assert (one.device, one.columns, len(one.rows), one.more) == (
        "beacon_finder",
        ["id", "range", "bearing", "power", "in_sight"],
        MAX_ROWS,
        3,
    )
    assert one.rows[0] == ["1", "1.000 m", "-28.6°", "-40.000 dBm", "yes"]
    assert one.marks[0] == (pytest.approx(1.0), pytest.approx(0.0), "1: -40 dBm"), (
        "in the robot's frame"
    )


@pytest.mark.parametrize("layer", ["laser", "sonar"])
def test_the_page_draws_what_beams_of_any_kind_meet(known: None, layer: Any) -> None:
    """The schema has a group for each set of beams, frames have the readings, readouts
    the shortest one.
    """
    from botyard.app.compose import compose
    from botyard.interfaces.page.viewsource import (
        ViewSource,
        drawn_devices,
        nearest_reading,
    )
    from botyard.protocols.webgui.messages import View

    register(feeler(layer=layer))
    assert check_device(find_device("feeler"), FeelerSpec(reach=6.0)) == []
    sim = Simulation(Scene(segments=np.array([[1.0, -5, 1, 5]])), sensor_noise=False)
    two = (FeelerSpec(count=3), FeelerSpec(count=3), FeelerSpec(count=2, reach=5.0))
    robot = sim.add_robot(
        replace(find_robot("p3dx"), devices=two, lasers=(), sonar=None),
        "ann",
        pose=(0, 0, 0),
    )
    source = ViewSource(compose(sim, limits=None).hub)
    groups = json.loads(source.schema()[1])["groups"]
    assert [
        (g["kind"], g["count"], len(g["poses"]), g["range_max"]) for g in groups
    ] == [
        (layer, 3, 1, 2.0),
        (layer, 2, 1, 5.0),
    ]
    for reader in drawn_devices(robot):
        reader.subscribe("me")
    before = len(source.frame(View()))
    sim.step()
    source.changed()
    assert len(source.frame(View())) > before + 2 * (3 + 3 + 2)
    assert nearest_reading(robot) == pytest.approx(
        min(r.ranges.min() for r in drawn_devices(robot))
    )


def test_a_layer_needs_beams() -> None:
    for change in ({"beams": None, "layer": "laser"}, {"layer": "lidar"}):
        with pytest.raises(ModelError, match="expected beams and a layer of"):
            feeler(**change)


def test_a_device_that_fails_is_shown_as_such(known: None) -> None:
    from botyard.interfaces.page.devices import device_readings

    register(feeler(read=lambda spec, view: 1 / 0))
    robot = Simulation().add_robot(find_robot("p3dx").fitted(FeelerSpec()))
    (one,) = device_readings(robot)
    assert (one.rows, one.about) == (
        [],
        "cannot be read: ZeroDivisionError('division by zero')",
    )


def test_the_examples_own_tests_pass(beacon: Any) -> None:
    spec = importlib.util.spec_from_file_location(
        "test_beacon_of_the_example", BEACON / "tests/test_beacon.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [test for name, test in vars(module).items() if name.startswith("test_")]
    assert len(tests) >= 5
    for test in tests:
        test()


# -- kinds that act


@dataclass(frozen=True, slots=True, kw_only=True)
class WinchSpec(DeviceSpec):
    """A winch."""

    type: str = field(default="winch", init=False)
    rate: float = parameter(1.0, unit="m/s", low=0.0)


class Winches(Table):
    """Extensions of all winches."""

    name = "winch"
    optional = True
    columns: ClassVar = {
        "out": Column(np.float64),
        "goal": Column(np.float64, low=0.0, high=9.0),
        "rate": Column(np.float64),
    }

    def act(self, engine: Any, dt: float) -> None:
        rows: Any = self
        rows.out += np.clip(rows.goal - rows.out, -rows.rate * dt, rows.rate * dt)


def winch(start: Any = lambda spec: {"rate": spec.rate}) -> Device[Any, Any]:
    return Device(
        name="winch",
        about="pulls",
        spec=WinchSpec,
        table=Winches,
        start=start,
        read=lambda _, view: float(view.memory.table.out[view.memory.number]),
        fields=(Field("out", "m"),),
        rows=lambda out: [(out,)],
    )


def test_parameters_of_what_acts_reach_its_columns_and_commands_are_in_the_journal() -> (
    None
):
    register(winch())
    assert check_device(winch()) == ['another device is registered as "winch"']
    sim = Simulation(seed=1)
    entries: list[Any] = []
    first = sim.clone()
    sim.core.journal.listen(entries.append)
    robot = sim.add_robot(
        parse_robot(
            'extends = "p3dx"\n'
            + "".join(f'[[devices]]\ntype = "winch"\nrate = {r}\n' for r in (0.5, 2)),
            "w",
        )
    )
    for name in ("winch", "winch_2"):
        robot.devices[name].write(goal=3.0)
    sim.step(10)
    assert [robot.devices[n].read() for n in ("winch", "winch_2")] == pytest.approx(
        [0.5, 2.0]
    )
    *_, last = resimulate(first, entries, sim.tick)
    assert last == sim.digest()
    copy = sim.clone()
    for one in (sim, copy):
        one.step(3)
    assert copy.digest() == sim.digest()


def test_what_cannot_be_written_to_a_device_is_said() -> None:
    register(winch())
    sim = Simulation(seed=1)
    robot = sim.add_robot(find_robot("p3dx").fitted(WinchSpec()))
    for values, message in (
        ({"gaol": 1.0}, 'no column "gaol"; did you mean "goal"'),
        ({"goal": math.nan}, "goal: expected 0 … 9"),
        ({"goal": 10.0}, "goal: expected 0 … 9"),
        ({"rate": 1.0, "goal": "x"}, "goal: expected a number, found"),
    ):
        with pytest.raises(ArgumentError, match=message):
            robot.devices["winch"].write(**values)

    with pytest.raises(ArgumentError, match="this kind of device has no columns"):
        robot.devices["gps"].write(x=1.0)
    sim.remove_robot(robot.name)
    reader = robot._devices["winch"]
    with pytest.raises(UnknownNameError, match="was removed"):
        reader.write(goal=1.0)


@pytest.mark.parametrize(
    "start",
    [
        lambda _: {"rat": 1.0},
        lambda _: {"rate": math.nan},
        lambda _: 1 / 0,
        lambda _: 5,
    ],
)
def test_a_start_that_cannot_be_keeps_the_robot_out(start: Any) -> None:
    register(winch(start))
    sim = Simulation(seed=1)
    with pytest.raises(ModelError, match=r'device "winch" of robot .*: table: '):
        sim.add_robot(find_robot("p3dx").fitted(WinchSpec()))
    assert not sim.robots
