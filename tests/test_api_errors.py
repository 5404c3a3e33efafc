"""Errors of the public API for wrong arguments:

each names the argument, the expected and the found value.
"""

from __future__ import annotations

import copy
import math
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import botyard
from botyard.api import arguments
from botyard.errors import (
    ArgumentError,
    BotyardError,
    PlacementWarning,
    UnknownNameError,
)
from botyard.model.kinematics import Axes, MotionLimits

Call = Callable[[botyard.Simulation, botyard.Robot], object]

WRONG: dict[str, tuple[Call, str]] = {
    "scene": (
        lambda s, r: botyard.Simulation("office"),
        r"scene: expected a Scene, found 'office' \(str\); Simulation.load",
    ),
    "step 0": (
        lambda s, r: botyard.Simulation(step=0),
        "step: expected a number from 1e-06 to 60 s, found 0",
    ),
    "step nan": (
        lambda s, r: botyard.Simulation(step=math.nan),
        "step: expected .* found nan",
    ),
    "step text": (
        lambda s, r: botyard.Simulation(step="fast"),
        r"step: .* found 'fast' \(str\)",
    ),
    "seed": (
        lambda s, r: botyard.Simulation(seed=1.5),
        "seed: expected a whole number from -9223372036854775808",
    ),
    "threads": (
        lambda s, r: botyard.Simulation(threads=0),
        "threads: expected a whole number from 1 to 1024, found 0",
    ),
    "threads of load": (
        lambda s, r: botyard.Simulation.load("office", threads=0),
        "threads: .* found 0",
    ),
    "noise": (
        lambda s, r: botyard.Simulation(sensor_noise="no"),
        "sensor_noise: expected True or False",
    ),
    "range_step": (
        lambda s, r: botyard.Simulation(range_step=-1),
        "range_step: .* at least 0 m, found -1",
    ),
    "begin": (
        lambda s, r: botyard.Simulation(begin=-1),
        "begin: .* at least 0, found -1",
    ),
    "odometry": (
        lambda s, r: botyard.Simulation(odometry_error=3),
        "odometry_error: expected a str, found 3",
    ),
    "odometry word": (
        lambda s, r: botyard.Simulation(odometry_error="big"),
        'expected one of .* found "big"',
    ),
    "map": (
        lambda s, r: botyard.Simulation.load(7),
        "map: expected the name of a file .* found 7",
    ),
    "no map": (lambda s, r: botyard.Simulation.load("ofice"), 'did you mean "office"'),
    "resolution": (
        lambda s, r: botyard.Simulation.load("office", resolution=0),
        "resolution: .* greater than 0 m, found 0",
    ),
    "step(n)": (
        lambda s, r: s.step(-1),
        "n: expected a whole number of at least 0, found -1",
    ),
    "step(half)": (
        lambda s, r: s.step(0.5),
        "n: expected a whole number of at least 0, found 0.5",
    ),
    "model": (
        lambda s, r: s.add_robot(3),
        "model: expected a name, a file or a RobotSpec, found 3",
    ),
    "model word": (lambda s, r: s.add_robot("p3dxx"), 'did you mean "p3dx"'),
    "laser word": (
        lambda s, r: s.add_robot("p3dx", lasers=["lms999"]),
        r'no laser model "lms999".*\(lasers: .*, lms100, .*, urg, .*\)',
    ),
    "name": (
        lambda s, r: s.add_robot("p3dx", name=["a"]),
        "name of a robot: expected 1 to 64 printable characters, found list",
    ),
    "name bytes": (lambda s, r: s.add_robot("p3dx", name="a\nb"), r'found "a\\nb"'),
    "name taken": (
        lambda s, r: s.add_robot("p3dx", name="bob"),
        '"bob" already exists',
    ),
    "pose of two": (
        lambda s, r: s.add_robot("p3dx", pose=(1, 2)),
        r"pose: expected three numbers x \(m\), y .* found \(1, 2\)",
    ),
    "pose text": (
        lambda s, r: s.add_robot("p3dx", pose="123"),
        "pose: expected three numbers .* found '123'",
    ),
    "pose nan": (
        lambda s, r: s.add_robot("p3dx", pose=(0, math.nan, 0)),
        "pose: y: expected a finite number, found nan",
    ),
    "pose far": (
        lambda s, r: s.add_robot("p3dx", pose=(1e30, 0, 0)),
        "within ±1e.07 m",
    ),
    "lasers": (
        lambda s, r: s.add_robot("p3dx", lasers="lms200"),
        r'lasers: expected a list .* one laser is also a list: \["lms200"\]',
    ),
    "laser number": (
        lambda s, r: s.add_robot("p3dx", lasers=[1]),
        r"lasers: expected a list .* found \[1\]",
    ),
    "poses shape": (
        lambda s, r: s.add_robots("p3dx", np.zeros((2, 2))),
        r"poses: expected an \(n, 3\) array .* shape \(2, 2\)",
    ),
    "poses number": (
        lambda s, r: s.add_robots("p3dx", 5),
        "poses: expected .* found 5",
    ),
    "poses nan": (
        lambda s, r: s.add_robots("p3dx", np.array([[0, 0, 0], [0, np.inf, 0]])),
        r"poses\[1\]: expected finite numbers",
    ),
    "poses ragged": (
        lambda s, r: s.add_robots("p3dx", [(0, 0, 0), (1, 1)]),
        r"poses\[1\]: expected three numbers",
    ),
    "names": (
        lambda s, r: s.add_robots("p3dx", [(5, 5, 0)], "x"),
        "names: expected one for each of 1 poses, found 'x'",
    ),
    "remove": (
        lambda s, r: s.remove_robot("p3dx"),
        'no robot is named "p3dx"; there are: bob',
    ),
    "remove near": (lambda s, r: s.remove_robot("bobb"), 'did you mean "bob"'),
    "remove list": (
        lambda s, r: s.remove_robots("bob"),
        "expected the name of a robot, found",
    ),
    "remove number": (
        lambda s, r: s.remove_robots([3]),
        "expected the name of a robot, found 3",
    ),
    "remove box": (
        lambda s, r: s.remove_box("bob"),
        'no box is named "bob"; no box exists',
    ),
    "robots[…]": (
        lambda s, r: s.robots["ann"],
        'no robot is named "ann"; there are: bob',
    ),
    "put": (lambda s, r: s.put("ann", (0, 0, 0)), 'no robot or box is named "ann"'),
    "put pose": (lambda s, r: s.put("bob", None), "pose: expected three numbers"),
    "put_back": (lambda s, r: s.put_back(["ann"]), 'no robot or box is named "ann"'),
    "push": (
        lambda s, r: s.masses.push("bob", "hard"),
        "fx: expected a finite number, found 'hard'",
    ),
    "push whom": (
        lambda s, r: s.masses.push(None, 1.0),
        "expected the name of a robot or box, found None",
    ),
    "throw": (
        lambda s, r: s.masses.throw("bob", math.inf),
        "vx: expected a finite number, found inf",
    ),
    "pull_to": (
        lambda s, r: s.masses.pull_to("bob", (1,)),
        "pose: expected three numbers",
    ),
    "set_dynamics": (
        lambda s, r: s.masses.set_dynamics("bob", 5.0),
        r"spec: expected a DynamicsSpec, found 5.0 \(float\)",
    ),
    "dynamics": (lambda s, r: s.masses.dynamics("ann"), 'is named "ann"'),
    "wrench": (lambda s, r: s.masses.wrench("ann"), 'is named "ann"'),
    "hold": (lambda s, r: s.hold("bob", "yes"), "on: expected True or False"),
    "attach": (lambda s, r: s.attach("bob", "ann"), 'is named "ann"'),
    "drive": (
        lambda s, r: s.core.assign_program("ann", print, None),
        'no robot is named "ann"',
    ),
    "before_step": (
        lambda s, r: s.before_step("act"),
        "act: expected a function, found 'act'",
    ),
    "replace_scene": (
        lambda s, r: s.replace_scene("office"),
        "scene: expected a Scene, .*load_scene",
    ),
    "render size": (
        lambda s, r: s.render(size=-5),
        "size: expected a whole number from 16 to 20000, found -5",
    ),
    "render area": (
        lambda s, r: s.render(area=(0, 0, -1, 5)),
        "area: expected smallest x, .* not empty, found -1 m × 5 m",
    ),
    "render area around": (
        lambda s, r: s.render(area=(0, 0, 1, 5), follow=r.name),
        "area: expected 2 numbers, width and",
    ),
    "render follow": (lambda s, r: s.render(follow="nobody"), 'no robot .*"nobody"'),
    "render scans": (lambda s, r: s.render(scans=["nobody"]), 'no robot .*"nobody"'),
    "render scans of": (
        lambda s, r: s.render(scans=5),
        "scans: expected True, False or robot names, found 5",
    ),
    "render theme": (
        lambda s, r: s.render(theme="pink"),
        "theme: expected one of light, dark, found 'pink'",
    ),
    "render trails": (
        lambda s, r: s.render(trails=5.0),
        r"trails: expected a simulation .*sim.history.keep",
    ),
    "render trails back": (lambda s, r: s.render(trails=-1.0), "trails: expected"),
    "render colors": (
        lambda s, r: s.render(colors="pink"),
        "colors: expected one of model, robot, found 'pink'",
    ),
    "render large": (
        lambda s, r: s.render(size=(20000, 20000)),
        "size: expected at most 100000000 pixels",
    ),
    "render suffix": (
        lambda s, r: s.render("picture.doc"),
        'path: expected a suffix of pictures .* found ".doc"',
    ),
    "command text": (
        lambda s, r: r.command(v="fast"),
        "velocity: expected finite numbers, found 'fast'",
    ),
    "command nan": (
        lambda s, r: r.command(v=math.nan),
        "velocity: expected finite numbers, found nan",
    ),
    "command huge": (
        lambda s, r: r.command(v=10**400),
        "velocity: expected finite numbers",
    ),
    "command array": (
        lambda s, r: r.command(v=np.zeros(3)),
        "velocity: expected finite numbers",
    ),
    "command sideways": (
        lambda s, r: r.command(vy=0.1),
        r"vy: robot bob \(p3dx\) cannot drive sideways",
    ),
    "velocity sideways": (lambda s, r: r.command.velocity(0, 0, 1), "vy: robot bob"),
    "move": (lambda s, r: r.command.move("x"), "expected finite numbers, found 'x'"),
    "turn_to": (lambda s, r: r.command.turn_to(None), "expected"),
    "turn_by": (lambda s, r: r.command.turn_by([1]), "expected"),
    "set_pose": (
        lambda s, r: r.command.set_pose("x", 0),
        "pose: x: expected a finite number, found 'x'",
    ),
    "laser rays": (
        lambda s, r: r.laser.configure(0, 0.1, -1),
        "count: expected a whole number from 0 to 100000, found -1",
    ),
    "laser angle": (
        lambda s, r: r.laser.configure(math.nan, 0.1, 5),
        "angle_min: expected a finite number rad, found nan",
    ),
    "fleet shape": (
        lambda s, r: s.fleet.command(v=[1, 2]),
        r"v: expected a number, or an array of 1 numbers, .* found shape \(2,\)",
    ),
    "fleet text": (
        lambda s, r: s.fleet.command(w="left"),
        "w: expected a number, .* found 'left'",
    ),
    "fleet nan": (
        lambda s, r: s.fleet.command(v=math.nan),
        "velocity: expected finite numbers, found nan",
    ),
    "fleet sideways": (
        lambda s, r: s.fleet.command(vy=0.1),
        "vy: none of these robots can drive sideways",
    ),
    "load_laser": (
        lambda s, r: botyard.load_laser(3),
        "type_: expected a str, found 3",
    ),
    "load_robot": (
        lambda s, r: botyard.load_robot(None),
        "model: expected the name of a file .* found None",
    ),
    "load_scene": (
        lambda s, r: botyard.load_scene(3),
        "expected the name of a file .* found 3",
    ),
    "segments": (
        lambda s, r: botyard.Scene(segments=[[0, 0, 1]]),
        r"segments: expected an \(n, 4\) array, found shape \(1, 3\)",
    ),
    "segments nan": (
        lambda s, r: botyard.Scene(segments=[[0, 0, 1, 1], [0, 0, 1, math.nan]]),
        "segments: .* finite .* in row 1",
    ),
    "segments text": (
        lambda s, r: botyard.Scene(segments="walls"),
        r"segments: expected an \(n, 4\) array of numbers, found 'walls'",
    ),
    "points": (
        lambda s, r: botyard.Scene(points=np.zeros(7)),
        r"points: expected an \(n, 2\) array, found shape \(7,\)",
    ),
    "point size": (
        lambda s, r: botyard.Scene(resolution=0),
        "resolution: .* greater than 0 m, found 0",
    ),
    "speed": (
        lambda s, r: MotionLimits(max_speed=Axes(-1, 0, 0)),
        "limits: max_speed must be from 0 to 1000, found -1",
    ),
    "absurd speed": (
        lambda s, r: MotionLimits(max_speed=Axes(1e5, 0, 0)),
        "max_speed .* found 100000",
    ),
    "ramp": (
        lambda s, r: MotionLimits(accel=Axes(math.nan, 0, 0)),
        "accel .* found nan",
    ),
    "heading speed": (
        lambda s, r: MotionLimits(heading_speed=-1),
        "heading_speed .* found -1",
    ),
}


