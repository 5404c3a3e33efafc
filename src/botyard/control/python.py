"""The control surface and Python: what a program with a `Simulation` of its own calls instead, or why it needs nothing.

A program owns its world: nobody is asked whether it may, and its methods check their arguments themselves. What passes both ways ends in
the same methods, and so in the same journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PYTHON: Final[Mapping[str, str]] = {
    "AddRobot": "Simulation.add_robot",
    "AddRobots": "Simulation.add_robots",
    "ClearMap": "Simulation.replace_scene",
    "CloneRobots": "Simulation.add_robots",
    "Drive": "Commands.velocity",
    "EnableMotors": "Commands.enable",
    "Hold": "Simulation.hold",
    "LoadMap": "Simulation.replace_scene",
    "Place": "Simulation.put",
    "PlaceAxis": "Simulation.put",
    "PressEmergencyStop": "Robot.press_estop",
    "ReloadMap": "Simulation.replace_scene",
    "Remove": "Simulation.remove_robots",
    "Reset": "Simulation.reset",
    "SendMap": "Simulation.replace_scene",
    "SetGhost": "Robot.ghost",
    "SetOdometryErrors": "Commands.odometry_errors",
    "Step": "Simulation.step",
    "StepNow": "Simulation.step",
    "TakeBodies": "Simulation.push",
    "TakeRobot": "Robot.port",
    "WritePicture": "Simulation.render",
}
"""What does the same in the public API."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "Exit": "a program ends itself",
    "FreeMaps": "nobody else loads maps",
    "HoldTime": "time passes by Simulation.step and by nothing else",
    "MoveJoystick": "robot.electrics.joystick is an object, and has a method for it",
    "Pause": "time passes by Simulation.step and by nothing else",
    "Resume": "time passes by Simulation.step and by nothing else",
    "RotateLog": "logging is the program's own",
    "SetAnalogInput": "robot.electrics is an object, and has a method for it",
    "SetDigitalInputs": "robot.electrics is an object, and has a method for it",
    "SetSpeed": "time passes by Simulation.step and by nothing else",
    "SwitchInterface": "there are none without a server",
    "Throttle": "time passes by Simulation.step and by nothing else",
}
"""Operations that a program needs no method for, and why."""


__all__ = ["NOT_OFFERED", "PYTHON"]
