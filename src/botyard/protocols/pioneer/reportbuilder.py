"""From a robot in SI units to the integers of its reports (pioneer-protocol §5–8, §16; decisions, "Pioneer").

This is the boundary where metres become millimetres and radians degrees.
"""

from __future__ import annotations

import math

import numpy as np

from botyard import units
from botyard.devices.laser import LaserScan
from botyard.model.robot import RobotSpec
from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.reports import READINGS_PER_PACKET, Config, LaserPart, SimStat, Sip
from botyard.protocols.robotport import RobotPort, RobotState

STALL_BITS = 0x0101
"""Both wheels stalled."""
SONAR_BITS = 0b11110
"""All four sonar arrays on."""

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
    """Index and range of up to 32 sonar readings from index `first`, in range units."""
    sonar = port.sonar()
    if sonar is None:
        return []
    scale = 1000.0 / port.spec.pioneer.range_conv
    ranges = np.rint(sonar.ranges[first : first + READINGS_PER_PACKET] * scale).astype(int).tolist()
    return [(first + i, min(max(r, 0), 0xFFFF)) for i, r in enumerate(ranges)]


def build_sip(port: RobotPort, state: RobotState, *, sonar_on: bool, first_sonar: int = 0) -> Sip:
    """The standard information packet of a robot.

    Parameters
    ----------
    port, state : RobotPort, RobotState
        The robot and its state.
    sonar_on : bool
        The client wants sonar; the flag bits follow that, the readings need a ring too.
    first_sonar : int
        Index of the first sonar reading, for rings of more than 32.
    """
    p, e = port.spec.pioneer, port.electrics
    forward, turn = units.mm(state.twist.vx), state.twist.w / p.diff_conv
    by_charge = e.battery.by_charge
    decivolts = 0 if by_charge else _u16(e.volts * 10.0)
    return Sip(
        x=units.to_int_wrapped(units.mm(state.pose_odom.x) / p.dist_conv, 16),
        y=units.to_int_wrapped(units.mm(state.pose_odom.y) / p.dist_conv, 16),
        th=_i16(state.pose_odom.th / p.angle_conv),
        left_vel=_i16((forward - turn) / p.vel_conv),
        right_vel=_i16((forward + turn) / p.vel_conv),
        battery=min(decivolts, 0xFF),
        stall_bumpers=STALL_BITS if state.stalled else 0,
        flags=(1 if state.motors else 0) | (SONAR_BITS if sonar_on else 0),
        sonar=sonar_readings(port, first_sonar) if sonar_on else [],
        digin=e.digin,
        digout=e.digout,
        battery10=decivolts,
        rot_vel10=_i16(units.deg(state.twist.w) * 10.0),
        faults=2 if e.temperature_warning else 0,
        lat_vel=_i16(units.mm(state.twist.vy)),
        temperature=units.to_int_saturated(e.temperature, -128, 127),
        soc=units.to_int_saturated(e.charge, 0, 100) if by_charge else 0,
    )


def build_config(spec: RobotSpec, state: RobotState, name: str, firmware: str) -> Config:
    """CONFIGpac with the model's true limits as maxima, and the settings in force."""
    top, top_acc = spec.limits.max_speed, spec.limits.top_accel
    has_sonar = 1 if spec.sonar else 0
    omni = top.y > 0.0
    return Config(
        class_name=spec.pioneer.class_name,
        subclass=spec.pioneer.subclass,
        name=name,
        firmware=firmware,
        rot_vel_top=_u16(units.deg(top.a)),
        trans_vel_top=_u16(units.mm(top.x)),
        rot_acc_top=_u16(units.deg(top_acc.a)),
        trans_acc_top=_u16(units.mm(top_acc.x)),
        front_sonar=has_sonar,
        rear_sonar=has_sonar,
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


def build_simstat(port: RobotPort, state: RobotState) -> SimStat:
    """State of the simulation, with the robot's true pose."""
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
    fix = port.fix()
    if fix is not None:
        stat.flags |= 2
        stat.lat_e7, stat.lon_e7 = _i32(fix.latitude * 1e7), _i32(fix.longitude * 1e7)
        stat.alt_cm = _i32(fix.altitude * 100.0)
        stat.gps_quality = _i32(fix.dop * 100.0)
    return stat


def laser_packets(
    scan: LaserScan, state: RobotState, packet_type: int, *, device: int, flags: int, reverse: bool
) -> bytes:
    """All packets of one scan, one after the other, at most 32 readings in each (§7).

    Parameters
    ----------
    scan : LaserScan
        Counter-clockwise readings.
    packet_type : int
        0x60 or 0x61.
    device, flags : int
        For 0x61.
    reverse : bool
        Send the readings clockwise, from the left end.
    """
    order = slice(None, None, -1) if reverse else slice(None)
    ranges = np.clip(np.rint(scan.ranges[order] * 1000.0), 0, 0xFFFF).astype(int).tolist()
    strengths: list[int] = []
    if packet_type == P.LASER2:
        bright = scan.intensities[order]
        strengths = np.where(bright > 1, np.minimum(bright - 1, 255), 0).tolist()
    x, y = _i16(units.mm(state.pose_odom.x)), _i16(units.mm(state.pose_odom.y))
    th = _i16(units.deg(state.pose_odom.th))
    out = []
    for first in range(0, len(ranges), READINGS_PER_PACKET):
        last = first + READINGS_PER_PACKET
        part = LaserPart(
            total=len(ranges), first=first, ranges_mm=ranges[first:last], reflectance=strengths[first:last],
            x_mm=x, y_mm=y, th_deg=th, device=device, flags=flags,
        )  # fmt: skip
        out.append(part.encode(packet_type))
    return b"".join(out)


def scan_geometry(start_deg: float, end_deg: float, increment_deg: float) -> tuple[float, float, int, bool]:
    """Rays for a client's laser settings: bearing of the lowest ray and spacing (rad), number, and whether to send them reversed.

    A scan begins at `start_deg`; from a start above the end it runs clockwise. The number is
    ceil(ceil(span) / increment) + 1 (§7, LAS-006); an increment of 0 gives no readings.
    """
    span = min(abs(end_deg - start_deg), 360.0)
    if increment_deg <= 0.0:
        return units.from_deg(start_deg), 0.0, 0, end_deg < start_deg
    count = math.ceil(math.ceil(span) / increment_deg - 1e-9) + 1
    lowest = min(start_deg, end_deg)
    return units.from_deg(lowest), units.from_deg(increment_deg), min(count, 0xFFFF), end_deg < start_deg
