"""Bounded parsing of untrusted YAML, and validation against a structure.

Errors name the line, the expected value and the nearest known key.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import yaml

from botyard.errors import FormatError
from botyard.formats.budget import Meter
from botyard.model.tablecheck import TableError, checked
from botyard.names import shown

T = TypeVar("T")
MAX_DIGITS: Final = 100
"""Largest number of characters of a number.

No float needs more, and the library's time grows with the square of the length.
"""
VALUE_COST: Final = 5
"""Cost of a value in the budget, in entities; the library takes about 40 µs for one."""
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_SURROGATES = re.compile("[\ud800-\udfff]")
r"""Halves of UTF-16 characters, which ``"\\uD800"`` creates.

A text with such a half can be neither written nor hashed.
"""
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class _Loader(yaml.SafeLoader):
    """YAML loader that counts nodes against the budget while it composes them."""

    def __init__(
        self, text: str, meter: Meter, error: type[FormatError], infinite: bool
    ) -> None:
        super().__init__(text)
        self._meter = meter
        self._error = error
        self._infinite = infinite
        self._nesting = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
        # Events are counted before the nodes are built, so the limit also bounds the
        # memory.
        self._meter.add("entities", VALUE_COST, line)
        self._nesting += 1
        self._meter.check("nesting", self._nesting, line)
        node = super().compose_node(parent, index)
        self._nesting -= 1
        if isinstance(node, yaml.ScalarNode):
            if node.tag in _NUMBERS:
                self._number(node)
            elif _SURROGATES.search(node.value):
                raise self._error(
                    "expected whole characters, found half of a UTF-16 surrogate pair in "
                    f'"{shown(node.value)}"',
                    self._meter.path,
                    line,
                )

        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Return the value of a node.

        The library raises Python's own errors for a value that does not fit its tag,
        such as `!!int ''` or `!!bool maybe`; they become format errors.
        """
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            if not isinstance(node, yaml.ScalarNode):
                raise
            kind, line = node.tag.rpartition(":")[2], node.start_mark.line + 1
            raise self._error(
                f"not YAML: expected a value of the type {shown(kind, 40)}, "
                f'found "{shown(node.value, 40)}"',
                self._meter.path,
                line,
            ) from None

    def _number(self, node: yaml.ScalarNode) -> None:
        line = node.start_mark.line + 1
        refused = (".nan",) if self._infinite else (".inf", ".nan")
        if node.value.lower().lstrip("+-") in refused:
            raise self._error(
                f"expected a finite number, found {node.value}", self._meter.path, line
            )

        if len(node.value) > MAX_DIGITS:
            raise self._error(
                f"expected a number of at most {MAX_DIGITS} characters, "
                f"found {len(node.value)}",
                self._meter.path,
                line,
            )


