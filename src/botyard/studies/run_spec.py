"""Description of a run: the part of a plan in which parameters appear as ``$name``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from botyard.model.filetables import Triple
from botyard.model.tablecheck import Strict

# A doubled $ means a dollar sign; names with a dot are ports.
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
    """A robot added to the map.

    Attributes
    ----------
    model : str or dict
        Name or file of a model, or a table as in a robot file.
    pose : [x, y, heading], optional
        Start pose, m, m, degrees. The default is the next free place at the map's
        home.
    """

    model: str | dict[str, Any] = "p3dx"
    pose: Triple | None = None


class ProgramPart(Strict, kw_only=True):
    """An outside program that controls robots.

    Attributes
    ----------
    command : list
        Program and its arguments; ``$port.NAME`` becomes the port of a robot.
    ready : list of str, optional
        Names of robots: the run starts when the program is a client of all of them. The
        default is the robots whose ports appear in the command.
    speed : float
        Multiple of real time; 0: as fast as possible.
    lockstep : bool
        Whether simulated time waits for the program.
    ros1, ros2 : bool
        Whether the world offers the interfaces of ROS.
    """

    command: list[str | int | float]
    ready: list[str] | None = None
    speed: float = 1.0
    lockstep: bool = False
    ros1: bool = False
    ros2: bool = False


class TrafficPart(Strict, kw_only=True):
    """A task of robots on sector paths, and its supervisor.

    Attributes
    ----------
    task : str
        Task file, shipped task, or family of generated tasks.
    supervisor : str
        Name of the supervisor, or code.
    robots : int
        Number of robots of a generated task; 0: the task is a file or a shipped one.
    time_limit : float
        Limit of simulated time, s.
    stop_at_end, leaves, goes_on, original_braking : bool
        See `botyard.traffic.rules.Rules`.
    latency, jitter : float
        Delay of messages and its variation, s.
    loss : float
        Probability of a lost message, 0 … 1.
    """

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

    Attributes
    ----------
    robot : str
        Name of the robot.
    target : str or [x, y]
        Name of a robot, a box or a place; or a position, m.
    within : float
        Distance from the target, m.
    heading : float, optional
        Greatest difference from the heading of the target, degrees; by default headings
        do not matter.
    """

    robot: str
    target: str | list[float]
    within: float
    heading: float | None = None


class Setup(Strict, kw_only=True):
    """Description of one run, with parameter values filled in.

    Attributes
    ----------
    run : str
        The user's function, as ``module:function`` or ``file.py:function``; empty:
        none.
    map : str
        Map file or shipped map; empty: an empty world.
    robots : dict
        Robots added to the map by name: a model, or a `RobotPart`.
    controllers : dict
        Controllers by name of the robot: a name, or a table with ``name`` and options.
    program : ProgramPart or None
        Outside program; None: none.
    traffic : TrafficPart or None
        Traffic task, which excludes everything else; None: none.
    goal : GoalPart or None
        Goal that ends the run; None: the run ends at its limit of simulated time.
    measures : list of str
        Values to measure, see `MEASURES`.
    """

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
    """Yield all texts in plain data, without dictionary keys.

    Parameters
    ----------
    value : str, number, bool, list, dict or None
        Plain data, nested at will. Everything but texts, lists and dicts is skipped.

    Yields
    ------
    str
        Texts in the order of the data, with repetitions.
    """
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

    Parameters
    ----------
    value : list, dict or scalar
        Plain data.
    name : str
        Name of the parameter, without the dollar sign.
    where : str
        Location of the data itself.

    Returns
    -------
    str
        Location such as ``$.robots.bob.pose[0]``; it is `where` itself if no text
        contains the parameter.
    """
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, one in steps:
            if name in names_in(one):
                # Descend to the innermost value, which is the line that the user must
                # change.
                return place_of(
                    one,
                    name,
                    f"{where}[{step}]"
                    if isinstance(value, list)
                    else f"{where}.{step}",
                )

    return where


def names_in(value: object) -> set[str]:
    """Return the names of all parameters that appear in plain data.

    Parameters
    ----------
    value : list, dict or scalar
        Plain data.

    Returns
    -------
    set of str
        Names without the dollar sign; ``$$`` and ports do not count.
    """
    found = {m[1] for text in strings_of(value) for m in _NAME.finditer(text)}
    # Ports are known only when a run starts, so they are no parameters of the plan.
    return {name for name in found if name != "$" and not name.startswith(PORT)}


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return plain data with parameter values in place of ``$name``.

    ``$$`` is a dollar sign.

    A text that consists of ``$name`` alone becomes the value itself. Inside a longer
    text, the value is inserted as text.

    Parameters
    ----------
    value : list, dict or scalar
        Plain data; it is not changed.
    values : mapping of str to value
        Parameter values by name.

    Returns
    -------
    list, dict or scalar
        New data. Keys of dictionaries and placeholders of ports are unchanged.

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
    """Return a command line with ports in place of ``$port.NAME``.

    Parameters
    ----------
    words : list of str, int or float
        Program and arguments; numbers become texts.
    ports : mapping of str to int
        Ports by name of the robot.

    Raises
    ------
    KeyError
        A robot has no port.
    """
    return [_PORT.sub(lambda m: str(ports[m[1]]), str(word)) for word in words]


_PORT: Final = re.compile(r"\$port\.([\w-]+)")


def _filled_text(text: str, value: Callable[[str], Any]) -> Any:
    """Return a text with parameter values filled in; port placeholders stay unchanged.

    Parameters
    ----------
    text : str
        The text.
    value : callable
        Returns the value of a parameter by its name.

    Returns
    -------
    str or value
        The value itself if the text is a single placeholder.
    """
    if "$" not in text:
        return text
    # A value that is only a placeholder keeps the type of the parameter.
    whole = _NAME.fullmatch(text)
    if whole and whole[1] != "$" and not whole[1].startswith(PORT):
        return value(whole[1])

    def one(m: re.Match[str]) -> str:
        if m[1] == "$":
            return "$"
        # Ports stay as they are until `with_ports`.
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
