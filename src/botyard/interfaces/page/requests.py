"""Execution of the requests that the page's viewers send (`PageRequests`).

`PageRequests` also sends the viewers state, details and log lines. The page's sessions
use it as their `Desk`.
"""

from __future__ import annotations

import logging
import time as wall
from collections import deque
from collections.abc import (
    Callable,
    Coroutine,
    Generator,
    Hashable,
    Sequence,
)
from concurrent.futures import Future
from functools import singledispatchmethod
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from botyard.control import (
    AddedRobots,
    AddRobot,
    AddRobots,
    Caller,
    Level,
    LoadMap,
    ReadFile,
    SendMap,
)
from botyard.control.driving import client_left
from botyard.control.parts import Maps, Portions, RunLoop, charged
from botyard.errors import BotyardError, NotNowError, WorldError
from botyard.geometry import Pose
from botyard.interfaces.page.catalog import Catalog, picture_of
from botyard.interfaces.page.clientwatch import ClientWatch
from botyard.interfaces.page.commandlog import CommandLog
from botyard.interfaces.page.courses import Courses
from botyard.interfaces.page.downloads import Downloads
from botyard.interfaces.page.fleetwatch import FleetWatch
from botyard.interfaces.page.heat import HeatMaps
from botyard.interfaces.page.inspector import Inspector
from botyard.interfaces.page.operations import (
    ABOUT_WHAT_IS_SHOWN,
    OPERATIONS,
    files_message,
    reason_of,
)
from botyard.interfaces.page.people import People
from botyard.interfaces.page.robotdetails import (
    MAX_DETAILS,
    SOURCE,
    SelectedSensors,
    details_of,
)
from botyard.interfaces.page.status import Question, Robots, status_of
from botyard.interfaces.page.timeline import LookBack, TimeLine
from botyard.interfaces.page.trafficwatch import TrafficWatch
from botyard.interfaces.page.viewsource import (
    ViewSource,
)
from botyard.model.scene import Scene
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.messages import AnyRequest, Graphics
from botyard.protocols.webgui.pushes import LogEntry
from botyard.protocols.webgui.session import Answer, Viewer
from botyard.version import __version__

STATUS_PERIOD: Final = 0.5
DETAIL_PERIOD: Final = 0.2
LOG_BACKLOG: Final = 500
"""Number of recent log lines that a new viewer gets (ring buffer)."""
EXIT_DELAY: Final = 0.3
"""Time between the answer to a page that ends the simulator and its end, s."""
MAX_VIEWERS: Final = 32
"""Largest number of read-only viewers, and largest number of viewers with control."""
MAX_TEXT: Final = 2000
"""Longest error message or log line for the page, characters."""

log = logging.getLogger("botyard.page")

Starter = Callable[[msg.Start], Coroutine[Any, Any, None]]
T = TypeVar("T")


