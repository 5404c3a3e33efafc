"""Handles of AMBF's rigid bodies, with poses, wrenches, velocities and joints.

See ambf-messages.md §8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from botyard.clients.ambf.handles import Pose
from botyard.errors import PeerError
from botyard.protocols.ambf.messages import FORCE, POSITION, VELOCITY


class Body(Pose):
    """Handle through which a client reads and commands a rigid body of AMBF."""

    @property
    def _is_first_generation(self) -> bool:
        return self._kind == "Object"

    def set_active(self) -> None:
        """Start to send the command periodically, and request lists of children and joints.

        The simulator then adds these lists to the states (ambf-messages.md §5).
        """
        super().set_active()
        # States lack these lists unless a command requests them.
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
        # Only forces end with the watchdog; positions and velocities hold until the
        # next command.
        w = self._cmd.wrench
        for part in (w.force, w.torque):
            part.x = part.y = part.z = 0.0

    def get_mass(self) -> float:
        """Return the mass, kg; 0 for a kinematic body."""
        return float(self._state.mass)

    def get_inertia(self) -> Any:
        """Return the moments of inertia x, y, z, kg·m²."""
        return self._state.pInertia

    def get_children_names(self) -> list[str]:
        """Return the names of the bodies that the joints of this body move."""
        return list(self._state.children_names)

    def get_num_of_children(self) -> int:
        """Return the number of bodies that the joints of this body move."""
        return len(self._state.children_names)

    def get_joint_names(self) -> list[str]:
        """Return the names of all joints below this body."""
        return list(self._state.joint_names)

    def get_num_joints(self) -> int:
        """Return the number of joint positions in the state."""
        return len(self._state.joint_positions)

    def get_joint_idx_from_name(self, name: str) -> int | None:
        """Return the index of a joint by its name; None if no joint or several match.

        Parameters
        ----------
        name : str
            Name of the joint, or a part that no other joint has. A whole name has
            priority over parts of names.
        """
        names = self.get_joint_names()
        # A whole name has priority, because it may also be a part of longer names.
        found = [k for k, n in enumerate(names) if n == name] or [
            k for k, n in enumerate(names) if name in n
        ]
        return found[0] if len(found) == 1 else None

    def _index(self, joint: int | str) -> int:
        """Return the index of a joint.

        Parameters
        ----------
        joint : int or str
            Index, name, or a part of the name that no other joint has.

        Raises
        ------
        PeerError
            No joint matches, or several do.
        """
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
        """Return the position of a joint, rad or m.

        Parameters
        ----------
        joint_name_or_idx : int or str
            Index of the joint, its name, or a unique part of the name.

        Raises
        ------
        PeerError
            There is no such joint.
        """
        return float(self._state.joint_positions[self._index(joint_name_or_idx)])

    def get_all_joint_pos(self) -> list[float]:
        """Return the positions of all joints, rad or m."""
        return [float(v) for v in self._state.joint_positions]

    def get_joint_vel(self, joint_name_or_idx: int | str) -> float:
        """Return the velocity of a joint, rad/s or m/s.

        Parameters
        ----------
        joint_name_or_idx : int or str
            Index of the joint, its name, or a unique part of the name.

        Raises
        ------
        PeerError
            There is no such joint.
        AttributeError
            The first generation has no velocities in its states.
        """
        return float(self._state.joint_velocities[self._index(joint_name_or_idx)])

    def get_joint_effort(self, joint_name_or_idx: int | str) -> float:
        """Return the effort of a joint, N·m or N.

        Parameters
        ----------
        joint_name_or_idx : int or str
            Index of the joint, its name, or a unique part of the name.

        Raises
        ------
        PeerError
            There is no such joint.
        AttributeError
            The first generation has no efforts in its states.
        """
        return float(self._state.joint_efforts[self._index(joint_name_or_idx)])

    def get_linear_vel(self) -> Any:
        """Return the linear velocity with the components x, y, z, m/s."""
        return self._state.twist.linear

    def get_angular_vel(self) -> Any:
        """Return the angular velocity with the components x, y, z, rad/s."""
        return self._state.twist.angular

    def get_wrench(self) -> Any:
        """Return the net force, N, and the net torque, N·m, on the body."""
        return self._state.wrench

    def _force_mode(self) -> None:
        if self._is_first_generation:
            self._cmd.enable_position_controller = False
        else:
            self._cmd.cartesian_cmd_type = FORCE

        self._note_call()

    def set_force(self, fx: float, fy: float, fz: float) -> None:
        """Apply a force, N, in world axes.

        Parameters
        ----------
        fx, fy, fz : float
            Force, N. It ends `WRENCH_TIMEOUT_S` after the last call.
        """
        self._force_mode()
        f = self._cmd.wrench.force
        f.x, f.y, f.z = float(fx), float(fy), float(fz)

    def set_torque(self, nx: float, ny: float, nz: float) -> None:
        """Apply a torque, N·m.

        Parameters
        ----------
        nx, ny, nz : float
            Torque about the axes of the world, N·m. It ends `WRENCH_TIMEOUT_S` after
            the last call.
        """
        self._force_mode()
        t = self._cmd.wrench.torque
        t.x, t.y, t.z = float(nx), float(ny), float(nz)

    def set_wrench(self, wrench: Any) -> None:
        """Apply the wrench of an object with the attributes `force` and `torque`.

        Parameters
        ----------
        wrench : geometry_msgs/Wrench
            Force, N, and torque, N·m.
        """
        f, t = wrench.force, wrench.torque
        self.set_force(f.x, f.y, f.z)
        self.set_torque(t.x, t.y, t.z)

    def wrench_command(
        self, fx: float, fy: float, fz: float, nx: float, ny: float, nz: float
    ) -> None:
        """Apply a force, N, and a torque, N·m.

        Parameters
        ----------
        fx, fy, fz : float
            Force in world axes, N.
        nx, ny, nz : float
            Torque, N·m.
        """
        self.set_force(fx, fy, fz)
        self.set_torque(nx, ny, nz)

    def _velocity_mode(self) -> None:
        """Switch the body to velocity control.

        Raises
        ------
        PeerError
            The messages of the first generation have no velocities.
        """
        if self._is_first_generation:
            raise PeerError(
                f"{self._name}: Object messages, the oldest generation, have no velocity commands"
            )

        # Components that are not set keep their current velocity instead of stopping.
        if self._cmd.cartesian_cmd_type != VELOCITY:
            now, t = self._state.twist, self._cmd.twist
            for part, given in ((t.linear, now.linear), (t.angular, now.angular)):
                part.x, part.y, part.z = given.x, given.y, given.z

        # Set the type after the check above, which needs the former type.
        self._cmd.cartesian_cmd_type = VELOCITY
        self._note_call()

    def set_linear_vel(self, vx: float, vy: float, vz: float) -> None:
        """Move the body with a linear velocity, m/s, in world axes.

        Parameters
        ----------
        vx, vy, vz : float
            Velocity, m/s. It holds until a command of another kind.

        Raises
        ------
        PeerError
            The messages of the first generation have no velocities.
        """
        self._velocity_mode()
        v = self._cmd.twist.linear
        v.x, v.y, v.z = float(vx), float(vy), float(vz)

    def set_angular_vel(self, ax: float, ay: float, az: float) -> None:
        """Turn the body with an angular velocity, rad/s.

        Parameters
        ----------
        ax, ay, az : float
            Turn rates about the axes, rad/s.

        Raises
        ------
        PeerError
            The messages of the first generation have no velocities.
        """
        self._velocity_mode()
        v = self._cmd.twist.angular
        v.x, v.y, v.z = float(ax), float(ay), float(az)

    def set_twist(
        self, vx: float, vy: float, vz: float, ax: float, ay: float, az: float
    ) -> None:
        """Move the body with a linear velocity, m/s, and an angular velocity, rad/s.

        Parameters
        ----------
        vx, vy, vz : float
            Velocity in world axes, m/s.
        ax, ay, az : float
            Turn rates about the axes, rad/s.

        Raises
        ------
        PeerError
            The messages of the first generation have no velocities.
        """
        self.set_linear_vel(vx, vy, vz)
        self.set_angular_vel(ax, ay, az)

    def _joints_command(
        self, joints: Sequence[int], values: Sequence[float], kind: int
    ) -> None:
        """Set commands of several joints; the other joints keep their commands.

        Parameters
        ----------
        joints : sequence of int
            Indices of the joints.
        values : sequence of float
            Position (rad or m), velocity (rad/s or m/s) or effort (N·m or N) of each
            joint.
        kind : int
            `messages.POSITION`, `VELOCITY` or `FORCE`.
        """
        # Lists of the state may still be empty when the first command is set.
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

        # Create a new array, because the client's thread may be encoding the old array.
        self._cmd.joint_cmds = cmds
        if self._is_first_generation:
            self._cmd.position_controller_mask = kinds.astype(np.bool_)
        else:
            self._cmd.joint_cmds_types = kinds

        self._note_call()

    def set_joint_pos(self, joint: int | str, pos: float) -> None:
        """Move a joint to a position, rad or m.

        Parameters
        ----------
        joint : int or str
            Index of the joint, its name, or a unique part of the name.
        pos : float
            Position, rad, or m for a prismatic joint.

        Raises
        ------
        PeerError
            There is no such joint.
        """
        self._joints_command([self._index(joint)], [pos], POSITION)

    def set_joint_effort(self, joint: int | str, effort: float) -> None:
        """Drive a joint with an effort, N·m or N.

        Parameters
        ----------
        joint : int or str
            Index of the joint, its name, or a unique part of the name.
        effort : float
            Torque, N·m, or force, N, for a prismatic joint.

        Raises
        ------
        PeerError
            There is no such joint.
        """
        self._joints_command([self._index(joint)], [effort], FORCE)

    def set_joint_vel(self, joint: int | str, vel: float) -> None:
        """Move a joint with a velocity, rad/s or m/s.

        Parameters
        ----------
        joint : int or str
            Index of the joint, its name, or a unique part of the name.
        vel : float
            Velocity, rad/s, or m/s for a prismatic joint.

        Raises
        ------
        PeerError
            There is no such joint, or the messages of the first generation have no
            velocities.
        """
        if self._is_first_generation:
            raise PeerError(
                f"{self._name}: Object messages, the oldest generation, have no velocity commands"
            )

        self._joints_command([self._index(joint)], [vel], VELOCITY)

    def set_multiple_joint_pos(
        self, joints: Sequence[int | str], values: Sequence[float]
    ) -> None:
        """Move joints to positions, rad or m.

        Parameters
        ----------
        joints : sequence of int or str
            Joints by index or name.
        values : sequence of float
            Position of each.

        Raises
        ------
        PeerError
            There is no such joint.
        ValueError
            Joints and values differ in number.
        """
        self._joints_command([self._index(j) for j in joints], values, POSITION)

    def set_multiple_joint_effort(
        self, joints: Sequence[int | str], values: Sequence[float]
    ) -> None:
        """Drive joints with efforts, N·m or N.

        Parameters
        ----------
        joints : sequence of int or str
            Joints by index or name.
        values : sequence of float
            Effort of each.

        Raises
        ------
        PeerError
            There is no such joint.
        ValueError
            Joints and values differ in number.
        """
        self._joints_command([self._index(j) for j in joints], values, FORCE)

    def set_multiple_joint_vel(
        self, joints: Sequence[int | str], values: Sequence[float]
    ) -> None:
        """Move joints with velocities, rad/s or m/s.

        Parameters
        ----------
        joints : sequence of int or str
            Joints by index or name.
        values : sequence of float
            Velocity of each.

        Raises
        ------
        PeerError
            There is no such joint, or the messages of the first generation have no
            velocities.
        ValueError
            Joints and values differ in number.
        """
        for joint, value in zip(joints, values, strict=True):
            self.set_joint_vel(joint, value)


__all__ = ["Body"]
