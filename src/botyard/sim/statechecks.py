"""Checks of a saved state, which is data from a stranger, before it changes a world."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, cast

import numpy as np

from botyard.devices.worldtables import WORLD_TABLES, expected_rows
from botyard.engine import commands
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.state import (
    MAX_TICK,
    VERSION,
    Begin,
    program,
    schema,
)
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
    """Return the end of a message: writer and version of a state."""
    return (
        f" ({program(head.program)} wrote it, in version {head.version} of "
        f"the format; this program writes {VERSION})"
    )


def unsure_note(head: Begin | Head) -> str:
    """Return the end of a message about a different digest.

    It is not empty if the difference may come from the program that wrote the state.
    """
    return written_by(head) if head.version in UNSURE else ""


def check_columns(core: Core, head: Begin | Head, roster: Roster) -> list[Table]:
    """Return the tables of a state, see `_tables`.

    Raise StateError if its columns differ from the columns of states in this program.
    """
    tables = _tables(core, roster)
    if roster.schema != schema(core.engine, tables):
        raise StateError(
            f"state: its columns differ from this program's{written_by(head)}"
        )
    return tables


def _tables(core: Core, roster: Roster) -> list[Table]:
    """Return the tables of a state in order.

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
    # By name, like the engine's optional tables.
    for name in sorted(set(roster.keys) - {table.name for table in found}):
        kind = type(here[name]) if name in here else kinds.get(name)
        if kind is None:
            raise StateError(
                f'state: it has a table "{shown(name)}" of a device that is not installed'
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
    """Check names, number and starts of bodies, and the rows of their devices' tables."""
    names = {body.name for body in roster.bodies}
    if len(names) != len(roster.bodies) or not all(map(is_name, names)):
        raise StateError("state: a body has no valid name, or the name of another body")
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
            "world, "
            f"found {new} (budget.robots raises that)"
        )

    for body in roster.bodies:
        if body.start is not None and not (
            all(map(math.isfinite, body.start))
            and max(map(abs, body.start[:2])) <= commands.MAX_COORDINATE
        ):
            raise StateError(f"state: the start of {body.name} is not a valid pose")

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
        raise StateError("state: its tables do not match the devices of its robots")
    # Joints whose bodies were removed have no rows any more.
    fewer = {table.name for table in WORLD_TABLES if table.may_lack_rows}
    for table, rows in wanted.items():
        keys = roster.keys.get(table, [])
        there = {key for key in keys if isinstance(key, str)}
        if len(there) != len(keys) or not (
            there <= rows if table in fewer else there == rows
        ):
            raise StateError(
                f"state: rows of the table {table} do not match its bodies"
            )


def check_head(
    head: Head, roster: Roster, models: Mapping[bytes, RobotSpec | BoxObject]
) -> None:
    """Check that the values of a head are in range, and refer to bodies of the state."""
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
        raise StateError("state: it mentions robots that it does not contain")
    bodies = {body.name for body in roster.bodies}
    queued = [q for q in head.queue if q.kind != "SetVelocities"] + [
        sent.command for sent in head.under_way
    ]
    if not bodies.issuperset([*head.holds, *(q.body for q in queued)]):
        raise StateError("state: it mentions bodies that it does not contain")
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
                f"{MAX_RAYS}, for an existing laser"
            )

    _check_late(head, robots)
    for name, values in head.parameters.items():
        spec = robots.get(name)
        try:
            if (
                not isinstance(spec, RobotSpec)
                or spread(spec, values).keys() != values.keys()
            ):
                raise ArgumentError("expected parameters of a robot, by sensor")

            check(spec, values)
        except ArgumentError as error:
            raise StateError(f"state: parameters of {shown(name)}: {error}") from None

    if not (
        0 <= head.tick <= MAX_TICK
        and 1 <= head.step_us <= 60_000_000
        and 0 <= head.error_mode < OdometryErrorMode.PERFECT
    ):
        raise StateError("state: time, step or error mode is out of range")


def _check_late(head: Head, robots: Mapping[str, RobotSpec | BoxObject]) -> None:
    """Check that delayed readings are finite, in order of time and of existing sensors."""
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
                f"state: a late reading of {one.robot} does not match its sensors or the "
                "time"
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
