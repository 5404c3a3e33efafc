"""Names of topics, services, frames and nodes, by profile: botyard's own, Nav2's, and
those of AMRISim, stage_ros and ROSARIA.
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
    """A robot's name made valid in ROS names: letters, digits and underscores, a letter
    first (ROS 2 design: topic and service names).
    """
    clean = _NOT_A_NAME.sub("_", name)
    return clean if clean[:1].isalpha() else f"r_{clean}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A name profile: the topics and services that ROS programs see, and their names.
    ``{name}`` stands for the robot's name.

    Attributes
    ----------
    node, node_alone : str
        The node of a robot's topics; the same for a single robot.
    prefix, prefix_alone : str
        Prefix of its topics and services, up to the last slash; the same for a single
        robot.
    frame, frame_alone : str
        What its frames begin with.
    numbered : str
        The robots' names in ROS, ``{number}`` counting from 0 in their order; empty:
        their own names.
    has_own_tf : bool
        Each robot has ``tf`` and ``tf_static`` of its own, behind its prefix; else all
        share /tf and /tf_static.
    footprint : str
        Frame that odometry moves, if it is not base_link: its parent (REP-120). Empty:
        there is none.
    robot : frozenset of str
        What a robot has: topics, inputs and services by their last names; ``limits``
        are those that can be set by dynamic_reconfigure. Devices say themselves which
        profiles have them, and how they are called there
        (`botyard.model.rosmessages.RosMessage`).
    world_node : str
        The node of the simulator.
    world : frozenset of str
        What that has beside transforms and its log: ``clock``, ``map``,
        ``diagnostics``, ``reset_positions``; ``control`` are services and inputs that
        change the world, parameters and simulation_interfaces.
    odometry_child : bool
        Odometry has a child frame id.
    covariance : str
        Covariances of odometry: ``none``, all zero; ``fixed``, those of the p2os
        driver; ``model``, those of the odometry's error model.
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
        """The profile with other frames, and the transforms that go with them; None:
        its own.

        ``plain``: frames without a prefix; each robot has its own transforms.
        ``prefixed``: frames begin with the robot's name, and all share /tf and
        /tf_static.
        """
        if frames is None:
            return self
        prefix = "{name}/" if frames == "prefixed" else ""
        return replace(
            self, frame=prefix, frame_alone=prefix, has_own_tf=frames == "plain"
        )

    @property
    def base(self) -> str:
        """The frame that odometry moves."""
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
"""``initialpose`` and ``amcl_pose`` where botyard stands in for AMCL."""

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
            # a node's name holds no hyphen: "-" of the original is refused by later ROS
            # tools
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
"""``default``: ``/<robot>/…``, one node for all; ``nav2``: names and frames of its
bring-up; the others: those programs' names.

``nav2``, ``stage`` and ``rosaria`` have no prefix for the only robot. stage_ros counts
robots, whatever the world calls them. AMRISim and stage_ros say nothing of the
uncertainty of odometry.
"""


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

    @property
    def tf(self) -> str:
        """The name of the topic with its transforms; with ``_static`` behind it, of
        those that do not move.
        """
        return self.topic("tf") if self.profile.has_own_tf else "/tf"

    def frame_id(self, name: str) -> str:
        """A frame; no slash in front (REP-105, tf2)."""
        return f"{self.frame}{name}"


def names_of(robot: str, profile: str | Profile, alone: bool) -> Names:
    """The names of a robot.

    Parameters
    ----------
    robot : str
        Its name.
    profile : str or Profile
        One of `PROFILES`, or one that was made of it.
    alone : bool
        It is the only robot.
    """
    p, name = (
        PROFILES[profile] if isinstance(profile, str) else profile,
        graph_name(robot),
    )
    node, prefix, frame = (
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
