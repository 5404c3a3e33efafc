from __future__ import annotations

import asyncio

import pytest

from botyard.servers.hub import Hub
from botyard.simulation import Simulation


class Recorder:
    def __init__(self) -> None:
        self.times: list[float] = []

    def on_snapshot(self, now: float) -> None:
        self.times.append(now)


def test_fast_runs_end_at_their_duration() -> None:
    sim = Simulation()
    sim.add_robot("p3dx")

    async def go() -> int:
        hub = Hub(sim, interval=None, duration=20.0)
        recorder = Recorder()
        hub.attach(recorder)
        status = await hub.run()
        assert len(recorder.times) == 200
        return status

    assert asyncio.run(go()) == 0
    assert sim.time == 20.0


def test_pacing_counts_from_one_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines are multiples of the interval from the start, so lateness of single steps does not add up."""
    sim = Simulation()

    async def go() -> list[float]:
        loop = asyncio.get_running_loop()
        hub = Hub(sim, interval=0.02, duration=3.0)
        recorder = Recorder()
        hub.attach(recorder)
        start = loop.time()
        await hub.run()
        return [t - start for t in recorder.times]

    times = asyncio.run(go())
    assert len(times) == 30
    # never early, and however late one step was, later ones stand on the same lattice of deadlines
    assert all(t >= k * 0.02 - 1e-6 for k, t in enumerate(times))


def test_stop_keeps_the_first_status_and_detach_works() -> None:
    sim = Simulation()

    async def go() -> int:
        hub = Hub(sim, interval=0.01)
        recorder = Recorder()
        hub.attach(recorder)
        acts: list[int] = []

        def act() -> None:
            acts.append(1)
            if len(acts) == 3:
                hub.detach(recorder)
            if len(acts) == 5:
                hub.stop(7)
                hub.stop(9)

        hub.sim.before_step(act)
        status = await hub.run()
        assert len(recorder.times) == 2
        assert len(acts) == 5
        return status

    assert asyncio.run(go()) == 7


def test_ratio_reports_what_was_kept() -> None:
    sim = Simulation()

    async def go() -> float:
        hub = Hub(sim, interval=None, duration=20_000.0)
        await hub.run()
        return hub.ratio

    assert asyncio.run(go()) > 1.0
