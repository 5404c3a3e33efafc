"""Operations and their counterparts in the Python API, for programs that own a
`Simulation`.

A program owns its world: no permission is checked, and the methods validate their
arguments themselves. Operations call the same methods, so both ways are journalled
alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PYTHON: Final[Mapping[str, str]] = {
    "AddEach": "Simulation.add_robots",
    "AddRobot": "Simulation.add_robot",
    "AddRobots": "Simulation.add_robots",
    "Branch": "Simulation.branch",
    "ClearMap": "Simulation.replace_scene",
    "CloneRobots": "Simulation.add_robots",
    "Drive": "Commands.velocity",
    "EnableMotors": "Commands.enable",
    "Hold": "Simulation.hold",
    "LoadMap": "Simulation.replace_scene",
    "LoadWorld": "Simulation.replace_scene",
    "Place": "Simulation.put",
    "PlaceAxis": "Simulation.put",
    "PressEmergencyStop": "Robot.press_estop",
    "ReloadMap": "Simulation.replace_scene",
    "Remove": "Simulation.remove_robots",
    "Reset": "Simulation.reset",
    "SendMap": "Simulation.replace_scene",
    "SetBodyState": "Simulation.submit",
    "SetGhost": "Robot.ghost",
    "SetOdometryErrors": "Commands.odometry_errors",
    "Step": "Simulation.step",
    "StepNow": "Simulation.step",
    "Stop": "Simulation.reset",
    "TakeBodies": "Simulation.push",
    "TakeRobot": "Robot.port",
    "UnloadWorld": "Simulation.replace_scene",
    "SaveRecording": "Recording.save",
    "StartRecording": "Simulation.record",
    "StopRecording": "Recording.close",
    "WriteMovie": "Simulation.render",
    "WritePicture": "Simulation.render",
}
"""Operations and the methods of the public API that do the same."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "CancelMovie": "a program that draws waits for it",
    "CommandDevice": "robot.devices[name] is an object, and has a method for it",
    "Exit": "a program ends itself",
    "FreeMaps": "nobody else loads maps",
    "HoldTime": "time passes by Simulation.step and by nothing else",
    "ReadFile": "open(path)",
    "Redo": "a program knows what it did",
    "Undo": "a program knows what it did",
    "MoveJoystick": "robot.electrics.joystick is an object, and has a method for it",
    "Pause": "time passes by Simulation.step and by nothing else",
    "Resume": "time passes by Simulation.step and by nothing else",
    "RotateLog": "logging is the program's own",
    "SetAnalogInput": "robot.electrics is an object, and has a method for it",
    "SetBodyInfo": "for clients that ask each other; a program keeps its own notes",
    "SetDigitalInputs": "robot.electrics is an object, and has a method for it",
    "SetSpeed": "time passes by Simulation.step and by nothing else",
    "SwitchInterface": "there are none without a server",
    "Throttle": "time passes by Simulation.step and by nothing else",
}
"""Operations without a counterpart in the Python API, and why."""


__all__ = ["NOT_OFFERED", "PYTHON"]
