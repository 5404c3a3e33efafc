"""Maps from rasters: plain pictures, MovingAI grids, occupancy grids."""

from __future__ import annotations

import io
import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from botyard.errors import MapError
from botyard.formats import bitmap, movingai, occupancy
from botyard.formats.base import Options, Source, read_source
from botyard.formats.registry import load_scene, read_world
from botyard.model.raster import rasterise
from botyard.model.scene import Scene
from botyard.model.tracing import mask_to_rectangles, mask_to_segments
from botyard.sim.simulation import Simulation

MASKS = arrays(
    np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12)), elements=st.booleans()
)


def png(pixels: np.ndarray, name: str = "plan.png") -> Source:
    data = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(
        data, Path(name).suffix[1:].replace("pgm", "ppm")
    )
    return Source(name, data.getvalue())


def filled(scene: Scene, resolution: float, shape: tuple[int, int]) -> np.ndarray:
    """Return the solid cells of a scene from the origin on, by its raster."""
    out = np.zeros(shape, bool)
    raster = rasterise(scene, resolution)
    row, column = round(raster.y / resolution), round(raster.x / resolution)
    h, w = raster.solid.shape
    out[row : row + h, column : column + w] = raster.solid
    return out


# -- plain pictures


@given(MASKS)
def test_traced_pictures_are_the_picture_cell_by_cell(dark: np.ndarray) -> None:
    scene = read_world(png(np.where(dark, 0, 255)), Options(resolution=0.05)).scene
    if not dark.any():
        assert len(scene.segments) == 0
        return

    assert (filled(scene, 0.05, dark.shape) == dark[::-1]).all()


@given(MASKS)
def test_points_are_the_same_cells(dark: np.ndarray) -> None:
    scene = bitmap.read_points(png(np.where(dark, 0, 255)), Options(resolution=0.05))
    rows, columns = np.nonzero(dark[::-1])
    assert scene.points == pytest.approx(np.stack([columns, rows], axis=1) * 0.05)
    assert scene.resolution == 0.05


def test_threshold_and_inversion() -> None:
    grey = np.array([[0, 100, 127, 128, 200, 255]])
    source = png(grey)
    assert bitmap.solid_pixels(source, Options()).tolist() == [
        [True, True, True, False, False, False]
    ]
    assert bitmap.solid_pixels(source, Options(threshold=0.9)).tolist() == [
        [True] * 5 + [False]
    ]
    assert bitmap.solid_pixels(source, Options(invert=True)).tolist() == [
        [False, False, False, True, True, True]
    ]


@pytest.mark.parametrize("suffix", [".png", ".pgm", ".bmp", ".gif", ".tiff"])
def test_formats_of_pictures(suffix: str) -> None:
    scene = read_world(
        png(np.array([[0, 255]]), f"a{suffix}"), Options(resolution=1.0)
    ).scene
    assert scene.bounds == (0.0, 0.0, 1.0, 1.0)


def dark_cells(
    image: Image.Image, suffix: str, tmp_path: Path, **saved: object
) -> list[list[bool]]:
    """Return which pixels of a picture are solid, row 0 at the top."""
    path = tmp_path / f"a{suffix}"
    image.save(path, **saved)
    return bitmap.solid_pixels(read_source(path), Options())[::-1].tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0.0, 1.0, 0.4, 0.6, math.nan]], np.float32),
        np.array([[0.0, 255.0, 100.0, 200.0, math.inf]], np.float32),
        np.array([[0.0, 65535.0, 30000.0, 40000.0, 65535.0]], np.float32),
        np.array([[0, 255, 100, 200, 255]], np.int32),
        np.array([[0, 1, 0, 1, 1]], np.int32),
        np.array([[-1, 32767, 10000, 30000, 32767]], np.int32),
        np.array([[0, 2**31 - 1, 2**29, 2**31 - 9, 2**31 - 1]], np.int32),
    ],
    ids=str,
)
def test_pictures_of_wide_numbers_are_scaled_to_what_is_white_in_them(
    values: np.ndarray, tmp_path: Path
) -> None:
    found = dark_cells(Image.fromarray(values), ".tiff", tmp_path)
    assert found == [[True, False, True, False, False]]


