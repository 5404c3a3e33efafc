"""Catalogue of robot models, sonar rings and lidars, with pictures that are made."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from botyard.formats.models import find_robot, model_names
from botyard.model.kinematics import Drive
from botyard.model.library import laser_names, load_laser
from botyard.model.robot import RobotSpec
from botyard.pictures.rendering import robot_png

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "docs/_made/models"


def _size(spec: RobotSpec) -> tuple[float, float]:
    corners = [corner for part in (spec.outline, *spec.parts) for corner in part]
    xs, ys = zip(*corners, strict=True)
    return max(xs) - min(xs), max(ys) - min(ys)


def _facts(spec: RobotSpec) -> list[str]:
    length, width = _size(spec)
    top, accel = spec.limits.max_speed, spec.limits.accel
    facts = [f"{length:.2f} m × {width:.2f} m"]
    if spec.drive:
        speeds = [f"{top.x:g} m/s"]
        if top.y:
            speeds.append(f"{top.y:g} m/s sideways")
        if top.a:
            speeds.append(f"{math.degrees(top.a):.0f}°/s")
        facts.append(f"drive: {Drive(spec.drive).name.lower().replace('_', ' ')}")
        facts.append("at most " + ", ".join(speeds))
        if accel.x:
            facts.append(f"acceleration {accel.x:g} m/s²")
    if spec.sonar:
        facts.append(f"{len(spec.sonar.transducers)} sonar transducers")
    facts += [f"lidar `{laser.type_name}`" for laser in spec.lasers]
    for device in spec.devices:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(device).__name__)
        facts.append(words.removesuffix(" Spec").lower())
    return facts


def _card(spec: RobotSpec) -> str:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{spec.name}.png"
    picture = robot_png(spec)
    # A file with a new date would be copied and read again.
    if not path.is_file() or path.read_bytes() != picture:
        path.write_bytes(picture)
    facts = "\n".join(f"- {fact}" for fact in _facts(spec))
    about = " ".join(spec.description.split())
    return (
        f"### {spec.name}\n\n{about}\n\n"
        f"```{{image}} ../_made/models/{spec.name}.png\n"
        f":alt: {spec.name}, seen from above\n:width: 240px\n:class: model\n```\n\n"
        f"{facts}\n"
    )


def catalogue() -> str:
    """Return a section for each model, driven ones first, and write the pictures."""
    specs = [find_robot(name) for name in model_names()]
    driven = [s for s in specs if s.drive]
    others = [s for s in specs if not s.drive]
    parts = ["## Robots\n", *map(_card, driven)]
    return "\n".join([*parts, "## Bodies without a drive\n", *map(_card, others)])


def lidars() -> str:
    """Return a row for each type of lidar."""
    rows = []
    for name in laser_names():
        spec = load_laser(name)
        rate = f"{spec.measurement_rate:g} Hz" if spec.measurement_rate else "each step"
        noise = [f"±{spec.range_noise * 1000:g} mm"] if spec.range_noise else []
        if spec.range_deviation:
            noise.append(f"σ {spec.range_deviation * 1000:g} mm")
        rows.append(
            f"| `{name}` | {math.degrees(spec.fov):.0f}° | {spec.samples} | "
            f"{spec.range_min:g} to {spec.range_max:g} m | {rate} | {', '.join(noise) or '–'} |"
        )
    head = "| lidar | field of view | rays | range | scans | noise of a range |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])
