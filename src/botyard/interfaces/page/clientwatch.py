"""Values for the page's panel of connections (`ClientWatch`).

The panel lists clients, ROS topics and the sources of each robot's commands.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

from botyard.control import Control, Done
from botyard.control.census import Census, ClientFacts, TopicFacts
from botyard.control.parts import RunLoop
from botyard.interfaces.page.commandlog import CommandLog
from botyard.names import shown
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer

PERIOD: Final = 0.9
"""Least wall time between two messages, s.

It is a little less than two periods of the status, with which the messages are sent.
"""
MAX_SHOWN: Final = 300
"""Largest number of clients, and of topics, in a message."""
MAX_ROBOTS: Final = 100
"""Largest number of robots whose commands are in a message."""
MAX_KNOWN: Final = 2000
"""Largest number of clients whose last operation is remembered."""

SOURCES: Final = {"Pioneer": "pioneer", "page": "page"}
"""Names in the journal of the sources that command a robot directly, by protocol."""


class ClientWatch:
    """Observer of clients for pages that show the panel.

    Parameters
    ----------
    hub : RunLoop
        The run loop, with its register of clients.
    control : Control
        The control surface. While pages are connected, the last operation of each
        client is remembered.
    commands : CommandLog
        Sources of the commands of all robots.
    """

    def __init__(self, hub: RunLoop, control: Control, commands: CommandLog) -> None:
        self._hub = hub
        self._control = control
        self._commands = commands
        self._stop: Callable[[], None] | None = None
        self._operations: dict[int, tuple[str, float]] = {}
        self._before: dict[str, tuple[float, int | None, int | None]] = {}
        self._counts: dict[tuple[str, bool], tuple[float, int]] = {}
        self._next = -math.inf

    @property
    def _census(self) -> Census:
        return self._hub.census

    def watch(self, on: bool) -> None:
        """Start to remember the last operation of each client, or stop and forget everything."""
        if on and self._stop is None:
            self._stop = self._control.listen(self._heard)
        elif not on and self._stop is not None:
            self._stop()
            self._stop = None
            if self._census.topics is not None:
                self._census.topics.end_looks(every=True)
            self._operations.clear()
            self._before.clear()
            self._counts.clear()

    def _heard(self, done: Done) -> None:
        if done.caller.key is not None:
            key = id(done.caller.key)
            self._operations.pop(key, None)
            self._operations[key] = type(done.operation).__name__, time.monotonic()
            if len(self._operations) > MAX_KNOWN:
                del self._operations[next(iter(self._operations))]

    def tell(self, viewers: Sequence[Viewer], now: float) -> None:
        """Send the values that are due to the pages that show the panel.

        Parameters
        ----------
        viewers : sequence of Viewer
            All pages.
        now : float
            Wall time, s.
        """
        if self._census.topics is not None:
            self._census.topics.end_looks()
        wanted = [v for v in viewers if v.view.clients is not None and not v.is_behind]
        if not wanted or now < self._next:
            return
        self._next = now + PERIOD
        clients = [self._client(one, now) for one in self._census.clients()]
        self._before = {k: v for k, v in self._before.items() if v[0] == now}
        topics = (
            [] if self._census.topics is None else list(self._census.topics.topics())
        )
        rated = [(topic, self._rate(topic, now)) for topic in topics]
        self._counts = {k: v for k, v in self._counts.items() if v[0] == now}
        made: dict[str, bytes] = {}
        for viewer in wanted:
            words = (viewer.view.clients or "").lower()
            key = words + "\n" + "\n".join(viewer.view.selected)
            if key not in made:
                made[key] = pushes.encoder.encode(
                    self._message(words, viewer.view.selected, clients, rated)
                )
            viewer.send_encoded(made[key], again_soon=True)

    def _message(
        self,
        words: str,
        selected: Sequence[str],
        clients: Sequence[pushes.ClientInfo],
        topics: Sequence[tuple[TopicFacts, float | None]],
    ) -> pushes.Clients:
        found = [
            c
            for c in clients
            if words in f"{c.protocol} {c.address} {c.about} {c.robot}".lower()
        ]
        rows = [
            (t, rate)
            for t, rate in topics
            if words in f"{t.name} {t.type_name}".lower()
        ]
        # Topics with readers come first; unread topics are rarely of interest.
        rows.sort(key=lambda row: (not row[0].readers, not row[0].count))
        robots = dict.fromkeys(
            name
            for name in (*selected, *self._commands.robots)
            if words in name.lower() or name in selected
        )
        drives = [
            pushes.Commands(robot=name, runs=runs)
            for name in list(robots)[:MAX_ROBOTS]
            for runs in [self._commands.recent(name)]
            if runs
        ]
        return pushes.Clients(
            clients=found[:MAX_SHOWN],
            topics=[
                pushes.TopicInfo(
                    name=t.name,
                    type=t.type_name,
                    about=t.about,
                    input=t.is_input,
                    rate=rate,
                    readers=t.readers,
                    count=t.count,
                )
                for t, rate in rows[:MAX_SHOWN]
            ],
            commands=drives,
            more_clients=max(0, len(found) - MAX_SHOWN),
            more_topics=max(0, len(rows) - MAX_SHOWN),
        )

    def _client(self, facts: ClientFacts, now: float) -> pushes.ClientInfo:
        key = f"{facts.protocol} {facts.key}"
        before, was_received, was_sent = self._before.get(key, (now, None, None))
        self._before[key] = now, facts.received, facts.sent
        passed = now - before
        command, age = "", None
        operation = self._operations.get(facts.caller)
        if operation is not None:
            command, age = operation[0], max(0.0, time.monotonic() - operation[1])
        elif facts.robot and facts.protocol in SOURCES:
            age = self._commands.last(facts.robot, SOURCES[facts.protocol])
            command = "" if age is None else "drive"
        return pushes.ClientInfo(
            key=key,
            protocol=facts.protocol,
            address=shown(facts.address, 100),
            about=shown(facts.about, 200),
            robot=facts.robot,
            received=_rate(facts.received, was_received, passed),
            sent=_rate(facts.sent, was_sent, passed),
            latency=facts.latency,
            dropped=facts.dropped,
            command=command,
            age=None if age is None else round(age, 1),
        )

    def _rate(self, topic: TopicFacts, now: float) -> float | None:
        key = topic.name, topic.is_input
        before, count = self._counts.get(key, (now, 0))
        self._counts[key] = now, topic.count
        return _rate(topic.count, count if now > before else None, now - before)


def _rate(count: int | None, before: int | None, passed: float) -> float | None:
    """Return the rate of a counter between two readings, 1/s; None if a reading is missing."""
    if count is None or before is None or passed <= 0.0:
        return None
    return round(max(0, count - before) / passed, 2)


__all__ = ["ClientWatch"]
