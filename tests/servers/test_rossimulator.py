"""simulation_interfaces without a network:

requests and answers are encoded and decoded.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from botyard.app.compose import compose
from botyard.interfaces.ros.members import ROS
from botyard.interfaces.ros.simulation_interfaces import RosSimulator
from botyard.protocols.ros_messages.messages import Messages, Stamp, yaw_of
from botyard.protocols.ros_messages.simulation_interfaces import (
    Category,
    Code,
    Feature,
    Time,
    services,
)
from botyard.protocols.ros_messages.types import types
from botyard.servers import hub
from botyard.sim.simulation import Simulation

TYPES = types()
PACKAGE = "simulation_interfaces"


class RequestHandler:
    """A simulator and its services, as one line of the package provides them."""

    def __init__(self, distro: str = "jazzy", folder: Path | None = None) -> None:
        self.types = types(distro)
        self.sim = Simulation.load("office", seed=1)
        self.ann = self.sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.5))
        self.sim.add_robot("p3at", "bob", pose=(12.0, 14.0, 0.0))
        self._parts = parts = compose(
            self.sim, port=0, limits=None, folders=[folder] if folder else []
        )
        self.hub, self.control = parts.hub, parts.control
        stamp = lambda: Stamp.of_us(self.sim.snapshot.time_us)  # noqa: E731
        standard = RosSimulator(
            "/botyard", self.types, Messages(self.types), self.control, stamp, ROS
        )
        self.services = {s.type_name.split("/")[1]: s for s in standard.services()}

    def __enter__(self) -> RequestHandler:
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.hub.background.close()
        self._parts.close()

    def ask(self, service: str, /, **fields: Any) -> Any:
        """Return an answer, or a future of one."""
        kind = f"{PACKAGE}/srv/{service}_Request"
        request = self.types.encode_cdr(self.types.filled(kind, fields), kind)
        return self.services[service].serve(self.types.decode_cdr(request, kind))

    def through_bytes(self, service: str, answer: Any) -> Any:
        kind = f"{PACKAGE}/srv/{service}_Response"
        return self.types.decode_cdr(self.types.encode_cdr(answer, kind), kind)

    def __call__(self, service: str, /, **fields: Any) -> Any:
        answer = self.ask(service, **fields)
        assert not isinstance(answer, Future), "it takes longer"
        return self.through_bytes(service, answer)

    async def later(self, service: str, /, **fields: Any) -> Any:
        """Return an answer that may take longer."""
        answer = self.ask(service, **fields)
        if isinstance(answer, Future):
            answer = await asyncio.wrap_future(answer)
        return self.through_bytes(service, answer)

    def code(self, service: str, /, **fields: Any) -> int:
        return int(self(service, **fields).result.result)


def message(kind: str, /, **fields: Any) -> Any:
    return TYPES.filled(f"{PACKAGE}/msg/{kind}", fields)


def stamped(
    x: float, y: float, yaw: float = 0.0, frame: str = "map", length: float = 1.0
) -> dict[str, Any]:
    pose = TYPES.filled("geometry_msgs/msg/Pose", {})
    pose.position.x, pose.position.y = x, y
    pose.orientation.z, pose.orientation.w = (
        length * math.sin(yaw / 2),
        length * math.cos(yaw / 2),
    )
    return {
        "header": TYPES.filled("std_msgs/msg/Header", {"frame_id": frame}),
        "pose": pose,
    }


def pushed(vx: float, vy: float, w: float) -> Any:
    """Return a geometry_msgs/Twist."""
    vector = TYPES.two("geometry_msgs/Vector3")
    return TYPES.two("geometry_msgs/Twist")(vector(vx, vy, 0.0), vector(0.0, 0.0, w))


def points(*corners: tuple[float, ...]) -> list[Any]:
    vector = TYPES.two("geometry_msgs/Vector3")
    return [vector(*corner, *[0.0] * (3 - len(corner))) for corner in corners]


def there(run: Callable[[RequestHandler], None]) -> Callable[[], None]:
    """Run a test in a loop, as the services run in the simulator's."""

    def test() -> None:
        async def main() -> None:
            with RequestHandler() as desk:
                run(desk)

        asyncio.run(main())

    test.__name__, test.__doc__ = run.__name__, run.__doc__
    return test


