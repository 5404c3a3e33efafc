"""Shared parts of all AMBF objects: poses, topic names, messages and step hooks."""

from __future__ import annotations

import time as wall
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from botyard.control import Caller, Control
from botyard.geometry import Pose, compose
from botyard.model.objects import NAMESPACE, Offer
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import graph_name
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Simulation


class ObjectContext:
    """Context of all AMBF objects, with the parts that they share.

    The context has the simulation and its control surface, topic names, messages, and functions
    that are called before steps.

    Parameters
    ----------
    sim : Simulation
        The simulation.
    control : Control
        The control surface.
    types, generation, prefix
        See `botyard.interfaces.ambf.ambf.Ambf`.
    rates : (low, high)
        Lowest and highest rate of the states of all objects, Hz. With None, each
        object's own rate applies.
    """

    stepper: Caller
    """Caller of operations that step the world, shared by all clients."""

    def __init__(
        self,
        sim: Simulation,
        control: Control,
        types: Types,
        generation: str,
        *,
        prefix: str,
        rates: tuple[float | None, float | None],
    ) -> None:
        self.sim = sim
        self.control = control
        self.types = types
        self.generation = generation
        self.messages = Messages(types)
        self._prefix = f"/{prefix.strip('/')}" if prefix.strip("/") else ""
        self._rates = rates
        self._paths: dict[str, None] = {}
        self._step_hooks: dict[Hashable, Callable[[], None]] = {}
        self._taken: object = None
        self._numbers: tuple[
            list[list[float]], list[list[float]], Mapping[str, int]
        ] = ([], [], {})
        self._stamp: object = None
        self._moment = (0, 0.0, 0.0)
        self._begin = wall.monotonic()

    def now(self) -> float:
        """Return the wall time since the start, s."""
        return wall.monotonic() - self._begin

    @property
    def stepped_time(self) -> float | None:
        """Simulated time while a client steps the world, s; otherwise None."""
        raise NotImplementedError

    @property
    def numbers(self) -> tuple[list[list[float]], list[list[float]], Mapping[str, int]]:
        """Poses and velocities of all bodies as lists, and the row of each body.

        Arrays are converted to lists once for each snapshot, because single numbers are
        read faster from lists. The lists are shared and must not be changed.

        Returns
        -------
        poses : list of [x, y, th]
            Poses in the world, m, m, rad, by row.
        velocities : list of [vx, vy, w]
            Velocities in the axes of each body, m/s, m/s, rad/s, by row.
        rows : mapping of str to int
            Row of each body by name.
        """
        snapshot = self.sim.snapshot
        if snapshot is not self._taken:
            self._taken = snapshot
            self._numbers = (
                snapshot.state.pose.tolist(),
                snapshot.state.vel.tolist(),
                snapshot.rows,
            )

        return self._numbers

    def moment(self, stamp: Stamp) -> tuple[int, float, float]:
        """Return step number, wall time and simulated time of a stamp.

        Parameters
        ----------
        stamp : Stamp
            Time of the present states. The same object gives the same result, so that
            all states of one moment agree.

        Returns
        -------
        step : int
            Number of the step, modulo 2³², because AMBF's field is a uint32.
        wall, simulated : float
            Times since the start, s.
        """
        if stamp is not self._stamp:
            self._stamp = stamp
            # AMBF's step number is a uint32, which wraps around.
            self._moment = self.sim.tick & 0xFFFFFFFF, self.now(), self.sim.time

        return self._moment

    def path(self, namespace: str, name: str) -> str:
        """Reserve a unique topic prefix (before ``/State``).

        Parameters
        ----------
        namespace : str
            Absolute namespace with a leading slash, or a namespace relative to AMBF's
            own.
        name : str
            Name of the object, already valid in ROS.

        Returns
        -------
        str
            Prefix; a number is appended if it is taken (ambf-messages.md §3).
        """
        space = namespace if namespace.startswith("/") else f"{NAMESPACE}{namespace}"
        base = path = (
            f"{self._prefix}{space if space.endswith('/') else space + '/'}{name}"
        )
        n = 2
        while path in self._paths:
            path, n = f"{base}{n}", n + 1
        self._paths[path] = None
        return path

    def offer(self, namespace: str = NAMESPACE) -> Offer:
        """Return the default settings for publishing an object in a namespace."""
        return self.rated(Offer(namespace=namespace))

    def rated(self, offer: Offer) -> Offer:
        """Return publishing settings with the rates that the options set for all objects.

        Parameters
        ----------
        offer : Offer
            Offer with the rates of the object.

        Returns
        -------
        Offer
            Copy, in which each rate that the options set replaces the object's own, Hz.
        """
        low, high = self._rates
        return replace(
            offer,
            low=offer.low if low is None else low,
            high=offer.high if high is None else high,
        )

    def set_step_hook(self, key: Hashable, act: Callable[[], None] | None) -> None:
        """Set a function that is called before every step; None removes it.

        Parameters
        ----------
        key : hashable
            Owner and purpose; a later function replaces an earlier one with the same
            key.
        act : callable or None
            Function without arguments. The functions run in the order in which their
            keys were set.
        """
        if act is None:
            self._step_hooks.pop(key, None)
        else:
            self._step_hooks[key] = act

    def has_step_hook(self, key: Hashable) -> bool:
        """Return whether a function is set; see `set_step_hook`."""
        return key in self._step_hooks

    def pose_of(self, name: str) -> Pose:
        """Return the pose of a body, or of the child of a joint, in the world.

        Parameters
        ----------
        name : str
            Name of the body, or of the child body of a joint.

        Returns
        -------
        Pose
            Pose in m, m and rad; the origin if the name is unknown.
        """
        poses, _, rows = self.numbers
        row = rows.get(name)
        if row is not None:
            return Pose(*poses[row])
        for joints in self.sim.core.descriptions.joints.values():
            for joint in joints:
                if joint.spec.child == name:
                    # The child of a joint is no body of the engine: its pose follows
                    # from its parent.
                    return compose(self.pose_of(joint.spec.parent), joint.pose)

        return Pose()

    @property
    def map_name(self) -> str:
        """Name of the body that represents the map's walls."""
        return graph_name(self.sim.scene.name.replace(" ", "") or "map")

    def body_called(self, name: str) -> str | None:
        """Return the name of a body, given its name, topic or identifier.

        Parameters
        ----------
        name : str
            Name, or a topic of which only the last part counts. Blanks and characters
            that ROS does not allow may be replaced as in topic names.

        Returns
        -------
        str or None
            Name of the body in the engine; None if there is none.
        """
        short = name.rpartition("/")[2]
        for known in self.sim.core.engine.rows:
            if known in (name, short) or graph_name(known.replace(" ", "")) == short:
                return known

        return None

    def sensed_by(self, sensor: str) -> str | None:
        """Return the name of the body that the sensor's first ray with a hit sees; None
        without a hit.

        Parameters
        ----------
        sensor : str
            Name of the sensor object, or its topic.
        """
        raise NotImplementedError

    def identity(self, name: str) -> dict[str, Any]:
        """Return the leading fields of the states of all objects.

        Parameters
        ----------
        name : str
            Name of the object.

        Returns
        -------
        dict of str to object
            Header with the stamp of the system time, names, step number and times, s.
            The field ``identifier`` exists only in generation 2.0.
        """
        text = self.types["std_msgs/String"]
        fields = {
            "header": self.messages.header(stamp_now(), ""),
            "sim_step": self.sim.tick & 0xFFFFFFFF,
            "name": text(name),
            "wall_time": self.now(),
            "sim_time": self.sim.time,
        }
        return fields | ({"identifier": text(name)} if self.generation == "2.0" else {})


def stamp_now() -> Stamp:
    """Return a time stamp with the system time."""
    return Stamp.of_seconds(wall.time())


__all__ = ["ObjectContext", "stamp_now"]