def tiff(bits: int, numbers: list[int], *, white: int = 1, kind: int = 1) -> bytes:
    """A TIFF file of one row (TIFF 6.0, section 3).

    `white` is its PhotometricInterpretation (0: WhiteIsZero), `kind` its SampleFormat
    (1: unsigned, 3: floating point, whose bits `numbers` are).
    """
    text = "".join(f"{number:0{bits}b}" for number in numbers)
    text += "0" * (-len(text) % 8)
    data = int(text, 2).to_bytes(len(text) // 8, "big")
    # Numbers of whole bytes are stored in the byte order of the file, which is little-endian.
    if bits in (16, 32):
        data = np.frombuffer(data, f">u{bits // 8}").astype(f"<u{bits // 8}").tobytes()
    tags = {
        256: len(numbers),
        257: 1,
        258: bits,
        259: 1,
        262: white,
        273: 8,
        277: 1,
        278: 1,
        279: len(data),
        339: kind,
    }
    rows = b"".join(struct.pack("<HHII", t, 4, 1, v) for t, v in tags.items())
    return (
        b"II*\0"
        + struct.pack("<I", 8 + len(data))
        + data
        + struct.pack("<H", len(tags))
        + rows
        + struct.pack("<I", 0)
    )


def floats(*values: float) -> list[int]:
    return [int.from_bytes(struct.pack(">f", v), "big") for v in values]


@pytest.mark.parametrize(
    "data",
    [
        tiff(12, [0, 4095, 1500, 3000]),
        tiff(16, [0, 65535, 25000, 45000]),
        tiff(16, [65535, 0, 45000, 25000], white=0),
        tiff(32, [0, 2**32 - 1, 2**30, 3 * 2**30]),
        tiff(32, floats(0.0, 1.0, 0.4, 0.6), kind=3),
        tiff(32, floats(1.0, 0.0, 0.6, 0.4), kind=3, white=0),
        tiff(8, [255, 0, 200, 30], white=0),
    ],
    ids=["12", "16", "16-white", "32", "float", "float-white", "8-white"],
)
def test_tags_of_tiff_say_which_number_is_white(data: bytes) -> None:
    found = bitmap.solid_pixels(Source("a.tif", data), Options())
    assert found.tolist() == [[True, False, True, False]]


def test_a_picture_of_unknown_kind_is_told_without_python() -> None:
    with pytest.raises(MapError) as caught:
        bitmap.solid_pixels(Source("a.tif", tiff(14, [0, 1, 2, 3])), Options())
    assert "expected PNG, PPM" in str(caught.value)
    assert "object at" not in str(caught.value)


def test_a_dark_picture_of_16_bits_is_dark(tmp_path: Path) -> None:
    """PNM states the white value; the brightest pixel does not define it."""
    (tmp_path / "a.pgm").write_bytes(b"P5\n2 1\n65535\n\x00\x00\x00\xff")
    assert bitmap.solid_pixels(read_source(tmp_path / "a.pgm"), Options()).tolist() == [
        [True, True]
    ]


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tiff", ".webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_upright(suffix: str, orientation: int, tmp_path: Path) -> None:
    """The upper left quarter is dark when viewed; the file stores it rotated and says
    so (EXIF 2.32, tag 0x0112).
    """
    seen = Image.new("L", (32, 16), 255)
    seen.paste(0, (0, 0, 16, 8))
    turned = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }.get(orientation)
    stored = seen if turned is None else seen.transpose(turned)
    exif = Image.Exif()
    exif[0x0112] = orientation
    dark = np.array(dark_cells(stored.convert("RGB"), suffix, tmp_path, exif=exif))
    assert dark.shape == (16, 32)
    assert dark[:7, :15].all() and not dark[9:].any() and not dark[:, 17:].any()


