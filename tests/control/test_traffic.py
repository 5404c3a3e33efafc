"""A live run of traffic: who waits for whom and why, and decisions by hand."""

from __future__ import annotations

import pytest

from botyard.control import (
    Caller,
    Control,
    EndTraffic,
    GrantSector,
    HoldTraffic,
    Level,
    RevokeSector,
    RunTraffic,
    StepTraffic,
)
from botyard.errors import ArgumentError, DeniedError, NotNowError, WorldError
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from botyard.traffic import drawnpaths
from botyard.traffic.generate import generate
from botyard.traffic.live import LiveTraffic
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.supervisors.base import Supervisor
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.supervisors.reserving import FirstComeFirstServed
from botyard.traffic.task import TaskError
from tests.control.test_mapediting import PAGE, take_back

CROSSING = (
    ("ann", ((10.0, 0.0), (20.0, 0.0))),
    ("bob", ((10.0, 0.0), (10.0, 10.0))),
)


@pytest.fixture
def control() -> Control:
    """Ann drives to the east, bob to the north, and they cross at (10, 0)."""
    sim = Simulation(Scene(name="yard"), seed=1)
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(10.0, -10.0, 1.57))
    made = Control(sim)
    made.traffic = LiveTraffic(sim)
    return made


def live(control: Control) -> LiveTraffic:
    assert isinstance(control.traffic, LiveTraffic)
    return control.traffic


def family(
    supervisor: str = "fcfs", name: str = "deadlock", number: int = 4
) -> Control:
    """A run of a task, with robots of its own."""
    sim = Simulation(seed=1)
    control = Control(sim)
    traffic = LiveTraffic(sim)
    control.traffic = traffic
    traffic.attach(
        RobotTraffic(generate(name, number), find_supervisor(supervisor), sim),
        supervisor,
    )
    return control


def until(control: Control, seconds: float, holds: object) -> None:
    """Step until a condition holds, at most for a simulated time."""
    sim = control.sim
    end = sim.time + seconds
    while not holds():  # type: ignore[operator]
        assert sim.time < end, "does not hold in time"
        sim.step()


def moving(control: Control, name: str) -> bool:
    return abs(control.sim.robots[name].velocity.vx) > 0.05


def test_drawn_paths_are_driven_without_a_collision(control: Control) -> None:
    """One robot waits for the other at the crossing, and both arrive."""
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="fcfs"))
    traffic, sim = live(control), control.sim
    run = traffic.present
    assert run is not None and len(run.task.listed) > 0
    until(control, 60.0, lambda: any(w.by for w in traffic.waits()[0]))
    until(control, 20.0, lambda: not moving(control, "bob"))
    (wait,), circles = traffic.waits()
    waiting = run.drivers[wait.robot].robot
    (other,) = wait.by
    assert {waiting.name, run.drivers[other].robot.name} == {"ann", "bob"}
    assert circles == [] and wait.reason == "" and wait.since < sim.time
    until(control, 120.0, lambda: traffic.ending)
    assert traffic.ending == "completed"
    assert sim.robots["ann"].truth.x == pytest.approx(20.0, abs=0.15)
    assert sim.robots["bob"].truth.y == pytest.approx(10.0, abs=0.15)
    grants = [d for d in traffic.decisions() if d.what == "grants"]
    assert grants and all(d.by == "fcfs" for d in grants)
    with pytest.raises(NotNowError):
        control.do(PAGE, HoldTraffic(on=True))


