"""Rules that hold for a robot under every source of commands
(docs/reference/invariants.md), each tried with each source.

The rules are in the engine. A source enables the motors and drives before every step,
as its users would.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from botyard.app.compose import Parts, compose
from botyard.control import Level
from botyard.devices.devicetable import DeviceTable
from botyard.engine import commands as cmd
from botyard.engine import demand
from botyard.engine.layout import Control
from botyard.engine.tables import Column, Row
from botyard.errors import BotyardError
from botyard.formats.models import find_robot
from botyard.interfaces.ambf.ambf import Ambf
from botyard.interfaces.interface import Caller, Door
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.interfaces.ros.foxglove import Foxglove
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.rosbridge import Rosbridge
from botyard.model.dynamics import DynamicsSpec
from botyard.model.robot import BatterySpec, CommandSpec
from botyard.model.scene import Scene
from botyard.protocols.ambf.messages import VELOCITY, definitions
from botyard.protocols.pioneer.packet import command
from botyard.protocols.ros_messages.types import Types, types
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.frames import Bit
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.servers.pioneer.nullmodem import Line, NullModem
from botyard.sim.simulation import Simulation
from botyard.traffic.generate import generate
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.outcome import Ending
from botyard.traffic.supervisors.registry import find_supervisor
from tests.journaled import watching
from tests.protocols.lines import Client
from tests.servers.test_rosgraph import Recorder

MODEL = replace(
    find_robot("p3dx"),
    battery=BatterySpec(
        capacity_wh=100.0,
        idle_power=10.0,
        motor_power=50.0,
        charge_power=100.0,
        shutdown_charge=20.0,
    ),
)
SPEED = 0.3
WALL = 40.0
"""x of a wall, m."""


Source = Callable[[], None]
"""A client: it enables the motors, and drives forward, once before each step."""


class World:
    """Ann before a far wall, and one source of commands.

    Attributes
    ----------
    speed : float
        Demanded speed, m/s.
    enables : bool
        Whether it enables the motors before it drives.
    """

    def __init__(self, source: str) -> None:
        self.sim = Simulation(
            Scene(segments=np.array([[WALL, -9.0, WALL, 9.0]])), seed=1, step=0.1
        )
        self.ann = self.sim.add_robot(MODEL, "ann", pose=(0.0, 0.0, 0.0))
        self.source, self.speed, self.enables = source, SPEED, True
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
                # An interface may refuse the command and give the reason.
                with suppress(BotyardError):
                    self.act()

            self.sim.step()

    # -- sources

    def python(self) -> Source:
        def act() -> None:
            if self.enables:
                self.ann.command.enable()
            self.ann.command(v=self.speed)

        return act

    def fleet(self) -> Source:
        def act() -> None:
            if self.enables:
                self.ann.command.enable()
            self.sim.fleet.command(v=self.speed)

        return act

    def controller(self) -> Source:
        def drive(robot: Any) -> None:
            if self.enables:
                robot.command.enable()
            robot.command(v=self.speed)

        self.ann.set_controller(drive)
        return lambda: None

    def pioneer(self) -> Source:
        modem = NullModem(self.sim)
        line = modem.connect("ann")
        for data in (command(0), command(1), command(2), command(1)):
            line.send(data)

        def act() -> None:
            mm = (
                min(int(1000 * self.speed), 32767)
                if math.isfinite(self.speed)
                else 32767
            )
            for data in (command(4, 1), command(11, mm))[0 if self.enables else 1 :]:
                line.send(data)
            modem.wait(0.0)

        return act

    def page(self) -> Source:
        desk = PageRequests(
            self.parts.hub,
            self.parts.robot_servers,
            self.parts.maps,
            ViewSource(self.parts.hub),
        )
        viewer = Viewer(desk, Tokens("t"), 0.0)
        viewer.read_only = False

        def act() -> None:
            enable, drive = (
                msg.Enable(names=["ann"], on=True),
                msg.Drive(name="ann", v=self.speed),
            )
            for request in (enable, drive) if self.enables else (drive,):
                desk.perform(viewer, request, lambda result, error: None)

        return act

    def _graph(self, kinds: Types) -> RosGraph:
        graph = RosGraph(
            self.parts.hub, self.parts.control, self.parts.maps.cells, kinds
        )
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
            (taken,) = [
                p.topic
                for n, p in transport.papers
                if n == topic and p.type_name == kind
            ]
            taken.take(decode(data, kind))  # type: ignore[union-attr]

        def act() -> None:
            if self.enables:
                send("/ann/enable_motors_cmd", "std_msgs/Bool", data=True)
            linear = kinds.filled("geometry_msgs/Vector3", {"x": self.speed})
            send("/ann/cmd_vel", "geometry_msgs/Twist", linear=linear)

        return act

    def ros1(self) -> Source:
        return self._ros("ros1")

    def ros2(self) -> Source:
        return self._ros("cdr")

    def rosbridge(self) -> Source:
        graph = self._graph(types())
        bridge = Rosbridge(types(), graph.stamp)
        graph.add(bridge)
        session = RosbridgeSession(
            bridge, lambda: self.sim.time, warn=lambda text: None
        )

        def send(**fields: Any) -> None:
            session.receive_data(json.dumps(fields).encode(), 0.0)
            while session.data_to_send():
                pass

        def act() -> None:
            if self.enables:
                send(op="call_service", service="/ann/enable_motors", id="1")
            send(
                op="publish",
                topic="/ann/cmd_vel",
                msg={"linear": {"x": self.speed}, "angular": {}},
            )

        return act

    def foxglove(self) -> Source:
        graph = self._graph(types())
        server = Foxglove(graph, self.parts.hub)
        graph.add(server)
        self.closing.append(server.close)
        caller = Caller("foxglove", Level.CHANGE, "Foxglove")
        session = server.session(
            Door(self.parts.control, caller, {}, warn=lambda text: None)
        )
        channels = [
            {
                "id": 1,
                "topic": "/ann/enable_motors_cmd",
                "encoding": "json",
                "schemaName": "std_msgs/msg/Bool",
            },
            {
                "id": 2,
                "topic": "/ann/cmd_vel",
                "encoding": "json",
                "schemaName": "geometry_msgs/msg/Twist",
            },
        ]
        session.receive_data(
            json.dumps({"op": "advertise", "channels": channels}).encode(), 0.0
        )

        def act() -> None:
            messages = (
                (1, {"data": True}),
                (2, {"linear": {"x": self.speed}, "angular": {}}),
            )
            for channel, message in messages if self.enables else messages[1:]:
                session.receive_data(
                    b"\x01"
                    + channel.to_bytes(4, "little")
                    + json.dumps(message).encode(),
                    0.0,
                )

            while session.data_to_send():
                pass

        return act

    def ambf(self) -> Source:
        kinds = Types("jazzy", definitions("2.0"))
        ambf = Ambf(
            self.parts.hub, self.parts.control, self.parts.lockstep, kinds, "2.0"
        )
        ambf._sync()
        self.closing.append(ambf.close)
        robot = next(
            thing for key, thing in ambf._objects.items() if key == ("body", "ann")
        )

        def act() -> None:
            if self.enables:
                # AMBF has no message that enables motors, so use the API.
                self.ann.command.enable()
            linear = kinds.filled("geometry_msgs/Vector3", {"x": self.speed})
            twist = kinds.filled("geometry_msgs/Twist", {"linear": linear})
            robot._command(
                kinds.filled(
                    "ambf_msgs/RigidBodyCmd",
                    {"cartesian_cmd_type": VELOCITY, "twist": twist},
                )
            )

        return act


SOURCES = (
    "python",
    "fleet",
    "controller",
    "pioneer",
    "page",
    "ros1",
    "ros2",
    "rosbridge",
    "foxglove",
    "ambf",
)


def by_each_source(test: Callable[[World], None]) -> Callable[..., None]:
    """Try a rule with each source in an event loop, because some interfaces start
    tasks.
    """

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
    """Check that the robot stops within a second and stays while its source drives it."""
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
    assert world.ann.velocity.vx == 0.0, "it stops as hard as it can"
    stands(world)
    assert world.ann.motors_inhibited == "the emergency stop button is pressed"


@by_each_source
def test_after_its_release_the_motors_stay_off_until_they_are_enabled(
    world: World,
) -> None:
    moves(world)
    world.ann.press_estop()
    world.run(5, drives=False)
    world.ann.press_estop(False)
    if world.ann.name in world.sim.core.programs.by_robot:
        # This controller drives without enabling the motors.
        world.ann.set_controller(lambda robot: robot.command(v=SPEED))

    world.run(20, drives=False)
    assert (
        not world.ann.motors_on
        and world.ann.velocity.vx == 0.0
        and world.ann.motors_inhibited == ""
    )
    world.ann.command.enable()
    moves(world)


@by_each_source
def test_a_button_that_is_pressed_for_less_than_a_step_stops_the_robot(
    world: World,
) -> None:
    moves(world)
    world.enables = False
    if world.ann.name in world.sim.core.programs.by_robot:
        world.ann.set_controller(lambda robot: robot.command(v=SPEED))
    world.ann.press_estop()
    world.ann.press_estop(False)
    stands(world)
    world.ann.command.enable()
    moves(world)


@by_each_source
def test_an_empty_battery_keeps_the_motors_off(world: World) -> None:
    moves(world)
    world.ann.electrics.battery.charge = 19.9
    stands(world)
    assert world.ann.motors_inhibited == "the battery is empty"


@by_each_source
def test_motors_that_are_off_stay_off_until_they_are_enabled(world: World) -> None:
    moves(world)
    world.enables = False
    speed = world.ann.velocity.vx
    world.ann.command.enable(False)
    world.run(1)
    decel = MODEL.limits.decel.x
    assert speed - world.ann.velocity.vx == pytest.approx(0.1 * decel), (
        "it comes to rest by its ramp"
    )
    stands(world)
    assert world.ann.motors_inhibited == ""
    world.enables = True
    moves(world)


@by_each_source
def test_charging_leaves_the_motors_off(world: World) -> None:
    moves(world)
    world.enables = False
    world.ann.electrics.battery.charge = 10.0
    stands(world)
    world.ann.electrics.battery.charge = 90.0
    stands(world)


@by_each_source
def test_the_limits_of_the_model_hold(world: World) -> None:
    limits = MODEL.limits
    world.ann._core.accept_command("ann", cmd.SetLimits(v=50.0, w=50.0))
    world.speed = 30.0
    before = top = world.ann.velocity.vx
    for _ in range(40):
        world.run(1)
        now = world.ann.velocity.vx
        assert abs(now - before) <= max(limits.accel.x, limits.decel.x) * 0.1 + 1e-9
        before, top = now, max(top, now)

    assert 0.9 * limits.max_speed.x < top <= limits.max_speed.x + 1e-9


@by_each_source
def test_a_robot_that_is_blocked_does_not_move(world: World) -> None:
    world.ann.command.set_pose(WALL - 0.5, 0.0)
    world.run(30)
    there = world.ann.truth
    world.run(20)
    assert world.ann.truth == there and world.ann.stalled
    assert WALL - 0.5 < there.x < WALL - 0.1


@by_each_source
def test_numbers_that_are_not_finite_never_enter(world: World) -> None:
    moves(world)
    for speed in (math.nan, math.inf, -math.inf, 1e300):
        world.speed = speed
        world.run(2)
        state = world.sim.snapshot.state
        assert (
            np.isfinite(state.target).all()
            and np.isfinite(state.vel).all()
            and np.isfinite(state.pose).all()
        )
        assert world.ann.velocity.vx <= MODEL.limits.max_speed.x + 1e-9

    world.speed = SPEED
    world.run(20)
    if world.source == "controller":
        # An exception has ended the controller.
        return
    moves(world)


@by_each_source
def test_a_robot_that_is_carried_does_not_drive(world: World) -> None:
    carrier = world.sim.add_robot("p3dx", "bob", pose=(0.0, 2.0, 0.0))
    moves(world)
    # A command to the fleet also drives the carrier, so disable its motors.
    carrier.command.enable(False)
    world.run(20)
    world.sim.attach("bob", "ann")
    held = world.ann.truth
    world.run(20)
    assert tuple(world.ann.truth) == pytest.approx(tuple(held)), (
        "it stays where it is held"
    )
    x = carrier.truth.x
    carrier.command.enable()
    for _ in range(20):
        carrier.command(v=0.2)
        world.run(1)

    assert carrier.truth.x > x + 0.2
    assert world.ann.truth.x - held.x == pytest.approx(carrier.truth.x - x), (
        "it moves with its carrier"
    )


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
    """The path driver commands its robot in each step; released and enabled, the robot
    finishes its path.
    """
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
    """The journal has the button, not its effects:

    the engine's rule gives the same digests.
    """
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


# -- controllers


@pytest.mark.parametrize("name", ["wander", "waypoints"])
def test_a_controller_of_ours_does_not_turn_motors_on(name: str) -> None:
    sim = Simulation.load("office", seed=1)
    options: dict[str, Any] = (
        {"points": [(18.0, 14.0), (10.0, 14.0)]} if name == "waypoints" else {}
    )
    robot = sim.add_robot(MODEL, "ann", pose=(10.0, 14.0, 0.0))
    robot.set_controller(name, **options)

    def way(seconds: float) -> float:
        before = robot.truth
        sim.run(seconds)
        return math.dist(robot.truth[:2], before[:2])

    assert way(3.0) > 0.1
    robot.press_estop()
    sim.run(1.0)
    assert way(5.0) == 0.0
    robot.press_estop(False)
    assert way(5.0) == 0.0 and not robot.motors_on, "released, they stay off"
    robot.command.enable()
    assert way(3.0) > 0.1
    robot.command.enable(False)
    sim.run(2.0)
    assert way(5.0) == 0.0
    robot.set_controller(name, **options)
    assert way(2.0) == 0.0 and not robot.motors_on, "nor does a new controller"
    robot.command.enable()
    robot.electrics.battery.charge = 10.0
    sim.run(2.0)
    assert way(5.0) == 0.0


def opened(sim: Simulation, robot: str) -> tuple[NullModem, Line]:
    modem = NullModem(sim)
    line = modem.connect(robot)
    for data in (command(0), command(1), command(2), command(1)):
        line.send(data)
    return modem, line


def test_a_controller_goes_on_after_a_client_that_disables_the_motors_as_it_leaves() -> (
    None
):
    """ARIA sends ENABLE 0 and CLOSE at the end."""
    sim = Simulation(seed=1)
    robot = sim.add_robot("p3dx", "ann", controller="wander")
    modem, line = opened(sim, "ann")
    line.send(command(4, 1))
    modem.run(1.0)
    for data in (command(4, 0), command(2)):
        line.send(data)
    modem.run(1.0)
    assert robot.clients == () and robot.motors_on and robot.velocity.vx > 0.0


@pytest.mark.parametrize("how", ["off", "pressed"])
def test_what_a_user_switched_off_stays_off_after_a_session(how: str) -> None:
    sim = Simulation(seed=1)
    robot = sim.add_robot("p3dx", "ann", controller="wander")
    modem, line = opened(sim, "ann")
    modem.run(0.5)
    if how == "off":
        robot.command.enable(False)
    else:
        robot.press_estop()
        modem.run(0.5)
        robot.press_estop(False)

    modem.run(0.5)
    for data in (command(4, 0), command(2)):
        line.send(data)
    modem.run(1.0)
    assert robot.clients == () and not robot.motors_on and robot.is_kept_off


def test_after_a_session_the_next_driver_may_enable_the_motors() -> None:
    sim = Simulation(seed=1)
    robot = sim.add_robot("p3dx", "ann")
    modem, line = opened(sim, "ann")
    modem.run(0.5)
    line.send(command(2))
    modem.run(0.5)
    assert not robot.motors_on and not robot.is_kept_off
    robot.set_controller("wander")
    modem.run(1.0)
    assert robot.motors_on and robot.velocity.vx > 0.0


# -- the rule itself


def test_an_emergency_stop_does_not_wait_for_a_late_channel() -> None:
    """The button cuts the power, so the latency of commands does not matter."""
    sim = Simulation(seed=1, step=0.1)
    robot = sim.add_robot(replace(MODEL, commands=CommandSpec(latency=1.0)), "ann")
    robot.command(v=SPEED)
    sim.run(4.0)
    assert robot.velocity.vx == pytest.approx(SPEED)
    robot.press_estop()
    sim.step()
    assert robot.velocity.vx == 0.0 and not robot.motors_on


def test_a_paused_world_shows_the_button_at_once() -> None:
    sim = Simulation(seed=1)
    robot = sim.add_robot(MODEL, "ann")
    assert not sim.core.is_pending
    robot.press_estop()
    assert sim.core.is_pending
    sim.settle()
    assert not robot.motors_on and not sim.core.is_pending


@pytest.mark.parametrize("kind", [Control.POSE, Control.TWIST])
def test_a_robot_with_mass_is_not_driven_either(kind: Control) -> None:
    """AMBF's poses and velocities count as drives; a force is an external push."""
    sim = Simulation(seed=1, step=0.1)
    robot = sim.add_robot(replace(MODEL, dynamics=DynamicsSpec(mass=9.0)), "ann")

    def drive(steps: int) -> float:
        x = robot.truth.x
        for _ in range(steps):
            values = (
                (robot.truth.x + 0.5, 0.0, 0.0)
                if kind is Control.POSE
                else (SPEED, 0.0, 0.0)
            )
            sim.core.accept_command("ann", demand.Demand(kind, values))
            sim.step()

        return robot.truth.x - x

    assert drive(20) > 0.2
    robot.press_estop()
    drive(40)
    assert drive(20) == pytest.approx(0.0, abs=1e-6)
    robot.press_estop(False)
    robot.command.enable()
    sim.step()
    assert drive(20) > 0.2
    robot.command.enable(False)
    drive(60)
    assert drive(20) == pytest.approx(0.0, abs=1e-6)


