"""State and Command topics of one AMBF object, on all transports (`Channel`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from botyard.control.error_barrier import ErrorBarrier
from botyard.interfaces.ros.transport import (
    Carrier,
    EncodedMessage,
    Handle,
    Publication,
)
from botyard.protocols.ambf.link import MAX_FRAME
from botyard.protocols.ambf.messages import PACKAGE
from botyard.protocols.ambf.stepping import Pace
from botyard.protocols.ros_messages.graphoffers import Input, Topic
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import Types

NODE: Final = "/ambf_comm_node"
QUEUE: Final = 10

log = logging.getLogger("botyard.ambf")


class Channel:
    """Sender of the states and receiver of the commands of one object.

    Parameters
    ----------
    path : str
        Namespace and name of the object, which precede ``/State`` and ``/Command``.
    state, command : str
        Names of the message types of state and command, without the package.
    make : callable
        Returns the state message.
    take : callable
        Executes a command.
    pace : Pace, optional
        Rate of the states, and watchdog of the commands.
    quick : callable, optional
        Encodes the state in a wire format directly, without a message object.
    wanted : callable
        Called with True when the first subscriber appears, and with False when none is
        left.
    """

    def __init__(
        self,
        path: str,
        state: str,
        command: str,
        make: Callable[[], Any],
        take: Callable[[Any], None],
        *,
        pace: Pace | None = None,
        quick: Callable[[str, Stamp], bytes] | None = None,
        wanted: Callable[[bool], None] = lambda _on: None,
    ) -> None:
        self.path = path
        self.pace = pace or Pace()
        self._take = take
        self._commands = ErrorBarrier(log, f"{path}: executing a command")
        self.states = ErrorBarrier(log, f"{path}: publishing the state")
        self._topic = Topic(
            f"{path}/State",
            f"{PACKAGE}/{state}",
            lambda _stamp: make(),
            f"state of {path}",
            queue=QUEUE,
            quick=quick,
        )
        self._input = Input(
            f"{path}/Command",
            f"{PACKAGE}/{command}",
            self._commanded,
            f"command for {path}",
            MAX_FRAME,
        )
        self._ends: dict[Carrier, tuple[Publication, Handle]] = {}
        self._wanted = wanted
        self._readers: list[Publication] = []

    def _commanded(self, message: Any) -> None:
        self._commands.run(self._take, message)

    def offer(self, transport: Carrier) -> None:
        """Advertise both topics on a transport.

        Parameters
        ----------
        transport : Carrier
            Transport of topics; it must not have these topics yet.
        """
        publication = transport.advertise(
            NODE, self._topic, lambda: None, self._changed
        )
        self._ends[transport] = publication, transport.listen(NODE, self._input)
        self._changed()

    def withdraw(self, transport: Carrier) -> None:
        """Withdraw both topics from a transport.

        Parameters
        ----------
        transport : Carrier
            Transport of topics. A transport that lacks these topics is ignored.
        """
        for end in self._ends.pop(transport, ()):
            end.close()
        self._changed()

    def _changed(self) -> None:
        before = bool(self._readers)
        self._readers = [p for p, _ in self._ends.values() if p.is_wanted]
        # Report only the first subscriber, which turns sensors on, and the loss of the
        # last one, which turns them off.
        if bool(self._readers) != before:
            self._wanted(not before)

    @property
    def is_read(self) -> bool:
        """Whether the state has a subscriber."""
        return bool(self._readers)

    def publish(self, types: Types, stamp: Stamp) -> None:
        """Send the state to the subscribers; without one, no message is made.

        Parameters
        ----------
        types : Types
            Message types.
        stamp : Stamp
            Time for the header of the state.
        """
        if self._readers:
            message = EncodedMessage(types, self._topic, stamp)
            for reader in self._readers:
                reader.send(message)


__all__ = ["NODE", "Channel"]
