"""Small files that expand to a lot: each is refused by a named limit before memory or
time is spent.

These tests measure no time. A reader that spends the requested amount would never end,
or the machine would run out of memory.
"""

from __future__ import annotations

import bz2
import contextlib
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import ezdxf
import numpy as np
import pytest
from PIL import Image

from botyard.errors import BudgetError, FormatError
from botyard.formats.adf import parse_adf
from botyard.formats.arparams import parse as parse_params
from botyard.formats.base import Options, Source
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.formats.occupancy import OCCUPIED
from botyard.formats.registry import load_world, read_world
from botyard.traffic.gantt import load_result
from botyard.traffic.graphs import read_graph
from botyard.traffic.plans import read_plan
from botyard.traffic.task import load_task

NS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def refused(
    name: str, data: bytes | str, limit: str, budget: Budget = Budget()
) -> BudgetError:
    """Read a file and expect the error of the limit."""
    raw = data.encode() if isinstance(data, str) else data
    assert len(raw) < 2_000_000
    with pytest.raises(BudgetError) as error:
        read_world(Source(name, raw), Options(resolution=0.05, budget=budget))
    assert (
        error.value.limit == limit
        and f"--max-read {limit}=" in str(error.value)
        and name in str(error.value)
    )
    return error.value


# -- DXF


def drawing(fill: object) -> bytes:
    document = ezdxf.new("R2010", units=6)
    fill(document, document.modelspace())  # type: ignore[operator]
    out = io.StringIO()
    document.write(out)
    return out.getvalue().encode()


def doubling(document: object, space: object) -> None:
    document.blocks.new("B0").add_line((0, 0), (1, 0))
    for i in range(1, 40):
        block = document.blocks.new(f"B{i}")
        block.add_blockref(f"B{i - 1}", (0, 0))
        # DXF ignores the case of block names.
        block.add_blockref(f"b{i - 1}", (1, 0))

    space.add_blockref("B39", (0, 0))


def rows_and_columns(document: object, space: object) -> None:
    document.blocks.new("B").add_line((0, 0), (1, 0))
    space.add_blockref("B", (0, 0)).grid((30_000, 30_000), (1, 1))


def rows_without_spacing(document: object, space: object) -> None:
    document.blocks.new("B").add_line((0, 0), (1, 0))
    space.add_blockref(
        "B",
        (0, 0),
        dxfattribs={"row_count": 10**9, "column_count": 2, "column_spacing": 1.0},
    )


def deep(document: object, space: object) -> None:
    document.blocks.new("B0").add_line((0, 0), (1, 0))
    for i in range(1, 150):
        document.blocks.new(f"B{i}").add_blockref(f"B{i - 1}", (0, 0))
    space.add_blockref("B149", (0, 0))


@pytest.mark.parametrize(
    ("fill", "limit"),
    [
        (doubling, "references"),
        (rows_and_columns, "references"),
        (rows_without_spacing, "references"),
        (deep, "nesting"),
        (lambda d, s: s.add_circle((0, 0), 1e30), "extent"),
        (lambda d, s: s.add_arc((1e12, 0), 1, 0, 90), "extent"),
        (lambda d, s: s.add_ellipse((0, 0), (1e15, 0), 0.5), "extent"),
        (
            lambda d, s: s.add_spline_control_frame(
                [(0, 0), (1e14, 1), (2, 2), (3, 0)]
            ),
            "extent",
        ),
        (lambda d, s: s.add_line((0, 0), (1e12, 0)), "extent"),
    ],
)
def test_dxf(fill: object, limit: str) -> None:
    refused("a.dxf", drawing(fill), limit)


