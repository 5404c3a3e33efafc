"""Handles of a served simulator: `Running` in a thread of its own, `AsyncRunning` in
the program's event loop.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from botyard.api import arguments
from botyard.app.assembly import add_robots, assemble, open_interfaces
from botyard.app.compose import Parts
from botyard.app.keywords import python_words
from botyard.app.options import RunOptions
from botyard.app.served import Run
from botyard.control import (
    USER,
    AddedRobots,
    Control,
    Operation,
    Pause,
    Resume,
    StepNow,
)
from botyard.control.later import promise, resolve
from botyard.control.time import MAX_STEPS
from botyard.controllers.base import Call, call_in, end_call
from botyard.errors import NotNowError
from botyard.model.world import Settings, World
from botyard.servers.throttledlog import watch_over
from botyard.sim.simulation import Simulation

T = TypeVar("T")

STEPS_PER_PORTION: Final = 1000
"""Steps that `Running.step` asks for at a time."""
WAKE_INTERVAL_S: Final = 1.0
"""Time-out of each wait in an endless wait, s: on some systems Ctrl-C does not
interrupt a wait.
"""
RETURN_GRACE_S: Final = 3.0
"""Time in which a controller has to return when the simulator is to end, s."""


class Address(NamedTuple):
    """Address of a listening socket."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A simulator with all its ports open."""

    parts: Parts
    run: Run

    def address(self, interface: str) -> Address | None:
        """Address of an interface; None if it is off, or has no port of its own."""
        found = self.parts.robot_servers.interfaces.get(interface)
        address = found.address() if found is not None and found.on else None
        return None if address is None else Address(*address)


_served: Final[set[int]] = set()
_serving: Final = threading.Lock()


@contextlib.contextmanager
def _serving_once(sim: Simulation) -> Iterator[None]:
    """Nobody else serves this simulation: two threads that step one world would ruin
    it.
    """
    with _serving:
        if id(sim) in _served:
            raise NotNowError("this simulation is served already")
        _served.add(id(sim))

    mine = threading.get_ident()
    sim.belong_to(lambda: threading.get_ident() == mine)
    try:
        yield
    finally:
        sim.belong_to(None)
        with _serving:
            _served.discard(id(sim))


@contextlib.asynccontextmanager
async def opened(sim: Simulation, o: RunOptions) -> AsyncIterator[Opened]:
    """Put a simulator together and open its ports, in the running event loop; all is
    closed when this is left.
    """
    place = World(scene=sim.scene, settings=Settings(step=sim.dt))
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_serving_once(sim))
        parts = assemble(sim, place, o, None)
        stack.push_async_callback(parts.ended)
        try:
            with python_words():
                parts.robot_servers.adopt()
                add_robots(parts.robot_servers, place, o, o.robots)
                run = await open_interfaces(stack, parts, o, {})

            yield Opened(parts, run)
        finally:
            parts.close()
            await asyncio.sleep(0)  # let the last bytes go


class RunningInfo:
    """Addresses and state of a running simulator."""

    _now: Opened | None

    @property
    def _opened(self) -> Opened:
        if self._now is None:
            raise NotNowError("the simulator has ended")
        return self._now

    @property
    def control(self) -> Control:
        """The control surface, for the simulator's own thread; use `do` from other
        threads.
        """
        control: Control = self._opened.parts.control
        return control

    @property
    def ports(self) -> dict[str, Address]:
        """Addresses of the robots for Pioneer clients, by name."""
        servers = dict(self._opened.parts.robot_servers.servers)
        return {name: Address(*s.address) for name, s in servers.items() if s.is_open}

    @property
    def factories(self) -> list[Address]:
        """Addresses of the robot factories, in the order in which they were given."""
        return [Address(*s.address) for s in self._opened.parts.robot_servers.factories]

    @property
    def page(self) -> str | None:
        """Address of the page, with its token; None: there is none."""
        now = self._opened
        return now.run.page().url if now.address("page") is not None else None

    @property
    def metrics(self) -> Address | None:
        """Address of ``/metrics`` and ``/healthz``, with `metrics_port`; the page also
        answers them.
        """
        return self._opened.address("metrics")

    @property
    def ambf(self) -> Address | None:
        """Address of AMBF's objects for clients without ROS."""
        return self._opened.address("ambf")

    @property
    def interfaces(self) -> dict[str, Address]:
        """Addresses of the interfaces that are on and have one port, by name."""
        now = self._opened
        found = {
            name: now.address(name)
            for name in tuple(now.parts.robot_servers.interfaces)
        }
        return {name: address for name, address in found.items() if address is not None}

    @property
    def is_paused(self) -> bool:
        """Whether the simulation is paused."""
        return bool(self._opened.parts.hub.is_paused)


