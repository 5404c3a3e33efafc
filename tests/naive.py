"""Naive twins of the kernels: NumPy and plain Python, every pair against every pair,
written from the definitions.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.geometry import Pose

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def py(kernel):
    """Return the Python function of a kernel, whether compiled or not."""
    return getattr(kernel, "function", kernel)


# -- random numbers


def splitmix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def stream_key(seed: int, uid: int, device: int, tick: int) -> int:
    h = splitmix((seed + GOLDEN) & MASK64)
    for word in (uid, device, tick):
        h = splitmix(h ^ ((word + GOLDEN) & MASK64))
    return h


def symmetric(key: int, k: int) -> float:
    return (splitmix((key + (k + 1) * GOLDEN) & MASK64) >> 11) * 2.0**-52 - 1.0


def gaussian(key: int, k: int) -> float:
    """Return a normal draw from two uniform ones by the method of Box and Muller."""
    u, v = 0.5 * (1.0 - symmetric(key, 2 * k)), symmetric(key, 2 * k + 1)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(math.pi * v)


# -- rays


def ray_segments(origin, angle, segments, r_max):
    """Range of one ray against all segments at once: solve o + t·d = a + u·e for each."""
    o = np.asarray(origin, float)
    d = np.array([math.cos(angle), math.sin(angle)])
    a, e = segments[:, :2] - o, segments[:, 2:] - segments[:, :2]
    den = d[0] * e[:, 1] - d[1] * e[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (a[:, 0] * e[:, 1] - a[:, 1] * e[:, 0]) / den
        u = (a[:, 0] * d[1] - a[:, 1] * d[0]) / den

    hit = (den != 0) & (t >= 0) & (u >= -1e-12) & (u <= 1 + 1e-12)
    return float(min(t[hit].min(initial=r_max), r_max))


def segment_distance(point, segment):
    """Return the distance from a point to the segment x1, y1, x2, y2."""
    a, b = np.asarray(segment[:2], float), np.asarray(segment[2:], float)
    p, e = np.asarray(point, float) - a, b - a
    u = np.clip(p @ e / max(e @ e, 1e-300), 0.0, 1.0)
    return float(np.hypot(*(p - u * e)))


def polygon_edges(corners, pose):
    """Return the edges of a polygon at a pose, (n, 4)."""
    x, y, th = pose
    c, s = math.cos(th), math.sin(th)
    world = np.array(
        [(x + c * px - s * py_, y + s * px + c * py_) for px, py_ in corners]
    )
    return np.concatenate([world, np.roll(world, -1, axis=0)], axis=1)


def scan(pose, angles, segments, bodies, r_max):
    """Return the ranges of a fan of rays against walls and other bodies.

    `bodies` is a list of (corners, pose).
    """
    everything = np.concatenate([segments, *(polygon_edges(c, p) for c, p in bodies)])
    return np.array(
        [ray_segments(pose[:2], pose[2] + a, everything, r_max) for a in angles]
    )


# -- collisions


def _orient(p, q, r):
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])


def cross(s, t):
    a, b, c, d = s[:2], s[2:], t[:2], t[2:]
    if _orient(c, d, a) == _orient(c, d, b) == 0:
        return False
    return (
        _orient(c, d, a) * _orient(c, d, b) <= 0
        and _orient(a, b, c) * _orient(a, b, d) <= 0
    )


def inside(edges, x, y):
    """Return whether the winding number of a polygon about a point is not zero."""
    total = 0.0
    for x1, y1, x2, y2 in edges:
        a, b = math.atan2(y1 - y, x1 - x), math.atan2(y2 - y, x2 - x)
        total += math.remainder(b - a, 2 * math.pi)

    return abs(total) > math.pi


def overlaps(parts, pose, segments, bodies):
    """Return whether a body of polygons `parts` at `pose` touches a segment or another
    body.

    Bodies are (corners, pose).
    """
    for part in parts:
        mine = polygon_edges(part, pose)
        for s in segments:
            if any(cross(s, e) for e in mine) or inside(mine, *((s[:2] + s[2:]) / 2)):
                return True

        for corners, other_pose in bodies:
            other = polygon_edges(corners, other_pose)
            if (
                any(cross(a, b) for a in mine for b in other)
                or inside(other, *mine[0, :2])
                or inside(mine, *other[0, :2])
            ):
                return True

    return False


def arc(pose, twist, dt):
    """Integrate a constant twist by many tiny midpoint steps."""
    x, y, th = pose
    n = 20_000
    for _ in range(n):
        mid = th + twist[2] * dt / n / 2
        x += (twist[0] * math.cos(mid) - twist[1] * math.sin(mid)) * dt / n
        y += (twist[0] * math.sin(mid) + twist[1] * math.cos(mid)) * dt / n
        th += twist[2] * dt / n

    return x, y, math.remainder(th, 2 * math.pi)


def exp(twist, dt):
    """Exponential map of SE(2) by the matrix series."""
    v = np.array([[0, -twist[2], twist[0]], [twist[2], 0, twist[1]], [0, 0, 0]]) * dt
    out, term = np.eye(3), np.eye(3)
    for k in range(1, 40):
        term = term @ v / k
        out = out + term

    return out[0, 2], out[1, 2], math.atan2(out[1, 0], out[0, 0])


# -- motion


def ramp(cur, des, accel, decel, dt, snap):
    """Apply the five rules of pioneer-protocol §11.2 in order."""
    if abs(cur - des) <= snap:
        return des
    # The velocity changes its sign, so it must pass through zero.
    if cur * des < 0:
        if decel == 0:
            return des
        new = abs(cur) - decel * dt
        return math.copysign(max(new, 0.0), cur)

    if abs(des) > abs(cur):
        sign = 1.0 if des > 0 else -1.0
        return des if accel == 0 else sign * min(abs(cur) + accel * dt, abs(des))

    return (
        des if decel == 0 else math.copysign(max(abs(cur) - decel * dt, abs(des)), cur)
    )


# -- grid


def clearance(occupied):
    """Return the side of the largest empty square with each cell in its near corner.

    There is one array for each of the four quadrants. Cells outside the grid are free.
    """
    ny, nx = occupied.shape
    out = np.zeros((4, ny, nx), np.uint8)
    for q in range(4):
        sx, sy = (1 if q & 1 else -1), (1 if q & 2 else -1)
        for j in range(ny):
            for i in range(nx):
                side = 0
                while side < 255:
                    cells = [
                        (j + sy * b, i + sx * a)
                        for a in range(side + 1)
                        for b in range(side + 1)
                        if 0 <= j + sy * b < ny and 0 <= i + sx * a < nx
                    ]
                    if any(occupied[c] for c in cells):
                        break
                    side += 1
                    if side > nx and side > ny:
                        side = 255

                out[q, j, i] = side

    return out


def contact_sectors(
    outline: tuple[tuple[float, float], ...], pose: Pose, wall_x: float
) -> int:
    """Return the sectors of 64 in which a body's outline reaches beyond the wall x =
    `wall_x`.

    The edges are sampled densely.
    """
    bits = 0
    c, s = math.cos(pose.th), math.sin(pose.th)
    for (x1, y1), (x2, y2) in zip(outline, outline[1:] + outline[:1], strict=True):
        for u in np.linspace(0.0, 1.0, 4001):
            x, y = x1 + u * (x2 - x1), y1 + u * (y2 - y1)
            if pose.x + c * x - s * y >= wall_x:
                bits |= 1 << int(math.floor(math.atan2(y, x) / (2 * math.pi) * 64)) % 64

    return bits


# -- neighbours


def nearest(poses, k):
    """Return the k nearest others of each pose and their distances, by all pairs."""
    n = len(poses)
    near, far = np.full((n, k), -1), np.full((n, k), np.inf)
    for i in range(n):
        dx, dy = poses[i, 0] - poses[:, 0], poses[i, 1] - poses[:, 1]
        squares = dx * dx + dy * dy
        others = [j for j in np.argsort(squares, kind="stable") if j != i][:k]
        near[i, : len(others)] = others
        far[i, : len(others)] = np.sqrt(squares[others])

    return near, far


def relate(poses, velocities, near):
    """Return poses and velocities of neighbours in the frame of each pose; 0 for none."""
    shape = (*near.shape, 3)
    found, moving = np.zeros(shape), np.zeros(shape)
    for i, row in enumerate(near):
        x, y, th = poses[i]
        for k, j in enumerate(row):
            if j < 0:
                continue
            turn = math.remainder(poses[j][2] - th, 2 * math.pi)
            away = complex(poses[j][0] - x, poses[j][1] - y) * np.exp(-1j * th)
            found[i, k] = away.real, away.imag, turn
            ahead = complex(*velocities[j][:2]) * np.exp(1j * turn)
            moving[i, k] = ahead.real, ahead.imag, velocities[j][2]

    return found, moving


def links(poses, radius, walls, bodies):
    """Return receiver, sender, range and bearing of all pairs in sight, nearest first.

    `bodies` holds (corners, pose) of the robots and of the bodies that hide them.
    """
    found = []
    near, far = nearest(poses, max(len(poses) - 1, 1))
    for i, (x, y, th) in enumerate(poses):
        for j, away in zip(near[i], far[i], strict=True):
            if not away <= radius:
                continue
            angle = math.atan2(poses[j][1] - y, poses[j][0] - x)
            edges = [
                polygon_edges(*body) for b, body in enumerate(bodies) if b not in (i, j)
            ]
            blocking = np.concatenate([walls, *edges])
            if ray_segments((x, y), angle, blocking, away) < away:
                continue
            found.append((i, j, away, math.remainder(angle - th, 2 * math.pi)))

    return found


# -- distances of outlines


def placed(parts, pose):
    """Return edges of outlines at a pose, (n, 4): x1, y1, x2, y2, m."""
    c, s = math.cos(pose[2]), math.sin(pose[2])
    edges = []
    for part in parts:
        points = np.asarray(part, np.float64)
        x, y = (
            pose[0] + c * points[:, 0] - s * points[:, 1],
            pose[1] + s * points[:, 0] + c * points[:, 1],
        )
        edges.append(np.column_stack((x, y, np.roll(x, -1), np.roll(y, -1))))

    return np.concatenate(edges)


def edge_distance(a, b):
    """Return the least distance between edges `a` (n, 4) and `b` (m, 4), m.

    The distance is 0 if two edges cross, and inf if there are none.
    """
    # NumPy has no minimum of an empty array.
    if not len(a) or not len(b):
        return math.inf
    if _edges_cross(a, b):
        return 0.0
    ends = [
        _point_distance(p[:, k : k + 2], q) for p, q in ((a, b), (b, a)) for k in (0, 2)
    ]
    return float(min(ends))


def _point_distance(points, edges):
    """Return the least distance of points (n, 2) from edges (m, 4), m."""
    first, along = edges[:, :2], edges[:, 2:] - edges[:, :2]
    # The lower bound avoids a division by zero for edges of length zero.
    length = np.maximum((along * along).sum(axis=1), 1e-300)
    away = points[:, None, :] - first[None, :, :]
    t = np.clip((away * along).sum(axis=2) / length, 0.0, 1.0)
    rest = away - t[:, :, None] * along
    return float(np.sqrt((rest * rest).sum(axis=2).min()))


def _edges_cross(a, b):
    """Return whether an edge of `a` crosses an edge of `b`."""
    p, r = a[:, None, :2], a[:, None, 2:] - a[:, None, :2]
    q, s = b[None, :, :2], b[None, :, 2:] - b[None, :, :2]
    w = q - p
    turn = r[..., 0] * s[..., 1] - r[..., 1] * s[..., 0]
    # Parallel edges divide by zero; the condition on `turn` excludes them.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (w[..., 0] * s[..., 1] - w[..., 1] * s[..., 0]) / turn
        u = (w[..., 0] * r[..., 1] - w[..., 1] * r[..., 0]) / turn
        return bool(
            ((turn != 0.0) & (t >= 0.0) & (t <= 1.0) & (u >= 0.0) & (u <= 1.0)).any()
        )


def steered_step(pose, v, angle, command, axle, limits, dt):
    """A step of a car: pose, velocity and steering angle after it.

    ``command`` is (kind, v, value) with the kinds angle, rate and heading; ``axle`` is
    (wheelbase, limit, rate, offset), and ``limits`` (top speed, ramp, top turn rate).
    """
    kind, wanted, value = command
    base, most, rate, offset = axle
    top, accel, turn = limits
    v = ramp(v, np.clip(wanted, -top, top), accel, accel, dt, 0.010)
    if kind == "heading":
        error = math.remainder(value - pose[2], 2 * math.pi)
        size = abs(error)
        spin = 0.0
        if size > 3e-4:
            spin = math.copysign(min(max(size, 0.007), turn, size / dt), error)
        want = np.arctan(base * spin / v) if v else angle
    elif kind == "rate":
        want = np.arctan(base * value / wanted) if wanted else angle
    else:
        want = value

    if v:
        most = min(most, float(np.arctan(abs(base) * turn / abs(v))))
    step = rate * dt if rate else math.inf
    change = np.clip(np.clip(want, -most, most) - angle, -step, step)
    angle = float(np.clip(angle + change, -most, most))
    w = float(np.clip(v * np.tan(angle + offset) / base, -turn, turn))
    dx, dy, turn = exp((v, 0.0, w), dt)
    c, s = math.cos(pose[2]), math.sin(pose[2])
    place = (
        pose[0] + c * dx - s * dy,
        pose[1] + s * dx + c * dy,
        math.remainder(pose[2] + turn, 2 * math.pi),
    )
    return place, v, angle, w
