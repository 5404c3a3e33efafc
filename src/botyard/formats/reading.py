"""Worker process that reads a map or world for a client.

The module has the request, and the messages that transfer the world back. `read` does
the work. `main` is the worker (see `botyard.processes.child_process`): it sends
warnings, then the world in parts, or the reason for a failure.

The world is sent in parts, because the receiver serves no other client while it decodes
a message. A model that several robots share is sent once. The receiver checks the types
of all parts. A worker that a hostile file has taken over can therefore only send
another world, which the file could have described itself.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from botyard.errors import BotyardError
from botyard.formats.base import Options, Source, Warn, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.mapsearch import find_client_map
from botyard.formats.registry import read_world
from botyard.formats.worldlimits import check_world
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Area, Place, Scene
from botyard.model.world import PlacedRobot, Program, SectorPaths, Settings, World
from botyard.names import shown
from botyard.processes.child_process import Send, serve

MODULE: Final = "botyard.formats.reading"
ITEMS_PER_MESSAGE: Final = 200
"""Number of objects in one message."""
MAX_WARNINGS: Final = 200
"""Number of warnings that are passed on; further ones are only counted."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Reading options in a form that can be sent to a worker process.

    Attributes
    ----------
    resolution, threshold, invert, planar, topic, lines_chunk, points_chunk, budget
        See `Options`.
    programs : tuple of str
        Names of the known controllers.
    """

    resolution: float | None
    threshold: float
    invert: bool
    planar: bool | None
    topic: str | None
    lines_chunk: int
    points_chunk: int
    budget: Budget
    programs: tuple[str, ...]

    @classmethod
    def of(cls, options: Options, programs: Iterable[str]) -> Limits:
        """Convert `Options` to a form that can be sent; `programs` are the known controllers."""
        same = {
            f.name: getattr(options, f.name)
            for f in fields(cls)
            if f.name != "programs"
        }
        return cls(**same, programs=tuple(programs))

    def options(self, warn: Warn) -> Options:
        """Convert the received form back to `Options`."""
        same = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name != "programs"
        }
        return Options(
            **same, warn=warn, is_program=frozenset(self.programs).__contains__
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request to a worker process to read a file.

    Attributes
    ----------
    name : str
        Name of the file in the client's request, its path, or the name of an uploaded
        file.
    limits : Limits
        Options and limits.
    folders : tuple of str, optional
        Folders that clients may load maps from, in addition to the shipped maps; None:
        `name` is a path.
    data : bytes, optional
        Contents, if the file was uploaded.
    present : (str, int), optional
        Path and modification time, ns, of the current map. An unchanged file is not
        read again.
    """

    name: str
    limits: Limits
    folders: tuple[str, ...] | None = None
    data: bytes | None = None
    present: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of a request: the world that was read.

    Attributes
    ----------
    path : Path or None
        Local file; None: the file was uploaded.
    modified : int
        Modification time of the file, ns.
    world : World or None
        Contents; None: the file is the current map, unchanged.
    """

    path: Path | None
    modified: int
    world: World | None


def modified(path: Path) -> int:
    """Return the modification time of a file, ns; 0 if it is unknown."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read(request: Request, warn: Warn) -> Reading:
    """Find and read the file that a request names.

    Parameters
    ----------
    request : Request
        File, options and limits.
    warn : callable
        Receives a line for each part that was skipped, and for each assumption.

    Raises
    ------
    BotyardError
        The file was not found, cannot be read, has an unknown format, or is larger than
        the budget allows. The error names the file and the line.
    """
    options = request.limits.options(warn)
    if request.data is not None:
        return Reading(None, 0, read_world(Source(request.name, request.data), options))
    if request.folders is None:
        path = Path(request.name)
    else:
        path = find_client_map(request.name, [Path(f) for f in request.folders])

    when = modified(path)
    if (
        # An unchanged map needs no work.
        request.present is not None
        and request.present[0] == str(path)
        and when <= request.present[1]
    ):
        return Reading(path, when, None)

    return Reading(path, when, read_world(read_source(path, options.budget), options))


# -- messages


@dataclass(frozen=True, slots=True)
class _Head:
    """Body of the first message about a `Reading`.

    `scene` lacks its boxes, places and areas; like the robots, they follow in later
    messages.
    """

    path: str | None
    modified: int
    scene: Scene | None
    settings: Settings = field(default_factory=Settings)
    options: dict[str, Any] = field(default_factory=dict)
    traffic: SectorPaths | None = None


@dataclass(frozen=True, slots=True)
class _Robot:
    """Robot of a world in a message; `spec` is the index of its model among the models sent."""

    spec: int
    name: str
    pose: Pose | None
    program: Program | None
    served: bool


@dataclass(frozen=True, slots=True)
class _Failure:
    """Message that reports why a reading failed.

    Attributes
    ----------
    text : str
        Reason.
    trace : str
        Traceback of an internal error.
    kind : str
        Class of the error.
    """

    text: str
    trace: str = ""
    kind: str = ""


TYPES: Final = {
    "warning": str,
    "failure": _Failure,
    "head": _Head,
    "boxes": tuple[BoxObject, ...],
    "places": tuple[Place, ...],
    "areas": tuple[Area, ...],
    "specs": tuple[RobotSpec, ...],
    "robots": tuple[_Robot, ...],
    "end": None,
}
"""Types of the bodies of the worker's messages, by kind of message."""


