"""Bytes that Fast DDS and Cyclone DDS have sent or accepted (reference rtps.md §17), in
both directions, and round trips of all forms.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.protocols.rtps import guids, parameters, submessages, wire
from botyard.protocols.rtps.discoverydata import (
    EndpointData,
    ParticipantData,
    encode_key,
    read_key,
)
from botyard.protocols.rtps.parameters import Identity
from botyard.protocols.rtps.qos import Durability, Qos, mismatch
from botyard.protocols.rtps.wire import LAYOUTS, OURS

PREFIX = bytes.fromhex("01ff5c6f6479f042bb9061b0")
FAST = bytes.fromhex("010f7f0176251b8100000000")
HERE = ("127.0.0.1", 7410)
LOCATOR = "01000000 f21c0000 00000000 00000000 00000000 7f000001"
SPDP = bytes.fromhex(
    f"52545053 0203 01ff {PREFIX.hex()} 09 01 0800 93f6026b 000cad46 15 05 a000 "
    "0000 1000 000100c7 000100c2"
    "00000000 01000000  00030000 1500 0400 02030000 1600 0400 01ff0000"
    f"5000 1000 {PREFIX.hex()} 000001c1 5800 0400 3f000000 0200 0800 14000000 00000000"
    f"3200 1800 {LOCATOR} 3100 1800 {LOCATOR} 2c00 1000 0a000000 "
    "656e636c6176653d2f3b 0000 0100 0000"
)
SERVICE_ID = b"serviceid=9f.17.d.2e.c0.b2.6e.b3.b9.ae.a1.d0.23.1.6.1a;"
SEDP = bytes.fromhex(
    f"52545053 0203 01ff {PREFIX.hex()} 0e 01 0c00 {FAST.hex()} 09 01 0800 94f6026b 0040095a"
    "15 05 4001 0000 1000 00000000 000003c2 00000000 01000000 00030000"
    f"5a00 1000 {PREFIX.hex()} 00000203 5000 1000 {PREFIX.hex()} 000001c1"
    "1500 0400 02030000 1600 0400 01ff0000"
    f"0500 1c00 15000000 {b'rr/mini/triggerReply'.hex()} 00 000000"
    f"0700 2c00 27000000 {b'std_srvs::srv::dds_::Trigger_Response_'.hex()} 00 00"
    "1a00 0c00 02000000 00000000 9a999919 1d00 0400 00000000 1b00 0c00 00000000 ffffff7f ffffffff"
    "4000 0800 00000000 0a000000 7300 0800 01000000 0000 0000"
    f"2c00 3c00 37000000 {SERVICE_ID.hex()} 00 2f00 1800 {LOCATOR} 0100 0000"
)
REQUEST = bytes.fromhex(
    f"52545053 0203 010f {FAST.hex()} 0e 01 0c00 {PREFIX.hex()} 09 01 0800 94f6026b 1355ec5d"
    "15 07 3c00 0000 1000 00000104 00000103 00000000 01000000"
    f"0f80 1800 {FAST.hex()} 00000204 ffffffff 00000000 0100 0000 00010000 00000000"
    f"80 01 3800 {bytes(56).hex()}"
)
REPLY = bytes.fromhex(
    f"52545053 0203 01ff {PREFIX.hex()} 09 01 0800 94f6026b 00c4075e"
    "15 07 7300 0000 1000 00000204 00000203 00000000 01000000"
    f"8300 1800 {FAST.hex()} 00000204 00000000 01000000 0f80 1800 {FAST.hex()} "
    "00000204 00000000 01000000 0100 0000"
    f"00010000 01 000000 17000000 {b'served by plain Python'.hex()} 00"
)
ACKNACK = bytes.fromhex(
    "06 01 2000 000003c7 000003c2 00000000 01000000 34000000 ffffffff 00f0ffff 01000000"
)
PREEMPTIVE = bytes.fromhex(
    "06 01 1800 00000204 00000c03 00000000 00000000 00000000 01000000"
)


def only(packet: bytes, wanted: int) -> tuple[int, int, int]:
    """Return flags, start and end of the only submessage of a kind."""
    ((flags, at, end),) = [
        (f, a, e) for kind, f, a, e in submessages.submessages(packet) if kind == wanted
    ]
    return flags, at, end


def test_participant() -> None:
    """The SPDP packet is the one that both implementations accepted."""
    about = ParticipantData(
        PREFIX + guids.PARTICIPANT, (HERE,), (HERE,), 0x3F, 20.0, b"enclave=/;"
    )
    _, at, end = only(SPDP, wire.DATA)
    head = submessages.read_data(SPDP, at, end, OURS)
    assert (head.reader, head.writer, head.number) == (
        guids.SPDP_READER,
        guids.SPDP_WRITER,
        1,
    )
    assert ParticipantData.read(SPDP[head.inline : end]) == about
    wall = 0x6B02F693 + 0x46AD0C00 / 2**32
    pair = guids.SPDP_READER + guids.SPDP_WRITER
    assert (
        wire.header(PREFIX) + wire.info_ts(wall) + wire.data(pair, 1, about.encode())
        == SPDP
    )


def test_endpoint() -> None:
    """The SEDP packet is the one that Fast DDS accepted."""
    about = EndpointData(
        PREFIX + b"\0\0\2\3",
        "rr/mini/triggerReply",
        "std_srvs::srv::dds_::Trigger_Response_",
        Qos(),
        SERVICE_ID,
        (HERE,),
    )
    _, at, end = only(SEDP, wire.DATA)
    head = submessages.read_data(SEDP, at, end, OURS)
    assert EndpointData.read(SEDP[head.inline : end]) == about
    assert (
        wire.data(wire.ANY + guids.PUBLICATIONS_WRITER, 1, about.encode())
        == SEDP[at - 4 :]
    )
    assert wire.info_dst(FAST) == SEDP[20:36]


def test_request_and_reply() -> None:
    """Inline QoS of Fast DDS, and our form that Fast DDS has accepted."""
    _, at, end = only(REQUEST, wire.DATA)
    head = submessages.read_data(REQUEST, at, end, OURS)
    inline, at = parameters.read_inline(REQUEST, head.inline, end, OURS)
    assert inline.related == Identity(FAST + b"\0\0\2\4", wire.UNKNOWN_NUMBER)
    assert REQUEST[at:end] == bytes.fromhex("00010000 00000000")
    _, at, end = only(REPLY, wire.DATA)
    ours = wire.data(
        REPLY[at + 4 : at + 12],
        1,
        REPLY[0x74:],
        parameters.related_identity(Identity(FAST + b"\0\0\2\4", 1)),
    )
    assert ours[4:] == REPLY[at:] + b"\0", "ours is padded, so that others may follow"
    assert struct.unpack_from("<H", ours, 2) == (len(ours) - 4,)


def test_acknack() -> None:
    """From Fast DDS: a request for 52 samples, and its first ACKNACK, from 0."""
    packet = wire.header(FAST) + ACKNACK
    _, at, end = only(packet, wire.ACKNACK)
    said = submessages.read_acknack(packet, at, end, OURS)
    assert said == (
        guids.PUBLICATIONS_READER,
        guids.PUBLICATIONS_WRITER,
        1,
        list(range(1, 53)),
        1,
    )
    assert wire.acknack(said.reader, said.writer, 1, said.missing, 1) == ACKNACK
    assert wire.acknack(b"\0\0\2\4", b"\0\0\x0c\3", 0, (), 1) == PREEMPTIVE
    assert submessages.read_acknack(PREEMPTIVE, 4, 28, OURS).base == 0


def test_disposals() -> None:
    """Fast DDS's disposal of a writer.

    Ours has the key in both places, as Cyclone requires.
    """
    guid = FAST + b"\0\0\2\3"
    theirs = bytes.fromhex(f"7000 1000 {guid.hex()} 7100 0400 00000003 0100 0000")
    assert parameters.disposal(guid) == theirs
    assert parameters.read_inline(theirs, 0, len(theirs), OURS)[0] == (None, 3, guid)
    assert read_key(encode_key(parameters.ENDPOINT_GUID, guid)) == guid


numbers = st.integers(1, 2**40)
counts = st.integers(-(2**31), 2**31 - 1)
eids = st.binary(min_size=4, max_size=4)


def body(submessage: bytes) -> tuple[int, int]:
    """Return start and end of a submessage's body, and check its length."""
    assert struct.unpack_from("<H", submessage, 2) == (len(submessage) - 4,)
    return 4, len(submessage)


