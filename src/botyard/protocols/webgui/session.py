"""Sans-I/O session of one viewer of the page.

It is a state machine that gets the time as an argument (design §2, rule 2). It
authenticates the viewer and charges the time of its requests to its budget. It sends
frames only as fast as the page draws them: each is acknowledged (flow control), and the
rate adapts between 30 and 5 Hz (reference webgui.md §4).
"""

from __future__ import annotations

import hmac
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from botyard.protocols.tokenbucket import Budget
from botyard.protocols.webgui.messages import (
    MAX_TEXT,
    VERSION,
    Ack,
    AnyRequest,
    Hello,
    SetView,
    View,
    decoder,
)
from botyard.protocols.webgui.pushes import (
    Failed,
    Log,
    LogEntry,
    Ok,
    Push,
    Welcome,
    encoder,
)

FRAME_RATES: Final = (30.0, 20.0, 10.0, 5.0)
"""Frame rates, Hz, from the highest to the lowest."""
FRAMES_IN_FLIGHT: Final = 2
"""Window of the flow control: number of unacknowledged frames."""
SLOW_ACK_PERIODS: Final = 1.5
"""Number of frame periods after which an acknowledgement counts as late and lowers the rate."""
ACKS_TO_SPEED_UP: Final = 40
"""Number of acknowledgements in time that raises the rate."""
ACK_TIMEOUT: Final = 5.0
"""Time after which a frame without an acknowledgement counts as lost, s."""
HELLO_TIMEOUT: Final = 5.0
"""Timeout of the first message, s."""
MAX_UNREAD: Final = 1024 * 1024
"""Bytes of queued messages beyond which a page counts as slow.

Its requests then wait, and messages that are soon repeated are left out.
"""
MAX_BACKLOG: Final = 16 * 1024 * 1024
"""Bytes of queued messages beyond which the page is disconnected."""
MAX_STUCK: Final = 30.0
"""Time after which a page that reads none of its messages is disconnected, s."""
MAX_PENDING: Final = 64
"""Limit of a page's unanswered requests; the next request is read after an answer."""
MAX_LOG: Final = 1000
"""Limit of the log lines that wait for a slow page."""
LOG_LINES_PER_MESSAGE: Final = 200

REFUSED: Final = 4401
BAD: Final = 4400
OUTDATED: Final = 4426
FULL: Final = 1013
"""WebSocket close codes.

The codes mean wrong token, protocol error, page of another version, and too many
viewers or a viewer that does not read.
"""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Access tokens: `full` with control, `audience` read-only.

    Without `full` every viewer has control. With `read_only` none has.

    Attributes
    ----------
    full : str
        Token with control; empty if none is needed.
    audience : str
        Token for read-only access; empty if there is none.
    read_only : bool
        Whether `full` also gives read-only access.
    """

    full: str
    audience: str = ""
    read_only: bool = False

    def admits(self, token: str) -> bool | None:
        """Return True for control, False for read-only access, and None for no access.

        Parameters
        ----------
        token : str
            Token of the page.
        """
        # A comparison in constant time reveals nothing about the token.
        if not self.full or hmac.compare_digest(token.encode(), self.full.encode()):
            return not self.read_only
        if self.audience and hmac.compare_digest(
            token.encode(), self.audience.encode()
        ):
            return False

        return None


Answer = Callable[[Any, str | None], None]
"""Callback with the result of a request, and an error message or None.

It is called exactly once, immediately or later.
"""


class RequestHandler(Protocol):
    """Executes requests of viewers."""

    def no_room(self, read_only: bool) -> str:
        """Return the reason why another viewer is refused; empty if there is room.

        Parameters
        ----------
        read_only : bool
            Whether the viewer has read-only access.
        """
        ...

    def welcome(self, viewer: Viewer) -> Welcome:
        """Return the answer to a viewer's `Hello`, and give it its number."""
        ...

    def arrived(self, viewer: Viewer) -> Sequence[bytes]:
        """Register a viewer; return the messages before its first frame.

        Parameters
        ----------
        viewer : Viewer
            Page that has shown its token.

        Returns
        -------
        sequence of bytes
            Encoded messages, such as the schema of frames.
        """
        ...

    def view_changed(self, viewer: Viewer) -> None:
        """Handle a change of `Viewer.view`."""
        ...

    def perform(self, viewer: Viewer, request: AnyRequest, answer: Answer) -> None:
        """Execute a request.

        Parameters
        ----------
        viewer : Viewer
            Page that sent the request. `Viewer.read_only` states whether it may change
            anything.
        request : Request
            Valid request, except `Hello`, `Ack` and `SetView`.
        answer : callable
            Called once with the result and None, or None and an error message.
        """
        ...


