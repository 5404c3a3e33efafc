"""Interfaces (protocol servers) of a running simulator, which start and stop by name."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future

from botyard.errors import WorldError
from botyard.interfaces.interface import Switch
from botyard.names import shown
from botyard.servers.jobs.background import Background

log = logging.getLogger("botyard")


class InterfaceSwitches(dict[str, Switch]):
    """Switches of interfaces that can be started and stopped, by name of the interface.

    Parameters
    ----------
    background : Background
        Runs work between the steps.
    """

    def __init__(self, background: Background) -> None:
        super().__init__()
        self._background = background
        self._switching = asyncio.Lock()

    def switch_later(self, name: str, on: bool) -> Future[None]:
        """Start or stop an interface in the background; see `switch`.

        Parameters
        ----------
        name : str
            Name of the interface.
        on : bool
            True starts it.

        Returns
        -------
        Future
            Done when it has started or stopped; fails with the error of `switch`.
        """
        return self._background.future(
            self._switch_and_log(name, on), f"interface {shown(name)}"
        )

    async def _switch_and_log(self, name: str, on: bool) -> None:
        if await self.switch(name, on):
            log.info("interface %s %s", name, "started" if on else "stopped")

    async def switch(self, name: str, on: bool) -> bool:
        """Start or stop an interface. Return False if it already was in that state.

        Parameters
        ----------
        name : str
            Name of the interface.
        on : bool
            True starts it.

        Raises
        ------
        WorldError
            No interface has this name.
        BotyardError
            The interface cannot be started.
        """
        interface = self.get(name)
        if interface is None:
            raise WorldError(
                f'there is no interface "{shown(name)}"; there are: {", ".join(self)}'
            )

        # Opening and closing take several turns of the event loop; the lock keeps a
        # second caller from closing an interface that is half open.
        async with self._switching:
            if interface.on == on:
                return False
            interface.on = on
            try:
                await (interface.start() if on else interface.stop())
            except BaseException:
                interface.on = False
                raise

            return True


__all__ = ["InterfaceSwitches"]
