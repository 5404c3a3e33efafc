"""The ROS interfaces: CPU for 100 robots × (Odometry, LaserScan of 181, PointCloud2) at 10 Hz, all read by another process.

Against the same run with the interface off, and with it on but nobody listening; % of a core over some seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 15.0
PORT = 21700
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
    await asyncio.sleep(3); before = counts[:]; begin = time.perf_counter()
    print("reading", flush=True)
    await asyncio.sleep(seconds)
    dt = time.perf_counter() - begin
    print((counts[0] - before[0]) / dt, (counts[1] - before[1]) / dt / 1e6, flush=True)
    for t in tasks: t.cancel()
asyncio.run(main())
"""

READER2 = """
import asyncio, sys, time
from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.naming import topic_name
from botyard.protocols.ros_messages.types import full, types
from botyard.servers.cyclone import Pipe
_, _, robots, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
topics = {topics!r}
async def main():
    counts = [0, 0]
    def take(data):
        counts[0] += 1; counts[1] += len(data)
    pipe = Pipe(types(), Environment.read())
    ends = [pipe.reader(topic_name(f"/r{{i}}/{{n}}"), full(k), take, reliable=True) for i in range(robots) for n, k in topics]
    await asyncio.sleep(6); before = counts[:]; begin = time.perf_counter()
    print("reading", flush=True)
    await asyncio.sleep(seconds)
    dt = time.perf_counter() - begin
    print((counts[0] - before[0]) / dt, (counts[1] - before[1]) / dt / 1e6, flush=True)
    pipe.close()
asyncio.run(main())
"""


def cpu_of(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(robots: int, options: list[str], read: bool, reader_code: str = READER) -> tuple[float, str]:
    """% of a core that a simulator takes, and what the reader got."""
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "w.yaml"
        rows = "".join(f"- {{name: r{i}, pose: [{4 + i % 10 * 5}, {4 + i // 10 * 0.6}, 0]}}\n" for i in range(robots))
        world.write_text(f"botyard: 1\nmap: warehouse\nrobots:\n{rows}")
        command = [
            sys.executable,
            "-m",
            "botyard",
            str(world),
            "--noninteractive",
            "--no-gui",
            "-p",
            str(PORT),
            *options,
        ]
        simulator = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        reader = None
        try:
            assert simulator.stdout is not None
            for line in simulator.stdout:
                if "ready" in line:
                    break
            if read:
                time.sleep(10.0)  # until everything is registered
                code = reader_code.format(topics=TOPICS)
                args = [
                    sys.executable,
                    "-c",
                    code,
                    f"http://127.0.0.1:{PORT + 500}/",
                    "/botyard",
                    str(robots),
                    str(SECONDS),
                ]
                reader = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
                assert reader.stdout is not None
                assert reader.stdout.readline().strip() == "reading"
            else:
                time.sleep(13.0)
            before, begin = cpu_of(simulator.pid), time.perf_counter()
            time.sleep(SECONDS - 1.0)
            share = 100.0 * (cpu_of(simulator.pid) - before) / (time.perf_counter() - begin)
            got = ""
            if reader is not None and reader.stdout is not None:
                rate, megabytes = map(float, reader.stdout.readline().split())
                got = f"{rate:6.0f} messages/s, {megabytes:.1f} MB/s"
            return share, got
        finally:
            for process in (reader, simulator):
                if process is not None:
                    process.terminate()
                    process.wait()


def main() -> None:
    robots = 100
    master = ["--ros-master", f"embedded:{PORT + 500}"]
    off, _ = run(robots, [], False)
    print(f"   {robots} robots, no ROS                      {off:5.1f} % of a core")
    idle, _ = run(robots, master, False)
    print(f"   ROS 1, nobody listens                 {idle:5.1f} %   ({idle - off:+.1f})")
    busy, got = run(robots, master, True)
    print(
        f"   ROS 1, all 300 topics read            {busy:5.1f} %   ({busy - off:+.1f}; with the scans themselves)   {got}"
    )
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    idle, _ = run(robots, ["--ros2"], False)
    print(f"   ROS 2 (DDS), nobody listens           {idle:5.1f} %   ({idle - off:+.1f})")
    busy, got = run(robots, ["--ros2"], True, READER2)
    print(f"   ROS 2 (DDS), all 300 topics read      {busy:5.1f} %   ({busy - off:+.1f})   {got}")
