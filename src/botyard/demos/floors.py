"""Painted rectangles on the floors of shows."""

from __future__ import annotations

from botyard.model.floor import FloorZone


def rectangle(
    name: str, x0: float, y0: float, x1: float, y1: float, color: str
) -> FloorZone:
    """Return a zone that only colours a rectangle of the floor and has no effect on robots.

    Parameters
    ----------
    name : str
        Name of the zone.
    x0, y0, x1, y1 : float
        Smallest and largest coordinates, m.
    color : str
        X11 colour name or ``#rrggbb``.
    """
    return FloorZone(
        name=name, corners=((x0, y0), (x1, y0), (x1, y1), (x0, y1)), color=color
    )


__all__ = ["rectangle"]
