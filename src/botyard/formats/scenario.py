"""Reader of botyard's own scenario files (YAML).

A scenario has a map, robots, obstacles (fixed, movable, moving), and settings of the
simulation. Units are metres, seconds and, because people write the files, degrees.
``botyard scenario schema`` publishes the schema; the reference is
``docs/reference/scenario.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from botyard.errors import (
    BotyardError,
    BudgetError,
    CommandLineError,
    FormatError,
    ModelError,
    WorldError,
    WorldFileError,
)
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.floorkeys import read_floor
from botyard.formats.models import find_robot, is_robot_file
from botyard.formats.scenariokeys import (
    _SCENARIO,
    FLOOR_FRICTION,
    VERSION,
    ObstacleKeys,
    PlaceKeys,
    RobotKeys,
    ScenarioFile,
    ScenarioKeys,
    WallKeys,
)
from botyard.formats.scenarioplaces import places_in, row_from
from botyard.formats.worldoptions import as_mapping, refusal
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.filetables import Pair, file_table, pose_of
from botyard.model.floor import Floor
from botyard.model.library import load_laser, robot_of
from botyard.model.obstacles import BoxObject, Returns, disc, rectangle
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import (
    DynamicsTable,
    LaserMount,
    ReturnsTable,
    mounted_laser,
)
from botyard.model.scene import Area, GeoReference, Place, Scene, SpecialWalls
from botyard.model.tablecheck import TableError
from botyard.model.tracing import closed, place_segments
from botyard.model.world import (
    MAX_PATH_POINTS,
    MAX_PATHS,
    PlacedRobot,
    Program,
    SectorPaths,
    Settings,
    World,
    thing,
)
from botyard.names import MAX_NAME, check_name, is_name, shown
from botyard.processes.codeload import is_code

OpenMap = Callable[[Source, str, Options], Scene]


class _Reader:
    """Builder of a world from the checked contents of a scenario file."""

    def __init__(self, source: Source, options: Options, open_map: OpenMap) -> None:
        self._source = source
        self._options = options
        self._open_map = open_map
        self._meter = Meter(options.budget, source.name, WorldFileError)
        self._yaml = YamlFile(source.text, self._meter, WorldFileError)
        if not isinstance(self._yaml.data, dict) or "botyard" not in self._yaml.data:
            raise WorldFileError(
                f"expected a scenario, with botyard: {VERSION}, found none",
                source.name,
                1,
            )

        # The options are checked first: their error names the allowed way to set them.
        self._check_options(self._yaml.data.get("options"))
        self._file: ScenarioKeys = self._yaml.convert(ScenarioFile)
        self._walls: list[tuple[NDArray[np.float64], Returns]] = []
        self._objects: list[BoxObject] = []
        self._robots: list[PlacedRobot] = []
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._models: dict[str, RobotSpec] = {}

    def _fail(self, where: str, reason: str, key: str = "") -> FormatError:
        return self._yaml.fail(f"$.{where}", reason, key)

    def _check_options(self, options: object) -> None:
        """Raise an error for options that a scenario may not set, and for invalid names."""
        if not isinstance(options, dict):
            # The conversion to `ScenarioFile` reports a value of the wrong type.
            return

        for name, value in options.items():
            reason = refusal(str(name))
            if reason is not None:
                raise self._yaml.fail(
                    "$.options", f"{shown(name)}: {reason}", str(name)
                )

            if (
                name in ("controller", "robot-name", "ambf-namespace")
                and isinstance(value, str)
                and not is_name(value)
            ):
                raise self._fail(
                    f"options.{name}",
                    f"expected 1 to {MAX_NAME} printable characters, "
                    f'found "{shown(value)}"',
                )

    def _located(self, where: str, error: BotyardError) -> FormatError:
        """Return an error of another module as an error with a position in this file.

        A `BudgetError` stays unchanged.
        """
        # The inner table does not know its position in this file.
        if isinstance(error, TableError):
            inside = error.inside(where)
            return self._fail(inside.where, inside.reason, inside.key)

        return (
            error if isinstance(error, BudgetError) else self._fail(where, str(error))
        )

    def run(self) -> World:
        file = self._file
        if file.botyard != VERSION:
            raise self._fail(
                "botyard",
                f"expected version {VERSION} of the format, found {file.botyard}",
            )

        settings = self._settings()
        base = self._map()
        for i, wall in enumerate(file.walls):
            self._wall(i, wall)
        for i, obstacle in enumerate(file.obstacles):
            self._obstacle(i, obstacle)
        for i, robot in enumerate(file.robots):
            self._robot(i, robot)
        scene = self._scene(base)
        return World(
            scene=scene,
            robots=tuple(self._robots),
            settings=settings,
            options=as_mapping(file.options),
            traffic=self._traffic(),
        )

    def _traffic(self) -> SectorPaths | None:
        keys = self._file.traffic
        if keys is None:
            return None
        if not 0 < len(keys.paths) <= MAX_PATHS:
            raise self._fail(
                "traffic.paths",
                f"expected 1 to {MAX_PATHS} paths, found {len(keys.paths)}",
            )
        if not 0.01 <= keys.speed <= 10.0:
            raise self._fail(
                "traffic.speed", f"expected 0.01 to 10 m/s, found {keys.speed:g}"
            )
        robots = {robot.name for robot in self._robots}
        for name, points in keys.paths.items():
            if name not in robots:
                raise self._fail(
                    "traffic.paths",
                    f'expected the name of a robot of this file, found "{shown(name)}"',
                    name,
                )
            if not 0 < len(points) <= MAX_PATH_POINTS:
                raise self._fail(
                    f"traffic.paths.{name}",
                    f"expected 1 to {MAX_PATH_POINTS} points, found {len(points)}",
                )
        return SectorPaths(
            paths=tuple((name, tuple(p)) for name, p in keys.paths.items()),
            supervisor=keys.supervisor,
            speed=keys.speed,
        )

    def _settings(self) -> Settings:
        resolution = self._file.resolution
        if resolution is not None and not 1e-6 <= resolution <= 1e4:
            raise self._fail(
                "resolution",
                f"expected a number from 1e-06 to 10000 m, found {resolution:g} m",
            )

        try:
            return _SCENARIO.read(self._file)
        except TableError as error:
            raise self._fail(error.where, error.reason) from None

    # -- map, walls, obstacles

    def _map(self) -> Scene:
        name, resolution = self._file.map, self._options.resolution
        if resolution is None:
            resolution = self._file.resolution
        # A scenario without a map is an empty world, in which only the resolution
        # matters.
        if name is None:
            return Scene() if resolution is None else Scene(resolution=resolution)
        try:
            return self._open_map(
                self._source, name, replace(self._options, resolution=resolution)
            )
        except FormatError as error:
            raise self._located("map", error) from None

    def _wall(self, i: int, wall: list[Pair] | WallKeys) -> None:
        one = wall if isinstance(wall, WallKeys) else WallKeys(line=wall)
        points = np.array(one.line, np.float64).reshape(-1, 2)
        if len(points) < 2 and not (one.segments and not one.line):
            raise self._fail(
                f"walls[{i}]",
                "expected a line of at least 2 points, or segments, "
                f"found {len(points)} points",
            )

        segments = np.concatenate([points[:-1], points[1:]], axis=1)
        if one.closed and len(points) > 2:
            segments = closed(tuple(one.line))
        segments = np.concatenate(
            [segments, np.array(one.segments, np.float64).reshape(-1, 4)]
        )
        self._walls.append((segments, self._returns(f"walls[{i}]", one.returns)))

    def _returns(self, where: str, part: ReturnsTable | UnsetType) -> Returns:
        try:
            return Returns() if part is UNSET else file_table(Returns).read(part)
        except ModelError as error:
            raise self._located(f"{where}.returns", error) from None

    def _outlines(self, i: int, o: ObstacleKeys) -> tuple[Outline, ...]:
        where = f"obstacles[{i}]"
        given = [
            k for k in ("box", "disc", "polygon", "parts") if getattr(o, k) is not None
        ]
        if len(given) > 1:
            raise self._fail(
                where,
                "expected one of box, disc, polygon and parts, "
                f"found {' and '.join(given)}",
            )

        if o.disc is not None:
            if not 0.0 < o.disc <= 1e4:
                raise self._fail(
                    f"{where}.disc",
                    f"expected a radius above 0, up to 10000 m, found {o.disc:g}",
                )

            return (disc(o.disc),)

        shapes = [o.polygon] if o.polygon is not None else o.parts
        if shapes is None:
            length, width = o.box or (0.5, 0.5)
            if not (0.0 < length <= 1e4 and 0.0 < width <= 1e4):
                raise self._fail(
                    f"{where}.box",
                    "expected [length, width] above 0, up to 10000 m, found "
                    f"[{length:g}, {width:g}]",
                )

            return (rectangle(length, width),)

        for shape in shapes:
            if len(shape) < 3:
                raise self._fail(
                    where,
                    f"expected polygons of at least 3 corners, found {len(shape)}",
                )

            if len(set(shape)) < 3:
                raise self._fail(
                    where,
                    "expected polygons of at least 3 different corners, "
                    f"found {len(set(shape))}",
                )

        if not shapes:
            raise self._fail(
                f"{where}.parts", "expected at least one polygon, found none"
            )

        return tuple(tuple(shape) for shape in shapes)

    def _name(self, where: str, wanted: str, base: str, is_robot: bool = True) -> str:
        """Return a unique name: the requested one, or a name derived from `base`.

        The name of a robot must be valid. A requested name must be free.
        """
        if is_robot:
            try:
                check_name(wanted or base)
            except WorldError as error:
                raise self._fail(f"{where}.name", str(error)) from None

        if wanted in self._names:
            raise self._fail(
                where, f'expected an unused name, found "{shown(wanted)}" a second time'
            )
        name, n = wanted or base, self._numbers.get(base, 2)
        while name in self._names:
            name, n = f"{base}_{n:03d}", n + 1
        # All lower numbers are already in use for this name.
        self._numbers[base] = n
        self._names.add(name)
        return name

    def _obstacle(self, i: int, o: ObstacleKeys) -> None:
        outlines, where = self._outlines(i, o), f"obstacles[{i}]"
        seen, place = self._returns(where, o.returns), pose_of(o.pose)
        if o.fixed:
            for key, what in (("controller", "a controller"), ("dynamics", "a mass")):
                if getattr(o, key) is not None:
                    raise self._fail(where, f"a fixed obstacle cannot have {what}")

            for outline in outlines:
                self._walls.append((place_segments(closed(outline), place), seen))
            return

        name = self._name(where, o.name, "obstacle", is_robot=o.controller is not None)
        mass = self._dynamics(where, o.dynamics, FLOOR_FRICTION)
        if o.controller is not None:
            spec = self._spec(
                where,
                lambda: thing(
                    outlines[0],
                    parts=outlines[1:],
                    color=o.color,
                    returns=seen,
                    max_speed=o.max_speed,
                ),
            )
            program = self._program(f"{where}.controller", o.controller)
            self._meter.add("robots", 1)
            spec = replace(spec, dynamics=mass)
            self._robots.append(
                PlacedRobot(
                    spec=spec, name=name, pose=place, program=program, served=False
                )
            )
            return

        # A rectangle needs no polygons: its length and width describe it.
        is_box = o.disc is None and o.polygon is None and o.parts is None
        xs, ys = zip(*(c for part in outlines for c in part), strict=True)
        self._objects.append(
            BoxObject(
                name=name,
                pose=place,
                length=max(xs) - min(xs),
                width=max(ys) - min(ys),
                returns=seen,
                color=o.color,
                parts=() if is_box else outlines,
                dynamics=mass,
            )
        )

    def _dynamics(
        self, where: str, part: DynamicsTable | None, friction: float = 0.0
    ) -> DynamicsSpec | None:
        try:
            return (
                None
                if part is None
                else file_table(DynamicsSpec).read(part, floor_friction=friction)
            )
        except ModelError as error:
            raise self._located(f"{where}.dynamics", error) from None

    # -- robots

    def _spec(self, where: str, make: Any) -> RobotSpec:
        try:
            spec: RobotSpec = make()
        except (ModelError, FormatError) as error:
            raise self._located(where, error) from None

        return spec

    def _robot(self, i: int, r: RobotKeys) -> None:
        where = f"robots[{i}]"
        if r.count < 1:
            raise self._fail(f"{where}.count", f"expected 1 or more, found {r.count}")
        # Count the robots before they are created: a few characters can request
        # millions.
        self._meter.add("robots", r.count, self._yaml.line_of(f"$.{where}", "count"))
        spec = self._model(f"{where}.model", r.model, r.name)
        if r.color:
            spec = replace(spec, color=r.color)
        if r.fiducial is not None:
            spec = replace(spec, returns=replace(spec.returns, fiducial=r.fiducial))
        if r.dynamics is not None:
            spec = replace(spec, dynamics=self._dynamics(where, r.dynamics))
        if r.lasers is not None:
            mounts = r.lasers
            base = spec
            spec = self._spec(
                f"{where}.lasers",
                lambda: replace(base, lasers=tuple(_laser(m, base) for m in mounts)),
            )

        program = (
            None
            if r.controller is None
            else self._program(f"{where}.controller", r.controller)
        )
        poses = self._poses(where, r)
        for k in range(r.count):
            name = self._name(
                where, r.name if r.count == 1 else "", r.name or spec.name
            )
            self._robots.append(
                PlacedRobot(
                    spec=spec,
                    name=name,
                    pose=None if poses is None else poses[k],
                    program=program,
                    served=r.served,
                )
            )

    def _poses(self, where: str, r: RobotKeys) -> list[Pose] | None:
        if r.area is None:
            return None if r.pose is None else row_from(pose_of(r.pose), r.count)
        x0, y0, x1, y1 = r.area
        if r.pose is not None or not (x0 < x1 and y0 < y1):
            reason = (
                "expected either area or pose, found both"
                if r.pose is not None
                else "expected [x0, y0, x1, y1] with x0 < x1 and y0 < y1, "
                f"found {list(r.area)}"
            )
            raise self._fail(f"{where}.area", reason)
        return places_in(r.area, r.count)

    def _model(self, where: str, model: str | dict[str, Any], name: str) -> RobotSpec:
        # Models of the file take precedence over models of the user and the library.
        if isinstance(model, str) and model in self._file.models:
            # A model that many robots share is built once.
            if model not in self._models:
                table = self._file.models[model]
                self._models[model] = self._spec(
                    f"models.{model}", lambda: robot_of(table, model)
                )

            return self._models[model]

        if isinstance(model, str) and is_robot_file(model):
            self._meter.add("files", 1, self._yaml.line_of(f"$.{where}"))
            return self._spec(
                where,
                lambda: find_robot(
                    self._source.sibling_file(model, "the model"), self._options.budget
                ),
            )

        if isinstance(model, str):
            return self._spec(where, lambda: find_robot(model))
        # The name of the table is a key of this file, and not of robot files.
        table = dict(model)
        return self._spec(
            where,
            lambda: robot_of(table, str(table.pop("name", "") or name or "robot")),
        )

    def _program(self, where: str, controller: str | dict[str, Any]) -> Program:
        options = {} if isinstance(controller, str) else dict(controller)
        name = controller if isinstance(controller, str) else options.pop("name", None)
        if not isinstance(name, str):
            raise self._fail(
                where,
                "expected the name of a controller, or name: … and its options, found neither",
            )

        try:
            is_known = self._options.is_program(name)
        except CommandLineError as error:
            # The name refers to code that the user allowed, but that cannot be loaded.
            raise self._fail(where, str(error)) from error

        if not is_known:
            if is_code(name):
                raise self._fail(
                    where,
                    f'"{shown(name)}" is code, which is run only with --allow-code '
                    "(in Python, allow_code=True)",
                )

            raise self._fail(where, f'there is no controller "{name}"')

        return Program(name=name, options=options)

    # -- the whole scene

    def _scene(self, base: Scene) -> Scene:
        f = self._file
        segments, special = [base.segments], list(base.special_walls)
        count = len(base.segments)
        for lines, seen in self._walls:
            first, count = count, count + len(lines)
            segments.append(lines)
            if seen != Returns():
                special.append(SpecialWalls(first=first, last=count, returns=seen))

        for i, place in enumerate(f.places):
            if len(place.pose) not in (2, 3):
                raise self._fail(
                    f"places[{i}].pose",
                    "expected [x, y] or [x, y, degrees], "
                    f"found {len(place.pose)} numbers",
                )

        places = tuple(map(_place, f.places))
        for i, area in enumerate(f.areas):
            if len(area.corners) < 2:
                raise self._fail(
                    f"areas[{i}].corners",
                    f"expected at least 2 points, found {len(area.corners)}",
                )

        areas = tuple(
            Area(kind=a.kind, name=a.name, corners=tuple(a.corners)) for a in f.areas
        )
        # An explicit home of null means that robots have no home, even if the map has
        # one.
        home = home_of(places, base.start)
        return replace(
            base,
            name=f.name
            if f.name is not None
            else base.name
            if f.map is not None
            else self._source.stem,
            source=self._source.name,
            # The map's file is kept, so that saving the world can refer to it.
            map_file=base.map_file or base.source,
            segments=np.concatenate(segments),
            special_walls=tuple(special),
            boxes=(*(base.boxes if f.map_objects else ()), *self._objects),
            places=(*base.places, *places),
            areas=(*base.areas, *areas),
            start=home
            if f.home is UNSET
            else None
            if f.home is None
            else pose_of(f.home),
            georeference=base.georeference
            if f.georeference is UNSET
            else None
            if f.georeference is None
            else GeoReference(*f.georeference),
            view=base.view if f.view is UNSET else f.view,
            floor=base.floor if f.floor is None else self._floor(),
        )

    def _floor(self) -> Floor | None:
        def fail(where: str, error: str | BotyardError) -> FormatError:
            if isinstance(error, BotyardError):
                return self._located(where, error)
            return self._fail(where, error)

        keys = self._file.floor
        return (
            None
            if keys is None
            else read_floor(keys, self._source, self._options, self._meter, fail)
        )


def home_of(places: Iterable[Place], otherwise: Pose | None) -> Pose | None:
    """Return the start pose for a scenario without a `home` key.

    The pose is the first home or dock among a scenario's own places, or `otherwise`
    (the map's).
    """
    return next(
        (p.pose for p in places if p.kind.lower() in ("robothome", "dock")), otherwise
    )


def _place(p: PlaceKeys) -> Place:
    x, y, *heading = p.pose
    pose = pose_of((x, y, heading[0] if heading else 0.0))
    return Place(
        kind=p.kind,
        name=p.name,
        pose=pose,
        has_heading=bool(heading) if p.heading is None else p.heading,
    )


def _laser(mount: str | LaserMount, spec: RobotSpec) -> Any:
    """Return the laser that a scenario entry describes: a library name or a `LaserMount`.

    A laser given by name is mounted like the model's first laser.
    """
    if isinstance(mount, str):
        return load_laser(mount, pose=spec.lasers[0].pose if spec.lasers else Pose())
    return mounted_laser(mount, load_laser)


def read(source: Source, options: Options, open_map: OpenMap) -> World:
    """Read a scenario and the map that it names.

    Parameters
    ----------
    source : Source
        Scenario file.
    options : Options
        Limits, and receiver of warnings.
    open_map : callable
        Returns the scene of the map that a file names.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the line, the expected and the found value.
    """
    return _Reader(source, options, open_map).run()


__all__ = ["home_of", "read"]
