"""Names of topics, services, frames and nodes, by profile.

There are profiles of botyard, Nav2, its loopback simulator, AMRISim, stage_ros and ROSARIA.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from botyard.model.links import BASE

NODE: Final = "botyard"
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


def graph_name(name: str) -> str:
    """Return a robot's name as a valid ROS name.

    The result has letters, digits and underscores, and starts with a letter (ROS 2
    design: topic and service names).

    Parameters
    ----------
    name : str
        Name in the world, of any characters.
    """
    # Different names may become equal here; the caller then numbers them.
    clean = _NOT_A_NAME.sub("_", name)
    # "r" means robot. A name in ROS must not start with a digit, and an underscore at
    # the start would hide it.
    return clean if clean[:1].isalpha() else f"r_{clean}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Name profile: the topics and services for ROS programs, and their names.

    ``{name}`` is replaced by the robot's name.

    Attributes
    ----------
    name : str
        Name of the profile.
    node, node_alone : str
        Node of a robot's topics, with several robots and with a single one.
    prefix, prefix_alone : str
        Prefix of a robot's topics and services, with its last slash, with several
        robots and with a single one.
    frame, frame_alone : str
        Prefix of a robot's frames, with several robots and with a single one.
    numbered : str
        Pattern of the robots' names in ROS, where ``{number}`` counts the robots from
        0; empty if robots keep their own names.
    has_own_tf : bool
        Whether each robot has its own ``tf`` and ``tf_static`` under its prefix;
        otherwise all share /tf and /tf_static.
    footprint : str
        Child frame of odom instead of base_link, such as base_footprint (REP-120);
        base_link is then its child. Empty for base_link.
    robot : frozenset of str
        Topics, inputs and services of a robot, by their last names; ``limits`` are the
        limits that dynamic_reconfigure can set. Devices declare their own profiles and
        names (`botyard.model.rosmessages.RosMessage`).
    world_node : str
        Node of the simulator.
    world : frozenset of str
        Offers of the simulator's node besides transforms and log: ``clock``, ``map``,
        ``diagnostics``, ``reset_positions`` and ``control``. ``control`` stands for
        services and inputs that change the world, parameters, and
        simulation_interfaces.
    odometry_child : bool
        Whether messages of odometry have a child frame id.
    covariance : str
        Covariances of odometry: ``none`` for zeros, ``fixed`` for the values of the
        p2os driver, ``model`` for the odometry's error model.
    truth_frame : str
        Frame of the true pose in messages; ``odom`` stands for the robot's frame of
        odometry.
    sim_time : bool
        Whether stamps are simulated time by default.
    is_localized : bool
        Whether botyard replaces the localization of the robots by default.
    moves_by_initialpose : bool
        Whether ``initialpose`` moves the robot; otherwise it sets the estimated pose.
    parameters : frozenset of str
        ROS 2 parameters of a robot's node that describe the simulation, see
        `botyard.interfaces.ros.facts`.
    """

    name: str
    node: str
    node_alone: str
    prefix: str
    prefix_alone: str
    frame: str = "{name}/"
    frame_alone: str = ""
    numbered: str = ""
    robot: frozenset[str]
    world_node: str = f"/{NODE}"
    world: frozenset[str] = frozenset()
    has_own_tf: bool = False
    footprint: str = ""
    odometry_child: bool = True
    covariance: Literal["none", "fixed", "model"] = "none"
    truth_frame: str = "map"
    sim_time: bool = False
    is_localized: bool = False
    moves_by_initialpose: bool = False
    parameters: frozenset[str] = frozenset()

    def with_frames(self, frames: str | None) -> Profile:
        """Return the profile with other names of frames, and matching topics of transforms.

        None keeps the profile's frames. With ``plain``, frames have no prefix, and each
        robot has its own ``tf`` and ``tf_static``. With ``prefixed``, frames start with
        the robot's name, and all robots share /tf and /tf_static.

        Parameters
        ----------
        frames : str or None
            None, ``plain`` or ``prefixed``.
        """
        if frames is None:
            return self
        prefix = "{name}/" if frames == "prefixed" else ""
        return replace(
            self, frame=prefix, frame_alone=prefix, has_own_tf=frames == "plain"
        )

    @property
    def base(self) -> str:
        """Name of the child frame of odom: `footprint`, or base_link without one."""
        return self.footprint or BASE


