"""Running ROS 2 peers against a simulator, in a network of their own that has only a
loopback: a Fast DDS program in C++, a peer in TypeScript's RTPS, and one that behaves
as rmw_cyclonedds_cpp.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from rosbags.typesys import Stores, get_typestore

from tests.ros.ros1 import output, stop
from tests.waiting import PATIENCE, wait

HERE: Final = Path(__file__).parent
CYCLONE_PEER: Final = HERE / "cyclone_peer.py"
NPM: Final = HERE / "npm"
ZENOH_PYTHON: Final = HERE.parent.parent / ".venv-zenoh/bin/python"
"""Of an environment with zenoh-ros2-sdk, which ``make peers`` makes."""
STORE: Final = get_typestore(Stores.ROS2_JAZZY)
"""ROS 2's types, without anything of ours."""
ALONE: Final = ("unshare", "-n", "-m")
"""Starts a program with a network and mounts of its own."""
LOOPBACK: Final = (
    "mount -t tmpfs shm /dev/shm && ip link set lo up multicast on "
    "&& ip route add 224.0.0.0/4 dev lo && "
)
"""Leaves only a loopback, with multicast, and an empty /dev/shm: Fast DDS would meet
the peers of other tests there.
"""


def dds(name: str) -> str:
    """``nav_msgs/msg/Odometry`` → ``nav_msgs::msg::dds_::Odometry_``, written out once
    more.
    """
    package, kind, short = name.split("/")
    return f"{package}::{kind}::dds_::{short}_"


def decoded(hexadecimal: str, name: str) -> Any:
    """A message from what a peer printed."""
    return STORE.deserialize_cdr(bytes.fromhex(hexadecimal), name)


class Got(dict[str, tuple[int, str]]):
    """Topics, how many messages came, and the last one's bytes in hexadecimal."""

    def last(self, topic: str, name: str) -> Any:
        """The last message."""
        return decoded(self[topic][1], name)


class Ros2World:
    """A network, and the processes in it."""

    def __init__(self, folder: Path, fastdds_peer: Path) -> None:
        self.folder = folder
        self.fastdds_peer = fastdds_peer
        self._processes: list[subprocess.Popen[str]] = []
        self._net = subprocess.Popen(
            [*ALONE, "bash", "-c", LOOPBACK + "echo there && exec sleep 3600"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._net.stdout is not None
        said = self._net.stdout.readline()
        if said != "there\n":
            self._net.communicate()
            raise AssertionError(said)

        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("ROS", "CYCLONE", "BOTYARD"))
        }
        self.env = {**kept, "PYTHONUNBUFFERED": "1"}

    def close(self) -> None:
        """Stop everything, the network last."""
        for process in reversed(self._processes):
            stop(process)
        self._net.kill()
        self._net.communicate()

    def _inside(self, folder: Path, *args: str) -> list[str]:
        """A command line that runs a program in the network; entering its mounts would
        leave the working folder.
        """
        return [
            "nsenter",
            "-t",
            str(self._net.pid),
            "-n",
            "-m",
            f"--wd={folder}",
            *args,
        ]

    def spawn(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """A process in the network, whose output goes to a file."""
        path = self.folder / f"out{len(self._processes)}.log"
        with path.open("w") as out:
            process = subprocess.Popen(
                self._inside(self.folder, *args),
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
        """What a program in the network prints."""
        done = subprocess.run(
            self._inside(cwd or self.folder, *args),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return done.stdout + done.stderr

    def botyard(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """A simulator, when it is ready."""
        process = self.spawn(
            sys.executable,
            "-m",
            "botyard",
            "--noninteractive",
            "--no-crash-restart",
            "--no-gui",
            *args,
            **env,
        )
        wait(lambda: "botyard ready" in output(process) or process.poll() is not None)
        assert process.poll() is None, output(process)
        return process

    # -- peers

    def fast(
        self,
        seconds: int,
        subscribed: dict[str, tuple[str, str]],
        published: dict[str, tuple[str, bytes]],
    ) -> tuple[Got, str]:
        """What the Fast DDS peer gets, and all that it prints.

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
        """The same with the TypeScript peer."""
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
        """What the zenoh-ros2-sdk peer sees while it turns ann, until so many messages
        have come, and after it has paused the world.

        Topics and services are looked up until these are among them.
        """
        return self._zenoh("zenoh_peer.py", str(seconds), str(least), *names)

    def zenoh_action(self, steps: int) -> Any:
        """What a client of SimulateSteps on zenoh-ros2-sdk sees."""
        return self._zenoh("zenoh_action_peer.py", str(steps))

    def _zenoh(self, peer: str, *args: str) -> Any:
        text = self.run(str(ZENOH_PYTHON), str(HERE / peer), *args)
        lines = [x for x in text.splitlines() if x.startswith("RESULT ")]
        assert lines, text
        return json.loads(lines[-1].removeprefix("RESULT "))

    def cyclone(self, what: str, *args: Any) -> Any:
        """What a function of the rmw_cyclonedds peer gives."""
        text = self.run(sys.executable, str(CYCLONE_PEER), what, json.dumps(args))
        lines = [x for x in text.splitlines() if x.startswith("RESULT ")]
        assert lines, text
        return json.loads(lines[-1].removeprefix("RESULT "))

    def cyclone_later(self, what: str, *args: Any) -> subprocess.Popen[str]:
        """The same in the background."""
        return self.spawn(sys.executable, str(CYCLONE_PEER), what, json.dumps(args))
