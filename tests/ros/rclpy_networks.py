"""Programs of ROS 2 on networks that lose packets, or that reach other hosts and domains:
``rclpy_networks.py WHAT JSON-ARGUMENTS``, as rclpy_peer.py.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import Any

from nav_msgs.msg import OccupancyGrid
from rclpy_peer import Peer
from ros2_scenes import LATCHED, drive, parameters, run, seen
from simulation_interfaces.srv import GetSimulationState

STATE = "/botyard/get_simulation_state"


def bear(robot: str, calls: int) -> dict[str, Any]:
    """A late joiner's map, parameters, a closed loop, and answers to new clients, on a
    network that loses packets.
    """
    with Peer(f"bearing_{robot}", use_sim_time=True) as peer:
        start = time.monotonic()
        grid = peer.first("/map", OccupancyGrid)
        seconds = time.monotonic() - start
        parameters(peer, robot, 0.4)
        off = drive(peer, robot, is_stamped=True)
    return {
        "size": [grid.info.width, grid.info.height],
        "cells": [len(grid.data), grid.data.count(100)],
        "crc": zlib.crc32(grid.data),
        "seconds": seconds,
        "off": off,
        "lost": recreate(calls, 60.0)["lost"],
    }


def maps(count: int) -> dict[str, Any]:
    """Return the times, s, in which new readers get a map, in one process."""
    times = []
    with Peer("reader") as peer:
        peer.first("/map", OccupancyGrid)
        for _ in range(count):
            got: list[Any] = []
            start = time.monotonic()
            reader = peer.node.create_subscription(
                OccupancyGrid, "/map", got.append, LATCHED
            )
            peer.wait(lambda got=got: got, "no map")
            times.append(time.monotonic() - start)
            peer.node.destroy_subscription(reader)
    return {"times": times, "bytes": len(got[0].data)}


def looks(count: int, given: list[Any]) -> list[list[str]]:
    """Return the robots of `seen`, for robots to wait for with environment variables.

    rcl reads the variables when a context is initialized.
    """
    found = []
    for wanted, variables in given:
        os.environ.update(variables)
        found.append(seen(Peer, count, wanted))
        for name in variables:
            del os.environ[name]
    return found


# -- clients that call as soon as they have a server


def serve(seconds: float) -> None:
    """Answer calls, for comparison."""
    with Peer("server") as peer:
        peer.node.create_service(GetSimulationState, STATE, lambda _, answer: answer)
        print("SERVING", flush=True)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            peer.turn(0.1)


def recreate(count: int, patience: float) -> dict[str, Any]:
    """Make a client, call once as soon as there is a server, and destroy the client;
    return the longest time of an answer, s, and how many did not come in time.
    """
    slowest, lost = 0.0, 0
    with Peer("caller") as peer:
        for _ in range(count):
            client = peer.node.create_client(GetSimulationState, STATE)
            peer.wait(client.service_is_ready, "no server")
            future = client.call_async(GetSimulationState.Request())
            start = time.monotonic()
            while not future.done() and time.monotonic() < start + patience:
                peer.turn(0.1)
            if future.done():
                slowest = max(slowest, time.monotonic() - start)
            else:
                lost += 1
            peer.node.destroy_client(client)
    return {"calls": count, "lost": lost, "slowest": slowest}


if __name__ == "__main__":
    run(Peer, globals())