@pytest.mark.parametrize("distro", ["humble", "jazzy", "kilted", "lyrical"])
def test_all_services_are_served(distro: str) -> None:
    async def main() -> None:
        with RequestHandler(distro) as desk:
            assert set(desk.services) == set(services(distro))
            assert (
                desk.services["GetEntitiesStates"].name
                == "/botyard/get_entities_states"
            )
            features = list(desk("GetSimulatorFeatures").features.features)
            assert features == sorted(int(f) for f in Feature)
            listed = desk("GetSpawnables", sources=["https://models", "b"])
            found = listed.spawnables[0]
            assert (
                found.entity_resource if distro == "lyrical" else found
            ).uri.startswith("botyard://")
            assert (
                listed.result.result == Code.OK
                and "https://models, b" in listed.result.error_message
            )

    asyncio.run(main())


@there
def test_entities_can_be_filtered(desk: RequestHandler) -> None:
    def names(**filters: Any) -> list[str]:
        answer = desk("GetEntities", filters=message("EntityFilters", **filters))
        assert answer.result.result == Code.OK
        return list(answer.entities)

    boxes = list(desk.sim.core.box_names)
    assert names() == ["ann", "bob", *boxes]
    assert names(filter="^a") == ["ann"]
    assert names(categories=[message("EntityCategory", category=1)]) == ["ann", "bob"]
    assert names(tags=message("TagsFilter", tags=["p3at", "nothing"])) == ["bob"]
    assert (
        names(tags=message("TagsFilter", tags=["p3at", "nothing"], filter_mode=1)) == []
    )
    assert names(categories=[message("EntityCategory", category=5)]) == boxes
    assert (
        desk.code("GetEntities", filters=message("EntityFilters", filter="("))
        == Code.OPERATION_FAILED
    )
    assert (
        desk.code("GetEntities", filters=message("EntityFilters", filter=r"\d"))
        == Code.OPERATION_FAILED
    )
    assert names(filter="^[[:alpha:]]{3}$") == ["ann", "bob"]


@there
def test_entities_that_overlap_with_bounds(desk: RequestHandler) -> None:
    """ann is at (10, 14), about 0.4 m long and wide; bob at (12, 14)."""

    def names(kind: int, *corners: tuple[float, ...]) -> list[str]:
        answer = desk(
            "GetEntities",
            filters=message(
                "EntityFilters",
                bounds=message("Bounds", type=kind, points=points(*corners)),
            ),
        )
        assert answer.result.result == Code.OK, answer.result.error_message
        return list(answer.entities)

    assert names(1, (11.0, 15.0), (9.0, 13.0)) == ["ann"]
    assert names(1, (9.9, 15.0), (9.0, 13.0)) == ["ann"], "its centre is outside"
    assert names(1, (10.05, 14.05), (10.0, 14.0)) == ["ann"], "the box is inside of it"
    assert names(1, (9.5, 15.0), (9.0, 13.0)) == []
    assert set(names(1, (1e308, 1e308), (-1e308, -1e308))) == {
        "ann",
        "bob",
        *desk.sim.core.box_names,
    }
    assert names(3, (11.0, 14.0, 50.0), (0.6, 0.0)) == [], "heights are not looked at"
    assert names(3, (11.0, 14.0), (0.9, 0.0)) == ["ann", "bob"]
    assert names(3, (12.0, 14.0), (0.0, 0.0)) == ["bob"]
    assert names(2, (9.0, 13.0), (13.0, 13.0), (11.0, 13.5)) == []
    assert names(2, (9.0, 13.0), (13.0, 13.0), (11.0, 16.0)) == ["ann", "bob"]
    assert names(2, (9.0, 14.0, 0.0), (10.0, 14.0, 0.0), (9.5, 14.0, 1.0)) == ["ann"], (
        "an upright hull is a line from above"
    )
    for kind, corners, code in (
        (1, [(0.0, 0.0)], Code.OPERATION_FAILED),
        (2, [(0.0, 0.0)] * 2, Code.OPERATION_FAILED),
        (3, [(0.0, 0.0), (-1.0, 0.0)], Code.OPERATION_FAILED),
        (1, [(math.nan, 0.0), (1.0, 1.0)], Code.OPERATION_FAILED),
        (2, [(0.0, 0.0)] * 1001, Code.OPERATION_FAILED),
        (4, [(0.0, 0.0)] * 2, Code.FEATURE_UNSUPPORTED),
    ):
        bounds = message("Bounds", type=kind, points=points(*corners))
        assert (
            desk.code("GetEntities", filters=message("EntityFilters", bounds=bounds))
            == code
        )


