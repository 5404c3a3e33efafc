"""Steps of the world count in no client's budget, for any protocol that requests them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from botyard.control import Control
from botyard.interfaces.ros.members import ROS
from botyard.interfaces.ros.simulation_interfaces import RosSimulator
from botyard.protocols.ros_messages.graphoffers import Input
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.types import types
from botyard.protocols.tcpros import wire
from botyard.protocols.tcpros.session import Subscription
from botyard.servers import workclock
from botyard.servers.hub import Hub
from botyard.servers.lockstep import Lockstep
from botyard.servers.ros import ros1input
from botyard.servers.ros.ros1input import InputLimits, Subscriber
from botyard.servers.timeshare import TimeShare
from botyard.servers.workclock import passed, uncounted, worked
from botyard.sim.simulation import Simulation

TYPES = types()


class Clock:
    """A clock that only the test's actions advance."""

    now = 0.0

    def thread_time(self) -> float:
        return self.now

    def perf_counter(self) -> float:
        return 2.0 * self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(workclock, "time", made)
    # Fractions of the time of earlier tests in this thread would round differences.
    monkeypatch.setattr(workclock, "_free", workclock._Free())
    return made


def test_the_clocks_stand_still_for_what_is_not_counted(clock: Clock) -> None:
    begin = worked(), passed()
    clock.now += 1.0
    assert (worked() - begin[0], passed() - begin[1]) == pytest.approx((1.0, 2.0))

    def fail() -> None:
        with uncounted():
            clock.now += 10.0
            with uncounted():
                clock.now += 100.0
            clock.now += 1000.0
            raise ValueError("raised by the work")

    with pytest.raises(ValueError, match="raised by the work"):
        fail()
    assert (worked() - begin[0], passed() - begin[1]) == pytest.approx((1.0, 2.0))
    clock.now += 1.0
    assert (worked() - begin[0], passed() - begin[1]) == pytest.approx((2.0, 4.0))


class SlowHub(Hub):
    """A hub whose steps take a second each."""

    clock: Clock

    def step_once(self) -> None:
        self.clock.now += 1.0
        super().step_once()


def test_steps_cost_no_budget_by_any_protocol(clock: Clock) -> None:
    """By commands of AMBF and Pioneer clients (`Lockstep`) and by the service of ROS 2,
    including later notices.
    """

    async def main() -> None:
        sim = Simulation(step=0.01)
        hub = SlowHub(sim)
        hub.clock = clock
        lockstep = Lockstep(hub, 0.0)

        def tell() -> None:
            clock.now += 1.0

        lockstep.step_listeners.append(tell)
        inputs, turns = hub.turns, TimeShare(0.1)
        control = Control(sim)
        control.clock = hub
        ros = RosSimulator(
            "/botyard",
            TYPES,
            Messages(TYPES),
            control,
            lambda: Stamp.of_us(sim.snapshot.time_us),
            ROS,
        )
        serve = next(
            s.serve for s in ros.services() if s.type_name.endswith("StepSimulation")
        )
        request = TYPES.filled(
            "simulation_interfaces/srv/StepSimulation_Request", {"steps": 3}
        )
        lockstep.command("me", True, False, 5)
        tick = sim.tick

        def cost(act: Callable[[], object]) -> tuple[float, float]:
            before = turns.clock(), inputs.clock()
            act()
            return turns.clock() - before[0], inputs.clock() - before[1]

        assert cost(lambda: lockstep.command("me", True, True, 5)) == (0.0, 0.0)
        assert cost(lambda: lockstep.step("me", 5)) == (0.0, 0.0)
        assert cost(lambda: serve(request)) == (0.0, 0.0)
        assert sim.tick == tick + 13
        assert clock.now >= 13.0
        assert cost(tell) == (1.0, 2.0), "all else is counted"

    asyncio.run(main())


def test_messages_that_make_steps_let_others_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One piece of a connection may contain hundreds of them."""
    monkeypatch.setattr(ros1input, "TURN_TIME_S", -1.0)
    taken: list[int] = []
    turns = 0

    async def main() -> None:
        nonlocal turns
        node: Any = SimpleNamespace(name="/n", inputs={}, tell=lambda *_: None)
        heard = Subscriber(
            node,
            Input("/a", "std_msgs/UInt8", lambda m: taken.append(m.data), ""),
            TYPES,
            InputLimits(),
        )
        session = Subscription("/n", "/a", "std_msgs/UInt8", "*", "")
        data = wire.encode_header({"callerid": "/p", "md5sum": "*"}) + b"".join(
            wire.frame(bytes([k])) for k in range(50)
        )
        work = asyncio.ensure_future(heard._work_off(session, data, "1"))
        while not work.done():
            await asyncio.sleep(0)
            turns += 1

        await work

    asyncio.run(main())
    assert taken == list(range(50))
    assert turns >= 50


def test_the_clocks_are_those_of_the_system() -> None:
    begin, wall = worked(), passed()
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass
    assert worked() - begin >= 0.002
    assert passed() - wall >= 0.002
