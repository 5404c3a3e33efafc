"""Reading a map or a world for a client, in a process that does nothing else: what it is asked, and how the world comes back.

`read` does the work. `main` is the process (see `botyard.child`): it answers with a world in parts, with why
there is none, and before that with a line for everything that was doubted. A world comes in parts because each is decoded at once, while
no report can be sent; and a model that many robots share comes once. The types of the parts are checked when they are decoded, so a
process that a hostile file has taken over can give no more than another world, which the file could have described itself.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from botyard.child import Send, serve
from botyard.errors import BotyardError
from botyard.formats.base import Options, Source, Warn, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.registry import check_world, find_client_map, read_world
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Area, Place, Scene
from botyard.model.world import PlacedRobot, Program, Settings, World
from botyard.names import shown

MODULE: Final = "botyard.formats.reading"
PORTION: Final = 200
"""So many things come in one message."""
MAX_WARNINGS: Final = 200
"""So many lines about what was doubted are told; the others are counted."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be said of a file, and the limits of reading it: `Options` as data.

    Attributes
    ----------
    resolution, threshold, invert, planar, lines_chunk, points_chunk, budget
        See `Options`.
    programs : tuple of str
        Names of the controllers that there are.
    """

    resolution: float | None
    threshold: float
    invert: bool
    planar: bool | None
    lines_chunk: int
    points_chunk: int
    budget: Budget
    programs: tuple[str, ...]

    @classmethod
    def of(cls, options: Options, programs: Iterable[str]) -> Limits:
        """These options; `programs` are the controllers that there are."""
        same = {f.name: getattr(options, f.name) for f in fields(cls) if f.name != "programs"}
        return cls(**same, programs=tuple(programs))

    def options(self, warn: Warn) -> Options:
        """As readers want them."""
        same = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "programs"}
        return Options(**same, warn=warn, is_program=frozenset(self.programs).__contains__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be read.

    Attributes
    ----------
    name : str
        As the client gave it, or the path of a file, or what a file that was sent is called.
    limits : Limits
        How it is read.
    folders : tuple of str, optional
        Where clients may load maps from, besides the shipped ones; None: `name` is a path.
    data : bytes, optional
        The file, if it was sent.
    present : (str, int), optional
        Path of the present map and when it had changed, ns: if the name means that file, and it has not changed since, it is not read.
    """

    name: str
    limits: Limits
    folders: tuple[str, ...] | None = None
    data: bytes | None = None
    present: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a request.

    Attributes
    ----------
    path : Path or None
        The file on this machine; None: it was sent.
    modified : int
        When it had last changed, ns.
    world : World or None
        What is in it; None: it is the present map, unchanged.
    """

    path: Path | None
    modified: int
    world: World | None


def modified(path: Path) -> int:
    """When a file was last changed, ns; 0 if it cannot be told."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read(request: Request, warn: Warn) -> Reading:
    """Find and read a file.

    Parameters
    ----------
    warn : callable
        Receives a line for everything that was skipped, doubted or assumed.

    Raises
    ------
    BotyardError
        Not found, unreadable, of an unknown format, or larger than the budget allows; with file and line.
    """
    options = request.limits.options(warn)
    if request.data is not None:
        return Reading(None, 0, read_world(Source(request.name, request.data), options))
    if request.folders is None:
        path = Path(request.name)
    else:
        path = find_client_map(request.name, [Path(f) for f in request.folders])
    when = modified(path)
    if request.present is not None and request.present[0] == str(path) and when <= request.present[1]:
        return Reading(path, when, None)
    return Reading(path, when, read_world(read_source(path, options.budget), options))


# -- how a world is sent