@there
def test_where_they_are_and_what(desk: RequestHandler) -> None:
    desk.ann.command.velocity(0.3)
    desk.sim.step(30)
    state = desk("GetEntityState", entity="ann").state
    assert state.header.frame_id == "map" and state.header.stamp.sec == 3
    pose = desk.ann.truth
    assert (state.pose.position.x, state.pose.position.y) == pytest.approx(
        (pose.x, pose.y)
    )
    assert yaw_of(state.pose.orientation) == pytest.approx(pose.th)
    assert (state.twist.linear.x, state.twist.linear.y) == pytest.approx(
        (0.3 * math.cos(pose.th), 0.3 * math.sin(pose.th))
    )
    every = desk(
        "GetEntitiesStates", filters=message("EntityFilters", filter="ann|bob")
    )
    assert len(every.states) == 2 and list(every.entities) == ["ann", "bob"]
    info = desk("GetEntityInfo", entity="ann").info
    assert info.category.category == 1 and list(info.tags) == ["p3dx"]
    high, low = desk("GetEntityBounds", entity="ann").bounds.points
    assert 0.3 < high.x - low.x < 0.7 and 0.3 < high.y - low.y < 0.7
    lost = desk("GetEntityState", entity="eve")
    assert lost.result.result == Code.NOT_FOUND and "eve" in lost.result.error_message


@there
def test_states_are_set(desk: RequestHandler) -> None:
    put = desk(
        "SetEntityState",
        entity="ann",
        state=message("EntityState", **stamped(9.0, 13.0, 1.0, "world")),
    )
    assert put.result.result == Code.OK
    desk.sim.step(1)
    assert desk.ann.truth == pytest.approx((9.0, 13.0, 1.0))
    for wrong in (
        stamped(9.0, 13.0, 1.0, "odom"),
        stamped(math.inf, 13.0),
        stamped(1e9, 0.0),
        stamped(9.0, 13.0, length=2.0),
        stamped(9.0, 13.0, length=0.0),
        stamped(9.0, 13.0, length=math.nan),
    ):
        assert (
            desk.code(
                "SetEntityState", entity="ann", state=message("EntityState", **wrong)
            )
            == Code.STATE_INVALID_POSE
        )

    desk.hub.pause()
    moving = {**stamped(9.0, 13.0, math.pi / 2), "twist": pushed(0.0, 0.5, 0.25)}
    assert (
        desk.code(
            "SetEntityState", entity="ann", state=message("EntityState", **moving)
        )
        == Code.OK
    )
    twist = desk("GetEntityState", entity="ann").state.twist
    assert (twist.linear.x, twist.linear.y, twist.angular.z) == pytest.approx(
        (0.0, 0.5, 0.25)
    ), "in the world's axes"
    sideways = {**moving, "twist": pushed(0.5, 0.0, 0.0)}
    assert (
        desk.code(
            "SetEntityState", entity="ann", state=message("EntityState", **sideways)
        )
        == Code.OK
    )
    assert desk.ann.velocity.vx == pytest.approx(0.0), "wheels do not go sideways"
    far = {**moving, "twist": pushed(1e9, 0.0, 0.0)}
    assert (
        desk.code("SetEntityState", entity="ann", state=message("EntityState", **far))
        == Code.OPERATION_FAILED
    )
    box = desk.sim.core.box_names[0]
    assert (
        desk.code(
            "SetEntityState",
            entity=box,
            state=message("EntityState", **stamped(20.0, 14.0)),
        )
        == Code.OK
    )
    thrown = message(
        "EntityState", **{**stamped(21.0, 14.0), "twist": pushed(1.0, 0.0, 0.0)}
    )
    refused = desk("SetEntityState", entity=box, state=thrown).result
    assert refused.result == Code.OPERATION_FAILED and "static" in refused.error_message
    assert desk("GetEntityState", entity=box).state.pose.position.x == pytest.approx(
        20.0
    ), "nothing is half done"


def test_what_of_a_state_is_set_may_be_chosen_since_2_1() -> None:
    async def main() -> None:
        with RequestHandler("lyrical") as desk:
            desk.hub.pause()
            state = message(
                "EntityState", **{**stamped(9.0, 13.0), "twist": pushed(0.5, 0.0, 0.0)}
            )
            assert (
                desk.code("SetEntityState", entity="ann", state=state, set_twist=True)
                == Code.OK
            )
            assert (
                desk.ann.truth == pytest.approx((10.0, 14.0, 0.5))
                and desk.ann.velocity.vx > 0.1
            )
            assert (
                desk.code("SetEntityState", entity="ann", state=state, set_pose=True)
                == Code.OK
            )
            assert desk.ann.truth == pytest.approx((9.0, 13.0, 0.0))

    asyncio.run(main())


