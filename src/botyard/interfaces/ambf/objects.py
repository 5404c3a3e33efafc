"""Base class of AMBF objects (`AmbfObject`).

An object has a name, a channel, state messages and a command timeout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from botyard.control import Caller, Level, Place, TakeBodies
from botyard.errors import BotyardError
from botyard.geometry import Pose
from botyard.interfaces.ambf.channel import Channel, log
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.model.objects import Offer
from botyard.protocols.ambf.stepping import Pace
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.naming import graph_name
from botyard.sim.journal import acting

SOURCE: Final = "ambf"
"""Source name of AMBF's commands in the journal."""
AMBF: Final = Caller(SOURCE, Level.CHANGE, "AMBF", ignores_crowd_limit=False)
"""Caller for all AMBF clients, because topics do not identify the publisher."""
DURING_STEPS: Final = replace(AMBF, settles=False)
"""Caller for operations within a step, in which queued changes cannot take effect."""
COMPLAINT_INTERVAL_S: Final = 10.0
"""Time in which the same warning about an object's commands is logged at most once, s."""
MAX_COMPLAINTS: Final = 20
"""Largest number of complaints per object whose last time is remembered."""
SAME_PLACE, SAME_TURN = 1e-5, 1e-4
"""Position commands that change less than this, m and rad, are ignored (ambf-messages.md §6)."""


