"""Operations on the simulator as a whole: maps, pictures, interfaces, log, exit."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.control.caller import Caller, Level
from botyard.control.operation import (
    Operation,
    argument,
    boolean,
    byte_string,
    count,
    text,
)
from botyard.control.site import Site
from botyard.errors import DeniedError, WorldError
from botyard.model.world import World
from botyard.names import shown

NO_MAPS: Final = "no maps can be loaded"
MIN_ROTATION_INTERVAL_S: Final = 0.05
"""Minimum time between two log rotations by clients, s.

Five files are kept, and a flood of requests would keep the disk busy.
"""


@dataclass(frozen=True, kw_only=True)
class LoadMap(Operation[Future[bool]]):
    """Load a map or world by name from the allowed folders.

    The result is True if the map was loaded, False if it is already the current map.
    With `reserve`, loads without it are refused from now on (master mode), also
    from this client.

    Parameters
    ----------
    map : str
        Name of a shipped map, or a file in one of the allowed folders.
    reserve : bool
        Whether loads without `reserve` are refused from now on.
    reserved : bool
        Whether a reservation applies to this caller.
    """

    map: str = argument(text(1000))
    reserve: bool = argument(boolean, False)
    reserved: bool = argument(boolean, True)
    """Whether a reservation applies to this caller."""
    tells = "Pioneer clients get MAPCHANGED, the page the map, ROS /map"

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Start to load the map.

        Raises
        ------
        DeniedError
            The loading of maps is reserved.
        """
        maps = control.part(control.maps, NO_MAPS)
        if control.map_master and self.reserved and not self.reserve:
            raise DeniedError(
                "the loading of maps is reserved (master mode): expected a load with "
                "reserve (Pioneer: operation 2), or the end of the reservation (operation 3)"
            )

        # Only `FreeMaps` ends a reservation.
        control.map_master = control.map_master or self.reserve
        return maps.load(
            # Queueing is fair between clients; callers of one source without a key
            # share a turn.
            self.map,
            caller.key if caller.key is not None else caller.source,
        )


@dataclass(frozen=True, kw_only=True)
class LookAtMap(Operation[Future[World]]):
    """Read a map or world by name from the allowed folders, without loading it.

    Parameters
    ----------
    map : str
        Name of a shipped map, or a file in one of the allowed folders.
    """

    map: str = argument(text(1000))
    settles = False

    def perform(self, control: Site, caller: Caller) -> Future[World]:
        """Start to read the map; the current map stays."""
        return control.part(control.maps, NO_MAPS).look(
            self.map, caller.key if caller.key is not None else caller.source
        )

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"looked at the map {shown(self.map)}"


@dataclass(frozen=True, kw_only=True)
class FreeMaps(Operation[None]):
    """End the reservation of map loading (master mode).

    Every client may load maps again.
    """

    audit = logging.INFO
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """End the reservation."""
        control.map_master = False

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return "every client may load maps again"


@dataclass(frozen=True, kw_only=True)
class SendMap(Operation[Future[bool]]):
    """Load a map or world from the bytes of its file, which are not stored.

    Parameters
    ----------
    map : str
        Name of the file; its suffix determines the format.
    data : bytes
        Contents of the file.
    """

    map: str = argument(text(1000))
    data: bytes = argument(byte_string)
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Start to load the map from its bytes.

        Raises
        ------
        WorldError
            This simulator cannot load maps. Errors of the file itself are in the
            future.
        """
        asker = caller.key if caller.key is not None else caller.source
        return control.part(control.maps, NO_MAPS).load_bytes(
            self.map, self.data, asker
        )

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"{shown(self.map)} was sent ({len(self.data)} bytes)"


@dataclass(frozen=True, kw_only=True)
class ReloadMap(Operation[Future[bool]]):
    """Read the current map's file again, even if it has not changed."""

    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Start to read the map's file again."""
        return control.part(control.maps, NO_MAPS).reload()


@dataclass(frozen=True, kw_only=True)
class ClearMap(Operation[None]):
    """Remove the map."""

    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> None:
        """Remove the map."""
        control.part(control.maps, NO_MAPS).clear()


@dataclass(frozen=True, kw_only=True)
class WritePicture(Operation[Future[Path]]):
    """Write a picture of the world next to the log file.

    The name may set the stem of the file.

    Parameters
    ----------
    picture : str
        Stem of the file; empty: the program chooses it.
    """

    picture: str = argument(text(1000), "")
    audit = logging.INFO
    settles = False
    writes = True
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Start to draw the picture.

        Raises
        ------
        WorldError
            Too many pictures were requested, or a picture is being drawn.
        """
        return control.part(control.painter, "no pictures are drawn").write(
            self.picture
        )

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"picture written to {result}"


@dataclass(frozen=True, kw_only=True)
class SwitchInterface(Operation[Future[None]]):
    """Start or stop one of the simulator's interfaces.

    Parameters
    ----------
    interface : str
        Name of the interface.
    on : bool
        True starts it.
    """

    interface: str = argument(text(200))
    on: bool = argument(boolean)
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Future[None]:
        """Start or stop the interface.

        Raises
        ------
        WorldError
            No interface has this name.
        PortError
            The interface cannot be started.
        """
        return control.part(
            control.robot_host, "there are no interfaces"
        ).switch_interface(self.interface, self.on)


class LogFiles:
    """Part that rotates the log for clients, at a limited rate.

    See `botyard.control.parts.LogKeeper`.

    Parameters
    ----------
    begin : callable
        Starts a new log file.
    clock : callable
        Returns the wall time, s.
    """

    def __init__(self, begin: Callable[[], None], clock: Callable[[], float]) -> None:
        self._begin = begin
        self._clock = clock
        self._last = -math.inf

    def rotate(self) -> None:
        """Start a new log file.

        Raises
        ------
        WorldError
            The last rotation was too recent.
        """
        now = self._clock()
        # Without a limit, a client could rotate all useful logs away.
        if now - self._last < MIN_ROTATION_INTERVAL_S:
            raise WorldError("no new log file: the last one was started a moment ago")
        self._last = now
        self._begin()


@dataclass(frozen=True, kw_only=True)
class RotateLog(Operation[None]):
    """Start a new log file."""

    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Start a new log file.

        Raises
        ------
        WorldError
            The log does not go to a file, or the last rotation was too recent.
        """
        logs = control.logs
        if logs is None:
            raise WorldError(
                "cannot start a new log file: the log is not written to a file"
            )

        logs.rotate()


@dataclass(frozen=True, kw_only=True)
class Exit(Operation[None]):
    """End the program with an exit status, or as if it had crashed.

    Parameters
    ----------
    status : int
        Exit status of the program, 0 to 255.
    crash : bool
        Whether the run counts as crashed.
    command : str
        Name of the command in the caller's protocol, for the log.
    """

    status: int = argument(count(0, 255), 0)
    crash: bool = argument(boolean, False)
    command: str = argument(text(200), "exit")
    """Name of the command in the caller's protocol, for the log."""
    level = Level.OWN
    audit = logging.WARNING
    settles = False
    tells = "clients are disconnected"
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """End the program.

        Raises
        ------
        WorldError
            This program cannot be ended by clients.
        """
        control.part(control.end, "the program cannot be ended")(
            self.status, self.crash
        )

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"{self.command}: the simulation ends with status {self.status}"


__all__ = [
    "ClearMap",
    "Exit",
    "FreeMaps",
    "LoadMap",
    "LogFiles",
    "LookAtMap",
    "ReloadMap",
    "RotateLog",
    "SendMap",
    "SwitchInterface",
    "WritePicture",
]
