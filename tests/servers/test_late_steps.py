"""Steps of a world that is not watched are made late, but before any handler runs."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from botyard.api.revisions import Subject
from botyard.servers import hub as hub_module
from botyard.servers.hub import Hub
from botyard.servers.wakingloop import WakingLoop
from botyard.sim.simulation import Simulation
from tests.waiting import PATIENCE

T = TypeVar("T")
INTERVAL = 0.02


@pytest.fixture(autouse=True)
def quick_steps(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let no step count as slow, however busy the machine is."""
    if "slow" not in request.node.name:
        monkeypatch.setattr(hub_module, "LATE_STEPS_TIME_S", PATIENCE)


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=WakingLoop) as runner:
        return runner.run(work)


def world() -> Simulation:
    sim = Simulation(seed=3)
    sim.add_robot("p3dx").command(v=0.2, w=0.1)
    return sim


async def resting(hub: Hub) -> asyncio.Task[int]:
    """Start a run, and return when its steps have become late."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WakingLoop)
    task = asyncio.create_task(hub.run())
    async with asyncio.timeout(PATIENCE):
        while loop.on_wake is None:
            await asyncio.sleep(0)
    return task


def counted(patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of steps of each call of `Simulation.step`."""
    calls: list[int] = []
    step = Simulation.step

    def stepped(self: Simulation, n: int = 1) -> object:
        calls.append(n)
        return step(self, n)

    patch.setattr(Simulation, "step", stepped)
    return calls


def test_an_unwatched_world_makes_many_steps_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MAX_LATE_S", 10 * INTERVAL)
    sim, alike = world(), world()
    calls = counted(monkeypatch)
    run(Hub(sim, interval=INTERVAL, duration=4.0).run())
    assert sim.tick == sum(calls) == 40, "and the last step is not late"
    assert len(calls) <= 20 and max(calls) > 1
    alike.step(40)
    assert sim.digest() == alike.digest()


def test_the_history_has_the_same_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MAX_LATE_S", 10 * INTERVAL)
    sim, alike = world(), world()
    for one in (sim, alike):
        one.history.keep()
    calls = counted(monkeypatch)
    run(Hub(sim, interval=INTERVAL, duration=2.0).run())
    assert max(calls) > 1
    for _ in range(20):
        alike.step()
    assert sim.history.moments == alike.history.moments
    assert sim.history.look(1.0).digest() == alike.history.look(1.0).digest()


