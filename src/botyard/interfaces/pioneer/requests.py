"""`PioneerRequests`: turns Pioneer clients' requests about the whole simulation into
operations (pioneer-protocol §9).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol

from botyard.control import (
    Caller,
    ClearMap,
    Control,
    Done,
    Exit,
    FreeMaps,
    HoldTime,
    Level,
    LoadMap,
    MoveJoystick,
    Operation,
    Place,
    PlaceAxis,
    PressEmergencyStop,
    ReloadMap,
    Reset,
    RotateLog,
    SendMap,
    SetAnalogInput,
    SetDigitalInputs,
    SetGhost,
    SetOdometryErrors,
    TakeRobot,
    WritePicture,
)
from botyard.errors import BotyardError, DeniedError
from botyard.geometry import Pose
from botyard.interfaces.pioneer.taps import PacketTaps
from botyard.names import shown
from botyard.protocols.pioneer.events import (
    ExitRequested,
    LogRotationRequested,
    MapRequested,
    MasterCleared,
    Request,
    SnapshotRequested,
    StepsRequested,
)
from botyard.sim.port import Port
from botyard.sim.simulation import Robot

SOURCE: Final = "pioneer"
"""Source of the clients' commands."""
CLIENT: Final = Caller(SOURCE, Level.CHANGE, "a client", ignores_crowd_limit=False)
"""Caller of operations on a client's own robot."""
MAP_OPERATIONS: Final = (LoadMap, SendMap, ReloadMap, ClearMap)


class Client(Hashable, Protocol):
    """A connection of a client, see `botyard.servers.pioneer.connection.Connection`."""

    @property
    def is_local(self) -> bool:
        """Whether it connects from this machine."""
        ...

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """Logger of its robot."""
        ...

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Notify it of a map change, see MAPCHANGED (pioneer-protocol §9)."""
        ...


class PioneerRequests:
    """Carries out requests of Pioneer clients about the whole simulation, and notifies
    them of map changes.

    Parameters
    ----------
    control : Control
        The control surface.
    """

    def __init__(self, control: Control) -> None:
        self.control = control
        self.taps = PacketTaps()
        self._clients: list[Client] = []
        self._denied: set[tuple[Client, str]] = set()
        control.listen(self._on_operation)

    @property
    def connections(self) -> Sequence[Any]:
        """Connections of all clients."""
        return tuple(self._clients)

    def attach(self, client: Client) -> None:
        """Register a client."""
        self._clients.append(client)

    def detach(self, client: Client) -> None:
        """Unregister a client, and release what it holds."""
        if client in self._clients:
            self._clients.remove(client)
            self._denied = {(c, name) for c, name in self._denied if c is not client}

        self.control.release_stepper(client)

    def port(self, robot: Robot) -> PioneerPort:
        """Make the port to a robot for a client's session.

        Raises
        ------
        DeniedError
            Clients have no permission to drive.
        """
        self.control.check(CLIENT, TakeRobot)
        return PioneerPort(robot, self.control)

    def caller(self, client: Client) -> Caller:
        """Caller of a client's operations; only clients on this machine may end the
        program.
        """
        level = Level.OWN if client.is_local else Level.CHANGE
        return Caller(
            SOURCE,
            level,
            "a client",
            key=client,
            ignores_crowd_limit=False,
            log=client.log,
        )

    def request(self, client: Client, request: Request) -> None:
        """Carry out a client's request; errors are logged."""
        if isinstance(request, MapRequested):
            self._load(client, request)
            return

        name = (
            request.command
            if isinstance(request, ExitRequested)
            else type(request).__name__
        )
        try:
            result = self.control.do(
                self.caller(client), OPERATIONS[type(request)](request)
            )
        except DeniedError as error:
            if (
                (client, name) not in self._denied
            ):  # log it once for each client, since clients repeat commands
                self._denied.add((client, name))
                client.log.warning("%s is not obeyed: %s", name, error)

            return
        except BotyardError as error:
            client.log.warning("%s", error)
            return

        if isinstance(result, Future):
            result.add_done_callback(lambda future: _log_failure(client, future))

    def _load(self, client: Client, request: MapRequested) -> None:
        try:
            future = self.control.do(
                self.caller(client), LoadMap(map=request.name, reserve=request.master)
            )
        except DeniedError as error:
            client.log.warning('map "%s" not loaded: %s', shown(request.name), error)
            client.map_changed(request.name, 0)
        except BotyardError as error:
            client.log.warning('map "%s" not loaded: %s', shown(request.name), error)
            client.map_changed(request.name, 2)
        else:

            def failed(future: Future[bool]) -> None:
                if future.exception() is not None:
                    client.map_changed(request.name, 2)

            future.add_done_callback(failed)

    def _on_operation(self, done: Done) -> None:
        """Send MAPCHANGED after map operations: to all clients, or only to the one that
        asked if the map was in place already.
        """
        if not isinstance(done.operation, MAP_OPERATIONS):
            return
        name = getattr(
            done.operation,
            "map",
            "no map"
            if isinstance(done.operation, ClearMap)
            else self.control.sim.scene.source,
        )
        by_client = done.caller.source == SOURCE
        if done.result is False:
            for client in self._clients:
                if client is done.caller.key:
                    client.map_changed(name, 0)

            return

        for client in tuple(self._clients):
            client.map_changed(name, 1, by_user=not by_client)


