"""Recordings of robots of all drives, and of trains, simulate again bit for bit."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from botyard.model.library import load_robot
from botyard.model.trailers import TrailerSpec
from botyard.recording import resimulate
from botyard.sim.simulation import Simulation
from tests.recording.test_recorder import again

BOX = ((-0.5, -0.4), (0.5, -0.4), (0.5, 0.4), (-0.5, 0.4))


def world() -> Simulation:
    """Return a hall with each drive, and a tugger with two trailers."""
    sim = Simulation.load("office", seed=5)
    trailers = (
        TrailerSpec(outline=BOX, hitch=0.4, length=0.9),
        TrailerSpec(outline=BOX, hitch=0.6, length=0.9),
    )
    tugger = replace(load_robot("tugger"), trailers=trailers)
    for k, spec in enumerate(
        (load_robot("car"), load_robot("husky"), load_robot("ridgeback"), tugger)
    ):
        sim.add_robot(spec, f"r{k}", pose=sim.core.places.random(spec, k))
    return sim


def drive(sim: Simulation, steps: int) -> None:
    for k in range(steps):
        if k % 15 == 0:
            swing = math.sin(0.1 * k)
            sim.robots["r0"].command(v=0.8, steer=0.35 * swing)
            sim.robots["r1"].command(v=0.4, w=swing)
            sim.robots["r2"].command(v=0.3, vy=0.3 * swing, w=0.2)
            sim.robots["r3"].command(v=-0.2 if k % 60 == 45 else 0.5, steer=0.4 * swing)
        sim.step()


def test_all_drives_and_trains_simulate_again(tmp_path: Path) -> None:
    sim, path = world(), tmp_path / "run.mcap"
    with sim.record(path, rate=0.0):
        drive(sim, 150)
        # A robot that comes later, and a pose that is set, are in the journal.
        sim.add_robot("car", "late", pose=sim.core.places.random(load_robot("car"), 9))
        sim.robots["r3"].command.set_pose(*sim.robots["r3"].truth)
        drive(sim, 50)
    compared, last = again(path)
    assert compared >= 10 and last == sim.digest()
    proof = resimulate(path)
    assert proof.divergence is None and proof.steps == 200


@pytest.mark.parametrize("moment", [1, 40])
def test_states_of_all_drives_go_on_alike(moment: int) -> None:
    sim = world()
    drive(sim, moment)
    state = sim.save_state()
    drive(sim, 40)
    expected = sim.digest()
    sim.restore(state)
    drive(sim, 40)
    assert sim.digest() == expected