def test_a_deadlock_has_its_circle() -> None:
    deadlocked = family()
    traffic = live(deadlocked)
    until(deadlocked, 60.0, lambda: traffic.waits()[1])
    waits, circles = traffic.waits()
    assert circles == [(0, 1, 2, 3)]
    assert sorted((w.robot, w.by) for w in waits) == [
        (i, ((i + 1) % 4,)) for i in range(4)
    ]
    until(deadlocked, 60.0, lambda: traffic.ending)
    assert traffic.ending == "deadlock"
    # Each deadlock has a circle of its own.
    both = family(number=8)
    until(both, 60.0, lambda: len(live(both).waits()[1]) == 2)
    assert sorted(live(both).waits()[1]) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    # The bankers keep a sector free, and say for whom.
    safe = family("bankers")
    reasons: set[str] = set()
    end = safe.sim.time + 60.0
    while safe.sim.time < end:
        safe.sim.step()
        reasons |= {w.reason for w in live(safe).waits()[0] if not w.by}
    assert any("kept free: with it traffic0, traffic1" in r for r in reasons)


def test_held_decisions_take_effect_one_by_one(control: Control) -> None:
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="fcfs"))
    traffic = live(control)
    control.do(PAGE, HoldTraffic(on=True))
    run = traffic.present
    assert run is not None
    until(control, 60.0, lambda: traffic.waiting_decisions == 1)
    for _ in range(100):
        control.sim.step()
    assert not moving(control, "ann") and not moving(control, "bob")
    waits, _ = traffic.waits()
    assert "decided, but decisions are held" in {w.reason for w in waits}
    before = [d.allowed for d in run.drivers]
    permit = control.do(PAGE, StepTraffic())
    after = [d.allowed for d in run.drivers]
    assert sum(after) - sum(before) == permit.after - permit.before == 1
    with pytest.raises(NotNowError, match="no decision"):
        control.do(PAGE, StepTraffic())
    until(control, 20.0, lambda: moving(control, permit.robot))
    assert traffic.is_held
    take_back(control)
    assert [d.allowed for d in run.drivers] == before
    control.do(PAGE, HoldTraffic(on=False))
    # The step was undone by hand, so the robot waits for a hand.
    control.do(PAGE, GrantSector(robot=permit.robot))
    until(control, 120.0, lambda: traffic.ending)
    assert traffic.ending == "completed"


def test_a_sector_that_is_held_cannot_be_granted(control: Control) -> None:
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="fcfs"))
    traffic = live(control)
    run = traffic.present
    assert run is not None
    until(control, 60.0, lambda: any(w.by for w in traffic.waits()[0]))
    (wait,), _ = traffic.waits()
    waiting, other = (run.drivers[i].robot.name for i in (wait.robot, wait.by[0]))
    with pytest.raises(
        WorldError, match=rf"{waiting} cannot get sector {wait.sector}: {other} holds"
    ):
        control.do(PAGE, GrantSector(robot=waiting))
    last = len(run.drivers[wait.robot].vehicle.ends) - 1
    with pytest.raises(WorldError, match=f"to {last}, found {last + 1}"):
        control.do(PAGE, GrantSector(robot=waiting, sector=last + 1))
    with pytest.raises(WorldError, match="carol drives no path"):
        control.do(PAGE, GrantSector(robot="carol"))


def test_a_hand_reverses_the_order_of_two_robots(control: Control) -> None:
    """The permission of one robot goes to the other, without a collision; the
    supervisor's own record stays right for both.
    """
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="fcfs"))
    traffic = live(control)
    run = traffic.present
    assert run is not None
    control.do(PAGE, HoldTraffic(on=True))
    until(control, 60.0, lambda: traffic.waiting_decisions)
    until(control, 60.0, lambda: not any(moving(control, n) for n in ("ann", "bob")))
    first = control.do(PAGE, StepTraffic()).robot
    second = "bob" if first == "ann" else "ann"
    permit = control.do(PAGE, RevokeSector(robot=first))
    assert permit.after == permit.before - 1
    control.do(PAGE, HoldTraffic(on=False))
    until(
        control,
        60.0,
        lambda: "taken back by hand" in {w.reason for w in traffic.waits()[0]},
    )
    until(control, 60.0, lambda: len(traffic.waits()[0]) == 2)
    mine = next(d for d in run.drivers if d.robot.name == second)
    while mine.allowed < len(mine.vehicle.ends) - 1:
        control.do(PAGE, GrantSector(robot=second))
    # Undo and redo of the last grant.
    assert "undone: granting sector" in take_back(control)
    assert mine.allowed == len(mine.vehicle.ends) - 2
    assert "redone" in take_back(control, again=True)
    with pytest.raises(WorldError, match="holds its sector"):
        control.do(PAGE, GrantSector(robot=first))
    until(control, 120.0, lambda: mine.done)
    assert not moving(control, first)
    control.do(PAGE, GrantSector(robot=first))
    until(control, 120.0, lambda: traffic.ending)
    assert traffic.ending == "completed"
    # A sector that stays in the record after a robot has left it blocks all others.
    assert isinstance(run.supervisor, FirstComeFirstServed)
    assert run.supervisor.held == {
        (i, len(v.ends) - 1) for i, v in enumerate(run.task.vehicles)
    }


