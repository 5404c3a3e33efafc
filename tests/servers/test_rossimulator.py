"""simulation_interfaces, without a network: requests and answers go through their bytes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from botyard.app.compose import compose
from botyard.control.time import MAX_STEPS_AT_ONCE
from botyard.interfaces.ros.graph import ROS
from botyard.interfaces.ros.simulation_interfaces import RosSimulator
from botyard.protocols.ros_messages.messages import Messages, Stamp, yaw_of
from botyard.protocols.ros_messages.simulation_interfaces import SERVICES, Code, Time
from botyard.protocols.ros_messages.types import types
from botyard.servers import hub
from botyard.sim.simulation import Simulation

TYPES = types()
PACKAGE = "simulation_interfaces"


class Desk:
    """A simulator and its services."""

    def __init__(self) -> None:
        self.sim = Simulation.load("office", seed=1)
        self.ann = self.sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.5))
        self.sim.add_robot("p3at", "bob", pose=(12.0, 14.0, 0.0))
        parts = compose(self.sim)
        self.hub, self.yard, self.control = parts.hub, parts.yard, parts.control
        stamp = lambda: Stamp.of_us(self.sim.snapshot.time_us)  # noqa: E731
        standard = RosSimulator("/botyard", TYPES, Messages(TYPES), self.control, stamp, ROS)
        self.services = {s.type_name.split("/")[1]: s for s in standard.services()}

    def __call__(self, service: str, /, **fields: Any) -> Any:
        kind = f"{PACKAGE}/srv/{service}"
        request = TYPES.encode_cdr(TYPES.filled(f"{kind}_Request", fields), f"{kind}_Request")
        answer = self.services[service].serve(TYPES.decode_cdr(request, f"{kind}_Request"))
        return TYPES.decode_cdr(TYPES.encode_cdr(answer, f"{kind}_Response"), f"{kind}_Response")


def message(kind: str, /, **fields: Any) -> Any:
    return TYPES.filled(f"{PACKAGE}/msg/{kind}", fields)


def stamped(x: float, y: float, yaw: float = 0.0, frame: str = "map") -> dict[str, Any]:
    m = Messages(TYPES)
    pose = TYPES.filled("geometry_msgs/msg/Pose", {})
    pose.position.x, pose.position.y = x, y
    pose.orientation.z, pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    header = TYPES.filled("std_msgs/msg/Header", {"frame_id": frame})
    assert m is not None
    return {"header": header, "pose": pose}


def there(run: Callable[[Desk], None]) -> Callable[[], None]:
    """A test in a loop, as the services run in the simulator's."""

    def test() -> None:
        async def main() -> None:
            run(Desk())

        asyncio.run(main())

    test.__name__, test.__doc__ = run.__name__, run.__doc__
    return test


@there
def test_all_services_are_served(desk: Desk) -> None:
    assert set(desk.services) == set(SERVICES)
    assert desk.services["GetEntitiesStates"].name == "/botyard/get_entities_states"
    features = desk("GetSimulatorFeatures").features
    assert 0 in features.features and 32 in features.features


@there
def test_entities_can_be_filtered(desk: Desk) -> None:
    def names(**filters: Any) -> list[str]:
        answer = desk("GetEntities", filters=message("EntityFilters", **filters))
        assert answer.result.result == Code.OK
        return list(answer.entities)

    boxes = list(desk.sim.box_names)
    assert names() == ["ann", "bob", *boxes]
    assert names(filter="^a") == ["ann"]
    assert names(categories=[message("EntityCategory", category=1)]) == ["ann", "bob"]
    assert names(tags=message("TagsFilter", tags=["p3at", "nothing"])) == ["bob"]
    assert names(tags=message("TagsFilter", tags=["p3at", "nothing"], filter_mode=1)) == []
    corner = TYPES.two("geometry_msgs/Vector3")
    box = message("Bounds", type=1, points=[corner(11.0, 15.0, 0.0), corner(9.0, 13.0, 0.0)])
    assert names(bounds=box) == ["ann"]
    assert desk("GetEntities", filters=message("EntityFilters", filter="(")).result.result == Code.OPERATION_FAILED
    hull = message("EntityFilters", bounds=message("Bounds", type=2))
    assert desk("GetEntities", filters=hull).result.result == Code.FEATURE_UNSUPPORTED


