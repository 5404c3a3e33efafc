"""DXF drawings against the picture of ezdxf's drawing add-on, which resolves blocks,
layers and clips itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import ezdxf
import numpy as np
import pytest
from ezdxf.addons.drawing import Frontend, RenderContext
from ezdxf.addons.drawing.backend import Backend
from ezdxf.addons.drawing.config import Configuration, HatchPolicy, TextPolicy
from ezdxf.render.forms import cube
from ezdxf.xclip import XClip
from scipy.interpolate import BSpline

from botyard.errors import MapError
from botyard.formats.base import Options, Source
from botyard.formats.registry import read_world
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene
from tests.formats.comparing import Canvas, check_same, drawn

LOW, HIGH, SCALE = (-12.0, -12.0), (22.0, 22.0), 20.0
Drawing = Any
Fill = Callable[[Drawing], object]


class Painted(Backend):
    """Backend of ezdxf's drawing add-on that paints on a canvas."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__()
        self.canvas = canvas

    def set_background(self, color: Any) -> None: ...
    def draw_point(self, pos: Any, properties: Any) -> None: ...
    def draw_image(self, image_data: Any, properties: Any) -> None: ...
    def clear(self) -> None: ...

    def draw_line(self, start: Any, end: Any, properties: Any) -> None:
        self.canvas.line([start, end])

    def draw_solid_lines(self, lines: Any, properties: Any) -> None:
        for start, end in lines:
            self.canvas.line([start, end])

    def draw_path(self, path: Any, properties: Any) -> None:
        self.canvas.line(path.flattening(0.002))

    def draw_filled_polygon(self, points: Any, properties: Any) -> None:
        self.canvas.fill(points.vertices())

    def draw_filled_paths(self, paths: Any, properties: Any) -> None:
        for path in paths:
            self.canvas.fill(path.flattening(0.002))


def arcs(d: Drawing) -> None:
    space = d.modelspace()
    space.add_circle((0, 0), 5)
    space.add_arc((8, 8), 4, 30, 300)
    space.add_arc((8, 8), 3, 300, 30)
    space.add_arc((-5, -5), 3, 350, 10)
    space.add_circle((14, 14), 2, dxfattribs={"extrusion": (0, 0, -1)})


def bulges(d: Drawing) -> None:
    space = d.modelspace()
    space.add_lwpolyline(
        [(0, 0, 0.5), (6, 0, -1), (6, 6, 0), (0, 6, 0.2)], format="xyb", close=True
    )
    space.add_lwpolyline([(8, 0, 1), (12, 0, 1), (8, 0, 0)], format="xyb")
    space.add_polyline2d(
        [(-8, -8, 0.3), (-2, -8, 0), (-2, -2, -0.4)], format="xyb", close=True
    )


def splines(d: Drawing) -> None:
    space = d.modelspace()
    space.add_spline([(0, 0), (3, 5), (6, -2), (9, 4), (12, 0)])
    space.add_open_spline([(0, 10), (2, 16), (6, 4), (9, 14), (12, 10)], degree=3)
    space.add_rational_spline([(0, -8), (4, -2), (8, -8)], weights=[1, 4, 1], degree=2)


def ellipses(d: Drawing) -> None:
    space = d.modelspace()
    space.add_ellipse((0, 0), (6, 2), 0.4)
    space.add_ellipse((10, 10), (0, 5), 0.5, 0.3, 4.0)
    space.add_ellipse((10, 0), (3, 0), 1.0, 4.0, 1.0)


def desk(d: Drawing) -> Any:
    block = d.blocks.new("DESK", base_point=(1, 1))
    block.add_lwpolyline([(0, 0), (4, 0), (4, 2), (0, 2)], close=True)
    block.add_circle((1, 1), 0.7)
    block.add_arc((3, 1), 0.6, 20, 200)
    block.add_lwpolyline([(0, 2, 0.6), (4, 2, 0)], format="xyb")
    return block


def turned_blocks(d: Drawing) -> None:
    desk(d)
    for k in range(5):
        d.modelspace().add_blockref(
            "DESK", (-8 + 6 * k, 4 * (k % 2)), dxfattribs={"rotation": 37 * k}
        )


