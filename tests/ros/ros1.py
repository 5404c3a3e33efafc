"""Real ROS 1 programs against a simulator:

masters, tools, rospy scripts, and a plain service client.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import xmlrpc.client
from pathlib import Path
from typing import Any

from botyard.protocols.ros_messages.types import types
from botyard.protocols.tcpros import wire
from tests.ports import free_port
from tests.waiting import PATIENCE, wait

PEER = Path(__file__).parent / "peer1.py"


class Ros1World:
    """A folder, a master's port, and the processes that use them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port(30)
        self.uri = f"http://127.0.0.1:{self.port}/"
        self.robots = self.port + 1
        self._processes: list[subprocess.Popen[str]] = []
        self.env = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith(("ROS", "PYTHON", "VIRTUAL_ENV"))
            },
            "PATH": "/usr/bin:/bin",
            "ROS_MASTER_URI": self.uri,
            "ROS_IP": "127.0.0.1",
            "ROS_HOME": str(folder / "home"),
            "ROS_LOG_DIR": str(folder / "log"),
            "ROS_PACKAGE_PATH": "/usr/share",
            "ROS_ROOT": "/usr/share/ros",
            "PYTHONUNBUFFERED": "1",
        }
        (folder / "home").mkdir()
        (folder / "log").mkdir()

    def close(self) -> None:
        """Stop all processes, the youngest first."""
        for process in reversed(self._processes):
            stop(process)

    def spawn(
        self, *args: str, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a process whose output goes to a file."""
        path = self.folder / f"out{len(self._processes)}.log"
        with path.open("w") as out:
            process = subprocess.Popen(
                args,
                env=env or self.env,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.folder,
            )

        process.log = path  # type: ignore[attr-defined]
        self._processes.append(process)
        return process

    # -- masters

    def master(self) -> subprocess.Popen[str]:
        """Start Debian's master."""
        process = self.spawn("/usr/bin/rosmaster", "--core", "-p", str(self.port))
        wait(lambda: self.ask("getPid")[0] == 1)
        return process

    def ask(self, method: str, *args: Any) -> Any:
        """Call the master; return [0, …] if it does not run."""
        try:
            with xmlrpc.client.ServerProxy(self.uri) as proxy:
                return getattr(proxy, method)("/test", *args)
        except OSError:
            return [0, "", None]

    def known(self) -> tuple[set[str], set[str], set[str]]:
        """Return the names of the published and subscribed topics, and of the services."""
        published, subscribed, services = self.ask("getSystemState")[2]
        return (
            {t for t, _ in published},
            {t for t, _ in subscribed},
            {s for s, _ in services},
        )

    # -- the simulator

    def botyard(self, *args: str) -> subprocess.Popen[str]:
        """Start a simulator and wait until it is ready."""
        env = {**os.environ, "ROS_MASTER_URI": self.uri, "ROS_IP": "127.0.0.1"}
        process = self.spawn(
            sys.executable,
            "-m",
            "botyard",
            "--noninteractive",
            "--no-crash-restart",
            "--no-gui",
            "-p",
            str(self.robots),
            *args,
            env=env,
        )
        says(process, "botyard ready")
        return process

    # -- tools

    def tool(self, *args: str, seconds: float = PATIENCE) -> str:
        """Return the output of one of Debian's tools."""
        done = subprocess.run(
            args,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=self.folder,
        )
        return done.stdout + done.stderr

    def rospy(self, what: str, *args: Any, seconds: float = PATIENCE) -> Any:
        """Return the result of a function of the rospy script."""
        done = subprocess.run(
            ["/usr/bin/python3", str(PEER), what, json.dumps(args)],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=self.folder,
        )
        lines = [x for x in done.stdout.splitlines() if x.startswith("RESULT ")]
        assert lines, done.stdout + done.stderr
        return json.loads(lines[-1].removeprefix("RESULT "))

    def rospy_later(self, what: str, *args: Any) -> subprocess.Popen[str]:
        """Start a function of the rospy script in the background."""
        return self.spawn("/usr/bin/python3", str(PEER), what, json.dumps(args))

    def service(self, path: str, type_name: str, /, **fields: Any) -> Any:
        """Call a service of a type that Debian's tools do not know."""
        t = types()
        kind = t.service(type_name)
        uri = self.ask("lookupService", path)[2]
        host, port = uri.removeprefix("rosrpc://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as s:
            s.sendall(
                wire.encode_header(
                    {"callerid": "/test", "service": path, "md5sum": kind.md5}
                )
            )
            s.sendall(
                wire.frame(t.encode_ros1(t[kind.request](**fields), kind.request))
            )
            header = wire.decode_header(read(s, struct.unpack("<I", read(s, 4))[0]))
            assert "error" not in header, header
            good = read(s, 1) == b"\x01"
            body = read(s, struct.unpack("<I", read(s, 4))[0])

        return t.decode_ros1(body, kind.response) if good else body.decode()


def read(s: socket.socket, size: int) -> bytes:
    """Read a number of bytes."""
    data = b""
    while len(data) < size:
        more = s.recv(size - len(data))
        assert more, "the connection ended"
        data += more

    return data


def output(process: subprocess.Popen[str]) -> str:
    """Return the output of a process so far."""
    text: str = process.log.read_text()  # type: ignore[attr-defined]
    return text


def says(process: subprocess.Popen[str], words: str) -> None:
    """Wait until a process has printed some words; fail if it ends before."""
    wait(lambda: words in output(process) or process.poll() is not None)
    assert process.poll() is None, output(process)


def stop(process: subprocess.Popen[str]) -> None:
    """End a process."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE / 2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