class PioneerPort(Port):
    """Port of a client's session; commands that change more than the robot's motion
    pass the control surface, in their order.
    """

    def __init__(self, robot: Robot, control: Control) -> None:
        super().__init__(robot, SOURCE, robot.simulation.fleet)
        self._control = control

    def _do(self, operation: Operation[Any]) -> None:
        self._control.do(CLIENT, operation)

    def reset_pose(self) -> None:
        """Queue a reset: start pose, odometry zero, at rest."""
        self._do(Reset(names=(self.name,)))

    def set_pose(self, pose: Pose) -> None:
        """Queue a true pose, m, m, rad."""
        self._do(Place(to=((self.name, pose),)))

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue one coordinate of the true pose, m or rad."""
        self._do(PlaceAxis(robot=self.name, axis=axis, value=value))

    def set_ghost(self, on: bool) -> None:
        """Queue ghost mode on or off."""
        self._do(SetGhost(robot=self.name, on=on))

    def set_odometry_errors(self, on: bool) -> None:
        """Queue odometry errors on or off."""
        self._do(SetOdometryErrors(robot=self.name, on=on))

    def press_estop(self, pressed: bool) -> None:
        """Press or release the emergency stop."""
        self._do(PressEmergencyStop(robots=(self.name,), on=pressed))

    def move_joystick(
        self, x: float, y: float, throttle: float, button1: bool, button2: bool
    ) -> None:
        """Set the state of the joystick plugged into the robot."""
        self._do(
            MoveJoystick(
                robot=self.name,
                x=x,
                y=y,
                throttle=throttle,
                button1=button1,
                button2=button2,
            )
        )

    def set_digital_inputs(self, byte: int, mask: int, states: int) -> None:
        """Set lines of one byte of the digital inputs."""
        self._do(SetDigitalInputs(robot=self.name, byte=byte, mask=mask, states=states))

    def set_analog_input(self, port: int, value: int) -> None:
        """Set the raw reading of an analog input."""
        self._do(SetAnalogInput(robot=self.name, port=port, value=value))


def _log_failure(client: Client, future: Future[Any]) -> None:
    error = future.exception()
    if error is not None:
        client.log.warning("%s", error)


OPERATIONS: Final[Mapping[type, Callable[[Any], Operation[Any]]]] = {
    ExitRequested: lambda r: Exit(status=r.status, crash=r.crash, command=r.command),
    LogRotationRequested: lambda r: RotateLog(),
    MapRequested: lambda r: LoadMap(map=r.name, reserve=r.master),
    MasterCleared: lambda r: FreeMaps(),
    SnapshotRequested: lambda r: WritePicture(picture=r.name),
    StepsRequested: lambda r: HoldTime(steps=r.count),
}
"""Operation of each request of a session."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "CancelMovie": "the protocol has no words for it",
    "WriteMovie": "the protocol has no words for it",
    "ReadFile": "the protocol has no words for it",
    "Branch": "the protocol has no time that goes back",
    "SaveRecording": "the protocol has no words for it",
    "StartRecording": "the protocol has no words for it",
    "StopRecording": "the protocol has no words for it",
    "Redo": "people undo what their hands did, on the page; programs know what they did",
    "Undo": "people undo what their hands did, on the page; programs know what they did",
    "AddEach": "a robot factory makes one for each client (--robot-factory)",
    "AddRobot": "a robot factory makes one for each client (--robot-factory)",
    "AddRobots": "a robot factory makes one for each client (--robot-factory)",
    "ClearMap": "the protocol loads maps and has no command for none",
    "CommandDevice": "the protocol has commands of its own for the accessories that it knows",
    "CloneRobots": "a robot factory makes one for each client (--robot-factory)",
    "Drive": "the session drives, through TakeRobot",
    "EnableMotors": "the session's ENABLE, through TakeRobot",
    "Hold": "for hands: who drags a robot",
    "LoadWorld": "LoadMap, after which time goes on",
    "Pause": "a client holds time (SIM_CTRL 207), and cannot leave it standing",
    "ReloadMap": "a map whose file has changed is read again when it is asked for",
    "Remove": "robots of a factory go with their clients",
    "Resume": "SIM_CTRL 208, through HoldTime",
    "SendMap": "files are sent by HTTP: the page",
    "SetBodyInfo": "the protocol has no words for it",
    "SetBodyState": "the protocol places robots, and drives its own",
    "SetSpeed": "time belongs to everybody; a client may step it",
    "Step": "SIM_CTRL 207, through HoldTime",
    "StepNow": "SIM_CTRL 207, through HoldTime",
    "Stop": "time belongs to everybody",
    "SwitchInterface": "a client does not switch off others' interfaces",
    "TakeBodies": "forces are AMBF's",
    "Throttle": "AMBF's",
    "UnloadWorld": "the protocol loads maps and has no command for none",
}
"""Operations without a Pioneer command, and why."""


__all__ = ["OPERATIONS", "SOURCE", "PioneerRequests"]
