"""Interfaces by name: those of the package, and those of other packages (entry-point group ``botyard.interfaces``).

An `Interface` says what an interface is: its options, what it needs installed, the sans-I/O session that it has for each client, and
which pump of `botyard.servers` carries it. What runs is a `Switch`: it can be turned off and on while the simulator runs.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol, TypeVar

from botyard.control import Caller, Control, Level, Operation
from botyard.errors import CommandLineError, WorldError, did_you_mean
from botyard.extras import is_installed, lacking
from botyard.names import shown
from botyard.sim.simulation import Simulation

T = TypeVar("T")

GROUP: Final = "botyard.interfaces"
MAX_TEXT: Final = 300
"""Longest reason why an interface of another package cannot be used, characters."""

log = logging.getLogger("botyard.interfaces")


def _nothing() -> None:
    """Nobody is to be woken."""


class Carrier(Enum):
    """What carries the sessions of an interface."""

    TCP = "tcp"
    """A stream for each client: a `Session` each."""
    UDP = "udp"
    """Datagrams: one `Datagrams` for all."""
    WEBSOCKET = "websocket"
    """Messages: a `Session` for each client; each call of `data_to_send` is one message."""
    HTTP = "http"
    """Requests: one `Requests` for all."""
    OWN = "own"
    """The interface brings its own servers (`Interface.server`)."""


class Session(Protocol):
    """What one client says and is told. No socket, clock or thread inside; no bytes make it raise; time is an argument, s of wall time."""

    @property
    def is_closed(self) -> bool:
        """It is over: what there is to send is sent, then the connection is closed."""
        ...

    def receive_data(self, data: bytes, now: float) -> None:
        """Bytes have come, in pieces of any size (of a WebSocket: one message)."""
        ...

    def data_to_send(self) -> bytes:
        """What is to be sent, which it then forgets (of a WebSocket: the next message); empty: nothing."""
        ...

    def next_timer(self) -> float | None:
        """When `handle_timer` is to be called; None: never."""
        ...

    def handle_timer(self, now: float) -> None:
        """The time that `next_timer` named has come."""
        ...

    def on_snapshot(self, now: float) -> None:
        """A step is done. Not called while the client does not read what it was sent."""
        ...

    def close(self) -> None:
        """The connection is over; may be called again."""
        ...


class Datagrams(Protocol):
    """What comes in datagrams, of any client."""

    def receive_datagram(self, data: bytes, source: str, now: float) -> Iterable[bytes]:
        """A datagram from an address has come; the answers to it."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request.

    Attributes
    ----------
    method, path : str
        For example ``GET`` and ``/robots``.
    query : mapping of str to str
        What stands behind the question mark; the last of each name.
    body : bytes
        Its content.
    """

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to one: status, content, and what that is."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class Requests(Protocol):
    """Answers HTTP requests of any client."""

    def answer(self, request: Request, now: float) -> Response:
        """The answer to a request."""
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """What a session has of the simulator: it reads `sim`, and changes it by `do` alone.

    Attributes
    ----------
    control : Control
        The door itself.
    caller : Caller
        Who the client is.
    options : mapping of str to object
        The interface's options, all of them.
    wake : callable
        There is something to send although nothing has come and no step is done, such as the result of a future: `data_to_send` is
        called soon.
    warn : callable
        Writes a line for people into the log; of very many only some, so that no client fills it.
    """

    control: Control
    caller: Caller
    options: Mapping[str, Any]
    wake: Callable[[], None] = _nothing
    warn: Callable[[str], None] = log.warning

    @property
    def sim(self) -> Simulation:
        """The world, to be read."""
        return self.control.sim

    def do(self, operation: Operation[T]) -> T:
        """Do something in the client's name; see `Control.do`.

        Raises
        ------
        DeniedError
            The client may not.
        BotyardError
            It cannot be done.
        """
        return self.control.do(self.caller, operation)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of an interface.

    Attributes
    ----------
    name : str
        Small letters, digits and underscores.
    type : type
        `bool`, `int`, `float` or `str`.
    default : object
        Its value where nobody says one.
    help : str
        What it is, with its unit.
    low, high : float
        The range of a number.
    words : tuple of str
        Of a text: what it may be; empty: anything.
    """

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: Any
    help: str
    low: float = -math.inf
    high: float = math.inf
    words: tuple[str, ...] = ()

    def of(self, value: object, where: str) -> Any:
        """The value of what was said, a text or a value of its type.

        Raises
        ------
        CommandLineError
            It cannot have it.
        """
        found = self._read(value) if isinstance(value, str) else value
        if self.type is float and type(found) is int:
            found = float(found)
        is_right = type(found) is self.type
        if is_right and isinstance(found, (int, float)) and self.type is not bool:
            is_right = self.low <= found <= self.high  # never true of what is not a number
        if not is_right or (self.words and found not in self.words):
            raise CommandLineError(f"{where}: {self.name}: expected {self.expected}, found {shown(repr(value))}")
        return found

    def _read(self, text: str) -> object:
        if self.type is bool:
            return {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}.get(
                text.lower()
            )  # fmt: skip
        try:
            return self.type(text)
        except ValueError:
            return None

    @property
    def expected(self) -> str:
        """What values it takes, for people."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        what = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text"}[self.type]
        bounds = [f"from {self.low:g}"] if self.low > -math.inf else []
        bounds += [f"to {self.high:g}"] if self.high < math.inf else []
        return " ".join([what, *bounds])


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """What an interface is.

    Attributes
    ----------
    name : str
        Small letters, digits and underscores; also the source of its commands in the journal.
    about : str
        For people: one line.
    carrier : Carrier
        What carries it.
    session : callable, optional
        Makes a `Session` for a client, or the one `Datagrams` or `Requests`, of a `Door`.
    server : callable, optional
        Makes the `Switch` that serves it, of the run (`botyard.app.served.Run`) and this: for interfaces of botyard itself that no pump
        carries, or whose session needs more than a `Door`.
    command : str
        The command that runs it, if it is no part of a running simulator.
    port : int
        Where it listens unless the option ``port`` says otherwise; 0: any free port, which the log names.
    is_port_fixed : bool
        Clients look for it there and nowhere else: there is no option ``port``.
    options : tuple of Option
        What can be chosen, beside ``port``.
    level : Level
        What its clients may do; ``--read-only`` takes from that what changes the world.
    clients : int
        So many at a time; half of them from one address.
    rate : float
        Of UDP: datagrams of one address that are looked at, 1/s; others are lost.
    is_broadcast : bool
        Of UDP: it listens on all addresses and shares its port with others, so that broadcasts reach it.
    byte_rate : float
        Of TCP: bytes of one client that are worked off as they come, 1/s. Beyond that they wait, and share what all clients have together.
    work_share : float
        Of TCP: part of the time that these may take.
    text : bool
        Messages of a WebSocket are sent as text (UTF-8), else as bytes.
    extras : tuple of str
        Of botyard: what must be installed.
    modules : tuple of str
        Modules that must be installed beside those.
    install : str
        What to type to have them.
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
        """Check what can be checked.

        Raises
        ------
        WorldError
            A name is none, or appears twice; the carrier needs a session.
        """
        port = Option("port", int, self.port, "where it listens; 0: any free port", 0, 65535)
        has_port = self.carrier is not Carrier.OWN and not self.is_port_fixed and self.server is None
        offered = (*((port,) if has_port else ()), *self.options)
        names = [o.name for o in offered]
        for name in (self.name, *names):
            if not (name.isidentifier() and name.isascii() and name == name.lower()):
                raise WorldError(
                    f"interface: expected a name of small letters, digits and _, found {shown(repr(name))}"
                )
        if len(set(names)) < len(names):
            raise WorldError(f"interface {self.name}: two options have the same name: {', '.join(sorted(names))}")
        if self.carrier is not Carrier.OWN and self.session is None and self.server is None:
            raise WorldError(f"interface {self.name}: {self.carrier.name} carries sessions, and it has none")
        object.__setattr__(self, "_known", {o.name: o for o in offered})

    @property
    def known_options(self) -> Mapping[str, Option]:
        """All that can be chosen, by name."""
        return self._known

    def chosen(self, said: Mapping[str, object]) -> dict[str, Any]:
        """All options, with their defaults.

        Raises
        ------
        CommandLineError
            There is no such option, or it cannot have the value.
        """
        where = f"interface {self.name}"
        for name in said:
            if name not in self._known:
                known = ", ".join(self._known) or "it has none"
                raise CommandLineError(
                    f'{where}: no option "{shown(name)}"{did_you_mean(name, self._known)} (options: {known})'
                )
        return {n: o.of(said[n], where) if n in said else o.default for n, o in self._known.items()}

    def lacks(self) -> str:
        """What is not installed, and how to have it; empty: nothing is lacking."""
        missing = [e for e in self.extras if not is_installed(e)]
        if missing:
            return lacking(self.about, *missing)
        modules = [m for m in self.modules if not _is_there(m)]
        if not modules:
            return ""
        return f"interface {self.name} needs {', '.join(modules)}, which is not installed" + (
            f": {self.install}" if self.install else ""
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _nowhere() -> None:
    """It listens nowhere."""


@dataclass(slots=True)
class Switch:
    """Something that serves clients and can be switched off and on.

    Attributes
    ----------
    about : str
        What it is, for people.
    on : bool
        Whether it serves at present.
    start, stop : callable
        Switch it; `start` may raise a `PortError`.
    problem : callable
        Why it is on but serves nobody, for people; empty: it does.
    address : callable
        Host and port where it listens; None: it listens nowhere, or on many ports.
    """

    about: str
    on: bool
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]
    problem: Callable[[], str] = str
    address: Callable[[], tuple[str, int] | None] = _nowhere


