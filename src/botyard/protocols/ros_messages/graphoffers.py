"""Topics and services that a ROS graph offers: their names, types and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from botyard.protocols.ros_messages.limits import MAX_INPUT
from botyard.protocols.ros_messages.messages import (
    Stamp,
)


@dataclass(slots=True, eq=False)
class Topic:
    """Published topic.

    Attributes
    ----------
    name : str
        Absolute name of the topic.
    type_name : str
        Type, for example ``nav_msgs/Odometry``.
    make : callable
        Makes the message of the present state; it returns None if there is nothing to
        publish.
    about : str
        One line of description.
    version : callable or None
        If given, the topic is latched: a message is published when the returned value
        changes, and new subscribers get the last message. With a period, the value is
        checked once in each period.
    queue : int
        Number of messages that may wait for a slow subscriber.
    period : float
        Simulated time between two messages, s; 0 for every step. Topics with the same
        period are due in different steps, which depend on their names.
    wanted : callable
        Called with True for the first subscriber, and with False after the last one.
    only : str
        Wire format of the only transports that carry it, ``ros1`` or ``cdr``; empty for
        all.
    quick : callable or None
        Fast encoder: returns the bytes of the present message in a wire format
        (``ros1`` or ``cdr``), without a message object.
    device : str
        Device of the robot whose readings the topic shows; empty for none.
    age_us : callable or None
        Returns the age of the measurement in the message, µs of simulated time. A
        measurement is published only once. None if messages always describe the present
        state.
    sensor : hashable
        Key of the range sensor that must be measured (`Fleet.measure`) before a message
        is made; None if no sensor must be measured.
    publish : callable
        Publishes the result of `make` immediately, also while the simulation is paused;
        for topics of events. The graph that offers the topic sets this attribute.
    is_kept : bool
        Whether late subscribers get the last `queue` messages (ROS 2 over DDS), for
        events such as log lines.
    """

    name: str
    type_name: str
    make: Callable[[Stamp], Any]
    about: str
    version: Callable[[], Hashable] | None = None
    queue: int = 10
    period: float = 0.0
    wanted: Callable[[bool], None] = lambda _on: None
    only: str = ""
    quick: Callable[[str, Stamp], bytes] | None = None
    device: str = ""
    age_us: Callable[[], int] | None = None
    sensor: Hashable = None
    publish: Callable[[], None] = lambda: None
    is_kept: bool = False

    def period_at(self, time_us: int) -> tuple[int, int]:
        """Return start and end of the period that contains a simulated time, µs.

        A message is due in the first step of each period.

        Parameters
        ----------
        time_us : int
            Simulated time, µs.

        Returns
        -------
        tuple of int
            First time of the period, and first time after it, µs.
        """
        period_us = max(1, round(self.period * 1e6))
        # The hash of the name spreads topics with the same period over the steps. It is
        # CRC-32, because Python's `hash` differs from run to run.
        begin = time_us - (time_us + crc32(self.name.encode())) % period_us
        return begin, begin + period_us

    @property
    def latched(self) -> bool:
        """Whether new subscribers get the last message."""
        return self.version is not None


@dataclass(slots=True, eq=False)
class Input:
    """Topic to which the graph subscribes.

    Messages longer than `limit`, bytes, are not decoded. `operation` is the class of
    the control operation that a message causes.

    Attributes
    ----------
    name, type_name : str
        Absolute name, and type such as ``geometry_msgs/Twist``.
    take : callable
        Called with each decoded message.
    about : str
        One line of description.
    """

    name: str
    type_name: str
    take: Callable[[Any], None]
    about: str
    limit: int = MAX_INPUT
    operation: type[Any] | None = None
    count: int = 0
    """Number of messages so far."""

    def __post_init__(self) -> None:
        """Count the messages that are taken."""
        take = self.take

        def counted(message: Any) -> None:
            self.count += 1
            take(message)

        self.take = counted


@dataclass(slots=True, eq=False)
class Service:
    """Service that the graph offers.

    `operation` is the class of the control operation that a call causes; None if the
    service only reads. A service of ROS 2 (`only` is ``cdr``) may return a future of a
    response, which is sent later.

    Attributes
    ----------
    name, type_name : str
        Absolute name, and type such as ``std_srvs/Trigger``.
    serve : callable
        Called with each decoded request.
    about : str
        One line of description.
    only : str
        Wire format of the only transports that carry it, ``ros1`` or ``cdr``; empty for
        all.
    """

    name: str
    type_name: str
    serve: Callable[[Any], Any]
    about: str
    only: str = ""
    operation: type[Any] | None = None
