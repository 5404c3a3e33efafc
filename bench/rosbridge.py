"""Rosbridge: CPU of the simulator for 100 robots' odometry at 10 Hz, by form of the
messages, with one client and with four.

Against the same simulator without a client. Per message: what one odometry costs from
the world's state to the socket.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.ros import ROBOTS, cpu_of

SECONDS = 10.0
SETTLE_S = 2.0
"""Until all are subscribed, s."""
PORT = 21790
CASES = (("none", 1), ("cbor", 1), ("cbor-raw", 1), ("none", 4), ("cbor", 4))
READER = """
import asyncio, json, sys
from websockets.asyncio.client import connect
port, compression, robots, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
settle = float(sys.argv[5])
async def main():
    counts = [0, 0]
    async with connect(f"ws://127.0.0.1:{port}", max_size=None, compression=None) as ws:
        for i in range(robots):
            await ws.send(json.dumps({"op": "subscribe", "topic": f"/r{i}/odom", "compression": compression}))
        async def read():
            async for data in ws:
                counts[0] += 1; counts[1] += len(data)
        task = asyncio.ensure_future(read())
        await asyncio.sleep(settle)
        before = counts[:]
        print("reading", flush=True)
        await asyncio.sleep(seconds)
        print(counts[0] - before[0], counts[1] - before[1], flush=True)
        task.cancel()
asyncio.run(main())
"""


def share(pid: int, seconds: float) -> float:
    """Return the CPU of a process from now on, s per s."""
    before, begin = cpu_of(pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_of(pid) - before) / (time.perf_counter() - begin)


def read(pid: int, compression: str, clients: int) -> tuple[float, float, float]:
    """Return CPU, s per s, messages per s, and bytes per message, while clients read."""
    args = [
        sys.executable,
        "-c",
        READER,
        str(PORT),
        compression,
        str(ROBOTS),
        str(SECONDS),
        str(SETTLE_S),
    ]
    readers = [
        subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
        for _ in range(clients)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline().strip() == "reading"

    busy = share(pid, 0.9 * SECONDS)
    figures = [list(map(float, reader.communicate()[0].split())) for reader in readers]
    messages, size = (sum(column) for column in zip(*figures, strict=True))
    return busy, messages / SECONDS, size / messages


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "w.yaml"
        rows = "".join(
            f"- {{name: r{i}, pose: [{4 + i % 10 * 5}, {4 + i // 10 * 0.6}, 0]}}\n"
            for i in range(ROBOTS)
        )
        world.write_text(f"botyard: 1\nmap: warehouse\nrobots:\n{rows}")
        options = [
            "--noninteractive",
            "--no-crash-restart",
            "--no-gui",
            "--no-network-discovery",
            "-p",
            f"{PORT + 1}",
        ]
        command = [
            sys.executable,
            "-m",
            "botyard",
            str(world),
            *options,
            "--rosbridge",
            str(PORT),
            "--update-interval",
            "100",
        ]
        program = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert program.stdout is not None
            for line in program.stdout:
                if "ready" in line:
                    break

            time.sleep(SETTLE_S)
            idle = share(program.pid, SECONDS)
            print(
                f"   {ROBOTS} robots, nobody listens      {100 * idle:5.1f} % of a core"
            )
            for compression, clients in CASES:
                busy, rate, size = read(program.pid, compression, clients)
                each = 1e6 * (busy - idle) / rate
                name = f"{clients} × {compression}"
                print(
                    f"   {name:30} {100 * busy:5.1f} %   {rate:5.0f} messages/s "
                    f"of {size:4.0f} bytes   {each:4.0f} µs each"
                )
        finally:
            program.terminate()
            program.communicate()


if __name__ == "__main__":
    main()
