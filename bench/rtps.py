"""The RTPS participant: processor time a message of the write path and of the read
path, without sockets.

300 topics (100 robots × Odometry, LaserScan, PointCloud2) to a reader in one other
participant, of each kind of reliability and size of datagrams; behind it what discovery
of 2,000 endpoints costs, and an idle second. ``python -m bench.rtps``
"""

from __future__ import annotations

import time
from collections.abc import Callable

from botyard.protocols.rtps import guids, wire
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.samples import Sample

SIZES = (720, 1524, 300)
ROBOTS = 100
ROUNDS = 50
GROUP = (guids.GROUP, guids.discovery_port(0))


class Two:
    """Two participants and a simulated clock; the CPU time of each is measured."""

    def __init__(self, hosts: tuple[str, str]) -> None:
        self.now = 0.0
        self.spent = [0.0, 0.0]
        self.bytes = 0
        self.datagrams = 0
        self.addresses = [(host, 7410 + 2 * k) for k, host in enumerate(hosts)]
        self.parts = [
            Participant(wire.VENDOR + bytes([k] * 10), [a], [GROUP], 0.0, 1.7e9)
            for k, a in enumerate(self.addresses)
        ]

    def timed(self, k: int, work: Callable[[], object]) -> None:
        """Run work that counts as work of participant `k`."""
        begin = time.process_time()
        work()
        self.spent[k] += time.process_time() - begin

    def _collect(self, k: int) -> list[tuple[bytes, Address]]:
        found: list[tuple[bytes, Address]] = []

        def work() -> None:
            self.parts[k].due(self.now)
            found.extend(self.parts[k].out())

        self.timed(k, work)
        return found

    def run(self, seconds: float) -> None:
        """Let simulated time pass in steps of a millisecond."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.001
            for k in (0, 1):
                other = self.parts[1 - k]
                packets = [packet for packet, _ in self._collect(k)]
                self.bytes += sum(map(len, packets))
                self.datagrams += len(packets)

                def work(
                    packets: list[bytes] = packets,
                    other: Participant = other,
                    k: int = k,
                ) -> None:
                    for packet in packets:
                        other.feed(packet, self.addresses[k], self.now)

                self.timed(1 - k, work)


def streams(reliable: bool, hosts: tuple[str, str]) -> None:
    """Measure 300 topics at 10 Hz."""
    two = Two(hosts)
    qos = Qos(reliable=reliable)
    counts = [0]

    def take(sample: Sample) -> None:
        counts[0] += 1

    payloads = [b"\0\1\0\0" + bytes(size - 4) for size in SIZES]
    writers = []
    for robot in range(ROBOTS):
        for k, payload in enumerate(payloads):
            writers.append(
                (two.parts[0].writer(f"rt/r{robot}/t{k}", "T", qos, two.now), payload)
            )
            two.parts[1].reader(f"rt/r{robot}/t{k}", "T", take, qos, two.now)

    two.run(3.0)
    assert all(w.matched for w, _ in writers)
    two.spent = [0.0, 0.0]
    two.bytes = two.datagrams = counts[0] = 0

    def write() -> None:
        for writer, payload in writers:
            writer.write(payload, two.now)

    in_write = 0.0
    for _ in range(ROUNDS):
        before = two.spent[0]
        two.timed(0, write)
        in_write += two.spent[0] - before
        two.run(0.1)

    messages = ROUNDS * len(writers)
    idle = _idle(two)
    print(
        f"{'reliable' if reliable else 'best effort':12} "
        f"{'one host' if hosts[0] == hosts[1] else 'two hosts':10}"
        f" {1e6 * in_write / messages:6.1f} us in write, "
        f"{1e6 * (two.spent[0] - idle[0] * ROUNDS / 10) / messages:6.1f} us all told,"
        f" {1e6 * (two.spent[1] - idle[1] * ROUNDS / 10) / messages:6.1f} us to "
        f"read; {counts[0]} of {messages} came,"
        f" {two.datagrams / ROUNDS:.0f} datagrams a tick (idle: "
        f"{1e6 * idle[0]:.0f} us a second for 1,000 calls)",
        flush=True,
    )


def _idle(two: Two) -> tuple[float, float]:
    """Return the CPU time of both participants in an idle second.

    Most of it is spent on polling them 1,000 times.
    """
    spent = list(two.spent)
    two.run(2.0)
    begin = list(two.spent)
    two.run(1.0)
    idle = (two.spent[0] - begin[0], two.spent[1] - begin[1])
    two.spent = spent
    return idle


def discovery(endpoints: int = 2000) -> None:
    """Measure how a participant meets one with many endpoints."""
    two = Two(("10.0.0.1", "10.0.0.2"))
    for k in range(endpoints):
        two.parts[0].writer(
            f"rt/robot{k}/topic", "nav_msgs::msg::dds_::Odometry_", Qos(), two.now
        )

    begin, steps = two.now, 0
    while (
        len(two.parts[1].peers) == 0 or len(two.parts[1].peers[0].endpoints) < endpoints
    ):
        two.run(0.01)
        steps += 1
        assert steps < 1000

    print(
        f"discovery of {endpoints} endpoints: {two.now - begin:.2f} s, "
        f"{two.bytes} bytes in {two.datagrams} datagrams,"
        f" {1e3 * two.spent[0]:.0f} ms to say, {1e3 * two.spent[1]:.0f} ms to read"
    )


def main() -> None:
    """Print all measurements."""
    for reliable in (False, True):
        for hosts in (("10.0.0.1", "10.0.0.2"), ("127.0.0.1", "127.0.0.1")):
            streams(reliable, hosts)

    discovery()


if __name__ == "__main__":
    main()
