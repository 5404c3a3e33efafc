"""Replay of a run from its journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

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
            f"journal: expected a change of tick {sim.tick} or later, found one of "
            f"tick {tick}: the journal belongs to another world"
        )

    while sim.tick < tick:
        # Functions before a step are left out: the journal holds the commands of
        # programs.
        sim.core.engine.step()
        # Yielded before the changes after this step, as in a recording.
        yield sim.digest()


def _submit_each(change: journal.SubmitEach, sim: Simulation, source: str) -> None:
    for name, command in change.each():
        sim.core.accept_command(name, command, source)


def _set_rays(change: journal.SetRays, sim: Simulation, source: str) -> None:
    laser = sim.robots[change.robot].lasers[change.laser]
    if change.rays is None:
        laser.restore()
    else:
        laser.configure(*change.rays)


def _restore(change: journal.Restore, sim: Simulation, source: str) -> None:
    # The state refers to models by digest only.
    sim.core.states.know(change.described)
    # Do not run programs: the journal holds their commands, which would come twice.
    sim.restore(change.state, programs=False)


def _reset(change: journal.Reset, sim: Simulation, source: str) -> None:
    poses = (
        None if change.poses is None else checked_poses(change.poses, len(sim.robots))
    )
    sim.core.begin_episode(change.seed, change.episode, poses)


REPLAYS: Final[Mapping[type[Change], Callable[[Any, Simulation, str], object]]] = {
    journal.Submit: lambda c, sim, source: sim.core.accept_command(
        c.name, c.command, source
    ),
    journal.SubmitEach: _submit_each,
    journal.SubmitVelocities: lambda c, sim, source: sim.core.accept_velocities(
        c.command, source
    ),
    # Trailers have entries of their own.
    journal.AddRobots: lambda c, sim, _: sim.add_robots(
        c.spec, c.poses, c.names, trailers=False
    ),
    journal.Unserve: lambda c, sim, _: sim.core.unserve(c.names),
    journal.RemoveRobots: lambda c, sim, _: sim.remove_robots(c.names),
    journal.RenameRobots: lambda c, sim, _: sim.core.states.rename_robots(
        dict(zip(c.names, c.to, strict=True))
    ),
    journal.RemoveBox: lambda c, sim, _: sim.remove_box(c.name),
    journal.AddBox: lambda c, sim, _: sim.add_box(c.box, c.name),
    journal.ReplaceScene: lambda c, sim, _: sim.replace_scene(c.scene),
    journal.ReplaceFloor: lambda c, sim, _: sim.floor.replace(c.floor),
    journal.SetZone: lambda c, sim, _: sim.floor.set_zone(c.zone),
    journal.RemoveZone: lambda c, sim, _: sim.floor.remove_zone(c.name),
    journal.MarkFloor: lambda c, sim, _: sim.floor.mark(c.field, c.points, c.amounts),
    journal.ClearField: lambda c, sim, _: sim.floor.clear(c.field),
    journal.SetDynamics: lambda c, sim, _: sim.masses.set_dynamics(c.name, c.spec),
    journal.Attach: lambda c, sim, _: sim.attach(c.carrier, c.name),
    journal.Detach: lambda c, sim, _: sim.detach(c.name),
    journal.Describe: lambda c, sim, _: sim.core.describe(c.described),
    journal.WriteDevice: lambda c, sim, _: (
        sim.core.engine.tables[c.table].rows[c.row].write(**c.values)
    ),
    journal.SetRays: _set_rays,
    journal.SetParameters: lambda c, sim, _: sim.robots[c.robot].set_parameters(
        **c.values
    ),
    journal.Claim: lambda c, sim, source: (
        sim.robots[c.robot].claim(source)
        if c.on
        else sim.robots[c.robot].release(source)
    ),
    journal.Settle: lambda _, sim, __: sim.settle(),
    journal.Restore: _restore,
    journal.Reset: _reset,
}
"""Function that replays a change on behalf of a source, by class of the change."""


def apply(change: Change, sim: Simulation, source: str) -> None:
    """Replay a change on behalf of a source.

    Parameters
    ----------
    change : Change
        Change that a journal has recorded.
    sim : Simulation
        World to change, in the state in which the change was recorded.
    source : str
        Source of the change, in the order of commands.

    Raises
    ------
    StateError
        `REPLAYS` lacks the class of the change.
    """
    replay = REPLAYS.get(type(change))
    if replay is None:
        raise StateError(
            f"journal: no function is registered to replay {type(change).__name__}"
        )
    replay(change, sim, source)


__all__ = ["REPLAYS", "apply", "resimulate"]
