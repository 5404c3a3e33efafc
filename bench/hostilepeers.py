"""Attacks of peers that keep the simulator busy, for ``python -m bench.reliability
peers``; each is a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

MEGABYTE = 1_000_000
AT_MOST = 100
"""Calls of 1 MB, or names of 1 MB, that an attack sends."""
RECORDS = 5_000_000
"""Records that a reader takes here; by default ten times as many."""
ROSBRIDGE, FOXGLOVE, PAGE = 1, 2, 3
"""Ports below the Pioneer port."""


def options(port: int) -> tuple[str, ...]:
    """Return the options of a simulator that serves all WebSocket protocols."""
    return (
        *("--rosbridge", str(port - ROSBRIDGE), "--foxglove", str(port - FOXGLOVE)),
        *(
            "--gui-port",
            str(port - PAGE),
            "--gui-token",
            "bench",
            "--no-browser",
            "--record",
            "run.mcap",
        ),
    )


def _rosbridge(port: int) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{port - ROSBRIDGE}",
        max_size=None,
        compression=None,
        ping_interval=None,
        close_timeout=0.5,
    )


def _foxglove(port: int) -> ClientConnection:
    protocols = [Subprotocol("foxglove.sdk.v1")]
    where = f"ws://127.0.0.1:{port - FOXGLOVE}"
    return connect(
        where,
        subprotocols=protocols,
        max_size=None,
        compression=None,
        ping_interval=None,
        close_timeout=0.5,
    )


@contextlib.contextmanager
def _read_by(
    take: Callable[[str | bytes], None], client: ClientConnection
) -> Iterator[threading.Event]:
    """Read a connection in a thread; the returned event is set when the server has closed the
    connection.
    """
    closed = threading.Event()

    def read() -> None:
        with contextlib.suppress(ConnectionClosed, OSError):
            for message in client:
                take(message)

        closed.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield closed


def _send(client: ClientConnection, until: float, messages: Iterator[str]) -> str:
    """Send messages as fast as the server reads; wait until the end."""
    sent, closed = 0, ""
    with _read_by(lambda _: None, client):
        try:
            for message in messages:
                if time.monotonic() > until:
                    break
                client.send(message)
                sent += 1

            time.sleep(max(0.0, until - time.monotonic()))
        except (ConnectionClosed, OSError) as error:
            closed = f", disconnected ({str(error)[:60]})"

    return f"{sent} MB sent{closed}"


def _calls(port: int, until: float) -> str:
    """Send calls of 1 MB of empty lists to a service whose provider never answers."""
    lists = "[" + ",".join(["[]"] * (MEGABYTE // 3)) + "]"
    text = '{"op":"call_service","id":"%d","service":"/mine","args":{"x":%s}}'
    with (
        _rosbridge(port) as provider,
        _rosbridge(port) as caller,
        _read_by(lambda _: None, provider),
    ):
        provider.send(
            json.dumps(
                {
                    "op": "advertise_service",
                    "service": "/mine",
                    "type": "std_srvs/srv/SetBool",
                }
            )
        )
        time.sleep(0.2)
        return _send(caller, until, (text % (i, lists) for i in range(AT_MOST)))


def _provider(port: int, until: float) -> str:
    """Let an honest provider answer within 20 ms, and three clients send it 100 calls of 200 kB
    each.
    """
    served = 0

    def answer(message: str | bytes) -> None:
        nonlocal served
        call = json.loads(message)
        if call["op"] == "call_service":
            time.sleep(0.02)
            values = {"success": True, "message": ""}
            provider.send(
                json.dumps(
                    {
                        "op": "service_response",
                        "id": call["id"],
                        "service": "/mine",
                        "values": values,
                        "result": True,
                    }
                )
            )
            served += 1

    def flood() -> None:
        with (
            contextlib.suppress(ConnectionClosed, OSError),
            _rosbridge(port) as client,
            _read_by(lambda _: None, client),
        ):
            for i in range(100):
                args = {"data": True, "x": "y" * 200_000}
                client.send(
                    json.dumps(
                        {
                            "op": "call_service",
                            "id": str(i),
                            "service": "/mine",
                            "args": args,
                        }
                    )
                )

            time.sleep(max(0.0, until - time.monotonic()))

    with _rosbridge(port) as provider, _read_by(answer, provider) as closed:
        provider.send(
            json.dumps(
                {
                    "op": "advertise_service",
                    "service": "/mine",
                    "type": "std_srvs/srv/SetBool",
                }
            )
        )
        time.sleep(0.2)
        floods = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
        for thread in floods:
            thread.start()
        time.sleep(max(0.0, until - time.monotonic()))
        return (
            f"the provider answered {served} of 300 calls, "
            f"{'disconnected' if closed.is_set() else 'still connected'}"
        )


def _channels(port: int, until: float) -> str:
    def message(i: int) -> str:
        channel = {
            "id": i,
            "topic": f"{i:06d}" + "x" * MEGABYTE,
            "encoding": "json",
            "schemaName": "x",
        }
        return json.dumps({"op": "advertise", "channels": [channel]})

    with _foxglove(port) as client:
        return _send(client, until, (message(i) for i in range(AT_MOST)))


def _parameters(port: int, until: float) -> str:
    def message(i: int) -> str:
        return json.dumps(
            {
                "op": "subscribeParameterUpdates",
                "parameterNames": [f"{i:06d}" + "x" * MEGABYTE],
            }
        )

    with _foxglove(port) as client:
        return _send(client, until, (message(i) for i in range(AT_MOST)))


def _not_utf8(port: int, until: float) -> str:
    """Send text frames that are not UTF-8 to the ports of the page, rosbridge and Foxglove, one
    for each connection.
    """
    page = f"ws://127.0.0.1:{port - PAGE}/ws"
    doors = (
        lambda: connect(page, compression=None),
        lambda: _rosbridge(port),
        lambda: _foxglove(port),
    )
    sent = 0
    while time.monotonic() < until:
        for door in doors:
            with (
                contextlib.suppress(
                    ConnectionClosed, InvalidHandshake, OSError, TimeoutError
                ),
                door() as client,
            ):
                client.send(b"\xff\xfe" + b"x" * 100, text=True)
                sent += 1
                while True:
                    client.recv(1.0)

    return f"{sent} connections sent one"


def _botyard(*args: str, timeout: float) -> str:
    """Run the program botyard; return its status and the end of its output, or that it was
    still busy.
    """
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "botyard", *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the simulator did not end within {timeout:.0f} s"

    said = (done.stderr.strip() or done.stdout.strip()).splitlines() or [""]
    return f"status {done.returncode} after {time.monotonic() - began:.1f} s: {said[-1][:150]}"


def _same_name(port: int, until: float) -> str:
    """Let a second simulator record to the file that the first one writes."""
    more = (
        "--noninteractive",
        "--no-gui",
        "-p",
        str(port + 4),
        "-r",
        "p3dx",
        "--duration",
        "1",
        "--no-crash-restart",
    )
    timeout = max(60.0, until - time.monotonic())
    return "the second: " + _botyard(
        "-m", "office", *more, "--record", "run.mcap", timeout=timeout
    )


def bomb(path: Path) -> float:
    """Write an MCAP file whose chunks hold 64 GiB of empty records; return its length, MB."""
    import zstandard

    length = (512 << 20) // 9 * 9
    packer, packed = zstandard.ZstdCompressor(level=3), io.BytesIO()
    with packer.stream_writer(packed, size=length, closefd=False) as stream:
        for start in range(0, length, 1 << 20):
            stream.write(bytes(min(1 << 20, length - start)))

    data = packed.getvalue()
    # A chunk of MCAP holds the times of its first and last message, its unpacked length, no
    # checksum (0), the compression and the records.
    chunk = (
        struct.pack("<QQQII", 0, 1 << 63, length, 0, 4)
        + b"zstd"
        + struct.pack("<Q", len(data))
        + data
    )
    header = struct.pack("<I", 4) + b"ros2" + struct.pack("<I", 7) + b"botyard"
    magic = b"\x89MCAP0\r\n"
    records = [(1, header), *[(6, chunk)] * 127, (15, bytes(4)), (2, bytes(20))]
    path.write_bytes(
        magic
        + b"".join(struct.pack("<BQ", kind, len(r)) + r for kind, r in records)
        + magic
    )
    return path.stat().st_size / 1e6


def _bomb(_port: int, until: float) -> str:
    """Ask for the contents of a recording that unpacks to 64 GiB."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder, "bomb.mcap")
        size = bomb(path)
        said = _botyard(
            "replay",
            "--info",
            "--max-read",
            f"records={RECORDS}",
            str(path),
            timeout=max(60.0, until - time.monotonic()),
        )
        return f"{size:.1f} MB, {said}".replace(folder + "/", "")


