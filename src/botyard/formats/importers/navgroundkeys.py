"""Keys of navground's YAML files: experiments, scenarios and worlds.

Source: the JSON schema that navground 0.7 prints (``navground_py schema``).
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, left_out, read

_RECORD = "botyard records with --record"
_OWN = "botyard's controllers have parameters of their own"
_AGENT = {
    "position": read("start position"),
    "orientation": read("start heading"),
    "radius": read("radius of the body"),
    "color": read("colour"),
    "kinematics": read("drive"),
    "behavior": read("controller"),
    "task": read("goals of the controller"),
    "state_estimation": read("laser, if it is a `Lidar`"),
    "state_estimations": read("lasers among them"),
    "type": read("name of the robot"),
    "ignore_collisions": read("true: no body stops it"),
    **dict.fromkeys(
        (
            "control_period",
            "speed_tolerance",
            "angular_speed_tolerance",
            "id",
            "uid",
            "tags",
        ),
        left_out(_OWN),
    ),
}

KEYS: Final = Keys(
    {
        "experiment": {
            "scenario": read("world"),
            "time_step": read("step"),
            "steps": read("with `time_step`, the duration"),
            "run_index": read("seed"),
            "name": left_out("the file names the map"),
            "runs": left_out("one run at a time; see studies", 1),
            "terminate_when_all_idle_or_stuck": left_out("a run has its duration"),
            **dict.fromkeys(
                (
                    "record_actuated_cmd",
                    "record_cmd",
                    "record_collisions",
                    "record_deadlocks",
                    "record_efficacy",
                    "record_neighbors",
                    "record_pose",
                    "record_safety_violation",
                    "record_scenario_properties",
                    "record_sensing",
                    "record_target",
                    "record_task_events",
                    "record_time",
                    "record_twist",
                    "record_world",
                    "reset_uids",
                    "save_directory",
                    "use_agent_uid_as_key",
                ),
                left_out(_RECORD, False, ""),
            ),
        },
        "world": {
            "type": read("`Antipodal`, `Corridor`, `Cross`, `CrossTorus` or `Simple`"),
            "obstacles": read("walls around discs"),
            "walls": read("walls"),
            "groups": read("robots"),
            "agents": read("robots"),
            "bounding_box": read("first view"),
            "radius": read("radius of `Antipodal`, m"),
            "length": read("length of `Corridor`, m"),
            "width": read("width of `Corridor`, m"),
            "side": read("side of `Cross` and `CrossTorus`, m"),
            "tolerance": read("distance at which a goal counts as reached, m"),
            "agent_margin": read("distance of random places, m"),
            **dict.fromkeys(
                (
                    "position_noise",
                    "orientation_noise",
                    "shuffle",
                    "target_margin",
                    "add_safety_to_agent_margin",
                ),
                left_out("places of a scenario are drawn by botyard's rule", 0),
            ),
            "lattice": left_out("the plane does not repeat"),
            "attributes": left_out("values of the user's own program"),
            "ignore_collisions": left_out("robots collide", False),
        },
        "obstacle": {
            "position": read("centre"),
            "radius": read("radius, m"),
            "ignore_collisions": left_out("robots collide", False),
            "uid": left_out("objects have names"),
        },
        "wall": {
            "line": read("two ends"),
            "ignore_collisions": left_out("robots collide", False),
            "uid": left_out("objects have names"),
        },
        "agent": _AGENT
        | dict.fromkeys(
            ("velocity", "angular_speed", "external", "attributes"),
            left_out("robots start at rest", [0, 0], 0, 0.0, False),
        ),
        "group": _AGENT
        | {
            "number": read("number of robots"),
            "name": read("name of the robots"),
        },
        "kinematics": {
            "type": read("`2WDiff`, `2WDiffDyn`, `Ahead`, `Omni`, `4WOmni`, `Bicycle`"),
            "max_speed": read("top speed, m/s"),
            "max_angular_speed": read("top turn rate, rad/s"),
            "wheel_axis": read("track, m"),
            "axis": read("distance of the axles of a `Bicycle`, m"),
            "max_steering_angle": read(
                "steering limit of a `Bicycle`, rad; 1 by default"
            ),
            "max_acceleration": read("acceleration, m/s²"),
            **dict.fromkeys(
                (
                    "max_forward_speed",
                    "max_backward_speed",
                    "moi",
                    "k",
                    "use_velocity_norm",
                ),
                left_out("the drive of botyard has no such limit", float("inf")),
            ),
        },
        "behavior": {
            "type": read("`ORCA`, `HRVO`, `HL`: `orca`; `SocialForce`: `socialforce`"),
            "optimal_speed": read("speed, m/s"),
            "safety_margin": read("distance from other bodies, m"),
            **dict.fromkeys(
                (
                    "horizon",
                    "heading",
                    "kinematics",
                    "modulations",
                    "optimal_angular_speed",
                    "path_look_ahead",
                    "path_tau",
                    "radius",
                    "rotation_tau",
                    "social_margin",
                    "aperture",
                    "barrier_angle",
                    "epsilon",
                    "eta",
                    "resolution",
                    "tau",
                    "max_neighbors",
                    "uncertainty_offset",
                    "effective_center",
                    "static_time_horizon",
                    "time_horizon",
                    "treat_obstacles_as_agents",
                    "environment",
                ),
                left_out(_OWN),
            ),
        },
        "task": {
            "type": read("`Waypoints`, `GoToPose` or `Path`; others are left out"),
            "waypoints": read("goals"),
            "points": read("goals of `Path`"),
            "point": read("goal of `GoToPose`"),
            "loop": read("false: once"),
            "tolerance": read("distance at which a goal counts as reached, m"),
            "wait_time": read("pause at a goal, s"),
            **dict.fromkeys(
                (
                    "angular_tolerance",
                    "angular_tolerances",
                    "orientation",
                    "orientations",
                    "random",
                    "tolerances",
                    "wait_times",
                    "direction",
                ),
                left_out(_OWN, float("inf"), [], False, 0),
            ),
        },
        "sensor": {
            "type": read("`Lidar` or `pyLidar`; others are left out"),
            "range": read("greatest range, m"),
            "field_of_view": read("angle of the scan, rad"),
            "start_angle": read("bearing of the first ray, rad"),
            "resolution": read("number of rays"),
            "position": read("mounting position, m"),
            "error_std_dev": read("standard deviation of ranges, m"),
            "error_bias": left_out("errors have the mean 0", 0, 0.0),
            "name": left_out("lasers are numbered", ""),
        },
    }
)

__all__ = ["KEYS"]
