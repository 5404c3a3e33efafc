"""ROS 1: topics and services over TCPROS, and XML-RPC of master and nodes."""

from typing import Final

MASTER_PORT: Final = 11311
"""Default port of a master.

It is here because options name it also in runs without ROS.
"""
