"""Mapping of ROS 2 to Zenoh by rmw_zenoh.

The module covers key expressions of topics and services, attachments, and liveliness
tokens of the graph. The data of a topic is its CDR. Reference: ros.md §5.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from typing import Final

from botyard.protocols.dds.naming import split_name, type_name

ROUTER: Final = "tcp/localhost:7447"
"""Default endpoint of the router, rmw_zenohd, and of the nodes that connect to it."""
VOLATILE: Final = "::,10:,:,:,,"
"""QoS in tokens: reliable, volatile, keep last 10.

Only differences from ROS's defaults are written.
"""
GID: Final = 16
"""Size of an endpoint's identifier, bytes."""
_ATTACHMENT: Final = struct.Struct(f"<qqB{GID}s")


def kept_qos(depth: int) -> str:
    """Return the QoS in tokens of a topic for late readers.

    It is reliable, transient local, and keeps the last messages.

    Parameters
    ----------
    depth : int
        Number of messages that late readers get.
    """
    return f":1:,{depth}:,:,:,,"


def mangled(name: str) -> str:
    """Return a ROS name as one chunk of a key: ``/ann/odom`` → ``%ann%odom``.

    The root, or an empty name, gives ``%``.

    Slashes separate the chunks of a key, so a name with slashes would be several
    chunks.

    Parameters
    ----------
    name : str
        ROS name, absolute or empty.

    Returns
    -------
    str
        The name with ``%`` for each slash.
    """
    return name.replace("/", "%") or "%"


def data_key(domain: int, name: str, kind: str, digest: str) -> str:
    """Return the key expression of a topic or a service.

    Parameters
    ----------
    domain : int
        ROS domain (``ROS_DOMAIN_ID``).
    name : str
        Absolute ROS name.
    kind : str
        ROS 2 name of its type.
    digest : str
        Hash of the type.

    Returns
    -------
    str
        Key such as ``0/ann/odom/nav_msgs::msg::dds_::Odometry_/RIHS01_…``. Humble has
        no hashes; ``TypeHashNotSupported`` replaces an empty hash.
    """
    return f"{domain}/{name.strip('/')}/{type_name(kind)}/{digest or 'TypeHashNotSupported'}"


def attachment(sequence: int, nanoseconds: int, gid: bytes) -> bytes:
    """Return the attachment of a message.

    The attachment holds the sequence number, the source timestamp in ns, and the
    sender's GID of 16 bytes.

    Parameters
    ----------
    sequence : int
        Sequence number of the message at its sender.
    nanoseconds : int
        Source timestamp, ns since the epoch of the clock that stamps the messages.
    gid : bytes
        Identifier of the sender, `GID` bytes.

    Returns
    -------
    bytes
        Two int64 in little-endian order, the length of the identifier (u8), and the
        identifier: 33 bytes.
    """
    return _ATTACHMENT.pack(sequence, nanoseconds, GID, gid)


@dataclass(slots=True)
class Tokens:
    """Key expressions of the liveliness tokens of a session.

    Attributes
    ----------
    domain : int
        ROS domain (``ROS_DOMAIN_ID``).
    session : str
        Zenoh ID of the session.
    """

    domain: int
    session: str
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _nodes: dict[str, int] = field(default_factory=dict)

    def node(self, name: str) -> str | None:
        """Return the token of a node on its first mention; None afterwards.

        Parameters
        ----------
        name : str
            Absolute name of the node.
        """
        if name in self._nodes:
            return None
        # Tokens of endpoints repeat the number of their node.
        number = self._nodes[name] = next(self._ids)
        return self._key(name, number, "NN", "")

    def forget(self, name: str) -> None:
        """Forget a removed node.

        Parameters
        ----------
        name : str
            Absolute name of the node. Its next mention gives a new token.
        """
        self._nodes.pop(name, None)

    def end(
        self,
        node: str,
        sort: str,
        name: str,
        kind: str,
        digest: str,
        qos: str = VOLATILE,
    ) -> str:
        """Return the liveliness token of an endpoint of a node.

        Parameters
        ----------
        node : str
            Name of the node.
        sort : str
            ``MP`` publisher, ``MS`` subscription, ``SS`` service server, ``SC`` service
            client.
        name : str
            Absolute ROS name.
        kind : str
            ROS 2 name of the type.
        digest : str
            Hash of the type.
        qos : str
            QoS in the form of tokens.

        Returns
        -------
        str
            Key of the token. Each call uses up a number, so that equal endpoints
            differ.

        Raises
        ------
        KeyError
            `node` was not mentioned before (`Tokens.node`).
        """
        tail = f"/{mangled(name)}/{type_name(kind)}/{digest or 'TypeHashNotSupported'}/{qos}"
        return self._key(node, next(self._ids), sort, tail)

    def _key(self, node: str, number: int, sort: str, tail: str) -> str:
        space, short = split_name(node)
        # The namespace is its own chunk; "%" is the root.
        home = "%" if space == "/" else mangled(space)
        return f"@ros2_lv/{self.domain}/{self.session}/{self._nodes[node]}/{number}/{sort}/%/{home}/{short}{tail}"