def scaled_blocks(d: Drawing) -> None:
    desk(d)
    add = d.modelspace().add_blockref
    add("DESK", (0, 0), dxfattribs={"xscale": 2, "yscale": 0.7, "rotation": 20})
    add("DESK", (-6, -6), dxfattribs={"xscale": 0.5, "yscale": 1.5})
    add("DESK", (10, 10), dxfattribs={"xscale": 1.5, "yscale": 1.5, "rotation": 200})


def mirrored_blocks(d: Drawing) -> None:
    desk(d)
    add = d.modelspace().add_blockref
    add("DESK", (0, 0), dxfattribs={"xscale": -1})
    add("DESK", (0, 6), dxfattribs={"yscale": -1.2, "xscale": 1.2, "rotation": 30})
    add("DESK", (8, 6), dxfattribs={"extrusion": (0, 0, -1)})


def nested_blocks(d: Drawing) -> None:
    desk(d)
    room = d.blocks.new("ROOM")
    room.add_blockref("DESK", (2, 2), dxfattribs={"rotation": 45})
    room.add_blockref(
        "DESK", (5, 5), dxfattribs={"xscale": -0.5, "yscale": 0.5, "rotation": 10}
    )
    room.add_line((0, 0), (8, 8))
    add = d.modelspace().add_blockref
    add("ROOM", (0, 0), dxfattribs={"rotation": 30})
    add("ROOM", (-4, -4), dxfattribs={"xscale": -1, "yscale": 1, "rotation": 110})


def rows_of_blocks(d: Drawing) -> None:
    desk(d)
    grid = {
        "row_count": 3,
        "column_count": 2,
        "row_spacing": 4,
        "column_spacing": 6,
        "rotation": 15,
        "xscale": 0.8,
    }
    d.modelspace().add_blockref("DESK", (-4, -4), dxfattribs=grid)


def wide_lines(d: Drawing) -> None:
    space = d.modelspace()
    space.add_lwpolyline([(-10, -10), (-2, -10)], dxfattribs={"const_width": 1})
    space.add_lwpolyline([(0, -10), (8, -10), (8, -4)], dxfattribs={"const_width": 0.8})
    space.add_lwpolyline(
        [(-10, 0), (-2, 0), (-2, 8), (-10, 8)],
        close=True,
        dxfattribs={"const_width": 1.2},
    )
    space.add_lwpolyline(
        [(2, 2, 1, 0), (8, 2, 0, 2), (8, 8, 2, 0.5), (2, 12, 0, 0)], format="xyse"
    )
    space.add_polyline2d(
        [(12, 0), (18, 0), (18, 6)],
        dxfattribs={"default_start_width": 1, "default_end_width": 1},
    )


def wide_arcs(d: Drawing) -> None:
    space = d.modelspace()
    space.add_lwpolyline(
        [(-8, 0, 0, 1, 1), (0, 0, 1, 1, 0), (0, 8, 1, 1, 0)],
        format="xybse",
        dxfattribs={"const_width": 1},
    )
    space.add_lwpolyline(
        [(6, 4, 1), (16, 4, 1)],
        format="xyb",
        close=True,
        dxfattribs={"const_width": 0.6},
    )


def wide_lines_in_blocks(d: Drawing) -> None:
    block = d.blocks.new("WALL")
    block.add_lwpolyline([(0, 0), (5, 0), (5, 3)], dxfattribs={"const_width": 0.5})
    add = d.modelspace().add_blockref
    add("WALL", (0, 0), dxfattribs={"rotation": 33})
    add("WALL", (-4, 6), dxfattribs={"xscale": -1.4, "yscale": 1.4})


def meshes(d: Drawing) -> None:
    space = d.modelspace()
    cube().scale_uniform(4).render_polyface(space)
    cube().scale_uniform(3).translate(8, 8, 0).render_mesh(space)
    net = space.add_polymesh((4, 3))
    for m in range(4):
        for n in range(3):
            net.set_mesh_vertex((m, n), (-10 + 2 * m, -10 + 2 * n + 0.3 * m, 0))

    space.add_3dface([(10, -8), (14, -8), (14, -4), (10, -4)])
    space.add_3dface([(16, -8), (20, -8), (18, -4)])