def test_dxf_that_is_in_itself_or_too_hard_or_no_number() -> None:
    def circle(document: object, space: object) -> None:
        document.blocks.new("A").add_blockref("B", (0, 0))
        document.blocks.new("B").add_blockref("A", (0, 0))
        space.add_blockref("A", (0, 0))

    def hard(document: object, space: object) -> None:
        space.add_open_spline([(i, 0) for i in range(300)], degree=299)

    def no_number(document: object, space: object) -> None:
        space.add_line((0, 0), (1, 0))
        space.add_circle((0, float("nan")), 1)
        space.add_circle((0, 0), float("inf"))
        space.add_spline_control_frame([(0, 0), (float("nan"), 1), (2, 2), (3, 0)])
        space.add_lwpolyline([(0, 0), (float("nan"), 0)])

    for fill, words in (
        (circle, r'block "[ab]" is inserted in itself'),
        (hard, "a spline of degree 299"),
    ):
        with pytest.raises(FormatError, match=words):
            read_world(Source("a.dxf", drawing(fill)))

    assert len(read_world(Source("a.dxf", drawing(no_number))).scene.segments) == 1


def test_dxf_of_many_tags_and_many_corners() -> None:
    refused(
        "a.dxf",
        b"0\nSECTION\n" + b"0\nLINE\n" * 1000 + b"0\nEOF\n",
        "entities",
        Budget(entities=100),
    )
    many = drawing(lambda d, s: [s.add_circle((0, 0), 9) for _ in range(50)])
    refused("a.dxf", many, "vertices", Budget(vertices=1000))


# -- SVG


def svg(inside: str) -> str:
    return f"<svg {NS} width='9' height='9'>{inside}</svg>"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (
            svg(
                "<g id='a0'><rect width='1' height='1'/></g>"
                + "".join(
                    f"<g id='a{i}'><use xlink:href='#a{i - 1}'/><use href='#a{i - 1}'/></g>"
                    for i in range(1, 40)
                )
            ),
            "references",
        ),
        (svg("<g>" * 500 + "</g>" * 500), "nesting"),
        (svg("<g/>" * 100_000), "entities"),
        (
            svg(
                "<style>"
                + "".join(f"g .x{i} a{{fill:red}}" for i in range(1000))
                + "</style>"
                + "<a/>" * 1000
            ),
            "entities",
        ),
        (
            svg(
                "<style>" + ".x{fill:red}" * 1000 + "</style>" + "<g class='x'/>" * 1000
            ),
            "entities",
        ),
        (svg("<path d='M0 0 C 1e9 0 0 1e9 1 1'/>"), "extent"),
        (svg("<line x1='0' y1='0' x2='1e15' y2='5'/>"), "extent"),
    ],
)
def test_svg(text: str, limit: str) -> None:
    refused("a.svg", text, limit, Budget(entities=500_000))


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<g id='a'><use href='#a'/></g>", "uses itself"),
        ("<g id='a'><use href='#b'/></g><g id='b'><use href='#a'/></g>", "uses itself"),
    ],
)
def test_svg_that_is_in_itself(inside: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_world(Source("a.svg", svg(inside).encode()))


@pytest.mark.parametrize(
    "inside",
    [
        f"<g transform='{'matrix(' * 100_000}'/>",
        f"<g transform='{'scale(1)' * 100_000}('/>",
        f"<polygon points='1{' ' * 100_000}'/>",
        f"<path d='M1{' ' * 100_000}'/>",
        f"<path d='{'M1 1' * 100_000}l'/>",
        f"<path d='M0 0 L{'1e' * 100_000}'/>",
        f"<style>{'a ' * 100_000}</style>",
        f"<style>a{{{' ' * 100_000}</style>",
        f"<style>{'/*' * 100_000}</style>",
        f"<style>{'{' * 100_000}</style>",
        f"<style>{'url(' * 100_000}</style>",
        f"<style>{'&quot;' * 100_001}</style>",
        f"<style>a{{fill:{' ' * 100_000}!important}}</style>",
        f"<style>{'a>' * 100_000}a{{fill:red}}</style>",
        f"<style>{'a' * 100_000}{{fill:red}}</style>",
        f"<g style='{'fill:red;' * 100_000}'/>",
        f"<g clip-path='url(#{'x' * 100_000})'/>",
        f"<g class='{'x ' * 100_000}'/>",
        f"<g id='{'x' * 100_000}'/>",
        f"<rect width='{'1' * 100_000}'/>",
        f"<g transform-origin='{'1 ' * 100_000}' transform='scale(2)'/>",
        f"<svg viewBox='{'1 ' * 100_000}'/>",
        "<style>*{fill:" + "a" * 9000 + "}</style>" + "<g/>" * 20_000,
        "<g "
        + " ".join(f"a{i}='{'x' * 9000}'" for i in range(30))
        + ">"
        + "<g/>" * 30_000
        + "</g>",
    ],
    ids=lambda inside: inside[:30],
)
def test_svg_takes_no_longer_than_its_length(inside: str) -> None:
    """Quadratic work in the length would exceed the time limit of a test."""
    with pytest.raises(FormatError, match="expected lines"):
        read_world(
            Source("a.svg", svg(inside).encode()),
            Options(budget=Budget(entities=500_000)),
        )


def test_svg_of_entities_within_entities() -> None:
    lines = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    text = f'<!DOCTYPE svg [<!ENTITY e0 "0123456789">{lines}]><svg {NS}><desc>&e11;</desc></svg>'
    with pytest.raises(FormatError, match="not an SVG drawing"):
        read_world(Source("a.svg", text.encode()))


# -- YAML


MERGED = "botyard: 1\na0: &a0 {k: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40)
)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("botyard: 1\nrobots:\n- {count: 1000000}\n", "robots"),
        ("botyard: 1\nrobots:\n" + "- {count: 9999}\n" * 3, "robots"),
        ("botyard: 1\na: " + "[" * 300, "nesting"),
        ("botyard: 1\na: " + "{a: " * 300, "nesting"),
        (
            "botyard: 1\na: &a [1,1,1]\n"
            + "".join(
                f"{c}: &{c} [{','.join([f'*{p}'] * 99)}]\n"
                for p, c in zip("abcdef", "bcdefg", strict=True)
            ),
            "entities",
        ),
        (MERGED, "entities"),
        (
            "botyard: 1\nrobots:\n- {count: 5000, lasers: [{type: x, samples: "
            "50000, range: [0, 9]}]}\n",
            "beams",
        ),
        ("botyard: 1\nwalls:\n- [[0, 0], [1.0e+12, 0]]\n", "extent"),
        ("botyard: 1\nobstacles:\n- {pose: [1.0e+9, 0, 0]}\n", "extent"),
        ("botyard: 1\nrobots:\n- {pose: [0, 1.0e+9, 0]}\n", "extent"),
        ("botyard: 1\nplaces:\n- {pose: [0, 1.0e+9]}\n", "extent"),
        ("botyard: 1\nhome: [1.0e+9, 0, 0]\n", "extent"),
        ("botyard: 1\nareas:\n- {kind: x, corners: [[0, 0], [0, 1.0e+9]]}\n", "extent"),
    ],
)
def test_scenarios(text: str, limit: str) -> None:
    refused("s.yaml", text, limit)


