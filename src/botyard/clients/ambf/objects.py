"""Handles of AMBF objects other than bodies: sensors, actuators, vehicles, the world.

`KINDS` maps each kind of object to its class of handles.

See ambf-messages.md §8.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from copy import copy
from typing import Any, Final

import numpy as np

from botyard.clients.ambf.bodies import Body
from botyard.clients.ambf.handles import Handle, Pose
from botyard.errors import PeerError


class Sensor(Handle):
    """Handle of a sensor of AMBF that casts rays."""

    def get_count(self) -> int:
        """Return the number of rays."""
        return int(self._state.count)

    def is_triggered(self, idx: int) -> bool:
        """Return whether a ray hits an object.

        Parameters
        ----------
        idx : int
            Index of the ray, from 0.
        """
        return bool(self._state.triggered[idx])

    def get_range(self, idx: int = 0) -> float:
        """Return the maximum range of a ray, m.

        Parameters
        ----------
        idx : int
            Index of the ray, from 0. States may have one range for all rays.
        """
        return float(self._state.range[min(idx, len(self._state.range) - 1)])

    def get_measurement(self, idx: int) -> float:
        """Return 1 − distance/range of a ray.

        Parameters
        ----------
        idx : int
            Index of the ray, from 0.

        Returns
        -------
        float
            0 for a ray without a hit, 1 for an object at the start of the ray.
        """
        return float(self._state.measurement[idx])

    def get_all_measurements(self) -> list[float]:
        """Return 1 − distance/range of all rays."""
        return [float(v) for v in self._state.measurement]

    def get_sensed_object(self, idx: int) -> str:
        """Return the name of the object that a ray hits; empty without a hit.

        Parameters
        ----------
        idx : int
            Index of the ray, from 0.
        """
        return str(self._state.sensed_objects[idx].data)

    def get_type(self) -> str:
        """Return ``PROXIMITY`` or ``RESISTANCE``."""
        return str(self._state.type.data)


class Actuator(Handle):
    """Handle of an actuator of AMBF, which can grasp bodies."""

    def actuate(self, body_name: str) -> None:
        """Grasp a body with a given name.

        Parameters
        ----------
        body_name : str
            Name of the body.
        """
        self._cmd.actuate = True
        self._cmd.body_name.data = body_name
        self._note_call()

    def actuate_from_sensor_data(self, identifier: str) -> None:
        """Grasp the body that a sensor detects (only in the newest generation).

        Parameters
        ----------
        identifier : str
            Identifier of the sensor.
        """
        self._cmd.actuate = True
        self._cmd.use_sensor_data = True
        self._cmd.sensor_identifier.data = identifier
        self._note_call()

    def deactuate(self) -> None:
        """Release the body that the actuator holds."""
        self._cmd.actuate = False
        self._note_call()

    def is_actuated(self) -> bool:
        """Return whether the actuator holds a body."""
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
        """Set values of wheels in the command; the other wheels keep their values.

        Parameters
        ----------
        field : str
            Field of the command: ``wheel_power``, ``wheel_steering`` or
            ``wheel_brake``.
        indices : sequence of int
            Indices of the wheels.
        value : float
            Value of each.
        """
        values = np.zeros(self.get_wheel_count(), np.float32)
        old = getattr(self._cmd, field)
        # Wheels without a new value keep their present command.
        values[: len(old)] = old[: len(values)]
        for k in indices:
            values[k] = value
        setattr(self._cmd, field, values)
        self._note_call()

    def set_wheel_power(self, idx: int, value: float) -> None:
        """Set the power of one wheel.

        Parameters
        ----------
        idx : int
            Index of the wheel, from 0.
        value : float
            Force of the motor, N, up to the vehicle's limit; negative backwards.
        """
        self._set("wheel_power", [idx], value)

    def set_wheel_brake(self, idx: int, value: float) -> None:
        """Set the brake of one wheel.

        Parameters
        ----------
        idx : int
            Index of the wheel, from 0.
        value : float
            Force of the brake, N, from 0 to the vehicle's limit.
        """
        self._set("wheel_brake", [idx], value)

    def set_wheel_steering(self, idx: int, value: float) -> None:
        """Set the steering angle of one wheel, rad.

        Parameters
        ----------
        idx : int
            Index of the wheel, from 0.
        value : float
            Angle, rad, counter-clockwise.
        """
        self._set("wheel_steering", [idx], value)

    def set_powered_wheel_indices(self, indices: Sequence[int]) -> None:
        """Set the wheels that `set_vehicle_power` drives.

        Parameters
        ----------
        indices : sequence of int
            Indices of the wheels. Before the first call all wheels are driven.
        """
        self._powered = list(indices)

    def set_steered_wheel_indices(self, indices: Sequence[int]) -> None:
        """Set the wheels that `set_vehicle_steering` turns.

        Parameters
        ----------
        indices : sequence of int
            Indices of the wheels. Before the first call all wheels are steered.
        """
        self._steered = list(indices)

    def set_vehicle_power(self, value: float) -> None:
        """Set the force of the motors of all driven wheels, N."""
        self._set("wheel_power", self._all(self._powered), value)

    def set_vehicle_steering(self, value: float) -> None:
        """Set the steering angle of all steered wheels, rad."""
        self._set("wheel_steering", self._all(self._steered), value)

    def set_vehicle_brake(self, value: float) -> None:
        """Set the force of the brakes of all wheels, N."""
        self._set("wheel_brake", self._all(None), value)

    def _all(self, chosen: list[int] | None) -> list[int]:
        return list(range(self.get_wheel_count())) if chosen is None else chosen


class World(Handle):
    """Handle of the simulated world; only `update` and the resets send messages."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._done = threading.Event()
        self.is_throttled = False
        """Whether simulated time advances only by `update`."""

    def enable_throttling(self, check: bool) -> None:
        """Switch between lockstep, with time steps by `update`, and free running.

        The simulator changes its mode at the next `update`.

        Parameters
        ----------
        check : bool
            Whether time passes only by `update`.
        """
        self._cmd.enable_step_throttling = bool(check)

    def set_num_step_skips(self, num: int) -> None:
        """Set the number of steps of each `update`, 1 to 100.

        Parameters
        ----------
        num : int
            Number of steps.

        Raises
        ------
        PeerError
            `num` is not within 1 to 100.
        """
        if not 1 <= num <= 100:
            raise PeerError(f"n_skip_steps: expected 1 to 100 steps, found {num}")
        self._cmd.n_skip_steps = int(num)

    def update(self) -> None:
        """Toggle the step clock: the simulator makes the set number of steps.

        Commands with an expired watchdog end before the steps.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        self.is_throttled = bool(self._cmd.enable_step_throttling)
        self._client.expire()
        # The clock may have the value of another client. A command for 0 steps sets it,
        # so that the next command always changes it.
        base = copy(self._cmd)
        base.n_skip_steps = 0
        self._cmd.step_clock = not self._cmd.step_clock
        assert self.command_topic is not None
        self._client.send(self.command_topic, base, self._cmd)

    def update_and_wait(self, timeout: float = 5.0) -> None:
        """Call `update`, and wait until the steps finish and all states arrive.

        The call waits at most `timeout`, s. AMBF's own client offers only polling.

        Parameters
        ----------
        timeout : float
            Longest wait, s.

        Raises
        ------
        PeerError
            The steps did not finish in time.
        """
        # Compare step numbers, because the state of an earlier step can still arrive
        # after the update.
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
        """Store a state of the world that the simulator has sent, and wake `update_and_wait`."""
        super().on_state(state)
        self._done.set()

    def reset(self) -> None:
        """Reset the whole world.

        Raises
        ------
        PeerError
            The messages of older generations have no resets, or the connection is lost.
        """
        self._client.send_empty(f"{self.ros_name}/Command/Reset")

    def reset_bodies(self) -> None:
        """Reset the bodies with mass to their initial poses.

        Raises
        ------
        PeerError
            The messages of older generations have no resets, or the connection is lost.
        """
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


__all__ = ["KINDS", "Actuator", "Sensor", "Vehicle", "World"]
