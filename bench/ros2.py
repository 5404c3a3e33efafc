"""ROS 2 over DDS: CPU for what a Fast DDS process reads of 100 robots, and the messages
that it lost; AMBF's objects at 1 kHz.

In % of a core, over some seconds, in a network namespace of its own that has only a
loopback (root), with the simulator's Python in ``PYTHONPATH``: another version of
botyard can be measured in the same way. Needs g++ and Debian's libfastrtps-dev. A
message is lost if its sequence number is missing between the first and the last number
that the reader got. Messages written before the match do not count, nor do messages
never written because the simulator was late. Simulator and
reader come before all other programs (``chrt --rr``): a simulator that gets less
processor time than it needs writes in bursts, which no pace can make fit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.ambf import description
from bench.ros import ROBOTS, SENSORS, cpu_of

PORT = 21750
FIRST = ("chrt", "--rr", "5")
"""Runs a program before all others, so that what is lost is lost on the way."""
SECONDS = 20.0
SETTLE_S = 10.0
"""Until all are matched, s."""
LOOPBACK = (
    "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && "
    "echo there && exec sleep 3600"
)
ODOMETRY, SCAN, CLOUD = (
    "nav_msgs/Odometry",
    "sensor_msgs/LaserScan",
    "sensor_msgs/PointCloud2",
)
TF, STATE = "tf2_msgs/TFMessage", "ambf_msgs/RigidBodyState"
PEER = Path(__file__).parent.parent / "tests/ros/fastdds_peer.cpp"
Topics = list[tuple[str, str]]


def dds(name: str) -> str:
    """Return the DDS name of a type."""
    package, short = name.split("/")
    return f"{package}::msg::dds_::{short}_"


class Bench:
    """A network namespace, and a reader on Fast DDS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reader = folder / "peer"
        subprocess.run(
            [
                "g++",
                "-O2",
                "-std=c++17",
                str(PEER),
                "-lfastrtps",
                "-lfastcdr",
                "-o",
                str(self.reader),
            ],
            check=True,
        )
        self.net = subprocess.Popen(
            ["unshare", "-n", "bash", "-c", LOOPBACK], stdout=subprocess.PIPE, text=True
        )
        assert self.net.stdout is not None
        assert self.net.stdout.readline() == "there\n"
        self.enter = ["nsenter", "-t", str(self.net.pid), "-n"]

    def close(self) -> None:
        self.net.kill()
        self.net.communicate()

    @contextmanager
    def program(self, *command: str) -> Iterator[int]:
        """Start a program that says when it is ready; return its process ID."""
        with (self.folder / "log").open("w") as log:
            program = subprocess.Popen(
                [*self.enter, *FIRST, *command],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

        try:
            assert program.stdout is not None
            if not any("ready" in line for line in program.stdout):
                sys.exit((self.folder / "log").read_text())
            yield program.pid
        finally:
            program.terminate()
            program.communicate()

    def cost(self, pid: int, seconds: float = SECONDS) -> float:
        """Return the CPU time of a process, % of a core."""
        before, begin = cpu_of(pid), time.perf_counter()
        time.sleep(seconds)
        return 100.0 * (cpu_of(pid) - before) / (time.perf_counter() - begin)

    def read(
        self, pid: int, topics: Topics, quality: str, seconds: float = SECONDS
    ) -> tuple[float, str]:
        """Return the CPU of the simulator while topics are read, and the numbers of received
        and lost messages.
        """
        args = [
            part
            for name, kind in topics
            for part in ("sub", f"rt{name}", dds(kind), quality)
        ]
        command = [
            *self.enter,
            *FIRST,
            str(self.reader),
            str(round(seconds + SETTLE_S + 2)),
            *args,
        ]
        path = self.folder / "reader"
        # The reader prints so many lines that a full pipe would block it.
        with path.open("w") as out:
            reader = subprocess.Popen(command, stdout=out)
        time.sleep(SETTLE_S)
        share = self.cost(pid, seconds)
        reader.wait()
        came, written, read = 0, 0, 0
        for line in path.read_text().splitlines():
            words = line.split(" ")
            if words[0] == "GOT":
                came += int(words[2])
                read += 1
            elif words[0] == "NUMBERS":
                written += int(words[3]) - int(words[2]) + 1

        return (
            share,
            f"{came} messages of {read} topics of {len(topics)}, {written - came} lost",
        )


def simulator(*options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "botyard",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-p",
        str(PORT),
        *options,
    ]


def robots(bench: Bench) -> None:
    """Measure the topics of 100 robots."""
    world = bench.folder / "w.yaml"
    rows = "".join(
        f"- {{name: r{i}, pose: [{4 + i % 10 * 5}, {4 + i // 10 * 0.6}, 0]}}\n"
        for i in range(ROBOTS)
    )
    world.write_text(f"botyard: 1\nmap: warehouse\nrobots:\n{rows}")

    def topics(*wanted: tuple[str, str]) -> Topics:
        return [(f"/r{i}/{name}", kind) for i in range(ROBOTS) for name, kind in wanted]

    three = topics(
        ("odom", ODOMETRY), ("base_scan", SCAN), ("sonar_pointcloud2", CLOUD)
    )
    for interval in ("100", "20"):
        with bench.program(
            *simulator(str(world), "--update-interval", interval)
        ) as pid:
            time.sleep(3.0)
            print(
                f"   {ROBOTS} robots, steps of {interval} ms, no ROS         "
                f"{bench.cost(pid):5.1f} %",
                flush=True,
            )

    with bench.program(sys.executable, "-c", SENSORS, str(world)) as pid:
        time.sleep(3.0)
        print(
            f"   steps of 100 ms, sensors read, no ROS      {bench.cost(pid):5.1f} %",
            flush=True,
        )

    with bench.program(
        *simulator(str(world), "--update-interval", "100", "--ros2")
    ) as pid:
        time.sleep(3.0)
        print(
            f"   steps of 100 ms, nobody listens            {bench.cost(pid):5.1f} %",
            flush=True,
        )
        for quality, text, seconds in (
            ("rv", "reliable", SECONDS),
            ("bv", "best effort", 60.0),
        ):
            share, got = bench.read(pid, three, quality, seconds)
            print(
                f"   3 topics at 10 Hz, {text:11}             {share:5.1f} %   {got}",
                flush=True,
            )

    with bench.program(
        *simulator(str(world), "--update-interval", "20", "--ros2", "--scan-rate", "10")
    ) as pid:
        fast = [*topics(("odom", ODOMETRY)), ("/tf", TF)]
        slow = topics(("base_scan", SCAN))
        share, got = bench.read(pid, [*fast, *slow], "rv")
        print(
            f"   odometry and tf at 50 Hz, scans at 10 Hz   {share:5.1f} %   {got}",
            flush=True,
        )

    with bench.program(
        *simulator(str(world), "--update-interval", "20", "--ros2")
    ) as pid:
        fast = [*topics(("odom", ODOMETRY)), ("/tf", TF)]
        share, got = bench.read(pid, fast, "rv")
        print(
            f"   odometry and tf at 50 Hz                   {share:5.1f} %   {got}",
            flush=True,
        )
        share, got = bench.read(pid, [*fast, *topics(("base_scan", SCAN))], "rv")
        print(
            f"   the same, and scans at 50 Hz               {share:5.1f} %   {got}",
            flush=True,
        )


def objects(bench: Bench) -> None:
    """Measure 20 AMBF objects at 1 kHz, without commands."""
    adf = str(description(bench.folder, 20))
    options = (
        "--nomap",
        "--robot-factory",
        "p3dx",
        "--ambf",
        "2.0",
        "--ambf-port",
        "0",
        "--adf",
        adf,
    )
    rates = ("--ambf-min-freq", "1000", "--update-interval", "1")
    for more in ((), ("--ros2",)):
        with bench.program(*simulator(*options, *rates, *more)) as pid:
            time.sleep(3.0)
            if not more:
                print(
                    f"   20 objects at 1 kHz, no ROS 2              {bench.cost(pid):5.1f} %",
                    flush=True,
                )
                continue

            named = [(f"/ambf/env/b{k}/State", STATE) for k in range(20)]
            share, got = bench.read(pid, named, "rv")
            print(
                f"   20 objects at 1 kHz                        {share:5.1f} %   {got}",
                flush=True,
            )


def main() -> None:
    os.environ.pop("ROS_AUTOMATIC_DISCOVERY_RANGE", None)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            robots(bench)
            objects(bench)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
