"""Reader of Stage world files of both dialects (formats §3, §4).

A world has walls, objects, robots, and settings of time. A model that cannot be moved
(``gui_move 0``) or whose bitmap is large becomes part of the static map. An invisible
model becomes an area on the floor, and any other model a movable object. A ``position``
is a robot. Each property that cannot be simulated in a plane is noted once, with file
and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from botyard.errors import (
    BudgetError,
    ModelFileError,
    WorldBudgetError,
    WorldError,
    WorldFileError,
)
from botyard.formats import stageworld
from botyard.formats.base import Options, Source
from botyard.formats.notes import Notes
from botyard.formats.stagemodels import MODEL_TYPES, NOT_SIMULATED, ModelLibrary
from botyard.formats.stageprops import (
    STAGE_4,
    color,
    merged,
    note_unused,
    pose,
    returns,
    with_origin,
)
from botyard.formats.stageshapes import Shape
from botyard.formats.stageworld import Entity, Property, WorldFile
from botyard.formats.walls import Names, Walls
from botyard.geometry import Outline, Pose, compose, transform_point
from botyard.model.obstacles import BoxObject, Returns, Visible, rectangle
from botyard.model.scene import Area, Scene
from botyard.model.tracing import closed, place_segments
from botyard.model.world import PlacedRobot, Program, Settings, World
from botyard.names import check_name

GLOBALS: Final = frozenset(
    {
        "name",
        "interval_sim",
        "interval_real",
        "resolution",
        "size",
        "unit_length",
        "unit_angle",
        "gui_disable",
        "quit_time",
        "show_clock",
        "show_clock_interval",
        "threads",
        "speedup",
        "paused",
        "confirm_on_quit",
        "gui_interval",
    }
)
"""Global settings that are read, or that only affect Stage's window."""
MAX_MOVABLE_PIXELS: Final = 20_000
"""Largest bitmap of a movable model, pixels; a larger one is part of the static map."""
SENSORS: Final = frozenset(
    {
        "ranger",
        "laser",
        "fiducial",
        "fiducialfinder",
        "blobfinder",
        "bumper",
        "gripper",
        "sonar",
    }
)
_BASE: Final = Returns()

Known = Callable[[str], bool]


class _Compound(NamedTuple):
    """Outlines of an object that consists of several models."""

    outlines: tuple[Outline, ...]
    fiducial: int


