"""AMBF objects without a body: sensors, cameras, lights, vehicles and actuators.

Source: ambf-messages.md §6, §10.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from botyard.engine import commands as cmd
from botyard.errors import BotyardError
from botyard.geometry import Pose, compose
from botyard.interfaces.ambf.enginebodies import EngineBody, RobotBody, planar_wrench
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.interfaces.ambf.objects import (
    DURING_STEPS,
    AmbfObject,
    finite,
    parent_text,
)
from botyard.model.objects import ActuatorSpec, Offer, VehicleSpec, ViewSpec, WheelSpec
from botyard.names import shown
from botyard.numerics.elementary import cosine_sine, tan, total
from botyard.protocols.ambf.messages import FORCE, VELOCITY
from botyard.protocols.ambf.template import Template
from botyard.protocols.ros_messages.messages import Stamp, yaw_of

if TYPE_CHECKING:
    from botyard.devices.gripper import Gripper


class ViewObject(AmbfObject):
    """AMBF object for a camera or a light, with a pose in its parent's frame.

    A command sets the pose if its field ``enable_position_controller`` is true.
    """

    def __init__(self, ambf: ObjectContext, spec: ViewSpec) -> None:
        self.spec = spec
        # Keep the present pose apart from the specification, to which a reset restores
        # it.
        self._position, self._turn = spec.position, spec.orientation
        super().__init__(
            ambf, spec.name, "Light" if spec.is_light else "Camera", spec.offer
        )

    def _pose(self) -> Any:
        types = self.ambf.types
        return types["geometry_msgs/Pose"](
            types["geometry_msgs/Point"](*self._position),
            types["geometry_msgs/Quaternion"](*self._turn),
        )

    def state(self) -> Any:
        """Return the state message; see `AmbfObject.state`."""
        if self.kind != "Object":
            return self.message(
                **parent_text(self.ambf, self.spec.parent), pose=self._pose()
            )

        return self.plain(self._pose())

    def take(self, message: Any) -> None:
        """Execute a command: set the pose of the camera or light."""
        if not message.enable_position_controller:
            return
        p, q = message.pose.position, message.pose.orientation
        values = (
            float(p.x),
            float(p.y),
            float(p.z),
            float(q.x),
            float(q.y),
            float(q.z),
            float(q.w),
        )
        # `total` adds in a fixed order, so that the result has the same bits on every
        # platform.
        norm = math.sqrt(total(v * v for v in values[3:]))

        # NaN would reach the clients in the states.
        if not finite(*values):
            self.complain(
                "pose ignored: expected finite values of position and quaternion, "
                f"found {values}",
                "not finite",
            )
            return

        self._position = values[:3]
        # A quaternion near zero means no rotation: clients that do not set it send
        # zeros.
        self._turn = (
            (values[3] / norm, values[4] / norm, values[5] / norm, values[6] / norm)
            # Clients round their quaternions, so any other length is normalised.
            if norm >= 0.1
            else (0.0, 0.0, 0.0, 1.0)
        )

    def reset(self) -> None:
        """Restore the initial pose of the camera or light."""
        self._position, self._turn = self.spec.position, self.spec.orientation


class VehicleObject(AmbfObject):
    """AMBF object for a vehicle: wheels under a body, each with power, brake and steering.

    A body with mass moves by the bicycle model. The model has one wheel in the centre
    of the steered wheels, and one in the centre of the other wheels. Power and brakes
    are longitudinal forces, N, and wheels do not slip sideways. For a robot without
    mass, power is a fraction (−1 to 1) of the top speed of its wheels.
    """

    def __init__(
        self, ambf: ObjectContext, spec: VehicleSpec, body: EngineBody
    ) -> None:
        self.spec = spec
        self._body = body
        self._power = [0.0] * len(spec.wheels)
        self._brake = [0.0] * len(spec.wheels)
        self._steer = [0.0] * len(spec.wheels)
        self._stop = False
        self._templates: dict[str, Template] = {}
        super().__init__(ambf, spec.name, "Vehicle", spec.offer, quick=True)

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state from a template of its message; see `AmbfObject`."""
        # States are sent in every step, and encoding an object costs much more than a
        # template.
        template = self._templates.get(wire)
        if template is None:
            template = self._templates[wire] = self._template(wire)
        mass, (x, y, th) = self._body.mass, self._body.pose()
        cos, sin = cosine_sine(th / 2.0)
        numbers = (
            0.0 if mass is None else mass.mass,
            0.0,
            0.0,
            self._body.inertia,
            x,
            y,
            0.0,
            0.0,
            0.0,
            sin,
            cos,
        )
        return template.fill(
            (*self.begin(wire, stamp), *self.ambf.moment(stamp), *numbers)
        )

    def _template(self, wire: str) -> Template:
        a, types = self.ambf, self.ambf.types
        encode = types.encode_ros1 if wire == "ros1" else types.encode_cdr
        point = types["geometry_msgs/Point"]

        def make(groups: Any) -> bytes:
            stamp, step, times, n = groups
            fields = {
                **a.identity(self.name),
                "header": self.header(stamp),
                "sim_step": step[0],
                "wall_time": times[0],
                "sim_time": times[1],
            }
            message = types["ambf_msgs/VehicleState"](
                **fields,
                mass=times[2],
                pInertia=point(*n[:3]),
                wheel_count=len(self.spec.wheels),
                pose=types["geometry_msgs/Pose"](
                    point(*n[3:6]), types["geometry_msgs/Quaternion"](*n[6:])
                ),
                wheel_offsets=[
                    a.messages.pose(Pose(w.x, w.y)) for w in self.spec.wheels
                ],
            )
            return encode(message, "ambf_msgs/VehicleState")

        return Template(make, [self.header_format(wire), "I", "fff", "10d"])

    def take(self, message: Any) -> None:
        """Execute a command for the wheels, or for the force and torque on the chassis."""
        low, high = self.spec.steering
        for into, given, least, most in (
            (
                self._power,
                message.wheel_power,
                -self.spec.max_power,
                self.spec.max_power,
            ),
            (self._brake, message.wheel_brake, 0.0, self.spec.max_brake),
            (self._steer, message.wheel_steering, low, high),
        ):
            # A shorter list leaves the other wheels unchanged; surplus values of a
            # longer list are ignored.
            for k, value in enumerate(list(given)[: len(into)]):
                if finite(float(value)):
                    into[k] = min(max(float(value), least), most)

        self._stop = bool(message.brake)
        wrench = planar_wrench(message, "chassis_wrench")
        moves = any(self._power) or any(self._brake) or self._stop or any(self._steer)
        # A wrench takes precedence over the wheels; a robot without mass cannot obey
        # it.
        if any(wrench) and finite(*wrench) and self._body.mass is not None:
            self._body.set_step_hook("vehicle", None)
            self._body.obey(FORCE, wrench)
        # A command of zeros keeps the hook if there is one, so that the brakes continue
        # to act.
        elif moves or self._body.has_step_hook("vehicle"):
            self._body.set_step_hook("vehicle", self._act)

    def cease(self) -> None:
        """Release power and brakes, and straighten the wheels."""
        for values in (self._power, self._brake, self._steer):
            values[:] = [0.0] * len(values)
        self._stop = False
        if self._body.has_step_hook("vehicle"):
            self._body.set_step_hook("vehicle", None)
            self._body.cease()

    def _act(self) -> None:
        """Move the vehicle's body by the bicycle model; this runs before a step."""
        # Without mass, forces have no effect, so the values of ``wheel_power`` set
        # speeds.
        if self._body.mass is None:
            if isinstance(self._body, RobotBody):
                self._drive(self._body)
            return

        dt, mass = self.ambf.sim.dt, self._body.mass.mass
        pose, (v, _, _) = self._body.pose(), self._body.velocity()
        wheels = list(
            zip(self.spec.wheels, self._power, self._brake, self._steer, strict=True)
        )
        # The emergency brake also cuts the power, so that motors do not act against the
        # brakes.
        push = 0.0 if self._stop else total(p for w, p, _, _ in wheels if w.drives)
        v += push / mass * dt
        hold = (
            (
                len(wheels) * self.spec.max_brake
                if self._stop
                else total(b for _, _, b, _ in wheels)
            )
            / mass
            * dt
        )

        # Brakes stop the vehicle, but do not push it backwards.
        v = math.copysign(max(abs(v) - hold, 0.0), v)
        front = [(w, s) for w, _, _, s in wheels if w.steers]
        rear = [w.x for w in self.spec.wheels if not w.steers]
        turn, base = 0.0, 0.0
        if front:
            axle = total(rear) / len(rear) if rear else 0.0
            base = axle
            length = total(w.x for w, _ in front) / len(front) - axle
            # Without a wheelbase there is no turning circle.
            if abs(length) > 1e-6:
                turn = v * tan(total(s for _, s in front) / len(front)) / length

        # The rear axle, which does not slip sideways, is at `base` in front of the
        # body's origin.
        side = -turn * base
        c, s = cosine_sine(pose.th)
        self._body.obey(VELOCITY, (c * v - s * side, s * v + c * side, turn))

    def _drive(self, body: RobotBody) -> None:
        """Drive a differential robot without mass by the powers of its two wheels."""
        limits = body.robot.spec.limits.max_speed
        # There is no motion model for other vehicles without mass.
        if len(self._power) == 2 and not any(w.steers for w in self.spec.wheels):
            # The wheels are symmetric, so the distance of one wheel is half of the
            # track.
            half = abs(self.spec.wheels[0].y)
            left, right = (0.0 if self._stop else p * limits.x for p in self._power)
            body.issue_command(
                cmd.SetVelocity(
                    v=(left + right) / 2.0, w=(right - left) / (2.0 * half), vy=0.0
                )
            )


