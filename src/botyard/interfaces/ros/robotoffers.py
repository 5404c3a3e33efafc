"""Topics, command inputs, services and parameters that a robot has in ROS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from botyard.control import CommandDevice, GoTo, Operation, Place, TakeRobot
from botyard.geometry import Pose
from botyard.interfaces.ros.choices import Choices
from botyard.interfaces.ros.description import description
from botyard.interfaces.ros.facts import facts
from botyard.interfaces.ros.members import ROS, SOURCE, Context, Member, Offer, log
from botyard.interfaces.ros.nav2 import Nav2Actions
from botyard.names import shown
from botyard.protocols.ros_messages.cmdvel import Driver
from botyard.protocols.ros_messages.frames import MAP
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.messages import yaw_of
from botyard.protocols.ros_messages.naming import Names, names_of
from botyard.protocols.ros_messages.parameters import Parameters
from botyard.protocols.ros_messages.reconfigure import Reconfigure
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.transforms import Transforms
from botyard.sim.simulation import Robot


class RobotOffers:
    """Factory of the ROS nodes of robots."""

    def __init__(self, context: Context) -> None:
        self._c = context

    def member(self, robot: Robot, ros_name: str, alone: bool) -> Member:
        """Return the ROS node of a robot, with its topics and services.

        Parameters
        ----------
        robot : Robot
            The robot.
        ros_name : str
            Unique name of the robot in ROS.
        alone : bool
            Whether the robot is the only one in the world, so that a profile may omit
            its namespace.
        """
        names = names_of(ros_name, self._c.profile, alone)
        port = self._c.control.do(ROS, TakeRobot(robot=robot.name))
        topics = RobotTopics(
            port,
            names,
            self._c.messages,
            self._c.types,
            self._c.data,
            self._c.scan_rate,
        )
        choices = Choices(
            self._c.messages,
            names,
            estimates=not self._c.data.frames.is_localized,
        )
        offered = [
            *topics.topics(),
            *self._topics_for_views(topics),
            *choices.topics,
        ]

        for device, problem in topics.problems.items():
            log.warning(
                "robot %s: the device %s has no ROS topics: %s",
                robot.name,
                device,
                problem,
            )

        def conflict() -> None:
            others = [s for s in robot.clients if s != SOURCE]
            if others:
                log.warning(
                    "robot %s: ROS and %s command it at the same time; the last "
                    "command counts",
                    robot.name,
                    ", ".join(others),
                )

            # Claim the robot even if another source commands it: the conflict is only
            # logged, because ROS has no ownership of robots.
            robot.claim(SOURCE)

        driver = Driver(
            port,
            conflict,
            lambda: robot.release(SOURCE),
            self._c.timeout,
            self._c.stamp,
            lambda text: log.warning("%s: %s", robot.name, text),
        )
        put = partial(self._place, robot.name)
        on, off = (
            self._c.empty(lambda: driver.enable(True)),
            self._c.empty(lambda: driver.enable(False)),
        )
        stamped = "velocity, with a header: refused if its stamp is older than `--cmd-vel-timeout`"
        about: tuple[
            tuple[str, str, Callable[[Any], None], str, type[Operation[Any]] | None],
            ...,
        ] = (
            (
                "cmd_vel",
                "geometry_msgs/Twist",
                driver.twist,
                "velocity: m/s and rad/s",
                None,
            ),
            (
                "cmd_vel",
                "geometry_msgs/TwistStamped",
                driver.stamped,
                f"{stamped} (ROS 2)",
                None,
            ),
            (
                "cmd_vel_stamped",
                "geometry_msgs/TwistStamped",
                driver.stamped,
                stamped,
                None,
            ),
            (
                "enable_motors_cmd",
                "std_msgs/Bool",
                lambda m: driver.enable(bool(m.data)),
                "motors on or off",
                None,
            ),
            (
                "set_pose",
                "geometry_msgs/PoseStamped",
                put,
                "place the robot at this pose",
                Place,
            ),
        )

        if robot.spec.kinematics.steers:
            about += (
                (
                    "ackermann_cmd",
                    "ackermann_msgs/AckermannDriveStamped",
                    driver.ackermann_stamped,
                    "speed, m/s, and steering angle, rad: refused as `cmd_vel_stamped`",
                    None,
                ),
            )

        # Subscribe to ``initialpose`` only if botyard replaces the localization;
        # otherwise AMCL subscribes to it.
        if self._c.data.frames.is_localized:
            moves = names.profile.moves_by_initialpose
            estimate = (
                "place the robot at this pose"
                if moves
                else "set the estimated pose; the localization error (--localization) stays"
            )
            set_estimate = partial(self._set_estimate, topics)
            about += (
                (
                    "initialpose",
                    "geometry_msgs/PoseWithCovarianceStamped",
                    set_estimate,
                    estimate,
                    Place if moves else None,
                ),
            )

        inputs = [
            Input(names.topic(name), kind, act, text, operation=operation)
            for name, kind, act, text, operation in about
            if names.offers(name)
        ]
        inputs += self._device_inputs(robot, names)
        switches = {
            "enable_motors": (on, "motors on"),
            "disable_motors": (off, "motors off"),
        }
        services = [
            Service(names.topic(name), "std_srvs/Empty", act, text)
            for name, (act, text) in switches.items()
            if names.offers(name)
        ]
        inputs = [i for i in inputs if self._c.is_allowed(i)]
        limits = None

        # Some profiles have no motion limits that clients can change, like the robots
        # they copy.
        if names.offers("limits"):
            limits = Reconfigure(port, names.prefix, self._c.types, self._c.hub.settle)
            offered += limits.topics()
            services.append(limits.service())

        if (
            # A robot with a node of its own needs the services of parameters, which
            # every ROS 2 node has.
            names.node != self._c.profile.world_node
        ):
            described = facts(self._c, topics, names)
            services += Parameters(
                names.node,
                self._c.types,
                lambda: {**self._c.parameters(limits), **described},
            ).services()

        actions = None
        if self._c.has_nav2 and self._c.control.allows(ROS, GoTo):
            actions = Nav2Actions(self._c, robot, names.topic, self._c.soon)
            services += [s for server in actions.servers for s in server.services]
            offered += actions.topics

        offers = [Offer(t, names.node) for t in offered]
        return Member(
            names.node,
            offers,
            inputs,
            services,
            driver,
            topics,
            limits,
            ros_name,
            actions=actions,
            choices=choices,
            of=robot,
        )

    def _device_inputs(self, robot: Robot, names: Names) -> Iterable[Input]:
        """Yield the topics that command actuators."""
        for device, reader in robot.devices.items():
            for command in reader.kind.commands:
                # A profile that copies a certain robot has only the topics of that
                # robot.
                if names.profile.name in command.profiles:
                    about = f"{command.about or command.name}{f', {command.unit}' if command.unit else ''}"
                    take = partial(self._command, robot.name, device, command.name)
                    topic = names.topic(f"{device}/{command.name}_cmd")
                    yield Input(
                        topic, "std_msgs/Float64", take, about, operation=CommandDevice
                    )

    def _command(self, robot: str, device: str, command: str, message: Any) -> None:
        self._c.control.do(
            ROS,
            CommandDevice(
                robot=robot, device=device, command=command, value=float(message.data)
            ),
        )

    def _place(self, name: str, message: Any) -> None:
        pose = message.pose
        self._c.put(
            name,
            float(pose.position.x),
            float(pose.position.y),
            yaw_of(pose.orientation),
        )

    def _topics_for_views(self, topics: RobotTopics) -> list[Topic]:
        """Return the additional topics that visualisers and navigation need."""
        names, found = topics.names, []
        if names.profile.has_own_tf:
            found += Transforms(
                self._c.types, self._c.messages, names.tf, lambda: [topics]
            ).topics()

        if names.offers("robot_description"):
            found.append(description(topics, self._c.messages))
        if names.offers("map") and self._c.has_map:
            found.append(self._c.map_topic(names.topic("map")))
        return found

    def _set_estimate(self, topics: RobotTopics, message: Any) -> None:
        """Accept a pose of another program (``initialpose``).

        Parameters
        ----------
        topics : RobotTopics
            Topics of the robot.
        message : geometry_msgs/PoseWithCovarianceStamped
            The pose, in the frame of the map.
        """
        place, frame = message.pose.pose, str(message.header.frame_id)
        pose = Pose(
            float(place.position.x), float(place.position.y), yaw_of(place.orientation)
        )
        if frame not in ("", MAP) or not all(map(math.isfinite, pose)):
            text = (
                f'initialpose: expected finite numbers in the frame "{MAP}", found '
                f'x, y, yaw {tuple(pose)} in the frame "{shown(frame)}"'
            )
            log.warning("%s: %s", topics.port.name, text)
            return

        self.estimate(topics, pose)

    def estimate(self, topics: RobotTopics, pose: Pose) -> None:
        """Set the estimated pose of a robot whose localization botyard replaces.

        Parameters
        ----------
        topics : RobotTopics
            Topics of the robot.
        pose : Pose
            Pose in the frame of the map, m and rad. Profiles with `moves_by_initialpose`
            place the robot there.
        """
        if topics.names.profile.moves_by_initialpose:
            self._c.put(topics.port.name, *pose)
        else:
            topics.frames.set_pose(pose)


__all__ = ["RobotOffers"]
