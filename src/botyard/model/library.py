"""Library of robot and sensor models, read from TOML files and validated.

The files come from botyard, from installed packages or from the user.

A package adds robot models by entry points of the group ``botyard.robot_models``. The
name of an entry point is the name of the model; its value is a module, and
``NAME.toml`` lies in the folder of that module.

A robot file may contain ``extends = "other"``: tables are then merged key by key, and
all other values are replaced. Lengths are metres. Angles are degrees if the key or the
comment in the file says so, because people write the files; they are radians inside the
program.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any, Final

from botyard.api import arguments
from botyard.api.plugins import Group
from botyard.errors import ModelError, did_you_mean
from botyard.geometry import Pose
from botyard.model.devices import device_names
from botyard.model.drivechecks import DRIVES_WITH
from botyard.model.kinematics import Drive
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import (
    LaserFile,
    RobotFile,
    gather_devices,
    laser_of,
    to_spec,
    to_table,
)
from botyard.model.sensors import LaserSpec
from botyard.model.tablecheck import TableError, checked
from botyard.names import is_name, shown


def _builtin(folder: str) -> dict[str, str]:
    """Return the texts of botyard's own model files by name."""
    root = resources.files("botyard.model") / "builtin" / folder
    return {
        f.name.removesuffix(".toml"): f.read_text("utf-8")
        for f in root.iterdir()
        if f.name.endswith(".toml")
    }


MAX_PARENTS: Final = 20
"""Largest number of models in a chain of ``extends``.

A model of a package may extend itself by mistake.
"""
MAX_KEY_PARTS: Final = 100
"""Largest number of parts of a dotted key in a TOML file."""


@cache
def _robot_texts() -> dict[str, str]:
    return _builtin("robots")


def _is_folder_of(name: str, found: object) -> bool:
    return (
        isinstance(found, ModuleType)
        # The name becomes part of a path.
        and is_name(name)
        and resources.files(found).joinpath(f"{name}.toml").is_file()
    )


PACKAGED: Final[Group[ModuleType]] = Group(
    name="botyard.robot_models",
    noun="robot model",
    expected="a module with the file of that model (NAME.toml) in its folder",
    fits=_is_folder_of,
    error=ModelError,
    # A lambda, so that importing this module does not read the files.
    own=lambda: _robot_texts(),
)
"""Robot models of installed packages: the modules whose folders contain the files."""


def _text_of(name: str) -> str | None:
    """Return the text of a model file of botyard or of an installed package; None if there is
    none.
    """
    text = _robot_texts().get(name)
    module = PACKAGED.find(name) if text is None else None
    if module is None:
        return text
    try:
        return resources.files(module).joinpath(f"{name}.toml").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(
            f'robot model "{shown(name)}": {module.__name__}/{name}.toml cannot be '
            f"read: {error}"
        ) from None


@cache
def _sensor_texts() -> dict[str, str]:
    return _builtin("sensors")


# Possessive quantifiers (++) keep the search itself linear.
_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(
    rf"(?<![\w.-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MAX_KEY_PARTS}}}"
)


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return the content of a TOML file as plain data.

    Parameters
    ----------
    text : str
        Content of the file.
    name : str
        Name of the file in error messages.

    Raises
    ------
    ModelError
        The text is not TOML, or a key has more than `MAX_KEY_PARTS` parts.
    """
    # tomllib's parsing time is quadratic in the number of parts of a key, so that a
    # hostile file could stop the program for minutes.
    if _LONG_KEY.search(text):
        raise ModelError(
            f"{name}: expected keys of at most {MAX_KEY_PARTS} parts, "
            "found a longer one"
        )

    try:
        return tomllib.loads(text)
    except ValueError as error:
        # Besides TOMLDecodeError, int() raises ValueError for integers of thousands of
        # digits.
        raise ModelError(f"{name}: not a TOML file: {error}") from None


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge one table over another: tables are merged key by key, other values are replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value)
            if isinstance(old, dict) and isinstance(value, dict)
            else value
        )

    return merged


def laser_names() -> tuple[str, ...]:
    """Return the sorted names of the laser models of the library."""
    return tuple(sorted(_sensor_texts()))


UserModel = Callable[[str], RobotSpec | None]
"""Type of a function that searches for the user's own model with a name; None if there is none."""
_user_models: list[UserModel] = []


