"""Reads maps for clients, but hangs at those whose names begin so."""

from __future__ import annotations

import re
from typing import Final

from botyard.formats import reading
from botyard.processes.child_process import Send, serve

MODULE: Final = "tests.servers.hangingreader"


def _answer(request: reading.Request, send: Send) -> None:
    if request.name.startswith("hang"):
        # the interpreter is never given up
        re.match(r"(a+)+$", "a" * 64 + "b")

    reading.answer(request, send)


def main() -> None:
    """The process."""
    serve({"read": reading.Request}, reading.TYPES, _answer)
