"""Description of a run: the part of a plan in which parameters appear as ``$name``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from botyard.model.filetables import Triple
from botyard.model.tablecheck import Strict

_NAME: Final = re.compile(r"\$(\$|port\.[\w-]+|[A-Za-z_]\w*)")
PORT: Final = "port."
"""Prefix of port placeholders: ``$port.bob`` is the Pioneer port of robot ``bob``.

The port is only known when the run starts.
"""
Measure = Literal["reached", "time", "distance", "contacts", "clearance", "stall_time"]
MEASURES: Final[Mapping[str, str]] = {
    "reached": "",
    "time": "s",
    "distance": "m",
    "contacts": "",
    "clearance": "m",
    "stall_time": "s",
}
"""Measures of worlds, with their units."""
TRAFFIC_UNITS: Final[Mapping[str, str]] = {
    "makespan": "s",
    "completion": "s",
    "waiting": "s",
}
"""Units of the results of traffic runs."""


class RobotPart(Strict, kw_only=True):
    """A robot added to the map; pose in m, m, degrees.

    The model is a name, a file, or a table as in a robot file.
    """

    model: str | dict[str, Any] = "p3dx"
    pose: Triple | None = None


class ProgramPart(Strict, kw_only=True):
    """An outside program that controls robots.

    ``speed`` is a multiple of real time; 0: as fast as possible.
    """

    command: list[str | int | float]
    ready: list[str] | None = None
    speed: float = 1.0
    lockstep: bool = False
    ros1: bool = False
    ros2: bool = False


class TrafficPart(Strict, kw_only=True):
    """A task of robots on sector paths, and its supervisor; times in s."""

    task: str
    supervisor: str
    robots: int = 0
    time_limit: float = 1e6
    stop_at_end: bool = False
    leaves: bool = False
    goes_on: bool = False
    original_braking: bool = False
    latency: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0


class GoalPart(Strict, kw_only=True):
    """Goal that ends a run: a robot is close to a target.

    ``target`` is a name, or x and y in m; ``within`` in m, ``heading`` in degrees.
    """

    robot: str
    target: str | list[float]
    within: float
    heading: float | None = None


class Setup(Strict, kw_only=True):
    """Description of one run, with parameter values filled in."""

    run: str = ""
    map: str = ""
    robots: dict[str, str | RobotPart] = msgspec.field(default_factory=dict)
    controllers: dict[str, str | dict[str, Any]] = msgspec.field(default_factory=dict)
    program: ProgramPart | None = None
    traffic: TrafficPart | None = None
    goal: GoalPart | None = None
    measures: list[Measure] = msgspec.field(default_factory=list)

    @property
    def has_world(self) -> bool:
        """Whether the run has a world; functions may do without one."""
        return bool(self.map or self.robots)


KEYS: Final = frozenset(Setup.__struct_fields__)
"""Keys of a plan in whose values parameters may appear."""


def strings_of(value: object) -> Iterator[str]:
    """Yield all texts in plain data, without dictionary keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)


def place_of(value: object, name: str, where: str = "$") -> str:
    """Return the location of the first text that contains a parameter.

    The result looks like ``$.robots.bob.pose[0]``; it is `where` itself if no text
    does.
    """
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, one in steps:
            if name in names_in(one):
                return place_of(
                    one,
                    name,
                    f"{where}[{step}]"
                    if isinstance(value, list)
                    else f"{where}.{step}",
                )

    return where


def names_in(value: object) -> set[str]:
    """Return the names of all parameters that appear in plain data."""
    found = {m[1] for text in strings_of(value) for m in _NAME.finditer(text)}
    return {name for name in found if name != "$" and not name.startswith(PORT)}


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return plain data with parameter values in place of ``$name``.

    ``$$`` is a dollar sign.

    A text that consists of ``$name`` alone becomes the value itself. Inside a longer
    text, the value is inserted as text.

    Raises
    ------
    KeyError
        A parameter is unknown.
    """
    if isinstance(value, str):
        return _filled_text(value, lambda name: values[name])
    if isinstance(value, dict):
        return {key: filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    return value


def with_ports(words: list[str | int | float], ports: Mapping[str, int]) -> list[str]:
    """Return a command line with ports in place of ``$port.NAME``."""
    return [_PORT.sub(lambda m: str(ports[m[1]]), str(word)) for word in words]


_PORT: Final = re.compile(r"\$port\.([\w-]+)")


def _filled_text(text: str, value: Callable[[str], Any]) -> Any:
    """Return a text with parameter values filled in; port placeholders stay."""
    if "$" not in text:
        return text
    whole = _NAME.fullmatch(text)
    if whole and whole[1] != "$" and not whole[1].startswith(PORT):
        return value(whole[1])

    def one(m: re.Match[str]) -> str:
        if m[1] == "$":
            return "$"
        return m[0] if m[1].startswith(PORT) else str(value(m[1]))

    return _NAME.sub(one, text)


__all__ = [
    "KEYS",
    "MEASURES",
    "TRAFFIC_UNITS",
    "GoalPart",
    "ProgramPart",
    "RobotPart",
    "Setup",
    "TrafficPart",
    "filled",
    "names_in",
    "place_of",
    "strings_of",
    "with_ports",
]
