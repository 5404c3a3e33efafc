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

NO_RECORDINGS: Final = "nothing is recorded"
MAX_KEPT_S: Final = 86_400.0
MAX_PATTERN: Final = 200
"""Longest pattern of topics or robots, characters."""
MAX_PATTERNS: Final = 100
MAX_RATE_HZ: Final = 1e6
_hertz = real(0.0, MAX_RATE_HZ, unit="Hz")
_pattern = text(MAX_PATTERN)


def _rate(value: Any, what: str, /) -> float | Mapping[str, float] | None:
    """A rate of all topics, rates by patterns of topics, or None."""
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
    """Record the run to an MCAP file next to the log file; the name may set the stem of
    the file.

    With `last`, only so much simulated time, s, is kept in memory, until
    `SaveRecording` writes it, or, with `on_stall`, two simulated seconds after a robot
    has stalled. `topics` and `robots` are patterns such as ``*/base_scan``, see
    `botyard.recording.samples.Selection`; none: the usual topics, all robots. `rate`:
    most messages of a topic for each simulated second, of all topics or by patterns of
    topics, of which the first that fits counts; 0: one for each step; none: the usual
    rates.
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
        """Carry it out. WorldError if something is being recorded, or the file cannot
        be written.
        """
        return control.part(control.recordings, NO_RECORDINGS).start(self)

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"recording to {result}"


@dataclass(frozen=True, kw_only=True)
class StopRecording(Operation[Future[Path]]):
    """End the recording."""

    audit = logging.INFO
    settles = False
    writes = True

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Carry it out. WorldError if nothing is being recorded."""
        return control.part(control.recordings, NO_RECORDINGS).stop()

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"recorded to {result}"


@dataclass(frozen=True, kw_only=True)
class SaveRecording(Operation[Future[Path]]):
    """Write what a recording keeps in memory to a file next to the log file; the name
    may set the stem of the file.
    """

    recording: str = argument(text(1000), "")
    audit = logging.INFO
    settles = False
    writes = True

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Carry it out. WorldError if nothing is kept in memory; the future fails with
        one if the file cannot be written.
        """
        return control.part(control.recordings, NO_RECORDINGS).save(self.recording)

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"saved to {result}"


__all__ = ["SaveRecording", "StartRecording", "StopRecording"]