BUILT_IN: Final[Mapping[str, str]] = {
    name: f"botyard.app.builtin:{name.upper()}"
    for name in (
        "pioneer", "discovery", "mdns", "lockstep", "ambf", "rosmaster", "ros1", "ros2", "zenoh", "metrics", "page", "vda5050",
        "trafficros",
    )
}  # fmt: skip
"""Interfaces of the package, by entries like those of other packages; a run starts them in this order, and others after them."""


def _entries() -> dict[str, EntryPoint]:
    found = [EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()]
    found += [e for e in entry_points(group=GROUP) if e.name not in BUILT_IN]
    return {e.name: e for e in found}


def interface_names() -> list[str]:
    """Names of all interfaces, sorted; no package is loaded for that."""
    return sorted(_entries())


def find_interface(name: str) -> Interface:
    """An interface by name.

    Raises
    ------
    CommandLineError
        There is none of that name.
    WorldError
        Its package cannot be loaded, or offers something else under that name.
    """
    entry = _entries().get(name)
    if entry is None:
        known = interface_names()
        raise CommandLineError(f'no interface "{shown(name)}"{did_you_mean(name, known)} (known: {", ".join(known)})')
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever a stranger's module does when it is imported
        raise WorldError(f"interface {name}: {entry.value} cannot be loaded: {shown(repr(error), MAX_TEXT)}") from error
    if not isinstance(found, Interface) or found.name != name:
        raise WorldError(
            f"interface {name}: expected an Interface of that name in {entry.value}, found {shown(repr(found))}"
        )
    if (found.server is not None or found.carrier is Carrier.OWN) and name not in BUILT_IN:
        raise WorldError(
            f"interface {name}: {entry.value} brings its own servers, which only interfaces of botyard may: choose a carrier"
        )
    return found


