"""How a run of a task goes: what the user may choose about it."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.errors import WorldError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a run goes.

    Attributes
    ----------
    original_braking : bool
        Critical points as far ahead as the original program puts them, by v²/(2 · acceleration) instead of the deceleration.
    stop_at_end : bool
        Robots brake in time to stop exactly at the end of their path; else they begin to brake there.
    leaves : bool
        A robot leaves the plane when it has finished; else its last sector stays occupied.
    goes_on : bool
        A collision is counted, both robots brake, and the run goes on; else it is the end.
    time_limit : float
        Simulated time after which the run is given up, s.
    latency : float
        Time that each message takes, to the supervisor and back, s.
    jitter : float
        Uniformly distributed time in addition, up to this, s; messages can overtake one another.
    loss : float
        Share of messages that are lost, 0 … 1.
    seed : int
        Of jitter and loss.
    compiled : bool
        Built-in supervisors may run as compiled code, where messages take no time.
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
        for name, high in (("time_limit", 1e12), ("latency", 1e6), ("jitter", 1e6), ("loss", 1.0)):
            value = getattr(self, name)
            if not 0.0 <= value <= high:
                raise WorldError(f"{name}: expected 0 … {high:g}, found {value:g}")

    @property
    def is_instant(self) -> bool:
        """Messages take no time, and none is lost."""
        return not (self.latency or self.jitter or self.loss)