class _Reader:
    """Builder of a `World` from a parsed Stage world file."""

    def __init__(
        self, world: WorldFile, path: Path, library: ModelLibrary, is_program: Known
    ) -> None:
        self._world = world
        self._path = path
        self._library = library
        self._notes = library.notes
        self._is_program = is_program
        self._walls = Walls()
        self._objects: list[BoxObject] = []
        self._areas: list[Area] = []
        self._robots: list[PlacedRobot] = []
        self._names = Names()
        self._view: tuple[float, float, float, float] | None = None

    def run(self) -> World:
        for key, prop in self._world.properties.items():
            if key not in GLOBALS and not key.startswith(("gui_", "show_")):
                self._notes.add(
                    f"global {key}", prop, f'the setting "{key}" is not used'
                )

        # Count all entities before the first one is built.
        for entity in self._world.entities:
            self._library.count(self._library.links(entity)[0])

        for entity in self._world.entities:
            self._entity(entity)
        settings = self._settings()
        name = (
            self._world.properties["name"].string()
            if "name" in self._world.properties
            else self._path.stem
        )
        start = self._robots[0].pose if self._robots else None
        scene = Scene(
            name=name or self._path.stem,
            source=str(self._path),
            segments=self._walls.merged(),
            special_walls=tuple(self._walls.special),
            traced=tuple(self._walls.traced),
            boxes=tuple(self._objects),
            areas=tuple(self._areas),
            start=start,
            view=self._view,
        )
        return World(scene=scene, robots=tuple(self._robots), settings=settings)

    # -- settings

    def _settings(self) -> Settings:
        def number(key: str) -> float | None:
            return (
                self._world.properties[key].number()
                if key in self._world.properties
                else None
            )

        step, speed, end, threads = (
            number("interval_sim"),
            number("speedup"),
            number("quit_time"),
            number("threads"),
        )
        # The limits are the limits of `--update-interval`.
        if step is not None and not 1.0 <= step <= 60_000.0:
            raise self._world.properties["interval_sim"].fail(
                "a step from 1 to 60000 ms"
            )
        if speed is not None and speed <= 0.0:
            self._notes.add(
                "speedup",
                self._world.properties["speedup"],
                '"speedup" requests the highest speed; the world runs in real time '
                "unless --fast is given",
            )

        return Settings(
            step=None if step is None else step / 1000.0,
            speed=speed if speed is not None and 0.01 <= speed <= 1000.0 else None,
            duration=end if end is not None and end > 0.0 else None,
            paused=bool(number("paused") or 0.0),
            # Stage draws the errors of odometry once, when a robot starts (formats
            # §4.3).
            odometry_error="random_init" if self._library.dialect == STAGE_4 else None,
            # Stage accepts 0 threads; botyard needs at least one.
            threads=None if threads is None else max(1, min(256, int(threads))),
        )

    def _window(
        self, props: dict[str, Property]
    ) -> tuple[float, float, float, float] | None:
        """Return the part of the world that Stage's window shows (x0, y0, x1, y1, m).

        The part follows from the window's centre, size in pixels, and scale. The scale
        is metres per pixel in Stage 2, and pixels per metre in Stage 4 (formats §3.3,
        §4.1).
        """
        if "scale" not in props or "size" not in props:
            return None
        scale, (width, height) = props["scale"].number(), props["size"].numbers(2)
        x, y = props["center"].numbers(2) if "center" in props else (0.0, 0.0)
        if not (scale > 0.0 and width > 0.0 and height > 0.0):
            raise props["scale"].fail("a scale and a size greater than 0")
        metres = 1.0 / scale if self._library.dialect == STAGE_4 else scale
        half_w, half_h = width * metres / 2.0, height * metres / 2.0
        return x - half_w, y - half_h, x + half_w, y + half_h

    # -- entities

    def _entity(self, entity: Entity) -> None:
        links, root = self._library.links(entity)
        if root == "window":
            try:
                self._view = self._window(merged(links)) or self._view
            except ModelFileError as error:
                # Only the initial view depends on the window.
                self._notes.texts.append(f"{error}; the view of this window is ignored")

            return

        if root in NOT_SIMULATED or root in SENSORS:
            self._notes.add(
                f"free {root}",
                entity,
                f'a "{root}" that no robot carries is not simulated',
            )
            return

        if root == "model":
            self._model(links, entity, self._pose(links))
            return

        spec = self._library.instance(entity)
        place = self._pose(links)
        name = self._name(links, entity)
        # In Stage 4, perfect odometry starts at zero unless the file sets its origin.
        if (
            self._library.dialect == STAGE_4
            and spec.perfect_odometry
            and root in MODEL_TYPES
            and "localization_origin" not in merged(links)
        ):
            spec = with_origin(spec, None)

        if not spec.kinematics.drives:
            self._objects.append(
                _as_object(
                    name, place, (spec.outline, *spec.parts), spec.returns, spec.color
                )
            )
            return

        self._library.meter.add("robots", 1, entity.line, entity.path)
        try:
            check_name(name)
        except WorldError as error:
            raise WorldFileError(str(error), entity.path, entity.line) from None

        self._robots.append(
            PlacedRobot(
                spec=spec, name=name, pose=place, program=self._program(links, entity)
            )
        )

    def _pose(self, links: Iterable[Entity]) -> Pose:
        props = merged(links)
        return pose(props["pose"]) if "pose" in props else Pose()

    def _name(self, links: list[Entity], entity: Entity) -> str:
        """Return a unique name: as written, or the name of the type, with a number if it is
        taken.
        """
        props = merged(links)
        base = props["name"].string() if "name" in props else entity.type_name
        base = base.strip() or entity.type_name
        return self._names.unique(base)

    def _program(self, links: list[Entity], entity: Entity) -> Program | None:
        """Return the controller that a ``ctrl`` property names, with its arguments."""
        prop = merged(links).get("ctrl")
        if prop is None:
            return None
        words = " ".join(map(str, prop.values)).split()
        if not words:
            return None
        if not self._is_program(words[0]):
            self._notes.add(
                f"ctrl {words[0]}",
                prop,
                f'ctrl "{words[0]}": there is no such controller; '
                "the robot waits for a client",
            )
            return None

        options = dict(word.partition("=")[::2] for word in words[1:])
        return Program(name=words[0], options={k: v for k, v in options.items() if v})

    # -- models: walls, objects, areas

    def _model(
        self, links: list[Entity], entity: Entity, at: Pose, depth: int = 0
    ) -> None:
        """Add the object that a ``model``, and the models that it carries, describe."""
        self._note(links)
        props = merged(links)
        name = self._name(links, entity)
        if self._is_fixed(props, links, depth):
            self._fixed(links, props, at, depth)
            return

        body = self._compound(links, Pose())
        seen = returns(_BASE, props, self._library.dialect)
        # The object is one body, so a fiducial on a carried model becomes its own.
        if not seen.fiducial and body.fiducial:
            seen = replace(seen, fiducial=body.fiducial)
        # An invisible object that robots pass is a mark on the floor.
        if seen.mask == Visible.NONE and not seen.fiducial:
            for outline in self._library.shape(links).outlines(self._library.pictures):
                corners = tuple(transform_point(at, x, y) for x, y in outline)
                self._areas.append(
                    Area(
                        kind=entity.type_name,
                        name=name if "name" in props else "",
                        corners=corners,
                    )
                )

            return

        shade = color(props, "red", str(entity.line))
        self._objects.append(_as_object(name, at, body.outlines, seen, shade))

    def _note(self, links: list[Entity]) -> None:
        """Add notes for the properties of a model (not a robot) that are not simulated."""
        for link in links:
            note_unused(self._notes, link)
            for key in ("ctrl", "give_watts", "take_watts"):
                if key in link.properties:
                    prop = link.properties[key]
                    what = f'{key} "{prop.values[0]}"' if key == "ctrl" else f'"{key}"'
                    self._notes.add(
                        f"{what} of a model",
                        prop,
                        f"{what}: has no effect on a model that is not a robot",
                    )

    def _is_fixed(
        self, props: dict[str, Property], links: list[Entity], depth: int
    ) -> bool:
        """Return whether a model is part of the static map."""
        for key in ("gui_move", "gui_movemask"):
            if key in props:
                return props[key].number() == 0

        bitmap = self._library.shape(links).bitmap
        return depth > 0 or (
            bitmap is not None
            and self._library.pictures.dark_pixels(bitmap).size > MAX_MOVABLE_PIXELS
        )

    def _fixed(
        self, links: list[Entity], props: dict[str, Property], at: Pose, depth: int
    ) -> None:
        """Add the walls of a fixed model: outlines of dark pixels or polygons, and a frame."""
        shape, seen = (
            self._library.shape(links),
            returns(_BASE, props, self._library.dialect),
        )
        length, width = shape.size
        frame = compose(at, shape.origin)
        found = []
        if shape.bitmap is not None:
            found.append(self._library.pictures.outlines(shape.bitmap))
            if length > 0.0 and width > 0.0:
                self._walls.trace(
                    len(found[0]),
                    self._library.pictures.dark_pixels(shape.bitmap).shape,
                    shape.size,
                    compose(frame, Pose(-length / 2.0, -width / 2.0, 0.0)),
                )
        elif not shape.boundary or shape.polygons:
            unit = _of_unit_size(shape)
            found += [
                closed(outline) for outline in unit.outlines(self._library.pictures)
            ]

        if shape.boundary:
            found.append(closed(rectangle(1.0, 1.0)))
        if not seen.obstacle:
            where = props.get("obstacle_return") or next(iter(props.values()))
            self._notes.add(
                f"walls without obstacle_return {where.path}:{where.line}",
                where,
                f"obstacle_return 0: robots see {links[-1].type_name} and drive through it",
            )
        # Outlines have unit size; the size and the pose are applied to all at once.

        self._walls.add(
            place_segments(
                np.concatenate(found) * (length, width, length, width), frame
            ),
            seen,
        )
        for child, chain in self._carried(links):
            self._model(chain, child, compose(at, self._pose(chain)), depth + 1)

    def _carried(self, links: list[Entity]) -> Iterator[tuple[Entity, list[Entity]]]:
        """Yield the models that a model carries, and the definitions behind each."""
        for link in links:
            for child in link.children:
                if child.type_name == "block":
                    continue
                chain, root = self._library.links(child)
                if root == "model":
                    yield child, chain
                elif root in MODEL_TYPES or root in NOT_SIMULATED or root in SENSORS:
                    self._notes.add(
                        f"carried {root}",
                        child,
                        f'a "{root}" on a model that is not a robot is not simulated',
                    )
                else:
                    raise self._library.unknown(child, root)

    def _compound(self, links: list[Entity], at: Pose) -> _Compound:
        """Return the outlines of a model together with the models that it carries.

        The outlines are in the frame of the whole object. The result also has the
        fiducial of any of the models.
        """
        props = merged(links)
        outlines = [
            tuple(transform_point(at, x, y) for x, y in part)
            for part in self._library.shape(links).outlines(self._library.pictures)
        ]
        fiducial = returns(_BASE, props, self._library.dialect).fiducial
        for _, chain in self._carried(links):
            self._note(chain)
            child = self._compound(chain, compose(at, self._pose(chain)))
            fiducial = fiducial or child.fiducial
            # A part without an obstacle return does not collide, so it is not part of
            # the body.
            if returns(_BASE, merged(chain), self._library.dialect).obstacle:
                outlines += child.outlines

        return _Compound(tuple(outlines), fiducial)


