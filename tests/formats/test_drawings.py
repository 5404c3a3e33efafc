"""Maps from lines: Saphira worlds, GeoJSON, SVG and DXF drawings."""

from __future__ import annotations

import contextlib
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import ezdxf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.devices.gps import geodetic
from botyard.errors import BudgetError, MapError
from botyard.formats import dxf as dxf_format
from botyard.formats import dxfblocks, saphira
from botyard.formats.base import Options, Source
from botyard.formats.budget import Budget, Meter
from botyard.formats.drawing import MAX_SAGITTA, layer_returns
from botyard.formats.registry import load_scene, read_world
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

# -- Saphira


def test_a_saphira_world() -> None:
    text = (
        "; an office\nwidth 10000\n0 0 5000 0\n5000 0 5000 2500 ; the east "
        "wall\n\nposition 1000 500 90\nfour words in it\n"
    )
    world = saphira.parse(text)
    assert world.lines == [(0, 0, 5000, 0), (5000, 0, 5000, 2500)]
    scene = read_world(Source("a.wld", text.encode())).scene
    assert scene.segments.tolist() == [[0, 0, 5, 0], [5, 0, 5, 2.5]]
    assert scene.start is not None
    assert tuple(scene.start) == pytest.approx((1.0, 0.5, math.pi / 2))
    assert [(p.kind, p.name) for p in scene.places] == [("RobotHome", "Home")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a.wld: expected walls"),
        ("0 0 1 1\nposition 1 2\n", 'a.wld:2: expected "position x y th"'),
        ("0 0 nan 1", "expected walls"),
    ],
)
def test_damaged_saphira_worlds(text: str, complaint: str) -> None:
    with pytest.raises(MapError) as error:
        read_world(Source("a.wld", text.encode()))
    assert complaint in str(error.value)


@given(st.text(max_size=200))
def test_any_text_is_a_world_or_refused(text: str) -> None:
    try:
        saphira.parse(text)
    except MapError:
        return


# -- GeoJSON


def geo(*features: dict, **options) -> Scene:
    text = json.dumps({"type": "FeatureCollection", "features": list(features)})
    return read_world(Source("a.geojson", text.encode()), Options(**options)).scene


def feature(shape: str, coordinates, **properties) -> dict:
    return {
        "type": "Feature",
        "geometry": {"type": shape, "coordinates": coordinates},
        "properties": properties,
    }


SQUARE = [[0, 0], [200, 0], [200, 300], [0, 300], [0, 0]]


def test_planar_geojson() -> None:
    scene = geo(
        feature("LineString", [[0, 0], [500, 0], [500, 10]]),
        feature(
            "Polygon", [SQUARE, [[10, 10], [20, 10], [20, 20], [10, 10]]], laser=False
        ),
        feature("MultiLineString", [[[1, 1], [2, 2]], [[3, 3], [4, 4]]]),
        feature("Point", [7, 8], name="Kitchen"),
        feature("Point", [1, 2], kind="RobotHome", heading=90),
        feature("MultiPoint", [[3, 4], [5, 6]], name=12345),
        feature("MultiPolygon", [[SQUARE], [SQUARE, SQUARE]]),
    )
    assert len(scene.segments) == 2 + 2 + 4 + 3 + 3 * 4
    assert scene.georeference is None
    (special,) = scene.special_walls
    assert special.returns == Returns(laser=0)
    assert scene.segments[special.first : special.last].max() == 300
    assert [(p.kind, p.name, p.has_heading) for p in scene.places] == [
        ("Goal", "Kitchen", False),
        ("RobotHome", "", True),
        ("Goal", "12345", False),
        ("Goal", "12345", False),
    ]
    assert [p.pose[:2] for p in scene.places] == [(7, 8), (1, 2), (3, 4), (5, 6)]
    assert scene.start is not None
    assert tuple(scene.start) == pytest.approx((1, 2, math.pi / 2))


