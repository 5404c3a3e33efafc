"""Search for robot models.

Models come from the library, from ``.p`` and ``.toml`` files, and from definitions in
the user's own folders. Users store their models in ``~/.botyard/include`` (also
``~/.AMRISim/include`` and ``~/.MobileSim/include``): a ``.toml`` or ``.p`` file defines
the model of its name, and any other file holds Stage definitions. The environment
variables AMRISIM and MOBILESIM name an installation of the original program, whose
model file is read after these folders. The first definition of a name counts; the
library's models come last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botyard.api import arguments
from botyard.errors import FormatError, ModelError, ModelFileError, did_you_mean
from botyard.formats import stageworld
from botyard.formats.base import Options, read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.model import library
from botyard.model.library import parse_robot, robot_names
from botyard.model.robot import RobotSpec
from botyard.names import shown

if TYPE_CHECKING:
    from botyard.formats.importers.urdf import Imported

USER_FOLDERS: Final = (".botyard", ".AMRISim", ".MobileSim")
"""Names of folders in the user's home: of botyard, AMRISim and MobileSim."""
VARIABLES: Final = ("AMRISIM", "MOBILESIM")
"""Environment variables that name the folder of an installed AMRISim or MobileSim (CFG-002)."""
STOCK_FILE: Final = "PioneerRobotModels.world.inc"
"""Path of the model file within such a folder."""
URDF: Final = ".urdf"
"""Suffix of ROS's robot descriptions."""
XACRO: Final = ".xacro"
"""Suffix of descriptions with macros, which are programs."""
ROBOT_FILES: Final = (".p", ".toml", URDF)
"""Suffixes of files with one model."""
INCLUDE: Final = ".inc"
"""Usual suffix of files with Stage definitions."""
MAX_PATH: Final = 400
"""Longest path in a message about a missing folder, characters."""
DEFAULT_MAP: Final = "init.map"
"""Name of the map in a user folder that is loaded by default (MAP-019)."""


def user_folders() -> list[Path]:
    """Return the user's folders that exist."""
    home = str(Path.home())
    named = (os.path.join(home, name) for name in USER_FOLDERS)
    # Each search for a model calls this; `Path.is_dir` takes four times as long.
    return [Path(p) for p in named if os.path.isdir(p)]


def resource_folders() -> list[Path]:
    """Return the folders of an installed AMRISim or MobileSim that environment variables name.

    Folders that do not exist are left out.
    """
    return [p for p in _named_folders().values() if p.is_dir()]


def missing_folders() -> list[str]:
    """Return a message for each missing folder that an environment variable names."""
    return [
        f"{variable} names a folder of models and maps that does not exist: "
        f"{shown(path, MAX_PATH)}"
        for variable, path in _named_folders().items()
        if not path.is_dir()
    ]


def folders_without_models() -> list[str]:
    """Return a message for each folder of an original program without that program's model file.

    Maps in such a folder are still found.
    """
    return [
        (
            f"{variable} names a folder without AMRISim's models: there is no file "
            f"{STOCK_FILE} in {shown(path, MAX_PATH)}"
        )
        for variable, path in _named_folders().items()
        if path.is_dir() and not (path / STOCK_FILE).is_file()
    ]


def _named_folders() -> dict[str, Path]:
    named = {v: os.environ.get(v) for v in VARIABLES}
    return {v: Path(n) for v, n in named.items() if n}


def default_map() -> Path | None:
    """Return the path of the user's ``init.map``; None if there is none."""
    return next(
        (p for p in (folder / DEFAULT_MAP for folder in user_folders()) if p.is_file()),
        None,
    )


@dataclass(slots=True)
class UserModels:
    """Models that the user's folders and an installed AMRISim or MobileSim define.

    Attributes
    ----------
    makers : dict
        Model name → function that builds the model, or raises its error.
    problems : list of FormatError
        Errors of files that could not be read at all.
    world : WorldFile
        All Stage files merged: definitions, models that they add to every world, and
        settings.
    """

    makers: dict[str, Callable[[], RobotSpec]] = field(default_factory=dict)
    problems: list[FormatError] = field(default_factory=list)
    world: stageworld.WorldFile = field(default_factory=stageworld.WorldFile)


def _is_model_file(path: Path) -> bool:
    """Return whether a file of an include folder is read as a model file (formats §3.5).

    Hidden files and editors' backups are not read.
    """
    return path.is_file() and path.name[0] not in ".#," and not path.name.endswith("~")


