"""Robot models of URDF, ROS's robot description format.

The drive follows from plugins of Gazebo, controllers of ros2_control, or the joints. The
body is the part of the collision shapes between the floor and the plane of the highest
lidar, as seen from above. Lasers follow from the sensors of Gazebo. `urdfkeys` has all
elements. Notes with file and line name the parts that a model in the plane cannot hold.

Source: the URDF specification (http://wiki.ros.org/urdf/XML).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from botyard.errors import BudgetError, ModelFileError, WorldFileError
from botyard.formats.base import Source, read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.formats.importers import solids
from botyard.formats.importers.builder import robot_spec
from botyard.formats.importers.controlfile import ControlDrive, read_controllers
from botyard.formats.importers.drives import Driven
from botyard.formats.importers.sdfbodies import Bodies, Parts
from botyard.formats.importers.sdfrobots import drive_of
from botyard.formats.importers.shapes import moved
from botyard.formats.importers.solids import Frame
from botyard.formats.importers.stl import read_stl
from botyard.formats.importers.urdfdrives import (
    by_controller,
    by_joints,
    by_plugin,
    find_wheels,
)
from botyard.formats.importers.urdfkeys import KEYS
from botyard.formats.importers.urdftree import Tree, origin_of, read_tree
from botyard.formats.importers.values import blamed_on
from botyard.formats.importers.xmlfile import Element, read_xml
from botyard.formats.notes import Notes
from botyard.formats.urdf import to_urdf
from botyard.geometry import Outline, Pose, compose, inverse
from botyard.model.library import parse_toml, robot_of
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.robottext import merged, tables_equal
from botyard.names import is_name, shown
from botyard.units import deg

FOOTPRINT: Final = "base_footprint"
"""Link on the floor below the robot (REP-120)."""
LIDAR_WORDS: Final = ("laser", "lidar", "scan")
MAX_PARTS: Final = 500
"""Largest number of collision shapes of a robot."""
XACRO: Final = b"http://www.ros.org/wiki/xacro"
DECIMALS: Final = 6
"""Number of decimals of corners, m, so that people can read the robot file."""
LEVEL: Final = 1e-6
"""Tolerance of heights, m."""


class Imported(NamedTuple):
    """Robot model that a URDF file describes.

    Attributes
    ----------
    spec : RobotSpec
        Model.
    remarks : tuple of str
        Parts of the file that a model in the plane cannot hold, with file and line.
    """

    spec: RobotSpec
    remarks: tuple[str, ...]


def read_urdf(
    path: str | Path,
    budget: Budget = Budget(),
    *,
    data: bytes | None = None,
    controllers: str | Path | None = None,
    height: float | None = None,
) -> Imported:
    """Return the robot model of a URDF file.

    Parameters
    ----------
    path : str or Path
        File.
    budget : Budget, optional
        Limits for reading.
    data : bytes, optional
        Contents of the file, for example after the expansion of its macros.
    controllers : str or Path, optional
        YAML file with the parameters of ros2_control's controllers.
    height : float, optional
        Height above the floor up to which shapes belong to the body, m; default: the
        plane of the highest lidar, or everything without a lidar.

    Raises
    ------
    ModelFileError
        A file cannot be read, is too large, or is invalid. The error names the file,
        the line, the expected and the found value.
    """
    meter = Meter(budget, str(path), ModelFileError)
    try:
        control = None
        notes = Notes()
        if data is None:
            data = read_bytes(path, meter, ModelFileError)
        else:
            meter.check("bytes", len(data))
        if XACRO in data[:65536] and b"xacro:" in data:
            raise ModelFileError(
                "expected a URDF file without macros; for xacro files use: botyard "
                "models import FILE.xacro",
                path,
            )
        if controllers is not None:
            text = read_bytes(controllers, meter, ModelFileError)
            control = read_controllers(Source(str(controllers), text), meter, notes)
            if control is None:
                raise ModelFileError(
                    "expected a drive of ros2_controllers, such as "
                    "diff_drive_controller/DiffDriveController, found none",
                    controllers,
                )
        root = read_xml(Source(str(path), data), meter)
        return _Reader(meter, notes, control, height).run(root)
    except (BudgetError, ModelFileError):
        raise
    except WorldFileError as error:
        # The readers of SDF elements also read worlds, so they raise errors of worlds.
        raise ModelFileError(error.reason, error.path, error.line) from None


class _Reader:
    def __init__(
        self,
        meter: Meter,
        notes: Notes,
        control: ControlDrive | None,
        height: float | None,
        *,
        is_whole: bool = True,
    ) -> None:
        self._is_whole = is_whole
        self._meter = meter
        self._notes = notes
        self._control = control
        self._height = height
        self._meshes: dict[Path, solids.Polyhedron] = {}

    def run(self, robot: Element) -> Imported:
        if robot.tag != "robot":
            raise robot.fail("the element robot", robot.tag)
        KEYS.check("robot", robot.keys(), self._notes)
        name = robot.attributes.get("name", "") or "robot"
        if not is_name(name):
            raise robot.fail("a name of 1 to 64 printable characters", shown(name))
        tree = read_tree(robot, self._notes)
        parts = Parts()
        bodies = Bodies(self._meter, self._notes, 0.0)
        for link, element in tree.links.items():
            tree.solids[link] = self._solids(bodies, element, tree.frames[link])
        floor = self._floor(tree)
        heights = self._lasers(bodies, robot, tree, parts, floor)
        driven, origin = self._drive(robot, tree, floor)
        top = self._height if self._height is not None else max(heights, default=None)
        high = math.inf if top is None else floor + top + LEVEL
        outlines = self._body(tree, floor, high)
        if not outlines:
            raise robot.fail(
                "a collision shape near the floor: a box, a cylinder or a sphere"
            )
        if origin != Pose():
            self._notes.add(
                "origin",
                robot,
                f"the origin is the middle of the axle, at ({origin.x:.4g}, "
                f"{origin.y:.4g}) m in the frame of {tree.root}",
            )
        back = inverse(origin)
        with blamed_on(robot.value()):
            spec = robot_spec(
                name,
                tuple(moved(outline, back) for outline in outlines),
                driven,
                color="light slate gray",
                lasers=tuple(
                    replace(laser, pose=compose(back, laser.pose))
                    for laser in parts.lasers
                ),
            )
            spec = replace(spec, description=f"robot of {Path(robot.path).name}")
        if self._is_whole:
            spec = self._completed(robot, name, spec)
        return Imported(spec, tuple(self._notes.texts))

    def _completed(self, robot: Element, name: str, spec: RobotSpec) -> RobotSpec:
        """Return the model in the element ``robot_file``, with later changes of the URDF.

        botyard writes this element into each URDF file that it writes. A user may change joints,
        shapes, limits and sensors of the file afterwards. The changes are the differences
        between the file and a URDF written anew from the element's model.
        """
        found = [f for g in robot.named("gazebo") for f in g.named("robot_file")]
        if not found:
            return spec
        element = found[0]
        self._meter.add("entities", sum(map(element.text.count, "\n,=.")))
        try:
            with blamed_on(element.value()):
                own_table = parse_toml(element.text, name)
                # An untrusted file must not extend the models of this computer.
                own_table.pop("extends", None)
                own = robot_of(own_table, name)
                fresh = to_urdf(own, name, whole=False).encode()
                meter, notes = Meter(self._meter.budget, "", ModelFileError), Notes()
                root = read_xml(Source(robot.path, fresh), meter)
                before = _Reader(meter, notes, None, self._height, is_whole=False)
                was = to_table(before.run(root).spec)
                now = to_table(spec)
                table = merged(to_table(own), was, now)
                if not tables_equal(was["outline"], now["outline"], 1e-7):
                    table["parts"] = now.get("parts", [])
                return robot_of(table, name)
        except RecursionError:
            raise element.fail("a robot file", "nested tables") from None

    # -- body

    def _solids(
        self, bodies: Bodies, link: Element, frame: Frame
    ) -> list[tuple[solids.Polyhedron, Frame]]:
        parts = Parts()
        for collision in link.named("collision"):
            KEYS.check("collision", collision.keys(), self._notes)
            geometry = collision.child("geometry")
            if geometry is None:
                raise collision.fail("a geometry")
            KEYS.check("geometry", geometry.keys(), self._notes)
            at = frame.compose(origin_of(collision, self._notes))
            for shape in geometry.children:
                KEYS.check("shape", shape.keys(), self._notes)
                if shape.tag == "mesh":
                    self._mesh(shape, at, parts)
                else:
                    bodies.shape(shape, at, parts)
        return parts.solids

    def _mesh(self, shape: Element, at: Frame, parts: Parts) -> None:
        """Add a mesh of an STL file; its outline is the outline of its convex hull."""
        name = shape.attributes.get("filename", "")
        found = _file(Path(shape.path), name)
        if found is None:
            self._notes.add(
                f"mesh {name}",
                shape,
                f'the mesh "{shown(name)}" is left out: no STL file of this name lies '
                "next to the robot's file; add a box or a cylinder",
            )
            return
        self._meter.add("files", 1, shape.line)
        scale = shape.attribute("scale")
        x, y, z = (1.0, 1.0, 1.0) if scale is None else scale.numbers(3, bound=1e6)
        if found not in self._meshes:
            self._meshes[found] = read_stl(found, self._meter)
        corners, edges = self._meshes[found]
        self._meter.add("vertices", len(edges), shape.line)
        scaled = [(x * a, y * b, z * c) for a, b, c in corners]
        parts.solids.append((solids.Polyhedron(scaled, edges), at))

    def _floor(self, tree: Tree) -> float:
        """Return the height of the floor in the frame of the root, m."""
        for name, frame in tree.frames.items():
            if name.endswith(FOOTPRINT):
                return frame.at[2]
        # Arms may hang lower than the wheels at position 0.
        wheels = {
            joint.child
            for joint in tree.moving.values()
            if joint.rolls and "wheel" in joint.child.lower()
        }
        return min(
            tree.heights(wheels), default=min(tree.heights(tree.links), default=0.0)
        )

    def _body(self, tree: Tree, floor: float, high: float) -> tuple[Outline, ...]:
        """Return the outlines of the shapes between two heights; the largest is the first."""
        found: list[Outline] = []
        count = 0
        for name, shapes in tree.solids.items():
            for solid, frame in shapes:
                count += 1
                if count > MAX_PARTS:
                    raise tree.links[name].fail(
                        f"at most {MAX_PARTS} collision shapes", "more"
                    )
                # There is no lower bound, because wheels may reach a little below the floor.
                outline = solids.hull(
                    [
                        (round(x, DECIMALS) + 0.0, round(y, DECIMALS) + 0.0)
                        for x, y in solids.slab(solid, frame, -math.inf, high)
                    ]
                )
                if outline:
                    self._meter.add("vertices", len(outline))
                    found.append(outline)
                elif min(frame.apply(p)[2] for p in solid.corners) > high:
                    self._notes.add(
                        f"above {name}",
                        tree.links[name],
                        f'the shapes of "{shown(name)}" above {high - floor:.3g} m are '
                        "left out: the lidars pass below them",
                    )
        found.sort(key=_area, reverse=True)
        kept: list[Outline] = []
        for outline in found:
            # Parts within a larger one change nothing, and cost time in each step.
            self._meter.add("entities", len(kept))
            if not any(_contains(other, outline) for other in kept):
                kept.append(outline)
        return tuple(kept)

    # -- lasers

    def _lasers(
        self, bodies: Bodies, robot: Element, tree: Tree, parts: Parts, floor: float
    ) -> list[float]:
        """Add the lasers to the parts, and return their heights above the floor, m."""
        heights: list[float] = []
        seen = set()
        for gazebo in robot.named("gazebo"):
            KEYS.check("gazebo", gazebo.keys(), self._notes)
            link = gazebo.attributes.get("reference", "")
            for sensor in gazebo.named("sensor"):
                heights += self._laser(bodies, sensor, link, tree, parts, floor)
                seen.add(link)
        for sensor in robot.named("sensor"):
            parent = sensor.child("parent")
            link = "" if parent is None else parent.attributes.get("link", "")
            if "type" not in sensor.attributes and sensor.child("ray") is not None:
                sensor.attributes["type"] = "ray"
            heights += self._laser(bodies, sensor, link, tree, parts, floor)
            seen.add(link)
        unseen = []
        for name, frame in tree.frames.items():
            if name in seen or not any(word in name.lower() for word in LIDAR_WORDS):
                continue
            pose = frame.plane
            unseen.append(frame.at[2] - floor)
            self._notes.add(
                f"no sensor {name}",
                tree.links[name],
                f'the link "{shown(name)}" has no sensor tag; to mount a laser, write '
                f'lasers = [{{ type = "lms100", pose = [{pose.x:.4g}, {pose.y:.4g}, '
                f"{deg(pose.th):.4g}] }}]",
            )
        # A lidar's link without a sensor tag still limits the height of the body.
        return heights or unseen

    def _laser(
        self,
        bodies: Bodies,
        sensor: Element,
        link: str,
        tree: Tree,
        parts: Parts,
        floor: float,
    ) -> Iterator[float]:
        if link not in tree.frames:
            raise sensor.fail(
                "the name of the link that carries it", f'"{shown(link)}"'
            )
        frame = tree.frames[link]
        if sensor.child("origin") is not None:
            frame = frame.compose(origin_of(sensor, self._notes))
        before = len(parts.lasers)
        bodies.sensor(sensor, frame, Frame(), parts, tree.links[link])
        if len(parts.lasers) > before:
            pose = sensor.child("pose")
            lift = 0.0
            if pose is not None and pose.text.strip():
                lift = frame.turn.apply(_xyz(pose))[2]
            yield frame.at[2] + lift - floor
            if abs(frame.turn.z[2]) < 1.0 - 1e-3:
                self._notes.add(
                    f"tilt {link}",
                    sensor,
                    f'the laser on "{shown(link)}" is tilted; botyard mounts it level',
                )

    # -- drive

    def _drive(self, robot: Element, tree: Tree, floor: float) -> tuple[Driven, Pose]:
        plugins = [p for g in robot.named("gazebo") for p in g.named("plugin")]
        plugin = drive_of(plugins, self._notes)
        commanded = set(self._commanded(robot))
        if self._control is not None:
            return by_controller(self._control, tree, floor, self._notes)
        if plugin is not None:
            return by_plugin(plugin, tree, floor, self._notes)
        if robot.child("ros2_control") is not None:
            self._notes.add(
                "controllers",
                next(robot.named("ros2_control")),
                "ros2_control has its speeds in a file of its own; give it with "
                "--controllers FILE",
            )
        wheels = find_wheels(tree, commanded, floor)
        return by_joints(wheels, tree, floor, robot, self._notes)

    def _commanded(self, robot: Element) -> Iterator[str]:
        for kind in ("ros2_control", "transmission"):
            for block in robot.named(kind):
                KEYS.check(kind, block.keys(), self._notes)
                for joint in block.named("joint"):
                    if (
                        kind == "transmission"
                        or joint.child("command_interface") is not None
                    ):
                        yield joint.attributes.get("name", "")


def _file(robot: Path, name: str) -> Path | None:
    """Return the STL file of a mesh in the robot's folder or the folder of its package."""
    if "\0" in name or not name.lower().endswith(".stl"):
        return None
    folder = robot.resolve().parent
    if name.startswith("package://"):
        package, _, inner = name.removeprefix("package://").partition("/")
        # The folder of a ROS package has the package's name, in the sources and where the
        # package is installed.
        roots = [p for p in (folder, *folder.parents) if p.name == package]
        candidates = [root / inner for root in roots] + [folder / inner]
    else:
        roots = [folder]
        candidates = [folder / name.removeprefix("file://")]
    for path in candidates:
        try:
            found = path.resolve()
            # An untrusted file must not name files outside of these folders.
            if (
                any(found.is_relative_to(r) for r in (*roots, folder))
                and found.is_file()
            ):
                return found
        except (OSError, RuntimeError):
            continue
    return None


def _xyz(pose: Element) -> tuple[float, float, float]:
    x, y, z, *_ = pose.value().numbers(6, 7)
    return x, y, z


def _area(outline: Outline) -> float:
    return 0.5 * sum(
        x0 * y1 - x1 * y0
        for (x0, y0), (x1, y1) in zip(outline, (*outline[1:], outline[0]), strict=True)
    )


def _contains(outer: Outline, inner: Outline) -> bool:
    """Return whether a convex, counter-clockwise polygon contains another."""
    return all(
        (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= -1e-9
        for (ax, ay), (bx, by) in zip(outer, (*outer[1:], outer[0]), strict=True)
        for x, y in inner
    )


__all__ = ["Imported", "read_urdf"]
