"""Handles of the kinds of AMBF objects: bodies, sensors, actuators, vehicles, the world.

See ambf-messages.md §8.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from botyard.clients.ambf.handles import Handle, Pose
from botyard.errors import PeerError
from botyard.protocols.ambf.messages import FORCE, POSITION, VELOCITY


class Body(Pose):
    """Handle of a rigid body of AMBF."""

    @property
    def _is_first_generation(self) -> bool:
        return self._kind == "Object"

    def set_active(self) -> None:
        """Send commands, and request all lists in the states (§5)."""
        super().set_active()
        # The simulator leaves these lists out of states unless a command requests them.
        for flag in (
            "publish_children_names",
            "publish_joint_names",
            "publish_joint_positions",
        ):
            setattr(self._cmd, flag, True)

    def _position_mode(self) -> None:
        if self._is_first_generation:
            self._cmd.enable_position_controller = True
        else:
            self._cmd.cartesian_cmd_type = POSITION

    def _is_positioned(self) -> bool:
        return (
            bool(self._cmd.enable_position_controller)
            if self._is_first_generation
            else self._cmd.cartesian_cmd_type == POSITION
        )

    def _clear(self) -> None:
        w = self._cmd.wrench
        for part in (w.force, w.torque):
            part.x = part.y = part.z = 0.0

    # read

    def get_mass(self) -> float:
        """Return the mass, kg; 0 for a kinematic body."""
        return float(self._state.mass)

    def get_inertia(self) -> Any:
        """Return the moments of inertia x, y, z, kg·m²."""
        return self._state.pInertia

    def get_children_names(self) -> list[str]:
        """Return the names of the bodies that its joints move."""
        return list(self._state.children_names)

    def get_num_of_children(self) -> int:
        """Return the number of children."""
        return len(self._state.children_names)

    def get_joint_names(self) -> list[str]:
        """Return the names of all joints below it."""
        return list(self._state.joint_names)

    def get_num_joints(self) -> int:
        """Return the number of joint positions in the state."""
        return len(self._state.joint_positions)

    def get_joint_idx_from_name(self, name: str) -> int | None:
        """Return the index of a joint by its name or a unique part of it, or None."""
        names = self.get_joint_names()
        found = [k for k, n in enumerate(names) if n == name] or [
            k for k, n in enumerate(names) if name in n
        ]
        return found[0] if len(found) == 1 else None

    def _index(self, joint: int | str) -> int:
        index = (
            self.get_joint_idx_from_name(joint)
            if isinstance(joint, str)
            else int(joint)
        )
        if index is None or not 0 <= index < max(
            self.get_num_joints(), len(self._state.joint_names)
        ):
            raise PeerError(
                f"{self._name}: expected one of the joints "
                f"{', '.join(self.get_joint_names())}, found {joint!r}"
            )

        return index

    def get_joint_pos(self, joint_name_or_idx: int | str) -> float:
        """Return the position of a joint, rad or m."""
        return float(self._state.joint_positions[self._index(joint_name_or_idx)])

    def get_all_joint_pos(self) -> list[float]:
        """Return the positions of all joints."""
        return [float(v) for v in self._state.joint_positions]

    def get_joint_vel(self, joint_name_or_idx: int | str) -> float:
        """Return the velocity of a joint, rad/s or m/s."""
        return float(self._state.joint_velocities[self._index(joint_name_or_idx)])

    def get_joint_effort(self, joint_name_or_idx: int | str) -> float:
        """Return the effort of a joint, N·m or N."""
        return float(self._state.joint_efforts[self._index(joint_name_or_idx)])

    def get_linear_vel(self) -> Any:
        """Return the velocity, m/s, with x, y, z."""
        return self._state.twist.linear

    def get_angular_vel(self) -> Any:
        """Return the turn rates, rad/s, with x, y, z."""
        return self._state.twist.angular

    def get_wrench(self) -> Any:
        """Return the net force, N, and torque, N·m."""
        return self._state.wrench

    # write

    def _force_mode(self) -> None:
        if self._is_first_generation:
            self._cmd.enable_position_controller = False
        else:
            self._cmd.cartesian_cmd_type = FORCE

        self._note_call()

    def set_force(self, fx: float, fy: float, fz: float) -> None:
        """Apply a force, N, in world axes."""
        self._force_mode()
        f = self._cmd.wrench.force
        f.x, f.y, f.z = float(fx), float(fy), float(fz)

    def set_torque(self, nx: float, ny: float, nz: float) -> None:
        """Apply a torque, N·m."""
        self._force_mode()
        t = self._cmd.wrench.torque
        t.x, t.y, t.z = float(nx), float(ny), float(nz)

    def set_wrench(self, wrench: Any) -> None:
        """Apply the force and torque of an object with these attributes."""
        f, t = wrench.force, wrench.torque
        self.set_force(f.x, f.y, f.z)
        self.set_torque(t.x, t.y, t.z)

    def wrench_command(
        self, fx: float, fy: float, fz: float, nx: float, ny: float, nz: float
    ) -> None:
        """Apply a force, N, and a torque, N·m."""
        self.set_force(fx, fy, fz)
        self.set_torque(nx, ny, nz)

    def _velocity_mode(self) -> None:
        if self._is_first_generation:
            raise PeerError(
                f"{self._name}: Object messages, the oldest generation, have no velocity commands"
            )

        # Components that are not set keep their current velocity instead of stopping.
        if self._cmd.cartesian_cmd_type != VELOCITY:
            now, t = self._state.twist, self._cmd.twist
            for part, given in ((t.linear, now.linear), (t.angular, now.angular)):
                part.x, part.y, part.z = given.x, given.y, given.z

        self._cmd.cartesian_cmd_type = VELOCITY
        self._note_call()

    def set_linear_vel(self, vx: float, vy: float, vz: float) -> None:
        """Move with a velocity, m/s, in world axes."""
        self._velocity_mode()
        v = self._cmd.twist.linear
        v.x, v.y, v.z = float(vx), float(vy), float(vz)

    def set_angular_vel(self, ax: float, ay: float, az: float) -> None:
        """Turn with a rate, rad/s."""
        self._velocity_mode()
        v = self._cmd.twist.angular
        v.x, v.y, v.z = float(ax), float(ay), float(az)

    def set_twist(
        self, vx: float, vy: float, vz: float, ax: float, ay: float, az: float
    ) -> None:
        """Move with a velocity, m/s, and a turn rate, rad/s."""
        self.set_linear_vel(vx, vy, vz)
        self.set_angular_vel(ax, ay, az)

    def _joints_command(
        self, joints: Sequence[int], values: Sequence[float], kind: int
    ) -> None:
        n = max(
            self.get_num_joints(),
            len(self._state.joint_names),
            max(joints, default=-1) + 1,
        )
        cmds, kinds = np.zeros(n, np.float32), np.zeros(n, np.int8)
        old, old_kinds = (
            self._cmd.joint_cmds,
            self._cmd.position_controller_mask
            if self._is_first_generation
            else self._cmd.joint_cmds_types,
        )
        # The command covers all joints; joints without a new value keep their command.
        cmds[: len(old)] = old[:n]
        kinds[: len(old_kinds)] = old_kinds[:n]
        for joint, value in zip(joints, values, strict=True):
            cmds[joint], kinds[joint] = value, kind
        self._cmd.joint_cmds = cmds
        if self._is_first_generation:
            self._cmd.position_controller_mask = kinds.astype(np.bool_)
        else:
            self._cmd.joint_cmds_types = kinds

        self._note_call()

    def set_joint_pos(self, joint: int | str, pos: float) -> None:
        """Move a joint to a position, rad or m."""
        self._joints_command([self._index(joint)], [pos], POSITION)

    def set_joint_effort(self, joint: int | str, effort: float) -> None:
        """Drive a joint with an effort, N·m or N."""
        self._joints_command([self._index(joint)], [effort], FORCE)

    def set_joint_vel(self, joint: int | str, vel: float) -> None:
        """Move a joint with a velocity, rad/s or m/s."""
        if self._is_first_generation:
            raise PeerError(
                f"{self._name}: Object messages, the oldest generation, have no velocity commands"
            )

        self._joints_command([self._index(joint)], [vel], VELOCITY)

    def set_multiple_joint_pos(
        self, joints: Sequence[int | str], values: Sequence[float]
    ) -> None:
        """Move joints to positions, rad or m."""
        self._joints_command([self._index(j) for j in joints], values, POSITION)

    def set_multiple_joint_effort(
        self, joints: Sequence[int | str], values: Sequence[float]
    ) -> None:
        """Drive joints with efforts, N·m or N."""
        self._joints_command([self._index(j) for j in joints], values, FORCE)

    def set_multiple_joint_vel(
        self, joints: Sequence[int | str], values: Sequence[float]
    ) -> None:
        """Move joints with velocities, rad/s or m/s."""
        for joint, value in zip(joints, values, strict=True):
            self.set_joint_vel(joint, value)


class Sensor(Handle):
    """Handle of a sensor of AMBF that casts rays."""

    def get_count(self) -> int:
        """Return the number of rays."""
        return int(self._state.count)

    def is_triggered(self, idx: int) -> bool:
        """Return whether a ray hits an object."""
        return bool(self._state.triggered[idx])

    def get_range(self, idx: int = 0) -> float:
        """Return the length of the rays, m."""
        return float(self._state.range[min(idx, len(self._state.range) - 1)])

    def get_measurement(self, idx: int) -> float:
        """Return 1 − distance/range of a ray."""
        return float(self._state.measurement[idx])

    def get_all_measurements(self) -> list[float]:
        """Return 1 − distance/range of all rays."""
        return [float(v) for v in self._state.measurement]

    def get_sensed_object(self, idx: int) -> str:
        """Return the name of the object that a ray hits; empty without a hit."""
        return str(self._state.sensed_objects[idx].data)

    def get_type(self) -> str:
        """Return ``PROXIMITY`` or ``RESISTANCE``."""
        return str(self._state.type.data)


class Actuator(Handle):
    """Handle of an actuator of AMBF, which can grasp bodies."""

    def actuate(self, body_name: str) -> None:
        """Grasp a body by its name."""
        self._cmd.actuate = True
        self._cmd.body_name.data = body_name
        self._note_call()

    def actuate_from_sensor_data(self, identifier: str) -> None:
        """Grasp the body that a sensor detects (only in the newest generation)."""
        self._cmd.actuate = True
        self._cmd.use_sensor_data = True
        self._cmd.sensor_identifier.data = identifier
        self._note_call()

    def deactuate(self) -> None:
        """Release the body."""
        self._cmd.actuate = False
        self._note_call()

    def is_actuated(self) -> bool:
        """Return whether it holds a body."""
        return bool(self._state.actuated)


class Vehicle(Handle):
    """Handle of a vehicle of AMBF, with powered and steered wheels."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._powered: list[int] | None = None
        self._steered: list[int] | None = None

    def get_wheel_count(self) -> int:
        """Return the number of wheels."""
        return int(self._state.wheel_count)

    def _set(self, field: str, indices: Sequence[int], value: float) -> None:
        values = np.zeros(self.get_wheel_count(), np.float32)
        old = getattr(self._cmd, field)
        # Wheels without a new value keep theirs.
        values[: len(old)] = old[: len(values)]
        for k in indices:
            values[k] = value
        setattr(self._cmd, field, values)
        self._note_call()

    def set_wheel_power(self, idx: int, value: float) -> None:
        """Set the power of one wheel."""
        self._set("wheel_power", [idx], value)

    def set_wheel_brake(self, idx: int, value: float) -> None:
        """Set the brake of one wheel."""
        self._set("wheel_brake", [idx], value)

    def set_wheel_steering(self, idx: int, value: float) -> None:
        """Set the steering angle of one wheel, rad."""
        self._set("wheel_steering", [idx], value)

    def set_powered_wheel_indices(self, indices: Sequence[int]) -> None:
        """Set the wheels that `set_vehicle_power` drives."""
        self._powered = list(indices)

    def set_steered_wheel_indices(self, indices: Sequence[int]) -> None:
        """Set the wheels that `set_vehicle_steering` turns."""
        self._steered = list(indices)

    def set_vehicle_power(self, value: float) -> None:
        """Set the power of all driven wheels."""
        self._set("wheel_power", self._all(self._powered), value)

    def set_vehicle_steering(self, value: float) -> None:
        """Set the angle of all steered wheels, rad."""
        self._set("wheel_steering", self._all(self._steered), value)

    def set_vehicle_brake(self, value: float) -> None:
        """Set the brake of all wheels."""
        self._set("wheel_brake", self._all(None), value)

    def _all(self, chosen: list[int] | None) -> list[int]:
        return list(range(self.get_wheel_count())) if chosen is None else chosen


