"""Robot sets of a batch of worlds, with the data that kernels need of them.

A *robot set* has one model for each robot. If a robot may have several models, the
worlds have several robot sets, and each episode uses one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.devices.battery import Batteries
from botyard.devices.delays import Delay
from botyard.devices.fans import Fan
from botyard.devices.laser import STREAM as LASER_STREAM
from botyard.devices.laser import laser_bundle
from botyard.devices.sonar import STREAM as SONAR_STREAM
from botyard.devices.sonar import sonar_bundles
from botyard.engine.bodyregistry import NOTES_CONTACTS
from botyard.engine.bodyspec import BodySpec
from botyard.engine.episode_starts import LINEUP_STREAM, draw_numbers
from botyard.engine.kernels.delayrings import delay_steps, is_slower
from botyard.engine.layout import I8, U8, Bodies, State
from botyard.errors import ArgumentError
from botyard.formats.models import find_robot
from botyard.model.beams import Bundle
from botyard.model.devices import DeviceSpec, find_device
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import MAX_LATENCY_S
from botyard.sim.parameters import sensors_of
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import add_at_home
from botyard.worlds.arguments import array_of

Model = str | Path | RobotSpec
Robots = Model | Sequence[Model | Sequence[Model]]
"""A model, or a sequence with one item for each robot.

An item is a model, or a sequence of models, of which an episode uses one.
"""
# Bounds the time to make worlds: each robot set needs a simulation of its own.
MAX_LINEUPS: Final = 1024
"""Highest number of robot sets."""
Sensor = tuple[str, int]
"""Kind of a range sensor, and its index among the sensors of its kind."""


@dataclass(frozen=True, slots=True, eq=False)
class RobotSet:
    """Choice of a model for each robot of a world, and the bodies that follow from it.

    Attributes
    ----------
    robots : tuple of RobotSpec
        Model of each robot.
    state : State
        State of the bodies when they are added, boxes first.
    bodies : Bodies
        Shapes of the bodies.
    specs : tuple of BodySpec
        Specs of the bodies.
    sensors : tuple of Sensor
        Range sensors that measure, grouped by robot.
    fans : tuple of Fan
        The same sensors as range devices.
    delays : tuple of Delay
        Rate, latency and jitter of each sensor.
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
        """Whether each body has mass."""
        return tuple(spec.dynamics is not None for spec in self.specs)


