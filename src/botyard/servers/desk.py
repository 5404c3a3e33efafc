"""Carries out what viewers of the page ask for: places and drives robots, loads maps, governs time (a `Desk` of the page's sessions)."""

from __future__ import annotations

import asyncio
import logging
import math
import time as wall
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from botyard import __version__
from botyard.engine import commands as cmd
from botyard.errors import BotyardError, WorldError, did_you_mean
from botyard.formats.models import find_robot, model_names
from botyard.geometry import Pose
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.messages import AnyRequest, Graphics, LogEntry
from botyard.protocols.webgui.session import Answer, Viewer
from botyard.servers.debug import Inspector
from botyard.servers.gate import booked
from botyard.servers.handover import Handover
from botyard.servers.hub import Hub
from botyard.servers.viewsource import ViewSource, model_shape, nearest_reading
from botyard.servers.worldcontrol import WorldControl
from botyard.servers.yard import Yard
from botyard.sim.robot import Robot

SOURCE: Final = "page"
"""In whose name the page commands robots and reads sensors."""
DEAD_MAN: Final = 0.6
"""A robot that the page drives stops when nothing more comes for so long, s of wall time."""
STATUS_PERIOD: Final = 0.5
DETAIL_PERIOD: Final = 0.2
MAX_DETAILS: Final = 20
"""So many selected robots are described; the sensors of so many are read for their viewers."""
BACKLOG: Final = 500
"""Lines of the log that a new viewer gets."""
EXIT_DELAY: Final = 0.3
MAX_VIEWERS: Final = 32
"""So many pages may look on, and as many others steer."""
CATALOG_AGE: Final = 2.0
"""The list of models and maps is made no more often than every so many s, whoever asks for it."""
MAX_PROBLEM: Final = 300
"""Longest text about what is wrong with a model, characters."""
MAX_TEXT: Final = 2000
"""Longest message and line of the log that the page gets, characters."""

log = logging.getLogger("botyard.page")

T = TypeVar("T")

