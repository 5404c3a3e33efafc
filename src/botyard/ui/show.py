"""`Simulation.show`: the page of a world that the user's program steps.

The world stays in the program's thread and saves its state as bytes after each step. A
second simulation, the mirror, restores the latest state in the thread of a server. The
server has only the page, without control of the world. Thus neither thread waits for the
other, and the page cannot change a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

from botyard.api import arguments
from botyard.app.builtin import PAGE
from botyard.app.keywords import options_of
from botyard.app.running import Running
from botyard.errors import PortError
from botyard.interfaces.registry import BUILT_IN
from botyard.model.scene import Scene
from botyard.sim import observation
from botyard.sim.branching import is_same_map
from botyard.sim.observation import png
from botyard.sim.savedstates import sealed
from botyard.sim.simulation import Simulation
from botyard.sim.state import rebuild, settings_of
from botyard.sim.statehead import IN_ROSTER
from botyard.ui import window
from botyard.ui.embedding import checked_url, live_html, still_html

SOURCE: Final = "show"
"""Source name of the mirror's sensor subscriptions."""
PERIOD_S: Final = 1 / 30
"""Shortest time between two states that the page shows, s: its highest frame rate."""
UNSEEN_S: Final = 0.1
"""Time between two checks for an open page, while no page is open, s."""
SHARE: Final = 0.1
"""Largest share of wall time that the mirror's updates take."""
LAG_S: Final = 0.1
"""Delay of a step up to which later steps run faster to make up for it, s.

After a longer delay the pace starts anew.
"""
MARGIN: Final = 24
"""Margin around the page in a frame of marimo, pixels."""
HEIGHTS: Final = (1, 10_000)
"""Range of the height of a frame, pixels."""


class _Moment(NamedTuple):
    """State of the world after a step.

    Attributes
    ----------
    scene : Scene
        The map. The poses of its boxes are in `state`.
    models : tuple
        Models of robots and boxes to which `state` refers.
    read : frozenset
        Keys of the range sensors that have a subscriber.
    state : bytes
        Result of `SavedStates.save_moment`.
    """

    scene: Scene
    models: tuple[object, ...]
    read: frozenset[Hashable]
    state: bytes


class _Capture:
    """Takes moments of a world. Parts that have not changed are reused from the last one."""

    def __init__(self) -> None:
        self._roster = -1
        self._models: tuple[object, ...] = ()
        self._readers = b""
        self._read = frozenset[Hashable]()

    def take(self, sim: Simulation) -> _Moment:
        """Return the present moment. Call it only in the thread that steps the world."""
        core = sim.core
        roster, readers = core.feed.last(*IN_ROSTER), core.devices.table.readers
        if roster != self._roster:
            self._roster, self._models = roster, core.states.models()
            self._readers = b""
        if (present := readers.tobytes()) != self._readers:
            self._readers, self._read = present, core.devices.read_keys()
        # Controllers (programs) are left out, because the mirror never calls them.
        state = core.states.save_moment(0, programs=False)
        return _Moment(core.scene, self._models, self._read, state)


