"""Cost of changes to a running world: robots that come and go, states saved and
restored, devices that act.

CPU time of the calling thread, the least of many. Limits were set on another machine;
they are scaled by the speed of the C kernel of `bench.reference` in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from bench.reference import Yardstick
from botyard.formats.models import find_robot
from botyard.model.library import parse_robot
from botyard.model.readings import Action
from botyard.model.robot import RobotSpec
from botyard.sim.simulation import Simulation

ROUNDS: Final = 40
Measured = Callable[[], Iterable[float]]


def rows(n: int, spacing: float = 2.0) -> np.ndarray:
    """Return `n` poses in a square lattice."""
    side = int(np.ceil(np.sqrt(n)))
    at = np.stack(np.divmod(np.arange(n), side), axis=1) * spacing
    return np.column_stack([at, np.zeros(n)])


def timed(act: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    begin = time.thread_time()
    act()
    return time.thread_time() - begin


def fleet(n: int, spec: str | RobotSpec = "p3dx") -> Simulation:
    """Return a world of `n` robots after some steps."""
    sim = Simulation()
    sim.add_robots(spec, rows(n))
    sim.step(3)
    return sim


def adding() -> Iterable[float]:
    """Time how long it takes to add one robot to 1000; remove it again after each round."""
    sim, spec = fleet(1000), find_robot("p3dx")
    for _ in range(ROUNDS):
        yield timed(lambda: sim.add_robot(spec, "new", pose=(-5.0, -5.0, 0.0)))
        sim.remove_robot("new")


def removing() -> Iterable[float]:
    """Time how long it takes to remove a robot from the middle of 1000."""
    sim, spec = fleet(1000), find_robot("p3dx")
    for k in range(ROUNDS):
        name = list(sim.robots)[500]
        yield timed(lambda name=name: sim.remove_robot(name))  # type: ignore[misc]
        sim.add_robot(spec, f"new{k}", pose=(-5.0 - 2.0 * k, -5.0, 0.0))


def saving() -> Iterable[float]:
    """Time how long it takes to save the state of 1000 robots, as happens after each step."""
    sim = fleet(1000)
    for _ in range(ROUNDS):
        yield timed(sim.save_state)
        sim.step()


def restoring() -> Iterable[float]:
    """Time how long it takes to restore a state of 1000 robots."""
    sim = fleet(1000)
    state = sim.save_state()
    for _ in range(ROUNDS):
        sim.step()
        yield timed(lambda: sim.restore(state))


def saving_one() -> Iterable[float]:
    """Time how long it takes to save the state of one robot."""
    sim = fleet(1)
    for _ in range(ROUNDS):
        yield timed(sim.save_state)


def _excess(sim: Simulation, plain: Simulation) -> Iterable[float]:
    """Yield by how much a step of `sim` takes longer than a step of `plain`, s; later values
    are better.
    """
    own, other = [], []
    for _ in range(ROUNDS):
        own.append(timed(sim.step))
        other.append(timed(plain.step))
        yield min(own) - min(other)


def draining() -> Iterable[float]:
    """Time what 1000 batteries that drain add to a step."""
    full = parse_robot('extends = "p3dx"\nbattery = { capacity_wh = 100.0 }', "thirsty")
    return _excess(fleet(1000, full), fleet(1000))


def idle() -> Iterable[float]:
    """Time what the devices of 200 equipped robots that stand still add to a step."""
    spec = find_robot("p3dx-equipped")
    bare = replace(spec, gripper=None)
    return _excess(fleet(200, spec), fleet(200, bare))


def grippers(n: int, things: bool) -> Simulation:
    """Return `n` robots with open grippers; `things`: with a box between the paddles of each
    gripper.
    """
    sim = Simulation()
    poses = rows(n)
    sim.add_robots("p3dx-equipped", poses)
    if things:
        sim.add_robots("small-box", poses + np.array([0.3, 0.0, 0.0]))
    sim.step()
    return sim


def closing() -> Iterable[float]:
    """Time what 100 grippers that close on nothing add to a step."""
    for _ in range(ROUNDS // 8):
        sim = grippers(100, False)
        for robot in sim.robots.values():
            robot.gripper.act(Action.CLOSE)  # type: ignore[union-attr]
        sim.step()
        for _ in range(5):
            yield timed(sim.step)


def gripping() -> Iterable[float]:
    """Time a step in which 100 grippers grip a box each."""
    for _ in range(ROUNDS // 8):
        sim = grippers(100, True)
        arms = [
            robot.gripper for robot in sim.robots.values() if robot.gripper is not None
        ]
        for arm in arms:
            arm.act(Action.CLOSE)
        longest = 0.0
        for _ in range(12):
            held = sum(arm.holding is not None for arm in arms)
            cost = timed(sim.step)
            if sum(arm.holding is not None for arm in arms) > held + 50:
                longest = max(longest, cost)

        assert longest, "they grip together"
        yield longest


def steps() -> Iterable[float]:
    """Time 1000 steps of one robot whose sensors have no reader."""
    sim = fleet(1)
    for _ in range(ROUNDS):
        yield timed(lambda: [sim.step() for _ in range(1000)])


def commands() -> Iterable[float]:
    """Time 1000 velocities for one robot, queued for the next step."""
    sim = fleet(1)
    (robot,) = sim.robots.values()
    for _ in range(ROUNDS):
        yield timed(lambda: [robot.command(0.1, 0.0) for _ in range(1000)])
        sim.step()


def commanded_steps() -> Iterable[float]:
    """Time 1000 steps of one robot with a new velocity in each step."""
    sim = fleet(1)
    (robot,) = sim.robots.values()
    for _ in range(ROUNDS):
        yield timed(
            lambda: [(robot.command(0.1, 0.0), sim.step()) for _ in range(1000)]
        )


CASES: Final[tuple[tuple[str, Measured, float], ...]] = (
    ("adding one robot to 1000", adding, 1.0),
    ("removing one from the middle of 1000", removing, 1.0),
    ("saving the state of 1000 robots", saving, 2.0),
    ("restoring 1000 robots", restoring, 12.0),
    ("saving the state of one robot", saving_one, 0.1),
    ("a step: 1000 draining batteries", draining, 0.5),
    ("a step: 200 idle equipped robots", idle, 0.3),
    ("a step: 100 closing grippers", closing, 3.0),
    ("a step: 100 things gripped at once", gripping, 8.0),
    ("1000 steps of one robot", steps, 9.0),
    ("1000 commands to one robot", commands, 3.0),
    ("1000 steps of one robot, each with a command", commanded_steps, 16.0),
)
"""What is measured, and the limit that was set for it, ms."""


def main() -> None:
    yardstick = Yardstick()
    print(
        "   ms of CPU time, the least and the median of many   least   median   limit, scaled"
    )
    for what, measure, limit in CASES:
        yardstick.measure()
        costs = sorted(measure())
        least = costs[0] * 1e3
        print(
            f"   {what:48} {least:7.3f}  {costs[len(costs) // 2] * 1e3:7.3f}   "
            f"{yardstick.judge(least, limit)}",
            flush=True,
        )

    print(f"   {yardstick}")


if __name__ == "__main__":
    main()
