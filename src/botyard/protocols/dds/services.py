"""Services of ROS 2 over RTPS, for peers of rmw_fastrtps and of rmw_cyclonedds.

rmw_fastrtps identifies the client and the request in inline QoS (related sample
identity). rmw_cyclonedds inserts 16 bytes between the CDR header and the body
(`botyard.protocols.dds.requests`). A response goes only to the reader that sent the
request: a client of one implementation would misread responses for the other. Source:
reference rtps.md §12.

This package holds everything that ROS 2 adds to DDS; `botyard.protocols.rtps` has no
knowledge of ROS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from botyard.errors import PeerError
from botyard.protocols.dds import naming
from botyard.protocols.dds.requests import (
    CDR_HEADER,
    HEADER,
    Request,
    join_response,
    split_request,
)
from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.limits import MAX_SAMPLE_BYTES
from botyard.protocols.rtps.parameters import Identity, related_identity
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.samples import Sample
from botyard.protocols.rtps.wire import UNKNOWN_NUMBER, VENDOR_CYCLONE

# In a short history, many responses to one client would displace the response to
# another.
SERVER_QOS: Final = Qos(depth=1000)
"""Policies of a server's reader and writer: the history holds responses for many clients."""
CLIENT_QOS: Final = Qos(depth=10)
# A peer may send requests without ever announcing a reader for the responses.
MAX_WAITING: Final = 256
"""Limit of the responses that wait until the reader of their client is discovered."""
MAX_WAITING_BYTES: Final = 8 << 20
"""Limit of the bytes of waiting responses; a single response may be longer."""
# Discovery of a client takes some tenths of a second. Fast DDS repeats a lost part of it
# after its period of heartbeats, 3 s, which may be lost as well: with a loss of 15 %, one
# client in a hundred takes more than 10 s.
RESPONSE_TIMEOUT_S: Final = 30.0
"""Time after which a waiting response is dropped, s."""
MAX_CALLS: Final = 1024
"""Limit of a client's unanswered calls."""
_CLIENT_ID: Final = b"clientid="


class Call(NamedTuple):
    """Request of a client.

    Attributes
    ----------
    body : bytes
        CDR with its 4 bytes of encapsulation.
    sample : Sample
        The request as received.
    header : Request or None
        Header of rmw_cyclonedds; None for a client of rmw_fastrtps.
    """

    body: bytes
    sample: Sample
    header: Request | None


def _names_client(endpoint: EndpointData) -> bytes:
    """Return the part of an endpoint's user data that identifies its client; empty without it.

    rmw_cyclonedds pairs a client's endpoints by this part.

    Parameters
    ----------
    endpoint : EndpointData
        Discovered reader or writer.

    Returns
    -------
    bytes
        ``clientid=`` and the identifier, which is equal for both endpoints of a client.
    """
    _, mark, rest = endpoint.user_data.partition(_CLIENT_ID)
    # Other entries of the user data, such as hashes of types, may differ between the
    # endpoints.
    return mark + rest.partition(b";")[0]


def _is_cyclone(endpoint: EndpointData | None) -> bool:
    """Return whether a known endpoint belongs to rmw_cyclonedds."""
    return endpoint is not None and (
        endpoint.vendor == VENDOR_CYCLONE or bool(_names_client(endpoint))
    )


