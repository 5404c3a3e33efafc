"""Pheromone pen: an actuator that raises the level of a pheromone field under a robot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from botyard.engine.fields import field_of
from botyard.engine.layout import F8, I8
from botyard.engine.rng import body_uid
from botyard.engine.tables import Column, Table
from botyard.errors import ModelError
from botyard.model.devices import (
    Command,
    Device,
    DeviceSpec,
    Field,
    RosMessage,
    parameter,
)
from botyard.model.floorlook import cells_at
from botyard.names import is_name
from botyard.numerics.elementwise import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.layout import U8
    from botyard.engine.simulation import Engine

MAX_RATE: Final = 1e6
"""Largest rate of a pen, per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PheromonePenSpec(DeviceSpec):
    """Description of a pen that writes a pheromone field.

    Attributes
    ----------
    pheromone : str
        Name of the field of the floor. On a floor without it, the pen writes nothing.
    position : (float, float)
        Point in the frame of the robot, m.
    rate : float
        Rate at the start, 1/s: the level of the cell under the point rises by rate · Δt in
        each step.
    max_rate : float
        Largest rate that can be commanded, 1/s.
    """

    type: str = field(default="pheromone_pen", init=False)
    pheromone: str = "trail"
    position: tuple[float, float] = parameter((0.0, 0.0), unit="m", low=-1e3, high=1e3)
    rate: float = parameter(0.0, low=0.0, high=MAX_RATE)
    max_rate: float = parameter(10.0, low=0.0, high=MAX_RATE)

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        if not is_name(self.pheromone):
            raise ModelError(
                "pheromone pen: pheromone: expected the name of a field, found "
                f'"{self.pheromone[:80]}"'
            )

        if self.rate > self.max_rate:
            raise ModelError(
                f"pheromone pen: rate: expected at most max_rate ({self.max_rate:g}), "
                f"found {self.rate:g}"
            )


class PheromonePens(Table):
    """Rates and points of all pens."""

    name = "pheromone_pen"
    optional = True
    columns: ClassVar = {
        "rate": Column(np.float64, low=0.0, high=MAX_RATE),
        "x": Column(np.float64),
        "y": Column(np.float64),
        # A hash of the field's name: a map may have other fields, in another order.
        "field": Column(np.uint64),
    }
    rate: F8
    x: F8
    y: F8
    field: U8

    def act(self, engine: Engine, dt: float) -> None:
        """Write the fields for the duration of a step.

        Parameters
        ----------
        engine : Engine
            Engine that has this table.
        dt : float
            Duration of the step, s.
        """
        writing = np.flatnonzero(self.rate > 0.0)
        if not len(writing):
            return
        # The order of rows must not matter for sums in one cell.
        bodies = self.body[writing]
        writing = writing[np.argsort(engine.state.uid[bodies], kind="stable")]
        x, y, th = engine.state.pose[self.body[writing]].T
        c, s = cosine_sine(th)
        px, py = self.x[writing], self.y[writing]
        points = np.stack([x + (c * px - s * py), y + (s * px + c * py)], axis=1)
        amounts = self.rate[writing] * dt
        for wanted in np.unique(self.field[writing]).tolist():
            table = field_of(engine, wanted)
            if table is not None:
                of: I8 = np.flatnonzero(self.field[writing] == wanted)
                table.deposit(cells_at(table.field, points[of]), amounts[of])


def _rate(_: PheromonePenSpec, view: View) -> float:
    memory: Any = view.memory
    return float(memory.table.rate[memory.number])


PHEROMONE_PEN: Final = Device(
    name="pheromone_pen",
    about="writes a pheromone field under the robot",
    spec=PheromonePenSpec,
    table=PheromonePens,
    start=lambda spec: {
        "rate": spec.rate,
        "x": spec.position[0],
        "y": spec.position[1],
        "field": body_uid(spec.pheromone),
    },
    commands=(
        Command(
            name="rate",
            unit="1/s",
            limits=lambda spec: (0.0, spec.max_rate),
            columns=lambda rate: {"rate": rate},
            about="level that the pen adds per second",
        ),
    ),
    read=_rate,
    fields=(Field("rate", "1/s"),),
    rows=lambda rate: [(rate,)],
    ros=RosMessage(
        topic="pheromone_pen",
        type_name="std_msgs/Float64",
        fields=lambda _, rate: {"data": rate},
        frame=None,
    ),
)

__all__ = ["PHEROMONE_PEN", "PheromonePenSpec", "PheromonePens"]
