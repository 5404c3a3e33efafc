"""Run loop: steps the simulation at its rate, and notifies listeners of each snapshot.

Only this module paces steps. Deadlines count from one origin, so the period is exact on
average. After a late step, steps follow without a pause until the loop has caught up. A
lag above half a second moves the origin instead, and lowers the real-time ratio.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from botyard.api.revisions import Subject
from botyard.control import later
from botyard.control.census import Census
from botyard.control.error_barrier import ErrorBarrier
from botyard.control.parts import Listener
from botyard.errors import NotNowError
from botyard.interfaces.pioneer.reporting import Reporter
from botyard.model.robotstate import Timing
from botyard.servers.jobs.background import Background
from botyard.servers.pioneer.bulksockets import bulk_sockets
from botyard.servers.pioneer.intake import Intake
from botyard.servers.timeshare import TimeShare
from botyard.servers.wakingloop import WakingLoop
from botyard.servers.workclock import passed, uncounted
from botyard.sim.simulation import Simulation

MAX_LAG: Final = 0.5
"""Maximum lag to catch up, s of wall time; a larger one counts as an overrun."""
RATIO_WINDOW: Final = 5.0
"""Averaging window of the real-time ratio, s of wall time."""

BATCH_TIME_S: Final = 0.05
"""Maximum duration of a batch of requested steps, s of wall time.

The event loop runs between batches.
"""
MIN_BATCH_STEPS: Final = 20
"""Minimum number of steps of a batch."""
MAX_STEP_REQUESTS: Final = 100
"""Maximum number of concurrent requests for steps; they take turns."""
SETTLE_INTERVAL_S: Final = 0.05
"""Interval at which queued commands take effect while paused, s of wall time."""
LOOK_INTERVAL_S: Final = 0.1
"""Longest time between two checks of timers and of `Hub.looks`, s of wall time."""
POLL_INTERVAL_S: Final = 0.02
"""Shortest time between two checks of timers and of `Hub.looks`, s of wall time."""
MAX_LATE_S: Final = 1.5
"""Longest time by which steps are put off while no listener follows the world, s of wall time."""
LATE_STEPS_TIME_S: Final = 0.005
"""Longest time to make steps that were put off, s of wall time; a new client waits for them."""
INPUT_SHARE: Final = 0.2
"""Share of wall time for the input of clients that have used up their own time budgets."""
INPUT_TIME_S: Final = 0.01
"""Longest processing of clients' input in one iteration of the event loop, s of wall time."""
OVERRUN_LOG_INTERVAL_S: Final = 30.0
"""Minimum time between two warnings about overruns, s of wall time."""

log = logging.getLogger("botyard.hub")