class Interlocks(DeviceTable):
    """A broken table of another package."""

    name = "interlock"
    columns = {"on": Column(np.int8)}  # noqa: RUF012
    optional = inhibits = True

    def inhibited(self) -> NDArray[np.int64]:
        raise ValueError("raised by the device table")


def test_a_broken_device_does_not_end_the_step() -> None:
    sim = Simulation(seed=1)
    robot = sim.add_robot("p3dx", "ann")
    table = sim.core.engine.optional_table(Interlocks)
    Row(table, sim.core.engine.rows["ann"], "ann")
    robot.command(v=SPEED)
    sim.step(20)
    assert robot.velocity.vx > 0.0 and isinstance(table.failure, ValueError)


# -- interfaces show emergency stop and motors within a step


def test_pioneer_shows_the_button_and_the_motors() -> None:
    client = Client()
    client.send(4, 1)
    assert client.sip(0.2).flags & (1 << 5 | 1) == 1
    client.robot.press_estop()
    assert client.sip(0.1).flags & (1 << 5 | 1) == 1 << 5
    client.robot.press_estop(False)
    assert client.sip(0.1).flags & (1 << 5 | 1) == 0


def test_ros_and_the_page_show_the_button_and_the_motors() -> None:
    async def main() -> None:
        world = World("ros2")
        view, parts = ViewSource(world.parts.hub), world.parts
        graph = RosGraph(parts.hub, parts.control, parts.maps.cells, types())
        transport = Recorder("cdr")
        graph.add(transport)
        motors = transport["/ann/motors_state"]
        motors.is_wanted = True

        def shown() -> tuple[bool, bool]:
            """Return motors and emergency stop."""
            world.sim.step()
            graph.on_snapshot(0.0)
            view.schema()
            bits = int(view._bits()[0])
            told = motors.sent[-1].message.data
            assert bool(bits & Bit.MOTORS) == told
            return told, bool(bits & Bit.ESTOP)

        assert shown() == (True, False)
        world.ann.press_estop()
        assert shown() == (False, True)
        for _ in range(10):
            assert shown() == (False, True), "as long as it is pressed"
        world.ann.press_estop(False)
        assert shown() == (False, False)
        world.ann.command.enable()
        assert shown() == (True, False)
        assert "emergency stop" not in "".join(world.ann.describe())
        world.ann.press_estop()
        world.sim.step(10)
        assert "on: emergency stop" in "".join(world.ann.describe())
        graph.close()
        for close in world.closing:
            close()
        parts.hub.background.close()
        parts.close()

    asyncio.run(main())


