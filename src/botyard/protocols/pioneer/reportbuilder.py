"""Conversion of a robot's state in SI units to the integers of its reports.

This module converts metres to millimetres, and radians to degrees. Source:
pioneer-protocol §5 to §8, §16.
"""

from __future__ import annotations

import logging
import math
import operator
from functools import partial
from typing import Any, Final

import numpy as np

from botyard import units
from botyard.model.devices import DeviceSpec, PioneerFields, find_device
from botyard.model.readings import LaserScan
from botyard.model.robot import RobotSpec
from botyard.model.robotport import RobotPort
from botyard.model.robotstate import RobotState
from botyard.protocols.pioneer import accessoryreports as accessories
from botyard.protocols.pioneer import encoders, gripperbits
from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.reports import (
    CONFIG_MAXIMA,
    READINGS_PER_PACKET,
    Config,
    LaserPart,
    Sip,
)
from botyard.protocols.pioneer.simreports import SimDevice, SimInfo, SimStat

log = logging.getLogger("botyard.devices")

STALL_BITS = 0x0101
"""Bits of ``Sip.stall_bumpers`` for a stall of both wheels."""
FRONT_BITS, REAR_BITS = 0xFE00, 0x00FE
"""Bits of all front contact switches, and of all rear ones, in ``Sip.stall_bumpers``."""
DEVICE_BITS: Final = {
    "stall_bumpers": FRONT_BITS | REAR_BITS,
    "flags": 0xFFFF,
    "gripper": 0xFF,
    "faults": 0xFFFF,
    "compass": 0xFF,
    "battery": 0xFF,
    "battery10": 0xFFFF,
    "charge_state": 0xFF,
    "soc": 0xFF,
    "timer_low": 0xFF,
    "analog": 0xFF,
    "digout": 0xFF,
    "temperature": -1,
}
"""Fields of the report in which devices may set bits, with the allowed bits.

See `PioneerFields.report`.
"""
DEVICE_SIMSTAT: Final = frozenset(
    {"flags", "lat_e7", "lon_e7", "alt_cm", "gps_quality"}
)
"""Fields of SIMSTAT that devices may fill in (`PioneerFields.simstat`).

In ``flags`` they may set only bit 1.
"""
SONAR_BITS = 0b11110
"""Bits of ``Sip.flags`` that report all four sonar arrays as switched on."""

_I16 = (-0x8000, 0x7FFF)
_U16 = (0, 0xFFFF)
_I32 = (-0x8000_0000, 0x7FFF_FFFF)


def _u16(value: float) -> int:
    return units.to_int_saturated(value, *_U16)


def _i16(value: float) -> int:
    return units.to_int_saturated(value, *_I16)


def _i32(value: float) -> int:
    return units.to_int_saturated(value, *_I32)


def sonar_readings(port: RobotPort, first: int) -> list[tuple[int, int]]:
    """Return up to 32 sonar readings, starting with transducer `first`, as (index, range).

    Parameters
    ----------
    port : RobotPort
        The robot. `range_conv` of its model is the size of a range unit, mm.
    first : int
        Index of the first transducer.

    Returns
    -------
    list of (int, int)
        Index of the transducer, and range in range units, 0 to 65535; empty without a
        sonar.
    """
    sonar = port.sonar()
    if sonar is None:
        return []
    scale = 1000.0 / port.spec.pioneer.range_conv
    ranges = (
        np.rint(sonar.ranges[first : first + READINGS_PER_PACKET] * scale)
        .astype(int)
        .tolist()
    )
    return [(first + i, min(max(r, 0), 0xFFFF)) for i, r in enumerate(ranges)]


def is_stalled_by(bits: int, bumpstall: int) -> bool:
    """Return whether contact switches stall the robot.

    Front switches stall it if bit 0 of `bumpstall` is set, rear switches if bit 1 is
    set (pioneer-protocol §4.1).

    Parameters
    ----------
    bits : int
        Contact switches in the layout of `Sip.stall_bumpers`.
    bumpstall : int
        Argument of BUMPSTALL: 0 none, 1 front, 2 rear, 3 both.
    """
    return bool(
        (bits & FRONT_BITS and bumpstall & 1) or (bits & REAR_BITS and bumpstall & 2)
    )


def _stalls(is_stalled: bool, bits: int, bumpstall: int) -> int:
    """Return the value of `Sip.stall_bumpers`, with stalls and contact switches.

    Parameters
    ----------
    is_stalled : bool
        Whether an obstacle blocks the robot.
    bits : int
        Contact switches, as `FRONT_BITS` and `REAR_BITS`. Other bits are ignored.
    bumpstall : int
        Bumpers whose contact counts as a stall of both wheels; see `is_stalled_by`.
    """
    return (
        STALL_BITS if is_stalled or is_stalled_by(bits, bumpstall) else 0
    ) | bits & (FRONT_BITS | REAR_BITS)


