"""Record captures of real peers again: ``python -m tests.ros.captures``.

It needs root and the peers of ``make peers``. A Fast DDS and a Cyclone peer in a
network namespace publish, subscribe and call a service of a participant of ours, and
leave. Their packets are stored in ``tests/data/rtps-*.txt.gz``;
``tests/protocols/rtps/test_captures.py`` replays them to a participant without any
peer.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from botyard.protocols.dds.environment import Environment
from botyard.protocols.rtps import wire
from botyard.protocols.rtps.guids import Address
from botyard.servers.ros import rtps
from botyard.servers.ros.rtps import RtpsNode
from tests.protocols.rtps import capture
from tests.protocols.rtps.capture import Moment, Scene
from tests.ros.ros1 import output
from tests.ros.ros2 import HERE, Ros2World
from tests.waiting import wait

ROOT = HERE.parent.parent


async def record(path: Path) -> None:
    """Record until peers have come and gone."""
    rtps.os = SimpleNamespace(urandom=lambda count: capture.PREFIX[-count:])  # type: ignore[assignment,attr-defined]
    node = RtpsNode(Environment.read())
    assert node.participant.guid[
        :12
    ] == capture.PREFIX and node.participant._addresses == (capture.ADDRESS,)
    begin = node.now()
    moments: list[Moment] = []
    feed = node.participant.feed

    def recording(packet: bytes, source: Address, now: float) -> None:
        if packet[8:20] != capture.PREFIX:
            moments.append(Moment(now - begin, source, packet))
        scene.now = now
        feed(packet, source, now)

    scene = Scene(node.participant, begin)
    node.participant.feed = recording  # type: ignore[method-assign]
    print("READY", flush=True)
    has_met, end = False, time.monotonic() + 90.0
    while time.monotonic() < end and not (
        has_met and not node.participant.peers and scene.calls
    ):
        has_met = has_met or len(node.participant.peers) >= 2
        moments.append(Moment(node.now() - begin))
        scene.tick(node.now())
        node.wake()
        await asyncio.sleep(0.1)

    node.close()
    capture.write(path, moments)
    print(
        "DONE",
        len(moments),
        {k: len(v) for k, v in scene.samples.items()},
        len(scene.calls),
        scene.refused,
        flush=True,
    )


def _compiled(name: str, folder: Path) -> Path:
    program = folder / name
    source = str(HERE / f"{name}.cpp")
    subprocess.run(
        [
            "g++",
            "-O1",
            "-std=c++17",
            source,
            "-lfastrtps",
            "-lfastcdr",
            "-o",
            str(program),
        ],
        check=True,
    )
    return program


def main() -> None:
    """Record both, or the named one (as a program in the namespace)."""
    if sys.argv[1:2] == ["record"]:
        asyncio.run(record(Path(sys.argv[2])))
        return

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer, client = (
            _compiled("fastdds_peer", folder),
            _compiled("fastdds_client", folder),
        )
        text = (capture.WORDS * capture.TIMES).encode() + b"\0"
        (folder / "text.cdr").write_bytes(
            b"\0\1\0\0" + len(text).to_bytes(4, "little") + text
        )
        for vendor in capture.VENDORS:
            world = Ros2World(folder, peer)
            world.env |= {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
            try:
                recorder = world.spawn(
                    sys.executable,
                    "-m",
                    "tests.ros.captures",
                    "record",
                    str(capture.path_of(vendor)),
                )
                wait(
                    lambda recorder=recorder: "READY" in output(recorder),
                    what=lambda r=recorder: output(r),
                )
                if vendor == "fastdds":
                    caller = world.spawn(str(client), "call", "10", "3")
                    said = world.run(
                        str(peer),
                        "2",
                        "sub",
                        "rt/ours",
                        capture.TEXT,
                        "rv5",
                        "pub",
                        "rt/stream",
                        capture.TEXT,
                        wire.OURS.uint32.pack(0x100).hex() + "0200000061000000",
                        "latch",
                        "rt/latched",
                        capture.TEXT,
                        f"@{folder}/text.cdr",
                    )
                    wait(lambda caller=caller: caller.poll() is not None)
                    assert "GOT rt/ours" in said and "ANSWERED 3" in output(caller), (
                        said + output(caller)
                    )
                else:
                    world.cyclone_later(
                        "latch", "/latched", capture.WORDS, capture.TIMES, 3.0
                    )
                    assert len(world.cyclone("read", "/ours", False, 5)) >= 5
                    assert (
                        len(
                            world.cyclone(
                                "call", "/mini/trigger", "std_srvs/Trigger", [], 3
                            )
                        )
                        == 3
                    )

                wait(lambda recorder=recorder: recorder.poll() is not None)
                print(
                    vendor,
                    output(recorder),
                    capture.path_of(vendor).stat().st_size,
                    "bytes",
                )
            finally:
                world.close()


if __name__ == "__main__":
    main()
