"""Execution of Pioneer clients' requests about the whole simulation (`PioneerRequests`).

Each request becomes an operation (pioneer-protocol §9).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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
from botyard.control.census import ClientFacts
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
"""Source name of the clients' commands in the journal."""
CLIENT: Final = Caller(SOURCE, Level.CHANGE, "a client", ignores_crowd_limit=False)
"""Caller of operations on a client's own robot."""
MAP_OPERATIONS: Final = (LoadMap, SendMap, ReloadMap, ClearMap)
"""Operations that change the map, of which all clients are notified."""


class Client(Hashable, Protocol):
    """Interface of a client's connection; see `botyard.servers.pioneer.connection.Connection`."""

    @property
    def is_local(self) -> bool:
        """Whether the client connects from this machine."""
        ...

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """Logger of the client's robot."""
        ...

    @property
    def facts(self) -> Callable[[], ClientFacts] | None:
        """Function that describes the client; None for a client without a socket."""
        ...

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Notify the client of a map change; see MAPCHANGED (pioneer-protocol §9).

        Parameters
        ----------
        name : str
            File name as it was requested.
        loaded : int
            1 if the map was loaded; 0 if it is unchanged and was not loaded again; 2 if
            it could not be loaded.
        by_user : bool
            Whether a user of the page, not a client, has changed the map.
        """
        ...


class PioneerRequests:
    """Executor of Pioneer clients' requests about the whole simulation.

    The executor also notifies the clients of map changes.

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
        # Return a copy, because clients may disconnect while a caller iterates.
        return tuple(self._clients)

    def facts(self) -> Iterator[ClientFacts]:
        """Yield descriptions of all clients, for operators."""
        for client in self._clients:
            # A client over a null modem (a pair of serial ports) has no socket to
            # describe.
            if client.facts is not None:
                yield client.facts()

    def attach(self, client: Client) -> None:
        """Register a client.

        Parameters
        ----------
        client : Client
            Connection whose requests follow; it is notified of map changes.
        """
        self._clients.append(client)

    def detach(self, client: Client) -> None:
        """Unregister a client, and release its hold on simulated time."""
        if client in self._clients:
            self._clients.remove(client)
            # Forget the client's denials, because the set would otherwise grow with
            # every client.
            self._denied = {(c, name) for c, name in self._denied if c is not client}

        self.control.release_stepper(client)

    def port(self, robot: Robot) -> PioneerPort:
        """Return the port to a robot for a client's session.

        Raises
        ------
        DeniedError
            Clients have no permission to drive.
        """
        self.control.check(CLIENT, TakeRobot)
        return PioneerPort(robot, self.control)

    def caller(self, client: Client) -> Caller:
        """Return the caller of a client's operations.

        Only clients on this machine may exit the program.

        Parameters
        ----------
        client : Client
            Connection of a client. It is also the key under which the control surface
            keeps the bodies and the simulated time that the client holds.
        """
        # The protocol has no passwords, so the address decides.
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
        """Execute a client's request; errors are logged.

        Denials are logged once for each client and command.

        Parameters
        ----------
        client : Client
            Connection of the client.
        request : Request
            Decoded request (pioneer-protocol §9).
        """
        # A map request is the only request that has an answer of its own (MAPCHANGED).
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
                # Log a denial once for each client, because clients repeat commands.
            ):
                self._denied.add((client, name))
                client.log.warning("%s is denied: %s", name, error)

            return
        except BotyardError as error:
            client.log.warning("%s", error)
            return

        # Long operations finish later, so their errors arrive in the future.
        if isinstance(result, Future):
            result.add_done_callback(lambda future: _log_failure(client, future))

    def _load(self, client: Client, request: MapRequested) -> None:
        try:
            future = self.control.do(
                self.caller(client), LoadMap(map=request.name, reserve=request.master)
            )
        except DeniedError as error:
            client.log.warning('map "%s" not loaded: %s', shown(request.name), error)

            # The protocol has no answer for a denial. 0 means that the map is
            # unchanged, 2 (below) that the file cannot be loaded.
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
        """Send MAPCHANGED after map operations.

        All clients get it if the map has changed. If the requested map was already
        loaded, only the client that requested it gets MAPCHANGED.
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

        # Loop over a copy, because a client that fails detaches itself.
        for client in tuple(self._clients):
            client.map_changed(name, 1, by_user=not by_client)


class PioneerPort(Port):
    """Port of a robot for one client's session.

    Commands that change more than the robot's motion pass through the control surface.
    All commands take effect in the order in which they were received.

    Parameters
    ----------
    robot : Robot
        The robot.
    control : Control
        Control surface for those commands.
    """

    def __init__(self, robot: Robot, control: Control) -> None:
        super().__init__(robot, SOURCE, robot.simulation.fleet)
        self._control = control

    def _do(self, operation: Operation[Any]) -> None:
        self._control.do(CLIENT, operation)

    def reset_pose(self) -> None:
        """Queue a reset of the robot: start pose, odometry at zero, at rest."""
        self._do(Reset(names=(self.name,)))

    def set_pose(self, pose: Pose) -> None:
        """Queue the placement of the robot at a true pose, m, m, rad."""
        self._do(Place(to=((self.name, pose),)))

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue a change of one coordinate of the robot's true pose.

        Parameters
        ----------
        axis : int
            0 x, 1 y, 2 heading.
        value : float
            m or rad.
        """
        self._do(PlaceAxis(robot=self.name, axis=axis, value=value))

    def set_ghost(self, on: bool) -> None:
        """Queue the switching of the robot's ghost mode.

        Parameters
        ----------
        on : bool
            Whether no sensor detects the robot, and no body collides with it.
        """
        self._do(SetGhost(robot=self.name, on=on))

    def set_odometry_errors(self, on: bool) -> None:
        """Queue the switching of the robot's odometry errors."""
        self._do(SetOdometryErrors(robot=self.name, on=on))

    def press_estop(self, pressed: bool) -> None:
        """Press or release the emergency stop button of the robot."""
        self._do(PressEmergencyStop(robots=(self.name,), on=pressed))

    def move_joystick(
        self, x: float, y: float, throttle: float, button1: bool, button2: bool
    ) -> None:
        """Set the state of the joystick plugged into the robot.

        Parameters
        ----------
        x, y : float
            Deflection from −1 to 1, positive right and forward.
        throttle : float
            Position of the throttle from 0 to 1; a negative number leaves it unchanged.
        button1, button2 : bool
            Whether each button is pressed.
        """
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
        """Set lines of one byte of the digital inputs.

        Parameters
        ----------
        byte : int
            Number of the byte, from 0.
        mask : int
            Bits to set, 0 to 255; the other bits stay.
        states : int
            New states of these bits, 0 to 255.
        """
        self._do(SetDigitalInputs(robot=self.name, byte=byte, mask=mask, states=states))

    def set_analog_input(self, port: int, value: int) -> None:
        """Set the raw reading of an analog input.

        Parameters
        ----------
        port : int
            Number of the input, from 0.
        value : int
            Raw reading, normally 0 to 1023 (10 bits, pioneer-protocol §10).
        """
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
"""Operation that carries out each kind of request, by class of the request."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "ClearField": "the protocol has no command for it",
    "MarkFloor": "the protocol has no command for it",
    "RenameRobots": "the protocol has no command for it",
    "RemoveZone": "the protocol has no command for it",
    "EditMap": "the protocol has no command for it",
    "RunTraffic": "the protocol has no command for it",
    "EndTraffic": "the protocol has no command for it",
    "HoldTraffic": "the protocol has no command for it",
    "StepTraffic": "the protocol has no command for it",
    "GrantSector": "the protocol has no command for it",
    "RevokeSector": "the protocol has no command for it",
    "SetZone": "the protocol has no command for it",
    "CancelMovie": "the protocol has no command for it",
    "WriteMovie": "the protocol has no command for it",
    "ReadFile": "the protocol has no command for it",
    "DockRobots": "the protocol has no command for it",
    "FindPlaces": "the protocol has no command for it",
    "LookAtMap": "the protocol has no command for it",
    "SetCharge": "the protocol has test command 250, for its own robot alone",
    "SendRobots": "the protocol has no command for it",
    "SetPoseEstimate": "the protocol has no command for it",
    "Branch": "the protocol cannot go back in time",
    "SaveRecording": "the protocol has no command for it",
    "StartRecording": "the protocol has no command for it",
    "StopRecording": "the protocol has no command for it",
    "Redo": "undo and redo are for users of the page, not for programs",
    "Undo": "undo and redo are for users of the page, not for programs",
    "AddEach": "a robot factory makes a robot for each client (--robot-factory)",
    "AddRobot": "a robot factory makes a robot for each client (--robot-factory)",
    "AddRobots": "a robot factory makes a robot for each client (--robot-factory)",
    "ClearMap": "the protocol can load maps but not remove them",
    "GoTo": "the client itself drives the robot",
    "CommandDevice": "the protocol has its own commands for the accessories it supports",
    "CloneRobots": "a robot factory makes a robot for each client (--robot-factory)",
    "Drive": "the commands of a session drive its robot after TakeRobot",
    "EnableMotors": "the session's command ENABLE does this, after TakeRobot",
    "Hold": "only a user who drags a robot on the page needs it",
    "LoadWorld": "LoadMap replaces the map while time continues",
    "Pause": "a client may only hold time for a number of steps (SIM_CTRL 207)",
    "ReloadMap": "LoadMap reads a changed file again",
    "Remove": "a robot factory removes the robot when its client disconnects",
    "Resume": "clients send SIM_CTRL 208, which calls HoldTime",
    "SendMap": "the page sends files by HTTP",
    "SetBodyInfo": "the protocol has no command for it",
    "SetBodyState": "the protocol places robots, and drives the client's own robot",
    "SetSpeed": "all clients share time; a client may only step it",
    "Step": "clients send SIM_CTRL 207, which calls HoldTime",
    "StepNow": "clients send SIM_CTRL 207, which calls HoldTime",
    "Stop": "all clients share time",
    "SwitchInterface": "a client may not switch off the interfaces of other clients",
    "TakeBodies": "only AMBF sets forces",
    "Throttle": "only AMBF throttles time",
    "UnloadWorld": "the protocol can load maps but not remove them",
}
"""Operations for which there is no Pioneer command, each with the reason."""


__all__ = ["OPERATIONS", "SOURCE", "PioneerRequests"]
