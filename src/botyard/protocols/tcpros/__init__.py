"""ROS 1: topics and services over TCPROS, and XML-RPC of master and nodes."""

from typing import Final

MASTER_PORT: Final = 11311
"""Default port of a master.

It is defined here, because help texts of options show it also in runs without ROS.
"""
