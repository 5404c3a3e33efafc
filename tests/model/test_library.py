from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

import botyard
from botyard.errors import ArgumentError, BudgetError, ModelError, ModelFileError
from botyard.formats.budget import Budget
from botyard.model.kinematics import Drive
from botyard.model.library import load_laser, load_robot, parse_robot, robot_names

OURS = {
    "car",
    "create3",
    "e-puck",
    "foot-bot",
    "forklift",
    "husky",
    "jackal",
    "khepera4",
    "mir250",
    "p3dx-equipped",
    "quadruped",
    "ridgeback",
    "small-box",
    "thymio",
    "tugger",
    "turtlebot3-burger",
    "turtlebot3-waffle",
    "turtlebot4",
}
"""Models that the original does not have."""
BOXES = {"box", "box-nolaser", "box-nolaser-nosonar", "box-reflector"}
ROBOTS = sorted(set(robot_names()) - OURS - BOXES)


@pytest.mark.shared
def test_every_model_of_the_original_is_there(facts: dict[str, dict]) -> None:
    assert {n for n, f in facts.items() if not f["abstract"]} == set(ROBOTS)
    assert set(robot_names()) >= BOXES


def test_aliases() -> None:
    assert load_robot("p3dx_noerr") == load_robot("p3dx-no-error")


def test_every_model_describes_itself() -> None:
    for name in robot_names():
        assert load_robot(name).description, name


def test_boxes() -> None:
    def returns(name: str) -> tuple[bool, int, bool]:
        r = load_robot(name).returns
        return r.obstacle, r.laser, r.sonar

    assert returns("box") == (True, 1, True)
    assert returns("box-nolaser") == (True, 0, True)
    assert returns("box-nolaser-nosonar") == (True, 0, False)
    assert returns("box-reflector") == (True, 2, True)
    assert all(load_robot(n).drive is Drive.NONE for n in BOXES)


def test_abstract_models_are_not_offered() -> None:
    assert "pioneer" not in robot_names()
    with pytest.raises(ModelError):
        load_robot("pioneer")


def test_unknown_model_names_the_nearest() -> None:
    with pytest.raises(ModelError, match='did you mean "p3dx"'):
        load_robot("p3dxx")


def test_names_in_any_case() -> None:
    assert load_robot("P3DX") is load_robot("p3dx")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            'extends = "p3dx"\nlasers = [{ type = "lms200", pos = [1, 2, 3] }]',
            'lasers[0]: there is no key "pos" here; did you mean "pose"?',
        ),
        ('extends = "p3dx"\n[limits]\nmax_speed = "fast"', "max_speed"),
        ('extends = "p3dy"', 'did you mean "p3d'),
        ('extends = "p3dx"\nlasers = [{ type = "lms999" }]', 'no laser model "lms999"'),
        (
            'extends = "p3dx"\ndrive = "hover"',
            '"diff", "omni", "ackermann", "tricycle", "skid", "mecanum" or "none"',
        ),
        ('description = "no body"', "outline"),
        ("outline = [[0, 0], [1, 1]]", "at least 3 corners"),
        (
            'extends = "ridgeback"\n[wheels]\nerrors = [0.1]',
            "wheels: errors: expected 4 numbers, found 1",
        ),
        ("not toml", "TOML"),
    ],
)
@pytest.mark.parametrize("name", ["mine", "n"])
def test_wrong_files_say_what_is_wrong(name: str, text: str, complaint: str) -> None:
    with pytest.raises(ModelError) as error:
        parse_robot(text, name)
    assert complaint in str(error.value)
    assert re.match(f"(robot |model )?{name}: ", str(error.value))


def test_a_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "p3dx"\ncolor = "blue"\n[limits]\nmax_speed = [0.5, 0, 90]\n'
    )
    spec = botyard.load_robot(path)
    assert (spec.name, spec.color, spec.limits.max_speed.x) == ("mine", "blue", 0.5)
    assert spec.limits.accel.x == load_robot("p3dx").limits.accel.x, "tables are merged"
    assert spec.sonar == load_robot("p3dx").sonar
    with pytest.raises(ModelFileError, match=r"none\.toml: cannot be read"):
        botyard.load_robot(tmp_path / "none.toml")
    # A plain open of a pipe would wait forever.
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ModelFileError, match="expected a file"):
        botyard.load_robot(tmp_path / "pipe.toml")
    for limit in ("bytes", "entities"):
        with pytest.raises(BudgetError, match=f"--max-read {limit}"):
            botyard.load_robot(path, replace(Budget(), **{limit: 3}))

    with pytest.raises(ArgumentError, match="model: "):
        botyard.load_robot(5)  # type: ignore[arg-type]


def test_laser_geometry() -> None:
    lms = load_laser("lms200")
    assert lms.samples == 181
    assert math.degrees(lms.increment) == pytest.approx(1.0)
    assert lms.reflector.strength == 33


@pytest.fixture(scope="module")
def facts(shared: Path) -> dict[str, dict]:
    return {
        r["name"]: r
        for r in json.loads((shared / "data/robot_models.json").read_text())["robots"]
    }


