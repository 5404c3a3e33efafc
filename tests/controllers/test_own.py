"""Controllers of users: classes, functions, and names of code."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.api.revisions import Subject
from botyard.controllers.registry import is_controller
from botyard.errors import (
    ArgumentError,
    BotyardError,
    CommandLineError,
    FormatError,
    WorldError,
)
from botyard.processes.codeload import is_code
from botyard.sim.journal import Entry, Reset
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Robot, Simulation

CODE = """
from dataclasses import dataclass
print("runs")

class Turn:
    def __init__(self, robot, seed, rate=0.5):
        self.robot, self.rate = robot, rate
    def act(self):
        self.robot.command(w=self.rate)

def ahead(robot, *, speed=0.2):
    robot.command(v=speed)

@dataclass
class Data:
    robot: object
    def act(self):
        self.robot.command(v=0.1)

number = 3

class Idle:
    def __init__(self, robot): ...
"""


class Counter:
    """A controller with a state."""

    def __init__(self, robot: Robot, seed: int, *, by: int = 1) -> None:
        self.robot, self.seed, self.by, self.count = robot, seed, by, 0

    def act(self) -> None:
        self.count += self.by
        self.robot.command(v=0.1, w=0.01 * (self.count % 7))

    def get_state(self) -> int:
        return self.count

    def set_state(self, state: Any) -> None:
        self.count = int(state)


def quiet(**options: Any) -> Simulation:
    return Simulation(odometry_error="none", **options)


@pytest.fixture
def code(tmp_path: Path) -> str:
    path = tmp_path / "drivers.py"
    path.write_text(CODE)
    return str(path)


def test_a_class_a_function_and_a_name_drive_robots() -> None:
    sim = quiet(seed=5)
    calls = []

    def circle(robot: Robot, speed: float = 0.3) -> None:
        calls.append(robot.name)
        robot.command(v=speed, w=0.5)

    one = sim.add_robot("p3dx", "one", pose=(0, 0, 0), controller=circle)
    two, three = sim.add_robots(
        "p3dx", [(0, 3, 0), (0, 6, 0)], ["two", "three"], controller=Counter
    )
    four = sim.add_robot("p3dx", "four", pose=(0, 9, 0), controller="walk")
    sim.step(30)
    assert calls == ["one"] * 30
    assert (
        one.velocity.w == pytest.approx(0.5)
        and two.truth.x > 0.1
        and three.truth.x > 0.1
    )
    assert four.truth != four.start
    one.set_controller(circle, speed=0.1)
    sim.step(20)
    assert one.velocity.vx == pytest.approx(0.1)
    one.set_controller(None)
    sim.step()
    assert len(calls) == 50 and set(sim.core.programs.by_robot) == {
        "two",
        "three",
        "four",
    }


def test_options_go_with_the_controller_of_a_new_robot() -> None:
    sim = quiet()
    one = sim.add_robot(
        "p3dx", "one", pose=(0, 0, 0), controller=Counter, controller_options={"by": 3}
    )
    sim.add_robots(
        "p3dx",
        [(0, 3, 0), (0, 6, 0)],
        ["two", "three"],
        controller="walk",
        controller_options={"speed": 0.25},
    )
    sim.step(2)
    assert [
        dict(program.options) for program in sim.core.programs.by_robot.values()
    ] == [
        {"by": 3},
        {"speed": 0.25},
        {"speed": 0.25},
    ]
    for options in ({"speed": 0.25, "by": 1}, {"speed": "fast"}):
        with pytest.raises(BotyardError):
            sim.add_robot(
                "p3dx",
                "four",
                pose=(0, 9, 0),
                controller="walk",
                controller_options=options,
            )

    with pytest.raises(
        ArgumentError, match="controller: expected the controller of these"
    ):
        sim.add_robot("p3dx", "four", pose=(0, 9, 0), controller_options={"by": 3})

    assert list(sim.robots) == ["one", "two", "three"], (
        "nothing is added if anything is wrong"
    )
    with pytest.raises(AttributeError, match=r"call set_controller"):
        one.controller = Counter  # type: ignore[attr-defined]


def test_a_client_comes_first() -> None:
    sim = quiet()
    robot = sim.add_robot(pose=(0, 0, 0), controller=lambda robot: robot.command(v=0.3))
    robot.claim("tcp")
    sim.step(20)
    assert robot.velocity.vx == 0.0
    robot.release("tcp")
    sim.step(20)
    assert robot.velocity.vx == pytest.approx(0.3)


def test_code_of_a_file(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    sim = quiet()
    names = ["Turn", "ahead", "Data"]
    turn, ahead, data = (
        sim.add_robot("p3dx", name, pose=(0, 3 * k, 0), controller=f"{code}:{name}")
        for k, name in enumerate(names)
    )
    sim.step(20)
    assert capsys.readouterr().out == "runs\n", "once"
    assert (turn.velocity.w, ahead.velocity.vx, data.velocity.vx) == pytest.approx(
        (0.5, 0.2, 0.1)
    )
    turn.set_controller(f"{code}:Turn", rate=-0.25)
    sim.step(20)
    assert turn.velocity.w == pytest.approx(-0.25)


def test_what_is_no_controller(code: str) -> None:
    sim = quiet()
    for wrong, kind, text in (
        (3, ArgumentError, "controller: expected a name"),
        ("wandr", CommandLineError, 'did you mean "wander"'),
        ("no_such_module:Class", CommandLineError, "no_such_module"),
        (f"{code}:nothing", CommandLineError, "nothing"),
        (f"{code}:number", CommandLineError, "expected a class or a function, found 3"),
        (f"{code}:Idle", WorldError, "act"),
        (f"{code}x.py:Idle", CommandLineError, "there is no file"),
    ):
        with pytest.raises(kind, match=text):
            sim.add_robot("p3dx", "one", controller=wrong)
        assert not sim.robots, "it was not left behind"

    robot = sim.add_robot(pose=(0, 0, 0))
    with pytest.raises(WorldError, match='no option "bye"; did you mean "by"'):
        robot.set_controller(Counter, bye=2)
    with pytest.raises(WorldError, match="nothing goes"):
        robot.set_controller(Failing)


class Failing:
    """A controller whose constructor fails."""

    def __init__(self, robot: Robot) -> None:
        raise ValueError("nothing goes")

    def act(self) -> None: ...


def test_a_crash_stops_its_robot_and_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sim = quiet()

    def crash(robot: Robot) -> None:
        robot.command(v=0.4)
        if sim.tick >= 20:
            raise RuntimeError("lost my way")

    one = sim.add_robot("p3dx", "one", pose=(0, 0, 0), controller=crash)
    two = sim.add_robot(
        "p3dx", "two", pose=(0, 3, 0), controller=lambda robot: robot.command(v=0.4)
    )
    sim.step(20)
    assert one.velocity.vx == pytest.approx(0.4)
    with caplog.at_level(logging.ERROR):
        sim.step(40)
    (record,) = [r for r in caplog.records if r.name == "botyard.controllers"]
    assert (
        "robot one" in record.getMessage()
        and "RuntimeError: lost my way" in record.getMessage()
    )
    assert "test_own.py" in record.getMessage() and "in crash" in record.getMessage()
    assert one.velocity.vx == 0.0 and two.velocity.vx == pytest.approx(0.4)
    assert set(sim.core.programs.by_robot) == {"two"}


def test_worlds_with_a_class_that_has_a_state_are_cloned_and_others_name_it() -> None:
    sim = quiet()
    sim.add_robot("p3dx", "one", pose=(0, 0, 0)).set_controller(Counter, by=2)
    sim.step(5)
    other = sim.clone()
    sim.step(5)
    other.step(5)
    assert other.digest() == sim.digest()
    sim.add_robot("p3dx", "two", pose=(0, 3, 0), controller=lambda robot: None)
    with pytest.raises(botyard.StateError, match="robot two: its controller"):
        sim.clone()


def test_functions_of_one_name_are_told_apart() -> None:
    sim = quiet()

    def made(speed: float) -> Any:
        def drive(robot: Robot) -> None:
            robot.command(v=speed)

        return drive

    functions = [made(0.1), made(0.3)]
    robots = [
        sim.add_robot(pose=(0, 3 * k, 0), controller=f) for k, f in enumerate(functions)
    ]
    sim.step(20)
    assert [robot.velocity.vx for robot in robots] == pytest.approx([0.1, 0.3])
    assert len({program.name for program in sim.core.programs.by_robot.values()}) == 2


SCENARIO = """
botyard: 1
map: office
robots:
- model: p3dx
  name: one
  controller: {name: "CODE:Turn", rate: 0.3}
