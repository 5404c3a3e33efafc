"""Operations on the simulator as a whole: maps, pictures, interfaces, the log, the end."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.control.caller import Caller, Level
from botyard.control.operation import Operation, argument, count, octets, text, yes_or_no
from botyard.control.site import Site
from botyard.errors import DeniedError, WorldError
from botyard.names import shown

NO_MAPS: Final = "no maps can be loaded"
ROTATION_PAUSE: Final = 0.05
"""Clients may begin a new log file so often, s: five are kept, and a flood of these would keep the disk busy."""


@dataclass(frozen=True, kw_only=True)
class LoadMap(Operation[Future[bool]]):
    """Another map or world for everybody, by its name, out of the folders that were opened for that. True: it is in place; False: it was.

    With `reserve`, this client alone loads maps from now on (master mode).
    """

    map: str = argument(text(1000))
    reserve: bool = argument(yes_or_no, False)
    reserved: bool = argument(yes_or_no, True)
    """Whether a reservation by others binds this caller."""
    tells = "Pioneer clients get MAPCHANGED, the page the map, ROS /map"

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Do it. DeniedError when another client has reserved that."""
        maps = control.part(control.maps, NO_MAPS)
        if control.map_master and self.reserved and not self.reserve:
            raise DeniedError("a client has reserved that (master mode)")
        control.map_master = control.map_master or self.reserve
        return maps.load(self.map, caller.key if caller.key is not None else caller.source)


@dataclass(frozen=True, kw_only=True)
class FreeMaps(Operation[None]):
    """Every client may load maps again."""

    audit = logging.INFO
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.map_master = False

    def summary(self, result: Any) -> str:
        """What was done."""
        return "every client may load maps again"


@dataclass(frozen=True, kw_only=True)
class SendMap(Operation[Future[bool]]):
    """Another map or world for everybody, whose file is sent; no file of it is kept."""

    map: str = argument(text(1000))
    data: bytes = argument(octets)
    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Do it."""
        asker = caller.key if caller.key is not None else caller.source
        return control.part(control.maps, NO_MAPS).load_bytes(self.map, self.data, asker)

    def summary(self, result: Any) -> str:
        """What was done."""
        return f"{shown(self.map)} was sent ({len(self.data)} bytes)"


@dataclass(frozen=True, kw_only=True)
class ReloadMap(Operation[Future[bool]]):
    """Read the present map's file again, changed or not."""

    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> Future[bool]:
        """Do it."""
        return control.part(control.maps, NO_MAPS).reload()


@dataclass(frozen=True, kw_only=True)
class ClearMap(Operation[None]):
    """No map any more, for everybody."""

    tells = LoadMap.tells

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.part(control.maps, NO_MAPS).clear()


@dataclass(frozen=True, kw_only=True)
class WritePicture(Operation[Future[Path]]):
    """Write a picture of the world beside the log; the name may choose the file's stem."""

    picture: str = argument(text(1000), "")
    audit = logging.INFO
    settles = False

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Do it. WorldError: there were too many, or one is being drawn."""
        return control.part(control.painter, "no pictures are drawn").write(self.picture)

    def summary(self, result: Any) -> str:
        """What was done."""
        return f"picture written to {result}"


@dataclass(frozen=True, kw_only=True)
class SwitchInterface(Operation[Future[None]]):
    """Start or stop one of the simulator's interfaces."""

    interface: str = argument(text(200))
    on: bool = argument(yes_or_no)

    def perform(self, control: Site, caller: Caller) -> Future[None]:
        """Do it. WorldError: there is none of that name; PortError: it cannot be started."""
        return control.part(control.grounds, "there are no interfaces").switch_interface(self.interface, self.on)


class LogFiles:
    """Begins new log files for clients (`botyard.control.parts.LogKeeper`).

    Parameters
    ----------
    begin : callable
        Begins one.
    clock : callable
        Wall time, s.
    """

    def __init__(self, begin: Callable[[], None], clock: Callable[[], float]) -> None:
        self._begin = begin
        self._clock = clock
        self._last = -math.inf

    def rotate(self) -> None:
        """Begin one. WorldError: the last one was begun a moment ago."""
        now = self._clock()
        if now - self._last < ROTATION_PAUSE:
            raise WorldError("no new log file: the last one was begun a moment ago")
        self._last = now
        self._begin()


@dataclass(frozen=True, kw_only=True)
class RotateLog(Operation[None]):
    """Begin a new log file."""

    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it. WorldError: the log goes to no file, or one was begun a moment ago."""
        logs = control.logs
        if logs is None:
            raise WorldError("a new log file was asked for, but the log does not go to a file")
        logs.rotate()


@dataclass(frozen=True, kw_only=True)
class Exit(Operation[None]):
    """End the program with a status, or as if it had died."""

    status: int = argument(count(0, 255), 0)
    crash: bool = argument(yes_or_no, False)
    command: str = argument(text(200), "exit")
    """What it is called where it came from, for the log."""
    level = Level.OWN
    audit = logging.WARNING
    settles = False
    tells = "clients are told to go"

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.part(control.end, "the program cannot be ended")(self.status, self.crash)

    def summary(self, result: Any) -> str:
        """What was done."""
        return f"{self.command}: the simulation ends with status {self.status}"


__all__ = [
    "ClearMap", "Exit", "FreeMaps", "LoadMap", "LogFiles", "ReloadMap", "RotateLog", "SendMap", "SwitchInterface", "WritePicture",
]  # fmt: skip