def test_degrees_become_metres_around_the_middle() -> None:
    """The reference is the geodetic transformation of GPS readings."""
    corners = [
        [11.5755, 48.1375],
        [11.5775, 48.1375],
        [11.5775, 48.1390],
        [11.5755, 48.1375],
    ]
    scene = geo(feature("LineString", corners))
    assert scene.georeference is not None
    for (x, y), (longitude, latitude) in zip(
        scene.segments[:, :2].tolist(), corners[:3], strict=True
    ):
        lat, lon, _ = geodetic(scene.georeference, x, y)
        assert (lat, lon) == pytest.approx((latitude, longitude), abs=1e-8), (
            "1e-8° is a millimetre"
        )


def test_the_user_says_what_small_numbers_are() -> None:
    told: list[str] = []
    assert geo(feature("LineString", [[0, 0], [5, 5]]), planar=True).bounds == (
        0,
        0,
        5,
        5,
    )
    scene = geo(feature("LineString", [[0, 0], [0.5, 0.5]]), warn=told.append)
    assert scene.bounds is not None
    assert scene.bounds[2] > 10_000
    assert "--planar" in told[0]
    with pytest.raises(BudgetError, match=r"555\d\d\d.* m across"):
        geo(feature("LineString", [[0, 0], [5, 5]]), warn=told.append)
    assert "--planar" in told[1]


CORNER = [[0, 0], [10, 0], [10, 5]]


def moved(x: float, y: float) -> list[list[float]]:
    return [[px + x, py + y] for px, py in CORNER]


def with_crs(name: object, coordinates: list[list[float]], **options) -> Scene:
    """Return GeoJSON with a CRS in the form of 2008, section 3, as QGIS and ogr2ogr
    write it.
    """
    root = {
        "type": "FeatureCollection",
        "features": [feature("LineString", coordinates)],
    }
    root["crs"] = (
        name
        if isinstance(name, dict)
        else {"type": "name", "properties": {"name": name}}
    )
    return read_world(
        Source("a.geojson", json.dumps(root).encode()), Options(**options)
    ).scene


@pytest.mark.parametrize(
    "name",
    [
        "urn:ogc:def:crs:EPSG::3857",
        "EPSG:25832",
        "urn:ogc:def:crs:EPSG:9.8.1:2056",
        "http://www.opengis.net/def/crs/EPSG/0/25832",
    ],
)
def test_a_file_that_says_so_is_in_metres(name: str) -> None:
    scene = with_crs(name, CORNER)
    assert scene.bounds == (0, 0, 10, 5)
    assert scene.georeference is None


@pytest.mark.parametrize(
    ("code", "unit"),
    [
        # The codes are US survey feet, international feet, Clarke's feet, metres, and no code.
        (2263, 1200 / 3937),
        (2276, 1200 / 3937),
        (6588, 1200 / 3937),
        (2222, 0.3048),
        (3407, 0.3047972654),
        (2056, 1.0),
        (99999, 1.0),
    ],
)
def test_a_file_in_the_feet_of_a_grid_is_scaled_to_metres(
    code: int, unit: float
) -> None:
    told: list[str] = []
    line = moved(980_100.0 / unit, 190_100.0 / unit)
    scene = with_crs(f"urn:ogc:def:crs:EPSG::{code}", line, warn=told.append)
    assert np.ptp(scene.segments.reshape(-1, 2), axis=0) == pytest.approx(
        [10 * unit, 5 * unit], abs=1e-6
    )
    assert "moved by (-980000, -190000) m" in told[0]


@pytest.mark.parametrize(
    "name",
    [
        "urn:ogc:def:crs:OGC:1.3:CRS84",
        "EPSG:4326",
        "urn:ogc:def:crs:EPSG::4258",
        "EPSG:9755",
        "urn:ogc:def:crs:EPSG::6783",
        {"type": "EPSG", "properties": {"code": 4326}},
    ],
)
def test_a_file_that_says_so_is_in_degrees(name: object) -> None:
    degrees = [[11.5, 48.0], [11.5001, 48.0], [11.5001, 48.0001]]
    scene = with_crs(name, degrees)
    assert scene.georeference is not None
    assert scene.bounds == geo(feature("LineString", degrees)).bounds


