"""ROS 2's names, user data, requests, graph and environment on DDS, without a network."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PeerError, WorldError
from botyard.protocols.dds import naming
from botyard.protocols.dds.environment import DISTROS, Environment, distro_of
from botyard.protocols.dds.graph import Graph
from botyard.protocols.dds.requests import join_response, split_request
from botyard.protocols.ros_messages.typedefinitions import SERVICES
from botyard.protocols.ros_messages.types import types

TYPES = types()


def test_names() -> None:
    """Names follow the mapping of the ROS 2 design."""
    assert naming.topic_name("/ann/odom") == "rt/ann/odom"
    assert naming.request_topic("/ann/stop") == "rq/ann/stopRequest"
    assert naming.response_topic("/ann/stop") == "rr/ann/stopReply"
    assert (
        naming.type_name("std_srvs/srv/Empty_Request")
        == "std_srvs::srv::dds_::Empty_Request_"
    )
    assert naming.split_name("/botyard") == ("/", "botyard")
    assert naming.split_name("/a/b/c") == ("/a/b", "c")
    assert (
        naming.service_data(bytes(range(16)))
        == b"serviceid=0.1.2.3.4.5.6.7.8.9.a.b.c.d.e.f;"
    )


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        # Jazzy's rosidl prints these digests (reference ros.md §4).
        (
            "std_srvs/srv/SetBool",
            "abe9e4bb6b41b40e6789712c00ec8871923e089af3f667a79992a428cff2da0a",
        ),
        (
            "std_srvs/srv/Empty",
            "5888399dedec5ccc85ea6451949fd2c9f97bfdf963f9a588821639fcd31b5d19",
        ),
        (
            "std_srvs/srv/Trigger",
            "eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f",
        ),
        (
            "rmw_dds_common/msg/Gid",
            "ab6f21cfbb0a6dbb837161e1110c2051a2850ed9f9c53944d7115d9bcebedf71",
        ),
        (
            "rmw_dds_common/msg/ParticipantEntitiesInfo",
            "91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e",
        ),
    ],
)
def test_hashes(name: str, digest: str) -> None:
    """Of messages and services, also with a char field."""
    assert TYPES.hash(name) == f"RIHS01_{digest}"
    assert types("humble").hash(name) == ""


def test_every_service_has_a_hash() -> None:
    """All of our services that ROS 2 can use."""
    for name in SERVICES:
        if name.split("/")[0] not in ("dynamic_reconfigure", "roscpp"):
            assert TYPES.hash(name.replace("/", "/srv/")).startswith("RIHS01_")


@given(
    st.binary(min_size=1, max_size=60),
    st.integers(0, 2**64 - 1),
    st.integers(1, 2**63 - 1),
    st.booleans(),
)
def test_requests_are_answered_to_whom_they_came_from(
    body: bytes, client: int, number: int, little: bool
) -> None:
    """The header is found and repeated in our byte order."""
    mark = "<" if little else ">"
    data = bytes([0, little, 0, 0]) + struct.pack(f"{mark}Qq", client, number) + body
    request = split_request(data)
    assert request.body == bytes([0, little, 0, 0]) + body
    response = join_response(request, b"\0\1\0\0abc")
    assert response == b"\0\1\0\0" + struct.pack("<Qq", client, number) + b"abc"


@given(st.binary(max_size=20))
def test_requests_without_the_header_are_refused(data: bytes) -> None:
    """Such names come from other RMWs."""
    with pytest.raises(PeerError, match="rmw_cyclonedds"):
        split_request(data)


@pytest.mark.parametrize(
    ("distro", "length"), [("humble", 24), ("jazzy", 16), ("kilted", 16)]
)
def test_graph(distro: str, length: int) -> None:
    """Endpoints are listed by node, in the GID length of the distribution.

    A node ends with its last endpoint.
    """
    store = types(distro)
    graph = Graph(store, b"p" * 16)
    graph.add("/botyard", writer=b"w" * 16)
    graph.add("/botyard", reader=b"r" * 16)
    graph.add("/a/b", writer=b"x" * 16)
    message = store.decode_cdr(graph.encode(), naming.GRAPH_TYPE)
    assert bytes(message.gid.data) == (b"p" * 16).ljust(length, b"\0")
    first, second = message.node_entities_info_seq
    assert (first.node_namespace, first.node_name) == ("/", "botyard")
    assert (second.node_namespace, second.node_name) == ("/a", "b")
    assert bytes(first.writer_gid_seq[0].data) == (b"w" * 16).ljust(length, b"\0")
    graph.remove("/a/b", writer=b"x" * 16)
    graph.remove("/botyard", reader=b"r" * 16)
    (only,) = store.decode_cdr(graph.encode(), naming.GRAPH_TYPE).node_entities_info_seq
    assert only.node_name == "botyard"
    assert len(only.reader_gid_seq) == 0
    graph.remove("/nobody", writer=b"x" * 16)


def test_distributions() -> None:
    """The types of each distribution are known; unknown ones are reported."""
    for name in DISTROS:
        distro, remark = distro_of(name)
        assert types(distro).distro == distro and not remark

    assert distro_of("") == distro_of("noetic") == ("jazzy", "")
    distro, remark = distro_of("foxy\n")
    assert (
        distro == "jazzy"
        and "foxy" in remark
        and "rolling" in remark
        and remark.isprintable()
    )


def test_environment() -> None:
    """The environment variables of ROS 2 are read."""
    assert Environment.read({}) == Environment(0, "SUBNET", ())
    assert Environment.read(
        {"ROS_DOMAIN_ID": "42", "ROS_LOCALHOST_ONLY": "1"}
    ) == Environment(42, "LOCALHOST", ())
    both = {
        "ROS_LOCALHOST_ONLY": "1",
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF",
        "ROS_STATIC_PEERS": "10.0.0.1",
    }
    assert Environment.read(both) == Environment(0, "LOCALHOST", ()), "the older counts"
    (remark,) = Environment.unserved(both)
    assert "ROS_AUTOMATIC_DISCOVERY_RANGE and ROS_STATIC_PEERS are ignored" in remark
    assert "later distributions ignore ROS_LOCALHOST_ONLY" in remark
    both["ROS_LOCALHOST_ONLY"] = "0"
    assert Environment.read(both) == Environment(0, "OFF", ("10.0.0.1",))
    assert Environment.read({"ROS_STATIC_PEERS": "10.0.0.1;b.local"}, 3) == Environment(
        3, "SUBNET", ("10.0.0.1", "b.local")
    )
    for wrong in (
        {"ROS_DOMAIN_ID": "x"},
        {"ROS_DOMAIN_ID": "233"},
        {"ROS_DOMAIN_ID": "²"},
        {"ROS_DOMAIN_ID": "9" * 5000},
    ):
        with pytest.raises(WorldError, match="expected"):
            Environment.read(wrong)


@pytest.mark.parametrize("value", ["WORLD", "off", "SUBNET ", "NOT_SET", "\n" * 999])
def test_an_unknown_range_is_this_computer(value: str) -> None:
    """rcl of Jazzy warns "Invalid value 'off' …, assuming localhost only"."""
    variables = {"ROS_AUTOMATIC_DISCOVERY_RANGE": value}
    assert Environment.read(variables) == Environment(0, "LOCALHOST", ())
    (remark,) = Environment.unserved(variables)
    assert "expected one of SUBNET" in remark and "using LOCALHOST" in remark
    assert remark.isprintable() and len(remark) < 250


def test_announcements() -> None:
    """The destinations of announcements:

    the multicast group, and ports of hosts reached without it.
    """
    assert Environment(3).announce_to([]) == [("239.255.0.1", 8150)]
    local = Environment(0, "LOCALHOST").announce_to(["127.0.0.1", "10.0.0.1"])
    assert len(local) == 1 + 2 * 32
    assert local[:3] == [
        ("239.255.0.1", 7400),
        ("127.0.0.1", 7410),
        ("127.0.0.1", 7412),
    ]
    assert local[-1] == ("10.0.0.1", 7472)
    assert Environment(0, "OFF").announce_to(["10.0.0.1"]) == []


def test_what_is_not_served_is_said() -> None:
    """Variables of other implementations, and of security, are reported."""
    assert (
        Environment.unserved({"ROS_DOMAIN_ID": "3", "ROS_DISCOVERY_SERVER": ""}) == []
    )
    said = Environment.unserved(
        {"ROS_DISCOVERY_SERVER": "10.0.0.1:11811", "ROS_SECURITY_ENABLE": "true"}
    )
    assert [text.split()[0] for text in said] == [
        "ROS_DISCOVERY_SERVER",
        "ROS_SECURITY_ENABLE:",
    ]


@pytest.mark.parametrize(
    "value",
    ["SHM", "LARGE_DATA", "LARGE_DATAv6", "UDPv6", "NONE", "LARGE_DATA?soc_size=2MB"],
)
def test_a_setting_that_hides_our_topics_from_fast_dds_is_reported(value: str) -> None:
    (remark,) = Environment.unserved({"FASTDDS_BUILTIN_TRANSPORTS": value})
    assert remark.startswith(f"FASTDDS_BUILTIN_TRANSPORTS={value}: ")
    assert "find no topic" in remark and "UDPv4" in remark


@pytest.mark.parametrize("value", ["", "DEFAULT", "UDPv4", "UDPv4?max_msg_size=1KB"])
def test_transports_with_udp_need_no_warning(value: str) -> None:
    assert Environment.unserved({"FASTDDS_BUILTIN_TRANSPORTS": value}) == []


def test_discovery_that_is_off_is_reported() -> None:
    (remark,) = Environment.unserved({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"})
    assert "LOCALHOST or SUBNET" in remark
