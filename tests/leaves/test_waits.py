"""A slow operation is reported once."""

from __future__ import annotations

import threading

import pytest

from botyard.processes.slow_notice import telling
from tests.waiting import PATIENCE


def test_what_takes_long_is_said_once_and_what_is_quick_is_not() -> None:
    said: list[str] = []
    told = threading.Event()

    def tell(text: str) -> None:
        said.append(text)
        told.set()

    with telling("quick", tell, after=PATIENCE):
        pass
    with telling("long", tell, after=0.0):
        assert told.wait(PATIENCE)
    assert said == ["long"]


def test_nothing_is_said_of_what_has_failed() -> None:
    said: list[str] = []
    with (
        pytest.raises(ZeroDivisionError),
        telling("failed", said.append, after=PATIENCE),
    ):
        raise ZeroDivisionError

    assert not said and not any(
        isinstance(t, threading.Timer) and not t.finished.is_set()
        for t in threading.enumerate()
    )


def test_foreign_text_is_escaped_and_a_stream_that_is_gone_hurts_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from botyard.processes import slow_notice

    slow_notice._tell("reading a\x1b[31m\nb")
    assert capsys.readouterr().err == "botyard: reading a\\x1b[31m\\nb\n"
    monkeypatch.setattr("sys.stderr", None)
    slow_notice._tell("nobody hears")
