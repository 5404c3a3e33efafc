"""Checks of options before anything runs: extras, contradictions, output files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botyard.app.needs import Needs
from botyard.app.options import RunOptions
from botyard.errors import CommandLineError, KeptFileError, WorldError, did_you_mean
from botyard.geometry import Pose
from botyard.names import body_name, check_name, shown
from botyard.processes.codeload import is_code
from botyard.processes.safefile import Beginnings, check_replaceable
from botyard.servers.addresses import is_loopback

if TYPE_CHECKING:
    from botyard.model.obstacles import BoxObject
    from botyard.model.robot import RobotSpec
    from botyard.model.world import World

EMBEDDED = "embedded"
"""Value of ``--ros-master`` for a master inside the simulator."""

MAX_TOKEN: Final = 512
"""Maximum length of the page's token, characters; same value as in web/src/stores/kept.ts."""


def _is_token(text: str) -> bool:
    """Return whether the page accepts a text as its access token.

    The rule is `tokenOf` in web/src/stores/kept.ts.
    """
    # The page sends the token in an HTTP header. Browsers strip spaces at the ends of a
    # header, and reject control characters and text outside of Latin-1.
    return (
        len(text) <= MAX_TOKEN
        and re.fullmatch(
            r"[\x21-\x7e\xa1-\xff]([\x20-\x7e\xa1-\xff]*[\x21-\x7e\xa1-\xff])?", text
        )
        is not None
    )


def check_options(o: RunOptions) -> None:
    """Check the options of a run for contradictions, before any file is read.

    Raises
    ------
    CommandLineError
        An extra is missing, options contradict each other, or a file cannot be written.
    WorldError
        An environment variable of ROS is not valid.
    """
    needs = Needs()
    needs.add_options(
        {name: getattr(o, name) for name in RunOptions.__dataclass_fields__}
    )
    for name in (o.map, o.map_argument):
        needs.add_file(name)
    # Check extras first: one error lists all missing packages, before the user corrects
    # anything else.
    needs.check()
    _check_ros(o)
    if o.interface:
        from botyard.interfaces.registry import parse_choice

        for text in o.interface:
            parse_choice(text)

    if o.controller_option and not o.controller:
        raise CommandLineError("--controller-option: expected --controller as well")

    if o.controller and not is_code(
        o.controller
        # Code is imported, and checked, when the world is loaded.
    ):
        from botyard.controllers.registry import find_controller

        find_controller(o.controller)

    for option, token in (
        ("--gui-token", o.gui_token),
        ("--rosbridge-token", o.rosbridge_token),
        ("--foxglove-token", o.foxglove_token),
    ):
        # An empty --gui-token means a random token, so only the page accepts one.
        if token is None or (not token and option == "--gui-token") or _is_token(token):
            continue
        raise CommandLineError(
            f"{option}: expected 1 to {MAX_TOKEN} characters that an HTTP header "
            "can carry (printable Latin-1, no space at the ends), "
            f'found "{shown(token)}"'
        )

    if not o.no_gui and o.gui_token == "off" and not is_loopback(o.gui_address):
        raise CommandLineError(
            "--gui-token off: works only on this computer; with --gui-address "
            "the page needs a token"
        )

    # These files are written at the end of the run. A wrong folder must be an error
    # now, not after hours of simulation.
    check_can_be_written("--snapshot", o.snapshot, force=o.force)
    check_can_be_written("--save-scenario", o.save_scenario, force=o.force)
    check_can_be_written("--record", o.record, force=o.force)
    for option, value in (
        ("--record-topic", o.record_topic),
        ("--record-robot", o.record_robot),
        ("--record-rate", o.record_rate),
        ("--record-split", o.record_split),
        ("--record-split-time", o.record_split_time),
        ("--record-last", o.record_last),
    ):
        if value not in (None, ()) and o.record is None:
            raise CommandLineError(f"{option}: expected --record as well")

    if o.record_on_stall and o.record_last is None:
        raise CommandLineError("--record-on-stall: expected --record-last as well")
    if o.record_last is not None and (
        o.record_split is not None or o.record_split_time is not None
    ):
        raise CommandLineError(
            "--record-last: a recording in memory cannot be split "
            "(--record-split, --record-split-time)"
        )

    if o.record_packets is not None:
        from botyard.servers.pioneer.packetlog import BEGINS

        check_can_be_written(
            "--record-packets", o.record_packets, force=o.force, begins=BEGINS
        )

    if o.snapshot is not None:
        check_picture("--snapshot", o.snapshot)


