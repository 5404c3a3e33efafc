"""Simulated time as an integer count of microseconds, so that it never drifts.

The run loop paces it against wall time.
"""

from __future__ import annotations

from dataclasses import dataclass

from botyard.errors import WorldError


@dataclass(slots=True)
class Clock:
    """Counter of steps.

    Attributes
    ----------
    step_us : int
        Simulated time of one step, µs.
    tick : int
        Number of steps done.
    """

    step_us: int = 100_000
    tick: int = 0

    def __post_init__(self) -> None:
        # A microsecond is the resolution of the clock.
        if not 1 <= self.step_us <= 60_000_000:
            raise WorldError(
                "a step must last between 1 µs and 60 s of simulated time, "
                f"found {self.step_us} µs"
            )

    @property
    def time_us(self) -> int:
        """Simulated time since the start, µs."""
        return self.tick * self.step_us

    @property
    def time(self) -> float:
        """Simulated time since the start, s."""
        return self.time_us / 1e6

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return self.step_us / 1e6
