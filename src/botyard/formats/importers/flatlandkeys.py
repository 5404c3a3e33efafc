"""Keys of Flatland's YAML files.

Source: the documentation of Flatland (https://flatland-simulator.readthedocs.io).
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, left_out, read

_ENGINE = "botyard has its own engine"
_ROS = "topics, frames and rates have botyard's names and options"
_PLUGIN = {
    "type": read("kind of the plugin"),
    "name": read("name"),
    "enabled": read("false: skipped"),
    "body": read("body that it belongs to"),
}
_ODOMETRY = dict.fromkeys(
    (
        "odom_pose_noise",
        "odom_twist_noise",
        "odom_stationary_noise",
        "odom_pose_covariance",
        "odom_twist_covariance",
    ),
    left_out("odometry is exact", [0, 0, 0], False),
)
_TOPICS = dict.fromkeys(
    (
        "odom_frame_id",
        "pub_rate",
        "twist_sub",
        "odom_pub",
        "ground_truth_pub",
        "ground_truth_frame_id",
        "twist_pub",
        "enable_odom_pub",
        "odom_include_pose",
        "enable_odom_tf",
        "enable_twist_pub",
        "twist_in_local_frame",
    ),
    left_out(_ROS),
)
_DYNAMICS = {
    "velocity_limit": read("top speed; 0: no limit"),
    "acceleration_limit": read("acceleration; 0: no limit"),
    "deceleration_limit": read("deceleration; default: the acceleration"),
}

KEYS: Final = Keys(
    {
        "world": {
            "layers": read("walls"),
            "models": read("robots, walls, objects and moving objects"),
            "properties": left_out(_ENGINE, {}),
            "plugins": left_out("code of Flatland does not run", []),
        },
        "layer": {
            "name": read("name; lasers and footprints name their layers"),
            "map": read("a ROS map, or line segments"),
            "color": left_out("affects only the drawing"),
            "properties": left_out(_ENGINE, {}),
        },
        "line map": {
            "type": read("`line_segments`"),
            "data": read("text file: x1 y1 x2 y2 in each line"),
            "scale": read("factor of the coordinates, m"),
            "origin": read("pose of the coordinates"),
        },
        "placed model": {
            "name": read("name of the robot or object"),
            "model": read("file of the model"),
            "pose": read("pose"),
            "namespace": left_out(_ROS, ""),
            "enabled": read("false: skipped"),
        },
        "model": {
            "bodies": read("parts of the body"),
            "joints": read("place bodies on the driven body"),
            "plugins": read("drive, lasers and motion"),
        },
        "body": {
            "name": read("name"),
            "pose": read("pose in the model"),
            "origin": read("pose in the model (old name)"),
            "type": read("`static`: walls"),
            "color": read("colour"),
            "enabled": read("false: skipped"),
            "footprints": read("shapes"),
            "linear_damping": left_out("objects stop by friction on the floor", 0, 0.0),
            "angular_damping": left_out(
                "objects stop by friction on the floor", 0, 0.0
            ),
        },
        "footprint": {
            "type": read("`circle` or `polygon`"),
            "radius": read("radius of a circle, m"),
            "center": read("centre of a circle, m"),
            "points": read("corners, m"),
            "density": read("mass per area of an object, kg/m²"),
            "friction": read("friction at the sides of an object"),
            "restitution": read("restitution of an object"),
            "sensor": read("true: no part of the body"),
            "is_sensor": read("the same (old name)"),
            "collision": read("false: no part of the body"),
            "layers": read("layers that it collides with"),
            "self_collide": left_out("bodies are rigid", False),
        },
        "joint": {
            "type": read("`weld` or `revolute`: the two bodies are one"),
            "bodies": read("names and anchors"),
            "angle": read("angle of a weld, rad"),
            "enabled": read("false: skipped"),
            **dict.fromkeys(
                ("name", "collide_connected", "limits", "frequency", "damping"),
                left_out("bodies are rigid", False, 0, 0.0),
            ),
        },
        "DiffDrive": {
            **_PLUGIN,
            "linear_dynamics": read("top speed and acceleration, m/s and m/s²"),
            "angular_dynamics": read("the same of rotation, rad/s and rad/s²"),
            "origin": left_out("the body turns about its origin", [0, 0, 0]),
            **_ODOMETRY,
            **_TOPICS,
        },
        "TricycleDrive": {
            **_PLUGIN,
            "linear_dynamics": read("top speed and acceleration, m/s and m/s²"),
            "max_steer_angle": read("steering limit, rad; 0: 60°"),
            "front_wheel_joint": read("place of the front wheel"),
            "rear_left_wheel_joint": read("place of a rear wheel"),
            "rear_right_wheel_joint": read("place of a rear wheel"),
            "angular_dynamics": read("rate of the steering angle, rad/s"),
            "max_angular_velocity": read("rate of the steering angle, rad/s"),
            "max_steer_velocity": read("rate of the steering angle, rad/s"),
            "max_steer_acceleration": left_out(
                "the steering angle has no acceleration"
            ),
            **_ODOMETRY,
            **_TOPICS,
        },
        "dynamics": _DYNAMICS,
        "Laser": {
            **_PLUGIN,
            "origin": read("mounting pose on its body"),
            "range": read("greatest range, m"),
            "angle": read("`min`, `max` and `increment` of the rays, rad"),
            "noise_std_dev": read("standard deviation of ranges, m"),
            "update_rate": read("how often ROS programs get scans; `.inf`: each step"),
            "layers": read("layers that it sees"),
            "upside_down": read("mounted upside down"),
            **dict.fromkeys(
                ("topic", "broadcast_tf", "frame", "always_publish"), left_out(_ROS)
            ),
        },
        "Tween": {
            **_PLUGIN,
            "mode": read("`yoyo`: back and forth, `once`; others move back and forth"),
            "delta": read("displacement, m; a turn is left out"),
            "duration": read("time of one way, s"),
            "easing": left_out("bodies move at constant speed", "linear"),
            "trigger_topic": left_out(_ROS),
        },
    }
)

__all__ = ["KEYS"]