@given(eids, eids, numbers, st.sets(st.integers(0, 255)), counts)
def test_sets(
    reader: bytes, writer: bytes, base: int, bits: set[int], count: int
) -> None:
    """ACKNACK, GAP and NACK_FRAG round-trip, the highest bit first."""
    wanted = sorted(base + k for k in bits)
    acknack = wire.acknack(reader, writer, base, wanted, count)
    assert submessages.read_acknack(acknack, *body(acknack), OURS) == (
        reader,
        writer,
        base,
        wanted,
        count,
    )
    gap = wire.gap(reader, writer, base, base + 3, [n + 3 for n in wanted])
    assert submessages.read_gap(gap, *body(gap), OURS) == (
        reader,
        writer,
        base,
        base + 3,
        [n + 3 for n in wanted],
    )
    if bits:
        fragments = [k + 1 for k in sorted(bits)]
        nack = wire.nack_frag(reader, writer, base, fragments, count)
        assert submessages.read_nack_frag(nack, *body(nack), OURS) == (
            reader,
            writer,
            base,
            fragments,
            count,
        )


@given(eids, eids, numbers, st.integers(0, 1000), counts, st.booleans())
def test_heartbeats(
    reader: bytes, writer: bytes, first: int, more: int, count: int, big: bool
) -> None:
    """Packets are read in both byte orders."""
    last = first + more - 1
    submessage = wire.heartbeat(reader, writer, first, last, count)
    if big:
        swapped = struct.pack(
            ">4s4siIiIi",
            reader,
            writer,
            first >> 32,
            first & 0xFFFFFFFF,
            last >> 32,
            last & 0xFFFFFFFF,
            count,
        )
        submessage = b"\x07\0\0\x1c" + swapped

    ((kind, flags, at, end),) = submessages.submessages(bytes(20) + submessage)
    assert (kind, flags & 1, end - at) == (wire.HEARTBEAT, not big, 28)
    assert submessages.read_heartbeat(submessage, 4, 32, LAYOUTS[flags & 1]) == (
        reader,
        writer,
        first,
        last,
        count,
    )


