"""Conversion of Stage's sensors to botyard's, both dialects (formats §3.4, §4.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from botyard.errors import FormatError, ModelError, ModelFileError
from botyard.formats.notes import Notes
from botyard.formats.stageprops import merged, note_unused, pose, positive
from botyard.formats.stageworld import Entity, Property
from botyard.geometry import Pose, compose
from botyard.model.accessories import GripperSpec
from botyard.model.beams import ReflectorRule
from botyard.model.devices import DeviceSpec, make_spec
from botyard.model.library import load_laser
from botyard.model.robot import RobotSpec
from botyard.model.sensors import MAX_SONAR_RAYS, LaserSpec, SonarSpec, Transducer
from botyard.units import from_deg

LASERS: Final = {
    "sicklms200": "lms200",
    "sicklms100": "lms100",
    "sicks300": "s300",
    "sicktim510": "tim510",
}
"""Names of botyard's laser models, by the stock sensors of AMRISim's model file."""
_READ: Final[Mapping[str, tuple[str, ...]]] = {
    "laser": (
        "samples",
        "fov",
        "range_min",
        "range_max",
        "reverse_scan",
        "noise",
        "reading_angle_error",
        "laser_beam_height",
        "update_interval",
    ),
    "ranger": (
        "scount",
        "spose",
        "sview",
        "ssize",
        "noise",
        "projection_type",
        "projection_res",
        "update_interval",
    ),
    "fiducial": ("range_min", "range_max", "range_max_id", "fov"),
    "blobfinder": (
        "colors",
        "channels",
        "colors_count",
        "image",
        "fov",
        "pan",
        "range",
        "range_max",
    ),
    "bumper": ("bcount", "bpose", "blength"),
    "gripper": ("paddle_size",),
}
"""Properties of each type of sensor that are read, or ignored without a note."""
TYPES: Final = frozenset(
    {
        *LASERS,
        "laser",
        "ranger",
        "sonar",
        "pioneerSonar",
        "fiducial",
        "fiducialfinder",
        "blobfinder",
        "bumper",
        "gripper",
    }
)
"""Types of sensors of Stage."""
DEFAULT_BEAM: Final = 0.1
"""Default field of view of a Stage 4 sensor, rad."""


def _type_name(links: Sequence[Entity], root: str) -> str:
    """Return the type name that clients see for a sensor.

    The name is the stock type, or the definition that the instance is based on.
    """
    return links[-1].type_name if len(links) > 1 or root in LASERS else root


def _number(props: Mapping[str, Property], key: str, otherwise: float) -> float:
    return props[key].number() if key in props else otherwise


def _count(props: Mapping[str, Property], key: str, otherwise: int, high: int) -> int:
    """Return the count that a property gives, from 0 to `high`; `otherwise` if it is missing."""
    if key not in props:
        return otherwise
    value = props[key].number()
    if not 0 <= value <= high or value != int(value):
        raise props[key].fail(f"a whole number from 0 to {high}")
    return int(value)


def _rate(props: Mapping[str, Property]) -> float:
    """Return the update rate of a sensor, Hz; 0: in every step.

    The rate follows from ``update_interval``, ms, if the file gives one.
    """
    # Without the property, a sensor measures in every step, as in Stage.
    interval = _number(props, "update_interval", 0.0)
    if "update_interval" in props and not interval > 0.0:
        raise props["update_interval"].fail("a time greater than 0, ms")
    return 1000.0 / interval if interval else 0.0


def _placed(props: Mapping[str, Property], mount: Pose) -> Pose:
    return compose(mount, pose(props["pose"])) if "pose" in props else mount


def _note(notes: Notes, links: Sequence[Entity], root: str) -> None:
    """Add notes for the properties of a sensor that are not simulated."""
    for entity in links:
        note_unused(notes, entity, _READ[root])


def laser(links: Sequence[Entity], root: str, mount: Pose, notes: Notes) -> LaserSpec:
    """Return the laser that a ``laser`` of Stage 2 describes.

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    _note(notes, links, "laser")
    base = (
        load_laser(LASERS[root])
        if root in LASERS
        else LaserSpec(type_name="laser", samples=180, size=(0.15, 0.15))
    )
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
            reflector=_reflector(props, notes)
            if "laser_return_rules" in props
            else base.reflector,
            update_rate=_rate(props),
        )
    except FormatError:
        raise
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


