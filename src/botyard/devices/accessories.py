"""Devices that act by themselves while time passes: grippers, batteries, joints; the `ActPhase` of a simulation."""

from __future__ import annotations

import math
from typing import Final

from botyard.devices.electrics import Electrics
from botyard.devices.gripper import Gripper
from botyard.devices.joints import Joint
from botyard.engine.commands import EnableMotors
from botyard.engine.simulation import Engine
from botyard.model.scene import Scene

DOCK_DISTANCE: Final = 0.35
"""A robot this near to a dock's pose touches its contacts, m …"""
DOCK_ANGLE: Final = math.radians(30)
"""… if its heading differs by no more than this, rad."""


class Accessories:
    """Grippers, batteries and joints of all bodies. A robot without either costs nothing."""

    def __init__(self) -> None:
        self.grippers: dict[str, Gripper] = {}
        self.batteries: dict[str, Electrics] = {}
        self.joints: dict[str, list[Joint]] = {}
        """Joints by the bodies that carry their children."""

    def rebuild(self, engine: Engine) -> None:
        """Devices of bodies that are gone are forgotten, and grippers let go of what is gone."""
        for devices in (self.grippers, self.batteries):
            for name in [n for n in devices if n not in engine.rows]:
                del devices[name]
        for gripper in self.grippers.values():
            gripper.check(engine)

    def act(self, engine: Engine, dt: float) -> None:
        """Let `dt` s pass."""
        for name in sorted(self.grippers):  # of two that want one box, the same gets it whatever was added first
            self.grippers[name].advance(engine, dt)
        for joints in self.joints.values():
            for joint in joints:
                joint.advance(dt)
        for name, electrics in self.batteries.items():
            self._advance_battery(engine, name, electrics, dt)

    def _advance_battery(self, engine: Engine, name: str, electrics: Electrics, dt: float) -> None:
        s, row = engine.state, engine.rows[name]
        speed = abs(s.vel[row]) / [max(v, 1e-9) for v in s.top_vel[row]]
        effort = min(float(speed.max()), 1.0) if s.motors[row] else 0.0
        x, y, th = s.pose[row].tolist()
        electrics.battery.advance(dt, effort, on_dock(engine.scene, x, y, th))
        if electrics.battery.is_low and s.motors[row]:
            engine.submit(name, EnableMotors(False), "battery")


def on_dock(scene: Scene, x: float, y: float, th: float) -> bool:
    """Whether a robot at x, y (m), th (rad) touches the contacts of a dock of the map."""
    for place in scene.places:
        if "dock" in place.kind.lower() and math.hypot(place.pose.x - x, place.pose.y - y) <= DOCK_DISTANCE:
            turn = math.remainder(place.pose.th - th, 2.0 * math.pi)
            if not place.has_heading or abs(turn) <= DOCK_ANGLE:
                return True
    return False
