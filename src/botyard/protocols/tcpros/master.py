"""A ROS master without sockets: names, publishers, subscribers, services, parameters (wiki.ros.org/ROS/Master_API, Parameter Server API).

Calls are answered at once; whom to tell of a change is collected in `notices`, to be carried out by the server. A node that registers
again under its name from another address replaces the old one, which is told to shut down.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from botyard.errors import PeerError

MASTER_PORT: Final = 11311
"""Where a master is, unless ROS_MASTER_URI says otherwise."""
Answer = list[Any]
MAX_DEPTH: Final = 50
NO_NODE: Final = "unknown node"


class Notice(NamedTuple):
    """A call that is to be made to a node."""

    uri: str
    method: str
    args: tuple[Any, ...]


def resolved(name: str, caller: str = "/") -> str:
    """An absolute name without a slash at its end; `caller` is the node that private (``~``) and relative names belong to."""
    if name.startswith("~"):
        name = f"{caller}/{name[1:]}"
    elif not name.startswith("/"):
        name = f"{caller.rpartition('/')[0]}/{name}"
    return "/" + "/".join(part for part in name.split("/") if part)


class Parameters:
    """The parameter server's tree."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """The value of a key. KeyError when there is none."""
        value: Any = self._root
        for part in key.split("/")[1:] if key != "/" else ():
            if not isinstance(value, dict):
                raise KeyError(key)
            value = value[part]
        return value

    def set(self, key: str, value: Any) -> None:
        """Set a key, and the dictionaries on the way to it.

        Raises
        ------
        PeerError
            The root must be a dictionary; the key is nested too deeply.
        """
        if key == "/":
            if not isinstance(value, dict):
                raise PeerError("cannot set the root of the parameter tree to what is no dictionary")
            self._root = value
            return
        *way, last = key.split("/")[1:]
        if len(way) > MAX_DEPTH:
            raise PeerError(f"a parameter of more than {MAX_DEPTH} levels")
        node = self._root
        for part in way:
            below = node.get(part)
            if not isinstance(below, dict):
                below = node[part] = {}
            node = below
        node[last] = value

    def delete(self, key: str) -> None:
        """Take a key away. KeyError when there is none."""
        if key == "/":
            self._root = {}
            return
        above, _, last = key.rpartition("/")
        node = self.get(above or "/")
        if not isinstance(node, dict):
            raise KeyError(key)
        del node[last]

    def names(self) -> list[str]:
        """All keys with values that are no dictionaries, sorted."""
        found: list[str] = []

        def walk(value: Any, way: str) -> None:
            if isinstance(value, dict):
                for key, below in value.items():
                    walk(below, f"{way}/{key}")
            else:
                found.append(way or "/")

        walk(self._root, "")
        return sorted(found)

    def search(self, namespace: str, key: str) -> str | None:
        """The nearest key of a name, from a namespace upwards."""
        first = key.strip("/").split("/")[0]
        if key.startswith("/"):
            return key if self._has(key) else None
        parts = [p for p in namespace.split("/") if p]
        for depth in range(len(parts), -1, -1):
            base = "/" + "/".join(parts[:depth])
            candidate = f"{base.rstrip('/')}/{first}"
            if self._has(candidate):
                return f"{base.rstrip('/')}/{key}"
        return None

    def _has(self, key: str) -> bool:
        try:
            self.get(key)
        except KeyError:
            return False
        return True