def _portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(things), ITEMS_PER_MESSAGE):
        yield things[first : first + ITEMS_PER_MESSAGE]


def send_reading(reading: Reading, send: Send) -> None:
    """Send a reading in parts, as several messages."""
    path, world = None if reading.path is None else str(reading.path), reading.world
    if world is None:
        send("head", _Head(path, reading.modified, None))
        send("end", None)
        return

    scene = world.scene
    # Arrays of walls and points are decoded quickly, so they go into one message.
    bare = replace(scene, boxes=(), places=(), areas=())
    send(
        "head",
        _Head(
            path,
            reading.modified,
            bare,
            world.settings,
            dict(world.options),
            world.traffic,
        ),
    )
    for kind, things in (
        ("boxes", scene.boxes),
        ("places", scene.places),
        ("areas", scene.areas),
    ):
        for part in _portions(things):
            send(kind, part)

    # Robots refer to their model by index, so that a shared model is sent once.
    specs = {id(r.spec): r.spec for r in world.robots}
    number = {key: i for i, key in enumerate(specs)}
    for some in _portions(tuple(specs.values())):
        send("specs", some)
    for robots in _portions(world.robots):
        send(
            "robots",
            [
                _Robot(number[id(r.spec)], r.name, r.pose, r.program, r.served)
                for r in robots
            ],
        )

    send("end", None)


class ReadingFailed(BotyardError):
    """The worker could not read a world; the message names the reason, file and line.

    Parameters
    ----------
    text : str
        Message.
    kind : str
        Name of the class of the worker's error, for example ``NoSuchMapError``.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind


def receive_reading(
    messages: Iterable[tuple[str, Any]], budget: Budget, warn: Warn, trace: Warn
) -> Reading:
    """Return the reading that a worker sends in several messages.

    Parameters
    ----------
    messages : iterable of (kind, body)
        Messages of the worker.
    budget : Budget
        Limits of the worker; the result is checked again.
    warn : callable
        Called with each warning.
    trace : callable
        Called with the traceback of an internal error.

    Raises
    ------
    ReadingFailed
        The file could not be read, or the messages do not form a world.
    BudgetError
        The world is larger than allowed.
    """
    head: _Head | None = None
    parts: dict[str, list[Any]] = {
        "boxes": [],
        "places": [],
        "areas": [],
        "specs": [],
        "robots": [],
    }
    warnings = 0
    for kind, body in messages:
        if kind == "warning":
            warnings += 1
            # A hostile worker could send warnings without end.
            if warnings <= MAX_WARNINGS:
                warn(body)
        elif kind == "failure":
            if body.trace:
                trace(body.trace)
            raise ReadingFailed(body.text, body.kind)
        elif kind == "head":
            head = body
        elif kind == "end":
            if warnings > MAX_WARNINGS:
                warn(
                    f"{warnings - MAX_WARNINGS} more remarks about this file are "
                    "not shown"
                )

            return _assemble(head, parts, budget)
        else:
            parts[kind] += body

    raise ReadingFailed("the process that reads the file ended early")


def _assemble(
    head: _Head | None, parts: dict[str, list[Any]], budget: Budget
) -> Reading:
    if head is None:
        raise ReadingFailed("the process that reads the file sent no map or world")
    path = None if head.path is None else Path(head.path)
    if head.scene is None:
        return Reading(path, head.modified, None)
    scene, specs = head.scene, parts["specs"]
    # A hostile worker could send an index that does not exist.
    if any(not 0 <= r.spec < len(specs) for r in parts["robots"]):
        raise ReadingFailed(
            "expected a model for each robot, found a robot without one"
        )
    scene = replace(
        scene,
        boxes=tuple(parts["boxes"]),
        places=tuple(parts["places"]),
        areas=tuple(parts["areas"]),
    )
    robots = tuple(
        PlacedRobot(
            spec=specs[r.spec],
            name=r.name,
            pose=r.pose,
            program=r.program,
            served=r.served,
        )
        for r in parts["robots"]
    )
    world = World(
        scene=scene,
        robots=robots,
        settings=head.settings,
        options=head.options,
        traffic=head.traffic,
    )
    # The worker checked the limits as well, but its result is not trusted.
    check_world(world, Meter(budget, scene.source))
    return Reading(path, head.modified, world)


def answer(
    request: Request, send: Send, reader: Callable[[Request, Warn], Reading] = read
) -> None:
    """Read the file of a request, and send the result (function of the worker)."""
    sent = 0

    def warn(text: str) -> None:
        nonlocal sent
        sent += 1
        # The receiver has a smaller limit, and counts the other warnings.
        if sent <= 10 * MAX_WARNINGS:
            send("warning", shown(text, 500))

    try:
        reading = reader(request, warn)
    except BotyardError as error:
        send("failure", _Failure(str(error), kind=type(error).__name__))
    # The parent reports exhausted memory, because this process may be unable to report
    # it.
    except MemoryError:
        raise
    except Exception as error:
        # An internal error is reported like an error of the file, with a traceback.
        send("failure", _Failure(repr(error), traceback.format_exc()))
    else:
        send_reading(reading, send)


def main() -> None:
    """Run the worker process: wait for a request and answer it."""
    serve({"read": Request}, TYPES, answer)


__all__ = [
    "MODULE",
    "TYPES",
    "Limits",
    "Reading",
    "ReadingFailed",
    "Request",
    "answer",
    "main",
    "modified",
    "read",
    "receive_reading",
    "send_reading",
]