@pytest.fixture
def sim() -> botyard.Simulation:
    sim = botyard.Simulation()
    sim.add_robot("p3dx", "bob", pose=(0, 0, 0), lasers=["lms200"])
    return sim


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_get_a_sentence_and_change_nothing(
    sim: botyard.Simulation, call: str
) -> None:
    act, sentence = WRONG[call]
    with pytest.raises(BotyardError, match=sentence) as caught:
        act(sim, sim.robots["bob"])
    assert str(caught.value).isprintable()
    assert list(sim.robots) == ["bob"] and not sim.core.is_pending


def test_python_programs_may_catch_what_they_expect(sim: botyard.Simulation) -> None:
    for error, act in (
        (ValueError, lambda: sim.step(-1)),
        (KeyError, lambda: sim.remove_robot("ann")),
        (KeyError, lambda: sim.robots["ann"]),
        (ValueError, lambda: sim.robots["bob"].command(v=math.nan)),
        (botyard.WorldError, lambda: sim.step(-1)),
    ):
        with pytest.raises(error):
            act()


def test_numbers_of_numpy_are_numbers(sim: botyard.Simulation) -> None:
    sim.step(np.int64(2))
    robot = sim.add_robot("seekur", pose=np.array([5, 5, 0], np.float32))
    robot.command(v=np.float32(0.3), w=np.int64(0), vy=0.1)
    # Only one of the two robots can move sideways, so the command succeeds.
    sim.fleet.command(vy=0.1)
    botyard.Simulation(
        step=np.float64(0.1),
        seed=np.uint8(3),
        threads=np.int32(1),
        sensor_noise=np.bool_(True),
    )


