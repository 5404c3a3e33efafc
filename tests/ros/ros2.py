"""ROS 2 peers against a simulator in a network with only a loopback:

Fast DDS in C++, RTPS in TypeScript, and a peer that behaves as rmw_cyclonedds_cpp.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from rosbags.typesys import Stores, get_typestore

from tests.networks import Network
from tests.ros.ros1 import output, says, stop
from tests.waiting import PATIENCE, wait

HERE: Final = Path(__file__).parent
CYCLONE_PEER: Final = HERE / "cyclone_peer.py"
NPM: Final = HERE / "npm"
ZENOH_PYTHON: Final = HERE.parent.parent / ".venv-zenoh/bin/python"
"""Of an environment with zenoh-ros2-sdk, which ``make peers`` makes."""
WHEELS: Final = HERE.parent.parent / ".venv-ros2"
"""Environments with rclpy of two distributions, which ``make peers`` makes."""
DISTRIBUTIONS: Final = ("jazzy", "kilted")
STORE: Final = get_typestore(Stores.ROS2_JAZZY)
"""ROS 2's types, without anything of ours."""


def dds(name: str) -> str:
    """Return ``nav_msgs::msg::dds_::Odometry_`` for ``nav_msgs/msg/Odometry``, written
    independently.
    """
    package, kind, short = name.split("/")
    return f"{package}::{kind}::dds_::{short}_"


def decoded(hexadecimal: str, name: str) -> Any:
    """Return a message from a peer's output."""
    return STORE.deserialize_cdr(bytes.fromhex(hexadecimal), name)


class Got(dict[str, tuple[int, str]]):
    """Topics with the number of messages and the last one's bytes in hexadecimal."""

    def last(self, topic: str, name: str) -> Any:
        """Return the last message."""
        return decoded(self[topic][1], name)