def test_ten_thousand_robots_of_one_name_are_read() -> None:
    world = read_world(
        Source("s.yaml", b"botyard: 1\nrobots:\n- {model: p3dx, count: 10000}\n")
    )
    assert len({r.name for r in world.robots}) == 10_000
    assert world.robots[-1].name == "p3dx_10000"


def test_yaml_numbers_that_take_for_ever() -> None:
    for number in (
        "1:" * 100_000 + "1",
        "9" * 100_000,
        "0x" + "f" * 100_000,
        "1e" + "9" * 100_000,
    ):
        with pytest.raises(FormatError):
            read_world(Source("s.yaml", f"botyard: 1\nseed: {number}\n".encode()))


def test_outlines_of_a_million_corners_times_many_robots() -> None:
    corners = ", ".join(f"[{i % 7}, {i % 5}]" for i in range(4000))
    text = (
        f"botyard: 1\nmodels:\n  big: {{extends: p3dx, outline: "
        f"[{corners}]}}\nrobots:\n- {{model: big, count: 9000}}\n"
    )
    refused("s.yaml", text, "vertices")


@pytest.mark.parametrize(
    "text",
    [
        "bodies: [b]\nb: {shape: Box, geometry: {x: 1, y: 1}}\nsensors: [s]\ns: "
        "{parent: b, parametric: {resolution: 100000}}\n",
        "bodies: ["
        + ", ".join(["b"] * 50)
        + "]\nb: {shape: Box, geometry: {x: 1, y: 1}}\n",
    ],
)
def test_descriptions_of_ambf(text: str) -> None:
    with pytest.raises(BudgetError):
        parse_adf(
            Source("a.yaml", text.encode()),
            Options(budget=Budget(beams=1000, entities=50)),
        )


