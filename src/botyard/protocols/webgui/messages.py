"""Control messages of the page: JSON texts, checked on arrival (webgui.md §4).

The page's TypeScript types are generated from these. A request has a `type` and an
`id`; it is answered by `Ok` or `Failed` with that id. Everything is in SI units: m,
rad, s.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from botyard.model.devices import Layer

# Raise it with each change that an older page would misread: a browser may hold one in
# its cache.
VERSION: Final = 5
"""Version of the messages; a page of another version is asked to reload."""
MAX_TEXT: Final = 64 * 1024
"""Longest request, bytes."""

Id = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
# All bounds are checked while the JSON is decoded, before a request reaches a handler.
Names = Annotated[list[Name], msgspec.Meta(max_length=5000)]
Patterns = Annotated[list[Name], msgspec.Meta(max_length=100)]
Rate = Annotated[float, msgspec.Meta(ge=0.0, le=1e6)]
Rates = Annotated[list[tuple[Name, Rate]], msgspec.Meta(max_length=100)]
Graphics = Literal["full", "lite", "none"]
Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of the contents of a page's frames."""

    readings: Literal["all", "selected", "none"] = "all"
    odometry: bool = False
    velocity: bool = False
    selected: tuple[Name, ...] = ()


class Request(msgspec.Struct, kw_only=True, tag_field="type"):
    """Any request; requests with the same `group` other than 0 are undone together."""

    id: Id = 0
    group: Id = 0


class Hello(Request, tag="hello"):
    """First message of a page."""

    token: str = ""
    version: int = VERSION
    view: View = View()


class SetView(Request, tag="view"):
    """Change the view; the sensors of selected robots are read, as for a client."""

    view: View


class Ack(Request, tag="ack"):
    """Acknowledge a drawn frame; not answered."""

    number: int


class Pause(Request, tag="pause"):
    """Pause the simulation."""


class Run(Request, tag="run"):
    """Resume the simulation."""


class Step(Request, tag="step"):
    """Run `count` steps, then pause."""

    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1


class Speed(Request, tag="speed"):
    """Set the ratio of simulated to wall time; 0 is as fast as possible."""

    factor: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)]


class Hold(Request, tag="hold"):
    """Hold or release bodies; held bodies stand still while they are dragged."""

    names: Names
    on: bool


class Placement(msgspec.Struct, kw_only=True):
    """Body and its true pose."""

    name: Name
    x: Number
    y: Number
    th: Number


class Move(Request, tag="move"):
    """Teleport bodies to true poses.

    The answer is the number of the present frame; later frames show the bodies there.
    """

    to: Annotated[list[Placement], msgspec.Meta(max_length=5000)]


class Drive(Request, tag="drive"):
    """Drive a robot, m/s and rad/s.

    It stops unless the message is repeated (watchdog). `on` false ends driving.
    """

    name: Name
    v: Number = 0.0
    w: Number = 0.0
    vy: Number = 0.0
    on: bool = True


class Enable(Request, tag="enable"):
    """Enable or disable the motors of robots."""

    names: Names
    on: bool


class EmergencyStop(Request, tag="estop"):
    """Press or release the emergency-stop buttons of robots."""

    names: Names
    on: bool


class Joystick(Request, tag="joystick"):
    """Set the joystick that is plugged into a robot, for its client to read.

    Values are −1 to 1, to the right and forward.
    """

    name: Name
    x: Number = 0.0
    y: Number = 0.0
    button1: bool = False
    button2: bool = False


class CommandDevice(Request, tag="command"):
    """Command an actuator of a robot.

    The command is one of `DeviceReading.commands`, with its value in SI units.
    """

    name: Name
    device: Name
    command: Name
    value: Number


class Add(Request, tag="add"):
    """Add robots or obstacles; without a pose, at the next free place."""

    model: Name
    name: str = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    x: Number | None = None
    y: Number | None = None
    th: Number = 0.0


class Clone(Request, tag="clone"):
    """Add a robot or obstacle of the same model next to each of these."""

    names: Names


class Remove(Request, tag="remove"):
    """Remove robots or obstacles."""

    names: Names


class Reset(Request, tag="reset"):
    """Return robots (without names all) to their start poses, with odometry zero."""

    names: Names | None = None


class OdometryErrors(Request, tag="odometry_errors"):
    """Turn the odometry errors of a robot on or off."""

    name: Name
    on: bool


