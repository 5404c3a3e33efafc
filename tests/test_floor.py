"""The floor of a simulation: pheromone fields, journals, states, worlds of a batch."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import botyard
from botyard import recording
from botyard.control import USER, ClearField, Control, MarkFloor, RemoveZone, SetZone
from botyard.engine.fields import FAINT, FieldTable
from botyard.engine.objectdigest import object_digest
from botyard.errors import ArgumentError, ModelError, StateError, UnknownNameError
from botyard.model import floor as floormodel
from botyard.model.floor import Floor, FloorPicture, FloorZone, PheromoneField
from botyard.model.floorlook import brightness, cells_at, colors_at, holes_at
from botyard.model.scene import Scene
from botyard.recording import codec
from botyard.recording.player import Player
from botyard.recording.track import read_track
from botyard.sim.resimulation import resimulate

SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
TRAIL = PheromoneField(
    name="trail", area=(-1.0, -1.0, 1.0, 2.0), cell=0.1, half_life=2.0
)


def world(*zones: FloorZone, fields=(TRAIL,), **options) -> botyard.Simulation:
    floor = Floor(zones=zones, fields=fields)
    return botyard.Simulation(Scene(floor=floor), **options)


# -- the look of the floor


def test_colours_stack_from_the_floor_over_the_picture_to_the_last_zone() -> None:
    pixels = np.zeros((2, 3, 4), np.uint8)
    pixels[..., 3] = 255
    pixels[0] = (10, 20, 30, 255)
    pixels[1, 2, 3] = 0
    picture = FloorPicture(pixels=pixels, resolution=0.5, origin=botyard.Pose(1, 2, 0))
    below = FloorZone(corners=SQUARE, color="red")
    top = FloorZone(corners=tuple((x / 2, y) for x, y in SQUARE), color="#0000ff")
    floor = Floor(color="lime", picture=picture, zones=(below, top))
    points = np.array(
        [[-5, 5], [1.2, 2.9], [1.2, 2.1], [2.4, 2.1], [0.7, 0.5], [0.2, 0.5]]
    )
    assert colors_at(floor, points).tolist() == [
        [0, 255, 0],
        [10, 20, 30],
        [0, 0, 0],
        [0, 0, 0],
        [255, 0, 0],
        [0, 0, 255],
    ]
    # The transparent pixel, the lower right one, is a hole.
    assert holes_at(floor, points).tolist() == [False, False, False, True, False, False]
    assert brightness(np.array([[255, 255, 255], [255, 0, 0]], np.uint8)) == (
        pytest.approx([1.0, 0.299])
    )


def test_a_turned_picture_is_looked_up_in_its_own_frame() -> None:
    pixels = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
    turned = botyard.Pose(3.0, 1.0, math.pi / 2)
    floor = Floor(picture=FloorPicture(pixels=pixels, resolution=1.0, origin=turned))
    for row in range(2):
        for column in range(4):
            # The middle of the pixel in the picture's frame, row 0 on top.
            u, v = column + 0.5, 2 - row - 0.5
            at = np.array([[3.0 - v, 1.0 + u]])
            assert colors_at(floor, at)[0].tolist() == pixels[row, column].tolist()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: FloorZone(corners=SQUARE[:2]), "three different corners"),
        (lambda: FloorZone(corners=SQUARE, slip=1.0), "slip: expected 0 … 0.99"),
        (lambda: FloorZone(corners=SQUARE, speed_limit=-1.0), "speed_limit"),
        (lambda: FloorZone(corners=SQUARE, odometry_scale=0.0), "odometry_scale"),
        (lambda: FloorZone(corners=((0, 0), (1, 0), (math.nan, 1))), "finite"),
        (lambda: replace(TRAIL, name=""), "name"),
        (lambda: replace(TRAIL, area=(0.0, 0.0, 0.0, 1.0)), "x0 < x1"),
        (lambda: replace(TRAIL, area=(0.0, 0.0, 9e4, 9e4)), "at most 1000000 cells"),
        (lambda: replace(TRAIL, half_life=-1.0), "half_life"),
        (lambda: Floor(fields=(TRAIL, TRAIL)), "different names"),
        (lambda: Floor(zones=(FloorZone(corners=SQUARE),) * 1001), "1000 zones"),
        (lambda: FloorPicture(pixels=np.zeros((2, 2), np.uint8)), "rows, columns"),
        (lambda: FloorPicture(pixels=np.zeros((2, 2, 3))), "uint8"),
    ],
)
def test_errors_say_what_is_wrong(make, match: str) -> None:
    with pytest.raises((ModelError, ArgumentError), match=match):
        make()


def test_a_picture_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floormodel, "MAX_PIXELS", 5)
    with pytest.raises(ArgumentError, match="at most 5 pixels, found 6"):
        FloorPicture(pixels=np.zeros((2, 3, 3), np.uint8))


# -- pheromone fields


def test_levels_evaporate_by_their_half_life() -> None:
    sim = world()
    sim.floor.mark("trail", [[0.05, 0.05], [0.05, 0.05], [0.95, 1.95], [3, 3]], 2.0)
    points = [[0.01, 0.09], [0.99, 1.99], [3, 3], [0.15, 0.05]]
    assert sim.floor.level("trail", points).tolist() == [4.0, 2.0, 0.0, 0.0]
    for _ in range(3):
        sim.step(7)
        expected = 4.0 * 2.0 ** (-sim.time / 2.0)
        assert sim.floor.level("trail", points)[0] == pytest.approx(expected)
    # A faint level ends at 0, and never at a denormal number.
    sim.step(round(2.0 / sim.dt * math.log2(4.0 / FAINT)) + 2)
    assert not sim.floor.levels("trail").any()


def test_a_field_without_half_life_stays() -> None:
    sim = world(fields=(replace(TRAIL, half_life=0.0),))
    sim.floor.mark("trail", [[0, 0]], 3.0)
    sim.step(100)
    assert sim.floor.level("trail", [[0, 0]]).tolist() == [3.0]
    sim.floor.mark("trail", [[0, 0]], -9.0)
    assert sim.floor.level("trail", [[0, 0]]).tolist() == [0.0]


def test_cells_cover_the_area_from_its_lower_left_corner() -> None:
    assert TRAIL.shape == (30, 20)
    points = np.array(
        [[-1, -1], [-0.95, -0.85], [0.999, 1.999], [1.01, 0], [np.nan, 0]]
    )
    assert cells_at(TRAIL, points).tolist() == [0, 20, 599, -1, -1]
    sim = world()
    sim.floor.mark("trail", points[:3])
    levels = sim.floor.levels("trail")
    assert levels.shape == TRAIL.shape
    assert [levels[0, 0], levels[1, 0], levels[29, 19]] == [1.0, 1.0, 1.0]
    levels[:] = 7.0
    assert sim.floor.levels("trail").sum() == 3.0, "a copy"


@pytest.mark.parametrize(
    ("points", "amount", "error"),
    [
        ([[0, 0]], math.nan, ArgumentError),
        ([[0, 0]], 1e10, ArgumentError),
        ([[0, 0]], [1, 2], ArgumentError),
        ([[0, 0]], "much", ArgumentError),
        ([[0, math.inf]], 1.0, ArgumentError),
        ([0, 0, 0], 1.0, ArgumentError),
    ],
)
def test_a_wrong_mark_changes_nothing(points, amount, error) -> None:
    sim = world()
    with pytest.raises(error):
        sim.floor.mark("trail", points, amount)
    assert not sim.floor.levels("trail").any()


def test_unknown_names_are_named() -> None:
    sim = world(FloorZone(name="ice", corners=SQUARE))
    with pytest.raises(UnknownNameError, match="trial"):
        sim.floor.mark("trial", [[0, 0]])
    with pytest.raises(UnknownNameError, match="icy"):
        sim.floor.remove_zone("icy")
    with pytest.raises(ArgumentError, match="a name"):
        sim.floor.set_zone(FloorZone(corners=SQUARE))


def test_a_pen_writes_the_level_of_rate_times_time_under_its_point() -> None:
    from botyard.devices.floorsensors import PheromoneSensorSpec
    from botyard.devices.pheromonepen import PheromonePenSpec
    from botyard.formats.models import find_robot

    sim = world(fields=(replace(TRAIL, half_life=0.0),))
    spec = find_robot("p3dx").fitted(PheromonePenSpec(position=(0.5, 0.0), rate=2.0))
    spec = spec.fitted(PheromoneSensorSpec(positions=((0.5, 0.0), (0.0, 0.0))))
    robot = sim.add_robot(spec, pose=(0.0, 0.0, math.pi / 2))
    sim.step(5)
    assert sim.floor.level("trail", [[0.0, 0.5]])[0] == pytest.approx(2.0 * 0.5)
    assert robot.devices["pheromone_sensor"].read() == pytest.approx((1.0, 0.0))
    robot.devices["pheromone_pen"].command("rate", 0.0)
    sim.step(5)
    assert sim.floor.levels("trail").sum() == pytest.approx(1.0)
    with pytest.raises(ArgumentError, match="rate: expected a number from 0 to 10"):
        robot.devices["pheromone_pen"].command("rate", 11.0)


def test_sums_of_several_pens_do_not_depend_on_the_order_of_robots() -> None:
    from botyard.devices.pheromonepen import PheromonePenSpec
    from botyard.formats.models import find_robot

    found = []
    for names in ("abc", "bca"):
        sim = world()
        for k, name in enumerate(names):
            rate = {"a": 0.1, "b": 0.7, "c": 1e-7}[name]
            spec = find_robot("p3dx").fitted(PheromonePenSpec(rate=rate))
            sim.add_robot(spec, name, pose=(0.02 * k, 0.0, 0.0))
            sim.robots[name].ghost(True)
        sim.step(3)
        found.append(sim.floor.levels("trail").tobytes())
    assert found[0] == found[1]


# -- journal, states, recordings


def changed(sim: botyard.Simulation, steps: int) -> list[int]:
    """Change the floor in the course of a run; return the digests."""
    digests = []
    for k in range(steps):
        if k == 2:
            sim.floor.mark("trail", [[0, 0], [0, 0.5]], [1.0, 2.5])
        if k == 4:
            sim.floor.set_zone(FloorZone(name="ice", corners=SQUARE, slip=0.5))
        if k == 7:
            sim.floor.clear("trail")
            sim.floor.mark("trail", [[0.3, 0.3]])
        if k == 9:
            sim.floor.remove_zone("ice")
        if k == 11:
            sim.floor.replace(Floor(color="red", fields=(TRAIL,)))
        if k == 13:
            sim.floor.replace(None)
        sim.step()
        digests.append(sim.digest())
    return digests


def test_a_journal_repeats_all_changes_of_the_floor() -> None:
    sim = world(seed=3)
    sim.add_robot("p3dx", "r", pose=(-0.5, 0.5, 0.0))
    start, entries = sim.clone(), []
    sim.core.journal.listen(
        lambda entry: entries.append(codec.decode_entry(codec.encode_entry(entry)))
    )
    sim.robots["r"].command(v=0.5)
    digests = changed(sim, 16)
    assert len(entries) == 8
    assert list(resimulate(start, entries, 16)) == digests


def test_a_state_holds_the_levels_and_refuses_others() -> None:
    sim = world()
    sim.floor.mark("trail", [[0, 0]], 2.0)
    sim.step(3)
    state, level = sim.save_state(), sim.floor.levels("trail")
    for copy in (sim.clone(), pickle.loads(pickle.dumps(sim))):
        assert (copy.floor.levels("trail") == level).all()
        copy.step(4)
    sim.step(4)
    assert copy.digest() == sim.digest()
    sim.restore(state)
    assert (sim.floor.levels("trail") == level).all()
    with pytest.raises(StateError, match=r"column|map|floor"):
        world(fields=()).restore(state)
    with pytest.raises(StateError, match=r"column|map|floor"):
        world(fields=(replace(TRAIL, cell=0.2),)).restore(state)


def test_fields_keep_their_levels_as_long_as_they_stay_the_same() -> None:
    sim = world()
    sim.floor.mark("trail", [[0, 0]], 2.0)
    sim.floor.replace(Floor(color="red", fields=(TRAIL, replace(TRAIL, name="b"))))
    assert sim.floor.fields == ("trail", "b")
    assert sim.floor.levels("trail").sum() == 2.0
    sim.floor.replace(Floor(fields=(replace(TRAIL, half_life=9.0),)))
    assert sim.floor.levels("trail").sum() == 0.0
    sim.floor.mark("trail", [[0, 0]], 2.0)
    sim.replace_scene(sim.scene)
    assert sim.floor.levels("trail").sum() == 0.0, "another map starts anew"
    sim.floor.replace(None)
    assert not any(isinstance(t, FieldTable) for t in sim.core.engine.tables.values())
    sim.step()


def test_an_episode_starts_with_empty_fields() -> None:
    sim = world()
    sim.add_robot("p3dx")
    sim.floor.mark("trail", [[0, 0]], 2.0)
    sim.step()
    sim.reset()
    assert not sim.floor.levels("trail").any()


def test_a_scene_without_a_floor_has_the_digest_of_versions_before_it() -> None:
    plain = Scene()
    assert "floor" not in repr(object_digest(plain))
    assert object_digest(plain) != object_digest(Scene(floor=Floor()))
    assert codec.decode_scene(codec.encode_scene(plain)).floor is None


def test_a_recording_of_a_changing_floor_is_the_same_when_it_is_repeated(
    tmp_path: Path,
) -> None:
    sim = world(seed=5)
    robot = sim.add_robot("p3dx", "r", pose=(-0.5, 0.5, 0.0))
    path = tmp_path / "run.mcap"
    with sim.record(path):
        robot.command(v=0.4)
        changed(sim, 16)
    proof = recording.resimulate(path)
    assert proof.divergence is None, str(proof.divergence)
    assert not proof.notes
    # A player goes to moments with another floor, to and fro.
    player = Player(read_track(path))
    for tick, zones, fields in ((6, 1, 1), (16, 0, 0), (12, 0, 1), (8, 1, 1)):
        player.seek(tick * sim.dt)
        assert len(player.sim.floor.description.zones) == zones
        assert len(player.sim.floor.fields) == fields
    assert not player.corrections


def test_operations_change_the_floor_and_tell_what_is_wrong() -> None:
    sim = world()
    control = Control(sim)
    control.do(USER, MarkFloor(field="trail", points=[(0, 0)], amount=2.0))
    assert sim.floor.level("trail", [[0, 0]])[0] == 2.0
    control.do(USER, SetZone(zone="ice", corners=SQUARE, slip=0.5, color="white"))
    assert sim.floor.at(0.5, 0.5).slip == 0.5
    control.do(USER, RemoveZone(zone="ice"))
    control.do(USER, ClearField(field="trail"))
    assert sim.floor.description.zones == ()
    assert not sim.floor.levels("trail").any()
    with pytest.raises(UnknownNameError):
        control.do(USER, ClearField(field="nothing"))
    with pytest.raises(ModelError):
        control.do(USER, SetZone(zone="ice", corners=SQUARE[:2]))
    with pytest.raises(ArgumentError, match="slip"):
        SetZone(zone="ice", corners=SQUARE, slip=2.0)


def test_the_floor_under_a_robot() -> None:
    sim = world(
        FloorZone(corners=SQUARE, color="black", speed_limit=0.3, odometry_scale=1.1)
    )
    robot = sim.add_robot("p3dx", "r", pose=(0.5, 0.5, 0.0))
    sim.floor.mark("trail", [[0.5, 0.5]])
    ground = sim.floor.under(robot)
    assert ground == sim.floor.under("r") == sim.floor.at(0.5, 0.5)
    assert ground.color == (0, 0, 0)
    assert (ground.speed_limit, ground.slip, ground.odometry_scale) == (0.3, 0.0, 1.1)
    assert ground.levels == {"trail": 1.0}
    plain = botyard.Simulation().floor.at(1, 1)
    assert plain == ((255, 255, 255), 1.0, False, math.inf, 0.0, 1.0, {})


# -- worlds of a batch


def test_worlds_have_zones_as_a_simulation_has() -> None:
    zones = (
        FloorZone(corners=SQUARE, slip=0.4),
        FloorZone(corners=tuple((x + 0.5, y) for x, y in SQUARE), speed_limit=0.1),
        FloorZone(corners=tuple((x, y + 1) for x, y in SQUARE), odometry_scale=1.2),
    )
    maps = [Scene(floor=Floor(zones=zones)), Scene()]
    worlds = botyard.Worlds(maps, "p3dx", 8, seeds=2, threads=2)
    alone = [worlds.world(i) for i in range(8)]
    with_zones = [len(sim.floor.description.zones) for sim in alone]
    assert sorted(set(with_zones)) == [0, 3]
    for i, sim in enumerate(alone):
        robot = next(iter(sim.robots.values()))
        robot.command(v=0.5, w=0.1)
        sim.step(25)
        worlds.command[i] = (0.5, 0.0, 0.1)
    worlds.step(25)
    for i, sim in enumerate(alone):
        assert sim.poses[0].tolist() == worlds.pose[i, 0].tolist()


def test_worlds_refuse_pheromone_fields() -> None:
    with pytest.raises(ArgumentError, match="pheromone fields"):
        botyard.Worlds(Scene(floor=Floor(fields=(TRAIL,))), "p3dx", 2)
