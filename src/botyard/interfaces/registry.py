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
    """The interface brings its own servers."""


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
    """

    control: Control
    caller: Caller
    options: Mapping[str, Any]

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
    """

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: Any
    help: str
    low: float = -math.inf
    high: float = math.inf

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
        if not is_right:
            raise CommandLineError(f"{where}: {self.name}: expected {self._expected()}, found {shown(repr(value))}")
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

    def _expected(self) -> str:
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
        Makes a `Session` for a client, or the one `Datagrams` or `Requests`, of a `Door`. None: the interface brings its own servers.
    port : int
        Where it listens unless the option ``port`` says otherwise; 0: any free port, which the log names.
    options : tuple of Option
        What can be chosen, beside ``port``.
    level : Level
        What its clients may do; ``--read-only`` takes from that what changes the world.
    clients : int
        So many at a time; half of them from one address.
    rate : float
        Of UDP: datagrams of one address that are looked at, 1/s; others are lost.
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
    port: int = 0
    options: tuple[Option, ...] = ()
    level: Level = Level.CHANGE
    clients: int = 64
    rate: float = 50.0
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
        offered = (*(() if self.carrier is Carrier.OWN else (port,)), *self.options)
        names = [o.name for o in offered]
        for name in (self.name, *names):
            if not (name.isidentifier() and name.isascii() and name == name.lower()):
                raise WorldError(
                    f"interface: expected a name of small letters, digits and _, found {shown(repr(name))}"
                )
        if len(set(names)) < len(names):
            raise WorldError(f"interface {self.name}: two options have the same name: {', '.join(sorted(names))}")
        if self.carrier is not Carrier.OWN and self.session is None:
            raise WorldError(f"interface {self.name}: {self.carrier.name} carries sessions, and it has none")
        object.__setattr__(self, "_known", {o.name: o for o in offered})

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
    """

    about: str
    on: bool
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]
    problem: Callable[[], str] = str


def _own(name: str, about: str, *extras: str, level: Level = Level.CHANGE, port: int = 0) -> Interface:
    return Interface(name=name, about=about, carrier=Carrier.OWN, extras=extras, level=level, port=port)


BUILT_IN: Final[Mapping[str, Interface]] = {
    i.name: i
    for i in (
        _own("pioneer", "Pioneer protocol (ARIA, p2os) over TCP", port=8101),
        _own("discovery", "answers programs that look for robots (UDP 30718)", level=Level.WATCH, port=30718),
        _own("page", "the page", level=Level.OWN),
        _own("metrics", "figures for Prometheus over HTTP", level=Level.WATCH),
        _own("ros1", "ROS 1 (TCPROS)", "ros"),
        _own("rosmaster", "a ROS 1 master in the simulator", "ros", port=11311),
        _own("ros2", "ROS 2 (DDS)", "ros2"),
        _own("zenoh", "ROS 2 (Zenoh)", "zenoh"),
        _own("ambf", "AMBF's objects without ROS, over TCP", "ros"),
        _own("vda5050", "AGVs of VDA 5050 over MQTT (botyard traffic)", "vda5050"),
        _own("trafficros", "a traffic task over ROS (botyard traffic)", "ros"),
    )
}
"""Interfaces of the package. They bring their own servers; their options are those of ``botyard run``."""


def switched(
    name: str,
    start: Callable[[], Awaitable[None]],
    stop: Callable[[], Awaitable[None]],
    *,
    on: bool = False,
    about: str = "",
    problem: Callable[[], str] = str,
) -> Switch:
    """The switch of an interface of the registry; `about` says more than the registry does."""
    return Switch(about or find_interface(name).about, on, start, stop, problem)


def _entries() -> dict[str, EntryPoint]:
    return {e.name: e for e in entry_points(group=GROUP) if e.name not in BUILT_IN}


def interface_names() -> list[str]:
    """Names of all interfaces, sorted; no package is loaded for that."""
    return sorted({*BUILT_IN, *_entries()})


def find_interface(name: str) -> Interface:
    """An interface by name.

    Raises
    ------
    CommandLineError
        There is none of that name.
    WorldError
        Its package cannot be loaded, or offers something else under that name.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    entry = _entries().get(name)
    if entry is None:
        known = interface_names()
        raise CommandLineError(f'no interface "{shown(name)}"{did_you_mean(name, known)} (known: {", ".join(known)})')
    try:
        found = entry.load()
    except Exception as error:  # whatever a stranger's module does when it is imported
        raise WorldError(f"interface {name}: {entry.value} cannot be loaded: {shown(repr(error), MAX_TEXT)}") from error
    if not isinstance(found, Interface) or found.name != name:
        raise WorldError(
            f"interface {name}: expected an Interface of that name in {entry.value}, found {shown(repr(found))}"
        )
    return found


def plug_ins() -> list[Interface]:
    """The interfaces of other packages; one that cannot be loaded is told of in the log, and left out."""
    found = []
    for name in sorted(_entries()):
        try:
            found.append(find_interface(name))
        except WorldError as error:
            log.warning("%s", error)
    return found


def parse_choice(text: str) -> tuple[Interface, dict[str, Any]]:
    """An interface and its options, as they are said in one text: ``NAME`` or ``NAME:OPTION=VALUE,OPTION=VALUE``.

    Raises
    ------
    CommandLineError
        There is no such interface or option, it needs no such choice, or an option cannot have the value.
    WorldError
        Its package cannot be loaded.
    """
    name, _, rest = text.partition(":")
    interface = find_interface(name)
    if interface.name in BUILT_IN:
        raise CommandLineError(
            f'--interface: "{name}" comes with botyard and has options of its own: botyard run --help'
        )
    said: dict[str, object] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals:
            raise CommandLineError(f'interface {name}: expected OPTION=VALUE, found "{shown(part)}"')
        said[option] = value
    return interface, interface.chosen(said)


def caller_of(interface: Interface, peer: str, key: object) -> Caller:
    """Who a client of an interface is."""
    return Caller(
        interface.name, interface.level, f"{interface.name} client {shown(peer)}", key=key, is_tame=False, settles=False
    )


__all__ = [
    "BUILT_IN", "GROUP", "Carrier", "Datagrams", "Door", "Interface", "Option", "Request", "Requests", "Response", "Session", "Switch",
    "caller_of", "find_interface", "interface_names", "parse_choice", "plug_ins", "switched",
]  # fmt: skip
