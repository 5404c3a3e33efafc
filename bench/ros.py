"""The ROS interfaces: CPU for 100 robots × (Odometry, LaserScan of 181, PointCloud2) at
10 Hz, all read by another process.

In % of a core, over some seconds, against references of the same run: the simulator
without ROS, the simulator with its sensors read but no ROS, and for Zenoh a bare
program that sends as many bytes as often through the same library and does nothing
else. ROS 2 over DDS is `bench.ros2`'s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 15.0
SETTLE_S = 10.0
"""Until everything is registered, s."""
READY_S = 3.0
"""Until all topics of a reader have come, s."""
PORT = 21700
MASTER_PORT = 22200
ROBOTS = 100
TOPICS = (
    ("odom", "nav_msgs/Odometry"),
    ("base_scan", "sensor_msgs/LaserScan"),
    ("sonar_pointcloud2", "sensor_msgs/PointCloud2"),
)
READER = """
import asyncio, sys, time, xmlrpc.client
from botyard.protocols.ros_messages.types import types
from botyard.protocols.tcpros import wire
from botyard.protocols.tcpros.session import Subscription
master, node, robots, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
ready = float(sys.argv[5])
topics = {topics!r}
async def read(host, port, name, kind, counts):
    text, md5 = types().definition(kind)
    reader, writer = await asyncio.open_connection(host, port)
    session = Subscription("/reader", name, kind, md5, text)
    writer.write(session.hello)
    while data := await reader.read(65536):
        counts[0] += len(session.receive_data(data)); counts[1] += len(data)
async def main():
    uri = xmlrpc.client.ServerProxy(master).lookupNode("/reader", node)[2]
    _, _, (_, host, port) = xmlrpc.client.ServerProxy(uri).requestTopic("/reader", "/r0/odom", [["TCPROS"]])
    counts = [0, 0]
    tasks = [asyncio.ensure_future(read(host, port, f"/r{{i}}/{{n}}", k, counts)) for i in range(robots) for n, k in topics]
    await asyncio.sleep(ready); before = counts[:]; begin = time.perf_counter()
    print("reading", flush=True)
    await asyncio.sleep(seconds)
    dt = time.perf_counter() - begin
    print((counts[0] - before[0]) / dt, (counts[1] - before[1]) / dt / 1e6, flush=True)
    for t in tasks: t.cancel()
asyncio.run(main())
"""

SENSORS = """
import sys, time
from botyard import Simulation
sim = Simulation.load(sys.argv[1])
for robot in sim.robots.values():
    robot.laser.subscribe("bench"); robot.port("bench").subscribe_sonar(True)
sim.step(5); print("ready", flush=True)
begin, n = time.perf_counter(), 0
while True:
    sim.step(); n += 1
    time.sleep(max(0.0, begin + 0.1 * n - time.perf_counter()))
"""
SIZES = (712, 1556, 330)
"""Bytes of the three messages."""
READER_ZENOH = """
import sys, time, zenoh
robots, seconds, ready = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
counts = [0, 0]
def take(sample):
    counts[0] += 1; counts[1] += len(sample.payload)
config = zenoh.Config()
config.insert_json5("mode", '"client"'); config.insert_json5("connect/endpoints", '["tcp/127.0.0.1:7447"]')
session = zenoh.open(config)
ends = [session.declare_subscriber(f"0/r{{i}}/{{n}}/**", take) for i in range(robots) for n, _ in {topics!r}]
time.sleep(2 * ready); before = counts[:]; begin = time.perf_counter()
print("reading", flush=True)
time.sleep(seconds)
dt = time.perf_counter() - begin
print((counts[0] - before[0]) / dt, (counts[1] - before[1]) / dt / 1e6, flush=True)
session.close()
"""
BARE_ZENOH = """
import time, zenoh
config = zenoh.Config()
config.insert_json5("mode", '"router"'); config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:7447"]')
session = zenoh.open(config)
ends = [(session.declare_publisher(f"0/r{{i}}/{{n}}/type/hash"), bytes(size)) for i in range(100)
        for (n, _), size in zip({topics!r}, {sizes!r})]
print("ready", flush=True)
begin, n = time.perf_counter(), 0
while True:
    for publisher, data in ends: publisher.put(data, attachment=bytes(33))
    n += 1
    time.sleep(max(0.0, begin + 0.1 * n - time.perf_counter()))
"""


CASES = (("ROS 1", READER, ""), ("ROS 2, Zenoh", READER_ZENOH, BARE_ZENOH))


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command: list[str], reader_code: str = "") -> tuple[float, str]:
    """Return the CPU of a program, % of a core, and the number of messages that its reader
    received.
    """
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    reader = None
    try:
        assert program.stdout is not None
        for line in program.stdout:
            if "ready" in line:
                break

        if reader_code:
            # Wait until all topics are registered.
            time.sleep(SETTLE_S)
            args = [
                sys.executable,
                "-c",
                reader_code.format(topics=TOPICS),
                f"http://127.0.0.1:{MASTER_PORT}/",
                "/botyard",
            ]
            reader = subprocess.Popen(
                [*args, str(ROBOTS), str(SECONDS), str(READY_S)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert reader.stdout is not None
            assert reader.stdout.readline().strip() == "reading"
        else:
            time.sleep(SETTLE_S + READY_S)

        before, begin = cpu_of(program.pid), time.perf_counter()
        time.sleep(0.9 * SECONDS)
        share = 100.0 * (cpu_of(program.pid) - before) / (time.perf_counter() - begin)
        got = ""
        if reader is not None and reader.stdout is not None:
            rate, megabytes = map(float, reader.stdout.readline().split())
            got = f"{rate:.0f} messages/s, {megabytes:.1f} MB/s"

        return share, got
    finally:
        for process in (reader, program):
            if process is not None:
                process.terminate()
                process.communicate()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "w.yaml"
        rows = "".join(
            f"- {{name: r{i}, pose: [{4 + i % 10 * 5}, {4 + i // 10 * 0.6}, 0]}}\n"
            for i in range(ROBOTS)
        )
        world.write_text(f"botyard: 1\nmap: warehouse\nrobots:\n{rows}")
        simulator = [
            sys.executable,
            "-m",
            "botyard",
            str(world),
            "--noninteractive",
            "--no-crash-restart",
            "--no-gui",
            "-p",
            str(PORT),
        ]
        off, _ = run(simulator)
        print(f"   {ROBOTS} robots, no ROS                      {off:5.1f} % of a core")
        sensors, _ = run([sys.executable, "-c", SENSORS, str(world)])
        print(
            f"   their lasers and sonars read, no ROS  {sensors:5.1f} %   (the rows "
            "below are compared with this one)"
        )
        for name, reader, bare in CASES:
            options = (
                ["--zenoh-router"]
                if "Zenoh" in name
                else ["--ros-master", f"embedded:{MASTER_PORT}"]
            )
            idle, _ = run([*simulator, *options])
            print(
                f"   {name + ', nobody listens':37} {idle:5.1f} %   "
                f"({idle - off:+.1f} against no ROS)"
            )
            busy, got = run([*simulator, *options], reader)
            print(
                f"   {name + ', all 300 topics read':37} {busy:5.1f} %   "
                f"({busy - sensors:+.1f})   {got}"
            )
            if bare:
                alone, got = run(
                    [sys.executable, "-c", bare.format(topics=TOPICS, sizes=SIZES)],
                    reader,
                )
                print(f"   {name + ', the library alone':37} {alone:5.1f} %   {got}")