def robot_vehicle(robot: RobotBody, offer: Offer) -> VehicleSpec:
    """Return the vehicle of a differential robot's two driven wheels.

    The wheels stand on the y axis of the robot, left first, and cannot be steered.

    Parameters
    ----------
    robot : RobotBody
        Robot with a differential drive.
    offer : Offer
        Namespace and rates of the vehicle.

    Returns
    -------
    VehicleSpec
        Vehicle whose power is a fraction from −1 to 1, and whose brakes are from 0 to
        1.
    """
    spec = robot.robot.spec
    half = spec.kinematics.half_track
    wheels = tuple(
        WheelSpec(x=0.0, y=y, radius=spec.wheel_radius) for y in (half, -half)
    )
    return VehicleSpec(
        name=robot.name,
        chassis=robot.body,
        wheels=wheels,
        max_power=1.0,
        max_brake=1.0,
        offer=offer,
    )


class ActuatorObject(AmbfObject):
    """AMBF object for an actuator that attaches a body to its parent (ambf-messages.md §6)."""

    def __init__(self, ambf: ObjectContext, spec: ActuatorSpec) -> None:
        self.spec = spec
        self._held: str | None = None
        super().__init__(ambf, spec.name, "Actuator", spec.offer)

    @property
    def actuated(self) -> bool:
        """Whether the actuator holds a body."""
        return (
            self._held is not None
            and self.ambf.sim.core.engine.carrier_of(self._held) is not None
        )

    def state(self) -> Any:
        """Return the state message; see `AmbfObject.state`."""
        text = self.ambf.types["std_msgs/String"]
        pose = self.ambf.messages.pose(self.spec.at)
        return self.message(
            type=text("CONSTRAINT"),
            **parent_text(self.ambf, self.spec.parent),
            pose=pose,
            actuated=self.actuated,
        )

    def take(self, message: Any) -> None:
        """Execute a command: attach a body, or release it."""
        if not message.actuate:
            self.cease()
            return

        if self.actuated:
            # Clients repeat their requests, so ignore requests while the actuator holds
            # a body.
            return

        name = str(message.body_name.data)
        if getattr(message, "use_sensor_data", False):
            name = self.ambf.sensed_by(str(message.sensor_identifier.data)) or name
        sim = self.ambf.sim
        # AMBF names bodies by their namespace; plain names of botyard are also
        # accepted.
        name = self.ambf.body_called(name) or name
        try:
            if name not in sim.core.engine.rows:
                self.complain(
                    f'cannot attach a body: no body has the name "{shown(name)}"'
                )
                return

            if message.use_offset:
                p = message.body_offset.position
                at = Pose(
                    float(p.x), float(p.y), yaw_of(message.body_offset.orientation)
                )
                there = compose(
                    self.ambf.pose_of(self.spec.parent), compose(self.spec.at, at)
                )
                if not self.place(name, there, DURING_STEPS):
                    return
                # Apply the pose before attaching, which keeps the present offset.
                sim.settle()

            sim.attach(self.spec.parent, name)
            # Store the name only after success: after a failed request the actuator
            # holds no body.
            self._held = name
        except BotyardError as error:
            self.complain(str(error))

    def cease(self) -> None:
        """Release the body that the actuator holds."""
        if self._held is not None:
            self.ambf.sim.detach(self._held)
            self._held = None


