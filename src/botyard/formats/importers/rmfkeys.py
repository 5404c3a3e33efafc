"""Keys of Open-RMF's building files.

Source: files of rmf_demos and the documentation of rmf_traffic_editor.
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, drawing, left_out, read

_LIFT = "lifts stand still, and have no walls here"
_ALIGN = "it aligns levels with each other, and only one level is read"
_FLEET = "fleets have settings of their own"

KEYS: Final = Keys(
    {
        "building": {
            "name": read("name of the map"),
            "building_name": read("name of the map"),
            "levels": read("one level: the reference level, or the first one"),
            "reference_level_name": read("the level that is read"),
            "coordinate_system": read("`reference_image` or `cartesian_meters`"),
            "parameters": left_out("positions on Earth are not read"),
            "crowd_sim": left_out("crowds are not simulated"),
            "lifts": left_out(_LIFT, {}),
            "graphs": left_out("lanes name their graph by number", {}),
        },
        "level": {
            "vertices": read("corners; one with a name is a place"),
            "walls": read("walls, as lines without thickness"),
            "lanes": read("lines on the floor, of the kind `Lane`"),
            "doors": read("lines on the floor, of the kind `Door`; doors stand open"),
            "floors": read("areas of the kind `Floor`"),
            "holes": read("walls around them, because robots must not fall"),
            "measurements": read("scale, m per pixel"),
            "models": left_out("files of buildings have no shapes of furniture", []),
            "human_lanes": left_out("crowds are not simulated", []),
            "zones": left_out("zones have no effect", []),
            **dict.fromkeys(
                (
                    "elevation",
                    "fiducials",
                    "flattened_x_offset",
                    "flattened_y_offset",
                    "x_meters",
                    "y_meters",
                    "constraints",
                    "features",
                    "ros_namespace",
                ),
                left_out(_ALIGN, 0, []),
            ),
            "drawing": left_out("affects only the drawing"),
            "layers": left_out("affects only the drawing", {}),
        },
        "vertex": {
            "is_charger": read("a place of the kind `Dock`"),
            "spawn_robot_type": read("a robot; the name of its model"),
            "spawn_robot_name": read("name of the robot"),
            **dict.fromkeys(
                (
                    "is_parking_spot",
                    "is_holding_point",
                    "is_passthrough_point",
                    "is_cleaning_zone",
                    "dock_name",
                    "undock_name",
                    "pickup_dispenser",
                    "dropoff_ingestor",
                    "lift_cabin",
                    "human_goal_set_name",
                    "mutex",
                    "merge_radius",
                    "workcell_name",
                ),
                left_out(_FLEET, False, ""),
            ),
        },
        "wall": drawing(
            "alpha",
            "texture_height",
            "texture_name",
            "texture_scale",
            "texture_width",
        ),
        "lane": {
            "graph_idx": read("name of the line"),
            **dict.fromkeys(
                (
                    "bidirectional",
                    "is_bidirectional",
                    "speed_limit",
                    "orientation",
                    "mutex",
                    "demo_mock_floor_name",
                    "demo_mock_lift_name",
                    "dock_name",
                ),
                left_out(_FLEET, "", 0, 0.0),
            ),
        },
        "door": {
            "name": read("name of the line"),
            **dict.fromkeys(
                (
                    "type",
                    "motion_axis",
                    "motion_degrees",
                    "motion_direction",
                    "plugin",
                    "right_left_ratio",
                ),
                left_out("doors stand open"),
            ),
        },
        "measurement": {"distance": read("distance of the two vertices, m")},
        "floor": {
            "vertices": read("corners"),
            "parameters": left_out("affects only the drawing"),
        },
    }
)

__all__ = ["KEYS"]
