"""Writes the maps that come with botyard. They are drawn in this file, by hand. After a change,
run:

python tools/author_maps.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from botyard.formats.armapparts import ArMap, Cairn, InfoLine, ScanSource
from botyard.formats.armapwriter import write

OUT = Path(__file__).resolve().parent.parent / "src" / "botyard" / "maps"
Line = tuple[float, float, float, float]

# Thickness of inner walls, mm.
WALL = 120
# Width of doors, mm.
DOOR = 1000


def rectangle(x1: float, y1: float, x2: float, y2: float) -> list[Line]:
    return [(x1, y1, x2, y1), (x2, y1, x2, y2), (x2, y2, x1, y2), (x1, y2, x1, y1)]


def wall_h(y: float, x1: float, x2: float, doors: list[float] = ()) -> list[Line]:
    """Return a wall along x with openings whose left ends are `doors`: both faces and the door
    jambs.
    """
    lines: list[Line] = []
    edges = [x1, *(e for d in sorted(doors) for e in (d, d + DOOR)), x2]
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        lines += rectangle(a, y, b, y + WALL)
    return lines


def wall_v(x: float, y1: float, y2: float, doors: list[float] = ()) -> list[Line]:
    """Return a wall along y, as `wall_h` does along x."""
    return [(a, b, c, d) for b, a, d, c in wall_h(x, y1, y2, doors)]


def circle(x: float, y: float, r: float, n: int = 16) -> list[Line]:
    angles = np.linspace(0, 2 * np.pi, n + 1)
    px, py = np.rint(x + r * np.cos(angles)), np.rint(y + r * np.sin(angles))
    return [(px[i], py[i], px[i + 1], py[i + 1]) for i in range(n)]


def desk(x: float, y: float, *, turned: bool = False) -> list[Line]:
    """Return a desk of 1.6 m × 0.8 m and its chair."""
    if turned:
        return [*rectangle(x, y, x + 800, y + 1600), *circle(x + 1200, y + 800, 280, 8)]
    return [*rectangle(x, y, x + 1600, y + 800), *circle(x + 800, y + 1200, 280, 8)]


def stack(
    x: float, y: float, columns: int, rows: int, step: int = 20
) -> list[tuple[int, int]]:
    """Return scan points on a 20 mm lattice that fill a block: an object that was scanned, not
    drawn.
    """
    return [
        (int(x) + i * step, int(y) + j * step)
        for i in range(columns)
        for j in range(rows)
    ]


def office() -> ArMap:
    """Return an office of about 40 m × 25 m: a corridor from end to end, offices above it,
    laboratory, lobby and meeting room below.
    """
    lines: list[Line] = rectangle(0, 0, 40000, 25000)
    # The corridor is 2.4 m wide, between y = 13 m and y = 15.4 m.
    lines += wall_h(13000, 120, 39880, [3000, 10400, 14000, 22400, 31000, 36500])
    lines += wall_h(15400, 120, 39880, [2200, 8200, 14200, 20200, 26200, 33500])
    # Six offices are above the corridor.
    for x in (6000, 12000, 18000, 24000, 30000):
        lines += wall_v(x, 15520, 24880, [21000] if x in (12000, 24000) else [])
    for i, x in enumerate((600, 6700, 12700, 18700, 24700)):
        lines += desk(x + 2600, 22200) if i % 2 else desk(x, 19000, turned=True)
        # Shelves stand at the back wall of the office.
        lines += rectangle(x + 300, 24300, x + 2300, 24800)

    lines += (
        desk(31500, 17500, turned=True) + desk(35000, 22200) + circle(37500, 18500, 600)
    )
    # Lobby, laboratory, meeting room and store are below the corridor.
    lines += wall_v(9000, 120, 13000, [9000])
    lines += wall_v(21000, 120, 13000, [3000, 10500])
    lines += wall_v(30000, 120, 13000, [1500])
    lines += (
        circle(4500, 4500, 700)
        + rectangle(500, 500, 2700, 1300)
        + rectangle(6200, 400, 8600, 1000)
    )
    for x in (10200, 14600, 18300):
        lines += rectangle(x, 4000, x + 1800, 5000) + rectangle(x, 8200, x + 1800, 9200)
    # The bench of the laboratory.
    lines += rectangle(9300, 300, 20700, 900)
    # The table of the meeting room.
    lines += rectangle(23200, 4800, 27800, 6400)
    for x in (23700, 25300, 26900):
        lines += circle(x, 4200, 280, 8) + circle(x, 7000, 280, 8)
    lines += rectangle(31000, 500, 39300, 1100) + rectangle(31000, 4000, 36500, 4600)
    # Pallets in the store are points, as a scanner saw them.
    points = stack(38200, 8000, 40, 60) + stack(33000, 8800, 50, 12)
    # Pillars narrow the corridor.
    for x in (12300, 24600, 34800):
        lines += rectangle(x, 15180, x + 220, 15400)
    cairns = [
        Cairn(type="RobotHome", x=4500, y=9500, th=0, name="Home", icon="ICON"),
        Cairn(type="Dock", x=700, y=11800, th=180, name="Dock"),
        Cairn(type="GoalWithHeading", x=1500, y=14250, th=0, name="Corridor West"),
        Cairn(type="GoalWithHeading", x=38500, y=14250, th=180, name="Corridor East"),
        Cairn(type="Goal", x=15200, y=6600, th=0, name="Laboratory"),
        Cairn(type="GoalWithHeading", x=25500, y=9500, th=-90, name="Meeting Room"),
        Cairn(type="Goal", x=34500, y=11000, th=0, name="Store"),
        Cairn(type="Goal", x=3500, y=17000, th=0, name="Office 1"),
        Cairn(type="Goal", x=33800, y=20500, th=0, name="Office 6"),
        Cairn(
            type="MovableBox",
            x=0,
            y=0,
            th=0,
            name="parcel",
            from_to=(24000, 14000, 24500, 14500),
        ),
        Cairn(
            type="MovableBox",
            x=0,
            y=0,
            th=0,
            name="crate",
            from_to=(12000, 11200, 12700, 11800),
        ),
        Cairn(
            type="Reflector",
            x=0,
            y=0,
            th=0,
            name="",
            from_to=(39880, 13700, 39880, 14700),
        ),
        Cairn(
            type="BadGPSSector",
            x=0,
            y=0,
            th=0,
            name="",
            from_to=(30000, 0, 40000, 13000),
        ),
    ]
    cairns.append(
        Cairn(
            type="ForbiddenArea",
            x=0,
            y=0,
            th=0,
            name="",
            from_to=(30500, 300, 39700, 5000),
        )
    )
    infos = (
        InfoLine(
            "MapInfo",
            (
                "SectorType",
                "Name=MovableBox",
                "Label=Movable box",
                "Sim.Obstacle=yes",
                "Color0=0xd0a060",
            ),
        ),
        InfoLine(
            "MapInfo",
            (
                "SectorType",
                "Name=BadGPSSector",
                "Label=Bad GPS",
                "Desc=Under a steel roof: no GPS",
            ),
        ),
    )
    source = ScanSource(
        lines=np.array(lines, dtype=float),
        points=np.array(points, dtype=float),
        resolution=20.0,
        headers=(("PointsAreSorted", "false"),),
    )
    return ArMap(
        category="2D-Map-Ex",
        sources=(source,),
        origin=(48.1375, 11.5755, 520.0),
        infos=infos,
        cairns=tuple(cairns),
    )


def warehouse() -> ArMap:
    """Return a warehouse of 60 m × 40 m: rows of racks with cross aisles, a packing area, and
    loading docks.
    """
    lines: list[Line] = rectangle(0, 0, 60000, 40000)
    for row in range(9):
        x = 8000 + row * 4600
        for y1, y2 in ((9000, 17500), (20500, 29000), (32000, 38000)):
            lines += rectangle(x, y1, x + 2200, y2)
            lines += [(x + 1100, y1, x + 1100, y2)]

    # Packing tables.
    for i in range(5):
        lines += rectangle(6000 + i * 5000, 4200, 8400 + i * 5000, 5200)
    # Columns of the hall.
    for x in (16200, 30200, 44200):
        for y in (7600, 18800, 30400):
            lines += rectangle(x, y, x + 400, y + 400)

    # The office of the shift leader.
    lines += wall_v(52500, 120, 12000, [5000])
    lines += wall_h(12000, 52500, 59880, [55000])
    lines += rectangle(54000, 8000, 55600, 8800)
    # Loading docks in the west wall.
    for i in range(4):
        y = 12000 + i * 6000
        lines += [(0, y, 1200, y), (0, y + 3200, 1200, y + 3200)]

    cairns = [
        Cairn(type="RobotHome", x=4000, y=7000, th=0, name="Home"),
        Cairn(type="Dock", x=2500, y=2000, th=180, name="Charger 1"),
    ]
    cairns += [
        Cairn(type="Dock", x=2500, y=2000 + 1500 * i, th=180, name=f"Charger {i + 1}")
        for i in (1, 2)
    ]
    cairns += [
        Cairn(
            type="GoalWithHeading",
            x=3500,
            y=13600 + 6000 * i,
            th=180,
            name=f"Gate {i + 1}",
        )
        for i in range(4)
    ]
    cairns += [
        Cairn(type="Goal", x=11500 + 4600 * i, y=19000, th=0, name=f"Aisle {i + 1}")
        for i in range(9)
    ]
    cairns += [
        Cairn(type="Goal", x=7200 + 5000 * i, y=6200, th=0, name=f"Packing {i + 1}")
        for i in range(5)
    ]
    cairns += [
        Cairn(type="Sim.BoxObstacle", x=0, y=0, th=0, from_to=(x, y, x + 1200, y + 800))
        for x, y in ((51000, 20000), (51000, 24500), (35500, 30200))
    ]
    infos = (
        InfoLine(
            "MapInfo",
            ("SectorType", "Name=Sim.BoxObstacle", "Label=Pallet", "Color0=0xc08040"),
        ),
    )
    source = ScanSource(lines=np.array(lines, dtype=float))
    return ArMap(
        category="2D-Map", sources=(source,), infos=infos, cairns=tuple(cairns)
    )


if __name__ == "__main__":
    for name, armap in (("office", office()), ("warehouse", warehouse())):
        write(armap, OUT / f"{name}.map")
        print(OUT / f"{name}.map")
