"""All kernels of navigation, called once."""

from __future__ import annotations

import numpy as np

from botyard.navigation import crowds, local


def warm_up() -> None:
    """Compile the kernels, or load them, by calls of each. `near_walls` is called by whoever has a grid."""
    place, row, one = np.zeros((1, 1, 2)), np.zeros((1, 2)), np.ones(1)
    crowds.discs(np.zeros((1, 1, 3)), np.zeros((1, 1, 3)), np.zeros((1, 1)))
    crowds.commands(row, one, one, one, 0.1)
    crowds.orca(place, place, np.ones((1, 1)), row, one, dt=0.1)
    crowds.social_force(place, place, np.ones((1, 1)), row, one, dt=0.1)
    local.dynamic_window(place, row, row, dt=0.1, radius=0.3, max_v=1.0, max_w=1.0)
    local.vector_field_histogram(place, one, one, local.Histograms(1), radius=0.3)
    local.pure_pursuit(np.ones((1, 2, 2)), np.zeros((1, 3)), one, np.zeros(1))
