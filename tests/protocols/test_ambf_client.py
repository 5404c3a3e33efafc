"""AMBF's client without a simulator: commands and their expiry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from botyard.clients.ambf import Client
from botyard.protocols.ambf.link import Frame, FrameReader, Kind
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.ambf.stepping import Stepping
from botyard.protocols.ros_messages.types import Types

TYPES = Types(more=definitions("2.0"))
TOPICS: list[tuple[int, str, str, str]] = [
    (1, "/ambf/env/box/State", "ambf_msgs/RigidBodyState", "state"),
    (2, "/ambf/env/box/Command", "ambf_msgs/RigidBodyCmd", "command"),
    (3, "/ambf/env/World/State", "ambf_msgs/WorldState", "state"),
    (4, "/ambf/env/World/Command", "ambf_msgs/WorldCmd", "command"),
]


class Bench:
    """A client with a standing clock, and a world that creates the requested objects."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.sim_time = 50.0, 0.0
        self.client = Client()
        self._sent: list[bytes] = []
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr(self.client, "_write", self._sent.append)
        data = json.dumps({"generation": "2.0", "topics": TOPICS}).encode()
        self.client._received(Frame(Kind.TOPICS, 0, data))
        self.client.refresh()
        self.box: Any = self.client.get_obj_handle("box")
        self.world = self.client.get_world_handle()
        self._sent.clear()

    def sent(self) -> Iterator[tuple[str, Any]]:
        """Return the bytes sent since the last call."""
        names = {number: (name, kind) for number, name, kind, _ in TOPICS}
        for found in FrameReader().feed_bytes(b"".join(self._sent)):
            name, kind = names[found.number]
            yield name.split("/")[3], TYPES.decode_ros1(found.data, kind)

        self._sent.clear()

    def pass_by(self, wall: float, simulated: float) -> None:
        self.now += wall
        self.sim_time += simulated
        self.state(0)

    def state(self, step: int) -> None:
        """Let a state of the world arrive."""
        fields = {"sim_time": self.sim_time, "sim_step": step}
        state = TYPES["ambf_msgs/WorldState"](
            **{**vars_of("ambf_msgs/WorldState"), **fields}
        )
        self.client._received(
            Frame(Kind.MESSAGE, 3, TYPES.encode_ros1(state, "ambf_msgs/WorldState"))
        )


def vars_of(kind: str) -> dict[str, Any]:
    blank = TYPES.blank(kind)
    return (
        {name: getattr(blank, name) for name in blank.__slots__}
        if hasattr(blank, "__slots__")
        else dict(vars(blank))
    )


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_a_force_that_is_sent_again_lasts_through_a_slow_stepped_loop(
    bench: Bench,
) -> None:
    bench.box.set_force(1.0, 0.0, 0.0)
    bench.world.enable_throttling(True)
    for _ in range(100):
        bench.box.send()
        bench.world.update()
        sent = list(bench.sent())
        assert [name for name, _ in sent] == ["box", "World", "World"]
        assert sent[0][1].wrench.force.x == 1.0
        bench.pass_by(1.0, 0.02)
        bench.client._repeat_all(bench.now)
        list(bench.sent())


def test_the_watchdog_of_a_stepped_loop_counts_simulated_time(bench: Bench) -> None:
    """The force of one call ends with the same step for any duration of the loop."""
    for wall in (0.0, 0.3):
        bench.box.set_force(1.0, 0.0, 0.0)
        bench.world.enable_throttling(True)
        ended = []
        for k in range(10):
            bench.world.update()
            ended += [(k, name, m) for name, m in bench.sent() if name == "box"]
            bench.pass_by(wall, 0.02)

        ((k, _, message),) = ended
        assert (k, message.wrench.force.x) == (6, 0.0), "0.12 s after the call"
        bench.world.enable_throttling(False)
        bench.world.update()
        list(bench.sent())


def test_where_time_passes_by_itself_the_watchdog_counts_wall_time(
    bench: Bench,
) -> None:
    bench.box.set_force(1.0, 0.0, 0.0)
    bench.pass_by(0.09, 5.0)
    assert not bench.box.expire(bench.now)
    bench.box.send()
    bench.pass_by(0.09, 5.0)
    assert not bench.box.expire(bench.now), "`send` renews it"
    bench.pass_by(0.02, 0.0)
    assert bench.box.expire(bench.now)
    bench.box.send()
    assert [m.wrench.force.x for _, m in bench.sent()] == [1.0, 0.0]


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("clock", [False, True])
def test_each_update_makes_its_steps_for_any_clock_of_an_earlier_client(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, clock: bool, is_held: bool
) -> None:
    """The first update does so, and updates between two of another client."""
    stepping, step = Stepping(0.0), 251
    stepping.command(is_held, clock, 1, bench.now)
    while is_held and stepping.may_step:
        stepping.stepped()

    def world_of(data: bytes) -> None:
        """Execute World commands as the simulator does, and send the state behind."""
        nonlocal step
        for found in FrameReader().feed_bytes(data):
            kind = next(kind for number, _, kind, _ in TOPICS if number == found.number)
            command = TYPES.decode_ros1(found.data, kind)
            stepping.command(
                command.enable_step_throttling,
                command.step_clock,
                command.n_skip_steps,
                bench.now,
            )
            while stepping.throttled and stepping.may_step:
                stepping.stepped()
                step += 1
        bench.state(step)

    monkeypatch.setattr(bench.client, "_write", world_of)
    bench.state(step)
    bench.world.enable_throttling(True)
    bench.world.set_num_step_skips(10)
    for k in range(1, 5):
        bench.world.update_and_wait(0.0)
        assert step == 251 + 10 * k
        # The other client leaves its value, and makes no step.
        stepping.command(True, k % 2 == 0, 0, bench.now)
