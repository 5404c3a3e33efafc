"""Replay of a run from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch

from botyard.errors import StateError
from botyard.sim import journal
from botyard.sim.episodes import checked_poses
from botyard.sim.journal import Change, Entry, acting
from botyard.sim.simulation import Simulation


def resimulate(sim: Simulation, entries: Iterable[Entry], ticks: int) -> Iterator[int]:
    """Replay all changes of a journal, and step until `ticks` steps are done.

    Programs that drive robots are not called meanwhile.

    Parameters
    ----------
    sim : Simulation
        World in the state in which the journal started.
    entries : iterable of Entry
        Entries of the journal in their order.
    ticks : int
        Number of steps done at the end of the journal.

    Yields
    ------
    int
        `Simulation.digest` after each step, before the changes that follow it. After the
        last one all changes are applied.

    Raises
    ------
    StateError
        The world is in another state: a change belongs to a tick that has passed.
    """
    for entry in entries:
        yield from _up_to(sim, entry.tick)
        # Changes without a source of their own get the source of the entry.
        with acting(entry.source):
            apply(entry.change, sim, entry.source)

    yield from _up_to(sim, ticks)


def _up_to(sim: Simulation, tick: int) -> Iterator[int]:
    # Steps cannot be undone.
    if sim.tick > tick:
        raise StateError(
            f"journal: the next change belongs to tick {tick}, but {sim.tick} steps "
            "are done: the journal belongs to another world"
        )

    while sim.tick < tick:
        # Functions before a step are left out: the journal holds the commands of
        # programs.
        sim.engine.step()
        # Before the changes after this step, like the digests of a recording.
        yield sim.digest()


@singledispatch
def apply(change: Change, sim: Simulation, source: str) -> None:
    """Replay a change on behalf of a source.

    Raise StateError if the class of the change is not registered.
    """
    raise StateError(
        f"journal: no function is registered to replay {type(change).__name__}"
    )


@apply.register
def _(change: journal.Submit, sim: Simulation, source: str) -> None:
    sim.submit(change.name, change.command, source)


@apply.register
def _(change: journal.SubmitEach, sim: Simulation, source: str) -> None:
    for name, command in change.each():
        sim.submit(name, command, source)


@apply.register
def _(change: journal.SubmitVelocities, sim: Simulation, source: str) -> None:
    sim.submit_velocities(change.command, source)


@apply.register
def _(change: journal.AddRobots, sim: Simulation, source: str) -> None:
    sim.add_robots(change.spec, change.poses, change.names)


@apply.register
def _(change: journal.Unserve, sim: Simulation, source: str) -> None:
    sim.unserve(change.names)


@apply.register
def _(change: journal.RemoveRobots, sim: Simulation, source: str) -> None:
    sim.remove_robots(change.names)


@apply.register
def _(change: journal.RemoveBox, sim: Simulation, source: str) -> None:
    sim.remove_box(change.name)


@apply.register
def _(change: journal.AddBox, sim: Simulation, source: str) -> None:
    sim.add_box(change.box, change.name)


@apply.register
def _(change: journal.ReplaceScene, sim: Simulation, source: str) -> None:
    sim.replace_scene(change.scene)


@apply.register
def _(change: journal.SetDynamics, sim: Simulation, source: str) -> None:
    sim.set_dynamics(change.name, change.spec)


@apply.register
def _(change: journal.Attach, sim: Simulation, source: str) -> None:
    sim.attach(change.carrier, change.name)


@apply.register
def _(change: journal.Detach, sim: Simulation, source: str) -> None:
    sim.detach(change.name)


@apply.register
def _(change: journal.Describe, sim: Simulation, source: str) -> None:
    sim.describe(change.described)


@apply.register
def _(change: journal.WriteDevice, sim: Simulation, source: str) -> None:
    sim.engine.tables[change.table].rows[change.row].write(**change.values)


@apply.register
def _(change: journal.SetRays, sim: Simulation, source: str) -> None:
    laser = sim.robots[change.robot].lasers[change.laser]
    if change.rays is None:
        laser.restore()
    else:
        laser.configure(*change.rays)


@apply.register
def _(change: journal.SetParameters, sim: Simulation, source: str) -> None:
    sim.robots[change.robot].set_parameters(**change.values)


@apply.register
def _(change: journal.Claim, sim: Simulation, source: str) -> None:
    robot = sim.robots[change.robot]
    if change.on:
        robot.claim(source)
    else:
        robot.release(source)


@apply.register
def _(change: journal.Settle, sim: Simulation, source: str) -> None:
    sim.settle()


@apply.register
def _(change: journal.Restore, sim: Simulation, source: str) -> None:
    # The state refers to models by digest only.
    sim.know(change.described)
    # The journal holds the commands of programs; running them would double these.
    sim.restore(change.state, programs=False)


__all__ = ["apply", "resimulate"]


@apply.register
def _(change: journal.Reset, sim: Simulation, source: str) -> None:
    poses = (
        None if change.poses is None else checked_poses(change.poses, len(sim.robots))
    )
    sim._begin_episode(change.seed, change.episode, poses)
