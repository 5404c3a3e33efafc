"""ROS maps: the YAML file, its image, and the resulting walls."""

from __future__ import annotations

import contextlib
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from botyard.errors import BudgetError, MapError
from botyard.formats import rosmap
from botyard.formats.base import Options, Source, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.images import read_grey
from botyard.formats.mapsearch import client_maps
from botyard.formats.registry import load_scene, load_world, read_world
from botyard.model.tracing import mask_to_segments, squares_to_segments
from botyard.sim.simulation import Simulation

GOOD = (
    "image: lab.pgm\nresolution: 0.05\norigin: [-1.0, -2.0, 0.0]\nnegate: "
    "0\noccupied_thresh: 0.65\nfree_thresh: 0.196\n"
)


def write(
    folder: Path, pixels: np.ndarray, text: str = GOOD, image: str = "lab.pgm"
) -> Path:
    Image.fromarray(pixels).save(folder / image)
    path = folder / "lab.yaml"
    path.write_text(text)
    return path


def unit_edges(segments: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return all segments cut into pieces of one cell, sorted."""
    pieces = []
    for x1, y1, x2, y2 in np.rint(segments).astype(int).tolist():
        (x1, y1), (x2, y2) = sorted([(x1, y1), (x2, y2)])
        n = max(x2 - x1, y2 - y1)
        for k in range(n):
            dx, dy = (1, 0) if x2 > x1 else (0, 1)
            pieces.append(
                (x1 + k * dx, y1 + k * dy, x1 + (k + 1) * dx, y1 + (k + 1) * dy)
            )

    return sorted(pieces)


def naive_edges(solid: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return the edges between a solid and a free cell, cell by cell."""
    rows, columns = solid.shape

    def at(i: int, j: int) -> bool:
        return 0 <= i < rows and 0 <= j < columns and bool(solid[i, j])

    level = [
        (j, i, j + 1, i)
        for i in range(rows + 1)
        for j in range(columns)
        if at(i, j) != at(i - 1, j)
    ]
    upright = [
        (j, i, j, i + 1)
        for i in range(rows)
        for j in range(columns + 1)
        if at(i, j) != at(i, j - 1)
    ]
    return sorted(level + upright)


@given(arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_outlines_of_a_raster(solid: np.ndarray) -> None:
    segments = mask_to_segments(solid)
    assert unit_edges(segments) == naive_edges(solid)
    rows, columns = np.nonzero(solid)
    points = np.stack([columns, rows], axis=1).astype(float)
    assert unit_edges(squares_to_segments(points, 1.0)) == unit_edges(segments), (
        "the same as that of points"
    )


@given(arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_segments_are_as_long_as_they_can_be(solid: np.ndarray) -> None:
    segments = mask_to_segments(solid)
    begins = {(x1, y1, x1 == x2) for x1, y1, x2, y2 in segments.tolist()}
    ends = {(x2, y2, x1 == x2) for x1, y1, x2, y2 in segments.tolist()}
    assert not begins & ends


def test_pixels_become_walls_where_they_are(tmp_path: Path) -> None:
    pixels = np.full((4, 6), 254, np.uint8)
    # This is the upper left cell.
    pixels[0, 0] = 0
    # This is the lower right cell.
    pixels[3, 5] = 0
    # Map servers write 205 for unknown cells.
    pixels[2, 2] = 205
    scene = load_scene(write(tmp_path, pixels))
    assert scene.name == "lab" and scene.resolution == 0.05 and len(scene.segments) == 8
    assert scene.bounds == pytest.approx((-1.0, -2.0, -1.0 + 6 * 0.05, -2.0 + 4 * 0.05))
    corner = scene.segments[
        np.abs(scene.segments - (-1.0, -2.0 + 0.15, -0.95, -2.0 + 0.15)).max(axis=1)
        < 1e-9
    ]
    assert len(corner) == 1, "the lower edge of the upper left pixel"


def test_a_turned_map(tmp_path: Path) -> None:
    pixels = np.full((2, 3), 254, np.uint8)
    # The corner of this cell that is nearest to the origin is 0.1 m along the map's x axis.
    pixels[1, 2] = 0
    scene = load_scene(
        write(
            tmp_path,
            pixels,
            GOOD.replace("[-1.0, -2.0, 0.0]", f"[3.0, 4.0, {math.pi / 2}]"),
        )
    )
    ends = scene.segments.reshape(-1, 2)
    assert ends.min(axis=0) == pytest.approx((3.0 - 0.05, 4.1)) and ends.max(
        axis=0
    ) == pytest.approx((3.0, 4.15))


@pytest.mark.parametrize("mode", ["trinary", "scale"])
@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.65, 1.0])
def test_which_values_are_solid(mode: str, negate: bool, threshold: float) -> None:
    """The definition of cells is checked for all pixel values."""
    values = np.arange(256, dtype=np.uint8)
    m = rosmap.RosMap(
        image="x", resolution=0.05, mode=mode, negate=negate, occupied_thresh=threshold
    )
    share = [(v if negate else 255 - v) / 255 for v in range(256)]
    assert rosmap.occupied(values[None, :], m)[0].tolist() == [
        p > threshold for p in share
    ]


def test_raw_values_are_percent_and_the_rest_is_unknown() -> None:
    m = rosmap.RosMap(image="x", resolution=0.05, mode="raw")
    found = rosmap.occupied(np.arange(256, dtype=np.uint8)[None, :], m)[0]
    assert np.flatnonzero(found).tolist() == list(range(65, 101))


@pytest.mark.parametrize("kind", ["png", "rgb", "rgba", "palette", "bits", "sixteen"])
def test_images_of_all_kinds(tmp_path: Path, kind: str) -> None:
    grey = Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8))
    image = {
        "png": grey,
        "rgb": grey.convert("RGB"),
        "rgba": grey.convert("RGBA"),
        "palette": grey.convert("P"),
        "bits": grey.convert("1"),
        "sixteen": Image.fromarray(np.array([[0, 65535], [65535, 0]], np.uint16)),
    }[kind]
    image.save(tmp_path / "x.png")
    assert read_grey(
        read_source(tmp_path / "x.png"), Meter(Budget(), "x")
    ).tolist() == [[0, 255], [255, 0]]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "expected the keys"),
        ("- 1\n", 1, "expected the keys"),
        ("image: [\n", 2, "not YAML"),
        (
            GOOD.replace("resolution: 0.05", "resolution: fine"),
            2,
            "resolution: expected metres per pixel",
        ),
        (
            GOOD.replace("resolution: 0.05", "resolution: 0"),
            2,
            "from 1e-06 to 10000, found '0'",
        ),
        (GOOD.replace("resolution", "resolutoin"), 1, 'did you mean "resolutoin"'),
        (GOOD.replace("[-1.0, -2.0, 0.0]", "[1, 2]"), 3, "[x, y, yaw]"),
        (
            GOOD.replace("[-1.0, -2.0, 0.0]", "[1, 2, .nan]"),
            3,
            "a finite number, found .nan",
        ),
        (GOOD.replace("negate: 0", "negate: maybe"), 4, "0 or 1"),
        (GOOD.replace("0.65", "65"), 5, "a number from 0 to 1"),
        (
            GOOD.replace("[-1.0, -2.0, 0.0]", "[1, nan, 0]"),
            3,
            "origin: expected [x, y, yaw], m and rad, found [1, nan, 0]",
        ),
        (
            GOOD.replace("[-1.0, -2.0, 0.0]", "[1, [2], 0, 0, 0, 0]"),
            3,
            "found [1, …, 0, 0, 0, …]",
        ),
        (
            GOOD.replace("[-1.0, -2.0, 0.0]", "[1e308, 0, 0]"),
            3,
            "origin: expected [x, y, yaw], m and rad, found [1e308, 0, 0]",
        ),
        (GOOD + "mode: costmap\n", 7, "one of trinary, scale, raw"),
        (
            GOOD.replace("image: lab.pgm", "image: {}"),
            1,
            "image: expected the path of an image, found a mapping",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(MapError) as caught:
        rosmap.parse(text, "lab.yaml")
    assert caught.value.line == line and words in str(caught.value)


def test_a_threshold_that_decides_nothing_is_no_reason_to_refuse_a_map() -> None:
    """Map servers test for occupied cells first, so a greater `free_thresh` changes
    none of them.
    """
    assert rosmap.parse(GOOD.replace("0.196", "0.9")).free_thresh == 0.9


@pytest.mark.parametrize(
    ("word", "negated"),
    [("no", False), ("Off", False), ("n", False), ("YES", True), ("on", True)],
)
def test_negate_is_a_number_or_a_boolean_of_yaml(word: str, negated: bool) -> None:
    assert rosmap.parse(GOOD.replace("negate: 0", f"negate: {word}")).negate is negated


@pytest.mark.parametrize("mode", ["trinary", "scale"])
@pytest.mark.parametrize("negate", [0, 1])
@pytest.mark.parametrize("kind", ["RGBA", "LA", "P", "L"])
@pytest.mark.parametrize("alpha", [0, 254])
def test_transparent_pixels_are_unknown_whatever_is_negated(
    tmp_path: Path, mode: str, negate: int, kind: str, alpha: int
) -> None:
    """Solid everywhere except in a hole, as map_saver writes unknown cells in scale
    mode.
    """
    solid = 255 if negate else 0
    pixels = np.full((3, 3, 4), solid, np.uint8)
    pixels[..., 3] = 255
    pixels[1, 1, 3] = alpha
    image = Image.fromarray(pixels)
    if kind in ("P", "L"):
        grey = np.full((3, 3), solid, np.uint8)
        grey[1, 1] = 7
        image = Image.fromarray(grey)
        if kind == "P":
            image = image.convert("P")
        image.save(tmp_path / "lab.png", transparency=7)
    else:
        image.convert(kind).save(tmp_path / "lab.png")

    text = (
        GOOD.replace("lab.pgm", "lab.png").replace("negate: 0", f"negate: {negate}")
        + f"mode: {mode}\n"
    )
    (tmp_path / "lab.yaml").write_text(text)
    assert len(load_scene(tmp_path / "lab.yaml").segments) == 8, (
        "the outline, and that of the hole"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("!!int ''", 'a value of the type int, found ""'),
        ("!!bool maybe", 'a value of the type bool, found "maybe"'),
        ("!!timestamp x", 'the type timestamp, found "x"'),
        ("!!float abc", 'the type float, found "abc"'),
        ("2020-99-99", 'the type timestamp, found "2020-99-99"'),
        ("!!int 0x", 'the type int, found "0x"'),
    ],
)
def test_values_that_do_not_fit_their_tags(value: str, words: str) -> None:
    with pytest.raises(MapError) as caught:
        rosmap.parse(f"{GOOD}more: [1, {value}]\n", "lab.yaml")
    assert words in str(caught.value)
    assert caught.value.line == 7


