"""Options of a run: one declaration for command line, ``--config``, `serve` and
reference.

Each field of `RunOptions` declares the kind of value, the section of the help text,
whether a world file may set it, and whether `botyard.serve` has it: under which
keyword, or what a program uses instead. The fields stand in `simulation_options`,
`client_options` and `operation_options`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from botyard.app.client_options import ClientOptions
from botyard.app.declaration import (
    AMBF,
    OPERATION,
    PAGE,
    PIONEER,
    ROBOTS,
    ROS,
    TIME,
    WORLD,
    Option,
)
from botyard.app.kinds import (
    RobotChoice,
)
from botyard.app.operation_options import OperationOptions
from botyard.app.simulation_options import SimulationOptions
from botyard.formats.budget import Budget

if TYPE_CHECKING:
    from botyard.formats.base import Options


# A dataclass takes the fields of its bases from the last to the first.
# No slots, because Python combines only bases without slots.
@dataclass(frozen=True, kw_only=True)
class RunOptions(OperationOptions, ClientOptions, SimulationOptions):
    """Options of a run, in the order of the help text.

    Lengths, times and angles have the units of the command line: mm, ms, degrees.
    """

    @property
    def unattended(self) -> bool:
        """Whether there is no user to answer questions (CLI-017, CLI-022)."""
        return self.noninteractive or self.no_gui

    def chosen_robots(self, world_has_some: bool) -> Sequence[RobotChoice]:
        """Return the robots of the command line; by default a P3-DX.

        Parameters
        ----------
        world_has_some : bool
            Whether the world contains robots; then there is no default robot.

        Returns
        -------
        sequence of RobotChoice
            Robots of the options, or a P3-DX if there are neither robots nor factories.
        """
        # The default robot lets a client connect to a bare map at once. A world with
        # robots, or factories, must not get another robot.
        return self.robots or (
            () if self.factories or world_has_some else (RobotChoice("p3dx", None),)
        )

    def reading(self) -> Options:
        """Return the options for reading map files.

        Returns
        -------
        botyard.formats.base.Options
            Limits and chunk sizes, with the resolution converted from mm to m.

        Raises
        ------
        CommandLineError
            ``--max-read`` names no limit, or a value that is not valid.
        """
        # Import this here, because --help needs no models of worlds.
        from botyard.formats.base import Options

        return Options(
            budget=Budget().raised(self.max_read),
            # Formats of files use metres; options keep the millimetres of AMRISim.
            resolution=None if self.resolution is None else self.resolution / 1000.0,
            lines_chunk=self.lines_chunksize,
            points_chunk=self.points_chunksize,
        )


def _declared() -> dict[str, Option]:
    """Return the declarations of all options, by field name."""
    found = {}
    for one in fields(RunOptions):
        # Copy the metadata of the dataclass, because it is shared and read-only.
        about: dict[str, Any] = dict(one.metadata["option"])
        serve = about.pop("serve")
        found[one.name] = Option(
            name=one.name, keyword=one.name if serve is True else serve or None, **about
        )

    return found


OPTIONS: Final[Mapping[str, Option]] = _declared()
"""All options by field name, in the order of the help text."""

SECTIONS: Final = (WORLD, ROBOTS, TIME, PIONEER, ROS, AMBF, PAGE, OPERATION)
"""Sections in the order of the help text."""


__all__ = [
    "OPTIONS",
    "SECTIONS",
    "RunOptions",
]
