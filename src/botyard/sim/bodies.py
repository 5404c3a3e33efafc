"""Operations on robots and boxes alike: placing, holding, carrying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.engine import commands as cmd
from botyard.errors import WorldError
from botyard.sim.journal import Attach, Detach
from botyard.sim.masses import Masses
from botyard.sim.simulationcore import SimulationCore

if TYPE_CHECKING:
    from botyard.api.arguments import PoseLike


class Bodies(ReadOnly):
    """Bodies of a simulation by name: robots and boxes of the map."""

    core: SimulationCore
    """Internal API for ports, servers, recording and the page; it may change."""

    def __init__(self, core: SimulationCore) -> None:
        vars(self)["core"] = core

    @property
    def masses(self) -> Masses:
        """Masses of robots and boxes, and the forces that move bodies with mass."""
        return self.core.masses

    def put(self, name: str, pose: PoseLike, source: str = "api") -> None:
        """Teleport a robot or a box of the map to a true pose at the next step.

        The pose may overlap other things.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        pose : Pose or tuple
            Pose in the frame of the world: x, y in m, heading in rad.
        source : str
            Source of the command, in the order of commands and in the journal.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            The pose is not three finite numbers.
        CommandError
            The pose is out of bounds.
        """
        core = self.core
        core.check_there(name)
        core.accept_command(name, cmd.SetPose(arguments.pose(pose)), source)

    def put_back(self, names: Sequence[str] | None = None, source: str = "api") -> None:
        """Return robots and boxes of the map to their starts at the next step.

        Time continues; `Simulation.reset` starts a new episode. A robot whose start is
        occupied is placed at the nearest free place on a 1 m grid around it.

        Parameters
        ----------
        names : sequence of str, optional
            Robots and boxes, or one name. Default: all of them.
        source : str
            Source of the commands, in the order of commands and in the journal.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has one of these names.
        """
        self.core.put_back(names, source)

    def hold(self, name: str, on: bool = True, source: str = "api") -> None:
        """Hold a robot or a box in place, for example to drag it with `put`.

        After the release it continues with its commands. A body is held as long as any
        source holds it; a source can release only its own hold.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        on : bool
            True holds the body, False releases the hold of `source`.
        source : str
            Source that holds the body.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            `on` is neither True nor False.
        """
        self.core.hold(name, on, source)

    def attach(self, carrier: str, name: str) -> None:
        """Attach a body to a carrier at its present place.

        Sensors and collisions treat it as a part of its carrier.

        Parameters
        ----------
        carrier, name : str
            Body that carries, and body that is carried. Carriers cannot be carried.

        Raises
        ------
        UnknownNameError
            A KeyError: one of the bodies does not exist.
        WorldError
            The bodies are the same, one of them is already carried, or the attached
            body carries another one.
        """
        core = self.core
        core.check_thread()
        core.check_there(carrier, name)
        engine = core.engine
        if (
            name == carrier
            or engine.carrier_of(name) is not None
            or engine.carrier_of(carrier) is not None
        ):
            raise WorldError(
                f"{carrier} cannot carry {name}: one of them is already carried, "
                "or both are the same body"
            )

        # Carriers cannot be carried, see `botyard.engine.columnchecks`.
        if carried := engine.carried_by(engine.rows[name]):
            raise WorldError(
                f"{carrier} cannot carry {name}, "
                f"which carries {engine.specs[carried[0]].name}"
            )

        core.note(None, Attach, carrier, name)
        engine.attach(carrier, name)

    def detach(self, name: str) -> None:
        """Release a carried body at its present place.

        The call does nothing if the body is not carried.
        """
        core = self.core
        core.check_thread()
        # Only a real change is recorded in the journal.
        if core.engine.carrier_of(name) is not None:
            core.note(None, Detach, name)
            core.engine.detach(name)


__all__ = ["Bodies"]
