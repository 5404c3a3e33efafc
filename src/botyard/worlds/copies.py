"""Single worlds of a batch as simulations, and the parameters of `Worlds` as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.devices.delays import Late
from botyard.engine.batchlayout import EPISODE, MAP, ROBOT_SET, TICK
from botyard.engine.blocks import Blocks
from botyard.engine.columnchecks import MAX_TICK
from botyard.engine.kernels.latency import (
    JITTER,
    LATENCY,
    RATE,
    SCALE,
    Lateness,
)
from botyard.engine.kernels.latency_checks import are_rings
from botyard.engine.layout import State
from botyard.engine.rings import used_slots
from botyard.engine.state import check_written
from botyard.errors import StateError
from botyard.sim.journal import API
from botyard.sim.parameters import BEAMS, COLUMNS, COMMANDS, DELAYS
from botyard.sim.simulation import Simulation
from botyard.worlds.batch import Batch
from botyard.worlds.maps import Maps
from botyard.worlds.robot_sets import RobotSet, RobotSets, name_of, silent

PARAMETERS: Final = {
    "max_speed": "max_vel",
    "top_speed": "top_vel",
    "accel": "accel",
    "decel": "decel",
    "odometry_error_low": "err_lo",
    "odometry_error_high": "err_hi",
    "range_min": "r_min",
    "range_max": "r_max",
    "range_noise": "r_noise",
    "bearing_noise": "a_noise",
    "range_missing": "missing",
    "range_latency": "delay",
    "range_jitter": "delay",
    "range_rate": "delay",
    "command_latency": "channel",
    "command_jitter": "channel",
    "command_rate": "channel",
    "command_scale": "channel",
    "wheel_ratio": "wheels",
}
"""Names of the arrays that hold the parameters of `Worlds.param`."""
PARTS: Final[Mapping[str, int | slice]] = {
    "range_latency": LATENCY,
    "range_jitter": JITTER,
    "range_rate": RATE,
    "command_latency": LATENCY,
    "command_jitter": JITTER,
    "command_rate": RATE,
    "command_scale": slice(SCALE, SCALE + 3),
    "wheel_ratio": 0,
}
"""Elements of the last axis that hold a parameter, if it does not fill the axis."""
# These columns identify the bodies of a row, and so reveal a state of other worlds.
FIXED: Final = ("uid", "drive", "control", "carrier")
"""Columns of `State` that these worlds never write."""
OF_BODIES: Final = frozenset({*State._fields, "channel", "wheels"})
"""Names of arrays that have a row for each body."""


def parameter(state: Blocks, name: str, robots: slice) -> NDArray[Any]:
    """Return the live array of a parameter of all worlds, see `Worlds.param`.

    Parameters
    ----------
    state : Blocks
        States of the worlds.
    name : str
        Name of the parameter, a key of `PARAMETERS`.
    robots : slice
        Rows of the robots among the bodies.

    Returns
    -------
    (n, …) array
        View of the states; it has a row for each robot, sensor or beam.
    """
    array = state.all(PARAMETERS[name])
    array = array[:, robots] if PARAMETERS[name] in OF_BODIES else array
    return array[..., PARTS[name]] if name in PARTS else array


class Copies:
    """Maker of simulations that continue from single worlds of a batch.

    Parameters
    ----------
    batch : Batch
        The worlds.
    maps : Maps
        Maps of the worlds.
    robot_sets : RobotSets
        Robots of the worlds.
    settings : mapping
        Arguments of `Simulation` that all worlds have.
    """

    def __init__(
        self,
        batch: Batch,
        maps: Maps,
        robot_sets: RobotSets,
        settings: Mapping[str, Any],
    ) -> None:
        self._batch, self._maps, self._robot_sets, self._settings = (
            batch,
            maps,
            robot_sets,
            settings,
        )
        self._boxes = len(robot_sets.box_names)
        self._usual: dict[int, list[dict[str, list[float]]]] = {}
        """Parameters of the models of each robot set."""

    def simulation(self, state: Blocks, i: int) -> Simulation:
        """Return a simulation in the state of a world.

        Parameters
        ----------
        state : Blocks
            States of worlds. A caller may have changed them, so the row is checked.
        i : int
            Row of the state.

        Raises
        ------
        BotyardError
            The row is not a valid state of these worlds.
        """
        counts, start = state.of(i, "counts"), state.of(i, "start")
        world, seed = state.of(i, "seeds").tolist()
        sim = Simulation(
            self._maps[int(counts[MAP])].scene, seed=seed, warn=silent, **self._settings
        )
        names, number = self._robot_sets.names, self.number_in(state, i)
        robot_set = self._robot_sets[number]
        for spec, name, (x, y, th) in zip(
            robot_set.robots, names, start[self._boxes :].tolist(), strict=True
        ):
            sim.add_robot(spec, name, pose=(x, y, th))

        # Compute the values once for each robot set, because programs may copy many
        # worlds.
        if number not in self._usual:
            self._usual[number] = self._error_parameters(
                robot_set, *self._batch.as_added(number)
            )
        for name, values, usual in zip(
            names,
            self._error_parameters(robot_set, state, i),
            self._usual[number],
            # A difference in length would mean a mix-up of robots.
            strict=True,
        ):
            sim.robots[name].set_parameters(
                # Only differences from the models: without any, the copy equals a
                # simulation whose parameters were never set.
                **{key: value for key, value in values.items() if value != usual[key]}
            )

        engine = sim.core.engine
        columns = State._make(state.of(i, name) for name in State._fields)
        late = Lateness._make(state.of(i, name) for name in Lateness._fields)
        masses = self._batch.masses(state, i) if engine.dynamics is not None else None
        # The row may come from a caller, and kernels do not check bounds.
        check_written(columns, masses)
        is_here = all(
            # No world writes these columns, so other values there mean that the state
            # has other robots or boxes.
            (getattr(columns, name) == getattr(engine.state, name)).all()
            for name in FIXED
        )
        if not (is_here and are_rings(late) and 0 <= counts[TICK] <= MAX_TICK):
            raise StateError(
                "state: expected the state of one of these worlds, found another one"
            )

        # Values are copied into the arrays of the engine, since kernels hold their
        # addresses.
        for name, values in columns._asdict().items():
            getattr(engine.state, name)[...] = values
        if engine.dynamics is not None and masses is not None:
            engine.dynamics.load(*masses)
        engine.clock.tick = int(counts[TICK])
        # Set these after the tick, because times of values under way are ticks.
        self._set_under_way(sim, robot_set, late)

        # Call this after all columns are set, because `resumed` derives values from
        # them.
        engine.resumed()
        # The next reset of the simulation then continues the count of the world.
        sim.core.episodes.count(world, int(counts[EPISODE]))
        return sim

    def number_in(self, state: Blocks, i: int) -> int:
        """Return the number of the robot set of row `i`.

        Parameters
        ----------
        state : Blocks
            States of worlds. A caller may have changed the number, so it is checked.
        i : int
            Row of the state.
        """
        # With a single robot set the number is not used: a wrong one would index beyond
        # the list.
        return int(state.of(i, "counts")[ROBOT_SET]) if len(self._robot_sets) > 1 else 0

    def _error_parameters(
        self, robot_set: RobotSet, state: Blocks, i: int
    ) -> list[dict[str, list[float]]]:
        """Return the errors of robots and sensors of a world, as `values` does.

        Parameters
        ----------
        robot_set : RobotSet
            Robots of the world.
        state : Blocks
            States of worlds.
        i : int
            Row of the state.
        """
        own = {}
        for name in PARAMETERS.keys() - COLUMNS.keys():
            array = state.of(i, PARAMETERS[name])
            # Boxes have rows in these arrays, but no parameters.
            array = array[self._boxes :] if PARAMETERS[name] in OF_BODIES else array
            own[name] = array[..., PARTS[name]] if name in PARTS else array

        return self.values(robot_set, own)

    def values(
        self, robot_set: RobotSet, own: Mapping[str, NDArray[Any]]
    ) -> list[dict[str, list[float]]]:
        """Return parameters of each robot of a set for `Robot.set_parameters`.

        Parameters
        ----------
        robot_set : RobotSet
            Robots of the world.
        own : mapping of str to array
            Parameters of the world, as `param` has them; missing ones are left out.

        Returns
        -------
        list of dict
            For each robot, numbers by name; parameters of a sensor have its name
            appended, as in ``range_noise laser_2``.
        """
        found: list[dict[str, list[float]]] = [{} for _ in self._robot_sets.names]
        for name in (*COLUMNS, *COMMANDS, "wheel_ratio"):
            if name in own:
                for values, numbers in zip(found, own[name], strict=True):
                    values[name] = np.atleast_1d(numbers).tolist()

        at = 0
        for g, (one, fan) in enumerate(
            zip(robot_set.sensors, robot_set.fans, strict=True)
        ):
            sensor, end = name_of(one), at + len(fan.bundles)
            for name in BEAMS:
                if name in own:
                    found[fan.row - self._boxes][f"{name} {sensor}"] = own[name][
                        at:end
                    ].tolist()

            for name in DELAYS:
                if name in own:
                    found[fan.row - self._boxes][f"{name} {sensor}"] = [
                        float(own[name][g])
                    ]

            at = end

        return found

    def _set_under_way(
        self, sim: Simulation, robot_set: RobotSet, late: Lateness
    ) -> None:
        """Copy commands and readings under way from a world to a simulation."""
        for k, name in enumerate(self._robot_sets.names, start=self._boxes):
            slots = used_slots(ring := late.sent_times[k])
            if len(slots):
                sim.core.engine.channels.resume_velocities(
                    name, k, API, ring[1:][slots], late.sent[k, slots]
                )

        for g, ((kind, index), fan) in enumerate(
            zip(robot_set.sensors, robot_set.fans, strict=True)
        ):
            slots = used_slots(ring := late.late_times[g])
            if len(slots):
                room, count = len(ring) - 1, sum(b.n_readings for b in fan.bundles)
                span = slice(fan.out, fan.out + count)
                ranges = late.late.reshape(room, -1)[slots, span]
                returns = late.late_bright.reshape(room, -1)[slots, span]
                key = self._robot_sets.names[fan.row - self._boxes], kind, index
                sim.core.devices.resume(key, Late(ring[1:][slots], ranges, returns))


__all__ = ["OF_BODIES", "PARAMETERS", "PARTS", "Copies", "parameter"]
