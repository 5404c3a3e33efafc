"""ROS 2's parameters of a node (``ros2 param``): six services and /parameter_events.

The world's node has the acceleration limits of every robot, as ``<robot>.trans_accel``
and so on. Messages: rcl_interfaces. Unknown parameters are "not set", as in rclpy. Each
refused change is answered with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Service, Topic
from botyard.protocols.ros_messages.limits import MAX_LISTED
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.typenames import snake_case
from botyard.protocols.ros_messages.types import Types

NOT_SET: Final = 0
BOOL: Final = 1
DOUBLE: Final = 3
STRING: Final = 4
EVENTS_PERIOD: Final = 1.0
"""Simulated time between checks for changes that were made without these services, s."""


Sort = bool | float | str
"""Value of a parameter."""


@dataclass(frozen=True, slots=True)
class Value:
    """Parameter of a node, with functions that read and change it.

    Attributes
    ----------
    get : callable
        Returns the value: bool, float or str.
    about : str
        Meaning and unit.
    put : callable or None
        Changes the value, or raises a `BotyardError`; None for a read-only parameter.
    limit : float
        Greatest value of a number; the least value is 0. If the limit is infinite, only
        `put` checks the number.
    """

    get: Callable[[], Sort]
    about: str
    put: Callable[[float], None] | None = None
    limit: float = math.inf


class Parameters:
    """Parameter services of a node.

    Parameters
    ----------
    node : str
        Absolute name of the node.
    types : Types
        Message types of the distribution.
    values : callable
        Returns the present parameters by name.
    """

    def __init__(
        self, node: str, types: Types, values: Callable[[], Mapping[str, Value]]
    ) -> None:
        self._node = node
        self._types = types
        self._values = values
        self._told: dict[str, Sort] = {}
        self.events = Topic(
            "/parameter_events",
            "rcl_interfaces/ParameterEvent",
            self._event,
            "added, removed and changed parameters",
            queue=1000,
            period=EVENTS_PERIOD,
            wanted=self._begin,
            only="cdr",
        )
        """Topic of changes; code that adds or removes parameters calls its `publish`."""

    def services(self) -> list[Service]:
        """Return the parameter services."""
        serving: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
            "DescribeParameters": (
                self._describe,
                "types, meanings and ranges of parameters",
            ),
            "GetParameters": (self._get, "values"),
            "GetParameterTypes": (self._kinds, "types of values"),
            "ListParameters": (self._list, "names"),
            "SetParameters": (self._set, "change values"),
            "SetParametersAtomically": (
                self._set_all,
                "change all of these values, or none",
            ),
        }
        return [self._service(name, *entry) for name, entry in serving.items()]

    def _service(
        self, name: str, answer: Callable[[Any], dict[str, Any]], about: str
    ) -> Service:
        path = snake_case(name)
        response = f"rcl_interfaces/srv/{name}_Response"

        def serve(request: Any) -> Any:
            # The requests of the six services name their list differently.
            listed = len(
                getattr(
                    request,
                    "names",
                    getattr(request, "parameters", getattr(request, "prefixes", ())),
                )
            )
            if listed > MAX_LISTED:
                raise PeerError(
                    f"{self._node}/{path}: expected at most {MAX_LISTED} names, found {listed}"
                )

            return self._types.two(response)(**answer(request))

        return Service(
            f"{self._node}/{path}", f"rcl_interfaces/{name}", serve, about, only="cdr"
        )

    # -- events

    def _begin(self, _wanted: bool) -> None:
        """Store the present values, so that new subscribers get only later changes."""
        self._told = self._present()

    def _present(self) -> dict[str, Sort]:
        return {name: value.get() for name, value in self._values().items()}

    def _event(self, stamp: Stamp) -> Any:
        """Return the changes since the last event; None without changes.

        One event has at most `MAX_LISTED` parameters.
        """
        now, told = self._present(), self._told

        new = [name for name in now if name not in told][:MAX_LISTED]
        changed = [
            name for name, value in now.items() if name in told and told[name] != value
        ][: MAX_LISTED - len(new)]
        gone = [name for name in told if name not in now][
            : MAX_LISTED - len(new) - len(changed)
        ]

        # Publish no empty event, which would wake all subscribers for nothing.
        if not (new or changed or gone):
            return None

        told |= {name: now[name] for name in (*new, *changed)}
        return self._types.two("rcl_interfaces/ParameterEvent")(
            stamp=self._types["builtin_interfaces/Time"](*stamp),
            node=self._node,
            new_parameters=self._named(new, now),
            changed_parameters=self._named(changed, now),
            deleted_parameters=self._named(
                gone, {name: told.pop(name) for name in gone}
            ),
        )

    def _named(self, names: Iterable[str], values: Mapping[str, Sort]) -> list[Any]:
        parameter = self._types.two("rcl_interfaces/Parameter")
        return [
            parameter(name=name, value=self._packed(values[name])) for name in names
        ]

    # -- values

    def _packed(self, value: Sort | None) -> Any:
        kind = self._types.two("rcl_interfaces/ParameterValue")
        sort, text, number = NOT_SET, "", 0.0
        if isinstance(value, str):
            sort, text = STRING, value
        elif value is not None:
            sort, number = BOOL if isinstance(value, bool) else DOUBLE, float(value)
        return kind(
            type=sort,
            bool_value=value is True,
            integer_value=0,
            double_value=number,
            string_value=text,
            byte_array_value=np.zeros(0, np.uint8),
            bool_array_value=np.zeros(0, np.bool_),
            integer_array_value=np.zeros(0, np.int64),
            double_array_value=np.zeros(0),
            string_array_value=[],
        )

    def _get(self, request: Any) -> dict[str, Any]:
        values = self._values()
        return {
            "values": [
                self._packed(values[n].get() if n in values else None)
                for n in request.names
            ]
        }

    def _kinds(self, request: Any) -> dict[str, Any]:
        values = self._values()
        kinds = [
            self._packed(values[n].get() if n in values else None).type
            for n in request.names
        ]
        return {"types": np.array(kinds, np.uint8)}

    def _list(self, request: Any) -> dict[str, Any]:
        wanted, depth = set(request.prefixes), int(request.depth)
        names = [name for name in self._values() if _is_listed(name, wanted, depth)]
        prefixes = sorted({n.rpartition(".")[0] for n in names if "." in n})
        return {
            "result": self._types.two("rcl_interfaces/ListParametersResult")(
                names, prefixes
            )
        }

    def _describe(self, request: Any) -> dict[str, Any]:
        values = self._values()
        return {
            "descriptors": [self._described(n, values.get(n)) for n in request.names]
        }

    def _described(self, name: str, value: Value | None) -> Any:
        t = self._types.two
        ranges = []
        if value is not None and math.isfinite(value.limit):
            ranges = [t("rcl_interfaces/FloatingPointRange")(0.0, value.limit, 0.0)]
        return t("rcl_interfaces/ParameterDescriptor")(
            name=name,
            type=NOT_SET if value is None else self._packed(value.get()).type,
            description="" if value is None else value.about,
            additional_constraints="",
            read_only=value is None or value.put is None,
            dynamic_typing=False,
            floating_point_range=ranges,
            integer_range=[],
        )

    # -- changes

    def _complaint(self, parameter: Any, values: Mapping[str, Value]) -> str:
        """Return the reason for refusing a change; empty if it is accepted.

        Parameters
        ----------
        parameter : rcl_interfaces/Parameter
            Name and requested value of the parameter.
        values : mapping of str to Value
            Parameters of the node.
        """
        name = shown(parameter.name)
        value = values.get(str(parameter.name))
        if value is None:
            return f"no parameter {name}"
        if value.put is None:
            return f"{name} is read-only"
        # Like ROS 2, convert no integers to doubles.
        if parameter.value.type != DOUBLE:
            return f"{name}: expected a double, for example 1.0, found another type"
        number = float(parameter.value.double_value)
        if math.isfinite(value.limit) and not 0.0 <= number <= value.limit:
            return f"{name}: expected 0 … {value.limit:g}, found {number:g}"
        return ""

    def _change(self, parameter: Any, values: Mapping[str, Value]) -> str:
        """Change a parameter; return the reason of a refusal, or an empty text.

        Parameters
        ----------
        parameter : rcl_interfaces/Parameter
            Name and requested value of the parameter.
        values : mapping of str to Value
            Parameters of the node.
        """
        complaint = self._complaint(parameter, values)
        put = values[str(parameter.name)].put if not complaint else None
        if put is None:
            return complaint
        try:
            put(float(parameter.value.double_value))
        except BotyardError as error:
            return str(error)

        return ""

    def _result(self, complaint: str) -> Any:
        return self._types.two("rcl_interfaces/SetParametersResult")(
            not complaint, complaint
        )

    def _set(self, request: Any) -> dict[str, Any]:
        values = self._values()
        results = [self._result(self._change(p, values)) for p in request.parameters]
        self.events.publish()
        return {"results": results}

    def _set_all(self, request: Any) -> dict[str, Any]:
        values = self._values()

        # All values are checked first, so that usually no change must be undone.
        complaint = next(
            (c for p in request.parameters if (c := self._complaint(p, values))), ""
        )
        before: dict[str, float] = {}
        for parameter in () if complaint else request.parameters:
            name = str(parameter.name)
            old = float(values[name].get())
            complaint = self._change(parameter, values)
            if complaint:
                break
            # A name may occur twice in the request; only the value before its first
            # change is the old one.
            before.setdefault(name, old)

        if complaint:
            self._restore(before, values)
        self.events.publish()
        return {"result": self._result(complaint)}

    @staticmethod
    def _restore(before: Mapping[str, float], values: Mapping[str, Value]) -> None:
        for name, old in before.items():
            put = values[name].put
            if put is not None:
                put(old)


def _is_listed(name: str, prefixes: AbstractSet[str], depth: int) -> bool:
    """Return whether a parameter matches a request of names by prefixes and depth.

    Source: rclcpp, NodeParameters::list_parameters.

    Parameters
    ----------
    name : str
        Name of the parameter; dots separate its parts.
    prefixes : set of str
        Prefixes of the request; empty for all parameters.
    depth : int
        Greatest number of parts of a name that may follow after a prefix; 0 for any
        number.
    """
    parts = name.split(".")
    if not prefixes:
        return depth == 0 or len(parts) <= depth
    if name in prefixes:
        return True
    # Start of the shortest prefix after which at most `depth` parts follow.
    first = max(1, len(parts) - depth) if depth else 1
    return any(".".join(parts[:k]) in prefixes for k in range(first, len(parts)))
