"""An ArMap written from any scene reads back as the same scene; rasters of scenes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from botyard.errors import WorldError
from botyard.formats import armap, armapwriter, rosmap
from botyard.formats.armapscene import from_scene, to_scene
from botyard.formats.registry import load_scene
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject, Returns, disc
from botyard.model.raster import rasterise
from botyard.model.scene import Area, GeoReference, Place, Scene, SpecialWalls
from botyard.model.tracing import squares_to_segments, trace


def again(scene: Scene) -> Scene:
    return to_scene(armap.parse(armapwriter.dumps(from_scene(scene)[0])))


def same(a: Scene, b: Scene) -> None:
    assert a.segments == pytest.approx(b.segments, abs=1e-9)
    assert a.points == pytest.approx(b.points, abs=1e-9)
    if len(a.points):
        assert a.resolution == pytest.approx(b.resolution)
    assert len(a.boxes) == len(b.boxes)
    for x, y in zip(a.boxes, b.boxes, strict=True):
        assert (x.returns, x.length, x.width) == (
            y.returns,
            pytest.approx(y.length),
            pytest.approx(y.width),
        )
        assert math.dist(x.pose[:2], y.pose[:2]) < 1e-6
        assert abs(math.sin(x.pose.th - y.pose.th)) < 1e-6

    for p, q in zip(a.places, b.places, strict=True):
        assert (p.kind, p.name) == (q.kind, q.name)
        assert tuple(p.pose) == pytest.approx(tuple(q.pose), abs=1e-6)

    for p, q in zip(a.areas, b.areas, strict=True):
        assert (p.kind, p.name) == (q.kind, q.name)
        assert np.array(p.corners) == pytest.approx(np.array(q.corners), abs=1e-6)

    assert (a.start is None) == (b.start is None)
    assert a.georeference == b.georeference


metres = st.floats(-500, 500).map(lambda v: round(v, 3))
angles = st.floats(-3.1, 3.1)
names = st.text(
    st.characters(codec="utf-8", categories=["L", "N"], include_characters=" -_"),
    max_size=8,
).map(str.strip)
poses = st.builds(Pose, metres, metres, angles)
sides = st.floats(0.05, 20).map(lambda v: round(v, 3))
colors = st.sampled_from(["#12ab34", "#ff0000"])
boxes = st.builds(
    BoxObject,
    name=st.just("x"),
    pose=poses,
    length=sides,
    width=sides,
    color=colors,
    returns=st.builds(
        Returns,
        obstacle=st.booleans(),
        laser=st.sampled_from([0, 1, 3, 33]),
        sonar=st.booleans(),
    ),
)
places = st.builds(
    Place,
    kind=st.sampled_from(["GoalWithHeading", "Dock", "RobotHome"]),
    name=names,
    pose=poses,
    has_heading=st.just(True),
)


@st.composite
def rectangles(draw: st.DrawFn) -> Area:
    x, y, w, h, th = draw(metres), draw(metres), draw(sides), draw(sides), draw(angles)
    c, s = math.cos(th), math.sin(th)
    corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
    return Area(
        kind="ForbiddenArea",
        name=draw(names),
        corners=tuple((c * a - s * b, s * a + c * b) for a, b in corners),
    )


scenes = st.builds(
    Scene,
    segments=arrays(
        np.float64, st.tuples(st.integers(0, 9), st.just(4)), elements=metres
    ).map(lambda a: a[(a[:, :2] != a[:, 2:]).any(axis=1)]),
    points=arrays(
        np.float64, st.tuples(st.integers(0, 9), st.just(2)), elements=metres
    ),
    resolution=st.sampled_from([0.02, 0.05]),
    boxes=st.lists(boxes, max_size=3).map(tuple),
    places=st.lists(places, max_size=3).map(tuple),
    areas=st.lists(
        rectangles()
        | st.builds(
            Area,
            kind=st.sampled_from(["ForbiddenLine", "Border"]),
            name=names,
            corners=st.tuples(st.tuples(metres, metres), st.tuples(metres, metres)),
        ),
        max_size=3,
    ).map(tuple),
    georeference=st.none()
    | st.builds(
        GeoReference, st.floats(-89, 89), st.floats(-179, 179), st.floats(-100, 5000)
    ),
)


@given(scenes)
def test_a_scene_written_and_read_is_the_same_scene(scene: Scene) -> None:
    found = again(scene)
    start = next(
        (p.pose for k in ("RobotHome", "Dock") for p in scene.places if p.kind == k),
        None,
    )
    same(found, replace(scene, start=start))


@given(scenes, poses)
def test_a_home_without_a_place_gets_one(scene: Scene, home: Pose) -> None:
    found = again(replace(scene, places=(), start=home))
    assert found.start is not None
    assert tuple(found.start) == pytest.approx(tuple(home), abs=1e-6)


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["columbia", "AMROffice", "office", "triangle", "ActivMediaLab"]
)
def test_real_maps(shared: Path, name: str) -> None:
    scene = load_scene(shared / f"data/maps/{name}.map")
    same(again(scene), scene)


def test_what_the_format_cannot_hold_is_told() -> None:
    scene = Scene(
        segments=np.array([[0.0, 0, 1, 0]]),
        special_walls=(SpecialWalls(first=0, last=1, returns=Returns(laser=0)),),
        boxes=(
            BoxObject(name="stone", pose=Pose(), length=1, width=1, parts=(disc(0.5),)),
            BoxObject(
                name="bright",
                pose=Pose(),
                length=1,
                width=1,
                returns=Returns(laser=2, fiducial=4),
                dynamics=DynamicsSpec(mass=1),
            ),
        ),
        areas=(
            Area(kind="Zone", name="z", corners=((0, 0), (1, 0), (0, 1))),
            Area(kind="Zone", name="kite", corners=((0, 0), (1, 0), (2, 2), (0, 1))),
        ),
        places=(
            Place(kind="Shelf", name="s", pose=Pose()),
            Place(kind="Goal", name='a"b', pose=Pose()),
        ),
        view=(0, 0, 1, 1),
    )
    _, notes = from_scene(scene)
    for words in (
        "boxes: names of 2 (stone …)",
        "boxes: masses of 1 (bright …)",
        "boxes: fiducials of 1 (bright …)",
        "kite: written as",
        "places: 2 will differ after the file is read again (Shelf s …)",
        "the initial view is lost",
    ):
        assert any(words in n for n in notes), (words, notes)

    assert len(notes) == 11
    assert any("1 walls with limited visibility" in n for n in notes)
    assert any("stone: its shape" in n for n in notes)


reflectors = st.builds(
    BoxObject,
    name=st.just("x"),
    pose=poses,
    length=sides,
    width=st.just(0.02),
    color=st.just("magenta"),
    returns=st.just(Returns(laser=2)),
)


@given(st.lists(reflectors, min_size=1, max_size=3).map(tuple))
def test_reflectors_are_lines_of_their_own(boxes: tuple[BoxObject, ...]) -> None:
    made, notes = from_scene(Scene(boxes=boxes))
    assert {c.type for c in made.cairns} == {"Reflector"} and made.infos == ()
    assert made.category == "2D-Map"
    assert not any("laser return" in note for note in notes)
    same(again(Scene(boxes=boxes)), Scene(boxes=boxes))


def test_what_is_written_as_something_near_it() -> None:
    """Boxes with the brightness of reflectors, and areas that are not rectangles."""
    scene = Scene(
        boxes=(
            BoxObject(
                name="b",
                pose=Pose(1, 2, 0.5),
                length=1,
                width=0.5,
                returns=Returns(laser=2),
            ),
        ),
        areas=(
            Area(
                kind="ForbiddenArea",
                name="triangle",
                corners=((2, -3), (4, -3), (2, 5)),
            ),
            Area(
                kind="ForbiddenArea",
                name="rhombus",
                corners=((6, 0), (8, -1), (10, 0), (8, 1)),
            ),
        ),
    )
    made, notes = from_scene(scene)
    assert made.category == "2D-Map-Ex", "it defines a type of sectors"
    found = again(scene)
    assert [b.returns.laser for b in found.boxes] == [3], "bright all the same"
    assert (
        "b: a laser return of 2 is written as 3, because the format cannot store 2 for a box"
        in notes
    )
    assert [a.corners for a in found.areas] == [
        ((2.0, -3.0), (4.0, -3.0), (4.0, 5.0), (2.0, 5.0)), ((6.0, -1.0), (10.0, -1.0), (10.0, 1.0), (6.0, 1.0)),
    ]  # fmt: skip
    assert sum("written as its bounding rectangle" in note for note in notes) == 2


# -- rasters


@given(
    arrays(
        np.bool_,
        st.tuples(st.integers(1, 15), st.integers(1, 15)),
        elements=st.booleans(),
    ),
    st.sampled_from([0.05, 0.1, 1.0]),
    metres,
    metres,
)
def test_what_was_traced_from_a_raster_gives_that_raster(
    solid: np.ndarray, resolution: float, x: float, y: float
) -> None:
    segments, traced = trace(solid, resolution, Pose(x, y, 0.0))
    raster = rasterise(Scene(segments=segments, traced=traced), resolution)
    assert np.array_equal(raster.solid, solid) and (raster.x, raster.y) == (x, y)


def test_points_fill_their_cells() -> None:
    points = np.array([[0.0, 0.0], [0.1, 0.0], [0.3, 0.2]])
    raster = rasterise(Scene(points=points, resolution=0.1), 0.1)
    assert np.argwhere(raster.solid).tolist() == [[0, 0], [0, 1], [2, 3]]
    finer = rasterise(
        Scene(
            points=points, resolution=0.1, segments=np.array([[0.0, 0.0, 0.33, 0.01]])
        ),
        0.05,
    )
    outline = squares_to_segments(points, 0.1)
    assert finer.solid.sum() >= 12
    assert len(outline)


def test_a_slanting_wall_marks_the_cells_that_it_goes_through() -> None:
    raster = rasterise(Scene(segments=np.array([[0.05, 0.05, 0.95, 0.35]])), 0.1)
    for x in np.linspace(0.05, 0.95, 200):
        y = 0.05 + (x - 0.05) / 3
        assert raster.solid[int((y - raster.y) / 0.1), int((x - raster.x) / 0.1)]

    assert raster.solid.sum() <= 14


def test_walls_that_nobody_bumps_into_or_scans_are_not_in_it() -> None:
    scene = Scene(
        segments=np.array([[0.0, 0.02, 1.0, 0.02], [0.0, 0.52, 1.0, 0.52]]),
        special_walls=(
            SpecialWalls(first=1, last=2, returns=Returns(obstacle=False, laser=0)),
        ),
    )
    assert (
        rasterise(scene, 0.1).solid.sum(axis=1)[:2].tolist() == [11, 0]
        or rasterise(scene, 0.1).solid[5:].sum() == 0
    )
    with pytest.raises(WorldError, match="coarser"):
        rasterise(scene, 1e-5)


def test_a_ros_map_written_and_read_is_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    solid = rng.random((30, 40)) < 0.3
    solid[0, 0] = solid[-1, -1] = True
    rosmap.write(tmp_path / "m.yaml", solid, 0.05, (-1.0, 2.5, 0.0))
    with Image.open(tmp_path / "m.pgm") as image:
        assert set(np.unique(np.asarray(image)).tolist()) == {0, rosmap.FREE_PIXEL}
    scene = load_scene(tmp_path / "m.yaml")
    raster = rasterise(scene, 0.05)
    assert (raster.solid == solid).all()
    assert (raster.x, raster.y) == pytest.approx((-1.0, 2.5))
    (tmp_path / "w.yaml").write_text(
        "botyard: 1\nmap: m.yaml\nwalls:\n- line: [[-0.9, 2.6], [0.9, 2.6]]\n"
    )
    raster = rasterise(load_scene(tmp_path / "w.yaml"), 0.05)
    others = np.delete(raster.solid, 2, axis=0)
    assert (others == np.delete(solid, 2, axis=0)).all() and raster.solid[
        2, 2:38
    ].all(), "in a scenario, with a wall"
    m = rosmap.parse((tmp_path / "m.yaml").read_text())
    assert rosmap.parse(rosmap.dumps(m)) == m


@given(
    st.builds(
        rosmap.RosMap,
        image=st.text(
            st.characters(codec="utf-8", exclude_categories=["C", "Z"]),
            min_size=1,
            max_size=10,
        ),
        resolution=st.floats(1e-3, 10),
        origin=st.tuples(metres, metres, angles),
        negate=st.booleans(),
        occupied_thresh=st.floats(0.5, 1),
        free_thresh=st.floats(0, 0.4),
        mode=st.sampled_from(rosmap.MODES),
    )
)
def test_yaml_of_ros_maps(m: rosmap.RosMap) -> None:
    assert rosmap.parse(rosmap.dumps(m)) == m