class AmbfObject:
    """Base class of AMBF objects, each with a name, topics and a command watchdog.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    name : str
        Name of the object. In topic names blanks are removed, and underscores replace
        characters that ROS does not allow.
    kind : str
        Prefix of its message types, for example ``RigidBody``; the oldest generation
        has ``Object`` for all kinds.
    offer : Offer
        Namespace, rates and lists of its state.
    """

    def __init__(
        self,
        ambf: ObjectContext,
        name: str,
        kind: str,
        offer: Offer,
        *,
        quick: bool = False,
    ) -> None:
        self.ambf = ambf
        self.name = name
        self.kind = (
            "Object" if ambf.generation == "master" and kind != "World" else kind
        )
        self.offer = offer
        self._complaints: dict[str, float] = {}
        self.published = 0
        """Number of states in the ROS 1 format so far.

        It is the ``seq`` of their headers, by which a subscriber detects lost messages.
        """
        path = ambf.path(offer.namespace, graph_name(name.replace(" ", "")))
        self.channel = Channel(
            path,
            f"{self.kind}State",
            f"{self.kind}Cmd",
            self.state,
            self._command,
            pace=Pace(offer.low, offer.high),
            quick=self.quick if quick else None,
            wanted=self.wanted,
        )

    # -- overridden by kinds of objects

    def state(self) -> Any:
        """Return the state message of the object."""
        raise NotImplementedError

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state in a wire format (``ros1`` or ``cdr``).

        States are encoded a thousand times a second; a subclass fills a template
        instead of making a message.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time for the header of the state.
        """
        raise NotImplementedError

    def take(self, message: Any) -> None:
        """Execute a command for the object.

        Parameters
        ----------
        message : object
            Decoded command of the object's type. Problems are logged by `complain`.
        """

    def cease(self) -> None:
        """End the present command of the object.

        The method is called when the command watchdog has expired, or all clients have
        disconnected.
        """

    def wanted(self, on: bool) -> None:
        """React to the first subscriber of the state, or to the loss of the last one.

        Parameters
        ----------
        on : bool
            True for the first subscriber, False after the last one.
        """

    # -- common to all objects

    def _command(self, message: Any) -> None:
        denied = self.ambf.control.denial(AMBF, TakeBodies)
        # `complain` limits the rate of the warning, because clients repeat their
        # commands.
        if denied:
            self.complain(f"commands are denied: {denied}")
            return

        self.channel.pace.command(self.ambf.now(), self.ambf.sim.time)
        # The journal then names AMBF as the source of all changes that the command
        # makes.
        with acting(SOURCE):
            self.take(message)

    def place(self, body: str, pose: Pose, caller: Caller = AMBF) -> bool:
        """Place a body through the control surface; a failure is logged.

        Parameters
        ----------
        body : str
            Name of the body.
        pose : Pose
            Pose in the world, m, m, rad.
        caller : Caller
            Caller of the operation; its permissions and limits apply.

        Returns
        -------
        bool
            Whether the body was placed.
        """
        try:
            self.ambf.control.do(caller, Place(to=((body, pose),)))
        except BotyardError as error:
            self.complain(str(error), "place")
            return False

        return True

    def complain(self, text: str, about: str = "") -> None:
        """Log a problem with a command at a limited rate.

        Clients repeat their commands hundreds of times a second, so repetitions are
        dropped for `COMPLAINT_INTERVAL_S`.

        Parameters
        ----------
        text : str
            Text of the warning; the log shows the object's name before it.
        about : str
            Texts with the same `about` count as repetitions; by default only equal
            texts count as repetitions.
        """
        now = self.ambf.now()
        if now >= self._complaints.get(about or text, 0.0):
            # Bound the memory: texts may contain numbers, so their number is unlimited.
            if len(self._complaints) >= MAX_COMPLAINTS:
                self._complaints.clear()
            self._complaints[about or text] = now + COMPLAINT_INTERVAL_S
            log.warning("%s: %s", self.name, text)

    def tick(self, now: float, stamp: Stamp) -> None:
        """Check the command watchdog, and publish the state if it is due.

        Parameters
        ----------
        now : float
            Wall time since the start, s.
        stamp : Stamp
            Time for the header of the state.
        """
        self.check(now)
        if self.channel.pace.is_due(now):
            self.channel.publish(self.ambf.types, stamp)

    def check(self, now: float) -> None:
        """End the command if no new one has arrived within the watchdog's time.

        Parameters
        ----------
        now : float
            Wall time since the start, s. While a client steps the world, the watchdog
            uses simulated time instead.
        """
        if self.channel.pace.expired(now, self.ambf.stepped_time):
            self.cease()

    # The next methods fill the header of a state into its template. A ROS 1 header
    # starts with the field ``seq``.

    def begin(self, wire: str, stamp: Stamp) -> tuple[int, ...]:
        """Return the numbers of a message header, in the order of the wire format.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time for the header of the state.

        Returns
        -------
        tuple of int
            s and ns of the stamp. ROS 1 has the sequence number before them, which each
            call increments.
        """
        if wire != "ros1":
            return stamp.sec, stamp.nanosec
        self.published += 1
        # The field seq of ROS 1 is a uint32, which wraps around.
        return self.published & 0xFFFFFFFF, stamp.sec, stamp.nanosec

    @staticmethod
    def header_format(wire: str) -> str:
        """Return the `struct` format of the numbers of a header.

        `botyard.protocols.ambf.template.Template` fills them in.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` with a sequence number, or ``cdr`` without.
        """
        return "III" if wire == "ros1" else "II"

    def header(self, begin: Sequence[Any]) -> Any:
        """Return a header message with the numbers that the method above returned."""
        header = self.ambf.messages.header(Stamp(*begin[-2:]), "")
        if len(begin) == 3:
            header.seq = begin[0]
        return header

    def message(self, **fields: Any) -> Any:
        """Return the state message with the given fields and the fields common to all states."""
        return self.ambf.types[f"ambf_msgs/{self.kind}State"](
            **self.ambf.identity(self.name), **fields
        )

    def plain(self, pose: Any, about: str = "", userdata: Any = ()) -> Any:
        """Return the state message of the oldest generation.

        Objects without mass and joints use this message.

        Parameters
        ----------
        pose : geometry_msgs/Pose
            Pose in the frame of the parent.
        about : str
            Description of `userdata`.
        userdata : array_like of float
            Numbers of the object, such as the measurements of a sensor.
        """
        m, types = self.ambf.messages, self.ambf.types
        return self.message(
            mass=0.0,
            pInertia=types["geometry_msgs/Point"](0.0, 0.0, 0.0),
            pose=pose,
            wrench=types["geometry_msgs/Wrench"](
                m.vector(0.0, 0.0), m.vector(0.0, 0.0)
            ),
            userdata_description=about,
            children_names=[],
            joint_names=[],
            userdata=floats(userdata),
            joint_positions=floats(()),
        )


def parent_text(ambf: ObjectContext, name: str) -> dict[str, Any]:
    """Return the message field that holds the name of the parent."""
    return {"parent_name": ambf.types["std_msgs/String"](name)}


def finite(*values: float) -> bool:
    """Return whether all values are finite."""
    return all(map(math.isfinite, values))


def floats(values: Any) -> Any:
    """Return numbers as a float32 array.

    Parameters
    ----------
    values : array_like of float
        Numbers; an array of float32 is not copied.

    Returns
    -------
    (n,) float32
        Array for a field ``float32[]``.
    """
    return np.asarray(values, np.float32)


__all__ = [
    "DURING_STEPS",
    "SAME_PLACE",
    "SAME_TURN",
    "SOURCE",
    "AmbfObject",
    "finite",
    "floats",
    "parent_text",
]