@there
def test_info_is_set(desk: RequestHandler) -> None:
    info = message(
        "EntityInfo",
        category=message("EntityCategory", category=2),
        description="a nurse",
        tags=["ward 3"],
    )
    assert desk.code("SetEntityInfo", entity="ann", info=info) == Code.OK
    found = desk("GetEntityInfo", entity="ann").info
    assert (found.category.category, found.description, list(found.tags)) == (
        2,
        "a nurse",
        ["ward 3"],
    )
    tagged = message("EntityFilters", tags=message("TagsFilter", tags=["ward 3"]))
    assert list(desk("GetEntities", filters=tagged).entities) == ["ann"]
    assert desk.code("SetEntityInfo", entity="eve", info=info) == Code.NOT_FOUND
    assert (
        desk.code(
            "SetEntityInfo", entity="bob", info=message("EntityInfo", tags=["x"] * 101)
        )
        == Code.OPERATION_FAILED
    )
    desk.sim.remove_robot("ann")
    desk.sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.5))
    assert list(desk("GetEntityInfo", entity="ann").info.tags) == ["p3dx"], (
        "another one of its name"
    )


def test_categories() -> None:
    async def main() -> None:
        with RequestHandler() as desk:
            desk.sim = Simulation.load("visitors", seed=1)
            parts = compose(desk.sim)
            standard = RosSimulator(
                "/b", TYPES, Messages(TYPES), parts.control, lambda: Stamp(0, 0), ROS
            )
            desk.services = {s.type_name.split("/")[1]: s for s in standard.services()}
            found = {
                n: desk("GetEntityInfo", entity=n).info.category.category
                for n in ("visitor", "cart", "guide")
            }
            assert found == {
                "visitor": Category.HUMAN,
                "cart": Category.DYNAMIC_OBJECT,
                "guide": Category.ROBOT,
            }

    asyncio.run(main())


@there
def test_named_poses(desk: RequestHandler) -> None:
    poses = desk("GetNamedPoses").poses
    assert {"Dock", "Home"} <= {p.name for p in poses}
    assert [
        p.name
        for p in desk("GetNamedPoses", tags=message("TagsFilter", tags=["Dock"])).poses
    ] == ["Dock"]
    bounds = desk("GetNamedPoseBounds", name="Dock")
    assert (bounds.result.result, bounds.bounds.type, len(bounds.bounds.points)) == (
        Code.OK,
        0,
        0,
    )
    assert desk.code("GetNamedPoseBounds", name="Mars") == Code.NOT_FOUND


@there
def test_robots_are_spawned_and_taken_away(desk: RequestHandler) -> None:
    place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(14.0, 14.0))
    spawn = {"uri": "botyard://p3dx", "initial_pose": place}
    eve = desk("SpawnEntity", name="eve", **spawn)
    assert (eve.result.result, eve.entity_name) == (Code.OK, "eve")
    assert desk.code("SpawnEntity", name="eve", **spawn) == Code.NAME_NOT_UNIQUE
    assert desk.code("SpawnEntity", **spawn) == Code.NAME_INVALID
    assert desk("SpawnEntity", allow_renaming=True, **spawn).entity_name == "p3dx"
    second = desk("SpawnEntity", name="eve", allow_renaming=True, **spawn).entity_name
    assert second not in ("", "eve") and second in desk.sim.robots
    for uri, code in (
        ("botyard://tricycle", Code.NOT_FOUND),
        ("", Code.NO_RESOURCE),
        ("package://robots/x.sdf", Code.UNSUPPORTED_FORMAT),
        ("botyard://", Code.UNSUPPORTED_FORMAT),
    ):
        assert desk.code("SpawnEntity", name="fay", **{**spawn, "uri": uri}) == code

    assert (
        desk.code(
            "SpawnEntity", name="fay", resource_string="<sdf/>", initial_pose=place
        )
        == Code.UNSUPPORTED_FORMAT
    )
    assert (
        desk.code("SpawnEntity", name="a", entity_namespace="b", **spawn)
        == Code.NAMESPACE_INVALID
    )
    far = TYPES.two("geometry_msgs/PoseStamped")(**stamped(1e9, 0.0))
    assert (
        desk.code("SpawnEntity", name="fay", uri="p3dx", initial_pose=far)
        == Code.INVALID_POSE
    )
    assert desk.code("DeleteEntity", entity="bob") == Code.OK
    assert desk.code("DeleteEntity", entity="bob") == Code.NOT_FOUND

    for scope in (1, 3, 8, 6 + 64):
        assert desk.code("ResetSimulation", scope=scope) == Code.FEATURE_UNSUPPORTED
    assert desk.code("ResetSimulation", scope=0) == Code.OK
    desk.sim.step(1)
    assert list(desk.sim.robots) == ["ann"]
    assert desk.ann.truth == pytest.approx((10.0, 14.0, 0.5))


