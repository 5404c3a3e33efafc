"""Elements and attributes of ARGoS's experiment files.

Source: the manual of ARGoS 3 and its published experiment files.
"""

from __future__ import annotations

from typing import Final

from botyard.formats.importers.keys import Keys, left_out, read

_ENGINE = "botyard has its own engine"
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
            **dict.fromkeys(
                ("controllers", "loop_functions", "optimization"),
                left_out("code of ARGoS does not run"),
            ),
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
            "distribute": read("entities at drawn places"),
            "foot-bot": read("the model `foot-bot`"),
            "e-puck": read("the model `e-puck`"),
            "kheperaiv": read("the model `khepera4`"),
            "floor": read("picture of the floor"),
            "light": left_out("lights are not simulated"),
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
            **dict.fromkeys(
                (
                    "controller",
                    "rab_range",
                    "rab_data_size",
                    "omnidirectional_camera_aperture",
                ),
                left_out("code of ARGoS does not run"),
            ),
        },
        "body": {
            "position": read("x, y and z, m"),
            "orientation": read("turns about z, y and x, degrees; the first counts"),
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
