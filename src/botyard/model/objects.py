"""Objects of AMBF description files besides bodies: joints, sensors, cameras, lights,
vehicles, actuators.

Facts: ambf-messages.md §9.

Poses are in the plane, m and rad; cameras and lights keep three dimensions, which only
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
LOW, HIGH = 50.0, 1000.0
"""Default publishing rates of a state, Hz: while idle, and from the first command on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How an object is published.

    Attributes
    ----------
    namespace : str
        Prefix of its name in topics.
    passive : bool
        It is not published at all.
    low, high : float
        Rates of its state, Hz.
    children, joint_names, joint_positions : bool or None
        Whether these are published without a request; None: the default of the
        generation of messages.
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
    """A joint between two bodies; the child is carried by its parent.

    Attributes
    ----------
    name, parent, child : str
        Its name and those of the bodies.
    slides : bool
        It is prismatic (m), else revolute (rad).
    planar : bool
        The axis is such that the child moves in the plane: a vertical one that it turns
        about, a level one that it slides along.
    at, child_at : Pose
        Its pose in the frames of parent and child; a prismatic joint moves along x of
        `at`.
    low, high : float
        Limits, rad or m.
    unlimited : bool
        It has no limits; positions are reached the short way round.
    inertia : float
        Inertia that an effort accelerates, kg·m² or kg.
    damping : float
        Viscous damping, N·m·s or N·s/m.
    gains : Gains or None
        Of the position controller, whose output is an effort; None: its output is a
        velocity.
    mass, moment : float
        Of the child, kg, and kg·m² about the vertical; 0: it is kinematic. Only clients
        are told.
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
    """A proximity sensor of several rays.

    Attributes
    ----------
    name, parent : str
        Its name and that of the body that carries it; empty: the world.
    rays : tuple of Pose
        Origin and direction of each ray, in the parent's frame.
    range : float
        Length of the rays, m.
    """

    name: str
    parent: str = ""
    rays: tuple[Pose, ...] = ()
    range: float = 1.0
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSpec:
    """A camera or a light: botyard publishes its pose only.

    Attributes
    ----------
    name, parent : str
        Its name and that of the body that carries it; empty: the world.
    is_light : bool
        A light.
    position : (float, float, float)
        x, y, z, m.
    orientation : (float, float, float, float)
        Quaternion x, y, z, w.
    parameters : mapping of str to value
        Values for the ROS parameter server, by parameter name.
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
    """A wheel of a vehicle: position in the chassis's frame, m; radius, m; whether it
    steers and whether it drives.
    """

    x: float
    y: float
    radius: float = 0.1
    steers: bool = False
    drives: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VehicleSpec:
    """A vehicle: wheels under a body.

    Attributes
    ----------
    name, chassis : str
        Its name and that of the body.
    wheels : tuple of WheelSpec
        Its wheels, in the order of commands.
    max_power, max_brake : float
        Greatest force of a wheel's engine and of its brake, N.
    steering : (float, float)
        Limits of the steering angle, rad.
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
    """A constraint actuator, which grips a body: its name, the body that carries it,
    and its pose in that body's frame.
    """

    name: str
    parent: str
    at: Pose = Pose()
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Contents of a description file.

    Attributes
    ----------
    bodies : tuple of BoxObject
        Bodies that stand freely.
    carried : tuple of str
        Bodies that a joint's parent carries.
    offers : mapping of str to Offer
        How bodies are published, by name.
    joints, sensors, views, vehicles, actuators
        The other objects.
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
        """The contents of both files together."""
        return Described(
            bodies=(*self.bodies, *other.bodies),
            carried=(*self.carried, *other.carried),
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
