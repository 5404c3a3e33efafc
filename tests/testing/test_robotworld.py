"""`RobotWorld` alone: errors for tests that could not fail or cannot start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from botyard.errors import ArgumentError, UnknownNameError
from botyard.testing.robotworld import RobotWorld
from botyard.testing.runcondition import Failure
from botyard.testing.worldsettings import Settings


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"speed": 0.0}, "speed: expected a number greater than 0"),
        ({"speed": float("nan")}, "speed: expected"),
        ({"robots": "p3dx"}, "robots: expected a list of names"),
    ],
)
def test_wrong_settings_are_named(
    tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        RobotWorld(Settings(options={}, **given), tmp_path)


def test_a_guard_of_nobody_is_an_error(tmp_path: Path) -> None:
    """A misspelt robot would never touch anything, and the test would always pass."""
    settings = Settings(
        robots={"bob": ("p3dx", (0, 0, 0)), "eve": ("p3dx", (0.3, 0, 0))},
        speed=float("inf"),
        options={},
    )
    with RobotWorld(settings, tmp_path) as world:
        for names in ("bobb", ["bob", "bobb"]):
            with pytest.raises(UnknownNameError, match='did you mean "bob"'):
                world.run_until(deadline=1, no_contact=names)

        assert world.sim.time == 0.0
        world.call(lambda: world.sim.robots["bob"].command(v=0.3))
        with pytest.raises(Failure, match="bob touched eve"):
            world.run_until(deadline=5, no_contact="bob")
