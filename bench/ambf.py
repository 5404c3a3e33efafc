"""AMBF's objects: message rates without loss, and lockstep toggles a second, all over loopback
sockets to other processes.

States are counted by a raw sink of TCPROS and by ``rosbag record`` (where Debian's is
installed); a number that is missing in their headers (``seq``) is a state that was
lost. Lockstep is by raw TCPROS (command and state of the world) and by our own client
without ROS. The reference of the same run is a bare asyncio echo over loopback: the
least that a round trip takes.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import struct
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from pathlib import Path

from bench.ros import cpu_of
from botyard.protocols.ambf.messages import GENERATIONS, definitions
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tcpros import wire
from botyard.protocols.tcpros.session import Subscription

PORT = 21900
SECONDS = 5.0
KIND = "ambf_msgs/RigidBodyState"

COMMANDER = """
import socket, sys, time
from botyard.protocols.ambf.link import FrameReader, Kind, frame, parse_topics
from botyard.protocols.ambf.messages import GENERATIONS, definitions
from botyard.protocols.ros_messages.types import Types
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
reader, found = FrameReader(), []
while not found:
    found = list(reader.feed_bytes(sock.recv(1 << 16)))
types = Types(more=definitions("2.0"))
idle = types.encode_ros1(types.blank("ambf_msgs/RigidBodyCmd"), "ambf_msgs/RigidBodyCmd")
numbers = [t.number for t in parse_topics(found[0].data)[1] if t.type_name == "ambf_msgs/RigidBodyCmd"]
data = b"".join(frame(Kind.MESSAGE, n, idle) for n in numbers)
print("commanding", flush=True)
while True:
    sock.sendall(data)
    time.sleep(1.0 / float(sys.argv[2]))
"""
ECHO = """
import asyncio
class Echo(asyncio.Protocol):
    def connection_made(self, transport): self.t = transport
    def data_received(self, data): self.t.write(data)
async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", {port})
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def description(folder: Path, count: int) -> Path:
    """Return the path of a description file with `count` boxes with mass in a row."""
    path = folder / f"{count}.yaml"
    names = [f"BODY b{k}" for k in range(count)]
    text = f"bodies: [{', '.join(names)}]\n"
    for k, name in enumerate(names):
        text += (
            f"{name}: {{mass: 1, shape: Box, geometry: {{x: 0.4, y: 0.4, z: "
            f"0.4}}, location: {{position: {{x: {k}, y: 0, z: 0}}}}}}\n"
        )

    path.write_text(text)
    return path


class Simulator:
    """A simulator with boxes of a description file, and the programs that measure it."""

    def __init__(
        self, folder: Path, count: int, *more: str, generation: str = "2.0"
    ) -> None:
        self.port = PORT
        args = [
            sys.executable,
            "-m",
            "botyard",
            "--nomap",
            "--robot-factory",
            "p3dx",
            "--noninteractive",
            "--no-crash-restart",
            "--no-gui",
            "-p",
            str(PORT + 1),
            "--ambf",
            generation,
            "--ambf-port",
            str(PORT),
            "--ros-master",
            f"embedded:{PORT + 5}",
            "--adf",
            str(description(folder, count)),
            *more,
        ]
        self.process = subprocess.Popen(
            args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "botyard ready" in line:
                break

        self.helpers: list[subprocess.Popen[str]] = []

    def helper(self, code: str, *args: object) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, args)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        self.helpers.append(process)

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.helpers, self.process):
            process.terminate()
            process.communicate(timeout=10)


def node_of(master: str) -> str:
    """Return the address of the simulator's node."""
    with xmlrpc.client.ServerProxy(master) as proxy:
        return str(proxy.lookupNode("/bench", "/ambf_comm_node")[2])


def peer(master: str, topic: str, kind: str, types: Types) -> socket.socket:
    """Return a TCPROS connection that reads a topic."""
    with xmlrpc.client.ServerProxy(node_of(master)) as proxy:
        _, _, (_, host, port) = proxy.requestTopic("/bench", topic, [["TCPROS"]])
    text, md5 = types.definition(kind)
    sock = socket.create_connection((host, port))
    sock.sendall(Subscription("/bench", topic, kind, md5, text).hello)
    return sock


async def sink(master: str, count: int, seconds: float) -> tuple[float, int, int]:
    """Subscribe to the states of all objects. Returns states a second of an object, states that
    were lost, and bytes a second.
    """
    types = Types(more=definitions("2.0"))
    loop = asyncio.get_running_loop()
    steps: list[list[int]] = [[] for _ in range(count)]
    total = [0]

    class Sink(asyncio.Protocol):
        def __init__(self, k: int) -> None:
            self.steps, self.rest, self.greeted = steps[k], b"", False

        def data_received(self, data: bytes) -> None:
            total[0] += len(data)
            data, at = self.rest + data, 0
            while len(data) - at >= 4:
                (size,) = struct.unpack_from("<I", data, at)
                if len(data) - at < 4 + size:
                    break
                if self.greeted:
                    self.steps.append(struct.unpack_from("<I", data, at + 4)[0])
                self.greeted = True
                at += 4 + size

            self.rest = data[at:]

    async def read(k: int) -> None:
        sock = await loop.run_in_executor(
            None, peer, master, f"/ambf/env/b{k}/State", KIND, types
        )
        await loop.create_connection(lambda: Sink(k), sock=sock)

    await asyncio.gather(*(read(k) for k in range(count)))
    await asyncio.sleep(2.0)
    marks = [len(s) for s in steps]
    begin, bytes_before = time.perf_counter(), total[0]
    await asyncio.sleep(seconds)
    took = time.perf_counter() - begin
    kept = [s[m:] for s, m in zip(steps, marks, strict=True)]
    missing = sum(s[-1] - s[0] + 1 - len(s) for s in kept if s)
    return (
        sum(map(len, kept)) / count / took,
        missing,
        round((total[0] - bytes_before) / took),
    )


