"""AMBF's topics for clients without ROS, over TCP: a transport like those of ROS (format: `botyard.protocols.ambf.link`)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from botyard.control.fence import Fence
from botyard.errors import PeerError, PortError
from botyard.interfaces.ambf.channel import log
from botyard.interfaces.ros.graph import EncodedMessage
from botyard.protocols.ambf.link import Frame, FrameReader, Kind, LinkTopic, frame, topics_frame
from botyard.protocols.ros_messages.robot import Input, Topic
from botyard.protocols.ros_messages.types import Types
from botyard.servers.gate import source_of
from botyard.servers.seldom import Seldom

MAX_CLIENTS: Final = 64
"""Clients …"""
MAX_EACH: Final = 32
"""… and those of one address; more are refused."""
TURN: Final = 0.005
"""Frames of a client are worked off for so long, s, before the loop turns to others."""
MOST_WAITING: Final = 1 << 20
"""A client that has not read so many bytes is sent no further states until it has."""


class _Publication:
    def __init__(self, link: Link, number: int, topic: Topic, changed: Callable[[], None]) -> None:
        self._link, self.number, self.topic, self.changed = link, number, topic, changed
        self.readers: list[_Client] = []

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


class _Client(asyncio.Protocol):
    def __init__(self, link: Link) -> None:
        self._link = link
        self._reader = FrameReader()
        self._fence = Fence(log, "a client of AMBF's link", self.close)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._frames: Iterator[Frame] | None = None
        self._held: Frame | None = None
        self.name = ""
        self.source = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.name, self.source = str(peer), source_of(str(peer[0]) if peer else "")
        if not self._link.has_room(self.source):
            self._link.seldom.log(logging.WARNING, "%s is refused: there are too many clients", self.name)
            self.close()
            return
        self._link.clients.append(self)
        transport.write(self._link.topics())

    def connection_lost(self, exc: Exception | None) -> None:
        self._frames = self._held = None
        Fence(log, "a client of AMBF's link").run(self._link.left, self)

    def data_received(self, data: bytes) -> None:
        self._fence.run(self._received, data)

    def _received(self, data: bytes) -> None:
        self._frames = self._reader.receive(data)  # nothing comes while frames are held: reading is paused
        self._work()

    def _work(self) -> None:
        """Work frames off for a while; the rest when others have had their turn."""
        frames, self._held, held = self._frames, None, self._held
        if frames is None or self._transport is None or self._transport.is_closing():
            return
        begin = self._loop.time()
        try:
            found = held or next(frames, None)
            while found is not None:
                self._link.received(self, found)
                found = next(frames, None)
                if found is not None and self._loop.time() - begin > TURN:
                    self._held = found
                    self._transport.pause_reading()
                    self._loop.call_soon(self._go_on)
                    return
        except PeerError as error:
            self._link.seldom.log(logging.WARNING, "%s: %s; the connection is closed", self.name, error)
            self.close()

    def _go_on(self) -> None:
        self._fence.run(self._work)
        if self._held is None and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send it, unless the client does not read."""
        t = self._transport
        if t is not None and not t.is_closing() and t.get_write_buffer_size() < MOST_WAITING:
            t.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Link:
    """Listens for clients.

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
        self._told = False
        self._topics = b""
        self.seldom = Seldom(log)
        self.clients: list[_Client] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises
        ------
        PortError
            The port is taken.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Client(self), host, port)
        except OSError as error:
            raise PortError(f"AMBF without ROS: cannot listen on port {port} of {host}: {error.strerror}") from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no longer; clients are disconnected."""
        if self._server is not None:
            self._server.close()
        for client in tuple(self.clients):
            client.close()

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

    def has_room(self, source: str) -> bool:
        """Whether a client of an address may come."""
        return len(self.clients) < MAX_CLIENTS and sum(c.source == source for c in self.clients) < MAX_EACH

    def _tell(self) -> None:
        """Tell clients what there is, once for all changes of this moment."""
        self._topics = b""
        if self.clients and not self._told:
            self._told = True
            asyncio.get_running_loop().call_soon(self._tell_now)

    def _tell_now(self) -> None:
        self._told = False
        data = self.topics()
        for client in self.clients:
            client.send(data)

    def received(self, client: _Client, found: Frame) -> None:
        """A frame has come.

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
                    self.seldom.log(logging.WARNING, "%s: %s: %s: ignored", client.name, ear.input.name, error)
                    return
            ear.input.take(ear.last[1])
        elif found.kind in (Kind.READ, Kind.LEAVE):
            publication = self._publications.get(found.number)
            if publication is None:
                return
            if found.kind is Kind.READ and client not in publication.readers:
                publication.readers.append(client)
            elif found.kind is Kind.LEAVE:
                with contextlib.suppress(ValueError):
                    publication.readers.remove(client)
            publication.changed()
        else:
            raise PeerError("link: only the simulator sends topics")

    def left(self, client: _Client) -> None:
        """A client has gone."""
        with contextlib.suppress(ValueError):
            self.clients.remove(client)
        for publication in tuple(self._publications.values()):
            if client in publication.readers:
                publication.readers.remove(client)
                publication.changed()


__all__ = ["Link"]