@pytest.mark.parametrize("distro", ["jazzy", "lyrical"])
def test_many_are_spawned_in_one_request(distro: str) -> None:
    async def main() -> None:
        with RequestHandler(distro) as desk:

            def wanted(name: str, uri: str, x: float) -> Any:
                place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(x, 14.0))
                return message(
                    "SpawnEntity",
                    name=name,
                    entity_resource=message("Resource", uri=uri),
                    initial_pose=place,
                )

            asked = [
                wanted("eve", "p3dx", 14.0),
                wanted("eve", "p3at", 16.0),
                wanted("fay", "x://y", 18.0),
                wanted("gil", "amigo", 20.0),
            ]
            answer = await desk.later("SpawnEntities", spawn_requests=asked)
            assert (
                answer.result.result == Code.ENTITIES_SPAWN_FAILED
                and "2 of 4" in answer.result.error_message
            )
            codes = [Code.OK, Code.NAME_NOT_UNIQUE, Code.UNSUPPORTED_FORMAT, Code.OK]
            assert [r.result.result for r in answer.results] == codes
            assert [r.entity_name for r in answer.results] == ["eve", "", "", "gil"]
            assert desk.sim.robots["gil"].spec.name == "amigo"
            many = [wanted("", "p3dx", 1.0)] * 1001
            refused = desk.services["SpawnEntities"].serve(
                desk.types.filled(
                    f"{PACKAGE}/srv/SpawnEntities_Request", {"spawn_requests": many}
                )
            )
            assert refused.result.result == Code.OPERATION_FAILED

    asyncio.run(main())


def in_state(state: int) -> dict[str, Any]:
    return {"state": message("SimulationState", state=state)}


@there
def test_time_stands_still_and_is_stepped(desk: RequestHandler) -> None:
    assert desk("GetSimulationState").state.state == Time.PLAYING
    playing = desk("StepSimulation", steps=3).result
    assert playing.result == Code.OPERATION_FAILED and "paused" in playing.error_message
    assert desk.code("SetSimulationState", **in_state(Time.PAUSED)) == Code.OK
    assert (
        desk.code("SetSimulationState", **in_state(Time.PAUSED))
        == Code.ALREADY_IN_TARGET_STATE
    )
    assert desk("GetSimulationState").state.state == Time.PAUSED
    assert desk.code("StepSimulation", steps=3) == Code.OK
    assert desk.sim.time == pytest.approx(0.3), "done when it answers"
    assert desk.code("StepSimulation", steps=2**63) == Code.OPERATION_FAILED
    assert (
        desk.code("SetSimulationState", **in_state(Time.NO_WORLD))
        == Code.STATE_TRANSITION_ERROR
    )
    assert desk.code("SetSimulationState", **in_state(Time.PLAYING)) == Code.OK
    assert not desk.hub.is_paused


@there
def test_the_simulation_is_stopped(desk: RequestHandler) -> None:
    """Stopped means paused with all bodies at their starts, until it is played, stepped
    or paused.
    """
    place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(14.0, 14.0))
    desk("SpawnEntity", name="eve", uri="p3dx", initial_pose=place)
    desk.ann.command.velocity(0.5)
    desk.sim.step(20)
    for after, state in (
        (None, Time.STOPPED),
        (Time.PLAYING, Time.PLAYING),
        (Time.PAUSED, Time.PAUSED),
    ):
        if state is not Time.STOPPED:
            desk("SetSimulationState", **in_state(Time.STOPPED))
        assert (
            desk.code(
                "SetSimulationState",
                **in_state(Time.STOPPED if after is None else after),
            )
            == Code.OK
        )
        assert desk("GetSimulationState").state.state == state
        if after is None:
            assert (
                desk.ann.truth == pytest.approx((10.0, 14.0, 0.5))
                and "eve" not in desk.sim.robots
            )
            assert (
                desk.code("SetSimulationState", **in_state(Time.STOPPED))
                == Code.ALREADY_IN_TARGET_STATE
            )

    desk("SetSimulationState", **in_state(Time.STOPPED))
    assert desk.code("StepSimulation", steps=1) == Code.OK
    assert desk("GetSimulationState").state.state == Time.PAUSED


