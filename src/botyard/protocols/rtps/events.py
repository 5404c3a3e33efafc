"""Events of a participant, for logs and metrics."""

from __future__ import annotations

from collections import Counter, deque
from enum import Enum
from typing import NamedTuple

from botyard.protocols.rtps.limits import MAX_EVENTS


class EventKind(Enum):
    """Kinds of events of a participant."""

    MET = "participant found"
    LEFT = "participant left"
    LOST = "participant silent"
    MATCHED = "matched"
    UNMATCHED = "unmatched"
    QOS = "incompatible QoS"
    REFUSED = "refused"
    MALFORMED = "malformed packet"


class Event(NamedTuple):
    """Event of a participant.

    Attributes
    ----------
    kind : EventKind
        Kind of event.
    guid : bytes
        GUID of the participant or endpoint.
    text : str
        Description for the log.
    """

    kind: EventKind
    guid: bytes
    text: str


class Events:
    """Latest events of a participant, and counts of all events by kind."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self.counts: Counter[EventKind] = Counter()

    def add(self, kind: EventKind, guid: bytes, text: str) -> None:
        """Add an event.

        Parameters
        ----------
        kind : EventKind
            Kind of event.
        guid : bytes
            GUID of the participant or endpoint, 16 bytes; empty if it is unknown.
        text : str
            Description for the log.
        """
        self.counts[kind] += 1
        # If there are many events, the oldest are dropped, but all are counted.
        self._events.append(Event(kind, guid, text))

    def take(self) -> list[Event]:
        """Return the events since the last call, the oldest first."""
        found = list(self._events)
        self._events.clear()
        return found
