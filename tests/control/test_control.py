"""The control surface: permissions, checks of arguments, results, log and notices."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.control import (
    OPERATIONS,
    USER,
    AddRobot,
    AddRobots,
    Caller,
    ClearMap,
    CloneRobots,
    Control,
    Drive,
    EnableMotors,
    Exit,
    FreeMaps,
    Hold,
    HoldTime,
    Level,
    LoadMap,
    MoveJoystick,
    Operation,
    Pause,
    Place,
    PlaceAxis,
    PressEmergencyStop,
    Remove,
    Reset,
    SendMap,
    SetBodyState,
    SetSpeed,
    Step,
    StepNow,
    TakeRobot,
    WritePicture,
    adding,
)
from botyard.control.control import Done
from botyard.control.driving import DEADMAN_TIMEOUT_S, client_left, stop_expired_drivers
from botyard.control.holds import HOLD_TIMEOUT_S, end_expired_holds
from botyard.control.later import promise, resolve
from botyard.control.world import LogFiles, RotateLog
from botyard.errors import (
    ArgumentError,
    BotyardError,
    DeniedError,
    NameRuleError,
    NameTakenError,
    NotNowError,
    UnknownNameError,
    WorldError,
)
from botyard.geometry import Pose
from botyard.names import MAX_NAME
from botyard.sim.simulation import Simulation

LOOKER = Caller("page", Level.WATCH, "this page")
DRIVER = Caller("pioneer", Level.DRIVE, "a driver")
CHANGER = Caller("ros", Level.CHANGE, "ROS")
OWNER = Caller("page", Level.OWN, "the page")


class Clock:
    """A clock that stands still and records the calls."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.is_paused = True
        self.asked: list[Any] = []

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def step_and_pause(self, count: int = 1) -> None:
        self.asked.append(count)

    def step_now(
        self, count: int, progress: Callable[[int], bool] | None = None
    ) -> Future[None]:
        for left in reversed(range(count)):
            self.sim.step()
            if progress is not None and not progress(left):
                break

        done = promise()
        done.set_result(None)
        return done

    def cancel_steps(self) -> None:
        self.asked.append("cancel_steps")

    def set_speed(self, factor: float) -> None:
        self.asked.append(factor)

    def settle(self) -> None:
        if self.is_paused:
            self.sim.settle()

    def stop(self, status: int = 0, crash: bool = False) -> None:
        self.asked.append(("stop", status))


@pytest.fixture
def control() -> Control:
    sim = Simulation(seed=1)
    sim.add_robot("p3dx", "ann")
    sim.add_robot("p3dx", "bob", pose=(3.0, 0.0, 0.0))
    sim.add_robot("box", "crate", pose=(0.0, 5.0, 0.0))
    control = Control(sim)
    control.clock = Clock(sim)
    return control


# -- the table


def test_each_operation_says_what_it_does() -> None:
    for kind in OPERATIONS.values():
        assert dataclasses.is_dataclass(kind)
        assert kind.__doc__
        assert kind.level in Level
        assert kind.perform is not Operation.perform
        assert kind.__dataclass_params__.frozen


def test_an_argument_without_a_check_is_a_mistake_of_the_table() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class _Careless(Operation[None]):
        count: int

    assert "_Careless" not in OPERATIONS
    with pytest.raises(TypeError, match=r"count .* has no check"):
        _Careless(count=1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: Step(steps=0),
            "steps: expected a whole number from 1 to 1000000, found 0",
        ),
        (
            lambda: Step(steps=1.5),
            "steps: expected a whole number from 1 to 1000000, found 1.5",
        ),
        (
            lambda: SetSpeed(speed=0.001),
            "speed: expected 0 (as fast as possible) or 0.01 … 1000, found 0.001",
        ),
        (lambda: SetSpeed(speed=float("nan")), "speed: expected 0"),
        (lambda: Drive(robot="ann", v=float("inf")), "v: expected a number"),
        (lambda: Drive(robot=7), "robot: expected a text"),
        (
            lambda: Hold(names="ann", on=True),
            "names: expected a list of at most 5000 items",
        ),
        (
            lambda: Hold(names=("a",) * 5001, on=True),
            "names: expected a list of at most 5000 items",
        ),
        (lambda: Hold(names=("ann",), on="yes"), "on: expected True or False"),
        (lambda: Place(to=(("ann", (0.0, 1.0)),)), "to: expected three numbers"),
        (lambda: HoldTime(steps=-1), "steps: expected a whole number"),
        (lambda: Exit(status=999), "status: expected a whole number from 0 to 255"),
    ],
)
def test_wrong_arguments(make: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as info:
        make()
    assert str(info.value).startswith(text)


ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.lists(st.text(max_size=5), max_size=3),
    st.tuples(st.text(max_size=5), st.floats()),
)


