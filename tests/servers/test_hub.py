from __future__ import annotations

import asyncio
import logging
import struct
import time
from typing import Any

import pytest

from botyard.control import Control
from botyard.geometry import Pose
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.protocols.pioneer.roster import Roster
from botyard.protocols.pioneer.session import Session
from botyard.protocols.pioneer.simreports import SimStat
from botyard.servers import hub as hub_module
from botyard.servers.hub import Hub
from botyard.servers.pioneer.connection import Connection, RobotLog
from botyard.sim.simulation import Simulation
from tests.waiting import PATIENCE


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
    """Deadlines are multiples of the interval from the start, so delays of single steps
    do not accumulate.
    """
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
    # No step comes early. However late one step was, later steps keep the same lattice of
    # deadlines.
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


def test_input_then_the_step_then_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a client and the page before a step are part of it, and the reports
    after it show the new world (ENG-002).
    """
    monkeypatch.setattr(
        Roster,
        "min_wall_period",
        0.0,
        # Clients get a report for every step at any speed.
    )
    sim = Simulation(odometry_error="none")
    robot, box = (
        sim.add_robot("p3dx", "r", pose=Pose()),
        sim.add_robot("box", "b", pose=Pose(9.0, 0.0, 0.0)),
    )
    seen: list[tuple[int, float, float, int, int]] = []

    async def go() -> None:
        hub = Hub(sim, interval=None)
        out = bytearray()
        session = Session(robot.port("pioneer"), PioneerSettings(), 0.0)
        log = RobotLog(logging.getLogger("botyard.test"), {"robot": "r"})
        connection = Connection(
            session, out.extend, lambda: None, log, PioneerRequests(Control(sim))
        )
        hub.reporter.attach(connection)

        class Both:
            """A client that moves its robot after every step, and a page that moves the
            box.
            """

            def on_snapshot(self, now: float) -> None:
                told = [
                    SimStat.decode(p).x_mm
                    for p in Parser().feed_bytes(bytes(out))
                    if p.id == 0x62
                ]
                out.clear()
                if told:
                    seen.append(
                        (sim.tick, robot.truth.x, box.truth.x, told[-1], len(told))
                    )

                place = (sim.tick + 1) * 1000
                connection.receive_data(
                    frame(224, b"\0" + struct.pack("<iii", place, 0, 0)), now
                )
                sim.put("b", Pose(place / 1000.0, 5.0, 0.0), "page")
                if sim.tick == 6:
                    hub.stop()

        hub.attach(Both())
        for data in (
            command(0),
            command(1),
            command(2),
            command(1, 1),
            command(237, 2),
        ):
            connection.receive_data(data, 0.0)

        await hub.run()

    asyncio.run(go())
    assert seen[1:] == [(tick, tick, tick, tick * 1000, 1) for tick in range(2, 7)]


def test_clients_get_reports_while_time_stands_still() -> None:
    """The hub serves the timers of sessions even without steps."""

    async def go() -> None:
        sim = Simulation(odometry_error="none")
        robot, out = sim.add_robot("p3dx", "r", pose=Pose()), bytearray()
        hub = Hub(sim, interval=0.01)
        time_s = asyncio.get_running_loop().time
        connection = Connection(
            Session(robot.port("pioneer"), PioneerSettings(), time_s()),
            out.extend,
            lambda: None,
            RobotLog(logging.getLogger("botyard.test"), {"robot": "r"}),
            PioneerRequests(Control(sim)),
        )
        hub.reporter.attach(connection)
        for data in (command(0), command(1), command(2), command(1, 1)):
            connection.receive_data(data, time_s())
        work = asyncio.ensure_future(hub.run())
        ids: list[int] = []
        async with asyncio.timeout(PATIENCE):
            while 0x32 not in ids:
                await asyncio.sleep(0.01)
                ids = [p.id for p in Parser().feed_bytes(bytes(out))]
        hub.pause()
        await asyncio.sleep(0)
        out.clear()
        tick = sim.tick
        async with asyncio.timeout(PATIENCE):
            while ids.count(0x32) < 3:
                await asyncio.sleep(0.01)
                ids = [p.id for p in Parser().feed_bytes(bytes(out))]
        assert sim.tick == tick
        hub.stop()
        await work

    asyncio.run(go())


def test_a_world_without_clients_wakes_up_for_its_steps_alone() -> None:
    """Between the steps neither sessions nor other objects are polled."""

    async def go() -> tuple[int, int]:
        loop, hub = asyncio.get_running_loop(), Hub(Simulation(), interval=0.05)
        hub.duration = 10 * hub.sim.dt
        times: list[float] = []
        call_at = loop.call_at

        def counted(when: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
            times.append(when)
            return call_at(when, *args, **options)

        loop.call_at = counted  # type: ignore[method-assign]
        looks: list[int] = []
        hub.looks.append(lambda: looks.append(1))
        await hub.run()
        assert looks, "though wall time is looked after"
        return len(times), hub.sim.tick

    timers, steps = asyncio.run(go())
    assert steps == 10 and timers <= steps


def test_a_simulation_that_cannot_keep_up_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Lag beyond the limit is dropped, counted, and logged now and then (ENG-005)."""
    monkeypatch.setattr(hub_module, "MAX_LAG", 0.02)
    caplog.set_level(logging.WARNING, "botyard")
    sim = Simulation()

    async def go() -> int:
        hub = Hub(sim, interval=0.001, duration=2.0)
        sim.before_step(lambda: time.sleep(0.01))
        await hub.run()
        return hub.overruns

    assert asyncio.run(go()) >= 2
    assert len([r for r in caplog.records if "behind schedule" in r.message]) == 1


def test_ratio_reports_what_was_kept() -> None:
    sim = Simulation()

    async def go() -> float:
        hub = Hub(sim, interval=None, duration=20_000.0)
        await hub.run()
        return hub.ratio

    assert asyncio.run(go()) > 1.0


def test_ratio_is_about_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds in real time, then ten at double speed: only the window counts."""

    async def go() -> None:
        wall = 100.0
        hub = Hub(Simulation(), interval=None)
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: wall)
        for step_s, ratio in ((0.1, 1.0), (0.05, 2.0), (0.4, 0.25)):
            for _ in range(round(10.0 / step_s)):
                wall += step_s
                hub.step_once()
            assert hub.ratio == pytest.approx(ratio, rel=0.01)

    asyncio.run(go())
