"""Listeners: registration, order and removal."""

import logging

import pytest

from botyard.api.listeners import Listeners

LOG = logging.getLogger("botyard.test")


@pytest.mark.parametrize("ends_failed", [False, True])
def test_one_that_fails_keeps_nothing_from_the_others(
    ends_failed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    listeners = Listeners[int](LOG, "numbers", ends_failed=ends_failed)
    assert not listeners
    told: list[tuple[str, int]] = []

    def fails(news: int) -> None:
        told.append(("fails", news))
        raise ValueError("raised by a listener")

    listeners.add(fails)
    unregister = listeners.add(lambda news: told.append(("other", news)))
    assert listeners
    listeners.notify(1)
    assert told == [("fails", 1), ("other", 1)]
    (line,) = caplog.records
    assert "a listener of numbers failed" in line.getMessage() and line.exc_info
    assert ("is unregistered" in line.getMessage()) == ends_failed
    listeners.notify(2)
    assert told[2:] == [("other", 2)] if ends_failed else [("fails", 2), ("other", 2)]
    unregister()
    # A second call of `unregister` has no effect.
    unregister()
    del told[:]
    listeners.notify(3)
    assert told == ([] if ends_failed else [("fails", 3)])


def test_who_is_added_or_goes_while_news_are_told() -> None:
    listeners = Listeners[int](LOG, "numbers")
    told: list[tuple[str, int]] = []

    def first(news: int) -> None:
        told.append(("first", news))
        unregister()
        listeners.add(lambda news: told.append(("new", news)))

    unregister = listeners.add(first)
    listeners.notify(1)
    assert told == [("first", 1)]
    listeners.notify(2)
    assert told[1:] == [("new", 2)]