@given(st.sampled_from(sorted(OPERATIONS)), st.data())
def test_whatever_is_asked_nothing_but_errors_of_ours_comes_out(
    name: str, data: st.DataObject
) -> None:
    kind = OPERATIONS[name]
    fields = {
        f.name: data.draw(ANY) for f in dataclasses.fields(kind) if f.name != "data"
    }  # type: ignore[arg-type]
    if name == "SendMap":
        fields["data"] = b""
    sim = Simulation(seed=1)
    sim.add_robot("p3dx", "ann")
    with contextlib.suppress(BotyardError):
        Control(sim).do(OWNER, kind(**fields))


# -- permissions


@pytest.mark.parametrize("kind", OPERATIONS.values())
def test_levels(kind: type[Operation[Any]], control: Control) -> None:
    for caller in (LOOKER, DRIVER, CHANGER, OWNER):
        assert control.allows(caller, kind) == (caller.level >= kind.level)
    control.read_only = True
    for caller in (LOOKER, DRIVER, CHANGER, OWNER):
        assert control.allows(caller, kind) == (
            caller.level >= kind.level and kind.level <= Level.DRIVE
        )

    assert control.allows(USER, kind), "the user's own word does not bind him"


def test_what_is_denied_does_nothing(control: Control) -> None:
    before = control.sim.digest()
    for caller, operation, text in (
        (LOOKER, Pause(), "this page may only watch"),
        (LOOKER, Drive(robot="ann", v=1.0), "this page may only watch"),
        (DRIVER, Place(to=(("ann", Pose()),)), "a driver may only watch"),
        (CHANGER, Exit(), "not allowed from another machine"),
    ):
        with pytest.raises(DeniedError, match=text):
            control.do(caller, operation)

    control.read_only = True
    with pytest.raises(DeniedError, match="the world is read-only"):
        control.do(OWNER, Reset())
    assert control.sim.digest() == before


def test_ends_from_other_machines_are_the_users_choice(control: Control) -> None:
    ended: list[int] = []
    control.end = lambda status, crash: ended.append(status)
    control.allow_exit = True
    control.do(CHANGER, Exit(status=7))
    with pytest.raises(DeniedError):
        control.do(DRIVER, Exit())
    control.read_only = True
    with pytest.raises(DeniedError, match="read-only"):
        control.do(CHANGER, Exit())
    assert ended == [7]


# -- effects


def test_what_is_placed_takes_effect_at_once_while_time_stands_still(
    control: Control,
) -> None:
    control.do(
        CHANGER,
        Place(to=(("ann", Pose(1.0, 2.0, 0.5)), ("crate", Pose(4.0, 4.0, 0.0)))),
    )
    assert control.sim.robots["ann"].truth[:2] == (1.0, 2.0)
    assert control.sim.time == 0.0
    queued = dataclasses.replace(CHANGER, settles=False)
    control.do(queued, Place(to=(("ann", Pose(2.0, 2.0, 0.5)),)))
    assert control.sim.robots["ann"].truth.x == 1.0, "when the loop looks next"


def test_one_that_fails_keeps_nothing_from_the_others(control: Control) -> None:
    with pytest.raises(
        WorldError,
        match='1 of 2 bodies failed: no robot or box is named "bib"; did you mean "bob"',
    ):
        control.do(CHANGER, Place(to=(("bib", Pose()), ("bob", Pose(7.0, 0.0, 0.0)))))

    control.settle()
    assert control.sim.robots["bob"].truth.x == 7.0
    with pytest.raises(UnknownNameError, match='no robot or box is named "bib"'):
        control.do(CHANGER, Hold(names=("bib",), on=True))


