"""Page, ROS, AMBF and ports of Pioneer clients follow robots that `restore` adds,
removes or renames.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from botyard.app.compose import Parts, compose
from botyard.control import USER, RenameRobots
from botyard.control.census import TopicFacts
from botyard.errors import NotNowError
from botyard.formats.models import find_robot
from botyard.interfaces.ambf.ambf import Ambf
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.topiclook import GraphTopics
from botyard.model.world import Program
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.pioneer.packet import frame
from botyard.protocols.ros_messages.types import Types, types
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.sim.simulation import Simulation
from tests.servers.test_rosgraph import Recorder
from tests.waiting import PATIENCE

Act = Callable[[Parts], Awaitable[None]]


def world() -> Simulation:
    sim = Simulation(seed=1)
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(3.0, 0.0, 0.0))
    return sim


def run(act: Act, program: Program | None = None) -> None:
    async def main() -> None:
        parts = compose(world(), port=0, program=program)
        parts.robot_servers.adopt()
        running = asyncio.ensure_future(parts.hub.run())
        try:
            async with asyncio.timeout(PATIENCE):
                await act(parts)
        finally:
            parts.hub.stop()
            await running
            parts.close()
            await parts.ended()

    asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


@pytest.fixture(params=["time goes on", "time stands still"])
def still(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "time stands still")


def test_ports_of_pioneer_clients(still: bool) -> None:
    """A restored robot gets a port; a removed one loses it, and its client is
    disconnected.

    The others keep theirs.
    """

    async def act(parts: Parts) -> None:
        robot_servers, sim = parts.robot_servers, parts.hub.sim
        if still:
            parts.hub.pause()
        state = sim.save_state()
        robot_servers.remove(["bob"])
        robot_servers.add("p3dx", "eve")
        await robot_servers.open()
        ports = {name: robot_servers.port_of(name) for name in ("ann", "eve")}
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["eve"])
        writer.write(frame(0))
        assert await reader.read(1)
        sim.restore(state)
        await until(
            lambda: (
                set(robot_servers.servers) == {"ann", "bob"}
                and robot_servers.port_of("bob")
            )
        )
        assert robot_servers.port_of("ann") == ports["ann"]
        assert robot_servers.servers["bob"].robot is sim.robots["bob"]
        # Read until the server has closed the connection.
        await reader.read()
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", ports["eve"])
        _, writer = await asyncio.open_connection(
            "127.0.0.1", robot_servers.port_of("bob")
        )
        writer.close()

    run(act)


def test_a_robot_that_comes_back_later_gets_its_port_again(still: bool) -> None:
    """Programs know the port; another robot added meanwhile gets another one."""

    async def act(parts: Parts) -> None:
        robot_servers, sim = parts.robot_servers, parts.hub.sim
        if still:
            parts.hub.pause()
        sim.history.keep()
        time = sim.time
        await robot_servers.open()
        ports = {name: robot_servers.port_of(name) for name in ("ann", "bob")}
        robot_servers.remove(["bob"])
        sim.remove_robots(["ann"])
        await until(lambda: not robot_servers.servers)
        sim.step(20)
        sim.history.go_on_from(time)
        await until(lambda: all(map(robot_servers.port_of, ("ann", "bob"))))
        assert {name: robot_servers.port_of(name) for name in ("ann", "bob")} == ports

    run(act)


def test_a_renamed_robot_keeps_its_port(still: bool) -> None:
    """It keeps its name while a client is connected to it."""

    async def act(parts: Parts) -> None:
        robot_servers, control = parts.robot_servers, parts.control
        if still:
            parts.hub.pause()
        await robot_servers.open()
        ports = {name: robot_servers.port_of(name) for name in ("ann", "bob")}
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["bob"])
        writer.write(frame(0))
        assert await reader.read(1)
        swap = RenameRobots(names=(("ann", "eve"), ("bob", "ann")))
        with pytest.raises(
            NotNowError, match=r"bob keeps its name: a client .*is conn"
        ):
            control.do(USER, swap)
        assert list(parts.hub.sim.robots) == ["ann", "bob"]
        writer.close()
        await until(lambda: not list(robot_servers.uses_of(["bob"])))
        control.do(USER, swap)
        await until(lambda: set(robot_servers.servers) == {"eve", "ann"})
        await until(lambda: all(map(robot_servers.port_of, ("eve", "ann"))))
        assert robot_servers.port_of("eve") == ports["ann"]
        assert robot_servers.port_of("ann") == ports["bob"]
        assert robot_servers.servers["ann"].robot is parts.hub.sim.robots["ann"]

    run(act)


def test_a_robot_keeps_its_name_while_a_node_reads_its_topics() -> None:
    """Clients and topics are listed once for all robots: the event loop waits for it."""

    class Topics(GraphTopics):
        lists = 0

        def topics(self) -> Iterator[TopicFacts]:
            self.lists += 1
            return super().topics()

    async def act(parts: Parts) -> None:
        census, counts = parts.hub.census, []
        graph, paper = (
            RosGraph(parts.hub, parts.control, parts.maps.cells, types()),
            Recorder(),
        )
        graph.add(paper)
        topics = census.topics = Topics(graph)
        census.add(lambda: counts.append(1) or ())
        paper["/bob/odom"].reader_count = 1
        rename = RenameRobots(names=(("ann", "anna"), ("bob", "bert")))
        with pytest.raises(NotNowError, match="bob keeps its name: a ROS node reads"):
            parts.control.do(USER, rename)
        paper["/bob/odom"].reader_count = 0
        parts.control.do(USER, rename)
        assert list(parts.hub.sim.robots) == ["anna", "bert"]
        assert (topics.lists, len(counts)) == (2, 2)
        graph.close()

    run(act)


def test_a_renamed_robot_does_not_get_the_default_controller(still: bool) -> None:
    """Its controller was ended, or has crashed."""

    async def act(parts: Parts) -> None:
        robot_servers, sim = parts.robot_servers, parts.hub.sim
        if still:
            parts.hub.pause()
        await robot_servers.open()
        assert sim.core.programs.by_robot.keys() == {"ann", "bob"}
        sim.robots["ann"].set_controller(None)
        sim.core.programs.crash("bob")
        parts.control.do(USER, RenameRobots(names=(("ann", "anna"), ("bob", "bert"))))
        # Robots that other code adds are served after the renaming was followed.
        sim.add_robot("p3dx", "eve", pose=(9.0, 0.0, 0.0))
        await until(lambda: set(robot_servers.servers) == {"anna", "bert", "eve"})
        assert sim.core.programs.by_robot.keys() == {"eve"}
        assert sim.core.programs.crashed.keys() == {"bert"}

    run(act, Program(name="wander"))


def test_another_robot_of_the_same_name_gets_the_port() -> None:
    """A state may have another model under an existing name."""

    async def act(parts: Parts) -> None:
        robot_servers, sim = parts.robot_servers, parts.hub.sim
        state = sim.save_state()
        robot_servers.remove(["bob"])
        robot_servers.add("amigo", "bob", None)
        await robot_servers.open()
        port, before = robot_servers.port_of("bob"), robot_servers.servers["bob"]
        sim.restore(state)
        await until(
            lambda: (
                robot_servers.servers["bob"] is not before
                and robot_servers.port_of("bob")
            )
        )
        assert robot_servers.port_of("bob") == port
        assert robot_servers.servers["bob"].robot is sim.robots["bob"]

    run(act)


def test_robots_that_clients_may_not_reach_get_none() -> None:
    async def act(parts: Parts) -> None:
        robot_servers, sim = parts.robot_servers, parts.hub.sim
        await robot_servers.open()
        sim.core.unserve(["bob"])
        sim.add_robot("box", "crate", pose=(6.0, 0.0, 0.0))
        await until(lambda: "bob" not in robot_servers.servers)
        sim.add_robot("p3dx", "eve", pose=(9.0, 0.0, 0.0))
        await until(lambda: robot_servers.port_of("eve"))
        assert set(robot_servers.servers) == {"ann", "eve"}

    run(act)


def test_robots_of_a_factory_are_its_own() -> None:
    """They have no port except the factory's.

    When `restore` removes one, its client is disconnected.
    """

    async def act(parts: Parts) -> None:
        robot_servers, sim = parts.robot_servers, parts.hub.sim
        factory = robot_servers.add_factory("p3dx")
        await robot_servers.open()
        state = sim.save_state()
        reader, writer = await asyncio.open_connection("127.0.0.1", factory.address[1])
        writer.write(frame(0))
        assert await reader.read(1)
        await until(lambda: len(sim.robots) == 3)
        tick = sim.tick
        await until(lambda: sim.tick > tick + 1)
        assert set(robot_servers.servers) == {"ann", "bob"}
        sim.restore(state)
        # Read until the server has closed the connection.
        await reader.read()
        writer.close()
        await until(lambda: not factory.connected)
        assert not factory.made
        assert set(sim.robots) == {"ann", "bob"}

    run(act)


def test_ros_topics(still: bool) -> None:
    async def act(parts: Parts) -> None:
        sim = parts.hub.sim
        graph, paper = (
            RosGraph(parts.hub, parts.control, parts.maps.cells, types()),
            Recorder(),
        )
        graph.add(paper)
        if still:
            parts.hub.pause()
        state = sim.save_state()
        sim.remove_robot("bob")
        sim.add_robot("p3dx", "eve", pose=(3.0, 0.0, 0.0))
        await until(
            lambda: "/eve/odom" in paper.names and "/bob/odom" not in paper.names
        )
        sim.restore(state)
        await until(
            lambda: "/bob/odom" in paper.names and "/eve/odom" not in paper.names
        )
        before = paper["/bob/odom"]
        sim.remove_robot("bob")
        # Add a robot of the same name before the event loop has seen the removal.
        sim.add_robot("p3dx", "bob", pose=(5.0, 0.0, 0.0))
        await until(lambda: paper["/bob/odom"] is not before)
        graph.close()

    run(act)


def test_ros_shows_the_robot_that_has_the_name() -> None:
    async def act(parts: Parts) -> None:
        sim, hub = parts.hub.sim, parts.hub
        hub.pause()
        graph, paper = (
            RosGraph(hub, parts.control, parts.maps.cells, types()),
            Recorder(),
        )
        graph.add(paper)
        sim.remove_robot("bob")
        sim.add_robot("p3dx", "bob", pose=(5.0, 0.0, 0.0))
        hub.step_once()
        topic = paper["/bob/base_pose_ground_truth"]
        topic.is_wanted = True
        paper.changed()
        hub.step_once()
        (message,) = topic.sent
        assert struct.pack("<d", 5.0) in message.cdr, "where the new one is"
        graph.close()

    run(act)


def test_ambf_objects(still: bool) -> None:
    async def act(parts: Parts) -> None:
        sim = parts.hub.sim
        ambf = Ambf(
            parts.hub,
            parts.control,
            parts.lockstep,
            Types("jazzy", definitions("2.0")),
            "2.0",
        )
        paper = Recorder()
        ambf.add(paper)

        def names() -> set[str]:
            return {
                n.split("/")[3]
                for n in paper.names
                if n.startswith("/ambf/env/") and n.endswith("/State")
            }

        if still:
            parts.hub.pause()
        state = sim.save_state()
        sim.remove_robot("bob")
        sim.add_robot("p3dx", "eve", pose=(3.0, 0.0, 0.0))
        await until(lambda: "eve" in names() and "bob" not in names())
        sim.restore(state)
        await until(lambda: "bob" in names() and "eve" not in names())
        before = ambf._objects["body", "bob"], ambf._objects["body", "ann"]
        sim.remove_robot("bob")
        # Add a robot of the same name before the event loop has seen the removal.
        sim.add_robot("p3dx", "bob", pose=(5.0, 0.0, 0.0))
        await until(lambda: ambf._objects["body", "bob"] is not before[0])
        assert ambf._objects["body", "ann"] is before[1]
        ambf.close()

    run(act)


def test_the_page(still: bool) -> None:
    """The schema lists the robots with their ports, and viewers are notified."""

    async def act(parts: Parts) -> None:
        sim, robot_servers, hub = parts.hub.sim, parts.robot_servers, parts.hub
        await robot_servers.open()
        source = ViewSource(hub, robot_servers.port_of)
        desk = PageRequests(hub, robot_servers, parts.maps, source)
        hub.watch(desk.changed)
        if still:
            hub.pause()

        def shown() -> dict[str, int]:
            return {
                b["name"]: b.get("port", 0)
                for b in json.loads(source.schema()[1])["bodies"]
            }

        state = sim.save_state()
        assert shown() == {name: robot_servers.port_of(name) for name in ("ann", "bob")}
        sim.remove_robot("bob")
        assert set(shown()) == {"ann"}
        number = source.number
        sim.restore(state)
        assert set(shown()) == {"ann", "bob"}
        await until(lambda: source.number > number)
        await until(lambda: shown().get("bob"))
        assert shown()["bob"] == robot_servers.port_of("bob")

    run(act)


def test_the_page_tells_models_of_one_name_apart() -> None:
    sim = Simulation(seed=1)
    model = find_robot("p3dx")
    for n, spec in enumerate((model, replace(model, lasers=()), model)):
        sim.add_robot(spec, f"r{n}", pose=(3.0 * n, 0.0, 0.0))
    schema = json.loads(ViewSource(compose(sim).hub).schema()[1])
    assert [len(schema["models"][b["model"]]["lasers"]) for b in schema["bodies"]] == [
        1,
        0,
        1,
    ]
    assert len(schema["models"]) == 2


def test_the_page_reads_the_sensors_of_the_robot_that_has_the_name() -> None:
    async def act(parts: Parts) -> None:
        sim, hub = parts.hub.sim, parts.hub
        desk = PageRequests(hub, parts.robot_servers, parts.maps, ViewSource(hub))
        viewer = Viewer(desk, Tokens("all", "look"), 0.0)
        hello = {
            "type": "hello",
            "token": "all",
            "version": msg.VERSION,
            "view": {"selected": ["bob"]},
        }
        viewer.receive_text(json.dumps(hello), 0.0)
        desk.prepare()
        sonar = sim.robots["bob"].sonar
        assert sonar is not None
        assert sonar.is_read
        sim.remove_robot("bob")
        again = sim.add_robot(find_robot("p3dx"), "bob", pose=(5.0, 0.0, 0.0)).sonar
        assert again is not None
        desk.prepare()
        assert again.is_read

    run(act)


def test_who_drives_is_shown_after_a_restore() -> None:
    async def act(parts: Parts) -> None:
        sim = parts.hub.sim
        source = ViewSource(parts.hub)
        sim.robots["ann"].claim("ros")
        state = sim.save_state()
        source.schema()
        driven = source._bits()
        sim.robots["ann"].release("ros")
        assert (source._bits() != driven).any()
        sim.restore(state)
        source.schema()
        assert (source._bits() == driven).all()

    run(act)