class Running(RunningInfo):
    """A simulator that runs in a thread of its own. All methods may be called from any
    other thread.

    The world belongs to that thread: `call` and `do` are the ways to it while it runs.
    Reading a number or two (`sim.time`, `robot.truth`) is harmless from elsewhere, but
    two numbers may then be of different steps.

    Attributes
    ----------
    sim : Simulation
        The world.
    """

    def __init__(self, sim: Simulation, o: RunOptions) -> None:
        self.sim = sim
        self._o = o
        self._now: Opened | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[int] | None = None
        self._status: int | None = None
        self.error: BaseException | None = None
        self._is_stopping = False
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._ready, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="botyard", daemon=True)

    # -- the simulator's thread

    def _run(self) -> None:
        try:
            self._status = asyncio.run(self._live())
        except asyncio.CancelledError:
            # told to stop before it was ready
            self._status = 0
        except BaseException as error:
            self.error = error
        finally:
            with self._lock:
                self._now = self._loop = self._main = None
                waiting, self._waiting = self._waiting, set()

            for future in waiting:
                resolve(
                    future,
                    error=NotNowError("the simulator ended before this was done"),
                )

            self._ended.set()
            self._ready.set()

    async def _live(self) -> int:
        loop = asyncio.get_running_loop()
        watch_over(loop, logging.getLogger("botyard"))
        with self._lock:
            self._loop, self._main = loop, asyncio.current_task()
            if self._is_stopping:
                return 0

        async with opened(self.sim, self._o) as now:
            self._now = now
            self._ready.set()
            status: int = await now.parts.hub.run()

        return status

    # -- life

    def start(self) -> None:
        """Start, and wait until all ports are open; an error is raised."""
        self._thread.start()
        atexit.register(self.end)
        try:
            self._ready.wait()
        except BaseException:  # Ctrl-C
            self.end()
            raise

        if self._ended.is_set():
            self.end()
            self.raise_error()

    def end(self) -> None:
        """Stop, and wait until everything is closed."""
        with self._lock:
            self._is_stopping = True
            loop, main, now = self._loop, self._main, self._now
            if loop is not None:
                with contextlib.suppress(RuntimeError):  # it has just ended
                    if now is not None:
                        loop.call_soon_threadsafe(now.parts.hub.stop)
                    elif main is not None:
                        loop.call_soon_threadsafe(main.cancel)

        if threading.current_thread() is self._thread:
            return
        self._join()
        atexit.unregister(self.end)

    def _join(self) -> None:
        """Wait until the thread has ended. A controller that does not return from one
        call is ended as by a crash.
        """
        call: Call | None = None
        while self._thread.is_alive():
            before, call = (
                call,
                call_in(sys._current_frames().get(self._thread.ident or 0)),
            )
            if before is not None and call is not None and call.frame is before.frame:
                end_call(self._thread.ident or 0, call)
            self._thread.join(RETURN_GRACE_S)

    def raise_error(self) -> None:
        """Raise the error with which the simulator has ended, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """End the simulator, and wait until everything is closed. Does nothing when it
        has ended.

        Raises
        ------
        BaseException
            The simulator has ended with an error, which nobody was told of yet.
        """
        self.end()
        if threading.current_thread() is not self._thread:
            self.raise_error()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the simulator ends by itself, or somebody ends it: its duration is
        over, a client, the page.

        Returns
        -------
        int or None
            Its exit status; None: it runs on after `timeout` (s).

        Raises
        ------
        BaseException
            The error with which it has ended.
        """
        if timeout is not None:
            self._ended.wait(arguments.number(timeout, "timeout", low=0.0, unit="s"))
        else:
            while not self._ended.wait(WAKE_INTERVAL_S):
                pass

        if self._ended.is_set():
            self._thread.join()
            self.raise_error()

        return self._status

    @property
    def status(self) -> int | None:
        """Exit status of the run; None while it goes on, or when it has ended with an
        error.
        """
        return self._status

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return not self._ended.is_set()

    # -- calls and operations

    def call(self, f: Callable[..., T], /, *args: Any, **keywords: Any) -> T:
        """Call something in the simulator's thread, between two steps, and return what
        it returns; what it raises is raised.

        Raises
        ------
        NotNowError
            The simulator has ended.
        """
        if threading.current_thread() is self._thread:
            return f(*args, **keywords)
        future: Future[T] = promise()

        def act() -> None:
            try:
                resolve(future, f(*args, **keywords))
            except BaseException as error:  # whoever has called is told
                resolve(future, error=error)

        return self._result(future, act)

    def _result(self, future: Future[T], act: Callable[[], None]) -> T:
        """Let `act` be done in the loop, and wait for the result that comes of it."""
        with self._lock:
            if self._loop is None:
                raise NotNowError("the simulator has ended")
            try:
                self._loop.call_soon_threadsafe(act)
            except RuntimeError:  # it was closed a moment ago
                raise NotNowError("the simulator has ended") from None

            self._waiting.add(future)

        try:
            return future.result()
        finally:
            with self._lock:
                self._waiting.discard(future)

    def do(self, operation: Operation[Any]) -> Any:
        """Carry out an operation of `botyard.control` as the user, wait for its result,
        and return it.

        Ports of added robots are open then.

        Raises
        ------
        BotyardError
            It cannot be done.
        NotNowError
            The simulator has ended; or this is its own thread, and the operation takes
            longer than a moment (`control.do` answers with a future).
        """
        arguments.instance(operation, "operation", Operation)
        if threading.current_thread() is self._thread:
            result = self.control.do(USER, operation)
            if isinstance(result, Future):
                if not result.done():
                    raise NotNowError(
                        "this takes several steps of the event loop, and cannot "
                        "be waited for in its thread"
                    )

                return result.result()

            return result

        future: Future[Any] = promise()

        def act() -> None:
            try:
                result = self.control.do(USER, operation)
            except BaseException as error:
                resolve(future, error=error)
                return

            if isinstance(result, Future):
                result.add_done_callback(lambda done: _forward_result(done, future))
            else:
                _resolve_with_ports(result, future)

        return self._result(future, act)

    def pause(self) -> None:
        """Pause the simulation; placements still take effect."""
        self.do(Pause())

    def resume(self) -> None:
        """Resume the simulation."""
        self.do(Resume())

    def step(self, steps: int = 1) -> None:
        """Pause, and make a number of steps now; returns when they are made."""
        self.pause()
        for some in _portions(steps):
            self.do(StepNow(steps=some))


