"""The page's time line of a recording: moving it moves what all pages, and all other
interfaces, are shown.
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
from botyard.protocols.webgui.session import Viewer
from botyard.recording.player import Player
from botyard.sim.simulation import Simulation
from botyard.traffic.recordedchart import RecordedChart, recorded_chart

MAX_NAME: Final = 200
"""Longest name of a recording that pages are told, characters."""
MAX_BARS: Final = 100_000
"""Most bars of a chart that a page is sent, and most times at which robots ask: of
more, the longest bars and the first times.
"""
DIGITS: Final = 6
"""Digits of times in a chart behind the point: µs."""


class RecordingLine:
    """The time line of a recording; a `botyard.interfaces.page.timeline.TimeLine`.

    Parameters
    ----------
    player : Player
        Plays it.
    hub : RunLoop
        Steps its simulation.
    control : Control
        Says who may move it: whoever may let time go on.
    name : str
        Of the recording, for people.
    """

    def __init__(
        self, player: Player, hub: RunLoop, control: Control, name: str
    ) -> None:
        self._player, self._hub, self._control = player, hub, control
        self._name = shown(name, MAX_NAME)
        found = recorded_chart(player.track)
        self._chart = None if found is None else _encoded(found)
        self.marks: Sequence[msg.Mark] = tuple(
            msg.Mark(time=mark.time, kind=mark.kind, text=mark.text)
            for mark in player.track.marks
        )

    def state(self) -> msg.TimeLine | None:
        """See `TimeLine.state`."""
        player = self._player
        return msg.TimeLine(
            first=player.begin,
            last=player.end,
            replay=self._name,
            loop=player.loop,
            chart=self._chart is not None,
        )

    def source_of(self, viewer: Viewer) -> ViewSource | None:
        """All are shown the same."""
        return None

    def sim_of(self, viewer: Viewer) -> Simulation | None:
        """All are shown the same."""
        return None

    def scenes(self) -> Iterable[tuple[ViewSource, Scene]]:
        """There is none but the one that all are shown."""
        return ()

    def noticed(self) -> None:
        """All events are known."""

    def view_changed(self, viewer: Viewer) -> None:
        """What a viewer has selected is read in the simulation that all are shown."""

    def left(self, viewer: Viewer) -> None:
        """The recording stays where it is."""

    def look(
        self, request: msg.Look, viewer: Viewer, caller: Caller
    ) -> msg.Looked | None:
        """Go to a moment, or some steps on or back; then the recording stands still
        there if it did before.
        """
        self._control.check(caller, Resume)
        player = self._player
        if request.time is not None:
            player.seek(request.time)
        elif request.by:
            self._hub.pause()
            player.go(player.sim.tick + request.by)

        self._hub.settle()
        return None

    def go_on(self, viewer: Viewer, caller: Caller) -> float:
        """A recording is as it is."""
        raise NotNowError("a recording is shown: nothing can go on from there")

    def loop(self, on: bool, caller: Caller) -> None:
        """Begin again at the end."""
        self._control.check(caller, Resume)
        self._player.loop = on

    def chart(self) -> msgspec.Raw | None:
        """See `TimeLine.chart`."""
        return self._chart


def _encoded(found: RecordedChart) -> msgspec.Raw:
    """A chart as pages get it."""
    chart = found.chart
    lengths = sorted(
        (
            bar[-1] - bar[-2]
            for bar in chain(chart.goes, chart.waits, chart.sectors, chart.grants)
        ),
        reverse=True,
    )
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
    result = msg.ChartResult(
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
    return msgspec.Raw(msg.encoder.encode(result))


__all__ = ["RecordingLine"]