@given(st.binary(max_size=50), st.booleans())
def test_the_last_submessage_may_leave_its_length_out(
    payload: bytes, is_timestamp: bool
) -> None:
    """Except PAD and INFO_TS, where 0 means an empty body."""
    kind = wire.INFO_TS if is_timestamp else wire.DATA
    packet = (
        wire.header(PREFIX)
        + bytes((kind, 1, 0, 0))
        + (b"" if is_timestamp else payload)
    )
    assert [(k, e - a) for k, _, a, e in submessages.submessages(packet)] == [
        (kind, 0 if is_timestamp else len(payload))
    ]


times = st.one_of(st.just(float("inf")), st.integers(0, 2**30).map(float), st.just(0.5))
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60
)
qualities = st.builds(
    Qos,
    st.booleans(),
    st.sampled_from(Durability),
    st.integers(1, 1000),
    times,
    st.sampled_from([0.0, 0.25]),
    times,
    st.integers(0, 2),
    times,
    st.integers(0, 1),
    st.integers(0, 1),
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)),
    st.lists(texts, max_size=3).map(tuple),
    st.lists(st.integers(0, 2), min_size=1, max_size=3).map(tuple),
)


@given(texts, texts, qualities, st.binary(max_size=60), st.booleans())
def test_endpoints_of_all_qualities(
    topic: str, kind: str, qos: Qos, user: bytes, is_writer: bool
) -> None:
    """Encoded endpoints decode to the same values."""
    entity = b"\0\1\2\3" if is_writer else b"\0\1\2\4"
    about = EndpointData(
        PREFIX + entity, topic, kind, qos, user, (HERE, ("10.1.2.3", 65535)), b"\1\x10"
    )
    assert EndpointData.read(about.encode(), b"\1\x10") == about
    assert mismatch(qos, qos) == ""


