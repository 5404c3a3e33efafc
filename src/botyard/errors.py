"""The exception tree. Every message says where, what was expected and what was found.

The exit codes are those of the AMRISim table (feature table, area EXIT); an exception
carries the code that the command line ends with when nothing handles it. A leaf:
imports nothing of botyard.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from os import PathLike


class ExitCode(IntEnum):
    """Exit statuses of the program (feature table EXIT-001…014)."""

    OK = 0
    # not in the table of the original: for our own client commands
    PEER = 1
    # nor is this: a recording cannot be read
    UNREADABLE = 2
    MODELS_MISSING = 234
    ROS_MASTER = 235
    CRASH = 236
    CWD = 247
    TCP_PORT = 248
    ROBOT_INIT = 249
    PARAMETER_FILE = 250
    DAEMON = 251
    WORLD_INIT = 252
    MAP_LOAD = 253
    TEMP_FILE = 254
    COMMAND_LINE = 255


MAX_REASON = 1000
"""Reasons of file errors are cut to this length in messages, characters."""


def escaped(text: str) -> str:
    r"""Return `text` with every character that is not printable written as its escape
    (``\n``, ``\x1b``, ``\u202e``).
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


class BotyardError(Exception):
    """Base of all errors that botyard raises on purpose."""

    exit_code: ExitCode = ExitCode.WORLD_INIT


class KernelsError(BotyardError):
    """No compiled kernels exist for this machine, and no compiler is installed."""