# -- Stage


def nested(count: int) -> str:
    lines = ["define m0 model ( size [1 1 1] )"]
    lines += [
        f"define m{i} model ( m{i - 1} ( ) m{i - 1} ( pose [1 0 0 0] ) )"
        for i in range(1, count)
    ]
    return "\n".join([*lines, f"m{count - 1} ( )"])


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (nested(40), "references"),
        (
            nested(40)
            .replace("model", "position", 1)
            .replace("m39 ( )", "define r position ( m38 ( ) )\nr ( )"),
            "references",
        ),
        ("a ( " * 500 + ") " * 500, "nesting"),
        (
            "".join(f"define d{i} d{i + 1} ( )\n" for i in range(500))
            + "define d500 model ( )\nd0 ( )",
            "nesting",
        ),
        ("position ( pose [1e12 0 0] )", "extent"),
        ("model ( gui_move 0 size [1e12 1] )", "extent"),
        (
            "define big model ( "
            + " ".join(
                f"polygon[0].point[{i}] [{i % 9} {i % 7}]" for i in range(20_000)
            )
            + " )\n"
            + "big ( )\n" * 2000,
            "references",
        ),
        ("define l laser ( samples 90000 )\n" + "position ( l ( ) )\n" * 2000, "beams"),
    ],
)
def test_stage_worlds(text: str, limit: str) -> None:
    refused("a.world", text, limit)


def test_stage_files_that_include_each_other(tmp_path: Path) -> None:
    # The file has 2^30 inclusions, without a cycle.
    for i in range(30):
        (tmp_path / f"{i}.inc").write_text(
            f'include "{i + 1}.inc"\ninclude "{i + 1}.inc"\n'
        )

    (tmp_path / "30.inc").write_text("")
    (tmp_path / "a.world").write_text('include "0.inc"\n')
    with pytest.raises(BudgetError, match="referenced files, expected at most 1000"):
        load_world(tmp_path / "a.world")

    (tmp_path / "30.inc").write_text('include "./7.inc"\n')
    with pytest.raises(FormatError, match="include each other in a circle"):
        load_world(tmp_path / "a.world")


def test_a_picture_that_many_models_have_is_read_once(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((300, 300), np.uint8)).save(tmp_path / "p.png")
    (tmp_path / "a.world").write_text(
        'define m model ( bitmap "p.png" gui_move 0 size [9 9 1] )\n' + "m ( )\n" * 200
    )
    scene = load_world(tmp_path / "a.world", Options(budget=Budget(cells=90_000))).scene
    assert len(scene.segments) == 800
    with pytest.raises(BudgetError, match="cells"):
        load_world(tmp_path / "a.world", Options(budget=Budget(cells=89_999)))


# -- grids and pictures


def png(width: int, height: int, mode: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, mode, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + header
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def of_kind(kind: str, size: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("L", (2, 2)).save(out, kind)
    data = bytearray(out.getvalue())
    at = {"gif": 6, "bmp": 18}[kind]
    struct.pack_into({"gif": "<HH", "bmp": "<ii"}[kind], data, at, *size)
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((f"m{m}.png", png(100_000, 100_000, m)) for m in (0, 2, 3, 4, 6)),
        ("a.pgm", b"P5 1000000 1000000 255\n0"),
        ("a.pgm", b"P2 1000000 1000000 255\n0"),
        ("a.pbm", b"P4 9000000 9000000\n0"),
        ("a.ppm", b"P6 90000 90000 255\n0"),
        ("a.gif", of_kind("gif", (65535, 65535))),
        ("a.bmp", of_kind("bmp", (100_000, 100_000))),
        ("a.map", b"type octile\nheight 100000000\nwidth 100000000\nmap\n"),
    ],
)
def test_pictures_that_say_they_are_huge(name: str, data: bytes) -> None:
    refused(name, data, "cells")


