"""A client for AMBF's objects that needs no ROS: the API of AMBF's own Python client,
over a plain TCP connection.

    from botyard.clients.ambf import Client

    client = Client("me")
    client.connect()
    robot = client.get_obj_handle("robot1")
    robot.set_force(3.0, 0.0, 0.0)

As in the original, a thread keeps sending the last command of every object of which a
handle was taken, so that the simulator's watchdog does not trip; a wrench ends 0.1 s
after the last call that set it (ambf-messages.md §8). Start the simulator with ``--ambf
2.0``, or another generation of the messages.
"""

from botyard.clients.ambf.client import Client
from botyard.clients.ambf.handles import (
    Actuator,
    Body,
    Handle,
    Pose,
    Sensor,
    Vehicle,
    World,
)
from botyard.protocols.ambf.link import PORT

__all__ = [
    "PORT",
    "Actuator",
    "Body",
    "Client",
    "Handle",
    "Pose",
    "Sensor",
    "Vehicle",
    "World",
]
