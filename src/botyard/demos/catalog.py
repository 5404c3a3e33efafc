"""Table of the shows of ``botyard demo``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Final

from botyard.sim.simulation import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """World that ``botyard demo NAME`` shows, with its options for films.

    Attributes
    ----------
    sentence : str
        Description for users, without a full stop.
    make : callable
        Returns a new world for a seed. The robots of the world drive by themselves.
    area : tuple of four floats or None
        Part of the world that films show, m; None: the whole world.
    scans : tuple of str
        Robots whose readings films show.
    trails : float
        Length of robots' trails in films, simulated s.
    """

    sentence: str
    make: Callable[[int], Simulation]
    area: tuple[float, float, float, float] | None = None
    scans: tuple[str, ...] = ()
    trails: float = 10.0


def _world(name: str, seed: int) -> Simulation:
    """Load a world that is shipped with botyard, by its name."""
    return Simulation.load(name, seed=seed)


def _scripted(module: str, seed: int) -> Simulation:
    """Make the world of a module of this package, by calling its function `make`."""
    # Import the module only now, so that the list of shows is printed without delay.
    made = import_module(f"botyard.demos.{module}").make(seed)
    sim = made[0] if isinstance(made, tuple) else made
    assert isinstance(sim, Simulation)
    return sim


SHOWS: Final[Mapping[str, Show]] = {
    "office": Show(
        sentence="Robots carry mail between the rooms of an office, and avoid people",
        make=partial(_world, "deliveries"),
        scans=("mail 1",),
    ),
    "warehouse": Show(
        sentence="Eight robots carry goods between gates, racks and packing tables",
        make=partial(_world, "shift"),
    ),
    "crowd": Show(
        sentence="100 robots change sides on a square, and avoid each other by ORCA",
        make=partial(_scripted, "crowd"),
        area=(-6.0, -6.0, 6.0, 6.0),
        trails=4.0,
    ),
    "deadlock": Show(
        sentence="Four robots deadlock under one supervisor, and not under another",
        make=partial(_scripted, "deadlock"),
        area=(-8.0, -8.0, 30.0, 10.0),
    ),
    "push": Show(
        sentence="Three robots push a crate that is too heavy for two",
        make=partial(_scripted, "push"),
    ),
    "learn": Show(
        sentence="24 untrained policies learn to drive around a track by evolution",
        make=partial(_scripted, "learn"),
        trails=2.0,
    ),
}
"""All shows by name."""


__all__ = ["SHOWS", "Show"]
