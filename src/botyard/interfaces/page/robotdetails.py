"""Details of selected robots for the page, and the sensors that the page shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from botyard.interfaces.page.devices import device_readings
from botyard.interfaces.page.operations import three
from botyard.interfaces.page.viewsource import drawn_devices, nearest_reading
from botyard.protocols.webgui import pushes
from botyard.sim.simulation import Robot, Simulation

SOURCE: Final = "page"
"""Source name of the page's commands and sensor subscriptions."""
MAX_DETAILS: Final = 20
"""Largest number of selected robots whose details are sent and whose sensors are read."""


def detail_of(robot: Robot, sim: Simulation, port: int) -> pushes.Detail:
    """Return the details of a selected robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    sim : Simulation
        Simulation that contains it, of the present or of an earlier moment.
    port : int
        TCP port of the robot; 0 for none.

    Returns
    -------
    Detail
        Poses in m, m, rad; velocities in m/s, m/s, rad/s. The error of odometry is a
        distance, m, and an angle between −π and π, rad.
    """
    state = robot.state
    target = sim.snapshot.state.target[sim.snapshot.rows[robot.name]].tolist()
    sensors = [reader.name for reader in drawn_devices(robot) if reader.is_read]
    believed, true = robot.odom_in_world, state.pose_world

    # Normalise the difference of angles to −π … π.
    turned = math.remainder(believed.th - true.th, 2 * math.pi)
    gripper = robot.gripper
    return pushes.Detail(
        name=robot.name,
        model=robot.spec.name,
        clients=list(robot.clients),
        pose=three(true),
        odometry=three(state.pose_odom),
        odometry_error=(math.dist(believed[:2], true[:2]), turned),
        velocity=three(state.twist),
        command=three(target),
        accel=state.accel.as_tuple(),
        error=state.odometry_error.as_tuple(),
        motors=state.motors,
        stalled=state.stalled,
        estop=robot.electrics.estop_pressed or state.estop,
        volts=robot.electrics.volts,
        charge=robot.electrics.charge,
        charging=bool(robot.electrics.battery.charge_state),
        sensors=sensors,
        nearest=nearest_reading(robot),
        gripper=(gripper.holding or "open") if gripper is not None else "",
        port=port,
        devices=device_readings(robot),
    )


def details_of(
    names: Iterable[str], sim: Simulation, port_of: Callable[[str], int]
) -> pushes.Details:
    """Return the details of selected robots.

    Parameters
    ----------
    names : iterable of str
        Names of the robots; unknown ones are left out.
    sim : Simulation
        Simulation that contains them, of the present or of an earlier moment.
    port_of : callable
        Returns the TCP port of a robot, 0 for none.
    """
    robots = [sim.robots[name] for name in names if name in sim.robots]
    return pushes.Details(
        time=sim.time, robots=[detail_of(r, sim, port_of(r.name)) for r in robots]
    )


def read_sensors(robot: Robot, on: bool) -> None:
    """Subscribe to the sensors of a robot that the page shows, or unsubscribe.

    Parameters
    ----------
    robot : Robot
        The robot.
    on : bool
        True to subscribe, False to unsubscribe. A sensor without subscribers does not
        measure.
    """
    for reader in drawn_devices(robot):
        reader.subscribe(SOURCE, on)


class SelectedSensors:
    """Subscriptions to the sensors of the robots that pages have selected.

    Parameters
    ----------
    sim : Simulation
        The world.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._read: dict[str, Robot] = {}

    def read(self, selected: Iterable[str]) -> None:
        """Subscribe to the sensors of selected robots; unsubscribe from other sensors.

        Parameters
        ----------
        selected : iterable of str
            Names of bodies, perhaps with repetitions. Only the first `MAX_DETAILS`
            robots count.
        """
        robots = self._sim.robots
        # A dict keeps the order of selection, so that the limit keeps the first robots.
        wanted = list(dict.fromkeys(name for name in selected if name in robots))
        read = {name: robots[name] for name in wanted[:MAX_DETAILS]}
        for name, robot in self._read.items():
            if name not in read and robots.get(name) is robot:
                read_sensors(robot, False)

        for name, robot in read.items():
            # A robot that was added in the meantime may have this name.
            if self._read.get(name) is not robot:
                read_sensors(robot, True)

        self._read = read


__all__ = [
    "MAX_DETAILS",
    "SOURCE",
    "SelectedSensors",
    "detail_of",
    "details_of",
    "read_sensors",
]
