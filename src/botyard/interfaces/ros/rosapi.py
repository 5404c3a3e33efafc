"""Services of rosapi, with which rosbridge's clients query the ROS graph.

The services list topics, types, services, nodes and parameters (rosapi of rosbridge_suite).
Requests and responses are plain values; the types of rosapi_msgs are not needed, because clients
call the services by name.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from botyard.errors import PeerError
from botyard.interfaces.ros.rosbridge_goals import SEND, Serving
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.typenames import full, service_name
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.rosbridge.bus import Answer
from botyard.protocols.rosbridge.values import Values

PREFIX: Final = "/rosapi/"
NODE: Final = "/rosapi"
_EXAMPLES: Final = {
    "bool": "False",
    "string": "",
    "wstring": "",
    "float32": "0.0",
    "float64": "0.0",
}
_NOT_SET, _BOOL, _INTEGER, _DOUBLE, _STRING = range(5)
"""Types of parameters (rcl_interfaces/ParameterType)."""
_VALUES: Final = {
    _BOOL: "bool_value",
    _INTEGER: "integer_value",
    _DOUBLE: "double_value",
    _STRING: "string_value",
}


class TopicEntry(Protocol):
    """Interface of a topic that the simulator or a client publishes or subscribes to."""

    @property
    def name(self) -> str:
        """Absolute name of the topic."""
        ...

    @property
    def type_name(self) -> str:
        """Name of the topic's message type in ROS 2."""
        ...

    @property
    def publishers(self) -> Iterable[str]:
        """Nodes that publish the topic."""
        ...

    @property
    def subscribers(self) -> Iterable[str]:
        """Nodes that subscribe to the topic."""
        ...