@pytest.mark.parametrize("invert", [False, True])
def test_transparent_pixels_are_not_solid(invert: bool, tmp_path: Path) -> None:
    pixels = np.zeros((1, 3, 4), np.uint8)
    pixels[0, :2] = 255 if invert else 0
    pixels[0, :, 3] = 255, 0, 0
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert bitmap.solid_pixels(
        read_source(tmp_path / "a.png"), Options(invert=invert)
    ).tolist() == [[True, False, False]]


@pytest.mark.parametrize(
    "text",
    [b"P1\n2 1\n1 0\n", b"P2\n2 1\n255\n0 255\n", b"P3\n2 1\n255\n0 0 0 255 255 255\n"],
)
def test_plain_pnm(text: bytes) -> None:
    assert read_world(Source("a.pnm", text), Options(resolution=1.0)).scene.bounds == (
        0.0,
        0.0,
        1.0,
        1.0,
    )


def test_the_size_of_a_pixel_is_told_when_it_is_assumed() -> None:
    told: list[str] = []
    read_world(png(np.array([[0, 255]])), Options(warn=told.append))
    assert told == [
        "plan.png: assuming 0.05 m a pixel (--resolution sets another value)"
    ]
    told.clear()
    read_world(png(np.array([[255, 255]])), Options(warn=told.append, resolution=1.0))
    assert "no pixel is solid" in told[0]


@pytest.mark.parametrize(
    "data", [b"", b"P5\n9 9\n255\n", b"\x89PNG\r\n\x1a\n", b"P5 99999999 99999999 255 "]
)
def test_damaged_pictures_are_refused(data: bytes) -> None:
    with pytest.raises(MapError, match=r"^a\.png: "):
        read_world(Source("a.png", data))


def test_a_large_picture(tmp_path: Path) -> None:
    """4000 × 4000: bench/worlds.py measures the time; here the result is checked."""
    rng = np.random.default_rng(1)
    coarse = rng.random((400, 400)) < 0.1
    dark = np.kron(coarse, np.ones((10, 10), bool))
    Image.fromarray(np.where(dark, 0, 255).astype(np.uint8)).save(tmp_path / "big.png")
    scene = load_scene(tmp_path / "big.png", resolution=0.05)
    assert scene.segments == pytest.approx(mask_to_segments(coarse[::-1]) * 0.5)


@given(MASKS)
def test_rectangles_cover_the_cells_once(solid: np.ndarray) -> None:
    count = np.zeros(solid.shape, int)
    for x0, y0, x1, y1 in mask_to_rectangles(solid, 10**6).astype(int).tolist():
        assert x1 > x0 and y1 > y0
        count[y0:y1, x0:x1] += 1

    assert (count == solid).all()


# -- MovingAI


def moving(rows: list[str], **changes: str) -> str:
    head = {
        "type": "octile",
        "height": str(len(rows)),
        "width": str(len(rows[0])),
    } | changes
    return (
        "".join(f"{k} {v}\n" for k, v in head.items())
        + "map\n"
        + "".join(r + "\n" for r in rows)
    )


@given(MASKS)
def test_movingai_cells(solid: np.ndarray) -> None:
    rows = [
        "".join(
            "@OTW"[(i + j) % 4] if s else ".GS"[(i + j) % 3] for j, s in enumerate(r)
        )
        for i, r in enumerate(solid)
    ]
    text = moving(rows)
    assert (movingai.parse(text) == solid[::-1]).all()
    found = read_world(
        Source("arena.map", text.encode()), Options(resolution=0.5)
    ).scene
    if solid.any():
        assert (filled(found, 0.5, solid.shape) == solid[::-1]).all()


