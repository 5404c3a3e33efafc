"""The interface that offers the world and all objects to AMBF clients (`Ambf`).

It works on any number of transports, such as ROS 1 and TCP.

`Ambf` updates the list of objects, and lets a client step the world. Rates and
watchdogs use wall time, as in AMBF. While a client steps the world, watchdogs of
commands use simulated time. Commands take effect at the start of the next step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from botyard.api.revisions import Subject
from botyard.control import Control, Reset, Throttle
from botyard.control.error_barrier import ErrorBarrier
from botyard.control.parts import Portions, RunLoop, Stepper
from botyard.errors import BotyardError
from botyard.interfaces.ambf.bodies import CarriedBody, joints_below
from botyard.interfaces.ambf.channel import NODE, log
from botyard.interfaces.ambf.enginebodies import BoxBody, EngineBody, MapBody, RobotBody
from botyard.interfaces.ambf.fixtures import (
    ActuatorObject,
    GripperObject,
    VehicleObject,
    ViewObject,
    robot_vehicle,
)
from botyard.interfaces.ambf.objectcontext import ObjectContext, stamp_now
from botyard.interfaces.ambf.objects import AMBF, AmbfObject
from botyard.interfaces.ambf.rangesensors import SensorObject
from botyard.interfaces.ambf.robotsensors import laser_object, ray_object, sonar_object
from botyard.interfaces.ros.transport import Carrier, Handle
from botyard.model.dynamics import Gains, PoseController
from botyard.model.objects import Offer, VehicleSpec, ViewSpec
from botyard.model.world import THING
from botyard.protocols.ambf.template import Template
from botyard.protocols.ros_messages.graphoffers import Input
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

IDLE_POLL_S: Final = 0.004
"""Interval of checks whether a state is due, while no object is commanded, s."""
BUSY_POLL_S: Final = 0.001
"""Interval of checks whether a state is due, while an object is commanded, s."""
CAMERA: Final = ViewSpec(
    name="default_camera", position=(0.0, 0.0, 10.0), offer=Offer(namespace="cameras/")
)
LIGHT: Final = ViewSpec(
    name="default_light",
    is_light=True,
    position=(0.0, 0.0, 5.0),
    offer=Offer(namespace="lights/"),
)
WORLD: Final = "/ambf/env/World"
NOT_OFFERED: Final[Mapping[str, str]] = {
    name: "the protocol has only states and commands of objects, steps and resets"
    for name in (
        "Undo",
        "Redo",
        "ReadFile",
        "Branch",
        "CancelMovie",
        "WriteMovie",
        "SaveRecording",
        "StartRecording",
        "StopRecording",
        "AddEach",
        "AddRobot",
        "AddRobots",
        "ClearField",
        "MarkFloor",
        "RemoveZone",
        "RenameRobots",
        "SetZone",
        "EditMap",
        "RunTraffic",
        "EndTraffic",
        "HoldTraffic",
        "StepTraffic",
        "GrantSector",
        "RevokeSector",
        "ClearMap",
        "CloneRobots",
        "CommandDevice",
        "DockRobots",
        "Drive",
        "EnableMotors",
        "Exit",
        "FindPlaces",
        "FreeMaps",
        "GoTo",
        "Hold",
        "HoldTime",
        "LoadMap",
        "LookAtMap",
        "LoadWorld",
        "MoveJoystick",
        "Pause",
        "PlaceAxis",
        "PressEmergencyStop",
        "ReloadMap",
        "Remove",
        "Resume",
        "RotateLog",
        "SendMap",
        "SendRobots",
        "SetCharge",
        "SetAnalogInput",
        "SetBodyInfo",
        "SetBodyState",
        "SetDigitalInputs",
        "SetGhost",
        "SetOdometryErrors",
        "SetPoseEstimate",
        "SetSpeed",
        "Step",
        "StepNow",
        "Stop",
        "SwitchInterface",
        "TakeRobot",
        "UnloadWorld",
        "WritePicture",
    )
}
"""Operations for which AMBF has no topic, with the reason for each."""


class WorldObject(AmbfObject):
    """AMBF's object for the world: it reports time, and lets a client step the world."""

    def __init__(self, ambf: Ambf) -> None:
        self._templates: dict[str, Template] = {}
        super().__init__(ambf, "World", "World", Offer(), quick=True)

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state from a template of its message; see `AmbfObject`."""
        template = self._templates.get(wire)
        if template is None:
            template = self._templates[wire] = self._template(wire)
        sim = self.ambf.sim
        rates = (
            (round(1.0 / sim.dt),)
            if self.ambf.generation != "2.0"
            else (0, round(1.0 / sim.dt))
        )
        numbers = (*self.begin(wire, stamp), *rates, *self.ambf.moment(stamp))
        return template.fill(numbers)

    def _template(self, wire: str) -> Template:
        a = self.ambf
        encode = a.types.encode_ros1 if wire == "ros1" else a.types.encode_cdr
        names = (
            ["dynamic_loop_freq"]
            if a.generation != "2.0"
            else ["graphics_loop_freq", "dynamic_loop_freq"]
        )

        def make(groups: Any) -> bytes:
            stamp, rates, step, times = groups
            fields = {"header": self.header(stamp), "n_devices": 0, "sim_step": step[0]}
            fields |= dict(zip(names, rates, strict=True)) | {
                "wall_time": times[0],
                "sim_time": times[1],
            }
            return encode(
                a.types["ambf_msgs/WorldState"](**fields), "ambf_msgs/WorldState"
            )

        return Template(make, [self.header_format(wire), "Q" * len(names), "I", "ff"])

    def take(self, message: Any) -> None:
        """Execute a World command of a client, which can stop simulated time and make steps."""
        self.ambf.control.do(
            self.ambf.stepper,
            Throttle(
                on=bool(message.enable_step_throttling),
                clock=bool(message.step_clock),
                skips=int(message.n_skip_steps),
            ),
        )


class Ambf(ObjectContext):
    """AMBF interface of a simulation, which offers the world and its objects.

    Parameters
    ----------
    hub : RunLoop
        The run loop.
    control : Control
        The control surface.
    lockstep : Stepper
        Component that makes the steps of the world that clients request.
    types : Types
        Message types, including the types of AMBF's generation.
    generation : str
        One of `botyard.protocols.ambf.messages.GENERATIONS`.
    prefix : str
        Prefix of all namespaces.
    low, high : float or None
        Lowest and highest rate of the states of all objects, Hz. With None, each
        object's own rate applies.
    """

    def __init__(
        self,
        hub: RunLoop,
        control: Control,
        lockstep: Stepper,
        types: Types,
        generation: str,
        *,
        prefix: str = "",
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        self.hub = hub
        super().__init__(
            hub.sim, control, types, generation, prefix=prefix, rates=(low, high)
        )
        self.lockstep = lockstep
        self._transports: list[Carrier] = []
        self._objects: dict[Hashable, AmbfObject] = {}
        self._published = 0.0
        self._syncing = ErrorBarrier(log, "updating AMBF's objects")
        self._known = -1
        self._sources: dict[Hashable, object] = {}
        self._world = WorldObject(self)
        self.stepper = replace(AMBF, key=self._world)
        self._objects["world"] = self._world
        self._resets: dict[Carrier, list[Handle]] = {}
        self.sim.before_step(self._before_step)
        hub.attach(self)
        lockstep.step_listeners.append(self._publish_all)
        self._closed = False
        hub.background.start(self._between_steps(), "AMBF's states between steps")

    def close(self) -> None:
        """Withdraw all topics, and detach from the simulator."""
        self._closed = True
        self.hub.detach(self)
        self.sim.core.programs.take_off(self._before_step)
        self.lockstep.step_listeners.remove(self._publish_all)
        self.control.release_stepper(self._world)
        for transport in tuple(self._transports):
            self.remove(transport)

    @property
    def stepped_time(self) -> float | None:
        """Simulated time while a client steps the world; see `ObjectContext`."""
        return self.sim.time if self.lockstep.is_held else None

    # -- transports and objects

    def sensed_by(self, sensor: str) -> str | None:
        """Return the name of the body that the sensor's first ray with a hit sees; None
        without a hit.

        Parameters
        ----------
        sensor : str
            Name of the sensor object, or its topic; only the last part of a topic is
            compared.
        """
        short = sensor.rpartition("/")[2]
        for thing in self._objects.values():
            if isinstance(thing, SensorObject) and thing.name == short:
                return thing.first_sensed()

        return None

    def add(self, transport: Carrier) -> None:
        """Add a transport, and offer all topics on it.

        Parameters
        ----------
        transport : Carrier
            Transport of topics. Objects that are added later are also offered on it.
        """
        self._sync()
        self._transports.append(transport)
        for thing in self._objects.values():
            thing.channel.offer(transport)

        # Only this generation has topics for resets.
        if self.generation == "2.0" and self.control.allows(AMBF, Reset):
            resets = {"Reset": self._reset, "Reset/Bodies": self._reset_bodies}
            self._resets[transport] = [
                transport.listen(
                    NODE,
                    Input(
                        f"{self._prefix}{WORLD}/Command/{name}",
                        "std_msgs/Empty",
                        act,
                        "return to the start poses",
                    ),
                )
                for name, act in resets.items()
            ]

    def remove(self, transport: Carrier) -> None:
        """Remove a transport, and withdraw the topics from it.

        Without any transport all commands end, because no client could stop the robots.

        Parameters
        ----------
        transport : Carrier
            Transport that was added before.
        """
        self._transports.remove(transport)
        for thing in self._objects.values():
            thing.channel.withdraw(transport)
        for handle in self._resets.pop(transport, ()):
            handle.close()
        # No client could stop the robots any more.
        if not self._transports:
            for thing in self._objects.values():
                thing.cease()

    def _sync(self) -> None:
        """Add and remove objects to match the bodies of the world."""
        sim = self.sim
        revision = sim.core.feed.last(Subject.BODIES, Subject.MAP, Subject.DESCRIBED)
        if revision == self._known:
            return
        self._known = revision
        wanted = self._wanted()

        # A name may now belong to another body, so the body or description behind each
        # object is compared as well.
        for key in [
            k
            for k in self._objects
            if k not in wanted or wanted[k][0] != self._sources.get(k)
        ]:
            thing = self._objects.pop(key)
            for transport in self._transports:
                thing.channel.withdraw(transport)

            # Free the topic names for another object of the same name.
            self._paths.pop(thing.channel.path, None)
            for act in [
                a
                for a in self._step_hooks
                if isinstance(a, tuple) and a[0] == thing.channel.path
            ]:
                del self._step_hooks[act]

        for key, (what, make) in wanted.items():
            if key not in self._objects:
                try:
                    thing = self._objects[key] = make()
                # The parent of this object has been removed.
                except KeyError:
                    continue

                self._sources[key] = what
                for transport in self._transports:
                    thing.channel.offer(transport)

    def _wanted(self) -> dict[Hashable, tuple[object, Callable[[], AmbfObject]]]:
        """Return all objects that must exist, each with its source and a function that makes it.

        Each object follows the objects on which it depends.
        """
        sim, d = self.sim, self.sim.core.descriptions.described
        found: dict[Hashable, tuple[object, Callable[[], AmbfObject]]] = {
            "world": (None, lambda: self._world)
        }
        for name, robot in sim.robots.items():
            if robot.spec.name == THING and not robot.spec.drive:
                continue
            found["body", name] = robot, partial(self._robot, robot)
            found |= self._equipment(robot)

        # A body that is the child of a joint follows its parent, so `CarriedBody`
        # stands for it.
        joints = {
            j.spec.child: j
            for several in sim.core.descriptions.joints.values()
            for j in several
        }
        for name in (*sim.core.box_names, *d.carried):
            offer = self.rated(d.offers.get(name, Offer()))

            # Description files may hide a body from the topics.
            if offer.passive:
                continue
            if name in d.carried:
                if name in joints:
                    found["body", name] = (
                        joints[name],
                        partial(CarriedBody, self, name, joints[name], offer),
                    )
            else:
                found["body", name] = (
                    joints_below(self, name),
                    partial(self._box, name, offer),
                )

        if len(sim.scene.segments) or len(sim.scene.points):
            found["map", self.map_name] = (
                None,
                partial(MapBody, self, self.map_name, self.offer()),
            )

        for spec in d.sensors:
            if (
                spec.name in sim.core.descriptions.rays
                and spec.parent in sim.core.engine.rows
            ):
                found["rays", spec.name] = (
                    sim.core.descriptions.rays[spec.name],
                    partial(ray_object, self, spec),
                )

        for vehicle in d.vehicles:
            if ("body", vehicle.chassis) in found and self.generation != "master":
                chassis, _ = found["body", vehicle.chassis]
                found["vehicle", vehicle.name] = (
                    chassis,
                    partial(self._described_vehicle, vehicle),
                )

        for actuator in d.actuators:
            if actuator.parent in sim.core.engine.rows and self.generation != "master":
                found["actuator", actuator.name] = (
                    None,
                    partial(ActuatorObject, self, actuator),
                )

        # A world without a camera or light gets a default camera or light, as in AMBF.
        views = d.views
        for usual in (CAMERA, LIGHT):
            if not any(v.is_light == usual.is_light for v in views):
                views += (usual,)

        for view in views:
            found["view", view.is_light, view.name] = (
                None,
                partial(ViewObject, self, view),
            )

        return found

    def _robot(self, robot: Robot) -> RobotBody:
        self._use_default_gains(robot.name)
        return RobotBody(self, robot, self.offer())

    def _box(self, name: str, offer: Offer) -> BoxBody:
        self._use_default_gains(name)
        return BoxBody(self, name, offer)

    def _use_default_gains(self, name: str) -> None:
        """In the oldest generation, derive missing controller gains from the mass.

        See ambf-messages.md §6.
        """
        spec = self.sim.masses.dynamics(name)
        if (
            self.generation != "master"
            or spec is None
            or spec.controller != PoseController()
        ):
            return

        dynamics = self.sim.core.engine.dynamics
        inertia = (
            spec.mass
            if dynamics is None
            else dynamics.inertia(self.sim.core.engine.rows[name])
        )

        # AMBF's proportional gains are 20 (linear) and 10 (angular) times the mass m. A
        # derivative gain of 2 √(gain · m) damps critically.
        linear, angular = 20.0 * spec.mass, 10.0 * spec.mass
        damped = PoseController(
            linear=Gains(linear, 2.0 * math.sqrt(linear * spec.mass)),
            angular=Gains(angular, 2.0 * math.sqrt(angular * inertia)),
            force=True,
        )
        self.sim.masses.set_dynamics(name, replace(spec, controller=damped))

    def _equipment(
        self, robot: Robot
    ) -> dict[Hashable, tuple[object, Callable[[], AmbfObject]]]:
        """Return a robot's sensor, vehicle and gripper objects, in the form of `_wanted`."""
        found: dict[Hashable, tuple[object, Callable[[], AmbfObject]]] = {}
        name = robot.name
        for k in range(len(robot.lasers)):
            label = f"{name}_laser" if k == 0 else f"{name}_laser{k + 1}"
            found["laser", name, k] = (
                robot,
                partial(laser_object, self, label, robot, k),
            )

        if robot.sonar is not None:
            found["sonar", name] = robot, partial(sonar_object, self, robot)
        if self.generation != "master":
            if robot.spec.kinematics.has_two_wheels:
                found["vehicle", name] = robot, partial(self._vehicle, robot)
            if robot.gripper is not None:
                found["gripper", name] = robot, partial(self._gripper, robot)

        return found

    def _described_vehicle(self, spec: VehicleSpec) -> VehicleObject:
        body = self._objects["body", spec.chassis]
        assert isinstance(body, EngineBody)
        return VehicleObject(self, spec, body)

    def _vehicle(self, robot: Robot) -> VehicleObject:
        body = self._objects["body", robot.name]
        assert isinstance(body, RobotBody)
        return VehicleObject(self, robot_vehicle(body, self.offer("vehicles/")), body)

    def _gripper(self, robot: Robot) -> GripperObject:
        assert robot.gripper is not None
        return GripperObject(
            self,
            f"{robot.name}_gripper",
            robot.name,
            robot.gripper,
            self.offer("actuators/"),
        )

    # -- reset

    def _reset(self, _message: Any) -> None:
        """Reset all objects and bodies of the world."""
        self.control.do(AMBF, Reset())
        for joints in self.sim.core.descriptions.joints.values():
            for joint in joints:
                joint.reset()

        for thing in self._objects.values():
            if isinstance(thing, ViewObject):
                thing.reset()

        # A command that continues would move the bodies away from their start poses at
        # once.
        self._cease_all()

    def _reset_bodies(self, _message: Any) -> None:
        """Reset the bodies with mass to their start poses."""
        names = (*self.sim.robots, *self.sim.core.box_names)
        self.control.do(
            AMBF,
            Reset(
                names=tuple(n for n in names if self.sim.masses.dynamics(n) is not None)
            ),
        )
        self._cease_all()

    def _cease_all(self) -> None:
        for thing in self._objects.values():
            if thing is not self._world:
                thing.cease()

        self.hub.settle()

    # -- time

    def _before_step(self) -> None:
        for key, act in tuple(self._step_hooks.items()):
            self._syncing.run(self._try, key, act)

    def _try(self, key: Hashable, act: Callable[[], None]) -> None:
        try:
            act()
        except BotyardError as error:
            # The body was removed, or the operation is denied. Remove the hook, because
            # it would fail in each later step.
            log.warning("%s: %s; command dropped", key, error)
            self._step_hooks.pop(key, None)
        except Exception:
            self._step_hooks.pop(key, None)
            raise

    def on_snapshot(self, now: float) -> None:
        """Publish the states of objects that are due after a step."""
        if self._transports and not self.lockstep.is_busy:
            self._publish()

    def _publish_all(self) -> None:
        """Publish all states after requested steps, because the client waits."""
        now, stamp = self.now(), stamp_now()
        for thing in self._objects.values():
            thing.channel.states.run(thing.check, now)
        # Publish the world last: clients treat its state as the end of the step.
        for thing in (
            *(t for t in self._objects.values() if t is not self._world),
            self._world,
        ):
            channel = thing.channel
            if channel.is_read:
                channel.pace.postpone(now)
                channel.states.run(channel.publish, self.types, stamp)

    def _publish(self) -> None:
        self._syncing.run(self._sync)
        now, stamp = self.now(), stamp_now()
        self._published = now
        for thing in tuple(self._objects.values()):
            thing.channel.states.run(thing.tick, now, stamp)

    def _between_steps(self) -> Portions[None]:
        """Publish states that are due between steps, and check the watchdogs."""
        while True:
            busy = any(t.channel.pace.is_commanded for t in self._objects.values())
            pause = BUSY_POLL_S if busy else IDLE_POLL_S
            yield pause
            if self._closed:
                return
            # `on_snapshot` publishes after each step. If steps are frequent, that is
            # enough.
            if self._transports and self.now() - self._published > pause:
                self._publish()


__all__ = ["Ambf"]