def _far(port: int, until: float) -> str:
    """Put robots at 1e308 m; every call must get an answer."""
    there = {"x": 1e308, "y": 0.0, "theta": 0.0}
    calls = (
        ("/botyard/add_robot", {"model": "p3dx", "name": "far", "pose": there}),
        ("/botyard/set_pose", {"name": "p3dx", "pose": there}),
    )
    sent, answered = 0, 0
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionClosed, OSError), _rosbridge(port) as client:
            while time.monotonic() < until:
                for service, args in calls:
                    sent += 1
                    client.send(
                        json.dumps(
                            {
                                "op": "call_service",
                                "id": "x",
                                "service": service,
                                "args": args,
                            }
                        )
                    )
                    answered += not json.loads(client.recv(5.0))["values"]["success"]

    return f"{sent} calls, {answered} refused with an answer"


ATTACKS: dict[str, tuple[str, Callable[[int, float], str]]] = {
    "calls": ("rosbridge: calls of 1 MB without an answer", _calls),
    "provider": ("rosbridge: 300 calls of 200 kB to an honest provider", _provider),
    "channels": ("Foxglove: channels with names of 1 MB", _channels),
    "parameters": ("Foxglove: parameters with names of 1 MB", _parameters),
    "utf8": ("WebSocket text that is not UTF-8, three ports", _not_utf8),
    "same": ("a second simulator records to the same file", _same_name),
    "bomb": ("a recording that unpacks without end", _bomb),
    "far": ("rosbridge: robots at 1e308 m", _far),
}
"""Description and function of each attack: of the Pioneer port and the end time; its
result is the attacker's success.
"""