class _Mirror:
    """Second simulation that shows the latest moment of a world on its own server."""

    def __init__(self, sim: Simulation, moment: _Moment, port: int | None) -> None:
        options = {**settings_of(sim), "threads": 1}
        self._sim: Simulation = rebuild(
            Simulation,
            moment.scene,
            moment.models,  # type: ignore[arg-type]
            sim.core.descriptions.described,
            options,
            sealed(moment.state),
        )
        self._sim.core.warn_by(_silent)
        self._shown, self._latest = moment, moment
        self._read = frozenset[Hashable]()
        self._is_due = False
        o = options_of(
            {"read_only": True, "paused": True, "history": 0, "gui_port": port}
        )
        self.running = Running(self._sim, o, rest=set(BUILT_IN) - {PAGE.name})
        self.running.start()
        self._loop = self.running.call(asyncio.get_running_loop)
        self._hub = self.running._opened.parts.hub
        self.page = self.running._opened.run.page()
        self._viewers = self.page.desk.viewers
        self.running.call(self._read_sensors, moment.read)

    def show(self, moment: _Moment) -> None:
        """Show a moment soon; a later one replaces it. Thread-safe."""
        self._latest = moment
        if not self._is_due:
            self._is_due = True
            # If the server has ended, its loop is closed and raises RuntimeError.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._update)

    def _update(self) -> None:
        # Reset `_is_due` before reading `_latest`: the other thread sets them in the
        # opposite order, so no moment is lost.
        self._is_due = False
        moment = self._latest
        if moment is self._shown:
            return
        self._is_due, pause, started = True, UNSEEN_S, self._loop.time()
        if self._viewers:
            self._shown = moment
            if not is_same_map(self._sim.scene, moment.scene):
                self._sim.replace_scene(moment.scene)
            self._sim.core.states.know(moment.models)
            self._sim.restore(sealed(moment.state), programs=False)
            self._read_sensors(moment.read)
            # An update delays the program, because Python runs one thread at a time. So the
            # pause after an update grows with its duration.
            pause = max(PERIOD_S, (self._loop.time() - started) / SHARE)
        self._loop.call_later(pause, self._update)

    def _read_sensors(self, read: frozenset[Hashable]) -> None:
        """Subscribe in the mirror to the sensors that are read in the world, for the page."""
        devices = self._sim.core.devices
        for key in self._read ^ read:
            if devices.has(key):
                devices.subscribe(key, SOURCE, key in read)

        self._read = read
        self._hub.settle()


class LivePage:
    """Page of a world that the program steps.

    Parameters
    ----------
    sim : Simulation
        The world.
    port : int, optional
        Port of the page. Default: 8100, or the next free one.

    Raises
    ------
    PortError
        The port is in use.
    """

    def __init__(self, sim: Simulation, port: int | None) -> None:
        # A strong reference would keep the world and its server alive after the program has
        # dropped the world.
        self._sim = weakref.ref(sim)
        self._capture = _Capture()
        self._mirror = _Mirror(sim, self._capture.take(sim), port)
        self.running = self._mirror.running
        self.path = self.running.call(self._mirror.page.allow_frames)
        self.speed: float | None = None
        self.output: _Output | None = None
        """Output of the last `show` in a Jupyter kernel."""
        self._due = 0.0
        self._ends: list[Callable[[], object]] = [
            sim.after_step(self._stepped),
            sim.core.on_close(lambda _: self.close()),
        ]
        weakref.finalize(sim, self.running.end).atexit = False

    @property
    def address(self) -> str:
        """Address of the page on this computer, with its token."""
        address = self.running.page
        assert address is not None
        return address

    @property
    def port(self) -> int:
        """Port of the page."""
        return self.running.interfaces[PAGE.name].port

    def update(self) -> None:
        """Show changes that were made between two steps."""
        sim = self._sim()
        if sim is not None:
            self._mirror.show(self._capture.take(sim))

    def _stepped(self, _: object) -> None:
        self.update()
        sim = self._sim()
        # If a server steps the world, it controls the pace.
        if self.speed is None or sim is None or sim.core.is_ours is not None:
            return
        now, self._due = time.perf_counter(), self._due + sim.dt / self.speed
        if now > self._due + LAG_S:
            self._due = now
        elif now < self._due:
            time.sleep(self._due - now)

    def follow_cells(self, events: Any) -> None:
        """Register an update at the end of each cell: of the page, and of the saved picture.

        Parameters
        ----------
        events : IPython.core.events.EventManager
            Events of the kernel.
        """
        # The kernel keeps `cell_ended`, which must not keep the page and its world alive.
        page = weakref.ref(self)

        def cell_ended(*_: object) -> None:
            found = page()
            if found is None:
                events.unregister("post_run_cell", cell_ended)
                return
            found.update()
            if found.output is not None:
                found.output.draw()

        events.register("post_run_cell", cell_ended)
        self._ends += [
            cell_ended,
            lambda: events.unregister("post_run_cell", cell_ended),
        ]

    def close(self) -> None:
        """End the server. A notebook that is loaded again shows the picture instead of the page."""
        for end in self._ends:
            end()
        self._ends.clear()
        self.running.end()


