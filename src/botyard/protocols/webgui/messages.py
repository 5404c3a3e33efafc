"""Requests of the page: JSON texts, checked on arrival (webgui.md §4).

The page's TypeScript types are generated from these. A request has a `type` and an
`id`; it is answered by `Ok` or `Failed` with that id. Everything is in SI units: m,
rad, s.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

# Increment the version with each change that an older page would misread: a browser may
# have one in its cache.
VERSION: Final = 6
"""Version of the messages; a page of another version must be loaded again."""
MAX_TEXT: Final = 64 * 1024
"""Longest request, bytes."""

MAX_PERSON: Final = 40
"""Longest name of a person, characters."""

Id = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
# The bounds of all types are checked while the JSON is decoded, before a request
# reaches a handler.
Names = Annotated[list[Name], msgspec.Meta(max_length=5000)]
Patterns = Annotated[list[Name], msgspec.Meta(max_length=100)]
Rate = Annotated[float, msgspec.Meta(ge=0.0, le=1e6)]
Rates = Annotated[list[tuple[Name, Rate]], msgspec.Meta(max_length=100)]
Graphics = Literal["full", "lite", "none"]
Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Wall = tuple[Number, Number, Number, Number]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of the contents of a page's frames."""

    readings: Literal["all", "selected", "none"] = "all"
    odometry: bool = False
    velocity: bool = False
    selected: tuple[Name, ...] = ()
    fleet: bool = False
    """Whether the page gets `Fleet` once a second."""
    clients: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    """Words that each listed client must contain; null if the page gets no `Clients`."""
    traffic: bool = False
    """Whether the page gets `Traffic` twice a second."""
    heat: bool = False
    """Whether the page shows heat maps, which need counts of the robots."""


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
    """Change the view; the sensors of selected robots are measured while selected."""

    view: View


class Ack(Request, tag="ack"):
    """Acknowledge a drawn frame; there is no answer."""

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

    The robot stops unless the message is repeated (watchdog). `on` false ends driving.
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


class SetCharge(Request, tag="charge"):
    """Set the state of charge of robots' batteries, %."""

    names: Names
    charge: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)]


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


Places = Annotated[list[tuple[Number, Number, Number]], msgspec.Meta(max_length=1000)]
# The heading of a goal may be any.
Goals = Annotated[
    list[tuple[Number, Number, Number | None]], msgspec.Meta(max_length=100)
]


class Add(Request, tag="add"):
    """Add robots or obstacles; a body without a pose gets the next free place.

    `places` are poses of the first bodies, as from `FindPlaces`.
    """

    model: Name
    name: str = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    x: Number | None = None
    y: Number | None = None
    th: Number = 0.0
    places: Places = []


class FindPlaces(Request, tag="places"):
    """Request free places for bodies of a model; the answer is a list of poses.

    `area` are two points, x0, y0, x1, y1, m: corners of a box, or ends of a line.
    """

    model: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    arrangement: Literal["near", "grid", "random", "line"] = "near"
    area: tuple[Number, Number, Number, Number] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0


class Send(Request, tag="send"):
    """Send robots to goals on planned paths; without goals, they stop.

    Several robots get places of their own at each goal. With `queue` the goals come
    after those that a robot has not reached yet.
    """

    names: Names
    goals: Goals
    order: Literal["once", "loop", "back"] = "once"
    queue: bool = False
    speed: Annotated[float, msgspec.Meta(gt=0.0, le=100.0)] | None = None


class Estimate(Request, tag="estimate"):
    """Tell the programs of a robot where it is; the robot does not move."""

    name: Name
    x: float
    y: float
    th: float


class Dock(Request, tag="dock"):
    """Send robots to the docks of the map, each to one of its own while there are docks."""

    names: Names


class Clone(Request, tag="clone"):
    """Copy bodies: add one of the same model next to each named robot or obstacle."""

    names: Names


class Remove(Request, tag="remove"):
    """Remove robots or obstacles."""

    names: Names


class Rename(Request, tag="rename"):
    """Give robots other names: present name and new name of each."""

    names: Annotated[list[tuple[Name, Name]], msgspec.Meta(max_length=5000)]


class Reset(Request, tag="reset"):
    """Return robots to their start poses, with odometry zero; without names, all robots."""

    names: Names | None = None


class OdometryErrors(Request, tag="odometry_errors"):
    """Turn the odometry errors of a robot on or off."""

    name: Name
    on: bool


class Undo(Request, tag="undo"):
    """Undo the last change of bodies or the map that this page has made.

    The answer is a line that describes the change.
    """


class Redo(Request, tag="redo"):
    """Redo the last undone change; the answer is a line that describes it."""


class Look(Request, tag="look"):
    """Show this page the last moment at or before a simulated time, s.

    Nothing is changed. The answer is `Looked`. All pages show a recording at the same
    moment: it jumps to that moment, and the answer is null. Without a time, the moment
    is `by` steps after the shown moment, or before it if `by` is negative. Without
    either, it is the present.
    """

    time: Annotated[float, msgspec.Meta(ge=0.0, le=1e12)] | None = None
    by: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] = 0


class GoOn(Request, tag="go_on"):
    """Let the world continue from the moment that this page shows.

    The page then shows the present again. The answer is the moment's time, s.
    """


class Loop(Request, tag="loop"):
    """Turn repeating of a shown recording at its end on or off."""

    on: bool


class Chart(Request, tag="chart"):
    """Request the actions of the robots over time in a recorded traffic run.

    The answer is `ChartResult`, or null if there is no traffic in the recording.
    """