def plug_ins() -> list[Interface]:
    """The interfaces of other packages; one that cannot be loaded is told of in the log, and left out."""
    found = []
    for name in sorted(_entries().keys() - BUILT_IN.keys()):
        try:
            found.append(find_interface(name))
        except WorldError as error:
            log.warning("%s", error)
    return found


def parse_choice(text: str) -> tuple[Interface, dict[str, Any]]:
    """An interface and those of its options that are said in one text: ``NAME`` or ``NAME:OPTION=VALUE,OPTION=VALUE``.

    Raises
    ------
    CommandLineError
        There is no such interface or option, another command runs it, or an option cannot have the value.
    WorldError
        Its package cannot be loaded.
    """
    name, _, rest = text.partition(":")
    interface = find_interface(name)
    if interface.command:
        raise CommandLineError(f"interface {name}: {interface.command} runs it")
    said: dict[str, object] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals:
            raise CommandLineError(f'interface {name}: expected OPTION=VALUE, found "{shown(part)}"')
        if option in said:
            raise CommandLineError(f'interface {name}: option "{shown(option)}" is said twice')
        said[option] = value
    interface.chosen(said)
    return interface, {
        name: interface.known_options[name].of(value, f"interface {interface.name}") for name, value in said.items()
    }


def caller_of(interface: Interface, peer: str, key: object) -> Caller:
    """Who a client of an interface is."""
    return Caller(
        interface.name,
        interface.level,
        f"{interface.name} client {shown(peer)}",
        key=key,
        ignores_crowd_limit=False,
        settles=False,
    )


__all__ = [
    "BUILT_IN", "GROUP", "Carrier", "Datagrams", "Door", "Interface", "Option", "Request", "Requests", "Response", "Session", "Switch",
    "caller_of", "find_interface", "interface_names", "parse_choice", "plug_ins",
]  # fmt: skip
