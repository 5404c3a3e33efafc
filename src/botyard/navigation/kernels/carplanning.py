"""Hybrid A*: paths of car-like robots, which keep to their turning circle.

Dolgov, Thrun, Montemerlo, Diebel, "Path planning for autonomous vehicles in unknown
semi-structured environments", International Journal of Robotics Research 29(5), 2010.

States are exact poses. Of all poses in one cell of a lattice of places and headings only
the best one is kept. Moves are arcs, forward and in reverse. The least length to the goal is
the length of a shortest path over the raster, without the turning circle. From states that
leave the queue, an arc and a straight line to the goal, or a path of Dubins to its heading,
is tried (`botyard.navigation.kernels.dubins`).

A pose of a train has the headings of its trailers after x, y and θ. They follow each arc as
in the engine (`botyard.engine.kernels.trains`), so that each trailer is free and each hitch
within its limit on the whole path.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.trains import bent, twist_between
from botyard.navigation.kernels.dubins import WORDS, positive, word_of
from botyard.navigation.kernels.jit import entry_kernel, inline_kernel, kernel
from botyard.navigation.kernels.planning import (
    BLOCKED,
    DIAGONAL,
    STRAIGHT,
    Search,
    is_move,
    put,
    take_first,
)
from botyard.numerics.elementary import atan2, cosine_sine

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
U1 = NDArray[np.uint8]

TURNS = 5
"""Number of curvatures of moves, from the tightest to the right to the one to the left."""
NONE, EXHAUSTED = -1, -2
"""Results of a search: no path, and no path within the number of states."""
NEAR_ARC = 1e-9
"""Turn per metre below which an arc is straight, 1/m."""


class Train(NamedTuple):
    """Discs and hitches of a robot and its m trailers.

    Attributes
    ----------
    discs : (1 + m, k) float64
        Places of the discs on the x axis of each body, m.
    hitches : (m, 3) float64
        Distance of each hitch behind the origin of the body in front, and of the axle from
        the hitch, m, and greatest angle, rad.
    """

    discs: F8
    hitches: F8


class CarRules(NamedTuple):
    """Parameters of a search.

    Attributes
    ----------
    x, y, resolution : float
        Lower left corner of the raster, and edge of a cell, m.
    edge : float
        Edge of a cell of the lattice, m.
    columns, rows, headings : int
        Size of the lattice.
    curvature : float
        Greatest curvature, 1/m.
    stride, step : float
        Length of a move, and distance of the poses on it that must be free, m.
    back, switch, bend : float
        Cost of a metre in reverse, of a change of direction, m, and share by which the
        tightest arc costs more.
    reverses : int
        1: moves in reverse are possible.
    has_heading : int
        1: the heading of the goal counts.
    """

    x: float
    y: float
    resolution: float
    edge: float
    columns: int
    rows: int
    headings: int
    curvature: float
    stride: float
    step: float
    back: float
    switch: float
    bend: float
    reverses: int
    has_heading: int


class Tree(NamedTuple):
    """Workspace of a search of at most n states.

    Attributes
    ----------
    pose : (n, 3 + m) float64
        Poses: m, m, rad; and headings of m trailers, rad.
    move : (n, 2) float64
        Move that led to each state: direction, 1 or −1, and turn per metre, rad/m.
    node : (n,) int32
        Cell of the lattice of each state.
    state : (columns · rows · headings,) int32
        1 + state of each cell of the lattice; 0: none.
    shot : (3, 3) float64
        Last part of the path: direction, turn per metre, and length, m.
    arc : (2, 3) float64
        Workspace for arcs.
    work : (3, 3 + m) float64
        Workspace for poses.
    parts : (3, 2) float64
        Workspace for a path of Dubins.
    ends : (2, 3) float64
        Workspace for the poses before and after a step.
    """

    pose: F8
    move: F8
    node: I4
    state: I4
    shot: F8
    arc: F8
    work: F8
    parts: F8
    ends: F8


@inline_kernel
def advanced(
    x: float, y: float, th: float, direction: float, turn: float, length: float
) -> tuple[float, float, float]:
    """Return the pose after an arc, m, m, rad.

    Parameters
    ----------
    x, y, th : float
        Pose before, m, m, rad.
    direction : float
        1 forward, −1 in reverse.
    turn : float
        Turn per metre of the way, rad/m, positive counter-clockwise.
    length : float
        Length of the way, m.
    """
    if abs(turn) < NEAR_ARC:
        c, s = cosine_sine(th)
        return x + direction * length * c, y + direction * length * s, th
    c, s = cosine_sine(th)
    c1, s1 = cosine_sine(th + turn * length)
    radius = direction / turn
    return x + radius * (s1 - s), y - radius * (c1 - c), th + turn * length


@inline_kernel
def put_pose(to: F8, pose: F8) -> None:
    """Copy a pose.

    Parameters
    ----------
    to, pose : (3 + m,) float64
        Output, and pose, see `Tree`.
    """
    for k in range(pose.shape[0]):
        to[k] = pose[k]


@inline_kernel
def is_free_pose(
    costs: U1, discs: F8, row: int, x: float, y: float, th: float, rules: CarRules
) -> bool:
    """Return whether all discs of a body are in free cells.

    Parameters
    ----------
    costs : (rows, columns) uint8
        Raster for one disc.
    discs, row
        See `Train`, and number of the body.
    x, y, th : float
        Pose of the body, m, m, rad.
    rules : CarRules
        Parameters.
    """
    c, s = cosine_sine(th)
    for k in range(discs.shape[1]):
        i = int(math.floor((x + discs[row, k] * c - rules.x) / rules.resolution))
        j = int(math.floor((y + discs[row, k] * s - rules.y) / rules.resolution))
        if not (0 <= i < costs.shape[1] and 0 <= j < costs.shape[0]):
            return False
        if costs[j, i] == BLOCKED:
            return False
    return True


@kernel
def do_trailers_follow(
    costs: U1, train: Train, pose: F8, at: F8, to: F8, rules: CarRules
) -> bool:
    """Move the trailers after their robot, and return whether they are free.

    Parameters
    ----------
    costs, rules
        See `is_free_pose`.
    train : Train
        Bodies.
    pose : (3 + m,) float64
        In-place: headings of the trailers, rad.
    at : (3,) float64
        Pose of the robot before, m, m, rad.
    to : (3,) float64
        Pose of the robot after, near the one before, m, m, rad.

    Returns
    -------
    bool
        Whether no trailer is on a blocked cell, and no hitch bends farther beyond its limit.
    """
    x, y, th = at[0], at[1], at[2]
    lx, ly, lth = to[0], to[1], to[2]
    for m in range(train.hitches.shape[0]):
        back, drawbar = train.hitches[m, 0], train.hitches[m, 1]
        vx, vy, w = twist_between(x, y, th, lx, ly, lth)
        before = wrap(th - pose[3 + m])
        phi = bent(before, vx, vy, w, back, drawbar)
        if abs(phi) > train.hitches[m, 2] and abs(phi) > abs(before):
            return False
        c, s = cosine_sine(th)
        c1, s1 = cosine_sine(pose[3 + m])
        x, y, th = x - back * c - drawbar * c1, y - back * s - drawbar * s1, pose[3 + m]
        pose[3 + m] = wrap(lth - phi)
        c, s = cosine_sine(lth)
        c1, s1 = cosine_sine(pose[3 + m])
        lx, ly, lth = (
            lx - back * c - drawbar * c1,
            ly - back * s - drawbar * s1,
            pose[3 + m],
        )
        if not is_free_pose(costs, train.discs, 1 + m, lx, ly, lth, rules):
            return False
    return True


@kernel
def is_free_arc(
    costs: U1, train: Train, start: F8, arc: F8, rules: CarRules, tree: Tree
) -> bool:
    """Return whether all bodies are free on an arc, in steps of at most `CarRules.step`.

    Parameters
    ----------
    costs, rules
        See `is_free_pose`.
    train : Train
        Bodies.
    start : (3 + m,) float64
        Pose at the start of the arc, see `Tree`; in-place: pose at its end.
    arc : (3,) float64
        Direction, turn per metre, and length, m.
    tree : Tree
        `ends` is workspace.
    """
    steps = int(math.ceil(arc[2] / rules.step))
    x, y, th = start[0], start[1], start[2]
    before, after = tree.ends[0], tree.ends[1]
    before[0], before[1], before[2] = x, y, th
    for k in range(1, steps + 1):
        px, py, pth = advanced(x, y, th, arc[0], arc[1], arc[2] * k / steps)
        if not is_free_pose(costs, train.discs, 0, px, py, pth, rules):
            return False
        if train.hitches.shape[0] > 0:
            after[0], after[1], after[2] = px, py, pth
            if not do_trailers_follow(costs, train, start, before, after, rules):
                return False
            before[0], before[1], before[2] = px, py, pth
    start[0], start[1], start[2] = advanced(x, y, th, arc[0], arc[1], arc[2])
    return True


@kernel
def words_to(
    x: float, y: float, th: float, goal: F8, number: int, rules: CarRules, parts: F8
) -> bool:
    """Write a path forward of arcs and lines to the goal, and return whether it exists.

    Parameters
    ----------
    x, y, th : float
        Pose of the robot, m, m, rad.
    goal : (3,) float64
        Place and heading of the goal, m, m, rad.
    number : int
        See `botyard.navigation.kernels.dubins.word_of`; without a heading of the goal 0
        or 1: first to the left or right.
    rules : CarRules
        Parameters.
    parts : (3, 2) float64
        Output: turn (1 left, −1 right, 0 straight), and length of each part, in radii of
        the turning circle.
    """
    dx, dy = (goal[0] - x) * rules.curvature, (goal[1] - y) * rules.curvature
    if rules.has_heading == 1:
        line = atan2(dy, dx)
        return word_of(
            number, math.sqrt(dx * dx + dy * dy), th - line, goal[2] - line, parts
        )

    if number > 1:
        return False
    side = 1.0 if number == 0 else -1.0
    c, s = cosine_sine(th)
    # The goal from the centre of the turning circle on that side, mirrored to the left.
    ahead, left = c * dx + s * dy, side * (c * dy - s * dx) - 1.0
    square = ahead * ahead + left * left - 1.0
    if square < 0.0:
        return False
    straight = math.sqrt(square)
    parts[0, 0], parts[0, 1] = (
        side,
        positive(atan2(left, ahead) + atan2(1.0, straight)),
    )
    parts[1, 0], parts[1, 1] = 0.0, straight
    parts[2, 0], parts[2, 1] = 0.0, 0.0
    return True


@kernel
def shoot(
    costs: U1, train: Train, at: F8, goal: F8, rules: CarRules, tree: Tree
) -> float:
    """Write the shortest free path of arcs and lines to the goal, and return its cost, m.

    Parameters
    ----------
    costs, rules
        See `is_free_pose`.
    train : Train
        Bodies.
    at : (3 + m,) float64
        Pose, see `Tree`.
    goal : (3,) float64
        Goal, m, m, rad.
    tree : Tree
        Output: `shot`. `work` from row 1 on, the last row of `arc`, `parts`, and `ends` are
        workspace.

    Returns
    -------
    float
        Cost; infinite if none of these paths is free.
    """
    parts, shot = tree.parts, tree.shot
    arc, pose, target = tree.arc[1], tree.work[1], tree.work[2]
    best = math.inf
    for backwards in range(1 + rules.reverses):
        # In reverse the robot drives forward with the headings turned round.
        flip = math.pi * backwards
        target[0], target[1], target[2] = goal[0], goal[1], goal[2] + flip
        direction, factor = 1.0, 1.0
        if backwards == 1:
            direction, factor = -1.0, rules.back
        for number in range(WORDS):
            if not words_to(at[0], at[1], at[2] + flip, target, number, rules, parts):
                continue
            length = (parts[0, 1] + parts[1, 1] + parts[2, 1]) / rules.curvature
            if length * factor >= best:
                continue
            put_pose(pose, at)
            is_free = True
            for k in range(3):
                arc[0], arc[1], arc[2] = (
                    direction,
                    parts[k, 0] * rules.curvature,
                    parts[k, 1] / rules.curvature,
                )
                if is_free:
                    is_free = is_free_arc(costs, train, pose, arc, rules, tree)
            if not is_free:
                continue
            best = length * factor
            for k in range(3):
                shot[k, 0], shot[k, 1], shot[k, 2] = (
                    direction,
                    parts[k, 0] * rules.curvature,
                    parts[k, 1] / rules.curvature,
                )

    return best


@entry_kernel
def fill_field(costs: U1, goal: int, search: Search) -> None:
    """Compute the length of a shortest path from each cell to one cell, by Dijkstra.

    Parameters
    ----------
    costs : (rows, columns) uint8
        Raster with a blocked border.
    goal : int
        Number of the cell.
    search : Search
        Workspace. Output: `length`, in millionths of a cell.
    """
    columns = costs.shape[1]
    search.length[goal] = 0.0
    count = put(search, goal, 0.0, 0)
    while count > 0:
        cell = take_first(search, count)
        count -= 1
        i, j = cell % columns, cell // columns
        for dj in range(-1, 2):
            for di in range(-1, 2):
                if (di == 0 and dj == 0) or not is_move(costs, i, j, di, dj):
                    continue
                other = cell + dj * columns + di
                length = search.length[cell] + (
                    STRAIGHT if di == 0 or dj == 0 else DIAGONAL
                )
                if length < search.length[other]:
                    search.length[other] = length
                    count = put(search, other, length, count)


@inline_kernel
def node_of(x: float, y: float, th: float, rules: CarRules) -> int:
    """Return the number of the cell of the lattice of a pose; −1 outside.

    Parameters
    ----------
    x, y, th : float
        Pose, m, m, rad.
    rules : CarRules
        Parameters.
    """
    i = int(math.floor((x - rules.x) / rules.edge))
    j = int(math.floor((y - rules.y) / rules.edge))
    if not (0 <= i < rules.columns and 0 <= j < rules.rows):
        return -1
    turned = positive(th) / (2.0 * math.pi)
    k = int(math.floor(turned * rules.headings + 0.5)) % rules.headings
    return (j * rules.columns + i) * rules.headings + k


@inline_kernel
def to_go(field: F8, width: int, x: float, y: float, rules: CarRules) -> float:
    """Return the least length of a path from a place to the goal, m.

    Parameters
    ----------
    field : (n,) float64
        Result of `fill_field`.
    width : int
        Columns of the raster with its border.
    x, y : float
        Place, m.
    rules : CarRules
        Parameters.
    """
    i = int(math.floor((x - rules.x) / rules.resolution)) + 1
    j = int(math.floor((y - rules.y) / rules.resolution)) + 1
    if not 0 <= j * width + i < field.shape[0]:
        return math.inf
    return field[j * width + i] / STRAIGHT * rules.resolution


@entry_kernel
def plan_car(
    costs: U1,
    train: Train,
    field: F8,
    start: F8,
    goal: F8,
    rules: CarRules,
    search: Search,
    tree: Tree,
) -> int:
    """Search for a path, and return the state from which `Tree.shot` leads to the goal.

    Parameters
    ----------
    costs, rules
        See `is_free_pose`.
    train : Train
        Bodies.
    field : (n,) float64
        Result of `fill_field` for the goal.
    start : (3 + m,) float64
        Pose, see `Tree`.
    goal : (3,) float64
        Goal, m, m, rad.
    search, tree : Search, Tree
        Workspaces for the greatest number of states. `Search.before` has the state before
        each one, −1 for the start.

    Returns
    -------
    int
        State; `NONE`: there is no path; `EXHAUSTED`: none within this number of states.
    """
    width = costs.shape[1] + 2
    most = tree.pose.shape[0]
    at, arc = tree.work[0], tree.arc[0]
    put_pose(tree.pose[0], start)
    first = node_of(start[0], start[1], start[2], rules)
    if first < 0:
        return NONE
    tree.node[0], tree.state[first] = first, 1
    tree.move[0, 0] = 0.0
    search.before[0], search.length[0] = -1, 0.0
    count = put(search, 0, to_go(field, width, start[0], start[1], rules), 0)
    states, popped, waited = 1, 0, 0
    while count > 0:
        here = take_first(search, count)
        count -= 1
        popped += 1
        x, y = tree.pose[here, 0], tree.pose[here, 1]
        # A direct path (`shoot`) from far away is seldom free: try fewer of them.
        waited += 1
        if waited * 2.0 >= to_go(field, width, x, y, rules) * rules.curvature:
            waited = 0
            if shoot(costs, train, tree.pose[here], goal, rules, tree) < math.inf:
                return here

        for m in range(TURNS * (1 + rules.reverses)):
            direction = 1.0 if m < TURNS else -1.0
            share = (m % TURNS - TURNS // 2) / (TURNS // 2)
            arc[0], arc[1], arc[2] = direction, share * rules.curvature, rules.stride
            put_pose(at, tree.pose[here])
            if not is_free_arc(costs, train, at, arc, rules, tree):
                continue
            node = node_of(at[0], at[1], at[2], rules)
            rest = to_go(field, width, at[0], at[1], rules)
            if node < 0 or rest == math.inf:
                continue
            cost = rules.stride * (1.0 + rules.bend * abs(share))
            if direction < 0.0:
                cost *= rules.back
            if tree.move[here, 0] * direction < 0.0:
                cost += rules.switch
            length = search.length[here] + cost
            other = int(tree.state[node]) - 1
            if other < 0:
                if states == most:
                    return EXHAUSTED
                other = states
                states += 1
                tree.state[node], tree.node[other] = other + 1, node
            # A closed state stays: with short moves a better one is seldom much better.
            elif search.position[other] < 0 or length >= search.length[other]:
                continue
            put_pose(tree.pose[other], at)
            tree.move[other, 0], tree.move[other, 1] = direction, arc[1]
            search.before[other], search.length[other] = here, length
            count = put(search, other, length + rest, count)

    return NONE