def test_a_robot_that_cannot_stop_keeps_its_permission(control: Control) -> None:
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="dummy", speed=1.0))
    run = live(control).present
    assert run is not None
    ann = next(d for d in run.drivers if d.robot.name == "ann")
    with pytest.raises(WorldError, match="has no permission"):
        control.do(PAGE, RevokeSector(robot="ann"))
    until(
        control,
        60.0,
        lambda: (
            ann.allowed > ann.head
            and ann.at > ann.vehicle.ends[ann.head] - ann.vehicle.radius - 0.2
        ),
    )
    with pytest.raises(WorldError, match="can no longer stop before its sector"):
        control.do(PAGE, RevokeSector(robot="ann", sector=ann.head + 1))


class Reckless(Supervisor):
    """A supervisor that grants each request and knows nothing of hands."""

    def on_critical(self, robot: int, sector: int) -> None:
        self.grant(robot, sector)


def test_a_supervisor_cannot_overrule_a_hand(control: Control) -> None:
    """Its grant waits while a robot is in a sector by the user's grant."""
    control.do(PAGE, RunTraffic(paths=CROSSING))
    traffic = live(control)
    task = traffic.present.task if traffic.present else None
    assert task is not None
    robots = [control.sim.robots["ann"], control.sim.robots["bob"]]
    traffic.attach(RobotTraffic(task, Reckless(), control.sim, robots=robots), "mine")
    run = traffic.present
    assert run is not None
    ann, bob = run.drivers
    control.do(PAGE, GrantSector(robot="ann", sector=len(ann.vehicle.ends) - 1))
    until(control, 60.0, lambda: any(w.by == (0,) for w in traffic.waits()[0]))
    until(control, 120.0, lambda: traffic.ending)
    assert traffic.ending == "completed" and bob.done


class Broken(Supervisor):
    """A supervisor with a defect."""

    def on_critical(self, robot: int, sector: int) -> None:
        raise RuntimeError("no idea")


def test_the_end_of_a_run_has_a_reason(control: Control) -> None:
    traffic, sim = live(control), control.sim
    control.do(PAGE, RunTraffic(paths=CROSSING))
    version = traffic.version
    until(control, 60.0, lambda: moving(control, "ann"))
    sim.remove_robots(["bob"])
    sim.step()
    assert traffic.ending == "ended: bob is gone from the world"
    for _ in range(30):
        sim.step()
    assert not moving(control, "ann")
    control.do(PAGE, EndTraffic())
    assert traffic.version > version and traffic.waits() == ([], [])
    control.do(PAGE, RunTraffic(paths=CROSSING[:1]))
    task = traffic.present.task if traffic.present else None
    assert task is not None
    control.do(
        PAGE,
        RunTraffic(paths=(("ann", ((sim.robots["ann"].truth.x + 9.0, 0.0),)),)),
    )
    traffic.attach(
        RobotTraffic(generate("star", 3), Broken(), sim, prefix="new"), "broken"
    )
    until(control, 60.0, lambda: traffic.ending)
    assert "the supervisor failed: RuntimeError: no idea" in traffic.ending


