"""The page's time line of a running simulation, without a browser:

moments, permissions and events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from botyard.app.compose import Parts, compose
from botyard.engine.commands import SetVelocity
from botyard.interfaces.page import timeline, timeline_events
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.status import status_of
from botyard.interfaces.page.viewsource import ViewSource
from botyard.model.scene import Scene
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.sim.simulation import Simulation

ROOM = np.array([[0, 0, 16, 0], [16, 0, 16, 10], [16, 10, 0, 10], [0, 10, 0, 0]], float)


class Page:
    """A page that sends requests."""

    def __init__(self, desk: PageRequests, token: str = "full") -> None:
        self.desk = desk
        self.viewer = Viewer(desk, Tokens("full", "audience"), 0.0)
        hello = {
            "type": "hello",
            "token": token,
            "version": msg.VERSION,
            "view": {"selected": ["ann"]},
        }
        self.viewer.receive_text(json.dumps(hello), 0.0)
        self.told()

    def ask(self, request: Any) -> Any:
        """Return the answer.

        RuntimeError: the reason of a refusal.
        """
        answers: list[tuple[Any, str | None]] = []
        self.desk.perform(
            self.viewer, request, lambda result, error: answers.append((result, error))
        )
        ((result, error),) = answers
        if error is not None:
            raise RuntimeError(error)
        return result

    def told(self) -> list[dict[str, Any]]:
        """Return the messages since the last call."""
        return [json.loads(text) for text in self.viewer.texts_to_send()]


def run(
    test: Callable[[Parts, PageRequests], None], sim: Simulation | None = None
) -> None:
    async def main() -> None:
        parts = compose(world() if sim is None else sim)
        try:
            test(
                parts,
                PageRequests(
                    parts.hub, parts.robot_servers, parts.maps, ViewSource(parts.hub)
                ),
            )
        finally:
            parts.close()
            await parts.ended()

    asyncio.run(main())


def world() -> Simulation:
    sim = Simulation(Scene(name="room", segments=ROOM), step=0.1, seed=1)
    sim.add_robot("p3dx-sh-lms200", "ann", pose=(3, 3, 0))
    sim.add_robot("amigo", "bob", pose=(6, 6, 1))
    sim.history.keep()
    return sim


def steps(parts: Parts, number: int) -> None:
    for _ in range(number):
        parts.hub.step_once()


def test_each_page_is_shown_its_own_moment() -> None:
    def test(parts: Parts, desk: PageRequests) -> None:
        sim = parts.hub.sim
        one, two = Page(desk), Page(desk, "audience")
        sim.robots["ann"].command(v=0.4)
        steps(parts, 40)
        assert one.ask(msg.Look(by=-1)).time == pytest.approx(3.8)
        assert one.ask(msg.Look(by=-3)).time == pytest.approx(3.2)
        looked = two.ask(msg.Look(time=1.05))
        assert (looked.tick, looked.missing, looked.gone, looked.disconnected) == (
            10,
            [],
            [],
            0,
        )
        assert [m["type"] for m in two.told()] == ["schema"], (
            "of the past, which has another number"
        )
        frames = [
            desk.source_of(page.viewer).frame(page.viewer.view) for page in (one, two)
        ]
        assert (
            len({bytes(f) for f in frames}) == 2
            and desk.source_of(one.viewer) is not desk.source
        )
        past = desk.timeline.sim_of(two.viewer)
        assert past is not None
        assert past.time == pytest.approx(1.0) and past.robots["ann"].laser.is_read, (
            "it has selected ann"
        )
        digest = sim.digest()
        for request in (
            msg.Move(to=[msg.Placement(name="ann", x=1, y=1, th=0)]),
            msg.Drive(name="ann", v=0.1),
            msg.Undo(),
            msg.Reset(),
        ):
            with pytest.raises(RuntimeError, match="shows an earlier moment"):
                one.ask(request)

        assert sim.digest() == digest
        with pytest.raises(RuntimeError, match="may only watch"):
            two.ask(msg.GoOn())
        assert two.ask(msg.Look()) is None and desk.source_of(two.viewer) is desk.source
        assert [m["type"] for m in two.told()] == ["schema"]
        with pytest.raises(RuntimeError, match="only a recording"):
            one.ask(msg.Loop(on=True))

    run(test)


def test_it_goes_on_from_what_was_shown_or_not_at_all() -> None:
    """Another page may have branched before:

    then the moment belongs to an abandoned run.
    """

    def test(parts: Parts, desk: PageRequests) -> None:
        sim = parts.hub.sim
        one, two, three = Page(desk), Page(desk), Page(desk)
        late = sim.tick + 20
        steps(parts, 20)
        sim.add_robot("p3at", "new", pose=(9, 8, 0)).claim("pioneer")
        sim.remove_robot("bob")
        steps(parts, 20)
        for page, time in ((one, 1.0), (two, 3.0), (three, 0.4)):
            page.ask(msg.Look(time=time))
        assert one.ask(msg.Look(by=1)) == pushes.Looked(
            tick=12,
            time=pytest.approx(1.2),
            missing=["new"],
            gone=["bob"],
            disconnected=1,
        )
        assert one.ask(msg.GoOn()) == pytest.approx(1.2)
        assert (
            sim.tick == 12 < late
            and list(sim.robots) == ["ann", "bob"]
            and desk.source_of(one.viewer) is desk.source
        )
        steps(parts, 40)
        with pytest.raises(RuntimeError, match="no longer kept"):
            two.ask(msg.GoOn())
        with pytest.raises(RuntimeError, match="shows the present"):
            one.ask(msg.GoOn())
        assert three.ask(msg.GoOn()) == pytest.approx(0.4)

    run(test)


def test_so_many_pages_look_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MAX_LOOKING", 1)

    def test(parts: Parts, desk: PageRequests) -> None:
        one, two, looker = Page(desk), Page(desk), Page(desk, "audience")
        steps(parts, 10)
        looker.ask(msg.Look(time=0.0))
        one.ask(msg.Look(time=0.0))
        with pytest.raises(RuntimeError, match="1 pages already show earlier moments"):
            two.ask(msg.Look(time=0.0))
        desk.left(one.viewer)
        two.ask(msg.Look(time=0.0))
        parts.hub.sim.history.stop()
        with pytest.raises(RuntimeError, match="--history"):
            two.ask(msg.Look(time=1.0))
        assert desk.timeline.state() is None

    run(test)


def test_what_happens_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_events, "MAX_MARKS", 6)

    def test(parts: Parts, desk: PageRequests) -> None:
        sim = parts.hub.sim
        page = Page(desk)

        def said() -> list[tuple[str, str]]:
            desk.timeline.noticed()
            return [(mark.kind, mark.text) for mark in desk.timeline.marks]

        steps(parts, 5)
        sim.robots["ann"].claim("page")
        assert said() == []
        sim.add_robots(
            "amigo", [(10, 2 + k, 0) for k in range(5)], [f"r{k}" for k in range(5)]
        )
        steps(parts, 5)
        sim.robots["bob"].claim("ros")
        sim.robots["ann"].claim("ros")
        steps(parts, 5)
        assert said() == [
            ("robot", "r0, r1, r2 and 2 more are added"),
            ("client", "ann, bob are commanded by ros"),
        ]
        sim.put("ann", (15.6, 3.0, 0.0))
        for _ in range(20):
            sim.core.accept_command("ann", SetVelocity(v=0.5), "ros")
            steps(parts, 1)
            said()

        assert said()[2:] == [("stall", "ann stalls")], "once"
        sim.replace_scene(Scene(name="other"))
        sim.robots["bob"].release("ros")
        steps(parts, 5)
        assert said()[3:] == [("client", "bob is left by ros"), ("map", "map other")]
        page.told()
        desk.tick(1e9)
        (sent,) = [m for m in page.told() if m["type"] == "marks"]
        assert [m["text"] for m in sent["marks"]] == [text for _, text in said()]
        times = [mark.time for mark in desk.timeline.marks]
        assert times == sorted(times) and times[0] == pytest.approx(0.6)
        sim.history.go_on_from(0.8)
        steps(parts, 1)
        assert said() == [
            ("robot", "r0, r1, r2 and 2 more are added"),
            ("branch", "the run continues from a restored state"),
        ]
        for k in range(8):
            sim.replace_scene(Scene(name=f"map{k}"))
            steps(parts, 1)

        assert len(said()) == 6 and said()[-1] == ("map", "map map7")

    run(test)


def test_subscriptions_are_counted_as_the_original_does() -> None:
    """One for each driven robot, and one for each device with a reader."""

    def test(parts: Parts, desk: PageRequests) -> None:
        ann, bob = parts.hub.sim.robots["ann"], parts.hub.sim.robots["bob"]
        assert status_of(desk).subscriptions == 0
        ann.claim("a client")
        assert status_of(desk).subscriptions == 1
        ann.lasers[0].subscribe("a client", True)
        ann.sonar.subscribe("a client", True)
        bob.claim("a client")
        bob.claim("another client")
        assert status_of(desk).subscriptions == 4
        ann.release("a client")
        assert status_of(desk).subscriptions == 3

    run(test)
