"""Writes the shipped scenarios: ``python -m tools.worlds``."""

from __future__ import annotations

from tools.worlds import indoors, outdoors

WORLDS = (
    indoors.airport,
    indoors.deliveries,
    outdoors.harbour,
    indoors.maze,
    indoors.museum,
    outdoors.orchard,
    outdoors.plaza,
    indoors.shift,
    outdoors.soccer,
    indoors.supermarket,
)

if __name__ == "__main__":
    for world in WORLDS:
        world()
