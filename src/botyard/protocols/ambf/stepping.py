"""Timing of AMBF's interface, sans-I/O: throttling of steps, and rates of states.

Times are read from the caller's clock, s. Source: ambf-messages.md §4, §7.
"""

from __future__ import annotations

from typing import Final

from botyard.model.objects import HIGH, LOW

WATCHDOG: Final = 0.5
"""Timeout of the watchdog, s.

Without a command for this time, objects and the world return to their idle behaviour.
"""
MAX_CATCH_UP: Final = 0.02
"""Longest delay of a state for which later states catch up, so that the average rate is kept, s.

Delays occur because timers wake up late, and steps come in bursts.
"""
DEFAULT_SKIPS: Final = 10
"""Number of steps for each toggle of the step clock, until a command sets another number."""


class Stepping:
    """Control of the world's steps by a client: free running, or n steps for each toggle.

    A toggle is a change of the field ``step_clock``. If it arrives before the steps of
    the last toggle are finished, its steps are added, whereas AMBF loses the toggle.
    The first command that throttles (stops free running) allows no step, whereas in
    AMBF it does. `original`
    restores AMBF's behaviour in both cases.

    Parameters
    ----------
    watchdog : float
        Time without a command after which the throttle is released, s; 0 for never.
    original : bool
        Whether to behave like AMBF: early toggles are lost, and after the first
        throttled command up to n steps are made without a toggle.

    Attributes
    ----------
    throttled : bool
        Whether a client steps the world.
    skips : int
        Steps for each toggle (``n_skip_steps``).
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
        """Process a command for the world.

        The command has ``enable_step_throttling``, ``step_clock`` and ``n_skip_steps``.

        Parameters
        ----------
        throttle : bool
            ``enable_step_throttling``: whether steps wait for toggles.
        clock : bool
            ``step_clock``: a change of the value is a toggle.
        skips : int
            ``n_skip_steps``: steps that a toggle allows.
        now : float
            Time of the caller's clock, s.
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
        # Add the steps, so that a toggle while steps are running is not lost.
        if throttle and toggled:
            self._left += skips

    def hold(self, now: float) -> None:
        """Throttle the world without a command from a client.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s; the watchdog counts from it.
        """
        if not self.throttled:
            self._left = 0
        self.throttled, self._last = True, now

    def grant(self, steps: int) -> None:
        """Allow further steps.

        Parameters
        ----------
        steps : int
            Number of steps in addition to the steps that are still allowed. It has no
            effect with `original`.
        """
        self._left += steps

    def tick(self, now: float) -> bool:
        """Return to free running if the watchdog has expired; return whether this call did so.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
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
        """Count a finished step."""
        if not self.throttled:
            return
        if not self._original:
            self._left -= 1
            return

        self._done += 1
        if self._done == self.skips:
            self._may, self._done = False, 0


class Pace:
    """Publishing rate of an object's state, with a watchdog.

    The rate is low while the object is idle, and high while it is commanded.

    Parameters
    ----------
    low, high : float
        Rates of the idle and of the commanded object, Hz.
    watchdog : float
        Time without a command after which the object is idle again, s. It is time of
        the caller's clock, or simulated time while a client steps the world.
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
        """Record that a command has arrived.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        simulated : float
            Simulated time, s.
        """
        # The first command raises the rate, which takes effect at once.
        if self._last is None:
            self._due = now
        self._last, self._simulated = now, simulated

    def postpone(self, now: float) -> None:
        """Record a state that was sent early, for a step that a client requested.

        The next state is due a period later.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        self._due = max(self._due, now + self._period)

    @property
    def _period(self) -> float:
        return 1.0 / (self._high if self._last is not None else self._low)

    def expired(self, now: float, simulated: float | None = None) -> bool:
        """Return True if the watchdog has expired since the last call.

        Parameters
        ----------
        now : float
            Time on the caller's clock, s.
        simulated : float, optional
            Simulated time, s. It replaces `now` while a client steps the world, because
            the client may need any wall time between steps.
        """
        if self._last is None:
            return False
        silent = now - self._last if simulated is None else simulated - self._simulated
        # Simulated time may also jump back, which ends the command.
        if 0.0 <= silent <= self._watchdog:
            return False
        self._last = None
        return True

    def is_due(self, now: float) -> bool:
        """Return whether a state is due now; if it is, schedule the next one.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        if now < self._due - 1e-9:
            return False
        # The period is added to the due time, so that the average rate is kept.
        self._due = max(self._due + self._period, now - MAX_CATCH_UP)
        return True


__all__ = ["DEFAULT_SKIPS", "HIGH", "LOW", "WATCHDOG", "Pace", "Stepping"]
