"""Shipped scenarios under the open sky, and of a sports field."""

from __future__ import annotations

import math
import random

from tools.worlds.pieces import (
    Thing,
    carrier,
    column,
    fixed,
    hall,
    person,
    walker,
    write,
    zone,
)


def plaza() -> None:
    draws = random.Random(5)
    width, height = 36.0, 24.0
    fountain = [column("fountain", 2.4, (18, 12), "light sky blue")]
    trees = [
        column(f"tree {k + 1}", 0.35, at, "dark green")
        for k, at in enumerate(
            [(6, 6), (6, 18), (30, 6), (30, 18), (12, 4), (12, 20), (24, 4), (24, 20)]
        )
    ]
    kiosks = [
        fixed("kiosk", [3, 2], [3, 12, 0], "indian red"),
        fixed("cafe", [3, 4], [33.5, 12, 0], "peru"),
    ]
    people = []
    for k in range(16):
        # Half of the people cross from west to east, the others from south to north. Each
        # keeps to its own line, which leads past the fountain.
        side = 1 if k % 4 < 2 else -1
        if k % 2:
            y = 12 + side * draws.uniform(4.2, 6.5)
            ends = [[1.5, y], [width - 1.5, y]]
        else:
            x = 18 + side * draws.uniform(4.2, 9.5)
            ends = [[x, 1.5], [x, height - 1.5]]
        at = draws.random()
        (x0, y0), (x1, y1) = ends
        pose = [x0 + at * (x1 - x0), y0 + at * (y1 - y0), 0]
        drive = {
            "name": "socialforce",
            "points": [[float(a), float(b)] for a, b in ends],
            "order": "back",
            "pause": 2,
            "speed": draws.uniform(0.9, 1.4),
        }
        if draws.random() < 0.5:
            drive["points"].reverse()
        people.append(person(f"person {k + 1}", pose, drive))
    robots = []
    for k, (x, y) in enumerate([(2, 3), (34, 3), (34, 21), (2, 21)]):
        points = [[36.0 - x, 24.0 - y], [float(x), float(y)]]
        drive = {
            "name": "orca",
            "points": points,
            "pause": 3,
            "speed": 0.9,
            "horizon": 3,
        }
        robots.append(
            {
                "model": "jackal",
                "name": f"parcel {k + 1}",
                "pose": [x, y, 0],
                "controller": drive,
            }
        )
    write(
        "plaza",
        "A square with a fountain: 16 pedestrians cross it by the social force model, and four\n"
        "delivery robots by ORCA.",
        "Plaza",
        {
            "walls": [hall(width, height)],
            "zones": [
                zone("north and south", [7, 0, 29, 24], "gray90"),
                zone("east and west", [0, 5, 36, 19], "gray90"),
            ],
            "robots": robots,
            "obstacles": [*fountain, *trees, *kiosks, *people],
        },
        seed=5,
        home=[2, 2, 0],
    )


def soccer() -> None:
    field = {
        "line": [
            [0, 2.2],
            [0, 0],
            [9, 0],
            [9, 2.2],
            [9.6, 2.2],
            [9.6, 3.8],
            [9, 3.8],
            [9, 6],
            [0, 6],
            [0, 3.8],
            [-0.6, 3.8],
            [-0.6, 2.2],
        ],
        "closed": True,
    }
    zones = [
        zone("grass", [0, 0, 9, 6], "pale green"),
        zone("halfway line", [4.47, 0, 4.53, 6], "white"),
        {
            "name": "centre",
            "color": "honeydew",
            "polygon": [
                [4.5 + 0.75 * math.cos(a), 3 + 0.75 * math.sin(a)]
                for a in (k * math.pi / 12 for k in range(24))
            ],
        },
        zone("goal west", [-0.6, 2.2, 0, 3.8], "light coral"),
        zone("goal east", [9, 2.2, 9.6, 3.8], "light steel blue"),
    ]
    body = {"mass": 1.8, "friction": 0.2}
    chase = {"name": "follow", "leader": "ball", "distance": 0.02, "speed": 0.5}
    robots: list[Thing] = [{"model": "ball", "name": "ball", "pose": [4.5, 3.05, 0]}]
    for team, color, x, turn in (("red", "red", 2.0, 0), ("blue", "blue", 7.0, 180)):
        sign = 1 if x < 4.5 else -1
        keep = {
            "name": "waypoints",
            "points": [[4.5 - sign * 4.2, 2.4], [4.5 - sign * 4.2, 3.6]],
            "order": "back",
            "speed": 0.3,
        }
        robots += [
            {
                "model": "foot-bot",
                "name": f"{team} keeper",
                "color": color,
                "dynamics": body,
                "pose": [4.5 - sign * 4.2, 2.4, 90],
                "controller": keep,
            },
            {
                "model": "foot-bot",
                "name": f"{team} striker",
                "color": color,
                "dynamics": body,
                "pose": [x, 3.4, turn],
                "controller": {**chase, "speed": 0.3},
            },
            {
                "model": "foot-bot",
                "name": f"{team} wing",
                "color": color,
                "dynamics": body,
                "pose": [x, 1.2, turn],
                "controller": "wander",
            },
        ]
    write(
        "soccer",
        "Two teams of three robots and a ball with mass, which rolls until friction stops it. The\n"
        "strikers chase the ball: write a controller that plays better.",
        "Soccer",
        {"walls": [field], "zones": zones, "robots": robots},
        seed=10,
        step=0.05,
        home=[2, 3, 0],
        models={
            "ball": {
                "extends": "small-box",
                "description": "ball of a soccer field",
                "color": "orange",
                "outline": [
                    [round(0.1 * math.cos(a), 4), round(0.1 * math.sin(a), 4)]
                    for a in (k * math.pi / 8 for k in range(16))
                ],
                "dynamics": {
                    "mass": 0.4,
                    "restitution": 0.6,
                    "linear_damping": 0.25,
                    "friction": 0.1,
                },
            }
        },
    )


