"""All formats:

every reader makes a world from good files and a clear error from damaged ones; bundles;
finding files.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import tempfile
import zipfile
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from botyard.cli.scenario import EXAMPLE
from botyard.errors import (
    BotyardError,
    BudgetError,
    FormatError,
    MapError,
    ModelError,
    NoSuchMapError,
)
from botyard.formats.adf import parse_adf
from botyard.formats.base import Format, Options, Source
from botyard.formats.budget import Budget
from botyard.formats.mapsearch import builtin_maps, find_client_map
from botyard.formats.models import find_robot
from botyard.formats.registry import FORMATS, format_of, load_world, read_world
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.sim.simulation import Simulation
from botyard.testing import check_map_format
from botyard.testing.formats import damaged_copies
from tests.formats.test_drawings import SVG, dxf
from tests.formats.test_pictures import AS_JSON, BLOCK, FLOW, moving


def png() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.eye(9, dtype=np.uint8) * 255).save(out, "png")
    return out.getvalue()


WORLD = b"""define eye sensor ( range [0 5] fov 15 samples 1 pose [0.1 0 0 10] )
define bot position ( size [0.4 0.4 0.2] ranger ( eye ( ) ) velocity_bounds [-1 1 0 0 0 0 -90 90] fiducial ( ) )
define wall model ( gui_move 0 boundary 1 )
wall ( size [9 9 1] )   bot ( name "a" pose [1 1 0 45] color "random" )
model ( size [1 1 1] pose [3 3 0 0] block ( points 3 point[0] [0 0] point[1] [1 0] point[2] [0 1] z [0 1] ) )
"""
GEOJSON = b"""{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"laser": false},
"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [500, 0], [500, 500], [0, 0]]]}}]}"""
IRSIM = b"""world: {height: 8, width: 8, offset: [-4, -4]}
robot:
  - {kinematics: {name: diff}, shape: {name: circle, radius: 0.2}, goal: [2, 2], behavior: {name: dash},
     sensors: [{name: lidar2d, number: 9, noise: true, std: 0.1}]}
  - {number: 3, kinematics: {name: acker}, distribution: {name: circle, radius: 3},
     shape: {name: rectangle, length: 0.6, width: 0.3, wheelbase: 0.4}}
obstacle:
  - {shape: {name: polygon, random_shape: true}, state: [1, 1, 0.5]}
  - {shape: {name: circle}, mass: 2, state: [0, 2], kinematics: {name: static}}
"""
MVSIM = b"""<mvsim_world version='1.0'><variable name='n' value='3'/>
<vehicle:class name='bot'><dynamics class='differential'><l_wheel pos='0 0.2' diameter='0.1'/>
<r_wheel pos='0 -0.2' diameter='0.1'/><chassis><shape><pt>-0.3 -0.2</pt><pt>0.3 -0.2</pt><pt>0.3 0.2</pt>
<pt>-0.3 0.2</pt></shape></chassis></dynamics><sensor class='laser'><nrays>9</nrays></sensor></vehicle:class>
<for var='i' from='1' to='${n}'><vehicle name='r${i}' class='bot'>
<init_pose>$f{2*i} 0 90</init_pose></vehicle><block><static>true</static>
<geometry type='box' lx='1' ly='1' lz='1'/><init_pose>$f{i*i} 4 0</init_pose></block>
</for><element class='vertical_plane'><x0>0</x0><y0>9</y0><x1>9</x1><y1>9</y1></element></mvsim_world>"""
SDF = b"""<sdf version='1.9'><world name='w'><physics><max_step_size>0.1</max_step_size></physics>
<model name='a'><static>1</static><pose>3 1 0.5 0.1 0 1</pose><link name='l'><collision name='c'>
<geometry><box><size>2 1 1</size></box></geometry></collision></link></model>
<model name='b'><pose>-2 0 0.2 0 0 1</pose><link name='l'><collision name='c'><geometry><cylinder>
<radius>0.3</radius><length>1</length></cylinder></geometry></collision></link></model>
<model name='c'><link name='l'><collision name='c'><geometry><sphere><radius>0.3</radius></sphere>
</geometry></collision><sensor type='ray' name='s'><ray><range><max>5</max></range></ray></sensor></link>
<plugin name='diff_drive' filename='p'/></model></world></sdf>
"""
RMF = b"""name: office
levels:
  L1:
    measurements: [[0, 1, {distance: [3, 10]}]]
    vertices:
      - [0, 0, 0, ""]
      - [200, 0, 0, ""]
      - [200, 160, 0, desk]
      - [40, 40, 0, charger, {is_charger: [4, true], spawn_robot_type: [1, Tiny]}]
    walls: [[0, 1, {}], [1, 2, {alpha: [3, 0.5]}]]
    doors: [[2, 0, {name: [1, main]}]]
    lanes: [[3, 2, {graph_idx: [2, 0]}]]
    floors: [{vertices: [0, 1, 2], parameters: {}}]
"""
NAVGROUND = b"""time_step: 0.1
scenario:
  type: Cross
  side: 5
  obstacles: [{position: [4, 0], radius: 0.5}]
  walls: [{line: [[-5, -3], [5, -3]]}]
  groups:
    - number: 3
      radius: {sampler: uniform, from: 0.1, to: 0.2}
      kinematics: {type: 2WDiff, wheel_axis: 0.3, max_speed: 0.5}
      behavior: {type: ORCA, optimal_speed: 0.4}
      state_estimation: {type: Lidar, range: 4, resolution: 61}
"""
ARGOS = b"""<argos-configuration><framework><experiment length='9' random_seed='1'/></framework>
<arena size='5,5,1'><box id='b' size='1,2,1' movable='true' mass='3'><body position='2,2,0'/></box>
<foot-bot id='f'><body position='0,0,0' orientation='5,0,0'/></foot-bot>
<distribute><position method='uniform' min='-2,-2,0' max='2,0,0'/><entity quantity='3' max_trials='50'>
<e-puck id='e'/></entity></distribute></arena></argos-configuration>"""
EXAMPLES = {
    "movingai": [moving(["@@@", "@.@", "@@@"]).encode()],
    "armap": [
        b'2D-Map\nCairn: RobotHome 1 2 90 "" ICON "Home"\nLINES\n0 0 1000 0\nDATA\n20 20\n'
    ],
    "stage": [WORLD],
    "irsim": [IRSIM],
    "sdf": [SDF],
    "mvsim": [MVSIM],
    "rmf": [RMF],
    "navground": [NAVGROUND],
    "argos": [ARGOS],
    # These worlds consist of several files, see tests/formats/importers.
    "flatland": [b"properties: {}\nlayers: [{name: empty}]\nmodels: []\n"],
    # ROS maps consist of two files, see tests/formats/test_rosmap.py.
    "rosmap": [],
    "occupancygrid": [FLOW.encode(), BLOCK.encode(), AS_JSON.encode()],
    "geojson": [GEOJSON],
    "scenario": [EXAMPLE.encode()],
    "saphira": [b"0 0 1000 0\nposition 100 200 30\n"],
    "bitmap": [png(), b"P2\n2 2\n255\n0 255 255 0\n"],
    "svg": [SVG.format(width="400", height="200").encode()],
    "dxf": [dxf()],
}


