"""Messages to the page about the whole fleet: trips, the table, clients and topics.

They are a part of `botyard.protocols.webgui.pushes`.
"""

from __future__ import annotations

import msgspec


class TripInfo(msgspec.Struct, kw_only=True):
    """Trip of a robot to goals.

    Attributes
    ----------
    robot : str
        Name of the robot.
    state : str
        State, such as ``driving``.
    goals : list of (x, y, th)
        Goals that it has not reached yet, m and rad; th is None for any heading.
    path : list of (x, y)
        Corners of the planned path to the first goal, m.
    order : str
        ``once``, ``loop`` or ``back``.
    message : str
        Reason why there is no path; empty if there is one.
    """

    robot: str
    state: str
    goals: list[tuple[float, float, float | None]]
    path: list[tuple[float, float]]
    order: str
    message: str = ""


class Trips(msgspec.Struct, kw_only=True, tag="trips", tag_field="type"):
    """All trips of robots to goals; sent again after each change."""

    trips: list[TripInfo]


class Fleet(msgspec.Struct, kw_only=True, tag="fleet", tag_field="type"):
    """Values of all robots, once a second, for the table of the fleet.

    Each list has one entry for each robot.

    Attributes
    ----------
    time : float
        Simulated time, s.
    names : list of str
        Names of the robots.
    charge : list of float
        Charge of the batteries, %.
    speed : list of float
        Speed, m/s.
    stalled : list of float
        Share of the observed simulated time in which the robot was stalled, 0 to 1.
    left : list of float
        Length of the path to the goal, m; -1 without a goal.
    controller : list of str
        Name of the controller that drives the robot while no client does.
    commander : list of str
        Source of the last command.
    pose : list of (x, y, th)
        True poses, m and rad.
    """

    time: float
    names: list[str]
    charge: list[float]
    speed: list[float]
    stalled: list[float]
    left: list[float]
    controller: list[str]
    commander: list[str]
    pose: list[tuple[float, float, float]]


class ClientInfo(msgspec.Struct, kw_only=True):
    """Connected client; unknown values are null.

    Attributes
    ----------
    key : str
        Name that no other connected client has.
    protocol, address, about : str
        Protocol, address, and further description.
    robot : str
        Robot that it commands; empty if it can command several.
    received, sent : float or None
        Bytes from the client and to it, 1/s.
    latency : float or None
        Round-trip time, s.
    dropped : int or None
        Number of messages that it missed.
    command : str
        Its last command.
    age : float or None
        Time since its last command, s.
    """

    key: str
    protocol: str
    address: str
    about: str
    robot: str
    received: float | None
    sent: float | None
    latency: float | None
    dropped: int | None
    command: str
    age: float | None


class TopicInfo(msgspec.Struct, kw_only=True):
    """ROS topic.

    Attributes
    ----------
    name, type, about : str
        Name, type, and one line of description.
    input : bool
        Whether the simulator subscribes to it.
    rate : float or None
        Messages per second; null while it is not known.
    readers : int
        Number of readers.
    count : int
        Number of messages so far.
    """

    name: str
    type: str
    about: str
    input: bool
    rate: float | None
    readers: int
    count: int


class Person(msgspec.Struct, kw_only=True):
    """Person at a page who is shown to others.

    Attributes
    ----------
    page : int
        Number of the page.
    name : str
        Name.
    color : int
        Number of the colour.
    pointer : (float, float) or None
        Place of the pointer in the world, m.
    selected, holds : list of str
        Selected bodies, and those in the person's hand.
    """

    page: int
    name: str
    color: int
    pointer: tuple[float, float] | None
    selected: list[str]
    holds: list[str]


class People(msgspec.Struct, kw_only=True, tag="people", tag_field="type"):
    """All people who show themselves; sent to them after each change."""

    people: list[Person]


class Commands(msgspec.Struct, kw_only=True):
    """Commands of a robot in the last minute.

    `runs` are consecutive commands of one source: start and end as simulated times
    before the present, s, the source, and the number of commands.
    """

    robot: str
    runs: list[tuple[float, float, str, int]]


class Clients(msgspec.Struct, kw_only=True, tag="clients", tag_field="type"):
    """Clients, ROS topics and sources of commands, once a second.

    `more_clients` and `more_topics` are the numbers of clients and topics that are left
    out.
    """

    clients: list[ClientInfo]
    topics: list[TopicInfo]
    commands: list[Commands]
    more_clients: int = 0
    more_topics: int = 0
