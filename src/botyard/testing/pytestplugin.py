"""Plug-in for pytest: marker ``botyard`` and fixture ``world`` (entry point
``pytest11``). ::

    @pytest.mark.botyard("lab.yaml", seeds=range(5), record="on-failure")
    def test_reaches_the_dock(world):
        world.start(["my_robot_program", "--port", str(world.ports["bob"])])
        world.run_until(near("bob", "Dock", 0.3), no_contact=True, deadline=60)

pytest loads it wherever botyard is installed, so it imports nothing else until a test
uses ``world``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from botyard.testing.robotworld import RobotWorld
    from botyard.testing.worldsettings import Settings

MARKER = "botyard"
FIXTURE = "world"
_SEED = "botyard_seed"
_OWN = ("robots", "speed", "lockstep", "ros1", "ros2", "record")
_WORLD = pytest.StashKey["RobotWorld"]()
_REPORT = pytest.StashKey[str]()

HELP = (
    "botyard(map=None, *, seeds=(1,), robots=(), speed=1.0, lockstep=False, "
    "ros1=False, ros2=False, record='on-failure', **options): "
    "creates a world for the test, available as the fixture 'world'; other "
    "options as in botyard.serve"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command-line options."""
    group = parser.getgroup("botyard", "worlds for tests of robot programs")
    group.addoption(
        "--botyard-page",
        action="store_true",
        help="serve the page of each world, in real time, and print its URL",
    )
    group.addoption(
        "--botyard-recordings",
        metavar="FOLDER",
        default="botyard-recordings",
        help="folder for recordings of failed tests",
    )
    group.addoption(
        "--botyard-seed", metavar="N", type=int, help="run tests only with this seed"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", HELP)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Create a test for each seed.

    Parameters
    ----------
    metafunc : pytest.Metafunc
        Test function. Without the marker, one test is created.

    Raises
    ------
    pytest.UsageError
        The seeds of the marker are not whole numbers.
    """
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or _SEED not in metafunc.fixturenames:
        return
    # One seed repeats a failure without the other runs of the test.
    only = metafunc.config.getoption("--botyard-seed")
    seeds = [only] if only is not None else list(marker.kwargs.get("seeds", (1,)))
    if not seeds or not all(
        # A bool is an int in Python, and seeds=True would run one test with the seed 1.
        isinstance(seed, int) and not isinstance(seed, bool)
        for seed in seeds
    ):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: botyard: seeds: expected whole numbers, found {seeds!r}"
        )

    metafunc.parametrize(
        _SEED, seeds, ids=[f"seed{seed}" for seed in seeds], indirect=True
    )


@pytest.fixture
def botyard_seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of this test's world."""
    # Without the marker the fixture is not parametrized.
    return int(getattr(request, "param", 1))


@pytest.fixture
def world(
    request: pytest.FixtureRequest, tmp_path: Path, botyard_seed: int
) -> Iterator[RobotWorld]:
    """Provide the world that the marker ``botyard`` describes (`RobotWorld`).

    Parameters
    ----------
    request : pytest.FixtureRequest
        Test that uses the fixture.
    tmp_path : Path
        Folder for logs and the recording.
    botyard_seed : int
        Seed of the world.

    Yields
    ------
    RobotWorld
        The world, paused before its first step.
    """
    from botyard.testing.robotworld import RobotWorld

    node = request.node
    settings = _settings(node, botyard_seed)
    made = RobotWorld(settings, tmp_path)
    with made:
        node.stash[_WORLD] = made
        if made.page:
            _show(request, f"\n{node.nodeid}: {made.running.page}")
        try:
            yield made
        finally:
            # The report was made before, in the call phase: a closed world cannot
            # answer.
            del node.stash[_WORLD]
            if made.page and sys.stdin is not None and sys.stdin.isatty():
                _ask(request)

    path = _recording_path(node)
    if settings.record == "always" or (
        _REPORT in node.stash and settings.record != "never"
    ):
        # The recording is moved only after the world is closed, when its file is
        # complete.
        made.keep_recording(path)


def _settings(node: pytest.Item, seed: int) -> Settings:
    """Return the settings from the marker.

    Parameters
    ----------
    node : pytest.Item
        The test, with or without the marker.
    seed : int
        Seed of this test.

    Raises
    ------
    pytest.UsageError
        The marker has several maps, or an invalid ``record``.
    """
    from botyard.testing.worldsettings import Settings

    marker = node.get_closest_marker(MARKER)
    args, given = ((), {}) if marker is None else (marker.args, dict(marker.kwargs))
    # pytest has already made a test of each seed.
    given.pop("seeds", None)
    if len(args) > 1:
        raise pytest.UsageError(
            f"{node.nodeid}: botyard: expected one map, found {len(args)} arguments"
        )

    where = args[0] if args else given.pop("map", None)
    record = given.get("record", "on-failure")
    if record not in ("always", "on-failure", "never"):
        raise pytest.UsageError(
            f'{node.nodeid}: botyard: record: expected always, on-failure or never, found "{record}"'
        )

    if isinstance(where, (str, Path)) and (node.path.parent / where).exists():
        # Resolve the path relative to the test file, independent of the folder in which
        # pytest was started.
        where = node.path.parent / where

    own = {name: given.pop(name) for name in _OWN if name in given}
    if node.config.getoption("--botyard-page"):
        # A viewer watches the page, so the world runs in real time.
        given["page"], own["speed"] = True, 1.0
    return Settings(map=where, seed=seed, options=given, **own)


def _show(request: pytest.FixtureRequest, text: str) -> None:
    """Print text to the terminal although pytest captures output."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        print(text, flush=True)
    else:
        with capture.global_and_fixture_disabled():
            print(text, flush=True)


def _ask(request: pytest.FixtureRequest) -> None:
    """Wait until the user has looked at the world, before it is closed."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        return
    with capture.global_and_fixture_disabled():
        input("The world is paused; press Enter to close it. ")


def _recording_path(node: pytest.Item) -> Path:
    """Return the file for the recording of a test."""
    folder = Path(node.config.getoption("--botyard-recordings"))
    if not folder.is_absolute():
        folder = node.config.rootpath / folder
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', node.nodeid).strip('-')}.mcap"


def _repeat(node: pytest.Item, seed: int) -> str:
    """Return the command that repeats a test with its seed.

    Parameters
    ----------
    node : pytest.Item
        The test.
    seed : int
        Seed of the test's world.
    """
    return (
        f'python -m pytest -s --botyard-page "{node.nodeid}"'
        if f"seed{seed}" in node.nodeid
        else f'python -m pytest -s "{node.nodeid}"'
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the world to the report of a failed test, and properties for JUnit.

    Parameters
    ----------
    item : pytest.Item
        The test.
    call : pytest.CallInfo
        Phase of the test, with its exception.
    """
    found = item.stash.get(_WORLD, None)
    if found is not None and call.when == "call":
        item.user_properties.append(("botyard_seed", found.settings.seed))
        if call.excinfo is not None and not call.excinfo.errisinstance(
            (pytest.skip.Exception, KeyboardInterrupt)
        ):
            if found.settings.record != "never":
                item.user_properties.append(
                    ("botyard_recording", str(_recording_path(item)))
                )

            item.stash[_REPORT] = _report(item, found)

    report = yield
    text = item.stash.get(_REPORT, None)
    if text is not None and report.when == "call":
        report.sections.append(("botyard", text))
    return report


def _report(item: pytest.Item, found: RobotWorld) -> str:
    """Return the section of a test report about the world."""
    try:
        text = (
            found.call(found.report, _repeat(item, found.settings.seed))
            if found.running.is_running
            else found.report()
        )
    except (
        Exception
        # The test has already failed; an error here must not hide the reason.
    ) as error:
        text = f"no report: {type(error).__name__}: {error}"

    if found.settings.record == "never":
        return text
    path = _recording_path(item)
    return f"{text}\nrecording: {path} (botyard replay {path})"
