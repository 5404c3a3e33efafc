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
    "ClearField": "FloorView.clear",
    "ClearMap": "Simulation.replace_scene",
    "CloneRobots": "Simulation.add_robots",
    "EditMap": "Simulation.replace_scene",
    "DockRobots": "Robot.go_to",
    "Drive": "Commands.velocity",
    "EnableMotors": "Commands.enable",
    "FindPlaces": "Simulation.random_free_poses",
    "GoTo": "Robot.go_to",
    "Hold": "Simulation.hold",
    "LoadMap": "Simulation.replace_scene",
    "LoadWorld": "Simulation.replace_scene",
    "MarkFloor": "FloorView.mark",
    "Place": "Simulation.put",
    "PlaceAxis": "Simulation.put",
    "PressEmergencyStop": "Robot.press_estop",
    "ReloadMap": "Simulation.replace_scene",
    "Remove": "Simulation.remove_robots",
    "RemoveZone": "FloorView.remove_zone",
    "Reset": "Simulation.reset",
    "SendMap": "Simulation.replace_scene",
    "SendRobots": "Robot.go_to",
    "SetBodyState": "Masses.throw",
    "SetGhost": "Robot.ghost",
    "SetOdometryErrors": "Commands.odometry_errors",
    "SetZone": "FloorView.set_zone",
    "Step": "Simulation.step",
    "StepNow": "Simulation.step",
    "Stop": "Simulation.reset",
    "TakeBodies": "Masses.push",
    "TakeRobot": "Robot.port",
    "UnloadWorld": "Simulation.replace_scene",
    "SaveRecording": "Recording.save",
    "StartRecording": "Simulation.record",
    "StopRecording": "Recording.close",
    "WriteMovie": "Simulation.render",
    "WritePicture": "Simulation.render",
}
"""Methods of the public API with the same effect as operations, by class of the operation."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "CancelMovie": "a program calls Simulation.render, which returns when the movie is drawn",
    "CommandDevice": "robot.devices[name] has a method for it",
    "Exit": "a program ends by itself",
    "FreeMaps": "maps are reserved against other clients, of which a program has none",
    "HoldTime": "only Simulation.step advances time",
    "ReadFile": "open(path)",
    "Redo": "a program can reverse its own changes",
    "Undo": "a program can reverse its own changes",
    "LookAtMap": "a program reads the file itself",
    "MoveJoystick": "robot.electrics.joystick has a method for it",
    "Pause": "only Simulation.step advances time",
    "Resume": "only Simulation.step advances time",
    "RenameRobots": "a program names its robots when it adds them",
    "RotateLog": "the program configures its own logging",
    "SetAnalogInput": "robot.electrics has a method for it",
    "SetCharge": "robot.electrics.battery has a method for it",
    "SetBodyInfo": "it lets clients share information; a program has variables for this",
    "SetDigitalInputs": "robot.electrics has a method for it",
    "SetPoseEstimate": "it is for programs of ROS; a program reads Robot.truth",
    "SetSpeed": "only Simulation.step advances time",
    "SwitchInterface": "a program without a server has no interfaces",
    "Throttle": "only Simulation.step advances time",
    **dict.fromkeys(
        ("RunTraffic", "EndTraffic", "HoldTraffic", "StepTraffic"),
        "a program makes a botyard.traffic.on_robots.RobotTraffic and steps it",
    ),
    "GrantSector": "a program calls RobotTraffic.allow",
    "RevokeSector": "a program calls RobotTraffic.withdraw",
}
"""Reason for each operation that has no counterpart in the Python API."""


__all__ = ["NOT_OFFERED", "PYTHON"]
