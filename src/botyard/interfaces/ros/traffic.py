"""Traffic task in real time, whose supervisor is a ROS node; topics as in the MMRS Simulator.

Supervisors written for the MMRS Simulator work unchanged (mmrs.md §8). ``critical_points``
and ``release_points`` are published, and ``move_permissions`` is subscribed to. All
three are std_msgs/Int16 with a robot's id. The module has no clock: wall time, s, is an
argument. `botyard.servers.ros.trafficros` adds the transports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from botyard.errors import WorldError
from botyard.interfaces.ros.transport import EncodedMessage, Publication, Transport
from botyard.protocols.ros_messages.graphoffers import Input, Topic
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import Types
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.supervisors.base import Supervisor

NODE: Final = "simulator"
"""Name of the ROS node, as in the MMRS Simulator."""
QUEUE: Final = 1000
"""Length of the queue of a slow subscriber, as in the MMRS Simulator."""
MAX_ID: Final = 32767
"""Greatest robot id that fits into std_msgs/Int16."""

log = logging.getLogger("botyard.traffic")


class SteppedRun(Protocol):
    """Interface of a traffic run that can be advanced step by step.

    `botyard.traffic.engine.Traffic` and `botyard.traffic.compat.CompatTraffic` are such
    runs.
    """

    @property
    def is_idle(self) -> bool:
        """Whether all robots stand still and no permission is queued."""
        ...

    def start(self) -> None:
        """Start the traffic run."""
        ...

    def advance(self, until: float) -> Ending | None:
        """Advance the run to a simulated time; return the reason if it has ended.

        Parameters
        ----------
        until : float
            Simulated time to reach, s.

        Returns
        -------
        Ending or None
            Reason why the run has ended; None while it continues.
        """
        ...

    def permit(self, robot: int) -> None:
        """Give a permission to a robot.

        Parameters
        ----------
        robot : int
            Index of the robot, from 0.

        Raises
        ------
        WorldError
            There is no such robot.
        """
        ...

    def asked(self) -> list[tuple[int, int]]:
        """Return the waiting robots, each with the number of permissions it waits for."""
        ...

    def finish(self, why: Ending) -> Outcome:
        """End the run and return its outcome.

        Parameters
        ----------
        why : Ending
            Reason of the end.
        """
        ...


class Relay(Supervisor):
    """Supervisor that forwards all events to ROS, where another program decides."""

    def __init__(self) -> None:
        self.publish: Callable[[str, int], None] = lambda _topic, _robot: None

    def on_critical(self, robot: int, sector: int) -> None:
        """Publish a request for permission; see the base class."""
        self.publish("critical_points", robot)

    def on_release(self, robot: int, sector: int) -> None:
        """Publish the release of a sector; see the base class."""
        self.publish("release_points", robot)


class TrafficNode:
    """ROS node of a traffic run, on any number of transports.

    Parameters
    ----------
    types : Types
        Message types.
    relay : Relay
        Supervisor of the run.
    namespace : str
        Prefix of all names, for example ``/a``; empty for none.
    """

    def __init__(self, types: Types, relay: Relay, namespace: str = "") -> None:
        self._types = types
        self._prefix = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
        self.node = f"{self._prefix}{NODE}"
        self._publications: dict[str, list[Publication]] = {
            "critical_points": [],
            "release_points": [],
        }
        self._inputs: list[Any] = []
        self._arrived: list[int] = []
        self._wanted = 0
        self._resend = False
        self._traffic: SteppedRun | None = None
        self._begin = self._idle_since = 0.0
        self._speed, self._idle_limit = 1.0, 0.0
        relay.publish = self._publish

    def add(self, transport: Transport) -> None:
        """Add a transport, and offer the topics on it.

        Parameters
        ----------
        transport : Transport
            Transport of topics.
        """
        for name, published in self._publications.items():
            topic = Topic(
                f"{self._prefix}{name}",
                "std_msgs/Int16",
                lambda _stamp: None,
                "a robot's id",
                queue=QUEUE,
            )
            published.append(
                transport.advertise(self.node, topic, lambda: None, self._changed)
            )

        entry = Input(
            f"{self._prefix}move_permissions",
            "std_msgs/Int16",
            self._take,
            "a robot's id",
        )
        self._inputs.append(transport.listen(self.node, entry))

    def _changed(self) -> None:
        """Mark pending requests to be sent again if the topic has a new subscriber."""
        wanted = sum(p.is_wanted for p in self._publications["critical_points"])
        self._resend |= wanted > self._wanted
        self._wanted = wanted

    # Only queue the permissions: messages may arrive in the middle of a step.
    def _take(self, message: Any) -> None:
        self._arrived.append(int(message.data))

    def _publish(self, name: str, robot: int) -> None:
        # `check_ids` has refused runs with larger ids at the start. In an Int16, a
        # larger id would become the id of another robot.
        if robot > MAX_ID:
            return
        topic = Topic(
            name,
            "std_msgs/Int16",
            lambda _stamp: self._types["std_msgs/Int16"](robot),
            "",
        )
        message = EncodedMessage(self._types, topic, Stamp(0, 0))
        for publication in self._publications[name]:
            if publication.is_wanted:
                publication.send(message)

    @property
    def critical_points(self) -> str:
        """Name of the topic to which a supervisor subscribes."""
        return f"{self._prefix}critical_points"

    @property
    def has_supervisor(self) -> bool:
        """Whether a supervisor has subscribed to critical points."""
        return any(p.is_wanted for p in self._publications["critical_points"])

    def begin(
        self,
        traffic: SteppedRun,
        now: float,
        *,
        speed: float = 1.0,
        idle_limit: float = 10.0,
    ) -> None:
        """Start a traffic run in real time.

        Parameters
        ----------
        traffic : SteppedRun
            The run.
        now : float
            Wall time, s.
        speed : float
            Simulated time per wall time.
        idle_limit : float
            Wall time without motion and permissions after which the run counts as a
            deadlock, s; 0 for never.
        """
        self._traffic, self._begin, self._idle_since = traffic, now, now
        self._speed, self._idle_limit, self._resend = speed, idle_limit, False
        traffic.start()

    def advance(self, now: float) -> Ending | None:
        """Advance the run to the present wall time.

        Parameters
        ----------
        now : float
            Wall time, s; the run's speed converts it to simulated time.

        Returns
        -------
        Ending or None
            Reason why the run has ended; `Ending.DEADLOCK` if no robot moves and no
            permission arrives for the idle limit. None while it continues.
        """
        traffic = self._traffic
        assert traffic is not None
        ending = traffic.advance((now - self._begin) * self._speed)
        # Even a permission without effect shows that the supervisor works, so it
        # restarts the idle time.
        if self._arrived:
            self._permit(traffic)
            self._idle_since = now

        if self._resend:
            self._resend = False
            for robot, count in traffic.asked():
                for _ in range(count):
                    self._publish("critical_points", robot)

        # While a robot moves or a permission is queued, the idle time restarts.
        if not traffic.is_idle:
            self._idle_since = now
        if (
            ending is None
            and self._idle_limit
            and now - self._idle_since > self._idle_limit
        ):
            return Ending.DEADLOCK

        return ending

    def _permit(self, traffic: SteppedRun) -> None:
        arrived, self._arrived = self._arrived, []
        for robot in arrived:
            try:
                traffic.permit(robot)
            except WorldError as error:
                log.warning("%smove_permissions: %s", self._prefix, error)

    def close(self) -> None:
        """Unadvertise all topics."""
        for published in self._publications.values():
            for publication in published:
                publication.close()
            published.clear()

        for entry in self._inputs:
            entry.close()
        self._inputs.clear()


def check_ids(robots: int) -> None:
    """Check that all robot ids fit into an Int16.

    Parameters
    ----------
    robots : int
        Number of robots; their ids count from 0.

    Raises
    ------
    WorldError
        There are too many robots.
    """
    if robots > MAX_ID + 1:
        raise WorldError(
            f"expected at most {MAX_ID + 1} robots (ids of std_msgs/Int16), found {robots}"
        )


__all__ = ["NODE", "Relay", "SteppedRun", "TrafficNode", "check_ids"]
