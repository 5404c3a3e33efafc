"""Opening of the page in the user's browser or in its own window.

The window uses pywebview if it is installed, otherwise Chromium's app mode.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import Final

from botyard.errors import WorldError
from botyard.extras import install_command, is_installed
from botyard.processes.interpreter import python_command
from botyard.processes.launch import Child

TITLE: Final = "botyard"
SIZE: Final = (1280, 860)
BROWSERS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
    "brave-browser",
)
"""Programs that support Chromium's app mode."""
PLACES: Final = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
"""Usual installation paths of these programs on macOS and Windows."""
CLOSE_S: Final = 3.0
"""Time from asking a window to close until it is killed, s."""
LAUNCH_WINDOW_S: Final = 1.5
"""Time after its start within which a failing process has not shown a window, s."""


class Window:
    """Window of the page, shown by a separate process.

    Parameters
    ----------
    process : Child
        Process of the window; it ends when the window is closed.
    profile : Path, optional
        Browser profile to delete with the window.
    """

    def __init__(self, process: Child, profile: Path | None = None) -> None:
        self._process = process
        self._profile = profile
        self._began = time.monotonic()
        self._failed: bool | None = None

    @property
    def is_open(self) -> bool:
        """Whether the window is open."""
        status = self._process.status
        if status is not None and self._failed is None:
            self._failed = (
                status != 0 and time.monotonic() - self._began < LAUNCH_WINDOW_S
            )

        return status is None

    @property
    def failed(self) -> bool:
        """Whether the process ended before the window could open."""
        return bool(self._failed)

    @property
    def pid(self) -> int:
        """Process id of the process that shows the window."""
        return self._process.pid

    def close(self) -> None:
        """Close the window and delete its profile."""
        if self._process.status is None:
            self._process.end(CLOSE_S)
        if self._profile is not None:
            shutil.rmtree(self._profile, ignore_errors=True)


def has_display() -> bool:
    """Return whether the system can show windows."""
    return sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def open_browser(url: str) -> bool:
    """Show the page in the user's browser.

    Parameters
    ----------
    url : str
        Address, with the token behind the #.

    Returns
    -------
    bool
        Whether a browser could be started; it may still fail to show the page.
    """
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


def find_chromium() -> str | None:
    """Return a program that supports Chromium's app mode; None: not found."""
    found = next((p for p in map(shutil.which, BROWSERS) if p), None)
    return found or next((p for p in PLACES if Path(p).is_file()), None)


def open_window(url: str, mode: str = "normal") -> Window:
    """Open the page in its own window.

    Parameters
    ----------
    url : str
        URL of the page.
    mode : str
        ``normal``, ``fullscreen``, ``maximized`` or ``minimized``.

    Raises
    ------
    WorldError
        Neither pywebview nor Chromium is installed.
    """
    if is_installed("window") and _has_toolkit():
        # The window's process has its own process group, so Ctrl-C in the terminal does
        # not end it; the simulator closes the window.
        command = python_command("botyard.ui.window:main", url, mode)
        return Window(Child(command, input=None, output=None, errors=None))

    program = find_chromium()
    if program is None:
        raise WorldError(
            "cannot open a window for the page: found neither pywebview "
            f"({install_command(['window'])}) nor Chromium; "
            "open its URL in any browser"
        )

    profile = Path(tempfile.mkdtemp(prefix="botyard-window-"))
    _remember_placement(profile, mode)
    arguments = [
        program,
        f"--app={url}",
        f"--user-data-dir={profile}",
        "--no-first-run",
        "--no-default-browser-check",
        f"--window-size={SIZE[0]},{SIZE[1]}",
    ]
    if mode == "fullscreen":
        arguments.append("--start-fullscreen")
    elif mode == "maximized":
        arguments.append("--start-maximized")

    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append(
            "--no-sandbox"
            # Chromium refuses to run as root with its sandbox. Without the sandbox it is
            # safe, because it only shows botyard's own page.
        )

    return Window(Child(arguments), profile)


def _remember_placement(profile: Path, mode: str) -> None:
    """Write the placement of a minimised window to the browser profile.

    Chromium has no command-line option for it.
    """
    if mode != "minimized":
        return
    folder = profile / "Default"
    folder.mkdir()
    # The rectangle is the placement after the user restores the minimised window.
    place = {
        "left": 40,
        "top": 40,
        "right": 40 + SIZE[0],
        "bottom": 40 + SIZE[1],
        "maximized": False,
        "minimized": True,
    }
    (folder / "Preferences").write_text(
        json.dumps({"browser": {"window_placement": place}}), "utf-8"
    )


def _has_toolkit() -> bool:
    """Return whether pywebview can show a window.

    On Linux, it needs GTK or Qt bindings, which pip does not install with it.
    """
    if sys.platform in ("win32", "darwin"):
        return True
    return any(
        importlib.util.find_spec(name) is not None
        for name in ("gi", "PyQt6", "PySide6", "PyQt5")
    )


def show(url: str, mode: str) -> None:
    """Show a pywebview window until it is closed.

    Call it in the main thread of a process.

    Parameters
    ----------
    url : str
        Address, with the token behind the #.
    mode : str
        ``fullscreen``, ``maximized`` or ``minimized``; others give a normal window.
    """
    import webview

    webview.create_window(
        TITLE,
        url,
        width=SIZE[0],
        height=SIZE[1],
        fullscreen=mode == "fullscreen",
        maximized=mode == "maximized",
        minimized=mode == "minimized",
    )
    webview.start()


def main() -> None:
    """Run the window process; its arguments are URL and mode."""
    show(sys.argv[1], sys.argv[2])
