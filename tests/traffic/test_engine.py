"""The exact engine against a plain twin, and properties that hold for every task."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from botyard.errors import WorldError
from botyard.traffic.check import check, is_safe, search, stuck_robots
from botyard.traffic.compat import CompatTraffic
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import FAMILIES, generate
from botyard.traffic.kernels import events as k
from botyard.traffic.outcome import Ending, Outcome, find_cycle
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.base import Supervisor, SupervisorError
from botyard.traffic.supervisors.fixedorder import FixedOrder
from botyard.traffic.supervisors.registry import (
    BUILT_IN,
    find_supervisor,
    supervisor_names,
)
from botyard.traffic.supervisors.reserving import (
    Bankers,
    FirstComeFirstServed,
    Priority,
)
from botyard.traffic.task import Task, Vehicle
from tests.traffic.naive import can_end, first_come_first_served
from tests.traffic.tasks import random_task

SAFE = ("fcfs", "priority", "chained", "bankers", "order")
LIVE = ("chained", "bankers", "order")


def rows(out: Outcome) -> list[tuple[float, int, str, int]]:
    return [
        (r["t"], r["robot"], r["kind"], r.get("sector", r.get("other")))
        for r in out.events.rows()
    ]


def run(task: Task, name: str, **rules: object) -> Outcome:
    return Traffic(task, find_supervisor(name), Rules(**rules)).run()  # type: ignore[arg-type]


# -- against the twin


@pytest.mark.parametrize("seed", range(60))
def test_events_are_those_of_a_plain_simulation(seed: int) -> None:
    task = random_task(seed)
    got, want = rows(run(task, "fcfs")), first_come_first_served(task)
    assert [g[1:] for g in got] == [w[1:] for w in want]
    assert [g[0] for g in got] == pytest.approx([w[0] for w in want], abs=1e-8)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("name", [n for n in BUILT_IN if n != "none"])
def test_compiled_supervisors_do_what_their_classes_do(name: str) -> None:
    for seed in range(80):
        task = random_task(seed, short=seed % 2 == 1)
        rules = Rules(leaves=seed % 3 == 0, stop_at_end=seed % 5 == 0, goes_on=True)
        fast = Traffic(task, find_supervisor(name), rules).run()
        slow = Traffic(
            task,
            find_supervisor(name),
            Rules(
                leaves=rules.leaves,
                stop_at_end=rules.stop_at_end,
                goes_on=True,
                compiled=False,
            ),
        ).run()
        assert rows(fast) == rows(slow), seed
        assert fast.ending is slow.ending
        assert fast.metrics == slow.metrics


# -- properties


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("name", SAFE)
def test_no_collision_and_no_deadlock_that_was_promised_away(name: str) -> None:
    """Thousands of random tasks, some with sectors shorter than braking distances."""
    completed = refused = 0
    for seed in range(1200):
        task = random_task(seed, short=seed % 2 == 1)
        try:
            out = run(task, name, leaves=seed % 4 == 0, stop_at_end=seed % 3 == 0)
        except SupervisorError:
            refused += 1
            assert name in ("bankers", "order")
            continue

        assert out.ending in (Ending.COMPLETED, Ending.DEADLOCK), (seed, out.describe())
        completed += out.ending is Ending.COMPLETED
        if name in LIVE:
            assert out.ending is Ending.COMPLETED, (seed, out.describe())
        elif out.ending is Ending.DEADLOCK:
            assert len(out.cycle) >= 2, seed
            for i, j in zip(out.cycle, (*out.cycle[1:], out.cycle[0]), strict=True):
                assert j in out.waiting[i][1]

    assert refused == 0, "first and last sectors of these tasks are on nobody's way"
    assert completed >= 600


@pytest.mark.parametrize("seed", range(40))
def test_the_bankers_grants_are_safe_by_an_exhaustive_oracle(seed: int) -> None:
    """Up to four robots:

    after every grant an order exists in which all end, and all end.
    """
    task = random_task(seed, 2 + seed % 3, varied=False)
    out = run(task, "bankers")
    assert out.ending is Ending.COMPLETED
    tail, head = [0] * len(task), [0] * len(task)
    for _, i, kind, sector in rows(out):
        if kind == "grant":
            head[i] = sector
            assert can_end(task, tuple(zip(tail, head, strict=True))), (seed, i, sector)
        elif kind == "release":
            tail[i] = sector + 1


def test_the_oracle_finds_what_the_banker_avoids() -> None:
    """First come first served reaches states that cannot end; otherwise the test above
    would prove nothing.
    """
    lost = 0
    for seed in range(40):
        task = random_task(seed, 2 + seed % 3, varied=False)
        if run(task, "fcfs").ending is Ending.DEADLOCK:
            lost += 1

    assert lost >= 3


@pytest.mark.parametrize("seed", range(30))
def test_safe_starts_can_be_solved(seed: int) -> None:
    """The search solves every start that the Banker's test calls safe; the converse
    does not always hold.
    """
    rng = np.random.default_rng(seed)
    vehicles = tuple(Vehicle(ends=np.arange(1.0, 4.0) * 3) for _ in range(3))
    listed = {
        (int(a), int(rng.integers(3)), int(b), int(rng.integers(3)))
        for a, b in (rng.choice(3, 2, replace=False) for _ in range(4))
    }
    task = Task(vehicles, np.array(sorted(listed), np.int64))
    solvable, states = search(task)
    assert states >= 1
    if is_safe(task):
        assert solvable
        assert run(task, "bankers").ending is Ending.COMPLETED
    elif len(task.start_conflicts):
        assert (solvable, run(task, "fcfs").ending) == (False, Ending.COLLISION)
    else:
        with pytest.raises(SupervisorError, match="not safe"):
            run(task, "bankers")


# -- rules


def straight(length: float, *, sectors: int = 1, **own: float) -> Task:
    return Task((Vehicle(ends=np.linspace(0, length, sectors + 1)[1:], **own),))


@pytest.mark.parametrize(
    ("length", "time"), [(6.6, 11.7788), (11.6, 19.4712), (15.6, 25.6250)]
)
def test_an_undisturbed_run(length: float, time: float) -> None:
    """T = L/v + v/(2a) (mmrs.md §10)."""
    out = run(straight(length), "none")
    assert out.makespan == pytest.approx(time, abs=1e-4)
    assert out.makespan == pytest.approx(length / 0.65 + 0.65 / 0.4, abs=1e-9)


@pytest.mark.parametrize("length", [0.3, 1.0, 6.6])
def test_stopping_exactly_at_the_end(length: float) -> None:
    """Accelerate to the greatest speed, or as far as the braking distance allows:

    v² = 2 L / (1/a + 1/b).
    """
    out = run(straight(length), "none", stop_at_end=True)
    top = min(0.65, math.sqrt(2 * length / (1 / 0.2 + 1 / 0.6)))
    rest = length - top * top / 2 * (1 / 0.2 + 1 / 0.6)
    assert out.makespan == pytest.approx(top / 0.2 + top / 0.6 + rest / 0.65, abs=1e-9)
    traffic = Traffic(
        straight(length), find_supervisor("none"), Rules(stop_at_end=True)
    )
    traffic.run()
    x, v = np.zeros(1), np.zeros(1)
    k.places(traffic.world, 1e4, x, v)
    assert (x[0], v[0]) == pytest.approx((length, 0.0), abs=1e-9)


@pytest.mark.parametrize("length", [0.5, 0.5 + 5e-10, 0.5 - 5e-10])
def test_stopping_exactly_where_the_rear_leaves_a_sector(length: float) -> None:
    """The last sector is as long as the radius:

    its end coincides with the release point of the previous sector.
    """
    task = Task((Vehicle(ends=np.array([4.0, 4.0 + length])),))
    out = run(task, "dummy", stop_at_end=True)
    assert (out.ending, [r[2] for r in rows(out)][-1]) == (Ending.COMPLETED, "finish")


def test_a_start_on_the_way() -> None:
    """A robot that starts in its third sector requests only the fourth."""
    out = run(straight(12.0, sectors=4, start=7.0), "dummy")
    named = [(kind, sector) for _, _, kind, sector in rows(out)]
    assert named[0] == ("critical", 3)
    assert [s for kind, s in named if kind == "release"] == [2]
    assert out.makespan == pytest.approx(5.0 / 0.65 + 0.65 / 0.4)


def test_a_permission_restarts_a_robot_at_rest_exactly_at_the_next_sector() -> None:
    """The tie of §10:

    a robot at rest on the point has not entered; when it goes on, it has.
    """
    task = straight(10.0, sectors=2)
    out = Traffic(task, find_supervisor("none"), grants=[(30.0, 0)]).run()
    late = [(t, kind) for t, _, kind, _ in rows(out) if t >= 30.0]
    assert late[:3] == [(30.0, "grant"), (30.0, "start"), (30.0, "enter")]
    assert out.metrics["stops"] == 1
    stopped = next(t for t, _, kind, _ in rows(out) if kind == "stop")
    assert out.metrics["waiting_time_s"] == pytest.approx(30.0 - stopped - 0.65 / 0.6)


def test_robots_that_leave_give_their_last_sector_back() -> None:
    ends = np.array([3.0, 6.0])
    task = Task(
        (Vehicle(ends=ends), Vehicle(ends=np.array([9.0, 12.0, 15.0]))),
        np.array([[0, 0, 1, 1], [0, 1, 1, 1]]),
    )
    assert run(task, "fcfs").ending is Ending.DEADLOCK
    with pytest.raises(SupervisorError, match="bankers: the start is not safe"):
        run(task, "bankers")
    for name in ("fcfs", "bankers", "order", "chained"):
        assert run(task, name, leaves=True).ending is Ending.COMPLETED


def test_different_robots() -> None:
    """Each with its radius and motion limits."""
    fast = Vehicle(
        ends=np.array([4.0, 8.0]),
        radius=0.3,
        velocity=2.0,
        acceleration=1.0,
        deceleration=2.0,
    )
    out = run(Task((fast, Vehicle(ends=np.array([4.0, 8.0])))), "dummy")
    first = {(i, kind): t for t, i, kind, _ in reversed(rows(out))}
    assert first[0, "critical"] == pytest.approx(2.0 + (4.0 - 0.3 - 1.0 - 2.0) / 2.0)
    assert first[0, "finish"] == pytest.approx(8.0 / 2.0 + 1.0)
    assert first[1, "finish"] == pytest.approx(8.0 / 0.65 + 1.625)


def test_messages_take_time_and_get_lost() -> None:
    task = random_task(3, 4, varied=False)
    plain = run(task, "bankers")
    late = run(task, "bankers", latency=0.5)
    assert late.ending is Ending.COMPLETED
    assert late.makespan is not None
    assert plain.makespan is not None
    assert late.makespan > plain.makespan
    again = [run(task, "bankers", latency=0.1, jitter=1.0, seed=5) for _ in range(2)]
    assert rows(again[0]) == rows(again[1]), "the same seed, the same run"
    assert rows(run(task, "bankers", latency=0.1, jitter=1.0, seed=6)) != rows(again[0])
    assert again[0].ending is Ending.COMPLETED
    lost = run(task, "fcfs", loss=1.0)
    assert lost.ending is Ending.DEADLOCK
    assert lost.cycle == ()
    assert "the supervisor grants no sector" in lost.describe()


def test_a_run_is_given_up() -> None:
    out = run(straight(100.0), "none", time_limit=10.0)
    assert out.ending is Ending.TIMEOUT
    assert out.time == 10.0
    assert out.makespan is None


@pytest.mark.parametrize(
    "bad", [{"loss": 1.5}, {"latency": -1.0}, {"time_limit": math.nan}]
)
def test_rules_are_checked(bad: dict[str, float]) -> None:
    with pytest.raises(
        WorldError, match=f"{next(iter(bad))}: expected a number from 0"
    ):
        Rules(**bad)  # type: ignore[arg-type]


def test_nobody_at_all() -> None:
    out = run(Task(()), "bankers")
    assert out.ending is Ending.COMPLETED
    assert out.makespan == 0.0


# -- users' supervisors


class Alternating(Supervisor):
    """Grants every second request at once, and the others when a robot leaves a sector."""

    def on_critical(self, robot: int, sector: int) -> None:
        self.late = getattr(self, "late", [])
        if (robot + sector) % 2:
            self.grant(robot, sector)
        else:
            self.late.append((robot, sector))

    def on_release(self, robot: int, sector: int) -> None:
        for one in self.late:
            self.grant(*one)
        self.late = []


def test_a_supervisor_of_ones_own() -> None:
    task = Task(tuple(Vehicle(ends=np.arange(1.0, 6.0) * 4 + i) for i in range(3)))
    out = Traffic(task, Alternating()).run()
    assert out.metrics["grants"] == len(
        [1 for _, _, kind, _ in rows(out) if kind == "grant"]
    )
    assert out.ending in (Ending.COMPLETED, Ending.DEADLOCK)
    assert (
        find_supervisor("tests.traffic.test_engine:Alternating").__class__
        is Alternating
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nobodyy", "expected file.py:Class, module:Class"),
        ("no.such:Thing", "cannot be used"),
        ("json:dumps", "cannot be used"),
        ("none.py:Thing", "cannot be used"),
        (
            "leaves.py:Thing",
            r"cannot be used: ImportError: SystemExit: 0 \(.*leaves\.py, line 3",
        ),
        ("broken.py:Thing", r"cannot be used: ZeroDivisionError: .*broken\.py, line 1"),
        ("json:JSONDecoder", "found JSONDecoder"),
    ],
)
def test_supervisors_that_are_none(
    name: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaves.py").write_text("import sys\n\nsys.exit(0)\n")
    (tmp_path / "broken.py").write_text("x = 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SupervisorError, match=problem):
        find_supervisor(name)


def test_a_grant_for_nobody() -> None:
    class Wrong(Supervisor):
        def on_critical(self, robot: int, sector: int) -> None:
            self.grant(99, 1)

    with pytest.raises(WorldError, match="found 99 from the supervisor"):
        Traffic(straight(10.0, sectors=2), Wrong()).run()
    with pytest.raises(WorldError, match="expected a robot from 0 to 0, found 3"):
        Traffic(straight(10.0), find_supervisor("none"), grants=[(0.0, 3)])


def test_priorities() -> None:
    """Two wait for the same zone:

    the later request is granted first if its priority is higher.
    """
    ends = np.array([3.0, 6.0, 9.0])
    slow = np.array([6.0, 9.0, 12.0])
    first = np.array([0.8, 3.8, 12.0])
    task = Task(
        (Vehicle(ends=slow), Vehicle(ends=ends), Vehicle(ends=first)),
        np.array([[2, 1, 0, 1], [2, 1, 1, 1], [0, 1, 1, 1]]),
    )
    holds = Task(
        tuple(
            Vehicle(ends=v.ends, velocity=0.1 if i == 2 else 0.65)
            for i, v in enumerate(task.vehicles)
        ),
        task.listed,
    )
    entered = {}
    for name, supervisor in {
        "fcfs": FirstComeFirstServed(),
        "own": Priority([5, 1, 0]),
        "turned": Priority([1, 5, 0]),
    }.items():
        out = Traffic(holds, supervisor).run()
        entered[name] = [i for _, i, kind, s in rows(out) if kind == "enter" and s == 1]

    assert entered["fcfs"] == [2, 1, 0]
    assert entered["own"] == [2, 1, 0]
    assert entered["turned"] == [2, 0, 1]
    with pytest.raises(
        SupervisorError, match="expected one for each of 3 robots, found 1"
    ):
        Traffic(task, Priority([1]))


def test_an_order_is_kept_or_refused() -> None:
    task = generate("deadlock", 4)
    turned = Traffic(
        task, FixedOrder([(i, s) for i in (3, 2, 1, 0) for s in range(1, 9)])
    ).run()
    assert turned.ending is Ending.COMPLETED
    finished = [i for _, i, kind, _ in rows(turned) if kind == "finish"]
    assert finished == [3, 2, 1, 0]
    circle = [(i, 3) for i in range(4)] + [
        (i, s) for i in range(4) for s in range(4, 9)
    ]
    with pytest.raises(SupervisorError, match="wait for each other in a cycle"):
        Traffic(task, FixedOrder(circle))
    with pytest.raises(
        SupervisorError, match="which conflicts with others, found no entry for it"
    ):
        Traffic(task, FixedOrder([(0, 3)]))


def test_the_shortest_circle_is_named() -> None:
    waiting = {0: (1, (1,)), 1: (1, (2,)), 2: (1, (0, 3)), 3: (1, (2,)), 4: (1, (0,))}
    assert find_cycle(waiting) == (2, 3)
    assert find_cycle({0: (1, (7,))}) == ()


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family: str) -> None:
    """Their discs never touch where sectors do not conflict; the Banker brings all
    home; the same seed gives the same task.
    """
    task = generate(family, 6, 3)
    assert task.to_json() == generate(family, 6, 3).to_json()
    assert len(task) == 6
    assert len(task.one_sided) == 0
    assert run(task, "bankers").ending is Ending.COMPLETED
    if family in ("corridor", "deadlock"):
        assert run(task, "fcfs").ending is Ending.DEADLOCK


def test_the_banker_counts_its_tests() -> None:
    traffic = Traffic(generate("warehouse", 20), Bankers())
    traffic.run()
    assert traffic.tests > 20


@pytest.mark.parametrize("name", ["fcfs", "chained", "bankers", "order", "dummy"])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"leaves": True},
        {"stop_at_end": True},
        {"latency": 0.3, "jitter": 0.5},
        {"goes_on": True},
    ],
)
def test_every_log_of_events_makes_sense(name: str, rules: dict[str, float]) -> None:
    """Times never decrease; sectors are requested, granted, entered and left in order;
    stops and starts alternate.
    """
    for seed in range(25):
        task = random_task(seed, short=seed % 2 == 0)
        out = run(task, name, **rules)
        times = out.events.t
        assert np.all(np.diff(times) >= 0.0)
        assert out.count == len(out.events)
        for i, v in enumerate(task.vehicles):
            own = [(kind, s) for _, r, kind, s in rows(out) if r == i]
            for kind, first in (
                ("critical", 1),
                ("enter", 1),
                ("release", 0),
                ("grant", 1),
            ):
                sectors = [s for what, s in own if what == kind]
                assert sectors == list(range(first, first + len(sectors))), (
                    seed,
                    i,
                    kind,
                )

            turns = [kind for kind, _ in own if kind in ("stop", "start")]
            assert all(a != b for a, b in itertools.pairwise(turns))
            assert turns[:1] in ([], ["stop"])
            at = {(kind, s): n for n, (kind, s) in enumerate(own)}
            for s in range(1, len(v.ends)):
                if ("enter", s) in at:
                    assert at["critical", s] < at["enter", s]
                    assert (
                        name == "dummy"
                        or at["grant", s] < at["enter", s]
                        or v.ends[s - 1] - v.radius < v.start
                    )

                if ("release", s) in at:
                    assert at["enter", s] < at["release", s]

        if name != "dummy":
            assert out.collisions == 0, (seed, out.describe())


@pytest.mark.slow_without_jit
def test_messages_that_are_late_or_lost_cost_time_never_safety() -> None:
    """Over a channel that loses a fifth of all messages, robots stop forever rather
    than collide.
    """
    endings = set()
    for seed in range(150):
        task = random_task(seed)
        for name in ("fcfs", "bankers", "chained"):
            out = run(
                task,
                name,
                latency=0.1,
                jitter=2.0,
                loss=0.2 if seed % 2 else 0.0,
                seed=seed,
            )
            assert out.collisions == 0
            endings.add((name, out.ending, seed % 2))
            if not seed % 2 and name != "fcfs":
                assert out.ending is Ending.COMPLETED

    assert ("bankers", Ending.DEADLOCK, 1) in endings


def test_a_robot_without_conflicts_is_not_disturbed_by_others() -> None:
    """Its events are the same to the last bit with any other robots."""
    task = random_task(11, 6)
    alone = Vehicle(ends=np.array([3.3, 7.1, 9.9]))
    both = Task((*task.vehicles, alone), task.listed)
    mine = [(t, kind, s) for t, i, kind, s in rows(run(both, "fcfs")) if i == 6]
    assert mine == [(t, kind, s) for t, _, kind, s in rows(run(Task((alone,)), "fcfs"))]


def test_decisions_of_supervisors_in_python_are_timed() -> None:
    task = random_task(4)
    out = Traffic(task, find_supervisor("bankers"), Rules(compiled=False)).run()
    kinds = [kind for _, _, kind, _ in rows(out)]
    assert out.decisions.count == sum(
        kinds.count(kind) for kind in ("critical", "release", "finish")
    )
    assert 0.0 < out.decisions.mean <= out.decisions.longest <= out.decisions.total
    assert run(task, "bankers").decisions.count == 0


def test_supervisors_of_installed_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the entry-point group, as pip installs them."""
    (tmp_path / "turnstile.py").write_text(
        "from botyard.traffic import Supervisor\n\n\nclass "
        "Turnstile(Supervisor):\n    guarantee = 'none'\n\n"
        "    def on_critical(self, robot, sector):\n        self.grant(robot, sector)\n"
    )
    info = tmp_path / "turnstile-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: turnstile\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[botyard.supervisors]\nturnstile = turnstile:Turnstile\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "turnstile" in supervisor_names()
    task = Task((Vehicle(ends=np.array([4.0, 8.0])),))
    assert Traffic(task, find_supervisor("turnstile")).run().ending is Ending.COMPLETED


