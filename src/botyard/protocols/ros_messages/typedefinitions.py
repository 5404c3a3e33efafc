"""Definitions of ROS types that rosbags lacks: messages, services and actions."""

from __future__ import annotations

from typing import Final

from botyard.model.devices import built_in_devices
from botyard.protocols.ros_messages import simulation_interfaces as simulation

EXTRA: Final = {
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    # ROS 2 Lyrical has removed this type.
    "geometry_msgs/Pose2D": "float64 x\nfloat64 y\nfloat64 theta",
    # ackermann_msgs is a separate package, which rosbags lacks in all distributions.
    "ackermann_msgs/AckermannDrive": (
        "float32 steering_angle\nfloat32 steering_angle_velocity\nfloat32 speed\n"
        "float32 acceleration\nfloat32 jerk"
    ),
    "ackermann_msgs/AckermannDriveStamped": (
        "std_msgs/Header header\nackermann_msgs/AckermannDrive drive"
    ),
    **{
        name: text
        for d in built_in_devices()
        for ros in d.ros_messages
        for name, text in ros.definitions.items()
    },
}
"""Types that rosbags lacks, of ROS packages and of botyard's devices."""
SERVICES: Final = {
    "std_srvs/Empty": ("", ""),
    "std_srvs/SetBool": ("bool data", "bool success\nstring message"),
    "std_srvs/Trigger": ("", "bool success\nstring message"),
    "nav_msgs/GetMap": ("", "nav_msgs/OccupancyGrid map"),
    "dynamic_reconfigure/Reconfigure": (
        "dynamic_reconfigure/Config config",
        "dynamic_reconfigure/Config config",
    ),
    "roscpp/GetLoggers": ("", "roscpp/Logger[] loggers"),
    "roscpp/SetLoggerLevel": ("string logger\nstring level", ""),
    "botyard_msgs/Step": ("uint32 steps", "bool success\nstring message"),
    "botyard_msgs/SetSpeed": ("float64 factor", "bool success\nstring message"),
    "botyard_msgs/AddRobot": (
        "string model\nstring name\nbool anywhere\ngeometry_msgs/Pose2D pose",
        "bool success\nstring message\nstring name",
    ),
    "botyard_msgs/RemoveRobot": ("string name", "bool success\nstring message"),
    "botyard_msgs/SetPose": (
        "string name\ngeometry_msgs/Pose2D pose",
        "bool success\nstring message",
    ),
    "botyard_msgs/LoadMap": ("string name", "bool success\nstring message"),
    "botyard_msgs/StartRecording": (
        "string name\nfloat64 last\nstring[] topics\nstring[] robots\nstring[] "
        "rate_topics\nfloat64[] rates\nbool on_stall",
        "bool success\nstring message\nstring file",
    ),
    "botyard_msgs/StopRecording": ("", "bool success\nstring message\nstring file"),
    "botyard_msgs/SaveRecording": (
        "string name",
        "bool success\nstring message\nstring file",
    ),
}
"""Requests and responses of services."""
ROS2_SERVICES: Final = {
    "action_msgs/CancelGoal": (
        "action_msgs/GoalInfo goal_info",
        "int8 return_code\naction_msgs/GoalInfo[] goals_canceling",
    ),
    "rcl_interfaces/DescribeParameters": (
        "string[] names",
        "rcl_interfaces/ParameterDescriptor[] descriptors",
    ),
    "rcl_interfaces/GetParameters": (
        "string[] names",
        "rcl_interfaces/ParameterValue[] values",
    ),
    "rcl_interfaces/GetParameterTypes": ("string[] names", "uint8[] types"),
    "rcl_interfaces/ListParameters": (
        "string[] prefixes\nuint64 depth",
        "rcl_interfaces/ListParametersResult result",
    ),
    "rcl_interfaces/SetParameters": (
        "rcl_interfaces/Parameter[] parameters",
        "rcl_interfaces/SetParametersResult[] results",
    ),
    "rcl_interfaces/SetParametersAtomically": (
        "rcl_interfaces/Parameter[] parameters",
        "rcl_interfaces/SetParametersResult result",
    ),
}
"""Requests and responses of services that only ROS 2 has."""
ACTIONS: Final = {
    f"{simulation.PACKAGE}/{name}": texts for name, texts in simulation.ACTIONS.items()
}
"""Goals, results and feedback of actions (ROS 2)."""
ROS1_PACKAGES: Final = frozenset(["dynamic_reconfigure", "roscpp"])
"""Packages that ROS 2 does not have."""