def _forward_result(done: Future[Any], future: Future[Any]) -> None:
    """Copy the result of a future to another one."""
    if done.cancelled():
        resolve(future, error=concurrent.futures.CancelledError())
    elif (error := done.exception()) is not None:
        resolve(future, error=error)
    else:
        _resolve_with_ports(done.result(), future)


def _resolve_with_ports(result: Any, future: Future[Any]) -> None:
    """Resolve a future; for added robots, when their ports are open."""
    if isinstance(result, AddedRobots):
        result.served.add_done_callback(
            lambda served: resolve(
                future, result, None if served.cancelled() else served.exception()
            )
        )
    else:
        resolve(future, result)


def _portions(steps: object) -> list[int]:
    """Split a number of steps, so that a program that is interrupted leaves few of them
    to be made.
    """
    left = arguments.whole(steps, "steps", low=1, high=MAX_STEPS)
    whole, rest = divmod(left, STEPS_PER_PORTION)
    return [STEPS_PER_PORTION] * whole + ([rest] if rest else [])


class AsyncRunning(RunningInfo):
    """A simulator that runs in the event loop of the program. Between two `await` no
    step is made: the world may be read and changed.

    Attributes
    ----------
    sim : Simulation
        The world.
    """

    def __init__(self, sim: Simulation, now: Opened) -> None:
        self.sim = sim
        self._now: Opened | None = now
        self._task: asyncio.Task[int] = asyncio.get_running_loop().create_task(
            now.parts.hub.run(), name="botyard"
        )
        self._is_reported = False

    async def close(self) -> BaseException | None:
        """End the run; the error with which it ended, if nobody was told of it."""
        if self._now is not None:
            self._now.parts.hub.stop()
        await asyncio.gather(self._task, return_exceptions=True)
        self._now = None
        if self._is_reported or self._task.cancelled():
            return None
        return self._task.exception()

    def stop(self) -> None:
        """End the simulator soon; leaving the ``async with`` closes everything."""
        self._opened.parts.hub.stop()

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the simulator ends; its exit status, or None: it runs on after
        `timeout` (s). Its error is raised.
        """
        if timeout is not None:
            arguments.number(timeout, "timeout", low=0.0, unit="s")
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        if not done:
            return None
        self._is_reported = True
        return self._task.result()

    @property
    def status(self) -> int | None:
        """Exit status of the run; None while it goes on, or when it has ended with an
        error.
        """
        if (
            not self._task.done()
            or self._task.cancelled()
            or self._task.exception() is not None
        ):
            return None

        return self._task.result()

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return not self._task.done()

    async def do(self, operation: Operation[Any]) -> Any:
        """Carry out an operation of `botyard.control` as the user, wait for its result,
        and return it.

        Ports of added robots are open then.

        Raises
        ------
        BotyardError
            It cannot be done, or the simulator has ended.
        """
        arguments.instance(operation, "operation", Operation)
        result = self.control.do(USER, operation)
        answer = (
            await asyncio.wrap_future(result) if isinstance(result, Future) else result
        )
        if isinstance(answer, AddedRobots):
            await asyncio.wrap_future(answer.served)
        return answer

    async def pause(self) -> None:
        """Pause the simulation; placements still take effect."""
        await self.do(Pause())

    async def resume(self) -> None:
        """Resume the simulation."""
        await self.do(Resume())

    async def step(self, steps: int = 1) -> None:
        """Pause, and make a number of steps now; returns when they are made."""
        await self.pause()
        for some in _portions(steps):
            await self.do(StepNow(steps=some))


__all__ = ["Address", "AsyncRunning", "Opened", "Running", "opened"]
