"""A reader of maps that hangs at those with a given name prefix."""

from __future__ import annotations

import re
from typing import Final

from botyard.formats import reading
from botyard.processes.child_process import Send, serve

MODULE: Final = "tests.servers.hangingreader"


def _answer(request: reading.Request, send: Send) -> None:
    if request.name.startswith("hang"):
        # This search never releases the interpreter lock.
        re.match(r"(a+)+$", "a" * 64 + "b")

    reading.answer(request, send)


def main() -> None:
    """Run in the child process."""
    serve({"read": reading.Request}, reading.TYPES, _answer)
