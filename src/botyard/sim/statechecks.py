"""Checks of a saved state, whose source is not trusted, before it changes a world."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, cast

import numpy as np

from botyard.devices.worldtables import WORLD_TABLES, expected_rows
from botyard.engine import commands
from botyard.engine.columnchecks import MAX_TICK
from botyard.engine.fields import PREFIX, FieldTable
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.state import VERSION, Begin, program, row_keys, schema
from botyard.engine.tables import Table
from botyard.errors import ArgumentError, StateError
from botyard.formats.budget import Budget
from botyard.model.devices import loaded_devices
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.names import is_name, shown
from botyard.sim.core import Core
from botyard.sim.parameters import check, spread
from botyard.sim.readings import MAX_RAYS
from botyard.sim.statehead import (
    Head,
    Known,
    Roster,
)

MAX_LATE_STEPS: Final = 10**9
"""Highest latency of a command or a reading, steps."""
UNSURE: Final = (1,)
"""Formats whose digests of descriptions may come from classes with other fields.

A different digest does not prove a different description in these formats.
"""


def written_by(head: Begin | Head) -> str:
    """Return a text about the program and the version that wrote a state, for messages."""
    return (
        f" ({program(head.program)} wrote it, in version {head.version} of "
        f"the format; this program writes {VERSION})"
    )


def unsure_note(head: Begin | Head) -> str:
    """Return a text for messages about a different digest.

    The text is empty unless the difference may come from the program that wrote the
    state.
    """
    return written_by(head) if head.version in UNSURE else ""


def check_columns(core: Core, head: Begin | Head, roster: Roster) -> list[Table]:
    """Return the tables of a state after a check of its columns, see `_tables`.

    Parameters
    ----------
    core : Core
        World into which the state is to be restored.
    head, roster
        Parts of the state.

    Raises
    ------
    StateError
        The columns differ from the columns of states in this program, or a table
        belongs to a device that is not installed.
    """
    tables = _tables(core, roster)
    if not any(
        roster.schema == schema(core.engine, steers=steers, tables=tables)
        for steers in (False, True)
    ):
        raise StateError(
            "state: expected the columns that this version of botyard stores, found the "
            "columns of another version"
        )
    return tables


def _tables(core: Core, roster: Roster) -> list[Table]:
    """Return all tables that a state has, in order.

    Tables of every engine come first, then optional tables, which may have to be
    created.
    """
    here = core.engine.tables
    found = [table for table in here.values() if not table.optional]
    # Kinds of devices of installed packages, whose tables may not exist yet.
    kinds = {
        device.table.name: device.table
        for device in loaded_devices()
        if device.table is not None
    }
    # Sort by name, as the engine sorts its optional tables.
    for name in sorted(set(roster.keys) - {table.name for table in found}):
        kind = type(here[name]) if name in here else kinds.get(name)
        if kind is None and name.startswith(PREFIX):
            raise StateError(
                "state: expected the pheromone fields of the present floor, found "
                f'the field "{shown(name.removeprefix(PREFIX))}"'
            )

        if kind is None:
            raise StateError(
                f'state: expected tables of installed devices, found "{shown(name)}"'
            )

        found.append(here[name] if name in here else kind())

    return found


def check_roster(
    roster: Roster,
    models: Mapping[bytes, RobotSpec | BoxObject],
    core: Core,
    known: Known,
    budget: Budget,
) -> None:
    """Check names, number and starts of bodies, and the rows of their devices' tables.

    Parameters
    ----------
    roster : Roster
        Content of the world in the state.
    models : mapping of bytes to model
        Models of all its bodies by digest.
    core, known
        World into which the state is to be restored, and its descriptions.
    budget : Budget
        Bounds the number of robots that are not in this world yet.

    Raises
    ------
    StateError
        Names the first value that is not valid.
    """
    names = {body.name for body in roster.bodies}
    if len(names) != len(roster.bodies) or not all(map(is_name, names)):
        raise StateError(
            "state: expected valid and different names of bodies, found another or "
            "a repeated name"
        )
    robots = {
        body.name: models[body.digest]
        for body in roster.bodies
        if body.start is not None
    }
    new = len(robots.keys() - core.robots.keys())
    # Existing robots cost nothing; the budget bounds new ones.
    if new > budget.robots:
        raise StateError(
            f"state: expected at most {budget.robots} robots that are not in this "
            f"world, found {new} (budget.robots raises this limit)"
        )

    for body in roster.bodies:
        if body.start is not None and not (
            all(map(math.isfinite, body.start))
            and max(map(abs, body.start[:2])) <= commands.MAX_COORDINATE
        ):
            raise StateError(
                f"state: expected a valid pose as the start of {body.name} (finite, "
                f"within ±{commands.MAX_COORDINATE:g} m), found {list(body.start)}"
            )

    _check_rows(roster, robots, core, known)


def _check_rows(
    roster: Roster,
    robots: Mapping[str, RobotSpec | BoxObject],
    core: Core,
    known: Known,
) -> None:
    """Check that tables have exactly one row for each device of these robots, by name.

    Some rows of joints may be missing.
    """
    described = cast(Described, known.objects[roster.described])
    wanted = expected_rows(
        {n: m for n, m in robots.items() if isinstance(m, RobotSpec)}, described
    )
    always = {table.name for table in core.engine.tables.values() if not table.optional}
    if not wanted.keys() - always == roster.keys.keys() - always:
        raise StateError(
            "state: expected tables that match the devices of its robots, found others"
        )
    for name, one in core.engine.tables.items():
        if isinstance(one, FieldTable) and roster.keys.get(name) != row_keys(one):
            raise StateError(
                f'state: expected one row of the pheromone field "{one.field.name}", '
                "found others"
            )

    # Joints whose bodies were removed have no rows any more.
    fewer = {table.name for table in WORLD_TABLES if table.may_lack_rows}
    for table, rows in wanted.items():
        keys = roster.keys.get(table, [])
        there = {key for key in keys if isinstance(key, str)}
        if len(there) != len(keys) or not (
            there <= rows if table in fewer else there == rows
        ):
            raise StateError(
                f"state: expected one row of the table {table} for each device of its "
                "robots, found other rows"
            )


def check_head(
    head: Head, roster: Roster, models: Mapping[bytes, RobotSpec | BoxObject]
) -> None:
    """Check that the values of a head are in range, and refer to bodies of the state.

    Parameters
    ----------
    head, roster
        Parts of the state.
    models : mapping of bytes to model
        Models of all bodies by digest.

    Raises
    ------
    StateError
        Names the first value that is not valid.
    """
    robots = {
        body.name: models[body.digest]
        for body in roster.bodies
        if body.start is not None
    }
    told = [
        *head.claims,
        *(r.robot for r in head.rays),
        *(c.robot for c in head.controllers),
    ]
    if len(head.teleports) != len(robots) or not robots.keys() >= set(told):
        raise StateError(
            "state: sessions, rays and controllers: expected names of robots that the "
            "state contains, and a count of placements for each robot; found another "
            "name or number"
        )
    bodies = {body.name for body in roster.bodies}
    queued = [q for q in head.queue if q.kind != "SetVelocities"] + [
        sent.command for sent in head.under_way
    ]
    if not bodies.issuperset([*head.holds, *(q.body for q in queued)]):
        raise StateError(
            "state: holds and waiting commands: expected names of bodies of the state, "
            "found another name"
        )
    for rays in head.rays:
        model = robots[rays.robot]
        if not (
            isinstance(model, RobotSpec)
            and 0 <= rays.laser < len(model.lasers)
            and 0 <= rays.count <= MAX_RAYS
            and math.isfinite(rays.angle_min)
            and math.isfinite(rays.increment)
        ):
            raise StateError(
                f"state: rays of a laser of {rays.robot}: expected at most "
                f"{MAX_RAYS} rays of an existing laser, found {rays.count} rays of "
                f"laser {rays.laser}, from {rays.angle_min} rad in steps of "
                f"{rays.increment} rad"
            )

    _check_late(head, robots)
    for name, values in head.parameters.items():
        spec = robots.get(name)
        try:
            if (
                not isinstance(spec, RobotSpec)
                or spread(spec, values).keys() != values.keys()
            ):
                raise ArgumentError(
                    "expected parameters of a robot and its sensors, found others"
                )

            check(spec, values)
        except ArgumentError as error:
            raise StateError(f"state: parameters of {shown(name)}: {error}") from None

    if not (
        0 <= head.tick <= MAX_TICK
        and 1 <= head.step_us <= 60_000_000
        and 0 <= head.error_mode < OdometryErrorMode.PERFECT
    ):
        raise StateError(
            f"state: expected 0 to {MAX_TICK:g} steps done, a step of 1 to 60,000,000 "
            f"µs, and an error mode of 0 to {OdometryErrorMode.PERFECT - 1}; found "
            f"{head.tick} steps, {head.step_us} µs and {head.error_mode}"
        )


def _check_late(head: Head, robots: Mapping[str, RobotSpec | BoxObject]) -> None:
    """Check that delayed readings are finite, in order of time, and have a sensor."""
    rays = {(r.robot, r.laser): r.count for r in head.rays}
    last: dict[tuple[str, str, int], tuple[int, int]] = {}
    for one in head.late:
        model, key = robots.get(one.robot), (one.robot, one.kind, one.index)
        count = -1
        if (
            isinstance(model, RobotSpec)
            and one.kind == "laser"
            and 0 <= one.index < len(model.lasers)
        ):
            # A client may have set another number of rays.
            count = rays.get((one.robot, one.index), model.lasers[one.index].samples)

        if (
            isinstance(model, RobotSpec)
            and one.kind == "sonar"
            and one.index == 0
            and model.sonar is not None
        ):
            count = len(model.sonar.transducers)

        before = last.get(key, (-1, -1))
        if (
            len(one.ranges) != 8 * count
            or len(one.returns) != 2 * count
            or not np.isfinite(np.frombuffer(one.ranges, "<f8")).all()
            or not before[0] < one.tick <= head.tick
            or not max(one.tick, before[1]) <= one.due <= one.tick + MAX_LATE_STEPS
        ):
            raise StateError(
                f"state: late readings of {one.robot}: expected finite readings of its "
                "sensors, in order of time and not after the state; found others"
            )

        # Readings of a device must be in order of time.
        last[key] = one.tick, one.due


__all__ = [
    "MAX_LATE_STEPS",
    "UNSURE",
    "check_columns",
    "check_head",
    "check_roster",
    "unsure_note",
    "written_by",
]
