"""Rays of lidars one by one: timing of a sweep, materials of surfaces, several echoes.

All other range sensors have the faster kernels of `raycast`, with the same ranges.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beamreadings import (
    Noise,
    finish_bright,
    finish_reading,
    is_missing,
)
from botyard.engine.kernels.beams import away_from_zero
from botyard.engine.kernels.identify import body_ahead, wall_hit
from botyard.engine.kernels.jit import entry_kernel, inline_kernel, kernel
from botyard.engine.kernels.motion import arc
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.kernels.packed import Chosen, Output, Sensors
from botyard.engine.layout import F8, I2, I8, World
from botyard.numerics.elementary import cosine_sine

PACE, WHITE_RANGE, INTENSITY, ECHOES, LEAST_COSINE, ERRS = range(6)
"""Columns of `Lidars.optics`, see `botyard.model.beams.Optics`."""
MATT, GLOSSY, CLEAR = range(3)
"""Columns of `Lidars.materials`."""
MAX_SURFACES = 16
"""Highest number of surfaces that a ray meets."""
PAST = 1e-6
"""Distance behind a surface at which a ray that has passed it continues, m."""
ECHO_DRAWS = 5 << 32
"""Number of the first draw for lost echoes in the stream of a device.

Ray j takes the draws `MAX_SURFACES` · j and following.
"""
LOBE_SQUARINGS = 8
"""The exponent of the glossy lobe is 2 to this power: half of the light is within 2.1°."""
LOBE_GAIN = (2**LOBE_SQUARINGS + 2) / 2.0
"""Intensity of a glossy surface seen from the mirror direction, relative to a matt one."""
MAX_RETURN = 32767
"""Highest intensity that fits into the readings."""


class Lidars(NamedTuple):
    """Optics of lidars and materials of surfaces.

    Attributes
    ----------
    optics : (n_bundles, 6) float64
        Timing and optics of each bundle of `Fans`.
    materials : (m, 3) float64
        Matt and glossy share of each material, relative to the white target, and clear share.
    walls : (k,) int16 or (0,)
        Material of each entry of `Grid.seg`; without elements all have material 0.
    bodies : (n,) int16
        Material of each body.
    near : (n,) int64
        Workspace for the bodies within reach.
    """

    optics: F8
    materials: F8
    walls: I2
    bodies: I2
    near: I8


@kernel
def remission(matt: float, glossy: float, cosine: float) -> float:
    """Return the light that a surface sends back to its source; 1: all of it, matt and head-on.

    It is ρ cos α + γ (m + 2)/2 cos α cosᵐ 2α: the matt share ρ by Lambert's law, and the
    glossy share γ by the modified Phong model (E. Lafortune & Y. Willems, "Using the
    modified Phong reflectance model for physically based rendering", 1994), seen from the
    source. 2α is the angle between the source and the mirror direction.

    Parameters
    ----------
    matt, glossy : float
        Shares ρ and γ of the light.
    cosine : float
        Cosine of the angle of incidence α.
    """
    lobe = max(0.0, 2.0 * cosine * cosine - 1.0)
    for _ in range(LOBE_SQUARINGS):
        lobe *= lobe
    return cosine * (matt + glossy * LOBE_GAIN * lobe)


@kernel
def signal(remitted: float, white_range: float, r: float) -> float:
    """Return the received light, relative to the least that the lidar detects.

    The lidar equation for surfaces larger than the beam: P ∝ remission / r² (W. Wagner et
    al., ISPRS Journal 60, 2006, eq. 2). A white surface head-on at `white_range` gives 1.

    Parameters
    ----------
    remitted : float
        Result of `remission` relative to the white target, times the transmission of surfaces
        in front.
    white_range : float
        Range at which a white surface is just detected, m.
    r : float
        Range, m.
    """
    # The bound avoids a division by zero.
    share = white_range / max(r, 1e-3)
    return remitted * share * share


@inline_kernel
def bodies_near(
    world: World, near: I8, row: int, mask: int, x: float, y: float, reach: float
) -> int:
    """Write the rows of the bodies that a device may see, and return their number.

    Parameters
    ----------
    world : World
        Arrays of the world.
    near : (n,) int64
        Output.
    row : int
        Row of the body that carries the device, which it does not see.
    mask : int
        `Visible` classes that the device senses.
    x, y : float
        Position of the body that carries the device, m.
    reach : float
        Greatest distance of a point that a ray reaches, m.
    """
    pose, classes, radius = world.state.pose, world.state.mask, world.bodies.radius
    count = 0
    for other in range(pose.shape[0]):
        if other == row or int(classes[other]) & mask == 0:
            continue
        dx, dy = pose[other, 0] - x, pose[other, 1] - y
        far = reach + radius[other]
        if dx * dx + dy * dy <= far * far:
            near[count] = other
            count += 1

    return count


@kernel
def next_surface(
    world: World,
    lidars: Lidars,
    count: int,
    mask: int,
    x: float,
    y: float,
    dx: float,
    dy: float,
    reach: float,
) -> tuple[float, float, int, int]:
    """Return the nearest surface on a ray.

    Parameters
    ----------
    world, lidars : World, Lidars
        Arrays of the world, and materials.
    count : int
        Number of bodies in `Lidars.near`.
    mask : int
        `Visible` classes that the device senses.
    x, y : float
        Origin of the ray, m.
    dx, dy : float
        Direction of the ray, a unit vector without zeros.
    reach : float
        Length of the ray, m.

    Returns
    -------
    range : float
        Range, m; `reach` if nothing is hit.
    cosine : float
        Cosine of the angle of incidence.
    bright : int
        Laser return of the surface; 0 if nothing is hit.
    material : int
        Row of the material.
    """
    grid, pose = world.grid, world.state.pose
    cells, entry = wall_hit(
        grid,
        (x - grid.x0) / grid.h,
        (y - grid.y0) / grid.h,
        dx,
        dy,
        reach / grid.h,
        mask,
    )
    best, ex, ey, bright, material = reach, 0.0, 0.0, 0, 0
    if entry >= 0:
        best = cells * grid.h
        ex, ey = grid.seg[entry, 2], grid.seg[entry, 3]
        bright = int(grid.bright[entry])
        material = int(lidars.walls[entry]) if lidars.walls.shape[0] > 0 else 0

    for n in range(count):
        other = lidars.near[n]
        r, fx, fy = body_ahead(
            world.bodies,
            other,
            pose[other, 0] - x,
            pose[other, 1] - y,
            x,
            y,
            dx,
            dy,
            best,
        )
        if r < best:
            best, ex, ey = r, fx, fy
            bright, material = int(world.state.bright[other]), int(lidars.bodies[other])

    length = math.sqrt(ex * ex + ey * ey)
    cosine = abs(dx * ey - dy * ex) / length if length > 0.0 else 1.0
    return best, cosine, bright, material


@kernel
def finish_intensity(full: float, share: float) -> int:
    """Return a reported intensity, at least 1: 0 means that nothing was hit.

    Parameters
    ----------
    full : float
        Intensity of a white surface head-on.
    share : float
        Remitted light, relative to this surface.
    """
    return int(min(max(math.floor(full * share + 0.5), 1.0), float(MAX_RETURN)))


class Ray(NamedTuple):
    """Ray of a device.

    Attributes
    ----------
    x, y : float
        Origin, m.
    dx, dy : float
        Direction, a unit vector without zeros.
    reach : float
        Length, m.
    number : int
        Number of the beam in its device.
    """

    x: float
    y: float
    dx: float
    dy: float
    reach: float
    number: int


class Eye(NamedTuple):
    """Classes and bodies that a device can see.

    Attributes
    ----------
    mask : int
        `Visible` classes that the device senses.
    bodies : int
        Number of bodies in `Lidars.near`.
    key : uint64
        Key of the device's random stream.
    """

    mask: int
    bodies: int
    key: np.uint64


@kernel
def ray_of(
    world: World,
    sensors: Sensors,
    row: int,
    b: int,
    i: int,
    number: int,
    age: float,
    error: float,
    reach: float,
) -> Ray:
    """Return the ray of a beam at its time in the sweep.

    Parameters
    ----------
    world, sensors : World, Sensors
        Arrays of the world, and beams of all devices.
    row : int
        Row of the body that carries the device.
    b, i : int
        Bundle in `Fans`, and beam in the bundle.
    number : int
        Number of the beam in its device.
    age, error : float
        Time since the beam was cast, s, and error of its bearing, rad.
    reach : float
        Length of the ray, m.
    """
    fans, state = sensors.fans, world.state
    x, y, th = state.pose[row, 0], state.pose[row, 1], state.pose[row, 2]
    v, u, w = state.vel[row, 0], state.vel[row, 1], state.vel[row, 2]
    cb, sb = cosine_sine(th)
    # Pose of the body when the beam was cast, if its velocity has been constant since.
    px, py = arc(-v * age, -u * age, -w * age)
    ox, oy = x + cb * px - sb * py, y + sb * px + cb * py
    c, s = cosine_sine(th - w * age)
    k = fans.beam_first[b] + i
    bx, by, bc, bs = fans.beam_x[k], fans.beam_y[k], fans.beam_cos[k], fans.beam_sin[k]
    dx, dy = away_from_zero(c * bc - s * bs), away_from_zero(s * bc + c * bs)
    if error != 0.0:
        ec, es = cosine_sine(error)
        dx, dy = away_from_zero(dx * ec - dy * es), away_from_zero(dx * es + dy * ec)
    return Ray(ox + c * bx - s * by, oy + s * bx + c * by, dx, dy, reach, number)


@kernel
def write_echoes(
    world: World,
    sensors: Sensors,
    lidars: Lidars,
    eye: Eye,
    ray: Ray,
    b: int,
    at: int,
    n: int,
    output: Output,
) -> None:
    """Write the echoes of a ray, nearest first, or the strongest one if only one is wanted.

    Parameters
    ----------
    world, sensors, lidars : World, Sensors, Lidars
        Arrays of the world, beams of all devices, optics and materials.
    eye, ray : Eye, Ray
        Classes and bodies that can be seen, and the ray.
    b : int
        Bundle in `Fans`.
    at, n : int
        Place of the first echo in the output, and distance to the place of the next one.
    output : Output
        Output: ranges, m, and intensities of found echoes.
    """
    fans, key, j = sensors.fans, eye.key, ray.number
    noise = Noise(fans.r_noise[b], fans.r_std[b], fans.r_share[b])
    optics = lidars.optics[b]
    white, full, most = optics[WHITE_RANGE], optics[INTENSITY], int(optics[ECHOES])
    through, travelled, found, strongest = 1.0, 0.0, 0, 0.0
    for surface in range(MAX_SURFACES):
        if travelled >= ray.reach or found >= most or through == 0.0:
            return
        r, cosine, bright, material = next_surface(
            world,
            lidars,
            eye.bodies,
            eye.mask,
            ray.x + travelled * ray.dx,
            ray.y + travelled * ray.dy,
            ray.dx,
            ray.dy,
            ray.reach - travelled,
        )
        if bright == 0:
            return
        r += travelled
        travelled = r + PAST
        remitted = through * remission(
            lidars.materials[material, MATT], lidars.materials[material, GLOSSY], cosine
        )
        # Light passes twice: on its path out and back.
        clear = lidars.materials[material, CLEAR] if white > 0.0 else 0.0
        through *= clear * clear
        shown = finish_bright(
            bright,
            r,
            cosine,
            fans.bright_range[b],
            fans.bright_cos[b],
            int(fans.bright_as[b]),
        )
        power = signal(remitted, white, r) if white > 0.0 else 1.0
        if cosine < optics[LEAST_COSINE]:
            power = 0.0
        # Reflectors send all light back to its source.
        elif shown > 1:
            power = math.inf
        least = 1.0
        if optics[ERRS] > 0.0:
            draw = symmetric(
                np.uint64(key), np.uint64(ECHO_DRAWS + MAX_SURFACES * j + surface)
            )
            least = 0.5 * (draw + 1.0)
        # `least` may be 0, but without light there is no echo.
        if power == 0.0 or power < least:
            continue
        if most > 1 or power > strongest:
            place = at + found * n
            output.ranges[place] = finish_reading(
                r, fans.r_min[b], ray.reach, noise, key, j + found * n
            )
            if full > 0.0:
                share = float(shown) if shown > 1 else remitted
                output.bright[place] = finish_intensity(full, share)
            else:
                output.bright[place] = shown
        strongest = max(strongest, power)
        if most > 1:
            found += 1


@kernel
def write_shortest(
    world: World,
    sensors: Sensors,
    lidars: Lidars,
    eye: Eye,
    row: int,
    b: int,
    number: int,
    at: int,
    output: Output,
) -> None:
    """Write the one reading of a bundle whose beams fill a cone: the shortest echo.

    Parameters
    ----------
    world, sensors, lidars : World, Sensors, Lidars
        Arrays of the world, beams of all devices, optics and materials.
    eye : Eye
        Classes and bodies that can be seen.
    row : int
        Row of the body that carries the device.
    b, number : int
        Bundle in `Fans`, and number of its first beam in the device.
    at : int
        Place of the reading in the output.
    output : Output
        Output: range, m, and return, 0 or 1.
    """
    fans = sensors.fans
    r_max, nearest = fans.r_max[b], fans.r_max[b]
    noise = Noise(fans.r_noise[b], fans.r_std[b], fans.r_share[b])
    for i in range(fans.beam_first[b + 1] - fans.beam_first[b]):
        # A beam can only count if it is shorter than the ones before.
        ray = ray_of(world, sensors, row, b, i, number + i, 0.0, 0.0, nearest)
        r, cosine, bright, _ = next_surface(
            world, lidars, eye.bodies, eye.mask, ray.x, ray.y, ray.dx, ray.dy, nearest
        )
        if bright != 0 and cosine >= lidars.optics[b, LEAST_COSINE]:
            nearest = r

    is_lost = nearest >= r_max or is_missing(fans.missing[b], eye.key, number)
    output.bright[at] = 0 if is_lost else 1
    output.ranges[at] = (
        r_max
        if is_lost
        else finish_reading(nearest, fans.r_min[b], r_max, noise, eye.key, number)
    )


@kernel
def cast_bundle(
    world: World,
    sensors: Sensors,
    lidars: Lidars,
    eye: Eye,
    row: int,
    b: int,
    before: int,
    at: int,
    output: Output,
) -> None:
    """Take the readings of one bundle of a device.

    Parameters
    ----------
    world, sensors, lidars : World, Sensors, Lidars
        Arrays of the world, beams of all devices, optics and materials.
    eye : Eye
        Classes and bodies that can be seen.
    row : int
        Row of the body that carries the device.
    b : int
        Bundle in `Fans`.
    before : int
        Number of beams of earlier bundles of the device.
    at : int
        First place of the readings in the output.
    output : Output
        Output: readings of this bundle, echo by echo.
    """
    fans, key = sensors.fans, eye.key
    n = fans.beam_first[b + 1] - fans.beam_first[b]
    if fans.readings[b + 1] - fans.readings[b] < n:
        write_shortest(world, sensors, lidars, eye, row, b, before, at, output)
        return

    pause = lidars.optics[b, PACE] * fans.step[b]
    for i in range(n):
        j = before + i
        for e in range(int(lidars.optics[b, ECHOES])):
            output.ranges[at + e * n + i] = fans.r_max[b]
            output.bright[at + e * n + i] = 0
        if is_missing(fans.missing[b], key, j):
            continue
        # The last beam of a sweep is cast now. With a negative pause, the sweep runs
        # from the last beam to the first.
        age = (n - 1 - i) * pause if pause > 0.0 else -i * pause
        error = 0.0
        if fans.a_noise[b] > 0.0:
            error = fans.a_noise[b] * symmetric(np.uint64(key), np.uint64(2 * j))
        ray = ray_of(world, sensors, row, b, i, j, age, error, fans.r_max[b])
        write_echoes(world, sensors, lidars, eye, ray, b, at + i, n, output)


@entry_kernel
def cast_lidars(
    world: World,
    sensors: Sensors,
    lidars: Lidars,
    chosen: Chosen,
    seed: np.uint64,
    tick: int,
    output: Output,
) -> None:
    """Take the readings of some lidars, one after the other.

    The rays of a sweep are cast from where the carrying body was at their times. It is taken
    to have moved at its present velocity during the sweep. Other bodies rest at their
    present poses.

    Parameters
    ----------
    world : World
        Arrays of the world.
    sensors : Sensors
        All range sensors.
    lidars : Lidars
        Optics of all range sensors, materials, and a workspace of this thread.
    chosen : Chosen
        Devices to read.
    seed : uint64
        Seed of the world.
    tick : int
        Step of the world.
    output : Output
        Output: readings of these devices. Other places stay unchanged.
    """
    fans, state = sensors.fans, world.state
    for n in range(chosen.devices.shape[0]):
        g = chosen.devices[n]
        row, kind, mask = fans.row[g], fans.kind[g], int(fans.mask[g])
        b0, b1 = fans.first[kind], fans.first[kind + 1]
        key = stream_key(seed, state.uid[row], fans.key[g], np.uint64(tick))
        far = lag = 0.0
        for b in range(b0, b1):
            beams = fans.beam_first[b + 1] - fans.beam_first[b]
            far = max(far, fans.r_max[b])
            lag = max(lag, abs(lidars.optics[b, PACE] * fans.step[b]) * beams)
        speed = abs(state.vel[row, 0]) + abs(state.vel[row, 1])
        count = bodies_near(
            world,
            lidars.near,
            row,
            mask,
            state.pose[row, 0],
            state.pose[row, 1],
            far + fans.offset[kind] + speed * lag,
        )
        for b in range(b0, b1):
            cast_bundle(
                world,
                sensors,
                lidars,
                Eye(mask, count, key),
                row,
                b,
                fans.beam_first[b] - fans.beam_first[b0],
                fans.out[g] + fans.readings[b] - fans.readings[b0],
                output,
            )


__all__ = ["Lidars", "cast_lidars"]