def harbour() -> None:
    things = []
    colors = ["firebrick", "steel blue", "dark orange", "sea green", "slate gray"]
    for block in range(3):
        for row in range(3):
            for k in range(4):
                x, y = 16 + 22 * block + 3.6 * k - 1.8, 10 + 7.5 * row
                color = colors[(block + 2 * row + k) % 5]
                things.append(
                    fixed(
                        f"container {block + 1}.{row + 1}.{k + 1}",
                        [3.2, 2.5],
                        [x, y, 0],
                        color,
                    )
                )
    things += [
        fixed(f"crane {k + 1}", [3, 2], [18 + 22 * k, 36, 0], "yellow")
        for k in range(3)
    ]
    loop = [[5, 5.5], [77, 5.5], [77, 31], [5, 31]]
    robots: list[Thing] = []
    for k, (x, y, th, first) in enumerate(
        [(10, 5.5, 0, 1), (50, 5.5, 0, 1), (77, 20, 90, 2), (40, 31, 180, 3)]
    ):
        drive = {
            "name": "purepursuit",
            "points": loop[first:] + loop[:first],
            "speed": 1.4,
            "lookahead": 2.5,
            "order": "loop",
        }
        robots.append(
            {
                "model": "tugger",
                "name": f"tug {k + 1}",
                "pose": [x, y, th],
                "controller": drive,
            }
        )
    robots += [
        carrier(
            "seekur",
            "straddler 1",
            [30.6, 10, 90],
            [(30.6, 27.6), (52.6, 27.6), (52.6, 10), (30.6, 10)],
            speed=1.5,
        ),
        carrier(
            "seekur",
            "straddler 2",
            [72.8, 27, -90],
            [(72.8, 10), (52.6, 13.7), (72.8, 27)],
            speed=1.5,
        ),
        carrier(
            "husky",
            "inspector",
            [8, 13.7, 0],
            [(70, 13.7), (70, 21.2), (8, 21.2), (8, 13.7)],
            speed=1.0,
        ),
    ]
    people = [
        walker(f"docker {k + 1}", (12 + 22 * k, 34.5), [2, 33.4, 78, 34.6])
        for k in range(4)
    ]
    write(
        "harbour",
        "A container terminal: tuggers on the ring road, straddle carriers between the blocks, an\n"
        "inspection robot, dockers at the quay.",
        "Harbour",
        {
            "walls": [hall(80, 40)],
            "zones": [
                {
                    "name": "ring road",
                    "color": "gray80",
                    "polygon": [
                        [3, 3.5],
                        [79, 3.5],
                        [79, 33],
                        [3, 33],
                        [3, 3.5],
                        [7, 7.5],
                        [7, 29],
                        [75, 29],
                        [75, 7.5],
                        [7, 7.5],
                    ],
                },
                zone("water", [0, 37.5, 80, 40], "light sky blue"),
                zone("quay", [0, 33, 80, 37.5], "gray88", speed_limit=0.8),
            ],
            "robots": robots,
            "obstacles": [*things, *people],
        },
        seed=11,
        home=[5, 8.5, 90],
    )


def orchard() -> None:
    draws = random.Random(3)
    trees = []
    for row in range(6):
        for k in range(12):
            at = (
                5 + 3 * k + draws.uniform(-0.2, 0.2),
                4 + 4 * row + draws.uniform(-0.2, 0.2),
            )
            trees.append(
                column(
                    f"tree {row + 1}.{k + 1}",
                    draws.uniform(0.25, 0.5),
                    at,
                    "forest green",
                )
            )
    rows = [6 + 4 * k for k in range(5)]
    up: list[list[float]] = []
    for k, y in enumerate(rows):
        up += [[2.5, y], [40.5, y]] if k % 2 == 0 else [[40.5, y], [2.5, y]]
    robots = [
        {
            "model": "husky",
            "name": "sprayer",
            "pose": [2.5, 6, 0],
            "controller": {
                "name": "dwa",
                "points": up,
                "order": "back",
                "speed": 0.9,
                "reached": 0.6,
            },
        },
        {
            "model": "jackal",
            "name": "scout",
            "pose": [40.5, 22, 180],
            "controller": {
                "name": "vfh",
                "points": up[::-1],
                "order": "back",
                "speed": 1.2,
                "reached": 0.6,
            },
        },
        carrier(
            "p3at",
            "mower",
            [2, 2, 0],
            [(41, 2), (41, 26), (2, 26), (2, 2)],
            speed=0.6,
            pause=0,
        ),
    ]
    pickers = [
        walker(f"picker {k + 1}", (10 + 8 * k, 14), [4, 13, 40, 15], 0.6)
        for k in range(3)
    ]
    write(
        "orchard",
        "Six rows of fruit trees: a sprayer drives between them by the dynamic window, a scout by\n"
        "VFH+, both by their lasers alone.",
        "Orchard",
        {
            "walls": [hall(43, 28)],
            "zones": [
                *(
                    zone(
                        f"row {k + 1}",
                        [3.5, 3.3 + 4 * k, 39.5, 4.7 + 4 * k],
                        "dark sea green",
                    )
                    for k in range(6)
                ),
                zone("mud", [18, 9, 24, 11], "tan", slip=0.3),
            ],
            "robots": robots,
            "obstacles": [*trees, *pickers],
        },
        seed=12,
        home=[2.5, 6, 0],
        georeference=[47.2692, 11.4041, 600.0],
    )
