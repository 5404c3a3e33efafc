"""Services and action of simulation_interfaces, ROS 2's standard for simulators.

The services and the action use the control surface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from botyard.control import (
    AddEach,
    AddRobot,
    Caller,
    Control,
    Exit,
    Level,
    LoadWorld,
    Operation,
    Pause,
    Remove,
    Reset,
    Resume,
    SetBodyInfo,
    SetBodyState,
    StepNow,
    Stop,
    UnloadWorld,
)
from botyard.control.later import then
from botyard.errors import (
    BotyardError,
    CommandError,
    DeniedError,
    NotNowError,
    UnknownNameError,
)
from botyard.geometry import Twist
from botyard.interfaces.ros.entities import Entities, has_tags, wanted_pose
from botyard.interfaces.ros.spawning import Spawning
from botyard.interfaces.ros.worlds import SCHEME, Worlds
from botyard.names import shown
from botyard.protocols.ros_messages.actions import ActionServer, Goal, Status
from botyard.protocols.ros_messages.graphoffers import Service
from botyard.protocols.ros_messages.limits import MAX_LISTED
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.simulation_interfaces import (
    CHANGING,
    PACKAGE,
    SCOPE_ALL,
    SCOPE_SPAWNED,
    SCOPE_STATE,
    SCOPE_TIME,
    Code,
    Feature,
    Refused,
    Shape,
    Time,
)
from botyard.protocols.ros_messages.typenames import snake_case
from botyard.protocols.ros_messages.types import Types

OPERATIONS: Final[Mapping[str, type[Operation[Any]]]] = {
    "DeleteEntity": Remove,
    "LoadWorld": LoadWorld,
    "ResetSimulation": Reset,
    "SetEntityInfo": SetBodyInfo,
    "SetEntityState": SetBodyState,
    "SetSimulationState": Pause,
    "SpawnEntities": AddEach,
    "SpawnEntity": AddRobot,
    "StepSimulation": StepNow,
    "UnloadWorld": UnloadWorld,
}
"""Main operation of each service that changes the simulation, by name of the service.

