"""Traffic runs in real time whose supervisor is another program.

The supervisor is a ROS node (``traffic run --ros1 | --ros2``) or a VDA 5050 master
control (``traffic vda5050``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from botyard.app.checks import EMBEDDED
from botyard.app.rosmaster import DEFAULT_MASTER, MAX_URI, embedded_master
from botyard.cli import interrupts
from botyard.cli.logs import set_up_logging
from botyard.cli.trafficinput import PAGE_OPTIONS
from botyard.errors import PeerError, RosMasterError
from botyard.interfaces.ros.traffic import Relay, SteppedRun, TrafficNode, check_ids
from botyard.names import shown
from botyard.processes.slow_notice import telling
from botyard.protocols.dds.environment import Environment
from botyard.protocols.ros_messages.types import types
from botyard.servers.ros.trafficros import run_live
from botyard.traffic.compat import CompatTraffic
from botyard.traffic.engine import Traffic
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.rules import Rules
from botyard.traffic.task import Task, Vehicle

if TYPE_CHECKING:
    from botyard.app.compose import Parts
    from botyard.sim.simulation import Simulation
    from botyard.traffic.live import LiveTraffic
    from botyard.traffic.liverun import LiveRun


def run_over_ros(
    task: Task, script: Sequence[tuple[int, int]], rules: Rules, o: Mapping[str, Any]
) -> Outcome:
    """Run a task in real time with a ROS node as the supervisor.

    Parameters
    ----------
    task : Task
        Task to run: paths of robots, and conflicts of sectors.
    script : sequence of (int, int)
        Additional permissions, by step and robot.
    rules : Rules
        Rules of the run.
    o : mapping
        Options of the command.

    Raises
    ------
    WorldError
        The task has more robots than the ROS messages can number.
    RosMasterError
        There is no ROS master.
    """
    # The messages number robots with an Int16, so a task can have more robots than they
    # can address.
    check_ids(len(task))
    relay = Relay()
    if o["compat"]:
        live: SteppedRun = CompatTraffic(
            task,
            relay,
            grants=script,
            # Ten steps per second, as in `traffic run` without ROS.
            max_steps=int(min(o["time_limit"] * 10, 10_000_000)),
        )
    else:
        times = [
            (-1.0 if step < 0 else (step + 1) / 10, robot) for step, robot in script
        ]
        live = Traffic(task, relay, rules, grants=times)

    with logging_lines():
        return interrupts.run_loop(_over_ros(live, relay, o))


@contextlib.contextmanager
def logging_lines() -> Iterator[None]:
    """Print log lines during the block, so that the user sees what the run waits for."""
    # Only live runs log: their supervisor is another program, whose connection the user
    # must be able to follow.
    logs = set_up_logging()
    try:
        yield
    finally:
        logs.close()


async def _over_ros(live: SteppedRun, relay: Relay, o: Mapping[str, Any]) -> Outcome:
    """Run a task in real time; a ROS node is the supervisor."""
    known, stop = types(), asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        node = TrafficNode(known, relay, os.environ.get("ROS_NAMESPACE", ""))
        if o["ros1"] or o["ros_master"]:
            from botyard.servers.ros.ros1 import Ros1

            uri = o["ros_master"] or os.environ.get("ROS_MASTER_URI") or DEFAULT_MASTER
            if uri.partition(":")[0] == EMBEDDED:
                # Loopback only: a ROS 1 master has no authentication.
                master = await embedded_master(uri, "127.0.0.1")
                stack.callback(master.close)
                uri = master.uri
                # Print to stderr, because standard output carries the result, possibly
                # as JSON.
                click.echo(f"export ROS_MASTER_URI={uri}", err=True)

            # The run keeps real time, so its messages have stamps of the wall clock and
            # there is no /clock.
            ros = Ros1(known, uri, sim_time=False)

            # Register `close` before the start, so that a failed start also closes the
            # sockets.
            stack.push_async_callback(ros.close)
            try:
                with telling(f"waiting for the ROS master at {shown(uri, MAX_URI)}"):
                    await ros.start()
            except PeerError as error:
                raise RosMasterError(
                    f"no ROS master: {error} (--ros-master embedded starts one)"
                ) from None

            node.add(ros)

        if o["ros2"]:
            from botyard.servers.ros.ros2 import Ros2

            dds = Ros2(known, Environment.read())
            stack.push_async_callback(dds.close)
            node.add(dds)

        # Register the node's `close` last, so that it runs first: the node withdraws
        # its topics while the transports still work.
        stack.callback(node.close)
        if o["page"]:
            assert isinstance(live, Traffic)
            return await _over_ros_on_page(node, live, o)
        interrupts.ready(stop.set)
        click.echo(f"ready: {node.node}", err=True)
        return await run_live(
            node,
            live,
            wait=o["wait_for_supervisor"],
            speed=o["speed"],
            idle_limit=o["idle_limit"],
            stop=stop,
        )


async def _over_ros_on_page(
    node: TrafficNode, traffic: Traffic, o: Mapping[str, Any]
) -> Outcome:
    """Run a task in real time in a world with the page; a ROS node is the supervisor."""
    from botyard.sim.simulation import Simulation
    from botyard.traffic.mirrored import MirroredTraffic

    sim = Simulation(odometry_error="none")
    mirrored = MirroredTraffic(traffic, sim)
    has_begun = False

    def step(now: float) -> Ending | None:
        nonlocal has_begun
        if not has_begun:
            if o["wait_for_supervisor"] and not node.has_supervisor:
                return None
            node.begin(mirrored, now, idle_limit=o["idle_limit"])
            has_begun = True
        return node.advance(now)

    mirrored.on_step = step
    click.echo(f"ready: {node.node}", err=True)
    return await serve_page(mirrored, sim, "a ROS node", o, o["speed"])


async def serve_page(
    run: LiveRun,
    sim: Simulation,
    supervisor: str,
    o: Mapping[str, Any],
    speed: float = 1.0,
) -> Outcome:
    """Serve a run with the page until Ctrl-C, or until the page ends it.

    Parameters
    ----------
    run : LiveRun
        The run.
    sim : Simulation
        World of the run.
    supervisor : str
        Name of the supervisor.
    o : mapping
        Options of the command.
    speed : float
        Simulated time per wall time at the start.
    """
    from botyard.traffic.live import LiveTraffic

    live = LiveTraffic(sim)
    said = f"{len(run.task)} robots under {supervisor}"
    await _serve(sim, live, said, o, speed, lambda _: live.attach(run, supervisor))
    return run.finish(live.reason)


async def _serve(
    sim: Simulation,
    live: LiveTraffic,
    said: str,
    o: Mapping[str, Any],
    speed: float,
    prepare: Callable[[Parts], None],
    history: bool = True,
) -> None:
    """Serve a world with its traffic and the page until Ctrl-C, or until the page ends it.

    Without `history` the page cannot continue from an earlier moment.
    """
    from botyard.app.checks import check_options
    from botyard.app.options import RunOptions
    from botyard.cli.showing import show
    from botyard.cli.warmup import warm_up_with_progress

    options = RunOptions(port=0, **{key: o[key] for key in PAGE_OPTIONS})
    if not history:
        options = replace(options, history=0.0)
    check_options(options)

    def prepared(parts: Parts) -> None:
        parts.control.traffic = live
        parts.hub.set_speed(speed)
        prepare(parts)

    warm_up_with_progress(masses=False)
    await show(
        sim,
        options,
        lambda url: (
            f"{said}; Shift-Y shows who waits for whom, Ctrl-C ends it\npage: {url}"
        ),
        prepare=prepared,
    )


def run_over_mqtt(
    host: str,
    port: int,
    agvs: int,
    manufacturer: str,
    radius: float,
    velocity: float,
    speed: float,
    o: Mapping[str, Any],
) -> Outcome | None:
    """Simulate AGVs until all have finished, or until Ctrl-C.

    Parameters
    ----------
    host, port : str, int
        Address of the MQTT broker.
    agvs : int
        Number of AGVs.
    manufacturer : str
        Manufacturer in topic names.
    radius : float
        Radius of the AGVs, m.
    velocity : float
        Maximum speed, m/s.
    speed : float
        Speed of the simulation as a multiple of real time.
    o : mapping
        Whether there is a page (``page``), and its options.

    Raises
    ------
    WorldError, PeerError
        See `botyard.servers.vda5050.MqttFleet.run`.
    """
    from botyard.protocols.vda5050.states import Vehicle5050
    from botyard.servers.vda5050 import MqttFleet

    names = [Vehicle5050(manufacturer, f"agv{i}") for i in range(agvs)]
    fleet = MqttFleet(names, Vehicle(ends=np.ones(1), radius=radius, velocity=velocity))

    async def run() -> Outcome | None:
        stop = asyncio.Event()
        interrupts.ready(stop.set)
        return await fleet.run(host, port, speed=speed, stop=stop)

    async def run_on_page() -> Outcome | None:
        from botyard.interfaces.vda5050.shown import ShownFleet
        from botyard.sim.simulation import Simulation
        from botyard.traffic.live import LiveTraffic

        sim = Simulation(odometry_error="none")
        live, stop = LiveTraffic(sim), asyncio.Event()
        ShownFleet(fleet.fleet, sim, live)
        tasks: list[asyncio.Task[Outcome | None]] = []

        def prepare(parts: Parts) -> None:
            # The AGVs follow the time of the world, which the page pauses.
            work = fleet.run(host, port, stop=stop, clock=lambda: sim.time)
            tasks.append(asyncio.ensure_future(work))
            tasks[0].add_done_callback(
                lambda done: parts.hub.stop() if done.exception() else None
            )

        try:
            said = f"{agvs} AGVs of VDA 5050"
            # The master control cannot return to an earlier moment.
            await _serve(sim, live, said, o, speed, prepare, history=False)
        finally:
            stop.set()
            # The AGVs report to the master control that they go offline.
            await asyncio.gather(*tasks, return_exceptions=True)
        return tasks[0].result()

    with logging_lines():
        return interrupts.run_loop(run_on_page() if o["page"] else run())