def _reflector(props: Mapping[str, Property], notes: Notes) -> ReflectorRule:
    """Return the reflector rule that the properties of a laser describe.

    By the rule, bright surfaces look ordinary beyond a range or an angle, and a return of 2 may be
    reported as another number. A note is added for rules of another kind.
    """
    rule = ReflectorRule()
    for i in range(_count(props, "laser_return_rules", 0, 100)):
        # The properties of a rule are flat: laser_return_rule[i].NAME.
        one = {
            k.rpartition(".")[2]: p
            for k, p in props.items()
            if k.startswith(f"laser_return_rule[{i}].")
        }
        if not one:
            continue
        condition = one["condition"].string() if "condition" in one else ""
        # A rule may omit these properties; their defaults mean that returns above 1
        # become 1.
        dims = (
            _number(one, "model_gt", 1.0) == 1.0
            and "model_eq" not in one
            and _number(one, "detect", 1.0) == 1.0
        )
        if condition == "outside_range" and "range" in one and dims:
            rule = replace(rule, max_range=one["range"].number())
        elif condition == "outside_angle" and "angle" in one and dims:
            # The rule has the full angle, `max_incidence` half of it.
            rule = replace(rule, max_incidence=from_deg(one["angle"].number()) / 2.0)
        elif (
            not condition
            and "detect" in one
            and "model_gt" not in one
            and _number(one, "model_eq", 2.0) == 2.0
        ):
            rule = replace(rule, strength=_count(one, "detect", 2, 255))
        else:
            what = (
                "a rule for laser returns of an unknown kind (known: returns above 1 "
                "become 1 beyond a range or an angle; 2 becomes another number)"
            )
            notes.add(
                "laser_return_rule",
                next(iter(one.values())),
                f"{what}; it is not simulated",
            )

        for key in ("stop", "model_lt"):
            if key in one and one[key].number():
                notes.add(
                    f"laser_return_rule {key}",
                    one[key],
                    f'"{key}" of a rule for laser returns is not simulated',
                )

    return rule


