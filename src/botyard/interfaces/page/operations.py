"""Operations that carry out the requests of the page, and operations that it does not offer."""

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
    DockRobots,
    Drive,
    EditMap,
    EnableMotors,
    EndTraffic,
    Exit,
    FindPlaces,
    GrantSector,
    Hold,
    HoldTraffic,
    LoadMap,
    LookAtMap,
    MoveJoystick,
    Operation,
    Pause,
    Place,
    PressEmergencyStop,
    Redo,
    ReloadMap,
    Remove,
    RemoveZone,
    RenameRobots,
    Reset,
    Resume,
    RevokeSector,
    RunTraffic,
    SaveRecording,
    SendRobots,
    SetCharge,
    SetOdometryErrors,
    SetPoseEstimate,
    SetSpeed,
    SetZone,
    StartRecording,
    Step,
    StepTraffic,
    StopRecording,
    SwitchInterface,
    Undo,
    WriteMovie,
    WritePicture,
)
from botyard.errors import BotyardError, did_you_mean
from botyard.geometry import Pose
from botyard.model.scene import Place as MapPlace
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes

MAX_REASON: Final = 2000
"""Longest message about a request that failed, characters."""


def files_message(paths: Iterable[Path]) -> bytes:
    """Return the encoded list of files that a page may download.

    Parameters
    ----------
    paths : iterable of Path
        Files on the machine of the simulator.
    """
    return pushes.encoder.encode(pushes.Files(paths=[str(path) for path in paths]))


def reason_of(error: Exception, robots: Iterable[str]) -> str:
    """Return the message about a request that failed.

    Parameters
    ----------
    error : Exception
        Error of botyard, or KeyError with the name of an unknown body.
    robots : iterable of str
        Names of the robots, which the message may suggest.
    """
    if isinstance(error, BotyardError):
        return shown(error, MAX_REASON)
    name = str(error.args[0]) if error.args else ""
    return f'there is no robot or box "{shown(name)}"{did_you_mean(name, robots)}'


def three(values: Iterable[float]) -> tuple[float, float, float]:
    """Return three numbers (for example a pose) as a tuple for a message."""
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
    msg.SetCharge: lambda r: SetCharge(robots=tuple(r.names), charge=r.charge),
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
    msg.FindPlaces: lambda r: FindPlaces(
        model=r.model,
        number=r.count,
        arrangement=r.arrangement,
        area=r.area,
        seed=r.seed,
    ),
    msg.Send: lambda r: SendRobots(
        robots=tuple(r.names),
        goals=tuple((x, y) if th is None else (x, y, th) for x, y, th in r.goals),
        order=r.order,
        queue=r.queue,
        speed=r.speed,
    ),
    msg.Estimate: lambda r: SetPoseEstimate(robot=r.name, pose=Pose(r.x, r.y, r.th)),
    msg.Dock: lambda r: DockRobots(robots=tuple(r.names)),
    msg.Clone: lambda r: CloneRobots(robots=tuple(r.names)),
    msg.Remove: lambda r: Remove(names=tuple(r.names)),
    msg.Rename: lambda r: RenameRobots(names=tuple(r.names)),
    msg.LoadMap: lambda r: (
        LoadMap(map=r.name, reserved=False) if r.name else ClearMap()
    ),
    msg.EditMap: lambda r: EditMap(
        add_walls=tuple(r.add_walls),
        remove_walls=tuple(r.remove_walls),
        add_places=tuple(
            MapPlace(
                kind=one.kind,
                name=one.name,
                pose=Pose(one.x, one.y, one.th or 0.0),
                has_heading=one.th is not None,
            )
            for one in r.add_places
        ),
        remove_places=tuple(r.remove_places),
    ),
    msg.SetZone: lambda r: SetZone(
        zone=r.name,
        corners=tuple(r.corners),
        color=r.color,
        slip=r.slip,
        speed_limit=r.speed_limit,
        odometry_scale=r.odometry_scale,
        hole=r.hole,
    ),
    msg.RemoveZone: lambda r: RemoveZone(zone=r.name),
    msg.RunTraffic: lambda r: RunTraffic(
        paths=tuple((one.robot, tuple(one.points)) for one in r.paths),
        supervisor=r.supervisor,
        speed=r.speed,
    ),
    msg.EndTraffic: lambda r: EndTraffic(),
    msg.HoldTraffic: lambda r: HoldTraffic(on=r.on),
    msg.StepTraffic: lambda r: StepTraffic(),
    msg.GrantSector: lambda r: GrantSector(robot=r.name, sector=r.sector),
    msg.RevokeSector: lambda r: RevokeSector(robot=r.name, sector=r.sector),
    msg.LookAtMap: lambda r: LookAtMap(map=r.name),
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
"""Operation that carries out each request of the page, by class of the request."""
ABOUT_WHAT_IS_SHOWN: Final = (
    msg.Move,
    msg.Hold,
    msg.Drive,
    msg.Add,
    msg.FindPlaces,
    msg.Send,
    msg.Estimate,
    msg.Dock,
    msg.Clone,
    msg.Remove,
    msg.Rename,
    msg.Reset,
    msg.Undo,
    msg.Redo,
    msg.EditMap,
    msg.SetZone,
    msg.RemoveZone,
    msg.RunTraffic,
    msg.GrantSector,
    msg.RevokeSector,
)
"""Requests that refer to places and bodies as the page shows them."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "AddEach": "the page adds one robot, or several robots of one model",
    "ClearField": "the page shows the floor; scenarios and programs change it",
    "MarkFloor": "the page shows the floor; scenarios and programs change it",
    "FreeMaps": "the page itself may load maps that a client has reserved",
    "HoldTime": "only programs need it; users of the page pause and step",
    "GoTo": "the page sends several robots at once, with SendRobots",
    "LoadWorld": "LoadMap replaces the map while time continues",
    "PlaceAxis": "only old Pioneer clients need it; dragging on the page sets the whole pose",
    "RotateLog": "the page has no access to log files",
    "SetAnalogInput": "only programs that test their boards need it",
    "SetBodyInfo": "only programs that tag bodies need it",
    "SetBodyState": "the page places bodies at rest",
    "SetDigitalInputs": "only programs that test their boards need it",
    "SetGhost": "only clients that test collisions need it",
    "StepNow": "only programs that wait for the answer need it; Step keeps to the speed",
    "Stop": "the page has the buttons Pause and Reset in its place",
    "TakeBodies": "only programs that apply forces need it",
    "TakeRobot": "the page commands robots with Drive, which has a dead-man switch",
    "Throttle": "only AMBF throttles time",
    "UnloadWorld": "ClearMap removes the map while time continues",
}
"""Operations that the page does not offer, each with the reason."""
