"""What a recording needs of a run, as bytes: journal entries, the scene, models, and
how the simulation was set up.

`botyard.recording.wire` has the layout. A new subclass of `Change`, a new command or a
new field of a description is written and read by its declared types, without a line
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass

from botyard.engine.commands import Command
from botyard.formats.budget import Budget
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.recording import wire
from botyard.sim.journal import Change, Entry
from botyard.sim.simulation import Simulation
from botyard.sim.statehead import COMMANDS

Model = RobotSpec | BoxObject | Described
"""What a saved state refers to by digest: models of robots, boxes, and what description
files hold.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Arguments of `Simulation` that are not in its saved state, and its seed.

    Attributes
    ----------
    seed, step, odometry_error, sensor_noise, threads, range_step
        See `Simulation`.
    """

    seed: int
    step: float
    odometry_error: str
    sensor_noise: bool
    threads: int
    range_step: float


def changes() -> dict[str, type[Change]]:
    """All kinds of changes by their names: the dataclasses among the subclasses of
    `Change`.
    """
    return {kind.__name__: kind for kind in _below(Change) if is_dataclass(kind)}


def _below(kind: type[Change]) -> Iterator[type[Change]]:
    """All subclasses, in the order of creation: a dataclass with slots comes after the
    class that it was made of.
    """
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


Driven = tuple[int, int, str, str, float | None, float | None, float | None]
"""A journal entry about a `SetVelocity` to one body: tick, order, source; name of the
body; v, w, vy.

A plain tuple: thousands may wait to be written, and Python's garbage collector goes
over objects that hold others again and again, but not over tuples of numbers and texts.
"""

wire.declare(Change, changes)
wire.declare(Command, lambda: COMMANDS)
wire.declare(
    object, lambda: {kind.__name__: kind for kind in (RobotSpec, BoxObject, Described)}
)


def encode_entry(entry: Entry) -> bytes:
    """A journal entry as bytes. RecordingError: a command or a value in it is not data."""
    return wire.encode("entry", entry, Entry)


def encode_driven(one: Driven) -> bytes:
    """What `encode_entry` makes of the entry; RecordingError: a value is not data."""
    tick, order, source, name, v, w, vy = one
    change = [
        "Submit",
        {"name": name, "command": ["SetVelocity", {"v": v, "w": w, "vy": vy}]},
    ]
    return wire.encode_plain(
        "entry", {"tick": tick, "order": order, "source": source, "change": change}
    )


def encode_drives(several: Sequence[Driven]) -> bytes:
    """An entry about several commands with one tick and source, whose numbers follow
    each other; RecordingError: a value is not data.
    """
    ticks, orders, sources, names, v, w, vy = zip(*several, strict=True)
    change = ["SubmitEach", {"names": names, "v": v, "w": w, "vy": vy}]
    return wire.encode_plain(
        "entry",
        {"tick": ticks[0], "order": orders[0], "source": sources[0], "change": change},
    )


def decode_entry(data: bytes, budget: Budget = Budget()) -> Entry:
    """The journal entry of `encode_entry`. RecordingError: see
    `botyard.recording.wire.decode`.
    """
    found: Entry = wire.decode(data, "entry", Entry, budget)
    return found


def encode_scene(scene: Scene) -> bytes:
    """A scene as bytes."""
    return wire.encode("scene", scene, Scene)


def decode_scene(data: bytes, budget: Budget = Budget()) -> Scene:
    """The scene of `encode_scene`. RecordingError: see `botyard.recording.wire.decode`."""
    found: Scene = wire.decode(data, "scene", Scene, budget)
    return found


def encode_model(model: object) -> bytes:
    """A `Model` as bytes. RecordingError: it is of another class, or holds what is not
    data.
    """
    return wire.encode("model", model, object)


def decode_model(data: bytes, budget: Budget = Budget()) -> Model:
    """The model of `encode_model`. RecordingError: see `botyard.recording.wire.decode`."""
    found: Model = wire.decode(data, "model", object, budget)
    return found


def setup_of(sim: Simulation) -> Setup:
    """How a simulation was set up."""
    return Setup(
        seed=sim.seed,
        step=sim.dt,
        odometry_error=sim.engine.odometry_error_mode.name.lower(),
        sensor_noise=sim.sensor_noise,
        threads=sim.threads,
        range_step=sim.range_step,
    )


def models_of(sim: Simulation) -> Sequence[Model]:
    """All models that a saved state of a simulation may refer to: those of its robots
    and boxes, and what description files hold.
    """
    sim.digest()  # makes them known
    return [one for one in sim._known.objects.values() if isinstance(one, Model)]


def encode_setup(setup: Setup) -> bytes:
    """A setup as bytes."""
    return wire.encode("setup", setup, Setup)


def decode_setup(data: bytes, budget: Budget = Budget()) -> Setup:
    """The setup of `encode_setup`. RecordingError: see `botyard.recording.wire.decode`."""
    found: Setup = wire.decode(data, "setup", Setup, budget)
    return found


__all__ = [
    "Driven",
    "Model",
    "Setup",
    "changes",
    "decode_entry",
    "decode_model",
    "decode_scene",
    "decode_setup",
    "encode_driven",
    "encode_drives",
    "encode_entry",
    "encode_model",
    "encode_scene",
    "encode_setup",
    "models_of",
    "setup_of",
]
