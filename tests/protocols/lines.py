"""Sessions on the null modem for tests of commands:

a world, a robot, a client that has sent OPEN.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.packet import Packet, Parser, command, frame
from botyard.protocols.pioneer.reports import Sip
from botyard.servers.pioneer.nullmodem import Line, NullModem
from botyard.sim.simulation import Robot, Simulation


class Client:
    """A client of robot ``r``; answers are decoded packets."""

    def __init__(
        self,
        model: str = "p3dx",
        scene: Scene | None = None,
        *,
        pose: Pose = Pose(),
        folders: tuple[Path, ...] = (),
        sim: Simulation | None = None,
        read_only: bool = False,
        **settings: Any,
    ) -> None:
        self.sim = sim or Simulation(scene, odometry_error="none", sensor_noise=False)
        if "r" not in self.sim.robots:
            self.sim.add_robot(model, "r", pose=pose)
        self.modem = NullModem(
            self.sim, PioneerSettings(**settings), folders=folders, read_only=read_only
        )
        self.line = self.open("r")

    def open(self, robot: str) -> Line:
        """Connect another client."""
        line = self.modem.connect(robot)
        for data in (command(0), command(1), command(2), command(1, 1)):
            line.send(data)
        line.take()
        return line

    @property
    def robot(self) -> Robot:
        return self.sim.robots["r"]

    @property
    def log(self) -> list[str]:
        return self.line.log

    def send(self, number: int, argument: int | bytes | None = None) -> None:
        self.line.send(command(number, argument))

    def ctrl(self, operation: int, data: bytes = b"") -> None:
        """Send SIM_CTRL: type byte, operation, data."""
        self.line.send(frame(236, b"\x3b" + operation.to_bytes(2, "little") + data))

    def run(self, seconds: float = 0.1) -> list[Packet]:
        """Advance time and return all output.

        A PULSE a second keeps the watchdog quiet.
        """
        while seconds > 1.0:
            self.modem.run(1.0)
            self.send(0)
            seconds -= 1.0

        self.modem.run(seconds)
        return Parser().feed_bytes(self.line.take())

    def sip(self, seconds: float = 0.2) -> Sip:
        """Advance time and return the last SIP."""
        return [Sip.decode(p) for p in self.run(seconds) if p.id in (0x32, 0x33)][-1]

    def get(self, packet_type: int, seconds: float = 0.1) -> list[Packet]:
        """Advance time and return the packets of one type."""
        return [p for p in self.run(seconds) if p.id == packet_type]


def named(text: str, nul: bool = False) -> bytes:
    """Return a length-prefixed name of SIM_CTRL."""
    data = text.encode() + (b"\0" if nul else b"")
    return len(data).to_bytes(2, "little") + data
