"""Participants that come and go on real, lossy sockets, and the memory of one that
stays.

``python -m tests.servers.rtps_churn [SECONDS]`` prints a line each ten seconds and the
figures at its end; the test runs it for a shorter time. The participant that stays is a
separate process, so that its memory can be measured. They meet on the loopback without
multicast.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from botyard.protocols.dds.services import Call, ServiceClient, ServiceServer
from botyard.protocols.rtps import participant as participants
from botyard.protocols.rtps.events import EventKind
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.rtps.samples import Sample
from botyard.servers.ros import rtps
from botyard.servers.ros.rtps import RtpsNode
from tests.servers.nearby import Nearby

LOSS: Final = 0.05
STREAMS: Final = 5
PERIOD_S: Final = 0.02
CDR: Final = b"\0\1\0\0"
MAP: Final = CDR + bytes(range(256)) * 400
LATCHED: Final = Qos(durability=Durability.TRANSIENT_LOCAL, depth=1)
SERVICE: Final = (
    "/ask",
    "std_srvs/srv/Trigger_Request",
    "std_srvs/srv/Trigger_Response",
)
AT_ONCE: Final = 4
"""Participants that are there at a time."""
ENOUGH: Final = 25
"""Messages of each stream after which one leaves."""


class LossySocket(socket.socket):
    """A socket that loses every twentieth datagram."""

    def sendto(self, data: Any, address: Any) -> int:  # type: ignore[override]
        """Send or lose a datagram."""
        return len(data) if random.random() < LOSS else super().sendto(data, address)


def _lossy() -> socket.socket:
    made = LossySocket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


@contextlib.contextmanager
def lossy(lease_s: float) -> Iterator[None]:
    """Make sockets lossy, and set the lease that new participants announce, s."""
    before = rtps._udp, participants.LEASE_S
    rtps._udp, participants.LEASE_S = _lossy, lease_s  # type: ignore[misc]
    try:
        yield
    finally:
        rtps._udp, participants.LEASE_S = before  # type: ignore[misc]


# -- the participant that stays


def counts(node: RtpsNode) -> dict[str, int]:
    """Return the counts that a participant keeps of others, and the memory of its
    process.
    """
    part = node.participant
    inbox, outbox, found = part._inbox, part._outbox, part._discovery
    topics = [w for w in found.writers.values() if w.entity[3] == 3]
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {
        "rss_kib": pages * os.sysconf("SC_PAGESIZE") >> 10,
        "files": len(os.listdir("/proc/self/fd")),
        "peers": len(part.peers),
        "endpoints": sum(len(peer.endpoints) for peer in part.peers),
        "reader proxies": sum(len(w._proxies) for w in found.writers.values()),
        "writer proxies": sum(len(r._proxies) for r in found.readers.values()),
        "routes": len(found.routes),
        "destinations": len(outbox._destinations),
        "busy": len(outbox.busy),
        "queued": outbox.queued,
        "asking": len(inbox.asking),
        "waiting": len(part._pending.unacknowledged),
        "assemblies": len(inbox.assemblies) + len(inbox.assembling),
        "held": inbox.held.used,
        "kept": sum(len(w.kept) for w in topics),  # type: ignore[arg-type]
        "timers": len(asyncio.get_running_loop()._scheduled),  # type: ignore[attr-defined]
    }


async def stay(domain: int, lease_s: float) -> None:
    """Run five streams at 50 Hz, a map, a service and a reader of commands.

    It prints its counts each second until its input ends.
    """
    with lossy(lease_s):
        node = RtpsNode(Nearby(domain))
    part = node.participant
    streams = [part.writer(f"rt/s{k}", "T", Qos(), node.now()) for k in range(STREAMS)]
    part.writer("rt/map", "T", LATCHED, node.now()).write(MAP, node.now())
    taken = [0]

    def take(sample: Sample) -> None:
        taken[0] += 1

    def serve(call: Call) -> None:
        server.answer(call, call.body, node.now())
        node.wake()

    part.reader("rt/cmd_vel", "T", take, Qos(), node.now())
    server = ServiceServer(
        part, *SERVICE, serve, lambda text: None, node.now(), identity=b"s" * 16
    )
    node.wake()
    number, tell_at = 0, 0.0
    asyncio.get_running_loop().add_reader(0, lambda: os.read(0, 1) or os._exit(0))
    while True:
        number += 1
        for writer in streams:
            writer.write(CDR + number.to_bytes(4, "little") + bytes(1400), node.now())
        node.wake()
        await asyncio.sleep(PERIOD_S)
        if time.monotonic() >= tell_at:
            tell_at = time.monotonic() + 1.0
            found = {
                **counts(node),
                "taken": taken[0],
                "met": part.count(EventKind.MET),
            }
            print(
                json.dumps({**found, "malformed": part.count(EventKind.MALFORMED)}),
                flush=True,
            )


# -- participants that come and go


@dataclass
class Tally:
    """Results: lives, lives without a goodbye, messages, and the longest life, s."""

    lives: int = 0
    killed: int = 0
    messages: int = 0
    longest_s: float = 0.0
    counts: list[dict[str, int]] = field(default_factory=list)


async def live(domain: int, tally: Tally, dice: random.Random) -> None:
    """Run one life:

    until it has the map, some messages of each stream in order, and a response.
    """
    node = RtpsNode(Nearby(domain))
    part = node.participant
    maps: list[bytes] = []
    answers: list[bytes] = []
    got: list[list[int]] = [[] for _ in range(STREAMS)]

    def taker(numbers: list[int]) -> Any:
        return lambda sample: numbers.append(
            int.from_bytes(sample.payload[4:8], "little")
        )

    for k, numbers in enumerate(got):
        part.reader(f"rt/s{k}", "T", taker(numbers), Qos(), node.now())
    part.reader(
        "rt/map", "T", lambda sample: maps.append(sample.payload), LATCHED, node.now()
    )
    command = part.writer("rt/cmd_vel", "T", Qos(), node.now())
    client = ServiceClient(part, *SERVICE, node.now(), identity=os.urandom(16))
    begin = time.monotonic()
    asked_at = 0.0
    while not (maps and answers and all(len(numbers) >= ENOUGH for numbers in got)):
        assert time.monotonic() < begin + 60.0, (
            len(maps),
            len(answers),
            [len(numbers) for numbers in got],
        )
        command.write(CDR + bytes(48), node.now())
        if (
            not answers
            and client.server() is not None
            and time.monotonic() > asked_at + 1.0
        ):
            asked_at = time.monotonic()
            client.call(CDR + b"asked   ", node.now(), answers.append)

        node.wake()
        await asyncio.sleep(0.05)

    assert maps == [MAP]
    assert answers[0] == CDR + b"asked   "
    assert all(numbers == sorted(set(numbers)) for numbers in got)
    tally.lives += 1
    tally.messages += sum(map(len, got))
    tally.longest_s = max(tally.longest_s, time.monotonic() - begin)
    if dice.random() < 0.5:
        tally.killed += 1
        node.participant.announce_departure = lambda now: None  # type: ignore[method-assign]

    node.close()


async def come_and_go(
    domain: int, lease_s: float, seconds: float, tally: Tally, *, is_told: bool = False
) -> None:
    """Let participants come and go for some seconds, then wait until all leases end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.servers.rtps_churn",
        "stay",
        str(domain),
        str(lease_s),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None and child.stdin is not None
    dice = random.Random(1)
    end = time.monotonic() + seconds

    async def lives() -> None:
        while time.monotonic() < end:
            await live(domain, tally, dice)
            await asyncio.sleep(dice.random() * 0.5)

    async def look() -> None:
        assert child.stdout is not None
        while line := await child.stdout.readline():
            tally.counts.append(json.loads(line))
            if is_told and len(tally.counts) % 10 == 1:
                print(tally.lives, tally.counts[-1], flush=True)

    looking = asyncio.ensure_future(look())
    try:
        while not tally.counts:
            await asyncio.sleep(0.1)
        with lossy(lease_s):
            await asyncio.gather(*(lives() for _ in range(AT_ONCE)))
        gone_at = time.monotonic() + 3.0 * lease_s + 10.0
        while tally.counts[-1]["peers"] or tally.counts[-1]["destinations"]:
            assert time.monotonic() < gone_at, tally.counts[-1]
            await asyncio.sleep(0.2)

        seen = len(tally.counts)
        while len(tally.counts) < seen + 3:
            await asyncio.sleep(0.2)
    finally:
        child.stdin.close()
        await child.wait()
        looking.cancel()


def main() -> None:
    """See above."""
    if sys.argv[1:2] == ["stay"]:
        asyncio.run(stay(int(sys.argv[2]), float(sys.argv[3])))
        return

    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    tally = Tally()
    asyncio.run(come_and_go(181, 20.0, seconds, tally, is_told=True))
    memory = [c["rss_kib"] for c in tally.counts]
    parts = [
        max(memory[len(memory) * k // 4 : len(memory) * (k + 1) // 4]) for k in range(4)
    ]
    print(
        f"{tally.lives} lives, {tally.killed} ended without a word, "
        f"{tally.messages} messages, longest {tally.longest_s:.1f} s;"
        f" memory at first {memory[0]} KiB, at most in each quarter {parts} KiB"
    )
    print("before", tally.counts[0])
    print("after ", tally.counts[-1])


if __name__ == "__main__":
    main()
