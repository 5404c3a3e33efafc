"""The page of a run: what serves it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.app.compose import Parts
from botyard.app.options import RunOptions
from botyard.errors import ExitCode, PortError
from botyard.formats.models import missing_folders
from botyard.interfaces.page.desk import PageDesk, Question
from botyard.interfaces.page.viewsource import ViewSource
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Tokens
from botyard.servers.web import PageServer, new_token
from botyard.version import __version__

STATIC: Final = Path(__file__).parents[1] / "ui" / "static"
"""The built page."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is served.

    Attributes
    ----------
    desk : PageDesk
        Carries out what viewers ask for.
    url : str
        Its address, with the token of those who may steer.
    kept : (int, str, str)
        Its port and tokens, which a simulator that is started again gives it once more.
    """

    desk: PageDesk
    url: str
    kept: tuple[int, str, str]


async def begin_page(stack: contextlib.AsyncExitStack, parts: Parts, o: RunOptions, kept: Sequence[Any] = ()) -> Page:
    """Serve the page until the stack is left.

    Parameters
    ----------
    parts : Parts
        The simulator.
    o : RunOptions
        Addresses, tokens, what is drawn.
    kept : sequence
        Port and tokens that the page had before the simulator was started again.

    Raises
    ------
    PortError
        It cannot have its port.
    """
    yard = parts.yard
    port, full, audience = kept or (None, _token(o), new_token())
    tokens = Tokens(full, audience, o.read_only)
    source = ViewSource(yard.hub, yard.port_of)
    graphics: msg.Graphics = "none" if o.no_graphics else "lite" if o.lite_graphics else "full"
    desk = PageDesk(yard.hub, yard, parts.maps, source, audience=audience if tokens.full else "", graphics=graphics)
    missing = missing_folders()
    if missing:  # who is noninteractive has ended before
        desk.question = Question("; ".join(missing), ExitCode.MODELS_MISSING)
    server = PageServer(yard, desk, source, tokens, STATIC, o.gui_host)
    await _listen(server, o, port)
    stack.push_async_callback(server.close)
    sim = yard.hub.sim
    about = f"botyard {__version__} started: map {shown(sim.scene.name)}, {len(sim.robots)} robots, seed {sim.seed}"
    desk.add_log(msg.LogEntry(time=time.time(), level="info", source="botyard", text=about))
    return Page(desk, server.url(), (server.address[1], full, audience))


async def _listen(server: PageServer, o: RunOptions, before: int | None) -> None:
    """On the port that was asked for; else on the one that it had before, if that is free, or any that is."""
    if o.gui_port is None and before is not None:
        with contextlib.suppress(PortError):
            await server.listen(o.gui_address, before)
            return
    await server.listen(o.gui_address, o.gui_port)


def _token(o: RunOptions) -> str:
    return "" if o.gui_token == "off" else o.gui_token or new_token()


__all__ = ["STATIC", "Page", "begin_page"]
