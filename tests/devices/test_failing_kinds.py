"""Devices of other packages that fail:

the message names the device, and the world goes on.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from botyard.devices.fiducials import FiducialFinderSpec
from botyard.engine.tables import Column, Table
from botyard.errors import DeviceError, ModelError, UnknownNameError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.interfaces.page.devices import device_readings
from botyard.model import devices
from botyard.model.beams import Bundle
from botyard.model.devices import (
    Device,
    DeviceSpec,
    Errors,
    Field,
    Mark,
    PioneerFields,
    RosMessage,
    find_device,
    names_of,
    parameter,
    register,
)
from botyard.model.library import parse_robot
from botyard.protocols.pioneer.reportbuilder import (
    build_config,
    build_simstat,
    build_sip,
)
from botyard.protocols.ros_messages.messages import Messages
from botyard.protocols.ros_messages.naming import names_of as ros_names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot, Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSpec(DeviceSpec):
    type: str = field(default="bad", init=False)
    pose: Pose = parameter(Pose())
    sensor: str = parameter("laser")


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSecondSpec(DeviceSpec):
    type: str = field(default="bad_2", init=False)


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("raised by a plug-in's device")


def bad(**changes: Any) -> Device[Any, Any]:
    """A device that reads a number, with changes."""
    given: dict[str, Any] = {
        "name": "bad",
        "about": "a number",
        "spec": BadSpec,
        "read": lambda spec, view: 1.0,
        "fields": (Field("number"),),
        "rows": lambda number: [(number,)],
    }
    return Device(**(given | changes))


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unregister the kinds of a test after it."""
    monkeypatch.setattr(devices, "_KNOWN", dict(devices._KNOWN))
    return


def robot(*specs: DeviceSpec, **changes: Any) -> Robot:
    """A robot with the bad device, and another robot next to it."""
    register(bad(**changes))
    sim = Simulation(seed=3)
    model = replace(find_robot("p3dx"), devices=specs or (BadSpec(),))
    one = sim.add_robot(model, "r", pose=(0, 0, 0))
    sim.add_robot("p3dx", "other", pose=(3, 0, 0)).command(v=0.5)
    return one


# -- reading


def test_what_raises_when_it_is_read_is_named() -> None:
    one = robot(read=fails)
    with pytest.raises(
        DeviceError, match='device "bad" of robot r: read: ZeroDivisionError'
    ) as raised:
        one.devices["bad"].read()

    assert isinstance(raised.value.__cause__, ZeroDivisionError), (
        "its author sees where"
    )
    one.simulation.step()


@pytest.mark.parametrize(
    "rows", [lambda n: [(1.0, 2.0)], lambda n: [()], lambda n: 3, fails]
)
def test_rows_that_do_not_fit_the_columns_are_named(rows: Any) -> None:
    one = robot(rows=rows)
    reader = one.devices["bad"]
    with pytest.raises(DeviceError, match='device "bad" of robot r: rows: '):
        reader.rows(reader.read())
    with pytest.raises(DeviceError, match='device "bad" of robot r: rows: '):
        reader.record()
    (shown,) = device_readings(one)
    assert shown.about.startswith("cannot be read: ") and not shown.rows


def test_rows_and_marks_without_end_are_cut_off() -> None:
    one = robot(
        rows=lambda _: ((float(n),) for n in count()),
        marks=lambda *_: (Mark(n, math.nan if n % 2 else 0.0) for n in count()),
    )
    (shown,) = device_readings(one)
    assert (len(shown.rows), len(shown.marks)) == (20, 25)
    assert shown.more > 1000


def test_pages_show_the_other_devices() -> None:
    register(
        Device(
            **{
                **{f: getattr(bad(), f) for f in ("about", "read", "fields", "rows")},
                "name": "bad_2",
                "spec": BadSecondSpec,
            }
        )
    )
    one = robot(BadSpec(), BadSecondSpec(), read=fails)
    first, second = device_readings(one)
    assert "ZeroDivisionError" in first.about
    assert second.rows == [["1.000"]]


# -- reports to Pioneer clients


def test_reports_leave_out_what_fails_and_say_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown = PioneerFields(report=fails, config=fails, simstat=fails)
    port = robot(pioneer=shown).port("t")
    for _ in range(3):
        assert build_sip(port, port.state(), sonar_on=False).flags == 1
        assert build_simstat(port, port.state()).flags == 4

    assert build_config(port.spec, port.state(), "r", "1").class_name == "Pioneer"
    said = [record.getMessage() for record in caplog.records]
    assert (
        sum("pioneer.report" in text for text in said)
        == sum("pioneer.simstat" in text for text in said)
        == 1
    )
    assert all('device "bad"' in text for text in said) and len(said) == 3


def test_bits_that_are_no_whole_numbers_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown = PioneerFields(
        report=lambda *_: {"flags": 1.5},
        config=lambda _: {"front_bumpers": "many"},
        simstat=lambda *_: {"alt_cm": "high"},
    )
    port = robot(pioneer=shown).port("t")
    assert build_sip(port, port.state(), sonar_on=False).flags == 1
    assert build_config(port.spec, port.state(), "r", "1").front_bumpers == 0
    assert build_simstat(port, port.state()).alt_cm == 0
    assert len(caplog.records) == 3


