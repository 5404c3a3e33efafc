"""Service to honest clients while other clients send random packets (``hostile``)."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import subprocess
import sys
import time

from bench.simulator_process import PORT, Honest, Simulator
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.protocols.pioneer.reports import Sip

IGNORED = (62, 224, 236, 239, 253, 255)
"""Commands that end the simulator or move robots: random packets must not hold them."""
SIP = b"\x32"
MARK = 0xA5
"""Value of the digital outputs that is set last: a report with it shows that all
packets before were processed.
"""


# -- hostile load


def mutated(rng: random.Random) -> bytes:
    """Return a packet, intact or mutated."""
    number = rng.randrange(256)
    data = bytearray(
        command(
            number,
            rng.choice(
                [
                    None,
                    0,
                    1,
                    -1,
                    32767,
                    -32768,
                    255,
                    rng.randrange(-32768, 32768),
                    b"x" * rng.randrange(200),
                ]
            ),
        )
    )
    kind = rng.randrange(8)
    if kind == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    elif kind == 2:
        data[2] = rng.randrange(256)
    elif kind == 3:
        data[rng.randrange(len(data)) : 0] = rng.randbytes(rng.randrange(1, 20))
    elif kind == 4:
        data = bytearray(frame(number, rng.randbytes(rng.randrange(190))))
    elif kind == 5:
        data = bytearray(rng.randbytes(rng.randrange(1, 60)))

    return bytes(data)


def attack(first: int, count: int, packets: int, seed: int) -> None:
    """Run hostile clients in a process of their own: they send as fast as the simulator reads,
    and hardly read the answers.
    """
    rng = random.Random(seed)
    # Leave CLOSE out: after it the session reads no more packets, so the later ones would not
    # count.
    stock = [
        data
        for data in (mutated(rng) for _ in range(20_000))
        if all(p.id != 2 for p in Parser().feed_bytes(data))
    ]
    selector = selectors.DefaultSelector()

    def join(port: int) -> None:
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.sendall(frame(0) + frame(1) + frame(2) + command(1, 1))
        s.setblocking(False)
        selector.register(s, selectors.EVENT_WRITE, port)

    for port in range(first, first + count):
        join(port)
    sent, rest = 0, {}
    while sent < packets:
        for key, _ in selector.select(1.0):
            s, port = key.fileobj, key.data
            data = rest.pop(port, b"")
            if not data:
                k = rng.randrange(len(stock) - 50)
                data, n = b"".join(stock[k : k + 50]), 50
                sent += n

            try:
                rest[port] = data[s.send(data) :]  # type: ignore[union-attr]
                if rng.random() < 0.01:
                    s.recv(1 << 20)  # type: ignore[union-attr]
                if rng.random() < 0.001:
                    raise ConnectionError
            except BlockingIOError:
                rest[port] = data
            except OSError:
                selector.unregister(s)
                s.close()  # type: ignore[union-attr]
                rest.pop(port, None)
                for _ in range(50):
                    with contextlib.suppress(OSError):
                        join(port)
                        break

    ends = [
        (key.fileobj, rest.get(key.data, b"")) for key in selector.get_map().values()
    ]
    # Wait until packets still in socket buffers are processed: a command that sets the digital
    # outputs to MARK follows them, and its report shows that they were read.
    for s, data in ends:
        with contextlib.suppress(OSError):
            s.setblocking(True)  # type: ignore[union-attr]
            s.settimeout(600.0)  # type: ignore[union-attr]
            s.sendall(data + bytes(250) + command(30, 0xFF00 | MARK))  # type: ignore[union-attr]

    for s, _ in ends:
        parser = Parser()
        with contextlib.suppress(OSError):
            while data := s.recv(1 << 20):  # type: ignore[union-attr]
                if any(
                    p.id == SIP[0] and Sip.decode(p).digout == MARK
                    for p in parser.feed_bytes(data)
                ):
                    break

    print(sent)


def hostile(packets: int = 100_000) -> None:
    """Measure honest clients while hostile ones send."""
    ignored = [a for n in IGNORED for a in ("--ignore-command", str(n))]
    robots = ["-r", "p3dx"] * 150
    with Simulator(
        "-m",
        "office",
        "--start",
        "random",
        "--metrics-port",
        str(PORT - 1),
        *ignored,
        *robots,
    ) as sim:
        alone = Honest(list(range(PORT, PORT + 50)))
        alone.start()
        time.sleep(15.0)
        print(f"50 honest clients alone, 15 s: {alone.end()}")
        time.sleep(1.0)
        honest = Honest(list(range(PORT, PORT + 50)))
        honest.start()
        code = f"from bench.random_packets import attack; attack({PORT + 50}, 100, {packets}, 1)"
        begin, used, waited = time.monotonic(), sim.cpu(), sim.waited()
        attackers = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        )
        memory: list[tuple[float, float]] = []
        while attackers.poll() is None:
            time.sleep(1.0)
            memory.append((time.monotonic() - begin, sim.memory()))

        took = time.monotonic() - begin
        sent = int((attackers.stdout.read() or "0") if attackers.stdout else 0)
        after = [m for t, m in memory if t > min(60.0, took / 2)] or [memory[-1][1]]
        print(
            f"{sent} packets of 100 hostile clients in {took:.0f} s "
            f"({sent / took:.0f}/s), CPU {(sim.cpu() - used) / took:.2f}, "
            f"{(sim.waited() - waited) / took:.2f} of the time in the run queue; "
            f"honest: {honest.end()}\n"
            f"memory {memory[0][1]:.0f} MB at first, {after[0]:.0f} MB then, "
            f"{after[-1]:.0f} MB at the end; exceptions {sim.faults()}; "
            f"status at the end {sim.stop()}"
        )
