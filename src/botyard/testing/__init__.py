"""For tests of programs that build on botyard: a null modem with a fake clock, and what a client sends."""

from botyard.protocols.pioneer.packet import Packet, Parser, command
from botyard.servers.nullmodem import Line, NullModem

__all__ = ["Line", "NullModem", "Packet", "Parser", "command"]
