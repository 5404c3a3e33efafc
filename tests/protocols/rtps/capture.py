"""Captures: what real peers sent to a participant of ours with these endpoints,
recorded by `tests.ros.captures` and replayed by a test.

A file has a line for each event, compressed with gzip: seconds since the start and
``tick`` (a sample was written), or the source's host and port and the packet in
hexadecimal.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from botyard.protocols.dds.services import Call, ServiceServer
from botyard.protocols.rtps import wire
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.rtps.qos import Durability, Qos

FOLDER: Final = Path(__file__).parent.parent.parent / "data"
VENDORS: Final = {"fastdds": wire.VENDOR_FAST, "cyclonedds": wire.VENDOR_CYCLONE}
PREFIX: Final = wire.VENDOR + b"recorded.."
ADDRESS: Final = ("127.0.0.1", 7410)
TEXT: Final = "std_msgs::msg::dds_::String_"
LATCHED: Final = Qos(durability=Durability.TRANSIENT_LOCAL, depth=1)
SERVICE: Final = (
    "/mini/trigger",
    "std_srvs/srv/Trigger_Request",
    "std_srvs/srv/Trigger_Response",
)
ANSWER: Final = b"\0\1\0\0\1\0\0\0\x12\0\0\0served by botyard\0"
WORDS: Final = "0123456789"
TIMES: Final = 8000
"""The latched text is so often these words: it comes in fragments from both."""


@dataclass(frozen=True)
class Moment:
    """An event of a capture.

    Without a packet it stands for a sample that our writer wrote.
    """

    at: float
    source: Address = ("", 0)
    packet: bytes | None = None

    def line(self) -> str:
        """Return the event as a line of text."""
        if self.packet is None:
            return f"{self.at:.4f} tick\n"
        return f"{self.at:.4f} {self.source[0]} {self.source[1]} {self.packet.hex()}\n"


def path_of(vendor: str) -> Path:
    """Return the path of the capture of a vendor's peers."""
    return FOLDER / f"rtps-{vendor}.txt.gz"


def write(path: Path, moments: list[Moment]) -> None:
    """Write a capture."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write("".join(m.line() for m in moments).encode())


def read(path: Path) -> list[Moment]:
    """Read a capture."""
    found = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        at, *rest = line.split(" ")
        found.append(
            Moment(float(at))
            if rest == ["tick"]
            else Moment(float(at), (rest[0], int(rest[1])), bytes.fromhex(rest[2]))
        )

    return found


class Scene:
    """Our endpoints.

    Created in the same order, they have the same identifiers in recording and replay.
    """

    def __init__(self, part: Participant, now: float) -> None:
        self.samples: dict[str, list[bytes]] = {"rt/stream": [], "rt/latched": []}
        self.calls: list[Call] = []
        self.refused: list[str] = []
        self.part = part
        self.now = now
        self.ours = part.writer("rt/ours", TEXT, Qos(), now)
        for topic, qos in (("rt/stream", Qos()), ("rt/latched", LATCHED)):
            part.reader(
                topic,
                TEXT,
                lambda sample, topic=topic: self.samples[topic].append(sample.payload),
                qos,
                now,
            )  # type: ignore[misc]

        self.server = ServiceServer(
            part,
            *SERVICE,
            self._serve,
            self.refused.append,
            now,
            identity=b"recorded" * 2,
        )

    def _serve(self, call: Call) -> None:
        self.calls.append(call)
        self.server.answer(call, ANSWER, self.now)

    def tick(self, now: float) -> None:
        """Write a sample."""
        self.now = now
        self.ours.write(b"\0\1\0\0\5\0\0\0ours\0", now)