@pytest.mark.parametrize(
    ("assign", "hint"),
    [
        (lambda s, r: setattr(s, "scene", botyard.Scene()), "call replace_scene"),
        (lambda s, r: setattr(s, "robots", {}), "call add_robot"),
        (lambda s, r: setattr(s, "time", 0.0), r"call step\(\)"),
        (lambda s, r: setattr(s, "seed", 3), r"Simulation\(seed="),
        (lambda s, r: setattr(r, "spec", None), "call Simulation.masses.set_dynamics"),
        (lambda s, r: setattr(r, "name", "eve"), "keeps its name"),
        (
            lambda s, r: setattr(r, "truth", (0, 0, 0)),
            r"call command.set_pose\(x, y, th\)",
        ),
        (lambda s, r: setattr(r, "odom", (0, 0, 0)), "call command.reset_odometry"),
        (lambda s, r: setattr(r, "velocity", 0.3), r"call command\(v="),
        (lambda s, r: setattr(r, "command", 0.3), r"command\(v="),
        (lambda s, r: setattr(r, "laser", "lms200"), "add_robot"),
    ],
)
def test_what_cannot_be_assigned_names_the_method(
    sim: botyard.Simulation, assign: Call, hint: str
) -> None:
    robot = sim.robots["bob"]
    before = (sim.scene, robot.spec, robot.name)
    with pytest.raises(AttributeError, match=hint):
        assign(sim, robot)
    assert (sim.scene, robot.spec, robot.name) == before