@pytest.mark.parametrize(
    "name",
    [
        {"type": "link", "properties": {"href": "x"}},
        "somewhere",
        {"type": "name"},
        {"properties": 3},
    ],
)
def test_a_reference_system_that_is_not_known_is_told(name: object) -> None:
    told: list[str] = []
    assert with_crs(name, [[500, 0], [510, 5]], warn=told.append).bounds == (
        500,
        0,
        510,
        5,
    )
    assert "the size of the coordinates decides between degrees and metres" in told[0]


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:EPSG::25832", None])
def test_coordinates_of_a_country_are_moved_to_the_origin(name: str | None) -> None:
    told: list[str] = []
    line = moved(465_250, 5_430_125)
    scene = (
        with_crs(name, line, warn=told.append)
        if name
        else geo(feature("LineString", line), warn=told.append)
    )
    assert scene.bounds == (250, 125, 260, 130)
    assert told == [
        "a.geojson: the drawing is 5430130 m from its origin, so it was moved by (-465000, -5430000) m"
    ]
    with pytest.raises(BudgetError, match="m across"):
        with_crs("EPSG:25832", [[0, 0], *line])


def test_places_are_moved_with_the_walls() -> None:
    scene = geo(
        feature("LineString", moved(465_000, 5_430_000)),
        feature("Point", [465_003, 5_430_004], name="A"),
    )
    assert [tuple(p.pose[:2]) for p in scene.places] == [(3, 4)]


def test_metres_of_web_maps_become_those_on_the_ground() -> None:
    """At 48° north they are longer by 1 / cos 48° (IOGP 373-7-2, method 1024)."""
    radius = 6378137.0
    degrees = [[11.5755, 48.1375], [11.5775, 48.1375], [11.5775, 48.1390]]
    line = [
        [
            radius * math.radians(lon),
            radius * math.log(math.tan(math.pi / 4 + math.radians(lat) / 2)),
        ]
        for lon, lat in degrees
    ]
    scene = with_crs("urn:ogc:def:crs:EPSG::3857", line)
    assert scene.segments == pytest.approx(
        geo(feature("LineString", degrees)).segments, abs=1e-6
    )
    assert scene.georeference is not None
    assert scene.georeference.latitude == pytest.approx(48.13825, abs=1e-9)


def test_geometry_that_is_not_used_is_left_out_with_a_note() -> None:
    told: list[str] = []
    scene = geo(
        feature("LineString", [[500, 0], [510, 5]]),
        feature("CircularString", [[0, 0], [1, 1], [2, 0]]),
        feature("Point", []),
        feature("Polygon", []),
        warn=told.append,
    )
    assert scene.bounds == (500, 0, 510, 5)
    assert (
        'ignored objects whose types RFC 7946 does not define: ["CircularString"]'
        in told[0]
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"type": "FeatureCollection",\n "features": [}', "a.geojson:2: not JSON"),
        (
            '{"type": "FeatureCollection", "features": 5, "coordinates": 0}',
            "$.features: expected an array, found 5",
        ),
        (
            '{"type": "Blob", "coordinates": []}',
            'expected a type of RFC 7946, found "Blob"',
        ),
        (
            '{"type": "LineString", "coordinates": [[1], [2]]}',
            "expected positions [x, y]",
        ),
        (
            '{"type": "LineString", "coordinates": [[1, 1e300], [2, 2]]}',
            "too large: found 1e+300 m across",
        ),
        (
            '{"type": "Point", "coordinates": [1, 2]}',
            "expected lines or polygons, found none",
        ),
        (
            '{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [[1, 2]]}}',
            "$.geometry",
        ),
    ],
)
def test_damaged_geojson(text: str, complaint: str) -> None:
    with pytest.raises(MapError) as error:
        read_world(Source("a.geojson", text.encode()))
    assert complaint in str(error.value)


# -- layers


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("Walls", Returns()),
        ("windows_glass", Returns(laser=0)),
        ("A-NOSONAR", Returns(sonar=False)),
        ("reflector 3", Returns(laser=2)),
        ("line noobstacle", Returns(obstacle=False)),
        ("Defpoints", None),
        ("ignore-furniture", None),
        ("glassware", Returns()),
    ],
)
def test_layers_say_who_sees_them(name: str, seen: Returns | None) -> None:
    assert layer_returns(name) == seen


