"""Status of a simulation for all pages: clients, interfaces, recording, question to the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from botyard.control import Control
from botyard.control.parts import RunLoop
from botyard.interfaces.interface import Switch
from botyard.interfaces.page.robotdetails import SOURCE
from botyard.interfaces.page.timeline import TimeLine
from botyard.interfaces.page.trafficwatch import TrafficWatch
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer


class Robots(Protocol):
    """Interface of the robots' servers (`botyard.servers.pioneer.robot_servers`) for the page."""

    @property
    def control(self) -> Control:
        """Control surface of the simulation."""
        ...

    @property
    def interfaces(self) -> Mapping[str, Switch]:
        """Interfaces that can be turned on and off, by name."""
        ...

    def port_of(self, robot: str) -> int:
        """Return the TCP port of a robot; 0 while it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """Question to the user: whether to continue or to end the simulator.

    Attributes
    ----------
    text : str
        The question.
    refused : int
        Exit status if the user chooses to exit.
    """

    text: str
    refused: int


class Page(Protocol):
    """Parts of `botyard.interfaces.page.requests.PageRequests` that the status shows."""

    hub: RunLoop
    robot_servers: Robots
    control: Control
    viewers: list[Viewer]
    timeline: TimeLine
    question: Question | None
    traffic: TrafficWatch


def status_of(page: Page) -> pushes.Status:
    """Return the status line of all pages.

    Parameters
    ----------
    page : Page
        Requests of the page, with its run loop and control surface.

    Returns
    -------
    Status
        Clients, interfaces, recording and so on; the same for all pages.
    """
    sim = page.hub.sim
    driven = [
        pushes.Client(robot=r.name, sources=list(r.clients))
        for r in sim.robots.values()
        if r.clients
    ]

    # The page's own commands are not a client.
    clients = sum(s != SOURCE for c in driven for s in c.sources)
    filmed = None if page.control.filmer is None else page.control.filmer.present
    recorded = (
        None if page.control.recordings is None else page.control.recordings.present
    )
    return pushes.Status(
        # Count subscriptions as AMRISim's status bar does: one for each robot that a
        # client drives, and one for each device that is read.
        clients=clients,
        subscriptions=len(driven) + sim.fleet.subscriptions,
        viewers=len(page.viewers),
        overruns=page.hub.overruns,
        driven=driven,
        interfaces=[
            pushes.InterfaceState(
                name=n, on=i.on, about=i.about, problem=i.problem() if i.on else ""
            )
            for n, i in page.robot_servers.interfaces.items()
        ],
        timeline=page.timeline.state(),
        question=page.question.text if page.question is not None else "",
        recording="" if recorded is None else recorded.path.name,
        kept=0.0 if recorded is None else recorded.last,
        movie="" if filmed is None else filmed.name,
        drawn=0.0 if filmed is None else filmed.part,
        traffic=page.traffic.version,
    )


__all__ = ["Question", "Robots", "status_of"]
