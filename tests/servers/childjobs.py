"""Jobs of a child process that fail, for tests.

Each is a module's `main`, selected by the name of its request.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from botyard.processes.child_process import Send, serve


def _work(how: str, send: Send) -> None:
    send("text", "begun")
    sys.stdout.write("what a library prints\n")
    if how == "hang":
        time.sleep(600)
    elif how == "hold":
        # This search never releases the interpreter lock.
        re.match(r"(a+)+$", "a" * 64 + "b")
    elif how == "memory":
        held = []
        while True:
            held.append(bytearray(2**24))
    elif how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "processor":
        os.kill(os.getpid(), signal.SIGXCPU)
    elif how == "raise":
        raise ValueError("something is wrong here")
    elif how == "nonsense":
        os.write(3, b"nonsense of more than eight bytes, and more of it")
        for fd in range(3, 20):
            try:
                os.write(fd, b"\x10\0\0\0\0\0\0\0nonsense of more than sixteen bytes")
            except OSError:
                continue
    elif how == "flood":
        while True:
            send("text", "x" * 2**20)
    elif how == "litter":
        Path(tempfile.mkdtemp(), "left").write_text("behind")
        send("text", tempfile.gettempdir())
    elif how == "look":
        send(
            "text",
            f"{sorted(os.listdir('/proc/self/fd'))} "
            f"{os.getsid(0) == os.getpid()} {os.getcwd() in sys.path} {'' in sys.path}",
        )

    send("text", "done")


def main() -> None:
    """Run in the child process."""
    serve({"how": str}, {"text": str}, _work)
