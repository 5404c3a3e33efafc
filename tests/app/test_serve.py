"""`botyard.serve` with real sockets, in a thread or an event loop:

offers, end and clean-up.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

import botyard
from botyard.app.asyncrunning import AsyncRunning
from botyard.app.running import Running
from botyard.app.serve import Serving
from botyard.clients.pioneer import PioneerClient
from botyard.control import (
    USER,
    AddRobot,
    AddRobots,
    Control,
    LoadMap,
    Operation,
    Remove,
    StepNow,
)
from botyard.control.later import promise
from botyard.errors import (
    ArgumentError,
    ModelError,
    NotNowError,
    PortError,
    UnknownNameError,
)
from botyard.protocols.webgui.messages import VERSION
from tests.ports import free_port
from tests.waiting import PATIENCE, wait


def world() -> botyard.Simulation:
    """An empty plane with two robots, whose steps take no time."""
    sim = botyard.Simulation(seed=1, step=0.01)
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    sim.add_robot("amigo", "bob", pose=(3.0, 0.0, 0.0))
    return sim


def serve(sim: botyard.Simulation | None = None, **options: Any) -> Serving:
    return botyard.serve(sim or world(), **{"port": 0, "page": False, **options})


def is_open(address: tuple[str, int]) -> bool:
    with socket.socket() as s:
        s.settimeout(PATIENCE)
        return s.connect_ex(address) == 0


def surroundings() -> tuple[Any, ...]:
    """Process-wide state that a library must not change."""
    handlers = [
        logging.getLogger(name).handlers[:]
        for name in (None, "botyard", "uvicorn", "asyncio")
    ]
    signals = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    children = [
        c
        for path in Path("/proc/self/task").glob("*/children")
        for c in path.read_text().split()
    ]
    return handlers, signals, children, set(threading.enumerate())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = surroundings()
    yield
    assert surroundings() == before


# -- in a separate thread


def test_all_ports_are_open_when_the_block_begins_and_closed_when_it_is_left() -> None:
    sim = world()
    with serve(sim, page=True, metrics_port=0, gui_port=0) as running:
        assert isinstance(running, Running) and running.sim is sim
        assert set(running.ports) == {"ann", "bob"}
        assert running.page is not None and "#token=" in running.page
        assert running.metrics is not None
        with PioneerClient(*running.ports["bob"]) as client:
            assert client.subclass == "amigo"
        with urllib.request.urlopen(
            running.page.partition("#")[0] + "healthz", timeout=PATIENCE
        ) as answer:
            assert json.load(answer)["robots"] == 2

        host, _, token = running.page.removeprefix("http://").partition("/#token=")
        with connect(f"ws://{host}/ws", open_timeout=PATIENCE) as page:
            page.send(
                json.dumps(
                    {"type": "hello", "token": token, "version": VERSION, "view": {}}
                )
            )
            assert json.loads(page.recv(PATIENCE))["type"] == "welcome"

        addresses = [
            *running.ports.values(),
            running.metrics,
            (running.ports["ann"].host, int(host.rpartition(":")[2])),
        ]
        assert running.is_running and running.status is None
        wait(lambda: sim.tick > 3, what="time runs by itself")

    assert not any(map(is_open, addresses))
    assert (running.is_running, running.status) == (False, 0)
    with pytest.raises(NotNowError, match="has ended"):
        _ = running.ports
    before = sim.tick
    sim.step()
    assert sim.tick == before + 1, "the world is the program's again"


def test_a_client_drives_while_the_program_steps() -> None:
    sim = world()
    with (
        serve(sim, interval=0.002) as running,
        PioneerClient(*running.ports["ann"]) as client,
    ):
        client.enable()
        client.vel(400)
        wait(lambda: client.update() and client.x_mm > 20)
        running.pause()
        assert running.is_paused
        tick, where = running.call(lambda: (sim.tick, sim.robots["ann"].truth.x))
        running.step(1500)
        assert running.call(lambda: sim.tick) == tick + 1500, (
            "more than one operation may make"
        )
        assert running.call(lambda: sim.robots["ann"].truth.x) > where
        running.resume()
        assert not running.is_paused
        wait(lambda: sim.tick > tick + 1500)


def test_operations_are_done_in_the_users_name() -> None:
    sim = world()
    with serve(sim, read_only=True) as running:
        running.do(AddRobot(model="p3dx", robot="eve"))
        wait(lambda: "eve" in running.ports, what="it gets a port, too")
        with PioneerClient(*running.ports["eve"]):
            pass
        running.pause()
        running.do(Remove(names=["eve"]))
        assert "eve" not in running.ports
        with pytest.raises(UnknownNameError, match="nobody"):
            running.do(Remove(names=["nobody"]))
        running.resume()
        with pytest.raises(NotNowError, match="expected a paused simulation"):
            running.do(StepNow(steps=1))
        with pytest.raises(ArgumentError, match="operation: expected a Operation"):
            running.do("pause")  # type: ignore[arg-type]

    assert "eve" not in sim.robots


def test_calls_are_made_in_the_simulators_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve() as running:
        assert running.call(threading.current_thread).name == "botyard"
        assert running.call(divmod, 7, 2) == (3, 1)
        assert running.call(sorted, [1, 2], reverse=True) == [2, 1]
        with pytest.raises(ZeroDivisionError):
            running.call(lambda: 1 / 0)
        with pytest.raises(SystemExit):
            running.call(exit)
        assert running.is_running, "it was the caller's error"
        assert (
            running.call(lambda: running.call(lambda: running.ports)) == running.ports
        ), "from within, too"
        running.call(running.pause)
        with (  # noqa: PT012
            monkeypatch.context() as patch,
            pytest.raises(NotNowError, match="own thread cannot wait for it"),
        ):
            patch.setattr(
                Control,
                "do",
                lambda *_: promise(),
                # These operations take time.
            )
            running.call(running.do, StepNow(steps=1000))

        running.call(running.stop)
        assert running.wait(PATIENCE) == 0
        with pytest.raises(NotNowError, match="has ended"):
            running.call(print)


def test_who_waits_when_the_end_comes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException] = []

    def ask() -> None:
        try:
            running.do(StepNow(steps=1))
        except NotNowError as error:
            told.append(error)

    # This operation never ends.
    monkeypatch.setattr(Control, "do", lambda *_: promise())
    with serve() as running:
        asker = threading.Thread(target=ask)
        asker.start()
        wait(lambda: running._waiting)

    asker.join(PATIENCE)
    assert [str(error) for error in told] == [
        "the simulator ended before this call was done"
    ]


def test_who_waits_for_work_in_pieces_when_the_end_comes_is_told() -> None:
    told: list[str] = []

    def ask(operation: Operation[Any]) -> None:
        try:
            running.do(operation)
        except NotNowError as error:
            told.append(str(error))

    sim = world()
    with serve(sim) as running:
        running.pause()
        # Slow each step down: 1000 steps then take 3 s.
        sim.before_step(lambda: time.sleep(0.003))
        askers = [
            threading.Thread(target=ask, args=(one,))
            for one in (StepNow(steps=1000), StepNow(steps=1000))
        ]
        for asker in askers:
            asker.start()
        wait(lambda: len(running._waiting) == 2)
        wait(lambda: sim.tick > 20)

    for asker in askers:
        asker.join(PATIENCE)
    assert told == ["the simulator ended before this call was done"] * 2


def test_a_call_in_the_moment_of_the_end() -> None:
    with serve() as running:
        loop = running._loop
    assert loop is not None
    # Put the closed loop back, as a call sees it that comes in the moment of the end.
    running._loop = loop
    with pytest.raises(NotNowError, match="has ended"):
        running.call(print)
    assert not running._waiting


def test_an_error_in_the_block_closes_and_comes_out() -> None:
    with pytest.raises(KeyError, match="mine"), serve() as running:  # noqa: PT012
        addresses = list(running.ports.values())
        raise KeyError("mine")

    assert not any(map(is_open, addresses))


class Fault(Exception):
    """Raise an error in a callback that runs before steps."""


def failing(after: int) -> botyard.Simulation:
    sim = world()

    def act() -> None:
        if sim.tick >= after:
            raise Fault("broken")

    sim.before_step(act)
    return sim


def test_an_error_of_the_simulator_is_raised_once() -> None:
    with pytest.raises(Fault, match="broken"), serve(failing(2)) as running:  # noqa: PT012
        wait(lambda: not running.is_running)
        assert running.status is None

    with pytest.raises(Fault), serve(failing(2)) as running:
        running.wait()
    with serve(failing(2)) as running, pytest.raises(Fault):
        running.wait()
    with pytest.raises(Fault):
        serve(failing(2)).run()
    with pytest.raises(KeyError) as caught, serve(failing(2)) as running:  # noqa: PT012
        wait(lambda: not running.is_running)
        raise KeyError("mine")

    assert caught.value.__notes__ == ["the simulator had ended with Fault: broken"]


def test_moments_are_kept_for_the_page() -> None:
    """Moments are kept for `history` seconds, and not without a page.

    Moments that a program keeps are left alone.
    """
    sims = [world() for _ in range(4)]
    sims[3].history.keep(minutes=1.0)
    with (
        serve(sims[0], page=True) as running,
        serve(sims[1], page=True, history=0.0),
        serve(sims[2]),
        serve(sims[3], page=True),
    ):
        assert [sim.history.is_on for sim in sims] == [True, False, False, True]
        running.resume()
        wait(lambda: len(sims[0].history.moments) > 3)

    assert [sim.history.is_on for sim in sims] == [False, False, False, True]


def test_several_run_at_once() -> None:
    with serve(page=True) as one, serve(page=True) as two, serve() as three:
        every = [a for running in (one, two, three) for a in running.ports.values()]
        assert len(set(every)) == 6 and one.page != two.page
        two.pause()
        assert not one.is_paused
        for address in every:
            with PioneerClient(*address):
                pass


def test_a_world_is_served_by_one() -> None:
    sim = world()
    with serve(sim) as running:
        with pytest.raises(NotNowError, match="already being served"), serve(sim):
            raise AssertionError
        assert running.is_running

    with serve(sim):
        pass


CHANGES = {
    "step": lambda sim: sim.step(),
    "settle": lambda sim: sim.settle(),
    "command": lambda sim: sim.robots["ann"].command(v=0.1),
    "fleet": lambda sim: sim.fleet.command(v=0.1),
    "hold": lambda sim: sim.hold("ann"),
    "put": lambda sim: sim.put("ann", (1.0, 1.0, 0.0)),
    "add_robot": lambda sim: sim.add_robot("p3dx", "eve"),
    "remove_robot": lambda sim: sim.remove_robot("bob"),
    "replace_scene": lambda sim: sim.replace_scene(botyard.load_scene("office")),
    "restore": lambda sim: sim.restore(b""),
    "set_dynamics": lambda sim: sim.masses.set_dynamics("ann", None),
    "attach": lambda sim: sim.attach("ann", "bob"),
    "detach": lambda sim: sim.detach("bob"),
    "save_state": lambda sim: sim.save_state(),
    "clone": lambda sim: sim.clone(),
    "digest": lambda sim: sim.digest(),
}


def test_no_other_thread_may_change_or_save_a_world_that_is_served() -> None:
    """Adding and removing bodies reallocates the arrays that a kernel in the
    simulator's thread uses.
    """
    sim = world()
    sim.attach("ann", "bob")
    with serve(sim) as running:
        for change in CHANGES.values():
            with pytest.raises(NotNowError, match="its own thread runs it"):
                change(sim)

        running.call(CHANGES["detach"], sim)
        running.call(CHANGES["add_robot"], sim)
        assert sim.time >= 0.0 and set(sim.robots) == {"ann", "bob", "eve"}

    for name in ("command", "step", "remove_robot"):
        CHANGES[name](sim)


def test_what_is_read_or_drawn_beside_the_steps_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fixture checks that neither the thread nor the process is left."""
    monkeypatch.chdir(tmp_path)
    before = sys.getswitchinterval()
    with serve() as one, serve() as two:
        for running in (one, two):
            future = running.call(
                lambda running=running: running.control.do(USER, LoadMap(map="office"))
            )
            assert not future.done()

    assert sys.getswitchinterval() == before, "of the whole process"


