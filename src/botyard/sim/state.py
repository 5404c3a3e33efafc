"""The state of a simulation as a value: saved as bytes, restored, cloned, pickled.
Going on from it gives the same run, bit for bit.

The bytes hold all that changes, and digests of what does not: the map, and the models
of robots and boxes. They are restored only into a simulation with the same map, where
the same models are known: seen before in that simulation, or installed under the same
names. `botyard.engine.state` has the layout and the columns, `botyard.sim.statehead`
all else.
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
    """A simulation whose state is a value. The parameters are those of `Population`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = Known()
        self._episodes = Episodes(self.engine)

    @abstractmethod
    def _employ(self, robot: R, program: Program) -> None:
        """Let a program drive a robot from the next step on."""

    def save_state(self, *, programs: bool = True) -> bytes:
        """The state of the world as bytes: `restore` goes on from it, bit for bit.

        They hold all that changes, and digests of the map and of the models. What runs
        outside of the world is not in them: functions of `before_step`, clients'
        sessions, viewers.

        Parameters
        ----------
        programs : bool
            Whether the controllers that drive robots are in it, with their states.
            Without them, a run goes on by its journal alone.

        Raises
        ------
        StateError
            A robot is driven by a controller whose state cannot be saved (without
            ``get_state`` and ``set_state``).
        """
        controllers = (
            controllers_of(self) if arguments.flag(programs, "programs") else []
        )
        return join(
            msgspec.msgpack.encode(head_of(self, self._known, controllers)),
            list(columns_of(self.engine)),
        )

    def save_moment(self, number: int) -> bytes:
        """The bytes of `save_state` with a number (uint64) in place of the checksum,
        which takes most of the time: for who saves often.

        `sealed` makes a state of them. StateError: see `save_state`.
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
                number.to_bytes(CHECKSUM, "little"),
            )
        )

    def restore(
        self, state: bytes, *, programs: bool = True, budget: Budget = Budget()
    ) -> None:
        """Go on from a state of this simulation or of another one with the same map.

        Robots that are missing are added, those that are not in the state are removed;
        handles of the others stay valid.

        Parameters
        ----------
        state : bytes
            Result of `save_state`.
        programs : bool
            False: the controllers in it are left out, and those of this simulation end;
            nothing that the state names is run.
        budget : Budget
            Limits its size.

        Raises
        ------
        StateError
            It is not a state, is damaged, too large, of another version of botyard, of
            another map, or of unknown models. Nothing has changed then, unless a
            controller refuses its own state.
        """
        self._check_thread()
        arguments.instance(budget, "budget", Budget)
        employ = self._employ if arguments.flag(programs, "programs") else None
        tick, models = self.tick, list[object]()
        try:
            with self._journal:
                restore(self, self._known, state, budget, employ, models)
        finally:
            self.feed.tell(*SAVED)

        if self._journal.is_read:
            self._journal.note(tick, None, Restore(bytes(state), tuple(models)))

    def branch(self, state: bytes, scene: Scene | None = None) -> None:
        """Go on from an earlier state of this simulation, while clients are connected
        to it.

        The world goes back whole, as `restore` does it. What belongs to connections
        stays as it is: who commands robots (`Robot.clients`), holds bodies and reads
        sensors, and of robots that clients command rays, motors, limits and ramps.
        Commands that waited in the state are dropped; robots that clients command, or
        commanded then, stop and wait for the next command. Pioneer clients learn of it
        as of being placed.

        Parameters
        ----------
        state : bytes
            Result of `save_state`.
        scene : Scene, optional
            The map of that time, if it may have been another one.

        Raises
        ------
        StateError
            See `restore`. Only the map may have changed then.
        """
        self._check_thread()
        branch(self, self._known, self.restore, state, scene)

    def models(self) -> tuple[object, ...]:
        """Models, boxes and description files that a state of now refers to, for
        `know`: a world forgets old ones at some time.
        """
        specs = {id(robot.spec): robot.spec for robot in self.robots.values()}
        return (*specs.values(), *self.scene.boxes, self.described)

    def know(self, described: Sequence[object]) -> None:
        """Remember models and boxes that states to be restored may refer to, as if they
        had been in this world.
        """
        for one in described:
            self._known.digest(one)

    def digest(self) -> int:
        """64-bit digest of the state without that of controllers, computed at each
        call; equal states have equal digests.
        """
        return digest_of(
            digested_head(head_of(self, self._known, [])), columns_of(self.engine)
        )

    def clone(self, seed: int | None = None) -> Self:
        """Another simulation in the same state. With `seed`, its random draws differ
        from now on.

        Raises
        ------
        StateError
            See `save_state`; also when a function of `before_step` is not that of a
            program.
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
        kind, scene, models, described, *others = parts(self)
        return unpickled, (
            VERSION,
            kind,
            *packed((scene, models, described), {}),
            *others,
        )


def sealed(moment: bytes) -> bytes:
    """The state of `Restorable.save_moment`: with its checksum."""
    body = moment[:-CHECKSUM]
    return body + hashlib.blake2b(body, digest_size=CHECKSUM).digest()


def _silent(text: str) -> None:
    """Receives warnings while a world is cloned: they were given when it was made."""


def parts(sim: Restorable[Any], seed: int | None = None) -> tuple[Any, ...]:
    """Arguments of `rebuild`; scene and models are shared."""
    loose = sim._programs.others
    if loose:
        what = getattr(loose[0], "__qualname__", None) or type(loose[0]).__name__
        raise StateError(
            f"the function {what}, called before every step, is not a part of "
            "the world: take it off (not_before_step) to clone or pickle, "
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
    """A simulation out of its pickle; of format 1, `rebuild` alone is in it.
    StateError: it is of a format that is not read.
    """
    if version not in READS:
        reads = " or ".join(map(str, READS))
        raise StateError(
            f"pickle of a simulation: expected version {reads} of the format, found {version}"
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
    """Make a simulation of `parts`. Without `seed` it has that of the state."""
    sim = kind(scene, warn=_silent, **options)
    for model in (*models, *scene.boxes, described):
        sim._known.digest(model)
    sim.restore(state)
    if seed is not None:
        sim.engine.reseed(seed)
    if counted is not None:
        sim._episodes.count(*counted)
    sim.warn_by(None)
    return sim


__all__ = ["Restorable", "parts", "rebuild", "sealed"]
