"""Handle of a simulator that is served in the program's event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from botyard.api import arguments
from botyard.app.running import Opened, RunningInfo, portions_of
from botyard.control import USER, AddedRobots, Operation, Pause, Resume, StepNow
from botyard.sim.simulation import Simulation


class AsyncRunning(RunningInfo):
    """A simulator that runs in the program's event loop.

    No step runs between two `await` expressions, so the world may be read and changed
    there.

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
        """End the run, and wait until the run loop has ended.

        Returns
        -------
        BaseException or None
            Error that ended the run, if `wait` has not raised it before.
        """
        if self._now is not None:
            self._now.parts.hub.stop()
        # `gather` returns exceptions as results, so that the caller decides which of
        # two errors to raise.
        await asyncio.gather(self._task, return_exceptions=True)
        self._now = None
        if self._is_reported or self._task.cancelled():
            return None
        return self._task.exception()

    def stop(self) -> None:
        """Request the end of the simulator.

        Leaving the ``async with`` block closes everything.
        """
        self._opened.parts.hub.stop()

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the simulator ends.

        Parameters
        ----------
        timeout : float, optional
            Maximum time to wait, s; None: no limit.

        Returns
        -------
        int or None
            Exit status; None: the simulator still runs after `timeout`. If it ended with an error,
            that error is raised.
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
        """Exit status; None while the simulator runs, or if it ended with an error."""
        if (
            not self._task.done()
            or self._task.cancelled()
            or self._task.exception() is not None
        ):
            return None

        return self._task.result()

    @property
    def is_running(self) -> bool:
        """Whether the simulator runs."""
        return not self._task.done()

    async def do(self, operation: Operation[Any]) -> Any:
        """Carry out an operation of `botyard.control` as the user.

        Wait for its result.

        Ports of added robots are then open.

        Raises
        ------
        BotyardError
            The operation fails, or the simulator has ended.
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
        await self.pause()
        for some in portions_of(steps):
            await self.do(StepNow(steps=some))


__all__ = ["AsyncRunning"]