Starter = Callable[[msg.Start], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Question:
    """Whether to go on.

    Attributes
    ----------
    text : str
        Why that is asked.
    refused : int
        Exit status of a simulator that shall not.
    """

    text: str
    refused: int


class PageDesk:
    """The desk of all viewers of a simulation.

    Parameters
    ----------
    hub, yard, world : Hub, Yard, WorldControl
        The running simulator.
    source : ViewSource
        Makes the frames.
    audience : str
        Token of those who may only look on.
    graphics : str
        How much pages draw: ``full``, ``lite`` or ``none``.
    """

    def __init__(
        self,
        hub: Hub,
        yard: Yard,
        world: WorldControl,
        source: ViewSource,
        *,
        audience: str = "",
        graphics: Graphics = "full",
    ) -> None:
        self.hub = hub
        self.yard = yard
        self.world = world
        self.source = source
        self.viewers: list[Viewer] = []
        self.start: msg.StartOffer | None = None
        self.starter: Starter | None = None
        self.question: Question | None = None
        self._audience = audience
        self._graphics = graphics
        self._driven: dict[str, float] = {}
        self._held: dict[Viewer, set[str]] = {}
        self._read: set[str] = set()
        self._schema = -1
        self._map: msg.MapChanged | None = None
        self._log: deque[LogEntry] = deque(maxlen=BACKLOG)
        self._next_status = self._next_detail = 0.0
        self._inspector = Inspector(hub.sim)
        self._catalog: asyncio.Future[msgspec.Raw] | None = None
        self._catalog_made = 0.0

    # -- who is there

    def no_room(self, read_only: bool) -> str:
        """Why there is no room for one more viewer; those who look on never take the place of those who steer."""
        if sum(v.read_only == read_only for v in self.viewers) < MAX_VIEWERS:
            return ""
        return f"there are {MAX_VIEWERS} {'onlookers' if read_only else 'pages'} already"

    def welcome(self, read_only: bool) -> msg.Welcome:
        """The greeting of a new viewer."""
        return msg.Welcome(
            version=msg.VERSION, program=f"botyard {__version__}", read_only=read_only, start=self.start,
            audience="" if read_only else self._audience, graphics=self._graphics,
        )  # fmt: skip

    def arrived(self, viewer: Viewer) -> Sequence[bytes]:
        """A viewer is there: it gets the map, the schema, the state and the last lines of the log."""
        self.viewers.append(viewer)
        for entry in self._log:
            viewer.add_log(entry)
        _, schema = self.source.schema()
        return [msg.encoder.encode(self.source.map_message()), schema, msg.encoder.encode(self._status())]

    def left(self, viewer: Viewer) -> None:
        """A viewer has gone: what it held is let go."""
        if viewer not in self.viewers:
            return
        self.viewers.remove(viewer)
        for name in self._held.pop(viewer, set()):
            self._hold(name, False)
        self._subscribe()
        self.hub.settle()

    def view_changed(self, viewer: Viewer) -> None:
        """A viewer looks at something else."""
        self._subscribe()
        self.hub.settle()

    def _subscribe(self) -> None:
        """Read the sensors of selected robots, and of no others."""
        robots = self.hub.sim.robots
        wanted = list(dict.fromkeys(n for v in self.viewers for n in v.view.selected if n in robots))[:MAX_DETAILS]
        for name in self._read.union(wanted):
            on = name in wanted
            if name in robots and on != (name in self._read):
                for laser in robots[name].lasers:
                    laser.subscribe(SOURCE, on)
                sonar = robots[name].sonar
                if sonar is not None:
                    sonar.subscribe(SOURCE, on)
        self._read = set(wanted)

    # -- what all viewers are told

    def changed(self) -> None:
        """The state has changed: between two steps."""
        self.source.changed()

    def prepare(self) -> None:
        """Tell viewers of another map or other robots, if there are, before the next frame."""
        number, schema = self.source.schema()
        if number != self._schema:
            self._schema = number
            self._subscribe()
            self._tell_all(schema)
        place = self.source.map_message()
        if place != self._map:
            first, self._map = self._map is None, place
            if not first:
                self._tell_all(msg.encoder.encode(place))

    def _tell_all(self, text: bytes, again_soon: bool = False) -> None:
        for viewer in self.viewers:
            viewer.send_encoded(text, again_soon)

    def tick(self, now: float) -> None:
        """Wall time has passed: dead-man stops, status, details."""
        for name in [n for n, until in self._driven.items() if now > until]:
            self._let_go(name)
        if not self.viewers:
            return
        if now >= self._next_status:
            self._next_status = now + STATUS_PERIOD
            self._tell_all(msg.encoder.encode(self._status()), again_soon=True)
        if now >= self._next_detail:
            self._next_detail = now + DETAIL_PERIOD
            for viewer in self.viewers:
                if viewer.view.selected and not viewer.is_behind and not viewer.wait(now):
                    with viewer.work(now):
                        viewer.send(self._details(viewer.view.selected))

    def _status(self) -> msg.Status:
        sim = self.hub.sim
        driven = [msg.Client(robot=r.name, sources=list(r.clients)) for r in sim.robots.values() if r.clients]
        clients = sum(s != SOURCE for c in driven for s in c.sources)
        return msg.Status(
            clients=clients, subscriptions=sim.fleet.subscriptions, viewers=len(self.viewers), overruns=self.hub.overruns,
            driven=driven,
            interfaces=[
                msg.InterfaceState(name=n, on=i.on, about=i.about, problem=i.problem() if i.on else "")
                for n, i in self.yard.interfaces.items()
            ],
            question=self.question.text if self.question is not None else "",
        )  # fmt: skip

    def _details(self, names: Sequence[str]) -> msg.Details:
        sim = self.hub.sim
        robots = [sim.robots[n] for n in names[:MAX_DETAILS] if n in sim.robots]
        return msg.Details(time=sim.time, robots=[self._detail(r) for r in robots])

    def _detail(self, robot: Robot) -> msg.Detail:
        sim, state = self.hub.sim, robot.state
        target = sim.snapshot.state.target[sim.snapshot.rows[robot.name]].tolist()
        sensors = [laser.spec.type_name for laser in robot.lasers if laser.is_read]
        if robot.sonar is not None and robot.sonar.is_read:
            sensors.append("sonar")
        believed, true = robot.odom_in_world, state.pose_world
        turned = math.remainder(believed.th - true.th, 2 * math.pi)
        gripper = robot.gripper
        return msg.Detail(
            name=robot.name, model=robot.spec.name, clients=list(robot.clients), pose=_three(true),
            odometry=_three(state.pose_odom), odometry_error=(math.dist(believed[:2], true[:2]), turned),
            velocity=_three(state.twist), command=_three(target), accel=state.accel.as_tuple(),
            error=state.odometry_error.as_tuple(), motors=state.motors, stalled=state.stalled,
            estop=robot.electrics.estop_pressed or state.estop, volts=robot.electrics.volts,
            charge=robot.electrics.charge, charging=bool(robot.electrics.battery.charge_state), sensors=sensors,
            nearest=nearest_reading(robot), gripper=(gripper.holding or "open") if gripper is not None else "",
            port=self.yard.port_of(robot.name),
        )  # fmt: skip

    def add_log(self, entry: LogEntry) -> None:
        """A line of the log."""
        self._log.append(entry)
        for viewer in self.viewers:
            viewer.add_log(entry)

    # -- requests

    def perform(self, viewer: Viewer, request: AnyRequest, answer: Answer) -> None:
        """Carry out a request; whatever is wrong with it, the viewer is told and nobody else notices."""
        try:
            result = self._do(request, viewer)
        except (BotyardError, KeyError) as error:
            answer(None, self._reason(error))
            return
        except Exception as error:  # a fault of ours must not end the session
            log.exception("internal error while a page asked for %s", type(request).__name__)
            answer(None, shown(f"internal error: {error!r}", MAX_TEXT))
            return
        if asyncio.iscoroutine(result):
            loop = asyncio.get_running_loop()
            work = booked(self._later(result, answer), lambda cost: viewer.budget.spend(loop.time(), cost))
            task = loop.create_task(work)
            self.hub.tasks.add(task)
            task.add_done_callback(self.hub.tasks.discard)
        else:
            answer(result, None)
        self.hub.settle()

    async def _later(self, work: Coroutine[Any, Any, Any], answer: Answer) -> None:
        try:
            result = await work
        except BotyardError as error:
            answer(None, shown(error, MAX_TEXT))
        except Exception as error:
            log.exception("internal error while carrying out what a page asked for")
            answer(None, shown(f"internal error: {error!r}", MAX_TEXT))
        else:
            answer(result, None)
        self.hub.settle()
        self.changed()

    def _reason(self, error: Exception) -> str:
        if not isinstance(error, BotyardError):
            name = str(error.args[0]) if error.args else ""
            return f'there is no robot or box "{shown(name)}"{did_you_mean(name, self.hub.sim.robots)}'
        return shown(error, MAX_TEXT)

    @singledispatchmethod
    def _do(self, request: AnyRequest, viewer: Viewer) -> Any:
        """Carry out one kind of request: its result, or work that takes longer."""
        raise WorldError(f"{type(request).__name__} is not for now")

    # time

    @_do.register
    def _(self, request: msg.Pause, viewer: Viewer) -> None:
        self.hub.pause()

    @_do.register
    def _(self, request: msg.Run, viewer: Viewer) -> None:
        self.hub.resume()

    @_do.register
    def _(self, request: msg.Step, viewer: Viewer) -> None:
        self.hub.step_and_pause(request.count)

    @_do.register
    def _(self, request: msg.Speed, viewer: Viewer) -> None:
        if 0.0 < request.factor < 0.01:
            raise WorldError(f"speed: expected 0 (as fast as possible) or 0.01 … 1000, found {request.factor:g}")
        self.hub.set_speed(request.factor)

    # hands

    def _hold(self, name: str, on: bool) -> None:
        sim = self.hub.sim
        if name in sim.fleet.rows:
            sim.hold(name, on, SOURCE)

    @_do.register
    def _(self, request: msg.Hold, viewer: Viewer) -> None:
        held = self._held.setdefault(viewer, set())

        def hold(name: str) -> None:
            self.hub.sim.hold(name, request.on, SOURCE)
            (held.add if request.on else held.discard)(name)

        self._for_all(request.names, hold)

    @_do.register
    def _(self, request: msg.Move, viewer: Viewer) -> int:
        self._for_all(request.to, lambda to: self.hub.sim.put(to.name, Pose(to.x, to.y, to.th), SOURCE))
        return self.source.number

    @_do.register
    def _(self, request: msg.Drive, viewer: Viewer) -> None:
        robot = self._driver(request.name)
        if not request.on:
            self._let_go(request.name)
            return
        port = robot.port(SOURCE)
        if request.name not in self._driven:
            robot.claim(SOURCE)
            port.submit(cmd.Hold(False))
        if not robot.motors_on and robot.electrics.may_drive:
            port.submit(cmd.EnableMotors(True))  # a client that left has switched them off
        self._driven[request.name] = wall.monotonic() + DEAD_MAN
        port.submit(cmd.SetVelocity(v=request.v, w=request.w, vy=request.vy))

    def _let_go(self, name: str) -> None:
        """The page drives a robot no longer: it stops."""
        if self._driven.pop(name, None) is None:
            return
        robot = self.hub.sim.robots.get(name)
        if robot is not None:
            robot.port(SOURCE).submit(cmd.Stop())
            robot.release(SOURCE)

    @_do.register
    def _(self, request: msg.Enable, viewer: Viewer) -> None:
        def enable(robot: Robot) -> None:
            if request.on and not robot.electrics.may_drive:
                raise WorldError(f"{robot.name}: the motors cannot be enabled: red button pressed, or battery empty")
            robot.port(SOURCE).submit(cmd.EnableMotors(request.on))

        self._each(request.names, enable)

    @_do.register
    def _(self, request: msg.EmergencyStop, viewer: Viewer) -> None:
        self._each(request.names, lambda robot: robot.press_estop(request.on))

    def _each(self, names: Sequence[str], act: Callable[[Robot], None]) -> None:
        """Do something with each of these robots, see `_for_all`."""
        self._for_all(names, lambda name: act(self._driver(name)), "robots")

    def _for_all(self, items: Sequence[T], act: Callable[[T], object], what: str = "bodies") -> None:
        """Do something with each of several. One that it cannot be done with keeps nothing from the others; it is told at the end.

        Raises
        ------
        WorldError
            It could not be done with all.
        """
        failed: list[str] = []
        for item in items:
            try:
                act(item)
            except (BotyardError, KeyError) as error:
                failed.append(self._reason(error))
        if failed:
            raise WorldError(failed[0] if len(items) == 1 else f"{len(failed)} of {len(items)} {what}: {failed[0]}")

    @_do.register
    def _(self, request: msg.Joystick, viewer: Viewer) -> None:
        stick = self._driver(request.name).electrics.joystick
        stick.set(request.x, request.y, stick.throttle, request.button1, request.button2)

    @_do.register
    def _(self, request: msg.OdometryErrors, viewer: Viewer) -> None:
        self._driver(request.name).port(SOURCE).set_odometry_errors(request.on)

    def _driver(self, name: str) -> Robot:
        robot = self.hub.sim.robots[name]
        if not robot.spec.drive:
            raise WorldError(f"{name} is an obstacle and cannot drive")
        return robot

    @_do.register
    def _(self, request: msg.Reset, viewer: Viewer) -> None:
        if request.names is None:
            self.hub.sim.reset(None, SOURCE)
        else:
            self._for_all(request.names, lambda name: self.hub.sim.reset([name], SOURCE))

    # who is in the world

    @_do.register
    def _(self, request: msg.Add, viewer: Viewer) -> Any:
        spec = self.yard.model_by_client(request.model)
        self.yard.check_room(request.count)
        pose = None if request.x is None or request.y is None else Pose(request.x, request.y, request.th)
        sim = self.hub.sim
        if request.count > 1:
            return self._add_many(request.model, pose or sim.home, request.count)
        place = None if pose is None else sim.free_place(self.yard.find_model(spec.name), pose)
        return self._opened([self.yard.add(request.model, request.name or None, place)])

    @_do.register
    def _(self, request: msg.Clone, viewer: Viewer) -> Any:
        sim = self.hub.sim
        originals = [sim.robots[n] for n in request.names if n in sim.robots] or [sim.robots[n] for n in request.names]
        self.yard.check_room(len(originals))
        return self._clone(originals)

    async def _clone(self, originals: Sequence[Robot]) -> list[str]:
        clones: list[Robot] = []
        for robot in originals:
            if robot.name in self.hub.sim.robots:  # one may go meanwhile
                clones.append(self.yard.add(robot.spec, None, self.hub.sim.free_place(robot.spec, robot.truth)))
            await asyncio.sleep(0)
        return await self._opened(clones)

    async def _add_many(self, model: str, near: Pose, count: int) -> list[str]:
        return await self._opened(await self.yard.add_many(model, near, count))

    async def _opened(self, robots: Sequence[Robot]) -> list[str]:
        """Open the ports of robots that were added; their names."""
        for robot in robots:
            server = self.yard.servers.get(robot.name)
            if server is not None:
                await self.yard.open_somewhere(server)
        if not robots:
            return []
        first = f"{robots[0].name} ({robots[0].spec.name})"
        log.info("%s%s added", first, f" and {len(robots) - 1} more" if len(robots) > 1 else "")
        return [robot.name for robot in robots]

    @_do.register
    def _(self, request: msg.Remove, viewer: Viewer) -> None:
        sim = self.hub.sim
        boxes = frozenset(sim.box_names)
        there = [name for name in request.names if name in sim.robots or name in boxes]
        if there:
            self.yard.remove(there)
            for name in there:
                self._driven.pop(name, None)
            first = ", ".join(shown(n) for n in there[:10])
            log.info("%s%s removed", first, f" and {len(there) - 10} more" if len(there) > 10 else "")
        if len(there) < len(request.names):  # somebody else may have been quicker
            there_now = frozenset(there)
            gone = [name for name in request.names if name not in there_now]
            self.yard.remove(gone[:1])  # which says what is wrong

    # the world

    async def _loaded(self, load: Callable[[Callable[[str | None], None]], None]) -> None:
        """Wait for a map."""
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        load(lambda error: None if future.done() else future.set_result(error))
        error = await future
        if error is not None:
            raise WorldError(error)

    @_do.register
    def _(self, request: msg.LoadMap, viewer: Viewer) -> Any:
        if not request.name:
            self.world.clear()
            return None
        return self.load_map(request.name, viewer)

    @_do.register
    def _(self, request: msg.Reload, viewer: Viewer) -> Any:
        return self._loaded(self.world.reload)

    async def load_map(self, name: str, asker: Hashable = SOURCE) -> None:
        """Load a map by its name, for `asker`.

        Raises
        ------
        WorldError
            It cannot be loaded.
        """
        await self._loaded(lambda done: self.world.load(name, done=done, asker=asker))

    async def load_file(self, name: str, data: bytes, asker: Hashable = SOURCE) -> None:
        """Load a map or a world that a page has sent, for `asker`.

        Raises
        ------
        WorldError
            It is none.
        """
        await self._loaded(lambda done: self.world.load_bytes(name, data, done, asker))
        self.changed()

    @_do.register
    async def _(self, request: msg.Snapshot, viewer: Viewer) -> str:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def done(path: Path | None, why: str) -> None:
            if future.done():
                return
            if path is None:
                future.set_exception(WorldError(why))
            else:
                future.set_result(str(path))

        self.world.write_picture(request.name, wall.monotonic(), done)
        path = await future
        log.info("picture written to %s", path)
        return path

    @_do.register
    def _(self, request: msg.Interface, viewer: Viewer) -> Any:
        return self.yard.switch(request.name, request.on)

    @_do.register
    def _(self, request: msg.Start, viewer: Viewer) -> Any:
        if self.starter is None or self.start is None:
            raise WorldError("the simulation has started already")
        return self._start(request, self.starter)

    async def _start(self, request: msg.Start, starter: Starter) -> None:
        offer, self.start = self.start, None
        try:
            await starter(request)
        except BaseException:
            self.start = offer
            raise
        self._tell_all(msg.encoder.encode(msg.Started()))

    @_do.register
    def _(self, request: msg.Reply, viewer: Viewer) -> None:
        question, self.question = self.question, None
        if question is None:
            raise WorldError("somebody has answered already")
        if not request.go_on:
            log.error("%s; the page said to end", question.text)
            self._end(question.refused)
        self._next_status = 0.0  # others need not answer any more

    @_do.register
    def _(self, request: msg.Exit, viewer: Viewer) -> None:
        log.info("the page ends the simulation")
        self._end(0)

    def _end(self, status: int) -> None:
        """End the simulator when the answer is on its way."""
        asyncio.get_running_loop().call_later(EXIT_DELAY, self.hub.stop, status)

    @_do.register
    def _(self, request: msg.Catalog, viewer: Viewer) -> Any:
        return self._listed()

    async def _listed(self) -> msgspec.Raw:
        """Models and maps as JSON: made once for all who ask, in small pieces between the steps: models are files, maps folders."""
        now = asyncio.get_running_loop().time()
        made = self._catalog
        if made is None or (made.done() and now > self._catalog_made + CATALOG_AGE):
            self._catalog_made = now
            made = self._catalog = asyncio.ensure_future(self._list())
        return await asyncio.shield(made)

    async def _list(self) -> msgspec.Raw:
        models = []
        for name in model_names():
            await asyncio.sleep(0)  # the first time each is read from its file, which takes a millisecond
            try:
                models.append(model_shape(find_robot(name), name))
            except BotyardError as error:
                models.append(msg.broken_model(name, shown(error, MAX_PROBLEM)))
        found = await self.world.beside(self.world.maps)
        maps = [msg.MapFile(name=name, shipped=shipped) for name, shipped in found]
        return msgspec.Raw(msg.encoder.encode(msg.CatalogResult(models=models, maps=maps)))

    @_do.register
    def _(self, request: msg.Debug, viewer: Viewer) -> msg.DebugResult | msgspec.Raw:
        return self._inspector.answer(request)


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    a, b, c = values
    return a, b, c


class PageLog(logging.Handler):
    """Takes lines of the log to the page; may be called in any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[LogEntry], None]) -> None:
        super().__init__()
        self._handover = Handover(loop)
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a line over to the event loop."""
        robot = getattr(record, "robot", "")
        text = record.getMessage().removeprefix(f"{robot}: ") if robot else record.getMessage()
        level = cast(Literal["debug", "info", "warning", "error"], _LEVELS.get(record.levelno, "error"))
        source = robot or record.name.rpartition(".")[2]
        entry = LogEntry(time=record.created, level=level, source=source, text=shown(text, MAX_TEXT))
        self._handover.soon(self._take, entry)


_LEVELS: Final = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}