# -- failures in a step


class Failing(Table):
    name = "failing"
    optional = True
    columns: ClassVar = {"ticks": Column(np.float64)}
    ticks: np.ndarray

    def act(self, engine: Any, dt: float) -> None:
        """Fail in the third step."""
        self.ticks += 1
        if self.ticks[0] == 3:
            raise ZeroDivisionError("raised by a plug-in's device")


def test_what_fails_in_a_step_does_nothing_any_more_and_the_step_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = robot(
        table=Failing,
        read=lambda spec, view: float(view.memory.table.ticks[view.memory.number]),
    )
    sim, reader = one.simulation, one.devices["bad"]
    sim.step(2)
    assert reader.read() == 2.0
    state = sim.save_state()
    sim.step(10)
    assert sim.tick == 12 and sim.robots["other"].truth.x > 3.1
    with pytest.raises(
        DeviceError,
        match='device "bad" of robot r: it has failed in a step: ZeroDivisionError',
    ):
        reader.read()

    assert [r.levelno for r in caplog.records] == [
        logging.ERROR
    ] and '"failing"' in caplog.text
    sim.restore(state)
    assert reader.read() == 2.0, "it is tried again"
    assert sim.clone().robots["r"].devices["bad"].read() == 2.0


@pytest.mark.parametrize(
    "measured",
    [
        fails,
        lambda spec, view, ranges, bearings: (ranges[:3], bearings),
        lambda spec, view, ranges, bearings: (ranges * math.nan, bearings),
        lambda spec, view, ranges, bearings: ranges,
        lambda spec, view, ranges, bearings: (["a"] * len(ranges), bearings),
    ],
)
def test_an_error_model_of_ranges_that_fails_leaves_them_as_they_are(
    measured: Any, caplog: pytest.LogCaptureFixture
) -> None:
    one = robot(errors=Errors(measured=measured))
    one.laser.subscribe("me")
    one.simulation.step(3)
    plain = Simulation(seed=3).add_robot("p3dx", "r", pose=(0, 0, 0))
    plain.simulation.add_robot("p3dx", "other", pose=(3, 0, 0)).command(v=0.5)
    plain.simulation.step(3)
    assert one.laser.ranges.tolist() == plain.laser.ranges.tolist()
    assert len(caplog.records) == 1 and 'device "bad" of robot r: errors' in caplog.text
    with pytest.raises(DeviceError, match="it has failed in a step"):
        one.devices["bad"].read()


@pytest.mark.parametrize(
    "odometry",
    [
        fails,
        lambda *_: (math.nan, 0.0, 0.0),
        lambda *_: (0.0, 0.0),
        lambda *_: (1e9, 0, 0),
    ],
)
def test_an_error_model_of_odometry_that_fails_makes_no_errors(
    odometry: Any, caplog: pytest.LogCaptureFixture
) -> None:
    one = robot(errors=Errors(odometry=odometry))
    one.command(v=0.3)
    one.simulation.step(5)
    assert one.odom.x == one.truth.x > 0.0
    assert (
        len(caplog.records) == 1 and 'device "bad" of robot r: odometry' in caplog.text
    )


# -- adding and removing robots


def beam(**changes: Any) -> Any:
    return lambda spec, errs: [Bundle(**changes)]


@pytest.mark.parametrize(
    "changes",
    [
        {"beams": fails},
        {"beams": lambda spec, errs: [3]},
        {"beams": beam(r_max=math.nan)},
        {"beams": beam(mount=Pose(math.inf, 0.0, 0.0))},
        {"beams": beam(count=-1)},
        {"beams": beam(count=1_000_000)},
        {"beams": beam(r_min=3.0, r_max=1.0)},
        {
            "table": type(
                "Battery",
                (Table,),
                {"name": "battery", "optional": True, "columns": {}},
            )
        },
        {"table": type("Required", (Table,), {"name": "required", "columns": {}})},
        {"errors": Errors(measured=fails), "spec": BadSpec},
    ],
)
def test_a_robot_whose_device_cannot_be_had_is_not_added_and_leaves_nothing(
    changes: dict[str, Any],
) -> None:
    register(bad(**changes))
    sim = Simulation()
    other = sim.add_robot("p3dx", "other", pose=(3, 0, math.pi))
    before = sim.digest()
    spec = BadSpec(sensor="no such sensor") if "errors" in changes else BadSpec()
    with pytest.raises(ModelError, match=r"bad.* robot r\b"):
        sim.add_robot(find_robot("p3dx").fitted(spec), "r", pose=(0, 0, 0))
    assert [*sim.robots] == ["other"] and "r" not in sim.core.engine.rows
    assert sim.digest() == before
    sim.step()
    sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    sim.step()
    assert other.laser.read().ranges.min() < 8.0