class Directory(Protocol):
    """Interface of the directory of topics, services and actions."""

    types: Types
    values: Values

    @property
    def stamp(self) -> Callable[[], Stamp]:
        """Function that returns the present time."""
        ...

    def all_topics(self) -> Iterator[TopicEntry]:
        """Yield each topic that has a publisher or a subscriber."""
        ...

    def all_services(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and node of every service."""
        ...

    @property
    def client_actions(self) -> Iterable[str]:
        """Names of the actions that clients serve."""
        ...

    @property
    def services(self) -> Mapping[str, Serving]:
        """Services of the graph by name.

        Services of clients are not included, because a client may never answer.
        """
        ...


def _text(args: dict[str, Any], name: str) -> str:
    """Return an argument of a request that must be text."""
    found = args.get(name, "")
    if not isinstance(found, str):
        raise PeerError(
            f"rosapi: {name}: expected a text, found {shown(repr(found)[:MAX_TEXT], MAX_TEXT)}"
        )

    return found


def _absolute(name: str) -> str:
    return name if name.startswith("/") else f"/{name}"


class Rosapi:
    """Services of rosapi.

    Parameters
    ----------
    directory : Directory
        Directory of topics, services and actions.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._serving: dict[
            str, tuple[str, tuple[str, ...], Callable[..., dict[str, Any]]]
        ] = {
            "topics": ("Topics", (), self._topics),
            "topic_type": ("TopicType", ("topic",), self._topic_type),
            "topics_for_type": ("TopicsForType", ("type",), self._topics_for_type),
            "topics_and_raw_types": (
                "TopicsAndRawTypes",
                (),
                self._topics_and_raw_types,
            ),
            "services": ("Services", (), self._services),
            "service_type": ("ServiceType", ("service",), self._service_type),
            "services_for_type": (
                "ServicesForType",
                ("type",),
                self._services_for_type,
            ),
            "service_node": ("ServiceNode", ("service",), self._service_node),
            "service_providers": (
                "ServiceProviders",
                ("service",),
                self._service_providers,
            ),
            "nodes": ("Nodes", (), self._nodes),
            "node_details": ("NodeDetails", ("node",), self._node_details),
            "publishers": ("Publishers", ("topic",), self._publishers),
            "subscribers": ("Subscribers", ("topic",), self._subscribers),
            "action_servers": ("GetActionServers", (), self._action_servers),
            "get_time": ("GetTime", (), self._get_time),
            "get_ros_version": ("GetROSVersion", (), self._get_ros_version),
            "message_details": ("MessageDetails", ("type",), self._message_details),
            "service_request_details": (
                "ServiceRequestDetails",
                ("type",),
                self._request_details,
            ),
            "service_response_details": (
                "ServiceResponseDetails",
                ("type",),
                self._response_details,
            ),
            "has_param": ("HasParam", ("name",), self._has_param),
            "get_param": ("GetParam", ("name", "default_value"), self._get_param),
            "set_param": ("SetParam", ("name", "value"), self._set_param),
            "delete_param": ("DeleteParam", ("name",), self._delete_param),
            "get_param_names": ("GetParamNames", (), self._get_param_names),
        }

    def call(self, name: str, values: Any, answer: Answer) -> None:
        """Answer a call of a rosapi service.

        Parameters
        ----------
        name : str
            Absolute name of the service, such as ``/rosapi/topics``.
        values : object
            Fields of the request by name, or a list of them in order.
        answer : callable
            Called with True and the response as plain values.

        Raises
        ------
        PeerError
            The service does not exist, or the request is not valid.
        """
        found = self._serving.get(name.removeprefix(PREFIX))
        if found is None:
            raise PeerError(f'rosbridge: no service "{shown(name, MAX_TEXT)}"')
        _, fields, act = found
        # rosbridge accepts values as an object, or as a list in the order of the
        # fields.
        args = (
            dict(zip(fields, values, strict=False))
            if isinstance(values, list)
            else values or {}
        )
        answer(True, act(*(_text(args, field) for field in fields)))

    def services(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and node of the rosapi services."""
        return (
            (f"{PREFIX}{name}", f"rosapi_msgs/srv/{kind}", NODE)
            for name, (kind, _, _) in self._serving.items()
        )

    # -- topics

    def _all_topics(self) -> list[TopicEntry]:
        return sorted(self._directory.all_topics(), key=lambda t: t.name)

    def _topic(self, name: str) -> TopicEntry | None:
        return next(
            (t for t in self._directory.all_topics() if t.name == _absolute(name)), None
        )

    def _topics(self) -> dict[str, Any]:
        found = self._all_topics()
        return {
            "topics": [t.name for t in found],
            "types": [t.type_name for t in found],
        }

    def _topic_type(self, topic: str) -> dict[str, Any]:
        found = self._topic(topic)
        return {"type": "" if found is None else found.type_name}

    def _topics_for_type(self, kind: str) -> dict[str, Any]:
        return {
            "topics": [t.name for t in self._all_topics() if t.type_name == full(kind)]
        }

    # Definitions are long, so make the definition of each type once, not for each
    # topic.
    def _topics_and_raw_types(self) -> dict[str, Any]:
        texts: dict[str, str] = {}
        for topic in self._directory.all_topics():
            if topic.type_name not in texts:
                texts[topic.type_name] = self._directory.types.definition2(
                    topic.type_name
                )

        listed = self._topics()
        return {
            **listed,
            "typedefs_full_text": [texts[kind] for kind in listed["types"]],
        }

    def _publishers(self, topic: str) -> dict[str, Any]:
        found = self._topic(topic)
        return {"publishers": [] if found is None else sorted(set(found.publishers))}

    def _subscribers(self, topic: str) -> dict[str, Any]:
        found = self._topic(topic)
        return {"subscribers": [] if found is None else sorted(set(found.subscribers))}

    # -- services and nodes

    def _all_services(self) -> list[tuple[str, str, str]]:
        return sorted([*self._directory.all_services(), *self.services()])

    def _action_servers(self) -> dict[str, Any]:
        names = [
            # Each action server has a service for its goals, which reveals its name.
            name.removesuffix(SEND)
            for name, _, _ in self._all_services()
            if name.endswith(SEND)
        ]
        return {"action_servers": [*names, *self._directory.client_actions]}

    def _services(self) -> dict[str, Any]:
        return {"services": [name for name, _, _ in self._all_services()]}

    def _of_service(self, service: str) -> tuple[str, str]:
        """Return the type and the node of a service; both empty if it does not exist."""
        return next(
            (
                (kind, node)
                for name, kind, node in self._all_services()
                if name == _absolute(service)
            ),
            ("", ""),
        )

    def _service_type(self, service: str) -> dict[str, Any]:
        return {"type": self._of_service(service)[0]}

    def _service_node(self, service: str) -> dict[str, Any]:
        return {"node": self._of_service(service)[1]}

    def _service_providers(self, service: str) -> dict[str, Any]:
        _, node = self._of_service(service)
        return {"providers": [node] if node else []}

    def _services_for_type(self, kind: str) -> dict[str, Any]:
        return {
            "services": [
                name
                for name, its, _ in self._all_services()
                if its == service_name(kind)
            ]
        }

    def _nodes(self) -> dict[str, Any]:
        found = {node for _, _, node in self._all_services()}
        for topic in self._directory.all_topics():
            found.update(topic.publishers, topic.subscribers)
        return {"nodes": sorted(found)}

    def _node_details(self, node: str) -> dict[str, Any]:
        topics = self._all_topics()
        return {
            "subscribing": [t.name for t in topics if node in t.subscribers],
            "publishing": [t.name for t in topics if node in t.publishers],
            "services": [name for name, _, its in self._all_services() if its == node],
        }

    # -- time and types

    def _get_time(self) -> dict[str, Any]:
        sec, nanosec = self._directory.stamp()
        return {"time": {"sec": sec, "nanosec": nanosec}}

    def _get_ros_version(self) -> dict[str, Any]:
        return {"version": 2, "distro": self._directory.types.distro}

    def _message_details(self, kind: str) -> dict[str, Any]:
        return {"typedefs": self._typedefs(full(kind))}

    def _request_details(self, kind: str) -> dict[str, Any]:
        return {"typedefs": self._typedefs(f"{service_name(kind)}_Request")}

    def _response_details(self, kind: str) -> dict[str, Any]:
        return {"typedefs": self._typedefs(f"{service_name(kind)}_Response")}

    def _typedefs(self, kind: str) -> list[dict[str, Any]]:
        """Return rosapi_msgs/TypeDef of a type and of all types in it."""
        waiting, found = [kind], dict[str, dict[str, Any]]()
        while waiting:
            name = waiting.pop(0)

            # A type may occur in several others; each is listed once.
            if name in found:
                continue
            names, kinds, counts, examples = [], [], [], []

            for field, sort, inner, count in map(
                _described, self._directory.values.fields(name)
            ):
                names.append(field)
                kinds.append(inner)
                counts.append(count)

                # Examples of values, as in rosapi: an empty array, the default of a
                # primitive, or an empty message.
                examples.append(
                    "[]" if count >= 0 else _EXAMPLES.get(inner, "{}" if sort else "0")
                )
                if sort:
                    waiting.append(inner)

            constants = self._directory.types.constants(name)
            found[name] = {
                "type": name,
                "fieldnames": names,
                "fieldtypes": kinds,
                "fieldarraylen": counts,
                "examples": examples,
                "constnames": [constant for constant, _ in constants],
                "constvalues": [str(value) for _, value in constants],
            }

        return list(found.values())

    # -- parameters, by the services of their node

    def _ask(self, service: str, values: dict[str, Any]) -> Any:
        """Return the response of a service that answers immediately."""
        serving = self._directory.services.get(service)
        if serving is None:
            raise PeerError(f'rosapi: no service "{shown(service, MAX_TEXT)}"')
        found: list[tuple[bool, Any]] = []
        serving.call(
            values, lambda is_good, response: found.append((is_good, response))
        )
        if not found or not found[0][0]:
            raise PeerError(
                f"rosapi: the service {service} has failed, or did not answer at once"
            )
        return found[0][1]

    def _parameter(self, name: str) -> Any:
        """Return the value of a parameter ``node:parameter``; None if it is not set."""
        node, parameter = _split(name)
        value = self._ask(f"{node}/get_parameters", {"names": [parameter]})["values"][0]
        field = _VALUES.get(value["type"])
        return None if field is None else value[field]

    def _has_param(self, name: str) -> dict[str, Any]:
        return {"exists": self._parameter(name) is not None}

    def _get_param(self, name: str, default: str) -> dict[str, Any]:
        value = self._parameter(name)
        if value is None:
            return {
                "value": default,
                "successful": False,
                "reason": f"{shown(name, MAX_TEXT)} is not set",
            }

        return {"value": json.dumps(value), "successful": True, "reason": ""}

    def _set_param(self, name: str, text: str) -> dict[str, Any]:
        node, parameter = _split(name)
        try:
            value = json.loads(text)
        # As in rosapi, a text that is not JSON is the value itself.
        except (ValueError, RecursionError):
            value = text

        kinds = {bool: _BOOL, int: _INTEGER, float: _DOUBLE, str: _STRING}
        kind = kinds.get(type(value))
        # Lists and objects are refused: only parameters with a single value can be set.
        if kind is None:
            raise PeerError(
                "rosapi: value: expected true, false, a number or a text, found "
                f"{shown(text, MAX_TEXT)}"
            )

        if kind == _INTEGER and isinstance(self._parameter(name), float):
            with contextlib.suppress(OverflowError):
                # JSON writers print 1.0 as 1, so an integer is accepted for a double.
                kind, value = _DOUBLE, float(value)

        wanted = {"name": parameter, "value": {"type": kind, _VALUES[kind]: value}}
        result = self._ask(f"{node}/set_parameters", {"parameters": [wanted]})[
            "results"
        ][0]
        return {"successful": result["successful"], "reason": result["reason"]}

    def _delete_param(self, name: str) -> dict[str, Any]:
        return {
            "successful": False,
            "reason": "parameters of the simulator cannot be deleted",
        }

    def _get_param_names(self) -> dict[str, Any]:
        found = []
        for name, serving in sorted(self._directory.services.items()):
            if serving.type_name == "rcl_interfaces/srv/ListParameters":
                listed = self._ask(name, {})["result"]["names"]
                found += [f"{serving.node}:{parameter}" for parameter in listed]

        return {"names": found}


def _split(name: str) -> tuple[str, str]:
    """Return the node and the parameter of a text ``/node:parameter``."""
    node, colon, parameter = name.partition(":")
    if not colon:
        raise PeerError(
            f"rosapi: name: expected node:parameter, found {shown(name, MAX_TEXT)}"
        )

    return _absolute(node), parameter


def _described(field: tuple[str, Any]) -> tuple[str, bool, str, int]:
    """Return name, whether the type is a message, type, and array length of a field.

    The length is in rosapi's form: −1 for no array, 0 for an array of any length.
    """
    name, kind = field
    # Codes of `Values.fields`: 1 primitive, 2 message, 3 array of fixed length, 4 array
    # of any length.
    sort, what = int(kind[0]), kind[1]
    count = -1
    if sort > 2:
        count, kind = (what[1] if sort == 3 else 0), what[0]
        sort, what = int(kind[0]), kind[1]

    return name, sort == 2, what if sort == 2 else what[0], count


__all__ = ["NODE", "PREFIX", "Rosapi"]
