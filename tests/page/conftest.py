"""A browser for tests of the page: Debian's Chromium through Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright
from tools import build_web

from botyard.app.page import STATIC
from tests.waiting import PATIENCE

FLAGS = ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"]


def missing(what: str) -> None:
    """Report a missing peer: a failure in CI, otherwise a skip."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and in CI it must be there")
    pytest.skip(f"needs {what}")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser; the page must be built as well."""
    if not (STATIC / "index.html").is_file():
        missing("the built page (make web)")
    # Tests of an older page pass here and fail where the page is rebuilt.
    if not build_web.is_built():
        pytest.fail("web/src is newer than the built page: run `make web`")
    path = shutil.which("chromium")
    if path is None:
        missing("Chromium")
    return path or ""


@pytest.fixture(scope="module")
def playwright(chromium: str) -> Iterator[Playwright]:
    """Start Playwright's driver.

    It keeps an event loop in this thread, so it ends with the module: other tests need
    their own loops.
    """
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    """A headless browser with WebGL2 on the CPU."""
    browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
    yield browser
    browser.close()
