"""Each service and each input of the simulator, used once, over any middleware; see
ros2_scenes.py.
"""

from __future__ import annotations

import math
import time
from typing import Any

from ros2_scenes import LATCHED, OK, PATIENCE_S, PAUSED, PLAYING, nanoseconds, type_of

SIMULATION = "simulation_interfaces/srv"
OURS = "botyard_msgs/srv"


class Caller:
    """Calls services by the names of their types, and remembers them."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer
        self.called: set[str] = set()

    def __call__(self, name: str, kind: str, /, **fields: Any) -> Any:
        self.called.add(name)
        return self._peer.call(name, type_of(kind), **fields)

    def ours(self, name: str, kind: str, /, **fields: Any) -> Any:
        """Return the answer of a service of the world that must succeed."""
        kind = kind if "/" in kind else f"{OURS}/{kind}"
        answer = self(f"/botyard/{name}", kind, **fields)
        assert answer.success, (name, answer)
        return answer

    def standard(self, kind: str, /, **fields: Any) -> Any:
        """Return the answer of a service of simulation_interfaces that must succeed."""
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind)[1:]
        answer = self(f"/botyard/{name}", f"{SIMULATION}/{kind}", **fields)
        assert getattr(answer, "result", None) is None or answer.result.result == OK, (
            kind,
            answer,
        )
        return answer


def call_all(make: Any, robot: str) -> list[str]:
    """Call every service; return the names."""
    with make("caller") as peer:
        call = Caller(peer)
        truth = peer.listen(
            f"/{robot}/base_pose_ground_truth", type_of("nav_msgs/msg/Odometry")
        )
        clock = peer.listen("/clock", type_of("rosgraph_msgs/msg/Clock"))
        motors = peer.listen(
            f"/{robot}/motors_state", type_of("std_msgs/msg/Bool"), LATCHED
        )
        peer.wait(lambda: truth and clock and motors, "nothing to read")
        _time(peer, call, clock)
        _robots(peer, call, robot, truth)
        _entities(peer, call, robot)
        _worlds(peer, call)
        call("/reset_positions", "std_srvs/srv/Empty")
        for name, wanted in (("disable_motors", False), ("enable_motors", True)):
            call(f"/{robot}/{name}", "std_srvs/srv/Empty")
            peer.wait(lambda wanted=wanted: motors[-1][1].data is wanted, name)
        return sorted(call.called)


def _time(peer: Any, call: Caller, clock: Any) -> None:
    trigger = "std_srvs/srv/Trigger"
    call.ours("pause", trigger)
    state = call.standard("GetSimulationState").state.state
    assert state == PAUSED
    # Messages of steps before the pause may still come.
    call.standard("StepSimulation", steps=1)
    peer.wait(lambda: clock, "no time")
    last = nanoseconds(clock[-1][1].clock)
    call.ours("step", "Step", steps=3)
    peer.wait(lambda: nanoseconds(clock[-1][1].clock) > last, "no step")
    call.ours("set_speed", "SetSpeed", factor=2.0)
    call.ours("set_speed", "SetSpeed", factor=1.0)
    call.ours("resume", trigger)
    features = call.standard("GetSimulatorFeatures").features
    assert features.features and features.spawn_formats is not None
    call.ours("start_recording", "StartRecording", name="ring", last=5.0)
    peer.wait(lambda: nanoseconds(clock[-1][1].clock) > last + 10**9, "no time")
    saved = call.ours("save_recording", "SaveRecording", name="part")
    ended = call.ours("stop_recording", "StopRecording")
    assert saved.file and ended is not None


def _robots(peer: Any, call: Caller, robot: str, truth: Any) -> None:
    pose = type_of("geometry_msgs/msg/Pose2D")
    at = truth[-1][1].pose.pose.position
    there = pose(x=at.x + 0.05, y=at.y, theta=0.5)
    call.ours("set_pose", "SetPose", name=robot, pose=there)
    peer.wait(
        lambda: (
            math.dist(
                (there.x, there.y),
                (truth[-1][1].pose.pose.position.x, truth[-1][1].pose.pose.position.y),
            )
            < 0.01
        ),
        lambda: truth[-1][1].pose.pose,
    )
    added = call.ours("add_robot", "AddRobot", model="p3dx", name="eve", anywhere=True)
    assert added.name == "eve"
    call.ours("remove_robot", "RemoveRobot", name="eve")
    resource = type_of("simulation_interfaces/msg/Resource")
    two = [
        type_of("simulation_interfaces/msg/SpawnEntity")(
            name=name, entity_resource=resource(uri="botyard://p3dx")
        )
        for name in ("fay", "gus")
    ]
    spawned = call.standard("SpawnEntities", spawn_requests=two).results
    assert [one.result.result for one in spawned] == [OK, OK]
    one = call.standard("SpawnEntity", name="hal", uri="botyard://amigo")
    names = set(call.standard("GetEntities").entities)
    assert {robot, "fay", "gus", one.entity_name} <= names
    for name in ("fay", "gus", "hal"):
        call.standard("DeleteEntity", entity=name)
    assert not {"fay", "gus", "hal"} & set(call.standard("GetEntities").entities)
    assert any("p3dx" in s.uri for s in call.standard("GetSpawnables").spawnables)


def _entities(peer: Any, call: Caller, robot: str) -> None:
    both = call.standard("GetEntitiesStates")
    assert len(both.entities) == len(both.states) and robot in both.entities
    state = call.standard("GetEntityState", entity=robot).state
    state.pose.position.x -= 0.05
    call.standard("SetEntityState", entity=robot, state=state)

    def away() -> float:
        found = call.standard("GetEntityState", entity=robot).state.pose.position.x
        return abs(found - state.pose.position.x)

    # The next step puts it there.
    peer.wait(lambda: away() < 1e-6, away)
    info = call.standard("GetEntityInfo", entity=robot).info
    info.description = "a robot of this test"
    call.standard("SetEntityInfo", entity=robot, info=info)
    again = call.standard("GetEntityInfo", entity=robot).info
    assert again.description == info.description
    assert call.standard("GetEntityBounds", entity=robot).bounds.points
    poses = call.standard("GetNamedPoses").poses
    assert poses
    call.standard("GetNamedPoseBounds", name=poses[0].name)


def _worlds(peer: Any, call: Caller) -> None:
    grid = call("/static_map", "nav_msgs/srv/GetMap").map
    assert len(grid.data) == grid.info.width * grid.info.height > 1000
    worlds = [w.world_resource.uri for w in call.standard("GetAvailableWorlds").worlds]
    assert any("warehouse" in uri for uri in worlds), worlds
    call.ours("load_map", "LoadMap", name="warehouse")
    # This service answers before the map is read.
    peer.wait(
        lambda: (
            "warehouse" in call.standard("GetCurrentWorld").world.world_resource.uri
        ),
        "the old map",
    )
    call.standard("UnloadWorld")
    call.standard("LoadWorld", uri="botyard://office")
    call.standard("ResetSimulation")
    playing = type_of("simulation_interfaces/msg/SimulationState")(state=PLAYING)
    call.standard("SetSimulationState", state=playing)
    state = call.standard("GetSimulationState").state.state
    assert state == PLAYING


def command_all(make: Any, robot: str) -> list[str]:
    """Publish each input until it has its effect; return the names."""
    std, geometry = "std_msgs/msg", "geometry_msgs/msg"
    odometry = type_of("nav_msgs/msg/Odometry")
    with make("commander", use_sim_time=True) as peer:
        odom = peer.listen(f"/{robot}/odom", odometry)
        truth = peer.listen(f"/{robot}/base_pose_ground_truth", odometry)
        where = type_of(f"{geometry}/PoseWithCovarianceStamped")
        located = peer.listen(f"/{robot}/amcl_pose", where, LATCHED)
        motors = peer.listen(f"/{robot}/motors_state", type_of(f"{std}/Bool"), LATCHED)
        joints = peer.listen(
            f"/{robot}/joint_states", type_of("sensor_msgs/msg/JointState")
        )
        grids = peer.listen("/map", type_of("nav_msgs/msg/OccupancyGrid"), LATCHED)
        lines = peer.listen("/rosout", type_of("rcl_interfaces/msg/Log"))
        streams = (odom, truth, located, motors, joints, grids)
        peer.wait(lambda: all(streams), lambda: [len(s) for s in streams])
        peer.wait(lambda: peer.stamp() is not None, "no time")
        done: list[str] = []

        def until(name: str, kind: str, holds: Any, **fields: Any) -> None:
            made = type_of(kind)(**fields)
            # A participant of Fast DDS has one type for each topic.
            out = peer.writer(name, type_of(kind))
            peer.wait(out.readers, f"no reader of {name}")
            end = time.monotonic() + PATIENCE_S
            while not holds():
                assert time.monotonic() < end, name
                out.publish(made)
                peer.turn(0.1)
            done.append(name)

        def joint(part: str) -> float:
            message = joints[-1][1]
            named = dict(zip(message.name, message.position, strict=True))
            return named[f"{part}_paddle_joint"]

        def speed(wanted: float) -> bool:
            return math.isclose(odom[-1][1].twist.twist.angular.z, wanted, abs_tol=0.02)

        vector = type_of(f"{geometry}/Vector3")
        twist = type_of(f"{geometry}/Twist")(angular=vector(z=0.3))
        until(
            f"/{robot}/cmd_vel",
            f"{geometry}/Twist",
            lambda: speed(0.3),
            angular=vector(z=0.3),
        )
        # A stamp of 0 means now.
        until(
            f"/{robot}/cmd_vel_stamped",
            f"{geometry}/TwistStamped",
            lambda: speed(-0.3),
            twist=type_of(f"{geometry}/Twist")(angular=vector(z=-0.3)),
        )
        assert twist.angular.z == 0.3
        for value in (False, True):
            until(
                f"/{robot}/enable_motors_cmd",
                f"{std}/Bool",
                lambda value=value: motors[-1][1].data is value,
                data=value,
            )
        for part in ("left", "right"):
            before = joint(part)
            until(
                f"/{robot}/gripper/{part}_cmd",
                f"{std}/Float64",
                lambda part=part, before=before: abs(joint(part) - before) > 0.005,
                data=0.02,
            )
        # No topic shows the lift, but it refuses a height that is none.
        until(
            f"/{robot}/gripper/lift_cmd",
            f"{std}/Float64",
            lambda: any("lift" in m.msg for _, m in lines),
            data=math.nan,
        )

        place = type_of(f"{geometry}/Pose")()
        here = truth[-1][1].pose.pose.position
        place.position.x, place.position.y = here.x + 0.05, here.y
        place.orientation.w = 1.0
        placed = type_of(f"{geometry}/PoseStamped")(pose=place)
        placed.header.frame_id = "map"

        def is_at(messages: Any) -> bool:
            pose = messages[-1][1].pose.pose.position
            return (
                math.dist((pose.x, pose.y), (place.position.x, place.position.y)) < 0.01
            )

        until(
            f"/{robot}/set_pose",
            f"{geometry}/PoseStamped",
            lambda: is_at(truth),
            header=placed.header,
            pose=place,
        )
        place.position.y += 0.2
        believed = type_of(f"{geometry}/PoseWithCovariance")(pose=place)
        until(
            f"/{robot}/initialpose",
            f"{geometry}/PoseWithCovarianceStamped",
            lambda: is_at(located),
            header=placed.header,
            pose=believed,
        )
        _command_world(peer, until, grids)
        return done


def _command_world(peer: Any, until: Any, grids: Any) -> None:
    def stands() -> bool:
        before = nanoseconds(peer.stamp())
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            peer.turn(0.05)
        return nanoseconds(peer.stamp()) == before

    std, world = "std_msgs/msg", "/botyard"
    until(f"{world}/pause_cmd", f"{std}/Bool", stands, data=True)
    last = nanoseconds(peer.stamp())
    until(
        f"{world}/step_cmd",
        f"{std}/UInt32",
        lambda: nanoseconds(peer.stamp()) > last,
        data=2,
    )
    until(f"{world}/pause_cmd", f"{std}/Bool", lambda: not stands(), data=False)

    def factor() -> float:
        start, wall = nanoseconds(peer.stamp()), time.monotonic()
        while time.monotonic() < wall + 1.0:
            peer.turn(0.05)
        return (nanoseconds(peer.stamp()) - start) * 1e-9 / (time.monotonic() - wall)

    # Slower than any machine under load.
    until(f"{world}/set_speed_cmd", f"{std}/Float64", lambda: factor() < 0.3, data=0.1)
    width = grids[-1][1].info.width
    until(
        f"{world}/load_map_cmd",
        f"{std}/String",
        lambda: grids[-1][1].info.width != width,
        data="warehouse",
    )


def use_all(make: Any, robot: str) -> dict[str, list[str]]:
    """Use every service, then every input, in one process; return the names."""
    return {"called": call_all(make, robot), "commanded": command_all(make, robot)}


CALLS = {f.__name__: f for f in (use_all,)}
