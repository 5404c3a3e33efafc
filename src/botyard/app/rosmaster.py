"""The embedded ROS master, and ROS settings and maps that a run reads before it starts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from botyard.app.options import RunOptions
from botyard.errors import CommandLineError, PeerError, RosMasterError
from botyard.names import shown
from botyard.processes.slow_notice import telling
from botyard.protocols.tcpros import MASTER_PORT

if TYPE_CHECKING:
    from botyard.model.scene import Scene
    from botyard.protocols.ros_messages.types import Types
    from botyard.servers.ros.ros1master import Ros1Master

log = logging.getLogger("botyard.ros")

DEFAULT_MASTER = "http://localhost:11311"
MAX_URI = 200
"""Maximum length of a URI shown in a message, characters."""


async def embedded_master(name: str, bound: str) -> Ros1Master:
    """Start an embedded master.

    Parameters
    ----------
    name : str
        ``embedded`` or ``embedded:PORT``.
    bound : str
        Address to listen on.

    Raises
    ------
    CommandLineError
        The port is not a number.
    PortError
        The port is in use.
    """
    from botyard.servers.ros.ros1master import Ros1Master

    port = name.partition(":")[2]
    if port and not port.isdigit():
        raise CommandLineError(
            f'--ros-master: expected a URI, "embedded" or "embedded:PORT", found "{name}"'
        )

    master = Ros1Master(bound, int(port or MASTER_PORT))
    await master.start()
    return master


def ros_distro(o: RunOptions) -> str:
    """Return the ROS distribution whose message types are used.

    Parameters
    ----------
    o : RunOptions
        Options; ``--ros-distro`` takes precedence over the variable ``ROS_DISTRO``.

    Returns
    -------
    str
        Supported distribution. An unknown name is logged, and the default is used.
    """
    from botyard.protocols.dds.environment import distro_of

    distro, remark = distro_of(o.ros_distro or os.environ.get("ROS_DISTRO", ""))
    if remark:
        log.warning("%s", remark)
    return distro


def message_types(o: RunOptions) -> Types:
    """Return the message types, including AMBF's if it is enabled.

    Parameters
    ----------
    o : RunOptions
        Options of the run: the distribution, and the generation of AMBF.
    """
    from botyard.protocols.ros_messages.types import Types, types

    if o.ambf is None:
        return types(ros_distro(o))
    from botyard.protocols.ambf.messages import definitions

    return Types(ros_distro(o), definitions(o.ambf))


def master_name(o: RunOptions) -> str:
    """Return the address of the ROS 1 master from the options and the environment.

    Parameters
    ----------
    o : RunOptions
        Options; ``--ros-master`` takes precedence over ``ROS_MASTER_URI``.

    Returns
    -------
    str
        URI, by default `DEFAULT_MASTER`.
    """
    return o.ros_master or os.environ.get("ROS_MASTER_URI") or DEFAULT_MASTER


def map_from_ros(
    name: str, o: RunOptions, run: Callable[[Coroutine[Any, Any, Scene]], Scene]
) -> Scene:
    """Return the map published on a topic (``-m ros:/map``).

    Parameters
    ----------
    name : str
        ``ros:`` and the topic.
    o : RunOptions
        Options that select ROS 1 or ROS 2.
    run : callable
        Function that runs a coroutine to its end, such as `asyncio.run`.

    Returns
    -------
    Scene
        The map.

    Raises
    ------
    MapError
        No map arrived in time.
    RosMasterError
        There is no ROS master.
    """
    from botyard.formats.budget import Budget
    from botyard.interfaces.ros.firstmap import SCHEME
    from botyard.protocols.dds.environment import Environment
    from botyard.protocols.ros_messages.types import types
    from botyard.servers.ros import rosmap

    known, budget = types(ros_distro(o)), Budget().raised(o.max_read)
    waiting = f"waiting up to {rosmap.MAP_TIMEOUT_S:g} s for the map on {name.removeprefix(SCHEME)}"
    try:
        if o.ros1 or o.ros_master is not None:
            uri = master_name(o)
            with telling(
                f"{waiting} of ROS 1, whose master is {shown(uri, MAX_URI)}"
                # The log is not set up yet, so print to stderr.
            ):
                return run(
                    rosmap.map_of_ros1(name, known, uri, o.bind_to_address, budget)
                )

        environment = Environment.read(domain=o.ros_domain_id)
        with telling(f"{waiting} of ROS 2, domain {environment.domain}"):
            return run(rosmap.map_of_ros2(name, known, environment, budget))
    except PeerError as error:
        raise RosMasterError(f"-m {name}: {error}") from None


__all__ = [
    "DEFAULT_MASTER",
    "MAX_URI",
    "embedded_master",
    "map_from_ros",
    "master_name",
    "message_types",
]
