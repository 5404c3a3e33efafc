"""Cyclone DDS as a transport of bytes: writers and readers of one participant, and matching of readers.

The library's own classes only describe types and policies; the bytes are ours (reference ros.md §4). What happens is waited for in a
thread of its own, because listeners that call Python can lock up with the library's threads, and is told in the simulator's loop.
"""

from __future__ import annotations

import asyncio
import ctypes as ct
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from botyard.control.fence import Fence
from botyard.errors import PeerError, WorldError
from botyard.extras import lacking
from botyard.protocols.dds.environment import MAX_SAMPLE, Environment
from botyard.protocols.dds.naming import ENCLAVE, type_name
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.workclock import worked

_WAIT_NS: Final = 100_000_000
"""Time-out of one wait for events, ns, after which the thread checks whether it must end."""
SHARE: Final = 0.2
"""Token bucket of processing time for received DDS messages: sustained share of time."""
BURST_S: Final = 0.05
"""The same: burst, s."""
TURN_TIME_S: Final = 0.002
"""Longest processing in one iteration of the event loop, s."""
_MAX_EVENTS: Final = 256
"""Most events waited for at a time."""
_ANY_STATE: Final = 0xFFFF
_SIZES: Final = {
    "bool": "bool", "byte": "uint8", "octet": "uint8", "char": "uint8", "int8": "int8", "uint8": "uint8", "int16": "int16",
    "uint16": "uint16", "int32": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64", "float32": "float32",
    "float64": "float64",
}  # fmt: skip

log = logging.getLogger("botyard.ros")


class _Matched(ct.Structure):
    """dds_publication_matched_status."""

    _fields_ = (
        ("total_count", ct.c_uint32),
        ("total_count_change", ct.c_int32),
        ("current_count", ct.c_uint32),
        ("current_count_change", ct.c_int32),
        ("last_subscription_handle", ct.c_uint64),
    )


def _library() -> Any:
    """The part of Cyclone's C interface that its Python classes do not hand on: waiting, and what has happened.

    Raises
    ------
    WorldError
        The extra is not installed, or its binding is not one that this was written for.
    """
    try:
        from cyclonedds.internal import DDS

        library = ct.CDLL(DDS._dll_handle._name)  # our own handle: argument types are set for each
    except ImportError:
        raise WorldError(lacking("ROS 2 over DDS", "ros2")) from None
    entity = ct.c_int32
    library.dds_create_waitset.argtypes = (entity,)
    library.dds_create_waitset.restype = entity
    library.dds_waitset_attach.argtypes = (entity, entity, ct.c_ssize_t)
    library.dds_waitset_detach.argtypes = (entity, entity)
    library.dds_waitset_wait.argtypes = (entity, ct.POINTER(ct.c_ssize_t), ct.c_size_t, ct.c_int64)
    library.dds_get_publication_matched_status.argtypes = (entity, ct.POINTER(_Matched))
    library.dds_delete.argtypes = (entity,)
    return library


def _idl_types() -> Any:
    """Cyclone's words for types, which type checkers do not see as the generics that they are."""
    from cyclonedds.idl import types

    return types


class IdlTypes:
    """Types of messages as Cyclone wants them described.

    Parameters
    ----------
    types : Types
        Where the descriptions are.
    """

    def __init__(self, types: Types) -> None:
        self._types = types
        self._made: dict[tuple[str, bool], Any] = {}

    def __call__(self, name: str, request_header: bool = False) -> Any:
        """A class of a type, made once; with rmw_cyclonedds's header of requests before its fields."""
        from cyclonedds.idl import make_idl_struct

        idl = _idl_types()
        key = (name, request_header)
        if key not in self._made:
            fields: dict[str, Any] = {"rmw_guid": idl.uint64, "rmw_seq": idl.int64} if request_header else {}
            own = self._types.fields(name) or [("structure_needs_at_least_one_member", (1, ("uint8", 0)))]
            fields.update((field, self._field(kind)) for field, kind in own)
            self._made[key] = make_idl_struct(name.replace("/", "_"), type_name(name), fields)
        return self._made[key]

    def _field(self, kind: Any) -> Any:
        """A kind as rosbags describes it: (1 base, 2 message, 3 array, 4 sequence, what)."""
        idl: Any = _idl_types()
        sort, what = int(kind[0]), kind[1]
        if sort == 1:
            base, limit = what
            if base in ("string", "wstring"):
                return idl.bounded_str[limit] if limit else str
            return bool if base == "bool" else getattr(idl, _SIZES[base])
        if sort == 2:
            return self(what)
        item, count = what
        if sort == 3:
            return idl.array[self._field(item), count]
        return idl.sequence[self._field(item), count] if count else idl.sequence[self._field(item)]


