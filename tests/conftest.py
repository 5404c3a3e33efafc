"""Fixtures for all tests; see `naive` for the twins of kernels and `golden` for the
recordings.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
KEPT = Path(os.environ.get("BOTYARD_FUZZ_KEPT", ROOT / ".hypothesis-fuzz"))
"""What `make fuzz` has found interesting; not committed."""

# The suite tries the same examples in every run. With BOTYARD_HYPOTHESIS=fuzz (make fuzz) it tries
# new examples each time, after the ones that have failed before.
settings.register_profile(
    "botyard",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile(
    "fuzz",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=False,
    print_blob=True,
    max_examples=int(os.environ.get("BOTYARD_FUZZ_EXAMPLES", "100")),
    database=DirectoryBasedExampleDatabase(KEPT / "examples"),
)
PROFILE = os.environ.get("BOTYARD_HYPOTHESIS", "botyard")
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Hypothesis; shuffle them in exploring runs."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")

    # All workers of pytest-xdist must collect the tests in the same order.
    if PROFILE == "fuzz":
        random.Random(os.environ.get("BOTYARD_FUZZ_SEED", "0")).shuffle(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """End an exploring run when its time is over, after the current test."""
    until = os.environ.get("BOTYARD_FUZZ_UNTIL")
    if PROFILE == "fuzz" and until is not None and time.time() >= float(until):
        pytest.skip("its time is over")


@pytest.fixture(autouse=True)
def _same_logs() -> Iterator[None]:
    """Restore the logging configuration after a test that changes it.

    Otherwise `caplog` of the next test would get nothing, or each record twice.
    """
    root = logging.getLogger("botyard")
    before = root.handlers[:], root.level, root.propagate
    yield
    for handler in root.handlers:
        if handler not in before[0]:
            handler.close()

    root.handlers[:], root.level, root.propagate = before


@pytest.fixture(autouse=True)
def _journaled(request: pytest.FixtureRequest) -> Iterator[None]:
    """With BOTYARD_JOURNAL=1, repeat every run of a simulation from its journal.

    See `tests.journaled`.
    """
    is_out = any(
        request.node.get_closest_marker(marker) for marker in ("pokes", "unwatched")
    )
    if not os.environ.get("BOTYARD_JOURNAL") or is_out:
        yield
        return

    from tests.journaled import watching

    with watching():
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of shared reference data.

    Without it the test is skipped; in CI it fails.
    """
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail(
                "the shared reference data (../shared) is missing, and in CI it must be there"
            )

        pytest.skip("needs the shared reference data (../shared), which is not here")

    return SHARED