def test_in_a_notebook_there_is_a_running_loop_already() -> None:
    async def cell() -> int:
        with serve() as running:
            return running.call(lambda: len(running.ports))

    assert asyncio.run(cell()) == 2


def test_it_can_be_started_without_a_block_and_used_again() -> None:
    serving = serve()
    running = serving.start()
    with pytest.raises(NotNowError, match="already running"):
        serving.start()
    assert running.wait(0.0) is None
    running.stop()
    running.stop()
    with serving as again:
        assert set(again.ports) == {"ann", "bob"}
    with pytest.raises(ArgumentError, match="timeout"):
        running.wait(-1.0)


def test_it_runs_until_it_ends() -> None:
    sim = world()
    assert serve(sim, fast=True, duration=0.5).run() == 0
    assert sim.time == pytest.approx(0.5)


def test_ctrl_c_is_a_good_end() -> None:
    serving = serve()

    def interrupt() -> None:
        wait(lambda: serving._running is not None and serving._running._ready.is_set())
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert serving.run() == 0
    thread.join(PATIENCE)


def test_a_controller_that_does_not_return_is_ended_with_the_simulator(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("botyard.app.running.RETURN_GRACE_S", 0.1)
    begun = threading.Event()

    def loop(robot: botyard.Robot) -> None:
        begun.set()
        while True:
            pass

    sim = world()
    sim.robots["bob"].set_controller(loop)
    with serve(sim) as running:
        begun.wait(PATIENCE)
    assert not running.is_running and running.status == 0
    assert (
        "the controller of robot bob ends" in caplog.text
        and "Unreturned: it did not return" in caplog.text
    )


def test_what_keeps_it_from_beginning_is_raised_and_nothing_is_open() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(PortError, match=r"choose another first port with port$"),
            serve(port=port),
        ):
            raise AssertionError

        with (
            pytest.raises(
                PortError, match="choose another port with gui_port, or page=False"
            ),
            serve(page=True, gui_port=port),
        ):
            raise AssertionError

        async def alike() -> None:
            before = asyncio.all_tasks()
            with pytest.raises(PortError):
                async with serve(port=port):
                    raise AssertionError

            assert asyncio.all_tasks() == before

        asyncio.run(alike())

    with pytest.raises(ModelError), serve(robots=["no-such-model"]):
        raise AssertionError


