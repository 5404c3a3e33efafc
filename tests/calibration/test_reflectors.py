"""Places where beams meet reflectors, and reports when a log does not determine the
laser's rule.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from botyard.calibration import Calibration, calibrate
from botyard.calibration.reflectors import edges_of, first_hits
from botyard.calibration.report import value_rows
from botyard.calibration.robotfile import robot_text
from botyard.geometry import Pose
from botyard.model.beams import ReflectorRule
from botyard.model.library import load_robot, parse_robot
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from tests.calibration.making import HALL, Known, known_robots, twenty

BASE = load_robot("p3dx")


def found_of(
    one: Known, scene: Scene = HALL, base: ReflectorRule | None = None
) -> Calibration:
    laser = BASE.lasers[0] if base is None else replace(BASE.lasers[0], reflector=base)
    spec = replace(BASE, lasers=(laser,))
    return calibrate([one.log], spec, truths=[one.truth], scene=scene, hold_out=False)


def test_edges_are_what_the_engine_sees() -> None:
    """Ranges, and beams on reflectors, of turned boxes and special walls, against a
    laser without errors.
    """
    boxes = (
        BoxObject(
            name="a",
            pose=Pose(7.0, 5.0, 0.6),
            length=0.8,
            width=0.02,
            returns=Returns(laser=2),
        ),
        BoxObject(name="b", pose=Pose(4.0, 3.0, -0.4), length=0.6, width=0.5),
        BoxObject(
            name="c",
            pose=Pose(4.5, 6.0, 1.2),
            length=0.5,
            width=0.3,
            returns=Returns(laser=0),
        ),
    )
    scene = replace(HALL, boxes=boxes)
    rule = ReflectorRule(max_range=6.0, max_incidence=0.7, strength=9)
    laser = replace(BASE.lasers[0], reflector=rule, range_noise=0.0, angle_noise=0.0)
    edges, met = edges_of(scene), 0
    for th in np.linspace(-3.0, 3.0, 9):
        sim = Simulation(scene, seed=1, warn=None)
        scan = sim.add_robot(
            replace(BASE, lasers=(laser,)), pose=(5.5, 4.5, float(th))
        ).laser.read()
        sim.close()
        mount = np.array(laser.pose)
        c, s = np.cos(th), np.sin(th)
        place = np.array(
            [
                [
                    5.5 + c * mount[0] - s * mount[1],
                    4.5 + s * mount[0] + c * mount[1],
                    th + mount[2],
                ]
            ]
        )
        hits = first_hits(edges, place, scan.angles)
        first = hits.ranges[0] <= scan.ranges + 1e-6
        assert hits.ranges[0][first] == pytest.approx(scan.ranges[first], abs=1e-9)
        on = first & np.append(edges.returns > 1, False)[hits.edge[0]]
        determined = (
            on
            & (hits.ranges[0] <= rule.max_range)
            & (hits.incidence[0] <= rule.max_incidence)
        )
        assert np.array_equal(determined, scan.intensities == 9)
        met += int(determined.sum())

    assert met > 100


def test_the_robot_file_has_the_rule() -> None:
    one = twenty()[0]
    found = found_of(one)
    rule = (
        parse_robot(robot_text(found.robot, found.base, "mine", []), "mine")
        .lasers[0]
        .reflector
    )
    assert rule.strength == one.values["reflector strength"]
    assert rule.max_range == pytest.approx(one.values["reflector max_range"], abs=0.02)
    assert rule.max_incidence == pytest.approx(
        one.values["reflector max_incidence"], abs=0.003
    )


def with_intensities(one: Known, intensities: NDArray[np.float64] | None) -> Known:
    assert one.log.scans is not None
    return replace(
        one, log=replace(one.log, scans=replace(one.log.scans, intensities=intensities))
    )


def test_without_reflectors_or_intensities_the_rule_stays() -> None:
    one = twenty()[0]
    assert one.log.scans is not None
    plain = np.ones_like(one.log.scans.ranges)
    for log, scene, words in (
        (one, replace(HALL, special_walls=()), "reflectors: the map has no reflectors"),
        (
            with_intensities(one, None),
            HALL,
            "reflectors: the scans have no intensities",
        ),
        (with_intensities(one, plain), HALL, "the laser reported none as a reflector"),
    ):
        found = found_of(log, scene)
        assert any(words in note for note in found.notes), found.notes
        assert found.reflectors is None
        assert found.robot.lasers[0].reflector == BASE.lasers[0].reflector


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ReflectorRule(max_range=30.0, max_incidence=1.5), False),
        (ReflectorRule(max_range=3.0, max_incidence=0.2), True),
    ],
)
def test_without_beams_near_a_limit_there_is_only_a_bound(
    old: ReflectorRule, new: bool
) -> None:
    """All beams on reflectors are returned as reflections:

    limits change only where the bounds contradict them.
    """
    (one,) = known_robots(
        1,
        30.0,
        8,
        given={
            "reflector max_range": math.inf,
            "reflector max_incidence": math.pi,
            "reflector strength": 40.0,
        },
    )
    found = found_of(one, base=old)
    rule = found.robot.lasers[0].reflector
    assert rule.strength == 40
    for name, before, after in (
        ("max_range", old.max_range, rule.max_range),
        ("max_incidence", old.max_incidence, rule.max_incidence),
    ):
        value = found.value(f"reflector {name}")
        assert not value.is_determined
        assert math.isnan(value.high)
        assert (after == value.low > before) if new else (after == before > value.low)
        assert any(
            f"do not determine reflector {name}: "
            "the laser reported all beams on reflectors" in note
            for note in found.notes
        )

    rows = {row[0]: row for row in value_rows(found.values)}
    assert rows["reflector max_range"][1:3] == (
        "undetermined",
        f"at least {found.value('reflector max_range').low:.5g}",
    )


def test_a_share_of_wrong_returns_does_not_matter() -> None:
    """Half a percent of the intensities is wrong."""
    one = twenty()[1]
    assert one.log.scans is not None
    assert one.log.scans.intensities is not None
    rng = np.random.default_rng(2)
    bright = one.log.scans.intensities.copy()
    wrong = rng.random(bright.shape) < 0.005
    bright[wrong] = np.where(bright[wrong] > 1, 1.0, 33.0)
    found = found_of(with_intensities(one, bright))
    for name in (
        "reflector max_range",
        "reflector max_incidence",
        "reflector strength",
    ):
        assert found.value(name).value == pytest.approx(one.values[name], abs=0.01), (
            name
        )
