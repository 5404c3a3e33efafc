"""Who of those that wait is served next."""

from __future__ import annotations

from botyard.control.turns import Turns


def served(turns: Turns[str], n: int = 99) -> list[str]:
    """So many, one at a time."""
    found = []
    while len(found) < n and (turn := turns.next()) is not None:
        found.append(turn[1])
        turns.over(turn[0])
    return found


def test_sources_take_turns() -> None:
    turns: Turns[str] = Turns(16, 1)
    for k in range(3):
        assert turns.add("ann", f"a{k}") is None
    turns.add("bob", "b0")
    turns.add("cat", "c0")
    turns.add("bob", "b1")
    assert served(turns) == ["a0", "b0", "c0", "a1", "b1", "a2"]
    assert len(turns) == 0


def test_one_of_a_source_at_a_time_and_so_many_in_all() -> None:
    turns: Turns[str] = Turns(16, 2)
    for source, thing in (("ann", "a0"), ("ann", "a1"), ("bob", "b0"), ("cat", "c0")):
        turns.add(source, thing)
    assert turns.next() == ("ann", "a0")
    assert turns.next() == ("bob", "b0"), "ann has one already"
    assert turns.next() is None, "two at once"
    turns.over("bob")
    assert turns.next() == ("cat", "c0")
    turns.over("cat")
    assert turns.next() is None, "only ann waits, and hers is not done"
    turns.over("ann")
    assert turns.next() == ("ann", "a1")


def test_whoever_has_the_most_gives_way() -> None:
    turns: Turns[str] = Turns(4, 1)
    for k in range(4):
        turns.add("flood", f"f{k}")
    assert turns.add("flood", "f4") == "f4", "his own last one"
    assert turns.add("ann", "a0") == "f3", "others are not kept out"
    assert turns.add("bob", "b0") == "f2"
    assert turns.add("bob", "b1") == "b1", "not more than the one who has the most"
    assert served(turns) == ["f0", "a0", "b0", "f1"]


def test_nothing_waits_any_more() -> None:
    turns: Turns[str] = Turns(4, 1)
    turns.add("ann", "a0")
    turns.add("bob", "b0")
    assert sorted(turns.clear()) == ["a0", "b0"]
    assert turns.next() is None