def _of_unit_size(shape: Shape) -> Shape:
    """Return a shape after scaling to unit size, centred on the origin."""
    return replace(shape, size=(1.0, 1.0), origin=Pose())


def _as_object(
    name: str, at: Pose, outlines: tuple[Outline, ...], seen: Returns, shade: str
) -> BoxObject:
    xs, ys = zip(*(corner for part in outlines for corner in part), strict=True)
    return BoxObject(
        name=name,
        pose=at,
        length=max(xs) - min(xs),
        width=max(ys) - min(ys),
        returns=seen,
        color=shade,
        parts=outlines,
    )


def to_world(file: WorldFile, path: str | Path, options: Options = Options()) -> World:
    """Return the world that a parsed file describes.

    Parameters
    ----------
    file : WorldFile
        Result of `stageworld.read`.
    path : str or Path
        File that it comes from.
    options : Options
        Receiver of warnings about parts that cannot be simulated, and the known
        controllers.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the file, the line, the expected and the
        found value.
    """
    notes = Notes()
    try:
        world = _Reader(
            file, Path(path), ModelLibrary(file, notes=notes), options.is_program
        ).run()
    except BudgetError as error:
        raise _as_world_error(error) from None
    except ModelFileError as error:
        raise WorldFileError(error.reason, error.path, error.line) from None

    for text in notes.texts:
        options.warn(text)
    return world


def read(source: Source, options: Options = Options()) -> World:
    """Read a Stage world file and its includes; see `to_world`."""
    try:
        file = stageworld.parse(
            source.text, source.path or source.name, _allowed(source), options.budget
        )
    except BudgetError as error:
        raise _as_world_error(error) from None
    except ModelFileError as error:
        raise WorldFileError(error.reason, error.path, error.line) from None

    return to_world(file, source.path or source.name, options)


def _as_world_error(error: BudgetError) -> BudgetError:
    """Return an error as an error of the class for world files."""
    return WorldBudgetError(
        error.reason, error.path, error.line, limit=error.limit, found=error.found
    )


def _allowed(source: Source) -> Callable[[Path], bool]:
    """Return a function that says whether a world may refer to a file.

    An uploaded file may only refer to files of the same upload.
    """
    root = source.root
    if source.path is None:
        return lambda _path: False
    return (
        stageworld.any_file
        if root is None
        else lambda path: path.resolve().is_relative_to(root)
    )


__all__ = ["read", "to_world"]
