"""Restoration of a saved state.

The whole state is checked first. Then bodies, rows and columns are replaced by the ones
of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec
import numpy as np

from botyard.codec.forms import Reader
from botyard.devices.delays import Late
from botyard.devices.devicetable import DeviceTable
from botyard.engine.bodyspec import box_body
from botyard.engine.channels import MAX_SEQUENCE, MAX_UNDER_WAY, Sent
from botyard.engine.columnchecks import is_span
from botyard.engine.latecommands import LATE
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.state import (
    BODIES,
    CONTACTS,
    STEERED,
    read_columns,
    row_keys,
    split,
    write_columns,
    write_masses,
)
from botyard.engine.tables import VERSION as VERSION_COLUMN
from botyard.engine.velocities import SetVelocities
from botyard.errors import BotyardError, StateError
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.world import Program
from botyard.names import shown
from botyard.sim.core import Core
from botyard.sim.parameters import restore as restore_parameters
from botyard.sim.statechecks import (
    MAX_LATE_STEPS,
    UNSURE,
    check_columns,
    check_head,
    check_roster,
    unsure_note,
    written_by,
)
from botyard.sim.statehead import (
    COMMANDS,
    NO_MASS,
    Body,
    Controller,
    Head,
    Known,
    LateReading,
    Queued,
    Roster,
    Saveable,
)

Employ = Callable[[Any, Program], None]
"""Function that lets a program drive a robot, see `botyard.controllers.assignment`."""


def restore(
    core: Core,
    known: Known,
    state: bytes,
    budget: Budget,
    employ: Employ | None,
    used: list[object],
    *,
    fresh: Collection[str] = (),
) -> None:
    """Restore a state; see `Simulation.restore`.

    Parameters
    ----------
    core : Core
        World to change.
    known : Known
        Descriptions that states of this world refer to.
    state : bytes
        Result of `Simulation.save_state`.
    budget : Budget
        Bounds the size of the state and the number of new robots.
    employ : callable or None
        Starts a program for a robot. None: the controllers of the state are left out.
    used : list
        Output: the descriptions that the state refers to are appended.
    fresh : collection of str
        Names of robots of the state that get new handles, although the world has robots
        of these names and models.

    Raises
    ------
    StateError
        The bytes are not a state, are damaged or do not fit. The world is then
        unchanged, unless a controller refuses its own state.
    """
    head, data = split(state, Head, budget.bytes)
    try:
        roster = msgspec.msgpack.decode(head.roster, type=Roster)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(f"state: {error}") from None

    tables = check_columns(core, head, roster)
    if not known.is_of_map(roster.scene, core):
        names = f'"{shown(roster.scene_name)}"; here is "{shown(core.scene.name)}"'
        if head.version in UNSURE and roster.scene_name == core.scene.name:
            raise StateError(
                "state: expected the digest of the present map "
                f'"{shown(core.scene.name)}", found another one for a map of this '
                "name: another version may have read the same file "
                f"differently{written_by(head)}"
            )

        # Another version of the program may also read the same file differently.
        if roster.scene_name == core.scene.name:
            raise StateError(
                "state: expected the present map, found another one of the same "
                f"name, {names.partition(';')[0]}"
            )

        raise StateError(
            f"state: expected the present map, found a state of another map, {names}"
        )

    # With an equal roster, bodies and rows need not be compared.
    is_same = bytes(head.roster) == known.roster(core)
    models = _find_models(core, known, head, roster)
    used += [*models.values(), known.objects[roster.described]]
    rows = {name: len(keys) for name, keys in roster.keys.items()}
    # Added after the tables: keys of a crafted state cannot replace these counts.
    steers = any(
        isinstance(model, RobotSpec) and model.kinematics.has_wheel_state
        for model in models.values()
    )
    rows |= {
        BODIES: len(roster.bodies),
        CONTACTS: head.contacts,
        STEERED: len(roster.bodies) if steers else 0,
    }
    masses = any(model.dynamics is not None for model in models.values())
    if masses != (head.contacts != NO_MASS) or not is_span(head.span):
        raise StateError(
            "state: bodies with mass: expected "
            f"{'0 or more contacts' if masses else 'no contacts (-1)'} and a substep "
            f"in range, found {head.contacts} contacts and a substep of {head.span} s"
        )

    # All checks come before the first change, so that a bad state changes nothing.
    found = read_columns(core.engine, data, rows, masses=masses, tables=tables)
    queue = [_command(q, len(roster.bodies)) for q in head.queue]
    under_way = _under_way(head, len(roster.bodies))
    if not is_same:
        check_roster(roster, models, core, known, budget)
    check_head(head, roster, models)
    if not is_same:
        _arrange_bodies(core, known, roster, models, fresh)
        _arrange_rows(core, roster)

    write_columns(core.engine, found)
    engine = core.engine
    engine.resume(
        tick=head.tick,
        step_us=head.step_us,
        seed=head.seed,
        sequence=head.sequence,
        queue=queue,
        under_way=under_way,
    )
    engine.odometry_error_mode = OdometryErrorMode(head.error_mode)
    for table in engine.tables.values():
        if isinstance(table, DeviceTable):
            table.restored(engine)
        if VERSION_COLUMN in table.columns:
            # Caches of values that were derived from a row compare versions.
            getattr(table, VERSION_COLUMN)[:] += 1

    # Columns define the carriers, but outlines are not in the state.
    engine.redraw_carriers()
    # Write the masses last, because a change of an outline would wake bodies.
    write_masses(core.engine, found, head.span)
    starts = {
        body.name: Pose(*body.start) for body in roster.bodies if body.start is not None
    }
    for robot, teleports in zip(core.robots.values(), head.teleports, strict=True):
        robot._restored(starts[robot.name], teleports, head.claims.get(robot.name, []))
    for rays in head.rays:
        core.robots[rays.robot].lasers[rays.laser].configure(
            rays.angle_min, rays.increment, rays.count
        )

    restore_parameters(core, core.robots, head.parameters)
    for key, readings in _late_readings(head).items():
        core.devices.resume(key, readings)
    core.unserved = set(roster.unserved)
    # A hold without a source would never end.
    core.holds = {
        name: list(sources) for name, sources in head.holds.items() if sources
    }
    if employ is None:
        # Without `employ` no code that the state names may run.
        head.controllers.clear()
    _employ(core, head.controllers, employ)
    engine.resumed()
    core.overlap_limit.forget()


def _late_readings(head: Head) -> dict[tuple[str, str, int], Late]:
    """Return delayed readings by key of the device."""
    found: dict[tuple[str, str, int], list[LateReading]] = {}
    for one in head.late:
        found.setdefault((one.robot, one.kind, one.index), []).append(one)
    return {
        key: Late(
            np.array([(one.due, one.tick) for one in readings], np.int64),
            np.array(
                [np.frombuffer(one.ranges, "<f8") for one in readings], np.float64
            ),
            np.array([np.frombuffer(one.returns, "<i2") for one in readings], np.int16),
        )
        for key, readings in found.items()
    }


def _under_way(head: Head, bodies: int) -> dict[str, list[Sent]]:
    """Return commands under way by name of the body."""
    found: dict[str, list[Sent]] = {}
    for one in head.under_way:
        name, source, sequence, command = _command(one.command, bodies)
        sent = found.setdefault(name, [])
        if not isinstance(command, LATE) or not (
            (sent[-1].due if sent else 0) <= one.due <= one.sent + MAX_LATE_STEPS
            and 0 <= one.sent <= head.tick
        ):
            raise StateError(
                f"state: delayed commands to {shown(name)}: expected velocities, sent "
                f"before the state, due in order and at most {MAX_LATE_STEPS} steps "
                "after they were sent; found others"
            )

        sent.append(Sent(one.due, one.sent, source, sequence, command))
        if len(sent) > MAX_UNDER_WAY:
            raise StateError(
                f"state: expected at most {MAX_UNDER_WAY} delayed commands to "
                f"{shown(name)}, found more"
            )

    return found


def _find_models(
    core: Core, known: Known, head: Head, roster: Roster
) -> dict[bytes, RobotSpec | BoxObject]:
    """Return the models of all bodies by digest.

    Raises
    ------
    StateError
        A model is not known, or differs from the installed one of the same name.
    """
    for robot in core.robots.values():
        known.digest(robot.spec)
    for box in core.scene.boxes:
        known.digest(box)
    found: dict[bytes, RobotSpec | BoxObject] = {}
    for body in roster.bodies:
        if body.digest in found:
            continue
        kind = BoxObject if body.start is None else RobotSpec
        one = known.objects.get(body.digest)
        # A model of this name may be installed, although the world has not used it.
        if one is None and kind is RobotSpec:
            try:
                spec = find_robot(body.model)
                one = spec if known.digest(spec) == body.digest else None
            except BotyardError:
                one = None

        # A digest of a box cannot identify a robot.
        if not isinstance(one, kind):
            what = "box" if kind is BoxObject else "robot model"
            raise StateError(
                f'state: the {what} "{shown(body.model)}" of {shown(body.name)} is '
                f"unknown, or differs from the present one{unsure_note(head)}"
            )

        found[body.digest] = one
        # Trailers follow their robot, whose model describes them.
        if isinstance(one, RobotSpec):
            for k in range(len(one.trailers)):
                known.digest(one.trailer_spec(k + 1))

    known.digest(core.descriptions.described)
    if roster.described not in known.objects:
        raise StateError(
            "state: expected the present AMBF description files (describe), found a "
            f"state with other ones{unsure_note(head)}"
        )

    return found


def _arrange_bodies(
    core: Core,
    known: Known,
    roster: Roster,
    models: Mapping[bytes, RobotSpec | BoxObject],
    fresh: Collection[str],
) -> None:
    """Add, remove and reorder bodies to match the state.

    Handles of robots that both the world and the state have stay valid, except `fresh`.
    """
    engine = core.engine
    boxes = dict(zip(core.box_names, core.scene.boxes, strict=True))

    def is_there(body: Body) -> bool:
        if body.start is None:
            return body.name in boxes and known.digest(boxes[body.name]) == body.digest
        robot = None if body.name in fresh else core.robots.get(body.name)
        return robot is not None and known.digest(robot.spec) == body.digest

    there = [is_there(body) for body in roster.bodies]
    if not all(there) or [body.name for body in roster.bodies] != list(engine.rows):
        stays = {
            body.name
            for body, is_known in zip(roster.bodies, there, strict=True)
            if is_known
        }
        # Removed first, because a new body may have the name of an old one.
        core.remove_bodies([name for name in engine.rows if name not in stays])
        # Adding many at once is much faster than one by one.
        missing: dict[bytes, list[Body]] = {}
        for body, is_known in zip(roster.bodies, there, strict=True):
            if not is_known:
                missing.setdefault(body.digest, []).append(body)

        for digest, bodies in missing.items():
            model = models[digest]
            if isinstance(model, RobotSpec):
                core.insert_robots(
                    model,
                    [body.name for body in bodies],
                    [Pose(*body.start or ()) for body in bodies],
                )
            else:
                engine.add_bodies(
                    [
                        (replace(box_body(model), name=body.name), model.pose)
                        for body in bodies
                    ]
                )

        # The columns of the state follow the order of its bodies.
        engine.arrange([engine.rows[body.name] for body in roster.bodies])
        order = [body for body in roster.bodies if body.start is None]
        core.set_boxes(
            [body.name for body in order],
            [m for b in order if isinstance(m := models[b.digest], BoxObject)],
        )
        core.sort_robots(
            [body.name for body in roster.bodies if body.start is not None]
        )

    if roster.described != known.digest(core.descriptions.described):
        core.descriptions.described = cast(Described, known.objects[roster.described])
    core.descriptions.add_missing(roster.keys)


def _arrange_rows(core: Core, roster: Roster) -> None:
    for table in core.engine.tables.values():
        if table.saved:
            at = {_hashable(key): i for i, key in enumerate(row_keys(table))}
            order = [at[_hashable(key)] for key in roster.keys.get(table.name, [])]
            if order != list(range(len(at))):
                table.arrange(order)


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _command(queued: Queued, bodies: int) -> tuple[str, str, int, Any]:
    kind = COMMANDS.get(queued.kind)
    try:
        if kind is None:
            raise ValueError(f'no command "{queued.kind}"')
        if not 0 <= queued.sequence <= MAX_SEQUENCE:
            raise ValueError(
                f"expected the number of a command, found {queued.sequence}"
            )
        command = Reader(inline=True).value(queued.values, kind)
        if isinstance(command, SetVelocities):
            command = command.checked(bodies)
    # Errors of msgspec and of commands are ValueErrors.
    except (ValueError, TypeError, OverflowError) as error:
        raise StateError(f"state: a queued command: {error}") from None

    return queued.body, queued.source, queued.sequence, command


def _employ(
    core: Core, controllers: Sequence[Controller], employ: Employ | None
) -> None:
    """Make the programs of robots match the state: start missing ones, end others, set states."""
    wanted = {c.robot for c in controllers}
    for name in [name for name in core.programs.all if name not in wanted]:
        core.programs.end(name)
    for c in controllers:
        program = Program(name=c.name, options=c.options)
        if c.crashed:
            core.programs.remember_crashed(c.robot, program)
            continue

        try:
            if core.programs.driving.get(c.robot, (None,))[0] != program:
                assert employ is not None
                employ(core.robots[c.robot], program)

            owner = getattr(core.programs.driving[c.robot][1], "__self__", None)
            # A controller with a bad state may raise any of these errors.
            assert isinstance(owner, Saveable)
            owner.set_state(c.state)
        except (
            BotyardError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            AssertionError,
            ArithmeticError,
        ) as error:
            raise StateError(
                f"state: robot {c.robot}: the controller {c.name} cannot use its "
                f"state: {error}"
            ) from None

    core.programs.arrange([c.robot for c in controllers])


__all__ = ["Employ", "restore"]
