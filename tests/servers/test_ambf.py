"""AMBF's objects for a program written for AMBF's client:

the recorded run repeated on all three generations.
"""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from botyard.clients.ambf import Body, Client, Sensor, Vehicle
from botyard.errors import PeerError
from botyard.protocols.ambf.link import Kind, frame
from botyard.protocols.ambf.messages import GENERATIONS
from tests.ports import free_port
from tests.waiting import PATIENCE, wait

FILE = Path(__file__).parents[1] / "data" / "ambf.yaml"


class Run:
    """A simulator with a connected client."""

    def __init__(
        self, generation: str, folder: Path, *args: str, step: int = 1
    ) -> None:
        self.generation = generation
        self.port = free_port(5)
        self.robots = self.port + 1
        self._out = (folder / "out.log").open("w")
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "botyard",
                "--noninteractive",
                "--no-crash-restart",
                "--no-gui",
                "-p",
                str(self.robots),
                "--ambf",
                generation,
                "--ambf-port",
                str(self.port),
                "--update-interval",
                str(step),
                "--ambf-watchdog",
                "3",
                "--ros-master",
                f"embedded:{self.port + 4}",
                *(
                    args
                    or (
                        "--nomap",
                        "-r",
                        "p3dx:ann",
                        "--start",
                        "20000,20000,0",
                        "--adf",
                        str(FILE),
                    )
                ),
            ],
            stdout=self._out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ},
        )
        self.log = folder / "out.log"
        self.client = Client("test", port=self.port)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.client.connect(120.0 if generation == "2.0" else 400.0)
                break
            except PeerError:
                assert self.process.poll() is None and time.monotonic() < end, (
                    self.log.read_text()
                )
                time.sleep(0.1)

    def close(self) -> None:
        self.client.clean_up()
        self.process.terminate()
        self.process.wait(PATIENCE)
        self._out.close()

    def get(self, name: str) -> Any:
        handle = self.client.get_obj_handle(name)
        assert handle is not None, self.client.get_obj_names()
        heard = handle.heard
        wait(lambda: handle.heard >= heard + 3)
        return handle


def go_on(body: Any, seconds: float) -> None:
    """Run for a simulated time, by a body's own states."""
    end = body.get_sim_time() + seconds
    wait(lambda: body.get_sim_time() >= end)