def test_devices_of_removed_robots_say_so() -> None:
    one = robot()
    reader, sim = one.devices["bad"], one.simulation
    sim.remove_robot("r")
    sim.add_robot(one.spec, "r", pose=(1, 0, 0))
    for use in (
        reader.read,
        lambda: reader.subscribe("me"),
        lambda: one.devices["bad"].read(),
    ):
        with pytest.raises(UnknownNameError, match='"r" was removed'):
            use()


# -- names


def test_devices_of_a_robot_have_different_names_whatever_their_kinds_are_called() -> (
    None
):
    specs = (BadSpec(), BadSpec(), BadSecondSpec(), BadSpec(), BadSecondSpec())
    assert names_of(specs) == ["bad", "bad_3", "bad_2", "bad_4", "bad_2_2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fields": (Field("x"), Field("x"))},
            'device "bad": expected columns of different names',
        ),
        ({"fields": ()}, 'device "bad": expected columns'),
        ({"fields": (Field("a\nb"),)}, 'device "bad": expected columns'),
        ({"name": "a b"}, "expected a name of letters"),
        ({"name": "\x1b[0m"}, "expected a name of letters"),
        ({"name": ""}, "expected a name of letters"),
    ],
)
def test_kinds_that_cannot_be_are_refused_where_they_are_made(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        bad(**changes)
    assert str(raised.value).isprintable()


def test_numbers_that_are_none_are_refused_in_descriptions() -> None:
    register(bad())
    with pytest.raises(ModelError, match="bad: pose: expected finite numbers"):
        BadSpec(pose=Pose(0.1, math.nan, 0.0))
    with pytest.raises(
        ModelError, match="fiducial_finder: pose: expected finite numbers"
    ):
        FiducialFinderSpec(pose=Pose(math.inf, 0.0, 0.0))

    for pose in ("[0.1, nan, 0]", "[inf, 0, 0]"):
        with pytest.raises(ModelError, match=r"bad\.pose\[\d\]: expected a number"):
            parse_robot(f'extends = "p3dx"\n[bad]\npose = {pose}', "mine")


def topics(one: Robot) -> RobotTopics:
    types = Types()
    return RobotTopics(
        one.port("ros"),
        ros_names_of("r", "default", True),
        Messages(types),
        types,
        StepData(),
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"topic": "odom"}, "another topic already has the name /r/odom"),
        ({"topic": "fix"}, "another topic already has the name /r/fix"),
        ({"topic": "a b"}, "expected a topic of letters"),
        ({"topic": "../x"}, "expected a topic of letters"),
        ({"type_name": "no_msgs/Such"}, "no_msgs/Such"),
        (
            {"definitions": {"std_msgs/Float64": "int8 data"}},
            "another ROS message type already has the name std_msgs/Float64",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_left_out_and_told_of(
    changes: dict[str, Any], problem: str
) -> None:
    message = RosMessage(
        **{
            "topic": "number",
            "type_name": "std_msgs/Float64",
            "fields": lambda *_: {"data": 1.0},
            **changes,
        }
    )
    found = topics(robot(ros=message))
    names = [t.name for t in found.topics()]
    assert (
        len(set(names)) == len(names)
        and "/r/odom" in names
        and "/r/number" not in names
    )
    assert problem in found.problems["bad"]


# -- packages


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install packages with entries and the text of a module."""

    def install(name: str, entries: str, module: str = "") -> None:
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
        )
        (info / "entry_points.txt").write_text(f"[botyard.devices]\n{entries}\n")
        (tmp_path / f"{name}.py").write_text(module)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    return install


@pytest.mark.parametrize(
    "module",
    ["import sys\nsys.exit(3)", "1 / 0", "def f(:", "raise ImportError('x')", ""],
)
def test_a_package_that_cannot_be_imported_spoils_only_robots_that_need_it(
    package: Any, module: str
) -> None:
    package("broken_plugin", "broken = broken_plugin:DEVICE", module)
    sim = Simulation()
    with pytest.raises(
        ModelError,
        match=r'model mine: device "broken" of the package broken_plugin: broken_plugin:DEVICE cannot be loaded',
    ):
        parse_robot('extends = "p3dx"\n[broken]', "mine")

    sim.add_robot("p3dx").devices["gps"].read()
    assert "broken" in devices.device_names()


def test_two_packages_with_one_name_are_both_named(package: Any) -> None:
    package("plugin_a", "twice = plugin_a:DEVICE")
    package("plugin_b", "twice = plugin_b:DEVICE")
    with pytest.raises(
        ModelError,
        match="expected one package that provides it, found plugin_a:DEVICE of the "
        "package plugin_a, plugin_b:DEVICE of",
    ):
        find_device("twice")


def test_packages_cannot_take_the_place_of_our_devices(package: Any) -> None:
    package("thief", "gps = thief:DEVICE\nbumpers = thief:DEVICE", "1 / 0")
    devices._KNOWN.clear()
    assert (
        find_device("bumpers").spec is not BadSpec and find_device("gps").name == "gps"
    )
    assert find_robot("p3dx").gps.dop == 1.0
