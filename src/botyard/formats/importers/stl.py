"""Triangle meshes of STL files, as corners and edges.

Source: the layout of 3D Systems' "StereoLithography Interface Specification" (1989):
binary files have a head of 80 bytes, the number of triangles, and 50 bytes a triangle.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelFileError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Meter
from botyard.formats.importers.shapes import MAX_SIDE
from botyard.formats.importers.solids import Point, Polyhedron
from botyard.names import shown

HEAD: Final = 80
TRIANGLE: Final = np.dtype([("floats", "<f4", 12), ("attribute", "<u2")])
MAX_TRIANGLES: Final = 200_000
"""Largest number of triangles of a mesh."""
_VERTEX: Final = re.compile(rb"\bvertex\s++(\S++)\s++(\S++)\s++(\S++)")


def read_stl(path: Path, meter: Meter, scale: Point = (1.0, 1.0, 1.0)) -> Polyhedron:
    """Return the corners and edges of a mesh.

    Parameters
    ----------
    path : Path
        STL file, binary or text.
    meter : Meter
        Counts bytes and vertices.
    scale : (float, float, float)
        Factors of the coordinates.

    Returns
    -------
    Polyhedron
        Corners, m, and edges of all triangles. The solid may be concave.

    Raises
    ------
    ModelFileError
        The file is not STL, or has more than `MAX_TRIANGLES` triangles.
    """
    data = read_bytes(path, meter, ModelFileError)
    count = int.from_bytes(data[HEAD : HEAD + 4], "little")
    if len(data) == HEAD + 4 + TRIANGLE.itemsize * count and count:
        _check(count, path)
        table = np.frombuffer(data, TRIANGLE, count, HEAD + 4)
        points = table["floats"][:, 3:].reshape(-1, 3).astype(np.float64)
    else:
        points = _of_text(data, path)
    if not (np.abs(points) <= MAX_SIDE).all():
        raise ModelFileError(
            f"expected coordinates within ±{MAX_SIDE:g}, "
            f"found {float(np.abs(points).max()):g}",
            path,
        )
    meter.add("vertices", len(points))
    # Triangles share corners; each corner is stored once.
    corners, index = np.unique(points, axis=0, return_inverse=True)
    sides = index.reshape(-1, 3)
    pairs = np.concatenate([sides[:, [0, 1]], sides[:, [1, 2]], sides[:, [2, 0]]])
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    return Polyhedron(
        [(x, y, z) for x, y, z in (corners * scale).tolist()],
        [(i, j) for i, j in edges.tolist()],
    )


def _check(count: int, path: Path) -> None:
    if count > MAX_TRIANGLES:
        raise ModelFileError(
            f"expected at most {MAX_TRIANGLES} triangles, found {count}", path
        )


def _of_text(data: bytes, path: Path) -> NDArray[np.float64]:
    found = []
    for match in _VERTEX.finditer(data):
        try:
            found.append([float(text) for text in match.groups()])
        except ValueError:
            raise ModelFileError(
                "expected three numbers after vertex, found "
                f'"{shown(match[0].decode("latin-1"), 80)}"',
                path,
            ) from None
        _check(len(found) // 3, path)
    if not found or len(found) % 3:
        raise ModelFileError(
            "expected an STL file, with three corners for each triangle, found "
            f"{len(found)} corners",
            path,
        )
    return np.array(found, np.float64)


__all__ = ["MAX_TRIANGLES", "read_stl"]
