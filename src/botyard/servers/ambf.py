"""The world and its robots as AMBF's objects: a State and a Command topic each, and stepping of the world by a client.

Robots are kinematic bodies (mass 0): a position command puts them somewhere, a velocity command drives them as far as their wheels allow,
forces are ignored (ambf-messages.md §6, §10). Rates and watchdogs count wall time, as in the original.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time as wall
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from botyard.engine import commands as cmd
from botyard.errors import BotyardError
from botyard.geometry import Pose, Twist
from botyard.model.world import THING
from botyard.protocols.ambf.messages import PACKAGE
from botyard.protocols.ambf.stepping import WATCHDOG, Pace, Stepping
from botyard.protocols.ros_messages.messages import Messages, Stamp, yaw_of
from botyard.protocols.ros_messages.robot import Input, Topic
from botyard.protocols.ros_messages.types import Types
from botyard.servers.hub import Hub
from botyard.servers.rosgraph import Handle, Once, Publication, Transport
from botyard.simulation import Robot

NODE: Final = "/ambf_comm_node"
SOURCE: Final = "ambf"
"""In whose name robots are commanded."""
SAME_PLACE, SAME_TURN = 1e-5, 1e-4
"""A position command that changes less is not carried out, m and rad (§6)."""
QUEUE: Final = 10
FORCE, POSITION, VELOCITY = 0, 1, 2
_IDLE: Final = 0.004
_BUSY: Final = 0.0005

log = logging.getLogger("botyard.ambf")


class _Channel:
    """State and Command of one object, on all transports."""

    def __init__(
        self, name: str, state: str, command: str, make: Callable[[], Any], take: Callable[[Any], None]
    ) -> None:
        self.name = name
        self._topic = Topic(
            f"{name}/State", f"{PACKAGE}/{state}", lambda _stamp: make(), f"state of {name}", queue=QUEUE
        )
        self._input = Input(f"{name}/Command", f"{PACKAGE}/{command}", take, f"command for {name}")
        self._ends: dict[Transport, tuple[Publication, Handle]] = {}
        self.pace = Pace()

    def offer(self, transport: Transport) -> None:
        """Be there on a transport."""
        publication = transport.advertise(NODE, self._topic, lambda: None, lambda: None)
        self._ends[transport] = publication, transport.listen(NODE, self._input)

    def withdraw(self, transport: Transport) -> None:
        """Be there no longer."""
        for end in self._ends.pop(transport, ()):
            end.close()

    def publish(self, types: Types, stamp: Stamp) -> None:
        """Send the state to those who read it."""
        readers = [p for p, _ in self._ends.values() if p.is_wanted]
        if readers:
            once = Once(types, self._topic, stamp)
            for reader in readers:
                reader.send(once)


class _Body:
    """A robot as a body."""

    def __init__(self, ambf: Ambf, robot: Robot) -> None:
        self._ambf = ambf
        self._robot = robot
        self._port = robot.port(SOURCE)
        self._drives = False
        name = robot.name.replace(" ", "")
        kinds = ("ObjectState", "ObjectCmd") if ambf.generation == "master" else ("RigidBodyState", "RigidBodyCmd")
        self.channel = _Channel(f"{ambf.namespace}{name}", *kinds, self._state, self._take)
        self._kind = kinds[0]

    def _state(self) -> Any:
        a, m, types = self._ambf, self._ambf.messages, self._ambf.types
        pose, twist = self._robot.truth, self._robot.velocity
        cos, sin = math.cos(pose.th), math.sin(pose.th)
        fields: dict[str, Any] = a.identity(self._robot.name) | {
            "mass": 0.0,
            "pInertia": types["geometry_msgs/Point"](0.0, 0.0, 0.0),
            "pose": m.pose(pose),
            "wrench": types["geometry_msgs/Wrench"](m.vector(0.0, 0.0), m.vector(0.0, 0.0)),
            "children_names": [],
            "joint_names": [],
            "joint_positions": np.zeros(0, np.float32),
        }
        if self._kind == "ObjectState":
            volts = self._port.electrics.volts
            fields |= {"userdata_description": "battery, V", "userdata": np.array([volts], np.float32)}
        else:
            fields |= {
                "twist": m.twist(Twist(twist.vx * cos - twist.vy * sin, twist.vx * sin + twist.vy * cos, twist.w)),
                "joint_velocities": np.zeros(0, np.float32),
                "joint_efforts": np.zeros(0, np.float32),
            }
        return types[f"{PACKAGE}/{self._kind}"](**fields)

    def _take(self, message: Any) -> None:
        self.channel.pace.command(self._ambf.now())
        if self._kind == "ObjectState":
            kind = POSITION if message.enable_position_controller else FORCE
        else:
            kind = int(message.cartesian_cmd_type)
        if kind == VELOCITY:
            self._drive(message.twist)
        else:
            self.stop()
        if kind == POSITION:
            self._put(message.pose)

    def _put(self, pose: Any) -> None:
        wanted = Pose(float(pose.position.x), float(pose.position.y), yaw_of(pose.orientation))
        if not all(map(math.isfinite, wanted)):
            log.warning("%s: a pose with values that are not finite: ignored", self._robot.name)
            return
        there = self._robot.truth
        turned = math.remainder(wanted.th - there.th, 2.0 * math.pi)
        if math.hypot(wanted.x - there.x, wanted.y - there.y) < SAME_PLACE and abs(turned) < SAME_TURN:
            return
        try:
            self._port.set_pose(wanted)
        except BotyardError as error:
            log.warning("%s: %s", self._robot.name, error)
        self._ambf.hub.settle()

    def _drive(self, twist: Any) -> None:
        vx, vy, w = float(twist.linear.x), float(twist.linear.y), float(twist.angular.z)
        if not (math.isfinite(vx) and math.isfinite(vy) and math.isfinite(w)):
            log.warning("%s: a twist with values that are not finite: ignored", self._robot.name)
            return
        th = self._robot.truth.th
        cos, sin = math.cos(th), math.sin(th)
        if not self._drives:
            self._robot.claim(SOURCE)
            self._drives = True
        self._port.submit(cmd.SetVelocity(v=vx * cos + vy * sin, w=w, vy=vy * cos - vx * sin))

    def stop(self) -> None:
        """It is driven no longer."""
        if self._drives:
            self._drives = False
            self._port.submit(cmd.Stop())
            self._robot.release(SOURCE)


class Ambf:
    """Offers the world and its robots to transports.

    Parameters
    ----------
    hub : Hub
        The running simulator.
    types : Types
        Message types, those of the generation among them.
    generation : str
        One of `botyard.protocols.ambf.messages.GENERATIONS`.
    namespace : str
        In front of the objects' names.
    watchdog : float
        The world runs free again after so long without a command, s; 0: never.
    """

    def __init__(
        self, hub: Hub, types: Types, generation: str, *, namespace: str = "/ambf/env/", watchdog: float = WATCHDOG
    ) -> None:
        self.hub = hub
        self.types = types
        self.generation = generation
        self.namespace = namespace
        self.messages = Messages(types)
        self._transports: list[Transport] = []
        self._bodies: dict[str, _Body] = {}
        self._rows: object = None
        self._begin = wall.monotonic()
        self._stepping = Stepping(watchdog)
        self._world = _Channel("/ambf/env/World", "WorldState", "WorldCmd", self._world_state, self._world_command)
        self._resets: dict[Transport, list[Handle]] = {}
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Offer nothing any more."""
        self._task.cancel()
        for transport in tuple(self._transports):
            self.remove(transport)

    def now(self) -> float:
        """Wall time since the start, s."""
        return wall.monotonic() - self._begin

    # -- transports and objects

    def add(self, transport: Transport) -> None:
        """Offer everything by a transport, too."""
        self._sync()
        self._transports.append(transport)
        for channel in self._channels():
            channel.offer(transport)
        if self.generation == "2.0":
            resets = {"Reset": self._reset, "Reset/Bodies": self._reset}
            self._resets[transport] = [
                transport.listen(
                    NODE, Input(f"{self._world.name}/Command/{name}", "std_msgs/Empty", act, "back to the starts")
                )
                for name, act in resets.items()
            ]

    def remove(self, transport: Transport) -> None:
        """Do so no longer."""
        self._transports.remove(transport)
        for channel in self._channels():
            channel.withdraw(transport)
        for handle in self._resets.pop(transport, ()):
            handle.close()
        if not self._transports:
            for body in self._bodies.values():
                body.stop()

    def _channels(self) -> list[_Channel]:
        return [self._world, *(b.channel for b in self._bodies.values())]

    def _sync(self) -> None:
        """Robots have come or gone."""
        sim = self.hub.sim
        if sim.fleet.rows is self._rows:
            return
        self._rows = sim.fleet.rows
        robots = {n: r for n, r in sim.robots.items() if r.spec.drive and r.spec.name != THING}
        for name in [n for n in self._bodies if n not in robots]:
            body = self._bodies.pop(name)
            for transport in self._transports:
                body.channel.withdraw(transport)
        for name, robot in robots.items():
            if name not in self._bodies:
                body = self._bodies[name] = _Body(self, robot)
                for transport in self._transports:
                    body.channel.offer(transport)

    # -- the world

    def identity(self, name: str) -> dict[str, Any]:
        """What the states of all objects begin with."""
        text = self.types["std_msgs/String"]
        fields = {
            "header": self.messages.header(Stamp.of_seconds(wall.time()), ""),
            "sim_step": self.hub.sim.tick & 0xFFFFFFFF,
            "name": text(name),
            "wall_time": self.now(),
            "sim_time": self.hub.sim.time,
        }
        return fields | ({"identifier": text(name)} if self.generation == "2.0" else {})

    def _world_state(self) -> Any:
        fields = self.identity("World")
        for unused in ("name", "identifier"):
            fields.pop(unused, None)
        rate = round(1.0 / self.hub.sim.dt)
        fields |= {"dynamic_loop_freq": rate, "n_devices": 0}
        if self.generation == "2.0":
            fields["graphics_loop_freq"] = 0
        return self.types[f"{PACKAGE}/WorldState"](**fields)

    def _world_command(self, message: Any) -> None:
        self._world.pace.command(self.now())
        was = self._stepping.throttled
        self._stepping.command(
            bool(message.enable_step_throttling), bool(message.step_clock), int(message.n_skip_steps), self.now()
        )
        if self._stepping.throttled and not was:
            self.hub.pause()
        elif was and not self._stepping.throttled:
            self.hub.resume()
        if self._stepping.throttled:
            steps = 0
            while self._one_step():
                steps += 1
            if steps:
                self._say_all()  # whoever steps the world waits for it

    def _one_step(self) -> bool:
        """Make the next step, if it may be made."""
        if not self._stepping.may_step:
            return False
        self.hub.step_now(1)
        self._stepping.stepped()
        return True

    def _reset(self, _message: Any) -> None:
        self.hub.sim.reset(source=SOURCE)
        self.hub.settle()

    def _say_all(self) -> None:
        stamp = Stamp.of_seconds(wall.time())
        for channel in self._channels():
            channel.publish(self.types, stamp)

    async def _run(self) -> None:
        """Publish what is due; look at the watchdogs."""
        while True:
            try:
                self._tick()
            except Exception:  # a fault of ours must not end what all objects depend on
                log.exception("internal error while publishing")
            busy = any(c.pace.is_commanded for c in self._channels())
            await asyncio.sleep(_BUSY if busy else _IDLE)

    def _tick(self) -> None:
        self._sync()
        now = self.now()
        if self._stepping.tick(now):
            log.info("no command for the world for a while: it runs free again")
            self.hub.resume()
        stamp = Stamp.of_seconds(wall.time())
        self._world.pace.expired(now)
        if self._world.pace.is_due(now):
            self._world.publish(self.types, stamp)
        for body in self._bodies.values():
            if body.channel.pace.expired(now):
                body.stop()
            if body.channel.pace.is_due(now):
                body.channel.publish(self.types, stamp)


__all__ = ["NODE", "Ambf"]
