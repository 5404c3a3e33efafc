"""Shipped scenarios of buildings."""

from __future__ import annotations

import random
from typing import Any

from tools.worlds.pieces import (
    carrier,
    column,
    fixed,
    hall,
    person,
    walker,
    write,
    zone,
)


def deliveries() -> None:
    office = {"corridor": [2, 13.4, 38, 15.0], "lobby": [0.8, 5.5, 8.2, 12.2]}
    stops = {
        "lobby": (4.5, 9.5),
        "lab": (15.2, 6.6),
        "meeting": (25.5, 9.5),
        "store": (34.5, 11.0),
        "office 1": (3.5, 17.0),
        "office 3": (15.0, 17.0),
        "office 6": (33.8, 20.5),
    }
    routes = [
        ("mail 1", "red_p3dx", ("lobby", "office 1", "lab")),
        ("mail 2", "blue_p3dx", ("store", "office 6", "meeting")),
        ("tea", "green_p3dx", ("office 3", "lab", "meeting")),
        ("files", "orange_p3dx", ("meeting", "office 1", "office 6", "store")),
    ]
    robots = [
        carrier(
            model, name, [*stops[points[0]], 90], [stops[p] for p in points], speed=0.8
        )
        for name, model, points in routes
    ]
    people = [
        walker("clerk", (10, 14.2), office["corridor"]),
        walker("visitor", (29, 14.2), office["corridor"], 0.9),
        walker("guest", (2.5, 7), office["lobby"], 0.8),
        walker("chemist", (13.2, 6.6), [12.6, 1.5, 14.2, 12], 0.8),
    ]
    write(
        "deliveries",
        "Four robots carry mail, tea and files between the rooms of the office, among people.",
        "Deliveries in the office",
        {"robots": robots, "obstacles": people},
        map="office",
        seed=4,
        view=[0, 0, 40, 25],
    )


def shift() -> None:
    gates = [(3.5, 13.6 + 6 * i) for i in range(4)]
    # A column of the hall stands in each third aisle.
    aisles = [(11.5 + 4.6 * i, 19.0) for i in range(9) if i % 3 != 1]
    packing = [(7.2 + 5 * i, 6.4) for i in range(5)]
    robots = []
    for k in range(8):
        points = [
            packing[k % 5],
            aisles[(2 * k + 1) % 6],
            gates[k % 4],
            aisles[(2 * k) % 6],
        ]
        start = points[k % 4]
        turned = points[k % 4 + 1 :] + points[: k % 4 + 1]
        # Two robots must not start at one place.
        pose = [start[0], start[1] + (1.2 if k >= 4 else 0), 90]
        robots.append(carrier("mir250", f"mir {k + 1}", pose, turned, speed=1.4))
    people = [
        walker(f"packer {k + 1}", (9.8 + 5 * k, 3.0), [5, 1.5, 29, 3.8], 0.9)
        for k in range(3)
    ]
    write(
        "shift",
        "Eight AMRs carry goods between the gates, the racks and the packing tables.",
        "A shift in the warehouse",
        {"robots": robots, "obstacles": people},
        map="warehouse",
        seed=3,
        view=[0, 0, 60, 40],
    )