@there
def test_where_they_are_and_what(desk: Desk) -> None:
    desk.ann.command.velocity(0.3)
    desk.sim.step(30)
    state = desk("GetEntityState", entity="ann").state
    assert state.header.frame_id == "map" and state.header.stamp.sec == 3
    pose = desk.ann.truth
    assert (state.pose.position.x, state.pose.position.y) == pytest.approx((pose.x, pose.y))
    assert yaw_of(state.pose.orientation) == pytest.approx(pose.th)
    assert (state.twist.linear.x, state.twist.linear.y) == pytest.approx(
        (0.3 * math.cos(pose.th), 0.3 * math.sin(pose.th))
    )
    every = desk("GetEntitiesStates", filters=message("EntityFilters", filter="ann|bob"))
    assert len(every.states) == 2 and list(every.entities) == ["ann", "bob"]
    info = desk("GetEntityInfo", entity="ann").info
    assert info.category.category == 1 and list(info.tags) == ["p3dx"]
    high, low = desk("GetEntityBounds", entity="ann").bounds.points
    assert 0.3 < high.x - low.x < 0.7 and 0.3 < high.y - low.y < 0.7
    lost = desk("GetEntityState", entity="eve")
    assert lost.result.result == Code.NOT_FOUND and "eve" in lost.result.error_message
    assert list(desk("GetNamedPoses").poses) == [] or desk("GetNamedPoses").poses[0].name


@there
def test_robots_are_put_spawned_and_taken_away(desk: Desk) -> None:
    put = desk("SetEntityState", entity="ann", state=message("EntityState", **stamped(9.0, 13.0, 1.0)))
    assert put.result.result == Code.OK
    desk.sim.step(1)
    assert desk.ann.truth == pytest.approx((9.0, 13.0, 1.0))
    wrong = message("EntityState", **stamped(9.0, 13.0, 1.0, "odom"))
    assert desk("SetEntityState", entity="ann", state=wrong).result.result == Code.OPERATION_FAILED

    uris = [s.uri for s in desk("GetSpawnables").spawnables]
    assert "botyard://p3dx" in uris
    place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(14.0, 14.0))
    spawn = {"uri": "botyard://p3dx", "initial_pose": place}
    eve = desk("SpawnEntity", name="eve", **spawn)
    assert (eve.result.result, eve.entity_name) == (Code.OK, "eve")
    assert desk("SpawnEntity", name="eve", **spawn).result.result == Code.NAME_NOT_UNIQUE
    second = desk("SpawnEntity", name="eve", allow_renaming=True, **spawn).entity_name
    assert second not in ("", "eve") and second in desk.sim.robots
    assert desk("SpawnEntity", uri="botyard://tricycle", initial_pose=place).result.result == Code.NO_RESOURCE
    assert desk("SpawnEntity", initial_pose=place).result.result == Code.NO_RESOURCE
    assert desk("SpawnEntity", name="a", entity_namespace="b", **spawn).result.result == Code.NAMESPACE_INVALID
    assert desk("DeleteEntity", entity="bob").result.result == Code.OK
    assert desk("DeleteEntity", entity="bob").result.result == Code.NOT_FOUND

    assert desk("ResetSimulation", scope=1).result.result == Code.FEATURE_UNSUPPORTED
    assert desk("ResetSimulation", scope=0).result.result == Code.OK
    desk.sim.step(1)
    assert list(desk.sim.robots) == ["ann"]
    assert desk.ann.truth == pytest.approx((10.0, 14.0, 0.5))


