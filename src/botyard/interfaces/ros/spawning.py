"""Services of simulation_interfaces that add robots of known models (spawning).

A request spawns one robot or several robots.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Final

from botyard.control import AddEach, AddedRobots, AddRobot, Caller, Control
from botyard.control.adding import MAX_ROBOTS_PER_REQUEST
from botyard.control.later import then
from botyard.errors import (
    BotyardError,
    CommandError,
    FormatError,
    ModelError,
    NameRuleError,
    NameTakenError,
)
from botyard.formats.models import find_robot, model_names
from botyard.interfaces.ros.entities import Entities, wanted_pose
from botyard.interfaces.ros.worlds import SCHEME, other_sources
from botyard.names import shown
from botyard.protocols.ros_messages.simulation_interfaces import PACKAGE, Code, Refused
from botyard.protocols.ros_messages.types import Types

_REASONS: Final[tuple[tuple[type[BotyardError], Code], ...]] = (
    (NameRuleError, Code.NAME_INVALID),
    (NameTakenError, Code.NAME_NOT_UNIQUE),
    (CommandError, Code.INVALID_POSE),
    (FormatError, Code.RESOURCE_PARSE_ERROR),
    (ModelError, Code.NOT_FOUND),
)
"""Result codes for errors of adding a robot, by class of the error; the first match counts."""

Answer = dict[str, Any]


@contextmanager
def _reasons() -> Iterator[None]:
    """Convert errors of adding a robot in the block to `Refused` with codes of SpawnEntity."""
    try:
        yield
    except BotyardError as error:
        raise _refusal(error) from None


def _refusal(error: BotyardError) -> Refused | BotyardError:
    code = next((code for kind, code in _REASONS if isinstance(error, kind)), None)
    return error if code is None else Refused(code, str(error))


class Spawning:
    """Answers to requests that add robots.

    Parameters
    ----------
    types : Types
        Message types.
    control : Control
        The control surface.
    caller : Caller
        Caller of operations.
    entities : Entities
        The entities of the world.
    """

    def __init__(
        self, types: Types, control: Control, caller: Caller, entities: Entities
    ) -> None:
        self._types = types
        self._control = control
        self._caller = caller
        self._entities = entities
        # The versions of the standard differ in this field.
        self._has_resource = "entity_resource" in dict(
            types.fields(f"{PACKAGE}/Spawnable")
        )

    def spawnables(self, request: Any) -> Answer:
        """Return the models of robots (GetSpawnables).

        Models that cannot be read are skipped.

        Parameters
        ----------
        request : GetSpawnables.Request
            Its sources are ignored with a remark.
        """
        found = []
        for name in model_names():
            # An invalid file of the user must not hide the other models.
            with suppress(BotyardError):
                fields = {
                    "description": name,
                    "spawn_bounds": self._entities.box(find_robot(name)),
                }
                if self._has_resource:
                    fields["entity_resource"] = self._types.filled(
                        f"{PACKAGE}/msg/Resource", {"uri": SCHEME + name}
                    )
                else:
                    fields["uri"] = SCHEME + name

                found.append(self._types.filled(f"{PACKAGE}/msg/Spawnable", fields))

        return {"spawnables": found, "remark": other_sources(request.sources)}

    def spawn(self, request: Any) -> Future[Answer]:
        """Add a robot (SpawnEntity).

        Parameters
        ----------
        request : SpawnEntity.Request
            URI of the model, name and pose.

        Returns
        -------
        Future
            Answer with the robot's name, when it is in the world.

        Raises
        ------
        Refused
            The request is not valid, or the control surface denies it.
        """

        def answer(added: Future[AddedRobots]) -> Answer:
            with _reasons():
                return {"entity_name": added.result().robots[0]}

        with _reasons():
            return then(self._control.do(self._caller, _addition(request)), answer)

    def spawn_many(self, request: Any) -> Future[Answer]:
        """Add several robots, each with its own result (SpawnEntities).

        Parameters
        ----------
        request : SpawnEntities.Request
            Requests of single robots.

        Returns
        -------
        Future
            Answer with a result for each request, in their order. Some may have failed.

        Raises
        ------
        Refused
            The request asks for more than `MAX_ROBOTS_PER_REQUEST` robots.
        """
        if len(request.spawn_requests) > MAX_ROBOTS_PER_REQUEST:
            raise Refused(
                Code.OPERATION_FAILED,
                f"spawn_requests: expected at most {MAX_ROBOTS_PER_REQUEST} robots, found "
                f"{len(request.spawn_requests)}",
            )

        # Store the error of an invalid request in its place, so that the results are in
        # the order of the requests.
        wanted: list[AddRobot | Refused] = []
        for one in request.spawn_requests:
            try:
                wanted.append(_addition(one))
            except Refused as refused:
                wanted.append(refused)

        additions = tuple(one for one in wanted if isinstance(one, AddRobot))

        def answer(done: Future[tuple[AddedRobots | BotyardError, ...]]) -> Answer:
            made = iter(done.result())
            results = [
                one if isinstance(one, Refused) else next(made) for one in wanted
            ]
            fails = sum(not isinstance(one, AddedRobots) for one in results)
            fields: Answer = {"results": [self._result(one) for one in results]}
            if fails:
                text = f"{fails} of {len(results)} robots were not spawned"
                fields |= {"code": Code.ENTITIES_SPAWN_FAILED, "remark": text}

            return fields

        return then(self._control.do(self._caller, AddEach(robots=additions)), answer)

    def _result(self, one: AddedRobots | Refused | BotyardError) -> Any:
        """Return the SpawnResult for one of the requests."""
        code, text, name = Code.OK, "", ""
        if isinstance(one, AddedRobots):
            name = one.robots[0]
        else:
            error = one if isinstance(one, Refused) else _refusal(one)
            code, text = (
                (error.code if isinstance(error, Refused) else Code.OPERATION_FAILED),
                str(error),
            )

        result = self._types.two(f"{PACKAGE}/Result")(
            result=int(code), error_message=text
        )
        return self._types.two(f"{PACKAGE}/SpawnResult")(
            result=result, entity_name=name
        )


def _addition(request: Any) -> AddRobot:
    """Return the operation that adds the robot of a request.

    Raises
    ------
    Refused
        The request is not valid; with the codes of SpawnEntity.
    """
    # Version 1.x has the fields of the resource in the request itself.
    resource = getattr(request, "entity_resource", request)
    uri, rename = str(resource.uri), bool(request.allow_renaming)
    name, space = str(request.name), str(request.entity_namespace).strip("/")
    if not uri:
        if resource.resource_string:
            raise Refused(
                Code.UNSUPPORTED_FORMAT,
                f"resource_string: not supported; give the model in uri, for example {SCHEME}p3dx",
            )

        raise Refused(
            Code.NO_RESOURCE,
            f"uri: expected a model, for example {SCHEME}p3dx, found none",
        )

    model = uri.removeprefix(SCHEME)
    if "://" in model or not model:
        raise Refused(
            Code.UNSUPPORTED_FORMAT, f"uri: expected {SCHEME}MODEL, found {shown(uri)}"
        )

    if not name and not rename:
        raise Refused(
            Code.NAME_INVALID,
            "name: expected a name, or allow_renaming true, found an empty name",
        )
    name = name or space
    # Each robot's topics are under its own name, so another namespace is impossible.
    if space not in ("", name):
        raise Refused(
            Code.NAMESPACE_INVALID,
            "entity_namespace: expected the robot's name, which is the prefix of its topics, or an "
            f'empty text, found "{shown(space)}"',
        )

    pose = wanted_pose(
        request.initial_pose.header, request.initial_pose.pose, Code.INVALID_POSE
    )
    with _reasons():
        return AddRobot(model=model, robot=name, pose=pose, rename=rename)


__all__ = ["Spawning"]