def starts_in_conflict() -> Task:
    """Two robots whose first sectors conflict, and a third one without conflicts."""
    ends = np.array([4.0, 8.0])
    listed = np.array([[0, 0, 1, 0], [1, 0, 0, 0]], np.int64)
    return Task(tuple(Vehicle(ends=ends) for _ in range(3)), listed, (), "start")


@pytest.mark.parametrize("name", [n for n in BUILT_IN if n != "order"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_start_in_conflicting_sectors_is_a_collision(
    name: str, compiled: bool
) -> None:
    out = run(starts_in_conflict(), name, compiled=compiled)
    assert (out.ending, out.time, out.collisions) == (Ending.COLLISION, 0.0, 1)
    assert rows(out) == [(0.0, 0, "collision", 1)]
    assert out.describe() == "collision of robots 0 and 1 at 0.000 s"


def test_a_collision_at_the_start_is_counted_and_the_run_goes_on() -> None:
    out = run(starts_in_conflict(), "dummy", goes_on=True)
    assert (out.ending, out.collisions) == (Ending.COLLISION, 1)
    assert out.robots.done.all()
    live = Traffic(starts_in_conflict(), find_supervisor("dummy"), Rules())
    live.start()
    assert live.advance(1.0) is Ending.COLLISION, "runs in real time see it, too"


def test_compat_keeps_the_rule_of_the_original_for_starts() -> None:
    out = CompatTraffic(starts_in_conflict(), find_supervisor("dummy")).run()
    assert (out.ending, out.collisions) == (Ending.COMPLETED, 0), (
        "collisions are looked for on entry only (mmrs.md §6)"
    )


def test_the_sectors_that_a_rear_or_a_front_is_in_at_the_start_count() -> None:
    """Robot 0 stands on the border of its sectors 0 and 1:

    its rear is in 0, its front in 1.
    """
    ends = np.array([4.0, 8.0, 12.0])
    for place, sector, hit in (
        (4.2, 0, True),
        (4.8, 0, False),
        (3.8, 1, True),
        (3.2, 1, False),
    ):
        pair = np.array([[0, sector, 1, 0]], np.int64)
        task = Task(
            (Vehicle(ends=ends, start=place), Vehicle(ends=np.array([0.6, 9.0]))),
            pair,
            (),
            "rear",
        )
        out = Traffic(task, find_supervisor("none"), Rules(time_limit=0.5)).run()
        assert (out.ending is Ending.COLLISION) == hit, (place, sector)


def test_a_start_in_conflicting_sectors_cannot_be_solved() -> None:
    assert search(starts_in_conflict()) == (False, 1)
    assert (
        "robots 0 and 1 start in conflicting sectors 0 and 0"
        in check(starts_in_conflict()).remarks
    )
    assert stuck_robots(starts_in_conflict()) == (0, 1)
