"""URDF description of a robot as a topic, which RViz needs in addition to transforms."""

from __future__ import annotations

from typing import Any

from botyard.formats.urdf import to_urdf
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.robot import RobotTopics


def description(topics: RobotTopics, messages: Messages) -> Topic:
    """Return the topic that publishes the robot as URDF, for RViz and Foxglove.

    The links of the URDF are the frames of the transforms.

    Parameters
    ----------
    topics : RobotTopics
        Topics of the robot, with its names and frames.
    messages : Messages
        Factory of messages.

    Returns
    -------
    Topic
        Latched topic ``robot_description``; its text is made for the first subscriber.
    """
    port, names = topics.port, topics.names
    text: list[str] = []

    def make(_: Stamp) -> Any:
        # The text is made for the first subscriber, because this takes long and the
        # text never changes.
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
