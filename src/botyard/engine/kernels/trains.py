"""Motion of passive trailers behind a robot.

The head of a train moves with a constant twist in a step. Let (vx, vy, ω) be the twist of
the body in front of a trailer, a the distance of the hitch behind its origin, d the
distance of the trailer's axle from the hitch, and φ the heading of the body in front minus
the heading of the trailer. The axle does not move sideways, therefore

    φ' = ω − (vx/d)·sin φ − ((vy − a·ω)/d)·cos φ

(the general n-trailer of Altafini, "Some properties of the general n-trailer",
International Journal of Control 74(4), 2001, for on-axle hitches a = 0). With t = tan(φ/2)
it is a Riccati equation with constant coefficients, so that sin(φ/2) and cos(φ/2) follow
from a matrix exponential: the motion of the first trailer is exact. The body in front of
another trailer has no constant twist. Its exact end poses are joined by one, over parts of
the step that are short compared with the train.

Positions of trailers always follow from headings, so that hitches never drift apart.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.motion import arc, turning, wrap
from botyard.engine.layout import (
    BEND,
    DRAWBAR,
    F8,
    FOLLOWER,
    HITCH,
    LEADER,
    Bodies,
    State,
)
from botyard.numerics.elementary import atan2, cosine_sine

FINENESS = 8.0
"""Number of parts of a step for each radian of turn, and for each length of a drawbar
travelled.
"""
MAX_PARTS = 1000
"""Greatest number of parts of a step."""
ROUNDING = 1e-9
"""Angle by which rounding may exceed the limit of a hitch, rad."""


@kernel
def bent(
    phi: float, vx: float, vy: float, w: float, hitch: float, drawbar: float
) -> float:
    """Return the angle φ of a hitch after a motion of the body in front of it, rad.

    Parameters
    ----------
    phi : float
        Angle before: heading of the body in front minus the heading of the trailer, rad.
    vx, vy, w : float
        Body twist of the body in front times dt: m, m, rad; short compared with `drawbar`.
    hitch, drawbar : float
        Distance of the hitch behind the origin of the body in front, and distance of the
        axle of the trailer from the hitch, m.

    Returns
    -------
    float
        Angle after the motion, rad in (−π, π].
    """
    p, q = vx / drawbar, (vy - hitch * w) / drawbar
    # The matrix ½·[[−p, w − q], [−(w + q), p]] has this square times the identity.
    k = 0.25 * (p * p + q * q - w * w)
    # cosh √k and sinh(√k)/√k; both series also hold for negative k.
    even = 1.0 + k * (
        1 / 2 + k * (1 / 24 + k * (1 / 720 + k * (1 / 40320 + k / 3628800)))
    )
    odd = 1.0 + k * (
        1 / 6 + k * (1 / 120 + k * (1 / 5040 + k * (1 / 362880 + k / 39916800)))
    )
    z, u = cosine_sine(0.5 * phi)
    more_u = even * u + odd * 0.5 * (-p * u + (w - q) * z)
    more_z = even * z + odd * 0.5 * (-(w + q) * u + p * z)
    return wrap(2.0 * atan2(more_u, more_z))


@inline_kernel
def twist_between(
    x: float, y: float, th: float, to_x: float, to_y: float, to_th: float
) -> tuple[float, float, float]:
    """Return the body twist that leads from one pose to another, m, m, rad.

    It is the inverse of `botyard.engine.kernels.motion.arc`.

    Parameters
    ----------
    x, y, th, to_x, to_y, to_th : float
        Both poses: m, m, rad.
    """
    c, s = cosine_sine(th)
    rx, ry = (
        c * (to_x - x) + s * (to_y - y),
        c * (to_y - y) - s * (to_x - x),
    )
    turn = wrap(to_th - th)
    u, v = turning(turn)
    size = u * u + v * v
    return (u * rx + v * ry) / size, (u * ry - v * rx) / size, turn


@inline_kernel
def parts_of(bodies: Bodies, head: int, dx: float, dy: float, dth: float) -> int:
    """Return into how many parts a motion of a train is divided.

    Parameters
    ----------
    bodies : Bodies
        Shapes, with hitches.
    head : int
        Row of the head of the train.
    dx, dy, dth : float
        Body twist of the head times dt: m, m, rad.
    """
    way, turn, most = abs(dx) + abs(dy), abs(dth), abs(dth)
    row = bodies.train[head, FOLLOWER]
    while row >= 0:
        drawbar, hitch = bodies.hitch[row, DRAWBAR], abs(bodies.hitch[row, HITCH])
        # An off-axle hitch also moves by the turn of the body in front.
        way += hitch * turn
        most = max(most, way / drawbar)
        turn = max(turn, way / drawbar)
        row = bodies.train[row, FOLLOWER]

    return int(min(max(math.ceil(FINENESS * most), 1.0), MAX_PARTS))


@kernel
def follow(
    bodies: Bodies, pose: F8, head: int, dx: float, dy: float, dth: float
) -> None:
    """Write the poses of trailers after a motion of their head into `Bodies.trail`.

    Parameters
    ----------
    bodies : Bodies
        Shapes, with hitches. Output: `trail` of the trailers.
    pose : (n, 3) float64
        Poses of all bodies before the motion: m, m, rad.
    head : int
        Row of the head of the train.
    dx, dy, dth : float
        Body twist of the head times dt: m, m, rad.
    """
    train, hitch, trail = bodies.train, bodies.hitch, bodies.trail
    row = train[head, FOLLOWER]
    while row >= 0:
        trail[row, 0], trail[row, 1], trail[row, 2] = (
            pose[row, 0],
            pose[row, 1],
            pose[row, 2],
        )
        row = train[row, FOLLOWER]

    count = parts_of(bodies, head, dx, dy, dth)
    x, y, th = pose[head, 0], pose[head, 1], pose[head, 2]
    px, py, pth = dx / count, dy / count, dth / count
    ex, ey = arc(px, py, pth)
    for _ in range(count):
        # Twist of the body in front, and its pose before and after this part.
        vx, vy, w, before = px, py, pth, th
        c, s = cosine_sine(th)
        x, y, th = x + c * ex - s * ey, y + s * ex + c * ey, wrap(th + pth)
        lx, ly, lth = x, y, th
        row = train[head, FOLLOWER]
        while row >= 0:
            back, drawbar = hitch[row, HITCH], hitch[row, DRAWBAR]
            ox, oy, oth = trail[row, 0], trail[row, 1], trail[row, 2]
            phi = bent(wrap(before - oth), vx, vy, w, back, drawbar)
            nth = wrap(lth - phi)
            c, s = cosine_sine(lth)
            c1, s1 = cosine_sine(nth)
            lx, ly, lth = (
                lx - back * c - drawbar * c1,
                ly - back * s - drawbar * s1,
                nth,
            )
            vx, vy, w = twist_between(ox, oy, oth, lx, ly, nth)
            before = oth
            trail[row, 0], trail[row, 1], trail[row, 2] = lx, ly, nth
            row = train[row, FOLLOWER]

    row = train[head, FOLLOWER]
    while row >= 0:
        trail[row, 3], trail[row, 4], trail[row, 5] = twist_between(
            pose[row, 0],
            pose[row, 1],
            pose[row, 2],
            trail[row, 0],
            trail[row, 1],
            trail[row, 2],
        )
        row = train[row, FOLLOWER]


@kernel
def jackknifes(bodies: Bodies, pose: F8, head: int, th: float) -> bool:
    """Return whether a hitch is bent beyond its limit in `Bodies.trail`.

    A hitch that was bent farther before, for example after a change of the model, may
    straighten.

    Parameters
    ----------
    bodies : Bodies
        Shapes, with hitches and the result of `follow`.
    pose : (n, 3) float64
        Poses of all bodies before the motion: m, m, rad.
    head : int
        Row of the head of the train.
    th : float
        Heading of the head after the motion, rad.
    """
    train, hitch, trail = bodies.train, bodies.hitch, bodies.trail
    before, after, row = pose[head, 2], th, train[head, FOLLOWER]
    while row >= 0:
        bend = abs(wrap(after - trail[row, 2]))
        if bend > hitch[row, BEND] and bend > abs(wrap(before - pose[row, 2])):
            return True
        before, after = pose[row, 2], trail[row, 2]
        row = train[row, FOLLOWER]

    return False


@kernel
def couple(bodies: Bodies, pose: F8, head: int) -> None:
    """Write the positions of trailers, which follow from the headings and the head.

    Parameters
    ----------
    bodies : Bodies
        Shapes, with hitches.
    pose : (n, 3) float64
        Poses of all bodies: m, m, rad. In-place: positions of the trailers.
    head : int
        Row of the head of the train.
    """
    train, hitch = bodies.train, bodies.hitch
    leader, row = head, train[head, FOLLOWER]
    while row >= 0:
        c, s = cosine_sine(pose[leader, 2])
        c1, s1 = cosine_sine(pose[row, 2])
        back, drawbar = hitch[row, HITCH], hitch[row, DRAWBAR]
        pose[row, 0] = pose[leader, 0] - back * c - drawbar * c1
        pose[row, 1] = pose[leader, 1] - back * s - drawbar * s1
        leader, row = row, train[row, FOLLOWER]


@merged_kernel
def place_trains(state: State, bodies: Bodies) -> None:
    """Move trailers to robots that were placed elsewhere since the last step.

    A train keeps its shape. A trailer that was placed elsewhere keeps its heading, within
    the limit of its hitch.

    Parameters
    ----------
    state : State
        State of all bodies. In-place: `pose` of trailers.
    bodies : Bodies
        Shapes; `placed` has the poses after the last step.
    """
    pose, placed, train, hitch = (
        state.pose,
        bodies.placed,
        bodies.train,
        bodies.hitch,
    )
    for head in range(train.shape[0]):
        if train[head, LEADER] >= 0 or train[head, FOLLOWER] < 0:
            continue
        turn = 0.0
        # NaN: not placed yet, so that its trailers are where they belong.
        if not math.isnan(placed[head, 2]):
            turn = wrap(pose[head, 2] - placed[head, 2])
        leader, row = head, train[head, FOLLOWER]
        while row >= 0:
            th = pose[row, 2]
            if turn != 0.0 and th == placed[row, 2]:
                th = wrap(th + turn)
            bend = wrap(pose[leader, 2] - th)
            if abs(bend) > hitch[row, BEND] + ROUNDING:
                th = wrap(pose[leader, 2] - math.copysign(hitch[row, BEND], bend))
            pose[row, 2] = th
            leader, row = row, train[row, FOLLOWER]

        couple(bodies, pose, head)


@merged_kernel
def plan_trains(state: State, bodies: Bodies, dt: float) -> None:
    """Write the velocities of trailers, as far as nothing stops the train.

    Parameters
    ----------
    state : State
        State of all bodies after `plan_velocities`. In-place: `vel` of trailers.
    bodies : Bodies
        Shapes. Output: `trail`.
    dt : float
        Duration of the step, s.
    """
    vel, train, trail = state.vel, bodies.train, bodies.trail
    for head in range(train.shape[0]):
        if train[head, LEADER] >= 0 or train[head, FOLLOWER] < 0:
            continue
        dx, dy, dth = head_twist(state, bodies, head, dt)
        follow(bodies, state.pose, head, dx, dy, dth)
        row = train[head, FOLLOWER]
        while row >= 0:
            vel[row, 0], vel[row, 1], vel[row, 2] = (
                trail[row, 3] / dt,
                trail[row, 4] / dt,
                trail[row, 5] / dt,
            )
            row = train[row, FOLLOWER]


@inline_kernel
def head_twist(
    state: State, bodies: Bodies, head: int, dt: float
) -> tuple[float, float, float]:
    """Return the body twist times dt of a body in this step, m, m, rad.

    Parameters
    ----------
    state, bodies : State, Bodies
        State and shapes after `plan_velocities`.
    head : int
        Row of the body.
    dt : float
        Duration of the step, s.
    """
    vel, lead = state.vel, bodies.lead
    dx, dy, dth = vel[head, 0] * dt, vel[head, 1] * dt, vel[head, 2] * dt
    # Exact ramps move by the mean velocity of the step, not by its final one.
    if bodies.exact[head] == 1:
        dx, dy, dth = dx + lead[head, 0], dy + lead[head, 1], dth + lead[head, 2]
    return dx, dy, dth