MAP = "2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 0\nNumLines: 1\nLINES\n0 0 9000 0\n"


def test_worlds_are_listed_loaded_and_unloaded(tmp_path: Path) -> None:
    (tmp_path / "hall.map").write_text(MAP)
    (tmp_path / "bad.map").write_text("2D-Map\nResolution: none\nDATA\n")
    (tmp_path / "notes.txt").write_text("no map")

    async def main(distro: str) -> None:
        with RequestHandler(distro, tmp_path) as desk:

            def resource(uri: str = "", text: str = "") -> dict[str, Any]:
                fields = {"uri": uri, "resource_string": text}
                return (
                    {"world_resource": message("Resource", **fields)}
                    if distro == "lyrical"
                    else fields
                )

            listed = await desk.later("GetAvailableWorlds", additional_sources=["x"])
            uris = {w.name: w.world_resource.uri for w in listed.worlds}
            assert (
                uris["office"] == "botyard://office"
                and uris["hall.map"] == "botyard://hall.map"
                and "notes.txt" not in uris
            )
            assert (
                listed.result.result == Code.OK and "x" in listed.result.error_message
            )
            shipped = await desk.later(
                "GetAvailableWorlds", filter=message("TagsFilter", tags=["shipped"])
            )
            assert "office" in {w.name for w in shipped.worlds} and "hall.map" not in {
                w.name for w in shipped.worlds
            }
            assert "office" in desk("GetCurrentWorld").world.world_resource.uri

            place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(14.0, 14.0))
            spawned = message(
                "SpawnEntity",
                name="eve",
                entity_resource=message("Resource", uri="p3dx"),
                initial_pose=place,
            )
            await desk.later("SpawnEntities", spawn_requests=[spawned])
            loading = asyncio.ensure_future(
                desk.later("LoadWorld", **resource("botyard://hall.map"))
            )
            await asyncio.sleep(0)
            assert desk("GetSimulationState").state.state == Time.LOADING_WORLD
            assert (
                desk.code("SetSimulationState", **in_state(Time.PAUSED))
                == Code.INCORRECT_STATE
            )
            assert desk.code("UnloadWorld") == Code.INCORRECT_STATE
            loaded = await loading
            assert (loaded.result.result, loaded.world.world_resource.uri) == (
                Code.OK,
                "botyard://hall.map",
            )
            assert desk("GetSimulationState").state.state == Time.STOPPED
            assert (
                list(desk.sim.robots) == ["ann", "bob"]
                and len(desk.sim.scene.segments) == 1
            )
            for given, code in (
                (resource("botyard://lost"), Code.NOT_FOUND),
                (resource(), Code.WORLD_NO_RESOURCE),
                (resource("https://a/b.sdf"), Code.WORLD_UNSUPPORTED_FORMAT),
                (resource("notes.txt"), Code.WORLD_UNSUPPORTED_FORMAT),
                (resource("bad.map"), Code.WORLD_PARSE_ERROR),
                (resource("/etc/passwd"), Code.NOT_FOUND),
                (
                    resource("a", "b") | {"fail_on_unsupported_element": True},
                    Code.FEATURE_UNSUPPORTED,
                ),
                (
                    resource(text="2D-Map\nResolution: x\nDATA\n"),
                    Code.WORLD_PARSE_ERROR,
                ),
                (resource(text="<sdf/>"), Code.WORLD_PARSE_ERROR),
            ):
                refused = await desk.later("LoadWorld", **given)
                assert refused.result.result == code, (
                    given,
                    refused.result.error_message,
                )
                assert len(desk.sim.scene.segments) == 1, "the old one stays"

            text = await desk.later(
                "LoadWorld", **resource(text=MAP.replace("9000", "8000"))
            )
            assert (
                text.result.result == Code.OK and desk.sim.scene.segments[0, 2] == 8.0
            )

            assert desk.code("UnloadWorld") == Code.OK
            assert (
                desk("GetSimulationState").state.state == Time.NO_WORLD
                and len(desk.sim.scene.segments) == 0
            )
            for service, fields in (
                ("SetSimulationState", in_state(Time.PLAYING)),
                ("StepSimulation", {"steps": 1}),
            ):
                assert desk.code(service, **fields) == Code.INCORRECT_STATE

            assert (
                desk.code("UnloadWorld")
                == Code.NO_WORLD_LOADED
                == desk.code("GetCurrentWorld")
            )
            assert (
                await desk.later("LoadWorld", **resource(f"file://{tmp_path}/hall.map"))
            ).result.result == Code.OK
            assert desk("GetSimulationState").state.state == Time.STOPPED

    asyncio.run(main("jazzy"))
    asyncio.run(main("lyrical"))


