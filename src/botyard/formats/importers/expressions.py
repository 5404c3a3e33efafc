"""Arithmetic expressions of files, computed without running code.

The grammar is a part of ExprTk's, which MVSim uses: numbers, variables, ``+ - * / % ^``,
comparisons, ``and``, ``or``, ``not``, and functions.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from typing import Final

from botyard.numerics.elementary import acos, asin, atan, atan2, cos, sin, tan
from botyard.numerics.exponentials import exp, log, power

MAX_LENGTH: Final = 2000
"""Longest expression, characters."""
MAX_DEPTH: Final = 50
"""Deepest nesting of an expression."""
CONSTANTS: Final = {
    "M_PI": math.pi,
    "pi": math.pi,
    "M_E": math.e,
    "true": 1.0,
    "false": 0.0,
}
FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., float]]]] = {
    "sin": (1, sin),
    "cos": (1, cos),
    "tan": (1, tan),
    "asin": (1, asin),
    "acos": (1, acos),
    "atan": (1, atan),
    "atan2": (2, atan2),
    "sqrt": (1, math.sqrt),
    "abs": (1, abs),
    "exp": (1, exp),
    "log": (1, log),
    "log10": (1, lambda x: log(x) / log(10.0)),
    "pow": (2, lambda a, b: _power(a, b)),
    "min": (2, min),
    "max": (2, max),
    "ceil": (1, lambda x: float(math.ceil(x))),
    "floor": (1, lambda x: float(math.floor(x))),
    "round": (1, lambda x: float(math.floor(x + 0.5))),
    "int": (1, lambda x: float(math.trunc(x))),
    "deg2rad": (1, math.radians),
    "rad2deg": (1, math.degrees),
}
"""Name → number of arguments, and function; `Calculator` adds the random functions."""
_TOKEN: Final = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|([A-Za-z_]\w*)"
    r"|(<=|>=|==|!=|:=|&&|\|\||[-+*/%^()<>,!=&|]))"
)
_LEVELS: Final = (
    ("or", "||", "|"),
    ("and", "&&", "&"),
    ("<", ">", "<=", ">=", "==", "=", "!="),
    ("+", "-"),
    ("*", "/", "%"),
)


class ExpressionError(ValueError):
    """An expression is invalid; the text says why."""


class Calculator:
    """Calculator of expressions, with random numbers of a fixed seed.

    Parameters
    ----------
    seed : str
        Seed of ``rand()``, ``randn()`` and ``unifrnd(a, b)``.
    """

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed)

    def value(self, text: str, variables: Mapping[str, str]) -> float:
        """Return the value of an expression.

        Parameters
        ----------
        text : str
            Expression.
        variables : mapping of str to str
            Texts of variables, which must be numbers or true or false.

        Raises
        ------
        ExpressionError
            The expression is invalid, or its value is not a finite number.
        """
        if len(text) > MAX_LENGTH:
            raise ExpressionError(
                f"expected at most {MAX_LENGTH} characters, found {len(text)}"
            )
        tokens = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise ExpressionError(
                    "expected a number, a name or an operator, found "
                    f"{stripped[at : at + 10]!r}"
                )
            tokens.append(match.group(match.lastindex or 0))
            at = match.end()
        parser = _Parser(tokens, variables, self._draw)
        try:
            found = parser.level(0)
        except (ArithmeticError, ValueError) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(str(error)) from None
        if parser.rest:
            raise ExpressionError(
                f"expected an operator or the end, found {parser.rest[0]!r}"
            )
        if isinstance(found, complex) or not math.isfinite(found):
            raise ExpressionError(f"expected a finite value, found {found}")
        return float(found)


class _Parser:
    """Parser of one expression, by precedence."""

    def __init__(
        self, tokens: list[str], variables: Mapping[str, str], draw: random.Random
    ) -> None:
        self.rest = tokens
        self._variables = variables
        self._draw = draw
        self._depth = 0

    def level(self, n: int) -> float:
        """Return the value of a part of the expression with operators of level `n` or higher.

        Level 0 has the lowest precedence.
        """
        if n == len(_LEVELS):
            return self._unary()
        left = self.level(n + 1)
        while self.rest and self.rest[0] in _LEVELS[n]:
            sign = self.rest.pop(0)
            left = _binary(sign, left, self.level(n + 1))
        return left

    def _unary(self) -> float:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(
                f"expected at most {MAX_DEPTH} nested levels, found more"
            )
        try:
            sign = self.rest[0] if self.rest else ""
            if sign in ("-", "+", "!", "not"):
                self.rest.pop(0)
                value = self._unary()
                return (
                    -value
                    if sign == "-"
                    else value
                    if sign == "+"
                    else float(not value)
                )
            base = self._atom()
            if self.rest and self.rest[0] == "^":
                self.rest.pop(0)
                base = _binary("^", base, self._unary())
            return base
        finally:
            self._depth -= 1

    def _take(self, expected: str) -> None:
        found = self.rest.pop(0) if self.rest else "the end"
        if found != expected:
            raise ExpressionError(f'expected "{expected}", found {found}')

    def _atom(self) -> float:
        if not self.rest:
            raise ExpressionError("expected a value, found the end")
        token = self.rest.pop(0)
        if token == "(":
            value = self.level(0)
            self._take(")")
            return value
        if token[0].isdigit() or token[0] == ".":
            return float(token)
        if self.rest and self.rest[0] == "(" and token not in self._variables:
            return self._call(token)
        text = self._variables.get(token)
        if text is None:
            if token in CONSTANTS:
                return CONSTANTS[token]
            raise ExpressionError(f'the variable "{token}" is not defined')
        word = text.strip().lower()
        try:
            return CONSTANTS[word] if word in CONSTANTS else float(word)
        except ValueError:
            raise ExpressionError(
                f'variable "{token}": expected a number, found {text[:60]!r}'
            ) from None

    def _call(self, name: str) -> float:
        self.rest.pop(0)
        values = []
        while self.rest and self.rest[0] != ")":
            values.append(self.level(0))
            if self.rest and self.rest[0] == ",":
                self.rest.pop(0)
        self._take(")")
        drawn = {
            "rand": (0, self._draw.random),
            "randn": (0, self._normal),
            "unifrnd": (2, self._draw.uniform),
        }
        count, function = drawn.get(name) or FUNCTIONS.get(name) or (-1, abs)
        if count != len(values):
            raise ExpressionError(
                f'there is no function "{name}" with {len(values)} arguments'
            )
        return float(function(*values))  # type: ignore[operator]

    def _normal(self) -> float:
        """Draw a standard normal number, by the method of Box and Muller."""
        distance = math.sqrt(-2.0 * log(1.0 - self._draw.random()))
        return distance * cos(2.0 * math.pi * self._draw.random())


def _power(base: float, exponent: float) -> float:
    """Return a power; unlike `power`, accept a negative base if the exponent is whole."""
    if base >= 0.0:
        return power(base, exponent)
    if not exponent.is_integer():
        raise ExpressionError(
            f"expected a whole exponent of the negative base {base:g}, found {exponent:g}"
        )
    size = power(-base, exponent)
    return -size if exponent % 2.0 == 1.0 else size


def _binary(sign: str, a: float, b: float) -> float:
    if sign == "^":
        return _power(a, b)
    if sign in ("+", "-", "*"):
        return a + b if sign == "+" else a - b if sign == "-" else a * b
    if sign in ("/", "%"):
        if not b:
            raise ExpressionError("division by 0")
        return a / b if sign == "/" else math.fmod(a, b)
    return float(
        {
            "<": a < b,
            ">": a > b,
            "<=": a <= b,
            ">=": a >= b,
            "==": a == b,
            "=": a == b,
            "!=": a != b,
        }.get(sign, bool(a) and bool(b) if sign[0] in "a&" else bool(a) or bool(b))
    )


__all__ = ["Calculator", "ExpressionError"]
