"""Beams that walk through the grid together against beams that walk in pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.devices.ranging import RangeDevices
from botyard.engine.kernels.strides import LANES, LEAST_BEAMS
from botyard.engine.simulation import Engine
from botyard.geometry import Pose
from botyard.model.beams import Bundle
from botyard.model.obstacles import Visible
from botyard.model.scene import Scene
from tests.engine.worlds import random_segments, robot


def scans(
    scene: Scene, poses: list[Pose], angles: np.ndarray, r_max: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of beams from each pose: all in one device, and a few in each device.

    The first walk together, the others in pairs.
    """
    devices = RangeDevices()
    engine = Engine(scene, senses=(devices,))
    engine.add_bodies([(robot(f"r{n}"), pose) for n, pose in enumerate(poses)])
    # Bundles of one beam are not met by spans.
    bundles = [Bundle(angle0=float(a), r_max=r_max) for a in angles]
    few = LEAST_BEAMS - 1
    together, in_pairs = [], []
    for n in range(len(poses)):
        devices.configure((n, "all"), f"r{n}", 1, Visible.LASER, bundles)
        together.append(devices.read(engine, (n, "all")).ranges.copy())
        for k in range(0, len(bundles), few):
            devices.configure((n, k), f"r{n}", 1, Visible.LASER, bundles[k : k + few])
            in_pairs.append(devices.read(engine, (n, k)).ranges.copy())

    return np.concatenate(together), np.concatenate(in_pairs)


@pytest.mark.parametrize("seed", range(4))
def test_both_walks_give_the_same_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    met = 0
    for _ in range(20):
        segments = random_segments(rng, int(rng.integers(1, 200)))
        # Axes, lattice points and long walls are where rounding goes both ways.
        if rng.integers(2):
            segments = np.round(segments)
        segments = segments[np.any(segments[:, :2] != segments[:, 2:], axis=1)]
        segments = np.concatenate([segments, [(0.0, 0.0, 10.0, 0.0)]])
        r_max = float(rng.choice([1.0, 8.0, 100.0]))
        count = int(rng.choice([LEAST_BEAMS, 61, LANES, LANES + 1, 2 * LANES + 7]))
        poses = [
            Pose(*rng.uniform((-4.0, -4.0, -4.0), (14.0, 14.0, 4.0))) for _ in range(3)
        ]
        angles = np.linspace(-math.pi, math.pi, count)
        together, in_pairs = scans(Scene(segments=segments), poses, angles, r_max)
        assert np.array_equal(together, in_pairs)
        met += int((together < r_max).sum())

    # Otherwise nothing was compared.
    assert met > 500


def test_beams_along_axes_from_corners_of_cells_give_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    points = np.unique(np.round(rng.uniform(0.0, 6.0, (800, 2)), 1), axis=0)
    poses = [
        Pose(*np.round(rng.uniform(0.0, 6.0, 2), 1), 0.5 * math.pi * n)
        for n in range(8)
    ]
    angles = np.linspace(-math.pi, math.pi, 73)
    together, in_pairs = scans(
        Scene(points=points, resolution=0.1), poses, angles, 10.0
    )
    assert np.array_equal(together, in_pairs)
    assert (together < 10.0).any()


def test_a_world_without_walls_leaves_all_beams() -> None:
    together, in_pairs = scans(Scene(), [Pose()], np.linspace(-3.0, 3.0, 60), 5.0)
    assert (together == 5.0).all()
    assert (in_pairs == 5.0).all()
