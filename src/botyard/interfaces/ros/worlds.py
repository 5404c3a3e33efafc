"""Requests of simulation_interfaces about worlds: list, load and unload them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import unquote

from botyard.control import Caller, Control, LoadWorld, UnloadWorld
from botyard.control.later import then
from botyard.control.world import NO_MAPS
from botyard.errors import BotyardError, FormatError, NotNowError
from botyard.formats.reading import ReadingFailed
from botyard.interfaces.ros.entities import has_tags
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_LISTED
from botyard.protocols.ros_messages.simulation_interfaces import PACKAGE, Code, Refused
from botyard.protocols.ros_messages.types import Types
from botyard.sim.placement_warnings import doubtful_places

SCHEME: Final = "botyard://"
"""URI scheme of the simulator's own resources: models of robots, and maps, by name.

Maps are found in the folders from which clients may load maps.
"""
FILES: Final = "file://"
SHIPPED: Final = "shipped"
"""Tag of the maps that the package contains."""
_REASONS: Final[Mapping[str, Code]] = {
    "NoSuchMapError": Code.NOT_FOUND,
    "UnknownFormatError": Code.WORLD_UNSUPPORTED_FORMAT,
}
"""Result codes for errors of reading a map, by class name of the error.

Other errors have the code WORLD_PARSE_ERROR.
"""

Answer = dict[str, Any]


class Worlds:
    """Answers to requests about worlds.

    Parameters
    ----------
    types : Types
        Message types.
    control : Control
        The control surface.
    caller : Caller
        Caller of operations.
    """

    def __init__(self, types: Types, control: Control, caller: Caller) -> None:
        self._types = types
        self._control = control
        self._caller = caller

    def _resource(self, name: str, uri: str, tags: tuple[str, ...]) -> Any:
        resource = self._types.filled(f"{PACKAGE}/msg/Resource", {"uri": uri})
        fields = {"name": name, "world_resource": resource, "tags": list(tags)}
        return self._types.filled(f"{PACKAGE}/msg/WorldResource", fields)

    # -- available and current worlds

    def available(self, request: Any) -> Future[Answer]:
        """Return the maps that clients may load (GetAvailableWorlds).

        A worker reads their folders, so that the run loop does not wait for the disk.

        Parameters
        ----------
        request : GetAvailableWorlds.Request
            Filter of tags; additional sources are ignored with a remark.

        Returns
        -------
        Future
            Answer with the URI and the tags of each map.

        Raises
        ------
        Refused
            The filter has more than `MAX_LISTED` tags. The future raises it if folders
            cannot be read.
        """
        if len(request.filter.tags) > MAX_LISTED:
            raise Refused(
                Code.OPERATION_FAILED,
                f"filter: expected at most {MAX_LISTED} tags, found {len(request.filter.tags)}",
            )

        maps = self._control.part(self._control.maps, NO_MAPS)

        def answer(found: Future[list[tuple[str, bool]]]) -> Answer:
            try:
                names = found.result()
            except (OSError, BotyardError) as error:
                raise Refused(Code.DEFAULT_SOURCES_FAILED, shown(error, 300)) from None

            worlds = [(name, _tags(name, shipped)) for name, shipped in names]
            listed = [
                self._resource(n, SCHEME + n, tags)
                for n, tags in worlds
                if has_tags(request.filter, tags)
            ]
            return {
                "worlds": listed,
                "remark": other_sources(request.additional_sources),
            }

        return then(maps.run_in_thread(maps.names), answer)

    def current(self, _request: Any) -> Answer:
        """Return the loaded world (GetCurrentWorld).

        Raises
        ------
        Refused
            No world is loaded.
        """
        if self._control.is_unloaded:
            raise Refused(Code.NO_WORLD_LOADED, "no world is loaded")
        return {"world": self._present()}

    def _present(self) -> Any:
        scene = self._control.sim.scene
        # Report only the file name: clients must not learn the folders of this machine.
        file = PurePath(scene.source).name
        return self._resource(
            shown(scene.name),
            SCHEME + file if file else "",
            _tags(file, False) if file else (),
        )

    # -- loading and unloading

    def load(self, request: Any) -> Future[Answer]:
        """Load a map or a world by its name, or from the text of its file (LoadWorld).

        Parameters
        ----------
        request : LoadWorld.Request
            URI of a world, or the text of a file.

        Returns
        -------
        Future
            Answer with the loaded world, and a remark about what could not be loaded.

        Raises
        ------
        Refused
            The request names no world, or its field ``fail_on_unsupported_element`` is
            true.
        """
        resource = getattr(
            # Version 1.x has the fields of the resource in the request itself.
            request,
            "world_resource",
            request,
        )
        uri, text = str(resource.uri), str(resource.resource_string)
        name, data = _map_name(uri), None

        # Without a URI the text of the file itself must be given.
        if not uri:
            if not text:
                raise Refused(
                    Code.WORLD_NO_RESOURCE,
                    f"expected the uri of a world, for example {SCHEME}office",
                )

            name, data = _file_name(text), text.encode()

        # Readers of maps log unsupported elements and skip them, so loading cannot fail
        # because of them, as this field requires.
        if request.fail_on_unsupported_element:
            raise Refused(
                Code.FEATURE_UNSUPPORTED,
                "fail_on_unsupported_element: not supported; the log names skipped elements",
            )

        loading = self._control.do(self._caller, LoadWorld(map=name, data=data))

        def answer(done: Future[bool]) -> Answer:
            _result(done)
            return {"world": self._present(), "remark": self._doubts()}

        return then(loading, answer)

    def _doubts(self) -> str:
        """Return a warning about robots that collide with the new world, or are outside of it.

        These robots keep their start poses, which may be inside an obstacle.
        """
        sim = self._control.sim
        stayed = [name for name in sim.robots if name not in self._control.of_world]
        return "; ".join(doubtful_places(sim.core.engine, stayed, sim.scene.bounds))

    def unload(self, _request: Any) -> Answer:
        """Unload the world (UnloadWorld).

        Raises
        ------
        Refused
            No world is loaded, or the simulation is in a state that forbids it.
        """
        try:
            self._control.do(self._caller, UnloadWorld())
        except NotNowError as error:
            code = (
                Code.NO_WORLD_LOADED
                if self._control.is_unloaded
                else Code.INCORRECT_STATE
            )
            raise Refused(code, str(error)) from None

        return {}


def _result(loading: Future[bool]) -> None:
    """Raise the error of a failed load as `Refused`, with the codes of LoadWorld."""
    try:
        loading.result()
    except (FormatError, ReadingFailed) as error:
        # A worker process sends only the class name of its error.
        kind = getattr(error, "kind", "") or type(error).__name__
        raise Refused(
            _REASONS.get(kind, Code.WORLD_PARSE_ERROR), shown(error, 300)
        ) from None


def other_sources(sources: Any) -> str:
    """Return a remark that names the ignored sources; empty if there are none.

    The standard lets a request with such sources succeed.

    Parameters
    ----------
    sources : sequence of str
        Sources of a request; the remark names the first ten.
    """
    names = [shown(source, 60) for source in sources[:10]]
    return f"these sources are ignored: {', '.join(names)}" if names else ""


def _tags(name: str, shipped: bool) -> tuple[str, ...]:
    """Return the tags of a map: its file suffix, and `SHIPPED` for a map of this package."""
    kind = PurePath(name).suffix.removeprefix(".").lower() or "map"
    return (kind, SHIPPED) if shipped else (kind,)


def _map_name(uri: str) -> str:
    """Return the name of the map that a URI names; for a file its path.

    Raises
    ------
    Refused
        The scheme is not supported.
    """
    if uri.startswith(SCHEME):
        return uri.removeprefix(SCHEME)
    if uri.startswith(FILES):
        return unquote(uri.removeprefix(FILES))
    if "://" in uri:
        raise Refused(
            Code.WORLD_UNSUPPORTED_FORMAT,
            f"uri: expected {SCHEME}NAME or {FILES}PATH, found {shown(uri)}",
        )

    return uri


def _file_name(text: str) -> str:
    """Return a file name with the suffix of a text's format.

    ArMap files start with "2D-Map"; all other texts are read as scenarios.
    """
    return (
        "resource_string.map"
        if text[:6].lower() == "2d-map"
        else "resource_string.yaml"
    )


__all__ = ["SCHEME", "Worlds", "other_sources"]
