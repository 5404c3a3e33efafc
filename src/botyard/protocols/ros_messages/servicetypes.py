"""Service types of ROS 1, with the MD5 sums by which peers compare them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from botyard.protocols.ros_messages.typedefinitions import SERVICES

_FIELD: Final = re.compile(r"^\s*([A-Za-z][\w/]*)(\[\d*\])?\s+(\w+)\s*(=.*)?$")
_PLAIN: Final = frozenset(
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["bool", "byte", "char", "float32", "float64", "string", "time", "duration"]
)


@dataclass(frozen=True, slots=True)
class ServiceType:
    """Service type.

    Attributes
    ----------
    name : str
        Name, for example ``std_srvs/Empty``.
    request, response : str
        Names of the types of request and response.
    md5 : str
        MD5 sum of the service's definition, as in ROS 1.
    """

    name: str
    request: str
    response: str
    md5: str


def service_type(
    name: str, definition: Callable[[str], tuple[str, str]]
) -> ServiceType:
    """Return a service type by its name.

    Parameters
    ----------
    name : str
        Name of the service, such as ``std_srvs/Empty``.
    definition : callable
        Returns the definition of a message type, and its MD5 sum (`Types.definition`).

    Raises
    ------
    KeyError
        The service is unknown, or only ROS 2 has it.
    """
    request, response = SERVICES[name]
    text = _md5_text(request, definition) + _md5_text(response, definition)
    return ServiceType(
        name,
        f"{name}Request",
        f"{name}Response",
        hashlib.md5(text.encode()).hexdigest(),
    )


def _md5_text(text: str, definition: Callable[[str], tuple[str, str]]) -> str:
    """Return the text that is hashed for a service's MD5 sum.

    In it, the names of message types are replaced by the types' MD5 sums, as in ROS 1's
    gentools.

    Parameters
    ----------
    text : str
        Definition of a request or response.
    definition : callable
        Returns the definition of a message type, and its MD5 sum.
    """
    lines = []
    for line in text.split("\n"):
        match = _FIELD.match(line)
        # Comments and blank lines are not part of the sum.
        if match is None:
            continue
        kind, array, field, _ = match.groups()
        lines.append(
            f"{kind}{array or ''} {field}"
            if kind in _PLAIN
            else f"{definition(kind)[1]} {field}"
        )

    return "\n".join(lines)


__all__ = ["ServiceType", "service_type"]
