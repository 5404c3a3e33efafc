"""Stage definitions: lexer, grammar, and the robots that they describe (formats §3)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.devices.sonar import sonar_bundles
from botyard.errors import ModelError, ModelFileError
from botyard.formats.base import Source
from botyard.formats.notes import Notes
from botyard.formats.registry import read_world
from botyard.formats.stagemodels import ModelLibrary
from botyard.formats.stageprops import dialect_of
from botyard.formats.stagesensors import LASERS
from botyard.formats.stageshapes import MAX_PARTS
from botyard.formats.stageworld import parse, read
from botyard.model.beams import ReflectorRule
from botyard.model.kinematics import Axes, Drive
from botyard.model.library import load_laser, load_robot, robot_of
from botyard.model.robotfile import to_table
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation


def robot(text: str, name: str = "mine", **options: bool):
    return ModelLibrary(parse(text, "my.inc"), **options).robot(name)


# -- grammar


def test_grammar() -> None:
    world = parse(
        """# comment
        interval_sim 50  # here too
        size [ 20 30.5 ]
        name "a world"
        define thing position ( size [1 2] color "light blue"
           laser ( samples 10 pose [0.1 0 -90] ) )
        thing ( name "one" pose [1 2 45] )
        """
    )
    assert world.properties["interval_sim"].number() == 50
    assert world.properties["size"].numbers(2) == (20.0, 30.5)
    assert world.properties["name"].string() == "a world"
    thing = world.definitions["thing"]
    assert (thing.type_name, thing.properties["color"].string()) == (
        "position",
        "light blue",
    )
    assert thing.children[0].properties["pose"].numbers() == (0.1, 0.0, -90.0)
    assert [e.type_name for e in world.entities] == ["thing"]


def test_a_bracket_needs_no_space_before_it() -> None:
    assert parse(
        "a ( pose[0.125 0 0] spose[3] [1 2 3] polygon[0].point[1] [4 5] )"
    ).entities[0].properties.keys() == {
        "pose",
        "spose[3]",
        "polygon[0].point[1]",
    }


def test_later_values_win_but_first_definitions() -> None:
    world = parse("define a position ( size [1 1] size [2 2] )\ndefine a model ( )\n")
    assert world.definitions["a"].type_name == "position"
    assert world.definitions["a"].properties["size"].numbers() == (2.0, 2.0)
    assert [(name, line) for name, _, line in world.shadowed] == [("a", 2)]


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (
            "define a position (\n  size [1 1]\n",
            2,
            '")" that closes position of line 1',
        ),
        (
            "define a position (\n\n  size [1 x] )\n",
            3,
            'expected numbers, texts, or "]" of size, found "x"',
        ),
        ("a ( size )", 1, 'expected the value of size, found ")"'),
        ("size 1\n$ 5", 2, "expected a word, number"),
        ('x "not closed\n', 1, "expected a word, number"),
        ("define ( )", 1, "expected the name of the definition"),
        ('include "none.inc"', 1, "no such file"),
        ("include 5", 1, 'expected a file name in "quotes"'),
        ("5 a", 1, 'expected a word, found "5"'),
    ],
)
def test_errors_name_file_line_and_what_was_expected(
    text: str, line: int, complaint: str
) -> None:
    with pytest.raises(ModelFileError) as error:
        parse(text, "my.inc")
    assert str(error.value).startswith(f"my.inc:{line}: ")
    assert complaint in str(error.value)
    assert error.value.exit_code == 250


def test_includes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.world").write_text('include "sub/a.inc"\ninclude "b.inc"\n')
    (tmp_path / "sub/a.inc").write_text("define a position ( )\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/b.inc").write_text("define b a ( )\n")
    monkeypatch.setenv("STAGEPATH", str(tmp_path / "elsewhere"))
    assert list(read(tmp_path / "main.world").definitions) == ["a", "b"]
    (tmp_path / "sub/a.inc").write_text('include "../main.world"\n')
    with pytest.raises(ModelFileError, match="in a circle"):
        read(tmp_path / "main.world")


pieces = st.sampled_from(
    [
        "define",
        "include",
        "a",
        "position",
        "laser",
        "(",
        ")",
        "[",
        "]",
        "1",
        "-2.5",
        '"x"',
        "size",
        "pose",
        "ranger",
        "scount",
        "\n",
        "#",
        "b",
    ]
)


@given(st.lists(pieces | st.text(max_size=4), max_size=60))
def test_no_text_does_anything_but_be_refused_or_read(words: list[str]) -> None:
    try:
        library = ModelLibrary(parse(" ".join(words), "x"))
        for name in library.names:
            library.robot(name)
    except ModelFileError:
        return


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ModelFileError, match="nested levels"):
        parse("a ( " * 1000)


# -- robots


def test_a_position_has_the_engines_defaults() -> None:
    spec = robot("define mine position ( )")
    assert spec.limits.max_speed == Axes(3.0, 3.0, 7.85)
    assert (spec.limits.accel.x, spec.limits.decel.a, spec.limits.heading_speed) == (
        0.5,
        1.74,
        1.75,
    )
    assert spec.outline == ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    assert spec.odometry_error == Axes(0.03, 0.03, 0.05)
    assert (spec.drive, spec.lasers, spec.sonar) == (Drive.DIFF, (), None)


def test_all_properties() -> None:
    spec = robot("""define mine position (
        size [0.6 0.4] origin [0.1 0 0] color "gray50" drive "omni" max_speed [1 0.5 2]
        default_speed [1 0 0.7] accel [0.2 0.1 1] decel [0.4 0.3 3]
        odom_error_x [0 0.01] odom_error_range_a [-0.004 0.009] laser_return 0 ranger_return 0 obstacle_return 0
        polygons 1 polygon[0].points 3 polygon[0].point[0] [0 0] polygon[0].point[1] [2 1] polygon[0].point[2] [0 2]
        pioneer_robot_type "Odd" pioneer_robot_subtype "odd" pioneer_distconv 0.5 pioneer_watchdog 500 pioneer_batterytype 2
        pioneer_gps_pos_x 0.3 pioneer_gps_dop 2 localization "gps" unknown_thing 5
        laser ( samples 91 fov 90 range_min 0.1 range_max 4 noise 0.01 reading_angle_error 0.002
          update_interval 50 reverse_scan 1 pose [0.2 0 90] size [0.05 0.06]
          laser_return_rules 3 laser_return_rule[2].model_gt 1 laser_return_rule[2].condition "outside_angle" laser_return_rule[2].angle 50
          laser_return_rule[0].model_gt 1 laser_return_rule[0].condition "outside_range" laser_return_rule[0].range 12
          laser_return_rule[1].model_eq 2 laser_return_rule[1].detect 33 )
        ranger ( scount 2 spose[0] [0.1 0.2 90] spose[1] [0.1 -0.2 -90] sview [0.2 3 30] noise 0.002 update_interval 250
          projection_type "closest" )
    )""")
    assert (spec.drive, spec.color, spec.perfect_odometry) == (
        Drive.OMNI,
        "gray50",
        True,
    )
    assert spec.limits.max_speed == Axes(1, 0.5, 2)
    assert spec.limits.heading_speed == 0.7
    assert sorted(spec.outline) == [
        (pytest.approx(-0.2), -0.2),
        (pytest.approx(-0.2), 0.2),
        (pytest.approx(0.4), 0.0),
    ]
    assert (spec.odometry_error.x, spec.odometry_error.a) == (0.01, 0.009)
    assert spec.odometry_error_low == Axes(0.0, -0.03, -0.004)
    assert (spec.returns.obstacle, spec.returns.laser, spec.returns.sonar) == (
        False,
        0,
        False,
    )
    p = spec.pioneer
    assert (p.class_name, p.subclass, p.dist_conv, p.watchdog) == (
        "Odd",
        "odd",
        0.5,
        0.5,
    )
    assert spec.battery.by_charge
    assert (spec.gps.x, spec.gps.dop) == (0.3, 2.0)
    laser = spec.lasers[0]
    assert (
        laser.samples,
        laser.range_min,
        laser.range_max,
        laser.range_noise,
        laser.flipped,
    ) == (
        91,
        0.1,
        4.0,
        0.01,
        True,
    )
    assert (math.degrees(laser.fov), math.degrees(laser.pose.th)) == (
        pytest.approx(90),
        pytest.approx(90),
    )
    assert (laser.reflector.max_range, laser.reflector.strength) == (12.0, 33)
    assert math.degrees(laser.reflector.max_incidence) == pytest.approx(25), (
        "half of the angle, to each side"
    )
    assert (laser.angle_noise, laser.size) == (0.002, (0.05, 0.06))
    assert laser.update_rate == 20.0
    assert (laser.pose.x, laser.pose.y) == (0.2, 0.0)
    assert spec.sonar is not None
    assert (spec.sonar.range_min, spec.sonar.range_max, spec.sonar.noise) == (
        0.2,
        3.0,
        0.002,
    )
    assert spec.sonar.rays == 6, "30° in steps of 6°"
    assert math.degrees(spec.sonar.fov) == pytest.approx(30)
    assert spec.sonar.update_rate == 4.0
    assert [(t.pose.x, t.pose.y, t.pose.th) for t in spec.sonar.transducers] == [
        (0.1, 0.2, pytest.approx(math.pi / 2)),
        (0.1, -0.2, pytest.approx(-math.pi / 2)),
    ]


def test_rings_of_rangers() -> None:
    """Defaults, a single beam, uneven steps, a transducer without a view (WLD-014)."""
    ring = robot("define mine position ( ranger ( scount 1 spose[0] [0 0 0] ) )").sonar
    assert ring is not None
    assert (ring.range_min, ring.range_max, ring.noise, ring.rays) == (0.0, 5.0, 0.0, 1)
    assert math.degrees(ring.fov) == pytest.approx(5)
    assert [t.connected for t in ring.transducers] == [True]
    ring = robot(
        "define mine position ( ranger ( scount 3 spose[0] [0 0 0] spose[1] [0 0 "
        "120] spose[2] [0 0 -120] sview [0.1 2 30]"
        ' sview[1] [0.1 2 0] projection_type "closest" projection_res 10 ) )'
    ).sonar
    assert ring is not None
    one = "scount 1 spose[0] [0 0 0] sview [0.1 2 30]"
    wide = robot(
        f'define mine position ( ranger ( {one} projection_type "closest" projection_res 90 ) )'
    ).sonar
    assert wide is not None and wide.rays == 1
    assert (ring.rays, [t.connected for t in ring.transducers]) == (
        4,
        [True, False, True],
    )
    assert [math.degrees(t.pose.th) for t in ring.transducers] == pytest.approx(
        [0, 120, -120]
    )


def test_lasers_without_a_word_about_them() -> None:
    (plain,) = robot("define mine position ( laser ( ) )").lasers
    assert (plain.type_name, plain.samples, plain.size) == ("laser", 180, (0.15, 0.15))
    (stock,) = robot("define mine position ( sicklms200 ( ) )").lasers
    assert (stock.type_name, stock.samples, stock.fov) == (
        "sicklms200",
        181,
        pytest.approx(math.pi),
    )
    two = "sensor ( fov 90 samples 9 ) sensor ( fov 180 samples 5 )"
    first, second = robot(
        f"define mine position ( size [1 1 1] ranger ( {two} ) )"
    ).lasers
    assert (first.size, second.size) == ((0.02, 0.02), (0.0, 0.0)), "one case"
    assert (first.range_min, first.range_max) == (0.0, 5.0)


def test_the_stock_ring_has_its_noise() -> None:
    spec = robot("define mine position ( pioneerSonar ( scount 1 spose[0] [0 0 0] ) )")
    assert spec.sonar is not None
    assert (spec.sonar.noise, spec.sonar.range_min, spec.sonar.range_max) == (
        0.0005,
        0.1,
        5.0,
    )


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (['condition "outside_range" range 4'], (4.0, None, 2)),
        (['condition "outside_range" range 4 model_gt 1 detect 1'], (4.0, None, 2)),
        (['condition "outside_angle" angle 60'], (None, 30.0, 2)),
        (["model_eq 2 detect 7"], (None, None, 7)),
        (["detect 255"], (None, None, 255)),
        (["detect 7"], (None, None, 7)),
        (
            [
                'condition "outside_range" range 4',
                'condition "outside_angle" angle 60',
                "detect 7",
            ],
            (4.0, 30.0, 7),
        ),
        (['condition "outside_range" range 4 model_gt 2'], None),
        (['condition "outside_range" range 4 model_eq 2'], None),
        (['condition "outside_range" range 4 detect 3'], None),
        (['condition "outside_angle" angle 60 detect 3'], None),
        (["model_gt 1 detect 7"], None),
    ],
)
def test_rules_for_bright_surfaces(
    rules: list[str], expected: tuple[float | None, float | None, int] | None
) -> None:
    """`expected`: greatest range, m, angle of incidence, degrees, and the meaning of
    return 2.

    None stands for the default, with a note.
    """
    text = f"laser_return_rules {len(rules)} "
    for i, rule in enumerate(rules):
        key, *rest = rule.split(" ")
        words = [key, *rest]
        text += (
            " ".join(
                f"laser_return_rule[{i}].{k} {v}"
                for k, v in zip(words[::2], words[1::2], strict=True)
            )
            + " "
        )

    library = ModelLibrary(
        parse(f"define mine position ( laser ( {text} ) )", "my.inc")
    )
    found = library.robot("mine").lasers[0].reflector
    default = ReflectorRule()
    most, angle, strength = expected or (None, None, default.strength)
    assert found.max_range == (default.max_range if most is None else most)
    assert math.degrees(found.max_incidence) == pytest.approx(
        math.degrees(default.max_incidence) if angle is None else angle
    )
    assert found.strength == strength
    assert any("of an unknown kind" in note for note in library.notes.texts) is (
        expected is None
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("", 2),
        ("pose [1 2 90] size [1 1]", 2),
        ("pose [1 2 0 90]", 4),
        ("size [1 1 1]", 4),
        ("velocity_bounds [-1 1 0 0 0 0 -9 9]", 4),
        ("acceleration_bounds [-1 1 0 0 0 0 -9 9]", 4),
        ("ranger ( sensor ( ) )", 4),
        ("fiducial ( )", 4),
        ("block ( points 3 point[0] [0 0] point[1] [0 1] point[2] [1 0] )", 4),
        ("laser ( samples 5 )", 2),
        ("laser ( pose [1 0 0 9] )", 4),
    ],
)
def test_which_version_a_file_is_for(text: str, version: int) -> None:
    assert dialect_of(parse(f"define mine position ( {text} )", "my.inc")) == version
    assert dialect_of(parse(f"position ( {text} )", "my.inc")) == version


def test_defaults_of_stage_4() -> None:
    spec = robot("define mine position ( size [1 1 1] gripper ( ) blobfinder ( ) )")
    quarter = Axes(1.0, 1.0, math.pi / 2)
    assert (spec.limits.max_speed, spec.limits.accel, spec.limits.decel) == (
        quarter,
        quarter,
        quarter,
    )
    assert spec.odometry_error == Axes(0.015, 0.015, 0.025)
    assert spec.gripper is not None
    assert (spec.gripper.reach, spec.gripper.opening) == (
        pytest.approx(0.2 * 0.66),
        pytest.approx(0.3 * 0.8),
    )
    finder = spec.device("blob_finder")
    assert finder is not None
    assert (finder.image, finder.fov) == ((80, 60), pytest.approx(math.radians(60)))


def test_speeds_are_limited_by_the_greater_bound() -> None:
    limits = robot(
        "define mine position ( velocity_bounds [-0.9 0.5 -0.2 0.3 0 0 -90 45] )"
    ).limits
    assert limits.max_speed.as_tuple() == pytest.approx((0.9, 0.3, math.pi / 2))


@pytest.mark.parametrize("name", LASERS)
def test_lasers_of_the_stock_files_are_those_of_the_library(name: str) -> None:
    (laser,) = robot(f"define mine position ( {name} ( ) )").lasers
    stock = load_laser(LASERS[name])
    assert (laser.type_name, laser.fov, laser.samples, laser.range_max) == (
        name,
        stock.fov,
        stock.samples,
        stock.range_max,
    )


def test_rings_have_the_greatest_beam_and_noise_of_theirs_and_the_old_form_too() -> (
    None
):
    text = "ranger ( sensor ( fov 10 noise [0.1 0 0] ) sensor ( fov 20 ) )"
    ring = robot(f"define mine position ( size [1 1 1] {text} )").sonar
    assert ring is not None
    assert (math.degrees(ring.fov), ring.noise) == (pytest.approx(20), 0.1)
    old = robot(
        "define mine position ( size [1 1 1] ranger ( scount 2 spose[0] [0 0 0] "
        "spose[1] [0 0 9] ) )"
    ).sonar
    assert old is not None
    assert len(old.transducers) == 2


def test_bodies_have_a_limit_of_parts() -> None:
    part = "model ( size [0.1 0.1 0.1] )"
    with pytest.raises(ModelFileError, match=f"at most {MAX_PARTS} solid parts"):
        robot(f"define mine position ( size [1 1 1] {part * (MAX_PARTS + 1)} )")
    assert (
        len(robot(f"define mine position ( size [1 1 1] {part * MAX_PARTS} )").parts)
        == MAX_PARTS
    )


RING = " ".join(f"spose[{i}] [0 0 0]" for i in range(1000))


@pytest.mark.parametrize(
    ("sensor", "most"),
    [
        ("bumper ( bcount {} )", 14),
        ("laser ( laser_return_rules {} )", 100),
        (f"ranger ( scount {{}} {RING} )", 1000),
    ],
)
def test_counts_have_a_limit(sensor: str, most: int) -> None:
    robot(f"define mine position ( {sensor.format(most)} )")
    with pytest.raises(
        ModelFileError, match=f"expected a whole number from 0 to {most}"
    ):
        robot(f"define mine position ( {sensor.format(most + 1)} )")


def test_the_symmetric_rotation_error_is_read_in_degrees() -> None:
    error = robot("define mine position ( odom_error [0.01 0.02 0.9] )").odometry_error
    assert error.as_tuple() == (0.01, 0.02, pytest.approx(math.radians(0.9)))
    for text, expected in (("[0.01]", (0.01, 0, 0)), ("[0.01 0.02]", (0.01, 0.02, 0))):
        error = robot(f"define mine position ( odom_error {text} )").odometry_error
        assert error.as_tuple() == expected, text


def test_models_of_our_library_can_be_changed() -> None:
    spec = robot(
        'define mine p3dx ( color "blue" max_speed [0.4 0 1] sicklms100 ( pose [0.1 0 0] ) )'
    )
    stock = load_robot("p3dx")
    assert (spec.name, spec.color, spec.limits.max_speed.x) == ("mine", "blue", 0.4)
    assert spec.pioneer == stock.pioneer
    assert [v for c in spec.outline for v in c] == pytest.approx(
        [v for c in stock.outline for v in c]
    )
    assert [laser.type_name for laser in spec.lasers] == ["sicklms200", "sicklms100"]
    assert robot("define mine box ( size [2 1] )").outline[2] == (1.0, 0.5)
    assert (
        robot('define mine pioneer ( pioneer_robot_subtype "mine" )').limits.accel.x
        == 0.3
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("define mine p3dy ( )", '"p3dy" is not a model type; did you mean "p3d'),
        (
            "define mine position ( lazer ( ) )",
            'not a type of sensor or model; did you mean "laser"?',
        ),
        ("define mine a ( ) define a mine ( )", "is based on itself"),
        (
            "define mine position ( size [1 -1] )",
            "expected a length and a width, not negative, found 1.0 -1.0",
        ),
        (
            "define mine position ( size [-1 1] )",
            "expected a length and a width, not negative, found -1.0 1.0",
        ),
        (
            "define mine position ( size [1] )",
            "expected a length and a width, not negative, found 1",
        ),
        (
            'define mine position ( drive "hover" )',
            'expected "diff", "omni" or "car", found hover',
        ),
        (
            "define mine position ( laser ( samples 0 ) )",
            "samples must be from 1 to 100000, found 0",
        ),
        (
            "define mine position ( laser ( update_interval 0 ) )",
            "expected a time greater than 0, ms, found 0",
        ),
        (
            "define mine position ( ranger ( scount 2 spose[0] [0 0 0] ) )",
            "scount is 2, but spose[1] is missing",
        ),
        (
            'define mine position ( pioneer_distconv "big" )',
            "expected 1 number, found big",
        ),
        (
            "define mine position ( polygon[0].point[0] [1 2] )",
            "polygons of at least 3 points",
        ),
    ],
)
def test_wrong_models_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ModelFileError) as error:
        robot(text)
    assert complaint in str(error.value)
    assert str(error.value).startswith("my.inc:1: ")


# -- the original's own file


@pytest.fixture(scope="module")
def stock(shared: Path) -> ModelLibrary:
    return ModelLibrary(
        read(shared / "data/worlds/PioneerRobotModels.world.inc"), stock=False
    )


@pytest.mark.shared
def test_every_model_of_the_stock_file_resolves_to_the_facts(
    shared: Path, stock: ModelLibrary
) -> None:
    """Inheritance, overriding, first definition wins, scaled polygons:

    against independent facts (TST-005).
    """
    facts = json.loads((shared / "data/robot_models.json").read_text())
    everything = facts["robots"] + facts["obstacles"]
    assert {f["name"] for f in everything} == set(stock.names)
    for fact in facts["robots"]:
        spec = stock.robot(fact["name"])
        p, conversion = spec.pioneer, fact["conversion"]
        assert p.class_name == fact["pioneer_class"]
        assert p.subclass == fact["pioneer_subtype"]
        assert (
            p.dist_conv,
            p.diff_conv,
            p.angle_conv,
            p.range_conv,
            p.vel2_div,
            p.vel_conv,
        ) == tuple(
            conversion[k]
            for k in (
                "distconv",
                "diffconv",
                "angleconv",
                "rangeconv",
                "vel2div",
                "velconv",
            )
        )
        for key in ("max_speed", "accel", "decel"):
            ours, theirs = getattr(spec.limits, key), fact["speeds"][key]
            assert ours.as_tuple() == pytest.approx(
                (theirs["x"], theirs["y"], theirs["th_rad"])
            )

        assert (spec.color, spec.drive is Drive.OMNI) == (
            fact["color"],
            fact["drive"] == "omni",
        )
        assert spec.battery.by_charge == (fact["battery_type"] == 2)
        assert (spec.gps.x, spec.gps.y, spec.gps.dop) == (
            fact["gps"]["x_m"],
            fact["gps"]["y_m"],
            fact["gps"]["dop"],
        )
        error = fact["odom_error"]
        assert spec.odometry_error.as_tuple() == pytest.approx(
            (error["x"], error["y"], error["th_effective_rad_per_rad"]), rel=1e-3
        )
        assert (len(spec.sonar.transducers) if spec.sonar else None) == (
            fact["sonar"] and fact["sonar"]["count"]
        )
        for ours, theirs in zip(spec.lasers, fact["lasers"], strict=True):
            assert (ours.type_name, ours.samples, ours.range_max) == (
                theirs["type"],
                theirs["samples"],
                theirs["range_max_m"],
            )
            assert (ours.pose.x, ours.pose.y, ours.flipped) == (
                theirs["x_m"],
                theirs["y_m"],
                theirs["reverse_scan"],
            )
            assert math.degrees(ours.fov) == pytest.approx(theirs["fov_deg"])

        if fact["polygons_m"]:
            x0, y0, _ = fact["origin_m_deg"]
            expected = sorted((x + x0, y + y0) for x, y in fact["polygons_m"][0])
            assert [v for c in sorted(spec.outline) for v in c] == pytest.approx(
                [v for c in expected for v in c], abs=1e-3
            )

    for fact in facts["obstacles"]:
        spec = stock.robot(fact["name"])
        assert spec.drive is Drive.NONE
        assert (spec.returns.laser, spec.returns.sonar) == (
            fact["returns"]["laser"],
            bool(fact["returns"]["ranger"]),
        )


@pytest.mark.shared
def test_duplicates_of_the_stock_file(shared: Path) -> None:
    world = read(shared / "data/worlds/PioneerRobotModels.world.inc")
    assert [name for name, _, _ in world.shadowed] == [
        "p3at-sh-lms1xx",
        "p3at-sh-lms500",
    ]


@pytest.mark.shared
def test_stage_4_samples_parse(shared: Path) -> None:
    files = sorted((shared / "data/worlds").glob("*.world"))
    assert len(files) == 9
    for path in files:
        world = read(path)
        assert world.entities


# -- single transducers, and unsupported properties


SONAR = """define mine position ( ranger (
  scount 4 sview [0.1 5 30] noise 0.01 projection_type "closest" projection_res 10
  spose[0] [0.1 0 0] spose[1] [0 0.1 90] spose[2] [0 -0.1 -90] spose[3] [-0.1 0 180]
  sview[1] [0.2 3 10] sview[3] [0 0 0] noise[2] 0.5 ssize[2] [0.1 0.1]
) )"""


def test_transducers_have_views_and_noise_of_their_own() -> None:
    ring = robot(SONAR).sonar
    assert ring is not None
    assert (ring.range_min, ring.range_max, math.degrees(ring.fov), ring.noise) == (
        0.1,
        5.0,
        pytest.approx(30),
        0.01,
    )
    assert [ring.limits_of(t) for t in ring.transducers] == [
        (0.1, 5.0),
        (0.2, 3.0),
        (0.1, 5.0),
        (0.1, 5.0),
    ]
    assert [t.connected for t in ring.transducers] == [True, True, True, False]
    assert [ring.rays_of(t) for t in ring.transducers] == [4, 2, 4, 1]
    bundles = sonar_bundles(ring)
    assert [(b.r_min, b.r_max, b.r_noise) for b in bundles] == [
        (0.1, 5.0, 0.01),
        (0.2, 3.0, 0.01),
        (0.1, 5.0, 0.5),
        (5.0, 5.0, 0.0),
    ]
    spread = [b.angle0 + b.step * (b.count - 1) for b in bundles]
    assert np.degrees(spread).tolist() == pytest.approx([15, 5, 15, 0])


def test_a_robot_measures_with_them() -> None:
    sim = Simulation(
        Scene(segments=np.array([[-9.0, 4.0, 9.0, 4.0], [-9.0, -4.0, 9.0, -4.0]])),
        sensor_noise=False,
    )
    bot = sim.add_robot(robot(SONAR), pose=(0.0, 0.0, 0.0))
    ranges = bot.sonar.read().ranges
    assert ranges[1] == 3.0, "its own greatest range: the wall is 3.9 m away"
    assert ranges[2] == pytest.approx(3.9 / math.cos(math.radians(5)), abs=1e-6), (
        "the nearest of four rays, 10° apart"
    )
    assert (ranges[0], ranges[3]) == (5.0, 5.0)


def test_sensors_of_stage_4_differ_too() -> None:
    spec = robot(
        "define near sensor ( range [0 1] fov 10 noise [0.1 0 0] ) define far "
        "sensor ( range [0.5 9] fov 20 )\n"
        "define mine position ( size [1 1 1] ranger ( near ( pose [1 0 0 0] ) "
        "far ( pose [-1 0 0 180] ) ) )"
    )
    ring = spec.sonar
    assert ring is not None
    assert [ring.limits_of(t) for t in ring.transducers] == [(0.0, 1.0), (0.5, 9.0)]
    assert [t.noise for t in ring.transducers] == [0.1, 0.0]
    assert np.degrees([t.fov for t in ring.transducers]).tolist() == pytest.approx(
        [10, 20]
    )


def test_a_ring_of_single_transducers_is_saved_whole() -> None:
    spec = robot(SONAR)
    table = {k: v for k, v in to_table(spec).items() if k != "name"}
    again = robot_of(table, "mine")
    assert again.sonar == spec.sonar
    text = (
        "botyard: 1\nmodels: "
        + json.dumps({"mine": table})
        + "\nrobots: [{model: mine}]\n"
    )
    assert (
        read_world(Source("s.yaml", text.encode())).robots[0].spec.sonar == spec.sonar
    )
    table["sonar"]["single"][0]["index"] = 9
    with pytest.raises(
        ModelError,
        match=r"single: expected the index of one of 4 transducers, from 0, found 9",
    ):
        robot_of(table, "mine")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ranger ( scount 1 spose[0] [0 0 0] ssize[0] [1 1] )", "ssize"),
        ("ranger ( scount 1 spose[0] [0 0 0] enable_throwaway 1 )", "enable_throwaway"),
        ("laser ( samples 3 beam_width 5 )", "beam_width"),
        (
            "laser ( samples 3 laser_return_rules 1 "
            "laser_return_rule[0].model_lt 5 laser_return_rule[0].detect 4 )",
            "model_lt",
        ),
        (
            "laser ( samples 3 laser_return_rules 1 "
            "laser_return_rule[0].model_eq 7 laser_return_rule[0].detect 4 )",
            "of an unknown kind",
        ),
        (
            "laser ( samples 3 laser_return_rules 1 "
            "laser_return_rule[0].model_eq 2 laser_return_rule[0].detect 4 "
            "laser_return_rule[0].stop 1 )",
            '"stop"',
        ),
        ("fiducialfinder ( ignore_zloc 1 )", "ignore_zloc"),
        ("blobfinder ( ptz [1 2 3] )", "ptz"),
        ("bumper ( bcount 1 bpose[0] [1 0 0 0] squeak 1 )", "squeak"),
        ("gripper ( autosnatch 1 )", "autosnatch"),
        ("velocity [1 0 0]", "velocity"),
        ("update_interval 10000", "update_interval"),
        ("pioneer_watchdgo 3", "pioneer_watchdgo"),
        ("height 2", "height"),
    ],
)
def test_what_is_not_simulated_is_noted(text: str, word: str) -> None:
    notes = Notes()
    ModelLibrary(
        parse(f"define mine position ( {text} )", "my.inc"), notes=notes
    ).robot("mine")
    assert (
        len(notes.texts) == 1
        and word in notes.texts[0]
        and notes.texts[0].startswith("my.inc:1: ")
    )


def test_usual_values_are_not_worth_a_word() -> None:
    notes = Notes()
    text = (
        "velocity [0 0 0] update_interval 100 friction 0 laser ( samples 3 "
        "laser_beam_height 0.1 ) "
    )
    text += "ranger ( scount 1 spose[0] [0 0 0] ssize [1 1] )"
    ModelLibrary(parse(f"define mine position ( {text} )"), notes=notes).robot("mine")
    assert notes.texts == []