def test_wrong_requests(control: Control) -> None:
    do = control.do
    for operation in (HoldTraffic(on=True), StepTraffic(), GrantSector(robot="ann")):
        with pytest.raises(NotNowError, match="no traffic run"):
            do(PAGE, operation)
    with pytest.raises(ArgumentError, match="one path for each robot"):
        do(PAGE, RunTraffic(paths=()))
    with pytest.raises(ArgumentError, match="one path for each robot"):
        do(PAGE, RunTraffic(paths=(CROSSING[0], CROSSING[0])))
    with pytest.raises(WorldError, match="there is no robot carol"):
        do(PAGE, RunTraffic(paths=(("carol", ((1.0, 1.0),)),)))
    with pytest.raises(WorldError, match="has no length"):
        do(PAGE, RunTraffic(paths=(("ann", ((0.0, 0.0),)),)))
    with pytest.raises(WorldError, match="supervisor: expected one of none"):
        do(PAGE, RunTraffic(paths=CROSSING, supervisor="evil.py:Code"))
    head_on = (("ann", ((10.0, -10.0),)), ("bob", ((0.0, 0.0),)))
    with pytest.raises(
        WorldError, match="bankers: ann and bob cannot all finish, in any order"
    ):
        do(PAGE, RunTraffic(paths=head_on))
    control.sim.add_robot("car", "car", pose=(30.0, 0.0, 0.0))
    with pytest.raises(WorldError, match="car cannot drive a sector path"):
        do(PAGE, RunTraffic(paths=(("car", ((40.0, 0.0),)),)))
    with pytest.raises(DeniedError):
        do(Caller("page", Level.WATCH), RunTraffic(paths=CROSSING))
    assert live(control).version == 0


def test_the_start_is_undone(control: Control) -> None:
    """Robots get the controllers that they had before."""
    sim = control.sim
    sim.robots["ann"].set_controller("wander")
    control.do(PAGE, RunTraffic(paths=CROSSING))
    assert "ann" not in sim.core.programs.by_robot
    take_back(control)
    assert live(control).present is None
    assert sim.core.programs.by_robot["ann"].name == "wander"
    take_back(control, again=True)
    assert live(control).present is not None


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (((1.0e9, 0.0),), "at most 100000 m together, found 2e"),
        (((1.0e308, 0.0), (-1.0e308, 0.0)), "at most 100000 m together, found inf m"),
        (tuple((10.0 * (i % 2), i / 20) for i in range(200)), "at most 2000 pairs"),
    ],
)
def test_paths_have_limits(
    control: Control,
    points: tuple[tuple[float, float], ...],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drawnpaths, "MAX_PAIRS", 2000)
    with pytest.raises((WorldError, TaskError), match=reason):
        control.do(PAGE, RunTraffic(paths=(("ann", points), ("bob", points))))
    assert live(control).present is None


def test_only_drawn_paths_are_saved(control: Control) -> None:
    """A run of a task after a drawn one does not have the speed of the drawn one."""
    traffic = live(control)
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="fcfs", speed=0.2))
    drawn = traffic.left()
    assert drawn is not None and drawn.speed == 0.2
    task = generate("deadlock", 4)
    traffic.attach(RobotTraffic(task, find_supervisor("fcfs"), control.sim), "fcfs")
    assert traffic.left() is None


def test_conflicts_are_looked_up_only_if_there_are_grants_by_hand(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = live(control)
    looked: list[int] = []
    found = traffic._conflicts
    monkeypatch.setattr(
        traffic, "_conflicts", lambda i, s: looked.append(s) or found(i, s)
    )
    control.do(PAGE, RunTraffic(paths=CROSSING, supervisor="fcfs"))
    until(control, 60.0, lambda: len(traffic.decisions()) > 2)
    assert looked == []
