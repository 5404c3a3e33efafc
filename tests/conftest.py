"""Fixtures for all tests; see `naive` for the twins of kernels and `golden` for the recordings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"

settings.register_profile("botyard", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("botyard")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared reference data; without it the test is skipped, in CI it fails."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("the shared reference data (../shared) is missing, and in CI it must be there")
        pytest.skip("needs the shared reference data (../shared), which is not here")
    return SHARED