class ServiceServer:
    """Server of a ROS 2 service over DDS.

    Parameters
    ----------
    participant : Participant
        The DDS participant.
    name : str
        Absolute ROS name of the service.
    request, response : str
        ROS 2 names of the types, such as ``std_srvs/srv/Trigger_Request``.
    take : callable
        Called with each `Call`; `answer` answers it, at once or later.
    refuse : callable
        Called with an error text for a request that cannot be answered.
    now : float
        Time of the caller's clock, s.
    identity : bytes
        16 bytes that are unique to the service.
    hashes : tuple of str
        Hashes of the types, or empty texts.
    limit : int
        Longest request, bytes.
    """

    def __init__(
        self,
        participant: Participant,
        name: str,
        request: str,
        response: str,
        take: Callable[[Call], None],
        refuse: Callable[[str], None],
        now: float,
        *,
        identity: bytes,
        hashes: tuple[str, str] = ("", ""),
        limit: int = MAX_SAMPLE_BYTES,
    ) -> None:
        self._participant = participant
        self._take_call = take
        self._refuse = refuse
        self._now = now
        self._waiting: deque[tuple[float, Call, bytes]] = deque(maxlen=MAX_WAITING)

        mark = naming.service_data(identity)
        self.writer = participant.writer(
            naming.response_topic(name),
            naming.type_name(response),
            SERVER_QOS,
            now,
            user_data=mark + naming.type_hash_data(hashes[1]),
            changed=self._changed,
        )

        self.reader = participant.reader(
            naming.request_topic(name),
            naming.type_name(request),
            self._take,
            SERVER_QOS,
            now,
            user_data=mark + naming.type_hash_data(hashes[0]),
            limit=limit,
        )

    def _take(self, sample: Sample) -> None:
        """Process a sample of the request topic."""
        self._forget_late(self._participant.now)
        if sample.related is not None:
            # Without this check, a client could direct responses to a reader of another
            # participant.
            if sample.related.guid[:12] != sample.writer[:12]:
                self._refuse(
                    "a request names the reader of another participant for its response"
                )
                return

            self._take_call(Call(sample.payload, sample, None))
            return

        # Without this check, the first 16 bytes of any other body would be read as a
        # header.
        if not _is_cyclone(self.reader.matched.get(sample.writer)):
            self._refuse(
                "a request without the identity of a client of rmw_fastrtps or rmw_cyclonedds"
            )
            return

        try:
            header = split_request(sample.payload)
        except PeerError as error:
            self._refuse(str(error))
            return

        self._take_call(Call(header.body, sample, header))

    def answer(self, call: Call, body: bytes, now: float) -> None:
        """Answer a call.

        A response waits for at most `RESPONSE_TIMEOUT_S` for the reader of its client.
        The oldest waiting responses are dropped beyond `MAX_WAITING` or
        `MAX_WAITING_BYTES`.

        Parameters
        ----------
        call : Call
            Call that `take` received.
        body : bytes
            CDR of the response, little-endian, with its 4 bytes of encapsulation.
        now : float
            Time of the caller's clock, s.
        """
        # A client may send its first request before its reader is discovered here.
        if not self._send(call, body, now):
            self._forget_late(now)
            self._waiting.append((now + RESPONSE_TIMEOUT_S, call, body))
            while (
                # A single response may exceed the limit, otherwise it could never be
                # sent.
                len(self._waiting) > 1
                and sum(len(entry[2]) for entry in self._waiting) > MAX_WAITING_BYTES
            ):
                self._waiting.popleft()

    @property
    def has_unread_answers(self) -> bool:
        """Whether a client has not acknowledged a response yet, or is not known yet."""
        return len(self.writer.kept) > 0 or bool(self._waiting)

    def _forget_late(self, now: float) -> None:
        # The deque is in the order of deadlines, because all have the same timeout.
        while self._waiting and self._waiting[0][0] < now:
            self._waiting.popleft()

    def _changed(self) -> None:
        """Send waiting responses after readers of clients have appeared."""
        now = self._participant.now
        # Replace the queue before sending, because sending may call this function
        # again.
        waiting, self._waiting = self._waiting, deque(maxlen=MAX_WAITING)
        self._waiting.extend(
            entry
            for entry in waiting
            if now <= entry[0] and not self._send(entry[1], entry[2], now)
        )

    def _send(self, call: Call, body: bytes, now: float) -> bool:
        """Send a response; return whether a reader of the client is known, so that it was sent.

        Parameters
        ----------
        call : Call
            The call. Its header shows whether the client uses rmw_cyclonedds or
            rmw_fastrtps.
        body : bytes
            CDR of the response, little-endian, with its 4 bytes of encapsulation.
        now : float
            Time of the caller's clock, s.
        """
        writer = self.writer
        if call.header is not None:
            data = join_response(call.header, body)
            sent = [
                writer.write_to(guid, data, now)
                for guid in self._replied(call.sample.writer)
            ]
            return any(sent)

        assert call.sample.related is not None, (
            "a request without the identity of a client is a request of rmw_cyclonedds"
        )

        guid = call.sample.related.guid
        # Identify the request by the sequence number of its sample: clients do not know
        # this number when they send their identity.
        inline = related_identity(Identity(guid, call.sample.number))
        if writer.write_to(guid, body, now, inline):
            return True

        # The identity is not of a reader: the client has named its request writer, or
        # none. Its response reader is in the same participant.
        if guid[12:] == bytes(4) or guid == call.sample.writer:
            sent = [
                writer.write_to(reader, body, now, inline)
                for reader in self._replied(call.sample.writer)
            ]
            return any(sent)

        return False

    def _replied(self, requester: bytes) -> list[bytes]:
        """Return the GUIDs of the response readers of the client to which a request writer belongs.

        These readers have the same client identifier in their user data as the writer.
        If the writer has no identifier, all readers of its participant count.

        Parameters
        ----------
        requester : bytes
            GUID of the client's writer, 16 bytes.

        Returns
        -------
        list of bytes
            GUIDs of matched response readers; empty before they are discovered.
        """
        endpoint = self._participant.endpoint(requester)
        # A client's endpoints are in the participant of its writer.
        near = [
            r for r in self.writer.matched.values() if r.guid[:12] == requester[:12]
        ]
        # Several clients of a service may be in one participant.
        if endpoint is not None and (mark := _names_client(endpoint)):
            near = [r for r in near if _names_client(r) == mark]
        return [r.guid for r in near]

    def close(self, now: float) -> None:
        """Close the reader and the writer of the server.

        Parameters
        ----------
        now : float
            Time, s. Responses that still wait are dropped.
        """
        self._waiting.clear()
        self._participant.remove(self.reader, now)
        self._participant.remove(self.writer, now)