class Viewer:
    """Session of one page.

    Parameters
    ----------
    desk : RequestHandler
        Handler that executes the viewer's requests.
    tokens : Tokens
        Access tokens of the server.
    now : float
        Wall time, s.
    admitted : callable, optional
        Called when the viewer has shown its token, with whether it has control; returns
        the budget of its work from now on.
    clock : callable
        Measures the time of work, s; without it, work costs nothing.

    Attributes
    ----------
    view : View
        Contents that the page wants in its frames.
    ready : bool
        Whether it has shown its token.
    read_only : bool
        Whether it may not change anything.
    close_code : int or None
        WebSocket close code; None while the connection shall stay open.
    close_reason : str
        Reason for the page.
    frames_sent : int
        Number of frames that were handed to the socket.
    """

    def __init__(
        self,
        desk: RequestHandler,
        tokens: Tokens,
        now: float,
        admitted: Callable[[bool], Budget] = lambda _: Budget(),
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.view = View()
        self.ready = False
        self.read_only = True
        self.close_code: int | None = None
        self.close_reason = ""
        self.frames_sent = 0
        self.number = 0
        """Number of the page, which the server gives it."""
        self.person = ""
        """Name of the person, if the page shows it to others."""

        self._desk = desk
        self._tokens = tokens
        self._began = now
        self._now = now

        self._texts: deque[bytes] = deque()
        self._log: deque[LogEntry] = deque()
        self._lost = 0
        self._unread = self._pending = 0
        self._stuck_since = math.inf

        self._admitted = admitted
        self._clock = clock
        self.budget = Budget()

        self._rate = 0
        self._acks_in_time = 0
        self._in_flight: deque[tuple[int, float]] = deque()
        self._next_frame = -math.inf

    # -- from the page

    def receive_text(self, text: str | bytes, now: float) -> None:
        """Process a message of the page.

        It never raises: errors are answered, or set `close_code`.

        Parameters
        ----------
        text : str or bytes
            JSON of a request.
        now : float
            Wall time, s.
        """
        self._now = now
        with self.work(now):
            self._receive(text)

    @contextmanager
    def work(self, now: float) -> Iterator[None]:
        """Charge the time of a ``with`` block to the viewer's budget.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        began = self._clock()
        try:
            yield
        finally:
            self.budget.spend(now, self._clock() - began)

    def wait(self, now: float) -> float:
        """Return the time until the next message may be read, s; 0 within the budget.

        A page that is behind (`is_behind`) has to wait as well.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        return 0.0 if self.close_code is not None else self.budget.wait(now)

    def _receive(self, text: str | bytes) -> None:
        if self.close_code is not None:
            return
        # The length is checked before the JSON is parsed, which would cost much more.
        if len(text) > MAX_TEXT:
            self.close(
                BAD,
                f"expected a message of at most {MAX_TEXT} bytes, found {len(text)}",
            )
            return

        try:
            request: AnyRequest = decoder.decode(text)
        # A ValidationError is a DecodeError.
        except (
            msgspec.DecodeError,
            UnicodeError,
            RecursionError,
        ) as error:
            self._reject(text, str(error))
            return

        if not self.ready:
            self._greet(request)
        elif isinstance(request, Ack):
            self._acknowledged(request.number)
        elif isinstance(request, Hello):
            self._answer(request.id, None, 'the request "hello" was already received')
        elif isinstance(request, SetView):
            self.view = request.view
            self._desk.view_changed(self)
            self._answer(request.id, None, None)
        else:
            self._perform(request)

    def _perform(self, request: AnyRequest) -> None:
        self._pending += 1
        self._desk.perform(
            self,
            request,
            lambda result, error: self._performed(request.id, result, error),
        )

    def _performed(self, number: int, result: Any, error: str | None) -> None:
        self._pending -= 1
        self._answer(number, result, error)

    def _reject(self, text: str | bytes, reason: str) -> None:
        """Answer a malformed message, under its id if it has one."""
        if not self.ready:
            self.close(BAD, f'expected the request "hello": {reason}')
            return

        number = -1
        # The id lets the page match the error with its request, although its other
        # fields are invalid.
        try:
            found = json.loads(text)
            if isinstance(found, dict) and isinstance(found.get("id"), int):
                number = found["id"]
        except (ValueError, RecursionError):
            pass

        self._answer(number, None, reason)

    def _greet(self, request: AnyRequest) -> None:
        if not isinstance(request, Hello):
            self.close(BAD, 'expected the request "hello" first')
            return

        admitted = self._tokens.admits(request.token)
        if admitted is None:
            self.close(
                REFUSED,
                "wrong token: open the address that the simulator printed, with "
                "everything after the #",
            )
            return

        # A page that stayed open during an update of the simulator would misread the
        # frames.
        if request.version != VERSION:
            self.close(
                OUTDATED,
                f"this page speaks version {request.version} of the protocol, the "
                f"simulator version {VERSION}: load the page again",
            )
            return

        # This is checked after the token, so that a page without a token learns nothing
        # about the viewers.
        full = self._desk.no_room(not admitted)
        if full:
            self.close(FULL, full)
            return

        self.ready, self.read_only = True, not admitted
        self.budget = self._admitted(admitted)
        self.view = request.view
        self.send(self._desk.welcome(self))
        for text in self._desk.arrived(self):
            self.send_encoded(text)
        self._desk.view_changed(self)

    def _answer(self, number: int, result: Any, error: str | None) -> None:
        self.send(
            Ok(id=number, result=result)
            if error is None
            else Failed(id=number, message=error)
        )

    def close(self, code: int, reason: str) -> None:
        """Request to close the socket; only the first call has an effect.

        Parameters
        ----------
        code : int
            WebSocket close code.
        reason : str
            Reason for the page.
        """
        if self.close_code is None:
            self.close_code, self.close_reason = code, reason

    # -- to the page

    def send(self, message: Push) -> None:
        """Queue a message.

        Parameters
        ----------
        message : Push
            Message of `pushes`. Beyond `MAX_BACKLOG` bytes of unread messages the page
            is disconnected.
        """
        self._queue(encoder.encode(message))

    def send_encoded(self, text: bytes, again_soon: bool = False) -> None:
        """Queue a message that was encoded once for several viewers.

        With `again_soon` the message is left out for a slow page, because the next
        message replaces it.

        Parameters
        ----------
        text : bytes
            JSON of a message.
        again_soon : bool
            Whether a newer message replaces it soon.
        """
        if self.ready and not (again_soon and self.is_behind):
            self._queue(text)

    def _queue(self, text: bytes) -> None:
        # Messages after the end are dropped: the socket is being closed.
        if self.close_code is not None:
            return
        if not self._texts:
            # The time without progress starts with the first waiting message.
            self._stuck_since = self._now
        self._texts.append(text)
        self._unread += len(text)
        # A page that does not read must not fill the memory.
        if self._unread > MAX_BACKLOG:
            self._give_up()

    def _give_up(self) -> None:
        self.close(FULL, "the page does not read its messages")
        self._texts.clear()
        self._log.clear()
        self._unread = 0

    @property
    def is_behind(self) -> bool:
        """Whether the page's requests wait (back-pressure)."""
        return self._unread > MAX_UNREAD or self._pending > MAX_PENDING

    def add_log(self, entry: LogEntry) -> None:
        """Queue a log line; beyond `MAX_LOG` the oldest are dropped and counted."""
        self._log.append(entry)
        if len(self._log) > MAX_LOG:
            self._log.popleft()
            self._lost += 1

    @property
    def has_texts(self) -> bool:
        """Whether messages wait."""
        return bool(self._texts or (self.ready and self._log))

    def texts_to_send(self) -> Iterator[bytes]:
        """Yield the waiting messages in order; each counts as unread until the next."""
        if self.ready and self._log:
            n = min(LOG_LINES_PER_MESSAGE, len(self._log))
            self.send(
                Log(lines=[self._log.popleft() for _ in range(n)], lost=self._lost)
            )
            self._lost = 0

        while self._texts:
            yield self._texts[0]
            # `_give_up` may have cleared the texts while the caller sent this one.
            if self._texts:
                self._unread -= len(self._texts.popleft())
                self._stuck_since = self._now

    # -- frames

    @property
    def rate(self) -> float:
        """Present limit of the frame rate, Hz."""
        return FRAME_RATES[self._rate]

    def wants_frame_at(self, now: float) -> float | None:
        """Return the time of the next frame, s; None while an acknowledgement must come first.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        if not self.ready or self.close_code is not None:
            return None
        # A lost acknowledgement must not stop the frames for ever.
        while self._in_flight and now - self._in_flight[0][1] > ACK_TIMEOUT:
            self._in_flight.popleft()
            self._slower()

        if len(self._in_flight) >= FRAMES_IN_FLIGHT:
            return None
        return max(self._next_frame, now + self.budget.wait(now))

    def frame_sent(self, number: int, now: float) -> None:
        """Record a frame that was handed to the socket.

        Parameters
        ----------
        number : int
            Number of the frame, as in its header.
        now : float
            Wall time, s.
        """
        self.frames_sent += 1
        self._in_flight.append((number, now))
        period = 1.0 / self.rate
        # The next frame may be a little early. Otherwise a world that steps at exactly
        # this rate would be drawn at half of it.
        self._next_frame = now + 0.8 * period

    def _acknowledged(self, number: int) -> None:
        while self._in_flight:
            sent_number, sent = self._in_flight.popleft()
            # Acknowledgements arrive in order: frames before this one count as drawn.
            if sent_number == number:
                if self._now - sent > SLOW_ACK_PERIODS / self.rate:
                    self._slower()
                else:
                    self._acks_in_time += 1
                    if self._acks_in_time >= ACKS_TO_SPEED_UP:
                        self._rate, self._acks_in_time = max(0, self._rate - 1), 0

                return

    def _slower(self) -> None:
        self._rate, self._acks_in_time = min(len(FRAME_RATES) - 1, self._rate + 1), 0

    def is_overdue(self, now: float, *, has_unread: bool = False) -> bool:
        """Check the timeouts; return whether to close the socket.

        `has_unread` means that received data waits to be processed.

        Parameters
        ----------
        now : float
            Wall time, s.
        has_unread : bool
            Whether a first message may be among unread data.
        """
        self._now = max(self._now, now)
        if not self.ready and now - self._began > HELLO_TIMEOUT and not has_unread:
            self.close(BAD, 'the page did not send the request "hello"')
        elif self._texts and now - self._stuck_since > MAX_STUCK:
            self._give_up()

        return self.close_code is not None
