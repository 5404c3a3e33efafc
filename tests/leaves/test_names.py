from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import MapError, WorldError
from botyard.names import MAX_NAME, check_name, escaped, file_stem, is_name, shown


@pytest.mark.parametrize(
    "name", ["bob", "50%d", "é 日本", "a" * MAX_NAME, "..", "%s%n", "a/b"]
)
def test_printable_names_are_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("", "an empty name"),
        ("  ", "only spaces"),
        ("a\nb", '"a\\nb"'),
        ("\x1b[2J", '"\\x1b[2J"'),
        ("a\u202eb", '"a\\u202eb"'),
        ("a" * 65, "65 characters"),
        (7, "int"),
        (None, "NoneType"),
        ("\ud800", "\\ud800"),
    ],
)
def test_others_are_refused_with_what_was_found(name: object, found: str) -> None:
    assert not is_name(name)
    with pytest.raises(WorldError) as error:
        check_name(name)
    assert found in str(error.value) and str(error.value).isprintable()


def test_the_error_may_be_another() -> None:
    with pytest.raises(MapError, match="name of a label: expected"):
        check_name("\0", "label", MapError)


@given(st.text(), st.integers(2, 80))
def test_what_is_shown_is_printable_and_short(text: str, limit: int) -> None:
    assert shown(text, limit).isprintable() and len(shown(text, limit)) <= limit
    assert escaped(text).isprintable()
    if text.isprintable() and len(text) <= limit:
        assert shown(text, limit) == text


@given(st.text())
def test_a_file_stem_names_no_folder_and_nothing_hidden(name: str) -> None:
    stem = file_stem(name)
    assert 0 < len(stem) <= MAX_NAME and all(c.isalnum() or c in "-_" for c in stem)


def test_file_stems() -> None:
    for name, stem in (
        ("run.mcap", "run"),
        ("../over/there", "there"),
        ("C:\\a\\run 2.png", "run2"),
        (".hidden", "hidden"),
        ("", "botyard"),
        ("..", "botyard"),
        ("a/", "botyard"),
        ("x" * 100, "x" * 64),
    ):
        assert file_stem(name) == stem
