"""Trains for tests, and their naive twin: Runge-Kutta integration of the headings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from botyard.engine.bodyspec import BodySpec
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.geometry import Pose
from botyard.model.kinematics import Axes, Drive, Kinematics, MotionLimits
from botyard.model.scene import Scene
from botyard.model.trailers import TrailerSpec, trailer_name, trailer_poses

BOX = ((-0.3, -0.2), (0.3, -0.2), (0.3, 0.2), (-0.3, 0.2))
NOTHING = np.zeros((0, 4))


def kinematics(kind: Drive = Drive.DIFF) -> Kinematics:
    limits = MotionLimits(
        max_speed=Axes(2.0, 2.0, 3.0), accel=Axes(0, 0, 0), decel=Axes(0, 0, 0)
    )
    return Kinematics(kind=kind, limits=limits, track=0.4)


def trailer(hitch: float = 0.5, length: float = 0.6, **changes: float) -> TrailerSpec:
    return TrailerSpec(outline=BOX, hitch=hitch, length=length, **changes)


def train(
    trailers: Sequence[TrailerSpec],
    *,
    start: Pose = Pose(),
    kind: Drive = Drive.DIFF,
    walls: np.ndarray = NOTHING,
    step_us: int = 100_000,
    **changes: object,
) -> Engine:
    """Return a world with one train, named t."""
    e = Engine(
        Scene(segments=walls),
        odometry_error_mode=OdometryErrorMode.NONE,
        step_us=step_us,
    )
    given = tuple(trailers)
    head = BodySpec(
        name="t",
        parts=(BOX,),
        kinematics=kinematics(kind),
        trailers=given,
        **changes,  # type: ignore[arg-type]
    )
    bodies = [(head, start)]
    for k, pose in enumerate(trailer_poses(given, start), start=1):
        bodies.append(
            (
                BodySpec(name=trailer_name("t", k), parts=(BOX,), is_trailer=True),
                pose,
            )
        )
    e.add_bodies(bodies)
    return e


def headings_after(
    headings: Sequence[float],
    trailers: Sequence[TrailerSpec],
    twist: tuple[float, float, float],
    time: float,
    steps: int = 4000,
) -> np.ndarray:
    """Return the headings of a train, head first, by the method of Runge and Kutta.

    The axle of a trailer at `length` behind its hitch does not move sideways.
    """

    def rates(th: np.ndarray) -> np.ndarray:
        vx, vy, w = twist
        found = [w]
        for k, one in enumerate(trailers):
            phi = th[k] - th[k + 1]
            hx, hy = vx, vy - one.hitch * w
            c, s = math.cos(phi), math.sin(phi)
            w = (s * hx + c * hy) / one.length
            vx, vy = c * hx - s * hy, 0.0
            found.append(w)
        return np.array(found)

    th, h = np.array(headings, float), time / steps
    for _ in range(steps):
        a = rates(th)
        b = rates(th + 0.5 * h * a)
        c = rates(th + 0.5 * h * b)
        d = rates(th + h * c)
        th = th + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    return th
