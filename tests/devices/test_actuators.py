"""Actuators:

commands that a kind declares, by programs, the control surface, ROS and the page;
joints of robots.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from botyard.app.compose import compose
from botyard.control import USER, Caller, CommandDevice, Control, Level
from botyard.devices.robotjoints import PrismaticJointSpec, RevoluteJointSpec
from botyard.errors import (
    ArgumentError,
    BotyardError,
    DeniedError,
    DeviceError,
    ModelError,
    UnknownNameError,
)
from botyard.formats.models import find_robot
from botyard.interfaces.page.devices import device_readings
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.members import ROS
from botyard.model import devices
from botyard.model.devices import Command
from botyard.model.dynamics import Gains
from botyard.model.library import parse_robot
from botyard.protocols.ros_messages.naming import PROFILES
from botyard.protocols.ros_messages.types import types
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Robot, Simulation

PAN = RevoluteJointSpec(joint="pan", low=-1.0, high=1.5, inertia=0.2, damping=0.1)


def robot_with(*specs: Any) -> Robot:
    return Simulation(seed=1).add_robot(
        replace(find_robot("p3dx"), devices=specs), "ann", pose=(0, 0, 0)
    )


def test_a_joint_goes_where_it_is_told_and_no_farther_than_its_limits() -> None:
    robot = robot_with(
        PAN, PrismaticJointSpec(joint="mast", low=0.2, high=0.8, gains=Gains(50.0, 5.0))
    )
    pan, mast = robot.devices["revolute_joint"], robot.devices["prismatic_joint"]
    assert mast.read().position == 0.2, "it begins at the limit next to zero"
    pan.command("position", 0.7)
    mast.command("position", 0.6)
    robot.simulation.step(200)
    assert (pan.read().position, mast.read().position) == (
        pytest.approx(0.7, abs=1e-3),
        pytest.approx(0.6, abs=1e-3),
    )
    pan.command("velocity", -0.5)
    robot.simulation.step()
    assert pan.read()[:2] == (pytest.approx(0.65, abs=1e-3), -0.5)
    robot.simulation.step(50)
    assert pan.read()[:2] == (-1.0, 0.0), "at the limit"


def test_an_effort_moves_a_joint_as_a_mass_with_damping() -> None:
    robot = robot_with(replace(PAN, continuous=True))
    joint = robot.devices["revolute_joint"]
    joint.command("effort", 0.4)
    robot.simulation.step(30)
    velocity = 0.4 / PAN.damping * (1.0 - math.exp(-PAN.damping / PAN.inertia * 3.0))
    assert joint.read().velocity == pytest.approx(velocity, rel=0.02), (
        "v' = (effort − damping·v) / inertia"
    )
    assert joint.read().effort == 0.4


def test_a_robot_file_has_joints_with_limits_in_degrees() -> None:
    text = 'extends = "p3dx"\n[revolute_joint]\njoint = "pan"\nlimits_deg = [-90, 45]\ngains = [5, 1]\n'
    (joint,) = parse_robot(text, "mine").devices
    assert joint == RevoluteJointSpec(
        joint="pan", low=-math.pi / 2, high=math.pi / 4, gains=Gains(5.0, 1.0)
    )
    with pytest.raises(ModelError, match="limits must be"):
        parse_robot('extends = "p3dx"\n[prismatic_joint]\nlimits = [1, 1]', "mine")


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        (
            "position",
            2.0,
            ArgumentError,
            "position: expected a number from -1 to 1.5 rad",
        ),
        ("position", math.nan, ArgumentError, "position: expected"),
        ("position", "far", ArgumentError, "position: expected"),
        ("positon", 0.0, UnknownNameError, 'did you mean "position"'),
    ],
)
def test_wrong_commands_change_nothing(
    name: str, value: Any, error: type[Exception], message: str
) -> None:
    robot = robot_with(PAN)
    before = robot.simulation.digest()
    with pytest.raises(error, match=message):
        robot.devices["revolute_joint"].command(name, value)
    assert robot.simulation.digest() == before


def test_a_command_whose_code_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = robot_with(PAN)
    reader = robot.devices["revolute_joint"]
    for command in (
        Command(name="odd", limits=lambda _: 1 / 0, columns=lambda x: {}),
        Command(name="odd", limits=lambda _: (0.0, 1.0), columns=lambda x: 1 / 0),
    ):
        reader.kind = replace(reader.kind, commands=(command,))
        with pytest.raises(DeviceError, match="odd"):
            reader.command("odd", 0.5)

    with pytest.raises(ModelError, match="expected a name of letters"):
        Command(name="a b", limits=lambda _: (0, 1), columns=lambda x: {})


def test_a_gripper_is_commanded_like_any_actuator() -> None:
    sim = Simulation()
    robot = sim.add_robot("p3dx-equipped", "ann", pose=(0, 0, 0))
    control = Control(sim)
    assert robot.gripper is not None
    half = robot.gripper.spec.opening / 2.0
    for command, value in (
        ("left", 0.25 * half),
        ("right", 0.5 * half),
        ("lift", 0.75),
    ):
        control.do(
            USER,
            CommandDevice(robot="ann", device="gripper", command=command, value=value),
        )

    sim.step(60)
    assert robot.gripper.positions == pytest.approx((0.25 * half, 0.5 * half, 0.75))
    with pytest.raises(ArgumentError, match="left: expected"):
        control.do(
            USER,
            CommandDevice(
                robot="ann", device="gripper", command="left", value=3 * half
            ),
        )

    with pytest.raises(UnknownNameError, match="gripper"):
        control.do(
            USER, CommandDevice(robot="ann", device="griper", command="left", value=0.0)
        )


def test_commands_are_in_the_journal_with_who_gave_them() -> None:
    first, sim = Simulation(seed=3), Simulation(seed=3)
    entries: list[Any] = []
    for one in (first, sim):
        one.add_robot(find_robot("p3dx").fitted(PAN), "ann", pose=(0, 0, 0))
    sim.core.journal.listen(entries.append)
    digests = []
    for n in range(12):
        if n == 3:
            Control(sim).do(
                ROS,
                CommandDevice(
                    robot="ann", device="revolute_joint", command="position", value=0.5
                ),
            )

        sim.step()
        digests.append(sim.digest())

    assert [e.source for e in entries] == ["ros"]
    assert list(resimulate(first, entries, 12)) == digests


def test_who_may_only_look_on_commands_nothing() -> None:
    robot = robot_with(PAN)
    asked = CommandDevice(
        robot="ann", device="revolute_joint", command="position", value=0.5
    )
    with pytest.raises(DeniedError):
        Control(robot.simulation).do(Caller("page", Level.WATCH), asked)
    Control(robot.simulation, read_only=True).do(Caller("ros", Level.DRIVE), asked)


def test_ros_commands_and_reads_joints() -> None:
    """std_msgs/Float64 in and sensor_msgs/JointState out, only in the default profile.

    An invalid value is an error of the peer.
    """
    kinds = types()
    robot = robot_with(PAN, replace(PAN, joint="tilt"))
    parts = compose(robot.simulation, limits=None)
    for profile, names in (
        ("stage", []),
        ("default", ["revolute_joint", "revolute_joint_2"]),
    ):
        graph = RosGraph(
            parts.hub, parts.control, parts.maps.cells, kinds, profile=PROFILES[profile]
        )
        graph._sync()
        member = graph._members["ann"]
        inputs = {
            i.name.removeprefix("/ann/"): i for i in member.inputs if "joint" in i.name
        }
        assert [*inputs] == [
            f"{n}/{c}_cmd" for n in names for c in ("position", "velocity", "effort")
        ]
        if names:
            inputs["revolute_joint_2/position_cmd"].take(
                kinds.filled("std_msgs/msg/Float64", {"data": 0.4})
            )
            with pytest.raises(BotyardError, match="expected a number"):
                inputs["revolute_joint_2/position_cmd"].take(
                    kinds.filled("std_msgs/msg/Float64", {"data": math.inf})
                )

            robot.simulation.step(100)
            topics = {o.topic.name: o.topic for o in member.topics}
            state = topics["/ann/revolute_joint_2"].make(graph.stamp())
            assert (state.name, list(state.position)) == (
                ["tilt"],
                pytest.approx([0.4], abs=1e-3),
            )
            assert list(topics["/ann/revolute_joint"].make(graph.stamp()).position) == [
                0.0
            ]

        graph.close()


def test_the_page_is_told_what_actuators_take() -> None:
    (joint,) = device_readings(robot_with(PAN))
    assert next((c.name, c.low, c.high, c.unit) for c in joint.commands) == (
        "position",
        -1.0,
        1.5,
        "rad",
    )
    assert joint.rows == [["0.0°", "0.000 rad/s", "0.000 N·m"]]
    equipped = {
        d.device: d for d in device_readings(Simulation().add_robot("p3dx-equipped"))
    }
    assert [c.name for c in equipped["gripper"].commands] == ["left", "right", "lift"]
    assert equipped["gripper"].columns == equipped["gripper"].rows == [], (
        "its switches are shown elsewhere"
    )
    assert not equipped["bumpers"].commands


def test_every_command_of_the_package_moves_something() -> None:
    """A command from the middle of its limits changes the world."""
    seen = 0
    for kind in devices.built_in_devices():
        for command in kind.commands:
            spec = {"gripper": find_robot("p3dx-equipped").gripper}.get(
                kind.name
            ) or kind.spec()
            robot = Simulation().add_robot(
                find_robot("p3dx").fitted(spec), "ann", pose=(0, 0, 0)
            )
            # Only a message that is sent can be silenced.
            if command.name == "silence":
                robot.devices[kind.name].command("message", 1.0)
                robot.simulation.step()
            still = robot.simulation.clone()
            low, high = command.limits(spec)
            robot.devices[kind.name].command(
                command.name, 0.3 * low + 0.7 * high if command.name != "left" else 0.0
            )
            for sim in (robot.simulation, still):
                sim.step(10)
            assert robot.simulation.digest() != still.digest(), (
                f"{kind.name}.{command.name}"
            )
            seen += 1

    assert seen == 13