def build_sip(
    port: RobotPort,
    state: RobotState,
    *,
    sonar_on: bool,
    first_sonar: int = 0,
    bumpstall: int = 0,
    gripper_layout: str = "aria",
) -> Sip:
    """Return the standard information packet of a robot.

    Parameters
    ----------
    port, state : RobotPort, RobotState
        The robot and its state.
    sonar_on : bool
        Whether the client has requested sonar: sets the flag bits, and includes
        readings if the robot has a ring.
    first_sonar : int
        Index of the first transducer in this SIP, for rings of more than 32
        transducers.
    bumpstall : int
        Bumpers that stall the robot: bit 0 front, bit 1 rear.
    gripper_layout : str
        One of `gripperbits.LAYOUTS`.

    Returns
    -------
    Sip
        Integers in the protocol's units. Positions wrap at 16 bits; all others
        saturate.
    """
    p = port.spec.pioneer
    forward, turn = units.mm(state.twist.vx), state.twist.w / p.diff_conv
    digin = port.digital_inputs()[0]
    grip = port.gripper_state()

    # Player's driver reads the beams from the digital inputs.
    if grip is not None and gripper_layout == "p2os":
        digin = gripperbits.p2os_inputs(grip, digin)

    flags = (1 if state.motors else 0) | (SONAR_BITS if sonar_on else 0)
    bits = port.report_bits()

    sip = Sip(
        x=units.to_int_wrapped(units.mm(state.pose_odom.x) / p.dist_conv, 16),
        y=units.to_int_wrapped(units.mm(state.pose_odom.y) / p.dist_conv, 16),
        th=_i16(state.pose_odom.th / p.angle_conv),
        left_vel=_i16((forward - turn) / p.vel_conv),
        right_vel=_i16((forward + turn) / p.vel_conv),
        stall_bumpers=_stalls(state.stalled, bits.get("stall_bumpers", 0), bumpstall),
        flags=flags,
        sonar=sonar_readings(port, first_sonar) if sonar_on else [],
        gripper=0 if grip is None else gripperbits.switches(grip, gripper_layout),
        digin=digin,
        # The device of the controller board sets the outputs and the temperature by its
        # bits, below.
        digout=0,
        rot_vel10=_i16(units.deg(state.twist.w) * 10.0),
        lat_vel=_i16(units.mm(state.twist.vy)),
        temperature=0,
    )

    for name in bits.keys() & DEVICE_BITS.keys() - {"stall_bumpers"}:
        setattr(sip, name, getattr(sip, name) | bits[name] & DEVICE_BITS[name])
    return sip


def build_config(
    spec: RobotSpec, state: RobotState, name: str, firmware: str
) -> Config:
    """Return a CONFIGpac with the model's limits as maxima, and the robot's current settings.

    Devices of the model's equipment fill in further fields, such as bumpers or gripper.
    A device that raises is logged, and leaves its fields out.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot, with its limits in SI units.
    state : RobotState
        State with the limits and ramps that the client has set.
    name : str
        Robot's name that clients see; it may identify the simulator (§3).
    firmware : str
        Version text. Clients expect ``S.`` at its start in a simulator.

    Returns
    -------
    Config
        Speeds and accelerations in mm and degrees, saturated at 65535.
    """
    top, top_acc = spec.limits.max_speed, spec.limits.top_accel
    omni = top.y > 0.0

    config = Config(
        class_name=spec.pioneer.class_name,
        subclass=spec.pioneer.subclass,
        name=name,
        firmware=firmware,
        rot_vel_top=_u16(units.deg(top.a)),
        trans_vel_top=_u16(units.mm(top.x)),
        rot_acc_top=_u16(units.deg(top_acc.a)),
        trans_acc_top=_u16(units.mm(top_acc.x)),
        has_gyro=1 if spec.gyro else 0,
        ticks_mm=_u16(spec.pioneer.ticks_per_mm),
        watchdog_ms=_u16(spec.pioneer.watchdog * 1000.0),
        rot_vel_max=_u16(units.deg(state.limits.a)),
        trans_vel_max=_u16(units.mm(state.limits.x)),
        rot_acc=_u16(units.deg(state.accel.a)),
        rot_decel=_u16(units.deg(state.decel.a)),
        trans_acc=_u16(units.mm(state.accel.x)),
        trans_decel=_u16(units.mm(state.decel.x)),
        lat_vel_top=_u16(units.mm(top.y)),
        lat_acc_top=_u16(units.mm(top_acc.y)) if omni else 0,
        lat_vel_max=_u16(units.mm(state.limits.y)),
        lat_acc=_u16(units.mm(state.accel.y)),
        lat_decel=_u16(units.mm(state.decel.y)),
    )

    for device in spec.equipment:
        shown = find_device(device.type).pioneer
        # Most devices have no fields in this packet.
        if shown is None or shown.config is None:
            continue
        try:
            values = {
                # A device of another package may return floats or texts, which `index`
                # refuses.
                n: operator.index(v)
                for n, v in shown.config(device).items()
                if n in CONFIG_MAXIMA
            }
        # A plug-in may raise anything: the client still gets the other fields.
        except Exception:
            log.exception(
                'device "%s": pioneer.config raises; its fields are left out',
                device.type,
            )
            continue

        for name, value in values.items():
            setattr(config, name, min(max(value, 0), CONFIG_MAXIMA[name]))

    return config


