"""Client for AMBF objects without ROS: the API of AMBF's Python client over plain TCP.

    from botyard.clients.ambf import Client

    client = Client("me")
    client.connect()
    robot = client.get_obj_handle("robot1")
    robot.set_force(3.0, 0.0, 0.0)

As in AMBF's own client, a thread repeats the last command of every object with a
handle, so that the simulator's watchdog does not trip. A wrench ends 0.1 s after the
last call that set it (ambf-messages.md §8). Start the simulator with ``--ambf`` and a
generation of the messages, for example ``--ambf 2.0``.
"""

from botyard.clients.ambf.bodies import Body
from botyard.clients.ambf.client import Client
from botyard.clients.ambf.handles import Handle, Pose
from botyard.clients.ambf.objects import Actuator, Sensor, Vehicle, World
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
