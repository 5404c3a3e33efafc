"""ROS 1: topics and services over TCPROS, and the master's and nodes' XML-RPC."""

from typing import Final

MASTER_PORT: Final = 11311
"""Default port of a master. Here, since options name it in runs without ROS, too."""
