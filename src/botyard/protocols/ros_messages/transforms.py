"""Topics with transforms, of all robots together or of each robot by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform
from botyard.protocols.ros_messages.quick import QuickTransforms
from botyard.protocols.ros_messages.robot import RobotTopics, Topic
from botyard.protocols.ros_messages.types import Types


class Transforms:
    """``tf`` and ``tf_static``.

    Parameters
    ----------
    types, messages : Types, Messages
        Make messages.
    name : str
        Name of the topic, to which ``_static`` is appended for transforms that never
        change.
    robots : callable
        The robots at present.
    fixed : sequence of Transform
        Further transforms that never change.
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
        """Both topics."""
        moving, fixed = (
            "odom → base_link, wheels and what else moves",
            "base_link → sensors, and what else does not move",
        )
        return [
            Topic(
                self._name,
                "tf2_msgs/TFMessage",
                self.moving,
                moving,
                queue=100,
                quick=self._bytes,
            ),
            Topic(
                f"{self._name}_static",
                "tf2_msgs/TFMessage",
                self.fixed,
                fixed,
                version=self._version,
            ),
        ]

    def moving(self, stamp: Stamp) -> Any:
        """tf2_msgs/TFMessage of what changes with every step."""
        return self._m.tf(
            stamp, [t for robot in self._robots() for t in robot.transforms()]
        )

    def fixed(self, stamp: Stamp) -> Any:
        """tf2_msgs/TFMessage of what never changes."""
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
        robots = self._robots()
        if self._quick is None or self._quick[0] != robots:
            pairs = [pair for robot in robots for pair in robot.frames.pairs]
            self._quick = robots, QuickTransforms(self._types, self._m, pairs)

        numbers = (
            value
            for robot in robots
            for value in robot.data.frames.values(robot.frames)
        )
        return self._quick[1].bytes(wire, stamp, numbers)


__all__ = ["Transforms"]