def test_pictures_whose_outlines_are_huge() -> None:
    out = io.BytesIO()
    Image.fromarray(
        (np.indices((1000, 1000)) % 2).all(axis=0).astype(np.uint8) * 255
    ).save(out, "png")
    refused("a.png", out.getvalue(), "vertices", Budget(vertices=1_999_999))


def test_programs_are_not_started_for_pictures() -> None:
    """The library would start Ghostscript for PostScript, whatever the name of the
    file.
    """
    for data in (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n",
        b"\xc5\xd0\xd3\xc6" + bytes(100),
    ):
        with pytest.raises(FormatError, match="the picture cannot be read"):
            read_world(Source("a.png", data))


def test_occupancy_grids() -> None:
    head = "info: {resolution: 1.0, width: 2, height: 2, origin: {}}\n"
    refused("m.yaml", head + "data: [" + "0," * 1000 + "0]", "cells", Budget(cells=100))
    refused("m.yaml", head + "data:\n" + "- 0\n" * 1000, "cells", Budget(cells=100))
    refused(
        "m.json",
        json.dumps({"info": {"resolution": 1}, "data": [0] * 1000}),
        "cells",
        Budget(cells=100),
    )
    refused(
        "m.json",
        '{"info": {"resolution": 1, "x": ' + "[" * 200_000 + '}, "data": [0]}',
        "nesting",
    )
    far = (
        head.replace("{}", "{position: {x: 100000000.0, y: 0.0}}")
        + "data: [100, 0, 0, 0]"
    )
    refused("m.yaml", far, "extent")
    # A cell has four edges with two end points each: eight vertices.
    solid = head + "data: [100, 0, 0, 0]"
    assert (
        len(
            read_world(
                Source("m.yaml", solid.encode()), Options(budget=Budget(vertices=8))
            ).scene.segments
        )
        == 4
    )
    refused("m.yaml", solid, "vertices", Budget(vertices=7))
    for value, walls in ((OCCUPIED - 1, 0), (OCCUPIED, 4), (-1, 0)):
        source = Source("m.yaml", solid.replace("100", str(value)).encode())
        assert len(read_world(source).scene.segments) == walls

    # The whole rest was once searched for each blank line.
    blank = "info: {resolution: 1}\n" + "\n" * 200_000 + "data"
    with pytest.raises(FormatError, match="expected the cells"):
        read_world(Source("m.yaml", blank.encode()))


def test_geojson() -> None:
    line = '{"type": "LineString", "coordinates": [[0, 0], [1e12, 0]]}'
    refused("a.geojson", line, "extent")
    refused(
        "a.geojson",
        '{"type": "Polygon", "coordinates": [[' + "[0,0]," * 1000 + "[0,0]]]}",
        "vertices",
        Budget(vertices=999),
    )
    refused("a.geojson", '{"coordinates":' * 100_000, "nesting")
    refused("a.geojson", '{"coordinates": ' + "[" * 500_000, "nesting")
    deep = '{"type": "GeometryCollection", "geometries": [' * 200 + line + "]}" * 200
    refused("a.geojson", deep, "nesting")
    digits = '{"type": "LineString", "coordinates": [[0, ' + "9" * 5000 + "], [1, 1]]}"
    with pytest.raises(FormatError, match="not JSON"):
        read_world(Source("a.geojson", digits.encode()))


# -- archives and bags


def test_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(6):
            archive.writestr(f"{i}.txt", bytes(1_000_000))

    refused("a.zip", out.getvalue(), "unpacked", Budget(unpacked=5_999_999))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i in range(5000):
            archive.writestr(f"{i}", b"")

    def opened(*_: object) -> None:
        raise AssertionError(
            "its directory is read, which takes memory for each member"
        )

    monkeypatch.setattr(zipfile, "ZipFile", opened)
    refused("a.zip", out.getvalue(), "members")


