"""Unauthenticated clients of an HTTP server:

number, duration and cost, with a numeric clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.interfaces import http_admission
from botyard.interfaces.http_admission import (
    GUEST_TIME,
    MAX_STRANGERS,
    MAX_STRANGERS_EACH,
    Caller,
    HttpAdmission,
    booked,
    source_of,
)
from botyard.protocols.tokenbucket import Budget, TokenBucket


class Door:
    """An admission gate that records the clients that it cut off."""

    def __init__(self) -> None:
        self.gate = HttpAdmission(0.0)
        self.dropped: list[str] = []

    def add_connection(
        self, name: str, address: str = "10.0.0.1", now: float = 0.0
    ) -> Caller:
        return self.gate.add_connection(address, lambda: self.dropped.append(name), now)


def test_the_oldest_stranger_of_a_source_goes_for_the_one_that_comes() -> None:
    door = Door()
    for k in range(MAX_STRANGERS_EACH + 8):
        door.add_connection(str(k))
    assert door.dropped == [str(k) for k in range(8)]
    assert door.gate.strangers == MAX_STRANGERS_EACH


def test_one_whose_message_waits_for_us_does_not_go_for_idle_ones() -> None:
    door = Door()
    door.add_connection("held up").is_held_up = True
    for k in range(500):
        door.add_connection(str(k))
    assert "held up" not in door.dropped
    door = Door()
    for k in range(MAX_STRANGERS_EACH + 1):
        door.gate.add_connection(
            "10.0.0.1", lambda k=k: door.dropped.append(str(k)), 0.0
        ).is_held_up = True  # type: ignore[misc]

    # Held-up connections are limited as well, and the limit closes the oldest, not the newcomer.
    assert door.dropped == ["0"]


def test_one_source_does_not_push_out_another() -> None:
    door = Door()
    door.add_connection("other", "10.0.0.2")
    for k in range(500):
        door.add_connection(str(k))
    assert "other" not in door.dropped


def test_all_strangers_together_have_a_limit_and_the_most_crowded_source_pays() -> None:
    door = Door()
    for k in range(MAX_STRANGERS - 4):
        door.add_connection(f"single {k}", f"10.0.1.{k}")
    for k in range(20):
        door.add_connection(f"crowd {k}", "10.0.2.1")
    assert door.gate.strangers == MAX_STRANGERS
    assert door.dropped == [f"crowd {k}" for k in range(16)]


def test_who_has_shown_the_token_is_no_stranger_and_stays() -> None:
    door = Door()
    holder = door.add_connection("holder")
    holder.shows(True, 0.1)
    holder.keep_connected()
    for k in range(500):
        door.add_connection(str(k))
    door.gate.sweep(1e6)
    assert "holder" not in door.dropped and holder.is_known
    assert door.gate.strangers == 0


def test_everything_that_a_stranger_begins_has_an_end() -> None:
    door = Door()
    door.add_connection("says nothing")
    slow_reader = door.add_connection("reads slowly")
    slow_reader.begins(1.0)
    idle = door.add_connection("comes again")
    idle.begins(1.0)
    idle.ends(2.0)
    guest = door.add_connection("sends a map")
    guest.shows(True, 1.0)
    guest.begins(1.0)
    for now in (4.9, 5.1, 6.9, 7.1, 30.9, 31.1, GUEST_TIME + 0.9, GUEST_TIME + 1.1):
        door.gate.sweep(now)
        door.dropped.append(f"{now:g}")

    assert door.dropped == [
        "4.9",
        "says nothing",
        "5.1",
        "6.9",
        "comes again",
        "7.1",
        "30.9",
        "reads slowly",
        "31.1",
        "300.9",
        "sends a map",
        "301.1",
    ]


def test_a_socket_that_is_closed_is_cut_off_soon() -> None:
    door = Door()
    viewer = door.add_connection("viewer")
    viewer.shows(False, 0.0)
    viewer.keep_connected()
    viewer.closes(100.0)
    door.gate.sweep(102.0)
    assert door.dropped == []
    door.gate.sweep(104.0)
    assert door.dropped == ["viewer"]


def test_strangers_pay_together_and_nobody_else_waits_for_them() -> None:
    door = Door()
    holder = door.add_connection("holder")
    holder.shows(True, 0.0)
    one, other = door.add_connection("one"), door.add_connection("other")
    one.budget.spend(0.0, 0.5)
    assert one.budget.wait(0.0) > 1.0 and other.budget.wait(0.0) > 1.0
    assert holder.budget.wait(0.0) == 0.0 and door.gate.wait(0.0) == 0.0


def test_nobody_is_taken_while_many_wait_for_us() -> None:
    door = Door()
    waiting = [door.add_connection(str(k)) for k in range(http_admission.MAX_HELD_UP)]
    assert door.gate.wait(100.0) == 0.0
    for one in waiting:
        one.is_held_up = True
    assert door.gate.wait(100.0) > 0.0
    waiting[0].is_held_up = False
    assert door.gate.wait(100.0) == 0.0
    waiting[0].is_held_up = True
    # A held-up client that has shown the token does not block other clients.
    waiting[1].shows(True, 100.0)
    assert door.gate.wait(100.0) == 0.0


def test_connections_are_taken_no_faster_than_their_work_is_paid_for() -> None:
    door, now, taken = Door(), 0.0, 0
    while now < 60.0:
        wait = door.gate.wait(now)
        if wait:
            now += wait + 1e-9
            continue

        door.gate.remove_connection(door.add_connection("x", now=now))
        taken += 1
        now += 1e-4

    rate, burst = http_admission.ACCEPTING
    assert taken <= (60 * rate + burst) / http_admission.ACCEPT_COST + 2


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 0.1)), max_size=200),
    st.floats(0.01, 1),
    st.floats(0.01, 1),
)
def test_a_budget_is_never_passed_by_more_than_the_last_piece_of_work(
    pieces: list[tuple[float, float]], rate: float, burst: float
) -> None:
    bucket = TokenBucket(rate, burst, 0.0)
    budget, now, spent = Budget(bucket), 0.0, 0.0
    for pause, cost in pieces:
        now += pause
        if not budget.wait(now):
            budget.spend(now, cost)
            spent += cost
            assert spent <= burst + rate * now + cost + 1e-9

    now += budget.wait(now) + 1e-9
    assert budget.wait(now) == 0.0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(1.0, 1.0, 100.0)
    bucket.spend(100.0, 2.0)
    assert bucket.wait(50.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
    ],
)
def test_sources(one: str, other: str, same: bool) -> None:
    assert (source_of(one) == source_of(other)) is same


def test_turns_of_a_coroutine_are_booked_and_its_waits_are_not() -> None:
    clock = [0.0]
    spent: list[float] = []

    async def work() -> str:
        clock[0] += 1.0
        await asyncio.sleep(0)
        clock[0] += 2.0
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            clock[0] += 4.0
            return "done"

        raise AssertionError

    async def run() -> str:
        task = asyncio.create_task(booked(work(), spent.append, lambda: clock[0]))
        for _ in range(4):
            await asyncio.sleep(0)
        clock[0] += 100.0
        task.cancel()
        return await task

    assert asyncio.run(run()) == "done"
    assert spent == [1.0, 2.0, 4.0]


def test_an_error_of_booked_work_comes_out_and_is_booked() -> None:
    ticks: Iterator[int] = iter(range(100))
    spent: list[float] = []

    async def fails() -> None:
        raise ValueError("raised in the block")

    with pytest.raises(ValueError, match="raised in the block"):
        asyncio.run(booked(fails(), spent.append, lambda: next(ticks)))  # type: ignore[arg-type]
    assert spent == [1]