def _simstat(
    shown: PioneerFields[Any, Any], spec: DeviceSpec, reading: Any
) -> dict[str, int]:
    """Return the SIMSTAT fields of a device, as integers of the packet.

    Parameters
    ----------
    shown : PioneerFields
        Description of the device's fields for this protocol.
    spec, reading : DeviceSpec, object
        The device and its newest reading.
    """
    assert shown.simstat is not None
    return {
        name: _i32(value)
        for name, value in shown.simstat(spec, reading).items()
        if name in DEVICE_SIMSTAT
    }


def build_simstat(port: RobotPort, state: RobotState) -> SimStat:
    """Return the state of the simulation, with the robot's true pose.

    Parameters
    ----------
    port : RobotPort
        The robot, with step lengths in s, and devices such as a GPS.
    state : RobotState
        State after the step; its true pose is sent, not the odometry.

    Returns
    -------
    SimStat
        Lengths in mm, angles in degrees. A GPS device of the robot fills the GPS
        fields.
    """
    timing, pose, error = port.timing, state.pose_world, state.odometry_error
    stat = SimStat(
        flags=(1 if port.has_map else 0) | 4,
        sim_ms=_u16(timing.sim * 1000.0),
        real_ms=_u16(timing.real * 1000.0),
        last_ms=_u16(timing.last * 1000.0),
        x_mm=_i32(units.mm(pose.x)),
        y_mm=_i32(units.mm(pose.y)),
        th_deg=_i32(units.deg(pose.th)),
        error_x=_i32(units.mm(error.x) * 1e7),
        error_y=_i32(units.mm(error.y) * 1e7),
        error_th=_i32(units.deg(error.a) * 1e7),
    )

    for reader in port.devices.values():
        shown = reader.kind.pioneer
        if shown is not None and shown.simstat is not None:
            values = reader.shown("pioneer.simstat", partial(_simstat, shown)) or {}
            for name, value in values.items():
                setattr(
                    stat, name, stat.flags | value & 2 if name == "flags" else value
                )

    return stat


def build_siminfo(
    port: RobotPort, application: str, version: str, flags: int
) -> SimInfo:
    """Return the identification of the simulator, and the robot's sonar and lasers.

    Devices are named ``robot.type:number``.

    Parameters
    ----------
    port : RobotPort
        Robot that the packet describes.
    application, version : str
        Name and version of the simulator.
    flags : int
        Bit 0: the simulator has an interactive page; bit 1: it was restarted after a
        crash.
    """
    spec = port.spec
    devices = (
        []
        if spec.sonar is None
        else [SimDevice(f"{port.name}.{spec.sonar.type_name}:0", spec.sonar.type_name)]
    )
    devices += [
        SimDevice(f"{port.name}.{d.type_name}:{i}", d.type_name, i)
        for i, d in enumerate(spec.lasers)
    ]
    return SimInfo(
        application=application, version=version, flags=flags, devices=devices
    )


def build_encoders(port: RobotPort, state: RobotState) -> accessories.Encoders:
    """Return the ticks of the wheels.

    Parameters
    ----------
    port : RobotPort
        The robot. Without a device that measures its wheels, both counts are 0.
    state : RobotState
        Not used; the builders of all packets on request have the same parameters.
    """
    ways = 0.0, 0.0
    for reader in port.devices.values():
        shown = reader.kind.pioneer
        if shown is not None and shown.wheels is not None:
            ways = reader.shown("pioneer.wheels", shown.wheels) or ways

    left, right = (
        units.to_int_wrapped(encoders.ticks(way, port.spec.pioneer), 32) for way in ways
    )
    return accessories.Encoders(left=left, right=right)


GYRO_READINGS = 4
"""Readings in a gyro packet: one for each 25 ms between two SIPs."""


def build_gyro(port: RobotPort, state: RobotState) -> accessories.Gyro:
    """Return the turn rate of the last step, as a gyro without noise and drift measures it.

    Parameters
    ----------
    port : RobotPort
        Not used.
    state : RobotState
        State after the step, with the turn rate in rad/s.
    """
    reading = encoders.gyro_reading(state.twist.w)
    return accessories.Gyro(
        readings=[(reading, encoders.GYRO_TEMPERATURE)] * GYRO_READINGS
    )


