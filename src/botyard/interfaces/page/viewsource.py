"""Encoding of the simulation's state for pages, as binary columns (`ViewSource`).

Each frame is encoded once for all viewers with the same view.
"""

from __future__ import annotations

import heapq
import itertools
import math
import secrets
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.api.revisions import Subject
from botyard.devices.devicereader import DeviceReader
from botyard.devices.electrics import Boards
from botyard.engine.bodyspec import robot_body
from botyard.engine.layout import ANGLE
from botyard.interfaces.page.floor import field_columns
from botyard.model.beams import Bundle
from botyard.model.colors import hex_of
from botyard.model.devices import Layer, find_device
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.wheelplaces import fixed_places, steered_places
from botyard.model.world import THING
from botyard.names import shown
from botyard.protocols.webgui import frames, pushes
from botyard.protocols.webgui.frames import Bit, Block, Column, Header
from botyard.protocols.webgui.kernels.units import write_units
from botyard.protocols.webgui.messages import View
from botyard.protocols.webgui.pushes import BodyInfo, Group, MapInfo, Model, Schema
from botyard.sim.simulation import Robot, Simulation

U4 = np.uint32
_STALLED, _MOTORS, _ESTOP, _HELD, _GHOST = (
    np.int8(b) for b in (Bit.STALLED, Bit.MOTORS, Bit.ESTOP, Bit.HELD, Bit.GHOST)
)
_CLIENT = int(Bit.CLIENT)
_IN_SCHEMA = (
    Subject.BODIES,
    Subject.OUTLINES,
    Subject.READINGS,
    Subject.MAP,
    Subject.PORTS,
)
"""Subjects whose change requires a new schema (description of robots and map)."""
OLD_MAPS: Final = 8
"""Number of replaced maps whose names are still answered, with the present map."""
RANGE_UNIT: Final = 0.001
"""Unit of ranges in frames, m, for sensors with a maximum range below 65 m.

Frames hold ranges as 16-bit integers, so sensors with a longer range get a coarser
unit.
"""


def model_shape(spec: RobotSpec, name: str | None = None) -> Model:
    """Return the description by which the page draws a robot model.

    Parameters
    ----------
    spec : RobotSpec
        The model.
    name : str, optional
        Name in the schema. By default the name of the model; two variants of one model
        need different names.

    Returns
    -------
    Model
        Outlines in the robot's frame, m; top speeds in m/s and rad/s.
    """
    return Model(
        name=name or spec.name,
        description=spec.description,
        color=hex_of(spec.color),
        parts=[list(part) for part in robot_body(spec, "").parts],
        drives=bool(spec.drive),
        omni=spec.kinematics.moves_sideways,
        lasers=[
            at[:2]
            for d in spec.equipment
            for k in [find_device(d.type)]
            if k.layer == "laser"
            for at in [k.mounting(d)]
        ],
        max_v=spec.limits.max_speed.x,
        max_w=spec.limits.max_speed.a,
        wheels=[*fixed_places(spec.kinematics), *steered_places(spec.kinematics)],
        wheel_radius=spec.kinematics.wheel_radius if spec.kinematics.steers else 0.0,
    )


@dataclass(slots=True)
class _Sensors:
    """Group of sensors with equal beams, with the places of their readings among all readings."""

    group: Group
    # Index of each sensor among all sensors of the fleet, shape (n,).
    devices: NDArray[np.int64]
    # Offset of the first reading of each sensor.
    first: NDArray[np.int64]
    # Row in frames of the robot that carries each sensor.
    robot: NDArray[np.uint32]
    # Buffer for the ranges in frames, which is used again for each frame: page faults
    # of new memory would take longer than the conversion.
    units: NDArray[np.uint16] | None = None
    # Threshold of returns (strengths of echoes): a greater return comes from a
    # reflector.
    plain: float = 1.0


