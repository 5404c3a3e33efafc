"""`AmbfObject`: base class of AMBF objects.

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
from botyard.interfaces.ambf.surroundings import Surroundings
from botyard.model.objects import Offer
from botyard.protocols.ambf.stepping import Pace
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.naming import graph_name
from botyard.sim.journal import acting

SOURCE: Final = "ambf"
"""Source of AMBF's commands."""
AMBF: Final = Caller(SOURCE, Level.CHANGE, "AMBF", ignores_crowd_limit=False)
"""Caller for all AMBF clients, because topics do not identify the publisher."""
DURING_STEPS: Final = replace(AMBF, settles=False)
"""Caller for operations within a step, during which the world cannot settle."""
COMPLAINT_INTERVAL_S: Final = 10.0
"""Interval in which the same complaint about commands is logged at most once, s."""
MAX_COMPLAINTS: Final = 20
"""Limit of the remembered complaints."""
SAME_PLACE, SAME_TURN = 1e-5, 1e-4
"""Position commands that change less than this are ignored, m and rad (§6)."""


class AmbfObject:
    """Base class of objects.

    Parameters
    ----------
    ambf : Surroundings
        The simulator's side.
    name : str
        Name of the object. In topic names blanks are removed, and underscores replace
        characters that ROS does not allow.
    kind : str
        Prefix of its message types, for example ``RigidBody``; the oldest generation
        has ``Object`` for all.
    offer : Offer
        Namespace, rates and lists of its state.
    """

    def __init__(
        self,
        ambf: Surroundings,
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
        """Make the state message."""
        raise NotImplementedError

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state in a wire format (``ros1`` or ``cdr``)."""
        raise NotImplementedError

    def take(self, message: Any) -> None:
        """Execute a command."""

    def cease(self) -> None:
        """End the present command.

        Called when the command watchdog has expired, or all clients have left.
        """

    def wanted(self, on: bool) -> None:
        """Handle the first subscriber of the state, or the loss of the last one."""

    # -- common to all objects

    def _command(self, message: Any) -> None:
        denied = self.ambf.control.denial(AMBF, TakeBodies)
        # Reported at a limited rate, because clients repeat their commands.
        if denied:
            self.complain(f"commands are denied: {denied}")
            return

        self.channel.pace.command(self.ambf.now(), self.ambf.sim.time)
        # The journal then shows AMBF as the source of all changes within.
        with acting(SOURCE):
            self.take(message)

    def place(self, body: str, pose: Pose, caller: Caller = AMBF) -> bool:
        """Place a body through the control surface; return whether it was placed.

        A failure is logged.
        """
        try:
            self.ambf.control.do(caller, Place(to=((body, pose),)))
        except BotyardError as error:
            self.complain(str(error), "place")
            return False

        return True

    def complain(self, text: str, about: str = "") -> None:
        """Log a problem with a command at a limited rate.

        Clients repeat their commands hundreds of times a second. Texts with the same
        `about` count as repetitions; by default only equal texts do.
        """
        now = self.ambf.now()
        if now >= self._complaints.get(about or text, 0.0):
            # A bound on memory: texts may hold numbers, so there is no end of different
            # ones.
            if len(self._complaints) >= MAX_COMPLAINTS:
                self._complaints.clear()
            self._complaints[about or text] = now + COMPLAINT_INTERVAL_S
            log.warning("%s: %s", self.name, text)

    def tick(self, now: float, stamp: Stamp) -> None:
        """Check the command watchdog, and publish the state if it is due."""
        self.check(now)
        if self.channel.pace.is_due(now):
            self.channel.publish(self.ambf.types, stamp)

    def check(self, now: float) -> None:
        """Check the command watchdog."""
        if self.channel.pace.expired(now, self.ambf.stepped_time):
            self.cease()

    # Headers of states that are filled into templates; a ROS 1 header starts with
    # ``seq``.

    def begin(self, wire: str, stamp: Stamp) -> tuple[int, ...]:
        """Return the numbers of the header, in the order of the wire format."""
        if wire != "ros1":
            return stamp.sec, stamp.nanosec
        self.published += 1
        return self.published & 0xFFFFFFFF, stamp.sec, stamp.nanosec

    @staticmethod
    def header_format(wire: str) -> str:
        """Return the `struct` format of the numbers of a header.

        See `botyard.protocols.ambf.template.Template`.
        """
        return "III" if wire == "ros1" else "II"

    def header(self, begin: Sequence[Any]) -> Any:
        """Return a header of these numbers."""
        header = self.ambf.messages.header(Stamp(*begin[-2:]), "")
        if len(begin) == 3:
            header.seq = begin[0]
        return header

    def message(self, **fields: Any) -> Any:
        """Return the state message of these fields and the fields common to all states."""
        return self.ambf.types[f"ambf_msgs/{self.kind}State"](
            **self.ambf.identity(self.name), **fields
        )

    def plain(self, pose: Any, about: str = "", userdata: Any = ()) -> Any:
        """Return the state message of the oldest generation.

        It is for objects without mass and joints.
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


def parent_text(ambf: Surroundings, name: str) -> dict[str, Any]:
    """Return the field with the name of the parent."""
    return {"parent_name": ambf.types["std_msgs/String"](name)}


def finite(*values: float) -> bool:
    """Return whether all values are finite."""
    return all(map(math.isfinite, values))


def floats(values: Any) -> Any:
    """Convert to a float32 array."""
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
