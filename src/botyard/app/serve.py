"""`botyard.serve`: the services of the command line for programs, tests and notebooks."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import Any, Final

from botyard.api import arguments
from botyard.app.asyncrunning import AsyncRunning
from botyard.app.keywords import options_of, parameters, python_words, signature
from botyard.app.options import RunOptions
from botyard.app.running import Running, opened
from botyard.errors import NotNowError
from botyard.processes.codeload import is_code
from botyard.sim.simulation import Simulation

_warmed: Final = threading.Lock()
_is_warm: set[bool] = set()


def _warm_up(sim: Simulation) -> None:
    """Load or compile the kernels once per process.

    Otherwise, open ports would not answer for the first seconds.
    """
    from botyard.engine.kernels.jit import PACKAGE
    from botyard.native.shipped import is_shipped
    from botyard.worlds.warmup import warm_up

    masses = any(r.spec.dynamics is not None for r in sim.robots.values()) or any(
        b.dynamics is not None for b in sim.scene.boxes
    )
    if is_shipped(PACKAGE, whole=masses):
        return
    # Two servers started at once would otherwise compile the same kernels twice, and
    # both would be slower.
    with _warmed:
        if masses not in _is_warm:
            warm_up(masses=masses)
            # Warming up kernels for bodies with mass also warms up all other kernels.
            _is_warm.update((False, masses))


class Serving:
    """Simulator prepared by `serve`, which can run repeatedly.

    ``with serving as running`` runs it in a thread of its own, ``async with serving as
    running`` in the running event loop, and `run` until it ends.
    """

    def __init__(self, sim: Simulation, o: RunOptions) -> None:
        self.sim = sim
        self._o = o
        self._running: Running | None = None
        self._async: tuple[AsyncRunning, contextlib.AsyncExitStack] | None = None

    def _check_free(self) -> None:
        """Raise NotNowError if this simulator already runs."""
        if self._async is not None or (
            self._running is not None and self._running.is_running
        ):
            raise NotNowError("the simulator is already running")

    def start(self) -> Running:
        """Run the simulator in a thread of its own; return when all ports are open.

        `Running.stop`, or the end of the program, ends it.

        Raises
        ------
        NotNowError
            The simulator already runs.
        BotyardError
            For example, a port is in use or a robot model does not exist; no port is
            then open.
        """
        self._check_free()
        _warm_up(self.sim)
        self._running = Running(self.sim, self._o)
        self._running.start()
        return self._running

    def run(self) -> int:
        """Run the simulator until it ends; return its exit status.

        Ctrl-C counts as a regular end.

        Raises
        ------
        BaseException
            The error that ended the simulator, or prevented its start.
        """
        try:
            with self as running:
                try:
                    return running.wait() or 0
                except KeyboardInterrupt:
                    return 0
        # Ctrl-C was pressed during the start.
        except KeyboardInterrupt:
            return 0

    def __enter__(self) -> Running:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._running is not None
        # `end` does not raise. `stop` would, and hide the error of the block.
        self._running.end()
        if error is None:
            # Without an error in the block, the simulator's own error is raised.
            self._running.raise_error()
        else:
            _note(error, self._running.error)

    async def __aenter__(self) -> AsyncRunning:
        self._check_free()
        _warm_up(self.sim)
        async with contextlib.AsyncExitStack() as stack:
            now = await stack.enter_async_context(opened(self.sim, self._o))
            running = AsyncRunning(self.sim, now)
            # Moving the callbacks keeps the ports open after this block, and closes
            # them if the start fails.
            self._async = running, stack.pop_all()

        return running

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._async is not None
        (running, stack), self._async = self._async, None
        # The ports close even if waiting for the run is cancelled.
        async with stack:
            own = await running.close()
        if own is not None and error is None:
            raise own
        if error is not None:
            _note(error, own)


def _note(error: BaseException, other: BaseException | None) -> None:
    """Add a note to an error: the simulator itself has ended with another error."""
    if other is not None and other is not error:
        error.add_note(f"the simulator had ended with {type(other).__name__}: {other}")


def serve(sim: Simulation, **options: Any) -> Serving:
    """Serve a simulation like the command line: Pioneer clients, the page, ROS, AMBF.
    ::

        with botyard.serve(sim, port=0) as running:  # in a thread of its own
            client = PioneerClient(*running.ports["bob"])

        async with botyard.serve(sim, port=0) as running:  # in the running event loop
            await running.step(10)

        botyard.serve(sim).run()  # until it ends, or Ctrl-C

    All ports are open when the block starts. When it ends, everything is closed, and an
    error of the simulator is raised. Robots that the world already contains are served.
    Time advances in real time: inside the block, only the simulator steps the world.
    Logging and signal handlers are not set up; the page and ROS read the log of
    ``botyard`` while they are served. Several simulators may run at once: give them
    `port=0`, which takes free ports.

    Parameters
    ----------
    sim : Simulation
        The world.
    """
    # Everything is checked before `Serving` is returned, so that the error points to
    # this call and not to a later `with`.
    arguments.instance(sim, "sim", Simulation, "such as botyard.Simulation.load(map)")
    o = options_of(options)
    with python_words():
        from botyard.app.checks import check_options

        check_options(o)
        if o.controller is not None and is_code(o.controller):
            from botyard.controllers.registry import register

            register(o.controller)

    return Serving(sim, o)


serve.__doc__ = (
    (serve.__doc__ or "").rstrip()
    + "\n"
    + parameters()
    + """
    Returns
    -------
    Serving
        Enter it as a context, or call `run`.

    Raises
    ------
    ArgumentError
        A keyword is unknown, its value is not valid, or an extra that it needs is not installed.
    """
)
serve.__signature__ = signature()  # type: ignore[attr-defined]


__all__ = ["Serving", "serve"]