def test_the_name_of_an_image_may_be_in_an_older_code_page(tmp_path: Path) -> None:
    path = write(tmp_path, np.zeros((2, 2), np.uint8))
    path.write_bytes(b"# gr\xf6\xdfer\n" + GOOD.encode())
    assert len(load_scene(path).segments) == 4


@given(st.text())
def test_no_text_crashes_the_reader(text: str) -> None:
    with contextlib.suppress(MapError):
        rosmap.parse(text)


@given(
    st.dictionaries(
        st.sampled_from(["image", "resolution", "origin", "negate", "mode"]),
        st.text(max_size=8),
    )
)
def test_no_value_crashes_the_reader(values: dict[str, str]) -> None:
    with contextlib.suppress(MapError):
        rosmap.parse("".join(f"{k}: {v}\n" for k, v in values.items()))


def test_images_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(GOOD)
    with pytest.raises(MapError, match="does not exist"):
        load_scene(path)
    for data in (b"", b"P5 nonsense", b"\x89PNG\r\n\x1a\n" + bytes(20)):
        (tmp_path / "lab.pgm").write_bytes(data)
        with pytest.raises(MapError, match="cannot be read"):
            load_scene(path)


def test_huge_images_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, np.zeros((6, 4), np.uint8))
    with pytest.raises(
        BudgetError,
        match=r"lab\.pgm: too large: found 24 pixels or cells, expected at most 23 .*--max-read cells",
    ):
        load_world(path, Options(budget=Budget(cells=23)))

    with pytest.raises(BudgetError, match="vertices"):
        load_world(path, Options(budget=Budget(vertices=7)))
    assert (
        len(
            load_world(
                path, Options(budget=Budget(cells=24, vertices=8))
            ).scene.segments
        )
        == 4
    )