def sonar(links: Sequence[Entity], root: str, notes: Notes) -> SonarSpec:
    """Return the sonar ring that a ``ranger`` of Stage 2 describes.

    The property ``scount`` is the number of transducers; ``spose[i]``, ``sview[i]`` and
    ``noise[i]`` describe transducer i.

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    _note(notes, links, "ranger")
    sized = next(
        (prop for key, prop in props.items() if key.startswith("ssize[")), None
    )
    if sized is not None:
        notes.add(
            "ssize",
            sized,
            'the size of a single transducer ("ssize[i]") has no effect',
        )

    stock = root == "pioneerSonar"
    count = _count(props, "scount", 0, 1000)
    # Defaults of AMRISim's stock ring, and of a ranger that the file itself describes.
    view = (
        props["sview"].numbers(3)
        if "sview" in props
        else ((0.1, 5.0, 30.0) if stock else (0.0, 5.0, 5.0))
    )
    views = [
        props[f"sview[{i}]"].numbers(3) if f"sview[{i}]" in props else view
        for i in range(count)
    ]
    poses = [props.get(f"spose[{i}]") for i in range(count)]
    last = links[-1]
    if count < 1:
        raise ModelFileError(
            "expected scount and spose[0] … of a ranger, found none",
            last.path,
            last.line,
        )

    # A missing pose would shift the numbers of the following transducers.
    if None in poses:
        raise ModelFileError(
            f"scount is {count}, but spose[{poses.index(None)}] is missing",
            last.path,
            last.line,
        )

    # A cone of 0° means an unconnected transducer, whose range limits are not used.
    seeing = [v for v in views if v[2] > 0.0] or views
    fov = max(v[2] for v in views)
    # Only the projection "closest" considers the whole cone.
    rays = 1
    if "projection_type" in props and props["projection_type"].string() == "closest":
        step = _number(props, "projection_res", 6.0)
        if not step > 0.0:
            raise props["projection_res"].fail("an angle greater than 0")
        rays = max(1, min(MAX_SONAR_RAYS, round(fov / step) + 1))

    try:
        return SonarSpec(
            type_name=_type_name(links, root) if not stock else "pioneerSonar",
            transducers=tuple(
                _transducer(
                    pose(p),
                    v,
                    any(v != w for w in seeing),
                    fov,
                    props.get(f"noise[{i}]"),
                )
                for i, (p, v) in enumerate(zip(poses, views, strict=True))
                if p
            ),
            fov=from_deg(fov),
            range_min=min(v[0] for v in seeing),
            range_max=max(v[1] for v in seeing),
            noise=_number(props, "noise", 0.0005 if stock else 0.0),
            rays=rays,
            update_rate=_rate(props),
        )
    except FormatError:
        raise
    except ModelError as error:
        raise ModelFileError(str(error), last.path, last.line) from None


def _transducer(
    at: Pose, view: Sequence[float], differs: bool, fov: float, noise: Property | None
) -> Transducer:
    """Return a transducer, with limits of its own if its view differs from the others."""
    connected = view[2] > 0.0
    own = differs and connected
    return Transducer(
        pose=at,
        connected=connected,
        range_min=view[0] if own else None,
        range_max=view[1] if own else None,
        fov=from_deg(view[2]) if own and view[2] != fov else None,
        noise=None if noise is None else noise.number(),
    )


class Ranger(NamedTuple):
    """Sensors that a ``ranger`` of Stage 4 becomes: lasers, and one sonar ring."""

    lasers: tuple[LaserSpec, ...]
    sonar: SonarSpec | None


def ranger(
    links: Sequence[Entity],
    sensors: Sequence[Sequence[Entity]],
    name: str,
    mount: Pose,
    notes: Notes,
) -> Ranger:
    """Return the sensors that a ``ranger`` of Stage 4 describes.

    A ``sensor`` child with several samples becomes a laser. Children with one sample
    become the transducers of a sonar ring.

    Parameters
    ----------
    links : sequence of Entity
        Definitions of the ranger, root first, and the instance.
    sensors : sequence of sequences of Entity
        Definitions and instance of each of its sensors.
    name : str
        Type name.
    mount : Pose
        Pose of the carrying body in the robot's frame.
    notes : Notes
        Collects properties that are not simulated.

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    at, rate = _placed(props, mount), _rate(props)
    size = positive(props["size"]) if "size" in props else (0.02, 0.02)
    lasers: list[LaserSpec] = []
    beams: list[tuple[Pose, tuple[float, float], float, float]] = []
    for sensor in sensors:
        for entity in sensor:
            note_unused(notes, entity, ("range", "fov", "samples", "noise", "view"))
        own, last = merged(sensor), sensor[-1]
        view = own["view"].numbers(3) if "view" in own else None
        span = (
            own["range"].numbers(2)
            if "range" in own
            else view[:2]
            if view
            else (0.0, 5.0)
        )
        width = from_deg(view[2]) if view else DEFAULT_BEAM
        if "fov" in own:
            width = from_deg(own["fov"].number())
        # The limit keeps a file from requesting memory without bound.
        samples = _count(own, "samples", 1, 100_000)
        # Noise of Stage 4: constant, proportional to the range, and of the angle.
        errors = (*(own["noise"].numbers() if "noise" in own else ()), 0.0, 0.0, 0.0)[
            :3
        ]
        if errors[1]:
            notes.add(
                "noise in proportion",
                own["noise"],
                "noise proportional to the range is not simulated",
            )

        place = _placed(own, at)
        try:
            if samples != 1:
                lasers.append(
                    LaserSpec(
                        type_name=name,
                        pose=place,
                        # All lasers of a ranger share one case, so only the first has a
                        # size.
                        size=size if not lasers else (0.0, 0.0),
                        fov=width,
                        samples=samples,
                        range_min=span[0],
                        range_max=span[1],
                        range_noise=errors[0],
                        angle_noise=from_deg(errors[2]),
                        update_rate=rate,
                    )
                )
            else:
                beams.append((place, (span[0], span[1]), width, errors[0]))
        except ModelError as error:
            raise ModelFileError(str(error), last.path, last.line) from None

    if not beams:
        return Ranger(tuple(lasers), None)
    fov, noise = max(b[2] for b in beams), max(b[3] for b in beams)
    # Equal transducers need no values of their own.
    same = len({b[1:] for b in beams}) == 1
    try:
        ring = SonarSpec(
            type_name=name,
            transducers=tuple(
                Transducer(pose=p)
                if same
                else Transducer(
                    pose=p, range_min=span[0], range_max=span[1], fov=width, noise=error
                )
                for p, span, width, error in beams
            ),
            fov=fov,
            range_min=min(b[1][0] for b in beams),
            range_max=max(b[1][1] for b in beams),
            noise=noise,
            update_rate=rate,
        )
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None

    return Ranger(tuple(lasers), ring)


