"""Parameters that Nav2's nodes and plugins declare, as far as our files may set them.

Each entry cites its source in github.com/ros-navigation/navigation2: path and commit.
"""

from __future__ import annotations

from typing import Any, Final

STAMPED: Final = "enable_stamped_cmd_vel"
"""Declared by the publisher of velocities: nav2_util twist_publisher.hpp (108b105)."""
NODES: Final[dict[str, str]] = {
    # nav2_amcl/src/amcl_node.cpp (0051083)
    "amcl": "alpha1 alpha2 alpha3 alpha4 alpha5 base_frame_id beam_skip_distance do_beamskip "
    "global_frame_id lambda_short laser_likelihood_max_dist laser_max_range laser_min_range "
    "laser_model_type set_initial_pose max_beams max_particles min_particles odom_frame_id "
    "pf_err pf_z robot_model_type save_pose_rate sigma_hit tf_broadcast transform_tolerance "
    "update_min_a update_min_d z_hit z_max z_rand z_short scan_topic map_topic",
    # nav2_bringup/params/nav2_params.yaml (00d26e0)
    "bt_navigator": "global_frame robot_base_frame odom_topic bt_loop_duration",
    # nav2_controller/src/controller_server.cpp (011e9cf); the topic: nav_2d_utils OdomSubscriber
    "controller_server": "controller_frequency progress_checker_plugins goal_checker_plugins "
    "controller_plugins min_x_velocity_threshold min_y_velocity_threshold "
    "min_theta_velocity_threshold speed_limit_topic failure_tolerance odom_topic "
    f"costmap_update_timeout {STAMPED}",
    # nav2_bringup/params/nav2_params.yaml (00d26e0)
    "planner_server": "planner_plugins expected_planner_frequency",
    # nav2_behaviors/src/behavior_server.cpp (145017f), and nav2_params.yaml of Jazzy
    "behavior_server": "local_costmap_topic global_costmap_topic local_footprint_topic "
    "global_footprint_topic cycle_frequency behavior_plugins local_frame global_frame "
    f"robot_base_frame transform_tolerance {STAMPED}",
    # nav2_velocity_smoother/src/velocity_smoother.cpp (013f94b)
    "velocity_smoother": "smoothing_frequency feedback scale_velocities max_velocity "
    "min_velocity max_accel max_decel odom_topic odom_duration deadband_velocity "
    f"velocity_timeout {STAMPED}",
    # nav2_collision_monitor/src/collision_monitor_node.cpp (0148fcb)
    "collision_monitor": "cmd_vel_in_topic cmd_vel_out_topic state_topic base_frame_id "
    "odom_frame_id transform_tolerance source_timeout base_shift_correction "
    f"stop_pub_timeout polygons observation_sources {STAMPED}",
    # nav2_docking/opennav_docking/src/docking_server.cpp (011e0b3), dock_database.cpp (0586a2d)
    "docking_server": "controller_frequency initial_perception_timeout wait_charge_timeout "
    "dock_approach_timeout max_retries base_frame fixed_frame dock_prestaging_tolerance "
    f"dock_plugins docks dock_database {STAMPED}",
    # nav2_route/src/route_server.cpp (013e148)
    "route_server": "route_frame base_frame max_planning_time graph_filepath",
    # nav2_bringup/params/nav2_params.yaml (00d26e0)
    "map_server": "yaml_filename",
    # nav2_costmap_2d/src/costmap_2d_ros.cpp (0062e22)
    "local_costmap": "COSTMAP",
    "global_costmap": "COSTMAP",
}
COSTMAP: Final = (
    "always_send_full_costmap footprint_padding footprint global_frame height width "
    "lethal_cost_threshold plugins filters publish_frequency resolution robot_base_frame "
    "robot_radius rolling_window track_unknown_space transform_tolerance trinary_costmap "
    "update_frequency"
)
PLUGINS: Final[dict[str, str]] = {
    # nav2_regulated_pure_pursuit_controller/src/parameter_handler.cpp (007e7c6)
    "nav2_regulated_pure_pursuit_controller::RegulatedPurePursuitController": "desired_linear_vel "
    "lookahead_dist min_lookahead_dist max_lookahead_dist lookahead_time "
    "rotate_to_heading_angular_vel use_velocity_scaled_lookahead_dist use_rotate_to_heading "
    "rotate_to_heading_min_angle max_angular_accel allow_reversing use_collision_detection",
    # nav2_bringup/params/nav2_params.yaml (00d26e0)
    # nav2_mppi_controller/README.md (0254af6)
    "nav2_mppi_controller::MPPIController": "motion_model critics iteration_count batch_size "
    "time_steps model_dt vx_std vy_std wz_std vx_max vy_max vx_min wz_max temperature gamma "
    "retry_attempt_limit regenerate_noises prune_distance transform_tolerance "
    "enforce_path_inversion AckermannConstraints",
    # nav2_smac_planner/README.md (01d8f55)
    "nav2_smac_planner::SmacPlannerHybrid": "tolerance downsample_costmap allow_unknown "
    "max_iterations max_planning_time motion_model_for_search angle_quantization_bins "
    "minimum_turning_radius reverse_penalty change_penalty",
    # nav2_bringup/params/nav2_params.yaml (00d26e0)
    "nav2_behaviors::BackUp": "",
    "nav2_behaviors::DriveOnHeading": "",
    "nav2_behaviors::Wait": "",
    "nav2_navfn_planner::NavfnPlanner": "tolerance use_astar allow_unknown",
    "nav2_costmap_2d::StaticLayer": "map_subscribe_transient_local map_topic enabled",
    "nav2_costmap_2d::InflationLayer": "inflation_radius cost_scaling_factor enabled",
    # nav2_costmap_2d/plugins/obstacle_layer.cpp (021483b)
    "nav2_costmap_2d::ObstacleLayer": "enabled footprint_clearing_enabled min_obstacle_height "
    "max_obstacle_height combination_method observation_sources",
    # nav2_docking/opennav_docking/src/simple_charging_dock.cpp (00fe819)
    "opennav_docking::SimpleChargingDock": "use_battery_status use_external_detection_pose "
    "external_detection_timeout charging_threshold use_stall_detection docking_threshold "
    "staging_x_offset staging_yaw_offset",
}
# nav2_costmap_2d/plugins/obstacle_layer.cpp (021483b)
OBSERVATION: Final = (
    "topic sensor_frame observation_persistence expected_update_rate data_type "
    "min_obstacle_height max_obstacle_height inf_is_valid marking clearing "
    "obstacle_max_range obstacle_min_range raytrace_max_range raytrace_min_range"
)
# nav2_collision_monitor/src/polygon.cpp (0001d86): of the action "approach"
POLYGON: Final = (
    "type action_type enabled min_points time_before_collision simulation_time_step "
    "visualize polygon_pub_topic points footprint_topic"
)
# nav2_collision_monitor/src/source.cpp (e76dd36) and scan.cpp (0148fcb)
SOURCE: Final = "type topic enabled source_timeout"