def two_people() -> tuple[Caller, Caller]:
    """Return two clients of one source."""
    one, other = (
        dataclasses.replace(CHANGER, key=key, person=key) for key in ("one", "other")
    )
    return one, other


def test_what_one_client_holds_no_other_client_takes(control: Control) -> None:
    one, other = two_people()
    robot = dataclasses.replace(CHANGER, source="ros", key="other")
    sim = control.sim
    control.robot_host = RobotHost(sim)

    def held() -> list[int]:
        sim.step()
        return [
            int(sim.snapshot.state.held[sim.core.engine.rows[name]])
            for name in ("ann", "crate")
        ]

    control.do(one, Hold(names=("ann",), on=True))
    for caller in (other, robot):
        for operation in (
            Hold(names=("ann",), on=True),
            Place(to=(("ann", Pose(7.0, 0.0, 0.0)),)),
            PlaceAxis(robot="ann", axis=0, value=7.0),
            SetBodyState(body="ann", pose=Pose(7.0, 0.0, 0.0)),
            Remove(names=("ann", "bob")),
        ):
            with pytest.raises(NotNowError, match="ann: one holds it"):
                control.do(caller, operation)
    control.do(other, Hold(names=("ann",), on=False))
    assert held() == [1, 0] and sim.robots["ann"].truth.x != 7.0
    assert "bob" in sim.robots
    # Of several bodies, the others are held.
    with pytest.raises(WorldError, match="1 of 2 bodies failed: ann: one holds it"):
        control.do(other, Hold(names=("ann", "crate"), on=True))
    assert held() == [1, 1]
    # Its own client, and the user of the program, place it.
    control.do(one, Place(to=(("ann", Pose(5.0, 0.0, 0.0)),)))
    control.do(USER, Place(to=(("crate", Pose(5.0, 4.0, 0.0)),)))
    client_left(control, "one")
    assert held() == [0, 1]
    control.do(other, Place(to=(("ann", Pose(7.0, 0.0, 0.0)),)))
    client_left(control, "other")
    assert held() == [0, 0] and not control.held


def test_a_hold_ends_when_its_client_does_nothing_for_its_limit(
    control: Control,
) -> None:
    one, other = two_people()
    now = [100.0]
    control.wall = lambda: now[0]
    control.do(one, Hold(names=("ann",), on=True))
    now[0] += HOLD_TIMEOUT_S - 1.0
    assert end_expired_holds(control)
    control.do(one, Place(to=(("ann", Pose(5.0, 0.0, 0.0)),)))
    now[0] += HOLD_TIMEOUT_S - 1.0
    assert end_expired_holds(control), "a placement renews the hold"
    now[0] += 2.0
    assert not end_expired_holds(control)
    assert control.sim.core.holders("ann") == ()
    control.do(other, Hold(names=("ann",), on=True))


def test_who_drives_by_hand_lets_go_of_what_it_held(control: Control) -> None:
    one, other = two_people()
    control.do(one, Hold(names=("ann",), on=True))
    control.do(one, Drive(robot="ann", v=0.3))
    control.sim.step(5)
    assert control.sim.robots["ann"].velocity.vx > 0.1
    control.do(other, Hold(names=("ann",), on=True))
    control.do(one, Drive(robot="ann", v=0.3))
    control.sim.step()
    assert control.sim.robots["ann"].velocity.vx == 0.0, "another one holds it"


def test_nobody_holds_a_body_because_one_of_its_name_was_held(control: Control) -> None:
    one, other = two_people()
    control.do(one, Hold(names=("ann",), on=True))
    control.sim.remove_robot("ann")
    control.sim.add_robot("p3dx", "ann")
    control.do(other, Hold(names=("ann",), on=True))
    control.do(other, Hold(names=("ann",), on=False))
    assert control.sim.core.holders("ann") == ()
    control.do(one, Hold(names=("ann",), on=True))
    control.sim.remove_robot("ann")
    client_left(control, "one")
    assert not control.held


def test_who_takes_a_robot_over_from_another_interface_leaves_no_claim(
    control: Control,
) -> None:
    one = dataclasses.replace(CHANGER, source="one", key="one")
    other = dataclasses.replace(CHANGER, source="other", key="other")
    robot = control.sim.robots["ann"]
    control.do(one, Drive(robot="ann", v=0.3))
    control.do(other, Drive(robot="ann", v=0.2))
    control.do(one, Drive(robot="ann", on=False))
    control.sim.step(10)
    assert robot.velocity.vx == pytest.approx(0.2), (
        "who does not drive it any more does not stop it"
    )
    client_left(control, "one")
    assert robot._claims == ["other"]
    client_left(control, "other")
    assert robot._claims == [], "programs from within go on"
    assert not control.driven


