from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import BudgetError, MapError
from botyard.formats import armap, armapparts, armapwriter
from botyard.formats.armapparts import ArMap, Cairn, InfoLine, ScanSource
from botyard.formats.armapscene import to_scene
from botyard.formats.budget import Budget
from botyard.formats.mapsearch import builtin_maps, find_map
from botyard.formats.registry import load_scene

HEADER = "2D-Map\n"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "lines", "points", "start"),
    [
        ("columbia", 470, 63311, (-182, 176, 0)),
        ("AMROffice", 243, 23181, (-2822, -2937, -91.9)),
        ("office", 101, 0, (1000, 1498, 0)),
        ("triangle", 9, 0, (5090, 3580, 54)),
        ("ActivMediaLab", 71, 0, (7760, 675, 0)),
    ],
)
def test_real_maps(
    shared: Path, name: str, lines: int, points: int, start: tuple[float, float, float]
) -> None:
    m = armap.read(shared / f"data/maps/{name}.map")
    assert (len(m.lines), len(m.points)) == (lines, points)
    assert m.warnings == ()
    pose = to_scene(m).start
    assert pose is not None
    assert (pose.x * 1000, pose.y * 1000, math.degrees(pose.th)) == pytest.approx(start)
    assert armap.parse(armapwriter.dumps(m)) == m


@pytest.mark.shared
def test_columbia_and_amroffice_details(shared: Path) -> None:
    columbia = to_scene(armap.read(shared / "data/maps/columbia.map"))
    geo = columbia.georeference
    assert geo is not None
    assert (geo.latitude, geo.longitude, geo.altitude) == (42.807191, -71.578661, 72.0)
    assert columbia.resolution == 0.02
    office = to_scene(armap.read(shared / "data/maps/AMROffice.map"))
    assert len(office.boxes) == 5, "the legacy type Sim.BoxObstacle needs no attributes"
    assert all(
        b.returns.obstacle and b.returns.laser == 1 and b.returns.sonar
        for b in office.boxes
    )


@pytest.mark.parametrize(
    "first", ["2D-Map", "2D-Map-Ex", "2d-map-ex2", "2D-Map-Ex3", "2D-Map-Ex4 "]
)
def test_all_categories(first: str) -> None:
    assert armap.parse(f"{first}\nLINES\n0 0 1 1\n").category == first.strip()


def test_newer_category_warns() -> None:
    assert "newer" in armap.parse("2D-Map-Ex7\n").warnings[0]


@pytest.mark.parametrize(
    "text", ["", "P5\n", "hello\nLINES\n", "2D-Maps\n", "2D-Map-Foo\n"]
)
def test_what_is_not_a_map(text: str) -> None:
    with pytest.raises(MapError) as error:
        armap.parse(text, "x.map")
    assert str(error.value).startswith("x.map:1: not an ArMap: expected")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("OriginLatLongAlt: 1 2", "3 numbers"),
        ("OriginLatLongAlt: a b c", "3 numbers"),
        ("OriginLatLongAlt: 95 0 0", "±90"),
        ("Resolution: none", "1 numbers"),
        ("Resolution: 0", "above 0"),
        ("Resolution: nan", "1 numbers"),
        ("Sources:", "list of different names"),
        ("Sources: a A", "different names"),
    ],
)
def test_malformed_headers_name_file_and_line(line: str, complaint: str) -> None:
    with pytest.raises(MapError) as error:
        armap.parse(f"2D-Map\nNumLines: 3\n{line}\n", "x.map")
    assert error.value.line == 3
    assert complaint in str(error.value)


def test_line_ends_case_and_trailing_text() -> None:
    m = armap.parse(
        '2D-Map\r\nresolution: 50\r\ncairn: Goal 1 2 3 "" ICON "a b"\r\nlines\r\n0 0 10 0 rest\r\nData\r\n5 6\r\n'
    )
    assert m.sources[0].resolution == 50
    assert m.cairns[0].name == "a b"
    assert m.lines.tolist() == [[0, 0, 10, 0]]
    assert m.points.tolist() == [[5, 6]]


def test_rows_that_do_not_parse_are_skipped_and_told() -> None:
    m = armap.parse(HEADER + "LINES\n0 0 1 1\nfoo\n2 2 3\n4 4 5 5\nDATA\n", "x.map")
    assert m.lines.tolist() == [[0, 0, 1, 1], [4, 4, 5, 5]]
    assert m.warnings == (
        "x.map:4: row skipped: expected 4 numbers; "
        "2 rows of this section are skipped in total",
    )