class Course(Request, tag="course"):
    """Request the values of a robot over the last minutes; the answer is `CourseResult`.

    `until` is the time of the last sample, s; by default the present.
    """

    name: Name
    until: Annotated[float, msgspec.Meta(ge=0.0, le=1e12)] | None = None


class LoadMap(Request, tag="map"):
    """Load another map for all clients by its name; an empty name removes the map."""

    name: Annotated[str, msgspec.Meta(max_length=1000)]


class PlaceToAdd(msgspec.Struct, kw_only=True):
    """Goal, dock or home of the map, m and rad; without `th` any heading."""

    kind: Name
    name: Name
    x: Number
    y: Number
    th: Number | None = None


class EditMap(Request, tag="edit_map"):
    """Add and remove walls (x0, y0, x1, y1, m) and places of the map."""

    add_walls: Annotated[list[Wall], msgspec.Meta(max_length=1000)] = []
    remove_walls: Annotated[list[Wall], msgspec.Meta(max_length=1000)] = []
    add_places: Annotated[list[PlaceToAdd], msgspec.Meta(max_length=1000)] = []
    remove_places: Names = []


class SetZone(Request, tag="set_zone"):
    """Add a zone to the floor, or replace the zone of the same name."""

    name: Name
    corners: Annotated[list[tuple[Number, Number]], msgspec.Meta(max_length=1000)]
    color: Annotated[str, msgspec.Meta(max_length=100)] = ""
    slip: Number | None = None
    speed_limit: Number | None = None
    odometry_scale: Number | None = None
    hole: bool = False


class RemoveZone(Request, tag="remove_zone"):
    """Remove a zone from the floor."""

    name: Name


class SectorPath(msgspec.Struct, kw_only=True):
    """Path of a robot, from where it stands along points, m."""

    robot: Name
    points: Annotated[list[tuple[Number, Number]], msgspec.Meta(max_length=200)]


class RunTraffic(Request, tag="run_traffic"):
    """Let robots drive along paths under a supervisor."""

    paths: Annotated[list[SectorPath], msgspec.Meta(max_length=200)]
    supervisor: Name = "bankers"
    speed: Annotated[float, msgspec.Meta(ge=0.01, le=10.0)] = 0.65


class EndTraffic(Request, tag="end_traffic"):
    """End the run of traffic."""


class HoldTraffic(Request, tag="hold_traffic"):
    """Hold the supervisor's decisions, or let them take effect."""

    on: bool


class StepTraffic(Request, tag="step_traffic"):
    """Let the next decision of the supervisor take effect."""


class GrantSector(Request, tag="grant_sector"):
    """Grant a robot its next sector, or all sectors up to one."""

    name: Name
    sector: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None


class RevokeSector(Request, tag="revoke_sector"):
    """Take back the permission of a robot for a sector, by default the nearest one."""

    name: Name
    sector: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None


class AskTrafficPlan(Request, tag="traffic_plan"):
    """Request the paths and sectors of the run of traffic; the answer is `TrafficPlan`."""


class LookAtMap(Request, tag="look_at_map"):
    """Request a picture of a map that can be loaded; the answer is `MapPicture`."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class Reload(Request, tag="reload"):
    """Read the file of the present map again."""


class Snapshot(Request, tag="snapshot"):
    """Save a picture in the working directory of the simulator."""

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


class StartRecording(Request, tag="start_recording"):
    """Record the run to a file in the working directory of the simulator.

    The answer is its path. With `last`, only the last `last` seconds of simulated time
    are kept in memory until they are saved; 0 writes the whole run. With `on_stall` it
    is saved when a robot stalls. `topics` and `robots` are patterns as for file names;
    without them the usual topics and all robots are recorded. `rates` has patterns of
    topics, and the limit of messages of each such topic per simulated second; 0 is one
    for each step.
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
        Width of the picture, pixels.
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


class LookAtTopic(Request, tag="look_at_topic"):
    """Request the last message of a ROS topic; the answer is a text, or null without one.

    The first request subscribes to the topic, and later ones renew the subscription.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


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


class Heat(Request, tag="heat"):
    """Request a heat map; the answer is `HeatResult`.

    While the page shows an earlier moment, it is made of the last minutes before it.
    """

    what: Literal["visits", "time", "stalls", "waits", "visited", "seen"]


class ResetHeat(Request, tag="reset_heat"):
    """Set the counts of the heat maps to zero, for all pages."""


class Show(Request, tag="show"):
    """Show the person at this page to the others who do so, under a name.

    Without a name, the person is shown no longer. `pointer` is the place of the pointer
    in the world, m.
    """

    name: Annotated[str, msgspec.Meta(max_length=MAX_PERSON)]
    pointer: tuple[Number, Number] | None = None


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
    | SetCharge
    | Joystick
    | CommandDevice
    | Add
    | FindPlaces
    | Send
    | Estimate
    | Dock
    | Clone
    | Remove
    | Rename
    | Reset
    | Undo
    | Redo
    | Look
    | GoOn
    | Loop
    | Chart
    | Course
    | OdometryErrors
    | LoadMap
    | LookAtMap
    | EditMap
    | SetZone
    | RemoveZone
    | RunTraffic
    | EndTraffic
    | HoldTraffic
    | StepTraffic
    | GrantSector
    | RevokeSector
    | AskTrafficPlan
    | Reload
    | Snapshot
    | StartRecording
    | StopRecording
    | SaveRecording
    | WriteMovie
    | CancelMovie
    | Download
    | Interface
    | LookAtTopic
    | Start
    | Reply
    | Exit
    | Catalog
    | Debug
    | Heat
    | ResetHeat
    | Show
)


decoder: Final = msgspec.json.Decoder(AnyRequest)
