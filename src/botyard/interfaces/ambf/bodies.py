"""AMBF bodies: robots, boxes, the map's walls, and bodies carried by joints.

Source: ambf-messages.md §5, §6, §10.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from botyard.devices.joints import Joint, JointCommand
from botyard.errors import BotyardError
from botyard.geometry import Pose, compose
from botyard.interfaces.ambf.joints import FreeJoint, JointView
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.interfaces.ambf.objects import (
    AmbfObject,
    finite,
    floats,
)
from botyard.model.dynamics import DynamicsSpec
from botyard.model.objects import Offer
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ambf.messages import FORCE, POSITION
from botyard.protocols.ambf.template import Template
from botyard.protocols.ros_messages.messages import Stamp

ZERO: Final = (0.0, 0.0, 0.0)


class Body(AmbfObject):
    """Base class of AMBF objects that stand for bodies.

    The class encodes the state by filling numbers into a template. Subclasses define
    pose, velocity and commands.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    name : str
        Name of the object.
    offer : Offer
        Namespace, rates and lists of its state.
    joints : sequence of JointView
        Joints below the body, in the order of the lists in its state and commands.
    """

    def __init__(
        self,
        ambf: ObjectContext,
        name: str,
        offer: Offer,
        joints: Sequence[JointView] = (),
    ) -> None:
        super().__init__(ambf, name, "RigidBody", offer, quick=True)
        self.joints = tuple(joints)
        """All joints below the body in the tree, in the order of the state's lists."""
        old = self.is_first_generation = ambf.generation == "master"
        self.children = bool(offer.children)
        self.joint_names = offer.joint_names is not False
        self.joint_positions = (
            not old if offer.joint_positions is None else offer.joint_positions
        )
        self._templates: dict[Hashable, Template] = {}

    # -- overridden by kinds of bodies

    def pose(self) -> Pose:
        """Return the pose of the body in the world, m, m, rad."""
        raise NotImplementedError

    def velocity(self) -> tuple[float, float, float]:
        """Return the velocity (vx, vy, w) in the axes of the body, m/s and rad/s."""
        return ZERO

    def wrench(self) -> tuple[float, float, float]:
        """Return the net force (x, y), N, and torque, N·m, on the body, in world axes."""
        return ZERO

    @property
    def mass(self) -> DynamicsSpec | None:
        """Mass properties of the body; None for a kinematic body."""
        return None

    @property
    def inertia(self) -> float:
        """Moment of inertia of the body about the vertical, kg·m²."""
        return 0.0

    def quantities(
        self,
    ) -> tuple[Sequence[float], Sequence[float], Sequence[float], float, float]:
        """Return pose, velocity, wrench, mass and inertia in one call.

        States are encoded a thousand times a second, and one call is faster than five.

        Returns
        -------
        pose : (x, y, th)
            Pose in the world, m, m, rad.
        velocity : (vx, vy, w)
            Velocity in the axes of the body, m/s, m/s, rad/s.
        wrench : (fx, fy, torque)
            Force in the axes of the world, N, and torque, N·m.
        mass : float
            Mass, kg; 0 without mass.
        inertia : float
            Moment of inertia about the centre of mass, kg·m².
        """
        return (
            self.pose(),
            self.velocity(),
            self.wrench(),
            0.0 if self.mass is None else self.mass.mass,
            self.inertia,
        )

    @property
    def userdata(self) -> tuple[str, Sequence[float]]:
        """Description and values of ``userdata``, a field of the oldest generation only."""
        return "", ()

    # -- state

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state from a template of its message; see `AmbfObject`."""
        shown = (
            [j.read() for j in self.joints]
            if self.joints and self.joint_positions
            else ()
        )
        about, userdata = self.userdata if self.is_first_generation else ("", ())

        # Everything that changes the length or a text of the message is in the key.
        key = (wire, self.children, self.joint_names, len(shown), about)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(
                wire, len(shown), len(userdata), about
            )

        (x, y, th), (vx, vy, w), (fx, fy, torque), mass, inertia = self.quantities()
        half = th / 2.0
        cos, sin = cosine_sine(half)
        head = (
            *self.begin(wire, stamp),
            *self.ambf.moment(stamp),
            mass,
            0.0,
            0.0,
            inertia,
            x,
            y,
            0.0,
            0.0,
            0.0,
            sin,
            cos,
        )
        if self.is_first_generation:
            return template.fill(
                (
                    *head,
                    fx,
                    fy,
                    0.0,
                    0.0,
                    0.0,
                    torque,
                    *userdata,
                    *(j[0] for j in shown),
                )
            )

        # Double-angle formulas give sine and cosine of the whole angle from the half
        # angle.
        c, s = (
            1.0 - 2.0 * sin * sin,
            2.0 * sin * cos,
        )
        numbers = (
            *head,
            c * vx - s * vy,
            s * vx + c * vy,
            0.0,
            0.0,
            0.0,
            w,
            fx,
            fy,
            0.0,
            0.0,
            0.0,
            torque,
        )

        # All positions, then all velocities, then all efforts, as in the message.
        if shown:
            numbers = *numbers, *(j[k] for k in range(3) for j in shown)
        return template.fill(numbers)

    def _template(self, wire: str, shown: int, extra: int, about: str) -> Template:
        """Return a template into which the numbers of the state are filled, in a wire format.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        shown : int
            Number of joints whose positions are published.
        extra : int
            Number of values of the user data.
        about : str
            Description of the user data.
        """
        a = self.ambf
        types = a.types
        old = self.is_first_generation
        encode = types.encode_ros1 if wire == "ros1" else types.encode_cdr
        vector, point = types["geometry_msgs/Vector3"], types["geometry_msgs/Point"]
        kind = f"ambf_msgs/{self.kind}State"

        def make(groups: Sequence[Sequence[Any]]) -> bytes:
            stamp, step, times, numbers, *arrays = groups
            n = list(numbers)
            fields = a.identity(self.name)
            fields |= {
                "header": self.header(stamp),
                "sim_step": step[0],
                "wall_time": times[0],
                "sim_time": times[1],
                "mass": times[2],
            }
            # The order of the message: moments of inertia, position, orientation,
            # twist (not in the oldest generation), wrench.
            fields["pInertia"] = point(*n[:3])
            fields["pose"] = types["geometry_msgs/Pose"](
                point(*n[3:6]), types["geometry_msgs/Quaternion"](*n[6:10])
            )
            rest = n[10:]
            if not old:
                fields["twist"] = types["geometry_msgs/Twist"](
                    vector(*rest[:3]), vector(*rest[3:6])
                )
                rest = rest[6:]

            fields["wrench"] = types["geometry_msgs/Wrench"](
                vector(*rest[:3]), vector(*rest[3:6])
            )
            fields["children_names"] = (
                [j.child for j in self.joints] if self.children else []
            )
            fields["joint_names"] = (
                [j.name for j in self.joints] if self.joint_names else []
            )
            if old:
                fields["userdata_description"] = about
                fields["userdata"], fields["joint_positions"] = map(floats, arrays)
            else:
                names = ("joint_positions", "joint_velocities", "joint_efforts")
                fields |= dict(zip(names, map(floats, arrays), strict=True))

            return encode(types[kind](**fields), kind)

        numbers = "16d" if old else "22d"
        arrays = [f"{extra}f", f"{shown}f"] if old else [f"{shown}f"] * 3
        return Template(make, [self.header_format(wire), "I", "fff", numbers, *arrays])

    # -- commands

    def take(self, message: Any) -> None:
        """Execute a command: body motion and joint commands.

        A joint value that is not finite is logged and ignored; the other joints still
        move.

        Parameters
        ----------
        message : object
            Decoded command of the object's type.
        """
        # A command can request lists of children and joints; all later states contain
        # them.
        self.children |= bool(message.publish_children_names)
        self.joint_names |= bool(message.publish_joint_names)
        self.joint_positions |= bool(message.publish_joint_positions)
        if self.is_first_generation:
            # The oldest generation has flags and masks in place of command types.
            kind = POSITION if message.enable_position_controller else FORCE
            mask = message.position_controller_mask
            kinds = [
                JointCommand.POSITION
                if k < len(mask) and mask[k]
                else JointCommand.EFFORT
                for k in range(len(message.joint_cmds))
            ]
        else:
            kind = int(message.cartesian_cmd_type)
            given = message.joint_cmds_types
            kinds = [
                self._joint_kind(int(given[k]))
                if k < len(given)
                else JointCommand.EFFORT
                for k in range(len(message.joint_cmds))
            ]

        # Move the body before the joints: if its command fails, the joints keep their
        # commands.
        try:
            self.act_on(kind, message)

            for joint, how, value in zip(
                self.joints, kinds, message.joint_cmds, strict=False
            ):
                if finite(float(value)):
                    joint.command(how, float(value))
                else:
                    self.complain(
                        f"command for joint {joint.name} ignored: expected a finite "
                        f"value, found {float(value)}",
                        joint.name,
                    )
        except BotyardError as error:
            self.complain(str(error))

    @staticmethod
    def _joint_kind(value: int) -> JointCommand:
        return JointCommand(value) if value in (0, 1, 2) else JointCommand.EFFORT

    def act_on(self, kind: int, message: Any) -> None:
        """Execute the part of a command that moves the body itself.

        Parameters
        ----------
        kind : int
            Value of the field ``cartesian_cmd_type``: `FORCE`, `POSITION`, `VELOCITY`,
            or any other number that a client sends.
        message : object
            Decoded command of the object's type.

        Raises
        ------
        BotyardError
            The body cannot execute the command; the joints then keep their former
            commands.
        """

    def cease(self) -> None:
        """End all commands to the body."""
        for joint in self.joints:
            joint.cease()


class CarriedBody(Body):
    """Child of a joint, whose pose follows from parent and joint; commands have no effect.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    name : str
        Name of the object.
    joint : Joint
        Joint that carries the body.
    offer : Offer
        Namespace and rates of its state.
    """

    def __init__(
        self, ambf: ObjectContext, name: str, joint: Joint, offer: Offer
    ) -> None:
        self._joint = joint
        super().__init__(
            ambf, name, offer, [FreeJoint(j) for j in joints_below(ambf, name)]
        )

    def pose(self) -> Pose:
        """Return the pose in the world that follows from the parent and the joint."""
        return compose(self.ambf.pose_of(self._joint.spec.parent), self._joint.pose)

    def quantities(
        self,
    ) -> tuple[Sequence[float], Sequence[float], Sequence[float], float, float]:
        """Return all quantities of the state; see `Body`."""
        return self.pose(), ZERO, ZERO, self._joint.spec.mass, self._joint.spec.moment


def joints_below(ambf: ObjectContext, name: str) -> list[Joint]:
    """Return all joints below a body in the tree, each before the joints of its child.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    name : str
        Name of the body.

    Returns
    -------
    list of Joint
        Joints, each once even if they form a loop; empty for a body without joints.
    """
    found: list[Joint] = []
    for joint in ambf.sim.core.descriptions.joints.get(name, ()):
        # Joints may form loops, so visit each joint once.
        if joint not in found:
            found.append(joint)
            found += [j for j in joints_below(ambf, joint.spec.child) if j not in found]

    return found


__all__ = ["Body", "CarriedBody", "joints_below"]