@pytest.mark.parametrize(
    ("offered", "wanted", "reason"),
    [
        (Qos(False), Qos(True), "reliability"),
        (
            Qos(),
            Qos(durability=Durability.TRANSIENT_LOCAL),
            "durability: offered VOLATILE, requested TRANSIENT_LOCAL",
        ),
        (Qos(deadline=2.0), Qos(deadline=1.0), "deadline"),
        (Qos(latency_budget=2.0), Qos(latency_budget=1.0), "latency budget"),
        (Qos(liveliness=0), Qos(liveliness=1), "liveliness"),
        (Qos(lease=2.0), Qos(lease=1.0), "liveliness lease"),
        (Qos(ownership=0), Qos(ownership=1), "ownership"),
        (Qos(ownership=1), Qos(ownership=0), "ownership"),
        (Qos(destination_order=0), Qos(destination_order=1), "destination order"),
        (Qos(presentation=(0, 0, 0)), Qos(presentation=(1, 0, 0)), "presentation"),
        (Qos(partitions=("a",)), Qos(), "partition"),
        (Qos(representations=(2,)), Qos(), "representation"),
    ],
)
def test_mismatches(offered: Qos, wanted: Qos, reason: str) -> None:
    """Each policy with its reason; most match in the other direction."""
    assert mismatch(offered, wanted).startswith(reason)
    if reason not in ("ownership", "partition", "representation"):
        assert mismatch(wanted, offered) == ""
    assert mismatch(Qos(partitions=("a", "b")), Qos(partitions=("b", "c"))) == ""
    assert mismatch(Qos(partitions=("*",)), Qos()) == ""


def test_defaults_depend_on_the_kind_of_endpoint() -> None:
    """Cyclone omits defaults: then a writer is reliable and a reader is not."""
    for is_writer in (False, True):
        qos = Qos.read({}, OURS, is_writer)
        assert (qos.reliable, qos.durability, qos.representations) == (
            is_writer,
            Durability.VOLATILE,
            (0,),
        )


@pytest.mark.parametrize(
    "value",
    [
        # UDP over IPv6.
        "02000000 f21c0000 00000000 00000000 00000000 7f000001",
        # Shared memory of Fast DDS.
        "10000000 f21c0000 557f0100 00000000 00000000 00000000",
        # A locator without a port.
        "01000000 00000000 00000000 00000000 00000000 7f000001",
        # A locator without a host.
        "01000000 f21c0000 00000000 00000000 00000000 00000000",
        # A multicast group.
        "01000000 f21c0000 00000000 00000000 00000000 efff0001",
        # The broadcast address.
        "01000000 f21c0000 00000000 00000000 00000000 ffffffff",
        "01000000 f21c0000",
    ],
)
def test_locators_that_are_not_sent_to(value: str) -> None:
    """Other kinds of transport, and addresses of more than one host."""
    assert guids.read_locator(bytes.fromhex(value), OURS) is None
    assert guids.read_locator(guids.locator(HERE), OURS) == HERE