def test_infinite_rows_are_skipped() -> None:
    m = armap.parse(HEADER + "DATA\n1 2\ninf 3\nnan nan\n1e999 0\n")
    assert m.points.tolist() == [[1, 2]]
    assert "3 rows" in m.warnings[0]


def test_far_rows_are_refused_with_their_line() -> None:
    with pytest.raises(
        BudgetError,
        match=r"x\.map:5: too large: found 1e\+12 m across.*--max-read extent",
    ):
        armap.parse(HEADER + "DATA\n1 2\n\n1e15 0\n", "x.map")

    with pytest.raises(BudgetError, match=r"160000 m across"):
        armap.parse(HEADER + "LINES\n-80000000 0 1 1\n80000000 0 1 1\n", "x.map")
    wide = armap.parse(HEADER + "DATA\n1 2\n1e15 0\n", budget=Budget(extent=1e12))
    assert len(wide.points) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "NumPoints: 3\nDATA\n1 1\n2 2\n",
            "x.map:2: 3 points are announced, found 2: the file seems to be truncated",
        ),
        (
            "NumLines: 1\nNumPoints: 3\nLINES\n0 0 9 9\n",
            "x.map:3: 3 points are announced, found 0",
        ),
        (
            "NumLines: 3\nLINES\n0 0 9 9\n1 1 2",
            "x.map:2: 3 lines are announced, found 2",
        ),
        ("NumLines: 3\n", "x.map:2: 3 lines are announced, found 0"),
        (
            "Sources: A B\nB_NumPoints: 2\nDATA\nB_DATA\n1 1\n",
            "x.map:3: B: 2 points are announced, found 1",
        ),
        ("NumPoints: 1e999\nDATA\n1 1\n", "inf points are announced, found 1"),
    ],
)
def test_maps_that_were_cut_off_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(MapError) as error:
        armap.parse(HEADER + text, "x.map")
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (
            "NumLines: 3\nLINES\n0 0 9 9\nDATA\n",
            "x.map:2: 3 lines are announced, found 1",
            # A user has removed lines by hand, without correcting the number.
        ),
        (
            "NumLines: 1\nLINES\n0 0 9 9\n",
            "x.map: there is no DATA section; the file may be incomplete",
        ),
        ("NumPoints: 1\nDATA\n1 1\n2 2\n", "x.map:2: 1 points are announced, found 2"),
        (
            "LINES\n0 0 9 9\n",
            "x.map: there is no DATA section; the file may be incomplete",
        ),
        (
            "NumPoints: many\nDATA\n",
            'x.map:2: expected the number of points, found "many"',
        ),
    ],
)
def test_doubts_about_the_number_of_rows_are_told(text: str, remark: str) -> None:
    assert armap.parse(HEADER + text, "x.map").warnings == (remark,)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", ["office", "warehouse"])
def test_every_shipped_map_that_is_cut_off_is_told(name: str, share: float) -> None:
    text = builtin_maps()[name].read_text()
    assert armap.parse(text).warnings == ()
    told: list[str] = []
    with contextlib.suppress(MapError):
        told += armap.parse(text[: int(len(text) * share)]).warnings
        assert any("no DATA" in t for t in told)


def test_a_cut_row_counts_and_a_whole_file_without_last_line_end_is_good() -> None:
    assert armap.parse(HEADER + "NumPoints: 2\nDATA\n1 1\n2 2").warnings == ()
    assert armap.parse(HEADER + "NumLines: 1\nLINES\n1 1 2 2\nDATA").warnings == ()


def test_budget_of_rows_sources_and_header() -> None:
    with pytest.raises(BudgetError, match="vertices"):
        armap.parse(HEADER + "DATA\n" + "1 1\n" * 20, budget=Budget(vertices=10))
    with pytest.raises(BudgetError, match="entities"):
        armap.parse(HEADER + "x\n" * 20, budget=Budget(entities=10))
    # The cost was once quadratic in sources and lines.
    many = " ".join(f"s{i}" for i in range(3000))
    m = armap.parse(HEADER + f"Sources: {many}\n" + "s1_Display: x\n" * 3000 + "DATA\n")
    assert len(m.sources[1].headers) == 3000


