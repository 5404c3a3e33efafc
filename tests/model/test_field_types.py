"""Descriptions made by programs refuse values of undeclared types and name the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

import numpy as np
import pytest

from botyard.errors import ArgumentError, BotyardError, ModelError
from botyard.geometry import Pose
from botyard.model.accessories import GripperSpec
from botyard.model.beams import ReflectorRule
from botyard.model.dynamics import DynamicsSpec, Gains, PoseController
from botyard.model.kinematics import Axes, MotionLimits
from botyard.model.library import load_laser, load_robot
from botyard.model.mapbuilder import MapBuilder
from botyard.model.obstacles import BoxObject, Returns, disc
from botyard.model.robot import CommandSpec
from botyard.model.scene import Area, GeoReference, Place, Scene, SpecialWalls
from botyard.sim.simulation import Simulation


def _descriptions() -> list[Any]:
    robot = load_robot("p3dx")
    assert robot.sonar is not None
    box = BoxObject(
        name="a",
        pose=Pose(0, 0, 0),
        length=1,
        width=2,
        dynamics=DynamicsSpec(mass=3),
        parts=(disc(1.0),),
    )
    place = Place(kind="Goal", name="g", pose=Pose(0, 0, 0))
    area = Area(kind="ForbiddenLine", name="", corners=((0, 0), (1, 1)))
    return [
        robot,
        robot.limits,
        robot.commands,
        robot.pioneer,
        robot.battery,
        robot.sonar,
        robot.sonar.transducers[0],
        load_laser("lms200"),
        Axes(),
        Returns(),
        ReflectorRule(),
        DynamicsSpec(mass=1),
        Gains(),
        PoseController(),
        GripperSpec(),
        box,
        place,
        area,
        GeoReference(1, 2, 3),
        SpecialWalls(first=0, last=0, returns=Returns()),
        Scene(boxes=(box,), places=(place,), areas=(area,)),
    ]


class Odd:
    """A value that no field accepts."""

    def __repr__(self) -> str:
        return "odd"


FIELDS: Final = [
    (one, f.name) for one in _descriptions() for f in fields(one) if f.init
]


@pytest.mark.parametrize(
    ("one", "name"),
    FIELDS,
    ids=[f"{type(one).__name__}.{name}" for one, name in FIELDS],
)
def test_a_field_of_another_type_is_named(one: Any, name: str) -> None:
    value = getattr(one, name)
    wrong: list[Any] = [Odd()]
    if isinstance(value, (float, int, str)):
        wrong += [Odd, [1.0], (1.0,), None] if value is not None else []
    if isinstance(value, (float, int)):
        wrong += ["1", 1j]
    if isinstance(value, float):
        wrong += [True]
    if isinstance(value, tuple):
        wrong += [3, Odd, "ab", (Odd(),), (*value[:-1], Odd())]
    if is_dataclass(value):
        wrong += [3, (1.0, 2.0, 3.0), "ab", {}]
    for odd in wrong:
        with pytest.raises(
            BotyardError,
            match=rf"^({type(one).__name__}: )?{name}(\[0\])?: expected .+, found ",
        ):
            replace(one, **{name: odd})


def test_numbers_of_numpy_are_numbers() -> None:
    axes = Axes(np.float32(1.5), np.int64(2), 3)  # type: ignore[arg-type]
    assert axes.as_tuple() == (1.5, 2, 3)
    assert CommandSpec(latency=np.float64(0.5)).latency == 0.5
    assert Returns(laser=np.int32(2), sonar=np.bool_(False)).mask == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: MotionLimits(max_speed=1.0),
            "MotionLimits: max_speed: expected an Axes, found 1.0",
        ),  # type: ignore[arg-type]
        (
            lambda: replace(load_robot("p3dx"), lasers=[]),
            r"lasers: expected a tuple of LaserSpec, found \[\]",
        ),
        (
            lambda: replace(load_robot("p3dx"), sonar=3),
            "sonar: expected a SonarSpec or None, found 3",
        ),
        (
            lambda: replace(load_robot("p3dx"), outline=((0, 0), 3)),
            "outline: expected a tuple of tuples of 2 numbers",
        ),
        (
            lambda: DynamicsSpec(mass=1, center=(1,)),
            "center: expected a tuple of 2 numbers or None",
        ),  # type: ignore[arg-type]
        (lambda: Returns(sonar=1), "sonar: expected True or False, found 1"),  # type: ignore[arg-type]
        (lambda: Returns(laser=1.5), "laser: expected a whole number, found 1.5"),  # type: ignore[arg-type]
        (
            lambda: BoxObject(name="a", pose=(0, 0, 0), length=1, width=1),
            "BoxObject: pose: expected a Pose",
        ),  # type: ignore[arg-type]
    ],
)
def test_what_was_expected_is_said_in_words(
    make: Callable[[], object], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


@pytest.mark.parametrize("side", [-1.0, np.nan, np.inf, 1e10])
def test_sides_of_boxes_are_in_range(side: float) -> None:
    for name in ("length", "width"):
        with pytest.raises(ModelError, match=f"^box crate: {name} must be from 0 to"):
            BoxObject(
                name="crate",
                pose=Pose(0, 0, 0),
                **{"length": 1.0, "width": 1.0, name: side},
            )


WRONG_CALLS: Final[list[Callable[[MapBuilder], object]]] = [
    lambda b: MapBuilder(3),  # type: ignore[arg-type]
    lambda b: MapBuilder("a", "b"),  # type: ignore[arg-type]
    lambda b: b.line("a", "b"),  # type: ignore[arg-type]
    lambda b: b.line((0, 0), (1, "x")),  # type: ignore[arg-type]
    lambda b: b.line((0, 0), (1, 2, 3)),  # type: ignore[arg-type]
    lambda b: b.polygon((0, 0), (1, np.nan), (1, 1)),
    lambda b: b.rectangle("a", 0, 1, 1),  # type: ignore[arg-type]
    lambda b: b.rectangle(0, 0, np.inf, 1),
    lambda b: b.disc(0, 0, -1),
    lambda b: b.disc(0, 0, 1, 2.5),  # type: ignore[arg-type]
    lambda b: b.wall((0, 0), (1,)),  # type: ignore[arg-type]
    lambda b: b.wall((0, 0), (5, 0), doors=3),  # type: ignore[arg-type]
    lambda b: b.wall((0, 0), (5, 0), doors=[(1, "x")]),  # type: ignore[list-item]
    lambda b: b.wall((0, 0), (5, 0), thickness=-1),
    lambda b: b.room(0, 0, "a", 1),  # type: ignore[arg-type]
    lambda b: b.room(0, 0, 1, 1, doors=[(1, 1)]),  # type: ignore[arg-type]
    lambda b: b.corridor(3, 1),  # type: ignore[arg-type]
    lambda b: b.corridor([(0, 0), (1, 0)], "a"),  # type: ignore[arg-type]
    lambda b: b.box(0, 0, 1, "a"),  # type: ignore[arg-type]
    lambda b: b.box(0, np.nan, 1, 1),
    lambda b: b.obstacles("a"),  # type: ignore[arg-type]
    lambda b: b.obstacles(1, size=3),  # type: ignore[arg-type]
    lambda b: b.obstacles(1, area=(0, 1)),  # type: ignore[arg-type]
    lambda b: b.obstacles(1, seed="a"),  # type: ignore[arg-type]
    lambda b: b.place(3, "a", 0, 0),  # type: ignore[arg-type]
    lambda b: b.goal(3, 0, 0),  # type: ignore[arg-type]
    lambda b: b.goal("a", 0, 0, "x"),  # type: ignore[arg-type]
    lambda b: b.home("a", 0),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("call", range(len(WRONG_CALLS)))
def test_a_map_builder_refuses_what_is_no_number_and_keeps_its_map(call: int) -> None:
    b = MapBuilder("a").rectangle(0, 0, 5, 5)
    with pytest.raises(BotyardError, match=r": expected "):
        WRONG_CALLS[call](b)
    assert len(b.scene().segments) == 4 and not b.scene().boxes and not b.scene().places
    Simulation(b.scene())