class Writer:
    """Sends to a topic; made by `Participant.writer`."""

    def __init__(self, pipe: Participant, entity: Any, changed: Callable[[], None]) -> None:
        from cyclonedds._clayer import ddspy_write

        self._pipe = pipe
        self._entity = entity
        self._write = ddspy_write
        self._changed = changed
        self.ref: int = entity._ref
        self.gid: bytes = entity.guid.bytes
        self.readers = 0
        """How many readers there are."""

    def send(self, data: bytes) -> bool:
        """Send CDR; False when it was dropped, because a reliable reader has not taken what came before. Never blocks."""
        return bool(self._write(self.ref, data + bytes(-len(data) % 4)) >= 0)

    def woken(self) -> bool:
        """Readers have come or gone; there is never more to do."""
        status = _Matched()
        if self._pipe.library.dds_get_publication_matched_status(self.ref, ct.byref(status)) == 0:
            self.readers = int(status.current_count)
            self._changed()
        return False

    def close(self) -> None:
        """Close the entity."""
        self._pipe.drop(self)
        self._entity = None


class Reader:
    """Receives from a topic; made by `Participant.reader`."""

    def __init__(self, pipe: Participant, entity: Any, take: Callable[[bytes], None], limit: int) -> None:
        from cyclonedds._clayer import ddspy_take

        self._pipe = pipe
        self._limit = limit
        self._entity = entity
        self._read = ddspy_take
        self._take = take
        self.ref: int = entity._ref
        self.gid: bytes = entity.guid.bytes

    def woken(self) -> bool:
        """Something has come: one is taken; whether there may be more."""
        if self._entity is None:
            return False
        samples = self._read(self.ref, _ANY_STATE, 1)
        if not isinstance(samples, list) or not samples:  # a code: there is nothing
            return False
        ((data, info),) = samples
        if info.valid_data and len(data) <= self._limit:
            self._take(bytes(data))
        elif info.valid_data:
            self._pipe.throttled_log.log(
                logging.WARNING,
                "ROS 2: a sample of %d bytes is not looked at; at most %d are taken",
                len(data),
                self._limit,
            )
        return True

    def close(self) -> None:
        """Close the entity."""
        self._pipe.drop(self)
        self._entity = None


_End = TypeVar("_End", Writer, Reader)


