"""Pieces of scenarios, and the writer of scenario files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[2] / "src" / "botyard" / "maps"
Thing = dict[str, Any]
FLOOR = "gray93"
"""Colour of the floor outside of zones."""


def text(value: Any) -> str:
    """Return a value as flow YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{round(value, 3):g}"
    # A colour such as #ffffff would be a comment without quotes.
    return (
        f'"{value}"' if isinstance(value, str) and value.startswith("#") else str(value)
    )


def write(
    file: str, about: str, name: str, lists: dict[str, Iterable[Any]], **head: Any
) -> None:
    """Write a scenario: comment, single keys, and lists with an entry a line."""
    lists = dict(lists)
    things = [thing for thing in lists.get("obstacles", ()) if thing.get("fixed")]
    zones = [*lists.get("zones", ()), *map(under, things)]
    lists = {"walls": [], **lists, "zones": zones}
    lines = [f"# {line}" for line in about.strip().splitlines()]
    lines += ["botyard: 1", f"name: {name}"]
    lines += [f"{key}: {text(value)}" for key, value in head.items()]
    for key, entries in lists.items():
        if not entries:
            continue
        if key == "zones":
            lines += ["floor:", f"  color: {FLOOR}", "  zones:"]
            lines += [f"    - {text(entry)}" for entry in entries]
            continue
        lines.append(f"{key}:")
        lines += [f"  - {text(entry)}" for entry in entries]
    path = OUT / f"{file}.yaml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    print(path)


def hall(width: float, height: float) -> Thing:
    """Return the outer walls."""
    return {"line": [[0, 0], [width, 0], [width, height], [0, height]], "closed": True}


def fixed(name: str, size: Sequence[float], pose: Sequence[float], color: str) -> Thing:
    """Return a box that belongs to the walls."""
    return {
        "name": name,
        "box": list(size),
        "pose": list(pose),
        "color": color,
        "fixed": True,
    }


def under(thing: Thing) -> Thing:
    """Return a painted zone under a fixed thing, which is drawn as an outline alone."""
    x, y, th = thing["pose"]
    if "disc" in thing:
        r = thing["disc"]
        corners = [
            (r * math.cos(k * math.pi / 8), r * math.sin(k * math.pi / 8))
            for k in range(16)
        ]
    else:
        a, b = (side / 2 for side in thing["box"])
        corners = [(-a, -b), (a, -b), (a, b), (-a, b)]
    c, s = math.cos(math.radians(th)), math.sin(math.radians(th))
    polygon = [[x + c * u - s * v, y + s * u + c * v] for u, v in corners]
    return {"polygon": polygon, "color": thing["color"]}


def column(name: str, radius: float, at: Sequence[float], color: str) -> Thing:
    """Return a disc that belongs to the walls."""
    return {
        "name": name,
        "disc": radius,
        "pose": [*at, 0],
        "color": color,
        "fixed": True,
    }


def person(
    name: str, at: Sequence[float], controller: Any, color: str = "goldenrod"
) -> Thing:
    """Return a pedestrian."""
    return {
        "name": name,
        "disc": 0.25,
        "pose": list(at),
        "color": color,
        "controller": controller,
    }


def walker(
    name: str, at: Sequence[float], area: Sequence[float], speed: float = 1.1
) -> Thing:
    """Return a person that walks between random places of an area."""
    return person(name, [*at, 0], {"name": "walk", "speed": speed, "area": list(area)})


def carrier(
    model: str, name: str, pose: Sequence[float], points: Sequence[Any], **options: Any
) -> Thing:
    """Return a robot that drives to goals on planned paths, for ever."""
    more: Thing = {"order": "loop", "pause": 3, **options}
    drive = {"name": "go_to", "points": [list(p) for p in points], **more}
    color = more.pop("color", None)
    drive.pop("color", None)
    robot = {"model": model, "name": name, "pose": list(pose), "controller": drive}
    return robot if color is None else {**robot, "color": color}


def zone(name: str, area: Sequence[float], color: str, **effect: Any) -> Thing:
    """Return a painted rectangle of the floor."""
    return {"name": name, "area": list(area), "color": color, **effect}