class _Output:
    """Output of a cell: the live page, and a picture that is saved with the notebook."""

    _numbers = itertools.count()

    def __init__(self, shell: Any, sim: Simulation) -> None:
        self._shell = shell
        self._sim = weakref.ref(sim)
        self.name = f"botyard-{id(sim):x}-{next(self._numbers)}"
        self._drawn: object = None

    def show(self, html: str | None) -> None:
        """Show the live page and the picture. `html` is the page's HTML; None: only the picture."""
        if html is not None:
            self._shell.display_pub.publish({"text/html": html, "text/plain": ""})
        self.draw(update=False)

    def draw(self, update: bool = True) -> None:
        """Draw the picture if the world has changed since it was drawn."""
        sim = self._sim()
        if sim is None:
            return
        present = sim.time, sim.episode, sim.core.feed.revision
        if present != self._drawn:
            self._drawn = present
            picture = png(sim, None)
            bundle = {
                "text/html": still_html(self.name, picture),
                "image/png": picture,
                "text/plain": repr(sim),
            }
            self._shell.display_pub.publish(
                bundle, transient={"display_id": self.name}, update=update
            )


@observation.show.implementation
def show(
    sim: Simulation,
    height: int,
    speed: float | None,
    url: str | None,
    port: int | None,
) -> None:
    """Show the live page of a simulation; see `Simulation.show`."""
    height = arguments.whole(height, "height", low=HEIGHTS[0], high=HEIGHTS[1])
    if speed is not None:
        speed = arguments.number(speed, "speed", low=0.0, above=True)
    if url is not None:
        arguments.instance(url, "url", str)
        url = checked_url(url)
    if port is not None:
        port = arguments.whole(port, "port", low=0, high=65535)

    shell = _kernel()
    try:
        live: LivePage | None = _live(sim, port)
    except PortError as error:
        # In a notebook, show at least the picture, for example if nbconvert executes it on
        # a computer where the port is in use.
        if shell is None:
            raise
        warnings.warn(f"show: only a picture: {error}", stacklevel=4)
        live = None

    if live is not None:
        live.speed = speed
        live.update()
    if shell is not None:
        _show_in_kernel(shell, sim, live, height, url)
        return
    assert live is not None
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        still = f"botyard-{id(sim):x}"
        html = live_html(live.port, live.path, height, still, url)
        # Put the HTML in a separate frame, because marimo removes event handlers from HTML.
        whole = html + still_html(still, png(sim, None))
        marimo.output.append(marimo.iframe(whole, height=f"{height + MARGIN}px"))
        return

    print(f"botyard shows the world on {live.address}")
    if window.has_display():
        window.open_browser(live.address)


def _live(sim: Simulation, port: int | None) -> LivePage:
    """Return the page of a world: the running one, or a new one."""
    # The page is an attribute of the world, so that both end together.
    found: LivePage | None = sim._live
    if found is None or not found.running.is_running:
        found = sim._live = LivePage(sim, port)
    return found


def _kernel() -> Any:
    """Return the IPython shell of the Jupyter kernel that runs this program; None: no kernel."""
    found = sys.modules.get("IPython")
    shell = None if found is None else found.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


def _show_in_kernel(
    shell: Any, sim: Simulation, live: LivePage | None, height: int, url: str | None
) -> None:
    output = _Output(shell, sim)
    if live is None:
        output.show(None)
        return
    output.show(live_html(live.port, live.path, height, output.name, url))
    if live.output is None:
        live.follow_cells(shell.events)
    live.output = output


def _silent(text: str) -> None:
    """Discard a warning of the mirror: the world itself has already reported it."""


__all__ = ["LivePage", "show"]
