"""Handle of a simulator that is served in a thread of its own.

`botyard.app.asyncrunning` serves one in the program's event loop.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator
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
"""Number of steps that `Running.step` requests at a time."""
WAKE_INTERVAL_S: Final = 1.0
"""Timeout of each part of an endless wait, s.

On some systems, Ctrl-C does not interrupt a wait.
"""
RETURN_GRACE_S: Final = 3.0
"""Time that a controller has to return when the simulator ends, s."""


def portions_of(steps: object) -> list[int]:
    """Split a number of steps into portions, so that an interruption leaves few pending steps.

    Parameters
    ----------
    steps : object
        Number of steps, from 1 to `botyard.control.time.MAX_STEPS`.

    Returns
    -------
    list of int
        Sizes of the portions, at most `STEPS_PER_PORTION` each.

    Raises
    ------
    ArgumentError
        `steps` is not a whole number in this range.
    """
    left = arguments.whole(steps, "steps", low=1, high=MAX_STEPS)
    whole, rest = divmod(left, STEPS_PER_PORTION)
    return [STEPS_PER_PORTION] * whole + ([rest] if rest else [])


class Address(NamedTuple):
    """Host and port of a listening socket."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A simulator with all its ports open."""

    parts: Parts
    run: Run

    def address(self, interface: str) -> Address | None:
        """Return the address of an interface.

        Parameters
        ----------
        interface : str
            Name, as ``botyard interfaces`` lists it.

        Returns
        -------
        Address or None
            None if the interface is off or has no port of its own.
        """
        found = self.parts.robot_servers.interfaces.get(interface)
        address = found.address() if found is not None and found.on else None
        return None if address is None else Address(*address)


_served: Final[set[int]] = set()
_serving: Final = threading.Lock()


@contextlib.contextmanager
def _serving_once(sim: Simulation) -> Iterator[None]:
    """Mark a simulation as served until the block ends.

    Two threads stepping one world would corrupt it.

    Raises
    ------
    NotNowError
        The simulation is already being served.
    """
    with _serving:
        # The set holds numbers instead of objects, which would keep a finished
        # simulation in memory.
        if id(sim) in _served:
            raise NotNowError("this simulation is already being served")
        _served.add(id(sim))

    mine = threading.get_ident()
    # Two threads that step one world would corrupt it.
    sim.core.belong_to(lambda: threading.get_ident() == mine)
    try:
        yield
    finally:
        sim.core.belong_to(None)
        with _serving:
            _served.discard(id(sim))


