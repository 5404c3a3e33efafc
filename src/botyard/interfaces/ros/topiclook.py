"""Topics of the ROS graph for operators (users of the page), with last messages as text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from botyard.control.census import TopicFacts
from botyard.errors import UnknownNameError
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic

LOOK_S: Final = 5.0
"""Wall time after an operator's last request for a topic until it is unsubscribed, s."""
MAX_LOOKS: Final = 16
"""Largest number of topics that operators look at; a further topic replaces the oldest."""
MAX_ITEMS: Final = 24
"""Largest number of items of a list that are shown."""
MAX_TEXT: Final = 2000
"""Longest string field of a message that is shown, characters; longer ones are cut."""
MAX_SHOWN: Final = 20_000
"""Longest text of a whole message, characters; longer texts are cut."""


class _Look:
    """Publication of a topic to operators; see `botyard.interfaces.ros.transport`."""

    replays_latched = True

    def __init__(
        self,
        owner: GraphTopics,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> None:
        self._owner, self.topic = owner, topic
        self._fresh, self.changed = fresh, changed
        self.until = 0.0
        """Wall time at which the subscription ends, s; 0 without a subscription."""
        self.text: str | None = None
        owner.looks[topic.name] = self

    @property
    def is_wanted(self) -> bool:
        """Whether an operator looks at the topic."""
        return self.until > 0.0

    @property
    def reader_count(self) -> int:
        """0, because operators are not counted as readers."""
        return 0

    def send(self, message: EncodedMessage) -> None:
        """Keep the text of a message."""
        self.text = text_of(message)

    def start(self, until: float) -> None:
        """Subscribe to the topic until a wall time, s."""
        was_wanted, self.until = self.is_wanted, until
        if not was_wanted:
            self.changed()
            last = self._fresh() if self.topic.latched else None
            if last is not None:
                self.send(last)

    def end(self) -> None:
        """Unsubscribe from the topic, and forget the last message."""
        if self.is_wanted:
            self.until, self.text = 0.0, None
            self.changed()

    def close(self) -> None:
        """Unadvertise the topic."""
        if self._owner.looks.get(self.topic.name) is self:
            del self._owner.looks[self.topic.name]


class _Nothing:
    """Subscription or service of a transport without clients."""

    def close(self) -> None:
        """Do nothing."""


class GraphTopics:
    """Topics of a graph; see `botyard.control.census.Topics`.

    It is a transport of the graph while an operator looks at a topic.

    Parameters
    ----------
    graph : RosGraph
        The graph.
    clock : callable
        Returns the wall time, s.
    """

    wire = "cdr"
    mixes_types = True

    def __init__(
        self, graph: RosGraph, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._graph = graph
        self._clock = clock
        self._is_joined = False
        self.looks: dict[str, _Look] = {}

    def topics(self) -> Iterator[TopicFacts]:
        """Yield all topics."""
        return self._graph.topics()

    def look(self, name: str) -> str | None:
        """Return the last message of a topic; see `botyard.control.census.Topics`.

        Raises
        ------
        UnknownNameError
            The simulator publishes no topic of this name.
        """
        now = self._clock()
        if not self._is_joined:
            self._is_joined = True
            self._graph.add(self)
        look = self.looks.get(name)
        if look is None:
            self._leave_unused()
            raise UnknownNameError(f'the simulator publishes no topic "{shown(name)}"')
        look.start(now + LOOK_S)
        active = sorted(
            (one for one in self.looks.values() if one.is_wanted),
            key=lambda one: one.until,
        )
        for one in active[:-MAX_LOOKS]:
            one.end()
        return look.text

    def end_looks(self, *, every: bool = False) -> None:
        """Unsubscribe; see `botyard.control.census.Topics`."""
        now = self._clock()
        for one in self.looks.values():
            if one.is_wanted and (every or one.until < now):
                one.end()
        self._leave_unused()

    def _leave_unused(self) -> None:
        """Leave the graph when no topic is looked at."""
        if self._is_joined and not any(one.is_wanted for one in self.looks.values()):
            self._is_joined = False
            self._graph.remove(self)

    # -- a transport without clients

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> _Look:
        """Offer a topic to operators."""
        return _Look(self, topic, fresh, changed)

    def listen(self, node: str, entry: Input) -> _Nothing:
        """Do nothing: operators publish no topics."""
        return _Nothing()

    def serve(self, node: str, service: Service) -> _Nothing:
        """Do nothing: operators call no services."""
        return _Nothing()


def text_of(message: EncodedMessage) -> str:
    """Return a message as text of at most `MAX_SHOWN` characters, with long lists cut."""
    text = json.dumps(
        _short(message.message), indent=1, ensure_ascii=False, default=str
    )
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " …"


def _short(value: Any) -> Any:
    """Return a part of a message as JSON data; of long lists only the first items."""
    if is_dataclass(value):
        # Fields that start with two underscores hold the name of the type, and are left
        # out.
        names = [f.name for f in fields(value) if not f.name.startswith("__")]
        return {name: _short(getattr(value, name)) for name in names}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        items = [_short(item) for item in value[:MAX_ITEMS]]
        left = len(value) - MAX_ITEMS
        return items if left <= 0 else [*items, f"… {left} more"]
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]} …"
    return value


__all__ = ["GraphTopics"]
