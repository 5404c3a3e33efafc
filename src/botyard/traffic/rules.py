"""Options of a run of traffic."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.errors import WorldError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Options of a run of traffic.

    Attributes
    ----------
    original_braking : bool
        Place critical points as the original program does: v²/(2 · acceleration) before a sector.
        Otherwise the distance follows from the deceleration.
    stop_at_end : bool
        Robots brake in time to stop exactly at the end of their path; otherwise they
        start to brake there.
    leaves : bool
        A robot is removed when it has finished; otherwise its last sector stays
        occupied.
    goes_on : bool
        After a collision both robots brake, and the run continues; otherwise a
        collision ends the run.
    time_limit : float
        Simulated time after which the run ends with a time-out, s.
    latency : float
        Latency of each message, in both directions, s.
    jitter : float
        Greatest additional latency, uniformly distributed, s; messages can overtake one
        another.
    loss : float
        Probability that a message is lost, 0 … 1.
    seed : int
        Seed of jitter and loss.
    compiled : bool
        Allow compiled versions of built-in supervisors (only if messages take no time).
    """

    original_braking: bool = False
    stop_at_end: bool = False
    leaves: bool = False
    goes_on: bool = False
    time_limit: float = 1e7
    latency: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    seed: int = 1
    compiled: bool = True

    def __post_init__(self) -> None:
        for name, high in (
            ("time_limit", 1e12),
            ("latency", 1e6),
            ("jitter", 1e6),
            ("loss", 1.0),
        ):
            value = getattr(self, name)
            if not 0.0 <= value <= high:
                raise WorldError(
                    f"{name}: expected a number from 0 to {high:g}, found {value:g}"
                )

    @property
    def is_instant(self) -> bool:
        """Whether messages arrive at once and none is lost."""
        return not (self.latency or self.jitter or self.loss)
