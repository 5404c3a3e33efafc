"""Hash of everything that a run's result depends on, as far as it is known in advance.

The hash covers the run's parameters and seed, the plan's description of a run, the
limit of simulated time, the version of botyard, and the contents of the files that the
plan names: map, module of the function, controllers, programs, traffic tasks and the
entries of ``files``. For Python files it covers the local modules that they import
(`botyard.studies.imports`). It cannot cover data that this code reads; list such data
under ``files`` in the plan.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from botyard.errors import MapError, PlanError
from botyard.formats.mapsearch import find_map
from botyard.names import shown
from botyard.processes.codeload import SEPARATOR, is_code
from botyard.studies.expand import points_of
from botyard.studies.imports import imported_files
from botyard.studies.plan import SEED, Plan
from botyard.studies.run_spec import filled, names_in, strings_of
from botyard.version import __version__

MAX_FILE_BYTES: Final = 2**32
"""Maximum size of a file whose contents are hashed, bytes."""
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a plan.

    Attributes
    ----------
    key : str
        Hash of the run, 64 hexadecimal digits.
    values : dict
        Parameter values of the run.
    seed : int
        Seed of the run.
    """

    key: str
    values: dict[str, Any]
    seed: int


def runs_of(plan: Plan) -> list[Run]:
    """Return all runs of a plan, in the plan's order.

    Parameters
    ----------
    plan : Plan
        The plan. The files that it names are read, each at most once.

    Returns
    -------
    list of Run
        One run per point and seed, in the order of `botyard.studies.expand.points_of`.

    Raises
    ------
    PlanError
        A file listed under ``files`` does not exist, or a named file cannot be read.
    CommandLineError
        The plan asks for a Sobol sequence, and SciPy is not installed.
    """
    files = _Files(plan)
    listed = [files.listed(name) for name in plan.keys.files]
    fixed = [
        digest.hex()
        for digest in files.fixed
        # Keep a list, not one digest of all files: it also matters which text of the
        # plan names which file.
    ]
    # Hashing the common part once and copying its state keeps a million runs fast.
    common = hashlib.sha256(
        _encode([plan.setup, plan.keys.limits.simulated, __version__, listed, fixed])
    )
    runs = []
    for values, seed in points_of(plan):
        one = common.copy()
        one.update(
            _encode([values, seed, [digest.hex() for digest in files.of(values, seed)]])
        )
        runs.append(Run(one.hexdigest(), values, seed))

    return runs


def files_of(plan: Plan) -> set[Path]:
    """Return the local files that the runs of a plan name.

    Parameters
    ----------
    plan : Plan
        The plan. If file names contain parameters, all of its runs are expanded.

    Returns
    -------
    set of Path
        Paths as named in the plan, joined with its folder, and the local modules that
        they import. Files of installed packages and maps shipped with botyard are not
        included.

    Raises
    ------
    PlanError
        A file listed under ``files`` does not exist, or a named file cannot be read.
    """
    files = _Files(plan)
    for name in plan.keys.files:
        files.listed(name)
    if files.depend_on_runs:
        for values, seed in points_of(plan):
            for _ in files.of(values, seed):
                pass

    return files.named