def attack(kind: str, port: int, seconds: float) -> None:
    """Run an attack, in a process of its own."""
    print(ATTACKS[kind][1](port, time.monotonic() + seconds), flush=True)
    # Threads of the attack still read, and would keep the process alive.
    os._exit(0)


BAD_ORDERS: tuple[tuple[tuple[object, object], ...], ...] = (
    ((0.0, 5.0),),
    ((0.0, 5.0), (0.001, 5.0), (9.0, 5.0)),
    ((0.0, 5.0), (0.0, 5.0)),
    ((0.0, 5.0), (1e308, 5.0)),
    ((0.0, 5.0), (float("nan"), 5.0)),
    ((0.0, 5.0), ("x", None)),
    (),
    tuple((k % 2 * 1.0, 5.0) for k in range(9999)),
)
"""Nodes of orders: one node, a short edge, two equal nodes, far, not a number, of wrong
types, none, to and fro.
"""


def _order(serial: str, name: str, nodes: tuple[tuple[object, object], ...]) -> str:
    return json.dumps(
        {
            **{
                "headerId": 1,
                "timestamp": "2026-01-01T00:00:00Z",
                "version": "2.0.0",
                "manufacturer": "botyard",
            },
            **{"serialNumber": serial, "orderId": name, "orderUpdateId": 0},
            "nodes": [
                {
                    "nodeId": f"n{k}",
                    "sequenceId": 2 * k,
                    "released": True,
                    "actions": [],
                }
                | {"nodePosition": {"x": x, "y": y, "mapId": "map"}}
                for k, (x, y) in enumerate(nodes)
            ],
            "edges": [
                {
                    "edgeId": f"e{k}",
                    "sequenceId": 2 * k + 1,
                    "released": True,
                    "actions": [],
                }
                | {"startNodeId": f"n{k}", "endNodeId": f"n{k + 1}"}
                for k in range(len(nodes) - 1)
            ],
        }
    )