def faces_with_hidden_edges(d: Drawing) -> None:
    space = d.modelspace()
    space.add_3dface(
        [(0, 0), (6, 0), (6, 6), (0, 6)], dxfattribs={"invisible_edges": 1 + 4}
    )
    space.add_3dface(
        [(8, 0), (14, 0), (14, 6), (8, 6)], dxfattribs={"invisible_edges": 8}
    )


def solids(d: Drawing) -> None:
    space = d.modelspace()
    space.add_solid([(0, 0), (6, 0), (0, 4), (6, 4)])
    space.add_trace([(8, 0), (14, 1), (8, 4), (14, 6)])
    space.add_solid([(-8, -8), (-2, -8), (-5, -3)])


def layers(d: Drawing) -> None:
    d.layers.add("OFF").off()
    d.layers.add("Frozen").freeze()
    d.layers.add("SEEN")
    space = d.modelspace()
    for k, name in enumerate(("OFF", "frozen", "SEEN", "Off", "nowhere")):
        space.add_line((0, k), (8, k), dxfattribs={"layer": name})
    space.add_line((0, 9), (8, 9), dxfattribs={"invisible": 1})


def layers_of_blocks(d: Drawing) -> None:
    d.layers.add("OFF").off()
    d.layers.add("SEEN")
    d.layers.get("0").freeze()
    inner = d.blocks.new("INNER")
    inner.add_line((0, 0), (3, 0))
    inner.add_line((0, 1), (3, 1), dxfattribs={"layer": "SEEN"})
    inner.add_line((0, 2), (3, 2), dxfattribs={"layer": "OFF"})
    inner.add_circle((1, -1), 0.5, dxfattribs={"invisible": 1})
    outer = d.blocks.new("OUTER")
    outer.add_blockref("INNER", (0, 0))
    outer.add_blockref("INNER", (4, 0), dxfattribs={"layer": "SEEN"})
    outer.add_blockref("INNER", (8, 0), dxfattribs={"layer": "OFF"})
    add = d.modelspace().add_blockref
    for k, name in enumerate(("SEEN", "OFF")):
        add("OUTER", (-8, 6 * k), dxfattribs={"layer": name})
        add("OUTER", (5, 6 * k), dxfattribs={"layer": name, "invisible": k})


def clipped_blocks(d: Drawing) -> None:
    d.header["$XCLIPFRAME"] = 0
    desk(d)
    room = d.blocks.new("ROOM")
    room.add_blockref("DESK", (1, 1), dxfattribs={"xscale": 2, "yscale": 2})
    room.add_line((-3, -3), (9, 9))
    room.add_circle((3, 3), 2.8)
    first = d.modelspace().add_blockref("ROOM", (-8, -8))
    XClip(first).set_block_clipping_path([(0, 0), (5, 3)])
    second = d.modelspace().add_blockref("ROOM", (6, 6), dxfattribs={"rotation": 30})
    XClip(second).set_block_clipping_path([(0, 0), (6, 0), (6, 6), (3, 2), (0, 6)])
    third = d.modelspace().add_blockref("ROOM", (6, -8))
    XClip(third).set_block_clipping_path([(0, 0), (5, 3)])
    XClip(third).disable_clipping()


def clips_in_blocks(d: Drawing) -> None:
    d.header["$XCLIPFRAME"] = 0
    inner = d.blocks.new("INNER")
    for k in range(6):
        inner.add_line((-3, k), (9, k))
    outer = d.blocks.new("OUTER")
    clipped = outer.add_blockref("INNER", (0, 0), dxfattribs={"rotation": 20})
    XClip(clipped).set_block_clipping_path([(0, -1), (5, 4.5)])
    outer.add_line((0, 0), (0, 6))
    whole = d.modelspace().add_blockref(
        "OUTER", (2, 2), dxfattribs={"rotation": 60, "xscale": 1.2, "yscale": 1.2}
    )
    XClip(whole).set_block_clipping_path([(-1, -1), (3, 8)])


