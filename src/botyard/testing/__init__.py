"""Conformance kit for tests of programs that build on botyard: null modem with a fake clock, protocol packets, and checks."""

from botyard.protocols.pioneer.packet import Packet, Parser, command
from botyard.servers.nullmodem import Line, NullModem
from botyard.testing.checks import Passed, check_robot_model, check_session
from botyard.testing.devices import check_device
from botyard.testing.formats import check_map_format
from botyard.testing.p2osclient import P2osClient
from botyard.testing.protocol import check_protocol

__all__ = [
    "Line",
    "NullModem",
    "P2osClient",
    "Packet",
    "Parser",
    "Passed",
    "check_device",
    "check_map_format",
    "check_protocol",
    "check_robot_model",
    "check_session",
    "command",
]
