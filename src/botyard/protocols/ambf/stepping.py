"""Throttling of steps by clients, and publishing rates of states: the timing of AMBF's
interface (ambf-messages.md §4, §7), sans-I/O.

Times are of a clock that the caller reads, s.
"""

from __future__ import annotations

from typing import Final

from botyard.model.objects import HIGH, LOW

WATCHDOG: Final = 0.5
"""Watchdog time-out: without a command for this time, s, objects and the world return
to their idle behaviour.
"""
MAX_CATCH_UP: Final = 0.02
"""Delay of a due state that later ones make up for, s: timers wake up late, and steps
come in bursts.
"""
DEFAULT_SKIPS: Final = 10
"""Steps per toggle until a command sets their number."""


class Stepping:
    """The throttle of the world: free running, or a number of steps for each toggle of
    ``step_clock``.

    A toggle that comes while the steps of the one before are not done is kept and not
    lost, as it is in the original; and the first command that throttles lets nothing
    through by itself. `original` does both as the original does.

    Parameters
    ----------
    watchdog : float
        The throttle is released after this time without a command, s; 0: never.
    original : bool
        Behave like AMBF: early toggles are lost, and after the first throttled command
        up to n steps are made without one.
    """

    def __init__(self, watchdog: float = WATCHDOG, *, original: bool = False) -> None:
        self._watchdog = watchdog
        self._original = original
        self.throttled = False
        self.skips = DEFAULT_SKIPS
        self._clock = False
        self._left = 0
        self._done = 0
        self._may = True
        self._last: float | None = None

    def command(self, throttle: bool, clock: bool, skips: int, now: float) -> None:
        """Handle a command for the world: ``enable_step_throttling``, ``step_clock``,
        ``n_skip_steps``.
        """
        toggled, self._clock = clock != self._clock, clock
        begins = throttle and not self.throttled
        self.throttled, self.skips, self._last = throttle, skips, now
        if self._original:
            if not throttle:
                self._may = True
            elif not self._may:
                self._may = toggled

            return

        if not throttle or begins:
            self._left = 0
        if throttle and toggled:
            self._left += skips

    def hold(self, now: float) -> None:
        """Throttle the world without a client's command."""
        if not self.throttled:
            self._left = 0
        self.throttled, self._last = True, now

    def grant(self, steps: int) -> None:
        """Allow further steps."""
        self._left += steps

    def tick(self, now: float) -> bool:
        """Check the watchdog; True if it has released the throttle now."""
        if (
            not self.throttled
            or not self._watchdog
            or self._last is None
            or now - self._last <= self._watchdog
        ):
            return False

        self.throttled, self._may, self._left, self._done = False, True, 0, 0
        return True

    @property
    def may_step(self) -> bool:
        """Whether the next step is allowed."""
        if not self.throttled:
            return True
        return self._may if self._original else self._left > 0

    def stepped(self) -> None:
        """Count a step that was made."""
        if not self.throttled:
            return
        if not self._original:
            self._left -= 1
            return

        self._done += 1
        if self._done == self.skips:
            self._may, self._done = False, 0


class Pace:
    """Publishing rate of an object's state: low while idle, high while it is commanded,
    with a watchdog.

    Parameters
    ----------
    low, high : float
        Rates, Hz.
    watchdog : float
        It is idle again after this time without a command, s: of the caller's clock, or
        of simulated time where a client steps the world.
    """

    def __init__(
        self, low: float = LOW, high: float = HIGH, watchdog: float = WATCHDOG
    ) -> None:
        self._low, self._high, self._watchdog = low, high, watchdog
        self._last: float | None = None
        self._simulated = 0.0
        self._due = 0.0

    @property
    def is_commanded(self) -> bool:
        """Whether commands have arrived within the watchdog's time."""
        return self._last is not None

    def command(self, now: float, simulated: float = 0.0) -> None:
        """Record a command, and the simulated time at which it came, s."""
        if self._last is None:
            self._due = now
        self._last, self._simulated = now, simulated

    def postpone(self, now: float) -> None:
        """Record a state that was sent out of turn, for a step that a client requested:
        the next one is due a period later.
        """
        self._due = max(self._due, now + self._period)

    @property
    def _period(self) -> float:
        return 1.0 / (self._high if self._last is not None else self._low)

    def expired(self, now: float, simulated: float | None = None) -> bool:
        """True once, when the watchdog expires: the caller resets the commands.

        Parameters
        ----------
        now : float
            The caller's clock, s.
        simulated : float, optional
            Simulated time, s, which counts instead while a client steps the world: its
            loop may take as long as it likes.
        """
        if self._last is None:
            return False
        silent = now - self._last if simulated is None else simulated - self._simulated
        if 0.0 <= silent <= self._watchdog:
            return False
        self._last = None
        return True

    def is_due(self, now: float) -> bool:
        """Whether a state is due now; if so, schedules the next one a period later."""
        if now < self._due - 1e-9:
            return False
        self._due = max(self._due + self._period, now - MAX_CATCH_UP)
        return True


__all__ = ["DEFAULT_SKIPS", "HIGH", "LOW", "WATCHDOG", "Pace", "Stepping"]