A caller without permission for the operation is not offered the service.
"""
NOT_OFFERED: Final[Mapping[str, str]] = {
    name: "the standard has no such service; ROS programs use the simulator's own "
    "services and topics, or AMBF's"
    for name in (
        "AddRobots",
        *("ClearField", "ClearMap", "MarkFloor", "RemoveZone", "SetZone", "EditMap"),
        *("RunTraffic", "EndTraffic", "HoldTraffic", "StepTraffic"),
        *("GrantSector", "RevokeSector"),
        "CloneRobots",
        "CommandDevice",
        "DockRobots",
        "Drive",
        "EnableMotors",
        "FindPlaces",
        "FreeMaps",
        "GoTo",
        "Hold",
        "HoldTime",
        "LoadMap",
        "LookAtMap",
        "MoveJoystick",
        "Place",
        "PlaceAxis",
        "PressEmergencyStop",
        "ReloadMap",
        "RenameRobots",
        "RotateLog",
        "SendMap",
        "SendRobots",
        "SetCharge",
        "SetAnalogInput",
        "SetDigitalInputs",
        "SetGhost",
        "SetOdometryErrors",
        "SetPoseEstimate",
        "SetSpeed",
        "Step",
        "SwitchInterface",
        "TakeBodies",
        "TakeRobot",
        "Throttle",
        "WritePicture",
        "WriteMovie",
        "CancelMovie",
        "Undo",
        "Redo",
        "Branch",
        "SaveRecording",
        "StartRecording",
        "StopRecording",
        "ReadFile",
    )
}
"""Operations for which simulation_interfaces has no service, each with the reason."""
CUSTOM_INFO: Final = (
    f"models and maps by name, as {SCHEME}p3dx; the world is flat: heights are "
    "ignored; accelerations are reported as zero; robots that were given on the command "
    "line remain when the world changes; simulated time never goes back"
)

Answer = dict[str, Any]


def _code(error: BotyardError) -> Code:
    """Return the result code of the standard for an error."""
    if isinstance(error, NotNowError):
        return Code.INCORRECT_STATE
    return (
        Code.NOT_FOUND if isinstance(error, UnknownNameError) else Code.OPERATION_FAILED
    )


class RosSimulator:
    """Services and action of simulation_interfaces.

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
        self._entities = Entities(types, messages, control, stamp)
        self._spawning = Spawning(types, control, caller, self._entities)
        self._worlds = Worlds(types, control, caller)

    def services(self) -> list[Service]:
        """Return all services of the standard; they are offered to ROS 2 only."""
        entities, spawning, worlds = self._entities, self._spawning, self._worlds
        known = entities.known
        serving: list[tuple[str, Callable[[Any], Answer | Future[Answer]], str]] = [
            (
                "GetSimulatorFeatures",
                self._features,
                "supported features of simulation_interfaces",
            ),
            (
                "GetEntities",
                lambda r: {"entities": entities.filtered(r.filters)},
                "names of robots and objects",
            ),
            (
                "GetEntitiesStates",
                self._states,
                "poses and velocities of robots and objects",
            ),
            (
                "GetEntityState",
                lambda r: {"state": entities.state(known(r.entity))},
                "pose and velocity of a robot or object",
            ),
            (
                "SetEntityState",
                self._set_state,
                "set the pose and the velocity of a robot or object",
            ),
            (
                "GetEntityInfo",
                lambda r: {"info": entities.info(known(r.entity))},
                "category, description and tags of a robot or object",
            ),
            (
                "SetEntityInfo",
                self._set_info,
                "set category, description and tags of a robot or object",
            ),
            (
                "GetEntityBounds",
                lambda r: {"bounds": entities.bounds(known(r.entity))},
                "bounding box of a robot or object",
            ),
            ("GetNamedPoses", self._poses, "goals, docks and homes of the map"),
            (
                "GetNamedPoseBounds",
                self._pose_bounds,
                "bounds of a named pose: always empty, since poses are points",
            ),
            ("GetSpawnables", spawning.spawnables, "models of robots"),
            ("SpawnEntity", spawning.spawn, "add a robot"),
            (
                "SpawnEntities",
                spawning.spawn_many,
                "add robots, with one result for each",
            ),
            ("DeleteEntity", self._delete, "remove one"),
            (
                "GetAvailableWorlds",
                worlds.available,
                "maps and worlds that can be loaded",
            ),
            ("GetCurrentWorld", worlds.current, "the map"),
            (
                "LoadWorld",
                worlds.load,
                "load a map or world, by name or from the text of its file; "
                "pauses the simulation",
            ),
            ("UnloadWorld", worlds.unload, "remove the map"),
            (
                "GetSimulationState",
                self._time,
                "whether the simulation is running, paused or stopped",
            ),
            (
                "SetSimulationState",
                self._set_time,
                "run, pause or stop the simulation, or (with "
                "`--allow-client-exit`) exit the program",
            ),
            (
                "StepSimulation",
                self._step,
                "run a number of steps while paused; answers after the last step",
            ),
            (
                "ResetSimulation",
                self._reset,
                "return robots to their start poses, and remove spawned ones",
            ),
        ]
        return [self._service(*entry) for entry in serving]

    def _service(
        self, name: str, answer: Callable[[Any], Answer | Future[Answer]], about: str
    ) -> Service:
        # In the standard, the name of a service is its type in snake case.
        path = snake_case(name)
        response = f"{PACKAGE}/srv/{name}_Response"
        # The response of this service has no result field.
        plain = name == "GetSimulatorFeatures"

        def respond(act: Callable[[], Any]) -> Any:
            code, text, fields = Code.OK, "", {}
            try:
                found = act()
                if isinstance(found, Future):
                    # A result that is already available is returned at once, for
                    # transports that answer in the same call.
                    return (
                        respond(found.result)
                        if found.done()
                        else then(found, lambda done: respond(done.result))
                    )

                fields = dict(found)
                code, text = fields.pop("code", code), fields.pop("remark", "")
            except Refused as refused:
                code, text = refused.code, str(refused)
            except BotyardError as error:
                code, text = _code(error), str(error)

            if not plain:
                fields["result"] = self._result(code, text)
            return self._types.filled(response, fields)

        def serve(request: Any) -> Any:
            return respond(lambda: answer(request))

        return Service(
            f"{self._node}/{path}",
            f"{PACKAGE}/{name}",
            serve,
            about,
            only="cdr",
            operation=OPERATIONS.get(name),
        )

    def action(
        self, clock: Callable[[], float], defer: Callable[[Callable[[], None]], object]
    ) -> ActionServer:
        """Return the server of the action SimulateSteps.

        Parameters
        ----------
        clock : callable
            Returns the wall time, s.
        defer : callable
            Calls a function soon, after the present request has been answered.
        """
        return ActionServer(
            f"{self._node}/simulate_steps",
            f"{PACKAGE}/SimulateSteps",
            self._types,
            self._simulate,
            stamp=self._stamp,
            clock=clock,
            defer=defer,
            about="run a number of steps while paused; reports each step",
            operation=StepNow,
            unbegun=lambda: {"result": self._result(Code.OK, "")},
        )

    def _make(self, kind: str, /, **fields: Any) -> Any:
        return self._types.two(f"{PACKAGE}/{kind}")(**fields)

    def _result(self, code: Code, text: str) -> Any:
        return self._make("Result", result=int(code), error_message=text)

    # -- entities

    def _states(self, request: Any) -> Answer:
        names = self._entities.filtered(request.filters)
        return {"entities": names, "states": [self._entities.state(n) for n in names]}

    def _set_state(self, request: Any) -> Answer:
        name, state = self._entities.known(request.entity), request.state
        twist, acceleration = state.twist, state.acceleration
        pose = None
        # Version 1.x always sets the pose.
        if getattr(request, "set_pose", True):
            pose = wanted_pose(state.header, state.pose, Code.STATE_INVALID_POSE)
        wanted = None
        if getattr(request, "set_twist", True):
            wanted = Twist(
                float(twist.linear.x), float(twist.linear.y), float(twist.angular.z)
            )

        operation = SetBodyState(body=name, pose=pose, twist=wanted)
        accelerates = any(
            getattr(v, a)
            for v in (acceleration.linear, acceleration.angular)
            for a in "xyz"
        )
        accelerates = accelerates and bool(getattr(request, "set_acceleration", True))

        # The standard requires an error for an acceleration of a static entity. For
        # other entities the request succeeds, with a remark that accelerations are
        # ignored.
        if accelerates and not self._control.is_movable(name):
            raise Refused(
                Code.OPERATION_FAILED,
                f"{shown(name)} is static: its acceleration cannot be set",
            )

        try:
            self._control.do(self._caller, operation)
        except CommandError as error:
            raise Refused(Code.STATE_INVALID_POSE, str(error)) from None

        return {"remark": "accelerations are ignored"} if accelerates else {}

    def _set_info(self, request: Any) -> Answer:
        name, info = self._entities.known(request.entity), request.info
        category, tags = int(info.category.category), tuple(map(str, info.tags))
        about = str(info.description)
        self._control.do(
            self._caller,
            SetBodyInfo(body=name, category=category, description=about, tags=tags),
        )
        return {}

    def _delete(self, request: Any) -> Answer:
        self._control.do(
            self._caller, Remove(names=(self._entities.known(request.entity),))
        )
        return {}

    # -- the map

    def _poses(self, request: Any) -> Answer:
        if len(request.tags.tags) > MAX_LISTED:
            raise Refused(
                Code.OPERATION_FAILED,
                f"tags: expected at most {MAX_LISTED}, found {len(request.tags.tags)}",
            )

        poses = [
            self._make(
                "NamedPose",
                name=shown(p.name),
                description=shown(p.kind),
                tags=[shown(p.kind)],
                pose=self._m.pose(p.pose),
            )
            for p in self._sim.scene.places
            if has_tags(request.tags, (p.kind,))
        ]
        return {"poses": poses}

    def _pose_bounds(self, request: Any) -> Answer:
        if str(request.name) not in {
            shown(place.name) for place in self._sim.scene.places
        }:
            raise Refused(Code.NOT_FOUND, f'no named pose "{shown(request.name)}"')

        return {"bounds": self._make("Bounds", type=int(Shape.EMPTY), points=[])}

    # -- time

    @property
    def _present(self) -> Time:
        control = self._control
        if control.loading:
            return Time.LOADING_WORLD
        if control.is_unloaded:
            return Time.NO_WORLD
        if control.is_stopped:
            return Time.STOPPED
        return (
            Time.PAUSED
            if control.clock is not None and control.clock.is_paused
            else Time.PLAYING
        )

    def _check_world(self) -> None:
        """Raise Refused if no world is loaded."""
        if self._present in (Time.NO_WORLD, Time.LOADING_WORLD):
            text = (
                "no world is loaded"
                if self._present is Time.NO_WORLD
                else "a world is being loaded"
            )
            raise Refused(Code.INCORRECT_STATE, text)

    def _time(self, _request: Any) -> Answer:
        return {"state": self._make("SimulationState", state=int(self._present))}

    def _set_time(self, request: Any) -> Answer:
        wanted = int(request.state.state)
        # Exiting is possible in every state, even without a world.
        if wanted == Time.QUITTING:
            try:
                self._control.do(self._caller, Exit(command="SetSimulationState"))
            except DeniedError:
                raise Refused(
                    Code.FEATURE_UNSUPPORTED, "quitting needs --allow-client-exit"
                ) from None

            return {}

        operations = {Time.STOPPED: Stop, Time.PLAYING: Resume, Time.PAUSED: Pause}
        if wanted not in operations:
            text = (
                "state: expected stopped (0), playing (1), paused (2) or "
                f"quitting (3), found {wanted}"
            )
            raise Refused(Code.STATE_TRANSITION_ERROR, text)

        self._check_world()
        # The standard requires an error if the simulation is already in the wanted
        # state.
        if wanted == self._present:
            raise Refused(
                Code.ALREADY_IN_TARGET_STATE,
                f"the simulation is already in the state {wanted}",
            )

        self._control.do(self._caller, operations[Time(wanted)]())
        return {}

    def _step(self, request: Any) -> Future[Answer]:
        self._check_world()

        def answer(made: Future[None]) -> Answer:
            with_steps(made.result)
            return {}

        return then(
            with_steps(
                lambda: self._control.do(
                    self._caller, StepNow(steps=int(request.steps))
                )
            ),
            answer,
        )

    def _simulate(self, goal: Goal) -> None:
        """Execute a goal of the action SimulateSteps."""
        total = int(goal.request.steps)

        def progress(left: int) -> bool:
            goal.feedback(completed_steps=total - left, remaining_steps=left)
            # Returning False ends the steps early when the goal is cancelled.
            return not goal.is_canceling

        def over(made: Future[None]) -> None:
            try:
                made.result()
            except BotyardError as error:
                goal.end(
                    Status.ABORTED,
                    result=self._result(Code.OPERATION_FAILED, str(error)),
                )
                return

            ended = Status.CANCELED if goal.is_canceling else Status.SUCCEEDED
            goal.end(ended, result=self._result(Code.OK, ""))

        try:
            self._check_world()
            self._control.do(
                self._caller, StepNow(steps=total, progress=progress)
            ).add_done_callback(over)
        except (BotyardError, Refused) as error:
            goal.end(
                Status.ABORTED, result=self._result(Code.OPERATION_FAILED, str(error))
            )

    def _reset(self, request: Any) -> Answer:
        scope = int(request.scope) or SCOPE_ALL
        if scope == SCOPE_ALL:
            self._control.do(self._caller, Reset(spawned=True))
            return {"remark": "simulated time continues: it never goes back"}

        # Time that goes back would confuse tf and every other ROS node.
        if scope & SCOPE_TIME:
            raise Refused(Code.FEATURE_UNSUPPORTED, "simulated time never goes back")
        if scope & ~(SCOPE_STATE | SCOPE_SPAWNED):
            raise Refused(
                Code.FEATURE_UNSUPPORTED,
                f"scope: expected bits of state (2) and spawned (4), found {scope}",
            )

        self._control.do(
            self._caller,
            Reset(
                spawned=bool(scope & SCOPE_SPAWNED), starts=bool(scope & SCOPE_STATE)
            ),
        )
        return {}

    def _features(self, _request: Any) -> Answer:
        # List only the features that the caller's permissions allow.
        may_change = self._control.allows(self._caller, Level.CHANGE)
        features = self._make(
            "SimulatorFeatures",
            features=np.array(
                [int(f) for f in Feature if f not in CHANGING or may_change], np.uint16
            ),
            spawn_formats=["botyard"],
            custom_info=CUSTOM_INFO,
        )
        return {"features": features}


def with_steps(act: Callable[[], Any]) -> Any:
    """Call a function; report a running simulation as `Code.OPERATION_FAILED`.

    The standard requires this code for steps, instead of the code for a wrong state.
    """
    try:
        return act()
    except NotNowError as error:
        raise Refused(Code.OPERATION_FAILED, str(error)) from None


__all__ = ["NOT_OFFERED", "OPERATIONS", "PACKAGE", "SCHEME", "RosSimulator"]