class _Colors:
    """Numbers of the robots' colours: a robot keeps its number while others come and go."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []

    def keep(self, names: Container[str]) -> None:
        """Free the numbers of robots that are not in `names`."""
        for name in [name for name in self._numbers if name not in names]:
            heapq.heappush(self._free, self._numbers.pop(name))

    def of(self, name: str) -> int:
        """Return the number of a robot; a new robot gets the lowest free number."""
        number = self._numbers.get(name)
        if number is None:
            number = heapq.heappop(self._free) if self._free else len(self._numbers)
            self._numbers[name] = number
        return number


class Shown(Protocol):
    """Interface of a running simulation whose state is shown to pages."""

    @property
    def sim(self) -> Simulation:
        """Simulation whose state is shown."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether the simulation is paused."""
        ...

    @property
    def speed(self) -> float:
        """Requested speed: simulated time per wall time; 0 is as fast as possible."""
        ...

    @property
    def ratio(self) -> float:
        """Measured speed: simulated time per wall time."""
        ...

    @property
    def step_time(self) -> float:
        """Wall time that a step takes, s."""
        ...


class ViewSource:
    """Encoder of the schemas, maps and frames of a simulation for pages.

    Parameters
    ----------
    hub : Shown
        The running simulation.
    port_of : callable
        Returns the TCP port of a robot, 0 if it has none.
    numbers : iterator of int, optional
        Source of schema numbers, shared by several `ViewSource` of one page. The number
        in a frame tells the page which schema it needs.
    """

    def __init__(
        self,
        hub: Shown,
        port_of: Callable[[str], int] = lambda _: 0,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._hub = hub
        self._feed = hub.sim.core.feed
        self._port_of = port_of
        self.numbers = itertools.count(1) if numbers is None else numbers
        """Iterator of schema numbers; sources of one page share it."""
        self._flags = frames.PAST if getattr(hub, "is_past", False) else 0
        self._number = 0
        self._schema = b""
        self._known = -1
        self._rows: NDArray[np.int64] = np.zeros(0, np.int64)
        self._robots = 0
        # Rows in a frame of the robots that steer.
        self._steering: NDArray[np.uint32] = np.zeros(0, U4)
        self._origin = np.zeros(2)
        self._colors = _Colors()
        self._groups: list[_Sensors] = []
        self._driven: tuple[int, NDArray[np.uint8]] = (-1, np.zeros(0, np.uint8))
        self._frames: dict[View, bytes] = {}
        self._frame_number = 0
        self._map = -1
        self._map_name = ""
        self._old_map_names: deque[str] = deque(maxlen=OLD_MAPS)

    # -- schema and map

    def map_name(self) -> str:
        """Return the name of the present map in its URL; empty without a map.

        A page gets the map without a token, so a name that cannot be guessed protects
        it.
        """
        revision = self._feed.last(Subject.MAP)
        if revision != self._map:
            self._map, scene = revision, self._hub.sim.scene
            nothing = scene.floor is None and not (
                len(scene.segments) or len(scene.points) or scene.places or scene.areas
            )
            self._old_map_names.append(self._map_name)
            # 128 random bits cannot be guessed.
            self._map_name = "" if nothing else secrets.token_hex(16)

        return self._map_name

    def replace(self, other: ViewSource) -> None:
        """Accept the name of another source's map too: a page may still request it."""
        self._old_map_names.append(other.map_name())

    def is_map_name(self, name: str) -> bool:
        """Return whether a name belongs to the present map, or to one of the maps before it.

        While the map is edited, a page may request a map that a later edit has
        replaced.
        """
        return name != "" and (name == self.map_name() or name in self._old_map_names)

    def _map_info(self) -> MapInfo:
        name = self.map_name()
        scene = self._hub.sim.scene
        return MapInfo(
            url=f"map/{name}.bin" if name else "",
            name=shown(scene.name),
            source=shown(scene.source, 500),
            bounds=scene.bounds,
            view=scene.view,
        )

    def schema(self) -> tuple[int, bytes]:
        """Return the number of the current schema and its encoded message.

        Returns
        -------
        number : int
            Number that each frame of this schema has.
        message : bytes
            Encoded schema, which a page must get before such a frame.
        """
        revision = self._feed.last(*_IN_SCHEMA)
        if revision != self._known:
            self._rebuild()
            self._known = revision

        return self._number, self._schema

    def _rebuild(self) -> None:
        sim = self._hub.sim
        self._number = next(self.numbers)
        self._frames.clear()
        # Rows may have changed, so the column of driven robots is stale too.
        self._driven = (-1, self._driven[1])

        # Frames hold 32-bit floats; coordinates relative to the map's centre keep their
        # precision.
        center = sim.scene.center
        self._origin = np.array([center.x, center.y])
        models: dict[Hashable, tuple[int, Model]] = {}
        bodies = []
        self._colors.keep(sim.robots)
        plain: dict[
            int, tuple[bytes, Model]
            # Encoded shape and model of each spec, by its identity: hundreds of robots
            # may share a spec.
        ] = {}
        for robot in sim.robots.values():
            known = plain.get(id(robot.spec)) if robot.gripper is None else None
            if known is None:
                shape = model_shape(robot.spec)
                if robot.gripper is not None:
                    shape.parts = [list(part) for part in robot.gripper.parts]
                known = (
                    pushes.encoder.encode(shape),
                    shape,
                    # Models are identified by their whole encoded shape: another model
                    # of the same name may have other lasers.
                )
                if robot.gripper is None:
                    plain[id(robot.spec)] = known

            key, shape = known
            index, _ = models.setdefault(key, (len(models), shape))
            bodies.append(
                BodyInfo(
                    name=robot.name,
                    model=index,
                    robot=bool(robot.spec.drive),
                    port=self._port_of(robot.name),
                    kind=_kind_of_robot(sim, robot),
                    color=self._colors.of(robot.name),
                )
            )

        for name, box in zip(sim.core.box_names, sim.scene.boxes, strict=True):
            shape = Model(
                name=_kind_of(box),
                description="object of the map",
                color=hex_of(box.color),
                parts=[list(part) for part in box.outlines],
                drives=False,
                omni=False,
                lasers=[],
                max_v=0.0,
                max_w=0.0,
            )
            index, _ = models.setdefault(
                (shape.name, box.color, box.outlines), (len(models), shape)
            )
            bodies.append(BodyInfo(name=name, model=index, robot=False))

        self._robots = len(sim.robots)
        rows = sim.fleet.rows
        self._rows = np.array([rows[b.name] for b in bodies], np.int64)
        self._steering = np.array(
            [k for k, r in enumerate(sim.robots.values()) if r.spec.kinematics.steers],
            U4,
        )
        self._group_sensors()
        schema = Schema(
            number=self._number,
            map=self._map_info(),
            origin=(center.x, center.y),
            dt=sim.dt,
            models=[m for _, m in models.values()],
            bodies=bodies,
            robots=self._robots,
            groups=[g.group for g in self._groups],
        )
        self._schema = pushes.encoder.encode(schema)

    def _group_sensors(self) -> None:
        """Find the groups of sensors with equal beams."""
        sim = self._hub.sim
        keys, spans = sim.fleet.placed
        placed = {
            key: (device, span[0])
            for device, (key, span) in enumerate(zip(keys, spans, strict=True))
        }
        found: dict[
            tuple[Layer, tuple[Bundle, ...]], tuple[Group, list[tuple[int, int, int]]]
        ] = {}

        for row, robot in enumerate(sim.robots.values()):
            for reader in drawn_devices(robot):
                layer, bundles = reader.kind.layer, sim.fleet.bundles(reader.key)
                if layer is None or not bundles:
                    continue
                _, members = found.setdefault(
                    (layer, bundles), (_group(len(found), layer, bundles), [])
                )
                members.append((*placed[reader.key], row))

        self._groups = []
        for (_, bundles), (group, members) in found.items():
            table = np.array(members, np.int64)
            devices, first = table[:, 0].copy(), table[:, 1].copy()
            sensors = _Sensors(group, devices, first, table[:, 2].astype(U4))
            # A laser with intensities reports `intensity` for a white surface, and at
            # least twice that for a reflector, so the threshold lies between.
            sensors.plain = max(1.0, 1.5 * bundles[0].optics.intensity)
            self._groups.append(sensors)

    # -- frames

    def changed(self) -> None:
        """Drop the encoded frames after a change of state."""
        self._frame_number += 1
        self._frames.clear()

    @property
    def number(self) -> int:
        """Number that identifies the present frame."""
        return self._frame_number

    def frame(self, view: View) -> bytes:
        """Return the present state as a frame for a view.

        Parameters
        ----------
        view : View
            Selected robots and options. Equal views share one frame.

        Returns
        -------
        bytes
            Frame of `botyard.protocols.webgui.frames`, with the number of its schema. A
            page needs that schema first.
        """
        self.schema()
        # If frames have the readings of all robots or of none, the selection has no
        # effect. Views that differ only in the selection then share a frame.
        if view.readings != "selected" and view.selected:
            view = View(
                readings=view.readings, odometry=view.odometry, velocity=view.velocity
            )

        made = self._frames.get(view)
        if made is None:
            made = self._frames[view] = self._encode(view)
        return made

    def _encode(self, view: View) -> bytes:
        hub, sim = self._hub, self._hub.sim
        state = sim.snapshot.state
        rows, n = self._rows, self._robots

        # Fancy indexing makes a copy, which may be changed in place.
        pose = state.pose[rows]
        pose[:, :2] -= self._origin
        columns: list[Column] = [
            (Block.POSE, 0, len(rows), [pose.astype("<f4")]),
            (Block.STATE, 0, len(rows), [self._bits()]),
        ]
        if view.odometry:
            odom = sim.fleet.odometry_in_world
            odom[:, :2] -= self._origin
            columns.append((Block.ODOMETRY, 0, n, [odom.astype("<f4")]))

        if len(self._steering):
            angles = state.steer[rows[self._steering], ANGLE].astype("<f4")
            columns.append((Block.STEERING, 0, len(angles), [self._steering, angles]))
        if view.velocity:
            columns.append((Block.VELOCITY, 0, n, [state.vel[rows[:n]].astype("<f4")]))
        if view.readings != "none":
            columns += self._readings(view)
        columns += field_columns(
            hub, self._frame_number, always=bool(self._flags & frames.PAST)
        )
        flags = (
            self._flags
            | (frames.PAUSED if hub.is_paused else 0)
            | (0 if hub.speed else frames.FASTEST)
        )
        header = Header(
            self._number,
            flags,
            sim.time,
            sim.tick,
            self._frame_number,
            hub.ratio,
            hub.step_time * 1e3,
            hub.speed,
        )
        return frames.encode(header, columns)

    def _bits(self) -> NDArray[np.uint8]:
        sim = self._hub.sim
        state, rows = sim.snapshot.state, self._rows
        revision = self._feed.last(Subject.CLAIMS)
        # This Python loop over all robots is slow, so it runs only when a client
        # connects or disconnects.
        if self._driven[0] != revision:
            driven = np.zeros(len(rows), np.uint8)
            driven[: self._robots] = [
                _CLIENT if r.clients else 0 for r in sim.robots.values()
            ]
            self._driven = (revision, driven)

        # Each of these columns is 0 or 1, so sums and products set bits without
        # branches.
        bits = (
            state.stall * _STALLED
            + state.motors * _MOTORS
            + state.estop * _ESTOP
            + state.held * _HELD
        )
        bits += (state.mask == 0) * _GHOST
        bits[sim.core.engine.table(Boards).inhibited()] |= (
            # The bit also shows a pressed emergency stop button; `estop` above is the
            # state of the motors, which lasts longer.
            _ESTOP
        )
        result: NDArray[np.uint8] = self._driven[1] + bits[rows].view(np.uint8)
        return result

    def _readings(self, view: View) -> list[Column]:
        """Return the columns with the readings of subscribed sensors, by group.

        Ranges are in the units of the group (`kernels.units`). Lasers add a column
        with the indices of the beams that hit a reflector.
        """
        sim = self._hub.sim
        ranges, returns = sim.fleet.readings
        # Few maps have reflectors, so one check of all readings usually saves a check
        # for each sensor.
        has_bright = len(returns) > 0 and returns.max() > 1
        taken = sim.fleet.taken
        chosen: NDArray[np.bool_] | None = None
        if view.readings == "selected":
            wanted = set(view.selected)
            chosen = np.array([name in wanted for name in sim.robots], np.bool_)

        columns: list[Column] = []
        for sensors in self._groups:
            use = taken[sensors.devices]
            if chosen is not None:
                use &= chosen[sensors.robot]
            k = int(np.count_nonzero(use))
            if not k:
                continue
            group, everybody = sensors.group, k == len(use)
            first, robots = (
                (sensors.first, sensors.robot)
                if everybody
                else (sensors.first[use], sensors.robot[use])
            )
            if sensors.units is None:
                sensors.units = np.empty((len(use), group.count), np.uint16)
            write_units(ranges, first, 1.0 / group.unit, sensors.units)
            columns.append((Block.READINGS, group.id, k, [robots, sensors.units[:k]]))

            # Only lasers report reflectors, as a return above 1.
            if has_bright and group.kind == "laser":
                beams = first[:, None] + np.arange(group.count)
                bright = np.flatnonzero(returns[beams] > sensors.plain).astype(U4)
                if len(bright):
                    columns.append((Block.BRIGHT, group.id, len(bright), [bright]))

        return columns


def drawn_devices(robot: Robot) -> list[DeviceReader[Any]]:
    """Return the devices of a robot whose readings a layer of the page draws."""
    return [
        reader for reader in robot.devices.values() if reader.kind.layer is not None
    ]


def nearest_reading(robot: Robot) -> float | None:
    """Return the shortest range that a robot's subscribed sensors measure, m; None without one.

    Parameters
    ----------
    robot : Robot
        The robot.
    """
    least = [
        float(reader.ranges.min(initial=math.inf))
        for reader in drawn_devices(robot)
        if reader.is_read
    ]
    return min(least, default=None)


def _group(number: int, layer: Layer, bundles: tuple[Bundle, ...]) -> Group:
    r_max = max(b.r_max for b in bundles)
    # 16 bits hold 65.535 m in mm.
    unit = RANGE_UNIT if r_max < 65.0 else r_max / 65_000.0
    group = Group(
        id=number,
        kind=layer,
        # The readings of further echoes of a ray are not drawn.
        count=sum(b.n_readings // b.optics.echoes for b in bundles),
        range_max=r_max,
        unit=unit,
        poses=[],
    )
    if layer == "laser":
        group.poses, group.angle0, group.step = (
            [bundles[0].mount],
            bundles[0].angle0,
            bundles[0].step,
        )
    else:
        # The direction of a transducer is the middle of its beams.
        group.poses = [
            (b.mount.x, b.mount.y, b.mount.th + b.angle0 + b.step * (b.count - 1) / 2)
            for b in bundles
        ]

    return group


def _kind_of_robot(
    sim: Simulation, robot: Robot
) -> Literal["robot", "pedestrian", "obstacle", "thing"]:
    """Return the kind of a body other than a box of the map, as the page names it."""
    if not robot.spec.drive:
        return "thing"
    if robot.spec.name != THING:
        return "robot"
    program = sim.core.programs.by_robot.get(robot.name)
    return (
        "pedestrian" if program is not None and program.name == "walk" else "obstacle"
    )


def _kind_of(box: BoxObject) -> str:
    """Return the kind of an object of the map, as the page names it."""
    if box.parts:
        return "obstacle"
    # A laser's return is 1 for ordinary surfaces and greater for reflectors.
    return "reflector" if box.returns.laser > 1 else "box"
