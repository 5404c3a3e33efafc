"""Names of topics, services, frames and nodes, by profile.

There are botyard's own profile, one for Nav2, and those of AMRISim, stage_ros and
ROSARIA.
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

    It has letters, digits and underscores, and starts with a letter (ROS 2 design:
    topic and service names).
    """
    # Different names may become equal; the graph then numbers them.
    clean = _NOT_A_NAME.sub("_", name)
    # "r" for robot: a name in ROS must not start with a digit or an underscore that
    # hides it.
    return clean if clean[:1].isalpha() else f"r_{clean}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Name profile: the topics and services for ROS programs, and their names.

    ``{name}`` stands for the robot's name.

    Attributes
    ----------
    name : str
        Name of the profile.
    node, node_alone : str
        Node of a robot's topics, with several robots and with a single one.
    prefix, prefix_alone : str
        Prefix of its topics and services, up to the last slash, with several robots and
        with a single one.
    frame, frame_alone : str
        Prefix of its frames, with several robots and with a single one.
    numbered : str
        Pattern of the robots' names in ROS, with ``{number}`` from 0 in their order;
        empty for their own names.
    has_own_tf : bool
        Whether each robot has its own ``tf`` and ``tf_static`` under its prefix;
        otherwise all share /tf and /tf_static.
    footprint : str
        Frame that odometry moves in place of base_link, its child (REP-120); empty
        without one.
    robot : frozenset of str
        Topics, inputs and services of a robot, by their last names; ``limits`` are the
        limits that dynamic_reconfigure can set. Devices declare their own profiles and
        names (`botyard.model.rosmessages.RosMessage`).
    world_node : str
        Node of the simulator.
    world : frozenset of str
        Offers of that node in addition to transforms and its log: ``clock``, ``map``,
        ``diagnostics``, ``reset_positions``; ``control`` is services and inputs that
        change the world, parameters and simulation_interfaces.
    odometry_child : bool
        Whether odometry has a child frame id.
    covariance : str
        Covariances of odometry: ``none`` for zeros, ``fixed`` for the values of the
        p2os driver, ``model`` for the odometry's error model.
    truth_frame : str
        Frame of the true pose; ``odom`` is the robot's own.
    sim_time : bool
        Whether stamps are simulated time by default.
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

    def with_frames(self, frames: str | None) -> Profile:
        """Return the profile with other frames, and the transforms that go with them.

        None keeps its own frames. With ``plain``, frames have no prefix, and each robot
        has its own transforms. With ``prefixed``, frames start with the robot's name,
        and all share /tf and /tf_static.
        """
        if frames is None:
            return self
        prefix = "{name}/" if frames == "prefixed" else ""
        return replace(
            self, frame=prefix, frame_alone=prefix, has_own_tf=frames == "plain"
        )

    @property
    def base(self) -> str:
        """Frame that odometry moves."""
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
        "enable_motors_cmd",
        "set_pose",
        "joint_states",
        "robot_description",
        "initialpose",
        "amcl_pose",
    }
)
"""Offers of botyard's own profiles.

``initialpose`` and ``amcl_pose`` apply when botyard replaces AMCL.
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
            name="amrisim",
            # A node's name has no hyphen: later ROS tools refuse the "-" of the
            # original.
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
of its bring-up. The others have the names of those programs. ``nav2``, ``stage`` and
``rosaria`` have no prefix for the only robot. stage_ros counts robots, whatever their
names in the world. AMRISim and stage_ros publish no uncertainty of odometry.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of one robot.

    Attributes
    ----------
    node : str
        Node that offers its topics.
    prefix : str
        Prefix of its topics and services, up to the last slash.
    frame : str
        Prefix of its frames.
    profile : Profile
        Profile, which selects the topics and services.
    """

    node: str
    prefix: str
    frame: str
    profile: Profile

    def offers(self, name: str) -> bool:
        """Return whether the robot has a topic or service; see `Profile.robot`."""
        return name in self.profile.robot

    def topic(self, name: str) -> str:
        """Return the absolute name of a topic or service."""
        return f"{self.prefix}{name}"

    @property
    def tf(self) -> str:
        """Name of the topic with its transforms; ``_static`` for fixed ones."""
        return self.topic("tf") if self.profile.has_own_tf else "/tf"

    def frame_id(self, name: str) -> str:
        """Return a frame id, without a leading slash (REP-105, tf2)."""
        return f"{self.frame}{name}"


def names_of(robot: str, profile: str | Profile, alone: bool) -> Names:
    """Return the names of a robot.

    Parameters
    ----------
    robot : str
        Its name.
    profile : str or Profile
        Name of one of `PROFILES`, or a profile derived from one.
    alone : bool
        Whether it is the only robot.
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