@pytest.mark.parametrize("one", FORMATS, ids=lambda f: f.name)
def test_every_reader_keeps_the_rules(one: Format) -> None:
    assert one.name in EXAMPLES, (
        f'add a row "{one.name}" with the bytes of one or more good files to EXAMPLES in tests/formats/test_readers.py'
    )
    assert (
        check_map_format(
            one, EXAMPLES[one.name], rounds=20 if one.name == "dxf" else 80
        )
        == []
    )


def test_the_check_finds_bad_readers() -> None:
    def careless(source: Source, options: Options) -> World:
        int(source.text)
        return World(scene=Scene())

    def silent(source: Source, options: Options) -> World:
        if source.data != b"1":
            raise MapError("the file is not 1")
        return World(scene=Scene())

    bad = Format(name="bad", about="", suffixes=(".bad",), read=careless)
    assert any(
        "ValueError of a damaged file" in p for p in check_map_format(bad, [b"1"])
    )
    mute = Format(name="bad", about="", suffixes=(".bad",), read=silent)
    assert any(
        "expected an error that names the file" in p
        for p in check_map_format(mute, [b"1"])
    )
    assert any("cannot be read" in p for p in check_map_format(mute, [b"2"]))


@pytest.mark.parametrize(
    "one", [f for f in FORMATS if EXAMPLES[f.name]], ids=lambda f: f.name
)
def test_every_format_is_found_in_an_archive(one: Format) -> None:
    data = EXAMPLES[one.name][0]
    name = f"demo{one.suffixes[0]}"
    plain = one.read(Source(name, data), Options())
    # The archive also has a file of another program.
    files = {name.replace(".", "_"): data, "package_xml": b"<package/>"}
    made = read_world(bundle(**files))
    assert len(made.robots) == len(plain.robots)
    assert np.array_equal(made.scene.segments, plain.scene.segments)


