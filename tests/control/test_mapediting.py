"""Editing of the map while the world runs: walls, places and zones, with undo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import botyard
from botyard.control import Caller, Control, EditMap, Level, RemoveZone, SetZone
from botyard.errors import ArgumentError, DeniedError, UnknownNameError
from botyard.geometry import Pose
from botyard.model.obstacles import Returns
from botyard.model.scene import Place, Scene, SpecialWalls

CORNER = np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 0.0, 4.0, 4.0]])
PAGE = Caller("page", Level.OWN, key="me", undo_group=0)


class Worked:
    """Host that carries out portions at once."""

    def work(self, portions: Any) -> Any:
        try:
            while True:
                next(portions)
        except StopIteration as end:
            return end.value


@pytest.fixture
def control() -> Control:
    sim = botyard.Simulation(Scene(segments=CORNER), seed=1)
    sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
    return Control(sim)


def take_back(control: Control, again: bool = False) -> str:
    portions = control._undoing.take_back(control, PAGE, again)
    found: str = Worked().work(portions)
    return found


def test_walls_and_places_are_edited_and_undone(control: Control) -> None:
    sim = control.sim
    robot = sim.robots["ann"]
    before = sim.scene
    home = Place(kind="Dock", name="home", pose=Pose(1.0, 1.0, 0.0))
    control.do(
        PAGE,
        EditMap(
            add_walls=((0, 4, 4, 4),), remove_walls=((4, 0, 0, 0),), add_places=(home,)
        ),
    )
    assert sim.scene.segments.tolist() == [[4, 0, 4, 4], [0, 4, 4, 4]]
    assert list(sim.scene.places) == [home] and sim.robots["ann"] is robot
    # A place of the same name moves.
    moved = Place(kind="Dock", name="home", pose=Pose(3.0, 3.0, 0.0))
    control.do(PAGE, EditMap(add_places=(moved,)))
    assert list(sim.scene.places) == [moved]
    take_back(control)
    assert list(sim.scene.places) == [home]
    assert "drawing 1 place" in take_back(control)
    assert sim.scene.segments.tolist() == before.segments.tolist()
    assert not sim.scene.places
    take_back(control, again=True)
    assert sim.scene.segments.tolist() == [[4, 0, 4, 4], [0, 4, 4, 4]]


def test_zones_are_undone(control: Control) -> None:
    corners = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))
    control.do(PAGE, SetZone(zone="ice", corners=corners, slip=0.5))
    control.do(PAGE, RemoveZone(zone="ice"))
    floor = control.sim.floor
    assert not floor.description.zones
    take_back(control)
    assert [zone.name for zone in floor.description.zones] == ["ice"]
    take_back(control)
    assert not floor.description.zones


def test_an_edit_of_another_client_stops_an_undo(control: Control) -> None:
    control.do(PAGE, EditMap(add_walls=((0, 1, 1, 1),)))
    control.do(botyard.control.USER, EditMap(add_walls=((0, 2, 1, 2),)))
    with pytest.raises(botyard.errors.WorldError, match="changed since"):
        take_back(control)
    assert len(control.sim.scene.segments) == 4


def test_special_walls_follow_their_rows(control: Control) -> None:
    glass = SpecialWalls(first=1, last=2, returns=Returns(laser=0))
    control.sim.replace_scene(Scene(segments=CORNER, special_walls=(glass,)))
    control.do(PAGE, EditMap(remove_walls=((0, 0, 4, 0),)))
    (one,) = control.sim.scene.special_walls
    assert (one.first, one.last) == (0, 1)
    control.do(PAGE, EditMap(remove_walls=((4, 0, 4, 4),)))
    assert not control.sim.scene.special_walls


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"remove_walls": ((9, 9, 8, 8),)}, "no wall from 9, 9 to 8, 8"),
        ({"remove_places": ("x",)}, 'no place "x"'),
    ],
)
def test_what_is_not_there_cannot_be_removed(
    control: Control, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnknownNameError, match=words):
        control.do(PAGE, EditMap(**change))
    assert len(control.sim.scene.segments) == 2


def test_arguments_and_permission_are_checked(control: Control) -> None:
    with pytest.raises(ArgumentError, match="add_walls: expected 4 numbers"):
        EditMap(add_walls=((1, 2, 3),))  # type: ignore[arg-type]
    with pytest.raises(DeniedError):
        control.do(Caller("ros", Level.DRIVE), EditMap())