class Ros2World:
    """A network namespace, and the processes in it."""

    def __init__(self, folder: Path, fastdds_peer: Path) -> None:
        self.folder = folder
        self.fastdds_peer = fastdds_peer
        self._processes: list[subprocess.Popen[str]] = []
        self._net = Network()
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("ROS", "CYCLONE", "BOTYARD"))
        }
        self.env = {**kept, "PYTHONUNBUFFERED": "1"}

    def close(self) -> None:
        """Stop all processes, and the network last."""
        for process in reversed(self._processes):
            stop(process)
        self._net.close()

    def join(self, other: Ros2World, here: str, there: str) -> None:
        """Connect the networks of two hosts; each gets an address."""
        name = f"b{self._net.pid}"
        self.run(
            *("ip", "link", "add", name, "type", "veth"),
            *("peer", "name", name, "netns", str(other._net.pid)),
        )
        for world, address in ((self, here), (other, there)):
            world.run("ip", "address", "add", f"{address}/24", "dev", name)
            said = world.run("ip", "link", "set", name, "up", "multicast", "on")
            assert not said, said

    def spawn(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a process in the network; its output goes to a file."""
        path = self.folder / f"out{len(self._processes)}.log"
        with path.open("w") as out:
            process = subprocess.Popen(
                self._net.inside(self.folder, *args),
                env={**self.env, **env},
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )

        process.log = path  # type: ignore[attr-defined]
        self._processes.append(process)
        return process

    def run(
        self, *args: str, seconds: float = PATIENCE, cwd: Path | None = None
    ) -> str:
        """Return the output of a program in the network."""
        done = subprocess.run(
            self._net.inside(cwd or self.folder, *args),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return done.stdout + done.stderr

    def botyard(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a simulator and wait until it is ready."""
        process = self.botyard_later(*args, **env)
        says(process, "botyard ready")
        return process

    def botyard_later(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a simulator; it says "botyard ready"."""
        return self.spawn(
            sys.executable,
            "-m",
            "botyard",
            "--noninteractive",
            "--no-crash-restart",
            "--no-gui",
            *args,
            **env,
        )

    # -- peers

    def fast(
        self,
        seconds: int,
        subscribed: dict[str, tuple[str, str]],
        published: dict[str, tuple[str, bytes]],
    ) -> tuple[Got, str]:
        """Return the messages and the output of the Fast DDS peer.

        Parameters
        ----------
        subscribed : dict
            ROS name → type, qualities (see fastdds_peer.cpp).
        published : dict
            ROS name (or, without a slash in front, DDS name) → type, CDR.
        """
        args: list[str] = []
        for topic, (name, qos) in subscribed.items():
            args += [
                "sub",
                topic if topic == "ros_discovery_info" else f"rt{topic}",
                dds(name),
                qos,
            ]

        for topic, (name, data) in published.items():
            args += [
                "pub",
                f"rt{topic}" if topic.startswith("/") else topic,
                dds(name),
                data.hex(),
            ]

        text = self.run(str(self.fastdds_peer), str(seconds), *args)
        return self._got(text), text

    def fox(
        self, seconds: int, subscribed: dict[str, tuple[str, str]]
    ) -> tuple[Got, str]:
        """Run the TypeScript peer in the same way."""
        args = [part for topic, entry in subscribed.items() for part in (topic, *entry)]
        node = shutil.which("node") or str(Path(sys.executable).parent / "node")
        text = self.run(node, "peer.mjs", "127.0.0.1", str(seconds), *args, cwd=NPM)
        return self._got(text), text

    @staticmethod
    def _got(text: str) -> Got:
        got = Got()
        for line in text.splitlines():
            if line.startswith("GOT "):
                _, topic, count, data = line.split(" ")
                got[topic.removeprefix("rt")] = (int(count), data)

        return got

    def zenoh(self, seconds: float, least: int, *names: str) -> Any:
        """Return the observations of the zenoh-ros2-sdk peer while it turns ann, up to
        a number of messages, and after it has paused the world.

        Topics and services are looked up until these are among them.
        """
        return self._zenoh("zenoh_peer.py", str(seconds), str(least), *names)

    def zenoh_action(self, steps: int) -> Any:
        """Return the observations of a client of SimulateSteps on zenoh-ros2-sdk."""
        return self._zenoh("zenoh_action_peer.py", str(steps))

    def zenoh_wire(self) -> Any:
        """Return the attachments and tokens that a peer on zenoh's binding found."""
        return self._zenoh("zenoh_wire_peer.py")

    def _zenoh(self, peer: str, *args: str) -> Any:
        text = self.run(str(ZENOH_PYTHON), str(HERE / peer), *args)
        _, found, result = text.rpartition("RESULT ")
        assert found, text[-3000:]
        # A thread of rclpy may complain on the same line when the peer ends.
        value, _ = json.JSONDecoder().raw_decode(result)
        return value

    def rclpy(self, distro: str, what: str, *args: Any) -> Any:
        """The result of a function of the rclpy peer of a distribution."""
        return self.ended(self.rclpy_later(distro, what, *args))

    def rclpy_later(
        self, distro: str, what: str, *args: Any, **env: str
    ) -> subprocess.Popen[str]:
        """Start the peer in the background; see `ended`.

        ``networks.bear`` is a function of rclpy_networks.py, ``churn`` one of
        rclpy_peer.py.
        """
        module, _, function = what.rpartition(".")
        return self.wheel(distro, f"rclpy_{module or 'peer'}.py", function, args, **env)

    def zenoh_later(
        self, distro: str, what: str, *args: Any, **env: str
    ) -> subprocess.Popen[str]:
        """Start a function of the peer that acts as rmw_zenoh in the background."""
        (packages,) = ZENOH_PYTHON.parent.parent.glob("lib/python*/site-packages")
        own = {"ZENOH_PACKAGES": str(packages), **env}
        return self.wheel(distro, "zenoh_rmw_peer.py", what, args, **own)

    def wheel(
        self, distro: str, peer: str, what: str, args: Any, **env: str
    ) -> subprocess.Popen[str]:
        """Start a function of a program by the Python of a distribution."""
        # The wheels start Python anew, with all variables that it was started with.
        own = {"PYTHONHOME": "", "PYTHONPATH": "", "ROS_LOG_DIR": str(self.folder)}
        python = str(WHEELS / distro / "bin/python")
        path = str(HERE / peer)
        return self.spawn(python, path, what, json.dumps(args), **own, **env)

    def ended(self, process: subprocess.Popen[str]) -> Any:
        """The result of a peer in the background, when it has ended."""
        wait(
            lambda: process.poll() is not None,
            2 * PATIENCE,
            what=lambda: output(process),
        )
        text = output(process)
        lines = [x for x in text.splitlines() if x.startswith("RESULT ")]
        assert lines, text[-3000:]
        # A thread of rclpy may complain behind it, on the same line, when the peer ends.
        result, _ = json.JSONDecoder().raw_decode(lines[-1].removeprefix("RESULT "))
        return result

    def cyclone(self, what: str, *args: Any) -> Any:
        """Return the result of a function of the rmw_cyclonedds peer."""
        text = self.run(sys.executable, str(CYCLONE_PEER), what, json.dumps(args))
        lines = [x for x in text.splitlines() if x.startswith("RESULT ")]
        assert lines, text
        # A thread of rclpy may complain behind it, on the same line, when the peer ends.
        result, _ = json.JSONDecoder().raw_decode(lines[-1].removeprefix("RESULT "))
        return result

    def cyclone_later(self, what: str, *args: Any, **env: str) -> subprocess.Popen[str]:
        """Start a function of the rmw_cyclonedds peer in the background."""
        peer = str(CYCLONE_PEER)
        return self.spawn(sys.executable, peer, what, json.dumps(args), **env)


def together(
    networks: Mapping[str, Ros2World], check: Callable[[Ros2World, str], None]
) -> None:
    """Check all distributions at the same time, each in a network of its own.

    Such checks mostly wait: for simulated time, or for the other side.
    """
    with ThreadPoolExecutor(len(networks)) as pool:
        checks = {d: pool.submit(check, world, d) for d, world in networks.items()}
    for distro, one in checks.items():
        error = one.exception()
        if error is not None:
            error.add_note(f"with {distro}")
            raise error