class RobotSets(Sequence[RobotSet]):
    """Robot sets of a batch of worlds by number.

    One model for each robot makes one set.

    Parameters
    ----------
    slots : sequence of sequence of RobotSpec
        Models that each robot may have, see `slots_of`.
    sensors : sequence of str, optional
        Names of the sensors that measure. Default: lasers, otherwise sonar rings.
    max_latency : float, optional
        Highest latency with jitter, s. Default: the highest one of the models.
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
        Number of each robot's model, among the models that it may have, in each set.
    readings : int
        Number of readings of each robot; NaN fills missing ones.
    late_steps : int or None
        Highest latency with jitter of commands and readings, steps; None: there is no
        latency, and no rate below the rate of steps.
    dt : float
        Simulated time of a step, s.

    Raises
    ------
    ArgumentError
        An argument is wrong, or worlds do not support a robot.
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
            # All combinations: an episode draws one number for all robots.
            list(itertools.product(*(range(len(slot)) for slot in slots))),
            np.int64,
        )
        # The numbers of models are digits of a number with mixed radix.
        self._radix = np.array([len(slot) for slot in slots], np.int64)
        chosen = _chosen_sensors(specs, sensors)
        sizes = [
            max(sum(b.n_readings for b in _bundles(spec, one, True)) for spec in specs)
            for one in chosen
        ]

        # All robot sets share the shape of `ranges`, so that an episode can change the
        # set.
        self.readings = sum(sizes)
        # Names are unknown before the first simulation has chosen them.
        self.names: tuple[str, ...] = ()
        self.box_names: tuple[str, ...] = ()
        self._robot_sets: list[RobotSet] = []

        for models in self.models.tolist():
            of_robots = tuple(slot[k] for slot, k in zip(slots, models, strict=True))
            sim = Simulation(Scene(boxes=tuple(boxes)), warn=silent, **settings)
            # Later sets take the names of the first one, so that a robot keeps its name
            # whatever its model.
            add_at_home(sim, of_robots, self.names)

            # A simulation is the simplest way to find the tables of a robot's devices.
            _check_devices(sim)
            self.names, self.box_names = tuple(sim.robots), sim.core.box_names
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
        # Rows of masses are laid out once for all robot sets.
        if len({one.has_masses for one in self}) > 1:
            raise ArgumentError(
                "robots: expected for each robot models that all have mass, or that "
                "all have none, found both"
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
        """Return the robot set of the robots of a simulation.

        Parameters
        ----------
        sim : Simulation
            Simulation with boxes and robots.
        robots : tuple of RobotSpec
            Models of its robots.
        sensors : sequence of Sensor
            Sensors that measure; a robot may lack some of them.
        sizes : sequence of int
            Number of readings reserved for each sensor.
        noise : bool
            Whether sensors have errors.
        """
        of_fans, fans = [], []
        for row, spec in enumerate(robots):
            out = row * self.readings
            # A robot without a sensor keeps its places, so that each sensor has the
            # same columns in all worlds.
            for (kind, index), size in zip(sensors, sizes, strict=True):
                bundles = _bundles(spec, (kind, index), noise)
                if bundles:
                    is_laser = kind == "laser"
                    stream, senses = (
                        (LASER_STREAM + index, Visible.LASER)
                        if is_laser
                        # A robot has at most one sonar ring, so that its stream needs
                        # no index.
                        else (SONAR_STREAM, Visible.SONAR)
                    )
                    of_fans.append((kind, index))
                    fans.append(
                        Fan(len(self.box_names) + row, stream, senses, out, bundles)
                    )

                out += size

        bodies = sim.core.engine.bodies
        return RobotSet(
            robots=robots,
            state=sim.core.engine.state,
            # Worlds report obstacles (`Worlds.contact`), which the kernel must note.
            bodies=bodies._replace(feels=bodies.feels | NOTES_CONTACTS),
            specs=tuple(sim.core.engine.specs),
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
        """Draw the robot sets of episodes.

        Each model of a robot is equally likely.

        Parameters
        ----------
        seeds : (n,) uint64
            Seeds of the worlds.
        episodes : (n,) int64
            Numbers of the episodes.

        Returns
        -------
        (n,) int64
            Numbers of robot sets.
        """
        numbers = np.zeros(len(seeds), np.int64)
        # A single robot set needs no draw; other draws have streams of their own.
        if len(self) > 1:
            draw_numbers(seeds, episodes, LINEUP_STREAM, len(self), 1, numbers)
        return numbers

    def numbers(self, model_id: ArrayLike, count: int) -> I8:
        """Return the numbers of the robot sets with certain models.

        Parameters
        ----------
        model_id : (count, m) or (m,) array-like of int
            Number of each robot's model among the models that it may have.
        count : int
            Number of worlds.

        Returns
        -------
        (count,) int64
            Numbers of robot sets.

        Raises
        ------
        ArgumentError
            A robot has no model of that number.
        """
        models = array_of(model_id, "model_id", np.int64, (count, len(self._radix)))
        wrong = np.argwhere((models < 0) | (models >= self._radix))
        if len(wrong):
            # One wrong number is enough for the message; a list could have a million.
            k, j = wrong[0].tolist()
            raise ArgumentError(
                f"model_id: {self.names[j]}: expected 0 … "
                f"{int(self._radix[j]) - 1}, the numbers of its models, "
                f"found {int(models[k, j])}"
            )

        numbers = np.zeros(count, np.int64)
        # The number must be the index of the combination in `models`.
        for j, radix in enumerate(self._radix.tolist()):
            # Mixed radix, in the order of `itertools.product`
            numbers = numbers * radix + models[:, j]
        return numbers


def slots_of(robots: Robots) -> list[list[RobotSpec]]:
    """Return the models that each robot may have.

    Parameters
    ----------
    robots : str, Path, RobotSpec, or sequence of them
        Argument of `Worlds`: a model, or one item for each robot, which may also be a
        sequence of models.

    Returns
    -------
    list of list of RobotSpec
        Models by robot.

    Raises
    ------
    ArgumentError
        There are no models, too many, or models that worlds do not support.
    """
    rows = (
        [robots]
        if isinstance(robots, (str, Path, RobotSpec))
        else arguments.several(robots, "robots", "models of robots")
    )
    slots = []

    for row in rows:
        # A text is also a sequence, but names one model.
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
    # Checked before the combinations are listed, because they would fill the memory.
    count = math.prod(len(slot) for slot in slots)
    if count > MAX_LINEUPS:
        raise ArgumentError(
            f"robots: expected at most {MAX_LINEUPS} combinations of the models of "
            f"robots, found {count}"
        )

    return slots


def _spec(model: Model) -> RobotSpec:
    """Return a robot model that worlds support, whose lasers measure at one instant.

    Parameters
    ----------
    model : str, Path or RobotSpec
        Name, file or description.

    Raises
    ------
    ArgumentError
        The model has a gripper or a battery that drains.
    """
    spec = (
        model
        if isinstance(model, RobotSpec)
        else find_robot(arguments.path(model, "robots"))
    )
    # Both have a state in Python objects, which the kernel of a batch cannot read.
    has = {
        "grippers": spec.gripper is not None,
        "batteries that drain": spec.battery.capacity_wh > 0.0,
    }

    for feature, there in has.items():
        if there:
            raise ArgumentError(
                f"robots: {spec.name}: {feature} are not supported in Worlds; "
                "use Simulation"
            )

    # The kernel of a batch casts all rays of a scan at once, on any material.
    plain = tuple(laser.without_optics() for laser in spec.lasers)
    # Worlds have no readings of devices, so those that only measure are left out.
    kept = tuple(one for one in spec.devices if not _only_measures(one))
    if (plain, kept) == (spec.lasers, spec.devices):
        return spec
    return replace(spec, lasers=plain, devices=kept)


def _only_measures(device: DeviceSpec) -> bool:
    table = find_device(device.type).table
    return table is not None and table.measures


def _check_devices(sim: Simulation) -> None:
    """Refuse devices that have a memory, act by themselves, or distort other sensors."""
    for table in sim.core.engine.tables.values():
        # Batteries without drain never act, so that they do no harm.
        if table.optional or (
            len(table) and hasattr(table, "act") and not isinstance(table, Batteries)
        ):
            raise ArgumentError(
                f'robots: devices with a state of their own ("{table.name}") are not '
                "supported in Worlds; use Simulation"
            )

    if sim.core.devices.is_distorted:
        raise ArgumentError(
            "robots: error models of range sensors are not supported in Worlds; "
            "use Simulation"
        )


def name_of(sensor: Sensor) -> str:
    """Return the name of a sensor: ``laser``, ``laser_2`` …, ``sonar``.

    Parameters
    ----------
    sensor : Sensor
        Kind and index of the sensor.
    """
    kind, index = sensor
    return kind if index == 0 else f"{kind}_{index + 1}"


def _chosen_sensors(
    specs: Sequence[RobotSpec], asked: Sequence[str] | None
) -> list[Sensor]:
    """Return the sensors that measure.

    Parameters
    ----------
    specs : sequence of RobotSpec
        All models of all robots.
    asked : sequence of str, optional
        Names of sensors. Default: all lasers, otherwise sonar.

    Raises
    ------
    ArgumentError
        No model has such a sensor, or `asked` is no list of names.
    """
    lasers = max(len(spec.lasers) for spec in specs)
    known: dict[str, Sensor] = {
        name_of(("laser", k)): ("laser", k) for k in range(lasers)
    }
    if any(spec.sonar is not None for spec in specs):
        known["sonar"] = "sonar", 0
    # Lasers alone by default: a sonar ring would change the shape of `ranges` for most
    # models.
    if asked is None:
        return [one for one in known.values() if one[0] == "laser"] or list(
            known.values()
        )

    # A text is a sequence of its letters, and would give a puzzling message.
    if isinstance(asked, str):
        raise ArgumentError(
            f'sensors: expected a list of names, such as ["{asked}"], found a text'
        )

    names = arguments.several(asked, "sensors", "names")
    return [known[arguments.one_of(name, "sensors", known)] for name in names]


def _bundles(spec: RobotSpec, sensor: Sensor, noise: bool) -> tuple[Bundle, ...]:
    """Return the beams of a robot's sensor; none if it has no such sensor.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot.
    sensor : Sensor
        Kind and index of the sensor.
    noise : bool
        Whether beams have errors.
    """
    kind, index = sensor
    if kind == "laser":
        return (
            (laser_bundle(spec.lasers[index], noise),)
            # Models of one batch may have different numbers of lasers.
            if index < len(spec.lasers)
            else ()
        )

    return sonar_bundles(spec.sonar, noise) if spec.sonar is not None else ()


def _late_steps(
    specs: Sequence[RobotSpec], most: float | None, dt: float
) -> int | None:
    """Return the highest latency with jitter, in steps.

    Parameters
    ----------
    specs : sequence of RobotSpec
        All models of all robots.
    most : float or None
        Highest latency with jitter that a caller wants, s; None: the highest of the
        models.
    dt : float
        Simulated time of a step, s.

    Returns
    -------
    int or None
        Number of steps; None if neither latencies nor rates have an effect.

    Raises
    ------
    ArgumentError
        Models exceed `most`, or `most` is out of range.
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
        # No buffer is needed, which saves memory and time per step.
        if greatest == 0.0 and not any(is_slower(rate, dt) for rate in rates):
            return None
        most = greatest
    else:
        most = arguments.number(
            # Latency and jitter each have the limit `MAX_LATENCY_S`, hence twice that.
            most,
            "max_latency",
            low=0.0,
            high=2.0 * MAX_LATENCY_S,
            unit="s",
        )
        if greatest > most:
            raise ArgumentError(
                f"max_latency: expected at least {greatest:g} s, the highest latency plus "
                f"jitter of the robots' commands and sensors, found {most:g} s"
            )

    return int(delay_steps(most, 0.0, 0.0, dt))


def silent(text: str) -> None:
    """Discard a warning: callers usually set start poses later."""


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