def test_ros_shows_the_button_in_a_paused_world() -> None:
    """Changed latched topics are published at once, because no step follows."""

    async def main() -> None:
        world = World("ros2")
        hub = world.parts.hub
        graph = RosGraph(hub, world.parts.control, world.parts.maps.cells, types())
        transport = Recorder("cdr")
        graph.add(transport)
        motors, moves = transport["/ann/motors_state"], transport["/ann/odom"]
        motors.is_wanted = moves.is_wanted = True
        hub.step_once()
        hub.pause()
        sent = len(moves.sent)
        for pressed in (True, False):
            world.ann.press_estop(pressed)
            hub.settle()
        assert [m.message.data for m in motors.sent] == [True, False]
        world.ann.command.enable()
        hub.settle()
        hub.settle()
        assert [m.message.data for m in motors.sent] == [True, False, True]
        assert all(type(m.message.data) is bool for m in motors.sent)
        assert len(moves.sent) == sent, "other topics follow steps"
        graph.close()
        for close in world.closing:
            close()
        hub.background.close()
        world.parts.close()

    asyncio.run(main())


def test_who_waits_for_a_stopped_robot_is_in_no_deadlock() -> None:
    run = RobotTraffic(generate("corridor", 2), find_supervisor("bankers"))
    for driver in run.drivers:
        driver.robot.press_estop()
    assert [run.step() for _ in range(100)] == [None] * 100
