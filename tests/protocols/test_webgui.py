"""Sessions and frames of the page, without sockets and with a numeric clock."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.geometry import Pose
from botyard.model.scene import Area, Place, Scene
from botyard.protocols.tokenbucket import Budget, TokenBucket
from botyard.protocols.webgui import frames, messages, pushes
from botyard.protocols.webgui.frames import Block, Header
from botyard.protocols.webgui.kernels.units import write_units
from botyard.protocols.webgui.messages import AnyRequest
from botyard.protocols.webgui.pushes import LogEntry
from botyard.protocols.webgui.session import (
    FRAME_RATES,
    MAX_LOG,
    MAX_PENDING,
    MAX_STUCK,
    MAX_TEXT,
    MAX_UNREAD,
    Answer,
    Tokens,
    Viewer,
)


class RequestHandler:
    """Records requests; answers at once or not at all."""

    def __init__(self) -> None:
        self.asked: list[AnyRequest] = []
        self.answers: list[Answer] = []
        self.views = 0
        self.full = ""

    def no_room(self, read_only: bool) -> str:
        return self.full

    def welcome(self, viewer: Viewer) -> pushes.Welcome:
        return pushes.Welcome(
            version=messages.VERSION, program="test", read_only=viewer.read_only
        )

    def arrived(self, viewer: Viewer) -> Sequence[bytes]:
        return [b'{"type":"first"}']

    def view_changed(self, viewer: Viewer) -> None:
        self.views += 1

    def perform(self, viewer: Viewer, request: AnyRequest, answer: Answer) -> None:
        self.asked.append(request)
        self.answers.append(answer)


def viewer(token: str = "full") -> tuple[Viewer, RequestHandler]:
    desk = RequestHandler()
    session = Viewer(desk, Tokens("full", "audience"), 0.0)
    session.receive_text(
        json.dumps({"type": "hello", "token": token, "version": messages.VERSION}), 0.0
    )
    return session, desk


def texts(session: Viewer) -> list[dict[str, Any]]:
    return [json.loads(t) for t in session.texts_to_send()]


def test_a_viewer_is_welcomed_and_told_the_world() -> None:
    session, _ = viewer()
    welcome, first = texts(session)
    assert welcome["type"] == "welcome" and welcome["read_only"] is False
    assert first == {"type": "first"}
    assert session.wants_frame_at(0.0) is not None


@pytest.mark.parametrize("token", ["", "wrong", "full ", "ful"])
def test_a_wrong_token_closes_the_socket_and_tells_nothing(token: str) -> None:
    session, desk = viewer(token)
    assert session.close_code == 4401 and texts(session) == [] and desk.views == 0
    assert session.wants_frame_at(0.0) is None
    session.receive_text('{"type":"pause","id":1}', 0.1)
    assert desk.asked == []


def test_without_a_token_anybody_may_steer_and_an_empty_audience_token_admits_nobody() -> (
    None
):
    assert Tokens("").admits("") is True
    assert Tokens("full").admits("") is None
    assert Tokens("full", "audience").admits("audience") is False


def test_nothing_is_obeyed_before_hello() -> None:
    desk = RequestHandler()
    for text in (
        '{"type":"pause","id":1}',
        "garbage",
        '{"type":"hello","version":"x"}',
        "[" * 5000,
    ):
        session = Viewer(desk, Tokens("full"), 0.0)
        session.receive_text(text, 0.0)
        assert session.close_code == 4400

    assert desk.asked == []


def test_a_page_of_another_version_is_told_so() -> None:
    session = Viewer(RequestHandler(), Tokens("full"), 0.0)
    session.receive_text(
        json.dumps({"type": "hello", "token": "full", "version": 999}), 0.0
    )
    assert session.close_code == 4426 and "load the page again" in session.close_reason


def test_an_audience_is_known_as_such() -> None:
    """The control surface decides about its requests (tests/control,
    tests/servers/test_readonly.py).
    """
    assert [viewer(token)[0].read_only for token in ("audience", "full")] == [
        True,
        False,
    ]


def test_answers_bear_the_number_of_their_request_whenever_they_come() -> None:
    session, desk = viewer()
    texts(session)
    session.receive_text('{"type":"pause","id":1}', 0.1)
    session.receive_text('{"type":"run","id":2}', 0.1)
    desk.answers[1]({"x": 1}, None)
    desk.answers[0](None, "no")
    assert texts(session) == [
        {"type": "ok", "id": 2, "result": {"x": 1}},
        {"type": "error", "id": 1, "message": "no"},
    ]


@pytest.mark.parametrize(
    ("text", "number", "words"),
    [
        ('{"type":"speed","id":3,"factor":-1}', 3, "factor"),
        ('{"type":"speed","id":4,"factor":1e999}', 4, "out of range"),
        ('{"type":"nonsense","id":5}', 5, "nonsense"),
        ('{"type":"move","id":6,"to":[{"name":"a","x":"b","y":0,"th":0}]}', 6, "x"),
        ("not json", -1, "JSON"),
        ("[" * 5000, -1, ""),
    ],
)
def test_bad_requests_are_answered(text: str, number: int, words: str) -> None:
    session, desk = viewer()
    texts(session)
    session.receive_text(text, 0.1)
    (answer,) = texts(session)
    assert (
        answer["type"] == "error"
        and answer["id"] == number
        and words in answer["message"]
    )
    assert session.close_code is None and desk.asked == []


def test_a_message_that_is_too_long_ends_the_session() -> None:
    session, _ = viewer()
    session.receive_text("x" * (MAX_TEXT + 1), 0.1)
    assert session.close_code == 4400


class Worker(RequestHandler):
    """Works for a while at every request, by its own clock, and answers."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = 0.0
        self.cost = 0.0
        self.worked = 0.0

    def perform(self, viewer: Viewer, request: AnyRequest, answer: Answer) -> None:
        self.asked.append(request)
        self.clock += self.cost
        self.worked += self.cost
        answer(None, None)


