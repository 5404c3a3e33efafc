"""Packets of accessories: encoders, gyro, joystick, I/O lines and gripper.

Like `reports`, the module has a class with `encode` and `decode` for each
packet. Source: pioneer-protocol §10.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.packet import Packet, frame


@dataclass(slots=True, kw_only=True)
class Encoders:
    """ENCODERpac 0x90: ticks of the left and right wheel, 32 bits, wrapping.

    Attributes
    ----------
    left, right : int
        Counts, −2³¹ to 2³¹ − 1; they increase when the wheel rolls forwards.
    """

    left: int = 0
    right: int = 0

    def encode(self) -> bytes:
        """Return an ENCODERpac with these counts."""
        return frame(P.ENCODER, struct.pack("<ii", self.left, self.right))

    @classmethod
    def decode(cls, packet: Packet) -> Encoders:
        """Return the counts in an ENCODERpac.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x90. Missing bytes count as 0.
        """
        r = packet.reader()
        return cls(left=r.i32(), right=r.i32())


@dataclass(slots=True, kw_only=True)
class Gyro:
    """GYROpac 0x98: readings since the last packet as (rate, temperature).

    A rate has 10 bits, with 512 at rest.

    Attributes
    ----------
    readings : sequence of (int, int)
        Rate, 0 to 1023, 512 at rest, and temperature byte; oldest first. At most 64 fit
        in a packet.
    """

    readings: Sequence[tuple[int, int]] = ()

    def encode(self) -> bytes:
        """Return a GYROpac with these readings.

        Raises
        ------
        ValueError
            There are more readings than fit in a packet.
        """
        body = b"".join(
            struct.pack("<hB", rate, temperature) for rate, temperature in self.readings
        )
        return frame(P.GYRO, bytes((len(self.readings),)) + body)

    @classmethod
    def decode(cls, packet: Packet) -> Gyro:
        """Return the readings in a GYROpac.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x98. A truncated reading is left out.
        """
        r = packet.reader()
        # The count comes from the packet, so it is checked against the remaining bytes.
        n = r.u8()
        return cls(
            readings=[(r.i16(), r.u8()) for _ in range(min(n, r.remaining // 3))]
        )


@dataclass(slots=True, kw_only=True)
class JoystickReport:
    """JOYSTICKpac 0xF8: buttons and axes.

    Buttons are 0 or 1; x (right), y (forward) and throttle are 0 to 1023. In the
    middle, x and y are 512.

    Attributes
    ----------
    button1, button2 : int
        1 while the button is pressed.
    x, y : int
        Deflection to the right and forwards: 0 to 1023, 512 in the middle.
    throttle : int
        0 to 1023.
    """

    button1: int = 0
    button2: int = 0
    x: int = 512
    y: int = 512
    throttle: int = 1023

    def encode(self) -> bytes:
        """Return a JOYSTICKpac with these values."""
        return frame(
            P.JOYSTICK,
            struct.pack(
                "<BBHHH", self.button1, self.button2, self.x, self.y, self.throttle
            ),
        )

    @classmethod
    def decode(cls, packet: Packet) -> JoystickReport:
        """Return the values in a JOYSTICKpac.

        Parameters
        ----------
        packet : Packet
            Packet of type 0xF8. Missing bytes count as 0.
        """
        r = packet.reader()
        return cls(
            button1=r.u8(), button2=r.u8(), x=r.u16(), y=r.u16(), throttle=r.u16()
        )


@dataclass(slots=True, kw_only=True)
class Io:
    """IOpac 0xF0: digital inputs and outputs (bytes), and analogue inputs.

    Analogue inputs have 10 bits, with 5 V full scale.

    Attributes
    ----------
    inputs, outputs : bytes
        Digital lines, eight in each byte; bit 0 is the first line.
    analog : sequence of int
        Readings of the analogue inputs, 0 to 1023.
    """

    inputs: bytes = b""
    outputs: bytes = b""
    analog: Sequence[int] = ()

    def encode(self) -> bytes:
        """Return an IOpac with these lines and readings.

        Each of the three lists starts with its length in one byte (pioneer-protocol
        §10).

        Raises
        ------
        ValueError
            The lists are too long for a packet.
        """
        analog = struct.pack(f"<{len(self.analog)}H", *self.analog)
        return frame(
            P.IO,
            bytes((len(self.inputs),))
            + self.inputs
            + bytes((len(self.outputs),))
            + self.outputs
            + bytes((len(self.analog),))
            + analog,
        )

    @classmethod
    def decode(cls, packet: Packet) -> Io:
        """Return the lines and readings in an IOpac.

        Parameters
        ----------
        packet : Packet
            Packet of type 0xF0. Missing bytes count as 0, and missing lists are empty.
        """
        r = packet.reader()
        inputs = r.take(r.u8())
        outputs = r.take(r.u8())
        return cls(
            inputs=inputs, outputs=outputs, analog=[r.u16() for _ in range(r.u8())]
        )


GENERAL_IO = 2
"""Value of `GripperReport.kind` for a gripper that is connected to the general I/O port."""


@dataclass(slots=True, kw_only=True)
class GripperReport:
    """GRIPPERpac 0xE0: connection and switches of the gripper, and its grasp time.

    See pioneer-protocol §10.1.

    Attributes
    ----------
    kind : int
        Connection of the gripper: 0 for no gripper, or `GENERAL_IO`.
    switches : int
        Bits in ARIA's layout; see `gripperbits.aria`.
    grasp_time : int
        Time to grasp, 0 to 255; the simulator sends 0.
    """

    kind: int = 0
    switches: int = 0
    grasp_time: int = 0

    def encode(self) -> bytes:
        """Return a GRIPPERpac with these values."""
        return frame(P.GRIPPER, bytes((self.kind, self.switches, self.grasp_time)))

    @classmethod
    def decode(cls, packet: Packet) -> GripperReport:
        """Return the values in a GRIPPERpac.

        Parameters
        ----------
        packet : Packet
            Packet of type 0xE0. Missing bytes count as 0.
        """
        r = packet.reader()
        return cls(kind=r.u8(), switches=r.u8(), grasp_time=r.u8())
