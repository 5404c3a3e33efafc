"""Going on from an earlier moment: the operation, for clients. Looking back changes
nothing, and is no operation.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, real
from botyard.control.site import Site
from botyard.errors import NotNowError
from botyard.sim.history import Moment

NO_HISTORY: Final = "no moments are kept here (--history)"


def went_elsewhere(control: Site) -> None:
    """The world is that of another moment: nobody drives robots that are not there."""
    for name in [name for name in control.driven if name not in control.sim.robots]:
        del control.driven[name]


@dataclass(frozen=True, kw_only=True)
class Branch(Operation[Moment]):
    """Let the world go on from an earlier moment: the last one that is kept at a
    simulated time (s) or before it.

    Clients keep their connections, claims and subscriptions, and their robots stop and
    wait for the next command. Robots that were not there at that moment go, and their
    clients are disconnected; those that have gone since come back without clients.
    """

    time: float = argument(real(0.0, unit="s"))
    audit = logging.WARNING
    tells = "Pioneer clients as of SIM_SET_POSE, ROS a jump of /clock and `reset` in /diagnostics"

    def perform(self, control: Site, caller: Caller) -> Moment:
        """Carry it out. NotNowError: nothing is kept; StateError: of another version,
        or a controller refuses its state.
        """
        sim = control.sim
        if not sim.history.is_on or sim.history.span is None:
            raise NotNowError(NO_HISTORY)
        moment = sim.history.go_on_from(self.time)
        went_elsewhere(control)
        if control.undoing is not None:
            control.undoing.clear()
        return moment

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"the world goes on from {result.time:.2f} s"


__all__ = ["NO_HISTORY", "Branch", "went_elsewhere"]
