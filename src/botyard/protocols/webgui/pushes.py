"""Messages to the page: answers to its requests, and changes of the simulation.

They are JSON texts (webgui.md §4), and the page's TypeScript types are generated from
them. Everything is in SI units: m, rad, s.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from botyard.model.devices import Layer
from botyard.protocols.webgui.fleetpushes import ClientInfo as ClientInfo
from botyard.protocols.webgui.fleetpushes import Clients as Clients
from botyard.protocols.webgui.fleetpushes import Commands as Commands
from botyard.protocols.webgui.fleetpushes import Fleet as Fleet
from botyard.protocols.webgui.fleetpushes import People as People
from botyard.protocols.webgui.fleetpushes import Person as Person
from botyard.protocols.webgui.fleetpushes import TopicInfo as TopicInfo
from botyard.protocols.webgui.fleetpushes import TripInfo as TripInfo
from botyard.protocols.webgui.fleetpushes import Trips as Trips
from botyard.protocols.webgui.messages import Graphics
from botyard.protocols.webgui.trafficpushes import PlannedPath as PlannedPath
from botyard.protocols.webgui.trafficpushes import Traffic as Traffic
from botyard.protocols.webgui.trafficpushes import TrafficDecision as TrafficDecision
from botyard.protocols.webgui.trafficpushes import TrafficPlan as TrafficPlan
from botyard.protocols.webgui.trafficpushes import TrafficWait as TrafficWait


class Ok(msgspec.Struct, kw_only=True, tag="ok", tag_field="type"):
    """Answer to a request that was executed."""

    id: int
    result: Any = None


class Failed(msgspec.Struct, kw_only=True, tag="error", tag_field="type"):
    """Answer to a request that failed, with the reason."""

    id: int
    message: str


class InterfaceState(msgspec.Struct, kw_only=True):
    """State of an interface of the simulator."""

    name: str
    on: bool
    about: str
    problem: str = ""


class StartOffer(msgspec.Struct, kw_only=True):
    """Defaults of the start dialog, if it is shown."""

    models: list[str]
    port: int
    verbose: bool
    warn_unsupported: bool


class Welcome(msgspec.Struct, kw_only=True, tag="welcome", tag_field="type"):
    """Answer to `Hello`.

    `page` is the number of this page, which an upload of a file must name.
    """

    version: int
    program: str
    read_only: bool
    audience: str = ""
    graphics: Graphics = "full"
    page: int = 0
    start: StartOffer | None = None


class Started(msgspec.Struct, kw_only=True, tag="started", tag_field="type"):
    """Message that this page or another one has answered the start dialog."""


class Model(msgspec.Struct, kw_only=True):
    """Robot model or obstacle for drawing.

    Polygons and positions are in the model's frame.

    Attributes
    ----------
    name, description, color : str
        Name, one line of description, and colour for CSS.
    parts : list of list of (float, float)
        Polygons of its outline, x, y, m.
    drives, omni : bool
        Whether it has motors, and whether it moves sideways as well.
    lasers : list of (float, float)
        Positions of its lasers, x, y, m.
    max_v, max_w : float
        Greatest speed, m/s, and turn rate, rad/s.
    wheels : list of (float, float)
        Place of each wheel of a car-like drive, x, y, m; wheels at x = 0 are not
        steered. Empty for other drives.
    wheel_radius : float
        Radius of these wheels, m.
    problem : str
        Error of its definition; empty if it is valid.
    """

    name: str
    description: str
    color: str
    parts: list[list[tuple[float, float]]]
    drives: bool
    omni: bool
    lasers: list[tuple[float, float]]
    max_v: float
    max_w: float
    wheels: list[tuple[float, float]] = msgspec.field(default_factory=list)
    wheel_radius: float = 0.0
    problem: str = ""


def broken_model(name: str, problem: str) -> Model:
    """Return the entry of a model whose definition is invalid, with the reason.

    Parameters
    ----------
    name : str
        Name of the model.
    problem : str
        Error of its definition.
    """
    return Model(
        name=name,
        description="",
        color="grey",
        parts=[],
        drives=False,
        omni=False,
        lasers=[],
        max_v=0.0,
        max_w=0.0,
        problem=problem,
    )


class BodyInfo(msgspec.Struct, kw_only=True):
    """Body: a row of the frames' columns, first the robots, then boxes of the map.

    Attributes
    ----------
    name : str
        Name of the body.
    model : int
        Index among the schema's models.
    robot : bool
        Whether it drives, as robots, pedestrians and moving obstacles do.
    port : int
        TCP port of a robot; 0 without one.
    kind : str
        Kind of the body, by which bodies are counted; ``obstacle`` moves, ``thing``
        does not.
    color : int
        Number of its colour, if each robot has one of its own.
    """

    name: str
    model: int
    robot: bool
    port: int = 0
    kind: Literal["robot", "pedestrian", "obstacle", "thing"] = "thing"
    color: int = 0


class Group(msgspec.Struct, kw_only=True):
    """Sensors with the same rays.

    Each ray starts at an origin (x, y) in the robot's frame and has a bearing. On the
    layer of lasers, all rays have one origin, and `count` bearings from `angle0` with
    spacing `step`; on the layer of sonar each ray has its own pose.

    Attributes
    ----------
    id : int
        Number by which blocks of frames name the group.
    kind : Layer
        Layer of the page on which the rays are drawn.
    count : int
        Number of rays of a sensor.
    range_max : float
        Greatest range, m.
    unit : float
        Length of a unit of the ranges in frames, m.
    poses : list of (float, float, float)
        Origins x, y, m, and bearings, rad, in the robot's frame.
    angle0, step : float
        First bearing and spacing, rad.
    """

    id: int
    kind: Layer
    count: int
    range_max: float
    unit: float
    poses: list[tuple[float, float, float]]
    angle0: float = 0.0
    step: float = 0.0


class MapInfo(msgspec.Struct, kw_only=True):
    """Map, and the address of its walls.

    Attributes
    ----------
    url : str
        Address of its walls; empty without a map.
    name, source : str
        Its name, and the file that it comes from.
    bounds, view : tuple of float, optional
        Its extent and its initial viewport: x0, y0, x1, y1, m in the world's frame.
    """

    url: str
    name: str
    source: str
    bounds: tuple[float, float, float, float] | None = None
    view: tuple[float, float, float, float] | None = None


class Schema(msgspec.Struct, kw_only=True, tag="schema", tag_field="type"):
    """Layout of the columns of frames, and the map; valid until the next `Schema`.

    Attributes
    ----------
    number : int
        Number of the schema, which frames repeat.
    map : MapInfo
        Map, with the address of its walls.
    origin : (float, float)
        Point of the world to which poses in frames are relative, m.
    dt : float
        Duration of a step, s.
    models : list of Model
        Models of the bodies.
    bodies : list of BodyInfo
        Rows of the columns: first the robots, then boxes of the map.
    robots : int
        Number of robots.
    groups : list of Group
        Sensors in the blocks of readings.
    """

    number: int
    map: MapInfo
    origin: tuple[float, float]
    dt: float
    models: list[Model]
    bodies: list[BodyInfo]
    robots: int
    groups: list[Group]


class Looked(msgspec.Struct, kw_only=True):
    """Moment that a page shows: number of steps, and simulated time, s.

    Attributes
    ----------
    missing, gone : list of str
        Robots of the present that did not exist at the moment, and robots of the moment
        that no longer exist.
    disconnected : int
        Number of robots in `missing` that clients command.
    """

    tick: int
    time: float
    missing: list[str]
    gone: list[str]
    disconnected: int


class TimeLine(msgspec.Struct, kw_only=True):
    """Range of moments for a page: the last minutes of a simulation, or a recording.

    Attributes
    ----------
    first, last : float
        Simulated time of the oldest and of the latest moment, s.
    size : int
        Memory of the kept moments, bytes.
    problem : str
        Reason why no moment can be kept at present; empty if there is none.
    replay : str
        Name of the shown recording; empty for a running simulation.
    loop : bool
        Whether it repeats at its end.
    chart : bool
        Whether it has a chart (`Chart`).
    """

    first: float
    last: float
    size: int = 0
    problem: str = ""
    replay: str = ""
    loop: bool = False
    chart: bool = False


class Mark(msgspec.Struct, kw_only=True):
    """Event on the timeline: simulated time, s, a line of text, and its kind.

    Kinds: ``robot`` (added or removed), ``client`` (connected or disconnected),
    ``map``, ``branch`` (the world continued from there), ``stall``, ``command``,
    ``warning``, ``error`` (log lines). Other kinds are shown like ``robot``.
    """

    time: float
    kind: str
    text: str


class Marks(msgspec.Struct, kw_only=True, tag="marks", tag_field="type"):
    """All events on the timeline, oldest first; sent again after each change."""

    marks: list[Mark]


class Client(msgspec.Struct, kw_only=True):
    """Clients that command a robot."""

    robot: str
    sources: list[str]


class Status(msgspec.Struct, kw_only=True, tag="status", tag_field="type"):
    """Contents of the status bar, twice a second.

    `timeline` is None if no moments are kept. `question` asks whether to continue; a
    `Reply` answers it. `recording` is the name of the file that is recorded to, and
    `kept` the simulated time that is only in memory until it is saved, s (0 if all is
    written). `movie` is the name of the movie that is being made, and `drawn` its
    finished part, 0 to 1. `traffic` is the version of the run of traffic, 0 without one.
    """

    clients: int
    subscriptions: int
    viewers: int
    overruns: int
    driven: list[Client]
    interfaces: list[InterfaceState]
    timeline: TimeLine | None = None
    question: str = ""
    recording: str = ""
    kept: float = 0.0
    movie: str = ""
    drawn: float = 0.0
    traffic: int = 0


class DeviceCommand(msgspec.Struct, kw_only=True):
    """Command of an actuator: its limits, in SI units, and the unit."""

    name: str
    about: str
    low: float
    high: float
    unit: str


class DeviceReading(msgspec.Struct, kw_only=True):
    """Reading of a device.

    The reading has rows of texts, the number of omitted rows, and markers (x, y in the
    robot's frame, m; text). `commands` are the commands of an actuator.
    """

    device: str
    about: str
    columns: list[str]
    rows: list[list[str]]
    more: int
    marks: list[tuple[float, float, str]]
    commands: list[DeviceCommand]


class Detail(msgspec.Struct, kw_only=True):
    """Values of a selected robot, for the inspector."""

    name: str
    model: str
    clients: list[str]
    pose: tuple[float, float, float]
    odometry: tuple[float, float, float]
    odometry_error: tuple[float, float]
    velocity: tuple[float, float, float]
    command: tuple[float, float, float]
    accel: tuple[float, float, float]
    error: tuple[float, float, float]
    motors: bool
    stalled: bool
    estop: bool
    volts: float
    charge: float
    charging: bool
    sensors: list[str]
    nearest: float | None
    gripper: str
    port: int
    devices: list[DeviceReading]


class Details(msgspec.Struct, kw_only=True, tag="details", tag_field="type"):
    """Values of the selected robots, several times a second."""

    time: float
    robots: list[Detail]


class LogEntry(msgspec.Struct, kw_only=True):
    """Log line; `text` may come from a client: show it as text, never as HTML."""

    time: float
    level: Literal["debug", "info", "warning", "error"]
    source: str
    text: str


class Log(msgspec.Struct, kw_only=True, tag="log", tag_field="type"):
    """Log lines, oldest first, and the number of dropped lines before them."""

    lines: list[LogEntry]
    lost: int = 0


class Files(msgspec.Struct, kw_only=True, tag="files", tag_field="type"):
    """Paths of files that this run has written for clients, the newest last.

    Read-only pages do not get them.
    """

    paths: list[str]


class MapFile(msgspec.Struct, kw_only=True):
    """Map that can be loaded by `name`."""

    name: str
    shipped: bool


class MapPicture(msgspec.Struct, kw_only=True):
    """Small picture of a map.

    Attributes
    ----------
    name : str
        Its name.
    bounds : (float, float, float, float), optional
        Its extent: x0, y0, x1, y1, m.
    robots, goals : int
        Number of robots that it brings, and of its goals, docks and homes.
    walls, points : list of int
        Ends x0, y0, x1, y1 of walls, and points x, y, in thousandths of the longer edge
        of the extent, from its lower left corner. A large map has only a part of them.
    """

    name: str
    bounds: tuple[float, float, float, float] | None
    robots: int
    goals: int
    walls: list[int]
    points: list[int]


class CatalogResult(msgspec.Struct, kw_only=True):
    """Models and maps."""

    models: list[Model]
    maps: list[MapFile]


class ChartResult(msgspec.Struct, kw_only=True):
    """Actions of each robot in a traffic run: driving, waiting, and sectors.

    Times are in s, and robots are given by their numbers.

    Attributes
    ----------
    title : str
        Ending of the run.
    end : float
        Time of the ending.
    robots : list of str
        Names of the robots.
    goes, waits : list of (robot, begin, end)
        Times of motion, and of waiting for a permission.
    sectors, grants : list of (robot, sector, begin, end)
        Times in a sector, and times of a permission for a sector before its entry.
    asks : list of (robot, time)
        Times of requests for a sector.
    holders : list of (robot, begin, robots)
        Robots for which a robot waits, and since when, if the recording states it.
    left_out : int
        Number of bars, the shortest ones, that are left out because there are too many.
    """

    title: str
    end: float
    robots: list[str]
    goes: list[tuple[int, float, float]]
    waits: list[tuple[int, float, float]]
    sectors: list[tuple[int, int, float, float]]
    grants: list[tuple[int, int, float, float]]
    asks: list[tuple[int, float]]
    holders: list[tuple[int, float, list[int]]] = []
    left_out: int = 0


class CourseResult(msgspec.Struct, kw_only=True):
    """Values of a robot over the last minutes, oldest first.

    Attributes
    ----------
    name : str
        Name of the robot.
    time : list of float
        Simulated times of the samples, s.
    v, w : list of float
        Speed, m/s, negative backwards, and yaw rate, rad/s.
    error : list of float
        Distance between the true pose and the pose by odometry, m.
    """

    name: str
    time: list[float]
    v: list[float]
    w: list[float]
    error: list[float]


class DebugResult(msgspec.Struct, kw_only=True):
    """Structures of the engine.

    The structures are squares (x, y of the lower left corner, edge, value 0 to 1 of
    each, in one list), lines, and names of bodies.
    """

    squares: list[float] = []
    lines: list[tuple[float, float, float, float]] = []
    names: list[str] = []


class HeatResult(msgspec.Struct, kw_only=True):
    """Heat map: a quantity for each cell of the part of the map where it is not zero.

    Attributes
    ----------
    what : str
        Quantity.
    x, y : float
        Lower left corner, m.
    edge : float
        Edge of a cell, m.
    rows, columns : int
        Size.
    values : str
        Values, float32, row by row from the lowest one, compressed with zlib, in base64.
    most, total : float
        Largest value and sum.
    duration : float
        Counted simulated time, s.
    share : float or None
        Share of the free area that is visited or seen, 0 to 1.
    area, free : float
        Area of the cells that are not zero, and free area, m².
    """

    what: str
    x: float
    y: float
    edge: float
    rows: int
    columns: int
    values: str
    most: float
    total: float
    duration: float
    share: float | None
    area: float
    free: float


Push = (
    Welcome
    | Started
    | Schema
    | Status
    | Marks
    | Details
    | Trips
    | Fleet
    | Clients
    | People
    | Traffic
    | Log
    | Files
    | Ok
    | Failed
)
encoder: Final = msgspec.json.Encoder()
