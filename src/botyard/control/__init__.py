"""The control surface: what may be done to a running simulator, by whom, in one table (`OPERATIONS`), and the one door to it (`Control`).

    control = Control(sim)
    control.do(USER, AddRobot(model="p3dx", robot="ann"))

Interfaces translate what their peers ask for into operations; permission, ``--read-only``, checks, settling, and what is said of it in
the log stand here, once.
"""

from botyard.control.bodies import (
    AddRobot,
    AddRobots,
    Arrived,
    CloneRobots,
    Hold,
    Place,
    PlaceAxis,
    Remove,
    Reset,
    SetGhost,
    SetOdometryErrors,
    TakeBodies,
)
from botyard.control.caller import USER, Caller, Level
from botyard.control.control import Control, Done
from botyard.control.driving import (
    Drive,
    EnableMotors,
    MoveJoystick,
    PressEmergencyStop,
    SetAnalogInput,
    SetDigitalInputs,
    TakeRobot,
)
from botyard.control.operation import OPERATIONS, Operation
from botyard.control.time import HoldTime, Pause, Resume, SetSpeed, Step, StepNow, Throttle
from botyard.control.world import (
    ClearMap,
    Exit,
    FreeMaps,
    LoadMap,
    ReloadMap,
    RotateLog,
    SendMap,
    SwitchInterface,
    WritePicture,
)

__all__ = [
    "OPERATIONS", "USER", "AddRobot", "AddRobots", "Arrived", "Caller", "ClearMap", "CloneRobots", "Control", "Done", "Drive",
    "EnableMotors", "Exit", "FreeMaps", "Hold", "HoldTime", "Level", "LoadMap", "MoveJoystick", "Operation", "Pause", "Place",
    "PlaceAxis", "PressEmergencyStop", "ReloadMap", "Remove", "Reset", "Resume", "RotateLog", "SendMap", "SetAnalogInput",
    "SetDigitalInputs", "SetGhost", "SetOdometryErrors", "SetSpeed", "Step", "StepNow", "SwitchInterface", "TakeBodies", "TakeRobot",
    "Throttle", "WritePicture",
]  # fmt: skip
