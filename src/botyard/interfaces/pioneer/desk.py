"""Pioneer clients at the control surface: what they ask of the whole simulation becomes operations (pioneer-protocol §9)."""

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
"""In whose name clients command robots."""
CLIENT: Final = Caller(SOURCE, Level.CHANGE, "a client", ignores_crowd_limit=False)
"""Any client, as far as its robot is concerned."""
LOADS: Final = (LoadMap, SendMap, ReloadMap, ClearMap)


class Client(Hashable, Protocol):
    """A connection of a client, see `botyard.servers.connection.Connection`."""

    @property
    def is_local(self) -> bool:
        """It is on this machine."""
        ...

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """Log of its robot."""
        ...

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Tell it what became of a map."""
        ...


class PacketLog(Protocol):
    """Records what passes, see `botyard.servers.packetlog.PacketLog`."""

    def session(self, robot: str) -> Callable[[bool, bytes], None]:
        """For a new session: takes the direction and the bytes."""
        ...

    def close(self) -> None:
        """End."""
        ...


class PioneerDesk:
    """Takes what Pioneer clients ask of the whole simulation, and tells them of other maps.

    Parameters
    ----------
    control : Control
        The door.
    """

    def __init__(self, control: Control) -> None:
        self.control = control
        self.packet_log: PacketLog | None = None
        """Records what passes in sessions that begin from now on."""
        self._clients: list[Client] = []
        self._denied: set[tuple[Client, str]] = set()
        control.listen(self._told)

    @property
    def connections(self) -> Sequence[Any]:
        """All clients that are connected."""
        return tuple(self._clients)

    def attach(self, client: Client) -> None:
        """A client has come."""
        self._clients.append(client)

    def detach(self, client: Client) -> None:
        """A client has gone."""
        if client in self._clients:
            self._clients.remove(client)
            self._denied = {(c, name) for c, name in self._denied if c is not client}
        self.control.release_stepper(client)

    def port(self, robot: Robot) -> PioneerPort:
        """A robot for a client's session.

        Raises
        ------
        DeniedError
            Clients may not drive.
        """
        self.control.check(CLIENT, TakeRobot)
        return PioneerPort(robot, self.control)

    def caller(self, client: Client) -> Caller:
        """Who a client is; only those on this machine may end the program."""
        level = Level.OWN if client.is_local else Level.CHANGE
        return Caller(SOURCE, level, "a client", key=client, ignores_crowd_limit=False, log=client.log)

    def request(self, client: Client, request: Request) -> None:
        """Carry out what a client asks for, or say why not."""
        if isinstance(request, MapRequested):
            self._load(client, request)
            return
        name = request.command if isinstance(request, ExitRequested) else type(request).__name__
        try:
            result = self.control.do(self.caller(client), OPERATIONS[type(request)](request))
        except DeniedError as error:
            if (client, name) not in self._denied:  # once is enough: clients repeat themselves
                self._denied.add((client, name))
                client.log.warning("%s is not obeyed: %s", name, error)
            return
        except BotyardError as error:
            client.log.warning("%s", error)
            return
        if isinstance(result, Future):
            result.add_done_callback(lambda future: _say(client, future))

    def _load(self, client: Client, request: MapRequested) -> None:
        try:
            future = self.control.do(self.caller(client), LoadMap(map=request.name, reserve=request.master))
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

    def _told(self, done: Done) -> None:
        """Something was done: of other maps everybody is told, of one that was there already who has asked for it."""
        if not isinstance(done.operation, LOADS):
            return
        name = getattr(
            done.operation, "map", "no map" if isinstance(done.operation, ClearMap) else self.control.sim.scene.source
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
    """A robot for a client's session: what changes more than its driving passes the control surface, in its order among the commands."""

    def __init__(self, robot: Robot, control: Control) -> None:
        super().__init__(robot, SOURCE, robot.simulation.fleet)
        self._control = control

    def _do(self, operation: Operation[Any]) -> None:
        self._control.do(CLIENT, operation)

    def reset_pose(self) -> None:
        """Queue: back to the start, odometry zero, at rest."""
        self._do(Reset(names=(self.name,)))

    def set_pose(self, pose: Pose) -> None:
        """Queue: put the robot at a true pose."""
        self._do(Place(to=((self.name, pose),)))

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue: one coordinate of the true pose."""
        self._do(PlaceAxis(robot=self.name, axis=axis, value=value))

    def set_ghost(self, on: bool) -> None:
        """Queue: nobody sees or feels the robot, or everybody again."""
        self._do(SetGhost(robot=self.name, on=on))

    def set_odometry_errors(self, on: bool) -> None:
        """Queue: errors of odometry on or off."""
        self._do(SetOdometryErrors(robot=self.name, on=on))

    def press_estop(self, pressed: bool) -> None:
        """The red button."""
        self._do(PressEmergencyStop(robots=(self.name,), on=pressed))

    def move_joystick(self, x: float, y: float, throttle: float, button1: bool, button2: bool) -> None:
        """The joystick that is plugged into the robot."""
        self._do(MoveJoystick(robot=self.name, x=x, y=y, throttle=throttle, button1=button1, button2=button2))

    def set_digital_inputs(self, byte: int, mask: int, states: int) -> None:
        """Lines of a byte of the digital inputs."""
        self._do(SetDigitalInputs(robot=self.name, byte=byte, mask=mask, states=states))

    def set_analog_input(self, port: int, value: int) -> None:
        """The reading of an analog input."""
        self._do(SetAnalogInput(robot=self.name, port=port, value=value))


def _say(client: Client, future: Future[Any]) -> None:
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
"""What each request of a session is at the control surface."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "AddRobot": "a robot factory makes one for each client (--robot-factory)",
    "AddRobots": "a robot factory makes one for each client (--robot-factory)",
    "ClearMap": "the protocol loads maps and has no command for none",
    "CloneRobots": "a robot factory makes one for each client (--robot-factory)",
    "Drive": "the session drives, through TakeRobot",
    "EnableMotors": "the session's ENABLE, through TakeRobot",
    "Hold": "for hands: who drags a robot",
    "Pause": "a client holds time (SIM_CTRL 207), and cannot leave it standing",
    "ReloadMap": "a map whose file has changed is read again when it is asked for",
    "Remove": "robots of a factory go with their clients",
    "Resume": "SIM_CTRL 208, through HoldTime",
    "SendMap": "files are sent by HTTP: the page",
    "SetSpeed": "time belongs to everybody; a client may step it",
    "Step": "SIM_CTRL 207, through HoldTime",
    "StepNow": "SIM_CTRL 207, through HoldTime",
    "SwitchInterface": "a client does not switch off others' interfaces",
    "TakeBodies": "forces are AMBF's",
    "Throttle": "AMBF's",
}
"""Operations that Pioneer clients have no command for, and why."""


__all__ = ["OPERATIONS", "SOURCE", "PioneerDesk"]
