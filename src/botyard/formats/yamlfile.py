"""YAML files that are checked against a structure: errors name the line, what was expected, and a word that may have been meant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
import yaml

from botyard.errors import FormatError, did_you_mean

T = TypeVar("T")
MAX_NODES: Final = 5_000_000
"""A file with more values, aliases written out, is refused: a few lines of aliases can stand for billions."""
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class YamlFile:
    """The contents of a YAML file, and where each value stands.

    Parameters
    ----------
    text : str
        The file.
    path : str
        Its name, for messages.
    error : type of FormatError
        What is raised.

    Raises
    ------
    FormatError
        Not YAML, not finite numbers, too large; with the line.
    """

    def __init__(self, text: str, path: str, error: type[FormatError]) -> None:
        self._path = path
        self._error = error
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            self._root = node
            if node is not None:
                self._measure(node)
            self.data: Any = None if node is None else loader.construct_document(node)
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark
            raise error(f"not YAML: {problem.problem}", path, None if mark is None else mark.line + 1) from None
        except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as problem:
            raise error(f"not YAML: {' '.join(str(problem).split())[:200]}", path) from None

    def _measure(self, root: Any) -> None:
        sizes: dict[int, int] = {}

        def size(node: Any) -> int:
            key = id(node)
            known = sizes.get(key)
            if known is not None:
                if known < 0:
                    raise self._error("a value that contains itself", self._path, node.start_mark.line + 1)
                return known
            sizes[key] = -1
            total = 1
            if isinstance(node, yaml.SequenceNode):
                total += sum(size(child) for child in node.value)
            elif isinstance(node, yaml.MappingNode):
                total += sum(size(k) + size(v) for k, v in node.value)
            elif node.tag == "tag:yaml.org,2002:float" and node.value.lower().lstrip("+-") in (".inf", ".nan"):
                raise self._error(f"expected a finite number, found {node.value}", self._path, node.start_mark.line + 1)
            if total > MAX_NODES:
                raise self._error(f"more than {MAX_NODES} values", self._path)
            sizes[key] = total
            return total

        size(root)

    def line_of(self, where: str, key: str = "") -> int:
        """The line of a value by its path, for example ``$.robots[0].pose[1]``, or of a key of it; else of what is around it."""
        node, line = self._root, 1
        steps = [m[1] if m[1] is not None else int(m[2]) for m in _STEP.finditer(where) if m[2] != "..."]
        for step in [*steps, *([key] if key else [])]:
            found = None
            if isinstance(node, yaml.MappingNode):
                for k, v in node.value:
                    if k.value == str(step):
                        found, line = v, k.start_mark.line + 1
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = node.value[step]
                line = found.start_mark.line + 1
            if found is None:
                return line
            node = found
        return line

    def fail(self, where: str, reason: str, key: str = "") -> FormatError:
        """An error about the value at a path."""
        place = where.removeprefix("$").removeprefix(".")
        return self._error(f"{place}: {reason}" if place else reason, self._path, self.line_of(where, key))

    def convert(self, kind: type[T], known: Iterable[str] = ()) -> T:
        """The contents as a structure; `known` are words that may have been meant.

        Raises
        ------
        FormatError
            With the line, what was expected and what was found.
        """
        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as problem:
            reason, _, place = str(problem).partition(" - at `")
            where = place.rstrip("`") or "$"
            field = re.search(r"unknown field `(.*)`", reason)
            if field:
                hint = did_you_mean(field[1], known)
                raise self.fail(where, f'there is no key "{field[1]}" here{hint}', field[1]) from None
            missing = re.search(r"missing required field `(.*)`", reason)
            if missing:
                raise self.fail(where, f'expected the key "{missing[1]}", found none') from None
            raise self.fail(where, _in_words(reason)) from None


def _in_words(reason: str) -> str:
    """What msgspec says, in the words of YAML."""
    words = {
        "`array`": "a list", "`object`": "keys and values", "`str`": "a text", "`int`": "a whole number", "`float`": "a number",
        "`bool`": "true or false", "`null`": "nothing",
    }  # fmt: skip
    for theirs, ours in words.items():
        reason = reason.replace(theirs, ours)
    reason = re.sub(
        r"`([^`]*\|[^`]*)`",
        lambda m: " or ".join(words.get(f"`{w.strip()}`", w.strip()) for w in m[1].split("|")),
        reason,
    )
    return reason[0].lower() + reason[1:].replace(", got ", ", found ")


def field_names(*kinds: type[msgspec.Struct]) -> list[str]:
    """The keys that structures have in a file."""
    return [field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)]


def is_finite(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
