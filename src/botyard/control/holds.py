"""Holds: a client holds a body, for example while its user drags the body.

No other client may then place, remove or hold the body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from botyard.control.caller import Caller
from botyard.control.site import Site
from botyard.errors import NotNowError
from botyard.names import shown

HOLD_TIMEOUT_S: Final = 30.0
"""Time limit of a hold, s of wall time.

The hold ends if the client has not placed the body for this time.
"""


def hold(control: Site, body: str, caller: Caller, timeout: float) -> None:
    """Hold a body for a client.

    Parameters
    ----------
    control : Site
        Context of the operation.
    body : str
        Name of a robot or box.
    caller : Caller
        Client; its key distinguishes the clients of one source.
    timeout : float
        Time limit, s of wall time.

    Raises
    ------
    UnknownNameError
        No body has this name.
    NotNowError
        Another client holds the body.
    """
    check_hand(control, body, caller)
    control.sim.hold(body, True, caller.source)
    # Wall time, because the client may disconnect while simulated time is paused.
    control.held[body] = caller, timeout, control.wall() + timeout


def release(control: Site, body: str, caller: Caller) -> None:
    """Release a body that a client holds; the hold of another client stays.

    Parameters
    ----------
    control : Site
        Context of the operation.
    body : str
        Name of a robot or box.
    caller : Caller
        Client.

    Raises
    ------
    UnknownNameError
        No body has this name.
    """
    holder = holder_of(control, body)
    if holder is None or holder.is_same(caller):
        control.held.pop(body, None)
        control.sim.hold(body, False, caller.source)


def holder_of(control: Site, body: str) -> Caller | None:
    """Return the client that holds a body with `Hold`; None if there is none."""
    core = control.sim.core
    if body not in control.held or body not in core.engine.rows:
        return None
    caller = control.held[body][0]
    # If the source does not hold it, the entry is about a removed body, or about a state
    # before the world was set back.
    return caller if caller.source in core.holders(body) else None


def check_hand(control: Site, body: str, caller: Caller) -> None:
    """Check that no other client holds a body, and renew the client's own hold.

    Parameters
    ----------
    control : Site
        Context of the operation.
    body : str
        Name of a robot or box.
    caller : Caller
        Client that is going to hold, place or remove it.

    Raises
    ------
    NotNowError
        Another client holds the body.
    """
    holder = holder_of(control, body)
    if holder is None or caller.is_user:
        return
    if not holder.is_same(caller):
        raise NotNowError(f"{shown(body)}: {holder.person or holder} holds it")
    _, timeout, _ = control.held[body]
    control.held[body] = holder, timeout, control.wall() + timeout


def end_expired_holds(control: Site) -> bool:
    """Release the bodies whose hold has reached its time limit.

    Parameters
    ----------
    control : Site
        Context of operations. Its wall clock counts, because simulated time may be
        paused.

    Returns
    -------
    bool
        Whether bodies are still held.
    """
    now = control.wall()
    end_holds(control, lambda _, until: now > until)
    return bool(control.held)


def end_holds(control: Site, ends: Callable[[Caller, float], bool]) -> None:
    """Release the bodies whose hold passes a test.

    Parameters
    ----------
    control : Site
        Context of operations.
    ends : callable
        Receives the client and the deadline of its hold, s of wall time.
    """
    for body, (caller, _, until) in list(control.held.items()):
        if not ends(caller, until):
            continue
        # A body that was removed meanwhile has no hold to release.
        if body in control.sim.core.engine.rows:
            release(control, body, caller)
        control.held.pop(body, None)
