"""A program with botyard's RTPS participant: ``rtps_node.py FUNCTION JSON-ARGUMENTS``.

It prints ``READY``, and ``RESULT JSON`` at its end. Bytes are in hexadecimal.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.services import Call, ServiceClient, ServiceServer
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.rtps.samples import Sample
from botyard.servers.ros.rtps import RtpsNode

LATCHED = Qos(durability=Durability.TRANSIENT_LOCAL, depth=1)


def qos(text: str) -> Qos:
    """Return QoS from ``r`` (reliable) or ``b`` (best effort), then ``v`` (volatile) or
    ``t`` (transient local).
    """
    return Qos(text[0] == "r", Durability(text[1] == "t"), 1 if text[1] == "t" else 10)


async def until(holds: Any, seconds: float) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        await asyncio.sleep(0.01)


async def publish(node: RtpsNode, seconds: float, topics: dict[str, list[Any]]) -> Any:
    """Publish topics ten times a second, latched ones once.

    Each has type, QoS, and bytes or a number of zeros.
    """
    writers = []
    for topic, (kind, quality, data) in topics.items():
        writer = node.participant.writer(topic, kind, qos(quality), node.now())
        payload = bytes(data) if isinstance(data, int) else bytes.fromhex(data)
        payload = b"\0\1\0\0" + payload[4:]
        writers.append((writer, payload, quality))
        if quality[1] == "t":
            writer.write(payload, node.now())

    node.wake()
    print("READY", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for writer, payload, quality in writers:
            if quality[1] != "t":
                writer.write(payload, node.now())

        node.wake()
        await asyncio.sleep(0.1)

    return {w.data.topic: w.number for w, _, _ in writers}


async def subscribe(
    node: RtpsNode, seconds: float, topics: dict[str, list[Any]]
) -> Any:
    """Subscribe to topics, each with type, QoS and a number of messages.

    Returns the number received, and the last message.
    """
    got: dict[str, list[bytes]] = {topic: [] for topic in topics}

    def taker(topic: str) -> Any:
        def take(sample: Sample) -> None:
            got[topic].append(sample.payload)

        return take

    for topic, (kind, quality, _) in topics.items():
        node.participant.reader(topic, kind, taker(topic), qos(quality), node.now())
    node.wake()
    print("READY", flush=True)
    await until(
        lambda: all(len(got[t]) >= wanted for t, (_, _, wanted) in topics.items()),
        seconds,
    )
    return {
        topic: [len(all_), all_[-1].hex() if all_ else ""]
        for topic, all_ in got.items()
    }


async def serve(node: RtpsNode, seconds: float) -> Any:
    """Serve /mini/trigger; count calls by kind of client."""
    counts = {"fast": 0, "cyclone": 0, "refused": 0}

    def take(call: Call) -> None:
        counts["fast" if call.header is None else "cyclone"] += 1
        text = b"served by botyard\0"
        body = b"\0\1\0\0" + b"\1\0\0\0" + len(text).to_bytes(4, "little") + text
        server.answer(call, body, node.now())

    def refuse(text: str) -> None:
        counts["refused"] += 1

    server = ServiceServer(
        node.participant,
        "/mini/trigger",
        "std_srvs/srv/Trigger_Request",
        "std_srvs/srv/Trigger_Response",
        take,
        refuse,
        node.now(),
        identity=os.urandom(16),
    )
    node.wake()
    print("READY", flush=True)
    await asyncio.sleep(seconds)
    return counts


async def give_map(node: RtpsNode, seconds: float, name: str, response: str) -> Any:
    """Serve GetMap as map_server does; return the number of calls."""
    calls: list[Call] = []

    def take(call: Call) -> None:
        calls.append(call)
        server.answer(call, bytes.fromhex(response), node.now())

    kind = "nav_msgs/srv/GetMap"
    server = ServiceServer(
        node.participant,
        name,
        f"{kind}_Request",
        f"{kind}_Response",
        take,
        lambda text: None,
        node.now(),
        identity=os.urandom(16),
    )
    node.wake()
    print("READY", flush=True)
    await until(lambda: bool(calls), seconds)
    # The caller leaves as soon as it has the answer.
    await until(
        lambda: not node.participant.peers,
        seconds,
    )
    return len(calls)


async def call(node: RtpsNode, seconds: float, name: str, count: int) -> Any:
    """Call a Trigger; return the responses."""
    client = ServiceClient(
        node.participant,
        name,
        "std_srvs/srv/Trigger_Request",
        "std_srvs/srv/Trigger_Response",
        node.now(),
        identity=os.urandom(16),
    )
    node.wake()
    print("READY", flush=True)
    await until(lambda: client.server() is not None, seconds)
    got: list[bytes] = []
    for number in range(count):
        if client.call(b"\0\1\0\0\0\0\0\0", node.now(), got.append):
            node.wake()
            await until(lambda n=number: len(got) > n, seconds)

    return [g.hex() for g in got]


async def main() -> None:
    """Run the requested function."""
    what, arguments = sys.argv[1], json.loads(sys.argv[2])
    node = RtpsNode(Environment.read())
    try:
        print(
            "RESULT " + json.dumps(await globals()[what](node, *arguments)), flush=True
        )
    finally:
        node.close()


if __name__ == "__main__":
    import logging

    logging.basicConfig(level=os.environ.get("LOGLEVEL", "WARNING"))
    asyncio.run(main())