class FormatError(BotyardError):
    """A file could not be read.

    Parameters
    ----------
    reason : str
        What was expected and what was found.
    path : path-like, optional
        The file.
    line : int, optional
        Line number, counted from 1.
    """

    def __init__(
        self,
        reason: str,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__()
        self.reason = reason
        self.path = None if path is None else str(path)
        self.line = line
        self._tell()

    def _tell(self) -> None:
        """Build the message, escaped: it may quote text of an untrusted file."""
        where, line = self.path or "", self.line
        if line is not None:
            where = f"{where}:{line}" if where else f"line {line}"
        reason = (
            self.reason
            if len(self.reason) <= MAX_REASON
            else self.reason[: MAX_REASON - 1] + "…"
        )
        self.args = (escaped(f"{where}: {reason}" if where else reason),)

    def rewrite(self, translate: Callable[[str], str]) -> None:
        """Translate the texts of reason and path, such as names of temporary files, and
        rebuild the message.
        """
        self.reason = translate(self.reason)
        self.path = None if self.path is None else translate(self.path)
        self._tell()

    def __reduce__(
        self,
    ) -> tuple[object, ...]:  # for pickle: a worker process may read the file
        return type(self), (self.reason, self.path, self.line)


class MapError(FormatError):
    """A map could not be found or read (exit code 253)."""

    exit_code = ExitCode.MAP_LOAD


class NoSuchMapError(MapError):
    """There is no map of this name (exit code 253)."""


class UnknownFormatError(MapError):
    """A file is of no format that can be read (exit code 253)."""


class WorldFileError(FormatError):
    """A world file or a scenario could not be read (exit code 252)."""

    exit_code = ExitCode.WORLD_INIT


class ModelFileError(FormatError):
    """A file with a robot model of the user's could not be read (exit code 250)."""

    exit_code = ExitCode.PARAMETER_FILE


class BudgetError(FormatError):
    """A file exceeds a limit of reading (`botyard.formats.budget.Budget`); all limits
    raise this error.

    What a reader raises is an error of its format as well (see `budget_error`), so its
    exit code is the format's.

    Attributes
    ----------
    limit : str
        Name of the limit, as after ``--max-read``.
    found : float
        How much was found, as far as it was counted.
    """

    def __init__(
        self,
        reason: str,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        *,
        limit: str,
        found: float,
    ) -> None:
        super().__init__(reason, path, line)
        self.limit = limit
        self.found = found

    def __reduce__(self) -> tuple[object, ...]:
        kind = next(
            (c for c in type(self).__bases__ if c is not BudgetError), FormatError
        )
        return _make_budget_error, (
            kind,
            self.reason,
            self.path,
            self.line,
            self.limit,
            self.found,
        )


class MapBudgetError(BudgetError, MapError):
    """A map asks for too much (exit code 253)."""


class WorldBudgetError(BudgetError, WorldFileError):
    """A world file or a scenario asks for too much (exit code 252)."""


class ModelBudgetError(BudgetError, ModelFileError):
    """A file with a robot model asks for too much (exit code 250)."""


def budget_error(kind: type[FormatError]) -> type[BudgetError]:
    """The subclass of `BudgetError` and of the given format error; made if there is
    none yet.
    """
    if issubclass(BudgetError, kind):
        return BudgetError
    known = next((c for c in BudgetError.__subclasses__() if issubclass(c, kind)), None)
    return known or type(
        f"{kind.__name__}OfBudget",
        (BudgetError, kind),
        {"__doc__": "A file asks for too much."},
    )


def _make_budget_error(
    kind: type[FormatError],
    reason: str,
    path: str | None,
    line: int | None,
    limit: str,
    found: float,
) -> BudgetError:
    """A `BudgetError` again, from what `pickle` kept of it."""
    return budget_error(kind)(reason, path, line, limit=limit, found=found)


class ModelError(BotyardError):
    """A robot or sensor model is unknown or its description is wrong (exit code 249)."""

    exit_code = ExitCode.ROBOT_INIT

    def __init__(self, text: str = "") -> None:
        super().__init__(escaped(text))  # a description is a file, too


class ModelsMissingError(BotyardError):
    """The folder that the environment names for models is not there (exit code 234)."""

    exit_code = ExitCode.MODELS_MISSING


class RosMasterError(BotyardError):
    """There is no ROS master (exit code 235)."""

    exit_code = ExitCode.ROS_MASTER


class WorldError(BotyardError):
    """The simulated world could not be set up as asked (exit code 252)."""

    exit_code = ExitCode.WORLD_INIT


class ArgumentError(WorldError, ValueError):
    """An invalid argument of the public API: which, what was expected, what was found.
    Also a ValueError.
    """


class WorldFaultError(ArgumentError):
    """A command, a parameter or a state that was written into worlds of `Worlds` is
    wrong; all other worlds went on.

    Attributes
    ----------
    faults : dict[int, str]
        Numbers of the worlds, and the reason for each.
    """

    def __init__(self, faults: Mapping[int, str], end: str = "") -> None:
        self.faults: dict[int, str] = dict(faults)
        number = min(self.faults)
        super().__init__(f"world {number}: {self.faults[number]}{end}")


class UnknownNameError(WorldError, KeyError):
    """Nothing in the world has this name, or it was removed. Also a KeyError."""

    def __str__(self) -> str:
        """The message without the quotes that KeyError adds."""
        return str(self.args[0])


class DeviceError(WorldError):
    """A device of a robot cannot be read because the code of its kind raised; the
    simulation goes on.
    """


class DeniedError(WorldError):
    """Permission denied: the caller may only watch, or the world is read-only."""


class NameTakenError(WorldError):
    """Something in the world has this name already."""


class NameRuleError(WorldError):
    """A name that breaks the rule for names (`botyard.names`)."""


class NotNowError(WorldError):
    """The operation is not possible in the simulator's present state: it needs time to
    run, or to be paused.
    """


class PlacementWarning(UserWarning):
    """Something is valid but probably a mistake: a robot that starts in a wall or far
    outside of the map.
    """


class CommandLineError(BotyardError):
    """The command line cannot be obeyed (exit code 255)."""

    exit_code = ExitCode.COMMAND_LINE


class KeptFileError(BotyardError):
    """A file that this program did not write would be overwritten; it is kept (exit
    code 255).

    Parameters
    ----------
    path : path-like
        The file.
    """

    exit_code = ExitCode.COMMAND_LINE

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path: str = str(path)
        super().__init__(
            f"{self.path}: was not written by botyard, and is not replaced "
            "(--force, or overwrite=True, does that)"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


class BusyFileError(KeptFileError):
    """A file is being written by another program, or by another part of this one; it is
    kept (exit code 255).

    Parameters
    ----------
    path : path-like
        The file.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = str(path)
        BotyardError.__init__(
            self,
            f"{self.path}: is being written already, by another simulator or recording",
        )


class FolderError(BotyardError):
    """The working directory cannot be changed as asked (exit code 247)."""

    exit_code = ExitCode.CWD


class TempFileError(BotyardError):
    """A file that the program needs for itself cannot be written (exit code 254)."""

    exit_code = ExitCode.TEMP_FILE


class DaemonError(BotyardError):
    """The simulator cannot go into the background."""

    exit_code = ExitCode.DAEMON


class PortError(BotyardError):
    """A TCP port could not be bound (exit code 248)."""

    exit_code = ExitCode.TCP_PORT


class PlanError(FormatError):
    """The plan of a study is wrong (exit code 255: it is named on the command line)."""

    exit_code = ExitCode.COMMAND_LINE


class CalibrationError(BotyardError):
    """Logs do not hold what a calibration or a comparison of them needs (exit code 255:
    they are named on the command line).
    """

    exit_code = ExitCode.COMMAND_LINE


class StateError(WorldError, ValueError):
    """Bytes are no saved state, are damaged, or are the state of another world."""


class RecordingError(FormatError):
    """A recording, or a part of one, is damaged, too large, of another version, or no
    recording at all (exit code 2).
    """

    exit_code = ExitCode.UNREADABLE


class CommandError(BotyardError, ValueError):
    """A command to a robot was refused because its values are invalid (exit code 255:
    they came from the command line).

    Also a ValueError.
    """

    exit_code = ExitCode.COMMAND_LINE


class PeerError(BotyardError):
    """The program at the other end of a connection did not behave as its protocol asks
    (clients only; exit code 1).
    """

    exit_code = ExitCode.PEER


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``'; did you mean "x"?'`` for the known word nearest to `word`, or an
    empty string.
    """
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def __getattr__(name: str) -> type[Warning]:
    # The name of releases before 0.2; it goes with 0.3.
    if name == "DoubtWarning":
        warnings.warn(
            "DoubtWarning has a new name: PlacementWarning",
            DeprecationWarning,
            stacklevel=2,
        )
        return PlacementWarning

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
