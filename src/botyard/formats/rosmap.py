"""Reader and writer of maps of ROS's map servers: a YAML file and an image.

map_server of ROS 1 and nav2_map_server of ROS 2 use the same format.

Keys: `image` (a path relative to the YAML file), `resolution` (m per pixel), `origin`
(x, y, yaw of the lower left pixel's corner: m, m, rad), `negate`, `occupied_thresh`,
`free_thresh`, `mode` (``trinary``, ``scale``, ``raw``). The occupancy of a pixel is
(255 − value) / 255, or value / 255 with `negate`. In raw mode the value itself is the
occupancy, in percent. A pixel whose occupancy exceeds `occupied_thresh` is solid;
unknown and free cells are not.

Sources: documentation of the packages map_server (wiki of ROS 1) and nav2_map_server
(docs of Nav2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from botyard.errors import MapError, did_you_mean
from botyard.formats.base import MAX_LISTED, Options, Source, read_sibling
from botyard.formats.budget import Budget, Meter
from botyard.formats.images import read_grey
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.model.tracing import trace
from botyard.model.world import World
from botyard.names import shown
from botyard.processes.safefile import MARK, check_replaceable, replacing, write_text

SUFFIXES: Final = (".yaml", ".yml")
MODES: Final = ("trinary", "scale", "raw")
NEGATED: Final = frozenset({"1", "true", "yes", "on", "y"})
NOT_NEGATED: Final = frozenset({"0", "false", "no", "off", "n"})
"""Values of `negate` that mean False: 0, and the booleans of YAML 1.1.

nav2_map_server reads the booleans.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RosMap:
    """Contents of a map's YAML file.

    Attributes
    ----------
    image : str
        Path of the image as written.
    resolution : float
        Edge of a pixel, m.
    origin : tuple of float
        Corner of the lower left pixel: x, y (m), yaw (rad).
    negate : bool
        Whether light pixels are occupied.
    occupied_thresh, free_thresh : float
        Thresholds of occupancy, 0 to 1.
    mode : str
        ``trinary``, ``scale`` or ``raw``.
    """

    image: str
    resolution: float
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    negate: bool = False
    occupied_thresh: float = 0.65
    free_thresh: float = 0.196
    mode: str = "trinary"


class _Reader:
    """Reader of the values of a YAML mapping, with a check of types; errors name the line."""

    def __init__(self, text: str, path: str | None, meter: Meter) -> None:
        self._path = path
        # The node tree keeps the lines of keys, which messages name.
        root = YamlFile(text, meter, MapError, unique=False).root
        if not isinstance(root, yaml.MappingNode):
            raise MapError(
                "expected the keys of a ROS map (image, resolution, origin …), "
                "found none",
                path,
                1,
            )

        self._nodes = {
            key.value: node
            for key, node in root.value
            if isinstance(key, yaml.ScalarNode)
        }
        self._lines = {
            key.value: key.start_mark.line + 1
            for key, _ in root.value
            if isinstance(key, yaml.ScalarNode)
        }

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def fail(self, key: str, expected: str) -> MapError:
        node = self._nodes.get(key)
        if node is None:
            near = did_you_mean(key, self._nodes)
            return MapError(
                f"expected the key {key} ({expected}), found none{near}", self._path, 1
            )

        return MapError(
            f"{key}: expected {expected}, found {_in_words(node)}",
            self._path,
            self._lines[key],
        )

    def text(self, key: str, expected: str, fallback: str | None = None) -> str:
        node = self._nodes.get(key)
        if node is None and fallback is not None:
            return fallback
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self.fail(key, expected)
        return str(node.value)

    def number(
        self,
        key: str,
        expected: str,
        low: float,
        high: float,
        fallback: float | None = None,
    ) -> float:
        node = self._nodes.get(key)
        if node is None and fallback is not None:
            return fallback
        value = _number(node)
        if value is None or not low <= value <= high:
            raise self.fail(key, expected)
        return value

    def numbers(
        self, key: str, expected: str, count: int, most: float
    ) -> tuple[float, ...]:
        node = self._nodes.get(key)
        values = (
            [_number(n) for n in node.value]
            if isinstance(node, yaml.SequenceNode)
            else []
        )
        if len(values) != count or any(v is None or abs(v) > most for v in values):
            raise self.fail(key, expected)
        return tuple(v for v in values if v is not None)


def _in_words(node: Any) -> str:
    """Return the text of a value as it stands in the file."""
    if isinstance(node, yaml.ScalarNode):
        return f"'{shown(node.value)}'"
    if isinstance(node, yaml.SequenceNode):
        values = ", ".join(
            shown(n.value, 40) if isinstance(n, yaml.ScalarNode) else "…"
            for n in node.value[:MAX_LISTED]
        )
        return f"[{values}{', …' if len(node.value) > MAX_LISTED else ''}]"

    return "a mapping"