def test_neighbouring_ports_as_on_the_command_line() -> None:
    port = free_port(3)
    with serve(port=port, robots=["p3dx:eve"]) as running:
        assert {name: a.port for name, a in running.ports.items()} == {
            "ann": port,
            "bob": port + 1,
            "eve": port + 2,
        }


def test_robots_factories_and_who_drives() -> None:
    sim = world()
    sim.core.unserve(["bob"])
    with serve(
        sim,
        robots=["amigo"],
        start=(8.0, 8.0, 0.0),
        factories=["p3dx"],
        controller="wander",
    ) as running:
        assert set(running.ports) == {"ann", "amigo"}, "bob is not for clients"
        assert running.call(lambda: set(sim.core.programs.by_robot)) == {"ann", "amigo"}
        assert sim.robots["amigo"].truth.x == pytest.approx(8.0, abs=0.5)
        [factory] = running.factories
        with PioneerClient(*factory):
            wait(lambda: len(sim.robots) == 4)
        wait(lambda: len(sim.robots) == 3)


def test_a_ros_master_in_the_simulator() -> None:
    import xmlrpc.client

    port = free_port(1)
    with serve(ros_master=f"embedded:{port}", ambf="master", ambf_port=0) as running:
        assert running.ambf is not None and is_open(running.ambf)
        with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}") as master:

            def topics() -> list[str]:
                answer: Any = master.getSystemState("/test")
                return [topic for topic, _ in answer[2][0]]

            assert any(topic.startswith("/ann/") for topic in topics()), (
                "all are there when it is ready"
            )


