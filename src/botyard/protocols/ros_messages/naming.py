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
        What a robot has: topics, inputs and services by their last names; ``scan`` are its lasers, ``limits`` those that can be set by
        dynamic_reconfigure. Devices say themselves which profiles have them (`botyard.model.devices.RosMessage`).
    world_node : str
        The node of the simulator.
    world : frozenset of str
        What that has beside transforms and its log: ``clock``, ``map``, ``diagnostics``, ``reset_positions``; ``control`` are services and
        inputs that change the world, parameters and simulation_interfaces.
    scans : (str, str, str)
        Topic of the only laser, of the first of several, and of the others; ``{index}`` counts from 0, ``{number}`` from 1, ``{type}`` is
        the laser's.
    laser_frame : str
        Frame of the first laser.
    sonar_frame : str
        Frame of sonar echoes.
    far_echoes : bool
        Sonar readings without an echo are included as points.
    odometry_child : bool
        Odometry has a child frame id.
    covariance : bool
        Odometry has covariances.
    truth_frame : str
        Frame of the true pose; ``odom`` is the robot's own.
    open_scans : bool
        Rays that hit nothing are infinite (REP-117); else they have the maximum range.
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
    scans: tuple[str, str, str] = ("base_scan", "base_scan", "base_scan_{index}")
    laser_frame: str = "base_laser"
    sonar_frame: str = "base_link"
    far_echoes: bool = False
    odometry_child: bool = True
    covariance: bool = False
    truth_frame: str = "map"
    open_scans: bool = False
    sim_time: bool = False


_ARIA: Final = frozenset(
    {"cmd_vel", "pose", "sonar", "sonar_pointcloud2", "motors_state", "enable_motors", "disable_motors"}
)
_STAGE: Final = frozenset({"cmd_vel", "odom", "base_pose_ground_truth", "scan"})

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
            open_scans=True,
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
            scans=("base_scan", "base_scan_{index}", "base_scan_{index}"),
            laser_frame="base_laser_link",
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
            robot=_ARIA | {"scan", "limits"},
            scans=("{type}_{number}_laserscan",) * 3,
            sonar_frame="sonar",
            far_echoes=True,
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

    @property
    def laser_frame(self) -> str:
        """The frame of the first laser."""
        return self.frame_id(self.profile.laser_frame)

    def scan_topic(self, index: int, count: int, type_name: str) -> str:
        """The topic of a laser."""
        only, first, others = self.profile.scans
        pattern = others if index else first if count > 1 else only
        kind = _NOT_A_NAME.sub("", type_name)
        return self.topic(pattern.format(index=index, number=index + 1, type=kind))

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
        One of `PROFILES`.
    alone : bool
        It is the only robot.
    """
    p, name = PROFILES[profile], graph_name(robot)
    node, prefix, frame = (p.node_alone, p.prefix_alone, p.frame_alone) if alone else (p.node, p.prefix, p.frame)
    return Names(node=node.format(name=name), prefix=prefix.format(name=name), frame=frame.format(name=name), profile=p)