@pytest.mark.shared
@pytest.mark.parametrize("name", ROBOTS)
def test_models_agree_with_the_facts(name: str, facts: dict[str, dict]) -> None:
    spec, fact = load_robot(name), facts[name]
    p = fact["p_file"]
    assert spec.color == fact["color"]
    assert (spec.pioneer.class_name, spec.pioneer.subclass) == (
        fact["pioneer_class"],
        fact["pioneer_subtype"],
    )
    assert spec.drive == (Drive.OMNI if fact["drive"] == "omni" else Drive.DIFF)
    speeds = fact["speeds"]
    for ours, theirs in (
        (spec.limits.max_speed, "max_speed"),
        (spec.limits.accel, "accel"),
        (spec.limits.decel, "decel"),
    ):
        assert ours.x == pytest.approx(speeds[theirs]["x"])
        assert ours.a == pytest.approx(speeds[theirs]["th_rad"], rel=0.01)

    assert spec.limits.max_speed.y == pytest.approx(speeds["max_speed"]["y"])
    assert spec.limits.heading_speed == pytest.approx(
        speeds["default_speed"]["th_rad"], rel=0.01
    )
    ours, model = spec.pioneer, fact["conversion"]
    # A client scales by its own parameter file, so compare the product of both factors.
    if p:
        conversion = p["conversion"]
        assert (
            ours.dist_conv,
            ours.vel_conv,
            ours.range_conv,
            ours.diff_conv,
            ours.angle_conv,
            ours.vel2_div,
        ) == (
            conversion["DistConvFactor"],
            conversion["VelConvFactor"],
            conversion["RangeConvFactor"],
            conversion["DiffConvFactor"],
            conversion["AngleConvFactor"],
            conversion["Vel2Divisor"],
        )
        has = p["accessories"]
        assert getattr(spec.device("bumpers"), "front", 0) == (
            has["NumFrontBumpers"] if has["FrontBumpers"] else 0
        )
        assert getattr(spec.device("bumpers"), "rear", 0) == (
            has["NumRearBumpers"] if has["RearBumpers"] else 0
        )
        assert (spec.device("table_ir") is not None) == has["TableSensingIR"]
    else:
        # These are the model's own factors. A DiffConvFactor of 1 belongs to no robot: such models
        # have the factors that clients assume without a file.
        assert (ours.dist_conv, ours.vel_conv, ours.range_conv) == (
            model["distconv"],
            model["velconv"],
            model["rangeconv"],
        )
        assert ours.diff_conv == (
            model["diffconv"] if model["diffconv"] != 1 else 0.0056
        )

    assert ours.watchdog == fact["watchdog_ms"] / 1000
    assert spec.battery.by_charge == (fact["battery_type"] == 2)
    assert (spec.gps.x, spec.gps.y, spec.gps.dop) == (
        fact["gps"]["x_m"],
        fact["gps"]["y_m"],
        fact["gps"]["dop"],
    )
    error = fact["odom_error"]
    assert spec.odometry_error.as_tuple() == pytest.approx(
        (error["x"], error["y"], error["th_effective_rad_per_rad"]), rel=0.01
    )
    # The outline is the resolved polygon, moved by the body's offset.
    offset = fact["origin_m_deg"]
    outline = sorted((x + offset[0], y + offset[1]) for x, y in fact["polygons_m"][0])
    corners = [v for corner in sorted(spec.outline) for v in corner]
    assert corners == pytest.approx([v for corner in outline for v in corner], abs=6e-4)


@pytest.mark.shared
@pytest.mark.parametrize("name", ROBOTS)
def test_sensors_agree_with_the_facts(name: str, facts: dict[str, dict]) -> None:
    spec, fact = load_robot(name), facts[name]
    assert (spec.sonar is None) == (fact["sonar"] is None)
    if spec.sonar is not None:
        for ours, theirs in zip(
            spec.sonar.transducers, fact["sonar"]["transducers"], strict=True
        ):
            assert (ours.pose.x, ours.pose.y) == (theirs["x_m"], theirs["y_m"])
            assert math.remainder(
                ours.pose.th - math.radians(theirs["th_deg"]), 2 * math.pi
            ) == pytest.approx(0, abs=1e-9)
            assert ours.connected == (theirs["fov_deg"] > 0)
            assert spec.sonar.range_max == theirs["range_max_m"]

        assert spec.sonar.noise == fact["sonar"]["noise_m"]

    assert len(spec.lasers) == len(fact["lasers"])
    for laser, theirs in zip(spec.lasers, fact["lasers"], strict=True):
        assert laser.type_name == theirs["type"]
        assert (laser.pose.x, laser.pose.y) == (theirs["x_m"], theirs["y_m"])
        assert (laser.samples, laser.range_min, laser.range_max) == (
            theirs["samples"],
            theirs["range_min_m"],
            theirs["range_max_m"],
        )
        assert math.degrees(laser.fov) == pytest.approx(theirs["fov_deg"])
        assert laser.flipped == theirs["reverse_scan"]
        assert (laser.range_noise, laser.angle_noise) == (
            theirs["range_noise_m"],
            theirs["angle_noise_rad"],
        )


def test_our_client_knows_the_scale_of_every_model() -> None:
    from botyard.clients.pioneer import _DIST_CONV

    pioneers = {load_robot(n).pioneer for n in robot_names() if load_robot(n).drive}
    assert {
        p.subclass: p.dist_conv for p in pioneers if p.dist_conv != 1.0
    } == _DIST_CONV
