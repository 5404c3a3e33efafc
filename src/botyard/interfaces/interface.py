"""Declaration of an interface to other programs (`Interface`).

An `Interface` declares its options, its dependencies, the sans-I/O session of each
client, and the transport of `botyard.servers` that carries the session. A running
interface is a `Switch`, which can be turned on and off while the simulator runs.
`botyard.interfaces.registry` finds interfaces by name.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeVar

from botyard.control import Caller, Control, Level, Operation
from botyard.errors import CommandLineError, WorldError, did_you_mean
from botyard.extras import lacking, missing
from botyard.names import shown
from botyard.sim.simulation import Simulation

T = TypeVar("T")

log = logging.getLogger("botyard.interfaces")


def _nothing() -> None:
    """Do nothing: the default of `Door.wake`."""


class Carrier(Enum):
    """Kinds of transport that carry the sessions of an interface."""

    TCP = "tcp"
    """TCP: byte stream of each client, with one `Session` for each."""
    UDP = "udp"
    """UDP: datagrams, with one `Datagrams` handler for all clients."""
    WEBSOCKET = "websocket"
    """WebSocket: messages, with one `Session` for each client.

    Each call of `data_to_send` returns one message.
    """
    HTTP = "http"
    """HTTP requests, with one `Requests` handler for all clients."""
    OWN = "own"
    """Servers of the interface's own (`Interface.server`), for other transports."""


class Session(Protocol):
    """Session of one client, which performs no input or output itself.

    It holds no socket, clock or thread, and raises no exception for any input. The
    argument `now` is the wall time, s.
    """

    @property
    def is_closed(self) -> bool:
        """Whether the session is over.

        The server then flushes the output and closes the connection.
        """
        ...

    def receive_data(self, data: bytes, now: float) -> None:
        """Process received bytes: chunks of any size, or one WebSocket message.

        Parameters
        ----------
        data : bytes
            Part of the stream, which may be split anywhere; or one whole message.
        now : float
            Wall time, s.
        """
        ...

    def data_to_send(self) -> bytes | str:
        """Return the next output to send, and remove it; empty without output.

        Over TCP the output is bytes. Over WebSocket it is the next message, as bytes or
        as text.
        """
        ...

    def next_timer(self) -> float | None:
        """Return the time at which `handle_timer` must be called, s; None for never."""
        ...

    def handle_timer(self, now: float) -> None:
        """Handle the timer; called at the time that `next_timer` returned."""
        ...

    def on_snapshot(self, now: float) -> None:
        """Handle the end of a step of the simulation.

        The method is not called while the client is slow to read its output (back-pressure).
        """
        ...

    def close(self) -> None:
        """Release everything that the session holds, because its connection has ended."""
        ...


