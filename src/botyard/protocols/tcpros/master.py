"""ROS master, sans-I/O: names, publishers, subscribers, services and parameters.

Calls are answered at once. Calls to other nodes are queued in `Master.notices`, and the
server makes them. If a node registers under the name of a node with another address, it
replaces that node, which gets a shutdown call.

Callers are untrusted: `botyard.protocols.tcpros.api` validates arguments, and
everything that is stored here is bounded. Returned values are never modified
afterwards, so that they can be encoded in pieces. Source: wiki.ros.org/ROS/Master_API.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from botyard.errors import PeerError
from botyard.protocols.tcpros import api
from botyard.protocols.tcpros.parameterserver import Parameters, resolved

Answer = list[Any]
MAX_ENTRIES: Final = 100_000
"""Limit of the registrations of all nodes: enough for thousands of simulated robots."""
# With a quarter, three misbehaving addresses still leave room for others.
MAX_ENTRIES_EACH: Final = MAX_ENTRIES // 4
"""Limit of the registrations from one address, except from this machine."""
MAX_WATCHERS: Final = 20_000
"""Limit of subscriptions to parameters, because each change of a parameter is compared with all."""
MAX_OF_TOPIC: Final = 1000
"""Limit of the publishers of a topic, its subscribers, and the subscribers of a parameter."""
MAX_TYPES: Final = 20_000
"""Limit of topics whose type is remembered, including unused ones."""
MAX_CALLS: Final = 5000
"""Limit of the calls in one ``system.multicall``."""
_NOT_IN_MULTICALL: Final = frozenset(
    [
        "getParam",
        "getParamNames",
        "getPublishedTopics",
        "getSystemState",
        "getTopicTypes",
        "subscribeParam",
        "system.multicall",
    ]
)
"""Methods that ``system.multicall`` refuses, because their answers are long."""
NO_NODE: Final = "unknown node"


class Notice(NamedTuple):
    """Pending call to a node.

    Its arguments are computed when the call is made, so of equal pending calls one is
    enough.

    Attributes
    ----------
    uri : str
        Address of the node.
    method : str
        ``publisherUpdate``, ``paramUpdate`` or ``shutdown``.
    about : str
        Topic, key or reason.
    """

    uri: str
    method: str
    about: str


class Master:
    """ROS master.

    Parameters
    ----------
    uri : str
        Address of the master, which getUri reports.

    Attributes
    ----------
    parameters : Parameters
        Tree of the parameter server.
    notices : list of Notice
        Pending calls to nodes, oldest first. The server removes them.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.parameters = Parameters()
        self.notices: list[Notice] = []
        self.is_own: Callable[[str], bool] = lambda _uri: False
        """Function that returns whether the node at an address belongs to this process.

        Other nodes cannot take over the name of such a node.
        """

        self._nodes: dict[str, str] = {}
        self._publishers: dict[str, dict[str, str]] = {}
        self._subscribers: dict[str, dict[str, str]] = {}
        self._services: dict[str, tuple[str, str]] = {}
        self._types: dict[str, str] = {}
        self._watchers: dict[str, dict[str, str]] = {}

        self._holdings: dict[str, int] = {}
        """Number of registrations of each node."""
        self._entries = 0
        """Number of all registrations."""
        self._watched = 0
        """Number of subscriptions to parameters, which are also registrations."""

        self._source = ""
        """IP address of the caller whose call is being answered."""
        self._owners: dict[str, str] = {}
        """IP address from which each node registered first."""
        self._of_source: Counter[str] = Counter()
        """Number of registrations from each IP address."""

    def call(
        self, method: str, args: tuple[Any, ...], source: str = ""
    ) -> Answer | Iterator[Any]:
        """Answer a call with [code, status, value].

        Code −1 is a fault of the caller, 0 a failure, and 1 success. The answer to
        ``system.multicall`` is an iterator, which executes each of its calls when the
        answer to it is requested, so that a server can do other work in between.

        Parameters
        ----------
        method : str
            Name of the method.
        args : tuple
            Arguments of the method, which are validated here.
        source : str
            IP address of the caller, to whose limit registrations count; without it
            only the common limit applies.
        """
        # rospy uses ``system.multicall`` to unregister.
        if method == "system.multicall":
            return self._multicall(args, source)
        return self._answer(method, args, source)

    def _answer(self, method: str, args: tuple[Any, ...], source: str) -> Answer:
        # Store the source, because handlers get only the arguments of the API.
        self._source = source
        try:
            arguments = api.checked(api.MASTER, method, args)
            handler: Callable[..., Answer] = getattr(self, f"_x_{method}")
            return handler(*arguments)
        except PeerError as error:
            # The API reports errors as values, not as XML-RPC faults.
            return [-1, str(error), 0]

    def _multicall(self, args: tuple[Any, ...], source: str) -> Iterator[Any]:
        # Invalid arguments give an empty answer, since a generator cannot reject the
        # call any more.
        listed = args[0] if len(args) == 1 and isinstance(args[0], list) else []
        if len(listed) > MAX_CALLS:
            yield {"faultCode": 1, "faultString": f"expected at most {MAX_CALLS} calls"}
            return

        for one in listed:
            method, params = (
                (one.get("methodName"), one.get("params"))
                if isinstance(one, dict)
                else (None, None)
            )
            if (
                isinstance(method, str)
                and isinstance(params, list)
                and method not in _NOT_IN_MULTICALL
            ):
                yield [self._answer(method, tuple(params), source)]
            else:
                yield {
                    "faultCode": 1,
                    "faultString": "expected methodName and params of a call with a short answer",
                }

    def arguments(self, notice: Notice) -> tuple[Any, ...]:
        """Return the arguments of a pending call, from the present state.

        Parameters
        ----------
        notice : Notice
            The pending call.

        Returns
        -------
        tuple
            Caller's name and the method's own arguments. The lists may be empty by now.
        """
        if notice.method == "publisherUpdate":
            return (
                "/master",
                notice.about,
                list(self._publishers.get(notice.about, {}).values()),
            )

        if notice.method == "paramUpdate":
            try:
                # The notification names the key with a slash at its end, which the key
                # itself lacks.
                value = self.parameters.get(notice.about.rstrip("/") or "/")
            except KeyError:
                # rosmaster reports a deleted parameter as an empty dictionary.
                value = {}

            return "/master", notice.about, value

        return "/master", notice.about

    # -- nodes

    def _put(
        self, table: dict[str, dict[str, str]], name: str, caller: str, uri: str
    ) -> None:
        """Register a node under a name.

        Parameters
        ----------
        table : dict
            Publishers, subscribers or watchers: addresses by name and by node. It is
            changed.
        name : str
            Absolute name of the topic or parameter.
        caller, uri : str
            Name and address of the node.

        Raises
        ------
        PeerError
            A limit of registrations is reached.
        """
        entries = table.get(name, {})
        # The limit does not apply to a node that registers again, and only changes its
        # address.
        if caller not in entries and len(entries) >= MAX_OF_TOPIC:
            raise PeerError(f"[{name}] already has {MAX_OF_TOPIC} nodes")
        if (
            table is self._watchers
            and caller not in entries
            and self._watched >= MAX_WATCHERS
        ):
            raise PeerError(
                f"the limit of {MAX_WATCHERS} parameter subscriptions is reached"
            )

        self._register(caller, uri, caller not in entries)
        # Read the table again, because `_register` may have removed an older node of
        # the same name.
        self._watched += table is self._watchers and caller not in table.get(name, {})
        table.setdefault(name, {})[caller] = uri

    def _take(
        self, table: dict[str, dict[str, str]], name: str, caller: str, uri: str
    ) -> bool:
        """Unregister a node from a name; return whether it was registered.

        Parameters
        ----------
        table : dict
            Publishers, subscribers or watchers. It is changed.
        name : str
            Absolute name of the topic or parameter.
        caller, uri : str
            Name and address of the node. If another address is registered, the call has
            no effect.
        """
        # A replaced node may still unregister: the registration of its successor must
        # stay.
        if table.get(name, {}).get(caller) != uri:
            return False
        del table[name][caller]
        if not table[name]:
            del table[name]
        self._watched -= table is self._watchers
        self._release(caller)
        return True

    def _register(self, caller: str, uri: str, is_new: bool) -> None:
        """Record a node's address, and one more registration if `is_new`.

        Parameters
        ----------
        caller, uri : str
            Name and address of the node.
        is_new : bool
            Whether the registration adds an entry to a table.

        Raises
        ------
        PeerError
            A limit is reached, or the name belongs to a node of the simulator.
        """
        old = self._nodes.get(caller)
        # Check all limits first, so that a refused call has no effect.
        if is_new and self._entries >= MAX_ENTRIES:
            raise PeerError(f"the limit of {MAX_ENTRIES} registrations is reached")
        replaces = old is not None and old != uri
        # A node's registrations count for the address that made the first one.
        owner = self._source if replaces else self._owners.get(caller, self._source)
        if (
            (is_new or replaces)
            and owner
            and self._of_source[owner] >= MAX_ENTRIES_EACH
        ):
            raise PeerError(
                f"the limit of {MAX_ENTRIES_EACH} registrations from one address is reached"
            )

        if old is not None and replaces:
            # Never replace a node of the simulator: the shutdown call would end the
            # simulator.
            if self.is_own(old):
                raise PeerError(
                    f"[{caller}] is a node of the simulator, and cannot be replaced"
                )

            self.notices.append(
                Notice(
                    old, "shutdown", f"[{caller}] new node registered with same name"
                )
            )
            self._forget(caller)
            is_new = True

        self._nodes[caller] = uri
        self._owners[caller] = owner
        self._of_source[owner] += is_new
        self._holdings[caller] = self._holdings.get(caller, 0) + is_new
        self._entries += is_new

    def _forget(self, caller: str) -> None:
        """Remove all registrations of a node."""
        for table in (self._publishers, self._subscribers, self._watchers):
            for name in [n for n, entries in table.items() if caller in entries]:
                self._watched -= table is self._watchers
                del table[name][caller]
                if not table[name]:
                    del table[name]

        for name in [n for n, (node, _) in self._services.items() if node == caller]:
            del self._services[name]
        # Subtract all registrations of the node from the counts.
        held = self._holdings.pop(caller, 0)
        self._entries -= held
        # Subtracting a Counter also removes addresses with a count of 0.
        self._of_source -= Counter({self._owners.pop(caller, ""): held})

    def _release(self, caller: str) -> None:
        """Subtract one registration of a node; forget a node without registrations."""
        self._entries -= 1
        self._of_source -= Counter({self._owners[caller]: 1})
        self._holdings[caller] -= 1
        if not self._holdings[caller]:
            del self._holdings[caller]
            self._nodes.pop(caller, None)
            self._owners.pop(caller, None)

    def _tell_subscribers(self, topic: str) -> None:
        self.notices += [
            Notice(uri, "publisherUpdate", topic)
            for uri in self._subscribers.get(topic, {}).values()
        ]

    def _tell_watchers(self, key: str) -> None:
        """Queue notifications for the subscribers of a parameter, its parents and its children."""
        for watched, nodes in self._watchers.items():
            # Compare keys with a slash at the end, so that /a does not match /ab.
            above, below = f"{watched.rstrip('/')}/", f"{key.rstrip('/')}/"
            if f"{key}/".startswith(above) or watched.startswith(below):
                # A subscriber of a parent gets the changed key; a subscriber of a child
                # gets its own key.
                name = key if key.startswith(watched) else watched
                self.notices += [
                    Notice(uri, "paramUpdate", f"{name.rstrip('/')}/")
                    for uri in nodes.values()
                ]

    # -- registration

    def _x_registerPublisher(
        self, caller: str, topic: str, type_name: str, uri: str
    ) -> Answer:
        topic = resolved(topic, caller)
        self._put(self._publishers, topic, caller, uri)
        # "*" stands for any type, so it must not replace a known type.
        if type_name != "*" or topic not in self._types:
            self._know(topic, type_name)
        self._tell_subscribers(topic)
        return [
            1,
            f"registered [{caller}] as publisher of [{topic}]",
            list(self._subscribers.get(topic, {}).values()),
        ]

    def _know(self, topic: str, type_name: str) -> None:
        """Remember the type of a topic, even after its last publisher has left.

        Beyond `MAX_TYPES`, unused types are dropped.
        """
        self._types[topic] = type_name
        # Without a limit, names of short-lived topics would fill the memory.
        if len(self._types) > MAX_TYPES:
            known = self._publishers.keys() | self._subscribers.keys()
            spare = [t for t in self._types if t not in known]
            # Drop half of the unused types at once, so that this search is rare.
            for old in spare[: len(spare) // 2]:
                del self._types[old]

    def _x_unregisterPublisher(self, caller: str, topic: str, uri: str) -> Answer:
        topic = resolved(topic, caller)
        gone = self._take(self._publishers, topic, caller, uri)
        if gone:
            self._tell_subscribers(topic)
        return [1, f"unregistered [{caller}] as publisher of [{topic}]", int(gone)]

    def _x_registerSubscriber(
        self, caller: str, topic: str, type_name: str, uri: str
    ) -> Answer:
        topic = resolved(topic, caller)
        self._put(self._subscribers, topic, caller, uri)
        # A subscriber's type counts only if no type of the topic is known yet.
        if topic not in self._types and type_name != "*":
            self._know(topic, type_name)
        return [
            1,
            f"subscribed to [{topic}]",
            list(self._publishers.get(topic, {}).values()),
        ]

    def _x_unregisterSubscriber(self, caller: str, topic: str, uri: str) -> Answer:
        topic = resolved(topic, caller)
        gone = self._take(self._subscribers, topic, caller, uri)
        return [1, f"unregistered [{caller}] as subscriber of [{topic}]", int(gone)]

    def _x_registerService(
        self, caller: str, service: str, service_uri: str, uri: str
    ) -> Answer:
        service = resolved(service, caller)
        before = self._services.get(service)
        self._register(caller, uri, before is None or before[0] != caller)
        # Only one node can provide a service: the new provider replaces the old one.
        if before is not None and before[0] != caller:
            self._release(before[0])
        self._services[service] = (caller, service_uri)
        return [1, f"registered [{caller}] as provider of [{service}]", 1]

    def _x_unregisterService(
        self, caller: str, service: str, service_uri: str
    ) -> Answer:
        service = resolved(service, caller)
        # Name and address must match: another node, or the same node at another port,
        # may provide the service now.
        gone = self._services.get(service) == (caller, service_uri)
        if gone:
            del self._services[service]
            self._release(caller)

        return [1, f"unregistered [{caller}] as provider of [{service}]", int(gone)]

    # -- looking up

    def _x_lookupNode(self, caller: str, name: str) -> Answer:
        uri = self._nodes.get(resolved(name, caller))
        return (
            [1, "node api", uri] if uri is not None else [-1, f"{NO_NODE} [{name}]", ""]
        )

    def _x_lookupService(self, caller: str, name: str) -> Answer:
        found = self._services.get(resolved(name, caller))
        return (
            [1, "rosrpc URI", found[1]]
            if found is not None
            else [-1, f"no provider of [{name}]", ""]
        )

    def _x_getPublishedTopics(self, caller: str, subgraph: str = "") -> Answer:
        prefix = resolved(subgraph, caller).rstrip("/") + "/" if subgraph else "/"
        return [
            1,
            "current topics",
            [[t, self._types[t]] for t in self._publishers if t.startswith(prefix)],
        ]

    def _x_getTopicTypes(self, caller: str) -> Answer:
        return [1, "current topics", [[t, k] for t, k in self._types.items()]]

    def _x_getSystemState(self, caller: str) -> Answer:
        def listed(table: dict[str, dict[str, str]]) -> list[list[Any]]:
            return [[name, list(nodes)] for name, nodes in table.items() if nodes]

        services = [[name, [node]] for name, (node, _) in self._services.items()]
        return [
            1,
            "current system state",
            [listed(self._publishers), listed(self._subscribers), services],
        ]

    def _x_getUri(self, caller: str) -> Answer:
        return [1, "", self.uri]

    def _x_getPid(self, caller: str) -> Answer:
        return [1, "", os.getpid()]

    # -- parameters

    def _x_setParam(self, caller: str, key: str, value: Any) -> Answer:
        key = resolved(key, caller)
        self.parameters.set(key, value)
        self._tell_watchers(key)
        return [1, f"parameter {key} set", 0]

    def _x_getParam(self, caller: str, key: str) -> Answer:
        key = resolved(key, caller)
        try:
            return [1, f"parameter [{key}]", self.parameters.get(key)]
        except KeyError:
            return [-1, f"parameter [{key}] is not set", 0]

    def _x_deleteParam(self, caller: str, key: str) -> Answer:
        key = resolved(key, caller)
        try:
            self.parameters.delete(key)
        except KeyError:
            return [-1, f"parameter [{key}] is not set", 0]

        for watched, nodes in self._watchers.items():
            if watched == key or watched.startswith(f"{key.rstrip('/')}/"):
                self.notices += [
                    Notice(uri, "paramUpdate", f"{watched.rstrip('/')}/")
                    for uri in nodes.values()
                ]

        return [1, f"parameter [{key}] deleted", 0]

    def _x_hasParam(self, caller: str, key: str) -> Answer:
        key = resolved(key, caller)
        try:
            self.parameters.get(key)
        except KeyError:
            # A missing parameter is an answer here, not an error.
            return [1, key, False]

        return [1, key, True]

    def _x_searchParam(self, caller: str, key: str) -> Answer:
        found = self.parameters.search(caller, key)
        return (
            [1, "found", found]
            if found is not None
            else [-1, f"cannot find parameter [{key}]", ""]
        )

    def _x_getParamNames(self, caller: str) -> Answer:
        return [1, "parameter names", self.parameters.names()]

    def _x_subscribeParam(self, caller: str, uri: str, key: str) -> Answer:
        key = resolved(key, caller)
        self._put(self._watchers, key, caller, uri)
        try:
            return [1, f"subscribed to parameter [{key}]", self.parameters.get(key)]
        except KeyError:
            # rosmaster returns an empty dictionary for a parameter that is not set yet.
            return [1, f"subscribed to parameter [{key}]", {}]

    def _x_unsubscribeParam(self, caller: str, uri: str, key: str) -> Answer:
        key = resolved(key, caller)
        gone = self._take(self._watchers, key, caller, uri)
        return [1, f"unsubscribed from parameter [{key}]", int(gone)]
