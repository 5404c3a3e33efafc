"""Packets that a client requests once or with every SIP.

The packets describe encoders, gyro, joystick, I/O and gripper (pioneer-protocol §4.6,
§10).
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
    """Subscriptions of one client to packets about the accessories of its robot.

    Parameters
    ----------
    port : RobotPort
        The robot, which the packets describe.
    """

    def __init__(self, port: RobotPort) -> None:
        self._port = port
        self._modes: dict[P, int] = {}

    def request(self, kind: P, mode: int) -> None:
        """Set the subscription to a kind of packet.

        Mode 0 means no packet, 1 a packet with the next SIP, and any other a packet
        with every SIP.

        Parameters
        ----------
        kind : P
            Packet type, one of `BUILDERS`.
        mode : int
            Argument of the client's request.
        """
        self._modes[kind] = mode

    @property
    def wanted(self) -> bool:
        """Whether at least one packet has been requested."""
        return any(self._modes.values())

    def report(self, state: RobotState) -> bytes:
        """Return the packets of this period.

        Parameters
        ----------
        state : RobotState
            State after the step.

        Returns
        -------
        bytes
            Concatenated packets. Each call uses up the requests for one packet.
        """
        if not self._modes:
            return b""
        out = []
        # Send the packets in the order of the table, as real robots do, not in the
        # order of the requests.
        for kind, builder in BUILDERS.items():
            mode = self._modes.get(kind, 0)
            if mode:
                out.append(builder(self._port, state).encode())
            # A single packet was requested, and is sent now.
            if mode == 1:
                self._modes[kind] = 0

        return b"".join(out)
