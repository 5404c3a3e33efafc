"""Topics ``tf`` and ``tf_static``, of all robots together or of each robot separately."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform
from botyard.protocols.ros_messages.quick import QuickTransforms
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.types import Types

TRANSFORMS: Final = "tf2_msgs/TFMessage"
"""Message type of ``tf`` and ``tf_static``."""


class Transforms:
    """Topics ``tf`` and ``tf_static``.

    Parameters
    ----------
    types, messages : Types, Messages
        Message types and factory.
    name : str
        Name of the topic; ``_static`` is appended for fixed transforms.
    robots : callable
        Returns the present robots.
    fixed : sequence of Transform
        Further fixed transforms.
    """

    def __init__(
        self,
        types: Types,
        messages: Messages,
        name: str,
        robots: Callable[[], Sequence[RobotTopics]],
        fixed: Sequence[Transform] = (),
    ) -> None:
        self._types = types
        self._m = messages
        self._name = name
        self._robots = robots
        self._fixed = fixed
        self._quick: tuple[Sequence[RobotTopics], QuickTransforms] | None = None

    def topics(self) -> list[Topic]:
        """Return the topics ``tf`` and ``tf_static``."""
        moving, fixed = (
            "odom → base_link, wheels and other moving frames",
            "base_link → sensors, and other fixed frames",
        )
        return [
            Topic(
                self._name,
                TRANSFORMS,
                self.moving,
                moving,
                queue=100,
                quick=self._bytes,
            ),
            Topic(
                f"{self._name}_static",
                TRANSFORMS,
                self.fixed,
                fixed,
                version=self._version,
            ),
        ]

    def moving(self, stamp: Stamp) -> Any:
        """Return a tf2_msgs/TFMessage of the moving transforms.

        Parameters
        ----------
        stamp : Stamp
            Time of the present state.
        """
        return self._m.tf(
            stamp, [t for robot in self._robots() for t in robot.transforms()]
        )

    def fixed(self, stamp: Stamp) -> Any:
        """Return a tf2_msgs/TFMessage of the fixed transforms.

        Parameters
        ----------
        stamp : Stamp
            Time at which the message is made.
        """
        return self._m.tf(
            stamp,
            [
                *self._fixed,
                *(t for robot in self._robots() for t in robot.static_transforms()),
            ],
        )

    def _version(self) -> Hashable:
        return tuple(self._robots())

    def _bytes(self, wire: str, stamp: Stamp) -> bytes:
        """Return a tf2_msgs/TFMessage of the moving transforms as bytes.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time of the present state.
        """
        robots = self._robots()
        # Make a new template if robots were added or removed, because it holds their
        # frame ids.
        if self._quick is None or self._quick[0] != robots:
            pairs = [pair for robot in robots for pair in robot.frames.pairs]
            self._quick = robots, QuickTransforms(self._types, self._m, pairs)

        numbers = (
            value
            for robot in robots
            for value in robot.data.frames.values(robot.frames)
        )
        return self._quick[1].bytes(wire, stamp, numbers)


__all__ = ["TRANSFORMS", "Transforms"]
