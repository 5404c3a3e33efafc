"""Mutation operators: each mutant is a span of a file's text and its replacement.

Spans are found with the syntax tree, but the text is changed, so that numbers of lines
stay and a mutant is shown as a person would have written it. Not mutated: texts for
people (docstrings, messages, and every string that nothing is compared with or looked
up by), annotations, `__all__`, and imports for annotations only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
LOGS = {"debug", "info", "warning", "error", "exception", "warn"}
"""Methods of loggers, whose calls are not mutated."""


@dataclass(frozen=True)
class Change:
    """One mutant.

    Attributes
    ----------
    path : str
        The file, as it was given.
    start, end : int
        Span of its UTF-8 text that is replaced, bytes.
    new : str
        The replacement.
    kind : str
        The mutation operator.
    lines : tuple of int
        First and last line of the statement (of a compound one: of its head) that it is
        in, from 1.
    function : tuple of int
        First and last line of the innermost function around it; (0, 0) at the level of
        the module or a class.
    at_import : bool
        Whether it is executed while the module is imported: a default value, a
        decorator, or code outside of functions.
    """

    path: str
    start: int
    end: int
    new: str
    kind: str
    lines: tuple[int, int]
    function: tuple[int, int]
    at_import: bool

    def applied(self, source: bytes) -> bytes:
        """Return the text of the mutated file."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def shown(self, source: bytes) -> tuple[str, str]:
        """Return the lines that the mutant changes, before and after, each joined to one line."""
        after = self.applied(source)
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        last = len(source) if last < 0 else last
        until = last + len(after) - len(source)
        return " ".join(source[first:last].decode().split()), " ".join(
            after[first:until].decode().split()
        )

    @property
    def line(self) -> int:
        """Return the statement's first line."""
        return self.lines[0]


