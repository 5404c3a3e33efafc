"""Optional dependencies ("extras"): their modules, purpose and installation.

This registry is the only one. At start-up, the command line uses it to check that the
needed extras are installed. Features that depend on an extra also check it when a
Python program calls them. ``botyard doctor`` prints the registry.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse


@dataclass(frozen=True, slots=True)
class Extra:
    """Optional dependency.

    Attributes
    ----------
    modules : tuple of str
        Modules of the extra; it counts as installed if all of them are found.
    purpose : str
        Feature that needs the extra, as text for users.
    remark : str
        Additional hint for users who have not installed the extra.
    """

    modules: tuple[str, ...]
    purpose: str
    remark: str = ""


EXTRAS: Final[Mapping[str, Extra]] = {
    "calibrate": Extra(
        ("matplotlib", "scipy"),
        "fitting of robot models to logs of real robots, and comparison with them",
    ),
    "discovery": Extra(("zeroconf",), "announce robots by multicast DNS"),
    "drawings": Extra(("ezdxf",), "maps from DXF drawings"),
    "jit": Extra(
        ("llvmlite", "numba"),
        "compilation of kernels on this machine, if the package ships none",
    ),
    "learning": Extra(
        ("gymnasium", "pettingzoo"), "environments for reinforcement learning"
    ),
    "movie": Extra(("av",), "movies as MP4"),
    "plots": Extra(("matplotlib",), "Gantt charts of traffic"),
    "ray": Extra(("ray",), "studies on many computers (botyard study --ray)"),
    "studies": Extra(
        ("matplotlib", "pyarrow", "scipy"),
        "studies: Sobol samples, Parquet tables, reports with plots",
    ),
    "tables": Extra(("pyarrow",), "recordings as Parquet and Arrow tables"),
    "test": Extra(("pytest",), "tests of robot software"),
    "traffic": Extra(("shapely",), "traffic on paths in the plane"),
    "vda5050": Extra(("paho", "shapely"), "AGVs over MQTT"),
    "window": Extra(("webview",), "the page in its own window"),
    "xacro": Extra(("xacro",), "robot models from xacro files"),
    "zenoh": Extra(("zenoh",), "ROS 2 over Zenoh"),
}
"""All extras by their names in pyproject.toml."""


def is_installed(extra: str) -> bool:
    """Return whether all modules of an extra can be found; import none of them.

    Parameters
    ----------
    extra : str
        Name of the extra, a key of `EXTRAS`.

    Raises
    ------
    KeyError
        There is no such extra.
    """
    return all(is_there(module) for module in EXTRAS[extra].modules)


def is_there(module: str) -> bool:
    """Return whether a module can be found, without importing it.

    Use it for features that need only one module of an extra.

    Parameters
    ----------
    module : str
        Name of a top-level module.
    """
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        # A module that was put into `sys.modules` without an import, such as by a test,
        # has no spec.
        return module in sys.modules


def install_command(extras: Iterable[str]) -> str:
    """Return the pip command that installs extras into the running environment.

    The command installs from the checkout if botyard was installed from one.

    Parameters
    ----------
    extras : iterable of str
        Names of extras, in any order.

    Returns
    -------
    str
        Command line for a shell in the working folder.
    """
    names = ",".join(sorted(extras))
    checkout = _checkout()
    if checkout is None:
        source = "botyard"
    elif checkout == Path.cwd():
        source = "."
    else:
        source = str(checkout)

    return f'{_pip()} install "{source}[{names}]"'


def _checkout() -> Path | None:
    """Return the folder of the source checkout from which this package runs or was installed.

    None if the package was installed from a wheel.
    """
    folder = Path(__file__).resolve().parents[2]
    if (folder / "src" / "botyard").is_dir() and (folder / "pyproject.toml").is_file():
        return folder
    try:
        # pip writes this file for installations from a folder, editable ones included
        # (PEP 610).
        text = importlib.metadata.distribution("botyard").read_text("direct_url.json")
        url = urlparse(json.loads(text)["url"]) if text else None
    # If metadata is missing or broken, pip installs from the package index.
    except (
        importlib.metadata.PackageNotFoundError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
    ):
        return None

    if url is None or url.scheme != "file":
        return None
    folder = Path(unquote(url.path))
    return folder if (folder / "pyproject.toml").is_file() else None


def _pip() -> str:
    """Return the shortest command line for pip of the running environment."""
    prefix = Path(sys.prefix)
    # In an activated environment, plain `pip` belongs to that environment.
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == str(prefix):
        return "pip"
    program = prefix / ("Scripts" if os.name == "nt" else "bin") / "pip"
    if not program.exists():
        return f"{shlex.quote(sys.executable)} -m pip"
    try:
        return shlex.quote(str(program.relative_to(Path.cwd())))
    # The environment is not below the current folder.
    except ValueError:
        return shlex.quote(str(program))


def missing(extras: Iterable[str]) -> list[str]:
    """Return the extras that are not installed.

    Parameters
    ----------
    extras : iterable of str
        Names of extras, keys of `EXTRAS`.

    Returns
    -------
    list of str
        Missing extras, in the given order.

    Raises
    ------
    KeyError
        There is no such extra.
    """
    return [extra for extra in extras if not is_installed(extra)]


def lacking(what: str | Sequence[str], *extras: str) -> str:
    """Return the error message for features whose extras are missing.

    Parameters
    ----------
    what : str or sequence of str
        Requested feature or features.
    *extras : str
        Missing extras.

    Returns
    -------
    str
        Message with the command that installs the extras, and their remarks.
    """
    things = [what] if isinstance(what, str) else what
    needs = "needs" if len(things) == 1 else "need"
    names = _listed([f'"{name}"' for name in extras])
    s, is_, it = ("", "is", "it") if len(extras) == 1 else ("s", "are", "them")
    remarks = "".join(
        f" ({EXTRAS[name].remark})" for name in extras if EXTRAS[name].remark
    )
    return (
        f"{_listed(things)} {needs} the extra{s} {names}, which {is_} not installed; "
        f"to install {it}: {install_command(extras)}{remarks}"
    )


def _listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``a, b and c``.

    Parameters
    ----------
    words : sequence of str
        At least one word.
    """
    return (
        " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
    )


__all__ = [
    "EXTRAS",
    "Extra",
    "install_command",
    "is_installed",
    "is_there",
    "lacking",
    "missing",
]