class GripperObject(AmbfObject):
    """AMBF object for the gripper of a robot, which acts as an actuator.

    The actuated gripper closes and grips an object between its paddles; the released gripper opens.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    name : str
        Name of the object.
    parent : str
        Name of the robot.
    gripper : Gripper
        The robot's gripper.
    offer : Offer
        Namespace and rates of its state.
    """

    def __init__(
        self,
        ambf: ObjectContext,
        name: str,
        parent: str,
        gripper: Gripper,
        offer: Offer,
    ) -> None:
        self._parent, self._gripper = parent, gripper
        self._on = False
        super().__init__(ambf, name, "Actuator", offer)

    def state(self) -> Any:
        """Return the state message; see `AmbfObject.state`."""
        text = self.ambf.types["std_msgs/String"]
        pose = self.ambf.messages.pose(Pose(self._gripper.front))
        held = self._gripper.holding is not None
        return self.message(
            type=text("CONSTRAINT"),
            **parent_text(self.ambf, self._parent),
            pose=pose,
            actuated=held,
        )

    def take(self, message: Any) -> None:
        """Execute a command: close or open the gripper."""
        # Clients repeat their commands, and a repeated command must not restart the
        # motion.
        if bool(message.actuate) != self._on:
            self._on = bool(message.actuate)
            # The gripper limits the positions of its paddles, so infinity opens them
            # fully.
            goal = 0.0 if self._on else math.inf
            self._gripper.move_to(goal, goal)

    def cease(self) -> None:
        """Do nothing: a robot must not drop its load because of a timeout."""


__all__ = [
    "ActuatorObject",
    "GripperObject",
    "VehicleObject",
    "ViewObject",
    "robot_vehicle",
]
