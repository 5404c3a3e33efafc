"""Names of topics, services, frames and nodes, by profile: botyard's own, and those of AMRISim, stage_ros and ROSARIA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

NODE: Final = "botyard"
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


def graph_name(name: str) -> str:
    """A robot's name made valid in ROS names: letters, digits and underscores, a letter first (ROS 2 design: topic and service names)."""
    clean = _NOT_A_NAME.sub("_", name)
    return clean if clean[:1].isalpha() else f"r_{clean}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A name profile: the topics and services that ROS programs see, and their names. ``{name}`` stands for the robot's name.

    Attributes
    ----------
    node, node_alone : str
        The node of a robot's topics; the same for a single robot.
    prefix, prefix_alone : str
        Prefix of its topics and services, up to the last slash; the same for a single robot.
        frame, frame_alone : str
        What its frames begin with.
    robot : frozenset of str
        What a robot has: topics, inputs and services by their last names; ``limits`` are those that can be set by dynamic_reconfigure.
        Devices say themselves which profiles have them, and how they are called there (`botyard.model.rosmessages.RosMessage`).
    world_node : str
        The node of the simulator.
    world : frozenset of str
        What that has beside transforms and its log: ``clock``, ``map``, ``diagnostics``, ``reset_positions``; ``control`` are services and
        inputs that change the world, parameters and simulation_interfaces.
    odometry_child : bool
        Odometry has a child frame id.
    covariance : bool
        Odometry has covariances.
    truth_frame : str
        Frame of the true pose; ``odom`` is the robot's own.
    sim_time : bool
        Stamps are simulated time unless the user says otherwise.
    """

    name: str
    node: str
    node_alone: str
    prefix: str
    prefix_alone: str
    frame: str = "{name}/"
    frame_alone: str = ""
    robot: frozenset[str]
    world_node: str = f"/{NODE}"
    world: frozenset[str] = frozenset()
    odometry_child: bool = True
    covariance: bool = False
    truth_frame: str = "map"
    sim_time: bool = False


_ARIA: Final = frozenset({"cmd_vel", "pose", "motors_state", "enable_motors", "disable_motors"})
_STAGE: Final = frozenset({"cmd_vel", "odom", "base_pose_ground_truth"})

PROFILES: Final[Mapping[str, Profile]] = {
    p.name: p
    for p in (
        Profile(
            name="default",
            node=f"/{NODE}",
            node_alone=f"/{NODE}",
            prefix="/{name}/",
            prefix_alone="/{name}/",
            frame_alone="{name}/",
            robot=_ARIA | _STAGE
            | {"limits", "cmd_vel_stamped", "enable_motors_cmd", "set_pose"},
            world=frozenset({"clock", "map", "diagnostics", "control", "reset_positions"}),
            covariance=True,
            sim_time=True,
        ),
        Profile(
            name="amrisim",
            node="/AMRISim_{name}",  # a node's name holds no hyphen: "-" of the original is refused by later ROS tools
            node_alone="/AMRISim_{name}",
            prefix="/AMRISim_{name}/",
            prefix_alone="/AMRISim_{name}/",
            robot=_ARIA,
        ),
        Profile(
            name="stage",
            node="/stageros",
            node_alone="/stageros",
            prefix="/{name}/",
            prefix_alone="/",
            robot=_STAGE,
            world_node="/stageros",
            world=frozenset({"clock", "reset_positions"}),
            odometry_child=False,
            truth_frame="odom",
            sim_time=True,
        ),
        Profile(
            name="rosaria",
            node="/{name}/RosAria",
            node_alone="/RosAria",
            prefix="/{name}/RosAria/",
            prefix_alone="/RosAria/",
            robot=_ARIA | {"limits"},
            covariance=True,
        ),
    )
}  # fmt: skip
"""``default``: ``/<robot>/…``, one node for all; the others are those programs' names, ``stage`` and ``rosaria`` without a prefix for the
only robot. AMRISim and stage_ros say nothing of the uncertainty of odometry."""


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
    profile : Profile
        Which of them there are.
    """

    node: str
    prefix: str
    frame: str
    profile: Profile

    def offers(self, name: str) -> bool:
        """Whether the robot has something, see `Profile.robot`."""
        return name in self.profile.robot

    def topic(self, name: str) -> str:
        """An absolute name."""
        return f"{self.prefix}{name}"

    def frame_id(self, name: str) -> str:
        """A frame; no slash in front (REP-105, tf2)."""
        return f"{self.frame}{name}"


def names_of(robot: str, profile: str, alone: bool) -> Names:
    """The names of a robot.

    Parameters
    ----------
    robot : str
        Its name.
    profile : str
        One of `PROFILES`.
    alone : bool
        It is the only robot.
    """
    p, name = PROFILES[profile], graph_name(robot)
    node, prefix, frame = (p.node_alone, p.prefix_alone, p.frame_alone) if alone else (p.node, p.prefix, p.frame)
    return Names(node=node.format(name=name), prefix=prefix.format(name=name), frame=frame.format(name=name), profile=p)
