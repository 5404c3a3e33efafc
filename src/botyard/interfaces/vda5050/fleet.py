"""Fleet of traffic robots that act as AGVs of VDA 5050 (`Fleet`).

The master control sends orders, and extends their base (the released nodes). A canceled
order ends at the next node at which the AGV can stop, and a new order continues from
there.

The module performs no input or output: `Fleet.on_message` takes messages, other methods
return messages to publish, and wall time, s, is an argument. `Fleet.on_message`
consists of `Fleet.study` and `Fleet.take`. `Fleet.study` takes up to seconds for large
orders, and may run in another thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from botyard.interfaces.vda5050.agv import (
    AT_REST,
    Agv,
    Change,
    Message,
    check_start,
    is_at_end,
    pose_of,
    reached,
    start_of,
)
from botyard.interfaces.vda5050.routes import (
    MAX_CONFLICTS,
    MAX_PAIRS,
    Route,
    common_nodes,
    listed_conflicts,
    route_of,
)
from botyard.names import shown
from botyard.protocols.vda5050.orders import (
    MAX_NODES,
    Action,
    Order,
    OrderError,
    merge,
    parse_instant_actions,
    parse_order,
)
from botyard.protocols.vda5050.states import (
    OrderTexts,
    Vehicle5050,
    state_text,
)
from botyard.traffic.engine import Traffic
from botyard.traffic.geometry import SearchLimit
from botyard.traffic.kernels import events as k
from botyard.traffic.kernels import runarrays
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.base import Policy, Supervisor
from botyard.traffic.task import F8, I8, Task, Vehicle

STATE_PERIOD_S: Final = 5.0
"""Longest wall time between two states of an AGV, s; changed states are sent at once."""
MAX_STATE: Final = 4_000_000
"""Largest number of characters of nodes, edges and actions in a state.

An order whose states would be longer is refused, also if an update makes it so long.
"""
STATE_RATE: Final = 4_000_000
"""Rate limit of the states of all AGVs together, bytes/s of wall time.