def museum() -> None:
    # Six rooms of 10 m × 9 m, three in a row, with doors of 2 m.
    walls: list[Any] = [hall(30, 18)]
    for x in (10, 20):
        walls += [[[x, 0], [x, 3.5]], [[x, 5.5], [x, 12.5]], [[x, 14.5], [x, 18]]]
    walls += [
        [[0, 9], [4, 9]],
        [[6, 9], [14, 9]],
        [[16, 9], [24, 9]],
        [[26, 9], [30, 9]],
    ]
    colors = [
        "wheat",
        "light pink",
        "light steel blue",
        "pale green",
        "thistle",
        "khaki",
    ]
    rooms = [(5 + 10 * (k % 3), 4.5 + 9 * (k // 3)) for k in range(6)]
    zones = [
        zone(f"room {k + 1}", [x - 5, y - 4.5, x + 5, y + 4.5], colors[k])
        for k, (x, y) in enumerate(rooms)
    ]
    exhibits = []
    for k, (x, y) in enumerate(rooms):
        for dx, dy in ((-3, 2.6), (3, 2.6), (-3, -2.6), (3, -2.6)):
            name = f"exhibit {len(exhibits) + 1}"
            if (k + (dx > 0)) % 2:
                exhibits.append(column(name, 0.5, (x + dx, y + dy), "slate gray"))
            else:
                exhibits.append(fixed(name, [1, 1], [x + dx, y + dy, 20 * k], "sienna"))
    tour = [(5, 6.5), (5, 13), (15, 13), (25, 13), (25, 5), (15, 5)]
    robots = [
        carrier("peoplebot", "guide", [5, 4, 90], tour, speed=0.6, pause=6),
        carrier(
            "turtlebot4",
            "cleaner",
            [28.5, 1, 90],
            [(28.5, 8), (21.5, 8), (21.5, 1), (28.5, 1)],
            pause=0,
            speed=0.3,
        ),
    ]
    group = []
    for k, leader in enumerate(["guide", "group 1", "group 2"]):
        drive = {"name": "follow", "leader": leader, "distance": 0.9, "speed": 0.9}
        group.append(person(f"group {k + 1}", [5, 3 - 0.9 * k, 90], drive))
    visitors = [
        walker(
            f"visitor {k + 1}",
            (x + 0.5, y + 0.8),
            [x - 4, y - 3.6, x + 4, y + 3.6],
            0.7,
        )
        for k, (x, y) in enumerate(rooms)
        if k
    ]
    write(
        "museum",
        "Six rooms with exhibits: a robot guides a group, another one cleans, visitors stroll.",
        "Museum",
        {
            "walls": walls,
            "zones": zones,
            "robots": robots,
            "obstacles": [*exhibits, *group, *visitors],
        },
        seed=6,
        home=[5, 4, 90],
    )


def airport() -> None:
    things = []
    for row in range(4):
        for k in range(6):
            x, y = 6 + 8 * k, 13.0 + 1.8 * row
            things.append(
                fixed(f"seats {row + 1}.{k + 1}", [4, 0.6], [x, y, 0], "steel blue")
            )
    for k in range(4):
        things.append(fixed(f"gate {k + 1}", [3, 0.8], [8 + 12 * k, 21.5, 0], "navy"))
    things += [
        fixed("shop", [10, 3], [8, 1.5, 0], "plum"),
        fixed("bar", [8, 3], [24, 1.5, 0], "peru"),
        fixed("information", [3, 1.2], [38, 5.5, 0], "gold"),
    ]
    people = []
    draws = random.Random(2)
    for k in range(10):
        y = 5.4 + 0.55 * k
        points = [[1.5, y], [50.5, y]]
        if k % 2:
            points.reverse()
        x = draws.uniform(3, 34) if k % 2 else draws.uniform(3, 30)
        drive = {
            "name": "socialforce",
            "points": points,
            "order": "back",
            "pause": 4,
            "speed": draws.uniform(0.9, 1.5),
        }
        people.append(person(f"passenger {k + 1}", [x, y, 0], drive))
    for k in range(4):
        area = [4 + 12 * k, 19.6, 12 + 12 * k, 20.6]
        people.append(walker(f"queue {k + 1}", (8 + 12 * k, 20.2), area, 0.5))
    cart = [[3, 11.6], [49, 11.6], [49, 4], [41, 4], [41, 9], [3, 9]]
    robots = [
        {
            "model": "seekurjr",
            "name": "luggage cart",
            "pose": [5, 11.6, 0],
            "controller": {
                "name": "orca",
                "points": cart,
                "order": "loop",
                "speed": 0.9,
            },
        },
        carrier(
            "lynx",
            "courier",
            [15, 4, 0],
            [(47, 4), (44, 19.9), (20, 19.9), (15, 4)],
            speed=1.0,
        ),
        carrier(
            "turtlebot4",
            "sweeper",
            [2, 13.9, 0],
            [(49, 13.9), (49, 15.7), (2, 15.7), (2, 17.5), (49, 17.5), (2, 13.9)],
            speed=0.3,
            pause=0,
        ),
    ]
    write(
        "airport",
        "A hall of gates: passengers cross it, a luggage cart and a courier drive among them.",
        "Airport",
        {
            "walls": [hall(52, 22)],
            "zones": [
                zone("concourse", [0, 4.6, 52, 11.4], "lavender"),
                zone("gates", [0, 19.2, 52, 22], "light cyan"),
            ],
            "robots": robots,
            "obstacles": [*things, *people],
        },
        seed=7,
        home=[2, 8, 0],
    )


def supermarket() -> None:
    shelves = []
    for k in range(8):
        x = 4.5 + 2.8 * k
        for part, y in ((1, 9.0), (2, 16.0)):
            shelves.append(
                fixed(
                    f"shelf {k + 1}.{part}",
                    [1.0, 5.6],
                    [x, y, 0],
                    ["tan", "rosy brown", "dark khaki"][k % 3],
                )
            )
    checkouts = [
        fixed(f"checkout {k + 1}", [0.8, 2.2], [9 + 3 * k, 2.8, 0], "cadet blue")
        for k in range(5)
    ]
    fridge = [fixed("fridge", [24, 0.9], [14, 20.6, 0], "light blue")]
    aisles = [3.1 + 2.8 * k for k in range(9)]
    shoppers = []
    for k in range(10):
        # The tenth shopper starts at the checkouts.
        x = aisles[k % 9] if k < 9 else 26.0
        shoppers.append(
            walker(f"shopper {k + 1}", (x, 11.5 + k % 3), [1.2, 4.8, 27, 19.6], 0.8)
        )
    up_and_down: list[tuple[float, float]] = []
    for k, x in enumerate(aisles[:6]):
        up_and_down += [(x, 5.2), (x, 19.4)] if k % 2 == 0 else [(x, 19.4), (x, 5.2)]
    robots = [
        carrier(
            "turtlebot4", "stock taker", [3.1, 5.2, 90], up_and_down, speed=0.3, pause=0
        ),
        carrier(
            "amigo",
            "price scout",
            [25.5, 12.5, 90],
            [(25.5, 19.4), (14, 12.5), (25.5, 5.2)],
            speed=0.5,
        ),
    ]
    write(
        "supermarket",
        "Shelves, checkouts and shoppers: a robot counts the stock of each aisle.",
        "Supermarket",
        {
            "walls": [hall(28, 21.5)],
            "zones": [
                zone("checkouts", [6, 0, 24, 4.4], "light yellow"),
                zone("wet floor", [19, 11.9, 22, 13.1], "light sky blue", slip=0.2),
            ],
            "robots": robots,
            "obstacles": [*shelves, *checkouts, *fridge, *shoppers],
        },
        seed=8,
        home=[3.1, 5.2, 90],
    )


def maze(cells: int = 12, cell: float = 0.5) -> None:
    """A perfect maze by depth-first search: each cell has exactly one path to each other."""
    draws = random.Random(12)
    open_: set[tuple[int, int, int, int]] = set()
    seen, stack = {(0, 0)}, [(0, 0)]
    while stack:
        x, y = stack[-1]
        free = [
            c
            for c in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
            if min(c) >= 0 and max(c) < cells and c not in seen
        ]
        if not free:
            stack.pop()
            continue
        after = draws.choice(free)
        open_ |= {(x, y, *after), (*after, x, y)}
        seen.add(after)
        stack.append(after)
    walls: list[Any] = [hall(cells * cell, cells * cell)]
    # Walls between two cells are joined to long lines.
    for across in (True, False):
        for k in range(1, cells):
            start: int | None = None
            for m in range(cells + 1):
                pair = (m, k - 1, m, k) if across else (k - 1, m, k, m)
                closed = m < cells and pair not in open_
                if closed and start is None:
                    start = m
                elif not closed and start is not None:
                    a, b, c = start * cell, m * cell, k * cell
                    walls.append([[a, c], [b, c]] if across else [[c, a], [c, b]])
                    start = None
    half, goal = cell / 2, (cells - 1) * cell
    solver = {
        "name": "go_to",
        "points": [[goal + half, goal + half], [half, half]],
        "order": "loop",
        "pause": 2,
        "speed": 0.3,
    }
    robots = [
        {
            "model": "khepera4",
            "name": "solver",
            "pose": [half, half, 0],
            "controller": solver,
        },
        *(
            {
                "model": "thymio",
                "name": f"wanderer {k + 1}",
                "pose": [x * cell + half, y * cell + half, 90],
                "controller": "wander",
            }
            for k, (x, y) in enumerate([(9, 2), (2, 9), (6, 6)])
        ),
    ]
    write(
        "maze",
        "A maze of 12 × 12 cells: one robot knows the map and drives from corner to corner, the\n"
        "others wander.",
        "Maze",
        {
            "walls": walls,
            "zones": [
                zone("start", [0, 0, cell, cell], "light green"),
                zone("goal", [goal, goal, goal + cell, goal + cell], "light salmon"),
            ],
            "robots": robots,
        },
        seed=9,
        step=0.05,
        home=[half, half, 0],
    )
