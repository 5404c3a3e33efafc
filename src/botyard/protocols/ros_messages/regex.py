r"""Extended regular expressions (POSIX.1-2017 §9.4) with bounded time.

Python's own engine backtracks, which takes exponential time for some short patterns and
texts (ReDoS). This one simulates Thompson's NFA and limits the number of visited
states. Syntax that POSIX leaves undefined, such as ``\d`` or a back reference, is an
error.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from botyard.errors import PeerError
from botyard.names import shown

MAX_PATTERN: Final = 256
"""Longest pattern, characters."""
MAX_STATES: Final = 2000
"""Limit of an automaton's states; ``a{500}`` has 500."""
MAX_DEPTH: Final = 50
"""Limit of the nesting depth of groups."""
MAX_WORK: Final = 300_000
"""Limit of the states that one pattern may visit in all its searches: about 0.1 s of CPU time."""
_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "blank": " \t".__contains__,
    "punct": string.punctuation.__contains__,
    "xdigit": string.hexdigits.__contains__,
    "print": str.isprintable,
    "graph": lambda c: c.isprintable() and not c.isspace(),
    "cntrl": lambda c: not c.isprintable(),
}
_Test = Callable[[str], bool]
_START, _END = "^", "$"
_SPECIAL: Final = frozenset("^.[]$()|*+?{}\\-/")
"""Characters that may follow a backslash: the special ones outside or inside of brackets."""


class _Either(NamedTuple):
    choices: list[_Node]


class _Sequence(NamedTuple):
    parts: list[_Node]


class _Repeated(NamedTuple):
    what: _Node
    least: int
    most: int | None


_Node: TypeAlias = "_Either | _Sequence | _Repeated | _Test | str"


