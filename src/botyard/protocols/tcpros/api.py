"""What calls of ROS's master and slave APIs look like, one table for each: the one place where arguments from strangers are looked at.

Behind it every name is a name, every address an address, every text short and printable (wiki.ros.org/ROS/Master_API, Parameter Server API,
Slave_API). Names by the rule of rosgraph.names, which hyphens and dots do not break here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from botyard.errors import PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.tcpros.http import address

MAX_NAME: Final = 256
"""Longest name of a node, topic, service or type, characters."""
MAX_KEY: Final = 1024
"""Longest key of a parameter, characters."""
_NAME: Final = re.compile(r"[~/A-Za-z][A-Za-z0-9_/.\-]*\Z")
_TYPE: Final = re.compile(r"[A-Za-z0-9_/*.\-]*\Z")

Check = Callable[[Any], Any]
"""Takes an argument; what is handed on of it. Raises PeerError with what was expected."""


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and value.isprintable()


def caller(value: Any) -> str:
    """Who calls, as it says: only shown."""
    if not _is_text(value, MAX_NAME):
        raise PeerError(f"expected the caller's name, at most {MAX_NAME} printable characters")
    return str(value)


def name(value: Any) -> str:
    """A name of a node, topic or service, absolute or not."""
    if not (isinstance(value, str) and len(value) <= MAX_NAME and _NAME.match(value)):
        raise PeerError(f"expected a name in the graph, found {shown(value)!r}")
    return value


def type_name(value: Any) -> str:
    """A type of messages."""
    if not (isinstance(value, str) and len(value) <= MAX_NAME and _TYPE.match(value)):
        raise PeerError(f"expected a type, found {shown(value)!r}")
    return value


def uri(value: Any) -> str:
    """Address of a node."""
    address(value)
    return str(value)


def service_uri(value: Any) -> str:
    """Address of a service."""
    address(value, "rosrpc")
    return str(value)


def key(value: Any) -> str:
    """Key of a parameter."""
    if not (value and _is_text(value, MAX_KEY)):
        raise PeerError(
            f"expected the key of a parameter, at most {MAX_KEY} printable characters, found {shown(value)!r}"
        )
    return str(value)


def text(value: Any) -> str:
    """A text for people."""
    if not isinstance(value, str):
        raise PeerError(f"expected a text, found {type(value).__name__}")
    return shown(value, MAX_TEXT)


def space(value: Any) -> str:
    """A namespace; empty: all."""
    return name(value) if value else ""


def protocols(value: Any) -> list[str]:
    """Protocols that a subscriber speaks: their names, of ``[[name, …], …]``."""
    if not isinstance(value, list) or not all(isinstance(p, list) and p and isinstance(p[0], str) for p in value):
        raise PeerError("expected a list of protocols, [[name, …], …]")
    return [p[0] for p in value]


def anything(value: Any) -> Any:
    """A value."""
    return value


class Method(NamedTuple):
    """A method.

    Attributes
    ----------
    needed : tuple of checks
        Of the arguments that there must be; the first is who calls.
    more : tuple of checks
        Of those that there may be.
    """

    needed: tuple[Check, ...]
    more: tuple[Check, ...] = ()


MASTER: Final[Mapping[str, Method]] = {
    "registerPublisher": Method((name, name, type_name, uri)),
    "unregisterPublisher": Method((name, name, uri)),
    "registerSubscriber": Method((name, name, type_name, uri)),
    "unregisterSubscriber": Method((name, name, uri)),
    "registerService": Method((name, name, service_uri, uri)),
    "unregisterService": Method((name, name, service_uri)),
    "lookupNode": Method((caller, name)),
    "lookupService": Method((caller, name)),
    "getPublishedTopics": Method((caller,), (space,)),
    "getTopicTypes": Method((caller,)),
    "getSystemState": Method((caller,)),
    "getUri": Method((caller,)),
    "getPid": Method((caller,)),
    "setParam": Method((caller, key, anything)),
    "getParam": Method((caller, key)),
    "deleteParam": Method((caller, key)),
    "hasParam": Method((caller, key)),
    "searchParam": Method((caller, key)),
    "getParamNames": Method((caller,)),
    "subscribeParam": Method((name, uri, key)),
    "unsubscribeParam": Method((name, uri, key)),
}
"""The master's methods; ``system.multicall`` beside them."""
SLAVE: Final[Mapping[str, Method]] = {
    "getBusStats": Method((caller,)),
    "getBusInfo": Method((caller,)),
    "getMasterUri": Method((caller,)),
    "getPid": Method((caller,)),
    "getSubscriptions": Method((caller,)),
    "getPublications": Method((caller,)),
    "paramUpdate": Method((caller, key, anything)),
    "publisherUpdate": Method((caller, name, anything)),  # what is new is asked of the master
    "requestTopic": Method((caller, name, protocols)),
    "shutdown": Method((caller,), (text,)),
}
"""A node's methods."""


def checked(table: Mapping[str, Method], method: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call.

    Raises
    ------
    PeerError
        There is no such method, or an argument is not what it expects; the message says which.
    """
    known = table.get(method)
    if known is None:
        raise PeerError(f"there is no method {shown(method)!r}")
    checks = known.needed + known.more
    if not len(known.needed) <= len(args) <= len(checks):
        raise PeerError(f"{method}: expected {len(known.needed)} arguments, found {len(args)}")
    found = []
    for number, (check, value) in enumerate(zip(checks, args, strict=False), 1):
        try:
            found.append(check(value))
        except PeerError as error:
            raise PeerError(f"{method}, argument {number}: {error}") from None
    return tuple(found)


def answer(value: Any) -> tuple[int, str, Any]:
    """The three parts of an answer of either API.

    Raises
    ------
    PeerError
        It has not three.
    """
    if not (isinstance(value, list) and len(value) == 3 and type(value[0]) is int):
        raise PeerError(f"expected [code, status, value], found {shown(value, 100)}")
    return value[0], shown(value[1], MAX_TEXT), value[2]


__all__ = ["MASTER", "MAX_KEY", "MAX_NAME", "MAX_TEXT", "SLAVE", "Check", "Method", "answer", "checked"]