def _include_files() -> Iterator[Path]:
    for folder in user_folders():
        if (folder / "include").is_dir():
            # A fixed order, because the first definition of a name counts.
            yield from sorted(
                p for p in (folder / "include").iterdir() if _is_model_file(p)
            )

    for folder in resource_folders():
        if (folder / STOCK_FILE).is_file():
            yield folder / STOCK_FILE


def _read_toml(path: Path, budget: Budget = Budget()) -> RobotSpec:
    meter = Meter(budget, str(path), ModelFileError)
    data = read_bytes(path, meter, ModelFileError)
    # tomllib has no limits, so separators are counted as a bound of its work.
    meter.add("entities", sum(map(data.count, b"\n,=.")))
    try:
        return parse_robot(data.decode("utf-8"), path.stem)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"cannot be read: {error}", path) from None
    except RecursionError:
        raise meter.error("nesting", budget.nesting + 1) from None
    except ModelError as error:
        raise ModelFileError(str(error), path) from None


def _read_params(path: Path, budget: Budget = Budget()) -> RobotSpec:
    from botyard.formats import arparams

    return arparams.to_robot(arparams.read(path, budget), path.stem)


def _read_urdf(path: Path, budget: Budget) -> Imported:
    # Readers of XML take long to import, and few users have such files.
    from botyard.formats.importers.urdf import read_urdf

    return read_urdf(path, budget)


@cache
def _read_user_models(files: tuple[tuple[Path, int], ...]) -> UserModels:
    models = UserModels()
    world = models.world
    for path, _ in files:
        if path.suffix == ".toml":
            # Files are read on first use, so that an invalid model does not affect the
            # others.
            models.makers.setdefault(path.stem, lambda p=path: _read_toml(p))  # type: ignore[misc]
        elif path.suffix == ".p":
            models.makers.setdefault(path.stem, lambda p=path: _read_params(p))  # type: ignore[misc]
        else:
            try:
                found = stageworld.read(path)
            except FormatError as error:
                models.problems.append(error)
                continue

            for name, entity in found.definitions.items():
                world.definitions.setdefault(name, entity)
            world.entities += found.entities
            # The user's settings take precedence over the settings of the installed
            # original.
            is_stock = path.name == STOCK_FILE
            world.properties = (
                {**found.properties, **world.properties}
                if is_stock
                else {**world.properties, **found.properties}
            )

    # Models of Stage take long to import, and few users have any.
    if not world.definitions:
        return models
    from botyard.formats.stagemodels import ModelLibrary

    # Definitions of all files form one library, so they may refer to each other.
    library = ModelLibrary(world)
    for name in world.definitions:
        try:
            is_model = library.is_model(name)
        except FormatError as error:
            models.problems.append(error)
            continue

        if is_model:
            models.makers.setdefault(name, lambda n=name: library.robot(n))  # type: ignore[misc]

    return models


@dataclass(frozen=True, slots=True)
class FileModels:
    """Models and other definitions in one file.

    Attributes
    ----------
    robots : tuple of RobotSpec
        Models that a world can contain.
    others : tuple of str
        Names of other definitions: sensors.
    remarks : tuple of str
        Parts that cannot be simulated, with file and line.
    """

    robots: tuple[RobotSpec, ...]
    others: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def is_robot_file(name: str | Path) -> bool:
    """Return whether a name is a file with one model: ``.p``, ``.toml`` or ``.urdf``."""
    # A name such as ".toml" has no suffix, but `find_robot` would not open it either.
    return str(name).lower().endswith(ROBOT_FILES)


def is_model_file(name: str | Path) -> bool:
    """Return whether a file has a suffix of model files.

    Suffixes are ``.p``, ``.toml``, ``.urdf`` and ``.inc`` (Stage definitions).
    """
    return is_robot_file(name) or Path(name).suffix.lower() == INCLUDE