Each AGV has an equal share. The final states are exempt.
"""
MAX_ERRORS: Final = 10
"""Largest number of older errors that a state lists in addition to the newest one."""


log = logging.getLogger("botyard.traffic")


class _Orders(Supervisor):
    """Supervisor that grants no permissions by itself: the released nodes of orders grant them."""

    def policy(self) -> Policy:
        """Return a policy that grants no sectors; see the base class."""
        return Policy(kind=runarrays.NOBODY)


class Fleet:
    """Fleet of AGVs.

    Parameters
    ----------
    names : sequence of Vehicle5050
        Identities of the AGVs.
    vehicle : Vehicle
        Radius and motion of all AGVs.
    warn : callable
        Logs rejected orders; the master control sees them as errors in the states.
    """

    def __init__(
        self,
        names: Sequence[Vehicle5050],
        vehicle: Vehicle,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        self.agvs = [Agv(n, STATE_RATE / len(names)) for n in names]
        """The AGVs, with their orders."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the run starts, and when an AGV gets another order or a longer base."""
        self.ending: Ending | None = None
        """Reason why the run has ended; None while it continues."""
        self._index = {
            a.name.topic(topic): i
            for topic in ("instantActions", "order")
            for i, a in enumerate(self.agvs)
        }
        self._vehicle = vehicle
        self._warn = warn
        self._pairs: dict[tuple[int, int], I8] = {}
        self.traffic: Traffic | None = None
        """Run of all orders; None before its start. An order can replace it."""
        self._begin, self._speed, self._time = 0.0, 1.0, 0.0

    # -- the broker

    @property
    def order_topics(self) -> list[str]:
        """Topics of orders, one for each AGV."""
        return [agv.name.topic("order") for agv in self.agvs]

    @property
    def topics(self) -> list[str]:
        """Topics to subscribe to; topics of instant actions are first."""
        return list(self._index)

    def last_wills(self) -> list[Message]:
        """Return the MQTT last wills, one for each AGV.

        An MQTT client has only one last will, so each AGV needs its own client.
        """
        return [agv.last_will() for agv in self.agvs]

    def online(self, i: int) -> Message:
        """Return the connection message of an AGV that connects.

        Parameters
        ----------
        i : int
            Index of the AGV.
        """
        return self.agvs[i].connection("ONLINE")

    def offline(self) -> list[Message]:
        """Return the connection messages with which the AGVs sign off before they disconnect."""
        return [agv.connection("OFFLINE") for agv in self.agvs]

    def on_message(self, topic: str, payload: bytes) -> None:
        """Process an MQTT message; an invalid order only adds an error to the AGV's state.

        Parameters
        ----------
        topic : str
            MQTT topic; a topic of no AGV is ignored.
        payload : bytes
            JSON text.
        """
        self.take(self.study(topic, payload))

    def study(self, topic: str, payload: bytes) -> Change | None:
        """Find the change that a message causes.

        The call may run in another thread while `advance` and `states` run. It must not
        overlap other calls of `study`, or calls of `take`, `prepare` and `begin`.

        Parameters
        ----------
        topic : str
            MQTT topic.
        payload : bytes
            JSON text.

        Returns
        -------
        Change or None
            Change for `take`; None if there is none.
        """
        i = self._index.get(topic)
        return (
            None
            if i is None
            else self.agvs[i].barrier.call(
                self._study, i, topic, payload, otherwise=None
            )
        )

    def _study(self, i: int, topic: str, data: bytes) -> Change | None:
        agv = self.agvs[i]
        try:
            if topic == agv.name.topic("instantActions"):
                return Change(agv=i, actions=parse_instant_actions(data))
            order = parse_order(data)
            kind = "orderError"
            if agv.order is not None and agv.is_canceled:
                if (order.id, order.update) != (agv.order.id, agv.order.update):
                    return self._change_after_cancel(i, order)
                order = agv.order
            elif agv.order is not None:
                order, kind = merge(agv.order, order), "orderUpdateError"

            # MQTT's QoS 1 may deliver an order twice; `merge` then returns the same
            # object.
            if order is agv.order:
                return None
            return self._change(i, order, kind)
        except OrderError as error:
            return Change(agv=i, error=error)

    def _change_after_cancel(self, i: int, order: Order) -> Change:
        """Return the change that the first order after a canceled order causes.

        See VDA 5050, §6.6.3.1.
        """
        agv = self.agvs[i]
        assert agv.order is not None
        assert agv.course is not None
        if order.id == agv.order.id:
            raise OrderError(
                "orderUpdateError",
                f"order {shown(order.id)} was canceled, so it takes no update",
            )

        check_start(agv.course.nodes[-1], order)
        if len(order.nodes) < 2:
            raise OrderError(
                "orderError", "expected an order of at least two nodes, found one"
            )

        return self._change(i, order, "orderError", len(agv.course.nodes) - 1)

    def _change(
        self, i: int, order: Order, kind: str, first: int | None = None
    ) -> Change:
        """Return the change that a new order causes.

        Parameters
        ----------
        first : int, optional
            Index of the order's first node in the AGV's course; by default it is
            unchanged.

        Raises
        ------
        OrderError
            The AGV cannot drive the order.
        """
        agv = self.agvs[i]
        first = agv.first if first is None else first
        course = order
        if agv.course is not None:
            course = replace(
                order,
                nodes=agv.course.nodes[: first + 1] + order.nodes[1:],
                edges=agv.course.edges[:first] + order.edges,
            )

        if len(course.nodes) > MAX_NODES:
            raise OrderError(
                kind,
                f"expected at most {MAX_NODES} nodes including canceled orders, "
                f"found {len(course.nodes)}",
            )

        texts = OrderTexts(order)
        if texts.size > MAX_STATE:
            raise OrderError(
                kind,
                f"expected nodes, edges and actions of at most {MAX_STATE} "
                f"characters in a state, found {texts.size}",
            )

        new = Change(agv=i, order=order, course=course, first=first, texts=texts)
        same = common_nodes(agv.course, course)
        # Only more nodes were released: the path and its conflicts are unchanged.
        if agv.course is not None and same == len(course.nodes) == len(
            agv.course.nodes
        ):
            return replace(new, route=agv.route)

        route = route_of(course, self._vehicle, kind)
        kept = max(
            same - 1,
            0,
            # Compare the sector at the last common node again: it ends behind this
            # node, where the paths may differ.
        )

        # Use one limit for the work with all other AGVs, so that the cost of an order
        # does not grow with the fleet.
        limit = SearchLimit(MAX_PAIRS)
        pairs: dict[tuple[int, int], I8] = {}
        for j, other in enumerate(self.agvs):
            if j != i and other.route is not None:
                found = route.conflicts(other.route, limit, kept)
                key, column = ((i, j), 0) if i < j else ((j, i), 1)
                old = self._pairs.get(key, np.zeros((0, 2), np.int64))
                pairs[key] = np.concatenate(
                    [old[old[:, column] < kept], found if i < j else found[:, ::-1]]
                )

        every = self._pairs | pairs
        if (count := sum(map(len, every.values()))) > MAX_CONFLICTS:
            raise OrderError(
                kind,
                f"expected at most {MAX_CONFLICTS} conflicts of the edges of all "
                f"orders, found {count}",
            )

        traffic = None
        if self.traffic is not None:
            routes = [
                route if j == i else other.route for j, other in enumerate(self.agvs)
            ]
            traffic = self._made(routes, every)

        return replace(new, route=route, pairs=pairs, traffic=traffic)

    def _made(
        self, routes: Sequence[Route | None], pairs: dict[tuple[int, int], I8]
    ) -> Traffic:
        """Create a traffic run with the given routes.

        Parameters
        ----------
        routes : sequence of Route or None
            Route of each AGV; None for an AGV without an order.
        pairs : dict of (int, int) to (m, 2) int64
            Sectors in conflict for each pair of AGVs, the lower index first.
        """
        vehicles = tuple(route.vehicle for route in routes if route is not None)
        task = Task(vehicles, listed_conflicts(pairs), (), "orders")
        return Traffic(task, _Orders(), Rules(stop_at_end=True), asks=False)

    def take(self, change: Change | None) -> None:
        """Apply a change that `study` returned.

        Parameters
        ----------
        change : Change or None
            Result of `study`; None changes nothing.
        """
        if change is not None:
            self.agvs[change.agv].barrier.run(self._take, change)

    def _take(self, change: Change) -> None:
        i, agv = change.agv, self.agvs[change.agv]
        error = change.error
        for action in change.actions:
            self._act(i, action)
        if error is None and change.order is None:
            return
        if error is None and agv.cancels is not None:
            error = OrderError(
                "orderError", "the AGV has not stopped yet after cancelOrder"
            )
            change = replace(change, traffic=None)

        if change.traffic is not None and self.traffic is not None:
            # The AGV may have arrived while `study` ran in its thread.
            if self.traffic.is_done(i):
                error = OrderError(
                    "orderUpdateError",
                    "the AGV is at the end of its order, which cannot be extended any more",
                )
            else:
                change.traffic.resume(self.traffic, i)
                self.traffic = change.traffic

        if error is not None:
            self._refuse(agv, error)
            return

        agv.order, agv.course, agv.first = change.order, change.course, change.first
        agv.route, agv.texts, agv.errors = change.route, change.texts, ()
        # VDA 5050, §6.10.6: states of instant actions are kept until a new order
        # arrives.
        if agv.is_canceled:
            agv.is_canceled, agv.instant = False, ()
        self._pairs |= change.pairs or {}
        self._permit(i)
        self.on_change()

    def _act(self, i: int, action: Action) -> None:
        """Execute an instant action of an AGV (VDA 5050, §6.8.1, §6.9)."""
        agv = self.agvs[i]
        # With QoS 1, the broker may deliver an action more than once.
        if any(s.action.id == action.id for s in agv.instant):
            return
        if action.type == "cancelOrder":
            self._cancel(i, action)
        # For stateRequest it is enough to add an action state: a changed state is sent
        # at once.
        elif action.type == "stateRequest":
            agv.note(action, "FINISHED")
        else:
            self._fail(
                agv,
                OrderError(
                    "instantActionError",
                    "expected cancelOrder or stateRequest, the only actions of this "
                    f"AGV, found {shown(action.type)}",
                    action,
                ),
            )

    def _fail(self, agv: Agv, error: OrderError) -> None:
        """Report that an instant action has failed."""
        assert error.action is not None
        agv.note(error.action, "FAILED", str(error))
        self._refuse(agv, error)

    def _cancel(self, i: int, action: Action) -> None:
        """Cancel the order of an AGV (VDA 5050, §6.6.3)."""
        agv = self.agvs[i]
        is_done = self.traffic is not None and self.traffic.is_done(i)
        if agv.order is None or agv.course is None or agv.is_canceled or is_done:
            text = (
                "expected an AGV with an order to cancel, found one without an "
                "order, or at its end"
            )
            self._fail(agv, OrderError("noOrderToCancel", text, action))
            return

        assert agv.texts is not None
        last = 0 if self.traffic is None else self.traffic.withdraw(i)
        agv.permitted = min(agv.permitted, last)
        left = last - agv.first
        # The rest of the order ends at the node where the AGV stops.
        agv.order, agv.course = start_of(agv.order, left), start_of(agv.course, last)
        agv.texts.cancel(reached(agv, self._place(i)), left + 1)
        agv.is_canceled, agv.cancels = True, action
        agv.note(action, "RUNNING")

    def _place(self, i: int) -> float:
        """Return the distance that an AGV has driven along its path, m."""
        if self.traffic is None:
            return 0.0
        places, speeds = np.zeros(len(self.agvs)), np.zeros(len(self.agvs))
        k.places(self.traffic.world, self.traffic.now, places, speeds)
        return float(places[i])

    def refuse(self, topic: str, error: OrderError) -> None:
        """Add an error to the state of the AGV to which a topic belongs.

        Parameters
        ----------
        topic : str
            MQTT topic of an AGV.
        error : OrderError
            Reason, which appears in the states of the AGV.
        """
        self._refuse(self.agvs[self._index[topic]], error)

    def _refuse(self, agv: Agv, error: OrderError) -> None:
        self._warn(f"{agv.name.serial}: {error}")
        agv.errors = (*agv.errors[-MAX_ERRORS:], error)

    def _permit(self, i: int) -> None:
        """Grant an AGV its sectors up to the end of its base."""
        agv = self.agvs[i]
        # Before the run starts, an order only extends the base. The start then grants
        # its sectors.
        if self.traffic is None or agv.order is None:
            return
        for _ in range(agv.permitted, agv.first + agv.order.released - 1):
            agv.permitted += 1
            self.traffic.permit(i)

    # -- the run

    @property
    def has_orders(self) -> bool:
        """Whether each AGV has an order."""
        return all(a.order is not None and not a.is_canceled for a in self.agvs)

    @property
    def has_begun(self) -> bool:
        """Whether the run of the fleet has started."""
        return self.traffic is not None

    def prepare(self) -> Traffic:
        """Create and start the run of all orders, for `begin`.

        The call may run in another thread under the same conditions as `study`.
        """
        traffic = self._made([agv.route for agv in self.agvs], self._pairs)
        traffic.start()
        return traffic

    def begin(
        self, now: float, speed: float = 1.0, traffic: Traffic | None = None
    ) -> None:
        """Start the run of the fleet.

        Parameters
        ----------
        now : float
            Time of the clock for `advance`, s.
        speed : float
            Simulated time per time of this clock.
        traffic : Traffic, optional
            Result of `prepare`; by default `prepare` is called here.
        """
        self.traffic = traffic or self.prepare()
        self._begin, self._speed = now, speed
        # Grant the released nodes of the orders that arrived before the run.
        for i in range(len(self.agvs)):
            self._permit(i)
        self.on_change()

    def advance(self, now: float) -> Ending | None:
        """Advance the run to the present time.

        Parameters
        ----------
        now : float
            Time of the same clock, s; the speed of the fleet converts it to simulated time.

        Returns
        -------
        Ending or None
            Reason why the run has ended; None while it continues.
        """
        assert self.traffic is not None
        self._time = (now - self._begin) * self._speed
        self.ending = self.traffic.advance(self._time)
        return self.ending

    def places(self) -> tuple[F8, F8]:
        """Return where the AGVs are along their paths, m, and their speeds, m/s: both (n,)."""
        places, speeds = np.zeros(len(self.agvs)), np.zeros(len(self.agvs))
        if self.traffic is not None:
            k.places(self.traffic.world, self._time, places, speeds)
        return places, speeds

    def finish(self, why: Ending) -> Outcome:
        """End the run of the fleet, and return its outcome."""
        assert self.traffic is not None
        return self.traffic.finish(why)

    def states(
        self, now: float, last: bool = False, busy: Collection[int] = ()
    ) -> list[Message]:
        """Return the state messages of AGVs that are due.

        A state is due if it has changed, if the last message is older than
        `STATE_PERIOD_S`, or with `last`. It waits until the previous message has been
        sent, and until `STATE_RATE` allows it. No information is lost meanwhile,
        because each state has the newest values.

        Parameters
        ----------
        now : float
            Wall time, s.
        last : bool
            Whether these are the final states, which ignore the rate limit.
        busy : collection of int
            AGVs whose previous state has not been sent yet.
        """
        places, speeds = self.places()
        found: list[Message] = []
        for i, (agv, place, speed) in enumerate(
            zip(self.agvs, places.tolist(), speeds.tolist(), strict=True)
        ):
            # Check both speed and position: an AGV that has just started is also slow,
            # and an AGV may pass its last node before it stands.
            if agv.cancels is not None and speed <= AT_REST and is_at_end(agv, place):
                agv.note(agv.cancels, "FINISHED")
                agv.cancels = None

            if not last and (i in busy or agv.state_bytes.wait(now)):
                continue
            found += agv.barrier.call(
                self._state, agv, place, speed, last, now, otherwise=()
            )

        return found

    def _state(
        self, agv: Agv, place: float, speed: float, last: bool, now: float
    ) -> tuple[Message, ...]:
        passed = reached(agv, place)
        # A state is sent at once when one of these changes. The position is not one of
        # these values, because it changes all the time.
        what = (passed, speed > AT_REST, agv.order, agv.errors, agv.instant, last)
        if what == agv.last_state and now < agv.last_sent + STATE_PERIOD_S:
            return ()
        agv.last_state, agv.last_sent = what, now
        text = state_text(
            agv.name,
            agv.number(),
            agv.order,
            agv.texts,
            passed,
            pose_of(agv, place),
            speed,
            agv.errors,
            agv.instant,
        )
        agv.state_bytes.spend(now, len(text))
        return (Message(agv.name.topic("state"), text),)


__all__ = ["MAX_ERRORS", "STATE_PERIOD_S", "STATE_RATE", "Fleet"]
