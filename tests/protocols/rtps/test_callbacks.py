"""Callbacks of programs that raise, or close their own and other endpoints.

Nothing stalls and nothing leaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from botyard.protocols.rtps import wire
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.rtps.reader import Reader
from botyard.protocols.rtps.samples import Sample
from botyard.protocols.rtps.topicwriters import TopicWriter
from tests.protocols.rtps.network import Network
from tests.protocols.rtps.test_delivery import CDR, RELIABLE, Got, payload, wait
from tests.protocols.rtps.test_hostile import SOURCE, Attacker, alone


class Taken(list[int]):
    """Numbers that a reader took; `act` is called with each number."""

    act: Callable[[int], object] = staticmethod(lambda number: None)

    def __call__(self, sample: Sample) -> None:
        self.append(sample.number)
        self.act(sample.number)


def fail(number: int) -> None:
    """Raise the error of a faulty program."""
    raise ValueError(number)


def listening(
    part: Participant, count: int
) -> tuple[list[Taken], list[Reader], Attacker, bytes]:
    """Create readers of one topic and a writer; return its entity id."""
    takes = [Taken() for _ in range(count)]
    readers = [part.reader("rt/a", "T", take, RELIABLE, 0.0) for take in takes]
    attacker = Attacker(part, SOURCE)
    return takes, readers, attacker, attacker.endpoint(1, "rt/a", is_writer=True)[12:]


def test_a_take_that_raises_keeps_nothing_from_others() -> None:
    """Later samples, held samples and samples of other readers are delivered."""
    (one, other), _, attacker, writer = listening(alone(), 2)
    one.act = fail
    for number in (2, 3, 5):
        attacker.send(wire.data(wire.ANY + writer, number, CDR))
    with pytest.raises(ExceptionGroup) as raised:
        attacker.send(wire.data(wire.ANY + writer, 1, CDR))
    assert [str(error) for error in raised.value.exceptions] == ["1", "2", "3"]
    one.act = lambda number: fail(number) if number == 5 else None
    with pytest.raises(ValueError, match="5"):
        attacker.send(wire.data(wire.ANY + writer, 4, CDR))
    assert one == other == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", ["held", "fragments", "skipped"])
def test_readers_closed_in_a_take(first: int, kind: str) -> None:
    """The taking reader, and the reader that would be next."""
    part = alone()
    takes, readers, attacker, writer = listening(part, 2)
    pair = wire.ANY + writer
    takes[0].act = lambda number: [
        part.remove(reader, attacker.now) for reader in readers[first:]
    ]
    if kind == "fragments":
        for fragment in (1, 2):
            attacker.send(wire.data_frag(pair, 1, fragment, 1000, 2000, bytes(1000)))
    else:
        for number in (2, 3, 5):
            attacker.send(wire.data(pair, number, CDR))
        last = (
            wire.data(pair, 1, CDR)
            if kind == "held"
            else wire.heartbeat(wire.ANY, writer, 7, 9, 2)
        )
        attacker.send(last)

    attacker.run(3.0)
    every = {"held": [1, 2, 3], "fragments": [1], "skipped": [2, 3, 5]}[kind]
    assert takes == [every[:1] if first == 0 else every, []]
    inbox = part._inbox
    assert not inbox.assemblies and not inbox.assembling and inbox.budget.used == 0


def test_endpoints_closed_when_they_are_matched() -> None:
    """Closed in the `changed` of one of them, also while a remote endpoint is already
    matched.
    """
    part = alone()
    readers: list[Reader] = []
    writers: list[TopicWriter] = []

    def close() -> None:
        for endpoint in (*readers, *writers):
            part.remove(endpoint, 1.0)

    readers += [
        part.reader("rt/a", "T", Got(), RELIABLE, 0.0, changed=close) for _ in range(2)
    ]
    writers += [
        part.writer("rt/b", "T", RELIABLE, 0.0, changed=close) for _ in range(2)
    ]
    attacker = Attacker(part, SOURCE)
    attacker.endpoint(4, "rt/none", is_writer=False)
    before = len(part._routes)
    attacker.endpoint(1, "rt/a", is_writer=True)
    attacker.endpoint(2, "rt/b", is_writer=False)
    attacker.endpoint(3, "rt/b", is_writer=False)
    readers.append(part.reader("rt/a", "T", Got(), RELIABLE, 1.0, changed=close))
    part.remove(readers[-1], 1.0)
    attacker.run(10.0)
    assert len(part._routes) == before
    assert not any(endpoint.matched for endpoint in (*readers, *writers))
    assert not any(
        proxy.reader is reader for proxy in part._inbox.asking for reader in readers
    )


def test_a_changed_that_raises_keeps_nothing_from_being_matched() -> None:
    """All endpoints of a new participant are matched, whatever the first callback does.

    The same holds for their unmatching.
    """
    network = Network()
    one, other = network.add(), network.add()

    def broken() -> None:
        raise ValueError("broken")

    endpoints: list[Any] = [
        one.part.writer(f"rt/{k}", "T", RELIABLE, network.now, changed=broken)
        for k in range(3)
    ]
    gots = [Got() for _ in endpoints]
    for k, got in enumerate(gots):
        other.part.reader(f"rt/{k}", "T", got, RELIABLE, network.now)
    raised = []
    for name in ("feed", "due"):
        method = getattr(one.part, name)

        def caught(*args: Any, method: Any = method) -> Any:
            try:
                return method(*args)
            except (ValueError, ExceptionGroup) as error:
                raised.append(error)
                return args[-1]

        setattr(one.part, name, caught)

    wait(network, lambda: all(writer.matched for writer in endpoints))
    for writer in endpoints:
        writer.write(payload(1), network.now)
    wait(network, lambda: all(gots))
    assert raised
    raised.clear()
    network.remove(other)
    wait(network, lambda: not any(writer.matched for writer in endpoints))
    assert raised
