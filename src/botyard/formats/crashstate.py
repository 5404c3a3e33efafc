"""Format of the state file for a restart after a crash: JSON, without I/O.

`botyard.servers.jobs.statefile` writes and reads the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from botyard.codec.forms import Reader, written
from botyard.geometry import Pose
from botyard.model.world import Program
from botyard.names import MAX_NAME, check_name
from botyard.processes.safefile import MARK

VERSION: Final = 1
MAX_THINGS: Final = 1_000_000
"""Largest number of robots, and of boxes, in a state file."""
MAX_TICK: Final = 10**12
"""Largest number of steps in a state file: 30 years of steps of 1 ms."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Many = Meta(max_length=MAX_THINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRobot:
    """Robot in a state file, or an obstacle that was added.

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

    name: Name
    model: Name
    pose: Pose
    port: Port = 0
    program: Program | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """Contents of a state file: the state of a running simulator.

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

    tick: Annotated[int, Meta(ge=0, le=MAX_TICK)]
    map: Annotated[str, Meta(max_length=4096, pattern=r"^[^\x00]*$")]
    speed: Annotated[float, Meta(ge=0.0, le=1000.0)]
    paused: bool
    robots: Annotated[Sequence[SavedRobot], Many] = ()
    visitors: Annotated[Mapping[str, Pose], Many] = field(default_factory=dict)
    boxes: Annotated[Mapping[str, Pose], Many] = field(default_factory=dict)
    factories: Annotated[Sequence[Port], Many] = ()
    page: Annotated[Sequence[int | str], Meta(max_length=3)] = ()
    world: bytes = b""


_Fields = dict[str, msgspec.Raw]
_ABOUT: Final = ("version", "about")
"""Keys of the file that are not fields of `SavedState`."""


def decode_state(data: bytes) -> SavedState:
    """Decode the bytes of a state file.

    Raises
    ------
    ValueError, BotyardError, RecursionError
        The bytes are not a valid state.
    """
    fields = msgspec.json.decode(data, type=_Fields)
    # The version comes first, so that a file of another version gets a clear error.
    said = msgspec.json.decode(fields.get("version", b""), type=int)
    if said != VERSION:
        raise ValueError(f"expected version {VERSION} of the format, found {said}")
    reader = Reader(free=len(data), decode=msgspec.json.decode, inline=True)
    known = {name: raw for name, raw in fields.items() if name not in _ABOUT}
    state: SavedState = reader.value(msgspec.json.encode(known), SavedState)
    # 0 means "no port", and may occur several times.
    ports = [
        port for port in (*(r.port for r in state.robots), *state.factories) if port
    ]
    if len(set(ports)) < len(ports):
        raise ValueError("expected different ports, found one of them twice")
    for robot in state.robots:
        check_name(robot.name)
        check_name(robot.model, "robot model")
        if robot.program is not None:
            check_name(robot.program.name, "controller")

    # An empty list means that no page was open.
    if state.page:
        msgspec.convert(state.page, tuple[Port, str, str])
    return state


def encode_state(state: SavedState) -> bytes:
    """Encode a state as the bytes of a state file."""
    fields = {
        "version": VERSION,
        **written(state, SavedState, inline=True),
        "about": MARK,
    }
    return msgspec.json.encode(fields, enc_hook=str)


__all__ = [
    "MAX_THINGS",
    "MAX_TICK",
    "VERSION",
    "SavedRobot",
    "SavedState",
    "decode_state",
    "encode_state",
]
