"""Services of the ROS 2 standard simulation_interfaces: entities, spawning, time, reset."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np

from botyard.control import (
    AddedRobots,
    AddRobot,
    Caller,
    Control,
    Exit,
    Level,
    Operation,
    Pause,
    Place,
    Remove,
    Reset,
    Resume,
    StepNow,
)
from botyard.control.later import then
from botyard.elementary import cosine_sine
from botyard.errors import (
    BotyardError,
    DeniedError,
    NameRuleError,
    NameTakenError,
    NotNowError,
    PeerError,
    UnknownNameError,
)
from botyard.formats.models import find_robot, model_names
from botyard.geometry import Pose, Twist
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.world import THING
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_LISTED
from botyard.protocols.ros_messages.messages import Messages, Stamp, yaw_of
from botyard.protocols.ros_messages.regex import Pattern
from botyard.protocols.ros_messages.robot import Service
from botyard.protocols.ros_messages.simulation_interfaces import (
    ALL_BOUNDS,
    ALL_TAGS,
    BOX,
    CHANGING,
    OBJECT,
    PACKAGE,
    ROBOT,
    SCOPE_SPAWNED,
    SCOPE_STATE,
    SCOPE_TIME,
    Code,
    Feature,
    Time,
)
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

FRAMES: Final = frozenset(["", "map", "world"])
"""Accepted frames of poses."""
SCHEME: Final = "botyard://"
"""URI scheme of robot models that can be spawned."""

OPERATIONS: Final[Mapping[str, type[Operation[Any]]]] = {
    "DeleteEntity": Remove,
    "ResetSimulation": Reset,
    "SetEntityState": Place,
    "SetSimulationState": Pause,
    "SpawnEntity": AddRobot,
    "StepSimulation": StepNow,
}
"""Main operation of each service that changes something; read-only callers are not offered it."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    name: "not in the standard; the simulator's own services, topics and AMBF's have what ROS programs need of it"
    for name in (
        "AddRobots", "ClearMap", "CloneRobots", "Drive", "EnableMotors", "FreeMaps", "Hold", "HoldTime", "LoadMap", "MoveJoystick",
        "PlaceAxis", "PressEmergencyStop", "ReloadMap", "RotateLog", "SendMap", "SetAnalogInput", "SetDigitalInputs", "SetGhost",
        "SetOdometryErrors", "SetSpeed", "Step", "SwitchInterface", "TakeBodies", "TakeRobot", "Throttle", "WritePicture",
    )
}  # fmt: skip
"""Operations without a service in simulation_interfaces 1.0."""

log = logging.getLogger("botyard.ros")


class Refused(Exception):
    """A request is refused.

    Parameters
    ----------
    code : Code
        Result code.
    text : str
        Error message.
    """

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def _code(error: BotyardError) -> Code:
    """Result code of an error."""
    if isinstance(error, NotNowError):
        return Code.INCORRECT_STATE
    return Code.NOT_FOUND if isinstance(error, UnknownNameError) else Code.OPERATION_FAILED


@contextmanager
def _refusals_to_add() -> Iterator[None]:
    """Convert errors of adding a robot to the result codes of SpawnEntity."""
    try:
        yield
    except NameRuleError as error:
        raise Refused(Code.NAME_INVALID, str(error)) from None
    except NameTakenError as error:
        raise Refused(Code.NAME_NOT_UNIQUE, str(error)) from None
    except DeniedError:
        raise
    except BotyardError as error:
        raise Refused(Code.NO_RESOURCE, str(error)) from None


def _spawned(added: Future[AddedRobots]) -> dict[str, Any]:
    with _refusals_to_add():
        return {"entity_name": added.result().robots[0]}


