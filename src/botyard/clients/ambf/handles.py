"""Handles of AMBF objects: the last state, and the command that is sent periodically.

See ambf-messages.md §8.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

from botyard.geometry import yaw_of_quaternion
from botyard.numerics.elementary import asin, atan2, cos, cosine_sine, sin
from botyard.protocols.ambf.link import LinkTopic
from botyard.protocols.ambf.messages import POSITION

WRENCH_TIMEOUT_S: Final = 0.1
"""Client-side watchdog: a wrench ends this long after the last call, s.

It is wall time, or simulated time while the client steps the world.
"""
TIME_TOLERANCE_S: Final = 1e-4
"""Tolerance of simulated times in states, s; their mantissa has only 24 bits."""


class Sender(Protocol):
    """Methods of the client that handles of objects use."""

    generation: str

    @property
    def stepped_time(self) -> float | None:
        """Simulated time, s, while this client steps the world.

        It is None while the simulator advances time itself.
        """
        ...

    def expire(self) -> None:
        """End the command of each object whose watchdog has expired."""
        ...

    def blank(self, type_name: str) -> Any:
        """Return a message of a type with all fields zero or empty."""
        ...

    def send(self, topic: LinkTopic, *messages: Any) -> None:
        """Send messages on a topic of commands, all at once.

        Parameters
        ----------
        topic : LinkTopic
            Topic of commands.
        *messages : object
            Messages of the topic's type, first one first.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        ...

    def send_empty(self, name: str) -> None:
        """Send a message without fields."""
        ...


def rpy_of(q: Any) -> tuple[float, float, float]:
    """Convert a quaternion to roll, pitch and yaw, rad (about fixed axes x, y, z).

    Parameters
    ----------
    q : geometry_msgs/Quaternion
        Unit quaternion.

    Returns
    -------
    tuple of float
        Roll and yaw within ±π, pitch within ±π/2.
    """
    # botyard's own functions give the same bits on every platform, unlike the C
    # library.
    roll = atan2(2.0 * (q.w * q.x + q.y * q.z), 1.0 - 2.0 * (q.x * q.x + q.y * q.y))
    # Rounding can put the sine slightly outside of its range.
    pitch = asin(max(-1.0, min(1.0, 2.0 * (q.w * q.y - q.z * q.x))))
    return roll, pitch, yaw_of_quaternion(q.x, q.y, q.z, q.w)


def quaternion_of(
    roll: float, pitch: float, yaw: float
) -> tuple[float, float, float, float]:
    """Convert roll, pitch and yaw, rad, to a quaternion (x, y, z, w).

    The rotations are about the fixed axes x, y, z.

    Parameters
    ----------
    roll, pitch, yaw : float
        Angles, rad, applied in this order about the fixed axes x, y and z.
    """
    cr, sr, cp, sp = cos(roll / 2), sin(roll / 2), cos(pitch / 2), sin(pitch / 2)
    cy, sy = cosine_sine(yaw / 2)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


