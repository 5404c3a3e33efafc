"""Conformance check of other packages' interfaces: required behaviour for any input."""

from __future__ import annotations

import itertools
import math
import random
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl

from botyard.control import Caller, Control, Level
from botyard.interfaces.interface import (
    Carrier,
    Door,
    Interface,
    Request,
    Session,
    caller_of,
)
from botyard.names import shown
from botyard.sim.journal import Entry
from botyard.sim.simulation import Simulation
from botyard.testing.formats import damaged_copies

# Half of the stream: the limit finds a session that stores all of it, but permits a
# usual buffer.
MAX_MEMORY: Final = 1 << 18
"""Maximum memory that a session may keep for an endless stream, bytes."""
STREAM_LENGTH: Final = 1 << 19
"""Length of a stream of one repeated byte, bytes."""
NOISE_LENGTH: Final = 1 << 15
"""Length of a stream of random bytes, or of a repeated example, bytes."""
MAX_OUTPUT: Final = 1 << 18
"""Maximum length of the answer to a damaged example, bytes."""
MAX_MESSAGES: Final = 10_000
"""Maximum number of answers to one WebSocket message."""
MAX_TIMERS: Final = 2000
"""Maximum number of timer events of a session within `TIMER_SPAN`."""
TIMER_SPAN: Final = 10.0
"""Simulated span of the check of timers, s."""
_SHOWN_BYTES: Final = 60
"""Number of bytes of an input in a message."""


@dataclass(slots=True)
class _World:
    """World with a separate control surface, and a log of all its changes.

    Attributes
    ----------
    interface : Interface
        The interface under test.
    level : Level
        Permission of clients.
    read_only : bool
        Whether the control surface refuses all changes.
    entries : list of Entry
        Changes of the world so far.
    now : float
        Time of the check's clock, s.
    """

    interface: Interface
    level: Level
    read_only: bool = False
    entries: list[Entry] = field(default_factory=list)
    # The clock does not start at 0, so that sessions that confuse durations with times
    # are found.
    now: float = 1000.0
    sim: Simulation = field(init=False)
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        self.sim = Simulation(seed=1)
        for name, x in (("ann", 0.0), ("bob", 3.0)):
            self.sim.add_robot("p3dx", name, pose=(x, 0.0, 0.0))
        self.sim.step()
        self.control = Control(self.sim, read_only=self.read_only)
        self.sim.core.journal.listen(self.entries.append)

    def client(self, key: str = "one", level: Level | None = None) -> Any:
        """Return a new session.

        Parameters
        ----------
        key : str
            Name and address of the client.
        level : Level, optional
            Its permission. By default it is the level of the world.
        """
        assert self.interface.session is not None
        caller: Caller = replace(
            caller_of(self.interface, key, key),
            level=min(self.level if level is None else level, self.interface.level),
        )
        return self.interface.session(
            Door(self.control, caller, self.interface.chosen({}))
        )

    def say(self, session: Any, pieces: Iterable[bytes]) -> bytes:
        """Send pieces of input to a session and return its answer.

        Parameters
        ----------
        session : object
            Session of the carrier that the interface has.
        pieces : iterable of bytes
            Parts of a stream, datagrams, messages or requests.
        """
        answers = []
        for data in pieces:
            if self.interface.carrier is Carrier.UDP:
                # Brackets keep the borders of messages in the joined bytes, which count
                # as well.
                answers += [
                    b"[%s]" % bytes(a)
                    for a in session.receive_datagram(data, "127.0.0.1", self.now)
                ]
            elif self.interface.carrier is Carrier.HTTP:
                answer = session.answer(_request(data), self.now)
                answers += [b"[%d %s]" % (answer.status, answer.body)]
            elif self.interface.carrier is Carrier.WEBSOCKET:
                session.receive_data(data, self.now)
                # A session that always has one more message would otherwise never end.
                for message in itertools.islice(
                    iter(session.data_to_send, b""), MAX_MESSAGES
                ):
                    answers.append(b"[%s]" % message)
            else:
                session.receive_data(data, self.now)
                answers += [session.data_to_send()]

        return b"".join(answers)


def _request(data: bytes) -> Request:
    """Return a request from a line ``METHOD PATH`` and the following content."""
    line, _, body = data.partition(b"\n")
    method, _, path = line.decode("utf-8", "replace").partition(" ")
    path, _, query = path.partition("?")
    return Request(method, path, dict(parse_qsl(query)), body)