def working(cost: float, budgets: Sequence[Budget]) -> tuple[list[Viewer], Worker]:
    """Viewers of a handler whose requests cost a number of seconds each."""
    desk = Worker()
    hello = json.dumps(
        {"type": "hello", "token": "audience", "version": messages.VERSION}
    )
    sessions = [
        Viewer(
            desk, Tokens("full", "audience"), 0.0, lambda _, b=b: b, lambda: desk.clock
        )
        for b in budgets
    ]  # type: ignore[misc]
    for session in sessions:
        session.receive_text(hello, 0.0)
    desk.cost = cost
    return sessions, desk


def flood(sessions: Sequence[Viewer], seconds: float, rate: float) -> None:
    """All of them send requests at a rate.

    Unread ones wait, as bytes in a socket do.
    """
    for k in range(round(seconds * rate)):
        now = k / rate
        for session in sessions:
            if not session.wait(now):
                session.receive_text('{"type":"debug","id":1,"what":"clearance"}', now)
                list(session.texts_to_send())


@pytest.mark.parametrize("cost", [0.02, 0.002, 0.0002])
def test_a_viewers_work_is_limited_by_what_it_costs_and_not_by_its_number(
    cost: float,
) -> None:
    (session,), desk = working(cost, [Budget(TokenBucket(0.1, 0.25, 0.0))])
    flood([session], 20.0, 290.0)
    assert desk.worked <= 0.25 + 20 * 0.1 + 2 * cost
    # All requests are answered if they are cheap.
    assert len(desk.asked) >= min(
        0.99 * 20 * 290,
        20 * 0.1 / cost,
    )
    assert session.close_code is None


def test_all_viewers_together_cost_no_more_than_their_share() -> None:
    together = TokenBucket(0.2, 0.3, 0.0)
    sessions, desk = working(
        0.02, [Budget(TokenBucket(0.1, 0.25, 0.0), together) for _ in range(20)]
    )
    flood(sessions, 10.0, 29.0)
    assert desk.worked <= 0.3 + 10 * 0.2 + 2 * 0.02
    assert desk.worked >= 10 * 0.2


def test_frames_come_at_the_rate() -> None:
    session, _ = viewer()
    for number, now in enumerate((1.0, 2.0)):
        session.frame_sent(number, now)
        session.receive_text(json.dumps({"type": "ack", "number": number}), now)
        due = session.wants_frame_at(now)
        assert due is not None
        assert 0.5 / FRAME_RATES[0] < due - now <= 1.0 / FRAME_RATES[0]


def test_a_viewer_in_debt_gets_its_frames_later() -> None:
    (session,), _ = working(0.6, [Budget(TokenBucket(0.1, 0.1, 0.0))])
    assert session.wants_frame_at(1.0) == 1.0
    session.receive_text('{"type":"catalog","id":1}', 1.0)
    assert session.wait(1.0) == pytest.approx(5.0)
    assert session.wants_frame_at(1.0) == pytest.approx(6.0)
    assert session.wait(6.1) == 0.0


def test_a_viewer_that_does_not_read_is_not_worked_for_and_ends() -> None:
    session, desk = viewer()
    list(session.texts_to_send())
    number = 0
    while not session.is_behind:
        session.receive_text(json.dumps({"type": "catalog", "id": number}), 1.0)
        desk.answers[-1]("x" * 100_000, None)
        number += 1

    assert number <= MAX_UNREAD // 100_000 + 1
    session.send_encoded(b'{"type":"status"}', again_soon=True)
    session.send_encoded(b'{"type":"schema"}')
    left = [t for t in session.texts_to_send() if b"x" not in t]
    assert left == [b'{"type":"schema"}'] and not session.is_behind
    session.send_encoded(b'{"type":"status"}', again_soon=True)
    assert not session.is_overdue(25.0)
    assert (
        session.is_overdue(60.0)
        and session.close_code == 1013
        and "does not read" in session.close_reason
    )
    assert list(session.texts_to_send()) == []


