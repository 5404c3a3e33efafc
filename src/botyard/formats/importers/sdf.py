"""Worlds of SDF, the format of Gazebo: what a horizontal plane cuts.

A static model gives walls: the cut of its collision shapes at the height `CUT`. Another
model is an object with a mass, or a robot if a plugin drives it. The body of a robot is
the outline of its collision shapes as seen from above. `sdfkeys` has all elements.

Source: the SDFormat specification 1.9 (http://sdformat.org/spec).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from botyard.errors import BudgetError, MapError, WorldFileError
from botyard.formats.base import Options, Source, read_bytes
from botyard.formats.importers.axles import axle, spread, with_wheelbase
from botyard.formats.importers.builder import Builder, robot_spec
from botyard.formats.importers.drives import with_four_wheels
from botyard.formats.importers.sdfbodies import Bodies, Parts, frame_of
from botyard.formats.importers.sdfkeys import KEYS
from botyard.formats.importers.sdfrobots import PluginDrive, drive_of
from botyard.formats.importers.solids import Frame
from botyard.formats.importers.values import blamed_on
from botyard.formats.importers.xmlfile import Element, read_xml, root_tag
from botyard.geometry import compose, inverse
from botyard.model.dynamics import DynamicsSpec
from botyard.model.scene import GeoReference
from botyard.model.world import Settings, World
from botyard.names import shown

CUT: Final = 0.2
"""Height of the plane, m: lidars of small robots look at about this height."""
FLOOR: Final = frozenset({"model://ground_plane", "model://sun"})
"""Stock models of Gazebo that have no walls or objects."""
FOLDERS: Final = ("GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
"""Environment variables of Gazebo that name folders of models."""


def fits(source: Source) -> bool:
    """Return whether a file is SDF, by its first element."""
    return root_tag(source).startswith((b"<sdf", b"<gazebo"))


def read(source: Source, options: Options = Options()) -> World:
    """Read a world, or a model alone.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the line, the expected and the found value.
    """
    builder = Builder(source, options)
    return _Reader(builder).run(read_xml(source, builder.meter))


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._notes = builder.notes
        self._bodies = Bodies(builder.meter, builder.notes, CUT)
        # Chain of included files, from the world to the file that is being read.
        self._open: list[Source] = [builder.source]
        self._files: dict[Path, Element] = {}

    def run(self, root: Element) -> World:
        if root.tag not in ("sdf", "gazebo"):
            raise root.fail("the element sdf", root.tag)
        KEYS.check("sdf", root.keys(), self._notes)
        worlds = list(root.named("world"))
        if len(worlds) > 1:
            self._notes.add("worlds", worlds[1], "worlds after the first are left out")
        if not worlds:
            models = list(root.named("model"))
            if not models:
                raise root.fail("a world or a model")
            for model in models:
                self._model(model, Frame(), [])
            return self._builder.world(Settings(), models[0].attributes.get("name", ""))

        (world, *_) = worlds
        KEYS.check("world", world.keys(), self._notes)
        for child in world.children:
            if child.tag == "model":
                self._model(child, Frame(), [world])
            elif child.tag == "include":
                self._include(child, Frame(), [world])

        name = world.attributes.get("name", "")
        made = self._builder.world(self._settings(world), name)
        return made

    def _settings(self, world: Element) -> Settings:
        earth = world.child("spherical_coordinates")
        if earth is not None:
            KEYS.check("spherical_coordinates", earth.keys(), self._notes)

            def degrees(name: str, most: float) -> float:
                value = earth.given(name)
                return 0.0 if value is None else value.number(-most, most)

            self._builder.georeference = GeoReference(
                degrees("latitude_deg", 90.0),
                degrees("longitude_deg", 360.0),
                degrees("elevation", 1e5),
            )

        physics = world.child("physics")
        if physics is None:
            return Settings()
        KEYS.check("physics", physics.keys(), self._notes)
        step, speed = (
            physics.given(name) for name in ("max_step_size", "real_time_factor")
        )
        return Settings(
            step=None if step is None else step.number(1e-6, 60.0),
            speed=None if speed is None else max(0.0, speed.number(-1.0, 1000.0)),
        )

    # -- models

    def _include(
        self,
        element: Element,
        parent: Frame,
        around: list[Element],
        *,
        fixed: bool = False,
    ) -> None:
        KEYS.check("include", element.keys(), self._notes)
        uri = element.given("uri")
        if uri is None:
            raise element.fail("a uri")
        name = uri.text()
        if name in FLOOR:
            return
        self._builder.meter.add("files", 1, element.line)
        self._builder.meter.check("nesting", len(self._open), element.line)
        found = self._file(name)
        if found is None:
            self._notes.add(
                f"include {name}",
                element,
                f'the model "{shown(name)}" is left out: it is neither next to this file nor '
                f"in a folder of {' or '.join(FOLDERS)}",
            )
            return

        path, root = found
        if any(path == source.path for source in self._open):
            raise element.fail("no file that includes itself", f'"{shown(name, 60)}"')
        self._open.append(Source(str(path), b"", path, self._builder.source.root))
        try:
            for model in root.named("model"):
                frame = (
                    frame_of(element, around, self._notes)
                    if element.child("pose") is not None
                    else frame_of(model, [], self._notes)
                )
                self._model(model, parent, around, at=frame, over=element, fixed=fixed)
        finally:
            self._open.pop()

    def _file(self, uri: str) -> tuple[Path, Element] | None:
        """Return the path and the root element of an included file; None: it is not found."""
        source = self._open[-1]
        if source.path is None:
            return None
        name = uri.partition("://")[2] if "://" in uri else uri
        for path in self._candidates(source, name):
            if not path.is_file():
                path = path / "model.sdf"
            if not path.is_file():
                continue
            path = path.resolve()
            if source.root is not None and not path.is_relative_to(source.root):
                continue
            if path not in self._files:
                try:
                    data = read_bytes(path, self._builder.meter)
                except BudgetError:
                    raise
                except MapError as error:
                    raise WorldFileError(error.reason, error.path) from None
                self._files[path] = read_xml(
                    Source(str(path), data), self._builder.meter
                )
            # A file counts for each use, because its models are made again.
            self._builder.meter.add("references", 1)
            return path, self._files[path]
        return None

    def _candidates(self, source: Source, name: str) -> Iterator[Path]:
        assert source.path is not None
        # The name comes from an untrusted file; a null character in a path would raise
        # an error of Python.
        if "\0" in name or not name:
            return
        for folder in (source.path.parent, source.path.parent.parent):
            yield folder / name
            yield folder / "models" / name
        if source.root is None:
            for variable in FOLDERS:
                for text in filter(None, os.environ.get(variable, "").split(":")):
                    yield Path(text) / name

    def _model(
        self,
        model: Element,
        parent: Frame,
        around: list[Element],
        *,
        at: Frame | None = None,
        over: Element | None = None,
        fixed: bool = False,
    ) -> None:
        """Add a model and the models in it.

        Parameters
        ----------
        model : Element
            Model.
        parent : Frame
            Pose of the world or model around it.
        around : list of Element
            Elements in which `relative_to` looks for a frame.
        at : Frame, optional
            Pose in `parent`, for a model of another file.
        over : Element, optional
            Element `include`, whose values have precedence.
        fixed : bool
            Whether a static model is around it.
        """
        self._builder.meter.add("references", 1, model.line)
        KEYS.check("model", model.keys(), self._notes)
        frame = parent.compose(
            frame_of(model, around, self._notes) if at is None else at
        )
        static = model.given("static")
        if over is not None and over.given("static") is not None:
            static = over.given("static")
        fixed = fixed or (static is not None and static.flag())
        name = _name(model if over is None or over.given("name") is None else over)
        inner = [model, *around]
        parts = Parts()
        for link in model.named("link"):
            self._bodies.link(link, frame, inner, parts, model)

        plugins = [*model.named("plugin"), *(over.named("plugin") if over else ())]
        drive = None if fixed else drive_of(plugins, self._notes)
        if drive is not None:
            self._robot(model, name, frame, parts, drive)
        elif fixed or not parts.mass:
            self._builder.solid(parts.cuts)
            for line in parts.lines:
                self._builder.line(line)
            self._note_sensors(parts, model)
        elif parts.cuts:
            self._note_sensors(parts, model)
            with blamed_on(model.value()):
                mass = DynamicsSpec(mass=parts.mass, floor_friction=0.5)
            self._builder.box(
                name,
                frame.plane,
                parts.in_frame(frame.plane),
                dynamics=mass,
                where=model,
            )

        for child in model.children:
            if child.tag == "model":
                self._model(child, frame, inner, fixed=fixed)
            elif child.tag == "include":
                self._include(child, frame, inner, fixed=fixed)

    def _robot(
        self, model: Element, name: str, frame: Frame, parts: Parts, drive: PluginDrive
    ) -> None:
        """Add a robot, whose origin is the middle of its axle."""
        if not parts.solids:
            raise model.fail("a collision shape of a robot")
        driven = drive.driven
        places = self._wheels(model)
        driven = with_four_wheels(driven, *spread(drive.joints, places))
        origin, base = axle(driven, drive.joints, places)
        if base is not None and not {"wheel_base", "wheelbase"} & drive.given:
            driven = with_wheelbase(driven, base)
        # The body moves in the plane, so its origin is at the height of the model.
        at = frame.compose(Frame((origin.x, origin.y, 0.0)))
        back = inverse(origin)
        with blamed_on(model.value()):
            spec = robot_spec(
                "sdf_robot",
                parts.shadows(at),
                driven,
                color="light slate gray",
                lasers=tuple(
                    replace(laser, pose=compose(back, laser.pose))
                    for laser in parts.lasers
                ),
            )
        self._builder.robot(spec, name, at.plane, model)

    def _wheels(self, model: Element) -> dict[str, tuple[float, float]]:
        """Return the place of the child link of each joint, m, in the model's frame."""
        places = {
            link.attributes.get("name", ""): frame_of(link, [model], self._notes).at
            for link in model.named("link")
        }
        children = {
            joint.attributes.get("name", ""): joint.given("child")
            for joint in model.named("joint")
        }
        return {
            name: places[child.text()][:2]
            for name, child in children.items()
            if child is not None and child.data in places
        }

    def _note_sensors(self, parts: Parts, model: Element) -> None:
        if parts.lasers:
            self._notes.add(
                "free sensor", model, "a sensor that no robot carries is not simulated"
            )


def _name(element: Element) -> str:
    value = element.given("name")
    return value.text() if value is not None and value.data else "model"


__all__ = ["CUT", "fits", "read"]