# -- in the event loop of the program


def test_in_the_event_loop_of_the_program() -> None:
    sim = world()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        before, handler = asyncio.all_tasks(), loop.get_exception_handler()
        async with serving as running:
            assert isinstance(running, AsyncRunning)
            _, writer = await asyncio.open_connection(*running.ports["ann"])
            assert await running.wait(0.0) is None
            await running.pause()
            tick = sim.tick
            await running.step(1200)
            assert (sim.tick, running.is_paused) == (tick + 1200, True)
            await running.do(AddRobot(model="p3dx", robot="eve"))
            await running.resume()
            while "eve" not in running.ports:
                await asyncio.sleep(0.001)
            addresses = list(running.ports.values())
            assert running.is_running and running.status is None
            with pytest.raises(NotNowError, match="already running"):
                async with serving:
                    raise AssertionError

            with pytest.raises(NotNowError, match="already running"):
                serving.start()

        writer.close()
        assert not running.is_running and running.status == 0
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before
        assert loop.get_exception_handler() is handler
        assert not any(map(is_open, addresses))
        with pytest.raises(NotNowError, match="has ended"):
            await running.pause()

    serving = serve(sim, page=True, metrics_port=0, log_timing_stats=1.0)
    asyncio.run(main())


def test_errors_in_the_event_loop() -> None:
    async def main() -> None:
        with pytest.raises(Fault):  # noqa: PT012
            async with serve(failing(2)) as running:
                while running.is_running:
                    await asyncio.sleep(0.001)
                assert running.status is None

        async with serve(failing(2)) as running:
            with pytest.raises(Fault):
                await running.wait()

        with pytest.raises(KeyError) as caught:  # noqa: PT012
            async with serve(failing(2)) as running:
                await asyncio.wait([running._task])
                raise KeyError("mine")

        assert caught.value.__notes__ == ["the simulator had ended with Fault: broken"]
        async with serve(fast=True, duration=0.1) as running:
            assert await running.wait() == 0
        async with serve() as running:
            running.stop()
            assert await running.wait() == 0

    asyncio.run(main())