def test_a_handle_of_a_removed_robot_says_so(sim: botyard.Simulation) -> None:
    robot = sim.robots["bob"]
    port = robot.port("pioneer")
    port.claim()
    sim.remove_robot("bob")
    # A second release, such as of a session that ends later, has no effect.
    port.release()
    uses: list[Callable[[], Any]] = [
        lambda: robot.truth,
        lambda: robot.odom,
        lambda: robot.state,
        lambda: robot.laser.read(),
        lambda: robot.sonar.read(),
        lambda: robot.command(v=0.1),
        lambda: robot.command.set_pose(0, 0),
        lambda: robot.simulation,
        lambda: robot.laser.subscribe("x"),
        lambda: robot.gps,
        lambda: robot.describe(),
        lambda: robot.ghost(),
    ]
    again = sim.add_robot("p3dx", "bob", pose=(0, 0, 0))
    for use in uses:
        with pytest.raises(UnknownNameError, match='robot "bob" was removed'):
            use()

    sim.step()
    assert again.velocity.vx == 0.0 and not again.clients
    assert "removed" in repr(robot)


@pytest.mark.parametrize("what", ["robot", "laser", "sonar", "fleet", "command"])
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused_loudly(
    sim: botyard.Simulation, what: str, way: Callable[[object], object]
) -> None:
    robot = sim.robots["bob"]
    things = {
        "robot": robot,
        "laser": robot.laser,
        "sonar": robot.sonar,
        "fleet": sim.fleet,
        "command": robot.command,
    }
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        way(things[what])