class Undo(Request, tag="undo"):
    """Undo the last change by this page of bodies or the map.

    The answer is a line that describes the change.
    """


class Redo(Request, tag="redo"):
    """Redo the last undone change; the answer is a line that describes it."""


class Look(Request, tag="look"):
    """Show this page the last moment at or before a simulated time, s.

    Nothing is changed. The answer is `Looked`. A recording is shown to all pages alike:
    it goes to that moment, and the answer is null. Without a time, the moment is `by`
    steps after the shown one, or before it; without both, it is the present.
    """

    time: Annotated[float, msgspec.Meta(ge=0.0, le=1e12)] | None = None
    by: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] = 0


class GoOn(Request, tag="go_on"):
    """Let the world continue from the moment that this page looks at.

    The page then shows the present again. The answer is the moment's time, s.
    """


class Loop(Request, tag="loop"):
    """Turn repeating of a shown recording at its end on or off."""

    on: bool


class Chart(Request, tag="chart"):
    """Request what the robots of a recorded traffic run did over time.

    The answer is `ChartResult`, or null if there is no traffic in the recording.
    """


class LoadMap(Request, tag="map"):
    """Load another map for all clients by its name; an empty name removes the map."""

    name: Annotated[str, msgspec.Meta(max_length=1000)]


class Reload(Request, tag="reload"):
    """Read the file of the present map again."""


class Snapshot(Request, tag="snapshot"):
    """Save a picture in the working directory of the simulator."""

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


class StartRecording(Request, tag="start_recording"):
    """Record the run to a file in the working directory of the simulator.

    The answer is its path. `last` is the simulated time that is kept until it is saved,
    s; 0 writes all. With `on_stall` it is saved when a robot stalls. `topics` and
    `robots` are patterns as for file names; without them the usual topics and all
    robots are recorded. `rates` has patterns of topics, and the limit of messages of
    each such topic per simulated second; 0 is one for each step.
    """

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    last: Annotated[float, msgspec.Meta(ge=0.0, le=86400.0)] = 0.0
    on_stall: bool = False
    topics: Patterns = []
    robots: Patterns = []
    rates: Rates = []


class StopRecording(Request, tag="stop_recording"):
    """End the recording; the answer is the path of its file."""


class SaveRecording(Request, tag="save_recording"):
    """Write a recording that is kept in memory to a file; the answer is its path."""

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


class WriteMovie(Request, tag="write_movie"):
    """Make a movie of a part of the recording, or of a running simulation.

    The answer is its path when it is finished.

    Attributes
    ----------
    begin, end : float
        Simulated time of its first and last moment, s.
    format : str
        Its format, or ``png`` for a picture of the end; "" is MP4 if the simulator has
        it, otherwise WebP.
    speed, fps : float
        Simulated time per shown time; frames per second, 0 for a suitable rate.
    width : int
        Width, pixels.
    follow : str
        Robot that stays in the middle; "" shows the whole world.
    scans : list of str
        Robots whose sensors are shown.
    """

    begin: Annotated[float, msgspec.Meta(ge=0.0, le=1e12)]
    end: Annotated[float, msgspec.Meta(ge=0.0, le=1e12)]
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    format: Literal["", "mp4", "gif", "webp", "png"] = ""
    speed: Annotated[float, msgspec.Meta(ge=0.01, le=1000.0)] = 1.0
    fps: Annotated[float, msgspec.Meta(ge=0.0, le=50.0)] = 0.0
    width: Annotated[int, msgspec.Meta(ge=64, le=1920)] = 1000
    theme: Literal["light", "dark"] = "light"
    follow: Annotated[str, msgspec.Meta(max_length=200)] = ""
    scans: Annotated[list[Name], msgspec.Meta(max_length=20)] = []


class CancelMovie(Request, tag="cancel_movie"):
    """Cancel the movie that is being made."""


class Download(Request, tag="download"):
    """Request a file of `Files`; the answer is its temporary address."""

    file: Annotated[str, msgspec.Meta(max_length=4096)]


class Interface(Request, tag="interface"):
    """Start or stop one of the simulator's interfaces."""

    name: Name
    on: bool


class StartRobot(msgspec.Struct, kw_only=True):
    """Robots chosen in the start dialog."""

    model: Name
    name: str = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=200)] = 1
    factory: bool = False