class Handle:
    """Handle of an AMBF object: its last state, and the command that is sent periodically.

    Parameters
    ----------
    client : Sender
        Connection of the client to the simulator.
    name : str
        Name of the object.
    kind : str
        Kind in the names of its messages, such as ``RigidBody``.
    state : LinkTopic
        Topic of its states.
    command : LinkTopic or None
        Topic of its commands; None if the object accepts no commands.
    """

    def __init__(
        self,
        client: Sender,
        name: str,
        kind: str,
        state: LinkTopic,
        command: LinkTopic | None,
    ) -> None:
        self._client = client
        self.topic, self.command_topic = state, command
        self._kind = kind
        self.ros_name = state.name.removesuffix("/State")
        self._name = name
        self.type = kind
        self._state = client.blank(f"ambf_msgs/{kind}State")
        self._cmd: Any = (
            client.blank(f"ambf_msgs/{kind}Cmd") if command is not None else None
        )
        # A handle that only reads must not command the object, so commands start with
        # `set_active`.
        self._active = False
        self._heard = 0
        self._last_call: tuple[float, float | None] | None = None
        """Wall time of the last call that set the command, s, and the simulated time of that
        call.
        """

    def get_name(self) -> str:
        """Return the name of the object in the last state."""
        return (
            str(self._state.name.data) if hasattr(self._state, "name") else self._name
        )

    def get_identifier(self) -> str:
        """Return the identifier of the object (only in the newest generation)."""
        return (
            str(self._state.identifier.data)
            if hasattr(self._state, "identifier")
            else self.get_name()
        )

    def get_parent_name(self) -> str:
        """Return the name of the body that carries this object; empty without one."""
        return (
            str(self._state.parent_name.data)
            if hasattr(self._state, "parent_name")
            else ""
        )

    def get_sim_step(self) -> int:
        """Return the number of simulation steps so far."""
        return int(self._state.sim_step)

    def get_sim_time(self) -> float:
        """Return the simulated time, s."""
        return float(self._state.sim_time)

    def get_wall_time(self) -> float:
        """Return the wall time since the simulator's start, s."""
        return float(self._state.wall_time)

    def get_pos(self) -> Any:
        """Return the position of the object with the components x, y, z, m."""
        return self._state.pose.position

    def get_rot(self) -> Any:
        """Return the orientation of the object, a quaternion with the components x, y, z, w."""
        return self._state.pose.orientation

    def get_rpy(self) -> tuple[float, float, float]:
        """Return roll, pitch and yaw of the object, rad."""
        return rpy_of(self._state.pose.orientation)

    def get_pose(self) -> list[float]:
        """Return the pose of the object: x, y, z (m) and roll, pitch, yaw (rad).

        With messages of the older generations, ``master`` and ``1.0``, the angles are
        yaw, pitch, roll (ambf-messages.md §8).
        """
        p = self._state.pose.position
        roll, pitch, yaw = self.get_rpy()
        angles = (
            [roll, pitch, yaw]
            if self._client.generation == "2.0"
            else [yaw, pitch, roll]
        )
        return [float(p.x), float(p.y), float(p.z), *angles]

    @property
    def heard(self) -> int:
        """Number of states that the handle has received so far."""
        return self._heard

    def set_active(self) -> None:
        """Start to send the object's command periodically."""
        self._active = True

    def is_active(self) -> bool:
        """Return whether the object's command is sent periodically."""
        return self._active

    def _note_call(self) -> None:
        self._last_call = time.monotonic(), self._client.stepped_time

    def expire(self, now: float) -> bool:
        """Clear the command if `WRENCH_TIMEOUT_S` has passed since the last call.

        This is the client-side watchdog. While the client steps the world, the watchdog
        measures simulated time, so that a slow loop of the user does not trip it.
        Return whether the watchdog has expired.

        Parameters
        ----------
        now : float
            Time of `time.monotonic`, s.
        """
        # No call has set the command since it was last cleared.
        if self._last_call is None:
            return False
        wall, stepped = self._last_call
        time_now = self._client.stepped_time
        if time_now is None:
            passed = now - wall
        elif stepped is None:
            # The client started to step the world after the call, so the watchdog
            # restarts.
            self._last_call = wall, time_now
            return False
        else:
            passed = time_now - stepped

        # A negative time means that the world was reset.
        if 0.0 <= passed <= WRENCH_TIMEOUT_S + TIME_TOLERANCE_S:
            return False
        # Forget the call, so that the watchdog fires once for each call.
        self._last_call = None
        self._clear()
        return True

    def _clear(self) -> None:
        """Clear the parts of the command that must not outlive the watchdog."""

    def send(self) -> None:
        """Send the object's command immediately.

        Like a call that sets the command, this restarts the watchdog.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        if self._last_call is not None:
            self._note_call()
        self.repeat()

    def repeat(self) -> None:
        """Send the command again; unlike `send`, this does not restart the watchdog.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        # Sensors have no commands, but are handles as well.
        if self.command_topic is not None:
            self._client.send(self.command_topic, self._cmd)

    def on_state(self, state: Any) -> None:
        """Store a state of the object that the simulator has sent.

        Parameters
        ----------
        state : object
            Message of the object's State type. The handle keeps it.
        """
        self._state = state
        self._heard += 1