def test_numbers_that_no_machine_holds() -> None:
    digits = "9" * 5000
    text = (
        f"2D-Map-Ex{digits}\nNumPoints: 0\nMapInfo: SectorType Name=A "
        "Sim.Obstacle=yes Sim.LaserReflect=1e999\n"
    )
    m = armap.parse(
        text
        + f'Cairn: A {digits} 0 0 "" ICON "" 0 0 1 1\nCairn: A 0 0 0 "" ICON "" 0 0 1 1\nDATA\n'
    )
    assert any("newer" in w for w in m.warnings) and any(
        "finite" in w for w in m.warnings
    )
    assert len(to_scene(m).boxes) == 1


def test_points_without_lines_are_loaded() -> None:
    assert len(to_scene(armap.parse(HEADER + "DATA\n1 2\n3 4\n")).points) == 2


def test_cairns() -> None:
    m = armap.parse(
        HEADER
        + 'Cairn: GoalWithHeading 1.5 -2 90 "some text" ID=4 "the goal"\n'
        + 'Cairn: ForbiddenLine 0 0 0 "" ICON "" 1 2 3 4 "more"\n'
        + "Cairn: Goal 1 2\n"
        + 'Cairn: Goal x 2 0 "" ICON ""\n'
        + '_Cairn: Goal 1 2 0 "" ICON "off"\n'
        + 'ChildCairn: Goal 1 2 0 "" ICON "child"\n'
        + "Whatever: this is\nDATA\n",
        "x.map",
    )
    assert m.cairns[0] == Cairn(
        type="GoalWithHeading",
        x=1.5,
        y=-2,
        th=90,
        description="some text",
        icon="ID=4",
        name="the goal",
    )
    assert m.cairns[1].from_to == (1, 2, 3, 4)
    assert m.cairns[1].extra == ("more",)
    assert len(m.cairns) == 2
    assert [w.split(": ")[0] for w in m.warnings] == ["x.map:4", "x.map:5"]
    assert m.inactive == ('_Cairn: Goal 1 2 0 "" ICON "off"',)
    assert m.child_cairns[0].name == "child"
    assert m.remainder == ("Whatever: this is",)


def test_mapinfo_definitions() -> None:
    """MAP-005:

    each keyword in any case, with quoted arguments, in the order of the file; writing
    keeps them.
    """
    m = armap.parse(
        HEADER
        + 'MapInfo: SectorType Name=Crate "Label=a crate" Sim.Obstacle=yes\n'
        + "mapinfo: GoalType Name=Shelf\n"
        + 'TaskInfo: TaskType Name=Wait "Desc=to wait"\nMapInfos: no keyword\nDATA\n'
    )
    assert m.infos == (
        InfoLine(
            "MapInfo", ("SectorType", "Name=Crate", "Label=a crate", "Sim.Obstacle=yes")
        ),
        InfoLine("MapInfo", ("GoalType", "Name=Shelf")),
        InfoLine("TaskInfo", ("TaskType", "Name=Wait", "Desc=to wait")),
    )
    assert m.remainder == ("MapInfos: no keyword",)
    assert armap.parse(armapwriter.dumps(m)).infos == m.infos


def test_several_sources() -> None:
    m = armap.parse(
        "2D-Map-Ex\nSources: Main Front_Laser\nResolution: "
        "20\nFront_LaserResolution: 100\nNumPoints: 1\n"
        "LINES\n0 0 1 1\nFront_Laser_LINES\n5 5 6 6\nDATA\n1 1\nFront_Laser_DATA\n2 2\n3 3\n"
    )
    assert [s.name for s in m.sources] == ["Main", "Front_Laser"]
    assert [s.resolution for s in m.sources] == [20, 100]
    assert [len(s.points) for s in m.sources] == [1, 2]
    assert len(m.lines) == 2
    assert armap.parse(armapwriter.dumps(m)) == m


def test_a_source_that_was_not_declared_is_read_with_a_warning() -> None:
    m = armap.parse("2D-Map\nDATA\n1 1\nOther_DATA\n2 2\n")
    assert len(m.points) == 2
    assert "not in the Sources list" in m.warnings[0]
    assert len(armap.parse(armapwriter.dumps(m)).points) == 2