class Pattern:
    """Compiled pattern.

    Parameters
    ----------
    text : str
        The regular expression.

    Raises
    ------
    PeerError
        The expression is invalid, or too long.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise PeerError(
                f"expected a regular expression of at most {MAX_PATTERN} characters, found {len(text)}"
            )

        self._text, self._at, self._depth = text, 0, 0
        # States of the automaton. Each has a test of a character, an anchor, or None
        # for a transition without a character; and the numbers of its successors.
        self._tests: list[_Test | str | None] = []
        self._next: list[tuple[int, ...]] = []
        self._work = 0
        parsed = self._either()
        # The parser stops early only at a closing bracket without an opening one.
        if self._at < len(text):
            raise self._fail("a closing bracket without an opening one")
        first, ends = self._built(parsed)
        self._last = self._state(None)
        self._join(ends, self._last)
        self._first = first
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def search(self, text: str) -> bool:
        """Return whether any part of a text matches.

        Parameters
        ----------
        text : str
            Any text. ``^`` and ``$`` match at its start and end, not at lines.

        Raises
        ------
        PeerError
            All searches together took too long.
        """
        begin = self._reached({self._first}, at_start=True, at_end=False)
        # A match may start at every character, so the first states are added each time.
        again = self._reached({self._first}, at_start=False, at_end=False)
        now, last = begin, len(text)
        for at, char in enumerate(text):
            # Stop at the first match, wherever it ends.
            if self._last in now:
                return True
            self._spend(1)
            # Cache the transitions of sets of states: a part that is used often becomes
            # a DFA.
            following = self._known.get((now, char))
            if following is None:
                onward = {
                    n
                    for s in now
                    if callable(test := self._tests[s]) and test(char)
                    for n in self._next[s]
                }
                self._spend(len(now))
                following = self._reached(onward, at_start=False, at_end=False) | again
                self._known[now, char] = following

            now = following
            last = at

        is_empty = last == len(text)
        return self._last in self._reached(set(now), at_start=is_empty, at_end=True)

    def _spend(self, states: int) -> None:
        """Count visited states against the budget of the pattern.

        Parameters
        ----------
        states : int
            Number of states.

        Raises
        ------
        PeerError
            The budget `MAX_WORK` is used up.
        """
        # All searches with a pattern share one budget.
        self._work += states
        if self._work > MAX_WORK:
            raise PeerError(
                f"the regular expression {shown(self._text)} takes too long"
            )

    def _reached(
        self, states: set[int], at_start: bool, at_end: bool
    ) -> frozenset[int]:
        """Return the epsilon closure of states.

        Parameters
        ----------
        states : set of int
            States after a character.
        at_start, at_end : bool
            Whether ``^`` and ``$`` match at this place.
        """
        found, todo = set(states), list(states)
        while todo:
            state = todo.pop()
            test = self._tests[state]
            if (
                test is None
                or (test == _START and at_start)
                or (test == _END and at_end)
            ):
                todo += [n for n in self._next[state] if n not in found]
                found.update(self._next[state])

        self._spend(len(found))
        return frozenset(found)

    # Thompson's construction: each part of the pattern becomes a fragment with a first
    # state, and with ends: states that have no successor yet.

    def _state(self, test: _Test | str | None) -> int:
        """Add a state without successors, and return its number.

        Parameters
        ----------
        test : callable, str or None
            Test of a character, an anchor (``^`` or ``$``), or None for a transition
            without a character.

        Raises
        ------
        PeerError
            There are `MAX_STATES` states already.
        """
        # Check the number while states are built, because nested repetitions multiply
        # it.
        if len(self._tests) >= MAX_STATES:
            raise self._fail(f"more than {MAX_STATES} states: too many repetitions")
        self._tests.append(test)
        self._next.append(())
        return len(self._tests) - 1

    def _join(self, ends: list[int], state: int) -> None:
        for end in ends:
            self._next[end] += (state,)

    def _built(self, node: _Node) -> tuple[int, list[int]]:
        """Build the states of a part of the pattern; return its first state and its ends.

        Parameters
        ----------
        node : node of the syntax tree
            Part of the pattern.
        """
        if isinstance(node, _Either):
            first, ends = self._state(None), []
            for choice in node.choices:
                start, more = self._built(choice)
                self._next[first] += (start,)
                ends += more

            return first, ends

        if isinstance(node, _Sequence):
            first = self._state(None)
            ends = [first]
            for part in node.parts:
                start, more = self._built(part)
                self._join(ends, start)
                ends = more

            return first, ends

        if isinstance(node, _Repeated):
            return self._times(node)
        first = self._state(node)
        return first, [first]

    def _times(self, node: _Repeated) -> tuple[int, list[int]]:
        first = self._state(None)
        ends = [first]
        for _ in range(node.least):
            start, more = self._built(node.what)
            self._join(ends, start)
            ends = more

        # Without an upper limit the last copy is a loop.
        if node.most is None:
            loop = self._state(None)
            self._join(ends, loop)
            start, more = self._built(node.what)
            self._next[loop] += (start,)
            self._join(more, loop)
            return first, [loop]

        leaves = list(ends)
        for _ in range(node.most - node.least):
            start, more = self._built(node.what)
            self._join(ends, start)
            ends = more
            leaves += ends

        return first, leaves

    # The methods below are a parser by recursive descent.

    def _either(self) -> _Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._fail(f"expected at most {MAX_DEPTH} nested brackets")
        choices = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            choices.append(self._sequence())

        self._depth -= 1
        return _Either(choices)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        return _Sequence(parts)

    def _repeated(self) -> _Node:
        found = self._atom()
        while (char := self._peek()) and char in "*+?{":
            if char == "{":
                found = _Repeated(found, *self._bounds())
            else:
                self._at += 1
                found = _Repeated(
                    found, *{"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
                )

        return found

    def _bounds(self) -> tuple[int, int | None]:
        close = self._text.find("}", self._at)
        low, comma, high = (
            self._text[self._at + 1 : close].partition(",")
            if close > 0
            else ("", "", "")
        )
        if not (low.isascii() and low.isdigit()) or (
            high and not (high.isascii() and high.isdigit())
        ):
            raise self._fail("expected {m}, {m,} or {m,n}")

        least, most = int(low), (int(high) if high else None) if comma else int(low)
        if least > MAX_STATES or (most is not None and not least <= most <= MAX_STATES):
            raise self._fail(
                f"expected {{m,n}} with m at most n, and n at most {MAX_STATES}"
            )

        self._at = close + 1
        return least, most

    def _atom(self) -> _Node:
        char = self._text[self._at]
        self._at += 1
        if char == "(":
            inside = self._either()
            if self._peek() != ")":
                raise self._fail("a bracket is not closed")
            self._at += 1
            return inside

        if char in "*+?{":
            raise self._fail("nothing to repeat")
        if char == "[":
            return self._set()
        if char == ".":
            return _any
        if char in "^$":
            return char
        if char == "\\":
            escaped = self._peek()
            # POSIX leaves the escape of an ordinary character undefined. Other engines
            # read it as a class or a back reference, so it would match something else.
            if escaped not in _SPECIAL:
                raise self._fail(
                    "expected a special character after the backslash, found "
                    f"{shown(escaped)}"
                )
            self._at += 1
            return escaped.__eq__

        return char.__eq__

    def _set(self) -> _Test:
        """Parse a bracket expression; return the function that tests a character."""
        opposite = self._peek() == "^"
        self._at += opposite

        tests: list[_Test] = []
        begin = self._at
        # A "]" in the first place is a character of the set (POSIX).
        while (char := self._peek()) != "]" or self._at == begin:
            if not char:
                raise self._fail("a [ is not closed")
            if self._text.startswith("[:", self._at):
                close = self._text.find(":]", self._at)
                known = (
                    _CLASSES.get(self._text[self._at + 2 : close])
                    if close > 0
                    else None
                )
                if known is None:
                    raise self._fail("no such class of characters")
                tests.append(known)
                self._at = close + 2
                continue

            # A collating symbol or equivalence class, of one character.
            if self._text[self._at : self._at + 2] in (
                "[.",
                "[=",
            ):
                sign = self._text[self._at + 1]
                if self._text[self._at + 3 : self._at + 5] != f"{sign}]":
                    raise self._fail(
                        "collating elements of several characters are not supported"
                    )
                tests.append(self._text[self._at + 2].__eq__)
                self._at += 5
                continue

            self._at += 1
            # A "-" in the last place is a character of the set.
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in (
                "",
                "]",
            ):
                high = self._text[self._at + 1]
                # POSIX calls such a range invalid; an empty set would hide the mistake.
                if high < char:
                    raise self._fail("the end of a range is before its start")
                tests.append(_between(char, high))
                self._at += 2
            else:
                tests.append(char.__eq__)

        self._at += 1
        return _none_of(tests) if opposite else _one_of(tests)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _fail(self, why: str) -> PeerError:
        return PeerError(
            f"not a valid extended regular expression: {shown(self._text)}: {why}, at "
            f"character {self._at + 1}"
        )


def _any(_char: str) -> bool:
    return True


def _between(low: str, high: str) -> _Test:
    return lambda c: low <= c <= high


def _one_of(tests: list[_Test]) -> _Test:
    return lambda c: any(test(c) for test in tests)


def _none_of(tests: list[_Test]) -> _Test:
    return lambda c: not any(test(c) for test in tests)


__all__ = ["MAX_PATTERN", "Pattern"]
