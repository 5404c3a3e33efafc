"""Codec of the data that a recording needs of a run.

The codec encodes journal entries, the scene, models, and the setup of the simulation.
`botyard.codec.messages` defines the layout. A new subclass of `Change`, a new command
or a new field is encoded by its declared types, without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from botyard.codec import messages
from botyard.codec.forms import declare
from botyard.codec.messages import DamagedMessage, NotDataError
from botyard.engine.commands import Command
from botyard.errors import RecordingError
from botyard.formats.budget import Budget
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.sim.journal import Change, Entry
from botyard.sim.simulation import Simulation
from botyard.sim.statehead import COMMANDS

Model = RobotSpec | BoxObject | Described
"""Objects that a saved state refers to by digest.

These are models of robots, boxes, and contents of description files.
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
    """Return the subclasses of `Change` by name: all kinds of changes of a world."""
    return {kind.__name__: kind for kind in _below(Change) if is_dataclass(kind)}


def _below(kind: type[Change]) -> Iterator[type[Change]]:
    """Yield all subclasses of a class, direct and indirect, in order of creation.

    The decorator for a dataclass with slots makes a second class, which follows the
    first.
    """
    # Subclasses of subclasses count as well.
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


Driven = tuple[int, int, str, str, float | None, float | None, float | None]
"""Journal entry about a `SetVelocity` of one body.

Fields: tick, order, source; name of the body; v, w, vy. The entry is a plain tuple,
because thousands may wait for the writer. Python's garbage collector visits objects
that hold other objects again and again, but not tuples of numbers and strings.
"""

# Packages can add classes at any time, so each use looks them up.
declare(Change, changes)
declare(Command, lambda: COMMANDS)
declare(
    object, lambda: {kind.__name__: kind for kind in (RobotSpec, BoxObject, Described)}
)


def _encode(kind: str, body: Any, hint: Any) -> bytes:
    try:
        return messages.encode(kind, body, hint)
    except NotDataError as error:
        raise _refusal(kind, error) from None


def _encode_plain(kind: str, body: Any) -> bytes:
    try:
        return messages.encode_plain(kind, body)
    except NotDataError as error:
        raise _refusal(kind, error) from None


def _refusal(kind: str, error: NotDataError) -> RecordingError:
    return RecordingError(f"{kind}: it cannot be recorded: {error}")


def _decode(data: bytes, kind: str, hint: Any, budget: Budget) -> Any:
    """Decode a message.

    Raises
    ------
    RecordingError
        The bytes are not such a message, are damaged, have a newer version, exceed
        `budget.bytes`, or contain a description that is not valid.
    """
    # The limit is checked before decoding, which may need several times this memory.
    if len(data) > budget.bytes:
        raise RecordingError(
            f"{kind}: expected at most {budget.bytes} bytes, found {len(data)} "
            "(budget.bytes raises this limit)"
        )

    try:
        return messages.decode(data, kind, hint)
    # A nested value can exhaust the memory although its bytes are few.
    except (DamagedMessage, MemoryError) as error:
        raise RecordingError(f"{kind}: {error}") from None


def encode_entry(entry: Entry) -> bytes:
    """Encode a journal entry.

    Parameters
    ----------
    entry : Entry
        Entry; its change, command and values must be data, not code.

    Raises
    ------
    RecordingError
        A command or a value in it is not data.
    """
    return _encode("entry", entry, Entry)


def encode_driven(one: Driven) -> bytes:
    """Encode a `Driven` to the bytes that `encode_entry` returns for its entry.

    Raises
    ------
    RecordingError
        A value is not data.
    """
    tick, order, source, name, v, w, vy = one
    change = [
        "Submit",
        {"name": name, "command": ["SetVelocity", {"v": v, "w": w, "vy": vy}]},
    ]
    return _encode_plain(
        "entry", {"tick": tick, "order": order, "source": source, "change": change}
    )


def encode_drives(several: Sequence[Driven]) -> bytes:
    """Encode several commands as one entry.

    Parameters
    ----------
    several : sequence of Driven
        Commands of one tick and source, at least one, with consecutive order numbers.

    Raises
    ------
    RecordingError
        A value is not data.
    """
    # All commands have the same step and source, so the entry stores these once.
    ticks, orders, sources, names, v, w, vy = zip(*several, strict=True)
    change = ["SubmitEach", {"names": names, "v": v, "w": w, "vy": vy}]
    return _encode_plain(
        "entry",
        {"tick": ticks[0], "order": orders[0], "source": sources[0], "change": change},
    )


def decode_entry(data: bytes, budget: Budget = Budget()) -> Entry:
    """Decode a journal entry.

    Parameters
    ----------
    data : bytes
        Result of `encode_entry`, `encode_driven` or `encode_drives`.
    budget : Budget
        Limits the number of bytes.

    Raises
    ------
    RecordingError
        The bytes are not such an entry, are damaged or of a newer version, or exceed
        the limit.
    """
    found: Entry = _decode(data, "entry", Entry, budget)
    return found


def encode_scene(scene: Scene) -> bytes:
    """Encode a scene."""
    return _encode("scene", scene, Scene)


def decode_scene(data: bytes, budget: Budget = Budget()) -> Scene:
    """Decode a scene.

    Parameters
    ----------
    data : bytes
        Result of `encode_scene`.
    budget : Budget
        Limits the number of bytes.

    Raises
    ------
    RecordingError
        The bytes are not a scene, are damaged or of a newer version, or exceed the
        limit.
    """
    found: Scene = _decode(data, "scene", Scene, budget)
    return found


def encode_model(model: object) -> bytes:
    """Encode a `Model`.

    Raises
    ------
    RecordingError
        The model has another class, or holds values that are not data.
    """
    return _encode("model", model, object)


def decode_model(data: bytes, budget: Budget = Budget()) -> Model:
    """Decode a model.

    Parameters
    ----------
    data : bytes
        Result of `encode_model`.
    budget : Budget
        Limits the number of bytes.

    Raises
    ------
    RecordingError
        The bytes are not a model, are damaged or of a newer version, or exceed the
        limit.
    """
    found: Model = _decode(data, "model", object, budget)
    return found


def setup_of(sim: Simulation) -> Setup:
    """Return the setup of a simulation."""
    return Setup(
        seed=sim.seed,
        step=sim.dt,
        odometry_error=sim.core.engine.odometry_error_mode.name.lower(),
        sensor_noise=sim.core.sensor_noise,
        threads=sim.core.threads,
        range_step=sim.core.range_step,
    )


def models_of(sim: Simulation) -> Sequence[Model]:
    """Return all models that a saved state of a simulation can refer to.

    The result has the models of robots and boxes, and contents of description files.
    """
    # Computing the digest registers all models.
    sim.digest()
    return [
        one for one in sim.core.states.known.objects.values() if isinstance(one, Model)
    ]


def encode_setup(setup: Setup) -> bytes:
    """Encode a setup."""
    return _encode("setup", setup, Setup)


def decode_setup(data: bytes, budget: Budget = Budget()) -> Setup:
    """Decode a setup.

    Parameters
    ----------
    data : bytes
        Result of `encode_setup`.
    budget : Budget
        Limits the number of bytes.

    Raises
    ------
    RecordingError
        The bytes are not a setup, are damaged or of a newer version, or exceed the
        limit.
    """
    found: Setup = _decode(data, "setup", Setup, budget)
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
