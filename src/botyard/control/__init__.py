"""Control surface: all operations on a running simulator, with one entry point.

`OPERATIONS` is the table of operations, `Control` the entry point:

    control = Control(sim)
    control.do(USER, AddRobot(model="p3dx", robot="ann"))

Interfaces translate requests of their peers into operations. Permissions, ``--read-only``,
validation of arguments, the immediate effect of changes in a paused world, and the audit log are
implemented here, once for all interfaces.
"""

from botyard.control.adding import (
    AddEach,
    AddedRobots,
    AddRobot,
    AddRobots,
    CloneRobots,
)
from botyard.control.bodies import (
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
    CommandDevice,
    Drive,
    EnableMotors,
    MoveJoystick,
    PressEmergencyStop,
    SetAnalogInput,
    SetCharge,
    SetDigitalInputs,
    TakeRobot,
)
from botyard.control.entities import SetBodyInfo, SetBodyState
from botyard.control.files import ReadFile
from botyard.control.floor import ClearField, MarkFloor, RemoveZone, SetZone
from botyard.control.history import Branch
from botyard.control.lifecycle import LoadWorld, Stop, UnloadWorld
from botyard.control.mapediting import EditMap
from botyard.control.movie import CancelMovie, WriteMovie
from botyard.control.operation import OPERATIONS, Operation
from botyard.control.placing import FindPlaces
from botyard.control.recording import SaveRecording, StartRecording, StopRecording
from botyard.control.renaming import RenameRobots
from botyard.control.time import (
    HoldTime,
    Pause,
    Resume,
    SetSpeed,
    Step,
    StepNow,
    Throttle,
)
from botyard.control.traffic import (
    EndTraffic,
    GrantSector,
    HoldTraffic,
    RevokeSector,
    RunTraffic,
    StepTraffic,
)
from botyard.control.trips import DockRobots, GoTo, SendRobots, SetPoseEstimate
from botyard.control.undo import Redo, Undo
from botyard.control.world import (
    ClearMap,
    Exit,
    FreeMaps,
    LoadMap,
    LookAtMap,
    ReloadMap,
    RotateLog,
    SendMap,
    SwitchInterface,
    WritePicture,
)

__all__ = [
    "OPERATIONS",
    "USER",
    "AddEach",
    "AddRobot",
    "AddRobots",
    "AddedRobots",
    "Branch",
    "Caller",
    "CancelMovie",
    "ClearField",
    "ClearMap",
    "CloneRobots",
    "CommandDevice",
    "Control",
    "DockRobots",
    "Done",
    "Drive",
    "EditMap",
    "EnableMotors",
    "EndTraffic",
    "Exit",
    "FindPlaces",
    "FreeMaps",
    "GoTo",
    "GrantSector",
    "Hold",
    "HoldTime",
    "HoldTraffic",
    "Level",
    "LoadMap",
    "LoadWorld",
    "LookAtMap",
    "MarkFloor",
    "MoveJoystick",
    "Operation",
    "Pause",
    "Place",
    "PlaceAxis",
    "PressEmergencyStop",
    "ReadFile",
    "Redo",
    "ReloadMap",
    "Remove",
    "RemoveZone",
    "RenameRobots",
    "Reset",
    "Resume",
    "RevokeSector",
    "RotateLog",
    "RunTraffic",
    "SaveRecording",
    "SendMap",
    "SendRobots",
    "SetAnalogInput",
    "SetBodyInfo",
    "SetBodyState",
    "SetCharge",
    "SetDigitalInputs",
    "SetGhost",
    "SetOdometryErrors",
    "SetPoseEstimate",
    "SetSpeed",
    "SetZone",
    "StartRecording",
    "Step",
    "StepNow",
    "StepTraffic",
    "Stop",
    "StopRecording",
    "SwitchInterface",
    "TakeBodies",
    "TakeRobot",
    "Throttle",
    "Undo",
    "UnloadWorld",
    "WriteMovie",
    "WritePicture",
]
