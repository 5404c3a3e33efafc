"""Operation that continues from an earlier moment, for clients.

A view of the past changes nothing, so it is not an operation.
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
    """End the manual drive of robots that do not exist at the restored moment.

    Parameters
    ----------
    control : Site
        Context of operations, after the world has returned to an earlier moment.
    """
    for name in [name for name in control.driven if name not in control.sim.robots]:
        del control.driven[name]


@dataclass(frozen=True, kw_only=True)
class Branch(Operation[Moment]):
    """Continue from an earlier moment.

    The world returns to the last stored moment at or before a simulated time (s).
    Clients keep their connections, claims and subscriptions; their robots stop and wait
    for the next command. Robots that did not exist at that moment are removed, and
    their clients disconnected. Robots that were removed after that moment come back,
    without clients.

    Parameters
    ----------
    time : float
        Simulated time, s. The result is the moment used.
    """

    time: float = argument(real(0.0, unit="s"))
    audit = logging.WARNING
    tells = (
        "Pioneer clients are notified as by SIM_SET_POSE; ROS by a jump of /clock "
        "and `reset` in /diagnostics"
    )

    def perform(self, control: Site, caller: Caller) -> Moment:
        """Return the world to the earlier moment.

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
        # Steps after that moment belong to the abandoned run.
        if control.undoing is not None:
            control.undoing.clear()
        return moment

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"the world continues from {result.time:.2f} s"


__all__ = ["NO_HISTORY", "Branch", "went_elsewhere"]
