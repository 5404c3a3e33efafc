"""AGVs of VDA 5050: how a fleet sees its orders and tells its states, without MQTT (`botyard.servers.vda5050` carries it)."""

from botyard.interfaces.vda5050.fleet import Fleet, Message, task_of_orders

__all__ = ["Fleet", "Message", "task_of_orders"]
