"""The order in which waiting callers are served."""

from __future__ import annotations

from botyard.control.fairqueue import FairQueue


def served(queue: FairQueue[str], n: int = 99) -> list[str]:
    """Serve a number of callers one at a time."""
    found = []
    while len(found) < n and (turn := queue.next()) is not None:
        found.append(turn[1])
        queue.finished(turn[0])

    return found


def test_sources_take_turns() -> None:
    queue: FairQueue[str] = FairQueue(16, 1)
    for k in range(3):
        assert queue.add("ann", f"a{k}") is None
    queue.add("bob", "b0")
    queue.add("cat", "c0")
    queue.add("bob", "b1")
    assert served(queue) == ["a0", "b0", "c0", "a1", "b1", "a2"]
    assert len(queue) == 0


def test_one_of_a_source_at_a_time_and_so_many_in_all() -> None:
    queue: FairQueue[str] = FairQueue(16, 2)
    for source, thing in (("ann", "a0"), ("ann", "a1"), ("bob", "b0"), ("cat", "c0")):
        queue.add(source, thing)
    assert queue.next() == ("ann", "a0")
    assert queue.next() == ("bob", "b0"), "ann has one already"
    assert queue.next() is None, "two at once"
    queue.finished("bob")
    assert queue.next() == ("cat", "c0")
    queue.finished("cat")
    assert queue.next() is None, "only ann waits, and hers is not done"
    queue.finished("ann")
    assert queue.next() == ("ann", "a1")


def test_whoever_has_the_most_gives_way() -> None:
    queue: FairQueue[str] = FairQueue(4, 1)
    for k in range(4):
        queue.add("flood", f"f{k}")
    assert queue.add("flood", "f4") == "f4", "his own last one"
    assert queue.add("ann", "a0") == "f3", "others are not kept out"
    assert queue.add("bob", "b0") == "f2"
    assert queue.add("bob", "b1") == "b1", "not more than the one who has the most"
    assert served(queue) == ["f0", "a0", "b0", "f1"]


def test_nothing_waits_any_more() -> None:
    queue: FairQueue[str] = FairQueue(4, 1)
    queue.add("ann", "a0")
    queue.add("bob", "b0")
    assert sorted(queue.clear()) == ["a0", "b0"]
    assert queue.next() is None
