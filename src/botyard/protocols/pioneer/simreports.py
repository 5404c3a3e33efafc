"""Packets about the simulation itself: SIMSTAT, SIMINFO and SIM_MAP_CHANGED.

Like `reports`, the module has a class with `encode` and `decode` for each packet.
Source: pioneer-protocol §8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, fields

from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.packet import MAX_DATA, Packet, Reader, frame
from botyard.protocols.pioneer.reports import c_string

_SIMSTAT = struct.Struct("<BBIHHHiiiiiiiiiii")


@dataclass(slots=True, kw_only=True)
class SimStat:
    """State of the simulation, SIMSTAT (pioneer-protocol §8).

    Attributes
    ----------
    flags : int
        Bit 0: there is a map; bit 1: the map is georeferenced; bit 2: the packet has
        odometry errors.
    sim_ms, real_ms, last_ms : int
        Length of a step, ms: in simulated time, requested wall time, and measured wall
        time of the last step.
    x_mm, y_mm, z_mm, th_deg : int
        True pose of the robot, mm and degrees.
    lat_e7, lon_e7, alt_cm : int
        GPS reading, 10⁻⁷ ° and cm.
    gps_quality : int
        100 × dilution of precision; 0 for a bad reading, −1 without a GPS.
    error_x, error_y, error_th : int
        Odometry errors: mm and degrees × 10⁷.
    """

    # AMRISim always sets bit 2 of these flags.
    flags: int = 4
    sim_ms: int = 100
    real_ms: int = 100
    last_ms: int = 100
    x_mm: int = 0
    y_mm: int = 0
    z_mm: int = 0
    th_deg: int = 0
    lat_e7: int = 0
    lon_e7: int = 0
    alt_cm: int = 0
    gps_quality: int = -1
    error_x: int = 0
    error_y: int = 0
    error_th: int = 0

    def encode(self) -> bytes:
        """Return a SIMSTAT packet with these values: 56 data bytes.

        Returns
        -------
        bytes
            Complete packet of 62 bytes.

        Raises
        ------
        struct.error
            A value does not fit into its field. `reportbuilder` saturates values
            before.
        """
        return frame(
            P.SIMSTAT,
            # Two reserved bytes come first.
            _SIMSTAT.pack(0, 0, *(getattr(self, f.name) for f in fields(self))),
        )

    @classmethod
    def decode(cls, packet: Packet) -> SimStat:
        """Return the values in a SIMSTAT packet.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x62. Missing fields count as 0.
        """
        r = Reader(packet.data)
        r.take(2)
        values = [r.u32(), r.u16(), r.u16(), r.u16(), *(r.i32() for _ in range(11))]
        return cls(**{f.name: v for f, v in zip(fields(cls), values, strict=True)})


@dataclass(frozen=True, slots=True)
class SimDevice:
    """Device in the list of SIMINFO.

    Attributes
    ----------
    name : str
        Unique name, such as ``robot1.laser:0``.
    type_name : str
        Name of the model, such as ``sicklms200``.
    number : int
        Number among the devices of its kind, from 0; the low 8 bits are sent.
    status : int
        Always 0: the protocol defines no other value.
    """

    name: str
    type_name: str
    number: int = 0
    status: int = 0


@dataclass(slots=True, kw_only=True)
class SimInfo:
    """Identification of the simulator, and the robot's devices: SIMINFO (pioneer-protocol §8).

    Attributes
    ----------
    application, version : str
        Name and version of the simulator.
    flags : int
        Bit 0: the simulator has an interactive page; bit 1: it was restarted after a
        crash.
    devices : list of SimDevice
        Devices, as many as fit into the packet.
    """

    application: str = "AMRISim"
    version: str = ""
    flags: int = 0
    devices: list[SimDevice] = field(default_factory=list)

    def encode(self) -> bytes:
        """Return a SIMINFO packet; devices that do not fit are left out, and not counted.

        Raises
        ------
        ValueError
            Application and version are too long for a packet.
        """
        head = c_string(self.application) + c_string(self.version)
        parts: list[bytes] = []
        # Flags and number of devices take 4 bytes each.
        room = MAX_DATA - len(head) - 8
        for d in self.devices:
            part = (
                c_string(d.name)
                + c_string(d.type_name)
                + struct.pack("<BI", d.number & 0xFF, d.status)
            )
            if sum(map(len, parts)) + len(part) > room:
                break
            parts.append(part)

        return frame(
            P.SIMINFO,
            head + struct.pack("<II", self.flags, len(parts)) + b"".join(parts),
        )

    @classmethod
    def decode(cls, packet: Packet) -> SimInfo:
        """Return the identification and the devices in a SIMINFO packet.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x63. A truncated list of devices is shorter than its count.
        """
        r = packet.reader()
        info = cls(application=r.text(), version=r.text(), flags=r.u32())
        n = r.u32()
        # The count comes from the packet: without the second condition, it could
        # request four billion devices.
        while len(info.devices) < n and r.remaining:
            info.devices.append(SimDevice(r.text(), r.text(), r.u8(), r.u32()))
        return info


@dataclass(slots=True, kw_only=True)
class MapChanged:
    """Result of a map change, SIM_MAP_CHANGED (pioneer-protocol §8).

    Attributes
    ----------
    by_user : bool
        Whether the map was changed on the interactive page, not by a client.
    loaded : int
        1 if a new map was loaded; 0 if it was not loaded, because it is unchanged or
        another client has reserved loading (SIM_CTRL 2); 2 if it could not be loaded.
    name : str
        File name as requested.
    """

    by_user: bool = False
    loaded: int = 0
    name: str = ""

    def encode(self) -> bytes:
        """Return a packet SIM_MAP_CHANGED with this result.

        A name that does not fit is cut.
        """
        return frame(
            P.MAP_CHANGED,
            struct.pack("<Bb", self.by_user, self.loaded)
            + c_string(self.name, MAX_DATA - 3),
        )

    @classmethod
    def decode(cls, packet: Packet) -> MapChanged:
        """Return the result in a packet SIM_MAP_CHANGED.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x66.
        """
        r = packet.reader()
        return cls(by_user=r.u8() != 0, loaded=r.i8(), name=r.text())