class _Files:
    """Cached digests of the files that runs name.

    Parameters
    ----------
    plan : Plan
        The plan. Files whose names contain no parameter are read at once.

    Raises
    ------
    PlanError
        A named file is too large or cannot be read.
    """

    def __init__(self, plan: Plan) -> None:
        self._folder = plan.folder
        texts = sorted(set(strings_of(plan.setup)))
        self._map = plan.setup.get("map")
        self._found: dict[str, bytes] = {}
        self._contents: dict[Path, bytes] = {}
        self._codes: dict[tuple[Path, Path], bytes] = {}
        self.named: set[Path] = set()
        """Files found by path, and local modules that they import."""
        # Texts without parameters name the same files in every run: hash these once.
        self.fixed = [
            self._digest(filled(text, {}), text == self._map)
            for text in texts
            if not names_in(text)
        ]
        self._open = [text for text in texts if names_in(text)]

    @property
    def depend_on_runs(self) -> bool:
        """Whether parameters appear in file names, so that runs may name different
        files.
        """
        return bool(self._open)

    def of(self, values: dict[str, Any], seed: int) -> Iterator[bytes]:
        """Yield the digests of the files that a run names through its parameters.

        Parameters
        ----------
        values : dict
            Parameter values of the run.
        seed : int
            Seed of the run.

        Yields
        ------
        bytes
            SHA-256 digest; empty for a text that names no file. The number of digests
            and their order depend on the plan and the values only.
        """
        for text in self._open:
            value = filled(text, {**values, SEED: seed})
            for one in strings_of(value):
                yield self._digest(one, text == self._map)

    def listed(self, name: str) -> str:
        """Return the digest of a file listed under ``files``, as hexadecimal digits.

        Parameters
        ----------
        name : str
            Path in the plan, relative to its folder.

        Raises
        ------
        PlanError
            The file does not exist, is too large or cannot be read.
        """
        path = self._folder / name
        try:
            is_there = path.is_file()
        # For example, the name is longer than the file system allows.
        except (OSError, ValueError):
            is_there = False

        if not is_there:
            raise PlanError(
                f'files: expected an existing file, found "{shown(name)}"', self._folder
            )
        return self._named(path, path.parent).hex()

    def _digest(self, text: str, is_map: bool) -> bytes:
        """Return the digest of the file that a text names.

        Parameters
        ----------
        text : str
            Text of the plan, with parameters filled in.
        is_map : bool
            Whether the text is the map, so that it may name a shipped one.

        Returns
        -------
        bytes
            The digest; empty if the text names no file.
        """
        found = self._found.get(text)
        if found is None:
            path, folder = self._path(text, is_map)
            if path is None:
                found = b""
            elif folder is None:
                found = self._content(path)
            else:
                found = self._named(path, folder)

            self._found[text] = found

        return found

    def _path(self, text: str, is_map: bool) -> tuple[Path | None, Path | None]:
        """Return the file that a text names, and where its imports are looked up.

        Parameters
        ----------
        text : str
            Path, or code as ``module:name`` or ``file.py:name``.
        is_map : bool
            Whether the text is the map, so that it may name a shipped one.

        Returns
        -------
        path : Path or None
            The file; None: the text names none.
        folder : Path or None
            Folder of absolute imports. It is None for a file of an installed package;
            the user is responsible for the versions of installed packages.
        """
        where = text.rpartition(SEPARATOR)[0] if is_code(text) else text
        try:
            path = self._folder / where
            if where and path.is_file():
                return path, path.parent
            if where is not text and not where.endswith(".py"):
                module = module_file(where, self._folder)
                is_own = module is not None and module.is_relative_to(self._folder)
                return module, self._folder if is_own else None

            if is_map:
                return find_map(text), None
        # Most texts of a plan are not file names; such a text simply names no file.
        except (OSError, ValueError, MapError):
            pass

        return None, None

    def _named(self, path: Path, folder: Path) -> bytes:
        """Return the digest of a named file.

        Parameters
        ----------
        path : Path
            The file, which is added to `named`.
        folder : Path
            Folder in which the absolute imports of a Python file are looked up. Its
            local imports are part of the digest.

        Raises
        ------
        PlanError
            A file is too large or cannot be read.
        """
        self.named.add(path)
        if path.suffix != ".py":
            return self._content(path)
        found = self._codes.get((path, folder))
        if found is None:
            digest = hashlib.sha256(content := self._content(path))
            imported = sorted(imported_files(path, folder))
            for one in imported:
                digest.update(
                    _encode(
                        [one.relative_to(folder).as_posix(), self._content(one).hex()]
                    )
                )

            self.named.update(imported)
            found = self._codes[path, folder] = digest.digest() if imported else content

        return found

    def _content(self, path: Path) -> bytes:
        """Return the digest of a file's contents.

        Parameters
        ----------
        path : Path
            The file. Several names of one file are read only once.

        Raises
        ------
        PlanError
            The file is too large or cannot be read.
        """
        path = path.resolve()
        found = self._contents.get(path)
        if found is None:
            try:
                if path.stat().st_size > MAX_FILE_BYTES:
                    raise PlanError(
                        f"expected a file of at most {MAX_FILE_BYTES} bytes, found a larger one",
                        path,
                    )

                with path.open("rb") as file:
                    found = self._contents[path] = hashlib.file_digest(
                        file, "sha256"
                    ).digest()
            except OSError as error:
                raise PlanError(
                    f"cannot read the file: {error.strerror}", path
                ) from None

        return found


def module_file(name: str, folder: Path) -> Path | None:
    """Return the file of a local or installed module without importing it.

    Parameters
    ----------
    name : str
        Name of the module, with dots.
    folder : Path
        Folder of local modules, which take precedence over installed ones.

    Returns
    -------
    Path or None
        The file; None: there is no such module, it is built in, or it is a submodule of
        an installed package that has not been imported.
    """
    path = folder.joinpath(*name.split("."))
    for one in (path.with_suffix(".py"), path / "__init__.py"):
        if one.is_file():
            return one

    if "." in name and name not in sys.modules:
        # Looking up a submodule would import its package, which runs foreign code.
        return None

    spec = importlib.util.find_spec(name)
    return (
        Path(spec.origin)
        if spec is not None and spec.origin and spec.has_location
        else None
    )


__all__ = ["MAX_FILE_BYTES", "Run", "files_of", "module_file", "runs_of"]
