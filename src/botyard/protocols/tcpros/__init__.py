"""ROS 1: topics and services over TCPROS, and XML-RPC of master and nodes."""

from typing import Final

MASTER_PORT: Final = 11311
"""Default port of a master.

It is defined in this module, which imports nothing, because help texts of options need
it also in runs without ROS.
"""
