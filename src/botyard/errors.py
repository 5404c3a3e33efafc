"""Exceptions of botyard.

Each message names the location, the expected and the found value. An exception has the
exit status with which the command line ends if no code handles the exception. Exit
statuses are the statuses of AMRISim (``EXIT`` in the table of features). This module
imports no other module of botyard.
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
    # Status of botyard's client commands (`PeerError`); AMRISim does not have it.
    PEER = 1
    # Status for a recording that cannot be read; AMRISim does not have it.
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
"""Maximum length of the reason in a file error, characters."""


def escaped(text: str) -> str:
    r"""Return a text with each unprintable character escaped.

    Parameters
    ----------
    text : str
        Untrusted text. For example, a line break becomes ``\n``, the escape character
        ``\x1b``, and a bidirectional control ``\u202e``. Printable characters of all
        languages are not changed.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


class BotyardError(Exception):
    """Base class of all errors that botyard raises on purpose.

    Attributes
    ----------
    exit_code : ExitCode
        Status with which the command line ends if no code handles the error.
    """

    exit_code: ExitCode = ExitCode.WORLD_INIT


class KernelsError(BotyardError):
    """There are no compiled kernels for this machine, and no compiler is installed."""


class FormatError(BotyardError):
    """A file cannot be read.

    Parameters
    ----------
    reason : str
        Expected and found value.
    path : path-like, optional
        Name of the file.
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
        """Build the message; escape it, because it may quote an untrusted file."""
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
        """Replace words in the reason and in the path, and rebuild the message.

        Parameters
        ----------
        translate : callable
            Function from a text to the text for users. For example, it replaces names
            of temporary files by the names of the user's files.
        """
        self.reason = translate(self.reason)
        self.path = None if self.path is None else translate(self.path)
        self._tell()

    # Pickle needs this method: a worker process may raise the error.
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.path, self.line)


class MapError(FormatError):
    """A map cannot be found or read (exit code 253)."""

    exit_code = ExitCode.MAP_LOAD


class NoSuchMapError(MapError):
    """There is no map with this name (exit code 253)."""


class UnknownFormatError(MapError):
    """A file has no known map format (exit code 253)."""


class WorldFileError(FormatError):
    """A world file or a scenario cannot be read (exit code 252)."""

    exit_code = ExitCode.WORLD_INIT


class ModelFileError(FormatError):
    """A user's robot model file cannot be read (exit code 250)."""

    exit_code = ExitCode.PARAMETER_FILE