def recorded(master: str, count: int, seconds: int, folder: Path) -> str:
    """Return how many states a second Debian's ``rosbag record`` receives of an object, least
    and most, and how many states were lost.
    """
    if not Path("/usr/bin/rosbag").exists():
        return "no rosbag here"
    from rosbags.rosbag1 import Reader

    path = folder / "states.bag"
    env = {
        "PATH": "/usr/bin:/bin",
        "ROS_MASTER_URI": master,
        "ROS_IP": "127.0.0.1",
        "HOME": str(folder),
        "ROS_ROOT": "/usr/share/ros",
        "ROS_PACKAGE_PATH": "/usr/share",
    }
    topics = [f"/ambf/env/b{k}/State" for k in range(count)]
    args = [
        "/usr/bin/rosbag",
        "record",
        "-O",
        str(path),
        "-b",
        "512",
        f"--duration={seconds}",
        *topics,
    ]
    subprocess.run(args, env=env, check=True, capture_output=True, timeout=60)
    steps: dict[str, list[tuple[int, int]]] = {t: [] for t in topics}
    with Reader(path) as reader:
        for connection, stamp, data in reader.messages():
            steps[connection.topic].append(
                (stamp, struct.unpack_from("<I", data, 0)[0])
            )

    end = max(rows[-1][0] for rows in steps.values() if rows)
    # Count only the last seconds, in which all objects are connected.
    kept = [
        [(t, s) for t, s in rows if t > end - (seconds - 2) * 10**9]
        for rows in steps.values()
    ]
    rates = [len(rows) / (seconds - 2) for rows in kept]
    gaps = sum(
        rows[-1][1] - rows[0][1] + 1 - len({s for _, s in rows}) for rows in kept
    )
    return f"{min(rates):.1f} … {max(rates):.1f} states/s, {gaps} missing"


def toggles_by_tcpros(
    master: str, skips: int, seconds: float, read_too: int = 0, generation: str = "2.0"
) -> tuple[float, int, int]:
    """Return toggles a second of a raw TCPROS client, steps made and steps wanted.

    The client also reads the states of `read_too` objects after each toggle.
    """
    types = Types(more=definitions(generation))
    kind = "ambf_msgs/ObjectState" if generation == "master" else KIND
    objects = [
        peer(master, f"/ambf/env/b{k}/State", kind, types) for k in range(read_too)
    ]
    streams = [one.makefile("rb") for one in objects]
    for stream in streams:
        # The first message of a connection is its header, which is not a state.
        stream.read(struct.unpack("<I", stream.read(4))[0])
    state = peer(master, "/ambf/env/World/State", "ambf_msgs/WorldState", types)
    stream = state.makefile("rb")

    def read() -> bytes:
        (size,) = struct.unpack("<I", stream.read(4))
        return stream.read(size)

    # Skip the header of the connection.
    read()
    text, md5 = types.definition("ambf_msgs/WorldCmd")
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    # The simulator connects to publishers that the master names, so this client must answer like a
    # node; two methods suffice.
    from threading import Thread
    from xmlrpc.server import SimpleXMLRPCServer

    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=True)
    server.register_function(
        lambda *_: (1, "", ["TCPROS", "127.0.0.1", address[1]]), "requestTopic"
    )
    server.register_function(lambda *_: (1, "", 0), "publisherUpdate")
    Thread(target=server.serve_forever, daemon=True).start()
    uri = f"http://127.0.0.1:{server.server_address[1]}/"
    with xmlrpc.client.ServerProxy(master) as proxy:
        proxy.registerPublisher(
            "/bench_world", "/ambf/env/World/Command", "ambf_msgs/WorldCmd", uri
        )
    out, _ = listener.accept()
    out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    size = struct.unpack("<I", out.recv(4))[0]
    out.recv(size)
    out.sendall(
        wire.encode_header(
            {
                "callerid": "/bench_world",
                "type": "ambf_msgs/WorldCmd",
                "md5sum": md5,
                "message_definition": text,
            }
        )
    )
    # The message has a sequence number, a stamp, an empty frame, the rate of the loop and the
    # number of devices. AMBF 2.0 has the rate of its graphics before the rate of the loop.
    offset = 4 + 8 + 4 + 8 * (1 + (generation == "2.0")) + 1

    def command(clock: bool) -> None:
        out.sendall(wire.frame(struct.pack("<BBB", 1, clock, skips)))

    def step() -> int:
        return int(struct.unpack_from("<I", read(), offset)[0])

    seen = [0] * read_too

    def step_of(state: bytes) -> int:
        # The step follows the sequence number, the stamp and the frame.
        (frame,) = struct.unpack_from("<I", state, 12)
        return int(struct.unpack_from("<I", state, 16 + frame)[0])

    def read_objects(until: int) -> None:
        for k, stream in enumerate(streams):
            while seen[k] < until:
                seen[k] = step_of(stream.read(struct.unpack("<I", stream.read(4))[0]))

    command(False)
    time.sleep(0.3)
    state.setblocking(False)
    try:
        while state.recv(1 << 16):
            pass
    except BlockingIOError:
        pass

    state.setblocking(True)
    stream = state.makefile("rb")
    clock, count = True, 0
    command(clock)
    before = now = step()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        clock = not clock
        command(clock)
        want = now + skips
        while now < want:
            now = step()
        read_objects(now)
        count += 1

    took = time.perf_counter() - begin
    server.shutdown()
    server.server_close()
    for one in (*objects, *streams, state, stream, out, listener):
        one.close()
    return count / took, now - before, count * skips


