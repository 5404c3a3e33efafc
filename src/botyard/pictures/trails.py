"""Trails of robots: their past positions, sampled at an interval of simulated time.

The page samples trails in the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

SPACING_S: Final = 0.2
"""Simulated time between two samples, s."""
JUMP: Final = 1.5
"""Distance between two samples of a robot, m, that counts as a jump.

No robot drives so far in `SPACING_S`: it was placed there, and its trail is interrupted.
"""
MAX_SAMPLES: Final = 3_000
"""Largest number of samples of a robot; long trails have a longer interval instead."""
BANDS: Final = 4
"""Number of parts of a trail, by age; older parts are drawn fainter."""

Piece = NDArray[np.float64]
"""Part of a trail without a jump: positions, (n, 2), m."""


class Trails:
    """Recent positions of robots.

    Parameters
    ----------
    seconds : float
        Length of the trails, simulated s; 0: no trails.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._spacing = max(SPACING_S, seconds / MAX_SAMPLES)
        self._samples: dict[str, deque[tuple[float, float, float]]] = {}
        self._last = -np.inf

    def add(
        self, time: float, places: Iterable[tuple[str, tuple[float, float]]]
    ) -> None:
        """Add the positions, m, of all robots at a time.

        A call is ignored if the interval since the last sample has not passed. If time has
        gone back, all trails are cleared.

        Parameters
        ----------
        time : float
            Simulated time, s.
        places : iterable of (str, (float, float))
            Name and position, m, of each robot. Robots that are not listed lose their
            trails.
        """
        if not self._seconds:
            return
        if time < self._last:
            self._samples.clear()
            self._last = -np.inf

        if time - self._last < self._spacing - 1e-9:
            return
        self._last = time
        # Fill a new table, so that robots that no longer exist have no samples.
        found = dict[str, deque[tuple[float, float, float]]]()
        for name, (x, y) in places:
            samples = self._samples.get(name)
            if samples is None:
                samples = deque(maxlen=MAX_SAMPLES + 1)
            samples.append((time, x, y))
            while samples[0][0] < time - self._seconds:
                samples.popleft()
            found[name] = samples

        self._samples = found

    def bands(
        self, name: str, time: float, x: float, y: float
    ) -> list[tuple[int, list[Piece]]]:
        """Return a robot's trail up to its current position.

        The trail is divided by age into `BANDS` bands, of which band 0 is the oldest. A band
        consists of pieces, because the trail is interrupted at jumps.

        Parameters
        ----------
        name : str
            Name of the robot.
        time : float
            Simulated time of the picture, s.
        x, y : float
            Position of the robot at this time, m.

        Returns
        -------
        list of (int, list of (n, 2) float64)
            Number of each band and its pieces, oldest first; bands without samples are left
            out.
        """
        samples = self._samples.get(name)
        if not samples:
            return []
        at = np.array([*samples, (time, x, y)])

        # Longer intervals allow longer distances between samples.
        far = JUMP * max(1.0, float(np.diff(at[:, 0]).max()) / SPACING_S)
        cuts = np.flatnonzero(np.abs(np.diff(at[:, 1:], axis=0)).sum(axis=1) > far) + 1

        age = np.clip((at[:, 0] - (time - self._seconds)) / self._seconds, 0.0, 1.0)
        band = np.minimum((age * BANDS).astype(int), BANDS - 1)

        found: list[tuple[int, list[Piece]]] = []
        for k in range(BANDS):
            inside = np.flatnonzero(band == k)
            if not inside.size:
                continue
            # A band also includes the first sample of the next band, so that no gap is visible.
            first, last = int(inside[0]), min(int(inside[-1]) + 2, len(at))
            within = cuts[(cuts > first) & (cuts < last)]
            pieces = np.split(at[first:last, 1:], within - first)
            found.append((k, [piece for piece in pieces if len(piece) > 1]))

        return found


__all__ = ["BANDS", "JUMP", "SPACING_S", "Trails"]
