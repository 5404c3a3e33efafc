"""Implementation of `Simulation.record`: check the arguments and start a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.recording.recorder import Choices, Recorder
from botyard.recording.samples import RATES_HZ, Selection
from botyard.sim import observation
from botyard.sim.recordings import Recording
from botyard.sim.simulation import Simulation

MAX_RATE_HZ: Final = 1e6
MAX_PATTERNS: Final = 1000


def choose(
    *,
    topics: Sequence[str] | None = None,
    robots: Sequence[str] = ("*",),
    rate: float | Mapping[str, float] | None = None,
    split_mb: float | None = None,
    split: float | None = None,
    last: float | None = None,
    on_stall: bool = False,
    overwrite: bool = False,
    patient: bool = True,
    keep_files: bool = False,
) -> Choices:
    """Return the choices for the arguments of `Simulation.record`.

    Parameters
    ----------
    topics, robots, rate, split_mb, split, last, on_stall, overwrite
        As for `Simulation.record`.
    patient, keep_files : bool
        See `Choices`.

    Raises
    ------
    ArgumentError
        An argument is out of its range or has another type, or two exclude each other.
    """
    selection = Selection(
        topics=None if topics is None else _topics(topics),
        robots=_patterns(robots, "robots"),
        rates=_rates(rate),
    )
    # From here on, 0 means that a limit is not set.
    split_mb, split, last = (
        0.0
        if value is None
        else arguments.number(value, what, low=0.0, above=True, unit=unit)
        for value, what, unit in (
            (split_mb, "split_mb", "MB"),
            (split, "split", "s"),
            (last, "last", "s"),
        )
    )
    on_stall = arguments.flag(on_stall, "on_stall")
    if last and (split or split_mb):
        raise ArgumentError("last: a recording in memory cannot be split into files")
    if on_stall and not last:
        raise ArgumentError(
            "on_stall: expected `last`, the seconds to keep and save at a stall, found 0"
        )

    return Choices(
        selection=selection,
        split_bytes=round(split_mb * 1e6),
        split_s=split,
        last_s=last,
        on_stall=on_stall,
        overwrite=arguments.flag(overwrite, "overwrite"),
        patient=patient,
        keep_files=keep_files,
    )


def _patterns(given: Sequence[str], what: str) -> tuple[str, ...]:
    if (
        # A string is also a sequence, and each character would become a pattern.
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or len(given) > MAX_PATTERNS
    ):
        raise ArgumentError(
            f"{what}: expected a list of at most {MAX_PATTERNS} patterns, found "
            f"{arguments.found(given)}"
        )

    for one in given:
        if not arguments.instance(one, what, str):
            raise ArgumentError(
                f"{what}: expected patterns of at least one character, found {arguments.found(one)}"
            )

    return tuple(given)


def _topics(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(_topic(one, "topics") for one in _patterns(given, "topics"))


def _topic(pattern: str, what: str) -> str:
    # Such a pattern would match no topic, and have no effect.
    if pattern[:1] not in {"/", "*", "?", "["}:
        raise ArgumentError(
            f"{what}: expected topic patterns that start with / or a wildcard, "
            f"such as */odom, found {arguments.found(pattern)}"
        )

    return pattern


def _rates(rate: float | Mapping[str, float] | None) -> Mapping[str, float]:
    """Return the rates of topics in the order in which they are tried.

    Parameters
    ----------
    rate : float, mapping or None
        Rate of all topics, or by pattern, Hz; None: the defaults alone.
    """
    if rate is None:
        return RATES_HZ
    if isinstance(rate, Mapping) and len(rate) > MAX_PATTERNS:
        raise ArgumentError(
            f"rate: expected at most {MAX_PATTERNS} patterns, found {len(rate)}"
        )

    found = dict[str, float]()
    for pattern, hertz in rate.items() if isinstance(rate, Mapping) else (("*", rate),):
        topic = _topic(arguments.instance(pattern, "rate", str), "rate")
        found[topic] = arguments.number(
            hertz, "rate", low=0.0, high=MAX_RATE_HZ, unit="Hz"
        )

    # The given patterns come before the defaults, because the first match counts.
    return found if "*" in found else {**found, **RATES_HZ, **found}


@observation.record.implementation
def _record(sim: Simulation, path: str | Path, choices: Mapping[str, Any]) -> Recording:
    """Start to record; see `Simulation.record`."""
    return Recorder(sim, Path(path), choose(**choices))


__all__ = ["choose"]