@pytest.fixture(params=GENERATIONS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    found = Run(request.param, tmp_path)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def newest(tmp_path: Path) -> Iterator[Run]:
    found = Run("2.0", tmp_path)
    try:
        yield found
    finally:
        found.close()


def test_the_recorded_run(run: Run) -> None:
    """Names, rates, lists, forces, poses, joints, lockstep and resets, as the real
    client saw them at the real simulator.
    """
    c, new = run.client, run.generation != "master"
    names = c.get_obj_names()
    assert c.get_common_namespace() == "/ambf/env/"
    prefix = "/ambf/env/" if new else ""
    expected = {
        "robot1",
        "box1",
        "cameras/default_camera",
        "lights/light1",
        "sensors/sonar0",
    }
    expected |= {"rover", "actuators/grip"} if new else set()
    assert {f"{prefix}{n}" for n in expected} <= set(names)
    assert ("World" in names) == new
    assert f"{prefix}wall" not in names, "it is passive"

    world, robot = c.get_world_handle(), run.get("robot1")
    assert robot.type == ("RigidBody" if new else "Object")
    wait(lambda: robot.get_num_joints() == 2)
    assert robot.get_joint_names() == ["left_wheel", "right_wheel"]
    wait(lambda: robot.get_children_names() == ["wheel_l", "wheel_r"])
    assert robot.get_all_joint_pos() == [0.0, 0.0]
    assert (robot.get_mass(), robot.get_inertia().z) == (2.0, 0.5)
    assert robot.get_name() == "robot1"
    time.sleep(0.3)

    def rates() -> tuple[float, float, float]:
        heard, idle, begin, step = (
            robot.heard,
            world.heard,
            time.monotonic(),
            robot.get_sim_step(),
        )
        time.sleep(1.0)
        took = time.monotonic() - begin
        return (
            (robot.get_sim_step() - step) / took,
            (robot.heard - heard) / took,
            (world.heard - idle) / took,
        )

    def as_wanted() -> bool:
        steps, often, idle = rates()
        assert often < 1100.0
        assert idle < 65.0
        return often > 0.6 * min(1000.0, steps) and idle > 0.7 * min(50.0, 0.05 * steps)

    wait(
        as_wanted,
        what="1000 Hz and 50 Hz, as far as the machine makes its steps in time",
    )

    def is_pushed() -> bool:
        """Push once a second: on a busy machine a push of 0.1 s may pass without a step."""
        if robot.get_pos().x > 0.02:
            return True
        robot.set_force(3.0, 0.0, 0.0)
        return False

    wait(is_pushed, pause=1.0)
    go_on(robot, 0.3)
    speeds = []
    for _ in range(2):
        first, start = robot.get_pos().x, robot.get_sim_time()
        go_on(robot, 0.3)
        speeds.append((robot.get_pos().x - first) / (robot.get_sim_time() - start))

    assert 0.0 < speeds[0] < 1.5 * 0.3
    assert speeds[1] == pytest.approx(speeds[0], rel=0.15), (
        "the client ends the force after 0.1 s; then it coasts"
    )

    robot.pose_command(3.0, 1.0, 0.0, 1.0, 0.0, 0.0)
    where = 5 if run.generation == "2.0" else 3
    wait(lambda: math.dist((robot.get_pos().x, robot.get_pos().y), (3.0, 1.0)) < 2e-3)
    wait(lambda: abs(robot.get_pose()[where] - 1.0) < 2e-3)
    still = run.get("box1")
    still.pose_command(-1.0, 2.0, 0.0, 0.5, 0.0, 0.0)
    wait(lambda: abs(still.get_pose()[where] - 0.5) < 1e-6)
    assert (still.get_pos().x, still.get_pos().y) == (-1.0, 2.0)
    still.set_force(100.0, 0.0, 0.0)
    go_on(still, 0.2)
    assert still.get_pos().x == -1.0, "forces do not move what is kinematic"

    robot.set_joint_pos(0, 0.7)
    wait(lambda: abs(robot.get_joint_pos("left_wheel") - 0.7) < 1e-3)
    robot.set_joint_effort("right_wheel", 0.05)
    wait(lambda: robot.get_joint_pos(1) > 0.03)
    if new:
        robot.set_twist(0.4, 0.0, 0.0, 0.0, 0.0, 0.0)
        wait(lambda: robot.get_linear_vel().x > 0.39)
        first, step = robot.get_pos().x, robot.get_sim_time()
        go_on(robot, 0.5)
        assert (robot.get_pos().x - first) / (
            robot.get_sim_time() - step
        ) == pytest.approx(0.4, rel=0.1)
        robot.set_force(0.0, 0.0, 0.0)

    world.enable_throttling(True)
    world.set_num_step_skips(5)
    world.update()
    wait(lambda: world.get_sim_step() > 0)
    before = -1
    end = time.monotonic() + PATIENCE
    # Messages in flight still arrive; after them the world must stand still.
    while world.get_sim_step() != before:
        assert time.monotonic() < end, "it does not stand still"
        before = world.get_sim_step()
        time.sleep(0.2)

    for k in range(1, 21):
        world.update()
        wait(lambda k=k: world.get_sim_step() >= before + 5 * k)  # type: ignore[misc]
        assert world.get_sim_step() == before + 5 * k

    # Some seconds after the last command the world runs freely again.
    wait(lambda: world.get_sim_step() > before + 100 + 300)

    if run.generation == "2.0":
        world.reset_bodies()
        wait(lambda: math.hypot(robot.get_pos().x, robot.get_pos().y) < 1e-3)
        assert still.get_pos().x == -1.0
        world.reset()
        wait(lambda: still.get_pos().x == -5.0)
    else:
        with pytest.raises(PeerError, match="only the newest generation"):
            world.reset()


@pytest.mark.shared
def test_names_of_the_recording_are_the_same(newest: Run, shared: Path) -> None:
    recorded = json.loads(
        (shared / "golden" / "ambf" / "real_client_run_2.0.json").read_text()
    )
    assert set(recorded["names"]) <= set(newest.client.get_obj_names())
    assert recorded["common_namespace"] == newest.client.get_common_namespace()
    robot = newest.get("robot1")
    assert recorded["joint_names"] == robot.get_joint_names()
    wait(lambda: recorded["children"] == robot.get_children_names())
    assert (
        recorded["others"]["rover"]["wheels"] == newest.get("rover").get_wheel_count()
    )
    assert recorded["others"]["sonar0"]["count"] == newest.get("sonar0").get_count()
    kinds = {
        "sonar0": "Sensor",
        "rover": "Vehicle",
        "light1": "Light",
        "default_camera": "Camera",
        "grip": "Actuator",
    }
    for name, kind in kinds.items():
        assert recorded["others"][name]["type"] == kind == newest.get(name).type


def test_sensors_cameras_and_what_holds(newest: Run) -> None:
    sensor, robot = newest.get("sonar0"), newest.get("robot1")
    assert isinstance(sensor, Sensor)
    box = newest.get("box1")
    wait(lambda: sensor.is_triggered(0))
    assert sensor.get_all_measurements() == pytest.approx(
        [1.0 - 1.7 / 5.0, 0.0, 0.0, 0.0], abs=1e-6
    )
    assert (
        sensor.get_range(0),
        sensor.get_sensed_object(0),
        sensor.get_sensed_object(1),
    ) == (5.0, "wall", "")
    assert (sensor.get_type(), sensor.get_parent_name()) == ("PROXIMITY", "box1")
    camera = newest.get("default_camera")
    camera.set_pos(1.0, 2.0, 3.0)
    wait(lambda: (camera.get_pos().x, camera.get_pos().z) == (1.0, 3.0))
    grip = newest.get("grip")
    robot.set_pos(-5.0, 4.0, 0.0)
    wait(lambda: math.dist((robot.get_pos().x, robot.get_pos().y), (-5.0, 4.0)) < 1e-2)
    assert sensor.get_sensed_object(3) in ("", "robot1")
    grip.actuate("box1")
    wait(grip.is_actuated)
    robot.set_pos(-4.0, 3.0, 0.0)
    wait(lambda: math.dist((box.get_pos().x, box.get_pos().y), (-4.0, 4.0)) < 2e-2)
    grip.deactuate()
    wait(lambda: not grip.is_actuated())
    robot.set_pos(-4.0, 1.0, 0.0)
    go_on(robot, 1.0)
    assert box.get_pos().y == pytest.approx(4.0, abs=0.02)
    grip.actuate_from_sensor_data("sonar0")
    time.sleep(0.2)
    grip.actuate("nobody")
    time.sleep(0.2)
    assert newest.process.poll() is None


def test_vehicles(newest: Run) -> None:
    rover, chassis = newest.get("rover"), newest.client._handles["/ambf/env/chassis"]
    assert isinstance(rover, Vehicle)
    assert rover.get_wheel_count() == 4
    rover.set_powered_wheel_indices([2, 3])
    rover.set_steered_wheel_indices([0, 1])
    rover.set_vehicle_power(5.0)
    wait(lambda: chassis.get_linear_vel().x > 0.5)
    assert chassis.get_linear_vel().y == pytest.approx(0.0, abs=1e-6)
    rover.set_vehicle_steering(0.3)
    wait(lambda: chassis.get_angular_vel().z > 0.1)
    v = math.hypot(chassis.get_linear_vel().x, chassis.get_linear_vel().y)
    assert chassis.get_angular_vel().z == pytest.approx(
        v * math.tan(0.3) / 0.8, rel=0.2
    )
    rover.set_vehicle_power(0.0)
    rover.set_vehicle_brake(80.0)
    wait(
        lambda: (
            math.hypot(chassis.get_linear_vel().x, chassis.get_linear_vel().y) < 1e-3
        )
    )


def test_a_robot_is_driven_by_its_wheels_and_by_twists(newest: Run) -> None:
    """A kinematic robot with differential drive is usually driven by wheel velocities
    (§10).
    """
    robot = newest.get("/ambf/env/ann")
    assert isinstance(robot, Body)
    assert robot.get_mass() == 0.0
    wait(lambda: robot.get_num_joints() == 2)
    for wheel in ("left_wheel", "right_wheel"):
        robot.set_joint_vel(wheel, 3.0)
    wait(lambda: robot.get_linear_vel().x == pytest.approx(0.3, abs=0.01))
    angle = robot.get_joint_pos("left_wheel")
    assert angle > 0.0
    assert robot.get_joint_vel("left_wheel") == pytest.approx(3.0, abs=0.1)
    robot.set_joint_vel("left_wheel", -3.0)
    wait(
        lambda: robot.get_angular_vel().z == pytest.approx(0.6 / (2 * 0.1786), abs=0.1)
    )
    laser = newest.get("ann_sonar")
    assert laser.get_count() == 16
    vehicle = newest.get("/ambf/env/vehicles/ann")
    assert vehicle.get_wheel_count() == 2


def test_clients_that_misbehave_cost_only_their_own_connection(newest: Run) -> None:
    for data in (
        b"\xff" * 100,
        frame(Kind.MESSAGE, 3, b"x" * 5),
        frame(Kind.READ, 10**6),
        frame(Kind.TOPICS, 0),
    ):
        with socket.create_connection(
            ("127.0.0.1", newest.port), timeout=PATIENCE
        ) as bad:
            bad.sendall(data)
            time.sleep(0.1)

    robot = newest.get("robot1")
    heard = robot.heard
    wait(lambda: robot.heard > heard + 10)
    assert "Traceback" not in newest.log.read_text()


def test_absurd_commands_are_ignored(newest: Run) -> None:
    """Non-finite and impossible values, for every kind of object."""
    c = newest.client
    huge, nan = 1e300, math.nan
    robot, box, still = (
        newest.get(f"/ambf/env/{n}") for n in ("ann", "robot1", "box1")
    )
    begin = still.get_pos().x
    for x in (huge, nan, math.inf):
        for body in (robot, box, still):
            body.set_force(x, 0.0, 0.0)
            time.sleep(0.02)
            body.set_twist(x, 0.0, 0.0, 0.0, 0.0, x)
            time.sleep(0.02)
            body.set_pos(x, 0.0, 0.0)
            time.sleep(0.02)

        for kind in (
            robot.set_joint_vel,
            robot.set_joint_pos,
            robot.set_joint_effort,
            box.set_joint_vel,
            box.set_joint_effort,
        ):
            kind("left_wheel", min(x, 3e38) if x == x else x)
            time.sleep(0.02)

        rover, camera = newest.get("rover"), newest.get("default_camera")
        rover.set_vehicle_power(min(x, 3e38) if x == x else x)
        camera.set_pos(x, x, x)
        time.sleep(0.1)

    assert newest.process.poll() is None
    still.set_pos(begin + 1.0, 5.0, 0.0)
    wait(lambda: still.get_pos().x == begin + 1.0)
    text = newest.log.read_text()
    assert "Traceback" not in text
    assert "robot1: pose: expected values within" in text
    assert text.count("robot1: a command with values that are not finite") <= 3, (
        "the same is not said all the time"
    )
    assert c.is_connected()


def test_a_client_that_is_gone_leaves_nothing_behind(newest: Run) -> None:
    robot, world = newest.get("/ambf/env/ann"), newest.client.get_world_handle()
    robot.set_twist(0.3, 0.0, 0.0, 0.0, 0.0, 0.0)
    wait(lambda: robot.get_linear_vel().x > 0.2)
    newest.client.clean_up()
    with pytest.raises(PeerError, match="closed"):
        world.update()
    second = Client("second", port=newest.port)
    second.connect()
    try:
        watched = second._handles["/ambf/env/ann"]
        wait(lambda: watched.heard > 0 and abs(watched.get_linear_vel().x) < 1e-3)
    finally:
        second.clean_up()


def test_two_names_for_two_things_and_objects_that_come_later(newest: Run) -> None:
    c = newest.client
    assert c.get_obj_handle("nobody") is None
    assert c.get_obj_handle("wheel") is None, "several have it in their names"
    with pytest.raises(PeerError, match="name of an object, found nobody"):
        c.get_obj_pose("nobody")
    assert len(c.get_obj_pose("/ambf/env/box1")) == 6
    c.refresh()
    robot = c.get_obj_handle("robot1")
    wait(lambda: robot.heard > 0)


def test_nobody_listens_there() -> None:
    with pytest.raises(PeerError, match=r"no simulator at 127\.0\.0\.1"):
        Client(port=free_port(), timeout=0.5).connect()


def test_userdata_of_the_oldest_generation(tmp_path: Path) -> None:
    run = Run("master", tmp_path)
    try:
        robot, sonar = run.get("ann"), run.get("sensors/ann_sonar")
        assert robot._state.userdata_description == "battery, V"
        assert robot._state.userdata.tolist() == [13.0]
        wait(lambda: len(sonar._state.userdata) == 16)
        assert "rays" in sonar._state.userdata_description
    finally:
        run.close()


def test_joints_below_joints(tmp_path: Path) -> None:
    """A chain:

    a body has all joints below it in the tree, and the last child moves with each of
    them.
    """
    shape = "shape: Box, geometry: {x: 0.2, y: 0.1, z: 0.1}"
    text = "bodies: [BODY a, BODY b, BODY c]\njoints: [JOINT one, JOINT two]\n"
    text += "".join(
        f"BODY {n}: {{mass: {m}, {shape}}}\n" for n, m in (("a", 0), ("b", 1), ("c", 1))
    )
    text += (
        "JOINT one: {parent: BODY a, child: BODY b, parent axis: {x: 0, y: "
        "0, z: 1}, parent pivot: {x: 1, y: 0, z: 0}}\n"
    )
    text += (
        "JOINT two: {parent: BODY b, child: BODY c, type: prismatic, parent "
        "axis: {x: 1, y: 0, z: 0}, "
    )
    text += "joint limits: {low: 0, high: 2}}\n"
    (tmp_path / "arm.yaml").write_text(text)
    run = Run(
        "2.0",
        tmp_path,
        "--nomap",
        "-r",
        "p3dx:ann",
        "--start",
        "9000,9000,0",
        "--adf",
        str(tmp_path / "arm.yaml"),
    )
    try:
        arm, last = run.get("a"), run.client._handles["/ambf/env/c"]
        assert arm.get_joint_names() == ["one", "two"]
        wait(lambda: last.get_mass() == 1.0)
        assert last.get_inertia().z == pytest.approx((0.2**2 + 0.1**2) / 12.0)
        wait(lambda: arm.get_children_names() == ["b", "c"])
        arm.set_joint_pos("one", math.pi / 2)
        arm.set_joint_pos("two", 0.5)
        wait(lambda: math.dist((last.get_pos().x, last.get_pos().y), (1.0, 0.5)) < 1e-2)
        wait(lambda: abs(last.get_rpy()[2] - math.pi / 2) < 1e-3)
        arm.set_joint_pos("two", 9.0)
        wait(lambda: abs(arm.get_joint_pos("two") - 2.0) < 1e-2)
    finally:
        run.close()