def compound_lines(d: Drawing) -> None:
    space = d.modelspace()
    space.add_mline([(-8, -8), (0, -8), (0, 2), (8, 6)], dxfattribs={"scale_factor": 2})
    space.add_polyline3d([(-8, 4, 0), (-4, 8, 3), (-8, 10, 1)], close=True)
    space.add_lwpolyline(
        [(10, 0), (16, 0), (16, 6)], dxfattribs={"extrusion": (0, 0, -1)}
    )


def annotations(d: Drawing) -> None:
    space = d.modelspace()
    space.add_line((0, 0), (8, 8))
    space.add_text("north", dxfattribs={"insert": (0, 4), "height": 2})
    space.add_mtext("south", dxfattribs={"insert": (0, -4), "char_height": 2})
    space.add_hatch().paths.add_polyline_path([(10, 0), (14, 0), (14, 4)])
    space.add_point((12, 12))


def curves_in_stretched_blocks(d: Drawing) -> None:
    block = d.blocks.new("ROUND")
    block.add_circle((0, 0), 2)
    block.add_ellipse((5, 0), (2, 1), 0.5)
    block.add_spline([(0, 3), (2, 5), (4, 2), (6, 4)])
    block.add_lwpolyline([(0, -3, 1), (3, -3, -0.5), (6, -4, 0)], format="xyb")
    add = d.modelspace().add_blockref
    add("ROUND", (-4, 0), dxfattribs={"xscale": 1.5, "yscale": 0.5, "rotation": 25})
    add("ROUND", (4, 10), dxfattribs={"xscale": -0.8, "yscale": 1.3, "rotation": 70})


DRAWINGS: list[Fill] = [
    arcs,
    bulges,
    splines,
    ellipses,
    turned_blocks,
    scaled_blocks,
    mirrored_blocks,
    nested_blocks,
    rows_of_blocks,
    wide_lines,
    wide_arcs,
    wide_lines_in_blocks,
    meshes,
    faces_with_hidden_edges,
    solids,
    layers,
    layers_of_blocks,
    clipped_blocks,
    clips_in_blocks,
    compound_lines,
    annotations,
    curves_in_stretched_blocks,
]


def made(fill: Fill, form: str = "asc") -> tuple[Drawing, bytes]:
    document = ezdxf.new("R2010", units=6)
    fill(document)
    if form == "bin":
        stream = io.BytesIO()
        document.write(stream, fmt="bin")
        return document, stream.getvalue()

    text = io.StringIO()
    document.write(text)
    return document, text.getvalue().encode()


@pytest.mark.parametrize("fill", DRAWINGS, ids=lambda fill: fill.__name__)
def test_a_drawing_is_what_others_draw(fill: Fill) -> None:
    document, data = made(fill)
    theirs = Canvas(LOW, HIGH, SCALE)
    config = Configuration(
        hatch_policy=HatchPolicy.IGNORE,
        text_policy=TextPolicy.IGNORE,
        max_flattening_distance=0.002,
    )
    Frontend(RenderContext(document), Painted(theirs), config).draw_layout(
        document.modelspace()
    )
    ours = drawn(
        read_world(Source("a.dxf", data), Options()).scene.segments,
        Canvas(LOW, HIGH, SCALE),
    )
    check_same(ours, theirs.mask)


@pytest.mark.parametrize("fill", DRAWINGS, ids=lambda fill: fill.__name__)
def test_a_binary_drawing_is_the_same(fill: Fill) -> None:
    """See the DXF reference, "Binary DXF Files"."""
    text, binary = (
        read_world(Source("a.dxf", made(fill, form)[1]), Options()).scene
        for form in ("asc", "bin")
    )
    assert binary.segments == pytest.approx(text.segments, abs=1e-6)


# -- cases that the add-on lacks or draws wrongly


def scene_of(fill: Fill, told: list[str] | None = None) -> Scene:
    warn = (told if told is not None else []).append
    return read_world(Source("a.dxf", made(fill)[1]), Options(warn=warn)).scene