def test_how_long_a_message_waits_is_counted_from_when_it_was_sent() -> None:
    session, _ = viewer()
    texts(session)
    assert not session.is_overdue(1000.0), (
        "a page that has been told nothing has nothing to read"
    )
    session.send_encoded(b'{"type":"status"}')
    assert not session.is_overdue(1000.0 + MAX_STUCK)
    assert session.is_overdue(1000.1 + MAX_STUCK)


def test_a_view_is_taken_and_answered() -> None:
    session, desk = viewer()
    texts(session)
    session.receive_text('{"type":"view","id":4,"view":{}}', 1.0)
    assert [(t["type"], t["id"]) for t in texts(session)] == [("ok", 4)]
    assert desk.views == 2 and desk.asked == []
    session.receive_text(
        json.dumps(
            {"type": "hello", "id": 5, "token": "full", "version": messages.VERSION}
        ),
        1.0,
    )
    assert [(t["type"], t["id"]) for t in texts(session)] == [("error", 5)]


def test_what_is_left_unread_has_an_end() -> None:
    session, _ = viewer()
    for _ in range(40):
        # Texts such as maps and schemas must not be left out, so they are queued.
        session.send_encoded(b"x" * 1024 * 1024)

    assert session.close_code == 1013 and list(session.texts_to_send()) == []


def test_requests_that_wait_for_their_answers_hold_up_the_next() -> None:
    session, desk = viewer()
    for number in range(MAX_PENDING + 1):
        assert not session.is_behind
        session.receive_text(json.dumps({"type": "catalog", "id": number}), 1.0)

    assert session.is_behind
    desk.answers[0](None, None)
    assert not session.is_behind


def test_where_there_is_no_room_the_viewer_is_told() -> None:
    desk = RequestHandler()
    desk.full = "there are 32 pages already"
    session = Viewer(desk, Tokens("full"), 0.0)
    session.receive_text(
        json.dumps({"type": "hello", "token": "full", "version": messages.VERSION}), 0.0
    )
    assert (
        session.close_code == 1013
        and session.close_reason == desk.full
        and not session.ready
    )


def test_the_rate_of_frames_follows_the_acknowledgements() -> None:
    session, _ = viewer()
    now, number = 0.0, 0

    def frame(delay: float) -> None:
        nonlocal now, number
        due = session.wants_frame_at(now)
        assert due is not None
        now = max(now, due)
        number += 1
        session.frame_sent(number, now)
        now += delay
        session.receive_text(json.dumps({"type": "ack", "number": number}), now)

    assert session.rate == FRAME_RATES[0]
    for _ in range(10):
        frame(0.5)
    assert session.rate == FRAME_RATES[-1]
    for _ in range(200):
        frame(0.01)
    assert session.rate == FRAME_RATES[0]


def test_a_dead_page_gets_two_frames_and_then_one_now_and_then() -> None:
    session, _ = viewer()
    sent = 0
    # The loop covers 100 s.
    for k in range(2000):
        now = 0.05 * k
        due = session.wants_frame_at(now)
        if due is not None and due <= now:
            session.frame_sent(k, now)
            sent += 1

    assert sent <= 2 * (100 / 5 + 1)
    assert session.rate == FRAME_RATES[-1]


def test_a_viewer_that_says_nothing_is_closed() -> None:
    session = Viewer(RequestHandler(), Tokens("full"), 0.0)
    assert not session.is_overdue(4.9)
    assert session.is_overdue(5.1) and session.close_code == 4400
    welcomed, _ = viewer()
    texts(welcomed)
    assert not welcomed.is_overdue(1e6)


def test_log_lines_wait_for_a_slow_page_and_the_loss_is_admitted() -> None:
    session, _ = viewer()
    texts(session)
    for k in range(MAX_LOG + 30):
        session.add_log(LogEntry(time=0.0, level="info", source="x", text=str(k)))
    got: list[str] = []
    lost = 0
    while batch := texts(session):
        assert batch[0]["type"] == "log"
        lost += batch[0]["lost"]
        got += [line["text"] for line in batch[0]["lines"]]

    assert lost == 30 and got == [str(k) for k in range(30, MAX_LOG + 30)]


