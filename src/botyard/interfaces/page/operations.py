"""Operations behind the requests of the page, and operations that it does not offer."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterable,
    Mapping,
)
from pathlib import Path
from typing import Any, Final

from botyard.control import (
    AddRobot,
    CancelMovie,
    ClearMap,
    CloneRobots,
    CommandDevice,
    Drive,
    EnableMotors,
    Exit,
    Hold,
    LoadMap,
    MoveJoystick,
    Operation,
    Pause,
    Place,
    PressEmergencyStop,
    Redo,
    ReloadMap,
    Remove,
    Reset,
    Resume,
    SaveRecording,
    SetOdometryErrors,
    SetSpeed,
    StartRecording,
    Step,
    StopRecording,
    SwitchInterface,
    Undo,
    WriteMovie,
    WritePicture,
)
from botyard.geometry import Pose
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes


def files_message(paths: Iterable[Path]) -> bytes:
    """Return the encoded list of files that a page may download."""
    return pushes.encoder.encode(pushes.Files(paths=[str(path) for path in paths]))


def three(values: Iterable[float]) -> tuple[float, float, float]:
    """Return three numbers, such as a pose or a twist, as a tuple for a message."""
    a, b, c = values
    return a, b, c


OPERATIONS: Final[Mapping[type, Callable[[Any], Operation[Any]]]] = {
    msg.Pause: lambda r: Pause(),
    msg.Run: lambda r: Resume(),
    msg.Step: lambda r: Step(steps=r.count),
    msg.Speed: lambda r: SetSpeed(speed=r.factor),
    msg.Hold: lambda r: Hold(names=tuple(r.names), on=r.on),
    msg.Move: lambda r: Place(
        to=tuple((to.name, Pose(to.x, to.y, to.th)) for to in r.to)
    ),
    msg.Drive: lambda r: Drive(robot=r.name, v=r.v, w=r.w, vy=r.vy, on=r.on),
    msg.Enable: lambda r: EnableMotors(robots=tuple(r.names), on=r.on),
    msg.EmergencyStop: lambda r: PressEmergencyStop(robots=tuple(r.names), on=r.on),
    msg.Joystick: lambda r: MoveJoystick(
        robot=r.name, x=r.x, y=r.y, button1=r.button1, button2=r.button2
    ),
    msg.CommandDevice: lambda r: CommandDevice(
        robot=r.name, device=r.device, command=r.command, value=r.value
    ),
    msg.OdometryErrors: lambda r: SetOdometryErrors(robot=r.name, on=r.on),
    msg.Reset: lambda r: Reset(names=None if r.names is None else tuple(r.names)),
    msg.Undo: lambda r: Undo(),
    msg.Redo: lambda r: Redo(),
    msg.Add: lambda r: AddRobot(model=r.model),
    msg.Clone: lambda r: CloneRobots(robots=tuple(r.names)),
    msg.Remove: lambda r: Remove(names=tuple(r.names)),
    msg.LoadMap: lambda r: (
        LoadMap(map=r.name, reserved=False) if r.name else ClearMap()
    ),
    msg.Reload: lambda r: ReloadMap(),
    msg.Snapshot: lambda r: WritePicture(picture=r.name),
    msg.StartRecording: lambda r: StartRecording(
        recording=r.name,
        last=r.last,
        topics=r.topics,
        robots=r.robots,
        rate=dict(r.rates) or None,
        on_stall=r.on_stall,
    ),
    msg.StopRecording: lambda r: StopRecording(),
    msg.SaveRecording: lambda r: SaveRecording(recording=r.name),
    msg.WriteMovie: lambda r: WriteMovie(
        begin=r.begin,
        end=r.end,
        movie=r.name,
        format=r.format,
        speed=r.speed,
        fps=r.fps,
        width=r.width,
        theme=r.theme,
        follow=r.follow,
        scans=tuple(r.scans),
    ),
    msg.CancelMovie: lambda r: CancelMovie(),
    msg.Interface: lambda r: SwitchInterface(interface=r.name, on=r.on),
    msg.Exit: lambda r: Exit(command="the page"),
}
"""Operation of each request of the page."""
ABOUT_WHAT_IS_SHOWN: Final = (
    msg.Move,
    msg.Hold,
    msg.Drive,
    msg.Add,
    msg.Clone,
    msg.Remove,
    msg.Reset,
    msg.Undo,
    msg.Redo,
)
"""Requests about places and bodies as the page shows them."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "AddEach": "the page adds one robot, or several of one model",
    "FreeMaps": "the page's own loads ignore maps that a client has reserved",
    "HoldTime": "for programs; people pause and step",
    "LoadWorld": "LoadMap replaces the map while time continues",
    "PlaceAxis": "for old Pioneer clients; dragging places whole poses",
    "RotateLog": "the page has no access to log files",
    "SetAnalogInput": "for clients' tests of their boards",
    "SetBodyInfo": "for programs that tag bodies",
    "SetBodyState": "the page places things at rest",
    "SetDigitalInputs": "for clients' tests of their boards",
    "SetGhost": "for clients' tests",
    "StepNow": "for programs that wait for the answer; Step keeps to the speed",
    "Stop": "Pause and Reset are two buttons",
    "TakeBodies": "for programs that apply forces",
    "TakeRobot": "Drive with a dead-man switch",
    "Throttle": "only AMBF throttles time",
    "UnloadWorld": "ClearMap removes the map while time continues",
}
"""Operations without a button on the page, each with the reason."""
