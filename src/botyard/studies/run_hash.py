"""The key of a run: a hash of all that its result depends on, as far as that can be
known beforehand.

That is: the values of its parameters, its seed, what the plan says of a run, the limit
of simulated time, the version of botyard, and the contents of the files that it names:
the map, the function's module, controllers, programs, tasks, and those under ``files``;
with Python files the modules beside them that they import (`botyard.studies.imports`).
What these read in their turn is not known; ``files`` is the place for it.
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
from botyard.formats.registry import find_map
from botyard.names import shown
from botyard.processes.codeload import SEPARATOR, is_code
from botyard.studies.expand import points_of
from botyard.studies.imports import imported_files
from botyard.studies.plan import SEED, Plan
from botyard.studies.run_spec import filled, names_in, strings_of
from botyard.version import __version__

MAX_FILE_BYTES: Final = 2**32
"""Largest file whose contents are a part of the key."""
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a plan.

    Attributes
    ----------
    key : str
        Its key, 64 hexadecimal digits.
    values : dict
        Values of its parameters.
    seed : int
        Its seed.
    """

    key: str
    values: dict[str, Any]
    seed: int


def runs_of(plan: Plan) -> list[Run]:
    """All runs of a plan, in its order.

    Raises
    ------
    PlanError
        A file of ``files`` is not there, or one that the plan names cannot be read.
    CommandLineError
        Sobol points are asked for, and SciPy is not installed.
    """
    files = _Files(plan)
    listed = [files.listed(name) for name in plan.keys.files]
    fixed = [
        digest.hex() for digest in files.fixed
    ]  # as a list: which of the texts names a file counts, too
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
    """Files beside the plan, or elsewhere, that its runs name; those of installed
    modules and shipped maps are none of them.

    Raises
    ------
    PlanError
        A file of ``files`` is not there, or one that the plan names cannot be read.
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
    """Contents of the files that runs name."""

    def __init__(self, plan: Plan) -> None:
        self._folder = plan.folder
        texts = sorted(set(strings_of(plan.setup)))
        self._map = plan.setup.get("map")
        self._found: dict[str, bytes] = {}
        self._contents: dict[Path, bytes] = {}
        self._codes: dict[tuple[Path, Path], bytes] = {}
        self.named: set[Path] = set()
        """Files that were found by their paths, or as modules beside the plan."""
        self.fixed = [
            self._digest(filled(text, {}), text == self._map)
            for text in texts
            if not names_in(text)
        ]
        self._open = [text for text in texts if names_in(text)]

    @property
    def depend_on_runs(self) -> bool:
        """Whether parameters name files."""
        return bool(self._open)

    def of(self, values: dict[str, Any], seed: int) -> Iterator[bytes]:
        """Digests of the files that parameters of a run name."""
        for text in self._open:
            value = filled(text, {**values, SEED: seed})
            for one in strings_of(value):
                yield self._digest(one, text == self._map)

    def listed(self, name: str) -> str:
        """Digest of a file that the plan lists."""
        path = self._folder / name
        try:
            is_there = path.is_file()
        except (OSError, ValueError):  # such as too long a name
            is_there = False

        if not is_there:
            raise PlanError(f'files: there is no file "{shown(name)}"', self._folder)
        return self._named(path, path.parent).hex()

    def _digest(self, text: str, is_map: bool) -> bytes:
        """Digest of the file that a text names; empty: it names none."""
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
        """The file that a text names; with the folder that its imports are looked for
        in, if it is not of an installed package.
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
        except (OSError, ValueError, MapError):
            pass

        return None, None

    def _named(self, path: Path, folder: Path) -> bytes:
        """Digest of a file that the plan names; of Python with the modules that it
        imports from a folder.
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
        path = path.resolve()
        found = self._contents.get(path)
        if found is None:
            try:
                if path.stat().st_size > MAX_FILE_BYTES:
                    raise PlanError(
                        f"expected a file of at most {MAX_FILE_BYTES} bytes", path
                    )

                with path.open("rb") as file:
                    found = self._contents[path] = hashlib.file_digest(
                        file, "sha256"
                    ).digest()
            except OSError as error:
                raise PlanError(f"it cannot be read: {error.strerror}", path) from None

        return found


def module_file(name: str, folder: Path) -> Path | None:
    """The file of a module beside the plan, or of an installed one; nothing is run for
    that. None: it is not known.
    """
    path = folder.joinpath(*name.split("."))
    for one in (path.with_suffix(".py"), path / "__init__.py"):
        if one.is_file():
            return one

    if "." in name and name not in sys.modules:
        # to find it, its package would have to be run
        return None

    spec = importlib.util.find_spec(name)
    return (
        Path(spec.origin)
        if spec is not None and spec.origin and spec.has_location
        else None
    )


__all__ = ["MAX_FILE_BYTES", "Run", "files_of", "module_file", "runs_of"]
