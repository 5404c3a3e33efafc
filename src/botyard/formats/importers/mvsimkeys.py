"""Elements and attributes of MVSim's worlds, and the use of each.

Source: the documentation of MVSim (https://mvsimulator.readthedocs.io), "World XML".
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, drawing, left_out, read

_ENGINE = "botyard has its own engine"
_FLAT = "the world is flat"
_RECORD = "`botyard --record` records runs"
_FORCES = "speeds follow commands; wheels have no forces"
_TOPICS = "topics have botyard's names"
_MESH = "meshes are not read"
_PLACE = {
    "name": read("name"),
    "class": read("class that completes the element"),
    "init_pose": read("x, y, m, and heading, °"),
    "init_pose3d": read("x, y, z, m, and heading, °; pitch and roll have no effect"),
    "publish": left_out(_TOPICS),
}
_VISUAL = {"visual": left_out(_MESH), "visual_scale": left_out(_MESH)}
_MOVES = {
    "animation": left_out("objects move only if robots push them"),
    "init_vel": left_out("robots and objects start at rest", "0 0 0"),
    "pose_follower": left_out("robots wait for commands"),
}
_TEXTURES = drawing(
    "texture", "normal_map", "texture_size_x", "texture_size_y", "cull_face", "color"
)

KEYS: Final = Keys(
    {
        "world": {
            "version": read("any version is read"),
            "simul_timestep": read("step, s; 0: botyard's own"),
            "element": read("walls and maps"),
            "vehicle": read("robots"),
            "block": read("walls and objects"),
            "actor": read("moving objects"),
            "class": read("classes of vehicles, blocks and actors"),
            "georeference": read("position of the origin on Earth"),
            "walls": left_out(_MESH),
            "joint": left_out("robots and objects are not connected"),
            "sensor": left_out("a sensor that no robot carries is not simulated"),
            "friction": left_out(_FORCES),
            **dict.fromkeys(
                (
                    "gravity",
                    "b2d_vel_iters",
                    "b2d_pos_iters",
                    "collision_threshold",
                    "max_slope_to_collide",
                    "min_slope_to_collide",
                    "server_address",
                    "joystick_enabled",
                ),
                left_out(_ENGINE),
            ),
            **dict.fromkeys(
                (
                    "save_to_rawlog",
                    "rawlog_odometry_rate",
                    "save_ground_truth_trajectory",
                    "ground_truth_rate",
                ),
                left_out(_RECORD),
            ),
            **drawing("gui", "lights", "light", "marker", "light_group"),
        },
        "georeference": {
            "latitude": read("latitude of the origin"),
            "longitude": read("longitude of the origin"),
            "height": read("altitude of the origin"),
            "world_to_enu_rotation_deg": left_out("the x axis points east", "0", "0.0"),
            "utm_zone": left_out("positions are not in UTM"),
            "world_is_utm": left_out("positions are not in UTM", "false"),
        },
        "element": {
            "class": read(
                "`occupancy_grid`, `vertical_plane`; planes on the floor, grids and skies "
                "have no walls; others are left out"
            ),
            "file": read("picture of an `occupancy_grid`, or its ROS map (`.yaml`)"),
            "resolution": read("size of a pixel, m; 0.1 by default"),
            "centerpixel_x": read("pixel in the origin; the middle by default"),
            "centerpixel_y": read("pixel in the origin; the middle by default"),
            **dict.fromkeys(
                ("x0", "y0", "x1", "y1"), read("ends of a `vertical_plane`")
            ),
            "z": read("lower end of a `vertical_plane`: it must reach 0.2 m"),
            "height": read("height of a `vertical_plane`"),
            "restitution": left_out("walls are stiff"),
            "lateral_friction": left_out("walls are stiff"),
            **dict.fromkeys(
                ("property_name", "value_bool", "value_string", "value_double"),
                left_out("regions have no properties"),
            ),
            **dict.fromkeys(
                (
                    "elevation_image",
                    "elevation_data_matrix",
                    "elevation_image_min_z",
                    "elevation_image_max_z",
                    "corner_min_x",
                    "corner_min_y",
                ),
                left_out(_FLAT),
            ),
            **dict.fromkeys(
                ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max"),
                left_out("only the drawing of floors depends on it"),
            ),
            **dict.fromkeys(
                ("geo_corner_sw", "geo_corner_ne"), left_out("floors are not drawn")
            ),
            **_TEXTURES,
            **drawing(
                "floating",
                "float_center_at_vehicle_name",
                "interval",
                "textures",
                "texture_image",
                "texture_image_rotate",
                "texture_extension_x",
                "texture_extension_y",
                "normal_map_image",
                "mesh_color",
                "render_points_size",
                "show_collisions",
                "enable_shadows",
                "name",
            ),
        },
        "vehicle": {
            **_PLACE,
            "dynamics": read("drive and body"),
            "sensor": read("lasers"),
            "friction": left_out(_FORCES),
            "odometry": left_out("odometry is exact"),
            **_VISUAL,
            **_MOVES,
            **drawing("light", "light_group"),
        },
        "dynamics": {
            "class": read("drive"),
            "chassis": read("body"),
            **dict.fromkeys(
                ("l_wheel", "r_wheel", "lf_wheel", "rf_wheel", "lr_wheel", "rr_wheel"),
                read("driven wheels"),
            ),
            "rl_wheel": read("fixed axle of a car"),
            "f_wheels_x": read("place of the steered axle of a car, m; 1.3 by default"),
            "f_wheels_d": read("distance of its wheels, m; 2 by default"),
            "max_steer_ang_deg": read("steering limit, °; 30 by default"),
            **dict.fromkeys(
                ("fl_wheel", "fr_wheel", "caster_wheel", "controller", "drivetrain"),
                left_out(_FORCES),
            ),
        },
        "wheel": {
            "pos": read("place of the wheel, m"),
            "diameter": read("diameter of the wheel, m"),
            **dict.fromkeys(("mass", "width", "inertia_yy"), left_out(_FORCES)),
            **drawing(
                "visual", "color", "linked_yaw_object_name", "linked_yaw_offset_deg"
            ),
        },
        "chassis": {
            "shape": read("corners of the body, m"),
            "shape_from_visual": left_out(f"{_MESH}; the wheels bound the body"),
            "mass": left_out("robots have no mass"),
            **dict.fromkeys(("zmin", "zmax"), left_out(_FLAT)),
            "color": read("colour"),
        },
        "sensor": {
            "class": read("`laser`; others are left out"),
            "name": left_out("sensors have botyard's names"),
            "pose": read("mounting: x, y, m, and heading, °"),
            "pose_3d": read("mounting: x, y, z, m, and heading, pitch and roll, °"),
            "fov_degrees": read("field of view, °; 180 by default"),
            "nrays": read("number of rays; 181 by default"),
            "sensor_period": read("`update_rate`: how often ROS programs get scans"),
            "range_std_noise": read("standard deviation of ranges, m"),
            "angle_std_noise_deg": read(
                "errors of bearings, uniform with this deviation, °"
            ),
            "max_range": read("greatest range, m; 80 by default"),
            "bodies_visible": left_out("lasers see all bodies", "true"),
            "ignore_parent_body": left_out("lasers do not see their robot", "true"),
            "raytrace_3d": left_out(_FLAT, "false"),
            "publish": left_out(_TOPICS),
            **drawing(
                "visual",
                "viz_visiblePoints",
                "viz_pointSize",
                "viz_visiblePlane",
                "viz_visibleLines",
                "viz_pointsColor",
                "viz_planeColor",
                "viz_pointSize",
            ),
        },
        "block": {
            **_PLACE,
            "static": read("true: walls; otherwise an object that robots push"),
            "mass": read("mass, kg; 30 by default"),
            "ground_friction": read("friction on the floor"),
            "lateral_friction": read("friction of its sides"),
            "restitution": read("restitution"),
            "intangible": read("true: left out"),
            "shape": read("corners of the body, m"),
            "geometry": read(
                "`box`, `cylinder`, `sphere`; other shapes as seen from above"
            ),
            "zmin": read("lower end; lasers see a block that reaches 0.2 m"),
            "zmax": read("upper end; lasers see a block that reaches 0.2 m"),
            "color": read("colour"),
            "shape_from_visual": left_out(_MESH),
            **_VISUAL,
            **_MOVES,
            **drawing("light", "light_group", "block_color"),
        },
        "geometry": {
            "type": read("kind of the shape"),
            "radius": read("radius of a cylinder or a sphere, m"),
            "lx": read("length, m"),
            "ly": read("width, m"),
            "lz": read("height, m: the block then reaches from the floor to it"),
            "length": read("height of a cylinder, m"),
            "vertex_count": left_out("circles have as many corners as they need"),
        },
        "actor": {
            **_PLACE,
            "walking_speed": read("speed, m/s; 1.4 by default"),
            "collision_radius": read("radius of the body, m; 0.3 by default"),
            "path": read("points that it walks to"),
            **dict.fromkeys(
                ("running_speed", "turning_rate"),
                left_out("actors walk and turn freely"),
            ),
            "collision_height": left_out(_FLAT),
            **drawing(
                "height", "animation_idle", "animation_walk", "animation_run", "visual"
            ),
        },
        "path": {
            "loop": read("true: the points again and again"),
            "waypoint": read("a point"),
        },
    }
)

__all__ = ["KEYS"]