class Orders:
    """A master control that gives one AGV bad orders, and measures the gaps between the answers
    of another AGV.
    """

    def __init__(self, broker: int) -> None:
        import paho.mqtt.client as mqtt

        self.gaps: list[float] = []
        self.errors: set[str] = set()
        self._states: list[float] = []
        self.online = 0
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self._client.on_message = self._take
        self._client.connect("127.0.0.1", broker)
        self._client.subscribe("uagv/v2/+/+/state")
        self._client.subscribe("uagv/v2/+/+/connection")
        self._client.loop_start()

    def _take(self, _client: object, _data: object, message: object) -> None:
        *_, serial, kind = message.topic.split("/")  # type: ignore[attr-defined]
        if kind == "connection":
            self.online += 1
        elif serial == "agv0":
            self._states.append(time.monotonic())
        else:
            self.errors |= {
                e["errorType"] for e in json.loads(message.payload)["errors"]
            }  # type: ignore[attr-defined]

    def send(
        self, serial: str, name: str, nodes: tuple[tuple[object, object], ...]
    ) -> None:
        """Publish an order, and wait until the broker has it."""
        topic = f"uagv/v2/botyard/{serial}/order"
        self._client.publish(
            topic, _order(serial, name, nodes), qos=1
        ).wait_for_publish(20.0)

    def attack(self, seconds: float) -> str:
        """Send bad orders; the result shows how many, and which errors the AGV's state
        showed.
        """
        self.send("agv0", "good", ((0.0, 0.0), (500.0, 0.0)))
        begin, sent = time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            # An AGV publishes its state when it refuses an order, so the gaps between the states
            # are gaps between answers.
            self.send("agv0", f"asked{sent}", ())
            self.send("agv1", f"bad{sent}", BAD_ORDERS[sent % len(BAD_ORDERS)])
            sent += 1
            time.sleep(0.05)

        times = [begin, *[t for t in self._states if t > begin], time.monotonic()]
        self.gaps = [b - a for a, b in itertools.pairwise(times)]
        self._client.disconnect()
        self._client.loop_stop()
        return (
            f"{sent} orders, errors in the AGV's state: "
            f"{', '.join(sorted(self.errors)) or 'none'}"
        )


def come_and_go(participants: int, readers: int) -> tuple[float, float, int, int]:
    """RTPS participants whose readers all read one topic come, leave, and let their
    leases end.

    Returns the CPU time of the largest call of `feed`, of `due`, s, and the numbers of
    readers, at most and at the end.
    """
    from tests.protocols.rtps.test_crowds import Stranger, alone
    from tests.protocols.rtps.test_delivery import RELIABLE

    from botyard.protocols.rtps.participant import Participant

    worst = {"feed": 0.0, "due": 0.0}

    def timed(name: str, act: Callable[..., float]) -> Callable[..., float]:
        def call(*args: object) -> float:
            began = time.thread_time()
            result = act(*args)
            worst[name] = max(worst[name], time.thread_time() - began)
            return result

        return call

    part: Participant = alone()
    for name in worst:
        setattr(part, name, timed(name, getattr(part, name)))
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    now = 0.0

    def settle(to: float) -> None:
        nonlocal now
        while now < to:
            now = min(to, max(now + 1e-3, part.due(now)))
            part.out()

    crowd = []
    for number in range(participants):
        settle(now + 1.0)
        crowd.append(Stranger(part, number + 1, f"10.9.9.{number + 1}", now=now))
        for _ in range(readers):
            crowd[-1].endpoint("rt/a")

    settle(now + 1.0)
    most = len(writer.matched)
    for one in crowd[: participants // 2]:
        part.feed(one.goodbye(), one.address, now)
        settle(now + 1.0)

    now += 1000.0
    settle(now + 5.0)
    return worst["feed"], worst["due"], most, len(writer.matched)
