"""Mapping of ROS 2 to Zenoh by rmw_zenoh.

It covers key expressions of topics and services, attachments, and liveliness tokens of
the graph. The data of a topic is its CDR. Reference: ros.md §5.
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
LATCHED: Final = ":1:,1:,:,:,,"
"""QoS in tokens: reliable, transient local, keep last 1."""
GID: Final = 16
"""Size of an endpoint's identifier, bytes."""
_ATTACHMENT: Final = struct.Struct(f"<qqB{GID}s")


def mangled(name: str) -> str:
    """Return a ROS name as one chunk of a key: ``/ann/odom`` → ``%ann%odom``.

    The root, or an empty name, gives ``%``.
    """
    return name.replace("/", "%") or "%"


def data_key(domain: int, name: str, kind: str, digest: str) -> str:
    """Return the key expression of a topic or a service.

    Parameters
    ----------
    domain : int
        ``ROS_DOMAIN_ID``.
    name : str
        Absolute ROS name.
    kind : str
        ROS 2 name of its type.
    digest : str
        Hash of the type.
    """
    return f"{domain}/{name.strip('/')}/{type_name(kind)}/{digest or 'TypeHashNotSupported'}"


def attachment(sequence: int, nanoseconds: int, gid: bytes) -> bytes:
    """Return the attachment of a message.

    It holds the sequence number, the source timestamp in ns, and the sender's GID of 16
    bytes.
    """
    return _ATTACHMENT.pack(sequence, nanoseconds, GID, gid)


@dataclass(slots=True)
class Tokens:
    """Key expressions of the liveliness tokens of a session.

    Attributes
    ----------
    domain : int
        ``ROS_DOMAIN_ID``.
    session : str
        Zenoh ID of the session.
    """

    domain: int
    session: str
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _nodes: dict[str, int] = field(default_factory=dict)

    def node(self, name: str) -> str | None:
        """Return the token of a node on its first mention; None afterwards."""
        if name in self._nodes:
            return None
        # Tokens of endpoints repeat the number of their node.
        number = self._nodes[name] = next(self._ids)
        return self._key(name, number, "NN", "")

    def forget(self, name: str) -> None:
        """Forget a node that has left."""
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
        """Return the token of an endpoint of a node.

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
        """
        tail = f"/{mangled(name)}/{type_name(kind)}/{digest or 'TypeHashNotSupported'}/{qos}"
        return self._key(node, next(self._ids), sort, tail)

    def _key(self, node: str, number: int, sort: str, tail: str) -> str:
        space, short = split_name(node)
        # The namespace is its own chunk; "%" stands for the root.
        home = "%" if space == "/" else mangled(space)
        return f"@ros2_lv/{self.domain}/{self.session}/{self._nodes[node]}/{number}/{sort}/%/{home}/{short}{tail}"