def test_a_robot_that_gets_the_name_of_a_driven_one_is_claimed_too(
    control: Control,
) -> None:
    control.do(CHANGER, Drive(robot="ann", v=0.3))
    control.sim.remove_robot("ann")
    robot = control.sim.add_robot("p3dx", "ann")
    control.do(CHANGER, Drive(robot="ann", v=0.3))
    assert robot._claims == [CHANGER.source]
    control.do(CHANGER, Drive(robot="ann", on=False))
    assert robot._claims == []


def test_too_many_on_one_place(control: Control) -> None:
    control.sim.add_robots("p3dx", [(20.0 + i, 0.0, 0.0) for i in range(6)])
    names = list(control.sim.robots)
    wild = dataclasses.replace(CHANGER, ignores_crowd_limit=False)
    with pytest.raises(WorldError, match="other bodies already overlap at that place"):
        control.do(wild, Place(to=tuple((n, Pose(50.0, 50.0, 0.0)) for n in names)))
    control.do(OWNER, Place(to=tuple((n, Pose(60.0, 50.0, 0.0)) for n in names)))


def test_obstacles_do_not_drive(control: Control) -> None:
    for operation in (
        Drive(robot="crate"),
        TakeRobot(robot="crate"),
        EnableMotors(robots=("crate",), on=True),
    ):
        with pytest.raises(WorldError, match="crate is an obstacle and cannot drive"):
            control.do(OWNER, operation)

    with pytest.raises(UnknownNameError):
        control.do(OWNER, TakeRobot(robot="nobody"))


def test_the_dead_mans_switch(control: Control) -> None:
    control.clock.resume()  # type: ignore[union-attr]
    robot = control.sim.robots["ann"]
    now = 10.0
    control.wall = lambda: now
    control.do(OWNER, Drive(robot="ann", v=0.4))
    control.sim.step(20)
    assert robot.velocity.vx > 0.3
    assert robot.clients == ("page",)
    now += DEADMAN_TIMEOUT_S
    stop_expired_drivers(control)
    assert control.driven
    now += 0.01
    stop_expired_drivers(control)
    control.sim.step(40)
    assert robot.velocity.vx == 0.0
    assert robot.clients == ()
    control.do(OWNER, Drive(robot="ann", v=0.4))
    control.do(OWNER, Drive(robot="ann", on=False))
    assert not control.driven


def test_the_red_button_and_the_motors(control: Control) -> None:
    control.do(CHANGER, PressEmergencyStop(robots=("ann", "bob"), on=True))
    with pytest.raises(
        WorldError, match="2 of 2 robots failed: ann: the motors cannot be enabled"
    ):
        control.do(DRIVER, EnableMotors(robots=("ann", "bob"), on=True))

    control.do(CHANGER, PressEmergencyStop(robots=("ann",), on=False))
    control.do(DRIVER, EnableMotors(robots=("ann",), on=True))
    assert control.sim.robots["ann"].motors_on
    assert not control.sim.robots["bob"].motors_on


def test_a_joysticks_throttle_stays_when_it_is_not_named(control: Control) -> None:
    control.do(CHANGER, MoveJoystick(robot="ann", x=0.5, throttle=0.25))
    control.do(CHANGER, MoveJoystick(robot="ann", x=-0.5))
    stick = control.sim.robots["ann"].electrics.joystick
    assert (stick.x, stick.throttle) == (-0.5, 0.25)


def test_time(control: Control) -> None:
    clock = control.clock
    assert isinstance(clock, Clock)
    control.do(CHANGER, StepNow(steps=3))
    assert control.sim.tick == 3
    clock.resume()
    with pytest.raises(NotNowError):
        control.do(CHANGER, StepNow(steps=3))
    control.do(CHANGER, Step(steps=5))
    control.do(CHANGER, SetSpeed(speed=2))
    assert clock.asked == [5, 2.0]


