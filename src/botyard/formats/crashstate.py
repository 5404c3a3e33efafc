"""Format of the state file for a restart after a crash: JSON, without I/O.

`botyard.servers.jobs.statefile` writes and reads the file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from botyard.geometry import Pose
from botyard.model.world import Program
from botyard.names import MAX_NAME, check_name
from botyard.processes.safefile import MARK

VERSION: Final = 1
MAX_THINGS: Final = 1_000_000
"""Largest number of robots, and of boxes, in a state file."""
MAX_TICK: Final = 10**12
"""Largest number of steps of a simulator: 30 years of 1 ms."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRobot:
    """Robot, or an obstacle that was added.

    Attributes
    ----------
    name, model : str
        Name of the robot, and name of its model.
    pose : Pose
        True pose, m, m, rad.
    port : int
        TCP port; 0: none.
    program : Program or None
        Controller; None: none.
    """

    name: str
    model: str
    pose: Pose
    port: int = 0
    program: Program | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """State of a running simulator.

    Attributes
    ----------
    tick : int
        Number of steps so far.
    map : str
        Source of the map; empty: none.
    speed : float
        Requested speed, simulated per wall time; 0: as fast as possible.
    paused : bool
        Whether the simulation is paused.
    robots : sequence of SavedRobot
        Robots and added obstacles, in order.
    visitors : mapping of str to Pose
        True poses of robots that factories have created; their names are the addresses
        of the clients.
    boxes : mapping of str to Pose
        Poses of the map's boxes.
    factories : sequence of int
        Ports of the factories.
    page : sequence
        Port of the page and its two tokens; empty without a page.
    world : bytes
        Full state of the world (`Simulation.save_state`); empty if a controller has no
        state.
    """

    tick: int
    map: str
    speed: float
    paused: bool
    robots: Sequence[SavedRobot] = ()
    visitors: Mapping[str, Pose] = field(default_factory=dict)
    boxes: Mapping[str, Pose] = field(default_factory=dict)
    factories: Sequence[int] = ()
    page: Sequence[Any] = ()
    world: bytes = b""


class _Program(msgspec.Struct):
    """Controller in the file."""

    name: Name
    options: dict[str, Any]


class _Robot(msgspec.Struct):
    """Robot in the file."""

    name: Name
    model: Name
    pose: Triple
    port: Port
    program: _Program | None


class _Version(msgspec.Struct):
    """Part of the file that all versions have in common."""

    version: int


class _State(msgspec.Struct):
    """Contents of the file."""

    version: Literal[1]
    tick: Annotated[int, Meta(ge=0, le=MAX_TICK)]
    map: Annotated[str, Meta(max_length=4096, pattern=r"^[^\x00]*$")]
    speed: Annotated[float, Meta(ge=0.0, le=1000.0)]
    paused: bool
    robots: Annotated[list[_Robot], Meta(max_length=MAX_THINGS)]
    visitors: Annotated[dict[Name, Triple], Meta(max_length=MAX_THINGS)]
    boxes: Annotated[dict[Name, Triple], Meta(max_length=MAX_THINGS)]
    factories: Annotated[list[Port], Meta(max_length=MAX_THINGS)]
    page: Annotated[list[int | str], Meta(max_length=3)]
    world: bytes = b""


def decode_state(data: bytes) -> SavedState:
    """Decode the bytes of a state file.

    Raises
    ------
    ValueError, BotyardError, RecursionError
        The bytes are not a valid state.
    """
    # The version comes first, so that a file of another version gets a clear error.
    said = msgspec.json.decode(data, type=_Version).version
    if said != VERSION:
        raise ValueError(f"expected version {VERSION} of the format, found {said}")
    file = msgspec.json.decode(data, type=_State)
    # 0 stands for "no port", and may occur several times.
    ports = [r.port for r in file.robots if r.port] + [p for p in file.factories if p]
    if len(set(ports)) < len(ports):
        raise ValueError("expected different ports, found one of them twice")
    return SavedState(
        tick=file.tick,
        map=file.map,
        speed=file.speed,
        paused=file.paused,
        robots=list(map(_saved_robot, file.robots)),
        visitors={name: Pose(*pose) for name, pose in file.visitors.items()},
        boxes={name: Pose(*pose) for name, pose in file.boxes.items()},
        factories=file.factories,
        # An empty list means that no page was open.
        page=msgspec.convert(file.page, tuple[Port, str, str]) if file.page else (),
        world=file.world,
    )


def _saved_robot(r: _Robot) -> SavedRobot:
    program = r.program
    drives = (
        None
        if program is None
        else Program(
            name=check_name(program.name, "controller"), options=program.options
        )
    )
    name, model = check_name(r.name), check_name(r.model, "robot model")
    return SavedRobot(
        name=name, model=model, pose=Pose(*r.pose), port=r.port, program=drives
    )


def encode_state(state: SavedState) -> bytes:
    """Encode a state as the bytes of a state file."""
    # JSON has no bytes; msgspec decodes base64 for a field of type bytes.
    world = base64.b64encode(state.world).decode()
    fields = {
        "version": VERSION,
        # The world is removed first: `asdict` would copy its bytes.
        **asdict(replace(state, world=b"")),
        "world": world,
        "about": MARK,
    }
    return json.dumps(fields, default=str).encode()


__all__ = [
    "MAX_THINGS",
    "MAX_TICK",
    "VERSION",
    "SavedRobot",
    "SavedState",
    "decode_state",
    "encode_state",
]
