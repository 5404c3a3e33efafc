"""Stage world files: lexer and grammar of both dialects (formats §3.1, §3.2, §4).

A file is a sequence of properties (``word value``), entities (``type ( … )``), definitions (``define name base ( … )``) and includes.
Values are numbers, strings and tuples ``[ … ]``. What the properties mean is not this module's business: see `stagemodels`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from botyard.errors import ModelFileError

Value = float | str
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+)|(?P<newline>\n)|(?P<comment>\#[^\n]*)
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<word>[A-Za-z_][\w-]*(?:\[\d+\]|\.[A-Za-z_][\w-]*)*)
    |(?P<string>"[^"\n]*")|(?P<mark>[()\[\]])""",
    re.VERBOSE,
)
MAX_DEPTH = 32
"""Includes and nested entities beyond this are a circle or a mistake."""


class Token(NamedTuple):
    """A piece of the text: kind (``number``, ``word``, ``string`` or the mark itself), text without quotes, line."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Property:
    """A property: its values (one, or those of a tuple) and where it stands."""

    values: tuple[Value, ...]
    path: str
    line: int

    def fail(self, expected: str) -> ModelFileError:
        """An error about this value."""
        found = " ".join(str(v) for v in self.values)
        return ModelFileError(f"expected {expected}, found {found}", self.path, self.line)

    def numbers(self, n: int | None = None) -> tuple[float, ...]:
        """All values as numbers; with `n`, exactly so many.

        Raises
        ------
        ModelFileError
            They are not.
        """
        if any(isinstance(v, str) for v in self.values) or (n is not None and len(self.values) != n):
            raise self.fail("numbers" if n is None else f"{n} number{'s' if n > 1 else ''}")
        return tuple(float(v) for v in self.values)

    def number(self) -> float:
        """The one value as a number."""
        return self.numbers(1)[0]

    def string(self) -> str:
        """The one value as a text."""
        if len(self.values) != 1:
            raise self.fail("one text")
        return str(self.values[0])


@dataclass(slots=True)
class Entity:
    """A model instance, a child, or the body of a definition.

    Attributes
    ----------
    type_name : str
        What it is or is based on.
    properties : dict of str to Property
        The last of each name.
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


@dataclass(slots=True)
class WorldFile:
    """What a world file says.

    Attributes
    ----------
    properties : dict of str to Property
        Global settings.
    definitions : dict of str to Entity
        Macros by name; the first definition of a name wins (formats §3.2).
    entities : list of Entity
        Models that are to be made.
    shadowed : list of (str, str, int)
        Later definitions of a taken name: name, file, line.
    allowed : callable
        Whether a file may be included.
    """

    properties: dict[str, Property] = field(default_factory=dict)
    definitions: dict[str, Entity] = field(default_factory=dict)
    entities: list[Entity] = field(default_factory=list)
    shadowed: list[tuple[str, str, int]] = field(default_factory=list)
    allowed: Callable[[Path], bool] = lambda _path: True


def tokens(text: str, path: str) -> Iterator[Token]:
    """Cut a text into tokens.

    Raises
    ------
    ModelFileError
        Something that no token begins with.
    """
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            snippet = text[at : at + 20].split("\n")[0]
            raise ModelFileError(f'expected a word, number, "text" or bracket, found {snippet!r}', path, line)
        kind, piece = str(match.lastgroup), match.group()
        if kind == "newline":
            line += 1
        elif kind == "mark":
            yield Token(piece, piece, line)
        elif kind not in ("space", "comment"):
            yield Token(kind, piece.strip('"') if kind == "string" else piece, line)
        at = match.end()


class _Parser:
    def __init__(self, text: str, path: Path, world: WorldFile, depth: int) -> None:
        self._path = path
        self._tokens = list(tokens(text, str(path)))
        self._at = 0
        self._world = world
        self._depth = depth

    def _fail(self, expected: str, token: Token | None) -> ModelFileError:
        last = self._tokens[-1].line if self._tokens else 1
        found = f'"{token.text}"' if token else "the end of the file"
        return ModelFileError(f"expected {expected}, found {found}", self._path, token.line if token else last)

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, kind: str, expected: str) -> Token:
        token = self._peek()
        if token is None or token.kind != kind:
            raise self._fail(expected, token)
        self._at += 1
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
        if self._depth >= MAX_DEPTH:
            raise ModelFileError(f'include "{name.text}": files include each other in a circle', self._path, name.line)
        folders = [self._path.parent, *(Path(p) for p in os.environ.get("STAGEPATH", "").split(os.pathsep) if p)]
        for folder in folders:
            if self._world.allowed(folder / name.text) and (folder / name.text).is_file():
                _read_into(folder / name.text, self._world, self._depth + 1)
                return
        raise ModelFileError(f'include "{name.text}": no such file', self._path, name.line)

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
        if depth > MAX_DEPTH:
            raise ModelFileError(f"entities are nested more than {MAX_DEPTH} deep", self._path, type_name.line)
        while (token := self._peek()) is not None and token.kind != ")":
            word = self._take("word", 'a property, a model, or ")"')
            following = self._peek()
            if following is not None and following.kind == "(":
                entity.children.append(self._entity(word, depth + 1))
            else:
                entity.properties[word.text] = self._value(word)
        self._take(")", f'")" that closes {type_name.text} of line {type_name.line}')
        return entity

    def _value(self, name: Token) -> Property:
        token = self._peek()
        if token is None or token.kind not in ("number", "string", "["):
            raise self._fail(f"the value of {name.text}", token)
        self._at += 1
        if token.kind != "[":
            return Property((_plain(token),), str(self._path), token.line)
        values: list[Value] = []
        while (item := self._peek()) is not None and item.kind in ("number", "string"):
            values.append(_plain(item))
            self._at += 1
        self._take("]", f'numbers, texts, or "]" of {name.text}')
        return Property(tuple(values), str(self._path), token.line)


def _plain(token: Token) -> Value:
    return float(token.text) if token.kind == "number" else token.text


def _read_into(path: Path, world: WorldFile, depth: int) -> None:
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror}", path) from None
    _Parser(text, path, world, depth).run()


def read(path: str | Path) -> WorldFile:
    """Read a world file and what it includes.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    world = WorldFile()
    _read_into(Path(path), world, 0)
    return world


def parse(text: str, path: str | Path = "world", allowed: Callable[[Path], bool] = lambda _path: True) -> WorldFile:
    """Read a world file from a text; `path` is for messages and for relative includes, which must be `allowed`.

    Raises
    ------
    ModelFileError
        With file, line, what was expected and what was found.
    """
    world = WorldFile(allowed=allowed)
    _Parser(text, Path(path), world, 0).run()
    return world


__all__ = ["Entity", "Property", "WorldFile", "parse", "read", "tokens"]
