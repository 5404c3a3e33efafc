"""What all of AMBF's objects know of the simulator and of one another."""

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


class Surroundings:
    """The world, the door to it, and what objects have in common: names of topics, messages, what is done before steps.

    Parameters
    ----------
    sim : Simulation
        The world.
    control : Control
        The door to it.
    types, generation, prefix
        See `botyard.interfaces.ambf.ambf.Ambf`.
    rates : (low, high)
        Rates of all states, Hz; None: each its own.
    """

    stepper: Caller
    """Who steps the world, whichever client it is: the topic does not say."""

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
        self._acts: dict[Hashable, Callable[[], None]] = {}
        self._taken: object = None
        self._numbers: tuple[list[list[float]], list[list[float]], Mapping[str, int]] = ([], [], {})
        self._stamp: object = None
        self._moment = (0, 0.0, 0.0)
        self._begin = wall.monotonic()

    def now(self) -> float:
        """Wall time since the start, s."""
        return wall.monotonic() - self._begin

    @property
    def numbers(self) -> tuple[list[list[float]], list[list[float]], Mapping[str, int]]:
        """Poses and velocities of all bodies of the present state, and where each stands: taken out of the arrays once for all."""
        snapshot = self.sim.snapshot
        if snapshot is not self._taken:
            self._taken = snapshot
            self._numbers = snapshot.state.pose.tolist(), snapshot.state.vel.tolist(), snapshot.rows
        return self._numbers

    def moment(self, stamp: Stamp) -> tuple[int, float, float]:
        """Step, wall time and simulated time, s, in the states of one stamp: made once for all of them."""
        if stamp is not self._stamp:
            self._stamp = stamp
            self._moment = self.sim.tick & 0xFFFFFFFF, self.now(), self.sim.time
        return self._moment

    def path(self, namespace: str, name: str) -> str:
        """A topic's name before ``/State``, which nobody else has: a running number makes it so (§3)."""
        space = namespace if namespace.startswith("/") else f"{NAMESPACE}{namespace}"
        base = path = f"{self._prefix}{space if space.endswith('/') else space + '/'}{name}"
        n = 2
        while path in self._paths:
            path, n = f"{base}{n}", n + 1
        self._paths[path] = None
        return path

    def offer(self, namespace: str = NAMESPACE) -> Offer:
        """How an object of ours is offered."""
        return self.rated(Offer(namespace=namespace))

    def rated(self, offer: Offer) -> Offer:
        """With the rates that all are to have."""
        low, high = self._rates
        return replace(offer, low=offer.low if low is None else low, high=offer.high if high is None else high)

    def before_step(self, key: Hashable, act: Callable[[], None] | None) -> None:
        """Do something before every step; None: no longer."""
        if act is None:
            self._acts.pop(key, None)
        else:
            self._acts[key] = act

    def acts(self, key: Hashable) -> bool:
        """Whether that is done."""
        return key in self._acts

    def pose_of(self, name: str) -> Pose:
        """Pose of a body in the world, also of one that a joint carries; the world's own origin for an empty name."""
        poses, _, rows = self.numbers
        row = rows.get(name)
        if row is not None:
            return Pose(*poses[row])
        for joints in self.sim.joints.values():
            for joint in joints:
                if joint.spec.child == name:
                    return compose(self.pose_of(joint.spec.parent), joint.pose)
        return Pose()

    @property
    def map_name(self) -> str:
        """Name of the body that the map's walls are."""
        return graph_name(self.sim.scene.name.replace(" ", "") or "map")

    def body_called(self, name: str) -> str | None:
        """The engine's name of a body by its name, topic or identifier."""
        short = name.rpartition("/")[2]
        for known in self.sim.engine.rows:
            if known in (name, short) or graph_name(known.replace(" ", "")) == short:
                return known
        return None

    def sensed_by(self, sensor: str) -> str | None:
        """What a sensor's first ray that hits something has hit."""
        raise NotImplementedError

    def identity(self, name: str) -> dict[str, Any]:
        """What the states of all objects begin with."""
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
    """System time."""
    return Stamp.of_seconds(wall.time())


__all__ = ["Surroundings", "stamp_now"]
