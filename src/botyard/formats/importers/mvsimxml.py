"""Variables, expressions, loops, conditions and included files of MVSim's XML.

A file becomes elements with plain values. ``${name}``, ``${name|default}`` and ``$f{…}``
are computed; ``$(…)`` would run programs, and ``$env{…}`` would read the computer's
environment: only defaults count.

Source: the documentation of MVSim, "World XML files parser" and "flow control".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from botyard.errors import MapError, WorldFileError
from botyard.formats.base import Source, read_sibling
from botyard.formats.importers.builder import Builder
from botyard.formats.importers.expressions import Calculator, ExpressionError
from botyard.formats.importers.xmlfile import Element, read_xml
from botyard.names import shown

FLOW: Final = frozenset({"for", "if", "include", "variable"})
OWN: Final = {"NAME": "", "PARENT_NAME": "", "MVSIM_CURRENT_FILE_DIRECTORY": "."}
"""Variables that MVSim itself defines, with values that do for reading a world."""
MAX_TEXT: Final = 10_000
"""Longest value after the replacement of variables, characters."""
_DECLARATION: Final = re.compile(rb"^\s*<\?xml.*?\?>", re.DOTALL)
_PART: Final = re.compile(r"\$(f|env)?\{([^{}]*)\}")
Scope = dict[str, str]


class Expander:
    """Expander of the elements of a world.

    Parameters
    ----------
    builder : Builder
        Source, limits and receiver of notes.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._calculator = Calculator("0 mvsim")
        self._open = [builder.source]

    def expand(self, root: Element) -> Element:
        """Return the world with plain values."""
        scope: Scope = dict(OWN)
        return self._copy(root, scope)

    def _copy(self, element: Element, scope: Scope) -> Element:
        self._builder.meter.add("entities", 5, element.line)
        made = Element(
            element.tag,
            {k: self._text(v, scope, element) for k, v in element.attributes.items()},
            element.path,
            element.line,
            prefix=element.prefix,
            text=self._text(element.text, scope, element),
        )
        # Variables of a world stay defined; variables of a loop end with it.
        made.children = self._children(element.children, scope)
        return made

    def _children(self, children: Iterable[Element], scope: Scope) -> list[Element]:
        found: list[Element] = []
        for child in children:
            if child.tag not in FLOW or child.prefix:
                found.append(self._copy(child, scope))
            elif child.tag == "variable":
                name = child.attributes.get("name", "")
                scope[name] = self._text(
                    child.attributes.get("value", ""), scope, child
                )
            elif child.tag == "if":
                condition = self._text(
                    child.attributes.get("condition", ""), scope, child
                )
                if self._is_true(condition, child):
                    found += self._children(child.children, scope)
            elif child.tag == "for":
                found += self._loop(child, scope)
            else:
                found += self._include(child, scope)
        return found

    def _is_true(self, text: str, where: Element) -> bool:
        word = text.strip().lower()
        if word in ("true", "1", "yes"):
            return True
        if word in ("false", "0", "no", ""):
            return False
        return bool(self._number(text, {}, where))

    def _number(self, text: str, scope: Mapping[str, str], where: Element) -> float:
        try:
            return self._calculator.value(text, scope)
        except ExpressionError as error:
            raise WorldFileError(
                f'{where.tag}: invalid expression "{shown(text, 60)}": {error}',
                where.path,
                where.line,
            ) from None

    def _loop(self, element: Element, scope: Scope) -> list[Element]:
        name = element.attributes.get("var", "")
        ends = []
        for key in ("from", "to"):
            text = self._text(element.attributes.get(key, ""), scope, element)
            ends.append(round(self._number(text, scope, element)))
        low, high = ends
        # A loop in a loop of millions would take forever.
        self._builder.meter.add("references", max(0, high - low + 1), element.line)
        found = []
        for k in range(low, high + 1):
            found += self._children(element.children, scope | {name: str(k)})
        return found

    def _include(self, element: Element, scope: Scope) -> list[Element]:
        given = {
            k: self._text(v, scope, element) for k, v in element.attributes.items()
        }
        name = given.pop("file", "")
        builder, source = self._builder, self._open[-1]
        builder.meter.add("files", 1, element.line)
        builder.meter.check("nesting", len(self._open), element.line)
        if "$(" in name or "://" in name:
            self._builder.notes.add(
                f"include {name}",
                element,
                f'the file "{shown(name)}" is left out: botyard runs no programs and '
                "fetches no files",
            )
            return []
        try:
            path = source.sibling_file(name, "the included file")
        except MapError as error:
            raise element.fail("a file next to this one", error.reason) from None
        if any(path == known.path for known in self._open):
            raise element.fail("no file that includes itself", f'"{shown(name, 60)}"')
        inner = read_sibling(
            path,
            "the included file",
            builder.meter,
            lambda reason: _failed(element, reason),
        )
        inner = Source(inner.name, _wrapped(inner.data), inner.path, source.root)
        builder.meter.add("references", 1)
        self._open.append(inner)
        try:
            root = read_xml(inner, builder.meter)
            return self._children(root.children, {**scope, **given})
        finally:
            self._open.pop()

    def _text(self, text: str, scope: Mapping[str, str], where: Element) -> str:
        if "$" not in text:
            return text
        # Inner braces first: a default may hold a variable.
        for _ in range(20):
            changed = _PART.sub(lambda m: self._part(m, scope, where), text)
            if len(changed) > MAX_TEXT:
                raise where.fail(f"a value of at most {MAX_TEXT} characters", "more")
            if changed == text:
                break
            text = changed
        return text

    def _part(
        self, match: re.Match[str], scope: Mapping[str, str], where: Element
    ) -> str:
        kind, inner = match.groups()
        if kind == "f":
            return f"{self._number(inner, scope, where):.12g}"
        name, bar, default = inner.partition("|")
        if kind is None and name.strip() in scope:
            return scope[name.strip()]
        if bar:
            return default
        if kind == "env":
            raise where.fail(
                "a variable of the environment with a default",
                f"$env{{{shown(name, 60)}}}",
            )
        # MVSim's own examples compute with variables in these braces.
        return f"{self._number(inner, scope, where):.12g}"


def _failed(element: Element, reason: str) -> WorldFileError:
    return element.fail("a file that can be read", reason)


def _wrapped(data: bytes) -> bytes:
    """Return the bytes of an included file inside one root element.

    XML demands one root element, but MVSim accepts included files with several.
    """
    text = _DECLARATION.sub(b"", data.removeprefix(b"\xef\xbb\xbf"), count=1)
    return b"<included>" + text + b"</included>"


__all__ = ["Expander"]
