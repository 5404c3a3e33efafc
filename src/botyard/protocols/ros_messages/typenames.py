"""Names of ROS types: ROS 2's three parts from ROS 1's two."""

from __future__ import annotations

import re


def full(name: str) -> str:
    """Return the ROS 2 name of a type: ``nav_msgs/Path`` → ``nav_msgs/msg/Path``.

    rosbags uses the same names.

    Parameters
    ----------
    name : str
        Name of two or three parts. A name of three parts is returned as it is.
    """
    return name if name.count("/") > 1 else name.replace("/", "/msg/")


def service_name(name: str) -> str:
    """Return a service's ROS 2 name: ``std_srvs/Empty`` → ``std_srvs/srv/Empty``."""
    return name if name.count("/") > 1 else name.replace("/", "/srv/")


def action_name(name: str) -> str:
    """Return an action's ROS 2 name: ``nav2_msgs/Spin`` → ``nav2_msgs/action/Spin``."""
    return name if name.count("/") > 1 else name.replace("/", "/action/")


def snake_case(name: str) -> str:
    """Return a type's name as a path: ``NavigateToPose`` → ``navigate_to_pose``."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


__all__ = ["action_name", "full", "service_name", "snake_case"]