def _calls(args: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The calls of a multicall that are well-formed."""
    listed = args[0] if args and isinstance(args[0], list) else []
    return [
        one for one in listed if isinstance(one, dict) and "methodName" in one and isinstance(one.get("params"), list)
    ]


class Master:
    """A master.

    Parameters
    ----------
    uri : str
        Its address, as it tells it.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.parameters = Parameters()
        self.notices: list[Notice] = []
        self._nodes: dict[str, str] = {}
        self._publishers: dict[str, dict[str, str]] = {}
        self._subscribers: dict[str, dict[str, str]] = {}
        self._services: dict[str, tuple[str, str]] = {}
        self._types: dict[str, str] = {}
        self._watchers: dict[str, dict[str, str]] = {}

    def call(self, method: str, args: tuple[Any, ...]) -> Answer:
        """Answer a call: [code, status, value]; −1 is a fault of the caller, 0 a failure, 1 success."""
        if method == "system.multicall":  # how rospy takes back what it registered
            return [[self.call(str(one["methodName"]), tuple(one["params"]))] for one in _calls(args)]
        handler: Callable[..., Answer] | None = getattr(self, f"_x_{method}", None)
        if handler is None:
            return [-1, f"the master has no method {method}", 0]
        try:
            return handler(*args)
        except TypeError:
            return [-1, f"{method}: wrong number or kind of arguments", 0]
        except (PeerError, ValueError, AttributeError) as error:
            return [-1, f"{method}: {error}", 0]

    # -- nodes

    def _register(self, caller: str, uri: str) -> None:
        old = self._nodes.get(caller)
        if old is not None and old != uri:
            self.notices.append(Notice(old, "shutdown", ("/master", f"[{caller}] new node registered with same name")))
            for table in (self._publishers, self._subscribers, self._watchers):
                for entries in table.values():
                    entries.pop(caller, None)
            for name in [n for n, (node, _) in self._services.items() if node == caller]:
                del self._services[name]
        self._nodes[caller] = uri

    def _forget_idle(self, caller: str) -> None:
        """A node that has nothing registered any more is gone."""
        tables = (*self._publishers.values(), *self._subscribers.values(), *self._watchers.values())
        if not any(caller in t for t in tables) and not any(n == caller for n, _ in self._services.values()):
            self._nodes.pop(caller, None)

    def _tell_subscribers(self, topic: str) -> None:
        uris = list(self._publishers.get(topic, {}).values())
        for uri in self._subscribers.get(topic, {}).values():
            self.notices.append(Notice(uri, "publisherUpdate", ("/master", topic, uris)))

    # -- registration

    def _x_registerPublisher(self, caller: str, topic: str, type_name: str, uri: str) -> Answer:
        topic = resolved(topic, caller)
        self._register(caller, uri)
        self._publishers.setdefault(topic, {})[caller] = uri
        if type_name != "*" or topic not in self._types:
            self._types[topic] = type_name
        self._tell_subscribers(topic)
        return [1, f"registered [{caller}] as publisher of [{topic}]", list(self._subscribers.get(topic, {}).values())]

    def _x_unregisterPublisher(self, caller: str, topic: str, uri: str) -> Answer:
        topic = resolved(topic, caller)
        gone = self._publishers.get(topic, {}).get(caller) == uri
        if gone:
            del self._publishers[topic][caller]
            if not self._publishers[topic]:
                del self._publishers[topic]
            self._tell_subscribers(topic)
            self._forget_idle(caller)
        return [1, f"unregistered [{caller}] as publisher of [{topic}]", int(gone)]

    def _x_registerSubscriber(self, caller: str, topic: str, type_name: str, uri: str) -> Answer:
        topic = resolved(topic, caller)
        self._register(caller, uri)
        self._subscribers.setdefault(topic, {})[caller] = uri
        if topic not in self._types and type_name != "*":
            self._types[topic] = type_name
        return [1, f"subscribed to [{topic}]", list(self._publishers.get(topic, {}).values())]

    def _x_unregisterSubscriber(self, caller: str, topic: str, uri: str) -> Answer:
        topic = resolved(topic, caller)
        gone = self._subscribers.get(topic, {}).get(caller) == uri
        if gone:
            del self._subscribers[topic][caller]
            if not self._subscribers[topic]:
                del self._subscribers[topic]
            self._forget_idle(caller)
        return [1, f"unregistered [{caller}] as subscriber of [{topic}]", int(gone)]

    def _x_registerService(self, caller: str, service: str, service_uri: str, uri: str) -> Answer:
        service = resolved(service, caller)
        self._register(caller, uri)
        self._services[service] = (caller, service_uri)
        return [1, f"registered [{caller}] as provider of [{service}]", 1]

    def _x_unregisterService(self, caller: str, service: str, service_uri: str) -> Answer:
        service = resolved(service, caller)
        gone = self._services.get(service) == (caller, service_uri)
        if gone:
            del self._services[service]
            self._forget_idle(caller)
        return [1, f"unregistered [{caller}] as provider of [{service}]", int(gone)]

    # -- looking up

    def _x_lookupNode(self, caller: str, name: str) -> Answer:
        uri = self._nodes.get(resolved(name, caller))
        return [1, "node api", uri] if uri is not None else [-1, f"{NO_NODE} [{name}]", ""]

    def _x_lookupService(self, caller: str, name: str) -> Answer:
        found = self._services.get(resolved(name, caller))
        return [1, "rosrpc URI", found[1]] if found is not None else [-1, f"no provider of [{name}]", ""]

    def _x_getPublishedTopics(self, caller: str, subgraph: str = "") -> Answer:
        prefix = resolved(subgraph, caller).rstrip("/") + "/" if subgraph else "/"
        return [1, "current topics", [[t, self._types[t]] for t in self._publishers if t.startswith(prefix)]]

    def _x_getTopicTypes(self, caller: str) -> Answer:
        return [1, "current topics", [[t, k] for t, k in self._types.items()]]

    def _x_getSystemState(self, caller: str) -> Answer:
        def listed(table: dict[str, dict[str, str]]) -> list[list[Any]]:
            return [[name, list(nodes)] for name, nodes in table.items() if nodes]

        services = [[name, [node]] for name, (node, _) in self._services.items()]
        return [1, "current system state", [listed(self._publishers), listed(self._subscribers), services]]

    def _x_getUri(self, caller: str) -> Answer:
        return [1, "", self.uri]

    def _x_getPid(self, caller: str) -> Answer:
        return [1, "", os.getpid()]

    # -- parameters

    def _x_setParam(self, caller: str, key: str, value: Any) -> Answer:
        key = resolved(key, caller)
        self.parameters.set(key, value)
        for watched, nodes in self._watchers.items():
            if watched == key or watched.startswith(f"{key.rstrip('/')}/") or key.startswith(f"{watched.rstrip('/')}/"):
                name = key if key.startswith(watched) else watched
                try:
                    current = self.parameters.get(name)
                except KeyError:
                    current = {}
                for uri in nodes.values():
                    self.notices.append(Notice(uri, "paramUpdate", ("/master", f"{name.rstrip('/')}/", current)))
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
            if watched == key or watched.startswith(f"{key}/"):
                self.notices += [Notice(uri, "paramUpdate", ("/master", f"{watched}/", {})) for uri in nodes.values()]
        return [1, f"parameter [{key}] deleted", 0]

    def _x_hasParam(self, caller: str, key: str) -> Answer:
        key = resolved(key, caller)
        try:
            self.parameters.get(key)
        except KeyError:
            return [1, key, False]
        return [1, key, True]

    def _x_searchParam(self, caller: str, key: str) -> Answer:
        found = self.parameters.search(caller, key)
        return [1, "found", found] if found is not None else [-1, f"cannot find parameter [{key}]", ""]

    def _x_getParamNames(self, caller: str) -> Answer:
        return [1, "parameter names", self.parameters.names()]

    def _x_subscribeParam(self, caller: str, uri: str, key: str) -> Answer:
        key = resolved(key, caller)
        self._register(caller, uri)
        self._watchers.setdefault(key, {})[caller] = uri
        try:
            return [1, f"subscribed to parameter [{key}]", self.parameters.get(key)]
        except KeyError:
            return [1, f"subscribed to parameter [{key}]", {}]

    def _x_unsubscribeParam(self, caller: str, uri: str, key: str) -> Answer:
        key = resolved(key, caller)
        gone = self._watchers.get(key, {}).pop(caller, None) is not None
        self._forget_idle(caller)
        return [1, f"unsubscribed from parameter [{key}]", int(gone)]
