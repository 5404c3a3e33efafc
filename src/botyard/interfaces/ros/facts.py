"""Parameters of a robot's ROS 2 node that describe the simulation.

A profile of names selects the parameters that a node has
(`botyard.protocols.ros_messages.naming.Profile`).
"""

from __future__ import annotations

import math

from botyard.control import SetSpeed
from botyard.interfaces.ros.members import Context
from botyard.model.sensors import LaserSpec
from botyard.protocols.ros_messages.devices import frame_of, period_of, shown_devices
from botyard.protocols.ros_messages.frames import MAP
from botyard.protocols.ros_messages.naming import Names
from botyard.protocols.ros_messages.parameters import Value
from botyard.protocols.ros_messages.robot import RobotTopics


def facts(context: Context, topics: RobotTopics, names: Names) -> dict[str, Value]:
    """Return the parameters of a robot's node, by name.

    Parameters
    ----------
    context : Context
        Shared parts of the graph.
    topics : RobotTopics
        Topics of the robot.
    names : Names
        Names of the robot's topics and frames, with the profile.
    """
    sim, profile = context.hub.sim, names.profile
    step = Value(lambda: sim.dt, "simulated time of a step, s")
    located = context.data.frames.is_localized
    base, odom = names.frame_id(profile.base), names.frame_id("odom")
    found = {
        "update_duration": step,
        "odom_publish_dur": step,
        "base_frame_id": Value(lambda: base, "frame that odometry moves"),
        "odom_frame_id": Value(lambda: odom, "frame of odometry"),
        "map_frame_id": Value(lambda: MAP, "frame of the map"),
        "publish_map_odom_tf": Value(lambda: located, "whether map → odom is sent"),
        "publish_clock": Value(lambda: context.sim_time, "whether /clock is sent"),
        "enable_stamped_cmd_vel": Value(
            lambda: True, "whether cmd_vel accepts TwistStamped, in addition to Twist"
        ),
        "publish_scan": Value(lambda: False, "whether the robot has a laser"),
        "speed_factor": Value(
            lambda: context.hub.speed,
            "simulated time per wall time; 0 means as fast as possible",
            lambda factor: context.do(SetSpeed(speed=factor)),
        ),
    }
    found |= _scans(context, topics, names)
    return {name: value for name, value in found.items() if name in profile.parameters}


def _scans(context: Context, topics: RobotTopics, names: Names) -> dict[str, Value]:
    """Return the parameters of the first laser; none without a laser."""
    lasers = (
        (one, one.reader.spec)
        for one in shown_devices(topics.port, names)
        if isinstance(one.reader.spec, LaserSpec)
    )
    one, spec = next(lasers, (None, None))
    if one is None or spec is None:
        return {}
    frame = frame_of(one, names)
    # Without a rate of its own a laser publishes in each step.
    period = period_of(one, context.scan_rate) or context.hub.sim.dt
    spacing = spec.fov / max(1, spec.samples - 1)
    noise = math.sqrt(
        spec.range_deviation * spec.range_deviation
        + spec.range_noise * spec.range_noise / 3.0
    )
    return {
        "publish_scan": Value(lambda: True, "whether the robot has a laser"),
        "scan_frame_id": Value(lambda: frame, "frame of the laser"),
        "scan_publish_dur": Value(lambda: period, "time between two scans, s"),
        "scan_range_min": Value(lambda: spec.range_min, "least range, m"),
        "scan_range_max": Value(lambda: spec.range_max, "greatest range, m"),
        "scan_angle_min": Value(lambda: -spec.fov / 2, "first bearing, rad"),
        "scan_angle_max": Value(lambda: spec.fov / 2, "last bearing, rad"),
        "scan_angle_increment": Value(lambda: spacing, "spacing of beams, rad"),
        "scan_noise_std": Value(lambda: noise, "standard deviation of a range, m"),
        "scan_use_inf": Value(lambda: True, "infinite ranges where nothing is hit"),
    }


__all__ = ["facts"]
