"""AMBF's clocks: lockstep, watchdogs and rates, with a clock of the test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.protocols.ambf.stepping import Pace, Stepping


def run(stepping: Stepping, most: int = 10_000) -> int:
    """Return the number of steps before the world waits."""
    steps = 0
    while stepping.may_step and steps < most:
        stepping.stepped()
        steps += 1

    return steps


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 3)), max_size=60))
def test_each_toggle_is_exactly_n_steps_and_none_is_lost(
    toggles: list[tuple[int, int]],
) -> None:
    """For any number of toggles before the world's next step."""
    stepping, clock, wanted, made = Stepping(), False, 0, 0
    stepping.command(True, clock, 10, 0.0)
    assert not stepping.may_step, "nothing is let through without a toggle"
    for n, pause in toggles:
        clock = not clock
        stepping.command(True, clock, n, 0.0)
        wanted += n
        if not pause:
            made += run(stepping)

    made += run(stepping)
    assert made == wanted


def test_a_thousand_toggles() -> None:
    stepping, clock, made = Stepping(), False, 0
    stepping.command(True, clock, 7, 0.0)
    for _ in range(1000):
        clock = not clock
        stepping.command(True, clock, 7, 0.0)
        assert run(stepping) == 7
        made += 7
        # A repeated clock value is not a toggle.
        stepping.command(True, clock, 7, 0.0)
        assert run(stepping) == 0

    assert made == 7000


def test_the_world_runs_free_again() -> None:
    stepping = Stepping()
    assert run(stepping, 100) == 100, "at first it does"
    stepping.command(True, False, 5, 10.0)
    stepping.command(True, True, 5, 10.0)
    assert run(stepping) == 5
    assert not stepping.tick(10.5)
    assert not stepping.may_step
    assert stepping.tick(10.51)
    assert not stepping.tick(10.6), "told once"
    assert run(stepping, 100) == 100
    stepping.command(True, True, 5, 11.0)
    assert not stepping.may_step, "what was allowed before does not count any more"
    stepping.command(False, True, 5, 11.1)
    assert run(stepping, 100) == 100
    patient = Stepping(watchdog=0.0)
    patient.command(True, False, 5, 0.0)
    assert not patient.tick(1e9)


def test_as_the_original_does_it() -> None:
    """At most n steps after the first throttled command, and an early toggle is lost
    (§7).
    """
    stepping = Stepping(original=True)
    stepping.command(True, False, 5, 0.0)
    assert run(stepping) == 5
    stepping.command(True, True, 5, 0.0)
    stepping.command(True, False, 5, 0.0)
    assert run(stepping) == 5
    assert run(stepping) == 0
    # A repeated clock value is not a toggle.
    stepping.command(True, False, 5, 0.0)
    assert run(stepping) == 0
    stepping.command(True, True, 5, 0.0)
    assert run(stepping) == 5
    stepping.command(False, True, 5, 0.0)
    assert run(stepping, 50) == 50


@pytest.mark.parametrize(("low", "high"), [(50.0, 1000.0), (10.0, 120.0)])
def test_states_are_sent_as_often_as_they_should(low: float, high: float) -> None:
    pace = Pace(low, high)

    def sent(begin: float, end: float, commands: bool) -> int:
        count, t = 0, begin
        while t < end:
            if commands:
                pace.command(t)
            pace.expired(t)
            count += pace.is_due(t)
            t += 0.0005

        return count

    assert sent(0.0, 2.0, False) == pytest.approx(2 * low, abs=1)
    assert not pace.is_commanded
    assert sent(2.0, 4.0, True) == pytest.approx(2 * high, abs=2)
    assert pace.is_commanded
    assert sent(4.0, 4.49, False) == pytest.approx(0.49 * high, abs=2), (
        "until the watchdog barks"
    )
    assert pace.is_commanded
    sent(4.49, 4.6, False)
    assert not pace.is_commanded
    assert sent(4.6, 6.6, False) == pytest.approx(2 * low, abs=2)


def test_the_watchdog_of_an_object_barks_once() -> None:
    pace = Pace()
    assert not pace.expired(100.0)
    pace.command(100.0)
    assert not pace.expired(100.5)
    assert pace.expired(100.501)
    assert not pace.expired(101.0)
    pace.command(102.0)
    assert pace.is_due(102.0), "the answer to a command does not wait for the slow rate"


def test_the_watchdog_counts_simulated_time_while_a_client_steps_the_world() -> None:
    pace = Pace()
    pace.command(100.0, 7.0)
    assert not pace.expired(1000.0, 7.5), "its loop is slow"
    assert pace.expired(1000.0, 7.501)
    pace.command(1000.0, 8.0)
    assert not pace.expired(1000.1, 8.4)
    assert pace.expired(1000.6), "time passes by itself again"
    pace.command(1001.0, 9.0)
    assert pace.expired(1001.0, 0.0), "time has begun anew"


def test_a_pause_is_not_made_up_for() -> None:
    pace = Pace(50.0, 1000.0)
    assert pace.is_due(0.0)
    assert pace.is_due(10.0)
    assert sum(pace.is_due(10.0) for _ in range(50)) <= 2, (
        "20 ms are, for timers that wake up late"
    )


def test_what_was_said_for_a_step_is_not_said_again_at_once() -> None:
    pace = Pace(50.0, 1000.0)
    assert pace.is_due(10.0)
    pace.postpone(10.5)
    assert not pace.is_due(10.519)
    assert pace.is_due(10.521)
    pace.command(11.0)
    pace.postpone(11.0)
    assert not pace.is_due(11.0009)
    assert pace.is_due(11.0011)
    assert not pace.is_due(11.0011)
