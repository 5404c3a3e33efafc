"""`Page`: the browser page of a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from botyard.app.compose import Parts
from botyard.app.options import RunOptions
from botyard.errors import ExitCode, PortError
from botyard.formats.models import missing_folders
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.status import Question
from botyard.interfaces.page.viewsource import ViewSource
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Tokens
from botyard.servers.web.page import PageServer, new_token
from botyard.version import __version__

STATIC: Final = Path(__file__).parents[1] / "ui" / "static"
"""Folder of the built page."""


class Page:
    """Browser page of a run.

    It can be stopped and started, and keeps its port and tokens.

    Parameters
    ----------
    parts : Parts
        Parts of the simulator that the page shows.
    o : RunOptions
        Options: addresses, tokens, graphics.
    kept : sequence
        Port and tokens of the page before a restart.

    Attributes
    ----------
    desk : PageRequests
        Handler of viewers' requests.
    """

    def __init__(self, parts: Parts, o: RunOptions, kept: Sequence[Any] = ()) -> None:
        self._parts, self._o = parts, o
        robot_servers = parts.robot_servers
        # After a restart, open browsers must be able to reconnect: their URL contains
        # the old port and token.
        before: Sequence[Any] = kept or (None, _token(o), new_token())
        self._port: int | None = before[0]
        self._has_history = False
        self._full: str = before[1]
        self._audience: str = before[2]
        tokens = Tokens(self._full, self._audience, o.read_only)
        source = ViewSource(robot_servers.hub, robot_servers.port_of)
        graphics: msg.Graphics = (
            "none" if o.no_graphics else "lite" if o.lite_graphics else "full"
        )
        # Without a token for control, every viewer has control, and a link for
        # spectators would promise a limit that does not exist.
        audience = self._audience if tokens.full else ""
        self.desk = PageRequests(
            robot_servers.hub,
            robot_servers,
            parts.maps,
            source,
            audience=audience,
            graphics=graphics,
        )
        missing = missing_folders()
        # In an unattended run, missing folders have already ended the run with an error.
        if missing:
            self.desk.question = Question("; ".join(missing), ExitCode.MODELS_MISSING)
        self._server = PageServer(
            robot_servers, self.desk, source, tokens, STATIC, o.gui_host
        )
        sim = robot_servers.hub.sim
        about = (
            f"botyard {__version__} started: map {shown(sim.scene.name)}, "
            f"{len(sim.robots)} robots, seed {sim.seed}"
        )
        self.desk.add_log(
            pushes.LogEntry(
                time=time.time(), level="info", source="botyard", text=about
            )
        )

    @property
    def url(self) -> str:
        """URL of the page with the token that allows control of the simulator."""
        return self._server.url()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port on which the page is served."""
        return self._server.address

    @property
    def kept(self) -> tuple[int, str, str]:
        """Port and tokens of the page, which a restarted simulator uses again."""
        return self._server.address[1], self._full, self._audience

    def allow_frames(self) -> str:
        """Let other pages frame this one; see `PageServer.allow_frames`."""
        return self._server.allow_frames()

    async def start(self) -> None:
        """Serve the page.

        The page uses the requested port; otherwise its previous port, if that is free;
        otherwise any free port.

        Raises
        ------
        PortError
            The requested port is in use.
        """
        o, before = self._o, self._port
        # If the options name another port than the old one, the user has chosen it: do
        # not replace it by the old port.
        if before is None or (o.gui_port is not None and o.gui_port != before):
            await self._server.listen(o.gui_address, o.gui_port)
        else:
            try:
                await self._server.listen(o.gui_address, before)
            # Another program has taken the port since; viewers must open the new URL.
            except PortError:
                await self._server.listen(o.gui_address, o.gui_port)

        self._port = self._server.address[1]
        history = self._parts.hub.sim.history
        self._has_history = (
            bool(o.history) and not history.is_on
            # The program may already keep a history of its own.
        )
        if self._has_history:
            history.keep(minutes=o.history)

    async def stop(self) -> None:
        """Stop serving, and disconnect the viewers."""
        await self._server.close()
        if self._has_history:
            self._parts.hub.sim.history.stop()


def _token(o: RunOptions) -> str:
    """Return the token of viewers that may control the simulator; empty: none is required."""
    return "" if o.gui_token == "off" else o.gui_token or new_token()


__all__ = ["STATIC", "Page"]
