from __future__ import annotations

import pytest

from botyard import errors


def test_messages_say_where() -> None:
    assert str(errors.MapError("expected x", "a.map", 3)) == "a.map:3: expected x"
    assert str(errors.MapError("expected x", line=3)) == "line 3: expected x"
    assert str(errors.MapError("expected x")) == "expected x"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.CommandLineError, 255),
        (errors.MapError, 253),
        (errors.WorldError, 252),
        (errors.ModelError, 249),
        (errors.PortError, 248),
    ],
)
def test_exit_codes_are_those_of_the_table(
    kind: type[errors.BotyardError], code: int
) -> None:
    assert kind.exit_code == code


def test_did_you_mean() -> None:
    assert errors.did_you_mean("p3dxx", ["p3dx", "amigo"]) == '; did you mean "p3dx"?'
    assert errors.did_you_mean("zebra", ["p3dx", "amigo"]) == ""
