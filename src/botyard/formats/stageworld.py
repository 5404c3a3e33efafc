"""Stage world files: lexer and parser of both dialects (formats §3.1, §3.2, §4).

A file is a sequence of properties (``word value``), entities (``type ( … )``),
definitions (``define name base ( … )``) and includes. Values are numbers, strings and
tuples ``[ … ]``. What the properties mean is not this module's business: see
`stagemodels`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Final, NamedTuple

from botyard.errors import ModelFileError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.names import shown

Value = float | str
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+)|(?P<newline>\n)|(?P<comment>\#[^\n]*)
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<word>[A-Za-z_][\w-]*(?:\[\d+\]|\.[A-Za-z_][\w-]*)*)
    |(?P<string>"[^"\n]*")|(?P<mark>[()\[\]])""",
    re.VERBOSE,
)
_COUNT_EVERY: Final = 256
"""Tokens are counted against the budget in groups of this size."""


class Token(NamedTuple):
    """A token: kind (``number``, ``word``, ``string`` or the mark itself), text without
    quotes, line.
    """

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Property:
    """A property: its values (one, or the numbers and texts of a tuple) and where it
    stands.

    Like Stage, readers look at the values that they need: a tuple may hold more.

    Attributes
    ----------
    values : tuple of float or str
        In their order.
    path, line : str, int
        The file that holds it.
    folder : str
        Folder of the world file that includes this one: files that a world names are
        relative to it.
    """

    values: tuple[Value, ...]
    path: str
    line: int
    folder: str = ""

    def fail(self, expected: str) -> ModelFileError:
        """An error about this value."""
        found = shown(" ".join(str(v) for v in self.values[:20]))
        return ModelFileError(
            f"expected {expected}, found {found}", self.path, self.line
        )

    def numbers(self, n: int | None = None) -> tuple[float, ...]:
        """All values as numbers; with `n`, the first `n` of them.

        Raises
        ------
        ModelFileError
            They are not numbers, or there are fewer.
        """
        values = self.values[:n]
        if any(isinstance(v, str) for v in values) or (
            n is not None and len(values) < n
        ):
            raise self.fail(
                "numbers" if n is None else f"{n} number{'s' if n > 1 else ''}"
            )

        found = tuple(float(v) for v in values)
        if not all(map(math.isfinite, found)):
            raise self.fail("finite numbers")
        return found

    def number(self) -> float:
        """The first value as a number."""
        return self.numbers(1)[0]

    def string(self) -> str:
        """The first value as a text."""
        if not self.values:
            raise self.fail("a text")
        return str(self.values[0])


@dataclass(slots=True)
class Entity:
    """A model instance, a child, or the body of a definition.

    Attributes
    ----------
    type_name : str
        Its type, or the definition that it is based on.
    properties : dict of str to Property
        By name; the last one of a name counts.
    children : list of Entity
        In their order.
    path, line : str, int
        Where it begins.
    """

    type_name: str
    path: str
    line: int
    properties: dict[str, Property] = field(default_factory=dict)
    children: list[Entity] = field(default_factory=list)


def any_file(_path: Path) -> bool:
    """Allow a world to name every file."""
    return True


@dataclass(slots=True)
class WorldFile:
    """A parsed world file.

    Attributes
    ----------
    properties : dict of str to Property
        Global settings.
    definitions : dict of str to Entity
        Macros by name; the first definition of a name wins (formats §3.2).
    entities : list of Entity
        Models to be instantiated.
    shadowed : list of (str, str, int)
        Later definitions of a taken name: name, file, line.
    meter : Meter
        Counts what is read, of all files together.
    allowed : callable
        Whether the world may include a file, or use it as a picture.
    """

    properties: dict[str, Property] = field(default_factory=dict)
    definitions: dict[str, Entity] = field(default_factory=dict)
    entities: list[Entity] = field(default_factory=list)
    shadowed: list[tuple[str, str, int]] = field(default_factory=list)
    meter: Meter = field(
        default_factory=lambda: Meter(Budget(), "world", ModelFileError)
    )
    allowed: Callable[[Path], bool] = any_file


def find_file(
    name: str, folder: Path, path: Path, allowed: Callable[[Path], bool] = any_file
) -> Path | None:
    """The file that a world names: an include or a picture.

    A name is relative to the folder of the world, as in Stage, also in a file that the
    world includes. After that this looks beside the file `path` that holds the name,
    then for the bare name in the folders of ``STAGEPATH``, where Stage finds what was
    written on another computer.

    Parameters
    ----------
    name : str
        As written.
    folder : Path
        Folder of the world file that was asked for.
    path : Path
        The file that holds the name.
    allowed : callable
        Whether a file may be read.
    """
    tried = [folder / name, path.parent / name]
    for other in filter(None, os.environ.get("STAGEPATH", "").split(os.pathsep)):
        tried += [Path(other) / name, Path(other) / PureWindowsPath(name).name]
    for found in tried:
        try:
            if allowed(found) and found.is_file():
                return found
        except (OSError, ValueError):
            # the name is too long, or has a null character
            continue

    return None