class RosSimulator:
    """The services of simulation_interfaces.

    Parameters
    ----------
    node : str
        Node name, the prefix of the services.
    types, messages : Types, Messages
        Message types and factory.
    control : Control
        The control surface.
    stamp : callable
        Returns the time stamp of the present state.
    caller : Caller
        Caller of operations.
    """

    def __init__(
        self,
        node: str,
        types: Types,
        messages: Messages,
        control: Control,
        stamp: Callable[[], Stamp],
        caller: Caller,
    ) -> None:
        self._node = node
        self._types = types
        self._m = messages
        self._control = control
        self._caller = caller
        self._sim = control.sim
        self._stamp = stamp

    def services(self) -> list[Service]:
        """All services; they are offered to ROS 2 only."""
        serving: list[tuple[str, Callable[[Any], dict[str, Any] | Future[dict[str, Any]]], str]] = [
            ("GetSimulatorFeatures", self._features, "what of simulation_interfaces can be asked for"),
            ("GetEntities", lambda r: {"entities": self._filtered(r.filters)}, "names of robots and things"),
            ("GetEntitiesStates", self._states, "where they are"),
            ("GetEntityState", lambda r: {"state": self._state(self._known(r.entity))}, "where one is"),
            ("SetEntityState", self._place, "put one somewhere"),
            ("GetEntityInfo", lambda r: {"info": self._info(self._known(r.entity))}, "what one is"),
            ("GetEntityBounds", lambda r: {"bounds": self._bounds(self._known(r.entity))}, "how large one is"),
            ("GetNamedPoses", self._poses, "goals, docks and homes of the map"),
            ("GetSpawnables", self._spawnables, "models of robots"),
            ("SpawnEntity", self._spawn, "another robot"),
            ("DeleteEntity", self._delete, "take one away"),
            ("GetSimulationState", self._time, "whether time goes on"),
            (
                "SetSimulationState",
                self._set_time,
                "let time go on or stand still, or (with `--allow-client-exit`) end the program",
            ),
            ("StepSimulation", self._step, "so many steps while time stands still; answers when they are done"),
            ("ResetSimulation", self._reset, "robots back to their starts, spawned ones away"),
        ]
        return [self._service(*entry) for entry in serving]

    def _service(
        self, name: str, answer: Callable[[Any], dict[str, Any] | Future[dict[str, Any]]], about: str
    ) -> Service:
        path = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        response = f"{PACKAGE}/srv/{name}_Response"
        plain = name == "GetSimulatorFeatures"  # its response has no result field

        def respond(act: Callable[[], Any]) -> Any:
            code, text, fields = Code.OK, "", {}
            try:
                found = act()
                if isinstance(found, Future):
                    return then(found, lambda done: respond(done.result))
                fields = dict(found)
                text = fields.pop("remark", "")
            except Refused as refused:
                code, text = refused.code, str(refused)
            except BotyardError as error:
                code, text = _code(error), str(error)
            if not plain:
                fields["result"] = self._make("Result", result=int(code), error_message=text)
            return self._types.filled(response, fields)

        def serve(request: Any) -> Any:
            return respond(lambda: answer(request))

        return Service(
            f"{self._node}/{path}", f"{PACKAGE}/{name}", serve, about, only="cdr", operation=OPERATIONS.get(name)
        )

    def _make(self, kind: str, /, **fields: Any) -> Any:
        return self._types.two(f"{PACKAGE}/{kind}")(**fields)

    # -- entities

    def _names(self) -> list[str]:
        return [*self._sim.robots, *self._sim.box_names]

    def _known(self, name: Any) -> str:
        if str(name) not in self._names():
            raise Refused(Code.NOT_FOUND, f'there is no robot or thing "{shown(name)}"')
        return str(name)

    def _spec(self, name: str) -> RobotSpec | BoxObject:
        """Model of an entity."""
        robot: Robot | None = self._sim.robots.get(name)
        return robot.spec if robot is not None else self._sim.scene.boxes[self._sim.box_names.index(name)]

    def _category(self, name: str) -> int:
        spec = self._spec(name)
        return ROBOT if isinstance(spec, RobotSpec) and spec.drive and spec.name != THING else OBJECT

    def _tags(self, name: str) -> list[str]:
        spec = self._spec(name)
        return [spec.name] if isinstance(spec, RobotSpec) else ["box"]

    def _pose(self, name: str) -> list[float]:
        snapshot = self._sim.snapshot
        found: list[float] = snapshot.state.pose[snapshot.rows[name]].tolist()
        return found

    def _filtered(self, filters: Any) -> list[str]:
        try:
            pattern = Pattern(str(filters.filter))
            names = [n for n in self._names() if pattern.search(n)]
        except PeerError as error:
            raise Refused(Code.OPERATION_FAILED, f"filter: {error}") from None
        if len(filters.categories) > MAX_LISTED or len(filters.tags.tags) > MAX_LISTED:
            raise Refused(Code.OPERATION_FAILED, f"filters: at most {MAX_LISTED} tags and categories are taken")
        if categories := {int(c.category) for c in filters.categories}:
            names = [n for n in names if self._category(n) in categories]
        names = [n for n in names if self._has(filters.tags, self._tags(n))]
        if int(filters.bounds.type) == ALL_BOUNDS:
            return names
        if int(filters.bounds.type) != BOX or len(filters.bounds.points) != 2:
            raise Refused(Code.FEATURE_UNSUPPORTED, "bounds: expected a box of two corners")
        (x0, x1), (y0, y1) = (sorted(float(getattr(p, axis)) for p in filters.bounds.points) for axis in ("x", "y"))
        poses = {n: self._pose(n) for n in names}
        return [n for n, (x, y, _) in poses.items() if x0 <= x <= x1 and y0 <= y <= y1]

    def _has(self, wanted: Any, tags: Iterable[str]) -> bool:
        if not wanted.tags:
            return True
        found = [tag in tags for tag in wanted.tags]
        return all(found) if int(wanted.filter_mode) == ALL_TAGS else any(found)

    def _state(self, name: str) -> Any:
        m, snapshot = self._m, self._sim.snapshot
        row = snapshot.rows[name]
        x, y, yaw = snapshot.state.pose[row].tolist()
        v, vy, w = snapshot.state.vel[row].tolist()
        cos, sin = cosine_sine(yaw)
        still = self._types["geometry_msgs/Accel"](m.vector(0.0, 0.0), m.vector(0.0, 0.0))
        return self._make(
            "EntityState",
            header=m.header(self._stamp(), "map"),
            pose=m.pose(Pose(x, y, yaw)),
            twist=m.twist(Twist(v * cos - vy * sin, v * sin + vy * cos, w)),
            acceleration=still,  # the engine keeps no accelerations
        )

    def _states(self, request: Any) -> dict[str, Any]:
        names = self._filtered(request.filters)
        return {"entities": names, "states": [self._state(n) for n in names]}

    def _wanted_pose(self, header: Any, pose: Any, code: Code) -> Pose:
        if str(header.frame_id) not in FRAMES:
            raise Refused(code, f'pose: expected one in the frame "map", found "{shown(header.frame_id)}"')
        found = Pose(float(pose.position.x), float(pose.position.y), yaw_of(pose.orientation))
        if not all(map(math.isfinite, found)):
            raise Refused(code, "pose: expected finite numbers")
        return found

    def _place(self, request: Any) -> dict[str, Any]:
        name, state = self._known(request.entity), request.state
        pose = self._wanted_pose(state.header, state.pose, Code.OPERATION_FAILED)
        self._control.do(self._caller, Place(to=((name, pose),)))
        moving = [getattr(v, a) for v in (state.twist.linear, state.twist.angular) for a in "xyz"]
        return {"remark": "the twist is not taken over: robots move by cmd_vel"} if any(moving) else {}

    def _info(self, name: str) -> Any:
        spec = self._spec(name)
        about = f"{spec.pioneer.subclass or spec.name}" if isinstance(spec, RobotSpec) else "box of the map"
        category = self._make("EntityCategory", category=self._category(name))
        return self._make("EntityInfo", category=category, description=about, tags=self._tags(name))

    def _box(self, spec: RobotSpec | BoxObject) -> Any:
        outlines = spec.parts or (spec.outline,) if isinstance(spec, RobotSpec) else spec.outlines
        corners = np.array([corner for outline in outlines for corner in outline])
        (x0, y0), (x1, y1) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
        return self._make("Bounds", type=BOX, points=[self._m.vector(x1, y1), self._m.vector(x0, y0)])

    def _bounds(self, name: str) -> Any:
        return self._box(self._spec(name))

    # -- the map

    def _poses(self, request: Any) -> dict[str, Any]:
        places = [p for p in self._sim.scene.places if self._has(request.tags, (p.kind,))]
        return {
            "poses": [
                self._make(
                    "NamedPose",
                    name=shown(p.name),
                    description=shown(p.kind),
                    tags=[shown(p.kind)],
                    pose=self._m.pose(p.pose),
                )
                for p in places
            ]
        }

    # -- spawning

    def _spawnables(self, request: Any) -> dict[str, Any]:
        if request.sources:
            raise Refused(Code.FEATURE_UNSUPPORTED, "sources: models come from the program's own folders")
        found = []
        for name in model_names():
            with suppress(BotyardError):  # skip invalid files of the user
                bounds = self._box(find_robot(name))
                found.append(self._make("Spawnable", uri=SCHEME + name, description=name, spawn_bounds=bounds))
        return {"spawnables": found}

    def _spawn(self, request: Any) -> dict[str, Any] | Future[dict[str, Any]]:
        name, uri, space = (str(getattr(request, f)) for f in ("name", "uri", "entity_namespace"))
        if request.resource_string:
            raise Refused(Code.FEATURE_UNSUPPORTED, "resource_string: expected the uri of a model")
        model = uri.removeprefix(SCHEME)
        if not model:
            raise Refused(Code.NO_RESOURCE, f"uri: expected a model, for example {SCHEME}p3dx")
        name = name or space.strip("/")
        if space.strip("/") not in ("", name):
            raise Refused(Code.NAMESPACE_INVALID, "entity_namespace: the topics of a robot are under its name")
        pose = self._wanted_pose(request.initial_pose.header, request.initial_pose.pose, Code.INVALID_POSE)
        rename = bool(request.allow_renaming)
        with _refusals_to_add():
            added = self._control.do(self._caller, AddRobot(model=model, robot=name, pose=pose, rename=rename))
        return _spawned(added) if added.done() else then(added, _spawned)

    def _delete(self, request: Any) -> dict[str, Any]:
        self._control.do(self._caller, Remove(names=(self._known(request.entity),)))
        return {}

    # -- time

    @property
    def _is_paused(self) -> bool:
        return self._control.clock is not None and self._control.clock.is_paused

    def _time(self, _request: Any) -> dict[str, Any]:
        state = Time.PAUSED if self._is_paused else Time.PLAYING
        return {"state": self._make("SimulationState", state=int(state))}

    def _set_time(self, request: Any) -> dict[str, Any]:
        wanted = int(request.state.state)
        if wanted == Time.QUITTING:
            try:
                self._control.do(self._caller, Exit(command="SetSimulationState"))
            except DeniedError:
                raise Refused(Code.FEATURE_UNSUPPORTED, "quitting needs --allow-client-exit") from None
            return {}
        if wanted not in (Time.PLAYING, Time.PAUSED):
            raise Refused(Code.FEATURE_UNSUPPORTED, "state: expected playing (1), paused (2) or quitting (3)")
        if (wanted == Time.PAUSED) == self._is_paused:
            raise Refused(Code.ALREADY_IN_TARGET_STATE, "the simulation is in that state already")
        self._control.do(self._caller, Pause() if wanted == Time.PAUSED else Resume())
        return {}

    def _step(self, request: Any) -> dict[str, Any] | Future[dict[str, Any]]:
        done = self._control.do(self._caller, StepNow(steps=int(request.steps)))
        if done.done():
            done.result()
            return {}

        def answer(made: Future[None]) -> dict[str, Any]:
            made.result()
            return {}

        return then(done, answer)

    def _reset(self, request: Any) -> dict[str, Any]:
        scope = int(request.scope) or SCOPE_STATE | SCOPE_SPAWNED
        if scope == SCOPE_TIME:
            raise Refused(Code.FEATURE_UNSUPPORTED, "simulated time never goes back")
        self._control.do(self._caller, Reset(spawned=bool(scope & SCOPE_SPAWNED), starts=bool(scope & SCOPE_STATE)))
        return {"remark": "time goes on"} if scope & SCOPE_TIME else {}

    def _features(self, _request: Any) -> dict[str, Any]:
        features = self._make(
            "SimulatorFeatures",
            features=np.array(
                [int(f) for f in Feature if f not in CHANGING or self._control.allows(self._caller, Level.CHANGE)],
                np.uint16,
            ),
            spawn_formats=[],
            custom_info=f"models by name, as {SCHEME}p3dx",
        )
        return {"features": features}
