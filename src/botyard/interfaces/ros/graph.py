"""ROS graph of the simulator: topics, inputs and services of the world and all robots.

Any number of transports carry them to clients. A message is made only if it has a
subscriber, and is encoded once for each wire format.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from botyard.api.revisions import Subject
from botyard.control import (
    ClearMap,
    Control,
    DockRobots,
    Done,
    LoadMap,
    LoadWorld,
    ReloadMap,
    Reset,
    SendMap,
    SendRobots,
    Stop,
    UnloadWorld,
)
from botyard.control.census import TopicFacts
from botyard.control.error_barrier import ErrorBarrier
from botyard.control.parts import RunLoop
from botyard.geometry import Pose
from botyard.interfaces.ros.mapcells import MapCells
from botyard.interfaces.ros.members import SOURCE, Context, Member, Offer, log
from botyard.interfaces.ros.robotoffers import RobotOffers
from botyard.interfaces.ros.transport import EncodedMessage, Publication, Transport
from botyard.interfaces.ros.worldoffers import WorldOffers
from botyard.model.world import THING
from botyard.numerics.elementary import atan2
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import NODE, PROFILES, Profile, graph_name
from botyard.protocols.ros_messages.parameters import Value
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.transforms import TRANSFORMS
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

NOT_OFFERED: Final[Mapping[str, str]] = {
    "ClearField": "clients command the rate of a robot's pheromone_pen",
    "MarkFloor": "clients command the rate of a robot's pheromone_pen",
    "RenameRobots": "names of topics and frames do not change under their readers",
    "RemoveZone": "scenarios and programs set zones of the floor",
    "EditMap": "only a user who draws on the page needs it",
    "RunTraffic": "only a user who draws on the page needs it",
    "EndTraffic": "only a user who watches traffic on the page needs it",
    "HoldTraffic": "only a user who watches traffic on the page needs it",
    "StepTraffic": "only a user who watches traffic on the page needs it",
    "GrantSector": "only a user who watches traffic on the page needs it",
    "RevokeSector": "only a user who watches traffic on the page needs it",
    "SetZone": "scenarios and programs set zones of the floor",
    "Branch": "only a user who looks back on the page needs it",
    "Redo": "undo and redo are for users of the page, not for programs",
    "Undo": "undo and redo are for users of the page, not for programs",
    "AddEach": "clients call SpawnEntities of simulation_interfaces",
    "AddRobots": "a service call adds one robot; repeat the call",
    "ClearMap": "clients load an empty map by name",
    "CloneRobots": "clients call add_robot with the same model",
    "DockRobots": "clients send goals to each robot (GoTo)",
    "FindPlaces": "only a user who adds robots on the page looks at places first",
    "LookAtMap": "only a user who chooses a map on the page needs it",
    "SetCharge": "only a user of the page needs it",
    "SendRobots": "clients send goals to each robot (GoTo)",
    "Drive": "clients publish on cmd_vel, which has its own timeout",
    "EnableMotors": "clients call enable_motors of a robot, after TakeRobot",
    "Exit": "clients call SetSimulationState of simulation_interfaces",
    "FreeMaps": "ROS reserves no maps",
    "Hold": "only a user who drags a robot on the page needs it",
    "HoldTime": "clients call StepSimulation of simulation_interfaces, or use AMBF's World",
    "LoadWorld": "clients call LoadWorld of simulation_interfaces",
    "GoTo": "clients call the actions of Nav2, with --nav2-actions",
    "MoveJoystick": "sensor_msgs/Joy is for the robot's program, not for the simulator",
    "PlaceAxis": "set_pose sets the whole pose",
    "PressEmergencyStop": "clients call disable_motors of a robot",
    "ReloadMap": "load_map with the same name reads a changed file",
    "RotateLog": "only the operator has access to the log",
    "SendMap": "the page sends files by HTTP",
    "SetPoseEstimate": "programs publish on initialpose themselves",
    "SetAnalogInput": "only Pioneer boards have such inputs",
    "SetBodyInfo": "clients call SetEntityInfo of simulation_interfaces",
    "SetBodyState": "clients call SetEntityState of simulation_interfaces",
    "SetDigitalInputs": "only Pioneer boards have such inputs",
    "SetGhost": "only Pioneer clients need it",
    "SetOdometryErrors": "options set it for the whole run",
    "StepNow": "clients call StepSimulation of simulation_interfaces",
    "Stop": "clients call SetSimulationState of simulation_interfaces",
    "SwitchInterface": "a program must not switch off its own connection",
    "TakeBodies": "only AMBF sets forces",
    "Throttle": "only AMBF throttles time",
    "UnloadWorld": "clients call UnloadWorld of simulation_interfaces",
    "ReadFile": "only the operator has access to files",
    "CancelMovie": "only the operator has access to files",
    "WriteMovie": "only the operator has access to files",
    "WritePicture": "only the operator has access to files",
}
"""Operations for which ROS has no topic or service, each with the reason."""
REPLACING: Final = (
    ClearMap,
    LoadMap,
    LoadWorld,
    ReloadMap,
    Reset,
    SendMap,
    Stop,
    UnloadWorld,
)
"""Operations that reset the world or replace the map, so that robots' goals are aborted."""
# The default of ROSARIA's parameter ``~cmd_vel_timeout``.
CMD_VEL_TIMEOUT: Final = 0.6
"""Simulated time without cmd_vel messages after which a robot stops, s, as real robots do."""


