"""Timeline of a recording on the page.

All pages and all other interfaces show the same moment, so a change of the moment affects all of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import msgspec

from botyard.control import Caller, Control, Resume
from botyard.control.parts import RunLoop
from botyard.errors import NotNowError
from botyard.interfaces.page.viewsource import ViewSource
from botyard.model.scene import Scene
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer
from botyard.recording.player import Player
from botyard.sim.simulation import Simulation
from botyard.traffic.recordedchart import RecordedChart, recorded_chart

MAX_NAME: Final = 200
"""Longest name of a recording in messages to pages, characters."""
MAX_BARS: Final = 100_000
"""Largest number of bars (intervals of time), and of robots' requests, in a chart for a page.

Of more, the longest bars and the first requests are kept.
"""
DIGITS: Final = 6
"""Number of digits after the decimal point of times in a chart: µs."""


class RecordingLine:
    """Timeline of a recording; a `botyard.interfaces.page.timeline.TimeLine`.

    Parameters
    ----------
    player : Player
        Plays the recording.
    hub : RunLoop
        Run loop of the simulation that shows it.
    control : Control
        Checks permissions: a caller needs the permission for `Resume` to move in time.
    name : str
        Name of the recording, for users.
    """

    def __init__(
        self, player: Player, hub: RunLoop, control: Control, name: str
    ) -> None:
        self._player, self._hub, self._control = player, hub, control
        self._name = shown(name, MAX_NAME)
        found = recorded_chart(player.track)
        self._chart = None if found is None else _encoded(found)
        self.marks: Sequence[pushes.Mark] = tuple(
            pushes.Mark(time=mark.time, kind=mark.kind, text=mark.text)
            for mark in player.track.marks
        )

    def state(self) -> pushes.TimeLine | None:
        """Return the timeline's part of the status; see `TimeLine.state`."""
        player = self._player
        return pushes.TimeLine(
            first=player.begin,
            last=player.end,
            replay=self._name,
            loop=player.loop,
            chart=self._chart is not None,
        )

    def source_of(self, viewer: Viewer) -> ViewSource | None:
        """Return None: all viewers see the same recording."""
        return None

    def sim_of(self, viewer: Viewer) -> Simulation | None:
        """Return None: all viewers see the shared simulation, which shows the recording."""
        return None

    def scenes(self) -> Iterable[tuple[ViewSource, Scene]]:
        """Return no sources: all viewers see the same recording."""
        return ()

    def noticed(self) -> None:
        """Do nothing: the recording already contains all its events."""

    def view_changed(self, viewer: Viewer) -> None:
        """Do nothing: all viewers see the same recording."""

    def left(self, viewer: Viewer) -> None:
        """Do nothing: the recording stays at its moment when a viewer disconnects."""

    def look(
        self, request: msg.Look, viewer: Viewer, caller: Caller
    ) -> pushes.Looked | None:
        """Go to a moment, or some steps forward or back.

        A paused recording stays paused there. All viewers are shown the new moment.

        Parameters
        ----------
        request : Look
            Time, s, or a number of steps, which pauses the recording; the time has
            priority.
        viewer : Viewer
            Page that asks.
        caller : Caller
            Caller with the permissions of that page.

        Returns
        -------
        None
            The present of a recording is the moment that is shown.

        Raises
        ------
        DeniedError
            The caller may not resume time.
        """
        self._control.check(caller, Resume)
        player = self._player
        # An absolute time has priority over a number of steps.
        if request.time is not None:
            player.seek(request.time)
        elif request.by:
            # Steps serve to view single moments, so playing stops.
            self._hub.pause()
            player.go(player.sim.tick + request.by)

        self._hub.settle()
        return None

    def go_on(self, viewer: Viewer, caller: Caller) -> float:
        """Raise NotNowError: the world of a recording cannot continue from an earlier moment."""
        raise NotNowError(
            "this is a recording: the world cannot continue from the shown moment"
        )

    def loop(self, on: bool, caller: Caller) -> None:
        """Turn repeating at the end of the recording on or off.

        Parameters
        ----------
        on : bool
            Whether the recording starts again after its end.
        caller : Caller
            Caller with the permissions of the page.

        Raises
        ------
        DeniedError
            The caller may not resume time.
        """
        self._control.check(caller, Resume)
        self._player.loop = on

    def chart(self) -> msgspec.Raw | None:
        """Return what robots did over time; see `TimeLine.chart`."""
        return self._chart


def _encoded(found: RecordedChart) -> msgspec.Raw:
    """Return a chart as JSON text for pages."""
    chart = found.chart
    lengths = sorted(
        (
            bar[-1] - bar[-2]
            for bar in chain(chart.goes, chart.waits, chart.sectors, chart.grants)
        ),
        reverse=True,
    )

    # Keep only bars that are longer than the bar at position `MAX_BARS` of the sorted
    # lengths. Bars of equal length could otherwise exceed the limit.
    least = lengths[MAX_BARS] if len(lengths) > MAX_BARS else -1.0
    goes, waits = (
        [(i, round(a, DIGITS), round(b, DIGITS)) for i, a, b in bars if b - a > least]
        for bars in (chart.goes, chart.waits)
    )
    sectors, grants = (
        [
            (i, sector, round(a, DIGITS), round(b, DIGITS))
            for i, sector, a, b in bars
            if b - a > least
        ]
        for bars in (chart.sectors, chart.grants)
    )
    asks = [(i, round(t, DIGITS)) for i, t in chart.asks[:MAX_BARS]]
    holders = [
        (i, round(t, DIGITS), list(others)) for i, t, others in chart.holders[:MAX_BARS]
    ]
    left_out = len(lengths) - len(goes) - len(waits) - len(sectors) - len(grants)
    result = pushes.ChartResult(
        title=chart.title,
        end=chart.end,
        robots=list(found.names),
        goes=goes,
        waits=waits,
        sectors=sectors,
        grants=grants,
        asks=asks,
        holders=holders,
        left_out=left_out,
    )
    return msgspec.Raw(pushes.encoder.encode(result))


__all__ = ["RecordingLine"]