_ARIA: Final = frozenset(
    {"cmd_vel", "pose", "motors_state", "enable_motors", "disable_motors"}
)
_STAGE: Final = frozenset({"cmd_vel", "odom", "base_pose_ground_truth"})
_OWN: Final = (
    _ARIA
    | _STAGE
    | {
        "limits",
        "cmd_vel_stamped",
        "ackermann_cmd",
        "enable_motors_cmd",
        "set_pose",
        "joint_states",
        "robot_description",
        "goal_pose",
        "initialpose",
        "amcl_pose",
    }
)
"""Offers of botyard's own profiles.

``amcl_pose`` is published only if botyard replaces AMCL; it then subscribes to
``initialpose``. Otherwise it publishes ``initialpose``, like ``goal_pose``, when a user
of the page chooses a pose.
"""
_LOOPBACK: Final = frozenset(
    {
        "update_duration",
        "base_frame_id",
        "map_frame_id",
        "odom_frame_id",
        "scan_frame_id",
        "odom_publish_dur",
        "scan_publish_dur",
        "publish_map_odom_tf",
        "publish_scan",
        "publish_clock",
        "scan_range_min",
        "scan_range_max",
        "scan_angle_min",
        "scan_angle_max",
        "scan_angle_increment",
        "scan_use_inf",
        "scan_noise_std",
        "speed_factor",
        "enable_stamped_cmd_vel",
    }
)
"""Parameters of nav2_loopback_sim.

Source: github.com/ros-navigation/navigation2, nav2_loopback_sim: README.md (commit
0537cb2), src/loopback_simulator.cpp and nav2_loopback_sim/loopback_simulator.py (commit
0006349).
"""

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
            robot=_OWN,
            world=frozenset(
                {"clock", "map", "diagnostics", "control", "reset_positions"}
            ),
            covariance="fixed",
            sim_time=True,
        ),
        Profile(
            name="nav2",
            node=f"/{NODE}",
            node_alone=f"/{NODE}",
            prefix="/{name}/",
            prefix_alone="/",
            frame="",
            has_own_tf=True,
            footprint="base_footprint",
            robot=_OWN | {"map"},
            world=frozenset({"clock", "diagnostics", "control", "reset_positions"}),
            covariance="model",
            sim_time=True,
        ),
        Profile(
            name="loopback",
            node="/{name}/loopback_simulator",
            node_alone="/loopback_simulator",
            prefix="/{name}/",
            prefix_alone="/",
            frame="",
            has_own_tf=True,
            footprint="base_footprint",
            robot=frozenset({"cmd_vel", "odom", "initialpose"}),
            world=frozenset({"clock"}),
            sim_time=True,
            is_localized=True,
            moves_by_initialpose=True,
            parameters=_LOOPBACK,
        ),
        Profile(
            name="amrisim",
            # AMRISim's node names have a hyphen, which later ROS tools refuse, so use
            # an underscore.
            node="/AMRISim_{name}",
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
            numbered="robot_{number}",
            footprint="base_footprint",
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
            covariance="fixed",
        ),
    )
}
"""Name profiles.

``default`` has ``/<robot>/…`` and one node for all. ``nav2`` has the names and frames
of Nav2's bring-up, and ``loopback`` of its package nav2_loopback_sim. Each of the other
profiles has the topics and frames of the program that gives the profile its name.
``nav2``, ``loopback``, ``stage`` and ``rosaria`` have no prefix for the only robot.
stage_ros counts robots, whatever their names in the world. AMRISim and stage_ros
publish no uncertainty of odometry.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of one robot.

    Attributes
    ----------
    node : str
        Node that offers the robot's topics.
    prefix : str
        Prefix of the robot's topics and services, with its last slash.
    frame : str
        Prefix of the robot's frames.
    profile : Profile
        Profile, which selects the topics and services.
    """

    node: str
    prefix: str
    frame: str
    profile: Profile

    def offers(self, name: str) -> bool:
        """Return whether the robot has a topic or service; see `Profile.robot`.

        Parameters
        ----------
        name : str
            Last name of a topic or service, such as ``cmd_vel``.
        """
        return name in self.profile.robot

    def topic(self, name: str) -> str:
        """Return the absolute name of a topic or service.

        Parameters
        ----------
        name : str
            Last name, such as ``cmd_vel``.
        """
        return f"{self.prefix}{name}"

    @property
    def tf(self) -> str:
        """Name of the topic of changing transforms; fixed ones have ``_static`` added."""
        return self.topic("tf") if self.profile.has_own_tf else "/tf"

    def frame_id(self, name: str) -> str:
        """Return a frame id, without a leading slash (REP-105, tf2).

        Parameters
        ----------
        name : str
            Name of the frame without prefix, such as ``base_link``.
        """
        return f"{self.frame}{name}"


def names_of(robot: str, profile: str | Profile, alone: bool) -> Names:
    """Return the names of a robot.

    Parameters
    ----------
    robot : str
        Name of the robot in the world.
    profile : str or Profile
        Name of one of `PROFILES`, or a profile derived from one.
    alone : bool
        Whether the robot is the only one in the world.

    Raises
    ------
    KeyError
        There is no profile of that name.
    """
    p, name = (
        PROFILES[profile] if isinstance(profile, str) else profile,
        graph_name(robot),
    )
    node, prefix, frame = (
        # Many packages assume /odom and /scan, and work unchanged with a single robot.
        (p.node_alone, p.prefix_alone, p.frame_alone)
        if alone
        else (p.node, p.prefix, p.frame)
    )
    return Names(
        node=node.format(name=name),
        prefix=prefix.format(name=name),
        frame=frame.format(name=name),
        profile=p,
    )
