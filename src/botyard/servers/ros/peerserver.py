"""`PeerServer`: a listening port of ROS 1 and the connections to it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

from botyard.errors import PortError
from botyard.interfaces.http_admission import Pool
from botyard.servers.sockets import listening, reason_of
from botyard.servers.streampeer import StreamPeer
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare

log = logging.getLogger("botyard.ros")


class HoldingPeer(StreamPeer):
    """Peer whose incomplete messages count towards the limit of its server.

    Attributes
    ----------
    message : str
        Kind of the messages that the peer sends, for the log.
    """

    message: ClassVar[str]

    def __init__(self, server: PeerServer[Any], what: str) -> None:
        super().__init__(server.turns, log, what)
        self._holder = server
        self.holds = 0
        """Number of bytes that the server holds for this peer."""

    def hold(self, held: int) -> None:
        """Set the number of bytes that are held for this peer.

        Parameters
        ----------
        held : int
            Bytes of its incomplete message, from 0. The server may drop this peer or
            another peer during the call.
        """
        more, self.holds = held - self.holds, held
        self._holder.hold(more)

    def give_up(self) -> None:
        """Drop the connection, because it holds too much of the shared buffer."""
        self._holder.throttled_log.log(
            logging.WARNING,
            "ROS 1: dropped a %s of %s: all %ss in progress exceed their limit of "
            "%d bytes, mostly because of this peer",
            self.message,
            self.source,
            self.message,
            self._holder.max_held,
        )
        self.drop()


P = TypeVar("P", bound=HoldingPeer)


class PeerServer(ABC, Generic[P]):
    """Listening port with its connections.

    Parameters
    ----------
    host, port : str, int
        Address to listen on; port 0: a free one.
    service : str
        Name of the service, for errors.
    turns : TimeShare
        Share of time for the peers.
    pools : Pool
        Limited sets that together hold all connections.

    Raises
    ------
    PortError
        The address does not belong to this machine, or the port is taken.
    """

    def __init__(
        self, host: str, port: int, service: str, turns: TimeShare, *pools: Pool[P]
    ) -> None:
        try:
            self._socket = listening(host, [port], service)
        except OSError as error:
            raise PortError(
                f"cannot listen on {host}:{port} for {service}: {reason_of(error, port)}"
            ) from None

        self.port: int = self._socket.getsockname()[1]
        self.turns = turns
        self.throttled_log = ThrottledLog(log)
        self.held = 0
        """Number of bytes of incomplete messages of all peers."""
        self._pools = pools
        self._server: asyncio.Server | None = None

    @property
    @abstractmethod
    def max_held(self) -> int:
        """Maximum of `held`, bytes."""

    @abstractmethod
    def accepted(self) -> P:
        """Return an asyncio protocol for a new connection."""

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.accepted, sock=self._socket)

    def close(self) -> None:
        """Stop accepting connections, and close the open ones.

        Peers have `CLOSE_TIMEOUT_S` to read the last data.
        """
        (self._server or self._socket).close()
        for one in tuple(self):
            one.finish()

    def __len__(self) -> int:
        return sum(map(len, self._pools))

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[P]:
        return itertools.chain(*self._pools)

    def hold(self, more: int) -> None:
        """Count held bytes; drop the largest holder if there are too many.

        The largest holder is the connection with the most bytes, of the address with
        the most bytes: one peer can spread its bytes over many connections.

        Parameters
        ----------
        more : int
            Number of further bytes; negative if bytes were released.
        """
        self.held += more
        # The sum over all connections below costs time, so it runs only above the
        # limit.
        if more <= 0 or self.held <= self.max_held:
            return
        held: Counter[str] = Counter()
        for one in self:
            held[one.source] += one.holds
        most = max(held, key=held.__getitem__)
        max((p for p in self if p.source == most), key=lambda p: p.holds).give_up()


__all__ = ["HoldingPeer", "PeerServer"]