def prefer_models(find: UserModel) -> None:
    """Register the function that searches for the user's own models.

    A user's model takes precedence over a library model of the same name.

    Parameters
    ----------
    find : callable
        Takes a name and returns the model, or None. It replaces an earlier search.
    """
    _user_models[:] = [find]


def _user_model(name: str) -> RobotSpec | None:
    return _user_models[0](name) if _user_models else None


def base_model(name: str) -> RobotSpec:
    """Return a model that another model extends: the user's model, or otherwise the library's.

    Raises
    ------
    ModelError
        The model is unknown. The message suggests the nearest known name.
    """
    return _user_model(name) or load_robot(name)


def _resolve(
    raw: dict[str, Any], name: str, *, built_in: bool = False, depth: int = 0
) -> dict[str, Any]:
    """Return the table of a robot file, merged with the models that it extends.

    The keys `abstract` and `description` are not inherited, nor are the tables that belong to
    another drive.

    Parameters
    ----------
    raw : dict
        Content of a robot file.
    name : str
        Name of the model.
    built_in : bool
        Whether the model is of the library or of a package. It then extends only such models.
        Any other model looks for its parent among the user's models first.
    depth : int
        Number of models that lead to this one by ``extends``.

    Raises
    ------
    TableError
        There is no such parent, or the chain is longer than `MAX_PARENTS`.
    ModelError
        The file of a parent is not TOML.
    """
    parent = raw.get("extends")
    if parent is None:
        return raw
    if not isinstance(parent, str):
        raise TableError(
            "extends", f"expected the name of a robot model, found {shown(parent)}"
        )

    # A shipped model must not change because the user has a model of its parent's name.
    own = None if built_in else _user_model(parent)
    if own is not None:
        # A user's model exists only as an object, so it is converted back to a table.
        base = to_table(own)
    else:
        text = _text_of(parent)
        if text is None:
            hint = did_you_mean(parent, (*_robot_texts(), *PACKAGED.names()))
            raise TableError(
                "extends",
                f'expected the name of a robot model, found "{shown(parent)}"{hint}',
            )

        if depth == MAX_PARENTS:
            raise TableError(
                "extends",
                f"expected a chain of at most {MAX_PARENTS} models, found a longer one",
            )

        base = _resolve(
            parse_toml(text, f"robots/{parent}.toml"),
            parent,
            built_in=True,
            depth=depth + 1,
        )

    # These two keys describe the parent alone; "abstract" would hide its children as
    # well.
    base = {k: v for k, v in base.items() if k not in ("abstract", "description")}
    # Another drive has other parts.
    drive = Drive.__members__.get(str(raw.get("drive", "")).upper())
    if drive is not None:
        base = {k: v for k, v in base.items() if drive in DRIVES_WITH.get(k, (drive,))}
    return _merge(base, raw)


def load_laser(type_: str, *, pose: Pose = Pose(), flipped: bool = False) -> LaserSpec:
    """Return a laser model of the library, mounted at a pose.

    Parameters
    ----------
    type_ : str
        Model name, for example ``lms200``.
    pose : Pose
        Mounting in the robot's frame, m and rad.
    flipped : bool
        Whether it is mounted upside down.

    Raises
    ------
    ModelError
        There is no such model, or its file is invalid.
    """
    texts = _sensor_texts()
    arguments.instance(type_, "type_", str, '"botyard models" lists the lasers')
    if type_ not in texts:
        raise ModelError(
            f'no laser model "{shown(type_)}"{did_you_mean(type_, texts)} '
            f"(lasers: {', '.join(sorted(texts))})"
        )

    file = checked(
        parse_toml(texts[type_], f"sensors/{type_}.toml"), LaserFile, strict=False
    )
    return laser_of(file, pose=pose, flipped=flipped)