def test_a_band_is_closed_all_around() -> None:
    """Rays from the middle of a room, and from next to a wall, meet the near side of
    each wall.
    """

    def fill(d: Drawing) -> None:
        d.modelspace().add_lwpolyline(
            [(0, 0), (5, 0), (5, 5), (0, 5)],
            close=True,
            dxfattribs={"const_width": 0.2},
        )

    segments = scene_of(fill).segments
    inner, outer = (
        [[a, a, b, a], [b, a, b, b], [a, b, b, b], [a, a, a, b]]
        for a, b in ((0.1, 4.9), (-0.1, 5.1))
    )
    ends = np.sort(segments.reshape(-1, 2, 2), axis=1)
    assert sorted(map(tuple, ends.reshape(-1, 4).round(6).tolist())) == sorted(
        map(tuple, [*inner, *outer])
    )


def test_a_band_without_a_width_is_its_middle_line() -> None:
    def fill(d: Drawing) -> None:
        d.modelspace().add_lwpolyline(
            [(0, 0, 0, 0), (4, 0, 0, 0), (4, 4, 1, 1), (4, 8, 0, 0)], format="xyse"
        )

    assert [0.0, 0.0, 4.0, 0.0] in scene_of(fill).segments.tolist()


def test_a_polyface_shows_its_sides_and_no_diagonals() -> None:
    def fill(d: Drawing) -> None:
        d.modelspace().add_polyline2d([])
        face = d.modelspace().add_polyface()
        face.append_faces(
            [[(0, 0, 0), (1, 0, 0), (1, 1, 0)], [(0, 0, 0), (1, 1, 0), (0, 1, 0)]]
        )
        first, second = (v for v in face.vertices if v.is_face_record)
        # The diagonals run from (1, 1) to (0, 0), and from (0, 0) to (1, 1).
        first.dxf.vtx2 = -first.dxf.vtx2
        second.dxf.vtx0 = -second.dxf.vtx0

    ends = (
        np.sort(scene_of(fill).segments.reshape(-1, 2, 2), axis=1)
        .reshape(-1, 4)
        .tolist()
    )
    assert sorted(ends) == [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]]