class Start(Request, tag="start"):
    """Choices of the start dialog; `map` null is no map."""

    map: str | None
    robots: Annotated[list[StartRobot], msgspec.Meta(max_length=200)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 8101
    verbose: bool = False
    warn_unsupported: bool = False


class Reply(Request, tag="reply"):
    """Answer the question of `Status`: continue, or exit."""

    go_on: bool


class Exit(Request, tag="exit"):
    """Exit the simulator; also sent when the start dialog is cancelled."""


class Catalog(Request, tag="catalog"):
    """Request the models and maps; the answer is `CatalogResult`."""


class Debug(Request, tag="debug"):
    """Request structures of the engine; the answer is `DebugResult`."""

    what: Literal["grid", "clearance", "rays", "candidates"]
    name: str = ""
    x0: Number = 0.0
    y0: Number = 0.0
    x1: Number = 0.0
    y1: Number = 0.0


AnyRequest = (
    Hello
    | SetView
    | Ack
    | Pause
    | Run
    | Step
    | Speed
    | Hold
    | Move
    | Drive
    | Enable
    | EmergencyStop
    | Joystick
    | CommandDevice
    | Add
    | Clone
    | Remove
    | Reset
    | Undo
    | Redo
    | Look
    | GoOn
    | Loop
    | Chart
    | OdometryErrors
    | LoadMap
    | Reload
    | Snapshot
    | StartRecording
    | StopRecording
    | SaveRecording
    | WriteMovie
    | CancelMovie
    | Download
    | Interface
    | Start
    | Reply
    | Exit
    | Catalog
    | Debug
)


# -- to the page


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
    """Message that the start dialog was answered, by this page or another one."""


class Model(msgspec.Struct, kw_only=True):
    """Robot model or obstacle for drawing.

    It has polygons in its own frame, and the positions of its lasers, x, y, m.
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
    problem: str = ""


def broken_model(name: str, problem: str) -> Model:
    """Return the entry of a model whose definition is invalid, with the reason."""
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
    """Body: a row of the frames' columns; robots come first, then boxes of the map."""

    name: str
    model: int
    robot: bool
    port: int = 0


class Group(msgspec.Struct, kw_only=True):
    """Sensors with the same rays.

    Each ray starts at an origin (x, y) in the robot's frame and has a bearing. On the
    layer of lasers they have one origin, and `count` bearings from `angle0` with
    spacing `step`; on the layer of sonar each ray has its own pose.
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
    """Layout of the columns of frames until the next such message, with their map."""

    number: int
    map: MapInfo
    origin: tuple[float, float]
    dt: float
    models: list[Model]
    bodies: list[BodyInfo]
    robots: int
    groups: list[Group]


class Looked(msgspec.Struct, kw_only=True):
    """Moment that a page looks at: number of steps, and simulated time, s.

    Attributes
    ----------
    missing, gone : list of str
        Robots of now that did not exist then, and the reverse.
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

    Kinds: ``robot`` (added or removed), ``client`` (connected or gone), ``map``,
    ``branch`` (the world continued from there), ``stall``, ``command``, ``warning``,
    ``error`` (log lines). Other kinds are shown like ``robot``.
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
    written). `movie` is the name of the movie in work, and `drawn` its finished part, 0
    to 1.
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


class DeviceCommand(msgspec.Struct, kw_only=True):
    """Command of an actuator: its limits, in SI units, and the unit."""

    name: str
    about: str
    low: float
    high: float
    unit: str


class DeviceReading(msgspec.Struct, kw_only=True):
    """Reading of a device.

    It has rows of texts, the number of rows left out, and markers (x, y in the robot's
    frame, m; text). `commands` are the commands of an actuator.
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
        Robots for which a robot waits, and since when, as far as the recording has it.
    left_out : int
        Number of bars that are left out because there are too many; the shortest.
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


class DebugResult(msgspec.Struct, kw_only=True):
    """Structures of the engine.

    They are squares (x, y of the lower left corner, edge, value 0 to 1 of each, in one
    list), lines, and names of bodies.
    """

    squares: list[float] = []
    lines: list[tuple[float, float, float, float]] = []
    names: list[str] = []


Push = Welcome | Started | Schema | Status | Marks | Details | Log | Files | Ok | Failed

decoder: Final = msgspec.json.Decoder(AnyRequest)
encoder: Final = msgspec.json.Encoder()
