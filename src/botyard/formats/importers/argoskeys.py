"""Elements and attributes of ARGoS's experiment files.

Source: the manual of ARGoS 3 and its published experiment files.
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, left_out, read, silent

_ENGINE = "botyard has its own engine"
_CODE = "code of ARGoS does not run"
_MODEL = "the robot model already has it"
_BODY = {
    "id": read("name"),
    "body": read("position and orientation"),
    "movable": read("`true`: an object that robots push; otherwise walls"),
    "mass": read("mass of an object, kg"),
    "leds": left_out("only robots have LEDs: the device `leds` of a model"),
}

KEYS: Final = Keys(
    {
        "argos-configuration": {
            "framework": read("times and seed"),
            "arena": read("walls, objects and robots"),
            "controllers": read("devices of robots; their code does not run"),
            **dict.fromkeys(("loop_functions", "optimization"), left_out(_CODE)),
            **dict.fromkeys(("physics_engines", "media"), left_out(_ENGINE)),
            "visualization": left_out("affects only the drawing"),
        },
        "experiment": {
            "length": read("duration, s; 0: no end"),
            "ticks_per_second": read("step"),
            "random_seed": read("seed; 0: the choice of the program"),
            "visualization": left_out("affects only the drawing"),
        },
        "arena": {
            "size": read("first view"),
            "center": read("centre of the first view"),
            "box": read("walls, or an object"),
            "cylinder": read("walls, or an object"),
            "distribute": read("entities at randomly drawn places"),
            "foot-bot": read("the model `foot-bot`"),
            "e-puck": read("the model `e-puck`"),
            "kheperaiv": read("the model `khepera4`"),
            "floor": read("picture of the floor"),
            "light": left_out("only robots have lamps: the device `leds` of a model"),
            "positional_indices": left_out(_ENGINE),
        },
        "floor": {
            "id": left_out("the floor has no name", "floor"),
            "source": read("`image`; a floor of `loop_functions` is left out"),
            "path": read("picture, stretched over the arena"),
            "pixels_per_meter": left_out("the picture keeps its pixels"),
        },
        "box": {**_BODY, "size": read("length, width and height, m")},
        "cylinder": {
            **_BODY,
            "radius": read("radius, m"),
            "height": left_out("the world is flat"),
        },
        "robot": {
            "id": read("name"),
            "body": read("position and orientation"),
            "controller": read("`config`: the devices of that controller"),
            "rab_range": read("range of `range_and_bearing`, m"),
            "rab_data_size": left_out("messages have up to 32 bytes"),
            "omnidirectional_camera_aperture": left_out("the camera sees 1 m far"),
        },
        "controller": {
            "id": read("`config` of robots"),
            "library": left_out(_CODE),
            "params": left_out(_CODE),
            "actuators": read("devices"),
            "sensors": read("devices"),
        },
        "actuators": {
            "leds": read(
                "the ring `leds`: 12 of a foot-bot, 8 of an e-puck, 3 of a kheperaiv"
            ),
            "differential_steering": silent("robots drive"),
            "range_and_bearing": silent(_MODEL),
            **dict.fromkeys(
                (
                    "footbot_turret",
                    "footbot_gripper",
                    "footbot_distance_scanner",
                    "quadrotor_position",
                ),
                left_out("no robot model has it"),
            ),
        },
        "sensors": {
            "colored_blob_omnidirectional_camera": read("an `omni_camera`"),
            **dict.fromkeys(
                (
                    "range_and_bearing",
                    "differential_steering",
                    "positioning",
                    "footbot_proximity",
                    "footbot_motor_ground",
                    "epuck_proximity",
                    "epuck_ground",
                    "kheperaiv_proximity",
                    "kheperaiv_ground",
                    "kheperaiv_ultrasound",
                ),
                silent(_MODEL),
            ),
            **dict.fromkeys(
                ("footbot_light", "epuck_light", "kheperaiv_light"),
                left_out("lights are not simulated"),
            ),
            **dict.fromkeys(
                (
                    "footbot_base_ground",
                    "footbot_distance_scanner",
                    "footbot_turret_encoder",
                    "kheperaiv_lidar",
                    "battery",
                ),
                left_out("no robot model has it"),
            ),
        },
        "body": {
            "position": read("x, y and z, m"),
            "orientation": read(
                "turns about z, y and x, degrees; only the first one is used"
            ),
        },
        "distribute": {
            "position": read("rule of the positions"),
            "orientation": read("rule of the orientations"),
            "entity": read("number and kind"),
        },
        "method": {
            "method": read("`uniform`, `gaussian`, `constant` or `grid`"),
            "min": read("lower bounds"),
            "max": read("upper bounds"),
            "mean": read("mean of `gaussian`"),
            "std_dev": read("standard deviation of `gaussian`"),
            "values": read("value of `constant`"),
            "center": read("centre of `grid`"),
            "distances": read("distances of `grid`"),
            "layout": read("numbers of `grid`"),
        },
        "entity": {
            "quantity": read("number of entities"),
            "max_trials": read("largest number of places that are tried for each"),
            "base_num": read("number of the first one"),
            "box": read("see above"),
            "cylinder": read("see above"),
            "foot-bot": read("see above"),
            "e-puck": read("see above"),
            "kheperaiv": read("see above"),
        },
    }
)

__all__ = ["KEYS"]