@pytest.mark.parametrize("event", ["call", "connection"])
def test_all_steps_that_are_due_precede_an_event(
    event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call from a thread, as by a signal, and a connection find the current world."""
    monkeypatch.setattr(hub_module, "MAX_LATE_S", PATIENCE)
    sim = world()

    async def go() -> None:
        loop = asyncio.get_running_loop()
        hub = Hub(sim, interval=INTERVAL)
        origin = loop.time()
        task = await resting(hub)
        started = loop.time()
        found: asyncio.Future[tuple[int, int]] = loop.create_future()

        def look() -> None:
            # Deadlines count from an origin between the two measured times, so this is the least
            # number of steps.
            least = math.floor((loop.time() - started) / INTERVAL)
            found.set_result((sim.tick, least))

        class Accepted(asyncio.Protocol):
            def connection_made(self, _: asyncio.BaseTransport) -> None:
                look()

        # Another thread writes while the event loop sleeps.
        def send(port: int) -> None:
            time.sleep(12 * INTERVAL)
            if event == "call":
                loop.call_soon_threadsafe(look)
            else:
                with socket.create_connection(("127.0.0.1", port), PATIENCE):
                    time.sleep(INTERVAL)

        server = await loop.create_server(Accepted, "127.0.0.1", 0)
        thread = asyncio.to_thread(send, server.sockets[0].getsockname()[1])
        sent = asyncio.create_task(thread)
        tick, least = await asyncio.wait_for(found, PATIENCE)
        most = math.floor((loop.time() - origin) / INTERVAL) + 1
        assert least <= tick <= most and tick >= 12
        assert not sent.cancelled()
        await sent
        hub.stop()
        await task
        server.close()

    run(go())


class Listener:
    def on_snapshot(self, now: float) -> None:
        pass


def listens(hub: Hub) -> None:
    hub.attach(Listener())


def watches(hub: Hub) -> None:
    hub.watch(lambda: None)


def acts(hub: Hub) -> None:
    hub.sim.before_step(lambda: None)


def looks(hub: Hub) -> None:
    hub.sim.after_step(lambda _: None)


def drives(hub: Hub) -> None:
    hub.looks.append(lambda: True)


@pytest.mark.parametrize("follow", [listens, watches, acts, looks, drives])
def test_all_that_follows_a_world_gets_each_step_on_time(
    follow: Callable[[Hub], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = world()
    calls = counted(monkeypatch)

    async def go() -> None:
        hub = Hub(sim, interval=0.01, duration=1.0)
        follow(hub)
        await hub.run()

    run(go())
    assert calls == [1] * 10


def test_a_world_is_stepped_on_time_again_once_it_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MAX_LATE_S", PATIENCE)
    sim = world()

    async def go() -> None:
        hub = Hub(sim, interval=INTERVAL)
        task = await resting(hub)
        ticks: list[int] = []
        done = asyncio.Event()

        class Watcher:
            def on_snapshot(self, now: float) -> None:
                ticks.append(sim.tick)
                if len(ticks) == 5:
                    done.set()

        hub.attach(Watcher())
        await asyncio.wait_for(done.wait(), PATIENCE)
        assert ticks == list(range(ticks[0], ticks[0] + 5))
        hub.stop()
        await task

    run(go())


@pytest.mark.parametrize("how", ["attach", "watch"])
def test_a_timer_that_watches_ends_the_rest(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """No event but the timer itself wakes the run loop."""
    monkeypatch.setattr(hub_module, "MAX_LATE_S", 10 * PATIENCE)
    sim = world()

    async def go() -> None:
        hub = Hub(sim, interval=INTERVAL)
        task = await resting(hub)
        seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        began = 0

        def note(*_: object) -> None:
            if not seen.done():
                seen.set_result(sim.tick)

        class Watcher:
            on_snapshot = staticmethod(note)

        def watch() -> None:
            nonlocal began
            began = sim.tick
            if how == "attach":
                hub.attach(Watcher())
            else:
                hub.watch(note)

        asyncio.get_running_loop().call_later(2.5 * INTERVAL, watch)
        assert await asyncio.wait_for(seen, PATIENCE) == began + 1
        hub.stop()
        await task

    run(go())


def test_a_change_during_a_rest_has_its_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MAX_LATE_S", 20 * INTERVAL)
    sim = world()

    async def go() -> None:
        hub = Hub(sim, interval=INTERVAL)
        task = await resting(hub)
        found: list[int] = []
        changed: list[int] = []
        hub.follow(lambda: found.append(sim.tick), Subject.CLAIMS)

        def change() -> None:
            changed.append(sim.tick)
            sim.core.feed.record_change(Subject.CLAIMS)

        asyncio.get_running_loop().call_later(2.5 * INTERVAL, change)
        async with asyncio.timeout(PATIENCE):
            while not found:
                await asyncio.sleep(3 * INTERVAL)
        hub.stop()
        await task
        assert found == changed

    run(go())


def test_an_error_of_a_late_step_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MAX_LATE_S", 10 * INTERVAL)
    sim = world()

    async def go() -> None:
        hub = Hub(sim, interval=INTERVAL)
        task = await resting(hub)

        def broken(self: Simulation, n: int = 1) -> object:
            raise RuntimeError("broken")

        monkeypatch.setattr(Simulation, "step", broken)
        with pytest.raises(RuntimeError, match="broken"):
            await asyncio.wait_for(task, PATIENCE)

    run(go())


def test_a_slow_world_is_not_late_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new client waits for the steps, so that they may take a few milliseconds."""
    monkeypatch.setattr(hub_module, "LATE_STEPS_TIME_S", 0.0)
    sim = world()
    calls = counted(monkeypatch)
    run(Hub(sim, interval=0.01, duration=1.0).run())
    assert calls == [1] * 10


def test_a_handler_that_pauses_stops_late_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps due at the next wake-up are included."""
    monkeypatch.setattr(hub_module, "MAX_LATE_S", PATIENCE)
    sim = world()

    async def go() -> tuple[int, int]:
        hub = Hub(sim, interval=INTERVAL)
        task = await resting(hub)
        loop = asyncio.get_running_loop()
        at = loop.create_future()

        def pause() -> None:
            hub.pause()
            at.set_result(sim.tick)
            # The next wake-up is several steps later.
            time.sleep(5 * INTERVAL)

        loop.call_later(3.5 * INTERVAL, pause)
        before = await at
        await asyncio.sleep(3 * INTERVAL)
        hub.stop()
        await task
        return before, sim.tick

    before, after = run(go())
    assert before == after


def test_a_late_wake_up_makes_no_step_beyond_the_duration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MAX_LATE_S", PATIENCE)
    sim = world()

    async def go() -> None:
        hub = Hub(sim, interval=INTERVAL, duration=2.0)
        task = await resting(hub)
        # The loop is busy while the last step comes due.
        asyncio.get_running_loop().call_later(
            15 * INTERVAL, lambda: time.sleep(10 * INTERVAL)
        )
        await task

    run(go())
    assert sim.tick == 20


def test_the_loop_sleeps_between_late_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wake-up does not cause the next one: an idle simulator takes no time."""
    monkeypatch.setattr(hub_module, "MAX_LATE_S", 10 * INTERVAL)
    turns = 0

    class Counting(WakingLoop):
        def _run_once(self) -> None:
            nonlocal turns
            turns += 1
            super()._run_once()  # type: ignore[misc]

    with asyncio.Runner(loop_factory=Counting) as runner:
        runner.run(Hub(world(), interval=INTERVAL, duration=4.0).run())
    # 200 steps, ten at a time; without sleep there are tens of thousands.
    assert turns < 2000, turns
