"""Rules that hold for a robot whoever commands it (docs/reference/robots.md): each rule is tried with each source of commands.

The rules stand in the engine. A source enables the motors and drives as its users would, before every step.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from botyard.app.compose import Parts, compose
from botyard.control import Level
from botyard.errors import BotyardError
from botyard.formats.models import find_robot
from botyard.interfaces.ambf.ambf import Ambf
from botyard.interfaces.interface import Caller, Door
from botyard.interfaces.page.desk import PageDesk
from botyard.interfaces.page.viewsource import ViewSource
from botyard.interfaces.ros.foxglove import Foxglove
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.rosbridge import Rosbridge
from botyard.model.robot import BatterySpec
from botyard.protocols.ambf.messages import VELOCITY, definitions
from botyard.protocols.pioneer.packet import command
from botyard.protocols.ros_messages.types import Types, types
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.servers.nullmodem import NullModem
from botyard.sim.simulation import Simulation
from botyard.traffic.generate import generate
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.outcome import Ending
from botyard.traffic.supervisors.registry import find_supervisor
from tests.journaled import watching
from tests.servers.test_rosgraph import Recorder

MODEL = replace(
    find_robot("p3dx"),
    battery=BatterySpec(capacity_wh=100.0, idle_power=10.0, motor_power=50.0, charge_power=100.0, shutdown_charge=20.0),
)
SPEED = 0.3


class Source(Protocol):
    """A client: it enables the motors and drives forward, once before each step."""

    def __call__(self) -> None: ...


class World:
    """Ann in an empty plane, and one source of commands."""

    def __init__(self, source: str) -> None:
        self.sim = Simulation(seed=1, step=0.1)
        self.ann = self.sim.add_robot(MODEL, "ann")
        self.closing: list[Callable[[], None]] = []
        self._parts: Parts | None = None
        self.act: Source = getattr(self, source)()

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            self._parts = compose(self.sim, limits=None)
        return self._parts

    def run(self, steps: int, drives: bool = True) -> None:
        for _ in range(steps):
            if drives:
                with suppress(BotyardError):  # a door may refuse, with the reason
                    self.act()
            self.sim.step()

    # -- sources

    def python(self) -> Source:
        def act() -> None:
            self.ann.command.enable()
            self.ann.command(v=SPEED)

        return act

    def fleet(self) -> Source:
        def act() -> None:
            self.ann.command.enable()
            self.sim.fleet.command(v=SPEED)

        return act

    def controller(self) -> Source:
        def drive(robot: Any) -> None:
            robot.command.enable()
            robot.command(v=SPEED)

        self.ann.set_controller(drive)
        return lambda: None

    def pioneer(self) -> Source:
        modem = NullModem(self.sim)
        line = modem.connect("ann")
        for data in (command(0), command(1), command(2), command(1)):
            line.send(data)

        def act() -> None:
            for data in (command(4, 1), command(11, int(1000 * SPEED))):
                line.send(data)
            modem.wait(0.0)

        return act

    def page(self) -> Source:
        desk = PageDesk(self.parts.hub, self.parts.yard, self.parts.maps, ViewSource(self.parts.hub))
        viewer = Viewer(desk, Tokens("t"), 0.0)
        viewer.read_only = False

        def act() -> None:
            for request in (msg.Enable(names=["ann"], on=True), msg.Drive(name="ann", v=SPEED)):
                desk.perform(viewer, request, lambda result, error: None)

        return act

    def _graph(self, kinds: Types) -> RosGraph:
        graph = RosGraph(self.parts.hub, self.parts.control, self.parts.maps.cells, kinds)
        self.closing.append(graph.close)
        return graph

    def _ros(self, wire: str) -> Source:
        kinds = types()
        graph, transport = self._graph(kinds), Recorder(wire)
        graph.add(transport)
        code = kinds.encode_cdr if wire == "cdr" else kinds.encode_ros1
        decode = kinds.decode_cdr if wire == "cdr" else kinds.decode_ros1

        def send(topic: str, kind: str, **fields: Any) -> None:
            data = code(kinds.filled(kind, fields), kind)
            (taken,) = [p.topic for n, p in transport.papers if n == topic and p.type_name == kind]
            taken.take(decode(data, kind))  # type: ignore[union-attr]

        def act() -> None:
            send("/ann/enable_motors_cmd", "std_msgs/Bool", data=True)
            twist = kinds.filled("geometry_msgs/Twist", {"linear": kinds.filled("geometry_msgs/Vector3", {"x": SPEED})})
            send("/ann/cmd_vel", "geometry_msgs/Twist", linear=twist.linear)

        return act

    def ros1(self) -> Source:
        return self._ros("ros1")

    def ros2(self) -> Source:
        return self._ros("cdr")

    def rosbridge(self) -> Source:
        graph = self._graph(types())
        bridge = Rosbridge(types(), graph.stamp)
        graph.add(bridge)
        session = RosbridgeSession(bridge, lambda: self.sim.time, warn=lambda text: None)

        def send(**fields: Any) -> None:
            session.receive_data(json.dumps(fields).encode(), 0.0)
            while session.data_to_send():
                pass

        def act() -> None:
            send(op="call_service", service="/ann/enable_motors", id="1")
            send(op="publish", topic="/ann/cmd_vel", msg={"linear": {"x": SPEED}, "angular": {}})

        return act

    def foxglove(self) -> Source:
        graph = self._graph(types())
        server = Foxglove(graph, self.parts.hub)
        graph.add(server)
        self.closing.append(server.close)
        caller = Caller("foxglove", Level.CHANGE, "Foxglove")
        session = server.session(Door(self.parts.control, caller, {}, warn=lambda text: None))
        channels = [
            {"id": 1, "topic": "/ann/enable_motors_cmd", "encoding": "json", "schemaName": "std_msgs/msg/Bool"},
            {"id": 2, "topic": "/ann/cmd_vel", "encoding": "json", "schemaName": "geometry_msgs/msg/Twist"},
        ]
        session.receive_data(json.dumps({"op": "advertise", "channels": channels}).encode(), 0.0)

        def act() -> None:
            for channel, message in ((1, {"data": True}), (2, {"linear": {"x": SPEED}, "angular": {}})):
                session.receive_data(b"\x01" + channel.to_bytes(4, "little") + json.dumps(message).encode(), 0.0)
            while session.data_to_send():
                pass

        return act

    def ambf(self) -> Source:
        kinds = Types("jazzy", definitions("2.0"))
        ambf = Ambf(self.parts.hub, self.parts.control, self.parts.lockstep, kinds, "2.0")
        ambf._sync()
        self.closing.append(ambf.close)
        robot = next(thing for key, thing in ambf._objects.items() if key == ("body", "ann"))
        linear = kinds.filled("geometry_msgs/Vector3", {"x": SPEED})
        twist = kinds.filled("geometry_msgs/Twist", {"linear": linear})
        message = kinds.filled("ambf_msgs/RigidBodyCmd", {"cartesian_cmd_type": VELOCITY, "twist": twist})

        def act() -> None:
            self.ann.command.enable()  # AMBF has no message for it
            robot._command(message)

        return act


SOURCES = ("python", "fleet", "controller", "pioneer", "page", "ros1", "ros2", "rosbridge", "foxglove", "ambf")


def by_each_source(test: Callable[[World], None]) -> Callable[..., None]:
    """Try a rule with each source, in an event loop: some interfaces start tasks of their own."""

    @pytest.mark.parametrize("source", SOURCES)
    def run(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

        async def main() -> None:
            world = World(source)
            try:
                test(world)
            finally:
                for close in world.closing:
                    close()
                if world._parts is not None:
                    world.parts.hub.background.close()
                    world.parts.close()

        asyncio.run(main())

    run.__doc__ = test.__doc__
    return run


def stands(world: World, steps: int = 20) -> None:
    """The robot comes to rest within a second, and stays there while its source drives it."""
    world.run(10)
    there = world.ann.truth
    world.run(steps)
    assert world.ann.truth == there and not world.ann.motors_on
    assert (world.ann.velocity.vx, world.ann.velocity.w) == (0.0, 0.0)


def moves(world: World) -> None:
    x = world.ann.truth.x
    world.run(20)
    assert world.ann.truth.x - x > 0.3


@by_each_source
def test_a_pressed_emergency_stop_keeps_the_motors_off(world: World) -> None:
    moves(world)
    world.ann.press_estop()
    world.run(1)
    assert not world.ann.motors_on, "within a step"
    stands(world)
    assert world.ann.motors_inhibited == "the emergency stop button is pressed"


@by_each_source
def test_after_its_release_the_motors_stay_off_until_they_are_enabled(world: World) -> None:
    moves(world)
    world.ann.press_estop()
    world.run(5, drives=False)
    world.ann.press_estop(False)
    if world.ann.name in world.sim.programs:
        world.ann.set_controller(lambda robot: robot.command(v=SPEED))  # one that does not enable
    world.run(20, drives=False)
    assert not world.ann.motors_on and world.ann.velocity.vx == 0.0 and world.ann.motors_inhibited == ""
    world.ann.command.enable()
    moves(world)


@by_each_source
def test_an_empty_battery_keeps_the_motors_off(world: World) -> None:
    moves(world)
    world.ann.electrics.battery.charge = 19.9
    stands(world)
    assert world.ann.motors_inhibited == "the battery is empty"


@by_each_source
def test_the_limits_of_the_model_hold(world: World) -> None:
    limits = MODEL.limits
    before = world.ann.velocity.vx
    for _ in range(30):
        world.run(1)
        now = world.ann.velocity.vx
        assert abs(now - before) <= max(limits.accel.x, limits.decel.x) * 0.1 + 1e-9
        assert abs(now) <= MODEL.limits.max_speed.x + 1e-9
        before = now


@by_each_source
def test_a_robot_in_a_hand_stands(world: World) -> None:
    moves(world)
    world.sim.hold("ann", True)
    world.run(2)
    there = world.ann.truth
    world.run(10)
    assert world.ann.truth == there
    world.sim.hold("ann", False)
    moves(world)


def test_robots_of_a_traffic_run_stand_too() -> None:
    """The driver of a path commands its robot in each step; released and enabled, the robot finishes its path."""
    run = RobotTraffic(generate("corridor", 2), find_supervisor("bankers"))
    for _ in range(20):
        run.step()
    robot = run.drivers[0].robot
    robot.press_estop()
    for _ in range(10):
        run.step()
    there = robot.truth
    for _ in range(50):
        run.step()
    assert robot.truth == there and not robot.motors_on
    robot.press_estop(False)
    robot.command.enable()
    assert run.run(900.0).ending is Ending.COMPLETED


def test_a_run_is_done_again_with_its_emergency_stop() -> None:
    """The journal has the button, not what followed from it: the engine's rule gives the same digests."""
    with watching() as runs:
        world = World("python")
        world.run(10)
        world.ann.press_estop()
        world.run(10)
        world.ann.press_estop(False)
        world.run(10)
    for run in runs:
        run.check()


def test_a_saved_world_keeps_the_rule() -> None:
    world = World("python")
    world.run(10)
    world.ann.press_estop()
    world.run(5)
    other = world.sim.clone()
    for _ in range(20):
        other.robots["ann"].command.enable()
        other.robots["ann"].command(v=SPEED)
        other.step()
    assert not other.robots["ann"].motors_on and other.robots["ann"].velocity.vx == 0.0
