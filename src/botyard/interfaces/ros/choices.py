"""Goals and pose estimates that users of the page choose for a robot, as ROS topics.

They are published as RViz publishes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from botyard.geometry import Pose
from botyard.protocols.ros_messages.frames import MAP
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import Names

DEVIATIONS: Final = 0.5, 0.5, math.pi / 12
"""Standard deviations of an estimate along x and y, m, and of its heading, rad.

They are those of RViz's tool "2D Pose Estimate".
"""


class Choice:
    """Topic of a pose in the frame of the map, which is published when a user chooses the pose."""

    def __init__(
        self,
        name: str,
        kind: str,
        about: str,
        message: Callable[[Stamp, Pose], Any],
        only: str = "",
    ) -> None:
        self._pose: Pose | None = None
        self._message = message
        self.topic = Topic(name, kind, self._make, about, only=only)

    def _make(self, stamp: Stamp) -> Any:
        return None if self._pose is None else self._message(stamp, self._pose)

    def publish(self, pose: Pose) -> None:
        """Publish a pose, once."""
        self._pose = pose
        self.topic.publish()
        self._pose = None


class Choices:
    """Topics of the goals and of the estimated pose that users of the page choose.

    Parameters
    ----------
    messages : Messages
        Factory of messages.
    names : Names
        Names of the robot.
    estimates : bool
        Whether pose estimates are published. It is False if botyard replaces the
        localization.
    """

    def __init__(self, messages: Messages, names: Names, *, estimates: bool) -> None:
        def goal(stamp: Stamp, pose: Pose) -> Any:
            return messages.posed(stamp, pose, MAP)

        def estimate(stamp: Stamp, pose: Pose) -> Any:
            covariance = np.zeros((6, 6))
            covariance[(0, 1, 5), (0, 1, 5)] = np.square(DEVIATIONS)
            return messages.located(stamp, pose, MAP, covariance.ravel())

        self._goals: list[Choice] = []
        self._estimates: list[Choice] = []
        # RViz publishes goals on ``goal_pose`` in ROS 2, and on
        # ``move_base_simple/goal`` in ROS 1.
        for name, only in (("goal_pose", "cdr"), ("move_base_simple/goal", "ros1")):
            if names.offers("goal_pose"):
                self._goals.append(
                    Choice(
                        names.topic(name),
                        "geometry_msgs/PoseStamped",
                        "goal to which a user of the page sends the robot "
                        f"(ROS {1 if only == 'ros1' else 2})",
                        goal,
                        only,
                    )
                )
        if estimates and names.offers("initialpose"):
            self._estimates.append(
                Choice(
                    names.topic("initialpose"),
                    "geometry_msgs/PoseWithCovarianceStamped",
                    "pose at which a user of the page says that the robot is",
                    estimate,
                )
            )

    @property
    def topics(self) -> list[Topic]:
        """All topics of goals and estimates."""
        return [one.topic for one in (*self._goals, *self._estimates)]

    def publish_goal(self, pose: Pose) -> None:
        """Publish a goal, in the frame of the map."""
        for one in self._goals:
            one.publish(pose)

    def publish_estimate(self, pose: Pose) -> bool:
        """Publish an estimated pose; return whether the robot has such a topic."""
        for one in self._estimates:
            one.publish(pose)
        return bool(self._estimates)


__all__ = ["Choices"]
