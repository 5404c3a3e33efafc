"""Extended regular expressions with bounded time:

the same answers as Python's engine where that has one.
"""

from __future__ import annotations

import ctypes
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PeerError
from botyard.protocols.ros_messages.regex import MAX_DEPTH, Pattern

atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "[a-c]", "^", "$", r"\.", "[[:digit:]]", "c"]
)
patterns = st.recursive(
    atoms,
    lambda p: st.one_of(
        st.tuples(p, p).map("".join),
        st.tuples(p, p).map(lambda t: f"({t[0]}|{t[1]})"),
        st.tuples(p, st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}"])).map(
            lambda t: f"({t[0]}){t[1]}"
        ),
    ),
    max_leaves=8,
)


@given(patterns, st.text("abc.1", max_size=8))
def test_it_matches_what_pythons_engine_matches(pattern: str, text: str) -> None:
    theirs = pattern.replace("$", r"\Z").replace("[[:digit:]]", "[0-9]")
    assert Pattern(pattern).search(text) is (re.search(theirs, text) is not None)


class SystemPattern:
    """The C library's extended regular expressions (regcomp, regexec), as other
    simulators use them.
    """

    EXTENDED, NO_SUB = 1, 8
    SIZE = 256
    """More than a regex_t has, bytes."""

    def __init__(self, text: str) -> None:
        self._library = ctypes.CDLL(None)
        self._compiled = ctypes.create_string_buffer(self.SIZE)
        code = self._library.regcomp(
            self._compiled, text.encode(), self.EXTENDED | self.NO_SUB
        )
        if code:
            raise ValueError(text)

    def search(self, text: str) -> bool:
        return (
            self._library.regexec(
                self._compiled, text.encode(), ctypes.c_size_t(0), None, 0
            )
            == 0
        )

    def __del__(self) -> None:
        self._library.regfree(self._compiled)


more_atoms = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "-",
        "[ab-]",
        "[]a]",
        "[^]b]",
        "[[:alpha:]]",
        "[^[:digit:]]",
        "[[:punct:]b]",
        "[[.-.]]",
        "[b[=a=]]",
        r"\*",
        r"\.",
        r"\]",
        r"\$",
        "1",
        "^",
        "$",
    ]
)
more_patterns = st.recursive(
    more_atoms,
    lambda p: st.one_of(
        st.tuples(p, p).map("".join),
        st.tuples(p, p).map(lambda t: f"({t[0]}|{t[1]})"),
        st.tuples(p, st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}"])).map(
            lambda t: f"({t[0]}){t[1]}"
        ),
    ),
    max_leaves=8,
)


@pytest.mark.skipif(
    sys.platform != "linux", reason="needs the GNU C library, whose functions are known"
)
@given(more_patterns, st.text("ab1-].*$", max_size=8))
def test_it_matches_what_the_systems_library_matches(pattern: str, text: str) -> None:
    assert Pattern(pattern).search(text) is SystemPattern(pattern).search(text)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^r[0-9]+$", ["r1", "r22"], ["r", "ar1", "r1a"]),
        ("ann|bob", ["ann", "xbob"], ["carl"]),
        ("", ["", "x"], []),
        ("[[:alpha:]_-]{3}", ["a_-", "xabcx"], ["a1b"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[^]a]", ["b"], ["]", "a", ""]),
        (r"a\+b", ["a+b"], ["aab"]),
        ("^$", [""], ["a"]),
        ("()*", ["", "a"], []),
        ("(a*)*b", ["aaab"], ["aaa"]),
        ("a{2,3}$", ["aa", "xaaa"], ["a"]),
        ("a**", ["", "aa"], []),
    ],
)
def test_what_it_knows(pattern: str, yes: list[str], no: list[str]) -> None:
    made = Pattern(pattern)
    assert all(map(made.search, yes)) and not any(map(made.search, no))


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a)",
        "*",
        "a{",
        "a{x}",
        "a{3,2}",
        "[a",
        "[b-a]",
        "[[:nothing:]]",
        "\\",
        r"\1",
        r"\d",
        r"\w",
        "(?=a)",
        "(?:a)",
        "[[.ab.]]",
        "[[=",
        "[[.",
        "a{99999}",
        "x" * 300,
        "(" * 200,
        "((a{99}){99}){99}",
    ],
)
def test_what_is_none(pattern: str) -> None:
    with pytest.raises(PeerError):
        Pattern(pattern)


def test_the_depth_of_groups_is_counted_where_they_are_in_each_other() -> None:
    # The pattern itself counts as the first level.
    most = MAX_DEPTH - 1
    side_by_side = "(a)" * 51
    for pattern in ("(" * most + "a" + ")" * most, side_by_side):
        assert Pattern(pattern).search("a" * 51)
    for before in ("", side_by_side):
        with pytest.raises(PeerError, match="nested brackets"):
            Pattern(before + "(" * (most + 1) + ")" * (most + 1))


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b$", "(a|aa)+b$", "a*a*a*a*a*a*a*a*b", "(.*)*(.*)*x"]
)
def test_patterns_that_never_end_elsewhere_end(pattern: str) -> None:
    assert Pattern(pattern).search("a" * 64 + "!") is False


def test_what_takes_too_long_says_so() -> None:
    made = Pattern("(a|b)*a(a|b){300}c")
    texts = [f"{k:b}".replace("0", "a").replace("1", "b") * 20 for k in range(10_000)]
    with pytest.raises(PeerError, match="takes too long"):
        any(map(made.search, texts))


@given(st.text("ab()[]{}*+?|^$.\\-:,0", max_size=20), st.text("ab", max_size=10))
def test_no_pattern_raises_anything_else(pattern: str, text: str) -> None:
    try:
        Pattern(pattern).search(text)
    except PeerError:
        return
