"""dynamic_reconfigure server: acceleration limits of a robot, with ROSARIA's names.

Source: reference ros.md §3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from botyard.errors import WorldError
from botyard.model.robotport import RobotPort
from botyard.protocols.ros_messages.graphoffers import Service, Topic
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import Types


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of dynamic_reconfigure for one acceleration limit of a robot.

    Attributes
    ----------
    name, unit, about : str
        Name, unit and description.
    axis : str
        Axis of motion: ``x``, ``y`` or ``a`` (rotation).
    ramp : str
        ``accel`` or ``decel``.
    """

    name: str
    unit: str
    about: str
    axis: str
    ramp: str


PARAMETERS: Final = (
    Parameter("trans_accel", "m/s²", "translational acceleration", "x", "accel"),
    Parameter("trans_decel", "m/s²", "translational deceleration", "x", "decel"),
    Parameter("lat_accel", "m/s²", "lateral acceleration", "y", "accel"),
    Parameter("lat_decel", "m/s²", "lateral deceleration", "y", "decel"),
    Parameter("rot_accel", "rad/s²", "rotational acceleration", "a", "accel"),
    Parameter("rot_decel", "rad/s²", "rotational deceleration", "a", "decel"),
)
MAX_RAMP: Final = 100.0
"""Maximum of all parameters, m/s² or rad/s²."""
_AXES: Final = {"x": 0, "y": 1, "a": 2}


class Reconfigure:
    """dynamic_reconfigure server of one robot.

    Parameters
    ----------
    port : RobotPort
        Robot whose limits are changed.
    prefix : str
        Prefix of topics and services.
    types : Types
        Message types of the distribution.
    settled : callable
        Called after a change, so that it takes effect even while the simulation is
        paused.
    """

    def __init__(
        self,
        port: RobotPort,
        prefix: str,
        types: Types,
        settled: Callable[[], None] = lambda: None,
    ) -> None:
        self._port = port
        self._prefix = prefix
        self._types = types
        self._settled = settled
        # Limits that were requested and take effect at the next step, by name; and the
        # simulated time of the request, µs.
        self._requested: dict[str, float] = {}
        self._requested_us = -1

    def topics(self) -> list[Topic]:
        """Return the two latched topics of the server."""
        return [
            Topic(
                f"{self._prefix}parameter_descriptions",
                "dynamic_reconfigure/ConfigDescription",
                self._description,
                "limits that can be set",
                # The description never changes, so it is sent only once.
                version=lambda: 0,
                only="ros1",
            ),
            Topic(
                f"{self._prefix}parameter_updates",
                "dynamic_reconfigure/Config",
                lambda _: self.config(self.values()),
                "limits in force",
                # Pioneer clients also change limits, so the values themselves serve as
                # the version.
                version=lambda: tuple(self.values().items()),
                only="ros1",
            ),
        ]

    def service(self) -> Service:
        """Return the service ``set_parameters``."""
        return Service(
            f"{self._prefix}set_parameters",
            "dynamic_reconfigure/Reconfigure",
            self._set,
            "change limits",
            only="ros1",
        )

    def values(self) -> dict[str, float]:
        """Return the current limits, or the limits that were requested for the next step.

        A program that sets a limit and reads it at once expects its own value.

        Returns
        -------
        dict of str to float
            Value of each of `PARAMETERS` by name, m/s² or rad/s².
        """
        state = self._port.state()
        values = {
            p.name: float(getattr(getattr(state, p.ramp), p.axis)) for p in PARAMETERS
        }
        if self._port.time_us == self._requested_us:
            values |= self._requested
        return values

    def config(self, values: dict[str, float]) -> Any:
        """Return a dynamic_reconfigure/Config of values.

        Parameters
        ----------
        values : dict of str to float
            Values by name, m/s² or rad/s².
        """
        t = self._types
        double, group = (
            t["dynamic_reconfigure/DoubleParameter"],
            t["dynamic_reconfigure/GroupState"],
        )
        return t["dynamic_reconfigure/Config"](
            bools=[],
            ints=[],
            strs=[],
            doubles=[double(name, value) for name, value in values.items()],
            # The original server puts all parameters into one group of this name.
            groups=[group(name="Default", state=True, id=0, parent=0)],
        )

    def _description(self, _stamp: Stamp) -> Any:
        t = self._types
        described = [
            t["dynamic_reconfigure/ParamDescription"](
                name=p.name,
                type="double",
                level=0,
                description=f"{p.about}, {p.unit}",
                edit_method="",
            )
            for p in PARAMETERS
        ]

        group = t["dynamic_reconfigure/Group"](
            name="Default", type="", parameters=described, parent=0, id=0
        )

        names = [p.name for p in PARAMETERS]
        return t["dynamic_reconfigure/ConfigDescription"](
            groups=[group],
            max=self.config(dict.fromkeys(names, MAX_RAMP)),
            min=self.config(dict.fromkeys(names, 0.0)),
            dflt=self.config(self._defaults()),
        )

    def _defaults(self) -> dict[str, float]:
        limits = self._port.spec.limits
        return {
            p.name: float(getattr(getattr(limits, p.ramp), p.axis)) for p in PARAMETERS
        }

    def change(self, parameter: Parameter, value: float) -> None:
        """Change a limit.

        Parameters
        ----------
        parameter : Parameter
            One of `PARAMETERS`.
        value : float
            Limit, m/s² or rad/s².

        Raises
        ------
        WorldError
            The limit is not within 0 to `MAX_RAMP`.
        """
        self._change({parameter: value})

    def _change(self, wanted: dict[Parameter, float]) -> None:
        """Change limits: all, or none if one of them is invalid.

        Parameters
        ----------
        wanted : dict of Parameter to float
            New limits, m/s² or rad/s²; may be empty.

        Raises
        ------
        WorldError
            A limit is not within 0 to `MAX_RAMP`.
        """
        # Check all limits before the first one is changed.
        for parameter, value in wanted.items():
            if not (math.isfinite(value) and 0.0 <= value <= MAX_RAMP):
                raise WorldError(
                    f"{parameter.name}: expected 0 … {MAX_RAMP:g} {parameter.unit}, found {value:g}"
                )

        if self._requested_us != self._port.time_us:
            self._requested.clear()
            self._requested_us = self._port.time_us
        for parameter, value in wanted.items():
            self._requested[parameter.name] = value
            accel, decel = (value, None) if parameter.ramp == "accel" else (None, value)
            self._port.set_ramp(_AXES[parameter.axis], accel=accel, decel=decel)

        if wanted:
            self._settled()

    def _set(self, request: Any) -> Any:
        known = {p.name: p for p in PARAMETERS}
        # As in the server of dynamic_reconfigure, ignore unknown parameters; of a
        # repeated parameter, the last value counts.
        wanted = {
            known[e.name]: float(e.value)
            for e in request.config.doubles
            if e.name in known
        }

        self._change(wanted)
        return self._types["dynamic_reconfigure/ReconfigureResponse"](
            config=self.config(self.values())
        )
