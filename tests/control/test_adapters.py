"""Each operation of the table is reached by a request of each adapter, or the adapter
says why not.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from botyard.app.compose import Parts, compose
from botyard.control import OPERATIONS, Control, python
from botyard.errors import BotyardError
from botyard.geometry import Pose
from botyard.interfaces.ambf import ambf as ambf_module
from botyard.interfaces.ambf.ambf import Ambf
from botyard.interfaces.page import operations
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.interfaces.pioneer import requests as pioneer
from botyard.interfaces.ros import graph as rosgraph
from botyard.interfaces.ros import simulation_interfaces as rossimulator
from botyard.interfaces.ros.graph import RosGraph
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.pioneer.commands import C, Ctrl
from botyard.protocols.pioneer.packet import frame
from botyard.protocols.ros_messages.graphoffers import Service
from botyard.protocols.ros_messages.types import Types, types
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.sim.commands import Commands
from botyard.sim.floorview import FloorView
from botyard.sim.history import History
from botyard.sim.masses import Masses
from botyard.sim.recordings import Recording
from botyard.sim.simulation import Robot, Simulation
from tests.protocols.lines import Client, named


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Return the names of the operations that were requested or asked about."""
    found: set[str] = set()
    check = Control.denial

    def spy(self: Control, caller: Any, operation: Any) -> str:
        found.add(getattr(operation, "__name__", ""))
        return check(self, caller, operation)

    monkeypatch.setattr(Control, "denial", spy)
    yield found
    found.discard("")


def complete(asked: set[str], reasons: Mapping[str, str]) -> None:
    asked.discard("")
    both = asked & reasons.keys()
    assert not both, (
        f"remove from NOT_OFFERED of this adapter, which offers them: {', '.join(sorted(both))}"
    )
    lacking = OPERATIONS.keys() - asked - reasons.keys()
    assert not lacking, (
        "offer in this adapter, and ask for it in this test, or add a row with "
        "the reason to NOT_OFFERED of its module: " + ", ".join(sorted(lacking))
    )
    unknown = (asked | reasons.keys()) - OPERATIONS.keys()
    assert not unknown, (
        f"no operations of botyard.control: {', '.join(sorted(unknown))}"
    )
    silent = [name for name, reason in reasons.items() if not reason]
    assert not silent, f"say the reason in NOT_OFFERED: {', '.join(silent)}"


