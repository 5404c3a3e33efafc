"""Sensors of Stage models, both dialects (formats §3.4, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from botyard.errors import FormatError, ModelError, ModelFileError
from botyard.formats.stageprops import Notes, merged, note_unused, pose, positive
from botyard.formats.stageworld import Entity, Property
from botyard.geometry import Pose, compose
from botyard.model.accessories import BumperSpec, GripperSpec
from botyard.model.library import load_laser
from botyard.model.sensors import BlobFinderSpec, FiducialFinderSpec, LaserSpec, ReflectorRule, SonarSpec, Transducer
from botyard.units import from_deg

LASERS: Final = {"sicklms200": "lms200", "sicklms100": "lms100", "sicks300": "s300", "sicktim510": "tim510"}
"""The stock sensor definitions of AMRISim's model file, and our models of the same devices."""
DEFAULT_BEAM: Final = 0.1
"""Field of view of a Stage 4 sensor that does not say its own, rad."""


def _type_name(links: Sequence[Entity], root: str) -> str:
    """The stock name of a device, or the definition next to the instance."""
    return links[-1].type_name if len(links) > 1 or root in LASERS else root


def _number(props: Mapping[str, Property], key: str, otherwise: float) -> float:
    return props[key].number() if key in props else otherwise


def _count(props: Mapping[str, Property], key: str, otherwise: int, most: int) -> int:
    """A whole number of things, as many as can be meant."""
    if key not in props:
        return otherwise
    value = props[key].number()
    if not 0 <= value <= most or value != int(value):
        raise props[key].fail(f"a whole number from 0 to {most}")
    return int(value)


def _placed(props: Mapping[str, Property], mount: Pose) -> Pose:
    return compose(mount, pose(props["pose"])) if "pose" in props else mount


def laser(links: Sequence[Entity], root: str, mount: Pose) -> LaserSpec:
    """A ``laser`` of Stage 2.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    base = load_laser(LASERS[root]) if root in LASERS else LaserSpec(type_name="laser", samples=180, size=(0.15, 0.15))
    try:
        return LaserSpec(
            type_name=_type_name(links, root),
            pose=_placed(props, mount),
            size=positive(props["size"]) if "size" in props else base.size,
            fov=from_deg(props["fov"].number()) if "fov" in props else base.fov,
            samples=_count(props, "samples", base.samples, 100_000),
            range_min=_number(props, "range_min", base.range_min),
            range_max=_number(props, "range_max", base.range_max),
            flipped=_number(props, "reverse_scan", float(base.flipped)) != 0,
            range_noise=_number(props, "noise", base.range_noise),
            angle_noise=_number(props, "reading_angle_error", base.angle_noise),
            reflector=_reflector(props) if "laser_return_rules" in props else base.reflector,
        )
    except FormatError:
        raise
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


def _reflector(props: Mapping[str, Property]) -> ReflectorRule:
    """The documented rules: bright things are plain beyond a range or an angle, and 2 may be reported as another number."""
    rule = ReflectorRule()
    for i in range(_count(props, "laser_return_rules", 0, 100)):
        one = {k.rpartition(".")[2]: p for k, p in props.items() if k.startswith(f"laser_return_rule[{i}].")}
        condition = one["condition"].string() if "condition" in one else ""
        if condition == "outside_range" and "range" in one:
            rule = replace(rule, max_range=one["range"].number())
        elif condition == "outside_angle" and "angle" in one:
            rule = replace(rule, max_incidence=from_deg(one["angle"].number()) / 2.0)
        elif not condition and "detect" in one:
            rule = replace(rule, strength=_count(one, "detect", 2, 255))
    return rule


def sonar(links: Sequence[Entity], root: str) -> SonarSpec:
    """A ``ranger`` of Stage 2 with ``scount`` and ``spose[i]``.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    stock = root == "pioneerSonar"
    count = _count(props, "scount", 0, 1000)
    view = props["sview"].numbers(3) if "sview" in props else ((0.1, 5.0, 30.0) if stock else (0.0, 5.0, 5.0))
    views = [props[f"sview[{i}]"].numbers(3) if f"sview[{i}]" in props else view for i in range(count)]
    poses = [props.get(f"spose[{i}]") for i in range(count)]
    last = links[-1]
    if count < 1:
        raise ModelFileError("expected scount and spose[0] … of a ranger, found none", last.path, last.line)
    if None in poses:
        raise ModelFileError(f"scount is {count}, but spose[{poses.index(None)}] is missing", last.path, last.line)
    fov = max(v[2] for v in views)
    rays = 1
    if "projection_type" in props and props["projection_type"].string() == "closest":
        step = _number(props, "projection_res", 6.0)
        if not step > 0.0:
            raise props["projection_res"].fail("an angle greater than 0")
        rays = max(1, min(1000, round(fov / step) + 1))
    try:
        return SonarSpec(
            type_name=_type_name(links, root) if not stock else "pioneerSonar",
            transducers=tuple(
                Transducer(pose=pose(p), connected=v[2] > 0.0) for p, v in zip(poses, views, strict=True) if p
            ),
            fov=from_deg(fov),
            range_min=views[0][0],
            range_max=views[0][1],
            noise=_number(props, "noise", 0.0005 if stock else 0.0),
            rays=rays,
        )
    except FormatError:
        raise
    except ModelError as error:
        raise ModelFileError(str(error), last.path, last.line) from None