def sector(attributes: str, cairn: str = "0 0 0", rect: str = "0 0 1000 500") -> ArMap:
    return armap.parse(
        f'{HEADER}MapInfo: SectorType {attributes}\nCairn: Thing {cairn} "" ICON "" {rect}\n'
    )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("Name=Thing Sim.Obstacle=yes", (True, 1, True)),
        ("Name=Thing Sim.Obstacle=yes Label=x Color0=0x00ff00", (True, 1, True)),
        ("Name=Thing Sim.LaserReflect=32 Sim.Obstacle=yes", (True, 33, True)),
        ("Name=Thing Sim.Obstacle=no Sim.LaserReflect=0", (False, 0, True)),
        (
            "Name=Thing Sim.Obstacle=true Sim.LaserReflect=1 Sim.SonarReflect=no",
            (True, 1, False),
        ),
        ("Name=Thing Label=Thing Shape=Plain", None),
        ("Name=Thing Sim.LaserReflect=5", None),
    ],
)
def test_sim_attributes_in_any_order(
    attributes: str, expected: tuple[bool, int, bool] | None
) -> None:
    boxes = to_scene(sector(attributes)).boxes
    if expected is None:
        assert boxes == ()
    else:
        returns = boxes[0].returns
        assert (returns.obstacle, returns.laser, returns.sonar) == expected


def test_rectangles_turn_about_the_origin_of_the_map() -> None:
    box = to_scene(
        sector("Name=Thing Sim.Obstacle=yes", "0 0 90", "1000 0 3000 500")
    ).boxes[0]
    assert (box.pose.x, box.pose.y) == pytest.approx((-0.25, 2.0))
    assert box.pose.th == pytest.approx(math.pi / 2)
    assert (box.length, box.width) == pytest.approx((2.0, 0.5))


def test_objects_have_names_of_their_own_and_the_colour_of_their_type() -> None:
    """OBJ-014, OBJ-015: numbered by kind in the order of the file.

    The colour is the type's Color0, otherwise magenta for bright objects and green for
    others.
    """
    text = "".join(
        f"MapInfo: SectorType Name={n} Sim.Obstacle=yes {more}\n"
        for n, more in (
            ("Red", "Color0=0xff0102"),
            ("Plain", ""),
            ("Bright", "Sim.LaserReflect=5"),
        )
    )
    kinds = ["Red", "Plain", "Reflector", "Bright", "Red", "Reflector"]
    text += "".join(
        f'Cairn: {k} 0 0 0 "" ICON "" {i}000 0 {i}500 500\n'
        for i, k in enumerate(kinds)
    )
    boxes = to_scene(armap.parse(HEADER + text)).boxes
    assert [(b.name, b.color) for b in boxes] == [
        ("Box:1", "#ff0102"),
        ("Box:2", "light green"),
        ("Reflector:1", "magenta"),
        ("Box:3", "magenta"),
        ("Box:4", "#ff0102"),
        ("Reflector:2", "magenta"),
    ]


def test_reflector_lines_are_thin_bright_boxes() -> None:
    m = armap.parse(HEADER + 'Cairn: Reflector 0 0 0 "" ICON "" 0 0 0 2000\n')
    (box,) = to_scene(m).boxes
    assert box.returns.laser == 2
    assert (box.length, box.width) == pytest.approx((2.0, 0.02))


def test_boundary_lines_obey_the_sim_attributes() -> None:
    """An extension: the original knows them on SectorType only (OBJ-010, UNS-027)."""
    info = "MapInfo: BoundaryType Name=Glass Sim.Obstacle=yes Sim.LaserReflect=no Color0=0x00FF00\n"
    plain = "MapInfo: BoundaryType Name=Chalk Label=Chalk\n"
    lines = 'Cairn: Glass 0 0 45 "" ICON "" 0 0 3000 0\nCairn: Chalk 0 0 45 "" ICON "" 0 0 0 3000\n'
    scene = to_scene(armap.parse(HEADER + info + plain + lines))
    (box,) = scene.boxes
    assert (box.length, box.width, box.color, box.returns.laser, box.returns.sonar) == (
        3.0,
        0.02,
        "#00FF00",
        0,
        True,
    )
    assert (box.pose.x, box.pose.y, box.pose.th) == (1.5, 0.0, 0.0), (
        "the heading of a line means nothing"
    )
    assert [a.corners for a in scene.areas] == [((0.0, 0.0), (0.0, 3.0))]


