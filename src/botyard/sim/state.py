"""State of a simulation as a value: saved as bytes, restored, cloned, pickled.

A run that continues from a state is the same, bit for bit.

The bytes hold everything that changes, and digests of the constant parts: the map, and
the models of robots and boxes. They can be restored only into a simulation that has the
same map and knows the same models. It knows models that it has seen before, and models
installed under the same names. `botyard.engine.state` defines the layout and the
columns, `botyard.sim.statehead` the rest.
"""

from __future__ import annotations

import hashlib
import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from botyard.api import arguments
from botyard.api.revisions import SAVED
from botyard.engine.state import (
    CHECKSUM,
    MAGIC,
    READS,
    VERSION,
    columns_of,
    digest_of,
    join,
)
from botyard.errors import StateError
from botyard.formats.budget import Budget
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.shapes import packed
from botyard.model.world import Program
from botyard.sim.branching import branch
from botyard.sim.episodes import Episodes
from botyard.sim.journal import Restore
from botyard.sim.population import Population
from botyard.sim.restoring import restore
from botyard.sim.robot import R
from botyard.sim.statehead import Known, controllers_of, digested_head, head_of

S = TypeVar("S", bound="Restorable[Any]")


class Restorable(Population[R]):
    """Simulation whose state is a value. Takes the parameters of `Population`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = Known()
        self._episodes = Episodes(self.engine)

    @abstractmethod
    def _employ(self, robot: R, program: Program) -> None:
        """Let a program drive a robot from the next step on."""

    def save_state(self, *, programs: bool = True) -> bytes:
        """Return the state of the world as bytes.

        `restore` continues from it, bit for bit.

        The bytes hold everything that changes, and digests of the map and of the
        models. Parts outside of the world are left out: functions of `before_step`,
        sessions of clients, viewers.

        Parameters
        ----------
        programs : bool
            Whether to include the controllers that drive robots, with their states. Without
            them, a run continues by its journal alone.

        Raises
        ------
        StateError
            The state of a robot's controller cannot be saved, because the controller has no
            ``get_state`` and ``set_state``.
        """
        controllers = (
            controllers_of(self) if arguments.flag(programs, "programs") else []
        )
        return join(
            msgspec.msgpack.encode(head_of(self, self._known, controllers)),
            list(columns_of(self.engine)),
        )

    def save_moment(self, number: int) -> bytes:
        """Return the bytes of `save_state` with a number in place of the checksum.

        The number is a uint64.

        For callers that save often, because the checksum takes most of the time.
        `sealed` turns the bytes into a state. Raises StateError like `save_state`.
        """
        head = msgspec.msgpack.encode(head_of(self, self._known, controllers_of(self)))
        columns = [
            np.ascontiguousarray(column).data for column in columns_of(self.engine)
        ]
        return b"".join(
            (
                MAGIC,
                struct.pack("<I", len(head)),
                head,
                *columns,
                # The number has the size of the checksum, so that `sealed` keeps the
                # length.
                number.to_bytes(CHECKSUM, "little"),
            )
        )

    def restore(
        self, state: bytes, *, programs: bool = True, budget: Budget = Budget()
    ) -> None:
        """Continue from a state of this simulation or of another one with the same map.

        Missing robots are added, and robots that the state does not have are removed.
        Handles of the other robots stay valid.

        Parameters
        ----------
        state : bytes
            Result of `save_state`.
        programs : bool
            False: leave out the controllers of the state and end the controllers of this
            simulation. No code that the state names is run.
        budget : Budget
            Bounds the size of the state.

        Raises
        ------
        StateError
            The bytes are not a state, are damaged, too large, of another version of botyard, of
            another map, or of unknown models. The world is then unchanged, unless a controller
            refuses its own state.
        """
        self._check_thread()
        arguments.instance(budget, "budget", Budget)
        employ = self._employ if arguments.flag(programs, "programs") else None
        tick, models = self.tick, list[object]()
        # Changes that are parts of the restoration have no entries of their own.
        try:
            with self._journal:
                restore(self, self._known, state, budget, employ, models)
        finally:
            self.feed.tell(*SAVED)

        # The bytes are copied only for a listener; they may be large.
        if self._journal.is_read:
            self._journal.note(tick, None, Restore(bytes(state), tuple(models)))

    def branch(self, state: bytes, scene: Scene | None = None) -> None:
        """Continue from an earlier state of this simulation with clients connected.

        The whole world goes back, as with `restore`. Properties of connections keep
        their present values: the sources that command robots (`Robot.clients`), hold
        bodies and read sensors. Robots under command of clients also keep rays, motors,
        limits and ramps.

        Commands that waited in the state are dropped. Robots that clients command, or
        commanded then, stop and wait for the next command. Pioneer clients see it as a
        placement.

        Parameters
        ----------
        state : bytes
            Result of `save_state`.
        scene : Scene, optional
            Map of that time, if it may differ from the present one.

        Raises
        ------
        StateError
            See `restore`. At most the map has changed then.
        """
        self._check_thread()
        branch(self, self._known, self.restore, state, scene)

    def models(self) -> tuple[object, ...]:
        """Return models, boxes and description files that a state saved now refers to.

        Pass them to `know` later: a world forgets old ones after some time.
        """
        specs = {id(robot.spec): robot.spec for robot in self.robots.values()}
        return (*specs.values(), *self.scene.boxes, self.described)

    def know(self, described: Sequence[object]) -> None:
        """Remember models and boxes that later restored states may refer to.

        The effect is the same as if they had been in this world.
        """
        for one in described:
            self._known.digest(one)

    def digest(self) -> int:
        """Return a 64-bit digest of the state without the states of controllers.

        Each call computes it. Equal states have equal digests.
        """
        return digest_of(
            digested_head(head_of(self, self._known, [])), columns_of(self.engine)
        )

    def clone(self, seed: int | None = None) -> Self:
        """Return another simulation in the same state.

        With `seed`, its random draws differ from now on.

        Raises
        ------
        StateError
            See `save_state`; also if `before_step` calls a function that is not a program.
        """
        copy: Self = rebuild(
            *parts(self, None if seed is None else arguments.seed(seed))
        )
        return copy

    def __copy__(self) -> Self:
        return self.clone()

    def __deepcopy__(self, memo: object) -> Self:
        return self.clone()

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:  # type: ignore[override]
        # Models are packed by fields, so that old pickles survive changes of classes.
        kind, scene, models, described, *others = parts(self)
        return unpickled, (
            VERSION,
            kind,
            *packed((scene, models, described), {}),
            *others,
        )


def sealed(moment: bytes) -> bytes:
    """Return the state of a result of `Restorable.save_moment`, with its checksum."""
    body = moment[:-CHECKSUM]
    return body + hashlib.blake2b(body, digest_size=CHECKSUM).digest()


def _silent(text: str) -> None:
    """Discard a warning while a world is cloned: the original has already reported it."""


def parts(sim: Restorable[Any], seed: int | None = None) -> tuple[Any, ...]:
    """Return the arguments of `rebuild`; scene and models are shared."""
    # Functions cannot be copied to another simulation.
    loose = sim._programs.others
    if loose:
        what = getattr(loose[0], "__qualname__", None) or type(loose[0]).__name__
        raise StateError(
            f"the function {what}, called before every step, is not a part of "
            "the world: remove it (not_before_step) before you clone or pickle, "
            "or make it a controller with get_state and set_state"
        )

    state = sim.save_state()
    options = {
        "step": sim.dt,
        "odometry_error": sim.engine.odometry_error_mode.name.lower(),
        "sensor_noise": sim.sensor_noise,
        "threads": sim.threads,
        "range_step": sim.range_step,
    }
    models = list(
        {id(robot.spec): robot.spec for robot in sim.robots.values()}.values()
    )
    return (
        type(sim),
        sim.scene,
        models,
        sim.described,
        options,
        state,
        sim.seed if seed is None else seed,
        sim._episodes.seed_and_number,
    )


def unpickled(version: int, *given: Any) -> Any:
    """Return the simulation of a pickle; a pickle of format 1 calls `rebuild` alone.

    Raise StateError if the format is not supported.
    """
    # A pickle may come from a newer version with other arguments.
    if version not in READS:
        reads = " or ".join(map(str, READS))
        raise StateError(
            f"pickle of a simulation: expected version {reads} of the format, "
            f"found {version}"
        )

    return rebuild(*given)


def rebuild(
    kind: Callable[..., S],
    scene: Any,
    models: Sequence[RobotSpec],
    described: Any,
    options: Mapping[str, Any],
    state: bytes,
    seed: int | None = None,
    counted: tuple[int, int] | None = None,
) -> S:
    """Make a simulation of `parts`. Without `seed` it keeps the seed of the state."""
    sim = kind(scene, warn=_silent, **options)
    for model in (*models, *scene.boxes, described):
        # Digests in the state refer to these descriptions.
        sim._known.digest(model)
    sim.restore(state)
    if seed is not None:
        sim.engine.reseed(seed)
    if counted is not None:
        sim._episodes.count(*counted)
    # Later warnings of the copy concern its user.
    sim.warn_by(None)
    return sim


__all__ = ["Restorable", "parts", "rebuild", "sealed"]
