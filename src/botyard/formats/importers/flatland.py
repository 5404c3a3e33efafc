"""Worlds of Flatland (https://flatland-simulator.readthedocs.io): YAML files.

A world has layers (ROS maps or lists of line segments) and models with bodies, joints
and plugins, in files of their own. botyard has one plane for all layers: walls of a
layer that no laser sees are invisible, and walls of a layer without footprints do not
stop robots. `flatlandkeys` has all keys.

Source: the documentation of Flatland.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from botyard.errors import MapError, WorldFileError
from botyard.formats import rosmap
from botyard.formats.base import Options, Source, read_sibling
from botyard.formats.images import read_grey
from botyard.formats.importers.builder import Builder
from botyard.formats.importers.flatlandkeys import KEYS
from botyard.formats.importers.flatlandmodels import Model, read_model
from botyard.formats.importers.values import Value, read_yaml, top_keys
from botyard.geometry import Pose, transform_point
from botyard.model.obstacles import Returns
from botyard.model.world import Settings, World

ALL: Final = "all"
"""Name that stands for all layers in a list of layers."""
MAX_NAMES: Final = 16
"""Largest number of layers (documentation of Flatland)."""


def fits(source: Source) -> bool:
    """Return whether a YAML file is a world of Flatland, by its top-level keys."""
    found = top_keys(source)
    return "layers" in found and found <= set(KEYS.kinds["world"])


def read(source: Source, options: Options = Options()) -> World:
    """Read a world of Flatland with its maps and models.

    Raises
    ------
    WorldFileError
        A file is invalid. The error names the file, the line, the expected and the
        found value.
    """
    builder = Builder(source, options)
    return _Reader(builder).run(read_yaml(source, builder.meter))


@dataclass(slots=True)
class _Seen:
    """Names of the layers that lasers of the world see, and that footprints collide with."""

    lasers: set[str] = field(default_factory=set)
    bodies: set[str] = field(default_factory=set)

    def returns(self, names: list[str]) -> Returns:
        """Return the visibility of a layer."""
        own = {ALL, *names}
        # If no laser (or no footprint) of the file names a layer, the walls of all layers are
        # visible (or solid) for robots that users add.
        seen = not self.lasers or bool(own & self.lasers)
        solid = not self.bodies or bool(own & self.bodies)
        return Returns(obstacle=solid, laser=int(seen), sonar=seen)


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._notes = builder.notes
        self._models: dict[str, Model] = {}

    def run(self, file: Value) -> World:
        table = file.table()
        KEYS.check("world", table, self._notes)
        seen = _Seen()
        placed = []
        for value in table["models"].entries() if "models" in table else ():
            entry = value.table()
            KEYS.check("placed model", entry, self._notes)
            if "enabled" in entry and not entry["enabled"].flag():
                continue
            if "model" not in entry:
                raise value.fail("the file of a model")
            model = self._model(entry["model"])
            placed.append((model, entry, value))
            seen.lasers |= model.laser_layers
            seen.bodies |= model.body_layers

        for value in table["layers"].entries() if "layers" in table else ():
            self._layer(value, seen)
        for model, entry, value in placed:
            at = entry["pose"].pose() if "pose" in entry else Pose()
            name = entry["name"].text() if "name" in entry else "model"
            model.place(self._builder, name, at, value)
        return self._builder.world(Settings())

    def _file(self, value: Value, what: str) -> Source:
        """Return a file that the world names."""
        source = self._builder.source
        path = source.sibling_file(value.text(), what)
        self._builder.meter.add("files", 1, value.line)
        found = read_sibling(path, what, self._builder.meter, value.error)
        return replace(found, root=source.root)

    def _model(self, value: Value) -> Model:
        name = value.text()
        if name not in self._models:
            source = self._file(value, "the model")
            self._models[name] = read_model(source, self._builder)
        return self._models[name]

    # -- layers

    def _layer(self, value: Value, seen: _Seen) -> None:
        layer = value.table()
        KEYS.check("layer", layer, self._notes)
        names = [n.text() for n in layer["name"].entries()] if "name" in layer else []
        if len(names) > MAX_NAMES:
            raise layer["name"].fail(f"at most {MAX_NAMES} names")
        # A layer without a map is empty.
        if "map" not in layer or layer["map"].data is None:
            return
        source = self._file(layer["map"], "the map")
        if b"line_segments" in source.data[:65536]:
            self._lines(source, seen.returns(names))
        else:
            self._picture(source, seen.returns(names))

    def _picture(self, source: Source, seen: Returns) -> None:
        """Add the walls of a ROS map."""
        meter = self._builder.meter
        m = rosmap.parse(source.text, source.name, meter)
        # Flatland ignores the key `negate` of ROS maps.
        m = replace(m, negate=False)
        path = source.sibling_file(m.image, "the image")
        picture = read_sibling(
            path, "the map's image", meter, lambda reason: MapError(reason, source.name)
        )
        pixels = read_grey(picture, meter)
        solid = rosmap.occupied(pixels, m)[::-1]
        rows, columns = solid.shape
        size = (columns * m.resolution, rows * m.resolution)
        self._builder.grid(solid, size, Pose(*m.origin), seen)

    def _lines(self, source: Source, seen: Returns) -> None:
        """Add the walls of a list of line segments."""
        file = read_yaml(source, self._builder.meter)
        table = file.table()
        KEYS.check("line map", table, self._notes)
        for key in ("type", "data", "scale", "origin"):
            if key not in table:
                raise file.fail(f"the key {key}")
        table["type"].text("line_segments")
        scale = table["scale"].number(0.0, above=True)
        origin = table["origin"].pose()
        data = self._near(source, table["data"])
        for number, line in enumerate(data.text.split("\n"), 1):
            words = line.split()
            if not words:
                continue
            try:
                x0, y0, x1, y1 = (float(word) * scale for word in words)
            except ValueError:
                # The file may be of another kind, whose contents must not leak.
                raise WorldFileError(
                    "expected four numbers: x1 y1 x2 y2, found another line",
                    data.name,
                    number,
                ) from None
            self._builder.meter.check(
                "extent", max(abs(x0), abs(y0), abs(x1), abs(y1)), number, data.name
            )
            ends = (transform_point(origin, x0, y0), transform_point(origin, x1, y1))
            self._builder.line(ends, seen)

    def _near(self, source: Source, value: Value) -> Source:
        path = source.sibling_file(value.text(), "the line segments")
        return read_sibling(
            path, "the file of line segments", self._builder.meter, value.error
        )


__all__ = ["fits", "read"]
