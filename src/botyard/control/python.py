"""Operations and their counterparts in the Python API.

A program that owns a `Simulation` needs no permission, and the methods check their
arguments themselves. Operations call the same methods, so both are journalled alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PYTHON: Final[Mapping[str, str]] = {
    "AddEach": "Simulation.add_robots",
    "AddRobot": "Simulation.add_robot",
    "AddRobots": "Simulation.add_robots",
    "Branch": "History.go_on_from",
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
    "SetBodyState": "Simulation.throw",
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
"""Operations, and the methods of the public API with the same effect."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "CancelMovie": "a program waits until its movie is drawn",
    "CommandDevice": "robot.devices[name] has a method for it",
    "Exit": "a program ends itself",
    "FreeMaps": "no other client loads maps",
    "HoldTime": "only Simulation.step advances time",
    "ReadFile": "open(path)",
    "Redo": "a program knows what it did",
    "Undo": "a program knows what it did",
    "MoveJoystick": "robot.electrics.joystick has a method for it",
    "Pause": "only Simulation.step advances time",
    "Resume": "only Simulation.step advances time",
    "RotateLog": "the program configures its own logging",
    "SetAnalogInput": "robot.electrics has a method for it",
    "SetBodyInfo": "for clients that share information; a program has variables",
    "SetDigitalInputs": "robot.electrics has a method for it",
    "SetSpeed": "only Simulation.step advances time",
    "SwitchInterface": "a program without a server has no interfaces",
    "Throttle": "only Simulation.step advances time",
}
"""Operations without a counterpart in the Python API, with the reason."""


__all__ = ["NOT_OFFERED", "PYTHON"]
