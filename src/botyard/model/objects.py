"""Objects of AMBF description files in addition to bodies.

These are joints, sensors, cameras, lights, vehicles and actuators. Source:
ambf-messages.md §9.

Poses are in the plane, m and rad. Cameras and lights keep three dimensions, which only
clients use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botyard.geometry import Pose
from botyard.model.dynamics import Gains
from botyard.model.obstacles import BoxObject

NAMESPACE: Final = "/ambf/env/"
# A state is sent more often as soon as a client controls the object.
LOW, HIGH = 50.0, 1000.0
"""Default rates of a published state, Hz: while idle, and from the first command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Settings for the publication of an object's state to AMBF clients.

    Attributes
    ----------
    namespace : str
        Prefix of the object's name in topics.
    passive : bool
        Whether the object is not published at all.
    low, high : float
        Rates of the object's state, Hz: while idle, and from the first command.
    children, joint_names, joint_positions : bool or None
        Whether these lists are published without a request; None: the default of the
        generation (version) of AMBF messages in use.
    """

    namespace: str = NAMESPACE
    passive: bool = False
    low: float = LOW
    high: float = HIGH
    children: bool | None = None
    joint_names: bool | None = None
    joint_positions: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSpec:
    """Joint between two bodies; the parent carries the child.

    Attributes
    ----------
    name, parent, child : str
        Name of the joint, and names of the two bodies.
    slides : bool
        Whether the joint is prismatic (m); otherwise it is revolute (rad).
    planar : bool
        Whether the child moves in the plane: a revolute joint has a vertical axis, and
        a prismatic joint a horizontal one.
    at, child_at : Pose
        Pose of the joint in the frames of parent and child. A prismatic joint moves
        along x of `at`.
    low, high : float
        Limits, rad or m.
    unlimited : bool
        Whether the joint has no limits. It then takes the shorter rotation to a
        position.
    inertia : float
        Inertia that an effort accelerates, kg·m² or kg.
    damping : float
        Viscous damping, N·m·s or N·s/m.
    gains : Gains or None
        Gains of the position controller, whose output is an effort; None: its output is
        a velocity.
    mass, moment : float
        Mass of the child, kg, and its moment of inertia about the vertical, kg·m²; 0:
        it is kinematic. Only messages to clients use them.
    """

    name: str
    parent: str
    child: str
    slides: bool = False
    planar: bool = False
    at: Pose = Pose()
    child_at: Pose = Pose()
    low: float = 0.0
    high: float = 0.0
    unlimited: bool = True
    inertia: float = 0.01
    damping: float = 0.0
    gains: Gains | None = None
    mass: float = 0.0
    moment: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySensorSpec:
    """Description of a proximity sensor with several rays.

    Attributes
    ----------
    name, parent : str
        Name of the sensor, and name of the body that carries it; empty: the world.
    rays : tuple of Pose
        Origin and direction of each ray, in the parent's frame.
    range : float
        Length of the rays, m.
    offer : Offer
        Settings for publishing it.
    """

    name: str
    parent: str = ""
    rays: tuple[Pose, ...] = ()
    range: float = 1.0
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSpec:
    """Description of a camera or a light; botyard publishes only its pose.

    Attributes
    ----------
    name, parent : str
        Name of the object, and name of the body that carries it; empty: the world.
    is_light : bool
        Whether it is a light; otherwise it is a camera.
    position : (float, float, float)
        Position x, y, z, m.
    orientation : (float, float, float, float)
        Orientation as a quaternion x, y, z, w.
    parameters : mapping of str to value
        Values for the ROS parameter server, by parameter name.
    offer : Offer
        Settings for publishing it.
    """

    name: str
    parent: str = ""
    is_light: bool = False
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    orientation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSpec:
    """Description of a wheel of a vehicle.

    Attributes
    ----------
    x, y : float
        Position in the chassis's frame, m.
    radius : float
        Radius, m.
    steers, drives : bool
        Whether the wheel steers, and whether it drives.
    """

    x: float
    y: float
    radius: float = 0.1
    steers: bool = False
    drives: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VehicleSpec:
    """Description of a vehicle: wheels under a body.

    Attributes
    ----------
    name, chassis : str
        Name of the vehicle, and name of its body.
    wheels : tuple of WheelSpec
        Wheels, in the order of commands.
    max_power, max_brake : float
        Maximum force of a wheel's motor and of its brake, N.
    steering : (float, float)
        Limits of the steering angle, rad.
    offer : Offer
        Settings for publishing it.
    """

    name: str
    chassis: str
    wheels: tuple[WheelSpec, ...]
    max_power: float = 100.0
    max_brake: float = 100.0
    steering: tuple[float, float] = (-0.6, 0.6)
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorSpec:
    """Description of a constraint actuator, which grips a body.

    Attributes
    ----------
    name, parent : str
        Name of the actuator, and name of the body that carries it.
    at : Pose
        Pose in the frame of that body.
    offer : Offer
        Settings for publishing it.
    """

    name: str
    parent: str
    at: Pose = Pose()
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Contents of an AMBF description file.

    Attributes
    ----------
    bodies : tuple of BoxObject
        Bodies that stand freely.
    carried : tuple of str
        Names of bodies that the parent of a joint carries.
    offers : mapping of str to Offer
        Settings for publishing bodies, by name.
    joints, sensors, views, vehicles, actuators : tuples of descriptions
        Joints, ray sensors, cameras and lights, vehicles, and actuators of the file.
    """

    bodies: tuple[BoxObject, ...] = ()
    carried: tuple[str, ...] = ()
    offers: Mapping[str, Offer] = field(default_factory=dict)
    joints: tuple[JointSpec, ...] = ()
    sensors: tuple[RaySensorSpec, ...] = ()
    views: tuple[ViewSpec, ...] = ()
    vehicles: tuple[VehicleSpec, ...] = ()
    actuators: tuple[ActuatorSpec, ...] = ()

    def __or__(self, other: Described) -> Described:
        """Return the contents of two description files together."""
        return Described(
            bodies=(*self.bodies, *other.bodies),
            carried=(*self.carried, *other.carried),
            # The settings of the later file replace earlier ones of the same name.
            offers={**self.offers, **other.offers},
            joints=(*self.joints, *other.joints),
            sensors=(*self.sensors, *other.sensors),
            views=(*self.views, *other.views),
            vehicles=(*self.vehicles, *other.vehicles),
            actuators=(*self.actuators, *other.actuators),
        )


__all__ = [
    "HIGH",
    "LOW",
    "NAMESPACE",
    "ActuatorSpec",
    "Described",
    "JointSpec",
    "Offer",
    "RaySensorSpec",
    "VehicleSpec",
    "ViewSpec",
    "WheelSpec",
]
