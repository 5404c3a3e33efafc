"""Client for the AMBF interface of a simulator, over TCP (`Client`).

The client has a handle for each object of the simulator.
"""

from __future__ import annotations

import os.path
import socket
import threading
import time
from typing import Any, Final

from botyard.clients.ambf.handles import Handle
from botyard.clients.ambf.objects import KINDS, World
from botyard.errors import PeerError
from botyard.protocols.ambf.link import (
    PORT,
    Frame,
    FrameReader,
    Kind,
    LinkTopic,
    frame,
    parse_topics,
)
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.ros_messages.types import Types

RATES: Final = {"master": 1000.0, "1.0": 1000.0, "2.0": 120.0}
"""Usual rate at which a client repeats commands, Hz, by generation of the messages (§8)."""


class Client:
    """Connection of a client to the AMBF interface of a simulator.

    Parameters
    ----------
    client_name : str
        Name of the client, for the names of its threads.
    host : str
        Name or address of the simulator's host.
    port : int
        TCP port of the simulator (its option ``--ambf-port``).
    timeout : float
        Timeout of the connection, s.

    Attributes
    ----------
    generation : str
        Generation of the messages (``master``, ``1.0`` or ``2.0``); empty before
        `connect`.
    """

    def __init__(
        self,
        client_name: str = "client",
        host: str = "127.0.0.1",
        port: int = PORT,
        timeout: float = 5.0,
    ) -> None:
        self.client_name = client_name
        self.generation = ""
        self._address, self._timeout = (host, port), timeout
        self._socket: socket.socket | None = None
        self._reader = FrameReader()
        self._lock = threading.Lock()
        self._topics: list[LinkTopic] = []
        self._known = threading.Event()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._handles: dict[str, Handle] = {}
        self._by_number: dict[int, Handle] = {}
        self._world: World | None = None
        self._common = ""
        self._types: Types | None = None

    # -- connection

    def connect(self, default_publish_rate: float | None = None) -> None:
        """Connect, and make a handle of each object in the simulator.

        Parameters
        ----------
        default_publish_rate : float, optional
            Rate of commands, Hz. By default it is the rate of AMBF's own client of the
            same generation (`RATES`).

        Raises
        ------
        PeerError
            No program listens at the address, or it does not speak this protocol.
        """
        try:
            self._socket = socket.create_connection(self._address, self._timeout)
        # UnicodeError: no valid host name; OverflowError: no valid port.
        except (OSError, UnicodeError, OverflowError) as error:
            raise PeerError(
                f"no simulator at {self._address[0]}:{self._address[1]}: {error}; start "
                "one with: botyard run --ambf 2.0"
            ) from None

        # Commands are short, and Nagle's algorithm would delay them.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The receiver checks the stop event every 0.2 s.
        self._socket.settimeout(0.2)
        # A client may connect again after `clean_up`.
        self._stop.clear()
        self._begin(self._receive)
        # A server of another protocol also accepts the connection, but announces no
        # topics.
        if not self._known.wait(self._timeout):
            self.clean_up()
            raise PeerError(
                f"{self._address[0]}:{self._address[1]}: expected an announcement of "
                f"topics within {self._timeout:g} s, found none"
            )

        self.refresh()
        rate = default_publish_rate or RATES[self.generation]
        self._begin(lambda: self._publish(rate))

    def _begin(self, work: Any) -> None:
        thread = threading.Thread(
            # Daemon threads, so that a program that forgets `clean_up` can end.
            target=work,
            daemon=True,
            name=f"ambf {self.client_name}",
        )
        self._threads.append(thread)
        thread.start()

    def is_connected(self) -> bool:
        """Whether the connection is open."""
        return self._socket is not None and not self._stop.is_set()

    def clean_up(self) -> None:
        """Close the connection, and stop the threads."""
        self._stop.set()
        for thread in self._threads:
            # A handle can call this in a thread of the client, which cannot join
            # itself.
            if thread is not threading.current_thread():
                # The receiver notices the event within 0.2 s; the timeout is for a
                # thread that hangs in a system call.
                thread.join(2.0)

        self._threads.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Client:
        if self._socket is None:
            self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.clean_up()

    def _receive(self) -> None:
        sock = self._socket
        while not self._stop.is_set() and sock is not None:
            try:
                data = sock.recv(1 << 16)
            # The timeout only lets the loop check the stop event.
            except TimeoutError:
                continue
            except OSError:
                break

            if not data:
                break
            try:
                for found in self._reader.feed_bytes(data):
                    self._received(found)
            except PeerError:
                break

        self._stop.set()

    def _received(self, found: Frame) -> None:
        if found.kind is Kind.TOPICS:
            generation, topics = parse_topics(found.data)
            if self._types is None:
                # The first announcement decides the generation for the whole
                # connection.
                self.generation = generation
                self._types = Types(more=definitions(generation))

            self._topics = topics
            # Set this event after the topics, because `connect` then reads the topics
            # at once.
            self._known.set()
        elif found.kind is Kind.MESSAGE:
            handle = self._by_number.get(found.number)
            # A message can arrive after its object was removed from the list.
            if handle is not None and self._types is not None:
                handle.on_state(
                    self._types.decode_ros1(found.data, handle.topic.type_name)
                )

    def _publish(self, rate: float) -> None:
        """Send the last command of every active object periodically, until the connection ends.

        Parameters
        ----------
        rate : float
            Rate, Hz.
        """
        due = time.monotonic()
        while not self._stop.is_set():
            now = time.monotonic()
            try:
                self._repeat_all(now)
            # The connection is lost; the next call of the user raises the error.
            except PeerError:
                return

            # A late thread skips missed periods instead of sending a burst.
            due = max(due + 1.0 / rate, now)
            time.sleep(max(0.0, due - time.monotonic()))

    def _repeat_all(self, now: float) -> None:
        # Loop over a copy, because the user's thread may refresh the handles meanwhile.
        for handle in tuple(self._handles.values()):
            if handle.is_active():
                # Repeat before `expire`, so that each command is sent at least once,
                # however late this thread runs.
                handle.repeat()
                # While the client steps the world, `update` checks the watchdog
                # instead, so that commands end at the same step in each run.
                if self.stepped_time is None:
                    handle.expire(now)

    @property
    def stepped_time(self) -> float | None:
        """Simulated time, s, while this client steps the world.

        It is None while the simulator advances time itself.
        """
        world = self._world
        return (
            world.get_sim_time() if world is not None and world.is_throttled else None
        )

    def expire(self) -> None:
        """End commands whose watchdog has expired, before a step of the world.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        now = time.monotonic()
        for handle in tuple(self._handles.values()):
            if handle.expire(now) and handle.is_active():
                handle.repeat()

    def send(self, topic: LinkTopic, *messages: Any) -> None:
        """Send messages on a topic of commands, all at once.

        Parameters
        ----------
        topic : LinkTopic
            Topic of commands.
        *messages : object
            Messages of the topic's type, first one first.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        types = self._types
        assert types is not None
        self._write(
            b"".join(
                frame(
                    Kind.MESSAGE,
                    topic.number,
                    types.encode_ros1(message, topic.type_name),
                )
                for message in messages
            )
        )

    def send_empty(self, name: str) -> None:
        """Send a message without fields.

        Parameters
        ----------
        name : str
            Name of a topic of commands without fields.

        Raises
        ------
        PeerError
            The topic does not exist, or the connection is lost.
        """
        topic = next(
            (t for t in self._topics if t.name == name and not t.is_state), None
        )
        if topic is None:
            raise PeerError(
                f"expected the topic {name}, found none: only the newest generation "
                "of messages has resets"
            )

        self._write(frame(Kind.MESSAGE, topic.number))

    def _write(self, data: bytes) -> None:
        sock = self._socket
        if sock is None or self._stop.is_set():
            raise PeerError("the connection to the simulator is closed")
        # The user's thread and the client's periodic thread both send.
        with self._lock:
            try:
                sock.sendall(data)
            except OSError as error:
                self._stop.set()
                raise PeerError(
                    f"the connection to the simulator broke: {error}"
                ) from None

    def blank(self, type_name: str) -> Any:
        """Return a message of a type with all fields zero or empty.

        Parameters
        ----------
        type_name : str
            Name of the type, such as ``ambf_msgs/RigidBodyCmd``.

        Returns
        -------
        object
            Message with all fields zero or empty.
        """
        assert self._types is not None
        return self._types.blank(type_name)

    # -- objects

    def refresh(self) -> None:
        """Update the list of objects; existing handles remain valid.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        topics = list(self._topics)
        commands = {t.name: t for t in topics if not t.is_state}
        states = [t for t in topics if t.is_state]
        objects = [t for t in states if not t.type_name.endswith("/WorldState")]
        names = [t.name.removesuffix("/State") for t in objects]

        # commonprefix compares character by character, as AMBF's own client does.
        self._common = os.path.commonprefix(names) if names else ""  # noqa: RUF071

        # Handles that a user holds must stay valid after a refresh.
        old, self._handles = {h.ros_name: h for h in self._handles.values()}, {}
        self._by_number = {}

        for topic in states:
            kind = topic.type_name.partition("/")[2].removesuffix("State")
            path = topic.name.removesuffix("/State")
            name = (
                path.removeprefix(self._common) if self.generation == "master" else path
            )
            if kind == "World":
                name = "World"
            handle = old.get(path)
            if handle is None:
                command = commands.get(f"{path}/Command")
                handle = KINDS.get(kind, Handle)(self, name, kind, topic, command)
            else:
                handle.topic = topic
                handle.command_topic = commands.get(f"{path}/Command")

            if isinstance(handle, World):
                self._world = handle
            # AMBF's own client of generation ``master`` does not list the world.
            if kind != "World" or self.generation != "master":
                self._handles[name] = handle
            self._by_number[topic.number] = handle
            # The simulator sends only states that a client has requested.
            self._write(frame(Kind.READ, topic.number))

    def get_obj_names(self) -> list[str]:
        """Return the names of all objects; newer generations include the world."""
        return list(self._handles)

    def get_common_namespace(self) -> str:
        """Return the longest common prefix of the topics of all objects, without ``/State``."""
        return self._common

    def get_world_handle(self) -> World:
        """Return the handle of the world.

        Raises
        ------
        PeerError
            The simulator has announced no world.
        """
        if self._world is None:
            raise PeerError("the simulator has announced no world")
        return self._world

    def get_obj_handle(self, a_name: str) -> Any:
        """Return an object's handle by name; None if no object or several match.

        The last part of the name, or a unique part of it, is enough. From now on the
        object's last command is sent periodically.

        Parameters
        ----------
        a_name : str
            Name, its last part (after the last ``/``), or a part that no other object
            has.

        Returns
        -------
        Handle or None
            Handle of the object's kind. Each call for one object returns the same
            handle.
        """
        handle = self._handles.get(a_name)
        # The exact last part wins over a part of a name, which fits more objects.
        for fits in (lambda n: n.rpartition("/")[2] == a_name, lambda n: a_name in n):
            if handle is None:
                found = [h for n, h in self._handles.items() if fits(n)]
                handle = found[0] if len(found) == 1 else None

        # The world's commands are sent by `update` only.
        if handle is not None and not isinstance(handle, World):
            handle.set_active()
        return handle

    def get_obj_pose(self, name: str) -> list[float]:
        """Return the pose of an object without activating it; see `Handle.get_pose`.

        Parameters
        ----------
        name : str
            Whole name of the object.

        Returns
        -------
        list of float
            x, y, z, m, and three angles, rad, whose order depends on the generation.

        Raises
        ------
        PeerError
            No object has this name.
        """
        if name not in self._handles:
            raise PeerError(f"expected the name of an object, found {name}")
        return self._handles[name].get_pose()


__all__ = ["RATES", "Client"]