@contextlib.asynccontextmanager
async def opened(
    sim: Simulation, o: RunOptions, rest: Collection[str] = ()
) -> AsyncIterator[Opened]:
    """Assemble a simulator and open its ports in the running event loop.

    It is a context manager that closes everything on exit.

    Parameters
    ----------
    sim : Simulation
        World with its robots.
    o : RunOptions
        Options of the run. Their robots are added to the world.
    rest : collection of str
        Interfaces that are not started.

    Yields
    ------
    Opened
        The simulator; its run loop does not run yet.

    Raises
    ------
    NotNowError
        The simulation is already being served.
    BotyardError
        For example, a port is in use or a robot model does not exist.
    """
    # The simulation exists already, so this world only supplies its time step.
    # `add_robots` places the robots of the options.
    place = World(scene=sim.scene, settings=Settings(step=sim.dt))
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_serving_once(sim))
        parts = assemble(sim, place, o, None)
        stack.push_async_callback(parts.ended)
        try:
            with python_words():
                parts.robot_servers.adopt()
                add_robots(parts.robot_servers, place, o, o.robots)
                run = await open_interfaces(stack, parts, o, {}, rest=rest)

            yield Opened(parts, run)
        finally:
            parts.close()
            # One turn of the event loop sends the last bytes.
            await asyncio.sleep(0)


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
        """Operations on the simulation, for use in the simulator's own thread."""
        control: Control = self._opened.parts.control
        return control

    @property
    def ports(self) -> dict[str, Address]:
        """Addresses of the robots for Pioneer clients, by name."""
        # Copy the dictionary: the simulator's thread may add a robot while this thread
        # iterates.
        servers = dict(self._opened.parts.robot_servers.servers)
        return {name: Address(*s.address) for name, s in servers.items() if s.is_open}

    @property
    def factories(self) -> list[Address]:
        """Addresses of the robot factories, in the given order."""
        return [Address(*s.address) for s in self._opened.parts.robot_servers.factories]

    @property
    def page(self) -> str | None:
        """Address of the page, with its token; None: there is no page."""
        now = self._opened
        return now.run.page().url if now.address("page") is not None else None

    @property
    def metrics(self) -> Address | None:
        """Address of ``/metrics`` and ``/healthz``, with `metrics_port`.

        The page also serves them.
        """
        return self._opened.address("metrics")

    @property
    def ambf(self) -> Address | None:
        """Address at which clients without ROS reach AMBF's objects."""
        return self._opened.address("ambf")

    @property
    def interfaces(self) -> dict[str, Address]:
        """Addresses of the interfaces that are on and have exactly one port, by name."""
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
    """A simulator that runs in a thread of its own; all methods are thread-safe.

    The world belongs to that thread: use `call` and `do` to access it. Reading single
    values (`sim.time`, `robot.truth`) from other threads is harmless, but two values
    may then belong to different steps.

    Attributes
    ----------
    sim : Simulation
        The world.
    """

    def __init__(
        self, sim: Simulation, o: RunOptions, rest: Collection[str] = ()
    ) -> None:
        self.sim = sim
        self._o = o
        self._rest = rest
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

    # -- simulator thread

    def _run(self) -> None:
        try:
            self._status = asyncio.run(self._live())
        except asyncio.CancelledError:
            # `stop` was called before the simulator was ready.
            self._status = 0
        except BaseException as error:
            self.error = error
        finally:
            with self._lock:
                self._now = self._loop = self._main = None
                waiting, self._waiting = self._waiting, set()

            # Callers would otherwise wait for ever for an event loop that no longer
            # runs.
            for future in waiting:
                resolve(
                    future,
                    error=NotNowError("the simulator ended before this call was done"),
                )

            # Set before `_ready`, because `start` asks after `_ready` whether the
            # simulator has already ended.
            self._ended.set()
            self._ready.set()

    async def _live(self) -> int:
        loop = asyncio.get_running_loop()
        watch_over(loop, logging.getLogger("botyard"))
        with self._lock:
            self._loop, self._main = loop, asyncio.current_task()
            # `end` was called before there was a loop to which it could post its
            # request.
            if self._is_stopping:
                return 0

        async with opened(self.sim, self._o, self._rest) as now:
            self._now = now
            self._ready.set()
            status: int = await now.parts.hub.run()

        return status

    # -- life

    def start(self) -> None:
        """Start the thread, and wait until all ports are open.

        Raises
        ------
        BaseException
            Error that prevented the start, such as `PortError`; the thread has ended
            then.
        """
        self._thread.start()
        # A daemon thread would otherwise be cut off in the middle of a write at the
        # program's end.
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
        """Stop the simulator, and wait until everything is closed.

        A call from the simulator's own thread does not wait. The call does not raise
        the simulator's error; `raise_error` does.
        """
        with self._lock:
            self._is_stopping = True
            loop, main, now = self._loop, self._main, self._now
            if loop is not None:
                # A loop that has just ended raises RuntimeError.
                with contextlib.suppress(RuntimeError):
                    if now is not None:
                        loop.call_soon_threadsafe(now.parts.hub.stop)
                    elif main is not None:
                        loop.call_soon_threadsafe(main.cancel)

        if threading.current_thread() is self._thread:
            return
        # The simulator's own thread does not reach this: a thread cannot wait for its
        # own end.
        self._join()
        atexit.unregister(self.end)

    def _join(self) -> None:
        """Wait for the thread of the simulator, and end a controller that does not return.

        The controller then counts as crashed.
        """
        call: Call | None = None
        while self._thread.is_alive():
            before, call = (
                call,
                call_in(sys._current_frames().get(self._thread.ident or 0)),
            )
            # The same frame twice, RETURN_GRACE_S apart: this call hangs. A new frame
            # is progress, and gets its own grace.
            if before is not None and call is not None and call.frame is before.frame:
                end_call(self._thread.ident or 0, call)
            self._thread.join(RETURN_GRACE_S)

    def raise_error(self) -> None:
        """Raise the error that ended the simulator; later calls raise nothing."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """End the simulator, and wait until everything is closed.

        Do nothing if it has ended.

        Raises
        ------
        BaseException
            The simulator ended with an error that was not raised before.
        """
        self.end()
        if threading.current_thread() is not self._thread:
            self.raise_error()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the simulator ends.

        The simulator ends after its duration, or when a client or the page ends it.

        Parameters
        ----------
        timeout : float, optional
            Maximum time to wait, s; None: no limit.

        Returns
        -------
        int or None
            Exit status; None: the simulator still runs after `timeout`.

        Raises
        ------
        BaseException
            The error that ended the simulator.
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
        """Exit status; None while the simulator runs, or if it ended with an error."""
        return self._status

    @property
    def is_running(self) -> bool:
        """Whether the simulator runs."""
        return not self._ended.is_set()

    # -- calls and operations

    def call(self, f: Callable[..., T], /, *args: Any, **keywords: Any) -> T:
        """Call a function in the simulator's thread, between two steps.

        Return its result.

        An exception of the function is raised here.

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
            # The caller gets the exception through the future.
            except BaseException as error:
                resolve(future, error=error)

        return self._result(future, act)

    def _result(self, future: Future[T], act: Callable[[], None]) -> T:
        """Call `act` in the simulator's event loop, and wait for the future's result."""
        with self._lock:
            if self._loop is None:
                raise NotNowError("the simulator has ended")
            try:
                self._loop.call_soon_threadsafe(act)
            # The loop was closed after the check above.
            except RuntimeError:
                raise NotNowError("the simulator has ended") from None

            self._waiting.add(future)

        try:
            return future.result()
        finally:
            with self._lock:
                self._waiting.discard(future)

    def do(self, operation: Operation[Any]) -> Any:
        """Carry out an operation of `botyard.control` as the user.

        Wait for its result.

        Ports of added robots are then open.

        Raises
        ------
        BotyardError
            The operation fails.
        NotNowError
            The simulator has ended. Or the caller is the simulator's own thread, and
            the operation takes several steps of the event loop (`control.do` returns a
            future).
        """
        arguments.instance(operation, "operation", Operation)
        if threading.current_thread() is self._thread:
            result = self.control.do(USER, operation)
            if isinstance(result, Future):
                if not result.done():
                    raise NotNowError(
                        "the operation takes several turns of the event loop, so "
                        "the simulator's own thread cannot wait for it"
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
        """Pause the simulation, and return after a number of steps.

        Parameters
        ----------
        steps : int
            Number of steps, from 1 to `botyard.control.time.MAX_STEPS`.

        Raises
        ------
        ArgumentError
            `steps` is not a whole number in this range.
        """
        self.pause()
        for some in portions_of(steps):
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
    """Resolve a future; for added robots, as soon as their ports are open."""
    if isinstance(result, AddedRobots):
        result.served.add_done_callback(
            lambda served: resolve(
                future, result, None if served.cancelled() else served.exception()
            )
        )
    else:
        resolve(future, result)


__all__ = ["Address", "Opened", "Running", "opened"]