def toggles_by_link(port: int, skips: int, seconds: float) -> tuple[float, int, int]:
    """Return toggles a second, steps made and steps wanted of our own client without ROS."""
    from botyard.clients.ambf import Client

    with Client("bench", port=port) as client:
        world = client.get_world_handle()
        world.enable_throttling(True)
        world.set_num_step_skips(skips)
        world.update()
        time.sleep(0.3)
        before = now = world.get_sim_step()
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            world.update_and_wait()
            now = world.get_sim_step()
            count += 1

        return count / (time.perf_counter() - begin), now - before, count * skips


def echo(seconds: float = 2.0) -> float:
    """Return round trips a second of a bare server that echoes."""
    server = subprocess.Popen(
        [sys.executable, "-c", ECHO.format(port=PORT + 9)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    server.stdout.readline()
    with socket.create_connection(("127.0.0.1", PORT + 9)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            sock.sendall(b"x")
            sock.recv(1)
            count += 1

    server.terminate()
    server.communicate(timeout=5)
    return count / seconds


def rates(master: str, folder: Path) -> None:
    """Print the message rates of 20 and of 100 objects."""
    for count, rate, commands in ((20, 1000, 120.0), (100, 120, 4.0)):
        step = "1" if rate == 1000 else "8"
        with Simulator(
            folder, count, "--update-interval", step, "--ambf-max-freq", str(rate)
        ) as simulator:
            simulator.helper(COMMANDER, PORT, commands)
            before, begin = cpu_of(simulator.process.pid), time.perf_counter()
            got, missing, size = asyncio.run(sink(master, count, SECONDS))
            cpu = (
                100.0
                * (cpu_of(simulator.process.pid) - before)
                / (time.perf_counter() - begin)
            )
            bag = recorded(master, count, int(SECONDS) + 2, folder)
            print(
                f"   {count:3} objects at {rate:4} Hz: {got:6.1f} states/s of "
                f"each, {missing} missing, "
                f"{size / 1e6:.1f} MB/s, {cpu:.0f} % of a core; rosbag record: {bag}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench ambf")
    parser.add_argument(
        "--lockstep",
        action="store_true",
        help="measure only lockstep, with ten objects",
    )
    args = parser.parse_args()
    master = f"http://127.0.0.1:{PORT + 5}/"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not args.lockstep:
            rates(master, folder)
        base = echo()
        print(f"   a bare echo over loopback: {base:.0f} round trips/s")
        with Simulator(folder, 3, "--update-interval", "1") as simulator:
            for label, run in (
                ("TCPROS", lambda n: toggles_by_tcpros(master, n, 3.0)),
                ("botyard.clients.ambf", lambda n: toggles_by_link(PORT, n, 3.0)),
            ):
                for skips in (1, 5):
                    toggles, made, wanted = run(skips)
                    print(
                        f"   lockstep by {label}, {skips} steps a toggle: "
                        f"{toggles:.0f} toggles/s ({toggles / base:.2f} of the echo), "
                        f"{made} steps made of {wanted}"
                    )

            assert simulator.process.poll() is None

        for generation in GENERATIONS:
            with Simulator(
                folder, 10, "--update-interval", "1", generation=generation
            ) as simulator:
                for helped in (False, True) if generation == "2.0" else (False,):
                    if helped:
                        simulator.helper(COMMANDER, PORT, 120.0)
                    toggles, made, wanted = toggles_by_tcpros(
                        master, 1, 3.0, read_too=10, generation=generation
                    )
                    print(
                        f"   lockstep by TCPROS, AMBF {generation}, ten objects read"
                        f"{', and commanded by another program' if helped else ''}: "
                        f"{toggles:.0f} toggles/s "
                        f"({toggles / base:.2f} of the echo), {made} steps made of {wanted}"
                    )

                assert simulator.process.poll() is None


if __name__ == "__main__":
    main()
