"""Operations on recordings: start, stop, save."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, boolean, each, real, text
from botyard.control.site import Site
from botyard.errors import ArgumentError

NO_RECORDINGS: Final = "recordings cannot be made"
MAX_KEPT_S: Final = 86_400.0
MAX_PATTERN: Final = 200
"""Maximum length of a pattern of topics or robots, characters."""
MAX_PATTERNS: Final = 100
MAX_RATE_HZ: Final = 1e6
_hertz = real(0.0, MAX_RATE_HZ, unit="Hz")
_pattern = text(MAX_PATTERN)


def _rate(value: Any, what: str, /) -> float | Mapping[str, float] | None:
    """Return a valid limit of messages: a rate for all topics, rates by patterns, or None."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return cast(float, _hertz(value, what))
    if len(value) > MAX_PATTERNS:
        raise ArgumentError(
            f"{what}: expected at most {MAX_PATTERNS} patterns, found {len(value)}"
        )

    return {
        _pattern(pattern, what): _hertz(hertz, what) for pattern, hertz in value.items()
    }


@dataclass(frozen=True, kw_only=True)
class StartRecording(Operation[Path]):
    """Record the run to an MCAP file next to the log file.

    The name may set the stem of the file. With `last`, only this much simulated time,
    s, is kept in memory. `SaveRecording` writes it; with `on_stall` it is also written
    two simulated seconds after a robot has stalled. `topics` and `robots` are patterns
    such as ``*/base_scan``, see `botyard.recording.samples.Selection`; by default the
    usual topics and all robots are recorded. `rate` limits the messages of a topic per
    simulated second, for all topics or by patterns of topics, of which the first match
    counts. 0 is one message for each step; None is the usual rates.

    Parameters
    ----------
    recording : str
        Stem of the file; empty: the program chooses it.
    last : float
        Simulated time to keep in memory, s; 0: all is written.
    topics, robots : sequence of str
        Patterns of names; empty: the usual topics, and all robots.
    rate : float or mapping of str to float, optional
        Messages per simulated second, 1/s.
    on_stall : bool
        Whether a stall also writes the kept part.
    """

    recording: str = argument(text(1000), "")
    last: float = argument(real(0.0, MAX_KEPT_S, unit="s"), 0.0)
    topics: Sequence[str] = argument(each(_pattern, MAX_PATTERNS), ())
    robots: Sequence[str] = argument(each(_pattern, MAX_PATTERNS), ())
    rate: float | Mapping[str, float] | None = argument(_rate, None)
    on_stall: bool = argument(boolean, False)
    audit = logging.INFO
    settles = False

    def perform(self, control: Site, caller: Caller) -> Path:
        """Start the recording.

        Raises
        ------
        WorldError
            A recording is in progress, or the file cannot be written.
        """
        return control.part(control.recordings, NO_RECORDINGS).start(self)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"recording to {result}"


@dataclass(frozen=True, kw_only=True)
class StopRecording(Operation[Future[Path]]):
    """Stop the recording."""

    audit = logging.INFO
    settles = False
    writes = True

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Stop the recording.

        Raises
        ------
        WorldError
            No recording is in progress.
        """
        return control.part(control.recordings, NO_RECORDINGS).stop()

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"recorded to {result}"


@dataclass(frozen=True, kw_only=True)
class SaveRecording(Operation[Future[Path]]):
    """Write the recording in memory to a file next to the log file.

    The name may set the stem of the file.
    """

    recording: str = argument(text(1000), "")
    audit = logging.INFO
    settles = False
    writes = True

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Write the recording in memory to a file.

        Raises
        ------
        WorldError
            No recording is kept in memory. The future fails with it if the file cannot
            be written.
        """
        return control.part(control.recordings, NO_RECORDINGS).save(self.recording)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"saved to {result}"


__all__ = ["SaveRecording", "StartRecording", "StopRecording"]