def test_an_armap_is_still_an_armap() -> None:
    assert (
        len(read_world(Source("x.map", b"2D-Map\nLINES\n0 0 1000 0\n")).scene.segments)
        == 1
    )


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (moving(["..", ".."], width="3"), 5, "expected 3 cells, found 2"),
        (moving([".x"]), 5, "found 'x'"),
        (moving([".."], height="2"), 6, "expected 2 cells, found 0"),
        (
            moving([".."], height="many"),
            2,
            'cells above 0, of at most 12 digits, found "many"',
        ),
        (
            moving([".."], height="\u00b2"),
            2,
            'cells above 0, of at most 12 digits, found "\u00b2"',
            # The text consists of digits, but is too long for a number.
        ),
        (
            moving([".."], height="9" * 5000),
            2,
            'cells above 0, of at most 12 digits, found "999',
        ),
        (
            moving([".."], height="999999999"),
            2,
            "too large: found 1999999998 pixels or cells",
        ),
        ("type octile\nheight 1\nmap\n.\n", 1, 'expected "height", "width" and "map"'),
        ("type octile\nheight 99999999\nwidth 99999999\nmap\n", 2, "at most"),
        ("type octile\ndepth 3\n", 2, "found 'depth 3'"),
    ],
)
def test_damaged_movingai_maps(text: str, line: int, complaint: str) -> None:
    with pytest.raises(MapError) as error:
        read_world(Source("a.map", text.encode()))
    assert str(error.value).startswith(f"a.map:{line}: ")
    assert complaint in str(error.value)


# -- nav_msgs/OccupancyGrid

INFO = """header:
  seq: 0
  frame_id: map
info:
  map_load_time: {secs: 0, nsecs: 0}
  resolution: 0.5
  width: 3
  height: 2
  origin:
    position: {x: 1.0, y: 2.0, z: 0.0}
    orientation: {x: 0.0, y: 0.0, z: 0.0, w: 1.0}
"""
FLOW = INFO + "data: [100, 0, -1, 0, 65, 64]\n---\n"
BLOCK = INFO + "data:\n- 100\n- 0\n- -1\n- 0\n- 65\n- 64\n---\n"
AS_JSON = json.dumps(
    {
        "info": {
            "resolution": 0.5,
            "width": 3,
            "height": 2,
            "origin": {
                "position": {"x": 1.0, "y": 2.0, "z": 0.0},
                "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
            },
        },
        "data": [100, 0, -1, 0, 65, 64],
    }
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", FLOW),
        ("a.yml", BLOCK),
        ("a.json", AS_JSON),
        ("a.yaml", FLOW.replace("[100, 0,", "[100, 0,\n  ")),
    ],
)
def test_printed_messages(name: str, text: str) -> None:
    scene = read_world(Source(name, text.encode())).scene
    cells = np.array([[True, False, False], [False, True, False]])
    assert scene.segments == pytest.approx(
        mask_to_segments(cells) * 0.5 + [1.0, 2.0, 1.0, 2.0]
    )
    assert scene.resolution == 0.5


def test_the_origin_may_be_turned() -> None:
    text = FLOW.replace(
        "z: 0.0, w: 1.0", f"z: {math.sin(math.pi / 4)}, w: {math.cos(math.pi / 4)}"
    )
    scene = read_world(Source("a.yaml", text.encode())).scene
    assert scene.bounds == pytest.approx((0.0, 2.0, 1.0, 3.0)), (
        "turned by 90° about (1, 2)"
    )