# -- SVG

SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape"
  width="{width}" height="{height}" viewBox="0 0 400 200">
  <rect x="0" y="0" width="400" height="200"/>
  <g inkscape:label="glass" transform="translate(100 0)"><line x1="0" y1="50" x2="0" y2="150"/></g>
  <g id="ignore"><line x1="1" y1="1" x2="2" y2="2"/></g>
  <g style="display: none"><line x1="3" y1="3" x2="4" y2="4"/></g>
  <circle cx="300" cy="100" r="20"/>
  <path d="M 200 20 h 10 v 10 z"/>
  <defs><polyline id="p" points="0,0 5,0"/></defs><use href="#p" x="50" y="190"/>
</svg>"""


@pytest.mark.parametrize(
    ("width", "height"), [("400", "200"), ("40cm", "20cm"), ("100%", "100%")]
)
def test_an_svg_drawing(width: str, height: str) -> None:
    scene = read_world(
        Source("a.svg", SVG.format(width=width, height=height).encode()),
        Options(resolution=0.05),
    ).scene
    assert scene.bounds == pytest.approx((0.0, 0.0, 20.0, 10.0))
    (glass,) = scene.special_walls
    assert glass.returns == Returns(laser=0)
    assert scene.segments[glass.first : glass.last] == pytest.approx(
        np.array([[5.0, 7.5, 5.0, 2.5]])
    )
    centre = np.array([15.0, 5.0])
    radii = np.hypot(*(scene.segments[:, :2] - centre).T)
    on_circle = np.abs(radii - 1.0) < 1e-3
    assert on_circle.sum() >= 12
    middles = (scene.segments[on_circle][:, :2] + scene.segments[on_circle][:, 2:]) / 2
    assert np.hypot(*(middles - centre).T).min() > 1.0 - MAX_SAGITTA
    lines = {tuple(np.round(s, 6)) for s in scene.segments.tolist()}
    assert (2.5, 0.5, 2.75, 0.5) in lines, "the block"
    assert (10.0, 9.0, 10.5, 9.0) in lines, "the path"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not an SVG drawing"),
        ("<svg", "not an SVG drawing"),
        ("hello", "not an SVG drawing"),
        (
            '<svg xmlns="http://www.w3.org/2000/svg"><text>x</text></svg>',
            "expected lines",
        ),
    ],
)
def test_damaged_svg(text: str, complaint: str) -> None:
    with pytest.raises(MapError, match=r"^a\.svg:(1:)? ") as error:
        read_world(Source("a.svg", text.encode()))
    assert complaint in str(error.value)


# -- DXF


def dxf(units: int = 4) -> bytes:
    document = ezdxf.new("R2010", units=units)
    space = document.modelspace()
    space.add_line((0, 0), (10000, 0))
    space.add_lwpolyline([(0, 0), (0, 5000), (10000, 5000)], close=False)
    space.add_circle((5000, 2500), 1000, dxfattribs={"layer": "pillars"})
    space.add_arc((2000, 2000), 500, 0, 90)
    document.layers.add("glass front")
    space.add_line((10000, 0), (10000, 5000), dxfattribs={"layer": "glass front"})
    document.layers.add("hidden").off()
    space.add_line((-9000, 0), (-9000, 1), dxfattribs={"layer": "hidden"})
    space.add_text("note", dxfattribs={"insert": (-8000, 0)})
    block = document.blocks.new("DESK")
    block.add_lwpolyline([(0, 0), (1600, 0), (1600, 800), (0, 800)], close=True)
    space.add_blockref("DESK", (7000, 1000), dxfattribs={"rotation": 90})
    out = io.StringIO()
    document.write(out)
    return out.getvalue().encode()


def test_a_dxf_drawing() -> None:
    scene = read_world(Source("a.dxf", dxf())).scene
    assert scene.bounds == pytest.approx((0.0, 0.0, 10.0, 5.0)), (
        "millimetres by its header; the hidden layer is not there"
    )
    (glass,) = scene.special_walls
    assert scene.segments[glass.first : glass.last].tolist() == [[10.0, 0.0, 10.0, 5.0]]
    corners = {tuple(np.round(p, 6)) for p in scene.segments[:, :2].tolist()}
    assert {(7.0, 1.0), (7.0, 2.6), (6.2, 2.6), (6.2, 1.0)} <= corners, (
        "the block, turned"
    )
    on_circle = np.abs(np.hypot(*(scene.segments[:, :2] - [5.0, 2.5]).T) - 1.0) < 1e-6
    assert on_circle.sum() > 12


def test_units_of_a_dxf_drawing() -> None:
    told: list[str] = []
    assert read_world(Source("a.dxf", dxf(6))).scene.bounds == pytest.approx(
        (0, 0, 10000, 5000)
    ), "metres"
    assert read_world(
        Source("a.dxf", dxf(0)), Options(resolution=0.001, warn=told.append)
    ).scene.bounds == pytest.approx((0, 0, 10, 5))
    assert told[0].endswith("walls from 3 layers")


def test_a_robot_runs_in_a_drawing(tmp_path: Path) -> None:
    (tmp_path / "plan.dxf").write_bytes(dxf())
    sim = Simulation(load_scene(tmp_path / "plan.dxf"), sensor_noise=False)
    robot = sim.add_robot("p3dx", pose=(8.6, 2.0, 0.0))
    laser, sonar = robot.laser.ranges[90], robot.sonar.ranges.min()
    assert laser == robot.spec.lasers[0].range_max, (
        "the laser looks through the glass, …"
    )
    assert sonar < 1.4, "… the sonar does not"


@pytest.mark.parametrize(
    "data",
    [b"", b"junk", b"0\nSECTION\n2\nENTITIES\n0\nLINE\n", b"\x00" * 100, dxf()[:700]],
)
def test_damaged_dxf(data: bytes) -> None:
    line = data.count(b"\n") + 1
    what = "it is truncated" if b"SECTION" in data else "it is not a DXF drawing"
    with pytest.raises(
        MapError,
        match=rf"^a\.dxf:{line}: expected EOF at the end of the file, found none: {what}",
    ):
        read_world(Source("a.dxf", data))

    with pytest.raises(
        MapError, match=r"^a\.dxf: not a DXF drawing|^a\.dxf: expected lines"
    ):
        read_world(Source("a.dxf", data + b"\n0\nEOF\n"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            AttributeError("'NoneType' object has no attribute 'dxf'"),
            "the file is damaged",
        ),
        (KeyError("VPORT"), "the file is damaged"),
        (IndexError("list index out of range"), "the file is damaged"),
        (AssertionError(), "the file is damaged"),
        (
            TypeError("name has to be a string, got <class 'NoneType'>"),
            "the file is damaged",
        ),
        (ValueError("Invalid handle Z7."), "Invalid handle Z7."),
    ],
)
def test_errors_speak_of_the_file_and_not_of_code(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_data: bytes) -> None:
        raise error

    monkeypatch.setattr(dxf_format, "_document", fail)
    with pytest.raises(MapError) as caught:
        read_world(Source("a.dxf", dxf()))
    assert str(caught.value) == f"a.dxf: not a DXF drawing that can be read: {reason}"


# -- work is counted before it is done


def drawn(fill) -> bytes:
    drawing = ezdxf.new(units=6)
    fill(drawing)
    stream = io.StringIO()
    drawing.write(stream)
    return stream.getvalue().encode()


def waves(n: int) -> list[tuple[float, float]]:
    return [(k * 0.1, math.sin(k)) for k in range(n)]


def blocks(times: int, *fill):
    def draw(drawing) -> None:
        block = drawing.blocks.new("X")
        for one in fill:
            one(block)
        for k in range(times):
            drawing.modelspace().add_blockref("X", (k, 0))

    return draw


def net(layout) -> None:
    with layout.add_mesh().edit_data() as data:
        data.vertices = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
        data.faces = [[0, 1, 2] * 500]


COSTLY = {
    "fit points": lambda d: [d.modelspace().add_spline(waves(300)) for _ in range(3)],
    "control points": lambda d: d.modelspace().add_open_spline(waves(900)),
    "ellipses": lambda d: [
        d.modelspace().add_ellipse((k, 0), (500, 0), 0.5) for k in range(20)
    ],
    "circles": lambda d: [d.modelspace().add_circle((k, 0), 5000) for k in range(8)],
    "corners in a block": blocks(20, lambda b: b.add_lwpolyline(waves(60))),
    "things in a block": blocks(20, *[lambda b: b.add_line((0, 0), (1, 1))] * 40),
    "a mesh in a block": blocks(10, net),
}


@pytest.mark.parametrize("what", COSTLY)
def test_drawings_are_refused_for_their_work_not_for_their_length(what: str) -> None:
    """Each file has few elements for its length, but the library takes long for each
    element.
    """
    data = drawn(COSTLY[what])
    with pytest.raises(BudgetError, match="--max-read entities") as error:
        read_world(
            Source("a.dxf", data), Options(budget=replace(Budget(), entities=9_000))
        )

    assert error.value.found > 9_000
    # Some examples have no line, which is a MapError.
    with contextlib.suppress(MapError):
        read_world(
            Source("a.dxf", data), Options(budget=replace(Budget(), entities=300_000))
        )


def test_what_is_not_drawn_is_not_copied_with_its_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ezdxf.entities import Hatch

    def copied(*_: object, **__: object) -> None:
        raise AssertionError("copied")

    data = drawn(
        blocks(
            3,
            lambda b: b.add_hatch().paths.add_polyline_path(waves(50)),
            lambda b: b.add_line((0, 0), (1, 1)),
        )
    )
    monkeypatch.setattr(Hatch, "copy_data", copied)
    assert len(read_world(Source("a.dxf", data), Options()).scene.segments) == 3


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("M0 0" + "l1 2z" * 1500, 900),
        ("M0 0" + "l1 2" * 1500 + "z" * 300, 750),
        (
            "M0 0"
            + "".join(f"A{k % 7 + 1} 3 30 0 1 {k % 97} {k % 89}" for k in range(300)),
            1_200,
        ),
        (
            "M0 0" + "".join(f"C1 {k % 5} 30 0 {k % 97} {k % 89}" for k in range(300)),
            4_000,
        ),
        ("M0 0h1" + '"/><path d="M0 0h1' * 500, 6_000),
    ],
)
def test_paths_are_refused_for_their_work_not_for_their_length(
    path: str, most: int
) -> None:
    data = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="{path}"/></svg>'.encode()
    with pytest.raises(BudgetError, match="--max-read entities"):
        read_world(
            Source("a.svg", data), Options(budget=replace(Budget(), entities=most))
        )

    assert len(
        read_world(
            Source("a.svg", data), Options(budget=replace(Budget(), entities=100_000))
        ).scene.segments
    )


def test_figures_that_begin_anew_cost_nothing_more() -> None:
    path = "m1 1l1 2z" * 1000
    data = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="{path}"/></svg>'.encode()
    found = read_world(
        Source("a.svg", data), Options(budget=replace(Budget(), entities=4_200))
    ).scene
    assert len(found.segments) == 2000


def test_uses_of_blocks_are_counted_through_all_levels() -> None:
    """A row of six desks and a single one, three times:

    three uses of the office and twenty-one of the desk.
    """
    document = ezdxf.new(units=6)
    desk, office = document.blocks.new("DESK"), document.blocks.new("OFFICE")
    for k in range(2):
        desk.add_line((0, k), (1, k))
    office.add_blockref(
        "DESK",
        (0, 0),
        dxfattribs={
            "row_count": 3,
            "column_count": 2,
            "row_spacing": 2,
            "column_spacing": 3,
        },
    )
    office.add_blockref("DESK", (0, -9))
    for k in range(3):
        document.modelspace().add_blockref("OFFICE", (0, 20 * k))

    def counted(**most: int) -> None:
        dxfblocks.count_blocks(document, Meter(Budget(**most), "a.dxf"))

    lines = dxfblocks.COPY_COST + dxfblocks.copy_cost(desk[0])
    inserts = [dxfblocks.COPY_COST + dxfblocks.copy_cost(one) for one in office]
    # Each use of a block counts as an entity as well.
    things = 3 + 3 * (1 + sum(inserts) + 7 * (1 + 2 * lines))
    counted(references=24, entities=things, nesting=3)
    for limit, found in (("references", 24), ("entities", things), ("nesting", 3)):
        with pytest.raises(BudgetError) as caught:
            counted(**{limit: found - 1})
        assert (caught.value.limit, caught.value.found) == (limit, found)


# -- SVG: what a browser shows, whatever else is in the file (pictures of Chromium:
# tests/page/test_svg_pictures.py)


def lines_of(
    inside: str, root: str = 'width="400" height="400"', told: list[str] | None = None
) -> Scene:
    text = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {root}>{inside}</svg>'
    return read_world(
        Source("a.svg", text.encode()),
        Options(warn=(told if told is not None else []).append),
    ).scene


LINE = '<line x1="0" y1="0" x2="50" y2="0"/>'


@pytest.mark.parametrize(
    ("root", "bounds"),
    [
        ('width="800" height="600" viewBox="0 0 400 400"', (0, 0, 4, 4)),
        ('width="200mm" viewBox="0 0 400 200"', (0, -2, 4, 2)),
        (
            'width="800" height="600" viewBox="0 0 400 400" preserveAspectRatio="none"',
            (0, 0, 4, 4),
        ),
        (
            'width="800" height="600" viewBox="0 0 400 400" preserveAspectRatio="xMinYMin slice"',
            (0, 0, 4, 4),
        ),
        ('width="800" height="600" viewBox="-100 -50 400 500"', (1, 0.5, 5, 4.5)),
        ('viewBox="0 0 400 400"', (0, 0, 4, 4)),
        ('width="500" height="600"', (0, 2, 4, 6)),
        ('width="500" height="600" viewBox="0 0 400"', (0, 2, 4, 6)),
    ],
)
def test_a_unit_is_that_of_the_view_box(root: str, bounds: tuple[float, ...]) -> None:
    assert lines_of('<rect width="400" height="400"/>', root).bounds == pytest.approx(
        bounds
    )


@pytest.mark.parametrize(
    ("more", "root"),
    [
        (
            "",
            f'width="400" height="400" content="{"x" * 20_000}" data-y="{"x" * 20_000}"',
        ),
        ("<path/>", ""),
        ("<path d='none'/>", ""),
        ("<rect/>", ""),
        ("<circle/>", ""),
        (
            f"<style>@font-face{{font-family:a;src:url(data:font/woff2;base64,{'A' * 20_000})}}</style>",
            "",
        ),
        ("<style>@media print{.a{fill:red}}</style>", ""),
        ("<style>@keyframes a{from{fill:red}to{fill:blue}}</style>", ""),
        ("<style>} .a{ /* </style>", ""),
        ("<image href='data:image/png;base64," + "A" * 20_000 + "'/>", ""),
        ("<script>a &lt; b { } { {</script>", ""),
        ("<g inkscape:label='x' xmlns:q='urn:q' q:z='1'/>", ""),
        ("<symbol><path d='M0 0L100 100'/></symbol>", ""),
        ("<marker><path d='M0 0L100 100'/></marker>", ""),
        ("<mask><rect width='100' height='100'/></mask>", ""),
        ("<g visibility='hidden'><rect width='100' height='100'/></g>", ""),
        ("<switch><g/><line x2='300'/></switch>", ""),
    ],
)
def test_what_is_not_drawn_is_no_wall_and_no_reason_to_refuse_a_file(
    more: str, root: str
) -> None:
    scene = lines_of(LINE + more, root or 'width="400" height="400"')
    assert scene.segments.tolist() == [[0, 4, 0.5, 4]]


@pytest.mark.parametrize(
    "paint",
    [
        "transparent", "rgba(0,0,0,0)", "rgb(10% 20% 30% / 0%)", "hsla(9, 1%, 1%, .0)", "#0000", "#FFFFFF00", "NONE",
    ],
)  # fmt: skip
def test_shapes_with_transparent_paints_are_no_walls(paint: str) -> None:
    square = '<rect width="100" height="100" {}/>'
    scene = lines_of(
        LINE
        + square.format(f'fill="{paint}"')
        + square.format(f'style="fill:none;stroke:{paint}"')
    )
    assert len(scene.segments) == 1


@pytest.mark.parametrize(
    "paint", ["rgb(0,0,0)", "#100", "#010000", "rgba(0,0,0,.1)", "rgb(0 0 0 / 5%)"]
)
def test_shapes_with_dark_paints_are_walls(paint: str) -> None:
    assert (
        len(lines_of(f'<rect width="100" height="100" fill="{paint}"/>').segments) == 4
    )


def test_numbers_of_transformations_need_no_separators() -> None:
    """Programs that shorten files write ``translate(10-20)``."""
    told: list[str] = []
    scene = lines_of(
        '<g transform="matrix(1 0 0-1-100 100)translate(200.5.5)"><line x2="100"/></g>',
        told=told,
    )
    assert scene.segments[0] == pytest.approx([1.005, 3.005, 2.005, 3.005])
    assert not any("transformations" in text for text in told)


def test_the_rule_of_a_clip_path_says_what_is_inside() -> None:
    ring = "M0 0h300v300h-300zM100 100h100v100h-100z"
    for rule, pieces in (("nonzero", 1), ("evenodd", 2)):
        clip = f'<clipPath id="c"><path clip-rule="{rule}" d="{ring}"/></clipPath>'
        assert (
            len(
                lines_of(
                    f'{clip}<line y1="150" x2="300" y2="150" clip-path="url( #c )"/>'
                ).segments
            )
            == pieces
        )


def test_styles_for_print_do_not_count() -> None:
    style = '<style media="{}">line {{ display: none }}</style>'
    assert len(lines_of(style.format("print") + LINE).segments) == 1
    with pytest.raises(MapError, match="found none"):
        lines_of(style.format("print, Screen") + LINE)


def test_conditions_of_styles_are_told() -> None:
    told: list[str] = []
    lines_of(
        "<style>@media (max-width: 9px) { line { display: none } }</style>" + LINE,
        told=told,
    )
    assert "a.svg: conditional rules of style sheets are ignored" in told


def test_a_symbol_is_fitted_into_what_uses_it() -> None:
    inside = (
        '<symbol id="a" viewBox="0 0 10 10"><rect width="10" height="10"/></symbol>'
    )
    scene = lines_of(
        f'{inside}<use xlink:href="#a" x="100" y="100" width="50" height="50"/>'
    )
    assert (len(scene.segments), scene.bounds) == (
        4,
        pytest.approx((1.0, 2.5, 1.5, 3.0)),
    )


def test_what_is_left_out_of_an_svg_drawing_is_told_once() -> None:
    told: list[str] = []
    hidden = '<path d="M0 0L9 9" fill="none"/>'
    lines_of(
        f'{LINE}{hidden * 2}<g mask="url(#m)">{LINE}</g><use href="x.svg#a"/><style>a:hover{{fill:red}}</style>',
        told=told,
    )
    assert [text.removeprefix("a.svg: ") for text in told[1:-1]] == [
        "1 selectors of style sheets are ignored: they are not supported",
        "shapes that are neither filled nor stroked are ignored",
        "masks are not applied",
        'some "use" elements refer to elements that are not in the file',
    ]


def test_files_whose_names_have_prefixes_or_none() -> None:
    """ElementTree writes ``ns0:svg``; fragments of pages have no declarations."""
    for text in (
        '<ns0:svg xmlns:ns0="http://www.w3.org/2000/svg" width="9" height="9"><ns0:line x2="5"/></ns0:svg>',
        '<svg width="9" height="9"><line x2="5"/><use xlink:href="#a"/></svg>',
        '\n\n<?xml version="1.0"?><svg:svg width="9" height="9"><svg:line x2="5"/><x:line y2="3"/></svg:svg>',
    ):
        assert len(read_world(Source("a.svg", text.encode())).scene.segments) == 1