class Anything:
    """A message with any field."""

    def __getattr__(self, name: str) -> Any:
        if name == "rates":
            return [1.0]
        return 1.0 if name in "xyzw" or name == "theta" else Anything()

    def __float__(self) -> float:
        return 1.0

    def __int__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "ann"

    def __iter__(self) -> Iterator[str]:
        return iter(("ann",))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the working directory, where pictures for clients are written."""
    monkeypatch.chdir(tmp_path)


def served(act: Callable[[Parts], None]) -> None:
    async def main() -> None:
        sim = Simulation.load("office", seed=1)
        sim.add_robot("p3dx-equipped", "ann", pose=(10.0, 14.0, 0.0))
        parts = compose(sim, limits=None)
        parts.hub.pause()
        act(parts)
        for _ in range(5):
            await asyncio.sleep(0)
        parts.hub.background.close()
        parts.close()

    asyncio.run(main())


def test_pioneer(asked: set[str]) -> None:
    c = Client(srisim_compat=True)
    c.line.send(frame(C.SIM_SET_POSE, struct.pack("<Biii", 0x1B, 1000, 0, 0)))
    for number in (C.SIM_RESET, 66, 67, 68, 69):
        c.send(number, 1)
    for operation in Ctrl:
        c.ctrl(operation, named("office"))
    c.send(C.SIM_EXIT, 1)
    c.run(0.2)
    complete(asked, pioneer.NOT_OFFERED)


def test_the_page(asked: set[str]) -> None:
    def act(parts: Parts) -> None:
        desk = PageRequests(
            parts.hub, parts.robot_servers, parts.maps, ViewSource(parts.hub)
        )
        viewer = Viewer(desk, Tokens("t"), 0.0)
        viewer.read_only = False
        requests: list[Any] = [
            msg.Pause(),
            msg.Run(),
            msg.Step(),
            msg.Speed(factor=2.0),
            msg.Hold(names=["ann"], on=True),
            msg.Move(to=[msg.Placement(name="ann", x=1.0, y=2.0, th=0.0)]),
            msg.Drive(name="ann", v=0.1),
            msg.Enable(names=["ann"], on=True),
            msg.EmergencyStop(names=["ann"], on=True),
            msg.Joystick(name="ann"),
            msg.CommandDevice(name="ann", device="gripper", command="lift", value=0.5),
            msg.OdometryErrors(name="ann", on=False),
            msg.Reset(),
            msg.Add(model="p3dx"),
            msg.Add(model="p3dx", count=2),
            msg.FindPlaces(model="p3dx"),
            msg.Send(names=["ann"], goals=[(12.0, 14.0, None)]),
            msg.Estimate(name="ann", x=12.0, y=14.0, th=0.5),
            msg.Dock(names=["ann"]),
            msg.SetCharge(names=["ann"], charge=50.0),
            msg.LookAtMap(name="office"),
            msg.EditMap(add_walls=[(0.0, 0.0, 1.0, 0.0)]),
            msg.SetZone(name="ice", corners=[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]),
            msg.RemoveZone(name="ice"),
            msg.Clone(names=["ann"]),
            msg.Remove(names=["nobody"]),
            msg.Rename(names=[("nobody", "eve")]),
            msg.Undo(),
            msg.Redo(),
            msg.LoadMap(name="office"),
            msg.LoadMap(name=""),
            msg.Reload(),
            msg.Snapshot(),
            msg.RunTraffic(paths=[msg.SectorPath(robot="ann", points=[(1.0, 0.0)])]),
            msg.EndTraffic(),
            msg.HoldTraffic(on=True),
            msg.StepTraffic(),
            msg.GrantSector(name="ann"),
            msg.RevokeSector(name="ann"),
            msg.StartRecording(),
            msg.SaveRecording(),
            msg.StopRecording(),
            msg.WriteMovie(begin=0.0, end=1.0),
            msg.CancelMovie(),
            msg.Download(file="a"),
            msg.Interface(name="pioneer", on=True),
            msg.Exit(),
        ]
        assert {type(r) for r in requests} - {
            msg.Download
        } == operations.OPERATIONS.keys(), (
            "add a request of each kind in OPERATIONS of "
            "interfaces/page/requests.py to the list of this test"
        )
        for request in (
            *requests,
            msg.GoOn(),
            # The time line creates the operation for the moment that a page shows.
        ):
            desk.perform(viewer, request, lambda result, error: None)

        desk.load_file("a.map", b"2D-Map\nDATA\n", "here")

    served(act)
    complete(asked, operations.NOT_OFFERED)


def test_ros(asked: set[str]) -> None:
    kinds = types()

    def act(parts: Parts) -> None:
        graph = RosGraph(parts.hub, parts.control, parts.maps.cells, kinds)
        graph._sync()
        offers = [
            offer
            for member in (graph._world, *graph._members.values())
            for offer in (*member.inputs, *member.services)
            if offer.operation and "/_action/" not in offer.name
        ]
        named = {o.operation.__name__ for o in offers if o.operation is not None}
        standard = {
            o.operation.__name__
            for o in offers
            if f"{rossimulator.PACKAGE}/" in o.type_name and o.operation
        }
        asked.clear()
        for offer in offers:
            if f"{rossimulator.PACKAGE}/" in offer.type_name:
                continue
            with suppress(BotyardError):
                (offer.serve if isinstance(offer, Service) else offer.take)(Anything())

        graph._robot_member(parts.hub.sim.add_robot("p3dx", "eve"), True)
        assert asked - {"", "TakeRobot"} == named - (standard - asked), (
            "each does what it says"
        )
        graph.close()

    served(act)
    complete(asked, rosgraph.NOT_OFFERED)


def test_simulation_interfaces(asked: set[str]) -> None:
    kinds = types()

    def act(parts: Parts) -> None:
        graph = RosGraph(parts.hub, parts.control, parts.maps.cells, kinds)
        # A name with more parts belongs to an action.
        services = {
            s.type_name.partition("/")[2]: s
            for s in graph._world.services
            if s.type_name.startswith(rossimulator.PACKAGE)
            and s.type_name.count("/") == 1
        }
        turn = kinds.filled("geometry_msgs/msg/Quaternion", {"w": 1.0})
        pose = kinds.filled("geometry_msgs/msg/Pose", {"orientation": turn})
        place = kinds.filled("geometry_msgs/msg/PoseStamped", {"pose": pose})
        state = kinds.filled(f"{rossimulator.PACKAGE}/msg/EntityState", {"pose": pose})
        asked.clear()
        for name, fields in (
            (
                "SpawnEntity",
                {"name": "eve", "uri": "botyard://p3dx", "initial_pose": place},
            ),
            ("SpawnEntities", {}),
            ("SetEntityState", {"entity": "ann", "state": state}),
            ("SetEntityInfo", {"entity": "ann"}),
            ("DeleteEntity", {"entity": "ann"}),
            ("StepSimulation", {"steps": 1}),
            ("ResetSimulation", {}),
            ("LoadWorld", {"uri": "botyard://no-such-map"}),
            ("UnloadWorld", {}),
        ):
            services[name].serve(
                kinds.filled(f"{rossimulator.PACKAGE}/srv/{name}_Request", fields)
            )
            operation = services[name].operation
            assert operation is not None and operation.__name__ in asked, (
                f"{name} does what it says"
            )

        parts.control.loading, parts.control.unloaded = 0, None
        for number in (1, 2, 0, 3):
            wanted = kinds.filled(
                f"{rossimulator.PACKAGE}/msg/SimulationState", {"state": number}
            )
            services["SetSimulationState"].serve(
                kinds.filled(
                    f"{rossimulator.PACKAGE}/srv/SetSimulationState_Request",
                    {"state": wanted},
                )
            )

        for name, service in services.items():
            assert (service.operation is None) == name.startswith("Get"), name
        graph.close()

    served(act)
    complete(asked, rossimulator.NOT_OFFERED)


def test_ambf(asked: set[str]) -> None:
    kinds = Types("jazzy", definitions("2.0"))

    def act(parts: Parts) -> None:
        ambf = Ambf(parts.hub, parts.control, parts.lockstep, kinds, "2.0")
        ambf._sync()
        asked.clear()
        ambf._world.take(kinds.filled("ambf_msgs/WorldCmd", {}))
        ambf._reset(None)
        robot = next(
            thing for key, thing in ambf._objects.items() if key == ("body", "ann")
        )
        robot._command(kinds.filled("ambf_msgs/RigidBodyCmd", {}))
        robot.put(Pose(7.0, 7.0, 0.0))  # type: ignore[attr-defined]
        ambf.close()

    served(act)
    complete(asked, ambf_module.NOT_OFFERED)


def test_python() -> None:
    rooms = {
        c.__name__: c
        for c in (Simulation, Robot, Commands, Recording, History, FloorView, Masses)
    }
    for operation, method in python.PYTHON.items():
        room, _, name = method.partition(".")
        assert callable(getattr(rooms[room], name)), operation

    complete(set(python.PYTHON), python.NOT_OFFERED)