class RobotHost:
    """Host of robots that have no ports."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim

    def equip(self, spec: Any) -> Any:
        return spec

    def add_robots(self, spec: Any, poses: Any, names: Any) -> Any:
        return self.sim.add_robots(spec, poses, names)

    def serve(self, robots: Any) -> Future[None]:
        done = promise()
        done.set_result(None)
        return done

    def remove(self, names: Any) -> None:
        for name in names:
            self.sim.remove_box(
                name
            ) if name in self.sim.core.box_names else self.sim.remove_robot(name)

    def work(self, portions: Any) -> Future[Any]:
        done = promise()
        try:
            while True:
                next(portions)
        except StopIteration as over:
            resolve(done, over.value)

        return done

    def switch_interface(self, interface: str, on: bool) -> Future[None]:
        raise WorldError(f"there is no interface {interface}")


def test_adding_and_removing(control: Control) -> None:
    control.robot_host = RobotHost(control.sim)
    assert control.do(CHANGER, AddRobot(model="p3at")).result().robots == ("p3at",)
    for name, error in (
        ("ann", NameTakenError),
        ("a\n", NameRuleError),
        ("x" * 65, NameRuleError),
    ):
        with pytest.raises(error):
            control.do(CHANGER, AddRobot(model="p3at", robot=name))

    assert control.do(
        CHANGER, AddRobot(model="p3at", robot="ann", rename=True)
    ).result().robots != ("ann",)
    with pytest.raises(BotyardError, match="expected the name of a model, not a file"):
        control.do(CHANGER, AddRobot(model="../secret.toml"))
    mine = control.do(OWNER, AddRobot(model="p3at", robot="mine")).result().robots
    control.do(CHANGER, Reset(spawned=True))
    assert "p3at" not in control.sim.robots, "those that this source has added"
    assert mine[0] in control.sim.robots
    heard: list[Done] = []
    control.listen(heard.append)
    with pytest.raises(UnknownNameError, match='"gone"'):
        control.do(CHANGER, Remove(names=("mine", "gone")))
    assert "mine" not in control.sim.robots, "those that are there go"
    assert [d.operation for d in heard] == [Remove(names=("mine",))], (
        "and everybody is told of those"
    )


def test_a_part_that_is_not_there(control: Control) -> None:
    for operation in (
        ClearMap(),
        LoadMap(map="a.map"),
        WritePicture(),
        HoldTime(steps=1),
        AddRobot(model="p3dx"),
    ):
        with pytest.raises(WorldError):
            control.do(OWNER, operation)


def test_maps_that_a_client_has_reserved(control: Control) -> None:
    class Maps:
        def load(self, name: str, asker: Any, before: Any = None) -> Future[bool]:
            done = promise()
            done.set_result(True)
            return done

    control.maps = Maps()  # type: ignore[assignment]
    control.do(CHANGER, LoadMap(map="a", reserve=True))
    with pytest.raises(DeniedError, match="master mode"):
        control.do(CHANGER, LoadMap(map="b"))
    control.do(CHANGER, LoadMap(map="b", reserve=True))
    control.do(OWNER, LoadMap(map="c", reserved=False))
    control.do(CHANGER, FreeMaps())
    control.do(CHANGER, LoadMap(map="b"))


def test_log_files_are_not_begun_too_often(control: Control) -> None:
    now, begun = [0.0], []
    with pytest.raises(WorldError, match="not written to a file"):
        control.do(CHANGER, RotateLog())
    control.logs = LogFiles(lambda: begun.append(now[0]), lambda: now[0])
    control.do(CHANGER, RotateLog())
    with pytest.raises(WorldError, match="a moment ago"):
        control.do(CHANGER, RotateLog())
    now[0] = 1.0
    control.do(CHANGER, RotateLog())
    assert begun == [0.0, 1.0]


# -- notices and log


def test_everybody_is_told_of_what_was_done_and_of_nothing_else(
    control: Control, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "botyard.control")
    heard: list[Done] = []
    quiet = control.listen(heard.append)

    def bad(done: Done) -> None:
        raise RuntimeError("a listener's fault")

    control.listen(bad)
    control.do(CHANGER, FreeMaps())
    with pytest.raises(DeniedError):
        control.do(LOOKER, FreeMaps())
    assert [(d.caller, type(d.operation)) for d in heard] == [(CHANGER, FreeMaps)]
    assert "every client may load maps again (by ROS)" in caplog.text
    assert "a listener's fault" in caplog.text

    class Painter:
        def __init__(self) -> None:
            self.done: Future[Path] = promise()

        def write(self, name: str) -> Future[Path]:
            return self.done

    painter = control.painter = Painter()
    later = control.do(CHANGER, WritePicture())
    assert len(heard) == 1, "not done yet"
    resolve(painter.done, tmp_path)
    assert later.result() == tmp_path
    assert heard[-1].result == tmp_path
    painter.done = promise()
    control.do(CHANGER, WritePicture())
    resolve(painter.done, error=WorldError("no disk"))
    assert len(heard) == 2, "it failed"
    quiet()
    control.do(CHANGER, FreeMaps())
    assert len(heard) == 2


# -- large operations, and failures half way


class Patient(RobotHost):
    """RobotHost that works in portions when the test asks for them."""

    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim)
        self.begun: list[tuple[Any, Future[Any]]] = []
        self.reached: list[str] = []

    def work(self, portions: Any) -> Future[Any]:
        self.begun.append((portions, promise()))
        return self.begun[-1][1]

    def serve(self, robots: Any) -> Future[None]:
        self.reached += [robot.name for robot in robots]
        return super().serve(robots)

    def go_on(self) -> bool:
        """Run one portion of each; return whether more remain."""
        for portions, done in self.begun:
            try:
                if not done.done():
                    next(portions)
            except StopIteration as over:
                resolve(done, over.value)
            except BotyardError as error:
                resolve(done, error=error)

        return not all(done.done() for _, done in self.begun)


def test_many_who_add_at_once_add_no_more_than_that(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "MAX_ROBOTS", 30)
    monkeypatch.setattr(adding, "ROBOTS_PER_BATCH", 5)
    robot_host = control.robot_host = Patient(control.sim)
    added = [control.do(CHANGER, AddRobots(model="p3dx", number=20)) for _ in range(3)]
    added.append(control.do(OWNER, CloneRobots(robots=("ann", "bob"))))
    while robot_host.go_on():
        pass
    assert len(control.sim.robots) <= 30
    failed = [str(one.exception()) for one in added if one.exception() is not None]
    assert failed
    assert all("clients may add robots up to 30, " in text for text in failed), failed
    assert sorted(robot_host.reached) == sorted(
        set(control.sim.robots) - {"ann", "bob", "crate"}
    ), "all have ports"


def test_portions_that_were_added_stay_when_a_later_one_fails(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "ROBOTS_PER_BATCH", 5)
    robot_host = control.robot_host = Patient(control.sim)
    added = control.do(CHANGER, AddRobots(model="p3dx", number=20))
    robot_host.go_on()
    first = [name for name in control.sim.robots if name.startswith("p3dx")]
    assert set(first) <= set(control.spawned), (
        "whoever resets meanwhile takes them away"
    )
    control.do(CHANGER, Remove(names=(first[0],)))
    # Another robot takes the name of the removed one, and must not be taken for it.
    control.sim.add_robot("p3at", first[0])
    monkeypatch.setattr(adding, "MAX_ROBOTS", len(control.sim.robots))
    while robot_host.go_on():
        pass
    with pytest.raises(
        WorldError,
        match="p3dx_002 and 3 more added; then adding stopped: clients may add robots up to",
    ):
        added.result()

    assert robot_host.reached == first[1:]


def test_a_name_of_full_length_can_be_made_another_one(control: Control) -> None:
    control.robot_host = RobotHost(control.sim)
    for number in ("", "_002", "_003"):
        robots = (
            control.do(
                CHANGER, AddRobot(model="p3dx", robot="x" * MAX_NAME, rename=True)
            )
            .result()
            .robots
        )
        assert robots == ("x" * (MAX_NAME - len(number)) + number,)


@pytest.mark.parametrize("data", [5, 10**12, "text", None, [300]])
def test_what_is_sent_as_a_file_is_bytes(data: Any) -> None:
    with pytest.raises(ArgumentError, match="data: expected bytes, found"):
        SendMap(map="a.map", data=data)
    assert SendMap(map="a.map", data=bytearray(b"ab")).data == b"ab"  # type: ignore[arg-type]