def tokens(text: str, path: str) -> Iterator[Token]:
    """Cut a text into tokens.

    Raises
    ------
    ModelFileError
        A character that begins no token.
    """
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            snippet = text[at : at + 20].split("\n")[0]
            raise ModelFileError(
                f'expected a word, number, "text" or bracket, found {snippet!r}',
                path,
                line,
            )

        kind, piece = str(match.lastgroup), match.group()
        if kind == "newline":
            line += 1
        elif kind == "mark":
            yield Token(piece, piece, line)
        elif kind not in ("space", "comment"):
            yield Token(kind, piece.strip('"') if kind == "string" else piece, line)

        at = match.end()


class _Parser:
    def __init__(
        self, text: str, path: Path, world: WorldFile, around: tuple[Path, ...]
    ) -> None:
        self._path = path
        self._tokens = tokens(text, str(path))
        self._world = world
        self._around = around
        self._folder = (around[0] if around else path).parent
        self._line = 1
        self._count = 0
        self._next: Token | None = next(self._tokens, None)

    def _fail(self, expected: str, token: Token | None) -> ModelFileError:
        found = f'"{shown(token.text)}"' if token else "the end of the file"
        return ModelFileError(
            f"expected {expected}, found {found}",
            self._path,
            token.line if token else self._line,
        )

    def _peek(self) -> Token | None:
        return self._next

    def _advance(self, token: Token) -> None:
        self._line = token.line
        self._next = next(self._tokens, None)
        self._count += 1
        if self._count % _COUNT_EVERY == 0:
            self._world.meter.add("entities", _COUNT_EVERY, token.line, str(self._path))

    def _take(self, kind: str, expected: str) -> Token:
        token = self._next
        if token is None or token.kind != kind:
            raise self._fail(expected, token)
        self._advance(token)
        return token

    def run(self) -> None:
        while self._peek() is not None:
            word = self._take("word", "a word")
            if word.text == "include":
                self._include(self._take("string", 'a file name in "quotes"'))
            elif word.text == "define":
                self._define()
            else:
                following = self._peek()
                if following is not None and following.kind == "(":
                    self._world.entities.append(self._entity(word, 0))
                else:
                    self._world.properties[word.text] = self._value(word)

    def _include(self, name: Token) -> None:
        self._world.meter.add("files", 1, name.line, str(self._path))
        path = find_file(name.text, self._folder, self._path, self._world.allowed)
        if path is None:
            raise ModelFileError(
                f'include "{shown(name.text)}": no such file', self._path, name.line
            )

        if any(path.samefile(other) for other in self._around):
            raise ModelFileError(
                f'include "{shown(name.text)}": files include each other in a circle',
                self._path,
                name.line,
            )

        self._world.meter.check(
            "nesting", len(self._around) + 1, name.line, str(self._path)
        )
        _read_into(path, self._world, self._around)

    def _define(self) -> None:
        name = self._take("word", "the name of the definition")
        base = self._take("word", "the type that it is based on")
        body = self._entity(base, 0)
        if name.text in self._world.definitions:
            self._world.shadowed.append((name.text, str(self._path), name.line))
        else:
            self._world.definitions[name.text] = body

    def _entity(self, type_name: Token, depth: int) -> Entity:
        entity = Entity(type_name.text, str(self._path), type_name.line)
        self._take("(", '"("')
        self._world.meter.check("nesting", depth, type_name.line, str(self._path))
        while (token := self._peek()) is not None and token.kind != ")":
            word = self._take("word", 'a property, a model, or ")"')
            following = self._peek()
            if following is not None and following.kind == "(":
                entity.children.append(self._entity(word, depth + 1))
            else:
                entity.properties[word.text] = self._value(word)

        self._take(
            ")", f'")" that closes {shown(type_name.text)} of line {type_name.line}'
        )
        return entity

    def _value(self, name: Token) -> Property:
        token = self._peek()
        if token is None or token.kind not in ("number", "string", "["):
            raise self._fail(f"the value of {shown(name.text)}", token)
        self._advance(token)
        if token.kind != "[":
            return Property(
                (_plain(token),), str(self._path), token.line, str(self._folder)
            )

        values: list[Value] = []
        while (item := self._peek()) is not None and item.kind in ("number", "string"):
            values.append(_plain(item))
            self._advance(item)

        self._take("]", f'numbers, texts, or "]" of {shown(name.text)}')
        return Property(tuple(values), str(self._path), token.line, str(self._folder))


def _plain(token: Token) -> Value:
    return float(token.text) if token.kind == "number" else token.text


def _read_into(path: Path, world: WorldFile, around: tuple[Path, ...] = ()) -> None:
    text = read_bytes(path, world.meter, ModelFileError).decode(
        "utf-8", errors="replace"
    )
    _Parser(text, path, world, (*around, path)).run()


def read(path: str | Path, budget: Budget = Budget()) -> WorldFile:
    """Read a world file and what it includes.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    world = WorldFile(meter=Meter(budget, str(path), ModelFileError))
    _read_into(Path(path), world)
    return world


def parse(
    text: str,
    path: str | Path = "world",
    allowed: Callable[[Path], bool] = any_file,
    budget: Budget = Budget(),
) -> WorldFile:
    """Read a world file from a text; `path` is for messages and for the files that it
    names, which must be `allowed`.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    world = WorldFile(meter=Meter(budget, str(path), ModelFileError), allowed=allowed)
    around = (Path(path),) if Path(path).is_file() else ()
    _Parser(text, Path(path), world, around).run()
    return world


__all__ = [
    "Entity",
    "Property",
    "WorldFile",
    "any_file",
    "find_file",
    "parse",
    "read",
    "tokens",
]