def parse_robot(text: str, name: str) -> RobotSpec:
    """Return the robot model that the text of a TOML file describes.

    Parameters
    ----------
    text : str
        Content of the file.
    name : str
        Name of the model, and of the file in error messages.

    Raises
    ------
    ModelError
        The file is invalid. The message names the key, the expected and the found
        value.
    """
    return robot_of(parse_toml(text, name), name)


def robot_of(
    table: Mapping[str, Any], name: str, *, built_in: bool = False
) -> RobotSpec:
    """Return the robot model that the contents of a robot file describe.

    Parameters
    ----------
    table : mapping
        Contents of the file; ``extends`` is applied.
    name : str
        Name of the model.
    built_in : bool
        Whether the file is of the library or of a package. It then extends only such
        models, regardless of the user's models.

    Raises
    ------
    ModelError
        The file is invalid. The message names the key, the expected and the found
        value.
    """
    try:
        whole = gather_devices(_resolve(dict(table), name, built_in=built_in))
        return to_spec(
            checked(whole, RobotFile, device_names, strict=False), name, load_laser
        )
    except TableError as error:
        raise error.of(f"model {name}") from None
    except ModelError as error:
        # Some messages already name the model.
        if str(error).startswith((f"robot {name}:", f"model {name}:")):
            raise
        raise ModelError(f"model {name}: {error}") from None


@cache
def _load_text(name: str, text: str) -> RobotSpec:
    return robot_of(parse_toml(text, name), name, built_in=True)


def robot_names() -> tuple[str, ...]:
    """Return the sorted names of the robot models that can be put into a world.

    They come from the library and from installed packages.
    """
    packaged = PACKAGED.names()
    return tuple(sorted((*_own_names(), *packaged))) if packaged else _own_names()


@cache
def _own_names() -> tuple[str, ...]:
    texts = _robot_texts().items()
    return tuple(
        sorted(
            n
            for n, t in texts
            # The search for the word avoids parsing all files when only names are
            # needed.
            if "abstract" not in t or not tomllib.loads(t).get("abstract", False)
        )
    )


ALIASES = {"p3dx_noerr": "p3dx-no-error"}
"""Other names of models.

The documentation of AMRISim and its model file do not always use the same name (ODO-011).
"""


@cache
def _by_lower_name() -> dict[str, str]:
    return {name.lower(): name for name in _own_names()} | ALIASES


def find_name(name: str) -> str | None:
    """Return the model name that equals a name except for upper and lower case.

    Parameters
    ----------
    name : str
        Name of a model of the library or of an installed package, in upper or lower
        case; for models of the library also an alias.

    Returns
    -------
    str or None
        Name as its file spells it; None if there is none.
    """
    lower = name.lower()
    return _by_lower_name().get(lower) or next(
        (n for n in PACKAGED.names() if n.lower() == lower), None
    )


def load_robot(model: str) -> RobotSpec:
    """Return a robot model of the library or of an installed package by its name.

    `botyard.formats.models.load_robot` also reads files.

    Parameters
    ----------
    model : str
        Name of the model; upper and lower case do not matter.

    Raises
    ------
    ModelError
        The model is unknown, and the message suggests the nearest known name; or its
        description is invalid.
    """
    name = str(arguments.path(model, "model"))
    found = find_name(name)
    text = None if found is None else _text_of(found)
    if found is None or text is None:
        hint = did_you_mean(name, {*_by_lower_name(), *PACKAGED.names()})
        raise ModelError(
            f'no robot model "{shown(name)}"{hint} ("botyard models" lists them)'
        )

    return _load_text(found, text)