def test_ten_million_cells_are_read_without_a_yaml_reader() -> None:
    """A YAML reader would take minutes and exceed the test's time limit."""
    n = 2000
    text = (
        INFO.replace("width: 3", f"width: {n}").replace("height: 2", f"height: {n}")
        + "data: ["
    )
    cells = np.zeros((n, n), int)
    cells[500, 700] = 100
    scene = read_world(
        Source(
            "a.yaml",
            (text + ", ".join(map(str, cells.ravel().tolist())) + "]\n").encode(),
        )
    ).scene
    assert len(scene.segments) == 4


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (FLOW.replace("0, 65, 64]", "0, 65]"), "expected 3 × 2 = 6 cells, found 5"),
        (FLOW.replace("65, 64]", "'...']"), "cut short"),
        (BLOCK.replace("- 65\n- 64", "- '...'"), "cut short"),
        (FLOW.replace("[100, 0, -1, 0, 65, 64]", "[100, 0, -1, 0, 65"), 'expected "]"'),
        (
            FLOW.replace("100", "x"),
            'data: expected whole numbers from −1 to 100, found "x"',
        ),
        (
            FLOW.replace("64", "6.5"),
            'data: expected whole numbers from −1 to 100, found "6.5"',
        ),
        (
            FLOW.replace("64", "9" * 40),
            'data: expected whole numbers from −1 to 100, found "999',
        ),
        (FLOW.replace("100", "1000"), "expected −1 to 100"),
        (FLOW.replace("0.5", "-1"), "resolution: expected a number"),
        (FLOW.replace("x: 1.0", "x: here"), "origin.position.x: expected a number"),
    ],
)
def test_damaged_messages(text: str, complaint: str) -> None:
    with pytest.raises(MapError, match=r"^a\.yaml: ") as error:
        read_world(Source("a.yaml", text.encode()))
    assert complaint in str(error.value)


