"""AMBF's topics for clients without ROS: a carrier of topics like the transports of ROS (format: `botyard.protocols.ambf.link`).

Clients are sessions that the generic TCP pump carries (`botyard.servers.pump`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from botyard.errors import PeerError
from botyard.interfaces.registry import Door
from botyard.interfaces.ros.graph import EncodedMessage
from botyard.protocols.ambf.link import Frame, FrameReader, Kind, LinkTopic, frame, topics_frame
from botyard.protocols.ros_messages.robot import Input, Topic
from botyard.protocols.ros_messages.types import Types

MAX_WAITING: Final = 1 << 20
"""A client for which so many bytes of states wait is sent no further ones until it has read."""


class _Publication:
    def __init__(self, link: Link, number: int, topic: Topic, changed: Callable[[], None]) -> None:
        self._link, self.number, self.topic, self.changed = link, number, topic, changed
        self.readers: list[LinkSession] = []

    @property
    def is_wanted(self) -> bool:
        return bool(self.readers)

    @property
    def replays_latched(self) -> bool:
        return True

    def send(self, message: EncodedMessage) -> None:
        data = frame(Kind.MESSAGE, self.number, message.ros1)
        for client in self.readers:
            client.send(data)

    def close(self) -> None:
        self._link.forget(self.number)


class _Ear:
    def __init__(self, link: Link, number: int, heard: Input) -> None:
        self._link, self.number, self.input = link, number, heard
        self.last: tuple[bytes, Any] = (b"", None)
        """The last message and its bytes: clients say the same again and again."""

    def close(self) -> None:
        self._link.forget(self.number)


class LinkSession:
    """One client.

    Parameters
    ----------
    link : Link
        The topics.
    door : Door
        How it is woken, and where it complains.
    """

    def __init__(self, link: Link, door: Door) -> None:
        self._link = link
        self._door = door
        self._reader = FrameReader()
        self._out: list[bytes] = []
        self._waiting = 0
        self._knows_topics = False
        self.is_closed = False
        link.clients.append(self)

    def receive_data(self, data: bytes, now: float) -> None:
        """Frames, in pieces of any size; after what makes no sense it is over."""
        if self.is_closed:
            return
        try:
            for found in self._reader.receive(data):
                self._link.received(self, found)
                if self not in self._link.clients:  # it was closed meanwhile
                    return
        except PeerError as error:
            self.complain(f"{error}; the connection is closed")
            self.close()

    def data_to_send(self) -> bytes:
        """The topics, if they are others than before, and states."""
        if not self._knows_topics and not self.is_closed:
            self._knows_topics = True
            self._out.insert(0, self._link.topics())
        out, self._out, self._waiting = self._out, [], 0
        return out[0] if len(out) == 1 else b"".join(out)

    def next_timer(self) -> float | None:
        """Never."""
        return None

    def handle_timer(self, now: float) -> None:
        """Nothing to be done."""

    def on_snapshot(self, now: float) -> None:
        """Nothing to be done: states come at rates of their own."""

    def close(self) -> None:
        """It has gone."""
        if not self.is_closed:
            self.is_closed, self._out = True, []
            self._link.left(self)

    # -- the link's side

    def send(self, data: bytes) -> None:
        """A state, unless the client does not read."""
        if self._waiting < MAX_WAITING:
            if not self._out:
                self._door.wake()
            self._out.append(data)
            self._waiting += len(data)

    def topics_changed(self) -> None:
        """Others are there, or some have gone."""
        if self._knows_topics:
            self._knows_topics = False
            self._door.wake()

    def complain(self, text: str) -> None:
        """What is wrong with what it sends."""
        self._door.warn(f"{self._door.caller}: {text}")


class Link:
    """The topics, and the clients that read and write them.

    Parameters
    ----------
    types : Types
        Message types.
    generation : str
        Of the messages.
    """

    wire = "ros1"

    def __init__(self, types: Types, generation: str) -> None:
        self._types = types
        self._generation = generation
        self._numbers = itertools.count(1)
        self._publications: dict[int, _Publication] = {}
        self._ears: dict[int, _Ear] = {}
        self._topics = b""
        self.clients: list[LinkSession] = []

    def session(self, door: Door) -> LinkSession:
        """A new client's."""
        return LinkSession(self, door)

    # -- as a transport

    def advertise(
        self, node: str, topic: Topic, fresh: Callable[[], EncodedMessage | None], changed: Callable[[], None]
    ) -> _Publication:
        """Publish a topic."""
        publication = _Publication(self, next(self._numbers), topic, changed)
        self._publications[publication.number] = publication
        self._tell()
        return publication

    def listen(self, node: str, entry: Input) -> _Ear:
        """Listen to a topic."""
        ear = _Ear(self, next(self._numbers), entry)
        self._ears[ear.number] = ear
        self._tell()
        return ear

    def forget(self, number: int) -> None:
        """A topic is there no longer."""
        self._publications.pop(number, None)
        self._ears.pop(number, None)
        self._tell()

    # -- clients

    def topics(self) -> bytes:
        """What there is; the same for all who come."""
        if self._topics:
            return self._topics
        found = [LinkTopic(n, p.topic.name, p.topic.type_name, True) for n, p in self._publications.items()]
        found += [LinkTopic(n, e.input.name, e.input.type_name, False) for n, e in self._ears.items()]
        self._topics = topics_frame(self._generation, found)
        return self._topics

    def _tell(self) -> None:
        """Clients are to be told what there is, once for all changes of this moment."""
        self._topics = b""
        for client in tuple(self.clients):
            client.topics_changed()

    def received(self, client: LinkSession, found: Frame) -> None:
        """A frame has come of a client.

        Raises
        ------
        PeerError
            It makes no sense.
        """
        if found.kind is Kind.MESSAGE:
            ear = self._ears.get(found.number)
            if ear is None:
                return  # it has gone meanwhile
            if found.data != ear.last[0] or not found.data:
                try:
                    ear.last = found.data, self._types.decode_ros1(found.data, ear.input.type_name)
                except PeerError as error:
                    client.complain(f"{ear.input.name}: {error}: ignored")
                    return
            ear.input.take(ear.last[1])
        elif found.kind in (Kind.READ, Kind.LEAVE):
            publication = self._publications.get(found.number)
            if publication is None:
                return
            if found.kind is Kind.READ and client not in publication.readers:
                publication.readers.append(client)
            elif found.kind is Kind.LEAVE and client in publication.readers:
                publication.readers.remove(client)
            publication.changed()
        else:
            raise PeerError("link: only the simulator sends topics")

    def left(self, client: LinkSession) -> None:
        """A client has gone."""
        if client in self.clients:
            self.clients.remove(client)
        for publication in tuple(self._publications.values()):
            if client in publication.readers:
                publication.readers.remove(client)
                publication.changed()


__all__ = ["Link", "LinkSession"]
