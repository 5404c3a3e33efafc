"""What robots the worlds of a batch have: a *lineup* has a model for each robot, and
what kernels need of these.

Worlds may have several lineups: where a robot has several models, each episode has one
of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.devices.battery import Batteries
from botyard.devices.laser import STREAM as LASER_STREAM
from botyard.devices.laser import laser_bundle
from botyard.devices.ranging import Delay, Fan
from botyard.devices.sonar import STREAM as SONAR_STREAM
from botyard.devices.sonar import sonar_bundles
from botyard.engine.build import BodySpec
from botyard.engine.episode_starts import LINEUP_STREAM, draw_numbers
from botyard.engine.kernels.latency import delay_steps, is_slower
from botyard.engine.layout import I8, U8, Bodies, State
from botyard.errors import ArgumentError
from botyard.formats.models import find_robot
from botyard.model.beams import Bundle
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import MAX_LATENCY_S
from botyard.sim.parameters import sensors_of
from botyard.sim.simulation import Simulation
from botyard.worlds.arguments import array_of

Model = str | Path | RobotSpec
Robots = Model | Sequence[Model | Sequence[Model]]
"""A model; or several, one for each robot, in whose place there may be several, of
which an episode has one.
"""
MAX_LINEUPS: Final = 1024
"""Lineups that worlds may have."""
Sensor = tuple[str, int]
"""Kind of a range sensor, and its number among those of its kind."""


@dataclass(frozen=True, slots=True, eq=False)
class RobotSet:
    """The bodies of a world whose robots have certain models.

    Attributes
    ----------
    robots : tuple of RobotSpec
        The models, one for each robot.
    state : State
        The state of the bodies as they are added, boxes first.
    bodies : Bodies
        Their shapes.
    specs : tuple of BodySpec
        What they are.
    sensors : tuple of Sensor
        Those that measure, of the first robot, of the second one …
    fans : tuple of Fan
        The same as range devices.
    delays : tuple of Delay
        How often they measure, and how late their readings can be had.
    """

    robots: tuple[RobotSpec, ...]
    state: State
    bodies: Bodies
    specs: tuple[BodySpec, ...]
    sensors: tuple[Sensor, ...]
    fans: tuple[Fan, ...]
    delays: tuple[Delay, ...]

    @property
    def has_masses(self) -> tuple[bool, ...]:
        """Which bodies have mass."""
        return tuple(spec.dynamics is not None for spec in self.specs)


class RobotSets(Sequence[RobotSet]):
    """The lineups of a batch of worlds, by number. With one model for each robot there
    is one.

    Parameters
    ----------
    slots : sequence of sequence of RobotSpec
        The models that each robot may have, see `slots_of`.
    sensors : sequence of str, optional
        Names of the sensors that measure; without it lasers, or else rings.
    max_latency : float, optional
        Greatest latency with jitter, s; without it that of the models.
    boxes : sequence of BoxObject
        Boxes of the worlds.
    settings : mapping
        Arguments of `Simulation` that all worlds have.

    Attributes
    ----------
    names : tuple of str
        Names of the robots.
    box_names : tuple of str
        Names of the boxes.
    models : (l, m) int64
        Number of the model of each robot, among those that it may have, in each lineup.
    readings : int
        Number of readings of each robot; those with fewer have NaN behind them.
    late_steps : int or None
        Greatest latency with jitter of commands and readings, in steps; None: there is
        none, nor a rate below that of steps.
    dt : float
        Time of a step, s.

    Raises
    ------
    ArgumentError
        An argument is wrong, or a robot has what worlds do not support.
    """

    def __init__(
        self,
        slots: Sequence[Sequence[RobotSpec]],
        sensors: Sequence[str] | None,
        max_latency: float | None,
        boxes: Sequence[BoxObject],
        settings: Mapping[str, Any],
    ) -> None:
        specs = [spec for slot in slots for spec in slot]
        self.models: I8 = np.array(
            list(itertools.product(*(range(len(slot)) for slot in slots))), np.int64
        )
        self._radix = np.array([len(slot) for slot in slots], np.int64)
        chosen = _chosen_sensors(specs, sensors)
        sizes = [
            max(sum(b.n_readings for b in _bundles(spec, one, True)) for spec in specs)
            for one in chosen
        ]
        self.readings = sum(sizes)
        self.names: tuple[str, ...] = ()
        self.box_names: tuple[str, ...] = ()
        self._robot_sets: list[RobotSet] = []
        for models in self.models.tolist():
            of_robots = tuple(slot[k] for slot, k in zip(slots, models, strict=True))
            sim = Simulation(Scene(boxes=tuple(boxes)), warn=silent, **settings)
            for k, spec in enumerate(of_robots):
                sim.add_robot(spec, self.names[k] if self.names else None)
            _check_devices(sim)
            self.names, self.box_names = tuple(sim.robots), sim.box_names
            self._robot_sets.append(
                self._made(
                    sim,
                    of_robots,
                    chosen,
                    sizes,
                    noise=settings.get("sensor_noise", True),
                )
            )

        self.dt = sim.dt
        self.late_steps = _late_steps(specs, max_latency, sim.dt)
        if len({one.has_masses for one in self}) > 1:
            raise ArgumentError(
                "robots: expected models with mass, or models without, for each "
                "robot; found both for one"
            )

    def _made(
        self,
        sim: Simulation,
        robots: tuple[RobotSpec, ...],
        sensors: Sequence[Sensor],
        sizes: Sequence[int],
        *,
        noise: bool,
    ) -> RobotSet:
        """A lineup of the robots of a simulation. `sizes`: places for the readings of
        each of the sensors.
        """
        of_fans, fans = [], []
        for row, spec in enumerate(robots):
            out = row * self.readings
            for (kind, index), size in zip(sensors, sizes, strict=True):
                bundles = _bundles(spec, (kind, index), noise)
                if bundles:
                    is_laser = kind == "laser"
                    stream, senses = (
                        (LASER_STREAM + index, Visible.LASER)
                        if is_laser
                        else (SONAR_STREAM, Visible.SONAR)
                    )
                    of_fans.append((kind, index))
                    fans.append(
                        Fan(len(self.box_names) + row, stream, senses, out, bundles)
                    )

                out += size

        bodies = sim.engine.bodies
        return RobotSet(
            robots=robots,
            state=sim.engine.state,
            bodies=bodies._replace(feels=bodies.feels | np.int8(2)),
            specs=tuple(sim.engine.specs),
            sensors=tuple(of_fans),
            fans=tuple(fans),
            delays=tuple(
                Delay.of(
                    sensors_of(robots[fan.row - len(self.box_names)])[name_of(sensor)]
                )
                for sensor, fan in zip(of_fans, fans, strict=True)
            ),
        )

    def __len__(self) -> int:
        return len(self._robot_sets)

    def __getitem__(self, number: Any) -> Any:
        return self._robot_sets[number]

    def __iter__(self) -> Iterator[RobotSet]:
        return iter(self._robot_sets)

    def drawn(self, seeds: U8, episodes: I8) -> I8:
        """Numbers of the lineups of episodes, (n,), of worlds with these seeds: each
        model of each robot as often as the others.
        """
        numbers = np.zeros(len(seeds), np.int64)
        if len(self) > 1:
            draw_numbers(seeds, episodes, LINEUP_STREAM, len(self), 1, numbers)
        return numbers

    def numbers(self, model_id: ArrayLike, count: int) -> I8:
        """Numbers of the lineups with these models, (count, m) or (m,).

        Raises
        ------
        ArgumentError
            A robot has no model of that number.
        """
        models = array_of(model_id, "model_id", np.int64, (count, len(self._radix)))
        wrong = np.argwhere((models < 0) | (models >= self._radix))
        if len(wrong):
            k, j = wrong[0].tolist()
            raise ArgumentError(
                f"model_id: {self.names[j]}: expected 0 … "
                f"{int(self._radix[j]) - 1}, the numbers of its models, found {int(models[k, j])}"
            )

        numbers = np.zeros(count, np.int64)
        for j, radix in enumerate(self._radix.tolist()):
            numbers = numbers * radix + models[:, j]
        return numbers


def slots_of(robots: Robots) -> list[list[RobotSpec]]:
    """The models that each robot may have.

    Raises
    ------
    ArgumentError
        There are none, too many, or models that worlds do not support.
    """
    rows = (
        [robots]
        if isinstance(robots, (str, Path, RobotSpec))
        else arguments.several(robots, "robots", "models of robots")
    )
    slots = []
    for row in rows:
        one = isinstance(row, (str, Path, RobotSpec))
        slots.append(
            [
                _spec(model)
                for model in (
                    [cast(Model, row)]
                    if one
                    else arguments.several(row, "robots", "models of a robot")
                )
            ]
        )

    if not all([slots, *slots]):
        raise ArgumentError("robots: expected at least one model, found none")
    count = math.prod(len(slot) for slot in slots)
    if count > MAX_LINEUPS:
        raise ArgumentError(
            f"robots: expected at most {MAX_LINEUPS} ways to choose a model for "
            f"each robot, found {count}"
        )

    return slots


def _spec(model: Model) -> RobotSpec:
    """A model of a robot that worlds support."""
    spec = (
        model
        if isinstance(model, RobotSpec)
        else find_robot(arguments.path(model, "robots"))
    )
    has = {
        "grippers": spec.gripper is not None,
        "batteries that drain": spec.battery.capacity_wh > 0.0,
    }
    for feature, there in has.items():
        if there:
            raise ArgumentError(
                f"robots: {spec.name}: {feature} are not supported in Worlds; use Simulation"
            )

    return spec


def _check_devices(sim: Simulation) -> None:
    """Refuse devices that remember something, act by themselves, or change what others
    measure.
    """
    for table in sim.engine.tables.values():
        if table.optional or (
            len(table) and hasattr(table, "act") and not isinstance(table, Batteries)
        ):
            raise ArgumentError(
                f'robots: devices with a state of their own ("{table.name}") are not supported in Worlds; use Simulation'
            )

    if sim._devices.is_distorted:
        raise ArgumentError(
            "robots: error models of range sensors are not supported in Worlds; use Simulation"
        )


def name_of(sensor: Sensor) -> str:
    """Name of a sensor: ``laser``, ``laser_2`` …, ``sonar``."""
    kind, index = sensor
    return kind if index == 0 else f"{kind}_{index + 1}"


def _chosen_sensors(
    specs: Sequence[RobotSpec], asked: Sequence[str] | None
) -> list[Sensor]:
    """The sensors that measure."""
    lasers = max(len(spec.lasers) for spec in specs)
    known: dict[str, Sensor] = {
        name_of(("laser", k)): ("laser", k) for k in range(lasers)
    }
    if any(spec.sonar is not None for spec in specs):
        known["sonar"] = "sonar", 0
    if asked is None:
        return [one for one in known.values() if one[0] == "laser"] or list(
            known.values()
        )

    if isinstance(asked, str):
        raise ArgumentError(
            f'sensors: expected a list of names; one is a list, too: ["{asked}"]'
        )

    names = arguments.several(asked, "sensors", "names")
    return [known[arguments.one_of(name, "sensors", known)] for name in names]


def _bundles(spec: RobotSpec, sensor: Sensor, noise: bool) -> tuple[Bundle, ...]:
    """Beams of a sensor of a robot; none where it has no such sensor."""
    kind, index = sensor
    if kind == "laser":
        return (
            (laser_bundle(spec.lasers[index], noise),)
            if index < len(spec.lasers)
            else ()
        )

    return tuple(sonar_bundles(spec.sonar, noise)) if spec.sonar is not None else ()


def _late_steps(
    specs: Sequence[RobotSpec], most: float | None, dt: float
) -> int | None:
    """Steps of the greatest latency with jitter; None: there is none, nor a rate.
    ArgumentError: models have more than they may.
    """
    late = [
        one
        for spec in specs
        for one in (spec.commands, *spec.lasers, spec.sonar)
        if one is not None
    ]
    greatest = max(one.latency + one.jitter for one in late)
    rates = [
        *(spec.commands.rate for spec in specs),
        *(one.measurement_rate for spec in specs for one in sensors_of(spec).values()),
    ]
    if most is None:
        if greatest == 0.0 and not any(is_slower(rate, dt) for rate in rates):
            return None
        most = greatest
    else:
        most = arguments.number(
            most, "max_latency", low=0.0, high=2.0 * MAX_LATENCY_S, unit="s"
        )
        if greatest > most:
            raise ArgumentError(
                "max_latency: expected at least that of the robots, "
                f"{greatest:g} s, found {most:g} s"
            )

    return int(delay_steps(most, 0.0, 0.0, dt))


def silent(text: str) -> None:
    """Receives warnings: starts are mostly said later."""


__all__ = [
    "MAX_LINEUPS",
    "Model",
    "RobotSet",
    "RobotSets",
    "Robots",
    "Sensor",
    "name_of",
    "silent",
    "slots_of",
]
