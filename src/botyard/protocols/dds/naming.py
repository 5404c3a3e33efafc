"""How ROS 2 maps its names, types and user data on DDS (reference ros.md §4; ROS 2
design: topic and service name mapping).
"""

from __future__ import annotations

from typing import Final

GRAPH_TOPIC: Final = "ros_discovery_info"
GRAPH_TYPE: Final = "rmw_dds_common/msg/ParticipantEntitiesInfo"
ENCLAVE: Final = b"enclave=/;"
"""User data of a participant: its security enclave."""


def topic_name(name: str) -> str:
    """``/ann/odom`` → ``rt/ann/odom``."""
    return f"rt{name}"


def request_topic(name: str) -> str:
    """Topic of a service's requests: ``/ann/stop`` → ``rq/ann/stopRequest``."""
    return f"rq{name}Request"


def response_topic(name: str) -> str:
    """Topic of a service's responses: ``/ann/stop`` → ``rr/ann/stopReply``."""
    return f"rr{name}Reply"


def type_name(name: str) -> str:
    """``nav_msgs/msg/Odometry`` → ``nav_msgs::msg::dds_::Odometry_``."""
    package, kind, short = name.split("/")
    return f"{package}::{kind}::dds_::{short}_"


def type_hash_data(digest: str) -> bytes:
    """User data of a topic's reader or writer: the hash of its type (from Iron on);
    empty without one.
    """
    return f"typehash={digest};".encode() if digest else b""


def service_data(identity: bytes) -> bytes:
    """User data of both ends of a service, by which rmw_cyclonedds pairs them.

    Parameters
    ----------
    identity : bytes
        16 bytes of their own.
    """
    return ("serviceid=" + ".".join(f"{b:x}" for b in identity) + ";").encode()


def split_name(name: str) -> tuple[str, str]:
    """Namespace and short name of a node: ``/ann/base`` → ``("/ann", "base")``."""
    space, _, short = name.rpartition("/")
    return space or "/", short