def build_joystick(port: RobotPort, state: RobotState) -> accessories.JoystickReport:
    """Return the state of the joystick.

    Parameters
    ----------
    port : RobotPort
        The robot. Axes of its joystick are −1 to 1, and the throttle is 0 to 1.
    state : RobotState
        Not used.
    """
    j = port.electrics.joystick
    return accessories.JoystickReport(
        button1=int(j.button1),
        button2=int(j.button2),
        x=round(512 + 511 * j.x),
        y=round(512 + 511 * j.y),
        throttle=round(1023 * j.throttle),
    )


def build_io(port: RobotPort, state: RobotState) -> accessories.Io:
    """Return the digital and analogue lines.

    Parameters
    ----------
    port : RobotPort
        The robot, with the lines of its controller board.
    state : RobotState
        Not used.
    """
    e = port.electrics
    return accessories.Io(
        inputs=port.digital_inputs(), outputs=bytes((e.digout,)), analog=e.analog
    )


def build_gripper(port: RobotPort, state: RobotState) -> accessories.GripperReport:
    """Return the switches of the gripper in ARIA's layout; kind 0 without a gripper.

    Parameters
    ----------
    port : RobotPort
        Robot that the packet describes.
    state : RobotState
        Not used.
    """
    grip = port.gripper_state()
    if grip is None:
        return accessories.GripperReport()
    return accessories.GripperReport(
        kind=accessories.GENERAL_IO, switches=gripperbits.aria(grip)
    )


def laser_packets(
    scan: LaserScan,
    state: RobotState,
    packet_type: int,
    *,
    device: int,
    flags: int,
    reverse: bool,
) -> bytes:
    """Return the concatenated packets of one scan, with at most 32 readings each.

    See pioneer-protocol §7.

    Parameters
    ----------
    scan : LaserScan
        Counter-clockwise readings.
    state : RobotState
        State with the odometry, for 0x60.
    packet_type : int
        0x60 or 0x61.
    device, flags : int
        Laser index and flags, for 0x61.
    reverse : bool
        Whether to send the readings clockwise, from the left end.

    Returns
    -------
    bytes
        Packets in the order of their readings; ranges in mm, saturated at 65535.
    """
    order = slice(None, None, -1) if reverse else slice(None)
    ranges = (
        np.clip(np.rint(scan.ranges[order] * 1000.0), 0, 0xFFFF).astype(int).tolist()
    )
    strengths: list[int] = []
    # Only packets 0x61 have room for reflectance.
    if packet_type == P.LASER2:
        bright = scan.returns[order]
        strengths = np.where(bright > 1, np.minimum(bright - 1, 255), 0).tolist()

    x, y = _i16(units.mm(state.pose_odom.x)), _i16(units.mm(state.pose_odom.y))
    th = _i16(units.deg(state.pose_odom.th))
    out = []
    for first in range(0, len(ranges), READINGS_PER_PACKET):
        last = first + READINGS_PER_PACKET
        part = LaserPart(
            total=len(ranges),
            first=first,
            ranges_mm=ranges[first:last],
            reflectance=strengths[first:last],
            x_mm=x,
            y_mm=y,
            th_deg=th,
            device=device,
            flags=flags,
        )
        out.append(part.encode(packet_type))

    return b"".join(out)


def scan_geometry(
    start_deg: float, end_deg: float, increment_deg: float
) -> tuple[float, float, int, bool]:
    """Return the rays for a client's laser settings.

    A scan starts at `start_deg`; from a start above the end it runs clockwise. The
    number of rays is ceil(ceil(span) / increment) + 1 (§7, LAS-006). An increment of 0
    gives no readings.

    Parameters
    ----------
    start_deg, end_deg : float
        Bearings of the first and last reading, degrees, counter-clockwise.
    increment_deg : float
        Spacing, degrees; 0 or more.

    Returns
    -------
    tuple
        Bearing of the lowest ray and spacing (rad), number of rays, and whether to send
        them reversed.
    """
    # A scan of more than a full turn would repeat its readings.
    span = min(abs(end_deg - start_deg), 360.0)
    # Settings arrive one by one, so an increment of 0 may be temporary: no reading
    # until then.
    if increment_deg <= 0.0:
        return units.from_deg(start_deg), 0.0, 0, end_deg < start_deg
    # The tolerance keeps a rounding error from adding a ray.
    count = math.ceil(math.ceil(span) / increment_deg - 1e-9) + 1
    lowest = min(start_deg, end_deg)
    return (
        units.from_deg(lowest),
        units.from_deg(increment_deg),
        min(count, 0xFFFF),
        end_deg < start_deg,
    )