class YamlFile:
    """Contents of a YAML file as plain data, with the line of each value.

    Parameters
    ----------
    text : str
        Contents of the file.
    meter : Meter
        Limits, and path for messages. Values of aliases count once per use.
    error : type of FormatError
        Class of the errors.
    unique : bool
        Whether two equal keys in a mapping are an error, as YAML demands. False: the
        last one counts, for files of other programs.
    infinite : bool
        Whether ``.inf`` is a number. Programs write it for a limit that does not exist.

    Attributes
    ----------
    root : yaml.Node or None
        Root of the node tree; None: the file is empty.
    data : value
        Contents as plain data.

    Raises
    ------
    FormatError
        The text is not YAML, has a number that is not finite, or is too large. The
        error names the line.
    """

    def __init__(
        self,
        text: str,
        meter: Meter,
        error: type[FormatError],
        *,
        unique: bool = True,
        infinite: bool = False,
    ) -> None:
        self._path = meter.path
        self._meter = meter
        self._error = error
        self._unique = unique
        try:
            loader = _Loader(text, meter, error, infinite)
            self.root = loader.get_single_node()
            # Count the values before the conversion, so that a hostile file costs no
            # further memory.
            if self.root is not None:
                self._count_values(self.root)
            self.data: Any = (
                None if self.root is None else loader.construct_document(self.root)
            )
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark
            raise error(
                f"not YAML: {shown(problem.problem, 200)}",
                self._path,
                None if mark is None else mark.line + 1,
            ) from None
        # The library lets Python's own errors escape for some damaged files.
        except (
            yaml.YAMLError,
            RecursionError,
            ValueError,
            TypeError,
            OverflowError,
            LookupError,
        ) as problem:
            raise error(
                f"not YAML: {shown(' '.join(str(problem).split()), 200)}", self._path
            ) from None

    def _count_values(self, root: Any) -> None:
        """Count the values of the file, with each use of an alias counted.

        A few lines can expand to billions of values ("billion laughs").
        """
        sizes: dict[int, int] = {}

        def size(node: Any) -> int:
            key = id(node)
            known = sizes.get(key)
            if known is not None:
                if known < 0:
                    raise self._error(
                        "expected YAML without cycles, found a value that contains itself",
                        self._path,
                        node.start_mark.line + 1,
                    )

                return known

            # A negative size marks a node that is still being measured: it contains
            # itself.
            sizes[key] = -1
            total = 1
            if isinstance(node, yaml.SequenceNode):
                total += sum(size(child) for child in node.value)
            elif isinstance(node, yaml.MappingNode):
                total += sum(size(k) + size(v) for k, v in node.value)
                self._check_keys(node)

            # A shared value counts once per use, although its size is computed once.
            self._meter.check("entities", total, node.start_mark.line + 1)
            sizes[key] = total
            return total

        size(root)

    def _check_keys(self, mapping: yaml.MappingNode) -> None:
        seen: set[tuple[str, str]] = set()
        for key, _ in mapping.value if self._unique else ():
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise self._error(
                        f'the key "{shown(key.value)}" occurs twice',
                        self._path,
                        key.start_mark.line + 1,
                    )

                seen.add((key.tag, key.value))

    def line_of(self, where: str, key: str = "") -> int:
        """Return the line of a value in the file, or of a key of that value.

        Parameters
        ----------
        where : str
            Path of the value, for example ``$.robots[0].pose[1]``.
        key : str
            Key in the mapping at that path; empty: the value itself.

        Returns
        -------
        int
            Line, from 1. If the value does not exist, the line of the enclosing value.
        """
        node, line = self.root, 1
        steps = [
            m[1] if m[1] is not None else int(m[2])
            for m in _STEP.finditer(where)
            if m[2] != "..."
        ]
        for step in [*steps, *([key] if key else [])]:
            found = None
            if isinstance(node, yaml.MappingNode):
                # The last key of a name counts, as in the data.
                for k, v in node.value:
                    if k.value == str(step):
                        found, line = v, k.start_mark.line + 1
            elif (
                isinstance(node, yaml.SequenceNode)
                and isinstance(step, int)
                and step < len(node.value)
            ):
                found = node.value[step]
                line = found.start_mark.line + 1

            if found is None:
                return line
            node = found

        return line

    def fail(self, where: str, reason: str, key: str = "") -> FormatError:
        """Return an error about the value at a path; the caller raises it.

        Parameters
        ----------
        where : str
            Path of the value, see `line_of`.
        reason : str
            Expected and found value.
        key : str
            Key in the mapping at that path, whose line is named.
        """
        place = where.removeprefix("$").removeprefix(".")
        return self._error(
            f"{place}: {reason}" if place else reason,
            self._path,
            self.line_of(where, key),
        )

    def convert(self, kind: type[T]) -> T:
        """Return the contents as a structure of msgspec.

        Parameters
        ----------
        kind : type
            Structure of msgspec.

        Raises
        ------
        FormatError
            The contents do not fit. The error names the line, the expected and the
            found value.
        """
        try:
            return checked(self.data, kind)
        except TableError as error:
            raise self.fail(f"$.{error.where}", error.reason, error.key) from None
