"""Nodes of the ROS graph, which hold the topics and services of the world and of each robot."""

from __future__ import annotations

import logging
import time as wall
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from botyard.control import Caller, Control, Level, Operation, Place
from botyard.control.error_barrier import ErrorBarrier
from botyard.control.parts import Portions, RunLoop
from botyard.geometry import Pose
from botyard.interfaces.ros.choices import Choices
from botyard.interfaces.ros.mapcells import MapCells
from botyard.interfaces.ros.transport import (
    EncodedMessage,
    Handle,
    Publication,
    Transport,
)
from botyard.protocols.ros_messages.cmdvel import Driver
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import Profile
from botyard.protocols.ros_messages.parameters import Value
from botyard.protocols.ros_messages.reconfigure import MAX_RAMP, PARAMETERS, Reconfigure
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

SOURCE: Final = "ros"
"""Source name of ROS's commands and sensor subscriptions."""
ROS: Final = Caller(SOURCE, Level.CHANGE, "ROS", ignores_crowd_limit=False)
"""Caller for all ROS programs: DDS and Zenoh do not identify the sender."""

log = logging.getLogger("botyard.ros")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Context that all members (nodes) of the graph share.

    Attributes
    ----------
    hub, control, cells, types, profile, sim_time, timeout, scan_rate
        See `botyard.interfaces.ros.graph.RosGraph`.
    messages : Messages
        Factory of messages.
    data : StepData
        Arrays of the present step, from which frequent messages are encoded fast.
    has_map : bool
        Whether the map is published.
    has_nav2 : bool
        Whether robots offer the actions of Nav2.
    """

    hub: RunLoop
    control: Control
    cells: MapCells
    types: Types
    messages: Messages
    data: StepData
    profile: Profile
    sim_time: bool
    has_map: bool
    timeout: float
    scan_rate: float | None
    has_nav2: bool

    def stamp(self) -> Stamp:
        """Return the time stamp of messages about the present state."""
        return (
            Stamp.of_us(self.hub.sim.snapshot.time_us)
            if self.sim_time
            else Stamp.of_seconds(wall.time())
        )

    def do(self, operation: Operation[Any]) -> None:
        """Execute an operation for ROS.

        Parameters
        ----------
        operation : Operation
            The operation, with ROS as its caller.

        Raises
        ------
        BotyardError
            The operation is denied, or fails.
        """
        self.control.do(ROS, operation)

    def is_allowed(self, offer: Input | Service) -> bool:
        """Return whether an input or service is offered.

        With ``--read-only``, operations that change the world are not offered.

        Parameters
        ----------
        offer : Input or Service
            Input or service; one that needs no operation is always offered.
        """
        return offer.operation is None or self.control.allows(ROS, offer.operation)

    def put(self, name: str, x: float, y: float, yaw: float) -> None:
        """Place a robot or a box at a true pose.

        Parameters
        ----------
        name : str
            Name of the body.
        x, y : float
            Position in the frame of the map, m.
        yaw : float
            Heading, rad.

        Raises
        ------
        BotyardError
            The operation is denied, or no body has this name, or the pose is out of
            range.
        """
        self.do(Place(to=((name, Pose(x, y, yaw)),)))

    def soon(self, act: Callable[[], None]) -> None:
        """Call a function in the next iteration of the event loop, after pending responses."""

        def work() -> Portions[None]:
            # The first portion ends here, so that the caller can send its response
            # first.
            yield None
            act()

        self.hub.background.start(work(), "a goal of an action")

    def empty(self, act: Callable[[], None]) -> Callable[[Any], Any]:
        """Return a handler that calls a function when a std_srvs/Empty service is called.

        Parameters
        ----------
        act : callable
            Function without arguments. Its error is the error of the call.
        """

        def serve(_request: Any) -> Any:
            act()
            return self.types.empty("std_srvs/EmptyResponse")

        return serve

    def map_topic(self, name: str) -> Topic:
        """Return the topic that publishes the map."""
        kind = "nav_msgs/OccupancyGrid"
        return Topic(
            name,
            kind,
            self.map_message,
            "the static map",
            # The version makes the topic latched: a new subscriber gets the last map at
            # once.
            version=lambda: self.cells.version,
            queue=1,
        )

    def map_message(self, stamp: Stamp) -> Any:
        """Return the message with the map.

        Parameters
        ----------
        stamp : Stamp
            Time for the header.

        Returns
        -------
        nav_msgs/OccupancyGrid or None
            Map in the frame ``map``; None while its cells are being computed.
        """
        raster = self.cells.get()
        return None if raster is None else self.messages.map(stamp, raster, "map")

    def parameters(self, limits: Reconfigure | None) -> dict[str, Value]:
        """Return the ROS 2 parameters of a robot's own node.

        Parameters
        ----------
        limits : Reconfigure, optional
            Motion limits of the robot; None if they cannot be changed.

        Returns
        -------
        dict of str to Value
            Parameters by name, always with ``use_sim_time``.
        """
        sim_time = Value(lambda: self.sim_time, "whether stamps are simulated time")
        return {"use_sim_time": sim_time, **limit_parameters(limits)}


@dataclass(slots=True, eq=False)
class Offer:
    """Topic of the graph as it is offered on transports, with its subscribers and last message."""

    topic: Topic
    node: str
    publications: dict[Transport, Publication] = field(default_factory=dict)
    readers: list[Publication] = field(default_factory=list)
    wanted: bool = False
    period_us: tuple[int, int] = (0, 0)
    """Period of the last message, µs; see `Topic.period_at`."""
    last_version: Hashable = None
    measured_us: int = -1
    """Simulated time of the measurement in the last message, µs.

    Only topics with `Topic.age_us` have it: their messages contain measurements of
    earlier steps.
    """
    count: int = 0
    """Number of messages that were published."""
    latched: tuple[Hashable, EncodedMessage] | None = None
    """Version and last message of a latched topic, which new subscribers get."""
    barrier: ErrorBarrier = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = ErrorBarrier(log, f"publishing {self.topic.name}")

    def is_due(self, time_us: int) -> bool:
        """Return whether a message of the topic is due.

        Topics without a period are due in every step. Otherwise the result is True once
        in each period, so each call that returns True counts as published.

        Parameters
        ----------
        time_us : int
            Simulated time, µs. A message is also due at a time before the present
            period, because time may jump back.
        """
        begin, end = self.period_us
        if begin <= time_us < end:
            return False
        if self.topic.period:
            self.period_us = self.topic.period_at(time_us)
        return True


class Actions(Protocol):
    """Actions of a robot."""

    def tick(self) -> None:
        """Continue the goals after a step."""
        ...

    def abort(self, why: str) -> None:
        """Abort all goals, with a text for clients, and stop the robot."""
        ...


@dataclass(slots=True, eq=False)
class Member:
    """Node of a robot or of the world: all its topics, inputs and services."""

    node: str
    topics: list[Offer]
    inputs: list[Input]
    services: list[Service]
    driver: Driver | None = None
    robot: RobotTopics | None = None
    limits: Reconfigure | None = None
    ros_name: str = ""
    """Unique part of the robot's ROS names, made of its name."""
    handles: dict[Transport, list[Handle]] = field(default_factory=dict)
    actions: Actions | None = None
    choices: Choices | None = None
    """Topics of poses that users of the page choose."""
    of: Robot | None = None
    """Robot that the node stands for, to detect another robot with the same name."""


def _limit(limits: Reconfigure, name: str) -> float:
    return limits.values()[name]


def limit_parameters(limits: Reconfigure | None) -> dict[str, Value]:
    """Return a robot's motion limits as ROS 2 parameters.

    Parameters
    ----------
    limits : Reconfigure, optional
        Motion limits; None gives no parameters.

    Returns
    -------
    dict of str to Value
        Limits in SI units by name; setting one changes the robot's limit.
    """
    if limits is None:
        return {}
    return {
        p.name: Value(
            partial(_limit, limits, p.name),
            f"{p.about}, {p.unit}",
            partial(limits.change, p),
            MAX_RAMP,
        )
        for p in PARAMETERS
    }


__all__ = ["ROS", "SOURCE", "Context", "Member", "Offer", "limit_parameters", "log"]
