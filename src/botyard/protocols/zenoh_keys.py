"""How rmw_zenoh maps ROS 2 on Zenoh: keys of topics and services, attachments, and the liveliness tokens that make the graph.

Reference: ros.md §5. The data of a topic is its CDR.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from typing import Final

from botyard.protocols.dds.naming import split_name, type_name

ROUTER: Final = "tcp/localhost:7447"
"""Where rmw_zenohd listens, and every node looks for it."""
VOLATILE: Final = "::,10:,:,:,,"
"""Reliable, volatile, the last 10: only what differs from ROS's defaults is written."""
LATCHED: Final = ":1:,1:,:,:,,"
"""Transient local, the last one."""
GID: Final = 16
_ATTACHMENT: Final = struct.Struct(f"<qqB{GID}s")


def mangled(name: str) -> str:
    """A name as one part of a key: ``/ann/odom`` → ``%ann%odom``; the root, or nothing, → ``%``."""
    return name.replace("/", "%") or "%"


def data_key(domain: int, name: str, kind: str, digest: str) -> str:
    """Key of a topic or a service.

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
    """What goes with each message: its number, when it was sent, and by whom (16 bytes)."""
    return _ATTACHMENT.pack(sequence, nanoseconds, GID, gid)


@dataclass(slots=True)
class Tokens:
    """Makes the keys of liveliness tokens.

    Attributes
    ----------
    domain : int
        ``ROS_DOMAIN_ID``.
    session : str
        Zenoh's identifier of the session.
    """

    domain: int
    session: str
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _nodes: dict[str, int] = field(default_factory=dict)

    def node(self, name: str) -> str | None:
        """The token of a node that is new; None: it is known."""
        if name in self._nodes:
            return None
        number = self._nodes[name] = next(self._ids)
        return self._key(name, number, "NN", "")

    def forget(self, name: str) -> None:
        """A node has gone."""
        self._nodes.pop(name, None)

    def end(self, node: str, sort: str, name: str, kind: str, digest: str, qos: str = VOLATILE) -> str:
        """The token of an end of a node.

        Parameters
        ----------
        sort : str
            ``MP`` publisher, ``MS`` subscriber, ``SS`` server, ``SC`` client.
        """
        tail = f"/{mangled(name)}/{type_name(kind)}/{digest or 'TypeHashNotSupported'}/{qos}"
        return self._key(node, next(self._ids), sort, tail)

    def _key(self, node: str, number: int, sort: str, tail: str) -> str:
        space, short = split_name(node)
        home = "%" if space == "/" else mangled(space)
        return f"@ros2_lv/{self.domain}/{self.session}/{self._nodes[node]}/{number}/{sort}/%/{home}/{short}{tail}"
