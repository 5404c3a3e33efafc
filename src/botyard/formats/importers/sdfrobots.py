"""Drives of SDF models and URDF robots, by their plugins."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from botyard.formats.importers.axles import WheelJoints
from botyard.formats.importers.drives import WIDE, Driven, car, limits, turn_rate
from botyard.formats.importers.sdfkeys import KEYS, ROLLING, STEERING
from botyard.formats.importers.xmlfile import Element
from botyard.formats.notes import Notes
from botyard.model.kinematics import (
    MAX_RAMP,
    MAX_SPEED,
    MAX_STEERING,
    MAX_WHEELBASE,
    MIN_WHEELBASE,
    Drive,
)
from botyard.names import shown

KINDS: Final = {
    "diffdrive": "diff",
    "skidsteer": "skid",
    "trackedvehicle": "diff",
    "planarmove": "omni",
    "mecanum": "mecanum",
    "omnidrive": "omni",
    "velocitycontrol": "omni",
    "ackermann": "car",
    "tricycle": "tricycle",
}
"""Part of a plugin's name, in lower case without separators → drive."""
TOP: Final = (1.0, 2.0)
"""Top speeds of drives whose plugin states none, m/s and rad/s."""
CAR: Final = (1.0, 0.5)
"""Wheelbase, m, and steering limit, rad, of gz-sim's AckermannSteering."""


class PluginDrive(NamedTuple):
    """Drive of a model.

    Attributes
    ----------
    driven : Driven
        Drive.
    joints : WheelJoints
        Joints that the plugin names.
    given : frozenset of str
        Names of the plugin's attributes and child elements.
    plugin : Element
        Plugin.
    """

    driven: Driven
    joints: WheelJoints
    given: frozenset[str]
    plugin: Element


def drive_of(plugins: Iterable[Element], notes: Notes) -> PluginDrive | None:
    """Return the drive of a model; None: no plugin drives it."""
    found = None
    for plugin in plugins:
        name = " ".join(plugin.attributes.get(k, "") for k in ("name", "filename"))
        plain = "".join(c for c in name.lower() if c.isalnum())
        kind = next((drive for word, drive in KINDS.items() if word in plain), None)
        if kind is None or found is not None:
            notes.add(
                f"plugin {name}",
                plugin,
                f'the plugin "{shown(name.strip())}" is left out: code of Gazebo does '
                "not run",
            )
            continue
        KEYS.check("plugin", plugin.keys(), notes)
        joints = WheelJoints(
            *(
                tuple(e.text.strip() for e in plugin.children if e.tag in tags)
                for tags in (ROLLING, STEERING)
            )
        )
        given = frozenset(plugin.keys())
        found = PluginDrive(_driven(plugin, kind, notes), joints, given, plugin)
        if kind in ("car", "tricycle") and not joints.steering:
            notes.add(
                f"steering joints {plugin.line}",
                plugin,
                "the plugin names no steered joints: their places and limits are not known",
            )
    return found


def _driven(plugin: Element, kind: str, notes: Notes) -> Driven:
    def number(
        names: tuple[str, ...],
        otherwise: float,
        *,
        low: float = 0.0,
        most: float = math.inf,
        beyond: tuple[float, str] | None = None,
    ) -> float:
        """Return the number of an element; if another number replaces it, add a note."""
        for name in names:
            value = plugin.given(name)
            if value is None:
                continue
            found = value.number(0.0, math.inf)
            kept, text = found, ""
            if found < low:
                kept = otherwise
                text = f"{kept:.4g} is assumed" if kept else "it counts as unknown"
            elif found > most:
                kept, text = beyond or (most, f"it is cut to {most:.4g}")
            if text:
                notes.add(
                    f"{name} {value.line}", value, f"{name} is {found:.4g}: {text}"
                )
            return kept
        return otherwise

    def speed(*names: str, otherwise: float) -> float:
        return number(names, otherwise, most=MAX_SPEED)

    def ramp_of(*names: str) -> float:
        return number(
            names, 0.0, most=MAX_RAMP, beyond=(0.0, "the acceleration has no limit")
        )

    def length(*names: str, otherwise: float = 0.0, most: float = math.inf) -> float:
        return number(names, otherwise, low=MIN_WHEELBASE, most=most)

    v = speed("max_linear_velocity", "max_velocity", "max_speed", otherwise=TOP[0])
    w = speed("max_angular_velocity", otherwise=TOP[1])
    ramp = ramp_of("max_linear_acceleration", "max_acceleration")
    turn = ramp_of("max_angular_acceleration")
    track = length("wheel_separation", "wheelSeparation") or None
    radius = length("wheel_radius") or (
        length("wheel_diameter", "wheelDiameter", "encoder_wheel_diameter") / 2.0
    )
    wheel = radius or None
    is_car = kind in ("car", "tricycle")
    base = length(
        "wheel_base",
        "wheelbase",
        otherwise=CAR[0] if is_car else 0.0,
        most=MAX_WHEELBASE,
    )
    if kind in ("omni", "mecanum"):
        return Driven(
            Drive.OMNI,
            limits(v, v, w, (ramp, ramp, turn)),
            track,
            None,
            wheel,
            four=Drive.MECANUM if kind == "mecanum" else None,
            wheelbase=base or None,
        )
    if is_car:
        usual = CAR[1] if kind == "car" else WIDE
        steer = number(
            ("steering_limit", "max_steer"),
            usual,
            most=MAX_STEERING,
            beyond=(MAX_STEERING, f"it is cut to {MAX_STEERING:.4g} rad, 89°"),
        )
        most = turn_rate(v, steer, base)
        if plugin.given("max_angular_velocity") is not None:
            most = min(most, w)
        return car(
            limits(v, 0.0, most, (ramp, 0.0, turn)),
            base,
            steer,
            rate=number(
                ("max_steering_speed",),
                0.0,
                most=MAX_SPEED,
                beyond=(0.0, "the steering rate has no limit"),
            ),
            track=track,
            has_pair=kind == "car",
            wheel_radius=wheel,
        )
    return Driven(
        Drive.DIFF,
        limits(v, 0.0, w, (ramp, 0.0, turn)),
        track,
        None,
        wheel,
        # gz-sim's DiffDrive takes several wheels on each side.
        four=Drive.SKID,
        wheelbase=(base or None) if kind == "skid" else None,
    )


__all__ = ["PluginDrive", "drive_of"]
