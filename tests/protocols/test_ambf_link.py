"""The connection of clients without ROS, and states encoded in place."""

from __future__ import annotations

import itertools
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PeerError
from botyard.protocols.ambf.link import (
    MAX_FRAME,
    Frame,
    FrameReader,
    Kind,
    LinkTopic,
    frame,
    parse_topics,
    topics_frame,
)
from botyard.protocols.ambf.messages import GENERATIONS, definitions
from botyard.protocols.ambf.template import Template
from botyard.protocols.ros_messages.types import Types

TOPICS = [
    LinkTopic(1, "/ambf/env/a/State", "ambf_msgs/RigidBodyState", True),
    LinkTopic(2, "/ambf/env/a/Command", "x/y", False),
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([Kind.READ, Kind.LEAVE, Kind.MESSAGE]),
            st.integers(0, 2**32 - 1),
            st.binary(max_size=50),
        )
    ),
    st.integers(1, 9),
)
def test_frames_in_pieces_of_any_size(
    frames: list[tuple[Kind, int, bytes]], size: int
) -> None:
    encoded = [frame(*f) for f in frames]
    # After a long packet, later packets are kept only once as many bytes have arrived.
    encoded.insert(
        len(frames) // 2,
        topics_frame("2.0", TOPICS),
    )
    ends, data = list(itertools.accumulate(map(len, encoded))), b"".join(encoded)
    reader, found = FrameReader(), []
    for k in range(0, len(data), size):
        found += list(reader.feed_bytes(data[k : k + size]))
        assert len(found) == sum(end <= k + size for end in ends), (
            "a frame is handed on as soon as it is complete"
        )

    assert parse_topics(found.pop(len(frames) // 2).data) == ("2.0", TOPICS)
    assert found == [Frame(*f) for f in frames]


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (Kind.READ, b"", "05000000 01 04030201"),
        (Kind.LEAVE, b"", "05000000 02 04030201"),
        (Kind.MESSAGE, b"", "05000000 03 04030201"),
        (Kind.MESSAGE, b"\xab", "06000000 03 04030201 ab"),
    ],
)
def test_layouts_byte_by_byte(kind: Kind, data: bytes, expected: str) -> None:
    """The bytes that programs in other languages send and expect."""
    assert frame(kind, 0x01020304, data) == bytes.fromhex(expected)


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    try:
        for found in FrameReader().feed_bytes(data):
            assert isinstance(found.kind, Kind)
    except PeerError:
        pass


def test_what_is_no_frame_is_said() -> None:
    for data, text in (
        (struct.pack("<I", 0), "expected a frame of 1"),
        (struct.pack("<I", MAX_FRAME + 1), "expected a frame of 1"),
        (struct.pack("<IB", 1, 9), "expected a frame of kind"),
        (struct.pack("<IB", 3, 1) + b"ab", "expected a number"),
        (struct.pack("<IB", 4, 3) + b"abc", "expected a number"),
    ):
        with pytest.raises(PeerError, match=text):
            list(FrameReader().feed_bytes(data))

    with pytest.raises(PeerError, match="list of topics"):
        parse_topics(b'{"generation": 1}')


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("wire", ["ros1", "cdr"])
def test_a_template_gives_the_bytes_of_the_message(generation: str, wire: str) -> None:
    types = Types(more=definitions(generation))
    kind = "ambf_msgs/WorldState"
    encode = types.encode_ros1 if wire == "ros1" else types.encode_cdr

    def make(groups: object) -> bytes:
        stamp, rate, step, times = groups  # type: ignore[misc]
        message = types.blank(kind)
        message.header.stamp.sec, message.header.stamp.nanosec = stamp
        # The odd length shifts the following fields, which CDR must align.
        message.header.frame_id = "odd"
        message.dynamic_loop_freq, message.sim_step = rate[0], step[0]
        message.wall_time, message.sim_time = times
        return encode(message, kind)

    template = Template(make, ["II", "Q", "I", "ff"])
    for values in (
        ((1, 2), (1000,), (7,), (1.5, 2.25)),
        ((0, 0), (0,), (0,), (0.0, 0.0)),
        ((9, 8), (1,), (2**32 - 1,), (-1.0, math.inf)),
    ):
        assert template.fill([v for group in values for v in group]) == make(values)

    with pytest.raises(struct.error):
        template.fill((1, 2, 1000, -1, 0.0, 0.0))
    with pytest.raises(struct.error):
        template.fill((1, 2))
    with pytest.raises(
        ValueError, match=r"expected the marker values of group 2 \(Q\) in the"
    ):
        Template(lambda g: make([g[0], g[2], g[1], g[3]]), ["II", "I", "Q", "ff"])


def test_blank_messages_can_be_encoded() -> None:
    for generation in GENERATIONS:
        types = Types(more=definitions(generation))
        for name in definitions(generation):
            assert (
                types.decode_ros1(types.encode_ros1(types.blank(name), name), name)
                is not None
            )