def test_doubtful_places_are_warned_about() -> None:
    sim = botyard.Simulation(
        botyard.Scene(
            segments=np.array([[0.0, 0.0, 10.0, 0.0], [10.0, 0.0, 10.0, 10.0]])
        )
    )
    with pytest.warns(
        PlacementWarning,
        match="robot wall at x=5 m, y=0 m touches something at its start",
    ) as caught:
        sim.add_robot("p3dx", "wall", pose=(5, 0, 0))

    # The warning names the line of the user, not a line of botyard.
    assert caught[0].filename == __file__
    with pytest.warns(
        PlacementWarning,
        match="robot far at x=500 m, y=5 m starts more than 100 m outside of the map",
    ):
        sim.add_robot("p3dx", "far", pose=(500, 5, 0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.add_robot("p3dx", "fine", pose=(5, 5, 0))
        sim.add_robot("p3dx", "near", pose=(-50, 5, 0))

    with pytest.warns(PlacementWarning, match="robot upon") as caught:
        sim.add_robot("p3dx", "upon", pose=(5.1, 5, 0))
    assert len(caught) == 1


def test_many_doubts_are_a_few_lines_and_go_where_they_are_wanted() -> None:
    said: list[str] = []
    sim = botyard.Simulation(warn=said.append)
    sim.add_robots("p3dx", [(0, 0, 0)] * 9)
    assert (
        len(said) == 6
        and said[0].startswith("robot p3dx at x=0 m")
        and said[5].startswith("4 more robots")
    )


def test_frames_of_poses_are_told_where_they_are_printed(
    sim: botyard.Simulation,
) -> None:
    robot = sim.robots["bob"]
    assert repr(robot.truth).startswith("WorldPose(x=") and repr(robot.odom).startswith(
        "OdomPose(x="
    )
    assert repr(robot.odom_in_world).startswith("WorldPose(")
    assert robot.truth == (0, 0, 0) == botyard.Pose()


@pytest.mark.parametrize(
    ("get", "hint"),
    [
        (
            lambda s, r: r.pose,
            "truth is its pose in the map's frame, odom its pose by odometry",
        ),
        (lambda s, r: r.x, "truth is its pose"),
        (lambda s, r: r.stop(), "call command.stop(…)"),
        (lambda s, r: r.drive(0.3), "call command(v=…, w=…)"),
        (lambda s, r: r.motors, "command.enable(on) changes it"),
        (lambda s, r: r.estop, "press_estop(pressed) presses or releases the button"),
        (lambda s, r: r.scan, "laser.read()"),
        (lambda s, r: s.robot, 'robots["name"]'),
        (lambda s, r: s.fleet.pose, "poses has the true poses"),
    ],
)
def test_what_does_not_exist_but_users_expect_says_where_it_is(
    sim: botyard.Simulation, get: Call, hint: str
) -> None:
    with pytest.raises(AttributeError) as error:
        get(sim, sim.robots["bob"])
    assert hint in str(error.value)
    for thing in (sim, sim.robots["bob"], sim.fleet):
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
            thing.nothing  # noqa: B018
        assert not hasattr(thing, "_nothing")


def test_an_attribute_error_within_a_property_is_not_taken_for_a_missing_attribute() -> (
    None
):
    class Broken(botyard.Simulation):
        @property
        def height(self) -> float:
            return self.robots.no_such_thing  # type: ignore[attr-defined,no-any-return]

    with pytest.raises(AttributeError, match="no_such_thing"):
        Broken().height  # noqa: B018


def test_what_is_printed_is_a_line_that_says_what_it_is(
    sim: botyard.Simulation,
) -> None:
    robot = sim.robots["bob"]
    office = botyard.Simulation.load("office", seed=4)
    office.add_robots("p3dx", [(5.0 + k, 9, 0) for k in range(7)])
    office.step(3)
    assert repr(office) == "<Simulation: office, 7 robots, time 0.3 s, seed 4>"
    assert (
        repr(botyard.Simulation()) == "<Simulation: nomap, 0 robots, time 0 s, seed 1>"
    )
    assert (
        repr(office.fleet)
        == "<Fleet of 7 robots: p3dx, p3dx_002, p3dx_003, p3dx_004, p3dx_005, …>"
    )
    assert (repr(sim.fleet), repr(botyard.Simulation().fleet)) == (
        "<Fleet of 1 robot: bob>",
        "<Fleet of 0 robots>",
    )
    laser = office.add_robot(
        "p3dx", "ann", pose=(5, 12, -1e-5), lasers=["lms200", "urg"]
    ).lasers
    assert (
        repr(laser[0])
        == "<Laser of ann: sicklms200, 181 rays from -90.0° to 90.0°, up to 32.767 m>"
    )
    assert (
        repr(laser[1]).startswith("<Laser 2 of ann: ")
        and repr(robot.sonar) == "<Sonar of bob: 16 transducers, up to 5 m>"
    )
    assert (repr(robot.command), repr(robot.devices["gps"])) == (
        "<Commands to bob>",
        "<DeviceReader of bob: gps>",
    )
    scan = laser[0].read()
    k = int(scan.ranges.argmin())
    nearest = f"nearest {scan.ranges[k]:.3f} m at {math.degrees(scan.angles[k]):.1f}°"
    assert (
        repr(scan)
        == str(scan)
        == f"<LaserScan at 0.3 s: 181 ranges from -90.0° to 90.0°, {nearest}>"
    )
    laser[0].configure(-1e-9, 0.1, 0)
    assert repr(laser[0].read()) == "<LaserScan at 0.3 s: 0 ranges from 0.0° to 0.0°>"
    assert (
        repr(office.robots["ann"])
        == "<Robot ann: p3dx at x=5.000 m, y=12.000 m, th=0.0°>"
    )
    for thing in (office.snapshot, office.scene, robot.sonar.read()):
        assert (
            repr(thing).startswith(f"<{type(thing).__name__} ")
            and len(repr(thing)) < 100
        )


def test_no_angle_is_minus_zero(sim: botyard.Simulation) -> None:
    """No printed angle or signed distance is "-0".

    A source file that formats degrees uses the option z (PEP 682).
    """
    robot = sim.robots["bob"]
    sim.put("bob", (-1e-9, -1e-9, -1e-9))
    robot.command(v=-1e-9, w=-1e-9)
    sim.step()
    assert not re.search(
        r"-0\.?0*(?![.\d])",
        "\n".join([repr(robot), *robot.describe(), sim._repr_html_()]),
    )
    signed = re.compile(r"\{[^{}]*(?:degrees\(|_deg\b|deg_s\b)[^{}]*:(?!z)[^{}]*[fg]\}")
    never_below_zero = ("limits", "top.a", "fov")
    package = Path(botyard.__file__).parent
    found = [
        f"{file.relative_to(package)}: {text}"
        for file in package.rglob("*.py")
        for text in signed.findall(file.read_text("utf-8"))
        if not any(word in text for word in never_below_zero)
    ]
    assert found == []


def test_help_begins_with_what_a_user_needs() -> None:
    text = botyard.Robot.__doc__ or ""
    for word in ("command(v=", "laser", "odom", "truth", "stalled", "sonar"):
        assert word in text.partition("claim")[0]


@given(
    st.one_of(
        st.none(),
        st.text(),
        st.floats(),
        st.integers(),
        st.lists(st.floats(), max_size=4),
        st.binary(),
        st.dictionaries(st.text(), st.floats()),
    )
)
def test_checks_raise_nothing_else(value: object) -> None:
    for check in (
        arguments.number,
        arguments.whole,
        arguments.flag,
        arguments.pose,
        arguments.poses,
        arguments.path,
    ):
        message = ""
        try:
            check(value, "it")
        except ArgumentError as error:
            message = str(error)

        assert not message or (message.startswith("it") and message.isprintable())


@pytest.mark.parametrize(
    ("name", "call"),
    [("pose", "set_pose"), ("position", "set_pose"), ("speed", "command")],
)
def test_what_a_robot_does_not_have_but_users_would_assign_to_names_the_method(
    name: str, call: str
) -> None:
    robot = botyard.Simulation().add_robot("p3dx")
    with pytest.raises(AttributeError, match=call):
        setattr(robot, name, (1.0, 2.0, 0.0))