class Ranger(NamedTuple):
    """What a ``ranger`` of Stage 4 comes to: scanning lasers, and a sonar ring of its single beams."""

    lasers: tuple[LaserSpec, ...]
    sonar: SonarSpec | None


def ranger(
    links: Sequence[Entity], sensors: Sequence[Sequence[Entity]], name: str, mount: Pose, notes: Notes
) -> Ranger:
    """A ``ranger`` of Stage 4: a ``sensor`` child with several samples is a laser, those with one are transducers of a sonar.

    Parameters
    ----------
    links : sequence of Entity
        Its definitions, root first, and the instance.
    sensors : sequence of sequences of Entity
        The same of each of its sensors.
    name : str
        Type name.
    mount : Pose
        Of what carries it, in the robot's frame.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    at = _placed(props, mount)
    size = positive(props["size"]) if "size" in props else (0.02, 0.02)
    lasers: list[LaserSpec] = []
    beams: list[Transducer] = []
    fov = least = most = noise = 0.0
    for sensor in sensors:
        for entity in sensor:
            note_unused(notes, entity, ("range", "fov", "samples", "noise", "view"))
        own, last = merged(sensor), sensor[-1]
        view = own["view"].numbers(3) if "view" in own else None
        span = own["range"].numbers(2) if "range" in own else view[:2] if view else (0.0, 5.0)
        width = from_deg(view[2]) if view else DEFAULT_BEAM
        if "fov" in own:
            width = from_deg(own["fov"].number())
        samples = _count(own, "samples", 1, 100_000)
        errors = (*(own["noise"].numbers() if "noise" in own else ()), 0.0, 0.0, 0.0)[:3]
        if errors[1]:
            notes.add("noise in proportion", own["noise"], "noise in proportion to the range is not simulated")
        place = _placed(own, at)
        try:
            if samples != 1:
                lasers.append(
                    LaserSpec(
                        type_name=name,
                        pose=place,
                        size=size if not lasers else (0.0, 0.0),
                        fov=width,
                        samples=samples,
                        range_min=span[0],
                        range_max=span[1],
                        range_noise=errors[0],
                        angle_noise=from_deg(errors[2]),
                    )
                )
            else:
                beams.append(Transducer(pose=place))
                fov, least, most, noise = width, span[0], span[1], errors[0]
        except ModelError as error:
            raise ModelFileError(str(error), last.path, last.line) from None
    if not beams:
        return Ranger(tuple(lasers), None)
    try:
        ring = SonarSpec(
            type_name=name, transducers=tuple(beams), fov=fov, range_min=least, range_max=most, noise=noise
        )
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None
    return Ranger(tuple(lasers), ring)


def fiducial_finder(links: Sequence[Entity], mount: Pose) -> FiducialFinderSpec:
    """A ``fiducial`` or ``fiducialfinder``: it finds what has a ``fiducial_return``.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    try:
        return FiducialFinderSpec(
            pose=_placed(props, mount),
            range_min=_number(props, "range_min", 0.0),
            range_max=_number(props, "range_max", 8.0),
            range_max_id=_number(props, "range_max_id", 5.0),
            fov=from_deg(_number(props, "fov", 180.0)),
        )
    except FormatError:
        raise
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


def blob_finder(links: Sequence[Entity], mount: Pose) -> BlobFinderSpec:
    """A ``blobfinder``: it reports patches of its ``colors`` (older files: ``channels``).

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    colors = props.get("colors", props.get("channels"))
    width, height = props["image"].numbers(2) if "image" in props else (80, 60)
    view = from_deg(props["fov"].number() if "fov" in props else 60.0)
    at = _placed(props, mount)
    pan = from_deg(_number(props, "pan", 0.0))
    try:
        return BlobFinderSpec(
            pose=compose(at, Pose(0.0, 0.0, pan)),
            colors=tuple(str(v) for v in colors.values) if colors else (),
            image=(int(width), int(height)),
            range_max=_number(props, "range", _number(props, "range_max", 12.0)),
            fov=view,
        )
    except FormatError:
        raise
    except (ModelError, OverflowError, ValueError) as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


def bumpers(links: Sequence[Entity]) -> BumperSpec:
    """A ``bumper`` of Stage 4: its segments, counted in front of and behind the robot's middle.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    count = _count(props, "bcount", 0, 14)
    poses = [pose(props[f"bpose[{i}]"]) for i in range(count) if f"bpose[{i}]" in props]
    front = sum(p.x >= 0.0 for p in poses)
    try:
        return BumperSpec(front=front, rear=len(poses) - front)
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


def gripper(links: Sequence[Entity]) -> GripperSpec:
    """A ``gripper``: paddles as long as ``paddle_size`` says, in parts of the gripper's ``size`` (formats §4.3).

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    props = merged(links)
    length, width = positive(props["size"]) if "size" in props else (0.2, 0.3)
    long, thick = positive(props["paddle_size"]) if "paddle_size" in props else (0.66, 0.1)
    try:
        return GripperSpec(reach=length * long, opening=width * (1.0 - 2.0 * thick), thickness=width * thick)
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None