def test_who_is_cancelled_leaves_nothing_either() -> None:
    async def main() -> None:
        before = asyncio.all_tasks()

        async def work() -> None:
            async with serve(page=True):
                here.set()
                await asyncio.sleep(PATIENCE)

        here = asyncio.Event()
        task = asyncio.create_task(work())
        await here.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before

    asyncio.run(main())


# -- keywords


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"prot": 9000}, 'serve: unknown option prot; did you mean "port"?'),
        ({"no_gui": True}, 'serve: unknown option no_gui; did you mean "page"?'),
        ({"update_interval": 20}, 'did you mean "interval"?'),
        ({"seed": 1}, r"serve: seed is not a keyword: Simulation\(seed=…\)"),
        ({"map": "office"}, "map is not a keyword: Simulation.load"),
        ({"robot_factory": ["p3dx"]}, 'did you mean "factories"?'),
        (
            {"log_file": "x"},
            "log_file is not a keyword: a program sets up its own logging",
        ),
        ({"daemonize": True}, "only on the command line"),
        (
            {"port": "8101"},
            r"port: expected a whole number from 0 to 65535, found '8101' \(str\)",
        ),
        ({"port": 65536}, "port: expected"),
        (
            {"port": 65535, "robots": ["p3dx", "amigo"]},
            "2 robots do not fit on the ports from 65535",
        ),
        ({"page": 1}, "page: expected True or False"),
        ({"interval": 0.0}, "interval: expected a number from 0.001 to 60"),
        ({"robots": "p3dx"}, "robots: expected a list"),
        ({"robots": [""]}, r"robots\[0\]: expected MODEL or MODEL:NAME"),
        ({"start": "somewhere"}, "start: expected one of outside, random"),
        ({"start": (1.0, 2.0)}, "start: expected three numbers"),
        ({"ros_names": "ros"}, "ros_names: expected one of"),
        ({"max_read": ["robts=1"]}, r"max_read\[0\]: "),
        ({"gui_token": "ä\n"}, "gui_token: expected"),
        ({"ros_master": "embedded:x"}, "ros_master: expected a URI"),
        (
            {"page": True, "gui_token": "off", "gui_address": "0.0.0.0"},
            "gui_token off: works only on this computer; with gui_address",
        ),
    ],
)
def test_keywords_that_make_no_sense(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        serve(**options)


def test_a_world_is_needed() -> None:
    with pytest.raises(ArgumentError, match="sim: expected a Simulation"):
        botyard.serve("office")  # type: ignore[arg-type]


def test_keywords_are_told() -> None:
    signature = inspect.signature(botyard.serve)
    assert signature.parameters["port"].default == 8101
    assert (
        signature.parameters["page"].default,
        signature.parameters["discovery"].default,
    ) == (True, False)
    text = inspect.getdoc(botyard.serve) or ""
    assert all(f"\n{word} : " in text for word in signature.parameters)


def test_robots_that_are_added_have_their_ports_when_that_is_answered() -> None:
    sim = botyard.Simulation(seed=1)
    with botyard.serve(sim, port=0, page=False) as running:
        (name,) = running.do(AddRobot(model="p3at", robot="late")).robots
        assert running.ports[name].port > 0
        many = running.do(AddRobots(model="amigo", number=3)).robots
        assert all(running.ports[n].port > 0 for n in many)
