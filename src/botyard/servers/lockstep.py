"""Lockstep: a client controls the simulated time, in any protocol (AMB-008).

Other clients notice lockstep only by the simulated clock. Steps are made immediately,
in the order of the requests, and are counted exactly. Many steps are made in batches,
so that other clients are served in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Final

from botyard.control.error_barrier import ErrorBarrier
from botyard.protocols.ambf.stepping import WATCHDOG, Stepping
from botyard.servers.hub import Hub
from botyard.servers.workclock import uncounted

WATCHDOG_POLL_S: Final = 0.05
"""Poll interval of the watchdogs, s of wall time."""

BATCH_TIME_S: Final = 0.05
"""Maximum duration of a batch of steps, s of wall time.

The event loop runs between batches.
"""
MIN_BATCH_STEPS: Final = 20
"""Minimum number of steps of a batch."""

log = logging.getLogger("botyard.lockstep")


class Lockstep:
    """Lets clients hold and step the simulated time.

    Parameters
    ----------
    hub : Hub
        Run loop of the simulation.
    watchdog : float
        Silence after which a client no longer holds the world, s of wall time; 0: it
        holds the world until it disconnects.
    """

    def __init__(self, hub: Hub, watchdog: float = WATCHDOG) -> None:
        self._hub = hub
        self._watchdog = watchdog
        self._clients: dict[Hashable, Stepping] = {}
        self._task: asyncio.Future[None] | None = None
        self._rest: asyncio.Future[None] | None = None
        self._was_paused = False
        """Whether time was paused before the first hold.

        If it was paused, it stays paused after the last hold ends.
        """
        self.step_listeners: list[Callable[[], None]] = []
        """Functions that are called after steps that a client has requested."""
        self._barrier = ErrorBarrier(log, "notification of steps")
        self.is_busy = False
        """Whether requested steps are being made now."""

    @property
    def is_held(self) -> bool:
        """Whether a client holds the world."""
        return any(s.throttled for s in self._clients.values())

    def command(
        self, client: Hashable, throttle: bool, clock: bool, skips: int
    ) -> None:
        """Process a command of AMBF's step protocol.

        Parameters
        ----------
        client : hashable
            Client that sends the command.
        throttle : bool
            Whether the client holds time.
        clock : bool
            Each change of this value requests steps while time is held.
        skips : int
            Number of steps that a change requests.
        """
        self._apply(client, lambda s, now: s.command(throttle, clock, skips, now))

    def step(self, client: Hashable, count: int) -> None:
        """Pause the simulation, and make a number of steps.

        Parameters
        ----------
        client : hashable
            Client that holds time from now on.
        count : int
            Number of steps, added to the steps that are already pending.
        """

        def act(stepping: Stepping, now: float) -> None:
            stepping.hold(now)
            stepping.grant(count)

        self._apply(client, act)

    def release_hold(self, client: Hashable) -> None:
        """End the hold of a client that has disconnected or lets the world run freely.

        Parameters
        ----------
        client : hashable
            The client; one that holds nothing is ignored. Time runs again when no other
            client holds it.
        """
        stepping = self._clients.pop(client, None)
        if stepping is not None and stepping.throttled:
            self._free()

    def release_all(self) -> None:
        """Release the holds of all clients."""
        for client in tuple(self._clients):
            self.release_hold(client)
        if self._rest is not None:
            self._rest.cancel()

    def close(self) -> None:
        """Stop making steps for clients at the end of the simulation."""
        self._clients.clear()
        for work in (self._task, self._rest):
            if work is not None:
                work.cancel()

    def _apply(self, client: Hashable, act: Callable[[Stepping, float], None]) -> None:
        loop = asyncio.get_running_loop()
        stepping = self._clients.setdefault(client, Stepping(self._watchdog))
        was = self.is_held
        act(stepping, loop.time())
        # Only the first hold pauses time; the last release resumes it.
        if self.is_held and not was:
            self._was_paused = self._hub.is_paused
            self._hub.pause()
            if self._task is None and self._watchdog:
                self._task = asyncio.ensure_future(self._watch())
        elif was and not self.is_held:
            self._free()

        with uncounted():
            is_done = self._rest is not None or self._make_steps()
        if not is_done:
            self._rest = asyncio.ensure_future(self._go_on())

    def _make_steps(self) -> bool:
        """Make requested steps for a limited time; return whether all are made."""
        now = asyncio.get_running_loop().time
        started, steps = now(), 0
        self.is_busy = True
        try:
            for stepping in tuple(self._clients.values()):
                while stepping.throttled and stepping.may_step:
                    if steps >= MIN_BATCH_STEPS and now() - started > BATCH_TIME_S:
                        # Renew the hold: the client waits for its steps, and does not
                        # count as silent.
                        stepping.hold(now())
                        return False

                    self._hub.step_once()
                    stepping.stepped()
                    steps += 1
        finally:
            self.is_busy = False

        if steps:
            for tell in tuple(self.step_listeners):
                self._barrier.run(tell)

        return True

    async def _go_on(self) -> None:
        """Make the remaining requested steps in the background."""
        try:
            while not self._make_steps():
                await asyncio.sleep(0)
        finally:
            self._rest = None

    def _free(self) -> None:
        if not self.is_held and not self._was_paused:
            self._hub.resume()

    async def _watch(self) -> None:
        """Check the watchdogs while a client holds the world."""
        loop = asyncio.get_running_loop()
        while self.is_held:
            await asyncio.sleep(WATCHDOG_POLL_S)
            now = loop.time()
            for stepping in self._clients.values():
                if stepping.tick(now):
                    log.info(
                        "the client that stepped the world was silent for %g s, so "
                        "time no longer waits for it",
                        self._watchdog,
                    )
                    self._free()

        self._task = None


__all__ = ["Lockstep"]