def check_protocol(
    interface: Interface, examples: Sequence[bytes], *, rounds: int = 20, seed: int = 1
) -> list[str]:
    """Check the sessions of an interface; return a list of problems.

    Each session runs in a world of its own with two robots, ``ann`` and ``bob``; the
    check sets the clock. For any input, a session must raise no exception, keep little
    memory, answer little, work independently of the splitting into pieces, and not
    disturb other clients. Its timers must make progress. After its end it must do
    nothing. It must change the world only through the control surface, in its
    interface's name, and not at all without permission.

    Parameters
    ----------
    interface : Interface
        Interface whose sessions are checked.
    examples : sequence of bytes
        Inputs that a client may send at the start of a connection (UDP: datagrams;
        WebSocket: messages; HTTP: requests, each a line ``METHOD PATH`` and the
        content). The inputs may use the robots.
    rounds : int
        Number of damaged copies of each example.
    seed : int
        Seed of the damage; the same seed gives the same damage.

    Returns
    -------
    list of str
        Problems found.
    """
    check = _Check(interface, list(examples), rounds, seed)
    if interface.session is None:
        return ["expected an interface with sessions, found none"]
    found: list[str] = []
    for part in (
        check.answers,
        check.damage,
        check.cuts,
        check.memory,
        check.timers,
        check.ends,
        check.others,
        check.permission,
    ):
        try:
            found += part()
        except Exception as error:
            found.append(
                f"{part.__name__}: a session raised {type(error).__name__}: {shown(error, 200)}"
            )

    # Many damaged inputs lead to one problem.
    return list(dict.fromkeys(found))


