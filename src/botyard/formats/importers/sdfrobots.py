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
from botyard.model.kinematics import Drive
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
"""Top speeds of drives whose plugin has none, m/s and rad/s."""
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
        Elements of the plugin.
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
        found = PluginDrive(_driven(plugin, kind), joints, given, plugin)
    return found


def _driven(plugin: Element, kind: str) -> Driven:
    def number(names: tuple[str, ...], otherwise: float, low: float = 0.0) -> float:
        for name in names:
            value = plugin.given(name)
            if value is not None:
                return value.number(low, math.inf)
        return otherwise

    v = number(("max_linear_velocity", "max_velocity", "max_speed"), TOP[0])
    w = number(("max_angular_velocity",), TOP[1])
    ramp = number(("max_linear_acceleration", "max_acceleration"), 0.0)
    turn = number(("max_angular_acceleration",), 0.0)
    track = number(("wheel_separation", "wheelSeparation"), 0.0) or None
    radius = number(("wheel_radius",), 0.0) or (
        number(
            ("wheel_diameter", "wheelDiameter", "encoder_wheel_diameter"),
            0.0,
        )
        / 2.0
    )
    wheel = radius or None
    base = number(("wheel_base", "wheelbase"), 0.0)
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
    if kind in ("car", "tricycle"):
        base = max(base, 1e-3) if base else CAR[0]
        usual = CAR[1] if kind == "car" else WIDE
        steer = number(("steering_limit", "max_steer"), usual)
        most = turn_rate(min(v, 1e3), steer, base)
        if plugin.given("max_angular_velocity") is not None:
            most = min(most, w)
        return car(
            limits(v, 0.0, most, (ramp, 0.0, turn)),
            base,
            steer,
            rate=number(("max_steering_speed",), 0.0),
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