class BudgetError(FormatError):
    """A file exceeds a limit for reading (`botyard.formats.budget.Budget`).

    An error that a reader raises has a second base class, the error of the format that it
    reads (`budget_error`), and the exit code of that error.

    Parameters
    ----------
    reason, path, line
        See `FormatError`.

    Attributes
    ----------
    limit : str
        Name of the limit, as in ``--max-read``.
    found : float
        Amount in the file, as far as it was counted: a reader stops at the limit.
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
    """A map exceeds a limit for reading (exit code 253)."""


class WorldBudgetError(BudgetError, WorldFileError):
    """A world file or a scenario exceeds a limit for reading (exit code 252)."""


class ModelBudgetError(BudgetError, ModelFileError):
    """A robot model file exceeds a limit for reading (exit code 250)."""


def budget_error(kind: type[FormatError]) -> type[BudgetError]:
    """Return the class that derives from `BudgetError` and from a format's error.

    The class is created if necessary, once for each format.

    Parameters
    ----------
    kind : type of FormatError
        Error of the format, such as `MapError`.
    """
    if issubclass(BudgetError, kind):
        return BudgetError
    known = next((c for c in BudgetError.__subclasses__() if issubclass(c, kind)), None)
    return known or type(
        f"{kind.__name__}OfBudget",
        (BudgetError, kind),
        {"__doc__": "A file exceeds a limit for reading."},
    )


def _make_budget_error(
    kind: type[FormatError],
    reason: str,
    path: str | None,
    line: int | None,
    limit: str,
    found: float,
) -> BudgetError:
    """Recreate a `BudgetError` from its pickled parts."""
    return budget_error(kind)(reason, path, line, limit=limit, found=found)


class ModelError(BotyardError):
    """A robot or sensor model is unknown or not valid (exit code 249)."""

    exit_code = ExitCode.ROBOT_INIT

    def __init__(self, text: str = "") -> None:
        # Escape the text, because a description may be from an untrusted file.
        super().__init__(escaped(text))


class ModelsMissingError(BotyardError):
    """The models folder named by the environment does not exist (exit code 234)."""

    exit_code = ExitCode.MODELS_MISSING


class RosMasterError(BotyardError):
    """There is no ROS master (exit code 235)."""

    exit_code = ExitCode.ROS_MASTER


class WorldError(BotyardError):
    """The simulated world cannot be set up as requested (exit code 252)."""

    exit_code = ExitCode.WORLD_INIT


class ArgumentError(WorldError, ValueError):
    """An argument of the public API is not valid; also a ValueError.

    The message names the argument, the expected and the found value.
    """


class WorldFaultError(ArgumentError):
    """In a batch of worlds (`Worlds`), some got an invalid command, parameter or state.

    The other worlds of the batch continue.

    Parameters
    ----------
    faults : mapping of int to str
        Reason for each faulty world, at least one.
    end : str
        Text at the end of the message, after the reasons.

    Attributes
    ----------
    faults : dict[int, str]
        Reason for each faulty world, by its number.
    """

    def __init__(self, faults: Mapping[int, str], end: str = "") -> None:
        self.faults: dict[int, str] = dict(faults)
        number = min(self.faults)
        super().__init__(f"world {number}: {self.faults[number]}{end}")


class UnknownNameError(WorldError, KeyError):
    """No object in the world has this name, or the object was removed; also a KeyError."""

    def __str__(self) -> str:
        """Return the message without the quotes that KeyError adds."""
        return str(self.args[0])


class DeviceError(WorldError):
    """A robot's device cannot be read, because its code raised an error.

    The simulation continues.
    """


class DeniedError(WorldError):
    """Permission denied: the client may only watch, or the world is read-only."""


class NameTakenError(WorldError):
    """Another object in the world already has this name."""


class NameRuleError(WorldError):
    """A name violates the rules for names (`botyard.names`)."""


class NotNowError(WorldError):
    """The operation is not possible in the current state.

    Some operations need a running simulation, others a paused one.
    """


class PlacementWarning(UserWarning):
    """A valid setting is probably a mistake, such as a robot that starts inside a wall."""


class CommandLineError(BotyardError):
    """The command line is not valid or cannot be carried out (exit code 255)."""

    exit_code = ExitCode.COMMAND_LINE


class KeptFileError(BotyardError):
    """A file would be overwritten that botyard did not write.

    The file is kept (exit code 255).

    Parameters
    ----------
    path : path-like
        Name of the file.
    """

    exit_code = ExitCode.COMMAND_LINE

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path: str = str(path)
        super().__init__(
            f"{self.path}: was not written by botyard; --force or "
            "overwrite=True replaces it"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


class BusyFileError(KeptFileError):
    """The file is being written by another recording or simulator (exit code 255).

    Parameters
    ----------
    path : path-like
        Name of the file.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = str(path)
        BotyardError.__init__(
            self,
            f"{self.path}: is already being written by another simulator or recording",
        )


class FolderError(BotyardError):
    """The working folder cannot be changed as requested (exit code 247)."""

    exit_code = ExitCode.CWD


class TempFileError(BotyardError):
    """A file for internal use cannot be written (exit code 254)."""

    exit_code = ExitCode.TEMP_FILE


class DaemonError(BotyardError):
    """The simulator cannot run in the background (exit code 251)."""

    exit_code = ExitCode.DAEMON


class PortError(BotyardError):
    """A TCP port cannot be bound (exit code 248)."""

    exit_code = ExitCode.TCP_PORT


class PlanError(FormatError):
    """The plan of a study is not valid (exit code 255, as for a command line)."""

    exit_code = ExitCode.COMMAND_LINE


class CalibrationError(BotyardError):
    """Logs lack data for a calibration or comparison (exit code 255)."""

    exit_code = ExitCode.COMMAND_LINE


class StateError(WorldError, ValueError):
    """Bytes are not a saved state, are damaged, or belong to another world."""


class RecordingError(FormatError):
    """A recording is damaged, too large or of another version (exit code 2)."""

    exit_code = ExitCode.UNREADABLE


class CommandError(BotyardError, ValueError):
    """A robot rejects a command with invalid values (exit code 255).

    The class also derives from ValueError.
    """

    exit_code = ExitCode.COMMAND_LINE


class PeerError(BotyardError):
    """A peer violates its protocol or cannot be reached (clients only; exit code 1)."""

    exit_code = ExitCode.PEER


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the most similar known word.

    Parameters
    ----------
    word : str
        Unknown word, in upper or lower case.
    known : iterable of str
        Known words in lower case.

    Returns
    -------
    str
        Text such as ``; did you mean "laser"?``; empty if no word is similar.
    """
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def __getattr__(name: str) -> type[Warning]:
    # `DoubtWarning` is the name in releases before 0.2; release 0.3 removes it.
    if name == "DoubtWarning":
        warnings.warn(
            "DoubtWarning has a new name: PlacementWarning",
            DeprecationWarning,
            stacklevel=2,
        )
        return PlacementWarning

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