ZED = """botyard: 1
map: office
robots: [{name: zed, model: p3dx, pose: [16, 14, 0]}, {name: bob, model: p3at, pose: [14, 14, 0]}]
"""


def test_robots_come_and_go_with_the_world_that_brought_them(tmp_path: Path) -> None:
    """Robots of the command line stay at their starts, with a notice if they have no
    place; spawned ones are removed.
    """
    (tmp_path / "zed.yaml").write_text(ZED)
    (tmp_path / "wall.yaml").write_text("botyard: 1\nwalls: [[[10, 14], [11, 14]]]\n")

    async def main() -> None:
        with RequestHandler(folder=tmp_path) as desk:

            async def load(name: str) -> str:
                loaded = await desk.later("LoadWorld", uri=f"botyard://{name}")
                assert loaded.result.result == Code.OK
                return str(loaded.result.error_message)

            async def spawn() -> None:
                spawned = await desk.later(
                    "SpawnEntity",
                    name="eve",
                    uri="p3dx",
                    initial_pose=TYPES.two("geometry_msgs/PoseStamped")(
                        **stamped(18.0, 14.0)
                    ),
                )
                assert spawned.result.result == Code.OK

            def at_start(name: str) -> bool:
                return desk.sim.robots[name].truth == pytest.approx((10.0, 14.0, 0.5))

            await spawn()
            desk.ann.command(v=0.3)
            desk.sim.step(20)
            assert not at_start("ann")
            # Loading the same world a second time starts it anew.
            for _ in range(2):
                assert await load("zed.yaml") == ""
                assert list(desk.sim.robots) == ["ann", "bob", "zed"] and at_start(
                    "ann"
                )
                assert desk.sim.robots["bob"].truth.x == 14.0, (
                    "the world has a place for it, but it is not of the world"
                )
                await spawn()
                assert desk.code("ResetSimulation", scope=255) == Code.OK
                assert list(desk.sim.robots) == ["ann", "bob", "zed"], (
                    "the world stays as it is"
                )
                desk.sim.remove_robot("zed")

            assert (
                "robot ann at x=10 m, y=14 m touches something at its start"
                in await load("wall.yaml")
            )
            assert list(desk.sim.robots) == ["ann", "bob"] and at_start("ann")

            await load("zed.yaml")
            assert desk.code("DeleteEntity", entity="zed") == Code.OK
            desk.sim.add_robot("p3dx", "zed", pose=(16.0, 14.0, 0.0))
            await load("wall.yaml")
            assert "zed" in desk.sim.robots, "another one of that name"
            desk.sim.remove_robot("zed")
            await load("zed.yaml")
            assert desk.code("UnloadWorld") == Code.OK
            assert list(desk.sim.robots) == ["ann", "bob"]
            (tmp_path / "zed.yaml").write_text("botyard: 1\nwalls: x\n")
            await load("wall.yaml")
            await spawn()
            refused = await desk.later("LoadWorld", uri="botyard://zed.yaml")
            assert (
                refused.result.result == Code.WORLD_PARSE_ERROR
                and "eve" in desk.sim.robots
            ), "nothing has gone"

    asyncio.run(main())


@there
def test_patterns_that_never_end_elsewhere_hold_nobody_up(desk: RequestHandler) -> None:
    desk.sim.add_robot("p3dx", "a" * 63 + "!", pose=(14.0, 14.0, 0.0))
    for pattern in ("(a+)+$", "(a|aa)+b", "(a*)*(a*)*b"):
        assert desk(
            "GetEntities", filters=message("EntityFilters", filter=pattern)
        ).result.result in (
            Code.OK,
            Code.OPERATION_FAILED,
        )

    long = desk("GetEntities", filters=message("EntityFilters", filter="a" * 1000))
    assert (
        long.result.result == Code.OPERATION_FAILED
        and "at most 256" in long.result.error_message
    )
    many = message("EntityFilters", tags=message("TagsFilter", tags=["x"] * 2000))
    assert desk("GetEntities", filters=many).result.result == Code.OPERATION_FAILED


