"""Mapping of ROS 2 to Zenoh by rmw_zenoh: key expressions of topics and services,
attachments, liveliness tokens of the graph.

Reference: ros.md §5. The data of a topic is its CDR.
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
"""QoS in tokens: reliable, volatile, keep last 10. Only what differs from ROS's
defaults is written.
"""
LATCHED: Final = ":1:,1:,:,:,,"
"""QoS in tokens: reliable, transient local, keep last 1."""
GID: Final = 16
"""Size of the identifier of an endpoint, bytes."""
_ATTACHMENT: Final = struct.Struct(f"<qqB{GID}s")


def mangled(name: str) -> str:
    """A ROS name as one chunk of a key: ``/ann/odom`` → ``%ann%odom``; the root, or
    nothing, → ``%``.
    """
    return name.replace("/", "%") or "%"


def data_key(domain: int, name: str, kind: str, digest: str) -> str:
    """Key expression of a topic or a service.

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
    """Attachment of a message: sequence number, source timestamp, ns, and GID of the
    sender (16 bytes).
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
        """Token of a node, on its first mention; None: it has one."""
        if name in self._nodes:
            return None
        number = self._nodes[name] = next(self._ids)
        return self._key(name, number, "NN", "")

    def forget(self, name: str) -> None:
        """Forget a node that has gone."""
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
        """Token of an endpoint of a node.

        Parameters
        ----------
        sort : str
            ``MP`` publisher, ``MS`` subscription, ``SS`` service server, ``SC`` service
            client.
        """
        tail = f"/{mangled(name)}/{type_name(kind)}/{digest or 'TypeHashNotSupported'}/{qos}"
        return self._key(node, next(self._ids), sort, tail)

    def _key(self, node: str, number: int, sort: str, tail: str) -> str:
        space, short = split_name(node)
        home = "%" if space == "/" else mangled(space)
        return f"@ros2_lv/{self.domain}/{self.session}/{self._nodes[node]}/{number}/{sort}/%/{home}/{short}{tail}"
