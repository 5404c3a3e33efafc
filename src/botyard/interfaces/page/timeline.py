"""The page's time line: what it is about (`TimeLine`), and that of a running simulation
(`LookBack`).

Looking back shows one page an earlier moment, while the world goes on for everybody
else; going on from a moment is the operation `Branch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from botyard.control import Branch, Caller, Control
from botyard.control.history import NO_HISTORY
from botyard.control.parts import RunLoop
from botyard.errors import NotNowError
from botyard.interfaces.page.past import Past
from botyard.interfaces.page.timeline_events import Marks
from botyard.interfaces.page.viewsource import ViewSource
from botyard.model.scene import Scene
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Viewer
from botyard.sim.simulation import Simulation

MAX_LOOKING: Final = 8
"""Most pages that look back at a time, and most that only look on: each has a
simulation of its own beside the world.
"""
MAX_PROBLEM: Final = 300
"""Longest text of what is wrong, characters."""


class TimeLine(Protocol):
    """What a page's time line is about: the last minutes of a running simulation, or a
    recording.
    """

    @property
    def marks(self) -> Sequence[msg.Mark]:
        """Events, oldest first: another sequence when there are others."""
        ...

    def state(self) -> msg.TimeLine | None:
        """What the status tells of it; None: there is no time line."""
        ...

    def source_of(self, viewer: Viewer) -> ViewSource | None:
        """What a viewer's frames show; None: the same as everybody's."""
        ...

    def sim_of(self, viewer: Viewer) -> Simulation | None:
        """The world that a viewer is shown; None: the same as everybody."""
        ...

    def scenes(self) -> Iterable[tuple[ViewSource, Scene]]:
        """Sources of `source_of`, with the maps that they show."""
        ...

    def noticed(self) -> None:
        """Time has passed: look for events. Called twice a second while there are
        pages.
        """
        ...

    def view_changed(self, viewer: Viewer) -> None:
        """A viewer has changed its view."""
        ...

    def left(self, viewer: Viewer) -> None:
        """A viewer is gone."""
        ...

    def look(
        self, request: msg.Look, viewer: Viewer, caller: Caller
    ) -> msg.Looked | None:
        """Show another moment; None is answered if it is the present. NotNowError,
        StateError: there is none.
        """
        ...

    def go_on(self, viewer: Viewer, caller: Caller) -> float:
        """Let the world go on from the moment that a viewer is shown; its time, s.
        BotyardError: it cannot.
        """
        ...

    def loop(self, on: bool, caller: Caller) -> None:
        """Begin again at the end. NotNowError: this is no recording."""
        ...

    def chart(self) -> msgspec.Raw | None:
        """What robots did over time, as
        `botyard.protocols.webgui.messages.ChartResult`; None: there is no chart.
        """
        ...


class LookBack:
    """The time line of a running simulation: its last minutes, which
    `Simulation.history` keeps, and what has happened in them.

    Parameters
    ----------
    hub : RunLoop
        The run loop.
    control : Control
        The door for operations.
    port_of : callable
        TCP port of a robot.
    present : ViewSource
        What pages are shown that do not look back.
    own : str
        The source of the page's own commands: pages are no clients.
    """

    def __init__(
        self,
        hub: RunLoop,
        control: Control,
        port_of: Callable[[str], int],
        present: ViewSource,
        own: str,
    ) -> None:
        self._hub, self._control, self._port_of, self._present, self._own = (
            hub,
            control,
            port_of,
            present,
            own,
        )
        self._pasts: dict[Viewer, Past] = {}
        self._marks = Marks(hub, own)

    @property
    def marks(self) -> Sequence[msg.Mark]:
        """Events, oldest first: another list when there are others."""
        return self._marks.all

    def state(self) -> msg.TimeLine | None:
        """What the status tells of it; None: no moments are kept."""
        history = self._hub.sim.history
        if not history.is_on or history.span is None:
            return None
        first, last = history.span
        problem = shown(history.problem, MAX_PROBLEM)
        return msg.TimeLine(
            first=first.time, last=last.time, size=history.size, problem=problem
        )

    def source_of(self, viewer: Viewer) -> ViewSource | None:
        """See `TimeLine.source_of`."""
        past = self._pasts.get(viewer)
        return None if past is None else past.source

    def sim_of(self, viewer: Viewer) -> Simulation | None:
        """See `TimeLine.sim_of`."""
        past = self._pasts.get(viewer)
        return None if past is None else past.sim

    def scenes(self) -> Iterable[tuple[ViewSource, Scene]]:
        """See `TimeLine.scenes`."""
        return [(past.source, past.sim.scene) for past in self._pasts.values()]

    def noticed(self) -> None:
        """See `TimeLine.noticed`."""
        span = self._hub.sim.history.span
        if span is not None:
            self._marks.look(span[0].time)

    def view_changed(self, viewer: Viewer) -> None:
        """A viewer has changed its view: what it has selected in the past is read."""
        if viewer in self._pasts:
            self._pasts[viewer].read(viewer.view.selected)

    def left(self, viewer: Viewer) -> None:
        """A viewer is gone."""
        self._pasts.pop(viewer, None)

    def look(
        self, request: msg.Look, viewer: Viewer, caller: Caller
    ) -> msg.Looked | None:
        """Show one viewer another moment."""
        history, past = self._hub.sim.history, self._pasts.get(viewer)
        if request.time is None and not request.by:
            self._show_present(viewer)
            return None

        if not history.is_on or history.span is None:
            raise NotNowError(NO_HISTORY)
        if (
            past is None
            and sum(v.read_only == viewer.read_only for v in self._pasts) >= MAX_LOOKING
        ):
            raise NotNowError(f"{MAX_LOOKING} pages look back already")

        shown_now = history.span[1] if past is None else past.moment
        time = (
            history.beside(shown_now, request.by).time
            if request.time is None
            else request.time
        )
        before = 0
        if past is None:
            past = self._pasts[viewer] = Past(
                self._hub, time, self._present.numbers, self._port_of
            )
        else:
            before = past.source.schema()[0]
            past.go(time)

        past.read(viewer.view.selected)
        number, schema = past.source.schema()
        if number != before:
            viewer.send_encoded(schema)
        missing, gone = past.difference()
        robots = self._hub.sim.robots
        disconnected = sum(
            any(source != self._own for source in robots[name].clients)
            for name in missing
        )
        return msg.Looked(
            tick=past.moment.tick,
            time=past.moment.time,
            missing=list(missing),
            gone=list(gone),
            disconnected=disconnected,
        )

    def go_on(self, viewer: Viewer, caller: Caller) -> float:
        """Let the world go on from the moment that a viewer looks at; it is shown the
        present again.
        """
        past, control = self._pasts.get(viewer), self._control
        if past is None:
            control.check(caller, Branch)
            raise NotNowError("this page shows the present: look back first")

        if self._hub.sim.history.moment(past.moment.time) != past.moment:
            raise NotNowError(
                "the moment that is shown is not kept any more: look at another one"
            )

        moment = control.do(caller, Branch(time=past.moment.time))
        self._show_present(viewer)
        return moment.time

    def loop(self, on: bool, caller: Caller) -> None:
        """A running simulation has no end at which it could begin again."""
        raise NotNowError("only a recording begins again at its end")

    def chart(self) -> msgspec.Raw | None:
        """There is a chart of recordings only."""
        return None

    def _show_present(self, viewer: Viewer) -> None:
        """Show a viewer the present again."""
        if self._pasts.pop(viewer, None) is not None:
            _, schema = self._present.schema()
            viewer.send_encoded(schema)
            self._present.changed()


__all__ = ["MAX_LOOKING", "LookBack", "TimeLine"]