class Pose(Handle):
    """Handle of an object whose pose can be commanded: a body, a camera or a light."""

    def _position_mode(self) -> None:
        self._cmd.enable_position_controller = True

    def _is_positioned(self) -> bool:
        return bool(self._cmd.enable_position_controller)

    def _enter_position_mode(self) -> None:
        """Switch to position control.

        The first command takes the components that the user does not set from the last
        state.
        """
        # Later commands keep the components of the last command, not of the last state.
        if not self._is_positioned():
            p, q = self._state.pose.position, self._state.pose.orientation
            self._set_position(p.x, p.y, p.z)
            self._set_turn(q.x, q.y, q.z, q.w)

        self._position_mode()
        self._note_call()

    def _set_position(self, x: float, y: float, z: float) -> None:
        p = self._cmd.pose.position
        p.x, p.y, p.z = float(x), float(y), float(z)

    def _set_turn(self, x: float, y: float, z: float, w: float) -> None:
        q = self._cmd.pose.orientation
        q.x, q.y, q.z, q.w = float(x), float(y), float(z), float(w)

    def set_pos(self, px: float, py: float, pz: float) -> None:
        """Command the object to a position, m.

        Parameters
        ----------
        px, py, pz : float
            Position in the frame of the world, m.
        """
        self._enter_position_mode()
        self._set_position(px, py, pz)

    def set_rot(self, quat: Any) -> None:
        """Command the object to an orientation, given as a quaternion.

        Parameters
        ----------
        quat : quaternion or sequence of float
            Orientation in the frame of the world: four numbers x, y, z, w, or an object with these
            attributes.
        """
        # Convert the argument before the mode changes, so that a wrong argument has no
        # effect.
        values = (quat.x, quat.y, quat.z, quat.w) if hasattr(quat, "x") else tuple(quat)
        self._enter_position_mode()
        self._set_turn(*values)

    def set_rpy(self, r: float, p: float, y: float) -> None:
        """Command the object to an orientation, given as roll, pitch and yaw, rad.

        Parameters
        ----------
        r, p, y : float
            Rotations about the fixed axes x, y and z, rad.
        """
        self._enter_position_mode()
        self._set_turn(*quaternion_of(r, p, y))

    def set_pose(self, pose: Any) -> None:
        """Command the object to a pose, given as an object with position and orientation.

        Parameters
        ----------
        pose : geometry_msgs/Pose
            Pose in the frame of the world, m.
        """
        p, q = pose.position, pose.orientation
        self.set_pos(p.x, p.y, p.z)
        self.set_rot(q)

    def pose_command(
        self,
        px: float,
        py: float,
        pz: float,
        roll: float,
        pitch: float,
        yaw: float,
        *joints: float,
    ) -> None:
        """Command the object to a pose, given as numbers.

        The first of the three angles is the rotation about z, as in AMBF's own client
        (ambf-messages.md §8).
        Further numbers command joints.

        Parameters
        ----------
        px, py, pz : float
            Position in the frame of the world, m.
        roll, pitch, yaw : float
            Rotations about z, y and x, rad, despite their names.
        *joints : float
            Positions of the first joints, rad or m; only for bodies.
        """
        self.set_pos(px, py, pz)
        # The angles are reversed on purpose: programs for AMBF rely on this order.
        self.set_rpy(yaw, pitch, roll)
        if joints and hasattr(self._cmd, "joint_cmds"):
            self._joints_command(range(len(joints)), joints, POSITION)

    def _joints_command(
        self, joints: Sequence[int], values: Sequence[float], kind: int
    ) -> None:
        raise NotImplementedError


__all__ = ["Handle", "Pose", "quaternion_of", "rpy_of"]