class Datagrams(Protocol):
    """Handler of datagrams from any client."""

    def receive_datagram(self, data: bytes, source: str, now: float) -> Iterable[bytes]:
        """Process a datagram from an address and return the answers.

        Parameters
        ----------
        data : bytes
            The datagram, from any sender.
        source : str
            IP address of the sender, which may be forged.
        now : float
            Wall time, s.

        Returns
        -------
        iterable of bytes
            Datagrams to send back to the sender; empty for none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request.

    Attributes
    ----------
    method, path : str
        For example ``GET`` and ``/robots``.
    query : mapping of str to str
        Query parameters; of repeated names the last value.
    body : bytes
        Content of the request.
    """

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Attributes
    ----------
    status : int
        Status code.
    body : bytes
        Content.
    content_type : str
        Media type of the content.
    """

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class Requests(Protocol):
    """Handler of HTTP requests from any client."""

    def answer(self, request: Request, now: float) -> Response:
        """Return the response to a request.

        Parameters
        ----------
        request : Request
            The request, complete with its body.
        now : float
            Wall time, s.
        """
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """Access of a session to the simulator.

    A session reads `sim`, and changes it only through `do`.

    Attributes
    ----------
    control : Control
        The control surface.
    caller : Caller
        The client, as a caller of operations.
    options : mapping of str to object
        All options of the interface, with defaults filled in.
    wake : callable
        Requests a call of `data_to_send` soon. A session calls it when output appears
        without input or a step, for example when a future gets its result.
    warn : callable
        Logs a warning at a limited rate, so that no client can flood the log.
    source : str
        Address of the client. Memory that the client makes the simulator use counts
        towards the limit of this address.
    """

    control: Control
    caller: Caller
    options: Mapping[str, Any]
    wake: Callable[[], None] = _nothing
    warn: Callable[[str], None] = log.warning
    source: str = ""

    @property
    def sim(self) -> Simulation:
        """Simulation, which the session must only read."""
        return self.control.sim

    def do(self, operation: Operation[T]) -> T:
        """Carry out an operation for the client; see `Control.do`.

        Parameters
        ----------
        operation : Operation
            The operation; the client is its caller.

        Returns
        -------
        object
            Result of the operation; a future if it is slow.

        Raises
        ------
        DeniedError
            The client has no permission.
        BotyardError
            The operation failed.
        """
        return self.control.do(self.caller, operation)


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of an option of an interface.

    Attributes
    ----------
    name : str
        Small letters, digits and underscores.
    type : type
        `bool`, `int`, `float` or `str`.
    default : object
        Default value.
    help : str
        Description, with the unit.
    low, high : float
        Lowest and highest allowed value of a number.
    words : tuple of str
        Allowed values of a text; empty if any text is allowed.
    """

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: Any
    help: str
    low: float = -math.inf
    high: float = math.inf
    words: tuple[str, ...] = ()

    def of(self, value: object, where: str) -> Any:
        """Return the value of the option, checked, or converted from text.

        Parameters
        ----------
        value : object
            Value of a program, or text of the command line.
        where : str
            Description of where the value is from, for the error, such as ``interface
            ros2``.

        Raises
        ------
        CommandLineError
            The value is invalid.
        """
        found = self._read(value) if isinstance(value, str) else value
        # Files and Python callers may write 1 for 1.0. `type` instead of `isinstance`
        # excludes bool, a subclass of int.
        if self.type is float and type(found) is int:
            found = float(found)
        is_right = type(found) is self.type
        if is_right and isinstance(found, (int, float)) and self.type is not bool:
            # The comparison is false for NaN, so NaN is refused.
            is_right = self.low <= found <= self.high

        if not is_right or (self.words and found not in self.words):
            raise CommandLineError(
                f"{where}: {self.name}: expected {self.expected}, found {shown(repr(value))}"
            )

        return found

    def _read(self, text: str) -> object:
        if self.type is bool:
            return {
                "true": True,
                "yes": True,
                "on": True,
                "1": True,
                "false": False,
                "no": False,
                "off": False,
                "0": False,
            }.get(text.lower())

        try:
            return self.type(text)
        except ValueError:
            return None

    @property
    def expected(self) -> str:
        """Description of the option's allowed values, for messages."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        what = {
            bool: "yes or no",
            int: "a whole number",
            float: "a number",
            str: "a text",
        }[self.type]
        bounds = [f"from {self.low:g}"] if self.low > -math.inf else []
        bounds += [f"to {self.high:g}"] if self.high < math.inf else []
        return " ".join([what, *bounds])


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """Declaration of an interface.

    Attributes
    ----------
    name : str
        Name of lower-case letters, digits and underscores. It is also the source of the
        interface's commands in the journal.
    about : str
        Description, one line.
    carrier : Carrier
        Kind of transport.
    session : callable, optional
        Factory ``(Door) -> Session`` of one client's session, or of the one `Datagrams`
        or `Requests` handler.
    server : callable, optional
        Factory ``(botyard.app.served.Run, Interface) -> Switch`` for botyard's own
        interfaces that need their own server, or more than a `Door`.
    command : str
        Command that runs the interface, if it is not part of a running simulator.
    port : int
        Default of the option ``port``; 0 chooses any free port, which the log names.
    is_port_fixed : bool
        Whether the protocol fixes the port: there is then no option ``port``.
    options : tuple of Option
        Options in addition to ``port``.
    level : Level
        Permission level of its clients; ``--read-only`` limits it further.
    clients : int
        Limit of simultaneous connections; one address can have at most half of this
        number.
    rate : float
        UDP: rate limit of the datagrams of one address, 1/s; further datagrams are
        dropped.
    is_broadcast : bool
        UDP: listen on all addresses and share the port (SO_REUSEADDR), to receive
        broadcasts.
    byte_rate : float
        TCP: sustained rate at which the bytes of one client are processed without
        delay, bytes/s. Further bytes are queued; the queues of all clients share a
        budget of time.
    work_share : float
        TCP: share of the wall time that processing of queued bytes may take, 0 to 1.
    text : bool
        WebSocket: send bytes as UTF-8 text instead of binary messages.
    extras : tuple of str
        Extras of botyard that must be installed.
    modules : tuple of str
        Further modules that must be installed.
    install : str
        Command that installs these modules.
    """

    name: str
    about: str
    carrier: Carrier
    session: Callable[[Door], Any] | None = None
    server: Callable[[Any, Interface], Switch] | None = None
    command: str = ""
    port: int = 0
    is_port_fixed: bool = False
    options: tuple[Option, ...] = ()
    level: Level = Level.CHANGE
    clients: int = 64
    rate: float = 50.0
    is_broadcast: bool = False
    byte_rate: float = 4096.0
    work_share: float = 0.01
    text: bool = False
    extras: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    install: str = ""
    _known: Mapping[str, Option] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Validate the declaration.

        Raises
        ------
        WorldError
            A name is invalid or appears twice, or the carrier needs a session and there
            is none.
        """
        port = Option(
            "port", int, self.port, "port to listen on; 0: any free port", 0, 65535
        )

        # An interface with its own server reads the port from its own options, because
        # it may have several sockets.
        has_port = (
            self.carrier is not Carrier.OWN
            and not self.is_port_fixed
            and self.server is None
        )
        offered = (*((port,) if has_port else ()), *self.options)
        names = [o.name for o in offered]

        for name in (self.name, *names):
            if not (name.isidentifier() and name.isascii() and name == name.lower()):
                raise WorldError(
                    "interface: expected a name of small letters, digits and _, "
                    f"found {shown(repr(name))}"
                )

        # A second option of the same name would be unreachable.
        if len(set(names)) < len(names):
            raise WorldError(
                f"interface {self.name}: two options have the same name: {', '.join(sorted(names))}"
            )

        if (
            self.carrier is not Carrier.OWN
            and self.session is None
            and self.server is None
        ):
            raise WorldError(
                f"interface {self.name}: expected a session, because the carrier "
                f"{self.carrier.name} needs one; found none"
            )

        # A frozen dataclass refuses assignments, so set the attribute through `object`.
        object.__setattr__(self, "_known", {o.name: o for o in offered})

    @property
    def known_options(self) -> Mapping[str, Option]:
        """Declarations of all options by name, including ``port``."""
        return self._known

    def chosen(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Validate given options, and fill in the defaults of the other options.

        Parameters
        ----------
        given : mapping of str to object
            Values or texts by name of the option.

        Returns
        -------
        dict of str to object
            Values of all options, including ``port`` if the interface has this option.

        Raises
        ------
        CommandLineError
            An option is unknown, or its value is invalid.
        """
        where = f"interface {self.name}"
        for name in given:
            if name not in self._known:
                known = ", ".join(self._known) or "none"
                raise CommandLineError(
                    f'{where}: no option "{shown(name)}"{did_you_mean(name, self._known)} (options: {known})'
                )

        return {
            n: o.of(given[n], where) if n in given else o.default
            for n, o in self._known.items()
        }

    def lacks(self) -> str:
        """Return a message about missing dependencies; empty if the interface can run.

        Returns
        -------
        str
            Message that names the missing packages, and how to install them if that is
            known.
        """
        absent = missing(self.extras)
        if absent:
            return lacking(f"interface {self.name}", *absent)
        modules = [m for m in self.modules if not _is_there(m)]
        if not modules:
            return ""
        are = "is" if len(modules) == 1 else "are"
        return (
            f"interface {self.name} needs {', '.join(modules)}, which {are} not installed"
            + (f"; to install: {self.install}" if self.install else "")
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    # `find_spec` raises for a submodule whose parent is missing, and ValueError for a
    # module without a spec.
    except (ImportError, ValueError):
        return False


def _nowhere() -> None:
    """Return None: the default of `Switch.address` for servers without a socket."""


@dataclass(slots=True)
class Switch:
    """Object that starts and stops the server of an interface.

    Attributes
    ----------
    about : str
        Description of the interface, for users.
    on : bool
        Whether the server is turned on.
    start, stop : callable
        Coroutine functions that turn the server on and off; `start` may raise
        `PortError`.
    problem : callable
        Returns, for users, the reason why the server cannot serve although it is on;
        empty if it can.
    address : callable
        Returns the host and port of the server's socket; None if it has none, or
        several.
    """

    about: str
    on: bool
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]
    problem: Callable[[], str] = str
    address: Callable[[], tuple[str, int] | None] = _nowhere


def caller_of(interface: Interface, peer: str, key: object) -> Caller:
    """Return the caller of operations for a client of an interface.

    Parameters
    ----------
    interface : Interface
        Declaration of the interface; its level is the permission of the client.
    peer : str
        Address or name of the client, for messages.
    key : object
        Identifies the client, so that the bodies that it holds, and simulated time if
        it holds that, can be released when it disconnects.
    """
    return Caller(
        interface.name,
        interface.level,
        f"{interface.name} client {shown(peer)}",
        key=key,
        # The limit of the number of robots applies to clients, so that none can fill
        # the world.
        ignores_crowd_limit=False,
        settles=False,
    )


__all__ = [
    "Carrier",
    "Datagrams",
    "Door",
    "Interface",
    "Option",
    "Request",
    "Requests",
    "Response",
    "Session",
    "Switch",
    "caller_of",
]