"""


def test_files_run_no_code_unless_they_may(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "world.yaml"
    path.write_text(SCENARIO.replace("CODE", code))
    with pytest.raises(
        FormatError, match="is code, which is run only with --allow-code"
    ):
        Simulation.load(path)

    assert "runs" not in capsys.readouterr().out
    sim = Simulation.load(path, allow_code=True)
    sim.step(20)
    assert sim.robots["one"].velocity.w == pytest.approx(0.3)
    assert is_controller(f"{code}:Turn"), "who has allowed it once, has given it"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no file"),
        ("import nothing_like_it", r"broken\.py, line 1"),
        ("x = 1", "drive"),
    ],
)
def test_code_of_a_file_that_cannot_be_had_is_named_with_the_files_line(
    tmp_path: Path, text: str | None, words: str
) -> None:
    code, path = tmp_path / "broken.py", tmp_path / "world.yaml"
    if text is not None:
        code.write_text(text)
    path.write_text(SCENARIO.replace("CODE:Turn", f"{code}:drive"))
    with pytest.raises(
        FormatError, match=rf"world\.yaml:7: robots\[0\]\.controller.*{words}"
    ):
        Simulation.load(path, allow_code=True)


def test_states_run_no_code(code: str, tmp_path: Path) -> None:
    """A state that names code which the program did not register."""
    own = tmp_path / "states.py"
    own.write_text(
        CODE.replace(
            "def act",
            "def get_state(self): return 1\n    def set_state(self, s): pass\n    def act",
        )
    )
    sim = quiet()
    robot = sim.add_robot("p3dx", "one", pose=(0, 0, 0))
    robot.set_controller(f"{own}:Turn")
    state = sim.save_state()
    foreign = state.replace(b"states.py:Turn", b"states.py:Data").replace(
        b"states.py", b"statez.py"
    )
    assert foreign != state
    other = quiet()
    other.add_robot("p3dx", "one", pose=(0, 0, 0))
    with pytest.raises(BotyardError):
        other.restore(foreign)


@pytest.mark.parametrize(
    ("name", "yes"),
    [
        ("a:b", True),
        ("a.b:c.d", True),
        ("/x/y.py:Z", True),
        ("C:\\x\\y.py:Z", True),
        ("wander", False),
        (":b", False),
        ("a:", False),
        ("a:1", False),
    ],
)
def test_names_of_code(name: str, yes: bool) -> None:
    assert is_code(name) == yes


def test_a_controller_that_exits_or_removes_robots_ends_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def exits(robot: Robot) -> None:
        raise SystemExit(3)

    def removes(robot: Robot, name: str) -> None:
        robot.simulation.remove_robot(name)
        raise ValueError("that was all")

    def steps(robot: Robot) -> None:
        robot.simulation.step()

    for controller, options, there in (
        (exits, {}, ["ann", "bob", "eve"]),
        (removes, {"name": "ann"}, ["bob", "eve"]),
        (removes, {"name": "bob"}, ["ann", "eve"]),
        (steps, {}, ["ann", "bob", "eve"]),
    ):
        caplog.clear()
        sim = quiet(seed=1)
        for k, name in enumerate(("ann", "bob", "eve")):
            sim.add_robot("p3dx", name, pose=(0, 3 * k, 0)).set_controller(
                lambda robot: robot.command(v=0.3)
            )

        sim.robots["ann"].set_controller(controller, **options)
        sim.robots["bob"].set_controller(lambda robot: robot.command(v=0.2))
        sim.step(10)
        assert (
            list(sim.robots) == there
            and sim.tick == 10
            and sim.robots["eve"].truth.x > 0.1
        )
        assert (
            "the controller of robot ann ends" in caplog.text
            and caplog.text.count("ends") == 1
        )


class Refusing:
    def __init__(self, robot: Robot, *, how: type[BaseException]) -> None:
        raise how("in vain")


async def waiting(robot: Robot) -> None: ...


def yielding(robot: Robot) -> Any:
    yield


class Waiting:
    def __init__(self, robot: Robot) -> None: ...

    async def act(self) -> None: ...


class Slotted:
    __slots__ = ()

    def __call__(self, robot: Robot) -> None: ...


@pytest.mark.parametrize(
    ("controller", "options", "words"),
    [
        (Refusing, {"how": ZeroDivisionError}, "ZeroDivisionError: in vain"),
        (Refusing, {"how": OSError}, "OSError: in vain"),
        (Refusing, {"how": SystemExit}, "SystemExit: in vain"),
        (waiting, {}, "async or yield"),
        (yielding, {}, "async or yield"),
        (Waiting, {}, "async or yield"),
        (Slotted(), {}, "expected a class or a function that has a signature"),
        (min, {}, "expected a class or a function that has a signature"),
        ("exits.py:drive", {}, "SystemExit: no robot today"),
    ],
)
def test_what_cannot_drive_is_said_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    controller: Any,
    options: dict[str, Any],
    words: str,
) -> None:
    (tmp_path / "exits.py").write_text("raise SystemExit('no robot today')")
    monkeypatch.chdir(tmp_path)
    sim = quiet()
    robot = sim.add_robot("p3dx")
    with pytest.raises(BotyardError, match=words):
        robot.set_controller(controller, **options)
    assert not sim.core.programs.by_robot


class Reader:
    """A controller that subscribes in its constructor; `fails` names those that fail."""

    made = 0
    fails: frozenset[int] = frozenset()

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        type(self).made += 1
        robot.command(v=0.2)
        robot.laser.subscribe("cautious")
        if self.made in self.fails:
            raise RuntimeError("no second life")

    def act(self) -> None:
        self.robot.command(v=0.3)

    def rest(self) -> None:
        self.robot.laser.subscribe("cautious", False)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> type[Reader]:
    monkeypatch.setattr(Reader, "made", 0)
    monkeypatch.setattr(Reader, "fails", frozenset())
    return Reader


def test_a_controller_that_cannot_begin_anew_leaves_no_half_reset(
    reader: type[Reader],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(reader, "fails", {2})
    sim = quiet(seed=3)
    one = sim.add_robot(
        "p3dx", "one", pose=(0, 0, 0), lasers=["lms200"], controller=reader
    )
    two = sim.add_robot("p3dx", "two", pose=(0, 3, 0))
    counts: list[Counter] = []

    class Counted(Counter):
        def __init__(self, robot: Robot, seed: int) -> None:
            super().__init__(robot, seed)
            counts.append(self)

    two.set_controller(Counted)
    sim.step(5)
    entries: list[Entry] = []
    sim.core.journal.listen(entries.append)
    told = sim.core.feed.last(Subject.TIME)
    sim.reset()
    assert (
        sim.tick == 0 and sim.episode == 1 and sim.core.feed.last(Subject.TIME) > told
    )
    kinds = [type(entry.change) for entry in entries]
    assert kinds[0] is Reset, (
        "what a controller does when it begins is of the new episode"
    )
    assert (
        set(sim.core.programs.by_robot) == {"two"}
        and counts[0].count == 5
        and counts[1].count == 0
    )
    (record,) = [r for r in caplog.records if r.name == "botyard.controllers"]
    said = record.getMessage()
    assert (
        "robot one cannot start again" in said
        and "RuntimeError: no second life" in said
        and "test_own.py" in said
    )
    assert "in __init__" in said
    sim.step(10)
    assert one.truth.x == pytest.approx(0.0) and two.truth.x > 0.01, (
        "the one stands, the other drives"
    )
    sim.reset()
    sim.step(10)
    assert list(sim.core.programs.by_robot) == ["one", "two"] and one.truth.x > 0.01, (
        "the next reset begins it anew"
    )


def test_what_controllers_do_when_they_begin_is_repeated(reader: type[Reader]) -> None:
    sim = quiet(seed=3)
    sim.add_robot("p3dx", "one", pose=(0, 0, 0), lasers=["lms200"])
    twin = sim.clone()
    entries: list[Entry] = []
    sim.core.journal.listen(entries.append)
    sim.robots["one"].set_controller(reader)
    sim.step(5)
    sim.reset()
    sim.core.programs.end("one")
    assert len(list(resimulate(twin, entries, 0))) == 5
    sim.step(3)
    twin.step(3)
    assert sim.digest() == twin.digest() and sim.robots["one"].truth.x > 0.01


def test_the_old_controller_rests_before_the_new_one_subscribes(
    reader: type[Reader],
) -> None:
    sim = quiet()
    robot = sim.add_robot("p3dx", "one", lasers=["lms200"], controller=reader)
    for anew in (lambda: sim.reset(), lambda: robot.set_controller(reader)):
        for steps in (0, 2):
            sim.step(steps)
            anew()
            assert robot.laser.is_read

    robot.set_controller("walk")
    assert not robot.laser.is_read, "one that was never called rests, too"
    robot.set_controller(reader)
    robot.claim("tcp")
    sim.step()
    assert not robot.laser.is_read


def test_a_controller_that_cannot_be_replaced_goes_on(
    reader: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = quiet()
    robot = sim.add_robot(
        "p3dx", "one", pose=(0, 0, 0), lasers=["lms200"], controller=reader
    )
    monkeypatch.setattr(reader, "fails", {2})
    with pytest.raises(
        WorldError,
        match=r"RuntimeError: no second life \(.*test_own.py, line \d+, in __init__\)",
    ):
        robot.set_controller(reader)

    with pytest.raises(WorldError, match="no option"):
        robot.set_controller(reader, speed=3)
    sim.step(20)
    assert robot.velocity.vx == pytest.approx(0.3)


def test_the_place_of_a_crash_is_the_users_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def wrong(robot: Robot) -> None:
        robot.command(v="fast")  # type: ignore[arg-type]

    def singular(robot: Robot) -> None:
        np.linalg.inv(np.zeros((2, 2)))

    def parses(robot: Robot) -> None:
        json.loads("{")

    for function in (wrong, singular, parses):
        caplog.clear()
        sim = quiet()
        sim.add_robot(pose=(0, 0, 0), controller=function)
        sim.step()
        line = function.__code__.co_firstlineno + 1
        assert (
            f"test_own.py, line {line}, in {function.__name__})" in caplog.messages[0]
        )


@pytest.mark.parametrize("copied", [False, True])
def test_a_reset_begins_a_crashed_controller_anew_in_its_place(copied: bool) -> None:
    called: list[str] = []

    def drive(robot: Robot, until: int = 10**9) -> None:
        called.append(robot.name)
        if robot.simulation.tick >= until:
            raise RuntimeError("over")

    original = sim = quiet()
    for k, name in enumerate(("one", "two", "three")):
        sim.add_robot("p3dx", name, pose=(0, 3 * k, 0)).set_controller(
            drive, **{"until": 3} if name == "one" else {}
        )

    sim.step(5)
    assert set(sim.core.programs.by_robot) == {"two", "three"}
    # A clone needs states of all controllers, and the plain functions here have none.
    if copied:
        sim.robots["two"].set_controller(Counter)
        sim.robots["three"].set_controller(None)
        sim = sim.clone()
        assert set(sim.core.programs.by_robot) == {"two"}

    called.clear()
    sim.reset()
    sim.step(5)
    assert called == (
        ["one"] * 4 if copied else ["one", "two", "three"] * 4 + ["two", "three"]
    )
    assert "one" not in sim.core.programs.by_robot
    sim.robots["one"].set_controller(None)
    called.clear()
    sim.reset()
    sim.step()
    assert "one" not in called, "it was taken away"
    assert original.tick == (5 if copied else 1)


class Still:
    """A controller that reports its arguments."""

    def act(self) -> None: ...


def test_the_seed_goes_to_the_parameter_of_that_name() -> None:
    made: list[tuple[Any, ...]] = []

    class Optional(Still):
        def __init__(self, robot: Robot, seed: int = 0) -> None:
            made.append((seed,))

    class Keyword(Still):
        def __init__(self, robot: Robot, *, seed: int, near: float = 0.5) -> None:
            made.append((seed, near))

    class Second(Still):
        def __init__(self, robot: Robot, speed: float, seed: int) -> None:
            made.append((seed, speed))

    class ByPlace(Still):
        def __init__(self, robot: Robot, seed: int, /, speed: float = 0.1) -> None:
            made.append((seed, speed))

    class Neither(Still):
        def __init__(self, robot: Robot, speed: float = 0.2) -> None:
            made.append((speed,))

    class Needs(Still):
        def __init__(self, robot: Robot, number: int) -> None: ...

    class Whatever(Still):
        def __init__(self, robot: Robot, **options: Any) -> None:
            made.append((options,))

    sim = quiet(seed=7)
    robot = sim.add_robot("p3dx", "one")
    for kind, options, expected in (
        (Optional, {}, (7,)),
        (Optional, {"seed": 4}, (4,)),
        (Keyword, {"near": 1.0}, (7, 1.0)),
        (Second, {"speed": 0.3}, (7, 0.3)),
        (ByPlace, {}, (7, 0.1)),
        (Neither, {}, (0.2,)),
        (Whatever, {"a": 1}, ({"a": 1},)),
    ):
        robot.set_controller(kind, **options)
        assert made.pop() == expected

    with pytest.raises(
        WorldError,
        match='expected the option "number", found none; only a parameter named "seed"',
    ):
        robot.set_controller(Needs)

    with pytest.raises(WorldError, match='no option "seed"'):
        robot.set_controller(Neither, seed=3)
    seeds = []

    def drive(robot: Robot, seed: int) -> None:
        seeds.append(seed)

    robot.set_controller(drive)
    sim.step()
    sim.reset(seed=9)
    sim.step()
    robot.set_controller(drive, seed=1)
    sim.step()
    assert seeds == [7, 9, 1]


@pytest.mark.parametrize("where", ["class", "instance", "function"])
def test_a_controller_has_a_rate_of_its_own(where: str) -> None:
    ticks: list[int] = []

    class Seldom:
        if where == "class":
            act_rate = 4.0

        def __init__(self, robot: Robot) -> None:
            self.robot = robot
            if where == "instance":
                self.act_rate = 4

        def act(self) -> None:
            ticks.append(self.robot.simulation.tick)

    def seldom(robot: Robot) -> None:
        ticks.append(robot.simulation.tick)

    seldom.act_rate = 4.0  # type: ignore[attr-defined]
    sim = quiet(step=0.1)
    sim.add_robot("p3dx", "one", controller=seldom if where == "function" else Seldom)
    sim.step(11)
    assert ticks == [0, 3, 5, 8, 10], (
        "the first steps at or after 0, 0.25, 0.5, 0.75 and 1 s"
    )
    sim.reset()
    sim.step(4)
    assert ticks[5:] == [0, 3]


@pytest.mark.parametrize("rate", [-1.0, float("nan"), "often", 1e7])
def test_rates_of_controllers_are_checked(rate: Any) -> None:
    def drive(robot: Robot) -> None: ...

    drive.act_rate = rate  # type: ignore[attr-defined]
    with pytest.raises(
        WorldError, match=r"act_rate: expected a number from 0 to 1e\+06 Hz, found"
    ):
        quiet().add_robot("p3dx", "one", controller=drive)