class PageRequests:
    """Execution of requests, and list of viewers, of a simulation.

    Parameters
    ----------
    hub : RunLoop
        The run loop.
    robot_servers : Robots
        Servers of the robots; requests pass through their control surface.
    maps : Maps
        The maps on this machine.
    source : ViewSource
        Encoder of the frames.
    audience : str
        Token of the link for read-only viewers.
    graphics : str
        Detail of the pages' drawing: ``full``, ``lite`` or ``none``.
    """

    def __init__(
        self,
        hub: RunLoop,
        robot_servers: Robots,
        maps: Maps,
        source: ViewSource,
        *,
        audience: str = "",
        graphics: Graphics = "full",
    ) -> None:
        self.hub = hub
        self.robot_servers = robot_servers
        self.control = robot_servers.control
        self.maps = maps
        self.source = source
        self.viewers: list[Viewer] = []
        self.start: pushes.StartOffer | None = None
        self.starter: Starter | None = None
        self.question: Question | None = None
        self._audience = audience
        self._graphics = graphics
        self.timeline: TimeLine = LookBack(
            hub, robot_servers.control, robot_servers.port_of, source, SOURCE
        )
        """Timeline that the pages show: of the running simulation or of a recording."""
        self.traffic = TrafficWatch(hub.sim, robot_servers.control)
        """Observer of the run of traffic."""
        self._marks: Sequence[pushes.Mark] = ()
        self._files: Sequence[Path] = ()
        self._downloads = Downloads()
        self._last_page = 0
        self._sensors = SelectedSensors(hub.sim)
        self._schema = -1
        self._log: deque[LogEntry] = deque(maxlen=LOG_BACKLOG)
        self._next_status = self._next_detail = 0.0
        self._commands = CommandLog(hub.sim)
        self._fleet = FleetWatch(hub.sim, self._commands)
        self._clients = ClientWatch(hub, self.control, self._commands)
        self._courses = Courses(hub.sim)
        self._people = People(self.control.held)
        self._heat = HeatMaps(hub.sim, self._courses)
        self._inspector = Inspector(hub.sim)
        self._catalog = Catalog(hub.background, maps)

    # -- viewers

    def no_room(self, read_only: bool) -> str:
        """Return the reason why another viewer is refused; empty if there is room.

        Viewers with and without control have separate limits, so that onlookers cannot
        lock out the operators.
        """
        if sum(v.read_only == read_only for v in self.viewers) < MAX_VIEWERS:
            return ""
        return f"the limit of {MAX_VIEWERS} {'read-only pages' if read_only else 'pages'} is reached"

    def welcome(self, viewer: Viewer) -> pushes.Welcome:
        """Return the first message to a new viewer."""
        self._last_page += 1
        viewer.number, read_only = self._last_page, viewer.read_only
        return pushes.Welcome(
            version=msg.VERSION,
            program=f"botyard {__version__}",
            read_only=read_only,
            start=self.start,
            # Only pages with control may pass on the link for read-only viewers.
            audience="" if read_only else self._audience,
            graphics=self._graphics,
            page=viewer.number,
        )

    def file_of(self, ticket: str) -> Path | None:
        """Return the file of a download address; None if it is unknown or has expired.

        Parameters
        ----------
        ticket : str
            Text of the address, as a client sent it.
        """
        return self._downloads.file_of(ticket, wall.monotonic())

    def arrived(self, viewer: Viewer) -> Sequence[bytes]:
        """Register a viewer and return its first messages: schema, status and events.

        The recent log lines follow.
        """
        self.viewers.append(viewer)
        self._observe()
        for entry in self._log:
            viewer.add_log(entry)
        _, schema = self.source.schema()
        marks = pushes.Marks(marks=list(self.timeline.marks))
        first = [
            schema,
            pushes.encoder.encode(status_of(self)),
            pushes.encoder.encode(marks),
            self._fleet.trips_now(),
        ]
        if self.control.files and self.control.allows(self.caller(viewer), ReadFile):
            first.append(files_message(self.control.files))
        return first

    def left(self, viewer: Viewer) -> None:
        """Unregister a viewer, release its bodies, and stop the robots that it drives."""
        # A refused viewer is not in the list, and has nothing to release.
        if viewer not in self.viewers:
            return
        self.viewers.remove(viewer)
        self.timeline.left(viewer)
        self._people.left(viewer)
        client_left(self.control, viewer)
        self._observe()
        self.hub.settle()

    def view_changed(self, viewer: Viewer) -> None:
        """Apply the view (selected robots and options) that a viewer has changed."""
        self.timeline.view_changed(viewer)
        self._observe()
        self.hub.settle()

    def _observe(self) -> None:
        """Turn the observers on that the pages need now, and off the others."""
        self._commands.watch(bool(self.viewers))
        self._clients.watch(bool(self.viewers))
        self._heat.watch(any(v.view.heat for v in self.viewers))
        self._sensors.read(n for v in self.viewers for n in v.view.selected)

    # -- messages to all viewers

    def changed(self) -> None:
        """Drop the encoded frames after a change of state, between two steps."""
        self.source.changed()

    def prepare(self) -> None:
        """Send the schema if it has changed, before the next frame."""
        number, schema = self.source.schema()
        if number != self._schema:
            self._schema = number
            self._observe()
            self._tell_present(schema)

    def _tell_present(self, text: bytes) -> None:
        """Send a message to the viewers that see the present moment."""
        for viewer in self.viewers:
            if self.timeline.source_of(viewer) is None:
                viewer.send_encoded(text)

    def _tell_all(self, text: bytes, again_soon: bool = False) -> None:
        for viewer in self.viewers:
            viewer.send_encoded(text, again_soon)

    def tick(self, now: float) -> None:
        """Send the status and details that are due.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        if not self.viewers:
            return
        if now >= self._next_status:
            self._next_status = now + STATUS_PERIOD
            self.timeline.noticed()
            self._tell_all(pushes.encoder.encode(status_of(self)), again_soon=True)

            # The timeline makes a new sequence for each change, so identity is enough
            # to detect a change.
            if self.timeline.marks is not self._marks:
                self._marks = self.timeline.marks
                self._tell_all(
                    pushes.encoder.encode(pushes.Marks(marks=list(self._marks)))
                )

            self._fleet.tell(self.viewers, now)
            self._clients.tell(self.viewers, now)
            self.traffic.tell(self.viewers)

        self._people.tell(now)
        if self.control.files is not self._files:
            self._files = self.control.files
            for viewer in self.viewers:
                if self.control.allows(self.caller(viewer), ReadFile):
                    viewer.send_encoded(files_message(self._files))

        if now >= self._next_detail:
            self._next_detail = now + DETAIL_PERIOD
            for viewer in self.viewers:
                # Details are expensive to make, so a viewer that reads slowly, or has
                # used up its budget, gets none.
                if (
                    viewer.view.selected
                    and not viewer.is_behind
                    and not viewer.wait(now)
                ):
                    with viewer.work(now):
                        sim = self.timeline.sim_of(viewer) or self.hub.sim
                        names = viewer.view.selected[:MAX_DETAILS]
                        viewer.send(details_of(names, sim, self.robot_servers.port_of))

    def add_log(self, entry: LogEntry) -> None:
        """Append a log line and send it to the viewers."""
        self._log.append(entry)
        for viewer in self.viewers:
            viewer.add_log(entry)

    # -- requests

    def caller(self, viewer: Viewer, undo_group: int = 0) -> Caller:
        """Return the caller of a viewer's operations.

        A read-only viewer may only watch; other viewers have all permissions.
        """
        level = Level.WATCH if viewer.read_only else Level.OWN
        return Caller(
            SOURCE,
            level,
            "this page",
            key=viewer,
            undo_group=undo_group,
            person=viewer.person or f"page {viewer.number}",
        )

    def perform(self, viewer: Viewer, request: AnyRequest, answer: Answer) -> None:
        """Execute a request and answer it; errors are answered, never raised.

        Parameters
        ----------
        viewer : Viewer
            Page that asks; the work counts towards its budget.
        request : request
            Decoded request of `botyard.protocols.webgui.messages`.
        answer : callable
            Receives the result and None, or None and the error text, now or later.
        """
        try:
            result = self._do(request, viewer)
        # `KeyError` means an unknown name of a robot or body.
        except (BotyardError, KeyError) as error:
            answer(None, reason_of(error, self.hub.sim.robots))
            return
        except Exception as error:
            # An internal error must not end the session.
            log.exception(
                "internal error while a page asked for %s", type(request).__name__
            )
            answer(None, shown(f"internal error: {error!r}", MAX_TEXT))
            return

        if isinstance(result, Future):
            result = self._answer_of(request, result)
        # Charge the work of an answer to the viewer's own budget, although it runs
        # later, in slices between steps.
        if isinstance(result, Generator):
            work = charged(
                self._finish(result, answer),
                lambda cost: viewer.budget.spend(wall.monotonic(), cost),
            )
            self.hub.background.start(work, "the request of a page")
        else:
            answer(self._to_wire(request, result), None)

    def _answer_of(self, request: AnyRequest, work: Future[Any]) -> Portions[Any]:
        yield work
        result = work.result()
        if isinstance(result, AddedRobots):
            yield result.served
        return self._to_wire(request, result)

    def _to_wire(self, request: AnyRequest, result: Any) -> Any:
        """Convert the result of an operation to the form that the answer has."""
        # With the frame number the page knows from which frame on the robot is at its
        # new pose.
        if isinstance(request, msg.Move):
            return self.source.number
        if isinstance(request, msg.Undo | msg.Redo | msg.FindPlaces):
            return result
        if isinstance(request, msg.LookAtMap):
            return picture_of(result, request.name)
        if isinstance(result, AddedRobots):
            return list(result.robots)
        if isinstance(result, Path):
            return str(result)
        return None if type(request) in OPERATIONS else result

    def _finish(self, work: Portions[Any], answer: Answer) -> Portions[None]:
        try:
            result = yield from work
        except BotyardError as error:
            answer(None, shown(error, MAX_TEXT))
        except Exception as error:
            log.exception("internal error while executing the request of a page")
            answer(None, shown(f"internal error: {error!r}", MAX_TEXT))
        else:
            answer(result, None)

        self.hub.settle()
        self.changed()

    @singledispatchmethod
    def _do(self, request: AnyRequest, viewer: Viewer) -> Any:
        """Execute a request; return its result, a future, or a generator that makes the result."""
        self._check_shown(request, viewer)
        make = OPERATIONS.get(type(request))
        if make is None:
            raise WorldError(
                f"the page cannot request {type(request).__name__} in this state"
            )
        return self.control.do(self.caller(viewer, request.group), make(request))

    @_do.register
    def _(self, request: msg.Add, viewer: Viewer) -> Any:
        # A missing coordinate means that the simulator chooses a free place.
        pose = (
            None
            if request.x is None or request.y is None
            else Pose(request.x, request.y, request.th)
        )
        # Add several robots by one operation, so that one undo removes them all.
        if request.count > 1 or request.places:
            return self.control.do(
                self.caller(viewer),
                AddRobots(
                    model=request.model,
                    number=request.count,
                    pose=pose,
                    places=tuple(Pose(*place) for place in request.places),
                ),
            )

        added = self.control.do(
            self.caller(viewer),
            AddRobot(
                model=request.model,
                robot=request.name,
                pose=pose,
                near=pose is not None,
            ),
        )
        return self._answer_of(request, added)

    @_do.register
    def _(self, request: msg.Download, viewer: Viewer) -> str:
        # The page fetches the file by a plain link, which cannot carry the token: an
        # unguessable address takes its place.
        path = self.control.do(self.caller(viewer), ReadFile(file=request.file))
        return f"file/{self._downloads.offer(path, wall.monotonic())}"

    # -- looking back at earlier moments

    def source_of(self, viewer: Viewer) -> ViewSource:
        """Return the source of a viewer's frames: the present, or an earlier moment."""
        return self.timeline.source_of(viewer) or self.source

    def scene_of(self, name: str) -> tuple[str, Scene] | None:
        """Return the present name and the scene of a map, by a name that was sent to a viewer.

        For the name of a map that was just replaced, they are of the map that replaced
        it. None if no viewer sees either of them any more.
        """
        for source, scene in (
            (self.source, self.hub.sim.scene),
            *self.timeline.scenes(),
        ):
            if source.is_map_name(name):
                return source.map_name(), scene

        return None

    def _check_shown(self, request: AnyRequest, viewer: Viewer) -> None:
        """Raise NotNowError if a page that shows an earlier moment sends a request
        about the present.

        Positions and names of robots in that moment may differ from the present.
        """
        is_past = self.timeline.source_of(viewer) is not None
        if (
            is_past
            and isinstance(request, ABOUT_WHAT_IS_SHOWN)
            # Releasing is always allowed: a robot must not stay held because its page
            # looks back.
            and getattr(request, "on", True)
        ):
            raise NotNowError(
                "this page shows an earlier moment: return to the present, or let the "
                "world continue from there"
            )

    @_do.register
    def _(self, request: msg.Look, viewer: Viewer) -> pushes.Looked | None:
        return self.timeline.look(request, viewer, self.caller(viewer))

    @_do.register
    def _(self, request: msg.GoOn, viewer: Viewer) -> float:
        time = self.timeline.go_on(viewer, self.caller(viewer))
        self.changed()
        return time

    @_do.register
    def _(self, request: msg.Loop, viewer: Viewer) -> None:
        self.timeline.loop(request.on, self.caller(viewer))

    @_do.register
    def _(self, request: msg.Chart, viewer: Viewer) -> msgspec.Raw | None:
        return self.timeline.chart()

    @_do.register
    def _(self, request: msg.Course, viewer: Viewer) -> pushes.CourseResult:
        return self._courses.of(request.name, request.until)

    # -- the world

    def load_map(self, name: str, caller: Caller) -> Future[bool]:
        """Load a map by its name.

        Raises
        ------
        WorldError
            The map cannot be loaded.
        """
        return self.control.do(caller, LoadMap(map=name, reserved=False))

    def load_file(
        self, name: str, data: bytes, source: Hashable, page: int = 0
    ) -> Future[bool]:
        """Load a map or a world from uploaded bytes; the result is ready when it is loaded.

        Parameters
        ----------
        name : str
            Name of the file.
        data : bytes
            Content of the file.
        source : hashable
            Address of the page.
        page : int
            Number of the page (`Welcome.page`).

        Raises
        ------
        WorldError
            The file is invalid.
        """
        # If the page is known, it is the caller, so that it can undo the load.
        sender = next(
            (v for v in self.viewers if v.number == page and not v.read_only), None
        )
        caller = (
            Caller(SOURCE, Level.OWN, "a page", key=("upload", source))
            if sender is None
            else self.caller(sender)
        )
        return self.control.do(caller, SendMap(map=name, data=data))

    @_do.register
    def _(self, request: msg.Start, viewer: Viewer) -> Any:
        self.control.check(self.caller(viewer), Level.OWN)
        if self.starter is None or self.start is None:
            raise WorldError("the simulation is already running")
        return self._start(request, self.starter)

    def _start(self, request: msg.Start, starter: Starter) -> Portions[None]:
        # Withdraw the offer at once, so that a second page cannot also start the
        # simulation.
        offer, self.start = self.start, None
        try:
            yield self.hub.background.future(
                starter(request), "the start dialog's answer"
            )
        except BaseException:
            self.start = offer
            raise

        self._tell_all(pushes.encoder.encode(pushes.Started()))

    @_do.register
    def _(self, request: msg.Reply, viewer: Viewer) -> None:
        self.control.check(self.caller(viewer), Level.OWN)
        question, self.question = self.question, None
        if question is None:
            raise WorldError("the question is already answered")
        if not request.go_on:
            log.error("%s; the page chose to exit", question.text)
            self._end(question.refused)

        # The next status, which is sent at once, hides the question on the other pages.
        self._next_status = 0.0

    def _end(self, status: int) -> None:
        """End the simulator after the answer has been sent."""

        def soon() -> Portions[None]:
            yield EXIT_DELAY
            self.hub.stop(status)

        self.hub.background.start(soon(), "the end")

    @_do.register
    def _(self, request: msg.LookAtTopic, viewer: Viewer) -> str | None:
        topics = self.hub.census.topics
        if topics is None:
            raise NotNowError("no ROS interface is on")
        return topics.look(request.name)

    @_do.register
    def _(self, request: msg.AskTrafficPlan, viewer: Viewer) -> pushes.TrafficPlan:
        return self.traffic.plan()

    @_do.register
    def _(self, request: msg.Catalog, viewer: Viewer) -> Any:
        return self._catalog.portions()

    @_do.register
    def _(self, request: msg.Heat, viewer: Viewer) -> msgspec.Raw:
        past = self.timeline.sim_of(viewer)
        return self._heat.answer(request.what, None if past is None else past.time)

    @_do.register
    def _(self, request: msg.ResetHeat, viewer: Viewer) -> None:
        # The counts are shared, so an onlooker must not reset them.
        self.control.check(self.caller(viewer), Level.DRIVE)
        self._heat.reset()

    @_do.register
    def _(self, request: msg.Show, viewer: Viewer) -> None:
        self._people.show(viewer, request.name, request.pointer)

    @_do.register
    def _(self, request: msg.Debug, viewer: Viewer) -> pushes.DebugResult | msgspec.Raw:
        return self._inspector.answer(request)
