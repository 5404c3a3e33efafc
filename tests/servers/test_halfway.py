"""Operations abandoned half way:

awaited futures, ports being opened, interfaces being switched.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from botyard.app.compose import Parts, compose
from botyard.control import USER, AddRobot, Caller, Remove, SendMap, SwitchInterface
from botyard.control.later import promise
from botyard.errors import NotNowError, PortError, WorldError
from botyard.geometry import Pose
from botyard.interfaces.interface import Switch
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.model.scene import Scene
from botyard.model.world import PlacedRobot, Program, World
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.servers.jobs.background import Background
from botyard.servers.jobs.maploading import MapLoader
from botyard.sim.journal import Entry, ReplaceScene
from botyard.sim.simulation import Simulation

MAP = b"2D-Map\nLineMinPos: 0 0\nLineMaxPos: 1000 1000\nNumLines: 1\nLINES\n0 0 1000 1000\n"
CLIENT = Caller("pioneer", key="a client")


def run(act: Callable[[Parts], Awaitable[None]], **options: Any) -> None:
    """Call `act` with a simulator of two robots on free ports."""

    async def main() -> None:
        sim = Simulation(seed=1)
        parts = compose(sim, port=0, limits=None, **options)
        parts.robot_servers.add("p3dx", "ann", Pose())
        parts.robot_servers.add("p3dx", "bob", Pose(3.0, 0.0, 0.0))
        try:
            await act(parts)
        finally:
            parts.close()
            await parts.hub.background.aclose()

    asyncio.run(main())


# -- futures


def test_work_that_is_given_up_tells_who_waits_for_it() -> None:
    async def main() -> None:
        begun: list[str] = []

        async def slow() -> None:
            begun.append("slow")
            await asyncio.sleep(1000.0)

        def portions() -> Generator[Future[Any], None, None]:
            begun.append("portions")
            yield promise()

        background = Background()
        before = (
            background.future(slow(), "what has begun"),
            background.portions(portions(), "what has begun"),
        )
        await asyncio.sleep(0)
        after = (
            background.future(slow(), "what has not"),
            background.portions(portions(), "what has not"),
        )
        await background.aclose()
        assert begun == ["slow", "portions"]
        for future in (*before, *after):
            with pytest.raises(
                NotNowError, match="the simulator ended before this call was done"
            ):
                future.result(0)

    asyncio.run(main())


class Slow:
    """A host whose background jobs finish when the test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], Any], Callable[[Any, Any], None]]] = []

    def run_in_background(
        self, job: Callable[[], Any], done: Callable[[Any, Any], None]
    ) -> None:
        self.begun.append((job, done))

    def finish(self) -> None:
        for job, done in self.begun:
            done(job(), None)


def test_maps_that_are_read_or_wait_when_the_end_comes() -> None:
    host, sim = Slow(), Simulation(seed=1)
    maps = MapLoader(sim, host, limits=None)
    wanted = [
        maps.load_bytes("a.map", MAP, asker) for asker in ("ann", "bob", "eve", "eve")
    ]
    assert len(host.begun) == 2
    scene = sim.scene
    maps.close()
    for future in wanted:
        with pytest.raises(
            NotNowError, match="the simulator ended before this call was done"
        ):
            future.result(0)

    host.finish()
    assert sim.scene is scene
    with pytest.raises(NotNowError, match="the simulator has ended"):
        maps.load("a.map")


def test_the_journal_names_who_has_asked_for_a_map(tmp_path: Path) -> None:
    async def act(parts: Parts) -> None:
        heard: list[Entry] = []
        parts.control.sim.core.journal.listen(heard.append)
        two = [
            parts.control.do(Caller(source), SendMap(map="a.map", data=MAP))
            for source in ("page", "ros", "pioneer")
        ]
        for future in two:
            assert await asyncio.wrap_future(future)
        assert sorted(
            e.source for e in heard if isinstance(e.change, ReplaceScene)
        ) == ["page", "pioneer", "ros"]

    run(act)


# -- ports


def test_a_port_that_is_opened_twice_at_once_or_closed_meanwhile() -> None:
    async def act(parts: Parts) -> None:
        server = parts.robot_servers.servers["ann"]
        made: list[asyncio.Server] = []
        loop = asyncio.get_running_loop()
        create = loop.create_server

        async def create_server(*args: Any, **options: Any) -> asyncio.Server:
            made.append(await create(*args, **options))
            return made[-1]

        loop.create_server = create_server  # type: ignore[assignment, method-assign]
        await asyncio.gather(*(server.listen("127.0.0.1", 0) for _ in range(3)))
        assert [one.is_serving() for one in made].count(True) == 1
        assert server.address[1]
        server.close()
        opening = asyncio.ensure_future(server.listen("127.0.0.1", 0))
        await asyncio.sleep(0)
        server.close()
        await opening
        assert len(made) == 4
        assert not server.is_open
        assert not any(one.is_serving() for one in made)

    run(act)


