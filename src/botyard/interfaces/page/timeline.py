"""Timeline of the page, with which a viewer can look back (`TimeLine`, `LookBack`).

A viewer that looks back sees an earlier moment while the world continues for all
others. The operation `Branch` makes the world continue from that moment.
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
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer
from botyard.sim.simulation import Simulation

MAX_LOOKING: Final = 8
"""Largest number of pages with control that look back; read-only pages have the same limit.

Each page that looks back has its own second simulation.
"""
MAX_PROBLEM: Final = 300
"""Longest text of a problem in a message, characters."""


class TimeLine(Protocol):
    """Interface of a page's timeline: of a running simulation, or of a recording."""

    @property
    def marks(self) -> Sequence[pushes.Mark]:
        """Events on the timeline, oldest first; a new sequence object after each change."""
        ...

    def state(self) -> pushes.TimeLine | None:
        """Return the timeline's part of the status; None without a timeline."""
        ...

    def source_of(self, viewer: Viewer) -> ViewSource | None:
        """Return the source of the frames that a viewer sees; None for the shared source.

        Parameters
        ----------
        viewer : Viewer
            A page.
        """
        ...

    def sim_of(self, viewer: Viewer) -> Simulation | None:
        """Return the simulation that a viewer sees; None for the shared one.

        Parameters
        ----------
        viewer : Viewer
            A page.
        """
        ...

    def scenes(self) -> Iterable[tuple[ViewSource, Scene]]:
        """Return the sources of frames that are not the shared one, each with its map."""
        ...

    def noticed(self) -> None:
        """Detect new events; this is called twice a second while there are pages."""
        ...

    def view_changed(self, viewer: Viewer) -> None:
        """Apply the view (selected robots and options) that a viewer has changed.

        Parameters
        ----------
        viewer : Viewer
            Page that has selected robots or changed its options; `Viewer.view` has the
            new view.
        """
        ...

    def left(self, viewer: Viewer) -> None:
        """Release a viewer that has left."""
        ...

    def look(
        self, request: msg.Look, viewer: Viewer, caller: Caller
    ) -> pushes.Looked | None:
        """Show another moment to a viewer; return None if it is the present.

        Parameters
        ----------
        request : Look
            Time, s, or number of moments forward or back; without both, the present.
        viewer : Viewer
            Page that asks.
        caller : Caller
            Caller with the permissions of that page.

        Raises
        ------
        NotNowError, StateError
            No such moment is available.
        """
        ...

    def go_on(self, viewer: Viewer, caller: Caller) -> float:
        """Let the world continue from the moment that a viewer sees; return its time, s.

        Parameters
        ----------
        viewer : Viewer
            Page that shows an earlier moment.
        caller : Caller
            Caller with the permissions of that page.

        Raises
        ------
        BotyardError
            The world cannot continue from there.
        """
        ...

    def loop(self, on: bool, caller: Caller) -> None:
        """Turn repeating at the end on or off.

        Parameters
        ----------
        on : bool
            Whether to start again after the end.
        caller : Caller
            Caller with the permissions of the page.

        Raises
        ------
        NotNowError
            The timeline is not a recording.
        """
        ...

    def chart(self) -> msgspec.Raw | None:
        """Return an encoded `botyard.protocols.webgui.pushes.ChartResult`; None without a chart.

        The chart shows what robots did over time: driving, waiting, being in sectors.
        """
        ...


