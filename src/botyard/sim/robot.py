"""Robots of a simulation: state, sensors and devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from botyard.api.revisions import Subject
from botyard.devices.battery import Batteries
from botyard.devices.devicereader import DeviceReader, has_columns
from botyard.devices.electrics import Boards, Electrics
from botyard.devices.errormodels import attach_errors
from botyard.devices.gripper import Gripper
from botyard.devices.view import View
from botyard.engine import commands as cmd
from botyard.engine.tables import NOBODY, Row
from botyard.errors import WorldError
from botyard.geometry import OdomPose, Pose, Twist, WorldPose, compose
from botyard.model.devices import find_device, is_device, names_of
from botyard.model.kinematics import Axes
from botyard.model.obstacles import Visible
from botyard.model.readings import GripperState
from botyard.model.robot import RobotSpec
from botyard.model.robotstate import RobotState
from botyard.sim import parameters
from botyard.sim.commands import Commands
from botyard.sim.contacts import touching
from botyard.sim.core import Core, Member
from botyard.sim.journal import API, Claim, SetParameters, acting
from botyard.sim.readings import Laser, Sonar

if TYPE_CHECKING:
    from botyard.devices.gps import Fix


class BaseRobot(Member):
    """Robot without access to interfaces and to `Simulation`.

    See `botyard.sim.simulation.Robot`.
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "name": "a robot keeps its name; remove it and add another one",
        "spec": "a robot keeps its model; call Simulation.masses.set_dynamics "
        "for its mass, or remove it and add another one",
        "start": "it is the pose at which the robot was added; call "
        "command.set_pose(x, y, th) to move it",
        "truth": "call command.set_pose(x, y, th)",
        "pose": "call command.set_pose(x, y, th) to move it; truth is its true "
        "pose, odom its pose by odometry",
        "position": "call command.set_pose(x, y, th) to move it; truth is its true pose",
        "speed": "call command(v=…, w=…); velocity is the present velocity",
        "odom": "call command.reset_odometry()",
        "odom_in_world": "call command.set_pose(x, y, th) or command.reset_odometry()",
        "velocity": "call command(v=…, w=…)",
        "state": "call command(v=…, w=…), command.set_pose(x, y, th) and others",
        "stalled": "it is a result of the last step",
        "motors_on": "call command.enable(on)",
        "command": "call it: command(v=…, w=…)",
        "controller": "call set_controller(…)",
        "trip": "call go_to(x, y)",
        "is_ghost": "call ghost(on)",
        "devices": "a robot keeps its model; RobotSpec.fitted returns one with "
        "another device",
        "laser": "name the lasers when you add the robot: add_robot(model, lasers=[…])",
        "lasers": "name the lasers when you add the robot: add_robot(model, lasers=[…])",
        "simulation": "add a robot to the other simulation",
    }
    _elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("pose", "position", "x", "y", "th", "theta", "heading"),
            "truth is its pose in the map's frame, odom its pose by odometry, in "
            "the frame that starts where the robot started",
        ),
        "odometry": "odom is its pose by odometry",
        **dict.fromkeys(("speed", "v", "w"), "velocity has vx, vy and w"),
        **dict.fromkeys(
            ("scan", "ranges", "lidar"), "laser.read() is the scan of its first laser"
        ),
        **{
            name: f"call command.{name}(…)"
            for name in ("stop", "move", "turn_to", "turn_by", "enable", "set_pose")
        },
        **dict.fromkeys(
            ("drive", "set_velocity", "set_speed"), "call command(v=…, w=…)"
        ),
        "motors": "motors_on reports whether they are enabled, command.enable(on) "
        "changes it",
        "estop": "press_estop(pressed) presses or releases the button, "
        "motors_inhibited reports whether it is pressed",
    }
    command: Commands
    """Object through which user programs command the robot."""
    lasers: tuple[Laser, ...]
    """Lasers of the robot, in the order of its model."""

    def __init__(self, core: Core, name: str, spec: RobotSpec, start: Pose) -> None:
        super().__init__(core, name, spec, start)
        vars(self)["command"] = Commands(self, "api")
        engine = core.engine
        self.electrics: Electrics = Electrics.of(
            spec.battery,
            engine.table(Batteries),
            engine.table(Boards),
            engine.rows[name],
            name,
        )
        """Battery, digital and analog lines, joystick and emergency stop button."""
        self._claims: list[str] = []
        vars(self)["lasers"] = tuple(Laser(self, i) for i in range(len(spec.lasers)))
        self.sonar: Sonar | None = Sonar(self) if spec.sonar is not None else None
        """Sonar ring; None if the model has none."""
        self.gripper: Gripper | None = (
            None if spec.gripper is None else Gripper(engine, name, spec, core.devices)
        )
        """Gripper; None if the model has none."""
        self._devices: Mapping[str, DeviceReader[Any]] | None = None
        self._pulling: (
            list[tuple[DeviceReader[Any], Callable[[Any, Any], Mapping[int, int]]]]
            | None
        ) = None
        """Devices that set digital inputs to 0, with functions that return masks of
        these inputs.
        """
        # Devices without data in the engine are computed on demand.
        if spec.devices and any(map(has_columns, spec.devices)):
            own = [reader for reader in self.devices.values() if not reader.kind.part]
            for reader in own:
                reader._install(engine.rows[name])
            attach_errors(
                own, len(spec.lasers), spec.sonar is not None, engine, core.devices
            )

    @property
    def devices(self) -> Mapping[str, DeviceReader[Any]]:
        """All devices by name of their kind.

        From the second device of a kind on, ``_2`` … is appended.
        """
        if self._devices is None:
            self._devices = MappingProxyType(self._make_devices())
        return self._devices

    def _make_devices(self) -> dict[str, DeviceReader[Any]]:
        core, made = self._core, {}
        equipment = self.spec.equipment
        parts: dict[str, list[Any]] = {}
        for name, spec in zip(names_of(equipment), equipment, strict=True):
            kind = find_device(spec.type)
            view = View(
                core.engine,
                self.name,
                self.spec,
                name,
                kind.mounting(spec),
                errs=core.sensor_noise,
                colors=lambda: core.colors,
                ranging=core.devices,
            )
            if kind.part:
                if spec.type not in parts:
                    found = attrgetter(kind.part)(self)
                    # Lasers are several objects of one kind, taken in order.
                    parts[spec.type] = [*found] if isinstance(found, tuple) else [found]

                view.part_of_robot = parts[spec.type].pop(0)
                # Parts that measure have their own key among range devices.
                view.key = getattr(view.part_of_robot, "_key", view.key)
                view.memory = (
                    view.part_of_robot if isinstance(view.part_of_robot, Row) else None
                )

            made[name] = DeviceReader[Any](spec, view)

        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Return a device by its name, or None.

            ``robot.fiducial_finder`` is ``robot.devices.get("fiducial_finder")``.
            """
            # Python probes private names, for example for copying; they are never
            # devices.
            if name.startswith("_") or not is_device(name):
                super().__getattr__(name)
            return self.devices.get(name)

    def _leave(self) -> None:
        """Mark the handle as removed: it raises `UnknownNameError` from now on.

        It also raises the error after another robot got the same name.
        """
        self._claims.clear()
        # Another robot may get the name later.
        self._core.parameters.pop(self.name, None)
        for laser in self.lasers:
            self._core.configured.pop((self.name, laser.index), None)
        self._remove()
        for reader in (self._devices or {}).values():
            reader._leave()

    def _restored(self, start: Pose, teleports: int, claims: Sequence[str]) -> None:
        """Reset the robot after its world was restored from a saved state.

        Its lasers get the rays of the model.
        """
        self._is_left_off = False
        vars(self)["start"] = start
        self._teleports = teleports
        self._claims[:] = claims
        for reader in (self._devices or {}).values():
            reader._restored()
        # Most worlds have no lasers configured by clients.
        if self._core.configured:
            for laser in self.lasers:
                if (self.name, laser.index) in self._core.configured:
                    laser.restore()

    def __repr__(self) -> str:
        if self._is_removed:
            return f"<Robot {self.name}: {self.spec.name}, removed>"
        x, y, th = self.truth
        return (
            f"<Robot {self.name}: {self.spec.name} at x={x:z.3f} m, "
            f"y={y:z.3f} m, th={math.degrees(th):z.1f}°>"
        )

    @property
    def laser(self) -> Laser:
        """The first laser.

        Raises
        ------
        WorldError
            The robot has no laser.
        """
        if not self.lasers:
            raise WorldError(f"robot {self.name} ({self.spec.name}) has no laser")
        return self.lasers[0]

    @property
    def state(self) -> RobotState:
        """All values of the robot's motion after the last step."""
        snapshot = self._core.snapshot
        s, row = snapshot.state, snapshot.rows[self.name]
        return RobotState(
            pose_world=Pose(*s.pose[row].tolist()),
            pose_odom=Pose(*s.odom[row].tolist()),
            twist=Twist(*s.vel[row].tolist()),
            motors=bool(s.motors[row]),
            stalled=bool(s.stall[row]),
            estop=bool(s.estop[row]),
            limits=Axes(*s.max_vel[row].tolist()),
            accel=Axes(*s.accel[row].tolist()),
            decel=Axes(*s.decel[row].tolist()),
            odometry_error=Axes(*s.err[row].tolist()),
            path=(float(s.path[row, 0]), float(s.path[row, 1])),
        )

    @property
    def truth(self) -> WorldPose:
        """True pose in the world frame, unknown to a real robot: m, m, rad."""
        snapshot = self._core.snapshot
        return WorldPose(*snapshot.state.pose[snapshot.rows[self.name]].tolist())

    @property
    def odom(self) -> OdomPose:
        """Pose by odometry in the odometry frame: m, m, rad.

        It starts at 0, 0, 0 where the robot was added or odometry was reset, and
        drifts. Do not compare it with `truth`, which is in the world frame. Compare
        `odom_in_world` with `truth` instead.
        """
        snapshot = self._core.snapshot
        return OdomPose(*snapshot.state.odom[snapshot.rows[self.name]].tolist())

    @property
    def velocity(self) -> Twist:
        """Velocity in the frame of the robot: m/s forward, m/s to the left, rad/s."""
        return self.state.twist

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of everything that the robot touches now: robots, boxes, ``a wall``.

        The names are its obstacle, the robots that it stops, and bodies it presses on, if
        one of the two has mass.
        """
        return touching(self._core, self.name)

    @property
    def stalled(self) -> bool:
        """Whether an obstacle blocks the robot."""
        snapshot = self._core.snapshot
        return bool(snapshot.state.stall[snapshot.rows[self.name]])

    @property
    def motors_on(self) -> bool:
        """Whether the motors are enabled."""
        snapshot = self._core.snapshot
        return bool(snapshot.state.motors[snapshot.rows[self.name]])

    @property
    def gps(self) -> Fix | None:
        """GPS reading; None without a georeferenced map."""
        fix: Fix | None = self.devices["gps"].read()
        return fix

    @property
    def gripper_state(self) -> GripperState | None:
        """Switches of the gripper; None for a robot without one."""
        return None if self.gripper is None else self.gripper.state()

    @property
    def digital_inputs(self) -> bytes:
        """Bytes of digital inputs; an idle input is 1.

        Devices may pull bits down (`PioneerFields.inputs`).
        """
        # Devices pull lines down on a copy: the board keeps its own state.
        inputs = bytearray(self.electrics.inputs)
        if self._pulling is None:
            shown = [(reader, reader.kind.pioneer) for reader in self.devices.values()]
            self._pulling = [
                (reader, p.inputs)
                for reader, p in shown
                if p is not None and p.inputs is not None
            ]

        for reader, masks in self._pulling:
            for byte, mask in (reader.shown("pioneer.inputs", masks) or {}).items():
                # A kind of another package may name any byte.
                if byte in range(len(inputs)):
                    inputs[byte] &= ~mask & 0xFF

        return bytes(inputs)

    def set_parameters(self, **values: Any) -> None:
        """Set limits and errors of the robot and its sensors (domain randomisation).

        Resets do not change these parameters. They are a part of the saved state, and the
        journal records each change.

        Parameters
        ----------
        **values
            ``max_speed``, ``top_speed``, ``accel``, ``decel``, ``odometry_error_low``,
            ``odometry_error_high`` and ``command_scale``: three numbers, or one for all axes;
            ``command_latency``, ``command_jitter``, ``command_rate``, ``wheel_ratio``; for all
            lasers and the sonar ring ``range_min``, ``range_max``, ``range_noise``,
            ``bearing_noise``, ``range_missing``, ``range_latency``, ``range_jitter``,
            ``range_rate``. Units are the units of `Worlds.param`. For one sensor:
            ``**{"range_noise laser_2": 0.05}``.

        Raises
        ------
        ArgumentError
            There is no such parameter, or it is out of range; in this case, nothing is
            set.
        """
        self._core.check_thread()
        # Check them together with the present values, because limits may depend on each
        # other.
        found = parameters.spread(self.spec, values)
        parameters.check(
            self.spec, {**self._core.parameters.get(self.name, {}), **found}
        )
        self._core.note(None, SetParameters, self.name, found)
        parameters.apply(self._core, self, found)

    def ghost(self, on: bool = True, source: str = API) -> None:
        """Make the robot a ghost (invisible, without collisions) or normal again.

        The change takes effect at the next step.

        Parameters
        ----------
        on : bool
            Whether it becomes a ghost. False gives it the visibility of its model back.
        source : str
            Source of the command, in the order of commands and in the journal.
        """
        self._core.accept_command(
            self.name,
            cmd.SetVisible(Visible.NONE if on else self.spec.returns.mask),
            source,
        )

    @property
    def is_ghost(self) -> bool:
        """Whether the robot is a ghost by command.

        A carried body is not a ghost: it is a part of its carrier.
        """
        snapshot = self._core.snapshot
        # A robot that is invisible by its model is not a ghost.
        own = self.spec.returns.mask
        row = snapshot.rows[self.name]
        return (
            bool(own)
            and not snapshot.state.mask[row]
            and bool(snapshot.state.carrier[row] == NOBODY)
        )

    @property
    def motors_inhibited(self) -> str:
        """Reason why the motors cannot be enabled; empty if they can.

        Two reasons are "the emergency stop button is pressed" and "the battery is empty".
        """
        return self.electrics.inhibited

    @property
    def is_kept_off(self) -> bool:
        """Whether the motors are off, or will be, and stay off until they are enabled.

        The value is False if only the end of a client's session left the motors off:
        the next source may then enable them (`take_over`).
        """
        if self.motors_on or self._is_left_off:
            return False
        # A queued command may enable the motors in the next step.
        waiting = (
            command
            for name, _, _, command in self._core.engine.queued()
            if name == self.name
        )
        return not any(
            isinstance(command, cmd.EnableMotors) and command.on for command in waiting
        )

    def take_over(self, source: str = API) -> None:
        """Enable the motors if only the end of a client's session left them off."""
        if self._is_left_off and not self.motors_on:
            self._core.accept_command(self.name, cmd.EnableMotors(True), source)

    def press_estop(self, pressed: bool = True, source: str = API) -> None:
        """Press or release the emergency stop button.

        The robot stops with the highest deceleration. While the button is pressed the
        motors are off for every source of commands. After its release they stay off
        until they are enabled (`command.enable`).

        Parameters
        ----------
        pressed : bool
            True presses the button, False releases it.
        source : str
            Source of the command, in the order of commands and in the journal.
        """
        self._is_left_off = False
        # The engine checks the button in each step, so it misses a shorter press. A
        # queued command to enable the motors must not outlive it either.
        if not pressed and self.electrics.estop_pressed and not self.is_kept_off:
            self._core.accept_command(self.name, cmd.EnableMotors(False), source)
            if self.motors_on:
                self._core.accept_command(self.name, cmd.EmergencyStop(), source)
        with acting(source):
            self.electrics.estop_pressed = pressed

    def describe(self) -> list[str]:
        """Return the whole state as lines of text (SIM-006)."""
        st = self.state
        (x, y, th), (ox, oy, oth), v = st.pose_world, st.pose_odom, st.twist
        # A pressed button remains after the stop has ended.
        stop = st.estop or self.electrics.estop_pressed
        flags = [
            name
            for name, on in (
                ("motors", st.motors),
                ("stalled", st.stalled),
                ("emergency stop", stop),
            )
            if on
        ]
        lines = [
            f"model {self.spec.name}, time {self._core.time:.3f} s, clients: "
            f"{', '.join(self.clients) or 'none'}",
            f"true pose x={x:z.3f} m y={y:z.3f} m th={math.degrees(th):z.2f}°",
            f"odometry x={ox:z.3f} m y={oy:z.3f} m th={math.degrees(oth):z.2f}°",
            f"velocity {v.vx:z.3f} m/s, {v.vy:z.3f} m/s left, "
            f"{math.degrees(v.w):z.2f}°/s; on: {', '.join(flags) or 'nothing'}",
            f"limits {st.limits.x:g} m/s, {math.degrees(st.limits.a):.0f}°/s; "
            f"accel {st.accel.x:g}, decel {st.decel.x:g} m/s²",
            f"battery {self.electrics.volts:.2f} V, {self.electrics.charge:.0f} "
            f"%, {self.electrics.battery.charge_state.name.lower()}",
        ]
        read = [f"laser {i}" for i, laser in enumerate(self.lasers) if laser.is_read]
        read += ["sonar"] if self.sonar is not None and self.sonar.is_read else []
        read += [
            name for name, d in self.devices.items() if d.is_read and not d.kind.part
        ]
        lines.append(f"sensors in use: {', '.join(read) or 'none'}")
        if self.gripper is not None:
            lines.append(f"gripper holds {self.gripper.holding or 'nothing'}")
        return lines

    @property
    def clients(self) -> tuple[str, ...]:
        """Sources that command the robot now, for example ``pioneer``."""
        return tuple(self._claims)

    def claim(self, source: str) -> None:
        """Register `source` as commanding the robot; its controller pauses.

        Parameters
        ----------
        source : str
            Session that commands the robot, for example ``pioneer``. A second claim of
            the same source changes nothing.
        """
        if source not in self._claims:
            self._core.note(source, Claim, self.name, True)
            self._claims.append(source)
            self._core.feed.record_change(Subject.CLAIMS)

    def release(self, source: str) -> None:
        """Unregister `source` as commanding the robot; nothing else changes."""
        if source in self._claims:
            self._core.note(source, Claim, self.name, False)
            self._claims.remove(source)
            self._core.feed.record_change(Subject.CLAIMS)

    @property
    def odom_in_world(self) -> WorldPose:
        """Pose by odometry in the world frame.

        It equals the true pose at first, then drifts (dead reckoning).
        """
        snapshot = self._core.snapshot
        row = snapshot.rows[self.name]
        return WorldPose(
            *compose(Pose(*snapshot.state.odom_frame[row].tolist()), self.odom)
        )


R = TypeVar("R", bound=BaseRobot)