@pytest.mark.parametrize(
    ("cairns", "expected"),
    [
        (("Dock 5 6 7", "RobotHome 1 2 3", "RobotHome 8 8 8"), (1, 2, 3)),
        (("Goal 9 9 9", "dock 5 6 7"), (5, 6, 7)),
        (("Goal 9 9 9",), None),
    ],
)
def test_home_selection(
    cairns: tuple[str, ...], expected: tuple[float, float, float] | None
) -> None:
    start = to_scene(
        armap.parse(HEADER + "".join(f'Cairn: {c} "" ICON ""\n' for c in cairns))
    ).start
    if expected is None:
        assert start is None
    else:
        assert start is not None
        assert (
            start.x * 1000,
            start.y * 1000,
            math.degrees(start.th),
        ) == pytest.approx(expected)


def test_a_dock_of_the_maps_own_type_is_a_home() -> None:
    """MAP-006: DockType gives the name of a kind of dock."""
    cairn = 'Cairn: Charger 5000 6000 0 "" ICON ""\n'
    assert to_scene(armap.parse(HEADER + cairn)).start is None
    start = to_scene(
        armap.parse(HEADER + "MapInfo: DockType Name=Charger\n" + cairn)
    ).start
    assert start == (5.0, 6.0, 0.0)


def test_a_home_that_is_a_sector_starts_at_its_centre() -> None:
    start = to_scene(
        armap.parse(HEADER + 'Cairn: RobotHome 0 0 90 "" ICON "" 1000 0 3000 2000\n')
    ).start
    assert start is not None
    assert (start.x, start.y, start.th) == pytest.approx((-1.0, 2.0, math.pi / 2))


def test_degenerate_lines_are_dropped() -> None:
    assert (
        len(to_scene(armap.parse(HEADER + "LINES\n1 1 1 1\n0 0 1 0\n")).segments) == 1
    )


def test_lines_and_points_become_walls_that_lasers_see() -> None:
    """MAP-002, MAP-008, MAP-009:

    every line in its place, and points; lines of length zero are dropped.
    """
    text = (
        "LINES\n2000 -3000 2000 3000\n-1000 -3000 -1000 3000\n5 5 5 5\n-1000 "
        "3000 2000 3000\nDATA\n1000 0\n-500 -1000\n"
    )
    scene = to_scene(armap.parse(HEADER + text))
    assert scene.segments.tolist() == [[2, -3, 2, 3], [-1, -3, -1, 3], [-1, 3, 2, 3]]
    assert scene.points.tolist() == [[1, 0], [-0.5, -1]]
    assert scene.resolution == 0.02, "2 cm, where the map says nothing (GEN-025)"
    assert (
        to_scene(armap.parse(HEADER + "Resolution: 50\nDATA\n1 2\n")).resolution == 0.05
    )


def test_what_the_format_does_not_know_is_kept() -> None:
    """MAP-012: unknown lines have no effect and are written back."""
    text = HEADER + "Zebra: 1 2 3\nLINES\n0 0 1000 0\nDATA\n1 2\n"
    found = armap.parse(text)
    assert len(found.lines) == 1 and len(found.points) == 1
    assert "Zebra: 1 2 3" in armapwriter.dumps(found)
    assert armap.parse(armapwriter.dumps(found)) == found


def test_huge_extent_warns() -> None:
    for text in ("LINES\n0 0 3000000 0\nDATA\n", "DATA\n0 0\n3000000 0\n"):
        assert "2 km" in armap.parse(HEADER + text).warnings[0]