@pytest.mark.parametrize(
    ("layer", "inside", "walls", "seen"),
    [
        ("FROZEN", "0", 1, None),
        ("FROZEN", "W", 1, None),
        ("OFF", "0", 1, None),
        ("OFF", "W", 2, None),
        ("ignore_chairs", "0", 1, None),
        ("ignore_chairs", "W", 1, None),
        ("windows_glass", "0", 2, Returns(laser=0)),
        ("windows_glass", "W", 2, None),
        ("W", "0", 2, None),
        ("W", "frozen", 1, None),
        ("W", "off", 1, None),
        ("W", "Glass", 2, Returns(laser=0)),
    ],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_layers_of_what_is_inserted(
    layer: str, inside: str, walls: int, seen: Returns | None, rows: int
) -> None:
    """AutoCAD: layer 0 of a block means the layer of its INSERT.

    An INSERT on a frozen layer is hidden with all its content.
    """

    def fill(d: Drawing) -> None:
        d.layers.add("FROZEN").freeze()
        d.layers.add("OFF").off()
        d.layers.get("0").freeze()
        d.blocks.new("B").add_line((0, 0), (1, 0), dxfattribs={"layer": inside})
        d.modelspace().add_blockref(
            "B",
            (5, 5),
            dxfattribs={"layer": layer, "row_count": rows, "row_spacing": 2},
        )
        d.modelspace().add_line((0, 0), (2, 0), dxfattribs={"layer": "WALLS"})

    scene = scene_of(fill)
    assert len(scene.segments) == 1 + (walls - 1) * rows
    assert [s.returns for s in scene.special_walls] == ([] if seen is None else [seen])


def test_a_closed_spline_is_drawn_within_its_knots() -> None:
    """Against scipy.

    The first knots differ; the curve starts at the knot of its degree (The NURBS Book,
    chapter 2).
    """
    corners = [(-8, -8, 0), (-2, -8, 0), (-2, -2, 0), (-8, -2, 0)]

    def fill(d: Drawing) -> None:
        d.modelspace().add_spline().set_closed(corners)

    curve = BSpline(
        np.arange(11.0), np.array([*corners, *corners[:3]], float)[:, :2], 3
    )
    theirs, ours = Canvas(LOW, HIGH, SCALE), Canvas(LOW, HIGH, SCALE)
    theirs.line(curve(np.linspace(3.0, 7.0, 400)).tolist())
    check_same(drawn(scene_of(fill).segments, ours), theirs.mask, tolerance=1)


def test_a_helix_is_a_circle_from_above() -> None:
    segments = scene_of(lambda d: d.modelspace().add_helix(3, 2, 1.5)).segments
    middles = (segments[:, :2] + segments[:, 2:]) / 2
    assert np.abs(np.hypot(*middles.T) - 3).max() < 0.006


def test_the_frame_of_a_fitted_spline_is_not_drawn() -> None:
    """DXF reference, VERTEX:

    flag 16 is a control point of the frame, visible only with SPLFRAME.
    """

    def fill(d: Drawing) -> None:
        curve = d.modelspace().add_polyline2d(
            [(0, 0), (2, 1.5), (4, 2), (6, 1.5), (8, 0)]
        )
        curve.dxf.flags |= 4
        for vertex in curve.vertices:
            vertex.dxf.flags = 8
        curve.append_vertices([(0, 0), (4, 4), (8, 0)], dxfattribs={"flags": 16})
        mesh = d.modelspace().add_polyline3d([(0, 5, 1), (4, 6, 1)])
        mesh.dxf.flags |= 4
        mesh.append_vertices(
            [(0, 5, 1), (2, 9, 1), (4, 6, 1)], dxfattribs={"flags": 16 | 32}
        )

    segments = scene_of(fill).segments
    assert (len(segments), segments[:, 1::2].max()) == (5, 6.0)


def test_blocks_that_are_in_other_files_are_told() -> None:
    """Architects draw each building in its own file and refer to it."""

    def fill(d: Drawing) -> None:
        d.add_xref_def("building.dwg", "BUILDING")
        d.modelspace().add_line((0, 0), (5, 0))
        d.modelspace().add_blockref("BUILDING", (0, 0))
        d.modelspace().add_blockref("building", (9, 0))

    told: list[str] = []
    assert len(scene_of(fill, told).segments) == 1
    assert (
        told[0]
        == 'a.dxf: ignored entities that have no lines: 2 INSERT of another file ("building.dwg")'
    )


def test_entities_without_lines_are_told() -> None:
    told: list[str] = []

    def fill(d: Drawing) -> None:
        d.modelspace().add_line((0, 0), (1, 1))
        d.modelspace().add_ray((0, 0), (1, 0))
        d.modelspace().add_xline((0, 0), (1, 0))

    assert len(scene_of(fill, told).segments) == 1
    assert told[0] == "a.dxf: ignored entities that have no lines: 1 RAY, 1 XLINE"


def test_a_drawing_of_a_surveyor_is_moved_to_the_origin() -> None:
    told: list[str] = []

    def fill(d: Drawing) -> None:
        d.modelspace().add_lwpolyline(
            [(465_100, 5_430_000), (465_110, 5_430_000), (465_110, 5_430_005)]
        )
        d.modelspace().add_circle((465_105, 5_430_002), 1)
        d.modelspace().add_lwpolyline(
            [(465_100, 5_430_004), (465_104, 5_430_004)],
            dxfattribs={"const_width": 0.2},
        )

    assert scene_of(fill, told).bounds == pytest.approx((100, 0, 110, 5))
    assert "moved by (-465000, -5430000) m" in told[0]


@pytest.mark.parametrize(
    "data",
    [
        b"AutoCAD Binary DXF\r\n\x1a\0" + b"\0" * 40 + b"EOF",
        made(arcs, "bin")[1][:900] + b"EOF\0",
    ],
)
def test_damaged_binary_drawings(data: bytes) -> None:
    with pytest.raises(MapError, match=r"^a\.dxf: (not a DXF drawing|expected lines)"):
        read_world(Source("a.dxf", data))