class World(Handle):
    """The world; only `update` and the resets send messages."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._done = threading.Event()
        self.is_throttled = False
        """Whether time passes only by `update`."""

    def enable_throttling(self, check: bool) -> None:
        """Switch between lockstep, with time steps by `update`, and free running.

        It takes effect with the next `update`.
        """
        self._cmd.enable_step_throttling = bool(check)

    def set_num_step_skips(self, num: int) -> None:
        """Set the number of steps of each `update`, 1 to 100."""
        if not 1 <= num <= 100:
            raise PeerError(f"n_skip_steps: expected 1 to 100 steps, found {num}")
        self._cmd.n_skip_steps = int(num)

    def update(self) -> None:
        """Toggle the step clock: the simulator makes the set number of steps.

        Commands with an expired watchdog end before the steps.
        """
        self.is_throttled = bool(self._cmd.enable_step_throttling)
        self._client.expire()
        self._cmd.step_clock = not self._cmd.step_clock
        self.send()

    def update_and_wait(self, timeout: float = 5.0) -> None:
        """Call `update`, and wait until the steps finish and all states arrive.

        It waits at most `timeout`, s. The original client offers only polling.

        Raises
        ------
        PeerError
            The steps did not finish in time.
        """
        # Compare step numbers, because an older state can still arrive after the
        # update.
        want = self.get_sim_step() + self._cmd.n_skip_steps
        self._done.clear()
        # Clear before the update: a fast answer must not be lost.
        self.update()
        end = time.monotonic() + timeout
        while self.get_sim_step() < want:
            if not self._done.wait(max(0.0, end - time.monotonic())):
                raise PeerError(
                    f"expected step {want} within {timeout:g} s, found step {self.get_sim_step()}"
                )

            self._done.clear()

    def on_state(self, state: Any) -> None:
        """Store a received state, and wake `update_and_wait`."""
        super().on_state(state)
        self._done.set()

    def reset(self) -> None:
        """Reset the whole world."""
        self._client.send_empty(f"{self.ros_name}/Command/Reset")

    def reset_bodies(self) -> None:
        """Reset the bodies with mass to their initial poses."""
        self._client.send_empty(f"{self.ros_name}/Command/Reset/Bodies")


KINDS: Final[dict[str, type[Handle]]] = {
    "Object": Body,
    "RigidBody": Body,
    "SoftBody": Body,
    "Sensor": Sensor,
    "Actuator": Actuator,
    "Vehicle": Vehicle,
    "Camera": Pose,
    "Light": Pose,
    "World": World,
}


__all__ = ["KINDS", "Actuator", "Body", "Sensor", "Vehicle", "World"]