class Participant:
    """A participant of a domain.

    Parameters
    ----------
    types : Types
        Message types.
    environment : Environment
        Domain and range of discovery. ``CYCLONEDDS_URI`` adds to it, as it does to every program that uses Cyclone.

    Raises
    ------
    WorldError
        The extra is not installed.
    PeerError
        Cyclone cannot use the network so.
    """

    _domains: Final[dict[tuple[int, str], Any]] = {}  # a process can configure a domain once

    def __init__(self, types: Types, environment: Environment) -> None:
        self.library = _library()
        from cyclonedds.core import DDSException, DDSStatus
        from cyclonedds.domain import Domain, DomainParticipant
        from cyclonedds.pub import Publisher
        from cyclonedds.qos import Policy, Qos
        from cyclonedds.sub import Subscriber

        self._status = DDSStatus
        self._error = DDSException
        self._described = IdlTypes(types)
        configuration = environment.configuration()
        try:
            key = (environment.domain, configuration)
            if key not in self._domains:
                self._domains[key] = Domain(environment.domain, configuration)
            self._participant: Any = DomainParticipant(environment.domain, qos=Qos(Policy.Userdata(ENCLAVE)))
            self._publisher: Any = Publisher(self._participant)
            self._subscriber: Any = Subscriber(self._participant)
        except DDSException as error:
            raise PeerError(f"DDS domain {environment.domain} cannot be entered: {error}") from None
        self.gid: bytes = self._participant.guid.bytes
        self._topics: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()  # the ends of a topic keep it
        self._ends: dict[int, Writer | Reader] = {}
        self._waitset = int(self.library.dds_create_waitset(self._participant._ref))
        self._loop = asyncio.get_running_loop()
        self._fence = Fence(log, "receiving")
        self.throttled_log = ThrottledLog(log)
        self._time = TokenBucket(SHARE, BURST_S, self._loop.time())
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="botyard-dds", daemon=True)
        self._thread.start()

    # -- ends

    def _topic(self, name: str, kind: str, request_header: bool) -> Any:
        from cyclonedds.topic import Topic

        topic = self._topics.get((name, kind))
        if topic is None:
            topic = self._topics[name, kind] = Topic(self._participant, name, self._described(kind, request_header))
        return topic

    def _qos(self, reliable: bool, transient: bool, depth: int, user_data: bytes) -> Any:
        from cyclonedds.qos import Policy, Qos

        policies = [
            Policy.Reliability.Reliable(0) if reliable else Policy.Reliability.BestEffort,  # 0: a write never waits
            Policy.Durability.TransientLocal if transient else Policy.Durability.Volatile,
            Policy.History.KeepLast(depth),
            # plain CDR, as ROS 2 has it: XCDR2 would align 64-bit numbers to 4
            Policy.DataRepresentation(use_cdrv0_representation=True, use_xcdrv2_representation=False),
        ]
        return Qos(*policies, *([Policy.Userdata(user_data)] if user_data else []))

    def writer(
        self,
        name: str,
        kind: str,
        user_data: bytes = b"",
        *,
        transient: bool = False,
        depth: int = 10,
        request_header: bool = False,
        changed: Callable[[], None] = lambda: None,
    ) -> Writer:
        """A reliable writer, which readers of both sorts can match.

        Parameters
        ----------
        name : str
            DDS name of the topic.
        kind : str
            ROS 2 name of its type.
        transient : bool
            The last `depth` messages are kept for readers to come.
        changed : callable
            Called when readers have come or gone.

        Raises
        ------
        PeerError
            Cyclone refuses.
        """
        from cyclonedds.pub import DataWriter

        try:
            entity = DataWriter(
                self._publisher,
                self._topic(name, kind, request_header),
                qos=self._qos(True, transient, depth, user_data),
            )
        except self._error as error:
            raise PeerError(f"no writer of {name}: {error}") from None
        entity.set_status_mask(self._status.PublicationMatched)
        return self._attached(Writer(self, entity, changed))

    def reader(
        self,
        name: str,
        kind: str,
        take: Callable[[bytes], None],
        user_data: bytes = b"",
        *,
        reliable: bool = False,
        transient: bool = False,
        depth: int = 10,
        request_header: bool = False,
        limit: int = MAX_SAMPLE,
    ) -> Reader:
        """A reader; one of best effort can match writers of both sorts.

        Parameters
        ----------
        take : callable
            Called with each message's CDR.
        limit : int
            Longer ones are not taken, bytes.

        Raises
        ------
        PeerError
            Cyclone refuses.
        """
        from cyclonedds.sub import DataReader

        try:
            entity = DataReader(
                self._subscriber,
                self._topic(name, kind, request_header),
                qos=self._qos(reliable, transient, depth, user_data),
            )
        except self._error as error:
            raise PeerError(f"no reader of {name}: {error}") from None
        entity.set_status_mask(self._status.DataAvailable)
        return self._attached(Reader(self, entity, take, limit))

    def _attached(self, end: _End) -> _End:
        self._ends[end.ref] = end
        self.library.dds_waitset_attach(self._waitset, end.ref, end.ref)
        return end

    def drop(self, end: Writer | Reader) -> None:
        """Forget an end; it is deleted with its entity."""
        if self._ends.pop(end.ref, None) is not None:
            self.library.dds_waitset_detach(self._waitset, end.ref)

    # -- what happens

    def _wait(self) -> None:
        """The thread: wait until something happens, let the loop look at it, wait again."""
        events = (ct.c_ssize_t * _MAX_EVENTS)()
        seen = threading.Event()
        while not self._closing.is_set():
            count = self.library.dds_waitset_wait(self._waitset, events, _MAX_EVENTS, _WAIT_NS)
            if count < 0:
                return
            if count == 0:
                continue
            seen.clear()
            refs = deque(events[: min(count, _MAX_EVENTS)])
            try:
                self._loop.call_soon_threadsafe(self._woken, refs, seen)
            except RuntimeError:  # the loop has ended
                return
            while not seen.wait(0.1):
                if self._closing.is_set():
                    return

    def _woken(self, refs: deque[int], seen: threading.Event) -> None:
        """Look at what has happened, one thing after the other in turns, for a while; the thread waits until all is looked at.

        Meanwhile Cyclone keeps the last few samples of each topic.
        """
        begin, start = time.thread_time(), worked()
        while refs and time.thread_time() - begin < TURN_TIME_S:
            ref = refs.popleft()
            end = self._ends.get(ref)
            if end is not None and self._fence.call(end.woken, otherwise=True):
                refs.append(ref)
        now = self._loop.time()
        self._time.spend(now, worked() - start)
        wait = self._time.wait(now)
        if not refs and not wait:
            seen.set()
        elif not self._closing.is_set():
            self._loop.call_later(wait, self._woken, refs, seen)

    def close(self) -> None:
        """Leave the domain."""
        self._closing.set()
        self._thread.join(2.0)
        for end in tuple(self._ends.values()):
            end.close()
        self.library.dds_delete(self._waitset)
        self._topics.clear()
        self._publisher = self._subscriber = None
        self._participant = None
