"""The description of a robot, which RViz needs in addition to its transforms."""

from __future__ import annotations

from typing import Any

from botyard.formats.urdf import to_urdf
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.robot import RobotTopics


def description(topics: RobotTopics, messages: Messages) -> Topic:
    """Return the topic with the robot as URDF, for RViz and Foxglove.

    The links of the URDF are the frames of the transforms.
    """
    port, names = topics.port, topics.names
    text: list[str] = []

    def make(_: Stamp) -> Any:
        # Made for the first subscriber, because it takes long and never changes.
        if not text:
            profile = names.profile
            found = to_urdf(
                port.spec,
                port.name,
                profile=profile.name,
                footprint=profile.footprint,
                prefix=names.frame_id(""),
            )
            text.append(found)

        return messages.value("String", text[0])

    about = "the robot as URDF, for RViz and Foxglove"
    return Topic(
        names.topic("robot_description"),
        "std_msgs/String",
        make,
        about,
        version=lambda: True,
        period=1.0,
    )


__all__ = ["description"]
