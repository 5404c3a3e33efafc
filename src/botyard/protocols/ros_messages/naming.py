"""Names of topics, services, frames and nodes, by profile: those of botyard, and those that users of other programs know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PROFILES: Final = ("default", "amrisim", "stage", "rosaria")
NODE: Final = "botyard"
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


def graph_name(name: str) -> str:
    """A robot's name as part of ROS names: letters, digits and underscores, a letter first (ROS 2 design: topic and service names)."""
    clean = _NOT_A_NAME.sub("_", name)
    return clean if clean[:1].isalpha() else f"r_{clean}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of one robot.

    Attributes
    ----------
    node : str
        Name of the node that offers its topics.
    prefix : str
        What its topics and services begin with, up to the last slash.
    frame : str
        What its frames begin with.
    profile : str
        See `PROFILES`.
    """

    node: str
    prefix: str
    frame: str
    profile: str = "default"

    def topic(self, name: str) -> str:
        """An absolute name."""
        return f"{self.prefix}{name}"

    def frame_id(self, name: str) -> str:
        """A frame; no slash in front (REP-105, tf2)."""
        return f"{self.frame}{name}"

    @property
    def laser_frame(self) -> str:
        """The frame of the first laser."""
        return self.frame_id("base_laser_link" if self.profile == "stage" else "base_laser")

    def scan_topic(self, index: int, count: int, type_name: str) -> str:
        """The topic of a laser.

        stage_ros numbers them when there are several; ROSARIA names them after their types.
        """
        if self.profile == "rosaria":
            return self.topic(f"{_NOT_A_NAME.sub('', type_name)}_{index + 1}_laserscan")
        if self.profile == "stage" and count > 1:
            return self.topic(f"base_scan_{index}")
        return self.topic("base_scan" if index == 0 else f"base_scan_{index}")

    def laser_frame_id(self, index: int) -> str:
        """The frame of a laser."""
        return self.laser_frame if index == 0 else f"{self.laser_frame}_{index}"


def names_of(robot: str, profile: str, alone: bool) -> Names:
    """The names of a robot.

    Parameters
    ----------
    robot : str
        Its name.
    profile : str
        ``default``: ``/<robot>/…``, one node for all; ``amrisim``: a node ``/AMRISim-<robot>`` with its private topics; ``stage`` and
        ``rosaria``: those programs' names, without a prefix for a robot that is `alone`.
    alone : bool
        It is the only robot.
    """
    name = graph_name(robot)
    if profile == "amrisim":
        node = f"/AMRISim_{name}"  # a node's name holds no hyphen: "-" of the original is refused by later ROS tools
        return Names(node=node, prefix=f"{node}/", frame="" if alone else f"{name}/", profile=profile)
    if profile == "stage":
        return Names(
            node="/stageros", prefix="/" if alone else f"/{name}/", frame="" if alone else f"{name}/", profile=profile
        )
    if profile == "rosaria":
        node = "/RosAria" if alone else f"/{name}/RosAria"
        return Names(node=node, prefix=f"{node}/", frame="" if alone else f"{name}/", profile=profile)
    return Names(node=f"/{NODE}", prefix=f"/{name}/", frame=f"{name}/", profile="default")