def read_models(path: str | Path, budget: Budget = Budget()) -> FileModels:
    """Return all models of a file; each model is built, so that errors are found.

    Raises
    ------
    ModelFileError, ModelError
        A model is invalid. The error names the file, the line, the expected and the
        found value.
    """
    suffix = Path(path).suffix.lower()
    if suffix == URDF:
        found = _read_urdf(Path(path), budget)
        return FileModels((found.spec,), remarks=found.remarks)
    if suffix != INCLUDE:
        return FileModels((find_robot(path, budget),))
    from botyard.formats import stagescene
    from botyard.formats.stagemodels import ModelLibrary

    file = stageworld.read(path, budget)
    library = ModelLibrary(file)
    robots, others = library.all()
    remarks = list(library.notes.texts)
    remarks += [
        f'{p}:{line}: the definition "{shown(name)}" is ignored, because an earlier '
        "one exists"
        for name, p, line in file.shadowed
    ]
    # Building a world collects remarks about models that the file puts into each world.
    stagescene.to_world(file, path, Options(budget=budget, warn=remarks.append))
    return FileModels(robots, others, tuple(dict.fromkeys(remarks)))


def user_models() -> UserModels:
    """Return the models of the user's folders and of an installed AMRISim or MobileSim.

    The files are read again if one of them has changed.
    """
    files = []
    for path in _include_files():
        try:
            files.append((path, path.stat().st_mtime_ns))
        except OSError:
            continue

    return _read_user_models(tuple(files))


def user_world_file() -> stageworld.WorldFile:
    """Return the merged Stage files of the user's folders."""
    return user_models().world


def model_names() -> tuple[str, ...]:
    """Return the names of all models: the library's, then the user's other models."""
    own = set(robot_names())
    return (*robot_names(), *(n for n in sorted(user_models().makers) if n not in own))


def load_robot(model: str | Path, budget: Budget = Budget()) -> RobotSpec:
    """Return a robot model, given its name or a ``.toml``, ``.p`` or ``.urdf`` file.

    A name may be one of the library's or of the user's models; case does not matter.

    Parameters
    ----------
    model : str or Path
        Name or file.
    budget : Budget, optional
        Limits for reading the file.

    Raises
    ------
    ModelError
        The model is unknown, and the message suggests the nearest known name; or its
        description is invalid.
    ModelFileError
        A file cannot be read, is too large, or is invalid. The error names the file,
        the expected and the found value.
    """
    arguments.path(model, "model")
    return find_robot(model, arguments.instance(budget, "budget", Budget))


def find_robot(model: str | Path, budget: Budget = Budget()) -> RobotSpec:
    """Return a robot model, given its name or a ``.p``, ``.toml`` or ``.urdf`` file.

    Raises
    ------
    ModelError
        The model is unknown; the message suggests the nearest known name.
    ModelFileError
        A file with a model is invalid. The error names the file, the line, the expected
        and the found value.
    """
    name = str(model)
    suffix = Path(name).suffix.lower()
    if suffix == ".p":
        return _read_params(Path(model), budget)
    if suffix == ".toml":
        return _read_toml(Path(model), budget)
    if suffix == URDF:
        return _read_urdf(Path(model), budget).spec
    if suffix == XACRO:
        raise ModelFileError(
            "expected a URDF file without macros; import the file with: botyard models "
            f"import {Path(name).name}",
            name,
        )
    own = _own_model(name)
    if own is not None:
        return own
    if library.find_name(name) is not None:
        return library.load_robot(name)
    # The model may be defined in the file that cannot be read.
    for problem in user_models().problems:
        raise problem

    hint = did_you_mean(name, model_names())
    raise ModelError(
        f'no robot model "{shown(name)}"{hint} ("botyard models" lists them)'
    )


_making: ContextVar[tuple[str, ...]] = ContextVar("making", default=())
"""Lower-case names of the user's models that are being built, outermost first."""


def _own_model(name: str) -> RobotSpec | None:
    """Return the user's own model with a name, in any case; None if there is none.

    The result is also None for the name of the model that is being built, which then
    extends the library's model of that name.

    Raises
    ------
    ModelError
        The model is invalid, or models of several files extend each other.
    """
    key, making = name.lower(), _making.get()
    makers = user_models().makers
    own = next((n for n in makers if n.lower() == key), None)
    if own is None or making[-1:] == (key,):
        return None
    if key in making:
        raise ModelError(
            "the user's models extend each other in a circle: "
            f"{' → '.join((*making, key))}"
        )

    # Threads may load models at the same time; a context variable keeps them apart.
    token = _making.set((*making, key))
    try:
        return makers[own]()
    finally:
        _making.reset(token)


library.prefer_models(_own_model)