def test_bags_of_ros_1_and_2(tmp_path: Path) -> None:
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    def message(store, **header):
        t = store.types
        stamp = t["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
        pose = t["geometry_msgs/msg/Pose"](
            position=t["geometry_msgs/msg/Point"](x=1.0, y=2.0, z=0.0),
            orientation=t["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
        )
        info = t["nav_msgs/msg/MapMetaData"](
            map_load_time=stamp, resolution=0.5, width=3, height=2, origin=pose
        )
        return t["nav_msgs/msg/OccupancyGrid"](
            header=t["std_msgs/msg/Header"](stamp=stamp, frame_id="map", **header),
            info=info,
            data=np.array([100, 0, -1, 0, 65, 64], np.int8),
        )

    one, two = get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_HUMBLE)
    kind = "nav_msgs/msg/OccupancyGrid"
    with Writer1(tmp_path / "a.bag") as bag:
        bag.write(
            bag.add_connection("/map", kind, typestore=one),
            0,
            one.serialize_ros1(message(one, seq=0), kind),
        )

    for plugin, name in ((StoragePlugin.MCAP, "m"), (StoragePlugin.SQLITE3, "s")):
        with Writer2(tmp_path / name, version=9, storage_plugin=plugin) as bag:
            bag.write(
                bag.add_connection("/map", kind, typestore=two),
                0,
                two.serialize_cdr(message(two), kind),
            )

    for path in (
        tmp_path / "a.bag",
        next((tmp_path / "m").glob("*.mcap")),
        next((tmp_path / "s").glob("*.db3")),
    ):
        assert load_scene(path).bounds == pytest.approx((1.0, 2.0, 2.0, 3.0)), path

    (tmp_path / "bad.bag").write_bytes(b"#ROSBAG V2.0\n junk")
    with pytest.raises(MapError, match="the bag cannot be read"):
        load_scene(tmp_path / "bad.bag")
    with pytest.raises(MapError, match="no such map file"):
        load_scene(tmp_path / "none.bag")
    assert occupancy.OCCUPIED == 65


def bag_with(tmp_path: Path, grids: list[tuple[str, int, float]]) -> Path:
    """Return a ROS 2 bag with grids of one solid cell:

    topic, width in cells, and origin.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    t, kind = store.types, "nav_msgs/msg/OccupancyGrid"
    stamp = t["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    with Writer(tmp_path / "b", version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        connections = {}
        for k, (topic, width, x) in enumerate(grids):
            pose = t["geometry_msgs/msg/Pose"](
                position=t["geometry_msgs/msg/Point"](x=x, y=0.0, z=0.0),
                orientation=t["geometry_msgs/msg/Quaternion"](
                    x=0.0, y=0.0, z=0.0, w=1.0
                ),
            )
            info = t["nav_msgs/msg/MapMetaData"](
                map_load_time=stamp, resolution=1.0, width=width, height=1, origin=pose
            )
            header = t["std_msgs/msg/Header"](stamp=stamp, frame_id="map")
            grid = t[kind](header=header, info=info, data=np.full(width, 100, np.int8))
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=store)
            bag.write(connections[topic], k, store.serialize_cdr(grid, kind))

        bag.add_connection("/spare/map", kind, typestore=store)

    return next((tmp_path / "b").glob("*.mcap"))


COSTMAPS = [("/global_costmap/costmap", 7, 0.0), ("/local_costmap/costmap", 2, 50.0)]


@pytest.mark.parametrize(
    ("grids", "topic", "bounds"),
    [
        ([("/map", 3, 0.0), *COSTMAPS], None, (0, 0, 3, 1)),
        ([("/ann/map", 3, 0.0), *COSTMAPS], None, (0, 0, 3, 1)),
        ([("/ann/map", 4, 0.0), ("/map", 3, 0.0), *COSTMAPS], None, (0, 0, 3, 1)),
        ([("/map", 3, 0.0), ("/map", 5, 1.0), *COSTMAPS], None, (1, 0, 6, 1)),
        ([("/grid", 3, 0.0)], None, (0, 0, 3, 1)),
        ([("/map", 3, 0.0), *COSTMAPS], "/local_costmap/costmap", (50, 0, 52, 1)),
    ],
)
def test_the_map_of_a_bag_is_that_of_its_topic(
    tmp_path: Path,
    grids: list[tuple[str, int, float]],
    topic: str | None,
    bounds: tuple[float, ...],
) -> None:
    """Costmaps have the same type and follow the map repeatedly (nav2_costmap_2d)."""
    assert (
        read_world(
            read_source(bag_with(tmp_path, grids)), Options(topic=topic)
        ).scene.bounds
        == bounds
    )


@pytest.mark.parametrize(
    ("grids", "topic", "complaint"),
    [
        (
            COSTMAPS,
            None,
            "found grids of /global_costmap/costmap, /local_costmap/costmap: "
            "`botyard convert --topic`",
        ),
        (
            [("/a/map", 3, 0.0), ("/b/map", 3, 0.0)],
            None,
            "expected one map, found grids of /a/map, /b/map",
        ),
        (
            COSTMAPS,
            "/map",
            'no grid of the topic "/map" in this bag: there are /global_costmap/costmap, /local',
        ),
    ],
)
def test_a_bag_with_several_grids_says_which(
    tmp_path: Path,
    grids: list[tuple[str, int, float]],
    topic: str | None,
    complaint: str,
) -> None:
    with pytest.raises(MapError) as error:
        read_world(read_source(bag_with(tmp_path, grids)), Options(topic=topic))
    assert complaint in str(error.value)


def test_python_loads_them_all(tmp_path: Path) -> None:
    (tmp_path / "a.map").write_text(moving(["@@@", "@.@", "@@@"]))
    sim = Simulation.load(tmp_path / "a.map", resolution=2.0)
    robot = sim.add_robot("p3dx", pose=(3.0, 3.0, 0.0))
    assert robot.laser.ranges.max() < 1.6


def test_every_kind_of_movingai_terrain() -> None:
    """Moving AI Lab's description: passable ``.`` and ``G``, swamp ``S``; out of bounds
    ``@`` and ``O``, trees ``T``, water ``W``.
    """
    assert movingai.parse(
        "type octile\nheight 1\nwidth 7\nmap\n.GS@OTW\n"
    ).tolist() == [[False] * 3 + [True] * 4]
    with pytest.raises(MapError):
        movingai.parse("type octile\nheight 1\nwidth 1\nmap\nX\n")
