"""Elements and attributes of SDF files.

Source: the SDFormat specification 1.9 (http://sdformat.org/spec).
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, drawing, left_out, read

_FLAT = "the world is flat"
_JOINTS = "bodies are rigid; joints that a drive names give the places of its wheels"
ROLLING: Final = (
    "left_joint",
    "right_joint",
    "leftJoint",
    "rightJoint",
    "front_left_joint",
    "front_right_joint",
    "back_left_joint",
    "back_right_joint",
    "rear_left_joint",
    "rear_right_joint",
    "encoder_wheel_left_joint",
    "encoder_wheel_right_joint",
)
"""Elements of plugins that name joints of wheels."""
STEERING: Final = ("left_steering_joint", "right_steering_joint", "steering_joint")
"""Elements of plugins that name steered joints."""
_FRAMES = {
    "pose": read("pose in space: x, y, z, roll, pitch, yaw, or a quaternion"),
    "name": read("name"),
}
_RAY = {
    "scan": read("rays"),
    "range": read("least and greatest range"),
    "noise": read("errors of ranges"),
    "visibility_mask": left_out("lasers see all walls"),
}

KEYS: Final = Keys(
    {
        "sdf": {
            "version": read("any version is read"),
            "world": read("the world; the first of several"),
            "model": read("a model alone"),
            "light": left_out("affects only the drawing"),
            "actor": left_out("actors are not simulated"),
        },
        "world": {
            "name": read("name of the map"),
            "model": read("walls, objects and robots"),
            "include": read("the same from another file"),
            "physics": read("step and speed"),
            "frame": read("named pose"),
            "spherical_coordinates": read("position of the origin on Earth"),
            "population": left_out("models that are placed at random are left out"),
            "actor": left_out("actors are not simulated"),
            "state": left_out("the world starts as its models say"),
            "plugin": left_out("code of Gazebo does not run"),
            "joint": left_out(_JOINTS),
            **dict.fromkeys(
                ("gravity", "wind", "atmosphere", "magnetic_field", "road"),
                left_out(_FLAT),
            ),
            **drawing("light", "scene", "gui", "audio"),
        },
        "physics": {
            "max_step_size": read("step"),
            "real_time_factor": read("speed; 0: as fast as possible"),
            **dict.fromkeys(
                (
                    "name",
                    "type",
                    "default",
                    "real_time_update_rate",
                    "max_contacts",
                    "ode",
                    "bullet",
                    "dart",
                    "simbody",
                    "gravity",
                    "magnetic_field",
                ),
                left_out("botyard has its own engine"),
            ),
        },
        "spherical_coordinates": {
            "latitude_deg": read("latitude of the origin"),
            "longitude_deg": read("longitude of the origin"),
            "elevation": read("altitude of the origin"),
            "heading_deg": left_out("the x axis points east", "0"),
            "surface_model": left_out("the ellipsoid is WGS 84", "EARTH_WGS84"),
            "world_frame_orientation": left_out("the x axis points east", "ENU"),
            "surface_axis_equatorial": left_out("the ellipsoid is WGS 84"),
            "surface_axis_polar": left_out("the ellipsoid is WGS 84"),
        },
        "include": {
            "uri": read("folder or file; `model://` is searched next to the world"),
            "pose": read("pose of the model"),
            "name": read("name of the model"),
            "static": read("true: walls"),
            "placement_frame": left_out("the model's own frame is placed"),
            "plugin": read("drive of the model"),
            "merge": left_out("a model stays a model of its own", "false"),
            "experimental": left_out("parameters of models are not changed"),
        },
        "model": {
            **_FRAMES,
            "static": read("true: walls; otherwise an object with a mass, or a robot"),
            "link": read("bodies"),
            "model": read("models inside"),
            "include": read("models inside"),
            "frame": read("named pose"),
            "plugin": read("drive, if it is one of botyard's kinds"),
            "joint": left_out(_JOINTS),
            "gripper": left_out("no gripper of botyard fits"),
            "canonical_link": left_out("the model's own frame counts"),
            "placement_frame": left_out("the model's own frame counts"),
            **dict.fromkeys(
                ("self_collide", "allow_auto_disable", "enable_wind"), left_out(_FLAT)
            ),
        },
        "frame": {
            **_FRAMES,
            "attached_to": read("frame that it belongs to"),
        },
        "link": {
            **_FRAMES,
            "collision": read("shapes that the plane cuts"),
            "inertial": read("mass of a body that is not static"),
            "sensor": read("lasers"),
            "visual": left_out("shapes that nothing hits affect only the drawing"),
            **dict.fromkeys(
                (
                    "gravity",
                    "enable_wind",
                    "kinematic",
                    "self_collide",
                    "must_be_base_link",
                    "velocity_decay",
                ),
                left_out(_FLAT),
            ),
            **dict.fromkeys(
                ("battery", "audio_source", "audio_sink", "projector"),
                left_out("it is not simulated"),
            ),
            **drawing("light", "particle_emitter"),
        },
        "inertial": {
            "mass": read("mass, kg"),
            "auto": left_out("the inertia follows from the outline"),
            **dict.fromkeys(
                ("inertia", "pose", "density", "fluid_added_mass"),
                left_out("the inertia follows from the outline"),
            ),
        },
        "collision": {
            **_FRAMES,
            "geometry": read("shape"),
            **dict.fromkeys(
                ("surface", "laser_retro", "max_contacts", "density", "auto_inertia"),
                left_out("all surfaces are alike"),
            ),
        },
        "geometry": {
            "box": read("cut exactly"),
            "cylinder": read("cut as a polygon"),
            "sphere": read("cut as a polygon"),
            "capsule": read("cut as a polygon"),
            "cone": read("cut as a polygon"),
            "ellipsoid": read("cut as a polygon"),
            "polyline": read("its corners, if it stands upright"),
            "plane": read("a wall, if it stands upright; the floor otherwise"),
            "empty": read("nothing"),
            "mesh": left_out("meshes are not read; add a box or a polyline"),
            "heightmap": left_out(_FLAT),
            "image": left_out("pictures of SDF are not read"),
        },
        "shape": {
            "size": read("sides of a box, or of a plane, m"),
            "radius": read("radius, m"),
            "length": read("length along z, m"),
            "radii": read("radii of an ellipsoid, m"),
            "normal": read("normal of a plane"),
            "point": read("corner of a polyline, m"),
            "height": read("height of a polyline, m"),
        },
        "sensor": {
            **_FRAMES,
            "type": read("`ray`, `lidar`, `gpu_ray`, `gpu_lidar`; others are left out"),
            "update_rate": read("`update_rate`: how often ROS programs get scans"),
            "ray": read("rays"),
            "lidar": read("rays"),
            "topic": left_out("topics have botyard's names"),
            "frame_id": left_out("frames have botyard's names"),
            "gz_frame_id": left_out("frames have botyard's names"),
            "always_on": left_out("sensors are always on"),
            "plugin": left_out("code of Gazebo does not run"),
            "enable_metrics": left_out("it is not simulated"),
            **drawing("visualize"),
        },
        "ray": _RAY,
        "scan": {
            "horizontal": read("rays in the plane"),
            "vertical": left_out(_FLAT),
        },
        "horizontal": {
            "samples": read("number of rays"),
            "min_angle": read("bearing of the first ray"),
            "max_angle": read("bearing of the last ray"),
            "resolution": left_out("each ray is one sample", "1", "1.0", "1.000000"),
        },
        "range": {
            "min": read("least range, m"),
            "max": read("greatest range, m"),
            "resolution": left_out("ranges are exact"),
        },
        "noise": {
            "type": read("`gaussian` or `none`"),
            "mean": left_out("errors have the mean 0", "0", "0.0"),
            "stddev": read("standard deviation, m"),
            "bias_mean": left_out("errors have the mean 0", "0", "0.0"),
            "bias_stddev": left_out("errors have the mean 0", "0", "0.0"),
            "precision": left_out("ranges are exact"),
        },
        "plugin": {
            "name": read("names the drive"),
            "filename": read("names the drive"),
            "wheel_separation": read("track, m"),
            "wheelSeparation": read("track, m"),
            "wheel_radius": read("radius of the wheels, m"),
            "wheel_diameter": read("diameter of the wheels, m"),
            "wheelDiameter": read("diameter of the wheels, m"),
            "encoder_wheel_diameter": read("diameter of the wheels, m"),
            "wheel_base": read("distance of the axles of a car, m"),
            "wheelbase": read("distance of the axles of a car, m"),
            "steering_limit": read("largest steering angle of a car, rad"),
            "max_steer": read("largest steering angle of a car, rad"),
            "max_steering_speed": read("rate of the steering angle, rad/s"),
            "max_speed": read("top speed, m/s"),
            **dict.fromkeys(ROLLING, read("wheel, for the middle of the axle")),
            **dict.fromkeys(STEERING, read("steered wheel, for the wheelbase")),
            "max_velocity": read("top speed, m/s"),
            "max_linear_velocity": read("top speed, m/s"),
            "max_angular_velocity": read("top turn rate, rad/s"),
            "max_acceleration": read("acceleration, m/s²"),
            "max_linear_acceleration": read("acceleration, m/s²"),
            "max_angular_acceleration": read("angular acceleration, rad/s²"),
            **dict.fromkeys(
                (
                    "min_velocity",
                    "min_linear_velocity",
                    "min_angular_velocity",
                    "min_acceleration",
                    "min_linear_acceleration",
                    "min_angular_acceleration",
                ),
                left_out("speeds are equal in both directions"),
            ),
            **dict.fromkeys(
                (
                    "actuated_wheel_joint",
                    "actuated_wheel_diameter",
                    "steering_wheel_joint",
                    "kingpin_width",
                    "num_wheel_pairs",
                    "max_wheel_torque",
                    "max_wheel_acceleration",
                    "odometry_source",
                ),
                left_out("wheels are not bodies of their own"),
            ),
            **dict.fromkeys(
                (
                    "topic",
                    "odom_topic",
                    "tf_topic",
                    "frame_id",
                    "child_frame_id",
                    "odometry_topic",
                    "odometry_frame",
                    "robot_base_frame",
                    "command_topic",
                    "publish_odom",
                    "publish_odom_tf",
                    "publish_wheel_tf",
                    "update_rate",
                    "odom_publish_frequency",
                    "ros",
                ),
                left_out("topics and frames have botyard's names"),
            ),
        },
    }
)

__all__ = ["KEYS"]