def _number(node: Any) -> float | None:
    """Return the number in a node of the file; None if it is not a finite number."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    try:
        value = float(node.value)
    except ValueError:
        return None

    return value if math.isfinite(value) else None


def parse(text: str, path: str | None = None, meter: Meter | None = None) -> RosMap:
    """Parse the YAML file of a map.

    Raises
    ------
    MapError
        The file is invalid. The error names the line, the expected and the found value.
    """
    r = _Reader(text, path, meter or Meter(Budget(), path or "map"))
    mode = r.text("mode", f"one of {', '.join(MODES)}", "trinary").lower()
    if mode not in MODES:
        raise r.fail("mode", f"one of {', '.join(MODES)}")
    # Files of ROS 1 have numbers, files of ROS 2 booleans.
    negate = r.text("negate", "0 or 1", "0").lower()
    if negate not in NEGATED | NOT_NEGATED:
        raise r.fail("negate", "0 or 1")
    return RosMap(
        image=r.text("image", "the path of an image"),
        resolution=r.number(
            "resolution", "metres per pixel, from 1e-06 to 10000", 1e-6, 1e4
        ),
        origin=_three(r.numbers("origin", "[x, y, yaw], m and rad", 3, 1e9))
        if "origin" in r
        else (0.0, 0.0, 0.0),
        negate=negate in NEGATED,
        occupied_thresh=r.number(
            "occupied_thresh", "a number from 0 to 1", 0.0, 1.0, 0.65
        ),
        free_thresh=r.number("free_thresh", "a number from 0 to 1", 0.0, 1.0, 0.196),
        mode=mode,
    )


def _three(values: tuple[float, ...]) -> tuple[float, float, float]:
    a, b, c = values
    return a, b, c


def occupied(pixels: NDArray[np.uint8], m: RosMap) -> NDArray[np.bool_]:
    """Return which pixels are occupied, as a bool array of the image's shape."""
    # In raw mode, values above 100 are unknown.
    if m.mode == "raw":
        solid: NDArray[np.bool_] = (pixels >= 100.0 * m.occupied_thresh) & (
            pixels <= 100
        )
        return solid

    # The comparison value / 255 > threshold, or (255 − value) / 255 > threshold, is
    # done on whole numbers to avoid rounding errors of the division.
    limit = 255.0 * m.occupied_thresh
    solid = pixels > limit if m.negate else pixels < 255.0 - limit
    return solid


def to_scene(
    m: RosMap,
    pixels: NDArray[np.uint8],
    *,
    name: str = "",
    source: str = "",
    meter: Meter | None = None,
) -> Scene:
    """Return a scene whose walls are the outlines of a map's solid pixels.

    Parameters
    ----------
    m : RosMap
        Contents of the YAML file.
    pixels : (rows, columns) uint8 array
        Grey values; row 0 is the top of the image.
    name, source : str
        Name of the scene, and file that it comes from.
    meter : Meter, optional
        Limits.
    """
    meter = meter or Meter(Budget(), source or name)
    meter.check("extent", max(pixels.shape) * m.resolution)
    segments, traced = trace(
        occupied(pixels, m)[::-1],
        m.resolution,
        Pose(*m.origin),
        lambda n: meter.add("vertices", 2 * n),
    )
    return Scene(
        name=name,
        source=source,
        segments=segments,
        traced=traced,
        resolution=m.resolution,
    )


def fits(source: Source) -> bool:
    """Return whether a YAML file describes a map: it names an image and a resolution."""
    # The keys of a map come early; the rest of a large YAML file is not searched.
    head = source.data[:65536]
    return b"image:" in head and b"resolution:" in head


def read(source: Source, options: Options = Options()) -> World:
    """Read a map, which consists of a YAML file and an image.

    Raises
    ------
    MapError
        A file is invalid; the error names the file and the line.
    """
    meter = Meter(options.budget, source.name)
    m = parse(source.text, source.name, meter)
    image = source.sibling_file(m.image, "the image")
    picture = read_sibling(
        image, "the map's image", meter, lambda reason: MapError(reason, image)
    )

    # A partly transparent pixel is unknown in nav2_map_server, regardless of `negate`.
    # Unknown cells are not solid.
    pixels = read_grey(
        picture,
        meter,
        behind=0 if m.negate else 255,
        whole=m.mode != "raw",
    )
    return World(
        scene=to_scene(m, pixels, name=source.stem, source=source.name, meter=meter)
    )


def dumps(m: RosMap) -> str:
    """Return the text of a map's YAML file; `parse` converts it back to the same contents."""
    keys = {
        "image": m.image,
        "mode": m.mode,
        "resolution": m.resolution,
        "origin": list(m.origin),
        "negate": int(m.negate),
        "occupied_thresh": m.occupied_thresh,
        "free_thresh": m.free_thresh,
    }
    return str(
        yaml.safe_dump(
            keys, sort_keys=False, default_flow_style=None, allow_unicode=True
        )
    )


FREE_PIXEL: Final = 254
"""Grey value of free pixels in the images that map savers write; occupied pixels are 0.
"""


def write(
    path: Path,
    solid: NDArray[np.bool_],
    resolution: float,
    origin: tuple[float, float, float],
    *,
    force: bool = False,
) -> None:
    """Write a map: ``path`` (YAML), and the image of the same name in PGM next to it.

    Parameters
    ----------
    path : Path
        YAML file.
    solid : (rows, columns) bool array
        Occupied pixels; row 0 is the lowest.
    resolution, origin
        See `RosMap`.
    force : bool
        Whether to replace files that this program did not write.

    Raises
    ------
    KeptFileError
        This program did not write one of the files, and `force` is False. No file
        changes.
    OSError
        A file cannot be written.
    """
    image = path.with_suffix(".pgm")
    # Both files are checked before the first one is replaced.
    check_replaceable(path, force=force)
    # Images start with the top row.
    pixels = np.where(solid[::-1], np.uint8(0), np.uint8(FREE_PIXEL))
    rows, columns = pixels.shape
    with replacing(image, force=force) as file:
        file.write(b"P5\n# %s\n%d %d\n255\n" % (MARK.encode(), columns, rows))
        file.write(pixels.tobytes())

    write_text(
        path,
        f"# {MARK}\n"
        + dumps(RosMap(image=image.name, resolution=resolution, origin=origin)),
        force=force,
    )
