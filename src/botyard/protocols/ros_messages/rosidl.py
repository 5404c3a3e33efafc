"""Registration of ROS 2 types with rosbags, as rosidl describes them.

rosidl turns services and actions into several types. Their exact form matters, because
the hashes of types (REP-2011) depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botyard.protocols.ros_messages import nav2
from botyard.protocols.ros_messages import simulation_interfaces as simulation
from botyard.protocols.ros_messages.typedefinitions import (
    ACTIONS,
    EXTRA,
    ROS1_PACKAGES,
    ROS2_SERVICES,
    SERVICES,
)
from botyard.protocols.ros_messages.typenames import action_name, full, service_name

Parse = Callable[[str, str], Any]
"""Parser of rosbags: returns the types of a definition, from its text and name."""


def add_type(store: Any, parse: Parse, name: str, text: str) -> None:
    """Register a type, unless the store already has a type of this name.

    Parameters
    ----------
    store : object
        Type store of rosbags, which is changed.
    parse : callable
        Parser of rosbags; see `Parse`.
    name : str
        ROS 1 or ROS 2 name of the type.
    text : str
        Definition in the message language of ROS.
    """
    if full(name) not in store.types:
        store.register(parse(text + "\n", full(name)))


def add_service(
    store: Any, parse: Parse, name: str, request: str, response: str
) -> None:
    """Register a service type as rosidl describes it.

    The service becomes a request, a response, an introspection event, and a type that
    holds all three.

    Parameters
    ----------
    store : object
        Type store of rosbags, which is changed.
    parse : callable
        Parser of rosbags; see `Parse`.
    name : str
        ROS 2 name of the service.
    request, response : str
        Texts of the definitions of these parts.
    """
    event = (
        f"service_msgs/ServiceEventInfo info\n{name}_Request[<=1] "
        f"request\n{name}_Response[<=1] response"
    )
    parts = {f"{name}_Request": request, f"{name}_Response": response}
    # Humble has no introspection of services.
    if "service_msgs/msg/ServiceEventInfo" in store.types:
        parts[f"{name}_Event"] = event
        parts[name] = (
            f"{name}_Request request_message\n{name}_Response "
            f"response_message\n{name}_Event event_message"
        )

    for part, text in parts.items():
        ((constants, fields),) = parse(text + "\n", part).values()
        store.register(
            {
                part: (
                    constants,
                    [(field, _as_rosidl(kind)) for field, kind in fields],
                )
            }
        )


def add_action(
    store: Any, parse: Parse, name: str, goal: str, result: str, feedback: str
) -> None:
    """Register an action type as rosidl describes it.

    The action becomes three parts (goal, result, feedback), two services, and the
    message of its feedback.

    Parameters
    ----------
    store : object
        Type store of rosbags, which is changed.
    parse : callable
        Parser of rosbags; see `Parse`.
    name : str
        ROS 2 name of the action.
    goal, result, feedback : str
        Texts of the definitions of these parts.
    """
    uuid = "unique_identifier_msgs/UUID goal_id"
    for part, text in (("Goal", goal), ("Result", result), ("Feedback", feedback)):
        add_type(store, parse, f"{name}_{part}", text)
    accepted = "bool accepted\nbuiltin_interfaces/Time stamp"
    add_service(store, parse, f"{name}_SendGoal", f"{uuid}\n{name}_Goal goal", accepted)
    add_service(
        store, parse, f"{name}_GetResult", uuid, f"int8 status\n{name}_Result result"
    )
    add_type(
        store, parse, f"{name}_FeedbackMessage", f"{uuid}\n{name}_Feedback feedback"
    )


def fill_store(store: Any, parse: Parse, distro: str, more: Mapping[str, str]) -> None:
    """Register all types of a ROS 2 distribution that rosbags lacks.

    Parameters
    ----------
    store : object
        Type store of rosbags for the distribution, which is changed.
    parse : callable
        Parser of rosbags.
    distro : str
        Distribution of ROS 2.
    more : mapping of str to str
        Definitions of further messages by name, in the order of dependency.
    """
    standard, package = simulation.services(distro), simulation.PACKAGE
    messages = {
        f"{package}/{name}": text for name, text in simulation.messages(distro).items()
    }
    for name, text in (EXTRA | dict(more) | messages).items():
        add_type(store, parse, name, text)
    for name, texts in (
        SERVICES | ROS2_SERVICES | {f"{package}/{n}": t for n, t in standard.items()}
    ).items():
        if name.split("/")[0] not in ROS1_PACKAGES:
            add_service(store, parse, service_name(name), *texts)

    nav = {
        f"{nav2.PACKAGE}/{name}": texts for name, texts in nav2.actions(distro).items()
    }
    for name, parts in (ACTIONS | nav).items():
        add_action(store, parse, action_name(name), *parts)
    # Rename kinds of fields as rosidl does, because the hashes of types depend on the
    # names.
    for name, (constants, fields) in store.fielddefs.items():
        store.fielddefs[name] = (
            constants,
            [(field, _as_rosidl(kind)) for field, kind in fields],
        )


def _as_rosidl(kind: Any) -> Any:
    """Return the kind of a field in the form that rosidl hashes.

    rosidl has ``uint8`` for ``char``, and names of service messages without ``msg``.
    """
    if isinstance(kind, tuple):
        if kind and kind[0] == "char":
            return ("uint8", *kind[1:])
        return tuple(_as_rosidl(part) for part in kind)

    return kind.replace("/srv/msg/", "/srv/") if isinstance(kind, str) else kind


__all__ = ["add_action", "add_service", "add_type", "fill_store"]