class _Finder:
    """Finder of all mutants of one file."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        n: ast.expr | ast.stmt = node  # type: ignore[assignment]
        return self.starts[n.lineno - 1] + n.col_offset, self.starts[
            (n.end_lineno or 0) - 1
        ] + (n.end_col_offset or 0)

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _operator(
        self, left: ast.AST, right: ast.AST, old: str, new: str
    ) -> tuple[int, int, str] | None:
        """Return the span of an operator between two operands and its replacement; None where a
        comment could hold the same letters.
        """
        start, end = self._span(left)[1], self._span(right)[0]
        gap = self.source[start:end].decode()
        if "#" in gap or old not in " ".join(gap.split()):
            return None
        words = old.split()
        at = gap.index(words[0])
        until = gap.index(words[-1], at) + len(words[-1])
        return start + len(gap[:at].encode()), start + len(gap[:until].encode()), new

    def _expression(
        self, node: ast.expr | ast.comprehension, parent: ast.AST
    ) -> Iterator[tuple[tuple[int, int, str] | None, str]]:
        if isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield (*self._span(test), f"(not ({self._text(test)}))"), "condition"
            return

        span = self._span(node)
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for i, op in enumerate(node.ops):
                old, others = COMPARISONS[type(op)]
                for new in others:
                    yield (
                        self._operator(operands[i], operands[i + 1], old, new),
                        "comparison",
                    )
        elif isinstance(node, ast.BinOp):
            old, new = ARITHMETIC.get(type(node.op), ("", ""))
            if (
                old
                and not isinstance(node.left, ast.JoinedStr)
                and not _is_text(node.left)
            ):
                yield self._operator(node.left, node.right, old, new), "arithmetic"
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            parts = [f"({self._text(v)})" for v in node.values]
            yield (*span, "(" + f" {new} ".join(parts) + ")"), "and/or"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield (
                (*span, f"({self._text(node.operand)})"),
                "sign" if isinstance(node.op, ast.USub) else "not",
            )
        elif isinstance(node, ast.Constant):
            yield from self._constant(node, parent, span)
        elif isinstance(node, ast.IfExp):
            yield (
                (*self._span(node.test), f"not ({self._text(node.test)})"),
                "condition",
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in CALLS
        ):
            yield (*self._span(node.func), CALLS[node.func.id]), "call"

    def _constant(
        self, node: ast.Constant, parent: ast.AST, span: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int, str], str]]:
        value = node.value
        if isinstance(value, bool):
            yield (*span, str(not value)), "constant"
        elif isinstance(value, int):
            yield (*span, str(value + 1)), "constant"
            if value > 0:
                yield (*span, str(value - 1)), "constant"
        elif isinstance(value, float):
            yield (*span, repr(value + 1.0)), "constant"
            if value:
                yield (*span, repr(value * 0.5)), "constant"
        elif isinstance(value, bytes):
            yield (*span, repr(value + b"X" if not value else value[:-1])), "constant"
        elif isinstance(value, str) and isinstance(
            parent, ast.Compare | ast.Subscript | ast.Dict | ast.MatchValue
        ):
            yield (*span, repr(value + "X" if not value else value[:-1])), "constant"

    def _statement(self, node: ast.stmt) -> Iterator[tuple[tuple[int, int, str], str]]:
        span = self._span(node)
        if isinstance(node, ast.If | ast.While):
            yield (
                (*self._span(node.test), f"not ({self._text(node.test)})"),
                "condition",
            )
        elif isinstance(node, ast.Break):
            yield (*span, "continue"), "loop"
        elif isinstance(node, ast.Continue):
            yield (*span, "break"), "loop"
        elif isinstance(node, ast.Return):
            if node.value is not None and not (
                isinstance(node.value, ast.Constant) and node.value.value is None
            ):
                yield (*span, "return None"), "return"
        elif isinstance(node, ast.AugAssign):
            old, new = ARITHMETIC.get(type(node.op), ("", ""))
            change = (
                self._operator(node.target, node.value, f"{old}=", f"{new}=")
                if old
                else None
            )
            if change is not None:
                yield change, "arithmetic"
        elif (
            isinstance(node, ast.Raise)
            or (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call | ast.Await | ast.Yield)
            )
            or (
                isinstance(node, ast.Assign)
                and all(
                    isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets
                )
            )
        ):
            yield (*span, "pass"), "statement"

    def find(self) -> Iterator[Change]:
        """Yield all mutants in the order of the text."""
        yield from self._block(ast.parse(self.source).body, (0, 0), True)

    def _block(
        self, body: list[ast.stmt], function: tuple[int, int], at_import: bool
    ) -> Iterator[Change]:
        for node in body:
            yield from self._walk(node, function, at_import)

    def _walk(
        self, node: ast.stmt, function: tuple[int, int], at_import: bool
    ) -> Iterator[Change]:
        if isinstance(
            node, ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal
        ):
            return

        if isinstance(node, ast.Expr) and (
            isinstance(node.value, ast.Constant) or _is_log(node.value)
        ):
            return

        if isinstance(node, ast.If) and "TYPE_CHECKING" in self._text(node.test):
            return
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        ):
            return

        own = (node.lineno, node.end_lineno or node.lineno)
        inner = (
            own
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            else function
        )
        later = at_import and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        )
        blocks = [
            b
            for f in ("body", "handlers", "orelse", "finalbody", "cases")
            for b in getattr(node, f, [])
        ]
        if blocks:
            own = (
                node.lineno,
                max(node.lineno, min(self._first(b) for b in blocks) - 1),
            )

        for change, kind in self._statement(node):
            yield Change(self.path, *change, kind, own, inner, at_import)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from self._within(child, node, own, inner, at_import)

        for block in blocks:
            if isinstance(block, ast.stmt):
                yield from self._walk(block, inner, later)
            else:
                for child in ast.iter_child_nodes(block):
                    if not isinstance(child, ast.stmt):
                        line = getattr(child, "lineno", own[0])
                        yield from self._within(
                            child, block, (line, line), inner, later
                        )

                yield from self._block(block.body, inner, later)

    @staticmethod
    def _first(block: ast.AST) -> int:
        return (
            block.pattern.lineno if isinstance(block, ast.match_case) else block.lineno
        )  # type: ignore[attr-defined,no-any-return]

    def _within(
        self,
        node: ast.AST,
        parent: ast.AST,
        lines: tuple[int, int],
        function: tuple[int, int],
        at_import: bool,
    ) -> Iterator[Change]:
        """Find mutants in expressions of one statement."""
        if isinstance(parent, ast.arg) or (
            isinstance(parent, ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
            and (
                node is getattr(parent, "annotation", None)
                or node is getattr(parent, "returns", None)
            )
        ):
            return

        if isinstance(node, ast.JoinedStr) or _is_log(node):
            return
        if isinstance(node, ast.expr | ast.comprehension):
            for change, kind in self._expression(node, parent):
                if change is not None:
                    yield Change(self.path, *change, kind, lines, function, at_import)

        for child in ast.iter_child_nodes(node):
            yield from self._within(child, node, lines, function, at_import)


def _is_log(node: ast.AST) -> bool:
    """Return whether a node is a call that only writes a line into a log."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LOGS
    )


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def changes(path: str, source: bytes) -> list[Change]:
    """Return all mutants of one file, in the order of its text; see `is_real`."""
    return list(_Finder(path, source).find())


def is_real(change: Change, source: bytes) -> bool:
    """Return whether the mutated file compiles, and differs in its syntax tree."""
    try:
        compile(after := change.applied(source), change.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False

    return ast.dump(ast.parse(after)) != ast.dump(ast.parse(source))