def test_bags_whose_chunks_are_packed(tmp_path: Path) -> None:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store, kind = get_typestore(Stores.ROS1_NOETIC), "nav_msgs/msg/OccupancyGrid"
    path = tmp_path / "a.bag"
    writer = Writer(path)
    writer.set_compression(Writer.CompressionFormat.BZ2)
    with writer as bag:
        bag.write(
            bag.add_connection("/map", kind, typestore=store), 0, bytes(5_000_000)
        )

    assert path.stat().st_size < 10_000
    with pytest.raises(
        BudgetError, match="bytes unpacked from an archive, expected at most 1000000"
    ):
        load_world(path, Options(budget=Budget(unpacked=1_000_000)))

    assert bz2.decompress(bz2.compress(b"1")) == b"1"


def test_a_database_that_would_compute_is_refused(tmp_path: Path) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(tmp_path / "a.db3")) as database:
        database.executescript(
            "CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, "
            "serialization_format TEXT, offered_qos_profiles TEXT);"
            "INSERT INTO topics VALUES (1, '/map', 'nav_msgs/msg/OccupancyGrid', 'cdr', '');"
            "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
            "SELECT i AS id, 1 AS topic_id, i AS timestamp, zeroblob(9) AS data FROM n;"
        )

    with pytest.raises(
        FormatError, match="ordinary tables and indices in the database, found the view"
    ):
        load_world(tmp_path / "a.db3")


# -- models


def test_models(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="entities"):
        parse_params("Class x\n" * 100, budget=Budget(entities=10))
    path = tmp_path / "a.toml"
    for text, words in (
        ("a = " + "[" * 5000, "nesting|not a TOML file"),
        ("a = " + "9" * 5000, "not a TOML file"),
        ("a" + ".a" * 5000 + " = 1", "a.toml"),
        (
            'extends = "p3dx"\nreturns = {laser = 99999999999999}',
            "a whole number of 32 bits",
        ),
    ):
        path.write_text(text)
        with pytest.raises(FormatError, match=words):
            find_robot(path)

    (tmp_path / "a.p").write_text(
        "Class Pioneer\nSonarNum 4\nSonarUnit 0 1 2 3 0 0 0 0 \u00b2\nSection "
        "Laser parameters\nLaserType lms2xx\n"
        "LaserStartDegrees -90\nLaserEndDegrees 90\nLaserIncrement 1e-300\n"
    )
    assert find_robot(tmp_path / "a.p").lasers[0].samples < 1000


def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("botyard: 1\nmap: /dev/zero\n")
    (tmp_path / "z.world").write_text('include "/dev/zero"\n')
    (tmp_path / "b.world").write_text('model ( bitmap "/dev/zero" )\n')
    (tmp_path / "m.yaml").write_text("image: /dev/zero\nresolution: 1\n")
    (tmp_path / "p.yaml").write_text(
        "botyard: 1\nrobots: [{model: /dev/zero.p}, {model: /dev/zero}]\n"
    )
    for name in ("s.yaml", "z.world", "b.world", "m.yaml", "p.yaml"):
        with pytest.raises(FormatError):
            load_world(tmp_path / name)


# -- traffic


def test_files_of_traffic(tmp_path: Path) -> None:
    deep, digits = '{"a":' * 100_000, '{"a": ' + "9" * 5000 + "}"
    bombs = "a: &a [1,1]\n" + "".join(
        f"{c}: &{c} [{','.join([f'*{p}'] * 99)}]\n"
        for p, c in zip("abcdef", "bcdefg", strict=True)
    )
    path = tmp_path / "t"
    for reader in (load_task, read_plan, load_result):
        for text in (deep, digits, "[" * 100_000):
            path.write_text(text)
            with pytest.raises(FormatError):
                reader(path)

    for text in (bombs, "[" * 10_000):
        path.write_text(text)
        with pytest.raises(BudgetError):
            read_graph(path)

    for reader in (load_task, read_plan, load_result, read_graph):
        with pytest.raises(FormatError, match="found a folder, a device or a pipe"):
            reader(Path("/dev/zero"))