@given(
    st.lists(
        st.one_of(
            st.text(),
            st.binary(),
            st.dictionaries(st.text(), st.integers()).map(json.dumps),
        ),
        max_size=20,
    )
)
def test_no_message_raises(received: list[str | bytes]) -> None:
    session, _ = viewer()
    for text in received:
        session.receive_text(text, 1.0)
    for text in session.texts_to_send():
        json.loads(text)


@given(
    st.integers(0, 20),
    st.integers(0, 5),
    st.integers(1, 8),
    st.floats(0, 1e9),
    st.integers(0, 2**32 - 1),
)
def test_frames_are_read_back(
    n: int, sensors: int, rays: int, time: float, tick: int
) -> None:
    rng = np.random.default_rng(n)
    pose = rng.normal(size=(n, 3)).astype("<f4")
    robots = np.arange(sensors, dtype=np.uint32)
    ranges = rng.uniform(0, 60, sensors * rays)
    units = np.zeros((sensors, rays), np.uint16)
    write_units(ranges, rays * np.arange(sensors), 1000.0, units)
    header = Header(1, 0, time, tick, 5, 1.0, 2.0, 3.0)
    data = frames.encode(
        header,
        [
            (Block.POSE, 0, n, [pose]),
            (Block.STATE, 0, n, [np.arange(n, dtype=np.uint8)]),
            (Block.READINGS, 2, sensors, [robots, units]),
        ],
    )
    assert len(data) % 4 == 0
    back, blocks = frames.decode(data)
    assert back == header
    assert [(b[0], b[1], b[2]) for b in blocks] == [
        (Block.POSE, 0, n),
        (Block.STATE, 0, n),
        (Block.READINGS, 2, sensors),
    ]
    assert blocks[0][3] == pose.tobytes()
    assert blocks[2][3] == robots.tobytes() + units.tobytes()
    assert np.abs(units.ravel() * 0.001 - ranges).max(initial=0.0) <= 0.00051


@given(st.binary(max_size=200))
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="frame"):
        frames.decode(data)


def test_a_frame_cut_short_is_refused() -> None:
    data = frames.encode(
        Header(1, 0, 0, 0, 0, 1, 1, 1), [(Block.POSE, 0, 2, [np.zeros((2, 3), "<f4")])]
    )
    for n in range(len(data)):
        with pytest.raises(ValueError, match="frame"):
            frames.decode(data[:n])


@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcd"])
def test_a_map_is_read_by_its_layout(name: str) -> None:
    """As `frames` encodes it:

    the text padded to 4 bytes, all coordinates relative to its named origin.
    """
    scene = Scene(
        name=name,
        segments=np.array([[1.0, 2.0, 5.0, 2.0], [5.0, 2.0, 5.0, 8.0]]),
        points=np.array([[3.0, 4.0]]),
        places=(
            Place(kind="Goal", name="g\n", pose=Pose(1.0, 2.0, 0.5), has_heading=False),
        ),
        areas=(
            Area(
                kind="ForbiddenArea",
                name="wet",
                corners=((1.0, 2.0), (3.0, 2.0), (3.0, 4.0)),
            ),
        ),
    )
    data = frames.encode_map(scene)
    begin = len(frames.MAP_MAGIC) + 4
    (size,) = struct.unpack("<I", data[len(frames.MAP_MAGIC) : begin])
    assert data.startswith(frames.MAP_MAGIC) and size % 4 == begin % 4 == 0
    about = json.loads(data[begin : begin + size])
    x, y = about["origin"]
    assert about == {
        "name": name,
        "origin": [scene.center.x, scene.center.y],
        "bounds": [1.0, 2.0, 5.0, 8.0],
        "resolution": scene.resolution,
        "walls": 2,
        "points": 1,
        "places": [
            {"kind": "Goal", "name": "g\\n", "pose": [1.0, 2.0, 0.5], "heading": False}
        ],
        "areas": [
            {
                "kind": "ForbiddenArea",
                "name": "wet",
                "corners": [[1.0, 2.0], [3.0, 2.0], [3.0, 4.0]],
            }
        ],
    }
    numbers = np.frombuffer(data[begin + size :], "<f4").reshape(-1, 2) + np.array(
        [x, y]
    )
    assert numbers.tolist() == [
        [1.0, 2.0],
        [5.0, 2.0],
        [5.0, 2.0],
        [5.0, 8.0],
        [3.0, 4.0],
    ]


def test_ranges_in_units() -> None:
    ranges = np.array([0.0, 0.0004, 0.0006, 8.0, 65.533, 1e6, np.nan, -1.0, np.inf])
    units = np.zeros((1, len(ranges)), np.uint16)
    write_units(ranges, np.zeros(1, np.int64), 1000.0, units)
    assert units[0].tolist() == [
        0,
        0,
        1,
        8000,
        65533,
        65533,
        0xFFFE,
        0,
        65533,
    ]
