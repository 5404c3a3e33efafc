"""Operation that continues from an earlier moment, for clients.

To look at the past changes nothing, so it is not an operation.
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

NO_HISTORY: Final = "the history is off here (--history)"


def went_elsewhere(control: Site) -> None:
    """Forget the drivers of robots that do not exist at the restored moment."""
    for name in [name for name in control.driven if name not in control.sim.robots]:
        del control.driven[name]


@dataclass(frozen=True, kw_only=True)
class Branch(Operation[Moment]):
    """Continue from an earlier moment.

    It is the last one that is kept at a simulated time (s) or before it. Clients keep
    their connections, claims and subscriptions; their robots stop and wait for the next
    command. Robots that did not exist at that moment are removed, and their clients
    disconnected. Robots that were removed since return without clients.
    """

    time: float = argument(real(0.0, unit="s"))
    audit = logging.WARNING
    tells = "Pioneer clients as of SIM_SET_POSE, ROS a jump of /clock and `reset` in /diagnostics"

    def perform(self, control: Site, caller: Caller) -> Moment:
        """Perform the operation.

        Raises
        ------
        NotNowError
            The history is off.
        StateError
            The state has another version, or a controller refuses its state.
        """
        sim = control.sim
        if not sim.history.is_on or sim.history.span is None:
            raise NotNowError(NO_HISTORY)
        moment = sim.history.go_on_from(self.time)
        went_elsewhere(control)
        # Steps after that moment belong to a run that is left.
        if control.undoing is not None:
            control.undoing.clear()
        return moment

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"the world continues from {result.time:.2f} s"


__all__ = ["NO_HISTORY", "Branch", "went_elsewhere"]
