"""Operations on the simulator as a whole: maps, pictures, interfaces, log rotation,
exit.
"""

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
from botyard.names import shown

NO_MAPS: Final = "no maps can be loaded"
MIN_ROTATION_INTERVAL_S: Final = 0.05
"""Shortest time between two log rotations by clients, s: five files are kept, and a
flood of requests would keep the disk busy.
"""


@dataclass(frozen=True, kw_only=True)
class LoadMap(Operation[Future[bool]]):
    """Load a map or world by name from the allowed folders. The result is True if it
    was loaded, False if it was there already.

    With `reserve`, only this client may load maps from now on (master mode).
    """

    map: str = argument(text(1000))
    reserve: bool = argument(boolean, False)
    reserved: bool = argument(boolean, True)
    """Whether a reservation by another client applies to this caller."""
    tells = "Pioneer clients get MAPCHANGED, the page the map, ROS /map"

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Carry it out. DeniedError if another client has reserved the loading of maps."""
        maps = control.part(control.maps, NO_MAPS)
        if control.map_master and self.reserved and not self.reserve:
            raise DeniedError(
                "another client has reserved the loading of maps (master mode)"
            )

        control.map_master = control.map_master or self.reserve
        return maps.load(
            self.map, caller.key if caller.key is not None else caller.source
        )


@dataclass(frozen=True, kw_only=True)
class FreeMaps(Operation[None]):
    """End the reservation of map loading (master mode): every client may load maps
    again.
    """

    audit = logging.INFO
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out."""
        control.map_master = False

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return "every client may load maps again"


@dataclass(frozen=True, kw_only=True)
class SendMap(Operation[Future[bool]]):
    """Load a map or world from the bytes of its file, which are not stored."""

    map: str = argument(text(1000))
    data: bytes = argument(byte_string)
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Carry it out."""
        asker = caller.key if caller.key is not None else caller.source
        return control.part(control.maps, NO_MAPS).load_bytes(
            self.map, self.data, asker
        )

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"{shown(self.map)} was sent ({len(self.data)} bytes)"


@dataclass(frozen=True, kw_only=True)
class ReloadMap(Operation[Future[bool]]):
    """Read the present map's file again, even if it has not changed."""

    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Carry it out."""
        return control.part(control.maps, NO_MAPS).reload()


@dataclass(frozen=True, kw_only=True)
class ClearMap(Operation[None]):
    """Remove the map."""

    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out."""
        control.part(control.maps, NO_MAPS).clear()


@dataclass(frozen=True, kw_only=True)
class WritePicture(Operation[Future[Path]]):
    """Write a picture of the world next to the log file; the name may set the stem of
    the file.
    """

    picture: str = argument(text(1000), "")
    audit = logging.INFO
    settles = False
    writes = True
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Carry it out. WorldError if there were too many, or if one is being drawn."""
        return control.part(control.painter, "no pictures are drawn").write(
            self.picture
        )

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"picture written to {result}"


@dataclass(frozen=True, kw_only=True)
class SwitchInterface(Operation[Future[None]]):
    """Start or stop one of the simulator's interfaces."""

    interface: str = argument(text(200))
    on: bool = argument(boolean)
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Future[None]:
        """Carry it out. WorldError: there is none of that name; PortError: it cannot be
        started.
        """
        return control.part(
            control.grounds, "there are no interfaces"
        ).switch_interface(self.interface, self.on)


class LogFiles:
    """Rotates the log for clients, at a limited rate
    (`botyard.control.parts.LogKeeper`).

    Parameters
    ----------
    begin : callable
        Begins a new log file.
    clock : callable
        Wall time, s.
    """

    def __init__(self, begin: Callable[[], None], clock: Callable[[], float]) -> None:
        self._begin = begin
        self._clock = clock
        self._last = -math.inf

    def rotate(self) -> None:
        """Begin a new log file. WorldError if the last rotation was a moment ago."""
        now = self._clock()
        if now - self._last < MIN_ROTATION_INTERVAL_S:
            raise WorldError("no new log file: the last one was begun a moment ago")
        self._last = now
        self._begin()


@dataclass(frozen=True, kw_only=True)
class RotateLog(Operation[None]):
    """Begin a new log file."""

    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out. WorldError: the log goes to no file, or one was begun a moment
        ago.
        """
        logs = control.logs
        if logs is None:
            raise WorldError(
                "a new log file was asked for, but the log does not go to a file"
            )

        logs.rotate()


@dataclass(frozen=True, kw_only=True)
class Exit(Operation[None]):
    """End the program with an exit status, or as if it had crashed."""

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
        """Carry it out."""
        control.part(control.end, "the program cannot be ended")(
            self.status, self.crash
        )

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"{self.command}: the simulation ends with status {self.status}"


__all__ = [
    "ClearMap",
    "Exit",
    "FreeMaps",
    "LoadMap",
    "LogFiles",
    "ReloadMap",
    "RotateLog",
    "SendMap",
    "SwitchInterface",
    "WritePicture",
]
