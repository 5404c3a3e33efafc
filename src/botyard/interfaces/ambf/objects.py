"""What all objects of AMBF have in common: a name, a channel, an identity, and what happens when commands cease."""

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
"""In whose name robots are commanded."""
AMBF: Final = Caller(SOURCE, Level.CHANGE, "AMBF", ignores_crowd_limit=False)
IN_STEPS: Final = replace(AMBF, settles=False)
"""The same, for what is done before steps: nothing settles while one is made."""
"""Any client of AMBF: its topics do not say which."""
AGAIN: Final = 10.0
"""The same complaint about commands is logged again after so long, s …"""
MOST_COMPLAINTS: Final = 20
"""… of so many different ones."""
SAME_PLACE, SAME_TURN = 1e-5, 1e-4
"""A position command that changes less is not carried out, m and rad (§6)."""


class AmbfObject:
    """An object.

    Parameters
    ----------
    ambf : Surroundings
        Where it is offered.
    name : str
        Its name; the topic has it without blanks and with underscores for what names in ROS cannot hold.
    kind : str
        Its type of messages, for example ``RigidBody``; the oldest generation has ``Object`` for all.
    offer : Offer
        How it is offered.
    """

    def __init__(self, ambf: Surroundings, name: str, kind: str, offer: Offer, *, quick: bool = False) -> None:
        self.ambf = ambf
        self.name = name
        self.kind = "Object" if ambf.generation == "master" and kind != "World" else kind
        self.offer = offer
        self._complaints: dict[str, float] = {}
        self.published = 0
        """States in ROS 1's form so far: the ``seq`` of their headers, by which a reader sees that it has missed one."""
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

    # -- what kinds of objects say of themselves

    def state(self) -> Any:
        """The message of its state."""
        raise NotImplementedError

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Bytes of the state."""
        raise NotImplementedError

    def take(self, message: Any) -> None:
        """Carry out a command."""

    def cease(self) -> None:
        """No command has come for a while, or nobody is there any more: what was commanded ends."""

    def wanted(self, on: bool) -> None:
        """Somebody reads its state now, or nobody any more."""

    # -- what they have in common

    def _command(self, message: Any) -> None:
        denied = self.ambf.control.denial(AMBF, TakeBodies)
        if denied:
            self.complain(f"commands are not obeyed: {denied}")
            return
        self.channel.pace.command(self.ambf.now())
        with acting(SOURCE):
            self.take(message)

    def place(self, body: str, pose: Pose, caller: Caller = AMBF) -> bool:
        """Put a body somewhere, as everybody else may: what keeps it from that is logged. Whether it was put there."""
        try:
            self.ambf.control.do(caller, Place(to=((body, pose),)))
        except BotyardError as error:
            self.complain(str(error), "place")
            return False
        return True

    def complain(self, text: str, about: str = "") -> None:
        """Log what is wrong with a command; clients repeat theirs hundreds of times a second, so the same is said now and then only.

        With `about`, for texts that hold numbers of the command, that is what counts as the same.
        """
        now = self.ambf.now()
        if now >= self._complaints.get(about or text, 0.0):
            if len(self._complaints) >= MOST_COMPLAINTS:
                self._complaints.clear()
            self._complaints[about or text] = now + AGAIN
            log.warning("%s: %s", self.name, text)

    def tick(self, now: float, stamp: Stamp) -> None:
        """Look at the watchdog; publish if that is due."""
        pace = self.channel.pace
        if pace.expired(now):
            self.cease()
        if pace.is_due(now):
            self.channel.publish(self.ambf.types, stamp)

    # -- beginnings of states that are made from numbers in place: in ROS 1's form with the ``seq`` of the header

    def begin(self, wire: str, stamp: Stamp) -> tuple[int, ...]:
        """The numbers of the header."""
        if wire != "ros1":
            return stamp.sec, stamp.nanosec
        self.published += 1
        return self.published & 0xFFFFFFFF, stamp.sec, stamp.nanosec

    @staticmethod
    def beginning(wire: str) -> str:
        """Their types, see `botyard.protocols.ambf.template.Template`."""
        return "III" if wire == "ros1" else "II"

    def header(self, begin: Sequence[Any]) -> Any:
        """A header of these numbers."""
        header = self.ambf.messages.header(Stamp(*begin[-2:]), "")
        if len(begin) == 3:
            header.seq = begin[0]
        return header

    def message(self, **fields: Any) -> Any:
        """Its state with these fields and those that all states have."""
        return self.ambf.types[f"ambf_msgs/{self.kind}State"](**self.ambf.identity(self.name), **fields)

    def plain(self, pose: Any, about: str = "", userdata: Any = ()) -> Any:
        """Its state in the oldest generation, of something that has no mass and no joints."""
        m, types = self.ambf.messages, self.ambf.types
        return self.message(
            mass=0.0, pInertia=types["geometry_msgs/Point"](0.0, 0.0, 0.0), pose=pose,
            wrench=types["geometry_msgs/Wrench"](m.vector(0.0, 0.0), m.vector(0.0, 0.0)), userdata_description=about, children_names=[],
            joint_names=[], userdata=floats(userdata), joint_positions=floats(()),
        )  # fmt: skip


def parent_text(ambf: Surroundings, name: str) -> dict[str, Any]:
    """The field for the name of a parent."""
    return {"parent_name": ambf.types["std_msgs/String"](name)}


def finite(*values: float) -> bool:
    """Whether all are finite."""
    return all(map(math.isfinite, values))


def floats(values: Any) -> Any:
    """A float32 array."""
    return np.asarray(values, np.float32)


__all__ = [
    "IN_STEPS",
    "SAME_PLACE",
    "SAME_TURN",
    "SOURCE",
    "AmbfObject",
    "finite",
    "floats",
    "parent_text",
]
