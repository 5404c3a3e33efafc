"""Packets that a client requests once or with every SIP.

They are encoders, gyro, joystick, I/O and gripper (pioneer-protocol §4.6, §10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from botyard.model.robotport import RobotPort
from botyard.model.robotstate import RobotState
from botyard.protocols.pioneer import reportbuilder as build
from botyard.protocols.pioneer.commands import P


class _Report(Protocol):
    def encode(self) -> bytes: ...


BUILDERS: Final[dict[P, Callable[[RobotPort, RobotState], _Report]]] = {
    P.ENCODER: build.build_encoders,
    P.GYRO: build.build_gyro,
    P.JOYSTICK: build.build_joystick,
    P.IO: build.build_io,
    P.GRIPPER: build.build_gripper,
}
"""Builder of each kind of packet, in the order in which they follow a SIP."""


class Streams:
    """Subscriptions of one client to these packets."""

    def __init__(self, port: RobotPort) -> None:
        self._port = port
        self._modes: dict[P, int] = {}

    def request(self, kind: P, mode: int) -> None:
        """Set the subscription to a kind of packet.

        Mode 0 is none, 1 is one packet with the next SIP, and any other a packet with
        every SIP.
        """
        self._modes[kind] = mode

    @property
    def wanted(self) -> bool:
        """Whether there is a packet to send."""
        return any(self._modes.values())

    def report(self, state: RobotState) -> bytes:
        """Return the packets of this period."""
        if not self._modes:
            return b""
        out = []
        # In the order of the table, which clients of real robots see, not in the order
        # of requests.
        for kind, builder in BUILDERS.items():
            mode = self._modes.get(kind, 0)
            if mode:
                out.append(builder(self._port, state).encode())
            # A single packet was requested, and is sent now.
            if mode == 1:
                self._modes[kind] = 0

        return b"".join(out)
