"""New names for robots of a running simulation.

A name identifies a robot in random draws, in tables of devices and in every interface.
A renamed robot is therefore another one for all of them: it takes the place of the old
one with its whole state, which passes through a saved state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from botyard.api.revisions import SAVED, Subject
from botyard.devices.devicereader import memory_key
from botyard.devices.worldtables import WORLD_TABLES
from botyard.engine.state import columns_of, join
from botyard.errors import NameRuleError, NameTakenError, StateError, WorldError
from botyard.formats.budget import Budget
from botyard.model.devices import names_of
from botyard.model.trailers import trailer_name
from botyard.model.world import Program
from botyard.names import check_name, shown
from botyard.sim.core import Core
from botyard.sim.journal import RenameRobots
from botyard.sim.programs import Programs, employ
from botyard.sim.restoring import restore
from botyard.sim.statehead import Known, Queued, Roster, head_of, state_of


@dataclass(slots=True)
class _Driven:
    """Program of a renamed robot, with its state; None: it has none, or crashed."""

    program: Program
    state: Any
    has_crashed: bool


def rename_robots(core: Core, known: Known, given: Mapping[str, str]) -> dict[str, str]:
    """Give robots other names between two steps; see `SavedStates.rename_robots`.

    All other handles of robots stay valid. The programs of the renamed robots continue
    if their state can be saved, and start again otherwise.

    Parameters
    ----------
    core : Core
        World to change.
    known : Known
        Descriptions that states of this world refer to.
    given : mapping of str to str
        New names by the old names of robots.

    Returns
    -------
    dict of str to str
        New names by old names of all bodies that were renamed, trailers included.

    Raises
    ------
    UnknownNameError, NameRuleError, NameTakenError, WorldError
        A robot does not exist, a new name is not valid or is taken, or a robot is a
        trailer.
    StateError
        There are too many robots. The world is then unchanged.
    """
    names = _checked(core, given)
    if not names:
        return names
    driven = _driven(core.programs, names)
    for old in driven:
        core.programs.end(old)
    handles = {old: core.robots[old] for old in names}
    try:
        with core.journal:
            _restore(core, known, names)
    except StateError:
        # The world is unchanged, so the programs continue in it.
        for old, one in driven.items():
            _continue(core, old, one)
        raise
    for old, handle in handles.items():
        handle._remove(names[old])
    core.feed.record_change(*(one for one in SAVED if one is not Subject.TIME))
    core.note(None, RenameRobots, tuple(given), tuple(given.values()))
    # After the entry: the journal holds the commands of the programs.
    for old, one in driven.items():
        _continue(core, names[old], one)
    return names


def _checked(core: Core, given: Mapping[str, str]) -> dict[str, str]:
    """Return the changed names, trailers included, after all checks."""
    names: dict[str, str] = {}
    for old, new in given.items():
        robot = core.robots[old]
        check_name(new, error=NameRuleError)
        if robot.spec.is_trailer:
            raise WorldError(
                f"{shown(old)} is a trailer, which has the name of the robot that pulls it"
            )
        if new == old:
            continue
        names[old] = new
        for k, trailer in enumerate(core.engine.trailers_of(old), start=1):
            names[trailer] = trailer_name(new, k)
    taken = core.engine.rows.keys() - names.keys()
    for new in names.values():
        if new in taken:
            raise NameTakenError(f'a body named "{shown(new)}" already exists')
        taken.add(new)
    return names


def _restore(core: Core, known: Known, names: Mapping[str, str]) -> None:
    """Restore the present state with other names of robots."""
    head = head_of(core, known, [])
    roster = msgspec.msgpack.decode(head.roster, type=Roster)
    world_tables = {table.name for table in WORLD_TABLES}
    memories = {
        memory_key(old, device): memory_key(new, device)
        for old, new in names.items()
        for device in names_of(core.robots[old].spec.equipment)
    }
    for body in roster.bodies:
        body.name = names.get(body.name, body.name)
    roster.keys = {
        table: [(names if table in world_tables else memories).get(k, k) for k in keys]
        for table, keys in roster.keys.items()
    }
    roster.unserved = sorted(names.get(name, name) for name in roster.unserved)
    head.roster = msgspec.Raw(msgspec.msgpack.encode(roster))
    for rays in head.rays:
        rays.robot = names.get(rays.robot, rays.robot)
    for reading in head.late:
        reading.robot = names.get(reading.robot, reading.robot)
    waiting: list[Queued] = [*head.queue, *(one.command for one in head.under_way)]
    for queued in waiting:
        queued.body = names.get(queued.body, queued.body)
    head.claims = _renamed(head.claims, names)
    head.holds = _renamed(head.holds, names)
    head.parameters = _renamed(head.parameters, names)
    state = join(msgspec.msgpack.encode(head), list(columns_of(core.engine)))

    left_off = {names.get(n, n): r._is_left_off for n, r in core.robots.items()}
    # The programs of all other robots stay as they are: not each of them can be saved.
    programs, core.programs = core.programs, Programs()
    try:
        # A robot may get the name of another one of its model, which has a handle.
        fresh = frozenset(names.values())
        restore(core, known, state, Budget(), None, [], fresh=fresh)
    finally:
        core.programs = programs
    for name, off in left_off.items():
        core.robots[name]._is_left_off = off


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return values by the new names of bodies."""
    return {names.get(name, name): value for name, value in values.items()}


def _driven(programs: Programs, names: Mapping[str, str]) -> dict[str, _Driven]:
    """Return the programs of robots by name, with their states."""
    crashed, found = programs.crashed, {}
    for name in names:
        program, act = programs.all.get(name, (None, None))
        if program is not None:
            found[name] = _Driven(program, state_of(act), name in crashed)
    return found


def _continue(core: Core, name: str, one: _Driven) -> None:
    """Let a program drive a robot from where it was."""
    if one.has_crashed:
        core.programs.remember_crashed(name, one.program)
        return
    # An error of the program is logged: the robot has its new name already.
    employ(core.robots[name], one.program, anew=True, state=one.state)


__all__ = ["rename_robots"]
