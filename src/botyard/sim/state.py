"""State of a simulation as a value: saved as bytes, restored, cloned, pickled.

A run that continues from a state is the same, bit for bit.
`botyard.sim.savedstates` makes and restores the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from botyard.api import arguments
from botyard.engine.state import READS, VERSION
from botyard.errors import StateError
from botyard.formats.budget import Budget
from botyard.model.robot import RobotSpec
from botyard.model.shapes import packed
from botyard.sim.population import Population
from botyard.sim.robot import R

S = TypeVar("S", bound="Restorable[Any]")


class Restorable(Population[R]):
    """Simulation that saves, restores, copies and pickles its state."""

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
            them, commands of controllers must come from a journal.

        Raises
        ------
        StateError
            The state of a robot's controller cannot be saved, because the controller has no
            ``get_state`` and ``set_state``.
        """
        return self.core.states.save(arguments.flag(programs, "programs"))

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
        arguments.instance(budget, "budget", Budget)
        self.core.states.restore(
            state, programs=arguments.flag(programs, "programs"), budget=budget
        )

    def digest(self) -> int:
        """Return a 64-bit digest of the state without the states of controllers.

        Each call computes it. Equal states have equal digests, also in another process
        and on another platform.

        Returns
        -------
        int
            From 0 to 2⁶⁴ − 1.
        """
        return self.core.states.digest()

    def clone(self, seed: int | None = None) -> Self:
        """Return another simulation in the same state.

        Map and models are shared. Observers, recordings and the log of `events` stay
        with this simulation.

        Parameters
        ----------
        seed : int, optional
            Seed from which the copy's random draws differ from now on. Default: both
            draw the same numbers.

        Raises
        ------
        StateError
            See `save_state`; also if `before_step` calls a function that is not a
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
        # Models are packed by fields, so that old pickles survive changes of classes.
        kind, scene, models, described, *others = parts(self)
        return unpickled, (
            VERSION,
            kind,
            *packed((scene, models, described), {}),
            *others,
        )


def _silent(text: str) -> None:
    """Discard a warning of a cloned world: the original world has already reported it."""


def parts(sim: Restorable[Any], seed: int | None = None) -> tuple[Any, ...]:
    """Return the arguments of `rebuild`; scene and models are shared.

    Parameters
    ----------
    sim : Simulation
        Simulation to copy.
    seed : int, optional
        Seed of the copy's later random draws. Default: the seed of `sim`.

    Raises
    ------
    StateError
        `before_step` calls a function that is not a program, or the state of a
        controller cannot be saved.
    """
    # Functions cannot be copied to another simulation.
    loose = sim.core.programs.others
    if loose:
        what = getattr(loose[0], "__qualname__", None) or type(loose[0]).__name__
        raise StateError(
            f"the function {what}, called before every step, cannot be copied with "
            "the world: remove it before you clone or pickle (call the result of "
            "before_step), or make it a controller with get_state and set_state"
        )

    state = sim.save_state()
    models = list(
        {id(robot.spec): robot.spec for robot in sim.robots.values()}.values()
    )
    return (
        type(sim),
        sim.core.scene,
        models,
        sim.core.descriptions.described,
        settings_of(sim),
        state,
        sim.core.seed if seed is None else seed,
        sim.core.episodes.seed_and_number,
    )


def settings_of(sim: Restorable[Any]) -> dict[str, Any]:
    """Return the arguments that give another simulation the settings of this one."""
    return {
        "step": sim.core.dt,
        "odometry_error": sim.core.engine.odometry_error_mode.name.lower(),
        "sensor_noise": sim.core.sensor_noise,
        "threads": sim.core.threads,
        "range_step": sim.core.range_step,
    }


def unpickled(version: int, *given: Any) -> Any:
    """Return the simulation of a pickle; a pickle of format 1 calls `rebuild` alone.

    Parameters
    ----------
    version : int
        Version of the format.
    *given
        Arguments of `rebuild`.

    Raises
    ------
    StateError
        The version is not supported.
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
    """Make a simulation from the arguments that `parts` returns.

    Parameters
    ----------
    kind : callable
        Class of the simulation.
    scene : Scene
        Map.
    models : sequence of RobotSpec
        Models of its robots, to which the state refers by digest.
    described : Described
        Joints and sensors of description files.
    options : mapping
        Other arguments of the class by name.
    state : bytes
        Result of `Simulation.save_state`.
    seed : int, optional
        Seed of all later random draws. Default: the seed of the state.
    counted : (int, int), optional
        Seed of the world and number of the episode, which the state does not hold.

    Raises
    ------
    StateError
        The state is damaged or does not fit the other arguments.
    """
    sim = kind(scene, warn=_silent, **options)
    for model in (*models, *scene.boxes, described):
        # Digests in the state refer to these descriptions.
        sim.core.states.known.digest(model)
    sim.restore(state)
    if seed is not None:
        sim.core.engine.reseed(seed)
    if counted is not None:
        sim.core.episodes.count(*counted)
    # Later warnings of the copy concern its user.
    sim.core.warn_by(None)
    return sim


__all__ = ["Restorable", "parts", "rebuild", "settings_of"]
