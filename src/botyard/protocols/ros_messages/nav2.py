"""Actions of nav2_msgs: goals, results and feedback by distribution of ROS 2.

Names, fields and codes are those of the package's own definitions
(ros-navigation/navigation2, ``nav2_msgs/action``), as docs.ros.org shows them for each
distribution (``docs.ros.org/en/jazzy/p/nav2_msgs``): results have codes from Iron on,
and messages from Jazzy on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

PACKAGE: Final = "nav2_msgs"
_FEEDBACK: Final = (
    "geometry_msgs/PoseStamped current_pose\n"
    "builtin_interfaces/Duration navigation_time\n"
    "builtin_interfaces/Duration estimated_time_remaining\n"
    "int16 number_of_recoveries\nfloat32 distance_remaining"
)
_EMPTY: Final = "std_msgs/Empty result"
_CODE: Final = "uint16 error_code"
_CODES: Final = f"{_CODE}\nstring error_msg"
_TO_POSE: Final = "geometry_msgs/PoseStamped pose\nstring behavior_tree"
_THROUGH: Final = "geometry_msgs/PoseStamped[] poses\nstring behavior_tree"
_THROUGH_FEEDBACK: Final = f"{_FEEDBACK}\nint16 number_of_poses_remaining"
_COMPUTE: Final = (
    "geometry_msgs/PoseStamped goal\ngeometry_msgs/PoseStamped start\n"
    "string planner_id\nbool use_start"
)
_COMPUTED: Final = "nav_msgs/Path path\nbuiltin_interfaces/Duration planning_time"
_FOLLOW: Final = "nav_msgs/Path path\nstring controller_id\nstring goal_checker_id"
_FOLLOW_FEEDBACK: Final = "float32 distance_to_goal\nfloat32 speed"
_HUMBLE: Final = {
    "NavigateToPose": (_TO_POSE, _EMPTY, _FEEDBACK),
    "NavigateThroughPoses": (_THROUGH, _EMPTY, _THROUGH_FEEDBACK),
    "ComputePathToPose": (_COMPUTE, _COMPUTED, ""),
    "FollowPath": (_FOLLOW, _EMPTY, _FOLLOW_FEEDBACK),
}


def _with(codes: str) -> dict[str, tuple[str, str, str]]:
    """Return the actions of Iron and later distributions, with the given fields of result codes."""
    checked = f"{_FOLLOW}\nstring progress_checker_id"
    return {
        "NavigateToPose": (_TO_POSE, codes, _FEEDBACK),
        "NavigateThroughPoses": (_THROUGH, codes, _THROUGH_FEEDBACK),
        "ComputePathToPose": (_COMPUTE, f"{_COMPUTED}\n{codes}", ""),
        "FollowPath": (checked, f"{_EMPTY}\n{codes}", _FOLLOW_FEEDBACK),
    }


_BY_DISTRO: Final = {"humble": _HUMBLE, "iron": _with(_CODE)}
_JAZZY: Final = _with(_CODES)
UNLIKE: Final = {
    "NavigateThroughPoses": frozenset(["kilted", "lyrical", "rolling"]),
    "FollowPath": frozenset(["lyrical", "rolling"]),
}
"""Actions that are not offered in some distributions, because their messages differ there.

From Kilted on, NavigateThroughPoses has nav_msgs/Goals. After Kilted, FollowPath has
nav2_msgs/TrackingFeedback.
"""


def actions(distro: str) -> Mapping[str, tuple[str, str, str]]:
    """Return goals, results and feedback of the actions that are offered, by name.

    Parameters
    ----------
    distro : str
        Distribution of ROS 2.
    """
    found = _BY_DISTRO.get(distro, _JAZZY)
    return {
        name: texts
        for name, texts in found.items()
        if distro not in UNLIKE.get(name, ())
    }


class Code(IntEnum):
    """Error codes of results."""

    NONE = 0
    # FollowPath
    CONTROLLER_UNKNOWN = 100
    CONTROLLER_TF_ERROR = 102
    INVALID_PATH = 103
    FAILED_TO_MAKE_PROGRESS = 105
    NO_VALID_CONTROL = 106
    # ComputePathToPose
    PLANNER_UNKNOWN = 200
    PLANNER_TF_ERROR = 202
    START_OUTSIDE_MAP = 203
    GOAL_OUTSIDE_MAP = 204
    START_OCCUPIED = 205
    GOAL_OCCUPIED = 206
    NO_VALID_PATH = 208
    # NavigateToPose
    UNKNOWN = 9000
    TF_ERROR = 9002
    # NavigateThroughPoses
    THROUGH_UNKNOWN = 9100
    THROUGH_TF_ERROR = 9102


__all__ = ["PACKAGE", "Code", "actions"]
