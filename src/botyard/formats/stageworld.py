"""Lexer and parser of Stage world files of both dialects (formats §3.1, §3.2, §4).

A file is a sequence of properties (``word value``), entities (``type ( … )``),
definitions (``define name base ( … )``) and includes. Values are numbers, strings and
tuples ``[ … ]``. `stagemodels` interprets the properties.
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
"""Number of tokens that are counted against the budget at a time."""


class Token(NamedTuple):
    """Token of a Stage world file.

    Attributes
    ----------
    kind : str
        ``number``, ``word``, ``string``, or the mark itself.
    text : str
        Text without quotes.
    line : int
        Line in the file.
    """

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Property:
    """Property in a Stage world file: its values and its position.

    A property has one value, or the numbers and texts of a tuple. Like Stage, readers
    use the values that they need; a tuple may hold more.

    Attributes
    ----------
    values : tuple of float or str
        Values, in order.
    path, line : str, int
        Location of the property.
    folder : str
        Folder of the world file that includes the file. File names in a world are
        relative to it.
    """

    values: tuple[Value, ...]
    path: str
    line: int
    folder: str = ""

    def fail(self, expected: str) -> ModelFileError:
        """Return an error about the value of this property; the caller raises it."""
        found = shown(" ".join(str(v) for v in self.values[:20]))
        return ModelFileError(
            f"expected {expected}, found {found}", self.path, self.line
        )

    def numbers(self, n: int | None = None) -> tuple[float, ...]:
        """Return the values as numbers: all of them, or the first `n`.

        Raises
        ------
        ModelFileError
            A value is not a finite number, or there are fewer than `n` values.
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
        """Return the first value of the property as a number."""
        return self.numbers(1)[0]

    def string(self) -> str:
        """Return the first value of the property as a text."""
        if not self.values:
            raise self.fail("a text")
        return str(self.values[0])


@dataclass(slots=True)
class Entity:
    """Entity in a Stage world file: a model, a child, or the body of a definition.

    Attributes
    ----------
    type_name : str
        Type, or the definition that it is based on.
    properties : dict of str to Property
        Properties by name; the last one of a name counts.
    children : list of Entity
        Children, in order.
    path, line : str, int
        Location of its first line.
    """

    type_name: str
    path: str
    line: int
    properties: dict[str, Property] = field(default_factory=dict)
    children: list[Entity] = field(default_factory=list)


def any_file(_path: Path) -> bool:
    """Return True: a world may refer to any file."""
    return True


@dataclass(slots=True)
class WorldFile:
    """Contents of a Stage world file with its includes.

    Attributes
    ----------
    properties : dict of str to Property
        Global settings.
    definitions : dict of str to Entity
        Definitions by name; the first definition of a name wins (formats §3.2).
    entities : list of Entity
        Models to be instantiated.
    shadowed : list of (str, str, int)
        Later definitions of a name that is already defined: name, file, line.
    meter : Meter
        Counts the contents of all files together.
    allowed : callable
        Returns whether the world may include a file or use it as a picture.
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
    """Return the path of a file that a world names: an include or a picture.

    A name is relative to the folder of the world, as in Stage, even in a file that the
    world includes. The next candidates are the folder of the file `path` that has the
    name, and the bare name in the folders of ``STAGEPATH``. Worlds that were written on
    another computer need the last candidate.

    Parameters
    ----------
    name : str
        Name as written.
    folder : Path
        Folder of the requested world file.
    path : Path
        File that has the name.
    allowed : callable
        Returns whether a file may be read.
    """
    # The order is Stage's; the included file's own folder is an addition.
    tried = [folder / name, path.parent / name]
    for other in filter(None, os.environ.get("STAGEPATH", "").split(os.pathsep)):
        tried += [Path(other) / name, Path(other) / PureWindowsPath(name).name]
    for found in tried:
        try:
            # The check is first, so that no access to a refused file happens.
            if allowed(found) and os.path.isfile(found):
                return found
        except (OSError, ValueError):
            # The name is too long, or has a null character.
            continue

    return None


def tokens(text: str, path: str) -> Iterator[Token]:
    """Return the tokens of a Stage world file.

    Raises
    ------
    ModelFileError
        No token can start with a character of the text.
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
        # A newline yields no token; it only advances the line number for messages.
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
        # File names are relative to the outermost world, not to the included file.
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
        # Counting every token would slow the parser down.
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

        # `samefile` also finds a circle through links and different spellings of a
        # path.
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
            # As in Stage, the first definition wins, so that users can override stock
            # models.
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
    """Read and parse a Stage world file and its includes.

    Raises
    ------
    ModelFileError
        A file is invalid. The error names the file, the line, the expected and the
        found text.
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
    """Parse the text of a Stage world file.

    Parameters
    ----------
    text : str
        Contents of the file.
    path : str or Path
        File for messages, to which the names in the text are relative.
    allowed : callable
        Returns whether a named file may be read.
    budget : Budget
        Limits.

    Raises
    ------
    ModelFileError
        A file is invalid. The error names the file, the line, the expected and the
        found text.
    """
    world = WorldFile(meter=Meter(budget, str(path), ModelFileError), allowed=allowed)
    around = (Path(path),) if os.path.isfile(path) else ()
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
