"""A page in a browser, operated by world coordinates.

The page reports where to press, the engine reports the effect.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from tests.waiting import PATIENCE


class PageObject:
    """The page of a user."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.errors: list[str] = []
        tab.on("pageerror", lambda e: self.errors.append(str(e)))
        tab.on(
            "console",
            lambda m: (
                self.errors.append(f"{m.text} ({m.location})")
                if m.type == "error" and "ERR_CONN" not in m.text
                else None
            ),
        )

    def open(self, url: str) -> None:
        """Open the page and wait for the first frame."""
        self.tab.goto(url)
        self.until(
            "window.__sim && __sim.world.frameVersion > 0 && __sim.viewpoint.fitted"
        )

    def js(self, code: str) -> Any:
        """Evaluate an expression in the page."""
        return self.tab.evaluate(code)

    def until(self, code: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true in the page."""
        # Playwright's own waiting evaluates a text inside the page, which the page's
        # policy
        # forbids.
        end = time.monotonic() + seconds
        while not self.tab.evaluate(f"Boolean({code})"):
            assert time.monotonic() < end, (
                f"not true within {seconds} s: {code}; it is {self.tab.evaluate(code)!r:.200}"
            )
            self.tab.wait_for_timeout(30)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the window position of a point of the world (m), pixels."""
        px, py = self.js(
            "(() => { const o = __sim.world.schema.origin;"
            f" const p = __sim.camera.toScreen({x} - o[0], {y} - o[1]);"
            " const b = document.querySelector('.stage').getBoundingClientRect(); return [p[0] + b.left, p[1] + b.top]; })()"
        )
        return px, py

    def drag(
        self,
        start: Sequence[float],
        end: Sequence[float],
        *,
        button: Any = "left",
        key: str | None = None,
        drop: bool = True,
    ) -> None:
        """Drag from one point of the world to another."""
        a, b = self.at(start[0], start[1]), self.at(end[0], end[1])
        mouse = self.tab.mouse
        if key:
            self.tab.keyboard.down(key)
        mouse.move(*a)
        mouse.down(button=button)
        for k in range(1, 11):
            mouse.move(a[0] + (b[0] - a[0]) * k / 10, a[1] + (b[1] - a[1]) * k / 10)
        if drop:
            mouse.up(button=button)
        if key:
            self.tab.keyboard.up(key)

    def click(self, x: float, y: float, **options: Any) -> None:
        """Click a point of the world."""
        self.tab.mouse.click(*self.at(x, y), **options)

    def press(self, key: str) -> None:
        """Press a key while the world has the focus."""
        self.tab.locator(".stage").focus()
        self.tab.keyboard.press(key)

    def button(self, name: str) -> Any:
        """Return a button by its label."""
        return self.tab.get_by_role("button", name=name, exact=True)

    def entry(self, menu: str, name: str) -> Any:
        """Open a menu of the toolbar and return its entry."""
        self.button(menu).click()
        return self.tab.get_by_role("menuitem", name=name)


@contextmanager
def page(
    browser: Browser,
    url: str,
    *,
    renderer: str = "canvas2d",
    colors: str = "model",
    **options: Any,
) -> Iterator[PageObject]:
    """A page in a fresh profile; errors in its console fail the test."""
    context = browser.new_context(
        viewport={"width": 1200, "height": 800}, accept_downloads=True, **options
    )
    context.set_default_timeout(1000 * PATIENCE)
    context.add_init_script(
        "localStorage.getItem('botyard') || localStorage.setItem('botyard', "
        f"JSON.stringify({{renderer: '{renderer}', colorBy: '{colors}'}}))"
    )
    one = PageObject(context.new_page())
    try:
        one.open(url)
        yield one
        assert not one.errors, one.errors
    finally:
        context.close()