word = st.text(
    st.characters(
        codec="latin-1",
        exclude_characters='"',
        exclude_categories=("Cc", "Zs", "Zl", "Zp", "Cs"),
    ),
    max_size=8,
)
text_with_blanks = st.lists(word.filter(bool), max_size=3).map(" ".join)
coordinate = st.integers(-100_000, 100_000).map(float)
cairns = st.builds(
    Cairn,
    type=word.filter(bool),
    x=coordinate,
    y=st.floats(-1e5, 1e5),
    th=st.floats(-180, 180),
    name=text_with_blanks,
    description=text_with_blanks,
    icon=st.sampled_from(["ICON", "ID=7"]),
    from_to=st.none() | st.tuples(coordinate, coordinate, coordinate, coordinate),
)
rows = st.lists(st.tuples(coordinate, coordinate), max_size=5)
maps = st.builds(
    ArMap,
    category=st.sampled_from(["2D-Map", "2D-Map-Ex2"]),
    sources=st.builds(
        lambda r, res: (ScanSource(points=np.array(r).reshape(-1, 2), resolution=res),),
        rows,
        st.none() | st.just(20.0),
    ),
    origin=st.none()
    | st.tuples(st.floats(-90, 90), st.floats(-180, 180), st.floats(-100, 1000)),
    cairns=st.lists(cairns, max_size=3).map(tuple),
    infos=st.lists(
        st.builds(
            InfoLine,
            st.sampled_from(armapparts.INFO_KEYWORDS),
            st.lists(text_with_blanks, max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@given(maps)
def test_reading_what_was_written_gives_the_same_map(m: ArMap) -> None:
    assert armap.parse(armapwriter.dumps(m)) == m


@given(st.text(max_size=200))
def test_any_text_gives_a_map_or_a_map_error(text: str) -> None:
    for candidate in (text, HEADER + text, HEADER + "LINES\n" + text):
        with contextlib.suppress(MapError):
            to_scene(armap.parse(candidate))


def test_finding_maps(tmp_path: Path) -> None:
    assert {"office", "warehouse"} <= set(builtin_maps())
    assert find_map("office") == find_map("OFFICE.MAP") == builtin_maps()["office"]
    (tmp_path / "MyLab.map").write_text(HEADER)
    assert find_map(tmp_path / "mylab.MAP").name == "MyLab.map"
    with pytest.raises(MapError, match='did you mean "office"'):
        find_map("offise")
    with pytest.raises(MapError, match="no such map file"):
        find_map(tmp_path / "none.map")
    with pytest.raises(MapError, match="expected a file"):
        armap.read(tmp_path)


def test_8_bit_files(tmp_path: Path) -> None:
    path = tmp_path / "old.map"
    path.write_bytes(b'2D-Map\nCairn: Goal 1 2 3 "" ICON "K\xfcche"\n')
    assert armap.read(path).cairns[0].name == "Küche"


@pytest.mark.parametrize("name", ["office", "warehouse"])
def test_shipped_maps_are_complete(name: str) -> None:
    warnings: list[str] = []
    scene = load_scene(name, warn=warnings.append)
    assert warnings == []
    assert scene.start is not None
    kinds = {p.kind for p in scene.places}
    assert {"RobotHome", "Dock"} <= kinds
    assert any(k.startswith("Goal") for k in kinds)
    if name == "office":
        assert scene.georeference is not None
        b = scene.bounds
        assert b is not None
        assert (b[2] - b[0], b[3] - b[1]) == pytest.approx((40, 25), abs=1)


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_maps_read_in_chunks_are_the_same(chunk: int) -> None:
    """The chunk size decides when other threads run, not the result (MAP-016)."""
    text = (
        HEADER
        + "LINES\n0 0 1 1\n\n2 2 3 x\n4 4 5 5\n6 6 7 7\nDATA\n"
        + "".join(f"{i} {i}\n" for i in range(10))
    )
    found = armap.parse(text, "a.map", chunk, chunk)
    assert found.lines.tolist() == [[0, 0, 1, 1], [4, 4, 5, 5], [6, 6, 7, 7]]
    assert found.points.tolist() == [[i, i] for i in range(10)]
    line = 1 + text.split("\n").index("2 2 3 x")
    assert [w for w in found.warnings if "skipped" in w] == [
        f"a.map:{line}: row skipped: expected 4 numbers"
    ]


@pytest.mark.parametrize("piece", [1, 2, 7, 30, 100])
def test_sections_are_found_in_pieces(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "2D-Map-Ex2\nSources: A B\nA_NumLines: 1\nA_NumPoints: 2\nResolution: "
        "20\nA_LINES\n0 0 1 1\nA_DATA\n1 1\n2 2\n  B_DATA  \n3 3"
    )
    whole = armap.parse(text)
    monkeypatch.setattr(armap, "_CHUNK_CHARS", piece)
    pieces = armap.parse(text)
    assert [s.points.tolist() for s in pieces.sources] == [
        s.points.tolist() for s in whole.sources
    ]
    assert [s.lines.tolist() for s in pieces.sources] == [
        s.lines.tolist() for s in whole.sources
    ]
    assert sum(len(s.points) for s in pieces.sources) == 3
