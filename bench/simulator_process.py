"""The simulator as a process, and honest clients that measure gaps between its reports."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from botyard.protocols.pioneer.packet import command, frame

PORT = int(os.environ.get("BENCH_PORT", "24101"))


class Simulator:
    """The simulator as a process of its own, observed from outside."""

    def __init__(
        self,
        *args: str,
        supervised: bool = False,
        folder: str | None = None,
        temporary: Path | None = None,
    ) -> None:
        command_line = [
            sys.executable,
            "-m",
            "botyard",
            "--noninteractive",
            *([] if "--gui-port" in args else ["--no-gui"]),
            "--json",
            "-p",
            str(PORT),
            *args,
        ]
        self.folder = folder or tempfile.mkdtemp(prefix="bench-")
        self.log = Path(self.folder) / "run.log"
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [
                *command_line,
                "-l",
                str(self.log),
                *(() if supervised else ("--no-crash-restart",)),
            ],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=self.folder,
            env=os.environ | ({} if temporary is None else {"TMPDIR": str(temporary)}),
        )
        assert self.process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.pid = self.process.pid if not supervised else self.worker()

    def worker(self) -> int:
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return int((found.stdout.split() or "0")[0])

    def memory(self) -> float:
        """Return the resident memory, MB."""
        return (
            int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            * os.sysconf("SC_PAGE_SIZE")
            / 1e6
        )

    def held(self) -> tuple[int, int]:
        """Return the numbers of open files and sockets, and of threads."""
        return len(os.listdir(f"/proc/{self.pid}/fd")), len(
            os.listdir(f"/proc/{self.pid}/task")
        )

    def cpu(self) -> float:
        """Return the CPU seconds that the simulator has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waited(self) -> float:
        """Return how long its main thread has been runnable without a processor so far, s: the
        effect of other load on the machine.
        """
        return (
            int(
                Path(f"/proc/{self.pid}/task/{self.pid}/schedstat")
                .read_text()
                .split()[1]
            )
            / 1e9
        )

    def tasks(self) -> int:
        """Return the number of tasks of its event loop, by its metrics."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{PORT - 1}/metrics", timeout=10
        ) as answer:
            text = answer.read().decode()

        return int(text.partition("\nbotyard_tasks ")[2].split()[0])

    def faults(self) -> int:
        """Return the number of exceptions in its log and on its standard error."""
        text = "".join(
            f.read_text(errors="replace")
            for f in Path(self.folder).glob("run.log*")
            if f.is_file()
        )
        # Read from an absolute offset: the simulator shares the file's position and writes there.
        text += os.pread(self.errors.fileno(), 1 << 26, 0).decode(errors="replace")
        return text.count("Traceback") + text.count("internal error")

    def stop(self) -> int:
        self.process.terminate()
        status = self.process.wait(30)
        self.process.stdout.close()  # type: ignore[union-attr]
        return status

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        self.errors.close()
        if not os.environ.get("KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)


def opened(port: int) -> socket.socket:
    """Return a connected client that reads, with a laser."""
    s = socket.create_connection(("127.0.0.1", port), 10)
    for n in (0, 1, 2):
        s.sendall(frame(n))
        s.recv(1000)

    s.sendall(command(1, 1) + command(4, 1))
    return s


class Honest(threading.Thread):
    """Clients that drive and read in a thread of this process, and keep the gaps between
    reports.
    """

    def __init__(self, ports: list[int]) -> None:
        super().__init__(daemon=True)
        self.sockets = [opened(p) for p in ports]
        self.gaps: list[float] = []
        self.since = 0.0
        self._stop_it = threading.Event()
        self._last = [0.0] * len(ports)

    def run(self) -> None:
        selector = selectors.DefaultSelector()
        for i, s in enumerate(self.sockets):
            selector.register(s, selectors.EVENT_READ, i)
        pulse = 0.0
        while not self._stop_it.is_set():
            for key, _ in selector.select(0.05):
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                if not data:
                    selector.unregister(key.fileobj)
                    continue

                now = time.monotonic()
                if b"\xfa\xfb" in data and self._last[key.data]:
                    self.gaps.append(now - self._last[key.data])
                self._last[key.data] = now

            if time.monotonic() - pulse > 0.5:
                pulse = time.monotonic()
                for i, s in enumerate(self.sockets):
                    with contextlib.suppress(OSError):
                        s.sendall(
                            command(0)
                            + command(11, 200)
                            + command(21, 10 if i % 2 else -10)
                        )

    def largest(self) -> float:
        """Return the largest gap so far, s; a gap that has not ended counts as well."""
        return max(*self.gaps, time.monotonic() - min(self._last))

    def end(self) -> str:
        self._stop_it.set()
        self.join()
        for s in self.sockets:
            s.close()
        gaps = np.sort(self.gaps)
        p50, p99, most = (
            1e3 * gaps[k] for k in (len(gaps) // 2, len(gaps) * 99 // 100, -1)
        )
        return f"{len(gaps)} reports, gap p50 {p50:.0f} ms, p99 {p99:.0f} ms, largest {most:.0f} ms"