@dataclass(frozen=True, slots=True)
class _Head:
    """The first message of a reading; `scene` is without its things."""

    path: str | None
    modified: int
    scene: Scene | None
    settings: Settings = field(default_factory=Settings)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Robot:
    """A robot of a world; `spec` is the number of its model."""

    spec: int
    name: str
    pose: Pose | None
    program: Program | None
    served: bool


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why there is no world, in words; and, for those who look for the fault, where a program of ours has failed."""

    text: str
    trace: str = ""


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
"""The messages that the process sends."""


def _portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(things), PORTION):
        yield things[first : first + PORTION]


def send_reading(reading: Reading, send: Send) -> None:
    """Send what was read, in portions."""
    path, world = None if reading.path is None else str(reading.path), reading.world
    if world is None:
        send("head", _Head(path, reading.modified, None))
        send("end", None)
        return
    scene = world.scene
    bare = replace(scene, boxes=(), places=(), areas=())
    send("head", _Head(path, reading.modified, bare, world.settings, dict(world.options)))
    for kind, things in (("boxes", scene.boxes), ("places", scene.places), ("areas", scene.areas)):
        for part in _portions(things):
            send(kind, part)
    specs = {id(r.spec): r.spec for r in world.robots}
    number = {key: i for i, key in enumerate(specs)}
    for some in _portions(tuple(specs.values())):
        send("specs", some)
    for robots in _portions(world.robots):
        send("robots", [_Robot(number[id(r.spec)], r.name, r.pose, r.program, r.served) for r in robots])
    send("end", None)


class ReadingFailed(BotyardError):
    """There is no world; the text says why, and names file and line."""


def receive_reading(messages: Iterable[tuple[str, Any]], budget: Budget, warn: Warn, trace: Warn) -> Reading:
    """Put a reading together.

    Parameters
    ----------
    messages : iterable of (kind, body)
        What the process sends.
    budget : Budget
        The limits that it was given.
    warn : callable
        Receives a line for everything that was doubted.
    trace : callable
        Receives where a reader has failed that should not have.

    Raises
    ------
    ReadingFailed
        The file could not be read, or what came is no world.
    BudgetError
        It is larger than allowed.
    """
    head: _Head | None = None
    parts: dict[str, list[Any]] = {"boxes": [], "places": [], "areas": [], "specs": [], "robots": []}
    warnings = 0
    for kind, body in messages:
        if kind == "warning":
            warnings += 1
            if warnings <= MAX_WARNINGS:
                warn(body)
        elif kind == "failure":
            if body.trace:
                trace(body.trace)
            raise ReadingFailed(body.text)
        elif kind == "head":
            head = body
        elif kind == "end":
            if warnings > MAX_WARNINGS:
                warn(f"{warnings - MAX_WARNINGS} more remarks about this file were left out")
            return _put_together(head, parts, budget)
        else:
            parts[kind] += body
    raise ReadingFailed("the process that reads it has ended before it was done")


def _put_together(head: _Head | None, parts: dict[str, list[Any]], budget: Budget) -> Reading:
    if head is None:
        raise ReadingFailed("nothing was read")
    path = None if head.path is None else Path(head.path)
    if head.scene is None:
        return Reading(path, head.modified, None)
    scene, specs = head.scene, parts["specs"]
    if any(not 0 <= r.spec < len(specs) for r in parts["robots"]):
        raise ReadingFailed("expected models of all robots")
    scene = replace(scene, boxes=tuple(parts["boxes"]), places=tuple(parts["places"]), areas=tuple(parts["areas"]))
    robots = tuple(
        PlacedRobot(spec=specs[r.spec], name=r.name, pose=r.pose, program=r.program, served=r.served)
        for r in parts["robots"]
    )
    world = World(scene=scene, robots=robots, settings=head.settings, options=head.options)
    check_world(world, Meter(budget, scene.source))
    return Reading(path, head.modified, world)


def answer(request: Request, send: Send, reader: Callable[[Request, Warn], Reading] = read) -> None:
    """Read, and send what came of it."""
    told = 0

    def warn(text: str) -> None:
        nonlocal told
        told += 1
        if told <= 10 * MAX_WARNINGS:  # who receives them counts as well
            send("warning", shown(text, 500))

    try:
        reading = reader(request, warn)
    except BotyardError as error:
        send("failure", _Failure(str(error)))
    except MemoryError:
        raise
    except Exception as error:  # a fault of a reader: as told as one of the file, and where it is
        send("failure", _Failure(repr(error), traceback.format_exc()))
    else:
        send_reading(reading, send)


def main() -> None:
    """The process."""
    serve({"read": Request}, answer)


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