def unknown(file: dict[str, Any]) -> list[str]:
    """Return the parameters of a file that no node declares, as ``node.parameter``."""
    out: list[str] = []
    for node, content in file.items():
        inner = content[node] if node.endswith("_costmap") else content
        given = inner["ros__parameters"]
        declared = NODES.get(node, "").replace("COSTMAP", COSTMAP).split()
        out += _strange(node, given, {*declared, "use_sim_time"})
    return out


def _strange(at: str, given: dict[str, Any], declared: set[str]) -> list[str]:
    """Return the names in a mapping that are neither declared nor listed plugins."""
    lists = {
        name: kind
        for key, kind in _lists(given)
        for name in (key.split() if isinstance(key, str) else key)
    }
    out: list[str] = []
    for name, value in given.items():
        where = f"{at}.{name}"
        if name in lists:
            own = PLUGINS.get(value.get("plugin", ""), lists[name]).split()
            out += _strange(where, value, {*own, "plugin"})
        elif name not in declared:
            out.append(where)
    return out


def _lists(given: dict[str, Any]) -> list[tuple[Any, str]]:
    """Return the lists of names in a mapping, with the parameters of each named part."""
    source = SOURCE if "polygons" in given else OBSERVATION
    out = [(given.get("observation_sources", []), source)]
    out.append((given.get("polygons", []), POLYGON))
    out += [
        (v, "") for k, v in given.items() if k == "plugins" or k.endswith("_plugins")
    ]
    return out