class Hub:
    """Run loop of a simulation.

    Parameters
    ----------
    sim : Simulation
        The world.
    interval : float or None
        Wall time between two steps at speed 1, s; None: as fast as possible.
    duration : float, optional
        Simulated time after which to end, s.
    """

    def __init__(
        self,
        sim: Simulation,
        *,
        interval: float | None = 0.1,
        duration: float | None = None,
    ) -> None:
        self.sim = sim
        self.duration = duration
        self.exit_status = 0
        self.is_crash = False
        self.overruns = 0
        self.step_time = 0.0
        """Wall time that a step takes, s (moving average)."""
        self.speed = 0.0 if interval is None else 1.0
        self._interval = sim.dt if interval is None else interval
        self._next_warning = 0.0
        bulk = bulk_sockets()
        self.reporter = Reporter(None if bulk is None else bulk.send)
        self.intake = Intake(self.reporter, bulk, lambda: self._paused)
        """Reader of the sockets of many Pioneer clients."""
        self._listeners: list[tuple[Listener, ErrorBarrier]] = []
        self._watchers: list[tuple[Callable[[], None], ErrorBarrier]] = []
        self._followers: list[
            tuple[Callable[[], None], tuple[Subject, ...], ErrorBarrier]
        ] = []
        self._revision = sim.core.feed.revision
        self._stop = asyncio.Event()
        self._wake = asyncio.Event()
        self._paused = False
        self._allowed = 0
        self._stepping = 0
        self._cancellations = 0
        """Number of calls of `cancel_steps`."""
        self._turn = asyncio.Lock()
        self._restarted = False
        self.turns = TimeShare(INPUT_SHARE, passed, INPUT_TIME_S)
        """Scheduler of the input of clients.

        It measures wall time: on a busy machine, work of little CPU time may block the
        event loop for long.
        """
        self.dropped_frames = 0
        """Number of frames that viewers of the page missed.

        A viewer misses a frame if it has not received the previous one yet, or requests a lower
        rate.
        """
        self.dropped_reports = 0
        """Number of reports that were dropped because their clients did not read."""
        self.census = Census()
        self.background = Background()
        """Tasks that run in the event loop besides the steps."""
        # The measurement of the ratio restarts when simulated time jumps.
        self._marks: deque[tuple[float, float]] = deque()
        self.follow(self._marks.clear, Subject.TIME)
        self.looks: list[Callable[[], bool]] = []
        """Functions called at least every `LOOK_INTERVAL_S` of wall time, even while paused.

        Each function returns whether it needs the next call within this interval.
        """
        self._needs_looks = False
        self._next_look = 0.0
        self._looks = ErrorBarrier(log, "polling sessions")
        self._inputs = ErrorBarrier(log, "reading clients before a step")
        self.attach(self.reporter)

    def attach(self, listener: Listener) -> None:
        """Notify `listener` of each step from now on.

        Parameters
        ----------
        listener : Listener
            Its `on_snapshot` is called after each step, in the event loop's thread. Its
            errors are logged and do not stop the loop.
        """
        self._listeners.append(
            (
                listener,
                ErrorBarrier(log, f"{type(listener).__name__}: notification of a step"),
            )
        )

    def detach(self, listener: Listener) -> None:
        """Unregister a listener."""
        self._listeners = [
            entry for entry in self._listeners if entry[0] is not listener
        ]

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when the state has changed: after a step, or while paused."""
        self._watchers.append((changed, ErrorBarrier(log, "notification of a change")))

    def follow(self, act: Callable[[], None], *subjects: Subject) -> Callable[[], None]:
        """Call `act` when one of these subjects has changed, once for several changes.

        `act` runs before listeners are notified of a step, and also while time is
        paused.

        Returns
        -------
        callable
            Unregisters `act`.
        """
        entry = act, subjects, ErrorBarrier(log, "handling changes")
        self._followers.append(entry)

        def unregister() -> None:
            if entry in self._followers:
                self._followers.remove(entry)

        return unregister

    def _deliver(self) -> bool:
        """Notify followers of new changes; return whether there were any."""
        feed = self.sim.core.feed
        if feed.revision == self._revision:
            return False
        before, self._revision = self._revision, feed.revision
        for act, subjects, barrier in tuple(self._followers):
            if feed.last(*subjects) > before:
                barrier.run(act)

        return True

    def unwatch(self, changed: Callable[[], None]) -> None:
        """Unregister a callback of `watch`."""
        self._watchers = [entry for entry in self._watchers if entry[0] != changed]

    def stop(self, status: int = 0, crash: bool = False) -> None:
        """Make `run` return soon, as at a normal end or as after a crash.

        Parameters
        ----------
        status : int
            Exit status. The first call determines it.
        crash : bool
            Whether the run counts as crashed.
        """
        if not self._stop.is_set():
            self.exit_status, self.is_crash = status, crash
            self._stop.set()
            self._wake.set()

    # -- time

    @property
    def interval(self) -> float | None:
        """Wall time between two steps, s; None: as fast as possible."""
        return self._interval / self.speed if self.speed else None

    @property
    def is_paused(self) -> bool:
        """Whether simulated time is paused."""
        return self._paused

    def pause(self) -> None:
        """Pause simulated time; changes by clients still take effect."""
        self._paused, self._allowed = True, 0
        self._wake.set()
        self.sim.core.feed.record_change(Subject.PACE)
        self._tell_watchers()

    def resume(self) -> None:
        """Resume simulated time."""
        self._paused = False
        self._restart()

    def step_and_pause(self, count: int = 1) -> None:
        """Run a number of steps at the normal rate, then pause simulated time."""
        self._paused, self._allowed = True, self._allowed + count
        self._restart()

    def set_speed(self, factor: float) -> None:
        """Set the ratio of simulated to wall time; 0: as fast as possible.

        Parameters
        ----------
        factor : float
            Simulated time per wall time; 2 is twice as fast as real time.
        """
        self.speed = factor
        self._restart()

    def settle(self) -> None:
        """While paused, apply queued placements and sensor requests now."""
        if self._paused and not self._allowed:
            self.sim.settle()
            self._deliver()
            self._tell_watchers()

    def _restart(self) -> None:
        """Count the deadlines of steps from now on, after a change of the rate."""
        self.sim.core.feed.record_change(Subject.PACE)
        self._restarted = True
        self._marks.clear()
        self._wake.set()

    @property
    def ratio(self) -> float:
        """Simulated time per wall time over the last seconds; 1 is real time."""
        if len(self._marks) < 2:
            return self.speed or 1.0
        (wall0, sim0), (wall1, sim1) = self._marks[0], self._marks[-1]
        return (sim1 - sim0) / (wall1 - wall0) if wall1 > wall0 else 1.0

    async def run(self) -> int:
        """Step until `stop` is called or the duration is over; return the exit status."""
        loop = asyncio.get_running_loop()
        origin, steps, last = loop.time(), 0, loop.time()
        self._next_look = origin + POLL_INTERVAL_S
        while not self._stop.is_set():
            if self._paused and not self._allowed:
                await self._stand_still()
                continue

            if self._restarted:
                self._restarted, origin, steps = False, loop.time(), 0
            interval = self.interval
            if interval is None:
                await self._serve_others()
            else:
                due = origin + steps * interval
                lag = loop.time() - due
                if lag < 0.0:
                    late = await self._rest(origin, steps, interval)
                    if late is not None:
                        steps += late
                        last = max(last, origin + (steps - 1) * interval)
                        continue
                    if await self._interrupted_until(due):
                        continue
                else:
                    if lag > max(MAX_LAG, 2 * interval):
                        self._admit_lag(lag)
                        origin, steps = loop.time(), 0

                    # Serve clients even if the steps leave no spare time.
                    await self._serve_others()

            if self._stop.is_set() or (self._paused and not self._allowed):
                continue
            started = loop.time()
            self.sim.core.timing = Timing(
                self.sim.dt, interval or self.sim.dt, started - last
            )
            last = started
            steps += 1
            self._allowed = max(0, self._allowed - 1)
            self._inputs.run(self.intake.read_before_step)
            self.step_once()
            self.step_time += 0.1 * (loop.time() - started - self.step_time)
            if not self._steps_left():
                self.stop()

        return self.exit_status

    def _steps_left(self) -> float:
        """Return the number of steps until the end of the run."""
        if self.duration is None:
            return math.inf
        # The tolerance absorbs rounding, for example of 0.1 s steps up to 1 s.
        left = self.duration - 1e-9 - self.sim.time
        return max(0.0, math.ceil(left / self.sim.dt))

    @property
    def is_watched(self) -> bool:
        """Whether steps must be made on time because at least one listener follows them."""
        sim = self.sim
        return bool(
            # Not every listener has `is_idle`.
            any(not getattr(one, "is_idle", False) for one, _ in self._listeners)
            or self._watchers
            or self._needs_looks
            or sim.core.programs.acts
            or sim._is_observed
        )

    async def _rest(self, origin: float, steps: int, interval: float) -> int | None:
        """Sleep for the time of several steps if no listener follows the world.

        The steps are made when the event loop wakes up, before it handles anything, so
        that no client, request or signal finds them missing.

        Returns
        -------
        int or None
            Number of steps made; None: the world is watched, or its steps take too
            long.
        """
        loop = asyncio.get_running_loop()
        if not isinstance(loop, WakingLoop) or self.is_watched:
            return None
        self._look(loop.time())
        count = min(
            MAX_LATE_S / interval,
            LATE_STEPS_TIME_S / max(self.step_time, 1e-9),
            self._steps_left(),
        )
        if count < 2.0 or self.is_watched:
            return None
        until = origin + (steps + int(count) - 1) * interval
        made, failure, woken = 0, None, False

        def catch_up() -> None:
            nonlocal made, failure, woken
            # A handler may have paused or ended the run since this task slept.
            if self._paused or self._stop.is_set():
                return
            now = loop.time()
            # After a wake-up that is more than `MAX_LAG` late, make only the planned steps. `run`
            # then counts the remaining lag as an overrun.
            now = until if now > until + MAX_LAG else now
            due = math.floor((now - origin) / interval + 1e-6) + 1 - steps - made
            # However late the wake-up is, make at most the planned number of steps in total.
            due = min(due, int(count) - made)
            if due > 0 and failure is None:
                try:
                    self._step_late(due, origin + (steps + made + due - 1) * interval)
                except BaseException as error:
                    failure = error
                made += due
            # Wake this task after the handlers of this iteration: one of them may start to watch
            # the world. Wake it only once: a second wake-up would remain set and end the next sleep
            # at once.
            if not woken:
                woken = True
                loop.call_soon(self._wake.set)

        loop.on_wake = catch_up
        try:
            await self._sleep(until)
        finally:
            loop.on_wake = None
        if failure is not None:
            raise failure
        if not self._steps_left():
            self.stop()
        return made

    def _step_late(self, count: int, due: float) -> None:
        """Make several steps at once that are due already; the last one was due at `due`."""
        clock, dt = asyncio.get_running_loop().time, self.sim.dt
        started, interval = clock(), self.interval or dt
        self.sim.core.timing = Timing(dt, interval, interval)
        # Changes since the last wake-up belong to the time before these steps.
        self._deliver()
        self.sim.step(count)
        self._deliver()
        self._mark(due)
        self.step_time += 0.1 * ((clock() - started) / count - self.step_time)

    async def _serve_others(self) -> None:
        await asyncio.sleep(0)
        now = asyncio.get_running_loop().time()
        if now >= self._next_look:
            self._look(now)

    async def _stand_still(self) -> None:
        """While paused, apply queued changes until time resumes."""
        now = asyncio.get_running_loop().time()
        self._look(now)
        await self._sleep(min(now + SETTLE_INTERVAL_S, self._next_look))
        if self.sim.core.is_pending:
            self.settle()

    def _look(self, now: float) -> None:
        """Handle events that depend on wall time, in sessions and functions of `looks`."""
        self._looks.run(self.reporter.poll, now)
        if self._deliver() and self._paused and not self._allowed:
            self._tell_watchers()
        self._needs_looks = any(
            [self._looks.call(look, otherwise=True) for look in self.looks]
        )
        self._next_look, wake = now + LOOK_INTERVAL_S, self.reporter.wake
        # A timer due within `POLL_INTERVAL_S` waits for the next regular check.
        if wake > now + POLL_INTERVAL_S:
            self._next_look = min(self._next_look, wake)

    async def _sleep(self, until: float) -> None:
        """Wait until a time, or until `_wake` is set."""
        # This is cheaper than `asyncio.timeout_at`.
        timer = asyncio.get_running_loop().call_at(until, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
        self._wake.clear()

    def _tell_watchers(self) -> None:
        for changed, barrier in self._watchers:
            barrier.run(changed)

    def _admit_lag(self, lag: float) -> None:
        """Count an overrun, and log it at limited rate."""
        self.overruns += 1
        now = asyncio.get_running_loop().time()
        if now >= self._next_warning:
            self._next_warning = now + OVERRUN_LOG_INTERVAL_S
            log.warning(
                "the simulation is %.1f s behind schedule: steps take longer than "
                "their interval of %g s (real-time ratio %.2f)",
                lag,
                self.interval or 0.0,
                self.ratio,
            )

    async def _interrupted_until(self, due: float) -> bool:
        """Sleep until `due`; return True if the run ends or pauses or the rate changes first."""
        loop = asyncio.get_running_loop()
        while not (
            self._stop.is_set()
            or self._restarted
            or (self._paused and not self._allowed)
        ):
            now = loop.time()
            if now >= due:
                return False
            # Call `_look` now, right after a step, rather than wake up for it before the next step.
            is_last_chance = self._next_look < due <= now + LOOK_INTERVAL_S
            if is_last_chance or now > self._next_look - POLL_INTERVAL_S:
                self._look(now)
            is_soon = self._next_look > due - POLL_INTERVAL_S
            await self._sleep(due if is_soon else self._next_look)

        return True

    def step_now(
        self, count: int, progress: Callable[[int], bool] | None = None
    ) -> Future[None]:
        """Make a number of steps now, while time is paused; see `Clock.step_now`.

        The steps are made in portions, so that clients are served in between.

        Parameters
        ----------
        count : int
            Number of steps.
        progress : callable, optional
            Receives the number of remaining steps after each step, and returns whether
            to continue.

        Returns
        -------
        Future
            Done when the last step is made.

        Raises
        ------
        NotNowError
            `MAX_STEP_REQUESTS` requests are in progress already.
        """
        if self._stepping >= MAX_STEP_REQUESTS:
            raise NotNowError(
                f"{self._stepping} requests for steps are already in progress"
            )

        # While other requests are in progress, this one waits for its turn, because
        # each portion blocks the event loop.
        left = count if self._stepping else self._some_steps(count, progress)
        if not left:
            return later.resolved(None)
        self._stepping += 1
        done = self.background.future(
            self._other_steps(left, progress, self._cancellations), "extra steps"
        )
        done.add_done_callback(self._stepped)
        return done

    def cancel_steps(self) -> None:
        """Cancel all requests for steps; see `Clock.cancel_steps`."""
        self._cancellations += 1

    def _stepped(self, _done: Future[None]) -> None:
        self._stepping -= 1

    def _some_steps(self, count: int, progress: Callable[[int], bool] | None) -> int:
        """Make requested steps for a limited time; return the number of remaining ones."""
        clock = asyncio.get_running_loop().time
        end, made = clock() + BATCH_TIME_S, 0
        # The time of steps is not charged to the input budget of the client that requested them.
        with uncounted():
            while made < count and (made < MIN_BATCH_STEPS or clock() < end):
                self.step_once()
                made += 1
                if progress is not None and not progress(count - made):
                    return 0

        return count - made

    async def _other_steps(
        self, left: int, progress: Callable[[int], bool] | None, cancellations: int
    ) -> None:
        while left:
            async with self._turn:
                await asyncio.sleep(0)
                # A cancellation during the wait for the turn also applies to this
                # request.
                if self._cancellations != cancellations:
                    raise NotNowError(
                        f"the steps were cancelled; {left} steps were not made"
                    )

                if not self._paused:
                    raise NotNowError(
                        f"time was resumed meanwhile; {left} steps were not made"
                    )

                left = self._some_steps(left, progress)

    def step_once(self) -> None:
        """Make one step, and notify all listeners."""
        self.sim.step()
        self._deliver()
        now = asyncio.get_running_loop().time()
        self._mark(now)
        for listener, barrier in tuple(self._listeners):
            barrier.run(listener.on_snapshot, now)
        self._tell_watchers()

    def _mark(self, now: float) -> None:
        """Store the wall time and simulated time of a step, for the real-time ratio."""
        if not self._marks or now - self._marks[-1][0] >= RATIO_WINDOW / 50:
            self._marks.append((now, self.sim.time))
            while self._marks[-1][0] - self._marks[0][0] > RATIO_WINDOW:
                self._marks.popleft()
