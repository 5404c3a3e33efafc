"""Stepping of the world by clients:

exact counts, two clients at once, watchdogs, and the Pioneer protocol.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.clients.pioneer import PioneerClient
from botyard.control import Control
from botyard.protocols.pioneer.commands import C, Ctrl
from botyard.protocols.pioneer.packet import frame
from botyard.servers import lockstep as lockstep_module
from botyard.servers.hub import Hub
from botyard.servers.lockstep import MIN_BATCH_STEPS, Lockstep
from botyard.sim.simulation import Simulation
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


def with_hub(
    work: Callable[[Simulation, Lockstep, Hub], Awaitable[None]], watchdog: float = 0.0
) -> Simulation:
    sim = Simulation(step=0.01)

    async def go() -> None:
        hub = Hub(sim, interval=0.01)
        task = asyncio.ensure_future(hub.run())
        await asyncio.sleep(0.03)
        await work(sim, Lockstep(hub, watchdog), hub)
        hub.stop()
        await task

    asyncio.run(go())
    return sim


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=30))
def test_each_toggle_is_exactly_n_steps(commands: list[tuple[bool, int]]) -> None:
    async def work(sim: Simulation, lockstep: Lockstep, hub: Hub) -> None:
        lockstep.command("me", True, False, 7)
        expected, last = sim.tick, False
        for clock, skips in commands:
            lockstep.command("me", True, clock, skips)
            expected += skips if clock != last else 0
            last = clock
            assert sim.tick == expected

        await asyncio.sleep(0.03)
        assert sim.tick == expected, "between toggles time stands still"

    with_hub(work)


def test_a_thousand_toggles() -> None:
    told = []

    async def work(sim: Simulation, lockstep: Lockstep, hub: Hub) -> None:
        lockstep.step_listeners.append(lambda: told.append(sim.tick))
        lockstep.command("me", True, False, 10)
        before = sim.tick
        for k in range(1000):
            lockstep.command("me", True, k % 2 == 0, 10)
        assert sim.tick - before == 10_000

    with_hub(work)
    assert len(told) == 1000


def test_many_steps_let_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep_module, "BATCH_TIME_S", 0.0)
    told: list[int] = []

    async def work(sim: Simulation, lockstep: Lockstep, hub: Hub) -> None:
        lockstep.step_listeners.append(lambda: told.append(sim.tick))
        lockstep.step("me", 0)
        begin = sim.tick
        lockstep.step("me", 3000)
        lockstep.step("me", 500)
        turns = 0
        while sim.tick - begin < 3500:
            assert lockstep.is_held, "it is not silent, it waits"
            await asyncio.sleep(0)
            turns += 1

        assert turns >= 3500 / MIN_BATCH_STEPS - 2
        assert told[-1] == begin + 3500
        lockstep.step("me", 100_000_000)
        await asyncio.sleep(0)
        lockstep.release_hold("me")
        await asyncio.sleep(0.1)
        assert sim.tick < begin + 100_000_000, "who leaves is not waited for"
        assert not lockstep.is_held

    with_hub(work, 0.2)


def test_it_runs_free_when_the_last_client_lets_go() -> None:
    async def work(sim: Simulation, lockstep: Lockstep, hub: Hub) -> None:
        lockstep.step("one", 3)
        lockstep.step("two", 0)
        assert lockstep.is_held
        lockstep.release_hold("one")
        tick = sim.tick
        await asyncio.sleep(0.05)
        assert sim.tick == tick, "the other one holds it still"
        lockstep.command("two", False, False, 10)
        await until(lambda: sim.tick > tick)
        assert not hub.is_paused
        lockstep.release_hold("nobody")

    with_hub(work)


def test_a_pause_of_somebody_else_stays() -> None:
    async def work(sim: Simulation, lockstep: Lockstep, hub: Hub) -> None:
        hub.pause()
        lockstep.step("me", 5)
        lockstep.release_hold("me")
        tick = sim.tick
        await asyncio.sleep(0.05)
        assert (hub.is_paused, sim.tick) == (True, tick)
        hub.resume()

    with_hub(work)


def test_the_watchdog_frees_it() -> None:
    async def work(sim: Simulation, lockstep: Lockstep, hub: Hub) -> None:
        lockstep.step("me", 1)
        tick = sim.tick
        await asyncio.sleep(0.1)
        assert sim.tick == tick
        await until(lambda: sim.tick > tick)

    with_hub(work, 2.0)


@pytest.mark.peer
def test_a_pioneer_client_steps_the_world() -> None:
    port = free_port()
    with (
        running("--nomap", "-r", "p3dx", "-p", str(port), "--ambf-watchdog", "0") as _,
        PioneerClient(port=port) as robot,
    ):

        def steps(count: int) -> None:
            robot.send_raw(
                frame(C.SIM_CTRL, struct.pack("<BHH", 0x3B, Ctrl.STEP_WORLD, count))
            )

        robot.enable()
        robot.vel(500)
        steps(0)
        # The robot accelerates at first; only the later distances are compared.
        for _ in range(8):
            robot.update(timeout=PATIENCE)
        seen = [robot.x_mm]
        for count in (10, 10, 10, 0):
            steps(count)
            end = time.monotonic() + PATIENCE
            while count and robot.x_mm == seen[-1]:
                assert time.monotonic() < end, "no steps were made"
                robot.update(timeout=0.2)

            # Reports repeat while the world is paused.
            for _ in range(8):
                robot.update(timeout=PATIENCE)
            seen.append(robot.x_mm)

        del seen[0]
        assert seen[2] - seen[1] == pytest.approx(500.0, abs=30.0), "ten steps of 0.1 s"
        assert seen[3] == seen[2], "no steps"
        robot.send_raw(frame(C.SIM_CTRL, struct.pack("<BH", 0x3B, Ctrl.RUN_WORLD)))
        end = time.monotonic() + PATIENCE
        while robot.x_mm < seen[2] + 200.0:
            assert time.monotonic() < end
            robot.update(timeout=0.2)


def test_the_worlds_state_comes_after_those_of_all_objects() -> None:
    """It shows a client that its step is done:

    the states of all objects of the same step have already come.
    """
    from botyard.interfaces.ambf import Ambf
    from botyard.model.scene import Scene
    from botyard.protocols.ambf.messages import definitions
    from botyard.protocols.ros_messages.types import Types

    types = Types(more=definitions("2.0"))
    sent: list[tuple[str, Any]] = []

    class End:
        is_wanted, replays_latched = True, False

        def __init__(self, topic: Any) -> None:
            self.topic = topic

        def send(self, message: Any) -> None:
            sent.append(
                (self.topic.name, types.decode_ros1(message.ros1, self.topic.type_name))
            )

        def close(self) -> None:
            pass

    class Carrier:
        wire = "ros1"

        def advertise(self, node: str, topic: Any, *_: object) -> End:
            return End(topic)

        listen = advertise

    async def work() -> None:
        sim = Simulation(Scene(), step=0.001)
        for k in range(3):
            sim.add_robot("p3dx", f"r{k}", pose=(2.0 * k, 0.0, 0.0))
        hub = Hub(sim, interval=0.001)
        lockstep = Lockstep(hub, 0.0)
        control = Control(hub.sim)
        control.stepper = lockstep
        ambf = Ambf(hub, control, lockstep, types, "2.0")
        ambf.add(Carrier())  # type: ignore[arg-type]
        lockstep.command("me", True, False, 5)
        for k in range(1, 4):
            sent.clear()
            lockstep.command("me", True, bool(k % 2), 5)
            names = [name for name, _ in sent]
            assert (
                names[-1] == "/ambf/env/World/State"
                and names.count("/ambf/env/World/State") == 1
            )
            assert {f"/ambf/env/r{n}/State" for n in range(3)} <= set(names)
            assert {m.sim_step for _, m in sent} == {5 * k}

        ambf.close()

    asyncio.run(work())