class LookBack:
    """Timeline of a running simulation, with which viewers look back.

    The timeline covers the last minutes, which `Simulation.history` keeps, and their
    events.

    Parameters
    ----------
    hub : RunLoop
        The run loop.
    control : Control
        The control surface for operations.
    port_of : callable
        Returns the TCP port of a robot.
    present : ViewSource
        Source of the frames of pages that do not look back.
    own : str
        Name of the page's source of commands; pages do not count as clients of a robot.
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
    def marks(self) -> Sequence[pushes.Mark]:
        """Events on the timeline, oldest first; a new sequence object after each change."""
        return self._marks.all

    def state(self) -> pushes.TimeLine | None:
        """Return the timeline's part of the status; None if no moments are kept.

        Returns
        -------
        TimeLine or None
            Simulated times of the first and last kept moment, s, and the size of the
            history, bytes.
        """
        history = self._hub.sim.history
        if not history.is_on or history.span is None:
            return None
        first, last = history.span
        problem = shown(history.problem, MAX_PROBLEM)
        return pushes.TimeLine(
            first=first.time, last=last.time, size=history.size, problem=problem
        )

    def source_of(self, viewer: Viewer) -> ViewSource | None:
        """Return the source of the frames that a viewer sees; see `TimeLine.source_of`."""
        past = self._pasts.get(viewer)
        return None if past is None else past.source

    def sim_of(self, viewer: Viewer) -> Simulation | None:
        """Return the simulation that a viewer sees; see `TimeLine.sim_of`."""
        past = self._pasts.get(viewer)
        return None if past is None else past.sim

    def scenes(self) -> Iterable[tuple[ViewSource, Scene]]:
        """Return the sources that viewers see; see `TimeLine.scenes`."""
        return [(past.source, past.sim.scene) for past in self._pasts.values()]

    def noticed(self) -> None:
        """Detect new events; see `TimeLine.noticed`."""
        span = self._hub.sim.history.span
        if span is not None:
            self._marks.look(span[0].time)

    def view_changed(self, viewer: Viewer) -> None:
        """Read the sensors of the robots that a viewer has selected in the past."""
        if viewer in self._pasts:
            self._pasts[viewer].read(viewer.view.selected)

    def left(self, viewer: Viewer) -> None:
        """Release a viewer that has left."""
        self._pasts.pop(viewer, None)

    def look(
        self, request: msg.Look, viewer: Viewer, caller: Caller
    ) -> pushes.Looked | None:
        """Show another moment to one viewer.

        Parameters
        ----------
        request : Look
            Time, s, or number of moments forward or back; without both, the present.
        viewer : Viewer
            Page that asks.
        caller : Caller
            Not used: looking back needs no permission, because it changes nothing.

        Returns
        -------
        Looked or None
            Moment that is shown, and the robots that differ from now; None: the
            present.

        Raises
        ------
        NotNowError
            No moments are kept, or `MAX_LOOKING` pages look back already.
        """
        history, past = self._hub.sim.history, self._pasts.get(viewer)
        if request.time is None and not request.by:
            self._show_present(viewer)
            return None

        # The kept moments may have been dropped meanwhile, for example by a change of
        # the map.
        if not history.is_on or history.span is None:
            raise NotNowError(NO_HISTORY)
        if (
            past is None
            and sum(v.read_only == viewer.read_only for v in self._pasts) >= MAX_LOOKING
        ):
            raise NotNowError(
                f"{MAX_LOOKING} pages already show earlier moments: close one first"
            )

        shown_now = history.span[1] if past is None else past.moment
        time = (
            history.neighbour_of(shown_now, request.by).time
            if request.time is None
            else request.time
        )
        before = 0

        # Create the view only after the checks, because it is a whole simulation.
        if past is None:
            past = self._pasts[viewer] = Past(
                self._hub, time, self._present.numbers, self._port_of
            )
        else:
            before = past.source.schema()[0]
            past.go(time)

        past.read(viewer.view.selected)
        number, schema = past.source.schema()
        # A page can decode a frame only with its schema, so send a new schema first.
        if number != before:
            viewer.send_encoded(schema)
        missing, gone = past.difference()
        robots = self._hub.sim.robots
        disconnected = sum(
            any(source != self._own for source in robots[name].clients)
            for name in missing
        )
        return pushes.Looked(
            tick=past.moment.tick,
            time=past.moment.time,
            missing=list(missing),
            gone=list(gone),
            disconnected=disconnected,
        )

    def go_on(self, viewer: Viewer, caller: Caller) -> float:
        """Let the world continue from the moment that a viewer sees.

        The viewer then sees the present again.

        Parameters
        ----------
        viewer : Viewer
            Page that asks.
        caller : Caller
            Caller with the permissions of that page.

        Returns
        -------
        float
            Simulated time from which the world continues, s.

        Raises
        ------
        NotNowError
            The page shows the present, or the moment is no longer kept.
        DeniedError
            The caller may not change the world.
        """
        past, control = self._pasts.get(viewer), self._control
        if past is None:
            # To a caller without permission, report the missing permission instead.
            control.check(caller, Branch)
            raise NotNowError(
                "this page shows the present: go to an earlier moment first"
            )

        # The moment may have been dropped since it was shown; the world must not
        # continue from another moment.
        if self._hub.sim.history.moment(past.moment.time) != past.moment:
            raise NotNowError("the shown moment is no longer kept: choose another one")

        moment = control.do(caller, Branch(time=past.moment.time))
        self._show_present(viewer)
        return moment.time

    def loop(self, on: bool, caller: Caller) -> None:
        """Raise NotNowError: a running simulation has no end from which it could repeat."""
        raise NotNowError("only a recording can repeat at its end")

    def chart(self) -> msgspec.Raw | None:
        """Return None: only recordings have a chart."""
        return None

    def _show_present(self, viewer: Viewer) -> None:
        """Show the present to a viewer again."""
        past = self._pasts.pop(viewer, None)
        if past is not None:
            self._present.replace(past.source)
            _, schema = self._present.schema()
            viewer.send_encoded(schema)
            self._present.changed()


__all__ = ["MAX_LOOKING", "LookBack", "TimeLine"]