class RosGraph:
    """ROS graph of a simulation, which transports (ROS 1, ROS 2, WebSocket) carry to clients.

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
        Simulated time without cmd_vel messages after which a robot stops, s; 0 for no
        timeout.
    scan_rate : float, optional
        Rate of the topics of lasers and sonar, Hz in simulated time; 0 for every step.
        By default the robots' models set the rates.
    has_nav2 : bool
        Whether robots offer the actions of Nav2.
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
        has_nav2: bool = False,
    ) -> None:
        self._hub = hub
        self._sim = hub.sim
        self.types = types
        self.profile = profile
        self.sim_time = sim_time
        self._transports: list[Transport] = []
        # −1 is below any revision, so that the first call of `_sync` adds the robots.
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
                # If the world's map comes from a ROS topic, another program already
                # publishes it.
            ),
            timeout=timeout,
            scan_rate=scan_rate,
            has_nav2=has_nav2,
        )
        self._members: dict[str, Member] = {}
        self._drivers = ErrorBarrier(log, "executing a command of ROS")
        self._measuring = ErrorBarrier(log, "measuring sensors for ROS")
        self._stale = True
        self._seen = (self._sim.snapshot, self._sim.core.feed.revision)
        """Snapshot and revision of the world at the time of the last publication."""
        self._steady: list[Offer] = []
        """Topics with subscribers whose messages are published in every step."""
        self._periodic: list[Offer] = []
        """Topics with subscribers whose messages have a longer period."""
        self._robots: list[RobotTopics] = []
        """Topics of the robots of all nodes (members) of the graph."""
        self._robot_offers = RobotOffers(self._context)
        self._world_offers = WorldOffers(
            self._context, self._members, lambda: self._robots
        )
        self._world = self._world_offers.member()

        for offer in self._world.topics:
            offer.topic.publish = partial(self._publish_now, offer)
        # Handlers of loggers live as long as the process, so `close` removes this
        # handler.
        logging.getLogger("botyard").addHandler(self._world_offers.lines)
        hub.attach(self)
        hub.watch(self._publish_changes)
        self._unfollow = hub.follow(self._follow, Subject.BODIES)
        control.estimators.append(self._estimate)
        self._unlisten = control.listen(self._performed)

    def close(self) -> None:
        """Withdraw all offers, and detach from the simulator."""
        self._hub.detach(self)
        self._hub.unwatch(self._publish_changes)
        self._unfollow()
        self._context.control.estimators.remove(self._estimate)
        self._unlisten()
        logging.getLogger("botyard").removeHandler(self._world_offers.lines)
        # Loop over a copy, because `remove` changes the list.
        for transport in tuple(self._transports):
            # Removing a transport withdraws its offers, while the graph is still whole.
            self.remove(transport)

    @property
    def node(self) -> str:
        """Name of the world's node."""
        return self._world.node

    def parameters(self) -> dict[str, Value]:
        """Return the ROS 2 parameters of the world's node.

        The parameters are the motion limits of every robot, and ``use_sim_time``.
        """
        return self._world_offers.values()

    # -- transports

    def add(self, transport: Transport) -> None:
        """Add a transport, and offer all topics and services on it.

        Parameters
        ----------
        transport : Transport
            Transport of topics and services. Robots that are added later are offered on
            it also.
        """
        self._sync()
        self._transports.append(transport)
        for member in (self._world, *self._members.values()):
            self._offer(member, transport)

    def remove(self, transport: Transport) -> None:
        """Remove a transport, and withdraw all topics and services from it.

        If it is the last transport, the robots that ROS drives stop.

        Parameters
        ----------
        transport : Transport
            Transport. It may not have been added.
        """
        if transport in self._transports:
            self._transports.remove(transport)
        for member in (self._world, *self._members.values()):
            self._withdraw(member, transport)
            # No client could stop the robot any more.
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
            # ROS 1 allows one type per topic name: keep the first input of each name
            # (the dict keeps the last one, hence reversed).
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
        """Mark the lists of topics as stale, because a topic has gained or lost a subscriber."""
        self._stale = True
        if (
            self._hub.is_paused
            # While the simulation is paused, no step follows that would update the
            # subscriptions to sensors, which the page shows.
        ):
            self._activate()

    def _refresh(self) -> None:
        """Mark the lists of topics as stale, because topics were added or removed."""
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
        # Store the revision first, so that an error below does not repeat the work in
        # each step.
        self._bodies = revision
        robots = {
            n: r
            for n, r in self._sim.robots.items()
            # Bodies without a drive, and things that programs spawned, are no robots
            # for ROS.
            if r.spec.drive and r.spec.name != THING
        }

        # The loop also removes a robot that was replaced by another robot of the same
        # name.
        for name in [
            n for n, member in self._members.items() if robots.get(n) is not member.of
        ]:
            member = self._members.pop(name)
            if member.robot is not None:
                member.robot.close()
            if member.actions is not None:
                member.actions.abort("the robot is gone")
            for transport in self._transports:
                self._withdraw(member, transport)

        for name, robot in robots.items():
            if name not in self._members:
                member = self._members[name] = self._robot_member(
                    robot, len(robots) == 1
                )
                for transport in self._transports:
                    self._offer(member, transport)

        # The limits of all robots are parameters of the world's node, so report their
        # change.
        self._world_offers.parameters.events.publish()
        self._robots = [
            member.robot
            for member in self._members.values()
            if member.robot is not None
        ]

    def _robot_member(self, robot: Robot, alone: bool) -> Member:
        member = self._robot_offers.member(
            robot, self._unique_ros_name(robot.name), alone
        )
        for offer in member.topics:
            offer.topic.publish = partial(self._publish_now, offer)
        return member

    def _unique_ros_name(self, robot: str) -> str:
        """Return a unique ROS name for a robot.

        ROS allows fewer characters in names, so different names could become equal.
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
        # Warn, because the user would look for the robot under its own name.
        if name != first:
            log.warning(
                'ROS: "%s" would have the same ROS names as %s, so it is called %s '
                "in ROS",
                robot,
                taken[first],
                name,
            )

        return name

    # -- poses that users of the page choose

    def _estimate(self, robot: str, pose: Pose) -> bool:
        """Publish the estimated pose of a robot; return whether it has a topic for this."""
        member = self._members.get(robot)
        if member is None or member.choices is None or member.robot is None:
            return False
        if not self._context.data.frames.is_localized:
            return member.choices.publish_estimate(pose)
        self._robot_offers.estimate(member.robot, pose)
        return True

    def _performed(self, done: Done) -> None:
        """Abort goals after a reset or a new map; publish goals from other interfaces."""
        operation = done.operation
        if isinstance(operation, REPLACING) and done.result is not False:
            self._abort_goals(operation)
        if done.caller.source == SOURCE or not isinstance(
            operation, (SendRobots, DockRobots)
        ):
            return
        # A queued goal is not yet the present goal of the robot.
        if isinstance(operation, SendRobots) and operation.queue:
            return
        for name in operation.robots:
            program = self._sim.core.programs.by_robot.get(name)
            member = self._members.get(name)
            if program is None or member is None or member.choices is None:
                continue
            x, y, *heading = program.options.get("points", ())[0]
            at = self._sim.robots[name].truth
            # A goal in ROS needs a heading: use the direction to the goal if it has
            # none.
            th = heading[0] if heading else atan2(y - at.y, x - at.x)
            member.choices.publish_goal(Pose(x, y, th))

    def _abort_goals(self, operation: object) -> None:
        """Abort goals of robots after the world was reset or the map was replaced."""
        names = None
        if isinstance(operation, Reset):
            if not operation.starts:
                return
            names = operation.names
        was_reset = isinstance(operation, (Reset, Stop))
        why = f"the world was {'reset' if was_reset else 'replaced'}"
        for name, member in self._members.items():
            if member.actions is not None and (names is None or name in names):
                self._drivers.run(member.actions.abort, why)

    # -- publishing

    def stamp(self) -> Stamp:
        """Return the time stamp of messages about the present state."""
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
        # The order of the conditions matters: `_is_new` remembers the present state, so
        # call it last.
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
        """Return whether the world has changed since the last call of this method."""
        snapshot, revision = self._seen
        self._seen = (self._sim.snapshot, self._sim.core.feed.revision)
        return self._seen[0] is not snapshot or self._seen[1] != revision

    def on_snapshot(self, now: float) -> None:
        """Publish the topics that are due and have subscribers, after a step.

        Parameters
        ----------
        now : float
            Wall time, s. Topics follow simulated time instead, so that a fast run
            publishes the same messages.
        """
        if not self._transports:
            return
        self._sync()
        # Call `_is_new` only to remember the present state, which is published now.
        self._is_new()
        self._context.data.forget()
        stamp, time_us = self.stamp(), self._sim.snapshot.time_us
        # Drop expired results of the action here, because the action has no timer.
        if self._world_offers.steps is not None:
            self._world_offers.steps.expire()
        for member in self._members.values():
            # Timeouts of commands are in simulated time, so they are checked after each
            # step.
            if member.driver is not None and member.driver.is_active:
                self._drivers.run(member.driver.tick)
            if member.actions is not None:
                self._drivers.run(member.actions.tick)

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

        # This loop runs thousands of times a second, so avoid the cost of a context
        # manager.
        for offer in due:
            try:
                publish(offer, stamp)
            except Exception as error:
                offer.barrier.fault(error)

    def _activate(self) -> None:
        """Find the topics with subscribers, and unsubscribe from sensors that no topic needs."""
        self._stale = False
        # Rebuild both lists from all members. This is rare; each step only uses the
        # lists.
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
                    # Call `wanted` only at a change, because it switches sensors on and
                    # off.
                    offer.topic.wanted(offer.wanted)

                if new and offer.topic.version is not None:
                    # Reset the version, so that the next step sends the latched message
                    # to all.
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

        # Programs transform a scan when it arrives, so publish the transforms of a step
        # before the scans.
        self._steady.sort(key=lambda offer: offer.topic.type_name != TRANSFORMS)

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

        # The message is encoded on demand, and only once for transports with the same
        # wire format.
        message = EncodedMessage(self.types, topic, stamp)
        if topic.version is not None:
            offer.latched = offer.last_version, message
        if not message.is_nothing:
            offer.count += 1
            for publication in offer.readers:
                publication.send(message)

    def _latched_message(self, offer: Offer) -> EncodedMessage | None:
        """Return the present message of a latched topic, for a new subscriber."""
        version = offer.topic.version() if offer.topic.version is not None else None
        if offer.latched is None or version is None or offer.latched[0] != version:
            offer.latched = (
                version,
                EncodedMessage(self.types, offer.topic, self.stamp()),
            )

        message = offer.latched[1]
        return None if message.is_nothing else message

    # -- description

    def topics(self) -> Iterator[TopicFacts]:
        """Yield descriptions of all topics and inputs, with the number of their messages."""
        self._sync()
        for member in (self._world, *self._members.values()):
            robot = "" if member.of is None else member.of.name
            for offer in member.topics:
                topic = offer.topic
                yield TopicFacts(
                    name=topic.name,
                    type_name=topic.type_name,
                    about=topic.about,
                    is_input=False,
                    count=offer.count,
                    readers=sum(p.reader_count for p in offer.publications.values()),
                    robot=robot,
                )
            for entry in member.inputs:
                yield TopicFacts(
                    name=entry.name,
                    type_name=entry.type_name,
                    about=entry.about,
                    is_input=True,
                    count=entry.count,
                    robot=robot,
                )

    def describe(self) -> Iterable[tuple[str, str, str, str]]:
        """Yield kind, name, type and description of each topic, input and service.

        Yields
        ------
        kind : str
            ``topic``, ``input`` or ``service``.
        name, type, about : str
            Absolute name, ROS type, and description.
        """
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