def check_world(
    o: RunOptions, world: World, boxes: Iterable[BoxObject], asks: bool
) -> bool:
    """Check the options together with the world; return whether any body has mass.

    Parameters
    ----------
    o : RunOptions
        Options of the run.
    world : World
        The world.
    boxes : iterable of BoxObject
        All boxes of the world.
    asks : bool
        Whether the user chooses the robots in the start dialog.

    Returns
    -------
    bool
        Whether any body has mass, and needs the kernels for such bodies.

    Raises
    ------
    CommandLineError
        There are too many robots, or options contradict the world.
    WorldError
        Names are not unique or not valid.
    ModelError, ModelFileError
        A robot model is unknown or not valid.
    """
    # With the start dialog, the robots are known only after the user has answered.
    choices = () if asks else o.chosen_robots(bool(world.robots))
    specs = [_model(c.model) for c in choices]
    made = [_model(model) for model in o.factories]
    boxes = tuple(boxes)
    for spec in made:
        # A factory gives each client a robot of its own to drive; a fixed body has no
        # motors that a Pioneer client could command.
        if not spec.drive:
            raise CommandLineError(
                f"--robot-factory: {spec.name} cannot drive, so no client could use it"
            )

    # Robots use consecutive ports, and 65535 is the highest TCP port. Checked here,
    # because half of the robots would already be open when the last port fails.
    if o.port + len(choices) + len(o.factories) - 1 > 65535:
        raise CommandLineError(
            f"{len(choices) + len(o.factories)} robots do not fit on the ports "
            f"from {o.port} to 65535"
        )

    # Names are computed before any robot exists, so that --joystick can be checked at
    # the start.
    names = _names(
        [body_name(b.name) for b in boxes],
        [p.name for p in world.robots],
        [(c.name, s) for c, s in zip(choices, specs, strict=True)],
    )
    if o.joystick is not None and not asks and o.joystick not in names:
        raise CommandLineError(
            f'--joystick: no robot "{o.joystick}"{did_you_mean(o.joystick, names)}'
        )

    if o.joystick is not None and not sys.stdin.isatty():
        raise CommandLineError("--joystick: expected a terminal on standard input")
    if "outside" in o.start and choices and world.scene.bounds is None:
        raise WorldError("--start outside: expected a map, found none")
    for start in o.start:
        if isinstance(start, Pose):
            from botyard.engine.commands import check_pose

            check_pose(start)

    models = (*(placed.spec for placed in world.robots), *specs, *made)
    return any(box.dynamics is not None for box in boxes) or any(
        spec.dynamics is not None for spec in models
    )


def _model(name: str) -> RobotSpec:
    """Return the robot model with a name or file name."""
    from botyard.formats.models import find_robot

    return find_robot(name)


def _names(
    boxes: list[str], placed: list[str], chosen: list[tuple[str | None, RobotSpec]]
) -> list[str]:
    """Return the names that the robots of the options will get."""
    taken = {*boxes, *placed}
    names, numbers = list(placed), dict[str, int]()
    for wanted, spec in chosen:
        name = spec.name if wanted is None else check_name(wanted)
        if wanted is None:
            # The same numbering as the simulation uses for added robots: the first
            # keeps the bare name of its model, the second ends in _002.
            n = numbers.get(name, 1)
            while name in taken:
                n += 1
                name = f"{spec.name}_{n:03d}"
            # Lower numbers stay in use: the next search starts after this one.
            numbers[spec.name] = n
        elif name in taken:
            raise WorldError(
                f'a body named "{name}" already exists; names must be unique'
            )

        taken.add(name)
        names.append(name)

    return names


def _check_ros(o: RunOptions) -> None:
    """Check that the ROS options do not contradict each other."""
    master = o.ros_master or ""
    if (
        master.partition(":")[0] == EMBEDDED
        and (port := master.partition(":")[2])
        and not port.isdigit()
    ):
        raise CommandLineError(
            f'--ros-master: expected a URI, "embedded" or "embedded:PORT", found "{master}"'
        )

    ros1, ros2 = (
        o.ros1 or o.ros_master is not None,
        o.ros2 or o.ros_domain_id is not None,
    )
    if ros2 or o.zenoh or o.zenoh_router:
        # Reading the variables is the check: it raises WorldError for a value that is
        # not valid. The result is read again when ROS starts.
        from botyard.protocols.dds.environment import Environment

        Environment.read(domain=o.ros_domain_id)

    for name in (o.map, o.map_argument):
        if name is None or not name.startswith("ros:"):
            continue
        if not (ros1 or ros2):
            raise CommandLineError(
                f"-m {name}: expected --ros1 or --ros2 as well, to find the topic"
            )

        if master.startswith(EMBEDDED):
            raise CommandLineError(
                f"-m {name}: a master inside the simulator has no map topic at the start"
            )


def check_can_be_written(
    option: str,
    name: str | Path | None,
    *,
    force: bool = False,
    begins: Beginnings = (),
) -> None:
    """Check that an option's output file can be written, without writing it.

    See `botyard.processes.safefile.replacing`.

    Raises
    ------
    CommandLineError
        The folder does not exist, the path is a folder or is not writable, or botyard
        did not write the existing file.
    """
    if name is None:
        return
    path = Path(name)
    folder = path.parent
    if os.path.isdir(path):
        reason = "it is a folder"
    elif not os.path.isdir(folder):
        reason = f"there is no folder {folder}"
    # A new file needs permission in its folder; an existing one needs it on the file.
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        reason = "permission denied"
    else:
        try:
            check_replaceable(path, force=force, begins=begins)
            return
        except KeptFileError as error:
            raise CommandLineError(f"{option}: {error}") from None
        except OSError as error:
            reason = str(error.strerror)

    raise CommandLineError(f"{option}: cannot write {path}: {reason}")


def check_picture(option: str, name: str) -> None:
    """Check that the suffix of an option's file is an image format.

    Raises
    ------
    CommandLineError
        The suffix is unknown.
    """
    from PIL import Image

    suffix = Path(name).suffix.lower()
    # Pillow reads more formats than it writes, so a known suffix alone is not enough.
    kind = Image.registered_extensions().get(suffix)
    if kind is None or kind not in Image.SAVE:
        raise CommandLineError(
            f'{option}: cannot write {name}: expected the suffix of an image format, found "{suffix}"'
        )


__all__ = [
    "EMBEDDED",
    "check_can_be_written",
    "check_options",
    "check_picture",
    "check_world",
]
