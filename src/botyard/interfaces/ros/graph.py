"""`RosGraph`: topics, inputs and services of the world and all robots.

Any number of transports offer them. A message is made only if a transport has a
subscriber for it, and encoded once for each wire format.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from botyard.api.revisions import Subject
from botyard.control import Control
from botyard.control.error_barrier import ErrorBarrier
from botyard.control.parts import RunLoop
from botyard.interfaces.ros.mapcells import MapCells
from botyard.interfaces.ros.members import Context, Member, Offer, log
from botyard.interfaces.ros.robotoffers import RobotOffers
from botyard.interfaces.ros.transport import EncodedMessage, Publication, Transport
from botyard.interfaces.ros.worldoffers import WorldOffers
from botyard.model.world import THING
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import NODE, PROFILES, Profile, graph_name
from botyard.protocols.ros_messages.parameters import Value
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

NOT_OFFERED: Final[Mapping[str, str]] = {
    "Branch": "for people who look back on the page",
    "Redo": "undo and redo are for people on the page, not for programs",
    "Undo": "undo and redo are for people on the page, not for programs",
    "AddEach": "SpawnEntities of simulation_interfaces",
    "AddRobots": "a service call adds one; call it again",
    "ClearMap": "load an empty map by name",
    "CloneRobots": "add_robot with the same model",
    "Drive": "cmd_vel, which has its own timeout",
    "EnableMotors": "enable_motors of each robot, after TakeRobot",
    "Exit": "SetSimulationState of simulation_interfaces",
    "FreeMaps": "ROS reserves no maps",
    "Hold": "for a person who drags a robot on the page",
    "HoldTime": "StepSimulation of simulation_interfaces, or AMBF's World",
    "LoadWorld": "LoadWorld of simulation_interfaces",
    "MoveJoystick": "sensor_msgs/Joy is for the robot's program, not for the simulator",
    "PlaceAxis": "set_pose sets the whole pose",
    "PressEmergencyStop": "disable_motors of each robot",
    "ReloadMap": "load_map with the same name reads a changed file",
    "RotateLog": "only the operator has access to the log",
    "SendMap": "the page sends files by HTTP",
    "SetAnalogInput": "only Pioneer boards have such inputs",
    "SetBodyInfo": "SetEntityInfo of simulation_interfaces",
    "SetBodyState": "SetEntityState of simulation_interfaces",
    "SetDigitalInputs": "only Pioneer boards have such inputs",
    "SetGhost": "for Pioneer clients",
    "SetOdometryErrors": "a setting of the run",
    "StepNow": "StepSimulation of simulation_interfaces",
    "Stop": "SetSimulationState of simulation_interfaces",
    "SwitchInterface": "a program must not switch off its own connection",
    "TakeBodies": "only AMBF sets forces",
    "Throttle": "only AMBF throttles time",
    "UnloadWorld": "UnloadWorld of simulation_interfaces",
    "ReadFile": "only the operator has access to files",
    "CancelMovie": "only the operator has access to files",
    "WriteMovie": "only the operator has access to files",
    "WritePicture": "only the operator has access to files",
}
"""Operations without a topic or service in ROS, each with the reason."""
CMD_VEL_TIMEOUT: Final = 0.6
"""Timeout of cmd_vel, simulated s; the robot then stops, as real robots do."""


class RosGraph:
    """Offers the simulator to transports.

    Parameters
    ----------
    hub : RunLoop
        The run loop.
    control : Control
        The control surface.
    cells : MapCells
        The map as an occupancy grid.
    types : Types
        Message types.
    profile : Profile
        Selection and names of topics; see `botyard.protocols.ros_messages.naming`.
    is_localized : bool
        Whether botyard replaces a localization: it sends map → odom, and subscribes to
        ``initialpose``.
    has_map : bool, optional
        Whether the map is published. By default it is if the profile includes it, or if
        botyard replaces a localization.
    sim_time : bool
        Whether stamps are simulated time, which /clock publishes, instead of wall time.
    timeout : float
        Timeout of cmd_vel, simulated s; 0 for none.
    scan_rate : float, optional
        Rate of topics of lasers and sonar, Hz of simulated time, instead of the models'
        rates; 0 for every step.
    """

    def __init__(
        self,
        hub: RunLoop,
        control: Control,
        cells: MapCells,
        types: Types,
        *,
        profile: Profile = PROFILES["default"],
        is_localized: bool = False,
        has_map: bool | None = None,
        sim_time: bool = True,
        timeout: float = CMD_VEL_TIMEOUT,
        scan_rate: float | None = None,
    ) -> None:
        self._hub = hub
        self._sim = hub.sim
        self.types = types
        self.profile = profile
        self.sim_time = sim_time
        self._transports: list[Transport] = []
        self._bodies = -1
        maps = (is_localized or "map" in profile.world) if has_map is None else has_map
        self._context = Context(
            hub=hub,
            control=control,
            cells=cells,
            types=types,
            messages=Messages(types),
            data=StepData(is_localized),
            profile=profile,
            sim_time=sim_time,
            has_map=maps
            and not self._sim.scene.source.startswith(
                "ros:"
                # Otherwise another program publishes this map already.
            ),
            timeout=timeout,
            scan_rate=scan_rate,
        )
        self._members: dict[str, Member] = {}
        self._drivers = ErrorBarrier(log, "a command by ROS")
        self._measuring = ErrorBarrier(log, "sensors for ROS")
        self._stale = True
        self._seen = (self._sim.snapshot, self._sim.core.feed.revision)
        """Snapshot, and revision of the world, after the last publication."""
        self._steady: list[Offer] = []
        """Topics with subscribers that are due in every step."""
        self._periodic: list[Offer] = []
        """Other topics with subscribers."""
        self._robots: list[RobotTopics] = []
        """Robots of all members."""
        self._robot_offers = RobotOffers(self._context)
        self._world_offers = WorldOffers(
            self._context, self._members, lambda: self._robots
        )
        self._world = self._world_offers.member()
        for offer in self._world.topics:
            offer.topic.publish = partial(self._publish_now, offer)
        logging.getLogger("botyard").addHandler(self._world_offers.lines)
        hub.attach(self)
        hub.watch(self._publish_changes)
        self._unfollow = hub.follow(self._follow, Subject.BODIES)

    def close(self) -> None:
        """Withdraw all offers, and detach from the simulator."""
        self._hub.detach(self)
        self._hub.unwatch(self._publish_changes)
        self._unfollow()
        logging.getLogger("botyard").removeHandler(self._world_offers.lines)
        for transport in tuple(self._transports):
            # Removing a transport withdraws its offers, while the graph is still whole.
            self.remove(transport)

    @property
    def node(self) -> str:
        """Name of the world's node."""
        return self._world.node

    def parameters(self) -> dict[str, Value]:
        """Return the ROS 2 parameters of the world's node.

        They are the motion limits of every robot, and ``use_sim_time``.
        """
        return self._world_offers.values()

    # -- transports

    def add(self, transport: Transport) -> None:
        """Add a transport, and make all offers on it."""
        self._sync()
        self._transports.append(transport)
        for member in (self._world, *self._members.values()):
            self._offer(member, transport)

    def remove(self, transport: Transport) -> None:
        """Remove a transport, and withdraw all offers from it."""
        if transport in self._transports:
            self._transports.remove(transport)
        for member in (self._world, *self._members.values()):
            self._withdraw(member, transport)
            # No client is left that could stop the robot.
            if not self._transports and member.driver is not None:
                member.driver.end()

    def _offer(self, member: Member, transport: Transport) -> None:
        known = ("", transport.wire)
        for offer in member.topics:
            if offer.topic.only in known:
                offer.publications[transport] = self._advertised(transport, offer)

        self._refresh()
        handles = member.handles.setdefault(transport, [])
        inputs = (
            member.inputs
            # ROS 1 has one type for each name: reversed, so that the first input of a
            # name stays.
            if transport.mixes_types
            else {i.name: i for i in reversed(member.inputs)}.values()
        )
        handles += [transport.listen(member.node, entry) for entry in inputs]
        handles += [
            transport.serve(member.node, service)
            for service in member.services
            if service.only in known
        ]

    def _advertised(self, transport: Transport, offer: Offer) -> Publication:
        return transport.advertise(
            offer.node, offer.topic, lambda: self._latched_message(offer), self._changed
        )

    def _changed(self) -> None:
        """Note that a topic has got or lost a subscriber."""
        self._stale = True
        if (
            self._hub.is_paused
            # While the simulation is paused no step would notice it, and sensors show
            # who reads them.
        ):
            self._activate()

    def _refresh(self) -> None:
        """Note that topics were added or removed."""
        self._stale = True

    def _withdraw(self, member: Member, transport: Transport) -> None:
        for offer in member.topics:
            publication = offer.publications.pop(transport, None)
            if publication is not None:
                publication.close()

        self._refresh()
        for handle in member.handles.pop(transport, []):
            handle.close()

    # -- robots added and removed

    def _follow(self) -> None:
        """Update the graph after robots were added or removed, also while paused."""
        if self._transports:
            self._sync()

    def _sync(self) -> None:
        revision = self._sim.core.feed.last(Subject.BODIES)
        if revision == self._bodies:
            return
        self._bodies = revision
        robots = {
            n: r
            for n, r in self._sim.robots.items()
            if r.spec.drive and r.spec.name != THING
        }
        # Also removes a robot that was replaced by another of the same name.
        for name in [
            n for n, member in self._members.items() if robots.get(n) is not member.of
        ]:
            member = self._members.pop(name)
            if member.robot is not None:
                member.robot.close()
            for transport in self._transports:
                self._withdraw(member, transport)

        for name, robot in robots.items():
            if name not in self._members:
                member = self._members[name] = self._robot_member(
                    robot, len(robots) == 1
                )
                for transport in self._transports:
                    self._offer(member, transport)

        # Robots' limits are parameters of the world's node, so they have changed.
        self._world_offers.parameters.events.publish()
        self._robots = [
            member.robot
            for member in self._members.values()
            if member.robot is not None
        ]

    def _robot_member(self, robot: Robot, alone: bool) -> Member:
        return self._robot_offers.member(
            robot, self._unique_ros_name(robot.name), alone
        )

    def _unique_ros_name(self, robot: str) -> str:
        """Return a unique ROS name for a robot.

        ROS allows fewer characters, so different names could become equal.
        """
        taken = {
            NODE: "the simulator",
            **{m.ros_name: f'"{name}"' for name, m in self._members.items()},
        }
        numbered = self._context.profile.numbered
        if numbered:
            return next(
                name
                for name in map(lambda k: numbered.format(number=k), itertools.count())
                if name not in taken
            )

        first = name = graph_name(robot)
        n = 2
        while name in taken:
            name, n = f"{first}_{n}", n + 1
        # The user would look for the robot under its own name.
        if name != first:
            log.warning(
                'ROS: "%s" would have the names of %s: it is %s there',
                robot,
                taken[first],
                name,
            )

        return name

    # -- publishing

    def stamp(self) -> Stamp:
        """Return the time stamp of the present state."""
        return self._context.stamp()

    def _publish_now(self, offer: Offer) -> None:
        """Publish a topic between two steps, if it has subscribers."""
        if not self._transports:
            return
        if self._stale:
            self._activate()
        if offer.wanted:
            offer.barrier.run(self._publish, offer, self.stamp())

    def _publish_changes(self) -> None:
        """While paused, publish the latched topics that have changed.

        No step follows that would publish them.
        """
        if not self._transports or not self._hub.is_paused or not self._is_new():
            return
        self._context.data.forget()
        if self._stale:
            self._activate()
        stamp = self.stamp()
        for offer in (*self._steady, *self._periodic):
            if offer.topic.version is not None:
                offer.barrier.run(self._publish, offer, stamp)

    def _is_new(self) -> bool:
        """Return whether the world has changed since the last call."""
        snapshot, revision = self._seen
        self._seen = (self._sim.snapshot, self._sim.core.feed.revision)
        return self._seen[0] is not snapshot or self._seen[1] != revision

    def on_snapshot(self, now: float) -> None:
        """Publish the topics that are due and have subscribers, after a step."""
        if not self._transports:
            return
        self._sync()
        self._is_new()
        self._context.data.forget()
        stamp, time_us = self.stamp(), self._sim.snapshot.time_us
        if self._world_offers.steps is not None:
            self._world_offers.steps.expire()
        for member in self._members.values():
            if member.driver is not None and member.driver.is_active:
                self._drivers.run(member.driver.tick)

        if self._stale:
            self._activate()
        # Sensors that are due are measured together, which costs less than one at a
        # time.
        due = self._steady + [
            offer for offer in self._periodic if offer.is_due(time_us)
        ]
        sensors = [
            offer.topic.sensor for offer in due if offer.topic.sensor is not None
        ]
        if sensors:
            self._measuring.run(self._sim.fleet.measure, sensors)
        publish = self._publish
        # A context manager would cost too much: this loop runs thousands of times a
        # second.
        for offer in due:
            try:
                publish(offer, stamp)
            except Exception as error:
                offer.barrier.fault(error)

    def _activate(self) -> None:
        """Find the topics with subscribers; unsubscribe from other sensors."""
        self._stale = False
        self._steady, self._periodic = [], []
        for member in (self._world, *self._members.values()):
            for offer in member.topics:
                before, offer.readers = (
                    offer.readers,
                    [p for p in offer.publications.values() if p.is_wanted],
                )
                new = [p for p in offer.readers if p not in before]
                if bool(offer.readers) != offer.wanted:
                    offer.wanted = bool(offer.readers)
                    offer.topic.wanted(offer.wanted)

                if new and offer.topic.version is not None:
                    # Reset, so that the next step sends the latched message to all.
                    if not all(p.replays_latched for p in new):
                        offer.last_version, offer.period_us = None, (0, 0)
                    elif len(new) == len(
                        offer.readers
                        # The transport has sent the latched message to all of them.
                    ):
                        offer.last_version = offer.topic.version()

                if offer.wanted:
                    (self._periodic if offer.topic.period else self._steady).append(
                        offer
                    )

    def _publish(self, offer: Offer, stamp: Stamp) -> None:
        topic = offer.topic
        # A latched topic is sent only when its contents have changed.
        if topic.version is not None:
            version = topic.version()
            # Nothing has changed since the last message.
            if version == offer.last_version:
                return
            offer.last_version = version

        if topic.age_us is not None:
            age_us = topic.age_us()
            measured_us = self._sim.snapshot.time_us - age_us
            # Nothing new was measured since the last message.
            if age_us and measured_us == offer.measured_us:
                return
            offer.measured_us = measured_us

        message = EncodedMessage(self.types, topic, stamp)
        if topic.version is not None:
            offer.latched = offer.last_version, message
        if not message.is_nothing:
            for publication in offer.readers:
                publication.send(message)

    def _latched_message(self, offer: Offer) -> EncodedMessage | None:
        """Return the present message of a latched topic, for a late joiner."""
        version = offer.topic.version() if offer.topic.version is not None else None
        if offer.latched is None or version is None or offer.latched[0] != version:
            offer.latched = (
                version,
                EncodedMessage(self.types, offer.topic, self.stamp()),
            )

        message = offer.latched[1]
        return None if message.is_nothing else message

    # -- description

    def describe(self) -> Iterable[tuple[str, str, str, str]]:
        """Yield kind, name, type and description of each offer."""
        self._sync()
        for member in (self._world, *self._members.values()):
            yield from (
                ("topic", t.topic.name, t.topic.type_name, t.topic.about)
                for t in member.topics
            )
            yield from (("input", i.name, i.type_name, i.about) for i in member.inputs)
            yield from (
                ("service", s.name, s.type_name, s.about) for s in member.services
            )


__all__ = ["CMD_VEL_TIMEOUT", "NOT_OFFERED", "RosGraph"]