class _Check:
    """Worlds and inputs of `check_protocol`, with a method for each check."""

    def __init__(
        self, interface: Interface, examples: list[bytes], rounds: int, seed: int
    ) -> None:
        self._interface = interface
        self._examples = examples
        self._rounds = rounds
        # The seed includes the name, so that each interface gets different damage.
        self._draw = random.Random(f"{seed} {interface.name}")
        self._is_stream = interface.carrier in (Carrier.TCP, Carrier.WEBSOCKET)

    def _world(self, level: Level = Level.OWN, read_only: bool = False) -> _World:
        """Return a new world with the interface under test."""
        return _World(self._interface, level, read_only)

    def _answer_to(self, pieces: Iterable[bytes]) -> tuple[bytes, bool]:
        """Return the answer to input in a new world, and whether the session has ended.

        Parameters
        ----------
        pieces : iterable of bytes
            Parts of a stream, datagrams, messages or requests.
        """
        world = self._world()
        session = world.client()
        answer = world.say(session, pieces)
        return answer, self._is_stream and session.is_closed

    def _damaged(self) -> Iterator[bytes]:
        """Yield damaged copies of all examples."""
        for example in self._examples:
            yield from damaged_copies(example, self._draw, self._rounds)

    def answers(self) -> list[str]:
        """Check that there are answers, and that equal worlds give equal answers."""
        told = [self._answer_to([e]) for e in self._examples]
        problems = (
            []
            if any(answer for answer, _ in told)
            else ["expected an example that gets an answer, found none"]
        )
        if told != [self._answer_to([e]) for e in self._examples]:
            problems.append("the same bytes get different answers in the same world")
        return problems

    def damage(self) -> list[str]:
        """Check that no input raises an exception or has an oversized answer."""
        problems = []
        noise = (
            self._draw.randbytes(self._draw.randint(1, 300))
            for _ in range(self._rounds)
        )
        # Use one world for all inputs: damage that breaks the world, rather than a
        # session, shows in later sessions and in the last step.
        world = self._world()
        for data in itertools.chain(self._damaged(), noise):
            session = world.client()
            try:
                answer = world.say(session, [data])
                self._close(session)
            except Exception as error:
                problems.append(
                    f"a session raised {type(error).__name__}: "
                    f"{shown(error, 200)}: {data[:_SHOWN_BYTES]!r}"
                )
                continue

            if len(answer) > MAX_OUTPUT:
                problems.append(
                    f"{len(data)} bytes have an answer of {len(answer)} bytes: "
                    f"{data[:_SHOWN_BYTES]!r}"
                )

        world.sim.step()
        return problems

    def _close(self, session: Any) -> None:
        """Close a session, unless it has no end because it is not a stream."""
        if self._is_stream:
            session.close()

    def cuts(self) -> list[str]:
        """Check that the splitting of input into pieces has no influence."""
        problems: list[str] = []
        # Only TCP has no borders of messages.
        if self._interface.carrier is not Carrier.TCP:
            return problems
        for data in [*self._examples, *itertools.islice(self._damaged(), self._rounds)]:
            whole = self._answer_to([data])
            at = sorted(self._draw.randrange(len(data) + 1) for _ in range(3))
            for pieces in (
                # Byte by byte finds each place where a reader assumes a complete head.
                [data[i : i + 1] for i in range(len(data))],
                [data[a:b] for a, b in itertools.pairwise([0, *at, len(data)])],
            ):
                if self._answer_to(pieces) != whole:
                    problems.append(
                        f"cut into {len(pieces)} pieces, the same bytes get "
                        f"another answer: {data[:_SHOWN_BYTES]!r}"
                    )
                    break

        return problems

    def memory(self) -> list[str]:
        """Check that a session does not store an endless stream."""
        problems: list[str] = []
        # The client may only watch, so that memory for changes of the world does not
        # count.
        world = self._world(Level.WATCH)
        # Send a valid message many times: queues of accepted work must be bounded as
        # well.
        longest = max(self._examples, key=len)
        for what, unit, length in (
            ("zeros", b"\0", STREAM_LENGTH),
            ("letters", b"a", STREAM_LENGTH),
            ("noise", None, NOISE_LENGTH),
            ("an example", longest, NOISE_LENGTH),
        ):
            session = world.client()
            tracemalloc.start()
            try:
                # 4 KiB are a usual read of a socket.
                for _ in range(length // 4096):
                    data = (
                        self._draw.randbytes(4096)
                        if unit is None
                        else (unit * (4096 // len(unit) + 1))[:4096]
                    )
                    answer = world.say(session, [data])
                    if len(answer) > MAX_OUTPUT or (
                        self._is_stream and session.is_closed
                    ):
                        break

                kept, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()

            if kept > MAX_MEMORY:
                problems.append(
                    f"a session keeps {kept} bytes of memory for a stream of "
                    f"{length} bytes ({what})"
                )
            self._close(session)

        return problems

    def timers(self) -> list[str]:
        """Check that timers expire, and that their times increase."""
        problems: list[str] = []
        if not self._is_stream:
            return problems
        for example in [b"", *self._examples]:
            world = self._world()
            session: Session = world.client()
            world.say(session, [example])
            end, count = world.now + TIMER_SPAN, 0
            while (when := session.next_timer()) is not None and not session.is_closed:
                if not math.isfinite(when):
                    problems.append(
                        f"next_timer: expected a finite time or None, found {when}"
                    )
                    break

                # A timer may lie in the past, but the clock never goes back.
                world.now = max(world.now, when)
                if world.now > end:
                    break
                session.handle_timer(world.now)
                session.data_to_send()
                count += 1
                if count > MAX_TIMERS:
                    problems.append(
                        f"a timer ends more than {MAX_TIMERS} times in {TIMER_SPAN:g} s"
                    )
                    break

            for _ in range(3):
                world.sim.step()
                session.on_snapshot(world.now)
                session.data_to_send()

        return problems

    def ends(self) -> list[str]:
        """Check that a session does nothing after its end."""
        problems: list[str] = []
        if not self._is_stream:
            return problems
        for example in self._examples:
            world = self._world()
            session: Session = world.client()
            world.say(session, [example])
            # Close twice, because both the client's end and the server's end call it.
            session.close()
            session.close()
            before = len(world.entries)
            # Bytes that were already in the socket's buffer can arrive after the end.
            session.receive_data(example, world.now)
            if session.next_timer() is not None:
                session.handle_timer(world.now + 1.0)
            session.on_snapshot(world.now + 1.0)
            if not session.is_closed:
                problems.append("a session is not closed after close()")
            if session.data_to_send():
                problems.append(
                    f"a session answers after its end: {example[:_SHOWN_BYTES]!r}"
                )

            if len(world.entries) > before:
                problems.append(
                    f"a session changes the world after its end: {example[:_SHOWN_BYTES]!r}"
                )

        return problems

    def others(self) -> list[str]:
        """Check that input from another client, who may only watch, changes no answer."""
        problems = []
        for example in self._examples:
            alone, _ = self._answer_to([example])
            world = self._world()
            one = world.client("one")
            other = one if not self._is_stream else world.client("other", Level.WATCH)
            half = (
                len(example) // 2
                if self._interface.carrier is Carrier.TCP
                else len(example)
            )
            answer = world.say(one, [example[:half]])
            # The other client sends in the middle of the first client's message.
            for data in itertools.islice(self._damaged(), 5):
                if self._is_stream and not other.is_closed:
                    world.say(other, [data])

            if self._is_stream:
                other.close()
            if half < len(example):
                answer += world.say(one, [example[half:]])
            if answer != alone:
                problems.append(
                    f"another client changes the answer to {example[:_SHOWN_BYTES]!r}"
                )

        return problems

    def permission(self) -> list[str]:
        """Check that all changes pass through control, in the interface's name.

        A client that may only watch must not change anything.
        """
        problems = []
        for example in self._examples:
            for level, read_only in (
                (Level.WATCH, True),
                (Level.WATCH, False),
                (Level.OWN, False),
            ):
                world = self._world(level, read_only)
                world.say(world.client(), [example])
                world.sim.step()
                # Entries of the engine are consequences, not changes by the client.
                sources = {e.source for e in world.entries} - {"engine"}
                if level is Level.WATCH and world.entries:
                    problems.append(
                        "a client that may only watch changes the world: "
                        f"{example[:_SHOWN_BYTES]!r}"
                    )
                elif sources - {self._interface.name}:
                    problems.append(
                        "the world is changed in the name of "
                        f"{', '.join(sorted(sources))}: {example[:_SHOWN_BYTES]!r}"
                    )

        return problems


__all__ = ["check_protocol"]