@there
def test_names_are_names_and_models_no_files(desk: RequestHandler) -> None:
    place = TYPES.two("geometry_msgs/PoseStamped")(**stamped(14.0, 14.0))
    for name in ("a" * 65, "a\nb", "a\x1b[2J", "  "):
        answer = desk(
            "SpawnEntity", name=name, uri="botyard://p3dx", initial_pose=place
        )
        assert (
            answer.result.result == Code.NAME_INVALID
            and answer.result.error_message.isprintable()
        )

    for model in ("/etc/passwd.p", "../x.toml", "x.TOML", "x.P", "a" * 1000, "\n"):
        answer = desk(
            "SpawnEntity", name="eve", uri=f"botyard://{model}", initial_pose=place
        )
        assert (
            answer.result.result == Code.NOT_FOUND
            and len(answer.result.error_message) < 300
        )

    lost = desk("GetEntityState", entity="x\n" * 1000)
    assert (
        lost.result.error_message.isprintable() and len(lost.result.error_message) < 200
    )
    assert sorted(desk.sim.robots) == ["ann", "bob"]


@there
def test_who_may_end_the_simulation(desk: RequestHandler) -> None:
    """DDS and Zenoh do not identify the caller, so the user must allow it."""
    quit_ = message("SimulationState", state=Time.QUITTING)
    refused = desk("SetSimulationState", state=quit_).result
    assert (
        refused.result == Code.FEATURE_UNSUPPORTED
        and "--allow-client-exit" in refused.error_message
    )
    ended: list[int] = []
    desk.control.end = lambda status, crash: ended.append(status)
    desk.control.allow_exit = True
    assert desk("SetSimulationState", state=quit_).result.result == Code.OK
    assert ended == [0]


def test_many_steps_are_made_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes when they are done; other clients are served in between, and may
    let time run.
    """
    monkeypatch.setattr(hub, "BATCH_TIME_S", 0.0)

    async def main() -> None:
        with RequestHandler() as desk:
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
            assert (
                answer.result.result == Code.OPERATION_FAILED
                and "were not made" in answer.result.error_message
            )
            assert desk.sim.tick < 200

    asyncio.run(main())


@pytest.mark.parametrize("service", ["SetSimulationState", "UnloadWorld", "LoadWorld"])
def test_who_stops_the_simulation_ends_the_steps_of_others(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would not be stopped, and the next world would start in the middle
    of them.
    """
    monkeypatch.setattr(hub, "BATCH_TIME_S", 0.0)
    fields = {
        "SetSimulationState": in_state(Time.STOPPED),
        "LoadWorld": {"resource_string": MAP},
    }.get(service, {})

    async def main() -> None:
        with RequestHandler() as desk:
            desk.hub.pause()
            several = [desk.ask("StepSimulation", steps=10**6) for _ in range(2)]
            assert (await desk.later(service, **fields)).result.result == Code.OK
            tick = desk.sim.tick
            for one in several:
                answer = (await asyncio.wrap_future(one)).result
                assert (
                    answer.result == Code.OPERATION_FAILED
                    and "were cancelled" in answer.error_message
                )

            state = Time.NO_WORLD if service == "UnloadWorld" else Time.STOPPED
            assert (
                desk("GetSimulationState").state.state == state
                and desk.sim.tick == tick
            )
            if service == "SetSimulationState":
                assert (
                    await desk.later("StepSimulation", steps=20)
                ).result.result == Code.OK, "others may step again"

    asyncio.run(main())


def test_requests_for_steps_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of requests, one portion runs in a turn of the loop, so that
    others are served.
    """
    monkeypatch.setattr(hub, "BATCH_TIME_S", 0.0)

    async def main() -> None:
        with RequestHandler() as desk:
            desk.hub.pause()
            waiting = [desk.ask("StepSimulation", steps=100) for _ in range(10)]
            most, before = 0, desk.sim.tick
            assert before == hub.MIN_BATCH_STEPS
            while not all(one.done() for one in waiting):
                await asyncio.sleep(0)
                most, before = max(most, desk.sim.tick - before), desk.sim.tick

            assert most == hub.MIN_BATCH_STEPS and desk.sim.tick == 1000
            monkeypatch.setattr(hub, "MAX_STEP_REQUESTS", 3)
            many = [desk.ask("StepSimulation", steps=10**6) for _ in range(3)]
            await asyncio.sleep(0)
            assert desk.code("StepSimulation", steps=1) == Code.OPERATION_FAILED
            desk.hub.resume()
            for one in many:
                assert (
                    await asyncio.wrap_future(one)
                ).result.result == Code.OPERATION_FAILED

    asyncio.run(main())