def test_an_archive_of_foreign_files_is_refused() -> None:
    with pytest.raises(FormatError, match=r"package\.xml: not recognised"):
        read_world(bundle(package_xml=b"<package/>"))


def test_suffixes_that_nobody_knows() -> None:
    with pytest.raises(
        MapError,
        match=r'no map format has the suffix "\.doc"; there are: \.argos \.bag',
    ):
        format_of(Source("a.doc", b"hello"))

    assert format_of(Source("a.doc", b"2D-Map\n")).name == "armap"
    with pytest.raises(MapError, match="not recognised"):
        format_of(Source("a.json", b"{}"))


# -- bundles


def bundle(**files: bytes) -> Source:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), data)

    return Source("sent.zip", out.getvalue())


def test_a_bundle_is_a_world_with_its_files() -> None:
    text = b'include "inc/walls.inc"\nwall ( bitmap "p.png" size [9 9 1] )'
    scene = read_world(
        bundle(
            a_world=text,
            inc__walls_inc=b"define wall model ( gui_move 0 )",
            p_png=png(),
        )
    ).scene
    assert len(scene.segments) > 10
    ros = (
        b"image: p.png\nresolution: 0.05\norigin: [0, 0, 0]\noccupied_thresh: "
        b"0.6\nfree_thresh: 0.2\nnegate: 0\n"
    )
    assert len(read_world(bundle(m_yaml=ros, p_png=png())).scene.segments) > 10
    both = read_world(
        bundle(
            s_yaml=b"botyard: 1\nmap: m.yaml\nrobots: [{}]\n", m_yaml=ros, p_png=png()
        )
    )
    assert (len(both.robots), len(both.scene.segments) > 10) == (1, True)
    assert read_world(bundle(x_map=b"2D-Map\nLINES\n0 0 9 9\n")).scene.name == "x"


@pytest.mark.parametrize(
    "image",
    [
        "/home/me/maps/p.png",
        "../maps/p.png",
        "C:\\\\maps\\\\p.png",
        "P.PNG",
        "maps/P.png",
    ],
)
def test_what_is_packed_together_has_left_its_folders_behind(image: str) -> None:
    """Programs that save maps write full paths into them."""
    ros = (
        f"image: {image}\nresolution: 0.05\norigin: [0, 0, "
        "0]\noccupied_thresh: 0.6\nfree_thresh: 0.2\nnegate: 0\n"
    )
    assert len(read_world(bundle(m_yaml=ros.encode(), p_png=png())).scene.segments) > 10