@there
def test_time_stands_still_and_is_stepped(desk: Desk) -> None:
    assert desk("GetSimulationState").state.state == Time.PLAYING
    assert desk("StepSimulation", steps=3).result.result == Code.INCORRECT_STATE
    pause = message("SimulationState", state=Time.PAUSED)
    assert desk("SetSimulationState", state=pause).result.result == Code.OK
    assert desk("SetSimulationState", state=pause).result.result == Code.ALREADY_IN_TARGET_STATE
    assert desk("GetSimulationState").state.state == Time.PAUSED
    assert desk("StepSimulation", steps=3).result.result == Code.OK
    assert desk.sim.time == pytest.approx(0.3), "done when it answers"
    assert desk("StepSimulation", steps=MAX_STEPS_AT_ONCE + 1).result.result == Code.OPERATION_FAILED
    assert (
        desk("SetSimulationState", state=message("SimulationState", state=0)).result.result == Code.FEATURE_UNSUPPORTED
    )
    assert desk("SetSimulationState", state=message("SimulationState", state=1)).result.result == Code.OK
    assert not desk.hub.is_paused


@there
def test_patterns_that_never_end_elsewhere_hold_nobody_up(desk: Desk) -> None:
    desk.sim.add_robot("p3dx", "a" * 63 + "!", pose=(14.0, 14.0, 0.0))
    for pattern in ("(a+)+$", "(a|aa)+b", "(a*)*(a*)*b"):
        assert desk("GetEntities", filters=message("EntityFilters", filter=pattern)).result.result in (
            Code.OK,
            Code.OPERATION_FAILED,
        )
    long = desk("GetEntities", filters=message("EntityFilters", filter="a" * 1000))
    assert long.result.result == Code.OPERATION_FAILED and "at most 256" in long.result.error_message
    many = message("EntityFilters", tags=message("TagsFilter", tags=["x"] * 2000))
    assert desk("GetEntities", filters=many).result.result == Code.OPERATION_FAILED


@there
def test_names_are_names_and_models_no_files(desk: Desk) -> None:
    place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(14.0, 14.0))
    for name in ("a" * 65, "a\nb", "a\x1b[2J", "  "):
        answer = desk("SpawnEntity", name=name, uri="botyard://p3dx", initial_pose=place)
        assert answer.result.result == Code.NAME_INVALID and answer.result.error_message.isprintable()
    for model in ("/etc/passwd.p", "../x.toml", "x.TOML", "x.P", "a" * 1000, "\n"):
        answer = desk("SpawnEntity", name="eve", uri=f"botyard://{model}", initial_pose=place)
        assert answer.result.result == Code.NO_RESOURCE and len(answer.result.error_message) < 300
    lost = desk("GetEntityState", entity="x\n" * 1000)
    assert lost.result.error_message.isprintable() and len(lost.result.error_message) < 200
    assert sorted(desk.sim.robots) == ["ann", "bob"]


@there
def test_who_may_end_the_simulation(desk: Desk) -> None:
    """DDS and Zenoh do not tell who asks, so it is for the user to allow."""
    quit_ = message("SimulationState", state=Time.QUITTING)
    refused = desk("SetSimulationState", state=quit_).result
    assert refused.result == Code.FEATURE_UNSUPPORTED and "--allow-client-exit" in refused.error_message
    ended: list[int] = []
    desk.control.end = lambda status, crash: ended.append(status)
    desk.control.allow_exit = True
    assert desk("SetSimulationState", state=quit_).result.result == Code.OK
    assert ended == [0]


def test_many_steps_are_made_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes when they are done; others are served in between, and may let time go on."""
    monkeypatch.setattr(hub, "BATCH_TIME_S", 0.0)

    async def main() -> None:
        desk = Desk()
        desk.hub.pause()
        kind = f"{PACKAGE}/srv/StepSimulation"
        request = TYPES.filled(f"{kind}_Request", {"steps": 100})
        later = desk.services["StepSimulation"].serve(request)
        assert isinstance(later, Future) and desk.sim.tick == hub.MIN_BATCH_STEPS
        turns = 0
        while not later.done():
            await asyncio.sleep(0)
            turns += 1
        assert desk.sim.tick == 100 and turns >= 4
        assert (await asyncio.wrap_future(later)).result.result == Code.OK
        later = desk.services["StepSimulation"].serve(request)
        await asyncio.sleep(0)
        desk.hub.resume()
        answer = await asyncio.wrap_future(later)
        assert answer.result.result == Code.INCORRECT_STATE and "were not made" in answer.result.error_message
        assert desk.sim.tick < 200

    asyncio.run(main())
