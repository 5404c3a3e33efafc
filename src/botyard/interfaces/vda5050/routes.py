"""Path of an order, divided into sectors, and its conflicts with other paths (`Route`).

A robot has reached a node when the centre of its disk is on it. Sector 0 is the
position of the first
node. Sector k runs along edge k − 1 to node k, and ends one radius behind
the node. A robot that may not enter the next sector therefore stops with its centre
exactly on the node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from botyard.names import shown
from botyard.protocols.vda5050.orders import Order, OrderError
from botyard.traffic.geometry import SearchLimit, SweptPath
from botyard.traffic.motion import Path2
from botyard.traffic.task import I8, TaskError, Vehicle

MAX_LENGTH: Final = 1e6
"""Longest path of an order, m.

On longer paths, the rounding error of a distance along the path would exceed the
engine's tolerance of 1e-9 m.
"""
MAX_PAIRS: Final = 500_000
"""Largest number of pairs of sectors that are compared for one order.

The comparison of this number takes about 0.3 s of CPU time.
"""
MAX_CONFLICTS: Final = 2_000_000
"""Largest number of conflicts between sectors of all AGVs: about 500 MB and 5 s of CPU time."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Path of an order, divided into sectors.

    Attributes
    ----------
    path : Path2
        Path over the nodes.
    vehicle : Vehicle
        The AGV with its sectors, one for each node.
    swept : SweptPath
        Areas that the AGV covers in its sectors, with an index for the search of
        conflicts.
    maps : tuple of str
        Names of the maps of the nodes, each once.
    of_node : (n,) int64 array
        Index in `maps` of each node.
    """

    path: Path2
    vehicle: Vehicle
    swept: SweptPath
    maps: tuple[str, ...]
    of_node: I8

    def conflicts(self, other: Route, limit: SearchLimit, first: int = 0) -> I8:
        """Find the conflicts of the sectors from `first` with another route.

        Sectors on different maps do not conflict.

        Parameters
        ----------
        other : Route
            Route of another AGV.
        limit : SearchLimit
            Limit of the search's work.
        first : int
            First sector of this route to compare.

        Returns
        -------
        (m, 2) int64 array
            Sectors of this route and of the other route.

        Raises
        ------
        OrderError
            The limit is exceeded.
        """
        # Each route numbers its maps itself. Translate the map numbers of the other
        # route to numbers of this route; −1 is a map that this route does not have.
        index = {name: k for k, name in enumerate(self.maps)}
        theirs = np.array([index.get(name, -1) for name in other.maps], np.int64)[
            other.of_node
        ]
        if not np.isin(theirs, self.of_node).any():
            return np.zeros((0, 2), np.int64)

        try:
            pairs = self.swept.conflicts(other.swept, limit, first)
        except TaskError:
            raise OrderError(
                "orderError",
                f"expected at most {limit.pairs} pairs of edges near the orders "
                "of other AGVs, found more",
            ) from None

        # A sector runs between two nodes, which may be on different maps (in a lift);
        # it conflicts on either map.
        a, b = pairs.T
        mine, before, there = self.of_node, np.maximum(a - 1, 0), np.maximum(b - 1, 0)
        same = (mine[a] == theirs[b]) | (mine[a] == theirs[there])
        same |= (mine[before] == theirs[b]) | (mine[before] == theirs[there])
        found: I8 = pairs[same]
        return found


def route_of(order: Order, vehicle: Vehicle, kind: str = "orderError") -> Route:
    """Create the route of an order.

    Parameters
    ----------
    order : Order
        Order of at least two nodes.
    vehicle : Vehicle
        Radius and motion of the AGV.
    kind : str
        VDA 5050 error type of the errors.

    Raises
    ------
    OrderError
        The order has one node, an edge is not longer than the radius, or the path is
        too long.
    """
    radius = vehicle.radius
    if len(order.nodes) < 2:
        raise OrderError(kind, "expected an order of at least two nodes, found one")
    path = Path2(np.array([(n.x, n.y) for n in order.nodes], np.float64))
    lengths = np.diff(path.along)
    # With ``not … <=`` instead of ``>``, NaN is also refused.
    if not path.length <= MAX_LENGTH:
        raise OrderError(
            kind,
            f"expected a path of at most {MAX_LENGTH:g} m, found {path.length:g} m",
        )

    # Each sector ends one radius behind its node, except for the last, where the path
    # ends.
    ends = np.append(path.along[:-1] + radius, path.along[-1])
    short = np.flatnonzero((lengths <= radius) | (np.diff(ends) <= 0.0))
    if len(short):
        k = int(short[0])
        a, b = order.nodes[k], order.nodes[k + 1]
        raise OrderError(
            kind,
            f"edge {shown(order.edges[k])} from node {shown(a.id)} to "
            f"{shown(b.id)}: expected more than the radius of {radius:g} m, "
            f"found {lengths[k]:g} m",
        )

    maps = tuple(dict.fromkeys(n.map for n in order.nodes))
    index = {name: k for k, name in enumerate(maps)}
    swept = SweptPath(path, np.concatenate([[0.0], ends]), radius)
    of_node = np.array([index[n.map] for n in order.nodes], np.int64)
    return Route(
        path,
        replace(vehicle, ends=ends, path=path.corners, start=0.0),
        swept,
        maps,
        of_node,
    )


def common_nodes(a: Order | None, b: Order) -> int:
    """Return the number of leading nodes at which two orders have the same places.

    Parameters
    ----------
    a : Order, optional
        Earlier order; None has no nodes.
    b : Order
        Later order.

    Returns
    -------
    int
        Number of nodes; ids and actions of nodes are not compared.
    """
    if a is None:
        return 0
    count = 0
    for one, other in zip(a.nodes, b.nodes, strict=False):
        if one.place != other.place:
            break
        count += 1

    return count


def listed_conflicts(pairs: dict[tuple[int, int], I8]) -> I8:
    """Return the conflicts in the form of `botyard.traffic.task.Task`, each pair once.

    Parameters
    ----------
    pairs : dict of (int, int) to (m, 2) arrays
        Conflicting sectors of each pair of robots.

    Returns
    -------
    (n, 4) int64 array
        Robot, sector, other robot and its sector, sorted by robots.
    """
    listed = np.zeros((sum(map(len, pairs.values())), 4), np.int64)
    at = 0
    # Sort the rows, so that the result does not depend on the order in which orders
    # arrived.
    for (i, j), sectors in sorted(pairs.items(), key=lambda item: item[0]):
        rows = listed[at : at + len(sectors)]
        rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = (
            i,
            sectors[:, 0],
            j,
            sectors[:, 1],
        )
        at += len(sectors)

    return listed


__all__ = [
    "MAX_CONFLICTS",
    "MAX_LENGTH",
    "MAX_PAIRS",
    "Route",
    "common_nodes",
    "listed_conflicts",
    "route_of",
]
