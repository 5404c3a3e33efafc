"""Things that a description file of AMBF tells of beside bodies: joints, sensors, cameras, lights, vehicles, actuators.

Facts: ambf-messages.md §9.

Poses are in the plane, m and rad; cameras and lights keep all three dimensions, because nothing else looks at them.
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
"""Usual rates at which a state is published: idle, and from the first command on, Hz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How an object is offered.

    Attributes
    ----------
    namespace : str
        In front of its name in topics.
    passive : bool
        It is not offered at all.
    low, high : float
        Rates of its state, Hz.
    children, joint_names, joint_positions : bool or None
        Whether these are published before anybody asks for them; None: as the generation of messages has it.
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
        It moves along an axis (m), else it turns about one (rad).
    planar : bool
        The axis is such that the child moves in the plane: a vertical one that it turns about, a level one that it slides along.
    at, child_at : Pose
        Where it is in the frames of parent and child; a slide goes along x of `at`.
    low, high : float
        Limits, rad or m.
    unlimited : bool
        It may turn on and on; positions are reached the short way round.
    inertia : float
        What an effort accelerates, kg·m² or kg.
    damping : float
        Effort lost by speed, N·m·s or N·s/m.
    gains : Gains or None
        Of the position controller, whose output is an effort; None: its output is a velocity.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySensorSpec:
    """Rays that find the nearest thing.

    Attributes
    ----------
    name, parent : str
        Its name and that of the body that carries it; empty: the world.
    rays : tuple of Pose
        Where rays begin and where they point, in the parent's frame.
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
    """A camera or a light: it has a pose and nothing else.

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
        For the parameter server, by their names there.
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
    """A wheel of a vehicle: where it is in the chassis's frame, m; its radius, m; whether it steers and whether it drives."""

    x: float
    y: float
    radius: float = 0.1
    steers: bool = False
    drives: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VehicleSpec:
    """Wheels under a body.

    Attributes
    ----------
    name, chassis : str
        Its name and that of the body.
    wheels : tuple of WheelSpec
        Its wheels, in the order of commands.
    max_power, max_brake : float
        Greatest force of a wheel's engine and of its brake, N.
    steering : (float, float)
        Least and greatest angle of a wheel that steers, rad.
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
    """Something that holds on to a body: its name, the body that carries it, and where in its frame."""

    name: str
    parent: str
    at: Pose = Pose()
    offer: Offer = Offer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """All that a description file tells of.

    Attributes
    ----------
    bodies : tuple of BoxObject
        Bodies with a place of their own.
    carried : tuple of str
        Bodies that a joint's parent carries.
    offers : mapping of str to Offer
        How bodies are offered.
    joints, sensors, views, vehicles, actuators
        The others.
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
        """What both files tell of."""
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
