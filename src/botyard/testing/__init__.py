"""Conformance checks and test worlds, for packages and robot programs that use botyard.

For packages: conformance checks, protocol packets, and a null modem with a fake clock.
For robot programs: test worlds, with conditions on the true state. Names are imported
on first use, because pytest loads the plug-in wherever botyard is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botyard.protocols.pioneer.packet import Packet, Parser, command
    from botyard.servers.pioneer.nullmodem import Line, NullModem
    from botyard.sim.contacts import Contact
    from botyard.testing.checks import Passed, check_robot_model, check_session
    from botyard.testing.conditions import Condition, Coverage, inside, near, stands
    from botyard.testing.devices import check_device
    from botyard.testing.formats import check_map_format
    from botyard.testing.observer import Truth
    from botyard.testing.p2osclient import P2osClient
    from botyard.testing.protocol import check_protocol
    from botyard.testing.robotworld import RobotWorld
    from botyard.testing.runcondition import Failure

_MODULE_OF = {
    "Condition": "testing.conditions",
    "Contact": "sim.contacts",
    "Coverage": "testing.conditions",
    "Failure": "testing.runcondition",
    "Line": "servers.pioneer.nullmodem",
    "NullModem": "servers.pioneer.nullmodem",
    "P2osClient": "testing.p2osclient",
    "Packet": "protocols.pioneer.packet",
    "Parser": "protocols.pioneer.packet",
    "Passed": "testing.checks",
    "RobotWorld": "testing.robotworld",
    "Truth": "testing.observer",
    "check_device": "testing.devices",
    "check_map_format": "testing.formats",
    "check_protocol": "testing.protocol",
    "check_robot_model": "testing.checks",
    "check_session": "testing.checks",
    "command": "protocols.pioneer.packet",
    "inside": "testing.conditions",
    "near": "testing.conditions",
    "stands": "testing.conditions",
}

__all__ = [
    "Condition",
    "Contact",
    "Coverage",
    "Failure",
    "Line",
    "NullModem",
    "P2osClient",
    "Packet",
    "Parser",
    "Passed",
    "RobotWorld",
    "Truth",
    "check_device",
    "check_map_format",
    "check_protocol",
    "check_robot_model",
    "check_session",
    "command",
    "inside",
    "near",
    "stands",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        # Store the object as a global, so that later uses do not call this function
        # again.
        value = getattr(importlib.import_module(f"botyard.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    raise AttributeError(f"module 'botyard.testing' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names of the public API."""
    return sorted(__all__)
