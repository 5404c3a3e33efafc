"""Descriptions of bodies for the engine, made from robots and boxes."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.engine.layout import (
    Control,
)
from botyard.engine.rng import body_uid
from botyard.geometry import Outline, Pose, transform_point
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Axes, Drive, Kinematics
from botyard.model.obstacles import BoxObject, Returns, Visible, rectangle
from botyard.model.robot import (
    EULER_RAMPS,
    NO_DRIFT,
    PLAIN_COMMANDS,
    CommandSpec,
    OdometryDrift,
    RobotSpec,
)
from botyard.model.scene import in_polygon
from botyard.model.trailers import TrailerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySpec:
    """Description of a body for the engine.

    Attributes
    ----------
    name : str
        Unique name.
    parts : tuple of outlines
        Polygons in the body frame, m.
    kinematics : Kinematics
        Kind of drive and limits of motion.
    ramps : str
        Integration of ramps within a step, see `RobotSpec.ramps`.
    odometry_error : Axes
        Highest proportional errors.
    odometry_error_low : Axes or None
        Lowest proportional errors; None: the negatives of the highest.
    odometry_drift : OdometryDrift
        Random errors by distance and angle.
    perfect_odometry : bool
        Whether odometry is the true pose.
    odometry_origin : Pose or None
        World pose of the origin of odometry at its start; None: the start pose.
    wheel_ratio : float
        Diameter of the right wheel divided by the left one's.
    commands : CommandSpec
        Latency, rate and scale of commands.
    returns : Returns
        Which sensors see the body, how bright, and whether it stops other bodies.
    feels : bool
        Whether contacts are reported (`State.contact`).
    dynamics : DynamicsSpec or None
        Mass, friction, damping; None: a kinematic body, which moves as commanded and
        cannot be pushed.
    trailers : tuple of TrailerSpec
        Trailers behind a robot, from the front.
    is_trailer : bool
        Whether the body is a trailer, which follows the body in front of it.
    """

    name: str
    parts: tuple[Outline, ...]
    kinematics: Kinematics = Kinematics(kind=Drive.NONE)
    ramps: str = EULER_RAMPS
    odometry_error: Axes = Axes()
    odometry_error_low: Axes | None = None
    odometry_drift: OdometryDrift = NO_DRIFT
    perfect_odometry: bool = False
    odometry_origin: Pose | None = None
    wheel_ratio: float = 1.0
    commands: CommandSpec = PLAIN_COMMANDS
    returns: Returns = Returns()
    feels: bool = True
    dynamics: DynamicsSpec | None = None
    trailers: tuple[TrailerSpec, ...] = ()
    is_trailer: bool = False

    @property
    def uid(self) -> int:
        """Stable 64-bit identity of the body, see `body_uid`."""
        return body_uid(self.name)

    def mask(self, seen: Visible) -> int:
        """Return `State.mask` for classes of visibility.

        A body with mass does not stop other bodies: they push it.

        Parameters
        ----------
        seen : Visible
            Classes of sensors that see the body, and `OBSTACLE` if it stops others.
        """
        # Moves stop at bodies with the class `OBSTACLE`; contacts of bodies with mass
        # are solved later.
        return int(seen if self.dynamics is None else seen.with_mass())

    @property
    def control(self) -> Control:
        """`State.control` of the new body: driven by motors, by forces, or neither."""
        # Kinematic bodies follow their commands exactly and need no control of forces.
        if self.dynamics is None:
            return Control.NONE
        return Control.MOTORS if self.kinematics.drives else Control.FORCE


def robot_body(spec: RobotSpec, name: str) -> BodySpec:
    """Return the body of a robot: its outline and protruding cases of sensors.

    See COL-002 and COL-010 of the feature table.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot.
    name : str
        Name in the world. It identifies the body in random draws.
    """
    parts = [spec.outline, *spec.parts]
    for laser in spec.lasers:
        if laser.size[0] > 0 and laser.size[1] > 0:
            case = tuple(
                transform_point(laser.pose, x, y) for x, y in rectangle(*laser.size)
            )
            # A sensor's case within the outline touches nothing before the outline
            # does.
            if not all(in_polygon(spec.outline, x, y) for x, y in case):
                parts.append(case)

    return BodySpec(
        name=name,
        parts=tuple(parts),
        kinematics=spec.kinematics,
        ramps=spec.ramps,
        odometry_error=spec.odometry_error,
        odometry_error_low=spec.odometry_error_low,
        odometry_drift=spec.odometry_drift,
        perfect_odometry=spec.perfect_odometry,
        odometry_origin=spec.odometry_origin,
        wheel_ratio=spec.wheel_ratio,
        commands=spec.commands,
        returns=spec.returns,
        # Recording contacts costs time in each step, so only robots with bumpers ask
        # for it.
        feels=any(device.feels for device in spec.devices),
        dynamics=spec.dynamics,
        trailers=spec.trailers,
        is_trailer=spec.is_trailer,
    )


def box_body(box: BoxObject) -> BodySpec:
    """Return the body of a movable box of the map.

    Parameters
    ----------
    box : BoxObject
        Box; its pose is not a part of the body.
    """
    return BodySpec(
        name=box.name, parts=box.outlines, returns=box.returns, dynamics=box.dynamics
    )
