"""Robot models from Stage definitions, both dialects (formats §3.4, §3.5, §4.3).

A definition is a chain of bases down to a model type of Stage, or to a model of
botyard's library: ``define mine p3dx ( … )`` works although AMRISim's file with
``p3dx`` is not shipped. Each link of the chain changes the properties that it names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from botyard.errors import (
    ModelError,
    ModelFileError,
    did_you_mean,
)
from botyard.formats import stagesensors as sensors
from botyard.formats.budget import Meter
from botyard.formats.notes import Notes
from botyard.formats.stageprops import (
    PROPERTIES,
    STAGE_4,
    color,
    dialect_of,
    energy,
    merged,
    note_unused,
    pose,
    returns,
    to_metres_and_degrees,
    with_origin,
)
from botyard.formats.stageshapes import MAX_PARTS, SQUARE, Pictures, Shape
from botyard.formats.stageworld import Entity, WorldFile
from botyard.geometry import IDENTITY, Pose, compose, transform_point
from botyard.model.kinematics import Axes, Drive, MotionLimits
from botyard.model.library import base_model, load_robot, parse_robot, robot_names
from botyard.model.obstacles import Returns
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.names import shown

MODEL_TYPES: Final = frozenset({"model", "position"})
"""Model types of Stage that a robot or an object can be based on."""
NOT_SIMULATED: Final = frozenset(
    {
        "gps",
        "bumpers",
        "bumpswitches",
        "messages",
        "camera",
        "actuator",
        "blinkenlight",
        "lightindicator",
        "wifi",
    }
)
"""Types of child models that are not simulated."""
MAX_LASERS: Final = 100

# A `position` without properties: for Stage 2 by formats §3.4 and pioneer-protocol
# §11.5, for Stage 4 by formats §4.3.
_POSITION = RobotSpec(
    name="position",
    outline=SQUARE,
    limits=MotionLimits(),
    odometry_error=Axes(0.03, 0.03, 0.05),
    pioneer=PioneerSpec(subclass=""),
)
_QUARTER = Axes(1.0, 1.0, math.pi / 2)
_POSITION_4 = replace(
    _POSITION,
    limits=MotionLimits(
        max_speed=_QUARTER,
        accel=_QUARTER,
        decel=_QUARTER,
        top_accel=_QUARTER,
        heading_speed=_QUARTER.a,
    ),
    odometry_error=Axes(0.015, 0.015, 0.025),
)


class ModelLibrary:
    """Robot models that world files define.

    Parameters
    ----------
    world : WorldFile
        Definitions; its lengths and angles are converted to metres and degrees.
    stock : bool
        Whether a base that the file does not define may be a model of botyard's
        library.
    notes : Notes, optional
        Collects parts that cannot be simulated.
    """

    def __init__(
        self, world: WorldFile, *, stock: bool = True, notes: Notes | None = None
    ) -> None:
        to_metres_and_degrees(world)
        self._world = world
        # Packages are searched once, and not for each entity of a large world.
        self._stock = frozenset({"pioneer", *robot_names()} if stock else ())
        self._known: dict[str, RobotSpec] = {}
        self._inside: set[int] = set()
        self._totals: dict[int, int] = {}
        # A separate meter, because a cached file is built repeatedly.
        self.meter = Meter(world.meter.budget, world.meter.path, ModelFileError)
        self.pictures = Pictures(self.meter, world.allowed)
        self.dialect = dialect_of(world)
        self.notes = notes if notes is not None else Notes()

    def chain(self, name: str) -> tuple[list[Entity], str]:
        """Return the definitions that a definition is based on, root first, and the type of the
        root.

        A definition that is based on its own name changes the model of the library.

        Raises
        ------
        ModelFileError
            Definitions are based on each other in a circle.
        """
        links: list[Entity] = []
        while name in self._world.definitions:
            entity = self._world.definitions[name]
            if any(entity is link for link in links):
                raise ModelFileError(
                    f"definition {shown(name)} is based on itself",
                    entity.path,
                    entity.line,
                )

            links.append(entity)
            self.meter.check("nesting", len(links), entity.line, entity.path)
            # The definition extends the library model of the same name, so the chain
            # ends here.
            if entity.type_name == name and self._is_stock(name):
                break
            name = entity.type_name

        return links[::-1], name

    def count(self, links: Sequence[Entity]) -> None:
        """Count how many definitions an entity uses, before it is built.

        The number includes the children of the definitions.

        Raises
        ------
        ModelFileError
            Models carry each other in a circle.
        BudgetError
            There are too many definitions, or they are nested too deeply.
        """
        last = links[-1]
        self.meter.add("references", self._total(links), last.line, last.path)

    def _total(self, links: Sequence[Entity]) -> int:
        """Return the number of definitions that an entity uses, with all of its children.

        An entity with many properties counts several times.
        """
        return sum(
            self._totals[id(link)] if id(link) in self._totals else self._total_of(link)
            for link in links
        )

    def _total_of(self, entity: Entity) -> int:
        # An entity that contains itself would never end.
        if id(entity) in self._inside:
            raise ModelFileError(
                "models carry each other in a circle", entity.path, entity.line
            )

        self._inside.add(id(entity))
        try:
            self.meter.check("nesting", len(self._inside), entity.line, entity.path)
            # Building five properties takes about as long as building one definition.
            total = 1 + len(entity.properties) // 5
            for child in entity.children:
                total += (
                    1
                    if child.type_name == "block"
                    else self._total(self.links(child)[0])
                )
        finally:
            self._inside.discard(id(entity))

        self._totals[id(entity)] = total
        return total

    @property
    def names(self) -> tuple[str, ...]:
        """Names of definitions of which a world can have instances.

        The definitions are based on `position` or `model`, or on a model of botyard's
        library.
        """
        return tuple(n for n in self._world.definitions if self.is_model(n))

    def is_model(self, name: str) -> bool:
        """Return whether a world can contain instances of a definition; False for a sensor.

        Raises
        ------
        ModelFileError
            Definitions are based on each other in a circle.
        """
        return self._is_robot(self.chain(name)[1])

    def _is_robot(self, root: str) -> bool:
        return root in MODEL_TYPES or self._is_stock(root)

    def _is_stock(self, name: str) -> bool:
        """Return whether a name may be a model of botyard's library, and is one."""
        return name in self._stock

    def robot(self, name: str) -> RobotSpec:
        """Return the robot model that a definition describes.

        Raises
        ------
        ModelFileError
            The definition is invalid. The error names the file, the line, the expected
            and the found value.
        """
        if name not in self._known:
            links, root = self.chain(name)
            if links:
                self.count(links)
            self._known[name] = self._build(name, links, root)

        return self._known[name]

    def all(self) -> tuple[tuple[RobotSpec, ...], tuple[str, ...]]:
        """Return all models among the definitions, and the names of the others.

        The other definitions are sensors, which are checked by attaching them to a
        robot.

        Raises
        ------
        ModelFileError
            Describes the first invalid definition.
        """
        robots, others = [], []
        for name, entity in self._world.definitions.items():
            if self.is_model(name):
                robots.append(self.robot(name))
                continue

            others.append(name)
            links, root = self.chain(name)
            self.count(links)
            if root == "window" or (
                root in ("ranger", "sonar") and "scount" not in merged(links)
            ):
                # Such a definition is incomplete; the place of its use completes it.
                continue

            # Sensors occur only in a ranger of Stage 4.
            if root == "sensor":
                around = Entity(
                    "ranger",
                    entity.path,
                    entity.line,
                    children=[Entity(name, entity.path, entity.line)],
                )
                self._ranger(_POSITION_4, [around], IDENTITY)
            elif root in sensors.TYPES or root in NOT_SIMULATED:
                self._child(_POSITION, Entity(name, entity.path, entity.line), IDENTITY)
            else:
                # No model uses the definition, so a note is enough.
                hint = did_you_mean(root, (*self._types(), *sensors.TYPES))
                self.notes.add(
                    f"type {name}",
                    entity,
                    f'"{shown(root)}" is not a type of sensor or model{hint}',
                )

        return tuple(robots), tuple(others)

    def instance(self, entity: Entity) -> RobotSpec:
        """Return the model of an entity in the world, including the entity's own properties."""
        links, root = self.links(entity)
        return self._build(entity.type_name, links, root)

    def links(self, entity: Entity) -> tuple[list[Entity], str]:
        """Return the definitions behind an entity, root first, followed by the entity itself.

        The second result is the type of the root.
        """
        links, root = self.chain(entity.type_name)
        return [*links, entity], root

    def unknown(self, entity: Entity, root: str) -> ModelFileError:
        """Return an error about a type that does not exist; the caller raises it."""
        return ModelFileError(
            f'"{shown(root)}" is not a model type{did_you_mean(root, self._types())}',
            entity.path,
            entity.line,
        )

    def _types(self) -> list[str]:
        """Return the names of types and definitions that a model may be based on."""
        return [
            *self._world.definitions,
            *MODEL_TYPES,
            *sorted(self._stock - {"pioneer"}),
        ]

    def shape(self, links: Sequence[Entity]) -> Shape:
        """Return the outline of a ``model``, or of a child of one."""
        # Default sizes of Stage 4 and of Stage 2, m.
        side = 0.1 if self.dialect == STAGE_4 else 1.0
        shape = Shape(size=(side, side))
        for entity in links:
            shape.read(entity)
        return shape

    def _build(self, name: str, links: list[Entity], root: str) -> RobotSpec:
        base = _POSITION_4 if self.dialect == STAGE_4 else _POSITION
        shape = self.shape([])
        if root == "position":
            spec = base
        elif root == "model":
            spec = replace(base, drive=Drive.NONE, odometry_error=Axes())
        elif self._is_robot(root):
            # A definition with the name of a library model extends exactly that model.
            # Otherwise the user's models come first.
            find = load_robot if root in self._world.definitions else base_model
            spec = _pioneer() if root == "pioneer" else find(root)
            xs, ys = zip(*spec.outline, strict=True)
            shape = Shape(
                size=(max(xs) - min(xs), max(ys) - min(ys)),
                origin=Pose((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2, 0.0),
                polygons=[spec.outline],
            )
        else:
            raise self.unknown(links[0] if links else Entity(root, "", 0), root)

        spec = replace(spec, name=name)
        if not (root == "pioneer" or root in MODEL_TYPES):
            spec = replace(spec, description=f"{root} with changed properties")
        # Properties apply in the order of the chain; later links override earlier ones.
        for entity in links:
            spec = self._apply(spec, entity)
            shape.read(entity)

        props = merged(links)
        if "localization_origin" in props:
            spec = with_origin(spec, pose(props["localization_origin"]))
        spec = energy(
            replace(spec, color=color(props, spec.color, self._color_seed(links))),
            props,
        )
        # The default subclass is the name of the model.
        if not spec.pioneer.subclass:
            spec = replace(spec, pioneer=replace(spec.pioneer, subclass=name))
        try:
            body, *rest = shape.outlines(self.pictures)
            return replace(spec, outline=body, parts=(*rest, *spec.parts))
        except ModelError as error:
            last = links[-1]
            raise ModelFileError(str(error), last.path, last.line) from None

    def _color_seed(self, links: list[Entity]) -> str:
        """Return the text that selects a "random" colour; it depends on the line of the entity."""
        return f"{links[-1].line * 7}" if links else ""

    # -- properties of the body

    def _apply(self, spec: RobotSpec, entity: Entity) -> RobotSpec:
        note_unused(self.notes, entity)
        # The drive decides whether the wheelbase has a meaning.
        for key, prop in sorted(
            entity.properties.items(), key=lambda one: one[0] != "drive"
        ):
            change = PROPERTIES.get(key)
            if change is not None:
                spec = change(spec, prop)

        spec = replace(
            spec, returns=returns(spec.returns, entity.properties, self.dialect)
        )
        for child in entity.children:
            if child.type_name != "block":
                spec = self._child(spec, child, IDENTITY)

        return spec

    def _child(self, spec: RobotSpec, child: Entity, mount: Pose) -> RobotSpec:
        links, root = self.links(child)
        # Each laser costs memory in every step, so the file cannot add any number.
        if len(spec.lasers) > MAX_LASERS:
            raise ModelFileError(
                f"expected a robot of at most {MAX_LASERS} lasers, found more",
                child.path,
                child.line,
            )

        if root == "laser" or root in sensors.LASERS:
            return replace(
                spec,
                lasers=(*spec.lasers, sensors.laser(links, root, mount, self.notes)),
            )

        if (
            root == "ranger"
            and not any("scount" in link.properties for link in links)
            and self.dialect == STAGE_4
        ):
            return self._ranger(spec, links, mount)

        if root in ("ranger", "sonar", "pioneerSonar"):
            return replace(spec, sonar=sensors.sonar(links, root, self.notes))
        if root in sensors.DEVICES:
            return spec.fitted(sensors.DEVICES[root](links, mount, self.notes, spec))
        if root == "gripper":
            return replace(spec, gripper=sensors.gripper(links, self.notes))
        # Stage 2 ignores models that a robot carries.
        if root in MODEL_TYPES:
            return (
                self._attached(spec, links, mount) if self.dialect == STAGE_4 else spec
            )

        if root in NOT_SIMULATED:
            self.notes.add(root, child, f'"{root}" is not simulated')
            return spec

        known = [
            *self._world.definitions,
            *sensors.LASERS,
            "laser",
            "ranger",
            "pioneerSonar",
            *sensors.DEVICES,
        ]
        raise ModelFileError(
            f'"{shown(root)}" is not a type of sensor or model'
            f"{did_you_mean(root, known)}",
            child.path,
            child.line,
        )

    def _ranger(self, spec: RobotSpec, links: list[Entity], mount: Pose) -> RobotSpec:
        found = []
        for entity in links:
            note_unused(self.notes, entity, ("update_interval",))
            for child in entity.children:
                chain, root = self.links(child)
                if root == "sensor":
                    found.append(chain)

        if not found:
            self.notes.add(
                "ranger", links[-1], "a ranger without sensors measures nothing"
            )

        both = sensors.ranger(links, found, links[-1].type_name, mount, self.notes)
        spec = replace(spec, lasers=(*spec.lasers, *both.lasers))
        if both.sonar is None:
            return spec
        if spec.sonar is None:
            return replace(spec, sonar=both.sonar)
        return replace(
            spec,
            sonar=replace(
                spec.sonar,
                transducers=(*spec.sonar.transducers, *both.sonar.transducers),
            ),
        )

    def _attached(self, spec: RobotSpec, links: list[Entity], mount: Pose) -> RobotSpec:
        """Return the robot with an attached ``model``, and with all models on it.

        A solid ``model`` becomes part of the robot's body.
        """
        props = merged(links)
        at = compose(mount, pose(props["pose"])) if "pose" in props else mount
        for entity in links:
            note_unused(self.notes, entity)
            for child in entity.children:
                if child.type_name != "block":
                    spec = self._child(spec, child, at)

        if not returns(Returns(), props, self.dialect).obstacle:
            return spec
        shapes = self.shape(links).outlines(self.pictures)
        if len(spec.parts) + len(shapes) > MAX_PARTS:
            last = links[-1]
            raise ModelFileError(
                f"expected a robot of at most {MAX_PARTS} solid parts, found more",
                last.path,
                last.line,
            )

        return replace(
            spec,
            parts=(
                *spec.parts,
                *(
                    tuple(transform_point(at, x, y) for x, y in shape)
                    for shape in shapes
                ),
            ),
        )


@cache
def _pioneer() -> RobotSpec:
    """Return the model for the type ``pioneer``: the library's, with a body of 1 m × 1 m."""
    return parse_robot(
        'extends = "pioneer"\n'
        "outline = [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]\n"
        '[pioneer]\nsubclass = "pioneer"',
        "undescribed pioneer",
    )
