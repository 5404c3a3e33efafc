"""VDA 5050 interface: orders and states of a fleet of AGVs, without the MQTT connection.

`botyard.servers.vda5050` carries the messages.
"""

from botyard.interfaces.vda5050.agv import Change, Message
from botyard.interfaces.vda5050.fleet import Fleet

__all__ = ["Change", "Fleet", "Message"]
