"""Log handler that passes lines from any thread to the page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Literal, cast

from botyard.interfaces.page.requests import MAX_TEXT
from botyard.names import shown
from botyard.protocols.webgui.pushes import LogEntry
from botyard.servers.handover import Handover


class PageLog(logging.Handler):
    """Log handler that passes lines to the page; safe to use in any thread.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Event loop of the page.
    take : callable
        Receives each line, in the event loop.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, take: Callable[[LogEntry], None]
    ) -> None:
        super().__init__()
        self._handover = Handover(loop)
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line to the event loop.

        Parameters
        ----------
        record : logging.LogRecord
            Line. Its attribute ``robot``, if it has one, is the source that the page
            shows.
        """
        robot = getattr(record, "robot", "")
        # The page shows the robot in a column of its own.
        text = (
            record.getMessage().removeprefix(f"{robot}: ")
            if robot
            else record.getMessage()
        )
        level = cast(
            Literal["debug", "info", "warning", "error"],
            _LEVELS.get(record.levelno, "error"),
        )
        source = robot or record.name.rpartition(".")[2]
        entry = LogEntry(
            time=record.created, level=level, source=source, text=shown(text, MAX_TEXT)
        )
        self._handover.soon(self._take, entry)


_LEVELS: Final = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
}


__all__ = ["PageLog"]
