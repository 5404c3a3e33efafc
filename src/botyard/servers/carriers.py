"""Function `pump_of`: selects the pump for an interface's transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botyard.control import Control
from botyard.errors import WorldError
from botyard.interfaces.interface import Carrier, Interface
from botyard.servers.hub import Hub
from botyard.servers.pump import Pump, TcpPump, UdpPump


def pump_of(
    interface: Interface, options: Mapping[str, Any], hub: Hub, control: Control
) -> Pump:
    """Return a new pump for the transport of an interface.

    Parameters
    ----------
    interface : Interface
        Declaration with the kind of transport.
    options : mapping of str to object
        All options of the interface (`Interface.chosen`).
    hub : Hub
        Event loop of the simulation.
    control : Control
        The control surface.

    Raises
    ------
    WorldError
        The interface has its own servers.
    """
    if interface.carrier is Carrier.TCP:
        return TcpPump(interface, options, hub, control)
    if interface.carrier is Carrier.UDP:
        return UdpPump(interface, options, hub, control)
    if interface.carrier is Carrier.HTTP:
        # Starlette and uvicorn are imported only when an interface needs them.
        from botyard.servers.web.webpump import HttpPump

        return HttpPump(interface, options, hub, control)

    if interface.carrier is Carrier.WEBSOCKET:
        from botyard.servers.web.webpump import WebSocketPump

        return WebSocketPump(interface, options, hub, control)

    raise WorldError(
        f"interface {interface.name} cannot be served by a pump: it has its own servers"
    )


__all__ = ["pump_of"]
