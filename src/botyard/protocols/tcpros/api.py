"""Methods of ROS's master and slave APIs, and validation of their untrusted arguments.

After validation, names and addresses are well formed, and texts are short and
printable. Names follow the rule of rosgraph.names, with hyphens and dots allowed.
Sources: wiki.ros.org/ROS/Master_API, Parameter Server API, Slave_API.
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
# Use \Z, because $ also matches before a line break at the end.
_NAME: Final = re.compile(r"[~/A-Za-z][A-Za-z0-9_/.\-]*\Z")
_TYPE: Final = re.compile(r"[A-Za-z0-9_/*.\-]*\Z")

Check = Callable[[Any], Any]
"""Function that validates an argument, and returns it, possibly shortened.

It raises a PeerError that states the expected form.
"""


def _is_text(value: object, limit: int) -> bool:
    return isinstance(value, str) and len(value) <= limit and value.isprintable()


def caller(value: Any) -> str:
    """Validate the caller's name, which is only displayed.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is not a printable text of at most `MAX_NAME` characters.
    """
    if not _is_text(value, MAX_NAME):
        raise PeerError(
            f"expected the caller's name, at most {MAX_NAME} printable characters, found "
            f"{shown(str(value), 100)!r}"
        )

    return str(value)


def name(value: Any) -> str:
    """Validate a name of a node, topic or service, absolute or not.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is not a name of at most `MAX_NAME` characters.
    """
    if not (isinstance(value, str) and len(value) <= MAX_NAME and _NAME.match(value)):
        raise PeerError(
            "expected a name of the graph, which starts with a letter, / or ~, has only "
            f"letters, digits and the characters _ / . -, and at most {MAX_NAME} "
            f"characters, found {shown(value)!r}"
        )
    return value


def type_name(value: Any) -> str:
    """Validate a message type.

    Parameters
    ----------
    value : object
        Argument of a call; ``*`` means any type.

    Raises
    ------
    PeerError
        The value is not a type of at most `MAX_NAME` characters.
    """
    if not (isinstance(value, str) and len(value) <= MAX_NAME and _TYPE.match(value)):
        raise PeerError(
            "expected a type such as std_msgs/String or *, with at most "
            f"{MAX_NAME} characters, found {shown(value)!r}"
        )
    return value


def uri(value: Any) -> str:
    """Validate the address of a node.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is not an address ``http://host:port``.
    """
    address(value)
    return str(value)


def service_uri(value: Any) -> str:
    """Validate the address of a service.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is not an address ``rosrpc://host:port``.
    """
    address(value, "rosrpc")
    return str(value)


def key(value: Any) -> str:
    """Validate the key of a parameter.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is not a printable text of 1 to `MAX_KEY` characters.
    """
    if not (value and _is_text(value, MAX_KEY)):
        raise PeerError(
            f"expected the key of a parameter, at most {MAX_KEY} printable "
            f"characters, found {shown(value)!r}"
        )

    return str(value)


def text(value: Any) -> str:
    """Validate a text for display, and shorten it.

    Parameters
    ----------
    value : object
        Argument of a call.

    Returns
    -------
    str
        At most `MAX_TEXT` printable characters.

    Raises
    ------
    PeerError
        The value is not a text.
    """
    if not isinstance(value, str):
        raise PeerError(f"expected a text, found {type(value).__name__}")
    # Escape and shorten the text, because any program in the network may have sent it.
    return shown(value, MAX_TEXT)


def space(value: Any) -> str:
    """Validate a namespace; an empty namespace means all names.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is neither empty nor a name.
    """
    return name(value) if value else ""


def protocols(value: Any) -> list[str]:
    """Validate a list ``[[name, …], …]`` of protocols, and return their names.

    Parameters
    ----------
    value : object
        Argument of a call.

    Raises
    ------
    PeerError
        The value is not such a list.
    """
    if not isinstance(value, list) or not all(
        isinstance(p, list) and p and isinstance(p[0], str) for p in value
    ):
        raise PeerError("expected a list of protocols, [[name, …], …]")

    # Ignore the parameters of protocols: only the name TCPROS matters.
    return [p[0] for p in value]


def anything(value: Any) -> Any:
    """Accept any value."""
    return value


class Method(NamedTuple):
    """Method of an API.

    Attributes
    ----------
    needed : tuple of checks
        Checks of the required arguments; the first is for the caller's name.
    more : tuple of checks
        Checks of the optional arguments.
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
"""Methods of the master, except ``system.multicall``."""
SLAVE: Final[Mapping[str, Method]] = {
    "getBusStats": Method((caller,)),
    "getBusInfo": Method((caller,)),
    "getMasterUri": Method((caller,)),
    "getPid": Method((caller,)),
    "getSubscriptions": Method((caller,)),
    "getPublications": Method((caller,)),
    "paramUpdate": Method((caller, key, anything)),
    "publisherUpdate": Method(
        # The node ignores the list of publishers in this call, because a forged list
        # could redirect it. It requests the list from the master instead.
        (caller, name, anything)
    ),
    "requestTopic": Method((caller, name, protocols)),
    "shutdown": Method((caller,), (text,)),
}
"""Methods of a node."""


def checked(
    table: Mapping[str, Method], method: str, args: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Validate the arguments of a call.

    Parameters
    ----------
    table : mapping of str to Method
        `MASTER` or `SLAVE`.
    method : str
        Name of the method, from the peer.
    args : tuple
        Arguments from the peer; see `xmlrpc.Document`.

    Returns
    -------
    tuple
        Valid arguments; texts for display are shortened.

    Raises
    ------
    PeerError
        The method is unknown, or an argument is invalid; the message names it.
    """
    known = table.get(method)
    if known is None:
        raise PeerError(f"expected a method of the API, found {shown(method)!r}")
    checks = known.needed + known.more
    # Optional arguments follow the required ones, as in rospy and roscpp.
    if not len(known.needed) <= len(args) <= len(checks):
        raise PeerError(
            f"{method}: expected at least {len(known.needed)} and at most {len(checks)} "
            f"arguments, found {len(args)}"
        )

    found = []
    for number, (check, value) in enumerate(zip(checks, args, strict=False), 1):
        try:
            found.append(check(value))
        except PeerError as error:
            raise PeerError(f"{method}, argument {number}: {error}") from None

    return tuple(found)


def answer(value: Any) -> tuple[int, str, Any]:
    """Validate an answer of either API: code, status, value.

    Parameters
    ----------
    value : object
        Value of a response, from the peer.

    Returns
    -------
    tuple of (int, str, object)
        Code (1 success, 0 failure, −1 fault of the caller), status for display, and
        value, which is not validated.

    Raises
    ------
    PeerError
        The value is not such a list.
    """
    if not (isinstance(value, list) and len(value) == 3 and type(value[0]) is int):
        raise PeerError(f"expected [code, status, value], found {shown(value, 100)}")
    return value[0], shown(value[1], MAX_TEXT), value[2]


__all__ = [
    "MASTER",
    "MAX_KEY",
    "MAX_NAME",
    "MAX_TEXT",
    "SLAVE",
    "Check",
    "Method",
    "answer",
    "checked",
]