def test_clients_find_them_and_other_yaml_is_not_offered(tmp_path: Path) -> None:
    write(tmp_path, np.zeros((2, 2), np.uint8))
    (tmp_path / "params.yaml").write_text("a: 1\n")
    (tmp_path / "old.map").write_text("2D-Map\n")
    names = [name for name, shipped in client_maps([tmp_path.resolve()]) if not shipped]
    assert names == ["lab.yaml", "old.map"]
    with pytest.raises(MapError, match=r"send both at once or in one \.zip"):
        read_world(Source("lab.yaml", GOOD.encode()))


def test_a_laser_sees_the_pixels_edges(tmp_path: Path) -> None:
    """Ray casts in the converted map against a march through the raster."""
    rng = np.random.default_rng(5)
    pixels = np.where(rng.random((60, 80)) < 0.04, 0, 254).astype(np.uint8)
    pixels[[0, -1], :] = pixels[:, [0, -1]] = 0
    pixels[25:35, 35:45] = 254
    sim = Simulation(
        load_scene(write(tmp_path, pixels, GOOD.replace("0.05", "0.1"))),
        sensor_noise=False,
    )
    robot = sim.add_robot("p3dx", pose=(-1.0 + 4.0, -2.0 + 3.0, 0.3))
    scan = robot.laser.read()
    solid = pixels[::-1] == 0
    x0, y0, th = robot.truth
    for k in range(0, 181, 7):
        bearing = th + scan.angle_min + k * scan.angle_increment
        steps = np.arange(0.0, 8.0, 0.001)
        i = np.floor((y0 + steps * math.sin(bearing) + 2.0) / 0.1).astype(int)
        j = np.floor((x0 + steps * math.cos(bearing) + 1.0) / 0.1).astype(int)
        inside = (i >= 0) & (i < 60) & (j >= 0) & (j < 80)
        hit = np.flatnonzero(inside & solid[np.clip(i, 0, 59), np.clip(j, 0, 79)])
        assert scan.ranges[k] == pytest.approx(steps[hit[0]], abs=0.003), k


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("resolution", 1e-6, 1e4),
        ("occupied_thresh", 0.0, 1.0),
        ("free_thresh", 0.0, 1.0),
    ],
)
def test_the_ends_of_a_range_belong_to_it(key: str, low: float, high: float) -> None:
    good = GOOD.replace("0.65", "1.0" if key == "free_thresh" else "0.65").replace(
        "0.196", "0.0"
    )
    for value in (low, high):
        text = re.sub(f"{key}: .*", f"{key}: {value!r}", good)
        assert getattr(rosmap.parse(text), key) == value

    for value in (low - 1e-9, math.nextafter(high, math.inf)):
        with pytest.raises(MapError, match=key):
            rosmap.parse(re.sub(f"{key}: .*", f"{key}: {value:.20f}", good))
