"""Messages to people at the pages about each other, and their rate."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from botyard.control import Caller
from botyard.interfaces.page.people import PERIOD, People
from botyard.protocols.webgui.messages import View
from botyard.protocols.webgui.pushes import People as Message
from botyard.protocols.webgui.session import Tokens, Viewer


def viewer(number: int, selected: tuple[str, ...] = ()) -> Viewer:
    """Return a page that has shown its token."""
    one = Viewer(cast(Any, None), Tokens(""), 0.0)
    one.ready, one.number, one.view = True, number, View(selected=selected)
    return one


def told(one: Viewer) -> list[Message]:
    """Return the messages of people that wait for a page."""
    return [msgspec.json.decode(text, type=Message) for text in one.texts_to_send()]


def test_people_are_told_of_each_other_at_a_limited_rate() -> None:
    held: dict[str, tuple[Any, ...]] = {}
    people = People(held)
    eve, ada, third = viewer(1, ("ann",)), viewer(2), viewer(3)
    people.show(eve, " Eve ", (1.0, 2.0))
    people.show(ada, "Ada", None)
    people.tell(10.0)
    (message,) = told(eve)
    assert [
        (p.page, p.name, p.color, p.pointer, p.selected) for p in message.people
    ] == [
        (1, "Eve", 0, (1.0, 2.0), ["ann"]),
        (2, "Ada", 1, None, []),
    ]
    assert len(told(ada)) == 1 and told(third) == [], "a page that shows nothing"
    # Many moves of a pointer are one message, and none without a change.
    for k in range(50):
        people.show(eve, "Eve", (float(k), 0.0))
        people.tell(10.0 + PERIOD * k / 60)
    assert told(ada) == []
    people.tell(10.0 + PERIOD)
    assert [m.people[0].pointer for m in told(ada)] == [(49.0, 0.0)]
    people.tell(10.0 + 3 * PERIOD)
    assert told(ada) == []
    # Held bodies are sent, and the colour of a person who has left is free again.
    held["bob"] = (Caller("page", key=ada), 30.0, 40.0)
    people.tell(11.0)
    assert told(eve)[-1].people[1].holds == ["bob"]
    people.left(eve)
    people.show(third, "Eve", None)
    people.tell(12.0)
    assert [(p.page, p.color) for p in told(ada)[-1].people] == [(2, 1), (3, 0)]
    people.show(third, "", None)
    assert third.person == ""
    people.tell(13.0)
    assert [p.page for p in told(ada)[-1].people] == [2]