@dataclass(frozen=True, slots=True)
class _Pending:
    done: Callable[[bytes], None]
    server: bytes


class ServiceClient:
    """Client of a ROS 2 service over DDS.

    Parameters
    ----------
    participant : Participant
        The DDS participant.
    name : str
        Absolute ROS name of the service.
    request, response : str
        ROS 2 names of the types.
    now : float
        Time of the caller's clock, s.
    identity : bytes
        16 bytes that are unique to the client; rmw_cyclonedds pairs the client's
        endpoints by these bytes.
    changed : callable
        Called after servers have been matched or unmatched.
    limit : int
        Longest response, bytes.
    """

    def __init__(
        self,
        participant: Participant,
        name: str,
        request: str,
        response: str,
        now: float,
        *,
        identity: bytes,
        changed: Callable[[], None] = lambda: None,
        limit: int = MAX_SAMPLE_BYTES,
    ) -> None:
        self._participant = participant
        self._calls: dict[tuple[bytes, int], _Pending] = {}
        self._number = 0

        mark = _CLIENT_ID + ".".join(f"{b:x}" for b in identity).encode() + b";"
        self.reader = participant.reader(
            naming.response_topic(name),
            naming.type_name(response),
            self._take,
            CLIENT_QOS,
            now,
            user_data=mark,
            limit=limit,
            changed=changed,
        )

        self.writer = participant.writer(
            naming.request_topic(name),
            naming.type_name(request),
            CLIENT_QOS,
            now,
            user_data=mark,
            changed=changed,
        )
        # The header of rmw_cyclonedds has room for 8 of the 16 bytes of the GUID.
        self._handle = self.writer.guid[8:]

    def server(self) -> EndpointData | None:
        """Return the request reader of a matched server, or None.

        A server counts only if both its endpoints are matched, because its response
        could otherwise get lost.

        Returns
        -------
        EndpointData or None
            The server whose reader and writer are both matched.
        """
        # Both endpoints of a server have the prefix of its participant.
        there = {guid[:12] for guid in self.reader.matched}
        return next(
            (r for r in self.writer.matched.values() if r.guid[:12] in there), None
        )

    def call(self, body: bytes, now: float, done: Callable[[bytes], None]) -> bool:
        """Call a server; return whether a server is matched.

        Parameters
        ----------
        body : bytes
            CDR of the request, little-endian, with its 4 bytes of encapsulation.
        now : float
            Time of the caller's clock, s.
        done : callable
            Called with the response's CDR; never called without a response.

        Returns
        -------
        bool
            False if no server is matched: nothing is sent, and `done` is never called.
        """
        server = self.server()
        if server is None:
            return False

        if server.vendor == VENDOR_CYCLONE:
            # rmw_cyclonedds numbers the requests of each client itself.
            self._number += 1
            key = self._handle, self._number
            header = self._handle + self._number.to_bytes(8, "little")
            self.writer.write_to(
                server.guid, body[:CDR_HEADER] + header + body[CDR_HEADER:], now
            )
        else:
            # The sequence number is not known before the write; a server of
            # rmw_fastrtps reads it from the sample.
            self.writer.write_to(
                server.guid,
                body,
                now,
                related_identity(Identity(self.reader.guid, UNKNOWN_NUMBER)),
            )
            key = self.reader.guid, self.writer.number

        # Store the call after the write, which assigns the sequence number of its key.
        self._calls[key] = _Pending(done, server.guid)
        # The oldest call is dropped: a server that never answers must not fill the
        # memory.
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        return True

    def _take(self, sample: Sample) -> None:
        """Process a sample of the response topic."""
        body = sample.payload
        if sample.related is not None:
            # Servers repeat the GUID of the request's reader or of its writer,
            # depending on their version.
            guid = (
                self.reader.guid
                if sample.related.guid == self.writer.guid
                else sample.related.guid
            )
            key = guid, sample.related.number
        elif len(body) > CDR_HEADER + HEADER:
            request = split_request(body)
            number = int.from_bytes(
                request.identity[8:], "little" if request.little else "big"
            )
            # A big-endian server swaps the bytes of the handle, which it treats as a
            # number.
            handle = request.identity[:8] if request.little else request.identity[7::-1]
            key, body = (handle, number), request.body
        else:
            return

        pending = self._calls.get(key)
        # A response is accepted only from the participant that was called.
        if pending is not None and pending.server[:12] == sample.writer[:12]:
            # The call is removed first, because `done` may make another call.
            del self._calls[key]
            pending.done(body)

    def close(self, now: float) -> None:
        """Close the reader and the writer of the client; drop unanswered calls.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        self._calls.clear()
        self._participant.remove(self.reader, now)
        self._participant.remove(self.writer, now)


__all__ = ["Call", "ServiceClient", "ServiceServer"]
