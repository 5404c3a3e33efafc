"""Mapping of ROS 2's names, types and user data to DDS.

Sources: reference ros.md §4; ROS 2 design, topic and service name mapping.
"""

from __future__ import annotations

from typing import Final

GRAPH_TOPIC: Final = "ros_discovery_info"
GRAPH_TYPE: Final = "rmw_dds_common/msg/ParticipantEntitiesInfo"
ENCLAVE: Final = b"enclave=/;"
"""User data of a participant: the name of its security enclave."""


def topic_name(name: str) -> str:
    """Return the DDS topic of a ROS topic: ``/ann/odom`` → ``rt/ann/odom``.

    Parameters
    ----------
    name : str
        Absolute ROS name, with its leading slash.
    """
    return f"rt{name}"


def request_topic(name: str) -> str:
    """Return the topic of a service's requests: ``/ann/stop`` → ``rq/ann/stopRequest``.

    Parameters
    ----------
    name : str
        Absolute ROS name of the service.
    """
    return f"rq{name}Request"


def response_topic(name: str) -> str:
    """Return the topic of a service's responses: ``/ann/stop`` → ``rr/ann/stopReply``.

    Parameters
    ----------
    name : str
        Absolute ROS name of the service.
    """
    return f"rr{name}Reply"


def type_name(name: str) -> str:
    """Return a DDS type: ``nav_msgs/msg/Path`` → ``nav_msgs::msg::dds_::Path_``.

    Parameters
    ----------
    name : str
        ROS 2 name of three parts.

    Raises
    ------
    ValueError
        The name does not have three parts.
    """
    package, kind, short = name.split("/")
    return f"{package}::{kind}::dds_::{short}_"


def type_hash_data(digest: str) -> bytes:
    """Return the user data of a topic's reader or writer: the hash of its type.

    Distributions from Iron have it; without a hash the result is empty.

    Parameters
    ----------
    digest : str
        Hash such as ``RIHS01_…`` (REP-2011), or empty.
    """
    return f"typehash={digest};".encode() if digest else b""


def service_data(identity: bytes) -> bytes:
    """Return the user data by which rmw_cyclonedds pairs a service's endpoints.

    Parameters
    ----------
    identity : bytes
        16 bytes that are unique to the service.
    """
    return ("serviceid=" + ".".join(f"{b:x}" for b in identity) + ";").encode()


def split_name(name: str) -> tuple[str, str]:
    """Return namespace and short name of a node: ``/ann/base`` → ``("/ann", "base")``.

    Parameters
    ----------
    name : str
        Absolute name of the node. A node without a namespace is in the root ``/``.
    """
    space, _, short = name.rpartition("/")
    return space or "/", short