def test_a_path_that_is_there_counts_before_a_name_that_is_like_it() -> None:
    ros = (
        b"image: maps/p.png\nresolution: 0.05\norigin: [0, 0, "
        b"0]\noccupied_thresh: 0.6\nfree_thresh: 0.2\nnegate: 0\n"
    )
    scene = read_world(bundle(m_yaml=ros, maps__p_png=png(), p_png=b"no picture")).scene
    assert len(scene.segments) > 10


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (
            bundle(m_yaml=b"image: q.png\nresolution: 1\n", p_png=b""),
            '"q.png" is not in the archive: the folder of this file has p.png',
        ),
        (
            bundle(m_yaml=b"image: q.png\nresolution: 1\n"),
            "not in the archive: the folder of this file has no other file",
        ),
        (bundle(m_yaml=b"image: m.yaml\nresolution: 1\n"), "m.yaml"),
        (bundle(m_yaml=b"image: ..\nresolution: 1\n"), "is not in the archive"),
        (bundle(), "expected a map or a world in the archive, found none"),
        (
            bundle(a_world=b"", b_world=b""),
            "expected one map or world in the archive, found a.world, b.world",
        ),
        (bundle(a_world=b'include "/etc/passwd"'), "no such file"),
        (bundle(a_world=b'include "../../../../etc/passwd"'), "no such file"),
        (
            bundle(a_world=b'model ( gui_move 0 bitmap "/etc/passwd" )'),
            "comes with this file",
        ),
        (
            bundle(m_yaml=b"image: /etc/passwd\nresolution: 1\n"),
            "is not in the archive",
        ),
        (bundle(s_yaml=b"botyard: 1\nmap: /etc/passwd\n"), "is not in the archive"),
        (
            bundle(s_yaml=b"botyard: 1\nrobots: [{model: /etc/my.p}]\n"),
            "is not in the archive",
        ),
        (Source("a.zip", b"PK\x03\x04 and nothing"), "not a .zip that can be unpacked"),
    ],
)
def test_bundles_that_are_refused(source: Source, complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        read_world(source)
    assert complaint in str(error.value)
    assert "root:" not in str(error.value) and "/tmp/botyard-" not in str(error.value)


def test_names_in_a_bundle_cannot_leave_its_folder(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../evil.map", "2D-Map\nLINES\n0 0 9 9\n")
    assert len(read_world(Source("a.zip", out.getvalue())).scene.segments) == 1
    assert not (tmp_path.parent / "evil.map").exists()


def test_a_bundle_that_would_fill_the_disk_is_refused() -> None:
    with pytest.raises(
        BudgetError, match="bytes unpacked from an archive, expected at most 100"
    ):
        read_world(
            bundle(a_map=b"2D-Map\n" + b"\n" * 200),
            Options(budget=Budget(unpacked=100)),
        )

    with pytest.raises(BudgetError, match="members"):
        read_world(
            bundle(**{f"a{i}_txt": b"" for i in range(20)}),
            Options(budget=Budget(members=3)),
        )

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("/".join("a" * 300), b"")
    with pytest.raises(BudgetError, match="nesting"):
        read_world(Source("a.zip", out.getvalue()))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.map", b"2D-Map\n")
    with pytest.raises(
        MapError, match="compressed by deflate, found compression method 14"
    ):
        read_world(Source("a.zip", out.getvalue()))


def test_an_archive_that_lies_about_its_sizes_is_counted_by_what_comes_out() -> None:
    """Overlapping files as in D.

    Fifield, A better zip bomb (WOOT 2019): one body, and many names in the table at the
    end.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.map", b"2D-Map\nDATA\n" + b"\n" * 1_000_000)
        for i in range(100):
            info = copy(archive.infolist()[0])
            info.filename = f"{i}.txt"
            archive.filelist.append(info)

    assert len(out.getvalue()) < 20_000
    with pytest.raises(FormatError, match=r"unpacked|not a \.zip"):
        read_world(
            Source("a.zip", out.getvalue()), Options(budget=Budget(unpacked=2_000_000))
        )


# -- shipped worlds


@pytest.mark.parametrize("name", list(builtin_maps()))
def test_shipped_maps_and_scenarios_run(name: str) -> None:
    told: list[str] = []
    sim = Simulation.load(name, warn=told.append)
    sim.step(20)
    assert told == []
    assert find_client_map(name, ()).is_file()
    assert load_world(name).scene.bounds is not None


@pytest.mark.parametrize("name", ["x" * 300, "y" * 300 + "/a.map", "a\0b", ""])
def test_a_name_of_a_client_that_the_system_refuses(name: str, tmp_path: Path) -> None:
    with pytest.raises(NoSuchMapError):
        find_client_map(name, [tmp_path])


# -- damaged pictures, archives and parameter files


def picture(kind: str) -> bytes:
    """A picture with noise, so that every byte matters."""
    grey = np.random.default_rng(1).integers(0, 2, (40, 30)).astype(np.uint8) * 255
    if kind == "plain":
        return (
            b"P2\n30 40\n255\n"
            + b"\n".join(b" ".join(b"%d" % v for v in row) for row in grey.tolist())
            + b"\n"
        )

    out = io.BytesIO()
    Image.fromarray(grey).save(
        out, kind, **({"lossless": True} if kind == "webp" else {})
    )
    return out.getvalue()


@pytest.mark.parametrize(
    "kind", ["png", "gif", "bmp", "jpeg", "tiff", "webp", "ppm", "plain"]
)
def test_a_picture_that_was_cut_off_is_refused_or_whole(kind: str) -> None:
    data = picture(kind)
    whole = read_world(Source("a.png", data), Options(resolution=1.0)).scene.segments
    assert len(whole) > 100
    refused = 0
    for end in range(0, len(data), max(1, len(data) // 60)):
        try:
            cut = read_world(
                Source("a.png", data[:end]), Options(resolution=1.0)
            ).scene.segments
        except MapError:
            refused += 1
            continue

        assert np.array_equal(cut, whole), f"cut at {end} of {len(data)} bytes"

    assert refused > 30


ROS = (
    b"image: p.png\nresolution: 0.05\norigin: [0, 0, 0]\noccupied_thresh: "
    b"0.6\nfree_thresh: 0.2\nnegate: 0\n"
)


def test_damaged_archives_and_what_is_in_them() -> None:
    draw = random.Random(7)
    parts = {
        "s.yaml": b"botyard: 1\nmap: m.yaml\nrobots: [{model: r.p}]\n",
        "m.yaml": ROS,
        "p.png": png(),
        "r.p": b"Class Pioneer\nSonarNum 2\n",
    }
    good = bundle(**{n.replace(".", "_"): d for n, d in parts.items()}).data
    assert len(read_world(Source("a.zip", good)).robots) == 1
    for damaged in damaged_copies(good, draw, 150):
        with contextlib.suppress(FormatError):
            read_world(Source("a.zip", damaged))

    for name, data in parts.items():
        for damaged in damaged_copies(data, draw, 40):
            with contextlib.suppress(FormatError):
                read_world(
                    bundle(
                        **{
                            n.replace(".", "_"): damaged if n == name else d
                            for n, d in parts.items()
                        }
                    )
                )


def test_damaged_descriptions_and_plans(tmp_path: Path) -> None:
    draw = random.Random(8)
    adf = (
        b"bodies: [b]\nb: {name: a, shape: Box, geometry: {x: 1, y: 1}, mass: "
        b"2, location: {position: {x: 1, y: 2, z: 0}}}\n"
    )
    for damaged in damaged_copies(adf, draw, 200):
        with contextlib.suppress(FormatError):
            parse_adf(Source("a.yaml", damaged))

    for suffix, data in (
        (".p", b"Class Pioneer\nRobotWidth 500\nSonarNum 2\nSonarUnit 0 1 2 3\n"),
        (".toml", b'extends = "p3dx"\ncolor = "red"\n'),
    ):
        path = tmp_path / f"m{suffix}"
        for damaged in damaged_copies(data, draw, 150):
            path.write_bytes(damaged)
            with contextlib.suppress(FormatError, ModelError):
                find_robot(path)


BAD = "ev\x1b[2J\nil"


@pytest.mark.parametrize(
    "files",
    [
        {BAD + ".map": "x"},
        {BAD + ".yaml": 'botyard: 1\nmap: "no\\e.map"\n'},
        {BAD + ".yaml": "botyard: 1\nmap: b.map\n", "b.map": "2D-Map\nNumPoints: 0\n"},
        {"a.yaml": "botyard: 1\nmap: b.map\n", "b.map/x": "2D"},
        {"a.yaml": 'botyard: 1\nrobots: [{model: "x\\e.toml"}]\n'},
        {"a.yaml": 'botyard: 1\nrobots: [{model: "x\\e"}]\n'},
        {"a.yaml": f'botyard: 1\n? "k\\e{"y" * 5000}"\n: 3\n'},
        {"x" * 300 + ".map": "2D-Map\n"},
        {"a.world": f'include "{BAD}.inc"\n'},
        {"a.world": f'define p position ( drive "{BAD}" )\np()\n'},
        {"a.svg": "<svg>&a\u202eb;</svg>"},
        {"a\x1b.map": "", "b\x1b.map": ""},
    ],
    ids=range(12),
)
def test_what_is_told_of_an_archive_names_it_and_is_fit_for_a_terminal(
    files: dict[str, str],
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)

    told: list[str] = []
    try:
        world = read_world(
            Source("of/mine.zip", packed.getvalue()), Options(warn=told.append)
        )
        told.append(world.scene.source)
    except BotyardError as error:
        told.append(str(error))

    assert "of/mine.zip" in told[-1]
    for text in told:
        assert (
            text.isprintable()
            and len(text) < 1300
            and tempfile.gettempdir() not in text
        )


def test_the_page_offers_files_of_all_formats() -> None:
    """The page's list of suffixes is made from the registry."""
    from tools.web_types import TARGET, everything

    text = TARGET.read_text("utf-8")
    assert text == everything(), (
        f"run: python tools/web_types.py, and commit {TARGET.name}"
    )
    (line,) = re.findall(r'WORLD_FILES = "(.*)"', text)
    offered = line.split(",")
    for one in FORMATS:
        assert {*one.suffixes} <= {*offered}, one.name
    assert ".zip" in offered
