"""A network for programs of a test: a namespace that has only a loopback."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

ALONE: Final = ("unshare", "-n", "-m")
"""Starts a program with a network and mounts of its own."""
LOOPBACK: Final = (
    "mount -t tmpfs shm /dev/shm && ip link set lo up multicast on "
    "&& ip route add 224.0.0.0/4 dev lo && "
)
"""Leaves only a loopback, with multicast, and an empty /dev/shm: Fast DDS would meet
the peers of other tests there.
"""


def missing_namespaces() -> str | None:
    """Return what tests with a network of their own lack here."""
    done = subprocess.run([*ALONE, "true"], capture_output=True, check=False)
    return "the right to make namespaces (root)" if done.returncode else None


class Network:
    """A network namespace; every port in it is free."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            [*ALONE, "bash", "-c", LOOPBACK + "echo there && exec sleep 3600"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.pid = self._holder.pid
        assert self._holder.stdout is not None
        said = self._holder.stdout.readline()
        if said != "there\n":
            self._holder.communicate()
            raise AssertionError(said)

    def inside(self, folder: Path, *args: str) -> list[str]:
        """Return a command line that runs a program in the network.

        Entering its mounts would leave the working directory.
        """
        target = ("-t", str(self.pid), "-n", "-m", f"--wd={folder}")
        return ["nsenter", *target, *args]

    def close(self) -> None:
        """Remove the network; its programs must have ended."""
        self._holder.kill()
        self._holder.communicate()