def test_a_robot_that_goes_while_its_port_is_opened_leaves_none() -> None:
    async def act(parts: Parts) -> None:
        added = parts.control.do(USER, AddRobot(model="p3dx", robot="eve")).result()
        server = parts.robot_servers.servers["eve"]
        await asyncio.sleep(0)
        parts.control.do(USER, Remove(names=("eve",)))
        await asyncio.wrap_future(added.served)
        assert not server.is_open

    run(act)


# -- interfaces


def test_an_interface_is_switched_by_one_at_a_time() -> None:
    said: list[str] = []

    async def act(parts: Parts) -> None:
        async def start() -> None:
            said.append("starts")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            said.append("started")

        async def stop() -> None:
            said.append("stopped")

        parts.robot_servers.interfaces["test"] = Switch("of a test", False, start, stop)
        switched = [
            parts.control.do(USER, SwitchInterface(interface="test", on=on))
            for on in (True, True, False)
        ]
        await asyncio.gather(*map(asyncio.wrap_future, switched))
        assert said == ["starts", "started", "stopped"]
        with pytest.raises(WorldError, match=r'there is no interface "a\\nb"'):
            await parts.robot_servers.interfaces.switch("a\nb", True)

    run(act)


def test_ports_of_robots_are_opened_all_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(parts: Parts) -> None:
        robot_servers = parts.robot_servers
        robot_servers.interfaces["pioneer"] = Switch(
            "of a test", False, robot_servers.open_ports, robot_servers.close_ports
        )

        async def taken(host: str, port: int) -> None:
            raise PortError("taken")

        monkeypatch.setattr(robot_servers.servers["bob"], "listen", taken)
        with pytest.raises(PortError):
            await robot_servers.interfaces.switch("pioneer", True)
        assert (
            not robot_servers.interfaces["pioneer"].on and not robot_servers.is_serving
        )
        assert not any(server.is_open for server in robot_servers.all_servers)

    run(act)


def test_robots_of_a_map_get_ports_although_a_program_is_wrong() -> None:
    async def act(parts: Parts) -> None:
        robot_servers = parts.robot_servers
        spec = robot_servers.find_model("p3dx")
        wrong = Program(name="wander", options={"no such option": 1})
        robots = (
            PlacedRobot(spec=spec, name="eve", pose=Pose(5.0, 5.0, 0.0), program=wrong),
            PlacedRobot(spec=spec, name="joe", pose=Pose(7.0, 5.0, 0.0)),
        )
        robot_servers.add_robots_of(World(scene=Scene(), robots=robots))
        assert {"eve", "joe"} <= set(robot_servers.servers)
        while not all(robot_servers.servers[name].is_open for name in ("eve", "joe")):
            await asyncio.sleep(0)

    run(act)


# -- passive viewers


def test_an_onlooker_that_goes_lets_go_of_nothing() -> None:
    async def act(parts: Parts) -> None:
        sim = parts.control.sim
        desk = PageRequests(
            parts.hub, parts.robot_servers, parts.maps, ViewSource(parts.hub)
        )
        looker, owner = (Viewer(desk, Tokens("all", "look"), 0.0) for _ in range(2))
        for viewer, token in ((looker, "look"), (owner, "all")):
            viewer.receive_text(
                json.dumps(
                    {
                        "type": "hello",
                        "token": token,
                        "version": msg.VERSION,
                        "view": {},
                    }
                ),
                0.0,
            )
            viewer.receive_text(
                json.dumps({"type": "hold", "id": 7, "names": ["ann"], "on": True}), 0.0
            )

        told = [
            [json.loads(text) for text in viewer.texts_to_send()][-1]
            for viewer in (looker, owner)
        ]
        assert [answer["type"] for answer in told] == ["error", "ok"], told
        assert told[0]["message"] == "this page may only watch"
        desk.left(looker)
        sim.step()
        assert sim.snapshot.state.held[sim.snapshot.rows["ann"]] == 1
        desk.left(owner)
        sim.step()
        assert sim.snapshot.state.held[sim.snapshot.rows["ann"]] == 0

    run(act)