def fiducial_finder(
    links: Sequence[Entity], mount: Pose, notes: Notes, _: RobotSpec
) -> DeviceSpec:
    """Return the fiducial finder that a ``fiducial`` or ``fiducialfinder`` describes.

    The sensor finds objects with a ``fiducial_return``.

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    _note(notes, links, "fiducial")
    try:
        return make_spec(
            "fiducial_finder",
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


def blob_finder(
    links: Sequence[Entity], mount: Pose, notes: Notes, _: RobotSpec
) -> DeviceSpec:
    """Return the blob finder that a ``blobfinder`` describes.

    The sensor reports patches of its ``colors`` (older files: ``channels``).

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    _note(notes, links, "blobfinder")
    colors = props.get("colors", props.get("channels"))
    width, height = props["image"].numbers(2) if "image" in props else (80, 60)
    view = from_deg(props["fov"].number() if "fov" in props else 60.0)
    at = _placed(props, mount)
    pan = from_deg(_number(props, "pan", 0.0))
    try:
        return make_spec(
            # Stage turns the camera on its mount; the result has only one direction.
            "blob_finder",
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


def bumpers(
    links: Sequence[Entity], mount: Pose, notes: Notes, robot: RobotSpec
) -> DeviceSpec:
    """Return the bumper rings that a ``bumper`` of Stage 4 describes.

    The rings have the numbers of segments in front of and behind the robot's centre. Of several
    bumpers, the largest numbers count.

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    _note(notes, links, "bumper")
    # The Pioneer protocol has at most 7 bumper segments in front and 7 at the rear.
    count = _count(props, "bcount", 0, 14)
    poses = [pose(props[f"bpose[{i}]"]) for i in range(count) if f"bpose[{i}]" in props]
    front = sum(p.x >= 0.0 for p in poses)
    others = robot.device("bumpers")
    rear = len(poses) - front
    if others is not None:
        front, rear = max(front, others.front), max(rear, others.rear)
    try:
        return make_spec("bumpers", front=front, rear=rear)
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


DEVICES: Final[
    Mapping[str, Callable[[Sequence[Entity], Pose, Notes, RobotSpec], DeviceSpec]]
] = {
    "fiducial": fiducial_finder,
    "fiducialfinder": fiducial_finder,
    "blobfinder": blob_finder,
    "bumper": bumpers,
}
"""Functions that convert Stage sensors to device descriptions, by type of sensor.

Their arguments are definitions, mounting, notes, and the robot as built so far.
"""


def gripper(links: Sequence[Entity], notes: Notes) -> GripperSpec:
    """Return the gripper that a ``gripper`` describes.

    ``paddle_size`` has the length and the thickness of its paddles, as fractions of the
    gripper's ``size`` (formats §4.3).

    Raises
    ------
    ModelFileError
        A value is invalid. The error names the file, the line, the expected and the
        found value.
    """
    props = merged(links)
    _note(notes, links, "gripper")
    length, width = positive(props["size"]) if "size" in props else (0.2, 0.3)
    long, thick = (
        positive(props["paddle_size"]) if "paddle_size" in props else (0.66, 0.1)
    )
    try:
        return GripperSpec(
            reach=length * long,
            opening=width * (1.0 - 2.0 * thick),
            thickness=width * thick,
        )
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None
