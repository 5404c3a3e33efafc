"""Builder of worlds, which the readers of other simulators' files use.

The builder collects walls, objects, robots, places and areas. It counts them against the budget
before they are made, and gives each object a unique name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from botyard.errors import WorldError, WorldFileError
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.importers.drives import STOPPING, Driven
from botyard.formats.importers.shapes import bounds
from botyard.formats.notes import Notes, Position
from botyard.formats.walls import Names, Walls
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.floor import Floor
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.model.scene import Area, GeoReference, Place, Scene
from botyard.model.sensors import LaserSpec
from botyard.model.tracing import closed, mask_to_segments, place_segments
from botyard.model.world import PlacedRobot, Program, Settings, World
from botyard.names import check_name

SOLID = Returns()


class Builder:
    """Builder of a world: it collects the parts that a reader finds in a file.

    Parameters
    ----------
    source : Source
        File.
    options : Options
        Limits, receiver of warnings, and known controllers.

    Attributes
    ----------
    source, options
        As above.
    meter : Meter
        Counts the parts of the world.
    notes : Notes
        Collects the parts of the file that are left out.
    view : tuple of four floats or None
        Initial view of pictures: min x, min y, max x, max y, m.
    georeference : GeoReference or None
        Position of the origin on Earth.
    floor : Floor or None
        Floor with its picture.
    """

    def __init__(self, source: Source, options: Options) -> None:
        self.source = source
        self.options = options
        self.meter = Meter(options.budget, source.name, WorldFileError)
        self.notes = Notes()
        self.view: tuple[float, float, float, float] | None = None
        self.georeference: GeoReference | None = None
        self.floor: Floor | None = None
        self._walls = Walls()
        self._names = Names()
        self._specs: dict[RobotSpec, RobotSpec] = {}
        self._boxes: list[BoxObject] = []
        self._robots: list[PlacedRobot] = []
        self._places: list[Place] = []
        self._areas: list[Area] = []

    def line(
        self, points: Sequence[tuple[float, float]], seen: Returns = SOLID
    ) -> None:
        """Add walls along a line from point to point, m."""
        self.meter.add("vertices", 2 * max(0, len(points) - 1))
        ends = np.asarray(points, np.float64).reshape(-1, 2)
        self._walls.add(np.concatenate([ends[:-1], ends[1:]], axis=1), seen)

    def solid(
        self, outlines: Iterable[Outline], at: Pose = Pose(), seen: Returns = SOLID
    ) -> None:
        """Add the outlines of a body that never moves, as walls at a pose."""
        for outline in outlines:
            self.meter.add("vertices", 2 * len(outline))
            self._walls.add(place_segments(closed(outline), at), seen)

    def grid(
        self,
        solid: NDArray[np.bool_],
        size: tuple[float, float],
        at: Pose = Pose(),
        seen: Returns = SOLID,
    ) -> None:
        """Add the outlines of the solid cells of a raster as walls.

        Parameters
        ----------
        solid : (rows, columns) bool
            Solid cells; row 0 is the lowest.
        size : tuple of float
            Length along the rows and width across them, m.
        at : Pose
            Lower left corner and direction of the rows.
        seen : Returns
            Visibility.
        """
        rows, columns = solid.shape
        edges = mask_to_segments(solid, lambda n: self.meter.add("vertices", 2 * n))
        length, width = size[0] / columns, size[1] / rows
        placed = place_segments(edges * (length, width, length, width), at)
        self._walls.trace(len(placed), (rows, columns), size, at)
        self._walls.add(placed, seen)

    def box(
        self,
        name: str,
        at: Pose,
        outlines: tuple[Outline, ...],
        *,
        color: str = "light green",
        seen: Returns = SOLID,
        dynamics: DynamicsSpec | None = None,
        where: Position,
    ) -> None:
        """Add a movable box or body of another shape.

        Raises
        ------
        WorldFileError
            The name is not valid.
        """
        self._count(outlines, where)
        x0, y0, x1, y1 = bounds(outlines)
        self._boxes.append(
            BoxObject(
                name=self.name(name, where),
                pose=at,
                length=x1 - x0,
                width=y1 - y0,
                returns=seen,
                color=color,
                parts=outlines,
                dynamics=dynamics,
            )
        )

    def robot(
        self,
        spec: RobotSpec,
        name: str,
        at: Pose,
        where: Position,
        program: Program | None = None,
        *,
        served: bool = True,
    ) -> None:
        """Add a robot, or a moving object to which no client can connect.

        Raises
        ------
        WorldFileError
            The name is not valid.
        """
        self._count((spec.outline, *spec.parts), where)
        # Let equal robots share one model object, so that its data are sent only once.
        spec = self._specs.setdefault(spec, spec)
        if program is not None and spec.kinematics.steers:
            program = self._for_car(program, where)
        if program is not None and not self.options.is_program(program.name):
            program = None
        self._robots.append(
            PlacedRobot(
                spec=spec,
                name=self.name(name, where),
                pose=at,
                program=program,
                served=served,
            )
        )

    def _for_car(self, program: Program, where: Position) -> Program:
        """Return a controller that drives cars in place of one that turns on the spot."""
        if program.name not in STOPPING:
            return program
        # Controllers with an area choose random goals in it.
        name = "walk" if "area" in program.options else STOPPING[program.name]
        self.notes.add(
            f"car {program.name}",
            where,
            f'the controller "{program.name}" turns robots on the spot; "{name}" drives '
            "this car-like robot",
        )
        options = {k: v for k, v in program.options.items() if k != "safety"}
        return replace(program, name=name, options=options)

    def place(
        self, name: str, at: Pose, *, kind: str = "Goal", has_heading: bool = False
    ) -> None:
        """Add a named place."""
        self.meter.add("entities", 1)
        self._places.append(
            Place(kind=kind, name=name, pose=at, has_heading=has_heading)
        )

    def area(self, kind: str, name: str, corners: Outline) -> None:
        """Add an area or a line on the floor."""
        self.meter.add("vertices", len(corners))
        self._areas.append(Area(kind=kind, name=name, corners=corners))

    def _count(self, outlines: Iterable[Outline], where: Position) -> None:
        self.meter.add("robots", 1, where.line)
        self.meter.add("vertices", sum(map(len, outlines)), where.line)

    def name(self, base: str, where: Position) -> str:
        """Return a unique and valid name for an object, derived from its name in the file."""
        name = self._names.unique(base)
        try:
            return check_name(name)
        except WorldError as error:
            raise WorldFileError(str(error), where.path, where.line) from None

    def world(self, settings: Settings, name: str = "") -> World:
        """Return the world, after the notes are sent as warnings."""
        for text in self.notes.texts:
            self.options.warn(text)
        scene = Scene(
            name=name or self.source.stem or "world",
            source=self.source.name,
            segments=self._walls.merged(),
            special_walls=tuple(self._walls.special),
            traced=tuple(self._walls.traced),
            boxes=tuple(self._boxes),
            places=tuple(self._places),
            areas=tuple(self._areas),
            start=self._robots[0].pose if self._robots else None,
            view=self.view,
            georeference=self.georeference,
            floor=self.floor,
        )
        return World(scene=scene, robots=tuple(self._robots), settings=settings)


def robot_spec(
    name: str,
    outlines: tuple[Outline, ...],
    driven: Driven,
    *,
    color: str = "red",
    lasers: tuple[LaserSpec, ...] = (),
    seen: Returns = SOLID,
) -> RobotSpec:
    """Return the model of an imported robot, with ideal odometry and without further sensors.

    Parameters
    ----------
    name : str
        Name of the model.
    outlines : tuple of outlines
        Body around its centre of rotation, m.
    driven : Driven
        Drive and its speeds.
    color : str
        Colour.
    lasers : tuple of LaserSpec
        Lasers.
    seen : Returns
        Visibility.

    Raises
    ------
    ModelError
        A value is invalid.
    """
    body, *parts = outlines
    known: dict[str, Any] = {}
    if driven.wheel_radius is not None:
        known["wheel_radius"] = driven.wheel_radius
    return RobotSpec(
        name=name,
        color=color,
        drive=driven.kind,
        outline=body,
        parts=tuple(parts),
        limits=driven.limits,
        lasers=lasers,
        track=driven.track,
        steering=driven.steering,
        wheels=driven.wheels,
        returns=seen,
        pioneer=PioneerSpec(subclass=name),
        **known,
    )


__all__ = ["SOLID", "Builder", "robot_spec"]
