"""The page's time line of a recording: moving it moves what all pages, and all other interfaces, are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

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

MAX_NAME: Final = 200
"""Longest name of a recording that pages are told, characters."""


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

    def __init__(self, player: Player, hub: RunLoop, control: Control, name: str) -> None:
        self._player, self._hub, self._control = player, hub, control
        self._name = shown(name, MAX_NAME)
        self.marks: Sequence[msg.Mark] = tuple(
            msg.Mark(time=mark.time, kind=mark.kind, text=mark.text) for mark in player.track.marks
        )

    def state(self) -> msg.TimeLine | None:
        """See `TimeLine.state`."""
        player = self._player
        return msg.TimeLine(first=player.begin, last=player.end, replay=self._name, loop=player.loop)

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

    def look(self, request: msg.Look, viewer: Viewer, caller: Caller) -> msg.Looked | None:
        """Go to a moment, or some steps on or back; then the recording stands still there if it did before."""
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


__all__ = ["RecordingLine"]
