"""A run done again from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch

from botyard.errors import StateError
from botyard.sim import journal
from botyard.sim.journal import Change, Entry, acting
from botyard.sim.simulation import Simulation


def resimulate(sim: Simulation, entries: Iterable[Entry], ticks: int) -> Iterator[int]:
    """Do all changes of a journal again, and step until `ticks` steps have been done. Programs that drive robots do not think meanwhile.

    Parameters
    ----------
    sim : Simulation
        The first world, as it was when the journal began.
    entries : iterable of Entry
        The journal, in its order.
    ticks : int
        Steps that the world had done at its end.

    Yields
    ------
    int
        `Simulation.digest` after each step, before what was done to the world then. At the end all changes are done.

    Raises
    ------
    StateError
        The world is not the first one: a change is of a tick that is over.
    """
    for entry in entries:
        yield from _up_to(sim, entry.tick)
        with acting(entry.source):
            apply(entry.change, sim, entry.source)
    yield from _up_to(sim, ticks)


def _up_to(sim: Simulation, tick: int) -> Iterator[int]:
    if sim.tick > tick:
        raise StateError(
            f"journal: the next change is of tick {tick}, but {sim.tick} steps have been done: it is of another world"
        )
    while sim.tick < tick:
        sim.engine.step()  # not what is called before a step: what programs did is in the journal
        yield sim.digest()


@singledispatch
def apply(change: Change, sim: Simulation, source: str) -> None:
    """Do a change again, for a source. StateError: nobody knows how."""
    raise StateError(f"journal: nobody knows how to do {type(change).__name__} again")


@apply.register
def _(change: journal.Submit, sim: Simulation, source: str) -> None:
    sim.submit(change.name, change.command, source)


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
    sim.know(change.described)
    sim.restore(change.state)


__all__ = ["apply", "resimulate"]
